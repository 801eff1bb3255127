"""`judge.slices`: means and differences in parts of the data."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judge
from judge.commands.slices.statistics import slice_means
from judge.core.errors import ConfigError
from judge.core.records import Column, Request
from judge.core.signature import Signature
from judge.results.result import Result
from tests.factories import has_line

CRITERION = {"name": "clear", "question": "Is the text clear?", "show": []}
CHANNELS = ["email", "phone", "web"]


def run(shift: dict[tuple[str, str], float], *, items: int = 45, out: Path | None = None) -> Result:
    """Return systems a and b with scores near 2.5, shifted by `shift` for a channel and a system."""
    rows = [
        {"item": f"i{n}", "system": system, "output": f"{system} {n}", "channel": CHANNELS[n % 3]}
        for n in range(items)
        for system in "ab"
    ]

    def reply(request: Request) -> dict[int, float]:
        words = request.messages[-1]["content"]
        row = next(row for row in rows if f"\n{row['output']}\n" in words)
        value = (
            2.5
            + random.Random(row["output"]).uniform(-0.4, 0.4)
            + shift.get((row["channel"], row["system"]), 0.0)
        )
        share = (value - 1) / 4
        return {1: 1 - share, 5: share}

    provider = judge.ScriptedProvider(reply)
    return judge.evaluate(rows, [CRITERION], model=provider, metrics=[], cache=False, out=out)


def test_a_slice_below_the_rest_is_found(tmp_path: Path) -> None:
    run({("phone", "b"): -0.8}, out=tmp_path)
    slices = judge.slices(tmp_path, "channel")
    assert dict(slices.items) == {"email": 15, "phone": 15, "web": 15}
    assert [(mean.slice, mean.system) for mean in slices.worst] == [("phone", "b")]
    (worst,) = slices.worst
    others = [
        mean.mean.value for mean in slices.means if mean.system == "b" and mean.slice != "phone"
    ]
    assert worst.gap == pytest.approx(
        worst.mean.value - sum(others) / 2
    )  # the same number of items each
    console = slices.report()
    assert has_line(console, "Significantly worse", "channel = phone (b)")
    assert "▼" in console
    data = json.loads(slices.report("json"))
    assert (data["schema"], data["by"], data["items"]["phone"]) == ("judge.slices/1", "channel", 15)
    assert "slices-clear" in slices.report("html")


def test_a_slice_that_contradicts_the_whole_is_named() -> None:
    slices = judge.slices(
        run({("email", "b"): 1.4, ("web", "b"): 1.4, ("phone", "b"): -0.9}), "channel"
    )
    assert [(each.slice, each.better, each.worse) for each in slices.contradictions] == [
        ("phone", "b", "a")
    ]
    assert has_line(" ".join(slices.report().split()), "In phone, a is better", "b on clear")


@pytest.mark.slow
def test_equal_slices_are_seldom_marked() -> None:
    # Without a difference, 5% of data may get a mark. More than 6 of 40 has a probability below 0.4%.
    column = Column("clear", "criterion", Signature(), 1.0, 5.0, ("1", "5"), values=(1.0, 5.0))
    inside = {name: np.arange(30) % 3 == place for place, name in enumerate(CHANNELS)}
    marked = 0
    for seed in range(40):
        values = np.random.default_rng(seed).normal(3, 1, (4, 30)).clip(1, 5)
        means = slice_means({"clear": (column, values)}, list("abcd"), inside, n_resamples=200)
        marked += any(mean.significant for mean in means)
    assert marked <= 6


def test_slices_accept_missing_values_and_note_an_unfinished_run() -> None:
    # 5 of 6 items in each slice have a value, so many permutations give one slice too few values
    column = Column("clear", "criterion", Signature(), 1.0, 5.0, ("1", "5"), values=(1.0, 5.0))
    values = np.array([[1.0, 2.0, 1.0, 2.0, 1.0, np.nan, 4.0, 5.0, 4.0, 5.0, 4.0, np.nan]])
    inside = {"x": np.arange(12) < 6, "y": np.arange(12) >= 6}
    means = slice_means({"clear": (column, values)}, ["a"], inside, n_resamples=500)
    assert [mean.significant for mean in means] == [True, True]
    result = run({})
    result = replace(result, info=replace(result.info, status="interrupted"))
    assert judge.slices(result, "channel").notes[0].startswith("This run was interrupted.")


def replies(n_failing: int) -> Result:
    """Return 60 texts of one system by mail and chat; the first texts by mail are not solved."""
    rows = [
        {"item": f"i{n}", "output": f"Text {n}.", "channel": "mail" if n < 30 else "chat"}
        for n in range(60)
    ]
    failing = [f"\nText {n}.\n" for n in range(n_failing)]

    def reply(request: Request) -> str:
        prompt = request.messages[-1]["content"]
        return "fail" if any(text in prompt for text in failing) else "pass"

    return judge.evaluate(
        rows,
        ["solved: Is it solved? (pass/fail)"],
        model=judge.ScriptedProvider(reply),
        metrics=[],
        cache=False,
        weighting="single",
    )


def test_a_share_is_compared_in_points_and_the_only_system_is_not_named() -> None:
    (_, sentence, *_) = (
        judge.slices(replies(15), "channel")
        .report("json")
        .split('"finding": [')[1]
        .split('"')[1::2]
    )
    assert has_line(sentence, "solved in mail", "50%", "50 points below", "p < 0.001")


def test_the_clearest_difference_is_named_if_none_is_significant() -> None:
    console = judge.slices(replies(5), "channel").report()
    assert has_line(console.splitlines()[:1], "No slice of channel", "significantly worse")
    assert has_line(console, "solved in mail", "below the rest", "p = 0.")


def test_the_clearest_difference_names_its_system() -> None:
    console = " ".join(judge.slices(run({}), "channel").report().split())
    assert re.search(r"clear of [ab] in \w+ is", console)


def test_no_difference_is_named_if_all_means_are_equal() -> None:
    rows = [
        {"item": f"i{n}", "output": f"Text {n % 2}.", "channel": "mail" if n < 20 else "chat"}
        for n in range(40)
    ]
    provider = judge.ScriptedProvider(
        lambda request: "fail" if "Text 1." in request.messages[-1]["content"] else "pass"
    )
    criterion = "solved: Is it solved? (pass/fail)"
    result = judge.evaluate(rows, criterion, model=provider, metrics=[], cache=False)
    console = judge.slices(result, "channel").report()
    assert has_line(console.splitlines()[:1], "No slice of channel", "significantly worse")
    assert "The clearest difference" not in console


def test_no_difference_is_named_if_all_are_like_chance() -> None:
    assert "clearest" not in judge.slices(replies(1), "channel").report()


def test_small_slices_are_shown_and_not_tested() -> None:
    slices = judge.slices(run({}, items=12), "channel")
    assert {mean.gap for mean in slices.means} == {None}
    (note,) = slices.notes
    assert has_line(note, "Fewer than 5 items", "not tested", "email, phone, web")
    assert has_line(slices.report().splitlines()[:1], "No slice of channel", "tested")


def test_generations_of_an_item_are_one_item_of_a_slice() -> None:
    rows = [
        {
            "item": n,
            "system": "a",
            "output": "a b",
            "reference": "a b",
            "channel": CHANNELS[n % 3],
            "generation": g,
        }
        for n in range(15)
        for g in (1, 2)
    ]
    slices = judge.slices(judge.evaluate(rows, [], metrics=["rouge"], cache=False), "channel")
    assert dict(slices.items) == {"email": 5, "phone": 5, "web": 5}
    assert {mean.column for mean in slices.means} == {"rouge1"}  # no criterion, so the first metric


@pytest.mark.parametrize(
    ("by", "rows", "words"),
    [
        ("chanel", {}, "did you mean 'channel'"),
        ("note", {"note": lambda n, system: system}, "need the same value"),
        ("note", {"note": lambda n, system: str(n)}, "60 values, more than 50"),
        ("note", {"note": lambda n, system: "x"}, "nothing to compare"),
    ],
)
def test_a_column_that_makes_no_slices_is_refused(
    by: str, rows: dict[str, Any], words: str
) -> None:
    data = [
        {"item": n, "system": system, "output": "x", "channel": "web"}
        | {name: value(n, system) for name, value in rows.items()}
        for n in range(60)
        for system in "ab"
    ]
    result = judge.evaluate(data, [], metrics=["stats"], cache=False)
    with pytest.raises(ConfigError, match=words):
        judge.slices(result, by)


@pytest.mark.parametrize(
    ("options", "values"),
    [
        ({"judge_columns": "good"}, ("yes", "no")),
        ({"judge_columns": "good"}, (5, 2)),
        ({"score_columns": "good"}, (5, 2)),
    ],
)
def test_a_column_of_scores_is_refused(options: dict[str, Any], values: tuple[Any, Any]) -> None:
    rows = [{"item": n, "output": "x", "good": values[n % 2], "channel": "web"} for n in range(12)]
    result = judge.evaluate(rows, [], metrics=[], cache=False, **options)
    with pytest.raises(ConfigError, match=r"scores of the run.*channel"):
        judge.slices(result, "good")


def test_data_without_further_columns_have_no_slices() -> None:
    result = judge.evaluate(
        [{"item": 1, "system": "a", "output": "x"}], [], metrics=["stats"], cache=False
    )
    with pytest.raises(ConfigError, match="only the columns"):
        judge.slices(result, "channel")


def test_several_columns_at_once_are_refused() -> None:
    with pytest.raises(ConfigError, match="only one column can define"):
        judge.slices(replies_by("channel", "agent"), "channel,agent")


def replies_by(*columns: str) -> Result:
    """Return a run of two texts with these columns."""
    rows = [{"item": f"i{n}", "output": f"Text {n}.", **dict.fromkeys(columns, n)} for n in (1, 2)]
    model = judge.ScriptedProvider(lambda _: "3")
    return judge.evaluate(rows, [CRITERION], model=model, metrics=[], cache=False)
