"""The columns of the features, and the function for lists. Oracle: the features, which test_features.py tests."""

from __future__ import annotations

from typing import Any

import pytest

from judge import text
from judge.core.errors import DataError
from judge.core.records import Failure, Sample, Score
from judge.metrics import Note, text_features
from judge.metrics.text_features import DEFAULT, NAMES, Measure, Stats
from tests.factories import has_line

SOURCE = "Ann Field won the race in 2019. The race was in Oslo. Rain fell all day."
OUTPUT = "Field won the race in Oslo."


def feature_values(
    metric: Stats, output: str, source: str | None = SOURCE
) -> dict[str, float | str]:
    rows = metric.score([Sample("7", "a", output, source, where="d.jsonl:3")]).rows
    return {row.column: row.value if isinstance(row, Score) else row.error for row in rows}


def test_columns_have_the_values_of_the_features() -> None:
    features = Measure(SOURCE)(OUTPUT)
    values = feature_values(Stats(columns="all"), OUTPUT)
    assert list(values) == [f"stats_{name}" for name in NAMES]
    nothing = {"number_support": 1, "entity_support": 1}
    for name in NAMES:
        value = getattr(features, name)
        assert values[f"stats_{name}"] == (nothing[name] if value is None else value)
    assert feature_values(Stats(), OUTPUT) == {
        f"stats_{name}": values[f"stats_{name}"] for name in DEFAULT
    }


def test_a_share_of_no_parts_counts_as_faultless() -> None:
    values = feature_values(
        Stats(columns=["number_support", "entity_support", "novel2", "repeated3"]), "Rain"
    )
    assert list(values.values()) == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("source", "lacking"), [(None, "no source"), ("...", "a source without words")]
)
def test_columns_that_need_a_source_fail_without_a_source(source: str | None, lacking: str) -> None:
    result = Stats(columns="words,novel2,defects,entity_support").score(
        [Sample("7", "a", OUTPUT, source)]
    )
    words, novel, defects, entities = result.rows
    assert isinstance(words, Score)
    assert isinstance(defects, Score)
    assert (words.value, defects.value) == (6, 0)
    for row in (novel, entities):
        assert isinstance(row, Failure)
        assert (row.stage, row.error) == ("metric", "NoSource")
        assert has_line(row.message, f"item 7 has {lacking}", "`source`", "--map source=COLUMN")


@pytest.mark.parametrize("output", ["", " \n", "!!!"])
def test_an_output_without_words_fails(output: str) -> None:
    assert set(feature_values(Stats(columns="all"), output).values()) == {"EmptyOutput"}


def test_a_missing_feature_is_a_failure_with_a_reason() -> None:
    values = feature_values(Stats(columns=["position", "js_divergence", "coverage"]), "it is")
    assert values == {
        "stats_position": "Abstained",
        "stats_js_divergence": "Abstained",
        "stats_coverage": 0,
    }


def test_feature_columns_have_descriptions() -> None:
    columns = {
        column.name: column
        for column in Stats(columns="all").score([Sample("1", "a", OUTPUT, SOURCE)]).columns
    }
    density, novel, defects = (
        columns[f"stats_{name}"] for name in ("density", "novel2", "defects")
    )
    assert (density.low, density.high, density.better) == (0, None, "")
    assert (novel.low, novel.high, novel.better) == (0, 1, "")
    assert defects.better == "lower"
    assert columns["stats_number_support"].better == "higher"
    assert str(novel.signature).startswith("stats_novel2|text|tok=en|form=nfkc|judge ")


def test_the_option_tokenizer_overrides_the_script() -> None:
    result = Stats(columns=["words"], tokenizer="en").score(
        [Sample("1", "a", "船は港へ着いた。2019", "船は港へ着いた。")]
    )
    (row,) = result.rows
    assert isinstance(row, Score)
    assert row.value == 8  # seven characters and the number
    assert [str(note) for note in result.notes if getattr(note, "some", 1)] == []
    by_script = Stats(columns=["words"]).score(
        [Sample("1", "a", "船は港へ着いた。", "船は港へ着いた。")]
    )
    name = "ja" if text.installed("ja") else "char"
    assert f"|tok={text.signature(name)}|" in str(by_script.columns[0].signature)
    assert [note.some for note in by_script.notes if isinstance(note, Note)] == [0]


def test_the_function_for_lists() -> None:
    first, second = text_features.score([OUTPUT, "Rain fell."], [SOURCE, None])
    assert first == Measure(SOURCE)(OUTPUT)
    assert (second.words, second.coverage) == (2, None)
    assert text_features.score([OUTPUT])[0].coverage is None
    assert text_features.score([OUTPUT], [SOURCE], tokenizer="char")[0].words == 6


@pytest.mark.parametrize("sources", [[], [SOURCE, SOURCE], SOURCE])
def test_lists_of_unequal_length_are_an_error(sources: Any) -> None:
    with pytest.raises(DataError, match="lists of equal length"):
        text_features.score(["x"], sources)
