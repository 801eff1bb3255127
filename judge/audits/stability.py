"""How a judge uses the scale, and how far its scores hang on the prompt's words and on chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import log, sqrt
from statistics import stdev

import numpy as np

from judge.audits.card import DETECTED, ORIGINAL, AuditData, change, interval, of_count, places, share_percent
from judge.audits.sensitivity import (
    CandidateFinding,
    agreement_with_mean,
    criteria,
    means,
    minimum_effect,
    suppress_small_samples,
    varying,
    without_p,
)
from judge.core.format import number, one_line
from judge.core.records import Column, Estimate, Sample, Score
from judge.stats.agreement import repeats
from judge.stats.bootstrap import Bootstrap, Floats, wilson_interval
from judge.table import Table

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
