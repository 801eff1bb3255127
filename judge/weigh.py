"""Token probabilities to a distribution over the scale, and from that to a value with bounds.

The estimator is G-Eval's (Liu et al. 2023, eq. 1) over one reply's own probabilities instead of many draws: what
each label had at the score's place, normalised over the labels of the scale.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from judge.errors import ParseError
from judge.records import Scale, Token, fold


@dataclass(frozen=True, slots=True)
class Weighed:
    """A judgment with its uncertainty.

    `value` is Σ p(s)·v(s) / Σ p(s) over the scale. `mass` is Σ p(s), in (0, 1]; `distribution` holds p(s) by label
    in the scale's order, not normalised, labels without probability left out; `entropy` is that of the normalised
    distribution, in nats; `argmax` its likeliest label, the first in the scale's order of several.

    `ambiguous` is probability that belongs to the scale but cannot be told apart between labels. `low` and `high`
    are the values that would come out if it, and what the server did not list, all fell on the lowest or the
    highest label it can fall on; they always enclose `value`.
    """

    value: float
    mass: float
    distribution: Mapping[str, float]
    entropy: float
    argmax: str
    low: float
    high: float
    ambiguous: float


def weigh(tokens: Sequence[Token], start: int, label: str, scale: Scale) -> Weighed:
    """The distribution over the scale at the place where a reply has its score.

    `start` is the position of the score's first character in the joined text of the tokens, `label` the label that
    was read there. Spellings of a label are added up; sentinels (-9999, -inf, NaN, above 0) and what is no label are
    left out; no probability is too small to count.

    A token that begins several labels (1 and 10): as part of the reply, its probability is split by the tokens that
    could follow, and stays with `label` where the reply ends; as an alternative, what would have followed is not
    known, so its probability is `ambiguous`.

    Raises ParseError where no label has probability, or `start` is not in the tokens.
    """
    tally = _tally(tokens, start, label, _table(scale))
    mass = math.fsum(tally.weights.values())
    if not mass > 0:
        raise ParseError("no probability on any label of the scale", "".join(t.text for t in tokens))
    distribution = {name: tally.weights[name] for name in scale.labels if tally.weights.get(name)}
    shares = {name: p / mass for name, p in distribution.items()}
    value = min(max(scale.expected(shares), scale.low), scale.high)
    whole = mass + tally.ambiguous + tally.unseen
    return Weighed(
        value=value,
        mass=min(mass, 1.0),
        distribution=distribution,
        entropy=math.fsum(-q * math.log(q) for q in shares.values() if q) + 0.0,
        argmax=max(distribution, key=distribution.__getitem__),
        low=max(scale.low, min(value, (mass * value + tally.least + tally.unseen * scale.low) / whole)),
        high=min(scale.high, max(value, (mass * value + tally.most + tally.unseen * scale.high) / whole)),
        ambiguous=tally.ambiguous,
    )


@dataclass(slots=True)
class _Tally:
    """What was found so far: probability by label, and what has none, with Σ p·v at its least and its most."""

    weights: dict[str, float]
    ambiguous: float = 0.0
    least: float = 0.0
    most: float = 0.0
    unseen: float = 0.0

    def add(self, label: str, weight: float) -> None:
        self.weights[label] = self.weights.get(label, 0.0) + weight

    def doubt(self, weight: float, values: tuple[float, ...]) -> None:
        self.ambiguous += weight
        self.least += weight * min(values)
        self.most += weight * max(values)


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A scale made ready for looking up: folded label → (label, value), the longest first."""

    entries: dict[str, tuple[str, float]]
    loose: bool


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a text can be the beginning of: the labels it may become, `final` if it cannot grow into another."""

    labels: tuple[str, ...]
    values: tuple[float, ...]
    final: bool


# What ends a label: anything that is no letter or digit, but not the decimals of another number; or a unit.
_END = re.compile(r"(?!\.0*[1-9])[\W_]|(?<=[0-9])[점点分]")
_OPENING = " \t\r\n\v\f\u3000*_`\"'“”‘’「『([{:"


@lru_cache(maxsize=256)
def _table(scale: Scale) -> _Table:
    folded = [fold(label).strip() for label in scale.labels]
    loose = len({text.casefold() for text in folded}) == len(folded)
    keys = [text.casefold() if loose else text for text in folded]
    entries = dict(zip(keys, zip(scale.labels, scale.values, strict=True), strict=True))
    return _Table({key: entries[key] for key in sorted(entries, key=len, reverse=True)}, loose)


@lru_cache(maxsize=8_192)
def _read(table: _Table, text: str) -> _Reading:
    """The labels that a reply which begins with this text can have."""
    begun = fold(text).lstrip(_OPENING)
    if table.loose:
        begun = begun.casefold()
    longer = [entry for key, entry in table.entries.items() if begun and key.startswith(begun) and key != begun]
    ended = next((entry for key, entry in table.entries.items() if _is(key, begun)), None)
    entries = [*longer, ended] if ended else longer
    return _Reading(tuple(label for label, _ in entries), tuple(value for _, value in entries), not longer)


def _is(key: str, begun: str) -> bool:
    return begun == key or (begun.startswith(key) and _END.match(begun, len(key)) is not None)


def _tally(tokens: Sequence[Token], start: int, label: str, table: _Table) -> _Tally:
    """Follow the reply from the score's first token for as long as its label can still grow."""
    at, head = _locate(tokens, start)
    tally = _Tally({})
    begun, weight = "", 1.0
    for place in range(at, len(tokens)):
        token = tokens[place]
        listed = _listed(token)
        own = listed.pop(token.text, 0.0)
        missing = weight * max(0.0, 1.0 - own - math.fsum(listed.values()))
        if begun:
            tally.doubt(missing, _read(table, begun).values)
        else:
            tally.unseen = missing
        for text, p in listed.items():
            reading = _read(table, begun + (text.removeprefix(head) or "\n" * bool(begun)))
            if len(reading.labels) == 1:
                tally.add(reading.labels[0], weight * p)
            elif reading.labels:
                tally.doubt(weight * p, reading.values)
        begun, weight, head = begun + token.text.removeprefix(head), weight * own, ""
        reading = _read(table, begun)
        if reading.final:
            tally.add(reading.labels[0] if reading.labels else label, weight)
            return tally
    tally.add(label, weight)
    return tally


def _locate(tokens: Sequence[Token], start: int) -> tuple[int, str]:
    """The token that holds the character at `start`, and that token's text before it."""
    at = 0
    for place, token in enumerate(tokens):
        if at <= start < at + len(token.text):
            return place, token.text[: start - at]
        at += len(token.text)
    raise ParseError(f"the score's place, {start}, is outside of the {at} characters of the tokens")


def _listed(token: Token) -> dict[str, float]:
    """The probabilities at a token's place by raw text, the token's own among them, together at most 1.

    Servers repeat the chosen token in its list, so a text counts once. A sum above 1 can only be rounding, or a
    server that is not to be trusted with the scale of its numbers; either way the proportions are kept.
    """
    listed: dict[str, float] = {}
    for text, logprob in token.top:
        if (p := _probability(logprob)) > listed.get(text, 0.0):
            listed[text] = p
    if token.text not in listed and (p := _probability(token.logprob)) > 0:
        listed[token.text] = p
    total = math.fsum(listed.values())
    return {text: p / total for text, p in listed.items()} if total > 1 else listed


def _probability(logprob: float) -> float:
    """exp(logprob), at most 1; 0 for what is no log probability. Above 0, a thousandth is allowed for rounding."""
    return min(1.0, math.exp(logprob)) if logprob <= 1e-3 else 0.0
