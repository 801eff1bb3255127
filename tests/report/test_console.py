from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

import judge
from judge.core import plugins
from judge.core.records import Column, Estimate, Sample
from judge.core.signature import Signature
from judge.report.document import (
    Bar,
    Bullets,
    Cell,
    Code,
    Document,
    Excerpt,
    Excerpts,
    Facts,
    Notice,
    Paragraph,
    Section,
    table,
    text_table,
)
from judge.report.document import Column as Head
from judge.report.document import Table as Shown
from judge.report.renderers import svg
from judge.results.result import Result
from judge.results.run_info import RunInfo
from judge.table import Table

pytestmark = pytest.mark.usefixtures("command_line")


def test_golden(result: Result, golden) -> None:
    golden("console.txt", plugins.write(plugins.document(result), width=80))


def test_golden_of_the_full_report(tested: Result, golden) -> None:
    golden("console-full.txt", plugins.write(plugins.document(tested), width=80, full=True))


def test_full_report_omits_charts_of_values_in_tables(tested: Result, ranking: Result) -> None:
    for result in (tested, ranking):
        text = " ".join(plugins.write(plugins.document(result), full=True).split())
        every = [chart for chart in svg.charts(plugins.document(result)) if chart.alt]
        printed = {
            chart.name for chart in every if " ".join(f"{chart.title}: {chart.alt}".split()) in text
        }
        untabled = ("scores-", "correlations", "differences-delta", "metrics")
        assert printed == {chart.name for chart in every if chart.name.startswith(untabled)}


def _wide_result(columns: int) -> Result:
    names = tuple(
        Column(f"criterion_{k}", "criterion", Signature(), 1.0, 5.0) for k in range(columns)
    )
    systems = ["한국어-요약-모델-이름이-아주-긴-시스템", "b"]
    table = Table(tuple(Sample("i", s, "o") for s in systems), names, ())
    estimates = {
        (s, c.name): Estimate("mean", 3.0 + k, 2.5, 4.5, 1, "m")
        for k, s in enumerate(systems)
        for c in names
    }
    return Result(table, estimates)


@pytest.mark.parametrize("width", [40, 80, 132])
@pytest.mark.parametrize("colour", [False, True])
def test_the_summary_is_one_table_with_the_number_of_hidden_columns(
    width: int, colour: bool
) -> None:
    text = plugins.write(plugins.document(_wide_result(12)), width=width, colour=colour)
    hidden = re.search(
        r"(\d+) more columns, intervals", " ".join(re.sub(r"\x1b\[[\d;]*m", "", text).split())
    )
    assert text.count("4.00") == 12 - (int(hidden[1]) if hidden else 0)


@pytest.mark.parametrize("width", [40, 80, 132])
def test_the_full_report_shows_every_column_within_the_width(width: int) -> None:
    document = replace(plugins.document(_wide_result(12)), summary=())
    document = replace(document, sections=document.sections[:1])
    text = plugins.write(document, width=width, full=True)
    assert max(cell_len(row) for row in text.split("\n")) <= width
    assert text.count(" 4.00") == 12


def _table(*rows: tuple[Cell, ...], heads: tuple[str, ...]) -> Document:
    columns = (Head("", numeric=False), *map(Head, heads))
    return Document("t", ("A finding",), "40 items", summary=(Shown(columns, rows),))


def test_bars_and_colours_are_for_terminals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    document = _table((Cell("a"), Cell("0.50", bar=Bar(0.5), tone="good")), heads=("overall",))
    assert "█" not in plugins.write(document)
    assert "\x1b" not in plugins.write(document)
    coloured = plugins.write(document, colour=True)
    assert coloured.count("█") == 5
    assert "\x1b[1;32m" in coloured


def test_marks_do_not_move_the_numbers() -> None:
    document = _table(
        (Cell("a"), Cell("4.36", mark="*")), (Cell("b"), Cell("4.17")), heads=("fluency",)
    )
    _, _, _, first, second, *_ = plugins.write(document, width=80).split("\n")
    assert first.index("4.36") == second.index("4.17")


def test_bold_figures_are_explained_only_if_there_are_any() -> None:
    """Regression: `judge validate --full` in a pipe explained "Bold: best" and had no bold."""
    means = table(("", "fluency"), [("a", Cell("4", tone="good"))], bold="Bold: best.")
    document = Document("t", summary=(means,))
    assert "Bold" not in plugins.write(document)
    assert "Bold" in plugins.write(document, colour=True)
    assert "Bold" in plugins.write(document, "markdown")


def test_numbers_of_scored_texts_do_not_move_the_means() -> None:
    document = _table(
        (Cell("a"), Cell("4.36", coverage="9/10")), (Cell("b"), Cell("4.17")), heads=("fluency",)
    )
    _, _, _, first, second, *_ = plugins.write(document, width=80).split("\n")
    assert first.index("4.36") == second.index("4.17")


def test_headings_are_folded_between_words_if_the_table_does_not_fit() -> None:
    heads = ("judge − rater", "factual_consistency")
    document = _table((Cell("a"), Cell("1"), Cell("2")), heads=heads)
    assert all(head in plugins.write(document, width=80) for head in heads)
    assert plugins.write(document, width=24).splitlines()[-3:] == [
        "    judge −     factual_",
        "      rater  consistency",
        "a         1            2",
    ]


def _words(text: str) -> set[str]:
    return set(re.split(r"[\s_/|.-]+", text))


@pytest.fixture(scope="module")
def named(model_names: Result) -> list[tuple[Document, set[str]]]:
    """A run and its validation with names like those of models, each with the words of its report
    without line breaks.
    """
    named = []
    for finished in (model_names, judge.validate(model_names, n_resamples=10)):
        document = plugins.document(finished)
        whole = [plugins.write(document, width=1000, full=full) for full in (False, True)]
        named.append((document, _words(" ".join(whole))))
    return named


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("full", [False, True])
def test_no_word_is_broken(named: list[tuple[Document, set[str]]], width: int, full: bool) -> None:
    """Every word of a narrow report is also in the report without line breaks."""
    of_hidden_columns = {
        "more",
        "column",
        "columns",
        "column:",
        "columns:",
        "columns,",
        "·",
        "full",
    }
    for document, whole in named:
        narrow = _words(plugins.write(document, width=width, full=full))
        assert narrow <= whole | of_hidden_columns


def test_a_folded_line_of_a_prompt_goes_on_indented() -> None:
    """Regression: the end of a folded line read like a line of the prompt."""
    prompt = "Judge the text by one criterion.\n- Answer with one number only.\nScale: 1 to 5."
    section = Section("prompt", "Prompt", lambda: (Code(prompt),))
    printed = plugins.write(Document("t", sections=(section,)), width=24, full=True)
    assert printed.strip().split("\n")[-5:] == [
        "  Judge the text by",
        "    one criterion.",
        "  - Answer with one",
        "    number only.",
        "  Scale: 1 to 5.",
    ]


@pytest.mark.parametrize("width", range(20, 60))
def test_no_line_begins_with_the_punctuation_of_japanese_or_chinese(width: int) -> None:
    text = "渡船は霧のため、午後遅く、港へ着いた。乗客は「平気だ」と話し、けがはなかった。渡轮很晚才到，没有人受伤。"
    excerpt = Excerpt("1", "a", "i", "c", text=text, reason=text)
    blocks = (Paragraph(text), Notice(text), Code(text), Excerpts("", (excerpt,)))
    section = Section("texts", "Texts", lambda: blocks)
    document = Document("t", (text,), sections=(section,), footer=(f"Failed   {text}",))
    lines = plugins.write(document, width=width, full=True).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert not [line for line in lines if line.strip()[:1] in {*"、。」，"}]


def test_long_excerpts_and_failures_are_folded_and_paths_stay_whole() -> None:
    name = "a-long-name-of-an-item-or-a-system"
    lowest = Excerpts("Lowest", (Excerpt("1", name, name, "fluency", "Broken."),))
    footer = (
        "2 judged · runs/a-folder-with-a-long-name",
        f"Failed   3 × ParseError: {name} {name}",
    )
    document = Document("t", ("A",), summary=(lowest,), footer=footer)
    lines = plugins.write(document, width=40).splitlines()
    assert max(map(len, lines)) == len(footer[0])
    assert [len(line) <= 40 for line in lines].count(False) == 1
    assert f"         {name}"[:30] in "\n".join(lines)


def test_the_summary_lists_three_excerpts_and_the_commands_on_whole_lines() -> None:
    lowest = Excerpts(
        "Lowest", tuple(Excerpt("1", "s", f"i{k}", "fluency", "Broken.") for k in range(5))
    )
    document = Document(
        "t",
        ("A",),
        summary=(lowest,),
        next=("judge validate runs/a", "judge plan runs/a --pair a,b", "judge report RUN"),
    )
    text = plugins.write(document, width=40)
    assert "Lowest   i0 s fluency 1 · i1 s fluency 1\n         i2 s fluency 1\n" in text
    assert "Next     judge validate runs/a\n         judge plan runs/a --pair a,b\n" in text
    full = plugins.write(document, width=40, full=True)
    assert full.count("Broken.") == 5


def test_control_characters_of_texts_are_escaped() -> None:
    document = Document(
        "t", ("\x1b[31mred",), notices=("\u202eabc",), footer=("\x07",), next=("\x1b]0;x",)
    )
    assert not set(plugins.write(document)) & {"\x1b", "\u202e", "\x07"}


def test_the_width_is_the_terminals(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    assert result.report() == plugins.write(plugins.document(result), width=44)


def test_a_clean_run_has_no_failures_and_no_usage(result: Result) -> None:
    clean = replace(result, table=replace(result.table, failures=()), info=RunInfo())
    text = clean.report(full=True)
    assert "Failures" not in text
    assert "Usage" not in text


def test_columns_of_text_are_narrowed_until_they_fit_the_width_with_the_gaps() -> None:
    heads = [Head(name, numeric=False) for name in ("a", "b", "c", "d")]
    words = " ".join(["word"] * 12)
    table = Shown(tuple(heads), (tuple(Cell(f"{name} {words}") for name in "abcd"),))
    lines = plugins.write(
        Document("t", ("A finding",), "", summary=(table,)), width=80
    ).splitlines()
    widest = max(cell_len(line) for line in lines)
    assert 70 <= widest <= 80
    assert sum(line.count("word") for line in lines) == 48


@pytest.mark.parametrize("width", range(20, 80, 3))
def test_no_line_breaks_inside_an_interval_or_after_a_sign(width: int) -> None:
    kept = ("(p = 0.004)", "[−0.05, 0.40]", "≥ 4", "(p < .001)", "[61%, 94%]", "[1,200, 1,900]")
    sentence = f"It is better {', and better '.join(kept)} than a, b and c."
    blocks = (
        Paragraph(sentence),
        Notice(sentence),
        Bullets((sentence,)),
        Facts((("n", sentence),)),
    )
    table = text_table(("case", "reason"), [("a", sentence)])
    document = Document("t", (sentence,), summary=(*blocks, table))
    lines = plugins.write(document, width=width).split("\n")
    for words in kept:
        assert sum(line.count(words) for line in lines) == len(blocks) + 2
