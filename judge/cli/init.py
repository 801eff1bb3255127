"""`judge init`: start a project or a first suite, or write the skill for agents."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from judge.cli.options import PATH, Command, option
from judge.cli.terminal import print_text, print_untrusted, write
from judge.core.errors import ConfigError

_NEXT = (
    "judge run run.yaml    # score the replies and compare the two prompts; "
    "then open runs/first/report.html",
    "judge test .          # check the suite's expectations",
    "judge doctor          # check your setup for a real judge: keys, extras, cache",
)


@click.command(
    cls=Command,
    takes="run",
    only=("criteria", "map", "systems", "model"),
)
@click.argument(
    "folder",
    type=PATH,
    required=False,
    metavar="[FOLDER]",
    help="Where to write a project (default: this folder).",
)
@option(
    "--suite",
    "Write a suite for these data, or with a run as baseline.",
    type=PATH,
    metavar="DATA|RUN",
)
@option(
    "--skill",
    "Write a skill for agents into this folder of skills; - for the console.",
    type=PATH,
    metavar="FOLDER",
)
@option(
    "--output",
    "File of the suite (default: NAME.judge.yaml); - for the console.",
    type=PATH,
    metavar="FILE",
    group="Output",
)
def init_command(
    folder: Path | None,
    *,
    suite: Path | None,
    skill: Path | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Start a project that runs offline, or a suite.

    \b
    Example:
      judge init my-project

    The project has data, a criterion, run.yaml, a suite and a CI job, and needs no key. Existing
    files are never overwritten. With --skill, write what an agent has to know about judge, for
    example into .claude/skills or .agents/skills. The other options are for --suite.
    """
    # One of three tasks: a skill, a suite or a project. `options` are for a suite.
    if skill is not None:
        if folder is not None or suite is not None or output is not None or options:
            advice = "leave out the other arguments"
            raise ConfigError(f"--skill {skill}: writes the skill alone; {advice}")
        _write_skill(skill)
        return
    if suite is not None:
        if folder is not None:
            problem = "--suite writes a file, not a project"
            raise ConfigError(f"{folder}: {problem}; name it with --output FILE")
        _init_suite(suite, output, options)
        return
    suite_options = list(options)
    if output is not None:
        suite_options.append("output")
    if suite_options:
        advice = "leave it out to start a project"
        raise ConfigError(f"--{suite_options[0]}: is for --suite DATA; {advice}")
    _start_project(folder or Path())


def _start_project(folder: Path) -> None:
    """Write the starter project, and say what to do next."""
    from judge.commands.init.project import write_project

    if folder.is_file():
        raise ConfigError(f"{folder}: is a file; name a folder to start a project in")
    paths = write_project(folder)
    for path in paths:
        print_text(str(path))
    print_text("\nNothing in it needs a key or the network. Next:")
    if folder.resolve() != Path.cwd():
        quoted_folder = shlex.quote(str(folder))
        print_text(f"  cd {quoted_folder}")
    for line in _NEXT:
        print_text(f"  {line}")


def _write_skill(folder: Path) -> None:
    """Write the skill for agents into a folder of skills, or print it."""
    from judge.commands.init.skill import skill_text, write_skill

    if folder == Path("-"):
        click.echo(skill_text(), nl=False)
        return
    if folder.is_file():
        raise ConfigError(f"--skill {folder}: is a file; name a folder of skills")
    for path in write_skill(folder):
        print_text(str(path))


def _init_suite(data: Path, output: Path | None, options: dict[str, Any]) -> None:
    """Write a suite from data and its human ratings, or from a run.

    The run becomes the suite's baseline.
    """
    from judge.commands.init.suite import draft_suite
    from judge.core.format import one_line

    suite = draft_suite(data, output, options)
    if output == Path("-"):
        print_untrusted(suite.text.removesuffix("\n"))
        return
    write("--output", suite.path, suite.text)
    print_text(f"{suite.path}: read it, then judge test {suite.path}")
    for unused in suite.unused_columns:
        print_text(unused)
    # The data's ratings are by criteria that the suite does not have.
    rated_criteria = [one_line(name) for name in suite.untested_ratings()]
    if rated_criteria:
        names = ", ".join(rated_criteria)
        first_criterion = rated_criteria[0]
        print_text(
            f"the suite tests no rated criterion ({names}): judge init --suite {data} "
            f"--criteria {first_criterion}.jinja, with a criterion of that name"
        )
