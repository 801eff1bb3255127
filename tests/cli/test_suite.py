"""`judge init --suite`: starter suites."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge as package
from judge.criteria import builtin_prompts
from judge.providers.scripted import ScriptedProvider
from judge.suite.load import load
from tests.factories import has_line, write_jsonl

ROWS = [
    {
        "item": f"i{n}",
        "system": s,
        "source": f"Day {n}.",
        "output": f"{s} {n}",
        "human": {"relevance": n + (s == "a")},
    }
    for n in range(1, 5)
    for s in "ab"
]


@pytest.fixture
def suite(command: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs the command in a folder with data and scripted replies."""
    write_jsonl("texts.jsonl", ROWS)
    Path("replies.yaml").write_text("- when: [a 1]\n  reply: '5'\n- reply: '2'\n", encoding="utf-8")
    return lambda *args: command("init", "--suite", *args)


def test_init_writes_a_suite_that_judge_test_runs(
    suite: Callable[..., Any], command: Callable[..., Any]
) -> None:
    completed = suite("texts.jsonl", "--model", "scripted/replies.yaml")
    assert completed.code == 0
    assert has_line(completed.out, "texts.judge.yaml", "read it", "judge test texts.judge.yaml")
    written_suite = load("texts.judge.yaml")
    assert [case.kind for case in written_suite.cases] == ["agreement", "order"]
    tested = command("test", "texts.judge.yaml", "--no-cache", "--format", "csv")
    assert tested.code in (0, 1), tested.err
    assert all(
        case.name in " ".join(tested.out.split())
        for case in written_suite.cases
        if case.kind == "order"
    )


def test_init_names_the_columns_that_are_not_used(suite: Callable[..., Any]) -> None:
    rows = [row | {"bot": row["system"]} for row in ROWS]
    write_jsonl("texts.jsonl", rows)
    completed = suite("texts.jsonl", "--model", "scripted/replies.yaml")
    (unused,) = completed.out.splitlines()[1:]
    assert has_line(unused, "Unused columns: bot", "map: {item: COLUMN, system: COLUMN}")
    Path("own.jinja").write_text(
        "---\nscale: [1, 5]\n---\n{{ bot }} {{ output }}\n", encoding="utf-8"
    )
    wrong = suite(
        "texts.jsonl", "--criteria", "own.jinja", "--map", "source=bot", "--output", "b.judge.yaml"
    )
    assert "unknown variable 'bot'" in wrong.err
    assert "bot was mapped to source" in wrong.err


def test_init_writes_nothing_over(suite: Callable[..., Any]) -> None:
    Path("mine.judge.yaml").write_text("kept", encoding="utf-8")
    completed = suite("texts.jsonl", "--output", "mine.judge.yaml")
    assert completed.code == 2
    assert has_line(completed.err, "mine.judge.yaml", "already exists", "--output FILE")
    assert Path("mine.judge.yaml").read_text(encoding="utf-8") == "kept"
    assert (
        "--output no/s.judge.yaml: No such file"
        in suite("texts.jsonl", "--output", "no/s.judge.yaml").err
    )


def test_init_notes_rated_criteria_without_a_case(suite: Callable[..., Any]) -> None:
    rows = [row | {"human": {"resolves": 1.0}, "source": "The tram runs again."} for row in ROWS]
    write_jsonl("tickets.jsonl", rows)
    completed = suite("tickets.jsonl")
    assert completed.code == 0
    assert has_line(completed.out, "no rated criterion", "resolves", "--criteria")
    assert "no rated criterion" not in suite("texts.jsonl").out


def test_init_to_the_console(suite: Callable[..., Any]) -> None:
    completed = suite(
        "texts.jsonl", "--criteria", "fluency,coherence", "--map", "system=system", "--output", "-"
    )
    assert completed.code == 0
    assert (
        "\ndata: texts.jsonl\nmap: {system: system}\ncriteria: [fluency, coherence]\n"
        in completed.out
    )
    assert not list(Path().glob("*.judge.yaml"))


def test_init_of_a_run(suite: Callable[..., Any]) -> None:
    Path("tone.jinja").write_text(
        "---\nscale: [1, 5]\n---\nTone?\n{{ output }}\n", encoding="utf-8"
    )
    package.evaluate(
        "texts.jsonl",
        ["relevance", "tone.jinja"],
        model="scripted/replies.yaml",
        metrics=[],
        draws=3,
        out="runs/first",
    )
    assert suite("runs/first").code == 0
    written_suite = load("first.judge.yaml")
    assert written_suite.baseline == Path("runs/first")
    assert written_suite.options["criteria"] == ("relevance", "tone.jinja")
    assert (written_suite.options["draws"], written_suite.options["model"][0].name) == (
        3,
        "scripted/replies.yaml",
    )
    assert "retries" not in written_suite.options
    record = Path("runs/first/run.json")
    stored = record.read_text("utf-8")
    record.write_text(
        stored.replace('"name": "scripted/replies.yaml"', '"label": "small"'), "utf-8"
    )
    completed = suite("runs/first", "--output", "other.judge.yaml")
    assert (completed.code, "cannot read runs/first/run.json: info.config." in completed.err) == (
        2,
        True,
    )
    record.write_text(stored, "utf-8")
    Path("texts.jsonl").rename("gone.jsonl")
    completed = suite("runs/first", "--output", "other.judge.yaml")
    assert completed.code == 2
    assert has_line(completed.err, "runs/first", "data (texts.jsonl)", "name the data file")


def test_init_of_a_run_that_lacks_the_files_of_its_criteria(suite: Callable[..., Any]) -> None:
    package.evaluate(
        "texts.jsonl", ["relevance"], model="scripted/replies.yaml", metrics=[], out="runs/a"
    )
    path = Path("runs/a/run.json")
    run = json.loads(path.read_text("utf-8"))
    for criterion in run["info"]["criteria"].values():
        del criterion["path"]
    path.write_text(json.dumps(run), "utf-8")
    assert suite("runs/a", "--output", "a.judge.yaml").code == 0
    assert load("a.judge.yaml").options["criteria"] == ("relevance",)


@pytest.mark.parametrize("replacing", [(), ("--criteria", "relevance: Is it short?")])
def test_init_of_a_suites_run_has_its_criterion_in_a_sentence(
    suite: Callable[..., Any], command: Callable[..., Any], replacing: tuple[str, ...]
) -> None:
    Path("s.judge.yaml").write_text(
        "{data: texts.jsonl, criteria: ['relevance: Is it clear?'], cases: [{expect: {min: 1}}]}",
        encoding="utf-8",
    )
    model = ("--model", "scripted/replies.yaml")
    assert command("test", "s.judge.yaml", *model, *replacing, "--out", "runs/s").code in (0, 1)
    shown = command("report", "runs/s", "--item", "i1", "--system", "a").out
    assert "Not shown" not in shown
    assert suite("runs/s", "--output", "new.judge.yaml").code == 0
    sentence = replacing[-1] if replacing else "relevance: Is it clear?"
    assert load("new.judge.yaml").options["criteria"] == (sentence,)


def test_init_of_a_run_from_another_machine_has_its_built_in_criterion(
    suite: Callable[..., Any],
) -> None:
    package.evaluate(
        "texts.jsonl", ["relevance"], model="scripted/replies.yaml", metrics=[], out="runs/a"
    )
    path = Path("runs/a/run.json")
    here = str(builtin_prompts())
    path.write_text(path.read_text("utf-8").replace(here, "/elsewhere/prompts"), "utf-8")
    assert suite("runs/a", "--output", "a.judge.yaml").code == 0
    assert load("a.judge.yaml").options["criteria"] == ("relevance",)


def test_init_refuses_a_criterion_that_is_in_no_file(suite: Callable[..., Any]) -> None:
    relevance = package.Criterion("relevance", template="Is it short? 1-5\n{{ output }}")
    package.evaluate(
        "texts.jsonl", [relevance], model="scripted/replies.yaml", metrics=[], out="runs/a"
    )
    refused = suite("runs/a", "--output", "a.judge.yaml")
    assert refused.code == 2
    assert has_line(refused.err, "relevance", "no file", "--criteria")
    assert suite("runs/a", "--criteria", "relevance", "--output", "a.judge.yaml").code == 0


def test_init_of_no_run(suite: Callable[..., Any]) -> None:
    Path("empty").mkdir()
    completed = suite("empty")
    assert completed.code == 2
    assert has_line(completed.err, "empty: no run", "name a data file")
    package.rank("texts.jsonl", model=ScriptedProvider(lambda request: "1"), out="ranked")
    assert has_line(suite("ranked").err, "ranked", "in pairs")
    package.evaluate(
        ROWS, ["fluency"], model=ScriptedProvider(lambda request: "1"), metrics=[], out="rows"
    )
    assert has_line(suite("rows").err, "rows: its data (no file)")
    assert "no such file" in suite("nowhere.jsonl").err


def test_a_judge_without_a_name_is_refused(tmp_path: Path, command: Callable[..., Any]) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"output": "a", "source": "b"}\n', encoding="utf-8")
    completed = command("init", "--suite", str(data), "--model", "", "--output", "-")
    assert (completed.code, completed.out) == (2, "")
    assert "--model: no name" in completed.err
