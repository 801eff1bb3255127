"""Correlate judges, baselines and human raters with the mean of people's ratings, criterion by criterion.

`people` compares all of them; `of_run` does so for a run's own report. `baselines_without_judge` are the columns that a
judge has to beat. `out_of_scale` and `unknown_criteria` check the ratings themselves.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import comb
from os import PathLike, fspath
from typing import Literal

import numpy as np

from judge import text
from judge.core import plugins
from judge.core.format import first_names
from judge.core.messages import option
from judge.core.records import Column, Estimate, Failure, Sample, Score
from judge.core.signature import Signature
from judge.core.version import __version__
from judge.data import ledger
from judge.data.ratings import Ratings
from judge.metrics import parallel
from judge.stats.agreement import Agreement, Measure, agree
from judge.stats.alt_test import AltTest, alt_test
from judge.stats.bootstrap import Bootstrap, Floats, one_thread
from judge.stats.calibration import Calibration, calibration, edges, levels
from judge.stats.coefficients import LEVELS, Level, paired, within
from judge.stats.correlation import (
    Correlation,
    CorrelationWithRatings,
    Values,
    criterion,
    rater_correlation,
)
from judge.stats.paired_differences import holm, sign_flip
from judge.stats.raters import Rater, Votes, raters, votes_of
from judge.table import Table, matrix


@dataclass(frozen=True, slots=True)
class FailedJudgments:
    """The `n` of `of` rated texts for which a column has a failure and no score.

    `ratings` and `scored_ratings` are people's means of these texts and of those with a score (None without any). `p`
    tests whether people rate them alike: sign flips over items of Σ (failed − share failed) · (rating − mean), None for
    one item.
    """

    n: int
    of: int
    ratings: float
    scored_ratings: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """The correlation of a judge's column, a baseline or one human rater with people's ratings.

    A judge also has its `agreement` with people's mean (for kappa both are rounded to the scale) and its `calibration`,
    or else `no_calibration` says why not. A rater's `agreement` is that of all raters with one another. `few` says by
    level why a baseline has too few values to be compared with. `failed` is None if no rated text failed. `alt_test` is
    None for all but judges, if it was not asked for, and if the judge's scale is not people's. `directed` is false for a
    baseline without a better direction.
    """

    name: str
    kind: Literal["judge", "baseline", "rater"]
    signature: str
    correlation: Correlation
    agreement: Agreement = field(default_factory=Agreement)
    calibration: Calibration | None = None
    no_calibration: str = ""
    few: Mapping[Level, str] = field(default_factory=dict)
    failed: FailedJudgments | None = None
    alt_test: AltTest | None = None
    directed: bool = True


@dataclass(frozen=True, slots=True)
class Versus:
    """The correlation with people of one judge minus that of another at a level, on the texts of both.

    The intervals of a level hold together with 95%, for all pairs of judges. `pearson` has the p of Williams' test with
    Holm's correction over these pairs, except at level `within-items`, for which there is no such test.
    """

    judge: str
    other: str
    level: Level
    spearman: Estimate
    pearson: Estimate | None


@dataclass(frozen=True, slots=True)
class Rated:
    """One criterion that people rated on `texts` texts.

    `rater` is each rater against the mean of the others, or else `no_rater` says why there is none. `differences` are
    Spearman of a judge minus that of a baseline, by (judge, baseline, level), if defined. `reversed` are those from a
    baseline without a better direction, if it agrees better with people with the reverse sign. `versus` has every pair.
    `excluded` counts the ratings that were used to make a prompt (`judge.data.ledger`). `raters` are the people, if
    asked for.
    """

    criterion: str
    texts: int
    judges: tuple[Row, ...]
    baselines: tuple[Row, ...]
    rater: Row | None
    no_rater: str
    differences: Mapping[tuple[str, str, Level], Estimate]
    versus: tuple[Versus, ...] = ()
    excluded: int = 0
    raters: tuple[Rater, ...] = ()
    reversed: Mapping[tuple[str, str, Level], Estimate] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[Row, ...]:
        return (*self.judges, *self.baselines, *([self.rater] if self.rater else []))


@dataclass(frozen=True, slots=True)
class RatedColumn:
    """A judge's column, which has a `criterion` and a `scale`, or a baseline.

    `failed` are the texts (item, system) for which it has a failure; `scores` has the rows behind a judge's values.
    `directed` says whether higher values are better; if not, neither end is.
    """

    name: str
    signature: Signature
    values: Values
    criterion: str = ""
    scale: Column | None = None
    failed: frozenset[tuple[str, str]] = frozenset()
    scores: Mapping[tuple[str, str], Score] = field(default_factory=dict)
    directed: bool = True


def column_from_table(column: Column, table: Table, name: str) -> RatedColumn:
    """Return a column of a run under this name."""
    return column_from_metric(column, (*table.column_scores(column.name), *table.failures), name)


def column_from_metric(column: Column, rows: Iterable[Score | Failure], name: str) -> RatedColumn:
    """Return a column from its rows among those of several columns."""
    own = [row for row in rows if row.column == column.name]
    scores = {row.key: row for row in own if isinstance(row, Score)}
    values = {key: row.value for key, row in scores.items()}
    failed = frozenset(row.key for row in own if isinstance(row, Failure))
    scale = column if column.kind == "criterion" else None
    return RatedColumn(name, column.signature, values, column.criterion, scale, failed, scores)


_NAMED = 3
_STRAY = 0.1  # share of ratings; if more are outside, people used another scale

Ends = tuple[float, float]


def another_scale(outside: int, n: int) -> bool:
    """Return whether so many of n ratings are outside the scale that people used another one."""
    return outside > max(_NAMED, _STRAY * n)


def votes_on(sample: Sample, name: str) -> list[float]:
    """Return each rater's rating, or else people's mean."""
    return [
        vote for vote in sample.ratings.get(name) or (sample.human.get(name),) if vote is not None
    ]


def on_scale(samples: Sequence[Sample], name: str, low: float, high: float) -> list[Sample]:
    """Return the samples without the ratings of a criterion that are outside its scale.

    No rating of it is left if people used another scale. A text whose only rating goes stays, unrated.
    """
    votes = [vote for sample in samples for vote in votes_on(sample, name)]
    other = another_scale(sum(not low <= vote <= high for vote in votes), len(votes))
    kept = []
    for sample in samples:
        own = votes_on(sample, name)
        good = [vote for vote in own if low <= vote <= high and not other]
        if len(good) < len(own):
            human = {key: mean for key, mean in sample.human.items() if key != name}
            listed = [vote if vote in good else None for vote in sample.ratings.get(name, ())]
            mean = {name: sum(good) / len(good)} if good else {}
            sample = replace(
                sample, human=human | mean, ratings={**sample.ratings, name: tuple(listed)}
            )
        kept.append(sample)
    return kept


def out_of_scale(samples: Sequence[Sample], scales: Mapping[str, Ends]) -> Iterator[str]:
    """Yield a sentence per criterion that has single ratings outside its scale (`low`, `high`), with their rows.

    Each rater's rating counts. If more than a tenth and more than three ratings are outside, people used another scale.
    """
    for name, (low, high) in scales.items():
        rated = [(sample, vote) for sample in samples for vote in votes_on(sample, name)]
        outside = [(sample, vote) for sample, vote in rated if not low <= vote <= high]
        if another_scale(len(outside), len(rated)):
            votes = [vote for _, vote in rated]
            yield (
                f"People rated {name} from {min(votes):g} to {max(votes):g}, and its scale is {low:g} to {high:g}: "
                "correlations hold, but there is no agreement, calibration or list of disagreements."
            )
        elif outside:
            rows = [
                f"{vote:g} at {sample.where or ', '.join(sample.key)}" for sample, vote in outside
            ]
            yield (
                f"Ratings of {name} outside its scale, {low:g} to {high:g}: {first_names(rows, _NAMED)}. "
                "Only correlations count them."
            )


def rated_names(samples: Iterable[Sample]) -> tuple[str, ...]:
    """Return the names of people's ratings, in the order of the texts."""
    return tuple(dict.fromkeys(name for sample in samples for name in sample.human))


def did_you_mean(ratings: Iterable[str], criteria: Collection[str]) -> str:
    """Return ` Did you mean solved for sovled?` if a criterion is nearly called like ratings, or ""."""
    near = {
        name: close[0]
        for name in ratings
        if (close := difflib.get_close_matches(name, criteria, n=1))
    }
    return "".join(f" Did you mean {meant} for {name}?" for name, meant in near.items())


def unknown_criteria(
    ratings: Iterable[str], criteria: Sequence[str], sheet: str | PathLike[str] | None = None
) -> str:
    """Return a message if the names of ratings are those of none of the criteria; "" if there are none, or one is.

    `sheet` is the file of the ratings, if they are not in the data.
    """
    names = list(dict.fromkeys(ratings))
    if not names or not criteria or set(names) & set(criteria):
        return ""
    example = option("map", {f"rating.{criteria[0]}": "COLUMN"})
    fix = (
        f"Rename them in {fspath(sheet)}."
        if sheet
        else f"{example} names the ratings of a criterion."
    )
    return (
        f"People rated {', '.join(names)}, but the run judged {', '.join(criteria)}, so no judge is compared with "
        f"them.{did_you_mean(names, criteria)} {fix}"
    )


# Papers on summaries compare sentence by sentence. `ROUGE-L` is the heading of rougeL, which does not.
_ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-Lsum"}


def baselines_without_judge(
    table: Table, samples: Sequence[Sample], *, measure: bool
) -> list[RatedColumn]:
    """Return scores from elsewhere, the length in words, and ROUGE with references.

    ROUGE is the table's own, if it has it, else it is measured if `measure` is true: the stemmed F, averaged over
    references.
    """
    tokenizers = {sample.output: text.tokenizer_for([sample.output]) for sample in samples}
    lengths = {s.key: float(len(text.words(tokenizers[s.output])(s.output))) for s in samples}
    names = "+".join(sorted({text.signature(name) for name in tokenizers.values()}))
    columns = []
    for column in table.columns:
        if column.signature.is_external:
            external = column_from_table(column, table, column.name)
            if column.better == "lower":
                values = {key: -value for key, value in external.values.items()}
                external = replace(external, name=f"{column.name} reversed", values=values)
            columns.append(external)
    # Whether people prefer long or short texts depends on the data.
    signature = Signature("words", f"tok={names}", f"judge {__version__}")
    columns.append(RatedColumn("length", signature, lengths, directed=False))
    rouge = {column.name: column for column in table.columns if column.name in _ROUGE}
    if rouge:
        columns += [
            column_from_table(column, table, _ROUGE[name]) for name, column in rouge.items()
        ]
    elif measure and any(sample.references for sample in samples):
        scored = parallel.score_in_parallel(
            plugins.load("metrics", "rouge")(types=list(_ROUGE), multi="mean"), samples
        )
        columns += [
            column_from_metric(column, scored.rows, _ROUGE[column.name])
            for column in scored.columns
        ]
    return columns


_FEWEST, _SHARE = 10, 0.5  # items, and share of the judges' items, that a baseline needs
_KAPPA: tuple[Measure, ...] = ("kappa_quadratic", "kappa_linear")


@one_thread
def people(
    table: Table,
    judges: Sequence[RatedColumn],
    bootstrap: Bootstrap,
    *,
    measure: bool = True,
    epsilon: float | None = None,
    sheet: Ratings | None = None,
) -> tuple[Rated, ...]:
    """Compare the judges' columns with people's ratings on this table's texts, for every criterion that people rated.

    With `measure`, baselines that the table lacks are computed. With `epsilon`, judges have the alternative annotator
    test, and the raters a table, to which `sheet`, the file of the ratings, adds repeated ratings. Raises DataError for
    a rating that a judge's criterion has seen.
    """
    ledger.check(table.samples, ledger.seen_by(judge.scale for judge in judges if judge.scale))
    samples = [sample for sample in table.samples if sample.human]
    criteria = rated_names(samples)
    below = baselines_without_judge(table, samples, measure=measure)
    return tuple(
        replace(
            _rated(
                name,
                samples,
                [judge for judge in judges if judge.criterion == name],
                below,
                bootstrap,
                epsilon=epsilon,
            ),
            raters=() if epsilon is None else raters(samples, name, bootstrap, sheet),
            excluded=sum(name in sample.withheld for sample in table.samples),
        )
        for name in criteria
    )


def of_run(table: Table, model: str, seed: int) -> tuple[Rated, ...]:
    """Return the comparison for a run's own report; empty if people rated no criterion that a judge scored.

    ROUGE is a baseline only if the run measured it: a run computes no metric that its user did not choose. `judge
    validate` computes it.
    """
    judges = judges_of(table, model)
    rated = {name for sample in table.samples for name in sample.human}
    if not any(judge.criterion in rated for judge in judges):
        return ()
    return people(table, judges, Bootstrap(seed=seed), measure=False)


def judges_of(table: Table, model: str) -> list[RatedColumn]:
    """Return the judges' columns: a panel's and its judges', or each criterion's under the model's name."""
    columns = [column for column in table.columns if column.kind == "criterion"]
    panels = {column.criterion for column in columns if column.judge}
    judges = []
    for column in columns:
        name = (
            column.judge
            or (f"panel {column.panel}" if criterion(column) in panels else model)
            or criterion(column)
        )
        judges.append(
            replace(
                column_from_table(column, table, name), criterion=criterion(column), scale=column
            )
        )
    return judges


def _rated(
    name: str,
    samples: Sequence[Sample],
    judges: Sequence[RatedColumn],
    baselines: Sequence[RatedColumn],
    bootstrap: Bootstrap,
    *,
    epsilon: float | None,
) -> Rated:
    """Compare every column with the ratings of one criterion, on the texts that have one."""
    texts = [sample for sample in samples if name in sample.human]
    ratings = matrix(texts, {s.key: s.human[name] for s in texts})
    judged = [(column, matrix(texts, column.values)) for column in judges]
    below = [(column, matrix(texts, column.values)) for column in baselines]
    against = CorrelationWithRatings(ratings, bootstrap)
    rows = [
        Row(
            column.name,
            "judge" if place < len(judged) else "baseline",
            str(column.signature),
            against.correlate(values),
            failed=_failed(column, texts, values, ratings),
        )
        for place, (column, values) in enumerate((*judged, *below))
    ]
    votes = votes_of(texts, name)
    rater, no_rater = _rater_row(votes, bootstrap)
    few = {
        baseline.name: _too_few_items(others, [values for _, values in judged], ratings)
        for baseline, others in below
    }
    differences: dict[tuple[str, str, Level], Estimate] = {}
    reversed_differences: dict[tuple[str, str, Level], Estimate] = {}
    for (judge, values), (baseline, others), level in product(judged, below, LEVELS):
        difference = against.difference(values, others, level)
        if level in few[baseline.name] or difference is None:
            continue
        key = judge.name, baseline.name, level
        differences[key] = difference
        reverse = None if baseline.directed else against.difference(values, -others, level)
        if reverse is not None and reverse.value < difference.value:
            reversed_differences[key] = reverse
    return Rated(
        name,
        len(texts),
        tuple(
            _compared(column, row, values, texts, bootstrap, epsilon=epsilon)
            for (column, values), row in zip(judged, rows, strict=False)
        ),
        tuple(
            replace(row, few=few[row.name], directed=column.directed)
            for (column, _), row in zip(below, rows[len(judged) :], strict=True)
        ),
        rater,
        no_rater,
        differences,
        _compare_judges(judged, rows[: len(judged)], against),
        reversed=reversed_differences,
    )


def _compare_judges(
    judged: Sequence[tuple[RatedColumn, Floats]],
    rows: Sequence[Row],
    against: CorrelationWithRatings,
) -> tuple[Versus, ...]:
    """Compare every two judges at every level.

    Reports compare the judge that looks best with each other one, which selects from all pairs. So the intervals and
    tests of a level are corrected for all pairs of the judges that have a coefficient there.
    """
    compared: list[Versus] = []
    for level in LEVELS:
        known = sum((level, "spearman") in row.correlation.estimates for row in rows)
        n_pairs = comb(known, 2)
        of_level = []
        for (judge, values), (other, others) in combinations(judged, 2):
            spearman = against.difference(values, others, level, n_intervals=n_pairs)
            if spearman is not None:
                pearson = against.difference(values, others, level, "pearson", n_pairs)
                of_level.append(Versus(judge.name, other.name, level, spearman, pearson))
        compared += _holm_of_williams(of_level)
    return tuple(compared)


def _holm_of_williams(compared: Sequence[Versus]) -> list[Versus]:
    """Correct the p of Williams' tests for their number."""
    adjusted = holm([each.pearson.p if each.pearson else None for each in compared])
    corrected = []
    for each, p in zip(compared, adjusted, strict=True):
        if each.pearson is not None and p is not None and len(compared) > 1:
            test = f"{each.pearson.test}, Holm's correction"
            each = replace(each, pearson=replace(each.pearson, p=p, test=test))
        corrected.append(each)
    return corrected


def _failed(
    column: RatedColumn, texts: Sequence[Sample], values: Floats, ratings: Floats
) -> FailedJudgments | None:
    """Compare people's ratings of the failed and of the scored texts."""
    missing = np.isnan(values) & ~np.isnan(matrix(texts, dict.fromkeys(column.failed, 0.0)))
    if not missing.any():
        return None
    scored = ~np.isnan(values)
    judged, p = missing | scored, np.nan
    if scored.any():
        away = np.where(
            judged, (missing - missing[judged].mean()) * (ratings - ratings[judged].mean()), 0.0
        )
        p = float(
            sign_flip(np.where(judged.any(axis=1), away.sum(axis=1), np.nan)[None], seed=0).p[0]
        )
    return FailedJudgments(
        int(missing.sum()),
        int(judged.sum()),
        float(ratings[missing].mean()),
        float(ratings[scored].mean()) if scored.any() else None,
        None if np.isnan(p) else p,
    )


def _too_few_items(baseline: Floats, judges: Sequence[Floats], ratings: Floats) -> dict[Level, str]:
    """Return by level why a baseline has values for too few of the items that the judges (or else people) have.

    Too few are less than half of them, or fewer than 10 if they have 10 or more. At level `within-items` only items in which
    both sides differ between texts count.
    """
    reasons: dict[Level, str] = {}
    for level in LEVELS:
        most = max(
            (_count_items(judge_values, ratings, level) for judge_values in judges or [ratings]),
            default=0,
        )
        n = _count_items(baseline, ratings, level)
        if 0 < n < max(_SHARE * most, _FEWEST if most >= _FEWEST else 0):
            reasons[level] = f"it has values for {n:,} of {most:,} items, too few for a comparison"
    return reasons


def _count_items(values: Floats, ratings: Floats, level: Level) -> int:
    """Return the number of items that can be compared at this level."""
    if level == "within-items":
        return int((~np.isnan(within(*paired(values, ratings), "spearman"))).sum())
    return int((~np.isnan(values) & ~np.isnan(ratings)).any(axis=1).sum())


def _compared(
    judge: RatedColumn,
    row: Row,
    values: Floats,
    texts: Sequence[Sample],
    bootstrap: Bootstrap,
    *,
    epsilon: float | None,
) -> Row:
    """Add what needs ratings on the judge's scale."""
    name, scale = judge.criterion, judge.scale
    if scale is None or scale.low is None or scale.high is None or not scale.low < scale.high:
        return replace(row, no_calibration="its column has no scale")
    kept = on_scale(texts, name, scale.low, scale.high)
    ratings = matrix(
        texts, {sample.key: sample.human[name] for sample in kept if name in sample.human}
    )
    if np.isnan(ratings).all():
        means = [sample.human[name] for sample in texts]
        people = f"people rated from {min(means):g} to {max(means):g}"
        return replace(
            row, no_calibration=f"{people}, the judge on a scale of {scale.low:g} to {scale.high:g}"
        )
    both, points = np.stack([values, ratings]), levels(scale)
    agreed = agree(both, ("alpha_interval",), bootstrap)
    kappa = agree(_nearest(both, points), _KAPPA, bootstrap) if points else Agreement()
    agreement = Agreement(
        {**agreed.estimates, **kappa.estimates}, {**agreed.lacking, **kappa.lacking}
    )
    curve = calibration(values, ratings, edges(scale), bootstrap)
    reason = "" if curve else "no text has both a value and a rating"
    row = replace(row, agreement=agreement, calibration=curve, no_calibration=reason)
    if epsilon is None or reason:
        return row
    votes = votes_of(kept, name)
    # If people use the labels only, an expected score such as 4.9 would lose every tie.
    if points and np.isin(votes.values[~np.isnan(votes.values)], points).all():
        values = _nearest(values, points)
    return replace(row, alt_test=alt_test(values, votes.values, votes.names, epsilon))


def _nearest(values: Floats, points: Sequence[float]) -> Floats:
    """Round values to the nearest of these ascending points; half way is rounded up."""
    at = np.asarray(points)
    places = np.searchsorted((at[1:] + at[:-1]) / 2, values, "right")
    return np.where(np.isnan(values), np.nan, at[places.clip(max=len(at) - 1)])


def _rater_row(votes: Votes, bootstrap: Bootstrap) -> tuple[Row | None, str]:
    """Return the correlation of one rater with the others, or why it is unknown."""
    if not ((~np.isnan(votes.values)).sum(axis=0) > 1).any():
        shortage = "no text with ratings by two raters" if votes.names else "one rating per text"
        return (
            None,
            f'the data have {shortage}; write every rating, as in "human": {{"relevance": [4, 5, 3]}}',
        )
    correlation = rater_correlation(votes.values, bootstrap)
    return Row(
        "rater",
        "rater",
        f"{len(votes.names)} raters",
        correlation,
        agree(votes.values, bootstrap=bootstrap),
    ), ""
