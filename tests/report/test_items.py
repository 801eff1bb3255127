"""The items of the page: which are shown, what a person sees of each, and what the page's script reads."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.format import escape_controls
from judge.core.records import ABSTAINED, Column, Failure, Provenance, Sample, Score
from judge.report.renderers import html
from judge.report.renderers import old_items as items
from judge.report.renderers.html import ItemBrowser, render
from judge.report.renderers.old_items import Source, Words, gaps, means, shares
from judge.report.views.leaderboard import build_leaderboard
from judge.results.result import Result
from judge.table import Table

SCALE = (1.0, 5.0, ("1", "2", "3", "4", "5"))


def browsed(result: Result) -> ItemBrowser:
    shown = build_leaderboard(result)
    return html.browse_scored(result, shown, list(items.scored(result, shown)))


def repeated(output: str, source: str) -> list[tuple[str, str]]:
    """What is marked, in the output and in the source."""
    found = Source(source, [output]).runs(output)
    return [(output[a : a + b], source[c : c + d]) for a, b, c, d in found]


# What is copied.


def test_the_longest_runs_of_three_words_are_found_from_left_to_right() -> None:
    source = "The old bridge will close in May. The old bridge will be mended, said the mayor."
    output = "In May the old bridge will be mended; the mayor said: the old one."
    assert repeated(output, source) == [
        ("In May the old bridge will be mended", "in May. The old bridge will be mended")
    ]
    assert repeated("The old bridge will be mended.", source) == [
        ("The old bridge will be mended", "The old bridge will be mended")
    ]
    assert repeated("The old. Bridge, said the.", source) == [("The old. Bridge", "The old bridge")]
    assert repeated("old bridge", source) == repeated("", source) == repeated("a b c", "") == []


def test_characters_without_words_take_six() -> None:
    source = "市议会星期一开会，决定修桥。"
    assert repeated("市议会星期一休息。", source) == [("市议会星期一", "市议会星期一")]
    assert repeated("市议会星期五开会。", source) == []


def test_places_are_those_of_the_text_that_the_page_shows() -> None:
    source = "\x1b[1mİt was ＷＩＮＤＹ, the 🌬 blew all day long."
    output = "\r\n🌬🌬 The\x07 wind blew all day."
    (run,) = Source(source, [output]).runs(output)
    for text, (start, length) in ((output, run[:2]), (source, run[2:])):
        units = escape_controls(text).encode("utf-16-le")
        assert units[2 * start : 2 * (start + length)].decode("utf-16-le") == "blew all day"


@given(st.text(max_size=60), st.sampled_from(["en", "char", "zh"]))
def test_every_word_is_found_where_it_stands(text: str, tokenizer: str) -> None:
    found = Words.split(text, tokenizer)
    units = escape_controls(text).encode("utf-16-le", "surrogatepass")
    ends = [0]
    for word, (start, end) in zip(found.words, found.places, strict=True):
        there = units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")
        assert len(there) == len(word)
        assert "".join(c.lower()[0] for c in there) == word
        assert ends[-1] <= start < end
        ends.append(end)


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_runs_stand_in_both_and_cannot_go_on(mine: list[str], theirs: list[str]) -> None:
    output, source = " ".join(mine), " ".join(theirs)
    last = 0
    for start, length, there, size in Source(source, [output]).runs(output):
        words = output[start : start + length]
        assert words == source[there : there + size]
        assert len(words.split()) >= 3
        assert start >= last
        assert f"{words} {output[start + length + 1 :][:1]}" not in source or not output[start + length :]
        last = start + length
    covered = {k for a, b, *_ in Source(source, [output]).runs(output) for k in range(a // 2, (a + b) // 2 + 1)}
    threes = [k for k in range(len(mine) - 2) if " ".join(mine[k : k + 3]) in source]
    assert all(k in covered for k in threes)


# What is sorted by.


def test_gaps_are_of_ranks_and_equal_values_share_theirs() -> None:
    judged = {("i", str(k)): value for k, value in enumerate([0.9, 0.5, 0.5, 0.1, 0.7])}
    measured = [Score("i", str(k), "rouge1", value, Provenance("metric")) for k, value in enumerate([1, 2, 3, 4])]
    # ranks of the four: 3, 1.5, 1.5, 0 and 0, 1, 2, 3 of 3
    found = gaps(judged, measured)
    assert found == {("i", "0"): 1.0, ("i", "1"): 0.167, ("i", "2"): -0.167, ("i", "3"): -1.0}
    assert gaps(judged, measured[:1]) == {}


def test_shares_turn_scales_whose_low_end_is_the_good_one() -> None:
    scores = tuple(Score("i", s, "c", v, Provenance("single")) for s, v in (("a", 1.0), ("b", 4.0)))
    samples = (Sample("i", "a", ""), Sample("i", "b", ""))
    column = Column("c", "criterion", "", *SCALE)
    low = replace(column, better="lower")
    open_ended = replace(column, low=None, high=None)
    table = Table(samples, (column,), scores)
    assert list(shares(column, table).values()) == [0.0, 0.75]
    assert list(shares(low, table).values()) == [1.0, 0.25]
    assert list(shares(open_ended, table).values()) == [0.0, 1.0]
    assert means([{("i", "a"): 1.0, ("i", "b"): 0.0}, {("i", "a"): 0.5}]) == {("i", "a"): 0.75}
    assert means([]) == {}


def test_the_script_reads_a_row_for_each_output(result: Result) -> None:
    data = browsed(result).data
    assert data["columns"] == [0, 1, -1, -1]
    assert data["system"] == [0, 1, 2] * 3
    assert data["values"][:3] == [[4.2, 3.0, 0.5, 26.0], [4.75, 2.0, 0.75, 26.0], [1.0, False, 0.25, 7.0]]
    assert data["mean"][:3] == [0.9, pytest.approx((0.9375 + 0.5) / 2, abs=1e-4), None]
    assert data["mass"][0] == [0.99, None]
    assert data["overlap"] == "rougeL"
    assert [len(row) for row in data["gap"]] == [3] * 9
    assert data["gap"][2][1] is not None
    assert data["gap"][2][0] is data["gap"][2][2] is None  # one of its criteria failed
    assert data["top"] == 1
    json.dumps(data, allow_nan=False)


def test_orders_are_those_that_there_is_something_for(result: Result, panel: Result, ranking: Result) -> None:
    assert [name for name, _ in browsed(result).orders] == ["gap", "spread", "mass", "low 0", "low 1", "low 2", "low 3"]
    alone = browsed(panel)
    assert [name for name, _ in alone.tops] == ["mass"]  # one system, and no value of rougeL
    assert alone.data["columns"] == [0, 0, 0, -1]
    assert alone.data["mass"] == [[0.95], [1.0], [None]]
    columns = (Column("chars", "metric", ""),)
    table = Table((Sample("i", "s", "x"),), columns, (Score("i", "s", "chars", 1.0, Provenance("metric")),))
    assert [name for name, _ in browsed(Result(table)).orders] == ["low 0"]
    empty = browsed(Result(Table((Sample("i", "s", "x"),), (), ())))
    assert (empty.orders, empty.failures, empty.copied) == ((), False, False)
    page = ranking.report("html")
    data = json.loads(page[page.index('id="data">') + 10 :].split("</script>")[0])
    assert data["flips"] == [[0], [1], [1]]
    assert data["failed"] == [1, 0, 0]


def test_a_failed_judge_is_a_failure_and_what_it_leaves_a_panel_is_none(panel: Result) -> None:
    values = browsed(panel).data["values"]
    assert values[2] == [None, False, 2.0, None]


# What a person sees.


def test_the_first_items_are_shown_whole() -> None:
    texts = [Sample(f"i{k % 600}", f"s{k // 600}", "") for k in range(2400)]
    assert items.first(texts) == {f"i{k}" for k in range(500)}
    assert items.first([Sample("big", f"s{k}", "") for k in range(3000)] + texts) == {"big"}
    assert items.first([]) == frozenset()


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("doc-1", "doc-1"),
        ("a b/c", "a%20b/c"),
        ("文", "%E6%96%87"),
        ('"<', "%22%3C"),
        ("50%", "50%25"),
        ("\ud800", "%5Cud800"),
    ],
)
def test_an_item_has_an_address(name: str, address: str) -> None:
    assert items.Item(name, None, (), (), (), 0).anchor == address
    page = Result(Table((Sample(name, "s", "x"),), (), ())).report("html")
    assert f'id="item={address.replace("&", "&amp;")}"' in page


def test_own_sources_and_references_are_shown_where_they_differ() -> None:
    samples = (
        Sample("i", "a", "A", "the source", ("one", "two")),
        Sample("i", "b", "B", "another source", ("three",)),
        Sample("i", "c", "C"),
    )
    page = Result(Table(samples, (), ())).report("html")
    first, second, third = re.findall(r"<article>(.*?)</article>", page, re.DOTALL)
    assert "its own" not in first
    assert "its own source</summary>" in second
    assert "another source" in second
    assert "its own references</summary>" in second
    assert "three" in second
    assert "its own" not in third


def test_texts_bear_the_names_and_keys_that_the_sheets_ask_for(result: Result) -> None:
    sheets = [[["user", ["", "text output", " by ", "text references 0", " <", "key output", ">"]]]]
    asked = {"coherence": {"usual": 0, "others": [["doc-1", "lead", "", None], ["gone", "lead", "", 0]]}}
    page = replace(result, info={**result.info, "prompts": {"sheets": sheets, "asked": asked}}).report("html")
    assert page.count('<div class="text" data-key="') == 9
    assert page.count('<p data-as="references 0" data-key="') == 2
    assert 'data-as="references 1"' not in page
    data = json.loads(page[page.index('id="data">') + 10 :].split("</script>")[0])
    assert data["asked"] == {"0": [0, {"0": None}]}
    assert data["sheets"] == sheets
    assert "data-key" not in re.sub(r"<(script|style)>.*?</\1>", "", result.report("html"), flags=re.DOTALL)


def test_a_metric_that_failed_is_told_last(result: Result) -> None:
    failure = Failure("doc-1", "lead", "rougeL", "metric", "NoReference", "there is none")
    scores = tuple(s for s in result.table.scores if (s.item, s.system, s.column) != ("doc-1", "lead", "rougeL"))
    table = replace(result.table, scores=scores, failures=(*result.table.failures, failure))
    changed = replace(result, table=table)
    shown = build_leaderboard(changed)
    first = next(items.scored(changed, shown))
    assert [(j.name, j.place) for j in first.outputs[0].judgments] == [
        ("coherence", 0),
        ("一貫性", 1),
        ("rougeL", None),
    ]


def test_what_a_metric_abstained_from_has_not_failed() -> None:
    samples = tuple(Sample(f"i{k}", "s", "A text.") for k in range(3))
    columns = (Column("fluency", "criterion", "fluency", *SCALE), Column("surface", "metric", "surface"))
    scores = tuple(Score(f"i{k}", "s", "fluency", 4.0, Provenance("single")) for k in (0, 1))
    failures = (
        Failure("i0", "s", "surface", "metric", ABSTAINED, "too short to tell of"),
        Failure("i1", "s", "surface", "metric", "MetricError", "broke"),
        Failure("i2", "s", "fluency", "metric", ABSTAINED, "too short to tell of"),  # in a judge's place
        Failure("i2", "s", "surface", "metric", ABSTAINED, "too short to tell of"),
    )
    result = Result(Table(samples, columns, scores, failures), {}, {})
    found = list(items.scored(result, build_leaderboard(result)))
    assert [item.failed for item in found] == [0, 1, 1]
    assert browsed(result).data["values"] == [[4.0, None], [4.0, False], [False, None]]
    page = render(result)
    (first, second, third) = re.findall(r'<details class="item".*?</article>', page, re.DOTALL)
    assert "abstained</b> <small>too short to tell of" in first
    assert "short" not in re.sub("too short", "", first)
    assert '<span class="short">1 failure</span>' in second
    assert "failed</b>" in third
