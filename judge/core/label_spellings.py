"""The ways in which the labels of a scale may be written: digits of any script, signs, number words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from judge.core import records
from judge.core.records import Scale

# Marks of direction, which stand around numbers in Arabic and Hebrew, and the box of the keycap emoji.
_FOLDED: dict[int, str | None] = dict.fromkeys(
    map(ord, "\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u20e3")
)
_FOLDED[ord("½")] = ".5"  # NFKC would make "41⁄2" of "4½"
_DECIMAL_SIGN = "\u066b"
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")

DASHES = "–‒➖"
"""What may stand for a minus, but only right before a digit: elsewhere it parts words or begins a range."""
_DASHED = re.compile(rf"^[{DASHES}](?=[0-9]|$)")

UNITS = "점点分"
# One row for each number from 0. The words of the second column are common words or parts of them (Korean "네" is
# "yes" as well), and count only with a unit after them.
_WORDS = (
    ("zero 〇 零 ゼロ", "영 공"),
    ("one 一", "일 한 하나"),
    ("two 二", "이 두 둘 两 兩"),
    ("three 三", "삼 세 셋"),
    ("four 四", "사 네 넷"),
    ("five 五", "오 다섯"),
    ("six 六", "육 여섯"),
    ("seven 七", "칠 일곱"),
    ("eight 八", "팔 여덟"),
    ("nine 九", "구 아홉"),
    ("ten 十", "십 열"),
)
HAN = "〇零一二三四五六七八九十"

is_number = re.compile(r"[-+]?[0-9]++(?:\.[0-9]++)?").fullmatch


def fold(text: str) -> str:
    """Apply `records.fold` and convert the decimal digits of every script to ASCII. Idempotent."""
    if text.isascii():
        return text
    folded = records.fold(text.translate(_FOLDED)).replace(_DECIMAL_SIGN, ".")
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), folded)


def signed(text: str) -> str:
    """Replace a dash that stands right before the first digit, or alone, by an ASCII minus; `text` is folded."""
    return _DASHED.sub("-", text)


_MOST_STEPS = 1_000


def format_decimal(number: str) -> str:
    """Return a decimal without a plus sign and without trailing zeros."""
    number = number.removeprefix("+")
    return number.rstrip("0").rstrip(".") if "." in number else number


@dataclass(frozen=True, slots=True, eq=False)
class LabelIndex:
    """The spellings of a scale's labels: maps from folded spelling to label.

    `labels` are the labels themselves, by their `key`; `numbers` those that are numbers, by their shortest form, and
    `ends` the least and the greatest of them. `words` are the words in English, Chinese, Japanese and Korean for the
    whole numbers 0 to 10 among those, in lower case; `counted` words that mean a number only with one of `UNITS` after
    them. A label is never another label's word, and what two labels would both be called is the name of neither.
    `loose` says that upper and lower case do not matter, `below_zero` that some number is less than 0, so that others
    may wear a +.
    """

    labels: Mapping[str, str]
    numbers: Mapping[str, str]
    words: Mapping[str, str]
    counted: Mapping[str, str]
    ends: tuple[str | None, str | None]
    loose: bool
    below_zero: bool

    def key(self, text: str) -> str:
        """Return the key of folded text in `labels`."""
        text = signed(text.strip())
        return text.casefold() if self.loose else text

    def missing_step(self, text: str) -> str:
        """Return the step with which a scale has a folded number, such as 0.01 for 4.77; "" for one that no step gives.

        Of numbers with more decimals it is the step to round them to.
        """
        low, high = self.ends
        number = signed(text.strip()).replace(",", ".")
        try:
            inside = low is not None and high is not None and float(low) < float(number) < float(high)
        except ValueError:
            return ""
        decimals = format_decimal(number).partition(".")[2]
        if not inside or not decimals:
            return ""
        span = float(high or 0) - float(low or 0)
        steps = {1: "0.1", 2: "0.01"}  # a scale has at most 1,000 labels
        allowed = [steps[places] for places in (1, 2) if places <= len(decimals) and span * 10**places < _MOST_STEPS]
        return allowed[-1] if allowed else "0.5"

    def label(self, text: str) -> str | None:
        """Return the label that folded text spells. The caller checks that a unit follows a counted word."""
        if label := self.labels.get(self.key(text)):
            return label
        key = signed(text.strip()).casefold()
        number = format_decimal(key.replace(",", "."))
        return self.words.get(key) or self.counted.get(key) or self.numbers.get(number)

    def is_half(self, text: str) -> bool:
        """Return whether folded text is a number half a point from two labels."""
        number = signed(text.strip())
        beside = {format_decimal(f"{float(number) + half:f}") for half in (-0.5, 0.5)} if is_number(number) else {""}
        return beside <= self.numbers.keys()


@lru_cache(maxsize=256)
def label_index(scale: Scale) -> LabelIndex:
    """Return the spellings of a scale's labels."""
    folded = [signed(fold(label).strip()) for label in scale.labels]
    loose = len({text.casefold() for text in folded}) == len(folded)
    keys = [text.casefold() if loose else text for text in folded]
    labels = {key: label for key, label in zip(keys, scale.labels, strict=True) if key and keys.count(key) == 1}
    numbers: dict[str, str] = {}
    for key, label in labels.items():
        if is_number(key):
            numbers.setdefault(format_decimal(key), label)
    taken = {text.casefold() for text in folded}
    words, counted = (
        {
            word: numbers[str(n)]
            for n, columns in enumerate(_WORDS)
            if str(n) in numbers
            for word in columns[column].split()
            if word not in taken
        }
        for column in (0, 1)
    )
    ends = numbers.get(min(numbers, key=float, default="")), numbers.get(max(numbers, key=float, default=""))
    below_zero = any(number.startswith("-") for number in numbers)
    return LabelIndex(labels, numbers, words, counted, ends, loose, below_zero)
