"""Which rows are wanted: those whose columns have these values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judge.core.errors import DataError
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import Sample

Value = str | int | float | bool
Values = Mapping[str, Value | Sequence[Value]]
"""By column the value that a row has to have, or the values of which it has to have one."""

_OURS = ("item", "system")
_SHOWN, _KEPT = 10, 1_000  # values of a column: named, and remembered


@dataclass(slots=True)
class RowFilter:
    """A filter of samples, which remembers what it saw.

    `columns` are called as in the data or, where `mapping` names those, as here.
    """

    wanted: Values
    mapping: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    kept: int = 0
    seen: int = 0
    _asked: dict[str, list[str]] = field(default_factory=dict)
    _ours: dict[str, str] = field(default_factory=dict)
    _there: dict[str, None] = field(default_factory=dict)
    _values: dict[str, dict[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._asked = _by_column(self.wanted)
        self._ours = {old: new for new, old in self.mapping.items() if isinstance(old, str)}

    def __call__(self, sample: Sample) -> bool:
        """Whether this one is wanted."""
        if not self.wanted:
            return True
        self.seen += 1
        self._there.update(dict.fromkeys((*_OURS, *sample.extra)))
        fits = True
        for name, values in self._asked.items():
            value = _cell(sample, name if name in sample.extra else self._ours.get(name, name))
            if value is not None:
                known = self._values.setdefault(name, {})
                if value in known or len(known) < _KEPT:
                    known[value] = known.get(value, 0) + 1
            fits &= value in values
        self.kept += fits
        return fits

    def check(self) -> None:
        """Raises DataError for a column or a value that no row had, and where no row had all that is wanted."""
        for name, values in self._asked.items() if self.seen else ():
            if (known := self._values.get(name)) is None:
                raise DataError(
                    f"{option('where', {name: values[0]})}: {unknown_name_message('column', name, list(self._there))}"
                )
            for value in values:
                if value not in known:
                    raise DataError(f"{option('where', {name: value})}: no row has it; {name} is {_listed(known)}")
        if self.seen and not self.kept:
            raise DataError(
                f"{option('where')} {describe_filter(self.wanted)}: each is there, and no row has all of them"
            )


def filter_rows(
    samples: Iterable[Sample], wanted: Values, mapping: Mapping[str, str | Sequence[str]] = {}
) -> list[Sample]:
    """The samples that are wanted. Raises DataError as `Where.check` does."""
    where = RowFilter(wanted, mapping)
    found = [sample for sample in samples if where(sample)]
    where.check()
    return found


def describe_filter(wanted: Values) -> str:
    """The conditions in words: `lang=ja, channel=email or phone`."""
    return ", ".join(f"{name}={' or '.join(values)}" for name, values in _by_column(wanted).items())


def _by_column(wanted: Values) -> dict[str, list[str]]:
    """The values as text, by column."""
    listed = {name: [one] if isinstance(one, Value) else list(one) for name, one in wanted.items()}
    return {name: [text for one in values if (text := _text(one)) is not None] for name, values in listed.items()}


def _cell(sample: Sample, name: str) -> str | None:
    return getattr(sample, name) if name in _OURS else _text(sample.extra.get(name))


def _text(value: Any) -> str | None:
    """A cell as text; None where it is empty or no one value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int | float) else None


def _listed(known: Mapping[str, int]) -> str:
    most = sorted(known, key=lambda value: -known[value])[:_SHOWN]
    more = f" and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else ""
    return ", ".join(f"{value!r} ({known[value]:,})" for value in most) + more
