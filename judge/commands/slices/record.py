"""The result of `judge.slices`: means and differences by the values of a column of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from judge.commands.slices.statistics import SliceDifference, SliceMean
from judge.core import plugins
from judge.core.format import plural
from judge.core.records import Column


@dataclass(frozen=True, repr=False)
class Slices(plugins.Reported):
    """The slices of a run by the column `by` of its data.

    - `items`: the number of items of each slice, the largest first.
    - `means`: each system's mean in each slice and column.
    - `differences`: the pairs of systems that differ in the whole data.
    - `main`: the column that the summary shows.
    """

    VIEW: ClassVar[str] = "judge.commands.slices.view:view"

    by: str
    items: Mapping[str, int]
    systems: tuple[str, ...]
    columns: Mapping[str, Column]
    main: str
    means: tuple[SliceMean, ...]
    differences: tuple[SliceDifference, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n_slices = plural(len(self.items), "slice")
        return f"<Slices: {n_slices} by {self.by}>"

    @property
    def contradictions(self) -> tuple[SliceDifference, ...]:
        """The differences that go significantly the other way."""
        return tuple(
            difference for difference in self.differences if difference.contradicts
        )

    @property
    def worst(self) -> tuple[SliceMean, ...]:
        """The means that are significantly worse than in the rest of the data, the largest gap
        first.

        A gap counts as a share of the column's scale.
        """

        def size(mean: SliceMean) -> float:
            column = self.columns[mean.column]
            span = (column.high or 0.0) - (column.low or 0.0)
            share = (mean.gap or 0.0) / (span or 1.0)
            return -share if column.better == "lower" else share

        worse = [mean for mean in self.means if mean.significant and size(mean) < 0]
        return tuple(sorted(worse, key=size))
