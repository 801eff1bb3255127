"""What the pytest plugin costs a session that does not use it, and what scores and a suite's cases cost as tests.

The sides take turns. Times are CPU seconds of whole processes, medians where nothing else is said.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROUNDS, CASES = 25, 200
_IMPORT = """
import sys, time
import pytest
before, start = set(sys.modules), time.process_time()
import judge.pytest_plugin
took = time.process_time() - start
print(took, *sorted(name for name in set(sys.modules) - before))
"""
_PLAIN = "def test_nothing():\n    assert 1 + 1 == 2\n"
_SCORES = """
import pytest

@pytest.mark.judge(model="scripted/replies.yaml", cache=False)
@pytest.mark.parametrize("number", range({calls}))
def test_score(judge, number):
    assert judge.score("coherence", source="The ferry has room for 12 cars.", output=f"It takes {{number}} cars.") >= 4
"""
_CASE = """
  - name: "{number}"
    criterion: coherence
    text: {{source: The ferry has room for 12 cars., output: It takes {number} cars.}}
    expect: {{min: 4}}"""


def pytest(folder: Path, *args: str, expected: int = 0) -> float:
    """CPU seconds of a session in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != expected:
        raise SystemExit(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def in_turns(
    folder: Path, sides: Sequence[Sequence[str]], rounds: int
) -> list[list[float]]:
    """The seconds of each side by round, after one that fills the caches of bytecode."""
    times: list[list[float]] = [[] for _ in sides]
    for turn in range(rounds + 1):
        for of_side, args in zip(times, sides, strict=True):
            took = pytest(folder, *args)
            if turn:
                of_side.append(took)
    return times


def importing() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(ROUNDS)
    ]
    took, loaded = statistics.median(float(run[0]) for run in runs), runs[-1][1:]
    print(f"importing the plugin: {1000 * took:.1f} ms; it loads {', '.join(loaded)}")


def unrelated(folder: Path) -> None:
    (folder / "test_plain.py").write_text(_PLAIN)
    without, plugged = in_turns(folder, [("-p", "no:judge"), ()], ROUNDS)
    print(
        f"a session that does not use it: {min(without):.3f} s of CPU without the plugin, {min(plugged):.3f} s with it "
        f"({1000 * (min(plugged) - min(without)):+.0f} ms; the quickest of {ROUNDS} rounds each)"
    )


def using(folder: Path) -> None:
    (folder / "replies.yaml").write_text("- reply: {4: 0.3, 5: 0.7}\n")
    (folder / "test_one.py").write_text(_SCORES.format(calls=1))
    (folder / "test_many.py").write_text(_SCORES.format(calls=CASES))
    cases = "".join(_CASE.format(number=number) for number in range(CASES))
    (folder / "many.judge.yaml").write_text(
        f"model: scripted/replies.yaml\ncache: false\ncases:{cases}\n"
    )
    sides = in_turns(
        folder, [("test_one.py",), ("test_many.py",), ("many.judge.yaml",)], 1
    )
    one, many, suite = map(statistics.median, sides)
    print(
        f"judge.score: {one:.2f} s of CPU for the first, {1000 * (many - one) / (CASES - 1):.0f} ms for each further"
    )
    print(
        f"a suite of {CASES} cases as tests: {suite:.2f} s of CPU, {suite / many:.2f} times as many judge.score"
    )


def main() -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = (
        ""  # empty: plugins load as they do for everybody
    )
    start = time.perf_counter()
    importing()
    for work in (unrelated, using):
        with tempfile.TemporaryDirectory() as folder:
            work(Path(folder))
    print(f"({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
