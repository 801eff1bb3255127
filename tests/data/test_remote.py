"""Data behind addresses, with fsspec's storage in memory and an HTTP server on this machine."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import fsspec
import pytest

import judge
from judge.config import load_config
from judge.core.errors import DataError, MissingExtra
from judge.data import remote, samples

ROW = '{"item": "a", "output": "A cat sat."}\n'


@pytest.fixture(autouse=True)
def storage() -> Iterator[Any]:
    """A storage in memory; nothing is remembered from other tests."""
    remote.fetch.cache_clear()
    memory = fsspec.filesystem("memory")
    memory.pipe("/shop/first.jsonl", ROW.encode())
    memory.pipe("/shop/second.jsonl", ROW.replace('"a"', '"b"').encode())
    yield memory
    memory.rm("/shop", recursive=True)


def test_a_file_and_a_pattern_are_read() -> None:
    assert [s.item for s in judge.load_samples("memory://shop/first.jsonl")] == ["a"]
    found = judge.load_samples("memory://shop/*.jsonl")
    assert [(s.item, s.where) for s in found] == [
        ("a", "memory://shop/first.jsonl:1"),
        ("b", "memory://shop/second.jsonl:1"),
    ]


def test_a_path_keeps_the_address() -> None:
    """The command line makes a Path, which has one slash. Browsers copy schemes in any case."""
    assert remote.address("HTTPS://example.org/a.csv") == "https://example.org/a.csv"
    path = Path("memory://shop/first.jsonl")
    assert [s.item for s in judge.load_samples(path)] == ["a"]
    assert samples.dataset_name(path) == "first"
    assert samples.dataset_name("memory://shop/*.jsonl") == "shop"


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "same.jsonl").write_text(ROW)
    assert samples.content_hash("memory://shop/first.jsonl") == samples.content_hash(tmp_path / "same.jsonl")


def test_an_address_in_a_file_is_not_beside_it(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("data: memory://shop/first.jsonl\ncriteria: none\n")
    assert remote.address(load_config(tmp_path / "run.yaml").data) == "memory://shop/first.jsonl"


def test_a_server_is_asked_once(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text(ROW)
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            asked.append(self.command)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(tmp_path))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/data.jsonl"
        assert [s.item for s in judge.load_samples(url)] == ["a"]
        assert samples.content_hash(url) == samples.content_hash("memory://shop/first.jsonl")
        server.shutdown()
    assert asked.count("GET") == 1


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("memory://shop/none.jsonl", "memory://shop/none.jsonl: cannot be read: no such file"),
        ("memory://shop/*.csv", "no file has such a name"),
        ("teapot://x/y.csv", "Protocol not known: teapot"),
        ("https://anna:hush@example.org/x.csv", "https://…: leave user and password out"),
        ("https://example.org/x.csv?signature=hush", "https://example.org/x.csv…: download this first"),
        ("https://example.org/x.csv#hush", "https://example.org/x.csv…: download this first"),
        ("gs://shop/x.csv?X-Goog-Signature=hush", "gs://shop/x.csv…: download this first"),
        ("abfs://box@shop/x.csv?sv=1&sig=hush", "abfs://box@shop/x.csv…: download this first"),
        ("memory://shop/year=202?/month=01.csv", "no file has such a name"),
        ("zip://x.csv::https://example.org/x.zip?signature=hush", "one address in another is not read"),
        ("reference://x.csv::file:///refs.json", "one address in another is not read"),
        ("http://[x/x.csv", "Invalid IPv6"),
    ],
)
def test_what_cannot_be_read(url: str, message: str) -> None:
    with pytest.raises(DataError) as raised:
        judge.load_samples(url)
    assert message in str(raised.value)
    assert "hush" not in str(raised.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    imported: Callable[..., Any] = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in ("fsspec", "s3fs"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match="pip install fsspec s3fs"):
        judge.load_samples("s3://shop/first.jsonl")


@pytest.mark.parametrize("path", ["data.jsonl", "C:/data.jsonl", "folder/a:b.jsonl", "/abs/data.jsonl"])
def test_local_paths_are_no_addresses(path: str) -> None:
    assert remote.address(path) is None
