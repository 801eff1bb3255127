"""Spellings of the labels of a scale: digits of any script, signs, number words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from judge.core import normalization
from judge.core.records import Scale

# Marks of direction, which surround numbers in Arabic and Hebrew, and the box of the keycap emoji.
_FOLDED: dict[int, str | None] = dict.fromkeys(
    map(ord, "\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u20e3")
)
# NFKC would make "41⁄2" of "4½".
_FOLDED[ord("½")] = ".5"
# The Arabic decimal separator: "٤٫٥" is 4.5.
_DECIMAL_SIGN = "\u066b"
# "٤" (Arabic), "४" (Devanagari)
_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")

DASHES = "–‒➖"
"""Dashes that are a minus right before a digit; elsewhere they separate words or begin a range."""
# "–2", or "–" alone
_DASHED = re.compile(rf"^[{DASHES}](?=[0-9]|$)")

UNITS = "점点分"
# One row for each number from 0. The words of the second column are also common words or parts of
# them (Korean "네" is "yes", too), so they count only with a unit after them.
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

# "4", "-1", "+3.50"
is_number = re.compile(r"[-+]?[0-9]++(?:\.[0-9]++)?").fullmatch


def fold(text: str) -> str:
    """Apply `normalization.fold`, and convert the digits of every script to ASCII. Idempotent."""
    if text.isascii():
        return text
    without_marks = text.translate(_FOLDED)
    folded = normalization.fold(without_marks).replace(_DECIMAL_SIGN, ".")

    def decimal_digit(match: re.Match[str]) -> str:
        return str(unicodedata.decimal(match[0]))

    return _FOREIGN_DIGIT.sub(decimal_digit, folded)


def signed(text: str) -> str:
    """Replace a dash before the first digit, or alone, by an ASCII minus; `text` is folded."""
    return _DASHED.sub("-", text)


# A scale has at most 1,000 labels.
_MOST_STEPS = 1_000
# ".5" and "-.5": numbers without a digit before the point
_MISSING_ZERO = re.compile(r"^([-+]?)\.")


def format_decimal(number: str) -> str:
    """Return a decimal without a plus sign and without trailing zeros."""
    number = number.removeprefix("+")
    if "." not in number:
        return number
    return number.rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True, eq=False)
class LabelIndex:
    """The spellings of a scale's labels: maps from folded spelling to label.

    `labels` are the labels themselves by their `key`; `numbers` are those that are numbers, by
    their shortest form, and `ends` the smallest and the largest of them.

    `words` maps English, Chinese, Japanese and Korean number words (0 to 10, lower case) to labels.
    `counted` maps words that mean a number only before one of `UNITS`. A label is never another
    label's word, and a spelling that two labels share belongs to neither.

    `loose`: case is ignored. `below_zero`: the scale has negative numbers, so positive ones may be
    written with a +.
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
        spelling = signed(text.strip())
        if self.loose:
            return spelling.casefold()
        return spelling

    def missing_step(self, text: str) -> str:
        """Return the step with which a scale would have a folded number: 0.01 for 4.77.

        For a number with more decimals, it is the step to round it to. "" if no step helps.
        """
        lowest, highest = self.ends
        if lowest is None or highest is None:
            return ""
        number = signed(text.strip()).replace(",", ".")
        try:
            is_inside = float(lowest) < float(number) < float(highest)
        except ValueError:
            return ""
        _, _, decimals = format_decimal(number).partition(".")
        if not is_inside or not decimals:
            return ""
        span = float(highest) - float(lowest)
        if len(decimals) >= 2 and span * 100 < _MOST_STEPS:
            return "0.01"
        if span * 10 < _MOST_STEPS:
            return "0.1"
        return "0.5"

    def label(self, text: str) -> str | None:
        """Return the label that folded text spells.

        The caller checks that a unit follows a counted word.
        """
        label = self.labels.get(self.key(text))
        if label:
            return label
        spelling = signed(text.strip()).casefold()
        decimal = _MISSING_ZERO.sub(r"\g<1>0.", spelling.replace(",", "."))
        number = format_decimal(decimal)
        label = self.words.get(spelling) or self.counted.get(spelling)
        return label or self.numbers.get(number)

    def ends_are(self, lowest: str | None, highest: str) -> bool:
        """Return whether these folded texts are the smallest and largest number.

        A `lowest` of None is not compared.
        """
        if None in self.ends:
            return False
        smallest, largest = self.ends
        is_smallest = lowest is None or self.label(lowest) == smallest
        return is_smallest and self.label(highest) == largest

    def is_half(self, text: str) -> bool:
        """Return whether folded text is a number half a point from two labels."""
        number = signed(text.strip())
        if not is_number(number):
            return False
        value = float(number)
        below = format_decimal(f"{value - 0.5:f}")
        above = format_decimal(f"{value + 0.5:f}")
        return below in self.numbers and above in self.numbers


@lru_cache(maxsize=256)
def label_index(scale: Scale) -> LabelIndex:
    """Return the spellings of a scale's labels."""
    folded_labels = [signed(fold(label).strip()) for label in scale.labels]
    lower_labels = {text.casefold() for text in folded_labels}
    # Case matters only if two labels differ by nothing else.
    loose = len(lower_labels) == len(folded_labels)
    spellings = [text.casefold() if loose else text for text in folded_labels]
    keyed_labels = zip(spellings, scale.labels, strict=True)
    # A spelling that two labels share belongs to neither.
    labels = {
        spelling: label
        for spelling, label in keyed_labels
        if spelling and spellings.count(spelling) == 1
    }
    numbers: dict[str, str] = {}
    for spelling, label in labels.items():
        if is_number(spelling):
            numbers.setdefault(format_decimal(spelling), label)
    words: dict[str, str] = {}
    counted: dict[str, str] = {}
    for number, (plain_words, counted_words) in enumerate(_WORDS):
        if str(number) in numbers:
            label = numbers[str(number)]
            words |= dict.fromkeys(plain_words.split(), label)
            counted |= dict.fromkeys(counted_words.split(), label)
    # A label is never another label's word.
    for lower_label in lower_labels:
        words.pop(lower_label, None)
        counted.pop(lower_label, None)
    smallest = min(numbers, key=float, default="")
    largest = max(numbers, key=float, default="")
    below_zero = any(number.startswith("-") for number in numbers)
    return LabelIndex(
        labels=labels,
        numbers=numbers,
        words=words,
        counted=counted,
        ends=(numbers.get(smallest), numbers.get(largest)),
        loose=loose,
        below_zero=below_zero,
    )


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
# A reply may also be "true" if a scale has one of these labels, and "false" for its other label.
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
# Forms of one word, of which any may be a label
_VERB_FORMS = (
    ("pass", "passes", "passed"),
    ("fail", "fails", "failed"),
    ("accept", "accepted"),
    ("reject", "rejected"),
)
# Other words for a tie: the label of the value 0.5 beside A and B. A sentence may have them, too:
# "A and B are equally good."
_TIES = (
    "tie", "a tie", "it is a tie", "it's a tie", "tied", "a draw", "equal", "equally good",
    "on par",
    "neither is better", "neither text is better", "neither is better than the other",
    "neither text is better than the other", "as good as",
    "引き分け", "同じくらい良い", "同じくらい優れている", "同等", "互角", "同点",
    "무승부", "비슷", "비슷합니다", "동등", "똑같이 좋습니다", "똑같이 좋다",
    "平局", "平手", "差不多", "一样", "一樣", "相当", "相當",
    "一样好", "一樣好", "同样好", "同樣好", "不相上下", "旗鼓相当", "旗鼓相當",
)  # fmt: skip
_TENS = (
    "ten",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
)
_ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_HAN_DIGITS = "一二三四五六七八九"
_KOREAN_DIGITS = "일이삼사오육칠팔구"
_STARS = (("★", "☆"), ("★", "✩"), ("⭐", "☆"), ("🌟", "☆"))
FULL_MARKS = ("満点", "满分", "滿分", "만점", "full marks", "top marks", "full score")


@lru_cache(maxsize=256)
def spelled_out(scale: Scale) -> LabelIndex:
    """Return the spellings of a scale's labels in replies that are not in the requested form.

    They add these to the spellings of `label_index`: full marks, stars ("★★★★☆"), numbers to 100 in
    words, labels of several words that are joined ("not_supported"), other forms of a verb
    ("failed" for fail), "yes", "no" and "tie" in other languages, and "true" and "false" for two
    labels.
    """
    index = label_index(scale)
    extra_words: dict[str, str] = {}
    extra_counted: dict[str, str] = {}
    for number, label in index.numbers.items():
        if number.isdecimal() and 10 < int(number) <= 100:
            spellings = _spellings(int(number))
            _add(extra_words, spellings.han, label)
            _add(extra_words, spellings.english, label)
            _add(extra_counted, spellings.korean, label)
    highest = index.ends[1]
    # Stars and full marks mean nothing if some of the labels are words.
    if highest is not None and len(index.numbers) == len(scale.labels):
        _add(extra_words, FULL_MARKS, highest)
        if highest.isdecimal() and 2 <= int(highest) <= 10:
            _add_stars(extra_words, index.numbers, int(highest))
    for spelling, label in index.labels.items():
        for mark in "_-":
            # "not_supported", "partially-correct"
            joined = re.sub(r"\s+", mark, spelling)
            extra_words.setdefault(joined, label)
        for forms in _VERB_FORMS:
            if spelling.casefold() in forms:
                _add(extra_words, forms, label)
    value_by_label = dict(zip(scale.labels, scale.values, strict=True))
    ties = [label for label, value in value_by_label.items() if value == 0.5]
    has_a_and_b = value_by_label.get("A") == 1 and value_by_label.get("B") == 0
    if has_a_and_b and len(ties) == 1:
        _add(extra_words, _TIES, ties[0])
    for word, label in _yes_and_no(scale, index).items():
        extra_words.setdefault(word, label)
    return replace(
        index,
        words=_with_extra(index, index.words, extra_words),
        counted=_with_extra(index, index.counted, extra_counted),
    )


@lru_cache(maxsize=256)
def truth_digits(scale: Scale) -> Mapping[str, str]:
    """Return the labels that "1" and "0" mean, for labels of these values that are yes and no.

    Empty for any other scale, also for labels such as toxic and clean: there a reply's 1 may mean
    the value, or the more natural answer.
    """
    index = spelled_out(scale)
    digits: dict[str, str] = {}
    for digit, word in (("0", "false"), ("1", "true")):
        label = index.words.get(word) or index.labels.get(word)
        if label and scale.value(label) == float(digit):
            digits[digit] = label
    if len(digits) < 2 or index.numbers:
        return {}
    return digits


def other_words(scale: Scale) -> Mapping[str, str]:
    """Return the words and digits for yes and no that are no labels of a scale."""
    words = _yes_and_no(scale, label_index(scale))
    return {**words, **truth_digits(scale)}


def _with_extra(
    index: LabelIndex,
    words: Mapping[str, str],
    extra_words: Mapping[str, str],
) -> dict[str, str]:
    """Return words with further ones; a label is never another label's word."""
    merged = dict(words)
    for word, label in extra_words.items():
        if word not in index.labels:
            merged.setdefault(word, label)
    return merged


def _add(words: dict[str, str], spellings: Iterable[str], label: str) -> None:
    for spelling in spellings:
        words.setdefault(spelling, label)


@dataclass(frozen=True, slots=True)
class _NumberSpellings:
    """A number in Chinese and Japanese (`han`), in Korean and in English."""

    han: list[str]
    korean: list[str]
    english: list[str]


def _spellings(number: int) -> _NumberSpellings:
    """Return how a number from 11 to 100 is written."""
    if number == 100:
        return _NumberSpellings(
            ["一百", "百"], ["백", "일백"], ["one hundred", "a hundred"]
        )
    tens, ones = divmod(number, 10)
    han = _tens_and_ones(tens, ones, _HAN_DIGITS, "十")
    korean = _tens_and_ones(tens, ones, _KOREAN_DIGITS, "십")
    # The English words from eleven to nineteen are irregular, and left out.
    english = []
    if tens > 1:
        word_for_tens = _TENS[tens - 1]
        english = [word_for_tens]
        if ones:
            word_for_ones = _ONES[ones - 1]
            hyphenated = f"{word_for_tens}-{word_for_ones}"
            english = [hyphenated, hyphenated.replace("-", " ")]
    return _NumberSpellings([han], [korean], english)


def _tens_and_ones(tens: int, ones: int, digits: str, ten: str) -> str:
    """Return a number below 100 in Chinese characters or Korean: 42 is four, ten, two."""
    text = ten
    if tens > 1:
        text = digits[tens - 1] + text
    if ones:
        text += digits[ones - 1]
    return text


def _add_stars(words: dict[str, str], numbers: Mapping[str, str], top: int) -> None:
    """Add rows of stars that are as long as the scale: "★★★★☆" is 4 of 5."""
    for full, empty in _STARS:
        for count in range(top):
            label = numbers.get(str(count))
            if label:
                full_stars = full * count
                empty_stars = empty * (top - count)
                words.setdefault(full_stars + empty_stars, label)
    # Without empty stars, only a full row shows how long the scale is.
    full_row = "★" * top
    words.setdefault(full_row, numbers[str(top)])


def _yes_and_no(scale: Scale, index: LabelIndex) -> dict[str, str]:
    """Return other words for the labels of a question with two opposite answers.

    These are yes or no, true or false, pass or fail.
    """
    if len(scale.labels) != 2:
        return {}
    spelling_by_label = {
        label: spelling.casefold() for spelling, label in index.labels.items()
    }
    for good, bad in (scale.labels, scale.labels[::-1]):
        good_word = spelling_by_label.get(good, "")
        bad_word = spelling_by_label.get(bad, "")
        if good_word in _YES and bad_word in _NO:
            return dict.fromkeys(_YES, good) | dict.fromkeys(_NO, bad)
        if good_word in _GOOD and scale.value(good) > scale.value(bad):
            return {"true": good, "false": bad}
    return {}
