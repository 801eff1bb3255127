"""One name per concept, in options, schemas, columns and public names; the other words for it are refused."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator

import click
import pytest

import judge
from judge.cli import app
from judge.config import RankConfig, RunConfig
from judge.core.records import Failure, Provenance, Sample, Score
from judge.results.estimates import EstimateRow
from judge.suite import schema as suite_schema

OTHER_WORDS = {
    "rival": "opponent",
    "annotator": "rater",
    "annotators": "raters",
    "aspect": "criterion",
    "dimension": "criterion",
    "evaluator": "judge",
    "forecast": "plan",
    "force": "overwrite",
    "n_flips": "n_resamples",
    "n_permutations": "n_resamples",
    "abstention": "failure",
}
"""Words that mean what another word is used for, with that word."""


def option_names() -> Iterator[str]:
    def commands(node: click.Command) -> Iterator[click.Command]:
        yield node
        for child in getattr(node, "commands", {}).values():
            yield from commands(child)

    for each in commands(app):
        for parameter in each.get_params(click.Context(each)):
            yield from (name.lstrip("-").replace("-", "_") for name in parameter.opts)


def schema_names(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in schema.values():
            yield from schema_names(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from schema_names(part)


def public_names() -> Iterator[str]:
    for name in judge.__all__:
        yield name
        public = getattr(judge, name)
        if inspect.isfunction(public):
            yield from inspect.signature(public).parameters
        elif dataclasses.is_dataclass(public):
            yield from (field.name for field in dataclasses.fields(public))


NAMES = {
    "options": lambda: {*option_names(), *RunConfig.model_fields, *RankConfig.model_fields},
    "suite": lambda: {*schema_names(suite_schema.schema())},
    "columns": lambda: {
        field.name
        for record in (Score, Failure, Provenance, Sample, EstimateRow)
        for field in dataclasses.fields(record)
    },
    "python": lambda: {*public_names()},
}


@pytest.mark.parametrize("kind", NAMES)
def test_a_concept_has_one_name(kind: str) -> None:
    names = NAMES[kind]()
    assert len(names) > 10
    refused = {
        name: OTHER_WORDS[word]
        for name in names
        for word in OTHER_WORDS
        if word in name.lower().split("_")
    }
    assert not refused


def test_recommended_words_are_not_refused_words() -> None:
    assert not OTHER_WORDS.keys() & {*OTHER_WORDS.values()}
