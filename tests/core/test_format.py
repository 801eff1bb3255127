from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core import format


def test_characters_a_terminal_or_page_obeys_are_written_out() -> None:
    assert (
        format.escape_controls("a\x1b[31m\x00b\u202ec\u2066d\ud800\x9f")
        == "a\\x1b[31m\\x00b\\u202ec\\u2066d\\ud800\\x9f"
    )


def test_harmless_text_is_unchanged() -> None:
    text = "tab\tline\nend 한국어 日本語 עברית\u200f é 👩‍👩‍👧"
    assert format.escape_controls(text) == text
    assert format.escape_controls("a\r\nb") == "a\nb"


@given(st.text(st.characters()))
def test_clean_text_is_utf8_without_controls_and_stays_clean(text: str) -> None:
    cleaned = format.escape_controls(text)
    cleaned.encode()
    assert format.escape_controls(cleaned) == cleaned
    assert not set(cleaned) & {"\x00", "\x1b", "\x07", "\x9b", "\u202e", "\u2067"}


@pytest.mark.parametrize(
    ("show", "cases"),
    [
        (
            format.one_line,
            {("a\n  b\tc", 0): "a b c", ("abcdef", 6): "abcdef", ("abcdefg", 6): "abcde…"},
        ),
        (format.one_line, {("abcd efg", 6): "abcd…"}),
        (
            format.decimals,
            {((0.1, 1.0),): 3, ((1.0, 5.0),): 2, ((-40.0,),): 2, ((12345.0,),): 1, ((),): 3},
        ),
        (format.decimals, {((math.inf, 3),): 2}),
        (
            format.number,
            {(3.14159, 2): "3.14", (-0.001, 2): "0.00", (-0.5, 1): "−0.5", (1234.5, 1): "1234.5"},
        ),
        (
            format.signed,
            {
                (0.25, 1): "+0.2",
                (-0.25, 1): "−0.2",
                (0.0, 1): "0.0",
                (0.04, 1): "0.0",
                (-0.04, 1): "0.0",
            },
        ),
        (format.minus, {("-2",): "−2", ("-.5",): "−.5", ("not-1",): "not-1", ("- a",): "- a"}),
        (
            format.plural,
            {(0, "item"): "0 items", (1, "item"): "1 item", (1600, "item"): "1,600 items"},
        ),
        (
            format.exact_duration,
            {(0.84,): "0.8\u00a0s", (42.2,): "42\u00a0s", (59.6,): "1\u00a0min 00\u00a0s"},
        ),
        (format.exact_duration, {(185,): "3\u00a0min 05\u00a0s", (7830,): "2\u00a0h 10\u00a0min"}),
        (
            format.percent,
            {(0.625,): "62.5%", (1,): "100.0%", (-0.0001,): "0.0%", (None,): "–", (0.0,): "0.0%"},
        ),
        (
            format.whole_percent,
            {
                (0.645,): "64%",
                (1.0,): "100%",
                (0.0,): "0%",
                (199 / 200,): "99.5%",
                (1 / 300,): "0.3%",
                (9999 / 10000,): "99.99%",
                (1 - 1e-9,): "100%",
            },
        ),
        (
            format.format_p,
            {
                (0.0001,): "p < 0.001",
                (0.012,): "p = 0.012",
                (0.0498,): "p = 0.0498",
                (0.04999,): "p = 0.04999",
                (0.05,): "p = 0.050",
                (0.0502,): "p = 0.050",
            },
        ),
        (
            format.format_interval,
            {
                (-0.001, 2.5, 2): "[0.00, 2.50]",
                (None, 1.0, 2): "",
                (1.0, None, 2): "",
                (0.508, 0.512, 0, 100): "[50.8, 51.2]",
                (3.0, 3.0, 1): "[3.0, 3.0]",
                (3.0, 3.0000001, 1): "[3.0000, 3.0000]",
            },
        ),
    ],
)
def test_how_a_value_is_shown(show: Any, cases: dict[Any, Any]) -> None:
    assert {arguments: show(*arguments) for arguments in cases} == cases


def test_to_json_returns_strict_json_values() -> None:
    value = {1: math.nan, "b": (math.inf, 1, True, None), "c": {"d": "\ud800日"}, "e": {1}}
    converted = format.to_json(value)
    assert converted == {"1": None, "b": [None, 1, True, None], "c": {"d": "\ufffd日"}, "e": "{1}"}
    assert json.loads(json.dumps(converted, allow_nan=False)) == converted
