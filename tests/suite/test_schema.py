"""The published schema of suite files, and that the loader accepts the same files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from judge.config import RunConfig
from judge.core.errors import ConfigError
from judge.suite.case import Case
from judge.suite.expectations import EXPECTATIONS
from judge.suite.load import SUFFIX, load
from judge.suite.schema import OPTIONS, Spec, schema

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "docs" / "suite.schema.json"


def test_published_schema_matches_the_models() -> None:
    """JUDGE_GOLDEN=write updates the schema."""
    schema_text = json.dumps(schema(), ensure_ascii=False, indent=1) + "\n"
    if os.environ.get("JUDGE_GOLDEN") == "write":
        PUBLISHED.write_text(schema_text, encoding="utf-8")
    assert PUBLISHED.read_text(encoding="utf-8") == schema_text
    Draft202012Validator.check_schema(schema())


def test_every_option_is_a_config_field_and_every_key_is_described() -> None:
    assert set(OPTIONS) <= {field.alias or name for name, field in RunConfig.model_fields.items()}
    assert not set(OPTIONS) & set(Spec.model_fields)
    document = schema()
    assert set(document["properties"]) == {*OPTIONS, *Spec.model_fields}
    assert "null" not in json.dumps(document)


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").rglob(f"*{SUFFIX}")), ids=lambda path: path.name
)
def test_every_example_is_valid(path: Path) -> None:
    Draft202012Validator(schema()).validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert load(path).cases


CASE = {"criterion": "relevance", "expect": {"min": 3}}
ORDER = {"criterion": "relevance", "better": "a", "worse": "b"}
GOOD: list[dict[str, Any]] = [
    {"cases": [CASE]},
    {"cases": [{**CASE, "item": 7, "system": ["a", 3]}]},
    {"cases": [{**CASE, "expect": {"label": 1, "share": 0.5}}]},
    {"cases": [{**CASE, "expect": {"label": "pass"}, "text": {"output": "x", "year": 2026}}]},
    {"cases": [{**ORDER, "margin": 0.5, "item": "x", "undecided": "pass"}]},
    {
        "cases": [
            {**ORDER, "text": {"source": "s"}, "better": {"output": "x"}, "worse": {"output": "y"}}
        ]
    },
    {
        "cases": [
            {"criterion": "relevance", "human": {"spearman": {"min": 0.4}, "level": "all-texts"}}
        ]
    },
    {
        "cases": [
            {"criterion": "relevance", "drift": {"max_shift": 0, "max_drop": 0.1, "max_flips": 1}}
        ]
    },
    {
        "cases": [CASE],
        "limits": {"failures": "2%", "tokens": 1500, "cost": "0.50usd"},
        "baseline": "runs/x",
    },
    {
        "cases": [CASE],
        "limits": {"failures": 3},
        "undecided": "pass",
        "budget": "5usd",
        "deadline": 60,
    },
    {
        "cases": [CASE],
        "criteria": "relevance",
        "cache": False,
        "map": {"item": "id"},
        "systems": "a, b",
        "limit": 3,
    },
    {
        "cases": [CASE],
        "model": ["x", {"name": "y", "base_url": "http://127.0.0.1/v1"}],
        "weighting": "single",
    },
]
BAD: list[dict[str, Any]] = [
    {},
    {"cases": []},
    {"cases": [CASE], "moddel": "x"},
    {"cases": [CASE], "out": "runs/x"},
    {"cases": [CASE], "undecided": "maybe"},
    {"cases": [CASE], "draws": 0},
    {"cases": [{"criterion": "relevance"}]},
    {"cases": [{**CASE, "expect": {}}]},
    {"cases": [{**CASE, "expect": {"min": "4"}}]},
    {"cases": [{**CASE, "expect": {"minn": 4}}]},
    {"cases": [{**CASE, "expect": {"label": True}}]},
    {"cases": [{**CASE, "expect": {"label": "a", "share": 2}}]},
    {"cases": [{**CASE, **ORDER}]},
    {"cases": [{"criterion": "relevance", "better": "a"}]},
    {"cases": [{"criterion": "relevance", "human": {"level": "all-texts"}}]},
    {"cases": [{"criterion": "relevance", "human": {"kendall": {"min": 2}}}]},
    {"cases": [{"criterion": "relevance", "drift": {}}]},
    {"cases": [CASE], "limits": {"cots": "1usd"}},
    {"cases": [CASE], "limits": {"tokens": 0}},
    {"cases": [CASE], "limits": {"cost": 5}},
]


def validate_and_load(tmp_path: Path, document: dict[str, Any]) -> tuple[bool, str]:
    """Return whether the schema accepts a document, and the loader's errors."""
    (tmp_path / "d.jsonl").write_text('{"output": "x"}\n', encoding="utf-8")
    path = tmp_path / f"s{SUFFIX}"
    path.write_text(yaml.safe_dump({"data": "d.jsonl", **document}), encoding="utf-8")
    try:
        load(path)
    except ConfigError as error:
        return Draft202012Validator(schema()).is_valid(document), str(error)
    return Draft202012Validator(schema()).is_valid(document), ""


@pytest.mark.parametrize("document", GOOD, ids=str)
def test_schema_and_reader_take_the_same(tmp_path: Path, document: dict[str, Any]) -> None:
    assert validate_and_load(tmp_path, document) == (True, "")


@pytest.mark.parametrize("document", BAD, ids=str)
def test_schema_and_reader_refuse_the_same(tmp_path: Path, document: dict[str, Any]) -> None:
    valid, messages = validate_and_load(tmp_path, document)
    assert not valid
    assert all(line.startswith(f"{tmp_path / 's'}{SUFFIX}:") for line in messages.splitlines())
    assert messages


@pytest.mark.parametrize("expectation", EXPECTATIONS, ids=lambda each: each.kind)
def test_every_expectation_has_the_required_methods(expectation: type[Case]) -> None:
    assert {"describe", "expected", "decide"} <= vars(expectation).keys()
    assert set(expectation.model_fields) > set(Case.model_fields)
