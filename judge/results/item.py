"""The texts of one item of a result, with their scores and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.records import Failure, Sample, Score, is_unwritten
from judge.results.prompts import TextPrompt, prompts_of
from judge.results.result import Result

_LISTED = 20  # names in a message


@dataclass(frozen=True)
class ResultItem:
    """The texts of one item of a result, of one system or all.

    The item may be one generation, such as `doc-1 (2)`, or the item of several.
    """

    VIEW: ClassVar[str] = "judge.report.views.item:view"

    result: Result
    item: str
    system: str | None
    samples: tuple[Sample, ...]

    @cached_property
    def rows(self) -> Mapping[tuple[str, str], tuple[Score | Failure, ...]]:
        """The scores and failures of each text; a comparison belongs to the text that was shown first."""
        rows: dict[tuple[str, str], list[Score | Failure]] = {
            sample.key: [] for sample in self.samples
        }
        for row in self.result.table.rows():
            if (row.item, row.system) in rows:
                rows[row.item, row.system].append(row)
        return {key: tuple(found) for key, found in rows.items()}

    @property
    def unwritten(self) -> tuple[Failure, ...]:
        """Why systems have no text for the item, by column."""
        rows = (
            row
            for row in self.result.table.failures
            if is_unwritten(row) and self.system in (None, row.system)
        )
        return tuple(
            row for row in rows if row.item == self.item or row.item.startswith(f"{self.item} (")
        )

    @cached_property
    def prompts(self) -> tuple[TextPrompt, ...]:
        """What the judges were asked about the first text, rendered again.

        If the item was selected with its system, these are all its prompts, of a ranking one for each
        opponent. Else it is the first prompt of each column.
        """
        if not self.samples:
            return ()
        sample = self.samples[0]
        rows = self.rows[sample.key]
        if self.system is None:
            # Reversed, so that of several rows of a column the first one stays.
            first_rows = {row.column: row for row in reversed(rows)}
            rows = tuple(reversed(first_rows.values()))
        return prompts_of(self.result, sample, rows)

    def name(self, text: Sample | Failure) -> str:
        """The system of a text, with its generation if the item has several."""
        return text.system + text.item.removeprefix(self.item)


def item_of(result: Result, item: str, system: str | None = None) -> ResultItem:
    """Return an item of a result. Raises ConfigError for an unknown item or system."""
    every = ResultItem(
        result,
        item,
        None,
        tuple(s for s in result.table.samples if item in (s.item, s.source_item)),
    )
    systems = [
        *(sample.system for sample in every.samples),
        *(row.system for row in every.unwritten),
    ]
    if not systems:
        raise ConfigError(
            plugins.unknown_name_message("item", item, list(result.table.items)[:_LISTED])
        )
    if system is not None and system not in systems:
        raise ConfigError(
            plugins.unknown_name_message("system", system, list(dict.fromkeys(systems))[:_LISTED])
        )
    return replace(
        every, system=system, samples=tuple(s for s in every.samples if system in (None, s.system))
    )
