"""The report of `judge criteria diff`: what two wordings of a criterion change in prompts, scores and agreement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from typing import Any

from judge.commands.compare import view as comparison
from judge.commands.criteria_diff.record import PLACES, Agreement, CriterionDiff
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
    judged, prompts = diff.judged, diff.prompts
    first, *others = _finding(diff)
    names = " → ".join(diff.names)
    rows = list(_rows(diff))
    changes = [
        f"{change.what}: {one_line(change.before, 200)} → {one_line(change.after, 200)}"
        for change in diff.changes
    ]
    if prompts and prompts.cost is None and prompts.price_source:
        changes.insert(0, f"The cost is unknown: {prompts.price_source}.")
    prompt_blocks = [
        block
        for place, each in enumerate(prompts.differences if prompts else ())
        for block in (
            Heading(f"{'Also, on' if place else 'On'} {plural(each.texts, 'text')}"),
            Diff(each.lines),
        )
    ]
    summary: list[Block] = (
        [table(_HEADS, rows, _KEY, name="diff", caption="Before and after.")] if rows else []
    )
    summary += [Bullets(tuple(changes))] if changes else []
    if judged is None:  # the lines that differ are the summary
        summary += prompt_blocks if prompts else [Diff(diff.diff)] if diff.diff else []
    sections = []
    if judged and judged.agreement:
        caption = f"Spearman's correlation with people's ratings of {judged.rating}."
        by_level = [
            (*_agreement_row(a, OVER[a.level]), Cell(f"{(a.difference or a.after).n:,}"))
            for a in judged.agreement
        ]
        agreement = table((*_HEADS, "n"), by_level, _KEY, caption=caption, name="agreement")
        sections.append(Section("agreement", "Agreement with people", lambda: [agreement]))
    if judged and (scores := judged.comparison):
        sections.append(Section("scores", "Scores", lambda: comparison.mean_blocks(scores)))
    if judged and prompt_blocks:
        sections.append(Section("prompts", "Prompts", lambda: prompt_blocks))
    if diff.diff and prompts:
        sections.append(Section("files", "Files", lambda: [Diff(diff.diff)]))
    return Document(
        title=" → ".join(diff.names),
        finding=(first.rstrip("."), *others),
        scope=f"{names} · {plural(prompts.texts, 'text')}" if prompts else names,
        notices=diff.notes,
        summary=tuple(summary),
        sections=tuple(sections),
        data=_data(diff, [first.rstrip("."), *others]),
        records=tuple(
            {"quantity": name.text}
            | {
                side: cell.text if cell.value is None else cell.value
                for side, cell in sides.items()
            }
            | {"p": p.text}
            for name, before, after, change, p in rows
            for sides in [{"before": before, "after": after, "change": change}]
        ),
    )


def _finding(diff: CriterionDiff) -> Iterator[str]:
    """Say what changed, the most important first: agreement with people, scores, prompts, text."""
    judged, prompts = diff.judged, diff.prompts
    if judged is not None:
        leading = judged.leading
        if leading and (e := leading.difference):
            verbs = (
                "The new wording agrees better with people",
                "The new wording agrees worse with people",
            )
            size = (
                f"Spearman changes by {change_text(e, PLACES)}, {plural(e.n, UNITS[leading.level])}"
            )
            verdict = _verdict(verbs, "agreement with people", e, leading.is_significant)
            yield f"{verdict}: {size}."
        means = judged.comparison.runs.means if judged.comparison else ()
        for row in means[:1]:  # of all systems, or of the only one; of a panel the mean's
            e = replace(row.estimate, p=row.adjusted)
            size = f"{change_text(e, decimals([row.before, row.after]))}, {plural(e.n, 'item')}"
            yield f"{_verdict(('Scores rose', 'Scores fell'), 'scores', e, row.significant)}: {size}."
        if not means:
            yield "No text has a score by both."
        if judged.no_agreement:
            yield f"{judged.no_agreement}."
    elif prompts is not None and not prompts.differ:
        yield f"The prompts are the same on {plural(prompts.texts, 'text')}."
    elif prompts is not None:
        yield f"The prompts differ on {prompts.differ:,} of {plural(prompts.texts, 'text')}."
    elif diff.diff or diff.changes:
        yield "The two criteria differ."
    else:
        yield f"The two criteria have the same text ({diff.criteria[0].digest[:6]})."


def _verdict(verbs: tuple[str, str], what: str, e: Estimate, significant: bool) -> str:
    """Say whether a change is significant, its p, and how many items a test needs if it is not."""
    tested = [] if e.p is None else [format_p(e.p)]
    if significant:
        said = verbs[0] if e.value > 0 else verbs[1]
    else:
        said, items = f"No significant change in {what}", items_needed(e)
        if items is not None and items > e.n:
            tested.append(f"detecting it needs about {round(items, 2 - len(str(items))):,} items")
    return f"{said} ({', '.join(tested)})" if tested else said


def _rows(diff: CriterionDiff) -> Iterator[tuple[Cell, ...]]:
    judged, prompts, none = diff.judged, diff.prompts, Cell("")
    if judged is not None:
        if judged.leading is not None:
            yield _agreement_row(judged.leading, "agreement with people")
        for row in judged.comparison.runs.means[:1] if judged.comparison else ():
            places = decimals([row.before, row.after])
            sides = [Cell(number(value, places), value=value) for value in (row.before, row.after)]
            changed = estimate_cell(row.estimate, places, signed, mark="*" * row.significant)
            yield Cell("mean score"), *sides, changed, Cell(p_cell(row.adjusted))
        sides = [
            Cell(f"{failed:,} of {n:,}")
            for failed, n in zip(judged.failed, judged.judgments, strict=True)
        ]
        yield Cell("failed judgments"), *sides, none, none
        for flips in judged.flips:
            if flips.total:
                count = Cell(
                    f"{flips.flipped:,} of {flips.total:,}",
                    note=percent(flips.flipped / flips.total),
                )
                yield Cell(f"flips: {flips.name}"), none, none, count, none
    if prompts is not None:
        before, after = prompts.tokens
        sides = [Cell(f"{tokens:,.0f}", value=tokens) for tokens in prompts.tokens]
        yield (
            Cell("tokens per prompt"),
            *sides,
            Cell(f"{signed(100 * (after / before - 1), 1)}%"),
            none,
        )
        if prompts.cost is not None:
            sides = [Cell(dollars(cost), value=cost) for cost in prompts.cost]
            yield Cell("cost of 1,000 judgments", note=prompts.price_source), *sides, none, none


def _agreement_row(agreement: Agreement, name: str) -> tuple[Cell, ...]:
    sides = [
        Cell(number(e.value, PLACES), value=e.value) for e in (agreement.before, agreement.after)
    ]
    difference = agreement.difference
    change = estimate_cell(difference, PLACES, signed, mark="*" * agreement.is_significant)
    return Cell(name), *sides, change, Cell(p_cell(difference.p if difference else None))


def _data(diff: CriterionDiff, finding: list[str]) -> dict[str, Any]:
    data: dict[str, Any] = {"schema": SCHEMA, "finding": finding, "notes": diff.notes}
    for side, name, criterion in zip(("before", "after"), diff.names, diff.criteria, strict=True):
        data[side] = {"name": name, "path": criterion.path, "digest": criterion.digest}
    data |= {"changes": diff.changes, "diff": diff.diff, "prompts": diff.prompts, "judged": None}
    if (judged := diff.judged) is not None:
        data["judged"] = {field.name: getattr(judged, field.name) for field in fields(judged)} | {
            "comparison": comparison.data(judged.comparison) if judged.comparison else None,
            "agreement": [
                {**asdict(record), "significant": record.is_significant}
                for record in judged.agreement
            ],
        }
    return data
