"""The response cache: what goes in comes out, and nothing else ever does."""

from __future__ import annotations

import pickle
import sqlite3
import stat
from pathlib import Path

import diskcache
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.cache import DiskCache, NoCache, default_folder
from judge.errors import StorageError
from judge.records import Choice, Response, Token, Usage


def response(text: str = "4") -> Response:
    token = Token(text, -0.1, ((text, -0.1), ("5", -2.4)))
    return Response((Choice(text, "stop", (token,)), Choice("", "length")), Usage(10, 1, 5, 0), "m", ("temperature",))


def test_what_was_put_comes_back_from_a_fresh_process_handle(tmp_path: Path) -> None:
    first = DiskCache(tmp_path)
    first.put("a", response())
    assert first.get_many(["a", "b"]) == {"a": response()}  # before it is written, too
    first.close()
    second = DiskCache(tmp_path)
    assert second.get_many(["a", "b"]) == {"a": response()}
    assert second.stats()["responses"] == 1
    assert second.clear() == 1
    assert second.get_many(["a"]) == {}
    second.close()


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["stop", "length"]))
def test_a_response_survives_its_json(text: str, logprob: float, finish: str) -> None:
    there = Response((Choice(text, finish, (Token(text, logprob, ((text, logprob),)),)),), served_by=text)
    assert Response.from_json(there.to_json()) == there


@pytest.mark.parametrize("text", ["", "[]", "{}", "[2,[],[],[],[]]", "null", '[1,[["4"]],[1,2],"",[]]'])
def test_text_that_is_no_response_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Response.from_json(text)


def test_an_unreadable_row_counts_as_absent(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache._store.set("a", "not json")
    assert cache.get_many(["a"]) == {}
    cache.close()


def test_nothing_is_evicted_whatever_an_earlier_opener_set(tmp_path: Path) -> None:
    careless = diskcache.Cache(str(tmp_path / "responses"), size_limit=1000, eviction_policy="least-recently-used")
    careless.close()
    cache = DiskCache(tmp_path)
    for i in range(1200):
        cache.put(str(i), response("x" * 1000))
    cache.flush()
    assert cache.stats()["responses"] == 1200
    cache.close()


class Bomb:
    """Unpickling one of these would create the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("where", ["value", "key"])
def test_a_pickle_is_refused_unread(tmp_path: Path, where: str) -> None:
    cache = DiskCache(tmp_path)
    cache.put("a", response())
    cache.close()
    proof = tmp_path / "pwned"
    row = sqlite3.connect(tmp_path / "responses" / "cache.db")
    bomb = pickle.dumps(Bomb(proof))
    with row:
        if where == "value":
            row.execute("UPDATE Cache SET mode = 4, value = ?", (bomb,))
        else:
            row.execute("UPDATE Cache SET raw = 0, key = ?", (bomb,))
    row.close()
    cache = DiskCache(tmp_path)
    read = {"value": lambda: cache.get_many(["a"]), "key": lambda: list(cache._store)}[where]
    with pytest.raises(StorageError, match="will not read"):
        read()
    cache.close()
    assert not proof.exists()


def test_only_text_goes_in(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    with pytest.raises(StorageError, match="text only, not dict"):
        cache._store.set("a", {"b": 1})
    cache.close()


def test_the_folder_is_private(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "c")
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    cache.close()


def test_a_file_in_the_way_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("")
    with pytest.raises(StorageError, match="--cache DIR"):
        DiskCache(tmp_path / "c")


def test_a_damaged_database_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "responses").mkdir()
    (tmp_path / "responses" / "cache.db").write_bytes(b"this is no database, and long enough to be read as one" * 40)
    with pytest.raises(StorageError, match="damaged"):
        DiskCache(tmp_path)


def test_a_full_disk_loses_nothing_that_was_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DiskCache(tmp_path)
    cache.put("a", response())

    def full(*args: object, **kwargs: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(cache._store, "set", full)
        with pytest.raises(StorageError, match="make room"):
            cache.flush()
    cache.close()
    again = DiskCache(tmp_path)
    assert again.get_many(["a"]) == {"a": response()}
    again.close()


def test_many_puts_are_written_without_a_flush(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    for i in range(500):
        cache.put(str(i), response())
    other = DiskCache(tmp_path)
    assert other.stats()["responses"] == 500
    other.close()
    cache.close()


def test_no_cache_remembers_nothing() -> None:
    cache = NoCache()
    cache.put("a", response())
    cache.flush()
    assert cache.get_many(["a"]) == {}
    cache.close()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "x")
    assert default_folder() == Path("x/judge")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "judge"
    monkeypatch.setenv("JUDGE_CACHE", "y")
    assert default_folder() == Path("y")
