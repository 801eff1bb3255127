"""The columns of the data by which the item browser filters its items."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from judge.core.option_values import finite_number

_MOST_FACETS = 8
_MOST_VALUES = 20

Pairs = tuple[tuple[str, str], ...]
"""Names and texts."""


@dataclass(frozen=True, slots=True)
class Facet:
    """One of the data's own columns with few values, and the value of each output, "" for none."""

    name: str
    values: tuple[str, ...]
    of_outputs: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """Return what the page's script reads: the index of each output's value, or -1."""
        index_of_value = {value: index for index, value in enumerate(self.values)}
        indices = [index_of_value.get(value, -1) for value in self.of_outputs]
        return {
            "name": self.name,
            "values": self.values,
            "of": indices,
        }


def facets_of(tags_of_outputs: Sequence[Pairs]) -> tuple[Facet, ...]:
    """Return the first columns that have few values, each of them for several outputs.

    `tags_of_outputs` are the columns and values of each output, in the order of the page.
    """
    return tuple(islice(_facets(tags_of_outputs), _MOST_FACETS))


def _facets(tags_of_outputs: Sequence[Pairs]) -> Iterator[Facet]:
    n_outputs = len(tags_of_outputs)
    values_by_column: dict[str, list[str]] = {}
    for index, tags in enumerate(tags_of_outputs):
        for column_name, value in tags:
            values = values_by_column.setdefault(column_name, [""] * n_outputs)
            values[index] = value
    for column_name, of_outputs in values_by_column.items():
        distinct_values = set(of_outputs)
        distinct_values.discard("")
        n_values = len(distinct_values)
        # A filter by a column such as an id would leave a single text.
        if 1 < n_values <= _MOST_VALUES and 2 * n_values <= n_outputs:
            in_order = sorted(distinct_values, key=_in_counting_order)
            yield Facet(column_name, tuple(in_order), tuple(of_outputs))


def _in_counting_order(text: str) -> tuple[float, str]:
    """Return a key that sorts numbers by their size, before all other texts."""
    number = finite_number(text)
    if number is None:
        return math.inf, text
    return number, text
