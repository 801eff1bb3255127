"""Build what many tests need: requests, samples, files of rows, and the replies of a provider."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judge import text
from judge.core.errors import ParseError
from judge.core.records import Choice, ReplyKind, Request, Response, Sample, Scale, Usage
from judge.providers import Provider
from judge.providers.pricing import cost_of
from judge.providers.scripted import ScriptedProvider
from judge.scoring.parse import find

REPLY_KINDS: tuple[ReplyKind, ...] = ("score", "score_then_reason", "reason_then_score")


def write_jsonl(path: Path | str, rows: Iterable[Any]) -> Path:
    """Write one JSON value a line and return the file's path."""
    path = Path(path)
    lines = [json.dumps(row) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def user_request(
    text: str = "p", draw: int = 0, *, model: str = "m", endpoint: str = "", **params: Any
) -> Request:
    """Return a request with one user message and these parameters."""
    messages = ({"role": "user", "content": text},)
    return Request(model, messages, params, draw, endpoint=endpoint)


def text_response(*texts: str) -> Response:
    """Return a response with a choice for each text."""
    return Response(tuple(Choice(text) for text in texts))


def draws_of(*texts: str) -> list[Response]:
    """Return a response for each text, as repeated draws of one prompt."""
    return [text_response(text) for text in texts]


def samples_of(*outputs: str, system: str = "a") -> list[Sample]:
    """Return a sample of one system for each output; items are numbered from 0."""
    return [Sample(str(number), system, output) for number, output in enumerate(outputs)]


def complete_all(provider: Provider, *requests: Request) -> list[Response]:
    """Send requests one after the other, then close the provider."""

    async def send() -> list[Response]:
        try:
            return [await provider.complete(request) for request in requests]
        finally:
            await provider.aclose()

    return asyncio.run(send())


def labels_by_kind(
    reply: str, scale: Scale | None = None, judged: str = "The ferry left at nine."
) -> list[str | None]:
    """Return the label of a reply (default: from 1 to 5) in each kind, None if it is refused."""
    labels: list[str | None] = []
    for kind in REPLY_KINDS:
        try:
            parsed = find(reply, kind, scale or Scale.integers(1, 5), "Coherence", judged)
        except ParseError:
            labels.append(None)
        else:
            labels.append(parsed.label)
    return labels


def cost_usd(
    model: str, endpoint: str, usage: Usage, *, batched: Usage | None = None
) -> float | None:
    """Return US dollars for the tokens of requests to this model at its published price."""
    provider = ScriptedProvider(lambda _: "", model=model, endpoint=endpoint)
    return cost_of(provider, usage, batched=batched or Usage())


async def no_sleep(_: float) -> None:
    """Yield to the event loop once instead of sleeping."""
    await asyncio.sleep(0)


async def settle() -> None:
    """Let the event loop run every task that waits for nothing else."""
    for _ in range(20):
        await asyncio.sleep(0)


def exact_sign_flip_p(row: np.ndarray[Any, Any]) -> float:
    """Return the two-sided p of a paired sign-flip test over all assignments of signs."""
    nonzero = row[row != 0]
    if not len(nonzero):
        return 1.0
    signs = np.array(list(product((1, -1), repeat=len(nonzero)))).reshape(-1, len(nonzero))
    return float((np.abs(signs @ nonzero) >= abs(nonzero.sum()) - 1e-9).mean())


def skip_without_tokenizer(name: str) -> None:
    """Skip the test if the packages of a tokenizer are not installed."""
    if not text.installed(name):
        pytest.skip(f"needs the packages of the tokenizer {name}")


def has_line(text: str | Iterable[str], *facts: str) -> bool:
    """Return whether one line holds all facts, in this order.

    A fact that begins or ends with a digit is a whole number: "5" is not in "0.5" or "15".
    """
    lines = text.splitlines() if isinstance(text, str) else text
    pattern = re.compile(".*?".join(_whole_number(fact) for fact in facts), re.DOTALL)
    return any(pattern.search(line) for line in lines)


def lines_hold(lines: Iterable[str], facts_of_lines: Iterable[Iterable[str]]) -> bool:
    """Return whether there is one line for each row of facts, and each holds its row's facts."""
    lines = list(lines)
    rows = list(facts_of_lines)
    if len(lines) != len(rows):
        return False
    return all(has_line([line], *facts) for line, facts in zip(lines, rows, strict=True))


def _whole_number(fact: str) -> str:
    """Return a pattern of a fact that no digit continues, as "." and "," may do."""
    pattern = re.escape(fact)
    if fact[0].isdigit():
        pattern = r"(?<!\d)(?<!\d[.,])" + pattern
    if fact[-1].isdigit():
        pattern += r"(?!\d|[.,]\d)"
    return pattern
