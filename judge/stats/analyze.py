"""Compute everything that the rows of a run support: means, differences, rankings, agreement.

`analyze` combines it. `overall` weights the criteria of each text into one number; `panel_rows`
combines the judges of a panel, and `panel_splits` counts the texts on which they differ widely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, multimode

from judge.core.format import listed
from judge.core.records import IDENTICAL, Column, Estimate, Failure, Provenance, Sample, Score
from judge.core.signature import Signature, join_signatures
from judge.stats.agreement import alpha, repeats, values_by_label
from judge.stats.bootstrap import Bootstrap, item_means, one_thread
from judge.stats.calibration import Calibrated, calibrate, calibrate_overall
from judge.stats.compared_pairs import Orders, tie_label
from judge.stats.correlation_matrix import Matrix, matrices
from judge.stats.pairwise import Ranking, rankings
from judge.stats.score_drivers import Drivers, Text, TextFeatures, drivers
from judge.stats.system_differences import Comparison, compare
from judge.table import Table, split_rows

NAME = "overall"
"""The column's name."""
_PROVENANCE = Provenance("overall")
# Nine matrices of 12 columns then take about a second (docs/decisions/0019).
_MATRIX_RESAMPLES = 500
_MOST_SPLITS = 5
_ROUNDING = 1e-9  # differences that are half of the scale but for rounding count as half


@dataclass(frozen=True, slots=True)
class Overall:
    """The weights of the column `overall`: each criterion's share; the shares sum to 1.

    Values are from 0 (worst end of the criteria's scales) to 1. `n` of `of` texts have a value:
    those with a value for every criterion.
    """

    weights: Mapping[str, float]
    n: int
    of: int

    @property
    def column(self) -> Column:
        """The column of these values."""
        shares = [f"{share:.4g} {column_name}" for column_name, share in self.weights.items()]
        weights = " + ".join(shares)
        signature = Signature(NAME, weights, "0–1")
        return Column(NAME, "criterion", signature, 0.0, 1.0, criterion=NAME)


@dataclass(frozen=True, slots=True)
class WeightedScores:
    """The weights of the column `overall`, and a table of the same texts that contains it."""

    summary: Overall
    table: Table


def overall(table: Table) -> WeightedScores | None:
    """Compute the weighted mean of the criteria's columns (a panel's values).

    Return None for fewer than two weighted criteria, if a column is already called `overall`, and
    for comparisons.
    """
    columns = [column for column in table.columns if _is_weighted(column)]
    taken = any(column.name == NAME for column in table.columns)
    if len(columns) < 2 or table.has_pairs or taken:
        return None
    total_weight = sum(column.weight for column in columns)
    weights = {column.name: column.weight / total_weight for column in columns}
    weighted_sums = dict.fromkeys((sample.key for sample in table.samples), 0.0)
    for column in columns:
        shares = _shares_of_scale(table, column)
        # A text without a value for one of the criteria has no overall value.
        complete = [text for text in weighted_sums if text in shares]
        weight = weights[column.name]
        weighted_sums = {text: weighted_sums[text] + weight * shares[text] for text in complete}
    scores: list[Score] = []
    for (item, system), value in weighted_sums.items():
        scores.append(Score(item, system, NAME, value, _PROVENANCE))
    summary = Overall(weights, len(scores), len(table.samples))
    weighted_table = Table(table.samples, (summary.column,), tuple(scores))
    return WeightedScores(summary, weighted_table)


def _is_weighted(column: Column) -> bool:
    """Return whether it is a criterion's or a panel's column with a weight and a better end."""
    if column.kind != "criterion" or column.judge or not column.better or column.weight <= 0:
        return False
    if column.low is None or column.high is None:
        return False
    return column.low < column.high


def _shares_of_scale(table: Table, column: Column) -> dict[tuple[str, str], float]:
    """Return a column's values by text, from 0 at the worse end of the scale to 1 at the better."""
    lowest = float(column.low or 0.0)
    highest = float(column.high or 0.0)
    if column.better == "lower":
        lowest, highest = highest, lowest
    scores = [score for score in table.column_scores(column.name) if not score.opponent]
    return {score.key: (score.value - lowest) / (highest - lowest) for score in scores}


# Pass rates: the share of a system's texts whose value reaches the criterion's `pass_at`. It is the
# mean of a column with 1 for each text that passes and 0 for each other one, so that means, tests
# and comparisons of runs apply to it.


def pass_columns(columns: Iterable[Column]) -> dict[str, Column]:
    """Return the columns of pass rates by the names of their criteria's columns."""
    return {column.name: _pass_column(column) for column in columns if column.pass_at is not None}


def _pass_column(column: Column) -> Column:
    """Return the column with 1 for each text that reaches the criterion's `pass_at`, and 0 for each other one."""
    scored = column.signature
    sign = "<=" if column.better == "lower" else ">="
    rule = f"pass rate, value {sign} {column.pass_at:g}"
    signature = Signature(rule, scored.name, *scored.parts)
    return Column(
        f"{column.name} pass rate",
        "criterion",
        signature,
        0.0,
        1.0,
        labels=("fail", "pass"),
        values=(0.0, 1.0),
        criterion=column.criterion,
        judge=column.judge,
        weight=0.0,
    )


def pass_table(table: Table) -> Table:
    """Return a table of the same texts with the columns of pass rates alone."""
    rates = pass_columns(table.columns)
    columns = {column.name: column for column in table.columns}
    scores: list[Score] = []
    for score in table.scores:
        if score.column not in rates:
            continue
        passes = columns[score.column].passes(score.value)
        rate = rates[score.column]
        scores.append(replace(score, column=rate.name, value=float(passes or 0)))
    return Table(table.samples, tuple(rates.values()), tuple(scores))


# Panels

Row = Score | Failure


def judged_columns(columns: Iterable[Column]) -> dict[str, list[Column]]:
    """Return the judges' columns of every criterion that a panel judged."""
    by_criterion: dict[str, list[Column]] = {}
    for column in columns:
        if column.judge:
            by_criterion.setdefault(column.criterion, []).append(column)
    return by_criterion


def panel_column(judges: Sequence[Column]) -> Column:
    """Return the column of a panel's values on one criterion. Its signature contains the judges' signatures."""
    first_judge = judges[0]
    joined = join_signatures([column.signature for column in judges], "; ")
    panel = f"{first_judge.panel} of {len(judges)} judges"
    signature = Signature(f"{panel}: {joined.name}", *joined.parts)
    return replace(first_judge, name=first_judge.criterion, signature=signature, judge="")


def panel_rows(columns: Sequence[Column], rows: Iterable[Row]) -> list[Row]:
    """Combine the judges' values for every text (or comparison) that any judge was asked about.

    `mean` and `median` are taken over the values. The median of an even number of values is the
    mean of the middle two. For `majority`, each judge votes for its likeliest label, or for the one
    nearest to its value if it gave no label. The value is the label with more than half of the
    votes. Without one, it is the mean of the labels with the most votes.

    If a judge has no score, the panel has none, because values of different judges are not
    comparable.
    """
    return [_panel_row(judged) for judged in _judged_texts(columns, rows)]


@dataclass(frozen=True, slots=True)
class _JudgedText:
    """A text (or comparison) under one criterion: the panel's columns, and the rows by judge."""

    criterion: str
    judges: Sequence[Column]
    row_by_judge: Mapping[str, Row]

    @property
    def scores(self) -> list[Score]:
        """Return the judges' scores in the order of the columns, without failures."""
        rows = [self.row_by_judge.get(column.judge) for column in self.judges]
        return [row for row in rows if isinstance(row, Score)]


def _judged_texts(columns: Iterable[Column], rows: Iterable[Row]) -> Iterator[_JudgedText]:
    """Yield every text (or comparison) once for each criterion of a panel."""
    panels = judged_columns(columns)
    panel_columns = {column.name: column for judges in panels.values() for column in judges}
    rows_by_text: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for row in rows:
        column = panel_columns.get(row.column)
        if column is not None:
            text = (column.criterion, row.item, row.system, row.opponent)
            rows_by_text.setdefault(text, {})[column.judge] = row
    for (criterion, *_), row_by_judge in rows_by_text.items():
        yield _JudgedText(criterion, panels[criterion], row_by_judge)


def _panel_row(judged: _JudgedText) -> Row:
    """Return a panel's score of one text, or its failure if a judge has no score."""
    scores = judged.scores
    any_row = next(iter(judged.row_by_judge.values()))
    cell = (any_row.item, any_row.system, judged.criterion)
    if len(scores) < len(judged.judges):
        names = [column.judge for column in judged.judges]
        missing = [
            judge_name
            for judge_name in names
            if not isinstance(judged.row_by_judge.get(judge_name), Score)
        ]
        message = f"no score by {', '.join(missing)}"
        return Failure(*cell, "panel", "IncompletePanel", message, opponent=any_row.opponent)
    if all(score.provenance.method == IDENTICAL for score in scores):
        return replace(scores[0], column=judged.criterion)
    value, provenance = _combine(judged.judges, scores)
    return Score(*cell, value, provenance, any_row.opponent)


def _combine(judges: Sequence[Column], scores: Sequence[Score]) -> tuple[float, Provenance]:
    """Return a panel's value of one text, and how it was produced."""
    if judges[0].panel == "majority":
        return _majority(judges, scores)
    values = [score.value for score in scores]
    value = fmean(values) if judges[0].panel == "mean" else float(median(values))
    by_judge = zip(judges, values, strict=True)
    notes = [f"{column.judge}: {judge_value:.4g}" for column, judge_value in by_judge]
    return value, Provenance("panel", n=len(scores), note="; ".join(notes))


def _majority(judges: Sequence[Column], scores: Sequence[Score]) -> tuple[float, Provenance]:
    """Return the value of the label with most votes, or the mean of several (see `panel_rows`)."""
    votes = [_vote(column, score) for column, score in zip(judges, scores, strict=True)]
    labels = [label for label, _ in votes]
    commonest = multimode(labels)
    number_of_votes = Counter(labels)
    shares = {label: number / len(votes) for label, number in number_of_votes.items()}
    majority = commonest[0] if shares[commonest[0]] > 0.5 else None
    by_judge = zip(judges, labels, strict=True)
    notes = [f"{column.judge}: {label}" for column, label in by_judge]
    if not majority:
        notes.append(f"no majority, most votes for {listed(commonest)}")
    value_by_label = dict(votes)
    value = fmean(value_by_label[label] for label in commonest)
    note = "; ".join(notes)
    provenance = Provenance("panel", distribution=shares, argmax=majority, n=len(votes), note=note)
    return value, provenance


def _vote(column: Column, score: Score) -> tuple[str, float]:
    """Return the label that a judge votes for, and the label's value."""
    points = values_by_label(column)
    label = score.provenance.argmax
    if label is not None and label in points:
        return label, points[label]
    if not points:  # the column has no labels: the value stands for itself
        return f"{score.value:.4g}", score.value

    def by_distance(name: str) -> tuple[float, float]:
        """Order by the distance from the score; of two, the lower label comes first."""
        return abs(points[name] - score.value), points[name]

    nearest = min(points, key=by_distance)
    return nearest, points[nearest]


@dataclass(frozen=True, slots=True)
class Split:
    """A text (or comparison) on which a panel's judges differ widely: their `values` by judge."""

    item: str
    system: str
    opponent: str
    values: Mapping[str, float]

    @property
    def spread(self) -> float:
        """The largest value less the smallest."""
        return max(self.values.values()) - min(self.values.values())


@dataclass(frozen=True, slots=True)
class Splits:
    """How often a panel's judges differ on a criterion.

    `n` counts the texts (or comparisons) that all of them scored. `split` counts those on which
    their values differ by half of the scale or more. `no_majority` counts those on which no label
    has more than half of the votes, and is None unless the majority decides. `widest` has up to
    five splits, the widest first.
    """

    criterion: str
    n: int
    split: int
    no_majority: int | None
    widest: tuple[Split, ...]


def panel_splits(table: Table) -> tuple[Splits, ...]:
    """Count how often the judges of a panel differ, by criterion. Identical texts are excluded."""
    panels = judged_columns(table.columns)
    scored_texts: dict[str, list[list[Score]]] = {}
    for judged in _judged_texts(table.columns, table.scores):
        scores = judged.scores
        if len(scores) == len(judged.judges) and scores[0].provenance.method != IDENTICAL:
            scored_texts.setdefault(judged.criterion, []).append(scores)
    splits: list[Splits] = []
    for criterion, texts in scored_texts.items():
        splits.append(_splits(criterion, panels[criterion], texts))
    return tuple(splits)


def _splits(criterion: str, judges: Sequence[Column], texts: Sequence[Sequence[Score]]) -> Splits:
    """Count how often the judges differ on a criterion; `texts` have every judge's score."""
    lowest = judges[0].low or 0.0
    highest = judges[0].high or 0.0
    half_of_scale = (highest - lowest) / 2
    wide: list[Split] = []
    for scores in texts:
        by_judge = zip(judges, scores, strict=True)
        values = {column.judge: row.value for column, row in by_judge}
        text = scores[0]
        split = Split(text.item, text.system, text.opponent, values)
        if split.spread >= half_of_scale - _ROUNDING:
            wide.append(split)
    wide.sort(key=lambda split: -split.spread)
    no_majority = None
    if judges[0].panel == "majority":
        provenances = [_majority(judges, scores)[1] for scores in texts]
        no_majority = sum(provenance.argmax is None for provenance in provenances)
    widest = tuple(wide[:_MOST_SPLITS])
    return Splits(criterion, len(texts), len(wide), no_majority, widest)


@dataclass(frozen=True, slots=True)
class Analysis:
    """The table with a panel's values, and all statistics of it; `Result` describes each field."""

    table: Table
    estimates: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    agreement: Mapping[str, Estimate] = field(default_factory=dict)
    rankings: tuple[Ranking, ...] = ()
    drivers: tuple[Drivers, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    overall: Overall | None = None
    repeats: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    calibrated: tuple[Calibrated, ...] = ()
    matrices: tuple[Matrix, ...] = ()


@one_thread
def analyze(
    samples: Sequence[Sample],
    columns: Sequence[Column],
    rows: Sequence[Score | Failure],
    *,
    orders: Orders | None = None,
    seed: int = 0,
    looks: Mapping[Text, TextFeatures] | None = None,
    people: bool = False,
    against: str = "",
) -> Analysis:
    """Compute means, differences and ranks, or rankings if the rows are comparisons.

    `orders` says in how many orders these were asked. A panel also gets its agreement. If the
    texts' `looks` are known, their correlations with the judge's scores are computed. With
    `people`, means are also estimated on the scale of the ratings. If the name of a system is
    given, each other system is only compared `against` it.
    """
    rows = [*rows, *panel_rows(columns, rows)]
    scores, failures = split_rows(rows)
    table = Table(tuple(samples), tuple(columns), scores, failures)
    bootstrap = Bootstrap(seed=seed)
    agreement = _agreement_of_panels(table, bootstrap)
    if orders is not None:
        ranked = _rankings(table, orders, against, seed)
        return Analysis(table, agreement=agreement, rankings=ranked)
    estimates = item_means(table)
    comparisons = compare(table, seed=seed, against=against)
    weighted = overall(table)
    if weighted is not None:
        estimates |= item_means(weighted.table)
        comparisons += compare(weighted.table, seed=seed, against=against)
    calibrated = _calibrated_columns(table, weighted, against) if people else ()
    matrix_bootstrap = Bootstrap(_MATRIX_RESAMPLES, seed)
    return Analysis(
        table,
        estimates,
        agreement=agreement,
        drivers=drivers(table, looks, bootstrap) if looks else (),
        comparisons=comparisons,
        overall=weighted.summary if weighted else None,
        repeats=repeats(table),
        calibrated=calibrated,
        matrices=matrices(table, matrix_bootstrap),
    )


def _calibrated_columns(
    table: Table,
    weighted: WeightedScores | None,
    against: str,
) -> tuple[Calibrated, ...]:
    """Return the overall score, if there is one, and the criteria on people's scale."""
    criteria = calibrate(table, against)
    if weighted is None:
        return criteria
    total = calibrate_overall(table, weighted.table, weighted.summary.weights, against)
    return criteria if total is None else (total, *criteria)


def _agreement_of_panels(table: Table, bootstrap: Bootstrap) -> dict[str, Estimate]:
    """Return alpha between the judges of each panel by criterion, without undefined ones."""
    agreement: dict[str, Estimate] = {}
    for criterion, judges in judged_columns(table.columns).items():
        estimate = alpha(table, [column.name for column in judges], bootstrap)
        if estimate is not None:
            agreement[criterion] = estimate
    return agreement


def _rankings(table: Table, orders: Orders, against: str, seed: int) -> tuple[Ranking, ...]:
    """Rank the systems of a table of comparisons by every criterion."""
    lengths: dict[Text, int] = {}
    if against:  # only win rates against one system are also estimated at equal length
        lengths = {sample.key: len(sample.output) for sample in table.samples}
    criteria = [column.name for column in table.columns if column.kind == "criterion"]
    source_items = {sample.item: sample.source_item for sample in table.samples}
    return rankings(
        table.scores,
        table.failures,
        table.systems,
        criteria,
        orders=orders,
        source_items=source_items,
        against=against,
        lengths=lengths,
        tie_labels={column.name: tie_label(column) for column in table.columns},
        seed=seed,
    )
