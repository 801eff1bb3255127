"""The outcome of a suite: `evaluate_case` decides a case, `limits` decides a suite's limits."""

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
from judge.core.failure_kinds import failure_kind
from judge.core.format import first_names, one_line, percent, plural, text_name
from judge.core.records import IDENTICAL, Failure
from judge.results.comparison import RunComparison
from judge.results.result import Result
from judge.suite.case import Case, CaseContext, Decision, Verdict, joined
from judge.suite.case_scores import RowKey
from judge.suite.evidence import NEAR, Row, Undecidable, describe_failure
from judge.suite.judged_texts import MOST_TEXTS, JudgedText
from judge.suite.risk import SuiteRisk
from judge.suite.schema import Limits, Suite
from judge.table import Table, Text

_MAX_ERRORS = 3
"""Kinds of failures in a message."""
_MAX_CAUSE = 200
"""Characters of the first failure in a message."""


@dataclass(frozen=True, repr=False)
class Outcome:
    """The result of a suite: verdicts of its cases in order, of its limits, and of the baseline.

    - `result`: the scores of single texts; `ranked`: the pairwise comparisons. Each is None if no
      case needs it.
    - `comparison`: `result` compared with the baseline.
    - `trouble`: the reason why the suite could not run. It then has no verdicts.
    - `seconds`: the duration.
    - `warnings`: what qualifies the summary, such as a missing baseline.
    - `earlier`: the run whose values verdicts show beside their own, `baseline` or `last run`.
    - `risk`: how often verdicts would change, if requested.
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
    earlier: str = "baseline"
    risk: SuiteRisk | None = None

    @property
    def passed(self) -> bool:
        """Whether it ran and every verdict is met."""
        return not self.trouble and all(verdict.met for verdict in self.verdicts)

    def __repr__(self) -> str:
        if self.trouble:
            return f"<Outcome: {self.suite.name} could not run>"
        met = sum(verdict.met for verdict in self.verdicts)
        return f"<Outcome: {self.suite.name}, {met} of {plural(len(self.verdicts), 'check')} met>"


class Outcomes(plugins.Reported, tuple[Outcome, ...]):
    """The result of `judge.test`: an outcome for each suite."""

    VIEW: ClassVar[str] = "judge.report.views.suite:view"

    __slots__ = ()

    def __repr__(self) -> str:
        passed = sum(outcome.passed for outcome in self)
        return f"<Outcomes: {passed} of {plural(len(self), 'suite')} passed>"

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

    `tokens` is the estimate of the longest prompt, None if no judge counts tokens. `cost` is the
    estimated price in US dollars without a cache, None if unknown (`unpriced` says why). A limit on
    an unknown value is an `error`.
    """
    limit = suite.limits
    judged_rows: list[Row] = []
    for run in (result, ranked):
        if run is not None:
            judged_rows += _judged_rows(run.table)
    line = suite.lines.get("limits", 1)

    def verdict(limit_name: str, expected: str, decision: Decision) -> Verdict:
        return decision.verdict(
            kind="limit", name=limit_name, line=line, expected=expected
        )

    failures = _decide_failures(judged_rows, limit)
    verdicts = [verdict("failures", limit.describe_failures(), failures)]
    if limit.tokens is not None:
        decision = Decision("error", "no judge counts tokens", "unknown")
        if tokens is not None:
            decision = _decide_estimate(tokens, limit.tokens, f"{tokens:,}")
        verdicts.append(verdict("tokens", f"≤ {limit.tokens:,} a judgment", decision))
    if limit.cost is not None:
        reason = unpriced or "no published price for this model and endpoint"
        decision = Decision("error", f"{reason}: limit `tokens` instead", "unknown")
        if cost is not None:
            dollars = str(Budget(cost, "usd"))
            decision = _decide_estimate(cost, limit.cost.amount, dollars)
        verdicts.append(verdict("cost", f"≤ {limit.cost}", decision))
    return verdicts


def _judged_rows(table: Table) -> list[Row]:
    """Return the rows that a judge produced.

    Without the ties of equal texts, which no judge compared, and without a panel's own rows, which
    follow from the rows of its judges.
    """
    judged_columns = _judged_columns(table)
    rows: list[Row] = []
    for row in table.rows():
        if row.column not in judged_columns:
            continue
        if isinstance(row, Failure) or row.provenance.method != IDENTICAL:
            rows.append(row)
    return rows


def _judged_columns(table: Table) -> set[str]:
    """Return the names of the columns whose rows are a judge's answers."""
    # A panel has a column for each judge, and a column of its own with the criterion's name.
    criteria_of_panels = {column.criterion for column in table.columns if column.judge}
    judged_columns: set[str] = set()
    for column in table.columns:
        is_panel = not column.judge and column.name in criteria_of_panels
        if column.kind == "criterion" and not is_panel:
            judged_columns.add(column.name)
    return judged_columns


def _decide_failures(rows: Sequence[Row], limit: Limits) -> Decision:
    """Decide whether few enough judgments failed."""
    failed = [row for row in rows if isinstance(row, Failure)]
    count_by_kind = Counter(failure_kind(row.error) for row in failed)
    counts = [
        f"{count:,} {one_line(kind, 60)}" for kind, count in count_by_kind.most_common()
    ]
    kinds = first_names(counts, _MAX_ERRORS)
    measured = f"{len(failed):,} of {len(rows):,}"
    if failed:
        share = percent(len(failed) / len(rows))
        measured = f"{measured} ({share})"
    # A share of the judgments may miss a whole number by a rounding error.
    if len(failed) <= limit.most_failures(len(rows)) + NEAR:
        return Decision("passed", kinds, measured)
    first_failure = failed[0]
    name = text_name(first_failure.item, first_failure.system)
    cause = f"the first, {name}: {one_line(first_failure.message, _MAX_CAUSE)}"
    return Decision(
        "failed",
        joined(kinds, cause),
        measured,
        detail=describe_failure(first_failure),
    )


def _decide_estimate(value: float, most: float, measured: str) -> Decision:
    """Decide whether an estimate is within its limit. `measured` is the value in words."""
    if value <= most + NEAR:
        return Decision("passed", "", measured)
    return Decision("failed", "over the limit", measured)


def evaluate_case(
    case: Case,
    texts: Sequence[Text],
    result: Result | None,
    baseline: Result | None = None,
    ranked: Result | None = None,
    *,
    earlier: Result | None = None,
    failures: Limits | None = None,
    seed: int = 0,
) -> Verdict:
    """Return the verdict on a case about `texts` (item and system).

    The scores are in `result`, or in `ranked` if the case compares pairs. The verdict is `passed`
    if the whole interval is inside the expectation, `failed` if it is outside, and else
    `undecided`, which passes or fails by the policy of the case or its kind (see `Suite`).

    The interval depends on the texts (`judge.suite.mean_tests`):

    - one text: over its draws, or the bounds of unseen probability. A single reply has none, and
      its value decides.
    - fewer than six items: over all draws.
    - six items or more: over items.

    Pass rates have Wilson's interval. Shares of labels and flips are only counted.

    A text without a score is an `error`, which is never met. Among several texts, it is left out
    and named if `failures` allows that many.

    `earlier` is a run to show beside this one (default: the baseline). It may have other texts.
    `seed` is the seed of the statistical tests.
    """
    earlier = earlier or baseline
    context = CaseContext(case.stem(), texts, result, ranked, baseline, seed, earlier)
    decision = decide_case(case, context, failures or Limits())
    # Beside each verdict, reports show the value in the earlier run. Pairs have none there, and a
    # case about drift compares with the baseline itself.
    is_comparable = (
        earlier is not None and not context.pairwise and not case.needs_baseline
    )
    if is_comparable and not decision.before:
        context_before = replace(context, result=earlier, baseline=None)
        # The earlier run may have no scores for it.
        with suppress(Undecidable):
            decision_before = case.decide(context_before)
            decision = replace(decision, before=decision_before.found)
    judged_texts: tuple[JudgedText, ...] = ()
    if decision.status != "passed":
        # Without a score, the detail has the judge's reply.
        with suppress(Undecidable):
            judged_texts = case.judged_texts(context)
    # A criterion written with its keys would fill a table, so only its name is shown.
    criterion = case.stem() if keys_of(case.criterion) else case.criterion
    return decision.verdict(
        case.policy,
        kind=case.kind,
        name=case.name,
        line=case.line,
        expected=case.expected(context),
        criterion=criterion,
        texts=judged_texts[:MOST_TEXTS],
        n_texts=len(judged_texts),
    )


def decide_case(case: Case, context: CaseContext, failures: Limits) -> Decision:
    """Return the decision on a case; an `error` if there is nothing to decide from."""
    try:
        decision = case.decide(context)
        return _with_failures(case, context, decision, failures)
    except Undecidable as error:
        return Decision("error", error.message, "no score", detail=error.detail)


def _with_failures(
    case: Case,
    context: CaseContext,
    decision: Decision,
    failures: Limits,
) -> Decision:
    """Return the decision as the case's failed judgments qualify it.

    It is an `error` if there are more than `failures` allows. If they could change it, its reason
    says so.
    """
    case_scores = context.scored()
    rows = _expected_rows(context)
    n_failed = 0
    for item, system, opponent in rows:
        if case_scores.score(item, system, opponent) is None:
            n_failed += 1
    if n_failed > failures.most_failures(len(rows)) + NEAR:
        reason = joined(decision.reason, "more than the limit on failures allows")
        return replace(decision, status="error", reason=reason)
    if n_failed and decision.status == "passed" and case.generalizes:
        # The judge may fail on just those texts that would make the case fail.
        pessimistic = case.decide(case.with_failures_as_worst(context))
        if pessimistic.status != "passed":
            outcome = "a loss" if context.pairwise else "the worst score"
            reason = f"{pessimistic.status} if each failure were {outcome}"
            return replace(decision, reason=joined(decision.reason, reason))
    return decision


def _expected_rows(context: CaseContext) -> list[RowKey]:
    """Return the rows (item, system, opponent) that the case would have without failures."""
    if not context.pairwise:
        return [(item, system, "") for item, system in context.texts]
    rows: list[RowKey] = []
    for item, systems in context.by_item.items():
        for first_system, second_system in permutations(systems, 2):
            rows.append((item, first_system, second_system))
    return rows
