"""The report of `judge criteria diff`: what two wordings of a criterion change in prompts, scores and agreement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from typing import Any

from judge.core.format import decimals, dollars, escape_controls, format_p, number, one_line, percent, plural, signed
from judge.core.records import Estimate
from judge.report.document import Block, Bullets, Cell, Column, Diff, Document, Heading, Section, Table
from judge.report.views import comparison
from judge.report.views.columns import change_text, estimate_cell, p_cell
from judge.results.comparison import PLACES, Agreement, CriterionDiff, Judged
from judge.stats.correlation import OVER, UNITS
from judge.stats.power import items_needed

SCHEMA = "judge.criteria.diff/1"
_MAX_ITEMS = 100_000  # a larger number of items is given as "more than"
_MAX_CHANGES = 4  # of the header, in the summary
_HEADS = (Column("", numeric=False), Column("before"), Column("after"), Column("change"), Column("p"))


def view(diff: CriterionDiff) -> Document:
    """Make the report of a diff."""
    judged, scores = diff.judged, diff.judged.comparison if diff.judged else None
    names = " → ".join(one_line(name, 40) for name in diff.names)
    changes = [
        f"{change.what}: {one_line(change.before, 200)} → {one_line(change.after, 200)}" for change in diff.changes
    ]
    texts = f" · {plural(diff.prompts.texts, 'text')}" if diff.prompts else ""
    files = Section("files", "Files", lambda: (_lines(diff.diff),))
    prompt_blocks = [
        block
        for place, each in enumerate(diff.prompts.differences if diff.prompts else ())
        for block in (Heading(f"{'Also, on' if place else 'On'} {plural(each.texts, 'text')}"), _lines(each.lines))
    ]
    prompts = Section("prompts", "Prompts", lambda: prompt_blocks)
    sections = {
        Section("agreement", "Agreement with people", lambda: _agreement_blocks(judged)): judged and judged.agreement,
        Section("scores", "Scores", lambda: comparison.mean_blocks(scores) if scores else ()): scores,
        # Without a judge, the lines that differ are the summary.
        prompts: diff.prompts and diff.prompts.differences and judged,
        files: diff.diff and diff.prompts,
        Section("header", "Other changes", lambda: _bullets(changes[_MAX_CHANGES:])): changes[_MAX_CHANGES:],
    }
    summary: list[Block] = []
    rows = tuple(_overview_rows(diff))
    if rows:
        key = "* significant" * any(cell.mark for row in rows for cell in row)
        summary.append(Table(_HEADS, rows, key=key, name="diff", caption="Before and after."))
    if diff.prompts and diff.prompts.cost is None and diff.prompts.price_source:
        changes.insert(0, f"The cost is unknown: {one_line(diff.prompts.price_source)}.")
    summary += _bullets(changes[:_MAX_CHANGES])
    if judged is None:
        summary += prompts.blocks if diff.prompts else files.blocks if diff.diff else ()
    return Document(
        title=" → ".join(map(one_line, diff.names)),
        finding=tuple(finding(diff)),
        scope=f"{names}{texts}",
        notices=tuple(map(one_line, diff.notes)),
        summary=tuple(summary),
        sections=tuple(section for section, needed in sections.items() if needed),
        data=_data(diff),
        records=tuple(
            {"quantity": name.text}
            | {side: cell.text if cell.value is None else cell.value for side, cell in sides.items()}
            | {"p": p.text}
            for name, before, after, change, p in rows
            for sides in [{"before": before, "after": after, "change": change}]
        ),
    )


# The finding


def finding(diff: CriterionDiff) -> Iterator[str]:
    """Say what changed, the most important first: agreement with people, scores, prompts, text."""
    sentences = list(_sentences(diff))
    yield sentences[0].rstrip(".")
    yield from sentences[1:]


def _sentences(diff: CriterionDiff) -> Iterator[str]:
    judged, prompts = diff.judged, diff.prompts
    if judged is not None:
        yield from _agreement_sentence(judged)
        yield from _score_sentence(judged)
    elif prompts is not None and not prompts.differ:
        yield f"The prompts are the same on {'all ' if prompts.texts > 1 else ''}{plural(prompts.texts, 'text')}."
    elif prompts is not None:
        share = "all" if prompts.differ == prompts.texts else f"{prompts.differ:,} of"
        yield f"The prompts differ on {share} {plural(prompts.texts, 'text')} of {plural(prompts.items, 'item')}."
    elif diff.diff or diff.changes:
        yield "The two criteria differ."
    else:
        yield f"The two criteria have the same text ({diff.criteria[0].digest[:6]})."
    if judged is not None and judged.no_agreement:
        yield f"{one_line(judged.no_agreement)}."


def _agreement_sentence(judged: Judged) -> Iterator[str]:
    agreement = judged.leading
    if agreement is None or agreement.difference is None:
        return
    e, unit = agreement.difference, UNITS[agreement.level]
    size = f"Spearman {change_text(e, PLACES)}"
    if agreement.is_significant:
        tested = f" ({format_p(e.p)})" if e.p is not None else ""
        better = "better" if e.value > 0 else "worse"
        yield f"The new wording agrees {better} with people{tested}: {size}, {plural(e.n, unit)}."
    else:
        tested = _p_and_items_needed(e, e.p, unit)
        yield f"No significant change in agreement with people{tested}: {size}, {plural(e.n, unit)}."


def _score_sentence(judged: Judged) -> Iterator[str]:
    rows = judged.comparison.runs.means if judged.comparison else ()
    if not rows:
        yield "No text has a score by both."
        return
    row = rows[0]  # of all systems, or of the only one; of a panel the mean's
    e, places = row.estimate, decimals([row.before, row.after])
    size = change_text(e, places)
    if not row.up and not row.down:
        yield f"No score differs on {plural(row.same, 'text')}."
    elif row.adjusted is None:
        yield f"Scores changed by {size}; too few items for a test."
    elif row.significant:
        yield f"Scores {'rose' if e.value > 0 else 'fell'} ({format_p(row.adjusted)}): {size}, {plural(e.n, 'item')}."
    else:
        tested = _p_and_items_needed(e, row.adjusted, "item")
        yield f"No significant change in scores{tested}: {size}, {plural(e.n, 'item')}."


def _p_and_items_needed(estimate: Estimate, p: float | None, unit: str) -> str:
    """Return ` (p = 0.080, detecting it needs about 400 items)`, without the parts that are unknown.

    No number of items is given if the estimate already has that many.
    """
    parts, items = [] if p is None else [format_p(p)], items_needed(estimate)
    if items is not None and items > estimate.n:
        rounded = f"about {round(items, -max(0, len(str(items)) - 2)):,}"
        parts.append(f"detecting it needs {rounded if items <= _MAX_ITEMS else f'more than {_MAX_ITEMS:,}'} {unit}s")
    return f" ({', '.join(parts)})" if parts else ""


# The summary


def _overview_rows(diff: CriterionDiff) -> Iterator[tuple[Cell, ...]]:
    judged, prompts = diff.judged, diff.prompts
    if judged is not None:
        if judged.leading is not None:
            yield _agreement_row(judged.leading, "agreement with people")
        for row in judged.comparison.runs.means[:1] if judged.comparison else ():
            places = decimals([row.before, row.after])
            sides = [Cell(number(value, places), value=value) for value in (row.before, row.after)]
            changed = estimate_cell(row.estimate, places, signed, mark="*" * row.significant)
            yield Cell("mean score"), *sides, changed, Cell(p_cell(row.adjusted))
        if any(judged.failed):
            sides = [Cell(f"{failed:,} of {n:,}") for failed, n in zip(judged.failed, judged.judgments, strict=True)]
            yield Cell("failed judgments"), *sides, Cell(""), Cell("")
        for flips in judged.flips:
            if not flips.total:
                continue
            count = Cell(f"{flips.flipped:,} of {flips.total:,}", note=percent(flips.flipped / flips.total))
            yield Cell(f"flips: {flips.name}"), Cell(""), Cell(""), count, Cell("")
    if prompts is not None:
        before, after = prompts.tokens
        change = 100 * (after / before - 1)
        text = f"{signed(change, 1)}%" if round(change, 1) else "none"
        sides = [Cell(f"{tokens:,.0f}", value=tokens) for tokens in prompts.tokens]
        yield Cell("tokens per prompt"), *sides, Cell(text), Cell("")
        if prompts.cost is not None:
            sides = [Cell(dollars(cost), value=cost) for cost in prompts.cost]
            name = Cell("cost of 1,000 judgments", note=one_line(prompts.price_source))
            yield name, *sides, Cell(""), Cell("")


def _agreement_row(agreement: Agreement, name: str) -> tuple[Cell, ...]:
    sides = [Cell(number(e.value, PLACES), value=e.value) for e in (agreement.before, agreement.after)]
    difference = agreement.difference
    change = estimate_cell(difference, PLACES, signed, mark="*" * agreement.is_significant)
    return Cell(name), *sides, change, Cell(p_cell(difference.p if difference else None))


# Sections


def _agreement_blocks(judged: Judged | None) -> Iterator[Block]:
    if judged is None:
        return
    rows = []
    for agreement in judged.agreement:
        n = (agreement.difference or agreement.after).n
        rows.append((*_agreement_row(agreement, OVER[agreement.level]), Cell(f"{n:,}", value=n)))
    caption = f"Spearman's correlation with people's ratings of {one_line(judged.rating)}."
    yield Table((*_HEADS, Column("n")), tuple(rows), caption=caption, key="* significant", name="agreement")


def _lines(lines: tuple[str, ...]) -> Diff:
    return Diff(tuple(map(escape_controls, lines)))


def _bullets(lines: list[str]) -> list[Block]:
    return [Bullets(tuple(lines))] if lines else []


# JSON and CSV


def _data(diff: CriterionDiff) -> dict[str, Any]:
    data: dict[str, Any] = {"schema": SCHEMA, "finding": list(finding(diff)), "notes": diff.notes}
    for side, name, criterion in zip(("before", "after"), diff.names, diff.criteria, strict=True):
        data[side] = {"name": name, "path": criterion.path, "digest": criterion.digest}
    data |= {"changes": diff.changes, "diff": diff.diff, "prompts": diff.prompts, "judged": None}
    if (judged := diff.judged) is not None:
        data["judged"] = {field.name: getattr(judged, field.name) for field in fields(judged)} | {
            "comparison": comparison.data(judged.comparison) if judged.comparison else None,
            "agreement": [{**asdict(record), "significant": record.is_significant} for record in judged.agreement],
        }
    return data
