"""The Ray engine on a cluster of several nodes on this machine.

Each node has a different API key in its environment, so the server can tell which node sent a request. `judge` runs in
a separate process. A test removes the nodes that it adds.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge import __version__, evaluate
from tests.factories import has_line, write_jsonl

pytestmark = pytest.mark.ray

PACKAGE = Path(__file__).resolve().parents[3] / "judge"
VARIABLE = "KEY_OF_THE_CLUSTER_TESTS"
KEYS = {
    name: f"sk-key-of-{name}-in-the-cluster-tests"
    for name in ("driver", "first", "second", "third")
}
CRITERIA, CONCURRENCY = "coherence,fluency_5", 12
SAMPLES = [
    {
        "item": f"d{i}",
        "system": system,
        "source": f"Source {i}.",
        "output": f"What {system} wrote about {i}.",
    }
    for i in range(40)
    for system in ("a", "b")
]
JUDGMENTS = 2 * len(SAMPLES)


class Nodes:
    """A cluster with its own folder; tests add and kill nodes. This process is not connected to it."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        self.folder = folder
        quick = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000}
        self._cluster = Cluster()
        self._cluster.add_node(
            temp_dir=str(folder), _system_config=quick, **self._node_options("first")
        )
        self.address: str = self._cluster.address

    @contextmanager
    def add_node(self, name: str, **env: str) -> Iterator[Any]:
        """Add a node; remove it at the end unless `kill` already did."""
        node = self._cluster.add_node(**self._node_options(name, **env))
        try:
            yield node
        finally:
            if node in self._cluster.worker_nodes:
                self.kill(node)

    def kill(self, node: Any) -> None:
        """Remove a node without a shutdown, as if the machine had failed."""
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()

    def _node_options(self, name: str, **env: str) -> dict[str, Any]:
        return {
            "num_cpus": 1,
            "include_dashboard": False,
            "env_vars": {VARIABLE: KEYS[name], **env},
        }


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    """A cluster with one node; tests add more."""
    pytest.importorskip("ray", reason="needs Ray: pip install textjudge[ray]")
    # pytest's tmp_path is too long: the path of a Unix socket has at most 107 characters
    folder = Path(tempfile.mkdtemp(prefix="ray"))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
            patch.setenv("RAY_TMPDIR", str(folder))
            # Ray writes the cluster address here but does not create the folder
            (folder / "ray").mkdir()
            cluster = Nodes(folder)
        with closing(cluster):
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Site:
    """A folder with data for `judge run`. The score in a reply depends only on the prompt."""

    def __init__(
        self, folder: Path, server: Any, make_completion: Callable[..., dict[str, Any]]
    ) -> None:
        self.folder, self.server = folder, server
        self.slow = 0.0
        self.unanswered: str | None = None  # this node gets no reply after its tenth request
        self.test_ended = threading.Event()
        self.request_arrived = threading.Condition()
        write_jsonl(folder / "data.jsonl", SAMPLES)

        def wait(headers: dict[str, str]) -> None:
            with self.request_arrived:
                self.request_arrived.notify_all()
            node = sender_node(headers)
            if node == self.unanswered and self.requests_by_node()[node] > 10:
                self.test_ended.wait()
            self.test_ended.wait(self.slow)

        def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
            score = 1 + zlib.crc32(body["messages"][0]["content"].encode()) % 5
            return (
                200,
                {},
                make_completion(str(score), top={str(score): 0.75, str(score % 5 + 1): 0.25}),
            )

        server.before_answer = wait
        server.answer = answer
        server._http.handle_error = lambda *_: None  # tests kill clients

    def local(self) -> pd.DataFrame:
        """Return the scores of the local engine, which runs in this process."""
        options = {
            "base_url": self.server.url,
            "metrics": [],
            "cache": False,
            "out": self.folder / "local",
        }
        evaluate(self.folder / "data.jsonl", CRITERIA, model="m", **options)
        self.server.bodies.clear()
        self.server.headers.clear()
        return self.scores("local")

    def start(self, address: str, engine: str = "ray") -> subprocess.Popen[str]:
        """Start `judge run` with this engine. It writes to the folders `ray` and `cache`."""
        environment = {
            VARIABLE: KEYS["driver"],
            "JUDGE_CACHE": str(self.folder / "cache"),
            "RAY_ADDRESS": address,
        }
        command = [
            sys.executable,
            "-c",
            "from judge.cli import main; main()",
            "run",
            "data.jsonl",
            "--model",
            "m",
        ]
        command += [
            "--base-url",
            self.server.url,
            "--key-env",
            VARIABLE,
            "--criteria",
            CRITERIA,
            "--metrics",
            "none",
        ]
        command += ["--engine", engine, "--max-concurrency", str(CONCURRENCY), "--out", "ray"]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=os.environ | environment,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    def scores(self, engine: str) -> pd.DataFrame:
        return pd.read_parquet(self.folder / engine / "scores.parquet")

    def notes(self) -> list[str]:
        notes: list[str] = json.loads((self.folder / "ray" / "run.json").read_text("utf-8"))[
            "info"
        ]["notes"]
        return notes

    def requests_by_node(self) -> Counter[str]:
        """Count the requests of each node by their keys."""
        return Counter(sender_node(headers) for headers in self.server.headers)

    def wait_until(self, met: Callable[[], bool], program: subprocess.Popen[str]) -> None:
        """Wait until the condition is met. Fail if the program ends first."""
        with self.request_arrived:
            for _ in range(2_400):
                if met():
                    return
                assert program.poll() is None
                self.request_arrived.wait(0.1)
        pytest.fail("condition not met within four minutes")


def sender_node(headers: dict[str, str]) -> str:
    """Return the node with the request's key, or `local` if the request has none of the keys."""
    names = {f"Bearer {key}": name for name, key in KEYS.items()}
    return names.get(headers.get("authorization", ""), "local")


def finish(program: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = program.communicate(timeout=240)
    finally:
        program.kill()
    return program.returncode, out, err


@pytest.fixture
def site(
    tmp_path: Path, chat_server: Any, make_completion: Callable[..., dict[str, Any]]
) -> Iterator[Site]:
    site = Site(tmp_path, chat_server, make_completion)
    yield site
    site.test_ended.set()


def files_containing(folder: Path, *secrets: str) -> list[Path]:
    """Return the files below a folder that contain one of the secrets. Fail if there are no files."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert files
    return [
        path for path in files if any(secret.encode() in path.read_bytes() for secret in secrets)
    ]


def test_two_nodes_give_the_scores_of_a_local_run_and_only_the_run_stores_replies(
    nodes: Nodes, site: Site
) -> None:
    """No key is stored anywhere, and the run's cache has the replies of all workers."""
    expected = site.local()
    with nodes.add_node("second"):
        code, out, err = finish(site.start(nodes.address))
        assert code == 0, err
        pd.testing.assert_frame_equal(site.scores("ray"), expected)
        by = site.requests_by_node()
        assert set(by) == {"first", "second"}
        assert by.total() == JUDGMENTS == len(expected)
        assert not files_containing(nodes.folder, *KEYS.values())
    assert not files_containing(site.folder, *KEYS.values())
    assert not any(key in out + err for key in KEYS.values())
    assert not list(nodes.folder.rglob("cache.db")), "workers should keep no cache"
    site.server.bodies.clear()
    code, _, err = finish(site.start(nodes.address, engine="local"))
    assert code == 0, err
    assert not site.server.bodies, "the run's cache should have every reply"


def test_a_failed_node_loses_only_requests_in_flight(nodes: Nodes, site: Site) -> None:
    expected = site.local()
    site.unanswered = "second"  # it has requests in flight when it is killed
    site.slow = 0.5  # the first node must not answer everything while the second starts
    with nodes.add_node("second") as node:
        program = site.start(nodes.address)
        try:
            site.wait_until(lambda: site.requests_by_node()["second"] > 10, program)
            nodes.kill(node)
            site.slow = 0.0
            seen = len(site.server.bodies)
        finally:
            code, _, err = finish(program)
    assert code == 0, err
    assert seen < JUDGMENTS
    pd.testing.assert_frame_equal(site.scores("ray"), expected)
    prompts = Counter(body["messages"][0]["content"] for body in site.server.bodies)
    assert len(prompts) == JUDGMENTS
    assert site.requests_by_node()["first"] > JUDGMENTS / 2
    assert prompts.total() - JUDGMENTS <= CONCURRENCY
    (note,) = [note for note in site.notes() if " died; " in note]
    assert re.match(r"\d Ray workers? died; \d+ requests?\b", note)


def test_a_terminated_run_reports_its_progress(nodes: Nodes, site: Site) -> None:
    site.slow = 0.05
    program = site.start(nodes.address)
    try:
        site.wait_until(lambda: len(site.server.bodies) > 10, program)
        program.send_signal(signal.SIGTERM)
    finally:
        code, _, err = finish(program)
    assert code == 130, err
    assert "are kept in ray" in err
    assert "SIGTERM received" not in err  # Ray's own handler would print this and end the process


def test_a_node_with_a_different_judge_version_stops_the_run_before_any_request(
    nodes: Nodes, site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(
        PACKAGE, other / "judge", ignore=shutil.ignore_patterns("__pycache__", "ray.py")
    )
    first = other / "judge" / "core" / "version.py"
    first.write_text(
        first.read_text("utf-8").replace(f'"{__version__}"', '"0.0.1"'), encoding="utf-8"
    )
    with nodes.add_node("second", PYTHONPATH=str(other)):
        code, out, err = finish(site.start(nodes.address))
    assert (code, out) == (2, "")
    (message,) = [line for line in err.splitlines() if line.startswith("judge: ")]
    assert has_line(message, "judge 0.0.1", __version__)
    assert os.uname().nodename in message
    assert not site.server.bodies


def test_a_private_cluster_is_silent_and_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install textjudge[ray]")
    folder = Path(tempfile.mkdtemp(prefix="ray"))
    program = """
import os
import judge
from judge.core.records import Choice, Response

class UsageStatsProvider:
    name, model, endpoint, notice, decides, learned = "own", "m", "e", "", False, {}

    async def complete(self, request):
        on = os.environ.get("RAY_USAGE_STATS_ENABLED") != "0" or "KEY_OF_THE_CLUSTER_TESTS" not in os.environ
        return Response((Choice("1" if on else "5"),))

    async def aclose(self):
        pass

rows = [{"item": "1", "source": "A text.", "output": "A summary."}]
result = judge.evaluate(
    rows, ["coherence"], model=UsageStatsProvider(), engine="ray", metrics=[], cache=False, weighting="single"
)
import ray
print([score.value for score in result.table.scores], ray.is_initialized())
"""
    for name in ("RAY_ADDRESS", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    surroundings = os.environ | {"RAY_TMPDIR": str(folder), VARIABLE: KEYS["driver"]}
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=surroundings, capture_output=True, text=True,
            timeout=240,
        )  # fmt: skip
        assert done.stdout == "[5.0] False\n", done.stderr
        assert not files_containing(folder, KEYS["driver"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
