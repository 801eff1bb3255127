"""The expectations of cases: one class each, and their union. Those of a least score are in `thresholds`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, get_args

from pydantic import Discriminator, Field, Tag

from judge.core.errors import ConfigError
from judge.core.format import first_names, number, one_line, percent, plural
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Estimate, Sample
from judge.results.failures import failures_as_losses
from judge.stats.bootstrap import wilson_interval
from judge.stats.paired_differences import ALL_EQUAL
from judge.stats.pairwise import verdict
from judge.stats.power import MIN_ITEMS
from judge.suite.agreement import Agreement
from judge.suite.case import (
    STATUS,
    AnyOf,
    Case,
    CaseContext,
    Decision,
    Keys,
    Name,
    Number,
    Points,
    Share,
    Side,
    decide_limit,
    describe_flaky,
    display_name,
    joined,
    percentage,
    places,
    quoted,
    short,
    worst,
)
from judge.suite.evidence import (
    NEAR,
    CaseScores,
    MeanTest,
    Parts,
    Text,
    Undecidable,
    format_change,
    label_margin,
    likeliest,
    mean,
    mean_on_scale,
    pair_runs,
)
from judge.suite.thresholds import Passes, PassRate, ScoreRange, format_share


class LikeliestLabel(Keys):
    """A label, and the share of the texts that have it."""

    label: Name = Field(description="The likeliest label.")
    share: Annotated[Share, Field(gt=0)] = Field(
        default=1.0, description="Share of several texts that must have the label (default: 1)."
    )


class Label(Case):
    """The likeliest label of a text, or of a share of several texts, is this one."""

    kind = "label"

    expect: LikeliestLabel

    @classmethod
    def matches(cls, keys: Mapping[str, Any]) -> bool:
        expect = keys.get("expect")
        return isinstance(expect, dict) and expect.get("label") is not None

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        label, labels = self.expect.label, criterion.scale.labels
        if label not in labels:
            raise ConfigError(
                f"label: {unknown_name_message(f'label of {criterion.name}', label, list(labels))}"
            )
        if self.expect.share < 1 and len(texts) == 1:
            raise ConfigError("share is for several texts, and this case has one: leave it out")

    def describe(self) -> str:
        share = self.expect.share
        return f"{self.about()}: {self.expect.label}" + (f" for {share:.0%}" if share < 1 else "")

    def expected(self, context: CaseContext) -> str:
        share = self.expect.share
        many = (
            ""
            if len(context.texts) == 1
            else " for all"
            if share >= 1
            else f" for ≥ {percentage(share)}"
        )
        return f"label {display_name(self.expect.label)}{many}"

    def decide(self, context: CaseContext) -> Decision:
        scored = context.scored()
        shares_by_text = {text: scored.shares(*text) for text in context.texts}
        lacking, detail = scored.missing_texts(context.texts)
        if not any(shares_by_text.values()):
            raise Undecidable(
                f"scores of {display_name(scored.column.name)} are not made of labels: expect min or max"
            )
        if len(shares_by_text) == 1:
            ((text, shares),) = shares_by_text.items()
            return self._decide_single(scored, text, shares)
        # Counted over all texts: one without a score does not have the label.
        tops = {text: likeliest(shares) for text, shares in shares_by_text.items()}
        others = {text: top for text, top in tops.items() if top != self.expect.label}
        hits, n = len(tops) - len(others), len(tops)
        met = hits >= self.expect.share * n - NEAR
        named = first_names(
            f"{one_line(item, 40)} {one_line(system, 30)}: {display_name(top)}"
            for (item, system), top in others.items()
            if top
        )
        return Decision(
            "passed" if met else "failed",
            joined("" if met else named, lacking),
            f"{hits:,} of {n:,} ({percent(hits / n)})",
            estimate=wilson_interval(hits, n),
            detail=detail,
        )

    def _decide_single(
        self, scored: CaseScores, text: Text, shares: Mapping[str, float]
    ) -> Decision:
        """Decide by the label's lead over the likeliest other one, within the uncertainty of the replies."""
        label = self.expect.label
        rivals = {
            name: shares.get(name, 0.0)
            for name in (*scored.column.labels, *shares)
            if name != label
        }
        rival = max(rivals, key=rivals.__getitem__)
        scores = [score for score, _ in scored.each(*text)]
        (lead,) = mean(
            [[(1 / len(scores), label_margin(score, label, rival)) for score in scores]], 0.0
        )
        top = likeliest(shares)
        side = (1 if top == label else -1) if lead.single else lead.significant_direction
        doubt = (
            ""
            if side
            else f"no significant difference from {display_name(rival)}{lead.items_needed}"
        )
        turned = 1 - shares.get(label, 0.0) if top == label else shares.get(label, 0.0)
        others = [display_name(name) for name, p in shares.items() if name != label and p > 0]
        answer = (
            display_name(label)
            if top != label
            else others[0]
            if len(others) == 1
            else "another label"
        )
        odds, flakiness = (None, "") if lead.single else describe_flaky(turned, f"say {answer}")
        measured = (
            display_name(top) if lead.single else f"{display_name(top)} ({percent(shares[top])})"
        )
        reason = joined(doubt, scored.one_value if lead.single else "", flakiness)
        return Decision(STATUS[side], reason, measured, odds, lead.estimate)


_EVEN = 0.5


class Order(Case):
    """Texts of a system, or a text, score higher than those of another one.

    With a pairwise criterion, `better` wins more than half of the comparisons.
    """

    kind = "order"
    generalizes = True
    compares_texts = True

    better: Side = Field(description="A system of the data, or the columns of a text.")
    worse: Side = Field(description="The system or text that must score lower.")
    margin: Number = Field(
        default=0.0,
        description="Least lead: points of the scale, or share of the comparisons above one half. "
        "With a negative one, `better` is not worse by that much (non-inferiority).",
    )

    def check_keys(self) -> None:
        if isinstance(self.better, dict) != isinstance(self.worse, dict):
            self.mistake(
                "better and worse are two systems of the data, or two texts such as {output: ...}",
                "better",
            )
        if isinstance(self.better, dict):
            if "output" in self.text:
                self.mistake(
                    "output is in better and worse; leave it out of text", "text", "output"
                )
        elif self.better == self.worse:
            self.mistake(f"better and worse are both {self.better}", "worse")
        elif self.text:
            self.mistake(
                "better names a system of the data; beside text, write better: {output: ...}"
            )
        elif self.system:
            self.mistake("better and worse name the systems; leave system out", "system")

    def inline(self) -> Mapping[str, Mapping[str, Any]]:
        return {
            name: self.text | columns
            for name, columns in self._sides.items()
            if isinstance(columns, dict)
        }

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems of the two sides; texts inside the case are called `better` and `worse`."""
        return tuple(side if isinstance(side, str) else name for name, side in self._sides.items())

    @property
    def _sides(self) -> dict[str, Any]:
        return {"better": self.better, "worse": self.worse}

    def select(
        self, by_item: Mapping[str, Sequence[Sample]], systems: Collection[str]
    ) -> list[Sample]:
        """Return the texts of items that have both."""
        better, worse = self.systems
        matching = self.matching(by_item, systems)
        there = {
            (item, sample.system)
            for sample in matching
            for item in (sample.item, sample.source_item)
        }
        if lone := next(
            (item for item in self.item for system in self.systems if (item, system) not in there),
            "",
        ):
            raise ConfigError(f"item {lone!r} does not have texts of both {better!r} and {worse!r}")
        matching = [
            sample
            for sample in matching
            if {(sample.source_item, better), (sample.source_item, worse)} <= there
        ]
        if not matching:
            raise ConfigError(f"none of these items has a text of both {better!r} and {worse!r}")
        return matching

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        most = _EVEN if criterion.pairwise else criterion.scale.high - criterion.scale.low
        if not -most < self.margin < most:
            quantity = (
                "share of wins above one half"
                if criterion.pairwise
                else f"difference on {criterion.name}"
            )
            never = "cannot be" if self.margin > 0 else "is always"
            raise ConfigError(
                f"margin: {self.margin:g} {never} exceeded; the largest {quantity} is {most:g}"
            )

    def describe(self) -> str:
        sides = [quoted(text.output) for text in self.texts] or self.systems
        return (
            f"{self.stem()}: {sides[0]} above {sides[1]}{f' ({self.which()})' if self.item else ''}"
        )

    def expected(self, context: CaseContext) -> str:
        better, worse = map(display_name, self.systems)
        if context.pairwise:
            return f"{better} wins > {percentage(_EVEN + self.margin)} against {worse}"
        lead = (
            f" {'−' if self.margin < 0 else '+'} {short(abs(self.margin))}" if self.margin else ""
        )
        return f"{better} > {worse}{lead}"

    def with_failures_as_worst(self, context: CaseContext) -> CaseContext:
        if context.ranked is None or not context.pairwise:
            return super().with_failures_as_worst(context)
        better = self.systems[0]
        column = context.scored().column.name
        return replace(context, ranked=failures_as_losses(context.ranked, column, {better}))

    def decide(self, context: CaseContext) -> Decision:
        scored, pairwise = context.scored(), context.pairwise
        better, worse = self.systems
        groups: dict[str, list[str]] = {}  # the generations of each item of the data
        for item in context.by_item:
            groups.setdefault(scored.source_items.get(item, item), []).append(item)
        both = {
            name: items
            for name, items in groups.items()
            if {better, worse} <= {system for item in items for system in context.by_item[item]}
        }
        if not both:
            raise Undecidable(
                f"no item has texts of both {display_name(better)} and {display_name(worse)}"
            )
        parts_of = scored.preference if pairwise else scored.difference
        items = {
            name: parts for name, group in both.items() if (parts := parts_of(group, better, worse))
        }
        rows = [(better, worse), (worse, better)] if pairwise else [(better, ""), (worse, "")]
        lost = [
            (item, *row)
            for name in both.keys() - items.keys()
            for item in both[name]
            for row in rows
            if row[0] in context.by_item[item] and scored.score(item, *row) is None
        ]
        lacking, detail = scored.describe_missing(lost, fatal=not items)
        even = _EVEN if pairwise else 0.0
        margin, zero = self._tests([*items.values()], even, context)
        estimate = margin.moved(even + self.margin)
        flips = ""
        if pairwise:
            answers = [
                verdict(*(scored.score(item, *row) for row in rows))
                for name in items
                for item in both[name]
            ]
            if n_flips := sum(answer.flipped is True for answer in answers):
                flips = f"the order shown changed {n_flips:,} of {plural(len(answers), 'answer')}"
        side = _side(margin)
        return Decision(
            STATUS[side],
            joined(
                self._describe_margin(margin, zero),
                "one reply each" if margin.single and side < 0 else "",
                margin.alike,
                flips,
                lacking,
            ),
            format_share(estimate) if pairwise else format_change(estimate, places(scored.column)),
            estimate=estimate,
            detail=detail,
        )

    def _tests(self, items: Sequence[Parts], even: float, context: CaseContext) -> list[MeanTest]:
        """Return the tests of the lead against the margin and against none.

        Several items are a sample of others, so they need as many as a report's tests do.
        """
        limits = even + self.margin, even
        tests = mean(items, *limits, seed=context.seed)
        if len(items) == 1:
            return tests
        if len(items) < MIN_ITEMS:
            few = f"no test on fewer than {MIN_ITEMS} items"
            return [replace(test, no_evidence=few) for test in tests]
        if context.pairwise:
            bounded = mean_on_scale(items, *limits, low=0.0, high=1.0, seed=context.seed)
            p_values = [test.estimate.p for test in tests]
            return [
                replace(test, estimate=replace(test.estimate, p=p))
                for test, p in zip(bounded, p_values, strict=True)
            ]
        if tests[0].estimate.low is None and self.margin:
            # The sign-flip test shows a lead, but not how large it is for other items.
            few = f"{ALL_EQUAL}, so the margin is not tested"
            return [replace(tests[0], no_evidence=few), tests[1]]
        return tests

    def _describe_margin(self, margin: MeanTest, zero: MeanTest) -> str:
        side = _side(margin)
        if side > 0:
            ahead, better = ("not behind", "not worse") if self.margin < 0 else ("ahead", "better")
            by = f" by {short(-self.margin)}" if self.margin < 0 else ""
            return (
                f"{ahead}{by}, one reply each" if margin.single else f"{better}{by}{margin.tested}"
            )
        if margin.too_few_reason:
            return margin.too_few_reason
        if margin.rare_scores:
            return f"{margin.rare_scores} {percentage(_EVEN + self.margin)}{margin.items_needed}"
        if side == 0 and margin.significant_direction > 0:
            return margin.untested_reason
        if side == 0:
            lead = (
                f" from a {'loss' if self.margin < 0 else 'lead'} of {short(abs(self.margin))}"
                if self.margin
                else ""
            )
            if margin.estimate.low == margin.estimate.high:
                return f"no difference{lead}"
            return f"no significant difference{lead}{margin.items_needed}"
        if zero.significant_direction < 0:
            return f"worse{zero.tested}"
        return (
            f"not better by {short(self.margin)}{margin.tested}"
            if self.margin > 0
            else "not better"
        )


def _side(test: MeanTest) -> int:
    """Return 1 if above the limit, −1 if not above it, 0 if undecided.

    A single reply decides by its value, and so does a difference that is the same in all of six items or more. Texts
    that all score the same are undecided, and so are two to five items.
    """
    e = test.estimate
    if test.too_few_reason or test.rare_scores:
        return 0
    if e.low == e.high and abs(e.value) <= NEAR and not test.single:
        return 0
    if test.single or (e.low == e.high and e.value <= NEAR):
        return 1 if e.value > NEAR else -1
    return (
        0 if test.significant_direction > 0 and test.untested_reason else test.significant_direction
    )


class Moves(AnyOf):
    """Limits of the change from the baseline."""

    hint = "write max_shift, max_drop or max_flips"

    max_shift: Points | None = Field(
        default=None, description="Change of the mean, up or down, in points of the scale."
    )
    max_drop: Points | None = Field(
        default=None, description="Worsening of the mean, in points of the scale."
    )
    max_flips: Share | None = Field(
        default=None, description="Share of the texts whose likeliest label changes."
    )


class Drift(Case):
    """The scores stay near the baseline; flipped labels are counted, not estimated."""

    kind = "drift"
    undecided_is = "pass"
    needs_baseline = True

    drift: Moves

    @property
    def bounds_mean(self) -> bool:
        limits_mean = self.drift.max_shift is not None or self.drift.max_drop is not None
        return limits_mean and not (self.item or self.system or self.texts)

    def describe(self) -> str:
        return f"{self.about()} stays the same"

    def expected(self, context: CaseContext) -> str:
        limits = (
            ("shift", self.drift.max_shift, short),
            ("drop", self.drift.max_drop, short),
            ("flips", self.drift.max_flips, percentage),
        )
        return ", ".join(
            f"{name} ≤ {write(limit)}" for name, limit, write in limits if limit is not None
        )

    def decide(self, context: CaseContext) -> Decision:
        if context.baseline is None:
            raise Undecidable(
                "no baseline: name one with --baseline, or make one with --update-baseline"
            )
        scored = context.scored()
        lacking, detail = scored.missing_texts(context.texts)
        runs = pair_runs(context.baseline, scored, context.criterion, context.texts)
        # The side on which the change must be of minus the limit on that side, and what a larger one is called.
        limits: list[tuple[int, float, str]] = []
        if (shift := self.drift.max_shift) is not None:
            limits += [(1, shift, "changed"), (-1, shift, "changed")]
        if (drop := self.drift.max_drop) is not None:
            limits.append((-1 if scored.column.better == "lower" else 1, drop, "fell"))
        still, *means = mean(
            runs.items(), 0.0, *(-sign * limit for sign, limit, _ in limits), seed=context.seed
        )
        decisions = [
            Decision("undecided", test.too_few_reason)
            if test.too_few_reason
            else decide_limit(
                test,
                sign,
                f"{verb} by more than {short(limit)}",
                f"a change of {short(-sign * limit)}",
            )
            for test, (sign, limit, verb) in zip(means, limits, strict=True)
        ]
        decimals, n, measured, remarks = places(scored.column), len(runs.texts), [], []
        if limits:
            measured.append(format_change(still.estimate, decimals))
            remarks = [
                "one reply each" if still.single and not still.too_few_reason else "",
                still.alike,
            ]
        estimate: Estimate | None = still.estimate
        if (max_flips := self.drift.max_flips) is not None:
            flips = runs.flips()
            measured.append(f"{len(flips):,} of {n:,} flipped ({percent(len(flips) / n)})")
            if len(flips) <= max_flips * n + NEAR:
                decisions.append(Decision("passed"))
            else:
                flipped = first_names(
                    f"{display_name(item)} ({display_name(system)})" for item, system in flips
                )
                decisions.append(
                    Decision("failed", f"more than {percentage(max_flips)} flipped: {flipped}")
                )
            estimate = still.estimate if limits else wilson_interval(len(flips), n)
        reason = dict.fromkeys(decision.reason for decision in decisions)
        return Decision(
            worst(decisions).status,
            joined(*reason, *remarks, runs.some, lacking),
            ", ".join(measured),
            estimate=estimate,
            before=number(runs.mean_before(), decimals),
            detail=detail,
        )


def matching_classes(keys: Mapping[str, Any]) -> list[type[Case]]:
    """Return the classes that match these keys; exactly one for a valid case."""
    return [expectation for expectation in EXPECTATIONS if expectation.matches(keys)]


def _tag(keys: Any) -> str | None:
    matching = matching_classes(keys) if isinstance(keys, dict) else []
    return matching[0].__name__ if len(matching) == 1 else None


Expectation = Annotated[
    Annotated[ScoreRange, Tag("ScoreRange")]
    | Annotated[Passes, Tag("Passes")]
    | Annotated[PassRate, Tag("PassRate")]
    | Annotated[Label, Tag("Label")]
    | Annotated[Order, Tag("Order")]
    | Annotated[Agreement, Tag("Agreement")]
    | Annotated[Drift, Tag("Drift")],
    Discriminator(_tag),
]
EXPECTATIONS: tuple[type[Case], ...] = tuple(
    get_args(tagged)[0] for tagged in get_args(get_args(Expectation)[0])
)
