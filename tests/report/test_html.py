from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from judge.records import Column, Failure, Provenance, Sample, Score
from judge.report import Result
from judge.report.html import render, summary
from judge.table import Table

VOID = {"meta", "br", "input", "link", "img", "hr"}


class Page(HTMLParser):
    """What a browser would make of the page: its tags, attributes and visible text; unbalanced tags fail."""

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
        return sum(found == tag for found, _ in self.tags)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))


@pytest.fixture(scope="module")
def page(result: Result) -> str:
    return render(result)


def test_golden(page: str, golden) -> None:
    golden("report.html", page)


def test_hostile_text_is_shown_and_never_obeyed(page: str) -> None:
    found = Page(page)
    assert (found.count("script"), found.count("style")) == (1, 1)
    assert found.count("b") == sum(1 for _ in re.finditer(r"<b[ >]", page))
    assert "evil|<b>*sys*" in found.text
    shown = "<script>alert(\"1\")</script></style>\\x00 \\u202egnp.exe | `x` **b** & 'q'\\x1b[31m"
    assert shown in found.text
    assert not set(page) & {"\x00", "\x1b", "\u202e"}


def test_nothing_is_fetched_and_only_the_pages_own_script_may_run(page: str) -> None:
    found = Page(page)
    loaded = {"src", "href", "srcset", "action", "poster", "data", "xlink:href"}
    assert all(
        (value or "").startswith("#") for _, attrs in found.tags for name, value in attrs.items() if name in loaded
    )
    assert not any(name.startswith("on") for _, attrs in found.tags for name in attrs)
    assert "url(" not in page
    assert "@import" not in page
    (policy,) = [a["content"] or "" for t, a in found.tags if a.get("http-equiv") == "Content-Security-Policy"]
    script = page[page.index("<script>") + len("<script>") : page.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


def test_links_inside_the_page_have_their_targets(page: str) -> None:
    found = Page(page)
    targets = {attrs["id"] for _, attrs in found.tags if "id" in attrs}
    links = {(attrs["href"] or "")[1:] for tag, attrs in found.tags if tag == "a"}
    assert links
    assert links <= targets


def test_it_can_be_read_without_its_script(page: str) -> None:
    hidden = [attrs for _, attrs in Page(page).tags if "hidden" in attrs]
    assert [attrs.get("class") for attrs in hidden] == ["controls"]


def test_every_text_of_the_run_is_on_the_page_and_sources_once(result: Result, page: str) -> None:
    text = Page(page).text
    for sample in result.table.samples:
        if "\x00" not in sample.output:
            assert sample.output in text
        for reference in sample.references:
            assert text.count(reference) == 1
    assert text.count("橋を直すことを決めた。") == 2  # its heading and the source itself
    assert text.count("failed metric: DataError. nothing to measure") == 2
    assert "logprobs, mass 0.99, bounds 4.10–4.90, entropy 0.90" in text
    assert "people: coherence 4" in text
    for column in result.table.columns:
        assert column.signature in text


def test_charts_have_a_bar_per_estimate_and_a_histogram_per_criterion_and_system(result: Result, page: str) -> None:
    found = Page(page)
    bars = [attrs for tag, attrs in found.tags if tag == "svg" and (attrs.get("class") or "").startswith("bar")]
    assert len(bars) == 3 * 4
    assert sum(attrs["aria-label"] != "no score" for attrs in bars) == len(result.estimates)
    assert found.count("circle") == len(result.estimates)
    assert sum(tag == "figure" for tag, _ in found.tags) == 4 + 2 * 3


def _large(outputs: int, systems: int = 4) -> Result:
    samples = tuple(Sample(f"i{k // systems}", f"s{k % systems}", "text") for k in range(outputs))
    return Result(Table(samples, (Column("c", "criterion", "c"),), ()))


def test_a_large_run_shows_its_first_items_and_says_so() -> None:
    text = Page(render(_large(2400))).text
    assert "The first 500 of 600 items (2,000 of 2,400 texts) are shown; all are in scores.parquet." in text
    assert text.count("i499 text") == 1
    assert "i500 text" not in text


def test_a_single_item_larger_than_the_limit_is_shown() -> None:
    text = Page(render(_large(2101, systems=2101))).text
    assert "are shown; all are in" not in text


def test_a_run_within_the_limit_is_whole() -> None:
    assert "are shown; all are in" not in render(_large(2000))


def test_provenance_is_told_as_far_as_it_is_known() -> None:
    column = Column("c", "criterion", "c", 1.0, 5.0, ("1", "2", "3", "4", "5"))
    samples = (Sample("i", "s", "out", "one source"), Sample("i", "t", "other", "another source"))
    drawn = Provenance("samples", 1.0, {"4": 0.5, "5": 0.5}, None, "4", 4.5, 4.5, 20, None, None, None)
    table = Table(
        samples, (column,), (Score("i", "s", "c", 4.5, drawn),), (Failure("i", "t", "c", "request", "Refused", "no"),)
    )
    text = Page(render(Result(table))).text
    assert "4.50 4: 50%, 5: 50% samples, 20 draws, mass 1.00 " in text
    assert "its own sourceanother source" in text
    assert "failed request: Refused. no " in text


def test_items_can_be_put_in_the_order_of_their_lowest_score(page: str) -> None:
    lows = [attrs["data-lows"] for _, attrs in Page(page).tags if "data-lows" in attrs]
    assert lows == ["1 2 0.25 7", "2 2 0.125 12", "1.5 1 0 20"]


def test_the_summary_alone_is_what_notebooks_show(result: Result) -> None:
    found = Page(summary(result))
    assert result._repr_html_() == summary(result)
    assert {tag for tag, _ in found.tags} == {
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "b",
        "span",
        "br",
        "small",
    }
    assert "evil|<b>*sys*" in found.text


def test_a_clean_run_has_no_failures_section(result: Result) -> None:
    clean = replace(result, table=replace(result.table, failures=()), info={})
    found = Page(render(clean))
    assert not any(attrs.get("id") in ("failures", "failed") for _, attrs in found.tags)
