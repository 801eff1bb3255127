"""Numbers of an audit in words, in its sentences and in its tables.

What an audit is made from, and what it ends with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from judge.core import messages, plugins
from judge.core.errors import ConfigError
from judge.core.messages import decimals, format_interval, number, signed
from judge.core.records import Column, Estimate, Sample
from judge.stats.pairwise import Ranking
from judge.table import Table

ALIKE = "[all alike]"


def places(column: Column | None, values: Sequence[float] = ()) -> int:
    """Decimals for points of a column's scale, or, where it has no ends, for these values."""
    if column and column.low is not None and column.high is not None:
        return decimals([column.low, column.high])
    return decimals(values)


def share_percent(share: Estimate) -> str:
    """`12% [6, 21]`, without the brackets where there is no interval."""
    return f"{number(100 * share.value, 0)}% {percents(share)}".rstrip()


def percents(share: Estimate) -> str:
    """The interval of a share in per cent, `[6, 21]`."""
    return interval(share, 0, 100)


def interval(estimate: Estimate, digits: int, factor: float = 1) -> str:
    """`[0.10, 0.60]`; `[all alike]` where the items do not differ, so that drawing them anew says nothing."""
    if estimate.low is None or estimate.high is None:
        return ""
    return (
        ALIKE
        if estimate.low == estimate.high
        else format_interval(factor * estimate.low, factor * estimate.high, digits)
    )


def of_count(share: Estimate, noun: str = "") -> str:
    """`12% [6, 21] of 60`, or `… of 60 texts`."""
    return f"{share_percent(share)} of {share.n:,} {noun}".rstrip()


def change(estimate: Estimate, digits: int) -> str:
    """`+0.35 [0.10, 0.60]`."""
    return f"{signed(estimate.value, digits)} {interval(estimate, digits)}".rstrip()


def chance(p: float | None) -> str:
    """`p = 0.012`, `p < 0.001`; nothing where there was no test."""
    return "" if p is None else messages.format_p(p)


def brackets(*parts: str) -> str:
    """What there is of the parts as ` (one, two)`; nothing where there is none."""
    text = ", ".join(filter(None, parts))
    return f" ({text})" if text else ""


def listed(parts: Sequence[str]) -> str:
    """`one`, `one and two`, `one, two and three`."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


ORIGINAL = "original"
"""The `system` of texts as they are, in tables whose other systems are the names of changes and attacks."""
Probe = Literal["sensitivity", "bias", "injection"]
PROBES: tuple[Probe, ...] = ("sensitivity", "bias", "injection")
FORMATS = ("console", "markdown", "html", "json")
FEW, FEWEST, TESTABLE = 5, 10, 12
"""Items below which no share is said to hold for half of them; below which a bootstrap over them has no interval; from
which on a test of one of a hundred numbers can be significant after Holm's correction, so that it alone tells."""
DETECTED = 1 / 8
"""Share of the scale that a score has to fall by (after an attack, to rise by) to count: half a step from 1 to 5."""


@dataclass(frozen=True)
class AuditData:
    """Everything that was judged for an audit; a table is None where it was not asked for or could not be had.

    `originals` are one text for each item, as in the data. `changed` has them and all their variants: its systems are
    ORIGINAL and the names of changes, neutral changes and attacks. `natural` has up to two texts of each item under
    their own systems' names, and their people's ratings and `extra`. `wordings` has the originals, with columns
    `NAME` and `NAME~b`, `NAME~c`, the criterion in other words. `repeats` has by temperature the originals
    with several draws each (method `samples`). `rankings` are of the natural texts two by two in both orders, one for
    each criterion, `pairs` their table. `columns` has by criterion its column in `changed`. `model` names the judge.
    `lacking` says by probe (`position`, `wording`, …) why it could not be made.
    """

    originals: tuple[Sample, ...]
    columns: Mapping[str, Column]
    changed: Table
    model: str
    language: str
    natural: Table | None = None
    wordings: Table | None = None
    repeats: Mapping[float, Table] = field(default_factory=dict)
    rankings: tuple[Ranking, ...] = ()
    pairs: Table | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SensitivityCell:
    """What one change did to the scores of one criterion. `own`: the change damages what the criterion is about.

    `rate` is the share of texts (0–1, Wilson's interval) whose score fell by DETECTED of the scale or more; for an
    attack, whose score rose so far. Its `n` are the texts that were far enough from that end of the scale. `against` is
    the share that moved as far the other way: what chance does to a judge whose replies vary. `move` is the mean of the
    change in score, changed less original, in scale points, with interval and p, which is corrected for all cells of
    its section (Holm). All are None where there is no such text. An attack is measured from the same text with the
    `control` in the attack's place, where that was asked for: `raw` is then its mean change from the text as it is, in
    scale points, without a test; the control itself is measured from the text as it is. `failed` counts texts of which
    either judgment failed.
    """

    change: str
    criterion: str
    own: bool
    rate: Estimate | None
    move: Estimate | None
    failed: int = 0
    against: Estimate | None = None
    raw: Estimate | None = None
    control: bool = False


@dataclass(frozen=True, slots=True)
class BiasFinding:
    """One number about a bias of the judge on one criterion, with a sentence that says what it means.

    `unit` is `points` (of the scale), `share` (0–1), `points per doubling` (of the length), `r`, `sd` (in points); `of`
    is what `estimate.n` counts. `told`: whether the test (p below .05 after Holm's correction over all findings) tells
    it apart from no bias; None where there is nothing to tell from. `hits` is the share of items that lean the way of
    the mean by DETECTED of the scale or more: where its interval lies above one half (`open`), and no test tells, that
    is said instead. `harmful`: whether it leans the way that is wrong.
    """

    probe: str
    criterion: str
    what: str
    estimate: Estimate
    unit: str
    said: str
    told: bool | None = None
    hits: Estimate | None = None
    of: str = "texts"
    harmful: bool = True

    @property
    def open(self) -> bool:
        """Seen in half of the items or more, though no test tells it: too few of them."""
        return self.told is False and is_majority(self.hits)


@dataclass(frozen=True, repr=False)
class JudgeCard:
    """A judge's card: what it notices, what it leans to, what it falls for.

    `cells` are every change by every criterion, `attacks` likewise for injections. `left_out` says by probe or change
    why there is nothing; `verdicts` are the sentences to read first, the worst first. `info` is plain JSON about the
    judge, the data, how many texts and judgments, settings and versions. `failures` are the failed judgments by kind.
    """

    title: str
    cells: tuple[SensitivityCell, ...] = ()
    findings: tuple[BiasFinding, ...] = ()
    attacks: tuple[SensitivityCell, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    verdicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        known = f"{len(self.cells)} cells, {len(self.findings)} findings, {len(self.attacks)} attacks"
        return f"<Card: {self.title!r}, {known}, {sum(self.failures.values())} failures>"

    def report(self, format: str = "console", *, colour: bool = False) -> str:
        """As console (in `colour` with a terminal's codes), markdown, html or json. Raises ConfigError for another."""
        check(format)
        return str(plugins.report("card")(self, format, colour=colour))


def is_majority(share: Estimate | None, tested: Estimate | None = None) -> bool:
    """Whether a share of FEW items or more is shown to be one half or more, where `tested` has too few for a test."""
    few = share is not None and share.n >= FEW and (tested or share).n < TESTABLE
    return few and share is not None and share.low is not None and share.low >= 0.5


def check(format: str) -> None:
    """Raises ConfigError for a format that there is not."""
    if format not in FORMATS:
        raise ConfigError(plugins.unknown_name_message("format", format, list(FORMATS)))
