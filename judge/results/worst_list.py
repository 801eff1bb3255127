"""The worst texts of a run, to be read one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.core.records import Failure, Sample, Score
from judge.results.result import Result
from judge.results.worst_texts import LowScore, worst_texts
from judge.table import Text


@dataclass(frozen=True)
class WorstList:
    """The worst texts of a result, the worst first, each with its lowest score.

    `samples` and `rows` are by item and system: the text with the data's own columns, and all its
    scores and failures.
    """

    VIEW: ClassVar[str] = "judge.report.views.worst:view"

    result: Result
    lowest: tuple[LowScore, ...]
    samples: Mapping[tuple[str, str], Sample]
    rows: Mapping[tuple[str, str], tuple[Score | Failure, ...]]


def worst_list(result: Result, n: int) -> WorstList:
    """Return the `n` worst texts of a result, fewer if it has fewer.

    Raises ConfigError for less than one, for a ranking, and for a result without a score on a
    criterion.
    """
    written_option = option("worst", n)
    if n < 1:
        raise ConfigError(f"{written_option}: name 1 text or more")
    if result.rankings or result.table.has_pairs:
        raise ConfigError(f"{written_option}: a ranking has no score for a single text")
    lowest = worst_texts(result.table, n)
    if not lowest:
        raise ConfigError(
            f"{written_option}: this run has no score on a criterion with a better end"
        )
    rows_by_text: dict[Text, list[Score | Failure]] = {}
    listed = {low_score.score.key for low_score in lowest}
    for row in result.table.rows():
        if row.key in listed:
            rows_by_text.setdefault(row.key, []).append(row)
    return WorstList(
        result=result,
        lowest=tuple(lowest),
        samples={sample.key: sample for sample in result.table.samples},
        rows={text_key: tuple(rows) for text_key, rows in rows_by_text.items()},
    )
