"""The command line: one short function per subcommand, each a call to `judge.commands`.

Exit codes: 0 all judged; 1 the run finished, but some judgments failed or a suite's expectation is not met; 2 the run
could not start or had to stop (the message says why); 130 interrupted. Heavy imports are inside the commands, and their
options are made late, so that --help is quick.
"""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer

from judge.cli.audit import audit_command
from judge.cli.cache import cache_app
from judge.cli.criteria import criteria_app, metrics_app
from judge.cli.options import Commands
from judge.cli.power import power_command
from judge.cli.qags import qags_command
from judge.cli.report import compare_command, report_command, validate_command
from judge.cli.run import plan_command, rank_command, run_command, score_command
from judge.cli.setup import doctor_command, init_command, schema_command
from judge.cli.terminal import print_message
from judge.cli.test import suite_app, suites_command
from judge.core.errors import JudgeError
from judge.core.messages import speaking_to
from judge.core.version import __version__

app = Commands(
    help="Which of these texts is better, by how much, and how sure are we?",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, function in {
    "init": init_command,
    "run": run_command,
    "score": score_command,
    "qags": qags_command,
    "rank": rank_command,
    "plan": plan_command,
    "report": report_command,
    "validate": validate_command,
    "compare": compare_command,
    "power": power_command,
    "test": suites_command,
    "audit": audit_command,
    "doctor": doctor_command,
    "schema": schema_command,
}.items():
    app.command(name)(function)
app.add_typer(criteria_app, name="criteria")
app.add_typer(metrics_app, name="metrics")
app.add_typer(cache_app, name="cache")
app.add_typer(suite_app, name="suite")


def main() -> None:
    """The `judge` command."""
    gc.set_threshold(50_000, 20, 100)  # looking for reference cycles, of which there are few, took a tenth of a run
    try:
        app(prog_name="judge")
    except JudgeError as error:
        print_message("\n".join([f"judge: {error}", *getattr(error, "__notes__", ())]))
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
    except OSError as error:
        typer.echo(f"judge: cannot write: {error.strerror or error}", err=True)
        sys.exit(2)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    ctx.with_resource(speaking_to("command line"))
    if version:
        typer.echo(f"judge {__version__}")
        raise typer.Exit
