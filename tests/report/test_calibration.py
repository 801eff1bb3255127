"""Means on people's scale laid out: what is shown of many differences, how numbers are written, what is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from judge.core.records import Estimate
from judge.report.views import validation
from judge.results.result import Result
from judge.stats.calibration import Calibrated, Powered


def powered(
    system: str, other: str = "", value: float = 3.5, adjusted: float | None = None, half: float = 0.2
) -> Powered:
    """An estimate that is `half` wide to each side where the ratings alone give .4."""
    name = "difference" if other else "mean"
    made = [Estimate(name, value, value - side, value + side, 30, "how") for side in (half, 0.4)]
    return Powered(made[0], made[1], 0.754, 1470, system, other, adjusted)


def found(systems: str = "abc", **fields: Any) -> Calibrated:
    pairs = [(one, other) for place, one in enumerate(systems) for other in systems[place + 1 :]]
    differences = [powered(*pair, value=0.25, adjusted=0.0004 if pair[0] == "a" else 0.3) for pair in pairs]
    return Calibrated("fluency", tuple(powered(name) for name in systems), tuple(differences), **fields)


def test_every_cell() -> None:
    (block,) = validation.blocks([found()])
    means, differences = block.grids
    assert means.heads == ("system", "with the judge", "ratings alone", "rated", "judged", "λ", "worth")
    values = (("3.50", "[3.30, 3.70]"), ("3.50", "[3.10, 3.90]"), ("30", ""), ("1,470", ""), ("0.75", ""), ("120", ""))
    assert means.rows[0] == (("a", ""), *values)
    assert [row[0][0] for row in differences.rows] == ["a ≠ b", "a ≠ c", "b − c"]
    assert [row[-1][0] for row in differences.rows] == ["<.001", "<.001", ".300"]
    assert differences.rows[0][1] == ("+0.25", "[0.05, 0.45]")
    assert block.sentences == (
        "30 ratings and the judge together are worth 120 (median over the systems).",
        "2 of 3 pairs of systems are told apart.",
    )
    assert "≠ told apart" in validation.calibration_note([found()])


def test_of_many_differences_those_with_the_best_system() -> None:
    many = found("abcde")
    assert len(validation.blocks([many], every=True)[0].grids[1].rows) == 10
    (block,) = validation.blocks([many])
    assert [row[0][0] for row in block.grids[1].rows] == ["a ≠ b", "a ≠ c", "a ≠ d", "a ≠ e"]
    assert block.sentences[1] == "4 of 10 pairs of systems are told apart; shown are the 4 with the best system."


def test_differences_are_told_to_be_others_than_those_of_the_means() -> None:
    alone = replace(found(), differences=())
    assert ["with a λ of its own" in validation.calibration_note([one]) for one in (found(), alone)] == [True, False]
    assert "wider than that of the ratings alone" in validation.calibration_note([alone])


def test_a_note_is_cut() -> None:
    (block,) = validation.blocks([found(note="x" * 9_000)])
    assert block.sentences[-1] == f"X{'x' * 298}…."


def test_what_is_not_known_has_no_number() -> None:
    bare = Estimate("mean", 5.0, None, None, 12, "all equal")
    one = Calibrated("c", (Powered(bare, bare, 0.0, 40, "a"),), (Powered(bare, bare, 0.0, 40, "a", "b"),), "too few")
    (block,) = validation.blocks([one])
    assert block.grids[0].rows[0][1:3] == (("5.00", ""), ("5.00", ""))
    assert block.grids[0].rows[0][-1] == ("–", "")
    assert block.grids[1].rows[0][-1] == ("–", "")
    assert block.sentences == ("0 of 1 pair of systems are told apart.", "Too few.")
    assert "≠" not in validation.calibration_note([one])


def test_nothing_could_be_estimated() -> None:
    (block,) = validation.blocks([Calibrated("c", note="fewer than 10 rated items with a score: a")])
    assert (block.grids, block.sentences) == ((), ("Fewer than 10 rated items with a score: a.",))


def test_names_are_harmless_in_every_format(result: Result) -> None:
    evil = "<script>|**x**\x1b[31m"
    names = (powered(evil), powered("lead"))
    both = Calibrated("coherence", names, (powered(evil, "lead", 0.2, 0.01),), "a <b>note</b>")
    shown = replace(result, calibrated=(both,))
    console, markdown, page = (shown.report(name) for name in ("console", "markdown", "html"))
    assert "\x1b" not in console + markdown + page
    assert "<script>|" not in page
    assert "&lt;script&gt;|" in page
    assert "A &lt;b&gt;note&lt;/b&gt;." in page
    assert r"\<script\>\|\*\*x\*\*" in markdown
