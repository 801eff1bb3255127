"""An argument of a wrong type is a ConfigError or DataError at the call, not an error inside."""

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
SUITE = "examples/regression/grounded.judge.yaml"


@cache
def run() -> judge.Result:
    return judge.evaluate(
        ROWS, POLITE, model=lambda prompt: 2 + len(prompt) % 3, metrics=[], cache=False
    )


CALLS: dict[str, Callable[[Any], object]] = {
    "worst": lambda value: run().worst(value),
    "worst column": lambda value: run().worst(column=value),
    "join": lambda value: run().join(value),
    "plot": lambda value: run().plot(value),
    "power": lambda value: run().power(value),
    "power items": lambda value: run().power(items=value),
    "power pair": lambda value: run().power(pair=value),
    "report": lambda value: run().report(value),
    "save": lambda value: run().save(value),
    "scatters": lambda value: run().scatters(value),
    "where": lambda value: run().where(lang=value),
    "report of power": lambda value: run().power().report(value),
    "compare": lambda value: judge.compare(run(), value),
    "compare n_resamples": lambda value: judge.compare(run(), run(), n_resamples=value),
    "diff item": lambda value: judge.diff(POLITE, "polite: Polite?", ROWS, item=value),
    "generate": lambda value: judge.generate(ROWS, systems=value),
    "improve revisions": lambda value: judge.improve(POLITE, ROWS, revisions=value),
    "load_criterion": lambda value: judge.load_criterion(text=value, name="polite"),
    "load_result": lambda value: judge.load_result(value),
    "load_samples map": lambda value: judge.load_samples(ROWS, map=value),
    "load_samples where": lambda value: judge.load_samples(ROWS, where={"lang": value}),
    "render": lambda value: judge.render(POLITE, value),
    "slices": lambda value: judge.slices(run(), value),
    "slices seed": lambda value: judge.slices(run(), "lang", seed=value),
    "test": lambda value: judge.test(value),
    "test cases": lambda value: judge.test(SUITE, cases=value),
    "test undecided": lambda value: judge.test(SUITE, undecided=value),
    "validate level": lambda value: judge.validate(run(), level=value),
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


def test_the_message_names_the_argument_its_forms_and_the_value() -> None:
    with pytest.raises(ConfigError, match=r"^n must be a whole number, not '3'$"):
        run().worst("3")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"^n must be 0 or more, not -1$"):
        run().worst(-1)
    with pytest.raises(ConfigError, match=r"^level must be a text or None, not this Series$"):
        judge.validate(run(), level=pd.Series(["systems"]))  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    assert len(run().worst(np.int64(3))) == 3
    assert run().power(np.float32(0.5)).difference == 0.5


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


@pytest.mark.parametrize(
    "make",
    [
        lambda: judge.Scale.integers(5, 1),
        lambda: judge.Scale.integers(1, 5, 0),
        lambda: judge.Scale.integers("1", "5"),  # type: ignore[arg-type]
    ],
)
def test_a_scale_of_numbers_without_labels_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(JudgeError):
        make()
