"""Draw small histograms side by side, on the same bins and with the same height."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from judge.core.format import decimals, minus, number, plural
from judge.report.charts.shapes import (
    MAX_ROWS,
    chart,
    cut_note,
    group,
    line,
    name_text,
    rect,
    text,
)
from judge.report.document import Chart
from judge.report.format import shortest_places

_DIGITS_OF_EDGES = 9  # after the point; edges of bins differ by more
_WIDTH = 150  # pixels of a histogram
_HEIGHT = 60
_PER_ROW = 4  # histograms
_GUTTER = 24  # pixels between histograms
_ROW_PITCH = 128  # pixels from row to row
_FEW = 8  # bins, below which each has a label


def histograms(
    chart_name: str,
    title: str,
    values: Mapping[str, Sequence[float]],
    scale: Mapping[str, float],
    ends: tuple[float | None, float | None],
) -> Chart:
    """Draw a histogram per system; `scale` has the value of each label, if it has any."""
    all_scores = [score for scores in values.values() for score in scores]
    binning = bins(scale, ends, all_scores)
    caption = cut_note(len(values), MAX_ROWS, "system")
    if binning.is_by_label and not set(all_scores) <= set(scale.values()):
        caption += "Scores between two levels count at the nearest one."
    drawn_systems = list(values)[:MAX_ROWS]
    counts_by_system: dict[str, list[int]] = {}
    for system in drawn_systems:
        counts_by_system[system] = binning.count(values[system])
    # The same height means the same number of scores in every histogram.
    all_counts = chain.from_iterable(counts_by_system.values())
    tallest = max(all_counts, default=0) or 1
    elements: list[str] = []
    descriptions: list[str] = []
    for index, (system, counts) in enumerate(counts_by_system.items()):
        row, column = divmod(index, _PER_ROW)
        upper_left = ((_WIDTH + _GUTTER) * column, _ROW_PITCH * row)
        elements += _histogram(system, counts, binning.labels, upper_left, tallest)
        in_words = []
        for label, count in zip(binning.labels, counts, strict=True):
            if count:
                in_words.append(f"{count} × {label}")
        description = ", ".join(in_words)
        descriptions.append(f"{system} {description}")
    n_across = min(_PER_ROW, len(counts_by_system)) or 1
    n_down = math.ceil(len(counts_by_system) / _PER_ROW) or 1
    # No gutter follows the last histogram of a row.
    width = (_WIDTH + _GUTTER) * n_across - _GUTTER
    height = _ROW_PITCH * n_down - 16
    return chart(
        chart_name,
        title,
        (width, height),
        elements,
        values=descriptions,
        caption=caption.rstrip(),
    )


def _histogram(
    system: str,
    counts: Sequence[int],
    labels: Sequence[str],
    upper_left: tuple[float, float],
    tallest: int,
) -> Iterator[str]:
    """Draw the name of a system, an axis, and a column for each count."""
    left_edge, top = upper_left
    floor = top + 32 + _HEIGHT
    lower_left = (left_edge, floor)
    lower_right = (left_edge + _WIDTH, floor)
    yield name_text(left_edge, top + 12, system, cells=20)
    yield line("axis", lower_left, lower_right)
    yield from _columns(counts, labels, lower_left, tallest)


def _columns(
    counts: Sequence[int],
    labels: Sequence[str],
    corner: tuple[float, float],
    tallest: int,
) -> Iterator[str]:
    """Draw the columns of a histogram with their counts and labels, up from its lower left."""
    left_edge, floor = corner
    step = _WIDTH / len(labels)
    total = plural(sum(counts), "score")
    for index, (label, count) in enumerate(zip(labels, counts, strict=True)):
        height = _HEIGHT * count / tallest
        middle = left_edge + step * (index + 0.5)
        # A pixel on each side separates the columns.
        upper_left = (left_edge + step * index + 1, floor - height)
        elements = [rect("bar", upper_left, (step - 2, height))]
        if count:
            label_baseline = floor - height - 4
            count_text = text(middle, label_baseline, f"{count:,}", "tick", "middle")
            elements.append(count_text)
        yield group(f"{label}: {count:,} of {total}", *elements)
        is_last = index == len(labels) - 1
        if len(labels) < _FEW or index == 0 or is_last:
            # Many bins show the ends only: of `1–2` the first one's start, the last one's end.
            ends = label.split("–")
            range_end = ends[-1] if is_last else ends[0]
            yield text(middle, floor + 13, range_end, "tick", "middle")


@dataclass(frozen=True, slots=True)
class Bins:
    """The inner edges of the bins of a histogram, and the bins' labels.

    `is_by_label` says that each label of the scale has a bin.
    """

    edges: list[float]
    labels: list[str]
    is_by_label: bool = False

    def count(self, values: Iterable[float]) -> list[int]:
        """Return how many of the values are in each bin. A value on an edge is in the upper one."""
        counts = [0] * len(self.labels)
        for value in values:
            counts[bisect_right(self.edges, value)] += 1
        return counts


def bins(
    scale: Mapping[str, float],
    ends: tuple[float | None, float | None],
    values: Sequence[float],
) -> Bins:
    """Return the bins of a histogram.

    A scale of up to eleven labels has a bin per label, for the scores nearest to it (halves go up);
    any other has ten equal bins.
    """
    if 2 <= len(scale) <= 11:
        labels = sorted(scale, key=scale.__getitem__)
        edges = []
        for below, above in pairwise(labels):
            midpoint = (scale[below] + scale[above]) / 2
            edges.append(midpoint)
        return Bins(edges, [minus(label) for label in labels], is_by_label=True)
    low, high = ends
    if low is None:
        low = min(values, default=0.0)
    if high is None:
        high = max(values, default=1.0)
    width = ((high - low) or 1.0) / 10
    # Rounded, so that the score 0.3 is on the edge 3 * 0.1, not below it.
    edges = [round(low + index * width, _DIGITS_OF_EDGES) for index in range(11)]
    n_decimals = shortest_places(edges, most=decimals([high, low]))
    edge_texts = [number(edge, n_decimals) for edge in edges]
    ranges = [f"{start}–{end}" for start, end in pairwise(edge_texts)]
    return Bins(edges[1:-1], ranges)
