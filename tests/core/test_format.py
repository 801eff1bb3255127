from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core import format


def test_characters_a_terminal_or_page_obeys_are_written_out() -> None:
    assert (
        format.escape_controls("a\x1b[31m\x00b\u202ec\u2066d\ud800\x9f")
        == "a\\x1b[31m\\x00b\\u202ec\\u2066d\\ud800\\x9f"
    )


def test_harmless_text_stays_as_it_is() -> None:
    text = "tab\tline\nend 한국어 日本語 עברית\u200f é 👩‍👩‍👧"
    assert format.escape_controls(text) == text
    assert format.escape_controls("a\r\nb") == "a\nb"


@given(st.text(st.characters()))
def test_clean_text_is_utf8_without_controls_and_stays_clean(text: str) -> None:
    found = format.escape_controls(text)
    found.encode()
    assert format.escape_controls(found) == found
    assert not set(found) & {"\x00", "\x1b", "\x07", "\x9b", "\u202e", "\u2067"}


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [("a\n  b\tc", 0, "a b c"), ("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("abcd efg", 6, "abcd…")],
)
def test_line(text: str, limit: int, expected: str) -> None:
    assert format.one_line(text, limit) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.1, 1.0], 3), ([1.0, 5.0], 2), ([-40.0], 2), ([12345.0], 1), ([], 3), ([math.inf, 3], 2)],
)
def test_decimals_suit_the_size(values: list[float], expected: int) -> None:
    assert format.decimals(values) == expected


@pytest.mark.parametrize(
    ("value", "places", "expected"),
    [(3.14159, 2, "3.14"), (-0.001, 2, "0.00"), (-0.5, 1, "−0.5"), (1234.5, 1, "1234.5")],
)
def test_number(value: float, places: int, expected: str) -> None:
    assert format.number(value, places) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.25, "+0.2"), (-0.25, "−0.2"), (0.0, "0.0"), (0.04, "0.0"), (-0.04, "0.0")]
)
def test_a_difference_has_its_sign_where_it_is_not_0_as_shown(value: float, expected: str) -> None:
    assert format.signed(value, 1) == expected


@pytest.mark.parametrize(("text", "expected"), [("-2", "−2"), ("-.5", "−.5"), ("not-1", "not-1"), ("- a", "- a")])
def test_the_minus_of_a_label_is_one_where_it_is_a_number(text: str, expected: str) -> None:
    assert format.minus(text) == expected


def test_count() -> None:
    assert [format.plural(n, "item") for n in (0, 1, 1600)] == ["0 items", "1 item", "1,600 items"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.84, "0.8~s"), (42.2, "42~s"), (59.6, "1~min 00~s"), (185, "3~min 05~s"), (7830, "2~h 10~min")],
)
def test_seconds_keep_their_unit(value: float, expected: str) -> None:
    assert format.seconds(value) == expected.replace("~", "\u00a0")


@pytest.mark.parametrize(
    ("share", "expected"), [(0.625, "62.5%"), (1, "100.0%"), (-0.0001, "0.0%"), (None, "–"), (0.0, "0.0%")]
)
def test_percent(share: float | None, expected: str) -> None:
    assert format.percent(share) == expected


def test_a_span_has_both_ends_or_is_none() -> None:
    assert format.format_interval(-0.001, 2.5, 2) == "[0.00, 2.50]"
    assert [format.format_interval(None, 1.0, 2), format.format_interval(1.0, None, 2)] == ["", ""]


def test_plain_is_what_strict_json_can_hold() -> None:
    value = {1: math.nan, "b": (math.inf, 1, True, None), "c": {"d": "\ud800日"}, "e": {1}}
    found = format.to_json(value)
    assert found == {"1": None, "b": [None, 1, True, None], "c": {"d": "\ufffd日"}, "e": "{1}"}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
