"""Turn token probabilities into a distribution over the scale, and that into an expected score with bounds.

The estimator is G-Eval's (Liu et al. 2023, eq. 1), computed from the probabilities of one reply instead of many draws:
the probability of each label at the place of the score, normalised over the labels of the scale. Many draws, and the
probabilities of a decision endpoint, are averaged in the same way.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from judge.core.errors import ParseError
from judge.core.label_spellings import DASHES, HAN, UNITS, fold, label_index, signed
from judge.core.records import Scale, Token


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """A judgment with its uncertainty.

    `value` is Σ p(s)·v(s) / Σ p(s) over the scale. `mass` is Σ p(s), in (0, 1]. `distribution` maps labels to p(s) in
    the scale's order, not normalised, without labels of no probability. `entropy` is that of the normalised
    distribution, in nats. `argmax` is the likeliest label, the first of several in the scale's order.

    `ambiguous` is the probability of tokens that could still become several labels, or one label or none. It is not in
    `value`. `low` and `high` are the values if it, and the probability that the server did not list, went to the lowest
    or the highest possible label. They may exclude `value`, which is not to be trusted then.
    """

    value: float
    mass: float
    distribution: Mapping[str, float]
    entropy: float
    argmax: str
    low: float
    high: float
    ambiguous: float


def from_logprobs(
    tokens: Sequence[Token], start: int, label: str | None, scale: Scale
) -> ScoreDistribution:
    """Return the distribution over the scale at the place of a reply's score.

    `start` is the position of the score's first character in the joined text of the tokens; `label` is the label that
    was read there, or None if it is none: then the written text does not count, but its alternatives do. All spellings
    of a label are added up, also number words ("4", " ４", "four", "四"). Sentinels (-9999, -inf, NaN, above 0) and
    texts that are no label are left out. No probability is too small to count.

    A token may begin a label, or several (1 and 10). In the reply itself its probability is split by the tokens that
    could follow, and stays with `label` if the reply ends. In an alternative the next tokens are unknown, so its
    probability is `ambiguous`. It belongs to one of several labels, but the beginning of only one ("8" for 80), or of a
    number word ("on"), may also become none.

    Raises ParseError if no label has probability, `start` is outside the tokens, the probabilities of a token add up to
    more than 1.01, or a text that is no label begins with one ("4 of 5 names").
    """
    tally = _tally(tokens, start, label, _spellings_of(scale))
    if not any(tally.weights.values()):
        raise ParseError(
            "no probability on any label of the scale", "".join(t.text for t in tokens)
        )
    return _distribution(tally, scale)


def from_samples(labels: Sequence[str | None], scale: Scale) -> ScoreDistribution:
    """Return the distribution over the scale of several draws (Liu et al. 2023, G-Eval, section 2.3).

    `labels` has each draw's label, None if it did not parse. `distribution` is each label's share of all draws, `mass`
    the share that parsed, and `value` the mean over those. The bounds assume that all others had the lowest or the
    highest label.

    Raises ParseError if no draw parsed, or for a label that is not on the scale.
    """
    counts = Counter(label for label in labels if label is not None)
    _check_labels(counts, scale)
    tally = _Tally({label: count / len(labels) for label, count in counts.items()})
    tally.unseen = (len(labels) - counts.total()) / max(1, len(labels))
    return _distribution(tally, scale)


def from_probabilities(shares: Mapping[str, float], scale: Scale) -> ScoreDistribution:
    """Return the distribution over the scale from a decision endpoint's probabilities by label.

    Probability missing to 1 may belong to any label and widens the bounds. A sum just above 1 is scaled to 1.

    Raises ParseError for a label that is not on the scale, for numbers that are no probabilities, for a sum above 1.05,
    and if there is no probability at all.
    """
    _check_labels(shares, scale)
    total = math.fsum(shares.values())
    if not all(p >= 0 for p in shares.values()) or not total <= _MAX_SUM:
        raise ParseError(f"these are no probabilities: {dict(shares)}")
    tally = _Tally({label: p / max(1.0, total) for label, p in shares.items()})
    tally.unseen = max(0.0, 1.0 - total)
    return _distribution(tally, scale)


_MAX_SUM = 1.05
"""The largest sum of rounded probabilities: those of ten labels, with two decimals each."""
_MAX_LISTED = 1.01
"""The largest sum of a token's listed probabilities that is still rounding."""


def _check_labels(labels: Iterable[str], scale: Scale) -> None:
    if strange := [label for label in labels if label not in scale.labels]:
        raise ParseError(f"not on the scale: {', '.join(strange)}")


def _distribution(tally: _Tally, scale: Scale) -> ScoreDistribution:
    """Compute value, bounds and entropy. Raises ParseError if no label has probability."""
    mass = math.fsum(tally.weights.values())
    if not mass > 0:
        raise ParseError("no probability on any label of the scale")
    distribution = {name: tally.weights[name] for name in scale.labels if tally.weights.get(name)}
    shares = {name: p / mass for name, p in distribution.items()}
    value = min(max(scale.expected(shares), scale.low), scale.high)

    def bound(sign: int) -> float:
        """Return the least value, times `sign`, that the doubts allow; what may become no label only lowers it."""
        total, whole = sign * mass * value, mass
        doubts = [*tally.doubts, _Doubt(tally.unseen, (scale.low, scale.high), optional=False)]
        for optional, least, weight in sorted(
            (d.optional, min(sign * v for v in d.values), d.weight) for d in doubts
        ):
            if not optional or least * whole < total:
                total, whole = total + least * weight, whole + weight
        exact = min(max(sign * total / whole, scale.low), scale.high)
        return (
            value if math.isclose(exact, value, abs_tol=1e-9 * (scale.high - scale.low)) else exact
        )

    return ScoreDistribution(
        value=value, mass=min(mass, 1.0), distribution=distribution,
        entropy=math.fsum(-q * math.log(q) for q in shares.values() if q) + 0.0,
        argmax=max(distribution, key=distribution.__getitem__), low=bound(1), high=bound(-1),
        ambiguous=math.fsum(doubt.weight for doubt in tally.doubts),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Doubt:
    """Probability of the labels with these values, or of none of them if that is `optional`."""

    weight: float
    values: tuple[float, ...]
    optional: bool


@dataclass(slots=True)
class _Tally:
    """Probability by label so far, that of beginnings of labels, and what the server did not list."""

    weights: dict[str, float]
    doubts: list[_Doubt] = field(default_factory=list)
    unseen: float = 0.0

    def add(self, label: str, weight: float) -> None:
        self.weights[label] = self.weights.get(label, 0.0) + weight

    def doubt(self, reading: _Reading, weight: float) -> None:
        if weight > 0:
            self.doubts.append(
                _Doubt(weight, reading.values, reading.vague or len(reading.labels) == 1)
            )


@dataclass(frozen=True, slots=True, eq=False)
class _Spellings:
    """Spellings of a scale's labels → (label, value), the longest first.

    `words` are the number words, in lower case; those that need a unit have it.
    """

    entries: dict[str, tuple[str, float]]
    words: dict[str, tuple[str, float]]
    loose: bool


@dataclass(frozen=True, slots=True)
class _Reading:
    """The labels that a text can still become; `final` if it is one of them, or none, and cannot grow into another.

    `complete`: it is one already. `vague`: it only begins number words, as "on" could be "one", or opens the reply, as
    a space does.
    """

    labels: tuple[str, ...]
    values: tuple[float, ...]
    final: bool
    complete: bool
    vague: bool


# What ends a label: anything that is no letter or digit, but not what makes another number or mark of it (4.5, 4-5,
# 4%, A+); or a unit.
_END = re.compile(
    rf"(?!\.0*[1-9]|,[0-9]|[:~〜-]\s*[0-9]|[%+{DASHES}-](?!\s))[\W_]|(?<=[0-9{HAN}])[{UNITS}](?![^\W_])"
)
_OPENING = " \t\r\n\v\f\u3000*_`\"'“”‘’「『([{:"


@lru_cache(maxsize=256)
def _spellings_of(scale: Scale) -> _Spellings:
    index = label_index(scale)
    spellings = {**index.numbers, **index.labels}
    if index.below_zero:
        spellings |= {
            f"+{number}": label
            for number, label in index.numbers.items()
            if not number.startswith("-")
        }
    if index.ends[1] == "100":
        spellings |= {f"{number}%": label for number, label in index.numbers.items()}
    spellings |= {number.replace(".", ","): label for number, label in index.numbers.items()}
    number_words = dict(index.words)
    number_words |= {
        word + gap + unit: label
        for word, label in index.counted.items()
        for gap in ("", " ")
        for unit in UNITS
    }
    entries, words = (
        {
            name: (table[name], scale.value(table[name]))
            for name in sorted(table, key=len, reverse=True)
        }
        for table in (spellings, number_words)
    )
    return _Spellings(entries, words, index.loose)


@lru_cache(maxsize=8_192)
def _read_beginning(table: _Spellings, text: str) -> _Reading:
    """Return the labels that a reply beginning with this text can have."""
    start = signed(fold(text).lstrip(_OPENING))
    lower = start.casefold()
    start = lower if table.loose else start
    growing, words = (
        [
            entry
            for name, entry in entries.items()
            if text and name.startswith(begun) and name != begun
        ]
        for entries, begun in ((table.entries, start), (table.words, lower))
    )
    complete = [entry for name, entry in table.entries.items() if _is_complete(name, start)][:1]
    complete = (
        complete or [entry for name, entry in table.words.items() if _is_complete(name, lower)][:1]
    )
    readings = dict([*growing, *words, *complete])
    final = len(readings) == 1 if complete else not readings
    vague = not complete and not (start and growing)
    return _Reading(tuple(readings), tuple(readings.values()), final, bool(complete), vague)


def _is_complete(name: str, start: str) -> bool:
    return start == name or (start.startswith(name) and _END.match(start, len(name)) is not None)


def _tally(tokens: Sequence[Token], start: int, label: str | None, table: _Spellings) -> _Tally:
    """Follow the reply from the score's first token for as long as its label can still grow."""
    passed = 0
    for at, token in enumerate(tokens):
        if passed <= start < passed + len(token.text):
            first, head = at, token.text[: start - passed]
            break
        passed += len(token.text)
    else:
        raise ParseError(
            f"the score's place, {start}, is outside of the {passed} characters of the tokens"
        )
    tally = _Tally({})
    prefix, weight = "", 1.0
    for place in range(first, len(tokens)):
        token = tokens[place]
        alternatives = _listed_probabilities(token)
        chosen = alternatives.pop(token.text, 0.0)
        missing = weight * max(0.0, 1.0 - chosen - math.fsum(alternatives.values()))
        if prefix:
            tally.doubt(_read_beginning(table, prefix), missing)
        else:
            tally.unseen = missing
        written = prefix + token.text.removeprefix(head)
        reading = _read_beginning(table, written)
        for text, p in alternatives.items():
            other = _read_beginning(
                table, prefix + (text.removeprefix(head) or "\n" * bool(prefix))
            )
            if not other.final:
                tally.doubt(other, weight * p)
            elif other.labels:
                tally.add(other.labels[0], weight * p)
        prefix, weight, head = written, weight * chosen, ""
        if label is None and reading.complete:
            raise ParseError(f"the reply is no label, but begins with one: {written}")
        if reading.final:
            label = reading.labels[0] if reading.labels else label
            break
    if label is not None:
        tally.add(label, weight)
    return tally


def _listed_probabilities(token: Token) -> dict[str, float]:
    """Return the probability of each text that a token lists, itself included; their sum is at most 1.

    Servers repeat the chosen token in its list, so a text counts once. A sum just above 1 is rounding and is scaled.
    Raises ParseError for more: some servers fill in 0.0 for every logarithm.
    """
    probabilities: dict[str, float] = {}
    for text, logprob in token.top:
        probability = _probability(logprob)
        if probability > probabilities.get(text, 0.0):
            probabilities[text] = probability
    own = _probability(token.logprob)
    if token.text not in probabilities and own > 0:
        probabilities[token.text] = own
    total = math.fsum(probabilities.values())
    if total > _MAX_LISTED:
        raise ParseError(
            f"the server's probabilities for one token add up to {total:.2f}", token.text
        )
    if total > 1:
        probabilities = {text: probability / total for text, probability in probabilities.items()}
    return probabilities


def _probability(logprob: float) -> float:
    """Return exp(logprob), at most 1; 0 for an invalid one. Up to a thousandth above 0 counts as rounding."""
    return min(1.0, math.exp(logprob)) if logprob <= 1e-3 else 0.0
