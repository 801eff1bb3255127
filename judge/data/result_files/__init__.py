"""Result files of other evaluation tools, read as data with a judge's scores.

A tool is one module with `TOOL`, `claims` and `read`, and a line in `_READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path

from judge.core.errors import DataError
from judge.data.result_files import (
    alpaca_eval,
    deepeval,
    inspect_logs,
    lm_eval,
    mlflow_tables,
    openai_evals,
    promptfoo,
)
from judge.data.result_files.judged import (
    JudgedPair,
    JudgedText,
    ResultFile,
    rows_of_pairs,
    rows_of_texts,
)
from judge.data.result_files.opening import Opening, read_opening
from judge.data.rows import files

__all__ = ["ResultFile", "read_result_file"]


@dataclass(frozen=True, slots=True)
class _Reader:
    """How the files of a tool are recognised and read.

    `lower_is_better` returns the criteria on which lower scores are better.
    """

    tool: str
    claims: Callable[[Opening], bool]
    read: Callable[[Opening], Iterable[JudgedText | JudgedPair]]
    lower_is_better: Callable[[Sequence[JudgedText]], Collection[str]] = lambda _: ()


_READERS = (
    _Reader(inspect_logs.TOOL, inspect_logs.claims, inspect_logs.read),
    _Reader(promptfoo.TOOL, promptfoo.claims, promptfoo.read),
    _Reader(deepeval.TOOL, deepeval.claims, deepeval.read, deepeval.lower_is_better),
    _Reader(
        mlflow_tables.TOOL,
        mlflow_tables.claims,
        mlflow_tables.read,
        mlflow_tables.lower_is_better,
    ),
    _Reader(openai_evals.TOOL, openai_evals.claims, openai_evals.read),
    _Reader(alpaca_eval.TOOL, alpaca_eval.claims, alpaca_eval.read),
    _Reader(lm_eval.TOOL, lm_eval.claims, lm_eval.read),
)


def read_result_file(path: str | PathLike[str]) -> ResultFile | None:
    """Return the rows of a result file, or of several files of one tool; None for other data.

    The content of the first file tells the tool. Raises DataError.
    """
    try:
        (first_path, file_name), *others = files(path)
    except DataError:
        # The reader of the data says this in the same words.
        return None
    opening = read_opening(first_path, file_name)
    reader = _reader_of(opening)
    if opening is None or reader is None:
        return None
    # One file after the other, because all together may be large.
    other_openings = (_opening_of(reader, path, name) for path, name in others)
    texts: list[JudgedText] = []
    pairs: list[JudgedPair] = []
    for file_opening in chain([opening], other_openings):
        for judged in _read(reader, file_opening):
            if isinstance(judged, JudgedPair):
                pairs.append(judged)
                continue
            if not judged.system and others:
                judged.system = file_opening.path.stem
            texts.append(judged)
    if pairs:
        return rows_of_pairs(reader.tool, pairs)
    _drop_single_generations(texts)
    return rows_of_texts(reader.tool, file_name, texts, reader.lower_is_better(texts))


def _read(reader: _Reader, opening: Opening) -> Iterator[JudgedText | JudgedPair]:
    """Yield what the file of a tool has. Raises DataError also for values of unknown kinds."""
    last = ""
    try:
        for judged in reader.read(opening):
            last = judged.where
            yield judged
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # A reader checks what it needs; anything else that has another form than the tool writes.
        after = f", after {last}" if last else ""
        raise DataError(
            f"{opening.name}: a result file of {reader.tool} in a form that judge does not "
            f"know{after}: {error}"
        ) from error


def _reader_of(opening: Opening | None) -> _Reader | None:
    if opening is None:
        return None
    return next((reader for reader in _READERS if reader.claims(opening)), None)


def _opening_of(reader: _Reader, path: Path, file_name: str) -> Opening:
    opening = read_opening(path, file_name)
    if opening is None or not reader.claims(opening):
        raise DataError(
            f"{file_name}: not a result file of {reader.tool}, which the first file is"
        )
    return opening


def _drop_single_generations(texts: Sequence[JudgedText]) -> None:
    """Remove the number of the generation if every text has only one."""
    if {text.generation for text in texts} <= {None, 1}:
        for text in texts:
            text.generation = None
