"""The probes of a judge card: what changes a judge's scores besides the quality of a text.

Biases for position, length, copying and the judge's own model family; sensitivity to the wording of
the prompt and of the criterion, and to the order of sentences; use of the scale; repeatability.
`build_card.apply_holm` tests and words the findings of all.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2, sqrt
from statistics import fmean, stdev

import numpy as np

from judge.commands.card.card import (
    DETECTED,
    FEWEST,
    ORIGINAL,
    BiasFinding,
    CardEvidence,
)
from judge.commands.card.effects import agreement_with_mean, means, without_p
from judge.commands.card.perturbations import SHUFFLED
from judge.core.records import Column, Estimate, Score
from judge.metrics.text_features import measured
from judge.stats.agreement import repeats
from judge.stats.bootstrap import Bootstrap, Floats, wilson_interval
from judge.stats.compared_pairs import TIE, tie_label, verdict
from judge.stats.paired_differences import sign_flip
from judge.table import Table

FIRST, FLIPS = "text shown first wins", "verdict flips with the order"
UNADJUSTED = "own family, not adjusted for ratings"
LONGER, COPYING = "twice the words", "copying at equal length"
COPIED = "copied lead"
"""The neutral change for copying; the others are for length."""
_LOWERED_BY_PADDING = ("relevance", "coherence")
"""Criteria that repetition or empty phrases do lower: a fall is right, and only a rise is a
bias.
"""
_REWARDED_BY_COPYING = "consistency"
"""The criterion that copying the source does raise, so that a rise is no bias."""
_ROUNDING = 1e-12  # a smaller variance is 0 but for rounding
# The share of a driver's variance below which the other driver explains all of it.
_COLLINEAR = 1e-6
QUESTION_WORDING = "wording of the criterion"
SENTENCE_ORDER = "sentence order"
"""Names of probes."""
IDENTICAL_SCORES = "same score each time"
"""Measure of repeats: the share of texts whose repeated scores are all equal."""
LABEL = "label "
"""Prefix of a label in the name of a finding about its share."""
_MOST_LABELS = 11  # a scale with more labels gets no share for each label
_TOLERANCE = 1e-9

Text = tuple[str, str]


def _share(
    probe: str,
    criterion: str,
    measure: str,
    hits: int,
    total: int,
    *,
    counted: str = "texts",
) -> Iterator[BiasFinding]:
    """Yield a share without a test; nothing if n is 0."""
    share = wilson_interval(hits, total)
    if share is not None:
        yield BiasFinding(
            probe=probe,
            criterion=criterion,
            measure=measure,
            estimate=share,
            unit="share",
            counted=counted,
        )


def position_bias(evidence: CardEvidence, seed: int) -> Iterator[BiasFinding]:
    """Measure how often the order of the texts flips a verdict, and how often the first wins."""
    table = evidence.pairs
    if table is None:
        return
    for criterion_name, column in evidence.criteria(table):
        flips: list[bool] = []
        # For each item, how far the text that is shown first is above a tie.
        leads = defaultdict[str, list[float]](list)
        rows = table.column_scores(column.name)
        by_order = {(row.item, row.system, row.opponent): row for row in rows}
        for (item, system, opponent), row in by_order.items():
            reverse = by_order.get((item, opponent, system))
            # The two orders of a pair count once.
            if system >= opponent or reverse is None:
                continue
            flipped = verdict(row, reverse, tie_label(column)).flipped
            if flipped is not None:
                flips.append(flipped)
                mean_of_orders = (row.value + reverse.value) / 2
                leads[item].append(mean_of_orders - TIE)
        yield from _share(
            "position",
            criterion_name,
            FLIPS,
            sum(flips),
            len(flips),
            counted="pairs",
        )
        yield from _first_wins(criterion_name, leads, seed)


def _first_wins(
    criterion: str,
    leads: Mapping[str, Sequence[float]],
    seed: int,
) -> Iterator[BiasFinding]:
    """Yield the share of items that the text shown first wins."""
    if not leads:
        return
    # One value per item, because the pairs of an item are not independent.
    values = np.array([fmean(item_leads) for item_leads in leads.values()])
    (lead,) = means(values[None], seed)
    if lead is None:
        return
    lower_bound = None if lead.low is None else TIE + lead.low
    upper_bound = None if lead.high is None else TIE + lead.high
    wins = replace(
        lead,
        name="first wins",
        value=TIE + lead.value,
        low=lower_bound,
        high=upper_bound,
    )
    agreeing = agreement_with_mean(values, 0.0)
    yield BiasFinding(
        probe="position",
        criterion=criterion,
        measure=FIRST,
        estimate=wins,
        unit="share",
        same_direction=agreeing,
        counted="items",
    )


def verbosity_bias(
    evidence: CardEvidence,
    neutral: Sequence[str],
    seed: int,
) -> Iterator[BiasFinding]:
    """Measure the effect of added words without content, and of length among the texts of an item.

    Without human ratings the latter is not tested, because longer texts may be better.
    """
    padded = [name for name in neutral if name != COPIED]
    yield from _neutral_changes("verbosity", evidence, padded, seed)
    for name, column, texts in _text_measures(evidence):
        ratings: dict[Text, float] = {}
        if evidence.natural:
            ratings = _ratings(evidence.natural, name, column)
        rated = []
        for text in texts:
            rating = ratings.get(text.key)
            if rating is not None:
                rated.append((text.item, text.score, rating, text.log_words))
        slope = _beyond_ratings(rated, seed)
        if slope is None:
            lengths = [(text.item, text.score, text.log_words) for text in texts]
            slope = without_p(_driver_effect(lengths, seed))
        if slope is not None:
            yield BiasFinding(
                probe="verbosity",
                criterion=name,
                measure=LONGER,
                estimate=slope,
                unit="points per doubling",
            )


def copying_bias(
    evidence: CardEvidence,
    neutral: Sequence[str],
    seed: int,
) -> Iterator[BiasFinding]:
    """Measure the effect of the source's own first sentences, and of copying at equal length."""
    copied = [name for name in neutral if name == COPIED]
    yield from _neutral_changes("extractiveness", evidence, copied, seed)
    for name, _, texts in _text_measures(evidence):
        if _is_variant(name, _REWARDED_BY_COPYING):
            continue
        rows = [
            (text.item, text.score, text.log_words, text.copied)
            for text in texts
            if text.copied is not None
        ]
        effect = _driver_effect(rows, seed, correlation=True)
        if effect is not None:
            yield BiasFinding(
                probe="extractiveness",
                criterion=name,
                measure=COPYING,
                estimate=effect,
                unit="r",
            )


def _neutral_changes(
    probe: str,
    evidence: CardEvidence,
    names: Sequence[str],
    seed: int,
) -> Iterator[BiasFinding]:
    """Yield the mean effect of each change.

    That of the source's own sentences has no test, because they may be better.
    """
    table = evidence.changed
    present = [name for name in names if name in table.systems]
    if not present or ORIGINAL not in table.systems:
        return
    for criterion, column in evidence.columns.items():
        rows = evidence.changes(column, present)
        lowered_by_padding = any(
            _is_variant(criterion, name) for name in _LOWERED_BY_PADDING
        )
        estimates = means(rows, seed)
        for name, row, estimate in zip(present, rows, estimates, strict=True):
            if estimate is None:
                continue
            if name == COPIED and _is_variant(criterion, _REWARDED_BY_COPYING):
                continue
            is_rise = estimate.value > 0
            better = is_rise != (column.better == "lower")
            agreeing = None
            if name == COPIED:
                estimate = without_p(estimate) or estimate
            else:
                agreeing = agreement_with_mean(row, evidence.least_change(column))
            yield BiasFinding(
                probe=probe,
                criterion=criterion,
                measure=name,
                estimate=estimate,
                unit="points",
                same_direction=agreeing,
                harmful=better or not lowered_by_padding,
            )


def _is_variant(criterion: str, criterion_name: str) -> bool:
    """Return whether a criterion has that name or is a variant of it (`fluency_5` of `fluency`)."""
    return criterion == criterion_name or criterion.startswith(f"{criterion_name}_")


@dataclass(frozen=True, slots=True)
class _TextMeasures:
    """Measures of a scored text.

    They are the log2 of its number of words, and the share (0–1) of its bigrams that are copied
    from the source.
    """

    key: Text
    score: float
    log_words: float
    copied: float | None

    @property
    def item(self) -> str:
        return self.key[0]


def _text_measures(
    evidence: CardEvidence,
) -> Iterator[tuple[str, Column, list[_TextMeasures]]]:
    """Yield each criterion with its column and all texts that have a score and words."""
    table = evidence.natural
    if table is None:
        return
    keys = [sample.key for sample in table.samples]
    all_features = measured(table.samples)
    features_by_text = dict(zip(keys, all_features, strict=True))
    for criterion_name, column in evidence.criteria(table):
        texts = []
        for row in table.column_scores(column.name):
            features = features_by_text[row.key]
            if features.words:
                # The effect of length is per doubling.
                log_words = log2(features.words)
                copied = None if features.novel2 is None else 1 - features.novel2
                texts.append(_TextMeasures(row.key, row.value, log_words, copied))
        yield criterion_name, column, texts


def _driver_effect(
    rows: Sequence[tuple[str, *tuple[float, ...]]],
    seed: int,
    *,
    correlation: bool = False,
) -> Estimate | None:
    """Return the effect of a driver on the score within items.

    It is the least-squares slope, or the partial correlation. A row is an item, the score, another
    driver that is controlled for (if there is one) and the driver. p is from flipping the signs of
    the items' products of residuals. None for fewer than FEWEST items with two texts, which a line
    fits too well, and if the driver does not vary independently.
    """
    rows_by_item = defaultdict[str, list[tuple[float, ...]]](list)
    for item, *values in rows:
        rows_by_item[item].append(tuple(values))
    # An array per item with several texts: texts × variables.
    variables_by_item = [
        np.array(texts) for texts in rows_by_item.values() if len(texts) > 1
    ]
    if len(variables_by_item) < FEWEST:
        return None
    centred = [texts - texts.mean(axis=0) for texts in variables_by_item]
    # Items × variables × variables.
    products_by_item = np.array([texts.T @ texts for texts in centred])
    products = _Products(products_by_item, correlation)
    total = products_by_item.sum(axis=0)
    # The driver, or for a correlation the score, does not vary apart from the other driver.
    if np.isnan(products.effect(total)):
        return None

    def effect_of_draws(counts: Floats) -> Floats:
        return products.effect(np.tensordot(counts, products_by_item, 1))

    items = len(products_by_item)
    bootstrap = Bootstrap(seed=seed)
    drawn = bootstrap.resampled(effect_of_draws, items, items)
    effect_name = "partial r" if correlation else "slope"
    held = ", controlled for the other driver" if products.controlled else ""
    texts_used = sum(len(texts) for texts in variables_by_item)
    estimate = bootstrap.estimate(
        effect_name,
        drawn,
        texts_used,
        f"{effect_name} within items{held}",
    )
    if estimate is None:
        return None
    product_by_item = products.residual_products(total)
    flips = sign_flip(product_by_item[None], seed=seed)
    number = "exact"
    if not flips.exact[0]:
        number = f"{flips.n_flips[0]} flips, seed {seed}"
    test = f"sign-flip permutation test, {number}"
    return replace(estimate, p=float(flips.p[0]), test=test)


@dataclass(frozen=True, slots=True)
class _Products:
    """Sums of products of the score and its drivers by item: items × variables × variables.

    The first variable is the score and the last one is the driver. If there are three, the one
    between is the driver that is controlled for.
    """

    by_item: Floats
    correlation: bool

    @property
    def controlled(self) -> bool:
        n_variables: int = self.by_item.shape[-1]
        return n_variables > 2

    def residual(self, sums: Floats, row: int, column: int) -> Floats:
        """Return what the controlled driver leaves of a sum of products."""
        products: Floats = sums[..., row, column]
        if not self.controlled:
            return products
        variance_of_controlled = np.maximum(sums[..., 1, 1], _ROUNDING)
        shared: Floats = sums[..., row, 1] * sums[..., 1, column]
        return products - shared / variance_of_controlled

    def effect(self, sums: Floats) -> Floats:
        """Return the slope or correlation of each sum; NaN if the driver alone does not vary."""
        variance_of_driver = self.residual(sums, -1, -1)
        covariance = self.residual(sums, 0, -1)
        scale = variance_of_driver
        if self.correlation:
            product_of_variances = self.residual(sums, 0, 0) * variance_of_driver
            scale = np.sqrt(np.maximum(product_of_variances, 0.0))
        varies = variance_of_driver > _COLLINEAR * sums[..., -1, -1]
        is_defined = varies & (scale > _ROUNDING)
        with np.errstate(invalid="ignore", divide="ignore"):
            effects: Floats = np.where(is_defined, covariance / scale, np.nan)
        return effects

    def residual_products(self, total: Floats) -> Floats:
        """Return each item's product of the residuals of score and driver."""
        # The weights of the variables in the residuals of the score (row 0) and the driver (row 1).
        weights = np.eye(len(total))[[0, -1]]
        if self.controlled:
            variance_of_controlled = max(total[1, 1], _ROUNDING)
            weights[:, 1] = -total[[0, -1], 1] / variance_of_controlled
        products: Floats = np.einsum("a,iab,b->i", weights[0], self.by_item, weights[1])
        return products


def _beyond_ratings(
    rows: Sequence[tuple[str, float, float, float]], seed: int
) -> Estimate | None:
    """Return a driver's effect on scores within items beyond human ratings.

    A row is an item, the score, the rating and the driver. There are two estimates: one controls
    for the ratings, so that a judge's narrower use of the scale is no bias; one uses score minus
    rating, so that noise in the ratings is none. The one nearer to 0 is returned with the larger p,
    or with p = 1 if their signs differ. None for too few items, and if only the ratings explain the
    driver.
    """
    controlled = _driver_effect(rows, seed)
    differences = [
        (item, score - rating, driver) for item, score, rating, driver in rows
    ]
    differenced = _driver_effect(differences, seed)
    if controlled is None or differenced is None:
        return None
    if controlled.p is None or differenced.p is None:
        return None
    nearer = min(controlled, differenced, key=lambda estimate: abs(estimate.value))
    same_sign = controlled.value * differenced.value > 0
    p_value = max(controlled.p, differenced.p) if same_sign else 1.0
    test = f"{nearer.test}; the larger p of two: controlled for ratings, and of score minus rating"
    return replace(nearer, p=p_value, test=test)


_FAMILIES = {
    "openai": ("gpt", "chatgpt", "o"),  # `o` of `o3-mini`
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


def model_family(model_name: str) -> str:
    """Return a model's family, by the first word of the last part of its name.

    It is `openai` for `openrouter/gpt-4o`.
    """
    without_version, _, _ = model_name.strip().lower().partition("@")
    _, _, last_part = without_version.rstrip("/").rpartition("/")
    word = re.match(r"[^\W\d_]+", last_part)  # `gpt` of `gpt-4o`
    first_word = word[0] if word else last_part
    return _VENDORS.get(first_word, first_word)


def self_preference(evidence: CardEvidence, seed: int) -> Iterator[BiasFinding]:
    """Measure how much higher the judge scores its own family's texts than others of the item.

    Human ratings are controlled for. If they are few, alike or not on the criterion's scale, they
    are ignored, and the finding says so.
    """
    table = evidence.natural
    if table is None:
        return
    family = model_family(evidence.model)
    is_own: dict[Text, bool] = {}  # for every text with a known `generator`
    for sample in table.samples:
        generator = sample.extra.get("generator")
        if isinstance(generator, str) and generator.strip():
            is_own[sample.key] = model_family(generator) == family
    for criterion_name, column in evidence.criteria(table):
        values = {row.key: row.value for row in table.column_scores(column.name)}
        ratings = _ratings(table, criterion_name, column)
        rated_values = {
            text: value for text, value in values.items() if text in ratings
        }
        rated_items = _lead_by_item(rated_values, is_own)
        rows = []
        for text, value in rated_values.items():
            item, _ = text
            if text in is_own and item in rated_items:
                own_family = float(is_own[text])
                rows.append((item, value, ratings[text], own_family))
        measure = "own family, beyond ratings"
        agreeing = None
        estimate = _beyond_ratings(rows, seed)
        lead_by_item = _lead_by_item(values, is_own)
        if estimate is not None:
            estimate = replace(estimate, n=len(rated_items))
        elif lead_by_item:
            measure = UNADJUSTED
            leads = np.array(list(lead_by_item.values()))
            (estimate,) = means(leads[None], seed)
            agreeing = agreement_with_mean(leads, evidence.least_change(column))
        if estimate is not None:
            yield BiasFinding(
                probe="self-preference",
                criterion=criterion_name,
                measure=measure,
                estimate=estimate,
                unit="points",
                same_direction=agreeing,
                counted="items",
            )


def _ratings(table: Table, criterion_name: str, column: Column) -> dict[Text, float]:
    """Return human ratings of the criterion; none if any is outside its scale."""
    rated = table.ratings(criterion_name)
    if column.low is None or column.high is None:
        return {}
    for rating in rated.values():
        if not column.low <= rating <= column.high:
            return {}
    return rated


def _lead_by_item(
    values: Mapping[Text, float], is_own: Mapping[Text, bool]
) -> dict[str, float]:
    """Return the mean score of the own family's texts minus that of the others, by item.

    Items with texts of one side only are left out.
    """
    own_by_item = defaultdict[str, list[float]](list)
    others_by_item = defaultdict[str, list[float]](list)
    for text, value in values.items():
        if text in is_own:
            item, _ = text
            side = own_by_item if is_own[text] else others_by_item
            side[item].append(value)
    leads: dict[str, float] = {}
    for item, own_scores in own_by_item.items():
        if item in others_by_item:
            leads[item] = fmean(own_scores) - fmean(others_by_item[item])
    return leads


def wording_sensitivity(evidence: CardEvidence, seed: int) -> Iterator[BiasFinding]:
    """Measure how rewording the prompt changes the mean score, a text's score and its label."""
    yield from _effects_of_words(
        "wording", evidence, evidence.wordings, "wording", seed
    )


def question_sensitivity(evidence: CardEvidence, seed: int) -> Iterator[BiasFinding]:
    """Measure the same for other wordings of the criterion's own question."""
    yield from _effects_of_words(
        QUESTION_WORDING, evidence, evidence.questions, "question", seed
    )


def _effects_of_words(
    probe: str,
    evidence: CardEvidence,
    table: Table | None,
    noun: str,
    seed: int,
) -> Iterator[BiasFinding]:
    """Yield the effects of the columns `NAME~WORDING` of a table, compared with its column `NAME`.

    `noun` is what differs between them, in the names of the measures.
    """
    if table is None:
        return
    for criterion_name, column in evidence.columns.items():
        scores_by_wording = _scores_by_wording(table, criterion_name)
        originals = scores_by_wording.pop(criterion_name, {})
        if not originals or not scores_by_wording:
            continue
        shifts = _wording_shifts(originals, scores_by_wording)
        mean_shifts = means(shifts, seed)
        wordings = zip(scores_by_wording, shifts, mean_shifts, strict=True)
        for wording, moves, mean in wordings:
            if mean is not None:
                agreeing = agreement_with_mean(moves, evidence.least_change(column))
                wording_name = wording.removeprefix(f"{criterion_name}~")
                measure = f"{noun} {wording_name}"
                yield BiasFinding(
                    probe=probe,
                    criterion=criterion_name,
                    measure=measure,
                    estimate=mean,
                    unit="points",
                    same_direction=agreeing,
                )
        spreads = []
        label_sets = []
        for item, original in originals.items():
            reworded = [scores.get(item) for scores in scores_by_wording.values()]
            all_scores = [original, *reworded]
            known_scores = [score for score in all_scores if score is not None]
            if len(known_scores) < len(all_scores):
                continue  # a wording has no score of this text
            spreads.append(stdev(score.value for score in known_scores))
            labels = {score.provenance.argmax for score in known_scores}
            if None not in labels:
                label_sets.append(labels)
        measure = f"spread between {noun}s"
        yield from _spread(probe, criterion_name, measure, spreads, seed)
        n_changed = sum(len(labels) > 1 for labels in label_sets)
        measure = f"label changes with the {noun}"
        yield from _share(probe, criterion_name, measure, n_changed, len(label_sets))


def sentence_order(evidence: CardEvidence, seed: int) -> Iterator[BiasFinding]:
    """Measure how shuffled sentences move the scores.

    Only for criteria whose scores must not depend on the order of sentences.
    """
    systems = evidence.changed.systems
    if SHUFFLED not in systems or ORIGINAL not in systems:
        return
    for criterion_name, column in evidence.columns.items():
        if criterion_name not in evidence.order_free:
            continue
        (row,) = evidence.changes(column, [SHUFFLED])
        (estimate,) = means(row[None], seed)
        if estimate is not None:
            agreeing = agreement_with_mean(row, evidence.least_change(column))
            yield BiasFinding(
                probe=SENTENCE_ORDER,
                criterion=criterion_name,
                measure=SHUFFLED,
                estimate=estimate,
                unit="points",
                same_direction=agreeing,
            )


def _scores_by_wording(table: Table, criterion: str) -> dict[str, dict[str, Score]]:
    """Return the scores of a criterion and of its other wordings, `NAME~WORDING`, by item."""
    scores_by_wording = {}
    for column in table.columns:
        if column.name == criterion or column.name.startswith(f"{criterion}~"):
            scores = table.column_scores(column.name)
            scores_by_wording[column.name] = {score.item: score for score in scores}
    return scores_by_wording


def _wording_shifts(
    originals: Mapping[str, Score], scores_by_wording: Mapping[str, Mapping[str, Score]]
) -> Floats:
    """Return how far each other wording (rows) moves the score of each item (columns)."""
    shifts = np.full((len(scores_by_wording), len(originals)), np.nan)
    for row, reworded in enumerate(scores_by_wording.values()):
        for position, (item, original) in enumerate(originals.items()):
            if item in reworded:
                shifts[row, position] = reworded[item].value - original.value
    return shifts


def _spread(
    probe: str,
    criterion: str,
    measure: str,
    values: Sequence[float],
    seed: int,
    *,
    counted: str = "texts",
) -> Iterator[BiasFinding]:
    """Yield the root mean square of standard deviations, without a test.

    Their plain mean would be too low for few scores.
    """
    if not values:
        return
    squares = np.array(values) ** 2
    (mean_square,) = means(squares[None], seed)
    mean = without_p(mean_square)
    if mean is None:
        return
    lower_bound = None if mean.low is None else sqrt(max(0.0, mean.low))
    upper_bound = None if mean.high is None else sqrt(max(0.0, mean.high))
    method = f"root mean square over texts; {mean.method}"
    sd = replace(
        mean,
        name="rms",
        value=sqrt(mean.value),
        low=lower_bound,
        high=upper_bound,
        method=method,
    )
    yield BiasFinding(
        probe=probe,
        criterion=criterion,
        measure=measure,
        estimate=sd,
        unit="sd",
        counted=counted,
    )


def scale_usage(evidence: CardEvidence) -> Iterator[BiasFinding]:
    """Measure the originals' labels, and the shares of scores at the ends and in the middle."""
    probe = "scale use"
    for criterion_name, column in evidence.columns.items():
        scores = evidence.changed.column_scores(column.name)
        rows = [row for row in scores if row.system == ORIGINAL]
        likeliest_labels = [row.provenance.argmax for row in rows]
        labels = [label for label in likeliest_labels if label in column.labels]
        if labels and 2 <= len(column.labels) <= _MOST_LABELS:
            count_by_label = Counter(labels)
            counts = {
                f"{LABEL}{label}": count_by_label[label] for label in column.labels
            }
            counts["most used label"] = max(count_by_label.values())
            for measure, count in counts.items():
                yield from _share(probe, criterion_name, measure, count, len(labels))
        if column.low is None or column.high is None:
            continue
        width = column.high - column.low
        distance = DETECTED * width + _TOLERANCE
        points = {
            "bottom": column.low,
            "middle": (column.low + column.high) / 2,
            "top": column.high,
        }
        for measure, point in points.items():
            n_near = sum(abs(row.value - point) <= distance for row in rows)
            yield from _share(probe, criterion_name, measure, n_near, len(rows))


def repeatability(evidence: CardEvidence, seed: int) -> Iterator[BiasFinding]:
    """Measure how much repeated replies about one text differ, at each temperature.

    The unit is the item: its spread is the root mean square of those of its texts.
    """
    for temperature, table in sorted(evidence.repeats.items()):
        spread_by_text = _spread_by_text(table)
        for criterion_name, column in evidence.criteria(table):
            squares_by_item = defaultdict[str, list[float]](list)
            n_identical = 0
            for (text, column_name), spread in spread_by_text.items():
                if column_name == column.name:
                    item, _ = text
                    squares_by_item[item].append(spread**2)
                    if spread <= _TOLERANCE:
                        n_identical += 1
            spreads = [sqrt(fmean(squares)) for squares in squares_by_item.values()]
            n_texts = sum(len(squares) for squares in squares_by_item.values())
            counted = "texts" if n_texts == len(spreads) else "items"
            measure = f"spread at temperature {temperature:g}"
            yield from _spread(
                "repeats", criterion_name, measure, spreads, seed, counted=counted
            )
            measure = f"{IDENTICAL_SCORES} at temperature {temperature:g}"
            yield from _share("repeats", criterion_name, measure, n_identical, n_texts)


def _spread_by_text(table: Table) -> dict[tuple[Text, str], float]:
    """Return the standard deviation of each text's repeated replies, by text and column."""
    # Each text becomes a system of its own, because spreads are computed by system.
    texts = [sample.key for sample in table.samples]
    name_of_text = {text: str(number) for number, text in enumerate(texts)}
    samples = []
    for sample in table.samples:
        text_name = name_of_text[sample.key]
        samples.append(replace(sample, system=text_name))
    scores = []
    for score in table.scores:
        text_name = name_of_text[score.key]
        scores.append(replace(score, system=text_name))
    table_of_texts = Table(tuple(samples), table.columns, tuple(scores))
    spreads = repeats(table_of_texts)
    spread_by_text: dict[tuple[Text, str], float] = {}
    for (number, column), spread in spreads.items():
        text = texts[int(number)]
        spread_by_text[text, column] = spread.value
    return spread_by_text
