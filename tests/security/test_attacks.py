"""Templates, headers and operations that would make something huge are refused with a clear error."""

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


def expand(text: str) -> str:
    return re.sub("⟦(.*?)×([0-9]+)⟧", lambda match: match[1] * int(match[2]), text, flags=re.DOTALL)


def prompt(folder: Path, attack: str | dict[str, str]) -> str:
    files = attack if isinstance(attack, dict) else {"main.jinja": attack}
    for name, text in files.items():
        # The text is judged in every one, or the criterion would be refused for that.
        head = (
            ""
            if name != "main.jinja" or text.startswith("---")
            else HEAD + "{# {{ output }} #}{% if 0 %}{{ output }}{% endif %}"
        )
        (folder / name).write_text(head + expand(text), encoding="utf-8")
    return render(load_criterion(folder / "main.jinja"), ROW)


@pytest.mark.parametrize("attack", ATTACKS["refused"], ids=lambda attack: str(attack)[:60])
def test_a_template_that_would_make_something_huge_is_refused(
    tmp_path: Path, attack: str | dict[str, str]
) -> None:
    with pytest.raises(JudgeError) as caught:
        prompt(tmp_path, attack)
    assert re.search(r"[a-z]\.jinja\b", str(caught.value))
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize("attack", ATTACKS["harmless"], ids=lambda attack: str(attack)[:60])
def test_long_values_within_the_limits_are_rendered(tmp_path: Path, attack: str) -> None:
    assert prompt(tmp_path, attack)


def test_a_template_that_asks_for_too_much_on_one_row_is_refused_there() -> None:
    bomb = "{% if 'go' in output %}{{ output * 100000000 }}{% endif %}{{ output }}"
    criterion = load_criterion(text=HEAD + bomb, name="patient")
    for _ in range(2):
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


def test_a_template_gets_values_without_methods_of_their_own() -> None:
    template = (
        "{{ when[:4] }} {{ path.unlink is defined }} {{ pair }}{% if 0 %}{{ output }}{% endif %}"
    )
    row = {**ROW, "when": date(2026, 11, 28), "path": Path("/tmp"), "pair": (1, 2)}
    assert render(load_criterion(text=HEAD + template, name="x"), row) == "2026 False [1, 2]"


def test_a_long_document_is_a_prompt() -> None:
    text = "A line of a long document.\n" * 40_000
    criterion = load_criterion(
        text=HEAD + "{{ output|trim|replace('\\n', '\\n> ')|indent(2) }}\n{{ output|length }}",
        name="x",
    )
    assert render(criterion, {**ROW, "output": text}).endswith("1080000")
