"""Prompt regression: a suite of cases beside the prompts, and what a judge's scores say of each."""
