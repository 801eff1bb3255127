"""`--retry-failed` repeats only judgments without a score, and a run never replaces a different run."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.commands.finished_runs import open_run
from judge.core.errors import ConfigError, StorageError, Transient
from judge.core.files import run_folder
from judge.core.records import Request
from judge.results.loading import load
from tests.factories import has_line, write_jsonl

ROWS = [
    {"item": str(n), "system": s, "output": f"Boat {n} of {s}."} for n in range(4) for s in "ab"
]
PLAN: dict[str, Any] = {"metrics": [], "cache": False, "weighting": "single", "repair": "off"}


def script(*failing: str, reply: str = "2") -> judge.ScriptedProvider:
    """Return a judge that gives no score to texts with one of these words."""

    def answer(request: Request) -> str:
        return "no idea" if any(one in request.messages[0]["content"] for one in failing) else reply

    return judge.ScriptedProvider(answer)


def run(provider: Any, out: Path, rows: Any = ROWS, **options: Any) -> judge.Result:
    return judge.evaluate(
        rows, options.pop("criteria", ["fluency"]), model=provider, out=out, **PLAN | options
    )


def of_suite(folder: Path, provider: Any, **options: Any) -> judge.Result:
    (folder / "data.json").write_text(json.dumps(ROWS), encoding="utf-8")
    case = "{name: high, criterion: fluency, item: ['0', '1'], expect: {min: 2}}"
    (folder / "one.judge.yaml").write_text(
        f"data: data.json\ncases:\n  - {case}\n", encoding="utf-8"
    )
    (outcome,) = judge.test(
        folder / "one.judge.yaml", model=provider, weighting="single", **options
    )
    assert outcome.result is not None
    return outcome.result


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        (
            lambda _, **options: judge.evaluate(
                ROWS, ["fluency"], metrics=[], weighting="single", **options
            ),
            "2",
        ),
        (
            lambda _, **options: judge.rank(
                ROWS, ["fluency"], metrics=[], weighting="single", **options
            ),
            "A",
        ),
        (lambda folder, **options: of_suite(folder, options.pop("model"), **options), "2"),
    ],
    ids=["evaluate", "rank", "test"],
)
def test_stored_replies_without_a_score_fail_again_at_no_cost(
    tmp_path: Path, command: Any, reply: str
) -> None:
    def ask(provider: judge.ScriptedProvider, **options: Any) -> tuple[int, judge.Result]:
        provider.endpoint = "x"
        result = command(tmp_path, model=provider, cache=tmp_path / "cache", **options)
        return len(provider.seen), result

    _, first = ask(script("Boat 1", reply=reply))
    assert len(first.failures) == 2
    sent, second = ask(script(reply=reply))
    assert (sent, second.failures, second.info.requests.failed_cached) == (
        0,
        first.failures,
        2,
    )
    facts = ("2 values failed again", "cached replies", "retry_failed=True")
    assert has_line(second.info.notes, *facts)
    assert not has_line(first.info.notes, "retry_failed=True")
    sent, third = ask(script(reply=reply), retry_failed=True)
    assert (sent, third.failures) == (2, ())
    assert not has_line(third.info.notes, "retry_failed=True")
    sent, fourth = ask(script("Boat", reply=reply))
    assert (sent, fourth.failures) == (0, ())


@pytest.mark.parametrize("status", [500, 503])
def test_a_repeated_run_reports_a_text_that_the_server_cannot_answer(
    tmp_path: Path, status: int
) -> None:
    def answer(request: Request) -> str:
        if "Boat 3 of b" in request.messages[0]["content"]:
            raise Transient("overloaded", status=status, stops="if_first")
        return "2"

    def failures() -> list[tuple[str, str]]:
        provider = judge.ScriptedProvider(answer)
        provider.endpoint = "x"
        options = PLAN | {"cache": tmp_path / "cache", "retries": 0}
        result = judge.evaluate(ROWS, ["fluency"], model=provider, **options)
        return [(failure.item, failure.system) for failure in result.failures]

    assert failures() == failures() == [("3", "b")]


def test_a_retry_needs_the_cache(tmp_path: Path) -> None:
    provider = script()
    with pytest.raises(ConfigError, match="retry_failed: without a cache"):
        run(provider, tmp_path, retry_failed=True)
    assert provider.seen == []


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"rows": ROWS[:2]}, "6 texts, such as item '1' of system 'a'"),
        (
            {"rows": [row | {"output": row["output"] + "!"} for row in ROWS]},
            "8 texts, such as item '0' of system 'a'",
        ),
        ({"criteria": ["fluency_5"]}, "the criterion fluency"),
        ({"criteria": [], "metrics": "stats"}, "the judge script; the criterion fluency"),
        ({"provider": judge.ScriptedProvider(lambda _: "2", model="other")}, "the judge script"),
        ({"metrics": []}, "the metric distinct"),
    ],
)
def test_a_run_replaces_no_other_results(tmp_path: Path, change: dict[str, Any], lost: str) -> None:
    run(script(), tmp_path, metrics="distinct")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    arguments = {"provider": script(), "out": tmp_path, "metrics": "distinct", **change}
    with pytest.raises(
        StorageError,
        match=f"{lost}.*overwrite=T",
    ):
        run(**arguments)
    assert getattr(arguments["provider"], "seen", []) == []
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    run(**arguments, overwrite=True)


@pytest.mark.parametrize(
    "change", [{"format": 1}, {"format": 99}, {"info": {"later": 1}}, {"info": {"status": "later"}}]
)
def test_a_run_of_a_different_version_is_replaced_only_with_overwrite(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    run(script(), tmp_path)
    path = tmp_path / "run.json"
    stored = json.loads(path.read_text("utf-8"))
    info = stored["info"] | {"judge_version": "99.0"} | change.get("info", {})
    path.write_text(json.dumps(stored | change | {"info": info}), "utf-8")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(StorageError, match=r"written by an? (older|newer) judge"):
        run(script(), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    run(script(), tmp_path, overwrite=True)
    assert judge.load_result(tmp_path).info.status == "complete"


def test_the_same_file_and_more_replace_a_run(tmp_path: Path) -> None:
    """This also holds if the prompt, a setting or a text has changed."""
    data, out = tmp_path / "d.jsonl", tmp_path / "r"
    write_jsonl(data, ROWS)
    run(script(), out, data, limit=6)
    data.write_text(
        "".join(json.dumps(row | {"output": "New."}) + "\n" for row in ROWS), encoding="utf-8"
    )
    second = run(script(), out, data, criteria=["fluency", "fluency_5"], seed=3)
    assert len(second.table.scores) == 16


def test_a_ranking_does_not_overwrite_a_run_or_a_larger_ranking(tmp_path: Path) -> None:
    ranked = {"criteria": "fluency", "model": script(reply="A"), "out": tmp_path, "cache": False}
    judge.rank(ROWS, **ranked)
    with pytest.raises(StorageError, match="other pairs of texts"):
        judge.rank(ROWS, **ranked, orders=1)
    with pytest.raises(StorageError, match="other pairs of texts"):
        run(script(), tmp_path)
    run(script(), tmp_path / "run")
    with pytest.raises(StorageError, match="scores of single texts"):
        judge.rank(ROWS, **{**ranked, "out": tmp_path / "run"})


def run_in_thread(provider: Any, out: Path) -> judge.Result:
    """Run in a thread of its own, because a run needs its own event loop."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run, provider, out).result()


def test_a_second_run_into_a_folder_is_refused_while_the_first_one_writes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    second = script(reply="1")
    refused: list[str] = []

    def answer(_: Request) -> str:
        if not refused:
            with pytest.raises(StorageError, match="another run is writing to it") as caught:
                run_in_thread(second, out)
            refused.append(str(caught.value))
        return "3"

    run(judge.ScriptedProvider(answer), out)
    assert second.seen == []
    assert {score.value for score in load(out).table.scores} == {3.0}
    # The first one has ended, and holds nothing.
    run_in_thread(second, out)
    assert {score.value for score in load(out).table.scores} == {1.0}
    assert not list(out.glob(".judge*"))


def test_a_folder_whose_run_has_not_ended_has_no_results_yet(tmp_path: Path) -> None:
    with run_folder(tmp_path), pytest.raises(ConfigError, match="no results yet; wait"):
        open_run(tmp_path)
    with pytest.raises(ConfigError, match="not the folder of a run"):
        open_run(tmp_path)


def test_a_folder_that_a_killed_run_claimed_is_free(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from judge.core.files import run_folder\n"
        "with run_folder(Path(sys.argv[1])): os._exit(1)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert (tmp_path / ".judge-run").exists()
    assert len(run(script(), tmp_path).table.scores) == len(ROWS)
