"""Templates, headers and operations that would make a huge value are refused with a clear error."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
import yaml

from judge import JudgeError, load_criterion, render

ATTACKS = yaml.safe_load(Path(__file__).with_name("attacks.yaml").read_text(encoding="utf-8"))
ROW = {"item": "a", "system": "s", "output": "A text of words. " * 250, "source": "A source."}
HEAD = "---\nscale: [1, 5]\n---\n"
UNUSED_OUTPUT = "{# {{ output }} #}{% if 0 %}{{ output }}{% endif %}"
"""A criterion without `output` would be refused for that reason."""


def expand(text: str) -> str:
    """Return the text with `⟦x×5⟧` replaced by xxxxx."""
    return re.sub("⟦(.*?)×([0-9]+)⟧", lambda match: match[1] * int(match[2]), text, flags=re.DOTALL)


def prompt(folder: Path, attack: str | dict[str, str]) -> str:
    """Write the files of an attack and return the prompt of its criterion."""
    files = attack if isinstance(attack, dict) else {"main.jinja": attack}
    for name, text in files.items():
        is_criterion = name == "main.jinja"
        head = HEAD + UNUSED_OUTPUT if is_criterion and not text.startswith("---") else ""
        (folder / name).write_text(head + expand(text), encoding="utf-8")
    return render(load_criterion(folder / "main.jinja"), ROW)


@pytest.mark.parametrize("attack", ATTACKS["refused"], ids=lambda attack: str(attack)[:60])
def test_a_template_that_would_make_a_huge_value_is_refused(
    tmp_path: Path, attack: str | dict[str, str]
) -> None:
    with pytest.raises(JudgeError) as error:
        prompt(tmp_path, attack)
    assert re.search(r"[a-z]\.jinja\b", str(error.value))
    assert len(str(error.value)) < 2_000


@pytest.mark.parametrize("attack", ATTACKS["harmless"], ids=lambda attack: str(attack)[:60])
def test_long_values_within_the_limits_are_rendered(tmp_path: Path, attack: str) -> None:
    assert prompt(tmp_path, attack)


def test_a_template_is_refused_only_for_rows_that_make_a_huge_prompt() -> None:
    bomb = "{% if 'go' in output %}{{ output * 100000000 }}{% endif %}{{ output }}"
    criterion = load_criterion(text=HEAD + bomb, name="patient")
    for _ in range(2):  # the error leaves the criterion usable
        assert render(criterion, ROW) == ROW["output"].strip()
        with pytest.raises(
            JudgeError,
            match=r"patient.jinja:4: .*10,000,000 .*\(row 1: item 'b'\)",
        ):
            render(criterion, {**ROW, "item": "b", "output": "go"})


def test_rendering_stops_as_soon_as_a_prompt_is_too_long() -> None:
    endless = (
        "{% for a in range(99999) %}{% for b in range(99999) %}{{ output }}{% endfor %}{% endfor %}"
    )
    with pytest.raises(JudgeError, match="more than 10,000,000 characters"):
        render(load_criterion(text=HEAD + endless, name="endless"), ROW)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ '%5d' % 7 }}|{{ '%*d' % (5, 7) }}|{{ '100 %' }}{{ 7 % 4 }}", "    7|    7|100 %3"),
        ("{{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ [1] * 2 }}", "ababab ababab [1, 1]"),
        ("{{ 6 * 7 }} {{ 2 ** 10 }} {{ 2 ** 0.5 * 0 }}", "42 1024 0.0"),
        ("{{ 2 ** -1 }}{{ -2 * 3 }}{{ 'a' * -1 }}", "0.5-6"),
    ],
)  # fmt: skip
def test_operations_within_the_limits_compute_as_in_python(template: str, text: str) -> None:
    criterion = load_criterion(text=HEAD + template + "{% if 0 %}{{ output }}{% endif %}", name="x")
    assert render(criterion, ROW) == text.strip()


def test_a_template_gets_dates_paths_and_tuples_as_plain_data() -> None:
    template = (
        "{{ when[:4] }} {{ path.unlink is defined }} {{ pair }}{% if 0 %}{{ output }}{% endif %}"
    )
    row = {**ROW, "when": date(2026, 11, 28), "path": Path("/tmp"), "pair": (1, 2)}
    assert render(load_criterion(text=HEAD + template, name="x"), row) == "2026 False [1, 2]"


def test_a_long_document_is_rendered() -> None:
    text = "A line of a long document.\n" * 40_000
    criterion = load_criterion(
        text=HEAD + "{{ output|trim|replace('\\n', '\\n> ')|indent(2) }}\n{{ output|length }}",
        name="x",
    )
    assert render(criterion, {**ROW, "output": text}).endswith("1080000")
