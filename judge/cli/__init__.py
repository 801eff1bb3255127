"""The command line: one short function per subcommand, each a call to `judge.commands`.

Exit codes: 0 all judged; 1 the run finished, but some judgments failed or a suite's expectation is not met; 2 the run
could not start or had to stop (the message says why); 130 interrupted. Heavy imports are inside the commands, and their
options are made late, so that --help is quick.
"""

from __future__ import annotations

import gc
import sys

import click
from click.shell_completion import get_completion_class

from judge.cli.audit import audit_command
from judge.cli.criteria import criteria_app
from judge.cli.doctor import doctor_command
from judge.cli.init import init_command
from judge.cli.label import label_command
from judge.cli.options import Group
from judge.cli.report import (
    compare_command,
    report_command,
    validate_command,
)
from judge.cli.run import plan_command, rank_command, run_command
from judge.cli.terminal import print_message
from judge.cli.test import suites_command
from judge.core.errors import JudgeError
from judge.core.messages import speaking_to
from judge.core.version import __version__

_HINTS = {
    **dict.fromkeys(("eval", "evaluate", "judge"), "judge run"),
    **dict.fromkeys(("view", "show", "open"), "judge report RUN, or open RUN/report.html"),
    **dict.fromkeys(("annotate", "rate"), "judge label"),
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
}
"""What to use instead of a command that does not exist."""


def _show_completion(ctx: click.Context, option: click.Parameter, shell: str | None) -> None:
    """Print the script that completes `judge` in a shell, and exit."""
    completion = get_completion_class(shell) if shell else None
    if completion is not None:
        click.echo(completion(app, {}, "judge", "_JUDGE_COMPLETE").source())
        ctx.exit()


@click.group(cls=Group, hints=_HINTS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="judge %(version)s", help="Print the version and exit.")
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
    ctx.with_resource(speaking_to("command line"))


app.add_section(
    "Evaluate",
    {"run": run_command, "rank": rank_command, "plan": plan_command, "label": label_command},
)
app.add_section(
    "Read", {"report": report_command, "compare": compare_command, "validate": validate_command}
)
app.add_section("Gate", {"test": suites_command, "audit": audit_command})
app.add_section(
    "Set up", {"init": init_command, "criteria": criteria_app, "doctor": doctor_command}
)


def main() -> None:
    """The `judge` command."""
    gc.set_threshold(
        50_000, 20, 100
    )  # looking for reference cycles, of which there are few, took a tenth of a run
    try:
        app(prog_name="judge")
    except JudgeError as error:
        print_message("\n".join([f"judge: {error}", *getattr(error, "__notes__", ())]))
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
    except OSError as error:
        click.echo(f"judge: cannot write: {error.strerror or error}", err=True)
        sys.exit(2)
