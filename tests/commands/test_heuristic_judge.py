"""`--model heuristic`: in a judge's place, beside one, and never by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judge
from judge.cli import app
from judge.core.errors import ConfigError
from judge.metrics.heuristic import NOTICE

SOURCE = (
    "The ferry Alba left Norholm at seven on Monday with 212 passengers. Two hours later its engine failed in fog. "
    "The lifeboat of Skarvik towed it to the harbour, where it arrived shortly before noon. Nobody was hurt."
)
COPIED = "The ferry Alba left Norholm at seven on Monday with 212 passengers."
REWORDED = "Passengers heading out had quite a fright when fog and a dead motor stranded their boat."
ROWS = [
    {"item": "1", "system": "copied", "source": SOURCE, "output": COPIED},
    {"item": "1", "system": "reworded", "source": SOURCE, "output": REWORDED},
]


def run(**options: Any) -> judge.Result:
    return judge.evaluate(ROWS, **{"metrics": [], "cache": False, **options})


def test_alone_it_stands_in_the_judges_place() -> None:
    result = run(model="heuristic")
    assert [(c.name, c.criterion, c.kind) for c in result.table.columns] == [
        ("relevance", "relevance", "criterion"), ("coherence", "coherence", "criterion"),
        ("extractive_support", "consistency", "criterion"), ("surface_fluency", "fluency", "criterion"),
    ]  # fmt: skip
    chosen = run(model="heuristic", criteria=["consistency", "relevance"]).table.columns
    assert [c.name for c in chosen] == ["extractive_support", "relevance"]
    assert result.info["model"] == "heuristic-1"
    assert result.info["judges"] == {}
    assert result.info["notes"].count(NOTICE) == 1
    assert {s.system for s in result.table.scores} == {"copied"}
    assert {(f.system, f.error) for f in result.failures} == {("reworded", "Abstained")}
    assert (result.failed, result.abstained) == (4, 0)
    for format in ("console", "markdown", "html"):
        said = " ".join(result.report(format).split())
        assert "heuristic-1 is a baseline of surface features, not a language model" in said, format


def test_beside_a_judge_it_is_a_metric_that_may_abstain() -> None:
    result = run(model=[judge.ScriptedProvider(lambda _: "3", model="said"), "heuristic"], criteria=["relevance"])
    assert [(c.name, c.kind) for c in result.table.columns] == [
        ("relevance", "criterion"), ("heuristic_relevance", "metric"), ("heuristic_coherence", "metric"),
        ("heuristic_extractive_support", "metric"), ("heuristic_surface_fluency", "metric"),
    ]  # fmt: skip
    assert result.info["model"] == "said"
    assert result.agreement == {}  # no panel
    assert (result.failed, result.abstained) == (0, 4)
    assert NOTICE in result.info["notes"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "heuristic", "criteria": ["relevance", "overall_quality"]}, "relevance, coherence, consistency"),
        ({"model": "heuristic", "set": {"heuristic": {"lenght": 3}}}, "did you mean|known"),
        ({}, r"--replay(.|\n)*--model heuristic"),
    ],
)
def test_what_it_does_not_do_is_said(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        run(**options)
    with pytest.raises(ConfigError, match=r"compares none; judge\.evaluate"):
        judge.rank(ROWS, model="heuristic", cache=False)


def test_on_the_command_line_an_abstention_fails_alone_and_not_beside_a_judge(tmp_path: Path) -> None:
    data, replies = tmp_path / "data.jsonl", tmp_path / "replies.yaml"
    data.write_text("".join(f"{row}\n".replace("'", '"') for row in ROWS), "utf-8")
    replies.write_text('- reply: "3"\n', "utf-8")
    common = ["run", str(data), "--metrics", "none", "--no-cache", "--model", "heuristic"]
    alone = CliRunner().invoke(app, [*common, "--out", str(tmp_path / "alone")])
    assert alone.exit_code == 1, alone.output
    assert "4 values failed" in alone.output
    beside = CliRunner().invoke(app, [*common, "--model", f"scripted/{replies}", "--out", str(tmp_path / "beside")])
    assert beside.exit_code == 0, beside.output
    assert "4 skipped by metrics" in beside.output
