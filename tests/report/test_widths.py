"""The page in a real browser on screens of every width: nothing is wider than the screen, whatever it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import judge
from judge.core import plugins
from judge.report.document import (
    Block,
    Bullets,
    Code,
    Details,
    Document,
    Excerpt,
    Excerpts,
    Notice,
    Paragraph,
    Section,
    text_table,
)
from judge.results.result import Result
from judge.stats.bootstrap import item_means
from judge.stats.system_differences import compare

pytestmark = pytest.mark.browser

WIDE = "document.documentElement.scrollWidth - innerWidth"
Opened = Callable[..., Any]


@pytest.mark.parametrize("kind", ["result", "ranking", "panel"])
@pytest.mark.parametrize("width", [375, 1240])
def test_nothing_is_wider_than_the_screen(
    kind: str, width: int, opened: Opened, request: Any
) -> None:
    page = opened(
        request.getfixturevalue(kind).report("html"), viewport={"width": width, "height": 700}
    )
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate(WIDE) <= 0
    assert page.locator(".keys span").is_visible() == (width > 1000)  # a phone has no keyboard


@pytest.fixture(scope="module")
def named() -> Result:
    """Systems, a criterion, a metric's column and an item that are called by 600 characters, rated by people."""
    system, item = "a" * 600, "i" * 600
    rows = [
        {
            "item": f"{item}{k}",
            "system": f"{system}{of}",
            "source": f"The boat {k} came late to the harbour of the town.",
            "output": f"Boat {k} of {of}.",
            "human": {"coherence": 1 + k % 5} if k < (12 if of == "x" else 3) else {},
        }
        for k in range(16)
        for of in "xyz"
    ]
    replies = judge.ScriptedProvider(
        lambda request: str(1 + sum(map(ord, request.messages[-1]["content"])) % 5)
    )
    result = judge.evaluate(
        rows,
        ["coherence"],
        model=replies,
        weighting="single",
        metrics="stats",
        cache=False,
        calibrate=True,
    )
    column, name = result.table.columns[-1].name, "c" * 600
    columns = (*result.table.columns[:-1], replace(result.table.columns[-1], name=name))
    scores = tuple(
        replace(s, column=name) if s.column == column else s for s in result.table.scores
    )
    estimates = {(of, name if c == column else c): e for (of, c), e in result.estimates.items()}
    return replace(
        result, table=replace(result.table, columns=columns, scores=scores), estimates=estimates
    )


@pytest.mark.parametrize("width", [375, 1240])
def test_a_long_name_widens_nothing(named: Result, width: int, opened: Opened) -> None:
    assert named.rated
    assert any(one.note for one in named.calibrated)
    page = opened(named.report("html"), viewport={"width": width, "height": 700})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate(WIDE) <= 0


@pytest.mark.parametrize("block", [Bullets(("f" * 600,)), Paragraph("f" * 600), Notice("f" * 600)])
def test_a_long_word_of_a_text_widens_nothing(block: Block, opened: Opened) -> None:
    """Regression: an item's id among the failures made the page scroll sideways on a phone."""
    section = Section("failures", "Failures", lambda: (block,))
    text = plugins.write(Document("Run", sections=(section,)), "html")
    page = opened(text, viewport={"width": 375, "height": 700})
    assert page.evaluate(WIDE) <= 0


def test_a_list_without_a_chart_beside_it_has_the_whole_width_in_print(opened: Opened) -> None:
    excerpts = Excerpts("Lowest", (Excerpt("1", "a", "i", "c", reason="Too short."),))
    page = opened(plugins.write(Document("Run", summary=(excerpts,)), "html"))
    page.emulate_media(media="print")
    row = page.locator(".halves").bounding_box()
    card = page.locator(".halves > .card").bounding_box()
    assert card["width"] == row["width"]


BROKEN_WORDS = """() => {
  const broken = [];
  for (const cell of document.querySelectorAll("th, td, h2, h3, h4, .who, .findings li > span, .metrics bdi")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode());) {
      for (const word of text.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
        if (lines.size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""


@pytest.mark.parametrize("width", [390, 1240])
def test_no_word_of_a_table_is_broken(model_names: Result, width: int, opened: Opened) -> None:
    page = opened(model_names.report("html"), viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate(BROKEN_WORDS) == []
    assert page.evaluate(WIDE) <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_many_columns_scroll_within_the_leaderboard(
    opened: Opened, tested: Result, scheme: str
) -> None:
    columns = [
        replace(tested.table.columns[0], name=f"metric_with_a_long_name_{k}") for k in range(20)
    ]
    rows = [replace(s, column=c.name) for s in tested.table.column_scores("delta") for c in columns]
    table = replace(tested.table, columns=tuple(columns), scores=tuple(rows))
    result = Result(table, item_means(table), comparisons=compare(table))
    page = opened(
        result.report("html"), viewport={"width": 375, "height": 800}, color_scheme=scheme
    )
    assert page.evaluate(WIDE) <= 0
    board = page.get_by_role("region", name="Mean scores")
    name = board.locator("tbody th").first
    before = name.bounding_box()
    board.evaluate("(board) => board.scrollTo(200, 0)")
    assert board.evaluate("(board) => board.scrollLeft") == 200
    assert abs(name.bounding_box()["x"] - board.bounding_box()["x"]) < 2
    assert before["x"] > board.bounding_box()["x"]


def test_a_phone_shows_the_intervals_that_the_legend_explains(
    opened: Opened, result: Result
) -> None:
    page = opened(result.report("html"), viewport={"width": 390, "height": 800})
    legend = page.locator(".key", has_text="[low, high]").first
    assert legend.is_visible()
    assert page.locator(".table td .meter ~ small").first.is_visible()


def test_a_print_shows_what_is_folded_except_prompts(opened: Opened) -> None:
    rows = text_table(("case", "reason"), [("one", "too low")], name="cases")
    folds = (Details("Verdicts", (rows,)), Details("Prompt", (Code("Rate it."),)))
    section = Section("cases", "Cases", lambda: folds)
    page = opened(plugins.write(Document("Suite", sections=(section,)), "html"))
    table, prompt = page.locator(".fold table"), page.locator(".fold pre")
    assert not table.is_visible()
    page.emulate_media(media="print")
    assert table.is_visible()
    assert not prompt.is_visible()
