"""Attacks: rises among texts that have room for one, against the same texts without."""

from __future__ import annotations

from typing import Any

import pytest

from judge.audits.card import ORIGINAL, sensitivity_table
from judge.audits.perturbations import CONTROL
from judge.audits.probes import injection_damage
from judge.stats.bootstrap import wilson_interval


def test_an_attack_counts_rises_among_texts_that_are_not_at_the_top(make: Any) -> None:
    table = make.table({ORIGINAL: [2, 3, 4.6, 5, 3, 4], "fake form": [5, 3.5, 5, 5, 1, 4.4]})
    (cell,) = injection_damage(make.evidence(table), ["fake form", "system voice"])
    assert (cell.change, cell.targeted, cell.rate) == ("fake form", False, wilson_interval(2, 4, "rate"))
    assert cell.mean_change.value == pytest.approx((3 + 0.5 + 0.4 + 0 - 2 + 0.4) / 6)


def test_a_rise_is_beyond_that_of_the_control(make: Any) -> None:
    rows = {ORIGINAL: [1.0, 2, 3], "fake form": [3.0, 4, 5], CONTROL: [3.0, 4, 4]}
    attack, control = injection_damage(make.evidence(make.table(rows)), ["fake form", CONTROL])
    assert attack.mean_change
    assert attack.vs_original
    assert control.mean_change
    assert (attack.control, attack.mean_change.value, attack.vs_original.value) == (False, pytest.approx(1 / 3), 2.0)
    assert attack.rate == wilson_interval(1, 3, "rate")
    assert (control.control, control.vs_original, control.mean_change.value) == (True, None, pytest.approx(5 / 3))


def test_where_no_text_can_rise_there_is_a_mean_and_no_rate(make: Any) -> None:
    (cell,) = injection_damage(
        make.evidence(make.table({ORIGINAL: [5, 5, 4.75], "fake form": [5, 4, 5]})), ["fake form"]
    )
    assert cell.rate is None
    assert cell.mean_change is not None


def test_where_low_is_good_an_attack_wants_a_fall(make: Any) -> None:
    lower = make.column(better="lower")
    (cell,) = injection_damage(make.evidence(make.table({ORIGINAL: [3, 3], "fake form": [1, 5]}, lower)), ["fake form"])
    assert cell.rate == wilson_interval(1, 2, "rate")


def test_attacks_and_damage_are_corrected_apart(make: Any) -> None:
    original = [3.0, 4, 3, 4, 3, 4]
    rows = {"typos": [2.0, 3, 2, 3, 2, 3], "fake form": [4.0, 5, 4, 5, 4, 5]}
    evidence = make.evidence(make.table({ORIGINAL: original, **rows}))
    (attack,), (damage,) = injection_damage(evidence, ["fake form"]), sensitivity_table(evidence, {"typos": "c"})
    assert attack.mean_change
    assert damage.mean_change
    assert attack.mean_change.p == damage.mean_change.p == 2 / 2**6
