"""Evaluation tables of MLflow, saved as CSV.

`mlflow.genai.evaluate` has one column `NAME/value` per assessment, and the assessments themselves;
`mlflow.models.evaluate` has columns such as `NAME/v1/score`.
https://mlflow.org/docs/latest/genai/eval-monitor/
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from judge.core.errors import DataError
from judge.data.cells import NoValue, packed_value
from judge.data.result_files.judged import JudgedText, Value, score
from judge.data.result_files.opening import Opening
from judge.data.rows import RawRow

TOOL = "MLflow"
_TRACE_KEYS = ("trace_id", "request", "response", "assessments")
_VALUE = "/value"
# "toxicity/v1/score", "toxicity/v1/justification"
_FORMER = re.compile(r"(?P<metric>[^/]+)/v\d+/(?P<content>score|justification)")
_VERDICTS = {"yes": True, "no": False, "true": True, "false": False}
_LOWER_IS_BETTER = {
    "toxicity",
    "latency",
    "ari_grade_level",
    "flesch_kincaid_grade_level",
}
"""MLflow's own metrics that have `greater_is_better=False`."""


def claims(opening: Opening) -> bool:
    """Return whether this is an evaluation table."""
    header = opening.header
    if all(key in header for key in _TRACE_KEYS):
        return any(column.endswith(_VALUE) for column in header)
    matches = [_FORMER.fullmatch(column) for column in header]
    return any(match["content"] == "score" for match in matches if match)


def read(opening: Opening) -> Iterator[JudgedText]:
    """Yield the rows. Raises DataError."""
    has_traces = all(key in opening.header for key in _TRACE_KEYS)
    for number, row in enumerate(opening.rows(), 1):
        yield _text_of_trace(row) if has_traces else _former_text(row, number)


def lower_is_better(texts: Sequence[JudgedText]) -> set[str]:
    """Return MLflow's own metrics on which lower is better. The table does not say so."""
    metrics = chain.from_iterable(text.scores for text in texts)
    return _LOWER_IS_BETTER.intersection(metrics)


def _text_of_trace(row: RawRow) -> JudgedText:
    cells = row.cells
    text = JudgedText(
        row.where,
        # The id of a trace is another one in each evaluation; a request is the same.
        item=str(cells["request"] or cells["trace_id"]),
        source=str(cells["request"]),
        output=str(cells["response"]),
        own_columns={"trace_id": cells["trace_id"]},
    )
    expected = _expectations(row)
    errors: list[str] = []
    for column, cell in cells.items():
        assessment = column.removesuffix(_VALUE)
        if assessment == column:
            continue
        if assessment in expected:
            if cell:
                text.references += (str(cell),)
            continue
        text.scores[assessment] = _value(cell, row.where, assessment)
        rationale = cells.get(f"{assessment}/rationale")
        text.reasons[assessment] = str(rationale or "")
        error = cells.get(f"{assessment}/error_message")
        if error:
            errors.append(f"{assessment}: {error}")
    if errors:
        text.own_columns["error"] = "; ".join(errors)
    return text


def _expectations(row: RawRow) -> set[str]:
    """Return the names of the values that were expected, which have the form of scores."""
    try:
        assessments = packed_value(row.cells["assessments"])
    except NoValue as error:
        raise DataError(
            f"{row.where}: assessments is not a list that judge can read"
        ) from error
    if not isinstance(assessments, list):
        raise DataError(f"{row.where}: assessments is not a list")
    names: set[str] = set()
    for assessment in assessments:
        if isinstance(assessment, Mapping) and "expectation" in assessment:
            names.add(str(assessment.get("assessment_name")))
    return names


def _former_text(row: RawRow, number: int) -> JudgedText:
    """Return the text of a row of `mlflow.models.evaluate`, which has no id of the item."""
    cells = row.cells
    output = cells.get("predictions", cells.get("outputs"))
    text = JudgedText(
        row.where,
        item=number,
        source=str(cells.get("inputs") or ""),
        output=str(output or ""),
    )
    target = cells.get("ground_truth", cells.get("targets"))
    if target:
        text.references = (str(target),)
    for column, cell in cells.items():
        match = _FORMER.fullmatch(column)
        if match is None:
            continue
        metric = match["metric"]
        if match["content"] == "score":
            text.scores[metric] = _value(cell, row.where, metric)
        else:
            text.reasons[metric] = str(cell)
    return text


def _value(cell: Any, location: str, criterion: str) -> Value:
    if isinstance(cell, str):
        word = cell.strip().lower()
        if word in _VERDICTS:
            return _VERDICTS[word]
    return score(cell, location, criterion)
