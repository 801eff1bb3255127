"""The command line for users: output, files and exit codes."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.factories import has_line, write_jsonl

COMMAND = [sys.executable, "-c", "from judge.cli import main; main()"]
ROWS = [
    {
        "item": i,
        "system": s,
        "source": f"Source of {i}.",
        "output": f"{s} wrote this about {i}.",
        "references": ["A text."],
    }
    for i in ("a", "b", "c")
    for s in ("x", "y")
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with data.jsonl, scripted replies and the cache."""
    write(tmp_path / "data.jsonl", "\n".join(map(json.dumps, ROWS)))
    write(
        tmp_path / "replies.yaml",
        "- {when: x wrote, reply: {5: 0.8, 4: 0.2}}\n- {when: [], reply: 2}\n",
    )
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


SCRIPTED = ("--model", "scripted/replies.yaml", "--criteria", "relevance", "--metrics", "none")


def test_a_run_from_a_data_file(folder: Path, command: Callable[..., Any]) -> None:
    completed = command(
        "run",
        "data.jsonl",
        *SCRIPTED[:2],
        "--metrics",
        "bleu",
        "--criteria",
        "relevance,coherence",
        "--out",
        "r",
    )
    assert completed.code == 0, completed.err
    assert "4.8" in completed.out
    assert "no model was asked" in " ".join(completed.out.split())
    assert "r/report.html\nNext " in completed.out
    frame = pd.read_parquet(folder / "r" / "scores.parquet")
    assert len(frame) == 6 * 3
    assert {"item", "system", "column", "value", "error"} <= set(frame.columns)


def test_a_run_from_a_plan_with_a_flag_on_top(folder: Path, command: Callable[..., Any]) -> None:
    write(
        folder / "run.yaml",
        "data: data.jsonl\nmodel: scripted/replies.yaml\ncriteria: [coherence]\nmetrics: none\nout: r\n",
    )
    completed = command("run", "run.yaml", "--criteria", "relevance", "--quiet")
    assert (completed.code, completed.out) == (0, "")
    run = json.loads((folder / "r" / "run.json").read_text("utf-8"))
    assert [c["name"] for c in run["columns"]] == ["relevance"]


def test_a_run_without_out_gets_a_new_folder(folder: Path, command: Callable[..., Any]) -> None:
    assert command("run", "data.jsonl", *SCRIPTED).code == 0
    (run_folder,) = (folder / "runs").iterdir()
    assert run_folder.name.startswith("data-")


def test_columns_are_mapped_and_wide_data_read(folder: Path, command: Callable[..., Any]) -> None:
    write(folder / "wide.csv", "id,article,one,two\n1,Source.,x wrote it,y wrote it\n")
    completed = command(
        "run",
        "wide.csv",
        "--map",
        "item=id,source=article",
        "--systems",
        "one,two",
        *SCRIPTED,
        "--out",
        "r",
    )
    assert completed.code == 0, completed.err
    frame = pd.read_parquet(folder / "r" / "scores.parquet")
    assert dict(zip(frame["system"], frame["value"], strict=True)) == {"one": 4.8, "two": 2.0}


def test_a_stored_run_is_shown_again(folder: Path, command: Callable[..., Any]) -> None:
    command("run", "data.jsonl", *SCRIPTED, "--out", "r", "--quiet")
    for format in ("console", "markdown", "json", "csv"):
        completed = command("report", "r", "--format", format)
        assert completed.code == 0
        assert "4.8" in completed.out
        assert command("report", "r", "--format", format, "--output", "again.txt").code == 0
        assert (folder / "again.txt").read_text("utf-8").strip() == completed.out.strip()


def test_the_html_report_of_a_stored_run_is_written_to_its_folder(
    folder: Path, command: Callable[..., Any]
) -> None:
    command("run", "data.jsonl", *SCRIPTED, "--out", "r", "--quiet")
    page = folder / "r" / "report.html"
    before = page.read_text("utf-8")
    page.unlink()
    assert command("report", "r", "--format", "html").out.strip() == str(Path("r/report.html"))
    assert page.read_text("utf-8") == before


def test_failed_judgments_finish_the_run_and_exit_1(
    folder: Path, command: Callable[..., Any]
) -> None:
    write(folder / "replies.yaml", "- {when: x wrote, reply: 9}\n- {when: [], reply: 2}\n")
    completed = command("run", "data.jsonl", *SCRIPTED, "--out", "r")
    assert completed.code == 1
    assert "3 judged, 3 failed" in completed.out
    assert "3 × unreadable" in command("report", "r", "--full").out
    frame = pd.read_parquet(folder / "r" / "scores.parquet")
    assert frame["value"].isna().sum() == 3
    assert all("9" in raw for raw in frame["raw"][frame["error"].notna()])


def test_criteria_are_listed_shown_and_rendered(folder: Path, command: Callable[..., Any]) -> None:
    group = ""
    listed: dict[str, list[str]] = {}
    for line in command("criteria", "list").out.splitlines():
        if line.startswith("   "):
            continue  # the rest of a description
        if line.startswith(" "):
            listed[group].append(line.split()[0])
        else:
            group = line
            listed[group] = []
    assert listed == {
        "judge run, one text: answers": [
            "answers_request", "complete", "concise", "correct", "grounded", "polite", "safe"
        ],
        "judge run, one text: summaries": [
            "coherence", "consistency", "fluency", "fluency_5", "relevance"
        ],
        "judge rank, two texts: answers": ["complete", "correct", "grounded", "overall"],
        "judge rank, two texts: summaries": ["coherence", "consistency", "fluency", "relevance"],
    }  # fmt: skip
    assert "文と文がつながり" in command("criteria", "list", "--language", "ja").out
    shown = command("criteria", "show", "fluency_5")
    assert "scale: [1, 5]" in shown.out
    assert "needs: output" in shown.err
    rendered = command(
        "criteria", "render", "relevance", "data.jsonl", "--item", "b", "--system", "y"
    )
    assert "y wrote this about b." in rendered.out
    compared = command(
        "criteria",
        "render",
        "overall",
        "data.jsonl",
        "--item",
        "b",
        "--system",
        "y",
        "--structured",
    )
    assert compared.out.index("y wrote this about b.") < compared.out.index("x wrote this about b.")
    assert has_line(compared.out, "JSON object", 'only key is "score"')
    assert (
        "First give the reason"
        in command("criteria", "render", "relevance", "data.jsonl", "--reasons").out
    )
    assert command("criteria", "render", "overall", "data.jsonl", "--opponent", "z").code == 2


def test_a_prompt_of_two_texts_needs_two_texts_of_the_same_item(
    folder: Path, command: Callable[..., Any]
) -> None:
    """The only text of item 1 is not compared with one of item 10."""
    rows = [("1", "x"), ("10", "x"), ("10", "y")]
    write_jsonl("few.jsonl", [{"item": i, "system": s, "output": f"{s} on {i}."} for i, s in rows])
    words = ("few.jsonl", "--item", "1", "--opponent", "y")
    completed = command("criteria", "render", "fluency", *words)
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, "item '1'", "one system")


def test_the_cache_is_counted_and_cleared(folder: Path, command: Callable[..., Any]) -> None:
    command("run", "data.jsonl", *SCRIPTED, "--quiet")
    assert "6 replies" in command("doctor", "cache", "stats").out
    assert (
        command("doctor", "cache", "clear", "--yes").out
        == f"{folder / 'cache' / 'responses'}: 66 replies deleted\n"
    )
    assert "0 replies" in command("doctor", "cache", "stats").out
    command("run", "data.jsonl", *SCRIPTED, "--quiet", "--no-cache")
    assert "0 replies" in command("doctor", "cache", "stats").out


def test_the_cache_is_not_cleared_by_a_script_without_yes(
    folder: Path, command: Callable[..., Any]
) -> None:
    command("run", "data.jsonl", *SCRIPTED, "--quiet")
    refused = command("doctor", "cache", "clear")
    assert refused.code == 2
    assert has_line(refused.err, "66 replies", "--yes")
    assert "66 replies" in command("doctor", "cache", "stats").out


@pytest.mark.parametrize(("reply", "left"), [("", "66 replies"), ("y\n", " 0 replies")])
def test_clearing_the_cache_asks_on_a_terminal(
    reply: str,
    left: str,
    folder: Path,
    command: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command("run", "data.jsonl", *SCRIPTED, "--quiet")
    terminal = io.StringIO(reply)
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    command("doctor", "cache", "clear")
    assert left in command("doctor", "cache", "stats").out


def test_cache_of_metrics_is_counted_and_cleared_separately(
    folder: Path, command: Callable[..., Any]
) -> None:
    command("run", "data.jsonl", *SCRIPTED, "--quiet")
    metric_file = folder / "cache" / "metrics" / "some" / "file"
    metric_file.parent.mkdir(parents=True)
    metric_file.write_bytes(b"x" * 2_000_000)
    place = folder / "cache" / "metrics"
    assert has_line(command("doctor", "cache", "stats").out, str(place), "digests", "2.0 MB")
    assert command("doctor", "cache", "clear", "--metrics").out == f"{place}: 2.0 MB deleted\n"
    assert not metric_file.exists()
    assert "6 replies" in command("doctor", "cache", "stats").out
    assert command("doctor", "cache", "clear", "--metrics").out == f"{place}: 0.0 MB deleted\n"


def test_a_list_may_be_given_one_by_one(folder: Path, command: Callable[..., Any]) -> None:
    write(folder / "d.jsonl", '{"id": "1", "text": "x wrote it", "extra": "e"}')
    completed = command(
        "run", "d.jsonl", "--map", "item=id", "--map", "output=text", "--model", "scripted/replies.yaml",
        "--criteria", "fluency_5", "--criteria", "fluency", "--metrics", "none", "--out", "r",
    )  # fmt: skip
    assert set(pd.read_parquet(folder / "r" / "scores.parquet")["column"]) == {
        "fluency_5",
        "fluency",
    }
    assert completed.code == 1  # 5 is outside the scale of fluency


@pytest.mark.slow
def test_a_run_in_the_background_can_be_ended(
    folder: Path, chat_server: Any, make_completion: Any, wait_until: Callable[..., None]
) -> None:
    """A shell ignores Ctrl-C for `judge run … &`, but SIGTERM must end the run."""

    def answer(_: Any) -> tuple[int, dict[str, str], Any]:
        time.sleep(0.05)
        return 200, {}, make_completion("4")

    chat_server.answer = answer
    write(
        folder / "many.jsonl",
        "\n".join(json.dumps({"item": str(i), "output": f"Text {i}."}) for i in range(400)),
    )
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from judge.cli import main; main()"
    args = [
        "run",
        "many.jsonl",
        "--model",
        "m",
        "--base-url",
        chat_server.url,
        "--criteria",
        "fluency_5",
    ]
    child = subprocess.Popen(
        [sys.executable, "-c", ignoring, *args, "--metrics", "none"], stderr=subprocess.PIPE
    )
    wait_until(lambda: len(chat_server.bodies) >= 10 or child.poll() is not None)
    child.terminate()
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert len(chat_server.bodies) < 400


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "{path}"],
        ["report", "{path}"],
        ["run", "{data}", "--criteria", "none", "--metrics", "distinct", "--out", "{path}"],
    ],
)
def test_a_path_that_is_too_long_is_named(
    tmp_path: Path, command: Callable[..., Any], arguments: list[str]
) -> None:
    data = tmp_path / "data.csv"
    data.write_text("output\nIt left.\n", encoding="utf-8")
    path = "a" * 300
    completed = command(*(argument.format(path=path, data=data) for argument in arguments))
    assert completed.code == 2
    assert has_line(completed.err, "judge: ", path, "File name too long")


def test_output_to_a_full_device_is_an_error(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        completed = subprocess.run(
            [*COMMAND, "criteria", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert completed.returncode == 2
    assert has_line(completed.stderr, "judge: cannot write", "No space left")
    assert "Traceback" not in completed.stderr


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    """A pipe whose reader has gone, as that of `judge ... | head -1`."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    yield write_end
    os.close(write_end)


@pytest.mark.parametrize(
    ("replies", "code"), [("- reply: {4: 1.0}\n", 0), ("- reply: none of them\n", 1)]
)
def test_the_exit_code_is_the_same_if_the_reader_of_a_pipe_has_gone(
    folder: Path, closed_pipe: int, replies: str, code: int
) -> None:
    Path("own.yaml").write_text(replies, encoding="utf-8")
    model = ["--model", "scripted/own.yaml", "--criteria", "fluency_5", "--metrics", "none"]
    completed = subprocess.run(
        [*COMMAND, "run", "data.jsonl", *model],
        stdout=closed_pipe,
        stderr=subprocess.PIPE,
        check=False,
    )
    assert completed.returncode == code


@pytest.mark.parametrize("listing", [["criteria", "list"], ["doctor", "metrics"]])
def test_a_list_whose_reader_has_seen_enough_is_no_error(
    listing: list[str], closed_pipe: int
) -> None:
    completed = subprocess.run(
        [*COMMAND, *listing], stdout=closed_pipe, stderr=subprocess.PIPE, check=False
    )
    assert (completed.returncode, completed.stderr) == (0, b"")


def test_a_run_whose_messages_cannot_be_written_is_finished(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        completed = subprocess.run(
            [*COMMAND, "run", "data.jsonl", *SCRIPTED, "--out", "quiet"],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            check=False,
        )
    assert completed.returncode == 0
    assert "report.html" in completed.stdout
    assert (folder / "quiet" / "scores.parquet").exists()


OWN = "---\nscale: [1, 5]\n---\n"
WITH_OWN = ("data.jsonl", *SCRIPTED, "--criteria", "t.jinja")
ASKED = ("--criteria", "relevance")
NOBODY = (
    "data.jsonl",
    *ASKED,
    "--model",
    "m",
    "--base-url",
    "http://127.0.0.1:9/v1",
    "--retries",
    "0",
)
TWICE = '{"item": 1, "output": "x"}\n{"item": 1, "output": "y"}'
METRIC_ALONE = ("data.jsonl", "--criteria", "none", "--metrics")
BAD_INPUT: dict[str, tuple[str, tuple[str, ...], str]] = {
    # name: (file to write as NAME=TEXT, arguments after `run`, words of the message)
    "missing file": ("", ("dta.jsonl", *SCRIPTED), "data.jsonl"),
    "empty file": ("empty.jsonl=", ("empty.jsonl", *SCRIPTED), "no rows"),
    "bad json": ("bad.jsonl=" + '{"output": "x"}\n' * 16 + "{oops", ("bad.jsonl", *SCRIPTED), "bad.jsonl:17"),
    "missing column": ('c.jsonl={"text": "x"}', ("c.jsonl", *SCRIPTED), "output=text"),
    "duplicate": (f"d.jsonl={TWICE}", ("d.jsonl", *SCRIPTED), "d.jsonl:1"),
    "unknown criterion": ("", ("data.jsonl", *SCRIPTED, "--criteria", "relevanse"), "relevance"),
    "unknown variable": (f"t.jinja={OWN}{{{{ outptu }}}}", WITH_OWN, "t.jinja:4"),
    "syntax error": (f"t.jinja={OWN}{{% if %}}", WITH_OWN, "t.jinja:4"),
    "escape": (f"t.jinja={OWN}{{{{ ''.__class__ }}}}", WITH_OWN, "t.jinja:4"),
    "no model": ("", ("data.jsonl", *ASKED), "--model"),
    "no key": ("", ("data.jsonl", *ASKED, "--model", "gpt-5.4-mini"), "OPENAI_API_KEY"),
    "no URL": ("", ("data.jsonl", *ASKED, "--model", "m", "--base-url", "localhost"), "--base-url"),
    "no criteria": ("", ("data.jsonl", "--model", "m"), "--criteria relevance,consistency,fluency"),
    "nobody there": ("", NOBODY, "cannot connect"),
    "unknown metric": ("", (*METRIC_ALONE, "rogue"), "did you mean 'rouge'?"),
    "a type of a metric": ("", (*METRIC_ALONE, "ROUGE-L"), "--set rouge.types=rougeL"),
    "bad map": ("", ("data.jsonl", *SCRIPTED, "--map", "output"), "FIELD=COLUMN"),
    "bad number": ("", ("data.jsonl", *SCRIPTED, "--max-concurrency", "0"), "--max-concurrency"),
    "bad plan": ("p.yaml=modle: x", ("p.yaml",), "p.yaml:1"),
    "cache in the way": ("f=", ("data.jsonl", *SCRIPTED, "--cache", "f"), "--cache"),
    "out in the way": ("f=", ("data.jsonl", *SCRIPTED, "--out", "f"), "f"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_a_clear_error_with_exit_code_2(
    folder: Path, command: Callable[..., Any], name: str
) -> None:
    file, args, words = BAD_INPUT[name]
    if file:
        path, _, text = file.partition("=")
        write(folder / path, text)
    completed = command("run", *args)
    assert completed.code == 2, completed.err
    before, _, message = f"\n{completed.err}".partition("\njudge: ")
    assert message, "the error, on a line of its own"
    assert not before or "judgments to make" in before, (
        "and nothing before it but what the run was going to do"
    )
    assert words in completed.err
    assert "Traceback" not in completed.err


@pytest.mark.parametrize(
    ("status", "headers", "body", "words"),
    [
        (401, {}, {"error": {"message": "bad key"}}, "bad key"),
        (404, {}, {"error": {"message": "no such model"}}, "no such model"),
        (200, {"content-type": "text/html"}, b"<html>Hello</html>", "text/html"),
    ],
)
def test_an_endpoint_that_cannot_work_stops_with_one_message(
    folder: Path,
    command: Callable[..., Any],
    chat_server: Any,
    status: int,
    headers: dict[str, str],
    body: Any,
    words: str,
) -> None:
    chat_server.answer = lambda _: (status, headers, body)
    completed = command(
        "run",
        "data.jsonl",
        *ASKED,
        "--model",
        "m",
        "--base-url",
        chat_server.url,
        "--metrics",
        "none",
        "--out",
        "r",
    )
    assert completed.code == 2
    assert words in completed.err
    assert len(chat_server.bodies) == 1
    assert not (folder / "r" / "scores.parquet").exists()


def test_a_missing_run_is_an_error(folder: Path, command: Callable[..., Any]) -> None:
    completed = command("report", "nowhere", "--json")
    assert (completed.code, completed.out, completed.err.startswith("judge: nowhere: ")) == (
        2,
        "",
        True,
    )
    command("run", "data.jsonl", *SCRIPTED, "--out", "r", "--quiet")
    assert "did you mean" in command("report", "r", "--format", "htlm").err
    assert command("report", "r", "--output", folder).code == 2


def test_a_second_run_asks_nothing(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda _: (200, {}, make_completion("4", top={"4": 0.9, "3": 0.1}))
    args = (
        "run",
        "data.jsonl",
        "--model",
        "m",
        "--base-url",
        chat_server.url,
        *SCRIPTED[2:],
        "--out",
    )
    assert command(*args, "one").code == 0
    n_requests = len(chat_server.bodies)
    assert command(*args, "two").code == 0
    assert (n_requests, len(chat_server.bodies)) == (6, 6)
    one, two = (pd.read_parquet(folder / name / "scores.parquet") for name in ("one", "two"))
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.parametrize(
    "signal_sent", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]
)
@pytest.mark.slow
def test_a_run_cut_short_loses_nothing_that_was_paid_for(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any, signal_sent: signal.Signals,
    wait_until: Callable[..., None],
) -> None:  # fmt: skip
    rows = [{"item": str(i), "output": f"Text {i}."} for i in range(80)]
    write(folder / "many.jsonl", "\n".join(map(json.dumps, rows)))

    def answer(_: Any) -> tuple[int, dict[str, str], Any]:
        time.sleep(0.02)
        return 200, {}, make_completion("4", top={"4": 1.0})

    chat_server.answer = answer
    args = [
        "run",
        "many.jsonl",
        "--model",
        "m",
        "--base-url",
        chat_server.url,
        "--criteria",
        "fluency_5",
    ]
    args += ["--metrics", "none", "--max-concurrency", "4", "--out", "r"]
    child = subprocess.Popen(
        [*COMMAND, *args],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"JUDGE_CACHE": "cache"},
    )
    wait_until(lambda: len(chat_server.bodies) >= 30 or child.poll() is not None)
    child.send_signal(signal_sent)
    _, message = child.communicate(timeout=60)
    answered = len(chat_server.bodies)
    if signal_sent != signal.SIGKILL:
        assert child.returncode == 130
        assert has_line(message, "in flight", "Ctrl-C again")
        assert "Run the same command again" in message
        report = command("report", "r", "--format", "json")
        assert report.code == 0
        assert json.loads(report.out)["table"][0]["n"] > 0
        assert json.loads(report.out)["info"]["status"] == "interrupted"
    assert command(*args).code == 0
    repeated = len(chat_server.bodies) - answered
    paid_twice = answered + repeated - 80
    if signal_sent != signal.SIGKILL:
        assert paid_twice == 0  # judge waited for the replies in flight
    else:
        assert 0 <= paid_twice < answered  # and for replies not yet on disk
    assert len(pd.read_parquet(folder / "r" / "scores.parquet")) == 80


def test_a_full_disk_is_an_error_and_no_scores_are_lost(
    folder: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    from judge.cache import TextDisk

    def full(*args: object, **kwargs: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(TextDisk, "store", full)
    completed = command("run", "data.jsonl", *SCRIPTED, "--out", "r")
    assert completed.code == 2
    assert "make room" in completed.err
    assert (
        len(pd.read_parquet(folder / "r" / "scores.parquet")) == 1
    )  # the first request goes alone


def test_a_ranking_on_the_command_line(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("A", top={"A": 0.8, "B": 0.2}))
    args = ["rank", "data.jsonl", "--model", "m", "--base-url", chat_server.url, "--out", "r"]
    completed = command(*args, "--format", "json")
    ranking = json.loads(completed.out)
    assert completed.code == 0
    assert {row["system"]: row["win_rate"] for row in ranking["systems"]} == {"x": 0.5, "y": 0.5}
    assert ranking["rankings"][0]["flip_rate"] == 1.0
    assert has_line(completed.err, "pairs", "both orders")
    shown = command("report", "r")
    assert "win rate" in shown.out
    assert command("report", "r", "--format", "csv").out.startswith("system,column,win_rate")
    assert (
        command(
            "rank",
            "data.jsonl",
            "--model",
            "m",
            "--base-url",
            chat_server.url,
            "--format",
            "nothing",
        ).code
        == 2
    )
    n_requests = len(chat_server.bodies)
    assert command(*args, "--quiet").out == ""
    assert len(chat_server.bodies) == n_requests


def test_steps_on_the_command_line(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    write(
        folder / "polite.jinja",
        '---\nscale: [1, 5]\n---\n{% extends "layouts/pointwise.jinja" %}{% block criterion %}Polite?{% endblock %}',
    )
    chat_server.answer = lambda body: (
        200,
        {},
        make_completion("1. Read the text.\n2. Choose the score."),
    )
    args = ["criteria", "steps", "polite.jinja", "--model", "m", "--base-url", chat_server.url]
    completed = command(*args)
    assert (completed.code, completed.out) == (0, "1. Read the text.\n2. Choose the score.\n")
    assert "Read the text." in (folder / "polite.jinja").read_text(encoding="utf-8")
    assert command(*args).code == 2
    assert command(*args, "--overwrite").code == 0


def test_a_shown_criterion_counts_its_examples_and_seen_texts(
    folder: Path, command: Callable[..., Any]
) -> None:
    examples = [{"score": 1, "output": "Wait."}, {"score": 5, "output": "With pleasure."}]
    header = f"examples: {json.dumps(examples)}\nseen: ['1234567890123456', '0f0f0f0f0f0f0f0f']"
    write(folder / "polite.md", f"---\n{header}\n---\nIs the reply polite?\n")
    shown = command("criteria", "show", "polite.md")
    assert has_line(shown.err, "examples: 2", "scores 1, 5")
    assert has_line(shown.err, "seen: 2 texts", "do not count")
    assert len(json.loads(command("criteria", "show", "polite.md", "--json").out)["examples"]) == 2


@pytest.mark.slow
def test_a_second_signal_does_not_wait_for_a_server_that_hangs(
    folder: Path, chat_server: Any, wait_until: Callable[..., None]
) -> None:
    over = threading.Event()

    def answer(_: Any) -> tuple[int, dict[str, str], Any]:
        over.wait(60)
        return 500, {}, {}

    chat_server.answer = answer
    args = [
        "run",
        "data.jsonl",
        "--model",
        "m",
        "--base-url",
        chat_server.url,
        "--criteria",
        "relevance",
    ]
    child = subprocess.Popen(
        [*COMMAND, *args, "--metrics", "none"], stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    wait_until(lambda: chat_server.bodies or child.poll() is not None)
    child.send_signal(signal.SIGINT)
    while "in flight" not in child.stderr.readline():
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    _, message = child.communicate(timeout=60)
    over.set()
    assert child.returncode == 130
    assert "0 of 6 judgments" in message


def test_an_unknown_criterion_names_the_default_ones(
    folder: Path, command: Callable[..., Any]
) -> None:
    completed = command("run", folder / "data.jsonl", *SCRIPTED, "--criteria", "default")
    assert completed.code == 2
    assert has_line(completed.err, "without --criteria", "relevance, coherence, consistency and")


def test_a_name_of_100_kilobytes_is_cut_in_the_message(
    folder: Path, command: Callable[..., Any]
) -> None:
    completed = command("run", folder / "data.jsonl", "--model", "m", "--criteria", "x" * 100_000)
    assert completed.code == 2
    assert "unknown criterion 'xxx" in completed.err
    assert "coherence" in completed.err
    assert len(completed.err) < 2_000


@pytest.mark.parametrize(
    ("words", "former", "new"),
    [
        (("run", "data.csv"), "--force", "--overwrite"),
        (("criteria", "render", "overall", "data.csv"), "--rival", "--opponent"),
    ],
)
def test_a_former_name_of_an_option_is_answered_with_the_new_one(
    words: tuple[str, ...], former: str, new: str, command: Callable[..., Any]
) -> None:
    result = command(*words, former)
    assert result.code == 2
    assert has_line(result.err, f"{former}:", f"called {new}")


@pytest.mark.parametrize("command_line", ["run data.jsonl", "test s.judge.yaml"])
def test_the_error_for_output_explains_how_to_write_a_report_to_a_file(
    command_line: str, command: Callable[..., Any]
) -> None:
    result = command(*command_line.split(), "--output", "report.json")
    assert result.code == 2
    assert has_line(result.err, "--output:", "called --out")
    assert "> FILE" in result.err


@pytest.mark.parametrize("command_line", ["run data.jsonl", "rank data.jsonl", "test s.judge.yaml"])
def test_a_report_as_the_folder_of_a_run_is_refused_before_anything_is_paid(
    command_line: str, folder: Path, command: Callable[..., Any]
) -> None:
    result = command(*command_line.split(), "--out", "report.csv")
    assert result.code == 2
    assert has_line(result.err, "--out report.csv", "folder of the run")
    assert not (folder / "report.csv").exists()


def test_a_folder_with_the_name_of_a_report_may_keep_a_run(
    folder: Path, command: Callable[..., Any]
) -> None:
    (folder / "old.csv").mkdir()
    completed = command("run", "data.jsonl", *SCRIPTED, "--out", "old.csv", "--quiet")
    assert completed.code == 0, completed.err


def test_quiet_prints_a_report_for_programs_all_the_same(
    folder: Path, command: Callable[..., Any]
) -> None:
    completed = command("run", "data.jsonl", *SCRIPTED, "--quiet", "--json")
    assert json.loads(completed.out)["schema"] == "judge.report/1"
    assert completed.err == ""


@pytest.mark.parametrize(
    "arguments", [("run", ""), ("report", ""), ("plan", "data.jsonl", "--out", "")]
)
def test_an_empty_name_of_a_file_is_not_the_current_folder(
    folder: Path, command: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    completed = command(*arguments)
    assert completed.code == 2
    assert "the name is empty" in completed.err
