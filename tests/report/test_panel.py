from __future__ import annotations

import json
import re
from dataclasses import replace

from judge.core import plugins
from judge.core.records import Provenance, Sample, Score
from judge.report.views.board import build_leaderboard
from judge.report.views.columns import groups
from judge.report.views.items import browser
from judge.results.result import Result
from judge.stats.analyze import analyze
from judge.stats.panels import panel_column


def test_judge_columns_are_grouped_by_criterion(panel: Result) -> None:
    assert [(g.name, dict(g.parts)) for g in groups(panel)] == [
        ("fluency", {"fluency": "panel mean", "fluency/a": "a", "fluency/org/b": "org/b"}),
        ("rougeL", {"rougeL": ""}),
    ]
    assert [c.name for c in build_leaderboard(panel).columns] == [
        "fluency",
        "fluency/a",
        "fluency/org/b",
        "rougeL",
    ]


def test_panel_columns_are_joined_with_the_mean_first(panel: Result) -> None:
    apart = replace(panel, table=replace(panel.table, columns=panel.table.columns[::-1]))
    assert [c.name for c in build_leaderboard(apart).columns] == [
        "fluency",
        "fluency/org/b",
        "fluency/a",
        "rougeL",
    ]


def test_a_slash_without_a_panel_is_part_of_the_name(panel: Result) -> None:
    columns = tuple(replace(c, judge="", criterion="") for c in panel.table.columns)
    alone = replace(panel, table=replace(panel.table, columns=columns))
    assert [group.name for group in groups(alone)] == [
        "fluency",
        "fluency/a",
        "fluency/org/b",
        "rougeL",
    ]


def test_the_full_report_heads_a_column_with_criterion_and_judge(panel: Result) -> None:
    rows = plugins.write(plugins.document(panel), full=True, width=80).split("\n")
    at = next(k for k, row in enumerate(rows) if "panel mean" in row)
    assert rows[at - 1].split() == ["fluency"] * 3
    assert rows[at].split() == [
        "system",
        "panel",
        "mean",
        "↑",
        "a",
        "↑",
        "org/b",
        "↑",
        "ROUGE-L",
        "↑",
    ]


def test_agreement_is_in_every_format(panel: Result) -> None:
    text = re.sub(r"\s+", " ", panel.report("console", full=True))
    assert "Agreement of the judges" in text
    assert "fluency 0.81 2 0 of 2" in text
    assert "| fluency | 0.81 \\[0.50, 0.95\\] | 2 | 0 of 2 |" in panel.report("markdown")
    (row,) = json.loads(panel.report("json"))["agreement"]
    assert row == {
        "criterion": "fluency",
        "alpha": 0.8125,
        "low": 0.5,
        "high": 0.95,
        "n": 2,
        "method": "Krippendorff's alpha, interval distance, 2 judges",
    }


def test_splits_are_in_every_format(panel: Result) -> None:
    a, b = (column for column in panel.table.columns if column.judge)
    columns = tuple(replace(c, panel="majority") for c in (a, b))
    votes = {"i": (1, 5), "j": (5, 5), "k": (2, 4), "<b>": (4, 3)}
    samples = [Sample(item, "s", "An output.") for item in votes]
    rows = [
        Score(item, "s", column.name, float(value), Provenance("single", argmax=str(value)))
        for item, values in votes.items()
        for column, value in zip(columns, values, strict=True)
    ]
    analyzed = analyze(samples, (panel_column(columns), *columns), rows)
    result = Result(
        analyzed.table,
        analyzed.estimates,
        panel.info,
        analyzed.agreement,
        comparisons=analyzed.comparisons,
    )
    text = re.sub(r"\s+", " ", result.report("console"))
    assert "Panel split on fluency 2 of 4" in text
    text = re.sub(r"\s+", " ", result.report("console", full=True))
    assert "4 2 of 4 3 of 4" in text
    assert "Widest splits i s fluency 1 to 5 a 1 · org/b 5 k s fluency 2 to 4" in text
    assert "panel majority" in text
    assert "- i s fluency **1 to 5**: a 1 · org/b 5" in result.report("markdown")
    (splits,) = json.loads(result.report("json"))["splits"]
    widest = [{"item": item, "system": "s", "opponent": "", "values": dict(zip(("a", "org/b"), votes[item], strict=True))}
              for item in "ik"]  # fmt: skip
    assert splits == {
        "criterion": "fluency",
        "n": 4,
        "split": 2,
        "no_majority": 3,
        "widest": widest,
    }
    apart = next(m for m in browser(result).content().measures if m.name == "fluency: judges apart")
    assert [apart.values[item, "s"] for item in votes] == [4, 0, 2, 1]
    assert 'href="#items?column=fluency%3A%20judges%20apart"' in result.report("html")


def test_one_judge_has_no_agreement(result: Result) -> None:
    for format in ("console", "markdown", "json"):
        assert not re.search("greement|split", result.report(format))
