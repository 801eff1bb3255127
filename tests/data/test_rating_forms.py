"""Rating sheets in each form are read as the same ratings, or are an error with a hint."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import DataError
from judge.core.records import Sample
from judge.data.rating_sheets import Known
from judge.data.ratings import Ratings, find_variants, join_ratings, read_ratings, rename_ratings
from tests.factories import has_line, write_jsonl

ITEMS = ("tram", "7")
SYSTEMS = ("a", "a_b")
RATERS = ("anna", "r_2")
CRITERIA = ("fluency", "fluency_5", "tone")
TEXTS = [Sample(item, system, f"{item} {system}") for item in ITEMS for system in SYSTEMS]
KNOWN = Known(CRITERIA, ("relevance",), SYSTEMS)
Values = Mapping[tuple[str, str, str, str], int]
"""Ratings by item, system, rater and criterion."""


def write(folder: Path, rows: Sequence[Mapping[str, Any]], suffix: str = ".csv") -> Path:
    path = folder / f"ratings{suffix}"
    if suffix == ".jsonl":
        write_jsonl(path, rows)
    elif suffix == ".parquet":
        import pandas as pd

        pd.DataFrame(rows).to_parquet(path)
    else:
        columns = dict.fromkeys(column for row in rows for column in row)
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(columns), delimiter="\t" if suffix == ".tsv" else ",")
            table.writeheader()
            table.writerows(rows)
    return path


def long_form(values: Values) -> list[dict[str, Any]]:
    return [
        {"item": item, "system": system, "rater": rater, "criterion": criterion, "value": value}
        for (item, system, rater, criterion), value in values.items()
    ]


def grouped(values: Values, keys: Sequence[int], column: str) -> list[dict[str, Any]]:
    """Return one row per combination of `keys` (0 item, 1 system, 2 rater), with a column for every rating."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for key, value in values.items():
        _, system, rater, criterion = key
        names = {("item", "system", "rater")[index]: key[index] for index in keys}
        name = column.format(system=system, rater=rater, criterion=criterion)
        rows.setdefault(tuple(names.values()), names)[name] = value
    return list(rows.values())


FORMS = {
    "one row per rating": long_form,
    "a row per text and rater, a column per criterion": lambda v: grouped(
        v, (0, 1, 2), "{criterion}"
    ),
    "a row per text, a column per rater": lambda v: grouped(v, (0, 1), "{criterion}_{rater}"),
    "a column per system and rater": lambda v: grouped(v, (0,), "{system}_{criterion}_{rater}"),
}


def votes(samples: Sequence[Sample]) -> list[Any]:
    """Return people's ratings of each text, independent of the order of the raters."""
    return [
        (
            s.key,
            s.human,
            {name: dict(zip(s.raters[name], s.ratings[name], strict=True)) for name in s.ratings},
        )
        for s in samples
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sheets")


@given(
    st.dictionaries(
        st.tuples(*map(st.sampled_from, (ITEMS, SYSTEMS, RATERS, CRITERIA))),
        st.integers(1, 5),
        min_size=1,
    ),
    st.sampled_from([".csv", ".tsv", ".jsonl", ".parquet"]),
)
def test_all_forms_have_the_same_ratings(folder: Path, values: Values, suffix: str) -> None:
    expected = None
    for form, rows in FORMS.items():
        ratings = read_ratings(write(folder, rows(values), suffix), KNOWN)
        assert (ratings.form, len(ratings.single)) == (form, len(values))
        samples = votes(join_ratings(TEXTS, ratings.single))
        expected = expected or samples
        assert samples == expected
    for (item, system, rater, criterion), value in values.items():
        votes_of_text = next(
            sample_votes for key, _, sample_votes in expected or () if key == (item, system)
        )
        assert votes_of_text[criterion][rater] == value


def read(folder: Path, text: str, known: Known) -> Ratings:
    path = folder / "sheet.csv"
    path.write_text(text, encoding="utf-8")
    return read_ratings(path, known)


ONE = Known(("relevance",), ("coherence",), ("a", "b"))
TWO = Known(("relevance", "coherence"), (), ("a", "b"))


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        (
            "item,system,anna,ben\n1,a,4,\n1,b,2,3\n",
            ONE,
            [("a", "anna", 4), ("b", "anna", 2), ("b", "ben", 3)],
        ),
        ("item,a_anna,b_anna\n1,4,3\n", ONE, [("a", "anna", 4), ("b", "anna", 3)]),
        ("item,a,b,output\n1,4,3,text\n", ONE, [("a", "", 4), ("b", "", 3)]),
        ("doc_id,model,annotator,Relevance\n1,a,anna,4\n", TWO, [("a", "anna", 4)]),
        ("doc_id,model,annotator,score\n1,a,anna,4\n", ONE, [("a", "anna", 4)]),
        ("Item,System,relevance\n1,a,4\n", TWO, [("a", "", 4)]),
        ("item,relevance.anna\n1,4\n", Known(("relevance",), (), ("only",)), [("only", "anna", 4)]),
        (
            "nr,relevance_anna\n1,4\n",
            Known(("relevance",), (), ("only",), {"item": "nr"}),
            [("only", "anna", 4)],
        ),
        ("item,system,criterion,rating\n1,a,relevance,4\n", TWO, [("a", "", 4)]),
        ("番号,モデル,評価者,点数\n1,a,山田,4\n", ONE, [("a", "山田", 4)]),
        ("번호,시스템,평가자,기준,점수\n1,a,민지,relevance,4\n", TWO, [("a", "민지", 4)]),
        ("编号,系统,评分者,评价标准,得分\n1,a,李明,relevance,4\n", TWO, [("a", "李明", 4)]),
        ("編號,系統,評分者,評分\n1,a,李明,4\n", ONE, [("a", "李明", 4)]),
        ("item,system,relevance_anna\n1,a,good\n", TWO, [("a", "anna", "good")]),
    ],
)
def test_columns_may_have_other_names_or_name_raters(
    folder: Path, text: str, known: Known, expected: list[Any]
) -> None:
    ratings = read(folder, text, known).single
    assert [(r.system, r.rater, r.value) for r in ratings] == expected
    assert {(r.item, r.criterion, r.where.rpartition(":")[2]) for r in ratings} == {
        ("1", "relevance", str(n)) for n in range(2, len(text.splitlines()) + 1)
    }


@pytest.mark.parametrize("criterion", ["評価", "점수", "score"])
def test_a_column_with_the_name_of_a_criterion_has_its_ratings(
    folder: Path, criterion: str
) -> None:
    known = Known((criterion, "coherence"), (), ("a", "b"))
    sheet = f"item,system,rater,{criterion},coherence\n1,a,anna,4,5\n"
    ratings = read(folder, sheet, known).single
    assert {(r.criterion, r.value) for r in ratings} == {(criterion, 4), ("coherence", 5)}


@pytest.mark.parametrize(
    ("text", "known", "facts"),
    [
        (
            "item,system,anna\n1,a,4\n",
            TWO,
            ("no column has ratings", "item, system, rater, criterion, value"),
        ),
        (
            "item,a_anna\n1,4\n",
            TWO,
            ("'a_relevance_anna'", "relevance, coherence"),
        ),
        ("item,relevance_anna\n1,4\n", TWO, ("or columns like 'a_relevance_anna'",)),
        (
            "item,system,rater,value\n1,a,anna,4\n",
            TWO,
            ("not name the criterion",),
        ),
        ("system,relevance_anna\na,4\n", TWO, ("call it item",)),
        (
            "nr,relevance_anna\n1,4\n",
            replace(TWO, columns={"item": "Nummer"}),
            ("item or Nummer",),
        ),
        (
            "item,a_relevance_b\n1,4\n",
            TWO,
            (
                "'a_relevance_b'",
                "relevance by a of system b",
                "relevance by b of system a",
                "SYSTEM_CRITERION_RATER",
            ),
        ),
        (
            "item,system,relevance,relevance_anna\n1,a,4,4\n",
            TWO,
            ("'relevance' names no rater", "'relevance_anna'"),
        ),
        (
            "item,system,rater,criterion,value\n1,a,,relevance,4\n",
            TWO,
            ("sheet.csv:2:", "no rater"),
        ),
        (
            "item,system,rater,criterion,value\n1,,anna,relevance,4\n",
            TWO,
            ("sheet.csv:2:", "no system"),
        ),
        (
            "item,first,second,rater,criterion,value\n1,a,b,anna,overall,a\n",
            TWO,
            ("sheet.csv:2:", "'a'"),
        ),
    ],
)
def test_a_sheet_in_no_known_form_is_an_error(
    folder: Path, text: str, known: Known, facts: tuple[str, ...]
) -> None:
    with pytest.raises(DataError) as caught:
        read(folder, text, known)
    assert has_line(str(caught.value), *facts)


@pytest.mark.parametrize("cell", ["N/A", '"4,5"', "4/5"])
def test_a_cell_that_is_no_number_does_not_cost_its_rater(folder: Path, cell: str) -> None:
    known = Known(("relevance",), (), ("only",))
    with pytest.raises(DataError) as caught:
        read(folder, f"item,anna,ben,note\ntram,4,5,-\nbus,{cell},3,ok\nferry,5,5,3\n", known)
    assert has_line(str(caught.value), "sheet.csv:3: anna is", "leave the cell empty")


@pytest.mark.parametrize("mark", [True, "True", "true", 1, 1.0, "1"])
def test_a_second_rating_that_is_marked_as_repeated_replaces_none(mark: Any) -> None:
    row = {"item": "tram", "system": "a", "rater": "anna", "criterion": "tone"}
    ratings = read_ratings([{**row, "value": 4}, {**row, "value": 2, "repeat": mark}])
    assert [(rating.value, rating.repeat) for rating in ratings.single] == [(4, False), (2, True)]


def test_unread_columns_are_listed_and_replaced_ratings_counted(folder: Path) -> None:
    ratings = read(
        folder, "item,system,relevance_anna,relevanc_ben\n1,a,4,5\n1,a,3,5\n1,b,3,5\n1,b,3,5\n", TWO
    )
    assert (ratings.unread, ratings.replaced) == (("relevanc_ben",), 1)
    assert [(r.system, r.value) for r in ratings.single] == [("a", 3.0), ("b", 3.0)]


@pytest.mark.parametrize(
    ("rating", "facts"),
    [
        (
            "tramm,a,anna,tone,4",
            ("sheet.csv:3:", "item 'tramm' and system 'a'", "item 't"),
        ),
        (
            "tram,c,anna,tone,4",
            ("item 'tram' and system 'c'", "this item by 'a', 'a_b'"),
        ),
        (
            "tram,a,anna,tone,four",
            ("sheet.csv:3: tone is 'four'", "bad, good"),
        ),
    ],
)
def test_a_rating_of_an_unknown_text_or_label_is_an_error(
    folder: Path, rating: str, facts: tuple[str, ...]
) -> None:
    ratings = read(
        folder, f"item,system,rater,criterion,value\n7,a,ben,tone,good\n{rating}\n", KNOWN
    )
    with pytest.raises(DataError) as caught:
        join_ratings(TEXTS, ratings.single, {"tone": {"bad": 0.0, "good": 1.0}})
    assert has_line(str(caught.value), *facts)


def _verdicts(folder: Path, *verdicts: Any) -> dict[str, float]:
    """Return the rating of each item by one rater, read from a sheet."""
    texts = [Sample(str(number), "a", "") for number, _ in enumerate(verdicts)]
    rows = [
        {"item": str(number), "rater": "anna", "criterion": "tone", "value": verdict}
        for number, verdict in enumerate(verdicts)
    ]
    ratings = read_ratings(write(folder, rows), Known(("tone",), systems=("a",)))
    labels = {"tone": {"1": 1.0, "2": 2.0}}
    return {each.item: each.human["tone"] for each in join_ratings(texts, ratings.single, labels)}


def test_pass_and_fail_are_1_and_0(folder: Path) -> None:
    assert _verdicts(folder, "pass", "Fail", "true", "不合格") == {"0": 1, "1": 0, "2": 1, "3": 0}


def test_an_unknown_word_among_verdicts_is_an_error_that_names_it(folder: Path) -> None:
    with pytest.raises(DataError, match="tone is 'flunked'"):
        _verdicts(folder, "pass", "fail", "flunked")


def test_a_verdict_among_numbers_is_an_error(folder: Path) -> None:
    with pytest.raises(DataError, match="tone is 'pass'"):
        _verdicts(folder, "pass", "fail", "2")


def test_ratings_without_a_rater_have_no_single_votes(folder: Path) -> None:
    ratings = read(folder, "item,system,relevance\ntram,a,3.5\n", KNOWN)
    sample = Sample(
        "tram", "a", "x", human={"relevance": 1.0, "tone": 2.0}, ratings={"relevance": (1.0, 1.0)}
    )
    (joined,) = join_ratings([sample], ratings.single)
    assert joined.human == {"relevance": 3.5, "tone": 2.0}
    assert (joined.ratings, joined.raters) == ({}, {})


def rated(**ratings: float) -> Sample:
    return Sample(
        "1", "a", "x", human=ratings, ratings={name: (each,) for name, each in ratings.items()}
    )


@pytest.mark.parametrize(
    ("scales", "ratings", "expected", "note"),
    [
        (
            {"fluency_5": (1, 5)},
            {"fluency": 4.0},
            {"fluency_5": 4.0},
            "fluency_5 is compared",
        ),
        (
            {"fluency_v2": (1, 5)},
            {"fluency": 4.0},
            {"fluency_v2": 4.0},
            "fluency_v2 is compared",
        ),
        (
            {"fluency_5": (1, 5)},
            {"fluency": 4.0, "fluency_5": 2.0},
            {"fluency": 4.0, "fluency_5": 2.0},
            "",
        ),
        (
            {"fluency_5": (1, 5)},
            {"fluency": 80.0},
            {"fluency": 80.0},
            "People rated fluency from 80",
        ),
        ({"fluency_5": (1, 5), "fluency": (1, 3)}, {"fluency": 3.0}, {"fluency": 3.0}, ""),
        (
            {"fluency_5": (1, 5), "fluency": (1, 3)},
            {"fluency": 4.0},
            {"fluency": 4.0, "fluency_5": 4.0},
            "fluency_5 is",
        ),
        ({"fluency_of_speech": (1, 5)}, {"fluency": 3.0}, {"fluency": 3.0}, ""),
    ],
)
def test_a_variant_of_a_criterion_has_the_ratings_of_the_criterion(
    scales: dict[str, tuple[float, float]],
    ratings: dict[str, float],
    expected: dict[str, float],
    note: str,
) -> None:
    pairs, notes = find_variants([rated(**ratings)], scales)
    (sample,) = rename_ratings([rated(**ratings)], pairs, scales)
    assert sample.human == {name: votes[0] for name, votes in sample.ratings.items()} == expected
    assert "".join(notes).startswith(note)
    assert bool(notes) == bool(note)


SHEET = """\
{"item": "a", "system": "s", "rater": "anna", "criterion": "polite", "value": 4, "seconds": 3.2}
{"item": "a", "system": "s", "rater": "ben", "criterion": "polite", "value": 2}
{"item": "a", "system": "s", "rater": "ben", "criterion": "polite", "value": 3}
{"item": "a", "system": "s", "rater": "anna", "criterion": "polite", "value": 5, "repeat": true}
{"item": "b", "system": "s", "rater": "ben", "criterion": "polite", "value": 1}
{"item": "b", "system": "t", "rater": "ben", "criterion": "polite", "value": 1}
{"item": "b", "system": "t", "rater": "ben", "criterion": "polite", "value": null}
{"item": "a", "first": "s", "second": "t", "rater": "ben", "criterion": "better", "value": "tie"}
"""


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.jsonl"
    path.write_text(SHEET, encoding="utf-8")
    return path


def test_a_sheet_is_joined_to_its_texts(sheet: Path) -> None:
    ratings = read_ratings(sheet)
    assert [(r.item, r.rater, r.value, r.repeat) for r in ratings.single] == [
        ("a", "anna", 4.0, False),
        ("a", "ben", 3.0, False),
        ("a", "anna", 5.0, True),
        ("b", "ben", 1.0, False),
    ]
    assert [(r.first, r.second, r.value) for r in ratings.pairs] == [("s", "t", "tie")]
    assert (ratings.criteria, ratings.raters("polite")) == (("polite", "better"), ("anna", "ben"))
    first, second = join_ratings([Sample("a", "s", "A."), Sample("b", "s", "B.")], ratings.single)
    assert (first.human, first.ratings) == ({"polite": 3.5}, {"polite": (4.0, 3.0)})
    assert first.raters == {"polite": ("anna", "ben")}
    assert (second.human, second.ratings) == ({"polite": 1.0}, {"polite": (None, 1.0)})


def test_a_rating_of_an_unknown_text_is_an_error_with_its_line(sheet: Path) -> None:
    with pytest.raises(DataError, match=r"ratings.jsonl:5: .*'b' and system 's'"):
        join_ratings([Sample("a", "s", "A.")], read_ratings(sheet).single)


@pytest.mark.parametrize(
    ("system", "facts"),
    [
        (
            "bata",
            ("item 'b' and system 'bata'", "this item by 'beta'", "did you mean system 'beta'?"),
        ),
        ("x", ("item 'b' and system 'x'", "this item by 'beta'")),
    ],
)
def test_a_rating_of_an_unknown_system_names_the_systems_of_the_item(
    tmp_path: Path, system: str, facts: tuple[str, ...]
) -> None:
    row = {"item": "b", "system": system, "rater": "anna", "criterion": "polite", "value": 4}
    path = write_jsonl(tmp_path / "ratings.jsonl", [row])
    with pytest.raises(DataError) as raised:
        join_ratings([Sample("b", "beta", "A.")], read_ratings(path).single)
    assert has_line(str(raised.value), *facts)
    assert "did you mean item" not in str(raised.value)


@pytest.mark.parametrize(
    ("rated", "known", "facts"),
    [
        ("1.0", "1", ("no text of item '1.0'", "did you mean item '1'?")),
        ("cafe\u0301", "caf\u00e9", ("another Unicode form", "NFC")),
        ("bridge", "bridge1", ("no text of item 'bridge'", "did you mean item 'bridge1'?")),
    ],
)
def test_a_rating_of_a_differently_written_item_is_an_error_with_the_difference(
    tmp_path: Path, rated: str, known: str, facts: tuple[str, ...]
) -> None:
    row = {"item": rated, "system": "s", "rater": "anna", "criterion": "polite", "value": 4}
    write_jsonl(tmp_path / "ratings.jsonl", [row])
    with pytest.raises(DataError) as raised:
        join_ratings([Sample(known, "t", "A.")], read_ratings(tmp_path / "ratings.jsonl").single)
    assert has_line(str(raised.value), *facts)
