from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core import plugins
from judge.core.records import Column, Estimate, Sample
from judge.core.signature import Signature
from judge.report.document import Details, Document, Section, table, text_table
from judge.report.renderers.latex import escape
from judge.results.result import Result
from judge.results.run_info import RunInfo
from judge.table import Table
from tests.factories import has_line


def render(result: Result) -> str:
    return result.report("latex", full=True)


def _labels(text: str) -> list[str]:
    """Return the labels of the tables."""
    return re.findall(r"\\label\{(.*?)\}", text)


def test_golden(result: Result, golden) -> None:
    golden("report.tex", render(result))


def test_golden_of_a_ranking(ranking: Result, golden) -> None:
    golden("ranking.tex", render(ranking))


def test_only_the_main_table_is_written_unless_all_are_asked_for(tested: Result) -> None:
    main = tested.report("latex")
    assert _labels(main) == ["tab:judge-leaderboard"]
    assert {"tab:judge-scores", "tab:judge-differences-style"} <= set(_labels(render(tested)))
    comments = [line for line in main.splitlines() if line.startswith("%")]
    assert has_line("\n".join(comments), "report(full=True)", "scores", "differences-style")


def test_all_tables_are_those_that_the_page_folds_too() -> None:
    """Regression: `--full` left out the differences in metrics."""
    shown, folded = (table(("system", "mean"), [("a", 1)], name=name) for name in ("one", "two"))
    blocks = (Details("More", (folded,)), shown)
    document = Document("D", sections=(Section("all", "All", lambda: blocks),))
    assert _labels(plugins.write(document, "latex", full=True)) == [
        "tab:judge-one",
        "tab:judge-two",
    ]
    assert has_line(plugins.write(document, "latex"), "% ", "two")


def test_long_comments_are_folded_and_names_stay_whole() -> None:
    names = [f"differences-of-criterion-{number}" for number in range(9)]
    tables = tuple(table(("system", "mean"), [("a", 1)], name=name) for name in names)
    document = Document("D", sections=(Section("all", "All", lambda: tables),))
    lines = plugins.write(document, "latex").splitlines()
    comments = [line for line in lines if line.startswith("%")]
    assert max(map(len, comments)) <= 100
    assert has_line(" ".join(comments), *names[1:])


def test_a_report_without_a_summary_table_has_its_first_table() -> None:
    first, second = (table(("system", "mean"), [("a", 1)], name=name) for name in ("one", "two"))
    section = Section("all", "All", lambda: (first, second))
    text = plugins.write(Document("D", sections=(section,)), "latex")
    assert _labels(text) == ["tab:judge-one"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\input{x}", "\\textbackslash{}input\\{x\\}"),
        ("100 % & #1 $x_2$", "100 \\% \\& \\#1 \\$x\\_2\\$"),
        ("a^b ~ <c> |", "a\\textasciicircum{}b \\textasciitilde{} \\textless{}c\\textgreater{} \\textbar{}"),
        ("Student's t", "Student's t"),
        ("\"q\" 'q' `q`", "\\symbol{34}q\\symbol{34} \\textquotesingle{}q\\textquotesingle{} "
         "\\textasciigrave{}q\\textasciigrave{}"),
        ("a-b a--b a---b ,,", "a-b a-{}-b a-{}-{}-b ,{},"),
        ("– — … ≈ −1", "-- --- \\ldots{} $\\approx$ $-$1"),
        ("two\nlines\x00", "two lines\\textbackslash{}x00"),
        ("日本語 é", "日本語 é"),
    ],
)  # fmt: skip
def test_names_are_printed_as_they_are(text: str, expected: str) -> None:
    assert escape(text) == expected


@given(st.text("\\{}$&#%_~^<>|\"'`-,[]*ab1 ", max_size=12))
def test_names_are_fully_escaped_for_tex(text: str) -> None:
    """Apart from the commands that `escape` writes, no special characters or ligatures of TeX remain."""
    remaining = re.sub(r"\\text[a-z]+\{\}|\\symbol\{34\}|\\[{}$&#%_]|\{\}", "·", escape(text))
    assert not set(remaining) & set("\\{}$&#%_~^<>|\"'`")
    assert not re.search("--|,,", remaining)


def _rows(text: str) -> list[str]:
    body = text[text.index("\\midrule\n") + 9 : text.index("\\bottomrule")]
    return body.splitlines()


def test_every_row_has_a_cell_for_every_column(
    result: Result, panel: Result, ranking: Result
) -> None:
    for one in (result, panel, ranking):
        text = render(one)
        for part in text.split("\\begin{tabular}")[1:]:
            (shape,) = re.findall(r"^\{(l\w*)\}", part)
            for row in _rows(part):
                assert row.endswith(" \\\\")
                assert len(re.findall(r"(?<!\\)&", row)) == len(shape) - 1
        assert text.count("{") - text.count("\\{") == text.count("}") - text.count("\\}")


def test_panel_columns_are_grouped_by_criterion(panel: Result) -> None:
    lines = render(panel).splitlines()
    at = lines.index("\\toprule")
    assert lines[at + 1 : at + 3] == [
        " & \\multicolumn{3}{c}{fluency} &  \\\\",
        "\\cmidrule(lr){2-4}",
    ]
    assert lines[at + 3].startswith(
        "{}system & panel mean $\\uparrow$ & a $\\uparrow$ & org/b $\\uparrow$ & ROUGE-L"
    )


def test_the_best_is_bold_and_marked(tested: Result) -> None:
    rows = _rows(render(tested))
    assert rows[0] == "{}good & 1 & 0.625 & \\textbf{4.00}* & 3.00 & 0.000 \\\\"
    assert rows[4].startswith("{}poor & 3 & 0.375 & 2.00 & 3.00 ")


def test_many_columns_of_few_systems_are_stacked(tested: Result) -> None:
    columns = tuple(Column(f"c_{k}", "metric", Signature(), better="lower") for k in range(9))
    estimates = {("good", "c_3"): Estimate("mean", 1.5, 1.0, 2.0, 12, "m")}
    text = render(Result(replace(tested.table, columns=columns, scores=()), estimates))
    assert "\\begin{tabular}{lrrr}\n\\toprule\n & poor & good & =fair \\\\\n" in text
    row = _rows(text).index("{}c\\_3 $\\downarrow$ & -- & 1.50 & -- \\\\")
    assert "[1.00, 2.00]" in _rows(text)[row + 1]


def _one(system: str, better: str, *ends: float | None) -> str:
    sample, column = Sample("i", system, "x"), Column("error", "metric", Signature(), better=better)  # type: ignore[arg-type]
    low, high = ends[1:]
    estimates = {(system, "error"): Estimate("mean", ends[0] or 0.0, low, high, 1, "m")}
    return render(Result(Table((sample,), (column,), ()), estimates))


def test_latex_minus_signs_and_small_intervals() -> None:
    assert _rows(_one("a-1", "lower", -0.5, -0.75, 0.25)) == [
        "{}a-1 & $-$0.500 \\\\",
        " & {\\scriptsize [$-$0.750, 0.250]} \\\\",
    ]
    assert _rows(_one("[a]", "", -0.5, None, None)) == ["{}[a] & $-$0.500 \\\\"]


def _narrow(columns: Sequence[str], n_systems: int = 9) -> str:
    """Return a table of these columns, with the same value in all cells."""
    samples = tuple(Sample("i", f"system {k}", "x") for k in range(n_systems))
    estimates = {
        (s.system, name): Estimate("mean", -0.5, -0.625, -0.25, 1, "m")
        for s in samples
        for name in columns
    }
    return render(
        Result(
            Table(samples, tuple(Column(name, "metric", Signature()) for name in columns), ()),
            estimates,
        )
    )


def test_many_columns_continue_in_a_second_part() -> None:
    text = _narrow([f"metric_{k}" for k in range(12)])
    shapes = re.findall(r"\\begin\{tabular\}\{l(r*)\}", text)
    assert [len(shape) for shape in shapes] == [6, 6]
    assert text.count("\\begin{table}") == text.count("\\caption") == text.count("\\medskip") == 1
    assert text.count("{}system 8 & ") == text.count("\\resizebox{\\ifdim\\width>\\linewidth") == 2
    assert "\\allowbreak" not in text


def test_a_table_that_is_longer_than_a_page_continues_in_another_float() -> None:
    text = _narrow(["metric"], n_systems=50)
    assert text.count("\\begin{table}") == text.count("\\caption{") == 3
    assert text.count("\\caption{(continued) ") == 2
    assert text.count("\\label{") == 1
    rows = [line for line in text.splitlines() if line.startswith("{}system ")]
    assert len(rows) == 50 + 3  # each part has a heading


def test_a_long_text_is_broken_into_lines() -> None:
    reason = "the interval reaches below the limit, so that more items are needed"
    verdicts = text_table(("case", "reason"), [("one", reason)], name="cases")
    section = Section("cases", "Cases", lambda: (verdicts,))
    text = plugins.write(Document("D", sections=(section,)), "latex")
    assert "\\begin{tabular}{ll}" in text
    assert f"{{\\raggedright {reason}\\strut}}" in text


def test_the_heading_of_the_names_is_escaped() -> None:
    numbers = table(("topic_x", "mean"), [("a", 1)], name="slices")
    section = Section("slices", "Slices", lambda: (numbers,))
    text = plugins.write(Document("D", sections=(section,)), "latex")
    assert "{}topic\\_x & mean" in text


def test_every_table_has_a_label_of_its_own() -> None:
    numbers = table(("system", "mean"), [("a", 1)])
    blocks = tuple(replace(numbers, name=name) for name in ("by-流暢さ", "by-関連性", "", ""))
    section = Section("all", "All", lambda: blocks)
    text = plugins.write(Document("D", sections=(section,)), "latex", full=True)
    assert _labels(text) == ["tab:judge-by", "tab:judge-by-2", "tab:judge-3", "tab:judge-4"]


def test_a_long_heading_is_broken_between_words() -> None:
    heading = "\\parbox[b]{6em}{\\raggedleft a\\_\\allowbreak{}rather\\_\\allowbreak{}long\\_\\allowbreak{}name\\_"
    assert heading in _narrow(["a_rather_long_name_of_a_column"])


def test_a_heading_is_as_wide_as_its_longest_word() -> None:
    assert "\\parbox[b]{9em}{\\raggedleft no\\_\\allowbreak{}" in _narrow(
        ["no_unsubstantiated_claims"]
    )


@pytest.mark.parametrize(
    ("system", "is_said"), [("gpt_5", False), ("é-1", False), ("日本語", True)]
)
def test_names_in_other_scripts_add_a_comment_about_the_tex_engine(
    system: str, is_said: bool
) -> None:
    assert ("% Compile with LuaLaTeX" in _one(system, "", 0.5, None, None)) is is_said


def test_that_no_model_judged_is_a_comment(tested: Result) -> None:
    lines = render(
        replace(tested, info=RunInfo(notices=("Scripted: no\nmodel was asked",)))
    ).splitlines()
    assert lines[1] == "% Scripted: no model was asked"


@pytest.mark.parametrize(
    ("better", "head"),
    [("higher", "error $\\uparrow$"), ("lower", "error $\\downarrow$"), ("", "error")],
)
def test_an_arrow_marks_the_better_end(better: str, head: str) -> None:
    assert f"{{}}system & {head} \\\\\n" in _one("a", better, 0.5, None, None)


def test_every_ranking_has_a_separate_table(ranking: Result) -> None:
    (of,) = ranking.rankings
    columns = tuple(replace(ranking.table.columns[0], name=name) for name in ("one", "two"))
    two = replace(
        ranking,
        table=replace(ranking.table, columns=columns),
        rankings=tuple(replace(of, column=column.name) for column in columns),
    )
    assert _labels(render(two)) == [
        "tab:judge-ranking-one",
        "tab:judge-ranking-two",
        "tab:judge-win-rates-one",
        "tab:judge-win-rates-two",
    ]
