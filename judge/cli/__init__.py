"""The command line: one short function per subcommand, each a call to `judge.commands`.

Exit codes: 0 all judged; 1 the run finished, but some judgments failed or a suite's expectation is
not met; 2 the run could not start or had to stop (the message says why); 130 interrupted. Heavy
imports are inside the commands, and their options are made late, so that --help is quick.
"""

from __future__ import annotations

import gc
import signal
import sys
from importlib import import_module
from typing import NamedTuple

import click
from click.shell_completion import get_completion_class

from judge.cli.options import Group
from judge.cli.terminal import print_message
from judge.core.errors import JudgeError
from judge.core.messages import speaking_to
from judge.core.version import __version__


class CommandRow(NamedTuple):
    """A command under a heading of `judge --help`.

    `target` is `module:attribute`. `synonyms` are words that people try instead of the command's
    name.
    """

    heading: str
    name: str
    target: str
    synonyms: tuple[str, ...] = ()


_SHOW_RUN = "judge report RUN, or open RUN/report.html"

# Each command is named here and nowhere else: without its row and its modules it is gone.
COMMANDS = (
    CommandRow(
        "Evaluate", "run", "judge.cli.run:run_command", ("eval", "evaluate", "judge")
    ),
    CommandRow("Evaluate", "rank", "judge.cli.run:rank_command"),
    CommandRow("Evaluate", "plan", "judge.cli.run:plan_command"),
    CommandRow(
        "Evaluate", "label", "judge.cli.label:label_command", ("annotate", "rate")
    ),
    CommandRow("Read", "report", "judge.cli.report:report_command"),
    CommandRow("Read", "compare", "judge.cli.compare:compare_command"),
    CommandRow("Read", "validate", "judge.cli.validate:validate_command"),
    CommandRow("Gate", "test", "judge.cli.test:suites_command"),
    CommandRow("Set up", "init", "judge.cli.init:init_command"),
    CommandRow("Set up", "criteria", "judge.cli.criteria:criteria_app"),
    CommandRow("Set up", "doctor", "judge.cli.doctor:doctor_command"),
)
_HINTS = {
    **{word: f"judge {row.name}" for row in COMMANDS for word in row.synonyms},
    "view": _SHOW_RUN,
    "show": _SHOW_RUN,
    "open": _SHOW_RUN,
    "audit": "judge validate DATA --card",
    "card": "judge validate DATA --card",
    "score": "judge run DATA --criteria none",
    "qags": "judge report RUN --item ID",
    "diff": "judge criteria diff A B",
    "choose": "judge validate RUN RUN, which compares their judges",
    "generate": "judge run --generate-only",
    "history": "judge compare RUN RUN",
    "power": "judge plan RUN --detect D",
    "metrics": "judge doctor metrics",
    "cache": "judge doctor cache",
    "schema": "judge doctor schema",
    "suite": "judge init --suite DATA",
    "skill": "judge init --skill -",
}
"""What to use instead of a command that does not exist: a word of other tools, or a former one."""


def _show_completion(
    ctx: click.Context,
    option: click.Parameter,
    shell: str | None,
) -> None:
    """Print the script that completes `judge` in a shell, and exit."""
    completion_class = get_completion_class(shell) if shell else None
    if completion_class is not None:
        completion = completion_class(app, {}, "judge", "_JUDGE_COMPLETE")
        click.echo(completion.source())
        ctx.exit()


@click.group(
    cls=Group,
    hints=_HINTS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Agents: judge init --skill - prints how to use judge.",
)
@click.version_option(
    __version__, message="judge %(version)s", help="Print the version and exit."
)
@click.option(
    "--show-completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    metavar="SHELL",
    callback=_show_completion,
    expose_value=False,
    is_eager=True,
    help="Print the script that completes judge in bash, zsh or fish.",
)
@click.pass_context
def app(ctx: click.Context) -> None:
    """Which of these texts is better, by how much, and how sure are we?"""
    # Messages then name options as they are typed: --max-tokens, not max_tokens.
    ctx.with_resource(speaking_to("command line"))


def _add_commands() -> None:
    """Add every command of the table under its heading."""
    sections: dict[str, dict[str, click.Command]] = {}
    for row in COMMANDS:
        module, attribute = row.target.split(":")
        command = getattr(import_module(module), attribute)
        sections.setdefault(row.heading, {})[row.name] = command
    for heading, commands in sections.items():
        app.add_section(heading, commands)


_add_commands()


def main() -> None:
    """The `judge` command, as a process of its own."""
    try:
        run_app()
    finally:
        # All is written now. While the interpreter ends, Python would answer Ctrl-C with a
        # traceback; the system ends the process in silence.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def run_app() -> None:
    """Run the command of the arguments, and print an error of it. Raises SystemExit."""
    # There are few reference cycles, and looking for them took a tenth of a run.
    gc.set_threshold(50_000, 20, 100)
    try:
        app(prog_name="judge")
    except JudgeError as error:
        notes = getattr(error, "__notes__", ())
        print_message("\n".join([f"judge: {error}", *notes]))
        sys.exit(2)
    except OSError as error:
        # Without a file it is the terminal, or what the output is redirected to.
        subject = error.filename or "cannot write"
        print_message(f"judge: {subject}: {error.strerror or error}")
        sys.exit(2)
