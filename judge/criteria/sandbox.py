"""The Jinja that templates run in: sandboxed, strict, bounded in time and memory, and without chance.

A text has 1,000,000 steps: every turn of a loop, call, filter and printed value takes one, and another for each 100
characters or entries that it makes. That is seconds and a few hundred megabytes at worst; a prompt takes hundreds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

from jinja2 import BaseLoader, Template, Undefined, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

STEPS = 1_000_000
_SIZE_PER_STEP = 100
_LARGEST = STEPS * _SIZE_PER_STEP // 10
"""Characters or entries that one operation may make, and the largest number that one may be given."""
_MAX_BITS = 10_000
_STEPS_PER_INCLUDE = 1_000
"""The steps that a template takes which another includes."""
_MULTIPLYING_FILTERS = frozenset({"expandtabs", "indent", "join", "replace", "translate", "wordwrap"})
"""What makes up to as many characters as the lengths of what it is given multiply to."""
_FORMATS = frozenset({"format", "format_map"})

_MEMORY_ADDRESS = re.compile(r"(?<![a-z])at(?: |%20|\+)0x[0-9a-f]{4}", re.IGNORECASE)
T = TypeVar("T")

_steps_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)


@contextmanager
def step_limit() -> Iterator[None]:
    """What is rendered inside has `STEPS` steps, and raises OverflowError beyond them."""
    token = _steps_left.set([STEPS])
    try:
        yield
    finally:
        _steps_left.reset(token)


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, which bounds `range` alone, with a bound on everything. `filters` are our own ones."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(
        self, loader: BaseLoader | None, undefined: type[Undefined], filters: Mapping[str, Callable[..., Any]]
    ) -> None:
        super().__init__(
            loader=loader, undefined=undefined, finalize=_finalize,
            trim_blocks=True, lstrip_blocks=True, auto_reload=False,
        )  # fmt: skip
        # Chance has no place in a prompt: equal samples must give equal requests.
        del self.filters["random"], self.globals["lipsum"]
        self.filters = {name: _guarded(name, filter) for name, filter in self.filters.items()}
        self.filters |= {**filters, "_turns": _turns, "_joined": _joined, "_made": _counted}

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise OverflowError("** is not for templates")
        if operator == "%" and isinstance(left, str | bytes):
            _refuse_wide(left, right)
        if operator == "*" and any(hasattr(side, "__len__") for side in (left, right)):
            _refuse_product(left, right)
        if operator == "*" and all(isinstance(side, int) and side.bit_length() > _MAX_BITS for side in (left, right)):
            raise OverflowError(f"numbers beyond {_MAX_BITS:,} bits are not for templates")
        result = _counted(super().call_binop(context, operator, left, right))
        return distinct_mark(result, [left, right]) if operator == "%" else result

    def call(self, context: Any, called: Any, *args: Any, **kwargs: Any) -> Any:
        """Jinja's, named as ours: what a template calls."""
        name = getattr(called, "__name__", "")
        args = _without_iterators(name, args)
        _refuse_large(name, [getattr(called, "__self__", ""), *args, *kwargs.values()])
        return _counted(super().call(context, called, *args, **kwargs))

    def get_template(self, *args: Any, **kwargs: Any) -> Template:
        _use_steps(_STEPS_PER_INCLUDE)
        return super().get_template(*args, **kwargs)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        def bounded(*args: Any, **kwargs: Any) -> str:
            _refuse_wide(value.__self__, [args, kwargs])
            return distinct_mark(wrapped(*args, **kwargs), [value.__self__, args, kwargs])

        return bounded

    def _generate(self, source: nodes.Template, name: Any, filename: Any, defer_init: bool = False) -> str:
        counted: nodes.Template = _Counting().visit(source)
        counted.set_environment(self)
        return super()._generate(counted, name, filename, defer_init)


class _Counting(NodeTransformer):
    """Puts a filter that counts around what a template can make much with."""

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        seen: nodes.Node = super().generic_visit(node, *args, **kwargs)
        if isinstance(node, nodes.For):
            printed = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
            node.iter = _filter("_turns", node.iter, nodes.Const(1 + printed // _SIZE_PER_STEP))
        elif isinstance(node, nodes.Concat):
            return _filter("_joined", nodes.List(node.nodes, lineno=node.lineno))
        elif isinstance(node, nodes.List | nodes.Dict) or (isinstance(node, nodes.Tuple) and node.ctx == "load"):
            return _filter("_made", node)
        return seen


def _filter(name: str, node: Any, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, [*args], [], None, None, lineno=node.lineno)


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter of Jinja's that refuses to make too much, and is counted."""
    injected = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        args = _without_iterators(name, args)
        _refuse_large(name, [*args[injected:], *kwargs.values()])
        return distinct_mark(_counted(function(*args, **kwargs)), [args[injected:], kwargs])

    return guarded


def _without_iterators(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is joined has to be counted first: a list in the place of what is read as it goes."""
    return tuple([*arg] if isinstance(arg, Iterator) else arg for arg in args) if name == "join" else args


def _turns(values: Iterable[Any], each: int) -> Iterator[Any]:
    """A loop's values; every one takes `each` steps."""
    turns = iter(values)

    def counted() -> Iterator[Any]:
        for value in turns:
            _use_steps(each)
            yield value

    return counted()


def _joined(parts: list[Any]) -> str:
    texts = [part if isinstance(part, str) else distinct_mark(str(part), [part]) for part in parts]
    _use_steps(1 + sum(map(len, texts)) // _SIZE_PER_STEP)
    return "".join(texts)


def _finalize(value: Any) -> Any:
    """What is put into the prompt for a value."""
    if isinstance(_counted(value), str | Undefined):
        return value
    return distinct_mark(str(value), [value])


def distinct_mark(result: T, inputs: Iterable[Any]) -> T:
    """What was made of the values that were given.

    Raises ValueError for a text with an object's place in memory, which none of them has: it would be another in every
    run, and equal samples must give equal requests.
    """
    if (
        isinstance(result, str)
        and _MEMORY_ADDRESS.search(result)
        and not any(map(_MEMORY_ADDRESS.search, _texts(inputs)))
    ):
        raise ValueError("would print an object's place in memory: give a method its brackets, a filter |list")
    return result


def _texts(values: Iterable[Any]) -> Iterator[str]:
    pending = [*values]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            pending += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple):
            pending += value


def _counted(value: Any) -> Any:
    """A value that was just made, counted with all that it holds."""
    if isinstance(value, str):
        _use_steps(1 + len(value) // _SIZE_PER_STEP)
        return value
    pending = [value]
    while pending:
        part = pending.pop()
        size = len(part) if isinstance(part, str | bytes | list | tuple | Mapping) else 0
        _use_steps(1 + size // _SIZE_PER_STEP)
        if isinstance(part, Mapping):
            pending += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple):
            pending += part
    return value


def _use_steps(count: int) -> None:
    if count > _LARGEST // _SIZE_PER_STEP:
        raise OverflowError(f"would make more than {_LARGEST:,} characters or entries")
    remaining = _steps_left.get()
    if remaining is None:  # while reading, when each operation on constants is counted alone
        return
    remaining[0] -= count
    if remaining[0] < 0:
        raise OverflowError(f"takes more than {STEPS:,} steps; templates are to be short")


def _refuse_large(name: str, values: list[Any]) -> None:
    """Raises OverflowError for what would make too much of what it is given."""
    if name != "safe_range" and any(isinstance(value, int | float) and abs(value) > _LARGEST for value in values):
        raise OverflowError(f"{name} takes no number beyond {_LARGEST:,}")
    if name in _MULTIPLYING_FILTERS:
        _refuse_product(*values)
    elif name in _FORMATS and values:
        _refuse_wide(values[0], values[1:])


def _refuse_product(*values: Any) -> None:
    """What is as long as the sizes of two values multiply to."""
    first, *others = sorted(map(_size, values), reverse=True)
    if first * max(others, default=1) > _LARGEST:
        raise OverflowError(f"would make more than {_LARGEST:,} characters or entries")


def _size(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    if isinstance(value, int):
        return min(abs(value), _LARGEST)
    return len(value) if hasattr(value, "__len__") else 1


def _refuse_wide(form: Any, values: Any) -> None:
    """A format whose widths and precisions are together too large, written out or given as values."""
    text = form.decode("latin-1") if isinstance(form, bytes) else str(form)
    widths = [int(number[:20]) for number in re.findall(r"\d+", text)]
    fields = text.count("{") + text.count("*")
    pending, largest = [values], 0
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            pending += value.values()
        elif isinstance(value, list | tuple):
            pending += value
        elif isinstance(value, int):
            largest = max(largest, abs(value))
    if sum(widths) + fields * min(largest, _LARGEST + 1) > _LARGEST:
        raise OverflowError(f"would make more than {_LARGEST:,} characters")
