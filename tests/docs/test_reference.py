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

# The functions of a task come before what they return.
TASKS = {
    "Score and rank": ("evaluate", "rank", "load_result", "Result"),
    "Numbers of a result": ("Estimate", "Comparison", "Ranking", "RunPower"),
    "Before a run": ("plan", "Forecast", "render", "generate", "Outputs"),
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

# Classes that users create; of all others they read the fields.
CREATED = {"Sample", "Scale", "ScriptedProvider"}

# These pages describe the rest; the reference has only the first paragraph of the docstring.
SCORES = "[scores.parquet](results.md#scoresparquet) describes the fields."
DESCRIBED = {
    "Criterion": "[Criteria](criteria.md#levels-examples-checklists) describes the fields.",
    "Failure": SCORES,
    "Provenance": SCORES,
    "Provider": "[Extend judge](extending.md#a-provider) has an example.",
    "RunInfo": "[run.json](results.md#runjson) describes the fields.",
    "Score": SCORES,
    "load_samples": "[Your data](running.md#your-data) describes the columns.",
}

# What only judge itself uses, of classes that users see, and what another name gives more simply.
INTERNAL = {
    "Criterion": {
        "part",
        "form",
        "header_parts",
        "prompt_parts",
        "together",
        "cites",
        "layouts",
        "needs",
        "guarded",
    },
    "RunInfo": {"with_notes", "to_json", "provider", "base_url", "language_name"},
    "Result": {"scatters"},
    "Table": {"own_columns", "save", "files", "load", "rows", "column_scores", "to_frame"},
    "Signature": {"parse", "external", "is_external", "names", "without", "settings"},
    "Scale": {"asked", "question", "value", "expected"},
    "Column": {"share"},
    "Improvement": {"usable", "fails_more"},
    "Sample": {"source_item", "key", "texts", "digests"},
    "Score": {"key"},
    "Failure": {"key"},
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
        re.sub(r"(^|(?<=\.)\s+)Raises .*", "", p, flags=re.DOTALL) for p in text.split("\n\n")
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _signature(name: str, function: Any, shared: Mapping[str, str]) -> str:
    """Return a signature without types, with `**options` for the shared ones; in lines if it is long."""
    signature = inspect.signature(function)
    parameters = [
        part.replace(annotation=part.empty)
        for part in signature.parameters.values()
        if part.name not in shared and part.name not in ("self", "cls")
    ]
    if shared:
        parameters.append(Parameter("options", Parameter.VAR_KEYWORD))
    returned = signature.return_annotation
    arrow = "" if inspect.isclass(function) or returned is Signature.empty else f" -> {returned}"
    lines = [
        line
        for part in parameters
        for line in (["*", part] if part is _first_keyword(parameters) else [part])
    ]
    texts = [str(line).replace("<factory>", "...") for line in lines]
    short = f"{name}({', '.join(texts)}){arrow}"
    return (
        short
        if len(short) <= 110
        else f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + f"){arrow}"
    )


def _first_keyword(parameters: list[Parameter]) -> Parameter | None:
    """Return the parameter that needs a `*` before it."""
    if any(part.kind is part.VAR_POSITIONAL for part in parameters):
        return None
    return next((part for part in parameters if part.kind is part.KEYWORD_ONLY), None)


def _entry(name: str, function: Any) -> Iterator[str]:
    """Yield the heading of a name, then its signature or its fields, its docstring and its members."""
    text, shared = _documented(function)
    text = _without_errors(text)
    if name in DESCRIBED:
        text = f"{text.partition(chr(10) * 2)[0]} {DESCRIBED[name]}"
    internal = INTERNAL.get(name, set())
    yield f"### `judge.{name}`"
    if not inspect.isclass(function):
        yield f"```\n{_signature(f'judge.{name}', function, shared)}\n```"
        yield text
        return
    if name in CREATED:
        yield f"```\n{_signature(f'judge.{name}', function, shared)}\n```"
    yield text
    if fields := [field for field in _fields(name, function) if f"`{field}`" not in text]:
        others = "Other fields: " if "`" in text else "Fields: "
        yield others + ", ".join(f"`{field}`" for field in fields) + "."
    members = list(_members(function, internal))
    if members:
        yield "\n".join(members)


def _members(function: type, internal: set[str]) -> Iterator[str]:
    """Yield a line for each public method and property of a class."""
    inherited = vars(tracking.Outlets) if function is judge.Result else {}
    for part, value in {**vars(function), **inherited}.items():
        member = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if part.startswith("_") or part in internal:
            continue
        if not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        if part == "report" and function is not judge.Result:  # described once, in HEAD
            continue
        if text := (inspect.getdoc(member) or "").partition("\n\n")[0]:
            head = _signature(part, member, {}) if inspect.isfunction(member) else part
            yield f"- `.{_one_line(head)}`: {_without_return(' '.join(text.split()))}"


def _without_return(text: str) -> str:
    """Return a description without its first word "Return", which the arrow of the signature says."""
    described = text.removeprefix("Return ")
    return described[:1].upper() + described[1:]


def _fields(name: str, function: type) -> list[str]:
    """Return the names of the fields of a class; none if its signature or the page linked has them."""
    described = {"Criterion", "Score", "Failure", "Provenance"}
    if name in CREATED | described or not hasattr(function, "__match_args__"):
        return []
    internal = INTERNAL.get(name, set())
    return [field for field in inspect.signature(function).parameters if field not in internal]


def _errors(public: Mapping[str, Any]) -> Iterator[str]:
    """Yield the heading of the errors, the docstring of their base class, and a line for each other one."""
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
            if option == "reasons":  # short for a value of `reply`, and no field of its own
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
    """Return the values that an option may have, as a sentence's end; "" if they are not listed."""
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
        # The page on metrics describes the options of each.
        described = {
            parameter.name: ""
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)
        }
        signature = _signature(name.removeprefix("judge.metrics."), function, described)
        lines.append(f"- `{_one_line(signature)}`")
    blocks.append("\n".join(lines))
    return "\n\n".join(block.strip() for block in blocks if block) + "\n"


def _one_line(signature: str) -> str:
    """Return a signature without the line breaks of a long one."""
    return re.sub(r",\n\)", ")", signature).replace("(\n    ", "(").replace("\n    ", " ")


def test_every_public_name_has_one_task() -> None:
    grouped = [name for names in TASKS.values() for name in names]
    classes = [name for name in judge.__all__ if inspect.isclass(getattr(judge, name))]
    errors = {name for name in classes if issubclass(getattr(judge, name), Exception)}
    rest = {"__version__", "metrics", *(name for name in judge.__all__ if name.endswith("_async"))}
    assert sorted(grouped) == sorted(set(judge.__all__) - errors - rest)


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
