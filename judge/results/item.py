"""The texts of one item of a result, with their scores and failures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.item_names import item_called
from judge.core.records import Failure, Sample, Score, is_unwritten
from judge.results.prompts import TextPrompt, prompts_of
from judge.results.result import Result
from judge.table import Text


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
        """The scores and failures of each text.

        A comparison belongs to the text that was shown first.
        """
        rows_by_text: dict[Text, list[Score | Failure]] = {}
        for sample in self.samples:
            rows_by_text[sample.key] = []
        for row in self.result.table.rows():
            if row.key in rows_by_text:
                rows_by_text[row.key].append(row)
        return {text_key: tuple(rows) for text_key, rows in rows_by_text.items()}

    @property
    def unwritten(self) -> tuple[Failure, ...]:
        """Why systems have no text for the item, by column."""
        # `doc-1 (2)` is the second generation of `doc-1`; `doc-1 (old)` is another item.
        generation = re.compile(rf"{re.escape(self.item)} \(\d+\)")
        failures: list[Failure] = []
        for failure in self.result.table.failures:
            if not is_unwritten(failure) or self.system not in (None, failure.system):
                continue
            if failure.item == self.item or generation.fullmatch(failure.item):
                failures.append(failure)
        return tuple(failures)

    @cached_property
    def prompts(self) -> tuple[TextPrompt, ...]:
        """What the judges were asked about the first text, rendered again.

        If the item was selected with its system, these are all its prompts, in a ranking one for
        each opponent. If not, it is the first prompt of each column.
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


def _whole_item(result: Result, item: str) -> ResultItem | None:
    """Return the item, or the generation, with exactly this name; None if there is none."""
    all_samples = result.table.samples
    samples = [
        sample for sample in all_samples if item in (sample.item, sample.source_item)
    ]
    whole_item = ResultItem(result, item, None, tuple(samples))
    if not samples and not whole_item.unwritten:
        return None
    return whole_item


def item_of(result: Result, item: str, system: str | None = None) -> ResultItem:
    """Return the item of a result whose name is, or as the only one begins with, `item`.

    Raises ConfigError for an unknown item or system.
    """
    whole_item = _whole_item(result, item)
    if whole_item is None:
        unwritten = [
            failure.item for failure in result.table.failures if is_unwritten(failure)
        ]
        items = dict.fromkeys([*result.table.items, *unwritten])
        return item_of(result, item_called(item, items), system)
    samples = whole_item.samples
    systems = [sample.system for sample in samples]
    systems += [failure.system for failure in whole_item.unwritten]
    if system is None:
        return whole_item
    if system not in systems:
        known_systems = list(dict.fromkeys(systems))
        raise ConfigError(plugins.unknown_name_message("system", system, known_systems))
    of_system = tuple(sample for sample in samples if sample.system == system)
    return replace(whole_item, system=system, samples=of_system)
