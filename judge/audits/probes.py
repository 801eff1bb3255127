"""The probes of `judge audit`: what changes a judge's scores besides the quality of a text.

Prompt injections; biases for position, length, copying and the judge's own model family; sensitivity to the wording of
the prompt; use of the scale; repeatability.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, log2, sqrt
from statistics import fmean, stdev
from typing import Any

import numpy as np

from judge.audits.card import (
    DETECTED,
    FEWEST,
    ORIGINAL,
    AuditData,
    CandidateFinding,
    SensitivityCell,
    agreement_with_mean,
    change,
    interval,
    means,
    of_count,
    places,
    sensitivity_table,
    share_percent,
    suppress_small_samples,
    without_p,
)
from judge.audits.perturbations import CONTROL
from judge.core.format import number, one_line
from judge.core.records import Column, Estimate, Score
from judge.metrics.text_features import measured
from judge.stats.agreement import repeats
from judge.stats.bootstrap import Bootstrap, Floats, Statistic, wilson_interval
from judge.stats.paired_differences import sign_flip
from judge.stats.pairwise import TIE, verdict
from judge.table import Table


def injection_damage(evidence: AuditData, attacks: Sequence[str], *, seed: int = 0) -> tuple[SensitivityCell, ...]:
    """Return a cell for every attack and criterion: `rate` is how often the score rose, `move` by how much on average.

    Attacks are compared with the control in their place (what any addition does), and the control with the unchanged
    output; see `sensitivity_table`. Holm's correction is over all of these and all criteria.
    """
    return sensitivity_table(evidence, dict.fromkeys(attacks, ""), rises=True, control=CONTROL, seed=seed)


FIRST = "text shown first wins"
LONGER, COPYING = "twice the words", "copying at equal length"
COPIED = "copied lead"
"""The neutral change for copying; the others are for length."""
_LOWERED_BY_PADDING = ("relevance", "coherence")
"""Criteria that repetition or empty phrases do lower: a fall is right, and only a rise is a bias."""
_REWARDED_BY_COPYING = "consistency"
"""The criterion that copying the source does raise, so that a rise is no bias."""
_ROUNDING = 1e-12
_COLLINEAR = 1e-6  # share of a driver's variance below which the other driver explains all of it

Text = tuple[str, str]


def position_bias(evidence: AuditData, seed: int) -> Iterator[CandidateFinding]:
    """Measure how often the verdict on two texts flips with their order, and how often the first text wins."""
    table = evidence.pairs
    for name, column in evidence.criteria(table) if table else ():
        flips = list[bool]()
        leads = defaultdict[str, list[float]](list)  # by item: how far the text shown first is above a tie
        rows = table.column_scores(column.name) if table else ()
        by_order = {(row.item, row.system, row.rival): row for row in rows}
        for (item, system, rival), row in by_order.items():
            reverse = by_order.get((item, rival, system))
            if system < rival and reverse is not None and (flipped := verdict(row, reverse).flipped) is not None:
                flips.append(flipped)
                leads[item].append((row.value + reverse.value) / 2 - TIE)
        flip_rate = wilson_interval(sum(flips), len(flips), "flip rate")
        if flip_rate is None:
            continue
        pairs = f"{of_count(flip_rate)} pairs"
        sentence = f"{name} flips its verdict with the order of the texts in {pairs}"
        yield CandidateFinding(
            "position", name, "verdict flips with the order", flip_rate, "share", sentence, counted="pairs"
        )
        values = np.array([fmean(item_leads) for item_leads in leads.values()])
        (lead,) = means(values[None], seed)
        if lead is None:
            continue
        low, high = (None if end is None else TIE + end for end in (lead.low, lead.high))
        wins = replace(lead, name="first wins", value=TIE + lead.value, low=low, high=high)
        which = "first" if lead.value > 0 else "second"
        sentence = f"{name} prefers the text shown {which}: the first one wins {share_percent(wins)}"
        otherwise = f"{name} has no significant position bias: the first text wins {share_percent(wins)}"
        hits = agreement_with_mean(values, 0.0)
        yield CandidateFinding(
            "position", name, FIRST, wins, "share", sentence,
            otherwise=otherwise, same_direction=hits, counted="items",
        )  # fmt: skip


def verbosity_bias(evidence: AuditData, neutral: Sequence[str], seed: int) -> Iterator[CandidateFinding]:
    """Measure the effect of added words without content, and of length among the texts of an item."""
    yield from _neutral_changes("verbosity", evidence, [name for name in neutral if name != COPIED], seed)
    for name, column, texts in _text_measures(evidence):
        ratings = _ratings(evidence.natural, name, column) if evidence.natural else {}
        rated = [
            (text.item, text.score, ratings[text.item, text.system], text.log_words)
            for text in texts
            if (text.item, text.system) in ratings
        ]
        within = _WithinItems.from_rows([(text.item, text.score, text.log_words) for text in texts])
        digits = places(column)
        if (slope := _beyond_ratings(rated, seed)) is not None:
            comparative = "higher" if slope.value > 0 else "lower"
            more = f"{number(abs(slope.value), digits)} {comparative}"
            sentence = f"{name} scores {more} per doubling of length, beyond human ratings"
            otherwise = f"{name}: no significant effect of length beyond human ratings: {change(slope, digits)}"
            yield CandidateFinding(
                "verbosity", name, LONGER, slope, "points per doubling", sentence, otherwise=otherwise
            )
        elif (slope := without_p(within.slope(seed) if within else None)) is not None:
            description = f"{name}: {change(slope, digits)} per doubling of length within items"
            description += "; not tested, because longer texts may be better"
            yield CandidateFinding("verbosity", name, LONGER, slope, "points per doubling", description)


def copying_bias(evidence: AuditData, neutral: Sequence[str], seed: int) -> Iterator[CandidateFinding]:
    """Measure the effect of the source's own first sentences, and of copying at equal length."""
    yield from _neutral_changes("extractiveness", evidence, [name for name in neutral if name == COPIED], seed)
    for name, _, texts in _text_measures(evidence):
        if _is_variant(name, _REWARDED_BY_COPYING):
            continue
        within = _WithinItems.from_rows(
            [(text.item, text.score, text.log_words, text.copied) for text in texts if text.copied is not None]
        )
        if (correlation := within.partial(seed) if within else None) is not None:
            comparative = "higher" if correlation.value > 0 else "lower"
            r = change(correlation, 2)
            sentence = f"{name} scores texts that copy more {comparative} at equal length: r = {r}"
            otherwise = f"{name}: no significant effect of copying at equal length: r = {r}"
            yield CandidateFinding("extractiveness", name, COPYING, correlation, "r", sentence, otherwise=otherwise)


def _neutral_changes(probe: str, evidence: AuditData, names: Sequence[str], seed: int) -> Iterator[CandidateFinding]:
    table = evidence.changed
    present = [name for name in names if name in table.systems]
    for criterion, column in evidence.columns.items() if present and ORIGINAL in table.systems else ():
        rows = evidence.changes(column, present)
        for name, row, estimate in zip(present, rows, means(rows, seed), strict=True):
            if estimate is None or (name == COPIED and _is_variant(criterion, _REWARDED_BY_COPYING)):
                continue
            digits, verb = places(column), "raises" if estimate.value > 0 else "lowers"
            sentence = f"“{name}” {verb} {criterion}: {change(estimate, digits)}"
            if name == COPIED:
                description = f"{sentence}; not tested, because the source's own sentences may be better"
                yield CandidateFinding(probe, criterion, name, without_p(estimate) or estimate, "points", description)
                continue
            better = (estimate.value > 0) != (column.better == "lower")
            harmful = better or not any(_is_variant(criterion, lowered) for lowered in _LOWERED_BY_PADDING)
            otherwise = f"{criterion}: no significant effect of “{name}”: {change(estimate, digits)}"
            hits = agreement_with_mean(row, evidence.least_change(column))
            yield CandidateFinding(
                probe,
                criterion,
                name,
                estimate,
                "points",
                sentence,
                otherwise=otherwise,
                same_direction=hits,
                harmful=harmful,
            )


def _is_variant(criterion: str, name: str) -> bool:
    """Return whether a criterion has that name or is a variant of it (`fluency_5` of `fluency`)."""
    return criterion == name or criterion.startswith(f"{name}_")


@dataclass(frozen=True, slots=True)
class _TextMeasure:
    """A text's score, the log2 of its number of words, and its share of bigrams copied from the source (0–1)."""

    item: str
    system: str
    score: float
    log_words: float
    copied: float | None


def _text_measures(evidence: AuditData) -> Iterator[tuple[str, Column, list[_TextMeasure]]]:
    """Yield each criterion with its column and the measures of all texts that have a score and words."""
    table = evidence.natural
    if table is None:
        return
    features = {
        sample.key: feature
        for sample, feature in zip(table.samples, measured(table.samples), strict=True)
        if feature.words
    }
    for name, column in evidence.criteria(table):
        texts = []
        for row in table.column_scores(column.name):
            if feature := features.get(row.key):
                copied = None if feature.novel2 is None else 1 - feature.novel2
                texts.append(_TextMeasure(row.item, row.system, row.value, log2(feature.words), copied))
        yield name, column, texts


@dataclass(frozen=True, slots=True)
class _WithinItems:
    """Σ v vᵀ over the texts of each item; v holds the score and its drivers, each minus its mean in the item."""

    sums: Floats
    texts: int

    @classmethod
    def from_rows(cls, rows: Sequence[tuple[str, *tuple[float, ...]]]) -> _WithinItems | None:
        """Group rows of an item and its numbers by item. Return None if no item has two texts."""
        items = defaultdict[str, list[tuple[float, ...]]](list)
        for item, *values in rows:
            items[item].append(tuple(values))
        matrices = [np.array(texts) for texts in items.values() if len(texts) > 1]
        if not matrices:
            return None
        centred = [texts - texts.mean(axis=0) for texts in matrices]
        return cls(np.array([texts.T @ texts for texts in centred]), sum(map(len, matrices)))

    def slope(self, seed: int) -> Estimate | None:
        """Return the least-squares slope of the score on one driver; p by flipping the signs of the items' products."""
        if not self.sums[:, 1, 1].sum() > _ROUNDING:
            return None

        def slope(sums: Floats) -> Floats:
            return _ratio(sums[..., 0, 1], sums[..., 1, 1], sums[..., 1, 1] > _ROUNDING)

        return self._estimate("slope", slope, "slope within items", self.sums[:, 0, 1], seed)

    def held(self, seed: int) -> Estimate | None:
        """Return the least-squares slope of the score on the second driver, controlling for the first."""
        if np.isnan(_controlled_slope(self.sums.sum(axis=0))):
            return None
        return self._estimate(
            "slope", _controlled_slope, "slope within items, the other driver held", self._residual_products(), seed
        )

    def partial(self, seed: int) -> Estimate | None:
        """Return the partial correlation (−1 to 1) of the score with the second driver, controlling for the first.

        p by flipping the signs of the items' products of residuals.
        """
        products = self._residual_products()
        return self._estimate("partial r", _partial_correlation, "partial r within items", products, seed)

    def _residual_products(self) -> Floats:
        """Return each item's product of score and second driver, both minus what the first driver explains."""
        variance = max(self.sums[:, 1, 1].sum(), _ROUNDING)
        score, driver = (self.sums[:, column, 1].sum() / variance for column in (0, 2))
        products: Floats = self.sums[:, 0, 2] - driver * self.sums[:, 0, 1] - score * self.sums[:, 1, 2]
        products += score * driver * self.sums[:, 1, 1]
        return products

    def _estimate(self, name: str, statistic: Statistic, method: str, products: Floats, seed: int) -> Estimate | None:
        """Estimate a statistic by bootstrap; None for fewer than FEWEST items, which a line fits too well."""
        bootstrap, n = Bootstrap(seed=seed), len(self.sums)
        if n < FEWEST:
            return None
        drawn = bootstrap.resampled(lambda counts: statistic(np.tensordot(counts, self.sums, 1)), n, n)
        estimate = bootstrap.estimate(name, drawn, self.texts, method)
        p, exact = sign_flip(products[None], seed=seed)
        if estimate is None or np.isnan(p[0]):
            return estimate
        flips = "exact" if exact[0] else f"10000 flips, seed {seed}"
        return replace(estimate, p=float(p[0]), method=f"{estimate.method}; p: sign-flip permutation test, {flips}")


def _ratio(above: Floats, below: Floats, defined: Any) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios: Floats = np.where(defined, above / below, np.nan)
    return ratios


def _residual_products(sums: Floats, row: int, column: int) -> Floats:
    """Return what the controlled driver, the second of the three, leaves of a sum of products."""
    residual: Floats = sums[..., row, column] - sums[..., row, 1] * sums[..., 1, column] / np.maximum(
        sums[..., 1, 1], _ROUNDING
    )
    return residual


def _controlled_slope(sums: Floats) -> Floats:
    """From score, controlled driver and driver: NaN if the driver does not vary independently."""
    variance = _residual_products(sums, 2, 2)
    return _ratio(_residual_products(sums, 0, 2), variance, variance > _COLLINEAR * sums[..., 2, 2])


def _partial_correlation(sums: Floats) -> Floats:
    """From score, controlled driver and driver: NaN if score or driver does not vary independently."""
    scale = _residual_products(sums, 0, 0) * _residual_products(sums, 2, 2)
    return _ratio(_residual_products(sums, 0, 2), np.sqrt(np.maximum(scale, 0.0)), scale > _ROUNDING)


def _beyond_ratings(rows: Sequence[tuple[str, float, float, float]], seed: int) -> Estimate | None:
    """Return a driver's effect on scores within items beyond human ratings; rows are item, score, rating and driver.

    Two estimates: one controls for the ratings, so that a judge's narrower use of the scale is no bias; one uses score
    minus rating, so that noise in the ratings is none. The one nearer to 0 is returned with the larger p, or with p = 1
    if their signs differ. None for too few items, and if only the ratings explain the driver.
    """
    within, residuals = (
        _WithinItems.from_rows(rows),
        _WithinItems.from_rows([(item, value - rating, driver) for item, value, rating, driver in rows]),
    )
    controlled, differenced = within.held(seed) if within else None, residuals.slope(seed) if residuals else None
    if controlled is None or differenced is None or controlled.p is None or differenced.p is None:
        return None
    nearer = min(controlled, differenced, key=lambda estimate: abs(estimate.value))
    p = max(controlled.p, differenced.p) if controlled.value * differenced.value > 0 else 1.0
    return replace(nearer, p=p, method=f"{nearer.method}; the larger p of with ratings held and less ratings")


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
"""First words of the model names of each vendor."""
_VENDORS = {word: vendor for vendor, words in _FAMILIES.items() for word in words}


def model_family(name: str) -> str:
    """Return a model's family, by the first word of the last part of its name: `openai` for `openrouter/gpt-4o`."""
    last = name.strip().lower().partition("@")[0].rstrip("/").rpartition("/")[2]
    word = re.match(r"[^\W\d_]+", last)
    first_word = word[0] if word else last
    return _VENDORS.get(first_word, first_word)


def self_preference(evidence: AuditData, seed: int) -> Iterator[CandidateFinding]:
    """Measure how much higher the judge scores texts of its own family than others of the item, beyond human ratings.

    If ratings are few, alike or not on the criterion's scale, they are ignored, and the finding says so.
    """
    table = evidence.natural
    if table is None:
        return
    family = model_family(evidence.model)
    generators = {s.key: s.extra.get("generator") for s in table.samples}
    is_own = {  # for every text with a known `generator`
        text: model_family(name) == family
        for text, name in generators.items()
        if isinstance(name, str) and name.strip()
    }
    for name, column in evidence.criteria(table):
        values = {row.key: row.value for row in table.column_scores(column.name)}
        ratings = _ratings(table, name, column)
        rated_items = _lead_by_item({text: value for text, value in values.items() if text in ratings}, is_own)
        rows = [
            (text[0], value, ratings[text], float(is_own[text]))
            for text, value in values.items()
            if text in ratings and text in is_own and text[0] in rated_items
        ]
        if (beyond := _beyond_ratings(rows, seed)) is not None:
            yield _family_preference(name, replace(beyond, n=len(rated_items)), None, places(column), beside="people")
            continue
        ahead = _lead_by_item(values, is_own)
        differences = np.array(list(ahead.values()))
        (estimate,) = means(differences[None], seed) if ahead else (None,)
        if estimate is not None:
            hits = agreement_with_mean(differences, evidence.least_change(column))
            yield _family_preference(name, estimate, hits, places(column), beside="few" if rated_items else "")


def _ratings(table: Table, name: str, column: Column) -> dict[Text, float]:
    """Return human ratings of the criterion; none if any is outside its scale."""
    rated = table.ratings(name)
    if column.low is None or column.high is None:
        return {}
    inside = all(column.low <= value <= column.high for value in rated.values())
    return rated if inside else {}


def _lead_by_item(values: Mapping[Text, float], is_own: Mapping[Text, bool]) -> dict[str, float]:
    """Return, for each item with both, the mean score of the own family's texts minus that of the others."""
    sides = defaultdict[str, tuple[list[float], list[float]]](lambda: ([], []))
    for (item, system), value in values.items():
        if (item, system) in is_own:
            sides[item][is_own[item, system]].append(value)
    return {
        item: fmean(own_scores) - fmean(others) for item, (others, own_scores) in sides.items() if own_scores and others
    }


def _family_preference(
    name: str, estimate: Estimate, hits: Estimate | None, digits: int, *, beside: str
) -> CandidateFinding:
    comparative = "higher" if estimate.value > 0 else "lower"
    reason = "too few ratings to adjust for" if beside else "no human ratings"
    than = "than people do" if beside == "people" else f"than others of the item ({reason})"
    sentence = f"{name} scores texts of its own family {comparative} {than}: {change(estimate, digits)}"
    beyond = "beyond human ratings" if beside == "people" else f"({reason})"
    otherwise = f"{name}: no significant preference for its own family {beyond}: {change(estimate, digits)}"
    aspect = "own family, beyond ratings" if beside == "people" else "own family"
    return CandidateFinding("self-preference", name, aspect, estimate, "points", sentence,
        otherwise=otherwise, same_direction=hits, counted="items",
    )  # fmt: skip


LABEL = "label "
"""Prefix of a label in the name of a finding about its share."""
_MOST_LABELS = 11  # a scale with more labels gets no share for each label
_TOLERANCE = 1e-9


def wording_sensitivity(evidence: AuditData, seed: int) -> Iterator[CandidateFinding]:
    """Measure how other wordings of the prompt change the mean score, a text's score and its label."""
    table = evidence.wordings
    if table is None:
        return
    for name, column in evidence.columns.items():
        by_wording = {
            c.name: {row.item: row for row in table.column_scores(c.name)}
            for c in table.columns
            if c.name == name or c.name.startswith(f"{name}~")
        }
        others = [wording for wording in by_wording if wording != name]
        if name not in by_wording or not others:
            continue
        items, digits, threshold = list(by_wording[name]), places(column), evidence.least_change(column)
        shifts = np.array(
            [
                [by_wording[o][i].value - by_wording[name][i].value if i in by_wording[o] else np.nan for i in items]
                for o in others
            ]
        )
        for wording, moves, shift in zip(others, shifts, means(shifts, seed), strict=True):
            if shift is not None:
                which, comparative = wording.removeprefix(f"{name}~"), "higher" if shift.value > 0 else "lower"
                moved = change(shift, digits)
                sentence = f"{name} scores {comparative} in wording {which} of its prompt: {moved}"
                otherwise = f"{name}: no significant effect of wording {which}: {moved}"
                hits = agreement_with_mean(moves, threshold)
                yield CandidateFinding(
                    "wording",
                    name,
                    f"wording {which}",
                    shift,
                    "points",
                    sentence,
                    otherwise=otherwise,
                    same_direction=hits,
                )
        complete = [
            [wording_scores[item] for wording_scores in by_wording.values()]
            for item in items
            if all(item in o for o in by_wording.values())
        ]
        spread = [stdev(score.value for score in scores) for scores in complete]
        if (sd := _root_mean_square(spread, seed)) is not None:
            beside = f" {interval(sd, digits)}".rstrip()
            words = f"{len(by_wording)} wordings"
            sentence = f"{name} varies by {number(sd.value, digits)}{beside} (sd) between {words} of its prompt"
            yield CandidateFinding("wording", name, "spread between wordings", sd, "sd", sentence)
        labels = [{s.provenance.argmax for s in scores} for scores in complete]
        labelled = [text_labels for text_labels in labels if None not in text_labels]
        changed = wilson_interval(sum(len(text_labels) > 1 for text_labels in labelled), len(labelled), "label changes")
        if changed is not None:
            sentence = f"{name} changes its label with the wording for {of_count(changed)} texts"
            yield CandidateFinding("wording", name, "label changes with the wording", changed, "share", sentence)


def _root_mean_square(values: Sequence[float], seed: int) -> Estimate | None:
    """Average standard deviations by their squares, as their plain mean is too low for few scores. No test."""
    (estimate,) = means(np.array([values]) ** 2, seed) if values else (None,)
    if (estimate := without_p(estimate)) is None:
        return None
    low, high = (None if end is None else sqrt(max(0.0, end)) for end in (estimate.low, estimate.high))
    method = f"root mean square over texts; {estimate.method}"
    return replace(estimate, name="rms", value=sqrt(estimate.value), low=low, high=high, method=method)


def scale_usage(evidence: AuditData, seed: int) -> Iterator[CandidateFinding]:
    """Measure which labels the originals get, how evenly, and how many scores are at the ends and in the middle."""
    for name, column in evidence.columns.items():
        rows = [row for row in evidence.changed.column_scores(column.name) if row.system == ORIGINAL]
        yield from _label_use(name, column, rows, seed)
        if rows and column.low is not None and column.high is not None:
            values = [row.value for row in rows]
            low, high = column.low or 0.0, column.high or 0.0
            ratings = [sample.human[name] for sample in evidence.originals if name in sample.human]
            rated = ratings if all(low <= rating <= high for rating in ratings) else []
            near = DETECTED * (high - low) + _TOLERANCE
            for place, at in (("bottom", low), ("middle", (low + high) / 2), ("top", high)):
                share = wilson_interval(sum(abs(value - at) <= near for value in values), len(values))
                people = wilson_interval(sum(abs(rating - at) <= near for rating in rated), len(rated))
                if share is not None:
                    beside = f" (human ratings: {share_percent(people)})" if people else ""
                    sentence = f"{name} scores {of_count(share)} texts at the {place} of its scale{beside}"
                    yield CandidateFinding("scale use", name, place, share, "share", sentence)


def _label_use(name: str, column: Column, rows: Sequence[Score], seed: int) -> Iterator[CandidateFinding]:
    labels = [row.provenance.argmax for row in rows if row.provenance.argmax in column.labels]
    if not labels or not 2 <= len(column.labels) <= _MOST_LABELS:
        return
    counts = Counter(labels)
    for label in column.labels:
        if (share := wilson_interval(counts[label], len(labels))) is not None:
            sentence = f"{name} gives {one_line(label)} to {of_count(share)} texts"
            yield CandidateFinding("scale use", name, f"{LABEL}{label}", share, "share", sentence)
    label, hits = counts.most_common(1)[0]
    if (most := wilson_interval(hits, len(labels))) is not None:
        sentence = f"{name} gives {of_count(most)} texts the same label, {one_line(str(label))}"
        yield CandidateFinding("scale use", name, "most used label", most, "share", sentence)
    indicators = np.array(
        [[given_label == label for label in column.labels] for given_label in labels], dtype=np.float64
    )

    def entropy(counts: Floats) -> Floats:
        shares = counts @ indicators / counts.sum(axis=1, keepdims=True)
        entropies: Floats = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1) / log(indicators.shape[1])
        return entropies + 0.0

    bootstrap, n = Bootstrap(seed=seed), len(indicators)
    evenness = suppress_small_samples(
        bootstrap.estimate("evenness", bootstrap.resampled(entropy, n, n), n, "entropy / log of the labels")
    )
    if evenness is not None:
        sentence = f"the labels of {name} have {share_percent(evenness)} of the maximum entropy"
        yield CandidateFinding("scale use", name, "entropy, share of maximum", evenness, "share", sentence)


def repeatability(evidence: AuditData, seed: int) -> Iterator[CandidateFinding]:
    """Measure how much repeated replies about one text differ, at each temperature."""
    for temperature, table in sorted(evidence.repeats.items()):
        at = f"at temperature {temperature:g}"
        # There is one text per item. Each becomes a system of its own, because spreads are computed by system.
        samples = tuple(replace(sample, system=sample.item) for sample in table.samples)
        scores = tuple(replace(score, system=score.item) for score in table.scores)
        spreads = repeats(Table(samples, table.columns, scores))
        for name, column in evidence.criteria(table):
            each = [spread.value for (_, of_column), spread in spreads.items() if of_column == column.name]
            if (sd := _root_mean_square(each, seed)) is not None:
                digits = places(column)
                beside = f" {interval(sd, digits)}".rstrip()
                sentence = f"{name}: repeated replies vary by {number(sd.value, digits)}{beside} (sd) {at}"
                yield CandidateFinding("repeats", name, f"spread {at}", sd, "sd", sentence)
            drawn = [
                row for row in table.column_scores(column.name) if row.provenance.n > 1 and row.provenance.distribution
            ]
            several = sum(sum(p > 0 for p in (row.provenance.distribution or {}).values()) > 1 for row in drawn)
            if (share := wilson_interval(several, len(drawn))) is not None:
                sentence = f"{name} gives more than one label to {of_count(share)} texts {at}"
                yield CandidateFinding("repeats", name, f"several labels {at}", share, "share", sentence)
