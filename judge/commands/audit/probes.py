"""The probes of `judge audit`: what changes a judge's scores besides the quality of a text.

Biases for position, length, copying and the judge's own model family; sensitivity to the wording of the prompt; use of
the scale; repeatability. `build_card.apply_holm` tests and words the findings of all.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import log2, sqrt
from statistics import fmean, stdev

import numpy as np

from judge.commands.audit.card import (
    DETECTED,
    FEWEST,
    ORIGINAL,
    AuditData,
    BiasFinding,
    agreement_with_mean,
    means,
    without_p,
)
from judge.core.records import Column, Estimate
from judge.metrics.text_features import measured
from judge.stats.agreement import repeats
from judge.stats.bootstrap import Bootstrap, Floats, wilson_interval
from judge.stats.paired_differences import sign_flip
from judge.stats.pairwise import TIE, verdict
from judge.table import Table

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
LABEL = "label "
"""Prefix of a label in the name of a finding about its share."""
_MOST_LABELS = 11  # a scale with more labels gets no share for each label
_TOLERANCE = 1e-9

Text = tuple[str, str]


def _share(
    probe: str, criterion: str, measure: str, hits: int, n: int, *, counted: str = "texts"
) -> Iterator[BiasFinding]:
    """Yield a share without a test; nothing if n is 0."""
    if (share := wilson_interval(hits, n)) is not None:
        yield BiasFinding(probe, criterion, measure, share, "share", counted=counted)


def position_bias(evidence: AuditData, seed: int) -> Iterator[BiasFinding]:
    """Measure how often the verdict on two texts flips with their order, and how often the first text wins."""
    table = evidence.pairs
    for name, column in evidence.criteria(table) if table else ():
        flips = list[bool]()
        leads = defaultdict[str, list[float]](
            list
        )  # by item: how far the text shown first is above a tie
        rows = table.column_scores(column.name) if table else ()
        by_order = {(row.item, row.system, row.rival): row for row in rows}
        for (item, system, rival), row in by_order.items():
            reverse = by_order.get((item, rival, system))
            if (
                system < rival
                and reverse is not None
                and (flipped := verdict(row, reverse).flipped) is not None
            ):
                flips.append(flipped)
                leads[item].append((row.value + reverse.value) / 2 - TIE)
        yield from _share(
            "position",
            name,
            "verdict flips with the order",
            sum(flips),
            len(flips),
            counted="pairs",
        )
        values = np.array([fmean(item_leads) for item_leads in leads.values()])
        (lead,) = means(values[None], seed) if leads else (None,)
        if lead is not None:
            low, high = (None if end is None else TIE + end for end in (lead.low, lead.high))
            wins = replace(lead, name="first wins", value=TIE + lead.value, low=low, high=high)
            hits = agreement_with_mean(values, 0.0)
            yield BiasFinding(
                "position", name, FIRST, wins, "share", same_direction=hits, counted="items"
            )


def verbosity_bias(evidence: AuditData, neutral: Sequence[str], seed: int) -> Iterator[BiasFinding]:
    """Measure the effect of added words without content, and of length among the texts of an item.

    Without human ratings the latter is not tested, because longer texts may be better.
    """
    yield from _neutral_changes(
        "verbosity", evidence, [name for name in neutral if name != COPIED], seed
    )
    for name, column, texts in _text_measures(evidence):
        ratings = _ratings(evidence.natural, name, column) if evidence.natural else {}
        rated = [
            (key[0], score, ratings[key], words) for key, score, words, _ in texts if key in ratings
        ]
        slope = _beyond_ratings(rated, seed) or without_p(
            _driver_effect([(key[0], score, words) for key, score, words, _ in texts], seed)
        )
        if slope is not None:
            yield BiasFinding("verbosity", name, LONGER, slope, "points per doubling")


def copying_bias(evidence: AuditData, neutral: Sequence[str], seed: int) -> Iterator[BiasFinding]:
    """Measure the effect of the source's own first sentences, and of copying at equal length."""
    yield from _neutral_changes(
        "extractiveness", evidence, [name for name in neutral if name == COPIED], seed
    )
    for name, _, texts in _text_measures(evidence):
        rows = [
            (key[0], score, words, copied)
            for key, score, words, copied in texts
            if copied is not None
        ]
        if not _is_variant(name, _REWARDED_BY_COPYING) and (
            r := _driver_effect(rows, seed, correlation=True)
        ):
            yield BiasFinding("extractiveness", name, COPYING, r, "r")


def _neutral_changes(
    probe: str, evidence: AuditData, names: Sequence[str], seed: int
) -> Iterator[BiasFinding]:
    """Yield the mean effect of each change; that of the source's own sentences, which may be better, without a test."""
    table = evidence.changed
    present = [name for name in names if name in table.systems]
    for criterion, column in (
        evidence.columns.items() if present and ORIGINAL in table.systems else ()
    ):
        rows = evidence.changes(column, present)
        for name, row, estimate in zip(present, rows, means(rows, seed), strict=True):
            if estimate is None or (
                name == COPIED and _is_variant(criterion, _REWARDED_BY_COPYING)
            ):
                continue
            tested = without_p(estimate) if name == COPIED else estimate
            better = (estimate.value > 0) != (column.better == "lower")
            harmful = better or not any(
                _is_variant(criterion, lowered) for lowered in _LOWERED_BY_PADDING
            )
            hits = (
                None if name == COPIED else agreement_with_mean(row, evidence.least_change(column))
            )
            yield BiasFinding(
                probe,
                criterion,
                name,
                tested or estimate,
                "points",
                same_direction=hits,
                harmful=harmful,
            )


def _is_variant(criterion: str, name: str) -> bool:
    """Return whether a criterion has that name or is a variant of it (`fluency_5` of `fluency`)."""
    return criterion == name or criterion.startswith(f"{name}_")


def _text_measures(
    evidence: AuditData,
) -> Iterator[tuple[str, Column, list[tuple[Text, float, float, float | None]]]]:
    """Yield each criterion with its column and all texts that have a score and words.

    A text is its key, its score, the log2 of its number of words and its share of bigrams copied from the source (0–1).
    """
    table = evidence.natural
    if table is None:
        return
    features = dict(
        zip((sample.key for sample in table.samples), measured(table.samples), strict=True)
    )
    for name, column in evidence.criteria(table):
        texts = []
        for row in table.column_scores(column.name):
            if (feature := features[row.key]).words:
                copied = None if feature.novel2 is None else 1 - feature.novel2
                texts.append((row.key, row.value, log2(feature.words), copied))
        yield name, column, texts


def _driver_effect(
    rows: Sequence[tuple[str, *tuple[float, ...]]], seed: int, *, correlation: bool = False
) -> Estimate | None:
    """Return the effect of a driver on the score within items: the least-squares slope, or the partial correlation.

    A row is an item, the score, another driver that is controlled for (if there is one) and the driver. p is from
    flipping the signs of the items' products of residuals. None for fewer than FEWEST items with two texts, which a
    line fits too well, and if the driver does not vary independently.
    """
    items = defaultdict[str, list[tuple[float, ...]]](list)
    for item, *values in rows:
        items[item].append(tuple(values))
    groups = [np.array(texts) for texts in items.values() if len(texts) > 1]
    if len(groups) < FEWEST:
        return None
    centred = [texts - texts.mean(axis=0) for texts in groups]
    sums = np.array([texts.T @ texts for texts in centred])  # of products, by item
    controlled = sums.shape[-1] > 2

    def residual(sums: Floats, row: int, column: int) -> Floats:
        """Return what the controlled driver leaves of a sum of products."""
        total: Floats = sums[..., row, column]
        if controlled:
            total = total - sums[..., row, 1] * sums[..., 1, column] / np.maximum(
                sums[..., 1, 1], _ROUNDING
            )
        return total

    def effect(sums: Floats) -> Floats:
        variance = residual(sums, -1, -1)
        scale = (
            np.sqrt(np.maximum(residual(sums, 0, 0) * variance, 0.0)) if correlation else variance
        )
        defined = (variance > _COLLINEAR * sums[..., -1, -1]) & (scale > _ROUNDING)
        with np.errstate(invalid="ignore", divide="ignore"):
            effects: Floats = np.where(defined, residual(sums, 0, -1) / scale, np.nan)
        return effects

    total, n = sums.sum(axis=0), len(sums)
    if np.isnan(effect(total)):
        return None
    bootstrap = Bootstrap(seed=seed)
    drawn = bootstrap.resampled(lambda counts: effect(np.tensordot(counts, sums, 1)), n, n)
    name = "partial r" if correlation else "slope"
    method = f"{name} within items{', the other driver held' if controlled else ''}"
    estimate = bootstrap.estimate(name, drawn, sum(map(len, groups)), method)
    weights = np.eye(len(total))[
        [0, -1]
    ]  # of score and driver, less what the controlled driver explains
    if controlled:
        weights[:, 1] = -total[[0, -1], 1] / max(total[1, 1], _ROUNDING)
    p, exact = sign_flip(np.einsum("a,iab,b->i", weights[0], sums, weights[1])[None], seed=seed)
    flips = "exact" if exact[0] else f"10000 flips, seed {seed}"
    test = f"sign-flip permutation test, {flips}"
    return estimate and replace(estimate, p=float(p[0]), test=test)


def _beyond_ratings(rows: Sequence[tuple[str, float, float, float]], seed: int) -> Estimate | None:
    """Return a driver's effect on scores within items beyond human ratings; rows are item, score, rating and driver.

    Two estimates: one controls for the ratings, so that a judge's narrower use of the scale is no bias; one uses score
    minus rating, so that noise in the ratings is none. The one nearer to 0 is returned with the larger p, or with p = 1
    if their signs differ. None for too few items, and if only the ratings explain the driver.
    """
    controlled = _driver_effect(rows, seed)
    differenced = _driver_effect(
        [(item, value - rating, driver) for item, value, rating, driver in rows], seed
    )
    if controlled is None or differenced is None or controlled.p is None or differenced.p is None:
        return None
    nearer = min(controlled, differenced, key=lambda estimate: abs(estimate.value))
    p = max(controlled.p, differenced.p) if controlled.value * differenced.value > 0 else 1.0
    return replace(
        nearer, p=p, test=f"{nearer.test}; the larger p of with ratings held and less ratings"
    )


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


def self_preference(evidence: AuditData, seed: int) -> Iterator[BiasFinding]:
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
        rated_items = _lead_by_item(
            {text: value for text, value in values.items() if text in ratings}, is_own
        )
        rows = [
            (text[0], value, ratings[text], float(is_own[text]))
            for text, value in values.items()
            if text in ratings and text in is_own and text[0] in rated_items
        ]
        measure, hits = "own family, beyond ratings", None
        if (estimate := _beyond_ratings(rows, seed)) is not None:
            estimate = replace(estimate, n=len(rated_items))
        elif ahead := _lead_by_item(values, is_own):
            measure, leads = "own family, not adjusted for ratings", np.array(list(ahead.values()))
            (estimate,) = means(leads[None], seed)
            hits = agreement_with_mean(leads, evidence.least_change(column))
        if estimate is not None:
            yield BiasFinding(
                "self-preference",
                name,
                measure,
                estimate,
                "points",
                same_direction=hits,
                counted="items",
            )


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
        item: fmean(own_scores) - fmean(others)
        for item, (others, own_scores) in sides.items()
        if own_scores and others
    }


def wording_sensitivity(evidence: AuditData, seed: int) -> Iterator[BiasFinding]:
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
        items = list(by_wording[name])
        shifts = np.array(
            [
                [
                    by_wording[o][i].value - by_wording[name][i].value
                    if i in by_wording[o]
                    else np.nan
                    for i in items
                ]
                for o in others
            ]
        )
        for wording, moves, shift in zip(others, shifts, means(shifts, seed), strict=True):
            if shift is not None:
                hits = agreement_with_mean(moves, evidence.least_change(column))
                measure = f"wording {wording.removeprefix(f'{name}~')}"
                yield BiasFinding("wording", name, measure, shift, "points", same_direction=hits)
        complete = [
            [wording_scores[item] for wording_scores in by_wording.values()]
            for item in items
            if all(item in o for o in by_wording.values())
        ]
        spread = [stdev(score.value for score in scores) for scores in complete]
        yield from _spread("wording", name, "spread between wordings", spread, seed)
        labels = [{s.provenance.argmax for s in scores} for scores in complete]
        known = [text_labels for text_labels in labels if None not in text_labels]
        changed = sum(len(text_labels) > 1 for text_labels in known)
        yield from _share("wording", name, "label changes with the wording", changed, len(known))


def _spread(
    probe: str, criterion: str, measure: str, values: Sequence[float], seed: int
) -> Iterator[BiasFinding]:
    """Yield the root mean square of standard deviations: their plain mean is too low for few scores. No test."""
    (mean,) = means(np.array([values]) ** 2, seed) if values else (None,)
    if (mean := without_p(mean)) is not None:
        low, high = (None if end is None else sqrt(max(0.0, end)) for end in (mean.low, mean.high))
        method = f"root mean square over texts; {mean.method}"
        sd = replace(mean, name="rms", value=sqrt(mean.value), low=low, high=high, method=method)
        yield BiasFinding(probe, criterion, measure, sd, "sd")


def scale_usage(evidence: AuditData) -> Iterator[BiasFinding]:
    """Measure which labels the originals get, and how many scores are at the ends and in the middle."""
    for name, column in evidence.columns.items():
        rows = [
            row for row in evidence.changed.column_scores(column.name) if row.system == ORIGINAL
        ]
        given = [row.provenance.argmax for row in rows if row.provenance.argmax in column.labels]
        if given and 2 <= len(column.labels) <= _MOST_LABELS:
            counts = Counter(given)
            for label in column.labels:
                yield from _share("scale use", name, f"{LABEL}{label}", counts[label], len(given))
            yield from _share(
                "scale use", name, "most used label", max(counts.values()), len(given)
            )
        if column.low is not None and column.high is not None:
            near = DETECTED * (column.high - column.low) + _TOLERANCE
            places = (
                ("bottom", column.low),
                ("middle", (column.low + column.high) / 2),
                ("top", column.high),
            )
            for place, at in places:
                yield from _share(
                    "scale use",
                    name,
                    place,
                    sum(abs(row.value - at) <= near for row in rows),
                    len(rows),
                )


def repeatability(evidence: AuditData, seed: int) -> Iterator[BiasFinding]:
    """Measure how much repeated replies about one text differ, at each temperature."""
    for temperature, table in sorted(evidence.repeats.items()):
        at = f"at temperature {temperature:g}"
        # There is one text per item. Each becomes a system of its own, because spreads are computed by system.
        samples = tuple(replace(sample, system=sample.item) for sample in table.samples)
        scores = tuple(replace(score, system=score.item) for score in table.scores)
        spreads = repeats(Table(samples, table.columns, scores))
        for name, column in evidence.criteria(table):
            each = [
                spread.value
                for (_, of_column), spread in spreads.items()
                if of_column == column.name
            ]
            yield from _spread("repeats", name, f"spread {at}", each, seed)
