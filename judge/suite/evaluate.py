"""The verdicts on a suite, and its outcome: `evaluate_case` on a case, `limits` on the limits of the whole suite.

A case is met if the numbers show what it expects, not met if they show the opposite or too little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from judge.config import Budget
from judge.core import plugins
from judge.core.format import one_line, percent
from judge.core.records import IDENTICAL, Failure
from judge.results.comparison import RunComparison
from judge.results.result import Result
from judge.suite.evidence import NEAR, Row, Text, Undecidable, describe_failure
from judge.suite.expectations.case import Case, CaseContext, Decision, Verdict, joined
from judge.suite.schema import Limits, Suite

_MAX_ERRORS = 3  # of failures that are named


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


def limits(
    suite: Suite,
    result: Result | None,
    ranked: Result | None = None,
    *,
    tokens: int | None = None,
    cost: float | None = None,
    unpriced: str = "",
) -> list[Verdict]:
    """The verdicts on a suite's limits, that on failures always.

    `tokens` are the most of one judgment and `cost` the US dollars that all would cost, foreseen with nothing cached.
    None where it is not known (`unpriced` says why): an `error` where the suite limits it, and never met.
    """
    rows = [row for run in (result, ranked) if run for row in _judgments(run)]
    limit, failed = suite.limits, [row for row in rows if isinstance(row, Failure)]
    kinds = Counter(row.error for row in failed).most_common()
    verdict = _limit_verdict(
        suite,
        "failures",
        limit.describe_failures(),
        f"{len(failed):,} of {len(rows):,}" + (f" ({percent(len(failed) / len(rows))})" if failed else ""),
        ", ".join(f"{n:,} {one_line(error, 60)}" for error, n in kinds[:_MAX_ERRORS]),
    )
    if len(failed) > limit.most_failures(len(rows)) + NEAR:
        verdict = replace(verdict, status="failed", met=False, detail=describe_failure(failed[0]))
    verdicts = [verdict]
    if (most := limit.tokens) is not None:
        bound, estimated = f"≤ {most:,} a judgment", None if tokens is None else f"{tokens:,}"
        over = "no judge is asked in tokens" if tokens is None else "" if tokens <= most else "over the limit"
        verdicts.append(_estimate_verdict(suite, "tokens", bound, estimated, over))
    if (budget := limit.cost) is not None:
        dollars = None if cost is None or budget.unit != "usd" else Budget(cost, "usd")
        why = f"{unpriced or 'no published price for this model and endpoint'}: limit `tokens` instead"
        over = why if dollars is None else "" if dollars.amount <= budget.amount + NEAR else "over the limit"
        verdicts.append(
            _estimate_verdict(suite, "cost", f"≤ {budget}", None if dollars is None else str(dollars), over)
        )
    return verdicts


def _judgments(result: Result) -> Iterator[Row]:
    """Every row that a judge was asked for: not the means of a panel, and not the ties of equal texts."""
    panel = {column.criterion for column in result.table.columns if column.judge}
    judged = {
        column.name
        for column in result.table.columns
        if column.kind == "criterion" and (column.judge or column.name not in panel)
    }
    for row in result.table.rows():
        if row.column in judged and (isinstance(row, Failure) or row.provenance.method != IDENTICAL):
            yield row


def _estimate_verdict(suite: Suite, name: str, expected: str, estimated: str | None, over: str) -> Verdict:
    """`over` says that the limit is not kept, or why nothing is known."""
    verdict = _limit_verdict(suite, name, expected, estimated or "unknown", over)
    return replace(verdict, status="failed" if estimated else "error", met=False) if over else verdict


def _limit_verdict(suite: Suite, name: str, expected: str, measured: str, remark: str) -> Verdict:
    return Verdict(name, suite.lines.get("limits", 1), "limit", "", "passed", True, expected, measured, remark)


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
    """The verdict on a case about `texts` (item and system), from `result`, or from `ranked` if they were compared.

    `passed` where the interval lies wholly inside what is expected, `failed` where wholly outside, else
    `undecided`, which is met if the case, or else its kind says so (see `Suite`). Of one text the interval is over
    its draws, or bounds what was not seen of the probability; one reply as it is written decides by its value. Of
    six items or more it is over items, of fewer over the draws of all (`judge.suite.evidence`). Shares of labels and
    flips are counted. A text without a score is an `error`, never met; of several texts it is left out and said, as
    far as `failures` (default: none) allows so many or such a share of them. One that nobody asked about is an `error`
    always. `seed` is that of what is drawn.
    """
    context = CaseContext(case.criterion, texts, result, ranked, baseline, seed)
    try:
        outcome = _check_failures(context, _decide(case, context), failures or Limits())
    except Undecidable as error:
        outcome = Decision("error", error.message, "no score", detail=error.detail)
    policy = case.undecided or case.undecided_is
    return Verdict(
        case.name,
        case.line,
        case.kind,
        case.criterion,
        outcome.status,
        met=outcome.status == "passed" or (outcome.status == "undecided" and policy == "pass"),
        expected=case.expected(context),
        found=outcome.found,
        said=outcome.said,
        flaky=outcome.flaky,
        estimate=outcome.estimate,
        before=outcome.before or _baseline_value(case, context),
        detail=outcome.detail,
    )


def _check_failures(context: CaseContext, outcome: Decision, limit: Limits) -> Decision:
    """An `error` where more of the case's texts lack a score than may."""
    scored = context.scored()
    rows = [(item, system, "") for item, system in context.texts]
    if context.pairwise:
        rows = [(item, *two) for item, systems in context.by_item.items() for two in permutations(systems, 2)]
    lost = sum(scored.score(*row) is None for row in rows)
    if lost <= limit.most_failures(len(rows)) + NEAR:
        return outcome
    return replace(outcome, status="error", said=joined(outcome.said, "more than the limit on failures allows"))


def _decide(case: Case, context: CaseContext) -> Decision:
    """Decide a case. Raises Undecidable if there is nothing to decide from."""
    if not context.texts:
        raise Undecidable("the case is about no text")
    return case.decide(context)


def _baseline_value(case: Case, context: CaseContext) -> str:
    """The case's value in the baseline; nothing if it has no such scores, as for comparisons."""
    if context.baseline is None or context.pairwise or case.needs_baseline:
        return ""
    try:
        return _decide(case, replace(context, result=context.baseline, baseline=None)).found
    except Undecidable:
        return ""
