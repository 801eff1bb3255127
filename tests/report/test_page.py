"""The page of a Document: blocks, content security policy and escaped text."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from judge.core import plugins
from judge.report import document as blocks
from judge.report.charts.shapes import name_text
from judge.report.document import Bar, Cell, Column, Document, Section, Table
from judge.report.format import isolate
from judge.report.renderers.html import fragment, render
from judge.report.views.items import browser
from judge.results.result import Result
from tests.factories import has_line

VOID = {"meta", "br", "input", "wbr"}
HOSTILE = "<script>alert(\"1\")</script></style>\x00 \u202egnp.exe 'q' ]]> {{ 7 * 7 }}"
SHOWN = "<script>alert(\"1\")</script></style>\\x00 \\u202egnp.exe 'q' ]]> {{ 7 * 7 }}"
SVG = '<svg viewBox="0 0 9 9"><rect class="bar best" width="9" height="9"/><text class="label">nine</text></svg>'


class Page(HTMLParser):
    """Tags, attributes and visible text of a page. Fail on unbalanced tags."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.words.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    def having(self, name: str) -> list[str]:
        """Return the values of an attribute."""
        return [attrs[name] or "" for _, attrs in self.tags if name in attrs]

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))


def every_block(text: str) -> tuple[Any, ...]:
    """Return a block of each kind with `text` in every text field."""
    table = Table(
        (Column(text, numeric=False), Column(text, group=text, note=text, better="lower"), Column(text, group=text)),
        (
            (
                Cell(text),
                Cell(text, text, "good", text, text, 0.5, Bar(0.5, 0.25, 0.75), 0.5, f"items?system={text}"),
                Cell(text, text, shade=-0.25),
            ),
        ),
        text, text, text, sorts=True,
    )  # fmt: skip
    excerpts = blocks.Excerpts(
        text, (blocks.Excerpt(text, text, text, text, text, text, "bad", text, text),)
    )
    inner = (
        blocks.Heading(text),
        blocks.Paragraph(text, "muted"),
        blocks.Notice(text),
        blocks.Facts(((text, text),)),
        blocks.Tiles((blocks.Tile(text, text, "good", text), blocks.Tile(text, text))),
        blocks.Bullets((text,)),
        table,
        blocks.Code(text, text),
        blocks.Diff((f"+{text}", f"-{text}", f"@{text}", f" {text}")),
        excerpts,
        blocks.Chart(text, text, SVG, text, 9, 9, text),
    )
    return (*inner, blocks.Details(text, inner))


def document(text: str, language: str = "") -> Document:
    content = every_block(text)
    sections = (Section("parts", text, lambda: content), Section("empty", "left out", tuple))
    return Document(
        text, (text, text), text, (text,), (text,), (text,), content, sections, (text,), (text,), records=({text: text},),
        tone="good", language=language,
    )  # fmt: skip


@pytest.fixture(scope="module")
def page(result: Result) -> str:
    return plugins.write(plugins.document(result), "html")


def test_the_page_suggests_no_full_report() -> None:
    commands = ("the same command with --full", "judge report RUN --worst 10")
    shown = Page(render(replace(document("a"), next=commands))).text
    assert "--worst 10" in shown
    assert "--full" not in shown


def test_golden_of_the_items(result: Result, golden: Any) -> None:
    items = Section("items", "All items", lambda: (browser(result),))
    page = render(Document("Texts", sections=(items,), language="ja"))
    golden(
        "items.html", re.sub(r"<(style|script)>.*?</\1>|sha256-[^']+", "", page, flags=re.DOTALL)
    )


def test_every_block_is_shown_and_no_text_is_obeyed() -> None:
    written = render(document(HOSTILE))
    hostile, plain = Page(written), Page(render(document("plain")))
    breaks = {"wbr"}  # of a long name
    hostile_tags = [tag for tag, _ in hostile.tags if tag not in breaks]
    assert hostile_tags == [tag for tag, _ in plain.tags if tag not in breaks]
    assert hostile.text.count(SHOWN) == plain.text.count("plain") > 100
    assert not set(written) & {"\x00", "\x1b", "\u202e"}
    assert "left out" not in hostile.text


def test_nothing_is_fetched_and_only_the_pages_own_script_may_run(page: str) -> None:
    for written in (page, render(document(HOSTILE))):
        parsed = Page(written)
        loaded = [
            v
            for name in ("src", "href", "srcset", "action", "poster", "xlink:href")
            for v in parsed.having(name)
        ]
        assert all(value.startswith(("#", "data:text/csv;")) for value in loaded)
        assert not any(name.startswith("on") for _, attrs in parsed.tags for name in attrs)
        assert "url(" not in written
        assert "@import" not in written
        (policy,) = [
            a["content"] or ""
            for _, a in parsed.tags
            if a.get("http-equiv") == "Content-Security-Policy"
        ]
        script = written[written.index("<script>") + len("<script>") : written.rindex("</script>")]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in policy
        assert policy.startswith("default-src 'none'")


def test_links_inside_the_page_have_their_targets(page: str) -> None:
    parsed = Page(page)
    links = {
        value[1:].partition("?")[0] for value in parsed.having("href") if value.startswith("#")
    }
    assert {"top", "scores", "failures", "items", "method"} <= links <= set(parsed.having("id"))


def test_it_can_be_read_without_its_script(page: str) -> None:
    hidden = [
        attrs.get("id") or attrs.get("class") for _, attrs in Page(page).tags if "hidden" in attrs
    ]
    assert hidden == ["copy", "print", "theme", "key hint", "controls"]


def test_every_text_of_a_run_is_on_the_page(result: Result, page: str) -> None:
    text = Page(page).text
    for sample in result.table.samples:
        if "\x00" not in sample.output:
            assert sample.output in text
        assert all(reference in text for reference in sample.references)
    assert "failed unsuitable: nothing to measure" in text
    assert "logprobs, mass 0.99, bounds 4.10–4.90, entropy 0.90" in text
    assert "people: coherence 4" in text


def test_replies_of_a_panel_are_counted(panel: Result) -> None:
    text = Page(plugins.write(plugins.document(panel), "html")).text
    assert has_line(text, "samples, 19 of 20 draws", "bounds 4.15–4.35", "entropy 0.60")
    assert "replies “4” ×13, “5” ×6, “n/a” ×1" in text
    assert "4 It reads well. ×25 Smooth." in text
    assert has_line(
        text, "failed unreadable", "none of 2 draws", "“Sorry.” ×1, “I shall not say.” ×1"
    )
    assert 'reply “["2"]”' in text


def test_comparisons_are_shown_below_their_texts(ranking: Result) -> None:
    written = plugins.write(plugins.document(ranking), "html")
    text = Page(written).text
    assert written.count('<tr class="flipped">') == 2
    assert "lead against システム二システム二 0.80システム二 0.900.15" in text
    assert "lead against システム二lead 0.70システム二 0.600.55 flip" in text
    assert "システム二 against evil|<b>*sys*システム二 1.00failed–" in text
    assert text.count("identical texts: a tie") == 1
    assert "システム二 first:" in text


def test_judged_texts_have_a_direction_and_their_language(result: Result) -> None:
    parsed = Page(render(plugins.document(result)))
    texts = [
        attrs
        for _, attrs in parsed.tags
        if (attrs.get("class") or "").split(" ")[0] in ("text", "given-text", "reason")
    ]
    assert len(texts) > 9
    assert {attrs.get("dir") for attrs in texts} == {"auto"}
    outputs = [
        attrs["lang"]
        for _, attrs in parsed.tags
        if attrs.get("class") == "text" and "lang" in attrs
    ]
    assert [outputs.count(code) for code in ("en", "ja", "")] == [
        5,
        2,
        2,
    ]  # one is short, one is empty


@pytest.mark.parametrize(
    ("text", "usual", "code"),
    [
        ("The bridge opened on Monday.", "en", "en"),
        ("The bridge opened on Monday.", "ja", ""),
        ("橋は月曜日に開通した。", "en", "ja"),
        ("市議会", "ja", "ja"),
        ("市议会星期一开会，决定重修旧桥，工程明年春天开始。", "ja", "zh"),
        ("市議會星期一開會，決定重修舊橋，工程明年春天開始。", "en", "zh-Hant"),
        ("舊橋", "zh", "zh-Hant"),
        ("旧桥", "zh", "zh"),
        ("北京", "zh", "zh"),
        ("다리는 월요일에 개통되었다.", "", "ko"),
        ("افتتح الجسر الجديد يوم الاثنين بعد تأخير", "en", ""),
        ("40%", "en", ""),
    ],
)
def test_each_text_has_its_own_language(text: str, usual: str, code: str) -> None:
    excerpts = blocks.Excerpts("Lowest", (blocks.Excerpt("1", "s", "i", "c", reason=text),))
    assert Page(render(Document("t", summary=(excerpts,), language=usual))).having("lang") == [
        "en",
        code,
    ]


@pytest.mark.parametrize(
    ("text", "isolated"),
    [
        ("نموذج-2 كبير leads", "<bdi>نموذج-2 كبير</bdi> leads"),
        ("נחל 2.5 גדול leads", "<bdi>נחל 2.5 גדול</bdi> leads"),
        ("נחל-2.5: 4.60", "<bdi>נחל-2.5</bdi>: 4.60"),
        ("נחל 3 · הר 2", "<bdi>נחל</bdi> 3 · <bdi>הר</bdi> 2"),
        ("a beats נחל-2. הר trails", "a beats <bdi>נחל-2</bdi>. <bdi>הר</bdi> trails"),
    ],
)
def test_a_right_to_left_name_with_numbers_is_isolated_whole(text: str, isolated: str) -> None:
    assert isolate(text, "<bdi>", "</bdi>") == isolated


def test_names_of_a_right_to_left_script_reorder_nothing_after_them() -> None:
    text = "systems أحمد-2, בית: 4.60 [4.20, 5.00]"
    isolated = "systems <bdi>أحمد-2</bdi>, <bdi>בית</bdi>: 4.60 [4.20, 5.00]"
    marked = "systems \u2068أحمد-2\u2069, \u2068בית\u2069: 4.60 [4.20, 5.00]"
    named = Section("s", text, lambda: every_block(text))
    page = render(
        Document(
            text,
            (text, text),
            text,
            (text,),
            (text,),
            (text,),
            every_block(text),
            (named,),
        )
    )
    hidden = r'(?:href|id)="[^"]*"|<q .*?</q>|<code.*?</code>|<(?:b|small) dir="auto".*?</(?:b|small)>|<pre.*?</pre>'
    for written, least in (
        (page, 40),
        (fragment(Document(text, (text,), summary=every_block(text))), 8),
    ):
        assert written.count(isolated) >= least
        rest = re.sub(
            hidden, "", written.replace(isolated, "").replace(marked, ""), flags=re.DOTALL
        )
        assert re.findall("[^<>]*أحمد[^<>]*", rest) == []
    assert marked in name_text(0, 0, text, cells=60)


def test_headings_above_columns_span_them() -> None:
    columns = (
        Column("name"),
        Column("a", group="one"),
        Column("b", group="one"),
        Column("c"),
        Column("d", group="one"),
    )
    table = Table(columns, (tuple(map(Cell, "vwxyz")),), sorts=True)
    written = render(Document("t", sections=(Section("s", "S", lambda: (table,)),)))
    head = Page(written[written.index("<thead>") : written.index("</thead>") + len("</thead>")])
    cells = [
        (a.get("colspan"), a.get("rowspan"), a.get("data-k")) for tag, a in head.tags if tag == "th"
    ]
    assert cells == [
        (None, "2", "0"), ("2", None, None), (None, "2", "3"), ("1", None, None),
        (None, None, "1"), (None, None, "2"), (None, None, "4"),
    ]  # fmt: skip


def test_a_short_table_has_its_intervals_in_tooltips() -> None:
    row = (
        Cell("a"),
        Cell("0.5", "[0.4, 0.6]", bar=Bar(0.5)),
        Cell("3", "[2, 4]"),
        Cell("1", "[0, 2]", title="n = 7"),
    )
    columns = (Column("system"), Column("overall"), Column("c"), Column("d"))
    for short, titles in ((True, ["[2, 4]", "n = 7"]), (False, ["n = 7"])):
        parsed = Page(render(Document("t", summary=(Table(columns, (row,), short=short),))))
        assert [title for title in parsed.having("title") if title != "Light or dark"] == titles
        assert ("[2, 4]" in parsed.text) is not short
        assert "[0.4, 0.6]" in parsed.text


def test_a_notebook_shows_the_finding_the_notices_and_the_table(tested: Result) -> None:
    written = fragment(plugins.document(tested))
    parsed = Page(written)
    assert {tag for tag, _ in parsed.tags} <= {
        "div",
        "p",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert not parsed.having("class")
    bold = re.findall(r'font-weight: 600"[^>]*>([^<]*)</td>', written)
    assert bold == ["4.00*"]
    assert SHOWN in Page(fragment(document(HOSTILE))).text
