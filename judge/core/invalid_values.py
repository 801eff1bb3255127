"""Word the errors of pydantic, in one module for all that users write and all that is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

# Pydantic's own messages for these name types of Python, such as tuple and dictionary.
_FORMS = {
    "list_type": "write a list",
    "tuple_type": "write a list",
    "dict_type": "write keys and values",
    "mapping_type": "write keys and values",
    "model_type": "write keys and values",
    "model_attributes_type": "write keys and values",
    "dataclass_type": "write keys and values",
    "union_tag_not_found": "write keys and values",
}

# Pydantic's own messages for these add how it tried to read the value, or name a class.
_KINDS = {
    "int_parsing": "input should be a valid integer",
    "int_from_float": "input should be a valid integer",
    "float_parsing": "input should be a valid number",
    "bool_parsing": "input should be true or false",
    "bool_type": "input should be true or false",
    "path_type": "input should be a path",
}


@dataclass(frozen=True, slots=True)
class InvalidValue:
    """A value that a pydantic model refuses.

    `path` leads to it from the top of the document. `kind` is pydantic's name for the mistake, and
    `context` has its details. `problem` does not repeat the value, which may be a secret.
    """

    path: tuple[int | str, ...]
    kind: str
    problem: str
    value: Any
    context: Mapping[str, Any]

    @property
    def is_unknown_key(self) -> bool:
        """Return whether the last part of the path is a key that the model does not have."""
        return self.kind == "extra_forbidden"

    @property
    def says_all(self) -> bool:
        """Return whether `problem` is complete without the value.

        It is if it says what to write, or if our own code worded it.
        """
        return self.kind in _FORMS or self.kind in ("value_error", "missing")

    @property
    def location(self) -> str:
        """Return the path as text, such as `replies.0.draw`."""
        return ".".join(map(str, self.path))

    def __str__(self) -> str:
        if not self.path:
            return self.problem
        colon = "" if self.kind == "missing" else ":"
        return f"{self.location}{colon} {self.problem}"


def invalid_values(error: ValidationError) -> list[InvalidValue]:
    """Return all values that pydantic refused, in its order."""
    return [_invalid_value(details) for details in error.errors(include_url=False)]


def _invalid_value(details: ErrorDetails) -> InvalidValue:
    return InvalidValue(
        path=details["loc"],
        kind=details["type"],
        problem=_problem(details),
        value=details["input"],
        context=details.get("ctx", {}),
    )


def stored_place(refused: InvalidValue, stored: Any) -> str:
    """Return the place of a value in what was stored, such as `info.config.limit`.

    Pydantic puts the name of a union's type into the path, which is not in the file.
    """
    parts: list[str] = []
    value = stored
    for part in refused.path:
        if isinstance(value, Mapping):
            is_missing_key = refused.kind == "missing" and part == refused.path[-1]
            if part not in value and not is_missing_key:
                continue
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        else:
            continue
        parts.append(str(part))
    return ".".join(parts)


def first_invalid_value(error: ValidationError) -> InvalidValue:
    """Return the mistake to report: the first unknown key, or else the first mistake."""
    mistakes = invalid_values(error)
    for mistake in mistakes:
        # A misspelt key is also missing, but the misspelling is what to correct.
        if mistake.is_unknown_key:
            return mistake
    return mistakes[0]


def _problem(details: ErrorDetails) -> str:
    error_type = details["type"]
    if error_type in _FORMS:
        return _FORMS[error_type]
    if error_type == "missing":
        return "is missing"
    if error_type in _KINDS:
        return _KINDS[error_type]
    if error_type == "value_error":
        return str(details["ctx"]["error"])
    message = details["msg"]
    return f"{message[0].lower()}{message[1:]}"
