"""The text of a chat message, in whichever shape a server sends it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_THINKING_PARTS = ("thinking", "reasoning", "redacted_thinking")
# Servers name a model's reasoning differently: Ollama and vLLM, DeepSeek, and a few gateways.
_THINKING_FIELDS = ("reasoning", "reasoning_content", "thinking")


# The marks that `message_text` puts around thinking.
_OPEN = "<think>"
_CLOSE = "</think>"


class MessageText(NamedTuple):
    """The text of a message. `refused`: the text is a refusal."""

    text: str
    refused: bool = False


def message_text(message: Mapping[str, Any]) -> MessageText:
    """Return the text of a chat message.

    Its content may be a text, a list of parts (Mistral's reasoning models), or the arguments of a
    tool call, by which some gateways ask for JSON. If there is only thinking, it is returned
    between `<think>` and `</think>`, so that a reader of the reply sees it and no score is read
    from it.

    Raises ValueError, which names the type, if the content is no text.
    """
    content = message.get("content")
    text = _joined(content)
    if text.strip():
        return MessageText(text)
    refusal = message.get("refusal") or _refusal_in(content)
    if isinstance(refusal, str) and refusal.strip():
        return MessageText(refusal, refused=True)
    arguments = _tool_arguments(message)
    if arguments:
        return MessageText(arguments)
    thinking = _thinking(message)
    if thinking.strip():
        return MessageText(f"{_OPEN}{thinking}{_CLOSE}")
    return MessageText(text)


def is_only_thinking(text: str) -> bool:
    """Return whether a text of `message_text` is empty or nothing but thinking."""
    if not text:
        return True
    # Between two end marks, there is text that is no thinking.
    is_enclosed = text.startswith(_OPEN) and text.endswith(_CLOSE)
    return is_enclosed and text.count(_CLOSE) == 1


def _joined(content: Any) -> str:
    """Return the text of a content without its thinking. Raises ValueError if it is no text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, Sequence):
        raise ValueError(type(content).__name__)
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, Mapping):
            raise ValueError(f"a list of {type(part).__name__}")
        elif part.get("type") not in _THINKING_PARTS:
            text = part.get("text")
            if isinstance(text, str):
                texts.append(text)
    return "".join(texts)


def _parts(content: Any) -> list[Mapping[str, Any]]:
    """Return the objects of a content, which is a list of them or a single one."""
    parts = content if isinstance(content, list) else [content]
    return [part for part in parts if isinstance(part, Mapping)]


def _refusal_in(content: Any) -> Any:
    """Return the text of a part that is a refusal, as OpenAI sends it beside JSON schemas."""
    for part in _parts(content):
        if part.get("type") == "refusal":
            return part.get("refusal")
    return None


def _tool_arguments(message: Mapping[str, Any]) -> str:
    """Return the arguments of the only tool call, "" if there is none or more than one."""
    tool_calls = message.get("tool_calls")
    functions = []
    if isinstance(tool_calls, list):
        functions = [tool_call.get("function") for tool_call in _parts(tool_calls)]
    if not functions:
        # `function_call` is the older form, before a message could have several calls.
        functions = [message.get("function_call")]
    if len(functions) != 1 or not isinstance(functions[0], Mapping):
        return ""
    arguments = functions[0].get("arguments")
    if isinstance(arguments, Mapping):
        # Ollama's own API and gateways to it parse them.
        return json.dumps(arguments, ensure_ascii=False)
    return arguments if isinstance(arguments, str) else ""


def _thinking(message: Mapping[str, Any]) -> str:
    """Return the thinking in a field of the message, else in the parts of its content."""
    for field_name in _THINKING_FIELDS:
        if isinstance(message.get(field_name), str) and message[field_name].strip():
            return str(message[field_name])
    texts = []
    for part in _parts(message.get("content")):
        if part.get("type") in _THINKING_PARTS:
            thought = _thought(part)
            # Mistral nests the thinking in parts of its own.
            text = thought if isinstance(thought, str) else _joined(thought)
            texts.append(text)
    return "".join(texts)


def _thought(part: Mapping[str, Any]) -> Any:
    """Return a part's thinking: a text, or the parts that it is nested in."""
    for name in (*_THINKING_FIELDS, "text"):
        if part.get(name):
            return part[name]
    return ""
