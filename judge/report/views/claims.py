"""The claims of all outputs that their sources do not support, the least probable first."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.format import one_line
from judge.core.records import Column as ScoreColumn
from judge.core.records import Score
from judge.report.document import (
    Block,
    Cell,
    Column,
    Content,
    Paragraph,
    Section,
    Table,
    table,
)
from judge.report.views import items
from judge.report.views.item_scores import CLAIM_HEADS
from judge.results.checked_claims import CLAIMS, CheckedClaim, checked_claims, support_threshold
from judge.results.result import Result

_MOST = 50
_MOST_IN_SUMMARY = 3
_MAX_TEXT = 200  # characters


def claims_section(result: Result) -> Iterator[Section]:
    """Yield the section of unsupported claims; nothing for a run without claims."""
    if any(column.name in CLAIMS for column in result.table.columns):
        yield Section("claims", "Unsupported claims", lambda: _unsupported_claims(result))


def claims_summary(result: Result) -> Iterator[Block]:
    """Yield a table of the least supported claims, if there are any."""
    blocks = _unsupported_claims(result, short=True)
    yield from (block for block in blocks if isinstance(block, Table))


def _unsupported_claims(result: Result, *, short: bool = False) -> Iterator[Block]:
    """Yield the table, or a sentence if all claims are supported; nothing without claims."""
    columns = [column for column in result.table.columns if column.name in CLAIMS]
    if not columns:
        return
    column = columns[0]
    claims = _claims_of_column(result, column)
    if not claims:
        return
    threshold = support_threshold(column)
    total = f"{len(claims):,} claims"
    unsupported = [pair for pair in claims if not pair[1].supported]
    unsupported.sort(key=lambda pair: pair[1].probability)
    if not unsupported:
        probable = f"all have a probability of {threshold:g} or more"
        yield Paragraph(f"None of {total} is unsupported: {probable}.")
        return
    share = f"{len(unsupported):,} of {total}"
    table_key = f"{share} have a probability of support below {threshold:g}."
    if len(unsupported) > _MOST and not short:
        table_key += f" {len(unsupported) - _MOST:,} more: judge report RUN --item ID"
    n_rows = _MOST_IN_SUMMARY if short else _MOST
    listed = unsupported[:n_rows]
    rows = [_row(score, claim, short=short) for score, claim in listed]
    names = ("system", "item", *CLAIM_HEADS)
    heads = [Column(heading, numeric=False, optional=True) for heading in names]
    yield table(
        heads,
        rows,
        table_key,
        caption="Least supported claims" if short else "",
        name="claims",
        sorts=not short,
        short=short,
    )


def _claims_of_column(result: Result, column: ScoreColumn) -> list[tuple[Score, CheckedClaim]]:
    """Return the claims of all texts, each with the score that it belongs to."""
    samples = {sample.key: sample for sample in result.table.samples}
    claims = []
    for score in result.table.column_scores(column.name):
        if score.key in samples:
            checked = checked_claims(samples[score.key], column, score)
            claims += [(score, claim) for claim in checked]
    return claims


def _row(score: Score, claim: CheckedClaim, *, short: bool) -> list[Content]:
    """Return the system, the item, and the claim with its probability and its evidence."""
    # Without a value in any row, a `short` table has no column of evidence.
    evidence = "" if short else one_line(claim.evidence, _MAX_TEXT)
    link = items.link(item=score.item, system=score.system)
    item = Cell(score.item, link=link)
    probability = Cell(f"{claim.probability:.2f}", value=claim.probability)
    text = one_line(claim.text, _MAX_TEXT)
    return [score.system, item, probability, text, evidence or None]
