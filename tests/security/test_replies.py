"""Replies that are too long or have terminal codes do no harm, and requests reveal nothing private."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import re
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

from judge.core.errors import ProviderError, Refused, Transient
from judge.core.records import Request
from judge.providers.batches import BatchApi
from judge.providers.openai import OpenAIProvider
from judge.providers.reply_body import MAX_REPLY_BYTES

REQUEST = Request(
    "m", ({"role": "user", "content": "How good is it?"},), {"temperature": 0.0, "max_tokens": 8}
)
KEY = "sk-a-key-that-nobody-else-has-0123456789"


def provider_error(url: str, *, timeout: float = 60.0) -> ProviderError:
    """Return the error of a request to this server."""
    provider = OpenAIProvider("m", base_url=url, timeout=timeout)

    async def send_request() -> None:
        try:
            await provider.complete(REQUEST)
        finally:
            await provider.aclose()

    with pytest.raises(ProviderError) as error:
        asyncio.run(send_request())
    return error.value


@pytest.mark.parametrize("status", [200, 400, 500])
def test_a_compressed_reply_beyond_the_limit_is_refused(chat_server: Any, status: int) -> None:
    compressor = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    blocks = MAX_REPLY_BYTES // 1_000_000 + 2
    parts = [compressor.compress(b" " * 1_000_000) for _ in range(blocks)]
    compressed = b"".join(parts) + compressor.flush()
    assert len(compressed) < 1_000_000
    chat_server.answer = lambda _: (status, {"content-encoding": "gzip"}, compressed)
    error = provider_error(chat_server.url)
    assert isinstance(error, Refused)
    assert re.search("more than (2|64) MB", str(error))


def test_a_compressed_reply_is_read(chat_server: Any, make_completion: Callable[..., Any]) -> None:
    compressed = gzip.compress(json.dumps(make_completion("4")).encode())
    chat_server.answer = lambda _: (200, {"content-encoding": "gzip"}, compressed)
    provider = OpenAIProvider("m", base_url=chat_server.url)

    async def reply_text() -> str:
        try:
            return (await provider.complete(REQUEST)).choices[0].text
        finally:
            await provider.aclose()

    assert asyncio.run(reply_text()) == "4"


@pytest.fixture
def endless() -> Iterator[str]:
    """Return the address of a server that never ends its reply."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(65536)
                    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
                    connection.sendall(head)
                    part = b"100000\r\n" + b"[" * 0x100000 + b"\r\n"
                    while True:
                        connection.sendall(part)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(10)


def test_a_reply_without_an_end_is_refused(endless: str) -> None:
    error = provider_error(endless, timeout=10_000)
    assert isinstance(error, Refused)
    assert error.stops == "if_first"


def test_a_batch_file_without_an_end_is_refused(
    endless: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.providers.batches.MAX_REPLY_BYTES", 1_000_000)
    provider = OpenAIProvider("m", base_url=endless)
    file = io.BytesIO()

    async def fetch() -> None:
        try:
            await provider.batches.fetch("file-1", file, requests=2)
        finally:
            await provider.aclose()

    with pytest.raises(Refused, match="more than 9 MB"):
        asyncio.run(fetch())
    assert len(file.getvalue()) <= 9_000_000


def test_too_long_lines_of_a_batch_file_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.providers.batches.MAX_REPLY_BYTES", 100)
    provider = OpenAIProvider("m", base_url="http://127.0.0.1:1/v1")
    lines = [b'{"a": 1}\n', b'{"b": "' + b"x" * 500 + b'"}\n', b'{"c": 3}\n', b'{"d": 4}']
    replies = provider.batches.lines(io.BytesIO(b"".join(lines)))
    assert [*replies] == [{"a": 1}, {"c": 3}, {"d": 4}]


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (401, {}, {"error": {"message": "no\x1b]0;owned\x07\x9b31m key\u202e"}}),
        pytest.param(
            *(307, {"location": "http://\x1b[2Jelsewhere"}, {}),
            marks=pytest.mark.skipif(
                openai.VERSION < "3", reason="httpx refuses such a reply itself"
            ),
        ),
        (200, {"content-type": "text/\x1b[31mhtml"}, b"<html>"),
        (200, {}, {"error": {"message": "no\x1b[31m"}}),
        (400, {}, b"\x1b[2J\x1b[1;1Hall is well"),
    ],
)
def test_server_messages_contain_no_terminal_codes(
    chat_server: Any, status: int, headers: dict[str, str], body: Any
) -> None:
    chat_server.answer = lambda _: (status, headers, body)
    error = provider_error(chat_server.url)
    assert str(error).isprintable(), str(error)
    assert "\\x1b" in str(error)


def test_a_long_error_body_is_not_parsed(chat_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    chat_server.answer = lambda _: (400, {}, b" ".join([b"x"] * 1_000_000) + KEY.encode())
    assert len(str(provider_error(chat_server.url))) < 500


def test_requests_reveal_nothing_about_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chat request and the requests of the Batch API have no header about the machine."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    heads: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                heads.append(connection.recv(1_000_000))
                connection.sendall(
                    b"HTTP/1.1 400 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                )

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    provider = OpenAIProvider("m", base_url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1")
    batches: BatchApi = provider.batches

    async def make_all_requests() -> None:
        calls: list[Callable[[], Any]] = [
            lambda: provider.complete(REQUEST), batches.check, lambda: batches.upload("judge-1", io.BytesIO(b"{}\n")),
            lambda: batches.create("judge-1", "file-1"), lambda: batches.get("batch-1"),
            lambda: batches.find("judge-1", "file-1", 1), lambda: batches.fetch("file-1", io.BytesIO()),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises((Refused, Transient)):
                await call()
        await provider.aclose()

    asyncio.run(make_all_requests())
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(10)
    assert len(heads) >= 7
    for head in heads:
        names = {
            line.partition(b":")[0].lower()
            for line in head.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
        }
        assert b"authorization" in names
        assert not [name for name in names if name.startswith(b"x-stainless")]


def test_an_id_from_a_server_is_quoted_in_the_path(chat_server: Any) -> None:
    paths: list[str] = []
    provider = OpenAIProvider("m", base_url=chat_server.url)

    async def get(path: str) -> Any:
        paths.append(path)
        return {"id": "x"}

    provider.batches._http.get = get  # type: ignore[method-assign]
    asyncio.run(provider.batches.get("../../admin?x=#"))
    assert paths == ["/batches/..%2F..%2Fadmin%3Fx%3D%23"]


def test_concurrent_large_replies_share_a_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from judge.providers import reply_body

    bytes_in_memory: list[int] = []

    class LongReply:
        status_code = 200

        async def aiter_bytes(self) -> Any:
            for _ in range(60):
                await asyncio.sleep(0)
                yield b" " * 1_000_000

    async def read_all() -> list[Any]:
        def add_block(_: bytes) -> None:
            bytes_in_memory.append(sum(reply_body._bytes_in_flight.values()))

        replies = [
            reply_body.read_body(LongReply(), "http://x", 64_000_000, add_block) for _ in range(37)
        ]
        return await asyncio.gather(*replies, return_exceptions=True)

    outcomes = asyncio.run(read_all())
    assert max(bytes_in_memory) <= 256_000_000 + 37 * 1_000_000
    assert any(isinstance(outcome, Refused) for outcome in outcomes)
    assert reply_body._bytes_in_flight == {}
