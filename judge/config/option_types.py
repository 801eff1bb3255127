"""Types of options that users write in several forms, such as `a=b,c=d` and a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from judge.core import yaml_lines
from judge.core.option_values import parse_assignments
from judge.core.request_options import Judge

SCRIPTED = "scripted/"
"""Precedes the path of a scripted judge's replies in the judge's name."""

Value = str | int | float | bool


def split(text: str) -> list[str]:
    """Split a comma-separated list; `none` is the empty list."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [] if parts == ["none"] else parts


def script_of(model: str) -> Path | None:
    """Return the path of a scripted judge's replies, None for any other judge."""
    return Path(model.removeprefix(SCRIPTED)) if model.startswith(SCRIPTED) else None


def _parse_column_map(value: Any) -> Any:
    """Accept `item=doc_id,output=summary`; a repeated field has several columns."""
    if isinstance(value, str):
        value = parse_assignments(value, "FIELD=COLUMN, such as output=summary")
    if not isinstance(value, Mapping):
        return value
    mapping: dict[Any, Any] = {}
    for field, names in value.items():
        columns = tuple(names) if isinstance(names, list | tuple) else (names,)
        are_names = all(isinstance(name, str) and name for name in columns)
        if not columns or not are_names:
            raise ValueError(f"{field!r}: write the name of a column")
        if len({*columns}) < len(columns):
            raise ValueError(f"{field!r}: a column is listed twice")
        former, dot, criterion = str(field).partition(".")
        if former == "human":
            new_name = f"rating{dot}{criterion}"
            raise ValueError(f"{field!r}: people's ratings are called {new_name}")
        if len(columns) > 1 and not str(field).startswith("rating."):
            raise ValueError(
                f"{field!r}: name one column; only ratings (rating.CRITERION) may have "
                "several, one per rater"
            )
        mapping[field] = columns if len(columns) > 1 else columns[0]
    return mapping


def _parse_row_filter(value: Any) -> Any:
    """Accept `lang=ja,channel=email`; the values of a repeated column are alternatives."""
    if isinstance(value, str):
        value = parse_assignments(value, "COLUMN=VALUE, such as lang=ja")
    if not isinstance(value, Mapping):
        return value
    alternatives: dict[Any, tuple[Any, ...]] = {}
    for column, values in value.items():
        several = isinstance(values, list | tuple | frozenset)
        alternatives[column] = tuple(values) if several else (values,)
    for column, values in alternatives.items():
        are_values = all(isinstance(each, str | int | float) for each in values)
        if not values or not are_values:
            raise ValueError(
                f"{column!r}: write a value, such as lang: ja, or a list of values"
            )
    return alternatives


def _parse_metric_options(value: Any) -> Any:
    """Accept `rouge.stem=false`, whose value is YAML, and layers of options.

    A later layer overrides single options.
    """
    merged: dict[str, Any] = {}
    for layer in value if isinstance(value, list | tuple) else [value]:
        options = _parse_metric_option(layer) if isinstance(layer, str) else layer
        if not isinstance(options, Mapping):
            return layer
        for metric, new_options in options.items():
            earlier_options = merged.get(metric)
            merged[metric] = new_options
            if isinstance(earlier_options, dict) and isinstance(new_options, dict):
                merged[metric] = {**earlier_options, **new_options}
    return merged


def _parse_metric_option(assignment: str) -> dict[str, dict[str, Any]]:
    """Parse `rouge.stem=false`."""
    option_path, equals, text = assignment.partition("=")
    metric, dot, option_name = option_path.strip().partition(".")
    if not (equals and dot and metric and option_name):
        raise ValueError("write METRIC.OPTION=VALUE, such as rouge.stem=false")
    try:
        value = yaml_lines.values(text)
    except yaml_lines.Malformed:
        problem = "the value is not YAML; put quotes around a text"
        raise ValueError(problem) from None
    return {metric: {option_name: value}}


def _parse_sentence_marks(value: Any) -> Any:
    """Accept `<q>,<n>`."""
    marks = split(value) if isinstance(value, str) else value
    if not isinstance(marks, list | tuple):
        return marks
    for mark in marks:
        if not isinstance(mark, str) or not mark.strip():
            raise ValueError("write the marks, such as <q>")
    return marks


def _parse_score_columns(value: Any) -> Any:
    """Accept `comet,wer=lower` and a list of such columns; without =lower, higher is better."""
    columns = split(value) if isinstance(value, str) else value
    if not isinstance(columns, list | tuple):
        return value
    is_blank = isinstance(value, str) and not value.strip()
    if is_blank or not all(str(column).strip() for column in columns):
        raise ValueError("a name of a column is empty; write one such as helpful")
    better_by_name: dict[str, str] = {}
    for column in columns:
        name, equals, better = str(column).partition("=")
        better_by_name[name.strip()] = better.strip() if equals else "higher"
    return better_by_name


def _parse_judges(value: Any) -> Any:
    """Accept one name, one mapping, or a list of either."""
    judges: list[Any] = []
    for judge in value if isinstance(value, list | tuple) else [value]:
        if not isinstance(judge, str):
            judges.append(judge)
            continue
        is_yaml = Path(judge).suffix in (".yaml", ".yml")
        if is_yaml and script_of(judge) is None and Path(judge).is_file():
            advice = f"for replies that you wrote, write {SCRIPTED}{judge}"
            raise ValueError(f"{judge} is a file; {advice}")
        judges.append({"name": judge})
    return tuple(judges)


ColumnMap = Annotated[
    dict[str, str | tuple[str, ...]],
    BeforeValidator(
        _parse_column_map, json_schema_input_type=dict[str, str | list[str]]
    ),
]
RowFilter = Annotated[
    dict[str, tuple[Value, ...]],
    BeforeValidator(
        _parse_row_filter, json_schema_input_type=dict[str, Value | list[Value]]
    ),
]
MetricOptions = Annotated[
    dict[str, dict[str, Any]],
    BeforeValidator(
        _parse_metric_options, json_schema_input_type=dict[str, dict[str, Any]]
    ),
]
SentenceMarks = Annotated[
    tuple[str, ...],
    BeforeValidator(_parse_sentence_marks, json_schema_input_type=str | list[str]),
]
ScoreColumns = Annotated[
    dict[str, Literal["higher", "lower"]],
    BeforeValidator(
        _parse_score_columns,
        json_schema_input_type=str | list[str] | dict[str, str],
    ),
]
Judges = Annotated[
    tuple[Judge, ...],
    BeforeValidator(
        _parse_judges, json_schema_input_type=str | Judge | list[str | Judge]
    ),
]
