"""Lay out finished results and write them in every format."""
