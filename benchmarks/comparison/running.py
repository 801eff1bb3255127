"""Start the script of a tool in its own environment, on a server of its own, and measure the whole process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cases

HERE = Path(__file__).resolve().parent
LIMIT = 1200.0
"""Seconds after which a command is ended."""
_OBJECT = '{"reason": "The reply is as the question asks.", "score": {score}}'
_PASSING = (
    '{"pass": true, "reason": "The reply is as the question asks.", "score": {score}}'
)


@dataclass(frozen=True)
class Tool:
    """A tool, the package that holds its version, and the form of reply that its prompt asks for."""

    name: str
    package: str
    reply: str = _OBJECT
    node: bool = False


JUDGE = Tool("judge", "textjudge", "{score}")
BARE = Tool("bare", "openai", "{score}")
"""A loop of the official SDK, which reads no reply."""
DEEPEVAL = Tool("deepeval", "deepeval")
TOOLS = (
    JUDGE,
    DEEPEVAL,
    Tool("inspect-ai", "inspect-ai", "GRADE: {score}"),
    Tool("promptfoo", "promptfoo", _PASSING, node=True),
    Tool("opik", "opik"),
    Tool("mlflow", "mlflow"),
    Tool("pydantic-evals", "pydantic-evals"),
    Tool("autorubric", "autorubric"),
    Tool("openevals", "openevals"),
)
_HERE_INSTALLED = (JUDGE.name, BARE.name)


@dataclass(frozen=True)
class Run:
    """One command.

    `wall` and `cpu` are seconds and `memory` is megabytes, of the process and its children. `counts` is what the
    server counted, and `log` is the text that the command printed.
    """

    wall: float
    cpu: float
    memory: float
    status: int
    judged: dict[tuple[int, str], cases.Judged]
    counts: dict[str, Any]
    log: str


class Server:
    """A measuring server that runs."""

    def __init__(self, url: str) -> None:
        self.url = url

    def counts(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/counts") as reply:
            return dict(json.load(reply))


@contextmanager
def serving(tool: Tool, *options: str) -> Iterator[Server]:
    """Run a server that answers in the form that the tool asks for."""
    command = [sys.executable, str(HERE / "server.py"), "--reply", tool.reply, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            yield Server(f"http://127.0.0.1:{port}/v1")
        finally:
            process.terminate()


@contextmanager
def scratch() -> Iterator[Path]:
    """Return a folder that is deleted afterwards."""
    path = Path(tempfile.mkdtemp())
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Command:
    """The script of a tool. `environments` holds a virtual environment, or node_modules, for each tool."""

    def __init__(self, tool: Tool, environments: Path | None) -> None:
        self.tool = tool
        self.home = Path(sys.prefix)
        if tool.name not in _HERE_INSTALLED and environments is not None:
            self.home = environments.resolve() / tool.name
        self.python = (
            Path(sys.executable) if tool.node else self.home / "bin" / "python"
        )

    def version(self) -> str:
        """Return the installed version, or nothing if the tool is not installed."""
        if self.tool.node:
            manifest = self.home / "node_modules" / self.tool.package / "package.json"
            return (
                str(json.loads(manifest.read_text())["version"])
                if manifest.exists()
                else ""
            )
        if not self.python.exists():
            return ""
        code = f"from importlib.metadata import version; print(version({self.tool.package!r}))"
        done = subprocess.run([self.python, "-c", code], capture_output=True, text=True)
        return done.stdout.strip()

    def start(self, server: Server, folder: Path) -> subprocess.Popen[bytes]:
        """Start the script in a process group of its own."""
        script = HERE / f"run_{self.tool.name.replace('-', '_')}.py"
        environment = {
            **os.environ,
            "OPENAI_API_KEY": "x",
            "OPENAI_BASE_URL": server.url,
            "HOME": str(folder),  # what a tool keeps at home stays in the folder
            "JUDGE_COMPARED_HOME": str(self.home),
        }
        command = [
            str(self.python),
            str(script),
            server.url,
            str(results_of(folder)),
            str(folder),
        ]
        with log_of(folder).open("wb") as log:
            return subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )

    def finish(self, server: Server, folder: Path) -> Run:
        """Run the script to its end."""
        results_of(folder).unlink(missing_ok=True)
        start = time.perf_counter()
        status, cpu, memory = _wait(self.start(server, folder))
        wall = time.perf_counter() - start
        rows = (
            json.loads(results_of(folder).read_text())
            if results_of(folder).exists()
            else []
        )
        judged = {
            (row["number"], row["criterion"]): cases.Judged(**row) for row in rows
        }
        text = log_of(folder).read_text("utf-8", errors="replace")
        return Run(wall, cpu, memory, status, judged, server.counts(), text)

    def kill_halfway(self, server: Server, folder: Path) -> dict[str, Any]:
        """Kill the script once half of the judgments are answered; return what was counted until then."""
        half = cases.ITEMS * len(cases.SYSTEMS) * len(cases.CRITERIA) // 2
        process = self.start(server, folder)
        deadline = time.monotonic() + LIMIT
        counts = server.counts()
        while sum(counts["answered"].values()) < half and process.poll() is None:
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
            counts = server.counts()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return counts


def results_of(folder: Path) -> Path:
    """Return the file that a script writes."""
    return folder / "results.json"


def log_of(folder: Path) -> Path:
    """Return the file that holds what a script prints."""
    return folder / "log.txt"


def measured(command: Command) -> Run:
    """Run the script of a tool on a fresh server, in a fresh folder."""
    with scratch() as folder, serving(command.tool) as server:
        return command.finish(server, folder)


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, float, float]:
    """Return the status of a process, and the CPU seconds and megabytes of it and its children."""
    deadline = time.monotonic() + LIMIT
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(0.02)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
