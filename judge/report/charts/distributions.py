"""Small histograms side by side, all on the same bins and the same height."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

from judge.core.format import decimals, minus, number, plural
from judge.report.charts.drawing import MAX_ROWS, chart, group, line, name_text, rect, text
from judge.report.document import Chart

_WIDTH, _HEIGHT, _PER_ROW, _GAP = 150, 60, 4, 24  # pixels of a histogram, histograms in a row, pixels between them
_PITCH = 128  # pixels from row to row
_FEW = 8  # bins, below which each has a label


def histograms(
    name: str,
    title: str,
    values: Mapping[str, Sequence[float]],
    scale: Mapping[str, float],
    ends: tuple[float | None, float | None],
    *,
    caption: str = "",
) -> Chart:
    """Draw a histogram per system; `scale` has the value of each label, if it has any."""
    edges, heads = bins(scale, ends, [value for scores in values.values() for value in scores])
    if len(values) > MAX_ROWS:
        caption = f"The first {MAX_ROWS} of {plural(len(values), 'system')}. {caption}".rstrip()
    counts = {}
    for system, scores in list(values.items())[:MAX_ROWS]:
        counts[system] = [0] * len(heads)
        for value in scores:
            counts[system][bisect_right(edges, value)] += 1
    tallest = max((n for row in counts.values() for n in row), default=0) or 1
    step, parts, described = _WIDTH / len(heads), [], []
    for place, (system, row) in enumerate(counts.items()):
        x, top = (_WIDTH + _GAP) * (place % _PER_ROW), _PITCH * (place // _PER_ROW)
        floor = top + 32 + _HEIGHT
        parts += [name_text(x, top + 12, system, cells=20), line("axis", (x, floor), (x + _WIDTH, floor))]
        for k, (head, n) in enumerate(zip(heads, row, strict=True)):
            tall, start, middle = _HEIGHT * n / tallest, x + step * k, x + step * (k + 0.5)
            drawn = [rect("bar", (start + 1, floor - tall), (step - 2, tall))]
            drawn += [text(middle, floor - tall - 4, f"{n:,}", "tick", "middle")] if n else []
            parts.append(group(f"{head}: {n:,} of {plural(sum(row), 'score')}", *drawn))
            first, last = k == 0, k == len(heads) - 1
            if len(heads) < _FEW or first or last:
                parts.append(text(middle, floor + 13, head.split("–")[-1 if last else 0], "tick", "middle"))
        described.append(f"{system} " + ", ".join(f"{n} × {head}" for head, n in zip(heads, row, strict=True) if n))
    across, down = min(_PER_ROW, len(counts)) or 1, -(-len(counts) // _PER_ROW) or 1
    size = ((_WIDTH + _GAP) * across - _GAP, _PITCH * down - 16)
    return chart(name, title, size, parts, values=described, caption=caption)


def bins(
    scale: Mapping[str, float], ends: tuple[float | None, float | None], values: Sequence[float]
) -> tuple[list[float], list[str]]:
    """Return the inner edges of the bins and the bins' labels.

    A scale of up to eleven labels has a bin per label, for the scores nearest to it (halves go up); any other has ten
    equal bins.
    """
    if 2 <= len(scale) <= 11:
        labels = sorted(scale, key=lambda label: scale[label])
        return [(scale[a] + scale[b]) / 2 for a, b in pairwise(labels)], [minus(label) for label in labels]
    low = min(values, default=0.0) if ends[0] is None else ends[0]
    high = max(values, default=1.0) if ends[1] is None else ends[1]
    width = ((high - low) or 1.0) / 10
    places = decimals([high, low])
    starts = [low + k * width for k in range(10)]
    return starts[1:], [f"{number(s, places)}–{number(s + width, places)}" for s in starts]
