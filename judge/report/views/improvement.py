"""The report of `judge criteria improve`: whether a revised wording agrees better with people, and how it differs."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.format import escape_controls, format_p, number, one_line, percent, plural
from judge.report.document import Block, Cell, Column, Diff, Document, Paragraph, Section, Table, table
from judge.report.views.columns import change_text
from judge.results.comparison import PLACES
from judge.results.improvement import Improvement, Trial
from judge.stats.correlation import OVER, UNITS

SCHEMA = "judge.criteria.improve/1"
_MOST_LINES = 24  # of the diff, on the console


def view(improvement: Improvement) -> Document:
    """Make the report of an attempt."""
    lines = list(map(escape_controls, improvement.diff))
    more = f"… {len(lines) - _MOST_LINES} more lines: --full"
    summary: list[Block] = []
    selection = improvement.selection
    if selection is not None:
        summary.append(_table(improvement))
    if lines:
        summary.append(Diff((*lines[:_MOST_LINES], *[more] * (len(lines) > _MOST_LINES))))
    skipped = [
        f"Revision {t.number} was not tried: {one_line(t.skipped, 200)}." for t in improvement.trials if t.skipped
    ]
    used = f"The ratings of the {plural(improvement.training.texts, 'training text')} count in no estimate now (`seen`)"
    left = f"those of {plural(improvement.testing.texts, 'text')} are left"
    notes = [f"{used}; {left}."] if improvement.written else []
    names = ("name", "file", "level", "training", "testing", "trials", "chosen", "failed", "written", "diff", "notes",
             "selection", "agreement")  # fmt: skip
    records = [
        {
            "revision": trial.number, "training": trial.agreement, "chosen": trial.number == improvement.chosen,
            "failed": trial.failed, "skipped": trial.skipped, "reason": trial.reason,
        }
        for trial in _trials(improvement)
    ]  # fmt: skip
    return Document(
        title=f"Improve {one_line(improvement.name, 60)}",
        finding=tuple(_finding(improvement)),
        scope=f"{improvement.training.texts:,} rated texts for training, {improvement.testing.texts:,} for the test",
        notices=(*map(one_line, improvement.notes), *skipped, *notes),
        summary=tuple(summary),
        sections=tuple(_sections(improvement, lines)),
        data={
            "schema": SCHEMA,
            "finding": list(_finding(improvement)),
            "improved": improvement.improved,
            **{name: getattr(improvement, name) for name in names},
            "training": improvement.training._asdict(),
            "testing": improvement.testing._asdict(),
        },
        records=tuple(records),
    )


def _finding(improvement: Improvement) -> Iterator[str]:
    file, agreement = one_line(improvement.file, 40), improvement.agreement
    if not improvement.usable:
        yield f"No usable revision: {file} stays"
        return
    if improvement.chosen is None:
        yield f"No revision agrees better with people in training: {file} stays"
        return
    gain = agreement.difference if agreement else None
    if agreement is None or gain is None:
        yield f"The gain is undefined on the unseen ratings: {file} stays"
        return
    tested = f" ({format_p(gain.p)})" if gain.p is not None else ""
    size = f"Spearman {change_text(gain, PLACES)} on {gain.n:,} unseen {UNITS[agreement.level]}s."
    if improvement.improved:
        yield f"Revision {improvement.chosen} agrees better with people{tested}"
        yield f"{size} Written: {one_line(improvement.written, 60)}."
    elif improvement.fails_more:
        yield f"The judge fails more often with revision {improvement.chosen}: {file} stays"
        yield f"Failed judgments: {improvement.failed[1]:,}, before {improvement.failed[0]:,}."
    else:
        yield f"No significant gain{tested}: {file} stays"
        yield size


def _table(improvement: Improvement) -> Table:
    agreement, rows = improvement.agreement, []
    for trial in (trial for trial in _trials(improvement) if not trial.skipped):
        sides = {0: agreement and agreement.before, improvement.chosen: agreement and agreement.after}
        test = sides.get(trial.number)
        name, better = f"revision {trial.number}" if trial.number else "present wording", improvement.improved
        tested = _value(test.value if test else None, "*" * (better and trial.number > 0))
        rows.append((name, _value(trial.agreement), tested, one_line(trial.reason, 36)))
    caption = f"Spearman's correlation with people, {OVER[improvement.level]}."
    heads = ("", "training", "test", Column("what it changes", numeric=False))
    key = "* significant" * improvement.improved
    return table(heads, rows, caption=caption, key=key, name="trials")


def _trials(improvement: Improvement) -> tuple[Trial, ...]:
    """Return the present wording, then the revisions."""
    selection = improvement.selection
    return Trial(0, agreement=selection.values[0] if selection else None), *improvement.trials


def _value(value: float | None, mark: str = "") -> Cell:
    return Cell("–") if value is None else Cell(number(value, PLACES), value=value, mark=mark)


def _sections(improvement: Improvement, lines: list[str]) -> Iterator[Section]:
    if len(lines) > _MOST_LINES:
        yield Section("diff", "All changes", lambda: (Diff(tuple(lines)),))
    reasons = [f"Revision {t.number}: {one_line(t.reason, 300)}" for t in improvement.trials if t.reason]
    if reasons:
        yield Section("reasons", "The writer's reasons", lambda: [Paragraph(reason) for reason in reasons])
    selection = improvement.selection
    if selection is not None:
        share = selection.shares[selection.chosen]
        chance = number(max(0.0, selection.optimism), PLACES)
        text = (
            f"{percent(share)} of resamples of the training part choose the same wording. Its Spearman there is "
            f"{number(selection.naive, PLACES)}; {chance} of that is expected to be chance."
        )
        yield Section("choice", "How sure the choice is", lambda: [Paragraph(text)])
