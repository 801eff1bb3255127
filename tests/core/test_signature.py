"""Signatures of columns. Oracle: the text in a file, which is the same before and after."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from judge.core.format import to_json
from judge.core.records import Column
from judge.core.signature import Signature, join_names

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@given(names, st.lists(names, max_size=4))
def test_a_signature_in_memory_equals_the_one_that_is_read_from_its_text(
    name: str, parts: list[str]
) -> None:
    signature = Signature(name, *parts)
    assert str(signature) == "|".join([name, *parts])
    assert Signature.parse(str(signature)) == signature


def test_a_column_comes_back_from_json_with_its_signature() -> None:
    column = Column("a", "metric", Signature("a", "tok=en", "judge 0.1.0"))
    stored = to_json(column)
    assert stored["signature"] == "a|tok=en|judge 0.1.0"
    assert (
        TypeAdapter(Column).validate_python(stored | {"labels": (), "values": (), "seen": ()})
        == column
    )


@pytest.mark.parametrize("stored", [None, 3, ["a"]])
def test_a_signature_must_be_a_string(stored: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Signature).validate_python(stored)


def test_a_signature_reaches_worker_processes() -> None:
    signature = Signature("a", "tok=en")
    assert pickle.loads(pickle.dumps(signature)) == signature
    assert repr(signature) == "Signature('a', 'tok=en')"


def test_settings_are_named_by_their_key_tool_or_word() -> None:
    signature = Signature(
        "coherence@3f2a91", "openai/small", "t=0", "mass>=0.5", "json", "judge 0.1"
    )
    assert signature.digest == "3f2a91"
    assert signature.model == "openai/small"
    assert signature.settings == {
        "openai/small": "yes", "t": "0", "mass>": "0.5", "json": "yes", "judge": "0.1",
    }  # fmt: skip
    assert (Signature("a").digest, Signature("a").model) == ("", "")


@pytest.mark.parametrize(
    ("part", "expected"), [("tok=en+ja", ("en", "ja")), ("tok=-", ()), ("stem=no", ())]
)
def test_names_of_a_part(part: str, expected: tuple[str, ...]) -> None:
    assert Signature("a", part).names("tok") == expected


@pytest.mark.parametrize("name", ["comet", "a|b"])
def test_scores_of_another_tool_are_external(name: str) -> None:
    assert Signature.external(name, lower_is_better=False).is_external
    assert str(Signature.external(name, lower_is_better=True)) == f"{name}|external|lower is better"
    assert not Signature(name, "judge 0.1").is_external


def test_parts_are_left_out_by_key() -> None:
    assert Signature("a", "f", "nrefs=2", "v 1").without("f", "nrefs") == ("v 1",)


def test_english_comes_first_among_names() -> None:
    assert join_names(["ja", "en", "char"]) == "en+char+ja"
    assert join_names([]) == "-"
