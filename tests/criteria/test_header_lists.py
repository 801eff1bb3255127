"""criteria.header_lists: lists are written into headers. Oracles: files edited by hand, and loading the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from judge import criteria
from judge.core.errors import CriterionError, ParseError
from judge.criteria import header_lists

HEAD = "---\nscale: [1, 5]\n---\n"
EXTENDS = '{% extends "layouts/pointwise.jinja" %}\n'
Write = Callable[[str], str]


FILE = """---
# How a reply sounds.
title: Tone  # of voice
{steps}scale: [1, 5]

# Last.
---
{{{{ output }}}}
--- and no header: steps: [no]
"""
NEW = ("Read it: all.", "- no", "점수를 고른다.", "yes")
WRITTEN = "steps:\n  - 'Read it: all.'\n  - '- no'\n  - 점수를 고른다.\n  - 'yes'\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("steps: []\n", WRITTEN),
        ("steps: [a, 'b']  # two\n", WRITTEN[:-1] + "  # two\n"),
        ("steps:\n  - a\n  - b  # two\n# Then:\n\n", WRITTEN[:-1] + "  # two\n# Then:\n\n"),
        ("steps: # two\n- a\n\n# more\n- |\n  b\n\n", WRITTEN + "\n"),
        ("steps:\n    - >-\n      a\n      b\n", WRITTEN),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_writing_steps_replaces_only_the_old_steps(
    tmp_path: Path, old: str, new: str, end: str, mark: bytes
) -> None:
    path = tmp_path / "my.jinja"
    path.write_bytes(mark + FILE.format(steps=old).replace("\n", end).encode())
    before = criteria.load(str(path))
    criteria.write_lists(path, {"steps": NEW}, ("steps",))
    assert path.read_bytes() == mark + FILE.format(steps=new).replace("\n", end).encode()
    after = criteria.load(str(path))
    assert after.steps == NEW
    assert replace(after, template="") == replace(before, template="", steps=NEW)
    assert [file.name for file in tmp_path.iterdir()] == ["my.jinja"]


def test_steps_are_added_at_the_end_of_a_header_without_steps(write: Write) -> None:
    path = Path(write(FILE.format(steps="")))
    criteria.write_lists(path, {"steps": NEW})
    assert path.read_text(encoding="utf-8") == FILE.format(steps="").replace(
        "# Last.\n", "# Last.\n" + WRITTEN
    )
    path = Path(write("---\n  scale: [1, 5]\n---\n{{ output }}"))
    criteria.write_lists(str(path), {"steps": ["a", "b"]})
    written = "---\n  scale: [1, 5]\n  steps:\n    - a\n    - b\n---\n{{ output }}"
    assert path.read_text(encoding="utf-8") == written


@given(
    st.lists(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=30), min_size=2, max_size=12
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_written_list_can_be_loaded(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "my.jinja"
    path.write_text(HEAD + EXTENDS, encoding="utf-8")
    try:
        steps = criteria.read_steps("\n".join(f"{n}. {line}" for n, line in enumerate(lines, 1)))
    except ParseError:
        reject()
    criteria.write_lists(path, {"steps": steps})
    assert criteria.load(str(path)).steps == steps


def test_existing_steps_are_not_replaced_without_overwrite(write: Write) -> None:
    text = FILE.format(steps="steps: [a]\n")
    path = Path(write(text))
    with pytest.raises(CriterionError, match=r"my\.jinja: already has steps"):
        criteria.write_lists(path, {"steps": NEW})
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "header",
    ["{scale: [1, 5]}", "scale: [1, 5]\ntitle: &t x\nsteps: [&s a]\ndescription: *s", "scale: 5"],
)
def test_a_header_that_cannot_contain_steps_is_left_unchanged(write: Write, header: str) -> None:
    text = f"---\n{header}\n---\n{{{{ output }}}}"
    path = Path(write(text))
    with pytest.raises(CriterionError, match=r"my\.jinja: the steps do not fit|5 is not a scale"):
        criteria.write_lists(path, {"steps": NEW}, ("steps",))
    assert path.read_text(encoding="utf-8") == text
    assert [file.name for file in path.parent.iterdir()] == ["my.jinja"]


@pytest.mark.parametrize(
    "damage", ["steps:\n- a\n- c\nscale", "steps: [a, b]\ntitle: t\nscale", "scale"]
)
def test_nothing_is_written_if_more_than_the_steps_would_change(
    write: Write, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    path = Path(write(HEAD + "{{ output }}"))
    monkeypatch.setattr(
        header_lists, "_with_value", lambda raw, key, values: raw.replace("scale", damage)
    )
    with pytest.raises(CriterionError, match="the steps do not fit"):
        criteria.write_lists(path, {"steps": ["a", "b"]})
    assert path.read_text(encoding="utf-8") == HEAD + "{{ output }}"


def test_links_and_file_modes_are_preserved(write: Write, tmp_path: Path) -> None:
    path, link = Path(write(HEAD + "{{ output }}")), tmp_path / "link.jinja"
    path.chmod(0o640)
    link.symlink_to(path)
    criteria.write_lists(link, {"steps": ["a", "b"]})
    assert link.is_symlink()
    assert criteria.load(str(path)).steps == ("a", "b")
    assert path.stat().st_mode & 0o777 == 0o640


EXAMPLES = [
    {"score": 5, "output": "Good morning.\n\n  How are you?\n"},
    {"score": "yes", "output": "One\u2028two: #3"},
]
BLOCK = (
    "examples:\n  - score: 5\n    output: |\n      Good morning.\n\n        How are you?\n"
    "  - score: 'yes'\n    output: \"One\\Ltwo: #3\"\n"
)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("my.yaml", "question: Is it?\n# Last.", "question: Is it?\n# Last.\n{}seen:\n  - '1234567890123456'\n"),
        ("my.yml", "examples: rated.jsonl # old\nseen: ['0f0f0f0f0f0f0f0f']\nquestion: Is it?\n",
         "{} # old\nseen:\n  - '1234567890123456'\nquestion: Is it?\n"),
        ("my.md", "Is it polite?\n\n---\nVery?",
         "---\n{}seen:\n  - '1234567890123456'\n---\nIs it polite?\n\n---\nVery?"),
        ("my.txt", "---\nexamples:\n- score: 1\n  text: >-\n   a\n   b\n\n# Then:\nscale: [1, 5]\n---\nIs it?",
         "---\n{}\n# Then:\nscale: [1, 5]\nseen:\n  - '1234567890123456'\n---\nIs it?"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_examples_are_written_into_every_kind_of_file(
    tmp_path: Path, name: str, before: str, after: str, end: str, mark: str
) -> None:
    path = tmp_path / name
    path.write_bytes((mark + before).replace("\n", end).encode())
    lists = {"examples": EXAMPLES, "seen": ["1234567890123456"]}
    criteria.write_lists(path, lists, lists)
    block = BLOCK.removesuffix("\n") if " # old" in after else BLOCK
    assert path.read_bytes().decode() == (mark + after.format(block)).replace("\n", end)


def test_a_file_that_would_be_too_long_is_left_unchanged(write: Write) -> None:
    path = Path(write(HEAD + "{{ output }}"))
    with pytest.raises(CriterionError, match="more than 100,000 characters"):
        criteria.write_lists(path, {"examples": [{"score": 5, "output": "x" * 100_000}]})
    assert path.read_text(encoding="utf-8") == HEAD + "{{ output }}"


@pytest.mark.parametrize(
    "text", ['{question: "Is it?", scale: [1, 5]}', '{question: "Is it?"}\n', "a: *b\n"]
)
def test_a_yaml_file_that_cannot_contain_lists_is_left_unchanged(tmp_path: Path, text: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(text)
    with pytest.raises(CriterionError, match=r"the examples and seen do not fit|not YAML"):
        criteria.write_lists(path, {"examples": EXAMPLES, "seen": ["1234567890123456"]})
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("question: Is it?  # old\n", "question: 'Is it: yes?'  # old\n"),
        ("question: >\n  Is it\n  or not?\nweight: 2\n", "question: 'Is it: yes?'\nweight: 2\n"),
        ('question: "Is it?"\n', "question: 'Is it: yes?'\n"),
        ("question:\n  Is it?\n", "question: 'Is it: yes?'\n"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_text_and_a_mapping_replace_the_old_values(old: str, new: str, end: str) -> None:
    """The levels are added or replaced, and the rest of the file does not change."""
    values = {"question": "Is it: yes?", "levels": {"1": "- no", "5": "yes"}}
    levels = "levels:\n  1: '- no'\n  5: 'yes'\n"
    for before, after in (
        (f"# why\n{old}scale: [1, 5]\n", f"# why\n{new}scale: [1, 5]\n{levels}"),
        (f"levels: {{1: a, 5: b}}\n{old}# end\n", f"{levels}{new}# end\n"),
        (f"levels:\n  1: a\n  2-5: b\n{old}# end\n", f"{levels}{new}# end\n"),
    ):
        written = criteria.with_values(Path("a.yaml"), before.replace("\n", end), values)
        assert written == after.replace("\n", end)


def test_a_text_of_several_lines_is_written_as_a_block() -> None:
    written = criteria.with_values(
        Path("a.yaml"), "question: Is it?\nscale: [1, 5]\n", {"question": "Is it?\n\nOr not?"}
    )
    assert written == "question: |-\n  Is it?\n\n  Or not?\nscale: [1, 5]\n"
    assert criteria.of_file_text(Path("a.yaml"), written, "en").question == "Is it?\n\nOr not?"
