"""A finished result against people's ratings, beside what needs no judge, and beside what people have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from judge.commands.public import public_api
from judge.core.errors import ConfigError, DataError
from judge.core.messages import option, plural
from judge.core.records import Column, Sample
from judge.data.samples import Values
from judge.report.views.provenance import build_provenance
from judge.results.result import Result, load
from judge.results.validation import Validation
from judge.stats import calibration
from judge.stats.bootstrap import Bootstrap
from judge.stats.human_agreement import RatedColumn, criterion, judges_of, out_of_scale, people, unknown_criteria
from judge.table import JOURNAL, RUN, Table


@public_api()
def validate(
    result: Result | str | Path,
    *others: Result | str | Path,
    seed: int = 0,
    n_resamples: int = 1000,
    calibrate: bool = False,
    where: Values | None = None,
) -> Validation:
    """Hold a result, or the run in a folder, against the ratings that its samples have in `human`, by criterion.

    A judge's column is held against the ratings of its criterion's name. Beside it stand the floors: the heuristic
    baseline, the number of words and ROUGE-1, -2 and -L (mean over the references, stemmed), taken from the result
    or measured now; and the ceiling, one annotator against the mean of the others, where `Sample.ratings` has
    several. `judge.stats.correlation` says what the numbers are. A text without a score or rating does not count.

    The judges of `others` are held against the same ratings on the texts that are the same in both, and every two
    judges against each other. `calibrate` also brings the systems' means to people's scale (`judge.stats.calibration`). `where`
    has the texts of all runs that count, by the values of their columns: {"lang": "ja"}.

    Raises ConfigError for what is no scored run, DataError where no text was rated or none is the same, StorageError.
    """
    runs = _scored((result, *others))
    first, *rest = (one.where(**where) for one in runs) if where else runs
    table = first.table
    check_rated(table.samples)
    judges, left_out = _judges(list(zip((result, *others), (first, *rest), strict=True)))
    rated = people(table, judges, Bootstrap(n_resamples, seed))
    criteria = [one.criterion for one in rated]
    told = [build_provenance(one) for one in (first, *rest)]
    banners = dict.fromkeys(banner for one in told for banner in one.all_banners)
    columns = [column for one in (first, *rest) for column in one.table.columns]
    return Validation(
        title=f"Against people: {' and '.join(dict.fromkeys(one.title for one in told))}",
        rated=rated,
        notes=(*banners, *left_out, *_unrated(columns, criteria, [*banners], table), *_outside(table, [*banners])),
        calibrated=first.calibrated or (calibration.calibrate(table) if calibrate else ()),
    )


def _scored(given: Sequence[Result | str | Path]) -> list[Result]:
    """The runs, read where they are named by their folder. Raises ConfigError for one named twice, or of no scores."""
    named = [str(one) for one in given if not isinstance(one, Result)]
    if len(set(named)) < len(named):
        raise ConfigError("the same run is named twice")
    runs = [one if isinstance(one, Result) else _run(Path(one)) for one in given]
    for one in runs:
        _check_scored(one)
    return runs


def _check_scored(result: Result) -> None:
    if result.rankings or any(score.rival for score in result.table.scores):
        raise ConfigError("a ranking compares texts two by two and scores none: judge run makes scores to validate")
    if "streamed" in result.info:
        raise ConfigError("this run measured its data as they were read, without a judge: validate some of them")


def _judges(runs: Sequence[tuple[Result | str | Path, Result]]) -> tuple[list[RatedColumn], list[str]]:
    """The judges of all runs on the texts of the first, those of one name told apart; what was left out."""
    texts = {(s.item, s.system): s.output for s in runs[0][1].table.samples}
    found: list[tuple[str, RatedColumn]] = []
    notes = []
    for place, (given, result) in enumerate(runs, 1):
        name = f"run {place}" if isinstance(given, Result) else str(given)
        theirs = {(s.item, s.system): s.output for s in result.table.samples}
        same = {key for key, output in theirs.items() if texts.get(key) == output}
        if not same:
            raise DataError(f"{name} has no text of the first run, by item, system and output")
        if len(same) < len(theirs):
            notes.append(f"Left out: {plural(len(theirs) - len(same), 'text')} of {name} that the first run has not.")
        for one in judges_of(result.table, str(result.info.get("model") or "")):
            values = {key: value for key, value in one.values.items() if key in same}
            found.append((name, replace(one, values=values)))
    often = Counter((one.criterion, one.name) for _, one in found)
    twice = {one.name for _, one in found if often[one.criterion, one.name] > 1}
    return [replace(one, name=f"{one.name} ({run})") if one.name in twice else one for run, one in found], notes


def check_rated(samples: Sequence[Sample]) -> None:
    """Raises DataError where no sample has a rating by people."""
    if not any(sample.human for sample in samples):
        named = option("map", {"human.relevance": "COLUMN"})
        raise DataError(
            f"no text has a rating by people to validate against: name their column with {named}, "
            'or write "human": {"relevance": 4} into each row (of several annotators [4, 5, 3])'
        )


def check_run(folder: Path) -> None:
    """Raises ConfigError for a folder that holds no run."""
    if not any((folder / name).exists() for name in (RUN, JOURNAL)):
        raise ConfigError(f"{folder}: no run is there (no {RUN}); name a folder that judge run has written")


def _run(folder: Path) -> Result:
    check_run(folder)
    return load(folder)


def _unrated(columns: Iterable[Column], criteria: Sequence[str], told: Sequence[str], table: Table) -> list[str]:
    """Criteria without ratings, where the run has not said so itself."""
    names = list(dict.fromkeys(criterion(column) for column in columns if column.kind == "criterion"))
    lacking = [name for name in names if name not in criteria]
    if not lacking or unknown_criteria(table.samples, names) in told:
        return []
    return [f"No ratings by people for {', '.join(lacking)} (there are: {', '.join(criteria)})."]


def _outside(table: Table, told: Sequence[str]) -> list[str]:
    """Single ratings that are not on the scale of a criterion, which the run may have said itself."""
    scales = {
        criterion(one): (one.low, one.high)
        for one in table.columns
        if one.kind == "criterion" and one.low is not None and one.high is not None
    }
    return [note for note in out_of_scale(table.samples, scales) if note not in told]
