"""Damaged and hostile input of every kind is read or raises JudgeError, and never another error."""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge import criteria
from judge.cache import base
from judge.cache.disk import DiskCache
from judge.config import RankConfig, load_config
from judge.core.errors import JudgeError
from judge.core.records import Choice, Column, Provenance, Sample, Scale, Score
from judge.core.signature import Signature
from judge.criteria.render import Renderer
from judge.data import samples
from judge.providers.recording import RecordingFile
from judge.results.loading import load as load_run
from judge.scoring.json_scores import spans
from judge.scoring.parse import find, read
from judge.suite.load import load as load_suite
from judge.table import SAMPLES, SCORES, Table, store
from tests.factories import text_response

FUZZ_SETTINGS = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
BYTES = st.binary(max_size=400)
TEXT = st.text(max_size=300)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda values: (
        st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=10), values, max_size=4)
    ),
    max_leaves=12,
)
YAML = st.text(st.sampled_from("ab1:-[]{}&*!|>%@`#,?'\" \n\t.~<"), max_size=120)
WORDS = st.sampled_from(
    ["{% ", " %}", "{{ ", " }}", "output", "source", "this.scale", "|", "fenced('x')", "for x in ", "endfor", "if ",
     "extends 'layouts/pointwise.jinja'", "block criterion", "endblock", "(", ")", "[", "]", ".", "__class__", "'",
     "~", "1", "*", "---", "\n", "scale: [1, 5]", "macro m()", "endmacro", "include 'a.jinja'", "set a = ", "|join",
     "|attr('x')"]
)  # fmt: skip


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "tsv", "parquet"])
@FUZZ_SETTINGS
@given(data=BYTES)
def test_data_of_any_bytes_are_read_or_refused(tmp_path: Path, kind: str, data: bytes) -> None:
    path = tmp_path / f"rows.{kind}"
    path.write_bytes(data)
    with suppress(JudgeError):
        samples.load(path)


@pytest.mark.parametrize("load", [load_config, RankConfig.load, load_suite])
@FUZZ_SETTINGS
@given(data=BYTES | YAML.map(str.encode) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_plans_and_suites_of_any_bytes_are_read_or_refused(
    tmp_path: Path, load: Any, data: bytes
) -> None:
    path = tmp_path / "some.judge.yaml"
    path.write_bytes(data)
    with suppress(JudgeError):
        load(path)


FILES = st.builds("---\n{}\n---\n{}".format, YAML, st.lists(WORDS, max_size=20).map("".join))


@FUZZ_SETTINGS
@given(data=BYTES | FILES.map(str.encode))
def test_criteria_of_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "some.jinja"
    path.write_bytes(data)
    with suppress(JudgeError):
        criteria.load(str(path))


@FUZZ_SETTINGS
@given(
    st.lists(WORDS, max_size=25),
    st.sampled_from(["title", "scale", "reply", "steps", "weight"]),
    VALUES,
)
def test_templates_and_headers_are_rendered_or_refused(
    tmp_path: Path, parts: list[str], key: str, value: Any
) -> None:
    path = tmp_path / "some.jinja"
    head = {"title": "T", "scale": [1, 5]} | ({key: value} if len(parts) % 2 else {})
    path.write_text(f"---\n{json.dumps(head)}\n---\n{''.join(parts)}", "utf-8", errors="replace")
    with suppress(JudgeError):
        criterion = criteria.load(str(path))
        sample = Sample("a", "s", "An output.", "A source.")
        Renderer(criterion, criteria.template_bodies(criterion)).render(sample)


@settings(max_examples=150)
@given(
    kind=st.sampled_from(["score", "score_then_reason", "reason_then_score"]),
    text=st.text(max_size=60)
    | st.text(st.sampled_from("Score: 45/{}\"'[]<>think*\n.,点점-—"), max_size=60),
)
def test_replies_of_any_text_are_read_or_refused(kind: Any, text: str) -> None:
    scale = Scale.integers(1, 5)
    for read_reply in (
        lambda: find(text, kind, scale, "Fluency"),
        lambda: find(f"It gets a 4. {text}", kind, scale, "Fluency", f"Score: 5 {text[:9]}"),
        lambda: find(f"{text} a score of 4", kind, scale, "", text),
        lambda: read(Choice(text), kind, scale),
        lambda: spans(text, ("a", "b"), "A text."),
    ):
        with suppress(JudgeError):
            read_reply()


@FUZZ_SETTINGS
@given(
    data=BYTES
    | st.lists(VALUES, max_size=3).map(lambda values: "\n".join(map(json.dumps, values)).encode())
)
def test_recordings_of_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rec.jsonl"
    path.write_bytes(data)
    with suppress(JudgeError):
        RecordingFile(path).close()


@FUZZ_SETTINGS
@given(name=st.sampled_from(["run.json", SCORES, SAMPLES]), data=BYTES, at=st.integers(0, 5_000))
def test_runs_with_a_damaged_file_are_read_or_refused(
    tmp_path: Path, name: str, data: bytes, at: int
) -> None:
    folder = tmp_path / "run"
    column = Column("x", "criterion", Signature("x@1"))
    score = Score("a", "s", "x", 4.0, Provenance("single"))
    Table((Sample("a", "s", "An output."),), (column,), (score,)).save(folder)
    path = folder / name
    if path.exists():
        raw = path.read_bytes()
        start = at % max(1, len(raw))
        path.write_bytes(raw[:start] + data + raw[start + len(data) :])
    else:
        store(folder, {name: data})
    with suppress(JudgeError):
        load_run(folder)


@FUZZ_SETTINGS
@given(text=TEXT | VALUES.map(json.dumps))
def test_any_cached_text_is_at_most_one_reply(tmp_path: Path, text: str) -> None:
    with suppress(ValueError):  # for every caller, the reply is then absent
        base.decode_reply(text)
    cache = DiskCache(tmp_path)
    with suppress(UnicodeEncodeError):
        cache.put_rows({"k": text, base.PROMPT + "d": text})
        cache.flush()
        assert len(cache.get_many(["k"])) <= 1
        assert len([*cache.iter_all()]) <= 1
    cache.clear()
    cache.close()


@FUZZ_SETTINGS
@given(
    mode=st.integers(0, 9),
    value=st.none() | st.integers(-9, 9) | st.floats() | TEXT.filter(str.isascii) | BYTES,
)
def test_a_cache_row_of_random_mode_and_value_is_ignored(
    tmp_path: Path, mode: int, value: Any
) -> None:
    DiskCache(tmp_path).close()
    with sqlite3.connect(tmp_path / "responses" / "cache.db") as database:
        database.execute("DELETE FROM Cache")
        database.execute(
            "INSERT INTO Cache (key, raw, mode, value) VALUES ('k', 1, ?, ?)", (mode, value)
        )
    database.close()
    cache = DiskCache(tmp_path)
    assert cache.get_many(["k"]) == {}
    assert [*cache.iter_all()] == []
    cache.close()


@FUZZ_SETTINGS
@given(data=st.binary(max_size=6_000), at=st.integers(0, 8_000))
def test_a_damaged_cache_returns_the_right_reply_or_nothing(
    tmp_path: Path, data: bytes, at: int
) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    with DiskCache(folder) as cache:
        cache.put("k", text_response("4"))
    file = folder / "responses" / "cache.db"
    raw = file.read_bytes()
    file.write_bytes(raw[:at] + data + raw[at:])
    with suppress(JudgeError), DiskCache(folder) as cache:
        assert cache.get_many(["k"]) in ({}, {"k": text_response("4")})
