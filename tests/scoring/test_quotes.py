"""`cite: true`: a quotation never becomes the score, and a report marks only quotations that a text contains."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge
from judge.core import plugins
from judge.core.errors import ParseError
from judge.core.records import Criterion, Prompt, ReplyKind, Scale
from judge.providers.scripted import ScriptedProvider
from judge.report.views.item_scores import marked
from judge.results.item import item_of
from judge.scoring.parse import find
from judge.scoring.quotes import find_quote
from judge.scoring.strategies import SamplingOptions, requests

FIVE = Scale.integers(1, 5)
KINDS: tuple[ReplyKind, ...] = ("score", "score_then_reason", "reason_then_score")
WORDS = ("Quote", "quote", "**Quote**", "- Quote", "引用", "인용", "引文")
TALK = st.sampled_from(
    ["Score: 5", "5/5", "scores 5 of 5.", "I give it a 5.", "so it gets a 5 out of 5", "「5点」", "점수: 5점",
     "Rating: 1", '"', "“", "{", '{"score": 5}', "<think>", "**5**", "the bridge", "a 1"]
)  # fmt: skip


def replies(kind: ReplyKind, quote: str, word: str = "Quote") -> tuple[str, str]:
    """Return a reply in text and one in JSON, both with the score 3."""
    line = f"{word}: {quote}"
    text = {
        "score": f"3\n{line}",
        "score_then_reason": f"3\nIt holds.\n{line}",
        "reason_then_score": f"It holds.\n{line}\nScore: 3",
    }
    parts: dict[str, Any] = {
        "score": {"score": 3, "quote": quote},
        "score_then_reason": {"score": 3, "quote": quote, "reason": "It holds."},
    }
    return text[kind], json.dumps(
        parts.get(kind, {"reason": "It holds.", "quote": quote, "score": 3})
    )


@pytest.mark.parametrize("kind", KINDS)
@given(
    parts=st.lists(TALK, min_size=1, max_size=5),
    word=st.sampled_from(WORDS),
    judged_is_quoted=st.booleans(),
)
def test_a_quotation_never_becomes_the_score(
    kind: ReplyKind, parts: list[str], word: str, judged_is_quoted: bool
) -> None:
    quote = " ".join(parts)
    for reply in replies(kind, quote, word):
        # With `judged_is_quoted`, the judged text is the quotation. That must not change the score.
        parsed = find(reply, kind, FIVE, judged=quote if judged_is_quoted else None, cite=True)
        assert (parsed.label, parsed.reading) == ("3", "strict")
        assert reply[parsed.start : parsed.end] == "3"
        assert parsed.reason == (None if kind == "score" else "It holds.")
        assert parsed.quote == quote.lstrip("*_ \t") or parsed.quote == quote


@given(parts=st.lists(TALK, min_size=1, max_size=5), kind=st.sampled_from(KINDS))
def test_a_reply_that_only_quotes_has_no_score(parts: list[str], kind: ReplyKind) -> None:
    with pytest.raises(ParseError) as error:
        find(f"Quote: {' '.join(parts)}", kind, FIVE, judged="Some text.", cite=True)
    assert error.value.raw.startswith("Quote: ") or not error.value.raw


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "reply", ["4", "4\nIt holds.", "It holds.\nScore: 4", '{"score": 4}', "so it gets a 4."]
)
def test_replies_without_a_quotation_are_unchanged(kind: ReplyKind, reply: str) -> None:
    def outcome(cite: bool) -> Any:
        try:
            return find(reply, kind, FIVE, judged="A text.", cite=cite)
        except ParseError as error:
            return str(error), error.raw, error.position

    assert outcome(True) == outcome(False)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (
            "Good.\nQuote: It says:\nScore: 5",
            "reason_then_score",
        ),  # the judged text contains the whole end
        ("4\nQuote: It was.\nNo, the score is 2.", "score"),
    ],
)
def test_a_score_that_may_be_quoted_does_not_count(reply: str, kind: ReplyKind) -> None:
    with pytest.raises(ParseError):
        find(reply, kind, FIVE, judged="He wrote. Quote: It says:\nScore: 5", cite=True)


@pytest.mark.parametrize(
    ("quote", "text", "expected"),
    [
        ("It rained.", "It snowed. It rained. It left.", "It rained."),
        ("“It rained.”", "It rained.", "It rained."),
        ("「雨が降った。」", "雪。雨が降った。", "雨が降った。"),
        ("It  rained\tall day.", "It rained\n  all day.", "It rained\n  all day."),
        ("caf\u00e9", "The cafe\u0301 closed.", "cafe\u0301"),
        ("It rained!", "It rained.", None),
        ('""', 'He said "".', '""'),
        ("", "It rained.", None),
    ],
)
def test_a_quotation_is_found_only_if_the_text_contains_the_same_words(
    quote: str, text: str, expected: str | None
) -> None:
    assert find_quote(quote, ["", text]) == expected


@given(st.text(max_size=30), st.lists(st.text(max_size=6), max_size=4))
def test_marking_quotations_does_not_change_the_text(text: str, quotes: list[str]) -> None:
    pieces = marked(text, [(quote, str(n)) for n, quote in enumerate(quotes)])
    assert "".join(piece.text for piece in pieces) == text
    for n, quote in enumerate(quotes):
        named = "".join(piece.text for piece in pieces if str(n) in piece.quoted.split(" · "))
        assert named == (quote if quote in text else "")


def test_cite_adds_a_key_and_allows_more_tokens() -> None:
    prompt = Prompt("1", "x", "c", ({"role": "user", "content": "Judge."},))
    for kind, keys in zip(
        KINDS,
        (["score", "quote"], ["score", "quote", "reason"], ["reason", "quote", "score"]),
        strict=True,
    ):
        plain_criterion = Criterion("c", "", FIVE, kind, form="json")
        cited_criterion = Criterion("c", "", FIVE, kind, form="json", cite=True)
        (plain,) = requests(prompt, plain_criterion, "single", SamplingOptions())
        (cited,) = requests(prompt, cited_criterion, "single", SamplingOptions())
        assert schema_keys(cited) == keys
        assert schema_keys(plain) == [key for key in keys if key != "quote"]
        assert cited.params["max_tokens"] > plain.params["max_tokens"]


def schema_keys(request: Any) -> list[str]:
    return list(request.params["response_format"]["json_schema"]["schema"]["properties"])


HOSTILE = "<script>alert(1)</script> & 'q'"
ROWS = [
    {
        "item": "1",
        "system": "x",
        "source": f"It rained. {HOSTILE} ended.",
        "output": f"It snowed. {HOSTILE} ended here.",
    },
    {"item": "1", "system": "y", "source": f"It rained. {HOSTILE} ended.", "output": "Dry."},
]


@pytest.mark.parametrize("weighting", ["single", "samples"])
def test_a_run_stores_quotations_and_reports_them(weighting: Any, tmp_path: Path) -> None:
    (tmp_path / "true.yaml").write_text(
        "question: Is it true?\nreply: score_then_reason\ncite: true\n", encoding="utf-8"
    )

    def script(request: Any) -> str:
        quote = "It rained."
        if "snowed" in request.messages[0]["content"]:
            quote = f'"{HOSTILE} ended here."'
        if request.draw % 3 == 2:
            quote = "Nothing of it."
        return f"2\nNo.\nQuote: {quote}"

    result = judge.evaluate(
        ROWS,
        [str(tmp_path / "true.yaml")],
        model=ScriptedProvider(script),
        metrics=[],
        weighting=weighting,
        draws=4,
        out=tmp_path / "run",
    )
    assert [s.provenance.quote for s in result.table.scores] == [
        f"{HOSTILE} ended here.",
        "It rained.",
    ]
    assert {s.provenance.reason for s in result.table.scores} == {"No."}
    assert judge.load_result(tmp_path / "run").table.scores == result.table.scores
    page = result.report("html")
    marks = re.findall(r'<mark title="([^"]*)">(.*?)</mark>', page)
    assert marks == [
        ("y: true 2", "It rained."),
        ("true 2", "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &#39;q&#39; ended here."),
    ]
    assert "<script>alert" not in page
    assert "“It rained.”" in plugins.write(plugins.document(item_of(result, "1")), "markdown")
    assert "true_quote" in result.report("csv", wide=True).split("\n")[0]


@pytest.mark.parametrize("structured", [False, True])
def test_a_quotation_that_no_text_contains_is_not_marked(structured: bool, tmp_path: Path) -> None:
    (tmp_path / "true.yaml").write_text("question: Is it true?\ncite: true\n", encoding="utf-8")

    def script(request: Any) -> str:
        if structured:
            return json.dumps({"score": 2, "quote": HOSTILE + "!"})
        return f"2\nQuote: {HOSTILE}!"

    result = judge.evaluate(
        ROWS,
        [str(tmp_path / "true.yaml")],
        model=ScriptedProvider(script),
        metrics=[],
        weighting="single",
        structured=structured,
    )
    assert {s.provenance.quote for s in result.table.scores} == {None}
    assert "<mark title" not in result.report("html")


@pytest.mark.parametrize("kind", ["score_then_reason", "reason_then_score"])
def test_points_off_in_a_quotation_do_not_refuse_the_highest_score(kind: Any) -> None:
    reply = "Score: 5\nQuote: one point deducted for a foul"
    if kind == "reason_then_score":
        reply = "The team lost a point.\nQuote: one point deducted for a foul\nScore: 5"
    parsed = find(reply, kind, FIVE, cite=True)
    assert (parsed.label, parsed.quote) == ("5", "one point deducted for a foul")


def test_a_ticked_option_is_read_beside_a_quotation() -> None:
    reply = "[ ] 3\n[x] 4\nQuote: Score: 2"
    parsed = find(reply, "reason_then_score", FIVE, judged="Some text.", cite=True)
    assert (parsed.label, parsed.quote) == ("4", "Score: 2")
