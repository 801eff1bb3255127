"""Read people's ratings from their own file, join them to the texts, and check them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judge.config import DEFAULT_CRITERIA, RankConfig, RunConfig
from judge.core.criterion_entry import name_of
from judge.core.errors import ConfigError, DataError
from judge.core.format import listed, plural
from judge.core.messages import Remark, command, option
from judge.core.plugins import require_known, unknown_name_message
from judge.core.records import Column, Criterion, Sample, Scale
from judge.criteria import builtin, builtin_rated, default_criteria
from judge.data import ledger
from judge.data.rating_sheets import Known
from judge.data.ratings import (
    PairRating,
    Rating,
    Ratings,
    base_name,
    find_variants,
    join_ratings,
    read_ratings,
    rename_ratings,
    source_name,
)
from judge.data.rows import unread_sheets
from judge.run.verdict_ratings import with_readable_verdicts
from judge.stats.human_agreement import rated_names, unknown_criteria
from judge.stats.rating_scales import LocatedRating, require_on_scale

if TYPE_CHECKING:
    from judge.data.ratings import RatingSource


def read(
    config: RunConfig,
    rows: Sequence[Sample],
    *,
    rated: bool,
) -> tuple[Ratings, RunConfig]:
    """Return the ratings of the file that `ratings` names, and the configuration with its criteria.

    With `rated`, people must have rated a criterion, and the default criteria are the built-in ones
    that they rated. If they rated none of these, and without `rated`, only summaries have default
    criteria. Raises JudgeError.
    """
    criteria = DEFAULT_CRITERIA if config.criteria is None else config.criteria
    names = [*map(name_of, criteria), *config.judge_columns]
    source = config.rating_source
    sheet = Ratings()
    if source is not None:
        sheet = read_sheet(
            source,
            rows,
            names,
            config.map,
            rating_criterion=config.rating_criterion,
        )
    elif config.rating_criterion:
        ratings_option = option("ratings", "FILE")
        raise ConfigError(f"{option('rating_criterion')}: is for {ratings_option}")
    # A list and not a set: messages name the ratings in the order of the data.
    # Each name once, those of the data first.
    ratings = list(dict.fromkeys([*rated_names(rows), *sheet.criteria]))
    if rated and not ratings:
        check_rated(rows, names[0] if names else "")
    if config.criteria is None:
        chosen = _default_criteria(rows, ratings, rated=rated)
        config = config.model_copy(update={"criteria": chosen})
    # Without `rated`, this is a note of the run (`data_notes`).
    if rated:
        file = None if source is None else source_name(source)
        problem = unknown_criteria(ratings, names, file)
        if problem:
            raise DataError(problem)
    return sheet, config


def _default_criteria(
    rows: Sequence[Sample],
    ratings: Sequence[str],
    *,
    rated: bool,
) -> tuple[str, ...]:
    """Return the default criteria; with `rated`, the built-in ones among people's `ratings`.

    Raises ConfigError if there are none.
    """
    if rated:
        chosen = builtin_rated(rows, ratings)
        if chosen:
            return chosen
    return default_criteria(rows, metrics=not rated, rated=ratings)


def read_sheet(
    source: RatingSource,
    rows: Sequence[Sample],
    criteria: Sequence[str],
    columns: Mapping[str, Any] = {},
    *,
    rating_criterion: str = "",
) -> Ratings:
    """Read ratings of these texts and criteria.

    `columns` is the option `map`. `rating_criterion` is the criterion of a sheet that names none.
    Raises DataError if there are no ratings, and if the sheet names another criterion; ConfigError
    if the run has no such criterion.
    """
    systems = list(dict.fromkeys(sample.system for sample in rows))
    builtin_names = [criterion.name for criterion in builtin()]
    others = [*map(base_name, criteria), *builtin_names]
    known_criteria = criteria
    if rating_criterion and not criteria:
        raise ConfigError(
            f"{option('rating_criterion', rating_criterion)}: no criterion is judged; leave it "
            "out, and add a column criterion to the ratings"
        )
    if rating_criterion:
        names = dict.fromkeys([*criteria, *map(base_name, criteria)])
        require_known(
            "criterion", [rating_criterion], names, option("rating_criterion")
        )
        known_criteria = [rating_criterion]
    known = Known(known_criteria, others, systems, columns)
    sheet = read_ratings(source, known)
    if not sheet.every:
        raise DataError(f"{source_name(source)}: no ratings")
    named = [
        criterion_name
        for criterion_name in sheet.criteria
        if criterion_name != rating_criterion
    ]
    if rating_criterion and named:
        criterion_option = option("rating_criterion", rating_criterion)
        listed_names = listed(named)
        raise DataError(
            f"{criterion_option}: {source_name(source)} itself names the criteria of its ratings: "
            f"{listed_names}"
        )
    return sheet


def join(
    config: RunConfig,
    rows: Sequence[Sample],
    sheet: Ratings,
    chosen: Sequence[Criterion],
) -> tuple[list[Sample], list[str]]:
    """Return the samples with the ratings of the sheet, renamed to the criteria, and notes on them.

    Raises DataError.
    """
    pointwise = [criterion for criterion in chosen if not criterion.pairwise]
    scales = {criterion.name: criterion.scale for criterion in pointwise}
    notes: list[str] = []
    if config.rating_source is not None:
        set_options = [
            option_name
            for option_name in ("where", "limit")
            if getattr(config, option_name)
        ]
        left_out = [option(option_name) for option_name in set_options]
        source = source_name(config.rating_source)
        lower_is_better = {
            criterion.name for criterion in chosen if criterion.better == "lower"
        }
        rows, notes = join_sheet(
            source,
            rows,
            sheet,
            scales,
            left_out,
            lower_is_better=lower_is_better,
        )
        if sheet.pairs and not isinstance(config, RankConfig):
            preferences = plural(len(sheet.pairs), "preference")
            rank = command("rank")
            notes.append(f"{preferences} between two texts: only {rank} uses them.")
    ends = {
        criterion_name: (scale.low, scale.high)
        for criterion_name, scale in scales.items()
    }
    variants, variant_notes = find_variants(rows, ends)
    renamed_rows = rename_ratings(rows, variants, scales)
    return [*renamed_rows], [*notes, *variant_notes]


def label_values(scales: Mapping[str, Scale | Column]) -> dict[str, dict[str, float]]:
    """Return the value of each label by criterion.

    A variant such as `fluency_5` is also listed under its base name, `fluency`.
    """
    values = {}
    for criterion_name, scale in scales.items():
        # A column that an older version stored may have labels without values.
        values[criterion_name] = dict(zip(scale.labels, scale.values, strict=False))
    by_base_name = {
        base_name(criterion_name): labels for criterion_name, labels in values.items()
    }
    # If the run also has `fluency` itself, its labels count.
    return by_base_name | values


def join_sheet(
    source: str,
    rows: Sequence[Sample],
    sheet: Ratings,
    scales: Mapping[str, Scale | Column],
    left_out: Sequence[str],
    *,
    lower_is_better: Collection[str],
    owner: str = "data",
) -> tuple[list[Sample], list[str]]:
    """Return the samples with the ratings of a sheet, and notes that say what was read.

    `owner` is what a note calls the source of the samples' own ratings. If the options `left_out`
    select some of the data, ratings of other texts are ignored. The criteria `lower_is_better` have
    their better end below. Raises DataError, also for single ratings outside the scale of their
    criterion.
    """
    texts = {sample.key for sample in rows}
    single = list(sheet.single)
    if left_out:
        of_these_texts = [
            rating for rating in single if (rating.item, rating.system) in texts
        ]
        # If none is left, pass all: `join_ratings` then reports the texts that the data lack.
        single = of_these_texts or single
    _check_scales(single, scales)
    single = with_readable_verdicts(single, scales, lower_is_better)
    joined = list(rows)
    if single:
        joined = join_ratings(rows, single, label_values(scales))
    pairs = _pairs_of_texts(sheet, texts, left_out)
    described = _describe(sheet, single, pairs)
    notes: list[str] = [Remark(f"Ratings from {source} ({sheet.form}): {described}.")]
    notes += unread_sheets(source)
    notes += _sheet_notes(sheet, source)
    n_used = len(single) + len(pairs)
    n_ignored = len(sheet.every) - n_used
    if n_ignored:
        options = " or ".join(left_out)
        ignored = plural(n_ignored, "rating")
        notes.append(f"{ignored} ignored, because {options} leaves out their texts.")
    criteria = {rating.criterion for rating in single}
    rated_twice = criteria & set(rated_names(rows))
    replaced = _with_other_ratings(rows, joined, rated_twice)
    if replaced:
        notes.append(f"The {owner}'s own ratings of {listed(replaced)} are not used.")
    return joined, notes


def _with_other_ratings(
    before: Sequence[Sample],
    after: Sequence[Sample],
    criteria: Collection[str],
) -> list[str]:
    """Return the criteria whose ratings of the same texts have changed."""
    changed: set[str] = set()
    for old, new in zip(before, after, strict=True):
        for criterion in criteria:
            same_mean = old.human.get(criterion) == new.human.get(criterion)
            same_votes = old.ratings.get(criterion) == new.ratings.get(criterion)
            if not (same_mean and same_votes):
                changed.add(criterion)
    return sorted(changed)


def _pairs_of_texts(
    sheet: Ratings,
    texts: Collection[tuple[str, str]],
    left_out: Sequence[str],
) -> list[PairRating]:
    """Return the preferences between two of these texts.

    Raises DataError for others, unless options left texts of the data out.
    """
    pairs: list[PairRating] = []
    others: list[PairRating] = []
    for rating in sheet.pairs:
        has_first = (rating.item, rating.first) in texts
        has_second = (rating.item, rating.second) in texts
        has_both = has_first and has_second
        if has_both:
            pairs.append(rating)
        else:
            others.append(rating)
    # If none is of these texts, the file is of other data, whatever was left out.
    may_lack_texts = pairs and left_out
    if others and not may_lack_texts:
        first_other = others[0]
        raise DataError(
            f"{first_other.where}: the data lack a text of item {first_other.item!r} and system "
            f"{first_other.first!r} or {first_other.second!r}"
        )
    return pairs


def _sheet_notes(sheet: Ratings, source: str) -> Iterator[str]:
    """Yield notes on the columns without ratings, and on ratings that a later row changed."""
    if sheet.unread:
        unread_columns = ", ".join(sheet.unread)
        yield f"Columns of {source} without ratings: {unread_columns}."
    if sheet.replaced:
        changed = plural(sheet.replaced, "rating")
        # One of these columns may have the raters under a name that judge does not know.
        advice = ""
        if sheet.unread:
            advice = " If one of these columns names the raters, call it rater."
        yield f"A later row of {source} changed {changed}; the last row counts.{advice}"


def _check_scales(
    single: Sequence[Rating], scales: Mapping[str, Scale | Column]
) -> None:
    """Raise DataError if a few ratings are outside the scale of their criterion."""
    for criterion_name, scale in scales.items():
        if scale.low is None or scale.high is None:
            continue
        # A label is no number. `join_ratings` refuses those that the criterion lacks.
        ratings = [
            LocatedRating(rating.value, rating.where)
            for rating in single
            if rating.criterion == criterion_name and isinstance(rating.value, float)
        ]
        require_on_scale(criterion_name, ratings, scale.low, scale.high)


def _describe(
    sheet: Ratings, single: Sequence[Rating], pairs: Sequence[PairRating]
) -> str:
    """Write `40 ratings of 20 texts and 3 preferences by 2 raters, of coherence`."""
    counts = []
    if single:
        texts = {(rating.item, rating.system) for rating in single}
        ratings = plural(len(single), "rating")
        rated_texts = plural(len(texts), "text")
        counts.append(f"{ratings} of {rated_texts}")
    if pairs:
        counts.append(plural(len(pairs), "preference"))
    raters = {rating.rater for rating in sheet.every if rating.rater}
    counted = " and ".join(counts)
    if raters:
        number_of_raters = plural(len(raters), "rater")
        counted += f" by {number_of_raters}"
    return f"{counted}, of {listed(sheet.criteria)}"


def check_rated(rows: Sequence[Sample], criterion: str) -> None:
    """Raise DataError if no sample has a human rating that may be used.

    The message suggests a file of ratings, or ratings of `criterion`.
    """
    if any(sample.human for sample in rows):
        return
    excluded = ledger.notes(rows)
    if excluded:
        reasons = " ".join(excluded)
        raise DataError(f"{reasons} Rate other texts")
    criterion = base_name(criterion) or "relevance"
    file = option("ratings", "FILE")
    column = option("map", {f"rating.{criterion}": "COLUMN"})
    raise DataError(
        f"no text has a human rating: name a file of them with {file}, or their column with "
        f'{column} (repeated for each rater), or write "human": {{"{criterion}": 4}} into each row '
        "(with several raters: [4, 5, 3])"
    )


def rated_texts(rows: Sequence[Sample], rating: str) -> list[Sample]:
    """Return the rated texts. Raises DataError if there are none."""
    check_rated(rows, rating)
    rated = [sample for sample in rows if rating in sample.human]
    if rated:
        return rated
    names = dict.fromkeys(
        rating_name for sample in rows for rating_name in sample.human
    )
    known_names = list(names)
    message = unknown_name_message("rating", rating, known_names)
    raise DataError(f"{message}; name one with {option('human', 'RATING')}")


def check(
    config: RunConfig,
    rows: Sequence[Sample],
    chosen: Sequence[Criterion],
    *,
    rated: bool,
) -> None:
    """Raise DataError if `rated` and no rating may be used.

    Raise ConfigError if a run cannot be calibrated.
    """
    names = [criterion.name for criterion in chosen]
    if rated:
        check_rated(rows, names[0] if names else "")
    if not config.calibrate:
        return
    if isinstance(config, RankConfig) or not names:
        calibrate = option("calibrate")
        raise ConfigError(f"{calibrate}: this run has no judge scores to calibrate")
    rated_names = {rating_name for sample in rows for rating_name in sample.human}
    if not rated_names.isdisjoint(names):
        return
    excluded = ledger.notes(rows)
    if excluded:
        fix = " ".join([*excluded, "Rate other texts"])
    else:
        file = option("ratings", "FILE")
        column = option("map", {f"rating.{names[0]}": "COLUMN"})
        columns = f"their column with {column} (repeated for each rater)"
        fix = f"name a file of them with {file}, or {columns}"
    criteria = " or ".join(names)
    raise ConfigError(
        f"{option('calibrate')}: no text has a rating by people for {criteria}; {fix}"
    )
