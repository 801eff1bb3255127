"""A run over long documents: each one's first request goes alone, and memory is bounded however much there is."""

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
    """Judgments in the order that suits a cache least: every document of a system, then those of the next."""
    by = [load(name) for name in CRITERIA]
    return [
        Judgment(Sample(str(d), str(s), f"text {d} {s}", document(d)), criterion)
        for s in range(systems)
        for d in range(documents)
        for criterion in by
    ]


class Watched(ScriptedProvider):
    """Says for each request how many of its document were answered before it, and how many are under way."""

    def __init__(self, script: Any = lambda _: {"4": 1.0}) -> None:
        super().__init__(script, endpoint="test")
        self.flying: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.cold: Counter[str] = Counter()

    async def complete(self, request: Request) -> Response:
        name = request.prefix[0]
        self.cold[name] += not self.answered[name]
        self.flying[name] += 1
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            return await super().complete(request)
        finally:
            self.flying[name] -= 1
            self.answered[name] += 1


def judged(judgments: Sequence[Judgment], provider: ScriptedProvider, **options: Any) -> list[Row]:
    run = Judged(judgments, provider, **options)
    asyncio.run(run())
    return run.rows


def test_the_first_request_of_a_document_is_answered_before_any_other_goes() -> None:
    provider = Watched()
    rows = judged(judgments(5, 4), provider)
    assert len([row for row in rows if isinstance(row, Score)]) == 40
    assert len(provider.cold) == 5
    assert set(provider.cold.values()) == {1}
    assert all(request.prefix[1] for request in provider.seen)


def test_a_document_that_is_asked_about_once_has_nothing_to_mark() -> None:
    provider = Watched()
    by = load("coherence")
    judged([Judgment(Sample(str(n), "s", "text", document(n)), by) for n in range(5)], provider)
    assert [request.prefix[1] for request in provider.seen] == [0] * 5


def test_a_rung_further_down_finds_the_document_in_the_cache() -> None:
    provider = Watched(lambda request: Response((Choice("4"),) * request.params.get("n", 1)))
    rows = judged(judgments(3, 3), provider)
    assert {row.provenance.method for row in rows if isinstance(row, Score)} == {"samples"}
    assert set(provider.cold.values()) == {1}


def test_a_leader_that_fails_does_not_keep_the_others_waiting() -> None:
    replies_left: list[Reply] = [Refused("no")]
    rows = judged(
        judgments(1, 4), Watched(lambda _: replies_left.pop() if replies_left else {"4": 1.0})
    )
    assert Counter(type(row).__name__ for row in rows) == {"Failure": 1, "Score": 7}


def test_an_engine_that_takes_all_before_it_answers_is_not_kept_waiting() -> None:
    provider = Watched()
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
    asyncio.run(Judged(data, Watched(script), emit=rows.append)())
    assert len(rows) == len(data)
    assert most <= WINDOW + len(CRITERIA)  # each template is rendered once before
