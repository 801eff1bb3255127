from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

import judge
from judge.core import plugins
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.document import Block, Cell, Document
from judge.report.document import Column as Head
from judge.report.document import Table as Shown
from judge.report.renderers.latex import escape, render
from judge.report.table_selection import with_columns
from judge.report.views.board import build_leaderboard
from judge.report.views.printed_ranks import in_printed_order
from judge.results.result import Result
from judge.results.worst_texts import worst_texts
from judge.stats.bootstrap import item_means
from judge.stats.derived_columns import overall
from judge.stats.ranks import Rank
from judge.stats.system_differences import Comparison, compare
from judge.table import Table
from tests.factories import has_line


def test_criteria_come_before_metrics(result: Result) -> None:
    assert [c.name for c in build_leaderboard(result).columns] == [
        "coherence",
        "一貫性",
        "rougeL",
        "length",
    ]


def caption(result: Result) -> str:
    (table,) = _sections(result)["scores"]
    assert isinstance(table, Shown)
    return f"{table.caption} {table.whole_key}"


def _sections(result: Result) -> dict[str, tuple[Block, ...]]:
    return {section.anchor: section.blocks for section in plugins.document(result).sections}


def short(result: Result) -> Shown:
    return next(block for block in plugins.document(result).summary if isinstance(block, Shown))


def test_cells_describe_the_score(result: Result) -> None:
    rows = build_leaderboard(result).rows
    assert rows["システム二", "coherence"].coverage == "2/3"
    assert rows["lead", "coherence"].coverage == ""
    nothing = rows["evil|<b>*sys*", "一貫性"]
    assert (nothing.mean, nothing.low, nothing.coverage, nothing.failed) == (None, None, "0/3", 3)


def test_nothing_is_marked_if_nothing_was_tested(result: Result) -> None:
    board = build_leaderboard(result)
    assert {row.mark for row in board.rows.values()} == {""}
    assert "significantly" not in caption(result)
    assert (board.ranked_by, board.ranks, board.systems) == ("", {}, result.table.systems)


def test_only_the_chosen_columns_are_explained(tested: Result) -> None:
    (scores,) = _sections(tested)["scores"]
    assert isinstance(scores, Shown)
    assert "Ranked by" in scores.whole_key
    assert "* significantly" in scores.whole_key
    assert with_columns(scores, ["delta"]).whole_key == ""


def test_the_overall_score_comes_first_and_orders_the_systems(tested: Result) -> None:
    board = build_leaderboard(tested)
    assert [column.name for column in board.columns] == ["overall", "fluency", "style", "delta"]
    assert "overall" not in {column.name for column in board.of_texts}
    assert (board.ranked_by, board.systems) == ("overall", ("good", "=fair", "poor"))
    assert board.rows["good", "overall"].mean == tested.estimates["good", "overall"].value


def test_systems_without_a_significant_difference_share_a_rank(tested: Result) -> None:
    board = build_leaderboard(tested)
    assert [board.printed_rank(system) for system in board.systems] == ["1=", "1=", "3"]


def test_only_a_significantly_best_system_is_marked(tested: Result) -> None:
    board = build_leaderboard(tested)
    for comparison in tested.comparisons:
        marks = {system: board.rows[system, comparison.column].mark for system in board.systems}
        best = "best" if len(comparison.best) == 1 else "same"
        assert marks == {
            system: best if system in comparison.best else "" for system in board.systems
        }
    assert {row.mark for row in board.rows.values()} == {"best", "same", ""}


def test_the_page_and_latex_explain_intervals_and_shared_ranks(tested: Result) -> None:
    interval, shared_rank = ("[low, high]: 95% interval", "=: shared rank")
    leaderboard = short(tested)
    assert [row[0].text for row in leaderboard.rows] == ["1=", "1=", "3"]
    assert has_line(leaderboard.small_print, interval, shared_rank)
    document = Document("Run", summary=(leaderboard,))
    caption = re.search(r"\\caption\{(.*)\}", render(document))
    assert caption
    assert has_line(caption[1], escape(interval), escape(shared_rank))
    assert has_line(str(tested.report("html")), interval, shared_rank)
    assert interval not in tested.report("console")


def test_the_leaderboard_explains_only_what_it_shows(tested: Result) -> None:
    (overall,) = [comparison for comparison in tested.comparisons if comparison.column == "overall"]
    apart = tuple(replace(difference, adjusted=0.001) for difference in overall.differences)
    in_order = replace(tested, comparisons=(replace(overall, differences=apart),))
    assert [row[0].text for row in short(in_order).rows] == ["1", "2", "3"]
    assert short(in_order).small_print == "[low, high]: 95% interval"
    no_intervals = {
        key: replace(estimate, low=None, high=None) for key, estimate in tested.estimates.items()
    }
    assert "95% interval" not in short(replace(tested, estimates=no_intervals)).small_print


def test_the_short_table_has_the_criteria_and_one_reference_metric(tested: Result) -> None:
    metric = Column("rouge1", "metric", Signature("rouge1"), 0.0, 1.0)
    other = Column("bleu", "metric", Signature("bleu"), 0.0, 100.0)
    scores = [Score(s.item, s.system, c.name, 0.25, Provenance("metric")) for s in tested.table.samples
              for c in (metric, other)]  # fmt: skip
    table = replace(
        tested.table,
        columns=(*tested.table.columns, metric, other),
        scores=(*tested.table.scores, *scores),
    )
    result = replace(tested, table=table, estimates={**tested.estimates, **item_means(table)})
    shown = short(result)
    assert [column.head for column in shown.columns] == [
        "",
        "",
        "overall",
        "fluency",
        "style",
        "ROUGE-1",
    ]
    assert [row[1].text for row in shown.rows] == ["good", "=fair", "poor"]
    bars = [row[2].bar for row in shown.rows]
    assert [bar.end for bar in bars if bar] == [
        result.estimates[s, "overall"].value for s in ("good", "=fair", "poor")
    ]
    assert shown.whole_key.startswith("* significantly best · overall 0–1, criteria 1–5")
    metric = shown.rows[0][5]
    ends = metric.note.strip("[]").split(", ")
    # A mean and its interval have the same number of decimals.
    assert {len(value.partition(".")[2]) for value in (metric.text, *ends)} == {3}


def test_a_pass_fail_scale_shows_shares_not_numbers() -> None:
    column = Column(
        "helpful", "criterion", Signature("h"), 0.0, 1.0, ("no", "yes"), values=(0.0, 1.0)
    )
    samples = tuple(Sample(f"i{k}", "s", "o") for k in range(8))
    scores = tuple(
        Score(f"i{k}", "s", "helpful", float(k < 6), Provenance("single")) for k in range(8)
    )
    table = Table(samples, (column,), scores)
    result = Result(table, item_means(table))
    (row,) = short(result).rows
    assert row[1].text == "75%"
    assert re.fullmatch(r"\[\d+, \d+\]", row[2].text)
    assert "0.75" not in result.report()
    (lowest,) = worst_texts(result.table, 1)
    assert (lowest.share, lowest.score.value) == (0.0, 0.0)
    assert "helpful no" in result.report()


def test_one_system_has_a_row_for_each_column() -> None:
    columns = tuple(
        Column(name, "criterion", Signature(name), 1.0, 5.0, better=better)
        for name, better in (("kind", "higher"), ("rude", "lower"))
    )
    samples = tuple(Sample(f"i{k}", "shop", "o") for k in range(6))
    scores = tuple(
        Score(sample.item, "shop", column.name, 2.0, Provenance("single"))
        for sample in samples
        for column in columns
    )
    table = Table(samples, columns, scores)
    shown = short(Result(table, item_means(table)))
    assert [(row[0].text, row[1].text, row[3].text) for row in shown.rows] == [
        ("kind", "2.00", "6"),
        ("rude", "2.00", "6"),
    ]
    assert "criteria 1–5" in shown.whole_key
    assert "lower is better: rude" in shown.whole_key
    assert shown.caption == "Mean scores of shop."


SCALES = {
    "rude": Column("rude", "criterion", Signature("rude"), 1.0, 5.0),
    "kind": Column("kind", "criterion", Signature("kind"), 1.0, 5.0),
    "share": Column("share", "criterion", Signature("share"), 0.0, 1.0),
    "signed": Column("signed", "criterion", Signature("signed"), -3.0, 3.0),
    "odd": Column("odd", "criterion", Signature("odd"), 0.7, 3.2),
    "passed": Column("passed", "criterion", Signature("passed"), 0.0, 1.0, ("no", "yes"), values=(0.0, 1.0)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        ("rude", {"criteria 1–5"}),
        ("share", {"criteria 0–1"}),
        ("odd", set()),
        ("rude kind", {"overall 0–1, criteria 1–5"}),
        ("rude passed", {"overall 0–1, criteria 1–5"}),
        ("rude share kind", {"overall 0–1", "rude, kind 1–5", "share 0–1"}),
        ("rude signed", {"overall 0–1", "rude 1–5", "signed −3–3"}),
        ("rude odd", {"overall 0–1", "rude 1–5"}),
    ],
)
def test_the_key_states_no_scale_that_a_criterion_does_not_have(
    names: str,
    keys: set[str],
) -> None:
    columns = tuple(SCALES[name] for name in names.split())
    samples = tuple(Sample(f"i{k}", system, "o") for k in range(6) for system in "ab")
    scores = [
        Score(*sample.key, column.name, 1.0, Provenance("single"))
        for sample, column in itertools.product(samples, columns)
    ]
    data = Table(samples, columns, tuple(scores))
    weighted = overall(data)
    result = Result(data, item_means(data))
    if weighted is not None:
        estimates = item_means(weighted.table)
        result = replace(
            result,
            estimates=result.estimates | estimates,
            overall=weighted.summary,
        )
    stated = {text for text in short(result).whole_key.split(" · ") if "–" in text}
    assert stated == keys


def test_data_without_names_of_systems_has_a_report_without_them() -> None:
    rows = [
        {"item": f"q{k}", "output": f"Answer {k}.", "kind": 1 + k % 5, "rating.kind": 1 + k % 4}
        for k in range(12)
    ]
    result = judge.evaluate(rows, judge_columns=["kind"], scale="1-5", metrics=[])
    for format in ("console", "markdown"):
        report = result.report(format, full=True)
        named = [line for line in report.splitlines() if re.search(r"\bsystem\b", line)]
        assert named == []
    assert "12 texts" in report


def test_the_worst_texts_are_ordered_by_share_of_the_scale() -> None:
    columns = (
        Column("a", "criterion", Signature("a"), 1.0, 5.0),
        Column("b", "criterion", Signature("b"), 0.0, 10.0, better="lower"),
    )
    values = {
        ("i0", "a"): 2.0,
        ("i0", "b"): 1.0,
        ("i1", "a"): 5.0,
        ("i1", "b"): 9.0,
        ("i2", "a"): 3.0,
    }
    samples = tuple(Sample(f"i{k}", "s", "o") for k in range(3))
    scores = tuple(
        Score(item, "s", name, value, Provenance("single"))
        for (item, name), value in values.items()
    )
    table = Table(samples, columns, scores)
    lowest = [
        (round(text.share, 2), text.score.item, text.score.column) for text in worst_texts(table, 5)
    ]
    assert lowest == [(0.1, "i1", "b"), (0.25, "i0", "a"), (0.5, "i2", "a")]


@pytest.mark.parametrize(("n_texts", "n_worst"), [(1, 1), (12, 3), (40, 10), (400, 10)])
def test_the_suggested_list_of_the_worst_texts_is_at_most_a_quarter_of_them(
    n_texts: int, n_worst: int
) -> None:
    """Regression: ten texts were suggested of twelve, so that the worst ones had 4.70 of 5."""
    rows = [{"item": f"q{k}", "output": f"Answer {k}.", "kind": 1 + k % 5} for k in range(n_texts)]
    result = judge.evaluate(rows, judge_columns=["kind"], scale="1-5", metrics=[])
    commands = plugins.document(result).next
    assert [command for command in commands if "--worst" in command] == [
        f"judge report RUN --worst {n_worst}"
    ]


def test_a_system_without_a_rank_comes_last(tested: Result) -> None:
    samples = (Sample("i0", "unscored", "o"), *tested.table.samples)
    board = build_leaderboard(replace(tested, table=replace(tested.table, samples=samples)))
    assert board.systems == ("good", "=fair", "poor", "unscored")
    assert board.printed_rank("unscored") == "–"


def test_the_caption_names_the_second_method_too(result: Result) -> None:
    key = next(iter(result.estimates))
    other = {
        **result.estimates,
        key: replace(result.estimates[key], method="95% percentile bootstrap"),
    }
    note = caption(replace(result, estimates=other))
    assert has_line(note, "some columns", "95% percentile bootstrap")


def test_the_lowest_is_best_if_lower_is_better() -> None:
    texts = [Sample(str(k), s, "o") for k in range(12) for s in ("a", "b")]
    column = Column("ter", "metric", Signature("ter"), better="lower")
    scores = tuple(
        Score(
            x.item,
            x.system,
            "ter",
            {"a": 40.0, "b": 20.0}[x.system] + int(x.item),
            Provenance("metric"),
        )
        for x in texts
    )
    table = Table(tuple(texts), (column,), scores)
    result = Result(table, item_means(table), comparisons=compare(table))
    board = build_leaderboard(result)
    assert {key for key, row in board.rows.items() if row.mark == "best"} == {("b", "ter")}
    assert board.systems == ("b", "a")
    assert "lower is better: TER" in short(result).whole_key
    neither = replace(table, columns=(replace(column, better=""),))
    unranked = Result(neither, item_means(neither), comparisons=compare(neither))
    assert not any(row.mark for row in build_leaderboard(unranked).rows.values())


def test_a_column_without_a_comparison_is_explained(tested: Result) -> None:
    table = tested.table
    added = tuple(Score(s.item, s.system, "same", 1.0, Provenance("metric")) for s in table.samples)
    more = replace(
        table,
        columns=(*table.columns, Column("same", "metric", Signature("same"))),
        scores=(*table.scores, *added),
    )
    result = replace(
        tested, table=more, estimates=item_means(more), comparisons=compare(more), overall=None
    )
    assert "same: all values are equal." in caption(result)


def test_values_of_all_texts_together_are_named_and_not_marked() -> None:
    samples = tuple(Sample(i, s, "o") for s in ("a", "b") for i in ("1", "2"))
    columns = (
        Column("ter", "metric", Signature("ter"), better="lower"),
        Column("all", "metric", Signature("all"), low=0.0, high=1.0),
    )
    scores = [
        Score(x.item, x.system, "ter", {"a": 40.0, "b": 20.0}[x.system], Provenance("metric"))
        for x in samples
    ]
    whole = [
        Score("", s, "all", v, Provenance("metric", n=n))
        for s, v, n in (("a", 0.25, 2), ("b", 0.5, 1))
    ]
    table = Table(samples, columns, (*scores, *whole))
    result = Result(table, item_means(table))
    board = build_leaderboard(result)
    assert (board.rows["a", "all"].mean, board.rows["a", "all"].low) == (0.25, None)
    assert board.rows["b", "all"].coverage == "1/2"
    assert has_line(caption(result), "all texts of a system", "all.")
    assert [column.name for column in board.of_texts] == ["ter"]
    assert not plugins.document(result).notices


def test_rows_are_in_the_order_of_the_means() -> None:
    """Regression: a system came after one with a lower mean, which fewer systems beat."""
    ranks = (Rank("a", 1, 1, 1), Rank("b", 2, 3, 4), Rank("c", 3, 2, 4), Rank("d", 4, 2, 4))
    order = in_printed_order(Comparison("fluency", ranks=ranks, best=("a",)))
    assert [rank.system for rank in order] == ["a", "b", "c", "d"]


def test_the_leader_comes_before_a_better_mean_over_few_items() -> None:
    ranks = (Rank("few", 1, 1, 3), Rank("a", 2, 1, 3), Rank("b", 3, 1, 3))
    comparison = Comparison("fluency", ranks=ranks, best=("a", "few", "b"), partly_scored=("few",))
    assert [rank.system for rank in in_printed_order(comparison)] == ["a", "few", "b"]


def test_a_report_calls_a_metric_by_one_name(result: Result) -> None:
    for format in ("markdown", "latex", "html"):
        # The script and the links of a page have the names of columns.
        text = re.sub(r"<script.*?</script>|<[^>]*>", "", result.report(format), flags=re.DOTALL)
        # A signature begins with the name of the column.
        names = re.findall(r"\brouge-?l\b(?!\\?\|)", text, re.IGNORECASE)
        assert set(names) == {"ROUGE-L"}, format


@pytest.mark.parametrize(
    ("format", "value"),
    [
        ("console", "3.51* (95/100)"),
        ("markdown", "**3.51**\\* (95/100)"),
        ("latex", "\\textbf{3.51}*"),
        ("latex", "{\\scriptsize [3.18, 3.80] (95/100)}"),
        ("html", '3.51</bdi>* <small class="coverage">(95/100)</small>'),
    ],
)
def test_the_number_of_scored_texts_is_small_and_after_the_mean(format: str, value: str) -> None:
    """Regression: `(95/100) 3.51*` began with the count, in bold."""
    mean = Cell("3.51", "[3.18, 3.80]", tone="good", mark="*", coverage="95/100")
    columns = (Head("", numeric=False), Head("coherence"))
    means = Shown(columns, ((Cell("M22"), mean),), short=True)
    assert value in plugins.write(Document("Run", summary=(means,)), format)


@pytest.mark.parametrize(
    ("metrics", "omitted"),
    [
        (["rougeL"], ""),
        (["rougeL", "bleu"], "1 more metric"),
        (["rouge1", "rougeL", "bleu", "chrf"], "3 more metrics"),
    ],
)
def test_the_short_table_counts_the_metrics_that_it_leaves_out(
    tested: Result, metrics: list[str], omitted: str
) -> None:
    criteria = [column for column in tested.table.columns if column.kind == "criterion"]
    columns = (*criteria, *(Column(name, "metric", Signature()) for name in metrics))
    result = replace(tested, table=replace(tested.table, columns=columns))
    assert short(result).omitted == omitted
