"""Annotations of AlpacaEval, `annotations.json`: pairs of outputs and which one was preferred.

A preference of 1 is for `output_1`, 2 for `output_2`, and weighted ones are in between.
https://github.com/tatsu-lab/alpaca_eval
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.core.errors import DataError
from judge.data.result_files.judged import JudgedPair, member, score
from judge.data.result_files.opening import Opening

TOOL = "AlpacaEval"
_KEYS = (
    "instruction",
    "output_1",
    "output_2",
    "preference",
    "generator_1",
    "generator_2",
)
_FORMER_TIE = 0
"""Before 1.5 stood for equal outputs."""


def claims(opening: Opening) -> bool:
    """Return whether these are annotations."""
    return all(key in opening.first for key in _KEYS)


def read(opening: Opening) -> Iterator[JudgedPair]:
    """Yield the pairs. Raises DataError."""
    for row in opening.rows():
        annotation = row.cells
        # Annotations have no id of the item but its instruction.
        instruction = member(annotation, "instruction", row.where, str)
        first_system = member(annotation, "generator_1", row.where, str)
        second_system = member(annotation, "generator_2", row.where, str)
        yield JudgedPair(
            row.where,
            item=instruction,
            first=first_system,
            second=second_system,
            result=_result(annotation, row.where),
            own_columns=_columns_of_instruction(annotation),
        )


def _result(annotation: Mapping[str, Any], location: str) -> float | None:
    value = score(annotation.get("preference"), location, "preference")
    if value is None:
        return None
    if value == _FORMER_TIE and not isinstance(value, bool):
        return 0.5
    if isinstance(value, bool) or not 1 <= value <= 2:
        raise DataError(f"{location}: preference is {value}, not a number from 1 to 2")
    # Here 1 is for the first system and 0 for the second one.
    return 2 - value


def _columns_of_instruction(annotation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns about the instruction, which are the same for all its pairs."""
    present = [column for column in ("dataset", "datasplit") if column in annotation]
    return {column: annotation[column] for column in present}
