"""What a whole suite may not exceed: failed judgments, tokens of a judgment, cost.

What a result says of a case: met where the numbers show it, not met where they show the opposite or too little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from judge.config import Budget
from judge.core.messages import one_line, percent
from judge.core.records import IDENTICAL, Failure
from judge.results.result import Result
from judge.suite import expectations
from judge.suite.evidence import NEAR, Row, Text, Undecidable, told
from judge.suite.expectations.baseline import compare_with_baseline
from judge.suite.expectations.context import CaseContext, CaseOutcome, joined, share, short
from judge.suite.records import Case, Limits, Suite, Verdict

_KINDS = 3  # of failures that are named


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
    found = [_failures(suite, [row for one in (result, ranked) if one for row in _judgments(one)])]
    if (most := suite.limits.tokens) is not None:
        wanted, known = f"≤ {most:,} a judgment", None if tokens is None else f"{tokens:,}"
        over = "no judge is asked in tokens" if tokens is None else "" if tokens <= most else "over the limit"
        found.append(_foreseen(suite, "tokens", wanted, known, over))
    if (budget := suite.limits.cost) is not None:
        dollars = None if cost is None or budget.unit != "usd" else Budget(cost, "usd")
        why = f"{unpriced or 'no published price for this model and endpoint'}: limit `tokens` instead"
        over = why if dollars is None else "" if dollars.amount <= budget.amount + NEAR else "over the limit"
        found.append(_foreseen(suite, "cost", f"≤ {budget}", None if dollars is None else str(dollars), over))
    return found


def _judgments(result: Result) -> Iterator[Row]:
    """Every row that a judge was asked for: not the means of a panel, and not the ties of equal texts."""
    panel = {one.criterion for one in result.table.columns if one.judge}
    kept = {
        one.name for one in result.table.columns if one.kind == "criterion" and (one.judge or one.name not in panel)
    }
    for row in result.table.rows():
        if row.column in kept and (isinstance(row, Failure) or row.provenance.method != IDENTICAL):
            yield row


def _failures(suite: Suite, rows: list[Row]) -> Verdict:
    limit, failed = suite.limits, [row for row in rows if isinstance(row, Failure)]
    met = len(failed) <= limit.most(len(rows)) + NEAR
    most = share(limit.failures) if limit.share else short(limit.failures)
    kinds = Counter(row.error for row in failed).most_common()
    named = ", ".join(f"{n:,} {one_line(error, 60)}" for error, n in kinds[:_KINDS])
    found = f"{len(failed):,} of {len(rows):,}" + (f" ({percent(len(failed) / len(rows))})" if failed else "")
    verdict = _verdict(suite, "failures", f"≤ {most}", found, named)
    return verdict if met else replace(verdict, status="failed", met=False, detail=told(failed[0]))


def _foreseen(suite: Suite, what: str, expected: str, found: str | None, over: str) -> Verdict:
    """`over` says that the limit is not kept, or why nothing is known."""
    verdict = _verdict(suite, what, expected, found or "unknown", over)
    return replace(verdict, status="failed" if found else "error", met=False) if over else verdict


def _verdict(suite: Suite, what: str, expected: str, found: str, said: str) -> Verdict:
    return Verdict(what, suite.lines.get("limits", 1), "limit", "", "passed", True, expected, found, said)


__all__ = ["compare_with_baseline", "evaluate_case", "limits"]


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
    asked = CaseContext(case, texts, result, ranked, baseline, seed)
    try:
        found = _complete(asked, _told(asked), failures or Limits())
    except Undecidable as error:
        found = CaseOutcome("error", "no score", error.message, detail=error.detail)
    policy = case.undecided or expectations.for_case(case).UNDECIDED
    return Verdict(
        case.name,
        case.line,
        case.kind,
        case.criterion,
        found.status,
        met=found.status == "passed" or (found.status == "undecided" and policy == "pass"),
        expected=expectations.for_case(case).expected(asked, case.expected),
        found=found.found,
        said=found.said,
        flaky=found.flaky,
        estimate=found.estimate,
        before=found.before or _before(asked),
        detail=found.detail,
    )


def _complete(asked: CaseContext, found: CaseOutcome, limit: Limits) -> CaseOutcome:
    """An `error` where more of the case's texts lack a score than may."""
    scored = asked.scored()
    rows = [(item, system, "") for item, system in asked.texts]
    if asked.pairwise:
        rows = [(item, *two) for item, systems in asked.by_item.items() for two in permutations(systems, 2)]
    lost = sum(scored.score(*row) is None for row in rows)
    if lost <= limit.most(len(rows)) + NEAR:
        return found
    return replace(found, status="error", said=joined(found.said, "more than the limit on failures allows"))


def _told(asked: CaseContext) -> CaseOutcome:
    """Raises NoScore where there is nothing to decide from."""
    if not asked.texts:
        raise Undecidable("the case is about no text")
    return expectations.for_case(asked.case).decide(asked, asked.case.expected)


def _before(asked: CaseContext) -> str:
    """What was found in the baseline; nothing where it has no such scores, as of texts that were compared."""
    if asked.baseline is None or asked.pairwise or asked.case.kind == "drift":
        return ""
    try:
        return _told(replace(asked, result=asked.baseline, baseline=None)).found
    except Undecidable:
        return ""
