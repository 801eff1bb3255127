"""Judge scores in columns of the data count as the judgments of a run."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy import stats

import judge
from judge.core.errors import ConfigError, DataError
from tests.factories import has_line

SCORES = {"a": (5, 4, 5, 4, 3, 5, 4, 5), "b": (3, 4, 2, 3, 3, 4, 2, 3), "c": (1, 2, 2, 3, 1, 2, 3, 1)}  # fmt: skip
RATINGS = {"a": (5, 5, 4, 4, 4, 5, 3, 5), "b": (3, 3, 2, 4, 2, 4, 2, 3), "c": (2, 1, 2, 2, 1, 3, 2, 1)}  # fmt: skip


def frame(**columns: Any) -> pd.DataFrame:
    """Return one row per item and system, with the judge's score and a person's rating."""
    rows = [
        {
            "item": f"i{item}",
            "system": system,
            "helpful": SCORES[system][item],
            "human": RATINGS[system][item],
            **columns,
        }
        for item, system in itertools.product(range(8), SCORES)
    ]
    return pd.DataFrame(rows)


def evaluate(data: Any, columns: Any = "helpful", **options: Any) -> judge.Result:
    return judge.evaluate(data, judge_columns=columns, cache=False, **options)


def test_means_tests_and_agreement_equal_pandas_and_scipy() -> None:
    data = frame()
    result = evaluate(data, scale="1-5")
    for system, mean in data.groupby("system").helpful.mean().items():
        assert result.estimates[str(system), "helpful"].value == pytest.approx(mean)
    (comparison,) = result.comparisons
    first_difference = comparison.differences[0]
    differences = data[data.system == "a"].helpful.values - data[data.system == "b"].helpful.values
    assert first_difference.estimate.value == pytest.approx(differences.mean())
    (rated,) = judge.validate(result, level="all-texts").rated
    correlation = rated.judges[0].correlation.estimates["all-texts", "spearman"].value
    assert correlation == pytest.approx(stats.spearmanr(data.helpful, data.human).statistic)


def test_a_table_without_texts_adds_no_note() -> None:
    result = evaluate(frame(), scale="1-5")
    assert not result.info.notes
    assert has_line(result.report("console", full=True), "judge's scores", "from the data")
    assert not result.failures


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_files_give_the_numbers_of_the_frame(tmp_path: Path, suffix: str) -> None:
    data = frame()
    path = tmp_path / f"scores.{suffix}"
    if suffix == "csv":
        data.to_csv(path, index=False)
    elif suffix == "jsonl":
        data.to_json(path, orient="records", lines=True)
    else:
        data.to_parquet(path)
    expected = evaluate(data).estimates
    estimates = evaluate(path).estimates
    assert {key: value.value for key, value in estimates.items()} == {
        key: value.value for key, value in expected.items()
    }


def test_one_row_per_score_becomes_one_row_per_text() -> None:
    wide = frame().assign(polite=lambda data: 6 - data.helpful)
    long = wide.melt(
        id_vars=["item", "system"],
        value_vars=["helpful", "polite"],
        var_name="criterion",
        value_name="score",
    )
    result = evaluate(long, "score", scale="1-5")
    expected = evaluate(wide.drop(columns="human"), "helpful,polite", scale="1-5")
    assert [column.name for column in result.table.columns] == ["helpful", "polite"]
    assert {key: value.value for key, value in result.estimates.items()} == {
        key: value.value for key, value in expected.estimates.items()
    }


def test_ratings_and_reasons_beside_each_score_stay_with_their_criterion() -> None:
    rows = [
        {
            "item": "1",
            "system": "a",
            "criterion": "helpful",
            "score": 4,
            "human": 5,
            "why": "clear",
        },
        {"item": "1", "system": "a", "criterion": "polite", "score": 2, "human": 1, "why": "rude"},
    ]
    result = evaluate(rows, "score", scale="1-5")
    (sample,) = result.table.samples
    assert sample.human == {"helpful": 5, "polite": 1}
    assert sample.extra["helpful.why"] == "clear"
    assert sample.extra["polite.why"] == "rude"


@pytest.mark.parametrize("columns", ["helpful", "score"])
def test_an_iterator_loses_no_row(columns: str) -> None:
    rows = frame().rename(columns={"helpful": columns}).to_dict("records")
    result = evaluate(iter(rows), columns, scale="1-5")
    assert len(result.table.samples) == len(rows)


def test_a_row_per_score_needs_an_item() -> None:
    rows = [{"system": "a", "criterion": "helpful", "score": score} for score in (4, 5)]
    with pytest.raises(DataError, match=r"row 1: no item"):
        evaluate(rows, "score")


def test_the_column_of_criteria_can_have_a_different_name() -> None:
    rows = [
        {"item": "1", "system": "a", "aspect": name, "score": score}
        for name, score in (("helpful", 4), ("polite", 2))
    ]
    result = evaluate(rows, "score", scale="1-5", map={"criterion": "aspect"})
    assert [column.name for column in result.table.columns] == ["helpful", "polite"]


def test_two_scores_of_one_text_and_criterion_are_refused_with_both_places() -> None:
    rows = [{"item": "1", "system": "a", "criterion": "helpful", "score": n} for n in (4, 5)]
    with pytest.raises(DataError, match=r"row 2.*helpful.*row 1"):
        evaluate(rows, "score")


def test_a_column_of_scores_for_each_system(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", *SCORES])
        for item, scores in enumerate(zip(*SCORES.values(), strict=True)):
            writer.writerow([f"i{item}", *scores])
    result = evaluate(path, "helpful", systems=["a", "b", "c"])
    expected = evaluate(frame())
    for key, estimate in result.estimates.items():
        assert estimate.value == expected.estimates[key].value


@pytest.mark.parametrize(
    ("column", "values", "options", "ends", "n_notes"),
    [
        ("helpful", (1, 5, 3), {}, (1, 5), 1),
        ("helpful", (2, 4, 3), {"scale": "1-5"}, (1, 5), 0),
        ("helpful", (2, 4, 3), {"scale": [0, 10]}, (0, 10), 0),
        ("helpful (1-5)", (2, 4, 3), {}, (1, 5), 0),
        ("helpful（１～５）", (2, 4, 3), {}, (1, 5), 0),
        ("helpful (1〜5)", (2, 4, 3), {}, (1, 5), 0),
        ("helpful", (2, 4, 3), {"scale": "1～5"}, (1, 5), 0),
        ("helpful", ("合格", "不合格", "はい"), {}, (0, 1), 0),
        ("helpful", ("통과", "불합격", "아니요"), {}, (0, 1), 0),
        ("helpful", ("通过", "不通过", "是"), {}, (0, 1), 0),
        ("helpful", (0.25, 0.5, 0.9), {}, (0, 1), 1),
        ("helpful", ("pass", "FAIL", "pass"), {}, (0, 1), 0),
        ("helpful", (True, False, True), {}, (0, 1), 0),
    ],
)
def test_the_scale_is_given_in_the_header_or_by_the_values(
    column: str,
    values: tuple[Any, ...],
    options: dict[str, Any],
    ends: tuple[float, float],
    n_notes: int,
) -> None:
    rows = [{"item": str(n), "system": "a", column: value} for n, value in enumerate(values)]
    result = evaluate(rows, **options)
    (judged,) = result.table.columns
    assert (judged.name, judged.low, judged.high) == ("helpful", *ends)
    assert len([note for note in result.info.notes if "scale" in str(note)]) == n_notes


def test_a_column_called_by_its_whole_header_has_the_scale_in_it() -> None:
    header = "helpful (1-5)"
    rows = [{"item": str(n), "system": "a", header: score} for n, score in enumerate((2, 4, 3))]
    (judged,) = evaluate(rows, header).table.columns
    assert (judged.name, judged.low, judged.high) == (header, 1, 5)


def test_equal_scores_say_nothing_about_the_scale() -> None:
    rows = [{"item": str(n), "system": "a", "helpful": 4} for n in range(3)]
    (note,) = evaluate(rows).info.notes
    assert "every score is 4" in str(note)


def test_verdicts_have_pass_rates() -> None:
    rows = [
        {"item": str(n), "system": "a", "solved": verdict}
        for n, verdict in enumerate(["pass", "fail", "pass", "pass"])
    ]
    result = evaluate(rows, "solved")
    assert result.table.columns[0].pass_at == 1
    assert result.estimates["a", "solved"].value == 0.75
    report = result.report("console")
    assert has_line(report, "solved: 75% pass", "4 items")
    assert "probability" not in report


@pytest.mark.parametrize(
    ("passed", "failed"),
    [
        ("통과", "실패"),
        ("통과", "미통과"),
        ("통과", "불통과"),
        ("정답", "오답"),
        ("성공", "실패"),
        ("충족", "미충족"),
        ("通过", "未通过"),
        ("通過", "沒有通過"),
        ("达标", "未达标"),
        ("正确", "错误"),
        ("对", "错"),
        ("正解", "不正解"),
        ("成功", "失敗"),
        ("合", "否"),
        ("○", "×"),
        ("O", "X"),
        ("Ｏ", "Ｘ"),
        ("✔️", "❌"),
        ("✅", "✗"),
        ("y", "N"),
        ("T", "F"),
        ("Passed", "Not passed"),
        ("correct", "INCORRECT"),
        ("right", "wrong"),
        ("success", "failure"),
        ("accepted", "rejected"),
        ("OK", "NG"),
        ("met", "not met"),
    ],
)
def test_both_words_of_a_pair_are_read(passed: str, failed: str) -> None:
    rows = [
        {"item": str(n), "system": "a", "solved": word}
        for n, word in enumerate([passed, failed, f" {passed}", passed])
    ]
    result = evaluate(rows, "solved")
    assert result.estimates["a", "solved"].value == 0.75
    assert not result.failures


@pytest.mark.parametrize("unknown", ["flunked", "불합", "没过", "△", "not_attempted", 3, 0.5])
def test_an_unknown_value_beside_a_verdict_is_an_error_that_names_it(unknown: Any) -> None:
    rows = [
        {"item": str(n), "system": "a", "solved": word}
        for n, word in enumerate(["pass", "pass", unknown])
    ]
    with pytest.raises(DataError, match=f"row 3: solved is {unknown!r}"):
        evaluate(rows, "solved")


@pytest.mark.parametrize("empty", [None, "", "n/a", float("nan")])
def test_a_verdict_may_be_missing(empty: Any) -> None:
    rows = [
        {"item": str(n), "system": "a", "solved": word}
        for n, word in enumerate(["pass", "fail", empty])
    ]
    result = evaluate(rows, "solved")
    assert result.estimates["a", "solved"].value == 0.5
    assert len(result.failures) == 1


def test_a_score_outside_the_scale_is_an_error_with_its_location() -> None:
    rows = [{"item": str(n), "system": "a", "helpful": n} for n in range(1, 7)]
    with pytest.raises(DataError, match=r"row 6: helpful is 6, .*1 to 5"):
        evaluate(rows, scale="1-5")


def test_a_cell_without_a_number_is_a_failure_and_never_a_score() -> None:
    cells = [4, None, "n/a", 2]
    rows = [{"item": str(n), "system": "a", "helpful": cell} for n, cell in enumerate(cells)]
    result = evaluate(rows, scale="1-5")
    assert result.estimates["a", "helpful"].value == 3
    assert [failure.item for failure in result.failures] == ["1", "2"]
    assert {failure.error for failure in result.failures} == {"NoScore"}


@pytest.mark.parametrize("cell", [1e308, -1e16, float("inf")])
def test_a_number_that_no_score_can_be_is_a_failure(cell: float) -> None:
    data = frame().astype({"helpful": float})
    data.loc[0, "helpful"] = cell
    result = evaluate(data, scale="1-5")
    assert [failure.item for failure in result.failures] == ["i0"]


@pytest.mark.parametrize("columns", ["", " ", ["helpful", ""]])
def test_an_empty_name_of_a_column_is_refused(columns: Any) -> None:
    with pytest.raises(ConfigError, match=r"judge_columns: .*empty"):
        evaluate(frame(), columns)


def test_less_may_be_better() -> None:
    result = evaluate(frame(), "helpful=lower", scale="1-5")
    assert result.table.columns[0].better == "lower"
    assert evaluate(frame(), {"helpful": "lower"}, scale="1-5").table.columns[0].better == "lower"


@pytest.mark.parametrize("scale", ["5-1", "1", "high", [1], [1, 2, 3], "1-nan"])
def test_a_scale_that_is_none_is_refused(scale: Any) -> None:
    with pytest.raises(ConfigError, match="scale"):
        evaluate(frame(), scale=scale)


def test_an_unknown_column_is_named_with_a_similar_one() -> None:
    with pytest.raises(DataError, match=r"helpfull.*helpful"):
        evaluate(frame(), "helpfull")


def test_a_judge_of_this_run_cannot_have_the_same_criterion() -> None:
    with pytest.raises(ConfigError, match="fluency"):
        evaluate(frame().assign(fluency=3, output="Some text."), "fluency", criteria=["fluency"])


def test_means_are_calibrated_to_people() -> None:
    copies = [frame().assign(item=lambda data, n=n: data.item + f"-{n}") for n in range(6)]
    unrated = [copy.drop(columns="human") for copy in copies[3:]]
    data = pd.concat([*copies[:3], *unrated])
    result = evaluate(data, scale="1-5", calibrate=True)
    (calibrated,) = result.calibrated
    assert [mean.system for mean in calibrated.means] == ["a", "b", "c"]


def test_suites_have_cases_about_them(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "scores.csv", index=False)
    suite = tmp_path / "scores.judge.yaml"
    suite.write_text(
        "data: scores.csv\njudge_columns: helpful\nscale: 1-5\ncases:\n"
        "  - {name: order, criterion: helpful, better: a, worse: c}\n"
        "  - {name: level, criterion: helpful, system: a, expect: {min: 5}}\n",
        "utf-8",
    )
    (outcome,) = judge.test(suite)
    statuses = {v.name: v.status for v in outcome.verdicts if v.subject == "case"}
    assert statuses == {"order": "passed", "level": "failed"}


PAIRS = [
    {"item": str(item), "first": first, "second": second, "preference": preference}
    for item in range(6)
    for first, second, preference in (("a", "b", "first"), ("b", "a", "a"), ("a", "c", 1.0), ("c", "a", 0))
]  # fmt: skip


def test_a_column_of_scores_without_any_value_is_named(tmp_path: Path) -> None:
    data = tmp_path / "scores.csv"
    data.write_text("item,output,helpful\n1,text,\n2,text,\n")
    with pytest.raises(DataError, match="no text has a value in the column 'helpful'"):
        judge.evaluate(data, judge_columns="helpful", scale="1-5", cache=False)


def test_preferences_rank_the_systems() -> None:
    result = judge.rank(PAIRS, judge_columns="preference")
    (ranking,) = result.rankings
    assert ranking.standings[0].system == "a"
    assert len(result.table.scores) == len(PAIRS)
    assert result.info.orders == 2


def test_preferences_between_other_systems_do_not_count_against_one_system() -> None:
    others = [
        {"item": str(item), "first": first, "second": second, "preference": "c"}
        for item in range(6)
        for first, second in (("b", "c"), ("c", "b"))
    ]
    result = judge.rank([*PAIRS, *others], judge_columns="preference", against="a")
    (ranking,) = result.rankings
    assert {standing.system: standing.win_rate for standing in ranking.standings} == {
        "a": 1.0,
        "b": 0.0,
        "c": 0.0,
    }
    assert has_line(result.info.remarks, "12 preferences between other systems")


def test_pairs_in_both_orders_have_flips_beside_pairs_in_one_order() -> None:
    one_more = {"item": "last", "first": "a", "second": "b", "preference": "first"}
    (ranking,) = judge.rank([*PAIRS, one_more], judge_columns="preference").rankings
    assert (ranking.pairs, ranking.flip_rate, ranking.position_bias) == (13, 0.0, 0.0)


def test_pairs_in_one_order_count_as_they_are() -> None:
    one_order = [row for row in PAIRS if row["first"] == "a"]
    result = judge.rank(one_order, judge_columns="preference")
    assert result.info.orders == 1
    (ranking,) = result.rankings
    assert ranking.standings[0].system == "a"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"item": "1", "first": "a", "second": "a", "preference": "first"}, "both a"),
        ({"item": "x", "first": "a", "second": "b", "preference": "maybe"}, "maybe"),
        ({"item": "1", "first": "a", "preference": "first"}, "second"),
        ({"item": "0", "first": "a", "second": "b", "preference": "tie"}, "row 1"),
    ],
)
def test_a_pair_without_a_preference_is_refused(row: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        judge.rank([*PAIRS, row], judge_columns="preference")


def test_pairs_are_sent_to_the_command_for_them() -> None:
    with pytest.raises(DataError, match="rank"):
        judge.evaluate(PAIRS, judge_columns="preference")


@pytest.mark.parametrize(
    ("scores", "scale", "labels"),
    [
        ((1, 3, 5), "1-5", ("1", "2", "3", "4", "5")),
        ((-1, 0, 1), "-1-1", ("-1", "0", "1")),
        ((0, 100, 100), "0-100", ("0", "100")),
        ((21, 32, 27), "0-100", ()),
        ((0.25, 0.5, 0.75), None, ()),
        ((1.5, 4.25, 3), "1-5", ()),
    ],
)
def test_continuous_scores_have_no_levels(
    scores: Sequence[float],
    scale: str | None,
    labels: Sequence[str],
) -> None:
    rows = [{"item": str(index), "v": score} for index, score in enumerate(scores)]
    (column,) = evaluate(rows, "v", scale=scale).table.columns
    assert column.labels == labels
    assert len(column.values) == len(labels)


def test_continuous_scores_are_drawn_in_bins_and_have_no_confusion_and_kappa() -> None:
    rows = [
        {"item": str(index), "system": system, "v": 12 + index, "human": 40 - index}
        for index in range(8)
        for system in "ab"
    ]
    result = evaluate(rows, "v", scale="0-100")
    (rated,) = judge.validate(result).rated
    row = rated.judges[0]
    assert "kappa_quadratic" in row.agreement.lacking
    assert row.exact is None
    page = result.report("html")
    assert "a 8 × 10–20; b 8 × 10–20" in page
    assert "Same level" not in page


def test_the_alt_test_counts_no_raters_if_the_data_have_one_rating_per_text() -> None:
    validation = judge.validate(evaluate(frame(), scale="1-5"))
    test = validation.rated[0].judges[0].alt_test
    assert test is not None
    assert "one rating per text" in test.reason


def test_length_is_a_baseline_only_if_there_are_texts() -> None:
    without_texts = judge.validate(evaluate(frame(), scale="1-5"))
    assert without_texts.rated[0].baselines == ()
    assert "ength" not in without_texts.report(full=True)
    with_texts = judge.validate(evaluate(frame(output="One or two words."), scale="1-5"))
    assert [row.name for row in with_texts.rated[0].baselines] == ["length"]
