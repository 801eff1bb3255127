"""What pydantic refuses is worded in one way, wherever it was written or stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from judge.core.invalid_values import (
    InvalidValue,
    first_invalid_value,
    invalid_values,
    stored_place,
)
from tests.factories import lines_hold


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("write an even number")
    return value


@dataclass(frozen=True)
class _Record:
    number: int = 0


class _Other(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: int = 0


class _Inner(BaseModel):
    number: int = Field(default=1, gt=0)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    labels: list[str] = []
    ends: tuple[int, int] = (0, 1)
    weights: dict[str, float] = {}
    inner: _Inner = _Inner()
    file: Path = Field(default=Path(), strict=False)
    count: int = Field(default=0, strict=False)
    share: float = Field(default=0.0, strict=False)
    on: bool = Field(default=False, strict=False)
    even: Annotated[int, AfterValidator(_even)] = 0


class _Required(BaseModel):
    number: int


class _Stored(BaseModel):
    either: _Inner | _Other = _Inner()
    several: list[_Inner | _Other] = []
    inner: _Required = _Required(number=1)
    record: _Record = _Record()


def _refused(values: Any) -> list[InvalidValue]:
    with pytest.raises(ValidationError) as caught:
        _Model.model_validate(values)
    return invalid_values(caught.value)


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ({}, ("name is missing",)),
        ([], ("write keys and values",)),
        ({"name": 1}, ("name:", "string")),
        ({"name": "a", "labels": 3}, ("labels: write a list",)),
        ({"name": "a", "ends": 3}, ("ends: write a list",)),
        ({"name": "a", "weights": 3}, ("weights: write keys and values",)),
        ({"name": "a", "inner": 3}, ("inner: write keys and values",)),
        ({"name": "a", "inner": {"number": 0}}, ("inner.number:", "greater than 0")),
        ({"name": "a", "labels": ["b", 3]}, ("labels.1:", "string")),
        ({"name": "a", "even": 3}, ("even: write an even number",)),
    ],
)
def test_a_refused_value_is_worded_with_its_place(values: Any, facts: tuple[str, ...]) -> None:
    assert lines_hold([str(each) for each in _refused(values)], [facts])


@pytest.mark.parametrize("value", [None, 3, "a", [], {}, 0.5, True])
@pytest.mark.parametrize("key", [*_Model.model_fields, "unknown"])
def test_messages_name_no_python_types(key: str, value: Any) -> None:
    try:
        _Model.model_validate({"name": "a", key: value})
    except ValidationError as error:
        for each in invalid_values(error):
            assert not {"dict", "dictionary", "tuple", "instance", "parse", "interpret"} & {
                *each.problem.split()
            }, each
            assert "Value error" not in each.problem


@pytest.mark.parametrize(
    ("stored", "place"),
    [
        ({"either": {"number": "x"}}, "either.number"),
        ({"either": 3}, "either"),
        ({"several": [{"number": 1}, {"number": "x"}]}, "several.1.number"),
        ({"several": [3]}, "several.0"),
        ({"inner": {}}, "inner.number"),
    ],
)
def test_the_place_in_a_stored_file_names_no_type_of_a_union(stored: Any, place: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _Stored.model_validate(stored)
    places = {stored_place(each, stored) for each in invalid_values(caught.value)}
    assert places == {place}


def test_message_for_a_record_that_is_not_a_mapping() -> None:
    with pytest.raises(ValidationError) as caught:
        _Stored.model_validate({"record": 3})
    assert [str(each) for each in invalid_values(caught.value)] == ["record: write keys and values"]


def test_a_misspelt_key_is_reported_before_the_key_that_is_then_missing() -> None:
    with pytest.raises(ValidationError) as caught:
        _Model.model_validate({"nmae": "a"})
    first = first_invalid_value(caught.value)
    assert first.is_unknown_key
    assert first.path == ("nmae",)
