"""Decorators of public functions.

They list a command's options in `help`, write messages in Python's terms, and raise errors without
judge's own frames.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from inspect import Parameter
from typing import Any, ParamSpec, TypeVar, cast

from judge.config import WITH_REASONS, Command, RunConfig, json_schema, run_options
from judge.core.errors import JudgeError
from judge.core.messages import speaking_to
from judge.core.run_sync import run_sync

T = TypeVar("T")
P = ParamSpec("P")
Function = TypeVar("Function", bound=Callable[..., Any])
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_INTERRUPTED = (
    "interrupted; make the same call again to resume: the cache answers what is already paid for "
    "(with cache=False, nothing does)"
)


def python_type(schema: Mapping[str, Any]) -> str:
    """Return the type of the values that a JSON schema allows, as an annotation.

    `{"type": "array", "items": {"type": "string"}}` gives `Sequence[str]`.
    """
    if schema.get("anyOf"):
        alternatives = map(python_type, schema["anyOf"])
        return " | ".join(dict.fromkeys(alternatives))
    choices = schema.get("enum", [])
    if "const" in schema:
        choices = [schema["const"]]
    if choices:
        literals = ", ".join(map(repr, choices))
        return f"Literal[{literals}]"
    json_type = schema.get("type")
    if isinstance(json_type, list):
        return " | ".join(_TYPES[type_name] for type_name in json_type)
    if json_type in ("array", "object"):
        # An object with free keys has its values' schema here; `true` allows any value.
        items = schema.get("items") or schema.get("additionalProperties")
        inner = "Any"
        if isinstance(items, Mapping):
            inner = python_type(items)
        if json_type == "array":
            return f"Sequence[{inner}]"
        return f"Mapping[str, {inner}]"
    if schema.get("format") == "path":
        return "str | Path"
    return _TYPES.get(str(json_type), "Any")


def option_parameters(
    command: Command, config: type[RunConfig] | None
) -> dict[str, tuple[Parameter, str]]:
    """Return the options of a command as keyword arguments, with their descriptions, by name.

    `config` has their types (default: RunConfig). Defaults that are empty are shown as None.
    """
    properties = json_schema(config or RunConfig, "", "")["properties"]
    options = {}
    for option_name, option in run_options(command, config).items():
        if option_name == "data":  # a positional argument of every function
            continue
        default = None if option.default in ({}, ()) else option.default
        type_name = python_type(properties[option_name])
        parameter = Parameter(
            option_name,
            Parameter.KEYWORD_ONLY,
            default=default,
            annotation=f"{type_name} | None",
        )
        options[option_name] = (parameter, option.description)
        if option_name == "reply":
            reasons = parameter.replace(name="reasons", annotation="bool | None")
            description = f"Short for reply={WITH_REASONS!r}."
            options["reasons"] = (reasons, description)
    return options


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
                raise _bare(error) from None

        @wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            try:
                with speaking_to("python"):
                    return await function(*args, **kwargs)
            except JudgeError as error:
                raise _bare(error) from None

        wrapper: Any = call_async if inspect.iscoroutinefunction(function) else call
        if command is not None:
            _list_options(wrapper, function, option_parameters(command, config))
        return cast(Function, wrapper)

    return decorate


def _bare(error: JudgeError) -> JudgeError:
    """Return an error without judge's own frames and without the errors that it came from.

    The message is about the caller's data or options, so neither helps. IPython prints a group of
    errors as a raw traceback, even if `from None` hides it.
    """
    error.__context__ = None
    return error.with_traceback(None)


def _list_options(
    wrapper: Any,
    function: Callable[..., Any],
    options: Mapping[str, tuple[Parameter, str]],
) -> None:
    """Add the options that a function takes as `**options` to the wrapper's signature and help."""
    signature = inspect.signature(function)
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not Parameter.VAR_KEYWORD
    ]
    lines = []
    for option_name, (parameter, description) in options.items():
        if option_name not in signature.parameters:
            parameters.append(parameter)
            lines.append(f"    {option_name:<16} {description}")
    wrapper.__signature__ = signature.replace(parameters=parameters)
    option_list = "\n".join(lines)
    wrapper.__doc__ = f"{inspect.getdoc(function)}\n\nOptions:\n{option_list}"


def blocking(public: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return a public coroutine function `NAME_async` as `NAME`, which needs no event loop."""

    @wraps(public)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return run_sync(lambda: public(*args, **kwargs))
        except KeyboardInterrupt as interrupt:
            if interrupt.args:
                raise
            raise KeyboardInterrupt(_INTERRUPTED) from None

    call.__name__ = call.__qualname__ = public.__name__.removesuffix("_async")
    return public_api()(call)
