"""DeepEval's GEval metrics and test cases, from JSON or from a Python file that is parsed and never run.

Format: https://deepeval.com/docs/metrics-llm-evals
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from judge.commands.importing.project import PASS_FAIL, Project, mappings, texts, threshold
from judge.core.errors import ConfigError

_HIGH = 10
_PASS = 0.5
_HINTS = {
    "FaithfulnessMetric": "the metric claims checks each claim against the source",
    "HallucinationMetric": "the metric claims checks each claim against the source",
    "SummarizationMetric": "the built-in criteria relevance, coherence, consistency and fluency",
    "ArenaGEval": "judge rank, with a criterion that compares two texts",
    "DAGMetric": "a checklist (questions), without branches",
}
_USED = {"name", "criteria", "evaluation_steps", "evaluation_params", "threshold", "strict_mode", "rubric", "model"}
_IDLE = {"async_mode", "verbose_mode", "top_logprobs", "include_reason"}
"""Arguments that change nothing in judge."""
_UNREADABLE = object()
"""The value of an expression that only running the file could tell."""
_TOO_DEEP = (RecursionError, MemoryError)


def is_metric(entry: Mapping[str, Any]) -> bool:
    """Return whether a mapping describes a GEval metric."""
    return "name" in entry and bool(entry.keys() & {"criteria", "evaluation_steps"})


def read(entries: Sequence[Mapping[str, Any]], project: Project) -> None:
    """Add metrics, written as mappings of their arguments, to a project. Raises ConfigError."""
    for metric in entries:
        title = str(metric["name"])
        criteria, steps = metric.get("criteria"), metric.get("evaluation_steps")
        if not criteria and not steps:
            project.lack(f"{title}: neither criteria nor evaluation_steps are written out")
            continue
        keys: dict[str, Any] = {"name": project.name(title)}
        keys["question"] = texts(criteria, f"{title}: criteria")[0] if criteria else f"Judge the text by: {title}."
        if steps:
            keys["steps"] = texts(steps, f"{title}: evaluation_steps")
        shown = texts(metric.get("evaluation_params") or "actual_output", f"{title}: evaluation_params")
        keys["show"] = [each.lower() for each in shown if each.lower() != "actual_output"]
        if metric.get("strict_mode"):
            keys |= {"scale": PASS_FAIL, "pass_at": "pass"}
        else:
            keys |= {"scale": [0, _HIGH], "threshold": threshold(metric.get("threshold", _PASS), 0, 1)}
        if metric.get("rubric"):
            keys["levels"] = {}
            for level in mappings(metric["rubric"], f"{title}: rubric"):
                ends = level.get("score_range")
                if not isinstance(ends, list | tuple) or len(ends) != 2 or not all(type(end) is int for end in ends):
                    raise ConfigError(
                        f"{title}: rubric: a score_range of two whole numbers is expected, not {level!r:.60}"
                    )
                (described,) = texts(level.get("expected_outcome"), f"{title}: rubric: expected_outcome")
                keys["levels"]["-".join(map(str, dict.fromkeys(ends)))] = described
        project.use_model(metric.get("model"), title)
        project.criteria.append(keys)
        project.lack_keys(title, metric.keys() - _USED - _IDLE)
    project.change(
        "GEval: scores are on the criterion's own scale; judge writes the prompt, and weights the score by token "
        "probabilities"
    )
    if not project.rows:
        project.change(
            "data: write your test cases into data.jsonl, one row each: input, actual_output, expected_output"
        )


def read_python(text: str, project: Project) -> None:
    """Add the metrics and test cases of a Python file. Raises ConfigError."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ConfigError(f"line {error.lineno}: not Python: {error.msg}") from None
    except (ValueError, *_TOO_DEEP) as error:
        raise ConfigError(f"not Python: {str(error) or 'nested too deeply'}") from None
    constants: dict[str, Any] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                constants[name] = _value(value, {})
    metrics = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not (called := _called(node)):
            continue
        where = f"{project.origin.name}:{node.lineno}: {called}"
        if called in ("GEval", "LLMTestCase"):
            arguments = _arguments(node, constants)
            for name in [name for name, value in arguments.items() if value is _UNREADABLE]:
                project.lack(f"{where}: {name} is not written out; add it by hand")
                del arguments[name]
            if called == "GEval":
                metrics.append({"name": f"geval_{node.lineno}", **arguments})
                continue
            for name in ("context", "retrieval_context"):
                if isinstance(passages := arguments.get(name), list):
                    arguments[name] = "\n".join(map(str, passages))
            row = {"item" if key == "name" else key: text for key, text in arguments.items() if isinstance(text, str)}
            if "actual_output" in row:
                project.rows.append(row)
            else:
                project.lack("LLMTestCase: a test case whose actual_output is not written out")
        elif called.endswith("Metric") or called in _HINTS:
            project.lack(f"{where}: {_HINTS.get(called, 'write a question of your own')}")
    read(metrics, project)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "id", "") or getattr(node.func, "attr", "")


def _arguments(call: ast.Call, constants: Mapping[str, Any]) -> dict[str, Any]:
    return {word.arg: _value(word.value, constants) for word in call.keywords if word.arg}


def _value(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    """Return the value of an expression that is written out, or _UNREADABLE. A name may stand for such a value."""
    if isinstance(node, ast.Name):
        return constants.get(node.id, _UNREADABLE)
    if isinstance(node, ast.Attribute) and node.attr.isupper():  # LLMTestCaseParams.ACTUAL_OUTPUT
        return node.attr.lower()
    try:
        if isinstance(node, ast.List | ast.Tuple):
            parts = [_value(part, constants) for part in node.elts]
            return _UNREADABLE if any(part is _UNREADABLE for part in parts) else parts
        if isinstance(node, ast.Call) and _called(node) == "Rubric":
            return _arguments(node, constants)
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, *_TOO_DEEP):
        return _UNREADABLE
