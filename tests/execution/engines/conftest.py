"""A small Batch API of our own on loopback: files, batches, chat, and what can go wrong with them."""

from __future__ import annotations

import json
import random
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

LIMIT = "Enqueued token limit reached for test-model in organization org-1. Limit: {:,} enqueued tokens."


class BatchServer:
    """Answers chat requests, online and in batches, with what `answer(body)` returns: a status and a body.

    A batch ends as `outcome` says once it was looked at `looks` times, its lines in random order and those that the
    answer has another status than 200 for in the error file; `returned` says how many lines a batch that expired or was
    cancelled brings. With `room` there is only so much for the prompts of all running batches, in characters / 4.
    `faults` are taken one by one by the requests whose method and path they match: a status (nothing is done) or "lost"
    (it is done, and the connection dropped). `online` and `asked` are the bodies that came, by custom id for batches;
    `calls` all requests.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]) -> None:
        self.answer = answer
        self.outcome, self.looks, self.returned = "completed", 1, 0
        self.room: int | None = None
        self.limit_said = LIMIT
        self.faults: list[tuple[str, int | str]] = []
        self.has_batches = True
        self.files: dict[str, tuple[str, bytes]] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.online: list[dict[str, Any]] = []
        self.asked: Counter[str] = Counter()
        self.bodies: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.polls: Counter[str] = Counter()
        self.page = 100
        self._lock = threading.RLock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that was killed
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def uploads(self) -> int:
        return sum(call == "POST /v1/files" for call in self.calls)

    def reply(self, method: str, target: str, body: bytes, kind: str) -> tuple[int, Any]:
        """A status and what goes with it: bytes as they are, all else as JSON; None drops the connection."""
        path = urlsplit(target).path
        with self._lock:
            self.calls.append(f"{method} {path}")
            fault = next((f for f in self.faults if re.fullmatch(f[0], f"{method} {path}")), None)
            if fault is not None:
                self.faults.remove(fault)
                if fault[1] != "lost":
                    return int(fault[1]), _error("it said so")
            done = self._routed(method, path, parse_qs(urlsplit(target).query), body, kind)
            return (0, None) if fault is not None else done

    def _routed(self, method: str, path: str, query: dict[str, list[str]], body: bytes, kind: str) -> tuple[int, Any]:
        if (method, path) == ("POST", "/v1/chat/completions"):
            asked = json.loads(body)
            self.online.append(asked)
            return self.answer(asked)
        if not self.has_batches:
            return 404, _error("Not Found")
        if (method, path) == ("POST", "/v1/files"):
            return 200, self._uploaded(body, kind)
        if (method, path) == ("POST", "/v1/batches"):
            return 200, _shown(self._created(json.loads(body)))
        if path in ("/v1/files", "/v1/batches"):
            files = [{"id": id, "filename": name} for id, (name, _) in self.files.items()]
            return 200, self._listed(files if path.endswith("files") else [*map(_shown, self.batches.values())], query)
        id, _, content = path.removeprefix("/v1/files/").partition("/")
        if content and id in self.files:
            return 200, self.files[id][1]
        found = self.batches.get(path.removeprefix("/v1/batches/"))
        return (404, _error(f"No such thing: {path}")) if found is None else (200, self._looked(found))

    def _uploaded(self, body: bytes, kind: str) -> dict[str, Any]:
        mark = b"--" + re.search(r"boundary=(\S+)", kind)[1].encode()  # type: ignore[index]
        parts = [part.partition(b"\r\n\r\n") for part in body.split(mark)]
        head, _, content = next(part for part in parts if b"filename=" in part[0])
        assert any(b'name="purpose"' in head and content.strip() == b"batch" for head, _, content in parts)
        name = re.search(rb'filename="([^"]+)"', head)[1].decode()  # type: ignore[index]
        id = f"file-{len(self.files)}"
        self.files[id] = (name, content[: -len(b"\r\n")])
        return {"id": id, "filename": name}

    def _created(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert (asked["endpoint"], asked["completion_window"]) == ("/v1/chat/completions", "24h")
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]][1].splitlines()]
        assert all((line["method"], line["url"]) == ("POST", "/v1/chat/completions") for line in lines)
        id = f"batch-{len(self.batches)}"
        size = sum(len(line["body"]["messages"][0]["content"]) // 4 for line in lines)
        made = {
            "id": id, "status": "in_progress", "input_file_id": asked["input_file_id"], "metadata": asked["metadata"],
            "request_counts": {"total": len(lines), "completed": 0, "failed": 0}, "lines": lines, "size": size,
        }  # fmt: skip
        running = sum(batch["size"] for batch in self.batches.values() if batch["status"] == "in_progress")
        self.batches[id] = made
        if self.room is not None and running + size > self.room:
            why = self.limit_said.format(self.room)
            made |= {"status": "failed", "errors": {"data": [{"code": "token_limit_exceeded", "message": why}]}}
        else:
            self.asked.update(line["custom_id"] for line in lines)
            self.bodies |= {line["custom_id"]: line["body"] for line in lines}
        return made

    def _looked(self, batch: dict[str, Any]) -> dict[str, Any]:
        self.polls[batch["id"]] += 1
        if batch["status"] == "in_progress" and self.polls[batch["id"]] >= self.looks:
            batch["status"] = self.outcome
            if self.outcome == "failed":
                batch["errors"] = {"data": [{"code": "mismatched_model", "message": "no such model"}]}
            else:
                self._worked_off(batch)
        return _shown(batch)

    def _worked_off(self, batch: dict[str, Any]) -> None:
        lines = random.Random(0).sample(batch["lines"], len(batch["lines"]))
        lines, late = (lines, []) if self.outcome == "completed" else (lines[: self.returned], lines[self.returned :])
        good, bad = [], []
        for line in lines:
            status, body = self.answer(line["body"])
            reply = {"status_code": status, "request_id": "r", "body": body}
            (good if status == 200 else bad).append(_line(line, reply, None))
        bad += [_line(line, None, {"code": "batch_expired", "message": "too late"}) for line in late]
        for name, found in (("output_file_id", good), ("error_file_id", bad)):
            if found:
                batch[name] = f"file-{len(self.files)}"
                self.files[batch[name]] = (name, b"".join(found))
        batch["request_counts"] |= {"completed": len(good), "failed": len(bad)}

    def _listed(self, things: list[dict[str, Any]], query: dict[str, list[str]]) -> dict[str, Any]:
        """Newest first, one page of at most `page`."""
        things = things[::-1]
        ids = [thing["id"] for thing in things]
        start = ids.index(query["after"][0]) + 1 if "after" in query else 0
        end = start + min(self.page, int(query["limit"][0]))
        return {"object": "list", "data": things[start:end], "has_more": end < len(things)}


def _shown(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in batch.items() if name not in ("lines", "size")}


def _line(line: dict[str, Any], reply: Any, error: Any) -> bytes:
    return json.dumps({"id": "b", "custom_id": line["custom_id"], "response": reply, "error": error}).encode() + b"\n"


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
            status, data = server.reply(self.command, self.path, body, self.headers.get("content-type", ""))
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
            found = b""
            while size := int(self.rfile.readline(), 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

        def log_message(self, *args: object) -> None:
            return

    return Handler


@pytest.fixture
def batch_server(make_completion: Callable[..., dict[str, Any]]) -> Iterator[BatchServer]:
    """A BatchServer that answers 4 and is shut down after the test."""
    server = BatchServer(lambda body: (200, make_completion("4", top={"4": 0.75, "5": 0.25})))
    yield server
    server.close()
