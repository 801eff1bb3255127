"""`--export otel=FILE` of `judge run` and `judge report`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.factories import write_jsonl

ROWS = [{"item": item, "output": "It left.", "references": ["It has left."]} for item in ("a", "b")]


def _spans(text: str) -> list[Any]:
    return [
        span
        for line in text.splitlines()
        for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    ]


def test_the_command_line_writes_the_file(tmp_path: Path, command: Callable[..., Any]) -> None:
    write_jsonl(tmp_path / "data.jsonl", ROWS)
    completed = command(
        "run",
        "data.jsonl",
        "--criteria",
        "none",
        "--metrics",
        "chrf",
        "--export",
        "otel=t/a.json",
        "--out",
        "r",
    )
    assert completed.code == 0, completed.err
    assert len(_spans((tmp_path / "t/a.json").read_text("utf-8"))) == 2
    assert command("report", "r", "--where", "item=a", "--export", "otel=b.json").code == 0
    assert len(_spans((tmp_path / "b.json").read_text("utf-8"))) == 1


@pytest.mark.parametrize(
    ("export", "message"),
    [
        ("otl=x", "did you mean 'otel'?"),
        ("otel", "write otel=FILE"),
        ("otel=r/run.json", "not look like a report"),
    ],
)
def test_a_wrong_export_is_found_before_the_run(
    tmp_path: Path, command: Callable[..., Any], export: str, message: str
) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r/run.json").write_text("{}")
    (tmp_path / "data.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    completed = command("run", "data.jsonl", "--model", "never-asked", "--export", export)
    assert (completed.code, message in completed.err) == (2, True)
