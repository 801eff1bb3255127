"""The limits that CONTRIBUTING.md states hold: lines of a module, lines of a function."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "judge").rglob("*.py"))
MODULE_LINES, FUNCTION_LINES = 600, 60


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_and_its_functions_are_of_readable_size(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [n.name for n in functions if (n.end_lineno or n.lineno) - n.lineno + 1 > FUNCTION_LINES]
    assert (text.count("\n") <= MODULE_LINES, long) == (True, [])
