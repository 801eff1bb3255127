"""Expect one system's texts to be better than another's, by their scores or by pairwise comparison."""

from __future__ import annotations

from collections.abc import Sequence

from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.records import Column, Criterion, Estimate, Sample
from judge.stats.pairwise import verdict
from judge.suite.evidence import NEAR, MeanTest, Undecidable, mean
from judge.suite.expectations.baseline import format_change
from judge.suite.expectations.context import (
    STATUS,
    CaseContext,
    CaseOutcome,
    display_name,
    joined,
    missing,
    places,
    quoted,
    share,
    short,
    stem,
    which,
)
from judge.suite.records import Case, Order, Policy

UNDECIDED: Policy = "fail"
_EVEN = 0.5


def sentence(case: Case, order: Order) -> str:
    sides = [quoted(text.output) for text in case.texts] or [order.better, order.worse]
    return f"{stem(case)}: {sides[0]} above {sides[1]}{f' ({which(case)})' if case.items else ''}"


def check(order: Order, criterion: Criterion, texts: Sequence[Sample]) -> None:
    most = _EVEN if criterion.pairwise else criterion.scale.high - criterion.scale.low
    if order.margin >= most:
        quantity = "share of wins above one half" if criterion.pairwise else f"difference on {criterion.name}"
        raise ConfigError(f"margin: {order.margin:g} cannot be exceeded; the largest {quantity} is {most:g}")


def expected(context: CaseContext, order: Order) -> str:
    better, worse = display_name(order.better), display_name(order.worse)
    if context.pairwise:
        return f"{better} wins > {share(_EVEN + order.margin)} against {worse}"
    return f"{better} > {worse}{f' + {short(order.margin)}' if order.margin else ''}"


def decide(context: CaseContext, order: Order) -> CaseOutcome:
    scored, pairwise = context.scored(), context.pairwise
    both = [item for item, systems in context.by_item.items() if {order.better, order.worse} <= {*systems}]
    if not both:
        raise Undecidable(f"no item has texts of both {display_name(order.better)} and {display_name(order.worse)}")
    parts_of_item = scored.preference if pairwise else scored.difference
    parts_by_item = {item: parts_of_item(item, order.better, order.worse) for item in both}
    items = [parts for parts in parts_by_item.values() if parts]
    ends = (order.better, order.worse)
    lost = []
    for item in (item for item, parts in parts_by_item.items() if not parts):
        rows = [(item, *ends), (item, *ends[::-1])] if pairwise else [(item, system, "") for system in ends]
        lost += [row for row in rows if scored.score(*row) is None]
    lacking, detail = missing(scored, lost, items)
    even = _EVEN if pairwise else 0.0
    margin, zero = mean(items, even + order.margin, even, seed=context.seed)
    estimate = margin.moved(even + order.margin)
    flips = ""
    if pairwise:
        answered = (item for item, parts in parts_by_item.items() if parts)
        answers = [verdict(scored.score(item, *ends), scored.score(item, *ends[::-1])) for item in answered]
        if n_flips := sum(answer.flipped is True for answer in answers):
            flips = f"the order shown changed {n_flips:,} of {plural(len(answers), 'answer')}"
    single = "one reply each" if margin.single and _side(margin) < 0 else ""
    remark = joined(
        _describe_margin(margin, zero, order),
        single,
        margin.alike,
        flips,
        lacking,
    )
    return CaseOutcome(
        STATUS[_side(margin)],
        _format_estimate(estimate, scored.column, pairwise),
        remark,
        None,
        estimate,
        detail=detail,
    )


def _side(test: MeanTest) -> int:
    """1 above the limit, −1 not above it, 0 where it is not told.

    One reply decides by its value, and so does a tie. Of two to five items with one reply each nothing is told, and of
    so many without draws no lead.
    """
    e = test.estimate
    if test.too_few_reason:
        return 0
    if test.single or (e.low == e.high and e.value <= NEAR):
        return 1 if e.value > NEAR else -1
    return 0 if test.significant_direction > 0 and test.untested_reason else test.significant_direction


def _describe_margin(margin: MeanTest, zero: MeanTest, order: Order) -> str:
    side = _side(margin)
    if side > 0:
        return "ahead, one reply each" if margin.single else f"better{margin.tested}"
    if margin.too_few_reason:
        return margin.too_few_reason
    if side == 0 and margin.significant_direction > 0:
        return margin.untested_reason
    if side == 0:
        return f"not told apart{f' from a lead of {short(order.margin)}' if order.margin else ''}{margin.items_needed}"
    if zero.significant_direction < 0:
        return f"worse{zero.tested}"
    return f"not better by {short(order.margin)}{margin.tested}" if order.margin else "not better"


def _format_estimate(e: Estimate, column: Column, pairwise: bool) -> str:
    """`+1.30 [1.00, 1.60]`, or the share of comparisons won."""
    if pairwise:
        low, high = e.low, e.high
        ends = "" if low is None or high is None or low == high else f" [{share(max(0, low))}, {share(min(1, high))}]"
        return f"{share(e.value)}{ends}"
    return format_change(e, places(column))
