"""All claims of a run: how many are unsupported, and which."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from judge.core.format import plural
from judge.core.records import Column
from judge.report.document import Block, Document, Section
from judge.report.views.claims import claim_blocks
from judge.report.views.provenance import build_provenance
from judge.results.claim_list import ClaimList
from judge.results.claims import claim_rows


def view(listed: ClaimList) -> Document:
    """Lay out the unsupported claims of outputs; JSON and CSV have all claims."""
    keys, rows = claim_rows(listed.result.table, listed.claims)
    n_claims = sum(count.claims for count in listed.counts)
    title_of_run = build_provenance(listed.result).title
    return Document(
        title="Claims",
        scope=plural(n_claims, "claim"),
        about=(title_of_run,),
        sections=tuple(_sections(listed)),
        data={"counts": listed.counts, "claims": rows},
        records=tuple(rows),
        header=keys,
    )


def _sections(listed: ClaimList) -> Iterator[Section]:
    columns = listed.result.table.columns
    counted = {count.column for count in listed.counts}
    checked_columns = [column for column in columns if column.name in counted]
    for column in checked_columns:
        title = "Unsupported claims"
        if len(checked_columns) > 1:
            title = f"{title}, {column.name}"
        anchor = f"claims-{column.name}"
        blocks = partial(_blocks, listed, column)
        yield Section(anchor, title, blocks)


def _blocks(listed: ClaimList, column: Column) -> Iterator[Block]:
    claims = [entry for entry in listed.claims if entry.column.name == column.name]
    counts = [count for count in listed.counts if count.column == column.name]
    yield from claim_blocks(claims, counts, column)
