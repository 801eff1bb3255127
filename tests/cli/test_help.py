"""Options of every command: names, metavars, help and order, in reviewed golden files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import click
import pytest
from click.testing import CliRunner

from judge.cli import COMMANDS, app
from judge.core.errors import ConfigError


def parameter_line(parameter: Any) -> str:
    """Return a parameter as one line. A star marks repeatable parameters; required ones have no brackets."""
    argument = parameter.param_type_name == "argument"
    named = (parameter.metavar or parameter.name) if argument else ", ".join(parameter.opts)
    value = "" if argument or getattr(parameter, "is_flag", False) else f" {parameter.metavar}"
    many = "*" if getattr(parameter, "multiple", False) else ""
    default = parameter.to_info_dict().get("default")
    usual = "" if default is None or getattr(parameter, "is_flag", False) else f" ({default})"
    is_plain = parameter.required or argument  # a metavar of an argument has its own brackets
    whole = f"{named}{value}{many}" if is_plain else f"[{named}{value}]{many}"
    return f"    {whole}{usual}: {parameter.help}"


@pytest.mark.parametrize("name", [row.name for row in COMMANDS])
def test_commands_accept_their_arguments(
    name: str, golden: Callable[[str, str], None], parameters: dict[str, list[Any]]
) -> None:
    """Each command has its own golden file, so removing a command does not change this test."""
    blocks = [
        "\n".join([f"judge {words}", *map(parameter_line, parts)])
        for words, parts in parameters.items()
        if words.split(" ")[0] == name
    ]
    golden(f"help/{name}.txt", "\n\n".join(blocks) + "\n")


def test_help_lists_every_command_of_the_table_under_its_heading() -> None:
    listed = CliRunner().invoke(app, ["--help"]).output.partition("Options:")[0]
    groups = {
        block.partition(":")[0]: re.findall(r"^  (\w+) {2,}", block, re.M)
        for block in listed.split("\n\n")[2:-1]
    }
    expected: dict[str, list[str]] = {}
    for row in COMMANDS:
        expected.setdefault(row.heading, []).append(row.name)
    assert groups == expected
    assert [*groups] == ["Evaluate", "Read", "Gate", "Set up"]


def test_a_synonym_of_a_command_suggests_the_command() -> None:
    for row in COMMANDS:
        for word in row.synonyms:
            with pytest.raises(ConfigError, match=f"use judge {row.name}$"):
                CliRunner().invoke(app, [word], catch_exceptions=False)


@pytest.mark.parametrize(
    "command", [[], ["criteria"], ["doctor"], ["doctor", "cache"]], ids=" ".join
)
def test_command_summaries_are_not_truncated(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = CliRunner().invoke(app, [*command, "--help"]).output
    assert "Options:" in listed
    assert "..." not in listed.partition("]...")[2]


def test_the_help_of_run_shows_an_example_and_ten_options_in_80_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, ["run", "--help"]).output
    common, _, others = shown.partition("Common options:")[2].partition("\nOptions:")
    assert re.findall(r"^  (--[\w-]+)", common, re.M) == [
        "--model", "--base-url", "--criteria", "--metrics", "--map", "--systems", "--limit", "--budget", "--out",
        "--format",
    ]  # fmt: skip
    assert re.findall(r"--[\w-]+", others) == ["--help", "--help-all"]
    assert "judge run replies.csv" in shown.partition("Common options:")[0]
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    "name", [row.name for row in COMMANDS if row.name not in ("criteria", "doctor")]
)
def test_the_help_of_a_command_has_an_example_that_it_accepts(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Skip `criteria` and `doctor`, whose help starts with their subcommands."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(app, [name, "--help"]).output
    _, _, after = shown.partition("Example:\n")
    example = after.partition("\n\n")[0].replace("\\\n", "")
    judge, typed, *words = shlex.split(example)
    assert (judge, typed) == ("judge", name)
    command = app.get_command(click.Context(app), name)
    assert command is not None
    # Raises UsageError for an unknown option, a missing value and extra words.
    command.parse_args(click.Context(command), words)


@pytest.mark.parametrize("name", ["run", "rank", "plan", "validate", "test"])
def test_the_help_of_all_options_lists_each_under_its_heading(
    name: str, parameters: dict[str, list[Any]]
) -> None:
    shown = CliRunner().invoke(app, [name, "--help-all"]).output
    options = {part.opts[0] for part in parameters[name] if part.param_type_name == "option"}
    listed = re.findall(r"^  (?:-\w, )?(--[\w-]+)", shown, re.M)
    assert {*listed} == options | {"--help"}
    assert "Judge:" in shown
    assert "Advanced:" in shown


def test_optional_parameters_are_in_brackets() -> None:
    usage = CliRunner().invoke(app, ["validate", "--help"]).output.splitlines()[0]
    assert usage.endswith("validate [OPTIONS] RUN|DATA|RUN.YAML [RUN]...")


@pytest.mark.parametrize(
    "command",
    [
        "",
        "report",
        "compare",
        "init",
        "criteria",
        "criteria render",
        "doctor",
        "doctor cache",
    ],
)
def test_help_all_is_the_help_of_a_command_that_shows_all_its_options(command: str) -> None:
    short = CliRunner().invoke(app, [*command.split(), "--help"])
    full = CliRunner().invoke(app, [*command.split(), "--help-all"])
    assert (full.exit_code, full.output) == (0, short.output)
    assert "--help-all" not in short.output
