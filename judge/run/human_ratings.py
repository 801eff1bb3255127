"""People's ratings of a run: read from a file of their own, joined to the texts, and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from judge.config import DEFAULT_CRITERIA, RankConfig, RunConfig
from judge.core.criterion_entry import name_of
from judge.core.errors import ConfigError, DataError
from judge.core.format import listed, plural
from judge.core.messages import command, option
from judge.core.plugins import unknown_name_message
from judge.core.records import Column, Criterion, Sample, Scale
from judge.criteria import builtin, default_criteria
from judge.data import ledger
from judge.data.ratings import (
    Known,
    Ratings,
    base_name,
    join_ratings,
    pair_names,
    read_ratings,
    renamed,
    source_name,
)
from judge.stats.human_agreement import another_scale, rated_names, unknown_criteria

if TYPE_CHECKING:
    from judge.data.ratings import RatingSource


def read(config: RunConfig, rows: Sequence[Sample], *, rated: bool) -> tuple[Ratings, RunConfig]:
    """Return the ratings of the plan's file, if it names one, and the plan with its criteria. Raises JudgeError.

    With `rated`, people must have rated a criterion, and the default criteria are those that they rated. Without
    `rated`, and if they rated none of them, the default criteria are for summaries only.
    """
    criteria = DEFAULT_CRITERIA if config.criteria is None else config.criteria
    names = list(map(name_of, criteria))
    sheet = Ratings()
    if config.rating_source is not None:
        sheet = read_sheet(config.rating_source, rows, names, config.map)
    ratings = dict.fromkeys([*rated_names(rows), *sheet.criteria])
    if rated and not ratings:
        check_rated(rows, names[0] if names else "")
    if config.criteria is None:
        chosen = tuple(name for name in names if name in ratings) if rated else ()
        chosen = chosen or default_criteria(rows, metrics=not rated, rated=ratings)
        config = config.model_copy(update={"criteria": chosen})
    if rated:
        place = None if config.rating_source is None else source_name(config.rating_source)
        if problem := unknown_criteria(ratings, names, place):
            raise DataError(problem)
    return sheet, config


def read_sheet(
    source: RatingSource,
    rows: Sequence[Sample],
    criteria: Sequence[str],
    columns: Mapping[str, Any] = {},
) -> Ratings:
    """Read ratings of these texts and criteria. Raises DataError if it has none."""
    systems = list(dict.fromkeys(sample.system for sample in rows))
    others = [*map(base_name, criteria), *(criterion.name for criterion in builtin())]
    sheet = read_ratings(source, Known(criteria, others, systems, columns))
    if not sheet.every:
        raise DataError(f"{source_name(source)}: no ratings")
    return sheet


def join(
    config: RunConfig,
    rows: Sequence[Sample],
    sheet: Ratings,
    chosen: Sequence[Criterion],
) -> tuple[list[Sample], list[str]]:
    """Return the samples with the ratings of the plan's file under the criteria's names, and notes on them.

    Raises DataError.
    """
    scales = {c.name: c.scale for c in chosen if not c.pairwise}
    notes: list[str] = []
    if config.rating_source is not None:
        left_out = [option(name) for name in ("where", "limit") if getattr(config, name)]
        rows, notes = join_sheet(source_name(config.rating_source), rows, sheet, scales, left_out)
        if sheet.pairs and not isinstance(config, RankConfig):
            notes.append(
                f"{plural(len(sheet.pairs), 'preference')} between two texts: only {command('rank')} uses them."
            )
    pairs, more = pair_names(
        rows, {name: (scale.low, scale.high) for name, scale in scales.items()}
    )
    return [*renamed(rows, pairs, scales)], [*notes, *more]


def label_values(scales: Mapping[str, Scale | Column]) -> dict[str, dict[str, float]]:
    """Return the value of each label by criterion, also under the name of which the criterion is a variant."""
    values = {
        name: dict(zip(scale.labels, scale.values, strict=False)) for name, scale in scales.items()
    }
    return {base_name(name): labels for name, labels in values.items()} | values


def join_sheet(
    place: str,
    rows: Sequence[Sample],
    sheet: Ratings,
    scales: Mapping[str, Scale | Column],
    left_out: Sequence[str],
) -> tuple[list[Sample], list[str]]:
    """Return the samples with the ratings of a sheet, and notes that say what was read.

    If the options `left_out` select some of the data, ratings of other texts are ignored. Raises DataError, also for
    single ratings outside the scale of their criterion.
    """
    keys = {sample.key for sample in rows}
    single = (
        [rating for rating in sheet.single if (rating.item, rating.system) in keys]
        if left_out
        else []
    )
    single = single or list(sheet.single)
    for (
        name,
        scale,
    ) in scales.items():  # single ratings outside a scale are slips; many are of another scale
        if scale.low is None or scale.high is None:
            continue
        values = [
            (r.value, r.where) for r in single if r.criterion == name and isinstance(r.value, float)
        ]
        outside = [
            (value, where) for value, where in values if not scale.low <= value <= scale.high
        ]
        if outside and not another_scale(len(outside), len(values)):
            value, where = outside[0]
            more = f" (and {len(outside) - 1:,} more)" if outside[1:] else ""
            raise DataError(
                f"{where}: {name} is {value:g}, outside its scale, {scale.low:g} to {scale.high:g}{more}. Correct the "
                "rating or take it out"
            )
    joined = join_ratings(rows, single, label_values(scales)) if single else list(rows)
    pairs = [r for r in sheet.pairs if {(r.item, r.first), (r.item, r.second)} <= keys]
    if len(pairs) < len(sheet.pairs) and not (pairs and left_out):
        first = next(rating for rating in sheet.pairs if rating not in pairs)
        raise DataError(
            f"{first.where}: the data lack a text of item {first.item!r} and system {first.first!r} or {first.second!r}"
        )
    raters = dict.fromkeys(rating.rater for rating in sheet.every if rating.rater)
    texts = len({(rating.item, rating.system) for rating in single})
    by = f" by {plural(len(raters), 'rater')}" if raters else ""
    counted = f"{plural(len(single), 'rating')} of {plural(texts, 'text')}" if single else ""
    counted += f"{' and ' if single else ''}{plural(len(pairs), 'preference')}" if pairs else ""
    notes = [f"Ratings from {place} ({sheet.form}): {counted}{by}, of {listed(sheet.criteria)}."]
    if sheet.unread:
        notes.append(f"No ratings are in its columns {', '.join(sheet.unread)}.")
    if sheet.replaced:
        notes.append(
            f"{plural(sheet.replaced, 'rating')} in it changed by a later row; the last one counts."
        )
    if ignored := len(sheet.every) - len(single) - len(pairs):
        notes.append(
            f"{plural(ignored, 'rating')} ignored: of texts that {' or '.join(left_out)} leaves out."
        )
    own = set(rated_names(rows)) & {rating.criterion for rating in single}
    if own:
        notes.append(f"The data's own ratings of {listed(sorted(own))} are not used.")
    return joined, notes


def check_rated(rows: Sequence[Sample], criterion: str) -> None:
    """Raise DataError if no sample has a human rating that may be used.

    The message suggests a file of ratings, or ratings of `criterion`.
    """
    if not any(sample.human for sample in rows):
        if excluded := ledger.notes(rows):
            raise DataError(f"{' '.join(excluded)} Rate other texts")
        criterion = base_name(criterion) or "relevance"
        column = option("map", {f"rating.{criterion}": "COLUMN"})
        raise DataError(
            f"no text has a human rating: name a file of them with {option('ratings', 'FILE')}, or their column with "
            f'{column}, or write "human": {{"{criterion}": 4}} into each row (with several raters: [4, 5, 3])'
        )


def rated_texts(rows: Sequence[Sample], rating: str) -> list[Sample]:
    """Return the rated texts. Raises DataError if there are none."""
    check_rated(rows, rating)
    if rated := [sample for sample in rows if rating in sample.human]:
        return rated
    known = list(dict.fromkeys(name for sample in rows for name in sample.human))
    raise DataError(
        f"{unknown_name_message('rating', rating, known)}; name one with {option('human', 'RATING')}"
    )


def check(
    config: RunConfig, rows: Sequence[Sample], chosen: Sequence[Criterion], *, rated: bool
) -> None:
    """Raise DataError if `rated` and no rating may be used, ConfigError if a run cannot be calibrated."""
    names = [criterion.name for criterion in chosen]
    if rated:
        check_rated(rows, names[0] if names else "")
    if not config.calibrate:
        return
    if isinstance(config, RankConfig) or not names:
        raise ConfigError(f"{option('calibrate')}: this run has no judge scores to calibrate")
    if not any(name in sample.human for sample in rows for name in names):
        column = option("map", {f"rating.{names[0]}": "COLUMN"})
        named = (
            f"name a file of them with {option('ratings', 'FILE')}, or their column with {column}"
        )
        fix = " ".join([*ledger.notes(rows), "Rate other texts"]) if ledger.notes(rows) else named
        raise ConfigError(
            f"{option('calibrate')}: no text has a rating by people for {' or '.join(names)}; {fix}"
        )
