from __future__ import annotations

import json
import re
from dataclasses import replace

from judge.core import plugins
from judge.report.views.columns import groups
from judge.report.views.leaderboard import build_leaderboard
from judge.results.result import Result


def test_a_judges_columns_stand_under_their_criterion(panel: Result) -> None:
    assert [(g.name, g.judged, dict(g.parts)) for g in groups(panel)] == [
        ("fluency", True, {"fluency": "panel mean", "fluency/a": "a", "fluency/org/b": "org/b"}),
        ("rougeL", False, {"rougeL": ""}),
    ]
    assert [c.name for c in build_leaderboard(panel).columns] == ["fluency", "fluency/a", "fluency/org/b", "rougeL"]


def test_columns_found_apart_are_put_together_the_mean_first(panel: Result) -> None:
    apart = replace(panel, table=replace(panel.table, columns=panel.table.columns[::-1]))
    assert [c.name for c in build_leaderboard(apart).columns] == ["fluency", "fluency/org/b", "fluency/a", "rougeL"]


def test_without_a_panel_a_slash_is_part_of_the_name(panel: Result) -> None:
    columns = tuple(replace(c, judge="", criterion="") for c in panel.table.columns)
    alone = replace(panel, table=replace(panel.table, columns=columns))
    assert [group.name for group in groups(alone)] == ["fluency", "fluency/a", "fluency/org/b", "rougeL"]


def test_the_panels_means_are_not_missing(panel: Result) -> None:
    assert "3 values are missing" in " ".join(plugins.document(panel).notices)
    unasked = tuple(score for score in panel.table.scores if score.column != "fluency")
    partial = replace(panel, table=replace(panel.table, scores=unasked))
    assert plugins.document(partial).notices == plugins.document(panel).notices


def test_the_full_report_heads_a_column_with_criterion_and_judge(panel: Result) -> None:
    rows = plugins.write(plugins.document(panel), full=True, width=80).split("\n")
    at = next(k for k, row in enumerate(rows) if "panel mean" in row)
    assert rows[at - 1].split() == ["fluency"] * 3
    assert rows[at].split() == ["system", "panel", "mean", "↑", "a", "↑", "org/b", "↑", "rougeL", "↑"]


def test_agreement_is_in_every_format(panel: Result) -> None:
    (agreed,) = agreement(panel)
    assert (agreed.criterion, agreed.alpha, agreed.interval, agreed.n) == ("fluency", "0.81", "[0.50, 0.95]", "2")
    text = re.sub(r"\s+", " ", panel.report("console", full=True))
    assert "Agreement of the judges" in text
    assert "fluency 0.81 2" in text
    assert ALPHA in text
    assert "| fluency | 0.81 \\[0.50, 0.95\\] | 2 |" in panel.report("markdown")
    (row,) = json.loads(panel.report("json"))["agreement"]
    assert row == {
        "criterion": "fluency",
        "alpha": 0.8125,
        "low": 0.5,
        "high": 0.95,
        "n": 2,
        "method": "Krippendorff's alpha, interval distance, 2 judges",
    }


def test_one_judge_agrees_with_nobody(result: Result) -> None:
    for format in ("console", "markdown", "json"):
        assert "greement" not in result.report(format)
