"""Two runs side by side in every format: golden files, sentences, what is cut, and hostile text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.report.views.comparison import layout
from judge.results.comparison import Change, RunComparison
from judge.results.result import Result
from judge.stats.run_differences import compare_runs
from judge.table import Table

FORMATS = {"console": "txt", "markdown": "md", "json": "json", "html": "html"}
C = Column("c", "criterion", "c@1", 1.0, 5.0)
MADE = Provenance("single")


def compared(before: Result, after: Result, **fields: Any) -> RunComparison:
    runs = compare_runs(before.table, after.table, n_resamples=200)
    return RunComparison(("runs/a", "runs/b|<b>"), before, after, runs, **fields)


@pytest.fixture
def two(result: Result) -> RunComparison:
    """The fixed result, and one in which a system lost a point of coherence, a failure vanished and one appeared."""
    table = result.table
    moved = [
        replace(s, value=s.value - 1, provenance=replace(s.provenance, reason="It names <b>no one</b>."))
        if (s.system, s.column) == ("lead", "coherence")
        else s
        for s in table.scores
        if (s.item, s.system, s.column) != ("文書2", "システム二", "一貫性")
    ]
    failures = [f for f in table.failures if f.column != "coherence"]
    mended = Score("doc-3", "システム二", "coherence", 4.0, MADE)
    gone = Failure("文書2", "システム二", "一貫性", "request", "Refused", "no more `of` this | please")
    columns = tuple(c for c in table.columns if c.name != "length")
    scores = tuple(s for s in (*moved, mended) if s.column != "length")
    after = Table(table.samples, columns, scores, (*failures, gone))
    changes = (
        Change("model", "openai/small", "openai/|large|", ("coherence", "一貫性")),
        Change("prompt", "3f2a91", "77aa01", ("coherence",), ("--- a", "+++ b", "-<old> & text", "+<new> & text")),
    )
    return compared(result, replace(result, table=after), changes=changes, notes=("A note with \x1b[31m in it.",))


@pytest.mark.parametrize("format", FORMATS)
def test_golden(two: RunComparison, golden: Any, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = re.sub(r"(?<=<style>\n).*?(?=</style>)", "", two.report(format), flags=re.DOTALL)
    golden(f"compared.{FORMATS[format]}", text)


def test_the_page_holds_no_script_and_asks_for_nothing(two: RunComparison) -> None:
    page = two.report("html")
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?!#)", page)
    assert "default-src 'none'" in page
    assert "&lt;b&gt;no one&lt;/b&gt;" in page
    assert "&lt;old&gt; &amp; text" in page


def test_no_format_lets_a_terminals_codes_through(two: RunComparison) -> None:
    assert not any("\x1b" in two.report(format) for format in FORMATS)
    assert "\x1b[1m" in two.report(colour=True)


def test_failures_that_appeared_and_that_vanished_are_shown_with_an_example(two: RunComparison) -> None:
    assert [(f.where, f.error, f.count, f.columns) for f in layout(two).failed] == [
        ("appeared", "Refused", 1, "一貫性"),
        ("vanished", "ParseError", 1, "coherence"),
    ]
    for format in FORMATS:
        text = two.report(format)
        assert "1 failure appeared, 1 vanished." in " ".join(text.split())
        assert "no more" in text
        assert "no score in reply" in text


def test_json_is_strict_and_whole(two: RunComparison) -> None:
    found = json.loads(two.report("json"), parse_constant=pytest.fail)
    assert found["schema"] == "judge.compare/1"
    assert (found["texts"], found["items"]) == (9, 3)
    assert found["only"][0]["columns"] == ["length"]
    assert len(found["moved"]) == len(two.runs.moved)
    assert found["changes"][1]["diff"][-1] == "+<new> & text"


def test_lines_of_an_item_that_are_too_long_go_on_below_its_name(two: RunComparison) -> None:
    items = tuple(replace(item, item=f"a long name {item.item * 12}") for item in two.runs.items_moved)
    rows = replace(two, runs=replace(two.runs, items_moved=items)).report().split("\n")
    start = next(k for k, row in enumerate(rows) if row.startswith("Items that moved most")) + 1
    found = rows[start : rows.index("", start)]
    assert len(found) > len(items)
    for row in found:
        assert re.match(r" {1,5}\d+%  \S| {8}\S", row)


def test_the_test_is_named_once(two: RunComparison) -> None:
    how = layout(two).legend
    assert how.count("sign-flip") == how.count(" p:") == 1


def test_a_column_of_which_the_lower_end_is_better_says_so() -> None:
    lower = replace(C, better="lower")
    shown = [layout(compared(made({"x": LOW}, one), made({"x": HIGH}, one))) for one in (C, lower)]
    assert [section.name for one in shown for section in one.sections] == ["c", "c (lower is better)"]


def test_another_format_is_refused(two: RunComparison) -> None:
    with pytest.raises(ConfigError, match="unknown format 'csv'"):
        two.report("csv")


# What is said


def made(values: dict[str, list[float | None]], column: Column = C) -> Result:
    """A result of one column, from values by system, one for each item."""
    cells = [(f"i{n}", system, value) for system, row in values.items() for n, value in enumerate(row)]
    samples = tuple(Sample(item, system, "words") for item, system, _ in cells)
    scores = tuple(Score(*cell[:2], column.name, cell[2], MADE) for cell in cells if cell[2] is not None)
    return Result(Table(samples, (column,), scores))


def told(before: dict[str, list[float | None]], after: dict[str, list[float | None]], column: Column = C) -> str:
    return " ".join(layout(compared(made(before, column), made(after, column))).sentences)


LOW: list[float | None] = [1, 2, 1, 2, 1, 2, 1, 2]
HIGH: list[float | None] = [2, 3, 2, 3, 2, 3, 2, 3]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ({"x": LOW}, {"x": LOW}, "In both runs: 8 texts of 8 items. Where both have values, none differs."),
        (
            {"x": LOW},
            {"x": HIGH},
            "In both runs: 8 texts of 8 items. "
            "1 of 1 change by system and column is told apart from 0, "
            "not counting those in which no text differs.",
        ),
        (
            {"x": LOW, "y": LOW},
            {"x": HIGH, "y": LOW},
            "In both runs: 16 texts of 8 items. Over all systems c rose by 0.50 [0.50, 0.50]. "
            "1 of 1 change by system and column is told apart from 0, "
            "not counting those in which no text differs.",
        ),
        (
            {"x": HIGH, "y": HIGH},
            {"x": LOW, "y": LOW},
            "In both runs: 16 texts of 8 items. Over all systems c fell by 1.00 [1.00, 1.00]. "
            "2 of 2 changes by system and column are told apart from 0, "
            "not counting those in which no text differs.",
        ),
        (
            {"x": [1, 2, 3]},
            {"x": [1, 2, 4]},
            "In both runs: 3 texts of 3 items. "
            "0 of 1 change by system and column are told apart from 0, "
            "not counting those in which no text differs.",
        ),
        ({"x": [1]}, {"x": [2]}, "In both runs: 1 text of 1 item. Too few items for a test."),
    ],
)
def test_the_sentences(before: Any, after: Any, sentence: str) -> None:
    assert told(before, after) == sentence


def test_many_systems_are_cut_where_a_text_is_read_and_not_in_the_page() -> None:
    before = made({f"s{n:02}": LOW for n in range(20)})
    after = made({f"s{n:02}": [v + n / 20 for v in LOW if v is not None] for n in range(20)})
    found = compared(before, after)
    (section,) = layout(found).sections
    assert [row.system for row in section.rows] == ["all systems", *(f"s{n:02}" for n in range(9, 20))]
    assert section.more == "9 systems that moved less are left out"
    assert section.more in found.report()
    assert len(layout(found, every=True).sections[0].rows) == 21


def test_a_comment_stays_within_its_limit() -> None:
    columns = [replace(C, name=f"column {n} {'x' * 60}") for n in range(300)]
    sides = []
    for values in (LOW, HIGH):
        results = [made({"x": values, "y": values}, column) for column in columns]
        scores = tuple(score for one in results for score in one.table.scores)
        sides.append(Result(Table(results[0].table.samples, tuple(columns), scores)))
    text = compared(*sides).report("markdown")
    assert len(text) < 62_000
    assert text.endswith("… The rest is in `judge compare --format html`.\n")


def test_values_of_all_texts_together_have_no_test() -> None:
    column = Column("bleu", "metric", "bleu")
    base = made({"x": LOW}, column)
    one, other = (
        Result(replace(base.table, scores=(Score("", "x", "bleu", value, Provenance("metric", n=8)),)))
        for value in (30.0, 32.5)
    )
    (row,) = layout(compared(one, other)).sections[0].rows
    assert (row.before, row.after, row.change, row.interval, row.p, row.texts) == (
        "30.00",
        "32.50",
        "+2.50",
        "",
        "–",
        "",
    )


def test_it_says_what_is_left_out() -> None:
    before, after = made({"x": LOW, "old": LOW}), made({"x": LOW, "new": LOW})
    wide = replace(after, table=replace(after.table, columns=(replace(C, high=9.0),)))
    notes = " ".join(layout(compared(before, wide)).notes)
    assert "c is not compared: its scale was 1–5 and is 1–9." in notes
    assert "Only in runs/a: 1 system (old)." in notes
    many = made({"x": [*LOW, *LOW, *LOW]})
    assert "Only in runs/a: 16 items (i8, i9, i10, i11, i12, i13, i14, i15 and 8 more)." in " ".join(
        layout(compared(many, made({"x": LOW}))).notes
    )
    gap = made({"x": [None, *LOW[1:]]})
    assert "1 values of the first run were not asked for in the second, 0 the other way round." in " ".join(
        layout(compared(made({"x": LOW}), gap)).notes
    )
