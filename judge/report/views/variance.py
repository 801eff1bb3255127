"""The section on where the variance of means comes from, for runs with several generations."""

from __future__ import annotations

from collections.abc import Iterator

from judge.report.document import Block, Cell, Content, table
from judge.report.format import column_title
from judge.results.result import Result
from judge.stats.agreement import variance_shares

_KEY = (
    "Shares of the variance of a system's mean, and the variance that twice as many would leave. Twice as many items "
    "always halve it."
)


def variance_blocks(result: Result) -> Iterator[Block]:
    """Yield a table of variance components; nothing without several generations of a system for an item."""
    rows: list[tuple[Content, ...]] = []
    for shares in variance_shares(result.table):
        after = shares.after(generations=2), shares.after(draws=2)
        cells = [
            Cell(f"{share:.0%}", value=share) for share in (shares.items, shares.generations, shares.draws, *after)
        ]
        largest = max((shares.items, "items"), (shares.generations, "generations"), (shares.draws, "draws"))
        rows.append((column_title(shares.column), *cells, largest[1]))
    if rows:
        heads = ["criterion", "items", "generations", "draws", "2 × generations", "2 × draws", "best to add"]
        yield table(heads, rows, caption="Where the variance comes from", key=_KEY, name="variance")
