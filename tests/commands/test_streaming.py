"""Metrics over data larger than memory. Oracle: the same data measured at once."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from judge.commands import judge_run
from judge.commands.pipeline import run_pipeline
from judge.commands.preparation import prepare
from judge.config import load_config
from judge.core.errors import DataError
from judge.core.records import Column, Failure, Provenance, Request, Sample, Score
from judge.execution.progress import Progress
from judge.metrics import MetricResult
from judge.providers.scripted import ScriptedProvider
from judge.report.views.leaderboard import build_leaderboard
from judge.results.result import Result, load

ROWS = [
    {"item": f"{n}", "system": s, "output": f"the {s} boat came at {n}", "references": [f"a boat came at {n % 5}"]}
    for s in ("old", "new")
    for n in range(700)
]


class Half:
    """Half the letters' number; a text that holds a 3 cannot be measured."""

    rowwise = True

    def score(self, samples: list[Sample]) -> MetricResult:
        rows = [
            Failure(s.item, s.system, "half", "metric", "HasThree", "a 3 is in it")
            if "3" in s.item
            else Score(s.item, s.system, "half", len(s.output) / 2, Provenance("metric"))
            for s in samples
        ]
        return MetricResult((Column("half", "metric", "half|judge 1"),), tuple(rows), ("halves",))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is more than 100 texts is large; 50 are shown."""
    monkeypatch.setattr(sys.modules["judge.commands.preparation"], "_MAX_IN_MEMORY", 100)
    monkeypatch.setattr(sys.modules["judge.commands.preparation"], "_MAX_IN_MEMORY_JUDGED", 200)
    monkeypatch.setattr(judge_run, "SHOWN", 50)
    monkeypatch.setattr(judge_run, "_WINDOW", 600)


def measured(data: Any, **given: Any) -> Result:
    plan = load_config(given={"data": data, "criteria": [], "metrics": ["chrf"], **given})
    prepared = prepare(plan)
    prepared.metrics["half"] = Half()
    return asyncio.run(run_pipeline(prepared))


@pytest.mark.parametrize("workers", [1, 2])
def test_means_are_those_of_all_texts(data: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    whole = measured(data, metrics=["chrf", "bleu"])
    monkeypatch.setattr(sys.modules["judge.commands.preparation"], "_MAX_IN_MEMORY", 100)
    plan = load_config(given={"data": data, "criteria": [], "metrics": ["chrf", "bleu"], "workers": workers})
    found = asyncio.run(run_pipeline(prepare(plan)))
    assert found.info["streamed"]["texts"] == {"old": 700, "new": 700}
    assert found.info["data"]["rows"] == 1400
    for key, estimate in found.estimates.items():
        other = whole.estimates[key]
        assert estimate.value == pytest.approx(other.value, rel=1e-12)
        assert estimate.n == other.n
        assert (estimate.low, estimate.high) == pytest.approx((other.low, other.high), rel=1e-9)
        assert estimate.method == other.method
    assert found.info["signatures"]["chrf"] == whole.info["signatures"]["chrf"]


def test_files_hold_every_row_in_table_order(data: Path, small: None, tmp_path: Path) -> None:
    measured(data, out=tmp_path / "run")
    import pandas as pd

    scores = pd.read_parquet(tmp_path / "run" / "scores.parquet")
    assert [tuple(key) for key in scores[["item", "system", "column"]].to_numpy()] == [
        (row["item"], row["system"], column) for row in ROWS for column in ("chrf", "half")
    ]
    texts = pd.read_parquet(tmp_path / "run" / "samples.parquet")
    assert list(texts["output"]) == [row["output"] for row in ROWS]
    assert not list((tmp_path / "run").glob(".*"))


def test_a_stored_run_shows_the_first_texts_and_all_counts(data: Path, small: None, tmp_path: Path) -> None:
    found, stored = measured(data, out=tmp_path / "run"), load(tmp_path / "run")
    assert len(stored.table.samples) == 50
    assert stored.table == found.table
    assert stored.estimates == found.estimates
    assert found.failed == stored.failed == 2 * sum("3" in row["item"] for row in ROWS[:700])
    for result in (found, stored):
        text = " ".join(result.report("console", full=True).split())
        assert (
            "! 1,400 texts were measured as they were read: means are over all, the first 50 are shown, and diff"
            in text
        )
        failed = 2 * sum("3" in row["item"] for row in ROWS[:700])
        assert f"{failed} × HasThree (half): 3, old: a 3 is in it" in text
        assert f"{2 * 1400 - failed:,} measured, {failed} failed" in text
        assert f"{700 - failed // 2}/700" in text
        assert "halves" in text
    assert "new" in result.report("csv"), "a system that comes after the texts shown"


def test_a_metric_that_needs_all_texts_gets_them(data: Path, small: None) -> None:
    found = measured(data, metrics=["bleu_corpus"])
    assert "streamed" not in found.info
    assert len(found.table.samples) == 1400


def test_few_texts_are_held_and_those_of_a_panel(data: Path, small: None) -> None:
    assert "streamed" not in measured(data, limit=100).info
    assert "streamed" in measured(data, limit=101).info
    plan = load_config(given={"data": data, "criteria": ["fluency"], "metrics": []})
    two = [ScriptedProvider(lambda _: 2, model=name) for name in "ab"]
    assert prepare(plan, providers=two).rest is None
    assert prepare(plan, providers=two[:1]).rest is not None


def by_number(request: Request) -> str:
    """A score of 1 to 3 by the last digit of the hour; none where that is a 7."""
    hour = re.findall(r"came at (\d+)", request.messages[0]["content"])[-1]
    return "no idea" if hour.endswith("7") else str(1 + int(hour) % 3)


def test_judged_texts_are_streamed_too(data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows, means and failures are those of the same run held in memory; each prompt is asked once."""

    def run(out: str, asked: ScriptedProvider) -> Result:
        given = {"data": data, "criteria": ["fluency", "coherence"], "metrics": ["chrf"], "weighting": "single"}
        plan = load_config(given={**given, "cache": tmp_path / out, "out": tmp_path / out, "language": "en"})
        return asyncio.run(run_pipeline(prepare(plan, providers=[asked])))

    rows = [*ROWS[:200], *ROWS[-200:]]
    rows += [{**row, "item": f"more {row['item']}"} for row in rows[::4]]
    sourced = [{**row, "source": "The boat came and went."} for row in rows]
    data.write_text("\n".join(map(json.dumps, sourced)), encoding="utf-8")
    whole = run("held", ScriptedProvider(by_number, endpoint="here"))
    for name, value in (("_MAX_IN_MEMORY", 100), ("_MAX_IN_MEMORY_JUDGED", 200)):
        monkeypatch.setattr(sys.modules["judge.commands.preparation"], name, value)
    monkeypatch.setattr(judge_run, "_WINDOW", 300)
    asked = ScriptedProvider(by_number, endpoint="here")
    found = run("streamed", asked)
    import pandas as pd

    stored = [pd.read_parquet(tmp_path / out / "scores.parquet") for out in ("held", "streamed")]
    places = ["item", "system", "column"]
    held, streamed = (one.sort_values(places).reset_index(drop=True)[[*places, "value"]] for one in stored)
    pd.testing.assert_frame_equal(held, streamed)
    assert found.failed == whole.failed > 0
    assert found.info["streamed"]["texts"] == {"old": 250, "new": 250}
    assert found.estimates["new", "fluency"].value == pytest.approx(whole.estimates["new", "fluency"].value)
    assert found.info["signatures"] == whole.info["signatures"]
    assert found.info["requests"]["answered"] == len(asked.seen) == whole.info["requests"]["answered"]
    assert found.info["prompts"]["sheets"]


def test_a_stopped_run_is_answered_what_it_asked_and_leaves_no_files(data: Path, small: None, tmp_path: Path) -> None:
    progress = Progress()

    def script(_: Request) -> str:
        if len(asked.seen) == 800:  # in the second window
            progress.stop()
        return "3"

    asked = ScriptedProvider(script, endpoint="here")
    given = {"data": data, "criteria": ["fluency"], "metrics": [], "weighting": "single", "language": "en"}
    plan = load_config(given={**given, "cache": tmp_path / "cache", "out": tmp_path / "out"})
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run_pipeline(prepare(plan, providers=[asked]), progress))
    assert 800 <= len(asked.seen) <= 800 + 64
    assert not list((tmp_path / "out").iterdir())
    again = ScriptedProvider(lambda _: "3", endpoint="here")
    asyncio.run(run_pipeline(prepare(plan, providers=[again])))
    assert len(again.seen) == 1400 - len(asked.seen)


def test_bad_data_far_down_leaves_nothing_behind(data: Path, small: None, tmp_path: Path) -> None:
    with data.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(ROWS[0]))
    with pytest.raises(DataError, match=r"data.jsonl:1401: item '0' of system 'old' is already at .*data.jsonl:1;"):
        measured(data, out=tmp_path / "run")
    assert list((tmp_path / "run").iterdir()) == []


def test_another_runs_record_goes_before_the_tables_are_replaced(
    data: Path, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured(data, limit=10, out=tmp_path / "run")
    monkeypatch.setattr(Result, "save", lambda *_, **__: None)  # as if the process ended there
    measured(data, out=tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"scores.parquet", "samples.parquet"}
    assert not (tmp_path / "run" / "run.json").exists()


def test_nothing_is_marked_the_best_where_nothing_was_tested(data: Path, small: None) -> None:
    rows = build_leaderboard(measured(data)).rows
    assert any(row.mean for row in rows.values())
    assert not any(row.mark for row in rows.values())
