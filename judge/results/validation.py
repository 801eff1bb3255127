"""A judge against people, as every format shows it: its columns, the floors below them and the ceiling above."""

from __future__ import annotations

from dataclasses import dataclass

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.stats.correlation import LEVELS
from judge.stats.human_agreement import Rated
from judge.stats.ppi import Calibrated

FORMATS = ("console", "markdown", "json", "csv", "latex")


@dataclass(frozen=True, repr=False)
class Validation:
    """A result against people's ratings, by criterion; `notes` are what there is to know beside.

    `calibrated` are the means on people's scale, where they were asked for.
    """

    title: str
    rated: tuple[Rated, ...]
    notes: tuple[str, ...] = ()
    calibrated: tuple[Calibrated, ...] = ()

    def __repr__(self) -> str:
        named = ", ".join(f"{one.criterion} ({plural(one.texts, 'text')})" for one in self.rated)
        return f"<Validation: {named}>"

    def report(self, format: str = "console", level: str = "document", *, colour: bool = False) -> str:
        """As console (in `colour` with a terminal's codes), markdown, json, csv or latex.

        `level` is document, item or system; json and csv have every level. Raises ConfigError for another of either.
        """
        check(format, level)
        return str(plugins.report("validation")(self, format, level, colour=colour))


def check(format: str, level: str) -> None:
    """Raises ConfigError for a format or level that there is not."""
    if format not in FORMATS:
        raise ConfigError(plugins.unknown_name_message("format", format, list(FORMATS)))
    if level not in LEVELS:
        raise ConfigError(f"--level: {plugins.unknown_name_message('level', level, list(LEVELS))}")
