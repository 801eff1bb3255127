"""What one text's score leaves open, from the replies it was made of: no verdict rests on a number alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import fsum, sqrt
from typing import Any

from judge.core.errors import CriterionError
from judge.core.records import IDENTICAL, Column, Estimate, Provenance, Score
from judge.criteria.header import read_header
from judge.stats.power import ALPHA
from judge.suite.records import Band

NEAR = 1e-9
"""How far a value may be from a limit by rounding alone."""
_APART = 1e-6  # how far a mean over labels may be from the value that was stored
_JUDGED = ("logprobs", "decisions", "samples", "single")


@dataclass(frozen=True, slots=True)
class Reading:
    """A score as evidence: `low` to `high` is where the value would be, whatever was not seen of the replies.

    That is probability which is on no label, or draws that did not parse; both are None for one reply as it is
    written, which bounds nothing. `sd` is the standard deviation of the `n` draws (divisor n − 1), where there are two
    or more and it is known what their labels count.
    """

    value: float
    low: float | None
    high: float | None
    sd: float | None = None
    n: int = 1


Parts = Sequence[tuple[float, Reading]]
"""What is added up to one number: each reading and what it is multiplied by."""


def counts(column: Column, info: Mapping[str, Any]) -> Mapping[str, float]:
    """What each label of a column counts: as its criterion's header in a run's `info` says, else as the labels read.

    Of two labels without a header it is not known which end is whose: `chance` does not depend on it. Nothing where it
    cannot be known.
    """
    of_run = (info.get("criteria") or {}).get(column.criterion or column.name) or {}
    if found := _declared(next(iter((of_run.get("templates") or {}).values()), "")):
        return found
    if len(column.labels) == 2 and column.low is not None and column.high is not None:
        return dict(zip(column.labels, (column.low, column.high), strict=True))
    try:
        return {label: float(label) for label in column.labels}
    except ValueError:
        return {}


@lru_cache(maxsize=256)
def _declared(template: str) -> Mapping[str, float]:
    try:
        scale = read_header("", template).scale
    except CriterionError:
        return {}
    return dict(zip(scale.labels, scale.values, strict=True))


def shares(score: Score) -> dict[str, float]:
    """The probability of each label in a single reply (adds up to 1), or each label's share of the draws.

    One reply as it is written has the whole; nothing for a score that is made of no labels.
    """
    p = score.provenance
    if p.distribution and (mass := fsum(p.distribution.values())) > 0:
        return {label: share / mass for label, share in p.distribution.items()}
    return {p.argmax: 1.0} if p.argmax is not None else {}


def reading(score: Score, values: Mapping[str, float]) -> Reading:
    """The score's value; `values` are what its labels count. One that no judge gave leaves nothing open."""
    p = score.provenance
    if p.method not in _JUDGED:
        return Reading(score.value, score.value, score.value)
    return _reading(score.value, p, shares(score), values)


def lead(score: Score, label: str, rival: str) -> Reading:
    """By how much a label is likelier than another one: −1 to 1."""
    found, p = shares(score), score.provenance
    value = found.get(label, 0.0) - found.get(rival, 0.0)
    mass = 1.0 if p.mass is None else min(p.mass, 1.0)
    seen = replace(p, low=value * mass - (1 - mass), high=value * mass + (1 - mass))
    return _reading(value, seen, found, {label: 1.0, rival: -1.0} | dict.fromkeys(found.keys() - {label, rival}, 0.0))


def _reading(value: float, p: Provenance, found: Mapping[str, float], values: Mapping[str, float]) -> Reading:
    if p.method != "samples":
        single = p.method == "single" or p.low is None or p.high is None
        return Reading(value, None, None) if single else Reading(value, p.low, p.high)
    if p.n < 2 or found.keys() - values.keys():
        return Reading(value, None, None, n=p.n)
    counted = {label: values[label] for label in found}
    mean = fsum(share * counted[label] for label, share in found.items())
    if len(values) > 2 and abs(mean - value) > _APART:
        return Reading(value, None, None, n=p.n)
    squares = fsum(share * (counted[label] - mean) ** 2 for label, share in found.items())
    low, high = (value if end is None else end for end in (p.low, p.high))
    return Reading(value, low, high, sqrt(squares * p.n / (p.n - 1)), p.n)


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of readings less a limit, with its interval and, of draws, the p of its being 0; `sd` is that of one draw.

    `single`: a reply as it is written is among them, and so there is no interval.
    """

    estimate: Estimate
    sd: float | None
    single: bool


def total(parts: Parts, limit: float = 0.0) -> Sum:
    """Σ c·value − limit. The interval is Student's over the draws, and holds whatever was not seen at its worst.

    The degrees of freedom are those of Welch and Satterthwaite; `n` is the smallest number of draws.
    """
    value = fsum(c * one.value for c, one in parts) - limit
    n = min((one.n for _, one in parts if one.n > 1), default=1)
    ends = [(c * one.low, c * one.high) for c, one in parts if one.low is not None and one.high is not None]
    if len(ends) < len(parts):
        return Sum(Estimate("value", value, None, None, n, "a single reply: no interval"), None, True)
    drawn = [((c * one.sd) ** 2 / one.n, one.n) for c, one in parts if one.sd]
    variance = fsum(v for v, _ in drawn)
    half, p = (0.0, None) if variance <= 0 else _student(value, variance, drawn)
    low, high = fsum(map(min, ends)) - limit - half, fsum(map(max, ends)) - limit + half
    how = f"95% interval over {n} draws, Student's t" if n > 1 else "bounds, whatever was not seen of the probability"
    estimate = Estimate("value", value, min(low, value), max(high, value), n, how, p)
    return Sum(estimate, sqrt(variance * n) if n > 1 else None, False)


def _student(value: float, variance: float, drawn: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Half the width of the 95 % interval, and the two-sided p of 0; `drawn` are the variances and their draws."""
    from scipy.special import stdtr, stdtrit

    error, freedom = sqrt(variance), 1 / fsum((v / variance) ** 2 / (n - 1) for v, n in drawn)
    return float(stdtrit(freedom, 1 - ALPHA / 2)) * error, 2 * float(stdtr(freedom, -abs(value) / error))


def chance(score: Score, band: Band, values: Mapping[str, float]) -> float | None:
    """The share (0–1) of single replies whose label counts less or more than the band allows.

    `values` are what the labels count. None for one reply as it is written, and where that is not known.
    """
    if not score.provenance.distribution or score.provenance.method == IDENTICAL:
        return None
    found = shares(score)
    if found.keys() - values.keys():
        return None
    mean = fsum(share * values[label] for label, share in found.items())
    if abs(mean - score.value) > _APART:
        if len(values) != 2:
            return None
        values = dict(zip(values, reversed(list(values.values())), strict=True))  # the other way round
    return fsum(share for label, share in found.items() if not within(values[label], band))


def within(value: float, band: Band) -> bool:
    low = band.low is None or value >= band.low - NEAR
    return low and (band.high is None or value <= band.high + NEAR)
