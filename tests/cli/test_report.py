"""`judge report` into other formats."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from tests.factories import has_line

ROWS = [
    {"item": "1", "system": s, "output": f"{s} text", "references": ["a text"]}
    for s in ("=one", "two")
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    judge.evaluate(ROWS, criteria=[], metrics=["chrf", "ter"], out=tmp_path / "r")
    return Path("r")


def test_charts_go_into_the_runs_folder(run: Path, command: Callable[..., Any]) -> None:
    completed = command("report", run, "--format", "svg")
    assert completed.code == 0
    assert {"r/charts/chrf.svg", "r/charts/ter.svg"} <= {*completed.out.split()}
    assert all(Path(name).read_text("utf-8").startswith("<svg ") for name in completed.out.split())


def test_charts_are_written_to_the_requested_path(run: Path, command: Callable[..., Any]) -> None:
    assert (
        "here/chrf.svg" in command("report", run, "--format", "svg", "--output", "here").out.split()
    )
    assert command("report", run, "--format", "svg", "--output", "all.svg").out.split() == [
        "all.svg"
    ]
    assert Path("all.svg").read_text("utf-8").count("<desc>") == 1


def test_png_without_its_package_names_the_extra(
    run: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    completed = command("report", run, "--format", "png")
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, "judge: PNG needs", "pip install 'textjudge[png]'", "SVG")


def test_latex_csv_and_json(run: Path, command: Callable[..., Any]) -> None:
    assert "\\label{tab:judge-leaderboard}\n" in command("report", run, "--format", "latex").out
    full = command("report", run, "--format", "latex", "--full").out
    assert "\\label{tab:judge-scores}\n" in full
    assert "\n'=one,chrf," in command("report", run, "--format", "csv").out
    assert json.loads(command("report", run, "--format", "json").out)["schema"] == "judge.report/1"


@pytest.mark.parametrize("format", ["console", "svg"])
def test_a_folder_without_a_run_is_an_error(
    run: Path, command: Callable[..., Any], format: str
) -> None:
    completed = command("report", "rr", "--format", format)
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, "judge: rr", "no run.json", "name a folder")
    assert not Path("rr").exists()


def test_the_report_counts_how_replies_were_read(
    tmp_path: Path, command: Callable[..., Any]
) -> None:
    """24 scores: one parsed from a sentence, and one from the answer to a repair question."""
    rows = [
        {"item": f"{n}", "system": system, "source": "A boat came.", "output": f"{system} {n}."}
        for n in range(12)
        for system in ("old", "new")
    ]
    model = judge.ScriptedProvider(
        lambda request: {"4": 0.8, "5": 0.2} if "new" in str(request) else {"3": 1.0}
    )
    result = judge.evaluate(rows, criteria=["relevance"], model=model, metrics=[])
    scores = {(score.item, score.system): score for score in result.table.scores}
    for key, reading, raw in (
        (("3", "new"), "prose", 'Here you are: {"score": 4}'),
        (("4", "new"), "repaired", '["It depends.", "4"]'),
    ):
        scores[key] = replace(
            scores[key], provenance=replace(scores[key].provenance, reading=reading, raw=raw)
        )
    result = replace(result, table=replace(result.table, scores=tuple(scores.values())))
    result.save(tmp_path / "r")
    facts = ("requested form", "1 of 24 read from a sentence", "1 of 24", "repair question")
    assert has_line(" ".join(command("report", "r").out.split()), *facts)
    full = command("report", "r", "--full").out
    assert has_line(" ".join(full.split()), *facts)
    assert full[full.index("How replies were read") :].split("\n")[2:4] == [
        "           as requested  from a sentence  repair question  no score",
        "relevance            22                1                1         0",
    ]
    counts = {"column": "relevance", "strict": 22, "prose": 1, "repaired": 1, "unread": 0}
    assert json.loads(command("report", "r", "--json").out)["readings"] == [counts]
    records = list(
        csv.DictReader(command("report", "r", "--item", "4", "--format", "csv").out.splitlines())
    )
    assert [(row["system"], row["reading"]) for row in records] == [
        ("old", "strict"),
        ("new", "repaired"),
    ]
    page = Path("r/report.html").read_text("utf-8")
    assert has_line(page, "repair question", "mass 1.00")
    assert "replies “<bdi>It depends.</bdi>” ×1, “<bdi>4</bdi>” ×1" in page


@pytest.mark.parametrize("beginning", ["news-2026-11", "news-2026-11…"])
def test_the_beginning_of_a_long_name_shows_its_item(
    tmp_path: Path, command: Callable[..., Any], beginning: str
) -> None:
    names = ("news-2026-11-30", "news-2026-10-30")
    rows = [
        {"item": name, "system": "a", "output": "A text.", "references": ["A text."]}
        for name in names
    ]
    judge.evaluate(rows, criteria=[], metrics=["chrf"], out=tmp_path / "r")
    assert "Item news-2026-11-30" in command("report", "r", "--item", beginning).out


def test_a_file_of_csv_opens_in_excel_in_any_language(
    tmp_path: Path, command: Callable[..., Any]
) -> None:
    rows = [{"item": "1", "system": "a", "output": "日本語の文章です。"}]
    model = judge.ScriptedProvider(lambda _: "3")
    judge.evaluate(rows, ["fluency_5"], model=model, cache=False, out=tmp_path / "r")
    file = tmp_path / "scores.csv"
    arguments = ("--format", "csv", "--wide", "--output", str(file))
    assert command("report", str(tmp_path / "r"), *arguments).code == 0
    assert file.read_bytes().startswith(b"\xef\xbb\xbfitem,")


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (("--item", "1", "--worst", "2"), ("--worst:", "combined with --item")),
        (("--worst", "2", "--by", "lang"), ("--by:", "combined with --worst")),
        (("--item", "1", "--table", "scores"), ("--table:", "combined with --item")),
        (("--worst", "2", "--columns", "a"), ("--columns:", "combined with --worst")),
        (("--by", "lang", "--figure", "overall"), ("--figure:", "combined with --by")),
        (("--worst", "2", "--wide", "--format", "csv"), ("--wide:", "combined with")),
        (("--claims", "--worst", "2"), ("--claims:", "combined with --worst")),
        (("--claims",), ("no claims",)),
        (("--system", "a"), ("--system:", "--claims")),
        (("--worst", "2", "--system", "nobody"), ("--system:", "'nobody'")),
    ],
)
def test_options_of_a_report_that_do_not_fit_are_refused(
    run: Path, command: Callable[..., Any], options: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    completed = command("report", run, *options)
    assert completed.code == 2
    assert has_line(completed.err, *facts)
