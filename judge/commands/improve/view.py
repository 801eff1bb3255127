"""The report of `judge criteria improve`.

It says whether a revised wording agrees better with people, and how it differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from judge.commands.criteria_diff.record import PLACES
from judge.commands.improve.record import Improvement, Trial
from judge.core.format import format_p, number, one_line, plural
from judge.core.messages import Remark
from judge.report.document import (
    Block,
    Bullets,
    Column,
    Diff,
    Document,
    Section,
    Table,
    table,
)
from judge.report.views.columns import change_text, estimate_cell
from judge.stats.correlation import OVER, OVER_IN_SENTENCES, UNITS

SCHEMA = "judge.criteria.improve/1"
_FIELDS = (
    "name",
    "file",
    "level",
    "trials",
    "chosen",
    "failed",
    "written",
    "diff",
    "notes",
    "selection",
    "agreement",
)


def view(improvement: Improvement) -> Document:
    """Make the report of an attempt."""
    finding = list(_finding(improvement))
    selection = improvement.selection
    # The first value is that of the present wording, which is no trial.
    agreement = selection.values[0] if selection else None
    present = Trial(0, agreement=agreement)
    trials = (present, *improvement.trials)
    training_texts = improvement.training.texts
    testing_texts = improvement.testing.texts
    summary: list[Block] = []
    if selection:
        summary.append(_table(improvement, trials))
    if improvement.diff:
        summary.append(Diff(improvement.diff))
    records = [_record(improvement, trial) for trial in trials]
    remarks = [note for note in improvement.notes if isinstance(note, Remark)]
    return Document(
        title=f"Improve {one_line(improvement.name, 60)}",
        finding=tuple(finding),
        scope=f"{training_texts:,} rated texts for training, {testing_texts:,} for the test",
        notices=tuple(_notices(improvement)),
        remarks=tuple(remarks),
        summary=tuple(summary),
        sections=tuple(_sections(improvement)),
        data=_data(improvement, finding),
        records=tuple(records),
    )


def _sections(improvement: Improvement) -> Iterator[Section]:
    """Yield the reasons that the writer gave, if any."""
    reasons = []
    for trial in improvement.trials:
        if trial.reason:
            reason = one_line(trial.reason, 300)
            reasons.append(f"Revision {trial.number}: {reason}")
    if reasons:
        bullets = Bullets(tuple(reasons))
        yield Section("reasons", "The writer's reasons", lambda: [bullets])


def _data(improvement: Improvement, finding: list[str]) -> dict[str, Any]:
    """Return the report as JSON has it."""
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "finding": finding,
        "improved": improvement.improved,
    }
    for field in _FIELDS:
        data[field] = getattr(improvement, field)
    data["training"] = improvement.training._asdict()
    data["testing"] = improvement.testing._asdict()
    return data


def _record(improvement: Improvement, trial: Trial) -> dict[str, Any]:
    """Return a row for CSV."""
    return {
        "revision": trial.number,
        "training": trial.agreement,
        "chosen": trial.number == improvement.chosen,
        "failed": trial.failed,
        "skipped": trial.skipped,
        "reason": trial.reason,
    }


def _notices(improvement: Improvement) -> Iterator[str]:
    yield from (note for note in improvement.notes if not isinstance(note, Remark))
    for trial in improvement.trials:
        if trial.skipped:
            reason = one_line(trial.skipped, 300)
            yield f"Revision {trial.number} was not tried: {reason}."
    if improvement.improved:
        training_texts = plural(improvement.training.texts, "training text")
        testing_texts = plural(improvement.testing.texts, "text")
        yield (
            f"Estimates no longer use the ratings of the {training_texts} (`seen`); those of "
            f"{testing_texts} remain."
        )


def _finding(improvement: Improvement) -> Iterator[str]:
    file = one_line(improvement.file, 40)
    agreement = improvement.agreement
    gain = improvement.gain
    if not improvement.usable:
        yield f"No usable revision: {file} stays"
        return
    if improvement.chosen is None:
        yield f"No revision agrees better with people in training: {file} stays"
        return
    if agreement is None or gain is None:
        yield f"The gain is undefined on the unseen ratings: {file} stays"
        return
    tested = ""
    if gain.p is not None:
        tested = f" ({format_p(gain.p)})"
    details = ""
    if improvement.improved:
        yield f"Revision {improvement.chosen} agrees better with people{tested}"
        if improvement.written:
            details = f"Written: {one_line(improvement.written, 60)}."
    elif improvement.fails_more:
        yield f"The judge fails more often with revision {improvement.chosen}: {file} stays"
        failed_before, failed_after = improvement.failed
        details = f"Failed judgments: {failed_after:,}, before {failed_before:,}."
    else:
        yield f"No significant gain{tested}: {file} stays"
    items = f"{gain.n:,} unseen {UNITS[agreement.level]}s"
    over = OVER_IN_SENTENCES[agreement.level]
    size = change_text(gain, PLACES)
    change = f"Spearman {over} {size} on {items}."
    yield f"{change} {details}".rstrip()


def _table(improvement: Improvement, trials: Sequence[Trial]) -> Table:
    agreement = improvement.agreement
    # Only the present wording and the chosen one are tested.
    tests = {}
    if agreement:
        tests = {0: agreement.before, improvement.chosen: agreement.after}
    rows = []
    for trial in trials:
        if trial.skipped:
            continue
        wording = f"revision {trial.number}" if trial.number else "present wording"
        mark = "*" if improvement.improved and trial.number > 0 else ""
        training = None if trial.agreement is None else number(trial.agreement, PLACES)
        test = estimate_cell(tests.get(trial.number), PLACES, mark=mark)
        reason = one_line(trial.reason, 36)
        rows.append((wording, training, test, reason))
    heads = ("", "training", "test", Column("what it changes", numeric=False))
    return table(
        heads,
        rows,
        star="* significant",
        caption=f"Spearman's correlation with people, {OVER[improvement.level]}.",
        name="trials",
    )
