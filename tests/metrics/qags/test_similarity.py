"""Similarities of answers. Oracles: numbers by hand, rouge-score, and SQuAD's definition written another way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from judge import text
from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.metrics import MetricResult, bertscore
from judge.metrics.base import MetricContext
from judge.metrics.qags.pipeline import Similarities, f1, normalised, similarities

CORRECTED = {
    0.667: 0.085,
    0.70: 0.25,
    0.75: 0.5,
    0.80: 0.75,
    0.85: 1.0,
    0.90: 1.0,
    0.95: 1.0,
    1.0: 1.0,
}
"""(F - .65) / .2, at most 1, on paper."""
ANSWERS = st.one_of(
    st.lists(
        st.sampled_from(
            ["The", "the", "a", "an", "Oslo", "oslo.", "ferry,", "3.5", "%", "-", "ferries"]
        ),
        max_size=5,
    ).map(" ".join),
    st.text(max_size=12),
)


class FakeBertScore:
    """A fake BERTScore: F is the number that the output states; any other output is a failure.

    `pairs` records the references and outputs that it scored.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.pairs: list[tuple[str, str]] = []
        fake_metrics.append(self)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        self.pairs += [(sample.references[0], sample.output) for sample in samples]
        columns = tuple(
            Column(
                name,
                "metric",
                Signature(name, "f", "tiny@1", "rescale=no", "nrefs=1", "refs=max", "v1"),
            )
            for name in ("bertscore", "bertscore_corrected")
        )
        rows: list[Score | Failure] = []
        for sample in samples:
            for column in columns:
                try:
                    f = float(sample.output)
                    low = self.options.get("low", 0.65)
                    value = f if column.name == "bertscore" else bertscore.rescale_linear(f, low)
                    rows.append(Score(sample.item, "", column.name, value, Provenance("metric")))
                except ValueError:
                    rows.append(
                        Failure(sample.item, "", column.name, "metric", "NotFinite", "has no value")
                    )
        return MetricResult(columns, tuple(rows))


fake_metrics: list[FakeBertScore] = []


@pytest.fixture
def fake_bert(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_metrics.clear()
    monkeypatch.setattr(bertscore, "BertScore", FakeBertScore)


@pytest.mark.parametrize(
    ("first", "second", "exact", "f"),
    [
        ("The ferry", "a ferry.", 1, 1),
        ("Anna Berg", "Berg", 0, 2 / 3),
        ("three hours", "three days late", 0, 2 / 5),
        ("Oslo", "Bergen", 0, 0),
        ("the", "an", 1, 1),  # nothing is left of either
        ("the", "Oslo", 0, 0),
        ("to be to be", "to be", 0, 2 / 3),
    ],
)
def test_exact_match_and_f1_are_squads(first: str, second: str, exact: float, f: float) -> None:
    assert similarities([(first, second)], ["exact", "f1"]) == [
        {"exact": exact, "f1": pytest.approx(f)}
    ]


@given(ANSWERS, ANSWERS)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(first: str, second: str) -> None:
    a, b = normalised(first).split(), normalised(second).split()
    rest = list(b)
    shared = sum(word in rest and (rest.remove(word) is None) for word in a)  # type: ignore[func-returns-value]
    if shared:
        p, r = shared / len(b), shared / len(a)
        assert f1(normalised(first), normalised(second)) == pytest.approx(2 * p * r / (p + r))
    else:
        assert f1(normalised(first), normalised(second)) == float(a == b)


@pytest.mark.parametrize("packages", [True, False])
@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        ("喫茶店", "喫茶店。", 1),
        ("喫茶店", "小さい喫茶店", 2 / 3),
        ("２１２人", "212人", 1),  # full-width digits
        ("木曜", "火曜", 1 / 2),
        ("연락선", "연락선이", 6 / 7),
        ("浓雾", "雾", 2 / 3),
        ("島", "船", 0),
        ("LINEの登録", "LINE 登録", 6 / 7),
    ],
)
def test_f1_of_chinese_japanese_and_korean_counts_characters(
    source: str, output: str, expected: float, packages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not packages:
        monkeypatch.setattr("judge.text.tokenizers.find_spec", lambda module: None)
    assert similarities([(source, output)], languages=["ja"]) == [{"f1": pytest.approx(expected)}]


def test_signature_names_the_units_of_f1_and_rouge() -> None:
    if not text.installed("ja"):
        pytest.skip("needs the packages of ja")
    alike = Similarities(["f1", "rouge1", "chrf"])
    alike.compare([("喫茶店", "茶店"), ("a b", "a"), ("паром", "паром")], ["ja", "ja", "en"])
    assert str(alike.signature("f1")) == "f1|tok=char+squad+words"
    assert str(alike.signature("rouge1")) == f"rouge1|f|stem|tok=en+{text.signature('ja')}+words"
    assert (
        str(alike.signature("chrf"))
        == f"chrf|case=lc|nc=6|nw=0|space=no|beta=1|sacrebleu {sacrebleu.__version__}"
    )


def test_chrf_equals_sacrebleu_on_normalised_answers() -> None:
    pairs = [
        ("喫茶店", "小さい喫茶店"),
        ("木曜", "火曜"),
        ("The Ferry", "a ferry."),
        ("Anna Berg", "Berg"),
        ("島", "船"),
        ("the", "an"),
        ("the", "Oslo"),
        ("喫茶店", "小さい喫茶店"),
    ]
    oracle = sacrebleu.CHRF(beta=1)
    expected = [oracle.sentence_score(normalised(b), [normalised(a)]).score / 100 for a, b in pairs]
    expected[5] = 1.0  # nothing is left of either
    assert similarities(pairs, ["chrf"]) == [
        {"chrf": pytest.approx(value, abs=1e-12)} for value in expected
    ]
    assert expected[1] == 1 / 4


def test_rouge_equals_rouge_score() -> None:
    pairs = [
        ("the old ferries", "an old ferry"),
        ("Anna Berg of Oslo", "Oslo, Anna"),
        ("Oslo", "Bergen"),
    ]
    oracle = rouge_scorer.RougeScorer(["rouge1", "rougeL"], use_stemmer=True)
    for (source, output), values in zip(
        pairs, similarities(pairs, ["rouge1", "rougeL"]), strict=True
    ):
        assert values == {
            name: pytest.approx(score.fmeasure)
            for name, score in oracle.score(source, output).items()
        }


def test_answers_without_a_token_are_similar_only_to_each_other() -> None:
    values = similarities(
        [("%", "%"), ("%", "Oslo"), ("Oslo", "%")], ["exact", "f1", "rouge1", "chrf"]
    )
    assert [list(by_name.values()) for by_name in values] == [[1] * 4, [0] * 4, [0] * 4]


@pytest.mark.usefixtures("fake_bert")
def test_a_missing_answer_has_similarity_zero() -> None:
    names = ["corrected", "exact", "f1", "rouge1", "rougeL", "chrf", "bertscore"]
    assert similarities([("", "Oslo"), ("Oslo", " ")], names) == [dict.fromkeys(names, 0.0)] * 2
    assert fake_metrics[0].pairs == []


@pytest.mark.parametrize(("f", "expected"), CORRECTED.items())
def test_the_corrected_score_by_hand(f: float, expected: float) -> None:
    assert bertscore.rescale_linear(f) == pytest.approx(expected, abs=1e-12)


@pytest.mark.usefixtures("fake_bert")
def test_bertscore_scores_each_distinct_pair_once() -> None:
    pairs = [("x", str(f)) for f in CORRECTED] * 2 + [("x", "none"), ("", "y")]
    values = similarities(pairs, ["bertscore", "corrected"])
    assert fake_metrics[0].pairs == [("x", str(f)) for f in CORRECTED] + [("x", "none")]
    assert [by_name["bertscore"] for by_name in values[:8]] == list(CORRECTED)
    corrected = [by_name["corrected"] for by_name in values[8:16]]
    assert corrected == pytest.approx(list(CORRECTED.values()))
    assert values[16:] == [{}, {"bertscore": 0.0, "corrected": 0.0}]


@pytest.mark.usefixtures("fake_bert")
def test_options_of_bertscore_are_passed_on_and_signed() -> None:
    alike = Similarities(["corrected"], low=0.5, bert={"model": "tiny"})
    assert alike.compare([("x", "0.5")]) == [{"corrected": 0.0}]
    assert fake_metrics[0].options == {
        "model": "tiny",
        "low": 0.5,
        "high": 0.85,
        "context": MetricContext(),
    }
    assert str(alike.signature("corrected")) == "corrected|low=0.5|high=0.85|tiny@1|v1"
    assert str(Similarities(["bertscore"]).signature("bertscore")) == "bertscore|tiny@1|v1"


@given(ANSWERS, ANSWERS)
def test_similarity_is_from_0_to_1_and_1_for_equal_answers(first: str, second: str) -> None:
    names = ["exact", "f1", "rouge1", "rougeL", "chrf"]
    values, same = similarities([(first, second), (first, first)], names)
    assert all(0 <= value <= 1 for value in values.values())
    assert set(same.values()) == ({1.0} if first.strip() else {0.0})


@pytest.mark.parametrize("names", [[], ["f1", "f1"], ["F1"], ["f1", "bleu"]])
def test_an_unknown_similarity_is_an_error(names: list[str]) -> None:
    with pytest.raises(ConfigError, match="similarity"):
        similarities([], names)


def test_low_must_be_less_than_high() -> None:
    with pytest.raises(ConfigError, match="low"):
        similarities([], ["f1"], low=0.9, high=0.8)
