"""The runner: every judgment becomes a score or a failure, nothing is asked twice, nothing paid is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.cache import DiskCache, NoCache
from judge.criteria import load
from judge.errors import CriterionError, ParseError, ProviderError, Refused, StorageError, Transient
from judge.providers.scripted import Reply, ScriptedProvider
from judge.records import Choice, Criterion, Failure, Response, Sample, Score, Token, Usage
from judge.retry import Policy, Retrier
from judge.runner import Progress, Row, Run, Settings, ladder


async def no_sleep(_: float) -> None:
    await asyncio.sleep(0)


def samples(count: int, *, same: bool = False) -> list[Sample]:
    return [Sample(str(i), "s", "same text" if same else f"text {i}", "the source") for i in range(count)]


class Judged:
    """A run over samples with a scripted judge, and what came of it."""

    def __init__(
        self,
        script: Callable[[Any], Reply],
        rows: list[Sample] | None = None,
        *,
        cache: DiskCache | NoCache | None = None,
        criteria: list[Criterion] | None = None,
        endpoint: str = "test",
        **settings: Any,
    ) -> None:
        self.provider = ScriptedProvider(script, endpoint=endpoint)
        self.progress = Progress()
        self.rows: list[Row] = []
        self.run = Run(
            samples(3) if rows is None else rows,
            criteria or [load("coherence")],
            self.provider,
            Settings(**settings),
            cache=cache or NoCache(),
            retrier=Retrier(Policy(), sleep=no_sleep),
            emit=self.rows.append,
            progress=self.progress,
        )

    def __call__(self) -> Judged:
        asyncio.run(self.run())
        return self

    @property
    def values(self) -> list[float]:
        return [row.value for row in self.rows if isinstance(row, Score)]

    @property
    def failures(self) -> list[Failure]:
        return [row for row in self.rows if isinstance(row, Failure)]


def test_token_probabilities_become_the_score() -> None:
    judged = Judged(lambda _: {"4": 0.6, "5": 0.3, "3": 0.1})()
    assert judged.values == [pytest.approx(4.2)] * 3
    provenance = judged.rows[0].provenance  # type: ignore[union-attr]
    assert provenance.method == "logprobs"
    assert provenance.mass == pytest.approx(1.0)
    assert provenance.raw == "4"


def test_every_criterion_is_asked_of_every_sample() -> None:
    judged = Judged(lambda _: "3", criteria=[load("coherence"), load("relevance")])()
    assert {(r.item, r.column) for r in judged.rows} == {
        (str(i), c) for i in range(3) for c in ("coherence", "relevance")
    }
    assert (judged.progress.total, judged.progress.done, judged.progress.sent) == (6, 6, 6)


def test_without_probabilities_the_written_score_counts_and_says_why() -> None:
    judged = Judged(lambda _: "4")()
    provenance = judged.rows[0].provenance  # type: ignore[union-attr]
    assert (judged.values, provenance.method) == ([4.0] * 3, "single")
    assert "without token probabilities" in str(provenance.note)


def test_too_little_mass_goes_one_rung_down() -> None:
    judged = Judged(lambda _: Response((Choice("3", "stop", (Token("3", -3.9, (("I", -0.02), ("3", -3.9))),)),)))()
    provenance = judged.rows[0].provenance  # type: ignore[union-attr]
    assert (judged.values[0], provenance.method) == (3.0, "single")
    assert "0.02" in str(provenance.note)


def test_strict_weighting_fails_instead_of_stepping_down() -> None:
    judged = Judged(lambda _: "4", weighting="logprobs")()
    assert judged.values == []
    assert {(f.stage, f.error, f.raw) for f in judged.failures} == {("parse", "ParseError", "4")}


def test_single_weighting_does_not_ask_for_probabilities() -> None:
    judged = Judged(lambda _: {"4": 0.6, "5": 0.4}, weighting="single")()
    assert judged.values == [4.0] * 3
    assert "top_logprobs" not in judged.provider.seen[0].params


@pytest.mark.parametrize("reply", ["7", "", "I cannot rate this.", "4.5"])
def test_a_reply_without_a_score_is_a_failure_that_keeps_it(reply: str) -> None:
    judged = Judged(lambda _: reply)()
    assert judged.values == []
    assert [(f.stage, f.raw) for f in judged.failures] == [("parse", reply)] * 3
    assert judged.progress.failed == 3


def test_equal_requests_are_sent_once() -> None:
    judged = Judged(lambda _: "4", samples(5, same=True))()
    assert len(judged.provider.seen) == 1
    assert len(judged.values) == 5
    assert (judged.progress.sent, judged.progress.shared) == (1, 4)


def test_a_second_run_sends_nothing(tmp_path: Path) -> None:
    first = Judged(lambda _: {"4": 0.5, "5": 0.5}, cache=DiskCache(tmp_path))()
    second = Judged(lambda _: Refused("asked again"), cache=DiskCache(tmp_path))()
    assert second.provider.seen == []
    assert second.rows == first.rows
    assert (second.progress.cached, second.progress.sent) == (3, 0)


@pytest.mark.parametrize(
    "change", [{"endpoint": "another"}, {"temperature": 0.5}, {"weighting": "single"}, {"max_tokens": 5}]
)
def test_another_question_is_not_answered_from_the_cache(tmp_path: Path, change: dict[str, Any]) -> None:
    Judged(lambda _: "4", cache=DiskCache(tmp_path))()
    again = Judged(lambda _: "5", cache=DiskCache(tmp_path), **change)()
    assert again.values == [5.0] * 3


def test_unusable_replies_are_not_kept(tmp_path: Path) -> None:
    Judged(lambda _: "no idea", cache=DiskCache(tmp_path))()
    again = Judged(lambda _: "4", cache=DiskCache(tmp_path))()
    assert again.values == [4.0] * 3


def test_strict_weighting_asks_again_where_the_kept_reply_has_no_probabilities(tmp_path: Path) -> None:
    Judged(lambda _: "4", cache=DiskCache(tmp_path))()
    strict = Judged(lambda _: {"4": 1.0}, cache=DiskCache(tmp_path), weighting="logprobs")()
    assert len(strict.provider.seen) == 3
    assert strict.values == [4.0] * 3


def test_a_provider_without_endpoint_is_never_cached(tmp_path: Path) -> None:
    for _ in range(2):
        judged = Judged(lambda _: "4", cache=DiskCache(tmp_path), endpoint="")()
        assert len(judged.provider.seen) == 3


def test_failures_of_single_requests_are_rows_and_the_rest_goes_on() -> None:
    def script(request: Any) -> Reply:
        return Refused("content policy") if "text 1" in request.messages[0]["content"] else "4"

    judged = Judged(script)()
    assert judged.values == [4.0, 4.0]
    assert [(f.item, f.stage, f.error, f.message) for f in judged.failures] == [
        ("1", "request", "Refused", "content policy")
    ]
    assert judged.progress.refused == 1


def test_transient_errors_are_outlived() -> None:
    outcomes: list[Reply] = [Transient("busy", status=429, retry_after=1.0), Transient("502", status=502)]
    judged = Judged(lambda _: outcomes.pop(0) if outcomes else "4")()
    assert judged.values == [4.0] * 3


def test_a_wrong_key_stops_the_run_after_one_request() -> None:
    judged = Judged(lambda _: Refused("401", stops="always"), samples(50))
    with pytest.raises(Refused):
        judged()
    assert len(judged.provider.seen) == 1
    assert judged.rows == []


def test_what_was_scored_before_a_stop_stands(tmp_path: Path) -> None:
    left: list[Reply | ProviderError] = ["4"] * 10

    def script(_: Any) -> Reply:
        return left.pop() if left else Refused("out of money", stops="always")

    judged = Judged(script, samples(50), cache=DiskCache(tmp_path), concurrency=1)
    with pytest.raises(Refused):
        judged()
    assert len(judged.values) == 10
    assert DiskCache(tmp_path).stats()["responses"] == 10


def test_a_cache_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    class Full(DiskCache):
        def flush(self) -> None:
            if self._pending:
                raise StorageError("disk full")

    judged = Judged(lambda _: "4", samples(2000), cache=Full(tmp_path), concurrency=4)
    with pytest.raises(StorageError):
        judged()
    assert 0 < len(judged.values) < 2000


def test_a_reply_is_kept_before_its_row_is_handed_on(tmp_path: Path) -> None:
    judged = Judged(lambda _: "4", samples(20), cache=DiskCache(tmp_path), concurrency=1)
    emitted: list[Row] = []

    def emit(row: Row) -> None:
        if len(emitted) == 5:
            raise StorageError("the journal's disk is full")
        emitted.append(row)

    judged.run._emit = emit
    with pytest.raises(StorageError):
        judged()
    assert DiskCache(tmp_path).stats()["responses"] == len(judged.provider.seen) == 6


def test_a_template_that_fails_on_some_rows_fails_those_rows(tmp_path: Path) -> None:
    path = tmp_path / "tone.jinja"
    path.write_text("---\nscale: [1, 5]\n---\n{{ output }} {{ 1 / count }}", encoding="utf-8")
    rows = [Sample(str(n), "s", "x", extra={"count": n}) for n in (1, 0, 2)]
    judged = Judged(lambda _: "4", rows, criteria=[load(str(path))])()
    assert [(f.item, f.stage) for f in judged.failures] == [("0", "render")]
    assert len(judged.values) == 2


def test_a_template_that_fails_on_the_first_row_stops_before_anything_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "tone.jinja"
    path.write_text("---\nscale: [1, 5]\n---\n{{ output }} {{ 1 / 0 }}", encoding="utf-8")
    judged = Judged(lambda _: "4", criteria=[load(str(path))])
    with pytest.raises(CriterionError, match=r"tone\.jinja:4"):
        judged()
    assert judged.provider.seen == []


def test_usage_and_what_the_server_would_not_do_are_summed() -> None:
    response = Response((Choice("4"),), Usage(10, 1, 5, 0), "m-1", ("logprobs",))
    judged = Judged(lambda _: response)()
    assert judged.progress.usage == Usage(30, 3, 15, 0)
    assert judged.progress.unmet == {"logprobs": 3}
    assert judged.progress.served_by == {"m-1"}


def test_cancelling_keeps_what_came_back(tmp_path: Path) -> None:
    judged: Judged

    def script(_: Any) -> Reply:
        if len(judged.rows) == 20:
            asyncio.get_running_loop().call_soon(task.cancel)
        return "4"

    judged = Judged(script, samples(500), cache=DiskCache(tmp_path), concurrency=2)
    task: asyncio.Task[None]

    async def go() -> None:
        nonlocal task
        task = asyncio.create_task(judged.run())
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(go())
    kept = len(judged.values)
    assert 20 <= kept < 500
    assert DiskCache(tmp_path).stats()["responses"] == kept


def test_the_ladder_refuses_a_cut_reply_even_with_probabilities() -> None:
    cut = Choice("1", "length", (Token("1", 0.0, (("1", 0.0),)),))
    with pytest.raises(ParseError):
        ladder(Response((cut,)), load("coherence"), Settings())
    with pytest.raises(ParseError, match="holds no reply"):
        ladder(Response(()), load("coherence"), Settings())
