"""The runner: every judgment becomes a score or a failure, no request is repeated and no paid reply is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.cache import DiskCache, NoCache
from judge.core.errors import CriterionError, ParseError, ProviderError, Refused, StorageError
from judge.core.records import (
    Choice,
    Criterion,
    Failure,
    Request,
    Response,
    Sample,
    Score,
    Token,
    Usage,
)
from judge.criteria import load
from judge.execution.judging import Judging
from judge.execution.judgments import Judgment, Row
from judge.execution.layers.cached import ReplyStore
from judge.execution.layers.retried import Policy
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter
from judge.execution.reply_client import ReplyClient, SendingOptions, sending_layers
from judge.providers.scripted import Reply, ScriptedProvider
from judge.scoring.strategies import SamplingOptions
from tests.factories import no_sleep, text_response


def samples(count: int, *, same: bool = False) -> list[Sample]:
    return [
        Sample(str(i), "s", "same text" if same else f"text {i}", "the source")
        for i in range(count)
    ]


class Judged:
    """A run over samples with a scripted judge, and its rows."""

    def __init__(
        self,
        script: Callable[[Any], Reply],
        rows: list[Sample] | None = None,
        *,
        cache: DiskCache | NoCache | None = None,
        criteria: list[Criterion] | None = None,
        endpoint: str = "test",
        decides: bool = False,
        concurrency: int = 64,
        retry_failed: bool = False,
        **settings: Any,
    ) -> None:
        self.provider = ScriptedProvider(script, endpoint=endpoint, decides=decides)
        self.counts = JudgeProgress()
        self.rows: list[Row] = []
        judged = samples(3) if rows is None else rows
        criteria_or_default = criteria or [load("coherence")]
        self.criteria = criteria_or_default
        self.judgments = [
            Judgment(sample, criterion) for sample in judged for criterion in criteria_or_default
        ]
        options = SendingOptions(RateLimiter(concurrency), Policy(), sleep=no_sleep)
        self.store = ReplyStore(cache or NoCache())
        layers = sending_layers(self.provider.complete, options, self.store, self.counts)
        self.judging = Judging(
            ReplyClient(layers, self.store, self.counts),
            self.provider,
            SamplingOptions(**settings),
            criteria_or_default,
            emit=self.rows.append,
            counts=self.counts,
            retry_failed=retry_failed,
        )

    async def run(self) -> None:
        try:
            await self.judging.judge_all(self.judgments)
        finally:
            self.store.flush()

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


def test_strict_weighting_fails_instead_of_stepping_down() -> None:
    judged = Judged(lambda _: "4", weighting="logprobs")()
    assert judged.values == []
    first, *others = judged.failures
    assert (first.stage, first.error, first.raw) == ("parse", "ParseError", "4")
    assert [(f.stage, f.raw) for f in others] == [("request", "")] * 2
    assert "not asked" in others[0].message
    assert len(judged.provider.seen) == 1


@pytest.mark.parametrize("reply", ["7", "", "I cannot rate this.", "4.5"])
def test_a_reply_without_a_score_is_a_failure_that_keeps_it(reply: str) -> None:
    judged = Judged(lambda _: reply)()
    assert judged.values == []
    assert [(f.stage, f.raw) for f in judged.failures] == [("parse", reply)] * 3
    assert judged.counts.failed == 3


def test_equal_requests_are_sent_once() -> None:
    judged = Judged(lambda _: {"4": 1.0}, samples(5, same=True))()
    assert len(judged.values) == 5
    assert (judged.counts.sent, judged.counts.answered, judged.counts.shared) == (
        2,
        2,
        3,
    )  # the first request of a run goes alone


def test_a_second_run_sends_nothing(tmp_path: Path) -> None:
    first = Judged(lambda _: {"4": 0.5, "5": 0.5}, cache=DiskCache(tmp_path))()
    second = Judged(lambda _: Refused("asked again"), cache=DiskCache(tmp_path))()
    assert second.provider.seen == []
    assert second.rows == first.rows
    assert (second.counts.cached, second.counts.sent) == (3, 0)
    assert second.counts.served_by == first.counts.served_by == {"scripted"}


@pytest.mark.parametrize(
    "change",
    [{"endpoint": "another"}, {"temperature": 0.5}, {"weighting": "single"}, {"max_tokens": 5}],
)
def test_a_different_question_is_not_answered_from_the_cache(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    Judged(lambda _: "4", cache=DiskCache(tmp_path))()
    second_run = Judged(lambda _: "5", cache=DiskCache(tmp_path), **change)()
    assert second_run.values == [5.0] * 3


SCORELESS: dict[str, tuple[Reply, dict[str, Any]]] = {
    "prose": ("no idea", {}),
    "empty": ("", {}),
    "cut off": (Response((Choice("The text is", "length"),)), {}),
    "refused": (Response((Choice("I cannot", "refusal"),)), {}),
    "filtered": (Response((Choice("", "content_filter"),)), {}),
    "nothing": (Response(()), {}),
    "no probability on the scale": ({"no": 0.9, "4": 0.1}, {"weighting": "logprobs"}),
    "draws": (Response((Choice("no idea"),) * 3), {"weighting": "samples", "draws": 3}),
    "one draw at a time": ("no idea", {"weighting": "samples", "draws": 3}),
    "an answer to a question": (text_response("refused"), {"decides": True}),
}


@pytest.mark.parametrize(("reply", "how"), SCORELESS.values(), ids=SCORELESS)
def test_a_reply_without_a_score_is_paid_once_until_failures_are_retried(
    tmp_path: Path, reply: Reply, how: dict[str, Any]
) -> None:
    criteria = [replace(load("coherence"), form="decision")] if "decides" in how else None

    def judged(script: Callable[[Any], Reply], **more: Any) -> Judged:
        return Judged(script, cache=DiskCache(tmp_path), criteria=criteria, **how, **more)()

    first = judged(lambda _: reply)
    assert len(first.failures) == 3
    second_run = judged(lambda _: {"4": 1.0})
    assert (second_run.counts.sent, second_run.counts.failed_cached, second_run.counts.cached) == (
        0,
        3,
        3,
    )
    assert {(f.item, f.error, f.raw) for f in second_run.failures} == {
        (f.item, f.error, f.raw or second_run.failures[0].raw) for f in first.failures
    }
    if how.get("weighting") == "samples":
        retried = judged(lambda r: drawn(r, "4", "4", "4"), retry_failed=True)
    else:
        retried = judged(lambda _: {"4": 1.0}, retry_failed=True)
    assert (retried.values, retried.counts.failed_cached) == ([4.0] * 3, 0)
    assert judged(lambda _: Refused("asked again")).rows == retried.rows, (
        "the new replies replace the old"
    )


def test_a_model_without_probabilities_is_asked_once_until_failures_are_retried(
    tmp_path: Path,
) -> None:
    Judged(lambda _: "4", cache=DiskCache(tmp_path))()
    for _ in range(2):
        strict = Judged(
            lambda _: {"4": 1.0}, samples(5), cache=DiskCache(tmp_path), weighting="logprobs"
        )()
        assert (strict.counts.sent, len(strict.failures)) == (0, 5)
    options: dict[str, Any] = {"weighting": "logprobs", "retry_failed": True}
    still = Judged(lambda _: "4", samples(5), cache=DiskCache(tmp_path), **options)()
    assert (still.counts.sent, len(still.failures)) == (1, 5)
    assert (
        Judged(lambda _: {"4": 1.0}, samples(5), cache=DiskCache(tmp_path), **options)().values
        == [4.0] * 5
    )


def test_a_reply_that_was_cut_off_is_asked_again_with_more_tokens(tmp_path: Path) -> None:
    cut = Judged(
        lambda _: Response((Choice("The", "length"),)), cache=DiskCache(tmp_path), max_tokens=5
    )()
    assert "--max-tokens" in cut.failures[0].message
    assert (
        Judged(lambda _: {"4": 1.0}, cache=DiskCache(tmp_path), max_tokens=50)().values == [4.0] * 3
    )


def test_a_stored_reply_is_parsed_by_the_current_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(*_: Any, **__: Any) -> Any:
        raise ParseError("an older parser cannot read this")

    with monkeypatch.context() as older:
        older.setattr("judge.scoring.parse.find", unread)
        assert (
            len(Judged(lambda _: "4", cache=DiskCache(tmp_path), weighting="single")().failures)
            == 3
        )
    for retry_failed in (False, True):
        today = Judged(
            lambda _: Refused("asked again"),
            cache=DiskCache(tmp_path),
            weighting="single",
            retry_failed=retry_failed,
        )
        assert today().values == [4.0] * 3


def test_a_provider_without_endpoint_is_never_cached(tmp_path: Path) -> None:
    for _ in range(2):
        judged = Judged(lambda _: {"4": 1.0}, cache=DiskCache(tmp_path), endpoint="")()
        assert len(judged.provider.seen) == 3


def test_a_failed_request_is_a_failure_row_and_the_run_continues() -> None:
    def script(request: Any) -> Reply:
        return Refused("content policy") if "text 1" in request.messages[0]["content"] else "4"

    judged = Judged(script)()
    assert judged.values == [4.0, 4.0]
    assert [(f.item, f.stage, f.error, f.message) for f in judged.failures] == [
        ("1", "request", "Refused", "content policy")
    ]
    assert judged.counts.refused == 1


def test_a_wrong_key_stops_the_run_after_one_request() -> None:
    judged = Judged(lambda _: Refused("401", stops="always"), samples(50))
    with pytest.raises(Refused):
        judged()
    assert len(judged.provider.seen) == 1
    assert judged.rows == []


def test_scores_before_a_stop_are_saved(tmp_path: Path) -> None:
    replies_left: list[Reply | ProviderError] = [{"4": 1.0}] * 10

    def script(_: Any) -> Reply:
        return replies_left.pop() if replies_left else Refused("out of money", stops="always")

    judged = Judged(script, samples(50), cache=DiskCache(tmp_path), concurrency=1)
    with pytest.raises(Refused):
        judged()
    assert len(judged.values) == 10
    assert DiskCache(tmp_path).stats()["responses"] == 10


def test_a_cache_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    class Full(DiskCache):
        flushes_left = 10

        def flush(self) -> None:
            if self.flushes_left == 0:
                raise StorageError("disk full")
            self.flushes_left -= 1
            super().flush()

    judged = Judged(lambda _: {"4": 1.0}, samples(2000), cache=Full(tmp_path), concurrency=4)
    with pytest.raises(StorageError):
        judged()
    assert len(judged.provider.seen) <= len(judged.rows) + 4
    stored = DiskCache(tmp_path).stats()["responses"]
    assert 0 < stored <= len(judged.rows) == judged.counts.done <= stored + 4, (
        "only the last scores may be missing on disk"
    )


def test_unsaved_replies_count_towards_the_concurrency(tmp_path: Path) -> None:
    """At most `concurrency` replies are in flight or not yet on disk."""
    most_unsaved = 0

    class FlushWatcher(DiskCache):
        def flush(self) -> None:
            super().flush()
            on_disk.update(self.stats())

    def script(_: Any) -> Reply:
        nonlocal most_unsaved
        most_unsaved = max(most_unsaved, len(judged.provider.seen) - on_disk["responses"])
        return {"4": 1.0}

    on_disk = {"responses": 0}
    judged = Judged(script, samples(300), cache=FlushWatcher(tmp_path), concurrency=7)
    judged()
    assert most_unsaved == 7
    assert len(judged.values) == 300


def test_a_reply_is_stored_before_its_row_is_emitted(tmp_path: Path) -> None:
    judged = Judged(lambda _: {"4": 1.0}, samples(20), cache=DiskCache(tmp_path), concurrency=1)
    emitted: list[Row] = []

    def emit(row: Row) -> None:
        if len(emitted) == 5:
            raise StorageError("the journal's disk is full")
        emitted.append(row)

    judged.judging.emit = emit
    with pytest.raises(StorageError):
        judged()
    stored = DiskCache(tmp_path).stats()["responses"]
    assert len(emitted) < stored <= len(judged.provider.seen)


def test_a_template_that_fails_on_some_rows_fails_those_rows(tmp_path: Path) -> None:
    path = tmp_path / "tone.jinja"
    path.write_text("---\nscale: [1, 5]\n---\n{{ output }} {{ 1 / count }}", encoding="utf-8")
    rows = [Sample(str(n), "s", "x", extra={"count": n}) for n in (1, 0, 2)]
    judged = Judged(lambda _: "4", rows, criteria=[load(str(path))])()
    assert [(f.item, f.stage) for f in judged.failures] == [("0", "render")]
    assert len(judged.values) == 2


def test_a_template_that_fails_on_the_first_row_stops_the_run_before_any_request(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tone.jinja"
    path.write_text("---\nscale: [1, 5]\n---\n{{ output }} {{ 1 / 0 }}", encoding="utf-8")
    judged = Judged(lambda _: "4", criteria=[load(str(path))])
    with pytest.raises(CriterionError, match=r"tone\.jinja:4"):
        judged()
    assert judged.provider.seen == []


def test_usage_and_unmet_parameters_are_summed() -> None:
    response = Response((Choice("4"),), Usage(10, 1, 5, 0), "m-1", ("logprobs",))
    judged = Judged(lambda _: response, weighting="single")()
    assert judged.counts.usage == Usage(30, 3, 15, 0)
    assert judged.counts.unmet == {"logprobs": 3}
    assert judged.counts.served_by == {"m-1"}


def test_cancelling_keeps_received_replies(tmp_path: Path) -> None:
    judged: Judged

    def script(_: Any) -> Reply:
        if len(judged.rows) >= 20:
            asyncio.get_running_loop().call_soon(task.cancel)
        return {"4": 1.0}

    judged = Judged(script, samples(500), cache=DiskCache(tmp_path), concurrency=2)
    task: asyncio.Task[None]

    async def go() -> None:
        nonlocal task
        task = asyncio.create_task(judged.run())
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(go())
    n_before = len(judged.values)
    assert 20 <= n_before < 500
    stored = DiskCache(tmp_path).stats()["responses"]
    assert n_before <= stored <= n_before + 2, "a reply in flight may be stored without a row"


# Fallback strategies.


def drawn(request: Any, *texts: str) -> Reply:
    """Return as many texts as the request asks for draws."""
    return Response(tuple(Choice(text) for text in texts[: request.params.get("n", 1)]))


def test_missing_logprobs_are_detected_once_and_replaced_by_draws() -> None:
    judged = Judged(lambda r: drawn(r, *["4"] * 13, *["5"] * 6, "n/a"))()
    assert judged.values == [pytest.approx(4.3158, abs=5e-5)] * 3
    assert [r.params.get("n", 1) for r in judged.provider.seen] == [1, 20, 20, 20]
    assert ["top_logprobs" in r.params for r in judged.provider.seen] == [True, False, False, False]
    provenance = judged.rows[-1].provenance  # type: ignore[union-attr]
    assert (provenance.method, provenance.n) == ("samples", 19)
    assert "without token probabilities" in str(provenance.note)


def test_too_little_mass_makes_only_that_judgment_fall_back_to_draws() -> None:
    def script(request: Any) -> Reply:
        if "top_logprobs" not in request.params:
            return drawn(request, *["2"] * 20)
        if "text 1" in request.messages[0]["content"]:
            return Response(
                (Choice("3", "stop", (Token("3", -3.9, (("I", -0.02), ("3", -3.9))),)),)
            )
        return {"4": 1.0}

    judged = Judged(script)()
    assert [(r.item, r.value) for r in sorted(judged.rows, key=lambda r: r.item)] == [
        ("0", 4.0),
        ("1", 2.0),
        ("2", 4.0),
    ]  # type: ignore[union-attr]
    assert len(judged.provider.seen) == 4


def test_a_reply_without_probabilities_does_not_change_the_strategy_of_others() -> None:
    def script(request: Any) -> Reply:
        return "3" if "text 1" in request.messages[0]["content"] else {"4": 1.0}

    judged = Judged(script, samples(9), draws=2)()
    assert sorted(judged.values) == [3.0] + [4.0] * 8
    assert len(judged.provider.seen) == 10


def test_missing_draws_are_requested_again() -> None:
    labels = iter("44455" * 3)

    def script(request: Any) -> Reply:
        count = min(request.params.get("n", 1), 2)
        return Response(
            tuple(Choice(next(labels)) for _ in range(count)), unmet=("n",) if count < 5 else ()
        )

    judged = Judged(script, weighting="samples", draws=5)()
    assert judged.values == [pytest.approx(4.4)] * 3
    assert sorted(r.params.get("n", 1) for r in judged.provider.seen) == [1, 1, 1, 2, 2, 2, 2, 2, 5]
    assert next(labels, None) is None
    assert judged.counts.unmet["n"] == 9


def test_a_server_without_n_is_asked_once_for_each_draw(tmp_path: Path) -> None:
    judged = Judged(
        lambda _: text_response("4"), weighting="samples", draws=6, cache=DiskCache(tmp_path)
    )()
    assert judged.values == [4.0] * 3
    assert len(judged.provider.seen) == 18
    assert len({r.key() for r in judged.provider.seen}) == 18
    assert DiskCache(tmp_path).stats()["responses"] == 18


def test_more_draws_request_only_draws_missing_from_the_cache(tmp_path: Path) -> None:
    Judged(
        lambda r: drawn(r, "4", "4", "n/a"), weighting="samples", draws=3, cache=DiskCache(tmp_path)
    )()
    more = Judged(
        lambda r: drawn(r, "5", "5"), weighting="samples", draws=5, cache=DiskCache(tmp_path)
    )()
    assert more.values == [pytest.approx(4.5)] * 3
    assert [(r.draw, r.params["n"]) for r in more.provider.seen] == [(3, 2)] * 3
    second_run = Judged(
        lambda _: Refused("asked again"), weighting="samples", draws=5, cache=DiskCache(tmp_path)
    )()
    assert (second_run.provider.seen, second_run.rows) == ([], more.rows)


def test_a_second_run_with_fallback_strategies_sends_nothing(tmp_path: Path) -> None:
    first = Judged(lambda r: drawn(r, *["4"] * 20), cache=DiskCache(tmp_path))()
    second = Judged(lambda _: Refused("asked again"), cache=DiskCache(tmp_path))()
    assert (second.provider.seen, second.rows) == ([], first.rows)
    assert second.counts.cached == 3


def test_received_draws_are_stored_when_the_run_stops(tmp_path: Path) -> None:
    replies_left = ["4", "5", "4"]

    def script(_: Any) -> Reply:
        return (
            text_response(replies_left.pop())
            if replies_left
            else Refused("out of money", stops="always")
        )

    judged = Judged(
        script, samples(1), weighting="samples", draws=6, cache=DiskCache(tmp_path), concurrency=1
    )
    with pytest.raises(Refused):
        judged()
    assert DiskCache(tmp_path).stats()["responses"] == 3
    second_run = Judged(
        lambda r: drawn(r, "5", "5", "5"),
        samples(1),
        weighting="samples",
        draws=6,
        cache=DiskCache(tmp_path),
    )
    assert second_run().values == [pytest.approx(28 / 6)]


def test_temperature_zero_makes_no_draws_and_uses_the_first_reply() -> None:
    judged = Judged(lambda _: "4", temperature=0.0)()
    assert judged.values == [4.0] * 3
    assert {row.provenance.method for row in judged.rows} == {"single"}  # type: ignore[union-attr]
    assert "without token probabilities" in str(judged.rows[0].provenance.note)  # type: ignore[union-attr]


def test_unparsed_draws_fall_back_on_the_first_reply() -> None:
    judged = Judged(
        lambda r: "3" if "top_logprobs" in r.params else drawn(r, *["no"] * 20), samples(1)
    )()
    assert (judged.values, len(judged.provider.seen)) == ([3.0], 2)
    note = str(judged.rows[0].provenance.note)  # type: ignore[union-attr]
    assert "without token probabilities" in note
    assert "none of 20 draws" in note


def test_unparsed_draws_without_a_first_reply_request_one_more() -> None:
    judged = Judged(lambda r: drawn(r, *["no"] * 20) if "n" in r.params else "3", samples(2))()
    assert judged.values == [3.0, 3.0]
    assert [r.params.get("n", 1) for r in judged.provider.seen] == [1, 20, 20, 1]


def test_each_typed_question_is_a_separate_request(tmp_path: Path) -> None:
    criteria = [replace(load(name), form="decision") for name in ("coherence", "relevance")]
    shares = {str(n): 0.2 for n in range(1, 6)}
    first = Judged(
        lambda _: shares, criteria=criteria[:1], decides=True, cache=DiskCache(tmp_path)
    )()
    assert first.values == [pytest.approx(3.0)] * 3
    both = Judged(lambda _: shares, criteria=criteria, decides=True, cache=DiskCache(tmp_path))()
    assert len(both.values) == 6
    assert [[q["name"] for q in r.params["questions"]] for r in both.provider.seen] == [
        ["relevance"]
    ] * 3
    assert {row.provenance.method for row in both.rows} == {"decisions"}  # type: ignore[union-attr]


def test_a_temperature_is_unmet_only_if_a_score_used_it() -> None:
    def script(request: Any) -> Reply:
        cold = request.params["temperature"] != 1
        return Response(
            (Choice("4"),) * request.params.get("n", 1),
            unmet=("temperature", "logprobs") if cold else (),
        )

    assert Judged(script)().counts.unmet == {"logprobs": 1}
    assert Judged(script, weighting="single")().counts.unmet["temperature"] == 3


@pytest.mark.parametrize("weighting", ["auto", "logprobs"])
def test_stored_replies_stay_valid_if_the_server_stops_giving_probabilities(
    tmp_path: Path, weighting: str
) -> None:
    def first(request: Any) -> Reply:
        return "no idea" if "text 0" in request.messages[0]["content"] else {"4": 0.6, "5": 0.4}

    Judged(first, samples(9), cache=DiskCache(tmp_path), weighting=weighting)()
    later = Judged(
        lambda r: drawn(r, *["2"] * 20), samples(10), cache=DiskCache(tmp_path), weighting=weighting
    )()
    assert later.values.count(pytest.approx(4.4)) == 8
    assert len(later.provider.seen) == (2 if weighting == "auto" else 1)


def test_refused_draws_fall_back_to_the_first_score() -> None:
    thin = Response((Choice("3", "stop", (Token("3", -3.9, (("I", -0.02), ("3", -3.9))),)),))
    judged = Judged(
        lambda r: thin if "top_logprobs" in r.params else Refused("no draws here"), samples(1)
    )()
    assert judged.values == [3.0]
    assert "not answered: no draws here" in str(judged.rows[0].provenance.note)  # type: ignore[union-attr]


@pytest.mark.parametrize("concurrency", [1, 8])
def test_failures_of_equal_texts_are_retried_once(tmp_path: Path, concurrency: int) -> None:
    judgments = samples(4, same=True)
    options: dict[str, Any] = {
        "weighting": "single",
        "concurrency": concurrency,
        "retry_failed": True,
    }
    Judged(lambda _: "no idea", judgments, cache=DiskCache(tmp_path), weighting="single")()
    second_run = Judged(lambda _: "no idea", judgments, cache=DiskCache(tmp_path), **options)()
    assert (len(second_run.failures), second_run.counts.sent) == (4, 1), "once, and not for ever"
    mended = Judged(lambda _: "4", judgments, cache=DiskCache(tmp_path), **options)()
    assert (mended.values, mended.counts.sent) == ([4.0] * 4, 1)


def test_a_retry_keeps_the_draws_of_a_judgment_that_has_not_failed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"weighting": "samples", "draws": 6, "concurrency": 1}
    replies_left: list[Reply] = [text_response(text) for text in ("5", "no idea", "4")]
    with pytest.raises(Refused):
        Judged(
            lambda _: replies_left.pop() if replies_left else Refused("no money", stops="always"), samples(1),
            cache=DiskCache(tmp_path), **options,
        )()  # fmt: skip
    retried = Judged(
        lambda r: drawn(r, "4", "4", "4"),
        samples(1),
        cache=DiskCache(tmp_path),
        retry_failed=True,
        **options,
    )
    assert retried().values == [pytest.approx(21 / 5)]
    assert [(r.draw, r.params["n"]) for r in retried.provider.seen] == [(3, 3)]


def test_a_request_that_was_refused_is_sent_again(tmp_path: Path) -> None:
    """Errors are not stored in the cache."""
    Judged(lambda _: Refused("content policy"), cache=DiskCache(tmp_path))()
    assert DiskCache(tmp_path).stats()["responses"] == 0
    assert Judged(lambda _: {"4": 1.0}, cache=DiskCache(tmp_path))().values == [4.0] * 3


def test_after_a_refused_first_request_the_next_one_learns_the_traits() -> None:
    """Otherwise each judgment would try a strategy that the model does not support."""

    def script(request: Request) -> Reply:
        return Refused("no") if "text 0" in request.messages[0]["content"] else "4"

    judged = Judged(script, samples(15), weighting="logprobs")()
    errors = [failure.error for failure in judged.failures]
    assert Counter(errors) == {"Refused": 1, "ParseError": 1, "NotAsked": 13}
    assert len(judged.provider.seen) == 2


def test_a_reply_without_a_score_counts_once(tmp_path: Path) -> None:
    """With retry_failed, judge parses the stored reply before it sends the request again."""
    for retry_failed, reply in [(False, "no idea"), (True, "none")]:
        cache = DiskCache(tmp_path)
        judged = Judged(
            lambda _, reply=reply: reply, cache=cache, retry_failed=retry_failed, repair=True
        )()
        cache.close()
        assert (judged.counts.unread, judged.counts.repaired) == (3, 0)
        assert judged.counts.sent == 6


def test_equal_texts_share_their_draws() -> None:
    judged = Judged(lambda _: "4", samples(4, same=True), weighting="samples", draws=3)
    judged.judging.traits.proven.add("samples")  # the other requests do not wait for the first
    judged()
    assert judged.values == [4.0] * 4
    assert judged.counts.sent == 1
    assert (judged.counts.shared, judged.counts.cached) == (3, 0)


@pytest.mark.parametrize("retry_failed", [False, True])
def test_a_shared_reply_of_this_run_does_not_count_as_cached(
    tmp_path: Path, retry_failed: bool
) -> None:
    """Otherwise a note would blame older replies for missing scores and advise a retry."""
    cache = DiskCache(tmp_path)
    judged = Judged(
        lambda _: "no idea", samples(4, same=True), cache=cache, concurrency=1,
        retry_failed=retry_failed,
    )  # fmt: skip
    asyncio.run(judge_sequentially(judged))
    cache.close()
    assert judged.counts.sent == 1
    assert judged.counts.shared == 3
    assert (judged.counts.cached, judged.counts.failed_cached) == (0, 0)


async def judge_sequentially(judged: Judged) -> None:
    for judgment in judged.judgments:
        await judged.judging.judge_all([judgment])
