"""Batches against a Batch API that this project did not write: @copilotkit/aimock, an npm package."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from judge import evaluate_async

pytestmark = pytest.mark.extra

ROOT = Path(__file__).resolve().parents[3]
FOLDER = Path(os.environ.get("JUDGE_AIMOCK", ROOT / "build" / "aimock"))
COMMAND = FOLDER / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
CANNED = "Mock batch completion"
"""The server's reply to every request of a batch."""
CRITERION = f"""---
scale:
  labels: [{CANNED}, something else]
  values: [1, 0]
---
How is it? {{{{ output }}}}
"""
DATA = [{"item": str(n), "system": "s", "output": f"Output {n}."} for n in range(12)]


@pytest.fixture
def aimock(tmp_path: Path, wait_until: Callable[..., None]) -> Iterator[str]:
    """Start a server that gives the same replies online and in batches. Yield its address."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node, which is not on this machine")
    if not COMMAND.exists():
        pytest.skip(
            "needs @copilotkit/aimock in build/aimock or $JUDGE_AIMOCK; `make test-all` installs it with npm"
        )
    (tmp_path / "replies.json").write_text(
        json.dumps({"fixtures": [{"match": {}, "response": {"content": CANNED}}]})
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        node,
        str(COMMAND),
        "--port",
        str(port),
        "--fixtures",
        str(tmp_path / "replies.json"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: _listens(port), process)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


async def judged(url: str, folder: Path) -> Any:
    (folder / "canned.jinja").write_text(CRITERION)
    return await evaluate_async(
        DATA, [str(folder / "canned.jinja")], model="gpt-test", base_url=f"{url}/v1", engine="batch",
        metrics=[], weighting="single", cache=folder / "cache",
    )  # fmt: skip


def listed(url: str, kind: str) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = httpx2.get(f"{url}/v1/{kind}").json()["data"]
    return data


def test_a_run_in_a_batch(aimock: str, tmp_path: Path) -> None:
    result = asyncio.run(judged(aimock, tmp_path))
    assert [score.value for score in result.table.scores] == [1.0] * 12
    assert result.info.requests.answered == 12
    (batch,) = listed(aimock, "batches")
    assert (batch["status"], batch["request_counts"]) == (
        "completed",
        {"total": 11, "completed": 11, "failed": 0},
    )
    sent = next(file for file in listed(aimock, "files") if file["id"] == batch["input_file_id"])
    assert sent["filename"] == f"{batch['metadata']['judge']}.jsonl"
    asyncio.run(judged(aimock, tmp_path))
    assert len(listed(aimock, "batches")) == 1


def test_a_run_resumes_its_batch(
    aimock: str, tmp_path: Path, wait_until: Callable[..., None]
) -> None:
    async def cut_short() -> None:
        task = asyncio.create_task(judged(aimock, tmp_path))
        await asyncio.to_thread(wait_until, lambda: listed(aimock, "batches"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cut_short())
    assert [batch["status"] for batch in listed(aimock, "batches")] in (
        ["validating"],
        ["in_progress"],
    )
    result = asyncio.run(judged(aimock, tmp_path))
    assert [score.value for score in result.table.scores] == [1.0] * 12
    assert len(listed(aimock, "batches")) == 1
    assert len([file for file in listed(aimock, "files") if file["purpose"] == "batch"]) == 1
