"""Findings before it is known which of them the tests tell apart, and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from judge.audits.card import Evidence, Finding
from judge.audits.sensitivity import corrected
from judge.audits.words import brackets, chance
from judge.records import Column, Estimate
from judge.stats.power import ALPHA
from judge.table import Table


@dataclass(frozen=True, slots=True)
class Draft:
    """A number with what it means: `said`, and where a test does not tell it apart from no bias, `otherwise`.

    Without `otherwise` there is no such thing as no bias.
    """

    probe: str
    criterion: str
    what: str
    estimate: Estimate
    unit: str
    said: str
    otherwise: str = ""


def settle(drafts: Iterable[Draft]) -> tuple[Finding, ...]:
    """The findings, each p after Holm's correction over all of them; without a p, the interval tells."""
    rows = list(drafts)
    found = []
    for one, estimate in zip(rows, corrected([one.estimate for one in rows]), strict=True):
        if estimate is not None:
            told = is_told(estimate) if one.otherwise else None
            said = one.otherwise if told is False else one.said
            text = f"{said}{brackets(chance(estimate.p))}" if one.otherwise else said
            found.append(Finding(one.probe, one.criterion, one.what, estimate, one.unit, text, told))
    return tuple(found)


def is_told(estimate: Estimate) -> bool:
    """Whether p is below .05 or, where there is none, the interval leaves out 0."""
    if estimate.p is not None:
        return estimate.p < ALPHA
    return estimate.low is not None and estimate.high is not None and estimate.low * estimate.high > 0


def criteria(evidence: Evidence, table: Table) -> list[tuple[str, Column]]:
    """The columns of a table, each by the name of its criterion; those of `evidence.columns` in their order."""
    known = {column.name: name for name, column in evidence.columns.items()}
    place = {name: at for at, name in enumerate(known)}
    columns = sorted(table.columns, key=lambda column: place.get(column.name, len(place)))
    return [(known.get(column.name, column.name), column) for column in columns]
