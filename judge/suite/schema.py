"""The keys of a suite's file, as pydantic models, and their JSON schema."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    ValidationError,
)

from judge.config import RunConfig, json_schema, run_options
from judge.core.budget import Budget
from judge.suite.case import Keys, Name, Policy, percentage, short
from judge.suite.expectations import Expectation

OPTIONS = {name: option.description for name, option in run_options("suite").items()}
"""The options of a run that a suite may have, with their descriptions."""
# "2%", "0.5 %"
_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%")


def _parse_share(value: Any) -> tuple[float, bool]:
    """Return a number of judgments or a share (0–1) of them, and whether it is a share.

    Raises ValueError for anything else.
    """
    # `yes` is a truth value to YAML, and a bool is an int to Python.
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        # A number of hundreds of digits fits into no float.
        return min(value, sys.maxsize), False
    match = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    percent = float(match[1]) if match else None
    if percent is None or percent > 100:
        raise ValueError(
            "write a number of judgments, such as 0, or a share of them, such as 2%"
        )
    return percent / 100, True


def _parse_dollars(value: Any) -> Budget:
    """Parse an amount such as `0.50usd`. Raises ValueError."""
    # An amount is written as in the option `budget`, which also takes tokens.
    try:
        budget = RunConfig.model_validate({"budget": value}).budget
    except ValidationError:
        budget = None
    if budget is None or budget.unit != "usd":
        raise ValueError(
            "write dollars, such as 0.50usd; tokens: is the limit of tokens"
        )
    return budget


Dollars = Annotated[Budget, PlainValidator(_parse_dollars, json_schema_input_type=str)]


def _check_share(value: Any) -> Any:
    """Return a number or share as it is written, so that messages show it so. Raises ValueError."""
    _parse_share(value)
    return value


class Limits(Keys):
    """The limits of a whole suite."""

    failures: Annotated[int | str, BeforeValidator(_check_share)] = Field(
        default=0,
        description="Failed judgments: a number, or a share such as 2% (default: 0).",
    )
    tokens: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        default=None, description="Input tokens of one judgment."
    )
    cost: Dollars | None = Field(
        default=None,
        description="Price of all judgments without a cache, such as 0.50usd.",
    )

    def most_failures(self, judgments: int) -> float:
        """Return how many of these judgments may fail; a share may give a fraction."""
        limit, is_share = _parse_share(self.failures)
        return limit * judgments if is_share else limit

    def describe_failures(self) -> str:
        """Write `≤ 2%` or `≤ 3`."""
        limit, is_share = _parse_share(self.failures)
        number = percentage(limit) if is_share else short(limit)
        return f"≤ {number}"


def _check_not_empty(cases: tuple[Expectation, ...]) -> tuple[Expectation, ...]:
    if not cases:
        raise ValueError(
            "write at least one, such as - {criterion: relevance, expect: {min: 3}}"
        )
    return cases


class Spec(Keys):
    """The keys that only suites have; the others are options of a run (`OPTIONS`)."""

    baseline: Name | None = Field(
        default=None, description="The folder of the run to compare with."
    )
    undecided: Policy | None = Field(
        default=None, description="For all cases (default: fail; for drift: pass)."
    )
    limits: Limits = Field(
        default_factory=Limits, description="Limits of the whole suite."
    )
    cases: Annotated[tuple[Expectation, ...], AfterValidator(_check_not_empty)] = Field(
        description="The expectations.", json_schema_extra={"minItems": 1}
    )


@dataclass(frozen=True, slots=True)
class Suite:
    """A file of cases.

    `options` are keys of `RunConfig` with resolved paths, `lines` the lines of top-level keys.
    `undecided` says how undecided cases count. None: `pass` for drift, `fail` for other
    expectations, because both a change and a quality must be shown.
    """

    path: Path
    name: str
    options: Mapping[str, Any]
    cases: tuple[Expectation, ...]
    limits: Limits = field(default_factory=Limits)
    baseline: Path | None = None
    undecided: Policy | None = None
    lines: Mapping[str, int] = field(default_factory=dict)


def schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of a suite's file; docs/suite.schema.json is its text."""
    document = json_schema(
        Spec, "judge.suite/1", "Cases that a judge's scores have to meet."
    )
    run_document = json_schema(RunConfig, "", "")
    options = {
        option_name: run_document["properties"][option_name] for option_name in OPTIONS
    }
    properties = options | document["properties"]
    definitions = run_document["$defs"] | document["$defs"]
    return document | {"properties": properties, "$defs": definitions}
