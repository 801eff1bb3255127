"""Embeddings on disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from judge.metrics.bertscore.embedder import Encoded, Store, key
from judge.metrics.bertscore.models import TokenizerInfo


def encoded(count: int = 4) -> Encoded:
    vectors = np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)
    return Encoded(np.arange(count, dtype=np.int32), vectors, count + 2, windows=2)


def test_what_is_put_is_there_for_the_next_run(tmp_path: Path) -> None:
    keys = [key("scheme", f"text {n}") for n in range(700)]
    store = Store(tmp_path)
    store.put({name: encoded(n % 5 + 1) for n, name in enumerate(keys)})
    store.save_fact("model", "512 tokens")
    store.close()
    again = Store(tmp_path)
    found = again.get([*keys, key("scheme", "another text")])
    assert sorted(found) == sorted(keys)
    wanted = encoded(5)
    row = found[keys[4]]
    assert row.ids.tolist() == wanted.ids.tolist()
    assert row.vectors.tobytes() == wanted.vectors.tobytes()
    assert (row.length, row.windows) == (7, 2)
    assert again.ids(keys)[keys[4]].tolist() == wanted.ids.tolist()
    assert again.fact("model") == "512 tokens"
    assert again.fact("other") == ""
    again.close()


def test_equal_texts_of_other_models_are_other_rows() -> None:
    assert len({key("a", "text"), key("b", "text"), key("a", "texts"), key("a\0", "text")}) == 4


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE texts SET vectors = zeroblob(length(vectors))",
        "UPDATE texts SET vectors = substr(vectors, 1, 8)",
        "UPDATE texts SET vectors = NULL",
        "UPDATE texts SET ids = 'text'",
        "UPDATE texts SET length = NULL",
    ],
)
def test_a_damaged_row_counts_as_absent_and_is_replaced(tmp_path: Path, damage: str) -> None:
    name = key("scheme", "text")
    store = Store(tmp_path)
    store.put({name: encoded()})
    with sqlite3.connect(tmp_path / "embeddings.sqlite") as database:
        database.execute(damage)
    database.close()
    assert store.get([name]) == {}
    store.put({name: encoded()})
    assert store.get([name])[name].ids.tolist() == [0, 1, 2, 3]
    store.close()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"limit": 512}', '{"other": 1}'])
def test_a_damaged_fact_counts_as_absent(text: str) -> None:
    assert TokenizerInfo.from_json(text) is None


def test_two_processes_may_write_the_same_texts(tmp_path: Path) -> None:
    one, other = Store(tmp_path), Store(tmp_path)
    for n in range(5):
        for store in (one, other):
            store.put({key("scheme", f"text {m}"): encoded() for m in range(n, n + 3)})
    assert len(one.get([key("scheme", f"text {n}") for n in range(7)])) == 7
    assert one.trouble == other.trouble == ""
    one.close()
    other.close()


def test_only_the_owner_can_read_the_folder(tmp_path: Path) -> None:
    Store(tmp_path / "cache").close()
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
