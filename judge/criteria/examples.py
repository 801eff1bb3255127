"""Examples of a criterion: texts with the score that they deserve.

They are in its header, in a file beside it, or in Python.
"""

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
from judge.criteria.header import MAX_EXAMPLES, first_problem, front_matter
from judge.criteria.template import check_inside, check_link
from judge.data import rows


def read_examples(
    label: str,
    text: str,
    examples: list[Any] | str,
    scale: Scale,
) -> tuple[Example, ...]:
    """Return the examples that the header of a criterion's text has.

    `examples` is a list, or the name of a file beside the criterion's own. Raises CriterionError or
    DataError, with file and line.
    """
    key, value = yaml_lines.nodes(front_matter(text), "examples")
    # There is no node if the key came with a merged one (<<: *base).
    line = key.start_mark.line + 1 if key else 1
    location = f"{label}:{line}"
    if isinstance(examples, str):
        return check_examples(_file(location, Path(label).parent, examples), scale)
    locations = [location] * len(examples)
    if value:
        lines = [node.start_mark.line + 1 for node in value.value]
        locations = [f"{label}:{line}" for line in lines]
    return check_examples(zip(locations, examples, strict=True), scale)


def _file(location: str, folder: Path, file_name: str) -> Iterator[tuple[str, Any]]:
    """Yield each example of a file with its location."""
    check_inside(location, file_name)
    path = folder / file_name
    if not path.is_file():
        raise CriterionError(
            f"{location}: examples: no file {str(path)!r}; write a list of examples, or the name "
            "of their file"
        )
    check_link(location, path, folder)
    for row in rows.rows(path):
        if isinstance(row, rows.RawRow):
            cells = row.cells.items()
            present = {key: cell for key, cell in cells if not rows.is_missing(cell, row.flat)}
            yield row.where, present


def check_examples(entries: Iterable[tuple[str, Any]], scale: Scale) -> tuple[Example, ...]:
    """Return the examples of entries: pairs of a location and a mapping or Example.

    Scores become labels of the scale. Raises CriterionError.
    """
    # No more are read: a file of examples may have any number of rows.
    located = list(islice(entries, MAX_EXAMPLES + 1))
    if len(located) > MAX_EXAMPLES:
        location, _ = located[-1]
        raise CriterionError(
            f"{location}: examples: more than {MAX_EXAMPLES}; every prompt shows all of them"
        )
    examples = []
    for location, entry in located:
        examples.append(_example(f"{location}: examples", entry, scale))
    return tuple(examples)


class _Keys(BaseModel):
    """The keys of an example."""

    model_config = ConfigDict(extra="forbid", strict=True, from_attributes=True)

    output: str = Field(validation_alias=AliasChoices("output", "text"))
    score: int | float | str
    reason: str = ""
    source: str = ""


def _example(location: str, entry: Any, scale: Scale) -> Example:
    if isinstance(entry, Mapping):
        entry = {key: value for key, value in entry.items() if value is not None}
    try:
        keys = _Keys.model_validate(entry)
    except ValidationError as error:
        problem = first_problem(error, _Keys).text
        raise CriterionError(f"{location}: {problem}") from error
    if not keys.output.strip():
        raise CriterionError(f"{location}: output is empty; an example shows a text")
    label = label_index(scale).label(fold(str(keys.score)))
    if label is None:
        labels = scale.labels
        if len(labels) > MAX_EXAMPLES:
            labels = (labels[0], "…", labels[-1])
        known_labels = ", ".join(labels)
        raise CriterionError(
            f"{location}: score {str(keys.score)!r:.60} is not a label; "
            f"the scale has {known_labels}"
        )
    return Example(keys.output, label, keys.reason, keys.source)
