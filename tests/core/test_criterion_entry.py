"""core.criterion_entry: criteria as people write them. Oracle: the rule in its docstring, by hand and as a property."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.criterion_entry import (
    is_file,
    keys_of,
    name_of,
    require_known_scale,
    split_entries,
    to_entries,
)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("none", []),
        ("relevance, mine.jinja,", ["relevance", "mine.jinja"]),
        (
            "relevance,polite: Is it polite, and respectful?",
            ["relevance", "polite: Is it polite, and respectful?"],
        ),
        ("a: Is it?,b: Is it, too?,c.yaml", ["a: Is it?", "b: Is it, too?", "c.yaml"]),
        ("a: Is it clear (e.g., to a customer)?", ["a: Is it clear (e.g., to a customer)?"]),
        ("a: Is it polite, fluency", ["a: Is it polite, fluency"]),
        (
            "丁寧：返信は丁寧ですか。,流暢: 自然ですか？",
            ["丁寧：返信は丁寧ですか。", "流暢: 自然ですか？"],
        ),
        ("polite:Is it polite?", ["polite:Is it polite?"]),
        ("C:\\mine.jinja,https://x/a.jinja", ["C:\\mine.jinja", "https://x/a.jinja"]),
    ],
)
def test_a_comma_inside_a_sentence_belongs_to_it(text: str, entries: list[str]) -> None:
    assert split_entries(text) == entries


@given(st.text(alphabet="ab ,.?:!。"))
def test_splitting_loses_nothing_of_a_sentence(question: str) -> None:
    try:
        entries = split_entries(f"name: q{question}")
    except ValueError:
        return  # another sentence follows without an end of this one
    assert re.sub("[ ,]", "", "".join(entries)) == re.sub("[ ,]", "", f"name: q{question}")
    assert entries[0].startswith("name: q")


@pytest.mark.parametrize(
    ("value", "entries"),
    [
        (["a,b: Is it?"], ["a,b: Is it?"]),
        ([{"polite": "Is it?"}, "fluency"], ["polite: Is it?", "fluency"]),
        ({"a": "Is it?", "b": {"question": "Is it?"}}, ["a: Is it?", '{"name": "b", "question": "Is it?"}']),
        ({"name": "a", "question": "Is it?", "levels": {1: "no"}}, [
            '{"name": "a", "question": "Is it?", "levels": {"1": "no"}}'
        ]),
        (["{name: a, question: 'Is it?'}"], ['{"name": "a", "question": "Is it?"}']),
        (7, 7),
    ],
)  # fmt: skip
def test_entries_of_yaml_and_python(value: object, entries: object) -> None:
    assert to_entries(value) == entries
    assert to_entries(entries) == entries


@pytest.mark.parametrize(
    ("value", "facts"),
    [
        (
            {"question": "Is it?", "scale": [1, 5]},
            ("question:", "no name", "name: NAME"),
        ),
        (
            {"name": "very polite", "question": "Is it?"},
            ("name: 'very polite'", "one word"),
        ),
        ({"polite": 3}, ("'polite':", "NAME: QUESTION")),
        ({"name": "a", "question": {1, 2}}, ("a:", "type set")),
        (
            "a: Is it polite, b: Is it kind?",
            ("'a' and 'b':", ". ? or !"),
        ),
        (["{name: a"], ("not YAML",)),
    ],
)
def test_refuses_invalid_criterion_entries(value: object, facts: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=".*".join(re.escape(fact) for fact in facts)):
        to_entries(value)


def test_the_name_and_kind_of_an_entry() -> None:
    keys = json.dumps({"name": "kind", "scale": [1, 3]})
    names = [
        "relevance",
        "summarization/relevance",
        "dir/my.v2.yaml",
        "polite: Is it in a.txt",
        keys,
        "a.b",
    ]
    assert list(map(name_of, names)) == ["relevance", "relevance", "my.v2", "polite", "kind", "a.b"]
    assert [*map(is_file, names)] == [False, False, True, False, False, False]
    assert keys_of("polite: Is it?") == {"name": "polite", "question": "Is it?"}


@pytest.mark.parametrize(
    ("end", "keys"),
    [
        ("(1-7)", {"scale": [1, 7]}),
        ("(0 to 1)", {"scale": [0, 1]}),
        ("（１～５）", {"scale": [1, 5]}),
        ("(no or yes)", {"scale": {"labels": ["no", "yes"], "values": [0, 1]}}),
        ("(yes/no)", {"scale": {"labels": ["no", "yes"], "values": [0, 1]}}),
        (
            "(pass/fail)",
            {"scale": {"labels": ["fail", "pass"], "values": [0, 1]}, "pass_at": "pass"},
        ),
        ("(O/X)", {"scale": {"labels": ["X", "O"], "values": [0, 1]}}),
        (
            "(정답/오답)",
            {"scale": {"labels": ["오답", "정답"], "values": [0, 1]}, "pass_at": "정답"},
        ),
        (
            "（合格／不合格）",
            {"scale": {"labels": ["不合格", "合格"], "values": [0, 1]}, "pass_at": "合格"},
        ),
    ],
)
def test_a_sentence_may_end_with_its_scale(end: str, keys: dict[str, object]) -> None:
    expected = {"name": "solved", "question": "Is it solved?", **keys}
    assert keys_of(f"solved: Is it solved? {end}") == expected


@pytest.mark.parametrize("end", ["(see the guide)", "(a/b)", "(pass/passed)", "()", "(1-"])
def test_other_brackets_belong_to_the_question(end: str) -> None:
    keys = keys_of(f"solved: Is it solved? {end}")
    assert keys == {"name": "solved", "question": f"Is it solved? {end}"}


@pytest.mark.parametrize(
    "sentence",
    [
        "tone: Is the tone good? (good/bad)",
        "tone: Is the tone good? （良い／悪い）",
        "tone: how the text sounds (warm / neutral / cold)",
        "tone: Is the tone good? (1/5)",
        "tone: Is it done? (pass/passed)",
    ],
)
def test_words_at_the_end_that_are_no_scale_are_refused(sentence: str) -> None:
    with pytest.raises(ValueError, match=r"tone: \(.*is no scale"):
        require_known_scale(sentence)


@pytest.mark.parametrize(
    "entry",
    [
        "tone: Is the tone good (or bad)?",
        "tone: Is the form of address right (Sie/du)?",
        "tone: The form of address is right (Sie/du).",
        "tone: Is it good? (see the guide / the manual)",
        "tone: Is it good? (pass/fail)",
        "tone: Is it good? (1-7)",
        '{"name": "tone", "question": "Good? (good/bad)", "scale": [1, 3]}',
        "prompts/tone (old/new).yaml",
        "relevance",
    ],
)
def test_other_ends_of_a_sentence_are_no_refused_scales(entry: str) -> None:
    require_known_scale(entry)


def test_a_scale_alone_is_no_question() -> None:
    assert keys_of("solved: (1-5)") == {"name": "solved", "question": "(1-5)"}


def test_another_criterion_may_follow_a_scale() -> None:
    text = "solved: Is it, all in all, solved? (pass/fail),polite: Is it polite?,fluency"
    assert split_entries(text) == [
        "solved: Is it, all in all, solved? (pass/fail)",
        "polite: Is it polite?",
        "fluency",
    ]
