"""Scripts and tokens. Oracles: examples by hand, and the tables of Unicode."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import text
from judge.text.languages import _frequent_characters

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)  # lone surrogates as well


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["The ferry was late."], "en"), (["배가 늦게 도착했다."], "ko"),
        (["서울의 새 버스 노선은 GPT와 API로 계획되었다"], "ko"), (["船は昼過ぎに着いた。"], "ja"), (["カフェ"], "ja"),
        (["渡轮下午才到港口。"], "zh"),
        (["渡轮下午才到港口，商店名叫优の良品。"], "zh"),  # one kana among sixteen letters
        (["Паром опоздал."], "en"), ([], "en"), (["", "1234 !?"], "en"),
        (["The ferry was late.", "배가 늦게 도착했고 승객들은 항구에서 오래 기다려야 했다."], "ko"),
        (["The ferry was late, as on most days of this winter.", "배가 늦었다."], "en"),
        (["OrbitはZX-5をリリースし、NorthwindのCloudで提供する。"], "ja"),  # words count, not letters
        (["The word こんにちは means hello."], "en"),
        (["A", "The 船は午後"], "ja"),  # two words each, in any order
        (["The 船は午後", "A"], "ja"), (["AB", "The 船午"], "en"), (["The 船午", "AB"], "en"),
    ],
)  # fmt: skip
def test_the_language_is_that_of_most_words(texts: list[str], expected: str) -> None:
    assert text.detect_language(texts) == expected


def test_language_detection_reads_a_limited_number_of_texts() -> None:
    def endless() -> object:
        while True:
            yield "배가 늦었다. "

    assert text.detect_language(endless()) == "ko"  # type: ignore[arg-type]


def test_one_long_text_does_not_decide_the_language() -> None:
    assert text.detect_language(["late " * 100_000, *["배가 늦게 도착했다. " * 20] * 50]) == "ko"


@given(ANY_TEXT)
def test_text_is_mostly_beyond_ascii_if_most_of_its_letters_are(line: str) -> None:
    lowered = unicodedata.normalize("NFKC", line).lower()
    letters = [c for c in lowered if unicodedata.category(c).startswith("L")]
    ascii_letters = re.findall(r"[a-z]", lowered)
    assert text.is_mostly_beyond_ascii(line) == (
        len(letters) - len(ascii_letters) > len(letters) / 2
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The Ferry, at 9:30!", ["the", "ferry", "at", "9", "30"]), ("ＦＥＲＲＹ ｶﾞﾑ", ["ferry", "ガ", "ム"]),
        ("船が着く。", ["船", "が", "着", "く"]), ("渡轮A3号", ["渡", "轮", "a3", "号"]),
        ("버스가 왔다", ["버", "스", "가", "왔", "다"]), ("버스".join(["", "abc"]), ["버", "스", "abc"]),
        (unicodedata.normalize("NFD", "버스 café"), ["버", "스", "café"]), ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("ภาษาที่ เก้า", ["ภา", "ษา", "ที่", "เก้า"]), ("ភាសាខ្មែរ", ["ភា", "សា", "ខ្មែ", "រ"]),
        ("ພາສາ", ["ພາ", "ສາ"]), ("မြန်မာ", ["မြ", "န်", "မာ"]), ("שָׁלוֹם عَرَبِيّ", ["שָׁלוֹם", "عَرَبِيّ"]),
        ("Паром опоздал.", ["паром", "опоздал"]), ("𠮷野家", ["𠮷", "野", "家"]), ("😀 ❤️ … \ud800", []), ("", []),
    ],
)  # fmt: skip
def test_tokens_by_hand(line: str, expected: list[str]) -> None:
    assert text.tokens(line) == [unicodedata.normalize("NFKC", token) for token in expected]


@given(ANY_TEXT)
def test_tokens_of_any_text_have_all_its_letters_and_no_space(line: str) -> None:
    tokens = text.tokens(line)
    normal = unicodedata.normalize("NFKC", line).lower()
    assert [c for c in "".join(tokens) if c.isalnum()] == [c for c in normal if c.isalnum()]
    assert all(token and not re.search(r"\s", token) for token in tokens)


def test_the_frequent_characters_are_the_first_level_of_the_standards() -> None:
    characters = {
        writing: {c for c in letters if "\u4e00" <= c <= "\u9fff"}
        for writing, letters in _frequent_characters().items()
    }
    assert {writing: len(letters) for writing, letters in characters.items()} == {
        "ja": 2_965, "Simplified": 3_755, "Traditional": 5_401,
    }  # fmt: skip
    assert "腕" in characters["ja"]  # the last of JIS X 0208's level 1
    assert "座" in characters["Simplified"]
    assert "籲" in characters["Traditional"]
