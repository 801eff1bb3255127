"""What instructions to the judge, written into an output, do to its scores.

What a judge leans to besides the quality of a text: place, length, copying, its own family's texts.

How a judge uses the scale, and how far its scores hang on the prompt's words and on chance.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, log2, sqrt
from statistics import fmean, stdev

import numpy as np

from judge.audits.card import (
    DETECTED,
    FEWEST,
    ORIGINAL,
    AuditData,
    SensitivityCell,
    change,
    interval,
    of_count,
    places,
    share_percent,
)
from judge.audits.perturbations.catalogue import CONTROL
from judge.audits.sensitivity import (
    CandidateFinding,
    agreement_with_mean,
    criteria,
    means,
    minimum_effect,
    score_changes,
    sensitivity_table,
    suppress_small_samples,
    varying,
    without_p,
)
from judge.core.messages import number, one_line
from judge.core.records import Column, Estimate, Sample, Score
from judge.metrics.text_features import measured
from judge.stats.agreement import repeats
from judge.stats.bootstrap import Bootstrap, Floats, Statistic, wilson_interval
from judge.stats.paired_differences import sign_flip
from judge.stats.pairwise import TIE, verdict
from judge.table import Table


def injection_damage(evidence: AuditData, attacks: Sequence[str], *, seed: int = 0) -> tuple[SensitivityCell, ...]:
    """A cell for every attack by every criterion: `rate` is how often the score rose, `move` by how much on average.

    Against the same outputs with the control in the attack's place (what any addition does), and the control against
    the outputs as they are, see `sensitivity.cells`; Holm's correction is over all of these and all criteria.
    """
    return sensitivity_table(evidence, dict.fromkeys(attacks, ""), rises=True, control=CONTROL, seed=seed)


FIRST = "text shown first wins"
LONGER, COPYING = "twice the words", "copying, length held"
COPIED = "copied lead"
"""The neutral change that is about copying; the others are about length."""
_LOWERED = ("relevance", "coherence")
"""What a text that repeats itself, or says nothing, has less of: a fall is right, and only a rise is a leaning."""
_SUPPORTED = "consistency"
"""What a text that copies its source has more of: no leaning."""
_ROUNDING = 1e-12
_COLLINEAR = 1e-6  # of a driver's variance: what another one leaves of it is nothing

Text = tuple[str, str]

# Position


def position_bias(evidence: AuditData, seed: int) -> Iterator[CandidateFinding]:
    """How often the verdict on two texts turns with their order, and how often the text shown first wins."""
    table = evidence.pairs
    for name, column in criteria(evidence, table) if table else ():
        flipped, first = _orders(table.column_scores(column.name) if table else ())
        turned = wilson_interval(sum(flipped), len(flipped), "flip rate")
        if turned is None:
            continue
        said = (
            f"{name} turns its verdict with the order of the two texts in {of_count(turned)} pairs{varying(evidence)}"
        )
        yield CandidateFinding("position", name, "verdict turns with the order", turned, "share", said, of="pairs")
        values = np.array(list(first.values()))
        (found,) = means(values[None], seed)
        if found is not None:
            yield _first(name, found, agreement_with_mean(values, 0.0))


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


def _first(name: str, found: Estimate, hits: Estimate | None) -> CandidateFinding:
    low, high = (None if end is None else TIE + end for end in (found.low, found.high))
    moved = replace(found, name="first wins", value=TIE + found.value, low=low, high=high)
    which = "first" if found.value > 0 else "second"
    said = f"{name} prefers the text shown {which}: the first one gets {share_percent(moved)}"
    otherwise = f"{name} shows no significant preference for a place: the text shown first gets {share_percent(moved)}"
    return CandidateFinding("position", name, FIRST, moved, "share", said, otherwise, hits, "items")


# Length and copying


def verbosity_bias(evidence: AuditData, neutral: Sequence[str], seed: int) -> Iterator[CandidateFinding]:
    """Moves by changes that add words and no content, and how scores go with length among an item's own texts."""
    yield from _neutral("verbosity", evidence, [name for name in neutral if name != COPIED], seed)
    for name, column, texts in _natural(evidence):
        ratings = _ratings(evidence.natural, name, column) if evidence.natural else {}
        rated = [(text[0], value, ratings[text], length) for text, value, length, _ in texts if text in ratings]
        kept = _Within.of([(item, value, length) for (item, _), value, length, _ in texts])
        digits = places(column)
        if (found := _beyond(rated, seed)) is not None:
            how = "higher" if found.value > 0 else "lower"
            more = f"{number(abs(found.value), digits)} {how}"
            said = f"{name} scores a text of twice the length {more} than another of its item, beyond people"
            otherwise = f"{name}: length beyond people's ratings is not significant: {change(found, digits)}"
            yield CandidateFinding("verbosity", name, LONGER, found, "points per doubling", said, otherwise)
        elif (found := without_p(kept.slope(seed) if kept else None)) is not None:
            seen = f"{name}: {change(found, digits)} for a text of twice the length among those of an item"
            seen += "; no test of a leaning, as longer texts may be the better ones"
            yield CandidateFinding("verbosity", name, LONGER, found, "points per doubling", seen)


def copying_bias(evidence: AuditData, neutral: Sequence[str], seed: int) -> Iterator[CandidateFinding]:
    """The move by the source's own first sentences, and how scores go with copying where length is held."""
    yield from _neutral("extractiveness", evidence, [name for name in neutral if name == COPIED], seed)
    for name, _, texts in _natural(evidence):
        if _is(name, _SUPPORTED):
            continue
        known = [(item, value, length, copied) for (item, _), value, length, copied in texts if copied is not None]
        kept = _Within.of(known)
        if (found := kept.partial(seed) if kept else None) is not None:
            how = "higher" if found.value > 0 else "lower"
            r = change(found, 2)
            said = f"{name} scores texts that copy more {how}, whatever their length: r = {r}"
            otherwise = f"{name}: copying at equal length is not significant: r = {r}"
            yield CandidateFinding("extractiveness", name, COPYING, found, "r", said, otherwise)


def _neutral(probe: str, evidence: AuditData, names: Sequence[str], seed: int) -> Iterator[CandidateFinding]:
    table = evidence.changed
    kept = [name for name in names if name in table.systems]
    for criterion, column in evidence.columns.items() if kept and ORIGINAL in table.systems else ():
        rows = score_changes(table, column, kept)
        for name, row, found in zip(kept, rows, means(rows, seed), strict=True):
            if found is None or (name == COPIED and _is(criterion, _SUPPORTED)):
                continue
            digits, how = places(column), "higher" if found.value > 0 else "lower"
            said = f"{criterion} scores “{name}” {how} than the text as it is: {change(found, digits)}"
            if name == COPIED:
                seen = f"{said}; no test of a leaning, as the source's own sentences may be the better ones"
                yield CandidateFinding(probe, criterion, name, without_p(found) or found, "points", seen)
                continue
            better = (found.value > 0) != (column.better == "lower")
            harmful = better or not any(_is(criterion, one) for one in _LOWERED)
            otherwise = f"{criterion}: “{name}” makes no significant difference: {change(found, digits)}"
            hits = agreement_with_mean(row, minimum_effect(evidence, column))
            yield CandidateFinding(probe, criterion, name, found, "points", said, otherwise, hits, harmful=harmful)


def _is(criterion: str, name: str) -> bool:
    """Whether it is the criterion of that name or a variant (`fluency_5` of `fluency`)."""
    return criterion == name or criterion.startswith(f"{name}_")


def _natural(evidence: AuditData) -> Iterator[tuple[str, Column, list[tuple[Text, float, float, float | None]]]]:
    """By criterion item and system, score, log2 of words and share of copied bigrams of every text with a score."""
    table = evidence.natural
    if table is None:
        return
    looks = {}
    for sample, found in zip(table.samples, measured(table.samples), strict=True):
        if found.words:
            copied = None if found.novel2 is None else 1 - found.novel2
            looks[sample.item, sample.system] = (log2(found.words), copied)
    for name, column in criteria(evidence, table):
        rows = [row for row in table.column_scores(column.name) if (row.item, row.system) in looks]
        yield name, column, [((row.item, row.system), row.value, *looks[row.item, row.system]) for row in rows]


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
        return self._estimate("slope", _slope, "slope within items", self.sums[:, 0, 1], seed)

    def held(self, seed: int) -> Estimate | None:
        """The least-squares slope of the score on the second driver with the first in the same line."""
        if np.isnan(_held(self.sums.sum(axis=0))):
            return None
        return self._estimate("slope", _held, "slope within items, the other driver held", self._left(), seed)

    def partial(self, seed: int) -> Estimate | None:
        """Pearson's r of the score with the second driver, both less what the first explains of them (−1 to 1).

        p by flipping the sign of every item's product of what is left.
        """
        return self._estimate("partial r", _partial, "partial r within items", self._left(), seed)

    def _left(self) -> Floats:
        """Every item's product of score and second driver, both less what the first explains of them."""
        held = max(self.sums[:, 1, 1].sum(), _ROUNDING)
        score, driver = (self.sums[:, one, 1].sum() / held for one in (0, 2))
        left: Floats = self.sums[:, 0, 2] - driver * self.sums[:, 0, 1] - score * self.sums[:, 1, 2]
        left += score * driver * self.sums[:, 1, 1]
        return left

    def _estimate(self, name: str, statistic: Statistic, how: str, products: Floats, seed: int) -> Estimate | None:
        """None of fewer than FEWEST items, which a line fits too well."""
        bootstrap, n = Bootstrap(seed=seed), len(self.sums)
        if n < FEWEST:
            return None
        drawn = bootstrap.resampled(lambda counts: statistic(np.tensordot(counts, self.sums, 1)), n, n)
        found = bootstrap.estimate(name, drawn, self.texts, how)
        p, exact = sign_flip(products[None], seed=seed)
        if found is None or np.isnan(p[0]):
            return found
        flips = "exact" if exact[0] else f"10000 flips, seed {seed}"
        return replace(found, p=float(p[0]), method=f"{found.method}; p: sign-flip permutation test, {flips}")


def _slope(sums: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(sums[..., 1, 1] > _ROUNDING, sums[..., 0, 1] / sums[..., 1, 1], np.nan)
    return found


def _left(sums: Floats, one: int, other: int) -> Floats:
    """What the held driver, the second of the three, leaves of a sum of products."""
    rest: Floats = sums[..., one, other] - sums[..., one, 1] * sums[..., 1, other] / np.maximum(
        sums[..., 1, 1], _ROUNDING
    )
    return rest


def _held(sums: Floats) -> Floats:
    """Of score, held driver and driver: NaN where the driver does not vary besides what is held."""
    own = _left(sums, 2, 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(own > _COLLINEAR * sums[..., 2, 2], _left(sums, 0, 2) / own, np.nan)
    return found


def _partial(sums: Floats) -> Floats:
    """Of score, held driver and driver: NaN where either does not vary besides what is held."""
    scale = _left(sums, 0, 0) * _left(sums, 2, 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Floats = np.where(scale > _ROUNDING, _left(sums, 0, 2) / np.sqrt(scale), np.nan)
    return found


def _beyond(rows: Sequence[tuple[str, float, float, float]], seed: int) -> Estimate | None:
    """What a driver adds to scores within items beyond people; rows of item, score, rating and driver.

    Two ways: with the ratings in the same line, which does not take a judge's narrower use of the scale for a leaning,
    and on score less rating, which does not take people's chance for one. The one nearer to 0 stands, with the larger
    p; 1 where they have opposite signs. None of few items, and where the driver goes with the ratings alone.
    """
    one, other = (
        _Within.of(rows),
        _Within.of([(item, value - rating, driver) for item, value, rating, driver in rows]),
    )
    line, less = one.held(seed) if one else None, other.slope(seed) if other else None
    if line is None or less is None or line.p is None or less.p is None:
        return None
    nearer = min(line, less, key=lambda found: abs(found.value))
    p = max(line.p, less.p) if line.value * less.value > 0 else 1.0
    return replace(nearer, p=p, method=f"{nearer.method}; the larger p of with ratings held and less ratings")


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


def model_family(name: str) -> str:
    """Whose family a model is of: by the first word of the last part of its name, `openai` for `openrouter/gpt-4o`."""
    last = name.strip().lower().partition("@")[0].rstrip("/").rpartition("/")[2]
    word = re.match(r"[^\W\d_]+", last)
    found = word[0] if word else last
    return _VENDORS.get(found, found)


def self_preference(evidence: AuditData, seed: int) -> Iterator[CandidateFinding]:
    """How far texts of the judge's own family come above others of their item, beyond people's ratings.

    Where these are few, alike or not on the criterion's scale, it is the judge's preference alone, and says so.
    """
    table = evidence.natural
    if table is None:
        return
    whose = _whose(table, evidence.model)
    for name, column in criteria(evidence, table):
        values = {(row.item, row.system): row.value for row in table.column_scores(column.name)}
        ratings = _ratings(table, name, column)
        both = _ahead({text: value for text, value in values.items() if text in ratings}, whose)
        rows = [
            (text[0], value, ratings[text], float(whose[text]))
            for text, value in values.items()
            if text in ratings and text in whose and text[0] in both
        ]
        if (beyond := _beyond(rows, seed)) is not None:
            yield _own(name, replace(beyond, n=len(both)), None, places(column), beside="people")
            continue
        ahead = _ahead(values, whose)
        further = np.array(list(ahead.values()))
        (found,) = means(further[None], seed) if ahead else (None,)
        if found is not None:
            hits = agreement_with_mean(further, minimum_effect(evidence, column))
            yield _own(name, found, hits, places(column), beside="few" if both else "")


def _whose(table: Table, model: str) -> dict[Text, bool]:
    """Whether a text is of the judge's family, for every text whose `generator` is known."""
    own = model_family(model)
    known = {(s.item, s.system): s.extra.get("generator") for s in table.samples}
    return {text: model_family(name) == own for text, name in known.items() if isinstance(name, str) and name.strip()}


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


def _own(name: str, found: Estimate, hits: Estimate | None, digits: int, *, beside: str) -> CandidateFinding:
    how = "higher" if found.value > 0 else "lower"
    why = "ratings too few or too alike to take away" if beside else "no ratings to compare with"
    than = "than people do" if beside == "people" else f"than others of the same item ({why})"
    said = f"{name} scores texts of its own family {how} {than}: {change(found, digits)}"
    otherwise = f"{name} scores texts of its own family no significantly {how} {than}: {change(found, digits)}"
    what = "own family, beyond people" if beside == "people" else "own family"
    return CandidateFinding("self-preference", name, what, found, "points", said, otherwise, hits, "items")


LABEL = "label "
"""Before a label: what the share of the texts that got it is of."""
_MOST_LABELS = 11  # of a scale whose every label is counted
_NEAR = 1e-9


def wording_sensitivity(evidence: AuditData, seed: int) -> Iterator[CandidateFinding]:
    """How far other words for the same prompt move the mean, the score of a text, and its label."""
    table = evidence.wordings
    if table is None:
        return
    for name, column in evidence.columns.items():
        found = {one.name: _by_item(table, one.name) for one in table.columns if _is_of(one.name, name)}
        others = [other for other in found if other != name]
        if name not in found or not others:
            continue
        yield from _shifts(name, column, found, minimum_effect(evidence, column), seed)
        whole = [
            [one[item] for one in found.values()] for item in found[name] if all(item in o for o in found.values())
        ]
        spread = [stdev(score.value for score in scores) for scores in whole]
        if (sd := _root_mean_square(spread, seed)) is not None:
            digits = places(column)
            beside = f" {interval(sd, digits)}".rstrip()
            words = f"{len(found)} wordings"
            said = f"{name} scatters by {number(sd.value, digits)}{beside} (sd) between {words} of its prompt"
            yield CandidateFinding("wording", name, "spread between wordings", sd, "sd", said)
        labels = [{s.provenance.argmax for s in scores} for scores in whole]
        labelled = [each for each in labels if None not in each]
        changed = wilson_interval(sum(len(each) > 1 for each in labelled), len(labelled), "label changes")
        if changed is not None:
            said = f"{name} gives another label in another wording to {of_count(changed)} texts{varying(evidence)}"
            yield CandidateFinding("wording", name, "label changes with the wording", changed, "share", said)


def _shifts(
    name: str, column: Column, found: Mapping[str, Mapping[str, Score]], far: float, seed: int
) -> Iterator[CandidateFinding]:
    others = [other for other in found if other != name]
    items = list(found[name])
    rows = [[found[o][i].value - found[name][i].value if i in found[o] else np.nan for i in items] for o in others]
    for other, row, shift in zip(others, np.array(rows), means(np.array(rows), seed), strict=True):
        if shift is not None:
            which, how = other.removeprefix(f"{name}~"), "higher" if shift.value > 0 else "lower"
            moved = change(shift, places(column))
            said = f"{name} scores {how} in wording {which} of its prompt: {moved}"
            otherwise = f"{name} is not moved significantly by wording {which} of its prompt: {moved}"
            hits = agreement_with_mean(row, far)
            yield CandidateFinding("wording", name, f"wording {which}", shift, "points", said, otherwise, hits)


def _is_of(column: str, criterion: str) -> bool:
    return column == criterion or column.startswith(f"{criterion}~")


def _by_item(table: Table, column: str) -> dict[str, Score]:
    return {row.item: row for row in table.column_scores(column)}


def _root_mean_square(values: Sequence[float], seed: int) -> Estimate | None:
    """Of standard deviations, whose mean is too low where each is of few scores; interval over items, no test."""
    (found,) = means(np.array([values]) ** 2, seed) if values else (None,)
    if (found := without_p(found)) is None:
        return None
    low, high = (None if end is None else sqrt(max(0.0, end)) for end in (found.low, found.high))
    how = f"root mean square over texts; {found.method}"
    return replace(found, name="rms", value=sqrt(found.value), low=low, high=high, method=how)


# Scale use


def scale_usage(evidence: AuditData, seed: int) -> Iterator[CandidateFinding]:
    """Which labels the originals get, how evenly, and how many scores lie at the scale's ends and in its middle."""
    for name, column in evidence.columns.items():
        rows = [row for row in evidence.changed.column_scores(column.name) if row.system == ORIGINAL]
        yield from _labels(name, column, rows, seed)
        if rows and column.low is not None and column.high is not None:
            yield from _ends(name, column, [row.value for row in rows], evidence.originals)


def _labels(name: str, column: Column, rows: Sequence[Score], seed: int) -> Iterator[CandidateFinding]:
    given = [row.provenance.argmax for row in rows if row.provenance.argmax in column.labels]
    if not given or not 2 <= len(column.labels) <= _MOST_LABELS:
        return
    counts = Counter(given)
    for label in column.labels:
        if (found := wilson_interval(counts[label], len(given))) is not None:
            said = f"{name} gives {one_line(label)} to {of_count(found)} texts"
            yield CandidateFinding("scale use", name, f"{LABEL}{label}", found, "share", said)
    label, hits = counts.most_common(1)[0]
    if (most := wilson_interval(hits, len(given))) is not None:
        said = f"{name} gives {of_count(most)} texts the same label, {one_line(str(label))}"
        yield CandidateFinding("scale use", name, "most used label", most, "share", said)
    ones = np.array([[one == label for label in column.labels] for one in given], dtype=np.float64)
    if (even := _evenness(ones, seed)) is not None:
        said = f"{name} uses {share_percent(even)} of the entropy that its scale could have"
        yield CandidateFinding("scale use", name, "entropy, of the most possible", even, "share", said)


def _evenness(ones: Floats, seed: int) -> Estimate | None:
    """The entropy of the labels' shares over its largest value, from texts × labels of 0 and 1."""

    def entropy(counts: Floats) -> Floats:
        shares = counts @ ones / counts.sum(axis=1, keepdims=True)
        found: Floats = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1) / log(ones.shape[1])
        return found + 0.0

    bootstrap, n = Bootstrap(seed=seed), len(ones)
    return suppress_small_samples(
        bootstrap.estimate("evenness", bootstrap.resampled(entropy, n, n), n, "entropy / log of the labels")
    )


def _ends(name: str, column: Column, values: Sequence[float], samples: Sequence[Sample]) -> Iterator[CandidateFinding]:
    low, high = column.low or 0.0, column.high or 0.0
    ratings = [sample.human[name] for sample in samples if name in sample.human]
    rated = ratings if all(low <= rating <= high for rating in ratings) else []
    near = DETECTED * (high - low) + _NEAR
    for place, at in (("bottom", low), ("middle", (low + high) / 2), ("top", high)):
        found = wilson_interval(sum(abs(value - at) <= near for value in values), len(values))
        people = wilson_interval(sum(abs(rating - at) <= near for rating in rated), len(rated))
        if found is not None:
            beside = f" (of people's ratings {share_percent(people)})" if people else ""
            said = f"{name} scores {of_count(found)} texts at the {place} of its scale{beside}"
            yield CandidateFinding("scale use", name, place, found, "share", said)


# Repeats


def repeatability(evidence: AuditData, seed: int) -> Iterator[CandidateFinding]:
    """How far the replies about one text differ, at each temperature."""
    for temperature, table in sorted(evidence.repeats.items()):
        at = f"at temperature {temperature:g}"
        spreads = repeats(_apart(table), seed=seed)
        for name, column in criteria(evidence, table):
            each = [one.value for (_, of_column), one in spreads.items() if of_column == column.name]
            if (sd := _root_mean_square(each, seed)) is not None:
                digits = places(column)
                beside = f" {interval(sd, digits)}".rstrip()
                said = f"{name}: replies about one text scatter by {number(sd.value, digits)}{beside} (sd) {at}"
                yield CandidateFinding("repeats", name, f"spread {at}", sd, "sd", said)
            drawn = [
                row for row in table.column_scores(column.name) if row.provenance.n > 1 and row.provenance.distribution
            ]
            several = sum(sum(p > 0 for p in (row.provenance.distribution or {}).values()) > 1 for row in drawn)
            if (found := wilson_interval(several, len(drawn))) is not None:
                said = f"{name} gives more than one label to {of_count(found)} texts {at}"
                yield CandidateFinding("repeats", name, f"several labels {at}", found, "share", said)


def _apart(table: Table) -> Table:
    """The table, of one text an item, with each as another system's, so that each has its own spread."""
    samples = tuple(replace(sample, system=sample.item) for sample in table.samples)
    return Table(samples, table.columns, tuple(replace(score, system=score.item) for score in table.scores))
