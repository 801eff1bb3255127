"""A Python function as the judge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import judge
from judge.core.errors import Refused
from judge.core.records import Request, Response
from judge.providers.scripted import FunctionProvider


def ask(function: Any, **params: Any) -> Response:
    provider = FunctionProvider(function)
    return asyncio.run(provider.complete(Request("m", ({"role": "user", "content": "p"},), params)))


def test_a_function_is_called_once_for_each_draw() -> None:
    numbers = iter(range(1, 6))
    response = ask(lambda prompt: next(numbers), n=5, temperature=1.0)
    assert [choice.text for choice in response.choices] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    "weights", [{1: 20, 4: 80}, {"1": 0.5, "4": 1.5}, {"1": 1, "4": -1}, {1: 0.5, 5: 0.6}]
)
def test_refuses_function_weights_that_are_not_probabilities(
    weights: Any,
) -> None:
    with pytest.raises(Refused, match="Divide weights by their sum"):
        ask(lambda prompt: weights)


def test_function_probabilities_may_be_rounded() -> None:
    thirds = {1: 0.34, 2: 0.34, 3: 0.33}
    response = ask(lambda prompt: thirds, top_logprobs=20)
    assert response.choices[0].tokens is not None


@pytest.mark.parametrize("plain_reply", [3, 3.5, "3", "Score: 3"])
@pytest.mark.parametrize("position", [0, 3])
def test_a_plain_reply_of_a_function_does_not_change_how_others_are_scored(
    plain_reply: Any, position: int
) -> None:
    rows = [{"item": str(n), "output": f"Text {n}."} for n in range(6)]
    options: dict[str, Any] = {"metrics": [], "max_concurrency": 1}

    def function(prompt: str) -> Any:
        return plain_reply if f"Text {position}." in prompt else {1: 0.45, 5: 0.55}

    scores = judge.evaluate(rows, "ok: Is it ok?", model=function, **options).table.scores
    values = {score.item: score.value for score in scores}
    # 3.5 is no score of this scale.
    assert values.pop(str(position), 3) == 3
    assert [*values.values()] == pytest.approx([3.2] * 5)


@pytest.mark.parametrize("reply", [None, [4], {}, {"4": "high"}, {"4": True}, b"4", object()])
def test_a_reply_of_the_wrong_type_is_refused(reply: Any) -> None:
    with pytest.raises(Refused, match="a judge's function returns"):
        ask(lambda prompt: reply)
