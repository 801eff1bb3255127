"""`to_frame(wide=True)` and `--format csv --wide`: a row for each text."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from io import StringIO

import pandas as pd
import pytest

from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.result import Result
from judge.stats.analyze import analyze
from judge.table import Table

METRIC = Provenance("metric")
FLUENCY = Column("fluency", "criterion", Signature("fluency@1"), 1.0, 5.0)
BLEU = Column("bleu", "metric", Signature("b"))
CORPUS = Column("bleu_corpus", "metric", Signature("c"))


def frame_of(table: Table) -> pd.DataFrame:
    return Result(table).to_frame(wide=True)


def rated_result() -> Result:
    """Return two texts with scores, a reason, a failure, a rating, and columns of the data."""
    samples = (
        Sample("i2", "b", "two b", "source", human={"fluency": 4.5}, extra={"topic": "x", "n": 3}),
        Sample("i1", "b", "one b"),
    )
    scores = (
        Score("i2", "b", "fluency", 4.0, Provenance("single", reason="It reads well.")),
        Score("i2", "b", "bleu", 0.0, METRIC),
        Score("i1", "b", "bleu", 12.5, METRIC),
        Score("", "b", "bleu_corpus", 6.25, METRIC),
    )
    failures = (Failure("i1", "b", "fluency", "parse", "ParseError", "no score", "sorry"),)
    return Result(Table(samples, (FLUENCY, BLEU, CORPUS), scores, failures))


def test_a_wide_row_has_texts_scores_reasons_ratings_failures_and_own_columns() -> None:
    expected = pd.DataFrame(
        {
            "item": ["i2", "i1"],
            "system": ["b", "b"],
            "source": pd.Series(["source", None], dtype="object").infer_objects(),
            "output": ["two b", "one b"],
            "fluency": [4.0, math.nan],
            "bleu": [0.0, 12.5],
            "fluency_reason": pd.Series(["It reads well.", None], dtype="object").infer_objects(),
            "fluency_rating": [4.5, math.nan],
            "failures": ["", "fluency: ParseError"],
            "topic": pd.Series(["x", None], dtype="object").infer_objects(),
            "n": pd.Series([3, None], dtype="object"),
        }
    )
    pd.testing.assert_frame_equal(rated_result().to_frame(wide=True), expected)


def test_the_wide_frame_and_the_wide_csv_have_the_same_columns() -> None:
    result = rated_result()
    header = next(csv.reader(StringIO(result.report("csv", wide=True))))
    assert header == list(result.to_frame(wide=True).columns)


def result_with_overall() -> Result:
    """Return two criteria with different scales, ends and weights; the last text lacks one of them."""
    errors = Column("errors", "criterion", Signature("errors@1"), 0.0, 10.0, better="lower")
    columns = (replace(FLUENCY, weight=3.0), errors)
    scores_by_text = {
        ("i1", "a"): {"fluency": 5.0, "errors": 10.0},
        ("i1", "b"): {"fluency": 1.0, "errors": 0.0},
        ("i2", "b"): {"fluency": 3.0, "errors": 5.0},
        ("i2", "a"): {"fluency": 4.0},
    }
    samples = tuple(Sample(item, system, "text") for item, system in scores_by_text)
    scores = tuple(
        Score(item, system, column_name, value, METRIC)
        for (item, system), values in scores_by_text.items()
        for column_name, value in values.items()
    )
    analysis = analyze(samples, columns, scores)
    return Result(analysis.table, analysis.estimates)


def test_a_wide_row_has_the_overall_score_if_no_criterion_lacks_a_value() -> None:
    frame = result_with_overall().to_frame(wide=True)
    # 3/4 of fluency and 1/4 of errors, each from 0 (worst) to 1 (best).
    assert frame.overall.tolist() == pytest.approx([0.75, 0.25, 0.5, math.nan], nan_ok=True)


def test_the_mean_of_the_wide_overall_scores_is_that_of_the_report() -> None:
    result = result_with_overall()
    means = result.to_frame(wide=True).groupby("system").overall.mean()
    assert means["a"] == pytest.approx(result.estimates["a", "overall"].value)
    assert means["b"] == pytest.approx(result.estimates["b", "overall"].value)


def test_the_wide_csv_has_the_overall_score() -> None:
    rows = csv.DictReader(StringIO(result_with_overall().report("csv", wide=True)))
    assert [row["overall"] for row in rows] == ["0.75", "0.25", "0.5", ""]


def test_a_data_column_called_overall_is_unchanged_without_an_overall_score() -> None:
    frame = frame_of(Table((Sample("i", "s", "o", extra={"overall": "good"}),), (FLUENCY,), ()))
    assert frame.overall.tolist() == ["good"]


def test_a_list_of_the_data_stays_a_list_in_the_frame_and_is_json_in_the_csv() -> None:
    result = Result(Table((Sample("i", "s", "o", extra={"tags": ["a", "b"]}),), (), ()))
    assert result.to_frame(wide=True).tags[0] == ["a", "b"]
    (row,) = csv.DictReader(StringIO(result.report("csv", wide=True)))
    assert row["tags"] == '["a", "b"]'


def test_a_data_column_with_a_reserved_name_is_renamed() -> None:
    extra = {"item": 7, "bleu": "old", "data.bleu": True}
    (row,) = frame_of(Table((Sample("i", "s", "o", extra=extra),), (BLEU,), ())).to_dict("records")
    assert {name: row[name] for name in ("item", "data.item", "data.bleu", "data.data.bleu")} == {
        "item": "i", "data.item": 7, "data.bleu": "old", "data.data.bleu": True,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["item", "system", "source", "output", "failures"])
def test_a_criterion_may_have_the_name_of_another_column(name: str) -> None:
    sample = Sample("i", "s", "an output", "a source")
    column = Column(name, "criterion", Signature("s"))
    table = Table((sample,), (column,), (Score("i", "s", name, 3.0, METRIC),))
    (row,) = frame_of(table).to_dict("records")
    values = [row[key] for key in ("item", "system", "source", "output", "failures")]
    assert values == ["i", "s", "a source", "an output", ""]
    assert row[f"score.{name}"] == 3.0


def test_a_score_does_not_replace_a_rating_of_the_same_name() -> None:
    sample = Sample("i", "s", "o", human={"fluency": 4.0})
    column = Column("fluency_rating", "criterion", Signature("s"))
    table = Table((sample,), (column,), (Score("i", "s", "fluency_rating", 3.0, METRIC),))
    (row,) = frame_of(table).to_dict("records")
    assert (row["fluency_rating"], row["score.fluency_rating"]) == (4.0, 3.0)


def test_the_wide_frame_of_a_comparison_has_the_values_that_both_texts_share() -> None:
    samples = tuple(
        Sample("i", system, "o", extra={"topic": "tram", "writer": system}) for system in "ab"
    )
    pairs = (Score("i", "a", "better", 1.0, METRIC, opponent="b"),)
    table = Table(samples, (Column("better", "criterion", Signature("s")),), pairs)
    (row,) = frame_of(table).to_dict("records")
    assert (row["system"], row["opponent"], row["topic"], row["writer"]) == ("a", "b", "tram", None)


def test_many_columns_of_the_data_are_in_the_wide_frame_without_a_warning() -> None:
    extra = {f"feature {number}": number for number in range(150)}
    frame = frame_of(Table((Sample("i", "s", "o", extra=extra),), (), ()))
    assert frame.iloc[0]["feature 149"] == 149


def test_an_empty_result_has_a_wide_frame_with_its_columns() -> None:
    frame = frame_of(Table((), (FLUENCY,), ()))
    assert list(frame.columns) == ["item", "system", "output", "fluency", "failures"]
    assert len(frame) == 0
