"""Write the values of a column for readers: means, intervals and single scores."""

from __future__ import annotations

import re
from collections.abc import Iterable

from judge.core.format import (
    decimals,
    format_interval,
    minus,
    number,
    one_line,
    whole_percent,
)
from judge.core.records import Column, Estimate
from judge.core.scale_words import in_words, is_numeric

_TITLES = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "rougeLsum": "ROUGE-Lsum",
    "bleu": "BLEU",
    "bleu_corpus": "corpus BLEU",
    "chrf": "chrF",
    "ter": "TER",
    "meteor": "METEOR",
    "cider": "CIDEr",
    "bertscore_f1": "BERTScore",
    "qags": "QAGS",
}
_MAX_NAME = 60  # characters of a name in a sentence
_MIN_SENTENCE = 20  # letters; fewer are a name
_MIN_RTL_SHARE = 0.8  # of a text's letters
# The blocks of right-to-left scripts: from Hebrew to Arabic Extended-A, their presentation forms
# (which end before the byte order mark U+FEFF), and the historical and African ones of plane 1.
_RTL = (
    "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001eeff"
)
# `نموذج-2.5 كبير`, `בית-2` or `דגם א…`: letters with blanks, hyphens and numbers between them, a
# number after a hyphen, a mark of a cut. A number after a blank belongs to the name only if letters
# follow: in `בית 3` it is a score.
_INSIDE_RTL_NAME = f"[{_RTL} \\d_'’-]|(?<=\\d)\\.(?=\\d)"
_RTL_NAME = re.compile(
    f"[{_RTL}](?:(?:{_INSIDE_RTL_NAME})*[{_RTL}])?(?:[-_]\\d+(?:\\.\\d+)*)?…?"
)


def isolate(
    text: str, opening_mark: str = "\u2068", closing_mark: str = "\u2069"
) -> str:
    """Put names of a right-to-left script between `opening_mark` and `closing_mark`.

    A name that is not isolated would reorder the numbers after it. The default marks are Unicode's
    first-strong isolate and its end, for SVG and attributes.
    """
    if text.isascii():
        return text
    return _RTL_NAME.sub(lambda name: f"{opening_mark}{name[0]}{closing_mark}", text)


def is_rtl(text: str) -> bool:
    """Return whether a text is written in a right-to-left script.

    A sentence in English with names of such a script is not.
    """
    if text.isascii():
        return False
    # Arabic and Hebrew letters, such as those of שלום.
    rtl_letters = len(re.findall(f"[{_RTL}]", text))
    letters = sum(map(str.isalpha, text))
    return rtl_letters >= _MIN_SENTENCE and rtl_letters > _MIN_RTL_SHARE * letters


def column_title(name: str) -> str:
    """Return the name of a column as papers write it: `ROUGE-1` for `rouge1`."""
    return _TITLES.get(name, one_line(name, _MAX_NAME))


def share_label(column: Column) -> str:
    """Return the label with the value 1 if the scale is two words with the values 0 and 1.

    The mean of such a column is the mean probability of this label, such as `pass`. Return "" for
    any other scale.
    """
    if len(column.labels) != 2 or is_numeric(column.labels):
        return ""
    if sorted(column.values) != [0.0, 1.0]:
        return ""
    return column.labels[column.values.index(1.0)]


def share_words(column: Column) -> str:
    """Return what the mean of a column of verdicts is: `mean probability of pass`.

    Verdicts from elsewhere have no probabilities: `share of pass`. Return "" for any other scale.
    """
    label = share_label(column)
    if not label:
        return ""
    if column.signature.is_external:
        return f"share of {label}"
    return f"mean probability of {label}"


def mean_text(column: Column, value: float, places: int) -> str:
    """Write a mean: `3.92`, or `64%` if it is the mean probability of a label."""
    if share_label(column):
        return whole_percent(value)
    return number(value, places)


def interval_text(
    column: Column,
    low: float | None,
    high: float | None,
    places: int,
) -> str:
    """Write an interval in the unit of `mean_text`: `[3.70, 4.11]`, `[51, 75]`."""
    if share_label(column):
        return format_interval(low, high, 0, 100)
    return format_interval(low, high, places)


def estimate_text(column: Column, estimate: Estimate, places: int) -> str:
    """Write a mean in words with its interval.

    Examples: `3.63 of 5 [3.24, 3.95]`, `mean probability of pass 64% [51, 75]`.
    """
    mean = mean_text(column, estimate.value, places)
    share = share_words(column)
    if share:
        mean = f"{share} {mean}"
    elif column.high is not None and column.kind == "criterion":
        scale = f"of {column.high:g}"
        if in_words(column):
            scale = f"on {scale_text(column)}"
        mean = f"{mean} {scale}"
    interval = interval_text(column, estimate.low, estimate.high, places)
    return f"{mean} {interval}".rstrip()


def score_text(column: Column, value: float, places: int | None = None) -> str:
    """Write the score of one text: `4.25`, or the nearest label of a scale of words.

    It has this many decimals, or as many as it needs, at most 2. The scores of a list have equally
    many (`shortest_places`).
    """
    if in_words(column):
        distances = [abs(value_of_label - value) for value_of_label in column.values]
        nearest = distances.index(min(distances))
        return column.labels[nearest]
    if places is None:
        places = shortest_places([value])
    return number(value, places)


def shortest_places(values: Iterable[float], most: int = 2) -> int:
    """Return the decimals that a list of scores needs: 0 for 2 and 4, 1 for 1.5 and 2."""
    needed = 0
    for value in values:
        _, _, decimal_digits = number(value, most).partition(".")
        significant_digits = decimal_digits.rstrip("0")
        needed = max(needed, len(significant_digits))
    return needed


def scale_text(column: Column) -> str:
    """Write the ends of a criterion's scale: `1–5` or `rude 0 – polite 1`.

    Return "" for shares (`share_label`), for ends that are no whole numbers, and for metrics.
    """
    if column.kind != "criterion" or share_label(column):
        return ""
    if column.low is None or column.high is None:
        return ""
    if in_words(column):
        levels = sorted(zip(column.values, column.labels, strict=True))
        low, lowest = levels[0]
        high, highest = levels[-1]
        low_number = minus(f"{low:g}")
        high_number = minus(f"{high:g}")
        return f"{lowest} {low_number} – {highest} {high_number}"
    if column.low % 1 == column.high % 1 == 0:
        low_end = number(column.low, 0)
        high_end = number(column.high, 0)
        return f"{low_end}–{high_end}"
    return ""


def decimal_places(column: Column, values: Iterable[float]) -> int:
    """Return the number of decimals for the means of a column."""
    if column.low is None or column.high is None:
        return decimals(values)
    return decimals([column.low, column.high])
