"""ROUGE of lists of texts. Oracles: rouge-score, Lin's published examples, and numbers by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from judge import text
from judge.core.errors import DataError
from judge.core.records import Failure, Sample
from judge.metrics.rouge import Rouge, RougeScore, score, sequences
from tests.factories import has_line

TYPES = ["rouge1", "rouge2", "rouge3", "rougeL", "rougeLsum"]
WORDS = [
    "the",
    "running",
    "runs",
    "cats",
    "cat",
    "sat,",
    "mats.",
    "no-rouge_score_of",
    "ran?",
    "U.S.",
    "skies",
    "\n",
]
ENGLISH = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
TINY = st.text("ab\n", max_size=24).map(" ".join)  # ties everywhere


def rouge_score_of(
    output: str, references: str | Sequence[str], kind: str, **options: object
) -> RougeScore:
    (value,) = score([output], [references], [kind], **options)[kind]  # type: ignore[arg-type, list-item]
    assert isinstance(value, RougeScore), value
    return value


def failure(output: str, references: str | Sequence[str], kind: str, **options: object) -> Failure:
    (failure,) = score([output], [references], [kind], **options)[kind]  # type: ignore[arg-type, list-item]
    assert isinstance(failure, Failure), failure
    assert (failure.item, failure.column, failure.stage) == ("0", kind, "metric")
    return failure


def by_line(string: str) -> str:
    """Return the text with a sentence on each line, which the package needs for rougeLsum."""
    return "\n".join(text.sentences(string))


def lines(text: str) -> str:
    return "\n".join(part for part in re.split(r"(?<=\s[.!?])\s+", text.strip()) if part)


@pytest.mark.parametrize("stem", [True, False])
def test_values_on_summeval_equal_the_packages(shared_data, stem: bool) -> None:
    """Compare precision, recall and F of every twentieth of 1,600 summaries."""
    with shared_data("summeval.jsonl").open(encoding="utf-8") as file:
        pairs = [
            (lines(row["summary"]), lines(row["references"][0]))
            for row in map(json.loads, islice(file, 0, None, 20))
        ]
    package = RougeScorer(TYPES, use_stemmer=stem)
    scores = score(
        [output for output, _ in pairs], [reference for _, reference in pairs], TYPES, stem=stem
    )
    for index, (output, reference) in enumerate(pairs):
        expected = package.score(reference, output)
        for kind in TYPES:
            value = scores[kind][index]
            assert isinstance(value, RougeScore)
            assert value == pytest.approx(expected[kind], abs=1e-12), (index, kind)


@pytest.mark.parametrize("words", [ENGLISH, TINY], ids=["english", "tiny alphabet"])
def test_values_of_random_words_equal_the_packages(words: st.SearchStrategy[str]) -> None:
    has_word = re.compile("[a-z0-9]").search

    @given(words, st.lists(words.filter(has_word), min_size=1, max_size=4), st.booleans())
    def check(output: str, references: list[str], stem: bool) -> None:
        package = RougeScorer(TYPES, use_stemmer=stem)
        expected = package.score_multi([*map(by_line, references)], by_line(output))
        scores = score([output], [references], TYPES, stem=stem)
        for kind in TYPES:
            assert scores[kind] == [pytest.approx(expected[kind], abs=1e-12)]

    check()


# rouge-score drops letters beyond a-z, which judge keeps.
ANY_TEXT = st.text(max_size=30).map(
    lambda text: "".join(c for c in normalize("NFKC", text) if c.isascii() or not c.isalnum())
)


@given(ANY_TEXT, ANY_TEXT)
def test_values_of_random_texts_by_the_english_rules_equal_the_packages(
    output: str, reference: str
) -> None:
    expected = RougeScorer(TYPES, use_stemmer=True).score(by_line(reference), by_line(output))
    for kind, (value,) in score([output], [reference], TYPES, tokenizer="en").items():
        if isinstance(value, Failure):
            assert value.error in {"NoReference", "NoTokens"}
            assert expected[kind].fmeasure == 0
        else:
            assert value == pytest.approx(expected[kind], abs=1e-12)


POLICE = "police killed the gunman"
POLICES = ["police kill the gunman", "the gunman kill police", "the gunman police killed"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("rouge2", [1 / 3, 1 / 3, 2 / 3]),
        ("rougeL", [3 / 4, 1 / 2, 1 / 2]),
        ("rougeS", [3 / 6, 1 / 6, 2 / 6]),
    ],
)
def test_published_sentences_about_the_police(kind: str, expected: list[float]) -> None:
    """Lin 2004, sections 3.1 and 4: equal ROUGE-2 of the first two, ROUGE-L .75, .5, .5, ROUGE-S .5, .167, .333."""
    assert [
        rouge_score_of(text, POLICE, kind, stem=False).fmeasure for text in POLICES
    ] == pytest.approx(expected)


def test_published_union_lcs() -> None:
    """Lin 2004, section 3.2: w1 w2 and w1 w3 w5 cover four of the five words."""
    assert (
        rouge_score_of("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", "rougeLsum").recall
        == 4 / 5
    )


def test_published_weighted_lcs() -> None:
    """Lin 2004, section 4, f(k) = k²: .571 for four words in a row, .286 for the same words apart."""
    in_row, apart, reference = "a b c d h i k", "a h b k c i d", "a b c d e f g"
    assert rouge_score_of(in_row, reference, "rougeW-2") == pytest.approx(
        (0.571, 0.571, 0.571), abs=5e-4
    )
    assert rouge_score_of(apart, reference, "rougeW-2") == pytest.approx(
        (0.286, 0.286, 0.286), abs=5e-4
    )
    default = rouge_score_of(apart, reference, "rougeW")  # weights f(k) = k^1.2
    assert default.fmeasure == pytest.approx(0.45354, abs=5e-6)
    assert rouge_score_of(apart, reference, "rougeW-1") == rouge_score_of(
        apart, reference, "rougeL"
    )


EVERY = [
    "rouge1",
    "rougeL",
    "rougeLsum",
    "rougeW",
    "rougeW-1.5",
    "rougeS",
    "rougeS*",
    "rougeS1",
    "rougeSU",
    "rougeSU4",
    "lcs_mead",
]


@pytest.mark.parametrize("kind", EVERY)
@given(
    st.text("abc\n", min_size=2, max_size=30)
    .filter(lambda text: len(text.split()) > 1)
    .map(" ".join)
)
def test_equal_texts_score_one(kind: str, text: str) -> None:
    if len(text.split()) > 1:
        assert rouge_score_of(text, text, kind) == pytest.approx((1, 1, 1))


@pytest.mark.parametrize("kind", EVERY)
@given(TINY, TINY.filter(str.strip))
def test_swapping_output_and_reference_swaps_precision_and_recall(
    kind: str, output: str, reference: str
) -> None:
    value = rouge_score_of(output, reference, kind)
    assert all(0 <= number <= 1 for number in value)
    if output.strip() and kind != "rougeLsum":  # its union is over the output's sentences only
        swapped = rouge_score_of(reference, output, kind)
        assert (swapped.precision, swapped.recall) == pytest.approx((value.recall, value.precision))


@given(TINY.map(str.split), TINY.map(str.split), st.integers(0, 4))
def test_skip_bigrams_equal_a_count_of_pairs(
    output: list[str], reference: list[str], gap: int
) -> None:
    """The oracle counts pair by pair (Lin 2004, section 5)."""

    def pairs(text: list[str], most: int) -> list[tuple[str, str]]:
        return [
            (a, b) for i, a in enumerate(text) for j, b in enumerate(text) if 0 < j - i <= most + 1
        ]

    for kind, most in ((f"rougeS{gap}", gap), ("rougeS", 99)):
        in_output = pairs(output, most)
        in_reference = pairs(reference, most)
        shared = sum(
            min(in_output.count(pair), in_reference.count(pair)) for pair in set(in_output)
        )
        if reference:
            recall = shared / len(in_reference) if in_reference else 0.0
            assert rouge_score_of(
                " ".join(output), " ".join(reference), kind
            ).recall == pytest.approx(recall)


def test_skip_bigrams_with_single_words_by_hand() -> None:
    """`a b c` and `a c d` share one pair of three (a c) and two words of three: 3 of 6. One equal word is 1 of 1."""
    assert rouge_score_of("a b c", "a c d", "rougeSU") == pytest.approx((0.5, 0.5, 0.5))
    assert rouge_score_of("cat", "cat", "rougeSU4") == (1, 1, 1)
    assert rouge_score_of("cat", "cat", "rougeS4") == (0, 0, 0)  # has no pair


def test_lcs_of_mead_by_hand() -> None:
    """Lin 2004, equation 8: `a b c` and `a d` share 2 and 1 words with `a b`, 3 of 5; `a b` shares 2 of 2: 5 of 7."""
    assert rouge_score_of("a b c\na d", "a b", "lcs_mead") == pytest.approx((3 / 5, 2 / 2, 5 / 7))


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0, 8.0])
@pytest.mark.parametrize(("output", "reference"), [("a b d e f g", "a b c"), ("a b c\na d", "a b")])
def test_lcs_of_mead_weighs_precision_and_recall_by_beta(
    output: str, reference: str, beta: float
) -> None:
    """Lin 2004: F = (1 + beta^2) R P / (R + beta^2 P), which is .4444 at 1 and .5556 at 2 for the first pair."""
    row = rouge_score_of(output, reference, "lcs_mead", beta=beta)
    expected = (1 + beta**2) * row.recall * row.precision / (row.recall + beta**2 * row.precision)
    assert row.fmeasure == pytest.approx(expected)
    if output == "a b d e f g":
        assert row.fmeasure == pytest.approx({1.0: 4 / 9, 2.0: 5 / 9}.get(beta, expected))


def test_alpha_and_beta_weigh_precision_and_recall() -> None:
    output, reference = "a b c d", "a b x y z"  # P 1/2, R 2/5
    p, r = 1 / 2, 2 / 5
    assert rouge_score_of(output, reference, "rouge1", alpha=1).fmeasure == pytest.approx(p)
    assert rouge_score_of(output, reference, "rouge1", alpha=0).fmeasure == pytest.approx(r)
    assert rouge_score_of(output, reference, "rouge1", alpha=0.5).fmeasure == pytest.approx(
        2 * p * r / (p + r)
    )
    assert rouge_score_of(output, reference, "rouge1", beta=2).fmeasure == pytest.approx(
        5 * p * r / (r + 4 * p)
    )  # Lin, eq. 4
    assert rouge_score_of("q", reference, "rouge1", alpha=0.3).fmeasure == 0


def test_stopwords_are_removed_before_stemming(tmp_path) -> None:
    file = tmp_path / "stop.txt"
    file.write_text("The\n\nrunning \n", encoding="utf-8")
    for stopwords in (file, str(file), ["The", "running"]):
        assert rouge_score_of("the running runs", "runs", "rouge1", stopwords=stopwords) == (
            1,
            1,
            1,
        )
    assert failure("x", "the Running", "rouge1", stopwords=["the", "running"]).error == "NoTokens"


@pytest.mark.parametrize(
    "output", ["B ran. A sat.", "B ran.\n A sat.", "B ran\nA sat", "b ran a sat"]
)
@pytest.mark.parametrize(
    "options", [{}, {"preset": "rouge155", "types": "ROUGE-L"}, {"implementation": "rouge-score"}]
)
def test_lists_and_a_run_split_the_same_sentences(output: str, options: dict[str, Any]) -> None:
    options = {"types": "rougeLsum", **options}
    reference = "a sat b ran"
    (row,) = Rouge(**options).score([Sample("1", "a", output, references=(reference,))]).rows
    (listed,) = score([output], [reference], **options).values()
    assert [row.value] == [each.fmeasure for each in listed]  # type: ignore[union-attr]
    assert row.value == (0.5 if output == "b ran a sat" else 1)  # type: ignore[union-attr]


@pytest.mark.parametrize("multi", ["best_f", "best_recall", "pooled", "mean", "jackknife"])
def test_a_text_without_a_score_is_a_failure(multi: str) -> None:
    assert failure("a", [], "rouge1", multi=multi).message == "output 0 has no reference"
    message = failure("a", ["", " \n"], "rouge1", multi=multi).message
    assert has_line(message, "output 0", "blank references")
    assert failure("a", "?!", "rougeLsum", multi=multi).error == "NoTokens"
    assert rouge_score_of("", "a", "rougeLsum", multi=multi) == (0, 0, 0)
    # The blank references do not count.
    assert rouge_score_of("a b", ["", "...", "a b"], "rouge2", multi=multi) == (1, 1, 1)


@pytest.mark.slow
def test_a_text_of_a_megabyte_is_scored_or_fails_fast() -> None:
    """The time limit of the tests catches a type that takes too long."""
    million = "ab cd " * 170_000
    scores = score(
        [million, million],
        [million, "ab xy cd"],
        ["rouge1", "rouge2", "rougeL", "rougeLsum", "rougeS4", "rougeW", "rougeS"],
    )
    for kind in ("rouge1", "rouge2", "rougeL", "rougeLsum", "rougeS4"):
        assert scores[kind][0] == (1, 1, 1)
    assert scores["rougeL"][1].recall == scores["rougeLsum"][1].recall == 2 / 3  # type: ignore[union-attr]
    assert scores["rougeW"][1].recall == pytest.approx((2 / 3**1.2) ** (1 / 1.2))  # type: ignore[union-attr]
    for kind in ("rougeW", "rougeS"):
        failure_of_long_text = scores[kind][0]
        assert isinstance(failure_of_long_text, Failure)
        assert failure_of_long_text.error == "TextTooLong"
        assert has_line(failure_of_long_text.message, "shorten", "this type")


@pytest.mark.slow
def test_sentences_too_long_for_rouge_lsum_are_a_failure() -> None:
    output = " ".join(f"w{n} x" for n in range(50_000))
    reference = " ".join(f"x w{n}" for n in range(50_000))
    assert rouge_score_of(output, reference, "rougeL").fmeasure > 0.9
    assert failure(output, reference, "rougeLsum").error == "TextTooLong"


def test_more_distinct_words_than_characters_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "_CHARACTERS", 3)
    assert rouge_score_of("a b", "b c", "rouge1", stopwords=["q1"]).fmeasure == 0.5
    assert failure("a b", "c d", "rouge1", stopwords=["q2"]).error == "TooManyWords"


def test_full_caches_are_emptied_without_changing_values(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = [f"w{n} w{n + 1} w{n + 2}" for n in range(50)]
    references = [f"w{n + 1} w{n + 2} w{n + 3}" for n in range(50)]
    monkeypatch.setattr(sequences, "_MOST_WORDS", 5)
    monkeypatch.setattr(sequences, "_MOST_KEPT_TOKENS", 5)
    scores = score(outputs, references, ["rouge2", "rougeLsum"], stopwords=["q3"])
    assert scores == {
        "rouge2": [(0.5, 0.5, 0.5)] * 50,
        "rougeLsum": [pytest.approx((2 / 3, 2 / 3, 2 / 3))] * 50,
    }
    vocabulary = sequences.vocabulary(sequences.Rules("en", True, frozenset({"q3"})))
    assert len(vocabulary._words) <= 5 + 4
    assert len(vocabulary._texts) <= 4


@pytest.mark.parametrize(
    ("outputs", "references"),
    [("a", ["a"]), (["a"], "a"), (["a"], ["a", "b"]), (["a", "b"], ["a"])],
)
def test_lists_of_unequal_length_are_an_error(outputs: list[str], references: list[str]) -> None:
    with pytest.raises(DataError, match=r"equal length|list of texts"):
        score(outputs, references)


@pytest.mark.parametrize(
    ("kind", "limits"),
    [
        ("rougeLsum", {"_MOST_STEPS": 3}),
        ("rougeLsum", {"_MAX_SENTENCE_WORDS": 3}),
        ("rougeLsum", {"_MOST_BITS": 3}),
        ("rougeW", {"_MOST_CELLS": 3}),
        ("lcs_mead", {"_MOST_STEPS": 0}),
    ],
)
def test_a_text_over_each_limit_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, kind: str, limits: dict[str, int]
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(sequences, name, value)
    assert failure("a b c d", "b a d c", kind).error == "TextTooLong"


@pytest.mark.parametrize("words", [10, 13, 30, 31, 53])
def test_the_first_of_two_references_of_equal_recall_counts(words: int) -> None:
    """The output contains both references (rules 4 and 6 of ROUGE-1.5.5). Rounding must not favour the second."""
    whole = [f"w{number}" for number in range(60)]
    references = [" ".join(whole[:words]), "w59"]
    (value,) = score(
        [" ".join(whole)],
        [references],
        ["ROUGE-W-1.2"],
        preset="rouge155",
        stem=False,
        multi="best_recall",
    )["ROUGE-W-1.2"]
    (first,) = score(
        [" ".join(whole)], references[:1], ["ROUGE-W-1.2"], preset="rouge155", stem=False
    )["ROUGE-W-1.2"]
    assert value == first


def test_a_stopword_file_may_have_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "stop.txt").write_bytes(b"\xef\xbb\xbfhis\n")
    (value,) = score(["his x"], ["his y"], ["rouge1"], stopwords=tmp_path / "stop.txt")["rouge1"]
    assert value == (0, 0, 0)
