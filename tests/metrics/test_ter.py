"""TER. Oracles: numbers by hand and sacrebleu."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.ter import TER

from judge.core.errors import DataError
from judge.core.records import Failure, Sample, Score
from judge.metrics import Note, ter
from judge.metrics.ter import Ter
from tests.factories import has_line

WORDS = st.lists(st.sampled_from("abcdef"), max_size=14).map(" ".join)
TEXTS = st.lists(
    st.sampled_from(["a", "B", "boat.", "(late)", "é", "船は", "港、", "배가"]), min_size=1
).map(" ".join)


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        ("a b c d", "a b c d", 0),
        ("a b c", "a b c d", 25),  # one missing word of four
        ("a x c d", "a b c d", 25),  # one replaced word
        ("c d a b", "a b c d", 25),  # one shift of two words
        ("a b c d e f g h", "a b", 300),  # six extra words, two in the reference
        ("", "a b c", 100),
        (" \n", "a b c", 100),
    ],
)
def test_values_by_hand(output: str, reference: str, expected: float) -> None:
    assert ter.score([output], [reference]) == [expected]


@given(WORDS, st.lists(WORDS.filter(str.strip), min_size=1, max_size=3))
def test_values_equal_sacrebleu(output: str, references: list[str]) -> None:
    assert ter.score([output], [references]) == [TER().sentence_score(output, references).score]


@pytest.mark.slow
def test_values_of_summaries_equal_sacrebleu(shared_data: Callable[[str], Path]) -> None:
    rows = [
        json.loads(line)
        for line in shared_data("summeval_smoke.jsonl").read_text("utf-8").splitlines()
    ][:1]
    scores = ter.score([row["summary"] for row in rows], [row["references"][:2] for row in rows])
    scorer = TER()
    assert scores == [
        scorer.sentence_score(row["summary"], row["references"][:2]).score for row in rows
    ]


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), st.tuples(*[st.booleans()] * 4))
def test_options_equal_those_of_sacrebleu(
    output: str, references: list[str], chosen: tuple[bool, ...]
) -> None:
    options = dict(
        zip(("normalized", "asian_support", "no_punct", "case_sensitive"), chosen, strict=True)
    )
    (row,) = Ter(**options).score([Sample("1", "a", output, references=tuple(references))]).rows
    score = TER(**options).sentence_score(output, references)
    if score.ref_length:
        assert isinstance(row, Score)
        assert row.value == score.score
    else:
        assert isinstance(row, Failure)


@pytest.mark.parametrize(
    ("output", "reference", "asian"),
    [
        ("渡轮下午三点到了港口", "渡轮下午两点到达港口", True),
        ("船は午後に港へ着いた", "船は午後三時に港に着いた", True),
        ("배가 오후에 늦게 도착했다", "배가 오후 세 시에 도착했다", False),
        ("the ferry came late", "the ferry was late", False),
    ],
)
def test_the_script_decides_whether_characters_are_words(
    output: str, reference: str, asian: bool
) -> None:
    """By default sacrebleu reads a Chinese or Japanese sentence as one word, so that any difference is 100."""
    scorer = TER(normalized=asian, asian_support=asian)
    result = Ter().score([Sample("1", "a", output, references=(reference,))])
    (row,) = result.rows
    assert isinstance(row, Score)
    assert row.value == scorer.sentence_score(output, [reference]).score < 100
    name, kind, *parts, version = str(result.columns[0].signature).split("|")
    assert (name, kind, result.columns[0].better, result.columns[0].high) == (
        "ter",
        "sentence",
        "lower",
        None,
    )
    signature = "|".join([*parts, version]).replace("=", ":").replace("sacrebleu ", "version:")
    assert signature == str(scorer.get_signature())


@pytest.mark.parametrize(
    ("options", "unsplit"),
    [
        ({}, 0),
        ({"normalized": True}, 0),
        ({"asian_support": True, "normalized": True}, 0),
        ({"asian_support": True}, 2),
        ({"asian_support": False, "normalized": True}, 2),
    ],
)
def test_a_note_counts_texts_that_the_options_leave_in_one_piece(
    options: dict[str, bool], unsplit: int
) -> None:
    samples = [Sample("1", "a", "船は午後に港へ着いた", references=("船は午後三時に港に着いた",))]
    note = Ter(**options).score(samples).notes[0]
    assert isinstance(note, Note)
    assert note.some == unsplit


def test_signature_of_mixed_data() -> None:
    samples = [
        Sample("1", "a", "x", references=("y",)),
        Sample("2", "a", "船", references=("船は",)),
    ]
    (column,) = Ter().score(samples).columns
    assert "|norm=no+yes|punct=yes|asian=no+yes|" in str(column.signature)


def test_references_of_punctuation_alone_are_a_failure() -> None:
    """sacrebleu gives 100 for them, and 0 for an output without words."""
    metric, sample = (
        Ter(no_punct=True),
        Sample("1", "a", "so", references=("?!",), where="d.jsonl:4"),
    )
    (row,) = metric.score([sample]).rows
    assert isinstance(row, Failure)
    assert (row.stage, row.error) == ("metric", "NoReferenceWords")
    assert has_line(row.message, "d.jsonl:4 has no value", "references")
    with pytest.raises(DataError, match="text 0 has no value"):
        ter.score(["so"], ["?!"], no_punct=True)


def test_a_text_of_too_many_words_is_a_failure() -> None:
    """sacrebleu fills a table of words by words for each of a thousand shifts, which would take too long."""
    long = " ".join(f"w{n % 500}" for n in range(1_001))
    (row,) = Ter().score([Sample("1", "a", long, references=(long,))]).rows
    assert isinstance(row, Failure)
    assert (row.error, "too many words for TER" in row.message) == ("TextTooLong", True)
    assert ter.score(["😀 \ud800 ferry"], ["😀 \ud800 boat"]) == [pytest.approx(100 / 3)]
