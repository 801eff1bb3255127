"""`judge plan RUN`: the number of items that a difference needs, and refused input."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge as package
from judge.core.format import rough_count
from judge.providers.scripted import Reply, ScriptedProvider
from tests.factories import has_line, write_jsonl

ROWS = [
    {"item": f"i{n}", "system": system, "source": f"On day {n}.", "output": f"{system} day {n}"}
    for n in range(9)
    for system in "abc"
]


def _script(request: Any) -> Reply:
    """Answer so that a − b is 1 or 0 and a − c is 2: a − b and b − c vary, a − c does not."""
    text = request.messages[0]["content"]
    even = any(
        f"day {n}\n" in text or f"day {n}<" in text or f"day {n}." in text for n in (0, 2, 4, 6)
    )
    return {"5" if "a day" in text else "3" if "c day" in text else ("4" if even else "5"): 1.0}


@pytest.fixture
def power(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """A function that runs the command in an empty folder."""
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *args: command("plan", *args)


def words(text: str) -> str:
    return " ".join(text.split())


def rows(out: str) -> dict[str, list[str]]:
    """Return the cells of the table by column."""
    lines = (
        out.partition("Pairs: ")[0].partition("SD: ")[0].partition("\ncolumn ")[2].splitlines()[1:]
    )
    return {
        line.split()[0]: [cell for cell in line.split()[1:] if cell not in "abc–"] for line in lines
    }


def test_power_of_a_run(power: Callable[..., Any]) -> None:
    package.evaluate(
        ROWS, ["relevance", "coherence"], model=ScriptedProvider(_script), metrics=[], out="r"
    )
    sample = json.loads(Path("r/run.json").read_text("utf-8"))
    differences = [d["estimate"] for d in sample["comparisons"][0]["differences"]]
    assert [d["n"] for d in differences] == [9, 9, 9]
    completed = power("r", "--detect", "0.1")
    assert completed.code == 0, completed.err
    table = rows(completed.out)
    assert list(table) == ["relevance", "coherence", "overall"]
    assert table["relevance"] == table["coherence"]
    needed = int(table["overall"][-1].replace(",", ""))
    sentence = f"{rough_count(needed)} items"
    assert has_line(words(completed.out), "0.1 in overall", sentence, "80% power")
    assert has_line(words(completed.out), "3 systems", "below 0.017", ".05 / 3 comparisons")
    package.evaluate(
        ROWS,
        ["relevance"],
        model=ScriptedProvider(_script),
        metrics=[],
        against=ROWS[0]["system"],
        out="against",
    )
    one = words(power("against", "--detect", "0.1").out)
    assert has_line(one, "0.1 in relevance", ROWS[0]["system"], "another system")
    assert has_line(one, "3 systems", "below 0.025", ".05 / 2 comparisons")
    many = power("r", "--items", "900")
    assert {cells[0] for cells in rows(many.out).values()} == {"900"}
    few = power("r", "--items", "6")
    assert rows(few.out)["overall"][-3:] == ["too", "few", "items"]
    facts = ("relevance, coherence, overall", "6 items", "no difference", "3 systems", "At least 7")
    assert has_line(words(few.out), *facts)


def test_one_pair(power: Callable[..., Any]) -> None:
    package.evaluate(ROWS, ["relevance"], model=ScriptedProvider(_script), metrics=[], out="r")
    completed = power("r", "--pair", "a,b")
    assert completed.code == 0, completed.err
    (column,) = json.loads(power("r", "--pair", "a,b", "--json").out)["columns"]
    (pair,) = column["pairs"]
    assert (pair["systems"], pair["items"], column["tests"], column["min_items"]) == (
        ["a", "b"],
        9,
        3,
        7,
    )
    assert pair["difference"] == pytest.approx(4 / 9)
    needed = f"{rough_count(pair['items_for_observed'])} items"
    assert has_line(words(completed.out), "a and b", "0.444 in relevance", needed)
    assert rows(completed.out)["relevance"][:2] == ["9", "+0.444"]
    smaller = power("r", "--pair", "a,b", "--detect", "0.1", "--format", "csv")
    (record,) = csv.DictReader(smaller.out.splitlines())
    assert (
        int(record["items_for_observed"])
        == pair["items_for_observed"]
        < int(record["items_needed"])
    )
    enough = power("r", "--pair", "c,b")
    facts = ("c and b", "1.56 in relevance", "already significant", "p = 0.012", "9 items")
    assert has_line(words(enough.out), *facts)
    assert rows(enough.out)["relevance"][-1] == "significant"
    report = words(power("r", "--pair", "a,c").out)
    assert has_line(report, "differences are the same", "all shared items")


@pytest.mark.parametrize(
    ("pair", "facts"),
    [
        ("a,x", ("--pair:", "system 'x'")),
        ("a", ("--pair a:", "two systems", "--pair a,b")),
        ("a,a", ("name two",)),
    ],
)
def test_refuses_an_unknown_pair_of_systems(
    power: Callable[..., Any], pair: str, facts: tuple[str, ...]
) -> None:
    package.evaluate(ROWS, ["relevance"], model=ScriptedProvider(_script), metrics=[], out="r")
    completed = power("r", "--pair", pair)
    assert completed.code == 2
    assert has_line(completed.err, *facts)


def test_power_explains_a_missing_number(power: Callable[..., Any]) -> None:
    alone = [row for row in ROWS if row["system"] == "a"]
    package.evaluate(alone, ["relevance"], model=ScriptedProvider(_script), metrics=[], out="r")
    completed = power("r", "--detect", "0.1")
    assert completed.code == 0
    assert has_line(completed.out, "No pair", "differences")
    assert has_line(completed.out, "relevance", "only one system")


def test_a_ranking_has_no_differences(power: Callable[..., Any]) -> None:
    package.rank(ROWS[:6], model=ScriptedProvider(lambda _: {"A": 1.0}), out="r")
    completed = power("r")
    assert completed.code == 2
    assert has_line(completed.err, "r: a ranking", "in pairs")


@pytest.mark.parametrize(
    ("args", "facts"),
    [
        (("r", "--detect", "0"), ("--detect 0:", "above 0")),
        (("r", "--detect", "-1"), ("--detect -1:", "above 0")),
        (("r", "--detect", "nan"), ("--detect nan:", "above 0")),
        (("r", "--items", "1"), ("--items 1:", "2 or more")),
        (("r", "--limit", "3"), ("--limit:", "r is finished", "name its data")),
        (("r", "--rank"), ("--rank:", "r is finished", "name its data")),
        (
            ("rows.jsonl", "--detect", "0.1"),
            ("--detect 0.1:", "finished run", "instead of rows.js"),
        ),
        (
            ("nowhere", "--pair", "a,b"),
            ("--pair a,b:", "finished run", "instead of nowhere"),
        ),
    ],
)
def test_power_refuses_bad_options(
    power: Callable[..., Any], args: tuple[str, ...], facts: tuple[str, ...]
) -> None:
    package.evaluate(ROWS, ["relevance"], model=ScriptedProvider(_script), metrics=[], out="r")
    write_jsonl("rows.jsonl", ROWS)
    completed = power(*args)
    assert (completed.code, completed.out) == (2, "")
    assert has_line(completed.err, *facts)


def test_python_answers_as_the_command_does(power: Callable[..., Any]) -> None:
    result = package.evaluate(
        ROWS, ["relevance", "coherence"], model=ScriptedProvider(_script), metrics=[], out="r"
    )
    by_command = json.loads(power("r", "--detect", "0.1", "--json").out)
    by_python = json.loads(result.power(0.1).report("json"))
    assert by_python["columns"] == by_command["columns"]
    with pytest.raises(package.ConfigError, match="above 0"):
        result.power(0.0)
    with pytest.raises(package.ConfigError, match="unknown system"):
        result.power(pair=("a", "nobody"))


@pytest.mark.parametrize(
    ("difference", "fitting"), [(0.05, {"small"}), (30, {"large"}), (3, {"small", "large"})]
)
def test_a_difference_applies_to_columns_with_a_large_enough_scale(
    difference: float, fitting: set[str]
) -> None:
    rows = [
        {"item": f"i{k}", "system": system, "output": f"{'x' * (k * k % 7 + k % 3 * place)}{k}"}
        for k in range(12)
        for place, system in enumerate("ab")
    ]
    criteria = ["small: How small is it? (1-5)", "large: How large is it? (0-100)"]
    result = package.evaluate(
        rows, criteria, model=lambda prompt: 1 + prompt.count("x") % 5, metrics=[]
    )
    power = result.power(difference)
    computed = {
        column.column: [pair.items_needed is not None for pair in column.pairs]
        for column in power.columns
        if column.column != "overall"
    }
    assert computed == {name: [name in fitting] for name in ("small", "large")}
    unfit = {"small", "large"} - fitting
    assert all(any(name in note for note in power.notes) for name in unfit)


def test_equal_means_of_two_systems_differ_by_0_in_one_comparison(
    power: Callable[..., Any],
) -> None:
    scores = [(f"i{n}", "a", 3 + n % 2) for n in range(8)]
    scores += [(f"i{n}", "b", 4 - n % 2) for n in range(8)]
    table = [{"item": item, "system": system, "helpful": score} for item, system, score in scores]
    package.evaluate(table, judge_columns=["helpful"], scale="1-5", out="r")
    out = power("r").out
    (row,) = [line for line in out.splitlines() if line.startswith("helpful")]
    assert row.split()[5] == "0"
    assert ".05 / 1 comparison," in words(out)
