"""Read and run a page of the documentation; `test_commands.py` describes the blocks of a page."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from markdown_it import MarkdownIt

from judge.cli import app, run_app

ROOT = Path(__file__).resolve().parents[2]
DEMO = ["judge", "run", "examples/compare_systems/run.yaml", "--out", "runs/demo"]
STARTABLE = {
    "judge",
    "python",
    "pytest",
    "cat",
    "head",
    "tail",
    "ls",
    "grep",
    "cp",
    "mkdir",
    "echo",
    "cd",
    "wc",
}
TOOLS = {"judge": "-c 'from judge.cli import main; main()'", "python": "", "pytest": "-m pytest"}
GUARD = """
import socket
def _only_loopback(connect):
    def guarded(self, address, *rest):
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise RuntimeError(f"the documentation reaches for {address}")
        return connect(self, address, *rest)
    return guarded
for name in ("connect", "connect_ex"):
    setattr(socket.socket, name, _only_loopback(getattr(socket.socket, name)))
"""


@dataclass(frozen=True)
class Block:
    """Code on a page: `title` is the file to write, `not_run` the reason why it is not run."""

    language: str
    text: str
    line: int
    exit: int = 0
    title: str = ""
    not_run: str = ""


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page in order."""
    not_run_comment = re.compile(r"<!--\s*not run:\s*(.+?)\s*-->", re.DOTALL)
    not_run = ""
    for token in MarkdownIt().parse(text):
        if token.type == "html_block" and (match := not_run_comment.search(token.content)):
            not_run = match[1]
        elif token.type in ("fence", "code_block"):
            language = token.info.split()[0] if token.info.strip() else ""
            exit_code = re.search(r"\bexit=(\d+)", token.info)
            title = re.search(r'\btitle="([^"]+)"', token.info)
            yield Block(
                language,
                token.content,
                line=token.map[0] + 1 if token.map else 0,
                exit=int(exit_code[1]) if exit_code else 0,
                title=title[1] if title else "",
                not_run=not_run,
            )
            not_run = ""


def commands(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a block with their documented output; a backslash joins two lines."""
    result: list[tuple[str, str]] = []
    continues = False
    for line in block.text.splitlines():
        starts = line.startswith("$ ")
        if continues:
            result[-1] = (result[-1][0].rstrip("\\") + line.removeprefix("> ").strip(), "")
        elif starts:
            result.append((line.removeprefix("$ ").strip(), ""))
        elif result:
            result[-1] = (result[-1][0], result[-1][1] + line + "\n")
        continues = (continues or starts) and line.endswith("\\")
    return result


def plain(text: str) -> str:
    """Return the text without rules and with single spaces."""
    return " ".join(re.sub(r"[\u2500-\u257f]", " ", text).split())


def missing_part(documented: str, printed: str) -> str:
    """Return the first part of the documented output that was not printed in this order, or ""."""
    rest = plain(printed)
    for part in filter(None, map(plain, documented.split("…"))):
        _, match, rest = rest.partition(part)
        if not match:
            return part
    return ""


def parser_error(command: str) -> str:
    """Return why judge's parser rejects a command that is not run, or ""."""
    words = shlex.split(command, comments=True)
    if words[:1] == ["make"]:
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        return "".join(f"no target {word}" for word in words[1:] if word not in targets)
    if words[:1] != ["judge"]:
        return ""
    shell_operators = [n for n, word in enumerate(words) if word in ("|", ">", ">>", "&&", ";")]
    words = words[1 : min(shell_operators, default=len(words))]
    node: Any = app
    path = ["judge"]
    while isinstance(node, click.Group) and words and not words[0].startswith("-"):
        path.append(words.pop(0))
        if path[-1] not in node.commands:
            return f"no command {' '.join(path)}"
        node = node.commands[path[-1]]
    try:
        if not isinstance(node, click.Group):
            node.make_context(" ".join(path), words)
    except click.exceptions.Exit:  # --help
        return ""
    except click.UsageError as error:
        return str(error.format_message())
    return ""


def unknown_names(text: str) -> list[str]:
    """Return the names below `judge` that a Python block uses and that do not exist."""
    tree = ast.parse(text)
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "judge":
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Attribute) and re.fullmatch(
            r"judge(\.\w+)+", name := ast.unparse(node)
        ):
            names.add(name)
    parameters = [node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)]
    if "judge" in parameters:  # the fixture of a test
        return []
    return sorted(name for name in names if not _exists(name))


def _exists(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


@contextlib.contextmanager
def captured() -> Iterator[Callable[[], str]]:
    """Capture both streams in order."""
    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        yield lambda: buffer.getvalue().decode("utf-8")


def run_judge(words: list[str]) -> tuple[int, str]:
    """Run `judge` in this process; return its exit code and output."""
    with captured() as printed, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        try:
            run_app()
        except SystemExit as end:
            return (end.code if isinstance(end.code, int) else int(end.code is not None)), printed()
        return 0, printed()


class PageRunner:
    """Run a page's blocks in a folder; the Python blocks share their names."""

    def __init__(self, folder: Path, page: str, demo: str = "") -> None:
        self.folder = folder
        self.page = page
        self._demo = demo
        self.names: dict[str, Any] = {"__name__": "page"}
        self._tools = folder.parent / "tools"
        self._tools.mkdir()
        (self._tools / "sitecustomize.py").write_text(GUARD, "utf-8")
        for name, call in TOOLS.items():
            (self._tools / name).write_text(
                f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {call} "$@"\n', "utf-8"
            )
            (self._tools / name).chmod(0o755)

    def run(self, command: str) -> tuple[int, str]:
        """Run a command, in this process unless it needs a shell; return its exit code and output."""
        words = shlex.split(command, comments=True)
        assert words[0] in STARTABLE, (
            f"{words[0]} is not started from a test: put <!-- not run: REASON --> before it"
        )
        if words == DEMO and self._demo:  # the fixture `demo` has run this command
            return 0, self._demo
        if words[0] == "judge" and not re.search(r"[|&;<>$*`]", " ".join(words)):
            return run_judge(words)
        environment = {
            **os.environ,
            "PATH": f"{self._tools}:/usr/bin:/bin",
            "PYTHONPATH": f"{self._tools}:{ROOT}",
            "HOME": str(self.folder.parent),
        }
        completed = subprocess.run(
            ["bash", "-c", command], env=environment, capture_output=True, timeout=300
        )
        return completed.returncode, (completed.stdout + completed.stderr).decode("utf-8")

    def python(self, text: str) -> None:
        with captured():
            exec(compile(text, self.page, "exec", dont_inherit=True), self.names)

    def session(self, text: str) -> None:
        """Run the lines after `>>>`. Raises AssertionError with the differences."""
        doctest_runner = doctest.DocTestRunner(
            verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        )
        differences: list[str] = []
        session = doctest.DocTestParser().get_doctest(
            text.replace("…", "..."), self.names, self.page, self.page, 0
        )
        assert session.examples, f"{self.page}: a pycon block without a line that begins with >>>"
        doctest_runner.run(session, out=differences.append, clear_globs=False)
        assert not doctest_runner.failures, "".join(differences)
        self.names.update(session.globs)

    def write(self, name: str, text: str) -> None:
        target = (self.folder / name).resolve()
        assert target.is_relative_to(self.folder), f"{self.page}: {name} is outside the folder"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


def run_page(text: str, runner: PageRunner) -> None:
    """Run a page, block by block. Raises AssertionError with the line of the first error."""
    for block in blocks(text):
        position = f"{runner.page}:{block.line}"
        # Empty lines before the code, so that its errors have the line numbers of the page.
        code = "\n" * block.line + block.text
        if block.title:
            runner.write(block.title, block.text)
        elif block.language == "python":
            wrong = unknown_names(block.text)
            assert not wrong, f"{position}: no {', '.join(wrong)}"
            if not block.not_run:
                runner.python(code)
        elif block.language == "pycon" and not block.not_run:
            runner.session(code)
        elif block.language == "console":
            _run_commands(block, runner, position)
        else:
            assert not re.search(r"^(\$ )?judge ", block.text, re.MULTILINE), (
                f"{position}: a command outside a console block"
            )


def _run_commands(block: Block, runner: PageRunner, position: str) -> None:
    block_commands = commands(block)
    assert block_commands, f"{position}: a console block without a line that begins with $"
    for number, (command, documented) in enumerate(block_commands, 1):
        if block.not_run:
            error = parser_error(command)
            assert not error, f"{position}: {command}: {error}"
            continue
        expected = block.exit if number == len(block_commands) else 0
        code, printed = runner.run(command)
        assert code == expected, (
            f"{position}: {command}\nexited with {code}, not {expected}:\n{printed}"
        )
        part = missing_part(documented, printed)
        assert not part, (
            f"{position}: {command}\ndoes not print in this order:\n{part}\nbut:\n{printed}"
        )


@pytest.fixture(scope="session")
def harness() -> ModuleType:
    """This module."""
    return sys.modules[__name__]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a folder with the `runs/` that `make demo` writes, and what it prints."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(ROOT / "examples", folder / "examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "80")
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        code, printed = run_judge(DEMO)
    assert code == 0, printed
    return folder, printed


@pytest.fixture
def make_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[[str], PageRunner]:
    """Return a function that prepares a page; only real pages start with the demo's runs."""

    def make(page: str) -> PageRunner:
        folder = tmp_path / "clone"
        folder.mkdir()
        for name in ("examples", "prompts"):
            shutil.copytree(ROOT / name, folder / name)
        printed = ""
        if (ROOT / page).is_file():
            example_folder, printed = request.getfixturevalue("demo")
            shutil.copytree(example_folder / "runs", folder / "runs")
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        for name in [*os.environ]:
            if name.endswith("_API_KEY") or name.startswith(("JUDGE_", "OPENAI_", "AZURE_")):
                monkeypatch.delenv(name)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.chdir(folder)
        return PageRunner(folder, page, printed)

    return make
