"""Correlate judges, baselines and human raters with the mean of people's ratings.

Each criterion is compared by itself. `people` compares all of them; `of_run` does so for a run's
own report. `unknown_criteria` checks the names of the ratings.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import comb
from os import PathLike, fspath
from typing import Literal

import numpy as np

from judge.core.messages import option
from judge.core.records import Estimate, Sample
from judge.data import ledger
from judge.data.ratings import Ratings
from judge.stats.agreement import Agreement, Measure, agree
from judge.stats.alt_test import AltTest, alt_test
from judge.stats.bootstrap import Bools, Bootstrap, Floats, all_known, one_thread
from judge.stats.calibration_curve import Calibration, calibration, edges, levels
from judge.stats.coefficients import LEVELS, Level, paired, within
from judge.stats.correlation import (
    Correlation,
    CorrelationWithRatings,
    rater_correlation,
    usual_level_of,
)
from judge.stats.paired_differences import holm, sign_flip
from judge.stats.pass_agreement import (
    PassAgreement,
    pass_agreement,
    people_passes,
    share_over_items,
)
from judge.stats.rated_columns import (
    RatedColumn,
    baselines_without_judge,
    judges_of,
    same_direction,
)
from judge.stats.raters import Rater, Votes, raters, votes_of
from judge.stats.rating_scales import on_scale, votes_on
from judge.stats.system_ratings import (
    RatedAbove,
    SystemRating,
    rated_above,
    system_ratings,
)
from judge.table import Table, matrix

_FEWEST = 10  # items with values that a baseline needs, if the judges have as many
_SHARE = 0.5  # of the judges' items, for which a baseline needs values
_KAPPA: tuple[Measure, ...] = ("kappa_quadratic", "kappa_linear")


@dataclass(frozen=True, slots=True)
class FailedJudgments:
    """The `n` of `of` rated texts for which a column has a failure and no score.

    `ratings` and `scored_ratings` are people's means of these texts and of those with a score (None
    without any). `p` tests whether people rate them alike: sign flips over items of Σ (failed −
    share failed) · (rating − mean), None for one item.
    """

    n: int
    of: int
    ratings: float
    scored_ratings: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """The correlation of a judge's column, a baseline or one human rater with people's ratings.

    Only judges have the following:

    - `agreement` with people's mean; for kappa both are rounded to the scale, unless halfway.
    - `calibration`, or `no_calibration` with the reason why there is none.
    - `alt_test`, unless it was not requested or the judge's scale is not people's.
    - `passes`, which texts pass, if the column has `pass_at`; `no_passes` says why people's ratings
      do not allow that comparison.
    - `exact`, the share of texts with the same label.

    For a rater, `agreement` is that of all raters with one another. For a baseline, `few` says by
    level why it has too few values, and `directed` is false if it has no better direction. `failed`
    is None if no rated text failed.
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
    passes: PassAgreement | None = None
    no_passes: str = ""
    exact: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Versus:
    """The correlation with people of one judge minus that of another at a level.

    Texts count if they have values of both. The intervals of a level have a joint confidence of 95%
    over all pairs of judges. `pearson` has the p of Williams' test with Holm's correction over
    these pairs between systems, and over all texts if each item has one.
    """

    judge: str
    other: str
    level: Level
    spearman: Estimate
    pearson: Estimate | None


@dataclass(frozen=True, slots=True)
class Rated:
    """One criterion that people rated on `texts` texts.

    - `rater`: each rater against the mean of the others, or `no_rater` says why there is none.
    - `differences`: Spearman of a judge minus that of a baseline, by (judge, baseline, level), if
      defined. The intervals of a judge at a level have a joint confidence of 95%, unless all of
      them lie above 0 without that correction.
    - `reversed`: the same for a baseline without a better direction, if it agrees better with
      people with the reverse sign.
    - `versus`: every pair of judges.
    - `behind`: Spearman of the column that agrees best minus that of each other column, by (other,
      level). The intervals of a level have a joint confidence of 95%. Empty unless all columns are
      compared.
    - `excluded`: the number of ratings that were used to make a prompt (`judge.data.ledger`).
    - `raters`: the people, if requested.
    - `usual_level`: the level that reports show unless another one is requested. With fewer than
      three rated texts in most items it is `all-texts`, because a correlation of two is 1 or −1. A
      text counts if every judge has scored it.
    - `systems`: the means by people and by the judges, if people rated texts of every system.
    - `rated_above`: the judges whose best system people rate significantly below another one.
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
    behind: Mapping[tuple[str, Level], Estimate] = field(default_factory=dict)
    usual_level: Level = "within-items"
    systems: tuple[SystemRating, ...] = ()
    rated_above: tuple[RatedAbove, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows: judges, baselines, and the raters' if there is one."""
        compared = (*self.judges, *self.baselines)
        return (*compared, self.rater) if self.rater else compared


def rated_names(samples: Iterable[Sample]) -> tuple[str, ...]:
    """Return the names of people's ratings, in the order of the texts."""
    names = dict.fromkeys(
        rating_name for sample in samples for rating_name in sample.human
    )
    return tuple(names)


def did_you_mean(ratings: Iterable[str], criteria: Collection[str]) -> str:
    """Return a question for each name of ratings that is nearly the name of a criterion.

    For example ` Did you mean solved for sovled?`; "" if there is no such name.
    """
    questions: list[str] = []
    for rating_name in ratings:
        near = difflib.get_close_matches(rating_name, criteria, n=1)
        if near:
            questions.append(f" Did you mean {near[0]} for {rating_name}?")
    return "".join(questions)


def unknown_criteria(
    ratings: Iterable[str],
    criteria: Sequence[str],
    sheet: str | PathLike[str] | None = None,
) -> str:
    """Return a message if no criterion has the name of one of the ratings.

    Return "" if there are no ratings, or if one belongs to a criterion. `sheet` is the file of the
    ratings, if they are not in the data.
    """
    names = list(dict.fromkeys(ratings))
    if not names or not criteria or set(names) & set(criteria):
        return ""
    if sheet:
        fix = f"Rename them in {fspath(sheet)}."
    else:
        example = option("map", {f"rating.{criteria[0]}": "COLUMN"})
        fix = f"{example} names the ratings of a criterion."
    rated = ", ".join(names)
    judged = ", ".join(criteria)
    suggestion = did_you_mean(names, criteria)
    return (
        f"People rated {rated}, but the run judged {judged}, so no judge is compared with them."
        f"{suggestion} {fix}"
    )


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
    """Compare the judges' columns with people's ratings on this table's texts.

    There is a result for every criterion that people rated. With `measure`, also compute ROUGE if
    the table has no metric, and `Rated.behind`. With `epsilon`, also compute the judges'
    alternative annotator test and `Rated.raters`; `sheet`, the file of the ratings, has the raters'
    repeated ratings. Raises DataError for a rating that a judge's criterion has seen.
    """
    scales = [judge.scale for judge in judges if judge.scale]
    ledger.check(table.samples, ledger.seen_by(scales))
    samples = [sample for sample in table.samples if sample.human]
    baselines = baselines_without_judge(table, samples, measure=measure)
    compared: list[Rated] = []
    for rating_name in rated_names(samples):
        judges_of_criterion = [
            judge for judge in judges if judge.criterion == rating_name
        ]
        rated = _rated(
            rating_name,
            samples,
            judges_of_criterion,
            same_direction(baselines, judges_of_criterion),
            bootstrap,
            systems=table.systems,
            epsilon=epsilon,
            compare_all=measure,
        )
        people_compared: tuple[Rater, ...] = ()
        if epsilon is not None:
            level = rated.usual_level
            people_compared = raters(
                samples, rating_name, bootstrap, sheet, level=level
            )
        excluded = sum(rating_name in sample.withheld for sample in table.samples)
        compared.append(replace(rated, raters=people_compared, excluded=excluded))
    return tuple(compared)


def of_run(table: Table, model: str, seed: int) -> tuple[Rated, ...]:
    """Return the comparison for a run's own report.

    It is empty if people rated no criterion that a judge scored. The baselines are length and the
    run's metrics: a run computes no metric that its user did not choose.
    """
    judges = judges_of(table, model)
    rated = {rating_name for sample in table.samples for rating_name in sample.human}
    if not any(judge.criterion in rated for judge in judges):
        return ()
    return people(table, judges, Bootstrap(seed=seed), measure=False)


def _rated(
    rating_name: str,
    samples: Sequence[Sample],
    judges: Sequence[RatedColumn],
    baselines: Sequence[RatedColumn],
    bootstrap: Bootstrap,
    *,
    systems: Sequence[str],
    epsilon: float | None,
    compare_all: bool,
) -> Rated:
    """Compare every column with the ratings of one criterion, on the texts that have one."""
    rated = _RatedTexts.of(samples, rating_name, bootstrap)
    texts = rated.samples
    judged = rated.with_values(judges)
    measured = rated.with_values(baselines)
    judge_rows: list[Row] = []
    for column, values in judged:
        row = rated.row(column, "judge", values)
        row = _with_agreement(column, row, values, texts, bootstrap, epsilon=epsilon)
        judge_rows.append(row)
    judge_values = [values for _, values in judged]
    baseline_rows = _baseline_rows(measured, judge_values, rated)

    all_rows = [*judge_rows, *baseline_rows]
    n_others = _numbers_of_others(all_rows)
    differences = _differences(judged, measured, baseline_rows, rated.against, n_others)
    behind: dict[tuple[str, Level], Estimate] = {}
    if compare_all:
        columns = [*judged, *measured]
        behind = _behind_the_best(columns, all_rows, rated.against, n_others)
    versus = _compare_judges(judged, judge_rows, rated.against)

    rater, no_rater = _rater_row(votes_of(texts, rating_name), bootstrap)
    usual_level = usual_level_of([judge.values for judge in judges], texts)
    system_means = system_ratings(texts, rating_name, judges, systems)
    lower_is_better = any(
        judge.scale and judge.scale.better == "lower" for judge in judges
    )
    above = rated_above(
        texts, rating_name, judges, system_means, lower_is_better=lower_is_better
    )
    return Rated(
        rating_name,
        len(texts),
        judges=tuple(judge_rows),
        baselines=tuple(baseline_rows),
        rater=rater,
        no_rater=no_rater,
        differences=differences.plain,
        versus=versus,
        reversed=differences.reversed,
        behind=behind,
        usual_level=usual_level,
        systems=system_means,
        rated_above=above,
    )


_ColumnValues = tuple[RatedColumn, Floats]
"""A column and its values of the rated texts, items × systems."""


@dataclass(frozen=True, slots=True)
class _RatedTexts:
    """The texts with a rating of one criterion, and people's means, items × systems."""

    samples: Sequence[Sample]
    ratings: Floats
    against: CorrelationWithRatings

    @classmethod
    def of(
        cls, samples: Sequence[Sample], rating_name: str, bootstrap: Bootstrap
    ) -> _RatedTexts:
        """Return the samples that have a rating of this name."""
        texts = [sample for sample in samples if rating_name in sample.human]
        rating_by_text = {sample.key: sample.human[rating_name] for sample in texts}
        ratings = matrix(texts, rating_by_text)
        return cls(texts, ratings, CorrelationWithRatings(ratings, bootstrap))

    def with_values(self, columns: Sequence[RatedColumn]) -> list[_ColumnValues]:
        """Return the columns, each with its values of these texts."""
        return [(column, matrix(self.samples, column.values)) for column in columns]

    def row(
        self, column: RatedColumn, kind: Literal["judge", "baseline"], values: Floats
    ) -> Row:
        """Correlate one column with the ratings."""
        return Row(
            name=column.name,
            kind=kind,
            signature=str(column.signature),
            correlation=self.against.correlate(values),
            failed=_failed(column, values, self),
        )


def _baseline_rows(
    measured: Sequence[_ColumnValues],
    judge_values: Sequence[Floats],
    rated: _RatedTexts,
) -> list[Row]:
    """Correlate the baselines with the ratings, and note which have too few values."""
    rows: list[Row] = []
    for column, values in measured:
        row = rated.row(column, "baseline", values)
        few = _too_few_items(values, judge_values, rated.ratings)
        rows.append(replace(row, few=few, directed=column.directed))
    return rows


def _numbers_of_others(rows: Sequence[Row]) -> dict[Level, int]:
    """Return by level with how many columns a column is compared, at least 1."""
    n_others: dict[Level, int] = {}
    for level in LEVELS:
        n_comparable = len(_comparable(rows, level))
        n_others[level] = max(1, n_comparable - 1)
    return n_others


@dataclass(frozen=True, slots=True)
class _Differences:
    """Judges minus baselines by (judge, baseline, level), and minus the reverse of a baseline."""

    plain: dict[tuple[str, str, Level], Estimate]
    reversed: dict[tuple[str, str, Level], Estimate]

    @property
    def are_all_above_zero(self) -> bool:
        """Return whether the judge beats every baseline, each in its better direction."""
        # The reverse of a baseline takes the place of the baseline.
        estimates = {**self.plain, **self.reversed}
        for estimate in estimates.values():
            # As in the report: an interval that is printed as [0.000, 0.147] holds 0.
            if estimate.low is None or round(estimate.low, 3) <= 0:
                return False
        return bool(estimates)


def _comparable(rows: Sequence[Row], level: Level) -> dict[str, float]:
    """Return Spearman of the columns that have enough values at a level, by name."""
    correlations: dict[str, float] = {}
    for row in rows:
        estimate = row.correlation.estimates.get((level, "spearman"))
        if estimate is not None and level not in row.few:
            correlations[row.name] = estimate.value
    return correlations


def _differences(
    judged: Sequence[_ColumnValues],
    measured: Sequence[_ColumnValues],
    baseline_rows: Sequence[Row],
    against: CorrelationWithRatings,
    n_others: Mapping[Level, int],
) -> _Differences:
    """Compare every judge with every baseline that has enough values, at every level.

    "Better than every baseline" needs no correction, because all differences must hold (an
    intersection-union test). Otherwise the intervals are corrected for the number of columns: a
    sentence may then name single baselines.
    """
    few_by_baseline = {row.name: row.few for row in baseline_rows}
    differences = _Differences({}, {})
    for judge, level in product(judged, LEVELS):
        baselines: list[_ColumnValues] = []
        for column, values in measured:
            if level not in few_by_baseline[column.name]:
                baselines.append((column, values))
        of_judge = _differences_at_level(judge, baselines, level, against, None)
        if not of_judge.are_all_above_zero:
            n_intervals = n_others[level]
            of_judge = _differences_at_level(
                judge, baselines, level, against, n_intervals
            )
        differences.plain.update(of_judge.plain)
        differences.reversed.update(of_judge.reversed)
    return differences


def _differences_at_level(
    judge: _ColumnValues,
    baselines: Sequence[_ColumnValues],
    level: Level,
    against: CorrelationWithRatings,
    n_intervals: int | None,
) -> _Differences:
    """Compare a judge with these baselines at one level."""
    differences = _Differences({}, {})
    judge_column, values = judge
    for baseline, baseline_values in baselines:
        difference = against.difference(
            values, baseline_values, level, n_intervals=n_intervals
        )
        if difference is None:
            continue
        key = (judge_column.name, baseline.name, level)
        differences.plain[key] = difference
        if baseline.directed:
            continue
        # A baseline without a better direction counts in the one that suits it.
        reverse = against.difference(
            values, -baseline_values, level, n_intervals=n_intervals
        )
        if reverse is not None and reverse.value < difference.value:
            differences.reversed[key] = reverse
    return differences


def _behind_the_best(
    columns: Sequence[_ColumnValues],
    rows: Sequence[Row],
    against: CorrelationWithRatings,
    n_others: Mapping[Level, int],
) -> dict[tuple[str, Level], Estimate]:
    """Compare the column that agrees best with each other one, at every level."""
    values_by_name = {column.name: values for column, values in columns}
    behind: dict[tuple[str, Level], Estimate] = {}
    for level in LEVELS:
        correlations = _comparable(rows, level)
        if not correlations:
            continue
        # The best is selected from all of them: the intervals have to hold together.
        n_intervals = n_others[level]
        best = max(correlations, key=correlations.__getitem__)
        best_values = values_by_name[best]
        for column_name in correlations:
            if column_name == best:
                continue
            values = values_by_name[column_name]
            difference = against.difference(
                best_values, values, level, n_intervals=n_intervals
            )
            if difference is not None:
                behind[column_name, level] = difference
    return behind


def _compare_judges(
    judged: Sequence[_ColumnValues],
    rows: Sequence[Row],
    against: CorrelationWithRatings,
) -> tuple[Versus, ...]:
    """Compare every two judges at every level.

    Reports compare the judge that looks best with each other one, which selects from all pairs. So
    the intervals and tests of a level are corrected for all pairs of the judges that have a
    coefficient there.
    """
    compared: list[Versus] = []
    for level in LEVELS:
        n_known = sum((level, "spearman") in row.correlation.estimates for row in rows)
        n_pairs = comb(n_known, 2)
        at_level: list[Versus] = []
        for (judge, values), (other_judge, other_values) in combinations(judged, 2):
            spearman = against.difference(
                values, other_values, level, n_intervals=n_pairs
            )
            if spearman is not None:
                pearson = against.difference(
                    values, other_values, level, "pearson", n_pairs
                )
                versus = Versus(judge.name, other_judge.name, level, spearman, pearson)
                at_level.append(versus)
        compared += _holm_of_williams(at_level)
    return tuple(compared)


def _holm_of_williams(compared: Sequence[Versus]) -> list[Versus]:
    """Correct the p of Williams' tests for their number."""
    p_values = [versus.pearson.p if versus.pearson else None for versus in compared]
    adjusted = holm(p_values)
    corrected: list[Versus] = []
    for versus, p_value in zip(compared, adjusted, strict=True):
        pearson = versus.pearson
        if pearson is not None and p_value is not None and len(compared) > 1:
            test = f"{pearson.test}, Holm's correction"
            versus = replace(versus, pearson=replace(pearson, p=p_value, test=test))
        corrected.append(versus)
    return corrected


def _failed(
    column: RatedColumn, values: Floats, rated: _RatedTexts
) -> FailedJudgments | None:
    """Compare people's ratings of the failed and of the scored texts."""
    ratings = rated.ratings
    failures = matrix(rated.samples, dict.fromkeys(column.failed, 0.0))
    has_failure = ~np.isnan(failures)
    scored = ~np.isnan(values)
    failed = has_failure & ~scored
    if not failed.any():
        return None
    judged = failed | scored
    p_value: float | None = None
    scored_ratings: float | None = None
    if scored.any():
        p_value = _p_of_failures(failed, judged, ratings)
        scored_ratings = float(ratings[scored].mean())
    return FailedJudgments(
        n=int(failed.sum()),
        of=int(judged.sum()),
        ratings=float(ratings[failed].mean()),
        scored_ratings=scored_ratings,
        p=p_value,
    )


def _p_of_failures(failed: Bools, judged: Bools, ratings: Floats) -> float | None:
    """Test whether people rate failed and scored texts alike; None for one item.

    Sign flips over items of Σ (failed − share failed) · (rating − mean).
    """
    failed_deviation = failed - failed[judged].mean()
    rating_deviation = ratings - ratings[judged].mean()
    products = np.where(judged, failed_deviation * rating_deviation, 0.0)
    # The texts of an item are not independent, so an item's sum is flipped as one.
    sums = products.sum(axis=1)
    by_item = np.where(judged.any(axis=1), sums, np.nan)
    p_value = float(sign_flip(by_item[None], seed=0).p[0])
    return None if np.isnan(p_value) else p_value


def _too_few_items(
    baseline: Floats, judges: Sequence[Floats], ratings: Floats
) -> dict[Level, str]:
    """Return by level why a baseline has values for too few items.

    They are compared with the items that the judges (or else people) have. Too few are less than
    half of them, or fewer than 10 if they have 10 or more. At level `within-items` only items in
    which both sides differ between texts count.
    """
    reasons: dict[Level, str] = {}
    sides = judges or [ratings]
    for level in LEVELS:
        most = max(_count_items(side, ratings, level) for side in sides)
        needed = _SHARE * most
        if most >= _FEWEST:
            needed = max(needed, _FEWEST)
        number = _count_items(baseline, ratings, level)
        if 0 < number < needed:
            reasons[level] = (
                f"it has values for {number:,} of {most:,} items, too few for a comparison"
            )
    return reasons


def _count_items(values: Floats, ratings: Floats, level: Level) -> int:
    """Return the number of items that can be compared at this level."""
    if level == "within-items":
        by_item = within(*paired(values, ratings), "spearman")
        return int((~np.isnan(by_item)).sum())
    has_both = all_known(values, ratings)
    return int(has_both.any(axis=1).sum())


def _with_agreement(
    judge: RatedColumn,
    row: Row,
    values: Floats,
    texts: Sequence[Sample],
    bootstrap: Bootstrap,
    *,
    epsilon: float | None,
) -> Row:
    """Add to a judge's row the comparisons that need ratings on the judge's scale.

    They are the passing texts, agreement, calibration, the share of equal labels and, with
    `epsilon`, the alternative annotator test.
    """
    rating_name = judge.criterion
    scale = judge.scale
    row = _with_passes(judge, row, texts, bootstrap)
    no_scale = "its column has no scale"
    if scale is None or scale.low is None or scale.high is None:
        return replace(row, no_calibration=no_scale)
    if scale.low >= scale.high:
        return replace(row, no_calibration=no_scale)
    usable = on_scale(texts, rating_name, scale.low, scale.high)
    rated = [sample for sample in usable if rating_name in sample.human]
    rating_by_text = {sample.key: sample.human[rating_name] for sample in rated}
    ratings = matrix(texts, rating_by_text)
    if np.isnan(ratings).all():
        all_votes = [vote for sample in texts for vote in votes_on(sample, rating_name)]
        people_rated = f"people rated from {min(all_votes):g} to {max(all_votes):g}"
        judge_scale = f"the judge on a scale of {scale.low:g} to {scale.high:g}"
        return replace(row, no_calibration=f"{people_rated}, {judge_scale}")
    points = levels(scale)
    agreement = _agreement(values, ratings, points, bootstrap)
    exact = _exact_agreement(values, ratings, points) if points else None
    row = replace(row, agreement=agreement, exact=exact)
    curve = calibration(values, ratings, edges(scale), bootstrap)
    if not curve:
        return replace(row, no_calibration="no text has both a value and a rating")
    row = replace(row, calibration=curve)
    if epsilon is None:
        return row
    votes = votes_of(usable, rating_name)
    levels_or_ends = points or (scale.low, scale.high)
    return replace(row, alt_test=_alt_test(values, votes, levels_or_ends, epsilon))


def _alt_test(
    values: Floats, votes: Votes, points: Sequence[float], epsilon: float
) -> AltTest:
    """Return the alternative annotator test of a judge's values.

    `points` are the values of the scale's labels, or its ends if it has none.
    """
    known_votes = votes.values[~np.isnan(votes.values)]
    # If people use the points only, an expected score such as 4.9 would lose every tie.
    if np.isin(known_votes, points).all():
        values = _nearest(values, points)
    return alt_test(values, votes.values, votes.names, epsilon)


def _with_passes(
    judge: RatedColumn,
    row: Row,
    texts: Sequence[Sample],
    bootstrap: Bootstrap,
) -> Row:
    """Add which texts pass by the judge and by people, if its column has `pass_at`."""
    column = judge.scale
    if column is None or column.pass_at is None:
        return row
    people = people_passes(texts, judge.criterion, column)
    if people.reason:
        return replace(row, no_passes=people.reason)
    passes = pass_agreement(texts, judge.values, people, column, bootstrap)
    return replace(row, passes=passes)


def _agreement(
    values: Floats,
    ratings: Floats,
    points: Sequence[float],
    bootstrap: Bootstrap,
) -> Agreement:
    """Return alpha of a judge and people's mean, and kappa if the scale has labels (`points`).

    A mean halfway between two labels, which two raters often have, stays there: rounded up, a judge
    that gives lower scores than people would have less agreement than one that gives higher ones.
    """
    both = np.stack([values, ratings])
    alpha = agree(both, ("alpha_interval",), bootstrap)
    if not points:
        without_kappa = dict.fromkeys(_KAPPA, "the scores are not on a few levels")
        return Agreement(alpha.estimates, {**alpha.lacking, **without_kappa})
    rounded_up = _nearest(both, points)
    rounded_down = _nearest(both, points, halfway_up=False)
    on_label_or_halfway = (rounded_up + rounded_down) / 2
    kappa = agree(on_label_or_halfway, _KAPPA, bootstrap)
    estimates = {**alpha.estimates, **kappa.estimates}
    lacking = {**alpha.lacking, **kappa.lacking}
    return Agreement(estimates, lacking)


def _exact_agreement(
    values: Floats, ratings: Floats, points: Sequence[float]
) -> Estimate | None:
    """Return the share of texts with the same nearest point.

    A mean halfway between two points has two nearest ones, and each counts half. The interval is
    that of `share_over_items`.
    """
    has_both = all_known(values, ratings)
    values_up = _nearest(values, points)
    values_down = _nearest(values, points, halfway_up=False)
    ratings_up = _nearest(ratings, points)
    ratings_down = _nearest(ratings, points, halfway_up=False)
    same_if_up = (values_up == ratings_up).astype(np.float64)
    same_if_down = (values_down == ratings_down).astype(np.float64)
    same = has_both * (same_if_up + same_if_down) / 2
    return share_over_items("exact agreement", same, has_both)


def _nearest(
    values: Floats, points: Sequence[float], *, halfway_up: bool = True
) -> Floats:
    """Round values to the nearest of these ascending points, and halfway ones up or down."""
    levels_of_scale = np.asarray(points)
    middles = (levels_of_scale[1:] + levels_of_scale[:-1]) / 2
    position = np.searchsorted(middles, values, side="right" if halfway_up else "left")
    # NaN sorts after every middle.
    nearest = position.clip(max=len(points) - 1)
    return np.where(np.isnan(values), np.nan, levels_of_scale[nearest])


def _rater_row(votes: Votes, bootstrap: Bootstrap) -> tuple[Row | None, str]:
    """Return the correlation of one rater with the others, or why it is unknown."""
    ratings_of_text = (~np.isnan(votes.values)).sum(axis=0)
    if not (ratings_of_text > 1).any():
        shortage = "one rating per text"
        if votes.names:
            shortage = "no text with ratings by two raters"
        example = '"human": {"relevance": [4, 5, 3]}'
        return None, f"the data have {shortage}; write every rating, as in {example}"
    correlation = rater_correlation(votes.values, bootstrap)
    agreement = agree(votes.values, bootstrap=bootstrap)
    signature = f"{len(votes.names)} raters"
    return Row(
        name="rater",
        kind="rater",
        signature=signature,
        correlation=correlation,
        agreement=agreement,
    ), ""
