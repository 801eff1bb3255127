"""Scores that a judge has already given, in columns of the data: a run takes them as its judgments.

`unfold` brings every form of such a table into one row per text, `read_judge_columns` finds the
columns with their scales, and `given_scores` are the scores.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judge.config import RunConfig
from judge.core.criterion_entry import name_of
from judge.core.errors import ConfigError, DataError
from judge.core.messages import option
from judge.core.option_values import finite_number, parse_ends
from judge.core.plugins import unknown_name_message
from judge.core.records import (
    Better,
    Column,
    Criterion,
    Failure,
    Provenance,
    Sample,
    Scale,
    Score,
)
from judge.core.signature import Signature
from judge.core.verdicts import verdict
from judge.criteria.reply_form import chosen_pass_value
from judge.data.ratings import rename_ratings
from judge.data.rows import is_missing
from judge.data.samples import UNNAMED_RATING
from judge.data.score_tables import CRITERION, merge_criteria, stack_systems
from judge.data.suspect_cells import MISSING
from judge.metrics.common import failure
from judge.run.given_scores import GivenScores

_PASS_FAIL = Scale(("fail", "pass"), (0.0, 1.0))
_MOST_LABELS = 11
"""Labels of a scale that is read from whole numbers: 0 to 10."""
# "relevance (1-5)", "toxicity (0 to 1)"
_NAME_WITH_SCALE = re.compile(r"(?P<name>.+?)\s*\((?P<scale>[^()]*\d)\)")


@dataclass(frozen=True, slots=True)
class JudgeColumn:
    """A criterion whose scores are in a column of the data.

    `cell` is the name of the column in the data. A value of `pass_at` or better passes. If the
    scores are `continuous`, such as 37 or 0.62, the labels of `scale` are only its ends.
    """

    criterion: str
    cell: str
    scale: Scale
    better: Better = "higher"
    pass_at: float | None = None
    continuous: bool = False

    def as_criterion(self) -> Criterion:
        """Return a criterion of this name and scale, for what compares ratings with the judge."""
        return Criterion(
            self.criterion,
            scale=self.scale,
            pass_at=self.pass_at,
            better=self.better,
        )

    def as_column(self) -> Column:
        """Return the column of the run."""
        lower_is_better = self.better == "lower"
        signature = Signature.external(self.criterion, lower_is_better=lower_is_better)
        # Rounded to the ends of their scale, continuous scores would mean nothing.
        labels = () if self.continuous else self.scale.labels
        values = () if self.continuous else self.scale.values
        return Column(
            self.criterion,
            "criterion",
            signature,
            low=self.scale.low,
            high=self.scale.high,
            labels=labels,
            values=values,
            criterion=self.criterion,
            better=self.better,
            pass_at=self.pass_at,
        )


def given_scores(
    columns: Sequence[JudgeColumn], samples: Sequence[Sample]
) -> GivenScores:
    """Return one row per sample and column: its score, or a Failure that names the row."""
    rows: list[Score | Failure] = []
    for sample in samples:
        rows += [_row(sample, column) for column in columns]
    columns_of_run = [column.as_column() for column in columns]
    return GivenScores(tuple(columns_of_run), tuple(rows))


def _row(sample: Sample, column: JudgeColumn) -> Score | Failure:
    cell = sample.extra.get(column.cell)
    value = _value(cell)
    if value is not None:
        provenance = Provenance("metric", note="from the data")
        return Score(
            item=sample.item,
            system=sample.system,
            column=column.criterion,
            value=value,
            provenance=provenance,
        )
    problem = f"has {cell!r:.40} in {column.cell}, not a number"
    if is_missing(cell, flat=True):
        problem = f"has no value in the column {column.cell}"
        reason = sample.extra.get("error")
        if isinstance(reason, str) and reason.strip():
            problem += f" (error: {reason.strip():.200})"
    return failure(sample, column.criterion, "NoScore", problem)


def _value(cell: Any) -> float | None:
    """Return the score in a cell, None if it has none. A verdict is 1 or 0."""
    value = verdict(cell)
    return finite_number(cell) if value is None else value


def unfold(config: RunConfig, data: Any) -> tuple[RunConfig, Any]:
    """Return the configuration, and the data with one row per text and a column for each criterion.

    The data may also have a row per criterion (item, system, criterion, score), or a column of
    scores for each system. Raises ConfigError and DataError.
    """
    if not config.judge_columns:
        return config, data
    if isinstance(data, Iterator):
        # The first row shows the form of the data, and an iterator would give it only once.
        data = list(data)
    columns: Mapping[str, Better] = config.judge_columns
    changes: dict[str, Any] = {}
    if config.criteria is None:
        changes["criteria"] = ()
    (first_column, *others) = columns
    table = None
    if not others:
        table = merge_criteria(data, first_column, mapping=config.map)
    if table is not None:
        changes["judge_columns"] = dict.fromkeys(table.criteria, columns[first_column])
        remaining_map = dict(config.map)
        remaining_map.pop(CRITERION, None)
        changes["map"] = remaining_map
        data = table.rows
    elif config.systems and not others:
        stacked = stack_systems(
            data, config.output_columns, first_column, mapping=config.map
        )
        if stacked is not None:
            changes["systems"] = ()
            data = stacked
    return config.model_copy(update=changes), data


def read_judge_columns(
    config: RunConfig, rows: Sequence[Sample]
) -> tuple[list[JudgeColumn], list[str]]:
    """Return the columns with a judge's scores, and notes on scales that their values gave.

    Raises ConfigError and DataError.
    """
    taken = {*map(name_of, config.criteria or ()), *config.score_columns}
    columns: list[JudgeColumn] = []
    notes: list[str] = []
    for criterion_name, better in config.judge_columns.items():
        if criterion_name in taken:
            raise ConfigError(
                f"{option('judge_columns')} {criterion_name}: another column of the run has this "
                "name; rename one"
            )
        cell, ends = _cell_of(criterion_name, config.scale, rows)
        unscaled = JudgeColumn(criterion_name, cell, _PASS_FAIL, better)
        column, note = _with_scale(unscaled, ends, rows)
        if config.pass_at is not None:
            value = chosen_pass_value(
                config.pass_at, criterion_name, column.scale, better
            )
            column = replace(column, pass_at=value)
        columns.append(column)
        notes += note
    return columns, notes


def _cell_of(
    column_name: str,
    ends: tuple[float, float] | None,
    rows: Sequence[Sample],
) -> tuple[str, tuple[float, float] | None]:
    """Return the column of a criterion in the data, and the scale if it is known.

    The column may have the scale in its name, such as `relevance (1-5)`.
    """
    known_columns = dict.fromkeys(cell for row in rows for cell in row.extra)
    if column_name in known_columns:
        _, ends_in_name = _name_and_scale(column_name)
        return column_name, ends or ends_in_name
    plain_name = unicodedata.normalize("NFKC", column_name)
    for cell in known_columns:
        name_in_cell, ends_in_name = _name_and_scale(cell)
        if name_in_cell == plain_name:
            return cell, ends or ends_in_name
    problem = f"no text has a value in the column {column_name!r}"
    if known_columns:
        # Rows are read without their empty cells, so an empty column is as unknown as no column.
        unknown = unknown_name_message("column", column_name, list(known_columns))
        problem = f"{unknown}, or no text has a value in it"
    raise DataError(f"{option('judge_columns')} {column_name}: {problem}")


def _name_and_scale(cell: str) -> tuple[str, tuple[float, float] | None]:
    """Return the parts of a column's name such as `relevance (1-5)`; "" without such brackets."""
    # "有用性（1～5）": brackets and signs of full width.
    plain_cell = unicodedata.normalize("NFKC", cell)
    match = _NAME_WITH_SCALE.fullmatch(plain_cell)
    if match is None:
        return "", None
    try:
        return match["name"], parse_ends(match["scale"])
    except ValueError:
        return match["name"], None


def _with_scale(
    column: JudgeColumn,
    ends: tuple[float, float] | None,
    rows: Sequence[Sample],
) -> tuple[JudgeColumn, list[str]]:
    """Return the column with its scale, and a note if its values had to give it."""
    _check_words(column, rows)
    cells = [row.extra.get(column.cell) for row in rows]
    values = [value for value in map(_value, cells) if value is not None]
    if not values:
        raise DataError(
            f"{option('judge_columns')} {column.criterion}: no text has a number in the column "
            f"{column.cell}"
        )
    if ends is not None:
        lowest, highest = ends
        _check_ends(column, lowest, highest, rows)
        return _on_scale(column, lowest, highest, values), []
    if all(finite_number(cell) is None for cell in cells):
        # Verdicts, and nothing else.
        pass_at = 1.0 if column.better == "higher" else 0.0
        return replace(column, pass_at=pass_at), []
    lowest = min(values)
    highest = max(values)
    origin = "the lowest and the highest score"
    # Fractions are shares, such as 0.7. Scores of 0 and 1 alone can be the ends of 0 to 5.
    all_whole = all(value.is_integer() for value in values)
    if lowest >= 0 and highest <= 1 and not all_whole:
        lowest = 0.0
        highest = 1.0
        origin = "because all scores are between 0 and 1"
    scale_text = f"scale {lowest:g} to {highest:g}, {origin}"
    if lowest == highest:
        scale_text = f"every score is {lowest:g}, so that the scale is unknown"
    another = option("scale", "1-5")
    note = f"{column.criterion}: {scale_text}; {another} sets another one."
    return _on_scale(column, lowest, highest, values), [note]


def _check_words(column: JudgeColumn, rows: Sequence[Sample]) -> None:
    """Raise DataError if a column has words for pass or fail beside something else.

    If its other word were unknown, every text with a score would pass. Beside numbers from 1 to 5,
    the 0 of a "failed" would be a point of the scale.
    """
    rows_with_words = [
        row for row in rows if verdict(row.extra.get(column.cell)) is not None
    ]
    if not rows_with_words:
        return
    first_word = rows_with_words[0]
    word = first_word.extra[column.cell]
    for row in rows:
        cell = row.extra.get(column.cell)
        if isinstance(word, bool) and finite_number(cell) is not None:
            continue  # Inspect has True and 0.5 in one column
        is_empty = is_missing(cell, flat=True) or str(cell).strip() in MISSING
        is_verdict = verdict(cell) is not None or finite_number(cell) in (0, 1)
        if is_empty or is_verdict:
            continue
        problem = "a word that judge does not know"
        if finite_number(cell) is not None:
            problem = "a number beside words"
        raise DataError(
            f"{row.where}: {column.criterion} is {cell!r:.60}, {problem}; {word!r} "
            f"({first_word.where}) is {verdict(word):g}. Write a number in all cells, such as 1 or "
            "0, and leave the cell of a text without a score empty"
        )


def _on_scale(
    column: JudgeColumn,
    lowest: float,
    highest: float,
    values: Sequence[float],
) -> JudgeColumn:
    """Return the column with the scale from `lowest` to `highest`: whole numbers, or its ends."""
    numbers = (lowest, highest, *values)
    is_whole = all(number.is_integer() for number in numbers)
    if is_whole and highest - lowest < _MOST_LABELS:
        scale = Scale.integers(int(lowest), int(highest))
        return replace(column, scale=scale)
    labels = (f"{lowest:g}", f"{highest:g}")
    scale = Scale(labels, (lowest, highest))
    has_values_between = not set(values) <= set(scale.values)
    return replace(column, scale=scale, continuous=has_values_between)


def _check_ends(
    column: JudgeColumn,
    lowest: float,
    highest: float,
    rows: Sequence[Sample],
) -> None:
    """Raise DataError for the first score outside the scale."""
    for row in rows:
        value = _value(row.extra.get(column.cell))
        if value is not None and not lowest <= value <= highest:
            raise DataError(
                f"{row.where}: {column.criterion} is {value:g}, outside the scale {lowest:g} to "
                f"{highest:g}; {option('scale', 'LOW-HIGH')} sets another one"
            )


def name_ratings(
    rows: Sequence[Sample], columns: Sequence[JudgeColumn]
) -> list[Sample]:
    """Return the samples with ratings that name no criterion under that of the only column."""
    names = {rating_name for row in rows for rating_name in row.human}
    if len(columns) != 1 or names != {UNNAMED_RATING}:
        return list(rows)
    (column,) = columns
    new_names = {column.criterion: UNNAMED_RATING}
    return list(rename_ratings(rows, new_names, {column.criterion}))
