"""A matrix of shaded cells: correlations, win rates, differences between systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.core.format import plural
from judge.report.charts.drawing import CELL, MAX_ROWS, cells, chart, group, label_width, name_text, rect, text
from judge.report.document import Chart

_TALL, _HEAD, _MIN_WIDE = 28, 24, 60  # pixels of a row and of the headings, and of the narrowest column
_MAX_COLUMNS = 40
_CELLS = 12  # of a heading; longer ones become numbers that the rows repeat
_DEEPEST = 0.6  # opacity, so that a text can be read on it


@dataclass(frozen=True, slots=True)
class Heat:
    """A cell: its `shade` is from -1 (worst) to 1 (best), `note` a longer tooltip."""

    text: str
    shade: float = 0.0
    note: str = ""


def heat_map(
    name: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    heats: Sequence[Sequence[Heat | None]],
    *,
    caption: str = "",
) -> Chart:
    """Draw a cell per row and column; None leaves a cell empty."""
    if len(rows) > MAX_ROWS or len(columns) > _MAX_COLUMNS:
        sizes = (len(rows), MAX_ROWS, "row"), (len(columns), _MAX_COLUMNS, "column")
        limits = " and ".join(f"{min(n, limit)} of {plural(n, noun)}" for n, limit, noun in sizes)
        caption = f"The first {limits}. {caption}".rstrip()
    rows, columns = rows[:MAX_ROWS], columns[:_MAX_COLUMNS]
    longest = max(map(cells, columns), default=0)
    numbered = longest > _CELLS and list(rows) == list(columns)
    wide = max(_MIN_WIDE, 0 if numbered else CELL * min(longest, _CELLS) + 6)
    labels = [f"{k} {row}" for k, row in enumerate(rows, 1)] if numbered else rows
    margin, parts = label_width(labels), []
    described: dict[frozenset[str], tuple[float, str]] = {}
    for k, head in enumerate(columns):
        label = f"{k + 1}" if numbered else head
        drawn = name_text(margin + wide * (k + 0.5), 15, label, "middle", cells=_CELLS)
        parts.append(group(head, drawn) if numbered else drawn)
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        y = _HEAD + _TALL * i
        parts.append(name_text(0, y + 18, label))
        for k, (head, heat) in enumerate(zip(columns, heats[i], strict=False)):
            if heat is None or not heat.text:
                continue
            x, kind = margin + wide * k, "heat-good" if heat.shade > 0 else "heat-bad"
            depth = _DEEPEST * min(1.0, abs(heat.shade))
            drawn = rect(kind, (x + 1, y + 1), (wide - 2, _TALL - 2), depth) if heat.shade else ""
            parts.append(group(heat.note, drawn, text(x + wide / 2, y + 18, heat.text, "value", "middle")))
            if heat.shade:
                described.setdefault(frozenset((row, head)), (-abs(heat.shade), f"{row} and {head} {heat.text}"))
    size = (margin + wide * len(columns), _HEAD + _TALL * len(rows))
    values = [value for _, value in sorted(described.values())] or ["no shaded cell"]
    return chart(name, title, size, parts, values=values, caption=caption)
