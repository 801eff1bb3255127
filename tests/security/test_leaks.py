"""A server that says the key wherever it can: no file, page or line of what a command leaves has it."""

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
def telling(chat_server: Any, make_completion: Callable[..., Any]) -> Any:
    """Every third request fails with the key in the error, and in a header; all replies have it in several places."""
    turn = itertools.count()
    escaped = "".join(f"\\u{ord(one):04x}" for one in KEY)

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        which = next(turn) % 3
        heads = {"x-request-id": KEY, "x-ratelimit-limit-requests": KEY}
        if which == 1:
            return (
                400,
                heads,
                {"error": {"message": f"Bearer {KEY} may not", "code": KEY, "param": KEY}},
            )
        reply = make_completion("4", top={"4": 0.7, "5": 0.3}, system_fingerprint=KEY)
        reply["model"] = f"model-{KEY}"
        reply["choices"][0]["message"]["reasoning"] = KEY
        if which == 2:
            reply["choices"][0]["message"]["content"] = f"I think {KEY}"
            return 200, heads, json.dumps(reply).replace(KEY, escaped).encode()
        return 200, heads, reply

    chat_server.answer = answer
    return chat_server


def run(folder: Path, *commands: tuple[str, ...]) -> None:
    """Commands that print no key, one after the other in one process."""
    env = {**os.environ, "OPENAI_API_KEY": KEY, "XDG_CACHE_HOME": str(folder / "caches")}
    process = [sys.executable, "-c", COMMANDS, json.dumps(commands)]
    done = subprocess.run(process, cwd=folder, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert KEY.encode() not in done.stdout + done.stderr


OPTIONS = {
    "run": "--criteria fluency,relevance --out run --record rec.jsonl",
    "rank": "--out ranked --record ranks.jsonl",
    "validate": "--card --criteria fluency --items 2 --probes bias --out card",
    "test": "--out suite --junit junit.xml --markdown page.md --format json",
}


@pytest.mark.slow
def test_api_key_is_in_no_file(telling: Any, tmp_path: Path) -> None:
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
    model_options = ("--model", "m", "--base-url", telling.url, "--retries", "0")
    commands = []
    for name, options in OPTIONS.items():
        argument = "s.judge.yaml" if name == "test" else "rows.jsonl"
        commands.append((name, argument, *options.split(), *model_options))
    formats = ("console", "markdown", "html", "json", "csv", "latex")
    commands += [("report", "run", "--format", f, "--output", f"run.{f}") for f in formats]
    commands += [("report", "ranked", "--format", f, "--output", f"rank.{f}") for f in formats[1:4]]
    run(tmp_path, *commands)
    assert len(telling.bodies) > 4
    assert {headers["authorization"] for headers in telling.headers} == {f"Bearer {KEY}"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    names = {path.parent.name for path in files}
    assert {"run", "ranked", "card"} <= names
    assert len(files) > 25
    escaped = "".join(f"\\u{ord(one):04x}" for one in KEY).encode()
    for path in files:
        content = path.read_bytes()
        assert KEY.encode() not in content, path
        assert escaped not in content, path
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            assert KEY not in str(table.to_pylist()) + str(table.schema.metadata), path
