"""Budgets: judge never exceeds one, uses most of it, and then stops with advice on how to resume."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge import evaluate
from judge.config import load_config
from judge.core.budget import Budget
from judge.core.errors import (
    BudgetReached,
    ConfigError,
    DeadlineReached,
    ProviderError,
    Refused,
    Transient,
)
from judge.core.records import Choice, Request, Response, Usage
from judge.execution.budget import BudgetLedger
from judge.execution.layers.retried import Policy
from judge.execution.progress import Progress
from judge.execution.rate_limit import RateLimiter
from judge.providers.decisions import DecisionsProvider
from judge.providers.pricing import DEFAULT_URL, per_token
from judge.providers.scripted import ScriptedProvider
from judge.results.run_info import BudgetInfo
from judge.run.pipeline import run_pipeline
from judge.run.preparation import prepare
from tests.factories import has_line
from tests.senders import Sender

MODEL = "gpt-5.4-mini"
REQUEST = Request(
    MODEL,
    ({"role": "user", "content": "How good is 「それ」?"},),
    {"max_tokens": 100},
    endpoint=DEFAULT_URL,
)

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def judge(notice: str = "", model: str = MODEL, endpoint: str = DEFAULT_URL) -> ScriptedProvider:
    provider = ScriptedProvider(lambda _: "3", model=model, endpoint=endpoint)
    provider.notice = notice
    return provider


def dollars(amount: float) -> BudgetLedger:
    """Return a ledger that covers the judge."""
    ledger = BudgetLedger(Budget(amount, "usd"))
    assert ledger.covers(judge())
    return ledger


def test_the_most_a_request_can_cost() -> None:
    written = 100
    read = len("How good is 「それ」?".encode()) + 1016
    assert BudgetLedger(Budget(1, "tokens")).max_cost(REQUEST) == read + written
    fresh, _, stored, out = per_token(MODEL, DEFAULT_URL) or (0, 0, 0, 0)
    assert dollars(1).max_cost(REQUEST) == pytest.approx(read * max(fresh, stored) + written * out)
    draws = replace(REQUEST, params={"max_tokens": 100, "n": 20})
    assert BudgetLedger(Budget(1, "tokens")).max_cost(draws) == read + 20 * written
    schema = replace(REQUEST, params={"max_tokens": 100, "response_format": {"a": "b"}})
    assert BudgetLedger(Budget(1, "tokens")).max_cost(schema) == read + written + len('{"a": "b"}')


@pytest.mark.parametrize("unit", ["usd", "tokens"])
@pytest.mark.parametrize("trouble", [0.0, 0.3])
def test_a_budget_is_never_crossed_and_is_well_used(
    unit: Any, trouble: float, in_time: Run
) -> None:
    chance, billed = random.Random(7), Usage()
    prices = per_token(MODEL, DEFAULT_URL) or (0, 0, 0, 0)
    budget = Budget(0.08, "usd") if unit == "usd" else Budget(50_000, "tokens")

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

    async def run() -> tuple[BudgetLedger, int]:
        ledger, n_requests = BudgetLedger(budget), 0
        assert ledger.covers(judge())
        retriers = [Sender(Policy(), RateLimiter(16), ledger) for _ in range(2)]  # a panel

        async def work(retrier: Sender) -> None:
            nonlocal n_requests
            while True:
                await retrier(call, REQUEST)
                n_requests += 1

        ends = await asyncio.gather(
            *(work(retrier) for retrier in retriers * 16), return_exceptions=True
        )
        assert {type(end) for end in ends} == {BudgetReached}
        return ledger, n_requests

    ledger, n_requests = in_time(run())
    cost = billed.prompt_tokens * prices[0] + billed.completion_tokens * prices[3]
    spent = cost if unit == "usd" else billed.prompt_tokens + billed.completion_tokens
    assert spent <= ledger.spent + 1e-9 <= budget.amount + 1e-9
    assert ledger.spent > 0.95 * budget.amount
    assert n_requests > 100
    assert trouble or spent == pytest.approx(ledger.spent)


def test_a_request_that_does_not_fit_waits_for_those_in_flight(in_time: Run) -> None:
    async def run() -> None:
        ledger = BudgetLedger(Budget(1200, "tokens"))
        reserved = await ledger.reserve(REQUEST)
        waiting = asyncio.create_task(ledger.reserve(REQUEST))
        await asyncio.sleep(1.0)
        assert not waiting.done()
        ledger.commit(reserved, REQUEST, Usage(10, 3))
        assert await waiting < reserved
        assert ledger.spent == 13

    in_time(run())


def test_a_reply_shows_how_little_a_template_adds(in_time: Run) -> None:
    """A template adds at most the tokens that a whole prompt had, so less is reserved."""

    async def run() -> None:
        ledger = BudgetLedger(Budget(10_000, "tokens"))
        reserved = await ledger.reserve(REQUEST)
        ledger.commit(reserved, REQUEST, Usage(40, 3))
        assert ledger.max_cost(REQUEST) == reserved - 1000 + 40
        others = [
            replace(REQUEST, model="other"),
            replace(REQUEST, endpoint="http://localhost/v1"),
            replace(REQUEST, params={**REQUEST.params, "response_format": {}}),
        ]
        assert min(map(ledger.max_cost, others)) >= reserved

    in_time(run())


@pytest.mark.parametrize("prompt_tokens", [0, 5000])
def test_a_count_that_shows_nothing_of_a_template_lowers_no_reservation(
    prompt_tokens: int, in_time: Run
) -> None:
    async def run() -> None:
        ledger = BudgetLedger(Budget(100_000, "tokens"))
        reserved = await ledger.reserve(REQUEST)
        ledger.commit(reserved, REQUEST, Usage(prompt_tokens, 3))
        assert ledger.max_cost(REQUEST) >= reserved

    in_time(run())


@pytest.mark.parametrize("first_budget", [300, 1_500, 4_000])
def test_the_budget_that_a_stopped_run_names_is_enough(tmp_path: Path, first_budget: int) -> None:
    rows = [{"item": str(n), "output": f"The output of item {n}."} for n in range(40)]
    provider = ScriptedProvider(
        lambda _: Response((Choice("3"),), Usage(150, 1)), endpoint="http://localhost/v1"
    )
    provider.notice = ""
    options: dict[str, Any] = {
        "metrics": [],
        "model": provider,
        "cache": tmp_path,
        "weighting": "single",
    }
    with pytest.raises(BudgetReached) as stopped:
        evaluate(rows, "ok: Is it ok?", budget=f"{first_budget}tokens", **options)
    advice = stopped.value.__notes__[-1]
    named = re.search(r"budget='(\w+)' should be enough", advice)
    assert named is not None, advice
    result = evaluate(rows, "ok: Is it ok?", budget=named[1], **options)
    assert len(result.table.scores) == len(rows)


def test_a_budget_below_the_first_request_stops_the_run(in_time: Run) -> None:
    with pytest.raises(
        BudgetReached,
        match=r"20 tokens .*: 0 tokens .*1,141 tokens",
    ):
        in_time(BudgetLedger(Budget(20, "tokens")).reserve(REQUEST))


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
def test_possibly_charged_requests_count_as_spent(
    error: BaseException, counted: bool, in_time: Run
) -> None:
    async def run() -> None:
        ledger = BudgetLedger(Budget(2000, "tokens"))
        reserved = await ledger.reserve(REQUEST)
        ledger.commit_unknown(reserved, error)
        assert ledger.spent == (reserved if counted else 0.0)

    in_time(run())


@pytest.mark.parametrize("unit", ["usd", "tokens"])
@pytest.mark.parametrize(
    "used",
    [
        Usage(),
        Usage(10**18, 1),
        Usage(100, 10**18),
        Usage(-(10**6), 5),
        Usage(5, -(10**6)),
        Usage(9, 1, 10**6),
    ],
)
def test_a_reply_with_implausible_usage_costs_the_maximum(
    used: Usage, unit: str, in_time: Run
) -> None:
    async def run() -> None:
        ledger = dollars(1.0) if unit == "usd" else BudgetLedger(Budget(5000, "tokens"))
        reserved = await ledger.reserve(REQUEST)
        ledger.commit(reserved, REQUEST, used)
        assert ledger.spent == reserved
        assert await ledger.reserve(REQUEST) == reserved

    in_time(run())


def test_a_reply_above_the_limit_raises_the_estimate_of_later_requests(in_time: Run) -> None:
    async def run() -> None:
        ledger = BudgetLedger(Budget(10_000, "tokens"))
        reserved = await ledger.reserve(REQUEST)
        ledger.commit(reserved, REQUEST, Usage(0, int(reserved) * 3))
        assert await ledger.reserve(REQUEST) == 3 * reserved

    in_time(run())


@pytest.mark.parametrize("unit", ["usd", "tokens"])
def test_overruns_in_flight_together_do_not_compound(unit: str, in_time: Run) -> None:
    async def run() -> None:
        ledger = dollars(100) if unit == "usd" else BudgetLedger(Budget(1_000_000, "tokens"))
        reserved = [await ledger.reserve(REQUEST) for _ in range(64)]
        used = Usage(1000, 1433)  # this is 2.13 times the estimate of 1,141 tokens
        for one in reserved:
            ledger.commit(one, REQUEST, used)
        assert await ledger.reserve(REQUEST) == pytest.approx(ledger.spent / 64)
        half = await ledger.reserve(REQUEST, 0.5)
        ledger.commit(half, REQUEST, used, 0.5)
        assert await ledger.reserve(REQUEST) == pytest.approx(
            ledger.spent / (64.5 if unit == "usd" else 65)
        )

    in_time(run())


def test_budget_error_names_a_reply_above_its_estimate(in_time: Run) -> None:
    async def run() -> None:
        ledger = BudgetLedger(Budget(3000, "tokens"))
        ledger.commit(await ledger.reserve(REQUEST), REQUEST, Usage(41, 2241))
        with pytest.raises(
            BudgetReached,
            match=r"2,282 tokens \(.*2\.0 times",
        ):
            await ledger.reserve(REQUEST)

    in_time(run())


def test_typed_questions_have_separate_prices() -> None:
    typed = DecisionsProvider("gpt-6-luna", base_url=DEFAULT_URL, needs_key=False)
    ledger = BudgetLedger(Budget(1, "usd"))
    assert ledger.covers(typed)
    request = Request(
        "gpt-6-luna",
        ({"role": "user", "content": "text"},),
        {"questions": []},
        endpoint=DEFAULT_URL,
    )
    most = 4 + 1016 + len("[]")
    assert ledger.max_cost(request) == pytest.approx(most * 0.10e-6)
    reserved = ledger.try_reserve(request)
    assert reserved is not None
    ledger.commit(reserved, request, Usage(100, 20))
    assert ledger.spent == pytest.approx(100 * 0.10e-6)
    with pytest.raises(ConfigError, match="nobody has published a price"):
        ledger.covers(DecisionsProvider(MODEL, base_url=DEFAULT_URL, needs_key=False))


def test_dollars_need_a_known_price() -> None:
    dollars, words = BudgetLedger(Budget(5, "usd")), BudgetLedger(Budget(5, "tokens"))
    assert dollars.covers(judge())
    assert not dollars.covers(judge(notice="No model was asked."))
    assert words.covers(judge(notice="No model was asked."))
    assert not BudgetLedger(None).covers(judge(model="nobody-knows"))
    assert words.covers(judge(model="nobody-knows"))
    with pytest.raises(ConfigError, match=r"--budget \$5.00: .*nobody-knows.*in tokens"):
        dollars.covers(judge(model="nobody-knows"))


ROWS = [{"item": f"i{n}", "output": f"Text number {n} is short."} for n in range(12)]


def scored(requests: list[Request]) -> Callable[[Request], Response | ProviderError]:
    def script(request: Request) -> Response:
        requests.append(request)
        return Response((Choice("3"),), Usage(150, 10))

    return script


def test_a_run_stops_at_its_budget_and_resumes_with_a_new_one(tmp_path: Path) -> None:
    requests: list[Request] = []

    def run(budget: str) -> Any:
        options = {
            "criteria": ["fluency"],
            "metrics": [],
            "weighting": "single",
            "cache": tmp_path / "cache",
        }
        plan = load_config(options={**options, "out": tmp_path / "out", "budget": budget})
        provider = ScriptedProvider(scored(requests), endpoint="https://judge.invalid/v1")
        prepared, progress = prepare(plan, ROWS, providers=[provider]), Progress()
        try:
            return asyncio.run(run_pipeline(prepared, progress))
        except BudgetReached as reached:
            assert progress.failed == 0
            return " ".join([str(reached), *reached.__notes__])

    output = run("3500tokens")
    done = len(requests)
    assert 1 <= done < 12
    assert has_line(output, f"{150 * done + 10 * done:,} tokens", "spent") or done * 160 < 1000
    assert has_line(output, f"{done} of 12 judgments", f"kept in {tmp_path / 'out'}", "again")
    result = run("1mtokens")
    assert len(requests) == len({request.key() for request in requests}) == 12
    assert [score.value for score in result.table.scores] == [3.0] * 12
    assert result.info.budget == BudgetInfo(1e6, "tokens", 160.0 * (12 - done))


def test_a_run_stops_at_its_deadline(tmp_path: Path) -> None:
    class Slow(ScriptedProvider):
        async def complete(self, request: Request) -> Response:
            if len(self.seen) >= 5:
                await asyncio.sleep(60.0)
            return await super().complete(request)

    plan = load_config(
        options={
            "criteria": ["fluency"],
            "metrics": [],
            "weighting": "single",
            "cache": False,
            "deadline": 0.5,
        }
    )
    prepared = prepare(plan, ROWS, providers=[Slow(lambda _: "3")])
    with pytest.raises(DeadlineReached, match=r"\(--deadline\) is over") as stopped:
        asyncio.run(run_pipeline(prepared))
    (note,) = stopped.value.__notes__
    assert has_line(note, "5 of 12 judgments", "Without a cache")


def test_waiting_requests_are_refused_when_the_budget_ends(in_time: Run) -> None:
    """Of two waiting requests only the smaller fits. The larger is refused after the smaller has finished."""
    small, large = (replace(REQUEST, params={"max_tokens": most}) for most in (100, 1_500))
    ledger = BudgetLedger(Budget(2_600, "tokens"))
    events: list[str] = []

    async def reserve_and_commit(name: str, request: Request, used: Usage) -> None:
        try:
            reserved = await ledger.reserve(request)
        except BudgetReached:
            events.append(f"{name} refused")
            return
        await asyncio.sleep(1.0)
        ledger.commit(reserved, request, used)
        events.append(f"{name} settled")

    async def run() -> None:
        await asyncio.gather(
            reserve_and_commit("first", large, Usage(500, 700)),
            reserve_and_commit("large", large, Usage(1, 1)),
            reserve_and_commit("small", small, Usage(20, 1)),
        )

    in_time(run())
    assert events == ["first settled", "small settled", "large refused"]


def test_a_cancelled_reservation_holds_no_budget(in_time: Run) -> None:
    ledger = BudgetLedger(Budget(1_300, "tokens"))

    async def run() -> None:
        reserved = await ledger.reserve(REQUEST)
        early, late = (asyncio.create_task(ledger.reserve(REQUEST)) for _ in range(2))
        await asyncio.sleep(0)
        early.cancel()
        await asyncio.sleep(0)
        ledger.release(reserved)
        late.cancel()  # cancelled just after its reservation was granted
        await asyncio.gather(early, late, return_exceptions=True)
        assert await ledger.reserve(REQUEST) == reserved

    in_time(run())


def test_a_billed_error_spends_budget(in_time: Run) -> None:
    ledger = BudgetLedger(Budget(10_000, "tokens"))
    for billed in (True, False):
        ledger.commit_unknown(
            in_time(ledger.reserve(REQUEST)), Refused("no choices", billed=billed)
        )
    assert ledger.spent == ledger.max_cost(REQUEST)


def test_a_budget_of_one_token_is_written_in_the_singular() -> None:
    assert str(Budget(1, "tokens")) == "1 token"
    assert str(Budget(2000, "tokens")) == "2,000 tokens"
