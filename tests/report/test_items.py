"""The items of the page: selection, order, scores, and the data for the page's script."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from judge.core import plugins
from judge.core.records import ABSTAINED, UNWRITTEN, Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.views import items
from judge.report.views.items import Items
from judge.results.item import item_of
from judge.results.result import Result
from judge.results.run_info import read
from judge.table import Table
from tests.factories import has_line

SCALE = (1.0, 5.0, ("1", "2", "3", "4", "5"))


def browsed(result: Result) -> Items:
    content: Items = items.browser(result).content()
    return content


def scored(values: dict[str, dict[str, float | None]], **column: object) -> Result:
    """Return a result of one criterion from values by item and system; None is a failure."""
    columns = (Column("fluency", "criterion", Signature("fluency"), *SCALE, **column),)  # type: ignore[arg-type]
    samples = tuple(
        Sample(item, system, "A text.")
        for item, by_system in values.items()
        for system in by_system
    )
    rows = [
        (item, system, value)
        for item, by_system in values.items()
        for system, value in by_system.items()
    ]
    scores = tuple(
        Score(i, s, "fluency", v, Provenance("single")) for i, s, v in rows if v is not None
    )
    failures = tuple(
        Failure(i, s, "fluency", "parse", "ParseError", "none") for i, s, v in rows if v is None
    )
    return Result(Table(samples, columns, scores, failures))


# Selection and order.


def test_the_worst_item_is_first_and_one_without_a_score_last() -> None:
    content = browsed(
        scored(
            {
                "a": {"x": 3, "y": 4},
                "b": {"x": None},
                "c": {"x": 5, "y": 1.5},
                "d": {"x": 3, "y": 3},
            }
        )
    )
    assert [item.name for item in content.items] == ["c", "a", "d", "b"]
    lowest = content.items[0].lowest
    assert lowest is not None
    assert (lowest.text, lowest.shade, lowest.system, lowest.column) == (
        "1.5",
        -0.75,
        "y",
        "fluency",
    )
    assert content.items[-1].lowest is None


def test_the_worst_item_has_the_highest_score_if_lower_is_better() -> None:
    content = browsed(scored({"a": {"x": 3}, "b": {"x": 4}}, better="lower"))
    assert [item.name for item in content.items] == ["b", "a"]


def test_equal_lowest_scores_are_ordered_by_the_texts_mean(result: Result) -> None:
    lowest = [item.lowest for item in browsed(result).items]
    assert [(one.text, one.system, one.column) for one in lowest if one] == [
        ("1.00", "evil|<b>*sys*", "coherence"),
        ("1", "lead", "一貫性"),
        ("2.00", "evil|<b>*sys*", "coherence"),
    ]


def test_first_metric_orders_items_without_criteria() -> None:
    columns = (
        Column("words", "metric", Signature(), better=""),
        Column("rouge1", "metric", Signature()),
    )
    samples = tuple(Sample(f"i{k}", "s", "x") for k in range(3))
    scores = tuple(
        Score(s.item, "s", c.name, v, Provenance("metric"))
        for s, values in zip(samples, ((1.0, 0.5), (2.0, 0.25), (3.0, 0.75)), strict=True)
        for c, v in zip(columns, values, strict=True)
    )
    content = browsed(Result(Table(samples, columns, scores)))
    assert [item.name for item in content.items] == ["i1", "i0", "i2"]
    assert [m.name for m in content.measures if m.leads] == ["ROUGE-1"]


def test_most_flips_are_first_in_a_ranking(ranking: Result) -> None:
    content = browsed(ranking)
    assert [(item.name, item.lowest and item.lowest.text) for item in content.items] == [
        ("文書2", "1"),
        ("doc-3", "1"),
        ("doc-1", "0"),
    ]
    assert [m.name for m in content.measures] == ["overall: preferred", "overall: flips"]
    assert content.measures[0].values["doc-1", "lead"] == pytest.approx((0.15 + 0.75) / 2)


def test_a_large_run_shows_its_worst_items_with_a_note() -> None:
    values: dict[str, dict[str, float | None]] = {
        f"i{k}": {f"s{n}": 1.0 + k % 5 for n in range(4)} for k in range(600)
    }
    content = browsed(scored(values))
    assert has_line(content.note, "500 lowest of 600 items", "2,000 of 2,400 texts")
    assert "scores.parquet" in content.note
    assert {item.lowest.text for item in content.items[-20:] if item.lowest} == {"5"}
    assert [item.name for item in content.items[:3]] == ["i0", "i5", "i10"]


def test_an_item_larger_than_the_limit_is_shown() -> None:
    content = browsed(scored({"big": {f"s{k}": 3.0 for k in range(2101)}}))
    assert (len(content.items), content.note) == (1, "")


def test_a_large_ranking_is_limited_by_its_pairs(
    monkeypatch: pytest.MonkeyPatch, ranking: Result
) -> None:
    monkeypatch.setattr(items, "MOST_PAIRS", 6)
    content = browsed(ranking)
    assert len(content.items) == 2
    assert has_line(content.note, "2 lowest of 3 items", "6 of 9 texts")


def test_items_without_a_comparison_are_not_listed(ranking: Result) -> None:
    scores = tuple(score for score in ranking.table.scores if score.item != "文書2")
    content = browsed(replace(ranking, table=replace(ranking.table, scores=scores)))
    assert {item.name for item in content.items} == {"doc-1", "doc-3"}
    assert content.note == ""


# Scores.


def test_a_panel_has_a_measure_for_each_judge(panel: Result) -> None:
    content = browsed(panel)
    assert [(m.name, m.leads) for m in content.measures] == [
        ("fluency", True),
        ("fluency: a", False),
        ("fluency: org/b", False),
        ("ROUGE-L", False),
        ("fluency: judges apart", False),
    ]
    outputs = {item.name: item.outputs[0] for item in content.items}
    assert [(f.name, f.judge) for f in outputs["i"].findings] == [
        ("fluency", ""),
        ("fluency", "a"),
        ("fluency", "org/b"),
    ]
    assert [m.values["k", "s"] for m in content.measures] == [
        None,
        False,
        2.0,
        None,
        None,
    ]  # only the judge a failed


def test_metrics_that_failed_for_the_same_reason_share_an_entry() -> None:
    names = ("rouge1", "rouge2", "rougeL", "bleu")
    columns = tuple(Column(name, "metric", Signature(name)) for name in names)
    failures = tuple(
        Failure("1", "a", name, "metric", "NoReference", "there is no reference") for name in names
    )
    (item,) = browsed(Result(Table((Sample("1", "a", "text"),), columns, (), failures))).items
    assert [finding.name for finding in item.outputs[0].findings] == ["ROUGE-1 and 3 more"]
    assert item.failed == 4


def test_a_skipped_metric_is_not_a_failure() -> None:
    samples = tuple(Sample(f"i{k}", "s", "A text.") for k in range(3))
    columns = (
        Column("fluency", "criterion", Signature("fluency"), *SCALE),
        Column("surface", "metric", Signature("surface")),
    )
    scores = tuple(Score(f"i{k}", "s", "fluency", 4.0, Provenance("single")) for k in (0, 1))
    failures = (
        Failure("i0", "s", "surface", "metric", ABSTAINED, "too short"),
        Failure("i1", "s", "surface", "metric", "MetricError", "broke"),
        Failure(
            "i2", "s", "fluency", "metric", ABSTAINED, "too short"
        ),  # instead of a judge's score
        Failure("i2", "s", "surface", "metric", ABSTAINED, "too short"),
    )
    content = browsed(Result(Table(samples, columns, scores, failures)))
    assert [item.failed for item in content.items] == [0, 1, 1]
    assert [[m.values[f"i{k}", "s"] for m in content.measures] for k in range(3)] == [
        [4.0, None],
        [4.0, False],
        [False, None],
    ]


def test_further_columns_of_a_criterion_are_shown_once_if_all_systems_share_them() -> None:
    extra = ({"question": "Why?", "tone": "dry"}, {"question": "Why?", "tone": "warm"})
    samples = tuple(
        Sample("i", s, s, "the source", extra=e) for s, e in zip("ab", extra, strict=True)
    )
    info = read({"criteria": {"c": {"needs": ["output", "question", "tone"]}}})
    (item,) = browsed(Result(Table(samples, (), ()), info=info)).items
    assert item.others == (("question", "Why?"),)
    assert [output.others for output in item.outputs] == [(("tone", "dry"),), (("tone", "warm"),)]


def chats(**followed: list[dict[str, str]]) -> Result:
    """Return a result of one item, with the messages before each system's text."""
    samples = tuple(
        Sample("i", system, f"Answer of {system}.", extra={"messages": messages})
        for system, messages in followed.items()
    )
    return Result(Table(samples, (), ()))


REQUEST = {"role": "user", "content": "Plan a day."}
FOLLOW_UP = {"role": "user", "content": "And if it rains?"}


def test_messages_that_all_texts_follow_are_shown_once() -> None:
    (item,) = browsed(chats(a=[REQUEST], b=[REQUEST])).items
    assert item.messages == (("user", "Plan a day."),)
    assert [output.messages for output in item.outputs] == [(), ()]


def test_each_text_has_its_own_messages_if_they_differ() -> None:
    (item,) = browsed(chats(a=[REQUEST, FOLLOW_UP], b=[REQUEST])).items
    assert item.messages == ()
    assert [len(output.messages) for output in item.outputs] == [2, 1]


def test_the_closed_row_of_a_conversation_shows_its_first_request_and_the_answer() -> None:
    (item,) = browsed(chats(a=[REQUEST, FOLLOW_UP])).items
    assert item.peek == ("Plan a day.", "Answer of a.")


def test_the_closed_row_shows_the_worst_output() -> None:
    result = scored({"i": {"a": 4.0, "b": 2.0}})
    samples = tuple(
        Sample("i", system, f"Text of {system}.", extra={"question": "Why?"}) for system in "ab"
    )
    (item,) = browsed(replace(result, table=replace(result.table, samples=samples))).items
    assert item.peek == ("Why?", "Text of b.")


def replies(*rows: dict[str, object]) -> Items:
    """Return the items of one system, with the data's own columns of each."""
    samples = tuple(
        Sample(str(number), "shop", "Text.", extra=row) for number, row in enumerate(rows)
    )
    return browsed(Result(Table(samples, (), ())))


def test_short_values_of_own_columns_are_shown_at_each_text() -> None:
    content = replies({"channel": "mail", "note": "x" * 61, "stars": 5, "tags": ["a"]})
    assert content.items[0].tags == (("channel", "mail"), ("stars", "5"))


def test_items_can_be_filtered_by_columns_of_few_values() -> None:
    rows = [{"channel": "mail", "id": "1"}, {"channel": "chat", "id": "2"}, {"id": "3"}]
    content = replies(*rows, {"channel": "mail", "id": "4"})
    assert content.data["facets"] == [
        {"name": "channel", "values": ("chat", "mail"), "of": [1, 0, -1, 1]}
    ]


def test_shared_columns_of_an_item_are_shown_once_and_filter_all_its_texts() -> None:
    samples = tuple(
        Sample(item, system, "Text.", extra={"channel": channel, "note": system})
        for item, channel in (("1", "mail"), ("2", "chat"))
        for system in "ab"
    )
    content = browsed(Result(Table(samples, (), ())))
    assert content.items[0].tags == (("channel", "mail"),)
    assert [output.tags for output in content.items[0].outputs] == [
        (("note", "a"),),
        (("note", "b"),),
    ]
    assert content.data["facets"] == [
        {"name": "channel", "values": ("chat", "mail"), "of": [1, 1, 0, 0]},
        {"name": "note", "values": ("a", "b"), "of": [0, 1, 0, 1]},
    ]


def test_a_table_of_many_columns_has_few_filters() -> None:
    rows = [{f"flag_{column}": column % 2 == row for column in range(100)} for row in (0, 1)] * 2
    facets = replies(*rows).facets
    assert 0 < len(facets) < 10
    assert facets[0].name == "flag_0"


def test_numbers_to_filter_by_are_in_counting_order() -> None:
    rows = [{"stars": stars} for stars in (10, 2, -1, "none")] * 2
    (facet,) = replies(*rows).facets
    assert facet.values == ("-1", "2", "10", "none")


def test_a_column_of_one_value_filters_nothing() -> None:
    assert replies({"channel": "mail"}, {"channel": "mail"}).facets == ()


def test_an_item_in_json_has_its_messages() -> None:
    document = plugins.document(item_of(chats(a=[REQUEST], b=[]), "i"))
    assert document.data is not None
    first, second = document.data["outputs"]
    assert first["messages"] == [REQUEST]
    assert "messages" not in second


# Data for the script.


def test_the_script_reads_a_value_for_each_output(result: Result) -> None:
    content = browsed(result)
    data = content.data
    assert data["items"] == [item.name for item in content.items]
    assert data["system"] == [0, 1, 2] * 3
    assert [m["column"] for m in data["measures"]] == [
        "coherence",
        "一貫性",
        "rougeL",
        "length",
        "coherence: judge − people",
    ]
    first = data["items"].index("doc-1") * 3
    assert [m["values"][first + 2] for m in data["measures"]] == [1.0, False, 0.25, 7.0, -3.0]
    json.dumps(data, allow_nan=False)


def test_a_link_names_its_state() -> None:
    link = items.link(system="a b&c", column="一貫性", item="\x1b", q="")
    name, _, state = link.partition("?")
    assert name == "items"
    assert parse_qs(state) == {"system": ["a b&c"], "column": ["一貫性"], "item": ["\\x1b"]}
    assert link.isascii()


def test_an_item_has_a_row_for_each_judgment_with_its_reason() -> None:
    columns = tuple(
        Column(name, "criterion", Signature(name), *SCALE) for name in ("fluency", "style")
    )
    scores = (
        Score("1", "a", "fluency", 4.0, Provenance("single", argmax="4", reason="It reads well.")),
    )
    failures = (Failure("1", "a", "style", "parse", "ParseError", "no score", "Hm."),)
    table = Table((Sample("1", "a", "text", human={"fluency": 3.5}),), columns, scores, failures)
    report = " ".join(
        plugins.write(
            plugins.document(item_of(Result(table, {}), "1")), width=200, full=True
        ).split()
    )
    assert "fluency 4" in report
    assert "It reads well." in report
    assert "style failed unreadable: no score" in report
    assert "human ratings fluency 3.5" in report


def test_an_item_has_all_its_generations_or_one() -> None:
    texts = tuple(Sample(f"1 ({n})", "a", f"text {n}", cluster="1") for n in (1, 2))
    scores = tuple(
        Score(text.item, "a", "fluency", 4.0, Provenance("single", argmax="4")) for text in texts
    )
    result = Result(
        Table(texts, (Column("fluency", "criterion", Signature("fluency"), *SCALE),), scores), {}
    )
    document = plugins.document(item_of(result, "1"))
    assert [section.title for section in document.sections] == ["a (1)", "a (2)"]
    assert [row["item"] for row in document.records] == ["1 (1)", "1 (2)"]
    assert [section.title for section in plugins.document(item_of(result, "1 (2)")).sections] == [
        "a"
    ]


def test_a_text_that_was_not_written_is_of_its_item_and_not_of_one_with_a_longer_name() -> None:
    names = ("doc (2)", "doc (old)", "doc (2) b")
    failures = tuple(
        Failure(name, "a", "fluency", UNWRITTEN, "Refused", "blocked") for name in names
    )
    column = Column("fluency", "criterion", Signature("fluency"), *SCALE)
    result = Result(Table((Sample("doc", "b", "A text."),), (column,), (), failures), {})
    assert [failure.item for failure in item_of(result, "doc").unwritten] == ["doc (2)"]
