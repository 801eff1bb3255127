"""Decorators of public functions: options listed in `help`, messages in Python's terms, errors
without our frames.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from inspect import Parameter
from typing import Any, ParamSpec, TypeVar, cast

from judge.config import Command, RunConfig, json_schema, run_options
from judge.core.errors import JudgeError
from judge.core.messages import speaking_to
from judge.core.run_sync import run_sync

T = TypeVar("T")
P = ParamSpec("P")


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


def option_parameters(
    command: Command, config: type[RunConfig] | None
) -> dict[str, tuple[Parameter, str]]:
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


Function = TypeVar("Function", bound=Callable[..., Any])


def public_api(
    command: Command | None = None, config: type[RunConfig] | None = None
) -> Callable[[Function], Function]:
    """Decorate a public function, also a coroutine function.

    A JudgeError ends at the caller's line, with messages in Python's terms. The signature and help
    list the options that the `command` takes.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                with speaking_to("python"):
                    return function(*args, **kwargs)
            except JudgeError as error:
                raised = error
            raise raised.with_traceback(None) from None

        @wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            try:
                with speaking_to("python"):
                    return await function(*args, **kwargs)
            except JudgeError as error:
                raised = error
            raise raised.with_traceback(None) from None

        wrapper: Any = call_async if inspect.iscoroutinefunction(function) else call
        if command is not None:
            signature = inspect.signature(function)
            parameters = [
                part
                for part in signature.parameters.values()
                if part.kind is not Parameter.VAR_KEYWORD
            ]
            options = option_parameters(command, config)
            more = [option for name, option in options.items() if name not in signature.parameters]
            wrapper.__signature__ = signature.replace(
                parameters=[*parameters, *(parameter for parameter, _ in more)]
            )
            lines = "\n".join(
                f"    {parameter.name:<16} {description}" for parameter, description in more
            )
            wrapper.__doc__ = f"{inspect.getdoc(function)}\n\nOptions:\n{lines}"
        return cast(Function, wrapper)

    return decorate


def blocking(public: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return the form of a public coroutine function `NAME_async` for callers without an event
    loop: `NAME`.
    """

    @wraps(public)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_sync(lambda: public(*args, **kwargs))

    call.__name__ = call.__qualname__ = public.__name__.removesuffix("_async")
    return public_api()(call)
