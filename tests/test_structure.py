"""The limits that CONTRIBUTING.md states hold, and no test that needs real data skips where the data is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "judge").rglob("*.py"))
MODULE_LINES, FUNCTION_LINES = 600, 60


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_and_its_functions_are_of_readable_size(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = [n.name for n in functions if (n.end_lineno or n.lineno) - n.lineno + 1 > FUNCTION_LINES]
    assert (text.count("\n") <= MODULE_LINES, long) == (True, [])


@pytest.mark.parametrize(
    ("required", "outcome"), [("", {"passed": 1, "skipped": 2}), ("1", {"passed": 1, "failed": 1, "errors": 1})]
)
def test_where_data_is_required_a_test_that_needs_it_may_not_skip(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, required: str, outcome: dict[str, int]
) -> None:
    shared = pytester.mkdir("shared")
    (shared / "data").mkdir()
    (shared / "data" / "here").touch()
    monkeypatch.setenv("JUDGE_SHARED", str(shared))
    monkeypatch.setenv("JUDGE_REQUIRE_DATA", required)
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(
        """
        import pytest

        def test_reads(shared_data):
            assert shared_data("here").exists()

        def test_lacks(shared_tool):
            shared_tool("gone")

        @pytest.mark.skip
        def test_skips(shared_data): ...
        """
    )
    assert pytester.runpytest_inprocess("-p", "no:cacheprovider").parseoutcomes() == outcome
