"""`judge power`: of a run and without one, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge as package
from judge.providers.scripted import Reply, ScriptedProvider

ROWS = [
    {"item": f"i{n}", "system": system, "source": f"On day {n}.", "output": f"{system} day {n}"}
    for n in range(9)
    for system in "abc"
]


def _script(request: Any) -> Reply:
    """Differences a − b of 1 or 0, and a − c of 2: the first alone scatter, as do b − c."""
    text = request.messages[0]["content"]
    even = any(f"day {n}\n" in text or f"day {n}<" in text or f"day {n}." in text for n in (0, 2, 4, 6))
    return {"5" if "a day" in text else "3" if "c day" in text else ("4" if even else "5"): 1.0}


@pytest.fixture
def power(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The command, in an empty folder."""
    monkeypatch.setenv("COLUMNS", "100")
    return lambda *args: command("power", *args)


def _rows(out: str) -> dict[str, list[str]]:
    """The table's cells, by column."""
    lines = out.partition("sd: ")[0].splitlines()[1:]
    return {line.split()[0]: line.split()[1:] for line in lines if not line.startswith(" ")}


def test_without_a_run(power: Callable[..., Any]) -> None:
    done = power("--sd", "0.8", "--items", "50", "--difference", "0.1")
    assert done.code == 0
    assert done.out.splitlines()[:3] == [
        "50 items find a difference of 0.317 at 80% power",
        "a difference of 0.1 takes 503 items",
        "50 items find a difference of 0.1 at 14% power",
    ]
    assert "503" in power("--sd", "0.8", "--difference", "-0.1").out
    assert "at 90% power" in power("--sd", "0.8", "--items", "50", "--power", "0.9").out


def test_of_a_run(power: Callable[..., Any]) -> None:
    package.evaluate(ROWS, ["relevance", "coherence"], model=ScriptedProvider(_script), metrics=[], out="r")
    sample = json.loads(Path("r/run.json").read_text("utf-8"))
    differences = [d["estimate"] for d in sample["comparisons"][0]["differences"]]
    assert [d["n"] for d in differences] == [9, 9, 9]
    done = power("r", "--difference", "0.1")
    assert done.code == 0, done.err
    rows = _rows(done.out)
    assert list(rows) == ["relevance", "coherence", "overall"]
    # The pair that differs by 2 everywhere does not scatter.
    assert rows["relevance"][:5] == ["a", "–", "b", "(median)", "9"] or rows["relevance"][:3] == ["b", "–", "c"]
    assert rows["relevance"] == rows["coherence"]
    assert "3 systems are 3 pairs, so p has to be below .05 / 3 = 0.017" in " ".join(done.out.split())
    only = power("r", "--column", "overall", "--items", "900")
    assert {name: cells[4] for name, cells in _rows(only.out).items()} == {"overall": "900"}
    few = power("r", "--column", "overall", "--items", "6")
    assert _rows(few.out)["overall"][-3:] == ["too", "few", "items"]
    assert "overall: 6 items are too few to tell any two of 3 systems apart" in " ".join(few.out.split())


def test_one_pair(power: Callable[..., Any]) -> None:
    package.evaluate(ROWS, ["relevance"], model=ScriptedProvider(_script), metrics=[], out="r")
    done = power("r", "--pair", "a,b", "--difference", "0.1", "--column", "relevance")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "a less b"
    (told,) = json.loads(power("r", "--pair", "a,b", "--column", "relevance", "--format", "json").out)["columns"]
    assert (told["pair"], told["items"], told["tests"], told["least_items"]) == (["a", "b"], 9, 3, 7)
    assert told["difference"] == pytest.approx(4 / 9)
    cells = done.out.splitlines()[2].split()
    assert cells[:3] == ["relevance", "9", "+0.444"]
    assert int(cells[5]) == told["items_for_it"] < int(cells[6])
    assert "a – b: " not in power("r", "--pair", "a,c").out
    assert "the difference is the same in every item" in " ".join(power("r", "--pair", "a,c").out.split())


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("a,x", "--pair: unknown system 'x'"),
        ("a", "--pair a: name two systems, such as --pair a,b"),
        ("a,a", "name two"),
    ],
)
def test_a_pair_that_is_none(power: Callable[..., Any], pair: str, said: str) -> None:
    package.evaluate(ROWS, ["relevance"], model=ScriptedProvider(_script), metrics=[], out="r")
    done = power("r", "--pair", pair)
    assert done.code == 2
    assert said in done.err


def test_what_cannot_be_said_is_said(power: Callable[..., Any]) -> None:
    alone = [row for row in ROWS if row["system"] == "a"]
    package.evaluate(alone, ["relevance"], model=ScriptedProvider(_script), metrics=[], out="r")
    done = power("r", "--difference", "0.1")
    assert done.code == 0
    assert set(_rows(done.out)["relevance"]) == {"–"}
    assert "relevance: one system has values: nothing to compare it with" in done.out


def test_a_ranking_has_no_differences(power: Callable[..., Any]) -> None:
    package.rank(ROWS[:6], model=ScriptedProvider(lambda _: {"A": 1.0}), out="r")
    done = power("r")
    assert done.code == 2
    assert "r: texts were compared two by two" in done.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "give the folder of a run, or --sd with --items or --difference"),
        (("--sd", "1"), "give the folder of a run"),
        (("--sd", "1", "--items", "5", "--column", "x"), "give the folder of a run"),
        (("r", "--sd", "1"), "give the folder of a run"),
        (("nowhere",), "nowhere: no run is there (no run.json); name a folder that judge run has written"),
        (("--sd", "0", "--items", "5"), "--sd 0: has to be above 0"),
        (("--sd", "nan", "--items", "5"), "--sd nan: has to be above 0"),
        (("--sd", "1", "--items", "1"), "--items 1: has to be 2 or more"),
        (("--sd", "1", "--difference", "0"), "--difference 0: has to be a number other than 0"),
        (("--sd", "1", "--items", "5", "--power", "1"), "--power 1: has to be between 0.05 and 1"),
    ],
)
def test_what_it_refuses(power: Callable[..., Any], args: tuple[str, ...], said: str) -> None:
    done = power(*args)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_column_that_is_not_there(power: Callable[..., Any]) -> None:
    package.evaluate(ROWS, ["relevance"], model=ScriptedProvider(_script), metrics=[], out="r")
    done = power("r", "--column", "relevanc")
    assert done.code == 2
    assert "did you mean 'relevance'?" in done.err
