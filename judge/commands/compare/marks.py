"""How a comparison shows the pass marks that keep the pass rates with the new judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judge.core.format import one_line, percent
from judge.report.document import Block, Cell, Content, table
from judge.report.format import column_title
from judge.stats.pass_marks import PassMark


def remark(mark: PassMark) -> str:
    """Return a sentence about the mark of a criterion."""
    criterion = one_line(mark.column)
    if mark.translated == mark.mark:
        sentence = f"{criterion}: keep the pass mark {mark.mark:g}"
    else:
        old_mark = _text(mark.mark)
        new_mark = _text(mark.translated)
        new_part = f"{new_mark} of the new one"
        sentence = f"{criterion}: {old_mark} of the old judge is {new_part}"
    rate_after = percent(mark.held_back)
    rate_before = percent(mark.before)
    rates = f"{rate_after} of held-back texts pass, {rate_before} before"
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
    # Every criterion is about the same texts.
    first_mark = marks[0]
    table_key = (
        f"Texts that are the same in both runs ({first_mark.texts:,} of {first_mark.items:,} "
        "items). The new mark is fitted on half of the items; its rate and the same verdicts are "
        "of the other half, over 50 random halves. ! more than 2 points from before."
    )
    rows = [_mark_row(mark) for mark in marks]
    return [table(heads, rows, caption="Pass marks.", key=table_key, name="marks")]


def _mark_row(pass_mark: PassMark) -> list[Content]:
    """Return the row of a criterion: its marks, and the shares of texts that pass."""
    held_back = _share_cell(pass_mark.held_back)
    if not pass_mark.keeps_rate:
        held_back = replace(held_back, mark="!")
    return [
        column_title(pass_mark.column),
        Cell(_text(pass_mark.mark), value=pass_mark.mark),
        Cell(_text(pass_mark.translated), value=pass_mark.translated),
        _share_cell(pass_mark.before),
        _share_cell(pass_mark.after),
        held_back,
        _share_cell(pass_mark.same_verdict),
    ]


def _share_cell(share: float) -> Cell:
    return Cell(percent(share), value=share)
