"""The rate of changed verdicts without a real change: stated, observed, joint and reduced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from judge.results.result import Result
from judge.suite.evaluate import evaluate_case
from judge.suite.expectations import Expectation
from judge.suite.gate_risk import GateRisk, JudgedCase
from judge.suite.risk import SuiteRisk
from tests.suite.conftest import ScoreMaker

ADAPTER: TypeAdapter[Any] = TypeAdapter(Expectation)


def judged(result: Result, **keys: Any) -> JudgedCase:
    case = ADAPTER.validate_python({"name": "case", "criterion": "relevance", **keys})
    located = case.located("relevance", 1, {})
    texts = [
        sample.key
        for sample in result.table.samples
        if (not case.item or sample.item in case.item)
        and (not case.systems or sample.system in case.systems)
    ]
    return JudgedCase(located, texts, evaluate_case(located, texts, result))


def risk_of(
    result: Result, *cases: dict[str, Any], mends: bool = False, n_reruns: int = 100
) -> SuiteRisk:
    all_judged = [judged(result, **keys) for keys in cases]
    return GateRisk(all_judged, {"texts": result}, n_reruns=n_reruns).estimate(mends=mends)


@pytest.fixture
def mixed(make: ScoreMaker) -> Result:
    """Return ten items with an equal number of draws of 4 and 5, and one text with a single reply."""
    rows = [make.drawn({"4": 5, "5": 5}, f"doc-{k}", "x") for k in range(10)]
    return make.result(*rows, make.single("4", "alone", "y"))


def test_a_limit_near_the_mean_is_at_risk_and_a_far_one_is_not(mixed: Result) -> None:
    near, far = (
        risk_of(mixed, {"item": "doc-1", "expect": {"min": limit}}).same_texts
        for limit in (4.1, 2.5)
    )
    assert far == 0
    assert near > 0.2


def test_token_probabilities_are_the_same_in_every_rerun(make: ScoreMaker) -> None:
    result = make.result(make.weighed({"4": 0.5, "5": 0.5}, "a", "x"))
    risk = risk_of(result, {"expect": {"min": 4.5}})
    assert (risk.same_texts, risk.n_unknown) == (0, 0)


def test_the_risk_of_a_single_reply_is_unknown(mixed: Result) -> None:
    risk = risk_of(mixed, {"item": "alone", "expect": {"min": 4}})
    assert risk.cases[0].same_texts is None
    assert risk.n_unknown == 1


def test_the_risk_of_a_failed_judgment_is_unknown(make: ScoreMaker) -> None:
    risk = risk_of(make.result(make.failed("a", "x")), {"expect": {"min": 4}})
    assert (risk.cases[0].status, risk.cases[0].same_texts) == ("error", None)


def test_a_judgment_of_two_cases_is_drawn_once(mixed: Result) -> None:
    keys = {"item": "doc-1", "expect": {"min": 4.1}}
    risk = risk_of(mixed, keys, {**keys, "name": "again"})
    assert risk.cases[0].same_texts == risk.cases[1].same_texts == risk.same_texts > 0


def test_only_cases_about_all_items_have_a_risk_on_other_items(make: ScoreMaker) -> None:
    labels = ("3", "5", "4", "5", "3", "4", "5", "5", "4", "3")
    result = make.result(*(make.single(label, f"doc-{k}", "x") for k, label in enumerate(labels)))
    risk = risk_of(
        result, {"expect": {"min": 3.4}}, {"name": "one", "item": "doc-1", "expect": {"min": 3}}
    )
    assert 0 < (risk.cases[0].other_items or 0) < 1
    assert risk.cases[1].other_items is None


def test_the_same_seed_gives_the_same_risk(mixed: Result) -> None:
    keys = {"item": "doc-1", "expect": {"min": 4.1}}
    assert risk_of(mixed, keys) == risk_of(mixed, keys)


def test_a_mend_brings_the_risk_of_a_case_to_about_five_percent(mixed: Result) -> None:
    keys: dict[str, Any] = {"item": "doc-1", "expect": {"min": 4.1}}
    mends = risk_of(mixed, keys, mends=True).cases[0].mends
    limit = next(float(mend.removeprefix("min: ")) for mend in mends if mend.startswith("min"))
    assert limit < 4.1
    assert risk_of(mixed, {**keys, "expect": {"min": limit}}).same_texts <= 0.1


@pytest.mark.slow
def test_stated_and_observed_rates_agree(make: ScoreMaker) -> None:
    random = np.random.default_rng(0)
    stated: list[float] = []
    changed: list[bool] = []

    def draw(shares: Sequence[float]) -> dict[str, int]:
        counts = random.multinomial(10, shares)
        return {label: int(n) for label, n in zip("345", counts, strict=True) if n}

    for _ in range(100):
        limit = float(random.uniform(3.2, 4.8))
        shares = [random.dirichlet([0.5, 2, 1]) for _ in range(4)]
        runs = [
            make.result(*(make.drawn(draw(own), f"doc-{k}", "x") for k, own in enumerate(shares)))
            for _ in range(2)
        ]
        cases = [{"item": f"doc-{k}", "expect": {"min": limit}} for k in range(4)]
        risk = risk_of(runs[0], *cases, n_reruns=8)
        for case_risk, keys in zip(risk.cases, cases, strict=True):
            assert case_risk.same_texts is not None
            stated.append(case_risk.same_texts)
            changed.append(judged(runs[1], **keys).verdict.met != case_risk.met)
    # 400 verdicts; the observed rate has a standard error of about 2 points.
    assert np.mean(stated) == pytest.approx(np.mean(changed), abs=0.04)
    assert np.mean(changed) > 0.1
