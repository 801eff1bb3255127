"""Text tables with other separators, and Excel files. Oracles: the rows written by csv, pandas and openpyxl."""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge
from judge.core.errors import DataError
from judge.data import samples
from judge.data.ratings import read_ratings

TEXT = st.text(st.sampled_from('ab ,;|"\n\tü本'), max_size=12)
ROWS = st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6)


def table(rows: Any, separator: str, *, quoting: int = csv.QUOTE_MINIMAL) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, quoting=quoting)  # type: ignore[arg-type]
    writer.writerows([("output", "topic"), *rows])
    return text.getvalue()


@given(
    rows=ROWS,
    separator=st.sampled_from(",;\t|"),
    stated=st.booleans(),
    suffix=st.sampled_from(["csv", "tsv"]),
)
def test_the_separator_is_detected_for_any_cells(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str]],
    separator: str,
    stated: bool,
    suffix: str,
) -> None:
    path = tmp_path_factory.mktemp("tables") / f"d.{suffix}"
    first = f"sep={separator}\r\n" if stated else ""
    path.write_text(first + table(rows, separator), encoding="utf-8-sig", newline="")
    assert [(s.output, s.extra.get("topic", "")) for s in samples.load(path)] == rows


def test_line_numbers_count_the_separator_line_of_excel(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("sep=;\noutput;topic\none;a\ntwo;b;c\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"d\.csv:4: 3 cells .*2 columns.*semicolon"):
        samples.load(path)


@pytest.mark.parametrize(
    "text", ["output\nHello\n", 'output\n"a, b; c"\n', "output;topic\nHello, you;x\nBye;y, z\n"]
)
def test_a_comma_in_a_cell_is_not_the_separator(tmp_path: Path, text: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text, encoding="utf-8")
    expected = [
        row["output"]
        for row in csv.DictReader(io.StringIO(text), delimiter=";" if "topic" in text else ",")
    ]
    assert [sample.output for sample in samples.load(path)] == expected


@pytest.mark.parametrize("separator", [";", "\t"])
def test_a_sheet_of_ratings_may_have_a_different_separator(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "ratings.csv"
    lines = ["item,system,rater,criterion,value", "a,x,anna,fluency,4"]
    path.write_text("\n".join(lines).replace(",", separator), encoding="utf-8")
    (rating,) = read_ratings(path).single
    assert (rating.item, rating.system, rating.rater, rating.value) == ("a", "x", "anna", 4.0)


def test_an_excel_file_gives_the_samples_of_its_csv(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(
        {
            "item": [1, 2],
            "output": ["Hello, you", "two\nlines"],
            "references": ["['a', 'b']", None],
            "human.fluency": [4.0, 4.5],
            "lang": ["ja", None],
        }
    )
    frame.to_excel(tmp_path / "d.xlsx", index=False)
    frame.to_csv(tmp_path / "d.csv", index=False)
    from_excel = samples.load(tmp_path / "d.xlsx")
    from_csv = samples.load(tmp_path / "d.csv")
    assert [replace(s, where="") for s in from_excel] == [replace(s, where="") for s in from_csv]
    assert from_excel[0].where.endswith("d.xlsx row 2")


def test_a_sheet_of_ratings_may_be_an_excel_file(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "ratings.xlsx"
    pd.DataFrame(
        [{"item": 7, "system": "x", "rater": "anna", "criterion": "fluency", "value": 4}]
    ).to_excel(path, index=False)
    (rating,) = read_ratings(path).single
    assert (rating.item, rating.value) == ("7", 4.0)


def test_a_note_names_the_unread_sheets_of_data(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "d.xlsx"
    book = openpyxl.Workbook()
    book.active.title = "Answers"
    book.active.append(["output"])
    book.active.append(["Yes."])
    book.create_sheet("Empty")
    book.save(path)
    assert judge.evaluate(path, [], metrics=["stats"]).info.notes == ()
    book.create_sheet("Old").append(["output"])
    book.create_sheet("Remarks").append(["checked by Ann"])
    book.save(path)
    (note,) = judge.evaluate(path, [], metrics=["stats"]).info.notes
    assert "the first sheet of" in note
    assert "Answers, is read, not Old and Remarks" in note
    assert "save it as a CSV file" in note
    # A plan warns before anything is paid.
    model = judge.ScriptedProvider(lambda _: "4")
    assert note in judge.plan(path, ["polite: Is it polite?"], model=model).notes
    # In a folder, each file is checked.
    assert len(list(samples.unread_sheets(tmp_path))) == 1


def test_an_empty_first_sheet_is_an_error_with_the_other_sheets(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "d.xlsx"
    book = openpyxl.Workbook()
    book.create_sheet("Data").append(["output"])
    book.save(path)
    with pytest.raises(DataError, match=r"its first sheet, Sheet, is empty, .* move Data"):
        samples.load(path)


@pytest.mark.parametrize(
    "first_row", [["Texts of May", None, None], ["System A", None, "System B"]]
)
def test_a_merged_or_title_cell_above_the_columns_of_a_sheet_is_an_error(
    tmp_path: Path, first_row: list[str | None]
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "d.xlsx"
    book = openpyxl.Workbook()
    for row in (first_row, ["item", "output", "rating", "rater"], ["1", "x", 4, "anna"]):
        book.active.append(row)
    book.save(path)
    with pytest.raises(DataError, match=r"d\.xlsx row 2: 4 cells .*first row must name every"):
        samples.load(path)


def test_a_note_names_the_unread_sheets_of_ratings(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "ratings.xlsx"
    book = openpyxl.Workbook()
    book.active.append(["item", "system", "rater", "criterion", "value"])
    book.active.append(["a", "x", "anna", "fluency", 4])
    book.create_sheet("Ben").append(["item", "system", "rater", "criterion", "value"])
    book.save(path)
    data = [{"item": "a", "system": "x", "output": "Yes."}]
    result = judge.evaluate(data, [], metrics=["stats"], ratings=path)
    assert any("is read, not Ben" in note for note in result.info.notes)


@pytest.mark.parametrize("content", ["text", "zip", "empty"])
def test_a_broken_excel_file_is_an_error_with_its_name(tmp_path: Path, content: str) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "d.xlsx"
    if content == "text":
        path.write_text("output,topic\n", encoding="utf-8")
    elif content == "zip":
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr("a.txt", "no sheet")
    else:
        openpyxl.Workbook().save(path)
    with pytest.raises(DataError, match=r"d\.xlsx: (.*\.xlsx file|no rows)"):
        samples.load(path)


def test_an_excel_file_that_unpacks_to_too_many_bytes_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openpyxl")
    pd.DataFrame({"output": ["a"]}).to_excel(tmp_path / "d.xlsx", index=False)
    monkeypatch.setattr("judge.data.excel.MOST_BYTES", 100)
    with pytest.raises(DataError, match="unpacks to"):
        samples.load(tmp_path / "d.xlsx")
