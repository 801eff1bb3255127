from __future__ import annotations

from dataclasses import replace

from judge.core.format import number
from judge.core.records import Estimate
from judge.report.views.heat_maps import Wins, wins
from judge.report.views.leaderboard import build_leaderboard
from judge.results.result import Result
from judge.stats.system_differences import Comparison, Difference, Rank


def of(result: Result, name: str) -> Wins:
    (found,) = [one for one in wins(result, build_leaderboard(result)) if one.label == name]
    return found


def test_every_difference_stands_in_both_directions(tested: Result) -> None:
    for comparison in tested.comparisons:
        found = of(tested, comparison.column)
        places = build_leaderboard(tested).places[comparison.column]
        assert found.rows == found.columns == tuple(rank.system for rank in comparison.ranks)
        at = {system: place for place, system in enumerate(found.rows)}
        assert all(found.cells[k][k] is None for k in range(len(found.rows)))
        for one in comparison.differences:
            there = found.cells[at[one.system]][at[one.other]]
            back = found.cells[at[one.other]][at[one.system]]
            assert there is not None
            assert back is not None
            assert float(there.difference.replace("−", "-")) == float(number(one.estimate.value, places))
            assert float(back.difference.replace("−", "-")) == -float(number(one.estimate.value, places))
            assert there.record == f"{one.wins}/{one.ties}/{one.losses}"
            assert back.record == f"{one.losses}/{one.ties}/{one.wins}"
            assert bool(there.side) == bool(back.side) == one.apart


def test_an_interval_is_turned_with_its_difference(tested: Result) -> None:
    found = of(tested, "overall")
    there, back = found.cells[0][1], found.cells[1][0]
    assert there is not None
    assert back is not None
    assert (there.difference, back.difference) == ("+0.219", "−0.219")
    assert (there.interval, back.interval) == ("[0.021, 0.448]", "[−0.448, −0.021]")


def test_who_is_better_goes_by_the_good_end(tested: Result) -> None:
    found = of(tested, "fluency")
    won = found.cells[found.rows.index("good")][found.rows.index("poor")]
    lost = found.cells[found.rows.index("poor")][found.rows.index("good")]
    assert won is not None
    assert lost is not None
    assert (won.side, lost.side) == ("won", "lost")
    estimate = Estimate("difference", -2.0, -3.0, -1.0, 12, "", 0.001)
    lower = Comparison(
        "delta",
        (Difference("good", "poor", estimate, 0.001, -1.0, 12, 0, 0),),
        (Rank("good", 1, 1, 1), Rank("poor", 2, 2, 2)),
        ("good",),
    )
    first = of(replace(tested, comparisons=(lower,)), "delta").cells[0][1]
    assert first is not None
    assert (first.difference, first.side, first.tests) == ("−2.000", "won", "p = 0.001, delta −1.00")


def test_what_the_numbers_are_is_told(tested: Result) -> None:
    told = of(tested, "fluency").caption
    assert told.startswith("Over 12 items: mean of the row's system less that of the column's")
    assert "after Holm over 3 pairs" in told
    assert "with 80% power: " in told
    assert "Lower is better" not in told
    assert "an item is won by the lower value" in of(tested, "delta").caption


def test_of_many_systems_each_is_shown_against_the_best_one(tested: Result) -> None:
    names = [f"s{k}" for k in range(200)]
    estimate = Estimate("difference", 1.0, 0.5, 1.5, 12, "", 0.01)
    comparison = Comparison(
        "fluency",
        tuple(Difference("s0", name, estimate, None, 0.5, 8, 2, 2) for name in names[1:]),
        tuple(Rank(name, k + 1, 1, 200) for k, name in enumerate(names)),
        note="more than 30 systems: compared with the best one only",
    )
    means = {("s0", "fluency"): Estimate("mean", 4.0, None, None, 12, "")}
    found = of(replace(tested, estimates=means, comparisons=(comparison,)), "fluency")
    assert found.columns == ("s0",)
    assert found.rows == tuple(names[1:101])
    assert {row[0].difference for row in found.cells if row[0]} == {"−1.00"}
    assert found.caption.endswith("Shown are the first 100. More than 30 systems: compared with the best one only.")


def test_there_is_none_where_nothing_was_compared(result: Result) -> None:
    assert wins(result, build_leaderboard(result)) == ()
