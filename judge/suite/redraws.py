"""Draw a run again as if nothing had changed: new replies to the same texts, or other items.

Replies are drawn from what the run knows of them:

- A score of several draws is drawn in two steps, first the unknown probabilities of the labels,
  then the new draws. The probabilities come from a Dirichlet distribution whose parameters are the
  counts of the labels plus a prior. The prior is how draws of the column usually spread around the
  most frequent label of their text (empirical Bayes), so that five draws that are alike do not mean
  that a sixth one is.
- A score from token probabilities is their mean, which a new request gives again.
- Other replies than a single label are unknown, and so are those to a judgment that failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lgamma

import numpy as np

from judge.core.records import Column, Sample, Score
from judge.results.result import Result
from judge.stats.bootstrap import Floats
from judge.stats.panels import panel_rows
from judge.suite.case_scores import columns
from judge.suite.evidence import Row, label_values
from judge.table import Table, Text, split_rows

_UNKNOWN = ("single", "checklist")
"""Methods of scores whose other possible replies are not known."""
_UNSEEN = 0.5
"""Draws that are added to both neighbours of the most frequent label, over all texts."""
_WEIGHTS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Weights of a prior that are tried, in draws."""
_AGAIN = " #"
"""Between an item and its number among the items that were drawn."""


@dataclass(frozen=True, slots=True)
class _Draws:
    """The draws of a score: how many have each label of the scale, and the last number for none.

    `values` are the labels' values.
    """

    labels: Sequence[str]
    values: Floats
    counts: Floats

    @classmethod
    def of(cls, score: Score, column: Column) -> _Draws | None:
        """Return the draws of a score, None if it is not made of draws."""
        provenance = score.provenance
        if provenance.method != "samples" or provenance.n < 2:
            return None
        value_by_label = label_values(column)
        distribution = provenance.distribution or {}
        has_unknown_labels = bool(distribution.keys() - value_by_label.keys())
        mass = sum(distribution.values())
        if has_unknown_labels or not mass > 0:
            return None
        # In the order of the scale, in which neighbours are alike.
        labels = sorted(value_by_label, key=value_by_label.__getitem__)
        values = [value_by_label[label] for label in labels]
        n_read = provenance.n
        counts = []
        for label in labels:
            share = distribution.get(label, 0.0) / mass
            counts.append(share * n_read)
        # `mass` is the share of the readable draws.
        n_all = n_read / mass
        n_unread = max(0.0, n_all - n_read)
        counts.append(n_unread)
        return cls(labels, np.array(values), np.array(counts))

    @property
    def label_counts(self) -> Floats:
        """How many draws have each label."""
        return self.counts[:-1]

    @property
    def n_unread(self) -> float:
        """How many draws have no label of the scale."""
        return float(self.counts[-1])

    @property
    def mode(self) -> int:
        """The position of the most frequent label."""
        return int(np.argmax(self.label_counts))

    @property
    def n(self) -> int:
        """The number of draws."""
        return round(float(self.counts.sum()))

    def around_mode(self) -> slice:
        """Return the positions of the labels by their distance from the most frequent one.

        With k labels, distances are from −(k − 1) to k − 1, at the positions 0 to 2 (k − 1).
        """
        n_labels = len(self.labels)
        first_position = n_labels - 1 - self.mode
        return slice(first_position, first_position + n_labels)

    def posterior(self, prior: Floats, random: np.random.Generator) -> Floats:
        """Draw the probabilities of the labels, and of a reply without one."""
        weights = random.standard_gamma(self.counts + prior)
        shares: Floats = weights / weights.sum()
        return shares

    def redrawn(
        self,
        score: Score,
        column: Column,
        n: int,
        shares: Floats,
        random: np.random.Generator,
    ) -> Score:
        """Return the score of `n` new draws with these probabilities of the labels."""
        drawn = random.multinomial(n, shares)
        # The last number counts replies without a label.
        label_counts = drawn[:-1]
        n_read = int(label_counts.sum())
        if not n_read:
            # Without a readable reply there would be no score. That is too rare to count.
            return score
        value = float(label_counts @ self.values / n_read)
        share_by_label: dict[str, float] = {}
        for label, count in zip(self.labels, label_counts, strict=True):
            if count:
                share_by_label[label] = float(count) / n

        def bound(end: float | None) -> float:
            """Return the mean if each unread reply had a value at this end of the scale."""
            if end is None:
                return value
            sum_of_read = value * n_read
            sum_of_unread = end * (n - n_read)
            return (sum_of_read + sum_of_unread) / n

        provenance = replace(
            score.provenance,
            mass=n_read / n,
            distribution=share_by_label,
            argmax=max(share_by_label, key=share_by_label.__getitem__),
            low=bound(column.low),
            high=bound(column.high),
            n=n_read,
        )
        return replace(score, value=value, provenance=provenance)


class Redraws:
    """The rows of a result, to be drawn again."""

    def __init__(self, result: Result, cases: Collection[str] = ()) -> None:
        """Read a result. Pairwise items begin with the name of one of `cases`."""
        self._result = result
        table = result.table
        self._column_by_name = {column.name: column for column in table.columns}
        # A panel's own rows follow from the rows of its judges.
        panels = {column.criterion for column in table.columns if column.judge}
        self._rows = [row for row in table.rows() if row.column not in panels]
        # By position in `_rows`.
        self._draws: dict[int, _Draws] = {}
        # Criterion, item and system of the scores whose other replies are not known.
        self._unknown: set[tuple[str, str, str]] = set()
        self._collect_draws()
        self._prior = self._priors()
        # A source is an item of the data, whatever cases and generations call it.
        self._samples_by_source: dict[str, list[Sample]] = {}
        self._rows_by_source: dict[str, list[Row]] = {}
        self._source_by_item: dict[str, str] = {}
        for sample in table.samples:
            source = _without_case(sample.cluster or sample.item, cases)
            self._source_by_item[sample.item] = source
            self._samples_by_source.setdefault(source, []).append(sample)
        for observed in table.rows():
            source = self._source_by_item.get(observed.item, observed.item)
            self._rows_by_source.setdefault(source, []).append(observed)

    def _collect_draws(self) -> None:
        """Find the draws behind each row, and the rows whose other replies are unknown."""
        criterion_columns = {column.name for column in columns(self._result).values()}
        for position, row in enumerate(self._rows):
            column = self._column_by_name[row.column]
            draws = None
            if isinstance(row, Score):
                draws = _Draws.of(row, column)
            is_judged = row.column in criterion_columns or bool(column.judge)
            if draws is not None:
                self._draws[position] = draws
            elif is_judged and _has_unknown_replies(row):
                criterion_name = column.criterion or column.name
                self._unknown.add((criterion_name, row.item, row.system))

    @property
    def draws(self) -> int:
        """The most draws of a score; 0 if none is made of draws."""
        return max((draws.n for draws in self._draws.values()), default=0)

    def is_known(self, criterion: str, texts: Iterable[Text]) -> bool:
        """Return whether the replies about all these texts can be drawn again."""
        return not any((criterion, *text) in self._unknown for text in texts)

    def is_drawn(self, criterion: str, texts: Iterable[Text]) -> bool:
        """Return whether a score of these texts is made of draws."""
        keys = frozenset(texts)
        for position in self._draws:
            row = self._rows[position]
            column = self._column_by_name[row.column]
            criterion_name = column.criterion or column.name
            if criterion_name == criterion and row.key in keys:
                return True
        return False

    def posterior(self, random: np.random.Generator) -> Mapping[int, Floats]:
        """Draw the probabilities of the labels of each score that is made of draws."""
        shares: dict[int, Floats] = {}
        for position, draws in self._draws.items():
            prior = self._prior[position]
            shares[position] = draws.posterior(prior, random)
        return shares

    def _priors(self) -> dict[int, Floats]:
        """Return the parameters of the prior of each score that is made of draws."""
        positions_by_column: dict[str, list[int]] = {}
        for position in self._draws:
            column_name = self._rows[position].column
            positions_by_column.setdefault(column_name, []).append(position)
        priors: dict[int, Floats] = {}
        for positions in positions_by_column.values():
            draws_of_column = [self._draws[position] for position in positions]
            column_priors = _fitted_priors(draws_of_column)
            priors.update(zip(positions, column_priors, strict=True))
        return priors

    def with_new_replies(
        self,
        random: np.random.Generator,
        shares: Mapping[int, Floats],
        n_draws: int | None = None,
    ) -> list[Row]:
        """Return the rows with new replies to the same texts; `n_draws` changes their number."""
        rows: list[Row] = []
        for position, row in enumerate(self._rows):
            draws = self._draws.get(position)
            if draws is None or not isinstance(row, Score):
                rows.append(row)
                continue
            new_score = draws.redrawn(
                row,
                self._column_by_name[row.column],
                n_draws or draws.n,
                shares[position],
                random,
            )
            rows.append(new_score)
        rows_of_panels = panel_rows(self._result.table.columns, rows)
        return [*rows, *rows_of_panels]

    def sources(self, texts: Iterable[Text]) -> list[str]:
        """Return the items of the data that these texts are of, each once."""
        sources = [self._source_by_item[item] for item, _ in texts]
        return list(dict.fromkeys(sources))

    def drawn_texts(self, texts: Iterable[Text], items: Sequence[str]) -> list[Text]:
        """Return the texts of a case on the drawn items, as `result` names them."""
        texts_by_source: dict[str, list[Text]] = {}
        for item, system in texts:
            item_of_data = self._source_by_item[item]
            texts_by_source.setdefault(item_of_data, []).append((item, system))
        drawn: list[Text] = []
        for number, source in enumerate(items):
            for item, system in texts_by_source.get(source, ()):
                drawn_item = _numbered(item, number)
                drawn.append((drawn_item, system))
        return drawn

    def result(self, rows: Sequence[Row], items: Sequence[str] = ()) -> Result:
        """Return a result of these rows, and of the observed rows of the drawn `items` of the data.

        An item that was drawn several times is several items. Their names end in ` #0`, ` #1` …
        """
        samples = list(self._result.table.samples)
        all_rows = list(rows)
        for number, source in enumerate(items):
            for sample in self._samples_by_source.get(source, ()):
                drawn_item = _numbered(sample.item, number)
                cluster = ""
                if sample.cluster:
                    cluster = _numbered(sample.cluster, number)
                drawn_sample = replace(sample, item=drawn_item, cluster=cluster)
                samples.append(drawn_sample)
            for row in self._rows_by_source.get(source, ()):
                drawn_item = _numbered(row.item, number)
                all_rows.append(replace(row, item=drawn_item))
        scores, failures = split_rows(all_rows)
        columns_of_table = self._result.table.columns
        table = Table(tuple(samples), columns_of_table, scores, failures)
        return replace(self._result, table=table)


def _fitted_priors(draws: Sequence[_Draws]) -> list[Floats]:
    """Return the prior of each score of a column: how its draws usually spread around their mode.

    The spread is that of all draws of the column, by the distance from the most frequent label of
    their text. The weight of the prior is the likeliest one under the Dirichlet-multinomial
    distribution (empirical Bayes).
    """
    n_labels = len(draws[0].labels)
    # Counts by distance from the mode, see `_Draws.around_mode`.
    by_distance = np.zeros(2 * n_labels - 1)
    unread = 0.0
    for each in draws:
        by_distance[each.around_mode()] += each.label_counts
        unread += each.n_unread
    # Draws that are all alike do not show that the neighbours have no probability.
    neighbours = slice(n_labels - 2, n_labels + 1, 2)
    by_distance[neighbours] += _UNSEEN
    shapes: list[Floats] = []
    for each in draws:
        shape = np.append(by_distance[each.around_mode()], unread)
        shapes.append(shape / shape.sum())

    def likelihood(weight: float) -> float:
        return _log_likelihood(draws, shapes, weight)

    likeliest_weight = max(_WEIGHTS, key=likelihood)
    return [likeliest_weight * shape for shape in shapes]


def _log_likelihood(
    draws: Sequence[_Draws], shapes: Sequence[Floats], weight: float
) -> float:
    """Return the log likelihood of all draws under priors of this weight, up to a constant."""
    log_likelihood = 0.0
    for each, shape in zip(draws, shapes, strict=True):
        n_draws = float(each.counts.sum())
        log_likelihood += lgamma(weight) - lgamma(weight + n_draws)
        for count, share in zip(each.counts, shape, strict=True):
            if count > 0:
                parameter = weight * share
                log_likelihood += lgamma(parameter + float(count)) - lgamma(parameter)
    return log_likelihood


def _without_case(item: str, cases: Collection[str]) -> str:
    """Return the item of the data; those of comparisons are called `CASE: ITEM`."""
    for case in cases:
        prefix = f"{case}: "
        if item.startswith(prefix):
            return item.removeprefix(prefix)
    return item


def _numbered(item: str, number: int) -> str:
    """Return the name of an item that was drawn: `doc-1 #3`."""
    return f"{item}{_AGAIN}{number}"


def _has_unknown_replies(row: Row) -> bool:
    """Return whether other replies may say something that the run does not know."""
    # A judgment that failed may succeed the next time.
    if not isinstance(row, Score):
        return True
    provenance = row.provenance
    is_single_draw = provenance.method == "samples" and provenance.n < 2
    return is_single_draw or provenance.method in _UNKNOWN
