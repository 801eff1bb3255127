"""Which request goes next: a leader before its followers, no key too often, and never idle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.records import Example, Request, Sample
from judge.criteria import load, template_bodies
from judge.criteria.render import Renderer
from judge.execution import prefix_queue
from judge.execution.prefix_queue import PrefixAwareQueue, prefix

LONG = "The council met on Tuesday and spoke of the bridge. " * 100


def of(group: str, count: int, first: int = 0) -> list[Request]:
    """Requests of a group, or of none."""
    length = 9 if group else 0
    return [
        Request(f"{group}{n}", ({"role": "user", "content": group},), prefix=(group, length))
        for n in range(first, first + count)
    ]


def taken(queue: PrefixAwareQueue, now: float = 0.0, *, last: bool = False) -> list[str]:
    """All that can go now."""
    found = []
    while (request := queue.take(now, last=last)) is not None:
        found.append(request.model)
    return found


def test_one_alone_waits_to_see_whether_another_comes_and_is_then_not_marked() -> None:
    queue = PrefixAwareQueue()
    queue.add(of("a", 1), 0.0)
    assert taken(queue) == []
    queue.add(of("b", 1), 0.0)
    alone = queue.take(0.0, last=False)
    assert alone is not None
    assert (alone.model, alone.prefix) == ("a0", ("a", 0))
    queue.add(of("b", 1, 1), 0.0)
    leader = queue.take(0.0, last=False)
    assert leader is not None
    assert (leader.model, leader.prefix) == ("b0", ("b", 9))


def test_what_comes_later_to_a_group_that_was_answered_needs_no_leader() -> None:
    queue = PrefixAwareQueue()
    first = of("a", 2)
    queue.add(first, 0.0)
    queue.take(0.0, last=True)
    queue.answered(first[0], 1.0)
    assert taken(queue, 1.0) == ["a1"]
    queue.add(of("a", 3, 2), 2.0)
    assert taken(queue, 2.0) == ["a2", "a3", "a4"]


def test_after_minutes_without_use_a_group_needs_a_leader_again() -> None:
    queue = PrefixAwareQueue()
    first = of("a", 2)
    queue.add(first, 0.0)
    queue.take(0.0, last=True)
    queue.answered(first[0], 1.0)
    queue.take(1.0, last=True)
    queue.add(of("a", 3, 2), 302.0)
    assert taken(queue, 302.0) == ["a2"]


def test_a_group_that_has_had_its_share_rests_although_its_prefix_has_grown_cold() -> None:
    queue = PrefixAwareQueue(paced=True)
    requests = of("a", 20)
    queue.add(requests, 0.0)
    queue.take(0.0, last=False)
    queue.answered(requests[0], 0.0)
    assert len(taken(queue, 290.0)) == 15
    assert taken(queue, 305.0) == []
    assert taken(queue, 351.0) == ["a16"]  # a leader


def test_a_paced_group_has_fifteen_a_minute_while_there_is_anything_else() -> None:
    queue = PrefixAwareQueue(paced=True)
    a, b = of("a", 40), of("b", 40)
    queue.add([*a, *b], 0.0)
    assert taken(queue) == ["a0", "b0"]
    queue.answered(a[0], 1.0)
    queue.answered(b[0], 1.0)
    now = taken(queue, 1.0)
    assert Counter(name[0] for name in now) == {"a": 14, "b": 14}
    assert taken(queue, 59.0) == []
    assert Counter(name[0] for name in taken(queue, 62.0)) == {"a": 15, "b": 15}


def test_a_server_of_one_s_own_is_not_paced() -> None:
    queue = PrefixAwareQueue()
    a = of("a", 40)
    queue.add(a, 0.0)
    queue.take(0.0, last=True)
    queue.answered(a[0], 1.0)
    assert len(taken(queue, 1.0)) == 39


def test_it_is_full_by_the_size_of_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_queue, "ROOM", 1_000)
    queue = PrefixAwareQueue()
    big = replace(of("a", 1)[0], messages=({"role": "user", "content": "x" * 2_000},))
    queue.add([big], 0.0)
    assert queue.full
    assert queue.take(0.0, last=True) is not None
    assert not queue.full


class Sender:
    """Sends what a queue gives, and sees to it that no group has two leaders under way."""

    def __init__(self, *, paced: bool) -> None:
        self.queue, self.now = PrefixAwareQueue(paced=paced), 0.0
        self.flying: list[Request] = []
        self.sent: list[str] = []
        self.added: Counter[str] = Counter()
        self.answers: dict[str, float] = {}

    def add(self, group: str, count: int) -> None:
        self.queue.add(of(group, count, self.added[group]), self.now)
        self.added[group] += count

    def take(self, *, last: bool) -> bool:
        if (request := self.queue.take(self.now, last=last)) is None:
            return False
        name, length = request.prefix
        if length and self.now - self.answers.get(name, -1e9) > 300:
            assert not any(other.prefix == request.prefix for other in self.flying)
        self.flying.append(request)
        self.sent.append(request.model)
        return True

    def answer(self, place: int) -> None:
        if not self.flying:
            return
        request = self.flying.pop(place % len(self.flying))
        self.queue.answered(request, self.now)
        if request.prefix[1]:
            self.answers[request.prefix[0]] = self.now

    def wait(self, seconds: float) -> None:
        self.now += min(seconds, 1.0) if self.flying else seconds

    def finish(self) -> None:
        while self.queue or self.flying:
            if not self.take(last=True):
                assert self.flying, "nothing is under way, and nothing can go"
                self.answer(0)


@given(
    st.booleans(),
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from(["", "a", "b", "c"]), st.integers(1, 20)),
            st.tuples(st.just("take"), st.booleans()),
            st.tuples(st.just("answer"), st.integers(0, 3)),
            st.tuples(st.just("wait"), st.sampled_from([1.0, 30.0, 61.0, 400.0])),
        ),
        max_size=80,
    ),
)
def test_all_go_once_and_none_before_its_leader_was_answered(
    paced: bool, steps: list[tuple[Any, ...]]
) -> None:
    sender = Sender(paced=paced)
    for what, *how in steps:
        if what == "take":
            sender.take(last=how[0])
        else:
            getattr(sender, what)(*how)
    sender.finish()
    assert sorted(sender.sent) == sorted(
        f"{name}{n}" for name, count in sender.added.items() for n in range(count)
    )


def rendered(name: str, source: str, output: str = "A bridge.", **changes: Any) -> tuple[str, int]:
    criterion = replace(load(name), **changes)
    sample = Sample("1", "s", output, source)
    messages = Renderer(criterion, template_bodies(criterion)).render(sample).messages
    return prefix(messages, source, criterion.examples)


def test_one_document_is_one_group_whatever_the_text_and_the_criterion() -> None:
    found = {
        rendered(name, LONG, text) for name in ("coherence", "relevance") for text in ("A.", "B.")
    }
    assert len(found) == 1
    ((group, length),) = found
    assert len(group) == 32
    assert length >= len(LONG)
    assert {rendered("coherence", LONG + "And then it rained.")}.isdisjoint(found)


@pytest.mark.parametrize("source", ["short", "w " * 1_000])
def test_what_no_provider_would_cache_is_no_group(source: str) -> None:
    assert rendered("coherence", source) == ("", 0)


def test_examples_are_in_the_prefix_that_prompts_share() -> None:
    shown = (Example(LONG + "One.", "4"), Example("A bridge.", "2", "Too short.", LONG))
    changes = {"examples": shown}
    plain = rendered("coherence", LONG)
    group, length = rendered("coherence", LONG, **changes)
    assert length > plain[1] + 2 * len(LONG), "the source is found in the example"
    assert rendered("coherence", LONG, "B.", **changes) == (group, length)
    # Without a long source, all texts of the criterion are one group.
    short = {
        rendered("coherence", source, text, **changes)
        for source in ("x", "y")
        for text in ("A.", "A bridge.")
    }
    ((group, length),) = short
    assert group
    assert 2 * len(LONG) < length < 2 * len(LONG) + 1_500


def test_with_the_criterion_first_each_criterion_is_a_group_of_its_own(tmp_path: Any) -> None:
    found = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.jinja"
        path.write_text(
            "---\nscale: [1, 5]\n---\n" + name + "\n{{ source }}\n{{ output }}", encoding="utf-8"
        )
        found += [rendered(str(path), LONG, "A."), rendered(str(path), LONG, "B.")]
    assert found[0] == found[1] != found[2] == found[3]


def test_groups_are_forgotten_once_their_prefix_is_out_of_the_cache() -> None:
    queue = PrefixAwareQueue()
    for n in range(500):
        pair = of(f"g{n}", 2)
        now = n * 10.0
        queue.add(pair, now)
        queue.take(now, last=True)
        queue.answered(pair[0], now)
        queue.take(now, last=True)
        queue.answered(pair[1], now)
    assert len(queue._groups) <= 32
