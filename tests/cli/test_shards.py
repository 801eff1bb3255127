"""Commands on data in many files. Oracle: the same command on one file with the same rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judge as package
from tests.factories import has_line, lines_hold, write_jsonl

RATED = {"x": 5, "y": 2, "z": 1}
ROWS = [
    {
        "item": item,
        "system": system,
        "source": f"The council met about {item}, and voted to mend the old bridge in May.",
        "output": f"{system} wrote that the council met about {item}"
        + " again" * n * (system == "y"),
        "references": [f"The council voted about {item}."],
        "human": {"relevance": RATED[system]},
    }
    for n, item in enumerate(("roads", "parks", "ponds", "ferries"))
    for system in RATED
]
REPLIES = "- {when: x wrote, reply: 5}\n- {when: y wrote, reply: 3}\n- {when: [], reply: 1}\n"
SCRIPTED = ("--model", "scripted/replies.yaml", "--criteria", "relevance", "--metrics", "none")
MANY = ("shards", "shards/*.jsonl")


@pytest.fixture
def judge(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that runs the command in a folder with data.jsonl and the same rows in `shards`."""
    monkeypatch.setenv("COLUMNS", "100")
    Path("shards").mkdir()
    write_jsonl("data.jsonl", ROWS)
    write_jsonl("shards/1.jsonl", ROWS[:5])
    write_jsonl("shards/2.jsonl", ROWS[5:])
    Path("replies.yaml").write_text(REPLIES, encoding="utf-8")
    return command


def scores(folder: str) -> list[tuple[Any, ...]]:
    frame = pd.read_parquet(Path(folder) / "scores.parquet")
    return list(frame[["item", "system", "column", "value"]].itertuples(index=False, name=None))


def stable_lines(report: str) -> list[str]:
    """Return a report without the data digest and the time."""
    return [line for line in report.splitlines() if not line.startswith(("Data ", "Started "))]


@pytest.mark.parametrize("data", MANY)
def test_a_run(judge: Callable[..., Any], data: str) -> None:
    completed = judge("run", data, *SCRIPTED, "--quiet")
    assert completed.code == 0, completed.err
    (run_folder,) = Path("runs").iterdir()
    assert run_folder.name.startswith("shards-")
    assert judge("run", "data.jsonl", *SCRIPTED, "--out", "one", "--quiet").code == 0
    assert scores(str(run_folder)) == scores("one")
    of = [
        hashlib.sha256(Path("shards", name).read_bytes()).hexdigest()
        for name in ("1.jsonl", "2.jsonl")
    ]
    whole = hashlib.sha256(f"{of[0]}\n{of[1]}\n".encode()).hexdigest()
    info = json.loads((run_folder / "run.json").read_text("utf-8"))["info"]
    assert info["data"] == {"path": data, "sha256": whole, "files": 2, "rows": 12}
    assert json.loads(Path("one/run.json").read_text("utf-8"))["info"]["data"]["files"] == 1


def test_a_plan_names_them_from_its_folder(judge: Callable[..., Any]) -> None:
    Path("plans [old]").mkdir()
    text = (
        "data: {}\nmodel: scripted/../replies.yaml\ncriteria: [relevance]\nmetrics: none\nout: {}\n"
    )
    for place, data in zip("ab", ("../shards", "../shards/[12].jsonl"), strict=True):
        Path(f"plans [old]/{place}.yaml").write_text(
            text.format(f"'{data}'", place), encoding="utf-8"
        )
        completed = judge("run", f"plans [old]/{place}.yaml", "--quiet")
        assert completed.code == 0, completed.err
        assert len(scores(f"plans [old]/{place}")) == 12


@pytest.mark.parametrize("data", MANY)
def test_commands_say_the_same_as_of_one_file(judge: Callable[..., Any], data: str) -> None:
    plan = (
        "--model",
        "mock",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--criteria",
        "relevance",
        "--format",
        "json",
    )
    assert judge("plan", data, *plan).out == judge("plan", "data.jsonl", *plan).out
    for command, *options in (
        ("validate", *SCRIPTED),
        ("run", "--criteria", "none", "--metrics", "rouge"),
        ("rank", *SCRIPTED[:4], "--no-cache"),
    ):
        one, many = (
            judge(command, where, *options, "--out", command) for where in ("data.jsonl", data)
        )
        assert many.code == one.code != 2, many.err
        assert stable_lines(many.out) == stable_lines(one.out.replace("data.jsonl", data))
    shown = [
        judge("criteria", "render", "relevance", where, "--item", "ferries")
        for where in (data, "data.jsonl")
    ]
    assert (shown[0].code, shown[0].out) == (0, shown[1].out)


@pytest.mark.parametrize("data", MANY)
def test_suites(judge: Callable[..., Any], data: str) -> None:
    completed = judge(
        "init", "--suite", data, "--criteria", "relevance", "--model", "scripted/replies.yaml"
    )
    assert completed.code == 0, completed.err
    assert f"data: {data}\n" in Path("shards.judge.yaml").read_text("utf-8").replace(
        "'", ""
    ).replace('"', "")
    assert (
        judge(
            "init",
            "--suite",
            "data.jsonl",
            "--criteria",
            "relevance",
            "--model",
            "scripted/replies.yaml",
        ).code
        == 0
    )
    many, one = (
        judge("test", f"{name}.judge.yaml", "--format", "json") for name in ("shards", "data")
    )
    cases = [json.loads(completed.out)["suites"][0]["verdicts"] for completed in (many, one)]
    assert (many.code, cases[0]) == (one.code, cases[1]), many.err
    assert len(cases[0]) == 3
    package.evaluate(data, "relevance", model="scripted/replies.yaml", metrics=[], out="made")
    assert judge("init", "--suite", "made", "--output", "of_run.judge.yaml").code == 0
    assert judge("init", "--suite", "shards", "--output", "other.judge.yaml").code == 0
    assert "\nbaseline: " not in Path("other.judge.yaml").read_text("utf-8")


def test_a_comparison_of_prompts_writes_over_no_shard(judge: Callable[..., Any]) -> None:
    output = ("--output", "shards/2.jsonl", "--format", "console")
    completed = judge("criteria", "diff", "relevance", "coherence", "shards", *output)
    assert completed.code == 2
    assert has_line(completed.err, "judge: --output shards/2.jsonl", "also an input")


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (
            "empty",
            ("judge: empty: no data", "'empty/**/*.csv'"),
        ),
        ("shards/*.csv", ("judge: shards/*.csv: no file",)),
        ("broken", ("judge: broken/2.jsonl:1: not JSON",)),
    ],
)
def test_unreadable_shards_are_one_error(
    judge: Callable[..., Any], data: str, facts: tuple[str, ...]
) -> None:
    Path("empty").mkdir()
    Path("broken").mkdir()
    write_jsonl("broken/1.jsonl", ROWS[:1])
    Path("broken/2.jsonl").write_text("no JSON", encoding="utf-8")
    assert judge("run", "shards", *SCRIPTED, "--out", "r", "--quiet").code == 0
    for command in ("run", "plan"):
        completed = judge(command, data, *SCRIPTED)
        assert (completed.code, completed.out) == (2, "")
        assert lines_hold(completed.err.splitlines(), [facts])
    completed = judge("run", "r", *SCRIPTED)
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, "judge: r:", "folder of a run")
