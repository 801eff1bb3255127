"""Findings before it is known which of them the tests tell apart, and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from judge.audit.card import ORIGINAL, Evidence, Finding
from judge.audit.sensitivity import corrected, step
from judge.core.records import Column, Estimate
from judge.report.views.audit_words import brackets, chance, of
from judge.stats.power import ALPHA
from judge.stats.resampling import Floats
from judge.stats.shares import share
from judge.table import Table

_NEAR = 1e-9


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
    hits: Estimate | None = None
    of: str = "texts"
    harmful: bool = True


def settle(drafts: Iterable[Draft]) -> tuple[Finding, ...]:
    """The findings, each p after Holm's correction over all of them."""
    rows = list(drafts)
    found = []
    for one, estimate in zip(rows, corrected([one.estimate for one in rows]), strict=True):
        if estimate is not None:
            told = is_told(estimate) if one.otherwise else None
            made = Finding(
                one.probe, one.criterion, one.what, estimate, one.unit, one.said, told, one.hits, one.of, one.harmful
            )
            found.append(replace(made, said=_in_words(made, one.otherwise)))
    return tuple(found)


def _in_words(found: Finding, otherwise: str) -> str:
    if found.open and found.hits:
        return f"{found.said} (in {of(found.hits, found.of)}; too few to test)"
    if found.told is None:
        return found.said
    return f"{found.said if found.told else otherwise}{brackets(chance(found.estimate.p))}"


def least(evidence: Evidence, column: Column) -> float:
    """The move that counts in a criterion's column, see `step`."""
    table = evidence.changed
    known = ORIGINAL in table.systems and any(one.name == column.name for one in table.columns)
    scores = table.matrix(column.name)[table.systems.index(ORIGINAL)] if known else np.array([])
    return step(column, scores)


def leans(values: Floats, least: float) -> Estimate | None:
    """Of differences (NaN where there is none) the share that lie on their mean's side by `least` or more."""
    known = values[~np.isnan(values)]
    toward = np.sign(known.mean()) if len(known) else 0.0
    return share(int(((toward * known >= least - _NEAR) & (toward * known > _NEAR)).sum()), len(known))


def varying(evidence: Evidence) -> str:
    """After a share of verdicts or labels that change: what else changes them."""
    return f" (replies vary, too{': see repeats' if evidence.repeats else ''})"


def is_told(estimate: Estimate) -> bool:
    """Whether p, corrected, is below .05."""
    return estimate.p is not None and estimate.p < ALPHA


def criteria(evidence: Evidence, table: Table) -> list[tuple[str, Column]]:
    """The columns of a table, each by the name of its criterion; those of `evidence.columns` in their order."""
    known = {column.name: name for name, column in evidence.columns.items()}
    place = {name: at for at, name in enumerate(known)}
    columns = sorted(table.columns, key=lambda column: place.get(column.name, len(place)))
    return [(known.get(column.name, column.name), column) for column in columns]
