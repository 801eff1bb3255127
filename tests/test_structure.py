"""The limits that CONTRIBUTING.md states hold, and no test that needs real data skips where the data is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "judge").rglob("*.py"))
MODULE_LINES = 800
FUNCTION_LINES = 80


def test_modules_are_short() -> None:
    lines = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
        for path in MODULES
    }
    long = {name: count for name, count in lines.items() if count > MODULE_LINES}
    assert not long, f"modules of more than {MODULE_LINES} lines: {long}"


def test_functions_are_short() -> None:
    long = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    long[f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"] = lines
    assert not long, f"functions of more than {FUNCTION_LINES} lines: {long}"


@pytest.mark.parametrize(
    ("required", "outcome"),
    [("", {"passed": 1, "skipped": 2}), ("1", {"passed": 1, "failed": 1, "errors": 1})],
)
def test_required_data_must_not_be_skipped(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    required: str,
    outcome: dict[str, int],
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
