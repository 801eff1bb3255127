"""docs/reference.md is what the docstrings say. JUDGE_GOLDEN=write pytest tests/docs/test_reference.py writes it."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import judge

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"
HEAD = """# Reference

Every public name, from its docstring. [From Python](python.md) shows them at work; `help(judge.evaluate)` says the same
in a notebook. Metrics are in [metrics.md](metrics.md) by definition, below by signature.
"""


class _Plain(str):
    """An annotation that is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _signature(name: str, found: Any) -> str:
    """One line where it fits, else one for each parameter."""
    read = inspect.signature(found)
    parameters = [
        one if one.annotation is one.empty else one.replace(annotation=_Plain(one.annotation))
        for one in read.parameters.values()
    ]
    returned = read.empty if inspect.isclass(found) or read.return_annotation is read.empty else read.return_annotation
    signature = read.replace(
        parameters=parameters, return_annotation=returned if returned is read.empty else _Plain(returned)
    )
    short = f"{name}{signature}".replace("<factory>", "...")
    if len(short) <= 110:
        return short
    lines, starred = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            lines.append("*")
            starred = True
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        lines.append(str(parameter).replace("<factory>", "..."))
    arrow = "" if returned is read.empty else f" -> {returned}"
    return f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + f"){arrow}"


def _entry(name: str, found: Any, depth: int) -> Iterator[str]:
    """A name's heading, signature and docstring; a class's public methods and properties after it."""
    yield f"{'#' * depth} `{name}`"
    is_error = inspect.isclass(found) and issubclass(found, Exception)
    if callable(found) and not is_error:
        yield f"```\n{_signature(name, found)}\n```"
    yield re.sub(r"^(\S.*)\n(    )", r"\1\n\n\2", inspect.getdoc(found) or "", flags=re.MULTILINE)
    if not inspect.isclass(found) or is_error:
        return
    for part, value in vars(found).items():
        own = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if part.startswith("_") or not (inspect.isfunction(own) or isinstance(own, property)):
            continue
        shown = own.fget if isinstance(own, property) else own
        if inspect.getdoc(shown):
            yield from _entry(f"{name}.{part}", own, depth + 1) if inspect.isfunction(own) else (
                f"{'#' * (depth + 1)} `{name}.{part}`", inspect.getdoc(shown) or ""
            )  # fmt: skip


def _metrics() -> Iterator[tuple[str, Any]]:
    """The functions for lists of texts."""
    for module in judge.metrics._MODULES:
        found = getattr(judge.metrics, module)
        for name in found.__all__:
            if inspect.isfunction(getattr(found, name)):
                yield f"judge.metrics.{module}.{name}", getattr(found, name)


def page() -> str:
    """The whole page."""
    blocks = [HEAD]
    for name in judge.__all__:
        found = getattr(judge, name)
        if callable(found):
            blocks += _entry(f"judge.{name}", found, 2)
    blocks.append("## `judge.metrics`")
    for name, found in _metrics():
        blocks += _entry(name, found, 3)
    return "\n\n".join(block.strip() for block in blocks if block) + "\n"


def test_the_reference_says_what_the_docstrings_say() -> None:
    if os.environ.get("JUDGE_GOLDEN") == "write":
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_public_name_says_what_it_is() -> None:
    silent = [name for name in judge.__all__ if callable(getattr(judge, name)) and not getattr(judge, name).__doc__]
    assert silent == []
