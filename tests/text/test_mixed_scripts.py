"""Texts with several scripts: no letter is lost, and the language is that of most words."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.tokenizers import DefaultTokenizer

from judge import text
from judge.core import plugins
from judge.core.records import Sample, Score
from judge.metrics import bleu
from tests.factories import skip_without_tokenizer

pytestmark = pytest.mark.extra

WORDS = (
    "LG OLED TV evo the ferry arrived café Müller naïve 3.5 ",
    "출시 단종 여객선이 도착했다 버스가 ",
    "渡轮 下午 到港 發售 國家 〇 ",
    "カフェ ふね 船が着いた ｶﾞﾑ ",
    "เรือ มาถึง ภาษาไทย ๓๕ ",
    "وصلت العبارة ٤٢ جہاز ",
    "паром опоздал Київ ",
    "नाव देर हिन्दी ४२ ",
    "שלום ספינה πλοίο Ⅳ ጀልባ ნავი նավ ભાષા தமிழ் ខ្មែរ မြန်မာ ລາວ ᠮᠣᠩᠭᠣᠯ ",
)
MIXED = st.lists(
    st.sampled_from([word for words in WORDS for word in words.split()]), max_size=9
).flatmap(
    lambda words: st.sampled_from([" ", "", "-", ", "]).map(lambda between: between.join(words))
)


def letters(string: str) -> list[str]:
    """Return all letters and decimal digits after NFKC, in lower case."""
    return [
        c for c in unicodedata.normalize("NFKC", string).lower() if c.isalpha() or c.isdecimal()
    ]


# kiwi is excluded because it returns other forms of words.
@pytest.mark.parametrize("name", [name for name in text.TOKENIZERS if name != "kiwi"])
@given(line=MIXED)
def test_every_letter_belongs_to_a_token(name: str, line: str) -> None:
    skip_without_tokenizer(name)
    if name == "en" and text.is_latin(line):
        return  # rouge-score's rules, which drop é
    assert letters("".join(text.words(name)(line))) == letters(line)


@pytest.mark.parametrize("name", ["13a", "intl", "zh", "char", "none", "ja-mecab", "ko-mecab"])
@given(line=MIXED)
def test_every_letter_belongs_to_a_token_of_sacrebleu(name: str, line: str) -> None:
    if name.endswith("-mecab"):
        skip_without_tokenizer(name[:2])
    assert letters("".join(bleu.Bleu(tokenize=name).words(name)(line))) == letters(line)


@given(first=MIXED, second=MIXED)
def test_the_tokenizer_of_a_row_loses_no_letters(first: str, second: str) -> None:
    name = text.tokenizer_for([first, second])
    if name == "en":  # drops letters other than a-z
        assert text.is_latin(first)
        assert text.is_latin(second)
        return
    words = text.words(name)
    for line in (first, second):
        assert letters("".join(words(line))) == letters(line)


@pytest.mark.parametrize(
    ("output", "reference"),
    [
        ("LG OLED TV evo 출시", "LG OLED TV evo 단종"), ("iPhone 15 Pro 発売", "iPhone 15 Pro 中止"),
        ("iPhone 15 Pro Max 上市", "iPhone 15 Pro Max 停产"), ("Toyota Prius GR เปิดตัว", "Toyota Prius GR ยกเลิก"),
        ("Toyota Prius hybrid вышла", "Toyota Prius hybrid снята"), ("the ferry نعم came", "the ferry لا came"),
        ("the new ferry नाव", "the new ferry बस"), ("Müller and the 船", "Möller and the 船"),
        ("the number is ٤", "the number is ٥"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["rouge", "meteor", "cider"])
def test_a_text_that_differs_in_another_script_scores_lower(
    name: str, output: str, reference: str
) -> None:
    def values(output: str) -> list[float]:
        rows = [
            Sample("1", "a", output, references=(reference,)),
            Sample("2", "a", "x", references=("some other words",)),
        ]
        return [
            row.value
            for row in plugins.load("metrics", name)().score(rows).rows[:1]
            if isinstance(row, Score)
        ]

    assert values(output) < values(reference)


def test_the_rouge_package_refuses_scripts_it_would_drop() -> None:
    metric = plugins.load("metrics", "rouge")(implementation="rouge-score")
    samples = [Sample("1", "a", "LG OLED TV evo 출시", references=("LG OLED TV evo 단종",))]
    assert {getattr(row, "error", "") for row in metric.score(samples).rows} == {"NotAscii"}
    assert metric.score([Sample("1", "a", "the café", references=("the cafe",))]).notes[0].some == 1


@given(rows=st.lists(st.tuples(MIXED, MIXED.filter(str.strip)), min_size=1, max_size=4))
def test_the_signature_names_the_tokenizer_of_every_row(rows: list[tuple[str, str]]) -> None:
    metric = plugins.load("metrics", "rouge")(types="rouge1")
    samples = [
        Sample(str(n), "a", output, references=(target,)) for n, (output, target) in enumerate(rows)
    ]
    (column,) = metric.score(samples).columns
    signed = next(part for part in str(column.signature).split("|") if part.startswith("tok="))
    used = {text.signature(text.tokenizer_for(row)) for row in rows}
    assert {*signed.removeprefix("tok=").split("+")} == used


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Müller's café", ["mü", "ller", "s", "café"]), ("über", ["über"]), ("LG가 TV를", ["lg", "가", "tv", "를"]),
        ("the паром", ["the", "паром"]), ("5μm, m²", ["5μ", "m", "m"]), ("the 渡轮", ["the", "渡", "轮"]),
        ("the ភាសា", ["the", "ភា", "សា"]), ("x्ष", ["x्ष"]), ("foo_bar", ["foo", "bar"]),
    ],
)  # fmt: skip
def test_words_of_texts_with_english_and_other_letters(line: str, expected: list[str]) -> None:
    assert text.words("en-all")(line) == expected
    if not text.is_latin(line):
        assert text.words("en")(line) == expected


@pytest.mark.parametrize("line", ["Müller's café and the naïve über Yûki", "½ m² Acme™ of foo_bar"])
def test_a_row_in_latin_letters_has_the_words_of_rouge_score(line: str) -> None:
    assert text.tokenizer_for([line]) in ("en", "words")
    assert text.words("en")(line) == DefaultTokenizer(use_stemmer=False).tokenize(line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("LG OLED TV evo 출시", {"en": 0.8, "ko": 0.2}), ("삼성전자가 새 Galaxy 를 공개했다", {"ko": 0.8, "en": 0.2}),
        ("GPT와 API로 계획되었다", {"ko": 1.0}), ("the 船船", {"zh": 0.5, "en": 0.5}), ("12 !", {}),
        ("Паром the 버스", {"en": 2 / 3, "ko": 1 / 3}),
    ],
)  # fmt: skip
def test_shares_of_languages_count_words_and_not_letters(
    line: str, expected: dict[str, float]
) -> None:
    assert text.word_shares([line]) == pytest.approx(expected)


def test_long_words_do_not_decide_the_language() -> None:
    long_words = "삼성전자가스마트폰을공개했습니다 the new phone was shown"
    assert text.detect_language([long_words]) == "en"


ONLY_ONE_FORM: list[tuple[str, str]] = [
    ("这个国家的天气很好", "Simplified"), ("這個國家的天氣很好", "Traditional"), ("台灣", "Traditional"), ("中文", ""),
    ("The ferry", ""), ("", ""), ("后面", ""),
]  # fmt: skip


@pytest.mark.parametrize(("line", "form"), ONLY_ONE_FORM)
def test_the_chinese_form_is_detected_by_its_characters(line: str, form: str) -> None:
    assert text.han_form(line) == form


def test_characters_of_both_standards_do_not_decide_the_chinese_form() -> None:
    for number in range(0x4E00, 0xA000):
        character = chr(number)
        if character.encode("gb2312", "ignore") and character.encode("big5", "ignore"):
            assert text.han_form(character) == ""


ENGLISH = ["The ferry was late again today.", "Nobody knew when it would come."]
NAMES = [
    "Rio de Janeiro",
    "Vincent van Gogh",
    "Los Angeles Lakers",
    "Beyoncé",
    "Jürgen Klopp",
    "42",
    "",
    "São Paulo",
]
OTHERS = [
    "Il fait beau aujourd'hui", "Hoy hace buen tiempo", "Das Wetter ist heute schön", "Oggi fa bel tempo",
    "O tempo está bom hoje", "Het weer is vandaag mooi", "Dzisiaj jest ładna pogoda", "Bugün hava çok güzel",
    "Hôm nay trời đẹp", "Cuaca hari ini bagus", "Idag är vädret fint", "Dnes je velmi hezky", "Astăzi este foarte cald",
]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "expected"),
    [(ENGLISH, "English"), (NAMES, "unknown"), (OTHERS, "other"), (["die Katze"], "unknown")],
)
def test_english_is_distinguished_from_other_latin_languages(
    lines: list[str], expected: str
) -> None:
    assert {line: text.latin_language(line) for line in lines} == dict.fromkeys(lines, expected)


def test_english_summaries_are_detected_as_english(
    shared_data: Callable[[str], Any],
) -> None:
    lines = shared_data("summeval_smoke.jsonl").read_text("utf-8").splitlines()
    assert lines
    assert [line for line in lines if text.latin_language(line) != "English"] == []
