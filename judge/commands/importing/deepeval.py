"""DeepEval's GEval metrics and test cases, from JSON or from a Python file that is parsed and never run.

Format: https://deepeval.com/docs/metrics-llm-evals
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.commands.importing.project import PASS_FAIL, Project, mappings, texts, threshold
from judge.core.errors import ConfigError

_METRIC, _TEST_CASE, _RUBRIC = "GEval", "LLMTestCase", "Rubric"
_HIGH = 10
_PASS = 0.5
_MOST_VALUES = 1_000_000
"""Values that are read from a Python file, those of a name each time that it stands there."""
_HINTS = {
    "FaithfulnessMetric": "the metric claims checks each claim against the source",
    "HallucinationMetric": "the metric claims checks each claim against the source",
    "SummarizationMetric": "the built-in criteria relevance, coherence, consistency and fluency",
    "ArenaGEval": "judge rank, with a criterion that compares two texts",
    "DAGMetric": "a checklist (questions), without branches",
}
_UNREADABLE = object()
"""The value of an expression that only running the file could tell."""


def is_metric(entry: Mapping[str, Any]) -> bool:
    """Return whether a mapping describes a GEval metric."""
    return "name" in entry and bool(entry.keys() & {"criteria", "evaluation_steps"})


def read(entries: Sequence[Mapping[str, Any]], project: Project) -> None:
    """Add metrics, written as mappings of their arguments, to a project. Raises ConfigError."""
    for entry in entries:
        _add_metric(entry, project)
    _note(project)


def read_python(text: str, project: Project) -> None:
    """Add the metrics and test cases of a Python file. Raises ConfigError."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        reason = getattr(error, "msg", str(error)) or "nested too deeply"
        raise ConfigError(f"{project.origin}{line}: not Python: {reason}") from None
    constants: dict[str, ast.expr] = {}
    left = iter(range(_MOST_VALUES))
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                constants[name] = value
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not (called := _called(node)):
            continue
        where = f"{project.origin.name}:{node.lineno}: {called}"
        if called in (_METRIC, _TEST_CASE):
            arguments = {word.arg: _value(word.value, constants, left) for word in node.keywords if word.arg}
            unread = [name for name, value in arguments.items() if value is _UNREADABLE]
            for name in unread:
                project.lack(f"{where}: {name} is not written out; add it by hand")
                del arguments[name]
            if called == _METRIC:
                _add_metric({"name": f"geval_{node.lineno}", **arguments}, project)
            else:
                _add_test_case(arguments, project)
        elif called.endswith("Metric") or called in _HINTS:
            project.lack(f"{where}: {_HINTS.get(called, 'write a question of your own')}")
    _note(project)


def _note(project: Project) -> None:
    project.change(
        "GEval: scores are on the criterion's own scale; judge writes the prompt, and weights the score by token "
        "probabilities"
    )
    if not project.rows:
        project.change(
            "data: write your test cases into data.jsonl, one row each: input, actual_output, expected_output"
        )


def _called(node: ast.Call) -> str:
    return getattr(node.func, "id", "") or getattr(node.func, "attr", "")


def _value(node: ast.expr, constants: Mapping[str, ast.expr], left: Iterator[int], depth: int = 0) -> Any:
    """Return the value of an expression that is written out, or _UNREADABLE, also once `left` is used up."""
    if depth > 20 or next(left, None) is None:
        return _UNREADABLE
    if isinstance(node, ast.Name) and node.id in constants:
        return _value(constants[node.id], constants, left, depth + 1)
    if isinstance(node, ast.Attribute) and node.attr.isupper():  # LLMTestCaseParams.ACTUAL_OUTPUT
        return node.attr.lower()
    if isinstance(node, ast.List | ast.Tuple):
        parts = [_value(part, constants, left, depth + 1) for part in node.elts]
        return _UNREADABLE if any(part is _UNREADABLE for part in parts) else parts
    if isinstance(node, ast.Call) and _called(node) == _RUBRIC:
        return {word.arg: _value(word.value, constants, left, depth + 1) for word in node.keywords if word.arg}
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return _UNREADABLE


def _add_metric(metric: Mapping[str, Any], project: Project) -> None:
    title = str(metric["name"])
    where = f"{project.origin}: {title}"
    name = project.name(title, "geval")
    keys: dict[str, Any] = {"name": name}
    criteria, steps = metric.get("criteria"), metric.get("evaluation_steps")
    if not criteria and not steps:
        project.lack(f"{title}: neither criteria nor evaluation_steps are written out")
        return
    keys["question"] = texts(criteria, f"{where}: criteria")[0] if criteria else f"Judge the text by: {title}."
    if steps:
        keys["steps"] = texts(steps, f"{where}: evaluation_steps")
    shown = texts(metric.get("evaluation_params") or "actual_output", f"{where}: evaluation_params")
    keys["show"] = [each.lower() for each in shown if each.lower() != "actual_output"]
    passes = threshold(metric.get("threshold", _PASS), 0, 1, where)
    if metric.get("strict_mode"):
        keys |= {"scale": PASS_FAIL, "pass_at": "pass"}
    else:
        keys |= {"scale": [0, _HIGH], "threshold": passes}
    if metric.get("rubric"):
        keys["levels"] = {}
        for level in mappings(metric["rubric"], f"{where}: rubric"):
            ends = level.get("score_range")
            if not isinstance(ends, list | tuple) or len(ends) != 2 or not all(type(end) is int for end in ends):
                raise ConfigError(f"{where}: rubric: a score_range of two whole numbers is expected, not {level!r:.60}")
            (described,) = texts(level.get("expected_outcome"), f"{where}: rubric: expected_outcome")
            keys["levels"]["-".join(map(str, dict.fromkeys(ends)))] = described
    if isinstance(metric.get("model"), str):
        project.use_model(metric["model"], title)
    project.criteria.append(keys)
    used = {"name", "criteria", "evaluation_steps", "evaluation_params", "threshold", "strict_mode", "rubric", "model"}
    for key in sorted(
        map(str, metric.keys() - used - {"async_mode", "verbose_mode", "top_logprobs", "include_reason"})
    ):
        project.lack(f"{title}: {key}")


def _add_test_case(arguments: Mapping[str, Any], project: Project) -> None:
    row = {}
    for name, value in arguments.items():
        if name in ("context", "retrieval_context") and isinstance(value, list):
            value = "\n".join(map(str, value))
        if isinstance(value, str):
            row["item" if name == "name" else re.sub(r"\W", "_", name)] = value
    if "actual_output" in row:
        project.rows.append(row)
    else:
        project.lack("LLMTestCase: a test case whose actual_output is not written out")
