from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from judge.core import plugins
from judge.core.format import one_line
from judge.core.records import Column, Estimate, Failure, Sample
from judge.core.signature import Signature
from judge.report.document import Cell, Document, Excerpt, Excerpts
from judge.report.document import Column as Head
from judge.report.document import Table as Shown
from judge.report.renderers.markdown import LIMIT, escape
from judge.report.views.finding import finding
from judge.results.result import Result
from judge.results.run_info import RunInfo
from judge.stats.pairwise import rankings
from judge.table import Table
from tests.factories import has_line


def render(result: Result) -> str:
    return result.report("markdown")


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


def test_a_clean_run_has_no_failures_section(result: Result) -> None:
    text = render(replace(result, table=replace(result.table, failures=()), info=RunInfo()))
    assert "Failures" not in text
    assert "requests" not in text


def test_the_finding_comes_first_and_only_the_best_is_marked(tested: Result) -> None:
    text = render(tested)
    headline, *details = finding(tested)
    assert text.split("\n\n")[1] == " ".join([f"**{escape(headline)}**", *map(escape, details)])
    head, *_ = re.findall(r"^\| system .*", text, re.MULTILINE)
    assert head == "| system | rank | overall ↑ | fluency ↑ | style ↑ | delta ↓ |"
    good, *_ = re.findall(r"^\| good .*", text, re.MULTILINE)
    assert re.match(
        r"\| good \| 1 \\\[1, 2\\\] \| 0\.625 .* \| \*\*4\.00\*\*\\\* .* \| 3\.00 ", good
    )
    assert has_line(text, "\\*", "significantly better")


def test_many_columns_of_few_systems_are_stacked() -> None:
    text = render(_large(2, 9, 0, ""))
    assert (
        "|  | s0 | s1 |\n| --- | ---: | ---: |\n| c0 ↑ | 3.00 \\[2.00, 4.00\\] | 3.00 \\[2.00, 4.00\\] |\n"
        in text
    )
    assert text.count("\n| c") == 9


def test_a_run_without_ratings_does_not_mention_people(tested: Result) -> None:
    assert "people" not in render(tested)


def _large(systems: int, columns: int, failures: int, name: str) -> Result:
    """Return a result with these numbers of systems, columns and kinds of failure. Names start with `name`."""
    many_columns = tuple(
        Column(f"{name}c{k}", "criterion", Signature(f"{name}{k}|" * 9), 1.0, 5.0)
        for k in range(columns)
    )
    samples = tuple(Sample("i", f"{name}s{k}", "text") for k in range(systems))
    failed = tuple(Failure("i", "s", "c", "parse", f"{name}{k}", name * 9) for k in range(failures))
    mean = Estimate("mean", 3.0, 2.0, 4.0, 1, "bootstrap")
    estimates = {(s.system, c.name): mean for s in samples for c in many_columns}
    info = RunInfo(notes=tuple(f"{name}{k}" for k in range(failures)))
    return Result(Table(samples, many_columns, (), failed), estimates, info)


@pytest.mark.parametrize(
    ("systems", "columns", "failures", "name"),
    [
        (1_500, 2, 2, ""),
        (2, 600, 2, ""),
        (40, 40, 40, "|"),
        (30, 20, 300, "*" * 200),
        (1, 1, 1, "日" * 70_000),
    ],
)
@pytest.mark.slow
def test_markdown_fits_a_comment_for_any_size(
    systems: int, columns: int, failures: int, name: str
) -> None:
    text = render(_large(systems, columns, failures, name))
    assert len(text) <= LIMIT
    assert text.count("<details>") == text.count("</details>") >= 1
    assert f"| {escape(name + 's0', 80)} | " in text
    assert "### Failures" in text
    assert ("rest is in the HTML" in text) == (systems > 1)
    tables = [token.type for token in PARSER.parse(text)].count("table_open")
    assert tables >= 2


@pytest.mark.slow
def test_rows_and_columns_that_were_cut_are_counted() -> None:
    columns = tuple(Head(f"c{k}") for k in range(30))
    document = Document(
        "t", summary=(Shown(columns, tuple((Cell(f"s{k}"),) * 30 for k in range(3_000))),)
    )
    text = plugins.write(document, "markdown")
    rows = len(re.findall(r"^\| s\d", text, re.MULTILINE))
    assert 0 < rows < 3_000
    assert has_line(text, "6 more columns", f"{3_000 - rows:,} more rows", "HTML report")


@pytest.mark.slow
def test_rankings_of_many_columns_fit_too() -> None:
    names = [f"system-{k}" for k in range(40)]
    samples = tuple(Sample("i", name, name) for name in names)
    columns = tuple(
        Column(f"c{k}", "criterion", Signature(f"c{k}"), 0.0, 1.0, ("A", "B")) for k in range(60)
    )
    ranked = rankings((), (), names, [column.name for column in columns])
    text = render(Result(Table(samples, columns, ()), {}, RunInfo(), rankings=ranked))
    assert len(text) <= LIMIT
    assert text.count("<details>") == text.count("</details>")
    assert "rest is in the HTML" in text


def test_a_list_says_how_many_entries_it_leaves_out() -> None:
    text = Excerpt("2", "s", "i", "c")
    shortened = Document("D", summary=(Excerpts("Changed", (text,), 1_200),))
    of_all = Document("D", summary=(Excerpts("Changed", (text,), 0),))
    lowest = Document("D", summary=(Excerpts("Lowest", (text,)),))
    for format in ("markdown", "html", "console"):
        assert "1,200 more" in plugins.write(shortened, format)
        for whole in (of_all, lowest):
            written = plugins.write(whole, format)
            assert "more" not in re.sub(r"<(style|script)>.*?</\1>", "", written, flags=re.DOTALL)


def test_a_notice_keeps_its_lines() -> None:
    notice = f"The prompt differs:\n  {'word ' * 200}\nRun this again with --record."
    text = plugins.write(Document("D", notices=(notice,)), "markdown")
    lines = [line for line in text.splitlines() if line.startswith("> ")]
    assert lines[0] == "> The prompt differs:\\"
    assert lines[-1] == "> Run this again with --record."
    assert len(lines) == 3
