"""Combine several draws of one prompt into a message, and separate its replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from judge.core.records import Request, Response, Usage


def as_message(draws: Sequence[Request]) -> Request:
    """Return the message that asks for draws of one prompt with consecutive numbers."""
    first_draw = draws[0]
    if len(draws) == 1:
        return first_draw
    params = {**first_draw.params, "n": len(draws)}
    return replace(first_draw, params=params)


def draws_of(message: Request) -> list[Request]:
    """Return the requests for the draws that a message asks for."""
    params = dict(message.params)
    n_draws = params.pop("n", None)
    if n_draws is None:
        return [message]
    first_draw = message.draw
    draws = range(first_draw, first_draw + n_draws)
    return [replace(message, params=params, draw=draw) for draw in draws]


def replies_of(message: Request, response: Response) -> list[Response]:
    """Return the reply to each draw, as many as the server returned; the first has the usage.

    A response without any choice is the reply to every draw.
    """
    n_draws = message.params.get("n")
    if n_draws is None:
        return [response]
    if not response.choices:
        return [response] * n_draws
    # A request for one draw cannot lack replies.
    unmet = tuple(parameter for parameter in response.unmet if parameter != "n")
    replies = []
    for choice in response.choices[:n_draws]:
        reply = replace(response, choices=(choice,), unmet=unmet, usage=Usage())
        replies.append(reply)
    replies[0] = replace(replies[0], usage=response.usage)
    return replies
