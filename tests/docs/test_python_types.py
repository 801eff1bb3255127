"""The calls of docs/python.md, and similar calls of users, pass a strict type checker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
SIMILAR_CALLS = """
judge.evaluate(replies, polite, model={"name": "m", "temperature": 0})
judge.evaluate(replies, polite, model=[{"name": "m", "temperature": 0}, "n"], panel="mean")
judge.evaluate([{"output": "x"}], ["relevance"], model="m", where={"lang": ["ja"]}, cache=False)
judge.evaluate("d.csv", "relevance", model="m", set={"rouge": {"stem": False}}, budget="5usd")
judge.rank("d.jsonl", model="m", orders=1, against="a")
judge.load_result("runs/demo").power(0.2, pair=("a", "b")).report()
judge.load_result("runs/demo").estimates_frame()
try:
    judge.plan("d.csv", "relevance", model="m")
except (judge.ConfigError, judge.DataError) as error:
    print(error)
"""


@pytest.mark.slow
def test_the_calls_of_the_page_pass_the_type_checker(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    program = tmp_path / "page.py"
    program.write_text("\n".join([*blocks, SIMILAR_CALLS]), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", str(program)]
    completed = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert completed.returncode == 0, completed.stdout
