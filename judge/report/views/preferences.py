"""How often a ranking's judge and people prefer the same text.

This is a section of a ranking's report, and the report of validate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.core.format import plural
from judge.report.document import Block, Paragraph, Table, table
from judge.report.format import column_title
from judge.report.views.columns import estimate_cell, share_cell
from judge.stats.pairwise_agreement import PreferenceAgreement, PreferenceRow

_KEY = (
    "Same: share of pairs on which both prefer the same text; a tie against a preference counts "
    "half."
)
_DERIVED = (
    "People rated single texts: they prefer the text with the higher mean rating."
)


def sentences(compared: Sequence[PreferenceAgreement]) -> Iterator[str]:
    """Say how often each judge agrees with people, and how often two raters agree."""
    for agreement in compared:
        about = ""
        if _has_several_criteria(compared):
            about = f" in {column_title(agreement.criterion)}"
        rows = {row.kind: row for row in agreement.rows}
        if "people" in rows:
            share = _share_text(rows["people"])
            pairs = plural(rows["people"].same.n, "pair")
            yield f"{agreement.judge} agrees with people{about} on {share} of {pairs}."
        else:
            pairs = plural(agreement.no_majority, "pair")
            yield (
                f"People have no majority{about} on any of {pairs} that {agreement.judge} compared."
            )
        # All judges have the same raters, so only the first one's sentences include them.
        if "raters" in rows and agreement.judge == compared[0].judge:
            share = _share_text(rows["raters"])
            comparisons = plural(rows["raters"].same.n, "comparison")
            yield f"Two raters agree{about} on {share} of {comparisons}."


def _share_text(row: PreferenceRow) -> str:
    same = share_cell(row.same)
    return f"{same.text} {same.note}".rstrip()


def _has_several_criteria(compared: Sequence[PreferenceAgreement]) -> bool:
    return len({agreement.criterion for agreement in compared}) > 1


def blocks(compared: Sequence[PreferenceAgreement]) -> list[Block]:
    """Return the table with its notes and methods."""
    notes: list[str] = []
    if any(agreement.derived for agreement in compared):
        notes.append(_DERIVED)
    notes += _notes_on_excluded(compared)
    notes += _notes_on_majorities(compared)
    methods = "; ".join(_methods(compared))
    notes.append(f"Method: {methods}.")
    return [preference_table(compared, short=False), Paragraph(" ".join(notes))]


def _notes_on_excluded(compared: Sequence[PreferenceAgreement]) -> Iterator[str]:
    for agreement in compared:
        if agreement.excluded:
            pairs = plural(agreement.excluded, "pair")
            yield (
                f"{agreement.criterion}: {pairs} excluded, because the prompt used one of its "
                "texts."
            )


def _notes_on_majorities(compared: Sequence[PreferenceAgreement]) -> Iterator[str]:
    for agreement in compared:
        if agreement.no_majority:
            pairs = plural(agreement.no_majority, "pair")
            yield (
                f"{agreement.criterion}: {pairs} without a majority of the raters, who count one "
                "by one."
            )


def _methods(compared: Sequence[PreferenceAgreement]) -> list[str]:
    """Return the methods of all estimates, each once."""
    methods: dict[str, None] = {}
    for agreement in compared:
        for row in agreement.rows:
            for estimate in (row.same, row.kappa):
                if estimate:
                    methods[estimate.method] = None
    return list(methods)


def preference_table(compared: Sequence[PreferenceAgreement], *, short: bool) -> Table:
    """Return a row per judge and person, and one for every two raters together."""
    rows = []
    for agreement in compared:
        criterion = ""
        if _has_several_criteria(compared):
            criterion = f"{column_title(agreement.criterion)}: "
        for row in agreement.rows:
            person = row.name or "people"
            sides = f"{agreement.judge} and {person}"
            if row.kind == "raters":
                sides = "two raters"
            same = share_cell(row.same)
            kappa = estimate_cell(row.kappa, 2)
            rows.append((f"{criterion}{sides}", same, kappa, row.same.n))
    return table(
        ("", "same", "kappa", "pairs"), rows, _KEY, name="preferences", short=short
    )
