"""chrF. Oracles: numbers by hand, sacrebleu itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import sentence_chrf
from sacrebleu.metrics.chrf import CHRF

from judge.metrics.chrf import Chrf
from judge.records import Sample, Score

SHORT = st.text("ab c船버", min_size=1, max_size=20)


def value(output: str, *references: str) -> float:
    (row,) = Chrf().score([Sample("1", "a", output, references=references)]).rows
    assert isinstance(row, Score)
    return row.value


@pytest.mark.parametrize(("output", "reference"), [("ab", "abc"), ("배가", "배가왔"), ("a b", "ab c")])
def test_by_hand(output: str, reference: str) -> None:
    """Both precisions 1, recalls 2/3 and 1/2, so P = 1, R = 7/12 and F2 = 5PR / (4P + R) = 7/11."""
    assert value(output, reference) == pytest.approx(700 / 11)


@given(SHORT, st.lists(SHORT.filter(str.strip), min_size=1, max_size=3))
def test_is_sacrebleu_and_the_best_reference(output: str, references: list[str]) -> None:
    theirs = max(sentence_chrf(output, [reference]).score for reference in references)
    assert value(output, *references) == pytest.approx(theirs, abs=1e-9)


def test_signature_is_sacrebleus_own() -> None:
    theirs = CHRF()
    theirs.sentence_score("x", ["y"])
    (column,) = Chrf().score([Sample("1", "a", "x", references=("y",))]).columns
    name, kind, *parts, version = column.signature.split("|")
    assert (name, kind) == ("chrf", "sentence")
    assert "|".join([*parts, version]).replace("=", ":").replace("sacrebleu ", "version:") == str(
        theirs.get_signature()
    )
