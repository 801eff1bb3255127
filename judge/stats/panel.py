"""A panel: several judges on the same texts, each in columns of its own, and their mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from judge.core.records import IDENTICAL, Column, Failure, Provenance, Score

Row = Score | Failure


def judged(columns: Iterable[Column]) -> dict[str, list[Column]]:
    """The judges' columns of every criterion that a panel judged."""
    found: dict[str, list[Column]] = {}
    for column in columns:
        if column.judge:
            found.setdefault(column.criterion, []).append(column)
    return found


def mean_column(judges: Sequence[Column]) -> Column:
    """The column of a panel's means on one criterion, signed with the judges' own signatures."""
    signature = f"mean of {len(judges)} judges: {'; '.join(column.signature for column in judges)}"
    return replace(judges[0], name=judges[0].criterion, signature=signature, judge="")


def means(columns: Sequence[Column], rows: Iterable[Row]) -> list[Row]:
    """The mean of the judges' values for every text (or comparison) that any of them was asked about.

    Where a judge has no score the panel has none either: means over different judges do not compare.
    """
    panels = judged(columns)
    of = {column.name: column for judges in panels.values() for column in judges}
    found: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for row in rows:
        if column := of.get(row.column):
            found.setdefault((column.criterion, row.item, row.system, row.rival), {})[column.judge] = row
    return [_mean(key, by_judge, [column.judge for column in panels[key[0]]]) for key, by_judge in found.items()]


def _mean(key: tuple[str, str, str, str], by_judge: Mapping[str, Row], judges: Sequence[str]) -> Row:
    criterion, item, system, rival = key
    scores = {name: row for name in judges if isinstance(row := by_judge.get(name), Score)}
    if missing := [name for name in judges if name not in scores]:
        message = f"no score by {', '.join(missing)}"
        return Failure(item, system, criterion, "panel", "IncompletePanel", message, rival=rival)
    if all(score.provenance.method == IDENTICAL for score in scores.values()):
        return replace(scores[judges[0]], column=criterion)
    told = "; ".join(f"{name}: {score.value:.4g}" for name, score in scores.items())
    value = fmean(score.value for score in scores.values())
    return Score(item, system, criterion, value, Provenance("panel", n=len(scores), note=told), rival)
