"""Failed judgments by system. Oracles: counting, Wilson's interval, and scipy's permutation test of paired samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judge.core.records import UNWRITTEN, Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.bootstrap import mean_estimate
from judge.stats.failure_rates import FailuresBySystem, failures_by_system
from judge.table import Table

COLUMNS = tuple(
    Column(name, "criterion", Signature(name), 1.0, 5.0) for name in ("polite", "clear")
)


def table(failed: dict[str, list[str]], **fields: Any) -> Table:
    """Return a table of each system's texts, one per item, with a character for each criterion.

    `+` is a score, `x` a failure, and `-` neither.
    """
    samples, scores, failures = [], [], []
    for system, texts in failed.items():
        for n, letters in enumerate(texts):
            samples.append(Sample(f"i{n}", system, "Some words."))
            for column, letter in zip(COLUMNS, letters, strict=False):
                key = (f"i{n}", system, column.name)
                if letter == "+":
                    scores.append(Score(*key, 3.0, Provenance("single")))
                elif letter == "x":
                    stage = fields.get("stage", "parse")
                    failures.append(Failure(*key, stage, "ParseError", "no score"))
    return Table(tuple(samples), COLUMNS, tuple(scores), tuple(failures))


def counts(failures: FailuresBySystem) -> list[tuple[str, int, int]]:
    return [(each.system, each.failed, each.judgments) for each in failures.systems]


def test_failed_judgments_are_counted_by_system() -> None:
    judged = table({"a": ["++", "+x", "--"], "b": ["xx", "x+", "++"]})
    assert counts(failures_by_system(judged)) == [("a", 1, 4), ("b", 3, 6)]
    assert counts(failures_by_system(judged, ["polite"])) == [("a", 0, 2), ("b", 2, 3)]
    assert failures_by_system(judged).most == failures_by_system(judged).systems[1]


@given(st.lists(st.sampled_from(["++", "+x", "x+", "xx"]), min_size=1, max_size=30))
def test_the_failure_rate_is_a_mean_over_items_on_a_scale_from_0_to_1(texts: list[str]) -> None:
    (system,) = failures_by_system(table({"a": texts})).systems
    by_item = np.array([text.count("x") / 2 for text in texts])
    expected = mean_estimate(by_item, 0.0, 1.0)
    assert (system.share.value, system.share.low, system.share.high) == (
        pytest.approx(expected.value),
        expected.low,
        expected.high,
    )
    assert system.share.value == pytest.approx(system.failed / system.judgments)


@pytest.mark.parametrize("more", [0, 4, 5, 6, 9])
def test_failure_rates_are_compared_by_a_paired_permutation_test(more: int) -> None:
    first = ["+"] * 11 + ["x"]
    second = ["x"] * more + ["+"] * (12 - more)
    failures = failures_by_system(table({"a": first, "b": second}), ["polite"])
    by_item = [[float(text == "x") for text in texts] for texts in (first, second)]
    expected = scipy_stats.permutation_test(
        by_item,
        lambda x, y: float(np.mean(x) - np.mean(y)),
        permutation_type="samples",
        n_resamples=np.inf,
    )
    clearest = failures.clearest_difference
    assert clearest is not None
    assert clearest.adjusted == pytest.approx(expected.pvalue)
    assert failures.differ == (expected.pvalue < 0.05)


def test_several_systems_have_holms_correction() -> None:
    texts = {"a": ["+"] * 12, "b": ["x"] * 7 + ["+"] * 5, "c": ["+"] * 12}
    failures = failures_by_system(table(texts), ["polite"])
    clearest = failures.clearest_difference
    assert clearest is not None
    assert {clearest.system, clearest.other} & {"b"}
    assert clearest.adjusted == pytest.approx(3 * 2 / 2**7)
    assert failures.differ


def test_judgments_of_one_item_are_one_independent_case() -> None:
    # 12 judgments differ, but only 6 items: with 12 cases, p would be 2 / 2**12.
    texts = {"a": ["++"] * 10, "b": ["xx"] * 6 + ["++"] * 4}
    clearest = failures_by_system(table(texts)).clearest_difference
    assert clearest is not None
    assert clearest.adjusted == 2 / 2**6


def test_texts_that_were_not_judged_or_not_generated_do_not_count() -> None:
    assert failures_by_system(table({"a": ["--"]})) == FailuresBySystem()
    assert failures_by_system(table({"a": ["xx"]}, stage=UNWRITTEN)).systems == ()
    assert failures_by_system(table({"a": ["x+"]})).clearest_difference is None
    assert failures_by_system(Table((), (), ())).most is None
