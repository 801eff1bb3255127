"""What an audit is made from, and what it ends with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.records import Column, Estimate, Sample
from judge.stats.pairwise import Ranking
from judge.table import Table

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
class Evidence:
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
class Cell:
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
class Finding:
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
        return self.told is False and mostly(self.hits)


@dataclass(frozen=True, repr=False)
class Card:
    """A judge's card: what it notices, what it leans to, what it falls for.

    `cells` are every change by every criterion, `attacks` likewise for injections. `left_out` says by probe or change
    why there is nothing; `verdicts` are the sentences to read first, the worst first. `info` is plain JSON about the
    judge, the data, how many texts and judgments, settings and versions. `failures` are the failed judgments by kind.
    """

    title: str
    cells: tuple[Cell, ...] = ()
    findings: tuple[Finding, ...] = ()
    attacks: tuple[Cell, ...] = ()
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
        from judge.report.renderers import audit_console, audit_html, audit_json, audit_markdown

        check(format)
        if format == "console":
            return audit_console.render(self, colour=colour)
        formats = {"markdown": audit_markdown.render, "html": audit_html.render, "json": audit_json.render}
        return formats[format](self)


def mostly(found: Estimate | None, tested: Estimate | None = None) -> bool:
    """Whether a share of FEW items or more is shown to be one half or more, where `tested` has too few for a test."""
    few = found is not None and found.n >= FEW and (tested or found).n < TESTABLE
    return few and found is not None and found.low is not None and found.low >= 0.5


def check(format: str) -> None:
    """Raises ConfigError for a format that there is not."""
    if format not in FORMATS:
        raise ConfigError(plugins.unknown("format", format, list(FORMATS)))
