from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judge
from judge.cli import app
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.report.views.columns import lead_column
from judge.report.views.leaderboard import verdict
from judge.results.result import Result
from judge.stats.analyze import analyze

SCALE = (1.0, 5.0, ("1", "2", "3", "4", "5"))


def made(values: Mapping[str, Mapping[str, Sequence[float]]], **better: str) -> Result:
    """A run from values by system, column and item."""
    names = list(dict.fromkeys(name for columns in values.values() for name in columns))
    columns = [
        Column(name, "metric", name, better="lower")
        if better.get(name) == "lower"
        else Column(name, "criterion", name, *SCALE)
        for name in names
    ]
    samples = [Sample(f"i{k}", s, "o") for s, of in values.items() for k in range(max(map(len, of.values())))]
    rows = [
        Score(f"i{k}", system, name, value, Provenance("single"))
        for system, of in values.items()
        for name, found in of.items()
        for k, value in enumerate(found)
    ]
    found = analyze(samples, columns, rows)
    return Result(found.table, found.estimates, comparisons=found.comparisons, overall=found.overall)


def wave(mean: float, n: int = 16) -> list[float]:
    return [mean + (k % 3 - 1) / 2 for k in range(n)]


def test_one_is_best() -> None:
    noisy = [value + (0.2 if k % 2 else -0.2) for k, value in enumerate(wave(3.0))]
    text = verdict(made({"a": {"fluency": wave(4.0)}, "b": {"fluency": noisy}}))
    assert text == (
        "a is best on fluency: 3.97 against 2.97 for b, the next one, a difference of 1.00 [0.90, 1.10] over 16 items "
        "(p < 0.001)."
    )


def test_the_lowest_is_best_where_that_is_the_good_end() -> None:
    noisy = [value + (2.0 if k % 2 else -2.0) for k, value in enumerate(wave(60.0))]
    text = verdict(made({"a": {"ter": noisy}, "b": {"ter": wave(40.0)}}, ter="lower"))
    assert text.startswith("b is best on ter: 39.97 against 59.97 for a, the next one, a difference of 20.00 [19.00, ")


def test_the_best_on_the_whole_is_said_to_be_so_on_its_criteria_or_not() -> None:
    a = {"fluency": wave(4.0), "relevance": wave(4.0), "style": wave(3.0)}
    b = {"fluency": wave(3.0), "relevance": wave(2.0), "style": wave(3.0)[::-1]}
    text = verdict(made({"a": a, "b": b}))
    assert text.startswith("a is best on the overall score: ")
    assert text.endswith(" It is best on fluency and relevance and not told apart from the best on style.")


def test_several_are_not_told_apart_and_the_items_it_takes_are_told() -> None:
    a, b = [4.0, 3.0, 5.0, 2.0] * 5, [3.0, 4.0, 4.0, 2.5] * 5
    text = verdict(made({"a": {"fluency": a}, "b": {"fluency": b}, "c": {"fluency": [1.0, 1.5] * 10}}))
    assert text.startswith("a has the highest fluency, 3.50, but b is not told apart from it on 20 items.")
    assert "The difference to b, 0.12 [\u22120." in text
    # The standard deviation of the differences is 0.916, and three tests take p < .05 / 3:
    # (2.394 + 0.842)² · 0.916² / 0.125² = 562.03.
    assert "would take about 563 items" in text


TWO = [0.5, -0.5, 1.0, -1.0, 0.25, 0.0, -0.5, 1.0, 0.5]
RUNS: dict[str, dict[str, list[float]]] = {
    "two systems": {"a": wave(3.0, 9), "b": [v - d for v, d in zip(wave(3.0, 9), TWO, strict=True)]},
    "five systems": {name: [3 + (k * k + n) % (5 + k) / 4 for n in range(24)] for k, name in enumerate("abcde")},
    "a tie before others": {
        "a": wave(3.0),
        "b": wave(3.0)[::-1],
        "c": [v - 0.1 * (k % 2) for k, v in enumerate(wave(3.0))],
    },
    "equal means": {"a": wave(3.0), "b": wave(3.0)[::-1]},
    "the same distance everywhere": {"a": wave(3.0), "b": [v - 0.1 for v in wave(3.0)]},
    "two items": {"a": [4.0, 2.0], "b": [3.0, 2.5], "c": [2.0, 1.0]},
    "enough items for two, not for five": {
        name: [3 + (k + n) % 3 / 4 for n in range(7)] for k, name in enumerate("abcde")
    },
}


@pytest.mark.parametrize("values", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("criteria", [["fluency"], ["fluency", "style"]])
def test_the_items_in_the_verdict_are_those_of_power(
    values: dict[str, list[float]], criteria: list[str], tmp_path: Path
) -> None:
    """The sentence, the Python result and `judge power --pair` answer with one number, or none of them with any."""
    result = made({name: dict.fromkeys(criteria, row) for name, row in values.items()})
    comparison = lead_column(result)
    assert comparison is not None
    leaders = [rank.system for rank in comparison.ranks if rank.rank == 1]
    rivals = [name for name in comparison.best if name not in leaders] or leaders[1:]
    in_verdict = re.search(r"would take about ([\d,]+) items", verdict(result))
    if not rivals:
        assert in_verdict is None
        return
    (scatter,) = result.power(comparison.column, pair=(comparison.best[0], rivals[0]))
    items = scatter.pairs[0].needed() if scatter.pairs else None
    if len(result.table.items) < scatter.least:
        assert "too few to tell any two of the systems apart" in verdict(result)
        assert in_verdict is None
    elif items is None:
        assert in_verdict is None
    else:
        assert in_verdict is not None
        assert int(in_verdict[1].replace(",", "")) == items
    result.save(tmp_path, pages=False)
    pair = f"{comparison.best[0]},{rivals[0]}"
    done = CliRunner().invoke(
        app, ["power", str(tmp_path), "--pair", pair, "--column", comparison.column, "--format", "json"]
    )
    assert json.loads(done.stdout)["columns"][0]["items_for_it"] == items


def test_of_a_pair_that_shares_few_items_no_number_of_items_is_told() -> None:
    text = verdict(made({"a": {"fluency": wave(3.0)}, "b": {"fluency": [3.5, 3.0, 3.0]}, "c": {"fluency": wave(2.0)}}))
    assert text == (
        "b has the highest fluency, 3.17, but no system is told apart from it on 3 items. "
        "3 items are too few to tell b and a apart, whatever they score."
    )


def test_where_none_is_told_apart_that_is_said() -> None:
    three = {name: {"fluency": wave(3.0 - k / 50)[k:] + wave(3.0)[:k]} for k, name in enumerate("abc")}
    text = verdict(made(three))
    assert ", but no system is told apart from it on 16 items." in text


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("ab", "a and b are level on fluency, with 2.97 on 16 items."),
        ("abc", "a, b and c are level on fluency, with 2.97 on 16 items."),
        ("abl", "a and b share the highest fluency, 2.97 on 16 items."),
        ("abn", "a and b share the highest fluency, 2.97, but n is not told apart from a on 16 items. The difference"),
        ("abnm", "a and b share the highest fluency, 2.97, but n and m are not told apart from a on 16 items."),
    ],
)
def test_of_equal_means_none_is_first(values: str, said: str) -> None:
    found = {"a": wave(3.0), "b": wave(3.0)[1:] + wave(3.0)[:1], "c": wave(3.0)[::-1], "l": wave(1.0)}
    found |= {name: [v - 0.05 if k % 2 else v for k, v in enumerate(found["b"])] for name in "nm"}
    assert verdict(made({name: {"fluency": found[name]} for name in values})).startswith(said)


def test_names_are_counted_where_they_are_many() -> None:
    many = {f"s{k}": {"fluency": wave(3.0 - k / 50)[k:] + wave(3.0 - k / 50)[:k]} for k in range(6)}
    many["low"] = {"fluency": wave(1.5)}
    assert "but 5 systems are not told apart from it" in verdict(made(many))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"a": wave(3.0)}, "On fluency no system is best (one system has values: nothing to compare it with)."),
        ({"a": [3.0], "b": [4.0]}, "On fluency no system is best (one item: too few for intervals and tests)."),
        ({"a": [3.0, 3.0], "b": [3.0, 3.0]}, "On fluency no system is best (all values are equal)."),
    ],
)
def test_where_nothing_can_be_said_the_reason_is(values: Mapping[str, list[float]], said: str) -> None:
    assert verdict(made({system: {"fluency": found} for system, found in values.items()})) == said


def test_nothing_is_said_where_nothing_was_tested(result: Result, tested: Result) -> None:
    assert verdict(result) == ""
    assert verdict(replace(tested, comparisons=())) == ""


ROWS = [
    {"item": f"i{k}", "system": s, "source": "x", "output": f"{s} {k}", "references": ["a 1"]}
    for k in range(8)
    for s in "ab"
]


def judged(reply: Callable[[Any], str], models: str = "m", **options: Any) -> Result:
    judges = [judge.ScriptedProvider(reply, model=model) for model in models]
    return judge.evaluate(ROWS, model=judges, cache=False, **{"criteria": ["coherence"], "metrics": [], **options})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "No system can be compared: all 16 judgments failed (ParseError)."),
        ({"models": "mn"}, "No system can be compared: all 32 judgments failed (ParseError)."),
        (
            {"metrics": ["rouge"], "set": {"rouge": {"types": ["rouge1"]}}},
            "All 16 judgments failed (ParseError), and so the systems are compared by metrics alone. "
            "a is best on rouge1: ",
        ),
    ],
)
def test_where_all_judgments_failed_that_is_said(options: dict[str, Any], said: str) -> None:
    assert verdict(judged(lambda _: "no", **options)).startswith(said)


def test_so_it_is_of_comparisons_and_of_metrics() -> None:
    ranked = judge.rank(ROWS[:4], model=judge.ScriptedProvider(lambda _: "no"), cache=False)
    assert verdict(ranked) == "No system can be compared: all 4 judgments failed (ParseError)."
    bare = [{**row, "references": []} for row in ROWS]
    measured = judge.evaluate(bare, criteria=[], metrics=["bleu", "chrf"])
    assert verdict(measured).startswith("No system can be compared: all 32 values failed (")
    (alone,) = (judge.evaluate(bare[:1], criteria=[], metrics=["chrf"]),)
    assert verdict(alone).startswith("No system can be compared: the only value failed (")


def test_the_kinds_of_failure_are_counted_where_there_are_several(result: Result) -> None:
    rows = [Failure(f"i{k}", "a", "coherence", "request", "Refused" if k else "Other", "no") for k in range(3)]
    table = replace(result.table, scores=(), failures=tuple(rows))
    said = verdict(replace(result, table=table, estimates={}))
    assert said == "No system can be compared: all 3 judgments failed (2 Refused, 1 Other)."


def test_nothing_of_it_is_said_where_one_judgment_did_not_fail() -> None:
    assert "failed" not in verdict(judged(lambda request: "4" if "a 3" in str(request) else "no"))


def test_a_column_that_cannot_tell_gives_way_to_one_that_can() -> None:
    values = {"a": {"fluency": [4.0], "style": wave(4.0)}, "b": {"fluency": [3.0], "style": wave(3.0)}}
    found = lead_column(made(values))
    assert found is not None
    assert found.column == "style"


def test_a_name_stays_on_its_line_and_within_bounds() -> None:
    text = verdict(made({"a\x1b[31m\nb" + "x" * 100: {"fluency": wave(4.0)}, "c": {"fluency": wave(3.0)}}))
    assert "\x1b" not in text
    assert "\n" not in text
    assert text.startswith("a\\x1b[31m bxxx")
    assert text.index(" is best") == 60


def test_a_ranking_says_who_comes_first_and_whether_the_intervals_overlap(ranking: Result) -> None:
    (of,) = ranking.rankings
    first, second = of.standings[:2]
    text = verdict(ranking)
    assert text.startswith(f"{first.system} ranks first on ")
    assert f"{100 * first.win_rate:.1f}% [" in text
    assert f" for {second.system}, the next one" in text
    assert first.low is not None
    assert second.high is not None
    assert ("do not overlap" in text) == (first.low > second.high)
    apart = replace(first, low=0.99, high=1.0)
    assert "; the intervals do not overlap." in verdict(
        replace(ranking, rankings=(replace(of, standings=(apart, *of.standings[1:])),))
    )


@pytest.mark.parametrize(
    ("preferred", "said"),
    [
        ({}, "a and b are level on better: each has a win rate of 50.0% [0.3, 99.7]."),
        (
            {"clear": "ab"},
            "a and b are level on better: each has a win rate of 50.0% [0.3, 99.7]. a ranks first on clear.",
        ),
        ({"better": "ab", "clear": ""}, "a ranks first on better with a win rate of 100.0% [1.2, 100.0], against"),
        ({"better": "ac bc"}, "a and b are level on better before all others: each has a win rate of 75.0% ["),
    ],
)
def test_of_equal_win_rates_none_is_first(preferred: dict[str, str], said: str) -> None:
    names = "abc" if "ac bc" in preferred.values() else "ab"
    columns = [Column(name, "criterion", name, 0.0, 1.0) for name in dict.fromkeys(("better", *preferred))]
    rows = [
        Score(
            item,
            one,
            column.name,
            0.5 + (one + other in won) / 2 - (other + one in won) / 2,
            Provenance("single"),
            other,
        )
        for column in columns
        for won in (preferred.get(column.name, "").split(),)
        for item in ("i1", "i2")
        for one, other in permutations(names, 2)
    ]
    samples = [Sample(item, name, "o") for item in ("i1", "i2") for name in names]
    found = analyze(samples, columns, rows, orders=2)
    assert verdict(Result(found.table, {}, rankings=found.rankings)).startswith(said)
