"""Scores in columns of the data are compared, correlated and validated like metrics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError, DataError
from judge.providers.scripted import ScriptedProvider
from tests.factories import has_line, write_jsonl

CELLS = {"a": (0.9, 0.8, 0.7), "b": ("0.5", "n/a", 0.4), "c": (0.3, None, 0.2)}
ROWS: list[dict[str, Any]] = [
    {"item": str(n), "system": system, "output": f"{system} wrote text {n}.", "comet": cell, "wer": n + ord(system),
     "human": {"fluency": ord("d") - ord(system)}}
    for system, cells in CELLS.items() for n, cell in enumerate(cells)
]  # fmt: skip


def test_they_are_compared_like_metrics_and_signed_external(tmp_path: Path) -> None:
    result = judge.evaluate(
        ROWS, [], metrics=[], score_columns=["comet", "wer=lower"], out=tmp_path / "r"
    )
    comet, wer = judge.load_result(tmp_path / "r").table.columns
    assert (str(comet.signature), comet.better, comet.kind) == (
        "comet|external",
        "higher",
        "metric",
    )
    assert (str(wer.signature), wer.better) == ("wer|external|lower is better", "lower")
    assert result.estimates["b", "comet"].value == pytest.approx((0.5 + 0.4) / 2)
    assert {comparison.column for comparison in result.comparisons} == {"comet", "wer"}
    assert [(f.item, f.system, f.error) for f in result.failures] == [
        ("1", "b", "NoScore"),
        ("1", "c", "NoScore"),
    ]
    no_number, no_value = (f.message for f in result.failures)
    assert has_line(no_number, "row 5", "'n/a'", "comet", "not a number")
    assert has_line(no_value, "row 8", "no value", "comet")
    better = [row | {"comet": 1.0} for row in ROWS]
    later = judge.evaluate(
        better, [], metrics=[], score_columns={"comet": "higher", "wer": "lower"}
    )
    assert "comet" in {change.column for change in judge.compare(result, later).runs.means}


def test_they_are_correlated_with_a_judge_and_validated() -> None:
    provider = ScriptedProvider(
        lambda request: "3" if "a wrote" in request.messages[0]["content"] else "1"
    )
    result = judge.evaluate(
        ROWS, ["fluency"], model=provider, metrics=[], score_columns="comet,wer=lower", cache=False
    )
    assert {"fluency", "comet", "wer"} <= {*result.matrices[0].names}
    assert re.search(r"fluency +comet\n", result.report("console"))  # the metric and the judge
    (rated,) = judge.validate(result).rated
    rho = {
        row.name: row.correlation.estimates["within-items", "spearman"].value
        for row in rated.baselines[:2]
    }
    assert rho == {"comet": 1.0, "wer reversed": 1.0}  # people's order


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"score_columns": "commet"},
            "score_columns commet: .*'comet'",
        ),
        ({"score_columns": "system2"}, "score_columns system2: .*number"),
        (
            {"score_columns": "comet=best"},
            "score_columns: comet: .*'higher' or 'lower'",
        ),
        ({"score_columns": "fluency"}, "score_columns fluency: a criterion"),
    ],
)
def test_columns_without_scores_are_refused_before_a_judge_is_paid(
    options: dict[str, Any], message: str
) -> None:
    provider = ScriptedProvider(lambda _: "3")
    with pytest.raises((ConfigError, DataError), match=message):
        judge.evaluate(
            [row | {"system2": "x"} for row in ROWS],
            ["fluency"],
            model=provider,
            metrics=[],
            **options,
        )
    assert not provider.seen


def test_wide_data_have_a_column_for_each_system() -> None:
    row = {"a": "A text.", "b": "Another.", "a_comet": 0.9, "b_comet": 0.4, "comet": 0.5}
    wide: dict[str, Any] = {"systems": ["a", "b"], "metrics": [], "score_columns": "comet"}
    result = judge.evaluate([row], [], **wide, map={"comet": "{system}_comet"})
    assert {score.system: score.value for score in result.table.scores} == {"a": 0.9, "b": 0.4}
    with pytest.raises(DataError, match=r"'comet'.*map=\{'comet': '\{system\}_comet'\}"):
        judge.evaluate([row], [], **wide)


def test_a_suite_has_cases_about_them(tmp_path: Path) -> None:
    data = tmp_path / "d.jsonl"
    write_jsonl(data, ROWS)
    suite = tmp_path / "s.judge.yaml"
    suite.write_text(
        "data: d.jsonl\nscore_columns: {comet: higher, wer: lower}\ncases:\n"
        "- {name: good, criterion: comet, item: '0', system: a, expect: {min: 0.8}}\n"
        "- {name: bad, criterion: comet, item: '0', system: c, expect: {min: 0.8}}\n"
        "- {name: none, criterion: comet, item: '1', system: b, expect: {min: 0}}\n"
        "- {name: order, criterion: wer, item: '0', better: a, worse: c}\n",
        encoding="utf-8",
    )
    (outcome,) = judge.test(suite)
    assert not outcome.trouble
    verdicts = {verdict.name: (verdict.status, verdict.found) for verdict in outcome.verdicts}
    assert (verdicts["good"][0], verdicts["bad"][0], verdicts["order"][0]) == (
        "passed",
        "failed",
        "passed",
    )
    assert verdicts["none"][0] == "error"


def test_a_suite_compares_them_with_its_baseline(tmp_path: Path) -> None:
    suite = tmp_path / "s.judge.yaml"
    rows = [
        {"item": str(n), "output": f"Text {n}.", "comet": 0.7 + n / 100, "wer": 0.2}
        for n in range(12)
    ]
    suite.write_text(
        "data: d.jsonl\nscore_columns: [comet, wer=lower]\ncases:\n"
        "- {criterion: comet, expect: {min: 0}}\n- {criterion: wer, expect: {min: 0}}\n",
        encoding="utf-8",
    )
    statuses = []
    for change in (0.0, 0.1):
        worse = [row | {"comet": row["comet"] - change, "wer": row["wer"] + change} for row in rows]
        write_jsonl(tmp_path / "d.jsonl", worse)
        baseline = {"baseline": tmp_path / "runs"} if change else {"out": tmp_path / "runs"}
        (outcome,) = judge.test(suite, **baseline)
        statuses.append({v.name: v.status for v in outcome.verdicts if v.kind == "baseline"})
    assert statuses == [{}, {f"{name} against the baseline": "failed" for name in ("comet", "wer")}]
