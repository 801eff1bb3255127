"""The expectation that one system's texts, or one of two texts, score higher."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from pydantic import Field

from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.records import Column, Criterion, Sample
from judge.results.failures import failures_as_losses
from judge.stats.compared_pairs import tie_label, verdict
from judge.stats.paired_differences import ALL_EQUAL
from judge.stats.power import MIN_ITEMS
from judge.suite.case import (
    STATUS,
    Case,
    CaseContext,
    Decision,
    Number,
    Side,
    display_name,
    joined,
    percentage,
    quoted,
    short,
)
from judge.suite.case_scores import CaseScores, RowKey, places
from judge.suite.evidence import NEAR, Parts, Undecidable, item_values
from judge.suite.judged_texts import JudgedText, TextSource
from judge.suite.mean_tests import (
    MeanTest,
    format_change,
    mean,
    mean_on_scale,
    with_bounds_of_equal_items,
)
from judge.suite.thresholds import format_share
from judge.table import Text

_EVEN = 0.5
"""The share of wins at which neither of two systems is better."""


class Order(Case):
    """A system's texts score higher than another system's, or a text higher than another.

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
        # A mapping is a text inside the case, a name a system of the data.
        if isinstance(self.better, dict) != isinstance(self.worse, dict):
            self.mistake(
                "better and worse are two systems of the data, or two texts such as {output: ...}",
                "better",
            )
        if isinstance(self.better, dict):
            if "output" in self.text:
                self.mistake(
                    "output is in better and worse; leave it out of text",
                    "text",
                    "output",
                )
        elif self.better == self.worse:
            self.mistake(f"better and worse are both {self.better}", "worse")
        elif self.text:
            self.mistake(
                "better names a system of the data; beside text, write better: {output: ...}"
            )
        elif self.system:
            self.mistake(
                "better and worse name the systems; leave system out", "system"
            )

    def inline(self) -> Mapping[str, Mapping[str, Any]]:
        inline: dict[str, Mapping[str, Any]] = {}
        for side_name, side in self._sides.items():
            if isinstance(side, dict):
                # Both sides share the columns of `text`, such as the source.
                inline[side_name] = self.text | side
        return inline

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems of the two sides; texts inside the case are called `better` and `worse`."""
        names: list[str] = []
        for side_name, side in self._sides.items():
            names.append(side if isinstance(side, str) else side_name)
        return tuple(names)

    @property
    def _sides(self) -> dict[str, Any]:
        return {"better": self.better, "worse": self.worse}

    def select(
        self,
        by_item: Mapping[str, Sequence[Sample]],
        systems: Collection[str],
    ) -> list[Sample]:
        """Return the texts of items that have both."""
        better, worse = self.systems
        matching = self.matching(by_item, systems)
        # A case may name an item of the data, or one of its generations.
        available: set[Text] = set()
        for sample in matching:
            available.add((sample.item, sample.system))
            available.add((sample.source_item, sample.system))
        for item in self.item:
            if not {(item, better), (item, worse)} <= available:
                raise ConfigError(
                    f"item {item!r} does not have texts of both {better!r} and {worse!r}"
                )
        with_both: list[Sample] = []
        for sample in matching:
            both_texts = {(sample.source_item, better), (sample.source_item, worse)}
            if both_texts <= available:
                with_both.append(sample)
        if not with_both:
            raise ConfigError(
                f"none of these items has a text of both {better!r} and {worse!r}"
            )
        return with_both

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        if criterion.pairwise:
            most = _EVEN
            quantity = "share of wins above one half"
        else:
            most = criterion.scale.high - criterion.scale.low
            quantity = f"difference on {criterion.name}"
        # At the largest difference, no data could meet the case, or none could fail it.
        if not -most < self.margin < most:
            never = "cannot be" if self.margin > 0 else "is always"
            raise ConfigError(
                f"margin: {self.margin:g} {never} exceeded; the largest {quantity} is {most:g}"
            )

    def describe(self) -> str:
        better, worse = [quoted(text.output) for text in self.texts] or self.systems
        items = f" ({self.which()})" if self.item else ""
        return f"{self.stem()}: {better} above {worse}{items}"

    def expected(self, context: CaseContext) -> str:
        better, worse = (display_name(system) for system in self.systems)
        if context.pairwise:
            return f"{better} wins > {percentage(_EVEN + self.margin)} against {worse}"
        if not self.margin:
            return f"{better} > {worse}"
        sign = "−" if self.margin < 0 else "+"
        return f"{better} > {worse} {sign} {short(abs(self.margin))}"

    def with_failures_as_worst(self, context: CaseContext) -> CaseContext:
        if context.ranked is None or not context.pairwise:
            return super().with_failures_as_worst(context)
        # The worst outcome of a failed comparison is a loss of `better`.
        better, _ = self.systems
        column = context.scored().column.name
        with_losses = failures_as_losses(context.ranked, column, {better})
        return replace(context, ranked=with_losses)

    def loosened(self, share: float, column: Column) -> Order | None:
        if column.low is None or column.high is None:
            return None
        width = column.high - column.low
        looser_margin = round(self.margin - share * width, 3)
        return self.model_copy(update={"margin": looser_margin})

    def limit_text(self) -> str:
        return f"margin: {short(self.margin)}"

    def judged_texts(self, context: CaseContext) -> tuple[JudgedText, ...]:
        """Return both texts of the items on which `better` leads least."""
        scores = context.scored()
        source = TextSource.of(self.name, scores, context.earlier)
        better, worse = self.systems
        generations_by_item = self._items_with_both(context, scores)
        terms_by_item = self._terms(generations_by_item, context, scores)
        leads = item_values(list(terms_by_item.values()))
        lead_by_item = dict(zip(terms_by_item, leads, strict=True))
        smallest_first = sorted(lead_by_item, key=lead_by_item.__getitem__)
        texts: list[JudgedText] = []
        for item in smallest_first:
            first_generation = generations_by_item[item][0]
            if context.pairwise:
                texts += source.compared(first_generation, better, worse)
            else:
                both_texts = [(first_generation, better), (first_generation, worse)]
                texts += source.scored(both_texts)
        return tuple(texts)

    def decide(self, context: CaseContext) -> Decision:
        case_scores = context.scored()
        better, worse = self.systems
        items_with_both = self._items_with_both(context, case_scores)
        if not items_with_both:
            raise Undecidable(
                f"no item has texts of both {display_name(better)} and {display_name(worse)}"
            )
        terms_by_item = self._terms(items_with_both, context, case_scores)
        items = list(terms_by_item.values())
        compared: dict[str, list[str]] = {}
        without_score: dict[str, list[str]] = {}
        for item, generations in items_with_both.items():
            if item in terms_by_item:
                compared[item] = generations
            else:
                without_score[item] = generations
        lost = self._lost_rows(without_score, context, case_scores)
        lacking, detail = case_scores.describe_missing(lost, fatal=not items)
        even = _EVEN if context.pairwise else 0.0
        tests = self._test_lead(items, even, context)
        margin_test = tests.margin
        # The tests are about the distance from the margin; the verdict shows the lead itself.
        estimate = margin_test.moved(even + self.margin)
        side = _side(margin_test)
        if context.pairwise:
            measured = format_share(estimate)
            flips = self._describe_flips(compared, case_scores)
        else:
            measured = format_change(estimate, places(case_scores.column))
            flips = ""
        # If the case is met, the reason itself says so.
        single_replies = "one reply each" if margin_test.single and side < 0 else ""
        reason = self._describe_margin(tests)
        return Decision(
            STATUS[side],
            joined(reason, single_replies, margin_test.alike, flips, lacking),
            measured,
            estimate=estimate,
            detail=detail,
        )

    def _terms(
        self,
        items: Mapping[str, Sequence[str]],
        context: CaseContext,
        case_scores: CaseScores,
    ) -> dict[str, Parts]:
        """Return the terms of each item's lead, without the items that have no scores."""
        better, worse = self.systems
        lead_of = case_scores.preference if context.pairwise else case_scores.difference
        terms_by_item: dict[str, Parts] = {}
        for item, generations in items.items():
            terms = lead_of(generations, better, worse)
            if terms:
                terms_by_item[item] = terms
        return terms_by_item

    def _items_with_both(
        self,
        context: CaseContext,
        case_scores: CaseScores,
    ) -> dict[str, list[str]]:
        """Return the items of the data that have texts of both, with their generations."""
        generations_by_item: dict[str, list[str]] = {}
        systems_by_item = context.by_item
        for generation in systems_by_item:
            item = case_scores.source_items.get(generation, generation)
            generations_by_item.setdefault(item, []).append(generation)
        with_both: dict[str, list[str]] = {}
        for item, generations in generations_by_item.items():
            systems: set[str] = set()
            for generation in generations:
                systems.update(systems_by_item[generation])
            if systems.issuperset(self.systems):
                with_both[item] = generations
        return with_both

    def _rows(self, *, pairwise: bool) -> list[tuple[str, str]]:
        """Return the system and the opponent of an item's rows: a ranking shows both orders."""
        better, worse = self.systems
        if pairwise:
            return [(better, worse), (worse, better)]
        return [(better, ""), (worse, "")]

    def _lost_rows(
        self,
        items: Mapping[str, Sequence[str]],
        context: CaseContext,
        case_scores: CaseScores,
    ) -> list[RowKey]:
        """Return the rows of these items (with their generations) that have no score."""
        lost: list[RowKey] = []
        systems_by_item = context.by_item
        rows = self._rows(pairwise=context.pairwise)
        for generation in chain.from_iterable(items.values()):
            for system, opponent in rows:
                has_text = system in systems_by_item[generation]
                if has_text and case_scores.score(generation, system, opponent) is None:
                    lost.append((generation, system, opponent))
        return lost

    def _describe_flips(
        self, items: Mapping[str, Sequence[str]], case_scores: CaseScores
    ) -> str:
        """Say how many answers depend on which text was shown first, "" if none."""
        label_of_tie = tie_label(case_scores.column)
        n_answers = 0
        n_flipped = 0
        better, worse = self.systems
        for generation in chain.from_iterable(items.values()):
            forward = case_scores.score(generation, better, worse)
            backward = case_scores.score(generation, worse, better)
            if forward is None or backward is None:
                continue
            n_answers += 1
            if verdict(forward, backward, label_of_tie).flipped:
                n_flipped += 1
        if not n_flipped:
            return ""
        return f"the order shown changed {n_flipped:,} of {plural(n_answers, 'answer')}"

    def _test_lead(
        self, items: Sequence[Parts], even: float, context: CaseContext
    ) -> _LeadTests:
        """Test the lead against the margin, and against no lead, which is `even`.

        Several items are a sample of others, so this needs as many as the tests of a report.
        """
        limits = (even + self.margin, even)
        margin, zero = mean(
            items, *limits, n_resamples=context.n_resamples, seed=context.seed
        )
        # One item is no sample of others, so its draws decide.
        if len(items) == 1:
            return _LeadTests(margin, zero)
        if len(items) < MIN_ITEMS:
            too_few = f"no test on fewer than {MIN_ITEMS} items"
            margin = replace(margin, no_evidence=too_few)
            return _LeadTests(margin, replace(zero, no_evidence=too_few))
        if context.pairwise:
            # The interval is the one of a share; p still comes from the sign-flip test.
            bounded_margin, bounded_zero = mean_on_scale(
                items,
                *limits,
                low=0.0,
                high=1.0,
                n_resamples=context.n_resamples,
                seed=context.seed,
            )
            return _LeadTests(
                _with_p(bounded_margin, margin.estimate.p),
                _with_p(bounded_zero, zero.estimate.p),
            )
        if margin.estimate.low is None and self.margin:
            margin = self._test_equal_leads(margin, context.scored().column)
        return _LeadTests(margin, zero)

    def _test_equal_leads(self, margin: MeanTest, column: Column) -> MeanTest:
        """Return the test of leads that are the same on all items.

        The sign-flip test shows which side leads, but not by how much on other items.
        """
        if column.low is not None and column.high is not None:
            largest_lead = column.high - column.low
            return with_bounds_of_equal_items(
                margin, self.margin, -largest_lead, largest_lead
            )
        if margin.estimate.value <= NEAR:
            return margin
        untested = f"{ALL_EQUAL}, so the margin is not tested"
        return replace(margin, no_evidence=untested)

    def _describe_margin(self, tests: _LeadTests) -> str:
        """Say how the lead compares with the margin.

        The order of the reasons matters: the first that applies explains the verdict best.
        """
        margin = tests.margin
        side = _side(margin)
        if side > 0:
            return self._describe_met(margin)
        # Undecided, or not met, because of the data.
        if margin.too_few_reason:
            return margin.too_few_reason
        if margin.rare_scores:
            return f"{margin.rare_scores} {percentage(_EVEN + self.margin)}{margin.items_needed}"
        if side == 0 and margin.significant_direction > 0:
            return margin.untested_reason
        if side == 0:
            return self._describe_undecided(margin)
        # Not met: worse than the other side, or better by less than the margin.
        if tests.zero.significant_direction < 0:
            return f"worse{tests.zero.tested}"
        if self.margin > 0:
            return f"not better by {short(self.margin)}{margin.tested}"
        return "not better"

    def _describe_met(self, margin: MeanTest) -> str:
        ahead = "ahead"
        better = "better"
        if self.margin < 0:
            # Non-inferiority: at most this much worse.
            by = f" by {short(-self.margin)}"
            ahead = f"not behind{by}"
            better = f"not worse{by}"
        if margin.single:
            return f"{ahead}, one reply each"
        return f"{better}{margin.tested}"

    def _describe_undecided(self, margin: MeanTest) -> str:
        low, high = margin.ends
        if not self.margin:
            if low == high:
                return "no difference"
            return f"no significant difference{margin.items_needed}"
        kind = "loss" if self.margin < 0 else "lead"
        lead = f"a {kind} of {short(abs(self.margin))}"
        if low == high:
            return f"no difference from {lead}"
        if margin.estimate.value > NEAR and low < -NEAR:
            # The value alone would pass.
            side = "beyond" if self.margin < 0 else "below"
            return f"the interval reaches {side} {lead}{margin.more_needed}"
        return f"no significant difference from {lead}{margin.items_needed}"


@dataclass(frozen=True, slots=True)
class _LeadTests:
    """The tests of a lead against the margin, and against no lead."""

    margin: MeanTest
    zero: MeanTest


def _with_p(mean_test: MeanTest, p_value: float | None) -> MeanTest:
    """Return the test with another p."""
    return replace(mean_test, estimate=replace(mean_test.estimate, p=p_value))


def _side(mean_test: MeanTest) -> int:
    """Return 1 if above the limit, −1 if not above it, 0 if undecided.

    A single reply decides by its value, and so does a difference that is the same in all of six
    items or more. Texts that all score the same are undecided, and so are two to five items.
    """
    estimate = mean_test.estimate
    if mean_test.too_few_reason or mean_test.rare_scores:
        return 0
    is_constant = estimate.low == estimate.high
    if is_constant and abs(estimate.value) <= NEAR and not mean_test.single:
        return 0
    if mean_test.single or (is_constant and estimate.value <= NEAR):
        return 1 if estimate.value > NEAR else -1
    if mean_test.significant_direction > 0 and mean_test.untested_reason:
        return 0
    return mean_test.significant_direction
