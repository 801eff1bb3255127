"""Output items of a run of the OpenAI Evals API: one per line, or a page of its list.

https://developers.openai.com/api/reference/resources/evals
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from judge.core.errors import DataError
from judge.data.result_files.judged import JudgedText, as_text, member, score
from judge.data.result_files.opening import Opening

TOOL = "OpenAI Evals"
_ITEM = "eval.run.output_item"
# "String check-a2486074-d803-4445-b431-ad2262e85d47"
_NAME_WITH_ID = re.compile(r"(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def claims(opening: Opening) -> bool:
    """Return whether these are output items."""
    first_object: Any = opening.first
    result_page = opening.document.get("data")
    if isinstance(result_page, list) and result_page:
        first_object = result_page[0]
    return _is_item(first_object)


def _is_item(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("object") == _ITEM


def read(opening: Opening) -> Iterator[JudgedText]:
    """Yield the items. Raises DataError."""
    if opening.first:
        for row in opening.rows():
            yield _text(row.cells, row.where)
        return
    if opening.document.get("has_more"):
        raise DataError(
            f"{opening.name}: only a page of the list (has_more); write all items, one per line"
        )
    items = member(opening.document, "data", opening.name, list)
    for number, item in enumerate(items, 1):
        yield _text(item, f"{opening.name} item {number}")


def _text(item: Any, location: str) -> JudgedText:
    if not _is_item(item):
        raise DataError(f"{location}: not an {_ITEM}")
    item_id = item.get("datasource_item_id", item.get("id"))
    sample = item.get("sample") or {}
    text = JudgedText(
        location,
        item=str(item_id),
        system=str(sample.get("model") or ""),
        source=as_text(sample.get("input")),
        output=as_text(sample.get("output")),
    )
    data = member(item, "datasource_item", location, dict)
    for column, value in data.items():
        text.own_columns[f"item.{column}"] = value
    error = sample.get("error")
    if isinstance(error, Mapping) and error.get("message"):
        text.error = str(error["message"])
    for result in member(item, "results", location, list):
        _add_score(text, result, location)
    return text


def _add_score(text: JudgedText, result: Any, location: str) -> None:
    """Add the score or the verdict of a grader."""
    criterion = member(result, "name", location, str)
    # The API adds an id to a grader's name. It stays only if two graders have one name.
    match = _NAME_WITH_ID.fullmatch(criterion)
    if match and match[1] not in text.scores:
        criterion = match[1]
    if criterion in text.scores:
        raise DataError(f"{location}: two results of {criterion}")
    value = score(result.get("score"), location, criterion)
    passed = result.get("passed")
    # A grader of yes and no has the score 1 or 0. Any other score says more than its verdict.
    is_verdict = isinstance(passed, bool) and value in (None, float(passed))
    text.scores[criterion] = passed if is_verdict else value
