"""The skill for agents, in judge/commands/init/agent_skill/: JUDGE_GOLDEN=write pytest tests/docs/test_skill.py.

In SKILL.md, the parts between `<!-- NAME -->` and `<!-- /NAME -->` are written from the command line and from the pages
of the documentation; the rest is written by hand, and `test_commands.py` runs its commands. references/options.md is
written whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import yaml

from judge import criteria
from judge.cli import app
from judge.cli import options as options_module
from judge.core import plugins
from judge.providers.vendors import VENDORS

ROOT = Path(__file__).resolve().parents[2]
SKILL = ROOT / "judge/commands/init/agent_skill/SKILL.md"
OPTIONS = SKILL.parent / "references" / "options.md"

MODEL_COMMANDS = ("run", "rank", "plan", "validate", "test")
"""The commands that take most options of a run."""
SHARED_BY = 3
"""An option that at least this many of these commands have, with one meaning, is listed once."""
MANY = 12
"""A command with at least this many of the shared options names the missing ones instead."""
COMMON = options_module._COMMON
"""The options in SKILL.md itself: those of the short help."""
OPTIONS_HEAD = f"""# All options of judge

{", ".join(f"`{name}`" for name in MODEL_COMMANDS)} share these options, but for the commands in brackets. An option with
`…` or `NAME,...` takes several values, separated by commas, or can be given again. `--json` means `--format json`.
"""


# Options


def commands(node: Any = app, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield the words of each command, and the command; also of groups that run without a subcommand."""
    for name, command in node.commands.items():
        words = f"{path} {name}".strip()
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield words, command
        if isinstance(command, click.Group):
            yield from commands(command, words)


def options(command: click.Command) -> dict[str, str]:
    """Return the meaning of each option of a command, by flag and value."""
    meanings: dict[str, str] = {}
    for parameter in command.get_params(click.Context(command)):
        is_help = parameter.name in ("help", "help_all", "_click_default_help")
        if isinstance(parameter, click.Option) and not is_help:
            meanings[flag_and_value(parameter)] = (parameter.help or "").rstrip(".")
    return meanings


def flag_and_value(option: click.Option) -> str:
    """Return an option as users type it: the last long flag, because the first may be an alias."""
    flag = next(name for name in option.opts if name.startswith("--"))
    return flag if option.is_flag else f"{flag} {option.metavar}"


def option_line(option: click.Option) -> str:
    return f"- `{flag_and_value(option)}`: {(option.help or '').rstrip('.')}"


def arguments(command: click.Command) -> list[str]:
    """Return the arguments of a command as its help shows them."""
    return [
        parameter.metavar or str(parameter.name).upper()
        for parameter in command.get_params(click.Context(command))
        if isinstance(parameter, click.Argument)
    ]


def shared_options() -> dict[str, tuple[str, list[str]]]:
    """Return the meaning of the options that several commands of a run share, and the commands without it."""
    by_command = {name: options(app.commands[name]) for name in MODEL_COMMANDS}
    shared: dict[str, tuple[str, list[str]]] = {}
    for flag, text in by_command["run"].items():
        lacking = [name for name in MODEL_COMMANDS if by_command[name].get(flag) != text]
        if len(MODEL_COMMANDS) - len(lacking) >= SHARED_BY:
            shared[flag] = (text, lacking)
    return shared


def options_page() -> str:
    """Return all options: first the shared options of the commands of a run, then those of each command."""
    shared = shared_options()
    lines = [OPTIONS_HEAD]
    for flag, (text, lacking) in shared.items():
        exceptions = f" (not {', '.join(lacking)})" if lacking else ""
        lines.append(f"- `{flag}`: {text}{exceptions}")
    for words, command in commands():
        lines += ["", *command_section(words, command, shared)]
    return "\n".join(lines) + "\n"


def command_section(
    words: str, command: click.Command, shared: dict[str, tuple[str, list[str]]]
) -> Iterator[str]:
    """Yield the heading of a command, the names of its shared options, and its other options."""
    unshared_options: dict[str, str] = {}
    shared_flags: list[str] = []
    for flag, text in options(command).items():
        if flag in shared and shared[flag][0] == text:
            shared_flags.append(flag)
        else:
            unshared_options[flag] = text
    yield f"## `{' '.join(['judge', words, *arguments(command)])}`"
    yield ""
    yield one_sentence(command)
    if words not in MODEL_COMMANDS and shared_flags:
        yield f"It shares {names_of_shared(shared_flags, shared)}."
    if unshared_options:
        yield ""
    for flag, text in unshared_options.items():
        yield f"- `{flag}`: {text}"


def one_sentence(command: click.Command) -> str:
    """Return the first sentence of a command's help."""
    return (command.help or "").partition("\n\n")[0].replace("\n", " ").strip()


def names_of_shared(shared_flags: list[str], shared: dict[str, tuple[str, list[str]]]) -> str:
    """Return the names of a command's shared options, or from `MANY` on, of the missing ones."""
    if len(shared_flags) < MANY:
        return ", ".join(flag_of(option) for option in shared_flags)
    missing = [flag_of(option) for option in shared if option not in shared_flags]
    return f"all of these but {', '.join(missing)}"


def flag_of(option: str) -> str:
    return f"`{option.partition(' ')[0]}`"


def common_options() -> str:
    """Return the options that most jobs need, as `judge run` describes them."""
    run = app.commands["run"]
    parameters = {
        parameter.name: parameter
        for parameter in run.get_params(click.Context(run))
        if isinstance(parameter, click.Option)
    }
    return "\n".join(option_line(parameters[name]) for name in COMMON)


# Tables of the documentation


def table(page: str, heading: str, first_cell: str) -> str:
    """Return the table of a section whose first cell is this, without links."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    section = text.partition(f"{heading}\n")[2]
    rows: list[str] = []
    for line in section.splitlines():
        if line.startswith(first_cell) or (rows and line.startswith("|")):
            rows.append(line)
        elif rows:
            break
    assert rows, f"docs/{page}: no table {first_cell!r} below {heading!r}"
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", "\n".join(rows))


# Names


def names_list() -> str:
    """Return the names of criteria, metrics, vendors and engines."""
    names_by_kind: dict[str, list[str]] = {}
    for pairwise, command in ((False, "run"), (True, "rank")):
        for criterion in criteria.builtin("en", pairwise=pairwise):
            kind = f"criteria of `judge {command}` for {criteria.task_of(criterion)}"
            names_by_kind.setdefault(kind, []).append(criterion.name)
    names_by_kind["metrics"] = list(plugins.METRICS)
    names_by_kind["vendors, for `--model VENDOR/NAME`"] = list(VENDORS)
    return "\n".join(f"- {kind}: {', '.join(names)}" for kind, names in names_by_kind.items())


PARTS: dict[str, Callable[[], str]] = {
    "exit codes": lambda: table("running.md", "## Stop, resume, retry", "| exit code "),
    "run files": lambda: table("results.md", "# Files and formats", "| file "),
    "names": names_list,
    "options": common_options,
}


def skill_text() -> str:
    """Return the text of the skill, with the present content of its written parts."""
    text = SKILL.read_text("utf-8")
    for name, part in PARTS.items():
        pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        content = f"\n{part()}\n\n"
        text, count = re.subn(
            pattern, lambda match, part=content: match[1] + part + match[2], text, flags=re.DOTALL
        )
        assert count == 1, f"the skill has no part {name}"
    return text


def test_the_list_of_options_is_written_from_the_command_line() -> None:
    if os.environ.get("JUDGE_GOLDEN") == "write":
        OPTIONS.parent.mkdir(exist_ok=True)
        OPTIONS.write_text(options_page(), encoding="utf-8")
    assert OPTIONS.read_text("utf-8") == options_page()


def test_the_skill_is_written_from_the_command_line_and_the_pages() -> None:
    if os.environ.get("JUDGE_GOLDEN") == "write":
        SKILL.write_text(skill_text(), encoding="utf-8")
    assert SKILL.read_text("utf-8") == skill_text()


def test_the_head_of_the_skill_follows_the_format_of_agent_skills() -> None:
    # https://agentskills.io/specification
    head = yaml.safe_load(SKILL.read_text("utf-8").split("---\n")[1])
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head["name"])
    assert 1 <= len(head["description"]) <= 1024
    assert set(head) <= {"name", "description", "license", "compatibility", "metadata"}


def test_the_skill_is_short() -> None:
    assert len(SKILL.read_text("utf-8").splitlines()) < 500


def test_the_skill_links_only_to_its_own_files() -> None:
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", SKILL.read_text("utf-8"))
    assert [link for link in links if not (SKILL.parent / link).is_file()] == []
    assert "references/options.md" in links
