"""LaTeX compiles the tables of every report, even with hostile names."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core import plugins
from judge.report.table_selection import only_table, tables_by_name
from judge.results.result import Result

_PACKAGES = ("booktabs.sty", "graphicx.sty")


def _lacks_latex() -> str:
    """Return the reason why LaTeX cannot run here, or ""."""
    if shutil.which("pdflatex") is None or shutil.which("kpsewhich") is None:
        return "pdflatex is not installed"
    for package in _PACKAGES:
        looked_up = subprocess.run(["kpsewhich", package], capture_output=True, check=False)
        if looked_up.returncode:
            return f"LaTeX has no {package}"
    return ""


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(_lacks_latex()), reason=_lacks_latex() or "LaTeX is here"),
]

SYSTEMS = ("a_b", "50% & #1", "$x^2~{y}\\\\z", "[c]*", '<d>|`e\'"f"', "gpt-5.4-mini-2026-03-17_awq")
MARKED = '---\nquestion: Is it polite?\nscale: [1, 5]\npass_at: 4\n---\n{% extends "layouts/question.jinja" %}\n'


def _compile(folder: Path, *reports: str) -> None:
    """Compile the reports as one document. Fail on any TeX error."""
    body = "\n\\clearpage\n".join(reports)
    text = (
        "\\documentclass{article}\n\\usepackage{booktabs,graphicx,textcomp}\n"
        f"\\begin{{document}}\n{body}\\end{{document}}\n"
    )
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    output = done.stdout.decode(errors="replace")
    assert done.returncode == 0, output[-2000:]
    assert "Missing character" not in output


def _evaluated(folder: Path, step: int) -> Result:
    """Return a run with scores that depend on the text and on `step`."""
    (folder / "be_polite.jinja").write_text(MARKED, encoding="utf-8")
    rows: list[dict[str, Any]] = [
        {
            "item": f"i_{n}%",
            "system": system,
            "output": f"Text {n} of {system}.",
            "references": [f"Text {n}."],
            "human": {"be_polite": [1 + (n + k) % 5, 1 + (n * k) % 5, 3]} if n < 10 else {},
        }
        for n in range(12)
        for k, system in enumerate(SYSTEMS)
    ]
    model = judge.ScriptedProvider(
        lambda request: str(1 + step * sum(map(ord, request.messages[-1]["content"])) % 5)
    )
    return judge.evaluate(
        rows,
        [folder / "be_polite.jinja"],
        model=model,
        weighting="single",
        metrics="rouge,stats",
        cache=False,
        calibrate=True,
    )


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return _evaluated(tmp_path_factory.mktemp("criteria"), step=1)


def test_the_tables_of_a_run_and_its_validation_compile(result: Result, tmp_path: Path) -> None:
    validation = judge.validate(result, calibrate=True)
    compared = judge.compare(result, _evaluated(tmp_path, step=2))
    reported = (result, validation, compared)
    _compile(tmp_path, *(each.report("latex", full=True) for each in reported))


def test_the_tables_of_slices_compile(result: Result, tmp_path: Path) -> None:
    samples = []
    for sample in result.table.samples:
        topic = "a_b%" if sample.item < "i_2" else "c&d#"
        samples.append(replace(sample, extra={"topic_%": topic}))
    sliced = replace(result, table=replace(result.table, samples=tuple(samples)))
    document = plugins.document(judge.slices(sliced, "topic_%"))
    _compile(tmp_path, plugins.write(document, "latex", full=True))


def test_every_single_table_compiles(result: Result, tmp_path: Path) -> None:
    reports: list[str] = []
    for finished in (result, judge.validate(result, calibrate=True)):
        document = plugins.document(finished)
        tables = [only_table(document, name) for name in tables_by_name(document)]
        reports += [plugins.write(table, "latex") for table in tables]
    assert len(reports) > 10
    _compile(tmp_path, *reports)


def test_every_table_of_a_card_compiles(tmp_path: Path) -> None:
    (tmp_path / "be_polite.jinja").write_text(MARKED, encoding="utf-8")
    rows = [
        {
            "item": f"i_{n}%",
            "system": system,
            "output": f"Shop & #{n} of {system} opens at {n + 7}. It costs {n}0%. Bring $5_{n}.",
            "human": {"be_polite": [1 + n % 5, 1 + (n + k) % 5]},
        }
        for n in range(12)
        for k, system in enumerate(SYSTEMS[:3])
    ]
    card = judge.card(
        rows,
        [tmp_path / "be_polite.jinja"],
        model=judge.ScriptedProvider(
            lambda request: str(1 + sum(map(ord, request.messages[-1]["content"])) % 5)
        ),
        weighting="single",
        cache=False,
    )
    every_table = card.report("latex", full=True)
    assert every_table.count("begin{table}") > 6
    _compile(tmp_path, card.report("latex"), every_table)
