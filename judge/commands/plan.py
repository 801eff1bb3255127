"""`judge.plan`, and its forecast on a terminal, in a notebook or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Unpack

from markupsafe import escape
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.commands.cost_estimate import (
    SAMPLED_JUDGMENTS,
    JudgeEstimate,
    JudgeForecast,
    RunForecast,
    count_requests,
    estimate_cost,
    judge_forecast,
)
from judge.commands.evaluate import Criteria, Model, to_config
from judge.commands.judge_models import UNKNOWN, open_offline
from judge.commands.options import RankOptions
from judge.commands.preparation import PreparedRun, engine_context, prepare
from judge.commands.public import public_api
from judge.config import Judge, RankConfig, RunConfig
from judge.core.errors import ConfigError
from judge.core.format import dollars, duration, plural, to_json
from judge.core.messages import option, speaking_to
from judge.core.plugins import unknown_name_message
from judge.core.records import Usage
from judge.execution import budget
from judge.execution.engines.batch_api import under_way
from judge.metrics import asks_judge
from judge.report.renderers.console import recording_console

if TYPE_CHECKING:
    from judge.commands.evaluate import Data

FORMATS = ("console", "json")
_HEADINGS = ("judgments", "equal", "cached", "requests", "tokens in", "out", "prefix")
_NOT_INCLUDED = (
    "Not counted: tries after a failed one, what a model thinks before it writes, and limits of the server that are "
    "not in --rpm or --tpm."
)
_ORDERS = {1: "one order", 2: "both orders"}
_GO_ON = "the run then stops, and goes on from there with the same command"
_PREFIX = "prefix: of the tokens in, what a provider's cache can serve, as the same text was begun with before"


@dataclass(frozen=True, repr=False)
class Forecast(RunForecast):
    """What `judge.plan` gives: what a run would ask, cost and take. Nothing was sent."""

    def __repr__(self) -> str:
        return f"<Forecast: {self.requests:,} requests, {_price(self.price)}>"

    def report(self, format: str = "console") -> str:
        """As console or json. Raises ConfigError for another."""
        if format not in FORMATS:
            raise ConfigError(unknown_name_message("format", format, list(FORMATS)))
        if format == "json":
            return json.dumps(to_json(self.to_dict()), ensure_ascii=False, indent=1) + "\n"
        console, text = recording_console(colour=False)
        with speaking_to("python"):
            show(console, self)
        return "\n".join(row.rstrip() for row in text.getvalue().split("\n"))

    def _repr_html_(self) -> str:
        """What each judge is asked, for notebooks."""
        heads = "".join(f"<th>{head}</th>" for head in ("", *_HEADINGS))
        html = ""
        with speaking_to("python"):
            for judge in self.judges:
                rows = "".join(
                    f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in _rows(judge)
                )
                html += f"<p><b>{escape(judge.ahead.judge)}</b> {escape(judge.endpoint)}</p>"
                html += f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
                html += f"<p>{'<br>'.join(f'{name}: {escape(fact)}' for name, fact in _judge_facts(judge))}</p>"
            if not self.judges:
                html += "<p>No judge is asked to score anything.</p>"
            remarks = [*(_limits(self) if self.requests else ()), *self.notes]
        notes = "".join(f"<p>{escape(note)}</p>" for note in remarks)
        return f"{html}<details><summary>On what this rests</summary>{notes}</details>"


@public_api("plan", RankConfig)
def plan(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    rank: bool = False,
    items: int | None = None,
    **options: Unpack[RankOptions],
) -> Forecast:
    """What a run would ask, cost and take, of `judge.evaluate` with the same arguments, or, with `rank`, `judge.rank`.

    Or, with `items`, of so many items like these. Sends nothing, and needs no key. What the cache holds already is not
    counted. Raises JudgeError.
    """
    run_options: Mapping[str, Any] = {name: value for name, value in options.items() if name not in ("out", "record")}
    config, judges, loaded_criteria = to_config(RankConfig if rank else RunConfig, data, criteria, model, run_options)
    config = config.model_copy(update={"retry_failed": False})
    providers = open_offline(config)
    if judges is not None:  # providers that the caller made keep their places between those of the plan
        named = iter(providers)
        providers = [next(named) if isinstance(judge, Judge) else judge for judge in judges]
    prepared = prepare(config, data, providers=providers, loaded_criteria=loaded_criteria)
    return make_forecast(prepared, items)


def make_forecast(prepared: PreparedRun, items: int | None = None) -> Forecast:
    """Estimate a run, and say in words what the estimate rests on. Raises ConfigError."""
    estimate = estimate_cost(prepared, items=items)
    judges = tuple(
        replace(judge, rests=_explain_tokens(judge.ahead), way=_describe_strategy(prepared, judge.ahead))
        for judge in estimate.judges
    )
    explained = replace(estimate, judges=judges, notes=tuple(_notes(prepared, judges, items)))
    return Forecast(**{field.name: getattr(explained, field.name) for field in fields(explained)})


def _describe_strategy(prepared: PreparedRun, estimate: JudgeEstimate) -> str:
    """Say how the judge is asked, and why."""
    provider, settings = prepared.judges[estimate.judge], prepared.settings
    if provider.notice or not estimate.rungs:
        return ""
    strategy = estimate.rungs[0]
    if strategy == "decisions":
        return "decisions: typed questions, whose answers come with probabilities"
    if strategy == "logprobs":
        return f"logprobs: token probabilities of one reply{', if the model gives them' * bool(estimate.draws)}"
    if strategy == "single":
        return "single: one reply, as it is written"
    each = ", a request for each" if provider.learned.get("n") == 1 else ""
    description = f"samples: the mean of {settings.draws} draws of each reply{each}"
    if settings.weighting == "samples":
        return description
    probe = "; one request more tries for them first" if "logprobs" in estimate.rungs else ""
    who = "vendor" if "logprobs" in provider.learned.get("dropped", ()) else "model"
    return f"{description}, as the {who} gives no token probabilities{probe}"


def _explain_tokens(estimate: JudgeEstimate) -> str:
    """Say how the tokens were estimated."""
    if estimate.checked is None:
        english, kana, han, hangul = (budget.estimate_tokens(letter * 1000) / 1000 for letter in "aあ漢한")
        rates = (
            f"English {1 / english:.1f} for a token; Japanese kana {kana:.2g} tokens each, kanji and Chinese "
            f"{han:.2g}, Korean {hangul:.2g}"
        )
        read = (
            f"tokens read are estimated from characters ({rates}), often 10 % off; the cache holds no counted reply "
            "to correct that by"
        )
    else:
        checked = estimate.checked
        bias = f"{abs(checked.bias):.1%} too {'high' if checked.bias > 0 else 'low'}: corrected"
        read = (
            f"tokens read are estimated from characters; on the {checked.replies:,} prompts whose replies are in the "
            f"cache that was {bias}, which leaves a median error of {checked.error:.1%}"
        )
    if "decisions" in estimate.rungs:
        return f"{read}; answers to typed questions are not written"
    if not estimate.total.requests:
        return read
    return f"{read}; tokens written are {'the mean of those replies' if estimate.learned else 'guessed by reply kind'}"


def _notes(prepared: PreparedRun, judges: Sequence[JudgeForecast], items: int | None) -> list[str]:
    """Say which choices are defaults, and what the numbers do not include."""
    notes = []
    if items is not None:
        known_items = len({sample.item for sample in prepared.samples})
        notes.append(
            f"Scaled from {plural(known_items, 'item')} to {items:,} like them, as if the cache had no reply to "
            "them; what it knows of the model still counts."
        )
    if prepared.criteria and "criteria" not in prepared.config.model_fields_set:
        names = ", ".join(criterion.name for criterion in prepared.criteria)
        notes.append(f"Criteria: {names}, as none were named; {option('criteria')} names others.")
    if hoping := [judge for judge in judges if judge.ahead.draws]:
        draws = hoping[0].ahead.draws
        each = max(judge.ahead.each for judge in judges)
        requests = f", {each} requests for one" if each > 1 else ""
        known = [judge.money.more for judge in hoping if judge.money.more is not None]
        cost = f", which costs about {dollars(sum(known))} more" if len(known) == len(hoping) else ""
        notes.append(
            f"If the first reply shows that the model gives no token probabilities, {draws} draws of each reply are "
            f"asked for instead{requests}{cost} (--weighting single does without)."
        )
    notes += _pending_batches(prepared)
    if prepared.rest is not None and items is None:
        notes.append(f"All this is of the first {len(prepared.samples):,} texts; the data has more.")
    asking = [name for name, metric in prepared.metrics.items() if asks_judge(metric)]
    if asking:
        first = next(iter(prepared.judges), "its judge")
        notes.append(f"Not counted: what {', '.join(asking)} asks {first}, as its later questions depend on replies.")
    if any(judge.endpoint.startswith(UNKNOWN) for judge in judges):
        notes.append("$AZURE_OPENAI_ENDPOINT is not set: what the cache holds of the replies there was not looked up.")
    broken = sum(judge.ahead.total.broken for judge in judges)
    if broken:
        notes.append(f"{broken:,} judgments cannot be asked: their prompt cannot be rendered; the run says why.")
    if any(judge.ahead.total.requests for judge in judges):
        notes.append(_NOT_INCLUDED)
    return notes


def _pending_batches(prepared: PreparedRun) -> list[str]:
    """Warn of batches of an earlier run that are still in progress, if this run would not wait for them."""
    if prepared.config.engine == "batch":
        return []
    warnings = []
    for provider in prepared.judges.values():
        context = engine_context(prepared.config, provider)
        if context.folder is not None and (number := under_way(context.folder, context.provider.endpoint)):
            warnings.append(
                f"{number:,} requests of an earlier run are under way in batches at {context.provider.endpoint}: with "
                "--engine batch this run waits for them, without it what it asks of them is paid again."
            )
    return warnings


def one_line_estimate(prepared: PreparedRun) -> str:
    """Return one line to print before a run: judgments and, from a sample, about the requests, tokens, price and time.

    A ranking also has its n·(k choose 2) pairs, and batches in progress get lines of their own. "" without a judge.
    """
    estimates = count_requests(prepared, SAMPLED_JUDGMENTS)
    if not estimates:
        return ""
    config, pairs, product = prepared.config, prepared.pairs, ""
    if pairs is not None and isinstance(config, RankConfig):
        factors = [f"{pairs.chosen:,} pair{'s' * (pairs.chosen != 1)} of texts in {_ORDERS[config.orders]}"]
        for count, noun in ((len(prepared.criteria), "criteria"), (len(prepared.judges), "judges")):
            factors += [f"{count} {noun}"] if count > 1 else []
        equal = len(pairs.equal) // config.orders
        ties = f" (equal texts, {equal:,} pair{'s' * (equal != 1)}, are ties for nothing)" if equal else ""
        product = f"{' × '.join(factors)}{ties}: "
    return "\n".join([f"{product}{_describe_requests(prepared, estimates)}", *_pending_batches(prepared)])


def _describe_requests(prepared: PreparedRun, estimates: Sequence[JudgeEstimate]) -> str:
    size = len(prepared.pairs.compared) if prepared.pairs else len(prepared.samples)
    count = size * len(prepared.criteria) * len(prepared.judges)
    line = f"{count:,} judgments to make{f' of the first {size:,} texts' if prepared.rest is not None else ''}"
    requests = sum(estimate.total.requests for estimate in estimates)
    if not requests:
        about = "" if all(estimate.exact for estimate in estimates) else "about "
        return f"{line}, {about}all of them answered from the cache"
    judges = [judge_forecast(prepared.config, prepared.judges[estimate.judge], estimate) for estimate in estimates]
    if all(prepared.judges[estimate.judge].notice for estimate in estimates):
        return f"{line}, and no model is asked"
    usage = sum((judge.usage for judge in judges), Usage())
    known = [judge.money.price for judge in judges if judge.money.price is not None]
    parts = [
        f"{line}: about {requests:,} requests",
        f"{_short(usage.prompt_tokens)} tokens to read, {_short(usage.completion_tokens)} to write",
        dollars(sum(known)) if len(known) == len(judges) else "price unknown",
    ]
    seconds = [judge.time.seconds for judge in judges if judge.time.seconds is not None]
    parts += [f"about {duration(max(seconds))}"] if seconds else []
    return ", ".join(parts)


def _short(number: int) -> str:
    """`840`, `12k`, `4.2M`."""
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1e3:.0f}k" if number < 1e6 else f"{number / 1e6:.1f}M"


def _rows(judge: JudgeForecast) -> Iterator[list[str]]:
    lines = judge.ahead.lines
    for line in [*lines, judge.ahead.total] if len(lines) > 1 else lines:
        counts = (line.judgments, line.equal, line.cached, line.requests, line.read, line.written)
        share = f"{line.shared / line.read:.0%}" if line.read else "–"
        yield [line.criterion, *(f"{number:,.0f}" for number in counts), share]


def show(screen: Console, forecast: RunForecast) -> None:
    """Print a forecast."""
    for judge in forecast.judges:
        screen.print(Text.assemble((judge.ahead.judge, "bold"), (f"  {judge.endpoint}", "dim")))
        table = Table(box=None, padding=(0, 1), pad_edge=False)
        table.add_column("", overflow="fold")
        for head in _HEADINGS:
            table.add_column(head, justify="right", no_wrap=True)
        for row in _rows(judge):
            table.add_row(*row, style="bold" if row[0] == "all" and len(judge.ahead.lines) > 1 else "")
        screen.print(table)
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="bold", no_wrap=True)
        facts.add_column(overflow="fold")
        for name, fact in _judge_facts(judge):
            facts.add_row(name, fact)
        if judge.ahead.total.requests:
            facts.add_row("rests on", judge.rests)
        screen.print(facts)
        screen.print()
    if not forecast.judges:
        screen.print("No judge is asked to score anything.")
    if len(forecast.judges) > 1:
        screen.print(Text(f"all judges  {forecast.requests:,} requests, {_price(forecast.price)}", "bold"))
    for remark in _limits(forecast) if forecast.requests else ():
        screen.print(Text(remark, "bold"))
    for note in [*([_PREFIX] if forecast.requests else []), *forecast.notes]:
        screen.print(Text(note, "dim"))


def _judge_facts(judge: JudgeForecast) -> Iterator[tuple[str, str]]:
    """Yield name and text: how the judge is asked, the price, the price of single replies, and the time."""
    if judge.way:
        yield "way", judge.way
    money = judge.money
    if money.price is None:
        cost = f"unknown ({money.why})"
    elif not money.why or judge.ahead.total.requests == 0:
        cost = "nothing: no request is sent"
    elif money.price == 0:
        cost = f"nothing: {money.why}"
    else:
        rate = ""
        if money.rate is not None:
            rate = f": {_rate(money.rate[0])} in, {_rate(money.rate[1])} out for a million tokens"
        cost = f"{dollars(money.price)} ({money.why}{rate})"
        if money.cached is not None and round(money.cached, 6) < round(money.price, 6):
            cost += f"; {dollars(money.cached)} where the provider's cache serves every shared prefix"
    yield "price", cost
    if judge.single is not None:
        price = "" if judge.single.price is None else f"{dollars(judge.single.price)}, "
        many = f"{judge.single.requests:,} request{'s' * (judge.single.requests != 1)}"
        yield "single", f"{price}{many} with {option('weighting', 'single')}: one reply for each judgment"
    seconds = judge.time.seconds
    yield "time", judge.time.why if seconds is None else f"about {duration(seconds)} ({judge.time.why})"


def _rate(amount: float) -> str:
    """Format a price per million tokens: `$0.75`; below a cent with two significant digits."""
    return f"${amount:,.2f}" if amount >= 0.01 or not amount else dollars(amount)


def _price(price: float | None) -> str:
    return "price unknown" if price is None else dollars(price)


def _limits(forecast: RunForecast) -> Iterator[str]:
    """Yield how far the budget and the deadline reach."""
    requests, fits, in_time = forecast.requests, forecast.fits, forecast.in_time
    if forecast.budget is not None:
        if fits is None:
            reach = "the price is not known, so a run stops at once; give tokens: 200000tokens"
        elif fits >= requests:
            reach = f"all {requests:,} requests fit"
        elif fits:
            reach = f"about {fits:,} of {requests:,} requests fit; {_GO_ON}"
        else:
            lacking = forecast.budget.lacking(forecast.room)
            reach = f"no request fits, as one goes only when the most it can cost is left; {lacking}"
        yield f"{option('budget', str(forecast.budget))}: {reach}"
    if forecast.deadline is not None:
        if in_time is None:
            reach = (
                "a batch that is under way then goes on without the run, and the same command fetches what it brings"
            )
        elif in_time >= requests:
            reach = f"all {requests:,} requests are in time"
        else:
            reach = f"about {in_time:,} of {requests:,} requests are in time; {_GO_ON}"
        yield f"{option('deadline')} {forecast.deadline:g} s: {reach}"
