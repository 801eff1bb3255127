"""The API key is in no file or output of a command, even if the server repeats it in every reply."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.factories import write_jsonl

KEY = "sk-a-key-that-nobody-else-has-0123456789"
ESCAPED_KEY = "".join(f"\\u{ord(character):04x}" for character in KEY)
COMMANDS = """
import json, sys
from judge.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv[:] = ["judge", *words]
    try:
        main()
    except SystemExit as ended:
        assert ended.code in (None, 0, 1), ended.code
"""
SUITE = """data: rows.jsonl
criteria: [fluency]
cases:
  - {name: the ferry is fluent, item: ferry, system: a, expect: {min: 2}}
  - {name: the baths are not, item: baths, system: b, expect: {max: 2}}
"""


@pytest.fixture
def repeating_server(chat_server: Any, make_completion: Callable[..., Any]) -> Any:
    """Return a server whose headers and replies have the key; every third request fails."""
    numbers = itertools.count()

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        kind = next(numbers) % 3
        headers = {"x-request-id": KEY, "x-ratelimit-limit-requests": KEY}
        if kind == 1:
            error = {"message": f"Bearer {KEY} may not", "code": KEY, "param": KEY}
            return 400, headers, {"error": error}
        reply = make_completion("4", top={"4": 0.7, "5": 0.3}, system_fingerprint=KEY)
        reply["model"] = f"model-{KEY}"
        reply["choices"][0]["message"]["reasoning"] = KEY
        if kind == 2:
            reply["choices"][0]["message"]["content"] = f"I think {KEY}"
            return 200, headers, json.dumps(reply).replace(KEY, ESCAPED_KEY).encode()
        return 200, headers, reply

    chat_server.answer = answer
    return chat_server


def run(folder: Path, *commands: tuple[str, ...]) -> None:
    """Run commands one after the other in one process, and check that they do not print the key."""
    env = {**os.environ, "OPENAI_API_KEY": KEY, "XDG_CACHE_HOME": str(folder / "caches")}
    process = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
    completed = subprocess.run(process, cwd=folder, env=env, capture_output=True, check=False)
    assert completed.returncode == 0, completed.stderr.decode()
    assert KEY.encode() not in completed.stdout + completed.stderr


def report_command(folder: str, name: str) -> tuple[str, ...]:
    """Return a command that writes the report of a run in this format to a file."""
    return ("report", folder, "--format", name, "--output", f"{folder}.{name}")


OPTIONS = {
    "run": "--criteria fluency,relevance --out run --record rec.jsonl",
    "rank": "--out ranked --record ranks.jsonl",
    "validate": "--card --criteria fluency --items 2 --probes bias --out card",
    "test": "--out suite --junit junit.xml --markdown page.md --format json",
}


@pytest.mark.slow
def test_the_api_key_is_in_no_file(repeating_server: Any, tmp_path: Path) -> None:
    rows = [
        {
            "item": item,
            "system": system,
            "source": f"The {item} is closed.",
            "output": f"The {item} {end}.",
        }
        for item in ("ferry", "baths", "bridge")
        for system, end in (("a", "is closed"), ("b", "opens"))
    ]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    (tmp_path / "s.judge.yaml").write_text(SUITE)
    model_options = ("--model", "m", "--base-url", repeating_server.url, "--retries", "0")
    commands = []
    for name, options in OPTIONS.items():
        argument = "s.judge.yaml" if name == "test" else "rows.jsonl"
        commands.append((name, argument, *options.split(), *model_options))
    formats = ("console", "markdown", "html", "json", "csv", "latex")
    commands += [report_command("run", name) for name in formats]
    commands += [report_command("ranked", name) for name in formats[1:4]]
    run(tmp_path, *commands)
    assert len(repeating_server.bodies) > 4
    assert {headers["authorization"] for headers in repeating_server.headers} == {f"Bearer {KEY}"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    folders = {path.parent.name for path in files}
    assert {"run", "ranked", "card"} <= folders
    assert len(files) > 25
    for path in files:
        content = path.read_bytes()
        assert KEY.encode() not in content, path
        assert ESCAPED_KEY.encode() not in content, path
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            assert KEY not in str(table.to_pylist()) + str(table.schema.metadata), path
