"""Arguments that a user may easily get wrong are JudgeErrors, which say what to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import judge
from judge.core.errors import ConfigError, DataError, JudgeError

POLITE = "polite: Is it polite?"
ROWS: list[dict[str, Any]] = [
    {"item": f"i{number}", "system": system, "output": f"{number} {system}", "lang": "ko"}
    for number in range(8)
    for system in ("a", "b")
]


@cache
def run() -> judge.Result:
    return judge.evaluate(
        ROWS, POLITE, model=lambda prompt: 2 + len(prompt) % 3, metrics=[], cache=False
    )


CALLS: dict[str, Callable[[Any], object]] = {
    "worst": lambda value: run().worst(value),
    "join": lambda value: run().join(value),
    "where": lambda value: run().where(lang=value),
    "compare": lambda value: judge.compare(run(), value),
    "generate": lambda value: judge.generate(ROWS, systems=value),
    "load_samples where": lambda value: judge.load_samples(ROWS, where={"lang": value}),
    "render": lambda value: judge.render(POLITE, value),
    "slices seed": lambda value: judge.slices(run(), "lang", seed=value),
    "rouge": lambda value: judge.metrics.rouge.score(value, ["a text"]),
    "rouge references": lambda value: judge.metrics.rouge.score(["a text"], value),
    "cider items": lambda value: judge.metrics.cider.score(["a b"], ["a b"], items=value),
    "stats sources": lambda value: judge.metrics.text_features.score(["a b"], value),
}
WRONG = [object(), b"x", [object()], {"x": None}, {1: 2}, -1.5, pd.DataFrame({"x": [1.5]})]


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_type_is_refused(name: str, value: Any) -> None:
    run()
    with pytest.raises(JudgeError):
        CALLS[name](value)


@pytest.mark.parametrize("n", [-1, "3", 1.5, None])
def test_a_number_of_texts_is_a_whole_number_of_0_or_more(n: Any) -> None:
    with pytest.raises(ConfigError, match=r"^n must be a whole number of 0 or more"):
        run().worst(n)


def test_a_number_of_numpy_is_a_number() -> None:
    assert len(run().worst(np.int64(3))) == 3


@pytest.mark.parametrize("listed", [tuple, np.array, pd.Series])
def test_metrics_take_tuples_arrays_and_series(listed: Callable[[Any], Any]) -> None:
    outputs = ["the cat sat", "a dog ran far"]
    references = ["the cat sat down", "a dog ran"]
    scores = judge.metrics.rouge.score(listed(outputs), listed(references), types=["rouge1"])
    assert scores == judge.metrics.rouge.score(outputs, references, types=["rouge1"])


def test_a_series_with_an_index_of_its_own_is_read_in_order() -> None:
    outputs = pd.Series(["the cat sat", "a dog ran"], index=[7, 3])
    sources = pd.Series(["the cat sat", "a dog ran"], index=[1, 2])
    features = judge.metrics.text_features.score(outputs, sources)
    assert [text.coverage for text in features] == [1.0, 1.0]


def test_lists_of_two_lengths_are_refused() -> None:
    with pytest.raises(DataError):
        judge.metrics.rouge.score(pd.Series(["a", "b"]), pd.Series(["a"]))


@pytest.mark.parametrize(
    "fields", [{"output": None}, {"item": 1}, {"source": 3}, {"human": 3}, {"references": None}]
)
def test_a_sample_with_a_field_of_another_type_is_refused(fields: dict[str, Any]) -> None:
    sample = judge.Sample(**{"item": "1", "system": "a", "output": "text"} | fields)
    with pytest.raises(DataError, match=rf"{next(iter(fields))} is "):
        judge.load_samples([sample])


def test_a_scale_whose_low_end_is_above_its_high_end_is_refused() -> None:
    with pytest.raises(JudgeError, match="from 5 to 1"):
        judge.Scale.integers(5, 1)
