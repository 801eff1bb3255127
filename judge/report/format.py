"""Write the values of a column for readers: means, intervals and single scores."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from judge.core.format import decimals, format_interval, minus, number, one_line
from judge.core.records import Column, Estimate

_TITLES = {
    "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L", "rougeLsum": "ROUGE-Lsum", "bleu": "BLEU",
    "bleu_corpus": "corpus BLEU", "chrf": "chrF", "ter": "TER", "meteor": "METEOR", "cider": "CIDEr",
    "bertscore_f1": "BERTScore", "qags": "QAGS",
}  # fmt: skip
_MAX_NAME = 60  # characters of a name in a sentence
_SENTENCE = 20  # letters
_RTL = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001eeff"
_RTL_NAME = re.compile(f"[{_RTL}](?:[{_RTL} _'’-]*[{_RTL}])?(?:[-_]\\d+)?…?")


def isolate(text: str, start: str = "\u2068", end: str = "\u2069") -> str:
    """Put names of a right-to-left script between `start` and `end`, so that they do not reorder
    what follows them.

    The default marks are Unicode's first-strong isolate and its end, for SVG and attributes.
    """
    return text if text.isascii() else _RTL_NAME.sub(lambda name: f"{start}{name[0]}{end}", text)


def is_rtl(text: str) -> bool:
    """Return whether a text is written in a right-to-left script, and not a sentence in English
    with such names."""
    letters = 0 if text.isascii() else len(re.findall(f"[{_RTL}]", text))
    return letters >= _SENTENCE and letters > 0.8 * sum(map(str.isalpha, text))


def column_title(name: str) -> str:
    """Return the name of a column as papers write it: `ROUGE-1` for `rouge1`."""
    return _TITLES.get(name, one_line(name, _MAX_NAME))


def share_label(column: Column) -> str:
    """Return the label whose mean probability the column's mean is, such as `pass`; nothing for any
    other scale."""
    if (
        len(column.labels) == 2
        and not _numeric(column.labels)
        and sorted(column.values) == [0.0, 1.0]
    ):
        return column.labels[column.values.index(1.0)]
    return ""


def mean_text(column: Column, value: float, places: int) -> str:
    """Write a mean: `3.92`, or `64%` if it is the mean probability of a label."""
    return f"{number(100 * value, 0)}%" if share_label(column) else number(value, places)


def interval_text(column: Column, low: float | None, high: float | None, places: int) -> str:
    """Write an interval in the unit of `mean_text`: `[3.70, 4.11]`, `[51, 75]`."""
    return (
        format_interval(low, high, 0, 100)
        if share_label(column)
        else format_interval(low, high, places)
    )


def estimate_text(column: Column, estimate: Estimate, places: int) -> str:
    """Write a mean in words with its interval: `3.63 of 5 [3.24, 3.95]`, `mean probability of pass
    64% [51, 75]`."""
    mean = mean_text(column, estimate.value, places)
    if label := share_label(column):
        mean = f"mean probability of {label} {mean}"
    elif column.high is not None and column.kind == "criterion":
        mean += f" on {scale_text(column)}" if in_words(column) else f" of {column.high:g}"
    return f"{mean} {interval_text(column, estimate.low, estimate.high, places)}".rstrip()


def score_text(column: Column, value: float, places: int = 2) -> str:
    """Write the score of one text: `4.25`, or the nearest label of a scale of words."""
    if in_words(column):
        return min(
            zip(column.labels, column.values, strict=True), key=lambda pair: abs(pair[1] - value)
        )[0]
    text = number(value, places)
    return text.rstrip("0").rstrip(".") if "." in text else text


def pass_text(column: Column) -> str:
    """Write the least value that passes, `4`; `good` if it is the middle between this label and the
    next lower one."""
    least = column.pass_at or 0.0
    levels = sorted(zip(column.values, column.labels, strict=True)) if in_words(column) else []
    middles = {
        (low + high) / 2: label for (low, _), (high, label) in pairwise(levels) if low < high
    }
    return middles.get(least) or minus(f"{least:g}")


def scale_text(column: Column) -> str:
    """Write the ends of a criterion's scale, `1–5` or `rude 0 – polite 1`; nothing for shares and
    other columns."""
    if (
        column.kind != "criterion"
        or column.low is None
        or column.high is None
        or share_label(column)
    ):
        return ""
    if in_words(column):
        (low, lowest), *_, (high, highest) = sorted(zip(column.values, column.labels, strict=True))
        return f"{lowest} {minus(f'{low:g}')} – {highest} {minus(f'{high:g}')}"
    return (
        f"{number(column.low, 0)}–{number(column.high, 0)}"
        if column.low % 1 == column.high % 1 == 0
        else ""
    )


def decimal_places(column: Column, values: Iterable[float]) -> int:
    """Return the number of decimals for the means of a column."""
    ends = [column.low, column.high]
    return decimals([end for end in ends if end is not None] if None not in ends else values)


def share_of_scale(column: Column, value: float) -> float | None:
    """Return the value as a share of its scale, 0 the worse end and 1 the better one; None without
    a scale."""
    if column.low is None or column.high is None or column.high <= column.low:
        return None
    share = (value - column.low) / (column.high - column.low)
    return min(1.0, max(0.0, 1 - share if column.better == "lower" else share))


def in_words(column: Column) -> bool:
    """Return whether the labels of the column's scale are words, such as `pass` and `fail`."""
    return bool(column.values) and not _numeric(column.labels)


def _numeric(labels: Iterable[str]) -> bool:
    return all(label.lstrip("+-−").replace(".", "", 1).isdigit() for label in labels)
