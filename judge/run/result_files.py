"""Take the result file of another tool as the data of a run.

Its texts are the samples, and its scores are judge columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from judge.config import RankConfig, RunConfig
from judge.data.result_files import ResultFile, read_result_file


@dataclass(frozen=True, slots=True)
class RunInput:
    """What a run reads: its configuration and data, and notes on the file that they came from."""

    config: RunConfig
    data: Any
    notes: Sequence[str] = ()


def take(config: RunConfig, source: Any) -> RunInput:
    """Return the configuration with the file's criteria as judge columns, its rows, and notes.

    Return other data unchanged, and also a file whose columns the configuration names. If the
    configuration names criteria, use only the texts. Raises DataError.
    """
    if not isinstance(source, str | PathLike) or config.map or config.systems:
        return RunInput(config, source)
    result = read_result_file(source)
    if result is None or not _has_columns(config, result):
        return RunInput(config, source)
    return RunInput(_with_columns(config, result), result.rows, result.notes())


def _has_columns(config: RunConfig, result: ResultFile) -> bool:
    """Return whether the columns that the configuration names are criteria of the file."""
    columns_of_file = {*result.criteria, *result.further}
    return config.judge_columns.keys() <= columns_of_file


def _with_columns(config: RunConfig, result: ResultFile) -> RunConfig:
    if config.judge_columns:
        return config
    if isinstance(config, RankConfig) and not result.are_pairs:
        return config
    # A ranking has a criterion by default.
    default = type(config).model_fields["criteria"].default
    if config.criteria != default:
        return config
    return config.model_copy(update={"judge_columns": dict(result.criteria)})
