"""The metrics of a plan, made with their options."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge import text
from judge.cache import local_dir, metrics_folder
from judge.config import Plan, RankPlan
from judge.core import plugins
from judge.core.errors import ConfigError, MissingExtra
from judge.core.messages import option
from judge.core.records import Failure, Sample, Score
from judge.metrics import Metric, MetricResult
from judge.metrics.common import Ask

_DEFAULT = ("rouge", "bleu", "chrf")
_GIVEN = ("cache", "progress", "ask")
"""What a metric's class is given if it asks for it; no options."""


def default_metrics(made: Plan, rows: Sequence[Sample]) -> tuple[tuple[str, ...], list[str]]:
    """The names of a plan's metrics, and what there is to say about them and the data."""
    names = made.metrics
    if isinstance(made, RankPlan):
        return (), ["A ranking has no metrics; judge run has them."] if names else []
    if names is None:
        names = _DEFAULT if any(s.references for s in rows) else ()
    notes = [] if names or made.metrics is not None else ["The data has no references: no reference metrics."]
    apart = sum(
        bool(s.references) and text.detect_language([s.output]) != text.detect_language(s.references) for s in rows
    )
    if names and apart:
        note = f"{apart:,} of {len(rows):,} outputs are in another script than their references"
        notes.append(f"{note}: what compares the two there (ROUGE, BLEU, chrF) says little.")
    return names, notes


def precheck(metrics: Mapping[str, Metric], samples: Sequence[Sample]) -> None:
    """Have each metric that can say so now say what it cannot do. Raises JudgeError."""
    for metric in metrics.values():
        if checking := getattr(metric, "check", None):
            checking(samples)


def build_metric(
    made: Plan, names: Sequence[str], tell: Callable[[int, int], None], ask: Ask | None = None
) -> dict[str, Metric]:
    """The metrics of these names with the plan's options. Raises ConfigError and MissingExtra."""
    for name in made.set:
        if name not in names:
            known = ", ".join(names) or "none"
            raise ConfigError(f"{option('set')} {name}: this run does not have the metric {name!r} (it has: {known})")
    given: dict[str, Any] = {"progress": tell, "ask": ask, "seed": made.seed}
    if made.language:
        given["language"] = made.language
    return {name: _made(made, name, given) for name in names}


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric as `judge metrics list` shows it."""

    name: str
    description: str
    options: dict[str, Any]


def metrics() -> list[MetricInfo]:
    """Every metric that a plan may name, with its description and its options' defaults."""
    found = []
    for name in plugins.names("metrics"):
        try:
            kind = plugins.load("metrics", name)
        except (MissingExtra, ImportError, AttributeError) as error:  # of another package's metric
            found.append(MetricInfo(name, f"cannot be loaded: {error}", {}))
            continue
        first = (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")
        found.append(MetricInfo(name, re.split(r"(?<=[.])\s", first)[0].rstrip("."), options(name)))
    return found


def options(name: str) -> dict[str, Any]:
    """The options of a metric with their defaults. Raises ConfigError for a name nobody registered."""
    return {key: one.default for key, one in _parameters(plugins.load("metrics", name)).items() if key not in _GIVEN}


def _made(made: Plan, name: str, given: Mapping[str, Any]) -> Metric:
    kind = plugins.load("metrics", name)
    known = _parameters(kind)
    own = made.set.get(name, {})
    for key in own:
        if key not in known or key in _GIVEN:
            raise ConfigError(
                f"{option('set')} {name}.{key}: {plugins.unknown_name_message('option', key, sorted(options(name)))}"
            )
    cache = None if made.cache is False else metrics_folder(local_dir(made.cache))
    metric: Metric = kind(**{key: value for key, value in {**given, "cache": cache}.items() if key in known} | own)
    return metric


def _parameters(kind: Any) -> Mapping[str, inspect.Parameter]:
    """The keyword arguments of a metric's class."""
    found = inspect.signature(kind).parameters
    return {name: one for name, one in found.items() if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)}


def validate_result(name: str, found: MetricResult, samples: Sequence[Sample]) -> MetricResult:
    """The result of a metric. Raises ConfigError where it has rows of unknown texts or columns, twice, or too few."""
    columns = {column.name for column in found.columns}
    texts = {(s.item, s.system) for s in samples} | {("", s.system) for s in samples}
    seen: set[tuple[str, str, str]] = set()
    for row in found.rows:
        key = row.item, row.system, row.column
        if row.column not in columns or key[:2] not in texts or key in seen:
            raise ConfigError(f"the metric {name} is wrong: its row {key} is of no text or column, or there twice")
        seen.add(key)
    for column in columns:
        rows = sum(key[2] == column for key in seen)
        if rows not in (len(samples), len({s.system for s in samples})):
            raise ConfigError(
                f"the metric {name} is wrong: it has {rows:,} rows of {column} for {len(samples):,} texts"
            )
    return found


def reject_non_finite(row: Score | Failure) -> Score | Failure:
    """The row; a plug-in's NaN or infinity is not a number but a failure."""
    if isinstance(row, Failure) or (isinstance(row.value, int | float) and math.isfinite(row.value)):
        return row
    message = f"the metric returned {row.value}"
    return Failure(row.item, row.system, row.column, "metric", "NotANumber", message)
