"""Check `info` of run.json when it is read, so that a damaged file is an error and no report ends in a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

_MAX_DIGITS = 100
_Facts = dict[str, JsonValue] | None
_Counts = dict[str, int] | None


class _Part(BaseModel):
    """An object; keys that are not declared may have any value."""

    model_config = ConfigDict(strict=True, extra="allow")


class _Cost(_Part):
    usd: float | None = None


class _Use(_Part):
    """What a judge or a generating system used."""

    requests: _Counts = None
    usage: _Counts = None
    cost: _Cost | None = None
    unmet: _Counts = None
    learned: _Facts = None
    draws: int | None = None
    settings: _Facts = None
    served_by: list[str] | None = None


class _Budget(_Part):
    amount: float
    unit: Literal["usd", "tokens"]
    spent: float


class _Criterion(_Part):
    title: str = ""
    templates: dict[str, str] | None = None


class _Prompts(_Part):
    asked: dict[str, dict[str, JsonValue]] = {}
    sheets: list[JsonValue] = []


class _Info(_Use):
    status: str | None = None
    data: _Facts = None
    plan: _Facts = None
    language: _Facts = None
    judges: dict[str, _Use] | None = None
    systems: dict[str, _Use] | None = None
    criteria: dict[str, _Criterion] | None = None
    notes: list[str] | None = None
    notices: list[str] | None = None
    budget: _Budget | None = None
    prompts: _Prompts | None = None


def parse(text: bytes) -> Any:
    """Return the content of run.json. Raises ValueError, also for numbers that no run writes."""
    return json.loads(
        text,
        parse_constant=_refuse,
        parse_int=lambda digits: (
            int(digits)
            if len(digits) <= _MAX_DIGITS
            else _refuse(f"a number of {len(digits):,} digits")
        ),
    )


def check(info: Mapping[str, Any], matrices: Iterable[Any] = ()) -> None:
    """Raise ValidationError for a value of a type that no report reads, ValueError for a matrix not square."""
    _Info.model_validate(info)
    for matrix in matrices:
        size = len(matrix.names)
        for rows in (matrix.values, matrix.low, matrix.high, matrix.n):
            if [len(row) for row in rows] != [size] * size:
                raise ValueError(f"a matrix of {size} columns is not square")


def _refuse(constant: str) -> float:
    raise ValueError(f"it holds {constant}, which no run writes")
