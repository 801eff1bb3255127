"""Metrics over data larger than memory. Oracle: the same data measured at once."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from judge import api, config
from judge.api import streaming
from judge.errors import DataError
from judge.metrics import MetricResult
from judge.records import Column, Failure, Provenance, Sample, Score
from judge.report import Result, load
from judge.report.view import view

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
    monkeypatch.setattr(sys.modules["judge.api.prepare"], "_MOST_HELD", 100)
    monkeypatch.setattr(streaming, "SHOWN", 50)


def measured(data: Any, **given: Any) -> Result:
    plan = config.plan(given={"data": data, "criteria": [], "metrics": ["chrf"], **given})
    prepared = api.prepare(plan)
    prepared.metrics["half"] = Half()
    return asyncio.run(api.run(prepared))


@pytest.mark.parametrize("workers", [1, 2])
def test_means_are_those_of_all_texts(data: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    whole = measured(data, metrics=["chrf", "bleu"])
    monkeypatch.setattr(sys.modules["judge.api.prepare"], "_MOST_HELD", 100)
    plan = config.plan(given={"data": data, "criteria": [], "metrics": ["chrf", "bleu"], "workers": workers})
    found = asyncio.run(api.run(api.prepare(plan)))
    assert found.info["streamed"]["texts"] == {"old": 700, "new": 700}
    assert found.info["data"]["rows"] == 1400
    for key, estimate in found.estimates.items():
        other = whole.estimates[key]
        assert estimate.value == pytest.approx(other.value, rel=1e-12)
        assert estimate.n == other.n
        assert (estimate.low, estimate.high) == pytest.approx((other.low, other.high), abs=0.2)  # of about 30 ± 0.6
        assert estimate.method == "95% normal interval over items"
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
        text = " ".join(result.report("console").split())
        assert "! 1,400 texts were measured as they were read: means are over all, the first 50 are shown." in text
        assert "metric HasThree (half)" in text
        failed = 2 * sum("3" in row["item"] for row in ROWS[:700])
        assert f"Failures: {failed}" in text
        assert f"{700 - failed // 2}/700" in text
        assert "halves" in text
    assert "new" in result.report("csv"), "a system that comes after the texts shown"


def test_a_metric_that_needs_all_texts_gets_them(data: Path, small: None) -> None:
    found = measured(data, metrics=["bleu_corpus"])
    assert "streamed" not in found.info
    assert len(found.table.samples) == 1400


def test_few_texts_and_judged_ones_are_held(data: Path, small: None, tmp_path: Path) -> None:
    assert "streamed" not in measured(data, limit=100).info
    assert "streamed" in measured(data, limit=101).info
    (tmp_path / "replies.yaml").write_text("- reply: 3", encoding="utf-8")
    given = {"data": data, "criteria": ["fluency"], "model": f"scripted/{tmp_path / 'replies.yaml'}"}
    assert api.prepare(config.plan(given=given)).rest is None


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
    monkeypatch.setattr(Result, "save", lambda *_: None)  # as if the process ended there
    measured(data, out=tmp_path / "run")
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"scores.parquet", "samples.parquet"}
    assert not (tmp_path / "run" / "run.json").exists()


def test_nothing_is_marked_the_best_where_nothing_was_tested(data: Path, small: None) -> None:
    cells = view(measured(data)).cells
    assert any(cell.estimate for cell in cells.values())
    assert not any(cell.best or cell.same for cell in cells.values())
