"""`judge.validate`: compare judges with human ratings, and with baselines without a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from judge.commands.finished_runs import open_run, without_seen_ratings
from judge.commands.public import public_api
from judge.commands.validate.record import Validation, check_level
from judge.core.errors import ConfigError, DataError
from judge.core.format import plural
from judge.core.messages import option
from judge.core.records import Column, Sample
from judge.data import ledger
from judge.data.ratings import (
    Ratings,
    find_variants,
    rename_ratings,
    source_name,
    without_repeats,
)
from judge.data.row_filters import Values
from judge.report.views.agreement_finding import usual_level
from judge.report.views.provenance import Provenance, build_provenance
from judge.results.result import Result, preference_agreement_of
from judge.run.human_ratings import check_rated, join_sheet, read_sheet
from judge.stats import calibration
from judge.stats.alt_test import EPSILON, check_epsilon
from judge.stats.bootstrap import Bootstrap
from judge.stats.correlation import criterion
from judge.stats.disagreements import disagreements
from judge.stats.human_agreement import (
    Rated,
    did_you_mean,
    people,
    rated_names,
    unknown_criteria,
)
from judge.stats.pass_rates import calibrated_pass_rates
from judge.stats.rated_columns import RatedColumn, judges_of
from judge.stats.rating_scales import out_of_scale

if TYPE_CHECKING:
    from judge.data.ratings import RatingSource


@public_api()
def validate(
    result: Result | str | Path,
    *others: Result | str | Path,
    seed: int = 0,
    n_resamples: int = 1000,
    calibrate: bool = False,
    where: Values | None = None,
    level: str | None = None,
    ratings: RatingSource | None = None,
    epsilon: float = EPSILON,
    rating_criterion: str = "",
) -> Validation:
    """Compare the judges of a result, or of a run's folder, with human ratings by criterion.

    - `others`: further runs, whose judges are compared with the same ratings on the texts that all
      runs have, and with each other.
    - `ratings`: people's ratings in a file, a DataFrame or a list of dicts. They replace those of
      the first run on the same criteria. `rating_criterion` is their criterion, if they name none.
    - `where`: select texts, such as {"lang": "ja"}.
    - `level`: the correlation that reports show: within-items, all-texts or systems. By default
      within-items, if most items have at least three rated texts, else all-texts.
    - `calibrate`: also estimate the systems' means on people's scale.
    - `epsilon`: the judge's advantage in the alternative annotator test.

    The baselines are length and the run's metrics. A run without metrics is compared with ROUGE-1,
    -2 and -Lsum (stemmed, mean over the references). A text without a score or rating does not
    count, nor does a rating that was used to make a prompt.

    Raises ConfigError for a folder without a scored run, DataError if no text was rated or shared,
    StorageError.
    """
    shown_level = None if level is None else check_level(level)
    check_epsilon(epsilon)
    if rating_criterion and ratings is None:
        ratings_option = option("ratings", "FILE")
        raise ConfigError(f"{option('rating_criterion')}: is for {ratings_option}")
    compared = load_rated(
        (result, *others),
        where=where,
        ratings=ratings,
        rating_criterion=rating_criterion,
    )
    first_run = compared.runs[0]
    if first_run.rankings:
        return _of_ranking(first_run, compared.notes)
    _check_criteria(compared, ratings)
    bootstrap = Bootstrap(n_resamples, seed)
    judges = compared.judges
    sheet = compared.sheet
    table = first_run.table
    rated = people(table, judges, bootstrap, epsilon=epsilon, sheet=sheet)
    validation = Validation(
        title=f"Agreement with people: {compared.title}",
        rated=rated,
        notes=_notes_on_ratings(compared, rated),
        level=shown_level or usual_level(rated),
        disagreements=disagreements(table.samples, judges, bootstrap, sheet),
    )
    # A run that was calibrated shows its calibration here too, without being asked again.
    if not calibrate and not first_run.calibrated:
        return validation
    return replace(
        validation,
        calibrated=calibration.calibrate(first_run.table),
        pass_rates=calibrated_pass_rates(first_run.table),
    )


def _judged_criteria(compared: RatedRuns) -> list[str]:
    """Return the criteria of the judges, in their order."""
    return list(dict.fromkeys(judge.criterion for judge in compared.judges))


def _check_criteria(compared: RatedRuns, ratings: RatingSource | None) -> None:
    """Raise DataError if people's ratings are on none of the criteria of the judges."""
    samples = compared.runs[0].table.samples
    withheld = [
        criterion_name for sample in samples for criterion_name in sample.withheld
    ]
    names = [*rated_names(samples), *withheld]
    source = None if ratings is None else source_name(ratings)
    problem = unknown_criteria(names, _judged_criteria(compared), source)
    if problem:
        raise DataError(problem)


def _notes_on_ratings(compared: RatedRuns, rated: Sequence[Rated]) -> tuple[str, ...]:
    """Return the notes of the runs and those on the ratings, each once."""
    notes = [*compared.banners, *compared.notes]
    judged = _judged_criteria(compared)
    names = rated_names(compared.runs[0].table.samples)
    unjudged = [
        criterion_name for criterion_name in names if criterion_name not in judged
    ]
    hint = did_you_mean(unjudged, judged).strip()
    if hint:
        notes.append(hint)
    rated_criteria = [rated_criterion.criterion for rated_criterion in rated]
    notes += rating_notes(compared.runs, rated_criteria, compared.banners)
    return tuple(dict.fromkeys(notes))


def rating_notes(
    runs: Sequence[Result],
    rated: Sequence[str],
    banners: Collection[str],
) -> Iterator[str]:
    """Yield notes on criteria of the runs that people did not rate, and on ratings outside a scale.

    Those that are among the `banners` are left out.
    """
    table = runs[0].table
    withheld = {
        criterion_name for sample in table.samples for criterion_name in sample.withheld
    }
    with_ratings = {*rated, *withheld}
    criteria_of_runs: dict[str, None] = {}
    for run in runs:
        for column in run.table.columns:
            if column.kind == "criterion":
                criteria_of_runs[criterion(column)] = None
    unrated = [
        criterion_name
        for criterion_name in criteria_of_runs
        if criterion_name not in with_ratings
    ]
    if unrated:
        # Only the first run's ratings count. Another run may still have ratings on these criteria.
        names = ", ".join(rated)
        unrated_names = ", ".join(unrated)
        if len(runs) == 1:
            yield f"People did not rate {unrated_names}, only {names}."
        else:
            yield f"The first run has ratings of {names}, but none of {unrated_names}."
    marked = [
        criterion(column) for column in table.columns if column.pass_at is not None
    ]
    scales = _ends_of_scales(_columns_of_criteria([runs[0]]))
    lower_is_better = [
        criterion(column) for column in table.columns if column.better == "lower"
    ]
    for note in out_of_scale(table.samples, scales, marked, lower_is_better):
        if note not in banners:
            yield note


@dataclass(frozen=True, slots=True)
class RatedRuns:
    """Runs without the ratings that any of their criteria has seen.

    Their judges have distinct names. A ranking comes alone and without judges. `banners` are the
    runs' own warnings, `notes` those on the file of ratings and on texts that the first run lacks.
    """

    title: str
    runs: tuple[Result, ...]
    judges: tuple[RatedColumn, ...]
    banners: tuple[str, ...]
    notes: tuple[str, ...]
    sheet: Ratings | None


def load_rated(
    results: Sequence[Result | str | Path],
    *,
    where: Values | None = None,
    ratings: RatingSource | None = None,
    rating_criterion: str = "",
) -> RatedRuns:
    """Load runs to compare with people.

    They have the texts that `where` selects, with the ratings of a file. Raises ConfigError for a
    folder without a scored run and for one named twice, DataError if no text was rated or shared,
    StorageError.
    """
    runs = _open_runs(results)
    joined = _has_joined(results[0], ratings)
    rated = _with_ratings(
        runs, ratings, joined=joined, rating_criterion=rating_criterion
    )
    selected = rated.runs
    if where:
        selected = [run.where(**where) for run in selected]
    unseen = without_seen_ratings(selected)
    first_run = unseen[0]
    if first_run.rankings:
        return RatedRuns(
            title="",
            runs=(first_run,),
            judges=(),
            banners=(),
            notes=tuple(rated.notes),
            sheet=rated.sheet,
        )
    criteria = [
        column for column in first_run.table.columns if column.kind == "criterion"
    ]
    example = criterion(criteria[0]) if criteria else ""
    check_rated(first_run.table.samples, example)
    named_runs = list(zip(results, unseen, strict=True))
    judges, left_out = _judges_on_shared_texts(named_runs)
    provenances = [build_provenance(run) for run in unseen]
    titles = dict.fromkeys(provenance.title for provenance in provenances)
    return RatedRuns(
        title=" and ".join(titles),
        runs=tuple(unseen),
        judges=tuple(judges),
        banners=tuple(_banners(unseen, provenances)),
        notes=(*rated.notes, *left_out),
        sheet=rated.sheet,
    )


def _open_runs(results: Sequence[Result | str | Path]) -> list[Result]:
    """Open the runs. Raises ConfigError for a run named twice, and for a ranking among others."""
    folders = [str(source) for source in results if not isinstance(source, Result)]
    if len(set(folders)) < len(folders):
        raise ConfigError("the same run is named twice")
    runs = [open_run(source) for source in results]
    for run in runs:
        is_ranking = bool(run.rankings) or run.table.has_pairs
        if is_ranking and len(runs) > 1:
            problem = "a ranking cannot be compared with another run"
            raise ConfigError(f"{problem}; validate it alone")
    return runs


def _banners(runs: Sequence[Result], provenances: Sequence[Provenance]) -> list[str]:
    """Return the warnings in the provenances of the runs, each once."""
    first_run, *others = runs
    # The ratings of the other runs are not used, so notes on them would mislead.
    unused_notes = {note for run in others for note in ledger.notes(run.table.samples)}
    unused_notes.difference_update(ledger.notes(first_run.table.samples))
    banners: dict[str, None] = {}
    for provenance in provenances:
        banners.update(dict.fromkeys(provenance.notes))
    return [banner for banner in banners if banner not in unused_notes]


def _has_joined(source: Result | str | Path, ratings: RatingSource | None) -> bool:
    """Return whether a run has just read this file of ratings itself."""
    if not isinstance(source, Result) or not isinstance(ratings, str | Path):
        return False
    return source.info.config.ratings == Path(ratings)


@dataclass(frozen=True, slots=True)
class _RatedResults:
    """Results, the first with the ratings of a file; also the file's content, and notes."""

    runs: list[Result]
    sheet: Ratings | None
    notes: list[str]


def _with_ratings(
    runs: Sequence[Result],
    source: RatingSource | None,
    *,
    joined: bool,
    rating_criterion: str = "",
) -> _RatedResults:
    """Give the first result the ratings of a file. Only its table changes.

    Ratings of `fluency` count for the criterion `fluency_5`. Those that the run has just `joined`
    stay as they are. Raises DataError.
    """
    first, *others = runs
    table = first.table
    columns = _columns_of_criteria(runs)
    samples: Sequence[Sample] = table.samples
    notes: list[str] = []
    sheet = None
    if source is not None:
        config = first.info.config
        if joined:
            rating_criterion = config.rating_criterion
        names = list(columns)
        sheet = read_sheet(
            source, samples, names, config.map, rating_criterion=rating_criterion
        )
        if not joined:
            # A file may rate texts that the run did not take: a note then names these options.
            left_out = [
                option(name) for name in ("where", "limit") if getattr(config, name)
            ]
            lower_is_better = {
                name for name, column in columns.items() if column.better == "lower"
            }
            samples, notes = join_sheet(
                source_name(source),
                samples,
                sheet,
                columns,
                left_out,
                lower_is_better=lower_is_better,
                owner="run",
            )
    scales = _ends_of_scales(columns)
    variants, variant_notes = find_variants(samples, scales)
    renamed_samples = rename_ratings(samples, variants, scales)
    used = ledger.seen_by(table.columns)
    rated = tuple(ledger.withhold(renamed_samples, used))
    info = first.info
    if sheet and sheet.pairs:
        info = replace(info, preferences=without_repeats(sheet.pairs))
    first = replace(first, table=replace(table, samples=rated), info=info)
    return _RatedResults([first, *others], sheet, [*notes, *variant_notes])


def _ends_of_scales(columns: Mapping[str, Column]) -> dict[str, tuple[float, float]]:
    """Return both ends of the scales that have them, by criterion."""
    ends: dict[str, tuple[float, float]] = {}
    for criterion_name, column in columns.items():
        if column.low is not None and column.high is not None:
            ends[criterion_name] = (column.low, column.high)
    return ends


def _columns_of_criteria(runs: Iterable[Result]) -> dict[str, Column]:
    """Return a column of each criterion; the last run that judged a criterion has its column."""
    columns: dict[str, Column] = {}
    for run in runs:
        for column in run.table.columns:
            if column.kind == "criterion":
                columns[criterion(column)] = column
    return columns


def _of_ranking(run: Result, notes: Sequence[str]) -> Validation:
    """Compare a ranking with people's preferences. Raises DataError without any on its pairs."""
    compared = preference_agreement_of(run)
    about = build_provenance(run)
    if not compared:
        criteria = dict.fromkeys(criterion(column) for column in run.table.columns)
        names = ", ".join(criteria)
        raise DataError(
            f"people have no preferences on pairs of this ranking ({names}). Name their file with "
            f"{option('ratings', 'FILE')}: item, first, second, rater, criterion and value (first, "
            "second or tie), or ratings of single texts"
        )
    banners = [note for note in about.notes if note not in notes]
    return Validation(
        f"Agreement with people: {about.title}",
        (),
        (*banners, *notes),
        preferences=compared,
    )


def _judges_on_shared_texts(
    runs: Sequence[tuple[Result | str | Path, Result]],
) -> tuple[list[RatedColumn], list[str]]:
    """Return the judges of all runs on the first run's texts, and notes on other texts.

    The judges have distinct names. Each run comes with what named it.
    """
    _, first_run = runs[0]
    first_outputs = {sample.key: sample.output for sample in first_run.table.samples}
    judges_with_runs: list[tuple[RatedColumn, str]] = []
    notes: list[str] = []
    for number, (source, result) in enumerate(runs, 1):
        run_name = f"run {number}" if isinstance(source, Result) else str(source)
        outputs = {sample.key: sample.output for sample in result.table.samples}
        shared = {
            text_key
            for text_key, output in outputs.items()
            if first_outputs.get(text_key) == output
        }
        if not shared:
            problem = f"{run_name} shares no text with the first run"
            raise DataError(f"{problem} (same item, system and output)")
        others = len(outputs) - len(shared)
        if others:
            texts = plural(others, "text")
            notes.append(f"Left out: {texts} of {run_name}, not in the first run.")
        for judge in judges_of(result.table, result.info.model):
            values = {
                text_key: value
                for text_key, value in judge.values.items()
                if text_key in shared
            }
            judge = replace(judge, values=values, failed=judge.failed & shared)
            judges_with_runs.append((judge, run_name))
    return _with_distinct_names(judges_with_runs), notes


def _with_distinct_names(
    judges_with_runs: Sequence[tuple[RatedColumn, str]],
) -> list[RatedColumn]:
    """Return the judges; those that share a name also have the name of their run."""
    # A name is ambiguous if two judges of one criterion have it.
    counts = Counter((judge.criterion, judge.name) for judge, _ in judges_with_runs)
    ambiguous = {judge_name for (_, judge_name), count in counts.items() if count > 1}
    judges: list[RatedColumn] = []
    for judge, run_name in judges_with_runs:
        if judge.name in ambiguous:
            judge = replace(judge, name=f"{judge.name} ({run_name})")
        judges.append(judge)
    return judges
