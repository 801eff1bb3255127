"""Claims and their support, marked in the page's texts and listed in every report."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.cells import cell_len

from judge.core import plugins
from judge.core.claims import Claim, Span, encode
from judge.core.errors import ConfigError
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.views import items
from judge.report.views.item_scores import marked
from judge.results.checked_claims import checked_claims
from judge.results.claim_list import claim_list
from judge.results.item import item_of
from judge.results.result import Result
from judge.results.run_info import RunInfo
from judge.stats.bootstrap import item_means
from judge.table import Table
from tests.factories import has_line

COLUMN = Column(
    "claims_precision", "metric", Signature("claims_precision", "nli", "threshold=0.5"), 0.0, 1.0
)
RECALL = replace(
    COLUMN, name="claims_recall", signature=Signature("claims_recall", "nli", "threshold=0.5")
)
SOURCE = (
    "The council met on Monday. It voted to mend the <old> bridge. 市議会は橋を直すことを決めた。"
)
OUTPUT = "The council met. It voted to burn the <old> bridge at noon. 市長は反対した。"


def place(text: str, words: str) -> Span:
    return Span(text.index(words), text.index(words) + len(words))


def claim(words: str, probability: float, evidence: str = "", text: str = "") -> Claim:
    span = place(OUTPUT, words) if words else None
    return Claim(text or words, probability, span, place(SOURCE, evidence) if evidence else None)


BURN = claim(
    "It voted to burn the <old> bridge at noon.", 0.124, "It voted to mend the <old> bridge."
)
NOON = claim("at noon", 0.04, "The council met on Monday.", "The vote was at noon.")
MAYOR = claim("市長は反対した。", 0.31, "市議会は橋を直すことを決めた。")
UNPLACED = claim("", 0.02, text="The <b>mayor</b> resigned.")
CLAIMS = [
    claim("The council met.", 0.98, "The council met on Monday."),
    BURN,
    NOON,
    MAYOR,
    UNPLACED,
]


def run(
    by_text: dict[tuple[str, str], list[Claim] | str], output: str = OUTPUT, **info: Any
) -> Result:
    """Return a run with these claims, or this record of claims, by item and system."""
    samples = tuple(Sample(*key, output, SOURCE, ("The bridge stays.",)) for key in by_text)
    raws = {
        key: claims if isinstance(claims, str) else encode(claims)
        for key, claims in by_text.items()
    }
    scores = [
        Score(*key, COLUMN.name, 0.5, Provenance("metric", raw=raw)) for key, raw in raws.items()
    ]
    missed = encode([Claim("The bridge stays.", 0.2, Span(0, 17), Span(0, 16))])
    scores += [Score(*key, RECALL.name, 0.0, Provenance("metric", raw=missed)) for key in by_text]
    table = Table(samples, (COLUMN, RECALL), tuple(scores))
    return Result(table, item_means(table), RunInfo(**info))


@pytest.fixture
def result() -> Result:
    return run(
        {
            ("doc-1", "lead"): CLAIMS,
            ("doc-1", "システム二"): CLAIMS[:2],
            ("文書2", "lead"): CLAIMS[3:4],
        }
    )


def page(result: Result) -> str:
    return plugins.write(plugins.document(result), "html")


def checked(raw: str, column: Column = COLUMN) -> Any:
    score = Score("i", "s", column.name, 0.5, Provenance("metric", raw=raw))
    return checked_claims(Sample("i", "s", OUTPUT, SOURCE), column, score)


# Records of claims.


def test_a_claim_is_supported_from_the_threshold_of_the_signature() -> None:
    raw = encode([Claim("a", 0.5), Claim("b", 0.49), Claim("c", 0.9)])
    assert [c.mark for c in checked(raw)] == ["✓ 0.50", "✗ 0.49", "✓ 0.90"]
    for signature, supported in (
        ("x|threshold=0.9|most=40", 1),
        ("x|threshold=1", 0),
        ("x|threshold=1e-07|y", 3),
    ):
        assert (
            sum(
                c.supported
                for c in checked(raw, replace(COLUMN, signature=Signature.parse(signature)))
            )
            == supported
        )


def test_claims_of_the_references_have_no_position_in_the_output() -> None:
    (claim,) = checked(encode([Claim("c", 0.5, Span(0, 5), Span(0, 11))]))
    assert (claim.span, claim.evidence) == ((0, 5), "The council")
    (of_reference,) = checked(encode([Claim("c", 0.5, Span(0, 5), Span(4, 16))]), RECALL)
    assert (of_reference.span, of_reference.evidence) == (None, "council met.")


@pytest.mark.parametrize(
    "raw", ['{"claims": 4}', '{"claims": [["a", 7]]}', '{"qags": []}', "4", "", "[" * 50_000]
)
def test_a_damaged_record_shows_nothing(raw: str) -> None:
    damaged = run({("i", "s"): raw})
    assert checked(raw) == ()
    assert '<mark class="claim"' not in page(damaged)
    assert "Unsupported claims" not in page(damaged)
    assert "claims" in damaged.report("console", full=True)


def test_places_beyond_the_texts_do_no_harm() -> None:
    far = Claim("Far.", 0.1, Span(5, 10_000), Span(9_000, 10_000))
    (claim,) = checked(encode([far]))
    assert (claim.span, claim.evidence) == (None, "")
    html = page(run({("i", "s"): [far]}))
    assert "not marked above" in html
    assert "no similar sentence" in html


@pytest.mark.parametrize(
    "column", [replace(COLUMN, kind="criterion"), replace(COLUMN, name="rougeL")]
)
def test_ignores_details_the_metric_did_not_write(column: Column) -> None:
    assert checked(encode(CLAIMS), column) == ()


# The page.


def pieces(*claims: Claim, quotes: Any = ()) -> list[tuple[str, list[float]]]:
    pieces = marked(OUTPUT, quotes, checked(encode(claims)))
    assert "".join(piece.text for piece in pieces) == OUTPUT
    return [
        (piece.text, [claim.probability for claim in piece.claims])
        for piece in pieces
        if piece.claims
    ]


def test_overlapping_claims_share_their_words() -> None:
    assert pieces(BURN, NOON) == [
        ("It voted to burn the <old> bridge ", [0.124]),
        ("at noon", [0.124, 0.04]),
        (".", [0.124]),
    ]
    assert pieces(MAYOR, MAYOR) == [("市長は反対した。", [0.31, 0.31])]
    assert pieces(replace(BURN, probability=0.9)) == []


def test_a_quotation_and_a_claim_mark_the_same_words() -> None:
    parts = marked(OUTPUT, [("at noon. 市長", "accuracy 2")], checked(encode([NOON])))
    assert [(piece.text, piece.quoted, len(piece.claims)) for piece in parts if piece.quoted] == [
        ("at noon", "accuracy 2", 1),
        (". 市長", "accuracy 2", 0),
    ]


def test_the_note_has_the_claims_own_words_if_the_text_has_others() -> None:
    notes = {
        piece.text: piece.note
        for piece in marked(OUTPUT, (), checked(encode([NOON, MAYOR])))
        if piece.claims
    }
    assert list(notes) == ["at noon", "市長は反対した。"]
    assert has_line(
        notes["at noon"], "0.04", "“The vote was at noon.”", "“The council met on Monday.”"
    )
    assert has_line(notes["市長は反対した。"], "0.31", "“市議会は橋を直すことを決めた。”")


def test_control_characters_move_no_mark() -> None:
    output = "\x1b[31mRed\u202e sky.\r\n\tSo it was \x00 said."
    words = "So it was \x00 said."
    html = page(run({("i", "s"): [Claim(words, 0.1, place(output, words))]}, output=output))
    assert html.count('<mark class="claim"') == 1
    assert ">So it was \\x00 said.</mark>" in html


def test_texts_stay_texts(result: Result) -> None:
    html = page(result)
    assert "It voted to burn the &lt;old&gt; bridge </mark>" in html
    assert "The &lt;b&gt;mayor&lt;/b&gt; resigned." in html
    assert "<b>mayor" not in html
    assert "<old>" not in html
    end = '" onfocus="alert(1)"><script>alert(1)</script>'
    attack = Claim(end, 0.1, place(OUTPUT, "met"), place(SOURCE, "<old>"))
    html = page(run({(end, end): [attack]}))
    assert "<script>alert" not in html
    assert 'aria-description="Support 0.10: “&#34; onfocus=&#34;alert(1)&#34;&gt;' in html
    assert "{&#34;claims" not in html


# The lists.


def test_the_least_supported_claims_of_all_systems_are_first(result: Result) -> None:
    sections = {section.title: section for section in plugins.document(result).sections}
    _, table = sections["Unsupported claims"].blocks
    assert [tuple(cell.text for cell in row[:4]) for row in table.rows] == [
        ("lead", "doc-1", "0.02", "The <b>mayor</b> resigned."),
        ("lead", "doc-1", "0.04", "The vote was at noon."),
        ("lead", "doc-1", "0.12", BURN.text),
        ("システム二", "doc-1", "0.12", BURN.text),
        ("lead", "doc-1", "0.31", MAYOR.text),
        ("lead", "文書2", "0.31", MAYOR.text),
    ]
    assert [row[4].text for row in table.rows][:2] == ["–", "The council met on Monday."]
    assert table.rows[0][1].link == items.link(item="doc-1", system="lead")
    assert has_line(table.key, "6 of 8 claims", "below 0.5")


@pytest.mark.parametrize("full", [False, True])
def test_the_console_has_them_in_80_columns(
    result: Result, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = result.report("console", full=full).splitlines()
    assert max(map(cell_len, lines)) <= 80
    start = next(
        k for k, line in enumerate(lines) if line.split()[:3] == ["system", "item", "support"]
    )
    end = next(
        k for k, line in enumerate(lines) if "have a probability of support below 0.5" in line
    )
    at = lines[start].index("support")
    rows = [line for line in lines[start + 1 : end] if line.strip() and not line.startswith(" ")]
    assert len(rows) == (6 if full else 3)
    for row in rows:
        before, _, _ = row.partition("  0.")
        assert cell_len(before) + 2 == at


def test_markdown_has_them(result: Result) -> None:
    text = plugins.write(plugins.document(result), "markdown")
    assert "### Unsupported claims" in text
    assert f"| lead | doc-1 | 0.31 | {MAYOR.text} | 市議会は橋を直すことを決めた。 |" in text


def test_a_long_list_has_the_number_of_omitted_claims() -> None:
    many = run({(f"i{k:02}", "s"): [BURN] for k in range(57)})
    text = " ".join(many.report("console", full=True).split())
    assert has_line(text, "57 of 57 claims", "below 0.5")
    assert has_line(text, "7 more", "judge report RUN --claims")
    assert "i49" in text
    assert "i50" not in text


def test_the_report_states_that_all_claims_are_supported() -> None:
    text = run({("i", "s"): [CLAIMS[0]]}).report("console", full=True)
    assert has_line(text, "None of 1 claim", "unsupported")


def test_sentences_checked_by_nli_show_too(result: Result) -> None:
    column = replace(COLUMN, name="nli", signature=Signature("nli", "mean"))
    scores = tuple(replace(s, column="nli") for s in result.table.scores if s.column == COLUMN.name)
    table = Table(result.table.samples, (column,), scores)
    html = page(Result(table, item_means(table)))
    assert "Unsupported claims" in html
    assert html.count('<mark class="claim"') == page(result).count('<mark class="claim"') > 0


def test_the_claims_of_each_system_are_counted(result: Result) -> None:
    sections = {section.title: section for section in plugins.document(result).sections}
    counts, _ = sections["Unsupported claims"].blocks
    assert [[cell.text for cell in row] for row in counts.rows] == [
        ["lead", "6", "5", "83%"],
        ["システム二", "2", "1", "50%"],
    ]
    summary = " ".join(result.report("console").split())
    assert has_line(summary, "6 of 8 claims", "lead 5 of 6, システム二 1 of 2.")


def test_the_share_of_unsupported_claims_has_an_interval_from_five_items_on() -> None:
    five = run({(f"i{number}", "s"): CLAIMS[:2] for number in range(5)})
    (count,) = claim_list(five).counts
    assert (count.claims, count.unsupported) == (10, 5)
    assert count.share is not None
    assert (count.share.value, count.share.n) == (0.5, 5)
    assert count.share.low is not None


def test_the_list_of_claims_omits_none() -> None:
    many = run({(f"i{k:02}", "s"): [BURN] for k in range(57)})
    text = plugins.write(plugins.document(claim_list(many)), "console", full=True)
    assert all(f"i{k:02}" in text for k in range(57))
    assert "more: judge report" not in text


def test_csv_json_and_frame_have_every_claim_with_text_verdict_evidence_and_own_columns(
    result: Result,
) -> None:
    samples = tuple(replace(sample, extra={"topic": "town"}) for sample in result.table.samples)
    result = replace(result, table=replace(result.table, samples=samples))
    document = plugins.document(claim_list(result))
    rows = [*csv.DictReader(StringIO(plugins.write(document, "csv")))]
    assert rows[0] == {
        "item": "doc-1", "system": "lead", "column": "claims_precision", "claim": UNPLACED.text,
        "probability": "0.02", "supported": "False", "evidence": "", "topic": "town",
    }  # fmt: skip
    assert [row["column"] for row in rows] == ["claims_precision"] * 8 + ["claims_recall"] * 3
    data = json.loads(plugins.write(document, "json"))
    frame = result.claims_frame()
    assert data["claims"] == frame.to_dict("records")
    assert list(frame.columns) == list(rows[0])
    assert not frame.supported[0]
    assert frame.supported[7]
    assert data["counts"][0]["unsupported"] == 5


def test_the_claims_of_a_run_without_claims_are_an_error() -> None:
    empty = run({("i", "s"): ""})
    with pytest.raises(ConfigError, match="no claims"):
        claim_list(replace(empty, table=replace(empty.table, columns=(), scores=())))


def test_texts_in_which_the_metric_found_no_claim_do_not_lack_the_metric(result: Result) -> None:
    without_claims = replace(result, table=replace(result.table, scores=()))
    with pytest.raises(ConfigError) as caught:
        claim_list(without_claims)
    assert "metric" not in str(caught.value)


def test_an_item_shows_all_its_claims(result: Result) -> None:
    document = plugins.document(item_of(result, "doc-1"))
    text = plugins.write(document, "console", full=True)
    assert "✓ 0.98" in text
    assert "✗ 0.20   The bridge stays.  The council met." in text
    first, second = json.loads(plugins.write(document, "json"))["outputs"]
    assert [claim["probability"] for claim in first["claims"]["claims_precision"]] == [
        0.98,
        0.124,
        0.04,
        0.31,
        0.02,
    ]
    assert second["claims"]["claims_precision"][1] == {
        "text": BURN.text,
        "probability": 0.124,
        "supported": False,
        "span": list(BURN.span or ()),
        "evidence": "It voted to mend the <old> bridge.",
    }
    assert second["claims"]["claims_recall"][0]["text"] == "The bridge stays."


# In a browser.


@pytest.mark.browser
def test_hover_and_focus_show_the_evidence(result: Result, opened: Callable[..., Any]) -> None:
    tab = opened(page(result))
    tab.locator(".item > summary").first.click()
    claims = tab.locator(".item").first.locator(".claim")
    note = "mark => getComputedStyle(mark, '::after').content"
    noon = claims.nth(1)
    assert noon.inner_text() == "at noon"
    assert noon.evaluate(note) == "none"
    claims.nth(0).focus()
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "at noon"
    assert has_line(noon.evaluate(note), "0.04", "“The vote was at noon.”")
    box = claims.nth(0).evaluate("mark => mark.getBoundingClientRect().toJSON()")
    tab.mouse.move(box["x"] + 9, box["y"] + 9)
    assert "Support 0.12" in claims.nth(0).evaluate(note)
    assert noon.evaluate("mark => getComputedStyle(mark, '::after').display") == "none"
    tab.mouse.move(0, 0)
    tab.keyboard.press("Escape")
    assert not claims.nth(0).is_visible()


@pytest.mark.browser
def test_a_tap_on_a_phone_shows_it_within_the_screen(
    result: Result, opened: Callable[..., Any]
) -> None:
    tab = opened(
        page(result), viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    tab.locator(".item > summary").first.tap()
    claim = tab.locator(".item").first.locator(".claim").nth(1)
    claim.evaluate("mark => mark.scrollIntoView({block: 'center', behavior: 'instant'})")
    box = claim.evaluate("mark => mark.getBoundingClientRect().toJSON()")
    tab.touchscreen.tap(box["x"] + 9, box["y"] + 9)
    assert "Support 0.04" in claim.evaluate("mark => getComputedStyle(mark, '::after').content")
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.browser
def test_the_text_is_copied_and_compared_without_the_notes(
    result: Result, opened: Callable[..., Any]
) -> None:
    tab = opened(page(result))
    tab.locator(".item > summary").first.click()
    assert tab.locator("article > .text").first.text_content() == OUTPUT
    tab.emulate_media(media="print")
    ends = tab.locator(".claim").evaluate_all(
        "marks => marks.map(m => getComputedStyle(m, '::after').content)"
    )
    assert ends[:4] == ["none", '" [0.04]"', '" [0.12]"', '" [0.31]"']


def test_the_claims_of_two_metrics_are_listed_apart(result: Result) -> None:
    nli = replace(COLUMN, name="nli", signature=Signature("nli", "threshold=0.5"))
    (first, *_) = result.table.samples
    flood = encode([Claim("There was a flood.", 0.1)])
    score = Score(first.item, first.system, nli.name, 0.0, Provenance("metric", raw=flood))
    table = Table(result.table.samples, (COLUMN, RECALL, nli), (*result.table.scores, score))
    report = Result(table, item_means(table)).report(full=True)
    assert "Unsupported claims, claims_precision" in report
    assert "Unsupported claims, nli" in report
    assert "There was a flood." in report
    assert "at noon." in report


def test_a_text_shows_its_claims_of_each_metric(result: Result) -> None:
    nli = replace(COLUMN, name="nli", signature=Signature("nli", "threshold=0.5"))
    (first, *_) = result.table.samples
    opening = Claim(OUTPUT[:5], 0.1, Span(0, 5))
    score = Score(first.item, first.system, "nli", 0.0, Provenance("metric", raw=encode([opening])))
    table = Table(result.table.samples, (COLUMN, nli), (*result.table.scores, score))
    html = page(Result(table, item_means(table)))
    assert f">{OUTPUT[:5]}</mark>" in html
    assert "1 claim, 1 unsupported (nli)" in html
    assert "unsupported (claims_precision)" in html
