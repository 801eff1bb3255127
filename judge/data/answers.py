"""What belongs to an answer: the request that it answers, and the passages that it relies on.

Data of answers have many names for these columns. Templates read them as `request` and `passages`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.core.records import Message, Sample
from judge.data.cells import NoValue, packed_value
from judge.data.column_names import PASSAGE_COLUMNS, REQUEST_COLUMNS
from judge.data.conversations import MESSAGES, is_conversation, messages_before
from judge.data.rows import is_empty

# Keys of the text of a passage that is an object.
_TEXT_KEYS = ("text", "content", "page_content", "document", "passage")


def answer_inputs(sample: Sample) -> dict[str, Any]:
    """Return `request` and `passages` of a sample, each only if it has one.

    The request is what was said before the output (`request_of`), or else the first of the
    REQUEST_COLUMNS that is not empty, or else the source. The passages are a list of texts: the
    first of the PASSAGE_COLUMNS that is not empty, or else the source if it is not the request.
    """
    inputs: dict[str, Any] = {}
    request_column = first_column(sample, REQUEST_COLUMNS)
    passage_column = first_column(sample, PASSAGE_COLUMNS)
    has_source = not is_empty(sample.source)
    if messages_before(sample):
        inputs["request"] = request_of(sample.extra[MESSAGES])
    elif request_column:
        inputs["request"] = request_in_cell(sample.extra[request_column])
    elif has_source:
        inputs["request"] = sample.source
    passages: list[str] = []
    if passage_column:
        passages = texts_of(sample.extra[passage_column])
    elif has_source and sample.source != inputs.get("request"):
        passages = [str(sample.source)]
    if passages:
        inputs["passages"] = passages
    return inputs


def request_text(sample: Sample) -> str:
    """Return what a person asked for: the last message of the user, or a column.

    Return "" if the sample has neither. A source alone may be a text to summarize, so it is not
    used.
    """
    for role, content in reversed(messages_before(sample)):
        if role == "user":
            return content
    column = first_column(sample, REQUEST_COLUMNS)
    if not column:
        return ""
    return request_in_cell(sample.extra[column])


def request_in_cell(cell: Any) -> str:
    """Return the request in the cell of a column: a text, or a list or an object that holds texts.

    Each of several messages has its role before it. Data for training have messages as `prompt`.
    """
    if is_conversation(cell) and len(cell) > 1:
        turns = [f"{message['role']}: {message['content']}" for message in cell]
        return "\n\n".join(turns)
    if isinstance(cell, list | tuple):
        return "\n\n".join(_texts(cell))
    return _text(cell)


def request_of(messages: Sequence[Message]) -> str | Sequence[Message]:
    """Return the text of the only message before an answer, or several messages as they are."""
    if len(messages) == 1:
        return messages[0]["content"]
    return messages


def column_of(sample: Sample, variable: str) -> str:
    """Return the column that fills a variable of a template.

    Return "" if no column of the data's own does. Every variable but `request` and `passages` has
    the name of its column.
    """
    if variable == "request":
        return first_column(sample, REQUEST_COLUMNS)
    if variable == "passages":
        return first_column(sample, PASSAGE_COLUMNS)
    return variable


def first_column(sample: Sample, column_names: tuple[str, ...]) -> str:
    """Return the first of these columns that is not empty in a sample, "" if there is none."""
    for column_name in column_names:
        if not is_empty(sample.extra.get(column_name)):
            return column_name
    return ""


def texts_of(value: Any) -> list[str]:
    """Return the texts of a cell: one text, or those of a list.

    In a table, a list is written in JSON or Python. An empty list, also the text `[]`, has none.
    """
    if isinstance(value, str):
        listed_texts = _list_in_cell(value)
        if listed_texts is not None:
            value = listed_texts
    passages = value if isinstance(value, list | tuple) else [value]
    return _texts(passages)


def _list_in_cell(cell: str) -> list[Any] | None:
    """Return the list of texts or objects that a cell of a table holds, None if it is a text.

    A list of anything else, such as `[1]`, is a text: a footnote.
    """
    try:
        value = packed_value(cell)
    except NoValue:
        return None
    if not isinstance(value, list):
        return None
    if not all(part is None or isinstance(part, str | Mapping) for part in value):
        return None
    return value


def _texts(parts: Sequence[Any]) -> list[str]:
    """Return the passages or requests that are not empty as texts."""
    return [_text(part) for part in parts if not is_empty(part)]


def _text(part: Any) -> str:
    """Return a passage or request as text; an object has it under a key such as `text`."""
    if isinstance(part, Mapping):
        for text_key in _TEXT_KEYS:
            if isinstance(part.get(text_key), str):
                return str(part[text_key])
    return str(part)
