"""Two wordings of a criterion side by side, as every format shows them: their texts, their prompts, their scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from judge.core.errors import ConfigError
from judge.core.format import chance, count, decimals, signed, span
from judge.core.plugins import unknown
from judge.core.records import Criterion, Estimate
from judge.report.views.comparison import Change, RunComparison
from judge.stats.correlation import OVER, UNITS, Level
from judge.stats.power import ALPHA, takes

FORMATS = ("console", "markdown", "json")
PLACES = 3
"""Decimals of a correlation."""
_FAR = 100_000  # items, beyond which no one would go


@dataclass(frozen=True, slots=True)
class Differing:
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
    ways: tuple[Differing, ...]
    tokens: tuple[float, float]
    cost: tuple[float, float] | None = None
    priced: str = ""


@dataclass(frozen=True, slots=True)
class Turned:
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
    def told(self) -> bool:
        """Whether the difference is told apart from none."""
        found = self.difference
        if found is None or found.low is None or found.high is None:
            return False
        if found.p is not None:
            return found.p < ALPHA
        return round(found.low, PLACES) > 0 or round(found.high, PLACES) < 0  # as they are shown


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge made of both: `failed` of so many judgments, before and after.

    `comparison` is None where no text has a score by both. `rating` is the column of people's ratings, `agreement` what
    is known of it by level; `lacking` says why there is none. `level` is the one that the verdict is about.
    """

    judgments: tuple[int, int]
    failed: tuple[int, int]
    comparison: RunComparison | None
    turned: tuple[Turned, ...] = ()
    places: tuple[RankChange, ...] = ()
    rating: str = ""
    agreement: tuple[Agreement, ...] = ()
    lacking: str = ""
    level: Level = "document"

    @property
    def leading(self) -> Agreement | None:
        """The agreement that the verdict is about."""
        return next((one for one in self.agreement if one.level == self.level), None)


@dataclass(frozen=True, repr=False)
class PromptDiff:
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
        return f"<PromptDiff: {' → '.join(self.names)}. {next(told(self), '')}>"

    def _repr_html_(self) -> str:
        """What differs, for notebooks."""
        from judge.report.renderers.notebook import of_prompts

        return of_prompts(self)

    @property
    def failed(self) -> int:
        """Judgments that failed, of both."""
        return sum(self.judged.failed) if self.judged else 0

    def report(self, format: str = "console", *, colour: bool = False) -> str:
        """As console (in `colour` with a terminal's codes), markdown or json. Raises ConfigError for another format."""
        from judge.report.renderers import criterion_diff

        check(format)
        return criterion_diff.render(self, format, colour=colour)


def check(format: str) -> None:
    """Raises ConfigError for a format that there is not."""
    if format not in FORMATS:
        raise ConfigError(unknown("format", format, list(FORMATS)))


# What is said


def told(found: PromptDiff) -> Iterator[str]:
    """The answer in sentences, the most important first."""
    if found.judged is not None:
        yield from _of_people(found.judged)
        yield from _of_scores(found.judged)
        yield from _of_failures(found.judged)
    if found.prompts is not None:
        yield _of_prompts(found.prompts)
        yield _of_tokens(found.prompts)
    elif found.diff or found.changes:
        yield "The two are not the same."
    else:
        yield f"The two have the same text ({found.criteria[0].digest[:6]})."


def _of_people(judged: Judged) -> Iterator[str]:
    found = judged.leading
    if found is None or found.difference is None:
        return
    e = found.difference
    over = f"{OVER[found.level]}, {count(e.n, UNITS[found.level])}"
    size = f"Spearman {signed(e.value, PLACES)} {span(e.low, e.high, PLACES)}".rstrip()
    if found.told:
        tested = f" ({chance(e.p)})" if e.p is not None else ""
        yield f"Agrees {'better' if e.value > 0 else 'worse'} with people{tested}: {size} {over}."
    else:
        yield f"Agreement with people is not told apart{_open(e, e.p, UNITS[found.level])}: {size} {over}."


def _of_scores(judged: Judged) -> Iterator[str]:
    rows = [] if judged.comparison is None else judged.comparison.runs.moved
    if not rows:
        yield "No text has a score by both."
        return
    row = rows[0]  # of all systems, or of the only one; of a panel the mean's
    e, places = row.estimate, decimals([row.before, row.after])
    size = f"{signed(e.value, places)} {span(e.low, e.high, places)}".rstrip()
    if not row.up and not row.down:
        yield f"No score differs on {count(row.same, 'text')}."
    elif row.adjusted is None:
        yield f"Scores: {size}, too few items for a test."
    elif row.moved:
        yield f"Scores {'rose' if e.value > 0 else 'fell'} ({chance(row.adjusted)}): {size} over {count(e.n, 'item')}."
    else:
        yield f"Scores are not told apart{_open(e, row.adjusted, 'item')}: {size} over {count(e.n, 'item')}."


def _open(found: Estimate, p: float | None, unit: str) -> str:
    """` (p = 0.080, would take n ≈ 400 items)`; of these what is known, and no n at which the test has said no."""
    said, items = [] if p is None else [chance(p)], takes(found)
    if items is not None and items > found.n:
        so_many = f"more than {_FAR:,}" if items > _FAR else f"n ≈ {round(items, -max(0, len(str(items)) - 2)):,}"
        said.append(f"would take {so_many} {unit}s")
    return f" ({', '.join(said)})" if said else ""


def _of_failures(judged: Judged) -> Iterator[str]:
    if any(judged.failed):
        (had, has), (lost, loses) = judged.judgments, judged.failed
        yield f"{lost:,} of {count(had, 'judgment')} failed before, {loses:,} of {has:,} after."


def _of_prompts(found: Prompts) -> str:
    if not found.differ:
        return f"The prompts are the same on {'all ' if found.texts > 1 else ''}{count(found.texts, 'text')}."
    if found.differ == found.texts:
        return f"The prompts differ on all of {count(found.texts, 'text')} of {count(found.items, 'item')}."
    return (
        f"The prompts differ on {found.differ:,} of {count(found.texts, 'text')}, which are of {found.items_differ:,} "
        f"of {count(found.items, 'item')}."
    )


def _of_tokens(found: Prompts) -> str:
    read, reads = found.tokens
    share = 100 * (reads / read - 1)
    change = f"{signed(share, 1)}%" if round(share, 1) else "no change"
    said = f"A prompt has about {read:,.0f} tokens before and {reads:,.0f} after ({change})"
    if found.cost is not None:
        had, has = map(_dollars, found.cost)
        said += f"; 1,000 judgments cost about {had} before and {has} after ({found.priced})"
    elif found.priced:
        said += f"; what they cost is not known ({found.priced})"
    return f"{said}."


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.2g}"
