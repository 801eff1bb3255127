"""The report of `judge criteria improve`: whether a revised wording agrees better with people, and how it differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.commands.criteria_diff.record import PLACES
from judge.commands.improve.record import Improvement, Trial
from judge.core.format import format_p, number, one_line, plural
from judge.report.document import Bullets, Column, Diff, Document, Section, Table, table
from judge.report.views.columns import change_text, estimate_cell
from judge.stats.correlation import OVER, UNITS

SCHEMA = "judge.criteria.improve/1"


def view(improvement: Improvement) -> Document:
    """Make the report of an attempt."""
    finding = list(_finding(improvement))
    reasons = tuple(
        f"Revision {t.number}: {one_line(t.reason, 300)}" for t in improvement.trials if t.reason
    )
    selection = improvement.selection
    present = Trial(0, agreement=selection.values[0] if selection else None)
    trials = (present, *improvement.trials)
    used = f"The ratings of the {plural(improvement.training.texts, 'training text')} count in no estimate now (`seen`)"
    left = f"those of {plural(improvement.testing.texts, 'text')} are left"
    names = ("name", "file", "level", "trials", "chosen", "failed", "written", "diff", "notes", "selection",
             "agreement")  # fmt: skip
    return Document(
        title=f"Improve {one_line(improvement.name, 60)}",
        finding=tuple(finding),
        scope=f"{improvement.training.texts:,} rated texts for training, {improvement.testing.texts:,} for the test",
        notices=(
            *improvement.notes,
            *(f"Revision {t.number} was not tried: {one_line(t.skipped, 200)}." for t in trials if t.skipped),
            *([f"{used}; {left}."] if improvement.written else []),
        ),
        summary=(
            *([_table(improvement, trials)] if selection else []),
            *([Diff(improvement.diff)] if improvement.diff else []),
        ),
        sections=(Section("reasons", "The writer's reasons", lambda: [Bullets(reasons)]),) if reasons else (),
        data={
            "schema": SCHEMA,
            "finding": finding,
            "improved": improvement.improved,
            **{name: getattr(improvement, name) for name in names},
            "training": improvement.training._asdict(),
            "testing": improvement.testing._asdict(),
        },
        records=tuple(
            {
                "revision": trial.number, "training": trial.agreement, "chosen": trial.number == improvement.chosen,
                "failed": trial.failed, "skipped": trial.skipped, "reason": trial.reason,
            }
            for trial in trials
        ),
    )  # fmt: skip


def _finding(improvement: Improvement) -> Iterator[str]:
    file, agreement = one_line(improvement.file, 40), improvement.agreement
    gain = agreement.difference if agreement else None
    if not improvement.usable:
        yield f"No usable revision: {file} stays"
    elif improvement.chosen is None:
        yield f"No revision agrees better with people in training: {file} stays"
    elif agreement is None or gain is None:
        yield f"The gain is undefined on the unseen ratings: {file} stays"
    else:
        tested = f" ({format_p(gain.p)})" if gain.p is not None else ""
        written = f"Written: {one_line(improvement.written, 60)}."
        if improvement.improved:
            yield f"Revision {improvement.chosen} agrees better with people{tested}"
        elif improvement.fails_more:
            yield f"The judge fails more often with revision {improvement.chosen}: {file} stays"
            written = (
                f"Failed judgments: {improvement.failed[1]:,}, before {improvement.failed[0]:,}."
            )
        else:
            yield f"No significant gain{tested}: {file} stays"
            written = ""
        size = (
            f"Spearman {change_text(gain, PLACES)} on {gain.n:,} unseen {UNITS[agreement.level]}s."
        )
        yield f"{size} {written}".rstrip()


def _table(improvement: Improvement, trials: Sequence[Trial]) -> Table:
    agreement, rows = improvement.agreement, []
    tests = {0: agreement.before, improvement.chosen: agreement.after} if agreement else {}
    for trial in (trial for trial in trials if not trial.skipped):
        name = f"revision {trial.number}" if trial.number else "present wording"
        mark = "*" * (improvement.improved and trial.number > 0)
        training = None if trial.agreement is None else number(trial.agreement, PLACES)
        rows.append(
            (
                name,
                training,
                estimate_cell(tests.get(trial.number), PLACES, mark=mark),
                one_line(trial.reason, 36),
            )
        )
    return table(
        ("", "training", "test", Column("what it changes", numeric=False)),
        rows,
        "* significant",
        caption=f"Spearman's correlation with people, {OVER[improvement.level]}.",
        name="trials",
    )
