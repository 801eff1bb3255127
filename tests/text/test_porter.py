"""Stems. Oracles: NLTK's stemmer, recorded values of ROUGE-1.5.5, and the examples of the paper."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from judge import text
from judge.text import porter

NLTK = PorterStemmer()
MARTIN = PorterStemmer(PorterStemmer.MARTIN_EXTENSIONS)

SUFFIXES = [
    "s", "es", "ies", "sses", "ss", "ed", "ied", "eed", "ing", "at", "ated", "bled", "ized", "y", "ly", "ational",
    "tional", "enci", "anci", "ency", "izer", "bli", "alli", "ally", "entli", "eli", "ousli", "ization", "ation",
    "ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti", "biliti", "fulli", "fully", "logi", "logy",
    "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic", "able", "ible", "ant",
    "ement", "ment", "ent", "ion", "sion", "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "e", "ll", "le",
    "lled", "ying", "yed",
]  # fmt: skip
# Few letters, so that some words meet a condition and others do not.
LETTERS = st.text("aeiouybclstz1", max_size=8)
WORDS = st.builds(
    lambda head, tail: head + "".join(tail),
    LETTERS,
    st.lists(st.sampled_from(SUFFIXES), max_size=3),
)


@pytest.fixture(scope="module")
def summeval_words(shared_data: Callable[[str], Path]) -> set[str]:
    """Return every word of more than three characters in SummEval's summaries, references and sources."""
    tokenize = text.tokenizer("en")
    with shared_data("summeval.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    texts = {part for row in rows for part in (row["summary"], row["source"], *row["references"])}
    tokens = {token for part in texts for token in tokenize(part)}
    words = {token for token in tokens if len(token) > 3 and token.isascii()}
    assert len(words) == 6951
    return words


@settings(max_examples=500)
@given(WORDS)
def test_stems_equal_nltk(word: str) -> None:
    assert porter.stem(word) == NLTK.stem(word)


@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789", max_size=12))
def test_stems_of_any_letters_equal_nltk(word: str) -> None:
    assert porter.stem(word) == NLTK.stem(word)


def test_stems_of_all_short_words_equal_nltk() -> None:
    for size in range(5):
        for letters in product("aeysdlti", repeat=size):
            word = "".join(letters)
            assert porter.stem(word) == NLTK.stem(word), word


def test_stems_of_real_words_equal_nltk(summeval_words: set[str]) -> None:
    assert [word for word in summeval_words if porter.stem(word) != NLTK.stem(word)] == []


def test_stem155_differs_from_nltk_as_often_as_rouge_155_does(summeval_words: set[str]) -> None:
    """Among 6,951 words, 156 stems differ from NLTK's default and 29 from its form of the published algorithm."""
    different = {word for word in summeval_words if porter.stem155(word) != MARTIN.stem(word)}
    assert len(different) == 29
    assert {"professional", "statement"} <= different
    assert sum(porter.stem155(word) != porter.stem(word) for word in summeval_words) == 156
    stems = {"professional": "profess", "statement": "statem", "unintentionally": "unintent"}
    assert {word: porter.stem155(word) for word in stems} == stems


class StemmerOfRouge155(PorterStemmer):
    """NLTK's form of the published algorithm with the step 4 that `stem155` describes."""

    def __init__(self) -> None:
        super().__init__(PorterStemmer.MARTIN_EXTENSIONS)

    def _step4(self, word: str) -> str:
        first = {
            "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ou", "ism", "ate", "iti", "ous", "ive", "ize",
        }  # fmt: skip
        for group in (first, {"ement", "ment", "ent"}, {"ion"}):
            stems = [word.removesuffix(end) for end in group if word.endswith(end)]
            stems = [stem for stem in stems if self._measure(stem) > 1]
            if "ion" in group:
                stems = [stem for stem in stems if stem[-1] in "st"]
            word = min(stems, key=len, default=word)
        return word


@settings(max_examples=500)
@given(WORDS)
def test_stem155_is_the_published_algorithm_except_for_step_4(word: str) -> None:
    assert porter.stem155(word) == StemmerOfRouge155().stem(word)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("feed", "feed"), ("agreed", "agre"), ("plastered", "plaster"),
        ("sing", "sing"), ("conflated", "conflat"), ("hopping", "hop"), ("falling", "fall"), ("filing", "file"),
        ("happy", "happi"), ("sky", "sky"), ("vietnamization", "vietnam"), ("electrical", "electr"),
        ("replacement", "replac"), ("adoption", "adopt"), ("cease", "ceas"), ("controll", "control"), ("roll", "roll"),
    ],
)  # fmt: skip
def test_stem155_of_the_papers_examples(word: str, expected: str) -> None:
    assert porter.stem155(word) == expected


def test_scores_with_stem155_equal_recorded_values_of_rouge_155(
    shared_data: Callable[[str], Path],
) -> None:
    """Compare recall and precision of ROUGE-1 and ROUGE-2 with one reference, and with eleven pooled references."""
    gold = json.loads(shared_data("gold_rouge155_sample.json").read_text(encoding="utf-8"))
    for number, item in enumerate(gold["items"]):
        for size, (name, count) in product((1, 2), (("ref1", 1), ("ref11", 11))):
            recall, precision, _ = gold["scores"][f"{name}/stem_noexc/A"][f"ROUGE-{size}"][number]
            scores = _pooled(item["candidate"], item["references"][:count], size)
            assert scores == pytest.approx((recall, precision), abs=6e-6), (number, size, name)


def _pooled(candidate: list[str], references: list[list[str]], size: int) -> tuple[float, float]:
    """Return recall and precision of pooled references."""
    grams = _grams(candidate, size)
    by_reference = [_grams(reference, size) for reference in references]
    hits = sum((grams & expected).total() for expected in by_reference)
    recall = hits / sum(expected.total() for expected in by_reference)
    precision = hits / (grams.total() * len(by_reference))
    return recall, precision


def _grams(lines: list[str], size: int) -> Counter[Any]:
    words = [
        porter.stem155(word) if len(word) > 3 else word
        for word in text.tokenizer("en")(" ".join(lines))
    ]
    return Counter(zip(*(words[skip:] for skip in range(size)), strict=False))


@pytest.mark.parametrize("shape", [porter.stem, porter.stem155])
@pytest.mark.parametrize(
    "word", ["y" * 10**6, "ab" * 500_000, "b" * 10**6 + "ing", "a" * 10**6 + "ement"]
)
def test_a_word_of_a_million_letters_has_a_stem(shape: Callable[[str], str], word: str) -> None:
    assert word.startswith(shape(word)[:-1])
