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
_FOR_A_STEP = 100
_LARGEST = STEPS * _FOR_A_STEP // 10
"""Characters or entries that one operation may make, and the largest number that one may be given."""
_BITS = 10_000
_FOR_A_FILE = 1_000
"""The steps that a template takes which another includes."""
_MANY_OF_FEW = frozenset({"expandtabs", "indent", "join", "replace", "translate", "wordwrap"})
"""What makes up to as many characters as the lengths of what it is given multiply to."""
_FORMATS = frozenset({"format", "format_map"})

_PLACE = re.compile(r"(?<![a-z])at(?: |%20|\+)0x[0-9a-f]{4}", re.IGNORECASE)
T = TypeVar("T")

_left: ContextVar[list[int] | None] = ContextVar("_left", default=None)


@contextmanager
def step_limit() -> Iterator[None]:
    """What is rendered inside has `STEPS` steps, and raises OverflowError beyond them."""
    token = _left.set([STEPS])
    try:
        yield
    finally:
        _left.reset(token)


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, which bounds `range` alone, with a bound on everything. `filters` are our own ones."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})

    def __init__(
        self, loader: BaseLoader | None, undefined: type[Undefined], filters: Mapping[str, Callable[..., Any]]
    ) -> None:
        super().__init__(
            loader=loader, undefined=undefined, finalize=_printed,
            trim_blocks=True, lstrip_blocks=True, auto_reload=False,
        )  # fmt: skip
        # Chance has no place in a prompt: equal samples must give equal requests.
        del self.filters["random"], self.globals["lipsum"]
        self.filters = {name: _guarded(name, filter) for name, filter in self.filters.items()}
        self.filters |= {**filters, "_turns": _turns, "_joined": _joined, "_made": _made}

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise OverflowError("** is not for templates")
        if operator == "%" and isinstance(left, str | bytes):
            _refuse_wide(left, right)
        if operator == "*" and any(hasattr(side, "__len__") for side in (left, right)):
            _refuse_product(left, right)
        if operator == "*" and all(isinstance(side, int) and side.bit_length() > _BITS for side in (left, right)):
            raise OverflowError(f"numbers beyond {_BITS:,} bits are not for templates")
        made = _made(super().call_binop(context, operator, left, right))
        return distinct_mark(made, [left, right]) if operator == "%" else made

    def call(self, context: Any, called: Any, *args: Any, **kwargs: Any) -> Any:
        """Jinja's, named as ours: what a template calls."""
        name = getattr(called, "__name__", "")
        args = _listed(name, args)
        _refuse(name, [getattr(called, "__self__", ""), *args, *kwargs.values()])
        return _made(super().call(context, called, *args, **kwargs))

    def get_template(self, *args: Any, **kwargs: Any) -> Template:
        _take(_FOR_A_FILE)
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
            node.iter = _filter("_turns", node.iter, nodes.Const(1 + printed // _FOR_A_STEP))
        elif isinstance(node, nodes.Concat):
            return _filter("_joined", nodes.List(node.nodes, lineno=node.lineno))
        elif isinstance(node, nodes.List | nodes.Dict) or (isinstance(node, nodes.Tuple) and node.ctx == "load"):
            return _filter("_made", node)
        return seen


def _filter(name: str, node: Any, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, [*args], [], None, None, lineno=node.lineno)


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter of Jinja's that refuses to make too much, and is counted."""
    given = 1 if hasattr(function, "jinja_pass_arg") else 0

    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        args = _listed(name, args)
        _refuse(name, [*args[given:], *kwargs.values()])
        return distinct_mark(_made(function(*args, **kwargs)), [args[given:], kwargs])

    return guarded


def _listed(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is joined has to be counted first: a list in the place of what is read as it goes."""
    return tuple([*arg] if isinstance(arg, Iterator) else arg for arg in args) if name == "join" else args


def _turns(values: Iterable[Any], each: int) -> Iterator[Any]:
    """A loop's values; every one takes `each` steps."""
    turns = iter(values)

    def counted() -> Iterator[Any]:
        for value in turns:
            _take(each)
            yield value

    return counted()


def _joined(parts: list[Any]) -> str:
    texts = [part if isinstance(part, str) else distinct_mark(str(part), [part]) for part in parts]
    _take(1 + sum(map(len, texts)) // _FOR_A_STEP)
    return "".join(texts)


def _printed(value: Any) -> Any:
    """What is put into the prompt for a value."""
    if isinstance(_made(value), str | Undefined):
        return value
    return distinct_mark(str(value), [value])


def distinct_mark(made: T, given: Iterable[Any]) -> T:
    """What was made of the values that were given.

    Raises ValueError for a text with an object's place in memory, which none of them has: it would be another in every
    run, and equal samples must give equal requests.
    """
    if isinstance(made, str) and _PLACE.search(made) and not any(map(_PLACE.search, _texts(given))):
        raise ValueError("would print an object's place in memory: give a method its brackets, a filter |list")
    return made


def _texts(given: Iterable[Any]) -> Iterator[str]:
    held = [*given]
    while held:
        one = held.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            held += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            held += one


def _made(value: Any) -> Any:
    """A value that was just made, counted with all that it holds."""
    if isinstance(value, str):
        _take(1 + len(value) // _FOR_A_STEP)
        return value
    held = [value]
    while held:
        one = held.pop()
        size = len(one) if isinstance(one, str | bytes | list | tuple | Mapping) else 0
        _take(1 + size // _FOR_A_STEP)
        if isinstance(one, Mapping):
            held += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            held += one
    return value


def _take(count: int) -> None:
    if count > _LARGEST // _FOR_A_STEP:
        raise OverflowError(f"would make more than {_LARGEST:,} characters or entries")
    left = _left.get()
    if left is None:  # while reading, when each operation on constants is counted alone
        return
    left[0] -= count
    if left[0] < 0:
        raise OverflowError(f"takes more than {STEPS:,} steps; templates are to be short")


def _refuse(name: str, given: list[Any]) -> None:
    """Raises OverflowError for what would make too much of what it is given."""
    if name != "safe_range" and any(isinstance(one, int | float) and abs(one) > _LARGEST for one in given):
        raise OverflowError(f"{name} takes no number beyond {_LARGEST:,}")
    if name in _MANY_OF_FEW:
        _refuse_product(*given)
    elif name in _FORMATS and given:
        _refuse_wide(given[0], given[1:])


def _refuse_product(*given: Any) -> None:
    """What is as long as the sizes of two values multiply to."""
    first, *others = sorted(map(_size, given), reverse=True)
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
    held, largest = [values], 0
    while held:
        one = held.pop()
        if isinstance(one, Mapping):
            held += one.values()
        elif isinstance(one, list | tuple):
            held += one
        elif isinstance(one, int):
            largest = max(largest, abs(one))
    if sum(widths) + fields * min(largest, _LARGEST + 1) > _LARGEST:
        raise OverflowError(f"would make more than {_LARGEST:,} characters")
