"""`judge test`: output, files, exit codes and refused options."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from judge.providers.scripted import ScriptedProvider
from tests.factories import has_line

REPLIES = """
- {when: [It was mended.], reply: 4}
- {when: [It is lovely.], reply: lovely}
- {when: [], reply: 2}
"""
SUITE = """
model: scripted/replies.yaml
weighting: single
cases:
  - {name: says it, criterion: relevance, text: {source: A mill was mended., output: It was mended.}, expect: {min: 3}}
  - {name: says nothing, criterion: relevance, text: {source: A mill was mended., output: "?"}, expect: {max: 3}}
"""


@pytest.fixture
def run(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that runs the command in a folder with a suite of two passing cases."""
    monkeypatch.setenv("COLUMNS", "100")
    Path("replies.yaml").write_text(REPLIES, encoding="utf-8")
    Path("s.judge.yaml").write_text(SUITE, encoding="utf-8")
    Path("data.jsonl").write_text('{"output": "a"}\n{"output": "b"}\n', encoding="utf-8")
    return lambda *args: command("test", *args)


def edit(old: str, new: str, path: str = "s.judge.yaml") -> None:
    Path(path).write_text(
        Path(path).read_text(encoding="utf-8").replace(old, new), encoding="utf-8"
    )


def test_all_met(run: Callable[..., Any]) -> None:
    completed = run("s.judge.yaml")
    assert completed.code == 0
    assert "All 2 cases pass" in completed.out
    assert has_line(completed.err.splitlines()[:1], "1 suite", "2 judgments")


def test_the_report_of_a_suites_run_names_the_file_of_its_verdicts(
    run: Callable[..., Any], command: Callable[..., Any]
) -> None:
    where = "The run of the suite s.judge.yaml; judge test shows its verdicts."
    assert run("s.judge.yaml", "--out", "runs", "--quiet").code == 0
    with_verdicts = Path("runs/report.md").read_text(encoding="utf-8")
    assert "says nothing" in with_verdicts
    assert where not in with_verdicts
    for format in ("console", "html", "markdown"):
        shown = command("report", "runs", "--format", format, "--output", "page").code
        assert shown == 0
        assert where in " ".join(Path("page").read_text(encoding="utf-8").split())


def test_the_summary_of_a_job_is_added_to(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "job.md")
    for path in ("job.md", "own.md"):
        Path(path).write_text("# What came before\n", encoding="utf-8")
        assert run("s.judge.yaml", "--markdown", path).code == 0
    assert (
        Path("job.md").read_text(encoding="utf-8").startswith("# What came before\n## ✓ judge test")
    )
    assert Path("own.md").read_text(encoding="utf-8").startswith("## ✓ judge test")


def test_one_is_not_met(run: Callable[..., Any]) -> None:
    edit("min: 3", "min: 5")
    completed = run(".", "--junit", "made/here/junit.xml", "--markdown", "summary.md")
    assert completed.code == 1
    assert "2 cases: 1 failed, 1 passed" in completed.out
    tree = ElementTree.parse("made/here/junit.xml").getroot()
    assert [len(tree.findall(f".//{kind}")) for kind in ("testcase", "failure", "error")] == [
        3,
        1,
        0,
    ]
    assert "s.judge.yaml:5" in Path("summary.md").read_text(encoding="utf-8")


def test_a_failed_judgment_does_not_pass(run: Callable[..., Any]) -> None:
    edit("It was mended.", "It is lovely.")
    edit("min: 3", "min: 1")
    completed = run("s.judge.yaml", "--full")
    assert completed.code == 1
    assert has_line(completed.out, "2 cases: 1 error, 1 passed")
    assert "lovely" in completed.out


def test_formats(run: Callable[..., Any]) -> None:
    report = json.loads(run("s.judge.yaml", "--format", "json").out)
    assert report["schema"] == "judge.test/1"
    assert "**All 2 cases pass**" in run("s.judge.yaml", "--format", "markdown").out
    quiet = run("s.judge.yaml", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_refuses_suites_that_cannot_run(run: Callable[..., Any]) -> None:
    completed = run("s.judge.yaml", "--replay", "nothing.jsonl")
    assert completed.code == 2
    assert completed.err.startswith("judge: s.judge.yaml: ")
    assert "nothing.jsonl" in completed.err
    assert run("s.judge.yaml", "--record", "calls.jsonl", "--no-cache").code == 0
    assert run("s.judge.yaml", "--replay", "calls.jsonl", "--no-cache").code == 0
    edit("output: It was", "output: It has been")
    edit('"?"', "Hm.")
    missed = run("s.judge.yaml", "--replay", "calls.jsonl", "--no-cache")
    assert missed.code == 2
    assert has_line(missed.out, "calls.jsonl", "does not hold")


@pytest.mark.parametrize("words", [["--json"], ["--quiet"]])
def test_the_reason_of_a_stopped_suite_is_on_stderr_if_the_console_has_no_report(
    run: Callable[..., Any], words: list[str]
) -> None:
    assert run("s.judge.yaml", "--record", "calls.jsonl", "--no-cache").code == 0
    edit('"?"', "Hm.")
    stopped = run("s.judge.yaml", "--replay", "calls.jsonl", "--no-cache", *words)
    assert stopped.code == 2
    assert has_line(stopped.err, "judge: s.judge.yaml:", "recording lacks")


def test_a_suite_without_a_criterion_is_refused(run: Callable[..., Any]) -> None:
    Path("data.jsonl").write_text('{"item": "1", "system": "A", "output": "a"}\n', encoding="utf-8")
    Path("empty.judge.yaml").write_text(
        "data: data.jsonl\ncriteria: ['']\nmodel: scripted/replies.yaml\n"
        "cases:\n- {name: b, item: '1', system: A, expect: {min: 4}}\n",
        encoding="utf-8",
    )
    completed = run("empty.judge.yaml")
    assert completed.code == 2
    assert has_line(completed.err, "empty.judge.yaml", "no case", "criterion and a text")


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (
            ["none.judge.yaml"],
            ("none.judge.yaml: no such file", "'s.judge.yaml'"),
        ),
        (["s.judge.yaml", "--format", "pdf"], ("'pdf'", "known: console")),
        (
            ["s.judge.yaml", "--cases", "sais it"],
            ("--cases:", "'sais it'", "'says it'"),
        ),
        (
            ["s.judge.yaml", "--baseline", "s.judge.yaml"],
            ("--baseline:", "no run", "s.judge.yaml"),
        ),
        (["s.judge.yaml", "--criteria", "none"], ("criteria: none:", "needs criteria")),
        (
            ["data.jsonl"],
            ("data.jsonl:", "not a suite", "judge init --suite data.jsonl"),
        ),
        (
            ["s.judge.yaml", "--draws", "0"],
            ("--draws:", "1", "'0'"),
        ),
        (["s.judge.yaml", "--criteria", "fluency"], ("no case is about it",)),
    ],
)
def test_refuses_bad_options(
    run: Callable[..., Any], arguments: list[str], facts: tuple[str, ...]
) -> None:
    completed = run(*arguments, "--markdown", "summary.md", "--junit", "made/j.xml")
    assert completed.code == 2
    assert has_line(completed.err, *facts)
    summary = Path("summary.md").read_text(encoding="utf-8")
    assert summary.startswith("## ✗")
    (error,) = ElementTree.parse("made/j.xml").getroot().findall(".//error")
    assert has_line(error.text or "", *facts)


def test_a_file_that_cannot_be_written(run: Callable[..., Any]) -> None:
    completed = run("s.judge.yaml", "--junit", "replies.yaml/x")
    assert (completed.code, "--junit replies.yaml/x: " in completed.err) == (2, True)


def test_files_that_would_be_lost_are_refused_before_anything_is_asked(
    run: Callable[..., Any],
) -> None:
    Path("folder").mkdir()
    for arguments, message in (
        (("--junit", "s.judge.yaml"), "--junit s.judge.yaml: is also an input"),
        (
            ("--markdown", "data.jsonl"),
            "--markdown data.jsonl: already exists and does not look like a report",
        ),
        (("--junit", "x", "--markdown", "./x"), "--markdown x: --junit is the same file"),
        (("--markdown", "folder"), "--markdown folder: folder is a folder"),
    ):
        before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
        completed = run("s.judge.yaml", *arguments)
        assert (completed.code, completed.out) == (2, "")
        assert message in completed.err
        assert "to make" not in completed.err
        assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_the_baseline(run: Callable[..., Any]) -> None:
    assert run("s.judge.yaml", "--baseline", "kept", "--update-baseline").code == 0
    assert "the same" in run("s.judge.yaml", "--baseline", "kept", "--full").out


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("s.judge.yaml", ()),
        ("polite.yaml", ("--criteria", "polite.yaml")),
        ("calls.jsonl", ("--replay", "calls.jsonl")),
        ("kept/s/run.json", ("--baseline", "kept")),
        ("data.jsonl", ()),
    ],
)
def test_a_merge_conflict_is_named_with_its_line(
    run: Callable[..., Any], file: str, options: tuple[str, ...]
) -> None:
    Path("polite.yaml").write_text("question: Is it polite?\n", encoding="utf-8")
    edit("criterion: relevance", "criterion: polite.yaml")
    edit("cases:", "data: data.jsonl\ncases:")
    made = run("s.judge.yaml", "--baseline", "kept", "--update-baseline", "--record", "calls.jsonl")
    assert made.code == 0
    lines = Path(file).read_text("utf-8").splitlines(keepends=True)
    lines[1:1] = ["<<<<<<< HEAD\n", "=======\n", ">>>>>>> branch\n"]
    Path(file).write_text("".join(lines), encoding="utf-8")
    refused = run("s.judge.yaml", *options)
    assert refused.code == 2
    assert has_line(refused.err, f"{file}:2: ", "merge conflict")


def test_a_summary_names_the_settings_that_differ_from_the_baseline(
    run: Callable[..., Any],
) -> None:
    compared = ("s.judge.yaml", "--baseline", "kept")
    assert run(*compared, "--update-baseline").code == 0
    assert "Changed since the baseline" not in run(*compared).out
    Path("replies.yaml").rename("newer.yaml")
    completed = run(*compared, "--model", "scripted/newer.yaml")
    changed = "model of relevance (scripted/replies.yaml → scripted/newer.yaml)"
    assert f"Changed since the baseline: {changed}." in " ".join(completed.out.split())


def test_a_recording_of_the_baselines_model_is_no_change(
    run: Callable[..., Any], chat_server: Any
) -> None:
    edit("model: scripted/replies.yaml\n", "undecided: pass\n")
    model = ("--model", "m", "--base-url", chat_server.url, "--record", "calls.jsonl")
    run("s.judge.yaml", "--out", "kept", *model)
    replayed = run("s.judge.yaml", "--baseline", "kept", "--replay", "calls.jsonl")
    assert "1 of 1 baseline" in replayed.out
    assert "Changed since the baseline" not in replayed.out


def test_estimated_cost_is_shown_before_the_first_request(
    run: Callable[..., Any], chat_server: Any
) -> None:
    edit("model: scripted/replies.yaml\n", "")
    completed = run(
        "s.judge.yaml", "--model", "m", "--base-url", chat_server.url, "--undecided", "pass"
    )
    assert completed.code == 1  # the judge gives both texts a 4
    assert has_line(completed.err, "1 suite, 2 judgments", "2 requests", "price unknown")
    assert len(chat_server.bodies) == 2


def test_a_limit_on_cost_has_the_same_verdict_while_recording_and_when_replayed(
    run: Callable[..., Any], chat_server: Any
) -> None:
    edit("model: scripted/replies.yaml\n", "limits: {cost: 0.50usd}\n")
    asked = ("s.judge.yaml", "--model", "m", "--base-url", chat_server.url)
    for options in (
        asked,
        (*asked, "--record", "calls.jsonl"),
        (asked[0], "--replay", "calls.jsonl"),
    ):
        completed = run(*options, "--undecided", "pass")
        assert completed.code == 1
        # The price of a local server is unknown.
        assert has_line(" ".join(completed.out.split()), "found unknown", "server of your own")


def test_scripted_replies_cost_nothing_while_recorded_and_when_replayed(
    run: Callable[..., Any],
) -> None:
    edit("model: scripted/replies.yaml\n", "limits: {cost: 0.50usd}\n")
    scripted = ("--model", "scripted/replies.yaml", "--record", "calls.jsonl")
    for options in (scripted, ("--replay", "calls.jsonl")):
        completed = run("s.judge.yaml", *options, "--undecided", "pass")
        assert (completed.code, "not checked" in completed.out) == (0, False)


def test_a_recording_of_two_servers_has_no_price(run: Callable[..., Any], chat_server: Any) -> None:
    edit("model: scripted/replies.yaml\n", "limits: {cost: 0.50usd}\n")
    run("s.judge.yaml", "--model", "m", "--base-url", chat_server.url, "--record", "calls.jsonl")
    first, second = Path("calls.jsonl").read_text("utf-8").splitlines()
    moved = second.replace(chat_server.url, "https://api.openai.com/v1")
    Path("calls.jsonl").write_text(f"{first}\n{moved}\n", encoding="utf-8")
    completed = run("s.judge.yaml", "--replay", "calls.jsonl")
    assert completed.code == 1
    assert has_line(" ".join(completed.out.split()), "found unknown", "m was recorded at")


def test_runs_are_saved_for_inspection(run: Callable[..., Any]) -> None:
    assert run("s.judge.yaml", "--out", "runs", "--quiet").code == 0
    assert Path("runs/report.html").exists()


def test_the_page_of_a_run_begins_with_the_verdicts_and_the_last_run(
    run: Callable[..., Any],
) -> None:
    assert run("s.judge.yaml", "--out", "runs").code == 0
    edit("min: 3", "min: 5")
    assert run("s.judge.yaml", "--out", "runs").code == 1
    page = Path("runs/report.md").read_text("utf-8")
    assert page.startswith("## ✗ judge test: s\n\n**2 cases: 1 failed")
    assert "(last run " in page
    assert "### Scores" in page


def test_a_folder_of_suites_keeps_each_run_in_a_folder(run: Callable[..., Any]) -> None:
    assert run(".", "--out", "runs", "--quiet").code == 0
    assert Path("runs/s/report.html").exists()
    # A later run of only this suite must not keep this run as an old baseline.
    assert run("s.judge.yaml", "--out", "runs", "--quiet").code == 0
    assert not Path("runs/report.html").exists()


def test_the_risk_of_a_suite_is_shown_for_each_case(run: Callable[..., Any]) -> None:
    completed = run("s.judge.yaml", "--risk", "--weighting", "single")
    assert has_line(completed.out, "s passes", "risk", "unknown")
    row = next(line for line in completed.out.splitlines() if line.startswith("says it"))
    assert row.split() == ["says", "it", "passed", "unknown", "–", "more", "draws"]


def test_ctrl_c(run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    complete = ScriptedProvider.complete

    async def interrupted(self: ScriptedProvider, request: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return await complete(self, request)

    monkeypatch.setattr(ScriptedProvider, "complete", interrupted)
    completed = run("s.judge.yaml")
    assert completed.code == 130
    assert has_line(completed.err, "interrupted", "no verdicts", "to resume", "cache answers")
    assert "not asked" not in run("s.judge.yaml", "--no-cache").err
