from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from judge.core.format import one_line
from judge.core.records import Column, Estimate, Failure, Sample
from judge.report.renderers.markdown import LIMIT, escape, render
from judge.report.views.leaderboard import verdict
from judge.results.result import Result
from judge.stats.correlation import Correlation
from judge.stats.human_agreement import Rated, Row
from judge.stats.pairwise import rankings
from judge.table import Table

PARSER = MarkdownIt("commonmark").enable("table")


def test_golden(result: Result, golden) -> None:
    golden("report.md", render(result))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", "a\\|b"),
        ("<script>", "\\<script\\>"),
        ("**b** _i_ `c`", "\\*\\*b\\*\\* \\_i\\_ \\`c\\`"),
        ("[x](y)", "\\[x\\](y)"),
        ("two\nlines", "two lines"),
        ("back\\slash &amp; 日本語", "back\\\\slash \\&amp; 日本語"),
        ("$x$", "\\$x\\$"),
        ("- a", "\\- a"),
        ("-0.5", "-0.5"),
        ("12. a", "12\\. a"),
        ("12.5 a", "12.5 a"),
        ("---", "\\---"),
        ("https://x www.y.z", "https:\\//x www\\.y.z"),
        ("@team #12 model@v1", "@&#8203;team \\#&#8203;12 model@&#8203;v1"),
    ],
)
def test_names_cannot_be_markup(text: str, expected: str) -> None:
    assert escape(text) == expected


@given(st.text("ab1 -+=.)#>*_`|~<&;$@[](){}!\\/:\n\t", max_size=12))
@example("1) a")
@example("= =")
@example("+ a")
@example("&#35;")
def test_a_parser_reads_an_escaped_text_as_the_text_it_was(text: str) -> None:
    tokens = PARSER.parse(escape(text))
    assert [token.type for token in tokens] in ([], ["paragraph_open", "inline", "paragraph_close"])
    inner = tokens[1].children or [] if tokens else []
    assert {token.type for token in inner} <= {"text", "text_special"}
    assert "".join(token.content for token in inner).replace("\u200b", "") == one_line(text)


def test_every_table_row_has_as_many_cells_as_its_head(result: Result) -> None:
    tables = re.findall(r"(?:^\|.*\n?)+", render(result), re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.strip().split("\n")}) == 1


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("a `b` c", "`` doc-1, lead: a `b` c ``"),
        ("``x|y``", "``` doc-1, lead: ``x\\|y`` ```"),
        ("plain", "`doc-1, lead: plain`"),
    ],
)
def test_messages_stay_inside_their_code_span(result: Result, message: str, expected: str) -> None:
    failure = Failure("doc-1", "lead", "length", "parse", "ParseError", message)
    text = render(replace(result, table=replace(result.table, failures=(failure,))))
    assert f"| length | {expected} |" in text


def test_a_clean_run_has_no_failures_section(result: Result) -> None:
    text = render(replace(result, table=replace(result.table, failures=()), info={}))
    assert "Failures" not in text
    assert "requests" not in text


def test_the_verdict_comes_first_then_ranks_and_marks(tested: Result) -> None:
    text = render(tested)
    _, told, table, *_ = text.split("\n\n")
    assert told == f"**{escape(verdict(tested))}**"
    head, _, first, second, third = table.split("\n")
    assert head == "| system | rank (overall) | overall ↑ | fluency ↑ | style ↑ | delta ↓ |"
    assert re.match(r"\| good \| 1 \[1–2\] \| 0\.625≈ \[[^|]*\] \| \*\*4\.00\*\*\\\* \[[^|]*\] \| 3\.00≈ ", first)
    assert second.startswith("| \\=fair | 2 [1–3] | 0.406≈ ")
    assert third.startswith("| poor | 3 [2–3] | 0.375 [")
    assert "\\* best of its column" in text
    assert "≈ not told apart from the best" in text


def test_many_columns_of_few_systems_stand_below_each_other() -> None:
    text = render(_large(2, 9, 0, ""))
    assert "|  | s0 | s1 |\n| --- | ---: | ---: |\n| c0 ↑ | 3.00 [2.00, 4.00] | 3.00 [2.00, 4.00] |\n" in text
    assert text.count("\n| c") == 9


def test_a_run_with_ratings_says_in_short_how_far_the_judge_goes_with_people() -> None:
    estimate = Estimate("spearman", 0.5, 0.375, 0.625, 12, "")
    ends = {"judge": estimate, "length": replace(estimate, value=-0.25), "rouge1": replace(estimate, value=0.125)}
    rows = [
        Row(name, "judge" if name == "judge" else "floor", name, Correlation(36, {("document", "spearman"): found}, {}))
        for name, found in ends.items()
    ]
    bare = Row("heuristic", "floor", "h", Correlation(0, {}, {"document": "no text"}))
    beaten = {("judge", name, "document"): estimate for name in ("length", "rouge1")}
    rated = Rated("flu|ency", 36, (rows[0],), (bare, *rows[1:]), None, "one rating a text", beaten)
    text = render(Result(Table((), (), ()), rated=(rated,)))
    assert text.partition("### Against people\n\n")[2].split("\n\n")[:2] == [
        "| criterion | judge | Spearman | highest floor | ceiling | texts |\n"
        "| --- | --- | ---: | ---: | ---: | ---: |\n"
        "| flu\\|ency | judge | 0.500 [0.375, 0.625] | 0.125 (rouge1) | – | 36 |",
        "Correlation between the systems of an item, mean over items. flu\\|ency: judge beats every floor that has "
        "values: +0.500 \\[0.375, 0.625\\] in Spearman over length, the nearest.",
    ]


def test_a_run_without_ratings_says_nothing_of_people(tested: Result) -> None:
    assert "people" not in render(tested)


def _large(systems: int, columns: int, failures: int, name: str) -> Result:
    """So many systems and columns whose names begin with `name`, and kinds of failure."""
    found = tuple(Column(f"{name}c{k}", "criterion", f"{name}{k}|" * 9, 1.0, 5.0) for k in range(columns))
    samples = tuple(Sample("i", f"{name}s{k}", "text") for k in range(systems))
    failed = tuple(Failure("i", "s", "c", "parse", f"{name}{k}", name * 9) for k in range(failures))
    mean = Estimate("mean", 3.0, 2.0, 4.0, 1, "bootstrap")
    estimates = {(s.system, c.name): mean for s in samples for c in found}
    info = {"notes": [f"{name}{k}" for k in range(failures)]}
    return Result(Table(samples, found, (), failed), estimates, info)


@pytest.mark.parametrize(
    ("systems", "columns", "failures", "name"),
    [(3_000, 2, 2, ""), (2, 3_000, 2, ""), (200, 200, 200, "|"), (100, 30, 1_000, "*" * 200), (1, 1, 1, "日" * 70_000)],
)
def test_it_fits_a_comment_whatever_the_size(systems: int, columns: int, failures: int, name: str) -> None:
    text = render(_large(systems, columns, failures, name))
    assert len(text) <= LIMIT
    assert text.count("<details>") == text.count("</details>") == 1
    assert f"| {escape(name + 's0', 80)} | " in text
    assert "### Failures" in text
    assert ("The rest is in report.html." in text) == (systems > 1)
    tables = [token.type for token in PARSER.parse(text)].count("table_open")
    assert tables == 2


def test_what_was_cut_is_counted() -> None:
    text = render(_large(3_000, 30, 0, ""))
    rows = len(re.findall(r"^\| s\d", text, re.MULTILINE))
    assert 0 < rows < 3_000
    assert f"… 7 more columns and {3_000 - rows:,} more rows. The rest is in report.html." in text


def test_rankings_of_many_columns_fit_too() -> None:
    names = [f"system-{k}" for k in range(40)]
    samples = tuple(Sample("i", name, name) for name in names)
    columns = tuple(Column(f"c{k}", "criterion", f"c{k}", 0.0, 1.0, ("A", "B")) for k in range(60))
    found = rankings((), (), names, [column.name for column in columns])
    text = render(Result(Table(samples, columns, ()), {}, {}, rankings=found))
    assert len(text) <= LIMIT
    assert text.count("<details>") == text.count("</details>") == 3
    assert "The rest is in report.html." in text
