"""Scores in the data of a run, in addition to its judges' and metrics' scores."""

from __future__ import annotations

from dataclasses import dataclass

from judge.core.records import Column, Failure, Score


@dataclass(frozen=True, slots=True)
class GivenScores:
    """Columns with a judge's scores, and a row for each text or pair and column."""

    columns: tuple[Column, ...] = ()
    rows: tuple[Score | Failure, ...] = ()
