"""Templates that try to take all time or memory end with a clear error, at the limits of the process that renders."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import judge
from judge import JudgeError, load_criterion, render
from judge.criteria import builtin
from judge.criteria import render as render_module

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


@pytest.fixture
def a_second_each(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The child has a fifth of the time that a user's has; `benchmarks/attacks.py` measures with all of it."""
    monkeypatch.setattr(render_module, "CPU_SECONDS", 1)
    monkeypatch.setattr(render_module, "_child", render_module._Child())
    yield
    render_module._child.close()


@pytest.mark.usefixtures("a_second_each")
@pytest.mark.parametrize("attack", ATTACKS["refused"], ids=lambda attack: str(attack)[:60])
def test_a_template_that_would_take_all_time_or_memory_is_refused(tmp_path: Path, attack: str | dict[str, str]) -> None:
    with pytest.raises(JudgeError) as caught:
        prompt(tmp_path, attack)
    assert re.search(r"[a-z]\.jinja\b", str(caught.value))
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize("attack", ATTACKS["harmless"], ids=lambda attack: str(attack)[:60])
def test_long_values_within_the_limits_are_rendered(tmp_path: Path, attack: str) -> None:
    assert prompt(tmp_path, attack)


@pytest.mark.usefixtures("a_second_each")
def test_a_template_that_attacks_on_one_row_alone_is_refused_there(tmp_path: Path) -> None:
    bomb = "{% if 'go' in output %}{% for a in range(99999) %}{{ range(99999)|sum }}{% endfor %}{% endif %}{{ output }}"
    criterion = load_criterion(text=HEAD + bomb, name="patient")
    for _ in range(2):  # the next process renders as the first one did
        assert render(criterion, ROW) == ROW["output"].strip()
        with pytest.raises(
            JudgeError, match=r"patient.jinja:4: takes too long: .* of computing time \(row 1: item 'b'\)"
        ):
            render(criterion, {**ROW, "item": "b", "output": "go"})


@pytest.mark.usefixtures("a_second_each")
def test_the_first_prompt_that_takes_too_long_ends_the_estimate_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "slow.jinja"
    path.write_text(HEAD + "{% for a in range(99999) %}{{ range(99999)|sum }}{% endfor %}{{ output }}", "utf-8")
    rows = [ROW | {"item": str(n)} for n in range(50)]
    with pytest.raises(JudgeError, match=r"slow.jinja:4: takes too long: .* \(row 1: item '0'\)"):
        judge.plan(rows, [path], model="m", base_url="http://127.0.0.1:9/v1", metrics=[])


def test_packaged_prompts_need_no_process_and_changed_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_process(*_: object, **__: object) -> None:
        raise OSError("no process here")

    monkeypatch.setattr(render_module, "_child", render_module._Child())
    monkeypatch.setattr(render_module, "Popen", no_process)
    for criterion in builtin("ja"):
        assert render(criterion, {**ROW, "reference": "A text."})
    relevance = load_criterion("relevance")
    changed = load_criterion(text=relevance.template + "{# mine #}", name="relevance")
    with pytest.raises(JudgeError, match=r"cannot start Python to render templates .*no process here"):
        render(changed, ROW)


def test_the_process_loads_nothing_slow_and_sees_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    start = render_module._START.replace("serve(*", "import os; print(*os.environ, *sys.modules) or max(*")
    monkeypatch.setattr(render_module, "_START", start)
    child = render_module._Child()
    output = child.start().communicate()[0].decode()
    assert "judge.criteria.sandbox" in output
    for name in ("OPENAI_API_KEY", "pandas", "numpy", "openai", "pydantic", "yaml"):
        assert name not in output


def test_a_long_document_is_a_prompt() -> None:
    text = "A line of a long document.\n" * 40_000
    criterion = load_criterion(
        text=HEAD + "{{ output|trim|replace('\\n', '\\n> ')|indent(2) }}\n{{ output|length }}", name="x"
    )
    assert render(criterion, {**ROW, "output": text}).endswith("1080000")
