"""The expectations of cases and their union. Some of the classes have a module of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import Discriminator, Field, Tag

from judge.core.errors import ConfigError
from judge.core.format import first_names, number, one_line, percent
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Sample
from judge.stats.bootstrap import wilson_interval
from judge.suite.agreement import Agreement
from judge.suite.case import (
    STATUS,
    AnyOf,
    Case,
    CaseContext,
    Decision,
    Flakiness,
    Keys,
    Name,
    Points,
    Share,
    decide_limit,
    describe_flaky,
    display_name,
    joined,
    percentage,
    short,
    worst,
)
from judge.suite.case_scores import CaseScores, PairedRuns, pair_runs, places
from judge.suite.evidence import NEAR, Undecidable, label_margin, likeliest
from judge.suite.judged_texts import TextSource
from judge.suite.mean_tests import MeanTest, format_change, mean
from judge.suite.order import Order
from judge.suite.thresholds import Passes, PassRate, ScoreRange
from judge.table import Text


class LikeliestLabel(Keys):
    """A label, and the share of the texts that have it."""

    label: Name = Field(description="The likeliest label.")
    share: Annotated[Share, Field(gt=0)] = Field(
        default=1.0,
        description="Share of several texts that must have the label (default: 1).",
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
        label = self.expect.label
        labels = criterion.scale.labels
        if label not in labels:
            kind = f"label of {criterion.name}"
            problem = unknown_name_message(kind, label, list(labels))
            raise ConfigError(f"label: {problem}")
        # The share would be met by all or nothing.
        if self.expect.share < 1 and len(texts) == 1:
            raise ConfigError(
                "share is for several texts, and this case has one: leave it out"
            )

    def describe(self) -> str:
        share = f" for {self.expect.share:.0%}" if self.expect.share < 1 else ""
        return f"{self.about()}: {self.expect.label}{share}"

    def expected(self, context: CaseContext) -> str:
        label = f"label {display_name(self.expect.label)}"
        if len(context.texts) == 1:
            return label
        if self.expect.share >= 1:
            return f"{label} for all"
        return f"{label} for ≥ {percentage(self.expect.share)}"

    def shortfall(self, source: TextSource, text: Text) -> float | None:
        shares = source.scores.shares(*text)
        if not shares:
            return None
        return 1 - shares.get(self.expect.label, 0.0)

    def decide(self, context: CaseContext) -> Decision:
        case_scores = context.scored()
        shares_by_text = {text: case_scores.shares(*text) for text in context.texts}
        lacking, detail = case_scores.missing_texts(context.texts)
        if not any(shares_by_text.values()):
            column = display_name(case_scores.column.name)
            raise Undecidable(
                f"scores of {column} are not made of labels: expect min or max"
            )
        if len(shares_by_text) == 1:
            text, shares = next(iter(shares_by_text.items()))
            return self._decide_single(case_scores, text, shares)
        return self._decide_share(shares_by_text, lacking, detail)

    def _decide_share(
        self,
        shares_by_text: Mapping[Text, Mapping[str, float]],
        lacking: str,
        detail: str,
    ) -> Decision:
        """Decide by the share of all texts that have the label.

        A text without a score does not have it. `lacking` and `detail` describe these texts.
        """
        others: list[str] = []
        hits = 0
        for (item, system), shares in shares_by_text.items():
            top = likeliest(shares)
            if top == self.expect.label:
                hits += 1
            elif top:
                text_name = f"{one_line(item, 40)} {one_line(system, 30)}"
                others.append(f"{text_name}: {display_name(top)}")
        total = len(shares_by_text)
        measured = f"{hits:,} of {total:,} ({percent(hits / total)})"
        estimate = wilson_interval(hits, total)
        if hits >= self.expect.share * total - NEAR:
            return Decision(
                "passed", lacking, measured, estimate=estimate, detail=detail
            )
        reason = joined(first_names(others), lacking)
        return Decision("failed", reason, measured, estimate=estimate, detail=detail)

    def _decide_single(
        self,
        case_scores: CaseScores,
        text: Text,
        shares: Mapping[str, float],
    ) -> Decision:
        """Decide by the label's lead over the likeliest other one.

        The lead counts within the uncertainty of the replies.
        """
        label = self.expect.label
        opponent = self._likeliest_opponent(case_scores, shares)
        scores = [score for score, _ in case_scores.each(*text)]
        factor = 1 / len(scores)
        margins = [(factor, label_margin(score, label, opponent)) for score in scores]
        # The mean over a panel's judges, of how much likelier the label is than the opponent.
        (lead,) = mean([margins], 0.0)
        top = likeliest(shares)
        side = lead.significant_direction
        if lead.single:
            # A single reply has no interval; its label decides.
            side = 1 if top == label else -1
        doubt = ""
        if not side:
            doubt = f"no significant difference from {display_name(opponent)}{lead.items_needed}"
        if lead.single:
            reason = joined(doubt, case_scores.one_value)
            measured = display_name(top)
            return Decision(STATUS[side], reason, measured, estimate=lead.estimate)
        flakiness = self._flakiness(shares)
        reason = joined(doubt, flakiness.description)
        measured = f"{display_name(top)} ({percent(shares[top])})"
        return Decision(STATUS[side], reason, measured, flakiness.share, lead.estimate)

    def _likeliest_opponent(
        self, case_scores: CaseScores, shares: Mapping[str, float]
    ) -> str:
        """Return the likeliest label besides the expected one."""
        # A column that an older judge stored has no labels.
        all_labels = dict.fromkeys([*case_scores.column.labels, *shares])
        opponents = [label for label in all_labels if label != self.expect.label]
        return max(opponents, key=lambda label: shares.get(label, 0.0))

    def _flakiness(self, shares: Mapping[str, float]) -> Flakiness:
        """Return the share of single replies that would turn the verdict."""
        expected_label = self.expect.label
        share = shares.get(expected_label, 0.0)
        if likeliest(shares) != expected_label:
            return describe_flaky(share, f"say {display_name(expected_label)}")
        possible = [label for label in shares if shares[label] > 0]
        others = [label for label in possible if label != expected_label]
        answer = display_name(others[0]) if len(others) == 1 else "another label"
        return describe_flaky(1 - share, f"say {answer}")


class Moves(AnyOf):
    """Limits of the change from the baseline."""

    hint = "write max_shift, max_drop or max_flips"

    max_shift: Points | None = Field(
        default=None,
        description="Change of the mean, up or down, in points of the scale.",
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
        # A case about some texts leaves the mean of all to the comparison with the baseline.
        limits_mean = (
            self.drift.max_shift is not None or self.drift.max_drop is not None
        )
        return limits_mean and not (self.item or self.system or self.texts)

    def describe(self) -> str:
        return f"{self.about()} stays the same"

    def expected(self, context: CaseContext) -> str:
        limits: list[str] = []
        if self.drift.max_shift is not None:
            limits.append(f"shift ≤ {short(self.drift.max_shift)}")
        if self.drift.max_drop is not None:
            limits.append(f"drop ≤ {short(self.drift.max_drop)}")
        if self.drift.max_flips is not None:
            limits.append(f"flips ≤ {percentage(self.drift.max_flips)}")
        return ", ".join(limits)

    def shortfall(self, source: TextSource, text: Text) -> float | None:
        old_score = source.earlier.score(*text) if source.earlier else None
        new_score = source.scores.score(*text)
        if old_score is None or new_score is None:
            return None
        return abs(new_score.value - old_score.value)

    def decide(self, context: CaseContext) -> Decision:
        if context.baseline is None:
            raise Undecidable(
                f"no baseline: name one with {option('baseline')}, or make one with "
                f"{option('update_baseline', True)}"
            )
        case_scores = context.scored()
        lacking, detail = case_scores.missing_texts(context.texts)
        criterion = context.criterion
        runs = pair_runs(context.baseline, case_scores, criterion, context.texts)
        limits = self._mean_limits(case_scores)
        bounds = [limit.bound for limit in limits]
        # The first test is against no change; the verdict shows its estimate.
        no_change, *tests = mean(
            runs.items(),
            0.0,
            *bounds,
            n_resamples=context.n_resamples,
            seed=context.seed,
        )
        tests_and_limits = zip(tests, limits, strict=True)
        decisions = [
            _decide_mean(mean_test, limit) for mean_test, limit in tests_and_limits
        ]
        decimals = places(case_scores.column)
        estimate = no_change.estimate
        measured: list[str] = []
        remarks: list[str] = []
        if limits:
            measured.append(format_change(no_change.estimate, decimals))
            if no_change.single and not no_change.too_few_reason:
                remarks.append("one reply each")
            remarks.append(no_change.alike)
        if self.drift.max_flips is not None:
            flips = _decide_flips(runs, self.drift.max_flips)
            decisions.append(flips)
            measured.append(flips.found)
            if not limits and flips.estimate is not None:
                estimate = flips.estimate
        # Both sides of a shift may have the same reason.
        reasons = dict.fromkeys(decision.reason for decision in decisions)
        return Decision(
            worst(decisions).status,
            joined(*reasons, *remarks, runs.some, lacking),
            ", ".join(measured),
            estimate=estimate,
            before=number(runs.mean_before(), decimals),
            detail=detail,
        )

    def _mean_limits(self, case_scores: CaseScores) -> list[_MeanLimit]:
        limits: list[_MeanLimit] = []
        if self.drift.max_shift is not None:
            limits.append(_MeanLimit(1, self.drift.max_shift, "changed"))
            limits.append(_MeanLimit(-1, self.drift.max_shift, "changed"))
        if self.drift.max_drop is not None:
            sign = -1 if case_scores.column.better == "lower" else 1
            limits.append(_MeanLimit(sign, self.drift.max_drop, "fell"))
        return limits


@dataclass(frozen=True, slots=True)
class _MeanLimit:
    """A limit of the change of the mean: no more than `size` towards the bad side.

    `sign` is 1 if the mean may not fall below the bound, −1 if it may not rise above it. `verb` is
    how a message calls a change beyond the bound.
    """

    sign: int
    size: float
    verb: str

    @property
    def bound(self) -> float:
        """The largest change allowed, in points of the scale: a drop is negative."""
        # Adding 0.0 makes 0 of −0.
        return -self.sign * self.size + 0.0


def _decide_mean(mean_test: MeanTest, limit: _MeanLimit) -> Decision:
    """Decide whether the mean stays within a limit, given its test against the limit's bound."""
    beyond = f"{limit.verb} by more than {short(limit.size)}"
    change = f"a change of {short(limit.bound)}"
    return decide_limit(
        mean_test, limit.sign, beyond, change, reaches=f"beyond {change}"
    )


def _decide_flips(runs: PairedRuns, max_flips: float) -> Decision:
    """Decide whether few enough likeliest labels changed."""
    flips = runs.flips()
    n_flips = len(flips)
    total = len(runs.texts)
    measured = f"{n_flips:,} of {total:,} flipped ({percent(n_flips / total)})"
    estimate = wilson_interval(n_flips, total)
    if n_flips <= max_flips * total + NEAR:
        return Decision("passed", found=measured, estimate=estimate)
    names = [f"{display_name(item)} ({display_name(system)})" for item, system in flips]
    reason = f"more than {percentage(max_flips)} flipped: {first_names(names)}"
    return Decision("failed", reason, measured, estimate=estimate)


def matching_classes(keys: Mapping[str, Any]) -> list[type[Case]]:
    """Return the classes that match these keys; exactly one for a valid case."""
    return [expectation for expectation in EXPECTATIONS if expectation.matches(keys)]


def _tag(keys: Any) -> str | None:
    """Return the name of the class for these keys.

    Without one, pydantic reports `union_tag_not_found`, which `YamlSource` explains.
    """
    if not isinstance(keys, dict):
        return None
    matching = matching_classes(keys)
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
# Read from the union, so that a new expectation is entered only once.
_UNION, _ = get_args(Expectation)
EXPECTATIONS: tuple[type[Case], ...] = tuple(
    get_args(tagged)[0] for tagged in get_args(_UNION)
)
