"""Lines end between words. Oracle: the text itself, put together again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.line_breaks import longest_piece, pieces, wrapped

NAMES = st.text("ab1-_/. 日、", max_size=30)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("gpt-5.4-mini-2026", "gpt- 5.4- mini- 2026"),
        ("textrank_baseline", "textrank_ baseline"),
        ("org/llama_3-8b.gguf", "org/ llama_ 3- 8b. gguf"),
        ("-1 and −0.35", "-1 and −0.35"),
        ("日本語。v2", "日 本 語。 v2"),
        ("요약-모델", "요약- 모델"),
        ("bleu|case=mixed|tok=13a", "bleu| case=mixed| tok=13a"),
        ("e.g... -- x", "e. g... -- x"),
    ],
)
def test_a_line_may_end_after_these_pieces(text: str, parts: str) -> None:
    assert [piece.strip() for piece in pieces(text)] == parts.split()


def test_a_line_ends_at_a_space_if_the_next_name_then_fits() -> None:
    assert wrapped("polite · textrank_baseline", 18) == ["polite ·", "textrank_baseline"]
    assert wrapped("polite · textrank_baseline", 16) == ["polite ·", "textrank_", "baseline"]


@given(NAMES)
def test_pieces_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


@given(NAMES, st.integers(1, 12))
def test_lines_fit_and_have_all_letters(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(NAMES)
def test_no_word_is_broken_if_the_longest_fits(text: str) -> None:
    width = max(1, longest_piece(text))
    ends = {0}
    length = 0
    for piece in pieces(text):
        length += len("".join(piece.split()))
        ends.add(length)
    length = 0
    for line in wrapped(text, width):
        length += len("".join(line.split()))
        assert length in ends
