"""A Python function as the judge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

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


@pytest.mark.parametrize("weights", [{1: 20, 4: 80}, {"1": 0.5, "4": 1.5}, {"1": 1, "4": -1}])
def test_refuses_function_weights_that_are_not_probabilities(
    weights: Any,
) -> None:
    with pytest.raises(Refused, match="Divide weights by their sum"):
        ask(lambda prompt: weights)


@pytest.mark.parametrize("reply", [None, [4], {}, {"4": "high"}, {"4": True}, b"4", object()])
def test_a_reply_of_the_wrong_type_is_refused(reply: Any) -> None:
    with pytest.raises(Refused, match="a judge's function returns"):
        ask(lambda prompt: reply)
