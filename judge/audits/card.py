"""The data of an audit, its result (the judge card), and the format of numbers in its sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from judge.core import format, plugins
from judge.core.format import decimals, format_interval, number, signed
from judge.core.records import Column, Estimate, Sample
from judge.stats.paired_differences import ALL_EQUAL
from judge.table import Table

ALIKE = "[all alike]"


def places(column: Column | None, values: Sequence[float] = ()) -> int:
    """Return the decimals for points of a column's scale, or for the values if the scale has no ends."""
    if column and column.low is not None and column.high is not None:
        return decimals([column.low, column.high])
    return decimals(values)


def share_percent(share: Estimate) -> str:
    """Write `12% [6, 21]`, without the brackets if there is no interval."""
    return f"{number(100 * share.value, 0)}% {percents(share)}".rstrip()


def percents(share: Estimate) -> str:
    """Write the interval of a share in per cent, `[6, 21]`."""
    return interval(share, 0, 100)


def interval(estimate: Estimate, digits: int, factor: float = 1) -> str:
    """Write `[0.10, 0.60]`; `[all alike]` if the items do not differ, which shows no uncertainty."""
    if estimate.low is None or estimate.high is None:
        return ALIKE if ALL_EQUAL in estimate.method else ""
    if estimate.low == estimate.high:
        return ALIKE
    return format_interval(factor * estimate.low, factor * estimate.high, digits)


def of_count(share: Estimate, noun: str = "") -> str:
    """Write `12% [6, 21] of 60`, or `… of 60 texts`."""
    return f"{share_percent(share)} of {share.n:,} {noun}".rstrip()


def change(estimate: Estimate, digits: int) -> str:
    """Write `+0.35 [0.10, 0.60]`."""
    return f"{signed(estimate.value, digits)} {interval(estimate, digits)}".rstrip()


def chance(p: float | None) -> str:
    """Write `p = 0.012`, `p < 0.001`; nothing if there was no test."""
    return "" if p is None else format.format_p(p)


def brackets(*parts: str) -> str:
    """Write the non-empty parts as ` (one, two)`; nothing if all are empty."""
    text = ", ".join(filter(None, parts))
    return f" ({text})" if text else ""


ORIGINAL = "original"
"""The `system` of unchanged texts, in tables whose other systems are the names of changes and attacks."""
Probe = Literal["sensitivity", "bias", "injection"]
PROBES: tuple[Probe, ...] = ("sensitivity", "bias", "injection")
FEW, FEWEST, TESTABLE = 5, 10, 12
"""Limits in items: FEW, the least for a claim about half of them; FEWEST, the least for an interval; TESTABLE,
from which one of a hundred tests can be significant after Holm's correction, so that only the test decides."""
DETECTED = 1 / 8
"""Share of the scale by which a score must fall (after an attack, rise) to count: half a step of a 1–5 scale."""


@dataclass(frozen=True)
class AuditData:
    """All judgments of an audit; a table is None if it was not requested or is not available.

    `originals` has one text for each item, as in the data. `changed` has them and all their variants: its systems are
    ORIGINAL and the names of changes, neutral changes and attacks. `natural` has up to two texts of each item under
    their systems' names, with human ratings and `extra`. `wordings` has the originals, with columns `NAME`, `NAME~b`
    and `NAME~c` for other wordings of the criterion. `repeats` maps a temperature to the originals with several draws
    each (method `samples`). `pairs` compares the natural texts in pairs and both orders. `judged` has the tables of all
    runs, with each judgment once. `columns` maps a criterion to its column in `changed`. `model` names the judge.
    `unavailable` gives the reason for each probe (`position`, `wording`, …) that could not be run.
    """

    originals: tuple[Sample, ...]
    columns: Mapping[str, Column]
    changed: Table
    model: str
    language: str
    natural: Table | None = None
    wordings: Table | None = None
    repeats: Mapping[float, Table] = field(default_factory=dict)
    pairs: Table | None = None
    judged: tuple[Table, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SensitivityCell:
    """The effect of one change on the scores of one criterion; `targeted` if the change damages this criterion.

    `rate` is the share of texts (0–1, Wilson's interval) whose score falls by DETECTED of the scale or more; after an
    attack, whose score rises. Texts too near that end of the scale are not counted. `opposite` is the share that moves
    the other way: a judge whose replies vary moves both ways. `mean_change` is the mean of changed minus original score
    in scale points, with p after Holm's correction over its section. All are None if no text has both scores.

    An attack is compared with the same text with the `control` in its place; `vs_original` is then its mean change from
    the original, without a test. The control is compared with the original. `failed` counts texts without both scores.
    """

    change: str
    criterion: str
    targeted: bool
    rate: Estimate | None
    mean_change: Estimate | None
    failed: int = 0
    opposite: Estimate | None = None
    vs_original: Estimate | None = None
    control: bool = False


@dataclass(frozen=True, slots=True)
class BiasFinding:
    """One number about a bias of the judge on one criterion, with a sentence that explains it.

    `unit` is `points` (of the scale), `share` (0–1), `points per doubling` (of the length), `r` or `sd` (in points);
    `counted` is the unit of `estimate.n`. `significant`: p below .05 after Holm's correction over all findings; None
    without a test. `same_direction` is the share of items that move in the direction of the mean by DETECTED of the
    scale or more. `harmful`: whether the direction is the wrong one.
    """

    probe: str
    criterion: str
    measure: str
    estimate: Estimate
    unit: str
    sentence: str
    significant: bool | None = None
    same_direction: Estimate | None = None
    counted: str = "texts"
    harmful: bool = True

    @property
    def suggestive(self) -> bool:
        """Whether half of the items or more move in one direction, but are too few for a test."""
        return self.significant is False and is_majority(self.same_direction)


@dataclass(frozen=True, repr=False)
class JudgeCard(plugins.Reported):
    """The result of an audit: which damage a judge notices, its biases, and which attacks work.

    `cells` are every change by every criterion, `attacks` likewise for injections. `skipped` maps a probe or change
    without numbers to the reason. `verdicts` are sentences, the worst first. `info` is plain JSON about the judge, the
    data, the settings and versions. `failures` counts failed judgments by kind.
    """

    title: str
    cells: tuple[SensitivityCell, ...] = ()
    findings: tuple[BiasFinding, ...] = ()
    attacks: tuple[SensitivityCell, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    verdicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        known = f"{len(self.cells)} cells, {len(self.findings)} findings, {len(self.attacks)} attacks"
        return f"<Card: {self.title!r}, {known}, {sum(self.failures.values())} failures>"


def is_majority(share: Estimate | None, tested: Estimate | None = None) -> bool:
    """Return whether a share of at least FEW items is shown to be one half or more; False if `tested` allows a test."""
    few = share is not None and share.n >= FEW and (tested or share).n < TESTABLE
    return few and share is not None and share.low is not None and share.low >= 0.5
