"""Ratings in a DataFrame or a list. Oracle: the same ratings in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judge
from judge.core.records import Sample
from judge.data import samples
from judge.data.ratings import read_ratings
from judge.providers.scripted import ScriptedProvider
from tests.factories import write_jsonl

SYSTEMS = ("gpt-4 ", " tiny", "base")
ROWS = [
    {"item": f"i{n}", "system": system, "output": f"{system.strip()} wrote {n} words", "source": "A source."}
    for n in range(6) for system in SYSTEMS
]  # fmt: skip
RATINGS = [
    {
        "item": row["item"],
        "system": row["system"].strip(),
        "rater": rater,
        "criterion": "fluency",
        "value": value,
    }
    for number, row in enumerate(ROWS)
    for rater, value in (("anna", 1 + number % 5), ("ben", 1 + number % 4))
]
FORMS: dict[str, Callable[[Path], Any]] = {
    "DataFrame": lambda _: pd.DataFrame(RATINGS),
    "list": lambda _: RATINGS,
    "iterator": lambda _: iter(RATINGS),
    "path": lambda path: path,
    "text": str,
}


def run(**options: Any) -> judge.Result:
    return judge.evaluate(
        ROWS, "fluency", model=ScriptedProvider(lambda _: {"4": 1.0}), metrics=[], **options
    )


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.jsonl"
    write_jsonl(path, RATINGS)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_a_run_takes_ratings_in_every_form(form: str, sheet: Path) -> None:
    expected = [sample.ratings for sample in run(ratings=sheet).table.samples]
    assert [sample.ratings for sample in run(ratings=FORMS[form](sheet)).table.samples] == expected
    assert all(expected)


@pytest.mark.parametrize("form", FORMS)
def test_validate_takes_ratings_in_every_form(form: str, sheet: Path) -> None:
    result = run()
    expected = judge.validate(result, ratings=sheet, n_resamples=20).rated
    rated = judge.validate(result, ratings=FORMS[form](sheet), n_resamples=20).rated
    assert rated == expected


def test_a_wrong_row_of_ratings_in_memory_is_named() -> None:
    with pytest.raises(judge.JudgeError, match=r"row 2: .*no item"):
        judge.validate(run(), ratings=[RATINGS[0], {**RATINGS[1], "item": None}])


def test_columns_are_mapped_by_one_name_everywhere() -> None:
    rows = [{"text_id": "a", "who": "x", "said": "Hello"}]
    columns = {"item": "text_id", "system": "who", "output": "said"}
    (sample,) = judge.load_samples(pd.DataFrame(rows), map=columns)
    assert (sample.item, sample.system, sample.output) == ("a", "x", "Hello")
    with pytest.raises(TypeError, match=r"load_samples\(\)"):
        judge.load_samples(rows, mappings=columns)  # type: ignore[call-arg]


BLANKS = ["gpt-4 ", " gpt-4", "gpt-4\t", "\u00a0gpt-4 "]


@pytest.mark.parametrize("name", BLANKS)
@pytest.mark.parametrize("form", ["rows", "samples", "wide", "CSV"])
def test_names_are_stripped_alike_wherever_they_are_read(
    name: str, form: str, tmp_path: Path
) -> None:
    long = [{"item": name, "system": name, "output": "x"}]
    if form == "rows":
        (sample,) = samples.load(long)
    elif form == "samples":
        (sample,) = samples.load([Sample(name, name, "x")])
    elif form == "wide":
        (sample,) = samples.load([{"item": name, name: "x"}], systems=[name])
    else:
        pd.DataFrame(long).to_csv(tmp_path / "d.csv", index=False)
        (sample,) = samples.load(tmp_path / "d.csv")
    (rating,) = read_ratings(
        [{**long[0], "rater": "anna", "criterion": "fluency", "value": 4}]
    ).single
    assert (sample.item, sample.system) == (rating.item, rating.system) == ("gpt-4", "gpt-4")
