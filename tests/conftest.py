"""Fixtures for all tests."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import math
import os
import selectors
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from judge.core.messages import speaking_to

ROOT = Path(__file__).resolve().parent.parent

# No test depends on how busy the machine is. A change is judged by the same examples each time; a search for new ones
# is `HYPOTHESIS=search make test`.
settings.register_profile("judge", deadline=None, max_examples=20, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS", "judge"))
_NOT_HERE = "which is not part of this repository"


def _shared(folder: str, kind: str) -> Callable[[str], Path]:
    """Return a function that finds a file in `shared`, or skips the test if it is missing."""

    def find(name: str) -> Path:
        path = Path(os.environ.get("JUDGE_SHARED", ROOT.parent / "shared")) / folder / name
        if not path.exists():
            pytest.skip(f"needs the {kind} {name}, {_NOT_HERE}")
        return path

    return find


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip modules that import torch if all their tests are deselected."""
    needs_torch = collection_path.name in ("test_models.py", "test_encoders.py")
    if needs_torch and "not torch" in config.getoption("markexpr"):
        return "torch = pytest.importorskip" in collection_path.read_text("utf-8") or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from the tests themselves.

    It would search thousands of them again and again: that takes a tenth of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give more time to tests that load models, start servers or open a browser."""
    for item in items:
        if any(item.get_closest_marker(name) for name in ("browser", "torch", "ray")):
            item.add_marker(pytest.mark.timeout(600))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """With JUDGE_REQUIRE_DATA, fail tests that skip because real data is missing."""
    report: Any = yield
    needs_data = "shared_data" in getattr(item, "fixturenames", ()) or _NOT_HERE in str(
        report.longrepr
    )
    if report.skipped and needs_data and os.environ.get("JUDGE_REQUIRE_DATA"):
        report.outcome, report.longrepr = (
            "failed",
            f"skipped, although JUDGE_REQUIRE_DATA is set: {report.longrepr}",
        )
    return report


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Path of a file of human-rated data. Skip the test if the file is missing."""
    return _shared("data", "real data file")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Holds a text to a file a person has read, in golden/ under the name of the test's folder.

    JUDGE_GOLDEN=write rewrites it for review.
    """

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / request.path.parent.name / name
        if os.environ.get("JUDGE_GOLDEN") == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        assert text == path.read_bytes().decode()

    return check


@pytest.fixture(scope="session")
def shared_tool() -> Callable[[str], Path]:
    """Path of a tool in `shared/tools`. Skip the test if it is missing."""
    return _shared("tools", "server")


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths of new cache folders for tests. This is faster than `mktemp`, which lists all names each time."""
    folder = tmp_path_factory.mktemp("caches")
    return (folder / str(n) for n in itertools.count())


@pytest.fixture(autouse=True)
def clean_surroundings(monkeypatch: pytest.MonkeyPatch, caches: Iterator[Path]) -> None:
    """Hide this machine's API keys and cache from tests."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "JUDGE_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(next(caches)))


class _Leaping(asyncio.SelectorEventLoop):
    """An event loop without real waiting: its clock jumps to the next scheduled callback."""

    def __init__(self) -> None:
        self.now = 1000.0
        loop = self

        class Selector(selectors.DefaultSelector):
            def select(
                self, timeout: float | None = None
            ) -> list[tuple[selectors.SelectorKey, int]]:
                if timeout is None:
                    raise RuntimeError("everybody waits, and nothing is due: this would hang")
                loop.now += max(0.0, timeout)
                return super().select(0)

        super().__init__(Selector())

    def time(self) -> float:
        return self.now


@pytest.fixture
def in_time() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """`asyncio.run` on a clock that advances only when all tasks wait. Endless waiting is an error."""

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=_Leaping) as runner:
            return runner.run(work)

    return run


@pytest.fixture
def command_line() -> Iterator[None]:
    """Word messages and reports for a shell, like the command line."""
    with speaking_to("command line"):
        yield


@pytest.fixture(scope="session")
def wait_until() -> Callable[..., None]:
    """A function that waits up to a minute for a condition, while `process` (if any) runs."""

    def wait(condition: Callable[[], object], process: subprocess.Popen[Any] | None = None) -> None:
        end = time.monotonic() + 60
        while not condition():
            assert process is None or process.poll() is None, process.communicate()
            assert time.monotonic() < end, "the condition did not hold within a minute"
            time.sleep(0.002)

    return wait


class ChatServer:
    """A chat-completions endpoint on loopback whose answers a test decides.

    `answer(body)` returns (status, headers, body): a body that is a dict goes out as JSON, bytes as they are,
    None closes the connection without a reply. `bodies` keeps what was asked. `before_answer(headers)` is called
    first, and may wait.
    """

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[dict[str, Any]], tuple[int, dict[str, str], Any]] = lambda body: (
            200,
            {},
            completion(),
        )
        self.before_answer: Callable[[dict[str, str]], None] = lambda headers: None
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.bodies.append(body)
                sent = {k.lower(): v for k, v in self.headers.items()}
                server.headers.append(sent)
                server.before_answer(sent)
                status, headers, data = server.answer(body)
                if data is None:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                data = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                for name, value in ({"content-type": "application/json"} | headers).items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def completion(
    text: str = "4", *, top: dict[str, float] | None = None, **fields: Any
) -> dict[str, Any]:
    """A chat completion as OpenAI words it; `top` gives the one token's alternatives as probabilities."""
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
    }
    if top:
        listed = [{"token": t, "logprob": math.log(p)} for t, p in top.items()]
        choice["logprobs"] = {
            "content": [{"token": text, "logprob": math.log(top[text]), "top_logprobs": listed}]
        }
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    return {
        "model": "test-model-1",
        "choices": [choice | fields.pop("choice", {})],
        "usage": usage,
    } | fields


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    """A running ChatServer."""
    server = ChatServer()
    yield server
    server.close()


@pytest.fixture
def make_completion() -> Callable[..., dict[str, Any]]:
    """The function `completion` above."""
    return completion


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Headless Chromium. Skip the test if it or Playwright is missing.

    Each module starts its own, because Playwright's event loop runs until it is closed.
    """
    driver = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright, which is in the extra dev"
    )
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        pytest.skip("needs Chromium's headless shell, which `make test-all` installs, or Chromium")
    with driver.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
