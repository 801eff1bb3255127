"""Compute everything that the rows of a run support: means, differences, rankings, agreement.

`analyze` combines it. `overall` weights the criteria of each text into one number; `panel_rows` combines the judges
of a panel, and `panel_splits` counts the texts on which they differ widely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, multimode

from judge.core.format import listed
from judge.core.records import IDENTICAL, Column, Estimate, Failure, Provenance, Sample, Score
from judge.stats.agreement import alpha, repeats, values_by_label
from judge.stats.bootstrap import Bootstrap, item_means, one_thread
from judge.stats.calibration import Calibrated, calibrate
from judge.stats.correlation import Matrix, matrices
from judge.stats.pairwise import Orders, Ranking, rankings
from judge.stats.score_drivers import Drivers, Text, TextFeatures, drivers
from judge.stats.system_differences import Comparison, compare
from judge.table import Table, split_rows

NAME = "overall"
"""The column's name."""
_PROVENANCE = Provenance("overall")
_MATRIX_RESAMPLES = 500
_MOST_SPLITS = 5
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Overall:
    """The weights of the column `overall`: each criterion's share; the shares sum to 1.

    Values are from 0 (worst end of the criteria's scales) to 1. `n` of `of` texts have a value: those with a value for
    every criterion.
    """

    weights: Mapping[str, float]
    n: int
    of: int

    @property
    def column(self) -> Column:
        """The column of these values."""
        signature = " + ".join(f"{share:.4g} {name}" for name, share in self.weights.items())
        return Column(NAME, "criterion", f"{NAME}|{signature}|0–1", 0.0, 1.0, criterion=NAME)


@dataclass(frozen=True, slots=True)
class WeightedScores:
    """The weights of the column `overall`, and a table of the same texts that contains it."""

    summary: Overall
    table: Table


def overall(table: Table) -> WeightedScores | None:
    """Compute the weighted mean of the criteria's columns (a panel's values) and a table that contains it.

    Return None for fewer than two weighted criteria, if a column is already called `overall`, and for comparisons.
    """
    columns = [
        column
        for column in table.columns
        if column.kind == "criterion" and not column.judge and column.better and column.weight > 0
        if column.low is not None and column.high is not None and column.low < column.high
    ]
    if len(columns) < 2 or table.has_pairs or any(column.name == NAME for column in table.columns):
        return None
    total = sum(column.weight for column in columns)
    weights = {column.name: column.weight / total for column in columns}
    values = dict.fromkeys((s.key for s in table.samples), 0.0)
    for column in columns:  # 0 at the worse end of the scale, 1 at the better one
        low, high = float(column.low or 0.0), float(column.high or 0.0)
        bad, good = (high, low) if column.better == "lower" else (low, high)
        own = {s.key: s.value for s in table.column_scores(column.name) if not s.rival}
        values = {
            key: value + weights[column.name] * ((own[key] - bad) / (good - bad))
            for key, value in values.items()
            if key in own
        }
    scores = tuple(Score(*key, NAME, value, _PROVENANCE) for key, value in values.items())
    summary = Overall(weights, len(scores), len(table.samples))
    return WeightedScores(summary, Table(table.samples, (summary.column,), scores))


# Pass rates: the share of a system's texts whose value reaches the criterion's `pass_at`. It is the mean of a column
# with 1 for each text that passes and 0 for each other one, so that means, tests and comparisons of runs apply to it.


def pass_columns(columns: Iterable[Column]) -> dict[str, Column]:
    """Return the columns of pass rates by the names of their criteria's columns."""
    return {
        c.name: Column(
            f"{c.name} pass rate", "criterion", f"pass rate, value >= {c.pass_at:g}|{c.signature}", 0.0, 1.0,
            ("fail", "pass"), criterion=c.criterion, judge=c.judge, weight=0.0, values=(0.0, 1.0),
        )
        for c in columns
        if c.pass_at is not None
    }  # fmt: skip


def pass_table(table: Table) -> Table:
    """Return a table of the same texts with the columns of pass rates alone."""
    rates, columns = pass_columns(table.columns), {column.name: column for column in table.columns}
    scores = (
        replace(
            score,
            column=rates[score.column].name,
            value=float(columns[score.column].passes(score.value) or 0),
        )
        for score in table.scores
        if score.column in rates
    )
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
    signatures = "; ".join(column.signature for column in judges)
    signature = f"{judges[0].panel} of {len(judges)} judges: {signatures}"
    return replace(judges[0], name=judges[0].criterion, signature=signature, judge="")


def panel_rows(columns: Sequence[Column], rows: Iterable[Row]) -> list[Row]:
    """Combine the judges' values for every text (or comparison) that any judge was asked about.

    `mean` and `median` are those of the values; the median of an even number is the mean of the middle two. For
    `majority`, each judge votes for its likeliest label, or for the one nearest to its value if it gave no label. The
    value is the label with more than half of the votes. Without one, it is the mean of the labels with the most votes.

    If a judge has no score, the panel has none, because values of different judges are not comparable.
    """
    combined: list[Row] = []
    for criterion, judges, by_judge in _by_text(columns, rows):
        scores = [
            score for column in judges if isinstance(score := by_judge.get(column.judge), Score)
        ]
        first = next(iter(by_judge.values()))
        place = first.item, first.system, criterion
        if len(scores) < len(judges):
            missing = [c.judge for c in judges if not isinstance(by_judge.get(c.judge), Score)]
            message = f"no score by {', '.join(missing)}"
            combined.append(Failure(*place, "panel", "IncompletePanel", message, rival=first.rival))
        elif all(score.provenance.method == IDENTICAL for score in scores):
            combined.append(replace(scores[0], column=criterion))
        else:
            value, provenance = _combine(judges, scores)
            combined.append(Score(*place, value, provenance, first.rival))
    return combined


def _by_text(
    columns: Iterable[Column], rows: Iterable[Row]
) -> Iterator[tuple[str, Sequence[Column], Mapping[str, Row]]]:
    """Yield for every criterion and text (or comparison) the panel's columns and its rows by judge."""
    panels = judged_columns(columns)
    panel_columns = {column.name: column for judges in panels.values() for column in judges}
    by_text: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for row in rows:
        if column := panel_columns.get(row.column):
            by_text.setdefault((column.criterion, row.item, row.system, row.rival), {})[
                column.judge
            ] = row
    for (criterion, *_), by_judge in by_text.items():
        yield criterion, panels[criterion], by_judge


def _combine(judges: Sequence[Column], scores: Sequence[Score]) -> tuple[float, Provenance]:
    """Return a panel's value of one text, and how it was produced."""
    values = [score.value for score in scores]
    notes = [f"{column.judge}: {value:.4g}" for column, value in zip(judges, values, strict=True)]
    if judges[0].panel != "majority":
        value = fmean(values) if judges[0].panel == "mean" else float(median(values))
        return value, Provenance("panel", n=len(scores), note="; ".join(notes))
    votes = []
    for column, score in zip(judges, scores, strict=True):
        points, label = values_by_label(column), score.provenance.argmax
        if label is None or label not in points:  # the value itself if the column has no labels
            points = points or {f"{score.value:.4g}": score.value}
            label = min(points, key=lambda name: (abs(points[name] - score.value), points[name]))
        votes.append((label, points[label]))
    labels = multimode(label for label, _ in votes)
    shares = {label: n / len(votes) for label, n in Counter(label for label, _ in votes).items()}
    majority = labels[0] if shares[labels[0]] > 0.5 else None
    notes = [f"{c.judge}: {label}" for c, (label, _) in zip(judges, votes, strict=True)]
    notes += [] if majority else [f"no majority, most votes for {listed(labels)}"]
    value = fmean(dict(votes)[label] for label in labels)
    return value, Provenance(
        "panel", distribution=shares, argmax=majority, n=len(votes), note="; ".join(notes)
    )


@dataclass(frozen=True, slots=True)
class Split:
    """A text (or comparison) on which a panel's judges differ widely: their `values` by judge."""

    item: str
    system: str
    rival: str
    values: Mapping[str, float]

    @property
    def spread(self) -> float:
        """The largest value less the smallest."""
        return max(self.values.values()) - min(self.values.values())


@dataclass(frozen=True, slots=True)
class Splits:
    """How often a panel's judges differ on a criterion, over the `n` texts (or comparisons) that all of them scored.

    `split` counts those on which their values differ by half of the scale or more. `no_majority` counts those on which
    no label has more than half of the votes, and is None unless the majority decides. `widest` has up to five splits,
    the widest first.
    """

    criterion: str
    n: int
    split: int
    no_majority: int | None
    widest: tuple[Split, ...]


def panel_splits(table: Table) -> tuple[Splits, ...]:
    """Count how often the judges of a panel differ, by criterion. Identical texts are excluded."""
    panels, scored = judged_columns(table.columns), dict[str, list[list[Score]]]()
    for criterion, judges, by_judge in _by_text(table.columns, table.scores):
        scores = [row for c in judges if isinstance(row := by_judge.get(c.judge), Score)]
        if len(scores) == len(judges) and scores[0].provenance.method != IDENTICAL:
            scored.setdefault(criterion, []).append(scores)
    splits = []
    for criterion, texts in scored.items():
        judges = panels[criterion]
        half = ((judges[0].high or 0.0) - (judges[0].low or 0.0)) / 2
        apart = [
            Split(
                s[0].item,
                s[0].system,
                s[0].rival,
                {c.judge: row.value for c, row in zip(judges, s, strict=True)},
            )
            for s in texts
        ]
        wide = sorted((s for s in apart if s.spread >= half - _ROUNDING), key=lambda s: -s.spread)
        no_majority = None
        if judges[0].panel == "majority":
            no_majority = sum(_combine(judges, scores)[1].argmax is None for scores in texts)
        splits.append(
            Splits(criterion, len(texts), len(wide), no_majority, tuple(wide[:_MOST_SPLITS]))
        )
    return tuple(splits)


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
    """Compute means, differences and ranks, or rankings if the rows are comparisons in one or two `orders`.

    A panel also gets its agreement. If the texts' `looks` are known, their correlations with the judge's scores are
    computed. With `people`, means are also estimated on the scale of the ratings. If the name of a system is given,
    each other system is only compared `against` it.
    """
    rows = [*rows, *panel_rows(columns, rows)]
    scores, failures = split_rows(rows)
    table = Table(tuple(samples), tuple(columns), scores, failures)
    bootstrap = Bootstrap(seed=seed)
    alphas = {
        criterion: alpha(table, [column.name for column in judges], bootstrap)
        for criterion, judges in judged_columns(columns).items()
    }
    agreement = {
        criterion: estimate for criterion, estimate in alphas.items() if estimate is not None
    }
    if orders is not None:
        judged = [column.name for column in columns if column.kind == "criterion"]
        ranked = rankings(
            scores, failures, table.systems, judged, orders=orders, against=against, seed=seed,
            source_items={sample.item: sample.source_item for sample in samples},
            lengths={sample.key: len(sample.output) for sample in samples} if against else {},
        )  # fmt: skip
        return Analysis(table, agreement=agreement, rankings=ranked)
    estimates = item_means(table)
    comparisons = compare(table, seed=seed, against=against)
    weighted = overall(table)
    if weighted is not None:
        estimates |= item_means(weighted.table)
        comparisons += compare(weighted.table, seed=seed, against=against)
    return Analysis(
        table,
        estimates,
        agreement=agreement,
        drivers=drivers(table, looks, bootstrap) if looks else (),
        comparisons=comparisons,
        overall=weighted.summary if weighted else None,
        repeats=repeats(table),
        calibrated=calibrate(table, against) if people else (),
        matrices=matrices(table, Bootstrap(_MATRIX_RESAMPLES, seed)),
    )
