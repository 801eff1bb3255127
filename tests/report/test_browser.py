"""The page in a real browser: it loads nothing from other hosts, and its script runs under its policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import pytest

import judge
from judge.core import plugins
from judge.core.format import escape_controls
from judge.core.records import Column, Failure, Provenance, Request, Sample, Score
from judge.core.signature import Signature
from judge.report import document as blocks
from judge.report.charts.axes import scale
from judge.report.charts.bars import Bar, Panel, intervals
from judge.report.document import Cell, Document, Section
from judge.report.document import Column as Head
from judge.report.document import Table as Shown
from judge.results.result import Result, analyzed
from judge.results.run_info import CriterionInfo, FirstPrompt, PromptMessage, RunInfo
from judge.stats.bootstrap import item_means
from judge.table import Table

pytestmark = pytest.mark.browser

SHOWN = "[...document.querySelectorAll('.item:not([hidden]) > summary > .name')].map((name) => name.textContent)"
OPEN = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
ENDS = """place => {
  const walk = document.createTreeWalker(document.querySelector(place), NodeFilter.SHOW_TEXT), ends = [];
  while (walk.nextNode()) for (const number of walk.currentNode.data.matchAll(/4.60|4.20|5.00/g)) {
    const range = document.createRange();
    range.setStart(walk.currentNode, number.index);
    range.setEnd(walk.currentNode, number.index + 4);
    ends.push(range.getBoundingClientRect().left);
  }
  return ends;
}"""  # the left ends of three numbers
LINES = """place => {
  const node = document.querySelector(place).firstChild, cut = node.data.indexOf("\\n");
  return [[0, cut], [cut + 1, node.length]].map(([from, to]) => {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    return range.getBoundingClientRect().toJSON();
  });
}"""  # the boxes of the two lines of a text
Opened = Callable[..., Any]


def shown(page: Any) -> list[str]:
    """Return the names of the visible items from top to bottom."""
    shown_items: list[str] = page.evaluate(SHOWN)
    return shown_items


def written(result: Result) -> str:
    return plugins.write(plugins.document(result), "html")


def searched(page: Any, text: str) -> str:
    """Search for a text and return the count on the page."""
    page.locator("#q").fill(text)
    page.wait_for_timeout(200)  # the page waits for further keys before it searches
    return str(page.locator("#count").inner_text())


def state(page: Any) -> dict[str, list[str]]:
    return parse_qs(str(page.evaluate("location.hash")).partition("?")[2])


def marked(page: Any, name: str) -> list[str]:
    ranges: list[str] = page.evaluate(f"[...CSS.highlights.get('{name}')].map(String)")
    return ranges


@pytest.fixture
def run() -> Result:
    """Two systems on four items. Judge, ROUGE and mass each give a different order."""
    scale = (1.0, 5.0, ("1", "2", "3", "4", "5"))
    columns = (
        Column("fluency", "criterion", Signature(), *scale),
        Column("relevance", "criterion", Signature(), *scale),
        Column("rougeL", "metric", Signature(), 0.0, 1.0),
    )
    values = {
        # of a and b: fluency, relevance, rougeL, and the mass that fluency has
        "north": ((5, 5, 0.1, 1.0), (4, 4, 0.2, 1.0)),
        "east": ((3, 3, 0.5, 0.9), (1, 5, 0.6, 0.8)),
        "south": ((2, 2, 0.7, 0.6), (3, 2, 0.8, 0.7)),
        "west": ((4, 1, 0.3, 0.95), (None, 4, 0.4, 1.0)),
    }
    samples, scores, failures = [], [], []
    for item, texts in values.items():
        for system, (*scores_of_text, mass) in zip("ab", texts, strict=True):
            samples.append(
                Sample(
                    item, system, f"The {item} wind of {system}.", f"A source on the {item} wind."
                )
            )
            for column, value in zip(columns, scores_of_text, strict=True):
                if value is None:
                    failures.append(
                        Failure(item, system, column.name, "parse", "ParseError", "no score", "Hm.")
                    )
                    continue
                judged = Provenance(
                    "logprobs", mass if column.name == "fluency" else 1.0, {str(value): mass}
                )
                provenance = Provenance("metric") if column.kind == "metric" else judged
                scores.append(Score(item, system, column.name, float(value), provenance))
    table = Table(tuple(samples), columns, tuple(scores), tuple(failures))
    return Result(table, item_means(table))


@pytest.mark.parametrize("kind", ["result", "ranking", "panel"])
def test_the_page_loads_without_a_message_or_a_request(
    kind: str, opened: Opened, request: Any
) -> None:
    page = opened(written(request.getfixturevalue(kind)))
    assert page.locator(".controls").is_visible()
    page.evaluate(OPEN)
    assert page.locator("article").first.is_visible()


def test_a_page_without_items_has_its_buttons(opened: Opened) -> None:
    page = opened(plugins.write(Document("Estimate", ("12 requests, free.",)), "html"))
    assert page.get_by_role("button").all_inner_texts() == ["Copy link", "Print", "◐"]


def test_only_the_pages_own_script_runs(result: Result, opened: Opened) -> None:
    page = opened(
        written(result).replace("</body>", "<script>document.title = 'pwned'</script></body>")
    )
    assert page.title() != "pwned"
    assert [text for text in page.said if "Content Security Policy" in text]
    page.said.clear()


def test_texts_and_names_stay_texts(result: Result, ranking: Result, opened: Opened) -> None:
    end = "</script><script>document.title = 'pwned'</script><img src=x onerror=alert(1)>"
    for one in (result, ranking):
        samples = tuple(
            replace(s, output=s.output + end, source=f"{s.source}{end}") for s in one.table.samples
        )
        criterion = CriterionInfo(title=end, digest=end, steps=(end,), templates={end: end})
        message = PromptMessage(end, end)
        prompts = {end: FirstPrompt(item=end, system=end, messages=(message, message))}
        info = replace(one.info, criteria={end: criterion}, prompts=prompts, notes=(end,))
        page = opened(written(replace(one, table=replace(one.table, samples=samples), info=info)))
        page.evaluate(OPEN)
        assert page.title() != "pwned"
        assert page.locator("script").count() == 2
        assert page.locator("img").count() == 0
        assert page.locator("article .text").first.text_content().endswith(end)


def test_an_interval_after_an_arabic_name_is_read_from_its_lower_end(opened: Opened) -> None:
    text, box = "أحمد: 4.60 [4.20, 5.00] beats בית", blocks.Tiles((blocks.Tile("1", "text"),))
    chart = intervals("c", "t", [text], [Panel(scale(0, 1), [Bar(1.0)])])
    page = opened(
        plugins.write(Document("t", (text,), summary=(blocks.Paragraph(text), box, chart)), "html")
    )
    for place in (".headline", "main > p", "svg text"):
        ends = page.evaluate(ENDS, place)
        assert ends == sorted(ends), place


def test_each_paragraph_of_a_reference_has_its_own_direction(opened: Opened) -> None:
    sample = Sample("i", "s", "x", references=("افتتح الجسر.\nThe bridge opened.",))
    page = opened(written(Result(Table((sample,), (), ()))), "#items?item=i")
    arabic, english = page.evaluate(LINES, ".reference")
    assert arabic["right"] - english["right"] > 50 < arabic["left"] - english["left"]


# The items.


@pytest.mark.parametrize(
    ("typed", "items", "count"),
    [
        ("", ["文書2", "doc-3", "doc-1"], "3 items"),
        ("NAMES bridge", ["doc-1"], "1 of 3 items, 24 hits"),
        ('"neither. <script>"', ["doc-1"], "1 of 3 items, 1 hit"),
        ("ＢＲＩＤＧＥ", ["doc-1"], "1 of 3 items, 14 hits"),
        ("橋 直す", ["文書2"], "1 of 3 items, 8 hits"),
        ("bridge 橋", [], "0 of 3 items, 0 hits"),
    ],
)
def test_the_search_finds_all_words_in_texts_reasons_and_replies(
    ranking: Result, opened: Opened, typed: str, items: list[str], count: str
) -> None:
    page = opened(written(ranking))
    assert searched(page, typed) == count
    assert shown(page) == items


def test_matches_are_marked_in_open_items(run: Result, opened: Opened) -> None:
    page = opened(written(run))
    assert searched(page, "WIND").endswith("12 hits")
    assert marked(page, "match") == []
    page.locator(".item > summary").first.click()
    page.wait_for_timeout(50)
    assert marked(page, "match") == ["wind"] * 3


def test_items_are_ordered_by_any_score(run: Result, opened: Opened) -> None:
    page = opened(written(run))
    assert shown(page) == [
        "west",
        "east",
        "south",
        "north",
    ]  # lowest criterion: 1 and 2.5 on average, 1 and 3, 2, 4
    rows = page.locator(".item > summary").all_text_contents()
    page.select_option("#order", "high")
    page.select_option("#order", "")
    assert page.locator(".item > summary").all_text_contents() == rows
    page.select_option("#column", label="fluency")
    assert shown(page) == ["east", "south", "west", "north"]  # 1, 2, 4, 4
    # Not the inner text, which is empty until the browser has drawn the moved item.
    assert page.locator(".item > summary > .chip").first.text_content() == "1"
    assert page.locator(".item .from").first.text_content() == "b fluency"
    page.select_option("#order", "high")
    assert shown(page) == ["west", "north", "south", "east"]
    page.select_option("#order", "spread")
    assert shown(page) == ["east", "south", "north", "west"]  # 2, 1, 1, only one score
    page.select_option("#order", "name")
    assert shown(page) == ["east", "north", "south", "west"]


def test_a_scale_of_words_is_shown_in_words(opened: Opened) -> None:
    column = Column(
        "polite", "criterion", Signature(), 0.0, 1.0, ("pass", "fail"), values=(1.0, 0.0)
    )
    samples = tuple(Sample(item, "s", "A text.") for item in ("good", "bad"))
    scores = tuple(
        Score(s.item, "s", "polite", v, Provenance("single"))
        for s, v in zip(samples, (0.9, 0.2), strict=True)
    )
    page = opened(written(Result(Table(samples, (column,), scores))))
    chips = page.locator(".item > summary > .chip")
    # Not the inner texts: those of an item that is not drawn yet are empty.
    assert (shown(page), chips.all_text_contents()) == (["bad", "good"], ["fail", "pass"])
    page.select_option("#order", "high")
    assert (shown(page), chips.all_text_contents()) == (["good", "bad"], ["pass", "fail"])


def test_items_are_filtered_by_a_column_of_the_data_and_the_link_keeps_it(
    opened: Opened,
) -> None:
    samples = tuple(
        Sample(item, "shop", "Text.", extra={"channel": channel})
        for item, channel in (("a", "mail"), ("b", "chat"), ("c", "mail"), ("d", "chat"))
    )
    text = written(Result(Table(samples, (), ())))
    page = opened(text)
    page.select_option("#facet-0", label="mail")
    assert shown(page) == ["a", "c"]
    link = page.evaluate("location.hash")
    assert shown(opened(text, link)) == ["a", "c"]


def test_items_are_filtered_by_failure_system_and_score(run: Result, opened: Opened) -> None:
    page = opened(written(run))
    page.check("#failed")
    assert (shown(page), page.locator("#count").inner_text()) == (["west"], "1 of 4 items")
    page.select_option("#system", label="a")
    assert shown(page) == []
    page.select_option("#system", label="b")
    page.select_option("#column", label="relevance")
    assert shown(page) == []
    page.select_option("#column", label="fluency")
    assert shown(page) == ["west"]
    page.locator(".item:not([hidden]) > summary").click()
    assert page.locator("article:visible").count() == 1
    page.uncheck("#failed")
    assert shown(page) == ["east", "south", "north", "west"]  # 1, 3, 4 and none of b


def test_two_systems_are_compared_side_by_side_with_their_different_words(
    run: Result, opened: Opened
) -> None:
    page = opened(written(run), "#items?system=a&versus=b&item=north")
    page.locator(".item[open]").wait_for()
    left, right = (page.locator(".item[open] article").nth(k).bounding_box() for k in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]
    assert marked(page, "changed") == ["a", "b"]  # The north wind of a. The north wind of b.
    page.select_option("#versus", index=0)
    assert marked(page, "changed") == []
    page.select_option("#system", index=0)
    page.select_option("#versus", label="a")
    assert state(page) == {"system": ["b"], "versus": ["a"], "item": ["north"]}


def test_words_copied_from_the_source_are_marked_in_both(run: Result, opened: Opened) -> None:
    sources = (
        "So it was: the north wind of winter blew.",
        "The north wind 🌬 of AUTUMN, of a town.",
    )
    samples = tuple(
        replace(
            s,
            source=sources[0] if s.system == "a" else sources[1],
            output=f"🌬 The North wind of {s.system} town.",
        )
        for s in run.table.samples
        if s.item == "north"
    )
    page = opened(written(replace(run, table=replace(run.table, samples=samples))))
    page.locator(".item > summary").click()
    assert marked(page, "copied") == []
    page.check("#copied")
    copied = ["The North wind of", "the north wind of", "The North wind of", "The north wind 🌬 of"]
    assert marked(page, "copied") == copied
    page.select_option("#system", label="a")
    assert marked(page, "copied") == copied[:2]


def test_the_longest_copied_run_is_marked_also_in_text_without_spaces(opened: Opened) -> None:
    sample = Sample(
        "i", "s", "市議会は橋を直すことを決めた。", "月曜日に市議会は古い橋を直すことを決めた。"
    )
    page = opened(written(Result(Table((sample,), (), ()))), "#items?item=i&copied=1")
    page.locator(".item[open]").wait_for()
    assert set(marked(page, "copied")) == {"橋を直すことを決めた"}


# The state in the link.


def test_the_link_keeps_the_state(run: Result, opened: Opened) -> None:
    text = written(run)
    page = opened(text)
    page.select_option("#system", label="b")
    page.select_option("#column", label="relevance")
    page.select_option("#order", "high")
    searched(page, "wind")
    page.locator(".item:not([hidden]) > summary").nth(1).click()
    page.wait_for_timeout(50)
    items = shown(page)
    expected = {
        "system": ["b"],
        "column": ["relevance"],
        "order": ["high"],
        "q": ["wind"],
        "item": [items[1]],
    }
    assert state(page) == expected
    reopened = opened(text, page.evaluate("location.hash"))
    reopened.locator(".item[open]").wait_for()
    assert shown(reopened) == items
    assert reopened.locator("#q").input_value() == "wind"
    assert reopened.evaluate("document.querySelector('.item[open] .name').textContent") == items[1]
    assert reopened.evaluate("document.activeElement.textContent").count(items[1])


def test_a_link_with_unknown_names_opens_all_items(run: Result, opened: Opened) -> None:
    page = opened(written(run), "#items?system=gone&column=%F0&item=nowhere&order=sideways")
    page.wait_for_timeout(100)
    assert len(shown(page)) == 4


def test_the_address_is_copied(run: Result, opened: Opened) -> None:
    page = opened(written(run), "#items?q=north", permissions=["clipboard-read", "clipboard-write"])
    page.locator("#copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").endswith("#items?q=north")


def test_the_table_of_means_is_downloaded(run: Result, opened: Opened) -> None:
    page = opened(written(run))
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.path().read_text(encoding="utf-8") == run.report("csv", wide=True)
    page.said.clear()  # the address of the download


def test_a_cell_opens_the_texts_behind_it(tested: Result, opened: Opened) -> None:
    page = opened(written(tested))
    row = page.locator("#table-leaderboard tbody tr").filter(has_text="poor")
    row.locator("a[href*='column=style']").click()
    page.wait_for_timeout(100)
    assert state(page) == {"system": ["poor"], "column": ["style"]}
    assert {text.split("\n")[0] for text in page.locator(".item .from").all_inner_texts()} == {
        "poor style"
    }
    page.evaluate("document.getElementById('top').scrollIntoView()")
    row.locator("a[href*='column=style']").click()  # the same state again
    page.wait_for_timeout(600)
    assert page.locator(".item > summary").first.is_visible()


def test_a_disagreement_opens_its_item_among_those_in_the_order_of_the_gaps(
    run: Result, opened: Opened
) -> None:
    samples = [replace(sample, human={"fluency": 3.0}) for sample in run.table.samples]
    rated = analyzed(samples, run.table.columns, [*run.table.rows()], RunInfo())
    page = opened(written(rated), viewport={"width": 390, "height": 800})
    for side, item, chip in (("higher", "north", "2"), ("lower", "east", "−2")):
        page.locator(f"h3:has-text('Judge {side} than people') + div .who a").first.click()
        page.locator(".item[open]").wait_for()
        assert shown(page)[0] == item
        assert page.locator(".item[open] .name").inner_text() == item
        assert page.locator(".item[open] .chip").first.inner_text() == chip
        assert state(page)["column"] == ["fluency: judge − people"]
        page.evaluate(OPEN.replace("true", "false"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_win_rate_opens_the_texts_that_lose_first(ranking: Result, opened: Opened) -> None:
    page = opened(written(ranking))
    page.locator("#ranking-overall tr, main tr").filter(has_text="lead").locator("a").first.click()
    page.wait_for_timeout(100)
    assert state(page) == {"system": ["lead"], "column": ["overall: preferred"]}
    assert page.locator(".item > summary > .chip").all_text_contents() == ["0.45", "0.53", "0.70"]


def test_a_heading_sorts_its_column(tested: Result, opened: Opened) -> None:
    page = opened(written(tested))
    table = page.locator("#table-scores")

    def sort(name: str) -> tuple[list[str], str | None]:
        table.get_by_role("button", name=name).click()
        names = table.locator("tbody th").all_inner_texts()
        return names, table.locator("th[aria-sort]").get_attribute("aria-sort")

    assert sort("fluency") == (["good", "=fair", "poor"], "descending")
    assert sort("fluency") == (["poor", "=fair", "good"], "ascending")
    assert sort("delta")[1] == "ascending"  # the lowest is the best
    assert sort("system") == (["=fair", "good", "poor"], "ascending")


# Keys.


def test_items_are_reached_by_keys(run: Result, opened: Opened) -> None:
    page = opened(written(run))
    order = shown(page)

    def at() -> str:
        return str(
            page.evaluate(
                "document.activeElement.closest('.item')?.querySelector('.name').textContent ?? ''"
            )
        )

    for key, place in [("j", 0), ("j", 1), ("ArrowDown", 2), ("k", 1), ("ArrowUp", 0), ("k", 0)]:
        page.keyboard.press(key)
        assert at() == order[place]
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator(".item").first.get_attribute("open") == ""
    page.keyboard.press("Escape")
    assert page.locator(".item[open]").count() == 0
    page.keyboard.press("/")
    page.keyboard.type("j south")
    assert page.locator("#q").input_value() == "j south"
    page.keyboard.press("Escape")  # the browser's own key clears the field
    page.keyboard.press("Escape")
    page.keyboard.press("Control+j")
    assert at() == ""


def test_every_control_and_item_is_reached_by_tab(run: Result, opened: Opened) -> None:
    page = opened(written(run))
    page.locator("#q").focus()
    focused = []
    for _ in range(11):
        focused.append(
            page.evaluate("document.activeElement.id || document.activeElement.className || 'item'")
        )
        page.keyboard.press("Tab")
    assert focused == [
        "q",
        "system",
        "versus",
        "column",
        "order",
        "failed",
        "copied",
        *["item"] * 4,
    ]
    unnamed = (
        "[...document.querySelectorAll('input, select')].filter((one) => !one.labels.length).length"
    )
    assert page.evaluate(unnamed) == 0


# Prompts.


def test_the_first_prompt_of_each_column_is_shown_folded_as_it_was_sent(opened: Opened) -> None:
    output = "<b>\r\n3\x07 </output 12>\n\nCriterion: Coherence"
    rows = [
        {"item": "1", "system": "a", "source": "The boat came late.", "output": output},
        {"item": "1", "system": "b", "source": "The boat came late.", "output": "A boat came."},
    ]
    sent: list[str] = []

    def answer(request: Request) -> str:
        sent.append(escape_controls(request.messages[0]["content"]))
        return "A" if "Text A:" in sent[-1] else "3"

    for run in (judge.evaluate, judge.rank):
        sent.clear()
        result = run(
            rows,
            ["coherence", "fluency"],
            model=judge.ScriptedProvider(answer),
            weighting="single",
            metrics="none",
            cache=False,
        )
        page = opened(written(result))
        prompts = page.locator("details.fold:has(> summary:text('Prompt: '))")
        assert prompts.count() == 2
        texts = prompts.locator("code").all_text_contents()
        assert set(texts) < set(sent)
        assert all(output.splitlines()[0] in text for text in texts)
        assert not prompts.locator("code").first.is_visible()


# Screens and paper.


def test_the_theme_follows_the_system_and_the_button(result: Result, opened: Opened) -> None:
    page, paper = written(result), "getComputedStyle(document.body).backgroundColor"
    light, dark = opened(page), opened(page, color_scheme="dark")
    colours = [one.evaluate(paper) for one in (light, dark)]
    assert colours == ["rgb(246, 247, 249)", "rgb(19, 22, 26)"]
    for one in (light, dark):
        one.locator("#theme").click()
    assert [one.evaluate(paper) for one in (light, dark)] == colours[::-1]
    dark.emulate_media(media="print")
    assert dark.evaluate(paper) == "rgb(255, 255, 255)"


def test_the_summary_fits_the_first_screen(opened: Opened, tested: Result) -> None:
    page = opened(written(tested), viewport={"width": 1280, "height": 900})
    blocks = page.locator("main > *:not(section):not(.next)")
    tops = [blocks.nth(k).bounding_box() for k in range(blocks.count())]
    assert len(tops) >= 3
    assert tops == sorted(tops, key=lambda box: box["y"])
    assert max(box["y"] + box["height"] for box in tops) <= 900


@pytest.fixture(scope="module")
def many() -> Result:
    """16 systems on 12 items, with 4 criteria and 4 metrics."""
    columns = [
        Column(f"criterion {k}", "criterion", Signature(), 1.0, 5.0, ("1", "2", "3", "4", "5"))
        for k in range(4)
    ]
    columns += [Column(f"metric{k}", "metric", Signature(), 0.0, 1.0) for k in range(4)]
    samples = tuple(
        Sample(f"item {k}", f"system {n}", f"text {k} of {n}") for k in range(12) for n in range(16)
    )
    scores = [
        Score(
            s.item,
            s.system,
            c.name,
            1.0 + (len(s.output) * 7 + j * 3 + k) % 5,
            Provenance("single"),
        )
        for k, s in enumerate(samples)
        for j, c in enumerate(columns)
    ]
    table = Table(samples, tuple(columns), tuple(scores))
    return Result(table, item_means(table))


def test_all_rows_of_16_systems_are_in_sight(opened: Opened, many: Result) -> None:
    page = opened(written(many), viewport={"width": 1280, "height": 900})
    rows = page.locator("#table-leaderboard tbody tr")
    assert rows.count() == 16
    last = rows.last.bounding_box()
    assert last["y"] + last["height"] < 900


def test_paper_has_every_column_and_the_texts_of_the_ten_worst_items(
    opened: Opened, many: Result
) -> None:
    page = opened(
        written(many), viewport={"width": 703, "height": 1032}
    )  # A4 without margins, at 96 pixels per inch
    page.emulate_media(media="print")
    edges = page.evaluate(
        "[...document.querySelectorAll('th, td')].map((cell) => cell.getBoundingClientRect().right)"
    )
    assert max(edges) <= 703
    texts = page.locator("article > .text")
    seen = [texts.nth(k).is_visible() for k in range(texts.count())]
    assert seen == [True] * 160 + [False] * 32
    assert not page.locator(".controls").is_visible()
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_paper_keeps_an_items_heading_and_source_with_its_texts(
    opened: Opened, run: Result
) -> None:
    page = opened(written(run))
    page.emulate_media(media="print")
    for selector in (".item > summary", ".given"):
        break_after = "block => getComputedStyle(block).breakAfter"
        assert page.locator(selector).first.evaluate(break_after) == "avoid"


def test_the_source_stays_in_sight_beside_its_texts(run: Result, opened: Opened) -> None:
    samples = tuple(replace(s, output=s.output + "\n" * 80) for s in run.table.samples)
    text = written(replace(run, table=replace(run.table, samples=samples)))
    page = opened(text, "#items?item=north", viewport={"width": 1240, "height": 700})
    page.locator(".item[open]").wait_for()
    page.evaluate("scrollBy({ top: 1500, behavior: 'instant' })")
    page.wait_for_timeout(100)
    assert (
        0
        <= page.evaluate("document.querySelector('.item[open] .given').getBoundingClientRect().top")
        < 100
    )
    left, right = (
        page.locator(f".item[open] {one}").first.bounding_box() for one in (".given", "article")
    )
    assert left["x"] + left["width"] <= right["x"]
    page.set_viewport_size({"width": 375, "height": 700})
    above, below = (
        page.locator(f".item[open] {one}").first.bounding_box() for one in (".given", "article")
    )
    assert above["y"] + above["height"] <= below["y"]


def test_a_wide_table_is_split_for_print(opened: Opened) -> None:
    columns = (
        Head("", numeric=False),
        Head("", numeric=False),
        *(Head(f"metric_{k}") for k in range(30)),
    )
    row = (
        Cell("1"),
        Cell("a system"),
        *(Cell(f"{k / 7:.3f}", "[0.123, 0.456]") for k in range(30)),
    )
    section = Section("scores", "All scores", lambda: [Shown(columns, (row,))])
    text = plugins.write(Document("t", sections=(section,)), "html")
    page = opened(text, viewport={"width": 703, "height": 1032})
    page.emulate_media(media="print")
    heads = [
        head
        for head in page.locator("th[data-k]").all()
        if head.is_visible() and head.inner_text().strip()
    ]
    assert [head.inner_text().strip() for head in heads] == [f"metric_{k}" for k in range(30)]
    right = max(box["x"] + box["width"] for head in heads if (box := head.bounding_box()))
    assert right <= 703 * 1.25, "Chromium shrinks a page by up to a fifth to fit the paper"
