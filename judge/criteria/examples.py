"""Examples of a criterion: texts with the score that they deserve, in its header, in a file beside it, or in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from judge.core import yaml_lines
from judge.core.errors import CriterionError
from judge.core.label_spellings import fold, label_index
from judge.core.records import Example, Scale
from judge.criteria.template import (
    MAX_EXAMPLES,
    check_inside,
    check_link,
    first_problem,
    front_matter,
)
from judge.data import rows


def read_examples(
    label: str, text: str, given: list[Any] | str, scale: Scale
) -> tuple[Example, ...]:
    """Return the examples that the header of a criterion's text names: a list, or a file beside the criterion's own.

    Raises CriterionError or DataError, with file and line.
    """
    key, value = yaml_lines.nodes(front_matter(text), "examples")
    at = f"{label}:{key.start_mark.line + 1 if key else 1}"  # without the key, it came with a merged one (<<)
    if isinstance(given, str):
        return check_examples(_file(at, Path(label).parent, given), scale)
    places = (
        [f"{label}:{node.start_mark.line + 1}" for node in value.value]
        if value
        else [at] * len(given)
    )
    return check_examples(zip(places, given, strict=True), scale)


def _file(at: str, folder: Path, name: str) -> Iterator[tuple[str, Any]]:
    """Yield each example of a file with its place."""
    check_inside(at, name)
    path = folder / name
    if not path.is_file():
        raise CriterionError(
            f"{at}: examples: no file {str(path)!r}; write a list of examples, or the name of their file"
        )
    check_link(at, path, folder)
    for row in rows.rows(path):
        if isinstance(row, rows.RawRow):
            yield (
                row.where,
                {
                    key: cell
                    for key, cell in row.cells.items()
                    if not rows.is_missing(cell, row.flat)
                },
            )


def check_examples(entries: Iterable[tuple[str, Any]], scale: Scale) -> tuple[Example, ...]:
    """Return the examples of mappings or Examples, each given with its place; scores become labels of the scale.

    Raises CriterionError.
    """
    listed = list(islice(entries, MAX_EXAMPLES + 1))
    if len(listed) > MAX_EXAMPLES:
        raise CriterionError(
            f"{listed[-1][0]}: examples: more than {MAX_EXAMPLES}; every prompt shows all of them"
        )
    return tuple(_example(f"{where}: examples", entry, scale) for where, entry in listed)


class _Keys(BaseModel):
    """The keys of an example."""

    model_config = ConfigDict(extra="forbid", strict=True, from_attributes=True)

    output: str = Field(validation_alias=AliasChoices("output", "text"))
    score: int | float | str
    reason: str = ""
    source: str = ""


def _example(at: str, entry: Any, scale: Scale) -> Example:
    if isinstance(entry, Mapping):
        entry = {key: value for key, value in entry.items() if value is not None}
    try:
        keys = _Keys.model_validate(entry)
    except ValidationError as error:
        raise CriterionError(f"{at}: {first_problem(error, _Keys)[1]}") from error
    if not keys.output.strip():
        raise CriterionError(f"{at}: output is empty; an example shows a text")
    if (label := label_index(scale).label(fold(str(keys.score)))) is None:
        labels = (
            scale.labels
            if len(scale.labels) <= MAX_EXAMPLES
            else (scale.labels[0], "…", scale.labels[-1])
        )
        raise CriterionError(
            f"{at}: score {str(keys.score)!r:.60} is not a label; the scale has {', '.join(labels)}"
        )
    return Example(keys.output, label, keys.reason, keys.source)
