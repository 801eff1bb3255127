"""BLEU. Oracles: numbers by hand, published values of sacrebleu, sacrebleu itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import sentence_bleu
from sacrebleu.metrics.bleu import BLEU

from judge.metrics.bleu import Bleu
from judge.records import Sample, Score

WORDS = st.lists(st.sampled_from(["the", "cat", "sat", "on", "mat", ".", "don't", "9:30"]), min_size=1).map(" ".join)


def sample(output: str, *references: str) -> Sample:
    return Sample(output, "a", output, references=references)


def value(output: str, *references: str) -> float:
    (row,) = Bleu().score([sample(output, *references)]).rows
    assert isinstance(row, Score)
    return row.value


def test_by_hand() -> None:
    """Precisions 3/4, 2/3, 1/2 and, smoothed, 1/2 of one 4-gram; no brevity penalty: 100 · (1/8)^(1/4)."""
    assert value("red green blue grey", "red green blue black") == pytest.approx(100 * 0.125**0.25)


def test_short_text_by_hand() -> None:
    """Two of two words; effective order leaves out 3- and 4-grams; penalty e^(1 - 3/2)."""
    assert value("red green", "red green blue") == pytest.approx(100 * 2.718281828459045**-0.5)


def test_japanese_pair() -> None:
    """sacrebleu 2.6.0 with `char`; its default 13a leaves each sentence one token and scores 0."""
    pair = "交番の隣に喫茶店がある。", "交番の隣にある喫茶店は小さい。"
    assert value(*pair) == pytest.approx(37.16, abs=0.005)
    assert sentence_bleu(pair[0], [pair[1]], tokenize="13a").score == 0.0


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_english_is_sacrebleu(output: str, references: list[str]) -> None:
    theirs = BLEU(effective_order=True, force=True).sentence_score(output, references).score
    assert value(output, *references) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("output", "reference", "tokenizer"),
    [
        ("渡轮下午三点到了港口", "渡轮下午两点到达港口", "zh"),
        ("배가 오후에 늦게 도착했다", "배가 오후 세 시에 도착했다", "char"),
        ("船は午後に港へ着いた", "船は午後三時に港に着いた", "char"),
        ("паром пришёл в порт днём", "паром пришёл в порт вечером", "13a"),
        ("ferry", "船は午後三時に港に着いた", "char"),  # the reference decides, for every system alike
    ],
)
def test_tokenizer_by_script(output: str, reference: str, tokenizer: str) -> None:
    theirs = BLEU(effective_order=True, tokenize=tokenizer).sentence_score(output, [reference]).score
    assert value(output, reference) == pytest.approx(theirs, abs=1e-9)
    assert f"|tok={tokenizer}|" in Bleu().score([sample(output, reference)]).columns[0].signature


def test_signature_is_sacrebleus_own() -> None:
    theirs = BLEU(effective_order=True)
    theirs.sentence_score("x", ["y", "z"])
    (column,) = Bleu().score([sample("x", "y", " ", "z"), sample("w")]).columns
    name, kind, *parts, version = column.signature.split("|")
    assert (name, kind) == ("bleu", "sentence")
    assert "|".join([*parts, version]).replace("=", ":").replace("sacrebleu ", "version:") == str(
        theirs.get_signature()
    )


def test_signature_of_mixed_data() -> None:
    (column,) = Bleu().score([sample("x", "y"), sample("버스", "버스", "배")]).columns
    assert column.signature.startswith("bleu|sentence|nrefs=var|case=mixed|eff=yes|tok=13a+char|smooth=exp|")


def test_tokenized_stops_are_not_complained_of(caplog: pytest.LogCaptureFixture) -> None:
    Bleu().score([sample(f"line {n} .", "a line .") for n in range(150)])
    assert caplog.records == []
