"""The judges of a run, its floors and its annotators against the mean of people's ratings, criterion by criterion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product

import numpy as np

from judge.core.records import Column, Sample
from judge.stats.annotator_agreement import Agreement, Measure, agree
from judge.stats.baselines_without_judge import floors
from judge.stats.bootstrap import Bootstrap
from judge.stats.calibration import calibration, edges, levels
from judge.stats.coefficients import paired, within
from judge.stats.correlation import LEVELS, Against, Level, ceiling, matrix
from judge.stats.rated_columns import Held, taken
from judge.stats.resampling import Floats
from judge.stats.validity import Rated, Row, Versus
from judge.table import Table

_MANY = 5_000  # texts
_FEWEST, _SHARE = 10, 0.5  # items, and the share of the judges', below which a floor is none
_KAPPA: tuple[Measure, ...] = ("kappa_quadratic", "kappa_linear")


def people(table: Table, judges: Sequence[Held], bootstrap: Bootstrap, *, measure: bool = True) -> tuple[Rated, ...]:
    """Every criterion that people rated, with the judges' columns of it, on the texts of this table.

    Floors that the table lacks are measured, where that is wanted.
    """
    samples = [sample for sample in table.samples if sample.human]
    criteria = tuple(dict.fromkeys(name for sample in samples for name in sample.human))
    below = floors(table, samples, criteria, measure=measure)
    return tuple(
        _rated(name, samples, [one for one in judges if one.criterion == name], below, bootstrap) for name in criteria
    )


def of_run(table: Table, model: str, seed: int) -> tuple[Rated, ...]:
    """What a run's own page shows: nothing where no criterion that a judge scored was rated.

    Of very many texts with the floors that the run has measured, and no others: a run is not to wait for them.
    """
    found = judges_of(table, model)
    rated = {name for sample in table.samples for name in sample.human}
    if not any(one.criterion in rated for one in found):
        return ()
    return people(table, found, Bootstrap(seed=seed), measure=len(table.samples) <= _MANY)


def judges_of(table: Table, model: str) -> list[Held]:
    """The judges' columns: of a panel its mean and its judges', else each criterion's, which has the model's name."""
    columns = [column for column in table.columns if column.kind == "criterion"]
    panels = {column.criterion for column in columns if column.judge}
    return [_judge(column, table, "panel mean" if criterion(column) in panels else model) for column in columns]


def _judge(column: Column, table: Table, alone: str) -> Held:
    found = taken(column, table, column.judge or alone or criterion(column))
    return Held(found.name, found.signature, found.values, criterion(column), column)


def criterion(column: Column) -> str:
    """The name of a column's criterion."""
    return column.criterion or column.name


def _rated(
    name: str, samples: Sequence[Sample], judges: Sequence[Held], floors: Sequence[Held], bootstrap: Bootstrap
) -> Rated:
    """One criterion: every column on the texts that were rated on it."""
    texts = [sample for sample in samples if name in sample.human]
    ratings = matrix(texts, {(s.item, s.system): s.human[name] for s in texts})
    against = Against(ratings, bootstrap)
    judged = [(one, matrix(texts, one.values)) for one in judges]
    makers = [_maker(one) for one in judges]
    below = [
        (one, matrix(texts, one.values)) for one in floors if one.criterion in ("", name) and _maker(one) not in makers
    ]
    top, none = _ceiling(texts, name, bootstrap)
    few = {floor.name: _few(others, [values for _, values in judged], ratings) for floor, others in below}
    differences = {
        (judge.name, floor.name, level): found
        for (judge, values), (floor, others), level in product(judged, below, LEVELS)
        if level not in few[floor.name] and (found := against.difference(values, others, level)) is not None
    }
    return Rated(
        name,
        len(texts),
        tuple(_row(one, values, ratings, against, bootstrap) for one, values in judged),
        tuple(
            Row(one.name, "floor", one.signature, against.correlate(values), few=few[one.name]) for one, values in below
        ),
        top,
        none,
        differences,
        tuple(_versus(judged, against)),
    )


def _few(floor: Floats, judges: Sequence[Floats], ratings: Floats) -> dict[Level, str]:
    """By level, that a floor has values for too few of the items that the judges, or else people, have.

    Too few are less than half of them, and fewer than 10 where they have 10 or more. At level document an item counts
    in which both sides differ between texts.
    """
    found: dict[Level, str] = {}
    for level in LEVELS:
        most = max((_items(one, ratings, level) for one in judges or [ratings]), default=0)
        n = _items(floor, ratings, level)
        if 0 < n < max(_SHARE * most, _FEWEST if most >= _FEWEST else 0):
            found[level] = f"it has values for {n:,} of {most:,} items, too few to hold a judge against"
    return found


def _items(values: Floats, ratings: Floats, level: Level) -> int:
    """How many items a level has to compare."""
    if level == "document":
        return int((~np.isnan(within(*paired(values, ratings), "spearman"))).sum())
    return int((~np.isnan(values) & ~np.isnan(ratings)).any(axis=1).sum())


def _maker(column: Held) -> str:
    """Who made a column, by its signature: with --model heuristic a judge is a floor itself."""
    return column.signature.partition("|")[2].partition("|")[0]


def _row(judge: Held, values: Floats, ratings: Floats, against: Against, bootstrap: Bootstrap) -> Row:
    """A judge with its agreement and calibration, where its scale is people's too."""
    correlation = against.correlate(values)
    if why := _other_scale(judge.scale, ratings):
        return Row(judge.name, "judge", judge.signature, correlation, no_calibration=why)
    assert judge.scale is not None  # noqa: S101  (else there is a reason above)
    points = levels(judge.scale)
    agreed = agree(np.stack([values, ratings]), ("alpha_interval",), bootstrap)
    kappa = Agreement(lacking=dict.fromkeys(_KAPPA, "the scale's labels are words, whose values are not known here"))
    if points:
        kappa = agree(np.stack([_nearest(side, points) for side in (values, ratings)]), _KAPPA, bootstrap)
    both = Agreement({**agreed.estimates, **kappa.estimates}, {**agreed.lacking, **kappa.lacking})
    curve = calibration(values, ratings, edges(judge.scale), bootstrap)
    why = "" if curve else "no text has both a value and a rating"
    return Row(judge.name, "judge", judge.signature, correlation, both, curve, why)


def _other_scale(scale: Column | None, ratings: Floats) -> str:
    """Why people's ratings cannot be on a judge's scale; nothing where they may be."""
    if scale is None or scale.low is None or scale.high is None or not scale.low < scale.high:
        return "its column has no scale"
    low, high = float(np.nanmin(ratings)), float(np.nanmax(ratings))
    if scale.low <= low and high <= scale.high:
        return ""
    return f"people rated from {low:g} to {high:g}, the judge on a scale of {scale.low:g} to {scale.high:g}"


def _nearest(values: Floats, points: Sequence[float]) -> Floats:
    """The values rounded to the points of a scale, half way up."""
    at = np.asarray(points)
    found = at[np.searchsorted((at[1:] + at[:-1]) / 2, values, "right").clip(max=len(at) - 1)]
    return np.where(np.isnan(values), np.nan, found)


def _versus(judged: Iterable[tuple[Held, Floats]], against: Against) -> Iterable[Versus]:
    for ((one, values), (other, others)), level in product(combinations(judged, 2), LEVELS):
        spearman = against.difference(values, others, level)
        if spearman is not None:
            yield Versus(one.name, other.name, level, spearman, against.difference(values, others, level, "pearson"))


def _ceiling(samples: Sequence[Sample], criterion: str, bootstrap: Bootstrap) -> tuple[Row | None, str]:
    """What an annotator reaches, or why that is not known."""
    given = {(s.item, s.system): s.ratings[criterion] for s in samples if s.ratings.get(criterion)}
    if not any(sum(vote is not None for vote in each) > 1 for each in given.values()):
        what = "one rating for each text" if not given else "no text with the ratings of two annotators"
        return None, f'the data have {what}; write each annotator\'s down, as in "human": {{"relevance": [4, 5, 3]}}'
    most = max(map(len, given.values()))
    by_place = [{key: each[n] for key, each in given.items() if n < len(each)} for n in range(most)]
    votes = np.stack([matrix(samples, one) for one in by_place])
    found = ceiling(votes, bootstrap)
    return Row("annotator", "ceiling", f"{most} annotators", found, agree(votes, bootstrap=bootstrap)), ""
