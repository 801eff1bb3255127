"""Biases of a judge. Oracle: small tables by hand, or a second way to compute the number."""

from __future__ import annotations

from math import sqrt
from statistics import stdev, variance
from typing import Any

import numpy as np
import pytest

from judge.commands.card.card import ORIGINAL, BiasFinding, CardEvidence
from judge.commands.card.effects import apply_holm
from judge.commands.card.perturbations import SHUFFLED
from judge.commands.card.probes import (
    copying_bias,
    model_family,
    position_bias,
    question_sensitivity,
    repeatability,
    scale_usage,
    self_preference,
    sentence_order,
    verbosity_bias,
    wording_sensitivity,
)
from judge.core.records import IDENTICAL, Estimate, Provenance, Sample, Score
from judge.metrics.text_features import measured
from judge.stats.bootstrap import wilson_interval
from judge.stats.paired_differences import mean_differences
from judge.table import Table
from tests.factories import has_line


def findings_by_name(drafts: Any) -> dict[tuple[str, str], BiasFinding]:
    return {(one.criterion, one.measure): one for one in apply_holm(drafts, {})}


# Position


def pairs(make: Any, *answers: tuple[float, float | None], **options: Any) -> Table:
    """Return one item per answer: the value with `a` shown first, and with `b` shown first."""
    samples = tuple(
        Sample(f"i{n}", system, "words") for n in range(len(answers)) for system in "ab"
    )
    rows = []
    for n, (one, other) in enumerate(answers):
        rows.append(make.score(f"i{n}", "a", "c", one, "b", **options))
        rows += [make.score(f"i{n}", "b", "c", other, "a", **options)] if other is not None else []
    return Table(samples, (make.column(low=0.0, high=1.0, labels=("A", "B")),), tuple(rows))


def test_the_flip_rate_is_over_pairs_that_were_asked_in_both_orders(make: Any) -> None:
    table = pairs(make, (1, 1), (1, 0), (0, 0), (0, 1), (1, None))
    biases = findings_by_name(
        position_bias(make.evidence(make.table({ORIGINAL: [3]}), pairs=table), 0)
    )
    turned, first = (
        biases["c", "verdict flips with the order"],
        biases["c", "text shown first wins"],
    )
    assert turned.estimate == wilson_interval(2, 4)
    assert turned.significant is None
    assert turned.sentence == "c: verdict flips with the order 50% [15, 85] (4 pairs)"
    assert (first.estimate.value, first.estimate.n) == (0.5, 4)
    assert first.significant is False


def test_a_judge_that_always_picks_the_first_text_has_position_bias(make: Any) -> None:
    table = pairs(make, *[(0.9, 0.8)] * 8)
    biases = findings_by_name(
        position_bias(make.evidence(make.table({ORIGINAL: [3]}), pairs=table), 0)
    )
    first = biases["c", "text shown first wins"]
    assert first.significant is True
    assert first.estimate.value == pytest.approx(0.85)
    assert first.estimate.p == 2 / 2**8


def test_identical_texts_say_nothing_about_the_order(make: Any) -> None:
    table = pairs(make, (0.5, 0.5), method=IDENTICAL)
    assert not findings_by_name(
        position_bias(make.evidence(make.table({ORIGINAL: [3]}), pairs=table), 0)
    )


# Length and copying


def natural(make: Any, seed: int = 3, items: int = 30) -> CardEvidence:
    """Return two texts per item with random length, share of copied words and score."""
    random = np.random.default_rng(seed)
    samples, scores = [], []
    source = " ".join(f"word{n}" for n in range(60)) + "."
    for item in range(items):
        for system in "ab":
            copied, new = random.integers(3, 40, size=2)
            text = (
                " ".join([f"word{n}" for n in range(copied)] + [f"new{n}" for n in range(new)])
                + "."
            )
            samples.append(Sample(f"i{item}", system, text, source))
            scores.append(make.score(f"i{item}", system, "c", float(random.uniform(1, 5))))
    table = Table(tuple(samples), (make.column(),), tuple(scores))
    return make.evidence(make.table({ORIGINAL: [3.0]}), natural=table)


def centred(evidence: CardEvidence) -> np.ndarray[Any, Any]:
    """Return score, log2 words and share of copied bigrams, each minus its mean within the item."""
    table = evidence.natural
    features = measured(table.samples)
    rows = [
        [s.value, np.log2(f.words), 1 - (f.novel2 or 0.0)]
        for s, f in zip(table.column_scores("c"), features, strict=True)
    ]
    values = np.array(rows).reshape(-1, 2, 3)
    return np.asarray((values - values.mean(axis=1, keepdims=True)).reshape(-1, 3))


def test_length_slope_equals_least_squares_within_items(make: Any) -> None:
    evidence = natural(make)
    rows = centred(evidence)
    bias = findings_by_name(verbosity_bias(evidence, (), 0))["c", "twice the words"]
    expected, *_ = np.linalg.lstsq(rows[:, 1:2], rows[:, 0], rcond=None)
    assert bias.estimate.value == pytest.approx(expected[0])
    assert (bias.unit, bias.estimate.n) == ("points per doubling", 60)
    assert (bias.significant, bias.estimate.p) == (
        None,
        None,
    )  # without ratings the correlation is only an observation
    assert bias.estimate.low < bias.estimate.value < (bias.estimate.high or 0)


def test_copying_bias_is_the_partial_correlation_given_length(make: Any) -> None:
    evidence = natural(make)
    score, length, copied = centred(evidence).T
    residuals = [
        values - length * (values @ length) / (length @ length) for values in (score, copied)
    ]
    bias = findings_by_name(copying_bias(evidence, (), 0))["c", "copying at equal length"]
    assert bias.estimate.value == pytest.approx(float(np.corrcoef(*residuals)[0, 1]))
    assert bias.estimate.p == pytest.approx(flip_p_value(residuals), abs=0.03)


def flip_p_value(residuals: list[Any]) -> float:
    """Return the share of sign flips of whole items with a correlation at least as far from 0."""
    products = (residuals[0] * residuals[1]).reshape(-1, 2).sum(axis=1)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (20_000, len(products)))
    return float((np.abs(signs @ products) >= abs(products.sum()) - 1e-9).mean())


def test_bias_needs_enough_items_with_several_texts(make: Any) -> None:
    assert not findings_by_name(copying_bias(natural(make, items=9), (), 0))
    assert not findings_by_name(verbosity_bias(natural(make, items=9), (), 0))
    evidence = natural(make)
    table = evidence.natural
    alone = [
        tuple(row for row in rows if row.system == "a") for rows in (table.samples, table.scores)
    ]
    table_without_ratings = Table(alone[0], table.columns, alone[1])
    assert not findings_by_name(
        verbosity_bias(make.evidence(evidence.changed, natural=table_without_ratings), (), 0)
    )


def test_neutral_changes_move_by_the_mean_difference(make: Any) -> None:
    rows = {
        ORIGINAL: [3.0, 3, 4, 4, 3, 4], "duplicated text": [4.0, 4, 5, 5, 4, 5], "copied lead": [3.0, 3, 4, 4, 3, 4],
    }  # fmt: skip
    evidence = make.evidence(make.table(rows))
    names = ("duplicated text", "copied lead", "empty phrases")
    longer, copied = (
        findings_by_name(probe(evidence, names, 0)) for probe in (verbosity_bias, copying_bias)
    )
    assert [change for _, change in longer] == ["duplicated text"]
    assert [change for _, change in copied] == ["copied lead"]
    assert (
        longer["c", "duplicated text"].estimate.value,
        longer["c", "duplicated text"].significant,
    ) == (1.0, True)
    assert (copied["c", "copied lead"].significant, copied["c", "copied lead"].estimate.p) == (
        None,
        None,
    )


def test_duplicated_text_may_lower_relevance_but_not_raise_it(make: Any) -> None:
    for value, name, harmful in (
        (1.0, "relevance", False),
        (5.0, "relevance_7", True),
        (1.0, "fluency", True),
    ):
        table = make.table(
            {ORIGINAL: [3.0] * 12, "duplicated text": [value] * 12}, make.column(name)
        )
        (bias,) = findings_by_name(
            verbosity_bias(make.evidence(table), ("duplicated text",), 0)
        ).values()
        assert (bias.significant, bias.harmful) == (True, harmful)


def test_who_copies_is_right_to_be_called_consistent(make: Any) -> None:
    table = make.table(
        {ORIGINAL: [3.0] * 12, "copied lead": [5.0] * 12}, make.column("consistency")
    )
    assert not findings_by_name(copying_bias(make.evidence(table), ("copied lead",), 0))


def test_a_bias_in_too_few_texts_is_suggestive_not_significant(make: Any) -> None:
    rows = {ORIGINAL: [2.0] * 6, "duplicated text": [4.0] * 6, "empty phrases": [2.25] * 6}
    evidence = make.evidence(make.table(rows, *(make.column(name) for name in ("c", "d"))))
    biases = findings_by_name(verbosity_bias(evidence, ("duplicated text", "empty phrases"), 0))
    one = biases["c", "duplicated text"]
    assert (one.significant, one.suggestive, one.estimate.low) == (False, True, None)
    assert has_line(one.sentence, "c: duplicated text +2.00", "6 texts", "too few to test")
    assert not biases["c", "empty phrases"].suggestive


# Self-preference


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("openai/gpt-5.4-mini", "openai"), ("openrouter/openai/gpt-4o@openrouter.ai", "openai"), ("o3-mini", "openai"),
        ("OpenAI", "openai"), ("claude-haiku-5-5", "anthropic"), ("gemini/gemini-3-pro", "google"),
        ("vllm/meta-llama/Llama-3-8B", "meta"), ("Qwen2.5-7B", "qwen"), ("bart", "bart"), ("7b", "7b"),
    ],
)  # fmt: skip
def test_kin(name: str, family: str) -> None:
    assert model_family(name) == family


def written(make: Any, rated: bool = True, high: float = 5.0, items: int = 8) -> CardEvidence:
    """The judge gives its own texts 1 point more, people half a point more."""
    samples, scores = [], []
    for n in range(items):
        for system, generator, more in (("a", "gpt-4o", 1.0), ("b", "claude-5", 0.0)):
            human = {"c": (2 + more / 2) * high / 5} if rated else {}
            samples.append(
                Sample(f"i{n}", system, "Words here.", None, (), human, {"generator": generator})
            )
            scores.append(make.score(f"i{n}", system, "c", 2 + more + n / 10))
    table = Table(tuple(samples), (make.column(),), tuple(scores))
    return make.evidence(make.table({ORIGINAL: [3.0]}), natural=table)


def rated(
    make: Any,
    *,
    bonus: float = 0.0,
    scale: float = 1.0,
    chance: float = 0.0,
    likes: float = 0.0,
    longer: float = 0.0,
) -> CardEvidence:
    """Return evidence of a judge with known biases for its own family and for length, and a known scale width.

    Own texts are better by `own`, long texts by `longer`, and people notice this with some `chance`.
    """
    random = np.random.default_rng(5)
    samples, scores = [], []
    for n in range(60):
        for system, generator in (("a", "gpt-4o"), ("b", "claude-5")):
            words = int(random.integers(10, 60))
            good = random.normal(3, 0.4) + bonus * (system == "a") + longer * np.log2(words / 25)
            people = {"c": float(np.clip(good + random.normal(0, chance), 1, 5))}
            text = " ".join(f"w{k}" for k in range(words))
            samples.append(
                Sample(f"i{n}", system, text, None, (), people, {"generator": generator})
            )
            value = 3 + scale * (good - 3) + likes * ((system == "a") + np.log2(words / 25))
            scores.append(make.score(f"i{n}", system, "c", value + random.normal(0, 0.1)))
    table = Table(tuple(samples), (make.column(),), tuple(scores))
    return make.evidence(make.table({ORIGINAL: [3.0]}), natural=table)


def test_self_preference_and_length_are_beyond_people(make: Any) -> None:
    likes = rated(make, bonus=-0.6, likes=0.5, longer=0.2)
    bias = findings_by_name(self_preference(likes, 0))["c", "own family, beyond ratings"]
    assert (bias.estimate.value, bias.estimate.n, bias.significant) == (
        pytest.approx(0.5, abs=0.1),
        60,
        True,
    )
    length = findings_by_name(verbosity_bias(likes, (), 0))["c", "twice the words"]
    assert (length.estimate.value, length.significant) == (pytest.approx(0.5, abs=0.1), True)


@pytest.mark.parametrize("options", [{"scale": 0.5}, {"chance": 0.6}])
@pytest.mark.parametrize("apart", [-0.8, 0.8])
def test_narrow_scale_and_rating_noise_are_not_reported_as_bias(
    make: Any, options: dict[str, float], apart: float
) -> None:
    evidence = rated(make, bonus=apart, longer=apart / 2, **options)
    biases = findings_by_name([*self_preference(evidence, 0), *verbosity_bias(evidence, (), 0)])
    assert {name: one.significant for (_, name), one in biases.items()} == {
        "own family, beyond ratings": False, "twice the words": False,
    }  # fmt: skip


def test_a_driver_in_the_same_line_as_ratings_is_least_squares(make: Any) -> None:
    evidence = rated(make, bonus=-0.6, likes=0.5, scale=0.8, chance=0.1)
    table = evidence.natural
    rows = [
        (score.value, sample.human["c"], sample.system == "a")
        for score, sample in zip(table.column_scores("c"), table.samples, strict=True)
    ]
    values = np.array(rows, dtype=float).reshape(-1, 2, 3)
    flat = (values - values.mean(axis=1, keepdims=True)).reshape(-1, 3)
    expected, *_ = np.linalg.lstsq(flat[:, 1:], flat[:, 0], rcond=None)
    bias = findings_by_name(self_preference(evidence, 0))["c", "own family, beyond ratings"]
    assert bias.estimate.value == pytest.approx(expected[1])


@pytest.mark.parametrize("options", [{"rated": False}, {"high": 50.0}, {}, {"items": 12}])
def test_self_preference_without_ratings_uses_judge_scores_with_a_note(
    make: Any, options: dict[str, Any]
) -> None:
    bias = findings_by_name(self_preference(written(make, **options), 0))[
        "c", "own family, not adjusted for ratings"
    ]
    assert bias.estimate.value == pytest.approx(1.0)


def test_a_judge_of_a_third_family_has_no_self_preference(make: Any) -> None:
    evidence = written(make)
    other = make.evidence(evidence.changed, natural=evidence.natural, model="gemini/gemini-3")
    assert not findings_by_name(self_preference(other, 0))


# Wording, scale, repeats


def test_wording_sensitivity_has_mean_difference_and_spread_per_text(make: Any) -> None:
    values = {"c": [2, 3, 4, 2] * 2, "c~b": [3, 4, 5, 3] * 2, "c~c": [2, 3, 4, 2, 2, 3, 4, None]}
    columns = tuple(make.column(name) for name in values)
    samples = tuple(Sample(f"i{n}", ORIGINAL, "w") for n in range(8))
    rows = [
        make.score(f"i{n}", ORIGINAL, name, value)
        for name, row in values.items()
        for n, value in enumerate(row)
        if value is not None
    ]
    evidence = make.evidence(
        make.table({ORIGINAL: [3.0]}), wordings=Table(samples, columns, tuple(rows))
    )
    sensitivities = findings_by_name(wording_sensitivity(evidence, 0))
    assert (
        sensitivities["c", "wording b"].estimate.value,
        sensitivities["c", "wording b"].significant,
    ) == (
        1.0,
        True,
    )
    assert (
        sensitivities["c", "wording c"].estimate.value,
        sensitivities["c", "wording c"].estimate.n,
    ) == (0.0, 7)
    assert sensitivities["c", "spread between wordings"].estimate.value == pytest.approx(
        stdev([2, 3, 2])
    )
    assert sensitivities["c", "spread between wordings"].estimate.p is None
    assert sensitivities["c", "label changes with the wording"].estimate == wilson_interval(7, 7)


def test_other_questions_are_compared_as_other_layouts_are(make: Any) -> None:
    values = {"c": [2, 3, 4, 2], "c~1": [3, 4, 5, 3], "c~2": [2, 3, 4, 2], "c~3": [1, 3, 4, 2]}
    columns = tuple(make.column(name) for name in values)
    samples = tuple(Sample(f"i{n}", ORIGINAL, "w") for n in range(4))
    rows = [
        make.score(f"i{n}", ORIGINAL, name, value)
        for name, row in values.items()
        for n, value in enumerate(row)
    ]
    table = Table(samples, columns, tuple(rows))
    layouts = make.evidence(make.table({ORIGINAL: [3.0]}), wordings=table)
    questions = make.evidence(make.table({ORIGINAL: [3.0]}), questions=table)
    expected = [one.estimate for one in findings_by_name(wording_sensitivity(layouts, 0)).values()]
    findings = findings_by_name(question_sensitivity(questions, 0))
    assert [finding.estimate for finding in findings.values()] == expected
    assert [name for _, name in findings] == [
        "question 1",
        "question 2",
        "question 3",
        "spread between questions",
        "label changes with the question",
    ]
    assert not list(question_sensitivity(layouts, 0))


def test_sentence_order_is_of_the_criteria_that_say_so(make: Any) -> None:
    columns = (make.column("facts"), make.column("flow"))
    original = [3.0, 4, 5, 3, 2, 4, 5, 3, 4, 3]
    shuffled = [2.0, 4, 5, 3, 2, 4, 4, 3, 4, 3]
    table = make.table({ORIGINAL: original, SHUFFLED: shuffled}, *columns)
    evidence = make.evidence(table, order_free=frozenset({"facts"}))
    (finding,) = sentence_order(evidence, 0)
    assert (finding.criterion, finding.measure, finding.unit) == ("facts", SHUFFLED, "points")
    (expected,) = mean_differences(np.array([shuffled]) - np.array([original]))
    assert finding.estimate == expected
    assert (finding.estimate.value, finding.estimate.n) == (pytest.approx(-0.2), 10)
    assert not list(sentence_order(make.evidence(table), 0))


def test_scale_use_counts_labels_and_the_ends(make: Any) -> None:
    table = make.table({ORIGINAL: [5, 5, 4.6, 3, 1, 2], "typos": [1.0] * 6})
    usage = findings_by_name(scale_usage(make.evidence(table)))
    counts = {"1": 1, "2": 1, "3": 1, "4": 0, "5": 3}
    assert [usage["c", f"label {label}"].estimate for label in counts] == [
        wilson_interval(n, 6) for n in counts.values()
    ]
    assert usage["c", "most used label"].estimate == wilson_interval(3, 6)
    assert [usage["c", place].estimate for place in ("bottom", "middle", "top")] == [
        wilson_interval(n, 6) for n in (1, 1, 3)
    ]
    assert not any(one.significant is not None for one in usage.values())


def test_a_scale_without_labels_has_only_ends(make: Any) -> None:
    bare = make.table({ORIGINAL: [0.0, 3, -3]}, make.column(low=-3.0, high=3.0, labels=()))
    assert [name for _, name in findings_by_name(scale_usage(make.evidence(bare)))] == [
        "bottom",
        "middle",
        "top",
    ]


def test_repeats_are_the_spread_of_draws_at_each_temperature(make: Any) -> None:
    def drawn(item: str, **shares: float) -> Score:
        labels = {label.removeprefix("l"): p for label, p in shares.items()}
        value = sum(int(label) * p for label, p in labels.items())
        return Score(item, f"s{item}", "c", value, Provenance("samples", 1.0, labels, n=5))

    rows = (drawn("0", l3=0.6, l4=0.4), drawn("1", l2=1.0), drawn("2", l2=1.0))
    samples = tuple(Sample(row.item, row.system, "w") for row in rows)
    table = Table(samples, (make.column(),), rows)
    spreads = findings_by_name(
        repeatability(make.evidence(make.table({ORIGINAL: [3.0]}), repeats={1.0: table}), 0)
    )
    assert spreads["c", "spread at temperature 1"].estimate.value == pytest.approx(
        stdev([3, 3, 3, 4, 4]) / sqrt(3)
    )
    assert spreads["c", "same score each time at temperature 1"].estimate == wilson_interval(2, 3)


# Fixed options


def draft(p: float | None) -> BiasFinding:
    return BiasFinding("probe", "c", "measure", Estimate("", 1.0, 0.5, 1.5, 9, "how", p), "points")


def test_bias_findings_are_holm_corrected_over_all_tests() -> None:
    corrected = apply_holm([draft(0.02), draft(0.03), draft(None)], {})
    assert [one.estimate.p for one in corrected] == [0.04, 0.04, None]
    assert [one.significant for one in corrected] == [True, True, None]
    (one,) = apply_holm([draft(0.08)], {})
    assert one.sentence == "c: measure +1.000 [0.500, 1.500] (9 texts, p = 0.080)"


def test_detects_the_biases_of_a_biased_judge(leaning: CardEvidence, make: Any) -> None:
    biases = findings_by_name(
        [
            *verbosity_bias(leaning, make.neutral, 0),
            *self_preference(leaning, 0),
            *wording_sensitivity(leaning, 0),
        ]
    )
    significant = {
        kind for (name, kind), one in biases.items() if name == "coherence" and one.significant
    }
    assert significant == {
        "duplicated text",
        "twice the words",
        "own family, beyond ratings",
        "wording b",
    }


def test_the_interval_of_a_mean_without_a_test_is_that_with_one(leaning: CardEvidence) -> None:
    spread = findings_by_name(wording_sensitivity(leaning, 0))[
        "coherence", "spread between wordings"
    ].estimate
    table = leaning.wordings
    rows = zip(*(table.column_scores(column.name) for column in table.columns), strict=True)
    (estimate,) = mean_differences(
        np.array([[variance(score.value for score in row) for row in rows]])
    )
    assert estimate.low is not None
    assert estimate.high is not None
    expected = (sqrt(estimate.value), sqrt(estimate.low), sqrt(estimate.high))
    assert (spread.value, spread.low, spread.high) == pytest.approx(expected)
