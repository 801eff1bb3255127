"""What pydantic refuses is worded in one way, wherever it was written or stored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from judge.core.invalid_values import InvalidValue, first_invalid_value, invalid_values


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("write an even number")
    return value


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
    even: Annotated[int, AfterValidator(_even)] = 0


def _refused(values: Any) -> list[InvalidValue]:
    with pytest.raises(ValidationError) as caught:
        _Model.model_validate(values)
    return invalid_values(caught.value)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "name is missing"),
        ([], "write keys and values"),
        ({"name": 1}, "name: input should be a valid string"),
        ({"name": "a", "labels": 3}, "labels: write a list"),
        ({"name": "a", "ends": 3}, "ends: write a list"),
        ({"name": "a", "weights": 3}, "weights: write keys and values"),
        ({"name": "a", "inner": 3}, "inner: write keys and values"),
        ({"name": "a", "inner": {"number": 0}}, "inner.number: input should be greater than 0"),
        ({"name": "a", "labels": ["b", 3]}, "labels.1: input should be a valid string"),
        ({"name": "a", "even": 3}, "even: write an even number"),
    ],
)
def test_a_refused_value_is_worded_with_its_place(values: Any, said: str) -> None:
    assert [str(each) for each in _refused(values)] == [said]


@pytest.mark.parametrize("value", [None, 3, "a", [], {}, 0.5, True])
@pytest.mark.parametrize("key", [*_Model.model_fields, "unknown"])
def test_no_message_names_a_type_of_python(key: str, value: Any) -> None:
    try:
        _Model.model_validate({"name": "a", key: value})
    except ValidationError as error:
        for each in invalid_values(error):
            assert not {"dict", "dictionary", "tuple", "instance", "_Model"} & {
                *each.problem.split()
            }, each
            assert "Value error" not in each.problem


def test_a_misspelt_key_is_reported_before_the_key_that_is_then_missing() -> None:
    with pytest.raises(ValidationError) as caught:
        _Model.model_validate({"nmae": "a"})
    first = first_invalid_value(caught.value)
    assert first.is_unknown_key
    assert first.path == ("nmae",)
