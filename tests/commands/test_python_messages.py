"""Errors and reports of the public functions use Python terms and are short in a notebook."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError, JudgeError
from judge.execution.progress import STOPPED, Progress
from tests.factories import has_line

PACKAGE = Path(judge.__file__).parent
ROWS: list[dict[str, Any]] = [
    {"item": item, "system": system, "source": f"What is {item}?", "output": f"{item} by {system}"}
    for item in ("one", "two", "three")
    for system in ("a", "b")
]
POLITE = "polite: Is it polite?"
RATED = [
    {"item": f"i{number}", "output": f"text {number}", "human": {"polite": 1 + number % 5}}
    for number in range(24)
]
# Matches `--reasons`, but not `---` or `a--b`.
FLAG = re.compile(r"(?<![\w-])--[a-z]")


def graded(prompt: str) -> int:
    return 2 + len(prompt) % 3


def evaluate(rows: Any = ROWS, criteria: Any = POLITE, **options: Any) -> judge.Result:
    settings: dict[str, Any] = {"model": graded, "metrics": [], "cache": False}
    return judge.evaluate(rows, criteria, **settings | options)


BAD_CALLS: dict[str, Callable[[], object]] = {
    "no judge": lambda: evaluate(model=None),
    "no judge to rank": lambda: judge.rank(ROWS, "overall"),
    "two models in a name": lambda: evaluate(model="a,b"),
    "an unknown vendor": lambda: evaluate(model="nobody/m"),
    "an unknown option": lambda: evaluate(temprature=1),
    "a former option": lambda: evaluate(force=True),
    "no column output": lambda: evaluate([{"text": "x"}]),
    "no outputs": lambda: judge.card([{"output": " "}], POLITE, model=graded),
    "an unknown column": lambda: evaluate(where={"lang": "ja"}),
    "an unknown system": lambda: evaluate(against="c"),
    "an unknown metric": lambda: evaluate(metrics=["rogue"]),
    "a type of a metric": lambda: evaluate(metrics=["ROUGE-L"]),
    "no judge for claims": lambda: evaluate([], [], model=None, metrics=["claims"]),
    "no judge for qags": lambda: evaluate(ROWS, [], model=None, metrics=["qags"]),
    "half of the models of qags": lambda: evaluate(
        ROWS, [], metrics=["qags"], set={"qags": {"backend": "models"}}
    ),
    "no model of nli": lambda: evaluate(metrics=["nli"]),
    "no references": lambda: evaluate(metrics=["rouge"]),
    "a missing recording": lambda: evaluate(model=None, replay="no-such.jsonl"),
    "a batch of a function": lambda: evaluate(engine="batch"),
    "reasons and a reply without": lambda: evaluate(reasons=True, reply="score"),
    "reasons that are no bool": lambda: evaluate(reasons="yes"),
    "systems without texts": lambda: judge.rank([{"output": "x"}], "overall", model=graded),
    "an unknown probe": lambda: judge.card(ROWS, POLITE, model=graded, probes="x"),
    "no probe": lambda: judge.card(ROWS, POLITE, model=graded, probes=[]),
    "no item to judge": lambda: judge.card(ROWS, POLITE, model=graded, items=0),
    "no criterion to judge": lambda: judge.card(ROWS, [], model=graded),
    "an unknown rating": lambda: judge.diff(POLITE, "safe", ROWS, model=graded, human="x"),
    "an unknown level": lambda: judge.validate(evaluate(), level="document"),  # type: ignore[arg-type]
    "no ratings": lambda: judge.validate(evaluate()),
    "an unknown slice": lambda: judge.slices(evaluate(), "lang"),
    "no difference": lambda: evaluate().power(0),
    "one item": lambda: evaluate().power(items=1),
    "an unknown chart": lambda: evaluate().plot("mean"),
    "a filter without columns": lambda: evaluate().where(),
    "a missing run": lambda: judge.load_result("no-such-run"),
    "a missing suite": lambda: judge.test("no-such.judge.yaml"),
    "no baseline": lambda: judge.test(
        "examples/regression/grounded.judge.yaml", update_baseline=True
    ),
    "an unknown case": lambda: judge.test(
        "examples/regression/grounded.judge.yaml", cases="no such case"
    ),
    "a suite without criteria": lambda: judge.test(
        "examples/regression/grounded.judge.yaml", criteria=[]
    ),
    "nothing to improve by": lambda: judge.improve(POLITE, ROWS, model=graded),
    "too many revisions": lambda: judge.improve(POLITE, ROWS, model=graded, revisions=99),
    "no judge to improve for": lambda: judge.improve(POLITE, RATED),
    "a panel without a writer": lambda: judge.improve(
        POLITE,
        RATED,
        model=[judge.ScriptedProvider(graded, model="one"), judge.ScriptedProvider(graded)],  # type: ignore[arg-type]
    ),
    "a better wording over a file": lambda: judge.improve(
        POLITE, RATED, model=graded, output="pyproject.toml"
    ),
    "no raters": lambda: judge.label(ROWS, POLITE),
    "no systems to write": lambda: judge.generate(ROWS),
    "an invalid system message": lambda: evaluate(system="Be strict."),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_an_error_names_arguments_and_not_flags(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(JudgeError) as raised:
        BAD_CALLS[case]()
    assert not FLAG.search(str(raised.value)), raised.value


@pytest.mark.parametrize(
    ("call", "facts"),
    [
        (lambda: judge.compare(ROWS, ROWS), ("not a list", "judge.evaluate")),  # type: ignore[arg-type]
        (lambda: judge.validate(ROWS), ("not a list", "judge.evaluate")),  # type: ignore[arg-type]
        (lambda: judge.slices(3, "x"), ("not a int", "judge.evaluate")),  # type: ignore[arg-type]
        (lambda: judge.load_result("no-such-run"), ("no-such-run:", "judge.evaluate", "out")),
        (lambda: evaluate(None), ("no data", "judge.evaluate('summaries.jsonl')")),
    ],
)
def test_the_error_for_something_else_than_a_run_or_data_says_what_to_do(
    call: Callable[[], object], facts: tuple[str, ...]
) -> None:
    with pytest.raises(JudgeError) as raised:
        call()
    assert has_line(str(raised.value), *facts)


def test_reports_name_arguments_and_not_flags() -> None:
    result = evaluate()
    plan = judge.plan(ROWS, POLITE, model="gpt-5.4-mini", metrics=[], cache=False, rpm=3)
    reports = [
        result.report(),
        result.power().report(),
        judge.compare(result, evaluate(model=lambda prompt: 1)).report(),
        judge.test("examples/regression/grounded.judge.yaml").report(),
        plan.report(),
    ]
    assert "report(full=True)" in reports[0]
    assert "rpm=3" in reports[-1]
    assert [FLAG.findall(report) for report in reports] == [[]] * len(reports)


def _messages(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the string literals of a module except docstrings and other string statements."""
    lone = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in lone:
            yield node


# Code for the shell only, lists of commands, and texts that name an option in both forms.
SHELL_ONLY = (
    "cli/", "commands/doctor/", "commands/init/", "commands/cache.py", "commands/pytest_support.py",
    "commands/plan/power.py", "commands/label/ratings_needed.py", "commands/loaders.py", "core/messages.py",
    "criteria/header_lists.py", "pytest_plugin.py", "report/table_selection.py", "report/renderers/svg.py",
    "report/views/item.py", "report/renderers/console.py", "results/power.py",
)  # fmt: skip


def test_messages_of_the_library_write_no_flag_but_in_a_whole_command() -> None:
    flags = []
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        source = path.read_text("utf-8")
        if name.startswith(SHELL_ONLY) or not FLAG.search(source):
            continue
        for node in _messages(ast.parse(source)):
            for match in FLAG.finditer(node.value):
                # Python users also run `judge test PATH --full` in a shell.
                is_command = re.search(
                    r"(?:judge|ray|pip) [a-z]|^ --\w|^--suite", node.value[: match.end()]
                )
                if not is_command:
                    flags.append(f"{name}:{node.lineno}: {node.value[:80]}")
    assert flags == []


# In a notebook


def _raised(call: Callable[[], object]) -> JudgeError:
    with pytest.raises(JudgeError) as raised:
        call()
    return raised.value


def test_an_error_of_a_cell_is_its_message_in_ipython() -> None:
    error = _raised(lambda: evaluate(model="m", base_url="http://127.0.0.1:9/v1", retries=0))
    # A group of errors in the context would make IPython print all frames.
    assert error.__context__ is None
    lines = error._render_traceback_()
    assert lines[-1].startswith("Transient: cannot connect to http://127.0.0.1:9")
    assert not any("judge/" in line and "tests" not in line for line in lines)


def test_an_error_in_a_function_of_a_cell_shows_its_line_in_ipython() -> None:
    cell = compile("def mine():\n    evaluate(draws=0)\nmine()", "/tmp/ipykernel_1/2.py", "exec")
    with pytest.raises(ConfigError) as raised:
        exec(cell, {"evaluate": evaluate})
    lines = raised.value._render_traceback_()
    assert any("/tmp/ipykernel_1/2.py" in line and "in mine" in line for line in lines)
    assert lines[-1].startswith("ConfigError: draws: ")


def test_a_failed_run_leaves_the_progress_stopped() -> None:
    progress = Progress()
    with pytest.raises(JudgeError):
        evaluate(model="m", base_url="http://127.0.0.1:9/v1", retries=0, progress=progress)
    assert progress.stage == STOPPED


def test_reasons_are_short_for_a_reply() -> None:
    prompts: list[str] = []

    def explained(prompt: str) -> str:
        prompts.append(prompt)
        return '{"reason": "It is short.", "score": 2}'

    result = evaluate(model=explained, reasons=True)
    assert result.info.config.reply == "reason_then_score"
    assert {score.provenance.reason for score in result.table.scores} == {"It is short."}
    assert evaluate(reasons=False).info.config.reply is None


def test_suites_show_no_address_of_an_object() -> None:
    outcomes = judge.test("examples/regression/grounded.judge.yaml")
    assert has_line(repr(outcomes), "1 of 1 suite passed")
    assert has_line(repr(outcomes[0]), "grounded", "7 of 7 checks")


def test_the_plot_of_a_result_has_the_means_by_default() -> None:
    plotted = evaluate(metrics=["stats"]).plot()
    assert "polite" in plotted.svg
    assert "correlation" not in plotted.svg.casefold()
    assert "stats" not in plotted.svg
    assert repr(plotted) == "<Plot: an SVG document>"
