from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations

import pytest

from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.report.renderers.html import MOST_DRAWN, render, summary
from judge.results.result import Result
from judge.stats.bootstrap import bootstrap_means
from judge.stats.pairwise import Ranking
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
    assert (found.count("script"), found.count("style")) == (2, 1)
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
    assert text.count("橋を直すことを決めた。") == 1
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
    assert text.count("i499 ") == 1
    assert "i500 " not in text


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
    assert "4.50 4: 50%, 5: 50% samples, 20 draws " in text
    assert "its own sourceanother source" in text
    assert "failed request: Refused. no " in text


def test_a_reason_is_read_without_opening_anything(page: str) -> None:
    shown = re.sub(r"<details class=\"told\">.*?</details>", "", page, flags=re.DOTALL)
    assert shown.count('<p class="reason">原文と一致している。') == 6


def test_draws_are_told_with_their_counts(panel: Result) -> None:
    text = Page(render(panel)).text
    assert "samples, 19 of 20 draws, bounds 4.15–4.35, entropy 0.60; the reply came without" in text
    assert "replies 4 ×13, 5 ×6, n/a ×1" in text
    assert "3 replies4 It reads well. ×25 Smooth." in text
    assert "failed parse: ParseError. none of 2 draws has a score replies Sorry. ×1, I shall not say. ×1" in text
    assert 'reply ["2"]' in text
    assert "decisions, mass 0.98, bounds 3.40–3.60, entropy 0.70" in text


def test_a_panels_scores_stand_under_the_criterion(panel: Result) -> None:
    page = render(panel)
    first = page[page.index('<ul class="judged">') : page.index("</ul>")]
    assert re.findall(r'<li( class="part")?><span>([^<]*)', first) == [
        ("", "fluency"),
        (' class="part"', "a"),
        (' class="part"', "org/b"),
    ]


def test_a_ranking_is_shown_with_its_texts_once_and_its_comparisons(ranking: Result) -> None:
    page = render(ranking)
    found = Page(page)
    assert (found.count("script"), found.count("style")) == (2, 1)
    assert not set(page) & {"\x00", "\x1b", "\u202e"}
    targets = {attrs["id"] for _, attrs in found.tags if "id" in attrs}
    assert {(attrs["href"] or "")[1:] for tag, attrs in found.tags if tag == "a"} <= targets
    assert [attrs.get("class") for _, attrs in found.tags if "hidden" in attrs] == ["controls"]
    for sample in ranking.table.samples:
        if sample.output and "\x00" not in sample.output and sample.output not in (sample.source or ""):
            assert found.text.count(sample.output) == 1
    assert len(re.findall(r'<tr class="flipped">', page)) == 2
    assert "lead against システム二システム二 0.80システム二 0.900.15" in found.text
    assert "lead against システム二lead 0.70システム二 0.600.55 flip" in found.text
    assert "システム二 against evil|<b>*sys*システム二 1.00failed–" in found.text
    assert found.text.count("identical texts: a tie") == 1
    assert "システム二 first:" in found.text


def test_a_rankings_bars_and_matrix_hold_every_number(ranking: Result) -> None:
    page = render(ranking)
    found = Page(page)
    assert found.count("circle") == 2 * 3
    cells = re.findall(r'<td class="(won|lost|even)" style="--shade: (\d+)%" title="[^"]*">([\d.]+)</td>', page)
    (of,) = ranking.rankings
    rates = sorted(rate for row in of.win_rate for rate in row if rate is not None)
    assert sorted(float(text) for *_, text in cells) == pytest.approx([100 * rate for rate in rates], abs=0.05)
    assert all(int(shade) == round(abs(float(text) - 50)) for _, shade, text in cells)
    assert {kind for kind, _, text in cells if float(text) > 50} == {"won"}


def _compared(items: int, systems: int) -> Result:
    names = [f"s{k}" for k in range(systems)]
    samples = tuple(Sample(f"i{k}", name, "text") for k in range(items) for name in names)
    scores = tuple(
        Score(f"i{k}", one, "c", 1.0, Provenance("single"), other)
        for k in range(items)
        for one, other in combinations(names, 2)
    )
    table = Table(samples, (Column("c", "criterion", "c"),), scores)
    of = Ranking(
        "c", tuple(names), (), ((None,) * systems,) * systems, ((0,) * systems,) * systems, 0, 0, 0, None, None, ""
    )
    return Result(table, {}, {"plan": {"orders": 1}}, rankings=(of,))


@pytest.mark.parametrize(
    ("items", "systems", "said"),
    [
        (1001, 2, "The first 1,000 of 1,001 items (2,000 of 2,002 texts) are shown"),
        (120, 10, "The first 111 of 120 items (1,110 of 1,200 texts) are shown"),
    ],
)
def test_a_large_ranking_shows_its_first_items_and_says_so(items: int, systems: int, said: str) -> None:
    assert said in Page(render(_compared(items, systems))).text


def test_items_of_which_nothing_was_compared_are_not_listed() -> None:
    result = _compared(3, 2)
    some = tuple(score for score in result.table.scores if score.item != "i1")
    text = Page(render(replace(result, table=replace(result.table, scores=some)))).text
    assert ("i0 " in text, "i1 " in text, "i2 " in text) == (True, False, True)
    assert "are shown; all are in" not in text


def test_the_summary_alone_is_what_notebooks_show(result: Result) -> None:
    found = Page(summary(result))
    assert {tag for tag, _ in found.tags} == {
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "small",
        "span",
    }
    assert "evil|<b>*sys*" in found.text


def test_the_leaderboard_is_marked_and_in_the_order_of_its_first_column(tested: Result) -> None:
    rows = [re.sub(r"<[^>]*>", " ", row).split() for row in summary(tested).split("<tr>")[2:]]
    assert [row[:3] for row in rows] == [["1", "1–2", "good"], ["2", "1–3", "=fair"], ["3", "2–3", "poor"]]
    assert rows[0][3:9] == ["0.625", "≈", "[0.500,", "0.760]", "4.00", "*"]
    assert rows[1][3:8] == ["0.406", "≈", "[0.292,", "0.552]", "2.50"]


def test_an_arrow_to_the_better_end_is_said_in_words(tested: Result) -> None:
    text = summary(tested)
    assert re.findall(r'aria-label="(\w+) is better" title="[^"]*">(.)<', text) == [("higher", "↑")] * 3 + [
        ("lower", "↓")
    ]
    charts = render(tested).partition('id="charts"')[2].partition("</section>")[0]
    assert re.findall(r"<figcaption>(\w+) <span[^>]*>(.)<", charts) == [
        *((name, "↑") for name in ("overall", "fluency", "style")),
        ("delta", "↓"),
    ]


def test_of_many_systems_the_first_are_drawn_and_that_is_said() -> None:
    samples = tuple(Sample("i", f"s{k}", "o") for k in range(MOST_DRAWN + 1))
    column = Column("m", "criterion", "m", 1.0, 5.0, ("1", "2", "3", "4", "5"))
    scores = tuple(Score("i", s.system, "m", 3.0, Provenance("single")) for s in samples)
    for kept, said in ((samples, True), (samples[1:], False)):
        table = Table(kept, (column,), tuple(s for s in scores if s.system in {one.system for one in kept}))
        page = render(Result(table, bootstrap_means(table)))
        assert page.count('<svg class="bar') == MOST_DRAWN
        assert page.count("The first 30 of 31 systems are drawn; the leaderboard has all.") == 2 * said
        assert page.partition('id="means"')[2].count('<tr><th scope="row" class="name">') == len(kept)


def test_what_can_be_chosen_is_all_there_without_the_script(tested: Result) -> None:
    page = render(tested)
    for chosen in ("wins-of", "heats-of"):
        choice = page[page.index(f'data-of="{chosen}"') :]
        options = re.findall(r"<option>([^<]*)</option>", choice[: choice.index("</select>")])
        part = page[page.index(f'<div id="{chosen}"') :]
        part = part[: part.index("</section>")]
        assert [head.strip() for head in re.findall(r"<h3>([^<]*)<", part)] == options
        assert "hidden" not in part
        assert part.count("<figure>") == part.count("<figcaption") == len(options)
    assert [attrs.get("class") for _, attrs in Page(page).tags if "hidden" in attrs] == ["choice", "choice", "controls"]


def test_the_verdict_comes_before_the_leaderboard_and_this_before_the_warnings(tested: Result) -> None:
    page = render(replace(tested, info={**tested.info, "notes": ["a note"]}))
    parts = (
        '<p class="verdict">good has',
        'id="means"',
        'id="warnings"',
        "a note",
        'id="run"',
        'id="wins"',
        'id="heats"',
    )
    places = [page.index(part) for part in parts]
    assert places == sorted(places)


def test_a_clean_run_has_no_failures_section(result: Result) -> None:
    clean = replace(result, table=replace(result.table, failures=()), info={})
    found = Page(render(clean))
    assert not any(attrs.get("id") in ("failures", "failed") for _, attrs in found.tags)


def test_metrics_that_lack_a_value_for_one_reason_say_it_once() -> None:
    names = ("rouge1", "rouge2", "rougeL", "bleu")
    columns = tuple(Column(name, "metric", name) for name in names)
    failures = tuple(Failure("1", "a", name, "metric", "NoReference", "d.jsonl:1 has no reference") for name in names)
    page = Result(Table((Sample("1", "a", "text"),), columns, (), failures)).report("html")
    items = page[page.index('<details class="item"') :]
    assert items.count("d.jsonl:1 has no reference") == 1
    assert "rouge1 and 3 more" in items
