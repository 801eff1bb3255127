"""Outcomes in every format."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from judge import registry
from judge.errors import ConfigError
from judge.suite import console, junit, markdown, plain
from judge.suite.records import Outcome

_RENDER: dict[str, Callable[[Sequence[Outcome]], str]] = {
    "markdown": markdown.render,
    "json": plain.render,
    "junit": junit.render,
}


def render(outcomes: Sequence[Outcome], format: str, *, colour: bool) -> str:
    """Raises ConfigError for a format that there is not."""
    if format == "console":
        return console.render(outcomes, colour=colour)
    if format not in _RENDER:
        raise ConfigError(registry.unknown("format", format, ["console", *_RENDER]))
    return _RENDER[format](outcomes)
