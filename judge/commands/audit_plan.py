"""What an audit asks: the user's own texts, changed and as they are, in as many runs as it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judge import config, criteria
from judge.audit.audit_samples import Texts, make
from judge.audit.card import PROBES, Probe
from judge.commands import judge_models as of_plan
from judge.commands import judge_run, prompt_language
from judge.commands.evaluate import refuse_keys
from judge.commands.preparation import Prepared, check_out, prepare
from judge.config import Judge, Plan, RankPlan
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.plugins import unknown
from judge.core.records import Criterion, Sample, Scale
from judge.data import samples
from judge.providers import Provider

DRAWS, TEMPERATURES = 5, (0.0, 1.0)
"""How often a text is judged anew, at each of which temperatures."""
MAIN, NATURAL, WORDINGS, PAIRS = "changed texts", "other systems' texts", "other wordings", "pairs in both orders"
_REPEATS = "repeats at temperature {:g}"
DRAWN = [_REPEATS.format(temperature) for temperature in TEMPERATURES]
"""What the runs are called."""


@dataclass(frozen=True, slots=True)
class ReadyAudit:
    """An audit of which everything was read, made and checked; nothing has been sent or paid yet.

    `runs` are what there is to ask, by name, in their order; `model` names the judge. `lacking` says by probe why it
    cannot be made.
    """

    plan: Plan
    model: str
    probes: tuple[Probe, ...]
    texts: Texts
    runs: Mapping[str, Prepared]
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def judgments(self) -> int:
        """How many judgments a judge is to make; none by the heuristic, which is no judge."""
        return sum(len(judge_run.judgments(one, name)) for one in self.runs.values() for name in one.judges)


def ready(
    made: Plan,
    data: Any = None,
    *,
    items: int = 100,
    probes: str | Sequence[str] = PROBES,
    providers: Sequence[Judge | Provider] | None = None,
    own: Mapping[str, Criterion] | None = None,
) -> ReadyAudit:
    """The texts of an audit, and the runs that judge them. Raises JudgeError."""
    asked = _probes(probes)
    given = made.model if providers is None else providers
    source = data if data is not None else made.data
    _check(made, given, items)
    if source is None:
        raise ConfigError("no data: name a file, for example judge audit summaries.jsonl --model gpt-5.4-mini")
    rows = samples.load(source, mapping=made.mapping, systems=made.systems, where=made.where)[: made.limit]
    spoken = prompt_language.of_prompts(made, rows)[0]["name"]
    plain = made.model_copy(update={**_READ, "language": spoken})
    scales = _scales(plain, given, own or {})
    texts = make(rows, scales, asked, items=items, language=spoken, seed=made.seed)
    main = {"out": made.out / "changed"} if made.out is not None else {}
    plan = plain.model_copy(update=main)
    first = prepare(plan, list(texts.changed), providers=given, own=own, wanted=texts.wanted)
    if len(first.judges) > 1:
        raise ConfigError(f"the recording has several judges: name one of {', '.join(first.judges)} with --model")
    model = first.baseline or next(iter(first.judges))
    found = ReadyAudit(plain.model_copy(update={"out": made.out}), model, asked, texts, {MAIN: first})
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
            raise ConfigError(f"--probes: {unknown('probe', name, list(PROBES))}")
    if not names:
        raise ConfigError(f"--probes: name at least one of {', '.join(PROBES)}")
    return tuple(name for name in PROBES if name in names)


def _check(made: Plan, given: Sequence[Judge | Provider], items: int) -> None:
    """Raises ConfigError and StorageError."""
    refuse_keys(made, "an audit")
    if not isinstance(items, int) or items < 1:
        raise ConfigError(f"--items {items!r}: at least 1 item is judged, and a whole number of them")
    if len(given) > 1:
        raise ConfigError("an audit is of one judge: name one, and audit the others of a panel by themselves")
    if not made.criteria:
        raise ConfigError("--criteria none: there is nothing to audit a judge on")
    check_out(made.out)


def _scales(made: Plan, given: Sequence[Judge | Provider], own: Mapping[str, Criterion]) -> dict[str, Scale | None]:
    """The scale of each criterion, by name; of the heuristic's None."""
    others, floor = of_plan.asked(made, given)
    if floor is not None and not others and made.replay is None:
        return dict.fromkeys(made.criteria)
    found = (own.get(name) or criteria.load(name, language=made.language or "en") for name in made.criteria)
    return {criterion.name: criterion.scale for criterion in found}


# What a judge leans to


def _with_biases(found: ReadyAudit) -> ReadyAudit:
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


def _further(found: ReadyAudit, rows: Sequence[Sample], own: Sequence[Criterion], **changed: Any) -> Prepared:
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
            worded += [criteria.reworded(one, wording) for wording in criteria.WORDINGS]
        except CriterionError as error:
            lacking[f"wording of {one.name}"] = str(error)
    return worded, lacking if worded else {"wording": "; ".join(lacking.values())}


def _compared(found: ReadyAudit) -> tuple[Prepared, list[str]]:
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
