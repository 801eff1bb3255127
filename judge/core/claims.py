"""Claims of a text with the probability that another text supports them.

Metrics store them, and reports show them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Span(NamedTuple):
    """Part of a text: characters from `start` up to, not including, `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a text, checked against another text.

    `probability` (0–1) is that of support. `span` is where the claim is in its own text, None if
    its words do not occur there. `evidence` is the most similar sentence of the text that it is
    checked against, None if that has no sentence.
    """

    text: str
    probability: float
    span: Span | None = None
    evidence: Span | None = None


def encode(claims: Iterable[Claim]) -> str:
    """Return claims as JSON: `{"claims": [[text, probability, span, evidence], …]}`.

    A span is `[start, end]` or null.
    """
    rows = [
        [claim.text, claim.probability, claim.span, claim.evidence] for claim in claims
    ]
    return json.dumps({"claims": rows}, ensure_ascii=False)


def decode(raw: str | None) -> tuple[Claim, ...]:
    """Return the claims that `encode` wrote; none for a damaged record or other text."""
    try:
        rows = json.loads(raw or "")["claims"]
        return tuple(_claim(*row) for row in rows)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return ()


def _claim(text: Any, probability: Any, span: Any, evidence: Any) -> Claim:
    number = float(probability)
    # `true` is a number for `float`, but not a probability.
    is_number = type(probability) in (int, float) and math.isfinite(number)
    if not isinstance(text, str) or not is_number or not 0 <= number <= 1:
        raise TypeError("not a claim")
    return Claim(text, number, _span(span), _span(evidence))


def _span(stored: Any) -> Span | None:
    if stored is None:
        return None
    start, end = stored
    are_integers = type(start) is int and type(end) is int
    is_span = are_integers and 0 <= start < end
    if not is_span:
        raise TypeError("not a span")
    return Span(start, end)
