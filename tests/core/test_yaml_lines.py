"""YAML with its lines: whatever is wrong with a text is one error, which says where."""

from __future__ import annotations

import pytest
import yaml

from judge.core import yaml_lines
from judge.core.yaml_lines import Malformed, Twice


def test_keys_stand_on_the_lines_where_they_are_written() -> None:
    found = yaml_lines.keys("# first\na: 1\nb:\n  - [2, {c: x}]\n3: null\n")
    assert found == ({"a": 1, "b": [[2, {"c": "x"}]], 3: None}, {"a": 2, "b": 3, "3": 5})


def test_keys_that_are_merged_in_may_stand_again() -> None:
    found = yaml_lines.keys("base: &base {a: 1, b: 2}\nown:\n  <<: *base\n  a: 3\n<<: *base\na: 4\n")
    assert found.values == {"base": {"a": 1, "b": 2}, "own": {"a": 3, "b": 2}, "a": 4, "b": 2}
    assert found.lines == {"base": 1, "own": 2, "<<": 5, "a": 6}
    with pytest.raises(Twice, match="a stands here for the second time") as raised:
        yaml_lines.keys("a: 1\nb: 2\na: 3\n")
    assert raised.value.line == 3


def test_a_key_below_another_stands_once_too() -> None:
    with pytest.raises(Twice, match="short stands here for the second time") as raised:
        yaml_lines.values("systems:\n  short: {model: a}\n  short: {model: b}\n")
    assert raised.value.line == 3


@pytest.mark.parametrize("text", ["", "# nothing\n", "[1, 2]", "word"])
def test_what_has_no_keys_is_none(text: str) -> None:
    assert yaml_lines.keys(text) is None
    assert yaml_lines.values(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("a: 1\nb: [1\n", 3, "not YAML: expected ',' or ']'"), ("a: 2026-02-30", 1, "not YAML: day is out of range"),
        ("a: !!int x", 1, "not YAML: invalid literal"), ("a: !!bool x", 1, "not YAML: "),
        ("a: !!timestamp x", 1, "not YAML: "),
        ("a: 1\nb: !!python/object:os.system {}", 2, "not YAML: could not determine a constructor"),
        ("? [1]\n: 2", 1, "not YAML: found unhashable key"), ("a: \x00", 1, "not YAML: unacceptable character"),
        (f"a: 1\nb: {'9' * 101}", 2, "not YAML: a number of more than 100 digits"),
        ("a: &a [*a]", 1, "an alias (*) inside the value that it repeats"),
        (f"a: &a [{'1, ' * 999}]\nb: &b [{'*a, ' * 999}]", None, "aliases (*) that repeat more than 100,000 values"),
        ("[" * 1500, None, "nested too deeply"), ("{a: " * 3000, None, "nested too deeply"),
        ("- " * 3000, None, "nested too deeply"),
    ],
)  # fmt: skip
def test_all_that_is_wrong_is_one_error(text: str, line: int | None, said: str) -> None:
    for read in (yaml_lines.values, yaml_lines.keys):
        with pytest.raises(Malformed) as raised:
            read(text)
        assert (str(raised.value)[: len(said)], raised.value.line) == (said, line)
