"""If a criterion's first 20 judgments fail for the same reason, judge stops it and continues the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import Refused, Transient
from judge.core.records import Choice, Request, Response, Token
from judge.providers.scripted import Reply
from tests.factories import has_line, text_response

ROWS = [
    {"item": str(n), "system": "a", "source": "The source.", "output": f"Text {n}."}
    for n in range(120)
]
BOTH = ("relevance", "coherence")
BAD = "I have no idea."


class Slow(judge.ScriptedProvider):
    """Answer with a delay, so that the concurrency limit is reached."""

    async def complete(self, request: Request) -> Response:
        for _ in range(200):
            await asyncio.sleep(0)
        return await super().complete(request)


def run(script: Callable[[Request], Reply], **options: Any) -> tuple[list[Request], judge.Result]:
    provider = Slow(script, endpoint="x")
    settings = {
        "metrics": [],
        "cache": False,
        "weighting": "single",
        "repair": "off",
        "retries": 0,
        **options,
    }
    rows, criteria = settings.pop("rows", ROWS), settings.pop("criteria", ["relevance"])
    return provider.seen, judge.evaluate(rows, criteria, model=provider, **settings)


def errors(result: judge.Result) -> dict[str, int]:
    names = [failure.error for failure in result.failures]
    return {name: names.count(name) for name in names}


def number(request: Request) -> int:
    return int(request.messages[0]["content"].split("Text ")[1].split(".")[0])


def drawn(request: Request) -> Reply:
    return Response((Choice(BAD),) * request.params.get("n", 1))


def unlikely(request: Request) -> Reply:
    """Reply with too little probability on the scale, and with draws without a score."""
    if "top_logprobs" not in request.params:
        return drawn(request)
    return Response((Choice(BAD, "stop", (Token(BAD, -0.01, ((BAD, -0.01), ("4", -5.0))),)),))


@pytest.mark.parametrize(
    ("script", "options", "sent"),
    [
        (lambda _: BAD, {}, 20),
        (lambda _: BAD, {"repair": "on"}, 40),
        (lambda _: BAD, {"weighting": "auto"}, 20),
        (drawn, {"weighting": "samples", "draws": 5}, 20),
        (lambda _: text_response(BAD), {"weighting": "samples", "draws": 5}, 100),
        (unlikely, {"weighting": "auto", "draws": 5}, 40),
        (lambda _: {"no": 0.9, "4": 0.1}, {"weighting": "logprobs"}, 20),
        (lambda _: Response((Choice("", "content_filter"),)), {}, 20),
    ],
    ids=[
        "single",
        "repair",
        "auto",
        "draws",
        "one draw at a time",
        "unlikely",
        "logprobs",
        "filtered",
    ],
)
def test_twenty_judgments_without_a_score_end_a_criterion(
    script: Any, options: dict[str, Any], sent: int
) -> None:
    seen, result = run(script, **options)
    assert len(seen) == sent
    assert len({number(request) for request in seen}) == 20
    assert errors(result) == {"ParseError": 20, "NotAsked": 100}
    assert {f.stage for f in result.failures if f.error == "NotAsked"} == {"request"}
    (note,) = [note for note in result.info.notes if "stopped asking" in note]
    assert has_line(note, "relevance", "stopped", "first 20 replies")
    assert all(
        name in note for name in ("max_tokens", "reply", "structured", "model", "retry_failed=True")
    )
    assert '["' not in note  # several draws are stored as a list


@pytest.mark.parametrize(
    ("script", "counts"),
    [
        (lambda _: Refused("content policy"), {"Refused": 20, "NotAsked": 100}),
        (lambda _: Transient("busy", status=500), {"Transient": 20, "NotAsked": 100}),
        (
            lambda r: Refused("content policy") if number(r) % 2 else BAD,
            {"Refused": 60, "ParseError": 60},
        ),
        (
            lambda r: Refused("no") if number(r) % 2 else Transient("busy"),
            {"Refused": 60, "Transient": 60},
        ),
    ],
    ids=["refused", "busy", "refused or unreadable", "refused or busy"],
)
def test_requests_that_are_refused_for_one_reason_end_a_criterion(
    script: Any, counts: dict[str, int]
) -> None:
    seen, result = run(script)
    assert errors(result) == counts
    assert len(seen) == 120 - counts.get("NotAsked", 0)
    notes = " ".join(result.info.notes)
    assert has_line(notes, "first 20 requests failed") == ("NotAsked" in counts)


@pytest.mark.parametrize("readable", [0, 10, 19])
def test_one_score_among_the_first_keeps_a_criterion(readable: int) -> None:
    seen, result = run(lambda r: "4" if number(r) == readable else BAD)
    assert (len(seen), errors(result)) == (120, {"ParseError": 119})


def test_few_failures_or_equal_texts_do_not_stop_a_run() -> None:
    seen, result = run(lambda _: BAD, rows=ROWS[:20])
    assert (len(seen), errors(result)) == (20, {"ParseError": 20})
    assert "stopped" not in " ".join(result.info.notes)
    equal = [{**row, "output": f"Text {n % 19}."} for n, row in enumerate(ROWS)]
    assert errors(run(lambda _: BAD, rows=equal)[1]) == {"ParseError": 120}


def test_other_criteria_continue_after_an_early_stop() -> None:
    def script(request: Request) -> Reply:
        return BAD if "relevance" in request.messages[0]["content"].lower() else "4"

    seen, result = run(script, criteria=BOTH)
    assert len(seen) == 140
    assert {f.column for f in result.failures} == {"relevance"}
    assert len(result.table.scores) == 120


def test_each_judge_of_a_panel_counts_alone() -> None:
    judges = [Slow(lambda _: "4", model="one"), Slow(lambda _: BAD, model="two")]
    result = judge.evaluate(
        ROWS, ["relevance"], model=judges, metrics=[], cache=False, weighting="single", repair="off"
    )
    assert [len(each.seen) for each in judges] == [120, 20]
    assert any(note.startswith("relevance/two: judge stopped") for note in result.info.notes)


def test_the_same_command_stops_again_without_paying(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "cache": tmp_path / "cache",
        "out": tmp_path / "run",
        "criteria": BOTH,
    }
    assert len(run(lambda _: BAD, **options)[0]) == 40
    seen, result = run(lambda _: "4", **options)
    assert (len(seen), errors(result)) == (0, {"ParseError": 40, "NotAsked": 200})
    assert len(run(lambda _: BAD, retry_failed=True, **options)[0]) == 40, "which counts again"
    seen, result = run(lambda _: "4", retry_failed=True, **options)
    assert (len(seen), result.failures) == (240, ())


def test_a_retry_asks_all_failures_of_a_criterion_that_has_scores(tmp_path: Path) -> None:
    options: dict[str, Any] = {"cache": tmp_path / "cache", "out": tmp_path / "run"}
    script = lambda r: "4" if number(r) == 0 else BAD  # noqa: E731
    assert len(run(script, **options)[0]) == 120
    assert len(run(script, retry_failed=True, **options)[0]) == 119


def test_a_recording_of_such_a_run_has_the_same_failures(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    _, first = run(lambda _: BAD, record=path)
    second_run = judge.evaluate(
        ROWS, ["relevance"], replay=path, metrics=[], weighting="single", repair="off", cache=False
    )
    assert errors(second_run) == errors(first)
    assert "judge stopped asking" in " ".join(second_run.info.notes)


def test_all_that_a_recording_holds_is_read(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    run(lambda _: "4", record=path)
    run(lambda _: BAD, rows=ROWS[:20], record=path)
    second_run = judge.evaluate(
        ROWS, ["relevance"], replay=path, metrics=[], weighting="single", repair="off", cache=False
    )
    assert errors(second_run) == {"ParseError": 20}
