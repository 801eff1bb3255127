"""Windows over long texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judge.metrics.bertscore.embedder import Window, windows


def test_what_fits_is_one_window() -> None:
    assert windows(8, 8) == [Window(0, 8, 0, 8)]
    assert windows(0, 8) == [Window(0, 0, 0, 0)]


def test_a_longer_text_is_read_in_overlapping_windows() -> None:
    assert windows(10, 4) == [Window(0, 4, 0, 3), Window(2, 6, 3, 5), Window(4, 8, 5, 7), Window(6, 10, 7, 10)]


@given(st.integers(0, 300), st.integers(1, 40))
def test_each_token_is_taken_once_from_the_window_whose_middle_is_nearest(count: int, size: int) -> None:
    made = windows(count, size)
    assert all(w.stop - w.start == min(size, count) and w.start >= 0 and w.stop <= count for w in made)
    owners = [place for place, w in enumerate(made) for _ in range(w.first, w.last)]
    assert len(owners) == count
    assert [t for w in made for t in range(w.first, w.last)] == list(range(count))
    for token, owner in enumerate(owners):
        far = [abs(token + 0.5 - (w.start + w.stop) / 2) for w in made]
        assert far[owner] == min(far)
