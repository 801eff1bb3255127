"""Check the arguments of public functions and methods by their annotations.

A wrong one is a ConfigError at the call, and not an error somewhere inside. Only annotations that
are made of the forms below are checked; data, models and criteria have checks of their own.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from numbers import Integral, Real
from os import PathLike
from typing import Any, ParamSpec, TypeVar

from judge.core.errors import ConfigError
from judge.core.messages import speaking_to

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
_LOWEST = {"seed": 0, "n": 0, "n_resamples": 1, "step": 1}
"""The lowest value of arguments of these names."""
_MAX_SHOWN = 40  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class _Form:
    """What an argument may be.

    `words` name it. `read` returns the value as plain Python, and raises TypeError for another.
    """

    words: str
    read: Callable[[Any], Any]


def _none(value: Any) -> None:
    if value is not None:
        raise TypeError


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _path(value: Any) -> Any:
    if not isinstance(value, PathLike):
        raise TypeError
    return value


def _truth(value: Any) -> bool:
    # The name of numpy's type depends on its version.
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError
    return bool(value)


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError
    return int(value) if isinstance(value, Integral) else float(value)


def _texts(value: Any) -> tuple[str, ...]:
    """Read a list, tuple, set, array or Series of texts."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError
    return tuple(map(_text, value))


def _paths(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError
    return tuple(entry if isinstance(entry, str) else _path(entry) for entry in value)


def _two_texts(value: Any) -> tuple[str, ...]:
    texts = _texts(value)
    if len(texts) != 2:
        raise TypeError
    return texts


def _mapping(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise TypeError
    for key in value:
        _text(key)
    return value


def _names(value: Any) -> dict[str, Any]:
    """Read a mapping to a text or to several texts each."""
    names: dict[str, Any] = {}
    for key, entry in _mapping(value).items():
        names[key] = entry if isinstance(entry, str) else _texts(entry)
    return names


_TEXTS = _Form("a list of texts", _texts)
_VALUES = _Form("a dict of columns and values", _mapping)
_FORMS = {
    "None": _Form("None", _none),
    "str": _Form("a text", _text),
    "Path": _Form("a path", _path),
    "bool": _Form("True or False", _truth),
    "int": _Form("a whole number", _whole_number),
    "float": _Form("a number", _number),
    "Sequence[str]": _TEXTS,
    "Collection[str]": _TEXTS,
    "Sequence[str | Path]": _Form("a list of paths", _paths),
    "tuple[str, str]": _Form("two texts", _two_texts),
    "Mapping[str, str]": _Form("a dict of texts", _names),
    "Mapping[str, str | Sequence[str]]": _Form("a dict of texts or lists of texts", _names),
    "Values": _VALUES,
    "samples.Values": _VALUES,
}
"""The forms of arguments by their annotation."""


def _forms_of(annotation: str) -> list[_Form]:
    """Return the forms that an annotation allows; none for an annotation that is not checked."""
    alternatives: list[str] = []
    for part in annotation.split(" | "):
        # `Sequence[str | Path]` is one alternative.
        if alternatives and alternatives[-1].count("[") > alternatives[-1].count("]"):
            alternatives[-1] += f" | {part}"
        else:
            alternatives.append(part)
    forms: list[_Form] = []
    for alternative in alternatives:
        if alternative.startswith("Literal["):
            forms.append(_choice(alternative))
        elif alternative in _FORMS:
            forms.append(_FORMS[alternative])
        else:
            return []
    return forms


def _choice(annotation: str) -> _Form:
    """Return the form of an annotation such as `Literal["pass", "fail"]`."""
    names = ast.literal_eval(annotation.removeprefix("Literal"))

    def read(value: Any) -> str:
        text = _text(value)
        if text not in names:
            raise TypeError
        return text

    return _Form(" or ".join(map(repr, names)), read)


def _read(name: str, forms: list[_Form], value: Any) -> Any:
    """Return an argument in one of its forms. Raises ConfigError."""
    for form in forms:
        try:
            argument = form.read(value)
        except TypeError:
            continue
        if name in _LOWEST and argument < _LOWEST[name]:
            raise ConfigError(f"{name} must be {_LOWEST[name]} or more, not {argument}")
        return argument
    allowed = " or ".join(form.words for form in forms)
    raise ConfigError(f"{name} must be {allowed}, not {_shown(value)}")


def _shown(value: Any) -> str:
    """Return a wrong value in a message: as it is if it is short, else its type."""
    written = repr(value)
    is_plain = value is None or isinstance(value, str | bytes | int | float | list | tuple | dict)
    if is_plain and len(written) <= _MAX_SHOWN:
        return written
    return f"this {type(value).__name__}"


def checking_arguments(
    function: Callable[Parameters, Returned],
) -> Callable[Parameters, Returned]:
    """Decorate a function or a coroutine function: read its arguments in the annotated forms.

    The call raises ConfigError for an argument in another form.
    """
    # A wrapper shows the arguments of the function that it calls, which checks them.
    if hasattr(function, "__wrapped__"):
        return function
    signature = inspect.signature(function)
    forms_by_name: dict[str, list[_Form]] = {}
    for name, parameter in signature.parameters.items():
        forms = _forms_of(str(parameter.annotation))
        if forms and parameter.kind is not parameter.VAR_KEYWORD:
            forms_by_name[name] = forms

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            # Python's own error says which argument is missing or unknown.
            return function(*args, **kwargs)
        for name, value in bound.arguments.items():
            if name not in forms_by_name:
                continue
            forms = forms_by_name[name]
            if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple(_read(name, forms, entry) for entry in value)
            else:
                bound.arguments[name] = _read(name, forms, value)
        return function(*bound.args, **bound.kwargs)

    return call


def public_method(
    method: Callable[Parameters, Returned],
) -> Callable[Parameters, Returned]:
    """Decorate a method of a result: check its arguments, and write messages in Python's terms."""
    checked = checking_arguments(method)

    @wraps(method)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        with speaking_to("python"):
            return checked(*args, **kwargs)

    return call
