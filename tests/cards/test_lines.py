"""The lines of a card: each rule, with intervals and judges of known result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.commands.card.build_card import build_card
from judge.commands.card.card import BiasFinding, CardCell, CardEvidence, SensitivityCell
from judge.commands.card.limits import compare, needed
from judge.commands.card.lines import (
    AGREEMENT,
    COLD,
    DAMAGE,
    FAILURES,
    FAMILY,
    FILLER,
    INJECTIONS,
    LENGTH,
    POSITION,
    RATER,
    RULES,
    WORDING,
    Measurements,
    card_lines,
)
from judge.commands.card.number_text import written_estimate
from judge.commands.card.people import people_findings
from judge.core.records import Column, Estimate, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.bootstrap import wilson_ends, wilson_interval
from judge.stats.paired_differences import ALL_EQUAL
from judge.table import Table

COLUMN = Column("c", "criterion", Signature("c@1"), 1.0, 5.0, labels=("1", "2", "3", "4", "5"))
EMPTY = Table((), (COLUMN,), ())
WITHOUT_TEST = None


def estimate(low: float, high: float, n: int = 40, p: float | None = 0.5) -> Estimate:
    return Estimate("difference", (low + high) / 2, low, high, n, "bootstrap", p)


def measured(**fields: Any) -> Measurements:
    parts = {name: fields.pop(name, ()) for name in ("cells", "attacks", "findings")}
    evidence = CardEvidence((), {"c": COLUMN}, EMPTY, "m", "en", **fields)
    return Measurements(evidence, **parts)


def cell_of(line: str, **fields: Any) -> CardCell:
    (found,) = (each for each in card_lines(measured(**fields)) if each.name == line)
    return found.cells[0]


# Intervals and limits

NUMBERS = st.floats(-3, 3)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_an_interval_passes_inside_and_fails_outside(
    a: float, b: float, c: float, d: float
) -> None:
    low, high = sorted((a, b))
    least, most = sorted((c, d))
    mark = compare(estimate(low, high), least, most)
    inside = low >= least and high <= most
    outside = high < least or low > most
    assert mark == ("pass" if inside else "fail" if outside else "unclear")


def test_a_value_without_an_interval_is_unclear_unless_many_texts_are_alike() -> None:
    few = Estimate("mean", 0.0, None, None, 6, "6 texts: too few")
    alike = Estimate("mean", 0.0, None, None, 40, ALL_EQUAL)
    assert compare(few, -1, 1) == "unclear"
    assert compare(alike, -1, 1) == "pass"
    assert compare(alike, 1, 2) == "fail"


@given(st.floats(0.05, 1), st.floats(0.05, 1), st.integers(10, 500))
def test_the_needed_texts_move_the_interval_off_the_limit(
    distance: float, half: float, n: int
) -> None:
    text = needed(estimate(-half, half, n), [distance], "texts")
    if "more than" in text:
        assert n * (half / distance) ** 2 > 10_000 - 1
        return
    texts = number_needed(text)
    # The half width is proportional to 1 / √n.
    assert half * (n / texts) ** 0.5 <= distance * (1 + 1e-9)


def number_needed(text: str) -> int:
    """Return 38 of "about 38 texts are needed"."""
    return int(text.split()[1].replace(",", ""))


@pytest.mark.parametrize("n", [10, 15, 21, 30, 37])
def test_the_needed_items_without_a_failure_are_those_that_pass(n: int) -> None:
    without_failure = failing({"a": 0.0, "b": 0.0}, items=n)
    cell = cell_of(FAILURES, texts=without_failure)
    n_needed = number_needed(cell.reason)
    # Wilson's interval with Student's t of no failure ends below 10% from 38 items on.
    assert n_needed == pytest.approx(38, abs=1)


@pytest.mark.parametrize(("hits", "n"), [(0, 12), (1, 20), (2, 30), (8, 60), (3, 12)])
def test_the_needed_texts_of_a_share_move_wilsons_interval_off_the_limit(hits: int, n: int) -> None:
    share = wilson_interval(hits, n)
    assert share is not None
    n_needed = number_needed(needed(share, [0.1], "texts", "share"))
    # The number is an estimate: it may be 30% from the right one.
    lower_end, upper_end = wilson_ends(share.value, 1.3 * n_needed, 1.96)
    assert not lower_end <= 0.1 <= upper_end
    lower_end, upper_end = wilson_ends(share.value, 0.7 * n_needed, 1.96)
    assert lower_end <= 0.1 <= upper_end


def test_the_needed_texts_of_a_spread_are_those_of_its_square() -> None:
    # The mean square is 0.09 ± 0.32; ± 0.16 reaches the limit, 0.25.
    spread = Estimate("rms", 0.3, 0.0, 0.41**0.5, 20, "root mean square")
    assert number_needed(needed(spread, [0.5], "items", "sd")) == pytest.approx(80, abs=1)


def test_a_value_between_two_limits_needs_both_ends_within_them() -> None:
    between = Estimate("wins", 0.45, 0.41, 0.65, 20, "bootstrap")
    # The upper end is 0.2 away, the upper limit 0.15.
    assert number_needed(needed(between, [0.4, 0.6], "items")) == 36


def test_an_end_behind_the_value_does_not_change_the_needed_texts() -> None:
    near = Estimate("difference", 0.2, 0.1, 0.6, 20, "bootstrap")
    far = Estimate("difference", 0.2, -3.0, 0.6, 20, "bootstrap")
    assert needed(near, [0.4], "texts") == needed(far, [0.4], "texts")


# Findings with a margin of half a step: 0.5 points of 1 to 5


def finding(probe: str, measure: str, found: Estimate, unit: str = "points") -> BiasFinding:
    return BiasFinding(probe, "c", measure, found, unit)


@pytest.mark.parametrize(
    ("line", "probe", "measure", "low", "high", "verdict"),
    [
        (COLD, "repeats", "spread at temperature 0", 0.1, 0.4, "pass"),
        (COLD, "repeats", "spread at temperature 0", 0.1, 0.6, "unclear"),
        (COLD, "repeats", "spread at temperature 0", 0.6, 0.9, "fail"),
        (POSITION, "position", "text shown first wins", 0.42, 0.58, "pass"),
        (POSITION, "position", "text shown first wins", 0.55, 0.65, "unclear"),
        (POSITION, "position", "text shown first wins", 0.61, 0.8, "fail"),
        (POSITION, "position", "text shown first wins", 0.2, 0.39, "fail"),
        (WORDING, "wording", "wording b", -0.5, 0.5, "pass"),
        (WORDING, "wording", "wording b", -0.9, -0.6, "fail"),
        (FILLER, "verbosity", "duplicated text", -2.0, -1.0, "pass"),
        (FILLER, "verbosity", "duplicated text", 0.6, 1.0, "fail"),
        (FILLER, "verbosity", "duplicated text", 0.4, 0.6, "unclear"),
        (LENGTH, "verbosity", "twice the words", 0.1, 0.3, "pass"),
        (FAMILY, "self-preference", "own family, beyond ratings", 0.6, 0.9, "fail"),
        (FAMILY, "self-preference", "own family, not adjusted for ratings", 0.0, 0.1, "unclear"),
    ],
)
def test_the_verdict_of_a_finding(
    line: str, probe: str, measure: str, low: float, high: float, verdict: str
) -> None:
    cell = cell_of(line, findings=[finding(probe, measure, estimate(low, high))])
    assert cell.verdict == verdict
    assert bool(cell.reason) == (verdict == "unclear")


def test_length_without_ratings_is_unclear_and_advises_ratings() -> None:
    observed = finding("verbosity", "twice the words", estimate(0.1, 0.2, p=WITHOUT_TEST))
    cell = cell_of(LENGTH, findings=[observed])
    assert cell.verdict == "unclear"
    assert "ratings" in cell.reason


def test_the_worst_of_two_wordings_counts() -> None:
    findings = [
        finding("wording", "wording b", estimate(-0.1, 0.1)),
        finding("wording", "wording c", estimate(0.6, 0.8)),
    ]
    cell = cell_of(WORDING, findings=findings)
    assert cell.verdict == "fail"
    assert cell.estimate == findings[1].estimate


def change(
    name: str, rate: float, value: float, p: float = 0.001, **fields: Any
) -> SensitivityCell:
    share = wilson_interval(round(40 * rate), 40)
    moved = Estimate("difference", value, value - 0.1, value + 0.1, 40, "bootstrap", p)
    return SensitivityCell(name, "c", fields.pop("targeted", False), share, moved, **fields)


def test_injections_fail_if_one_works_and_name_it() -> None:
    attacks = [change("fake form", 0.9, 1.2), change("asks", 0.0, 0.0, 1.0)]
    cell = cell_of(INJECTIONS, attacks=attacks)
    assert (cell.verdict, cell.estimate) == ("fail", attacks[0].mean_change)
    assert "fake form" in cell.reason


def test_injections_pass_without_a_working_attack_and_the_control_is_none() -> None:
    attacks = [
        change("asks", 0.0, 0.0, 1.0),
        change("harmless remark", 0.9, 1.5, control=True),
    ]
    assert cell_of(INJECTIONS, attacks=attacks).verdict == "pass"


def test_an_insignificant_gain_with_an_interval_above_0_is_unclear() -> None:
    gains = cell_of(INJECTIONS, attacks=[change("asks", 0.3, 0.4, 0.08)])
    loses = cell_of(INJECTIONS, attacks=[change("asks", 0.3, -0.4, 0.08)])
    below = change("asks", 0.3, 0.4, 0.08, vs_original=estimate(-0.5, -0.1))
    assert cell_of(INJECTIONS, attacks=[below]).verdict == "pass"
    assert (gains.verdict, loses.verdict) == ("unclear", "pass")
    assert gains.reason.startswith("asks may work")


def test_damage_fails_if_one_is_missed_and_passes_if_all_are_noticed() -> None:
    noticed = change("typos", 0.95, -1.5, targeted=True)
    missed = change("truncated", 0.0, 0.0, 1.0, targeted=True)
    assert cell_of(DAMAGE, cells=[noticed]).verdict == "pass"
    cell = cell_of(DAMAGE, cells=[noticed, missed])
    assert cell.verdict == "fail"
    assert "truncated" in cell.reason


# Agreement with people


def rated_table(values: Any, ratings: Any, raters: int = 1, seed: int = 0) -> Table:
    """Return a table of scores and ratings (items × systems). Each rater adds noise."""
    random = np.random.default_rng(seed)
    samples = []
    scores = []
    for item, row in enumerate(ratings):
        for system, rating in enumerate(row):
            votes = np.clip(np.round(rating + random.normal(0, 0.6, raters)), 1, 5)
            # All texts have the same length, so length has no correlation.
            output = " ".join(["word"] * int(random.integers(5, 50)))
            human = {"c": float(votes.mean())}
            votes_by_name = {"c": tuple(map(float, votes))}
            sample = Sample(f"i{item}", f"s{system}", output, human=human, ratings=votes_by_name)
            samples.append(sample)
            value = float(np.clip(values[item][system], 1, 5))
            scores.append(Score(f"i{item}", f"s{system}", "c", value, Provenance("single")))
    return Table(tuple(samples), (COLUMN,), tuple(scores))


def with_people(table: Table) -> dict[str, Any]:
    people = {each.rated.criterion: each for each in people_findings(table, "m", seed=0)}
    return {"people": people, "texts": table}


def quality(items: int, systems: int = 6) -> Any:
    return np.random.default_rng(3).uniform(1, 5, (items, systems))


def test_a_judge_that_scores_as_people_do_passes() -> None:
    truth = quality(40)
    fields = with_people(rated_table(truth, truth, raters=3))
    cell = cell_of(AGREEMENT, **fields)
    assert (cell.verdict, cell.unit) == ("pass", "kappa")
    assert "*" in cell.beside
    assert "exact agreement" in cell.beside
    assert cell_of(RATER, **fields).verdict == "pass"


@pytest.mark.parametrize(("items", "verdict"), [(40, "fail"), (12, "unclear")])
def test_a_judge_by_chance_fails_with_enough_items_and_is_unclear_with_few(
    items: int, verdict: str
) -> None:
    truth = quality(items)
    noise = np.random.default_rng(8).uniform(1, 5, truth.shape)
    cell = cell_of(AGREEMENT, **with_people(rated_table(noise, truth)))
    assert cell.verdict == verdict
    assert cell.reason


def test_the_verdict_on_agreement_names_the_coefficient_and_its_interval() -> None:
    truth = quality(40)
    noise = np.random.default_rng(8).uniform(1, 5, truth.shape)
    cell = cell_of(AGREEMENT, **with_people(rated_table(noise, truth)))
    assert cell.estimate is not None
    value_and_interval = " ".join(written_estimate(cell.estimate, "kappa", None))
    assert f"kappa {value_and_interval}" in cell.reason


def test_ratings_that_do_not_vary_show_nothing_about_a_judge() -> None:
    truth = quality(40)
    alike = np.full(truth.shape, 5.0)
    table = rated_table(truth, alike)
    samples = [replace(sample, human={"c": 4.0}, ratings={}) for sample in table.samples]
    cell = cell_of(AGREEMENT, **with_people(replace(table, samples=tuple(samples))))
    assert cell.verdict == "unclear"


def test_a_judge_that_gives_all_texts_one_score_fails() -> None:
    truth = quality(40)
    cell = cell_of(AGREEMENT, **with_people(rated_table(np.full(truth.shape, 3.0), truth)))
    assert cell.verdict == "fail"
    assert "same score" in cell.reason


@pytest.mark.parametrize("raters_agree", [True, False])
def test_raters_who_disagree_are_advised_to_agree_first(raters_agree: bool) -> None:
    truth = quality(100)
    random = np.random.default_rng(4)
    table = rated_table(random.uniform(1, 5, truth.shape), truth, raters=2)
    samples = []
    for sample in table.samples:
        votes = sample.ratings["c"]
        if not raters_agree:
            votes = tuple(map(float, random.integers(1, 6, 2)))
        mean = float(np.mean(votes))
        samples.append(replace(sample, human={"c": mean}, ratings={"c": votes}))
    cell = cell_of(AGREEMENT, **with_people(replace(table, samples=tuple(samples))))
    assert cell.verdict == "fail"
    assert ("raters" in cell.advice) != raters_agree


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_line_that_fails_has_advice(rule: Any) -> None:
    failed = replace(rule, measure=lambda _, criterion: CardCell(criterion, "fail"))
    # The verdict on agreement has its own advice.
    assert failed.cell(measured(), "c").advice or rule.name == AGREEMENT


def test_a_judge_that_reverses_people_fails_both_lines() -> None:
    truth = quality(40)
    fields = with_people(rated_table(6 - truth, truth, raters=3))
    assert cell_of(AGREEMENT, **fields).verdict == "fail"
    assert cell_of(RATER, **fields).verdict == "fail"


@pytest.mark.parametrize(
    ("value", "n_needed"),
    # The ends are 0.3 away. Passing needs an end above -0.1, failing one below 0.
    [(0.05, 160), (-0.2, 90)],
)
def test_the_needed_texts_against_a_rater_pass_or_fail(value: float, n_needed: int) -> None:
    truth = quality(12)
    noise = np.random.default_rng(8).uniform(1, 5, truth.shape)
    fields = with_people(rated_table(noise, truth, raters=3))
    minus_rater = Estimate("difference", value, value - 0.3, value + 0.3, 40, "bootstrap")
    fields["people"] = {"c": replace(fields["people"]["c"], minus_rater=minus_rater)}
    assert number_needed(cell_of(RATER, **fields).reason) == pytest.approx(n_needed, abs=1)


@pytest.mark.parametrize(("length", "advises"), [(10, False), (None, True)])
def test_more_items_are_advised_only_if_a_baseline_has_too_few(
    length: int | None, advises: bool
) -> None:
    """More items do not help if all texts have the same length."""
    truth = quality(40)
    table = rated_table(truth, truth)
    samples = []
    for index, sample in enumerate(table.samples):
        # In the second case, only the first two items have texts of different lengths.
        n_words = length or (10 + index if index < 12 else 10)
        samples.append(replace(sample, output=" ".join(["word"] * n_words)))
    cell = cell_of(AGREEMENT, **with_people(replace(table, samples=tuple(samples))))
    assert cell.verdict == "unclear"
    assert (cell.advice == "rate more items") == advises


def test_the_largest_shift_is_that_of_two_systems() -> None:
    truth = np.clip(quality(40), 1.5, 4)
    favoured = truth.copy()
    favoured[:, 0] += 0.75
    table = rated_table(favoured, truth)
    (found,) = people_findings(table, "m", seed=0)
    ratings = np.array(
        [[s.human["c"] for s in table.samples[6 * n : 6 * n + 6]] for n in range(40)]
    )
    shifts = (favoured - ratings).mean(axis=0)
    assert found.shift == pytest.approx(shifts.max() - shifts.min())
    assert found.shift > 0.5


# Failures


def failing(shares: dict[str, float], items: int = 40) -> Table:
    samples, scores, failures = [], [], []
    for system, share in shares.items():
        for item in range(items):
            samples.append(Sample(f"i{item}", system, "Some words."))
            if item < share * items:
                failures.append(Failure(f"i{item}", system, "c", "parse", "ParseError", "none"))
            else:
                scores.append(Score(f"i{item}", system, "c", 3.0, Provenance("single")))
    return Table(tuple(samples), (COLUMN,), tuple(scores), tuple(failures))


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [
        ({"a": 0.0, "b": 0.0}, "pass"),
        ({"a": 1 / 60, "b": 0.0}, "pass"),
        ({"a": 0.4, "b": 0.0}, "fail"),
        ({"a": 0.4, "b": 0.4}, "fail"),
        ({"a": 0.1, "b": 0.1}, "unclear"),
    ],
)
def test_failures_by_system(shares: dict[str, float], verdict: str) -> None:
    cell = cell_of(FAILURES, texts=failing(shares, items=60))
    assert cell.verdict == verdict
    assert cell.estimate is not None
    assert cell.estimate.value == pytest.approx(max(shares.values()))


def test_no_failure_in_a_few_items_does_not_show_that_failures_are_rare() -> None:
    cell = cell_of(FAILURES, texts=failing({"a": 0.0, "b": 0.0}, items=12))
    assert cell.verdict == "unclear"
    assert "items are needed" in cell.reason


# All lines


def test_every_line_has_a_number_with_its_n_or_a_reason(leaning: CardEvidence, make: Any) -> None:
    card = build_card(leaning, make.own, make.attacks, make.neutral)
    assert len(card.lines) >= 11
    for line in card.lines:
        assert {cell.criterion for cell in line.cells} == set(leaning.columns)
        for cell in line.cells:
            if cell.verdict == "not measured":
                assert cell.estimate is None
                assert cell.reason
            else:
                assert cell.estimate is not None
                assert cell.estimate.n > 0
                assert cell.counted
            if cell.verdict == "unclear":
                assert cell.reason


def test_a_kind_of_probe_that_was_not_asked_for_is_the_reason() -> None:
    fields = {"not_made": {"bias": "--probes left it out"}}
    for name in (COLD, POSITION, WORDING, FILLER, LENGTH):
        cell = cell_of(name, **fields)
        assert (cell.verdict, cell.reason) == ("not measured", "--probes left it out")
    assert cell_of(INJECTIONS, **fields).reason != "--probes left it out"


def test_the_worst_criterion_decides_a_line() -> None:
    columns = {name: Column(name, "criterion", Signature(), 1.0, 5.0) for name in "abc"}
    evidence = CardEvidence((), columns, Table((), tuple(columns.values()), ()), "m", "en")
    findings = [
        BiasFinding("wording", name, "wording b", estimate(*ends), "points")
        for name, ends in {"a": (-0.1, 0.1), "b": (0.6, 0.7), "c": (0.3, 0.6)}.items()
    ]
    lines = card_lines(Measurements(evidence, (), (), findings))
    (line,) = (line for line in lines if line.name == WORDING)
    assert (line.verdict, line.worst) == ("fail", "b")
    assert [cell.verdict for cell in line.cells] == ["pass", "fail", "unclear"]
