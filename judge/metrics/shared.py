"""What several metrics share: rows by references, plain lists for notebooks, checks of options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from judge.errors import ConfigError, DataError
from judge.metrics import Metric, against_references, references
from judge.records import Failure, Provenance, Sample, Score

Rate = Callable[[str], float]
"""An output to its value."""


class Unscorable(DataError):
    """Why texts have no value: becomes a `Failure` of the kind `error`."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


def by_references(
    samples: Sequence[Sample], name: str, prepare: Callable[[tuple[str, ...]], Rate]
) -> tuple[Score | Failure, ...]:
    """One row per sample, in the samples' order, of a column that compares each output with its references.

    `prepare` is called once for equal references, however many systems have them. A sample without a reference, or
    for which `prepare` or what it returned raises `Unscorable`, becomes a `Failure`.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for index, sample in enumerate(samples):
        groups.setdefault(references(sample), []).append(index)
    rows: dict[int, Score | Failure] = {}
    for found, indices in groups.items():
        group = [samples[index] for index in indices]
        made = _rows(group, name, found, prepare) if found else against_references(group, [name], _never)
        rows |= zip(indices, made, strict=True)
    return tuple(rows[index] for index in range(len(samples)))


def _never(output: str, found: Sequence[str]) -> Sequence[float]:
    raise AssertionError("a sample without references is not compared")


def _rows(
    samples: Sequence[Sample], name: str, found: tuple[str, ...], prepare: Callable[[tuple[str, ...]], Rate]
) -> list[Score | Failure]:
    try:
        rate = prepare(found)
    except Unscorable as reason:
        return [_failure(sample, name, reason) for sample in samples]
    return [_row(sample, name, rate) for sample in samples]


def _row(sample: Sample, name: str, rate: Rate) -> Score | Failure:
    try:
        value = float(rate(sample.output))
    except Unscorable as reason:
        return _failure(sample, name, reason)
    return Score(sample.item, sample.system, name, value, Provenance(method="metric"))


def _failure(sample: Sample, name: str, reason: Unscorable) -> Failure:
    message = f"{sample.where or f'item {sample.item}'}: {reason}"
    return Failure(sample.item, sample.system, name, stage="metric", error=reason.error, message=message)


def as_samples(
    outputs: Sequence[str], targets: Sequence[str | Sequence[str]], items: Sequence[str] | None = None
) -> list[Sample]:
    """Samples of one system from plain lists: each output with its reference or references.

    Raises DataError where the lists differ in length or an output has no reference but blank ones.
    """
    items = [str(index) for index in range(len(outputs))] if items is None else items
    if not len(outputs) == len(targets) == len(items):
        raise DataError(f"{len(outputs)} outputs, references of {len(targets)} and {len(items)} items: one each")
    samples = []
    for index, (output, target, item) in enumerate(zip(outputs, targets, items, strict=True)):
        kept = (target,) if isinstance(target, str) else tuple(target)
        sample = Sample(str(item), "", output, references=kept, where=f"text {index}")
        if not references(sample):
            raise DataError(f"outputs[{index}] has no reference that is not blank")
        samples.append(sample)
    return samples


def values(metric: Metric, samples: Sequence[Sample]) -> list[float]:
    """The values of a metric's rows, in order. Raises DataError with the message of the first `Failure`."""
    found = []
    for row in metric.score(samples).rows:
        if isinstance(row, Failure):
            raise DataError(row.message)
        found.append(row.value)
    return found


def whole_number(option: str, value: Any, low: int, high: int) -> int:
    """The value of an option, which must be an integer from `low` to `high`: else ConfigError."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{option} must be a whole number from {low} to {high}, not {value!r}")
    return value


def number(option: str, value: Any, low: float, high: float) -> float:
    """The value of an option, which must be a number from `low` to `high`: else ConfigError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ConfigError(f"{option} must be a number from {low:g} to {high:g}, not {value!r}")
    return float(value)


def yes_or_no(option: str, value: Any) -> bool:
    """The value of an option, which must be true or false: else ConfigError."""
    if not isinstance(value, bool):
        raise ConfigError(f"{option} must be true or false, not {value!r}")
    return value


def one_of(option: str, value: Any, known: Sequence[str]) -> str:
    """The value of an option, which must be one of the known: else ConfigError."""
    if value not in known:
        raise ConfigError(f"{option} must be one of {', '.join(known)}, not {value!r}")
    return str(value)
