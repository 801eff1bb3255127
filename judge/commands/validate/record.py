"""The result of `judge.validate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.messages import option
from judge.stats.calibration import Calibrated
from judge.stats.coefficients import LEVELS, Level
from judge.stats.disagreements import Disagreements
from judge.stats.human_agreement import Rated
from judge.stats.pairwise_agreement import PreferenceAgreement
from judge.stats.pass_rates import CalibratedPassRates


@dataclass(frozen=True, repr=False)
class Validation(plugins.Reported):
    """The agreement of judges with people.

    - `rated`: the agreement by criterion; of a ranking, `preferences` instead.
    - `calibrated`, `pass_rates`: means on people's scale and pass rates by people's verdicts, if
      requested.
    - `level`: the level of correlation that reports show.
    - `notes`: warnings about the data.
    """

    VIEW: ClassVar[str] = "judge.commands.validate.view:view"

    title: str
    rated: tuple[Rated, ...]
    notes: tuple[str, ...] = ()
    calibrated: tuple[Calibrated, ...] = ()
    level: Level = "within-items"
    preferences: tuple[PreferenceAgreement, ...] = ()
    disagreements: tuple[Disagreements, ...] = ()
    pass_rates: tuple[CalibratedPassRates, ...] = ()

    def __repr__(self) -> str:
        criteria = []
        for rated in self.rated:
            texts = plural(rated.texts, "text")
            criteria.append(f"{rated.criterion} ({texts})")
        if not criteria:
            criteria = [agreement.criterion for agreement in self.preferences]
        names = ", ".join(criteria)
        return f"<Validation: {names}>"


# An error for a former name says the new one.
_FORMER_LEVELS = {"document": "within-items", "item": "all-texts", "system": "systems"}


def check_level(level: str) -> Level:
    """Return the level. Raises ConfigError if it is unknown."""
    for known_level in LEVELS:
        if level == known_level:
            return known_level
    if level in _FORMER_LEVELS:
        new_name = _FORMER_LEVELS[level]
        raise ConfigError(f"{option('level')}: {level!r} is called {new_name}")
    message = plugins.unknown_name_message("level", level, list(LEVELS))
    raise ConfigError(f"{option('level')}: {message}")
