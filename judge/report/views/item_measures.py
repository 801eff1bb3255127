"""What the items of the browser can be ordered by: scores, differences, preferences and flips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judge.core.records import Column, Failure, Sample, Score
from judge.core.scale_words import in_words
from judge.core.signature import Signature
from judge.report.format import column_title, shortest_places
from judge.report.views.columns import in_display_order, score_places
from judge.report.views.item_scores import PREFERENCE, Compared
from judge.report.views.provenance import abstained, failed
from judge.results.result import Result
from judge.stats.disagreements import on_same_scale

Text = tuple[str, str]
"""An item and a system."""
Values = dict[Text, float | bool | None]
"""A measure's values by text, as `Measure.values` has them."""
TextRows = Mapping[tuple[str, str, str], Score | Failure]
"""A run's rows by item, system and column."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column that items can be ordered by, with its values.

    A value is None if there is none, and False if it failed. `leads` marks the columns that order
    the items unless the reader chooses another one. `per_item` means that all outputs of an item
    have the same value. `places` are the decimals. `judge` is one of a panel.
    """

    title: str
    column: Column
    places: int
    values: Mapping[Text, float | bool | None]
    leads: bool = False
    per_item: bool = False
    judge: str = ""

    @property
    def name(self) -> str:
        """The title with the judge of a panel."""
        return f"{self.title}: {self.judge}" if self.judge else self.title

    @property
    def numbers(self) -> dict[Text, float]:
        """The values of texts that have one."""
        return {
            text: value
            for text, value in self.values.items()
            if value is not None and value is not False
        }

    def share(self, text: Text) -> float | None:
        """Return the text's place on the scale, from 0 (worst) to 1 (best)."""
        value = self.values.get(text)
        if value is None or value is False:
            return None
        return self.column.share(value)

    def data(self, outputs: Sequence[Text]) -> dict[str, Any]:
        """Return what the page's script reads, with a value for each output."""
        values: list[float | bool | None] = []
        for text in outputs:
            value = self.values.get(text)
            if value is not None and value is not False:
                value = float(f"{value:.4g}")  # enough to sort by, and shorter
            values.append(value)
        column = self.column
        labels = column.labels if in_words(column) else ()
        return {
            "name": self.name,
            "column": column.name,
            "low": column.low,
            "high": column.high,
            "better": column.better,
            "labels": labels,
            "ends": column.values,
            "places": self.places,
            "leads": self.leads,
            "item": self.per_item,
            "values": values,
        }


def measures_of_columns(result: Result, rows: TextRows) -> dict[str, Measure]:
    """Return a measure for each column with values of single texts, in the order of the report."""
    table = result.table
    stored = {column.name for column in table.columns} - table.corpus_columns
    measures: dict[str, Measure] = {}
    for group in in_display_order(result):
        for column in group.columns:
            if column.name not in stored:
                continue
            values = {}
            for sample in table.samples:
                of_text = rows.get((*sample.key, column.name))
                values[sample.key] = _value(column, of_text)
            judge = group.parts[column.name] if column.judge else ""
            title = column_title(group.name)
            decimals = score_places(result, column)
            measure = Measure(
                title=title,
                column=column,
                places=decimals,
                values=values,
                judge=judge,
            )
            measures[column.name] = measure
    return measures


def with_leads(measure_by_column: Mapping[str, Measure]) -> list[Measure]:
    """Return the measures with the ends of their scales; those that order the items are marked.

    These are the criteria, or without any the first column that has a better direction.
    """
    criteria = []
    directed = []
    for column_name, measure in measure_by_column.items():
        if measure.column.kind == "criterion" and not measure.judge:
            criteria.append(column_name)
        if measure.column.better:
            directed.append(column_name)
    leads = criteria or directed[:1]
    measures = []
    for column_name, measure in measure_by_column.items():
        column = measure.column
        numbers = measure.numbers.values()
        # A metric without a scale is shaded from its lowest to its highest value.
        if column.low is None:
            column = replace(column, low=min(numbers, default=None))
        if column.high is None:
            column = replace(column, high=max(numbers, default=None))
        scaled = replace(measure, column=column, leads=column_name in leads)
        measures.append(scaled)
    return measures


def _value(column: Column, row: Score | Failure | None) -> float | bool | None:
    """Return the value of a row, False if it failed, None if it is missing or a metric declined."""
    if isinstance(row, Score):
        return row.value
    if failed(row) and not abstained(column, row):
        return False
    return None


def spread_name(criterion: str) -> str:
    """Return the name of the measure that is low if a panel's judges differ widely."""
    return f"{criterion}: judges apart"


def judge_spreads(measures: Sequence[Measure]) -> list[Measure]:
    """Return for each criterion of a panel the largest less the smallest value of its judges."""
    measures_by_criterion: dict[str, list[Measure]] = {}
    for measure in measures:
        if measure.column.judge:
            criterion = measure.column.criterion
            measures_by_criterion.setdefault(criterion, []).append(measure)
    spreads = []
    for criterion, judged in measures_by_criterion.items():
        scale = judged[0].column
        width = (scale.high or 0.0) - (scale.low or 0.0)
        values: Values = {}
        scores_of_judges = [measure.numbers for measure in judged]
        for text in judged[0].values:
            numbers = [scores[text] for scores in scores_of_judges if text in scores]
            values[text] = None
            if len(numbers) == len(judged):
                values[text] = max(numbers) - min(numbers)
        name = spread_name(criterion)
        column = Column(
            name=name,
            kind="metric",
            signature=Signature(),
            low=0.0,
            high=width,
            better="lower",
        )
        title = f"{column_title(criterion)}: judges apart"
        spreads.append(_difference_measure(title, column, values))
    return spreads


def gap_name(criterion_name: str) -> str:
    """Return the name of the measure of the judge's score minus people's mean on a criterion."""
    return f"{criterion_name}: judge − people"


def people_gaps(
    measures: Sequence[Measure], samples: Sequence[Sample]
) -> Iterator[Measure]:
    """Yield the judge's score minus people's mean, for each criterion rated on its own scale."""
    for measure in measures:
        column = measure.column
        if not measure.leads:
            continue
        criterion_name = column.criterion or column.name
        rated = on_same_scale(column, criterion_name, samples)
        if not rated:
            continue
        rating_by_text = {sample.key: sample.human[criterion_name] for sample in rated}
        values: Values = dict.fromkeys(sample.key for sample in samples)
        for text, score in measure.numbers.items():
            if text in rating_by_text:
                values[text] = score - rating_by_text[text]
        width = (column.high or 0.0) - (column.low or 0.0)
        name = gap_name(criterion_name)
        gaps = Column(
            name=name,
            kind="metric",
            signature=Signature(),
            low=-width,
            high=width,
            better="",
        )
        yield _difference_measure(gap_name(measure.name), gaps, values)


def _difference_measure(title: str, column: Column, values: Values) -> Measure:
    """Return a measure with as many decimals as its values need."""
    measure = Measure(
        title=title,
        column=column,
        places=0,
        values=values,
    )
    numbers = measure.numbers.values()
    return replace(measure, places=shortest_places(numbers))


def ranking_measures(
    labels: Mapping[str, str],
    systems_by_item: Mapping[str, Sequence[str]],
    comparisons: Mapping[str, Sequence[Compared]],
) -> list[Measure]:
    """Return for each ranking how often a text was preferred, and its item's flips.

    The flips order the items. `labels` are the headings of the rankings by their columns, and
    `comparisons` has those of an item in the same order.
    """
    preferences = []
    flips = []
    for index, (column, label) in enumerate(labels.items()):
        shares: Values = {}
        counts: Values = {}
        # At least 1, because a scale from 0 to 0 has no worst end.
        most_flips = 1.0
        for item_name, systems in systems_by_item.items():
            contest = comparisons[item_name][index]
            n_flips = float(contest.flips)
            most_flips = max(most_flips, n_flips)
            for system in systems:
                text = (item_name, system)
                shares[text] = contest.preference(system)
                counts[text] = n_flips
        preference_column = replace(PREFERENCE, name=f"{column}: preferred")
        preference = Measure(
            title=f"{label}: preferred",
            column=preference_column,
            places=2,
            values=shares,
        )
        preferences.append(preference)
        flip_column = Column(
            f"{column}: flips",
            "criterion",
            Signature(),
            low=0.0,
            high=most_flips,
            better="lower",
        )
        flips_of_item = Measure(
            f"{label}: flips",
            flip_column,
            places=0,
            values=counts,
            leads=True,
            per_item=True,
        )
        flips.append(flips_of_item)
    return [*preferences, *flips]
