"""YAML with its lines: whatever is wrong with a text is one error, which says where."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import judge
from judge import criteria
from judge.config import load_config
from judge.core import yaml_lines
from judge.core.yaml_lines import Malformed, Twice
from tests.factories import has_line


def test_keys_have_their_line_numbers() -> None:
    parsed = yaml_lines.keys("# first\na: 1\nb:\n  - [2, {c: x}]\n3: null\n")
    assert parsed == ({"a": 1, "b": [[2, {"c": "x"}]], 3: None}, {"a": 2, "b": 3, "3": 5})


def test_merged_keys_may_be_overridden() -> None:
    parsed = yaml_lines.keys(
        "base: &base {a: 1, b: 2}\nown:\n  <<: *base\n  a: 3\n<<: *base\na: 4\n"
    )
    assert parsed.values == {"base": {"a": 1, "b": 2}, "own": {"a": 3, "b": 2}, "a": 4, "b": 2}
    assert parsed.lines == {"base": 1, "own": 2, "<<": 5, "a": 6}
    with pytest.raises(Twice, match=r"a .*second time") as raised:
        yaml_lines.keys("a: 1\nb: 2\na: 3\n")
    assert raised.value.line == 3


def test_duplicate_nested_keys_are_refused() -> None:
    with pytest.raises(Twice, match=r"short .*second time") as raised:
        yaml_lines.values("systems:\n  short: {model: a}\n  short: {model: b}\n")
    assert raised.value.line == 3


@pytest.mark.parametrize("text", ["{1: low, 1.0: lower}", "{0.50: a, .5: b}"])
def test_a_number_is_one_key_however_it_is_written(text: str) -> None:
    with pytest.raises(Twice, match="second time"):
        yaml_lines.values(text)


@pytest.mark.parametrize(
    ("written", "meaning"),
    [("010", 8), ("-010", -8), ("05_0", 40), ("1:30", 90), ("1:30.5", 90.5)],
)
def test_a_number_in_another_base_is_refused(written: str, meaning: float) -> None:
    for text in (f"a: 1\nscale: [1, {written}]", f"a: 1\n{written}: x"):
        with pytest.raises(Malformed, match=f"{written} means {meaning} .* in quotes") as raised:
            yaml_lines.values(text)
        assert raised.value.line == 2


@pytest.mark.parametrize(
    ("written", "value"),
    [("007", 7), ("0", 0), ("1_000", 1000), ("0x1F", 31), ("+12", 12), ("'1:30'", "1:30"),
     ("1.50", 1.5), (".inf", float("inf")), ("'010'", "010"), ("09", "09")],
)  # fmt: skip
def test_a_number_means_what_people_write(written: str, value: object) -> None:
    assert yaml_lines.values(f"a: {written}") == {"a": value}


@pytest.mark.parametrize("text", ["", "# nothing\n", "[1, 2]", "word"])
def test_yaml_without_keys_returns_none(text: str) -> None:
    assert yaml_lines.keys(text) is None
    assert yaml_lines.values(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "line", "facts"),
    [
        ("a: 1\nb: [1\n", 3, ("not YAML", "',' or ']'")), ("a: 2026-02-30", 1, ("not YAML", "day")),
        ("map: {item: Nr #, system: who}\nmodel: m", 2, ("not YAML", "#", "quotes")),
        ("systems: [v1, prompt #2]\nmodel: m", 2, ("not YAML", "#", "quotes")),
        ("a: !!int x", 1, ("not YAML: invalid literal",)), ("a: !!bool x", 1, ("not YAML: ",)),
        ("a: !!timestamp x", 1, ("not YAML: ",)),
        ("a: 1\nb: !!python/object:os.system {}", 2, ("not YAML", "constructor")),
        ("? [1]\n: 2", 1, ("not YAML: found unhashable key",)), ("a: \x00", 1, ("not YAML: unacceptable character",)),
        (f"a: 1\nb: {'9' * 101}", 2, ("not YAML", "more than 100 digits")),
        ("a: &a [*a]", 1, ("alias (*)", "inside")),
        (f"a: &a [{'1, ' * 999}]\nb: &b [{'*a, ' * 999}]", None, ("aliases (*)", "100,000 values")),
        ("[" * 700, None, ("nested too deeply",)), ("- " * 700, None, ("nested too deeply",)),
    ],
)  # fmt: skip
def test_all_that_is_wrong_is_one_error(
    text: str, line: int | None, facts: tuple[str, ...]
) -> None:
    for read in (yaml_lines.values, yaml_lines.keys):
        with pytest.raises(Malformed) as raised:
            read(text)
        assert raised.value.line == line
        assert has_line([str(raised.value)], *facts)


WORDS = st.lists(st.text("aé본?:-", min_size=1, max_size=4), min_size=1, max_size=3).map(" ".join)
"""Texts that a block mapping may hold without quotes, or not."""


@given(text=WORDS)
def test_a_text_inside_brackets_is_read_as_in_a_block(text: str) -> None:
    try:
        in_block = yaml.safe_load(f"k: {text}")["k"]
    except (yaml.YAMLError, TypeError):
        return
    if not isinstance(in_block, str) or text.startswith(("?", "-", ":")) or text.endswith(":"):
        return
    assert yaml_lines.values(f"{{k: {text}}}") == {"k": in_block}
    assert yaml_lines.values(f"[{text}, 1]") == [in_block, 1]
    assert yaml_lines.values(f"{{k: [{text}], '{{': 2}}") == {"k": [in_block], "{": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{question: Where is it?}", {"question": "Where is it?"}),
        ("{Where?: 1, b: 2}", {"Where?": 1, "b": 2}),
        ("[?x, ??, a?b]", ["?x", "??", "a?b"]),
        ("{? a : 1}", {"a": 1}),
        ("{? [a, b] : 1}", None),
        ("? a\n: 1", {"a": 1}),
        ("{a: why?\n  not?, b: 'no?'}", {"a": "why? not?", "b": "no?"}),
        ("{a: why? # comment?\n}", {"a": "why?"}),
        ("[{q: Is it?}, {q: Or?}]", [{"q": "Is it?"}, {"q": "Or?"}]),
    ],
)
def test_a_question_mark_inside_brackets_is_read_as_in_yaml_1_2(text: str, value: object) -> None:
    if value is None:
        with pytest.raises(Malformed, match="unhashable key"):
            yaml_lines.values(text)
    else:
        assert yaml_lines.values(text) == value


def test_lines_stay_right_after_a_question_mark() -> None:
    assert yaml_lines.keys("a: {q: Why?}\nb: [x?,\n  y?]\nc: 1\n").lines == {"a": 1, "b": 2, "c": 4}
    with pytest.raises(Malformed) as raised:
        yaml_lines.keys("a: {q: Why?}\nb: [1\n")
    assert raised.value.line == 3


def test_questions_may_be_flow_lists_in_yaml(tmp_path: Path) -> None:
    run = tmp_path / "run.yaml"
    run.write_text("criteria: [{name: near, question: Is it near?}]\n", encoding="utf-8")
    assert "Is it near?" in load_config(run).criteria[0]
    criterion = tmp_path / "near.yaml"
    criterion.write_text("{question: Is it near?, scale: [1, 5]}\n", encoding="utf-8")
    assert criteria.load(criterion).question == "Is it near?"
    replies = tmp_path / "replies.yaml"
    replies.write_text("[{when: [Is it near?], reply: 4}]\n", encoding="utf-8")
    rows = [{"output": "Is it near?"}]
    result = judge.evaluate(rows, [criterion], model=f"scripted/{replies}", metrics=[])
    assert [score.value for score in result.table.scores] == [4.0]
