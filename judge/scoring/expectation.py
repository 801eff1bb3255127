"""Turn token probabilities into a distribution over the scale and an expected score with bounds.

The estimator is G-Eval's (Liu et al. 2023, eq. 1), computed from the probabilities of one reply
instead of many draws: the probability of each label at the position of the score, normalised over
the labels of the scale. Many draws, and the probabilities of a decision endpoint, are averaged in
the same way.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from judge.core.errors import ParseError
from judge.core.label_spellings import (
    DASHES,
    HAN,
    UNITS,
    fold,
    label_index,
    other_words,
    signed,
)
from judge.core.records import Scale, Token


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """A judgment with its uncertainty.

    `value` is Σ p(s)·v(s) / Σ p(s) over the scale. `mass` is Σ p(s), in (0, 1]. `distribution` maps
    labels to p(s) in the scale's order, not normalised, without labels of no probability. `entropy`
    is that of the normalised distribution, in nats. `argmax` is the likeliest label, the first of
    several in the scale's order.

    `ambiguous` is the probability of tokens that could still become several labels, or one label or
    none. It is not in `value`. `low` and `high` are the values if that probability, and the
    probability that the server did not list, went to the lowest or the highest possible label. They
    may exclude `value`. A value outside its bounds should not be trusted.
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
    tokens: Sequence[Token],
    start: int,
    label: str | None,
    scale: Scale,
    *,
    in_other_words: bool = False,
) -> ScoreDistribution:
    """Return the distribution over the scale at the position of a reply's score.

    `start` is the position of the score's first character in the joined text of the tokens. `label`
    is the label that was read there. If it is None, the text there is no label: it does not count,
    but its alternatives do. All spellings of a label are added up, including number words ("4",
    " ４", "four", "四"). Sentinels (-9999, -inf, NaN, above 0) and texts that are no label are left
    out. No probability is too small to count. `in_other_words`: the reply gave another word for yes
    or no than the label, such as "true" or "1", so that the other words for them count, too.

    A token may begin a label, or several (1 and 10). In the reply itself its probability is split
    by the tokens that could follow, and stays with `label` if the reply ends. In an alternative the
    next tokens are unknown, so its probability is `ambiguous`. If it begins several labels, it
    belongs to one of them. If it begins only one ("8" for 80), or a number word ("on"), it may also
    become no label.

    Raises ParseError if no label has probability, `start` is outside the tokens, the probabilities
    of a token add up to more than 1.01, or a text that is no label begins with one ("4 of 5
    names").
    """
    tally = _tally(tokens, start, label, _spellings_of(scale, in_other_words))
    if not any(tally.weights.values()):
        raw = "".join(token.text for token in tokens)
        raise ParseError("no probability on any label of the scale", raw)
    return _distribution(tally, scale)


def from_samples(labels: Sequence[str | None], scale: Scale) -> ScoreDistribution:
    """Return the distribution over the scale of several draws (Liu et al. 2023, section 2.3).

    `labels` has each draw's label, None if it did not parse. `distribution` is each label's share
    of all draws, `mass` the share that parsed, and `value` the mean over those. The bounds assume
    that all others had the lowest or the highest label.

    Raises ParseError if no draw parsed, or for a label that is not on the scale.
    """
    counts = Counter(label for label in labels if label is not None)
    _check_labels(counts, scale)
    shares = {label: count / len(labels) for label, count in counts.items()}
    tally = _Tally(shares)
    unparsed = len(labels) - counts.total()
    tally.unseen = unparsed / max(1, len(labels))
    return _distribution(tally, scale)


def from_probabilities(shares: Mapping[str, float], scale: Scale) -> ScoreDistribution:
    """Return the distribution over the scale from a decision endpoint's probabilities by label.

    If they add up to less than 1, the rest may belong to any label and widens the bounds. A sum
    just above 1 is scaled to 1.

    Raises ParseError for a label that is not on the scale, for numbers that are no probabilities,
    for a sum above 1.05, and if there is no probability at all.
    """
    _check_labels(shares, scale)
    total = math.fsum(shares.values())
    # Both are false for NaN, which compares false to everything.
    are_positive = all(share >= 0 for share in shares.values())
    is_small_enough = total <= _MAX_SUM
    if not are_positive or not is_small_enough:
        raise ParseError(f"these are not probabilities: {dict(shares)}")
    divisor = max(1.0, total)
    shares_of_one = {label: share / divisor for label, share in shares.items()}
    tally = _Tally(shares_of_one)
    tally.unseen = max(0.0, 1.0 - total)
    return _distribution(tally, scale)


_MAX_SUM = 1.05
"""The largest sum of ten labels' probabilities that are rounded to two decimals."""
_MAX_LISTED = 1.01
"""The largest sum of a token's listed probabilities that is still rounding."""


def _check_labels(labels: Iterable[str], scale: Scale) -> None:
    unknown = [label for label in labels if label not in scale.labels]
    if unknown:
        listed = ", ".join(unknown)
        raise ParseError(f"not on the scale: {listed}")


def _distribution(tally: _Tally, scale: Scale) -> ScoreDistribution:
    """Compute value, bounds and entropy. Raises ParseError if no label has probability."""
    mass = math.fsum(tally.weights.values())
    if not mass > 0:
        raise ParseError("no probability on any label of the scale")
    known_labels = [label for label in scale.labels if tally.weights.get(label)]
    distribution = {label: tally.weights[label] for label in known_labels}
    normalised = {label: weight / mass for label, weight in distribution.items()}
    expected = scale.expected(normalised)
    value = min(max(expected, scale.low), scale.high)
    positive_shares = [share for share in normalised.values() if share]
    entropy = math.fsum(-share * math.log(share) for share in positive_shares)
    unseen = _Doubt(tally.unseen, (scale.low, scale.high), optional=False)
    doubts = [*tally.doubts, unseen]
    argmax = max(distribution, key=distribution.__getitem__)
    ambiguous = math.fsum(doubt.weight for doubt in tally.doubts)
    return ScoreDistribution(
        value=value,
        mass=min(mass, 1.0),
        distribution=distribution,
        # The sum over a single label is -0.0, which would be printed with its sign.
        entropy=entropy + 0.0,
        argmax=argmax,
        low=_bound(value, mass, doubts, scale, sign=1),
        high=_bound(value, mass, doubts, scale, sign=-1),
        ambiguous=ambiguous,
    )


def _bound(
    value: float,
    mass: float,
    doubts: Sequence[_Doubt],
    scale: Scale,
    *,
    sign: int,
) -> float:
    """Return the lowest value that the doubts allow if `sign` is 1, the highest if it is -1.

    The highest value is found as the lowest one of the scale times -1.
    """
    candidates: list[tuple[bool, float, float]] = []
    for doubt in doubts:
        least = min(sign * label_value for label_value in doubt.values)
        candidates.append((doubt.optional, least, doubt.weight))
    total = sign * mass * value
    weight_so_far = mass
    # An optional doubt may become no label at all. It counts only if it lowers the mean, so the
    # doubts that must count come first, and then the optional ones from the lowest value up.
    for optional, least, weight in sorted(candidates):
        if not optional or least * weight_so_far < total:
            total += least * weight
            weight_so_far += weight
    mean = sign * total / weight_so_far
    exact = min(max(mean, scale.low), scale.high)
    # Rounding must not put a bound beside a value that it equals.
    tolerance = 1e-9 * (scale.high - scale.low)
    return value if math.isclose(exact, value, abs_tol=tolerance) else exact


@dataclass(frozen=True, slots=True)
class _Doubt:
    """Probability of the labels with these values, or of no label if that is `optional`."""

    weight: float
    values: tuple[float, ...]
    optional: bool


@dataclass(slots=True)
class _Tally:
    """The probability so far: by label, of beginnings of labels, and of texts not listed."""

    weights: dict[str, float]
    doubts: list[_Doubt] = field(default_factory=list)
    unseen: float = 0.0

    def add(self, label: str, weight: float) -> None:
        self.weights[label] = self.weights.get(label, 0.0) + weight

    def doubt(self, reading: _Reading, weight: float) -> None:
        if weight > 0:
            optional = reading.vague or len(reading.labels) == 1
            self.doubts.append(_Doubt(weight, reading.values, optional))


_LabelBySpelling = dict[str, tuple[str, float]]
"""Label and value by spelling, the longest spelling first."""


@dataclass(frozen=True, slots=True, eq=False)
class _Spellings:
    """The spellings of a scale's labels.

    `words` are the number words, in lower case; a word that needs a unit includes it.
    """

    entries: _LabelBySpelling
    words: _LabelBySpelling
    loose: bool


@dataclass(frozen=True, slots=True)
class _Reading:
    """The labels that a text can still become.

    `final`: it is one of them, or none, and cannot grow into another. `complete`: it already is
    one. `vague`: it only begins number words, as "on" could be "one", or opens the reply, as a
    space does.
    """

    labels: tuple[str, ...]
    values: tuple[float, ...]
    final: bool
    complete: bool
    vague: bool


# The character after a label: anything but a letter or digit, unless it continues a number or mark
# ("4.5", "4-5", "4%", "A+"). Or a unit ("4점").
_END = re.compile(
    rf"(?!\.0*[1-9]|,[0-9]|[:~〜-]\s*[0-9]|[%+{DASHES}-](?!\s))[\W_]"
    rf"|(?<=[0-9{HAN}])[{UNITS}](?![^\W_])"
)
_OPENING = " \t\r\n\v\f\u3000*_`\"'“”‘’「『([{:"


@lru_cache(maxsize=256)
def _spellings_of(scale: Scale, in_other_words: bool) -> _Spellings:
    index = label_index(scale)
    spellings = {**index.numbers, **index.labels}
    if index.below_zero:
        # On a scale from -3 to 3, judges write "+2".
        for number, label in index.numbers.items():
            if not number.startswith("-"):
                spellings[f"+{number}"] = label
    if index.ends[1] == "100":
        for number, label in index.numbers.items():
            spellings[f"{number}%"] = label
    for number, label in index.numbers.items():
        spellings[number.replace(".", ",")] = label
    number_words = dict(index.words)
    if in_other_words:
        for word, label in other_words(scale).items():
            number_words.setdefault(word, label)
    for word, label in index.counted.items():
        for unit in UNITS:
            number_words[f"{word}{unit}"] = label
            number_words[f"{word} {unit}"] = label
    return _Spellings(
        entries=_longest_first(spellings, scale),
        words=_longest_first(number_words, scale),
        loose=index.loose,
    )


def _longest_first(
    label_by_spelling: Mapping[str, str], scale: Scale
) -> _LabelBySpelling:
    ordered: _LabelBySpelling = {}
    for spelling in sorted(label_by_spelling, key=len, reverse=True):
        label = label_by_spelling[spelling]
        ordered[spelling] = (label, scale.value(label))
    return ordered


# Most replies have the same few tokens among their alternatives.
@lru_cache(maxsize=8_192)
def _read_beginning(spellings: _Spellings, text: str) -> _Reading:
    """Return the labels that a reply beginning with this text can have."""
    start = signed(fold(text).lstrip(_OPENING))
    lower = start.casefold()
    if spellings.loose:
        start = lower
    growing: list[tuple[str, float]] = []
    growing_words: list[tuple[str, float]] = []
    # The empty text begins every label, which says nothing about any of them.
    if text:
        growing = _longer_spellings(spellings.entries, start)
        growing_words = _longer_spellings(spellings.words, lower)
    complete = _complete_label(spellings.entries, start)
    if complete is None:
        complete = _complete_label(spellings.words, lower)
    value_by_label = dict([*growing, *growing_words])
    if complete is None:
        final = not value_by_label
        vague = not (start and growing)
    else:
        value_by_label[complete[0]] = complete[1]
        final = len(value_by_label) == 1
        vague = False
    return _Reading(
        tuple(value_by_label),
        tuple(value_by_label.values()),
        final=final,
        complete=complete is not None,
        vague=vague,
    )


def _longer_spellings(
    entries: _LabelBySpelling, beginning: str
) -> list[tuple[str, float]]:
    """Return the labels and values whose spelling begins with this text and is longer."""
    longer = [spelling for spelling in entries if spelling.startswith(beginning)]
    return [entries[spelling] for spelling in longer if spelling != beginning]


def _complete_label(entries: _LabelBySpelling, text: str) -> tuple[str, float] | None:
    """Return the label and value whose spelling the text is, or begins with as a whole word."""
    for spelling, entry in entries.items():
        if text == spelling:
            return entry
        if text.startswith(spelling) and _END.match(text, len(spelling)):
            return entry
    return None


def _tally(
    tokens: Sequence[Token], start: int, label: str | None, spellings: _Spellings
) -> _Tally:
    """Follow the reply from the score's first token for as long as its label can still grow."""
    first, skipped = _token_at(tokens, start)
    # The part of the first token before the score. An alternative that begins with it loses it.
    head = tokens[first].text[:skipped]
    tally = _Tally({})
    # What the reply has written of the label so far, and the probability of that.
    prefix = ""
    weight = 1.0
    for token in tokens[first:]:
        alternatives = _listed_probabilities(token)
        chosen = alternatives.pop(token.text, 0.0)
        listed = math.fsum(alternatives.values())
        unlisted = weight * max(0.0, 1.0 - chosen - listed)
        if prefix:
            tally.doubt(_read_beginning(spellings, prefix), unlisted)
        else:
            tally.unseen = unlisted
        for text, probability in alternatives.items():
            continuation = text.removeprefix(head)
            if not continuation and prefix:
                # An empty token ends the reply, and with it the label, as a line break would.
                continuation = "\n"
            alternative = _read_beginning(spellings, prefix + continuation)
            if not alternative.final:
                tally.doubt(alternative, weight * probability)
            elif alternative.labels:
                tally.add(alternative.labels[0], weight * probability)
        prefix += token.text.removeprefix(head)
        head = ""
        weight *= chosen
        reading = _read_beginning(spellings, prefix)
        if label is None and reading.complete:
            raise ParseError(f"the reply is no label, but begins with one: {prefix}")
        if reading.final:
            if reading.labels:
                label = reading.labels[0]
            break
    if label is not None:
        tally.add(label, weight)
    return tally


def _token_at(tokens: Sequence[Token], start: int) -> tuple[int, int]:
    """Return the index of the token at a position of the text, and how far inside it that is."""
    passed = 0
    for index, token in enumerate(tokens):
        if passed <= start < passed + len(token.text):
            return index, start - passed
        passed += len(token.text)
    raise ParseError(
        f"the score starts at character {start}, but the tokens have only {passed} characters"
    )


def _listed_probabilities(token: Token) -> dict[str, float]:
    """Return the probability of each text that a token lists, itself included.

    Servers repeat the chosen token in its list, so a text counts once. The sum is at most 1: a sum
    just above is rounding and is scaled. Raises ParseError for a larger sum, because some servers
    fill in 0.0 for every logarithm.
    """
    probabilities: dict[str, float] = {}
    for text, logprob in token.top:
        probability = _probability(logprob)
        if probability > probabilities.get(text, 0.0):
            probabilities[text] = probability
    chosen = _probability(token.logprob)
    if token.text not in probabilities and chosen > 0:
        probabilities[token.text] = chosen
    total = math.fsum(probabilities.values())
    if total > _MAX_LISTED:
        problem = f"the server's probabilities for one token add up to {total:.2f}"
        raise ParseError(problem, token.text)
    if total > 1:
        probabilities = {
            text: probability / total for text, probability in probabilities.items()
        }
    return probabilities


def _probability(logprob: float) -> float:
    """Return exp(logprob), at most 1, or 0 if it is invalid (-inf, NaN or positive).

    Up to a thousandth above 0 counts as rounding.
    """
    return min(1.0, math.exp(logprob)) if logprob <= 1e-3 else 0.0
