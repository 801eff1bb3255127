"""Notes on the data of a run: the filter, columns, empty texts, suspect cells and ratings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.config import RunConfig
from judge.core.format import text_name
from judge.core.messages import Remark, option
from judge.core.records import Criterion, Sample
from judge.data import samples, suspect_cells
from judge.data.ratings import source_name
from judge.stats.human_agreement import rated_names, unknown_criteria
from judge.stats.rating_scales import out_of_scale, require_samples_on_scale


def data_notes(
    config: RunConfig,
    rows: Sequence[Sample],
    chosen: Sequence[Criterion],
) -> list[str]:
    """Return notes on the filter, on empty texts and on human ratings. Raises DataError."""
    notes: list[str] = []
    if config.where:
        selected = samples.describe_filter(config.where)
        notes.append(Remark(f"Only rows with {selected}."))
    notes += samples.unread_sheets(config.data)
    notes += _guessed_columns(config, rows)
    notes += _empty_texts(config, rows)
    notes += suspect_cells.notes(rows)
    notes += _ratings_that_do_not_fit(config, rows, chosen)
    return notes


def _guessed_columns(config: RunConfig, rows: Sequence[Sample]) -> Iterator[str]:
    """Yield a remark on the columns that were read under another name than theirs."""
    guessed: set[tuple[str, str]] = set()
    for row in rows:
        guessed |= samples.guessed_columns(row, config.map).items()
    if guessed:
        columns = ", ".join(
            f"{column} as {field_name}" for column, field_name in sorted(guessed)
        )
        map_option = option("map")
        yield Remark(
            f"Columns read under another name: {columns} ({map_option} chooses others)."
        )


def _empty_texts(config: RunConfig, rows: Sequence[Sample]) -> Iterator[str]:
    """Yield a note on the number of empty texts and the first one."""
    empty = [sample for sample in rows if not sample.output.strip()]
    if not empty:
        return
    # A judge's scores in the data need no texts.
    if config.judge_columns and len(empty) == len(rows):
        return
    first_empty = empty[0]
    first_location = first_empty.where
    if not first_location:
        first_location = text_name(first_empty.item, first_empty.system)
    counts = f"{len(empty):,} of {len(rows):,}"
    yield f"Empty texts are scored as such: {counts}, the first at {first_location}."


def _ratings_that_do_not_fit(
    config: RunConfig,
    rows: Sequence[Sample],
    chosen: Sequence[Criterion],
) -> Iterator[str]:
    """Yield notes on ratings on another scale, and if none is of a criterion.

    Raises DataError for a few ratings outside their scale.
    """
    scales: dict[str, tuple[float, float]] = {}
    for criterion in chosen:
        if not criterion.pairwise:
            scales[criterion.name] = (criterion.scale.low, criterion.scale.high)
    marked = [criterion.name for criterion in chosen if criterion.pass_at is not None]
    lower_is_better = [
        criterion.name for criterion in chosen if criterion.better == "lower"
    ]
    require_samples_on_scale(rows, scales)
    yield from out_of_scale(rows, scales, marked, lower_is_better)
    ratings = rated_names(rows)
    unknown = unknown_criteria(ratings, list(scales), _rating_place(config))
    if unknown:
        yield unknown


def _rating_place(config: RunConfig) -> str | None:
    """Return how messages call the place of people's ratings, None if the data has them."""
    if config.rating_source is None:
        return None
    return source_name(config.rating_source)
