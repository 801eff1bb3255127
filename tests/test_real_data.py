"""The whole path on real, human-rated texts and real recorded replies of GPT-4, through a server that replays them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import judge


class Replay:
    """A replay server and what it counts."""

    def __init__(self, *command: object) -> None:
        self._process = subprocess.Popen([sys.executable, *map(str, command)], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        found = re.search(r"http://\S+", self._process.stdout.readline())
        assert found is not None
        self.url = found[0]

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/stats", timeout=10) as reply:
            return dict(json.load(reply))

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()


@pytest.fixture
def replay(shared_tool: Callable[[str], Path], shared_data: Callable[[str], Path]) -> Iterator[Callable[..., Replay]]:
    servers: list[Replay] = []

    def start(data: str, *options: object) -> Replay:
        command = (shared_tool("replay_server.py"), "--data", shared_data(data), "--port", 0, *options)
        servers.append(Replay(*command))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize("language", ["english", "korean"])
def test_the_g_eval_estimate_is_the_mean_of_the_recorded_replies(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path], tmp_path: Path, language: str
) -> None:
    r"""Twenty recorded draws as token probabilities: the weighted score is their mean, item by item.

    One English item is recorded as scored 0 for the reply "\n2", which its own parser missed; the replies count here.
    """
    name = f"geval_{language}.jsonl"
    rows = [json.loads(line) for line in shared_data(name).read_text("utf-8").splitlines()]
    recorded = {r["item_id"]: sum(float(re.findall(r"\d", x)[-1]) for x in r["responses"]) / 20 for r in rows}
    server = replay(name, "--as-logprobs")
    options: dict[str, Any] = {
        "model": "gpt-4-0125-preview", "base_url": server.url, "metrics": [], "cache": tmp_path,
        "mapping": {"item": "item_id", "output": "summary"},
    }  # fmt: skip
    result = judge.evaluate(shared_data(name), ["relevance"], **options)
    assert {s.item: s.value for s in result.table.scores} == pytest.approx(recorded)
    assert {s.provenance.method for s in result.table.scores} == {"logprobs"}
    assert result.info["language"]["name"] == language[:2]
    again = judge.evaluate(shared_data(name), ["relevance"], **options)
    assert again.table == result.table
    assert server.stats()["requests"] == 20


def test_a_server_with_every_fault_costs_no_judgment(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    """Refused logprobs, refused temperature, errors and dropped connections: all judged, as people rated them."""
    name = "summeval_smoke.jsonl"
    server = replay(name, "--oracle", 0, "--reasoning", "--no-logprobs", "--fail-rate", 0.1, "--disconnect-rate", 0.1)
    criteria = ["relevance", "coherence", "consistency", "fluency_5"]
    result = judge.evaluate(
        shared_data(name),
        criteria,
        model="a-reasoning-model",
        base_url=server.url,
        mapping={"item": "doc_id", "output": "summary"},
        metrics=[],
        cache=tmp_path,
        max_concurrency=8,
    )
    assert result.failures == ()
    assert set(result.info["unmet"]) == {"logprobs", "temperature"}
    assert "|t=server|" in result.info["signatures"]["relevance"]
    human = {(s.item, s.system): s.human for s in result.table.samples}
    for score in result.table.scores:
        rated = human[score.item, score.system][score.column.removesuffix("_5")]
        assert score.value == float(int(rated + 0.5))


def test_garbage_is_counted_and_asked_again(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    name = "summeval_smoke.jsonl"
    server = replay(name, "--oracle", 0.5, "--garbage-rate", 0.3)
    options: dict[str, Any] = {
        "model": "m", "base_url": server.url, "metrics": [], "cache": tmp_path,
        "mapping": {"item": "doc_id", "output": "summary"},
    }  # fmt: skip
    first = judge.evaluate(shared_data(name), ["relevance"], **options)
    failed, asked = len(first.failures), server.stats()["requests"]
    assert failed == server.stats()["garbage"] > 0
    assert len(first.table.scores) + failed == 20
    judge.evaluate(shared_data(name), ["relevance"], **options)
    assert server.stats()["requests"] == asked + failed
