"""Win rates at equal length. Oracles: a second fit, simulated judges and AlpacaEval's published numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import judge
from judge.providers.scripted import ScriptedProvider
from judge.stats.equal_length import win_rates

MODELS = ("gemma-2b-it", "wizardlm-13b", "claude-2", "gpt-3.5-turbo-1106_verbose", "NullModel")


def _judged(
    n: int, seed: int, *, prefers_long: float, constants: dict[str, float]
) -> tuple[list, ...]:  # type: ignore[type-arg]
    """Return items, systems, preferences and length differences. Each system sometimes has the longer text."""
    random = np.random.default_rng(seed)
    items, systems, preferences, longer = [], [], [], []
    for name, constant in constants.items():
        difference = random.normal(200, 300, n)
        p = 1 / (1 + np.exp(-(constant + prefers_long * np.tanh(difference / 300))))
        items += [f"i{k}" for k in range(n)]
        systems += [name] * n
        preferences += (random.random(n) < p).astype(float).tolist()
        longer += difference.tolist()
    return items, systems, preferences, longer


def test_win_rates_maximize_the_likelihood() -> None:
    items, systems, preferences, longer = _judged(
        40, 1, prefers_long=1.5, constants={"a": 0.5, "b": -0.5}
    )
    x = np.tanh(np.array(longer) / np.std(longer))
    is_b = np.array(systems) == "b"

    def loss(at: np.ndarray) -> float:  # type: ignore[type-arg]
        total = 0.0
        z = np.where(is_b, at[2], at[1]) + at[0] * x
        total += float((np.logaddexp(0, z) - np.array(preferences) * z).sum())
        for constant in at[1:]:  # two halves of a tie for each system
            for side in (-1, 1):
                z_tie = constant + side * at[0]
                total += float(np.logaddexp(0, z_tie) - z_tie / 2) / 2
        return total

    expected = 1 / (1 + np.exp(-minimize(loss, np.zeros(3), tol=1e-12).x[1:]))
    rates = win_rates(items, systems, preferences, longer)
    assert [rates[name].value for name in "ab"] == pytest.approx(expected.tolist(), abs=1e-5)


@pytest.mark.slow
def test_intervals_cover_the_preference_at_equal_length_and_the_raw_rate_does_not() -> None:
    covered, raw = [], []
    for seed in range(12):
        rows = _judged(100, seed, prefers_long=2.0, constants={"equal": 0.0})
        estimate = win_rates(*rows, seed=seed)["equal"]
        assert estimate.low is not None
        assert estimate.high is not None
        covered.append(estimate.low <= 0.5 <= estimate.high)
        raw.append(np.mean(rows[2]))
    assert sum(covered) >= 10
    assert np.mean(raw) > 0.6


def test_fewer_than_30_items_have_no_interval() -> None:
    rows = _judged(29, 0, prefers_long=2.0, constants={"equal": 0.0})
    assert win_rates(*rows)["equal"].low is None


def test_a_judge_that_prefers_long_texts_finds_no_better_system() -> None:
    rows = [
        {"item": f"{k}", "system": system, "source": "s", "output": system + "x" * (k % 7 + longer)}
        for k in range(30)
        for system, longer in (("now", 3), ("new", 5 + k % 3))
    ]

    def longest(request):  # type: ignore[no-untyped-def]
        prompt = request.messages[0]["content"]
        return {"A": 1.0} if prompt.find("newx") < prompt.find("nowx") else {"B": 1.0}

    result = judge.rank(rows, model=ScriptedProvider(longest), against="now", cache=False)
    new, now = sorted(result.rankings[0].standings, key=lambda standing: standing.system)
    assert new.win_rate == 1.0
    assert new.equal_length is not None
    assert new.equal_length.value < 0.97  # all texts differ, by 2 to 4 characters
    assert now.equal_length is None
    without_opponent = judge.rank(rows, model=ScriptedProvider(longest), cache=False)
    assert without_opponent.rankings[0].standings[0].equal_length is None


def test_win_rates_are_up_to_six_points_above_those_of_alpacaeval(
    shared_data: Callable[[str], Path],
) -> None:
    """Dubois et al. 2024. benchmarks/reproduce shows these numbers and explains the difference."""
    items, systems, preferences, longer = [], [], [], []
    for model in MODELS:
        for line in shared_data(f"alpaca_logprobs/{model}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            items.append(row["instruction"])
            systems.append(model)
            preferences.append(row["preference"] - 1)
            longer.append(len(row["output_2"]) - len(row["output_1"]))
    published = json.loads(shared_data("alpaca_logprobs/index.json").read_text("utf-8"))
    rates = win_rates(items, systems, preferences, longer)
    assert [round(100 * rates[model].value, 1) for model in MODELS] == [7.0, 13.6, 33.1, 27.6, 91.8]
    for model in MODELS:
        gap = 100 * rates[model].value - published[model]["length_controlled_winrate"]
        assert 1.5 < gap < 5.7
        assert gap < published[model]["length_controlled_winrate"] - published[model]["win_rate"]
