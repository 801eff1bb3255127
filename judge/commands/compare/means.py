"""The means that `judge compare` reports, each with its change in words and numbers."""

from __future__ import annotations

from dataclasses import dataclass

from judge.core.format import format_p, number, one_line, signed
from judge.core.records import Column as Measured
from judge.core.records import Estimate
from judge.core.signature import Signature
from judge.report.document import Cell, Tone
from judge.report.format import (
    column_title,
    decimal_places,
    interval_text,
    mean_text,
    share_label,
)
from judge.report.views.columns import change_tone
from judge.results.comparison import RunComparison
from judge.stats.derived_columns import OVERALL
from judge.stats.run_differences import MeanChange


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean in both runs, as `judge compare` writes it.

    `places` are the decimals of all values of the column. `several` says whether there are several
    systems, so that a sentence has to name the one that it is about.
    """

    row: MeanChange
    column: Measured
    places: int
    several: bool

    @property
    def system(self) -> str:
        """The system's name on one line."""
        return one_line(self.row.system) or "all systems"

    @property
    def differs(self) -> bool:
        """Whether the value of any text changed, though the mean may be the same."""
        return bool(self.row.up or self.row.down)

    @property
    def importance(self) -> tuple[int, float]:
        """A sort key: criteria first, then overall, metrics and single judges.

        Within these, large changes come first.
        """
        if self.row.column == OVERALL:
            group_rank = 1
        elif self.column.kind == "metric":
            group_rank = 2
        elif self.column.judge:
            group_rank = 3
        else:
            group_rank = 0
        return group_rank, -self.share

    @property
    def change_phrase(self) -> str:
        """`relevance fell by 0.31 for bart (p = 0.012)`.

        A change over all systems has its interval: `… by 0.31 [0.12, 0.50] over all systems`.
        """
        estimate = self.row.estimate
        lower_bound = estimate.low
        upper_bound = estimate.high
        amount = self._amount(abs(estimate.value))
        # "fell by 0.31" has no sign, so an interval on both sides of 0 cannot follow it.
        if (
            not self.row.system
            and lower_bound is not None
            and upper_bound is not None
            and lower_bound * upper_bound > 0
        ):
            nearer, farther = sorted((abs(lower_bound), abs(upper_bound)))
            interval = interval_text(self.column, nearer, farther, self.places)
            amount += f" {interval}"
        of_system = ""
        if self.several:
            of_system = " over all systems"
            if self.row.system:
                of_system = f" for {one_line(self.row.system, 60)}"
        tested = ""
        if self.row.adjusted is not None:
            tested = f" ({format_p(self.row.adjusted)})"
        direction = "rose" if estimate.value > 0 else "fell"
        title = column_title(self.row.column)
        return f"{title} {direction} by {amount}{of_system}{tested}"

    def _amount(self, value: float) -> str:
        """Return the size of a change that is not 0: `0.31`, `12 points`, `less than 0.01`."""
        if share_label(self.column):
            # Below half a point, "0 points" would deny the change.
            if value < 0.005:
                return "less than 1 point"
            points = number(100 * value, 0)
            return f"{points} points"
        text = self.text(value)
        # A mean that rose by 0.00 did not rise.
        if float(text) == 0:
            smallest_shown = 10**-self.places
            return f"less than {smallest_shown:.{self.places}f}"
        return text

    @property
    def share(self) -> float:
        """The size of the change as a share of the scale; in points if the scale has no ends."""
        lowest = self.column.low or 0.0
        highest = self.column.high or 0.0
        length = highest - lowest if highest > lowest else 1.0
        return abs(self.row.estimate.value) / length

    @property
    def split_phrase(self) -> str:
        """A change in two parts.

        `relevance of bart: +0.31, of which the judge +0.27 [0.21, 0.33] and the system +0.04 …`.
        """
        whole = self.part(self.row.estimate)
        judge = self.part(self.row.judge)
        system_change = self.system_change_cell
        judges_part = f"the judge {judge.text} {judge.note}".rstrip()
        systems_part = f"the system {system_change.text} {system_change.note}".rstrip()
        adjusted_p = self.row.system_adjusted
        tested = "not tested" if adjusted_p is None else format_p(adjusted_p)
        title = column_title(self.row.column)
        system = one_line(self.row.system, 60)
        return (
            f"{title} of {system}: {whole.text}, of which {judges_part} and {systems_part} "
            f"({tested})"
        )

    def part(self, estimate: Estimate | None, *, significant: bool = False) -> Cell:
        """Return a change, or a part of it, with its sign and interval; a dash for None."""
        if estimate is None:
            return Cell("–")
        value = estimate.value
        text = signed(value, self.places)
        if share_label(self.column):
            # A share changes by percentage points.
            text = signed(100 * value, 0)
        interval = interval_text(self.column, estimate.low, estimate.high, self.places)
        tone: Tone = ""
        mark = ""
        if significant:
            tone = change_tone(value, self.column.better)
            mark = "*"
        return Cell(text, interval, tone, mark, value=value)

    def text(self, value: float) -> str:
        """Write a value of the column in its decimals, a share in percent."""
        return mean_text(self.column, value, self.places)

    @property
    def change_cell(self) -> Cell:
        """The whole change, after minus before."""
        return self.part(self.row.estimate, significant=self.row.significant)

    @property
    def system_change_cell(self) -> Cell:
        """The change without the judge's part."""
        return self.part(self.row.system_change, significant=self.row.system_changed)


def is_split(row: MeanChange) -> bool:
    """Return whether texts changed and the judge moved, so that the change has two parts."""
    return row.system_change is not None and row.system_change != row.estimate


def all_means(comparison: RunComparison) -> list[Mean]:
    """Return all means: first the overall score, then criteria, metrics and single judges."""
    rows = comparison.runs.means
    systems = {row.system for row in rows if row.system}
    several = len(systems) > 1
    values_by_column: dict[str, list[float]] = {}
    for row in rows:
        column_values = values_by_column.setdefault(row.column, [])
        column_values += [row.before, row.after]
    columns: dict[str, Measured] = {}
    places: dict[str, int] = {}
    for column_name, column_values in values_by_column.items():
        column = comparison.columns.get(column_name)
        if column is None:
            column = Measured(column_name, "metric", Signature())
        columns[column_name] = column
        places[column_name] = decimal_places(column, column_values)
        if column_name == OVERALL:
            # It is between 0 and 1, for which two decimals would be coarse.
            places[column_name] = 3
    means = []
    for row in rows:
        column = columns[row.column]
        means.append(Mean(row, column, places[row.column], several))

    def overall_first(mean: Mean) -> tuple[bool, int]:
        group_rank, _ = mean.importance
        return mean.row.column != OVERALL, group_rank

    return sorted(means, key=overall_first)
