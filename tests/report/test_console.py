from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from judge.core.records import Column, Estimate, Sample
from judge.report.renderers.console import render
from judge.results.result import Result
from judge.table import Table


def test_golden(result: Result, golden) -> None:
    golden("console.txt", render(result, width=80))


def test_narrow_terminals_get_more_tables_not_wider_lines(result: Result, golden) -> None:
    golden("console-44.txt", render(result, width=44))


def _wide_result(columns: int) -> Result:
    names = tuple(Column(f"criterion_{k}", "criterion", "", 1.0, 5.0) for k in range(columns))
    systems = ["한국어-요약-모델-이름이-아주-긴-시스템", "b"]
    table = Table(tuple(Sample("i", s, "o") for s in systems), names, ())
    estimates = {(s, c.name): Estimate("mean", 3.0 + k, 2.5, 4.5, 1, "m") for k, s in enumerate(systems) for c in names}
    return Result(table, estimates)


@pytest.mark.parametrize("width", [40, 80, 132])
def test_tables_fit_the_width_and_show_every_column_once(width: int) -> None:
    result = _wide_result(12)
    text = render(result, width=width)
    assert max(cell_len(row) for row in text.split("\n")) <= width
    assert text.count(" 4.00") == 12
    for k in range(12):
        assert text.count(f"criterion_{k}\n") + text.count(f"criterion_{k} ") == 1


def test_columns_are_aligned_under_wide_characters() -> None:
    rows = [row for row in render(_wide_result(2), width=80).split("\n") if "[2.50, 4.50]" in row]
    assert len({cell_len(row) for row in rows}) == 1


def test_there_are_no_escape_codes_unless_asked_for(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in render(result, width=80)
    assert "\x1b[2m[2.50, 3.80]" in render(result, width=80, colour=True)


def test_the_verdict_comes_first_and_warnings_after_the_table(tested: Result) -> None:
    text = render(replace(tested, info={**tested.info, "notes": ["a note"]}), width=80)
    places = [
        text.index(part) for part in ("good has the highest overall score", "rank ", "*4.00", "≈ not", "! a note")
    ]
    assert places == sorted(places)
    assert "\x1b[1;32m*4.00" in render(tested, width=80, colour=True)


def test_the_width_is_the_terminals(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    assert result.report() == render(result, width=44)


def test_a_clean_run_has_no_word_of_failures(result: Result) -> None:
    clean = replace(result, table=replace(result.table, failures=()), info={})
    text = render(clean, width=80)
    assert "Failures" not in text
    assert "Usage" not in text


def test_unsigned_columns_have_no_signatures() -> None:
    assert "Signatures" not in render(_wide_result(1), width=80)
