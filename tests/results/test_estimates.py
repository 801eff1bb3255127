"""The long table has the numbers of the result, each once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import judge
from judge.results.estimates import estimate_rows
from judge.results.result import Result
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


def test_means_and_differences_are_those_of_the_result(result: Result) -> None:
    frame = result.estimates_frame()
    means = frame[frame.kind == "mean"].set_index(["system", "column"])
    assert len(means) == len(result.estimates)
    for key, estimate in result.estimates.items():
        row = means.loc[key]
        assert (row.value, row.n, row.method) == (estimate.value, estimate.n, estimate.method)
    differences = frame[frame.kind == "difference"].set_index(["column", "system", "other"])
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


def test_correlations_with_people_are_those_of_the_result(result: Result) -> None:
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


def test_no_number_has_two_rows(result: Result) -> None:
    keys = Counter(
        (row.kind, row.column, row.measure, row.system, row.other, row.subject, row.than, row.level)
        for row in estimate_rows(result)
    )
    assert [key for key, number in keys.items() if number > 1] == []
    assert {"mean", "difference", "rank", "panel_agreement", "agreement"} <= {
        key[0] for key in keys
    }


def test_a_ranking_has_win_rates_and_strengths() -> None:
    rows = [
        {"item": str(k), "system": system, "output": f"{system} {k}", "source": "A source."}
        for system in ("a", "b", "c")
        for k in range(6)
    ]
    ranked = judge.rank(
        rows,
        model=judge.ScriptedProvider(lambda _: "A"),
        weighting="single",
        cache=False,
    )
    (ranking,) = ranked.rankings
    found = ranked.estimates_frame().set_index(["kind", "system"])
    for standing in ranking.standings:
        assert found.loc[("win_rate", standing.system), "value"] == standing.win_rate
        assert found.loc[("strength", standing.system), "value"] == standing.strength


def test_the_file_is_the_frame(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path)
    stored = pd.read_parquet(tmp_path / "estimates.parquet")
    pd.testing.assert_frame_equal(stored, result.estimates_frame(), check_dtype=False)


def test_an_empty_result_has_the_columns(tmp_path: Path) -> None:
    empty = Result(Table((), (), ()))
    empty.save(tmp_path)
    columns = [*pd.read_parquet(tmp_path / "estimates.parquet").columns]
    assert columns == [*empty.estimates_frame().columns]
    assert {"kind", "value", "p"} <= {*columns}
