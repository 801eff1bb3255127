"""Reference metrics: samples to scores. One module each; `judge.registry.METRICS` lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from judge.records import Column, Failure, Provenance, Sample, Score

if TYPE_CHECKING:
    from judge.metrics import bertscore as bertscore
    from judge.metrics import bleu as bleu
    from judge.metrics import chrf as chrf
    from judge.metrics import cider as cider
    from judge.metrics import diversity as diversity
    from judge.metrics import meteor as meteor
    from judge.metrics import rouge as rouge
    from judge.metrics import ter as ter

_MODULES = ("bertscore", "bleu", "chrf", "cider", "diversity", "meteor", "rouge", "ter")
"""Those with functions for lists of texts."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


@dataclass(frozen=True, slots=True)
class MetricResult:
    """What a metric found: its columns, and for each sample in turn one row per column, in the columns' order.

    A column of values of all a system's texts together has one row per system instead, with an empty `item`, after
    the others. `notes` are what the reader of the report has to know.
    """

    columns: tuple[Column, ...]
    rows: tuple[Score | Failure, ...]
    notes: tuple[str, ...] = ()


class Metric(Protocol):
    """A metric needs no argument to be made; a sample it cannot score becomes `Failure` rows, never a number.

    Keyword arguments of its class are its options, by the names that `judge score --set METRIC.OPTION=VALUE` and a
    plan have for them; they raise ConfigError. The first sentence of the class's docstring is its description. A class
    with `rowwise = True` promises that a sample's rows do not depend on the other samples: such a metric is given the
    data in parts, in several processes if the user asks for it, and must be picklable. A class whose arguments include
    `cache` (a folder, or None for none), `workers` (processes it may use) or `progress` (called with how many parts
    are done of how many) is given these.
    """

    def score(self, samples: Sequence[Sample]) -> MetricResult: ...


Compare = Callable[[str, Sequence[str]], Sequence[float]]
"""An output and its references to one value per column."""


def references(sample: Sample) -> tuple[str, ...]:
    """The sample's references without the blank ones, with which nothing can be compared."""
    return tuple(reference for reference in sample.references if reference.strip())


def reference_count(samples: Sequence[Sample]) -> str:
    """How many references the samples have, for signatures: a number where all that have any agree, else `var`."""
    counts = {len(found) for sample in samples if (found := references(sample))} or {0}
    return str(counts.pop()) if len(counts) == 1 else "var"


def against_references(
    samples: Sequence[Sample], names: Sequence[str], compare: Compare
) -> tuple[Score | Failure, ...]:
    """The rows of `MetricResult` for a metric that compares each output with its references.

    A sample without a reference (or with blank ones only) becomes a `Failure` in each column.
    """
    rows: list[Score | Failure] = []
    for sample in samples:
        if found := references(sample):
            values = compare(sample.output, found)
            rows += [_score(sample, name, value) for name, value in zip(names, values, strict=True)]
        else:
            rows += [no_reference(sample, name) for name in names]
    return tuple(rows)


def _score(sample: Sample, name: str, value: float) -> Score:
    return Score(sample.item, sample.system, name, float(value), Provenance(method="metric"))


def no_reference(sample: Sample, name: str) -> Failure:
    """The row of a column that needs a reference, of a sample without one."""
    found = "only blank references" if sample.references else "no reference"
    advice = "add a column `references` (a text or a list of texts), or name yours with --map references=COLUMN"
    return failure(sample, name, "NoReference", f"has {found}: {advice}")


def failure(sample: Sample, name: str, error: str, what: str) -> Failure:
    """The row of a value that cannot be had: `what` follows where the sample is, and says what to do."""
    where = sample.where or f"item {sample.item}"
    return Failure(sample.item, sample.system, name, stage="metric", error=error, message=f"{where} {what}")
