"""Every reason of a verdict on several items and every sentence of the summary is true.

Oracle: an independent analysis with exact sign flips and Student's t from scipy. A reason without a rule below fails
the test, so a new reason needs a rule for when it is true.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy import stats

from judge.report.views.suite import summarize
from judge.suite.case import Decision, Verdict
from judge.suite.evaluate import Outcome, evaluate_case
from judge.suite.expectations import Expectation
from judge.suite.schema import Limits, Suite

MIN_ITEMS = 6
ALPHA = 0.05


def decide(
    make: Any, keys: Mapping[str, Any], after: Mapping[str, Any], before: Mapping[str, Any] | None
) -> Verdict:
    """Return the verdict on single replies: lists of labels by system, "" for a failed one."""
    adapter: TypeAdapter[Any] = TypeAdapter(Expectation)
    case = adapter.validate_python({"name": "a case", "criterion": "relevance", **keys})
    texts = [(f"i{k}", system) for system, labels in after.items() for k in range(len(labels))]
    result = _result(make, after)
    baseline = _result(make, before) if before else None
    all_may_fail = Limits(failures="100%")
    return evaluate_case(
        case.located("relevance", 7, {}), texts, result, baseline, failures=all_may_fail
    )


def _result(make: Any, run: Mapping[str, Any]) -> Any:
    rows = [
        make.single(label, f"i{k}", system) if label else make.failed(f"i{k}", system)
        for system, labels in run.items()
        for k, label in enumerate(labels)
    ]
    return make.result(*rows)


class Reading:
    """Statistics of paired differences.

    `largest` is the largest possible difference. If it is set, it is used to test equal differences.
    """

    def __init__(
        self, first: list[str], second: list[str], *, largest: float | None = None
    ) -> None:
        self.largest = largest
        pairs = [(a, b) for a, b in zip(first, second, strict=True) if a and b]
        self.differences = np.array([float(a) - float(b) for a, b in pairs])
        self.lost = len(first) - len(pairs)
        self.n = len(pairs)

    def p(self, limit: float) -> float:
        """Return the two-sided p of a sign-flip test against a limit."""
        nonzero = self.differences[np.abs(self.differences - limit) > 1e-9] - limit
        if not len(nonzero):
            return 1.0
        signs = np.array(list(product((1, -1), repeat=len(nonzero)))).reshape(-1, len(nonzero))
        return float((np.abs(signs @ nonzero) >= abs(nonzero.sum()) - 1e-9).mean())

    @property
    def mean(self) -> float:
        return float(self.differences.mean())

    def ends(self) -> tuple[float, float]:
        """Return Student's interval; the value twice if all differences are equal."""
        error = self.differences.std(ddof=1) / sqrt(self.n)
        half = stats.t.ppf(0.975, self.n - 1) * error
        return self.mean - half, self.mean + half

    @property
    def is_constant(self) -> bool:
        return bool(np.ptp(self.differences) < 1e-9)

    def bounds(self, n: float) -> tuple[float, float]:
        """Return Clopper and Pearson's bounds for n items with the same difference."""
        assert self.largest is not None
        unseen = 1 - (ALPHA / 2) ** (1 / n)
        return (1 - unseen) * self.mean - unseen * self.largest, (
            1 - unseen
        ) * self.mean + unseen * self.largest

    @property
    def low(self) -> float:
        """Return the lower end of the interval that decides about a margin."""
        is_bounded = self.largest and self.is_constant
        return self.bounds(self.n)[0] if is_bounded else self.ends()[0]

    def side(self, limit: float) -> int:
        """Return 1 if the items show a mean above the limit, −1 if below, else 0."""
        low, high = self.ends()
        if self.largest and self.is_constant and limit:
            low, high = self.bounds(self.n)
        if self.n < MIN_ITEMS or self.p(limit) >= ALPHA:
            return 0
        return 1 if low > limit + 1e-9 else -1 if high < limit - 1e-9 else 0

    def needs(self, text: str, limit: float) -> bool:
        """Return whether ` (needs about 40 items)` is right. With enough items, the text has a p-value instead."""
        match = re.fullmatch(r" \((?:needs about ([\d,]+) items|p [<=] ([\d.]+))\)", text)
        assert match, text
        if match[2]:
            return abs(self.p(limit) - float(match[2])) < 0.00101
        n = int(match[1].replace(",", ""))
        if self.largest and self.is_constant:
            low, high = self.bounds(1.3 * n)
            low_before, high_before = self.bounds(0.7 * n)
            is_enough = low > limit or high < limit
            return n > self.n and is_enough and low_before <= limit <= high_before
        return n > self.n and (
            n <= 8 or self.power(1.3 * n, limit) > 0.8 > self.power(0.7 * n, limit)
        )

    def power(self, n: float, limit: float) -> float:
        effect = abs(self.mean - limit) / self.differences.std(ddof=1)
        return float(1 - stats.nct.cdf(stats.t.ppf(0.975, n - 1), n - 1, effect * sqrt(n)))


def order_is_true(reading: Reading, part: str, margin: float, status: str) -> bool:
    """Return whether one part of the reason for an order is right."""
    if match := re.fullmatch(r"(better|not worse by ([\d.]+)) \(p [<=] ([\d.]+)\)", part):
        shown = abs(reading.p(margin) - float(match[3])) < 0.00101
        size = not match[2] or float(match[2]) == -margin > 0
        return status == "passed" and reading.side(margin) > 0 and shown and size
    if match := re.fullmatch(r"worse \(p [<=] ([\d.]+)\)", part):
        return status == "failed" and reading.side(0.0) < 0
    if match := re.fullmatch(r"not better by ([\d.]+) \(p [<=] ([\d.]+)\)", part):
        shown = abs(reading.p(margin) - float(match[2])) < 0.00101
        return status == "failed" and reading.side(margin) < 0 and shown
    if match := re.fullmatch(
        r"no significant difference(?: from a (lead|loss) of ([\d.]+))?( \(.*\))?", part
    ):
        named = float(match[2] or 0) == abs(margin) and (match[1] == "loss") == (margin < 0)
        needs = not match[3] or reading.needs(match[3], margin)
        return status == "undecided" and reading.side(margin) == 0 and needs and named
    if match := re.fullmatch(
        r"the interval reaches (below a lead|beyond a loss) of ([\d.]+)( \(.*\))?", part
    ):
        named = float(match[2]) == abs(margin) and match[1].endswith("loss") == (margin < 0)
        needs = not match[3] or reading.needs(match[3], margin)
        crosses = reading.low < margin + 1e-9 and reading.mean > margin
        return status == "undecided" and reading.side(margin) == 0 and crosses and needs and named
    if re.fullmatch(r"no difference(?: from a (?:lead|loss) of [\d.]+)?", part):
        return status == "undecided" and not reading.differences.any()
    if match := re.fullmatch(r"all (\d+) alike", part):
        return reading.is_constant and int(match[1]) == reading.n
    return few_or_lost(reading, part, status)


def few_or_lost(reading: Reading, part: str, status: str) -> bool:
    """Return whether a reason common to orders and drift is right."""
    if part == f"no test on fewer than {MIN_ITEMS} items":
        return status == "undecided" and 1 < reading.n < MIN_ITEMS
    if part == "one reply each: draw more, or test at least 6 items":
        return status == "undecided" and 1 < reading.n < MIN_ITEMS
    if match := re.fullmatch(r"(\d+) texts? without a score", part):
        return int(match[1]) >= reading.lost
    if part.endswith(" if each failure were the worst score"):
        return status == "passed" and reading.lost > 0
    if match := re.fullmatch(r"on (\d+) of (\d+) texts", part):
        return int(match[1]) == reading.n < int(match[2])
    raise AssertionError(f"no rule says when this is true: {part}")


def drift_is_true(reading: Reading, part: str, limits: Mapping[str, float], status: str) -> bool:
    """Return whether one part of the reason for a drift is right."""
    low, high = reading.ends()
    if match := re.fullmatch(r"(changed|fell) by more than ([\d.]+) \(p [<=] [\d.]+\)", part):
        limit = float(match[2])
        beyond = high < -limit or (match[1] == "changed" and low > limit)
        return status == "failed" and beyond and limit in limits.values()
    if match := re.fullmatch(
        r"no significant difference from a change of (−?[\d.]+)( \(.*\))?", part
    ):
        limit = float(match[1].replace("−", "-"))
        return reading.side(limit) == 0 and (not match[2] or reading.needs(match[2], limit))
    if match := re.fullmatch(r"the interval reaches beyond a change of (−?[\d.]+)( \(.*\))?", part):
        limit = float(match[1].replace("−", "-"))
        is_met = reading.mean <= limit + 1e-9 if limit > 0 else reading.mean >= limit - 1e-9
        if limit == 0:
            # The limit applies to both signs of the shift, and the mean is within both limits.
            is_met = "max_shift" in limits or reading.mean >= -1e-9
        crosses = low < limit + 1e-9 and high > limit - 1e-9
        needs = not match[2] or reading.needs(match[2], limit)
        return status == "undecided" and is_met and crosses and needs
    if match := re.fullmatch(r"all (\d+) alike", part):
        return reading.is_constant and int(match[1]) == reading.n
    return few_or_lost(reading, part, status)


@st.composite
def two_sides(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Draw labels of two systems or runs on 1–12 items, with leads, ties, constant and missing values."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([1, 2, 5, 6, 7, 8, 10, 12]))
    lead = draw(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]))
    noise = draw(st.sampled_from([0.0, 0.4, 1.0]))
    second = random.integers(2, 5, n)
    raw = second + lead + noise * random.normal(size=n)
    first = np.clip(np.round(raw), 1, 5).astype(int)
    sides = [[str(label) for label in side] for side in (first, second)]
    if n > 2 and draw(st.booleans()):
        lost = random.random(n) < 0.2
        sides[0] = ["" if gone else label for gone, label in zip(lost, sides[0], strict=True)]
    return sides[0], sides[1]


@settings(max_examples=200)
@given(two_sides(), st.sampled_from([0.0, 0.0, 0.5, 1.0, -0.5, -1.0]))
@pytest.mark.slow
def test_every_reason_for_an_order_is_true(
    make: Any, sides: tuple[list[str], list[str]], margin: float
) -> None:
    better, worse = sides
    keys = {"better": "a", "worse": "b", "margin": margin}
    verdict = decide(make, keys, {"a": better, "b": worse}, None)
    reading = Reading(better, worse, largest=4.0)
    if not reading.n:
        assert verdict.status == "error"
        return
    if reading.n == 1:  # single replies decide by their values
        assert verdict.status != "passed" or reading.mean > margin
        return
    for part in filter(None, verdict.reason.split("; ")):
        assert order_is_true(reading, part, margin, verdict.status), (part, verdict)
    if verdict.status == "passed":
        assert reading.side(margin) > 0


@settings(max_examples=200)
@given(two_sides(), st.sampled_from(["max_shift", "max_drop"]), st.sampled_from([0.0, 0.25, 1.0]))
@pytest.mark.slow
def test_every_reason_for_a_drift_is_true(
    make: Any, sides: tuple[list[str], list[str]], name: str, limit: float
) -> None:
    after, before = sides
    verdict = decide(make, {"drift": {name: limit}}, {"s": after}, {"s": before})
    reading = Reading(after, before)
    if 2 * reading.n < len(after) or reading.n < 2:
        return
    for part in filter(None, verdict.reason.split("; ")):
        assert drift_is_true(reading, part, {name: limit}, verdict.status), (part, verdict)
    if verdict.status == "passed":
        low, high = reading.ends()
        assert low >= -limit - 1e-9
        assert name == "max_drop" or high <= limit + 1e-9


# The summary.

KINDS = st.sampled_from(["score_range", "drift", "limit", "baseline"])
STATUSES = st.sampled_from(["passed", "failed", "undecided", "error"])


def count(verdicts: list[Verdict], subject: str, is_counted: Callable[[Verdict], bool]) -> int:
    return sum(verdict.subject == subject and is_counted(verdict) for verdict in verdicts)


@given(st.lists(st.tuples(KINDS, STATUSES, st.booleans()), max_size=8), st.booleans())
def test_every_sentence_of_the_summary_is_true(
    drawn: list[tuple[Any, Any, bool]], is_stuck: bool
) -> None:
    verdicts = [
        Decision(status).verdict(
            "pass" if counts else "fail",
            kind=kind, name=f"v{place}", line=1, expected="≥ 4", criterion=f"v{place}",
        )
        for place, (kind, status, counts) in enumerate(drawn)
    ]  # fmt: skip
    suite = Suite(Path("a.judge.yaml"), "a", {}, ())
    outcomes = [Outcome(suite, tuple(verdicts))]
    if is_stuck:
        outcomes.append(Outcome(suite, trouble="no reply"))
    cases = count(verdicts, "case", lambda verdict: True)
    unmet = count(verdicts, "case", lambda verdict: not verdict.met)
    by_status = Counter(v.status for v in verdicts if v.subject == "case")
    n_passing = count(verdicts, "case", lambda v: v.status == "undecided" and v.met)
    summary = ". ".join(summarize(outcomes))
    assert ("1 suite could not run" in summary) == is_stuck
    assert ("No case was run" in summary) == (summary == "No case was run")
    if match := re.search(r"(\d+) cases?: ([^.]+)", summary):
        assert int(match[1]) == cases
        counts = re.findall(r"(\d+) (passed|failed|undecided|error)", match[2])
        assert {status: int(number) for number, status in counts} == by_status
        passing = re.search(r"undecided \((\d+) pass(?:es)?\)", match[2])
        assert int(passing[1] if passing else 0) == n_passing
    else:
        assert not unmet
    if match := re.search(r"(?:All )?(\d+) cases? pass(?:es)?", summary):
        assert int(match[1]) == cases == by_status["passed"]
    phrases = {
        "Limit not met": ("limit", {"failed"}),
        "Limit not checked": ("limit", {"error", "undecided"}),
        "Worse than the baseline": ("baseline", {"failed"}),
        "Not comparable with the baseline": ("baseline", {"error", "undecided"}),
    }
    for words, (subject, statuses) in phrases.items():
        match = re.search(rf"{words}: ([^.]+)", summary)
        named = set(re.findall(r"v\d+", match[1])) if match else set()
        right = {
            v.name for v in verdicts if v.subject == subject and not v.met and v.status in statuses
        }
        assert named == right


@pytest.mark.parametrize("keys", [{"better": "a", "worse": "b"}, {"expect": {"min": 3.5}}])
def test_a_passed_case_states_if_failures_could_change_it(make: Any, keys: dict[str, Any]) -> None:
    # Without its ten hardest texts, a is better than b.
    texts = {"a": ["5"] * 20 + [""] * 10, "b": ["4"] * 20 + ["5"] * 10}
    if "better" not in keys:
        del texts["b"]
    verdict = decide(make, keys, texts, None)
    assert verdict.status == "passed"
    assert verdict.reason.endswith(" if each failure were the worst score")
    assert "worst" not in decide(make, keys, texts | {"a": ["5"] * 30}, None).reason
