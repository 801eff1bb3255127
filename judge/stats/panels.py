"""Combine the scores of a panel's judges, and count the texts on which they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median, multimode

from judge.core.format import listed
from judge.core.records import IDENTICAL, Column, Failure, Provenance, Score
from judge.core.signature import Signature, join_signatures
from judge.stats.agreement import values_by_label
from judge.table import Table

Row = Score | Failure
_MOST_SPLITS = 5  # texts in `Splits.widest`
_ROUNDING = 1e-9  # of the difference of two values


def judged_columns(columns: Iterable[Column]) -> dict[str, list[Column]]:
    """Return the judges' columns of every criterion that a panel judged."""
    by_criterion: dict[str, list[Column]] = {}
    for column in columns:
        if column.judge:
            by_criterion.setdefault(column.criterion, []).append(column)
    return by_criterion


def panel_column(judges: Sequence[Column]) -> Column:
    """Return the column of a panel's values on one criterion, from the columns of its judges.

    Its signature contains theirs.
    """
    first_judge = judges[0]
    joined = join_signatures([column.signature for column in judges], "; ")
    panel = f"{first_judge.panel} of {len(judges)} judges"
    signature = Signature(f"{panel}: {joined.name}", *joined.parts)
    return replace(
        first_judge, name=first_judge.criterion, signature=signature, judge=""
    )


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
    row_by_judge: dict[str, Row] = field(default_factory=dict)

    @property
    def scores(self) -> list[Score]:
        """Return the judges' scores in the order of the columns, without failures."""
        rows = [self.row_by_judge.get(column.judge) for column in self.judges]
        return [row for row in rows if isinstance(row, Score)]

    @property
    def judges_without_score(self) -> list[str]:
        """Return the judges that failed or have no row, in the order of the columns."""
        scored = {
            judge for judge, row in self.row_by_judge.items() if isinstance(row, Score)
        }
        return [column.judge for column in self.judges if column.judge not in scored]


def _judged_texts(
    columns: Iterable[Column], rows: Iterable[Row]
) -> Iterator[_JudgedText]:
    """Yield every text (or comparison) once for each criterion of a panel."""
    panels = judged_columns(columns)
    panel_columns = {
        column.name: column for judges in panels.values() for column in judges
    }
    # By criterion, item, system and opponent.
    judged_texts: dict[tuple[str, str, str, str], _JudgedText] = {}
    for row in rows:
        column = panel_columns.get(row.column)
        if column is None:
            continue
        key = (column.criterion, row.item, row.system, row.opponent)
        if key not in judged_texts:
            judged_texts[key] = _JudgedText(column.criterion, panels[column.criterion])
        judged_texts[key].row_by_judge[column.judge] = row
    yield from judged_texts.values()


def _panel_row(judged: _JudgedText) -> Row:
    """Return a panel's score of one text, or its failure if a judge has no score."""
    scores = judged.scores
    any_row = next(iter(judged.row_by_judge.values()))
    cell = (any_row.item, any_row.system, judged.criterion)
    missing = judged.judges_without_score
    if missing:
        message = f"no score by {', '.join(missing)}"
        return Failure(
            *cell, "panel", "IncompletePanel", message, opponent=any_row.opponent
        )
    if all(score.provenance.method == IDENTICAL for score in scores):
        return replace(scores[0], column=judged.criterion)
    value, provenance = _combine(judged.judges, scores)
    return Score(*cell, value, provenance, any_row.opponent)


def _combine(
    judges: Sequence[Column], scores: Sequence[Score]
) -> tuple[float, Provenance]:
    """Return a panel's value of one text, and how it was produced."""
    if judges[0].panel == "majority":
        return _majority(judges, scores)
    values = [score.value for score in scores]
    value = fmean(values) if judges[0].panel == "mean" else float(median(values))
    by_judge = zip(judges, values, strict=True)
    notes = [f"{column.judge}: {judge_value:.4g}" for column, judge_value in by_judge]
    return value, Provenance("panel", n=len(scores), note="; ".join(notes))


def _majority(
    judges: Sequence[Column], scores: Sequence[Score]
) -> tuple[float, Provenance]:
    """Return the value of the label with most votes, or the mean of several (see `panel_rows`)."""
    scores_of_judges = zip(judges, scores, strict=True)
    votes = [_vote(column, score) for column, score in scores_of_judges]
    labels = [label for label, _ in votes]
    number_of_votes = Counter(labels)
    shares = {label: number / len(votes) for label, number in number_of_votes.items()}
    commonest = multimode(labels)
    majority: str | None = commonest[0]
    if shares[commonest[0]] <= 0.5:
        majority = None
    by_judge = zip(judges, labels, strict=True)
    notes = [f"{column.judge}: {label}" for column, label in by_judge]
    if majority is None:
        notes.append(f"no majority, most votes for {listed(commonest)}")
    value_by_label = dict(votes)
    value = fmean(value_by_label[label] for label in commonest)
    provenance = Provenance(
        "panel",
        distribution=shares,
        argmax=majority,
        n=len(votes),
        note="; ".join(notes),
    )
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
        is_complete = len(scores) == len(judged.judges)
        if is_complete and scores[0].provenance.method != IDENTICAL:
            scored_texts.setdefault(judged.criterion, []).append(scores)
    splits: list[Splits] = []
    for criterion, texts in scored_texts.items():
        splits.append(_splits(criterion, panels[criterion], texts))
    return tuple(splits)


def _splits(
    criterion: str, judges: Sequence[Column], texts: Sequence[Sequence[Score]]
) -> Splits:
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
    no_majority: int | None = None
    if judges[0].panel == "majority":
        no_majority = 0
        for scores in texts:
            _, provenance = _majority(judges, scores)
            if provenance.argmax is None:
                no_majority += 1
    return Splits(
        criterion,
        n=len(texts),
        split=len(wide),
        no_majority=no_majority,
        widest=tuple(wide[:_MOST_SPLITS]),
    )
