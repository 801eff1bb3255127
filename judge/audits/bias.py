"""What a judge leans to besides the quality of a text: place, length, copying, its own family's texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from statistics import fmean

import numpy as np

from judge.audits.card import ORIGINAL, Evidence
from judge.audits.drafts import Draft, criteria
from judge.audits.sensitivity import moves
from judge.audits.words import change, of, percent, places
from judge.metrics.stats import measured
from judge.records import Column, Estimate, Score
from judge.report.words import number
from judge.stats.bootstrap import Bootstrap, Statistic
from judge.stats.comparison import TIE, verdict
from judge.stats.differences import mean_differences
from judge.stats.permutation import sign_flip
from judge.stats.resample import Floats
from judge.stats.shares import share
from judge.table import Table

COPIED = "copied lead"
"""The neutral change that is about copying; the others are about length."""
_FEWEST = 10  # items below which a bootstrap over them has no interval
_ROUNDING = 1e-12

Text = tuple[str, str]

# Position


def position(evidence: Evidence, seed: int) -> Iterator[Draft]:
    """How often the verdict on two texts turns with their order, and how often the text shown first wins."""
    table = evidence.pairs
    for name, column in criteria(evidence, table) if table else ():
        flipped, first = _orders(table.of(column.name) if table else ())
        turned = share(sum(flipped), len(flipped), "flip rate")
        if turned is None:
            continue
        said = f"{name} turns its verdict with the order of the two texts in {of(turned)} pairs"
        yield Draft("position", name, "verdict turns with the order", turned, "share", said)
        (found,) = mean_differences(np.array([list(first.values())]), seed=seed)
        if found is not None:
            yield _first(name, found)


def _orders(rows: Iterable[Score]) -> tuple[list[bool], dict[str, float]]:
    """Of the pairs asked in both orders whether they turned, and by item how far above a tie the first text came."""
    asked = {(row.item, row.system, row.rival): row for row in rows}
    flipped, first = [], defaultdict[str, list[float]](list)
    for (item, one, other), row in asked.items():
        back = asked.get((item, other, one))
        if one < other and back is not None and (turned := verdict(row, back).flipped) is not None:
            flipped.append(turned)
            first[item].append((row.value + back.value) / 2 - TIE)
    return flipped, {item: fmean(values) for item, values in first.items()}


def _first(name: str, found: Estimate) -> Draft:
    low, high = (None if end is None else TIE + end for end in (found.low, found.high))
    moved = replace(found, name="first wins", value=TIE + found.value, low=low, high=high)
    which = "first" if found.value > 0 else "second"
    said = f"{name} prefers the text shown {which}: the first one gets {percent(moved)}"
    otherwise = f"{name} is not told to prefer either place: the text shown first gets {percent(moved)}"
    return Draft("position", name, "text shown first wins", moved, "share", said, otherwise)


# Length and copying


def verbosity(evidence: Evidence, neutral: Sequence[str], seed: int) -> Iterator[Draft]:
    """Moves by changes that add words and no content, and how scores go with length among an item's own texts."""
    yield from _neutral("verbosity", evidence, [name for name in neutral if name != COPIED], seed)
    for name, column, texts in _natural(evidence):
        kept = _Within.of([(item, value, length) for item, value, length, _ in texts])
        if (found := kept.slope(seed) if kept else None) is not None:
            digits = places(column)
            more = number(abs(found.value), digits)
            how = "higher" if found.value > 0 else "lower"
            said = f"{name} scores a text of twice the length {more} {how} than another text of its item"
            otherwise = f"{name} is not told to score longer texts of an item otherwise: {change(found, digits)}"
            what = "twice the words"
            yield Draft("verbosity", name, what, found, "points per doubling", said, otherwise)


def extractiveness(evidence: Evidence, neutral: Sequence[str], seed: int) -> Iterator[Draft]:
    """The move by the source's own first sentences, and how scores go with copying where length is held."""
    yield from _neutral("extractiveness", evidence, [name for name in neutral if name == COPIED], seed)
    for name, _, texts in _natural(evidence):
        known = [(item, value, length, copied) for item, value, length, copied in texts if copied is not None]
        kept = _Within.of(known)
        if (found := kept.partial(seed) if kept else None) is not None:
            how = "higher" if found.value > 0 else "lower"
            r = change(found, 2)
            said = f"{name} scores texts that copy more {how}, whatever their length: r = {r}"
            otherwise = f"{name} is not told to go with copying where length is held: r = {r}"
            yield Draft("extractiveness", name, "copying, length held", found, "r", said, otherwise)


def _neutral(probe: str, evidence: Evidence, names: Sequence[str], seed: int) -> Iterator[Draft]:
    table = evidence.changed
    kept = [name for name in names if name in table.systems]
    for criterion, column in evidence.columns.items() if kept and ORIGINAL in table.systems else ():
        rows = moves(table, column, kept)
        for name, found in zip(kept, mean_differences(rows, seed=seed), strict=True):
            if found is None:
                continue
            digits, how = places(column), "higher" if found.value > 0 else "lower"
            said = f"{criterion} scores “{name}” {how} than the text as it is: {change(found, digits)}"
            otherwise = f"{criterion} is not told to move by “{name}”: {change(found, digits)}"
            yield Draft(probe, criterion, name, found, "points", said, otherwise)


def _natural(evidence: Evidence) -> Iterator[tuple[str, Column, list[tuple[str, float, float, float | None]]]]:
    """By criterion the item, score, log2 of the words and share of copied bigrams of every text that has a score."""
    table = evidence.natural
    if table is None:
        return
    looks = {}
    for sample, found in zip(table.samples, measured(table.samples), strict=True):
        if found.words:
            copied = None if found.novel2 is None else 1 - found.novel2
            looks[sample.item, sample.system] = (log2(found.words), copied)
    for name, column in criteria(evidence, table):
        rows = [row for row in table.of(column.name) if (row.item, row.system) in looks]
        yield name, column, [(row.item, row.value, *looks[row.item, row.system]) for row in rows]


@dataclass(frozen=True, slots=True)
class _Within:
    """For every item Σ v vᵀ over its texts, v being the score and what may move it, each less its mean in the item."""

    sums: Floats
    texts: int

    @classmethod
    def of(cls, rows: Sequence[tuple[str, *tuple[float, ...]]]) -> _Within | None:
        """From rows of an item and its numbers; None where no item has two texts."""
        items = defaultdict[str, list[tuple[float, ...]]](list)
        for item, *values in rows:
            items[item].append(tuple(values))
        kept = [np.array(texts) for texts in items.values() if len(texts) > 1]
        if not kept:
            return None
        centred = [texts - texts.mean(axis=0) for texts in kept]
        return cls(np.array([texts.T @ texts for texts in centred]), sum(map(len, kept)))

    def slope(self, seed: int) -> Estimate | None:
        """The least-squares slope of the score on the one driver; p by flipping the sign of every item's product."""
        if not self.sums[:, 1, 1].sum() > _ROUNDING:
            return None
        p, exact = sign_flip(self.sums[None, :, 0, 1], seed=seed)
        flips = "exact" if exact[0] else f"10000 flips, seed {seed}"
        found = self._estimate("slope", _slope, "slope within items", seed)
        if found is None or np.isnan(p[0]):
            return found
        return replace(found, p=float(p[0]), method=f"{found.method}; p: sign-flip permutation test, {flips}")

    def partial(self, seed: int) -> Estimate | None:
        """Pearson's r of the score with the second driver, both less what the first explains of them (−1 to 1)."""
        return self._estimate("partial r", _partial, "partial r within items", seed)

    def _estimate(self, name: str, statistic: Statistic, how: str, seed: int) -> Estimate | None:
        bootstrap, n = Bootstrap(seed=seed), len(self.sums)
        found = bootstrap.resampled(lambda counts: statistic(np.tensordot(counts, self.sums, 1)), n, n)
        estimate = bootstrap.estimate(name, found, self.texts, how)
        if estimate is None or n >= _FEWEST:
            return estimate
        return replace(estimate, low=None, high=None, method=f"{how}; {n} items: too few for an interval")


def _slope(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(sums[..., 1, 1] > _ROUNDING, sums[..., 0, 1] / sums[..., 1, 1], np.nan)
    return found


def _partial(sums: Floats) -> Floats:
    """Of score, held driver and driver: NaN where either does not vary besides what is held."""
    held = np.maximum(sums[..., 1, 1], _ROUNDING)

    def left(one: int, other: int) -> Floats:
        rest: Floats = sums[..., one, other] - sums[..., one, 1] * sums[..., 1, other] / held
        return rest

    scale = left(0, 0) * left(2, 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(scale > _ROUNDING, left(0, 2) / np.sqrt(scale), np.nan)
    return found


# Whose texts


_FAMILIES = {
    "openai": ("gpt", "chatgpt", "o"),
    "anthropic": ("claude",),
    "google": ("gemini", "gemma", "palm"),
    "meta": ("llama",),
    "mistral": ("mixtral", "ministral", "magistral", "codestral", "mistralai"),
    "qwen": ("qwq", "alibaba"),
    "xai": ("grok",),
    "cohere": ("command",),
}
"""Whose models go by which first word."""
_VENDORS = {word: vendor for vendor, words in _FAMILIES.items() for word in words}


def kin(name: str) -> str:
    """Whose family a model is of: by the first word of the last part of its name, `openai` for `openrouter/gpt-4o`."""
    last = name.strip().lower().partition("@")[0].rstrip("/").rpartition("/")[2]
    word = re.match(r"[^\W\d_]+", last)
    found = word[0] if word else last
    return _VENDORS.get(found, found)


def self_preference(evidence: Evidence, seed: int) -> Iterator[Draft]:
    """How far texts of the judge's own family come above others of their item, less how far people place them so.

    Where people rated no such texts on the criterion's scale, it is the judge's preference alone, and says so.
    """
    table = evidence.natural
    if table is None:
        return
    whose = _whose(table, evidence.model)
    for name, column in criteria(evidence, table):
        values = {(row.item, row.system): row.value for row in table.of(column.name)}
        ratings = _ratings(table, name, column)
        both = [text for text in values if text in ratings]
        judged, people = (_ahead({text: one[text] for text in both}, whose) for one in (values, ratings))
        ahead = {item: judged[item] - people[item] for item in judged} or _ahead(values, whose)
        (found,) = mean_differences(np.array([list(ahead.values())]), seed=seed) if ahead else (None,)
        if found is not None:
            yield _own(name, found, places(column), beside=bool(judged))


def _whose(table: Table, model: str) -> dict[Text, bool]:
    """Whether a text is of the judge's family, for every text whose `generator` is known."""
    own = kin(model)
    known = {(s.item, s.system): s.extra.get("generator") for s in table.samples}
    return {text: kin(name) == own for text, name in known.items() if isinstance(name, str) and name.strip()}


def _ratings(table: Table, name: str, column: Column) -> dict[Text, float]:
    """People's ratings of the criterion; none where one lies outside its scale."""
    rated = {(s.item, s.system): s.human[name] for s in table.samples if name in s.human}
    if column.low is None or column.high is None:
        return {}
    inside = all(column.low <= value <= column.high for value in rated.values())
    return rated if inside else {}


def _ahead(values: Mapping[Text, float], whose: Mapping[Text, bool]) -> dict[str, float]:
    """By item the mean of the own family's texts less that of the others, where it has both."""
    sides = defaultdict[str, tuple[list[float], list[float]]](lambda: ([], []))
    for (item, system), value in values.items():
        if (item, system) in whose:
            sides[item][whose[item, system]].append(value)
    return {item: fmean(own) - fmean(others) for item, (others, own) in sides.items() if own and others}


def _own(name: str, found: Estimate, digits: int, *, beside: bool) -> Draft:
    how = "higher" if found.value > 0 else "lower"
    than = "than people do" if beside else "than others of the same item (no ratings to compare with)"
    said = f"{name} scores texts of its own family {how} {than}: {change(found, digits)}"
    otherwise = f"{name} is not told to score texts of its own family otherwise {than}: {change(found, digits)}"
    what = "own family, beyond people" if beside else "own family"
    return Draft("self-preference", name, what, found, "points", said, otherwise)
