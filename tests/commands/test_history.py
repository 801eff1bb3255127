"""`judge.history`: the means of finished runs, and where they changed."""

from __future__ import annotations

import json
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError
from judge.core.records import Request
from judge.results.history import History
from judge.results.result import Result

CRITERION = {"name": "clear", "question": "Is the text clear?", "show": []}
ROWS = [{"item": f"i{n}", "system": system, "output": f"{system} {n}"} for n in range(20) for system in "ab"]


def run(shift: float = 0.0, *, seed: int = 0, started: str = "2026-01-01", out: Path | None = None) -> Result:
    """A run in which system b scores `shift` higher; each reply has noise of its own seed."""

    def reply(request: Request) -> dict[int, float]:
        words = request.messages[-1]["content"]
        text = next(row["output"] for row in reversed(ROWS) if f"\n{row['output']}\n" in words)
        noise = random.Random(f"{seed}{text}").uniform(-0.3, 0.3)
        share = min(1.0, max(0.0, (2.5 + noise + (shift if text[0] == "b" else 0.0) - 1) / 4))
        return {1: 1 - share, 5: share}

    provider = judge.ScriptedProvider(reply)
    result = judge.evaluate(ROWS, [CRITERION], model=provider, metrics=[], cache=False, out=out)
    info: Any = result.info
    info["started"] = f"{started}T10:00:00+00:00"
    return result


def marks(history: History) -> list[tuple[str, int, int | None]]:
    return [(series.system, step.run, step.since) for series, step in history.changes]


def test_a_change_is_marked_once_and_the_next_run_is_compared_with_it() -> None:
    runs = [
        run(seed=1, started="2026-01-01"),
        run(1.0, seed=3, started="2026-03-01"),
        run(seed=2, started="2026-02-01"),
    ]
    runs.append(run(1.0, seed=4, started="2026-04-01"))
    history = judge.history(runs)
    assert [each.started[:7] for each in history.runs] == ["2026-01", "2026-02", "2026-03", "2026-04"]
    assert marks(history) == [("b", 2, 0)]
    (series,) = [each for each in history.series if each.system == "b"]
    assert [step.since for step in series.steps] == [None, 0, 0, 2]
    change = series.steps[2].change
    assert change is not None
    assert change.estimate.value == pytest.approx(1.0, abs=0.2)
    # Bonferroni over 2 systems and 3 later runs
    assert change.estimate.p is not None
    assert series.steps[2].adjusted == pytest.approx(6 * change.estimate.p)
    console = history.report()
    assert "clear of b rose by" in console
    assert console.count("▲") == 2  # the mark, and its key
    assert "judge compare 'run 1'" in console or "judge compare" in console


def test_a_slow_drift_is_found() -> None:
    runs = [run(0.04 * k, seed=k, started=f"2026-01-{k + 1:02}") for k in range(12)]
    assert {system for system, *_ in marks(judge.history(runs))} == {"b"}


def test_without_a_change_few_histories_mark_one() -> None:
    found = sum(bool(judge.history([run(seed=10 * k + n) for n in range(3)]).changes) for k in range(12))
    assert found <= 2  # at most 5% of histories: more than 2 of 12 have a probability below 2%
    assert "No significant change in 3 runs" in judge.history([run(seed=n) for n in range(3)]).report()


def test_what_else_changed_is_said() -> None:
    runs = [run(seed=1), run(1.0, seed=2, started="2026-02-01")]
    info: Any = runs[1].info
    info["served_by"] = ["m-2026-02"]
    assert "another model answered (m-2026-02)" in " ".join(judge.history(runs).report().split())
    info["served_by"] = runs[0].info["served_by"]
    assert "same texts and judge." in judge.history(runs).report()


def test_a_change_names_the_other_texts_of_its_own_system_and_the_judges_other_settings() -> None:
    old, new = run(seed=1), run(1.0, seed=2, started="2026-02-01")
    samples = tuple(replace(s, source="new") if s.system == "a" or s.item == "i3" else s for s in new.table.samples)
    columns = tuple(replace(c, signature=c.signature.replace("t=", "t=9")) for c in new.table.columns)
    new = replace(new, table=replace(new.table, samples=samples, columns=columns))
    report = " ".join(judge.history([old, new]).report().split())
    assert "other texts of 1 item; the judge's temperature differs." in report


def test_a_run_keeps_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(out=tmp_path / "before").info["commit"] == ""
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    run(out=tmp_path / "after")
    history = judge.history([tmp_path / "before", tmp_path / "after"])
    assert [each.commit for each in history.runs] == ["", commit]
    assert commit[:8] in history.report()
    rows = json.loads(history.report("json"))
    assert rows["schema"] == "judge.history/1"
    assert rows["runs"][1]["commit"] == commit
    assert "<svg" in history.report("html")
    assert history.report("csv").splitlines()[0].startswith("run,started,commit,served_by,column,system,mean")


@pytest.mark.parametrize(
    ("runs", "columns", "words"),
    [(1, (), "needs two runs or more"), (2, ("claer",), "did you mean 'clear'")],
)
def test_what_is_missing_is_said(runs: int, columns: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        judge.history([run(seed=n) for n in range(runs)], columns=columns)


def test_rankings_are_left_out_and_unfinished_runs_are_named() -> None:
    rows = [{**row, "source": "A text."} for row in ROWS]
    ranking = judge.rank(rows, model=judge.ScriptedProvider(lambda _: {"A": 0.6, "B": 0.4}), cache=False)
    runs = [run(seed=n) for n in range(2)]
    info: Any = runs[1].info
    info["status"] = "stopped"
    history = judge.history([runs[0], ranking, runs[1]])
    assert len(history.runs) == 2
    assert history.notes[0].startswith("run 3: This run was stopped by an error.")
    assert history.notes[1] == "Left out, because rankings have no means: run 2."
    with pytest.raises(ConfigError, match=r"needs two runs or more.*Left out.*: run 2\."):
        judge.history([runs[0], ranking])


def test_runs_of_one_minute_have_labels_of_their_own() -> None:
    runs = [run(seed=n, started="2026-01-01") for n in range(4)]
    for result, started in zip(runs, ("10:00:00", "10:00:30", "10:00:30", "10:01:00"), strict=True):
        info: Any = result.info
        info["started"] = f"2026-01-01T{started}+00:00"
    lines = judge.history(runs).report().splitlines()
    for label in ("2026-01-01 10:00:00", "run 2", "run 3", "2026-01-01 10:01 "):
        assert any(line.startswith(label) for line in lines), label
