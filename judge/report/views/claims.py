"""The claims of all outputs that their sources do not support, the least probable first."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.format import one_line
from judge.report.document import Block, Cell, Column, Paragraph, Section, Table, table
from judge.report.views import items
from judge.report.views.item_scores import CLAIM_HEADS, CLAIMS, checked_claims, support_threshold
from judge.results.result import Result

_MOST, _MOST_IN_SUMMARY = 50, 3
_MAX_TEXT = 200  # characters


def claims_section(result: Result) -> Iterator[Section]:
    """Yield the section of unsupported claims; nothing for a run without claims."""
    if any(column.name in CLAIMS for column in result.table.columns):
        yield Section("claims", "Unsupported claims", lambda: _unsupported_claims(result))


def claims_summary(result: Result) -> Iterator[Block]:
    """Yield a table of the least supported claims, if there are any."""
    yield from (
        block for block in _unsupported_claims(result, short=True) if isinstance(block, Table)
    )


def _unsupported_claims(result: Result, *, short: bool = False) -> Iterator[Block]:
    """Yield the table, or a sentence if all claims are supported; nothing if there are no claims."""
    samples = {sample.key: sample for sample in result.table.samples}
    column = next((column for column in result.table.columns if column.name in CLAIMS), None)
    claims = [
        (score, claim)
        for score in (result.table.column_scores(column.name) if column else ())
        if column and score.key in samples
        for claim in checked_claims(samples[score.key], column, score)
    ]
    if not (column and claims):
        return
    threshold = support_threshold(column)
    total = f"{len(claims):,} claims"
    unsupported = sorted(
        (pair for pair in claims if not pair[1].supported), key=lambda pair: pair[1].probability
    )
    if not unsupported:
        yield Paragraph(
            f"None of {total} is unsupported: all have a probability of {threshold:g} or more."
        )
        return
    most = _MOST_IN_SUMMARY if short else _MOST
    key = f"{len(unsupported):,} of {total} have a probability of support below {threshold:g}."
    if len(unsupported) > _MOST and not short:
        key += f" {len(unsupported) - _MOST:,} more: judge report RUN --item ID"
    yield table(
        (Column(head, numeric=False, optional=True) for head in ("system", "item", *CLAIM_HEADS)),
        [
            (
                score.system,
                Cell(score.item, link=items.link(item=score.item, system=score.system)),
                Cell(f"{claim.probability:.2f}", value=claim.probability),
                one_line(claim.text, _MAX_TEXT),
                None if short else one_line(claim.evidence, _MAX_TEXT) or None,
            )
            for score, claim in unsupported[:most]
        ],
        key,
        caption="Least supported claims" if short else "",
        name="claims",
        sorts=not short,
        short=short,
    )
