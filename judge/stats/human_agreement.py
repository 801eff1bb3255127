"""Compare judges, baselines and annotators with the mean of people's ratings, criterion by criterion.

`people` compares all of them; `of_run` does so for a run's own page. `baselines_without_judge` are the floors that a
judge has to beat. `out_of_scale` and `unknown_criteria` check the ratings themselves.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Literal

import numpy as np

from judge import text
from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.core.records import Column, Estimate, Failure, Sample, Score
from judge.core.version import __version__
from judge.metrics import Metric, parallel
from judge.stats.agreement import Agreement, Measure, agree
from judge.stats.bootstrap import Bootstrap, Floats, one_thread
from judge.stats.calibration import Calibration, calibration, edges, levels
from judge.stats.coefficients import LEVELS, Level, paired, within
from judge.stats.correlation import Correlation, CorrelationWithRatings, Values, criterion, human_ceiling, matrix
from judge.table import Table


@dataclass(frozen=True, slots=True)
class Row:
    """What has been held against people's ratings: a judge's column, a floor, or an annotator.

    A judge also has its `agreement` with people's mean (kappa of both rounded to the scale) and its `calibration`, None
    where `no_calibration` says why. An annotator's `agreement` is that of all annotators with one another. `few` says
    by level that a floor has values for too few items to count as one.
    """

    name: str
    kind: Literal["judge", "floor", "ceiling"]
    signature: str
    correlation: Correlation
    agreement: Agreement = field(default_factory=Agreement)
    calibration: Calibration | None = None
    no_calibration: str = ""
    few: Mapping[Level, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.name if self.kind == "judge" else f"{self.name} ({self.kind})"


@dataclass(frozen=True, slots=True)
class Versus:
    """One judge against another at a level: differences of their correlations with people, on the texts of both.

    `pearson` has the p of Williams' test, but at level document, for which there is none.
    """

    judge: str
    other: str
    level: Level
    spearman: Estimate
    pearson: Estimate | None


@dataclass(frozen=True, slots=True)
class Rated:
    """One criterion that people rated so many texts on.

    `ceiling` is one annotator against the mean of the others, None where `no_ceiling` says why. `differences` are
    Spearman of a judge less that of a floor, by (judge, floor, level), where they are defined; `versus` are every two
    judges.
    """

    criterion: str
    texts: int
    judges: tuple[Row, ...]
    floors: tuple[Row, ...]
    ceiling: Row | None
    no_ceiling: str
    differences: Mapping[tuple[str, str, Level], Estimate]
    versus: tuple[Versus, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        return (*self.judges, *self.floors, *([self.ceiling] if self.ceiling else []))


@dataclass(frozen=True, slots=True)
class RatedColumn:
    """A judge's column or a floor: of one criterion, or, where that is empty, of any. A judge's has its `scale`."""

    name: str
    signature: str
    values: Values
    criterion: str = ""
    scale: Column | None = None


def column_from_table(column: Column, table: Table, name: str) -> RatedColumn:
    """A column of a run, under a name."""
    return column_from_metric(column, table.column_scores(column.name), name)


def column_from_metric(column: Column, rows: Iterable[Score | Failure], name: str) -> RatedColumn:
    """A column from its rows among others."""
    values = {(r.item, r.system): r.value for r in rows if isinstance(r, Score) and r.column == column.name}
    scale = column if column.kind == "criterion" else None
    return RatedColumn(name, column.signature, values, column.criterion, scale)


_NAMED = 3
_STRAY = 0.1  # of the ratings; where more are outside, they are of another scale

Ends = tuple[float, float]


def out_of_scale(samples: Sequence[Sample], scales: Mapping[str, Ends]) -> Iterator[str]:
    """A sentence on each criterion of which single ratings are outside its scale (`low`, `high`), with their rows.

    Of annotators each rating counts. Where more than a tenth and more than three are outside, people have rated on
    another scale, of which nothing is said here.
    """
    for name, (low, high) in scales.items():
        rated = [
            (sample, vote)
            for sample in samples
            for vote in sample.ratings.get(name) or (sample.human.get(name),)
            if vote is not None
        ]
        outside = [(sample, vote) for sample, vote in rated if not low <= vote <= high]
        if outside and len(outside) <= max(_NAMED, _STRAY * len(rated)):
            rows = ", ".join(
                f"{vote:g} at {sample.where}"
                if sample.where
                else f"{vote:g} (item {sample.item}, system {sample.system})"
                for sample, vote in outside[:_NAMED]
            )
            more = f" and {len(outside) - _NAMED:,} more" if len(outside) > _NAMED else ""
            yield f"Ratings of {name} outside its scale, {low:g} to {high:g}: {rows}{more}."


def unknown_criteria(samples: Iterable[Sample], criteria: Sequence[str]) -> str:
    """That people's ratings are of none of these criteria, with the nearest names; nothing where any is."""
    names = list(dict.fromkeys(name for sample in samples for name in sample.human))
    if not names or not criteria or set(names) & set(criteria):
        return ""
    near = {name: close[0] for name in names if (close := difflib.get_close_matches(name, criteria, n=1))}
    hint = "".join(f" Did you mean {meant} for {name}?" for name, meant in near.items())
    example = option("map", {f"human.{criteria[0]}": "COLUMN"})
    return (
        f"People's ratings of {', '.join(names)} go with no criterion asked ({', '.join(criteria)}), and no judge is "
        f"held against them.{hint} {example} names the ratings of a criterion."
    )


_ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-L"}
_CHANGED = ("alpha=", "stop=", "exc=", "preset=")
"""Parts of a ROUGE signature that the floor does not have."""


def baselines_without_judge(
    table: Table, samples: Sequence[Sample], criteria: Sequence[str], *, measure: bool
) -> list[RatedColumn]:
    """The heuristic's columns of these criteria, the length, and ROUGE where there are references.

    Without `measure` the heuristic and ROUGE only where the table has them.
    """
    tokenizers = {sample.output: text.tokenizer_for([sample.output]) for sample in samples}
    lengths = {(s.item, s.system): float(len(text.words(tokenizers[s.output])(s.output))) for s in samples}
    names = "+".join(sorted({text.signature(name) for name in tokenizers.values()}))
    existing = {column.criterion: column for column in table.columns if column.kind == "metric" and column.criterion}
    columns = [column_from_table(column, table, "heuristic") for name, column in existing.items() if name in criteria]
    missing = [name for name in criteria if measure and name not in existing and _heuristic([name])]
    if missing and (metric := _heuristic(missing)):
        scored = parallel.score_in_parallel(metric, samples)
        columns += [column_from_metric(column, scored.rows, "heuristic") for column in scored.columns]
    return [
        *columns,
        RatedColumn("length", f"words|tok={names}|judge {__version__}", lengths),
        *_rouge(table, samples, measure),
    ]


def _heuristic(criteria: Sequence[str]) -> Metric | None:
    """The baseline for these criteria, None where it does not know them."""
    try:
        metric: Metric = plugins.load("metrics", "heuristic")(criteria=criteria)
    except ConfigError:
        return None
    return metric


def _rouge(table: Table, samples: Sequence[Sample], measure: bool) -> list[RatedColumn]:
    if not any(sample.references for sample in samples):
        return []
    existing = {}
    for column in table.columns:
        # As the floor has it: F, stemmed, the mean over the references or that of one.
        parts = column.signature.split("|")
        changed = any(part.startswith(_CHANGED) for part in parts) or "stem=no" in parts
        if column.name in _ROUGE and "f" in parts and not changed and ("refs=mean" in parts or "nrefs=1" in parts):
            existing[column.name] = column
    if existing.keys() == _ROUGE.keys():
        return [column_from_table(existing[name], table, label) for name, label in _ROUGE.items()]
    if not measure:
        return []
    scored = parallel.score_in_parallel(plugins.load("metrics", "rouge")(types=list(_ROUGE), multi="mean"), samples)
    return [column_from_metric(column, scored.rows, _ROUGE[column.name]) for column in scored.columns]


_MANY = 5_000  # texts
_FEWEST, _SHARE = 10, 0.5  # items, and the share of the judges', below which a floor is none
_KAPPA: tuple[Measure, ...] = ("kappa_quadratic", "kappa_linear")


@one_thread
def people(
    table: Table, judges: Sequence[RatedColumn], bootstrap: Bootstrap, *, measure: bool = True
) -> tuple[Rated, ...]:
    """Every criterion that people rated, with the judges' columns of it, on the texts of this table.

    Floors that the table lacks are measured, where that is wanted.
    """
    samples = [sample for sample in table.samples if sample.human]
    criteria = tuple(dict.fromkeys(name for sample in samples for name in sample.human))
    below = baselines_without_judge(table, samples, criteria, measure=measure)
    return tuple(
        _rated(name, samples, [judge for judge in judges if judge.criterion == name], below, bootstrap)
        for name in criteria
    )


def of_run(table: Table, model: str, seed: int) -> tuple[Rated, ...]:
    """The comparison for a run's own page; empty if people rated no criterion that a judge scored.

    For very many texts only floors that the run has measured are shown: measuring others would take too long.
    """
    judges = judges_of(table, model)
    rated = {name for sample in table.samples for name in sample.human}
    if not any(judge.criterion in rated for judge in judges):
        return ()
    return people(table, judges, Bootstrap(seed=seed), measure=len(table.samples) <= _MANY)


def judges_of(table: Table, model: str) -> list[RatedColumn]:
    """The judges' columns: of a panel its mean and its judges', else each criterion's, which has the model's name."""
    columns = [column for column in table.columns if column.kind == "criterion"]
    panels = {column.criterion for column in columns if column.judge}
    judges = []
    for column in columns:
        name = column.judge or ("panel mean" if criterion(column) in panels else model) or criterion(column)
        judges.append(replace(column_from_table(column, table, name), criterion=criterion(column), scale=column))
    return judges


def _rated(
    name: str,
    samples: Sequence[Sample],
    judges: Sequence[RatedColumn],
    floors: Sequence[RatedColumn],
    bootstrap: Bootstrap,
) -> Rated:
    """One criterion: every column on the texts that were rated on it."""
    texts = [sample for sample in samples if name in sample.human]
    ratings = matrix(texts, {(s.item, s.system): s.human[name] for s in texts})
    judged = [(column, matrix(texts, column.values)) for column in judges]
    makers = [_scorer(column) for column in judges]
    below = [
        (column, matrix(texts, column.values))
        for column in floors
        if column.criterion in ("", name) and _scorer(column) not in makers
    ]
    against = CorrelationWithRatings(ratings, bootstrap, [values for _, values in (*judged, *below)])
    ceiling, no_ceiling = _ceiling(texts, name, bootstrap)
    few = {floor.name: _too_few_items(others, [values for _, values in judged], ratings) for floor, others in below}
    differences = {
        (judge.name, floor.name, level): difference
        for (judge, values), (floor, others), level in product(judged, below, LEVELS)
        if level not in few[floor.name] and (difference := against.difference(values, others, level)) is not None
    }
    versus = tuple(
        Versus(judge.name, rival.name, level, spearman, against.difference(values, others, level, "pearson"))
        for ((judge, values), (rival, others)), level in product(combinations(judged, 2), LEVELS)
        if (spearman := against.difference(values, others, level)) is not None
    )
    return Rated(
        name,
        len(texts),
        tuple(_judge_row(column, values, ratings, against, bootstrap) for column, values in judged),
        tuple(
            Row(column.name, "floor", column.signature, against.correlate(values), few=few[column.name])
            for column, values in below
        ),
        ceiling,
        no_ceiling,
        differences,
        versus,
    )


def _too_few_items(floor: Floats, judges: Sequence[Floats], ratings: Floats) -> dict[Level, str]:
    """By level, that a floor has values for too few of the items that the judges, or else people, have.

    Too few are less than half of them, and fewer than 10 where they have 10 or more. At level document an item counts
    in which both sides differ between texts.
    """
    reasons: dict[Level, str] = {}
    for level in LEVELS:
        most = max((_count_items(judge_values, ratings, level) for judge_values in judges or [ratings]), default=0)
        n = _count_items(floor, ratings, level)
        if 0 < n < max(_SHARE * most, _FEWEST if most >= _FEWEST else 0):
            reasons[level] = f"it has values for {n:,} of {most:,} items, too few to hold a judge against"
    return reasons


def _count_items(values: Floats, ratings: Floats, level: Level) -> int:
    """How many items a level has to compare."""
    if level == "document":
        return int((~np.isnan(within(*paired(values, ratings), "spearman"))).sum())
    return int((~np.isnan(values) & ~np.isnan(ratings)).any(axis=1).sum())


def _scorer(column: RatedColumn) -> str:
    """The scorer in a column's signature. With --model heuristic the judge itself is a floor."""
    return column.signature.partition("|")[2].partition("|")[0]


def _judge_row(
    judge: RatedColumn, values: Floats, ratings: Floats, against: CorrelationWithRatings, bootstrap: Bootstrap
) -> Row:
    """A judge with its agreement and calibration, where its scale is people's too."""
    correlation = against.correlate(values)
    scale = judge.scale
    if scale is None or scale.low is None or scale.high is None or not scale.low < scale.high:
        reason = "its column has no scale"
        return Row(judge.name, "judge", judge.signature, correlation, no_calibration=reason)
    low, high = float(np.nanmin(ratings)), float(np.nanmax(ratings))
    if not (scale.low <= low and high <= scale.high):
        reason = f"people rated from {low:g} to {high:g}, the judge on a scale of {scale.low:g} to {scale.high:g}"
        return Row(judge.name, "judge", judge.signature, correlation, no_calibration=reason)
    points = levels(scale)
    votes = np.stack([values, ratings])
    agreed = agree(votes, ("alpha_interval",), bootstrap)
    kappa = Agreement(lacking=dict.fromkeys(_KAPPA, "the scale's labels are words, whose values are not known here"))
    if points:
        at = np.asarray(points)
        places = np.searchsorted((at[1:] + at[:-1]) / 2, votes, "right")  # half way is rounded up
        nearest = at[places.clip(max=len(at) - 1)]
        kappa = agree(np.where(np.isnan(votes), np.nan, nearest), _KAPPA, bootstrap)
    both = Agreement({**agreed.estimates, **kappa.estimates}, {**agreed.lacking, **kappa.lacking})
    curve = calibration(values, ratings, edges(scale), bootstrap)
    reason = "" if curve else "no text has both a value and a rating"
    return Row(judge.name, "judge", judge.signature, correlation, both, curve, reason)


def _ceiling(samples: Sequence[Sample], criterion: str, bootstrap: Bootstrap) -> tuple[Row | None, str]:
    """The agreement of one annotator with the others, or why it is unknown."""
    ratings = {(s.item, s.system): s.ratings[criterion] for s in samples if s.ratings.get(criterion)}
    if not any(sum(vote is not None for vote in each) > 1 for each in ratings.values()):
        shortage = "one rating for each text" if not ratings else "no text with the ratings of two annotators"
        return (
            None,
            f'the data have {shortage}; write each annotator\'s down, as in "human": {{"relevance": [4, 5, 3]}}',
        )
    most = max(map(len, ratings.values()))
    by_place = [{key: each[n] for key, each in ratings.items() if n < len(each)} for n in range(most)]
    votes = np.stack([matrix(samples, rater_votes) for rater_votes in by_place])
    correlation = human_ceiling(votes, bootstrap)
    return Row("annotator", "ceiling", f"{most} annotators", correlation, agree(votes, bootstrap=bootstrap)), ""
