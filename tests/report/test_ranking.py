from __future__ import annotations

import csv
import json
from dataclasses import fields, replace
from io import StringIO

import pytest
from rich.cells import cell_len

import judge
from judge.config import RankConfig
from judge.core import plugins
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.document import Table as Shown
from judge.report.views.finding import finding
from judge.report.views.ranking import win_rate_matrix
from judge.results.loading import load
from judge.results.result import Result
from judge.results.run_info import RunInfo
from judge.stats.pairwise import Standing, rankings
from judge.table import Table
from tests.factories import has_line

pytestmark = pytest.mark.usefixtures("command_line")

FORMATS = {"console": "txt", "markdown": "md", "json": "json", "csv": "csv"}


@pytest.mark.parametrize("format", FORMATS)
def test_golden(ranking: Result, golden, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden(f"ranking.{FORMATS[format]}", ranking.report(format))


def _ranked(
    systems: int, items: int = 2, orders: int = 2, criteria: tuple[str, ...] = ("overall",)
) -> Result:
    """System k loses every comparison against the systems before it."""
    names = [f"system-{k}" for k in range(systems)]
    samples = tuple(Sample(f"i{i}", name, f"text {name}") for i in range(items) for name in names)
    scores = tuple(
        Score(f"i{i}", one, column, float(place < at), Provenance("single"), other)
        for i in range(items)
        for place, one in enumerate(names)
        for at, other in enumerate(names)
        for column in criteria
        if place != at and (orders == 2 or place < at)
    )
    columns = tuple(
        Column(name, "criterion", Signature(name), 0.0, 1.0, ("A", "B")) for name in criteria
    )
    table = Table(samples, columns, scores)
    ranked = rankings(scores, (), names, criteria, orders=orders)  # type: ignore[arg-type]
    return Result(table, {}, RunInfo(config=RankConfig(orders=orders)), rankings=ranked)


def standings(result: Result) -> Shown:
    table = plugins.document(result).sections[0].blocks[0]
    assert isinstance(table, Shown)
    return table


def test_the_table_has_every_standing(ranking: Result) -> None:
    first, second, third = standings(ranking).rows
    assert [(cell.text, cell.note) for cell in first] == [
        ("システム二", ""), ("61%", "[50, 75]"), ("0.31", "[−0.10, 0.80]"), ("2-0-1", "(2 undecided)"), ("5", ""),
        ("3", ""), ("40.0%", ""),
    ]  # fmt: skip
    assert [(cell.text, cell.note) for cell in second[3:4]] == [("2-1-2", "(1 undecided)")]
    assert [(cell.text, cell.note) for cell in third[1:3]] == [("32%", ""), ("−0.45", "")]


def test_the_matrix_has_the_win_rates_in_the_order_of_the_standings(ranking: Result) -> None:
    (ranked,) = ranking.rankings
    matrix = win_rate_matrix(ranked)
    systems = [row[0].text for row in matrix.rows]
    assert (
        systems
        == [column.head for column in matrix.columns[1:]]
        == [s.system for s in ranked.standings]
    )
    for a, row in zip(ranked.systems, ranked.win_rate, strict=True):
        for b, rate in zip(ranked.systems, row, strict=True):
            cell = matrix.rows[systems.index(a)][1 + systems.index(b)]
            assert cell.text == ("" if rate is None else f"{100 * rate:.1f}")
            assert cell.shade == (None if rate is None else 2 * rate - 1)
    titles = [cell.title for row in matrix.rows for cell in row]
    assert "lead against システム二: 40.0% of 3 pairs" in titles


def test_ranking_sentences_describe_the_comparison(ranking: Result) -> None:
    text = " ".join(ranking.report("console", full=True).split())
    for sentence in (
        "8 pairs compared; identical texts, ties without a judge: 1; left out, because a judgment is missing: 1; failed "
        "judgments: 1.",
        "The verdict changed with the order in 28.6% of the judged pairs (flip rate).",
        "The text shown first got 57.9% of the preference; without position bias it gets 50%.",
    ):
        assert sentence in text
    alone = " ".join(_ranked(3, orders=1).report("console", full=True).split())
    assert has_line(alone, "No pair", "both orders", "unknown")


@pytest.mark.parametrize(
    ("p", "low", "is_explained"),
    [(0.06, 0.51, True), (0.06, 0.49, False), (0.01, 0.49, True), (0.01, 0.51, False)],
)
def test_a_win_rates_interval_that_contradicts_its_test_is_explained(
    p: float, low: float, is_explained: bool
) -> None:
    result = _ranked(2)
    (ranking,) = result.rankings
    standing = replace(ranking.standings[0], win_rate=0.7, low=low, high=0.9, p=p)
    changed = replace(ranking, standings=(standing,), against=ranking.standings[1].system)
    report = replace(result, rankings=(changed,)).report("console", full=True)
    assert has_line(" ".join(report.split()), "win rate alone", "test decides") is is_explained


def test_pairs_on_several_criteria_are_counted_as_comparisons() -> None:
    assert has_line(_ranked(2, items=6).report(), "6 pairs compared")
    several = _ranked(2, items=6, criteria=("overall", "tone"))
    assert has_line(several.report(), "12 comparisons on 2 criteria")


def test_uncompared_systems_come_last_without_numbers() -> None:
    result = _ranked(3)
    rows = tuple(s for s in result.table.scores if "system-2" not in (s.system, s.opponent))
    ranked = rankings(rows, (), result.table.systems, ["overall"])
    shown = replace(result, rankings=ranked)
    assert [cell.text for cell in standings(shown).rows[-1]] == ["system-2", *["–"] * 6]
    assert [cell.text for cell in win_rate_matrix(ranked[0]).rows[-1][1:]] == ["–", "–", ""]
    for format in FORMATS:
        assert replace(result, rankings=ranked).report(format)


def test_a_ranking_of_nothing_has_every_report() -> None:
    failed = Failure("i", "a", "overall", "request", "Refused", "no", opponent="b")
    table = Table(
        (Sample("i", "a", "x"), Sample("i", "b", "y")),
        (Column("overall", "criterion", Signature()),),
        (),
        (failed,),
    )
    ranked = rankings((), (failed,), table.systems, ["overall"])
    result = Result(table, {}, RunInfo(), rankings=ranked)
    for format in FORMATS:
        assert result.report(format) or format == "csv"
    assert result.report().startswith("No judgment succeeded (1 refused)")


def test_the_summary_of_a_ranking_says_why_judgments_failed(ranking: Result) -> None:
    lines = [line for line in ranking.report().splitlines() if line.startswith("Failed")]
    assert has_line("\n".join(lines), "1 × unreadable (overall)")


def test_pairs_that_each_failed_in_one_order_have_a_finding() -> None:
    rows = [
        {"item": f"i{number}", "system": system, "source": "s", "output": f"by {system}"}
        for number in range(3)
        for system in "ab"
    ]

    def answer(prompt: str) -> str:
        return "A" if prompt.index("by a") < prompt.index("by b") else "I cannot say."

    result = judge.rank(rows, model=answer, metrics="none", cache=False)
    (sentence,) = finding(result)
    assert has_line(sentence, "No pair", "overall", "failed", "two orders")


def test_a_panels_ranking_comes_before_its_judges() -> None:
    result = _ranked(2, criteria=("overall", "overall/a", "overall/b"))
    columns = tuple(
        replace(c, criterion="overall", judge=c.name[8:]) for c in result.table.columns[::-1]
    )
    document = plugins.document(replace(result, table=replace(result.table, columns=columns)))
    titles = [
        section.title for section in document.sections if section.anchor.startswith("ranking-")
    ]
    assert titles == ["overall, panel mean", "overall, b", "overall, a"]


@pytest.mark.parametrize("systems", [2, 12])
def test_the_console_keeps_to_its_width(systems: int) -> None:
    whole = plugins.document(_ranked(systems))
    document = replace(whole, sections=whole.sections[:1])
    for width in (40, 60, 80, 132):
        for full in (False, True):
            text = plugins.write(document, width=width, full=full)
            assert max(cell_len(row) for row in text.split("\n")) <= width


def test_json_holds_every_number(ranking: Result) -> None:
    data = json.loads(ranking.report("json"), parse_constant=pytest.fail)
    assert list(data) == ["schema", "finding", "systems", "rankings", "failures", "info"]
    (of,) = ranking.rankings
    assert [Standing(**row) for row in data["systems"]] == list(of.standings)
    (ranking,) = data["rankings"]
    assert ranking["systems"] == list(of.systems)
    assert ranking["win_rate"] == [list(row) for row in of.win_rate]
    assert ranking["n"] == [list(row) for row in of.n]
    for name in (
        "column",
        "pairs",
        "incomplete",
        "failed",
        "flip_rate",
        "position_bias",
        "method",
        "note",
    ):
        assert ranking[name] == getattr(of, name)


def test_csv_has_a_row_per_standing(ranking: Result) -> None:
    header, *rows = csv.reader(StringIO(ranking.report("csv")))
    names = [field.name for field in fields(Standing) if field.name != "equal_length"]
    assert header == [*names, "equal_length", "equal_length_low", "equal_length_high", "signature"]
    (of,) = ranking.rankings
    for row, standing in zip(rows, of.standings, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert cells.pop("signature") == str(ranking.table.columns[0].signature)
        estimate = standing.equal_length
        for name, end in (("", "value"), ("_low", "low"), ("_high", "high")):
            assert cells.pop(f"equal_length{name}") == str(
                getattr(estimate, end) if estimate else ""
            )
        assert cells == {
            name: "" if (v := getattr(standing, name)) is None else str(v) for name in cells
        }


def test_a_stored_ranking_is_shown_unchanged(ranking: Result, tmp_path) -> None:
    ranking.save(tmp_path)
    for format in FORMATS:
        assert load(tmp_path).report(format) == ranking.report(format)


def test_a_ranking_by_several_criteria_has_a_win_rate_for_each() -> None:
    result = _ranked(3, items=6, criteria=("style", "overall"))
    table = next(block for block in plugins.document(result).summary if isinstance(block, Shown))
    assert [head.head for head in table.columns] == ["", "style", "overall"]
    rates = [[cell.text for cell in row] for row in table.rows]
    assert rates == [
        ["system-0", "100%", "100%"],
        ["system-1", "50%", "50%"],
        ["system-2", "0%", "0%"],
    ]
    assert [cell.shade for cell in table.rows[0][1:]] == [None, 1.0]
    assert [cell.bar is None for cell in table.rows[0][1:]] == [False, True]


def test_the_items_of_the_data_do_not_stand_beside_those_of_the_headline() -> None:
    result = _ranked(2)
    unjudged = tuple(Sample("i9", name, "text") for name in result.table.systems)
    table = replace(result.table, samples=(*result.table.samples, *unjudged))
    document = plugins.document(replace(result, table=table))
    assert document.finding[0].endswith("over 2 items")
    assert document.scope == ""


def test_failed_judgments_are_those_of_the_judges_and_not_of_their_mean() -> None:
    result = _ranked(2, criteria=("overall", "overall/a", "overall/b"))
    judges = {"overall": "", "overall/a": "a", "overall/b": "b"}
    columns = tuple(
        replace(column, judge=judges[column.name], criterion="overall")
        for column in result.table.columns
    )
    failed = {"overall": 3, "overall/a": 1, "overall/b": 2}
    ranked = tuple(replace(ranking, failed=failed[ranking.column]) for ranking in result.rankings)
    table = replace(result.table, columns=columns)
    document = plugins.document(replace(result, table=table, rankings=ranked))
    assert "3 judgments failed" in document.about


def _with_flips(values_when_second: list[float]) -> Result:
    """Text a wins each comparison when it is shown first; b's values when shown first are given."""
    items = [f"i{index}" for index in range(len(values_when_second))]
    samples = tuple(Sample(item, name, f"text {name}") for item in items for name in "ab")
    provenance = Provenance("single")
    scores = []
    for item, value in zip(items, values_when_second, strict=True):
        scores.append(Score(item, "a", "overall", 1.0, provenance, "b"))
        scores.append(Score(item, "b", "overall", value, provenance, "a"))
    column = Column("overall", "criterion", Signature("overall"), 0.0, 1.0)
    ranked = rankings(scores, (), ["a", "b"], ["overall"])
    return Result(Table(samples, (column,), tuple(scores)), {}, rankings=ranked)


def test_a_notice_warns_if_most_verdicts_changed_with_the_order() -> None:
    notices = plugins.document(_with_flips([0.7] * 6 + [0.0] * 4)).notices
    assert any(
        has_line(notice, "overall", "changed", "60.0%", "first got 71.0%") for notice in notices
    )
    few_flips = plugins.document(_with_flips([0.7] * 5 + [0.0] * 5)).notices
    assert not any("changed with the order" in notice for notice in few_flips)


def test_the_headline_alone_says_that_every_verdict_changed_with_the_order() -> None:
    document = plugins.document(_with_flips([1.0] * 10))
    assert has_line(document.finding[0], "Every verdict on overall changed with the order")
    assert not any("changed with the order" in notice for notice in document.notices)
