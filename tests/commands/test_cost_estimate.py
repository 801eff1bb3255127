"""The estimate before a run equals the requests and tokens of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from judge.cache import open_cache
from judge.commands.plan.command import make_plan
from judge.commands.plan.record import Plan
from judge.config import RankConfig, load_config
from judge.core.budget import Budget, parse_budget
from judge.core.errors import ConfigError
from judge.core.format import dollars, rough_duration
from judge.core.records import Request, Response, Usage
from judge.core.request_options import TokenPrice
from judge.execution import token_estimates
from judge.providers.pricing import DEFAULT_URL
from judge.providers.scripted import ScriptedProvider
from judge.run.cost_estimate import one_line_estimate
from judge.run.dry_run import count_requests
from judge.run.pipeline import run_pipeline
from judge.run.preparation import PreparedRun, prepare
from tests.factories import cost_usd, has_line

ROWS = [
    {
        "item": item,
        "system": s,
        "source": f"The source {item}.",
        "output": "same" if item == "0" else f"{s} {item}",
    }
    for item in "0123"
    for s in "xyz"
]
WORDS = ["relevance", "coherence"]


class UsageReportingJudge(ScriptedProvider):
    """A judge that reports its tokens and is not marked as scripted."""

    notice = ""

    def __init__(
        self,
        real: Callable[[int], int] = lambda n: n,
        *,
        reply: Any = None,
        logprobs: bool = True,
        **about: Any,
    ) -> None:
        about = {"model": "gpt-5.4-mini", "endpoint": DEFAULT_URL} | about
        super().__init__(lambda request: reply or {"4": 1.0}, **about)
        if self.decides and self.model == "gpt-6-luna":
            self.published_price = TokenPrice(input=0.10, output=0.0)
        self._real, self._logprobs = real, logprobs

    async def complete(self, request: Request) -> Response:
        response = await super().complete(request)
        usage = Usage(
            self._real(token_estimates.estimate_request(request)), 3 * len(response.choices)
        )
        choices = (
            response.choices
            if self._logprobs
            else tuple(replace(choice, tokens=None) for choice in response.choices)
        )
        return replace(response, choices=choices, usage=usage)


class OneByOne(UsageReportingJudge):
    """A judge without token probabilities and one choice per request. If `announced`, judge knows this beforehand."""

    def __init__(self, *, announced: bool = False, **about: Any) -> None:
        super().__init__(logprobs=False, **about)
        self._announced = announced

    @property
    def learned(self) -> dict[str, Any]:
        return {"n": 1, "dropped": ["logprobs"]} if self._announced else {}

    async def complete(self, request: Request) -> Response:
        params = {name: value for name, value in request.params.items() if name != "n"}
        response = await super().complete(replace(request, params=params))
        return replace(response, unmet=("n",) if "n" in request.params else ())


def prepared(
    judge: ScriptedProvider, rows: list[dict[str, Any]] = ROWS, **options: Any
) -> PreparedRun:
    run_plan = (RankConfig.load if options.pop("pairwise", False) else load_config)(
        options={"criteria": WORDS, "metrics": []} | options
    )
    return prepare(run_plan, rows, providers=[judge])


def run(ready: PreparedRun) -> dict[str, int]:
    """Run the plan and return its request counts."""
    return asdict(asyncio.run(run_pipeline(ready)).info.requests)


def totals(plan: Plan) -> dict[str, int]:
    total = plan.judges[0].estimate.total
    return {name: getattr(total, name) for name in ("judgments", "equal", "cached", "requests")}


@pytest.mark.parametrize("about", [{}, {"logprobs": False}, {"decides": True}])
def test_planned_requests_equal_sent_requests(about: dict[str, Any]) -> None:
    """With an empty cache, a cache with the first two items, and a full cache."""
    assert totals(make_plan(prepared(UsageReportingJudge(**about))))["cached"] == 0
    run(prepared(UsageReportingJudge(**about), ROWS[:6]))
    counted = totals(make_plan(prepared(UsageReportingJudge(**about))))
    assert (counted["judgments"], counted["cached"]) == (24, 12)
    assert run(prepared(UsageReportingJudge(**about)))["sent"] == counted["requests"]
    assert totals(make_plan(prepared(UsageReportingJudge(**about)))) == {
        "judgments": 24,
        "equal": 0,
        "cached": 24,
        "requests": 0,
    }


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, ROWS[:6]),
        ({"temperature": 0.0}, ROWS[6:]),
        ({"weighting": "samples", "draws": 3}, ROWS[6:]),
        ({"weighting": "samples", "draws": 3}, ROWS),
    ],
)
def test_each_draw_is_a_request_if_the_server_gives_one_choice(
    options: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    """Both the vendor table and any cached reply can show this."""
    first = totals(make_plan(prepared(OneByOne(announced=True), rows, **options)))["requests"]
    assert run(prepared(OneByOne(), rows, **options))["sent"] == first
    plan = make_plan(prepared(OneByOne(), **options))
    assert (
        totals(plan)["requests"]
        == totals(make_plan(prepared(OneByOne(announced=True), **options)))["requests"]
    )
    result = asyncio.run(run_pipeline(prepared(OneByOne(), **options)))
    assert result.info.requests.sent == totals(plan)["requests"]
    assert plan.judges[0].usage.prompt_tokens == pytest.approx(
        result.info.usage.prompt_tokens, abs=2
    )
    assert plan.judges[0].usage.completion_tokens == pytest.approx(
        result.info.usage.completion_tokens, abs=2
    )


def test_more_draws_are_more_requests_if_the_server_gives_one_choice() -> None:
    class Hoping(UsageReportingJudge):
        learned = {"n": 1}  # noqa: RUF012

    few, many = (make_plan(prepared(kind())) for kind in (Hoping, UsageReportingJudge))
    assert has_line(few.notes, "20 draws", "20 requests")
    assert not any("in 20 requests" in note for note in many.notes)
    assert few.judges[0].money.more is not None
    assert many.judges[0].money.more is not None
    read = cost_usd("gpt-5.4-mini", DEFAULT_URL, Usage(19 * few.judges[0].usage.prompt_tokens))
    assert few.judges[0].money.more - many.judges[0].money.more == pytest.approx(read)


@pytest.mark.parametrize(
    ("options", "stored_replies", "failed"),
    [
        ({"weighting": "single"}, "no idea", 24),
        ({}, "no idea", 24),
        ({"weighting": "samples", "draws": 3}, "no idea", 24),
        ({"weighting": "logprobs"}, "4", 24),
        ({"weighting": "logprobs", "min_mass": 0.9}, {"4": 0.6, "I": 0.4}, 24),
        ({"temperature": 0.0, "min_mass": 0.9}, {"4": 0.6, "I": 0.4}, 0),
    ],
)
def test_the_plan_counts_stored_replies_without_a_score_as_the_run_does(
    options: dict[str, Any], stored_replies: Any, failed: int
) -> None:
    options = options | {"repair": "off"}
    keep(stored_replies, **options)
    judge = UsageReportingJudge()
    counted = totals(make_plan(prepared(UsageReportingJudge(), **options)))
    result = asyncio.run(run_pipeline(prepared(judge, **options)))
    assert len(judge.seen) == counted["requests"]
    assert len(result.table.failures) == failed
    assert totals(make_plan(prepared(UsageReportingJudge(), **options)))["requests"] == 0


def keep(reply: Any, **options: Any) -> None:
    """Fill the cache with this reply to every request of a run. A text has no token probabilities."""
    asker = UsageReportingJudge(reply=reply, logprobs=not isinstance(reply, str))
    asyncio.run(run_pipeline(prepared(asker, cache=False, **options)))
    cache = open_cache(None)
    for request in [*asker.seen]:
        response = asyncio.run(asker.complete(request))
        for draw, choice in enumerate(response.choices):
            alone = {name: value for name, value in request.params.items() if name != "n"}
            single = replace(request, params=alone, draw=request.draw + draw)
            cache.put(single.key(), replace(response, choices=(choice,)), single)
    cache.close()


def test_equal_prompts_are_asked_once() -> None:
    counted = totals(make_plan(prepared(UsageReportingJudge())))
    assert counted == {"judgments": 24, "equal": 4, "cached": 0, "requests": 20}
    sent = run(prepared(UsageReportingJudge()))
    assert (sent["sent"], sent["shared"] + sent["cached"]) == (20, 4)


def test_typed_questions_have_their_own_price_and_no_output() -> None:
    (plan,) = make_plan(prepared(UsageReportingJudge(decides=True, model="gpt-6-luna"))).judges
    assert plan.estimate.total.requests == 20
    assert plan.estimate.total.written == 0
    assert plan.money.price == pytest.approx(plan.estimate.total.read * 0.10e-6)


def test_the_usage_of_cached_replies_corrects_the_estimate() -> None:
    def real(estimated: int) -> int:
        return 2 * estimated

    run(prepared(UsageReportingJudge(real), ROWS[:6]))
    (plan,) = make_plan(prepared(UsageReportingJudge(real))).judges
    judge = UsageReportingJudge(real)
    result = asyncio.run(run_pipeline(prepared(judge)))
    assert (plan.usage.prompt_tokens, plan.usage.completion_tokens) == pytest.approx(
        (result.info.usage.prompt_tokens, result.info.usage.completion_tokens), abs=2
    )


@pytest.mark.parametrize("words", [1, 2000])
def test_a_shared_document_at_the_start_of_prompts_can_be_cached(
    tmp_path: Path, words: int
) -> None:
    """All prompts except the first can be cached, in steps of 128 tokens from 1,024 on."""
    file = tmp_path / "clear.jinja"
    file.write_text(
        "---\nscale: [1, 5]\n---\n{{ source }}\n\n{{ output }}\n\nHow clear? A number from 1 to 5.\n"
    )
    source = "long " * words
    rows = [{"item": "1", "system": s, "source": source, "output": f"{s}"} for s in "xyz"]
    judge = UsageReportingJudge()
    run_plan = load_config(options={"metrics": [], "criteria": [str(file)]})
    (plan,) = make_plan(prepare(run_plan, rows, providers=[judge])).judges
    common = token_estimates.estimate_tokens(source) // 128 * 128
    expected = (2 * common, common) if common >= 1024 else (0, 0)
    assert (plan.estimate.total.shared, plan.estimate.total.stored) == expected
    total, money = plan.estimate.total, plan.money
    usage = Usage(
        int(total.read),
        int(total.written),
        cached_tokens=expected[0],
        cache_write_tokens=expected[1],
    )
    assert money.cached == pytest.approx(cost_usd(judge.model, DEFAULT_URL, usage))


def test_an_unknown_price_is_not_zero() -> None:
    for about, why in (
        ({"endpoint": "http://127.0.0.1:8000/v1"}, "a server of your own"),
        ({"model": "no-such-model"}, "genai-prices"),
        ({"decides": True, "model": "gpt-5.4-mini"}, "has no price"),
    ):
        plan = make_plan(prepared(UsageReportingJudge(**about), budget="5usd"))
        assert (plan.price, plan.judges[0].money.price, plan.fits) == (None, None, None)
        assert why in plan.judges[0].money.why
        assert "price unknown" in one_line_estimate(prepared(UsageReportingJudge(**about)))


def test_a_batch_is_half_the_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-used-here")
    options = {"criteria": WORDS, "metrics": [], "model": "gpt-5.4-mini"}
    plans = (load_config(options=options | {"engine": engine}) for engine in ("local", "batch"))
    whole, half = (make_plan(prepare(run_plan, ROWS)) for run_plan in plans)
    assert whole.price is not None
    assert half.price == pytest.approx(whole.price / 2)
    assert half.seconds is None
    assert "half price in a batch" in half.judges[0].money.why
    for vendor, model in (("anthropic", "claude-haiku-4-5"), ("gemini", "gemini-2.5-flash")):
        batch_options = options | {
            "engine": "batch",
            "model": f"{vendor}/{model}",
            "key_env": "OPENAI_API_KEY",
        }
        (judge,) = make_plan(prepare(load_config(options=batch_options), ROWS)).judges
        whole = cost_usd(model, judge.endpoint, judge.usage)
        assert whole
        assert judge.money.price == pytest.approx(whole / 2)
    plans = load_config(
        options=options
        | {"engine": "batch", "model": "groq/llama-3.3-70b-versatile", "key_env": "OPENAI_API_KEY"}
    )
    (elsewhere,) = make_plan(prepare(plans, ROWS)).judges
    assert elsewhere.money.price == pytest.approx(
        cost_usd("llama-3.3-70b-versatile", elsewhere.endpoint, elsewhere.usage)
    )
    assert has_line(elsewhere.money.why, "half", "Batch API")


@pytest.mark.parametrize("unit", ["usd", "tokens"])
@pytest.mark.parametrize("about", [{}, {"decides": True, "model": "gpt-6-luna"}])
def test_a_budget_shows_how_many_requests_fit(unit: str, about: dict[str, Any]) -> None:
    rows = [
        {"item": f"{n:03}", "system": s, "source": f"{n:03}", "output": f"{s} {n:03}"}
        for n in range(40)
        for s in "xy"
    ]

    def plan(budget: str) -> Plan:
        return make_plan(
            prepared(
                UsageReportingJudge(**about), rows, budget=budget, criteria=WORDS[:1], cache=False
            )
        )

    whole = plan("5usd" if unit == "usd" else "5mtokens")
    assert whole.fits == whole.requests
    usage = whole.judges[0].usage
    amount = whole.price if unit == "usd" else usage.prompt_tokens + usage.completion_tokens
    assert amount is not None
    assert plan(f"{amount / 2:.10f}{unit}").fits == pytest.approx(whole.requests / 2, abs=1)


def test_the_slowest_limit_sets_the_time() -> None:
    free, slow = (
        make_plan(prepared(UsageReportingJudge(), **limits)).judges[0].time
        for limits in ({}, {"rpm": 2})
    )
    assert slow.seconds == pytest.approx(10 * 60, abs=5)
    assert "--rpm 2" in slow.why
    assert free.seconds is not None
    assert "64 at once" in free.why
    assert (
        make_plan(prepared(UsageReportingJudge(), tpm=100))
        .judges[0]
        .time.why.startswith("--tpm 100")
    )


def test_possible_extra_draws_are_noted_but_not_counted() -> None:
    hoping, sure = (
        make_plan(prepared(UsageReportingJudge(), weighting=w)) for w in ("auto", "single")
    )
    assert totals(hoping) == totals(sure)
    assert any("20 draws" in note for note in hoping.notes)
    assert not any("draws" in note for note in sure.notes)
    run(prepared(UsageReportingJudge(logprobs=False), ROWS[:6]))
    learned = make_plan(prepared(UsageReportingJudge(logprobs=False)))
    assert learned.judges[0].estimate.strategies == ("samples",)
    assert not any("draws" in note for note in learned.notes)


@pytest.mark.parametrize("judge", [UsageReportingJudge, OneByOne])
def test_cost_of_a_model_without_logprobs_equals_the_noted_extra(
    judge: type[UsageReportingJudge],
) -> None:
    class Hoping(judge):  # type: ignore[misc, valid-type]
        learned = {"n": 1} if judge is OneByOne else {}

    plan = make_plan(prepared(Hoping())).judges[0]
    asker = OneByOne() if judge is OneByOne else UsageReportingJudge(logprobs=False)
    spent = asyncio.run(run_pipeline(prepared(asker))).info.usage
    written = spent.completion_tokens // 3 * 4  # a reply has 3 tokens, the estimate is 4
    paid = cost_usd("gpt-5.4-mini", DEFAULT_URL, Usage(spent.prompt_tokens, written))
    assert plan.money.price is not None
    assert plan.money.more is not None
    assert plan.money.price + plan.money.more == pytest.approx(paid, rel=0.01)


def test_plan_from_a_sample_of_items_is_scaled() -> None:
    rows = [
        {"item": str(i), "system": s, "source": f"S {i}.", "output": f"{s} {i}"}
        for i in range(100)
        for s in "ab"
    ]
    (whole,), (some,) = (
        count_requests(prepared(UsageReportingJudge(), rows), most) for most in (None, 40)
    )
    assert (whole.exact, some.exact) == (True, False)
    assert (
        (some.total.judgments, some.total.requests)
        == (whole.total.judgments, whole.total.requests)
        == (400, 400)
    )
    assert some.total.read == pytest.approx(whole.total.read, rel=0.02)


@pytest.mark.parametrize("warm", [False, True])
def test_the_plan_of_more_items_is_scaled_and_assumes_no_cached_replies(warm: bool) -> None:
    if warm:
        run(prepared(UsageReportingJudge()))
    plan = make_plan(prepared(UsageReportingJudge()), items=40)
    now = totals(make_plan(prepared(UsageReportingJudge(), cache=False)))
    assert totals(plan) == {name: 10 * many for name, many in now.items()}
    assert has_line([plan.notes[0]], "4 items", "40 similar ones")
    for options, items in (({}, 0), ({"pairwise": True, "criteria": ["overall"], "pairs": 3}, 5)):
        with pytest.raises(ConfigError, match="items"):
            make_plan(prepared(UsageReportingJudge(), **options), items=items)


@pytest.mark.parametrize("judge", [UsageReportingJudge(), OneByOne(announced=True), OneByOne()])
def test_the_method_is_explained(judge: UsageReportingJudge) -> None:
    (plan,) = make_plan(prepared(judge)).judges
    strategy = "samples: the mean" if judge.learned else "logprobs: "
    assert plan.method.startswith(strategy)
    assert has_line(plan.method, "20 draws") == bool(judge.learned)
    assert ("one extra request checks" in plan.method) == bool(judge.learned)
    (alone,) = make_plan(prepared(judge, weighting="single")).judges
    assert alone.method == "single: one reply per judgment"


def test_cost_estimate_uses_the_price_per_token() -> None:
    (plan,) = make_plan(prepared(UsageReportingJudge())).judges
    assert plan.money.rate == pytest.approx((0.75, 4.5))
    assert plan.money.price == pytest.approx(
        (plan.usage.prompt_tokens * 0.75 + plan.usage.completion_tokens * 4.5) / 1e6
    )


def test_plan_names_default_criteria() -> None:
    run_plan = load_config(options={"metrics": []})
    rows = [{**row, "source": "The source, and what it says of it."} for row in ROWS]
    (first, *_) = make_plan(prepare(run_plan, rows, providers=[UsageReportingJudge()])).notes
    assert has_line(first, "relevance, coherence, consistency, fluency", "--criteria")
    assert not any(
        note.startswith("Default criteria")
        for note in make_plan(prepared(UsageReportingJudge())).notes
    )


@pytest.mark.parametrize(("n_words", "is_noted"), [(100, False), (6_000, True)])
def test_a_long_prompt_is_noted_with_its_text(n_words: int, is_noted: bool) -> None:
    rows = [*ROWS, {"item": "long", "system": "x", "source": "word " * n_words, "output": "short"}]
    run_plan = load_config(options={"metrics": [], "criteria": ["relevance"]})
    notes = make_plan(prepare(run_plan, rows, providers=[UsageReportingJudge()])).notes
    long_notes = [note for note in notes if note.startswith("The longest prompt")]
    assert len(long_notes) == is_noted
    assert all("'long'" in note for note in long_notes)


def test_a_ranking_has_an_estimate() -> None:
    ready = prepared(UsageReportingJudge(reply={"A": 1.0}), pairwise=True, criteria=["overall"])
    assert totals(make_plan(ready))["requests"] == run(ready)["sent"] == 18


def test_a_prompt_that_cannot_be_rendered_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "odd.jinja"
    file.write_text(
        "---\nscale: [1, 5]\n---\n{{ output }} {{ 1 // (output | length - 4) }}\nFrom 1 to 5.\n"
    )
    run_plan = load_config(options={"metrics": [], "criteria": [str(file)]})
    plan = make_plan(prepare(run_plan, ROWS, providers=[UsageReportingJudge()]))
    assert plan.judges[0].estimate.total.broken == 3
    assert any("3 judgments will fail" in note for note in plan.notes)


def test_a_run_shows_a_one_line_estimate() -> None:
    line = one_line_estimate(prepared(UsageReportingJudge()))
    assert has_line(line, "24 judgments to make", "20 requests")
    assert "$" in line
    run(prepared(UsageReportingJudge()))
    line = one_line_estimate(prepared(UsageReportingJudge()))
    assert has_line(line, "24 judgments to make", "cache answers all requests")
    assert one_line_estimate(prepared(ScriptedProvider(lambda _: "4"))).endswith(
        "no model is called"
    )


def test_failed_judgments_that_are_asked_again_are_in_the_estimate() -> None:
    def unreadable(**options: Any) -> PreparedRun:
        judge = UsageReportingJudge(reply="hm")
        return prepared(judge, weighting="single", repair="off", **options)

    sent = run(unreadable())["sent"]
    assert totals(make_plan(unreadable()))["requests"] == 0
    again = unreadable(retry_failed=True)
    assert totals(make_plan(again))["requests"] == sent
    assert run(again)["sent"] == sent


def test_the_estimate_is_plain_json() -> None:
    import json

    data = json.loads(
        json.dumps(make_plan(prepared(UsageReportingJudge(), budget="5usd")).to_dict())
    )
    assert (data["requests"], data["fits"], data["budget"]) == (20, 20, "$5.00")
    (judge_data,) = data["judges"]
    assert judge_data["total"]["requests"] == sum(line["requests"] for line in judge_data["lines"])


def test_numbers_are_short() -> None:
    assert [dollars(x) for x in (0.0, 0.00001, 0.0123, 12.3)] == [
        "$0.00",
        "less than $0.0001",
        "$0.012",
        "$12.30",
    ]
    assert [str(Budget(x, "usd")) for x in (0.003, 0.5, 1234)] == ["$0.003", "$0.50", "$1,234.00"]
    assert Budget(0.00123, "usd").rounded_up().as_option == "0.0013usd"
    assert Budget(1234, "tokens").rounded_up().as_option == "1300tokens"
    for budget in (Budget(0.0013, "usd"), Budget(20, "usd"), Budget(1300, "tokens")):
        assert parse_budget(budget.as_option) == budget
    assert [rough_duration(x) for x in (0.2, 89, 100, 9000)] == ["1 s", "89 s", "2 min", "2.5 h"]
