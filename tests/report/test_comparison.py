"""The report of two runs: golden files, the finding, limits of the summary, and hostile text."""

from __future__ import annotations

import json
import re
from csv import DictReader
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

import judge
from judge.commands.compare.finding import finding
from judge.core import plugins
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.document import Details, Document, Facts, Table
from judge.report.renderers.svg import charts
from judge.results.comparison import Change, RunComparison
from judge.results.result import Result
from judge.stats.run_differences import compare_runs
from judge.table import Table as ScoreTable
from tests.factories import has_line, lines_hold

pytestmark = pytest.mark.usefixtures("command_line")

FORMATS = ("console", "markdown", "html", "latex", "csv", "json")
C = Column("c", "criterion", Signature("c@1"), 1.0, 5.0)
MADE = Provenance("single")


def compared(before: Result, after: Result, **fields: Any) -> RunComparison:
    runs = compare_runs(before.table, after.table, n_resamples=200)
    return RunComparison(("runs/a", "runs/b|<b>"), before, after, runs, **fields)


@pytest.fixture
def two(result: Result) -> RunComparison:
    """The fixed result, and one with a system one point lower in coherence, one new failure and one removed."""
    table = result.table
    moved = [
        replace(
            s, value=s.value - 1, provenance=replace(s.provenance, reason="It names <b>no one</b>.")
        )
        if (s.system, s.column) == ("lead", "coherence")
        else s
        for s in table.scores
        if (s.item, s.system, s.column) != ("文書2", "システム二", "一貫性")
    ]
    failures = [f for f in table.failures if f.column != "coherence"]
    mended = Score("doc-3", "システム二", "coherence", 4.0, MADE)
    gone = Failure(
        "文書2", "システム二", "一貫性", "request", "Refused", "no more `of` this | please"
    )
    columns = tuple(c for c in table.columns if c.name != "length")
    scores = tuple(s for s in (*moved, mended) if s.column != "length")
    after = ScoreTable(table.samples, columns, scores, (*failures, gone))
    changes = (
        Change("model", "openai/small", "openai/|large|", ("coherence", "一貫性")),
        Change(
            "prompt",
            "3f2a91",
            "77aa01",
            ("coherence",),
            ("--- a", "+++ b", "-<old> & text", "+<new> & text"),
        ),
    )
    return compared(
        result,
        replace(result, table=after),
        changes=changes,
        notes=("A note with \x1b[31m in it.",),
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("compared.txt", {}),
        ("compared.full.txt", {"full": True}),
        ("compared.md", {"format": "markdown"}),
        ("compared.tex", {"format": "latex", "full": True}),
    ],
)
def test_golden(
    two: RunComparison,
    golden: Any,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    options: dict[str, Any],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden(name, two.report(**options))


def document(comparison: RunComparison) -> Document:
    built: Document = plugins.document(comparison)
    return built


def table(comparison: RunComparison, name: str = "") -> Table:
    """Return the short table of the summary, or the table of a column."""
    report = document(comparison)
    blocks = (*report.summary, *(block for section in report.sections for block in section.blocks))
    return next(
        block
        for block in blocks
        if isinstance(block, Table) and block.name in (name, "changes"[len(name) :])
    )


def test_the_summary_fits_a_terminal(two: RunComparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    # A terminal has 24 lines; the command and the next prompt need two.
    assert len(two.report().splitlines()) <= 22


def test_every_format_escapes_codes_and_markup(two: RunComparison) -> None:
    assert not any("\x1b" in two.report(format, full=True) for format in FORMATS)
    assert "\x1b[1m" in two.report(colour=True)
    for page in (two.report("html"), two._repr_html_()):
        assert "<b>" not in page.replace("<b>|", "")
    assert "&lt;b&gt;no one&lt;/b&gt;" in two.report("html")
    assert "&lt;old&gt; &amp; text" in two.report("html")


def test_failures_of_one_run_are_shown_with_an_example(two: RunComparison) -> None:
    failures = table(two, "failures")
    assert [[cell.text for cell in row[:3]] for row in failures.rows] == [
        ["new refused", "1", "一貫性"],
        ["gone unreadable", "1", "coherence"],
    ]
    assert [row[3].text.partition(": ")[2][:17] for row in failures.rows] == [
        "no more `of` this",
        "no score in reply",
    ]
    assert "1 new failure, 1 gone" in two.report()


def test_json_is_strict_and_complete(two: RunComparison) -> None:
    data = json.loads(two.report("json"), parse_constant=pytest.fail)
    assert data["schema"] == "judge.compare/1"
    assert data["finding"] == list(document(two).finding)
    assert (data["texts"], data["items"]) == (9, 3)
    assert data["only"][0]["columns"] == ["length"]
    assert len(data["means"]) == len(two.runs.means)
    assert data["changes"][1]["diff"][-1] == "+<new> & text"


def test_csv_has_a_line_per_mean(two: RunComparison) -> None:
    lines = list(DictReader(two.report("csv").splitlines()))
    assert [(line["column"], float(line["change"])) for line in lines] == [
        (row.column, row.estimate.value) for row in two.runs.means
    ]


def test_an_item_shows_the_judges_words_before_and_after(two: RunComparison) -> None:
    (section,) = [section for section in document(two).sections if section.anchor == "items"]
    first = section.blocks[0]
    assert isinstance(first, Details)
    assert first.title.startswith("doc-1 (25% of the scale): ")
    assert "4.20 → 3.20" in first.title
    (facts, *_) = first.blocks
    assert isinstance(facts, Facts)
    # A reply is not the score: the score of token probabilities is their mean.
    assert facts.pairs[:2] == (("reply before", "4"), ("reason after", "It names <b>no one</b>."))


# The finding


def result_of(values: dict[str, list[float | None]], column: Column = C) -> Result:
    """Return a result of one column from values by system and item."""
    cells = [
        (f"i{n}", system, value) for system, row in values.items() for n, value in enumerate(row)
    ]
    samples = tuple(Sample(item, system, "words") for item, system, _ in cells)
    scores = tuple(
        Score(*cell[:2], column.name, cell[2], MADE) for cell in cells if cell[2] is not None
    )
    return Result(ScoreTable(samples, (column,), scores))


LOW: list[float | None] = [1, 2, 1, 2, 1, 2, 1, 2]
HIGH: list[float | None] = [2, 3, 2, 3, 2, 3, 2, 3]
SAME = ("All texts are the same", "judge changed", "not the systems")
PASS = Column("c", "criterion", Signature("c@1"), 0.0, 1.0, ("fail", "pass"), values=(0.0, 1.0))


@pytest.mark.parametrize(
    ("before", "after", "facts_of_lines"),
    [
        ({"x": LOW}, {"x": LOW}, [("No score changed", "1 mean")]),
        ({"x": LOW}, {"x": HIGH}, [("c rose by 1.00", "p = 0.008"), SAME]),
        (
            {"x": LOW, "y": LOW},
            {"x": HIGH, "y": LOW},
            [
                ("c rose by 1.00 for x", "p = 0.008"),
                ("c rose by 0.50", "all systems", "p = 0.008"),
                SAME,
            ],
        ),
        (
            {"x": HIGH, "y": HIGH},
            {"x": LOW, "y": LOW},
            [
                ("c fell by 1.00 for x", "p = 0.016", "c fell by 1.00 for y", "p = 0.016"),
                ("c fell by 1.00", "all systems", "p = 0.008"),
                SAME,
            ],
        ),
        (
            {name: HIGH for name in "xyz"},
            {name: LOW for name in "xyz"},
            [
                ("3 of 3 means changed significantly", "c fell by 1.00 for x", "p = 0.023"),
                ("c fell by 1.00", "all systems", "p = 0.008"),
                SAME,
            ],
        ),
        (
            {"x": [1, 2, 3]},
            {"x": [1, 2, 4]},
            [
                ("No significant change", "1 mean"),
                ("largest change", "c rose by 0.33", "p = 1.000"),
                ("3 items", "no change", "significant", "at least 6"),
            ],
        ),
        (
            {"x": [1]},
            {"x": [2]},
            [("Too few items", "1 mean"), ("largest change", "c rose by 1.00")],
        ),
    ],
)
def test_the_finding(before: Any, after: Any, facts_of_lines: list[tuple[str, ...]]) -> None:
    lines = finding(compared(result_of(before), result_of(after)))
    assert lines_hold(lines, facts_of_lines)


def test_texts_of_one_run_alone_are_not_said_to_be_the_same() -> None:
    lines = finding(compared(result_of({"x": LOW}), result_of({"x": [*HIGH, 3]})))
    assert has_line("\n".join(lines), "All shared texts are the same", "judge changed")


def test_all_systems_may_change_although_no_single_one_does() -> None:
    few: list[float | None] = [2, 3, 2, 3, None, None, None, None]
    rest: list[float | None] = [None, None, None, None, 2, 3, 2, 3]
    before, after = (
        {"x": a, "y": b}
        for a, b in ((few, rest), ([*LOW[:4], *[None] * 4], [*[None] * 4, *LOW[4:]]))
    )
    lines = finding(compared(result_of(before), result_of(after)))
    assert lines_hold(lines, [("c fell by 1.00", "all systems", "p = 0.008"), SAME])


def test_a_changes_interval_that_contradicts_its_test_is_explained() -> None:
    """Five of 30 items changed: p is .062, and Student's t excludes 0."""
    passed: list[float | None] = [1.0] * 30

    def key(n_failed: int) -> str:
        after: list[float | None] = [*[0.0] * n_failed, *[1.0] * (30 - n_failed)]
        return table(compared(result_of({"x": passed}), result_of({"x": after})), "means").key

    assert has_line(key(5), "change alone", "p decides")
    assert not has_line(key(2), "p decides")
    assert not has_line(key(10), "p decides")


def test_shares_change_by_points() -> None:
    failed, passed = ([value] * 8 for value in (0.0, 1.0))
    comparison = compared(result_of({"x": failed}, PASS), result_of({"x": passed}, PASS))
    assert has_line([next(finding(comparison))], "c rose by 100 points", "p = 0.008")
    assert [cell.text for cell in table(comparison).rows[0]] == ["x", "100% +100"]
    (chart,) = [chart for chart in charts(document(comparison)) if chart.name == "changes"]
    assert re.findall('class="tick"[^>]*>([^<]*)<', chart.svg)[-1] == "100"


def test_a_lower_is_better_column_is_marked() -> None:
    lower = replace(C, better="lower")
    report = compared(result_of({"x": LOW}, lower), result_of({"x": HIGH}, lower)).report(
        "markdown"
    )
    assert "| c ↓ |" in report
    assert (
        table(compared(result_of({"x": LOW}, lower), result_of({"x": HIGH}, lower))).rows[0][1].tone
        == "bad"
    )


def test_many_systems_are_limited_in_the_summary_only() -> None:
    before = result_of({f"s{n:02}": LOW for n in range(20)})
    after = result_of({f"s{n:02}": [v + n / 20 for v in LOW if v is not None] for n in range(20)})
    both = compared(before, after)
    short = table(both)
    assert [row[0].text for row in short.rows] == [
        "all systems",
        *(f"s{n:02}" for n in range(19, 13, -1)),
    ]
    assert "14 systems with smaller changes" in short.key
    assert len(table(both, "means").rows) == 21


def test_values_of_all_texts_together_have_no_test() -> None:
    column = Column("bleu", "metric", Signature("bleu"))
    base = result_of({"x": LOW}, column)
    one, other = (
        Result(
            replace(base.table, scores=(Score("", "x", "bleu", value, Provenance("metric", n=8)),))
        )
        for value in (30.0, 32.5)
    )
    (row,) = table(compared(one, other), "means").rows
    assert [cell.text for cell in row] == [
        "BLEU ↑",
        "x",
        "30.00",
        "32.50",
        "+2.50",
        "–",
        "–",
        "–",
        "–",
    ]


def remarks(before: Result, after: Result) -> str:
    return compared(before, after).report("markdown").replace("\\", "")


def test_the_report_lists_uncompared_columns_and_texts() -> None:
    before, after = result_of({"x": LOW, "old": LOW}), result_of({"x": LOW, "new": LOW})
    wide = replace(after, table=replace(after.table, columns=(replace(C, high=9.0),)))
    assert has_line(remarks(before, wide), "c is not compared", "1–5", "1–9")
    assert has_line(remarks(before, wide), "Only in runs/a", "1 system", "old")
    many = result_of({"x": [*LOW, *LOW, *LOW]})
    listed = "i8, i9, i10, i11, i12, i13, i14, i15 and 8 more"
    assert has_line(remarks(many, result_of({"x": LOW})), "Only in runs/a", "16 items", listed)
    gap = result_of({"x": [None, *LOW[1:]]})
    notes = remarks(result_of({"x": LOW}), gap)
    assert has_line(notes, "Not requested", "second run: 1 value", "first: 0")


def test_the_finding_says_why_no_column_is_compared() -> None:
    before = result_of({"x": LOW})
    wide = replace(before, table=replace(before.table, columns=(replace(C, high=9.0),)))
    (sentence, *_) = finding(compared(before, wide))
    assert has_line(sentence, "cannot be compared on c", "1–5", "1–9")


def test_a_change_of_all_systems_has_its_interval() -> None:
    before = result_of({"x": [1, 2, 3, 4, 1, 2, 3, 4], "y": [2, 3, 4, 5, 2, 3, 4, 5]})
    after = result_of(
        {"x": [1.5, 2.2, 3.4, 4.3, 1.1, 2.6, 3.3, 4.2], "y": [2.3, 3.4, 4.1, 5, 2.5, 3.2, 4.4, 5]}
    )
    comparison = compared(before, after)
    (overall,) = (row.estimate for row in comparison.runs.means if not row.system)
    assert overall.low is not None
    assert overall.high is not None
    assert 0 < overall.low < overall.high < 1
    assert f"c rose by {overall.value:.2f} [{overall.low:.2f}, {overall.high:.2f}]" in " ".join(
        finding(comparison)
    )


# System or judge?


def split_in_two(n_anchors: int = 8) -> RunComparison:
    """Return two runs: the judge shifted, and one system has new texts."""
    shifted = [value + (0.5 if n % 2 else 1.0) for n, value in enumerate(LOW) if value is not None]
    better: list[float | None] = [
        value + (0.5 if n % 4 > 1 else 1.5) for n, value in enumerate(shifted)
    ]
    others: list[float | None] = [*shifted][:n_anchors]
    before = result_of(
        {"bart": LOW[:n_anchors], "lead": LOW[:n_anchors], "t5": LOW[:n_anchors], "x|<b>": LOW}
    )
    after = result_of({"bart": others, "lead": others, "t5": others, "x|<b>": better})
    edited = tuple(
        replace(s, output="other") if s.system == "x|<b>" else s for s in after.table.samples
    )
    return compared(before, replace(after, table=replace(after.table, samples=edited)))


@pytest.mark.parametrize(
    ("name", "format"), [("split.txt", "console"), ("split.md", "markdown"), ("split.csv", "csv")]
)
def test_golden_of_a_split(
    golden: Any, monkeypatch: pytest.MonkeyPatch, name: str, format: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden(name, split_in_two().report(format, full=format == "console"))


def test_json_has_the_parts() -> None:
    data = json.loads(split_in_two().report("json"), parse_constant=pytest.fail)
    (row,) = [row for row in data["means"] if row["system"] == "x|<b>"]
    assert (row["judge"]["value"], row["system_change"]["value"]) == (0.75, 1.0)
    assert row["system_adjusted"] < 0.05
    assert data["anchors"] == 8


def test_too_few_anchors_are_named() -> None:
    report = split_in_two(4).report("markdown")
    assert "cannot be separated for" in report
    assert "of 5 needed" in report
    assert "judge's part" not in report


def test_a_judge_that_did_not_move_is_named() -> None:
    comparison = split_in_two()
    same = replace(comparison.before.table, samples=comparison.after.table.samples)
    moved = tuple(replace(s, value=s.value + 1) if s.system == "x|<b>" else s for s in same.scores)
    unmoved = compared(
        comparison.before, replace(comparison.after, table=replace(same, scores=moved))
    )
    assert has_line([list(finding(unmoved))[-1]], "judge did not change", "24 unchanged texts")


def test_the_finding_says_that_another_system_is_best() -> None:
    """Regression: a judge that turned "alpha beats all" into "beta beats all" was not mentioned."""

    def run_with(means: dict[str, float]) -> Any:
        rows = [
            {"item": n, "system": system, "output": "text", "tone": mean + (n % 3) / 2}
            for system, mean in means.items()
            for n in range(12)
        ]
        return judge.evaluate(pd.DataFrame(rows), judge_columns="tone", scale="1-5")

    alpha_first = run_with({"alpha": 4.0, "beta": 2.0, "gamma": 3.0})
    beta_first = run_with({"alpha": 2.0, "beta": 4.0, "gamma": 3.0})
    still_beta = run_with({"alpha": 1.5, "beta": 4.0, "gamma": 3.0})
    nobody = run_with({"alpha": 3.0, "beta": 3.0, "gamma": 3.0})
    changed = list(finding(judge.compare(alpha_first, beta_first)))
    assert has_line(changed, "Best on tone", "alpha before", "beta after")
    undecided = list(finding(judge.compare(beta_first, nobody)))
    assert has_line(undecided, "Best on tone", "beta before", "no system after")
    assert not has_line(list(finding(judge.compare(beta_first, still_beta))), "Best on")
    # Only what was compared is new, not who is best.
    alone = run_with({"beta": 4.0})
    assert not has_line(list(finding(judge.compare(beta_first, alone))), "Best on")
