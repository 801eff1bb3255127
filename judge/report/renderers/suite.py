"""Outcomes in every format."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.report.renderers import suite_console, suite_json, suite_junit, suite_markdown
from judge.suite.records import Outcome

_RENDER: dict[str, Callable[[Sequence[Outcome]], str]] = {
    "markdown": suite_markdown.render,
    "json": suite_json.render,
    "junit": suite_junit.render,
}


def render(outcomes: Sequence[Outcome], format: str, *, colour: bool) -> str:
    """Raises ConfigError for a format that there is not."""
    if format == "console":
        return suite_console.render(outcomes, colour=colour)
    if format not in _RENDER:
        raise ConfigError(plugins.unknown("format", format, ["console", *_RENDER]))
    return _RENDER[format](outcomes)
