"""`judge audit`: a judge is tried on controlled changes to a user's own texts. What it says of them is its card."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast

from judge import config
from judge.api import stages
from judge.api.loop import in_a_loop
from judge.api.planning import dollars, duration, foresee
from judge.api.prepare import Prepared
from judge.api.probing import DRAWN, MAIN, NATURAL, PAIRS, TEMPERATURES, WORDINGS, Ready, ready
from judge.audits.assess import assess
from judge.audits.card import PROBES, Card, Evidence
from judge.progress import Progress
from judge.providers import Provider
from judge.purse import Purse
from judge.records import Criterion, Sample, Usage
from judge.report import Result
from judge.report.words import count
from judge.table import Table, store
from judge.table.core import sort_out

if TYPE_CHECKING:
    from judge.api.entry import Data, Model

__all__ = ["AuditOptions", "audit", "audit_async", "forecast", "ready", "run"]

_LOOKED_AT = 400
_PRINTED = {"card.md": "markdown", "card.html": "html", "card.json": "json"}
_TOLD = ("seconds", "requests", "usage", "cost", "served_by", "unmet")
"""What a card says of each run."""

Shown = Callable[[str, Prepared], AbstractContextManager[Any]]
"""What shows one of the runs, by its name, while it goes."""


class AuditOptions(TypedDict, total=False):
    """What `audit` takes besides: keys of `config.Plan`."""

    mapping: Mapping[str, str]
    systems: str | Sequence[str]
    language: str
    base_url: str
    key_env: str
    weighting: str
    draws: int
    min_mass: float
    reply: str
    structured: bool
    temperature: float
    max_tokens: int
    max_concurrency: int
    timeout: float
    retries: int
    rpm: int
    tpm: int
    deadline: float
    budget: str
    cache: str | Path | Literal[False]
    replay: str | Path
    record: str | Path
    out: str | Path
    seed: int


def audit(
    data: Data,
    criteria: str | Sequence[str | Criterion] | None = None,
    *,
    model: Model | None = None,
    items: int = 100,
    probes: str | Sequence[str] = PROBES,
    progress: Progress | None = None,
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


async def audit_async(
    data: Data,
    criteria: str | Sequence[str | Criterion] | None = None,
    *,
    model: Model | None = None,
    items: int = 100,
    probes: str | Sequence[str] = PROBES,
    progress: Progress | None = None,
    **options: Unpack[AuditOptions],
) -> Card:
    """`audit` for callers with an event loop of their own."""
    given: dict[str, Any] = dict(options)
    if "mapping" in given:
        given["map"] = given.pop("mapping")
    own = {c.name: c for c in criteria or () if isinstance(c, Criterion)}
    if criteria is not None:
        given["criteria"] = criteria if isinstance(criteria, str) else [getattr(c, "name", c) for c in criteria]
    if isinstance(data, str | Path):
        given["data"] = Path(data)
    listed = list(model) if isinstance(model, list | tuple) else [] if model is None else [model]
    given["model"] = [one for one in listed if isinstance(one, str | Mapping)]
    made = config.plan(given=given)
    providers = cast("list[Provider]", [one for one in listed if not isinstance(one, str | Mapping)])
    found = ready(made, data, items=items, probes=probes, providers=[*made.model, *providers], own=own)
    return await run(found, progress)


# What it costs, and what comes of it


def forecast(found: Ready) -> str:
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


async def run(found: Ready, progress: Progress | None = None, shown: Shown = lambda *_: nullcontext()) -> Card:
    """Ask all that there is to ask, out of one purse and within one deadline, and make the card. Saves it with `out`.

    Raises what `stages.run` raises.
    """
    progress = progress if progress is not None else Progress()
    purse, results = Purse(found.plan.budget), dict[str, Result]()
    now = asyncio.get_running_loop().time
    until = None if found.plan.deadline is None else now() + found.plan.deadline
    for name, one in found.runs.items():
        if until is not None:
            one.plan = one.plan.model_copy(update={"deadline": until - now()})
        progress.stage = "judging"
        with shown(name, one):
            results[name] = await stages.run(one, progress, purse)
    card = _card(found, results)
    if found.plan.out is not None:
        store(found.plan.out, {name: card.report(format).encode() for name, format in _PRINTED.items()})
    return card


def _card(found: Ready, results: Mapping[str, Result]) -> Card:
    texts, tables = found.texts, [result.table for result in results.values()]
    evidence = _evidence(found, results)
    card = assess(evidence, texts.changes, texts.attacks, texts.neutral, seed=found.plan.seed)
    failures = Counter(row.error for table in tables for row in table.failures)
    notes = dict.fromkeys(results[MAIN].info["notes"])
    about = {
        "judgments": sum(len(table.scores) + len(table.failures) for table in tables),
        "failed": sum(failures.values()),
        "probes": list(found.probes),
        "data": found.runs[MAIN].data,
        "plan": found.plan.model_dump(mode="json", by_alias=True, exclude_none=True),
        "runs": {name: {key: result.info[key] for key in _TOLD} for name, result in results.items()},
    }
    return replace(
        card,
        notes=(*notes, *(note for note in card.notes if note not in notes)),
        failures=dict(failures.most_common()),
        info={**card.info, **about},
    )


def _evidence(found: Ready, results: Mapping[str, Result]) -> Evidence:
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
