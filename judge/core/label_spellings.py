"""The ways in which the labels of a scale may be written: digits of any script, signs, number words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
            inside = (
                low is not None and high is not None and float(low) < float(number) < float(high)
            )
        except ValueError:
            return ""
        decimals = format_decimal(number).partition(".")[2]
        if not inside or not decimals:
            return ""
        span = float(high or 0) - float(low or 0)
        steps = {1: "0.1", 2: "0.01"}  # a scale has at most 1,000 labels
        allowed = [
            steps[places]
            for places in (1, 2)
            if places <= len(decimals) and span * 10**places < _MOST_STEPS
        ]
        return allowed[-1] if allowed else "0.5"

    def label(self, text: str) -> str | None:
        """Return the label that folded text spells. The caller checks that a unit follows a counted word."""
        if label := self.labels.get(self.key(text)):
            return label
        key = signed(text.strip()).casefold()
        number = format_decimal(re.sub(r"^([-+]?)\.", r"\g<1>0.", key.replace(",", ".")))
        return self.words.get(key) or self.counted.get(key) or self.numbers.get(number)

    def ends_are(self, low: str, high: str) -> bool:
        """Return whether these are the least and the greatest number of the scale, as folded text."""
        return None not in self.ends and (self.label(low), self.label(high)) == self.ends

    def is_half(self, text: str) -> bool:
        """Return whether folded text is a number half a point from two labels."""
        number = signed(text.strip())
        beside = (
            {format_decimal(f"{float(number) + half:f}") for half in (-0.5, 0.5)}
            if is_number(number)
            else {""}
        )
        return beside <= self.numbers.keys()


@lru_cache(maxsize=256)
def label_index(scale: Scale) -> LabelIndex:
    """Return the spellings of a scale's labels."""
    folded = [signed(fold(label).strip()) for label in scale.labels]
    loose = len({text.casefold() for text in folded}) == len(folded)
    keys = [text.casefold() if loose else text for text in folded]
    labels = {
        key: label
        for key, label in zip(keys, scale.labels, strict=True)
        if key and keys.count(key) == 1
    }
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
    ends = (
        numbers.get(min(numbers, key=float, default="")),
        numbers.get(max(numbers, key=float, default="")),
    )
    below_zero = any(number.startswith("-") for number in numbers)
    return LabelIndex(labels, numbers, words, counted, ends, loose, below_zero)


# Words for "yes" and "no". A label in one language may be given in another.
_YES = (
    "yes", "y", "true", "t", "예", "네", "넵", "그렇습니다", "그렇다", "맞습니다", "맞다", "참",
    "はい", "ええ", "そうです", "真",
    "是", "是的", "对", "對", "对的", "真的",
    "oui", "vrai", "ja", "wahr", "sí", "sim", "verdadero", "vero",
    "да", "верно", "có", "đúng", "ใช่", "نعم", "हाँ", "tak", "prawda", "evet",
)  # fmt: skip
_NO = (
    "no", "n", "false", "f", "아니오", "아니요", "아뇨", "아닙니다", "아니다", "그렇지않습니다", "거짓",
    "いいえ", "いえ", "違います", "偽",
    "否", "不是", "不是的", "不", "不对", "不對", "假",
    "non", "faux", "nein", "falsch", "não", "falso",
    "нет", "неверно", "không", "sai", "ไม่", "ไม่ใช่", "لا", "नहीं", "nie", "fałsz", "hayır",
)  # fmt: skip
# Labels for which "true" and "false" stand as well.
_GOOD = {
    *_YES,
    "pass",
    "passed",
    "correct",
    "good",
    "right",
    "relevant",
    "합격",
    "통과",
    "정답",
    "合格",
    "正解",
    "正确",
    "通过",
}
_TENS = ("ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_HAN_DIGITS = "一二三四五六七八九"
_KOREAN_DIGITS = "일이삼사오육칠팔구"
_STARS = (("★", "☆"), ("★", "✩"), ("⭐", "☆"), ("🌟", "☆"))
FULL_MARKS = ("満点", "满分", "滿分", "만점", "full marks", "top marks", "full score")


@lru_cache(maxsize=256)
def spelled_out(scale: Scale) -> LabelIndex:
    """Return the spellings of a scale's labels in replies that are not in the requested form.

    Besides those of `label_index`: full marks, stars ("★★★★☆"), numbers to 100 in words, "yes" and "no" in other
    languages, and "true" and "false" for two labels.
    """
    index = label_index(scale)
    words = dict(index.words)
    counted = dict(index.counted)

    def add(word: str, label: str, among: dict[str, str] = words) -> None:
        if word not in index.labels:
            among.setdefault(word, label)

    for number, label in index.numbers.items():
        if number.isdecimal() and 10 < int(number) <= 100:
            han, korean, english = _spellings(int(number))
            for word in han:
                add(word, label)
            for word in english:
                add(word, label)
            for word in korean:
                add(word, label, counted)
    high = index.ends[1]
    if high is not None and len(index.numbers) == len(scale.labels):
        for word in FULL_MARKS:
            add(word, high)
        if high.isdecimal() and 2 <= int(high) <= 10:
            _add_stars(index.numbers, int(high), add)
    for word, label in _yes_and_no(scale, index).items():
        add(word, label)
    return replace(index, words=words, counted=counted)


def _spellings(number: int) -> tuple[list[str], list[str], list[str]]:
    """Return how a number from 11 to 100 is written in Chinese and Japanese, in Korean, and in English."""
    if number == 100:
        return ["一百", "百"], ["백", "일백"], ["one hundred", "a hundred"]
    tens, ones = divmod(number, 10)
    han = (
        ("" if tens == 1 else _HAN_DIGITS[tens - 1])
        + "十"
        + (_HAN_DIGITS[ones - 1] if ones else "")
    )
    korean = (
        ("" if tens == 1 else _KOREAN_DIGITS[tens - 1])
        + "십"
        + (_KOREAN_DIGITS[ones - 1] if ones else "")
    )
    if tens == 1:
        return [han], [korean], []
    if not ones:
        return [han], [korean], [_TENS[tens - 1]]
    return [han], [korean], [f"{_TENS[tens - 1]}{mark}{_ONES[ones - 1]}" for mark in "- "]


def _add_stars(numbers: Mapping[str, str], top: int, add: Callable[[str, str], None]) -> None:
    """Add rows of stars that are as long as the scale; without empty ones, nothing says how long it is."""
    for full, empty in _STARS:
        for count in range(top):
            if label := numbers.get(str(count)):
                add(full * count + empty * (top - count), label)
    add("★" * top, numbers[str(top)])


def _yes_and_no(scale: Scale, index: LabelIndex) -> dict[str, str]:
    """Return other words for the labels of a question that is answered by yes or no, true or false, pass or fail."""
    if len(scale.labels) != 2:
        return {}
    first, second = (
        next((k for k, label in index.labels.items() if label == own), "").casefold()
        for own in scale.labels
    )
    for yes, no, labels in ((first, second, scale.labels), (second, first, scale.labels[::-1])):
        if yes in _YES and no in _NO:
            return dict.fromkeys(_YES, labels[0]) | dict.fromkeys(_NO, labels[1])
        if yes in _GOOD and scale.value(labels[0]) > scale.value(labels[1]):
            return {"true": labels[0], "false": labels[1]}
    return {}
