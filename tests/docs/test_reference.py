"""docs/reference.md is written from the docstrings: JUDGE_GOLDEN=write pytest tests/docs/test_reference.py."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, get_args

import judge
from judge.config import Option, RankConfig, run_options
from judge.config.run_config import Group
from judge.results import tracking

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference.md"
HEAD = """# Options and API

The public names of `import judge`, by task ([examples](python.md)). `help(judge.evaluate)` also prints types and errors.
`**options` are the keywords under [Options](#options). `evaluate`, `rank`, `card` and `test` have an async form:
`await judge.evaluate_async(...)`. All results have a method `report` like that of `Result`; that of `judge.test` also has
the format junit.
"""

# The functions of a task come before the classes of their results.
TASKS = {
    "Score and rank": ("evaluate", "rank", "load_result", "Result"),
    "Numbers of a result": ("Estimate", "Comparison", "Ranking", "RunPower"),
    "Before a run": ("plan", "Plan", "render", "generate", "Outputs"),
    "Compare runs and parts": ("compare", "RunComparison", "slices", "Slices"),
    "Validate, test": (
        "label",
        "validate",
        "Validation",
        "card",
        "JudgeCard",
        "test",
        "Outcomes",
    ),
    "Criteria": (
        "load_criterion",
        "diff",
        "CriterionDiff",
        "improve",
        "Improvement",
        "Criterion",
        "Scale",
        "Example",
    ),
    "Data and scores": (
        "load_samples",
        "Sample",
        "Table",
        "Column",
        "Signature",
        "Score",
        "Failure",
        "Provenance",
        "RunInfo",
    ),
    "Models and progress": ("ScriptedProvider", "Provider", "Progress"),
}
ERRORS = "Errors"

# Classes that users create. Of all other classes, users only read the fields.
CREATED = {"Sample", "Scale", "ScriptedProvider"}

# The reference has only the first paragraph of their docstring and a link to a page.
SCORES = "[scores.parquet](results.md#scoresparquet) describes the fields."
DESCRIBED = {
    "Criterion": "[Criteria](criteria.md#levels-examples-checklists) describes the fields.",
    "Failure": SCORES,
    "Provenance": SCORES,
    "Provider": "[Extend judge](extending.md#a-provider) has an example.",
    "RunInfo": "[run.json](results.md#runjson) describes the fields.",
    "Score": SCORES,
    "Signature": "[Concepts](concepts.md#signature-and-digest) explains it.",
    "load_samples": "[Your data](running.md#your-data) describes the columns.",
}

# Members that only judge itself uses, or that users get more simply by another name.
INTERNAL = {
    "Result": {"scatters"},
    "Table": {"own_columns", "save", "files", "load", "rows", "column_scores", "to_frame"},
    "Scale": {"asked", "question", "value", "expected"},
    "Column": {"share"},
    "Improvement": {"usable", "fails_more"},
    "Sample": {"source_item", "key", "texts", "digests"},
    "ScriptedProvider": {"open", "complete"},
    "Progress": {"flying", "awaited", "unit", "measuring", "rate_limit"},
    "Estimate": {"times"},
}

OPTIONS = """## Options

These names are also the keys of run.yaml and, with dashes, the options of the command line. `help(judge.rank)` lists
those that a function takes. In Python several values are a list; columns, headers and options of metrics are dicts.
`reasons=True` is short for `reply="reason_then_score"`."""

METRICS = """## Metrics

Functions for lists of texts: `references` has a text, or a list of texts, for each output.
[Metrics](metrics.md) describes values and options, `help(judge.metrics.rouge.score)` also types, errors and limits."""


def _documented(function: Any) -> tuple[str, dict[str, str]]:
    """Return a docstring without its list of options, and the options with their descriptions."""
    text, _, listed = (inspect.getdoc(function) or "").partition("\n\nOptions:\n")
    options = dict(line.split(maxsplit=1) for line in listed.splitlines())
    return re.sub(r"^(\S.*)\n(    )", r"\1\n\n\2", text, flags=re.MULTILINE), options


def _without_errors(text: str) -> str:
    """Return a docstring without the sentences about errors that end a paragraph; `help` has them."""
    paragraphs = [
        re.sub(r"(^|(?<=\.)\s+)Raises .*", "", paragraph, flags=re.DOTALL)
        for paragraph in text.split("\n\n")
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _signature(name: str, function: Any, shared: Mapping[str, str]) -> str:
    """Return a signature without types; `**options` stands for the shared options.

    A long signature has a line for each parameter.
    """
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name not in shared and parameter.name not in ("self", "cls")
    ]
    if shared:
        parameters.append(Parameter("options", Parameter.VAR_KEYWORD))
    annotation = signature.return_annotation
    has_arrow = not inspect.isclass(function) and annotation is not Signature.empty
    arrow = f" -> {annotation}" if has_arrow else ""
    texts = []
    first_keyword = _first_keyword(parameters)
    for parameter in parameters:
        if parameter is first_keyword:
            texts.append("*")
        texts.append(str(parameter).replace("<factory>", "..."))
    one_line = f"{name}({', '.join(texts)}){arrow}"
    if len(one_line) <= 110:
        return one_line
    return f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + f"){arrow}"


def _first_keyword(parameters: list[Parameter]) -> Parameter | None:
    """Return the parameter that needs a `*` before it."""
    kinds = [parameter.kind for parameter in parameters]
    if Parameter.VAR_POSITIONAL in kinds or Parameter.KEYWORD_ONLY not in kinds:
        return None
    return parameters[kinds.index(Parameter.KEYWORD_ONLY)]


def _entry(name: str, function: Any) -> Iterator[str]:
    """Yield the heading of a name, then its signature or its fields, its docstring and its members."""
    text, shared = _documented(function)
    text = _without_errors(text)
    if name in DESCRIBED:
        first_paragraph = text.partition("\n\n")[0]
        text = f"{first_paragraph} {DESCRIBED[name]}"
    internal = INTERNAL.get(name, set())
    yield f"### `judge.{name}`"
    if not inspect.isclass(function):
        yield f"```\n{_signature(f'judge.{name}', function, shared)}\n```"
        yield text
        return
    if name in CREATED:
        yield f"```\n{_signature(f'judge.{name}', function, shared)}\n```"
    yield text
    if name in DESCRIBED:
        return
    if fields := [field for field in _fields(name, function) if f"`{field}`" not in text]:
        others = "Other fields: " if "`" in text else "Fields: "
        yield others + ", ".join(f"`{field}`" for field in fields) + "."
    members = list(_members(function, internal))
    if members:
        yield "\n".join(members)


def _members(function: type, internal: set[str]) -> Iterator[str]:
    """Yield a line for each public method and property of a class."""
    inherited = vars(tracking.Outlets) if function is judge.Result else {}
    for name, value in {**vars(function), **inherited}.items():
        member = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if name.startswith("_") or name in internal:
            continue
        if not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        if name == "report" and function is not judge.Result:  # described once, in HEAD
            continue
        if text := (inspect.getdoc(member) or "").partition("\n\n")[0]:
            head = _signature(name, member, {}) if inspect.isfunction(member) else name
            yield f"- `.{_one_line(head)}`: {_without_return(' '.join(text.split()))}"


def _without_return(text: str) -> str:
    """Return a description without its first word "Return", which the arrow of the signature means."""
    description = text.removeprefix("Return ")
    return description[:1].upper() + description[1:]


def _fields(name: str, function: type) -> list[str]:
    """Return the fields of a class; an empty list if its signature has them."""
    if name in CREATED or not hasattr(function, "__match_args__"):
        return []
    internal = INTERNAL.get(name, set())
    return [field for field in inspect.signature(function).parameters if field not in internal]


def _errors(public: Mapping[str, Any]) -> Iterator[str]:
    """Yield the heading of the errors, the docstring of their base class, and a line for each subclass."""
    errors = {
        name: value
        for name, value in public.items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    yield f"## {ERRORS}"
    yield f"### `judge.JudgeError`\n\n{inspect.getdoc(errors.pop('JudgeError'))}"
    lines = []
    for name, error in errors.items():
        text = " ".join((inspect.getdoc(error) or "").split()).partition(". ")[0].rstrip(".")
        lines.append(f"- `judge.{name}`: {text}.")
    yield "\n".join(lines)


def _metrics() -> Iterator[tuple[str, Any]]:
    """Yield the functions that score lists of texts."""
    for module_name in judge.metrics._MODULES:
        module = getattr(judge.metrics, module_name)
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                yield f"judge.metrics.{module_name}.{name}", getattr(module, name)


def options_list(functions: Mapping[str, Any], options: Mapping[str, Option]) -> str:
    """Return the shared options with default and meaning, under their headings in the help of the command line."""
    texts: dict[str, str] = {}
    parameters: dict[str, Parameter] = {}
    for function in functions.values():
        for option, text in _documented(function)[1].items():
            if option == "reasons":  # short for a value of `reply`, and not a field itself
                continue
            texts.setdefault(option, text)
            parameters.setdefault(option, inspect.signature(function).parameters[option])
    groups: dict[str, list[str]] = {heading: [] for heading in get_args(Group)}
    for option in sorted(texts, key=[*options].index):
        default = parameters[option].default
        is_off = default is None or default is False or default == ""
        head = option if is_off else f"{option} = {default!r}"
        text = texts[option].removesuffix(".") + _choices(parameters[option])
        groups[options[option].group].append(f"- `{head}`: {text}.")
    return "\n\n".join(
        f"**{heading}**\n\n" + "\n".join(lines) for heading, lines in groups.items() if lines
    )


def _choices(parameter: Parameter) -> str:
    """Return the values that an option may have, as the end of a sentence; "" if its type lists none."""
    literal = re.match(r"Literal\[(.*?)\]", str(parameter.annotation))
    if literal is None:
        return ""
    *others, last = literal[1].replace("'", "").split(", ")
    return f": {', '.join(others)} or {last}" if others else ""


def page() -> str:
    """Return the whole page."""
    public = {name: getattr(judge, name) for name in judge.__all__ if not name.endswith("_async")}
    functions = {name: value for name, value in public.items() if inspect.isroutine(value)}
    blocks = [HEAD]
    for task, names in TASKS.items():
        blocks.append(f"## {task}")
        for name in names:
            blocks += _entry(name, public[name])
    options = run_options("run") | run_options("plan", RankConfig)
    blocks += [*_errors(public), OPTIONS, options_list(functions, options), METRICS]
    lines = []
    for name, function in _metrics():
        # The page on metrics describes the options of each metric.
        options_of_metric = {
            parameter.name: ""
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)
        }
        signature = _signature(name.removeprefix("judge.metrics."), function, options_of_metric)
        lines.append(f"- `{_one_line(signature)}`")
    blocks.append("\n".join(lines))
    return "\n\n".join(block.strip() for block in blocks if block) + "\n"


def _one_line(signature: str) -> str:
    """Return a signature without the line breaks of a long one."""
    return re.sub(r",\n\)", ")", signature).replace("(\n    ", "(").replace("\n    ", " ")


def test_every_public_name_is_listed_once_below_a_task() -> None:
    listed = [name for names in TASKS.values() for name in names]
    classes = [name for name in judge.__all__ if inspect.isclass(getattr(judge, name))]
    errors = {name for name in classes if issubclass(getattr(judge, name), Exception)}
    async_names = {name for name in judge.__all__ if name.endswith("_async")}
    without_task = {"__version__", "metrics"} | async_names | errors
    assert sorted(listed) == sorted(set(judge.__all__) - without_task)


def test_the_reference_is_written_from_the_docstrings() -> None:
    if os.environ.get("JUDGE_GOLDEN") == "write":
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_public_name_has_a_docstring() -> None:
    assert [
        name
        for name in judge.__all__
        if callable(getattr(judge, name)) and not getattr(judge, name).__doc__
    ] == []
