"""The claims of outputs that their sources do not support: counted by system, and in a list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from judge.core.format import first_names, one_line, plural
from judge.core.records import Column as ScoreColumn
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
from judge.report.views.columns import share_cell
from judge.report.views.item_scores import CLAIM_HEADS
from judge.results.checked_claims import CLAIMS, support_threshold
from judge.results.claims import (
    ClaimCount,
    ClaimOfText,
    claim_counts,
    claims_of,
    unsupported_claims,
)
from judge.results.result import Result

_MOST = 50
_MOST_IN_SUMMARY = 3
_MOST_SYSTEMS = 5  # in a sentence
_MAX_NAME = 30  # characters of a name in a sentence
_MAX_TEXT = 200  # characters


def claims_sections(result: Result) -> Iterator[Section]:
    """Yield the sections of unsupported claims, one for each column that checks claims."""
    columns = _columns_of_claims(result)
    for column in columns:
        title = _title("Unsupported claims", column, columns)
        yield Section(_name(column), title, partial(_blocks, result, column))


def claims_summary(result: Result) -> Iterator[Table]:
    """Yield a table of the least supported claims of each column that found any."""
    columns = _columns_of_claims(result)
    for column in columns:
        claims = list(claims_of(result.table, column))
        unsupported = unsupported_claims(claims)
        if not unsupported:
            continue
        counts = claim_counts(result.table, claims)
        # Without a value in any row, the table has no column of evidence.
        rows = [[*_row(entry), None] for entry in unsupported[:_MOST_IN_SUMMARY]]
        sentence = _how_many(claims, column) + _by_system(counts)
        if len(columns) > 1:
            sentence = f"{column.name}: {sentence}"
        caption = _title("Least supported claims", column, columns)
        yield _table(
            rows, f"{sentence}.", name=_name(column), caption=caption, short=True
        )


def has_unsupported_claims(result: Result) -> bool:
    """Return whether an output has a claim that its source does not support."""
    columns = _columns_of_claims(result)
    return any(
        unsupported_claims(claims_of(result.table, column)) for column in columns
    )


def claim_blocks(
    claims: Sequence[ClaimOfText],
    counts: Sequence[ClaimCount],
    column: ScoreColumn,
    most: int | None = None,
) -> Iterator[Block]:
    """Yield the counts by system and at most this many unsupported claims of a column."""
    yield _counts_table(counts, column)
    unsupported = unsupported_claims(claims)
    if not unsupported:
        threshold = support_threshold(column)
        all_claims = plural(len(claims), "claim")
        yield Paragraph(
            f"None of {all_claims} is unsupported: all have a probability of {threshold:g} or more."
        )
        return
    listed = unsupported[:most]
    table_key = f"{_how_many(claims, column)}."
    n_more = len(unsupported) - len(listed)
    if n_more:
        table_key += f" {n_more:,} more: judge report RUN --claims"
    rows = [[*_row(entry), _evidence(entry)] for entry in listed]
    yield _table(rows, table_key, name=_name(column), sorts=True)


def _columns_of_claims(result: Result) -> list[ScoreColumn]:
    """Return the columns that check claims of outputs: of the metrics `claims` and `nli`."""
    return [column for column in result.table.columns if column.name in CLAIMS]


def _title(title: str, column: ScoreColumn, columns: Sequence[ScoreColumn]) -> str:
    """Return a title with the column's name if several columns have this title."""
    return title if len(columns) == 1 else f"{title}, {column.name}"


def _name(column: ScoreColumn) -> str:
    """Return the name of the table of a column's claims: `claims` or `claims-nli`."""
    return "claims" if column.name == CLAIMS[0] else f"claims-{column.name}"


def _blocks(result: Result, column: ScoreColumn) -> Iterator[Block]:
    claims = list(claims_of(result.table, column))
    # A damaged record has none.
    if claims:
        counts = claim_counts(result.table, claims)
        yield from claim_blocks(claims, counts, column, _MOST)


def _how_many(claims: Sequence[ClaimOfText], column: ScoreColumn) -> str:
    threshold = support_threshold(column)
    n_unsupported = len(unsupported_claims(claims))
    all_claims = plural(len(claims), "claim")
    verb = "has" if len(claims) == 1 else "have"
    return f"{n_unsupported:,} of {all_claims} {verb} a probability of support below {threshold:g}"


def _by_system(counts: Sequence[ClaimCount]) -> str:
    """Say for the systems with the highest shares how many claims are unsupported."""
    with_claims = [count for count in counts if count.claims]
    if len(with_claims) < 2:
        return ""
    shares = []
    for count in sorted(with_claims, key=_share, reverse=True):
        system = one_line(count.system, _MAX_NAME)
        shares.append(f"{system} {count.unsupported:,} of {count.claims:,}")
    return f": {first_names(shares, _MOST_SYSTEMS)}"


def _share(count: ClaimCount) -> float:
    return count.share.value if count.share else 0.0


def _counts_table(counts: Sequence[ClaimCount], column: ScoreColumn) -> Table:
    rows: list[list[Content]] = []
    for count in counts:
        system = one_line(count.system, _MAX_TEXT)
        rows.append([system, count.claims, count.unsupported, share_cell(count.share)])
    heads = ("system", "claims", "unsupported", Column("share", better="lower"))
    threshold = support_threshold(column)
    return table(
        heads,
        rows,
        f"Unsupported: probability of support below {threshold:g}. Share: unsupported claims of "
        "all claims.",
        caption="Claims of outputs by system.",
        name=f"{_name(column)}-by-system",
        sorts=True,
    )


def _table(
    rows: Sequence[Sequence[Content]],
    table_key: str,
    *,
    name: str,
    caption: str = "",
    sorts: bool = False,
    short: bool = False,
) -> Table:
    names = ("system", "item", *CLAIM_HEADS)
    heads = [Column(heading, numeric=False, optional=True) for heading in names]
    return table(
        heads, rows, table_key, caption=caption, name=name, sorts=sorts, short=short
    )


def _row(entry: ClaimOfText) -> list[Content]:
    """Return the system, the item, the probability and the claim."""
    sample, _, claim = entry
    link = items.link(item=sample.item, system=sample.system)
    item = Cell(sample.item, link=link)
    probability = Cell(f"{claim.probability:.2f}", value=claim.probability)
    return [sample.system, item, probability, one_line(claim.text, _MAX_TEXT)]


def _evidence(entry: ClaimOfText) -> str | None:
    return one_line(entry.claim.evidence, _MAX_TEXT) or None
