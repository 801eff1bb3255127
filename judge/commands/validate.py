"""`judge.validate`: compare the judges of finished runs with human ratings, and with baselines that need no judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from judge.commands.public import public_api
from judge.core.errors import ConfigError, DataError
from judge.core.format import plural
from judge.core.messages import option
from judge.core.records import Sample
from judge.data.samples import Values
from judge.report.views.provenance import build_provenance
from judge.results.result import Result, load
from judge.results.validation import Validation
from judge.stats import calibration
from judge.stats.bootstrap import Bootstrap
from judge.stats.correlation import criterion
from judge.stats.human_agreement import RatedColumn, judges_of, out_of_scale, people, unknown_criteria
from judge.table import JOURNAL, RUN


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
    judges against each other. `calibrate` also brings the systems' means to people's scale
    (`judge.stats.calibration`). `where` has the texts of all runs that count, by the values of their columns:
    {"lang": "ja"}.

    Raises ConfigError for what is no scored run, DataError where no text was rated or none is the same, StorageError.
    """
    runs = _load_runs((result, *others))
    first, *rest = (run.where(**where) for run in runs) if where else runs
    table = first.table
    check_rated(table.samples)
    judges, left_out = _judges_on_shared_texts(list(zip((result, *others), (first, *rest), strict=True)))
    rated = people(table, judges, Bootstrap(n_resamples, seed))
    criteria = [column.criterion for column in rated]
    provenances = [build_provenance(run) for run in (first, *rest)]
    banners = dict.fromkeys(banner for provenance in provenances for banner in provenance.all_banners)
    columns = [column for run in (first, *rest) for column in run.table.columns]
    # What the run has said itself, in a banner, is not said again.
    names = list(dict.fromkeys(criterion(column) for column in columns if column.kind == "criterion"))
    lacking = [name for name in names if name not in criteria]
    notes = []
    if lacking and unknown_criteria(table.samples, names) not in banners:
        notes.append(f"No ratings by people for {', '.join(lacking)} (there are: {', '.join(criteria)}).")
    scales = {
        criterion(column): (column.low, column.high)
        for column in table.columns
        if column.kind == "criterion" and column.low is not None and column.high is not None
    }
    notes += [note for note in out_of_scale(table.samples, scales) if note not in banners]
    return Validation(
        title=f"Against people: {' and '.join(dict.fromkeys(provenance.title for provenance in provenances))}",
        rated=rated,
        notes=(*banners, *left_out, *notes),
        calibrated=first.calibrated or (calibration.calibrate(table) if calibrate else ()),
    )


def _load_runs(results: Sequence[Result | str | Path]) -> list[Result]:
    """Load the runs that are named by their folder. Raises ConfigError for one named twice or without scores."""
    named = [str(source) for source in results if not isinstance(source, Result)]
    if len(set(named)) < len(named):
        raise ConfigError("the same run is named twice")
    runs = []
    for source in results:
        if not isinstance(source, Result):
            check_run(Path(source))
        runs.append(source if isinstance(source, Result) else load(Path(source)))
    for run in runs:
        if run.rankings or any(score.rival for score in run.table.scores):
            raise ConfigError("a ranking compares texts two by two and scores none: judge run makes scores to validate")
        if "streamed" in run.info:
            raise ConfigError("this run measured its data as they were read, without a judge: validate some of them")
    return runs


def _judges_on_shared_texts(runs: Sequence[tuple[Result | str | Path, Result]]) -> tuple[list[RatedColumn], list[str]]:
    """Return the judges of all runs on the texts of the first, under distinct names, and notes on texts left out."""
    texts = {(s.item, s.system): s.output for s in runs[0][1].table.samples}
    rated: list[tuple[str, RatedColumn]] = []
    notes = []
    for place, (source, result) in enumerate(runs, 1):
        name = f"run {place}" if isinstance(source, Result) else str(source)
        theirs = {(s.item, s.system): s.output for s in result.table.samples}
        same = {key for key, output in theirs.items() if texts.get(key) == output}
        if not same:
            raise DataError(f"{name} has no text of the first run, by item, system and output")
        if len(same) < len(theirs):
            notes.append(f"Left out: {plural(len(theirs) - len(same), 'text')} of {name} that the first run has not.")
        for judge in judges_of(result.table, str(result.info.get("model") or "")):
            values = {key: value for key, value in judge.values.items() if key in same}
            rated.append((name, replace(judge, values=values)))
    counts = Counter((judge.criterion, judge.name) for _, judge in rated)
    ambiguous = {judge.name for _, judge in rated if counts[judge.criterion, judge.name] > 1}
    return [
        replace(judge, name=f"{judge.name} ({run})") if judge.name in ambiguous else judge for run, judge in rated
    ], notes


def check_rated(samples: Sequence[Sample]) -> None:
    """Raise DataError if no sample has a human rating."""
    if not any(sample.human for sample in samples):
        named = option("map", {"human.relevance": "COLUMN"})
        raise DataError(
            f"no text has a rating by people to validate against: name their column with {named}, "
            'or write "human": {"relevance": 4} into each row (of several annotators [4, 5, 3])'
        )


def check_run(folder: Path) -> None:
    """Raise ConfigError for a folder that holds no run."""
    if not any((folder / name).exists() for name in (RUN, JOURNAL)):
        raise ConfigError(f"{folder}: no run is there (no {RUN}); name a folder that judge run has written")
