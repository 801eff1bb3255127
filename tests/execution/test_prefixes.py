"""A run over long documents: the first request of each goes alone, and memory use is bounded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from judge.core.errors import Refused
from judge.core.records import Choice, Request, Response, Sample, Score
from judge.criteria import load
from judge.criteria.render import Renderer
from judge.execution.judging import WINDOW
from judge.execution.judgments import Judgment, Row, by_document
from judge.providers.scripted import Reply, ScriptedProvider
from tests.senders import Judged

CRITERIA = ("coherence", "relevance")


def document(number: int) -> str:
    return f"Report {number}. " + "The council met on Tuesday and spoke of the bridge. " * 100


def judgments(documents: int, systems: int) -> list[Judgment]:
    """Return judgments sorted by system. A prompt cache gains least from this order."""
    criteria = [load(name) for name in CRITERIA]
    return [
        Judgment(Sample(str(d), str(s), f"text {d} {s}", document(d)), criterion)
        for s in range(systems)
        for d in range(documents)
        for criterion in criteria
    ]


class CountingProvider(ScriptedProvider):
    """Count the requests in flight and answered for each document, and those sent before the first answer."""

    def __init__(self, script: Any = lambda _: {"4": 1.0}) -> None:
        super().__init__(script, endpoint="test")
        self.in_flight: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.cold: Counter[str] = Counter()

    async def complete(self, request: Request) -> Response:
        name = request.prefix[0]
        self.cold[name] += not self.answered[name]
        self.in_flight[name] += 1
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            return await super().complete(request)
        finally:
            self.in_flight[name] -= 1
            self.answered[name] += 1


def judged(judgments: Sequence[Judgment], provider: ScriptedProvider, **options: Any) -> list[Row]:
    run = Judged(judgments, provider, **options)
    asyncio.run(run())
    return run.rows


def test_the_first_request_of_a_document_is_answered_before_others_are_sent() -> None:
    provider = CountingProvider()
    rows = judged(judgments(5, 4), provider)
    assert len([row for row in rows if isinstance(row, Score)]) == 40
    assert len(provider.cold) == 5
    assert set(provider.cold.values()) == {1}
    assert all(request.prefix[1] for request in provider.seen)


def test_a_document_with_one_request_gets_no_cache_mark() -> None:
    provider = CountingProvider()
    by = load("coherence")
    judged([Judgment(Sample(str(n), "s", "text", document(n)), by) for n in range(5)], provider)
    assert [request.prefix[1] for request in provider.seen] == [0] * 5


def test_a_fallback_strategy_uses_the_prompt_cache() -> None:
    provider = CountingProvider(
        lambda request: Response((Choice("4"),) * request.params.get("n", 1))
    )
    rows = judged(judgments(3, 3), provider)
    assert {row.provenance.method for row in rows if isinstance(row, Score)} == {"samples"}
    assert set(provider.cold.values()) == {1}


def test_a_failed_first_request_releases_the_others() -> None:
    replies_left: list[Reply] = [Refused("no")]
    rows = judged(
        judgments(1, 4),
        CountingProvider(lambda _: replies_left.pop() if replies_left else {"4": 1.0}),
    )
    assert Counter(type(row).__name__ for row in rows) == {"Failure": 1, "Score": 7}


def test_an_engine_that_gathers_requests_gets_them_without_prefixes() -> None:
    provider = CountingProvider()
    assert len(judged(judgments(3, 3), provider, gathers=True)) == 18
    assert {request.prefix for request in provider.seen} == {("", 0)}


def test_judgments_on_one_document_come_together_and_keep_their_order_within_it() -> None:
    data = judgments(3, 2)
    order = [(j.sample.item, j.sample.system, j.criterion.name) for j in by_document(data)]
    assert order == [
        (str(d), str(s), name) for d in range(3) for s in range(2) for name in CRITERIA
    ]


def test_short_documents_keep_the_order_of_the_data() -> None:
    judgments = [
        Judgment(Sample(str(n), "s", "text", f"source {n % 2}"), load("coherence"))
        for n in range(6)
    ]
    assert list(by_document(judgments)) == judgments


@pytest.mark.parametrize("steps_down", [False, True])
@pytest.mark.slow
def test_prompts_are_made_as_they_are_needed(
    monkeypatch: pytest.MonkeyPatch, steps_down: bool
) -> None:
    most = rendered = 0
    rows: list[Row] = []

    render = Renderer.render

    def counted(self: Renderer, *args: Any) -> Any:
        nonlocal rendered, most
        rendered += 1
        most = max(most, rendered - len(rows))
        return render(self, *args)

    monkeypatch.setattr(Renderer, "render", counted)

    def script(request: Request) -> Reply:
        if steps_down and "top_logprobs" in request.params:
            return {"no": 0.9, "4": 0.1}
        return Response((Choice("4"),) * request.params.get("n", 1)) if steps_down else {"4": 1.0}

    data = judgments(20, 20)
    asyncio.run(Judged(data, CountingProvider(script), emit=rows.append)())
    assert len(rows) == len(data)
    assert most <= WINDOW + len(CRITERIA)  # judge renders each template once before the run
