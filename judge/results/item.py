"""One item of a run: its texts with their scores, failures and human ratings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from judge.core.errors import ConfigError
from judge.core.plugins import unknown_name_message
from judge.core.records import Failure, Sample, Score
from judge.results.result import Result

_LISTED = 20  # names in a message


@dataclass(frozen=True)
class ResultItem:
    """The texts of one item of a result, of one system or all. `samples` has them, at least one."""

    result: Result
    item: str
    system: str | None
    samples: tuple[Sample, ...]

    @cached_property
    def rows(self) -> Mapping[str, tuple[Score | Failure, ...]]:
        """The scores and failures of each system; a comparison belongs to the system that was shown first."""
        rows: dict[str, list[Score | Failure]] = {sample.system: [] for sample in self.samples}
        for row in self.result.table.rows():
            if row.item == self.item and row.system in rows:
                rows[row.system].append(row)
        return {system: tuple(found) for system, found in rows.items()}


def item_of(result: Result, item: str, system: str | None = None) -> ResultItem:
    """Return an item of a result. Raises ConfigError for an unknown item or system."""
    samples = [sample for sample in result.table.samples if sample.item == item]
    if not samples:
        raise ConfigError(unknown_name_message("item", item, list(result.table.items)[:_LISTED]))
    chosen = tuple(sample for sample in samples if system in (None, sample.system))
    if not chosen:
        raise ConfigError(unknown_name_message("system", str(system), [s.system for s in samples][:_LISTED]))
    return ResultItem(result, item, system, chosen)
