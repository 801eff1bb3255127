"""A panel: several judges on the same texts, each with columns of its own, and their mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from judge import __version__
from judge.records import IDENTICAL, Column, Criterion, Failure, Provenance, Score
from judge.runner import Row


def suffixes(judges: Sequence[str]) -> dict[str, str]:
    """What each judge's columns have after the criterion's name: nothing where it is the only judge."""
    return {name: f"/{name}" if len(judges) > 1 else "" for name in judges}


def mean_column(criterion: Criterion, columns: Sequence[Column]) -> Column:
    """The column of a panel's means, signed with the judges' own signatures."""
    signature = f"mean of {len(columns)} judges: {'; '.join(c.signature for c in columns)}|judge {__version__}"
    scale = criterion.scale
    return Column(criterion.name, "criterion", signature, scale.low, scale.high, scale.labels)


def means(criterion: str, columns: Mapping[str, str], rows: Sequence[Row]) -> list[Row]:
    """The mean of the judges' values for every text (or comparison) that any of them was asked about.

    `columns` are the judges' names by column. Where a judge has no score the panel has none either: means over
    different judges do not compare.
    """
    found: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        if row.column in columns:
            found.setdefault((row.item, row.system, row.rival), {})[columns[row.column]] = row
    return [_mean(criterion, key, by_judge, list(columns.values())) for key, by_judge in found.items()]


def _mean(criterion: str, key: tuple[str, str, str], by_judge: Mapping[str, Row], judges: Sequence[str]) -> Row:
    item, system, rival = key
    scores = {name: row for name in judges if isinstance(row := by_judge.get(name), Score)}
    if missing := [name for name in judges if name not in scores]:
        message = f"no score by {', '.join(missing)}"
        return Failure(item, system, criterion, "panel", "IncompletePanel", message, rival=rival)
    if all(score.provenance.method == IDENTICAL for score in scores.values()):
        return replace(scores[judges[0]], column=criterion)
    told = "; ".join(f"{name}: {score.value:.4g}" for name, score in scores.items())
    provenance = Provenance("panel", n=len(scores), note=told)
    return Score(item, system, criterion, fmean(s.value for s in scores.values()), provenance, rival)
