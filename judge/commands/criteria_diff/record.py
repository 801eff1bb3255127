"""The result of `judge.diff`: two wordings of a criterion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from judge.core import plugins
from judge.core.records import Criterion, Estimate
from judge.results.comparison import Change, RunComparison
from judge.stats.coefficients import Level
from judge.stats.power import ALPHA

PLACES = 3
"""Decimals of a correlation."""


@dataclass(frozen=True, slots=True)
class PromptDifference:
    """A difference between two prompts, as lines of a unified diff, and the number of texts that
    have it.
    """

    texts: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of two criteria on the same texts (or pairs of texts, for criteria that compare
    two).

    Of `texts` on `items`, `differ` (on `items_differ`) have different prompts. `differences` has
    the most common first. `tokens` are estimated means per prompt, before and after. `cost` is that
    of 1,000 judgments by all judges (US dollars, without cache, with estimated replies), None if a
    price is unknown; `price_source` names the source of the prices or says why one is unknown.
    """

    texts: int
    items: int
    differ: int
    items_differ: int
    differences: tuple[PromptDifference, ...]
    tokens: tuple[float, float]
    cost: tuple[float, float] | None = None
    price_source: str = ""


@dataclass(frozen=True, slots=True)
class FlipCount:
    """How many of `total` texts or pairs came out differently."""

    name: str
    flipped: int
    total: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Spearman's correlation with people's ratings at a level, before and after, and the
    difference, on shared texts.

    At level `within-items`, `difference` is the mean over items of the differences in rho, with the
    p of a sign-flip test; at the other levels it has only an interval. It is None if it is
    undefined.
    """

    level: Level
    before: Estimate
    after: Estimate
    difference: Estimate | None

    @property
    def is_significant(self) -> bool:
        """Whether the difference is significant."""
        difference = self.difference
        if difference is not None and difference.p is not None:
            return difference.p < ALPHA
        if difference is None or difference.low is None or difference.high is None:
            return False
        # The ends are compared as the reader sees them.
        return round(difference.low, PLACES) > 0 or round(difference.high, PLACES) < 0


@dataclass(frozen=True, slots=True)
class Judged:
    """The scores of a judge with both criteria. Pairs are before and after.

    `comparison` is None if no text has both scores. `rating` names the column of people's ratings,
    `agreement` has a record per level, or else `no_agreement` says why not. `level` is the one of
    the verdict.
    """

    judgments: tuple[int, int]
    failed: tuple[int, int]
    comparison: RunComparison | None
    flips: tuple[FlipCount, ...] = ()
    rating: str = ""
    agreement: tuple[Agreement, ...] = ()
    no_agreement: str = ""
    level: Level = "within-items"

    @property
    def leading(self) -> Agreement | None:
        """The agreement of the verdict."""
        for agreement in self.agreement:
            if agreement.level == self.level:
                return agreement
        return None


@dataclass(frozen=True, repr=False)
class CriterionDiff(plugins.Reported):
    """The result of `judge.diff`: two criteria, their prompts on some texts, and a judge's scores.

    `changes` are the changes of the header and their consequences. `diff` has the lines that differ
    in files and layouts.
    """

    VIEW: ClassVar[str] = "judge.commands.criteria_diff.view:view"

    names: tuple[str, str]
    criteria: tuple[Criterion, Criterion]
    changes: tuple[Change, ...]
    diff: tuple[str, ...]
    prompts: Prompts | None = None
    judged: Judged | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        names = " → ".join(self.names)
        headline = plugins.document(self).finding[0]
        return f"<CriterionDiff: {names}. {headline}>"

    @property
    def failed(self) -> int:
        """Number of failed judgments with either criterion."""
        return sum(self.judged.failed) if self.judged else 0
