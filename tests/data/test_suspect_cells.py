"""Texts that look like missing values, and texts with sentence marks. Oracles: pandas, and texts with line breaks."""

from __future__ import annotations

import csv
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from pandas._libs.parsers import STR_NA_VALUES  # type: ignore[attr-defined]

import judge
from judge.data import suspect_cells
from tests.factories import has_line

WORDS = sorted(word for word in STR_NA_VALUES if word)


def rouge(path: Path, **options: Any) -> judge.Result:
    return judge.evaluate(
        path, [], metrics="rouge", set={"rouge": {"types": ["rougeLsum"]}}, **options
    )


def write(path: Path, rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["item", "output", "reference"], *rows])
    return path


def test_every_word_that_pandas_reads_as_missing_is_known() -> None:
    assert set(WORDS) <= suspect_cells.MISSING


@pytest.mark.parametrize(("word", "column"), list(zip(WORDS, cycle([1, 2]), strict=False)))
def test_a_note_counts_texts_that_look_like_missing_values(
    tmp_path: Path, word: str, column: int
) -> None:
    rows = [[str(n), "hello there", "hello there"] for n in range(3)]
    rows[1][column] = rows[2][column] = word
    notes = rouge(write(tmp_path / "d.csv", rows)).info.notes
    (note,) = [note for note in notes if "missing value" in note]
    assert has_line(note, "2 texts", "missing value", f"{word!r} (2)")
    assert "d.csv:3" in note


@pytest.mark.parametrize("text", ["none of them", "Nan bread", "no", "0", "-"])
def test_ordinary_texts_are_not_missing_values(tmp_path: Path, text: str) -> None:
    notes = rouge(write(tmp_path / "d.csv", [["1", text, "hello there"]])).info.notes
    assert not [note for note in notes if "missing value" in note]


@pytest.mark.parametrize("mark", suspect_cells.SENTENCE_MARKS)
@pytest.mark.parametrize("blank", ["", " "])
def test_a_note_suggests_the_option_for_sentence_marks(
    tmp_path: Path, mark: str, blank: str
) -> None:
    path = write_sentences(tmp_path / "marked.csv", f"{blank}{mark}{blank}")
    (note,) = [note for note in rouge(path).info.notes if mark in note]
    assert has_line(note, "word", "1 of 1 rows")
    assert f"sentence_marks={mark!r}" in note


@pytest.mark.parametrize("mark", suspect_cells.SENTENCE_MARKS)
@pytest.mark.parametrize("blank", ["", " "])
def test_sentence_marks_are_read_as_line_breaks(tmp_path: Path, mark: str, blank: str) -> None:
    path = write_sentences(tmp_path / "marked.csv", f"{blank}{mark}{blank}")
    with_line_breaks = write_sentences(tmp_path / "broken.csv", "\n")
    result = rouge(path, sentence_marks=mark)
    assert not [note for note in result.info.notes if mark in note]
    expected = [score.value for score in rouge(with_line_breaks).table.scores]
    assert [score.value for score in result.table.scores] == expected


def write_sentences(path: Path, separator: str) -> Path:
    """Write a row whose output and reference are two sentences with this text between them."""
    first, second = "The tram was late.", "Nobody minded."
    return write(path, [["1", f"{first}{separator}{second}", f"{second}{separator}{first}"]])


def test_html_quotations_are_not_sentence_marks(tmp_path: Path) -> None:
    notes = rouge(
        write(tmp_path / "d.csv", [["1", "He said <q>no</q>.", "He said no."]])
    ).info.notes
    assert not [note for note in notes if "<q>" in note]
