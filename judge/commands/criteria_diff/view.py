"""The report of `judge criteria diff`: what two wordings of a criterion change in prompts, scores
and agreement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from typing import Any

from judge.commands.compare import view as comparison
from judge.commands.criteria_diff.record import (
    PLACES,
    Agreement,
    CriterionDiff,
    Judged,
    Prompts,
)
from judge.core.format import decimals, dollars, format_p, number, one_line, percent, plural, signed
from judge.core.records import Estimate
from judge.report.document import Block, Bullets, Cell, Diff, Document, Heading, Section, table
from judge.report.views.columns import change_text, estimate_cell, p_cell
from judge.stats.correlation import OVER, UNITS
from judge.stats.power import items_needed

SCHEMA = "judge.criteria.diff/1"
_HEADS = ("", "before", "after", "change", "p")
_KEY = "* significant"


def view(diff: CriterionDiff) -> Document:
    """Make the report of a diff."""
    prompts = diff.prompts
    first, *others = _finding(diff)
    finding = [first.rstrip("."), *others]
    title = " → ".join(diff.names)
    rows = list(_rows(diff))
    summary: list[Block] = []
    if rows:
        summary.append(table(_HEADS, rows, _KEY, name="diff", caption="Before and after."))
    changes = _change_lines(diff)
    if changes:
        summary.append(Bullets(tuple(changes)))
    if diff.judged is None:
        # Without scores, the lines that differ are the summary.
        if prompts:
            summary += _prompt_blocks(diff)
        elif diff.diff:
            summary.append(Diff(diff.diff))
    return Document(
        title=title,
        finding=tuple(finding),
        scope=f"{title} · {plural(prompts.texts, 'text')}" if prompts else title,
        notices=diff.notes,
        summary=tuple(summary),
        sections=tuple(_sections(diff)),
        data=_data(diff, finding),
        records=tuple(_record(row) for row in rows),
    )


def _change_lines(diff: CriterionDiff) -> list[str]:
    """Return a line for each setting that differs, after the reason why the cost is unknown."""
    lines = []
    prompts = diff.prompts
    if prompts and prompts.cost is None and prompts.price_source:
        lines.append(f"The cost is unknown: {prompts.price_source}.")
    for change in diff.changes:
        before = one_line(change.before, 200)
        after = one_line(change.after, 200)
        lines.append(f"{change.what}: {before} → {after}")
    return lines


def _prompt_blocks(diff: CriterionDiff) -> list[Block]:
    """Return the most common differences of the prompts."""
    blocks: list[Block] = []
    for position, difference in enumerate(diff.prompts.differences if diff.prompts else ()):
        opening = "Also, on" if position else "On"
        blocks.append(Heading(f"{opening} {plural(difference.texts, 'text')}"))
        blocks.append(Diff(difference.lines))
    return blocks


def _sections(diff: CriterionDiff) -> Iterator[Section]:
    judged = diff.judged
    if judged is not None and judged.agreement:
        caption = f"Spearman's correlation with people's ratings of {judged.rating}."
        rows = []
        for agreement in judged.agreement:
            estimate = agreement.difference or agreement.after
            row = _agreement_row(agreement, OVER[agreement.level])
            rows.append((*row, Cell(f"{estimate.n:,}")))
        by_level = table((*_HEADS, "n"), rows, _KEY, caption=caption, name="agreement")
        yield Section("agreement", "Agreement with people", lambda: [by_level])
    if judged is not None and judged.comparison:
        scores = judged.comparison
        yield Section("scores", "Scores", lambda: comparison.mean_blocks(scores))
    prompt_blocks = _prompt_blocks(diff)
    if judged is not None and prompt_blocks:
        yield Section("prompts", "Prompts", lambda: prompt_blocks)
    if diff.diff and diff.prompts:
        yield Section("files", "Files", lambda: [Diff(diff.diff)])


def _record(row: tuple[Cell, ...]) -> dict[str, Any]:
    """Return a row of the summary for CSV: numbers if a cell has one, else its text."""
    name, before, after, change, p = row
    record: dict[str, Any] = {"quantity": name.text}
    for side, cell in {"before": before, "after": after, "change": change}.items():
        record[side] = cell.text if cell.value is None else cell.value
    return record | {"p": p.text}


def _finding(diff: CriterionDiff) -> Iterator[str]:
    """Say what changed, the most important first: agreement with people, scores, prompts, text."""
    prompts = diff.prompts
    if diff.judged is not None:
        yield from _judged_sentences(diff.judged)
    elif prompts is not None and not prompts.differ:
        yield f"The prompts are the same on {plural(prompts.texts, 'text')}."
    elif prompts is not None:
        yield f"The prompts differ on {prompts.differ:,} of {plural(prompts.texts, 'text')}."
    elif diff.diff or diff.changes:
        yield "The two criteria differ."
    else:
        yield f"The two criteria have the same text ({diff.criteria[0].digest[:6]})."


def _judged_sentences(judged: Judged) -> Iterator[str]:
    leading = judged.leading
    if leading is not None and leading.difference is not None:
        difference = leading.difference
        verbs = (
            "The new wording agrees better with people",
            "The new wording agrees worse with people",
        )
        verdict = _verdict(verbs, "agreement with people", difference, leading.is_significant)
        size = change_text(difference, PLACES)
        n_units = plural(difference.n, UNITS[leading.level])
        yield f"{verdict}: Spearman changes by {size}, {n_units}."
    means = judged.comparison.runs.means if judged.comparison else ()
    # The first mean is that of all systems, or of the only one; of a panel the mean's.
    for row in means[:1]:
        estimate = replace(row.estimate, p=row.adjusted)
        verdict = _verdict(("Scores rose", "Scores fell"), "scores", estimate, row.significant)
        size = change_text(estimate, decimals([row.before, row.after]))
        yield f"{verdict}: {size}, {plural(estimate.n, 'item')}."
    if not means:
        yield "No text has a score by both."
    if judged.no_agreement:
        yield f"{judged.no_agreement}."


def _verdict(verbs: tuple[str, str], subject: str, estimate: Estimate, significant: bool) -> str:
    """Say whether a change is significant, its p, and how many items a test needs if it is not."""
    details = [] if estimate.p is None else [format_p(estimate.p)]
    if significant:
        verdict = verbs[0] if estimate.value > 0 else verbs[1]
    else:
        verdict = f"No significant change in {subject}"
        items = items_needed(estimate)
        if items is not None and items > estimate.n:
            two_digits = round(items, 2 - len(str(items)))
            details.append(f"detecting it needs about {two_digits:,} items")
    return f"{verdict} ({', '.join(details)})" if details else verdict


def _rows(diff: CriterionDiff) -> Iterator[tuple[Cell, ...]]:
    if diff.judged is not None:
        yield from _judged_rows(diff.judged)
    if diff.prompts is not None:
        yield from _prompt_rows(diff.prompts)


def _judged_rows(judged: Judged) -> Iterator[tuple[Cell, ...]]:
    """Yield the agreement, the mean score, the failures and the flips, in the order of _HEADS."""
    empty = Cell("")
    if judged.leading is not None:
        yield _agreement_row(judged.leading, "agreement with people")
    means = judged.comparison.runs.means if judged.comparison else ()
    for row in means[:1]:
        places = decimals([row.before, row.after])
        old_mean = Cell(number(row.before, places), value=row.before)
        new_mean = Cell(number(row.after, places), value=row.after)
        mark = "*" if row.significant else ""
        change = estimate_cell(row.estimate, places, signed, mark=mark)
        yield Cell("mean score"), old_mean, new_mean, change, Cell(p_cell(row.adjusted))
    failed = [
        Cell(f"{n_failed:,} of {judgments:,}")
        for n_failed, judgments in zip(judged.failed, judged.judgments, strict=True)
    ]
    yield Cell("failed judgments"), *failed, empty, empty
    for flips in judged.flips:
        if flips.total:
            share = percent(flips.flipped / flips.total)
            count = Cell(f"{flips.flipped:,} of {flips.total:,}", note=share)
            yield Cell(f"flips: {flips.name}"), empty, empty, count, empty


def _prompt_rows(prompts: Prompts) -> Iterator[tuple[Cell, ...]]:
    """Yield the tokens and, if it is known, the cost of the prompts."""
    empty = Cell("")
    before, after = prompts.tokens
    tokens = [Cell(f"{mean:,.0f}", value=mean) for mean in prompts.tokens]
    growth = signed(100 * (after / before - 1), 1)
    yield Cell("tokens per prompt"), *tokens, Cell(f"{growth}%"), empty
    if prompts.cost is not None:
        costs = [Cell(dollars(cost), value=cost) for cost in prompts.cost]
        name = Cell("cost of 1,000 judgments", note=prompts.price_source)
        yield name, *costs, empty, empty


def _agreement_row(agreement: Agreement, name: str) -> tuple[Cell, ...]:
    before = agreement.before.value
    after = agreement.after.value
    difference = agreement.difference
    mark = "*" if agreement.is_significant else ""
    return (
        Cell(name),
        Cell(number(before, PLACES), value=before),
        Cell(number(after, PLACES), value=after),
        estimate_cell(difference, PLACES, signed, mark=mark),
        Cell(p_cell(difference.p if difference else None)),
    )


def _data(diff: CriterionDiff, finding: list[str]) -> dict[str, Any]:
    data: dict[str, Any] = {"schema": SCHEMA, "finding": finding, "notes": diff.notes}
    for side, name, criterion in zip(("before", "after"), diff.names, diff.criteria, strict=True):
        data[side] = {"name": name, "path": criterion.path, "digest": criterion.digest}
    data |= {"changes": diff.changes, "diff": diff.diff, "prompts": diff.prompts, "judged": None}
    judged = diff.judged
    if judged is not None:
        scores = judged.comparison
        data["judged"] = {field.name: getattr(judged, field.name) for field in fields(judged)}
        data["judged"]["comparison"] = comparison.data(scores) if scores else None
        data["judged"]["agreement"] = [
            {**asdict(agreement), "significant": agreement.is_significant}
            for agreement in judged.agreement
        ]
    return data
