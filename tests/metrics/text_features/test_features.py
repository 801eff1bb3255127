"""Features. Oracles: numbers by hand, scipy, and correlations on SummEval measured earlier with other code."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import spearmanr

from judge.core.records import Sample
from judge.metrics.text_features import OF_SOURCE, Features, Measure, measured

SOURCE = "Ann Field won the race in 2019. The race was in Oslo. Rain fell all day."
OUTPUT = "Field won the race in Oslo. Snow snow fell in 2020. In Oslo"


def test_values_by_hand() -> None:
    """The source has 16 words and the output 13. It copies `field won the race in` and five shorter runs."""
    source, output = (
        [word.strip(".").lower() for word in text.split()] for text in (SOURCE, OUTPUT)
    )
    # Positions in the source: field won the race in (1-5), oslo (11), fell (13), the first `in` (5), in oslo (10-11)
    positions = [1, 2, 3, 4, 5, 11, 13, 5, 10, 11]
    features = Measure(SOURCE)(OUTPUT)
    assert (features.words, features.sentences, features.characters) == (13, 3, len(OUTPUT))
    assert features.coverage == pytest.approx(10 / 13)
    assert features.density == pytest.approx((25 + 1 + 1 + 1 + 4) / 13)
    assert features.compression == pytest.approx(16 / 13)
    assert features.novel1 == pytest.approx(3 / 13)  # snow, snow, 2020
    # all bigrams except field won, won the, the race, race in, and in oslo twice
    assert features.novel2 == pytest.approx(6 / 12)
    assert features.novel3 == pytest.approx(8 / 11)
    assert features.position == pytest.approx(sum(positions) / 10 / 15)
    assert features.repeated2 == pytest.approx(1 / 12)  # in oslo
    assert features.repeated3 == 0
    assert features.adjacent_duplicates == 1
    # `field won the race in oslo` shares five words with the first sentence, `snow fell in 2020` one with the third,
    # and `in oslo` two.
    best = [2 * 5 / (6 + 7), 2 * 1 / (4 + 4), 2 * 2 / (2 + 5)]
    assert features.best_sentence == pytest.approx(sum(best) / 3)
    assert (features.number_support, features.entity_support) == (0, 1)  # 2020; Oslo, Oslo
    assert (features.no_end, features.fragments, features.doubled_words, features.defects) == (
        1,
        pytest.approx(1 / 3),
        1,
        3,
    )
    copied = [word for word in output if word not in ("snow", "2020")]
    assert [source[position] for position in positions] == copied


def test_features_of_a_copy_and_of_an_unrelated_text() -> None:
    same = Measure(SOURCE)(SOURCE)
    assert (same.coverage, same.density, same.compression, same.best_sentence) == (1, 16, 1, 1)
    assert (same.novel1, same.novel2, same.novel3) == (0, 0, 0)
    assert same.js_divergence == pytest.approx(0)
    assert same.position == pytest.approx(0.5)
    unrelated = Measure(SOURCE)("Quarterly profits doubled again.")
    assert (unrelated.coverage, unrelated.density) == (0, 0)
    assert (unrelated.best_sentence, unrelated.position) == (0, None)
    assert (unrelated.novel1, unrelated.novel2, unrelated.novel3) == (1, 1, 1)
    assert unrelated.js_divergence == 1


def test_case_and_punctuation_do_not_count() -> None:
    features = Measure(SOURCE)("ANN FIELD won, the race; in 2019")
    assert (features.coverage, features.density, features.novel3) == (1, 7, 0)


@pytest.mark.parametrize("source", [None, "", " \n", "!!! ..."])
def test_features_that_need_a_source_are_none_without_a_source(source: str | None) -> None:
    features = Measure(source)(OUTPUT)
    assert {
        field.name for field in fields(Features) if getattr(features, field.name) is None
    } == set(OF_SOURCE)
    assert (features.words, features.adjacent_duplicates, features.defects) == (13, 1, 3)


def test_shares_of_an_empty_text_are_none() -> None:
    empty = Measure(SOURCE)(" ... ")
    assert (empty.words, empty.sentences, empty.characters, empty.defects) == (0, 0, 3, 0)
    shares = {"repeated2", "repeated3", "fragments", *OF_SOURCE}
    missing = {field.name for field in fields(Features) if getattr(empty, field.name) is None}
    assert missing == shares
    one_word = Measure(SOURCE)("Rain")
    assert (one_word.novel1, one_word.novel2, one_word.repeated2) == (0, None, None)
    assert (one_word.coverage, one_word.position) == (1, 12 / 15)
    assert Measure(SOURCE)("it was of the").js_divergence is None  # function words alone


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("船は午後遅くに港へ着いた。雨が一日中降っていた。", "船は午後遅くに港へ着いた。"),
        (
            "배가 오후 늦게 항구에 도착했다. 비가 하루 종일 내렸다.",
            "배가 오후 늦게 항구에 도착했다.",
        ),
        ("渡轮下午很晚才到达港口。雨下了一整天。", "渡轮下午很晚才到达港口。"),
    ],
)
def test_other_scripts_have_words_and_sentences(source: str, output: str) -> None:
    measure = Measure(source)
    features = measure(output)
    assert features.sentences == 1
    assert features.words > 5
    assert (features.coverage, features.density, features.novel2, features.best_sentence) == (
        1,
        features.words,
        0,
        1,
    )
    assert features.defects == 0
    assert measure.used.isdisjoint({"en"})
    assert measure("He ate green apples.").coverage == 0


@given(*[st.lists(st.sampled_from(["boat", "red", "sank", "noon"]), min_size=1, max_size=9)] * 2)
def test_divergence_equals_scipy(source: list[str], output: list[str]) -> None:
    kinds = ["boat", "red", "sank", "noon"]
    p, q = [[words.count(kind) / len(words) for kind in kinds] for words in (output, source)]
    divergence = Measure(" ".join(source))(" ".join(output)).js_divergence
    assert divergence == pytest.approx(jensenshannon(p, q, base=2) ** 2, abs=1e-9)


@given(st.text("ab. \n1", max_size=30), st.text("ab. \n1", max_size=30))
def test_features_are_in_their_range(source: str, output: str) -> None:
    features = Measure(source)(output)
    if (
        features.coverage is not None
        and features.density is not None
        and features.novel1 is not None
    ):
        assert features.coverage == pytest.approx(1 - features.novel1)
        assert features.coverage <= features.density <= features.words
    for field in fields(Features):
        value = getattr(features, field.name)
        if value is not None:
            unbounded = isinstance(value, int) or field.name in ("density", "compression")
            assert 0 <= value <= (float("inf") if unbounded else 1)


def test_samples_come_back_in_order() -> None:
    samples = [
        Sample(*each) for each in (("1", "a", "x", "y"), ("2", "a", "y", "y"), ("3", "a", "z", "x"))
    ]
    used: set[str] = set()
    assert [features.coverage for features in measured(samples, used=used)] == [0, 1, 0]
    assert used == {"en"}


PUBLISHED = {  # from a study before this code: Spearman by document, without constant vectors
    "density": (
        1,
        {"coherence": 0.213, "consistency": 0.412, "fluency": 0.296, "relevance": 0.203},
    ),
    "novel2": (
        -1,
        {"coherence": 0.206, "consistency": 0.412, "fluency": 0.313, "relevance": 0.171},
    ),
    "js_divergence": (
        -1,
        {"coherence": 0.148, "consistency": 0.275, "fluency": 0.166, "relevance": 0.306},
    ),
    "coverage": (
        1,
        {"coherence": 0.047, "consistency": 0.393, "fluency": 0.298, "relevance": 0.078},
    ),
    "compression": (
        1,
        {"coherence": -0.003, "consistency": -0.071, "fluency": 0.017, "relevance": -0.135},
    ),
}


@pytest.mark.slow
def test_correlations_on_summeval_equal_the_published(shared_data: Callable[[str], Path]) -> None:
    rows = [
        json.loads(line) for line in shared_data("summeval.jsonl").read_text("utf-8").splitlines()
    ]
    features = measured(
        [Sample(row["doc_id"], row["system"], row["summary"], row["source"]) for row in rows]
    )
    documents: defaultdict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        documents[row["doc_id"]].append(index)
    for name, (sign, expected) in PUBLISHED.items():
        for criterion, rho in expected.items():
            pairs = [
                (
                    [getattr(features[i], name) for i in rows_of_document],
                    [rows[i]["human"][criterion] for i in rows_of_document],
                )
                for rows_of_document in documents.values()
            ]
            each = [
                spearmanr(*pair).statistic
                for pair in pairs
                if all(len(set(side)) > 1 for side in pair)
            ]
            assert sign * sum(each) / len(each) == pytest.approx(rho, abs=0.02), (name, criterion)
