"""How often a ranking's judge and people prefer the same text: a section of a ranking, and the
report of validate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.core.format import plural
from judge.report.document import Block, Paragraph, Table, table
from judge.report.format import column_title
from judge.report.views.columns import estimate_cell, share_cell
from judge.stats.pairwise_agreement import PreferenceAgreement, PreferenceRow

_KEY = "Same: share of pairs on which both prefer the same text; a tie against a preference counts half."
_DERIVED = "People rated single texts: they prefer the text with the higher mean rating."


def sentences(compared: Sequence[PreferenceAgreement]) -> Iterator[str]:
    """Say how often each judge prefers what people prefer, and how often people agree with each
    other."""
    for each in compared:
        about = f" in {column_title(each.criterion)}" if _several(compared) else ""
        rows = {row.kind: row for row in each.rows}
        if "people" in rows:
            share = _share_text(rows["people"])
            pairs = plural(rows["people"].same.n, "pair")
            yield f"{each.judge} agrees with people{about} on {share} of {pairs}."
        else:
            pairs = plural(each.no_majority, "pair")
            yield f"People have no majority{about} on any of {pairs} that {each.judge} compared."
        if "raters" in rows and each.judge == compared[0].judge:
            share = _share_text(rows["raters"])
            comparisons = plural(rows["raters"].same.n, "comparison")
            yield f"Two raters agree{about} on {share} of {comparisons}."


def _share_text(row: PreferenceRow) -> str:
    same = share_cell(row.same)
    return f"{same.text} {same.note}".rstrip()


def _several(compared: Sequence[PreferenceAgreement]) -> bool:
    return len({each.criterion for each in compared}) > 1


def blocks(compared: Sequence[PreferenceAgreement]) -> list[Block]:
    """Return the table with its notes and methods."""
    notes = [_DERIVED] if any(each.derived for each in compared) else []
    notes += [
        f"{each.criterion}: {plural(each.excluded, 'pair')} excluded, because the prompt used one of its texts."
        for each in compared
        if each.excluded
    ]
    notes += [
        f"{each.criterion}: {plural(each.no_majority, 'pair')} without a majority of the raters, who count one by one."
        for each in compared
        if each.no_majority
    ]
    methods = dict.fromkeys(
        e.method for each in compared for row in each.rows for e in (row.same, row.kappa) if e
    )
    return [
        preference_table(compared, short=False),
        Paragraph(" ".join([*notes, f"Method: {'; '.join(methods)}."])),
    ]


def preference_table(compared: Sequence[PreferenceAgreement], *, short: bool) -> Table:
    rows = []
    for each in compared:
        for row in each.rows:
            title = f"{column_title(each.criterion)}: " if _several(compared) else ""
            sides = f"{each.judge} and {row.name or 'people'}"
            name = f"{title}{'two raters' if row.kind == 'raters' else sides}"
            rows.append((name, share_cell(row.same), estimate_cell(row.kappa, 2), row.same.n))
    return table(("", "same", "kappa", "pairs"), rows, _KEY, name="preferences", short=short)
