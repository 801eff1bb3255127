"""The data types of suites: a suite as it is loaded, and what comes of running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.core import plugins
from judge.results.comparison import RunComparison
from judge.results.result import Result
from judge.suite.expectations import Expectation
from judge.suite.expectations.case import Policy, Verdict
from judge.suite.schema import Limits


@dataclass(frozen=True, slots=True)
class Suite:
    """A file of cases. `options` are keys of `RunConfig` with paths resolved, `lines` where top-level keys stand.

    `undecided` says what a case counts as whose numbers show neither that it holds nor that it does not. None: `fail`
    for what a case asserts (band, label, order, agreement), `pass` for drift: either has to be shown.
    """

    path: Path
    name: str
    options: Mapping[str, Any]
    cases: tuple[Expectation, ...]
    limits: Limits = field(default_factory=lambda: Limits())
    baseline: Path | None = None
    undecided: Policy | None = None
    lines: Mapping[str, int] = field(default_factory=dict)


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
