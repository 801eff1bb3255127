"""The data types of suites: cases and what they expect, limits, verdicts, outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from judge.config import Budget
from judge.core import plugins
from judge.core.records import Estimate, Sample
from judge.results.comparison import RunComparison
from judge.results.result import Result
from judge.stats.coefficients import Coefficient
from judge.stats.correlation import Level

Policy = Literal["pass", "fail"]
Status = Literal["passed", "failed", "undecided", "error"]
Kind = Literal["band", "label", "order", "agreement", "drift", "limit", "baseline"]


@dataclass(frozen=True, slots=True)
class Band:
    """A text's score, or the mean over texts, lies from `low` to `high` (scale points); None leaves an end open."""

    kind: ClassVar[Kind] = "band"
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """The likeliest label of a text is `label`; of several texts, that of at least `share` of them (0–1)."""

    kind: ClassVar[Kind] = "label"
    label: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Order:
    """Texts of the system `better` score above those of `worse` by more than `margin` (scale points, 0 or more).

    By a criterion that compares two texts: `better` wins more than half, by more than `margin` of the comparisons.
    """

    kind: ClassVar[Kind] = "order"
    better: str
    worse: str
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Agreement:
    """Each coefficient with people's ratings of the criterion is at least so much (−1 to 1), at one level.

    `level` None is `document` where most items have three rated texts or more, else `item`.
    """

    kind: ClassVar[Kind] = "agreement"
    least: Mapping[Coefficient, float]
    level: Level | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the scores may have moved from the baseline.

    `max_shift` is the size of the mean difference over items, `max_drop` that towards the worse end (scale points);
    `max_flips` the share of texts (0–1) whose likeliest label is another one: counted, not estimated.
    """

    kind: ClassVar[Kind] = "drift"
    max_shift: float | None = None
    max_drop: float | None = None
    max_flips: float | None = None


Expected = Band | Label | Order | Agreement | Drift


@dataclass(frozen=True, slots=True)
class Case:
    """One expectation: `criterion` (as the file writes it), the texts it is about, what is `expected` of them.

    The texts are those of the suite's data whose item is in `items` and whose system is in `systems` (empty: all), or
    else `texts`, which stand in the case itself: one, whose system is `text`, or two, `better` and `worse`; their item
    is the case's name. `line` is where in the file the case begins. `undecided` None: the suite's, see `Suite`.
    """

    name: str
    line: int
    criterion: str
    expected: Expected
    items: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    texts: tuple[Sample, ...] = ()
    undecided: Policy | None = None

    @property
    def kind(self) -> Kind:
        return self.expected.kind


@dataclass(frozen=True, slots=True)
class Limits:
    """What the whole suite may not exceed.

    `failures` is the most failed judgments, a number or (0–1 with `share`) a share of all; `tokens` the most input
    tokens of one judgment, estimated from its prompt; `cost` what all judgments would cost with nothing cached.
    """

    failures: float = 0
    share: bool = False
    tokens: int | None = None
    cost: Budget | None = None

    def most(self, judgments: int) -> float:
        """How many of these judgments may fail."""
        return self.failures * judgments if self.share else self.failures


@dataclass(frozen=True, slots=True)
class Suite:
    """A file of cases. `options` are keys of `RunConfig` with paths resolved, `lines` where top-level keys stand.

    `undecided` says what a case counts as whose numbers show neither that it holds nor that it does not. None: `fail`
    for what a case asserts (band, label, order, agreement), `pass` for drift: either has to be shown.
    """

    path: Path
    name: str
    options: Mapping[str, Any]
    cases: tuple[Case, ...]
    limits: Limits = Limits()
    baseline: Path | None = None
    undecided: Policy | None = None
    lines: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the numbers say of a case, a limit or (kind `baseline`) a criterion against the baseline.

    `met`: whether it counts as passed. `expected` and `found` are short (`≥ 4`; `4.62 [4.31, 4.93]`), `said` is the
    sentence (`worse (p < .01)`; `not told apart (would take n ≈ 400)`). `flaky` is the share of single replies after
    which a case about one text would have come out the other way, where that is from .05 to .95. `before` is what
    was found in the baseline. `detail` is a failure's message or the judge's reply, for below the table.
    """

    name: str
    line: int
    kind: Kind
    criterion: str
    status: Status
    met: bool
    expected: str
    found: str
    said: str = ""
    flaky: float | None = None
    estimate: Estimate | None = None
    before: str = ""
    detail: str = ""


@dataclass(frozen=True, repr=False)
class Outcome:
    """A suite that was run: the verdicts of its cases in their order, then of its limits, then against the baseline.

    `result` has the scores of single texts, `ranked` the comparisons of two, each None where there was nothing to ask;
    `comparison` is `result` beside the baseline. `trouble` says why the suite could not be run; there are no verdicts
    then. `warnings` stand beside the summary: that there was nothing to compare with, or nobody was asked. `seconds` is
    what the run took.
    """

    suite: Suite
    verdicts: tuple[Verdict, ...] = ()
    result: Result | None = None
    ranked: Result | None = None
    comparison: RunComparison | None = None
    notes: tuple[str, ...] = ()
    trouble: str = ""
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it was run and every verdict is met."""
        return not self.trouble and all(verdict.met for verdict in self.verdicts)


class Outcomes(tuple[Outcome, ...]):
    """What `judge.test` gives: an outcome for each suite."""

    __slots__ = ()

    @property
    def passed(self) -> bool:
        """Whether all suites were run and every verdict is met."""
        return all(outcome.passed for outcome in self)

    def report(self, format: str = "console", *, colour: bool = False) -> str:
        """As console (in `colour` with a terminal's codes), markdown, json or junit. Raises ConfigError for another."""
        return str(plugins.report("outcomes")(self, format, colour=colour))
