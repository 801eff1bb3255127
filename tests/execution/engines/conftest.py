"""Batch API servers on loopback in the formats of three vendors, with faults that tests can switch on."""

from __future__ import annotations

import json
import random
import re
import socket
import threading
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

LIMIT = "Enqueued token limit reached for test-model in organization org-1. Limit: {:,} enqueued tokens."


class BatchServer:
    """Answer chat requests, online and in batches, with the status and body that `answer(body)` returns.

    After `looks` polls a batch ends with the status `outcome`. Its lines are in random order; lines with another status
    than 200 are in the error file. An expired or cancelled batch has only `returned` lines. `room` limits the prompts of
    all running batches, in characters / 4. Each entry of `faults` hits one request with a matching method and path: a
    status fails the request, "lost" performs it but drops the connection. The server records the bodies of online
    requests in `online`, the number of times that each custom id was submitted in `asked`, and the method and path of
    every request in `calls`.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]) -> None:
        self.answer = answer
        self.outcome, self.looks, self.returned = "completed", 1, 0
        self.room: int | None = None
        self.faults: list[tuple[str, int | str]] = []
        self.has_batches = True
        self.files: dict[str, tuple[str, bytes]] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.online: list[dict[str, Any]] = []
        self.asked: Counter[str] = Counter()
        self.bodies: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.heads: dict[str, str] = {}
        self.polls: Counter[str] = Counter()
        self.page = 100
        self._lock = threading.RLock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]  # tests kill clients
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def uploads(self) -> int:
        return sum(call == "POST /v1/files" for call in self.calls)

    def reply(self, method: str, target: str, body: bytes, kind: str) -> tuple[int, Any]:
        """Return a status and a body: bytes, or data to send as JSON. None drops the connection."""
        path = urlsplit(target).path
        with self._lock:
            self.calls.append(f"{method} {path}")
            fault = next((f for f in self.faults if re.fullmatch(f[0], f"{method} {path}")), None)
            if fault is not None:
                self.faults.remove(fault)
                if fault[1] != "lost":
                    return int(fault[1]), _error("it said so")
            reply = self._routed(method, path, parse_qs(urlsplit(target).query), body, kind)
            return (0, None) if fault is not None else reply

    def _routed(
        self, method: str, path: str, query: dict[str, list[str]], body: bytes, kind: str
    ) -> tuple[int, Any]:
        if (method, path) == ("POST", "/v1/chat/completions"):
            request = json.loads(body)
            self.online.append(request)
            return self.answer(request)
        if not self.has_batches:
            return 404, _error("Not Found")
        if (method, path) == ("POST", "/v1/files"):
            return 200, self._uploaded(body, kind)
        if (method, path) == ("POST", "/v1/batches"):
            return 200, _batch_json(self._created(json.loads(body)))
        if path in ("/v1/files", "/v1/batches"):
            files = [{"id": id, "filename": name} for id, (name, _) in self.files.items()]
            return 200, self._listed(
                files if path.endswith("files") else [*map(_batch_json, self.batches.values())],
                query,
            )
        id, _, content = path.removeprefix("/v1/files/").partition("/")
        if content and id in self.files:
            return 200, self.files[id][1]
        batch = self.batches.get(path.removeprefix("/v1/batches/"))
        return (
            (404, _error(f"No such thing: {path}")) if batch is None else (200, self._polled(batch))
        )

    def _uploaded(self, body: bytes, kind: str) -> dict[str, Any]:
        mark = b"--" + re.search(r"boundary=(\S+)", kind)[1].encode()  # type: ignore[index]
        parts = [part.partition(b"\r\n\r\n") for part in body.split(mark)]
        head, _, content = next(part for part in parts if b"filename=" in part[0])
        assert any(
            b'name="purpose"' in head and content.strip() == b"batch" for head, _, content in parts
        )
        name = re.search(rb'filename="([^"]+)"', head)[1].decode()  # type: ignore[index]
        id = f"file-{len(self.files)}"
        self.files[id] = (name, content[: -len(b"\r\n")])
        return {"id": id, "filename": name}

    def _created(self, request: dict[str, Any]) -> dict[str, Any]:
        assert (request["endpoint"], request["completion_window"]) == (
            "/v1/chat/completions",
            "24h",
        )
        lines = [json.loads(line) for line in self.files[request["input_file_id"]][1].splitlines()]
        assert all(
            (line["method"], line["url"]) == ("POST", "/v1/chat/completions") for line in lines
        )
        id = f"batch-{len(self.batches)}"
        size = sum(len(line["body"]["messages"][0]["content"]) // 4 for line in lines)
        new_batch = {
            "id": id, "status": "in_progress", "input_file_id": request["input_file_id"], "metadata": request["metadata"],
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0}, "lines": lines, "size": size,
        }  # fmt: skip
        running = sum(
            batch["size"] for batch in self.batches.values() if batch["status"] == "in_progress"
        )
        self.batches[id] = new_batch
        if self.room is not None and running + size > self.room:
            why = LIMIT.format(self.room)
            new_batch |= {
                "status": "failed",
                "errors": {"data": [{"code": "token_limit_exceeded", "message": why}]},
            }
        else:
            self.asked.update(line["custom_id"] for line in lines)
            self.bodies |= {line["custom_id"]: line["body"] for line in lines}
        return new_batch

    def _polled(self, batch: dict[str, Any]) -> dict[str, Any]:
        self.polls[batch["id"]] += 1
        if batch["status"] == "in_progress" and self.polls[batch["id"]] >= self.looks:
            batch["status"] = self.outcome
            if self.outcome == "failed":
                batch["errors"] = {
                    "data": [{"code": "mismatched_model", "message": "no such model"}]
                }
            else:
                self._write_results(batch)
        return _batch_json(batch)

    def _write_results(self, batch: dict[str, Any]) -> None:
        lines = random.Random(0).sample(batch["lines"], len(batch["lines"]))
        lines, late = (
            (lines, [])
            if self.outcome == "completed"
            else (lines[: self.returned], lines[self.returned :])
        )
        good, bad = [], []
        for line in lines:
            status, body = self.answer(line["body"])
            reply = {"status_code": status, "request_id": "r", "body": body}
            (good if status == 200 else bad).append(_line(line, reply, None))
        bad += [
            _line(line, None, {"code": "batch_expired", "message": "too late"}) for line in late
        ]
        for name, finished_lines in (("output_file_id", good), ("error_file_id", bad)):
            if finished_lines:
                batch[name] = f"file-{len(self.files)}"
                self.files[batch[name]] = (name, b"".join(finished_lines))
        batch["request_counts"] |= {"completed": len(good), "failed": len(bad)}

    def _listed(self, things: list[dict[str, Any]], query: dict[str, list[str]]) -> dict[str, Any]:
        """Return one page of at most `page` entries, newest first."""
        things = things[::-1]
        ids = [thing["id"] for thing in things]
        start = ids.index(query["after"][0]) + 1 if "after" in query else 0
        end = start + min(self.page, int(query["limit"][0]))
        return {"object": "list", "data": things[start:end], "has_more": end < len(things)}


def _batch_json(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in batch.items() if name not in ("lines", "size")}


def _line(line: dict[str, Any], reply: Any, error: Any) -> bytes:
    return (
        json.dumps(
            {"id": "b", "custom_id": line["custom_id"], "response": reply, "error": error}
        ).encode()
        + b"\n"
    )


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "t", "param": None, "code": None}}


def _handler(server: BatchServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            body = self._body()
            server.heads = {name.lower(): value for name, value in self.headers.items()}
            status, data = server.reply(
                self.command, self.path, body, self.headers.get("content-type", "")
            )
            if data is None:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            data = data if isinstance(data, bytes) else json.dumps(data).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("content-length", 0)))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def log_message(self, *args: object) -> None:
            return

    return Handler


@pytest.fixture
def batch_server(make_completion: Callable[..., dict[str, Any]]) -> Iterator[BatchServer]:
    """A BatchServer that answers 4."""
    server = BatchServer(lambda body: (200, make_completion("4", top={"4": 0.75, "5": 0.25})))
    yield server
    server.close()


class InlineServer(BatchServer, ABC):
    """A vendor's own batch format with inline requests. A reply has the text `reply_text`: 10 tokens in, 3 out.

    `fates` maps a text to the result of the requests that contain it: "errored" or "expired". If more than `queue`
    requests would run at the same time, the server refuses the batch with 429. `native` has the received requests by
    custom id.
    """

    vendor = key_header = ""

    def __init__(self, answer: Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]) -> None:
        super().__init__(answer)
        self.reply_text, self.key = "4", "sk-the-right-key-of-a-vendor"
        self.fates: dict[str, str] = {}
        self.queue = 10**9
        self.native: dict[str, dict[str, Any]] = {}
        self.wrong: list[str] = []

    def _routed(
        self, method: str, path: str, query: dict[str, list[str]], body: bytes, kind: str
    ) -> tuple[int, Any]:
        if path.endswith("/chat/completions"):
            return super()._routed(method, "/v1/chat/completions", query, body, kind)
        if self.heads.get(self.key_header) != self.key or "authorization" in self.heads:
            return self.unauthorized()
        try:
            return self.batched(method, path, query, json.loads(body) if body else None)
        except (
            AssertionError,
            LookupError,
            TypeError,
        ):  # the vendor's documentation does not allow this request
            self.wrong.append(traceback.format_exc())
            return 400, _error("no such request")

    @abstractmethod
    def unauthorized(self) -> tuple[int, Any]:
        """Return the status and the body for a wrong key."""

    @abstractmethod
    def batched(
        self, method: str, path: str, query: dict[str, list[str]], request: Any
    ) -> tuple[int, Any]:
        """Return the status and the body for a request about batches."""

    def enqueue(self, id: str, requests: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
        """Add a batch and return it, or return None if the queue is full."""
        running = sum(
            len(batch["requests"]) for batch in self.batches.values() if not batch["ended"]
        )
        if running + len(requests) > self.queue:
            return None
        self.asked.update(requests.keys())
        self.native |= requests
        self.batches[id] = {"id": id, "requests": requests, "ended": False}
        return self.batches[id]

    def poll(self, batch: dict[str, Any]) -> dict[str, Any]:
        self.polls[batch["id"]] += 1
        batch["ended"] = self.polls[batch["id"]] >= self.looks
        return batch

    def fate(self, request: dict[str, Any]) -> str:
        return next(
            (fate for text, fate in self.fates.items() if text in json.dumps(request)), "succeeded"
        )


class AnthropicServer(InlineServer):
    """Message Batches, by platform.claude.com/docs/en/api/messages/batches."""

    vendor, key_header = "anthropic", "x-api-key"
    params: ClassVar = {
        "model",
        "max_tokens",
        "messages",
        "system",
        "temperature",
        "top_p",
        "stop_sequences",
    }

    def unauthorized(self) -> tuple[int, Any]:
        return 401, self.refusal("authentication_error", "invalid x-api-key")

    def refusal(self, kind: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": kind, "message": message}}

    def batched(
        self, method: str, path: str, query: dict[str, list[str]], request: Any
    ) -> tuple[int, Any]:
        assert self.heads["anthropic-version"] == "2023-06-01"
        if method == "POST":
            assert path == "/v1/messages/batches"
            return self.created(request["requests"])
        id, _, results = path.removeprefix("/v1/messages/batches").removeprefix("/").partition("/")
        if not id:
            ids = list(self.batches)[::-1]
            start = ids.index(query["after_id"][0]) + 1 if "after_id" in query else 0
            page = ids[start : start + min(self.page, int(query["limit"][0]))]
            listed = [self.shown(self.batches[id]) for id in page]
            return 200, {
                "data": listed,
                "has_more": start + len(page) < len(ids),
                "last_id": page[-1] if page else None,
            }
        if id not in self.batches:
            return 404, self.refusal("not_found_error", "no such batch")
        if not results:
            return 200, self.shown(self.poll(self.batches[id]))
        lines = [
            self.line(custom, params) for custom, params in self.batches[id]["requests"].items()
        ]
        return 200, b"".join(json.dumps(line).encode() + b"\n" for line in lines[::-1])

    def created(self, requests: list[dict[str, Any]]) -> tuple[int, Any]:
        for entry in requests:
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", entry["custom_id"])
            assert {"model", "max_tokens", "messages"} <= entry["params"].keys() <= self.params
            assert {message["role"] for message in entry["params"]["messages"]} <= {
                "user",
                "assistant",
            }
        batch = self.enqueue(
            f"msgbatch_{len(self.batches)}", {e["custom_id"]: e["params"] for e in requests}
        )
        return (
            (200, self.shown(batch))
            if batch
            else (429, self.refusal("rate_limit_error", "batch queue is full"))
        )

    def shown(self, batch: dict[str, Any]) -> dict[str, Any]:
        counts = Counter(
            self.fate(request) if batch["ended"] else "processing"
            for request in batch["requests"].values()
        )
        names = ("processing", "succeeded", "errored", "canceled", "expired")
        return {
            "id": batch["id"], "type": "message_batch", "request_counts": {name: counts[name] for name in names},
            "processing_status": "ended" if batch["ended"] else "in_progress",
            "results_url": f"https://api.anthropic.com/v1/messages/batches/{batch['id']}/results"
            if batch["ended"]
            else None,
        }  # fmt: skip

    def line(self, custom: str, params: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {"type": self.fate(params)}
        if result["type"] == "succeeded":
            result["message"] = {
                "id": "msg_1", "type": "message", "role": "assistant", "model": params["model"],
                "content": [{"type": "text", "text": self.reply_text}], "stop_reason": "end_turn",
                "usage": {"input_tokens": 6, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 0,
                          "output_tokens": 3},
            }  # fmt: skip
        elif result["type"] == "errored":
            result["error"] = self.refusal("invalid_request_error", "no such thing")
        return {"custom_id": custom, "result": result}


class GoogleServer(InlineServer):
    """Batches of the Gemini API, by ai.google.dev/api/batch-api."""

    vendor, key_header = "gemini", "x-goog-api-key"

    def unauthorized(self) -> tuple[int, Any]:
        return 400, {
            "error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}
        }

    def batched(
        self, method: str, path: str, query: dict[str, list[str]], request: Any
    ) -> tuple[int, Any]:
        assert query.keys() <= {"pageSize", "pageToken"}
        if method == "POST":
            assert path == "/v1beta/models/test-model:batchGenerateContent"
            return self.created(request["batch"])
        if path == "/v1beta/batches":
            ids, start = list(self.batches), int(query.get("pageToken", ["0"])[0])
            end = start + min(self.page, int(query["pageSize"][0]))
            page = {
                "operations": [self.shown(self.batches[id], whole=False) for id in ids[start:end]]
            }
            return 200, page | ({"nextPageToken": str(end)} if end < len(ids) else {})
        batch = self.batches.get(path.removeprefix("/v1beta/"))
        if batch is None:
            return 404, {"error": {"code": 404, "message": "no such batch", "status": "NOT_FOUND"}}
        return 200, self.shown(self.poll(batch))

    def created(self, submitted: dict[str, Any]) -> tuple[int, Any]:
        requests = {
            one["metadata"]["key"]: one["request"]
            for one in submitted["inputConfig"]["requests"]["requests"]
        }
        for request in requests.values():
            assert request["contents"][0]["parts"][0]["text"]
            assert request.keys() <= {"model", "contents", "systemInstruction", "generationConfig"}
        batch = self.enqueue(f"batches/{len(self.batches)}", requests)
        if batch is None:
            return 429, {
                "error": {"code": 429, "message": "quota exceeded", "status": "RESOURCE_EXHAUSTED"}
            }
        batch["name"] = submitted["displayName"]
        return 200, self.shown(batch)

    def shown(self, batch: dict[str, Any], whole: bool = True) -> dict[str, Any]:
        fates = [self.fate(one) for one in batch["requests"].values()]
        state = (
            "RUNNING" if not batch["ended"] else "EXPIRED" if "expired" in fates else "SUCCEEDED"
        )
        stats = {
            "requestCount": str(len(fates)),
            "successfulRequestCount": str(fates.count("succeeded")),
        }
        about = {"displayName": batch["name"], "state": f"BATCH_STATE_{state}", "batchStats": stats}
        shown = {"name": batch["id"], "metadata": about, "done": batch["ended"]}
        if whole and state == "SUCCEEDED":
            answers = [self.line(key, request) for key, request in batch["requests"].items()]
            shown["response"] = {"inlinedResponses": {"inlinedResponses": answers}}
        return shown

    def line(self, key: str, request: dict[str, Any]) -> dict[str, Any]:
        if self.fate(request) == "errored":
            return {"metadata": {"key": key}, "error": {"code": 3, "message": "no such thing"}}
        parts = [{"text": "Hm.", "thought": True}, {"text": self.reply_text}]
        used = {
            "promptTokenCount": 10,
            "cachedContentTokenCount": 4,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 1,
        }
        candidate = {
            "content": {"parts": parts, "role": "model"},
            "finishReason": "STOP",
            "index": 0,
        }
        model = request["model"].removeprefix("models/")
        return {
            "metadata": {"key": key},
            "response": {"candidates": [candidate], "usageMetadata": used, "modelVersion": model},
        }


@pytest.fixture(params=[AnthropicServer, GoogleServer], ids=["anthropic", "gemini"])
def vendor_server(
    request: pytest.FixtureRequest,
    make_completion: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[InlineServer]:
    """A server with a vendor's own batch format. Its key is in the environment."""
    usage = {"prompt_tokens": 10, "completion_tokens": 3}
    server = request.param(
        lambda _: (200, make_completion("4") | {"model": "test-model", "usage": usage})
    )
    if server.vendor == "gemini":
        server.url = server.url.replace("/v1", "/v1beta/openai")
    monkeypatch.setenv(f"{server.vendor.upper()}_API_KEY", server.key)
    yield server
    server.close()
    assert server.wrong == []
