"""Reference metrics: samples to scores. One module each; `judge.core.plugins.METRICS` lists them."""

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
    from judge.metrics import diversity as diversity
    from judge.metrics import meteor as meteor
    from judge.metrics import qags as qags
    from judge.metrics import rouge as rouge
    from judge.metrics import ter as ter
    from judge.metrics import text_features as text_features

_MODULES = ("bertscore", "bleu", "chrf", "cider", "diversity", "meteor", "qags", "rouge", "ter", "text_features")
"""Those with functions for lists of texts."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


@dataclass(frozen=True, slots=True)
class Note:
    """What the reader has to know of `some` of `of` texts: `what` follows the two numbers. Of none it is left out."""

    metric: str
    some: int
    of: int
    what: str

    def __str__(self) -> str:
        return f"{self.metric}: {self.some:,} of {self.of:,} texts {self.what}"


@dataclass(frozen=True, slots=True)
class MetricResult:
    """What a metric found: its columns, and for each sample in turn one row per column, in the columns' order.

    A column of values of all a system's texts together has one row per system instead, with an empty `item`, after
    the others. `notes` are what the reader of the report has to know.
    """

    columns: tuple[Column, ...]
    rows: tuple[Score | Failure, ...]
    notes: tuple[str | Note, ...] = ()


class Metric(Protocol):
    """A metric needs no argument to be made; a sample it cannot score becomes `Failure` rows, never a number.

    Keyword arguments of its class are its options, by the names that `judge run --set METRIC.OPTION=VALUE` and a
    plan have for them; they raise ConfigError. The first sentence of the class's docstring is its description. A class
    with `rowwise = True` promises that a sample's rows do not depend on the other samples: such a metric is given the
    data in parts, in several processes if the user asks for it, and must be picklable. A class whose arguments include
    `cache` (a folder, or None for none), `progress` (called with how many are done of how many), `seed` or `language`
    (of the prompts, where the run names it) is given these; the last two are options too. So is `ask`, what asks the
    run's judge model (`common.Ask`), None without one; a metric with a true attribute `asks` needs it. A method
    `check(samples)` raises, before a judge is paid, what would be raised later.
    """

    def score(self, samples: Sequence[Sample]) -> MetricResult: ...


def asks_judge(metric: Metric) -> bool:
    """Whether a metric needs the run's judge model."""
    return bool(getattr(metric, "asks", False))


def is_rowwise(metric: Metric) -> bool:
    """Whether a sample's rows do not depend on the other samples."""
    return bool(getattr(metric, "rowwise", False))
