"""How a comparison shows the pass marks that keep the pass rates with the new judge."""

from __future__ import annotations

from collections.abc import Sequence

from judge.core.format import one_line, percent
from judge.report.document import Block, Cell, table
from judge.report.format import column_title
from judge.stats.pass_marks import PassMark


def remark(mark: PassMark) -> str:
    """Return a sentence about the mark of a criterion."""
    name = one_line(mark.column)
    if mark.translated == mark.mark:
        sentence = f"{name}: keep the pass mark {mark.mark:g}"
    else:
        old_mark = _text(mark.mark)
        new_mark = _text(mark.translated)
        sentence = f"{name}: {old_mark} of the old judge is {new_mark} of the new one"
    rates = f"{percent(mark.held_back)} of held-back texts pass, {percent(mark.before)} before"
    if mark.keeps_rate:
        return f"{sentence}: {rates}."
    return f"{sentence}, but {rates}: the new judge's scores are too coarse for a nearer mark."


def _text(value: float) -> str:
    return f"{value:.3g}"


def mark_blocks(marks: Sequence[PassMark]) -> list[Block]:
    """Return the table of the pass marks."""
    heads = (
        "criterion",
        "mark",
        "new mark",
        "pass before",
        "pass after",
        "at new mark",
        "same verdict",
    )
    rows = [
        (
            column_title(mark.column),
            Cell(_text(mark.mark), value=mark.mark),
            Cell(_text(mark.translated), value=mark.translated),
            Cell(percent(mark.before), value=mark.before),
            Cell(percent(mark.after), value=mark.after),
            Cell(
                percent(mark.held_back),
                mark="" if mark.keeps_rate else "!",
                value=mark.held_back,
            ),
            Cell(percent(mark.same_verdict), value=mark.same_verdict),
        )
        for mark in marks
    ]
    first = marks[0]
    return [
        table(
            heads,
            rows,
            caption="Pass marks.",
            key=(
                f"Texts that are the same in both runs ({first.texts:,} of {first.items:,} items). "
                "The new mark is fitted on half of the items; its rate and the same verdicts are "
                "of the other half, over 50 random halves. ! more than 2 points from before."
            ),
            name="marks",
        )
    ]
