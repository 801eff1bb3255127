from __future__ import annotations

import statistics
from collections import Counter

import pytest

from judge.core.records import Column, Provenance, Sample, Scale, Score
from judge.core.signature import Signature
from judge.scoring.expectation import from_samples
from judge.stats.agreement import repeats
from judge.table import Table
from tests.factories import has_line

FIVE = Scale.integers(1, 5)
NAMED = Scale(("poor", "fair", "good"), (0.0, 0.5, 1.0))
PASS = Scale(("pass", "fail"), (1.0, 0.0))
SHIFTED = Scale(("1", "2", "3"), (0.0, 0.2, 1.0))


def _score(item: str, draws: list[str | None], scale: Scale, system: str = "s") -> Score:
    """Return a score as a run stores it for these draws. None is a draw without a score."""
    w = from_samples(draws, scale)
    parsed = sum(draw is not None for draw in draws)
    provenance = Provenance(
        "samples", w.mass, w.distribution, w.entropy, w.argmax, w.low, w.high, parsed
    )
    return Score(item, system, "c", w.value, provenance)


def _table(scale: Scale, *scores: Score) -> Table:
    column = Column(
        "c", "criterion", Signature("c"), scale.low, scale.high, scale.labels, criterion="c"
    )
    samples = tuple(
        Sample(i, s, "") for i, s in dict.fromkeys((score.item, score.system) for score in scores)
    )
    return Table(samples, (column,), scores)


def test_repeat_sd_is_the_mean_standard_deviation_of_a_texts_draws() -> None:
    draws = {
        "1": [*"44445", None],
        "2": list("12345"),
        "3": list("333"),
        "4": list("44"),
        "5": list("1112"),
    }
    estimates = repeats(_table(FIVE, *(_score(item, row, FIVE) for item, row in draws.items())))
    by_text = [statistics.stdev(int(label) for label in row if label) for row in draws.values()]
    (estimate,) = estimates.values()
    assert (estimate.name, estimate.n) == ("repeat_sd", 5)
    assert estimate.value == pytest.approx(statistics.fmean(by_text))
    assert estimate.low is not None
    assert estimate.low < estimate.value < (estimate.high or 0)
    assert has_line(estimate.method, "mean over texts", "standard deviation", "draws", "95%")


def test_repeat_sd_is_by_system_and_column() -> None:
    rows = [_score("1", list("12"), FIVE, "a"), _score("1", list("33"), FIVE, "b")]
    estimates = repeats(_table(FIVE, *rows))
    assert {key: e.value for key, e in estimates.items()} == {
        ("a", "c"): pytest.approx(0.5**0.5),
        ("b", "c"): 0.0,
    }


def test_repeat_sd_of_two_labels_comes_from_the_distribution() -> None:
    (estimate,) = repeats(
        _table(PASS, _score("1", ["pass", "fail", "pass", "pass"], PASS))
    ).values()
    assert estimate.value == pytest.approx(statistics.stdev([1, 0, 1, 1]))


@pytest.mark.parametrize("scale", [NAMED, SHIFTED])
def test_scales_without_equal_steps_or_numbers_have_no_repeat_sd(scale: Scale) -> None:
    draws: list[str | None] = list(Counter({scale.labels[0]: 2, scale.labels[1]: 1}).elements())
    assert repeats(_table(scale, _score("1", draws, scale))) == {}


def test_single_draws_other_strategies_and_metrics_have_no_repeat_sd() -> None:
    weighed = Score("1", "s", "c", 4.5, Provenance("logprobs", 1.0, {"4": 0.5, "5": 0.5}))
    assert repeats(_table(FIVE, weighed)) == {}
    assert repeats(_table(FIVE, _score("1", ["4", None], FIVE))) == {}
    column = Column("c", "metric", Signature("c"))
    metric = Table((Sample("1", "s", ""),), (column,), (_score("1", list("45"), FIVE),))
    assert repeats(metric) == {}
    assert repeats(Table((), (), ())) == {}
