"""Conversations in data. Oracle: the messages that the tests write in each file format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from judge.core.errors import DataError
from judge.core.records import Sample
from judge.data import samples
from judge.data.conversations import ROLES, messages_before
from tests.factories import has_line, write_jsonl

Message = dict[str, Any]
REQUEST: Message = {"role": "user", "content": "Plan a day in Oslo."}
FIRST_ANSWER: Message = {"role": "assistant", "content": "See the opera."}
FOLLOW_UP: Message = {"role": "user", "content": "And if it rains?"}
ANSWER: Message = {"role": "assistant", "content": "Go to the museum."}
CONVERSATION = [REQUEST, FIRST_ANSWER, FOLLOW_UP, ANSWER]
SECOND = "message 2 of messages"
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


def test_the_last_answer_is_the_output_and_earlier_messages_come_before() -> None:
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


def test_messages_are_read_equally_from_every_kind_of_data(tmp_path: Path) -> None:
    rows = [{"item": "trip", "system": "a", "messages": CONVERSATION}]
    frame = pd.DataFrame(rows)
    frame.to_parquet(tmp_path / "chats.parquet")
    packed = pd.DataFrame([{**rows[0], "messages": json.dumps(CONVERSATION)}])
    packed.to_csv(tmp_path / "chats.csv", index=False)
    frame.to_csv(tmp_path / "repr.csv", index=False)  # the list as written by repr
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


def test_systems_of_a_wide_row_may_have_different_conversations() -> None:
    row = {"item": "trip", "a": CONVERSATION, "b": [REQUEST, ANSWER]}
    first, second = samples.load([row], systems=["a", "b"])
    assert messages_before(first) == TURNS_BEFORE
    assert (second.output, messages_before(second)) == (ANSWER["content"], TURNS_BEFORE[:1])


def test_systems_of_a_wide_row_may_share_the_messages() -> None:
    row = {"item": "trip", "messages": [REQUEST], "a": "See the opera.", "b": "Walk."}
    for sample in samples.load([row], systems=["a", "b"]):
        assert messages_before(sample) == TURNS_BEFORE[:1]


@pytest.mark.parametrize("role", ROLES)
def test_a_message_may_have_any_known_role(role: str) -> None:
    sample = load_messages({"role": role, "content": "x"}, REQUEST, ANSWER)
    assert messages_before(sample)[0] == (role, "x")


def test_a_role_may_be_capitalized() -> None:
    assert load_messages({"role": "User", "content": "x"}, ANSWER).output == ANSWER["content"]


def test_parts_of_text_are_joined_by_line_breaks() -> None:
    parts = [{"type": "text", "text": "One."}, {"type": "output_text", "text": "Two."}]
    assert load_messages(REQUEST, {"role": "assistant", "content": parts}).output == "One.\nTwo."


def test_tool_calls_are_read_as_text() -> None:
    call = {"type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "content": "Rain.", "tool_call_id": "1"}
    sample = load_messages(REQUEST, calling, result, ANSWER)
    assert messages_before(sample)[1:] == (
        ("assistant", 'weather({"city": "Oslo"})'),
        ("tool", "Rain."),
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": ["One.", {"type": "text", "text": "Two."}]}, "One.\nTwo."),
        ({"content": None, "refusal": "I cannot."}, "I cannot."),
        ({"content": "One.", "refusal": None, "tool_calls": None}, "One."),
        ({"content": "One.", "tool_calls": float("nan")}, "One."),
        ({"content": ""}, ""),
        ({"tool_calls": [{"function": {"name": "now", "arguments": None}}]}, "now()"),
        ({"tool_calls": [{"type": "custom", "custom": {"name": "f", "input": "x"}}]}, "f(x)"),
        ({"function_call": {"name": "now", "arguments": "{}"}}, "now({})"),
    ],
)
def test_an_answer_is_read_from_any_form_of_message(message: Message, text: str) -> None:
    assert load_messages(REQUEST, {"role": "assistant", **message}).output == text


def test_arrays_inside_arrays_are_read_as_lists(tmp_path: Path) -> None:
    part = {"type": "text", "text": "Go to the museum."}
    call = {"function": {"name": "weather", "arguments": "{}"}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = {"role": "assistant", "content": [part], "tool_calls": None}
    row = {"item": "trip", "system": "a", "messages": [calling, answer]}
    pd.DataFrame([row]).to_parquet(tmp_path / "chats.parquet")
    (sample,) = samples.load(pd.read_parquet(tmp_path / "chats.parquet"))
    assert (messages_before(sample), sample.output) == (
        (("assistant", "weather({})"),),
        "Go to the museum.",
    )


def test_messages_as_json_are_read_from_a_jsonl_file(tmp_path: Path) -> None:
    row = {"item": "trip", "system": "a", "messages": json.dumps(CONVERSATION)}
    (sample,) = samples.load(write_jsonl(tmp_path / "chats.jsonl", [row]))
    assert (sample.output, messages_before(sample)) == ("Go to the museum.", TURNS_BEFORE)


def test_columns_of_systems_in_a_csv_file_may_be_conversations(tmp_path: Path) -> None:
    row = {"item": "trip", "a": json.dumps(CONVERSATION), "b": '["a list", "is a text"]'}
    pd.DataFrame([row]).to_csv(tmp_path / "wide.csv", index=False)
    first, second = samples.load(tmp_path / "wide.csv", systems=["a", "b"])
    assert (first.output, messages_before(first)) == ("Go to the museum.", TURNS_BEFORE)
    assert second.output == row["b"]


def test_a_message_that_cannot_be_read_names_the_column_of_its_system() -> None:
    row = {"item": "trip", "a": "Walk.", "b": [{"role": "human", "content": "x"}]}
    with pytest.raises(DataError, match=r"row 1: message 1 of b: .*role"):
        samples.load([row], systems=["a", "b"])


@pytest.mark.parametrize("cell", ["three", 3, [["x"]], {"role": "user"}, [{"from": "human"}]])
def test_messages_without_a_conversation_or_an_output_are_an_error(cell: Any) -> None:
    with pytest.raises(DataError, match=r"row 1: messages is .*list of objects"):
        load_row(messages=cell)


def test_a_mapped_column_may_be_empty_beside_an_output() -> None:
    rows = [{"chat": cell, "output": "x"} for cell in (None, "", [], CONVERSATION[:3])]
    read = samples.load(rows, mapping={"messages": "chat"})
    assert [len(messages_before(sample)) for sample in read] == [0, 0, 0, 3]


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        ({"role": "human", "content": "x"}, (SECOND, "role", "'human'")),
        ({"content": "x"}, (SECOND, "role", "null")),
        ("x", (SECOND, "'x'")),
        ({"role": "user", "content": 5}, (SECOND, "content", "int")),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
            (SECOND, "part of its content", "image_url"),
        ),
        (
            {"role": "user", "content": [{"type": "text", "text": None}]},
            (SECOND, "part of its content", "text"),
        ),
        ({"role": "assistant", "tool_calls": "x"}, (SECOND, "tool_calls")),
        (
            {"role": np.array(["user", "tool"]), "content": "x"},
            (SECOND, "role"),
        ),
        ({"role": "assistant", "content": None}, (SECOND, "content", "null")),
        ({"role": "assistant", "tool_calls": []}, (SECOND, "content", "null")),
        *(
            ({"role": "assistant", "tool_calls": [call]}, (SECOND, "tool", kind))
            for call, kind in (
                (None, "null"),
                (3, "of type int"),
                ("weather", "the text 'weather'"),
                ({}, "of type dict"),
                ({"function": "weather"}, "the text 'weather'"),
                ({"function": {"arguments": "{}"}}, "of type dict"),
                ({"function": {"name": None}}, "of type dict"),
            )
        ),
    ],
)
def test_an_unreadable_message_is_an_error_with_its_location(
    message: Any, facts: tuple[str, ...]
) -> None:
    with pytest.raises(DataError) as error:
        load_messages(REQUEST, message, ANSWER)
    assert has_line(str(error.value), "row 1: ", *facts)


def test_a_conversation_without_an_answer_is_an_error() -> None:
    with pytest.raises(DataError, match=r"row 1: messages ends .*role user"):
        load_messages(*CONVERSATION[:3])


def test_a_last_message_and_an_output_that_differ_are_an_error() -> None:
    with pytest.raises(DataError, match=r"row 1: messages ends .*output"):
        load_row(messages=CONVERSATION, output="Stay in.")


def test_a_mapped_column_without_a_conversation_is_an_error() -> None:
    with pytest.raises(DataError, match=r"row 1: messages .*'hello', not a list"):
        samples.load([{"chat": "hello", "output": "x"}], mapping={"messages": "chat"})


def test_a_column_named_messages_without_a_conversation_is_an_ordinary_column() -> None:
    sample = load_row(messages="three", output="x")
    assert sample.extra == {"messages": "three"}
    assert messages_before(sample) == ()


def test_messages_of_a_sample_may_have_more_keys() -> None:
    """Runs of an older version stored messages with all keys of the data."""
    stored = [{"id": "7", "name": None, **REQUEST}]
    assert messages_before(Sample("trip", "a", "x", extra={"messages": stored})) == TURNS_BEFORE[:1]


@pytest.mark.parametrize("message", [{"role": "user"}, {"role": "</a>", "content": "x"}, "x", None])
def test_messages_of_a_sample_that_are_no_conversation_are_ignored(message: Any) -> None:
    sample = Sample("trip", "a", "x", extra={"messages": [message, REQUEST]})
    assert messages_before(sample) == ()
