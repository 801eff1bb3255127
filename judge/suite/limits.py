"""What a whole suite may not exceed: failed judgments, tokens of a judgment, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from judge.config import Budget
from judge.core.records import IDENTICAL, Failure
from judge.report.format import line, percent
from judge.results.result import Result
from judge.suite.draws import NEAR
from judge.suite.expectations.context import share, short
from judge.suite.records import Suite, Verdict
from judge.suite.scored import Row, told

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
    named = ", ".join(f"{n:,} {line(error, 60)}" for error, n in kinds[:_KINDS])
    found = f"{len(failed):,} of {len(rows):,}" + (f" ({percent(len(failed) / len(rows))})" if failed else "")
    verdict = _verdict(suite, "failures", f"≤ {most}", found, named)
    return verdict if met else replace(verdict, status="failed", met=False, detail=told(failed[0]))


def _foreseen(suite: Suite, what: str, expected: str, found: str | None, over: str) -> Verdict:
    """`over` says that the limit is not kept, or why nothing is known."""
    verdict = _verdict(suite, what, expected, found or "unknown", over)
    return replace(verdict, status="failed" if found else "error", met=False) if over else verdict


def _verdict(suite: Suite, what: str, expected: str, found: str, said: str) -> Verdict:
    return Verdict(what, suite.lines.get("limits", 1), "limit", "", "passed", True, expected, found, said)
