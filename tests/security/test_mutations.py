"""Commands with randomly damaged files give a result or an error of judge, and never a traceback.

`JUDGE_MUTATIONS=3000 pytest tests/security/test_mutations.py` tries that many damages of each kind. The name of the
function and the number seed a damage.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from judge.cli import main
from tests.factories import has_line, write_jsonl

ROOT = Path(__file__).parents[2]
COUNT = int(os.environ.get("JUDGE_MUTATIONS", "5"))
NASTY: list[Any] = [
    10**400, -(10**400), 10**20, 2**63, -1, 0, 1e308, -1e308, math.inf, -math.inf, math.nan, 1e-320, "", " ", "\ud800",
    "\x00", "\u202e", "inf", "nan", "1e999", "9" * 5_000, "x" * 100_000, None, True, [], {}, [[]], [None], {"": None},
    {"a": {"b": [1]}}, "{{ output }}", "../..", "=1+1", "0x10", "1:30", "2020-13-45", b"\xff", "~", "on", [1, 2],
]  # fmt: skip
PIECES = [
    "9" * 5_000, "1e999", ".inf", ".nan", "\x00", "\ud800", "\ufeff", "&a [*a]", "*b", "<<: 3", "!!int x", "- ",
    "{", "}", "[", "]", ": ", "'", '"', "\n", "\n---\n", "{%", "%}", "{{", "NaN", "-Infinity", "\\ud800", ",",
]  # fmt: skip
DATA = [
    {
        "item": f"i{n}",
        "system": system,
        "output": f"Text {n} of {system}.",
        "source": "A source.",
        "rating.mine": n % 5,
    }
    for n in range(3)
    for system in ("a", "b")
]
HEADER = {
    "title": "T",
    "scale": {"labels": ["bad", "some", "good"], "values": [0, 1, 2]},
    "steps": ["Read."],
    "weight": 2,
}
REPLIES = [
    {"note": "Written by hand."},
    {"when": ["Text 1"], "reply": {"good": 0.7, "bad": 0.3}},
    {"reply": "some"},
]
PLAN = {
    "data": "rows.jsonl", "criteria": ["mine.jinja"], "model": "scripted/replies.yaml", "metrics": "stats",
    "cache": False, "deadline": 100, "budget": "100000tokens", "seed": 3, "max_concurrency": 4, "limit": 5,
    "map": {"rating.mine": "rating.mine"}, "set": {"stats": {}}, "weighting": "single", "rpm": 100_000,
    "where": {"system": ["a", "b"]},
}  # fmt: skip
SUITE = {
    "data": "rows.jsonl", "criteria": ["mine.jinja"], "model": "scripted/replies.yaml", "cache": False,
    "limits": {"failures": 0, "tokens": 100_000},
    "cases": [
        {"name": "order", "better": "a", "worse": "b", "margin": 0.25, "undecided": "pass"},
        {"name": "one", "item": "i1", "system": "a", "expect": {"min": 1}},
        {"name": "people", "human": {"spearman": {"min": 0.1}, "level": "all-texts"}},
        {"name": "text", "text": {"output": "Text 1", "source": "s"}, "expect": {"max": 2}},
    ],
}  # fmt: skip


def nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of keys and indices to all parts of a value."""
    paths = [path]
    if isinstance(value, dict):
        for key, part in value.items():
            paths += nodes(part, (*path, key))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            paths += nodes(part, (*path, index))
    return paths


def mutated(value: Any, chance: random.Random) -> Any:
    """Return a copy in which a value is replaced or removed, or has another key."""
    value = json.loads(json.dumps(value))
    *parents, last = chance.choice(nodes(value)[1:])
    container = value
    for key in parents:
        container = container[key]
    kind = chance.random()
    if kind < 0.75:
        container[last] = chance.choice(NASTY)
    elif kind < 0.85:
        del container[last]
    elif isinstance(container, dict):
        part = container.pop(last)
        new_key = chance.choice(["x", "", "names", "9" * 400, "rating.mine", "<<"])
        container[new_key] = part
    return value


def torn(text: str, chance: random.Random) -> bytes:
    """Return a text with one of `PIECES` inserted, or instead of some characters."""
    start = chance.randrange(len(text) + 1)
    stop = min(len(text), start + chance.choice([0, 0, 1, 5, 40]))
    return (text[:start] + chance.choice(PIECES) + text[stop:]).encode("utf-8", "surrogatepass")


def as_yaml(value: Any, chance: random.Random) -> bytes:
    if chance.random() < 0.4:
        return torn(yaml.safe_dump(value, sort_keys=False), chance)
    return yaml.safe_dump(mutated(value, chance), sort_keys=False).encode("utf-8", "surrogatepass")


def as_json(value: Any, chance: random.Random) -> bytes:
    if chance.random() < 0.4:
        return torn(json.dumps(value), chance)
    return json.dumps(mutated(value, chance), default=str).encode()


def write_parquet(path: Path, chance: random.Random) -> None:
    """Write the data with extreme values in one column."""
    column = chance.choice([*DATA[0], "more"])
    kinds = [
        pa.duration("us"),
        pa.int64(),
        pa.float64(),
        pa.date32(),
        pa.timestamp("ns"),
        pa.binary(),
        pa.bool_(),
    ]
    values = chance.choice(
        [[timedelta.max, timedelta.min], [2**62, -(2**62)], [math.inf, math.nan], [b"\xff", None]]
    )
    columns = {name: [row[name] for row in DATA] for name in DATA[0]}
    try:
        columns[column] = pa.array(
            [chance.choice(values) for _ in DATA], type=chance.choice([*kinds, None])
        )
        pq.write_table(pa.table(columns), path)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        path.write_bytes(b"PAR1")


@pytest.fixture(scope="module")
def stored_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run."""
    folder = tmp_path_factory.mktemp("stored")
    write_all(folder)
    assert judge("run", folder / "run.yaml", "--out", folder / "run", "--quiet") in (0, 1)
    return folder / "run"


def write_all(folder: Path) -> None:
    write_jsonl(folder / "rows.jsonl", DATA)
    (folder / "mine.jinja").write_text(f"---\n{yaml.safe_dump(HEADER)}---\n{{{{ output }}}}\n")
    (folder / "replies.yaml").write_text(yaml.safe_dump(REPLIES))
    (folder / "run.yaml").write_text(yaml.safe_dump(PLAN))
    (folder / "some.judge.yaml").write_text(yaml.safe_dump(SUITE, sort_keys=False))


def judge(*words: object) -> int:
    """Run a command and return its exit code. An unexpected error is raised."""
    sys.argv = ["judge", *map(str, words)]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def headers(folder: Path, chance: random.Random) -> list[object]:
    (folder / "mine.jinja").write_bytes(b"---\n" + as_yaml(HEADER, chance) + b"---\n{{ output }}\n")
    return ["run", folder / "run.yaml"]


def plans(folder: Path, chance: random.Random) -> list[object]:
    (folder / "run.yaml").write_bytes(as_yaml(PLAN, chance))
    return [chance.choice(["run", "run", "plan"]), folder / "run.yaml"]


def suites(folder: Path, chance: random.Random) -> list[object]:
    (folder / "some.judge.yaml").write_bytes(as_yaml(SUITE, chance))
    return ["test", folder / "some.judge.yaml"]


def scripts(folder: Path, chance: random.Random) -> list[object]:
    (folder / "replies.yaml").write_bytes(as_yaml(REPLIES, chance))
    return [
        "run",
        folder / "run.yaml",
        "--weighting",
        chance.choice(["single", "logprobs", "samples"]),
    ]


def rows(folder: Path, chance: random.Random) -> list[object]:
    kind = chance.choice(["csv", "tsv", "json", "jsonl", "parquet"])
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        write_parquet(path, chance)
    elif kind == "json":
        path.write_bytes(as_json(DATA, chance))
    elif kind == "jsonl":
        lines = [json.dumps(row).encode() for row in DATA]
        lines[chance.randrange(len(lines))] = as_json(chance.choice(DATA), chance)
        path.write_bytes(b"\n".join(lines))
    else:
        cells = [DATA[0].keys(), *(map(str, row.values()) for row in DATA)]
        text = "\n".join(("," if kind == "csv" else "\t").join(row) for row in cells)
        path.write_bytes(torn(text, chance))
    script = f"scripted/{folder / 'replies.yaml'}"
    return ["run", path, "--criteria", folder / "mine.jinja", "--model", script, "--no-cache"]


def runs(folder: Path, chance: random.Random) -> list[object]:
    files = sorted(
        path for path in (folder / "run").rglob("*") if path.is_file() and path.suffix != ".html"
    )
    path = chance.choice(files)
    data = path.read_bytes()
    try:
        path.write_bytes(as_json(json.loads(data), chance))
    except (ValueError, IndexError):
        start = chance.randrange(len(data) + 1)
        path.write_bytes(
            data[:start] + bytes(chance.randrange(256) for _ in range(4)) + data[start + 4 :]
        )
    run = folder / "run"
    return chance.choice(
        [
            ["report", run], ["report", run, "--format", "json"], ["report", run, "--export", f"otel={folder / 'o'}"],
            ["compare", run, run], ["validate", run], ["plan", run],
        ]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(COUNT))
@pytest.mark.parametrize("damage", [headers, plans, suites, scripts, rows, runs])
def test_damaged_files_are_refused_or_read(
    tmp_path: Path,
    stored_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[..., list[object]],
    seed: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write_all(tmp_path)
    shutil.copytree(stored_run, tmp_path / "run")
    words = damage(tmp_path, random.Random(f"{damage.__name__}{seed}"))
    more = ["--out", tmp_path / "out", "--quiet"] if words[0] == "run" else []
    assert judge(*words, *more) in (0, 1, 2)


@pytest.mark.parametrize(
    ("name", "line", "facts"),
    [
        (
            "run.yaml",
            "deadline: " + "9" * 90,
            ("run.yaml:1: deadline:", "1,000,000,000,000,000"),
        ),
        (
            "run.yaml",
            "deadline: " + "9" * 400,
            ("run.yaml:1: not YAML", "100 digits"),
        ),
        ("run.yaml", "deadline: .inf", ("run.yaml:1: deadline:", "at most")),
        (
            "run.yaml",
            f"budget: {'9' * 400}usd",
            ("run.yaml:1: budget:", "more than 0", "at most"),
        ),
        (
            "run.yaml",
            "max_concurrency: 100000",
            ("run.yaml:1: max_concurrency:", "10000"),
        ),
        ("replies.yaml", "- {reply: {good: 1e999}}", ("replies.yaml:1: not a list",)),
        (
            "replies.yaml",
            "- {reply: {good: .inf}}",
            ("replies.yaml:1: not a list", "{when, reply}"),
        ),
        ("replies.yaml", f"- {{reply: {{good: {'9' * 400}}}}}", ("replies.yaml:1: not a list",)),
        (
            "mine.jinja",
            "scale: {labels: [a, b], values: [0, 1.0e+308]}",
            ("mine.jinja:2: scale:", "numbers"),
        ),
        (
            "mine.jinja",
            "scale: [1, 0x" + "f" * 20_000 + "]",
            ("mine.jinja:2:", "not YAML"),
        ),
    ],
)
def test_numbers_out_of_range_are_errors_with_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, line: str, facts: tuple[str, ...]
) -> None:
    write_all(tmp_path)
    head = "---\n" if name == "mine.jinja" else ""
    rest = ""
    if name == "mine.jinja":
        rest = "---\n{{ output }}"
    elif name == "run.yaml":
        key = line.partition(":")[0]
        lines = (tmp_path / name).read_text().splitlines()
        rest = "\n".join(text for text in lines if not text.startswith(f"{key}:"))
    (tmp_path / name).write_text(f"{head}{line}\n{rest}\n")
    assert judge("run", tmp_path / "run.yaml", "--out", tmp_path / "out", "--quiet") == 2
    assert has_line(capsys.readouterr().err, *facts)


@pytest.mark.parametrize(
    "column",
    [pa.array([2**62] * 6, pa.duration("s")), pa.array([2**30] * 6, pa.date32())],
    ids=["duration", "date"],
)
def test_dates_and_durations_out_of_pythons_range_are_errors_with_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], column: pa.Array
) -> None:
    columns: dict[str, Any] = {name: [row[name] for row in DATA] for name in DATA[0]}
    columns["more"] = column
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path)
    options = ["--criteria", "none", "--metrics", "stats", "--out", tmp_path / "out"]
    assert judge("run", path, *options) == 2
    assert has_line(capsys.readouterr().err, "rows.parquet", "not a readable Parquet")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data", "x"), ("requests", 1.5), ("usage", {"prompt_tokens": "nine"}), ("judges", {"a": {"unmet": 3}}),
        ("budget", {"unit": "usd"}), ("served_by", [True]), ("status", []),
        ("criteria", {"mine": {"title": 1.5}}), ("seconds", 10**400),
    ],
)  # fmt: skip
def test_a_damaged_field_of_run_json_is_an_error_with_its_name(
    tmp_path: Path, stored_run: Path, capsys: pytest.CaptureFixture[str], name: str, value: Any
) -> None:
    shutil.copytree(stored_run, tmp_path / "run")
    path = tmp_path / "run/run.json"
    content = json.loads(path.read_bytes())
    path.write_text(json.dumps({**content, "info": {**content["info"], name: value}}))
    assert judge("compare", tmp_path / "run", stored_run) == 2
    message = capsys.readouterr().err
    assert f"cannot read {path}: " in message
    assert (name if name != "seconds" else "401 digits") in message


@pytest.mark.parametrize(
    ("file", "column", "cell"),
    [
        ("scores", "value", math.nan),
        ("scores", "value", math.inf),
        ("scores", "value", None),
        ("samples", "output", None),
    ],
)
def test_a_missing_value_in_a_table_is_an_error_with_file_and_column(
    tmp_path: Path,
    stored_run: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    column: str,
    cell: Any,
) -> None:
    shutil.copytree(stored_run, tmp_path / "run")
    path = tmp_path / f"run/{file}.parquet"
    table = pq.read_table(path)
    field = table.schema.field(column)
    cells = pa.array([cell, *table[column].to_pylist()[1:]], type=field.type)
    index = table.column_names.index(column)
    pq.write_table(table.set_column(index, field, cells), path)
    assert judge("report", tmp_path / "run", "--export", f"otel={tmp_path / 'spans'}") == 2
    assert f"{path}: {column} lacks a value" in capsys.readouterr().err
