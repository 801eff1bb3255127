"""The long table has the numbers of the result, each once."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judge
from judge.results.estimates import estimate_rows, parquet
from judge.results.result import Result, preference_agreement_of
from judge.table import Table

SCORES = {"good": "5443543544", "fair": "3433334323", "poor": "1211222111"}
LENGTHS = "abcdefghij"


def scored(**options: object) -> Result:
    """A run of three systems on ten items, with ratings and two judges."""
    rows = [
        {
            "item": str(k),
            "system": system,
            "output": f"{system} {LENGTHS[: k + 1]} {score}",
            "references": ["a reference"],
            "human": {"polite": [int(score), max(1, int(score) - k % 2)]},
        }
        for system, scores in SCORES.items()
        for k, score in enumerate(scores)
    ]

    def reply(request: object) -> str:
        text = str(request)
        return next(
            score
            for system, scores in SCORES.items()
            for k, score in enumerate(scores)
            if f"{system} {LENGTHS[: k + 1]} {score}" in text
        )

    return judge.evaluate(
        rows,
        "polite: Is it polite?",
        model=[judge.ScriptedProvider(reply, model=name) for name in ("one", "two")],
        metrics=["bleu", "rouge"],
        weighting="single",
        cache=False,
        **options,
    )


@pytest.fixture(scope="module")
def result() -> Result:
    return scored()


def test_means_and_differences_equal_the_result(result: Result) -> None:
    frame = result.estimates_frame()
    means = frame[frame.kind == "mean"].set_index(["system", "column"])
    assert len(means) == len(result.estimates)
    for key, estimate in result.estimates.items():
        row = means.loc[key]
        assert (row.value, row.n, row.method) == (estimate.value, estimate.n, estimate.method)
    differences = frame[frame.kind == "difference"].set_index(["column", "system", "opponent"])
    expected = [(c.column, each) for c in result.comparisons for each in c.differences]
    assert len(differences) == len(expected)
    for column, each in expected:
        row = differences.loc[column, each.system, each.other]
        numbers = (row.value, row.low, row.high)
        expected_numbers = (each.estimate.value, each.estimate.low, each.estimate.high)
        assert numbers == pytest.approx(pd.array(expected_numbers, dtype=float), nan_ok=True)
        assert (row.p, row.adjusted, row.test) == (
            each.estimate.p, each.adjusted, each.estimate.test,
        )  # fmt: skip


def test_correlations_with_ratings_equal_the_result(result: Result) -> None:
    rows = [row for row in estimate_rows(result) if row.kind == "correlation"]
    expected = {
        (rated.criterion, each.name, level, coefficient): estimate.value
        for rated in result.rated
        for each in rated.rows
        for (level, coefficient), estimate in each.correlation.estimates.items()
    }
    assert expected
    assert {
        (row.column, row.subject, row.level, row.measure): row.value for row in rows
    } == expected


def test_every_number_has_one_row(result: Result) -> None:
    keys = Counter(
        (
            row.kind,
            row.column,
            row.measure,
            row.system,
            row.opponent,
            row.subject,
            row.than,
            row.level,
        )
        for row in estimate_rows(result)
    )
    assert [key for key, number in keys.items() if number > 1] == []
    assert {"mean", "difference", "rank", "panel_agreement", "agreement"} <= {
        key[0] for key in keys
    }


def ranked() -> Result:
    """A ranking of three systems, with people's ratings."""
    rows = [
        {
            "item": str(k),
            "system": system,
            "output": f"{system} {k}",
            "source": "A source.",
            "human": {"overall": [place + k % 2, place]},
        }
        for place, system in enumerate(("a", "b", "c"), start=1)
        for k in range(6)
    ]
    return judge.rank(
        rows,
        model=judge.ScriptedProvider(lambda request: "AB"[len(str(request)) % 2]),
        weighting="single",
        cache=False,
    )


def calibrated() -> Result:
    """The run of three systems, corrected by people's ratings."""
    return scored(calibrate=True)


def test_a_ranking_has_its_numbers() -> None:
    result = ranked()
    (ranking,) = result.rankings
    frame = result.estimates_frame()
    of_system = frame.set_index(["kind", "system"])
    for standing in ranking.standings:
        for name in ("win_rate", "strength", "flip_rate"):
            row = of_system.loc[(name, standing.system)]
            assert row.value == getattr(standing, name)
    pairs = frame[frame.kind == "pair_win_rate"].set_index(["system", "opponent"])
    assert len(pairs) == 3
    for i, system in enumerate(ranking.systems):
        for j in range(i + 1, len(ranking.systems)):
            pair = pairs.loc[(system, ranking.systems[j])]
            assert (pair.value, pair.n) == (ranking.win_rate[i][j], ranking.n[i][j])
    for name in ("flip_rate", "position_bias"):
        assert of_system.loc[(name, ""), "value"] == getattr(ranking, name)
    (agreement,) = preference_agreement_of(result)
    people = frame[(frame.kind == "preference_agreement") & (frame.than == "people")]
    assert {*people.value} == {
        agreement.rows[0].same.value,
        *([agreement.rows[0].kappa.value] if agreement.rows[0].kappa else []),
    }


def estimates_in(report: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, float, Any, Any]]:
    """Yield place, value, low and high of each estimate of a JSON report, without calibration charts."""
    if isinstance(report, dict):
        if {"value", "low", "high", "n"} <= report.keys() and "bins" not in path:
            yield ".".join(path), report["value"], report["low"], report["high"]
        for key, value in report.items():
            yield from estimates_in(value, (*path, key))
    elif isinstance(report, list):
        for value in report:
            yield from estimates_in(value, path)


@pytest.mark.parametrize("run", [scored, ranked, calibrated])
def test_each_estimate_of_the_report_is_a_row(run: Callable[[], Result]) -> None:
    result = run()
    numbers = result.estimates_frame()[["value", "low", "high"]].astype(object)
    rows = {tuple(row) for row in numbers.where(numbers.notna(), None).to_numpy()}
    estimates = list(estimates_in(json.loads(result.report("json"))))
    assert estimates or result.rankings
    assert [each for each in estimates if each[1:] not in rows] == []


def test_detectable_differences_and_reversed_correlations_are_rows(result: Result) -> None:
    rows = list(estimate_rows(result))
    detectable = {row.column: row.value for row in rows if row.kind == "detectable_difference"}
    assert detectable
    assert detectable == {
        each.column: each.detectable for each in result.comparisons if each.detectable is not None
    }
    biases = {row.subject: row.value for row in rows if row.kind == "bias"}
    assert biases == {
        each.name: each.calibration.bias.value
        for rated in result.rated
        for each in rated.judges
        if each.calibration is not None
    }


@pytest.mark.parametrize("run", [scored, ranked, calibrated])
def test_the_file_is_the_frame(run: Callable[[], Result], tmp_path: Path) -> None:
    result = run()
    result.save(tmp_path)
    stored = pd.read_parquet(tmp_path / "estimates.parquet")
    pd.testing.assert_frame_equal(stored, result.estimates_frame())


def test_a_name_with_a_lone_surrogate_is_the_same_in_file_and_frame(
    result: Result, tmp_path: Path
) -> None:
    name = "polite\ud800"
    named = replace(result, estimates={("good", name): next(iter(result.estimates.values()))})
    stored = parquet(estimate_rows(named))
    frame = pd.read_parquet(io.BytesIO(stored))
    pd.testing.assert_frame_equal(frame, named.estimates_frame())


def test_an_empty_result_has_the_columns(tmp_path: Path) -> None:
    empty = Result(Table((), (), ()))
    empty.save(tmp_path)
    columns = [*pd.read_parquet(tmp_path / "estimates.parquet").columns]
    assert columns == [*empty.estimates_frame().columns]
    assert {"kind", "value", "p"} <= {*columns}
