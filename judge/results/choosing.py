"""The result of `judge.choose`: for each criterion the candidates, which agrees best with people, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from judge.core import plugins
from judge.core.records import Estimate
from judge.stats.coefficients import Level

Kind = Literal["judge", "panel", "baseline"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A judge, the mean of several judges, or a baseline, on one criterion.

    `value` is Spearman with people's ratings, `share` how often resamples chose it, and `behind` the chosen one's
    Spearman minus its own, with a simultaneous interval. `price` is in US dollars per 1,000 texts and `seconds` the
    mean time of a request; both are None if unknown. Of `judged` rated texts `failed` have no score.
    """

    name: str
    kind: Kind
    members: tuple[str, ...]
    value: float | None
    share: float
    behind: Estimate | None
    price: float | None
    seconds: float | None
    judged: int
    failed: int

    @property
    def readable(self) -> float:
        """The share of the judged texts that have a score."""
        return 1 - self.failed / self.judged if self.judged else 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for a criterion, on `items` rated items with `texts` texts; see `judge.stats.selection`.

    `honest` is the agreement to expect of the chosen candidate on other items, `naive` the one on the items that chose
    it. `recommended` is the cheapest judge or panel that is not significantly worse. `more_items` are the rated items
    that would settle the choice against `runner_up`. `lacking` says why nothing could be chosen; `honest` is then None.
    `excluded` counts ratings that were used to make a prompt.
    """

    criterion: str
    level: Level
    texts: int
    items: int = 0
    candidates: tuple[Candidate, ...] = ()
    chosen: str = ""
    honest: Estimate | None = None
    naive: float | None = None
    recommended: str = ""
    runner_up: str = ""
    more_items: int | None = None
    lacking: str = ""
    excluded: int = 0

    @property
    def by_name(self) -> Mapping[str, Candidate]:
        return {candidate.name: candidate for candidate in self.candidates}

    @property
    def optimism(self) -> float | None:
        """How much better the chosen candidate looks on the items that chose it."""
        return None if self.honest is None or self.naive is None else self.naive - self.honest.value

    @property
    def not_worse(self) -> tuple[Candidate, ...]:
        """The candidates that are not significantly worse than the chosen one."""
        return tuple(c for c in self.candidates if c.behind and c.behind.low is not None and c.behind.low <= 0)


@dataclass(frozen=True, repr=False)
class Choices(plugins.Reported):
    """Which judge, prompt or panel agrees best with people, by criterion. `notes` are warnings about the data."""

    title: str
    choices: tuple[Choice, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        named = (f"{choice.criterion}: {choice.chosen or 'none'}" for choice in self.choices)
        return f"<Choices: {', '.join(named)}>"
