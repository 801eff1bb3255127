"""Reports of plan, power, doctor and one item in every format."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.providers.scripted import ScriptedProvider
from tests.factories import has_line, write_jsonl

ROWS = [
    {
        "item": f"i{n}",
        "system": s,
        "source": "<b>One</b> & two.",
        "output": f"{s} {n}",
        "human": {"fluency": n},
    }
    for n in range(1, 8)
    for s in ("a_1", "b|2")
]
RANKS = [{**row, "output": f"{row['output']}."} for row in ROWS[:4]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with data and two runs."""
    write_jsonl("data.jsonl", ROWS)

    def answer(request: Any) -> str:
        text = request.messages[0]["content"]
        if "b|2 4" in text:
            return "I cannot."
        score = 2 if "a_1 3" in text else 4 if any(f"a_1 {n}" in text for n in (1, 5)) else 3
        return f"{'Too *short*.' if score == 2 else 'Good.'}\nScore: {score}"

    judged = ScriptedProvider(answer)
    judge.evaluate(
        ROWS, ["fluency_5"], model=judged, weighting="single", reply="reason_then_score", out="run"
    )
    judge.rank(RANKS, model=ScriptedProvider(lambda _: {"A": 0.9, "B": 0.1}), out="ranked")
    return tmp_path


COMMANDS = {
    "plan": (
        "plan",
        "data.jsonl",
        "--model",
        "gpt-5.4-mini",
        "--criteria",
        "fluency",
        "--budget",
        "1usd",
    ),
    "power": ("plan", "run", "--detect", "0.5"),
    "doctor": ("doctor",),
    "item": ("report", "run", "--item", "i3"),
    "worst": ("report", "run", "--worst", "2"),
    "pair": ("report", "ranked", "--item", "i1"),
}
OF_TEXTS = ("doctor", "item", "worst", "pair")
"""Reports without a table of numbers, which have no LaTeX form."""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_report_has_every_format(
    folder: Path, command: Callable[..., Any], name: str
) -> None:
    outputs = {}
    formats = ["console", "markdown", "html", "csv", "json"]
    if name not in OF_TEXTS:
        formats.append("latex")
    for format in formats:
        completed = command(*COMMANDS[name], "--format", format)
        assert (completed.code, bool(completed.out)) == (0, True), (format, completed.err)
        outputs[format] = completed.out
    records = list(csv.DictReader(outputs["csv"].splitlines()))
    assert records
    assert all(None not in record.values() for record in records)
    assert json.loads(outputs["json"])
    headline = outputs["console"].splitlines()[0].split("  ")[0]
    assert outputs["markdown"].startswith("## ")
    assert outputs["html"].startswith("<!doctype html>")
    assert headline.split()[0] in outputs["html"]


@pytest.mark.parametrize(
    ("parts", "format", "lacks"),
    [
        *((COMMANDS[name], "latex", "no table of numbers") for name in OF_TEXTS),
        (COMMANDS["item"], "svg", "cannot be combined with --item"),
        (COMMANDS["worst"], "png", "cannot be combined with --worst"),
        (COMMANDS["power"], "junit", "unknown format 'junit'"),
        (COMMANDS["item"], "junit", "unknown format 'junit'"),
        (("report", "run"), "junit", "unknown format 'junit'"),
        (("run", "data.jsonl"), "junit", "unknown format 'junit'"),
    ],
)
def test_a_format_that_shows_nothing_of_a_report_is_refused(
    folder: Path, command: Callable[..., Any], parts: tuple[str, ...], format: str, lacks: str
) -> None:
    completed = command(*parts, "--format", format)
    assert (completed.code, completed.out) == (2, "")
    assert lacks in completed.err


def test_python_refuses_the_tests_of_a_run(folder: Path) -> None:
    with pytest.raises(judge.ConfigError, match=r"format='junit': only a report of .* has tests"):
        judge.load_result("run").report("junit")


def test_an_item_has_texts_scores_reasons_and_ratings(
    folder: Path, command: Callable[..., Any]
) -> None:
    completed = command("report", "run", "--item", "i3")
    assert (completed.code, completed.err) == (0, "")
    shown = " ".join(completed.out.split())
    assert shown.startswith("Item i3 ")
    assert (
        "Source <b>One</b> & two. a_1 a_1 3 criterion score reason fluency_5 2 Too *short*. human ratings"
        in shown
    )
    record = json.loads(command("report", "run", "--item", "i4", "--system", "b|2", "--json").out)
    (output,) = record["outputs"]
    assert (output["human"], output["scores"]) == ({"fluency": 4}, [])
    assert [failure["error"] for failure in output["failures"]] == ["ParseError"]
    failed = command("report", "run", "--item", "i4")
    assert "failed" in failed.out
    assert "<b>One</b>" not in command("report", "run", "--item", "i3", "--format", "html").out


def test_an_item_of_a_ranking_has_both_orders(folder: Path, command: Callable[..., Any]) -> None:
    shown = " ".join(command("report", "ranked", "--item", "i1").out.split())
    assert "criterion shown second preferred reason overall b|2 a_1 (90%)" in shown
    assert "criterion shown second preferred reason overall a_1 b|2 (90%)" in shown


def test_reasons_and_a_title(folder: Path, command: Callable[..., Any]) -> None:
    Path("replies.yaml").write_text('- {reply: "Good.\\nScore: 3"}\n', "utf-8")
    run = (
        "run",
        "data.jsonl",
        "--model",
        "scripted/replies.yaml",
        "--criteria",
        "fluency_5",
        "--out",
        "titled",
        "-q",
    )
    assert command(*run, "--title", "Old & new", "--reasons").code == 0
    plan = json.loads(Path("titled/run.json").read_text("utf-8"))["info"]["config"]
    assert (plan["reply"], plan["title"]) == ("reason_then_score", "Old & new")
    assert "<title>Old &amp; new</title>" in Path("titled/report.html").read_text("utf-8")
    completed = command(*run, "--reasons", "--reply", "score")
    assert completed.code == 2
    assert has_line(completed.err, "judge: --reasons and --reply", "contradict")


def test_wide_csv_has_a_row_per_text(folder: Path, command: Callable[..., Any]) -> None:
    rows = list(
        csv.DictReader(command("report", "run", "--format", "csv", "--wide").out.splitlines())
    )
    assert [(row["item"], row["system"]) for row in rows] == [
        (row["item"], row["system"]) for row in ROWS
    ]
    assert has_line(command("report", "run", "--wide").err, "judge: --wide", "--format csv")


def test_wide_csv_has_the_columns_of_the_data(folder: Path, command: Callable[..., Any]) -> None:
    texts = {"item": "i", "source": "A text.", "output": "A text."}
    data = {**texts, "topic": "=1+1", "tags": ["a", "b"], "failures": 2}
    Path("described.jsonl").write_text(json.dumps(data), "utf-8")
    run = ("run", "described.jsonl", "--criteria", "none", "--metrics", "stats", "--out", "own")
    assert command(*run, "-q").code == 0
    printed = command("report", "own", "--format", "csv", "--wide").out
    (row,) = csv.DictReader(printed.splitlines())
    assert (row["topic"], json.loads(row["tags"])) == ("'=1+1", ["a", "b"])
    assert (row["failures"], row["data.failures"]) == ("", "2")


REPORTS = [
    ("report", "run"),
    ("report", "run", "--item", "i1"),
    ("compare", "run", "run"),
    ("criteria", "diff", "fluency", "coherence"),
    ("validate", "run"),
]


@pytest.mark.parametrize("arguments", REPORTS[:4])
@pytest.mark.parametrize(
    ("ending", "format"),
    [
        ("html", "html"),
        ("json", "json"),
        ("MD", "markdown"),
        ("csv", "csv"),
        ("txt", "console"),
    ],
)
def test_the_ending_of_the_output_chooses_the_format(
    folder: Path, command: Callable[..., Any], arguments: tuple[str, ...], ending: str, format: str
) -> None:
    chosen, given = Path(f"chosen.{ending}"), Path("given")
    completed = command(*arguments, "--output", chosen)
    assert completed.code == 0, completed.err
    assert command(*arguments, "--format", format, "--output", given).code == 0
    assert chosen.read_bytes() == given.read_bytes()


@pytest.mark.parametrize("arguments", REPORTS)
def test_an_ending_of_no_format_is_refused(
    folder: Path, command: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    completed = command(*arguments, "--output", "r.docx")
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, "--output r.docx:", ".docx", ".html", "--format")
    assert not Path("r.docx").exists()


def test_a_given_format_wins_over_the_ending(folder: Path, command: Callable[..., Any]) -> None:
    for given in (("--format", "json"), ("--json",)):
        assert command("report", "run", *given, "--output", "r.txt").code == 0
        assert json.loads(Path("r.txt").read_text("utf-8"))
