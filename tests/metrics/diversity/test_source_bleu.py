"""Source-BLEU. Oracle: sacrebleu."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from judge import text
from judge.core.errors import DataError
from judge.core.records import Failure, Provenance, Sample, Score
from judge.metrics.diversity import SourceBleu, source_bleu
from tests.factories import has_line

WORDS = ["red", "Red", "boat", "boats", "the", ".", "9:30", "don't", "étage", "\ud800"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)


@given(
    TEXT,
    TEXT.filter(str.strip),
    st.sampled_from(["exp", "floor", "add-k", "none"]),
    st.integers(1, 5),
)
def test_values_equal_sacrebleu(output: str, source: str, smooth: str, order: int) -> None:
    scorer = BLEU(force=True, effective_order=True, smooth_method=smooth, max_ngram_order=order)
    by_sacrebleu = scorer.sentence_score(output, [source]).score
    assert source_bleu([output], [source], smooth=smooth, max_order=order) == pytest.approx(
        [by_sacrebleu], abs=1e-9
    )


@pytest.mark.parametrize(
    ("output", "source", "language"),
    [
        ("赤い船が港に着いた。", "赤い船は港を出た。", "ja"),
        ("빨간 배가 항구에 도착했다.", "빨간 배는 항구를 떠났다.", "ko"),
        ("红色的船到了港口。", "红色的船离开港口。", "zh"),
        ("boat", "红色的船离开港口。", "zh"),  # the source decides
    ],
)
def test_the_script_of_the_source_selects_the_tokenizer(
    output: str, source: str, language: str
) -> None:
    name = "zh" if language == "zh" else f"{language}-mecab" if text.installed(language) else "char"
    by_sacrebleu = BLEU(effective_order=True, tokenize=name).sentence_score(output, [source]).score
    result = SourceBleu().score(
        [Sample("1", "a", output, source), Sample("2", "a", "a copy", "a copy")]
    )
    first, second = result.rows
    assert isinstance(first, Score)
    assert isinstance(second, Score)
    assert (first.value, second.value) == (
        pytest.approx(by_sacrebleu, abs=1e-9),
        pytest.approx(100),
    )
    signed = "+".join(sorted(["13a", BLEU(tokenize=name).tokenizer.signature()]))
    assert f"|tok={signed}|smooth=exp|sacrebleu " in str(result.columns[0].signature)


def test_rows_and_column() -> None:
    metric = SourceBleu(max_order=1)
    data = [Sample("1", "a", "x y", "x z"), Sample("1", "b", "", "x z")]
    result = metric.score(data)
    first, second = result.rows
    assert isinstance(first, Score)
    assert (first.item, first.system, first.column, first.value) == (
        "1",
        "a",
        "source_bleu",
        pytest.approx(50),
    )
    assert second == Score("1", "b", "source_bleu", 0.0, Provenance("metric"))
    (column,) = result.columns
    assert (column.low, column.high, column.better) == (0.0, 100.0, "")
    assert str(column.signature).startswith(
        "source_bleu|sentence|eff=yes|order=1|case=mixed|tok=13a|smooth=exp|sacrebleu "
    )
    assert SourceBleu.rowwise
    assert pickle.loads(pickle.dumps(metric)).score(data) == result


@pytest.mark.parametrize(("source", "lacking"), [(None, "no source"), (" \n", "a blank source")])
def test_a_missing_source_is_a_failure(source: str | None, lacking: str) -> None:
    first, second = (
        SourceBleu()
        .score([Sample("7", "a", "x", source, where="d.jsonl:3"), Sample("8", "a", "x")])
        .rows
    )
    assert isinstance(first, Failure)
    assert first == Failure("7", "a", "source_bleu", "metric", "NoSource", first.message)
    assert has_line(first.message, f"d.jsonl:3 has {lacking}", "--map source=COLUMN")
    assert isinstance(second, Failure)
    assert second.message.startswith("item 8 has no source: ")


@pytest.mark.parametrize(
    ("sources", "message"), [([], "1 outputs .*0 sources"), ([" "], "pair 0 .*blank source")]
)
def test_the_function_for_lists_refuses_unusable_sources(sources: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        source_bleu(["x"], sources)
