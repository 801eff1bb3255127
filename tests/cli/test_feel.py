"""Usability of the command line: hints, completion and plain text."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from judge.cli import options
from judge.core.format import no_ansi
from tests.factories import has_line

COMMAND = [
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'judge'; from judge.cli import main; main()",
]
ROWS = """{"item": "a", "system": "x", "source": "A source.", "output": "A text of some words."}
{"item": "a", "system": "y", "source": "A source.", "output": "Another text of some words."}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Path("summaries.jsonl").write_text(ROWS, "utf-8")
    Path("replies.yaml").write_text("- {reply: 3}\n", "utf-8")
    return tmp_path


def on_a_terminal(folder: Path, *words: str, **surroundings: str) -> str:
    """A function that returns the output of a command on a terminal, stdout and stderr."""
    ours, theirs = pty.openpty()
    known = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "TERM", "FORCE_COLOR")
    }
    with subprocess.Popen(
        [*COMMAND, *words], cwd=folder, env=known | {"TERM": "xterm-256color"} | surroundings,
        stdin=theirs, stdout=theirs, stderr=theirs,
    ):  # fmt: skip
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # the reader has closed the terminal
            pass
    os.close(ours)
    return shown.decode()


RUN = (
    "run",
    "summaries.jsonl",
    "--model",
    "scripted/replies.yaml",
    "--criteria",
    "fluency",
    "--out",
    "r",
)


@pytest.mark.slow
def test_a_terminal_gets_colour_unless_it_does_not_want_it(folder: Path) -> None:
    coloured = on_a_terminal(folder, *RUN)
    assert "\x1b[" in coloured
    for wish, words, message in (
        ({"NO_COLOR": "1"}, RUN, "done: 2/2 judgments"),
        ({"NO_COLOR": "1"}, ("criteria", "lst"), "did you mean 'list'"),
        ({"TERM": "dumb"}, ("--help",), "Usage: judge"),
    ):
        plain = on_a_terminal(folder, *words, **wish)
        assert "\x1b" not in plain, (wish, words)
        assert message in plain


def test_an_empty_no_color_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "")
    assert not no_ansi()


@pytest.mark.slow
def test_a_pipe_gets_plain_text(folder: Path) -> None:
    completed = subprocess.run(
        [*COMMAND, *RUN], cwd=folder, capture_output=True, text=True, check=True
    )
    assert "\x1b" not in completed.stdout + completed.stderr


def test_nothing_typed_is_answered_with_help(command: Callable[..., Any]) -> None:
    for words in ((), ("criteria",), ("doctor", "cache")):
        completed = command(*words)
        assert completed.code in (0, 2)
        assert "Usage: judge" in completed.out + completed.err
        assert "\nOptions:" in completed.out + completed.err


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("rnu",), ("'rnu'", "'run'")),
        (("xyzzy",), ("'xyzzy'", "judge --help")),
        (("eval", "summaries.jsonl"), ("'eval'", "judge run")),
        (("power", "runs/a"), ("'power'", "judge plan RUN --detect D")),
        (("view", "r"), ("judge report RUN",)),
        (("score", "summaries.jsonl"), ("judge run DATA --criteria none",)),
        (("qags", "r"), ("judge report RUN --item ID",)),
        (("cache", "stats"), ("judge doctor cache",)),
        (("suite", "init", "summaries.jsonl"), ("judge init --suite DATA",)),
        (("doctor", "cach", "stats"), ("'cache'",)),
        (
            ("doctor", "--model", "m", "metrics"),
            ("after the command", "judge doctor metrics"),
        ),
        (("init", "--output", "s.judge.yaml"), ("--output:", "--suite DATA")),
        (("init", "new", "--suite", "summaries.jsonl"), ("--suite", "a file, not a project")),
        (("doctr",), ("'doctor'",)),
        (("criteria", "lst"), ("'list'",)),
        (("run", "summaries.jsonl", "--modle", "x"), ("--model",)),
        (("run", "summaries.jsonl", "--model", "x", "--criteria", "relevnce"), ("'relevance'",)),
        (("run", "summaries.jsonl", "--criteria", "none", "--metrics", "rogue"), ("'rouge'",)),
    ],
)
def test_unknown_name_suggests_the_nearest(
    folder: Path,
    command: Callable[..., Any],
    words: tuple[str, ...],
    facts: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    completed = command(*words)
    assert completed.code == 2
    assert has_line(completed.err, *facts)


@pytest.mark.parametrize("flag", ["--draws", "--model", "--export", "--out"])
def test_an_option_without_its_value_is_an_error(command: Callable[..., Any], flag: str) -> None:
    completed = command("run", "summaries.jsonl", flag)
    assert (completed.code, completed.out) == (2, "")
    assert f"Option '{flag}' requires an argument." in completed.err


@pytest.mark.parametrize(
    ("command_line", "flag"),
    [
        ("run data.jsonl --limit 1 --limit=2", "--limit"),
        (
            "run data.jsonl --model a --base-url http://x/v1 --model b --base-url http://y/v1",
            "--base-url",
        ),
        ("report r --format csv --format json", "--format"),
        ("doctor cache export FILE --model a --model b", "--model"),
    ],
)
def test_an_option_with_one_value_is_refused_twice(
    command_line: str, flag: str, command: Callable[..., Any]
) -> None:
    completed = command(*command_line.split())
    assert completed.code == 2
    assert has_line(completed.err, f"{flag}:", "given twice")


def test_the_error_for_two_addresses_shows_a_panel_with_two_addresses(
    command: Callable[..., Any],
) -> None:
    completed = command(
        "run", "data.jsonl", *["--base-url", "http://x/v1", "--base-url", "http://y/v1"]
    )
    panel = yaml.safe_load(completed.err.partition("run.yaml: ")[2])["model"]
    assert [sorted(judge) for judge in panel] == [["base_url", "name"], ["base_url", "name"]]


def test_a_flag_may_be_given_twice(folder: Path, command: Callable[..., Any]) -> None:
    completed = command(*RUN, "--quiet", "--quiet")
    assert completed.code == 0, completed.err


def test_an_interrupted_command_exits_with_130(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **settings: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("judge.criteria.builtin", interrupted)
    assert command("criteria", "list").code == 130


def test_an_interrupt_while_the_interpreter_ends_prints_no_traceback(folder: Path) -> None:
    at_exit = "import atexit, os, signal; atexit.register(os.kill, os.getpid(), signal.SIGINT); "
    completed = subprocess.run(
        [sys.executable, "-c", at_exit + COMMAND[2], "criteria", "list", "--json"],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert completed.returncode == -signal.SIGINT
    assert (bool(json.loads(completed.stdout)), completed.stderr) == (True, "")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ("run summarise.jsonl", ("summarise.jsonl: no such file", "'summaries.jsonl'")),
        ("plan zzz.csv", ("zzz.csv: no such file",)),
        ("run replys.yaml", ("replys.yaml: no such file", "'replies.yaml'")),
        ("run no/data.jsonl", ("no/data.jsonl: no such file",)),
        (
            "criteria diff fluency relevance smmaries.jsonl",
            ("smmaries.jsonl: no such file", "'summaries.jsonl'"),
        ),
    ],
)
def test_a_file_that_is_not_there(
    folder: Path, command: Callable[..., Any], words: str, facts: tuple[str, ...]
) -> None:
    completed = command(*words.split())
    assert completed.code == 2
    assert has_line(completed.err, "judge: ", *facts)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_data_from_a_pipe_are_refused_instead_of_waiting_for_a_writer(
    folder: Path, command: Callable[..., Any]
) -> None:
    os.mkfifo(folder / "pipe.jsonl")
    completed = command("run", "pipe.jsonl")
    assert completed.code == 2
    assert "pipe.jsonl" in completed.err


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="only Unix shells have <(command)")
def test_a_criterion_may_come_from_another_command(
    folder: Path, command: Callable[..., Any]
) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"---\nscale: [1, 5]\n---\nIs this clear? {{ output }}\nScore:")
    os.close(writer)
    dry_run = ("--model", "scripted/replies.yaml")
    completed = command("plan", "summaries.jsonl", *dry_run, "--criteria", f"/dev/fd/{reader}")
    os.close(reader)
    assert completed.code == 0, completed.err


def test_a_pattern_is_not_taken_for_a_file(folder: Path, command: Callable[..., Any]) -> None:
    assert (
        command(
            "run", "summ*.jsonl", "--criteria", "none", "--metrics", "distinct", "--out", "r"
        ).code
        == 0
    )


def test_a_shell_completes_names(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def offered(line: str) -> set[str]:
        monkeypatch.setenv("_JUDGE_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        kinds_and_values = command().out.split()
        return {entry.removeprefix("plain,") for entry in kinds_and_values}

    assert {"run", "rank", "report"} == offered("judge r")
    assert offered("judge run d --criteria rel") == {"relevance"}
    assert offered("judge run d --criteria fluency,coh") == {"fluency,coherence"}
    assert offered("judge run d --metrics roug") == {"rouge"}
    assert offered("judge report r --format p") == {"pdf", "png"}
    assert offered("judge run d --weighting s") == {"samples", "single"}
    assert offered("judge run d --language k") == {"ko"}
    assert offered("judge criteria show over") == {"overall"}


def test_the_names_that_are_offered_are_known() -> None:
    assert {"relevance", "overall"} <= set(options.names_of_criteria())
    assert "pointwise" not in options.names_of_criteria()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_is_shown(shell: str, command: Callable[..., Any]) -> None:
    completed = command("--show-completion", shell)
    assert completed.code == 0
    assert "_JUDGE_COMPLETE" in completed.out


def test_a_diffs_progress_names_the_criterion(folder: Path, command: Callable[..., Any]) -> None:
    completed = command(
        "criteria",
        "diff",
        "fluency",
        "relevance",
        "summaries.jsonl",
        "--model",
        "scripted/replies.yaml",
    )
    progress = [line for line in completed.err.splitlines() if "judgments" in line]
    assert [line[:2] for line in progress] == ["A:", "B:", "A:", "B:"]
    assert [re.sub(r", .*", "", line) for line in progress[2:]] == [
        "A: done: 2/2 judgments",
        "B: done: 2/2 judgments",
    ]
