"""What an audit asks: the user's own texts, changed and as they are, in as many runs as it takes.

`judge audit`: a judge is tried on controlled changes to a user's own texts. What it says of them is its card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from judge import config, criteria
from judge.audits.audit_samples import AuditSamples, perturb
from judge.audits.build_card import build_card
from judge.audits.card import PROBES, AuditData, JudgeCard, Probe
from judge.commands import judge_models as of_plan
from judge.commands import judge_run, prompt_language
from judge.commands.cost_estimate import dollars, duration, estimate_cost
from judge.commands.evaluate import Criteria, JudgeOptions, reject_run_only_settings, reject_unsupported, to_config
from judge.commands.pipeline import Showing, run_sequentially
from judge.commands.preparation import PreparedRun, check_output_dir, prepare
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import async_public_api, public_api, run_sync
from judge.config import Judge, Plan, RankPlan
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.messages import plural
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample, Scale, Usage
from judge.data import samples
from judge.execution.progress import Progress
from judge.providers import Provider
from judge.results.result import Result
from judge.table import Table, store
from judge.table.core import split_rows

if TYPE_CHECKING:
    from judge.commands.evaluate import Data, Model

DRAWS, TEMPERATURES = 5, (0.0, 1.0)
"""How often a text is judged anew, at each of which temperatures."""
MAIN, NATURAL, WORDINGS, PAIRS = "changed texts", "other systems' texts", "other wordings", "pairs in both orders"
_REPEATS = "repeats at temperature {:g}"
DRAWN = [_REPEATS.format(temperature) for temperature in TEMPERATURES]
"""What the runs are called."""


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """An audit of which everything was read, made and checked; nothing has been sent or paid yet.

    `runs` are what there is to ask, by name, in their order; `model` names the judge. `lacking` says by probe why it
    cannot be made.
    """

    plan: Plan
    model: str
    probes: tuple[Probe, ...]
    texts: AuditSamples
    runs: Mapping[str, PreparedRun]
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def judgments(self) -> int:
        """How many judgments a judge is to make; none by the heuristic, which is no judge."""
        return sum(len(judge_run.judgments(one, name)) for one in self.runs.values() for name in one.judges)


def plan_audit(
    made: Plan,
    data: Any = None,
    *,
    items: int = 100,
    probes: str | Sequence[str] = PROBES,
    providers: Sequence[Judge | Provider] | None = None,
    own: Mapping[str, Criterion] | None = None,
) -> AuditPlan:
    """The texts of an audit, and the runs that judge them. Raises JudgeError."""
    asked = _probes(probes)
    given = made.model if providers is None else providers
    source = data if data is not None else made.data
    _check(made, given, items)
    if source is None:
        raise ConfigError("no data: name a file, for example judge audit summaries.jsonl --model gpt-5.4-mini")
    rows = samples.load(source, mapping=made.mapping, systems=made.systems, where=made.where)[: made.limit]
    spoken = prompt_language.choose_prompt_language(made, rows)[0]["name"]
    plain = made.model_copy(update={**_READ, "language": spoken})
    scales = _scales(plain, given, own or {})
    texts = perturb(rows, scales, asked, items=items, language=spoken, seed=made.seed)
    main = {"out": made.out / "changed"} if made.out is not None else {}
    plan = plain.model_copy(update=main)
    first = prepare(plan, list(texts.changed), providers=given, own=own, wanted=texts.wanted)
    if len(first.judges) > 1:
        raise ConfigError(f"the recording has several judges: name one of {', '.join(first.judges)} with --model")
    model = first.baseline or next(iter(first.judges))
    found = AuditPlan(plain.model_copy(update={"out": made.out}), model, asked, texts, {MAIN: first})
    return _with_biases(found) if "bias" in asked else found


_READ: dict[str, Any] = {
    "metrics": (),
    "set": {},
    "mapping": {},
    "systems": (),
    "where": {},
    "limit": None,
    "out": None,
}
"""What a plan no longer says once its texts are read: no metric is measured, and `out` is the card's."""


def _probes(given: str | Sequence[str]) -> tuple[Probe, ...]:
    """The probes by their names. Raises ConfigError."""
    names = config.split(given) if isinstance(given, str) else list(given)
    for name in names:
        if name not in PROBES:
            raise ConfigError(f"--probes: {unknown_name_message('probe', name, list(PROBES))}")
    if not names:
        raise ConfigError(f"--probes: name at least one of {', '.join(PROBES)}")
    return tuple(name for name in PROBES if name in names)


def _check(made: Plan, given: Sequence[Judge | Provider], items: int) -> None:
    """Raises ConfigError and StorageError."""
    reject_run_only_settings(made, "an audit")
    if not isinstance(items, int) or items < 1:
        raise ConfigError(f"--items {items!r}: at least 1 item is judged, and a whole number of them")
    if len(given) > 1:
        raise ConfigError("an audit is of one judge: name one, and audit the others of a panel by themselves")
    if not made.criteria:
        raise ConfigError("--criteria none: there is nothing to audit a judge on")
    check_output_dir(made.out)


def _scales(made: Plan, given: Sequence[Judge | Provider], own: Mapping[str, Criterion]) -> dict[str, Scale | None]:
    """The scale of each criterion, by name; of the heuristic's None."""
    others, floor = of_plan.requested_judges(made, given)
    if floor is not None and not others and made.replay is None:
        return dict.fromkeys(made.criteria)
    found = (own.get(name) or criteria.load(name, language=made.language or "en") for name in made.criteria)
    return {criterion.name: criterion.scale for criterion in found}


# What a judge leans to


def _with_biases(found: AuditPlan) -> AuditPlan:
    """The audit with the further runs that show biases, as far as there can be any."""
    first, texts = found.runs[MAIN], found.texts
    runs, lacking = dict(found.runs), dict[str, str]()
    if texts.others:
        runs[NATURAL] = _further(found, texts.others, first.criteria)
    if first.baseline:
        lacking = {
            "position": "the heuristic compares no two texts",
            "wording": "the heuristic reads no prompt whose words could be others",
            "repeats": "the heuristic always says the same of a text",
        }
        return replace(found, runs=runs, lacking=lacking)
    worded, lacking = _reworded(first.criteria)
    if worded:
        runs[WORDINGS] = _further(found, texts.originals, worded)
    if next(iter(first.judges.values())).decides:
        lacking["repeats"] = "a decision endpoint gives probabilities and draws no replies"
    else:
        for temperature in TEMPERATURES:
            drawn = {"weighting": "samples", "draws": DRAWS, "temperature": temperature}
            runs[_REPEATS.format(temperature)] = _further(found, texts.originals, first.criteria, **drawn)
    try:
        runs[PAIRS], alone = _compared(found)
        lacking |= {f"position by {name}": "no criterion of that name compares two texts" for name in alone}
    except (ConfigError, CriterionError, DataError) as error:
        lacking["position"] = str(error)
    return replace(found, runs=runs, lacking=lacking)


def _further(found: AuditPlan, rows: Sequence[Sample], own: Sequence[Criterion], **changed: Any) -> PreparedRun:
    """Another run of the same judge."""
    chosen = {one.name: one for one in own}
    names = {"criteria": tuple(chosen)} if chosen else {}
    plan = found.plan.model_copy(update={"out": None, **names, **changed})
    judges = list(found.runs[MAIN].judges.values())
    if not judges:
        return prepare(plan, list(rows))
    return prepare(plan.model_copy(update={"replay": None}), list(rows), providers=judges, own=chosen)


def _reworded(chosen: Sequence[Criterion]) -> tuple[list[Criterion], dict[str, str]]:
    """The criteria in other words, and why some of them are not, or none."""
    worded, lacking = list[Criterion](), dict[str, str]()
    for one in chosen:
        try:
            worded += [criteria.paraphrase(one, wording) for wording in criteria.PARAPHRASES]
        except CriterionError as error:
            lacking[f"wording of {one.name}"] = str(error)
    return worded, lacking if worded else {"wording": "; ".join(lacking.values())}


def _compared(found: AuditPlan) -> tuple[PreparedRun, list[str]]:
    """The run of pairs by the criteria that compare two texts and are called as those of the audit; what is left.

    Raises ConfigError, CriterionError and DataError where there is none, or none of these texts can be compared.
    """
    first, texts = found.runs[MAIN], found.texts
    if not texts.others:
        raise ConfigError("no item has different texts of two systems")
    names = [criterion.name for criterion in first.criteria]
    known = {one.name: one for one in criteria.builtin(found.plan.language or "en", pairwise=True)}
    own = [known[name] for name in names if name in known]
    alone = [name for name in names if name not in known]
    if not own:
        raise ConfigError(f"no criterion that compares two texts is called {' or '.join(names)}")
    plan = RankPlan(**{**dict(found.plan), "replay": None, "out": None, "criteria": tuple(one.name for one in own)})
    rows = sorted((*texts.originals, *texts.others), key=lambda sample: sample.system)
    judges = list(first.judges.values())
    return prepare(plan, rows, providers=judges, own={one.name: one for one in own}), alone


__all__ = ["AuditOptions", "audit", "audit_async", "audit_estimate", "plan_audit", "run_audit"]

_LOOKED_AT = 400
_PRINTED = {"card.md": "markdown", "card.html": "html", "card.json": "json"}
_PLACES = ("data", "out", "cache", "replay", "record")
"""What of a plan says only where files are."""
_TOLD = ("seconds", "requests", "usage", "cost", "served_by", "unmet")
"""What a card says of each run."""


class AuditOptions(JudgeOptions, total=False):
    """What `audit` takes besides: keys of `config.Plan`."""

    out: str | Path


@public_api(AuditOptions)
def audit(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    items: int = 100,
    probes: str | Sequence[str] = PROBES,
    progress: Watch = None,
    **options: Unpack[AuditOptions],
) -> JudgeCard:
    """Try a judge on controlled changes to one text of each of `items` items of the data: what it notices, leans to.

    `probes` are `sensitivity` (does each criterion notice its own damage, and no other's), `bias` (position, length,
    copying, its own family's texts, the prompt's words, the scale, chance) and `injection` (does it do what a text
    tells it to). `model` names one judge, as in `judge.evaluate`, or `heuristic`; so do all other arguments. With `out`
    the card is kept in `out/card.md`, `.html` and `.json`, and the run of the changed texts in `out/changed`.

    A judgment that fails is counted in `card.failures`. Raises JudgeError for what is wrong with the arguments, the
    data or the endpoint.
    """
    return run_sync(
        lambda: audit_async(data, criteria, model=model, items=items, probes=probes, progress=progress, **options)
    )


@async_public_api(AuditOptions)
async def audit_async(
    data: Data,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    items: int = 100,
    probes: str | Sequence[str] = PROBES,
    progress: Watch = None,
    **options: Unpack[AuditOptions],
) -> JudgeCard:
    """`audit` for callers with an event loop of their own."""
    reject_unsupported(options, AuditOptions, "an audit")
    made, providers, own = to_config(config.plan, data, criteria, model, options)
    found = plan_audit(made, data, items=items, probes=probes, providers=providers, own=own)
    async with displayed(progress) as counts:
        return await run_audit(found, counts)


# What it costs, and what comes of it


def audit_estimate(found: AuditPlan) -> str:
    """One line before an audit: its texts and judgments, and about the requests, tokens, price and time of all runs."""
    said = f"an audit of {found.model} on {plural(len(found.texts.originals), 'item')}"
    if not found.judgments:
        return f"{said}: {plural(len(found.texts.changed), 'text')}, and no model is asked"
    said += f": {plural(found.judgments, 'judgment')} in {plural(len(found.runs), 'run')}"
    ahead = [estimate_cost(one, _LOOKED_AT) for one in found.runs.values()]
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


async def run_audit(
    found: AuditPlan, progress: Progress | None = None, shown: Showing = lambda *_: nullcontext()
) -> JudgeCard:
    """Ask all that there is to ask, from one budget and within one deadline, and make the card. Saves it with `out`.

    Raises what `stages.run` raises.
    """
    results = await run_sequentially(found.runs, found.plan, progress, shown)
    card = _card(found, results)
    if found.plan.out is not None:
        store(found.plan.out, {name: card.report(format).encode() for name, format in _PRINTED.items()})
    return card


def _card(found: AuditPlan, results: Mapping[str, Result]) -> JudgeCard:
    texts, tables = found.texts, [result.table for result in results.values()]
    evidence = _evidence(found, results)
    card = build_card(evidence, texts.changes, texts.attacks, texts.neutral, seed=found.plan.seed)
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


def _criteria(card: JudgeCard, info: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of each criterion, with the digest of its prompt and the kind of its reply."""
    told = info.get("criteria") or {}
    more = ("digest", "reply")
    return {
        name: {**one, **{key: told[name][key] for key in more if key in told.get(name, {})}}
        for name, one in card.info["criteria"].items()
    }


def _settings(found: AuditPlan, info: Mapping[str, Any]) -> dict[str, Any]:
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


def _evidence(found: AuditPlan, results: Mapping[str, Result]) -> AuditData:
    texts, lacking = found.texts, dict(found.lacking)
    main = results[MAIN].table
    drawn = {t: results[name] for t, name in zip(TEMPERATURES, DRAWN, strict=True) if name in results}
    if any(result.info["unmet"].get("temperature") for result in drawn.values()):
        lacking["repeats"] = "the server does not take a temperature: what is called 1 here is its own"
        drawn = {t: result for t, result in drawn.items() if t}
    own = texts.restore_systems(main)
    pairs = results.get(PAIRS)

    def with_own(samples: Sequence[Sample], name: str) -> Table:
        """The originals' scores, and those of another run beside them."""
        more = results[name].table if name in results else None
        columns = dict.fromkeys((*main.columns, *(more.columns if more else ())))
        return Table(tuple(samples), tuple(columns), *split_rows([*own, *(more.rows() if more else ())]))

    bias = "bias" in found.probes
    return AuditData(
        texts.originals,
        {column.criterion: column for column in main.columns if column.kind == "criterion"},
        texts.by_change(main),
        found.model,
        found.plan.language or "en",
        with_own((*texts.originals, *texts.others), NATURAL) if bias else None,
        with_own(texts.originals, WORDINGS) if WORDINGS in results else None,
        {temperature: result.table for temperature, result in drawn.items()},
        pairs.rankings if pairs else (),
        pairs.table if pairs else None,
        lacking,
    )
