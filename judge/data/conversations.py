"""Conversations in data: the column `messages`, as OpenAI's API writes them.

The last answer is the text that is judged, and the column keeps the messages before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from judge.core.errors import DataError
from judge.core.records import Message, Sample
from judge.data.cells import NoValue, packed_value
from judge.data.rows import is_empty, is_missing, type_name

MESSAGES = "messages"
"""The column of a conversation. Each message is a mapping of `role` and `content`, both texts."""
ANSWERING = "assistant"
"""The role of the messages that are answers."""
ROLES = ("system", "developer", "user", ANSWERING, "tool", "function")
_TEXT_PARTS = ("text", "input_text", "output_text", "refusal")


def read_conversation(
    cells: Mapping[str, Any],
    location: str,
    packed: bool,
    required: bool,
    answer_column: str,
) -> dict[str, Any]:
    """Return a row's cells with plain messages and, if it has no output, the last answer as output.

    `messages` keeps what was said before the output, and is left out if that is nothing. The cell
    `output` may itself hold a conversation; `answer_column` is its name in messages. Cells without
    a conversation are returned as they are. With `packed`, an output may be a conversation in JSON.
    With `required`, `messages` must be a conversation or empty.

    Raises DataError for a message without a known role or without a text, for a conversation that
    ends with another answer than the output, and for other `messages` that no output follows.
    """
    plain_cells = dict(cells)
    column = MESSAGES
    messages = _messages(cells.get(MESSAGES), packed=True)
    if messages is None:
        _refuse_other_messages(cells, location, required)
        column = answer_column
        messages = _messages(cells.get("output"), packed)
        if messages is None:
            return plain_cells
        del plain_cells["output"]
    turns: list[dict[str, str]] = []
    for number, message in enumerate(messages, 1):
        location_of_message = f"{location}: message {number} of {column}"
        turns.append(_turn(message, location_of_message))
    ends_with_answer = bool(turns) and turns[-1]["role"] == ANSWERING
    if ends_with_answer:
        answer = turns.pop()["content"]
        if plain_cells.setdefault("output", answer) != answer:
            raise DataError(
                f"{location}: {column} ends with an answer, and output has a different one: "
                "remove one of them"
            )
    elif "output" not in plain_cells:
        last_role = turns[-1]["role"]
        raise DataError(
            f"{location}: {column} ends with a message of the role {last_role}, so there "
            f"is no answer to judge: end it with a message of the role {ANSWERING}, or put the "
            "answer into a column output"
        )
    plain_cells.pop(MESSAGES, None)
    if turns:
        plain_cells[MESSAGES] = turns
    return plain_cells


def _refuse_other_messages(
    cells: Mapping[str, Any], location: str, required: bool
) -> None:
    """Raise DataError for `messages` without a conversation that is needed."""
    cell = cells.get(MESSAGES)
    if is_empty(cell) or not (required or "output" not in cells):
        return
    raise DataError(
        f"{location}: {MESSAGES} is {type_name(cell)}, not a list of objects with role and content"
    )


def _messages(cell: Any, packed: bool) -> Sequence[Any] | None:
    """Return the messages in a cell, None if it holds no conversation.

    With `packed`, it may hold them as text, if each of them has a role.
    """
    if packed and isinstance(cell, str) and "role" in cell:
        try:
            unpacked = packed_value(cell)
        except NoValue:
            return None
        is_whole = isinstance(unpacked, list) and all(map(_has_role, unpacked))
        return unpacked if is_whole and unpacked else None
    if not isinstance(cell, list | tuple):
        return None
    return cell if any(map(_has_role, cell)) else None


def _has_role(entry: Any) -> bool:
    return isinstance(entry, Mapping) and "role" in entry


def _turn(message: Any, location: str) -> dict[str, str]:
    """Return a message with its role and all that it says as one text."""
    if not isinstance(message, Mapping):
        raise DataError(
            f"{location} is {type_name(message)}, not an object with role and content"
        )
    role = message.get("role")
    if isinstance(role, str):
        role = role.strip().lower()
    if role not in ROLES:
        problem = type_name(role)
        known_roles = ", ".join(ROLES)
        raise DataError(
            f"{location}: its role is {problem}; known roles are {known_roles}"
        )
    texts = [*_content(message.get("content"), location)]
    refusal = message.get("refusal")  # a text beside the content null
    if isinstance(refusal, str):
        texts.append(refusal)
    texts += _tool_calls(message, location)
    if not texts:
        raise DataError(
            f"{location}: its content is null and it calls no tool: write an empty string if it "
            "says nothing"
        )
    return {"role": str(role), "content": "\n".join(filter(None, texts))}


def _content(content: Any, location: str) -> Iterator[str]:
    """Yield the texts of a message's content, which may be null or a list of parts."""
    if is_missing(content):  # beside tool calls
        return
    if isinstance(content, str):
        content = [content]
    if not isinstance(content, list | tuple):
        raise DataError(f"{location}: its content is {type_name(content)}, not a text")
    for content_part in content:
        text = content_part
        part_type = None
        if isinstance(content_part, Mapping):
            part_type = content_part.get("type")
        if part_type in _TEXT_PARTS:
            key = "refusal" if part_type == "refusal" else "text"
            text = content_part.get(key)
        if not isinstance(text, str):
            kind = part_type or type_name(content_part)
            raise DataError(
                f"{location}: a part of its content is {kind}: "
                "judge reads only texts, no images and no sound"
            )
        yield text


def _tool_calls(message: Mapping[str, Any], location: str) -> Iterator[str]:
    """Yield the calls of a message as texts; `function_call` is the older form of one call."""
    calls = message.get("tool_calls")
    if not is_missing(calls):
        if not isinstance(calls, list | tuple):
            raise DataError(f"{location}: tool_calls is {type_name(calls)}, not a list")
        for call in calls:
            yield _tool_call(call, location)
    former_call = message.get("function_call")
    if not is_missing(former_call):
        yield _tool_call(former_call, location)


def _tool_call(call: Any, location: str) -> str:
    """Return a call of a tool as text: `get_weather({"city": "Oslo"})`."""
    called = call
    for call_type in ("function", "custom"):  # what the call's type says, beside its id
        if isinstance(call, Mapping) and not is_missing(call.get(call_type)):
            called = call[call_type]
    tool_name = called.get("name") if isinstance(called, Mapping) else None
    if not isinstance(tool_name, str):
        raise DataError(
            f"{location}: a call of a tool is {type_name(called)}, not an object with name and "
            "arguments"
        )
    arguments = called.get("arguments", called.get("input"))
    if is_missing(arguments):
        arguments = ""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    return f"{tool_name}({arguments})"


def is_conversation(value: object) -> TypeGuard[Sequence[Message]]:
    """Return whether a value is plain messages, each with a known role and a text as content."""
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(map(_is_plain_message, value))


def _is_plain_message(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return value.get("role") in ROLES and isinstance(value.get("content"), str)


def messages_before(sample: Sample) -> tuple[tuple[str, str], ...]:
    """Return the role and the text of each message before a sample's output."""
    messages = sample.extra.get(MESSAGES)
    if not is_conversation(messages):
        return ()
    return tuple((message["role"], message["content"]) for message in messages)
