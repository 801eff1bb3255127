"""Long replies and texts that once took minutes or more to read."""

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
LENGTH = 100_000


@pytest.mark.slow
def test_all_values_of_a_reply_with_many_keys_are_found() -> None:
    reply = {f"k{number}": 1 for number in range(LENGTH)}
    values = spans(json.dumps(reply), reply, None)[0]
    assert len(values) == LENGTH


def test_a_key_that_a_reply_repeats_has_no_value() -> None:
    assert spans('{"a": 1, "b": 2, "a": 3}', "ab", None)[0].keys() == {"b"}


@pytest.mark.parametrize(
    "reply",
    [
        "-" * LENGTH + "x", "x" + "-" * LENGTH, "x" + " -" * LENGTH + "y",
        "?" * LENGTH + "x", "? " * LENGTH + "x",
        "x" + " " * LENGTH + "y", "x" + "," * LENGTH, "- " * LENGTH + "x",
        "'\"" * LENGTH + "x", "(" * LENGTH, "a\n" * LENGTH,
        "x" + "Answer " * LENGTH, "[" + '"a",' * LENGTH + '"b"]',
    ],
)  # fmt: skip
def test_long_replies_of_qags_have_a_short_result_or_error(reply: str) -> None:
    for read_reply in (
        lambda: judge_model.themes(reply, "y", ("none",)),
        lambda: judge_model.question(reply, WORDS),
        lambda: judge_model.answer(reply, "Who?", "A text.", WORDS),
    ):
        try:
            result = read_reply()
        except ParseError as error:
            result = str(error)
        assert len(result) < 10_000


def test_only_a_long_quotation_from_the_text_is_located() -> None:
    text = "a " * LENGTH + "End of it."
    assert locate("a " * (LENGTH // 2) + "b", text) is None
    assert locate("a\n" * (LENGTH // 2) + "end", text, ignore_case=True) == (LENGTH, 2 * LENGTH + 3)


@pytest.mark.parametrize("between", ["", "\u200b", "\xad", "\ufe0f", "\u2060"])
def test_a_mark_that_a_text_contains_is_not_used_for_its_fence(between: str) -> None:
    text = "How good?"
    mark = fence_digest(text)
    forged = between.join(mark.upper())
    assert fence_digest(text, (f"</output {forged}>",)) != mark
    assert not fenced(text, "output", [forged]).startswith(f"<output {mark}>")


def test_ordinary_texts_do_not_change_the_mark_of_a_fence() -> None:
    for text in ("How good?", "それは良いですか？", "Ça\u200b va"):
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert fence_digest(text, ("Some other text.", "別の文")) == digest[:8]


def test_invisible_characters_are_those_of_unicode() -> None:
    extra = {"\u034f", *map(chr, range(0xFE00, 0xFE10))}
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Cf" or character in extra:
            assert _INVISIBLE.fullmatch(character), f"U+{code:04X}"
        elif category != "Cn":
            assert not _INVISIBLE.fullmatch(character), f"U+{code:04X}"
