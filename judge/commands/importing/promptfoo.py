"""promptfoo's configuration: prompts and providers become systems, variables columns, assertions criteria and cases.

Format: https://www.promptfoo.dev/docs/configuration/reference/ and .../expected-outputs/
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from glob import glob
from itertools import count
from pathlib import Path
from typing import Any

from judge.commands.importing.project import (
    DATA,
    PASS_FAIL,
    Project,
    Unsupported,
    dump,
    fenced,
    mapping,
    mappings,
    read_rows,
    template,
    texts,
    threshold,
    to_jinja,
)
from judge.core import yaml_lines
from judge.core.errors import ConfigError, DataError
from judge.core.request_options import hidden

_VENDORS = {
    "anthropic": "anthropic/", "azure": "azure/", "deepseek": "deepseek/", "google": "gemini/", "groq": "groq/",
    "mistral": "mistral/", "ollama": "ollama/", "openai": "", "openrouter": "openrouter/", "together": "together/",
}  # fmt: skip
_ENDPOINTS = {"chat", "responses", "messages", "completion"}
_AGREES = (
    "Does the text state the same facts as the reference answer below? It may leave facts out and add others; it must "
    "not contradict the reference.\n\n"
)
_QUESTIONS = {"llm-rubric": "", "model-graded-closedqa": "", "factuality": _AGREES, "g-eval": ""}
_METRICS: dict[str, tuple[str, dict[str, Any]]] = {
    "similar": ("bertscore", {}),
    "rouge-n": ("rouge", {"types": ["rouge1"]}),
    "bleu": ("bleu", {}),
    "meteor": ("meteor", {}),
    "equals": ("exact_match", {}),
    "contains": ("exact_match", {"contains": True}),
    "icontains": ("exact_match", {"contains": True, "ignore_case": True}),
}
_HINTS = {
    "context-faithfulness": "the metric claims checks each claim against the source",
    "answer-relevance": "write a question, such as: Does the reply answer the request?",
}
_USED = {"description", "prompts", "providers", "tests", "defaultTest", "tags", "evaluateOptions", "outputPath"}
_COLUMN = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def read(config: Mapping[str, Any], project: Project) -> None:
    """Add a promptfoo configuration to a project. Raises ConfigError and DataError."""
    default = mapping(config.get("defaultTest"), "defaultTest")
    defaults = mapping(default.get("vars"), "defaultTest: vars")
    _use_judge(mapping(default.get("options"), "defaultTest: options").get("provider"), "defaultTest", project)
    listed = config.get("tests") or []
    tests: list[dict[str, Any]] = []
    for entry in listed if isinstance(listed, list) else [listed]:
        if isinstance(entry, dict):
            tests.append(entry)
        elif (path := _path(entry, project)).suffix in (".yaml", ".yml"):
            try:
                tests += mappings(yaml_lines.values(_text(path)), path.name)
            except yaml_lines.Malformed as error:
                raise ConfigError(f"{path.name}: {error}") from None
        else:
            for cells in read_rows(path):
                project.lack_keys(f"{path.name}: columns", (name for name in cells if name.startswith("__")))
                tests.append({"vars": {name: cell for name, cell in cells.items() if not name.startswith("__")}})
    known = set[str]()
    for number, test in enumerate(tests, 1):
        item = str(test.get("description") or number)
        item = item if item not in known else f"{item} ({number})"
        known.add(item)
        row = defaults | mapping(test.get("vars"), f"test {item}: vars")
        for name, value in row.items():
            if isinstance(value, list | dict):
                project.lack(f"test {item}: the variable {name} is not a text; each combination is a row of its own")
        plain = {name: v if isinstance(v, str | int | float | None) else str(v) for name, v in row.items()}
        project.rows.append({"item": item, **plain})
    _add_systems(config, project)
    for assertion in _assertions(default.get("assert"), "defaultTest", project):
        _add(assertion, None, project)
    for row, test in zip(project.rows, tests, strict=True):
        for assertion in _assertions(test.get("assert"), f"test {row['item']}", project):
            _add(assertion, row, project)
    project.lack_keys("", config.keys() - _USED)


def _path(value: Any, project: Project) -> Path:
    """Return a file beside the configuration. Raises ConfigError."""
    if not isinstance(value, str) or re.match(r"(?!file:)\w{2,}://", value):
        raise ConfigError(f"{value!r:.60} is not a file beside it; write it into the file")
    folder = project.origin.resolve().parent
    path = (folder / value.removeprefix("file://")).resolve()
    paths = [path, *map(Path, glob(str(path)))]  # noqa: PTH207
    if not all(each.resolve().is_relative_to(folder) for each in paths):
        raise ConfigError(f"{value}: only files in its folder are read")
    return path


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', '') or error}") from error


def _add_systems(config: Mapping[str, Any], project: Project) -> None:
    """Each prompt with each provider is a system; `echo` returns the prompt, which then holds the outputs."""
    providers = config.get("providers") or config.get("targets") or []
    listed = providers if isinstance(providers, list) else [providers]
    systems: dict[str, Any] = {}
    columns: list[str] = []
    for place, prompt in enumerate(_prompts(config.get("prompts") or [], project), 1):
        for provider in listed:
            name, settings = _provider(provider)
            column = _COLUMN.fullmatch(prompt.strip())
            if name == "echo" and column:
                columns.append(column[1])
            elif model := _model(name):
                file = f"prompts/{place}.jinja"
                project.files[file] = to_jinja(prompt, lambda expression: f"{{{{ {expression} }}}}") + "\n"
                given = ((key, settings.get(key)) for key in ("temperature", "max_tokens"))
                options = {key: value for key, value in given if isinstance(value, int | float)}
                label = f"prompt{place}" if len(listed) == 1 else f"prompt{place}_{name.rpartition(':')[2]}"
                systems[_free(label, systems)] = {"prompt": file, "model": model, **options}
            else:
                project.lack(f"provider {_shown(name)}")
    if columns:
        project.config |= {"map": {"output": columns[0]}} if len(columns) == 1 else {"systems": columns}
    elif systems:
        project.config["systems"] = systems


def _prompts(value: Any, project: Project) -> Iterator[str]:
    for entry in value if isinstance(value, list) else [value]:
        text = entry.get("raw", entry.get("id")) if isinstance(entry, dict) else entry
        if not isinstance(text, str):
            raise ConfigError(f"prompts: a text is expected, not {entry!r:.60}")
        if text.startswith("file://") or re.fullmatch(r"[\w./-]+\.(txt|md|j2|jinja|json|ya?ml|py|js|ts)", text):
            path = _path(text, project)
            if path.suffix not in (".txt", ".md", ".j2", ".jinja"):
                project.lack(f"prompt {path.name}: a chat or a program; judge sends one text, and `system`")
                continue
            yield from re.split(r"^---\s*$", _text(path), flags=re.MULTILINE)
        else:
            yield text


def _provider(value: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(value, dict):
        return str(value.get("id") or next(iter(value), "")), mapping(value.get("config"), "config of a provider")
    return str(value), {}


def _shown(provider: str) -> str:
    """Return a provider without what an address may hold, a password or a key, and without what looks like a key."""
    if "://" in provider:
        return f"{provider.partition('://')[0]}://…"
    vendor, _, name = provider.rpartition(":")
    return f"{vendor}:…" if hidden("", name) else f"{provider:.60}"


def _model(provider: str) -> str | None:
    """Return the model of judge for a provider such as `openai:chat:gpt-5`, None if there is none."""
    vendor, *rest = provider.split(":")
    name = ":".join(rest[1:] if len(rest) > 1 and rest[0] in _ENDPOINTS else rest)
    return _VENDORS[vendor] + name if vendor in _VENDORS and name and _shown(provider) == provider[:60] else None


def _use_judge(provider: Any, whose: str, project: Project) -> None:
    if provider:
        name, _ = _provider(provider)
        if model := _model(name):
            project.use_model(model, whose)
        else:
            project.lack(f"{whose}: the judge {_shown(name)}")


def _assertions(value: Any, where: str, project: Project) -> Iterator[dict[str, Any]]:
    """Yield the assertions of a test, those of sets as well."""
    for assertion in mappings(value, f"{where}: assert"):
        if assertion.get("type") == "assert-set":
            project.change(f"{where}: assert-set: each of its assertions has to pass by itself")
            yield from _assertions(assertion.get("assert"), where, project)
        else:
            yield assertion


def _add(assertion: Mapping[str, Any], row: dict[str, Any] | None, project: Project) -> None:
    """Add an assertion of one row, or of all rows (None)."""
    kind = str(assertion.get("type"))
    where = kind if row is None else f"test {row['item']}: {kind}"
    project.lack_keys(where, assertion.keys() & {"transform", "rubricPrompt", "config", "contextTransform"})
    try:
        if kind in _QUESTIONS:
            _add_criterion(kind, assertion, row, project)
        elif kind in _METRICS:
            value, *more = texts(assertion.get("value"), f"{kind}: value")
            if more:
                raise Unsupported("it compares with several texts")
            for each in project.rows if row is None else [row]:
                reference = _filled(value, each)
                if each.setdefault("references", reference) != reference:
                    raise Unsupported("metrics compare with one reference per row, which this test has already")
            name, options = _METRICS[kind]
            project.add_metric(name, options)
            project.change(f"{kind}: the metric {name}, with a mean and an interval; it has no pass mark")
        elif kind == "select-best":
            # A criterion for two texts, and rank.yaml, which compares all systems' texts with it.
            (value, *_) = texts(assertion.get("value"), "select-best: value")
            name = project.name(str(assertion.get("metric") or "best"))
            header = {"scale": {"labels": ["A", "B", "C"], "values": [1, 0, 0.5]}}
            question = f"Which text meets this better?\n\n{to_jinja(value, _variable)}"
            project.files[f"{name}.jinja"] = template(name, header, question, layout="pairwise")
            config = {key: value for key, value in project.config.items() if key in ("model", "systems", "map")}
            project.files["rank.yaml"] = dump({"data": DATA, **config, "criteria": [f"{name}.jinja"]})
            project.change(
                "select-best: judge rank rank.yaml compares the texts in pairs, in both orders, over all rows"
            )
        else:
            usual = "judge has none; check it before judge runs, or bring its result as a column (--score-columns)"
            raise Unsupported(_HINTS.get(kind, usual))
    except Unsupported as reason:
        project.lack(f"{where}: {reason}")


def _add_criterion(kind: str, assertion: Mapping[str, Any], row: dict[str, Any] | None, project: Project) -> None:
    values = texts(assertion.get("value"), f"{kind}: value")
    passes = threshold(assertion.get("threshold", 0.7 if kind == "g-eval" else None), 0, 1)
    header = {"scale": PASS_FAIL, "pass_at": "pass"} if passes is None else {"scale": [0, 10], "threshold": passes}
    if assertion.get("weight") not in (None, 1, 0):
        header["weight"] = assertion["weight"]
    if len(values) > 1:
        project.change(f"{kind}: each of its {len(values)} values is a criterion with a pass mark of its own")
    _use_judge(assertion.get("provider"), kind, project)
    title = str(assertion.get("metric") or kind)
    criteria = project.criteria if row is None else project.case_criteria
    for value in values:
        column = ""
        # One criterion reads each test's own value from a column, unless it has variables: their texts are no part of
        # the instruction.
        if row is not None and _filled(value, row) == value:
            column = _free(re.sub(r"\W+", "_", f"{title}_value"), row)
            row[column] = value
            value = f"{{{{{column}}}}}"
        # A rubric is the author's instruction; a reference answer is material.
        text = _QUESTIONS[kind] + (value if column and kind != "factuality" else to_jinja(value, _variable))
        file = template(title, header, text)
        known = (name for name in criteria if isinstance(name, str) and project.files[name] == file)
        if not (path := next(known, "")):
            path = f"{project.name(title)}.jinja"
            project.files[path] = file
            criteria.append(path)
        name, item = path.removesuffix(".jinja"), {} if row is None else {"item": row["item"]}
        case = f"{item.get('item', 'every text')}: {name}"
        project.cases.append({"name": case, "criterion": name, **item, "expect": "pass"})
    project.change(
        f"{kind}: judge writes the prompt; the verdict is the score against the pass mark, not a word of the model"
    )


def _free(name: str, taken: Container[str]) -> str:
    """Return the name, or with a number if it is taken."""
    return next(each for number in count(1) if (each := name if number == 1 else f"{name}_{number}") not in taken)


def _filled(text: str, row: Mapping[str, Any]) -> str:
    """Return a text with the row's values in place of its variables. Raises Unsupported."""
    filled = _COLUMN.sub(lambda match: str(row.get(match[1], match[0])), text)
    if "{{" in filled:
        raise Unsupported(f"its value reads what the test does not have: {text:.60}")
    return filled


def _variable(expression: str) -> str:
    if not re.fullmatch(r"\w+", expression):
        raise Unsupported(f"the value reads {{{{{expression:.60}}}}}; judge reads columns")
    return fenced(expression)
