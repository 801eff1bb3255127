"""Read and check the examples of a criterion: texts with the score that they deserve.

They come from its header, from a file beside it, or from Python.
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
    """Return the examples of a criterion whose file `label` has this text.

    `examples` is what the header says: a list of them, or the name of a file in the same folder.
    Raises CriterionError or DataError, with file and line.
    """
    key_node, list_node = yaml_lines.nodes(front_matter(text), "examples")
    # There are no nodes if the key came with a merged one (<<: *base).
    line = key_node.start_mark.line + 1 if key_node else 1
    location = f"{label}:{line}"
    if isinstance(examples, str):
        folder = Path(label).parent
        return check_examples(_examples_in_file(location, folder, examples), scale)
    if list_node:
        lines = [node.start_mark.line + 1 for node in list_node.value]
        locations = [f"{label}:{line}" for line in lines]
    else:
        locations = [location] * len(examples)
    return check_examples(zip(locations, examples, strict=True), scale)


def _examples_in_file(
    location: str, folder: Path, file_name: str
) -> Iterator[tuple[str, Any]]:
    """Yield each example of a file with its location. `location` is that of the file's name."""
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
            example = {
                key: cell for key, cell in cells if not rows.is_missing(cell, row.flat)
            }
            yield row.where, example


def check_examples(
    entries: Iterable[tuple[str, Any]], scale: Scale
) -> tuple[Example, ...]:
    """Return the examples of entries: pairs of a location and a mapping or Example.

    Scores become labels of the scale. Raises CriterionError.
    """
    # One more than allowed, and not all: a file may have any number of rows.
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
    """Return an entry as an Example. Raises CriterionError."""
    if isinstance(entry, Mapping):
        # `reason:` without a value is as good as no `reason`.
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
