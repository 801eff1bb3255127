"""The section on where the variance of means comes from, for runs with several generations."""

from __future__ import annotations

from collections.abc import Iterator

from judge.report.document import Block, Cell, table
from judge.report.format import column_title
from judge.results.result import Result
from judge.stats.agreement import VarianceShares, variance_shares

_KEY = (
    "Shares of the variance of a system's mean, and the variance that twice as many would leave. Twice as many items "
    "always halve it."
)


def variance_blocks(result: Result) -> Iterator[Block]:
    """Yield a table of variance components; nothing without several generations of a system for an item."""
    if shares := variance_shares(result.table):
        heads = ["criterion", "items", "generations", "draws", "2 × generations", "2 × draws", "best to add"]
        yield table(heads, map(_row, shares), caption="Where the variance comes from", key=_KEY, name="variance")


def _row(shares: VarianceShares) -> Iterator[Cell]:
    yield Cell(column_title(shares.column))
    left = (shares.after(generations=2), shares.after(draws=2))
    for share in (shares.items, shares.generations, shares.draws, *left):
        yield Cell(f"{share:.0%}", value=share)
    largest = max((shares.items, "items"), (shares.generations, "generations"), (shares.draws, "draws"))
    yield Cell(largest[1])
