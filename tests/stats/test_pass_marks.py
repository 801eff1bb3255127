"""Pass marks are translated to a new judge, so that as many held-out texts pass as before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.pass_marks import PassMark, translate_pass_marks
from judge.table import Table

N_ITEMS = 60


def table(values: Sequence[float], *, better: str = "higher", text: str = "A text.") -> Table:
    column = Column(
        "helpful", "criterion", Signature("helpful"), 1.0, 5.0, better=better, pass_at=3.0
    )
    samples = tuple(Sample(f"doc-{k}", "x", text) for k in range(len(values)))
    scores = tuple(
        Score(sample.item, "x", "helpful", float(value), Provenance("logprobs"))
        for sample, value in zip(samples, values, strict=True)
    )
    return Table(samples, (column,), scores)


def translated(old: Sequence[float], new: Sequence[float], better: str = "higher") -> PassMark:
    (mark,) = translate_pass_marks(table(old, better=better), table(new, better=better))
    return mark


@pytest.fixture
def old() -> np.ndarray:
    return np.random.default_rng(0).uniform(1.5, 5, N_ITEMS)


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_the_mark_moves_with_the_scores_of_a_stricter_judge(old: np.ndarray, better: str) -> None:
    mark = translated(old, old - 0.5, better)
    assert mark.translated == pytest.approx(2.5, abs=0.1)
    assert mark.refitted == pytest.approx(mark.before)
    assert mark.keeps_rate
    assert mark.after != mark.before


def test_held_out_texts_pass_as_often_on_any_scale_of_the_new_judge(old: np.ndarray) -> None:
    mark = translated(old, 1 + (old - 1) ** 2 / 4)
    assert mark.held_back == pytest.approx(mark.before, abs=0.02)
    assert mark.same_verdict > 0.95


def test_scores_that_are_too_coarse_do_not_preserve_the_pass_rate(old: np.ndarray) -> None:
    mark = translated(old, np.where(old > 4.5, 5.0, 1.0))
    assert not mark.keeps_rate


def test_an_unrelated_judge_has_the_same_pass_rate_but_other_verdicts(old: np.ndarray) -> None:
    mark = translated(old, np.random.default_rng(1).permutation(old) - 0.3)
    assert mark.refitted == pytest.approx(mark.before, abs=0.02)
    assert mark.same_verdict < 0.8


@pytest.mark.parametrize(
    ("n", "text", "shift"),
    [(19, "A text.", 0.5), (N_ITEMS, "Another.", 0.5), (N_ITEMS, "A text.", 0)],
)
def test_few_items_other_texts_and_equal_scores_have_no_translated_mark(
    old: np.ndarray, n: int, text: str, shift: float
) -> None:
    values = old[:n]
    assert translate_pass_marks(table(values), table(values - shift, text=text)) == ()
