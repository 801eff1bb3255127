"""Two `judge run` on the same data and one cache: each reply is paid for once, and a killed one holds nothing up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judge.cache import DiskCache

TEXTS, PLACES = 90, 4
PROGRAM = "from judge.cli import main; main()"


class Asked:
    """What the server is asked, and by whom; nobody is answered until two have asked, nor who `sticks` after 20."""

    def __init__(self, server: Any, answer: Callable[[str], dict[str, Any]]) -> None:
        self.prompts: dict[str, list[str]] = defaultdict(list)
        self.stuck: dict[str, list[str]] = defaultdict(list)
        self.sticks = ""
        self.go_on = threading.Event()
        self._both, self._own = threading.Event(), threading.local()
        self._answer = answer
        asked = self

        class Headers(list[dict[str, str]]):
            """The handler's thread adds them right before it asks for an answer."""

            def append(self, headers: dict[str, str]) -> None:
                asked._own.who = headers["authorization"].removeprefix("Bearer ")
                super().append(headers)

        server.headers, server.answer = Headers(), self
        server._http.handle_error = lambda *_: None  # connections end when their process is killed

    def __call__(self, body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        who, prompt = self._own.who, body["messages"][0]["content"]
        self.prompts[who].append(prompt)
        if len(self.prompts) == 2:
            self._both.set()
        assert self._both.wait(60.0), "two ask"
        if who == self.sticks and len(self.prompts[who]) > 20:
            self.stuck[who].append(prompt)
            self.go_on.wait(60.0)
        time.sleep(0.01)
        return 200, {}, self._answer(prompt)

    @property
    def times(self) -> Counter[str]:
        """How often each prompt was asked, by all together."""
        return Counter(prompt for prompts in self.prompts.values() for prompt in prompts)


@pytest.fixture
def asked(chat_server: Any, make_completion: Callable[..., dict[str, Any]]) -> Iterator[Asked]:
    def answer(prompt: str) -> dict[str, Any]:
        label = str(1 + sum(map(ord, prompt)) % 5)
        return make_completion(label, top={label: 0.75, "3" if label != "3" else "2": 0.25})

    one = Asked(chat_server, answer)
    yield one
    one.go_on.set()


def kept(cache: DiskCache) -> set[str]:
    """The prompts whose replies are in a cache."""
    return {request.messages[0]["content"] for _, request in cache.iter_all() if request is not None}


@pytest.fixture
def start(chat_server: Any, tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Starts a run in a process of its own."""
    rows = [{"item": f"{n}", "source": "the source", "output": f"text {n}"} for n in range(TEXTS)]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    began: list[subprocess.Popen[str]] = []

    def run(name: str) -> subprocess.Popen[str]:
        command = [
            sys.executable, "-c", PROGRAM, "run", data, "--model", "m", "--base-url", chat_server.url,
            "--metrics", "none", "--criteria", "coherence,relevance", "--max-concurrency", PLACES,
            "--cache", tmp_path / "cache", "--out", tmp_path / name, "--quiet",
        ]  # fmt: skip
        own = {"OPENAI_API_KEY": name}
        process = subprocess.Popen(list(map(str, command)), env=os.environ | own, stderr=subprocess.PIPE, text=True)
        began.append(process)
        return process

    yield run
    for process in began:
        process.kill()
        process.communicate()


def finish(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said


def scores(folder: Path) -> Any:
    import pandas as pd

    columns = ["item", "system", "column", "value", "method"]
    found = pd.read_parquet(folder / "scores.parquet")[columns]
    return sorted(map(tuple, found.itertuples(index=False)))


def test_two_runs_at_once_pay_for_each_reply_once(
    asked: Asked, start: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> None:
    for process in [start("a"), start("b")]:
        finish(process)
    assert set(asked.times.values()) == {1}
    assert len(asked.times) == 2 * TEXTS
    assert min(map(len, asked.prompts.values())) > PLACES, "both had their part in it"
    assert scores(tmp_path / "a") == scores(tmp_path / "b")
    assert len(scores(tmp_path / "a")) == 2 * TEXTS
    infos = [json.loads((tmp_path / name / "run.json").read_text())["info"] for name in "ab"]
    assert [info["usage"]["prompt_tokens"] for info in infos] == [100 * len(asked.prompts[name]) for name in "ab"]


def test_one_that_is_killed_holds_the_other_up_no_longer_than_its_claims_last(
    asked: Asked,
    start: Callable[[str], subprocess.Popen[str]],
    tmp_path: Path,
    wait_until: Callable[..., None],
) -> None:
    asked.sticks = "a"
    killed, other = start("a"), start("b")
    wait_until(lambda: len(asked.stuck["a"]) >= PLACES, killed)
    with DiskCache(tmp_path / "cache") as cache:
        wait_until(lambda: set(asked.prompts["a"]) - set(asked.stuck["a"]) <= kept(cache), killed)
    killed.send_signal(signal.SIGKILL)
    finish(other)
    assert len(scores(tmp_path / "b")) == 2 * TEXTS
    again = {prompt for prompt, times in asked.times.items() if times > 1}
    assert again == set(asked.stuck["a"]), "what was under way at the one that was killed, and nothing else"
    assert max(asked.times.values()) == 2
    assert len(asked.times) == 2 * TEXTS
