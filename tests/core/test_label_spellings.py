"""The names of labels: digits, signs and words."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core import normalization
from judge.core.label_spellings import fold, format_decimal, is_number, label_index, signed
from judge.core.records import Scale

TEN = Scale.integers(0, 10)


@given(st.text() | st.text(st.characters(categories=["Nd", "No", "Mn", "Me", "Cf", "Lo"])))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(normalization.fold(text)) == fold(text) or "½" in text


def test_every_digit_of_unicode_is_one_of_ascii() -> None:
    digits = [
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Nd"
    ]
    assert len(digits) > 600
    assert [fold(digit) for digit in digits] == [
        str(unicodedata.decimal(digit)) for digit in digits
    ]


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("④", "4"),
        ("⑩", "10"),
        ("4️⃣", "4"),
        ("٣٫٥", "3.5"),
        ("\u2067٤\u2069", "4"),
        ("\u061c-٤", "-4"),
        ("㊃", "四"),
        ("4½", "4.5"),
    ],
)
def test_folds_case_space_and_punctuation(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text("–-−+0.19", max_size=4))
def test_a_sign_changes_nothing_but_the_first_character(text: str) -> None:
    assert signed(text)[1:] == text[1:]
    assert signed(signed(text)) == signed(text)


@given(st.decimals(-999, 999, places=3))
def test_the_shortest_form_of_a_number_is_equal_to_it(number: object) -> None:
    text = f"{number:f}"
    assert float(format_decimal(text)) == float(text)
    assert len(format_decimal(text)) <= len(text)
    assert is_number(format_decimal(text))


# The numbers 0 to 10 as Unicode has them (the numeric value of a character is the oracle), and as they are spelt.
HAN = "零一二三四五六七八九十"


@pytest.mark.parametrize("word", [*HAN, "〇"])
def test_the_words_of_one_character_have_their_number(word: str) -> None:
    assert label_index(TEN).label(word) == f"{unicodedata.numeric(word):g}"


@pytest.mark.parametrize(
    "row",
    [
        "zero one two three four five six seven eight nine ten",
        "ZERO One tWo THREE Four Five Six Seven Eight Nine TEN", "영 일 이 삼 사 오 육 칠 팔 구 십",
        "공 하나 둘 셋 넷 다섯 여섯 일곱 여덟 아홉 열", "공 한 두 세 네 다섯 여섯 일곱 여덟 아홉 열",
        "ゼロ 一 二 三 四 五 六 七 八 九 十", "〇 一 两 三 四 五 六 七 八 九 十", "零 一 兩 三 四 五 六 七 八 九 十",
    ],
)  # fmt: skip
def test_the_words_for_zero_to_ten(row: str) -> None:
    assert [label_index(TEN).label(word) for word in row.split()] == list(TEN.labels)


def test_words_are_for_the_numbers_of_the_scale_alone() -> None:
    hundred = label_index(Scale.integers(0, 100, 10))
    assert set(hundred.words) | set(hundred.counted) == {
        "zero", "〇", "零", "ゼロ", "영", "공", "ten", "十", "십", "열",
    }  # fmt: skip
    assert not label_index(Scale(("fail", "pass"), (0.0, 1.0))).words
    assert label_index(Scale.integers(1, 5)).label("six") is None


def test_a_labels_own_name_is_before_any_word() -> None:
    called = label_index(Scale(("1", "2", "one", "Two"), (1.0, 2.0, 3.0, 4.0)))
    assert [called.label(text) for text in ("1", "2", "one", "ONE", "two", "一")] == [
        "1", "2", "one", "one", "Two", "1",
    ]  # fmt: skip
    cased = label_index(Scale(("1", "One", "one"), (1.0, 2.0, 3.0)))
    assert [cased.label(text) for text in ("One", "one", "ONE", "1.0")] == ["One", "one", None, "1"]


def test_an_ambiguous_spelling_matches_no_label() -> None:
    called = label_index(Scale(("4", "٤", "5"), (1.0, 2.0, 3.0)))
    assert (called.label("4"), called.label("٤"), called.label("5")) == (None, None, "5")
    assert not label_index(Scale(("", " "), (1.0, 2.0))).labels


def test_numbers_may_be_written_longer_and_with_a_sign() -> None:
    called = label_index(Scale(("–1", "0.0", "+1"), (-1.0, 0.0, 1.0)))
    assert [called.label(text) for text in ("-1", "–1", "-1.00", "0", "1", "+1.0", "-0.5")] == [
        "–1", "–1", "–1", "0.0", "+1", "+1", None,
    ]  # fmt: skip
    assert (called.ends, called.below_zero) == (("–1", "+1"), True)
    assert not label_index(TEN).below_zero
