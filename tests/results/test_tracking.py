"""MLflow and Weights & Biases: the names, and the real packages offline."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import MissingExtra
from judge.results import tracking

ROWS = [
    {
        "item": str(n),
        "system": system,
        "output": f"{system} {n} came.",
        "references": [f"{n} came."],
    }
    for n in range(6)
    for system in ("old/v1", "old_v1", "..", "新しい?")
]


@pytest.fixture(scope="module")
def result() -> judge.Result:
    criteria = [{"name": "clear", "question": "Is it clear?", "pass_at": 4}]
    replies = judge.ScriptedProvider(lambda request: {"4": 0.75, "5": 0.25})
    return judge.evaluate(ROWS, criteria, model=replies, metrics=["chrf"])


def test_each_number_has_a_name_of_its_own(result: judge.Result) -> None:
    listed = list(tracking.metrics(result, "run1."))
    named = dict(listed)
    assert len(named) == len(listed)
    assert named["run1.old_v1/clear"] == named["run1.old_v1/clear_2"] == pytest.approx(4.25)
    assert named["run1.old_v1/clear.pass_rate"] == 1
    assert named["run1._/chrf"] == pytest.approx(result.estimates["..", "chrf"].value)
    assert named["run1._/chrf.low"] <= named["run1._/chrf"] <= named["run1._/chrf.high"]
    assert named["run1.judge/failed"] == 0
    signatures = dict(tracking.parameters(result))
    assert signatures["judge/signature/chrf"] == next(
        str(c.signature) for c in result.table.columns if c.name == "chrf"
    )


def test_rankings_have_win_rates() -> None:
    rows = [{**row, "source": "A ship came."} for row in ROWS[:2]]
    ranked = judge.rank(rows, language="en", model=judge.ScriptedProvider(lambda _: {"A": 1.0}))
    assert dict(tracking.metrics(ranked))["old_v1/overall.win_rate"] == 0.5


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_missing_package_is_named(
    result: judge.Result, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=f"pip install {name}"):
        getattr(result, f"log_to_{name}")()


@pytest.mark.slow
@pytest.mark.extra
@pytest.mark.filterwarnings("default")
def test_mlflow_keeps_it_in_a_folder(
    result: judge.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    result.log_to_mlflow()
    with mlflow.start_run() as active:
        result.log_to_mlflow(prefix="again.")
    assert mlflow.active_run() is None
    client = mlflow.MlflowClient()
    first, second = sorted(
        client.search_runs(["0"]), key=lambda run: run.info.run_id == active.info.run_id
    )
    assert first.data.metrics == pytest.approx(dict(tracking.metrics(result)))
    assert second.data.metrics == pytest.approx(dict(tracking.metrics(result, "again.")))
    assert first.data.params == dict(tracking.parameters(result))
    files = {Path(file.path).name for file in client.list_artifacts(first.info.run_id, "judge")}
    assert files == {"report.html", "report.md", "report.json", "scores.csv"}
    folder = Path(
        mlflow.artifacts.download_artifacts(run_id=first.info.run_id, artifact_path="judge")
    )
    assert (folder / "report.html").read_text("utf-8") == result.report("html")


@pytest.mark.slow
@pytest.mark.extra
@pytest.mark.enable_socket  # wandb talks to a process of its own
@pytest.mark.filterwarnings("default")
def test_wandb_keeps_it_offline(
    result: judge.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "MODE": "offline",
        "SILENT": "true",
        "DIR": str(tmp_path),
        "ERROR_REPORTING": "false",
    }.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    wandb = pytest.importorskip("wandb")
    with wandb.init(project="judge") as run:
        result.log_to_wandb()
        summary = dict(run.summary)
    assert {name: summary[name] for name, _ in tracking.metrics(result)} == pytest.approx(
        dict(tracking.metrics(result))
    )
    (table,) = tmp_path.rglob("*.table.json")
    stored: Any = json.loads(table.read_text("utf-8"))
    assert stored["columns"] == ["item", "system", "opponent", "column", "value"]
    assert len(stored["data"]) == len(result.table.scores)
    (page,) = tmp_path.rglob("*.html")
    assert result.report("html")[-2000:] in page.read_text("utf-8")
    result.log_to_wandb()
    assert wandb.run is None
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == 2
