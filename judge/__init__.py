"""Which of these texts is better, by how much, and how sure are we?

- `judge.evaluate(...)` scores texts on criteria with a judge model, next to ROUGE, BLEU and chrF, with intervals;
  `judge.rank(...)` compares them in pairs.
- `judge.generate(...)` has models write the texts.
- `judge.plan(...)` estimates the requests and the price; `judge.render(...)` shows a prompt.
- `judge.label(...)` lets people rate texts, `judge.validate(...)` compares a judge with their ratings,
  `judge.card(...)` answers whether to trust it.
- `judge.test(...)` runs suites, `judge.compare(...)` compares two runs, `judge.diff(...)` compares two wordings of a
  criterion, and `judge.improve(...)` finds a better one.
- `judge.load_result(...)` reads a stored run.
- `judge.metrics` work on lists of texts, as `judge.metrics.rouge.score`.

`help(judge.evaluate)` lists the options. Expected errors are kinds of `judge.JudgeError`. The other names are types of
arguments and results. Importing this package loads nothing heavy: names are resolved at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from judge.core.version import __version__

if TYPE_CHECKING:
    from judge import metrics as metrics
    from judge.commands.card.card import JudgeCard as JudgeCard
    from judge.commands.card.command import card as card
    from judge.commands.card.command import card_async as card_async
    from judge.commands.compare.command import compare as compare
    from judge.commands.criteria_diff.command import diff as diff
    from judge.commands.criteria_diff.record import CriterionDiff as CriterionDiff
    from judge.commands.evaluate import evaluate as evaluate
    from judge.commands.evaluate import evaluate_async as evaluate_async
    from judge.commands.evaluate import rank as rank
    from judge.commands.evaluate import rank_async as rank_async
    from judge.commands.generate import generate as generate
    from judge.commands.improve.call import improve as improve
    from judge.commands.improve.record import Improvement as Improvement
    from judge.commands.label.call import label as label
    from judge.commands.loaders import load_criterion as load_criterion
    from judge.commands.loaders import load_result as load_result
    from judge.commands.loaders import load_samples as load_samples
    from judge.commands.loaders import render as render
    from judge.commands.plan.command import plan as plan
    from judge.commands.plan.record import Plan as Plan
    from judge.commands.slices.command import slices as slices
    from judge.commands.slices.record import Slices as Slices
    from judge.commands.test import test as test
    from judge.commands.test import test_async as test_async
    from judge.commands.validate.command import validate as validate
    from judge.commands.validate.record import Validation as Validation
    from judge.core.errors import BudgetReached as BudgetReached
    from judge.core.errors import ConfigError as ConfigError
    from judge.core.errors import CriterionError as CriterionError
    from judge.core.errors import DataError as DataError
    from judge.core.errors import DeadlineReached as DeadlineReached
    from judge.core.errors import JudgeError as JudgeError
    from judge.core.errors import MissingExtra as MissingExtra
    from judge.core.errors import ParseError as ParseError
    from judge.core.errors import ProviderError as ProviderError
    from judge.core.errors import Reached as Reached
    from judge.core.errors import Refused as Refused
    from judge.core.errors import StorageError as StorageError
    from judge.core.errors import Transient as Transient
    from judge.core.records import Column as Column
    from judge.core.records import Criterion as Criterion
    from judge.core.records import Estimate as Estimate
    from judge.core.records import Example as Example
    from judge.core.records import Failure as Failure
    from judge.core.records import Provenance as Provenance
    from judge.core.records import Sample as Sample
    from judge.core.records import Scale as Scale
    from judge.core.records import Score as Score
    from judge.core.signature import Signature as Signature
    from judge.execution.progress import Progress as Progress
    from judge.providers import Provider as Provider
    from judge.providers.scripted import ScriptedProvider as ScriptedProvider
    from judge.results.comparison import RunComparison as RunComparison
    from judge.results.power import RunPower as RunPower
    from judge.results.result import Result as Result
    from judge.results.run_info import RunInfo as RunInfo
    from judge.run.generate import Outputs as Outputs
    from judge.stats.pairwise import Ranking as Ranking
    from judge.stats.system_differences import Comparison as Comparison
    from judge.suite.evaluate import Outcomes as Outcomes
    from judge.table import Table as Table

_NAMES_BY_MODULE: dict[str, tuple[str, ...]] = {
    "judge.commands.card.card": ("JudgeCard",),
    "judge.commands.card.command": ("card", "card_async"),
    "judge.commands.compare.command": ("compare",),
    "judge.commands.criteria_diff.command": ("diff",),
    "judge.commands.criteria_diff.record": ("CriterionDiff",),
    "judge.commands.evaluate": ("evaluate", "evaluate_async", "rank", "rank_async"),
    "judge.commands.generate": ("generate",),
    "judge.commands.improve.call": ("improve",),
    "judge.commands.improve.record": ("Improvement",),
    "judge.commands.label.call": ("label",),
    "judge.commands.loaders": (
        "load_criterion",
        "load_result",
        "load_samples",
        "render",
    ),
    "judge.commands.plan.command": ("plan",),
    "judge.commands.plan.record": ("Plan",),
    "judge.commands.slices.command": ("slices",),
    "judge.commands.slices.record": ("Slices",),
    "judge.commands.test": ("test", "test_async"),
    "judge.commands.validate.command": ("validate",),
    "judge.commands.validate.record": ("Validation",),
    "judge.core.errors": (
        "BudgetReached",
        "ConfigError",
        "CriterionError",
        "DataError",
        "DeadlineReached",
        "JudgeError",
        "MissingExtra",
        "ParseError",
        "ProviderError",
        "Reached",
        "Refused",
        "StorageError",
        "Transient",
    ),
    "judge.core.records": (
        "Column",
        "Criterion",
        "Estimate",
        "Example",
        "Failure",
        "Provenance",
        "Sample",
        "Scale",
        "Score",
    ),
    "judge.core.signature": ("Signature",),
    "judge.execution.progress": ("Progress",),
    "judge.providers": ("Provider",),
    "judge.providers.scripted": ("ScriptedProvider",),
    "judge.results.comparison": ("RunComparison",),
    "judge.results.power": ("RunPower",),
    "judge.results.result": ("Result",),
    "judge.results.run_info": ("RunInfo",),
    "judge.run.generate": ("Outputs",),
    "judge.stats.pairwise": ("Ranking",),
    "judge.stats.system_differences": ("Comparison",),
    "judge.suite.evaluate": ("Outcomes",),
    "judge.table": ("Table",),
}
"""The public names of each module, imported at their first use."""
_MODULE_BY_NAME = {
    name: module for module, names in _NAMES_BY_MODULE.items() for name in names
}
_FORMER = {
    "Forecast": "judge.Plan",
    "audit": "judge.card",
    "audit_async": "judge.card_async",
}
"""The replacement of each public name of an earlier version."""
__all__ = ["__version__", *sorted([*_MODULE_BY_NAME, "metrics"])]


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        raise AttributeError(f"judge.{name} is gone; use {_FORMER[name]}", name=name)
    if name == "metrics":
        return import_module("judge.metrics")
    if name not in _MODULE_BY_NAME:
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    module = import_module(_MODULE_BY_NAME[name])
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
