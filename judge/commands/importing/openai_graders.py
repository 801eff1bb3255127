"""OpenAI's graders: score_model, label_model, text_similarity and string_check, alone, in a list or in an eval.

Formats: https://developers.openai.com/api/docs/guides/graders (hosted evals and graders close on 2026-11-30).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from judge.commands.importing.project import (
    Project,
    Unsupported,
    fenced,
    mapping,
    mappings,
    template,
    texts,
    threshold,
    to_jinja,
)
from judge.core.errors import ConfigError

_OUTPUT = re.compile(r"\{\{\s*sample\.output_text\s*\}\}")
_COLUMN = re.compile(r"\{\{\s*item\.(\w+)\s*\}\}")
_METRICS: dict[str, tuple[str, dict[str, Any]]] = {
    "bleu": ("bleu", {}),
    "meteor": ("meteor", {}),
    "rouge_l": ("rouge", {"types": ["rougeL"]}),
    **{f"rouge_{n}": ("rouge", {"types": [f"rouge{n}"]}) for n in range(1, 6)},
    "eq": ("exact_match", {}),
    "like": ("exact_match", {"contains": True}),
    "ilike": ("exact_match", {"contains": True, "ignore_case": True}),
}
"""The metric and its options for an `evaluation_metric` or an `operation`."""
_STEPS = 10


def is_grader(entry: Mapping[str, Any]) -> bool:
    """Return whether a mapping is a grader."""
    return str(entry.get("type")) in _READERS


def read(entries: Sequence[Mapping[str, Any]], project: Project) -> None:
    """Add graders, or those of evals, to a project. Raises ConfigError."""
    for entry in entries:
        graders = mappings(entry["testing_criteria"], "testing_criteria") if "testing_criteria" in entry else [entry]
        for grader in graders:
            _read_grader(grader, project)
    if not project.rows:
        columns = ", ".join(["output", *sorted(project.columns)])
        project.change(f"data: give your rows with --data FILE, or write them into data.jsonl, with {columns} in each")


def _read_grader(grader: Mapping[str, Any], project: Project) -> None:
    kind = str(grader.get("type"))
    title = str(grader.get("name") or kind)
    try:
        if kind not in _READERS:
            raise Unsupported("judge does not know graders of this type")
        _READERS[kind](grader, title, project)
    except Unsupported as reason:
        project.lack(f"{title:.60} ({kind:.40}): {reason}")
    except ConfigError as error:
        raise ConfigError(f"{title:.60}: {error}") from None


def _score_model(grader: Mapping[str, Any], title: str, project: Project) -> None:
    ends = grader.get("range") or [0, 1]
    numbers = isinstance(ends, list) and len(ends) == 2 and all(type(end) in (int, float) for end in ends)
    if not (numbers and -math.inf < ends[0] < ends[1] < math.inf):
        raise ConfigError(f"range must be two numbers, the lower first, not {ends!r:.40}")
    low, high = ends
    whole = float(low).is_integer() and float(high).is_integer() and 1 < high - low <= 100
    scale = [int(low), int(high)] if whole else {"min": low, "max": high, "step": (high - low) / _STEPS}
    if not whole:
        project.change(f"{title}: scores from {low:g} to {high:g} in {_STEPS} steps, not any number between")
    passes = threshold(grader.get("pass_threshold"), low, high)
    sampling = mapping(grader.get("sampling_params"), "sampling_params")
    for option in ("temperature", "reasoning_effort"):
        if sampling.get(option) is not None:
            project.config.setdefault(option, sampling[option])
    others = sampling.keys() - {"temperature", "reasoning_effort", "max_completions_tokens"}
    project.lack_keys(f"{title}: sampling_params", others)
    _add_prompt(grader, title, {"scale": scale} | ({} if passes is None else {"pass_at": passes}), project)
    project.change(f"{title}: the score is weighted by token probabilities if the model gives them")


def _label_model(grader: Mapping[str, Any], title: str, project: Project) -> None:
    labels, passing = (texts(grader.get(key), key) for key in ("labels", "passing_labels"))
    values = [int(label in passing) for label in labels]
    if len(set(values)) < 2 or not set(passing) <= set(labels):
        raise Unsupported("its passing_labels are not some of its labels, so the labels give no score")
    _add_prompt(grader, title, {"scale": {"labels": labels, "values": values}, "pass_at": 0.5}, project)
    project.change(f"{title}: the score is the probability of a passing label; the most likely label is stored too")


def _add_prompt(grader: Mapping[str, Any], title: str, header: Mapping[str, Any], project: Project) -> None:
    """Add the criterion of a grader's messages."""
    parts = []
    for message in mappings(grader.get("input"), "input"):
        content = message.get("content")
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, dict) else part
            if not isinstance(text, str):
                raise Unsupported("it shows the model something other than text")
            parts.append(text.strip())
    if not parts:
        raise Unsupported("it has no input")
    if len(parts) > 1:
        project.change(f"{title}: its messages are one prompt, in their order")

    def variable(expression: str) -> str:
        if expression == "sample.output_text":
            return fenced("output")
        if not (column := re.fullmatch(r"item\.(\w+)", expression)):
            raise Unsupported(f"the prompt reads {expression:.60}; judge has the columns of item and the output's text")
        project.columns.add(column[1])
        return fenced(column[1])

    prompt = "\n\n".join(parts)
    text = to_jinja(prompt, variable)
    name = project.name(title)
    project.files[f"{name}.jinja"] = template(title, header, text, shows_output=bool(_OUTPUT.search(prompt)))
    project.criteria.append(f"{name}.jinja")
    project.use_model(grader.get("model"), title)


def _compare(grader: Mapping[str, Any], title: str, project: Project) -> None:
    """Add the metric that compares the output with a column of the rows."""
    kind = str(grader.get("evaluation_metric") or grader.get("operation"))
    if kind == "ne":
        raise Unsupported("exact_match is 1 where the texts are equal, and a high mean would look good")
    if kind not in _METRICS:
        raise Unsupported(f"judge has no {kind:.40} (see judge doctor metrics)")
    reference = _COLUMN.fullmatch(str(grader.get("reference", "")).strip())
    if not (_OUTPUT.fullmatch(str(grader.get("input", "")).strip()) and reference):
        raise Unsupported("judge compares {{sample.output_text}} with {{item.COLUMN}}, nothing else")
    known = project.config.setdefault("map", {}).setdefault("references", reference[1])
    if known != reference[1]:
        raise Unsupported(f"metrics compare with one column, {known}; add this one in a second run")
    project.add_metric(*_METRICS[kind])
    project.columns.add(reference[1])
    project.change(f"{title}: {kind} is computed by judge, with a mean and an interval; see docs/metrics.md")
    project.lack_keys(title, grader.keys() & {"pass_threshold"})


def _multi(grader: Mapping[str, Any], title: str, project: Project) -> None:
    graders = grader.get("graders")
    for each in mappings(list(graders.values()) if isinstance(graders, dict) else graders, "graders"):
        _read_grader(each, project)
    project.lack(f"{title}: calculate_output; the overall score is the weighted mean of the criteria (weight)")


def _python(grader: Mapping[str, Any], title: str, project: Project) -> None:
    raise Unsupported("its code is not run; write a metric (docs/adding/metric.md) or keep its scores in a column")


_READERS = {
    "score_model": _score_model,
    "label_model": _label_model,
    "text_similarity": _compare,
    "string_check": _compare,
    "multi": _multi,
    "python": _python,
}


def flat(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of `item` and `sample` as rows of columns: those of the item, and the sample's text as `output`."""
    listed = []
    for row in rows:
        item, sample = row.get("item"), row.get("sample")
        columns = dict(item) if isinstance(item, dict) else {key: v for key, v in row.items() if key != "sample"}
        if isinstance(sample, dict) and isinstance(sample.get("output_text"), str):
            columns["output"] = sample["output_text"]
        listed.append(columns)
    return listed
