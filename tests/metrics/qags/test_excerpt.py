"""An excerpt is the part of a text that the generator of questions reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import text
from judge.metrics.qags.excerpts import Excerpt, excerpt

RIVER = "The river rose. A bridge over the river was closed on Monday. The mayor sent people home. Rain is likely."


def at_most(count: int) -> Callable[[Excerpt], bool]:
    return lambda part: len(part.context) <= count


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (200, RIVER),
        (len(RIVER), RIVER),
        (
            len(RIVER) - 1,
            "The river rose. A bridge over the river was closed on Monday. The mayor sent people home.",
        ),
        (88, "A bridge over the river was closed on Monday. The mayor sent people home."),
        (72, "The river rose. A bridge over the river was closed on Monday."),
        (60, "A bridge over the river was closed on Monday."),
        (45, "A bridge over the river was closed on Monday."),
        (40, "over the river was closed on Monday."),
        (25, "was closed on Monday."),
        (6, "closed"),
    ],
)
def test_an_excerpt_has_the_themes_sentence_and_the_neighbours_that_fit(
    room: int, expected: str
) -> None:
    passage = excerpt(RIVER, "closed", at_most(room))
    assert passage is not None
    assert passage.context == expected
    assert passage.marked == "closed"


def test_a_theme_that_does_not_fit_alone_has_no_excerpt() -> None:
    assert excerpt(RIVER, "closed", at_most(5)) is None


@pytest.mark.parametrize(
    ("whole", "theme", "before"),
    [
        ("The party praised art and artists.", "art", "The party praised "),
        ("Only a party came.", "art", "Only a p"),
        ("The mayor spoke. MAYOR", "Mayor", "The "),
        ("交番の隣に喫茶店がある。", "喫茶店", "交番の隣に"),
        ("Costs rose (by 5%).", "5%", "Costs rose (by "),
        ("Nothing of the kind.", "bridge", "Nothing of the kind."),
        ("Nothing of the kind.", "", "Nothing of the kind."),
        ("", "bridge", ""),
    ],
)
def test_a_theme_is_marked_at_its_first_whole_word(whole: str, theme: str, before: str) -> None:
    passage = excerpt(whole, theme, at_most(100))
    assert passage is not None
    assert passage.before == before
    assert passage.context == whole


@given(
    st.text(alphabet="ab .。!字", max_size=60),
    st.text(alphabet="ab 字", max_size=4),
    st.integers(0, 60),
)
def test_an_excerpt_fits_and_contains_the_theme(whole: str, theme: str, room: int) -> None:
    passage = excerpt(whole, theme, at_most(room))
    if passage is None:
        assert room < max(len(theme), 1) or theme not in whole
        return
    assert len(passage.context) <= room
    assert passage.context in whole
    if theme and theme in whole:
        assert passage.marked == theme


@given(st.integers(1, 12), st.integers(0, 11), st.integers(10, 400))
def test_a_sentence_that_fits_is_never_cut(count: int, which: int, room: int) -> None:
    which %= count
    sentences = [f"Here stands sentence{n} with its words." for n in range(count)]
    passage = excerpt(" ".join(sentences), f"sentence{which}", at_most(room))
    if room < len(sentences[which]):
        assert passage is None or passage.context in sentences[which]
    else:
        assert passage is not None
        assert sentences[which] in text.sentences(passage.context)
        assert set(text.sentences(passage.context)) <= set(sentences)
