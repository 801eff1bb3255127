"""Compute reference metrics: samples to scores. `judge.core.plugins.METRICS` lists the modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from judge.core.records import Column, Failure, Sample, Score

if TYPE_CHECKING:
    from judge.metrics import bertscore as bertscore
    from judge.metrics import bleu as bleu
    from judge.metrics import chrf as chrf
    from judge.metrics import cider as cider
    from judge.metrics import claims as claims
    from judge.metrics import diversity as diversity
    from judge.metrics import exact_match as exact_match
    from judge.metrics import meteor as meteor
    from judge.metrics import qags as qags
    from judge.metrics import rouge as rouge
    from judge.metrics import ter as ter
    from judge.metrics import text_features as text_features

_MODULES = (
    "bertscore", "bleu", "chrf", "cider", "claims", "diversity", "exact_match", "meteor", "qags", "rouge", "ter",
    "text_features",
)  # fmt: skip
"""Modules with functions for lists of texts."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


@dataclass(frozen=True, slots=True)
class Note:
    """A note that concerns `some` of `total` texts; `text` follows the two numbers. It is dropped if `some` is 0."""

    metric: str
    some: int
    total: int
    text: str

    def __str__(self) -> str:
        return f"{self.metric}: {self.some:,} of {self.total:,} texts {self.text}"


@dataclass(frozen=True, slots=True)
class MetricResult:
    """A metric's columns, and for each sample in turn one row per column, in the columns' order.

    A column of values of all texts of a system has one row per system instead, with an empty `item`, after the others.
    Reports show `notes`.
    """

    columns: tuple[Column, ...]
    rows: tuple[Score | Failure, ...]
    notes: tuple[str | Note, ...] = ()


class Metric(Protocol):
    """The interface of a metric: a class without required arguments.

    A sample that it cannot score becomes `Failure` rows. Keyword arguments of the class are its options
    (`judge run --set METRIC.OPTION=VALUE`); they raise ConfigError. The first sentence of its docstring describes it.
    `rowwise = True` promises that a sample's rows do not depend on other samples: such a metric gets the data in parts,
    possibly in several processes, and must be picklable. Arguments named `cache` (a folder or None), `progress` (called
    with the number of finished samples and of all samples), `seed` or `language` (of the prompts) receive these; the
    last two are options too. `ask` is a function that queries the run's judge model (`common.Ask`), or None; a metric
    with a true attribute `asks` needs it. An attribute `needs` names the field without which no sample can be scored:
    `references` or `source`. A method `check(samples)` raises errors before a judge is paid.
    """

    def score(self, samples: Sequence[Sample]) -> MetricResult: ...


def asks_judge(metric: Metric) -> bool:
    """Return whether a metric needs the run's judge model."""
    return bool(getattr(metric, "asks", False))


def needed_field(metric: Metric) -> str:
    """Return the field of a sample without which the metric has no value: `references`, `source` or ""."""
    return str(getattr(metric, "needs", ""))


def is_rowwise(metric: Metric) -> bool:
    """Return whether a sample's rows do not depend on other samples."""
    return bool(getattr(metric, "rowwise", False))
