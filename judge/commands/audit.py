"""`judge audit`: a judge is tried on controlled changes to a user's own texts. What it says of them is its card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from judge import config
from judge.audit.build_card import assess
from judge.audit.card import PROBES, Card, Evidence
from judge.commands.audit_plan import DRAWN, MAIN, NATURAL, PAIRS, TEMPERATURES, WORDINGS, ReadyAudit, ready
from judge.commands.cost_estimate import dollars, duration, foresee
from judge.commands.evaluate import Criteria, JudgeOptions, planned, refuse_options
from judge.commands.loop import in_a_loop
from judge.commands.progress_display import Watch, watched
from judge.commands.public import async_door, door
from judge.commands.run_sequence import Showing, in_turn
from judge.core.records import Sample, Usage
from judge.execution.progress import Progress
from judge.report.format import count
from judge.results.result import Result
from judge.table import Table, store
from judge.table.core import sort_out

if TYPE_CHECKING:
    from judge.commands.evaluate import Data, Model

__all__ = ["AuditOptions", "audit", "audit_async", "forecast", "ready", "run"]

_LOOKED_AT = 400
_PRINTED = {"card.md": "markdown", "card.html": "html", "card.json": "json"}
_PLACES = ("data", "out", "cache", "replay", "record")
"""What of a plan says only where files are."""
_TOLD = ("seconds", "requests", "usage", "cost", "served_by", "unmet")
"""What a card says of each run."""


class AuditOptions(JudgeOptions, total=False):
    """What `audit` takes besides: keys of `config.Plan`."""

    out: str | Path


@door(AuditOptions)
def audit(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    items: int = 100,
    probes: str | Sequence[str] = PROBES,
    progress: Watch = None,
    **options: Unpack[AuditOptions],
) -> Card:
    """Try a judge on controlled changes to one text of each of `items` items of the data: what it notices, leans to.

    `probes` are `sensitivity` (does each criterion notice its own damage, and no other's), `bias` (position, length,
    copying, its own family's texts, the prompt's words, the scale, chance) and `injection` (does it do what a text
    tells it to). `model` names one judge, as in `judge.evaluate`, or `heuristic`; so do all other arguments. With `out`
    the card is kept in `out/card.md`, `.html` and `.json`, and the run of the changed texts in `out/changed`.

    A judgment that fails is counted in `card.failures`. Raises JudgeError for what is wrong with the arguments, the
    data or the endpoint.
    """
    return in_a_loop(
        lambda: audit_async(data, criteria, model=model, items=items, probes=probes, progress=progress, **options)
    )


@async_door(AuditOptions)
async def audit_async(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    items: int = 100,
    probes: str | Sequence[str] = PROBES,
    progress: Watch = None,
    **options: Unpack[AuditOptions],
) -> Card:
    """`audit` for callers with an event loop of their own."""
    refuse_options(options, AuditOptions, "an audit")
    made, providers, own = planned(config.plan, data, criteria, model, options)
    found = ready(made, data, items=items, probes=probes, providers=providers, own=own)
    async with watched(progress) as counts:
        return await run(found, counts)


# What it costs, and what comes of it


def forecast(found: ReadyAudit) -> str:
    """One line before an audit: its texts and judgments, and about the requests, tokens, price and time of all runs."""
    said = f"an audit of {found.model} on {count(len(found.texts.originals), 'item')}"
    if not found.judgments:
        return f"{said}: {count(len(found.texts.changed), 'text')}, and no model is asked"
    said += f": {count(found.judgments, 'judgment')} in {count(len(found.runs), 'run')}"
    ahead = [foresee(one, _LOOKED_AT) for one in found.runs.values()]
    requests = sum(one.requests for one in ahead)
    if not requests:
        return f"{said}, about all of them answered from the cache"
    if all(judge.notice for one in found.runs.values() for judge in one.judges.values()):
        return f"{said}, and no model is asked"
    usage = sum((judge.usage for one in ahead for judge in one.judges), Usage())
    prices = [one.price for one in ahead]
    price = "price unknown" if None in prices else dollars(sum(one or 0.0 for one in prices))
    seconds = sum(one.seconds or 0.0 for one in ahead)
    tokens = f"{_about(usage.prompt_tokens)} tokens to read, {_about(usage.completion_tokens)} to write"
    return f"{said}: about {_about(requests)} requests, {tokens}, {price}, about {duration(seconds)}"


def _about(number: int) -> str:
    """To three digits."""
    return f"{float(f'{number:.3g}'):,.0f}"


async def run(found: ReadyAudit, progress: Progress | None = None, shown: Showing = lambda *_: nullcontext()) -> Card:
    """Ask all that there is to ask, out of one purse and within one deadline, and make the card. Saves it with `out`.

    Raises what `stages.run` raises.
    """
    results = await in_turn(found.runs, found.plan, progress, shown)
    card = _card(found, results)
    if found.plan.out is not None:
        store(found.plan.out, {name: card.report(format).encode() for name, format in _PRINTED.items()})
    return card


def _card(found: ReadyAudit, results: Mapping[str, Result]) -> Card:
    texts, tables = found.texts, [result.table for result in results.values()]
    evidence = _evidence(found, results)
    card = assess(evidence, texts.changes, texts.attacks, texts.neutral, seed=found.plan.seed)
    failures = Counter(row.error for table in tables for row in table.failures)
    notes = dict.fromkeys(results[MAIN].info["notes"])
    first, plan = results[MAIN].info, found.plan.model_dump(mode="json", by_alias=True, exclude_none=True)
    about = {
        "judgments": sum(len(table.scores) + len(table.failures) for table in tables),
        "failed": sum(failures.values()),
        "probes": list(found.probes),
        "data": {"name": _named(first["data"].get("path")), "sha256": first["data"].get("sha256")},
        "endpoint": first.get("base_url"),
        "date": str(first.get("started") or "")[:10] if found.runs[MAIN].judges else None,
        "criteria": _criteria(card, first),
        "settings": _settings(found, first),
        "spent": _spent(results),
        "plan": {key: _named(value) for key, value in plan.items() if key not in _PLACES},
        "runs": {name: {key: result.info[key] for key in _TOLD} for name, result in results.items()},
    }
    return replace(
        card,
        notes=(*notes, *(note for note in card.notes if note not in notes)),
        failures=dict(failures.most_common()),
        info={**card.info, **about},
    )


def _named(value: Any) -> Any:
    """The same with the last part alone of every path: where a file lies is nobody else's business."""
    if isinstance(value, Mapping):
        return {key: _named(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_named(one) for one in value]
    if isinstance(value, str) and "://" not in value and (config.script_of(value) or Path(value)).is_absolute():
        return Path(value).name
    return value


def _criteria(card: Card, info: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of each criterion, with the digest of its prompt and the kind of its reply."""
    told = info.get("criteria") or {}
    more = ("digest", "reply")
    return {
        name: {**one, **{key: told[name][key] for key in more if key in told.get(name, {})}}
        for name, one in card.info["criteria"].items()
    }


def _settings(found: ReadyAudit, info: Mapping[str, Any]) -> dict[str, Any]:
    """How the changed texts were judged; of the heuristic, which takes no settings, nothing."""
    if not found.runs[MAIN].judges:
        return {}
    weighting = info.get("weighting") or found.plan.weighting
    temperature = found.plan.temperature
    drawn = {"draws": found.plan.draws} if weighting == "samples" else {}
    default = 1.0 if weighting == "samples" else 0.0
    return {"weighting": weighting, **drawn, "temperature": default if temperature is None else temperature}


def _spent(results: Mapping[str, Result]) -> dict[str, Any]:
    """Requests, tokens and dollars of all runs; the latter None where a run has no price."""
    infos = [result.info for result in results.values()]
    costs = [info["cost"].get("usd") for info in infos if info["requests"].get("sent")]
    return {
        "requests": sum(info["requests"].get("sent", 0) for info in infos),
        "tokens": sum(info["usage"].get(key, 0) for info in infos for key in ("prompt_tokens", "completion_tokens")),
        "usd": None if None in costs or not costs else sum(costs),
    }


def _evidence(found: ReadyAudit, results: Mapping[str, Result]) -> Evidence:
    texts, lacking = found.texts, dict(found.lacking)
    main = results[MAIN].table
    drawn = {t: results[name] for t, name in zip(TEMPERATURES, DRAWN, strict=True) if name in results}
    if any(result.info["unmet"].get("temperature") for result in drawn.values()):
        lacking["repeats"] = "the server does not take a temperature: what is called 1 here is its own"
        drawn = {t: result for t, result in drawn.items() if t}
    own = texts.as_in_the_data(main)
    pairs = results.get(PAIRS)

    def with_own(samples: Sequence[Sample], name: str) -> Table:
        """The originals' scores, and those of another run beside them."""
        more = results[name].table if name in results else None
        columns = dict.fromkeys((*main.columns, *(more.columns if more else ())))
        return Table(tuple(samples), tuple(columns), *sort_out([*own, *(more.rows() if more else ())]))

    bias = "bias" in found.probes
    return Evidence(
        texts.originals,
        {column.criterion: column for column in main.columns if column.kind == "criterion"},
        texts.under_their_names(main),
        found.model,
        found.plan.language or "en",
        with_own((*texts.originals, *texts.others), NATURAL) if bias else None,
        with_own(texts.originals, WORDINGS) if WORDINGS in results else None,
        {temperature: result.table for temperature, result in drawn.items()},
        pairs.rankings if pairs else (),
        pairs.table if pairs else None,
        lacking,
    )
