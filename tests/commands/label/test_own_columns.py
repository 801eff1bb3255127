"""Raters see the data's own columns, except those with a system, a score or a rating."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from judge.commands.label.command import Labelling
from judge.commands.label.own_columns import own_columns
from judge.commands.label.preparation import prepare_labelling
from judge.commands.label.server import page
from judge.config import RunConfig
from judge.core.records import Sample
from tests.factories import write_jsonl


def samples(systems: tuple[str, ...] = ("a", "b"), **columns: Any) -> list[Sample]:
    """Return texts of two items. A column is one value, or a function of item and system."""

    def value(column: Any, item: str, system: str) -> Any:
        return column(item, system) if callable(column) else column

    return [
        Sample(
            item,
            system,
            f"{item} by {system}",
            extra={name: value(column, item, system) for name, column in columns.items()},
        )
        for item in ("one", "two")
        for system in systems
    ]


def test_facts_of_an_item_are_shown_in_the_order_of_the_data() -> None:
    rows = samples(
        channel="mail", topic=lambda item, _: item, tags=["new", "urgent"], empty="", none=None
    )
    assert own_columns(rows, [], []) == {
        item: (("channel", "mail"), ("topic", item), ("tags", "new\nurgent"))
        for item in ("one", "two")
    }


def test_a_column_that_differs_between_the_texts_of_an_item_is_hidden() -> None:
    rows = samples(channel="mail", latency=lambda item, system: f"{item}{system}")
    assert own_columns(rows, [], []) == {item: (("channel", "mail"),) for item in ("one", "two")}


@pytest.mark.parametrize(
    "name",
    ["gpt_score", "rating", "human", "Annotator", "model", "system_prompt", "rougeL", "polite", "anna.polite", "a", "A"],
)  # fmt: skip
def test_a_column_whose_name_tells_a_score_a_rater_or_a_system_is_hidden(name: str) -> None:
    rows = samples(**{name: 3}, channel="mail")
    assert own_columns(rows, [], ["polite", "anna"])["one"] == (("channel", "mail"),)


def test_a_column_that_is_shown_anyway_is_not_shown_twice() -> None:
    assert own_columns(samples(request="Where?"), ["request"], [])["one"] == ()


def test_nothing_is_shown_if_each_item_has_one_system_and_the_data_several() -> None:
    rows = [row for row in samples(channel="mail") if (row.item, row.system) != ("one", "b")]
    assert own_columns(rows, [], [])["one"] == (("channel", "mail"),)
    alternating = [row for row in rows if (row.item, row.system) != ("two", "a")]
    assert own_columns(alternating, [], []) == {}
    assert own_columns(samples(("a",), channel="mail"), [], [])["two"] == (("channel", "mail"),)


def labelling(folder: Path) -> Labelling:
    rows = [
        {
            "item": item, "system": system, "source": f"Source of {item}.", "output": f"{item} by someone {place}.",
            "channel": f"channel of {item}", "model_name": system, "polite_judged": 4,
        }
        for item in ("one", "two")
        for place, system in enumerate(("zeta-large", "alpha-mini"))
    ]  # fmt: skip
    write_jsonl(folder / "data.jsonl", rows)
    config = RunConfig.load(
        options={"data": folder / "data.jsonl", "criteria": "fit: Does the text fit its source?"}
    )
    return prepare_labelling(config, ("anna", "ben"), folder / "ratings.jsonl", repeat=0)


@pytest.mark.parametrize("served", [True, False])
def test_the_page_has_the_columns_of_items_and_stays_blind(tmp_path: Path, served: bool) -> None:
    html = page(labelling(tmp_path), "anna" if served else None, served=served)
    match = re.search(r'id="content">(.*?)</script>', html, re.DOTALL)
    assert match is not None
    content = json.loads(match[1])
    shown = [columns for columns in content["own"].values()]
    assert sorted(shown) == 2 * [[["channel", "channel of one"]]] + 2 * [
        [["channel", "channel of two"]]
    ]
    assert not [
        name for name in ("zeta-large", "alpha-mini", "model_name", "polite_judged") if name in html
    ]


def test_own_columns_leave_the_ids_of_texts_as_they_are(tmp_path: Path) -> None:
    with_columns = labelling(tmp_path)
    lines = (tmp_path / "data.jsonl").read_text("utf-8").splitlines()
    without = [json.loads(line) for line in lines]
    for row in without:
        del row["channel"]
    write_jsonl(tmp_path / "data.jsonl", without)
    config = RunConfig.load(
        options={"data": tmp_path / "data.jsonl", "criteria": "fit: Does the text fit its source?"}
    )
    bare = prepare_labelling(config, ("anna", "ben"), tmp_path / "ratings.jsonl", repeat=0)
    assert bare.id == with_columns.id
