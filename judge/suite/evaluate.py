"""The outcome of a suite: `evaluate_case` decides a case, `limits` the limits of the whole suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import permutations
from typing import ClassVar

from judge.core import plugins
from judge.core.budget import Budget
from judge.core.criterion_entry import keys_of
from judge.core.format import one_line, percent
from judge.core.records import IDENTICAL, Failure
from judge.results.comparison import RunComparison
from judge.results.result import Result
from judge.suite.case import Case, CaseContext, Decision, Verdict, joined
from judge.suite.evidence import NEAR, Row, Text, Undecidable, describe_failure
from judge.suite.schema import Limits, Suite

_MAX_ERRORS, _MAX_CAUSE = 3, 200  # kinds of failures, and characters of the first one, in a message


@dataclass(frozen=True, repr=False)
class Outcome:
    """The result of a suite: verdicts of its cases in order, of its limits, and of criteria against the baseline.

    `result` has the scores of single texts, `ranked` the pairwise comparisons; each is None if no case needs it.
    `comparison` compares `result` with the baseline. `trouble` says why the suite could not run; it then has no
    verdicts. `warnings` qualify the summary, such as a missing baseline. `seconds` is the duration.
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
        """Whether it ran and every verdict is met."""
        return not self.trouble and all(verdict.met for verdict in self.verdicts)


class Outcomes(plugins.Reported, tuple[Outcome, ...]):
    """The result of `judge.test`: an outcome for each suite."""

    VIEW: ClassVar[str] = "judge.report.views.suite:view"

    __slots__ = ()

    @property
    def passed(self) -> bool:
        """Whether all suites ran and every verdict is met."""
        return all(outcome.passed for outcome in self)


def limits(
    suite: Suite,
    result: Result | None,
    ranked: Result | None = None,
    *,
    tokens: int | None = None,
    cost: float | None = None,
    unpriced: str = "",
) -> list[Verdict]:
    """Return the verdicts on a suite's limits, always including failures.

    `tokens` is the estimate of the longest prompt and `cost` the estimated price in US dollars without a cache. None if
    unknown (`unpriced` says why): a limit on it is then an `error`.
    """
    limit, rows = suite.limits, list[Row]()
    for table in (run.table for run in (result, ranked) if run):
        # Every row that a judge produced: not a panel's own, and not the ties of equal texts.
        panel = {column.criterion for column in table.columns if column.judge}
        criteria = (column for column in table.columns if column.kind == "criterion")
        judged = {column.name for column in criteria if column.judge or column.name not in panel}
        rows += [
            row
            for row in table.rows()
            if row.column in judged
            and (isinstance(row, Failure) or row.provenance.method != IDENTICAL)
        ]
    failed = [row for row in rows if isinstance(row, Failure)]
    kinds = Counter(row.error for row in failed).most_common(_MAX_ERRORS)
    named = ", ".join(f"{n:,} {one_line(error, 60)}" for error, n in kinds)
    kept = len(failed) <= limit.most_failures(len(rows)) + NEAR
    cause = "" if kept else f"the first: {one_line(failed[0].message, _MAX_CAUSE)}"
    share = f" ({percent(len(failed) / len(rows))})" if failed else ""
    decision = Decision(
        "passed" if kept else "failed",
        joined(named, cause),
        f"{len(failed):,} of {len(rows):,}{share}",
        detail="" if kept else describe_failure(failed[0]),
    )
    decisions = [("failures", limit.describe_failures(), decision)]
    if limit.tokens is not None:
        decision = Decision("error", "no judge counts tokens", "unknown")
        if tokens is not None:
            decision = _decide_estimate(tokens, limit.tokens, f"{tokens:,}")
        decisions.append(("tokens", f"≤ {limit.tokens:,} a judgment", decision))
    if limit.cost is not None:
        reason = unpriced or "no published price for this model and endpoint"
        decision = Decision("error", f"{reason}: limit `tokens` instead", "unknown")
        if cost is not None:
            decision = _decide_estimate(cost, limit.cost.amount, str(Budget(cost, "usd")))
        decisions.append(("cost", f"≤ {limit.cost}", decision))
    line = suite.lines.get("limits", 1)
    return [
        decision.verdict(kind="limit", name=name, line=line, expected=bound)
        for name, bound, decision in decisions
    ]


def _decide_estimate(value: float, most: float, found: str) -> Decision:
    return (
        Decision("passed", "", found)
        if value <= most + NEAR
        else Decision("failed", "over the limit", found)
    )


def evaluate_case(
    case: Case,
    texts: Sequence[Text],
    result: Result | None,
    baseline: Result | None = None,
    ranked: Result | None = None,
    *,
    failures: Limits | None = None,
    seed: int = 0,
) -> Verdict:
    """Return the verdict on a case about `texts` (item and system), from `result`, or from `ranked` if in pairs.

    `passed` if the whole interval is inside the expectation, `failed` if it is outside, else `undecided`, which counts
    as the case or its kind says (see `Suite`). With one text, the interval is over its draws or bounds unseen
    probability; a single reply decides by its value. From six items on it is over items, with fewer over all draws
    (`judge.suite.evidence`). Shares of labels and flips are counted,
    pass rates have Wilson's interval. A text without a score is an `error`, never met;
    among several texts it is left out and named if `failures` allows that many. `seed` is for resampling.
    """
    context = CaseContext(case.stem(), texts, result, ranked, baseline, seed)
    try:
        decision, scored = case.decide(context), context.scored()
        rows = [(item, system, "") for item, system in context.texts]
        if context.pairwise:
            rows = [
                (item, *two)
                for item, systems in context.by_item.items()
                for two in permutations(systems, 2)
            ]
        lost = sum(scored.score(*row) is None for row in rows)
        if lost > (failures or Limits()).most_failures(len(rows)) + NEAR:
            reason = joined(decision.reason, "more than the limit on failures allows")
            decision = replace(decision, status="error", reason=reason)
        elif lost and decision.status == "passed" and case.generalizes:
            worst = case.decide(case.with_failures_as_worst(context))
            if worst.status != "passed":
                what = "a loss" if context.pairwise else "the worst score"
                reason = f"{worst.status} if each failure were {what}"
                decision = replace(decision, reason=joined(decision.reason, reason))
    except Undecidable as error:
        decision = Decision("error", error.message, "no score", detail=error.detail)
    if not (decision.before or baseline is None or context.pairwise or case.needs_baseline):
        with suppress(Undecidable):  # the baseline has no scores for it
            before = case.decide(replace(context, result=baseline, baseline=None)).found
            decision = replace(decision, before=before)
    return decision.verdict(
        case.undecided or case.undecided_is,
        kind=case.kind,
        name=case.name,
        line=case.line,
        expected=case.expected(context),
        criterion=case.stem() if keys_of(case.criterion) else case.criterion,
    )
