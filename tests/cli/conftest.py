"""The command, run in the test's own process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass
class Done:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """`judge` with these arguments."""
    from judge.cli import main

    def run(*args: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["judge", *map(str, args)])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return Done(int(left.value.code or 0), printed.out, printed.err)

    return run
