"""Replies and texts made to take time: each of these took minutes or more once."""

from __future__ import annotations

import hashlib
import json
import sys
import unicodedata

import pytest

from judge.core.errors import ParseError
from judge.criteria.sandbox import _INVISIBLE, fence_digest, fenced
from judge.metrics.qags import judge_model
from judge.scoring.json_scores import spans
from judge.scoring.quotes import locate

WORDS = {
    "labels": ("Answer", "A"), "refusals": ("I cannot",), "unanswerable": ("unanswerable",), "declines": ("not said",)
}  # fmt: skip
N = 100_000


@pytest.mark.slow
def test_a_reply_with_many_keys() -> None:
    values = spans(json.dumps(keys := {f"k{n}": 1 for n in range(N)}), keys, None)[0]
    assert len(values) == N
    assert spans('{"a": 1, "b": 2, "a": 3}', "ab", None)[0].keys() == {"b"}


@pytest.mark.parametrize(
    "reply",
    [
        "-" * N + "x", "x" + "-" * N, "x" + " -" * N + "y", "?" * N + "x", "? " * N + "x", "x" + " " * N + "y",
        "x" + "," * N, "- " * N + "x", "'\"" * N + "x", "x" + "Answer " * N, "(" * N, "a\n" * N,
        "[" + '"a",' * N + '"b"]',
    ],
)  # fmt: skip
def test_replies_of_qags(reply: str) -> None:
    for read in (
        lambda: judge_model.themes(reply, "y", ("none",)),
        lambda: judge_model.question(reply, WORDS),
        lambda: judge_model.answer(reply, "Who?", "A text.", WORDS),
    ):
        try:
            result = read()
        except ParseError as error:
            result = str(error)
        assert len(result) < 10_000


def test_a_long_quotation() -> None:
    text = "a " * N + "End of it."
    assert locate("a " * (N // 2) + "b", text) is None
    assert locate("a\n" * (N // 2) + "end", text, ignore_case=True) == (N, 2 * N + 3)


@pytest.mark.parametrize("between", ["", "\u200b", "\xad", "\ufe0f", "\u2060"])
def test_fence_mark_changes_if_a_text_contains_it(between: str) -> None:
    text = "How good?"
    mark = fence_digest(text)
    forged = between.join(mark.upper())
    assert fence_digest(text, (f"</output {forged}>",)) != mark
    assert not fenced(text, "output", [forged]).startswith(f"<output {mark}>")


def test_ordinary_texts_keep_their_keys() -> None:
    for text in ("How good?", "それは良いですか？", "Ça\u200b va"):
        assert (
            fence_digest(text, ("Some other text.", "別の文"))
            == hashlib.sha256(text.encode()).hexdigest()[:8]
        )


def test_invisible_characters_match_unicode() -> None:
    extra = {"\u034f", *map(chr, range(0xFE00, 0xFE10))}
    for code in range(sys.maxunicode + 1):
        one = chr(code)
        if unicodedata.category(one) == "Cf" or one in extra:
            assert _INVISIBLE.fullmatch(one), f"U+{code:04X}"
        elif unicodedata.category(one) != "Cn":
            assert not _INVISIBLE.fullmatch(one), f"U+{code:04X}"
