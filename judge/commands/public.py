"""Where a Python program comes in: options that `help` lists, messages in Python's words, errors without our frames."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import Parameter
from typing import Any, ParamSpec, TypeVar

from judge.commands.options import listed, parameters
from judge.core.errors import JudgeError
from judge.core.messages import spoken_at

P = ParamSpec("P")
T = TypeVar("T")
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)


def door(options: type | None = None, plan: type | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """For what a program calls: a JudgeError ends at the caller's own line, in the words of Python.

    `options` are the TypedDict of its keyword arguments, which its signature and its help then name one by one, with
    the defaults of the `plan`.
    """

    def made(function: Callable[P, T]) -> Callable[P, T]:
        places = _places(function)

        @wraps(function)
        def opened(*args: P.args, **kwargs: P.kwargs) -> T:
            _check_places(function.__name__, places, args)
            try:
                with spoken_at("python"):
                    return function(*args, **kwargs)
            except JudgeError as error:
                raised = error
            raise raised.with_traceback(None) from None

        _show(opened, function, options, plan)
        return opened

    return made


def async_door(
    options: type | None = None, plan: type | None = None
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """`door` for what is awaited."""

    def made(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        places = _places(function)

        @wraps(function)
        async def opened(*args: P.args, **kwargs: P.kwargs) -> T:
            _check_places(function.__name__, places, args)
            try:
                with spoken_at("python"):
                    return await function(*args, **kwargs)
            except JudgeError as error:
                raised = error
            raise raised.with_traceback(None) from None

        _show(opened, function, options, plan)
        return opened

    return made


def _show(opened: Any, function: Callable[..., Any], options: type | None, plan: type | None) -> None:
    """Put the options into the signature and the docstring."""
    if options is None:
        return
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    more = [one for one in parameters(options, plan) if one.name not in signature.parameters]
    opened.__signature__ = signature.replace(parameters=[*own, *more])
    opened.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions:\n{listed(one.name for one in more)}"


def _places(function: Callable[..., Any]) -> list[str]:
    """What may be given without a name; empty where that is any number."""
    found = [one for one in inspect.signature(function).parameters.values() if one.kind in _BY_PLACE]
    return [] if any(one.kind is Parameter.VAR_POSITIONAL for one in found) else [one.name for one in found]


def _check_places(name: str, places: list[str], args: tuple[Any, ...]) -> None:
    """Raises a TypeError that names the arguments of a call with too many that have no name."""
    if places and len(args) > len(places):
        first = repr(args[len(places)])
        said = f"{name}() takes {' and '.join(places)} by place, and all else by name"
        raise TypeError(f"{said}: {first[:40]} has none (a judge is given as model=...)")
