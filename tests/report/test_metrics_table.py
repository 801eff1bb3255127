"""The table that compares every judge and metric with people, by criterion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import judge
from judge.core.plugins import document
from judge.report.document import Table
from judge.report.table_selection import only_table

N_ITEMS = 30
SYSTEMS = "abcdef"


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    """Return ratings of two criteria, a judge that follows the first, and two metrics."""
    random = np.random.default_rng(0)
    rows = []
    for item in range(N_ITEMS):
        for system in SYSTEMS:
            helpful = random.integers(1, 6)
            polite = random.integers(1, 6)
            row: dict[str, Any] = {
                "item": str(item),
                "system": system,
                "output": "word " * int(random.integers(3, 40)),
                "helpful": int(np.clip(helpful + random.integers(-1, 2), 1, 5)),
                "comet": float(helpful + random.normal(0, 3)),
                "wer": float(-polite + random.normal(0, 0.1)),
                "rating.helpful": helpful,
                "rating.polite": polite,
            }
            rows.append(row)
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def result(data: pd.DataFrame) -> Any:
    return judge.evaluate(
        data, judge_columns="helpful", scale="1-5", score_columns="comet,wer=lower"
    )


@pytest.fixture(scope="module")
def validation(result: Any) -> Any:
    return judge.validate(result)


def table_of(validation: Any) -> Table:
    (section,) = only_table(document(validation), "metrics").sections
    (table,) = section.blocks
    assert isinstance(table, Table)
    return table


def within_items(data: pd.DataFrame, values: str, ratings: str) -> float:
    """Return scipy's Spearman correlation, averaged over items."""
    by_item = [
        stats.spearmanr(group[values], group[ratings]).statistic
        for _, group in data.groupby("item")
        if group[values].nunique() > 1 and group[ratings].nunique() > 1
    ]
    return float(np.mean(by_item))


def test_values_equal_scipy(data: pd.DataFrame, validation: Any) -> None:
    values_by_row = {
        row[0].text: [cell.value for cell in row[1:]] for row in table_of(validation).rows
    }
    assert values_by_row["comet"] == pytest.approx(
        [within_items(data, "comet", f"rating.{name}") for name in ("helpful", "polite")]
    )
    reversed_wer = data.assign(wer=-data.wer)
    assert values_by_row["wer reversed"] == pytest.approx(
        [within_items(reversed_wer, "wer", f"rating.{name}") for name in ("helpful", "polite")]
    )
    judged, unjudged = values_by_row["judge"]
    assert judged == pytest.approx(within_items(data, "helpful", "rating.helpful"))
    assert unjudged is None


def test_rows_are_sorted_by_their_mean(validation: Any) -> None:
    means = []
    for row in table_of(validation).rows:
        values = [cell.value for cell in row[1:] if cell.value is not None]
        means.append(sum(values) / len(values))
    assert means == sorted(means, reverse=True)


def test_a_star_marks_a_correlation_significantly_above_all_others(validation: Any) -> None:
    marks = {row[0].text: [cell.mark for cell in row[1:]] for row in table_of(validation).rows}
    assert marks["judge"] == ["*", ""]
    assert marks["wer reversed"] == ["", "*"]
    assert marks["comet"] == ["", ""]


def test_differences_hold_together(validation: Any) -> None:
    helpful = next(rated for rated in validation.rated if rated.criterion == "helpful")
    names = {name for name, level in helpful.behind if level == "within-items"}
    assert names == {"comet", "wer reversed", "length"}
    assert all(each.value >= 0 for each in helpful.behind.values())


@pytest.mark.parametrize("metrics", ["none", "rouge", "chrf"])
def test_the_report_and_validate_compare_with_the_same_baselines(
    data: pd.DataFrame, metrics: str
) -> None:
    """Regression: a report compared with length alone, and `judge validate` with all metrics."""
    texts = data.drop(columns="wer")
    options: dict[str, Any] = {"score_columns": "comet"}
    if metrics != "none":
        texts = texts.drop(columns="comet").assign(references=[["word word"]] * len(data))
        options = {"metrics": metrics}
    if metrics == "rouge":
        options["set"] = ["rouge.types=rougeL"]
    run = judge.evaluate(texts, judge_columns="helpful", scale="1-5", **options)
    of_run = next(rated for rated in run.rated if rated.criterion == "helpful")
    validated = next(rated for rated in judge.validate(run).rated if rated.criterion == "helpful")
    names = [row.name for row in of_run.baselines]
    assert "length" in names
    assert len(names) > 1
    assert names == [row.name for row in validated.baselines]
    assert of_run.differences == validated.differences


def test_latex_leads_with_it_or_has_it_alone(validation: Any) -> None:
    latex = validation.report("latex", full=True)
    assert latex.index("tab:judge-metrics") < latex.index("tab:judge-people-helpful")
    assert "\\toprule" in latex


def test_an_unknown_table_is_refused_with_the_known_ones(validation: Any) -> None:
    with pytest.raises(judge.JudgeError, match=r"metric'.*'metrics'"):
        only_table(document(validation), "metric")


def test_metrics_of_the_run_are_compared_without_being_named(data: pd.DataFrame) -> None:
    texts = data.assign(references=[["word word"]] * len(data))
    result = judge.evaluate(texts, judge_columns="helpful", scale="1-5", metrics="chrf,bleu_corpus")
    names = {row[0].text for row in table_of(judge.validate(result)).rows}
    assert "chrF" in names
    assert not any("corpus" in name.lower() for name in names)
