"""Runs in which all criteria of a text are asked in one request."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.cache import DiskCache, NoCache
from judge.core.errors import ConfigError, Refused
from judge.core.records import Choice, Failure, Request, Response, Sample, Score, Token
from judge.criteria import load
from judge.execution.pending import Judgment, Row
from judge.execution.progress import JudgeProgress
from judge.execution.retry import Policy, Retrier
from judge.execution.scheduler import JudgeRun
from judge.providers.scripted import Reply, ScriptedProvider
from judge.scoring.strategies import SamplingOptions

THREE = ("relevance", "coherence", "consistency")
FOUR = (*THREE, "fluency")
REPLY = {"relevance": 4, "coherence": 2, "consistency": 5, "fluency": 3}
ROWS = [{"item": i, "system": s, "source": "The source.", "output": f"{s} {i}"} for i in "12" for s in "xy"]


async def no_sleep(_: float) -> None:
    await asyncio.sleep(0)


def said(request: Request, reply: dict[str, Any] | str | None = None) -> Response:
    """The reply to a merged prompt, as often as it is asked for, with its tokens where they are wanted."""
    if "response_format" not in request.params:
        return Response((Choice("3"),) * request.params.get("n", 1))
    keys = request.params["response_format"]["json_schema"]["schema"]["required"]
    text = reply if isinstance(reply, str) else json.dumps({k: v for k, v in (reply or REPLY).items() if k in keys})
    tokens = tuple(Token(c, 0.0, ((c, math.log(0.75)), ("1", math.log(0.25)))) for c in text)
    choice = Choice(text, "stop", tokens if "top_logprobs" in request.params else None)
    return Response((choice,) * request.params.get("n", 1))


class Merged:
    """A merged run, and what came of it."""

    def __init__(
        self,
        script: Callable[[Request], Reply] = said,
        *,
        names: tuple[str, ...] = FOUR,
        count: int = 3,
        cache: DiskCache | NoCache | None = None,
        retry_failed: bool = False,
        **settings: Any,
    ) -> None:
        self.provider = ScriptedProvider(script, endpoint="test")
        self.counts, self.rows = JudgeProgress(), list[Row]()
        criteria = [replace(load(name), merged=True) for name in names]
        samples = [Sample(str(i), "s", f"text {i}", "the source") for i in range(count)]
        judgments = [Judgment(sample, criterion) for sample in samples for criterion in criteria]
        run = JudgeRun(
            judgments, self.provider, SamplingOptions(**settings), cache=cache or NoCache(),
            retrier=Retrier(Policy(), sleep=no_sleep), emit=self.rows.append, counts=self.counts,
            retry_failed=retry_failed,
        )  # fmt: skip
        asyncio.run(run())

    @property
    def values(self) -> dict[str, set[float]]:
        found: dict[str, set[float]] = {}
        for row in self.rows:
            if isinstance(row, Score):
                found.setdefault(row.column, set()).add(row.value)
        return found

    @property
    def failures(self) -> list[Failure]:
        return [row for row in self.rows if isinstance(row, Failure)]


def test_criteria_that_show_the_same_texts_take_one_request() -> None:
    one = Merged(weighting="single")
    assert one.values == {"relevance": {4.0}, "coherence": {2.0}, "consistency": {5.0}, "fluency": {3.0}}
    assert (one.counts.sent, one.counts.done, one.counts.failed) == (6, 12, 0)  # fluency hides the source
    assert all("criterion" not in request.params for request in one.provider.seen)


@pytest.mark.parametrize("count", [1, 25, 70])
def test_a_text_is_never_asked_about_twice(count: int) -> None:
    """However the run cuts its work into pieces."""
    one = Merged(names=THREE, count=count, weighting="single")
    assert one.counts.sent == len({r.messages[0]["content"] for r in one.provider.seen}) == count
    assert one.counts.done == 3 * count


def test_each_score_is_weighed_by_its_own_tokens() -> None:
    one = Merged(names=THREE, weighting="logprobs")
    for name in THREE:
        (value,) = one.values[name]
        assert value == pytest.approx(0.75 * REPLY[name] + 0.25 * 1)


def test_a_reply_that_is_nearly_json_is_weighed_stored_and_marked(tmp_path: Path) -> None:
    text = "Here it is: {'relevance': 4, 'coherence': 2, 'consistency': 5,}"
    for weighting in ("logprobs", "samples", "single"):
        with DiskCache(tmp_path / weighting) as cache:
            settings: dict[str, Any] = {"names": THREE, "cache": cache, "weighting": weighting, "draws": 2}
            first, again = (Merged(lambda request: said(request, text), **settings) for _ in range(2))
            strict = Merged(**settings, strict=True)
        assert (first.counts.sent, again.counts.sent, strict.counts.sent) == (3, 0, 0)
        for one in (first, again):
            assert {row.provenance.reading for row in one.rows if isinstance(row, Score)} == {"prose"}
            share = 0.25 if weighting == "logprobs" else 0.0
            assert one.values == {name: {(1 - share) * REPLY[name] + share} for name in THREE}
        assert len(strict.failures) == 9
        assert all("nearly a JSON object" in failure.message for failure in strict.failures)


def test_draws_of_all_criteria_come_from_one_request() -> None:
    one = Merged(names=THREE, count=2, weighting="samples", draws=5)
    assert [r.params["n"] for r in one.provider.seen] == [5, 5]
    assert {row.provenance.n for row in one.rows if isinstance(row, Score)} == {5}
    assert one.values == {name: {float(REPLY[name])} for name in THREE}


def test_a_server_that_draws_fewer_is_asked_for_the_rest() -> None:
    def two_at_most(request: Request) -> Reply:
        whole = said(request)
        return replace(whole, choices=whole.choices[:2])

    one = Merged(two_at_most, names=THREE, count=1, weighting="samples", draws=5)
    assert [r.params.get("n", 1) for r in one.provider.seen] == [5, 2, 1]
    assert one.values == {name: {float(REPLY[name])} for name in THREE}
    assert {row.provenance.n for row in one.rows if isinstance(row, Score)} == {5}


def test_without_probabilities_all_criteria_step_down_together() -> None:
    one = Merged(
        lambda r: replace(said(r), choices=tuple(replace(c, tokens=None) for c in said(r).choices)), names=THREE
    )
    assert one.counts.failed == 0
    assert one.counts.sent == 1 + 3  # the first reply shows it, and each text is drawn once
    assert {row.provenance.method for row in one.rows if isinstance(row, Score)} == {"samples"}


@pytest.mark.parametrize(
    ("reply", "failed"),
    [
        ({"relevance": 4, "coherence": 2}, {"consistency"}),
        ({"relevance": 4, "coherence": 9, "consistency": 5}, {"coherence"}),
        ("4", set(THREE)),
        ('{"relevance": 4, ', set(THREE)),
    ],
)
def test_what_is_missing_fails_alone(reply: Any, failed: set[str], tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    one = Merged(lambda r: said(r, reply), names=THREE, count=1, weighting="single", cache=cache)
    assert {f.column for f in one.failures} == failed
    assert {f.stage for f in one.failures} <= {"parse"}
    assert all(f.raw for f in one.failures)
    again = Merged(said, names=THREE, count=1, weighting="single", cache=cache)
    assert (again.counts.sent, again.counts.failed) == (0, len(failed))
    retried = Merged(said, names=THREE, count=1, weighting="single", cache=cache, retry_failed=True)
    assert (retried.counts.sent, retried.counts.failed) == (1, 0)
    cache.close()


def test_replies_are_kept_by_criterion_and_by_what_stood_beside_it(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    assert Merged(names=THREE, weighting="single", cache=cache).counts.sent == 3
    again = Merged(names=THREE, weighting="single", cache=cache)
    assert (again.counts.sent, again.counts.cached) == (0, 9)
    assert again.values == {name: {float(REPLY[name])} for name in THREE}
    assert Merged(names=THREE[:2], weighting="single", cache=cache).counts.sent == 3  # in other company
    cache.close()


def test_what_failed_is_asked_again_in_the_company_it_had(tmp_path: Path) -> None:
    first = judge.ScriptedProvider(lambda r: said(r, {"relevance": 4, "coherence": 2}), endpoint="x")
    assert {f.column for f in evaluate(first, cache=tmp_path).failures} == {"consistency"}
    again = judge.ScriptedProvider(said, endpoint="x")
    result = evaluate(again, cache=tmp_path, retry_failed=True)
    assert result.failures == ()
    assert [r.messages for r in again.seen] == [r.messages for r in first.seen]


def test_a_refused_request_fails_all_its_criteria_once() -> None:
    one = Merged(lambda _: Refused("no"), names=THREE, count=2, weighting="single")
    assert (one.counts.sent, one.counts.failed, one.counts.refused) == (2, 6, 2)


# A whole run.


def evaluate(model: Any, **options: Any) -> judge.Result:
    given = {"metrics": [], "cache": False, "weighting": "single", "repair": "off", "merge_criteria": True, **options}
    return judge.evaluate(ROWS, given.pop("criteria", THREE), model=model, **given)


def test_the_signature_says_with_how_many_others() -> None:
    merged = evaluate(judge.ScriptedProvider(said)).info["signatures"]
    assert all("|merged=3@" in merged[name] for name in THREE)
    two = evaluate(judge.ScriptedProvider(said), criteria=THREE[:2]).info["signatures"]
    assert two["relevance"] != merged["relevance"]
    apart = evaluate(judge.ScriptedProvider(said), merge_criteria=False).info["signatures"]
    assert "merged" not in apart["relevance"]


def test_only_what_shares_a_request_is_signed_as_merged() -> None:
    four = evaluate(judge.ScriptedProvider(said), criteria=FOUR)
    three = evaluate(judge.ScriptedProvider(said)).info["signatures"]
    assert {name: four.info["signatures"][name] for name in THREE} == three  # fluency hides the source
    plain = evaluate(judge.ScriptedProvider(said), criteria=("fluency",), merge_criteria=False).info["signatures"]
    assert four.info["signatures"]["fluency"] == plain["fluency"]
    assert not any("--merge-criteria" in note for note in four.info["notes"])
    none = evaluate(judge.ScriptedProvider(said), criteria=("relevance", "fluency"))
    assert "merged" not in "".join(none.info["signatures"].values())
    assert "No two criteria show the same texts: merge_criteria had no effect." in none.info["notes"]


def test_the_report_keeps_the_whole_prompt() -> None:
    prompts = evaluate(judge.ScriptedProvider(said)).info["prompts"]
    assert len(prompts["sheets"]) == 1
    ((role, parts),) = prompts["sheets"][0]
    assert role == "user"
    assert "=== 3. consistency ===" in "".join(parts)


def test_a_recording_answers_for_each_criterion(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    first = evaluate(judge.ScriptedProvider(said, endpoint="x"), record=path, weighting="samples", draws=3)
    again = evaluate(None, replay=path, weighting="samples", draws=3)
    assert again.failures == ()
    key = lambda s: (s.item, s.system, s.column)  # noqa: E731
    assert [s.value for s in sorted(again.table.scores, key=key)] == [
        s.value for s in sorted(first.table.scores, key=key)
    ]


def test_typed_questions_are_asked_together_as_ever() -> None:
    provider = judge.ScriptedProvider(lambda _: {"4": 1.0}, decides=True)
    result = evaluate(provider, weighting="auto")
    assert len(provider.seen) == len(ROWS)
    assert "merged" not in result.info["signatures"]["relevance"]
    assert any("merge_criteria had no effect" in note for note in result.info["notes"])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"criteria": ["relevance"]}, "two criteria or more"),
        ({"reply": "score_then_reason"}, "relevance asks for a reason"),
    ],
)
def test_what_cannot_be_merged_is_refused_unpaid(options: dict[str, Any], reason: str) -> None:
    provider = judge.ScriptedProvider(said)
    with pytest.raises(ConfigError, match=reason):
        evaluate(provider, **options)
    assert provider.seen == []


def test_comparisons_are_not_merged() -> None:
    with pytest.raises(ConfigError, match=r"judge\.rank"):
        judge.rank(ROWS, ["overall", "fluency"], model=judge.ScriptedProvider(said), cache=False, merge_criteria=True)
