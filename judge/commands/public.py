"""Decorators of public functions: options listed in `help`, messages in Python's terms, errors without our frames."""

from __future__ import annotations

import asyncio
import inspect
import textwrap
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import wraps
from inspect import Parameter
from typing import Any, ForwardRef, ParamSpec, TypeVar

from judge.config import DEFAULT_CRITERIA, RunConfig
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


LINES: Mapping[str, str] = {
    "map": "the data's columns by our names: {'output': 'reply', 'item': 'ticket', 'human.relevance': 'rating'}",
    "systems": "the columns that hold one system's texts each, where a row has several",
    "where": "only rows whose columns have these values: {'channel': 'email'}",
    "limit": "only so many texts, from the first",
    "language": "the prompts' language: en, ja, ko or zh; None: that of the data",
    "base_url": "the address of an OpenAI-compatible server",
    "key_env": "the environment variable that holds the server's key",
    "weighting": "how a score is made: auto, logprobs, decisions, samples or single",
    "draws": "replies drawn where a score is the mean of samples",
    "min_mass": "the least probability on the scale's labels with which a score counts",
    "reply": "score, score_then_reason or reason_then_score; None: as each criterion says",
    "structured": "ask for replies as JSON objects",
    "temperature": "of the judge; None: 1 where replies are drawn, else 0",
    "max_tokens": "the longest reply; None: by the kind of reply",
    "max_concurrency": "requests under way at once",
    "timeout": "seconds for one reply",
    "retries": "tries after a failed first one",
    "rpm": "the most requests a minute",
    "tpm": "the most tokens a minute",
    "deadline": "the most seconds that judging may take; the run then stops and can be gone on with",
    "budget": "the most that new requests may cost: '5usd', '200000tokens'",
    "cache": "a folder or a redis:// address for replies; None: the default folder; False: none",
    "replay": "a recording whose replies stand in for the judge's",
    "record": "where to write down what the judge replies",
    "seed": "of all that is drawn",
    "metrics": "'rouge', ['rouge', 'chrf'] or [] for none; None: rouge, bleu and chrf where there are references",
    "set": "options of metrics: {'rouge': {'stem': False}}",
    "workers": "processes that measure",
    "merge_criteria": "ask about all criteria of a text in one request",
    "engine": "where requests run: local, batch or ray",
    "ray_workers": "processes that send requests with engine='ray'",
    "retry_failed": "ask again only for what failed in the run in `out`",
    "calibrate": "bring the means to people's scale by the ratings that some texts have",
    "out": "a folder for the result: tables, run.json and the report",
    "orders": "2: each pair of texts is shown both ways round; 1: one way",
    "pairs": "the most pairs of texts to compare",
    "model": "the judge, as in judge.evaluate",
    "criteria": "names or files in the place of the suites' criteria of the same name",
    "progress": "True for a line that says how far it is",
    "cases": "only the cases in whose name this text stands, or with these names",
    "baseline": "a run, or a folder of runs by suite, to hold this one against",
    "update_baseline": "put this run in the baseline's place",
    "undecided": "what a case counts as that the numbers leave open",
}
_HIDDEN = ("mapping",)
"""Alias of `map`."""


def parameters(options: type, config: type | None = None) -> Iterator[Parameter]:
    """Yield the keys of a TypedDict as keyword arguments, with the defaults of the plan, or None."""
    of_plan: type[RunConfig] = config or RunConfig
    defaults = {field.alias or name: field.get_default(call_default_factory=True) for name, field in
                of_plan.model_fields.items()}  # fmt: skip
    for name, kind in options.__annotations__.items():
        if name not in _HIDDEN:
            annotation = kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind
            default = defaults.get(name)
            if default in ({}, (), DEFAULT_CRITERIA):
                default = None
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def options_help(names: Iterable[str]) -> str:
    """Return an indented line for each option."""
    rows = [
        textwrap.fill(LINES[name], 110, initial_indent=f"    {name:<16} ", subsequent_indent=" " * 21) for name in names
    ]
    return "\n".join(rows)


P = ParamSpec("P")
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)


def public_api(options: type | None = None, config: type | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a public function: a JudgeError ends at the caller's line, with messages in Python's terms.

    `options` is the TypedDict of its keyword arguments. The signature and help then list them, with the defaults of
    the `plan`.
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

        _document_options(wrapper, function, options, config)
        return wrapper

    return decorate


def async_public_api(
    options: type | None = None, config: type | None = None
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

        _document_options(wrapper, function, options, config)
        return wrapper

    return decorate


def _document_options(wrapper: Any, function: Callable[..., Any], options: type | None, config: type | None) -> None:
    """Put the options into the signature and the docstring."""
    if options is None:
        return
    signature = inspect.signature(function)
    declared = [parameter for parameter in signature.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
    more = [parameter for parameter in parameters(options, config) if parameter.name not in signature.parameters]
    wrapper.__signature__ = signature.replace(parameters=[*declared, *more])
    wrapper.__doc__ = (
        f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions:\n{options_help(parameter.name for parameter in more)}"
    )


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
