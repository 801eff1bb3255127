"""Fragments and the nearest sentence. Oracles: the algorithm of Grusky et al. 2018, figure 3, and numbers by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.metrics.text_features import IndexedSource, Sentences

WORDS = st.lists(st.sampled_from("abcd"), max_size=14)


def figure_3(article: list[str], summary: list[str]) -> list[list[str]]:
    """Return F(A, S), as the figure computes it line by line. Indices start at 0."""
    fragments: list[list[str]] = []
    i = j = 0
    while i < len(summary):
        fragment: list[str] = []
        while j < len(article):
            if summary[i] == article[j]:
                i_, j_ = i, j
                while i_ < len(summary) and j_ < len(article) and summary[i_] == article[j_]:
                    i_, j_ = i_ + 1, j_ + 1
                if len(fragment) < i_ - i:
                    fragment = summary[i:i_]
                j = j_
            else:
                j += 1
        i, j = i + max(len(fragment), 1), 0
        if fragment:
            fragments.append(fragment)
    return fragments


def indexed(words: list[str]) -> IndexedSource:
    return IndexedSource(" ".join(words), "en")


@given(WORDS, WORDS)
def test_fragments_equal_figure_3_of_the_paper(article: list[str], summary: list[str]) -> None:
    source = indexed(article)
    fragments = source.fragments(summary)
    assert [article[start : start + size] for start, size in fragments] == figure_3(
        article, summary
    )


@pytest.mark.parametrize(
    ("article", "summary", "expected"),
    [
        ("a b c d", "c d a b c", [(2, 2), (0, 3)]),
        ("a b x a b c", "a b c", [(3, 3)]),  # the longest, not the first
        ("a b x a b", "a b", [(0, 2)]),  # the first of two
        ("a b", "x y", []),
        # The algorithm continues behind a match, and so misses a longer one that begins inside it.
        ("a a a b", "a a b", [(0, 2), (3, 1)]),
    ],
)
def test_fragments_by_hand(article: str, summary: str, expected: list[tuple[int, int]]) -> None:
    assert indexed(article.split()).fragments(summary.split()) == expected


def test_nearest_is_the_best_f1_of_distinct_words() -> None:
    source = IndexedSource("The red boat sailed. The blue boat sank at noon.", "en")
    assert source.nearest(["the", "blue", "boat", "boat"]) == 2 * 3 / (3 + 6)
    assert source.nearest(["the", "red", "boat"]) == 2 * 3 / (3 + 4)
    assert source.nearest(["noon", "at", "sank", "boat", "blue", "the"]) == 1
    assert source.nearest(["green"]) == 0


def test_line_breaks_and_full_stops_end_sentences() -> None:
    sentences = Sentences.from_text("First point. Second one!\n\nA third\n***\n", "en")
    assert sentences.raw == ("First point.", "Second one!", "A third")
    assert sentences.words == ["first", "point", "second", "one", "a", "third"]
