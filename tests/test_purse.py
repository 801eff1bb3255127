"""Budgets: never crossed, used as far as they go, and stopped at with the words to go on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge import api, config
from judge.config import Budget
from judge.errors import BudgetReached, ConfigError, DeadlineReached, ProviderError, Refused, Transient
from judge.pace import Pace
from judge.progress import Progress
from judge.providers.prices import DEFAULT_URL, per_token
from judge.providers.scripted import ScriptedProvider
from judge.purse import Purse
from judge.records import Choice, Request, Response, Usage
from judge.retry import Policy, Retrier

MODEL = "gpt-5.4-mini"
REQUEST = Request(
    MODEL, ({"role": "user", "content": "How good is 「それ」?"},), {"max_tokens": 100}, endpoint=DEFAULT_URL
)

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def judge(notice: str = "", model: str = MODEL, endpoint: str = DEFAULT_URL) -> ScriptedProvider:
    provider = ScriptedProvider(lambda _: "3", model=model, endpoint=endpoint)
    provider.notice = notice
    return provider


def test_the_most_a_request_can_cost() -> None:
    written = 100
    read = len("How good is 「それ」?".encode()) + 16
    assert Purse(Budget(1, "tokens")).most(REQUEST) == read + written
    fresh, _, stored, out = per_token(MODEL, DEFAULT_URL) or (0, 0, 0, 0)
    assert Purse(Budget(1, "usd")).most(REQUEST) == pytest.approx(read * max(fresh, stored) + written * out)
    draws = replace(REQUEST, params={"max_tokens": 100, "n": 20})
    assert Purse(Budget(1, "tokens")).most(draws) == read + 20 * written
    schema = replace(REQUEST, params={"max_tokens": 100, "response_format": {"a": "b"}})
    assert Purse(Budget(1, "tokens")).most(schema) == read + written + len('{"a": "b"}')


@pytest.mark.parametrize("unit", ["usd", "tokens"])
@pytest.mark.parametrize("trouble", [0.0, 0.3])
def test_a_budget_is_never_crossed_and_is_well_used(unit: Any, trouble: float, in_time: Run) -> None:
    chance, billed = random.Random(7), Usage()
    prices = per_token(MODEL, DEFAULT_URL) or (0, 0, 0, 0)
    budget = Budget(0.05, "usd") if unit == "usd" else Budget(20_000, "tokens")

    async def call() -> Response:
        nonlocal billed
        await asyncio.sleep(chance.uniform(0.1, 3.0))
        used = Usage(chance.randint(5, 40), chance.randint(1, 100))
        if chance.random() < trouble:
            timed_out = chance.random() < 0.5
            billed += used if timed_out else Usage()
            raise Transient("trouble", billed=True) if timed_out else Transient("502", status=502)
        billed += used
        return Response((Choice("3"),), used)

    async def run() -> tuple[Purse, int]:
        purse, made = Purse(budget), 0
        retriers = [Retrier(Policy(), Pace(16), purse, seed=seed) for seed in range(2)]  # a panel

        async def work(retrier: Retrier) -> None:
            nonlocal made
            while True:
                await retrier(call, REQUEST)
                made += 1

        ends = await asyncio.gather(*(work(retrier) for retrier in retriers * 16), return_exceptions=True)
        assert {type(end) for end in ends} == {BudgetReached}
        return purse, made

    purse, made = in_time(run())
    cost = billed.prompt_tokens * prices[0] + billed.completion_tokens * prices[3]
    spent = cost if unit == "usd" else billed.prompt_tokens + billed.completion_tokens
    assert spent <= purse.spent + 1e-9 <= budget.amount + 1e-9
    assert purse.spent > 0.95 * budget.amount
    assert made > 100
    assert trouble or spent == pytest.approx(purse.spent)


def test_a_request_that_does_not_fit_waits_for_those_in_flight(in_time: Run) -> None:
    async def run() -> None:
        purse = Purse(Budget(200, "tokens"))
        kept = await purse.reserve(REQUEST)
        waiting = asyncio.create_task(purse.reserve(REQUEST))
        await asyncio.sleep(1.0)
        assert not waiting.done()
        purse.settle(kept, REQUEST, Usage(10, 3))
        assert await waiting == kept
        assert purse.spent == 13

    in_time(run())


def test_the_first_request_may_already_be_too_much(in_time: Run) -> None:
    with pytest.raises(BudgetReached, match=r"of 20 tokens is reached: 0 tokens may have been spent.*up to 141 tokens"):
        in_time(Purse(Budget(20, "tokens")).reserve(REQUEST))


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (Transient("timed out", billed=True), True),
        (Transient("dropped"), True),
        (asyncio.CancelledError(), True),
        (Transient("nobody there", unreachable=True), False),
        (Transient("502", status=502), False),
        (Refused("no", status=400), False),
    ],
)
def test_what_may_have_been_charged_counts_as_spent(error: BaseException, counted: bool, in_time: Run) -> None:
    async def run() -> None:
        purse = Purse(Budget(1000, "tokens"))
        kept = await purse.reserve(REQUEST)
        purse.lost(kept, error)
        assert purse.spent == (kept if counted else 0.0)

    in_time(run())


def test_a_reply_that_does_not_say_what_it_cost_is_taken_to_cost_the_most(in_time: Run) -> None:
    async def run() -> None:
        purse = Purse(Budget(1000, "tokens"))
        kept = await purse.reserve(REQUEST)
        purse.settle(kept, REQUEST, Usage())
        assert purse.spent == kept

    in_time(run())


def test_a_server_that_writes_more_than_it_may_makes_the_next_ones_dearer(in_time: Run) -> None:
    async def run() -> None:
        purse = Purse(Budget(10_000, "tokens"))
        kept = await purse.reserve(REQUEST)
        purse.settle(kept, REQUEST, Usage(0, int(kept) * 3))
        assert await purse.reserve(REQUEST) == 3 * kept

    in_time(run())


def test_dollars_need_a_known_price() -> None:
    dollars, words = Purse(Budget(5, "usd")), Purse(Budget(5, "tokens"))
    assert dollars.pays_for(judge())
    assert not dollars.pays_for(judge(notice="No model was asked."))
    assert words.pays_for(judge(notice="No model was asked."))
    assert not Purse(None).pays_for(judge(model="nobody-knows"))
    assert words.pays_for(judge(model="nobody-knows"))
    with pytest.raises(ConfigError, match=r"--budget \$5.00: .*nobody-knows.*in tokens"):
        dollars.pays_for(judge(model="nobody-knows"))


ROWS = [{"item": f"i{n}", "output": f"Text number {n} is short."} for n in range(12)]


def scored(made: list[Request]) -> Callable[[Request], Response | ProviderError]:
    def script(request: Request) -> Response:
        made.append(request)
        return Response((Choice("3"),), Usage(150, 10))

    return script


def test_a_run_stops_at_its_budget_and_goes_on_with_a_new_one(tmp_path: Path) -> None:
    made: list[Request] = []

    def run(budget: str) -> Any:
        options = {"criteria": ["fluency"], "metrics": [], "weighting": "single", "cache": tmp_path / "cache"}
        plan = config.plan(given={**options, "out": tmp_path / "out", "budget": budget})
        provider = ScriptedProvider(scored(made), endpoint="https://judge.invalid/v1")
        prepared, progress = api.prepare(plan, ROWS, providers=[provider]), Progress()
        try:
            return asyncio.run(api.run(prepared, progress))
        except BudgetReached as reached:
            assert progress.failed == 0
            return str(reached)

    said = run("2500tokens")
    done = len(made)
    assert 1 <= done < 12
    assert f"{150 * done + 10 * done:,} tokens may have been spent" in said or done * 160 < 1000
    assert f"{done} of 12 judgments are made and kept in {tmp_path / 'out'}. Start the same command again" in said
    result = run("1mtokens")
    assert len(made) == len({request.key() for request in made}) == 12
    assert [score.value for score in result.table.scores] == [3.0] * 12
    assert result.info["budget"] == {"amount": 1e6, "unit": "tokens", "spent": 160.0 * (12 - done)}


def test_a_run_stops_at_its_deadline(tmp_path: Path) -> None:
    class Slow(ScriptedProvider):
        async def complete(self, request: Request) -> Response:
            if len(self.seen) >= 5:
                await asyncio.sleep(60.0)
            return await super().complete(request)

    plan = config.plan(
        given={"criteria": ["fluency"], "metrics": [], "weighting": "single", "cache": False, "deadline": 0.5}
    )
    prepared = api.prepare(plan, ROWS, providers=[Slow(lambda _: "3")])
    with pytest.raises(
        DeadlineReached, match=r"\(--deadline\) is up. 5 of 12 judgments are made.*pays for all of them"
    ):
        asyncio.run(api.run(prepared))
