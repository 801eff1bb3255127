"""Conversations in data. Oracles: the messages as the tests write them, in each form of file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge.core.errors import DataError
from judge.core.records import Sample
from judge.data import samples
from judge.data.conversations import ROLES, messages_before
from tests.factories import write_jsonl

Message = dict[str, Any]
REQUEST: Message = {"role": "user", "content": "Plan a day in Oslo."}
FIRST_ANSWER: Message = {"role": "assistant", "content": "See the opera."}
FOLLOW_UP: Message = {"role": "user", "content": "And if it rains?"}
ANSWER: Message = {"role": "assistant", "content": "Go to the museum."}
CONVERSATION = [REQUEST, FIRST_ANSWER, FOLLOW_UP, ANSWER]
TURNS_BEFORE = (
    ("user", "Plan a day in Oslo."),
    ("assistant", "See the opera."),
    ("user", "And if it rains?"),
)


def load_row(**cells: Any) -> Sample:
    """Return the sample of one row."""
    (sample,) = samples.load([{"item": "trip", "system": "a", **cells}])
    return sample


def load_messages(*messages: Any) -> Sample:
    """Return the sample of one row with these messages."""
    return load_row(messages=list(messages))


def test_the_last_answer_is_the_output_and_the_messages_before_it_are_kept() -> None:
    sample = load_messages(*CONVERSATION)
    assert sample.output == "Go to the museum."
    assert messages_before(sample) == TURNS_BEFORE


def test_an_output_follows_messages_that_end_with_a_request() -> None:
    sample = load_row(messages=CONVERSATION[:3], output="Stay in.")
    assert sample.output == "Stay in."
    assert messages_before(sample) == TURNS_BEFORE


def test_an_output_that_repeats_the_last_answer_counts_once() -> None:
    sample = load_row(messages=CONVERSATION, output=ANSWER["content"])
    assert messages_before(sample) == TURNS_BEFORE


def test_messages_read_the_same_from_every_kind_of_data(tmp_path: Path) -> None:
    rows = [{"item": "trip", "system": "a", "messages": CONVERSATION}]
    frame = pd.DataFrame(rows)
    frame.to_parquet(tmp_path / "chats.parquet")
    packed = pd.DataFrame([{**rows[0], "messages": json.dumps(CONVERSATION)}])
    packed.to_csv(tmp_path / "chats.csv", index=False)
    frame.to_csv(tmp_path / "repr.csv", index=False)  # as Python shows the list
    write_jsonl(tmp_path / "chats.jsonl", rows)
    sources: list[Any] = [frame]
    sources += [tmp_path / name for name in ("chats.parquet", "chats.csv", "repr.csv")]
    sources.append(tmp_path / "chats.jsonl")
    for source in sources:
        (sample,) = samples.load(source)
        assert (sample.output, messages_before(sample)) == ("Go to the museum.", TURNS_BEFORE)


def test_a_mapping_names_the_column_of_the_messages() -> None:
    (sample,) = samples.load([{"chat": CONVERSATION}], mapping={"messages": "chat"})
    assert messages_before(sample) == TURNS_BEFORE


def test_each_system_of_a_wide_row_may_have_its_own_conversation() -> None:
    row = {"item": "trip", "a": CONVERSATION, "b": [REQUEST, ANSWER]}
    first, second = samples.load([row], systems=["a", "b"])
    assert messages_before(first) == TURNS_BEFORE
    assert (second.output, messages_before(second)) == (ANSWER["content"], TURNS_BEFORE[:1])


def test_systems_of_a_wide_row_may_share_the_messages() -> None:
    row = {"item": "trip", "messages": [REQUEST], "a": "See the opera.", "b": "Walk."}
    for sample in samples.load([row], systems=["a", "b"]):
        assert messages_before(sample) == TURNS_BEFORE[:1]


@pytest.mark.parametrize("role", ROLES)
def test_every_role_of_a_message_is_kept(role: str) -> None:
    sample = load_messages({"role": role, "content": "x"}, REQUEST, ANSWER)
    assert messages_before(sample)[0] == (role, "x")


def test_parts_of_text_are_joined_by_line_breaks() -> None:
    parts = [{"type": "text", "text": "One."}, {"type": "output_text", "text": "Two."}]
    assert load_messages(REQUEST, {"role": "assistant", "content": parts}).output == "One.\nTwo."


def test_calls_of_tools_are_shown_as_text() -> None:
    call = {"type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "content": "Rain.", "tool_call_id": "1"}
    sample = load_messages(REQUEST, calling, result, ANSWER)
    assert messages_before(sample)[1:] == (
        ("assistant", 'weather({"city": "Oslo"})'),
        ("tool", "Rain."),
    )


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "human", "content": "x"}, "message 2 of messages: its role is the text 'human'"),
        ({"content": "x"}, "message 2 of messages: its role is null"),
        ("x", "message 2 of messages is the text 'x'"),
        ({"role": "user", "content": 5}, "message 2 of messages: its content is of type int"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
            "message 2 of messages: a part of its content is image_url",
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": None}]},
            "message 2 of messages: a part of its content is text",
        ),
        ({"role": "assistant", "tool_calls": "x"}, "message 2 of messages: tool_calls is"),
    ],
)
def test_a_message_that_cannot_be_read_is_refused_with_its_place(
    message: Any, problem: str
) -> None:
    with pytest.raises(DataError) as error:
        load_messages(REQUEST, message, ANSWER)
    assert str(error.value).startswith(f"row 1: {problem}")


def test_a_conversation_without_an_answer_is_refused() -> None:
    with pytest.raises(DataError, match="row 1: messages ends with a message of the role user"):
        load_messages(*CONVERSATION[:3])


def test_two_different_answers_are_refused() -> None:
    with pytest.raises(DataError, match="row 1: messages ends with an answer, and output is anoth"):
        load_row(messages=CONVERSATION, output="Stay in.")


def test_a_mapped_column_without_a_conversation_is_refused() -> None:
    with pytest.raises(DataError, match="row 1: messages is the text 'hello', not a list"):
        samples.load([{"chat": "hello", "output": "x"}], mapping={"messages": "chat"})


def test_a_column_of_other_texts_called_messages_is_the_datas_own() -> None:
    sample = load_row(messages="three", output="x")
    assert sample.extra == {"messages": "three"}
    assert messages_before(sample) == ()
