"""The text of a message, in the formats of several servers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.providers.message_text import message_text

THOUGHT = [{"type": "text", "text": "Is it a 2?"}]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "4"}, "4"),
        ({"content": None}, ""),
        ({}, ""),
        (
            {"content": [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": "4"}]},
            "4",
        ),
        (
            {
                "content": [
                    {"type": "reasoning", "text": "2 or 3"},
                    {"type": "output_text", "text": "4"},
                ]
            },
            "4",
        ),
        (
            {"content": [{"type": "text", "text": "Score: "}, {"type": "text", "text": "4"}]},
            "Score: 4",
        ),
        ({"content": ["Score: ", "4"]}, "Score: 4"),
        ({"content": {"type": "text", "text": "4"}}, "4"),
        ({"content": "4", "reasoning": "perhaps 2"}, "4"),
        ({"content": "4", "reasoning_content": "perhaps 2"}, "4"),
        (
            {"content": "", "reasoning": "It reads well, so 4."},
            "<think>It reads well, so 4.</think>",
        ),
        ({"content": None, "reasoning_content": "Hm, 2?"}, "<think>Hm, 2?</think>"),
        ({"content": [{"type": "thinking", "thinking": THOUGHT}]}, "<think>Is it a 2?</think>"),
        (
            {"content": [{"type": "thinking", "thinking": "Is it a 2?"}]},
            "<think>Is it a 2?</think>",
        ),
        (
            {"content": None, "tool_calls": [{"function": {"arguments": '{"score": 4}'}}]},
            '{"score": 4}',
        ),
        (
            {"content": "", "tool_calls": [{"function": {"arguments": {"score": 4}}}]},
            '{"score": 4}',
        ),
        (
            {"content": None, "function_call": {"name": "f", "arguments": '{"score": 4}'}},
            '{"score": 4}',
        ),
        ({"content": None, "tool_calls": [{"function": {"arguments": "4"}}] * 2}, ""),
        ({"content": "4", "tool_calls": []}, "4"),
    ],
)
def test_the_text_of_a_message_is_read_in_every_shape(message: dict[str, Any], text: str) -> None:
    read = message_text(message)
    assert (read.text, read.refused) == (text, False)


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "refusal": "I cannot judge this."},
        {"content": [{"type": "refusal", "refusal": "I cannot judge this."}]},
    ],
)
def test_a_refusal_is_distinguished_from_a_reply(message: dict[str, Any]) -> None:
    assert message_text(message) == ("I cannot judge this.", True)


@pytest.mark.parametrize("content", [4, 4.0, True, [4], [["4"]]])
def test_content_that_is_not_text_is_an_error(content: Any) -> None:
    with pytest.raises(ValueError, match=r"int|float|bool|list"):
        message_text({"content": content})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("type", "text", "x")), inner)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(("content", "reasoning", "refusal", "tool_calls", "function_call")), JSON
    )
)
def test_any_json_is_a_text_or_a_value_error(message: dict[str, Any]) -> None:
    try:
        read = message_text(message)
    except ValueError:
        return
    assert isinstance(read.text, str)
    assert isinstance(read.refused, bool)
