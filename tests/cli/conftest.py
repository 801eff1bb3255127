"""Run the command line in the process of the test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from judge.cli import app


@dataclass
class CommandResult:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every command in an empty folder, with the cache inside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., CommandResult]:
    """A function that runs `judge` with arguments."""
    from judge.cli import run_app

    def run(*args: object) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["judge", *map(str, args)])
        with pytest.raises(SystemExit) as exited:
            run_app()
        printed = capsys.readouterr()
        return CommandResult(int(exited.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def parameters() -> dict[str, list[Any]]:
    """The parameters of every command, by its full name."""

    def commands(node: Any, name: str = "") -> Iterator[tuple[str, Any]]:
        if not hasattr(node, "commands") or (node.invoke_without_command and name):
            yield name, node
        for word, inner in getattr(node, "commands", {}).items():
            yield from commands(inner, f"{name} {word}".strip())

    tree = dict(commands(app))
    return {
        name: [
            part for part in command.get_params(click.Context(command)) if "--help" not in part.opts
        ]
        for name, command in tree.items()
    }
