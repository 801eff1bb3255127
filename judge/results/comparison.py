"""The results of `judge.compare` (two runs on the same texts) and `judge.diff` (two wordings of a criterion)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.records import Column, Criterion, Estimate
from judge.results.result import Result
from judge.stats.coefficients import Level
from judge.stats.power import ALPHA
from judge.stats.run_differences import Runs

FORMATS = ("console", "markdown", "html", "json")
DIFF_FORMATS = ("console", "markdown", "json")
PLACES = 3
"""Decimals of a correlation."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is not the same about how the runs were made; `columns` are those it is about, none for all.

    `diff` are the lines of the two prompts that differ, in the unified form.
    """

    what: str
    before: str
    after: str
    columns: tuple[str, ...] = ()
    diff: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class RunComparison:
    """What `judge.compare` gives: the two results, called by `names`, and what moved between them.

    `changes` are what is different about how they were made, `notes` what there is to know besides.
    """

    names: tuple[str, str]
    before: Result
    after: Result
    runs: Runs
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        rows = [row for row in self.runs.moved if row.system]
        changed, every = sum(row.up + row.down for row in rows), sum(row.up + row.down + row.same for row in rows)
        means = f"{sum(row.moved for row in rows)} of {plural(len(rows), 'mean')} moved beyond chance"
        return f"<RunComparison: {changed:,} of {every:,} values differ, {means}>"

    def _repr_html_(self) -> str:
        """What moved, for notebooks."""
        return str(plugins.report("notebook_comparison")(self))

    def report(self, format: str = "console", *, colour: bool = False) -> str:
        """As console (in `colour` with a terminal's codes), markdown, html or json. Raises ConfigError for another."""
        check(format)
        return str(plugins.report("comparison")(self, format, colour=colour))

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The columns of the second run by name."""
        return {column.name: column for column in self.after.table.columns}


def check(format: str) -> None:
    """Raises ConfigError for a format that there is not."""
    if format not in FORMATS:
        raise ConfigError(plugins.unknown_name_message("format", format, list(FORMATS)))


@dataclass(frozen=True, slots=True)
class PromptDifference:
    """One difference between two prompts: how many texts have it, and its `lines` in the unified form.

    `⟨output⟩` and the like stand for what differs from text to text, `⟨key⟩` for what the marks around it carry.
    """

    texts: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prompts:
    """Both criteria's prompts on the same texts, or pairs of them where two are compared.

    Of `texts` on `items`, `differ` (of `items_differ`) have another prompt. `ways` are the differences, the most common
    first; several only where a template words the prompts of some texts in another way. `tokens` are the means of what
    a prompt has (estimated), before and after. `cost` is what 1,000 judgments cost by all judges (US dollars, nothing
    cached, replies guessed by their kind), None where there is no price; `priced` says where it is from, or why not.
    """

    texts: int
    items: int
    differ: int
    items_differ: int
    ways: tuple[PromptDifference, ...]
    tokens: tuple[float, float]
    cost: tuple[float, float] | None = None
    priced: str = ""


@dataclass(frozen=True, slots=True)
class FlipCount:
    """How many `of` so many (texts, or pairs) came out the other way: counted, not estimated."""

    what: str
    turned: int
    of: int


@dataclass(frozen=True, slots=True)
class RankChange:
    """A system that has another rank now: before and after the rank (1 the best) and what tests leave of it."""

    system: str
    before: tuple[int, int, int]
    after: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Spearman with people's ratings at one level, before and after, and the difference, on the texts of all three.

    Between the systems of an item, `difference` is the mean over items of the differences in rho, with the p of a
    sign-flip test; at the other levels it has an interval alone. None where it is undefined.
    """

    level: Level
    before: Estimate
    after: Estimate
    difference: Estimate | None

    @property
    def is_significant(self) -> bool:
        """Whether the difference is told apart from none."""
        difference = self.difference
        if difference is None or difference.low is None or difference.high is None:
            return False
        if difference.p is not None:
            return difference.p < ALPHA
        return round(difference.low, PLACES) > 0 or round(difference.high, PLACES) < 0  # as they are shown


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge made of both: `failed` of so many judgments, before and after.

    `comparison` is None where no text has a score by both. `rating` is the column of people's ratings, `agreement` what
    is known of it by level; `lacking` says why there is none. `level` is the one that the verdict is about.
    """

    judgments: tuple[int, int]
    failed: tuple[int, int]
    comparison: RunComparison | None
    turned: tuple[FlipCount, ...] = ()
    places: tuple[RankChange, ...] = ()
    rating: str = ""
    agreement: tuple[Agreement, ...] = ()
    lacking: str = ""
    level: Level = "document"

    @property
    def leading(self) -> Agreement | None:
        """The agreement that the verdict is about."""
        return next((agreement for agreement in self.agreement if agreement.level == self.level), None)


@dataclass(frozen=True, repr=False)
class CriterionDiff:
    """Two criteria, called by `names`: what differs in their files, on data in their prompts, by a judge in its scores.

    `changes` are the header's and what follows from it, `diff` the lines of the files and of their layouts that differ.
    """

    names: tuple[str, str]
    criteria: tuple[Criterion, Criterion]
    changes: tuple[Change, ...]
    diff: tuple[str, ...]
    prompts: Prompts | None = None
    judged: Judged | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<CriterionDiff: {' → '.join(self.names)}. {next(plugins.report('criterion_diff_sentences')(self), '')}>"
        )

    def _repr_html_(self) -> str:
        """What differs, for notebooks."""
        return str(plugins.report("notebook_criterion_diff")(self))

    @property
    def failed(self) -> int:
        """Judgments that failed, of both."""
        return sum(self.judged.failed) if self.judged else 0

    def report(self, format: str = "console", *, colour: bool = False) -> str:
        """As console (in `colour` with a terminal's codes), markdown or json. Raises ConfigError for another format."""
        check_diff_format(format)
        return str(plugins.report("criterion_diff")(self, format, colour=colour))


def check_diff_format(format: str) -> None:
    """Raises ConfigError for a format that there is not."""
    if format not in DIFF_FORMATS:
        raise ConfigError(plugins.unknown_name_message("format", format, list(DIFF_FORMATS)))
