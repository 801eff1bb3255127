"""Verdicts of every kind: by intervals, by counts, and never passed without a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy import stats

from judge.core.budget import Budget
from judge.core.records import IDENTICAL, Column, Failure, Provenance, Score
from judge.core.signature import Signature
from judge.results.result import Result
from judge.stats.bootstrap import item_means
from judge.stats.paired_differences import mean_differences
from judge.stats.run_differences import compare_runs
from judge.suite.baseline import compare_with_baseline
from judge.suite.case import Case, Verdict
from judge.suite.evaluate import evaluate_case, limits
from judge.suite.expectations import Expectation
from judge.suite.schema import Limits, Suite
from tests.factories import has_line, lines_hold

Keys = dict[str, Any]
ONE = [("i", "s")]
AB = Column(
    "relevance",
    "criterion",
    Signature("relevance@2", "orders=2"),
    0.0,
    1.0,
    ("B", "A"),
    "relevance",
    values=(0.0, 1.0),
)
THIRTEEN = {"4": 13, "3": 7}  # mean 3.65, interval 3.42 to 3.88


EXPECTATION: TypeAdapter[Case] = TypeAdapter(Expectation)


def case(expected: Keys, criterion: str = "relevance", **keys: Any) -> Case:
    expectation = EXPECTATION.validate_python(
        {"name": "a case", "criterion": criterion, **expected, **keys}
    )
    return expectation.located(criterion, 7, {})


def verdict(expected: Keys, *texts_and_results: Any, **options: Any) -> Verdict:
    return evaluate_case(case(expected), *texts_and_results, **options)


def against_baseline(
    after: Any, before: Any, of: Suite | None = None, *, seed: int = 0
) -> list[Verdict]:
    return compare_with_baseline(
        of or suite(), after, before, compare_runs(before.table, after.table, seed=seed), seed=seed
    )


def in_range(low: float | None = None, high: float | None = None) -> Keys:
    return {"expect": {"min": low, "max": high}}


def labelled(label: str, share: float = 1.0) -> Keys:
    return {"expect": {"label": label, "share": share}}


def ordered(better: str, worse: str, margin: float = 0.0) -> Keys:
    return {"better": better, "worse": worse, "margin": margin}


def agreeing(least: Mapping[str, float], level: str | None = None) -> Keys:
    return {
        "human": {"level": level, **{name: {"min": minimum} for name, minimum in least.items()}}
    }


def drifting(
    shift: float | None = None, drop: float | None = None, flips: float | None = None
) -> Keys:
    return {"drift": {"max_shift": shift, "max_drop": drop, "max_flips": flips}}


def suite(*cases: Any, **fields: Any) -> Suite:
    return Suite(Path("a.judge.yaml"), "a", {}, cases, lines={"limits": 3, "baseline": 4}, **fields)


def texts(n: int, *systems: str) -> list[tuple[str, str]]:
    return [(f"i{k}", system) for k in range(n) for system in systems or ("s",)]


def spread(make: Any, means: Mapping[str, Sequence[float]]) -> list[Score]:
    """Return scores with these means, from draws of 3 and 5."""
    rows = []
    for system, values in means.items():
        for k, value in enumerate(values):
            fives = round((value - 3) * 5)
            rows.append(make.drawn({"5": fives, "3": 10 - fives}, f"i{k}", system))
    return rows


# Bands


@pytest.mark.parametrize(
    ("band", "status", "facts"),
    [
        (in_range(3), "passed", ()),
        (in_range(3.4, 3.9), "passed", ()),
        (
            in_range(3.5),
            "undecided",
            ("the interval reaches below 3.5", "86 draws", "flaky: 35%"),
        ),
        (in_range(4), "failed", ("below 4", "p = 0.005", "flaky: 65%", "reach 4")),
        (
            in_range(None, 3),
            "failed",
            ("above 3", "p < 0.001", "flaky: 35%", "within 3"),
        ),
        (
            in_range(1, 3.6),
            "undecided",
            ("no significant difference from 3.6", "750 draws"),
        ),
    ],
)
def test_a_range_is_compared_with_the_interval(
    make: Any, band: Keys, status: str, facts: tuple[str, ...]
) -> None:
    outcome = verdict(band, ONE, make.result(make.drawn(THIRTEEN, *ONE[0])))
    assert (outcome.status, outcome.met, outcome.line, outcome.kind) == (
        status,
        status == "passed",
        7,
        "score_range",
    )
    assert outcome.found == "3.65 [3.42, 3.88]"
    assert lines_hold(outcome.reason.splitlines(), [facts] if facts else [])


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (in_range(4), "≥ 4"),
        (in_range(None, 4), "≤ 4"),
        (in_range(2, 4.5), "2 to 4.5"),
        (in_range(4, 4), "= 4"),
        (in_range(-1), "≥ −1"),
    ],
)
def test_expected_range_is_shown_briefly(make: Any, expected: Keys, words: str) -> None:
    assert verdict(expected, ONE, make.result(make.single("4", *ONE[0]))).expected == words


SEEN = {"4": 0.7, "5": 0.2}
UNSEEN = "the interval reaches below 4 (unseen probability decides)"


@pytest.mark.parametrize(
    ("kind", "reply", "least", "status", "estimate_shown", "reason"),
    [
        ("single", "4", 4, "passed", "4.00", "one reply"),
        ("single", "4", 5, "failed", "4.00", "below 5; one reply"),
        ("weighed", SEEN, 4, "undecided", "4.22 [3.90, 4.30]", UNSEEN),
        ("weighed", SEEN, 3.8, "passed", "4.22 [3.90, 4.30]", ""),
        (
            "weighed",
            {"4": 0.9996, "3": 0.0003},
            3,
            "passed",
            "4.00",
            "",
        ),  # both ends round to the same number
        (
            "drawn",
            {"5": 19, "4": 1},
            4,
            "passed",
            "4.95 [4.85, 5.00]",
            "",
        ),  # the interval stays within the scale
        ("drawn", {"4": 5}, 3, "passed", "4.00", "5 of 5 draws alike"),
    ],
)
def test_a_text_is_as_certain_as_its_replies(
    make: Any, kind: str, reply: Any, least: float, status: str, estimate_shown: str, reason: str
) -> None:
    shown = verdict(in_range(least), ONE, make.result(getattr(make, kind)(reply, *ONE[0])))
    assert (shown.status, shown.found, shown.reason, shown.flaky) == (
        status,
        estimate_shown,
        reason,
        None,
    )


@pytest.mark.parametrize(("share", "named"), [(1, False), (2, True), (38, True), (39, False)])
def test_a_case_is_flaky_if_single_replies_could_change_it(
    make: Any, share: int, named: bool
) -> None:
    outcome = verdict(
        in_range(4), ONE, make.result(make.drawn({"4": 40 - share, "3": share}, *ONE[0]))
    )
    assert (outcome.flaky is not None) == named


def test_undecided_counts_by_the_policy_of_the_case(make: Any) -> None:
    result = make.result(make.drawn(THIRTEEN, *ONE[0]))
    for policy, met in (("pass", True), ("fail", False), (None, False)):
        outcome = evaluate_case(case(in_range(3.5), undecided=policy), ONE, result)
        assert (outcome.status, outcome.met) == ("undecided", met)


def test_the_interval_of_several_items_is_that_of_the_report(make: Any) -> None:
    means = [3.4, 3.8, 4.0, 4.2, 4.4, 4.8, 3.6, 4.6]
    result = make.result(*spread(make, {"s": means}))
    reported = item_means(result.table)["s", "relevance"]
    outcome = verdict(in_range(2), texts(8), result)
    assert outcome.estimate is not None
    assert (outcome.estimate.low, outcome.estimate.high) == (reported.low, reported.high)
    assert (outcome.estimate.n, outcome.status) == (8, "passed")
    assert verdict(in_range(4), texts(8), result).status == "undecided"


@pytest.mark.parametrize("n", [2, 4])
def test_fewer_items_than_an_interval_needs_decide_nothing(make: Any, n: int) -> None:
    rows = [make.drawn({"5": 20}, f"i{k}", "s") for k in range(n)]
    outcome = verdict(in_range(3), texts(n), make.result(*rows))
    assert (outcome.status, outcome.found) == ("undecided", "5.00")
    assert has_line(outcome.reason, f"{n} items", "at least 5")
    whole_scale = verdict(in_range(1, 5), texts(n), make.result(*rows))
    assert whole_scale.status == "passed"  # no score is outside the scale


def test_the_mean_is_over_items_not_over_texts(make: Any) -> None:
    rows = [make.single("5", "i0", "a"), make.single("3", "i0", "b"), make.single("2", "i1", "a")]
    outcome = verdict(in_range(3), [("i0", "a"), ("i0", "b"), ("i1", "a")], make.result(*rows))
    assert outcome.found == "3.00"


# Pass rates

LABELS = ("1", "2", "3", "4", "5")
FIVE = tuple(map(float, LABELS))
PASSING = Column(
    "relevance",
    "criterion",
    Signature("r@1"),
    1.0,
    5.0,
    LABELS,
    "relevance",
    values=FIVE,
    pass_at=3.8,
)


@pytest.mark.parametrize(
    ("draws", "status", "reason"),
    [
        ({"4": 20}, "passed", "20 of 20 draws alike"),
        ({"4": 17, "3": 3}, "undecided", "the interval reaches below 3.8"),
        (THIRTEEN, "undecided", "no significant difference from 3.8"),
        ({"3": 19, "4": 1}, "failed", "below 3.8 (p < 0.001)"),
    ],
)
def test_one_text_passes_within_the_uncertainty_of_its_replies(
    make: Any, draws: Mapping[str, int], status: str, reason: str
) -> None:
    result = make.result(make.drawn(draws, *ONE[0]), columns=(PASSING,))
    outcome = verdict({"expect": "pass"}, ONE, result)
    assert (outcome.kind, outcome.expected, outcome.status) == ("passes", "pass", status)
    assert outcome.reason.startswith(reason)


def test_every_one_of_several_texts_passes(make: Any) -> None:
    rows = [make.drawn({"4": 8, "3": 2}, f"i{k}", "s") for k in range(5)]
    outcome = verdict({"expect": "pass"}, texts(5), make.result(*rows, columns=(PASSING,)))
    assert (outcome.expected, outcome.status, outcome.found) == (
        "pass for all",
        "passed",
        "5 of 5 (100.0%)",
    )
    rows[3] = make.drawn({"4": 7, "3": 3}, "i3", "s")
    outcome = verdict({"expect": "pass"}, texts(5), make.result(*rows, columns=(PASSING,)))
    assert (outcome.status, outcome.found, outcome.reason) == (
        "failed",
        "4 of 5 (80.0%)",
        "i3 s: 3.7",
    )


@pytest.mark.parametrize(
    ("passing", "n", "least", "status", "facts"),
    [
        (20, 20, 0.7, "passed", ()),
        (20, 20, 0.9, "undecided", ("the interval reaches below 90%", "38 items")),
        (12, 20, 0.5, "undecided", ("the interval reaches below 50%", "200 items")),
        (2, 20, 0.5, "failed", ("below 50%",)),
        (3, 3, 0.5, "undecided", ("the interval reaches below 50%", "8 items")),
        (0, 3, 0.9, "failed", ("below 90%",)),
    ],
)
def test_a_pass_rate_is_decided_by_its_interval(
    make: Any, passing: int, n: int, least: float, status: str, facts: tuple[str, ...]
) -> None:
    rows = [make.single("4" if k < passing else "3", f"i{k}", "s") for k in range(n)]
    result = make.result(*rows, columns=(PASSING,))
    outcome = verdict({"pass_rate": {"min": least}}, texts(n), result)
    assert (outcome.kind, outcome.expected, outcome.status) == (
        "pass_rate",
        f"≥ {100 * least:g}% pass",
        status,
    )
    assert lines_hold(outcome.reason.splitlines(), [facts] if facts else [])
    rate = result.pass_rates["s", "relevance"]
    assert outcome.estimate is not None
    assert outcome.estimate.low is not None  # even with three items
    if rate.low is None:
        return
    assert (outcome.estimate.value, outcome.estimate.low, outcome.estimate.high) == (
        rate.value,
        rate.low,
        rate.high,
    )


def test_a_text_without_a_score_does_not_count_as_failing(make: Any) -> None:
    rows = [*(make.single("5", f"i{k}", "s") for k in range(3)), make.failed("i3", "s")]
    for expected, measured in (
        ({"expect": "pass"}, "3 of 3 (100.0%)"),
        ({"pass_rate": {"min": 0.1}}, "100% [13.9%, 100%]"),
    ):
        outcome = verdict(
            expected, texts(4), make.result(*rows, columns=(PASSING,)), failures=Limits(failures=1)
        )
        assert (outcome.status, outcome.found, outcome.reason) == (
            "passed",
            measured,
            "1 text without a score",
        )
        assert has_line(outcome.detail, "unreadable", "no score")


def test_a_baseline_without_a_threshold_is_not_compared(make: Any) -> None:
    rows = [make.single("5", f"i{k}", "s") for k in range(3)]
    before, after = make.result(*rows), make.result(*rows, columns=(PASSING,))
    for expected, n in (
        ({"expect": "pass"}, 1),
        ({"expect": "pass"}, 3),
        ({"pass_rate": {"min": 0.1}}, 3),
    ):
        outcome = verdict(expected, texts(n), after, before)
        assert (outcome.status, outcome.before) == ("passed", "")


# Labels


@pytest.mark.parametrize(
    ("draws", "status", "facts"),
    [
        ({"4": 20}, "passed", ()),
        ({"4": 15, "3": 5}, "passed", ("flaky: 25%", "say 3")),
        (
            {"4": 13, "3": 7},
            "undecided",
            ("no significant difference from 3", "86 draws", "flaky: 35%"),
        ),
        (
            {"4": 10, "3": 10},
            "undecided",
            ("no significant difference from 3", "p = 1.000", "flaky: 50%"),
        ),
        ({"3": 15, "4": 5}, "failed", ("flaky: 25%", "say 4")),
        ({"3": 14, "5": 3, "4": 3}, "failed", ("flaky: 15%", "say 4")),
        ({"4": 16, "5": 2, "3": 2}, "passed", ("flaky: 20%", "another label")),
    ],
)
def test_a_label_needs_a_significant_lead(
    make: Any, draws: dict[str, int], status: str, facts: tuple[str, ...]
) -> None:
    outcome = verdict(labelled("4"), ONE, make.result(make.drawn(draws, *ONE[0])))
    assert (outcome.status, outcome.expected) == (status, "label 4")
    assert has_line([outcome.reason], *facts)


@pytest.mark.parametrize(("label", "status"), [("4", "passed"), ("5", "failed")])
def test_a_single_reply_is_its_label(make: Any, label: str, status: str) -> None:
    outcome = verdict(labelled(label), ONE, make.result(make.single("4", *ONE[0])))
    assert (outcome.status, outcome.found, outcome.reason) == (status, "4", "one reply")


def test_a_share_of_labels_is_counted(make: Any) -> None:
    rows = [make.single("4" if k < 9 else "2", f"i{k}", "s") for k in range(10)]
    met, unmet = (
        verdict(labelled("4", share), texts(10), make.result(*rows)) for share in (0.9, 1.0)
    )
    assert (met.status, met.found, met.reason, met.expected) == (
        "passed",
        "9 of 10 (90.0%)",
        "",
        "label 4 for ≥ 90%",
    )
    assert (unmet.status, unmet.reason, unmet.expected) == ("failed", "i9 s: 2", "label 4 for all")
    assert met.estimate is not None
    assert (met.estimate.low, met.estimate.high) == pytest.approx(
        (0.59585, 0.98213), abs=1e-5
    )  # Wilson


def test_a_share_counts_texts_without_a_score_as_missing_the_label(make: Any) -> None:
    rows = [make.single("4", f"i{k}", "s") for k in range(9)]
    outcome = evaluate_case(
        case(labelled("4", 0.95)),
        texts(10),
        make.result(*rows, make.failed("i9", "s")),
        failures=Limits(failures=1),
    )
    assert (outcome.status, outcome.found) == ("failed", "9 of 10 (90.0%)")
    assert outcome.reason == "1 text without a score"


# Order


@pytest.mark.parametrize(
    ("draws", "exact", "reason"),
    [
        ({"2": 1, "3": 3, "4": 1}, 3, "the interval reaches below and above 3: allow a range"),
        ({"5": 19, "4": 1}, 5, "the interval reaches below 5: allow a range with min and max"),
    ],
)
def test_an_interval_around_an_exact_value_never_meets_it(
    make: Any, draws: Mapping[str, int], exact: int, reason: str
) -> None:
    outcome = verdict(in_range(exact, exact), ONE, make.result(make.drawn(draws, *ONE[0])))
    assert (outcome.status, outcome.expected) == ("undecided", f"= {exact}")
    assert outcome.reason.startswith(reason)
    few = [make.single(score, *text) for score, text in zip("24", texts(2), strict=True)]
    untested = verdict(in_range(exact, exact), texts(2), make.result(*few))
    assert has_line(untested.reason, "2 items", "at least 5")
    alike = verdict(in_range(exact, exact), ONE, make.result(make.drawn({f"{exact}": 5}, *ONE[0])))
    assert alike.status == "passed"


def test_an_order_of_one_item_takes_the_draws_of_both_texts(make: Any) -> None:
    rows = [make.drawn({"4": 12, "3": 8}, "i", "a"), make.drawn({"4": 4, "3": 16}, "i", "b")]
    both = [("i", "a"), ("i", "b")]
    outcome = verdict(ordered("a", "b"), both, make.result(*rows))
    oracle = stats.ttest_ind([4] * 12 + [3] * 8, [4] * 4 + [3] * 16, equal_var=False)
    assert outcome.estimate is not None
    assert outcome.estimate.p == pytest.approx(oracle.pvalue)
    assert (outcome.status, outcome.found, outcome.reason) == (
        "passed",
        "+0.40 [0.11, 0.69]",
        "better (p = 0.009)",
    )
    assert (outcome.expected, outcome.flaky) == ("a > b", None)
    turned = verdict(ordered("b", "a"), both, make.result(*rows))
    assert (turned.status, turned.reason) == ("failed", "worse (p = 0.009)")
    margin = verdict(ordered("a", "b", 0.3), both, make.result(*rows))
    assert margin.status == "undecided"
    assert has_line(margin.reason, "the interval reaches below a lead of 0.3", "330 draws")
    far = verdict(ordered("a", "b", 0.9), both, make.result(*rows))
    assert (far.status, far.expected) == ("failed", "a > b + 0.9")
    assert has_line(far.reason, "not better by 0.9", "p = 0.001")


def test_an_order_of_many_items_is_a_paired_test(make: Any) -> None:
    low = [3.4, 3.6, 3.8, 4.0, 4.2, 4.4, 3.6, 4.0]
    high = [
        value + lead
        for value, lead in zip(low, (0.2, 0.4, 0.2, 0.4, 0.2, 0.0, 0.4, 0.2), strict=True)
    ]
    result = make.result(*spread(make, {"a": high, "b": low}))
    outcome = verdict(ordered("a", "b"), texts(8, "a", "b"), result)
    (oracle,) = mean_differences(np.array([np.subtract(high, low)]))
    assert oracle is not None
    assert outcome.estimate is not None
    assert (outcome.estimate.value, outcome.estimate.p) == (pytest.approx(oracle.value), oracle.p)
    assert (outcome.status, outcome.reason) == ("passed", "better (p = 0.016)")
    level = [high[k] if k % 2 else low[k] - 0.2 for k in range(8)]
    open_ = evaluate_case(
        case(ordered("a", "b")),
        texts(8, "a", "b"),
        make.result(*spread(make, {"a": level, "b": low})),
    )
    assert open_.status == "undecided"
    assert open_.reason.startswith("no significant difference (needs about ")
    assert open_.reason.endswith(" items)")


def test_a_negative_margin_asks_for_no_loss_of_that_size(make: Any) -> None:
    low, losses = [3.4] * 8, np.array([0.2, 0.0, 0.2, 0.0, 0.2, 0.2, 0.0, 0.0])
    result = make.result(*spread(make, {"a": np.subtract(low, losses).round(1).tolist(), "b": low}))
    outcome = verdict(ordered("a", "b", -0.5), texts(8, "a", "b"), result)
    (oracle,) = mean_differences(np.array([0.5 - losses]))
    assert outcome.estimate is not None
    assert (outcome.estimate.value, outcome.estimate.p) == (pytest.approx(-0.1), oracle.p)
    assert (outcome.status, outcome.expected) == ("passed", "a > b − 0.5")
    assert has_line(outcome.reason, "not worse by 0.5", "p = 0.008")
    near = verdict(ordered("a", "b", -0.15), texts(8, "a", "b"), result)
    assert near.status == "undecided"
    assert has_line(near.reason, "the interval reaches beyond a loss of 0.15")
    lost = make.result(*spread(make, {"a": [3.0] * 8, "b": low}))
    beaten = verdict(ordered("a", "b"), texts(8, "a", "b"), lost)
    assert beaten.status == "failed"
    assert has_line(beaten.reason, "worse", "p = 0.008", "all 8 alike")


def with_equal_leads(make: Any, lead: float, n: int) -> list[Score]:
    """Return scores of a and b on n items. On each item, a leads by `lead`."""
    low = 5 if lead < 0 else 3
    labels = {"a": str(round(low + lead)), "b": str(low)}
    return [
        make.single(label, f"i{k}", system) for k in range(n) for system, label in labels.items()
    ]


@pytest.mark.parametrize(
    ("lead", "margin", "n", "status"),
    [
        (-4.0, -0.5, 8, "failed"),
        (-1.0, -0.5, 8, "undecided"),
        (-1.0, -0.5, 40, "failed"),
        (0.0, -0.5, 8, "undecided"),
        (0.0, -0.5, 40, "passed"),
        (2.0, 0.5, 8, "undecided"),
        (2.0, 0.5, 40, "passed"),
        (0.0, 0.5, 40, "failed"),
    ],
)
def test_a_lead_that_is_equal_on_all_items_is_tested_by_the_scale(
    make: Any, lead: float, margin: float, n: int, status: str
) -> None:
    result = make.result(*with_equal_leads(make, lead, n))
    outcome = verdict(ordered("a", "b", margin), texts(n, "a", "b"), result)
    assert outcome.status == status
    # By Clopper and Pearson, this share of items may have any other lead, up to 4 points.
    unseen = 1 - 0.025 ** (1 / n)
    assert outcome.estimate is not None
    assert (outcome.estimate.low, outcome.estimate.high) == (
        pytest.approx((1 - unseen) * lead - unseen * 4),
        pytest.approx((1 - unseen) * lead + unseen * 4),
    )


@pytest.mark.parametrize(("lead", "status"), [(-1.0, "failed"), (1.0, "undecided")])
def test_equal_leads_without_a_scale_show_only_that_a_margin_is_missed(
    make: Any, lead: float, status: str
) -> None:
    open_ended = replace(make.column, low=None, high=None)
    result = make.result(*with_equal_leads(make, lead, 40), columns=(open_ended,))
    assert verdict(ordered("a", "b", -0.5), texts(40, "a", "b"), result).status == status


def test_an_interval_above_zero_that_the_test_does_not_confirm_names_p(make: Any) -> None:
    low, leads = [3.4] * 8, (0.8, 0.0, 0.2, 0.8, 0.4, 0.2, 0.0, 0.0)
    result = make.result(*spread(make, {"a": np.add(low, leads).round(1).tolist(), "b": low}))
    outcome = verdict(ordered("a", "b"), texts(8, "a", "b"), result)
    assert outcome.estimate is not None
    assert outcome.estimate.low is not None
    assert outcome.estimate.low > 0
    assert outcome.status == "undecided"
    assert has_line(outcome.reason, "no significant difference", "13 items")


@pytest.mark.parametrize(
    ("n", "status"), [(1, "passed"), (2, "undecided"), (5, "undecided"), (6, "passed")]
)
def test_a_lead_on_few_items_is_undecided(make: Any, n: int, status: str) -> None:
    rows = [
        make.weighed(shares, f"i{k}", system)
        for k in range(n)
        for system, shares in (
            ("a", {"4": 0.6 + k / 100, "3": 0.4 - k / 100}),
            ("b", {"4": 0.4, "3": 0.6}),
        )
    ]
    outcome = verdict(ordered("a", "b", 0.1), texts(n, "a", "b"), make.result(*rows))
    assert outcome.status == status, outcome
    assert has_line(outcome.reason, "no test", "6 items") is (status == "undecided")
    behind = verdict(ordered("b", "a", 0.1), texts(n, "a", "b"), make.result(*rows))
    assert behind.status == ("failed" if status == "passed" else status)


def test_equal_texts_are_not_better(make: Any) -> None:
    rows = [make.single("4", "i", "a"), make.single("4", "i", "b")]
    outcome = verdict(ordered("a", "b"), [("i", "a"), ("i", "b")], make.result(*rows))
    assert (outcome.status, outcome.reason) == ("failed", "not better; one reply each")
    ahead = make.result(make.single("5", "i", "a"), make.single("4", "i", "b"))
    outcome = verdict(ordered("a", "b"), [("i", "a"), ("i", "b")], ahead)
    assert (outcome.status, outcome.reason) == ("passed", "ahead, one reply each")


FEW = ("one reply each", "at least 6 items")


@pytest.mark.parametrize("n", [2, 5])
def test_one_reply_each_to_a_few_items_tells_no_order_and_no_drift(make: Any, n: int) -> None:
    both = texts(n, "a", "b")
    result = make.result(
        *(make.single("5" if system == "a" else "1", item, system) for item, system in both)
    )
    untested = ("no test", "6 items")
    for order in (ordered("a", "b"), ordered("b", "a"), ordered("a", "b", 0.5)):
        outcome = verdict(order, both, result)
        assert (outcome.status, outcome.met) == ("undecided", False)
        assert has_line(outcome.reason, *untested)
    level = make.result(*(make.single("3", *key) for key in both))
    for drift in (drifting(shift=0.5), drifting(drop=0.5)):
        outcome = verdict(drift, both[::2], result, level)
        assert (outcome.status, outcome.met) == ("undecided", True)
        assert has_line(outcome.reason, *FEW)
    flipped = verdict(drifting(shift=0.5, flips=0.1), both, result, level)
    assert (flipped.status, flipped.met) == ("failed", False)  # the count decides without a test
    drawn = make.result(
        *(make.drawn({"5" if system == "a" else "1": 3}, item, system) for item, system in both)
    )
    assert has_line(verdict(ordered("a", "b"), both, drawn).reason, *untested)


def test_equal_values_are_noted(make: Any) -> None:
    items = make.result(*(make.single("4", *key) for key in texts(12)))
    outcome = verdict(in_range(2), texts(12), items)
    assert (outcome.status, outcome.found, outcome.reason) == ("passed", "4.00 [2.74, 4.68]", "")
    outcome = verdict(in_range(3), texts(12), items)
    assert outcome.status == "undecided"
    assert has_line(outcome.reason, "the interval reaches below 3", "18 items")
    lower = make.result(*(make.single("3", *key) for key in texts(12)))
    (worse,) = against_baseline(lower, items)
    assert worse.found == "−1.00"
    assert has_line(worse.reason, "worse", "p < 0.001", "the judge changed", "all 12 alike")


def test_an_order_without_an_item_that_has_both_is_an_error(make: Any) -> None:
    result = make.result(make.single("4", "i0", "a"), make.single("4", "i1", "b"))
    outcome = verdict(ordered("a", "b"), [("i0", "a"), ("i1", "b")], result)
    assert (outcome.status, outcome.met) == ("error", False)
    assert has_line(outcome.reason, "no item", "a and b")


def test_comparisons_use_both_orders(make: Any) -> None:
    rows = [
        make.weighed({"A": 0.9, "B": 0.1}, "c: i", "a", "b", column=AB),
        make.weighed({"A": 0.4, "B": 0.6}, "c: i", "b", "a", column=AB),
    ]
    ranked = make.result(*rows, columns=(AB,))
    scored = make.result(make.single("1", "i", "a"), make.single("5", "i", "b"))
    both = [("c: i", "a"), ("c: i", "b")]
    outcome = verdict(ordered("a", "b"), both, scored, ranked=ranked)
    assert (outcome.status, outcome.found, outcome.expected) == (
        "passed",
        "75%",
        "a wins > 50% against b",
    )
    assert outcome.reason == "better"
    assert verdict(ordered("b", "a"), both, scored, ranked=ranked).status == "failed"
    turned = make.weighed({"A": 0.8, "B": 0.2}, "c: i", "b", "a", column=AB)
    biased = verdict(
        ordered("a", "b"), both, scored, ranked=make.result(rows[0], turned, columns=(AB,))
    )
    assert (biased.status, biased.found) == ("passed", "55%")
    assert has_line(biased.reason, "better", "order", "1 of 1 answer")
    assert (
        verdict(ordered("a", "b", 0.3), both, scored, ranked=ranked).reason == "not better by 0.3"
    )
    lacking = make.result(rows[0], make.failed("c: i", "b", "a", column=AB), columns=(AB,))
    torn = verdict(ordered("a", "b"), both, None, ranked=lacking)
    assert (torn.status, torn.reason, torn.detail[:10]) == ("error", "unreadable", "unreadable")


def test_flips_are_a_share_of_the_pairs_that_have_both_answers(make: Any) -> None:
    rows = [
        make.weighed({"A": 0.9, "B": 0.1}, "i#1", "a", "b", column=AB),
        make.weighed({"A": 0.8, "B": 0.2}, "i#1", "b", "a", column=AB),
        make.weighed({"A": 0.9, "B": 0.1}, "i#2", "a", "b", column=AB),
        make.failed("i#2", "b", "a", column=AB),
    ]
    ranked = make.result(*rows, columns=(AB,))
    generations = [replace(sample, cluster="i") for sample in ranked.table.samples]
    table = replace(ranked.table, samples=generations)
    texts_of_both = [(item, system) for item in ("i#1", "i#2") for system in "ab"]
    outcome = verdict(
        ordered("a", "b"), texts_of_both, None, ranked=Result(table, info=ranked.info)
    )
    assert has_line(outcome.reason, "order", "1 of 1 answer")


def test_identical_texts_are_a_tie(make: Any) -> None:
    equal = Provenance(IDENTICAL, n=0)
    rows = [Score("c", x, "relevance", 0.5, equal, y) for x, y in (("a", "b"), ("b", "a"))]
    outcome = evaluate_case(
        case(ordered("a", "b")),
        [("c", "a"), ("c", "b")],
        None,
        ranked=make.result(*rows, columns=(AB,)),
    )
    assert (outcome.status, outcome.found) == ("undecided", "50%")


def test_equal_scores_leave_an_order_undecided(make: Any) -> None:
    rows = [make.drawn({"4": 5}, item, system) for item in "ijklmn" for system in "ab"]
    keys = [(row.item, row.system) for row in rows]
    outcome = evaluate_case(
        case(ordered("a", "b"), "prompts/relevance.jinja"), keys, make.result(*rows)
    )
    assert (outcome.status, outcome.found) == ("undecided", "0.00")
    assert outcome.reason.startswith("no difference")


# Agreement


def test_agreement_is_the_coefficient_with_peoples_ratings(make: Any) -> None:
    random = np.random.default_rng(3)
    human = {key: float(random.integers(1, 6)) for key in texts(30)}
    rows = [
        make.drawn({"5": int(5 * rating / 5 + random.integers(0, 4)), "1": 3}, *key)
        for key, rating in human.items()
    ]
    result = make.result(*rows, human=human)
    oracle = stats.spearmanr([row.value for row in rows], list(human.values())).statistic
    outcome = evaluate_case(
        case(agreeing({"spearman": 0.1}), "prompts/relevance.jinja"), texts(30), result
    )
    assert outcome.estimate is not None
    assert outcome.estimate.value == pytest.approx(oracle)
    assert outcome.status == "passed"
    assert has_line(outcome.reason, "over all texts", "30 texts")
    high = verdict(agreeing({"spearman": 0.1, "pearson": 0.999}), texts(30), result)
    assert (high.status, high.reason.split(";")[0]) == ("failed", "pearson below 0.999")
    near = verdict(agreeing({"spearman": round(oracle, 2) + 0.01}), texts(30), result)
    assert near.status == "undecided"
    assert "no significant difference from spearman" in near.reason
    below = verdict(agreeing({"spearman": round(oracle, 2) - 0.02}), texts(30), result)
    assert below.status == "undecided"
    assert "the interval reaches below spearman" in below.reason


def test_agreement_that_is_undefined_is_an_error(make: Any) -> None:
    human = {key: float(k) for k, key in enumerate(texts(5))}
    flat = make.result(*(make.single("4", *key) for key in human), human=human)
    outcome = verdict(agreeing({"spearman": 0.1}), texts(5), flat)
    assert (outcome.status, outcome.reason) == ("error", "all values are equal")
    unrated = evaluate_case(
        case(agreeing({"spearman": 0.1})),
        texts(5),
        make.result(*(make.single("4", *k) for k in human)),
    )
    assert "rating for relevance" in unrated.reason


def test_agreement_within_items_is_the_level_for_several_systems(make: Any) -> None:
    human = {
        (item, system): float(rank)
        for item, system in texts(40, "a", "b", "c")
        for rank in ["abc".index(system)]
    }
    rows = [make.single(str(2 + "abc".index(system)), item, system) for item, system in human]
    result = make.result(*rows, human=human)
    within, between, over = (
        verdict(agreeing({"kendall": 0.8}, level), list(human), result)
        for level in (None, "systems", "all-texts")
    )
    assert (within.status, within.reason) == ("passed", "within items, of 40 items")
    assert between.status == "undecided"
    assert has_line(between.reason, "too few systems", "at least 6", "systems' means", "3 systems")  # fmt: skip
    assert has_line(over.reason, "over all texts", "120 texts")


@pytest.mark.parametrize(
    ("items", "systems", "enough"),
    [(5, "s", False), (10, "s", True), (9, "s", False), (2, "abc", False)],
)
def test_agreement_on_a_few_items_is_undecided(
    make: Any, items: int, systems: str, enough: bool
) -> None:
    human = {key: float(k) for k, key in enumerate(texts(items, *systems))}
    rows = [make.weighed({"1": 1 - k / 20, "5": k / 20}, *key) for k, key in enumerate(human)]
    outcome = verdict(
        agreeing({"spearman": 0.4}, "all-texts"), list(human), make.result(*rows, human=human)
    )
    assert outcome.status == ("passed" if enough else "undecided")
    few = (
        "too few texts: at least 6 needed;" if items == 5 else "too few items: at least 10 needed;"
    )
    assert outcome.reason.startswith("over all" if enough else few)


# Drift and the baseline

BEFORE = [3.6, 4.0, 4.4, 3.8, 4.2, 4.0, 3.6, 4.4]


def moved(by: Sequence[float]) -> list[float]:
    return [value + one for value, one in zip(BEFORE, by, strict=True)]


DOWN = [-0.4, -0.2, -0.4, -0.2, -0.4, -0.2, -0.4, -0.2]
NOISE = [0.2, -0.2, 0.2, 0.0, -0.2, 0.2, -0.2, 0.2]


def test_a_largest_drop_of_0_is_written_without_a_sign(make: Any) -> None:
    before, after = (make.result(*spread(make, {"s": values})) for values in (BEFORE, moved(NOISE)))
    outcome = verdict(drifting(drop=0.0), texts(8), after, before)
    assert outcome.status == "undecided"
    assert "a change of 0" in outcome.reason


@pytest.mark.parametrize(
    ("by", "drift", "status"),
    [
        (DOWN, drifting(shift=0.5), "passed"),
        (DOWN, drifting(shift=0.3), "undecided"),
        (DOWN, drifting(shift=0.1), "failed"),
        (DOWN, drifting(drop=0.1), "failed"),
        ([-x for x in DOWN], drifting(drop=0.1), "passed"),
        ([-x for x in DOWN], drifting(shift=0.1), "failed"),
        ([0.0] * 8, drifting(shift=0.0, flips=0.0), "passed"),
        (NOISE, drifting(shift=0.05), "undecided"),
    ],
)
def test_drift_has_to_be_shown(make: Any, by: Sequence[float], drift: Keys, status: str) -> None:
    before, after = (make.result(*spread(make, {"s": values})) for values in (BEFORE, moved(by)))
    outcome = verdict(drift, texts(8), after, before)
    assert (outcome.status, outcome.met) == (status, status != "failed")
    assert outcome.before == "4.00"


def test_flips_are_counted(make: Any) -> None:
    before = make.result(*(make.single("4", f"i{k}", "s") for k in range(8)))
    after = make.result(*(make.single("3" if k < 2 else "4", f"i{k}", "s") for k in range(8)))
    met, unmet = (verdict(drifting(flips=most), texts(8), after, before) for most in (0.25, 0.24))
    assert (met.status, met.found, met.expected) == (
        "passed",
        "2 of 8 flipped (25.0%)",
        "flips ≤ 25%",
    )
    assert unmet.status == "failed"
    assert has_line(unmet.reason, "24%", "flipped", "i0 (s), i1 (s)")


def test_drift_without_a_baseline_or_on_a_changed_scale_is_an_error(make: Any) -> None:
    after = make.result(make.single("4", *ONE[0]))
    other = replace(make.column, high=7.0)
    cases = {
        "no baseline: name one with --baseline": None,
        "its scale was 1 to 7 and is 1 to 5": make.result(
            make.single("4", *ONE[0]), columns=(other,)
        ),
        "no text has a score both here and in the baseline": make.result(
            make.single("4", "j", "s")
        ),
        "relevance is not in the baseline": make.result(columns=()),
    }
    for reason, before in cases.items():
        outcome = verdict(drifting(shift=1), ONE, after, before)
        assert (outcome.status, outcome.met, outcome.reason.startswith(reason)) == (
            "error",
            False,
            True,
        )


def test_verdict_shows_the_value_of_the_baseline(make: Any) -> None:
    before, after = (make.result(make.drawn(draws, *ONE[0])) for draws in ({"5": 20}, THIRTEEN))
    assert verdict(in_range(4), ONE, after, before).before == "5.00"
    assert verdict(labelled("4"), ONE, after, before).before == "5 (100.0%)"
    assert verdict(in_range(4), ONE, after, make.result(make.single("4", "j", "s"))).before == ""


def test_baseline_check_fails_only_significantly_worse_criteria(make: Any) -> None:
    before = make.result(*spread(make, {"s": BEFORE}))
    for by, met, reason in (
        (DOWN, False, "worse (p"),
        (NOISE, True, "no significant change (needs about "),
        (DOWN, True, ""),
    ):
        after = make.result(*spread(make, {"s": moved(by)}))
        named = suite(case(drifting(0.1))) if not reason else suite()
        verdicts = against_baseline(after, before, named)
        assert [(v.met, v.kind, v.line, v.reason.startswith(reason)) for v in verdicts] == (
            [(met, "baseline", 4, True)] if reason else []
        )
    (better,) = against_baseline(before, make.result(*spread(make, {"s": moved(DOWN)})))
    assert (better.status, better.reason[:9], better.found[:5]) == ("passed", "better (p", "+0.30")
    (same,) = against_baseline(before, before)
    assert (same.status, same.reason) == ("passed", "the same")


@pytest.mark.parametrize("seed", [0, 7])
def test_baseline_estimate_equals_the_run_comparison(make: Any, seed: int) -> None:
    before, after = (make.result(*spread(make, {"s": values})) for values in (BEFORE, moved(NOISE)))
    (outcome,) = against_baseline(after, before, seed=seed)
    assert outcome.estimate == compare_runs(before.table, after.table, seed=seed).means[0].estimate


def rated(make: Any, orders: Sequence[Sequence[float]], drop: float = 0.0) -> Any:
    """Return one text of three systems per item. The scores are those of the row minus `drop`; people rate 1, 2, 3."""
    rows = [
        make.weighed({"1": (5 - value + drop) / 4, "5": (value - drop - 1) / 4}, f"i{k}", system)
        for k, values in enumerate(orders)
        for system, value in zip("abc", values, strict=True)
    ]
    human = {
        (f"i{k}", system): float(rank)
        for k in range(len(orders))
        for rank, system in enumerate("abc", 1)
    }
    return make.result(*rows, human=human)


def test_rated_texts_decide_if_a_stricter_prompt_is_a_regression(
    make: Any,
) -> None:
    right, wrong = (2.0, 3.0, 4.0), (3.0, 4.0, 2.0)
    before = rated(make, [right] * 6 + [wrong] * 2)
    (stricter,) = against_baseline(rated(make, [right] * 6 + [wrong] * 2, drop=0.8), before)
    assert (stricter.met, stricter.expected) == (True, "agrees no worse with people")
    assert has_line(stricter.reason, "no significant change", "agreement", "scores −0.80")
    (worse,) = against_baseline(rated(make, [wrong] * 8), before)
    rho = float(stats.spearmanr(wrong, (1, 2, 3)).statistic)
    assert worse.estimate is not None
    assert worse.estimate.value == pytest.approx(rho - (6 + 2 * rho) / 8)
    assert worse.estimate.p == 2 / 2**6  # six items change, all in the same direction
    assert (worse.status, worse.met) == ("failed", False)
    assert has_line(worse.reason, "agrees worse", "p = 0.031")  # fmt: skip
    (better,) = against_baseline(before, rated(make, [wrong] * 8))
    assert (better.met, better.reason.partition(" (")[0]) == (True, "agrees better with people")


def test_a_drift_case_does_not_replace_the_agreement_check(make: Any) -> None:
    right, wrong = (2.0, 3.0, 4.0), (3.0, 4.0, 2.0)
    before, turned = rated(make, [right] * 8), rated(make, [wrong] * 8)
    loose = suite(case(drifting(drop=0.3)))
    (outcome,) = against_baseline(turned, before, loose)
    assert (outcome.expected, outcome.status, outcome.met) == (
        "agrees no worse with people",
        "failed",
        False,
    )
    (alike,) = against_baseline(rated(make, [(3.0, 3.0, 3.0)] * 8), before, loose)
    assert (alike.status, alike.met) == ("undecided", True)
    assert alike.reason.startswith("agreement with people not checked: ")


@pytest.mark.parametrize(
    ("drift", "of", "checked"),
    [
        (drifting(drop=0.3), {}, False),
        (drifting(flips=0.3), {}, True),  # a limit on flips does not limit the mean
        (drifting(shift=0.3), {"item": ("i0",)}, True),
    ],
)
def test_a_drift_case_replaces_the_baseline_check_of_its_scores(
    make: Any, drift: Keys, of: dict[str, Any], checked: bool
) -> None:
    before, after = (make.result(*spread(make, {"s": [4.0 - by] * 8})) for by in (0, 1))
    verdicts = against_baseline(after, before, suite(case(drift, **of)))
    assert [one.status for one in verdicts] == (["failed"] if checked else [])


def test_the_interval_by_people_over_texts_is_corrected_over_the_criteria(make: Any) -> None:
    random = np.random.default_rng(5)
    sides = []
    for k in (1, 4):
        columns = tuple(replace(make.column, name=f"c{n}", criterion=f"c{n}") for n in range(k))
        both = []
        for _ in range(2):
            p = random.random((k, 20))
            rows = [
                make.weighed({"1": 1 - x, "5": x}, *t)
                for one in p
                for t, x in zip(texts(20), one, strict=True)
            ]
            rows = [replace(row, column=f"c{at // 20}") for at, row in enumerate(rows)]
            made_of = make.result(*rows, columns=columns)
            table = made_of.table
            human = [
                replace(s, human=dict.fromkeys((c.name for c in columns), float(n)))
                for n, s in enumerate(table.samples)
            ]
            both.append(replace(made_of, table=replace(table, samples=tuple(human))))
        sides.append(against_baseline(both[0], both[1])[0].estimate)
    one, four = sides
    assert one is not None
    assert four is not None
    assert "95% expanded percentile" in one.method
    assert "98.75% expanded percentile" in four.method


def test_p_against_the_baseline_is_corrected_over_the_criteria(make: Any) -> None:
    columns = tuple(replace(make.column, name=f"c{k}", criterion=f"c{k}") for k in range(4))
    sides = []
    for by in ([0.0] * 8, [-0.2, -0.4, -0.2, -0.4, -0.2, -0.4, -0.2, 0.2]):
        rows = spread(make, {"s": moved(by)})
        sides.append(
            make.result(
                *(replace(row, column=c.name) for c in columns for row in rows), columns=columns
            )
        )
    verdicts = against_baseline(sides[1], sides[0])
    assert verdicts[0].estimate is not None
    assert verdicts[0].estimate.p is not None
    assert verdicts[0].estimate.p < 0.05 < 4 * verdicts[0].estimate.p
    assert [v.met for v in verdicts] == [True] * 4


@pytest.mark.parametrize(
    ("before", "after", "n", "status", "facts"),
    [
        ({"3": 0.99}, {"1": 0.99}, 2, "failed", ("worse",)),  # the known probability is high enough
        (
            {"3": 1.0},
            {"3": 0.9, "2": 0.1},
            2,
            "undecided",
            ("no test", "6 items", "2 of 2 scores changed"),
        ),
        (
            {"3": 10},
            {"1": 10},
            2,
            "failed",
            ("worse", "the judge changed", "10 of 10 draws alike"),
        ),
        ({"3": 8, "4": 2}, {"3": 1, "1": 9}, 1, "failed", ("worse", "p < 0.001")),
        ({"1": 1.0}, {"3": 1.0}, 2, "passed", ("better",)),
        ("3", "1", 2, "undecided", ("one reply each", "6 items", "2 of 2 labels flipped")),
        ("3", "1", 1, "failed", ("worse",)),
        ("3", "3", 2, "passed", ("the same",)),
    ],
)
def test_draws_decide_with_fewer_than_six_items(
    make: Any, before: Any, after: Any, n: int, status: str, facts: tuple[str, ...]
) -> None:
    def result(one: Any) -> Any:
        kind = (
            make.single
            if isinstance(one, str)
            else make.drawn
            if sum(one.values()) > 1
            else make.weighed
        )
        return make.result(*(kind(one, *key) for key in texts(n)))

    (outcome,) = against_baseline(result(after), result(before))
    assert (outcome.status, outcome.met) == (status, status != "failed")
    assert outcome.reason.startswith(facts[0])
    assert has_line(outcome.reason, *facts)
    (strict,) = against_baseline(result(after), result(before), suite(undecided="fail"))
    assert strict.met == (status == "passed")


def test_ratings_of_few_items_are_undecided(make: Any) -> None:
    right, wrong = (2.0, 3.0, 4.0), (4.0, 3.0, 2.0)
    (outcome,) = against_baseline(rated(make, [wrong] * 5), rated(make, [right] * 5))
    assert (outcome.status, outcome.met) == ("undecided", True)
    assert has_line(outcome.reason, "too few items", "at least 6")


def test_worse_scores_with_too_few_ratings_are_not_met(make: Any) -> None:
    sides = [make.result(*spread(make, {"s": values})) for values in (BEFORE, moved(DOWN))]
    for n, side in enumerate(sides):
        some = [
            replace(s, human={"relevance": float(k)} if k < 4 else {})
            for k, s in enumerate(side.table.samples)
        ]
        sides[n] = replace(side, table=replace(side.table, samples=tuple(some)))
    (worse,) = against_baseline(sides[1], sides[0])
    assert (worse.status, worse.met, worse.expected) == ("failed", False, "not worse")
    (better,) = against_baseline(sides[0], sides[1])
    assert (better.status, better.met, better.expected) == (
        "undecided",
        True,
        "agrees no worse with people",
    )


def test_scores_turned_round_are_not_the_same(make: Any) -> None:
    before, after = (
        make.result(
            *(
                make.single(one, f"i{k}", s)
                for k in range(12)
                for s, one in zip("abc", ends, strict=True)
            )
        )
        for ends in (("1", "3", "5"), ("5", "3", "1"))
    )
    (outcome,) = against_baseline(after, before)
    assert outcome.status == "failed"
    assert outcome.reason.startswith("c: worse")
    assert outcome.estimate is not None
    assert outcome.estimate.value == -4


def test_how_many_texts_a_comparison_is_over(make: Any) -> None:
    after = make.result(*(make.single("4", *key) for key in texts(12)))
    for shared, status, reason in (
        (6, "passed", "the same; on 6 of 12 texts"),
        (5, "error", "only 5 of 12 texts"),
    ):
        before = make.result(*(make.single("4", *key) for key in texts(shared)))
        for outcome in (
            *against_baseline(after, before),
            verdict(drifting(shift=4), texts(12), after, before),
        ):
            assert (outcome.status, outcome.met) == (status, status == "passed")
            assert (
                reason if outcome.kind == "baseline" else reason.removeprefix("the same; ")
            ) in outcome.reason


def test_a_changed_scale_is_undecided_and_a_new_criterion_has_no_verdict(make: Any) -> None:
    after, other = make.result(make.single("4", *ONE[0])), replace(make.column, high=7.0)
    (outcome,) = against_baseline(after, make.result(make.single("4", *ONE[0]), columns=(other,)))
    assert (outcome.status, outcome.met) == ("undecided", True)
    assert has_line(outcome.reason, "1 to 7", "1 to 5")
    assert against_baseline(after, make.result(columns=())) == []


# Panels and missing scores


def panel(make: Any, *draws_of_judges: Mapping[str, int], panel: Any = "mean") -> Any:
    column = replace(make.column, panel=panel)
    judges = [
        replace(column, name=f"relevance/{n}", judge=str(n)) for n in range(len(draws_of_judges))
    ]
    rows = [
        make.drawn(draws, *ONE[0], column=c)
        for draws, c in zip(draws_of_judges, judges, strict=True)
    ]
    return make.result(
        *rows, columns=(replace(column, signature=Signature(f"{panel} of 2 judges")), *judges)
    )


def test_a_panels_mean_decides_with_the_draws_of_its_judges(make: Any) -> None:
    outcome = verdict(in_range(4), ONE, panel(make, {"5": 15, "4": 5}, {"4": 20}))
    error = np.std([5] * 15 + [4] * 5, ddof=1) / np.sqrt(20) / 2
    assert outcome.estimate is not None
    assert outcome.estimate.value == pytest.approx(4.375)
    assert outcome.estimate.high == pytest.approx(4.375 + error * stats.t.ppf(0.975, 19))
    label = verdict(labelled("4"), ONE, panel(make, {"5": 15, "4": 5}, {"4": 20}))
    assert (label.status, label.found) == ("passed", "4 (62.5%)")


@pytest.mark.parametrize(
    ("kind", "value", "label"), [("median", 4.25, "no score"), ("majority", 4.0, "4")]
)
def test_a_panels_median_or_majority_decides_by_its_value(
    make: Any, kind: Any, value: float, label: str
) -> None:
    result = panel(make, {"4": 15, "5": 5}, {"1": 15, "5": 5}, {"4": 10, "5": 5}, panel=kind)
    outcome = verdict(in_range(4), ONE, result)
    assert (outcome.status, outcome.reason) == ("passed", f"panel {kind}")
    assert outcome.estimate is not None
    assert (outcome.estimate.value, outcome.estimate.low) == (pytest.approx(value), None)
    assert verdict(labelled("4"), ONE, result).found == label


def test_a_case_without_a_score_is_an_error_with_the_reply(make: Any) -> None:
    kinds = [
        in_range(1),
        labelled("4"),
        ordered("s", "t"),
        agreeing({"spearman": -1.0}),
        drifting(shift=4),
    ]
    both = [*ONE, ("i", "t")]
    result = make.result(*(make.failed(*key) for key in both), human={ONE[0]: 3.0})
    for expected in kinds:
        outcome = evaluate_case(
            case(expected, undecided="pass"), both, result, make.result(make.single("4", *ONE[0]))
        )
        assert (outcome.status, outcome.met, outcome.found) == ("error", False, "no score")
        if "human" not in expected:
            error, reply = outcome.detail.splitlines()
            assert has_line(error, "unreadable", "no score")
            assert reply == "reply: I would rather not."


def test_missing_judgments_are_an_error(make: Any) -> None:
    result = make.result(make.single("4", "i0", "s"), make.single("4", "i1", "s"))
    part = verdict(in_range(4), texts(3), result)
    assert (part.status, part.reason) == ("error", "not judged: i2 (s)")
    outcome = evaluate_case(case(in_range(4), "style"), texts(2), result)
    assert has_line(outcome.reason, "style", "not judged")
    assert verdict(in_range(4), [], result).reason == "the case has no texts"
    assert verdict(in_range(4), texts(2), None).status == "error"


def test_texts_without_a_score_are_limited(make: Any) -> None:
    result = make.result(make.single("4", "i0", "s"), make.failed("i1", "s"))
    for limit in (Limits(), Limits(failures=f"{100 * 0.4:g}%")):
        lost = evaluate_case(case(in_range(4), undecided="pass"), texts(2), result, failures=limit)
        assert (lost.status, lost.met, lost.found) == ("error", False, "4.00")
        assert has_line(lost.reason, "1 text without a score", "limit on failures")
    assert verdict(in_range(4), texts(2), result, failures=Limits(failures=f"{100 * 0.5:g}%")).met
    outcome = verdict(in_range(4), texts(2), result, failures=Limits(failures=1))
    assert outcome.status == "passed"
    assert has_line(outcome.reason, "one reply each", "1 text without a score")
    assert outcome.detail.startswith("unreadable")
    assert [(v.name, v.met) for v in limits(suite(), result)] == [("failures", False)]


@given(
    st.sampled_from(
        [in_range(1, 5), labelled("4"), labelled("4", 0.01), ordered("a", "b"), drifting(4, 4, 1)]
    ),
    st.data(),
)
def test_nothing_but_failures_is_never_met(make: Any, expected: Any, data: st.DataObject) -> None:
    keys = texts(data.draw(st.integers(1, 8)), "a", "b")
    result = make.result(*(make.failed(*key) for key in keys))
    scored = make.result(*(make.single("4", *key) for key in keys))
    assert not evaluate_case(case(expected, undecided="pass"), keys, result, scored).met


# Limits


def failures(*verdicts: Verdict) -> list[tuple[str, bool, str, str]]:
    return [(v.status, v.met, v.expected, v.found) for v in verdicts]


def test_failures_are_limited_by_number_or_share(make: Any) -> None:
    result = make.result(*(make.single("4", *key) for key in texts(9)), make.failed("i9", "s"))
    (none,) = limits(suite(), result)
    assert failures(none) == [("failed", False, "≤ 0", "1 of 10 (10.0%)")]
    assert (none.line, none.kind) == (3, "limit")
    assert has_line(none.reason, "1 unreadable", "'i9'", "no score in the reply")
    assert failures(*limits(suite(limits=Limits(failures=1)), result)) == [
        ("passed", True, "≤ 1", "1 of 10 (10.0%)")
    ]
    assert [
        limits(suite(limits=Limits(failures=f"{100 * share:g}%")), result)[0].met
        for share in (0.1, 0.09)
    ] == [
        True,
        False,
    ]
    assert failures(*limits(suite(), make.result(make.single("4", *ONE[0])))) == [
        ("passed", True, "≤ 0", "0 of 1")
    ]


def test_judgment_counts_include_panel_judges_and_both_runs(make: Any) -> None:
    both = panel(make, {"4": 5}, {"4": 5})
    tie = Score("c", "a", "relevance", 0.5, Provenance(IDENTICAL, n=0), "b")
    untied = make.weighed({"A": 1.0}, "d", "a", "b", column=AB)
    ranked = make.result(tie, untied, columns=(AB,))
    assert limits(suite(), both, ranked)[0].found == "0 of 3"


def test_tokens_and_cost_are_compared_as_they_are(make: Any) -> None:
    result = make.result(make.single("4", *ONE[0]))
    limits_suite = suite(limits=Limits(tokens=1500, cost=Budget(0.5, "usd")))
    _, tokens, cost = limits(limits_suite, result, tokens=1500, cost=0.31)
    assert failures(tokens, cost) == [
        ("passed", True, "≤ 1,500 a judgment", "1,500"),
        ("passed", True, "≤ $0.50", "$0.31"),
    ]
    _, tokens, cost = limits(limits_suite, result, tokens=1501, cost=0.51)
    assert [(v.status, v.met, v.reason) for v in (tokens, cost)] == [
        ("failed", False, "over the limit")
    ] * 2
    _, tokens, cost = limits(limits_suite, result, unpriced="nobody publishes a price")
    assert [(v.status, v.met, v.found) for v in (tokens, cost)] == [("error", False, "unknown")] * 2
    assert has_line(cost.reason, "price", "`tokens`")


def test_a_failed_panel_counts_once_for_each_judge_that_failed(make: Any) -> None:
    judges = [replace(make.column, name=f"relevance/{name}", judge=name) for name in ("x", "y")]
    mean = replace(make.column, signature=Signature("mean of 2 judges"))
    rows: list[Score | Failure] = [
        make.single("4", "i", "s", column=judges[0]),
        make.failed("i", "s", column=judges[1]),
    ]
    result = make.result(*rows, columns=(mean, *judges))
    assert limits(suite(), result)[0].found == "1 of 2 (50.0%)"
    outcome = verdict(in_range(1), ONE, result)
    assert outcome.status == "error"
    assert has_line(outcome.detail, "unreadable", "no score")
