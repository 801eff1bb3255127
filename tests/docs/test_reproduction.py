"""benchmarks/reproduce: its page has the figures of its scripts, and these name missing files."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.factories import has_line

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "reproduce"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))
SCRIPTS.remove("figures")
SCRIPTS.remove("summaries")
FAST = ("geval", "newsroom", "qags")

Load = Callable[[str], ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Return a function that imports a module of benchmarks/reproduce, for this test only."""
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module
    for name in (*SCRIPTS, "figures", "summaries"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "name",
    [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in SCRIPTS],
)
def test_a_section_of_the_page_has_the_figures_of_its_script(
    name: str, load: Load, shared_data: Callable[[str], Path]
) -> None:
    module = load(name)
    folder = shared_data(module.FILES[0].name).parents[module.FILES[0].name.count("/")]
    figures = load("figures")
    paper = module.reproduce(folder)
    assert paper.unexplained == []
    section = figures.as_markdown(f"{name}.py", module.FILES, paper)
    page = (FOLDER / "README.md").read_text("utf-8")
    assert section == figures.section_of(page, f"{name}.py")


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_names_missing_files_and_their_origins(
    name: str,
    load: Load,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("JUDGE_SHARED", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    module = load(name)
    with pytest.raises(SystemExit) as error:
        load("figures").main(module.FILES, module.reproduce)
    assert error.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"{name}.py: {tmp_path / 'data'} lacks\n")
    for file in module.FILES:
        assert f"  {file.name}: {file.origin}\n" in printed.err


def test_figures_are_compared_to_the_last_printed_digit(load: Load) -> None:
    figure = load("figures").Figure
    assert figure("a", "0.167", 0.16678).equal
    assert figure("a", "0.423300", 0.4233).equal
    assert not figure("a", "0.1668", 0.1667).equal
    assert figure("a", "28.2", 33.06).difference == "+4.9"


def test_a_figure_that_differs_without_a_reason_is_an_error(
    load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = load("figures")
    table = figures.Table("model", [figures.Figure("one", "1.0", 2.0)])
    monkeypatch.setattr(sys, "argv", ["paper.py"])
    with pytest.raises(SystemExit) as error:
        figures.main((), lambda folder: figures.Paper("A paper", "Our method.", [table]))
    assert error.value.code == 1
    assert has_line(capsys.readouterr().err, "paper.py", "one", "without a reason")


def test_tables_share_the_letter_of_a_reason(load: Load) -> None:
    figures = load("figures")
    equal = figures.Figure("one", "1.0", 1.0, "another text")
    different = figures.Figure("two", "1.0", 2.0, "another method")
    tables = [figures.Table("model", [equal, different]), figures.Table("system", [different])]
    text = figures.as_text(figures.Paper("A paper", "Our method.", tables))
    assert text.count("(a) another method") == 1
    assert "another text" not in text
    assert has_line(text, "1 of 3 figures", "last printed digit")


def test_writing_replaces_only_the_section_of_the_script(load: Load) -> None:
    figures = load("figures")
    page = "# Page\n<!-- begin a.py -->\nold\n<!-- end a.py -->\nThe end.\n"
    changed = figures.with_section(page, "a.py", "new")
    assert changed == "# Page\n<!-- begin a.py -->\nnew\n<!-- end a.py -->\nThe end.\n"
    assert figures.section_of(changed, "a.py") == "new"


def test_a_page_without_the_scripts_section_is_an_error(load: Load) -> None:
    page = "# Page\n<!-- begin a.py -->\nold\n<!-- end a.py -->\n"
    with pytest.raises(ValueError, match=r"lacks the line <!-- begin b\.py -->"):
        load("figures").with_section(page, "b.py", "new")
