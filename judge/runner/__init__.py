"""Judgments → prompts → requests → cache → engine → scores: the front half of every run."""

from judge.runner.cases import Judgment, Row
from judge.runner.run import Run

__all__ = ["Judgment", "Row", "Run"]
