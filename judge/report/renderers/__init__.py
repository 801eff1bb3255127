"""Renderers: each writes a Document in one format, and knows no report."""
