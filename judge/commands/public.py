"""Decorators of public functions: options listed in `help`, messages in Python's terms, errors without our frames."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import wraps
from inspect import Parameter
from typing import Any, ParamSpec, TypeVar

from judge.config import Command, RunConfig, json_schema, run_options
from judge.core.errors import JudgeError
from judge.core.messages import speaking_to

T = TypeVar("T")


def run_sync(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run in a new event loop: here, or in another thread if this one has a running loop (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def run_and_note() -> T:
        task = asyncio.ensure_future(work())
        tasks.append((asyncio.get_running_loop(), task))
        return await task

    interrupted = False
    with ThreadPoolExecutor(1, "judge") as thread:
        future = thread.submit(copy_context().run, lambda: asyncio.run(run_and_note()))
        while not future.done():
            try:
                wait([future])
            except KeyboardInterrupt:
                interrupted = True
                for loop, task in tasks:
                    loop.call_soon_threadsafe(task.cancel)
    if interrupted:
        raise KeyboardInterrupt
    return future.result()


def python_type(schema: Mapping[str, Any]) -> str:
    """Return the type of the values that a JSON schema allows, as an annotation."""
    if either := schema.get("anyOf"):
        return " | ".join(dict.fromkeys(map(python_type, either)))
    if choices := schema.get("enum", [schema[key] for key in ("const",) if key in schema]):
        return f"Literal[{', '.join(map(repr, choices))}]"
    kind, items = schema.get("type"), schema.get("items") or schema.get("additionalProperties")
    if isinstance(kind, list):
        return " | ".join(_TYPES[name] for name in kind)
    if kind in ("array", "object"):
        inner = python_type(items) if isinstance(items, Mapping) else "Any"
        return f"Sequence[{inner}]" if kind == "array" else f"Mapping[str, {inner}]"
    return "str | Path" if schema.get("format") == "path" else _TYPES.get(str(kind), "Any")


_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def option_parameters(command: Command, config: type[RunConfig] | None = None) -> dict[str, tuple[Parameter, str]]:
    """Return the options of a command as keyword arguments with their descriptions."""
    properties = json_schema(config or RunConfig, "", "")["properties"]
    return {
        name: (
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=None if option.default in ({}, ()) else option.default,
                annotation=f"{python_type(properties[name])} | None",
            ),
            option.description,
        )
        for name, option in run_options(command, config).items()
        if name != "data"
    }


P = ParamSpec("P")
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)


def public_api(
    command: Command | None = None, config: type[RunConfig] | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a public function: a JudgeError ends at the caller's line, with messages in Python's terms.

    Its signature and help list the options that the `command` takes.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        places = _positional_names(function)

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            _check_positional(function.__name__, places, args)
            try:
                with speaking_to("python"):
                    return function(*args, **kwargs)
            except JudgeError as error:
                raised = error
            raise raised.with_traceback(None) from None

        _document_options(wrapper, function, command, config)
        return wrapper

    return decorate


def async_public_api(
    command: Command | None = None, config: type[RunConfig] | None = None
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """`public_api` for a coroutine function."""

    def decorate(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        places = _positional_names(function)

        @wraps(function)
        async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            _check_positional(function.__name__, places, args)
            try:
                with speaking_to("python"):
                    return await function(*args, **kwargs)
            except JudgeError as error:
                raised = error
            raise raised.with_traceback(None) from None

        _document_options(wrapper, function, command, config)
        return wrapper

    return decorate


def _document_options(
    wrapper: Any, function: Callable[..., Any], command: Command | None, config: type[RunConfig] | None
) -> None:
    """Put the options into the signature and the docstring."""
    if command is None:
        return
    signature = inspect.signature(function)
    declared = [parameter for parameter in signature.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    options = option_parameters(command, config)
    more = [options[name] for name in options if name not in signature.parameters]
    wrapper.__signature__ = signature.replace(parameters=[*declared, *(parameter for parameter, _ in more)])
    lines = "\n".join(f"    {parameter.name:<16} {description}" for parameter, description in more)
    wrapper.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions:\n{lines}"


def _positional_names(function: Callable[..., Any]) -> list[str]:
    """Return the names of the positional arguments; empty if their number is unlimited."""
    positional = [
        parameter for parameter in inspect.signature(function).parameters.values() if parameter.kind in _POSITIONAL
    ]
    if any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in positional):
        return []
    return [parameter.name for parameter in positional]


def _check_positional(name: str, places: list[str], args: tuple[Any, ...]) -> None:
    """Raise a TypeError with advice if a call has too many positional arguments."""
    if places and len(args) > len(places):
        first = repr(args[len(places)])
        rule = f"{name}() takes {' and '.join(places)} by place, and all else by name"
        raise TypeError(f"{rule}: {first[:40]} has none (a judge is given as model=...)")
