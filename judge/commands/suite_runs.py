"""The runs of a suite: what is asked for its cases, as plans that were prepared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judge import config
from judge.commands.evaluate import Model
from judge.commands.pairing import Pairs, choose
from judge.commands.preparation import Prepared, WantedTexts, prepare
from judge.config import Judge, Plan
from judge.core.errors import ConfigError
from judge.core.records import Criterion, Sample
from judge.providers import Provider
from judge.results.result import Result
from judge.suite.records import Suite
from judge.suite.samples import Key, SuiteTexts
from judge.table import Table

PAIRS = "pairs"
"""The folder, in that of a suite's run, of the texts that were compared two by two."""
_SCRIPTED = "scripted/"
_READ = ("limit", "where")
"""Keys that say which of the data are read, and mean nothing once they are."""
_MEASURING = ("metrics", "set", "workers", "calibrate", "retry_failed")
"""Keys of a plan that mean nothing to a suite."""


@dataclass(frozen=True, slots=True)
class Given:
    """What was said beside the files: `options` of a plan, judges (some may be objects), criteria in others' place."""

    models: Sequence[str | Provider | Mapping[str, str]]
    options: Mapping[str, Any]
    criteria: Sequence[str]
    out: Path | None

    @classmethod
    def of(
        cls, model: Model | None, options: Mapping[str, Any], criteria: Sequence[str] | None, out: str | Path | None
    ) -> Given:
        """Raises ConfigError for an option that no suite has, and where there are to be no criteria."""
        if criteria is not None and not criteria:
            raise ConfigError("criteria: none: a suite holds a judge's scores against its cases; judge score measures")
        if wrong := [name for name in _MEASURING if options.get(name) is not None]:
            raise ConfigError(f"{wrong[0]}: a suite has no such option; judge run has")
        models: Any = list(model) if isinstance(model, list | tuple) else [] if model is None else [model]
        named = {"map" if name == "mapping" else name: value for name, value in options.items() if value is not None}
        return cls(models, named, criteria or (), None if out is None else Path(out))

    @property
    def instead(self) -> Collection[str]:
        """The keys of a file that do not count."""
        return {*self.options, *(("model", "replay") if self.models else ())}

    def over(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a file with those that go before them.

        A judge is asked where the file has a recording, and a recording where the file has scripted replies.
        """
        kept = {name: value for name, value in options.items() if name not in self.instead}
        if "replay" in self.options and any(one.name.startswith(_SCRIPTED) for one in kept.get("model", ())):
            del kept["model"]
        named = [one for one in self.models if isinstance(one, str | Mapping)]
        return {**kept, **self.options, **({"model": named} if self.models else {})}

    def judges(self, made: Plan) -> list[Judge | Provider] | None:
        """The judges of a plan in which those with a name stand, as `prepare` takes them."""
        names = iter(made.model)
        found = [next(names) if isinstance(one, str | Mapping) else one for one in self.models]
        return found if self.models else None


def scoring(suite: Suite, asked: SuiteTexts, given: Given, language: str) -> Prepared | None:
    """The run about single texts, None where no case is about any.

    People's ratings stay outside, for they cost a run's page time: `restored` puts them back.
    """
    if not asked.texts:
        return None
    criteria = _by_name(asked.criteria.values(), pairwise=False)
    out = None if given.out is None else given.out / suite.name
    made = config.plan(given=_options(suite, criteria, language, out))
    rows = list(asked.texts) if out else [replace(one, human={}, ratings={}) for one in asked.texts]
    return _prepared(made, rows, criteria, given, asked.wanted)


def comparing(suite: Suite, asked: SuiteTexts, given: Given, language: str) -> Prepared | None:
    """The run about two texts at a time, in both orders; None where no case compares any."""
    if not asked.pairs:
        return None
    criteria = _by_name(asked.criteria.values(), pairwise=True)
    out = None if given.out is None else given.out / suite.name / PAIRS
    made = config.rank_plan(given=_options(suite, criteria, language, out) | {"merge_criteria": False})
    names = {case.name: asked.criteria[case.criterion].name for case in suite.cases}
    wanted: dict[str, set[Key]] = {}
    for case, samples in asked.pairs.items():
        wanted.setdefault(names[case], set()).update((one.item, one.system) for one in samples)
    rows = [sample for samples in asked.pairs.values() for sample in samples]
    prepared = _prepared(made, rows, criteria, given, wanted)
    prepared.pairs = _pairs(asked.pairs.values())
    return prepared


def restored(result: Result, prepared: Prepared, asked: SuiteTexts) -> Result:
    """The result with the texts as they are in the data, of which a heuristic has only measured what was wanted."""
    table = result.table
    scores, failures = table.scores, table.failures
    if prepared.baseline:
        criteria = {column.name: column.criterion for column in table.columns}
        scores = tuple(row for row in scores if (row.item, row.system) in asked.wanted[criteria[row.column]])
        failures = tuple(row for row in failures if (row.item, row.system) in asked.wanted[criteria[row.column]])
    return replace(result, table=Table(asked.texts, table.columns, scores, failures))


def _by_name(criteria: Iterable[Criterion], *, pairwise: bool) -> dict[str, Criterion]:
    return {one.name: one for one in criteria if one.pairwise == pairwise}


def _options(suite: Suite, criteria: Mapping[str, Criterion], language: str, out: Path | None) -> dict[str, Any]:
    """What a plan is made of. The data are read, and no more than is wanted of them."""
    kept = {name: value for name, value in suite.options.items() if name not in _READ}
    return {**kept, "criteria": list(criteria), "metrics": [], "language": language, "out": out}


def _prepared(
    made: Plan, rows: list[Sample], criteria: Mapping[str, Criterion], given: Given, wanted: WantedTexts
) -> Prepared:
    """A run on these texts. Raises JudgeError."""
    prepared = prepare(made, rows, providers=given.judges(made), own=criteria, wanted=wanted)
    if made.replay is not None and not made.model and len(prepared.judges) > 1:
        both = " and ".join(prepared.judges)
        raise ConfigError(f"replay {made.replay}: it holds replies of {both}: name one with model: or --model, or both")
    if prepared.rest is not None:
        raise ConfigError(f"a suite is about {len(prepared.samples):,} texts at the most: give it a limit:")
    return prepared


def _pairs(cases: Iterable[Sequence[Sample]]) -> Pairs:
    """The pairs of every case's samples, in both orders."""
    every = [choose(samples, orders=2, budget=None, seed=0) for samples in cases]
    number = sum(one.chosen for one in every)
    compared = tuple(pair for one in every for pair in one.compared)
    return Pairs(compared, tuple(pair for one in every for pair in one.equal), number, number, 0)
