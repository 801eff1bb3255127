"""The report of `judge criteria diff`: changes of prompts, scores and agreement with people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from judge.core.format import (
    decimals,
    dollars,
    format_p,
    number,
    one_line,
    percent,
    plural,
    rough_count,
    signed,
)
from judge.core.messages import Remark
from judge.core.records import Estimate
from judge.report.document import (
    Block,
    Bullets,
    Cell,
    Diff,
    Document,
    Heading,
    Section,
    table,
)
from judge.report.views.columns import change_text, estimate_cell, p_cell
from judge.stats.correlation import OVER, OVER_IN_SENTENCES, UNITS
from judge.stats.power import items_needed
from judge.stats.run_differences import MeanChange

SCHEMA = "judge.criteria.diff/1"
_HEADS = ("", "before", "after", "change", "p")
_STAR = "* significant"
_MAX_SETTING_LENGTH = 200  # characters of a setting's value


def view(diff: CriterionDiff) -> Document:
    """Make the report of a diff."""
    prompts = diff.prompts
    headline, *other_sentences = _finding(diff)
    # The first sentence is the report's headline, which has no full stop.
    finding = [headline.rstrip("."), *other_sentences]
    title = " → ".join(diff.names)
    rows = list(_rows(diff))
    summary: list[Block] = []
    if rows:
        summary.append(
            table(_HEADS, rows, star=_STAR, name="diff", caption="Before and after.")
        )
    changes = _change_lines(diff)
    if changes:
        summary.append(Bullets(tuple(changes)))
    if diff.judged is None:
        # Without scores, the lines that differ are the summary.
        if prompts:
            summary += _prompt_blocks(diff)
        elif diff.diff:
            summary.append(Diff(diff.diff))
    remarks = [note for note in diff.notes if isinstance(note, Remark)]
    notices = [note for note in diff.notes if not isinstance(note, Remark)]
    records = [_record(row) for row in rows]
    scope = title
    if prompts:
        texts = plural(prompts.texts, "text")
        scope = f"{title} · {texts}"
    return Document(
        title=title,
        finding=tuple(finding),
        scope=scope,
        notices=tuple(notices),
        remarks=tuple(remarks),
        summary=tuple(summary),
        sections=tuple(_sections(diff)),
        data=_data(diff, finding),
        records=tuple(records),
    )


def _change_lines(diff: CriterionDiff) -> list[str]:
    """Return the reason if the cost is unknown, and a line for each setting that differs."""
    lines = []
    prompts = diff.prompts
    if prompts and prompts.cost is None and prompts.price_source:
        lines.append(f"The cost is unknown: {prompts.price_source}.")
    for change in diff.changes:
        text_before = one_line(change.before, _MAX_SETTING_LENGTH)
        text_after = one_line(change.after, _MAX_SETTING_LENGTH)
        lines.append(f"{change.what}: {text_before} → {text_after}")
    return lines


def _prompt_blocks(diff: CriterionDiff) -> list[Block]:
    """Return the most common differences of the prompts, each under its number of texts."""
    if diff.prompts is None:
        return []
    blocks: list[Block] = []
    for difference in diff.prompts.differences:
        opening = "Also, on" if blocks else "On"
        texts = plural(difference.texts, "text")
        blocks.append(Heading(f"{opening} {texts}"))
        blocks.append(Diff(difference.lines))
    return blocks


def _sections(diff: CriterionDiff) -> Iterator[Section]:
    judged = diff.judged
    if judged is not None and judged.agreement:
        caption = f"Spearman's correlation with people's ratings of {judged.rating}."
        rows = []
        for agreement in judged.agreement:
            # Without a difference, the number of units is that of the new wording.
            estimate = agreement.difference or agreement.after
            cells = _agreement_row(agreement, OVER[agreement.level])
            rows.append((*cells, Cell(f"{estimate.n:,}")))
        heads = (*_HEADS, "n")
        by_level = table(heads, rows, star=_STAR, caption=caption, name="agreement")
        yield Section("agreement", "Agreement with people", lambda: [by_level])
    if judged is not None and judged.comparison:
        scores = judged.comparison
        yield Section("scores", "Scores", lambda: comparison.mean_blocks(scores))
    prompt_blocks = _prompt_blocks(diff)
    if judged is not None and prompt_blocks:
        yield Section("prompts", "Prompts", lambda: prompt_blocks)
    if diff.diff and diff.prompts:
        yield Section("files", "Files", lambda: [Diff(diff.diff)])


def _record(row: Sequence[Cell]) -> dict[str, Any]:
    """Return a row of the summary for CSV, with the number of each cell, or else its text."""
    name_cell, cell_before, cell_after, change, p_value_cell = row
    record: dict[str, Any] = {"quantity": name_cell.text}
    cells = {"before": cell_before, "after": cell_after, "change": change}
    for side, cell in cells.items():
        record[side] = cell.text if cell.value is None else cell.value
    return record | {"p": p_value_cell.text}


def _finding(diff: CriterionDiff) -> Iterator[str]:
    """Say what changed, the most important first: agreement with people, scores, prompts, text."""
    prompts = diff.prompts
    if diff.judged is not None:
        yield from _judged_sentences(diff.judged)
    elif prompts is not None and not prompts.differ:
        yield f"The prompts are the same on {plural(prompts.texts, 'text')}."
    elif prompts is not None:
        texts = plural(prompts.texts, "text")
        yield f"The prompts differ on {prompts.differ:,} of {texts}."
    elif diff.diff or diff.changes:
        yield "The two criteria differ."
    else:
        yield f"The two criteria have the same text ({diff.criteria[0].digest[:6]})."


def _judged_sentences(judged: Judged) -> Iterator[str]:
    """Say whether the agreement and the mean score changed, and by how much."""
    leading = judged.leading
    if leading is not None and leading.difference is not None:
        yield _agreement_sentence(leading, leading.difference)
    change = _mean_change(judged)
    if change is None:
        yield "No text has a score by both criteria."
    else:
        yield _mean_sentence(change)
    if judged.no_agreement:
        yield f"{judged.no_agreement}."


def _agreement_sentence(agreement: Agreement, difference: Estimate) -> str:
    if difference.p is None and difference.low is None:
        verdict = "Too few items to test the change in agreement with people"
    elif not agreement.is_significant:
        verdict = "No significant change in agreement with people"
    elif difference.value > 0:
        verdict = "The new wording agrees better with people"
    else:
        verdict = "The new wording agrees worse with people"
    details = _test_details(difference, significant=agreement.is_significant)
    size_text = change_text(difference, PLACES)
    units = plural(difference.n, UNITS[agreement.level])
    over = OVER_IN_SENTENCES[agreement.level]
    return f"{verdict}{details}: Spearman {over} changes by {size_text}, {units}."


def _mean_change(judged: Judged) -> MeanChange | None:
    """Return the change of the mean score of all systems; None if no text has both scores.

    The first mean of a comparison is that of all systems, or of the only system. For a panel of
    judges, it is the mean of the judges.
    """
    if judged.comparison is None or not judged.comparison.runs.means:
        return None
    return judged.comparison.runs.means[0]


def _mean_sentence(change: MeanChange) -> str:
    if change.adjusted is None:
        verdict = "Too few items to test the change in scores"
    elif not change.significant:
        verdict = "No significant change in scores"
    elif change.estimate.value > 0:
        verdict = "Scores rose"
    else:
        verdict = "Scores fell"
    estimate = replace(change.estimate, p=change.adjusted)
    details = _test_details(estimate, significant=change.significant)
    size_text = change_text(estimate, decimals([change.before, change.after]))
    items = plural(estimate.n, "item")
    return f"{verdict}{details}: {size_text}, {items}."


def _test_details(estimate: Estimate, *, significant: bool) -> str:
    """Return p, and how many items a test needs if the change is not significant.

    For example " (p = 0.310, detecting it needs about 1,800 items)"; "" if neither is known.
    """
    details = []
    if estimate.p is not None:
        details.append(format_p(estimate.p))
    items = None if significant else items_needed(estimate)
    if items is not None and items > estimate.n:
        details.append(f"detecting it needs {rough_count(items)} items")
    return f" ({', '.join(details)})" if details else ""


def _rows(diff: CriterionDiff) -> Iterator[Sequence[Cell]]:
    """Yield the rows of the summary, with the columns of _HEADS."""
    if diff.judged is not None:
        yield from _judged_rows(diff.judged)
    if diff.prompts is not None:
        yield from _prompt_rows(diff.prompts)


def _judged_rows(judged: Judged) -> Iterator[Sequence[Cell]]:
    """Yield the rows of the agreement, the mean score, the failures and the flips."""
    empty = Cell("")
    if judged.leading is not None:
        yield _agreement_row(judged.leading, "agreement with people")
    change = _mean_change(judged)
    if change is not None:
        yield _mean_row(change)
    failed_before, failed_after = [
        Cell(f"{n_failed:,} of {n_judgments:,}")
        for n_failed, n_judgments in zip(judged.failed, judged.judgments, strict=True)
    ]
    yield Cell("failed judgments"), failed_before, failed_after, empty, empty
    for flips in judged.flips:
        if flips.total:
            share = percent(flips.flipped / flips.total)
            count = Cell(f"{flips.flipped:,} of {flips.total:,}", note=share)
            yield Cell(f"flips: {flips.name}"), empty, empty, count, empty


def _mean_row(change: MeanChange) -> list[Cell]:
    places = decimals([change.before, change.after])
    mark = "*" if change.significant else ""
    cell_before = Cell(number(change.before, places), value=change.before)
    cell_after = Cell(number(change.after, places), value=change.after)
    difference = estimate_cell(change.estimate, places, signed, mark=mark)
    return [
        Cell("mean score"),
        cell_before,
        cell_after,
        difference,
        Cell(p_cell(change.adjusted)),
    ]


def _prompt_rows(prompts: Prompts) -> Iterator[Sequence[Cell]]:
    """Yield the tokens and, if it is known, the cost of the prompts."""
    empty = Cell("")
    tokens_before, tokens_after = prompts.tokens
    tokens = [Cell(f"{mean:,.0f}", value=mean) for mean in prompts.tokens]
    growth = signed(100 * (tokens_after / tokens_before - 1), 1)
    yield Cell("tokens per prompt"), *tokens, Cell(f"{growth}%"), empty
    if prompts.cost is not None:
        costs = [Cell(dollars(amount), value=amount) for amount in prompts.cost]
        cost_name = Cell("cost of 1,000 judgments", note=prompts.price_source)
        yield cost_name, *costs, empty, empty


def _agreement_row(agreement: Agreement, row_name: str) -> list[Cell]:
    value_before = agreement.before.value
    value_after = agreement.after.value
    difference = agreement.difference
    mark = "*" if agreement.is_significant else ""
    p_value = difference.p if difference else None
    before_cell = Cell(number(value_before, PLACES), value=value_before)
    after_cell = Cell(number(value_after, PLACES), value=value_after)
    change = estimate_cell(difference, PLACES, signed, mark=mark)
    return [Cell(row_name), before_cell, after_cell, change, Cell(p_cell(p_value))]


def _data(diff: CriterionDiff, finding: list[str]) -> dict[str, Any]:
    """Return the report as JSON has it."""
    data: dict[str, Any] = {"schema": SCHEMA, "finding": finding, "notes": diff.notes}
    for side_name, criterion_name, criterion in zip(
        ("before", "after"),
        diff.names,
        diff.criteria,
        strict=True,
    ):
        data[side_name] = {
            "name": criterion_name,
            "path": criterion.path,
            "digest": criterion.digest,
        }
    data["changes"] = diff.changes
    data["diff"] = diff.diff
    data["prompts"] = diff.prompts
    data["judged"] = None if diff.judged is None else _judged_data(diff.judged)
    return data


def _judged_data(judged: Judged) -> dict[str, Any]:
    """Return the fields of the record, with the comparison as its own report has it."""
    names = [field.name for field in fields(judged)]
    data: dict[str, Any] = {
        field_name: getattr(judged, field_name) for field_name in names
    }
    scores = judged.comparison
    data["comparison"] = None if scores is None else comparison.data(scores)
    data["agreement"] = [
        {**asdict(agreement), "significant": agreement.is_significant}
        for agreement in judged.agreement
    ]
    return data
