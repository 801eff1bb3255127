"""chrF. Oracles: numbers by hand and sacrebleu."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import sentence_chrf
from sacrebleu.metrics.chrf import CHRF

from judge.core.records import Sample, Score
from judge.metrics import chrf
from judge.metrics.chrf import Chrf

SHORT = st.text("ab c船버", min_size=1, max_size=20)
REFERENCES = st.lists(SHORT.filter(str.strip), min_size=1, max_size=3)


def value(output: str, *references: str) -> float:
    (row,) = Chrf().score([Sample("1", "a", output, references=references)]).rows
    assert isinstance(row, Score)
    return row.value


@pytest.mark.parametrize(
    ("output", "reference"), [("ab", "abc"), ("배가", "배가왔"), ("a b", "ab c")]
)
def test_values_by_hand(output: str, reference: str) -> None:
    """Both precisions are 1, the recalls 2/3 and 1/2: P = 1, R = 7/12 and F2 = 5PR / (4P + R) = 7/11."""
    assert value(output, reference) == pytest.approx(700 / 11)


def test_values_of_beta_by_hand() -> None:
    """P and R are those of the test above. F1 = 2PR / (P + R) = 14/19, and with beta 0 the value is P."""
    assert chrf.score(["ab"], ["abc"], beta=1) == [pytest.approx(1400 / 19)]
    assert chrf.score(["ab"], ["abc"], beta=0) == [pytest.approx(100)]


@given(SHORT, REFERENCES)
def test_values_equal_sacrebleu_for_the_best_reference(output: str, references: list[str]) -> None:
    by_sacrebleu = max(sentence_chrf(output, [reference]).score for reference in references)
    assert value(output, *references) == pytest.approx(by_sacrebleu, abs=1e-9)


@given(
    SHORT,
    REFERENCES,
    st.integers(1, 8),
    st.integers(0, 3),
    st.sampled_from([0.5, 1, 3]),
    st.booleans(),
)
def test_options_equal_those_of_sacrebleu(
    output: str,
    references: list[str],
    char_order: int,
    word_order: int,
    beta: float,
    lowercase: bool,
) -> None:
    by_sacrebleu = CHRF(
        char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase
    )
    scores = chrf.score(
        [output],
        [references],
        char_order=char_order,
        word_order=word_order,
        beta=beta,
        lowercase=lowercase,
    )
    assert scores == [min(by_sacrebleu.sentence_score(output, references).score, 100.0)]


def test_signature_has_the_parts_of_sacrebleus() -> None:
    by_sacrebleu = CHRF(word_order=2, lowercase=True)
    by_sacrebleu.sentence_score("x", ["y"])
    (column,) = (
        Chrf(word_order=2, lowercase=True).score([Sample("1", "a", "x", references=("y",))]).columns
    )
    name, kind, *parts, version = str(column.signature).split("|")
    assert (name, kind) == ("chrf", "sentence")
    assert "|".join([*parts, version]).replace("=", ":").replace("sacrebleu ", "version:") == str(
        by_sacrebleu.get_signature()
    )
    (column,) = Chrf(beta=1).score([]).columns
    assert "|space=no|beta=1|sacrebleu " in str(column.signature)
