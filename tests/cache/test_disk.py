"""The response cache returns the stored replies and nothing else."""

from __future__ import annotations

import pickle
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import diskcache
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.cache import DiskCache, NoCache, base, default_folder, disk
from judge.core.errors import StorageError
from judge.core.records import Choice, Request, Response, Token, Usage
from tests.factories import has_line, text_response


def response(text: str = "4") -> Response:
    token = Token(text, -0.1, ((text, -0.1), ("5", -2.4)))
    return Response(
        (Choice(text, "stop", (token,)), Choice("", "length")),
        Usage(10, 1, 5, 0),
        "m",
        ("temperature",),
    )


def test_stored_replies_are_read_by_a_new_handle(tmp_path: Path) -> None:
    with DiskCache(tmp_path) as first:
        first.put("a", response())
        assert first.get_many(["a", "b"]) == {"a": response()}  # not yet flushed
    with DiskCache(tmp_path) as second:
        assert second.get_many(["a", "b"]) == {"a": response()}
        assert second.stats()["responses"] == 1
        assert second.clear() == 1
        assert second.get_many(["a"]) == {}


@given(
    st.text(), st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["stop", "length"])
)
def test_a_response_is_unchanged_by_json(text: str, logprob: float, finish: str) -> None:
    token = Token(text, logprob, ((text, logprob),))
    original = Response((Choice(text, finish, (token,)),), served_by=text)
    assert Response.from_json(original.to_json()) == original


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[2,[],[],[],[]]", "null", '[1,[["4"]],[1,2],"",[]]']
)
def test_invalid_response_json_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Response.from_json(text)


def test_nothing_is_evicted_from_a_cache_with_a_size_limit(tmp_path: Path) -> None:
    limited = diskcache.Cache(
        str(tmp_path / "responses"), size_limit=1000, eviction_policy="least-recently-used"
    )
    limited.close()
    with DiskCache(tmp_path) as cache:
        for i in range(1200):
            cache.put(str(i), response("x" * 1000))
        with DiskCache(tmp_path) as second:
            assert second.stats()["responses"] == 1000, "1,000 replies are written without a flush"
        cache.flush()
        assert cache.stats()["responses"] == 1200


class Bomb:
    """An object that creates the file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("where", ["value", "key"])
def test_a_pickled_row_is_ignored(tmp_path: Path, where: str) -> None:
    """The row counts as absent, and the rest of the cache is still read."""
    with DiskCache(tmp_path) as cache:
        for key in ("a", "b"):
            cache.put(key, response())
    proof = tmp_path / "pwned"
    row = sqlite3.connect(tmp_path / "responses" / "cache.db")
    bomb = pickle.dumps(Bomb(proof))
    with row:
        if where == "value":
            row.execute("UPDATE Cache SET mode = 4, value = ? WHERE key = 'a'", (bomb,))
        else:
            row.execute("UPDATE Cache SET raw = 0, key = ? WHERE key = 'a'", (bomb,))
    row.close()
    with DiskCache(tmp_path) as cache:
        assert cache.get_many(["a", "b"]) == {"b": response()}
        assert [reply for reply, _ in cache.iter_all()] == [response()]
        cache.put("a", response())
        cache.flush()
        assert cache.get_many(["a"]) == {"a": response()}
    assert not proof.exists()


def test_a_file_named_in_a_row_is_neither_read_nor_removed(tmp_path: Path) -> None:
    with DiskCache(tmp_path) as cache:
        cache.put("a", response())
        cache.put("b", response())
    victim = tmp_path / "victim"
    victim.write_text(response("false").to_json())
    row = sqlite3.connect(tmp_path / "responses" / "cache.db")
    with row:
        row.execute("UPDATE Cache SET mode = 3, filename = '../victim', value = NULL")
    row.close()
    with DiskCache(tmp_path) as cache:
        assert cache.get_many(["a", "b"]) == {}
        cache.put("a", response())
        cache.flush()
        assert cache.get_many(["a"]) == {"a": response()}
        assert cache.clear() == 2
    assert victim.exists()


def test_a_file_instead_of_the_cache_folder_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("")
    with pytest.raises(StorageError, match="--cache DIR"):
        DiskCache(tmp_path / "c")


def request_of(text: str, draw: int = 0) -> Request:
    return Request(
        "m",
        ({"role": "user", "content": text},),
        {"temperature": 1.0, "max_tokens": 8},
        draw,
        "http://a/v1",
    )


def fill(folder: Path, count: int, size: int = 3000) -> dict[str, Response]:
    """Fill a cache with replies of a number of characters and return them. The first reply is longer than a page."""
    cache = DiskCache(folder)
    replies = {}
    for n in range(count):
        request = request_of(f"text {n}" + "y" * size)
        replies[request.key()] = response(f"{n}" + "x" * (size if n else 9000))
        cache.put(request.key(), replies[request.key()], request)
    cache.close()
    return replies


def overwrite(file: Path, start: int, length: int) -> None:
    """Overwrite part of a file with bytes that SQLite cannot read."""
    with file.open("r+b") as opened:
        opened.seek(start)
        opened.write(b"\xa5" * length)


@pytest.mark.parametrize(
    ("start", "length"),
    [(0, 100), (4096 * 40, 4096), (4096 * 40, 4096 * 40)],
    ids=["header", "one page", "40 pages"],
)
def test_a_damaged_cache_file_is_renamed_and_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], start: int, length: int
) -> None:
    written = fill(tmp_path, 200)
    file = tmp_path / "responses" / "cache.db"
    overwrite(file, start, length)
    cache = DiskCache(tmp_path)
    replies = cache.get_many(list(written))
    assert replies.items() <= written.items()  # each reply is complete and has its own key
    if not cache.notes:  # none of these pages was damaged, so read all
        list(cache.iter_all())
    (note,) = cache.notes
    assert has_line(note, "new one", "begun")
    assert capsys.readouterr().err == f"judge: {note}\n"
    (renamed,) = (tmp_path / "responses").glob("cache.db.damaged-*[0-9]")
    assert str(renamed) in note
    assert renamed.read_bytes()[start : start + length] == b"\xa5" * length
    cache.put("new", response())
    cache.close()
    with DiskCache(tmp_path) as reopened:
        assert reopened.notes == []
        assert reopened.get_many([*written, "new"]) == {"new": response()}


def test_a_cache_file_damaged_while_in_use_is_renamed_and_replaced(tmp_path: Path) -> None:
    written = fill(tmp_path, 50)
    first, second = DiskCache(tmp_path), DiskCache(tmp_path)
    first.put("of first", response())
    second.put("of second", response())
    file = tmp_path / "responses" / "cache.db"
    file.write_bytes(b"\xa5" * 4096 + file.read_bytes()[4096:30_000])
    first.put("after damage", response())
    replies = first.get_many([*written, "of first"])
    first.flush()
    second.flush()
    assert replies.items() <= {**written, "of first": response()}.items()
    assert (len(first.notes), len(second.notes)) == (1, 0)
    keys = {"of first", "of second", "after damage"}
    for cache in (first, second):
        assert set(cache.get_many(keys)) == keys
        cache.close()


def test_a_cache_folder_removed_while_in_use_is_created_again(tmp_path: Path) -> None:
    with DiskCache(tmp_path) as cache:
        shutil.rmtree(tmp_path / "responses")
        cache.put("a", response())
    with DiskCache(tmp_path) as reopened:
        assert reopened.get_many(["a"]) == {"a": response()}


SHARING = """
import sys, time
from pathlib import Path
from judge.cache import DiskCache
from judge.core.records import Choice, Request, Response
folder, mine, start = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
time.sleep(max(0.0, start - time.time()))
cache = DiskCache(folder)
for n in range(100):
    key = f"both {n}" if n % 2 else f"{mine} {n}"
    replies = cache.get_many([key, f"both {n - 2}"])
    assert all(len(reply.choices) == 1 for reply in replies.values())
    cache.put(key, Response((Choice(key),)), Request("m", ({"role": "user", "content": key},)))
    cache.flush()
cache.close()
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_two_processes_share_a_cache(tmp_path: Path, damaged: bool) -> None:
    written = fill(tmp_path, 60)
    if damaged:
        overwrite(tmp_path / "responses" / "cache.db", 4096 * 40, 4096)
    start = str(time.time() + 0.5)
    processes = [
        subprocess.Popen([sys.executable, "-c", SHARING, tmp_path, name, start])
        for name in ("a", "b")
    ]
    assert [process.wait(120) for process in processes] == [0, 0]
    keys = [f"both {n}" for n in range(1, 100, 2)] + [
        f"{name} {n}" for name in ("a", "b") for n in range(0, 100, 2)
    ]
    cache = DiskCache(tmp_path)
    replies = {key: reply.choices[0].text for key, reply in cache.get_many(keys).items()}
    assert replies.items() <= {key: key for key in keys}.items()
    assert damaged or (len(replies), len(cache.get_many(list(written)))) == (len(keys), 60)
    cache.close()


def test_a_full_disk_loses_no_replies(tmp_path: Path) -> None:
    written = fill(tmp_path, 20)
    cache = DiskCache(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        late = {f"late {n}": response("z" * 5000) for n in range(100)}
        for key, reply in late.items():
            cache.put(key, reply)
        for _ in range(2):
            with pytest.raises(StorageError, match="make room on the disk"):
                cache.flush()
        assert cache.get_many([*written, *late]) == written | late
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    cache.close()
    with DiskCache(tmp_path) as reopened:
        assert reopened.get_many([*written, *late]) == written | late
        assert reopened.notes == []


def test_replies_are_written_after_another_process_unlocks_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_TIMEOUT", 0.01)
    cache = DiskCache(tmp_path)
    connection = sqlite3.connect(tmp_path / "responses" / "cache.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    cache.put("a", response())
    with pytest.raises(StorageError, match="locked; another program"):
        cache.flush()
    connection.execute("ROLLBACK")
    connection.close()
    cache.close()
    with DiskCache(tmp_path) as reopened:
        assert reopened.get_many(["a"]) == {"a": response()}


def test_requests_are_stored_and_equal_prompts_only_once(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    prompt = "long, 長い \ud800 " * 2000
    requests = [request_of(prompt, draw) for draw in range(20)]
    for request in requests:
        cache.put(request.key(), response(str(request.draw)), request)
    cache.put("f" * 64, response("of an older version"))
    cache.flush()
    assert cache.stats()["bytes"] < 5 * len(prompt)
    entries = list(cache.iter_all())
    stored = [request for _, request in entries if request is not None]
    keys = [request.key() for request in requests]
    assert stored == requests
    assert [request.key() for request in stored] == keys
    without_request = [reply.choices[0].text for reply, request in entries if request is None]
    assert without_request == ["of an older version"]
    assert len(cache.get_many(keys)) == 20
    assert cache.clear() == 21
    assert list(cache.iter_all()) == []
    cache.close()


def test_no_cache_stores_no_replies() -> None:
    cache = NoCache()
    cache.put("a", response())
    cache.flush()
    assert cache.get_many(["a"]) == {}
    cache.close()


def test_the_default_cache_folder_depends_on_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "x")
    assert default_folder() == Path("x/judge")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "judge"
    monkeypatch.setenv("JUDGE_CACHE", "y")
    assert default_folder() == Path("y")


def test_a_row_is_intact_if_it_is_a_reply_or_the_prompt_of_its_key() -> None:
    request = Request("m", ({"role": "user", "content": "Hello"},))
    rows = base.encode(request.key(), text_response("4"), request)
    assert len(rows) == 2
    assert all(base.is_intact(key, text) for key, text in rows.items())
    ((prompt_key, prompt),) = [
        (key, text) for key, text in rows.items() if key.startswith(base.PROMPT)
    ]
    assert not base.is_intact(prompt_key, prompt[:-1])
    for damaged_reply in ("", "[1]", "{", '[1,[["4","stop",null]]'):
        assert not base.is_intact(request.key(), damaged_reply)


def test_folders_of_replies_are_readable_only_by_their_owner(tmp_path: Path) -> None:
    for _ in range(2):
        cache = DiskCache(tmp_path / "cache")
        cache.put("k", text_response("4"))
        cache.flush()
        cache.close()
        stores = [path.parent for path in (tmp_path / "cache").rglob(diskcache.core.DBNAME)]
        assert stores
        assert all(store.stat().st_mode & 0o777 == 0o700 for store in stores)
        for store in stores:
            store.chmod(0o755)


def test_a_folder_that_cannot_be_a_cache_is_not_called_damaged(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    for folder in (file, file / "cache", tmp_path / ("a" * 300)):
        with pytest.raises(StorageError, match="run with") as caught:
            DiskCache(folder)
        assert "Errno" not in str(caught.value)
        assert "damaged" not in str(caught.value)
