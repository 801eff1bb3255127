"""The evidence for a case: scores with their uncertainty, tests of their mean, and the rows they come from.

`ScoreEvidence` is one score with what its replies leave open. `MeanTest` is the mean over a case's items less a limit.
`CaseScores` looks up the scores of one criterion in a result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import ceil, fsum, log, sqrt
from typing import Literal

import numpy as np

from judge.core.format import (
    first_names,
    format_interval,
    format_p,
    number,
    one_line,
    plural,
    signed,
)
from judge.core.records import IDENTICAL, Column, Estimate, Failure, Sample, Score
from judge.results.result import Result
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS, Floats, mean_estimate, t_quantile, t_test
from judge.stats.bounded_mean import chance_beyond
from judge.stats.paired_differences import mean_differences
from judge.stats.power import ALPHA, MIN_ITEMS, Spread

NEAR = 1e-9
"""How far a value may be from a limit by rounding alone."""
_JUDGED = ("logprobs", "decisions", "samples", "single", "panel", "checklist")


@dataclass(frozen=True, slots=True)
class ScoreEvidence:
    """A score with its uncertainty.

    `low` and `high` bound the value for any outcome of what was not seen: probability on no label, or draws that did
    not parse. Both are None for a single reply. `sd` is the standard deviation of the `n` draws (divisor n − 1); None
    for fewer than two draws, or if the values of their labels are unknown.
    """

    value: float
    low: float | None
    high: float | None
    sd: float | None = None
    n: int = 1


Parts = Sequence[tuple[float, ScoreEvidence]]
"""The terms of a weighted sum: each score's factor and its evidence."""


def shares(score: Score) -> dict[str, float]:
    """Return the probability of each label in a single reply, or each label's share of the draws (sum 1).

    A single reply's label has 1. Empty for a score that is not made of labels.
    """
    p = score.provenance
    if p.distribution and (mass := fsum(p.distribution.values())) > 0:
        return {label: share / mass for label, share in p.distribution.items()}
    return {p.argmax: 1.0} if p.argmax is not None else {}


def label_values(column: Column) -> dict[str, float]:
    """Return the value of each label; empty if an older judge stored the column."""
    return dict(zip(column.labels, column.values, strict=False))


def reading(score: Score, values: Mapping[str, float]) -> ScoreEvidence:
    """Return a score as evidence; `values` are those of its labels. A score without a judge has no uncertainty."""
    value, p = score.value, score.provenance
    if p.method not in _JUDGED:
        return ScoreEvidence(value, value, value)
    if p.method != "samples":
        single = p.method in ("single", "panel") or p.low is None or p.high is None
        return ScoreEvidence(value, None, None) if single else ScoreEvidence(value, p.low, p.high)
    probabilities = shares(score)
    if p.n < 2 or probabilities.keys() - values.keys():
        return ScoreEvidence(value, None, None, n=p.n)
    mean = fsum(share * values[label] for label, share in probabilities.items())
    squares = fsum(share * (values[label] - mean) ** 2 for label, share in probabilities.items())
    low, high = (value if end is None else end for end in (p.low, p.high))
    return ScoreEvidence(value, low, high, sqrt(squares * p.n / (p.n - 1)), p.n)


def likeliest(shares: Mapping[str, float]) -> str:
    """Return the likeliest label, the first in the scale's order if several are; empty if there is none."""
    return max(shares, key=shares.__getitem__) if shares else ""


def label_margin(score: Score, label: str, rival: str) -> ScoreEvidence:
    """Return how much likelier a label is than another one: −1 to 1."""
    probabilities, p = shares(score), score.provenance
    value = probabilities.get(label, 0.0) - probabilities.get(rival, 0.0)
    mass = 1.0 if p.mass is None else min(p.mass, 1.0)
    seen = replace(p, low=value * mass - (1 - mass), high=value * mass + (1 - mass))
    others = dict.fromkeys(probabilities.keys() - {label, rival}, 0.0)
    return reading(
        replace(score, value=value, provenance=seen), {label: 1.0, rival: -1.0, **others}
    )


@dataclass(frozen=True, slots=True)
class MeanTest:
    """A mean over `items` minus a limit: `estimate` with `low` and `high` (None for single replies), `n` of `unit`s.

    `sd` is the standard deviation of one unit: an item's value, or a draw. `single`: a single reply is among the
    scores, so that there is no interval. `no_evidence` says why the items show nothing, whatever their mean.
    `rare_scores` says which scores that no item has could move the mean across the limit. `needed` items would decide,
    if it is known.
    """

    estimate: Estimate
    sd: float | None
    unit: Literal["item", "draw"]
    single: bool = False
    items: int = 1
    no_evidence: str = ""
    rare_scores: str = ""
    needed: int | None = None

    @property
    def too_few_reason(self) -> str:
        """Why the items, or single replies on several items, decide nothing; else empty."""
        if self.no_evidence:
            return self.no_evidence
        lone = not self.single or self.items == 1
        return (
            "" if lone else "too few items for a test, and one reply each: draw more, or add items"
        )

    @property
    def untested_reason(self) -> str:
        """Why exact probabilities of a few items show no lead; else empty."""
        bare = self.unit == "draw" and self.estimate.n < 2 and self.estimate.p is None
        return f"no test on fewer than {MIN_ITEMS} items" if bare and self.items > 1 else ""

    @property
    def alike(self) -> str:
        """`5 of 5 draws alike`, `all 12 alike`: the evidence for a value without an interval."""
        e = self.estimate
        if self.single or self.no_evidence or e.low != e.high or e.n < 2:
            return ""
        return f"all {e.n:,} alike" if self.unit == "item" else f"{e.n:,} of {e.n:,} draws alike"

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; of a single reply, its value twice."""
        e = self.estimate
        return e.value if e.low is None else e.low, e.value if e.high is None else e.high

    @property
    def direction(self) -> int:
        """1 if the whole interval is above the limit, −1 if it is below, else 0. A single reply counts by its value."""
        low, high = self.ends
        return 1 if low > NEAR else -1 if high < -NEAR else 0

    @property
    def significant_direction(self) -> int:
        """As `direction`, but also 0 if a test finds no significant difference from the limit, or without evidence."""
        p = self.estimate.p
        if self.no_evidence or self.rare_scores or (p is not None and p >= ALPHA):
            return 0
        return self.direction

    def moved(self, by: float) -> Estimate:
        """Return the estimate with the limit added again."""
        e = self.estimate
        low, high = (None if end is None else end + by for end in (e.low, e.high))
        return replace(e, value=e.value + by, low=low, high=high)

    @property
    def tested(self) -> str:
        """` (p < 0.001)`, or empty without a test."""
        return "" if self.estimate.p is None else f" ({format_p(self.estimate.p)})"

    @property
    def items_needed(self) -> str:
        """` (needs about 400 items)`, if the mean is as estimated; else the p-value or what is missing."""
        e = self.estimate
        if self.needed is not None:
            return needs(self.needed, e.n, self.unit) or self.tested
        if not self.sd or not e.value:
            unseen = self.unit == "draw" and e.p is None and e.high != e.low
            return " (unseen probability decides)" if unseen else self.tested
        return needs(Spread(e.n, e.value, self.sd).needed(), e.n, self.unit) or self.tested


def sum_minus_limit(parts: Parts, limit: float = 0.0, items: int = 1) -> MeanTest:
    """Return Σ c·value − limit, with Student's interval over the draws, widened by what was not seen.

    The degrees of freedom follow Welch and Satterthwaite; `n` is the smallest number of draws.
    """
    value = fsum(c * evidence.value for c, evidence in parts) - limit
    n = min((evidence.n for _, evidence in parts if evidence.n > 1), default=1)
    ends = [
        (c * evidence.low, c * evidence.high)
        for c, evidence in parts
        if evidence.low is not None and evidence.high is not None
    ]
    if len(ends) < len(parts):
        estimate = Estimate("value", value, None, None, n, "a single reply: no interval")
        return MeanTest(estimate, None, "draw", single=True, items=items)
    drawn = [
        ((c * evidence.sd) ** 2 / evidence.n, evidence.n) for c, evidence in parts if evidence.sd
    ]
    variance = fsum(v for v, _ in drawn)
    half, p = 0.0, None
    if variance > 0:
        error, freedom = (
            sqrt(variance),
            1 / fsum((v / variance) ** 2 / (n_draws - 1) for v, n_draws in drawn),
        )
        half = t_quantile(ALPHA / 2, freedom) * error
        p = t_test(value / error, freedom)
    low, high = fsum(map(min, ends)) - limit - half, fsum(map(max, ends)) - limit + half
    method = (
        f"95% interval over {n} draws, Student's t"
        if n > 1
        else "bounds, whatever was not seen of the probability"
    )
    estimate = Estimate("value", value, min(low, value), max(high, value), n, method, p)
    return MeanTest(estimate, sqrt(variance * n) if n > 1 else None, "draw", items=items)


def flip_probability(
    score: Score, met: Callable[[float], bool], values: Mapping[str, float]
) -> float | None:
    """Return the share (0–1) of single replies whose label's value is not `met`.

    `values` are those of the labels. None for a single reply, and if a value is unknown.
    """
    if not score.provenance.distribution or score.provenance.method in (IDENTICAL, "panel"):
        return None
    probabilities = shares(score)
    if probabilities.keys() - values.keys():
        return None
    return fsum(share for label, share in probabilities.items() if not met(values[label]))


def needs(n: int | None, there: int, unit: str) -> str:
    """` (needs about 400 items)`; nothing if there are as many already, or if it is unknown."""
    if n is None or n <= there:
        return ""
    rounded = round(n, -max(0, len(str(n)) - 2))  # two digits: it is only an estimate
    return f" (needs about {rounded:,} {unit}s)"


def mean(items: Sequence[Parts], *limits: float, seed: int = 0) -> list[MeanTest]:
    """Return the mean over items (each a sum of readings) minus each limit.

    From six items on, interval and p are over items (`mean_differences`). With fewer, no test can generalize: the
    result is about these texts alone, and the interval is over their draws.
    """
    if len(items) < MIN_ITEMS:
        parts = [(c / len(items), evidence) for parts in items for c, evidence in parts]
        return [sum_minus_limit(parts, limit, len(items)) for limit in limits]
    item_values = values(items)
    rows = np.round(item_values[None, :] - np.array(limits)[:, None], 9)
    sd = float(item_values.std(ddof=1))
    return [
        MeanTest(e, sd, "item", items=len(items))
        for e in mean_differences(rows, seed=seed)
        if e is not None
    ]


def mean_on_scale(
    items: Sequence[Parts],
    *limits: float,
    low: float | None,
    high: float | None,
    fewest: int = MIN_INTERVAL_ITEMS,
    seed: int = 0,
) -> list[MeanTest]:
    """Return the mean over items (each a sum of readings) on a scale from `low` to `high`, minus each limit.

    The interval is the report's (`mean_estimate`). Fewer than `fewest` items show nothing. If the interval excludes the limit,
    rare scores at the end of the scale must not be able to make up for it (`chance_beyond`): without this, gates pass
    too often if most scores are alike.
    """
    item_values = values(items)
    estimate = mean_estimate(item_values, low, high, fewest=fewest)
    few = ""
    if len(items) < fewest:
        few = f"{plural(len(items), 'item')}: at least {fewest} needed"
    elif estimate.low is None:
        few = estimate.method
    sd = float(item_values.std(ddof=1)) if len(items) > 1 else 0.0
    tests = []
    for limit in limits:
        ends = [end if end is None else end - limit for end in (estimate.low, estimate.high)]
        moved = replace(estimate, value=estimate.value - limit, low=ends[0], high=ends[1])
        test = MeanTest(moved, sd, "item", items=len(items), no_evidence=few)
        end = low if estimate.value > limit else high
        if end is None or few:
            tests.append(test)
            continue
        rare = ""
        if test.direction and chance_beyond(item_values, limit, end, seed=seed) >= ALPHA / 2:
            side = "above" if end < limit else "below"
            rare = f"{plural(len(items), 'item')} without a score of {end:g} do not show it {side}"
            if end in item_values:
                rare = f"few scores of {end:g} do not show it {side}"
        needed = None
        if low is not None and high is not None:
            needed = _items_on_scale(item_values, limit, end, high - low)
        tests.append(replace(test, rare_scores=rare, needed=needed))
    return tests


_MANY = 1_000  # items from which Student's t is normal
_T_STEPS = 5


def _items_on_scale(item_values: Floats, limit: float, end: float, width: float) -> int | None:
    """Return about how many items would show on which side of the limit the mean is, if they were like these.

    `end` is the end of the scale beyond the limit, `width` its length. None if the mean is at the limit.
    """
    value = float(item_values.mean())
    distance = abs(value - limit)
    if distance <= NEAR:
        return None
    # A share of 1 − (α / 2)^(1 / n) of the items may have any score unseen; about 3.7 / n.
    needed = -log(ALPHA / 2) * abs(value - end) / distance
    variance = float(item_values.var(ddof=1)) if len(item_values) > 1 else 0.0
    share = abs(value - end) / width
    share_at_limit = abs(limit - end) / width
    # Wilson's interval reaches the limit if (share − limit)² = t² · limit · (1 − limit) / tries.
    tries_per_item = 1.0
    if variance > 0:
        tries_per_item = share * (1 - share) * width**2 / variance
    of_normal = share_at_limit * (1 - share_at_limit) / (share - share_at_limit) ** 2
    items = float(MIN_INTERVAL_ITEMS)
    for _ in range(_T_STEPS):
        t = t_quantile(ALPHA / 2, int(min(items, _MANY)) - 1)
        items = max(MIN_INTERVAL_ITEMS, t**2 * of_normal / tries_per_item)
    needed = ceil(max(needed, items))
    if variance > 0:
        spread = Spread(len(item_values), value - limit, sqrt(variance))
        needed = max(needed, spread.needed() or 0)
    return needed


def item_means(
    texts: Iterable[Text], parts_of: Callable[[str, str], Parts], source_items: Mapping[str, str]
) -> list[Parts]:
    """Return each item's mean over its texts, from the terms of each; texts without terms are left out.

    `source_items` names the item of the data that a text's item is one of several generations for.
    """
    by_item: dict[str, list[Parts]] = {}
    for item, system in texts:
        if parts := parts_of(item, system):
            by_item.setdefault(source_items.get(item, item), []).append(parts)
    return [mean_of(each) for each in by_item.values()]


def mean_of(texts: Sequence[Parts]) -> Parts:
    """Return the terms of a mean over texts, each with its terms."""
    return [(c / len(texts), evidence) for parts in texts for c, evidence in parts]


def values(items: Sequence[Parts]) -> Floats:
    """Return the value of each item."""
    return np.array([fsum(c * evidence.value for c, evidence in parts) for parts in items])


def format_estimate(e: Estimate, places: int) -> str:
    """Write `4.62 [4.31, 4.93]`; the value alone if both ends read the same."""
    return f"{number(e.value, places)} {ends(e, places)}".rstrip()


def ends(e: Estimate, places: int) -> str:
    """Write `[4.31, 4.93]`; empty without an interval, or if both ends read the same."""
    if e.low is None or e.high is None or number(e.low, places) == number(e.high, places):
        return ""
    return format_interval(e.low, e.high, places)


def format_change(e: Estimate, places: int) -> str:
    """Write `+1.30 [1.00, 1.60]`."""
    return f"{signed(e.value, places)} {ends(e, places)}".rstrip()


Text = tuple[str, str]
"""An item and a system."""
Row = Score | Failure
_NAMED = 3  # texts in a message
_REMAKE = "renew the baseline with --update-baseline"


class Undecidable(Exception):
    """A case that cannot be decided: the reason, and the judge's reply."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.message, self.detail = message, detail


def columns(result: Result) -> dict[str, Column]:
    """Return the deciding column of each criterion: the judge's, a panel's, or scores from elsewhere."""
    deciding = [
        column
        for column in result.table.columns
        if (column.kind == "criterion" and not column.judge)
        or column.signature.startswith(f"{column.name}|external")
    ]
    return {column.criterion or column.name: column for column in deciding}


@dataclass(frozen=True)
class CaseScores:
    """One criterion's rows: the deciding `column`, and the columns of a panel's judges."""

    result: Result
    column: Column
    judges: Sequence[Column]
    source_items: Mapping[str, str] = field(default_factory=dict)
    rows: dict[tuple[str, str, str], dict[str, Row]] = field(default_factory=dict)

    @classmethod
    def for_criterion(
        cls, result: Result | None, criterion: str, items: Collection[str]
    ) -> CaseScores:
        """Collect the rows of these items. Raises Undecidable for a criterion that was not judged."""
        column = columns(result).get(criterion) if result else None
        if result is None or column is None:
            raise Undecidable(f"{one_line(criterion)} was not judged in this run")
        judges = [
            judge for judge in result.table.columns if judge.judge and judge.criterion == criterion
        ]
        case_scores = cls(
            result, column, judges, {s.item: s.cluster for s in result.table.samples if s.cluster}
        )
        names, wanted_items = {judge.name for judge in (column, *judges)}, frozenset(items)
        rows: Iterable[Row] = chain(*map(result.table.column_scores, names), result.table.failures)
        for row in rows:
            if row.item in wanted_items and row.column in names:
                case_scores.rows.setdefault((row.item, row.system, row.rival), {})[row.column] = row
        return case_scores

    def score(self, item: str, system: str, rival: str = "") -> Score | None:
        """Return the deciding score, None if there is none."""
        row = self.rows.get((item, system, rival), {}).get(self.column.name)
        return row if isinstance(row, Score) else None

    @property
    def one_value(self) -> str:
        """What a score without an interval is: one reply, or a panel's median or majority."""
        return "one reply" if self.column.panel == "mean" else f"panel {self.column.panel}"

    def values(self, samples: Iterable[Sample]) -> dict[Text, float]:
        """Return the deciding scores of these texts."""
        return {sample.key: score.value for sample in samples if (score := self.score(*sample.key))}

    def each(self, item: str, system: str, rival: str = "") -> list[tuple[Score, Column]]:
        """Return the scores behind the deciding one, with their columns: those of a panel's judges, or itself.

        A panel's median or majority stands for itself: like a single reply, it has no interval.
        """
        score = self.score(item, system, rival)
        if score and self.column.panel != "mean":
            return [(score, self.column)]
        by_column = self.rows.get((item, system, rival), {})
        judged = [
            (row, judge)
            for judge in self.judges
            if isinstance(row := by_column.get(judge.name), Score)
        ]
        if score is None or (judged and len(judged) == len(self.judges)):
            return judged if score else []
        return [(score, self.column)]

    def parts(self, item: str, system: str, rival: str = "") -> Parts:
        """Return the terms of a score, one per judge of a panel's mean; empty without a score."""
        scored = self.each(item, system, rival)
        return [(1 / len(scored), reading(score, label_values(column))) for score, column in scored]

    def passes(self, item: str, system: str) -> Parts:
        """Return 1 for a text that passes and 0 for any other; empty without a score. Raises Undecidable."""
        if self.column.pass_at is None:
            raise Undecidable(f"{one_line(self.column.name)} does not say what passes")
        if (score := self.score(item, system)) is None:
            return []
        passed = float(self.column.passes(score.value) or 0)
        return [(1.0, ScoreEvidence(passed, passed, passed))]

    def difference(self, items: Sequence[str], better: str, worse: str) -> Parts:
        """Return the terms of `better` minus `worse`, turned if lower is better; empty if one is missing.

        Several generations, each an item here, have their mean.
        """
        sides = [
            (sign, mean_of([parts for item in items if (parts := self.parts(item, system))]))
            for sign, system in ((1, better), (-1, worse))
        ]
        sign = -1 if self.column.better == "lower" else 1
        if not all(parts for _, parts in sides):
            return []
        return [(sign * side * c, evidence) for side, parts in sides for c, evidence in parts]

    def preference(self, items: Sequence[str], better: str, worse: str) -> Parts:
        """Return the terms of the preference for `better` (0–1), the mean of both orders; empty if one is missing.

        Several generations, each an item here, have their mean.
        """
        preferences = []
        for item in items:
            first, second = self.parts(item, better, worse), self.parts(item, worse, better)
            if first and second:
                both = [
                    (sign * c / 2, evidence)
                    for sign, parts in ((1, first), (-1, second))
                    for c, evidence in parts
                ]
                preferences.append([*both, (0.5, ScoreEvidence(1.0, 1.0, 1.0))])
        return mean_of(preferences)

    def shares(self, item: str, system: str) -> dict[str, float]:
        """Return the probability of each label in a single reply, averaged over a panel, in the scale's order.

        If a panel's majority decides, they are the shares of the votes.
        """
        distributions = [shares(score) for score, _ in self.each(item, system)]
        return {
            label: fsum(distribution.get(label, 0.0) for distribution in distributions)
            / len(distributions)
            for label in self.column.labels
            if any(label in distribution for distribution in distributions)
        }

    def missing_texts(self, texts: Sequence[Text]) -> tuple[str, str]:
        """Describe those of the texts that have no score. Raises Undecidable if none has one."""
        lost = [(*text, "") for text in texts if self.score(*text) is None]
        return self.describe_missing(lost, fatal=len(lost) == len(texts))

    def describe_missing(
        self, rows: Sequence[tuple[str, str, str]], *, fatal: bool = False
    ) -> tuple[str, str]:
        """Describe rows without a score, and return the first one's message and reply; two empty texts for none.

        Raises Undecidable if the lack is `fatal`, and for rows that were not judged at all: the limit on failed
        judgments does not cover them.
        """
        if not rows:
            return "", ""
        not_judged = [row for row in rows if self.column.name not in self.rows.get(row, {})]
        if not_judged:
            texts = (
                f"{one_line(item, 60)} ({one_line(system, 60)})" for item, system, _ in not_judged
            )
            raise Undecidable(f"not judged: {first_names(texts, _NAMED)}")
        # A panel's judges come before their mean, whose failure follows from theirs.
        by_column = (
            self.rows.get(row, {}).get(column.name)
            for row in rows
            for column in (*self.judges, self.column)
        )
        first = next((row for row in by_column if isinstance(row, Failure)), None)
        message, detail = (
            f"{plural(len(rows), 'text')} without a score",
            describe_failure(first) if first else "",
        )
        if fatal:
            raise Undecidable(message if len(rows) > 1 else detail.partition(":")[0], detail)
        return message, detail


def describe_failure(failure: Failure) -> str:
    """Return a failure's message and the reply, if any."""
    message = f"{failure.error}: {failure.message}"
    return (
        f"{message}\nreply: {failure.raw}"
        if failure.raw and failure.raw not in failure.message
        else message
    )


# Two runs


class Rescaled(Undecidable):
    """A criterion whose scale has changed."""


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """The scores of the `texts` scored both before and after; `scored_after` counts those scored after."""

    before: CaseScores
    after: CaseScores
    texts: Sequence[Text]
    scored_after: int

    def items(self) -> list[Parts]:
        """Return the difference of each item, after minus before, averaged over its systems."""

        def change(item: str, system: str) -> Parts:
            before, after = self.before.parts(item, system), self.after.parts(item, system)
            return [*after, *((-c, evidence) for c, evidence in before)]

        return item_means(self.texts, change, self.after.source_items)

    @property
    def some(self) -> str:
        """`on 7 of 12 texts`; empty if it is all of them."""
        n = len(self.texts)
        return "" if n == self.scored_after else f"on {n:,} of {plural(self.scored_after, 'text')}"

    def mean_before(self) -> float:
        """Return the mean of the items' means in the baseline."""
        return float(
            values(item_means(self.texts, self.before.parts, self.after.source_items)).mean()
        )

    def changed(self) -> str:
        """Write `24 of 36 labels flipped`, or how many scores changed if no label did; empty if none changed."""
        try:
            flips = len(self.flips())
        except Undecidable:
            flips = 0
        if flips:
            return f"{flips:,} of {plural(len(self.texts), 'label')} flipped"
        both = [(self.before.score(*text), self.after.score(*text)) for text in self.texts]
        moved = sum(abs(old.value - new.value) > NEAR for old, new in both if old and new)
        return f"{moved:,} of {plural(len(both), 'score')} changed" if moved else ""

    def flips(self) -> list[Text]:
        """Return the texts whose likeliest label changed. Raises Undecidable if scores are not made of labels."""
        sides = self.before, self.after
        tops = {text: [likeliest(side.shares(*text)) for side in sides] for text in self.texts}
        if not all(map(all, tops.values())):
            raise Undecidable("scores are not made of labels, so none can flip: limit the shift")
        return [text for text, (before, after) in tops.items() if before != after]


def pair_runs(
    before: Result, after: CaseScores, criterion: str, texts: Sequence[Text]
) -> PairedRuns:
    """Pair the texts that have a score in both runs.

    Raises Undecidable if the baseline lacks the criterion or has scores for fewer than half of the texts, Rescaled if
    its scale is another one.
    """
    try:
        scores_before = CaseScores.for_criterion(before, criterion, {item for item, _ in texts})
    except Undecidable:
        raise Undecidable(f"{one_line(criterion, 60)} is not in the baseline: {_REMAKE}") from None
    old_scale, new_scale = (
        "open"
        if column.low is None or column.high is None
        else f"{column.low:g} to {column.high:g}".replace("-", "−")
        for column in (scores_before.column, after.column)
    )
    if old_scale != new_scale:
        raise Rescaled(f"its scale was {old_scale} and is {new_scale}: {_REMAKE}")
    scored = [text for text in texts if after.score(*text)]
    shared = [text for text in scored if scores_before.score(*text)]
    if not shared:
        raise Undecidable("no text has a score both here and in the baseline")
    if 2 * len(shared) < len(scored):
        raise Undecidable(
            f"only {len(shared):,} of {plural(len(scored), 'text')} scored here have a score there: {_REMAKE}"
        )
    return PairedRuns(scores_before, after, shared, len(scored))
