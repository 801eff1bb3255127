"""Conversations in data: the column `messages`, as OpenAI's API writes them.

The last answer is the text that is judged, and the column keeps the messages before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from judge.core.errors import DataError
from judge.core.records import Sample
from judge.data.cells import NoValue, packed_value
from judge.data.rows import is_missing, type_name

MESSAGES = "messages"
"""The column of a conversation. Each message is a mapping of `role` and `content`, both texts."""
ANSWERING = "assistant"
"""The role of the messages that are answers."""
ROLES = ("system", "developer", "user", ANSWERING, "tool", "function")
_TEXT_PARTS = ("text", "input_text", "output_text", "refusal")


def read_conversation(
    cells: Mapping[str, Any], location: str, packed: bool, required: bool
) -> dict[str, Any]:
    """Return a row's cells with plain messages and, if it has no output, the last answer as output.

    `messages` keeps what was said before the output, and is left out if that is nothing. The cell
    `output` may itself hold a conversation. Cells without a conversation are returned as they are.
    With `packed`, a text may be a list in JSON. With `required`, `messages` must be a conversation.
    Raises DataError for a message without a known role or without a text, and for a conversation
    that ends with another answer than the output.
    """
    read = dict(cells)
    column = MESSAGES
    messages = _messages(read.get(MESSAGES), packed)
    if messages is None:
        column = "output"
        messages = _messages(read.get("output"), packed=False)
        if messages is None and required:
            raise DataError(
                f"{location}: {MESSAGES} is {type_name(read.get(MESSAGES))}, not a list of objects "
                "with role and content"
            )
        if messages is None:
            return read
        del read["output"]
    turns = [
        _turn(message, f"{location}: message {number} of {column}")
        for number, message in enumerate(messages, 1)
    ]
    ends_with_answer = bool(turns) and turns[-1]["role"] == ANSWERING
    if ends_with_answer:
        answer = turns.pop()["content"]
        if read.setdefault("output", answer) != answer:
            raise DataError(
                f"{location}: {column} ends with an answer, and output is another one: "
                "leave one of them out"
            )
    elif "output" not in read:
        raise DataError(
            f"{location}: {column} ends with a message of the role {turns[-1]['role']}, so that "
            f"there is no answer to judge: it must end with one of the role {ANSWERING}, or the "
            "answer has a column output"
        )
    read.pop(MESSAGES, None)
    if turns:
        read[MESSAGES] = turns
    return read


def _messages(cell: Any, packed: bool) -> Sequence[Any] | None:
    """Return the messages in a cell, None if it holds no conversation."""
    if packed and isinstance(cell, str):
        try:
            cell = packed_value(cell)
        except NoValue:
            return None
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if not isinstance(cell, list | tuple):
        return None
    has_message = any(isinstance(entry, Mapping) and "role" in entry for entry in cell)
    return cell if has_message else None


def _turn(message: Any, location: str) -> dict[str, str]:
    """Return a message with its role and all that it says as one text."""
    if not isinstance(message, Mapping):
        raise DataError(f"{location} is {type_name(message)}, not an object with role and content")
    role = message.get("role")
    if role not in ROLES:
        problem = type_name(role)
        raise DataError(f"{location}: its role is {problem}; known roles are {', '.join(ROLES)}")
    parts = [_content(message.get("content"), location)]
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list | tuple):
        raise DataError(f"{location}: tool_calls is {type_name(calls)}, not a list")
    parts += [_tool_call(call) for call in calls or ()]
    return {"role": str(role), "content": "\n".join(filter(None, parts))}


def _content(content: Any, location: str) -> str:
    """Return the text of a message's content, which may be a list of parts."""
    if is_missing(content):  # beside tool calls
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        raise DataError(f"{location}: its content is {type_name(content)}, not a text")
    texts = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        text = part.get("refusal" if kind == "refusal" else "text") if kind in _TEXT_PARTS else None
        if not isinstance(text, str):
            raise DataError(
                f"{location}: a part of its content is {kind or type_name(part)}: "
                "judge reads only texts, no images and no sound"
            )
        texts.append(text)
    return "\n".join(texts)


def _tool_call(call: Any) -> str:
    """Return a call of a tool as text: `get_weather({"city": "Oslo"})`."""
    function = call.get("function", call) if isinstance(call, Mapping) else {"name": call}
    arguments = function.get("arguments", "")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, default=str)
    return f"{function.get('name')}({arguments})"


def messages_before(sample: Sample) -> tuple[tuple[str, str], ...]:
    """Return the role and the text of each message before a sample's output."""
    messages = _messages(sample.extra.get(MESSAGES), packed=False)
    return tuple((turn["role"], turn["content"]) for turn in messages or ())
