"""The command line: one short function per subcommand, each a call to `judge.commands`.

Exit codes: 0 all judged; 1 the run finished, but some judgments failed or a suite's expectation is not met; 2 the run
could not start or had to stop (the message says why); 130 interrupted. Heavy imports are inside the commands, so that
--help is quick.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from judge.cli.audit import audit_command
from judge.cli.cache import cache_app
from judge.cli.compare import compare_command
from judge.cli.criteria import criteria_app, metrics_app
from judge.cli.doctor import doctor_command
from judge.cli.init import init_command
from judge.cli.options import (
    ASKING,
    ENGINE,
    JUDGE,
    KEEPING,
    MEASURES,
    PACE,
    PAIRS,
    PART,
    READING,
    REPLIES,
    RESULTS,
    SCORING,
    Calibrate,
    Criteria,
    Data,
    Language,
    Map,
    MaxTokens,
    MergeCriteria,
    Metrics,
    Replay,
    RetryFailed,
    Set,
    Systems,
    Workers,
    format_option,
    metric_only,
    names_of_criteria,
    option,
    with_options,
)
from judge.cli.plan import plan_command
from judge.cli.power import power_command
from judge.cli.report import report_command
from judge.cli.terminal import BOTH, Commands
from judge.cli.test import suite_app, suites_command
from judge.cli.validate import validate_command
from judge.core.errors import JudgeError
from judge.core.messages import speaking_to
from judge.core.version import __version__

app = Commands(
    help="Which of these texts is better, by how much, and how sure are we?",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(criteria_app, name="criteria")
app.add_typer(metrics_app, name="metrics")
app.add_typer(cache_app, name="cache")
app.add_typer(suite_app, name="suite")


def main() -> None:
    """The `judge` command."""
    try:
        app(prog_name="judge")
    except JudgeError as error:
        from judge.core.format import escape_controls

        typer.echo(escape_controls("\n".join([f"judge: {error}", *getattr(error, "__notes__", ())])), err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
    except OSError as error:
        typer.echo(f"judge: cannot write: {error.strerror or error}", err=True)
        sys.exit(2)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    ctx.with_resource(speaking_to("command line"))
    if version:
        typer.echo(f"judge {__version__}")
        raise typer.Exit


app.command("init")(init_command)


@app.command("run")
@with_options(
    JUDGE, {"criteria": Criteria}, MEASURES, READING, SCORING, {"merge_criteria": MergeCriteria}, ASKING, PACE, ENGINE,
    {"retry_failed": RetryFailed}, PART, REPLIES, {"calibrate": Calibrate}, KEEPING, RESULTS,
)  # fmt: skip
def run_command(data: Data, *, format: str = "console", quiet: bool = False, **params: Any) -> None:
    """Judge and measure every output, and compare the systems."""
    from judge.cli.run import run
    from judge.config import load_config

    run(data, params, load_config, format=format, quiet=quiet)


_BERTSCORE = {
    "precision": Annotated[str | None, option("Of bertscore: fp32 (default) or bf16.", metavar="NAME")],
    "backend": Annotated[str | None, option("Of bertscore: torch (default) or onnx.", metavar="NAME")],
    "fit": Annotated[str | None, option("Fit the corrected bertscore to these ratings by people.", metavar="RATING")],
}


@app.command("score")
@with_options({"metrics": Metrics, "set_": Set}, _BERTSCORE, {"workers": Workers}, READING, PART, KEEPING, RESULTS)
def score_command(data: Data, *, format: str = "console", quiet: bool = False, **params: Any) -> None:
    """Measure every output, without a judge. Compares the systems by metrics alone, and streams large files."""
    from judge.cli.run import run
    from judge.config import load_config

    bertscore_options = {name: params.pop(name) for name in _BERTSCORE}
    run(data, metric_only("bertscore", params, **bertscore_options), load_config, format=format, quiet=quiet)


_QAGS = {
    "backend": Annotated[str | None, option("lexical (default), models or llm.", metavar="NAME")],
    "similarity": Annotated[str | None, option("exact, f1 (default), rouge1, bertscore, ...", metavar="NAME,...")],
}


@app.command("qags")
@with_options(
    _QAGS, JUDGE, {"set_": Set, "map_": Map, "systems": Systems, "language": Language, "max_tokens": MaxTokens},
    {"replay": Replay}, KEEPING, {"format": Annotated[str, format_option(*BOTH)]},
)  # fmt: skip
def qags_command(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="RUN|DATA|RUN.YAML", help="The folder of a run, or what to measure.")],
    *,
    item: Annotated[str | None, option("The item to show (default: the first).", metavar="ID")] = None,
    system: Annotated[str | None, option("The system to show (default: all).", metavar="NAME")] = None,
    format: str = "console",
    **params: Any,
) -> None:
    """Show how QAGS measures one item. Its themes, questions, both answers and similarity; writes nothing."""
    from judge.cli.qags import show_questions

    qags_options = {name: params.pop(name) for name in _QAGS}
    show_questions(ctx, data, metric_only("qags", params, **qags_options), item=item, system=system, format=format)


_COMPARED = Annotated[
    list[str] | None,
    option(
        "Names from prompts/pairwise or .jinja files (default: overall).", metavar="NAME,...", known=names_of_criteria
    ),
]


@app.command("rank")
@with_options(
    JUDGE, {"criteria": _COMPARED}, PAIRS, READING, SCORING, ASKING, PACE, ENGINE, {"retry_failed": RetryFailed}, PART,
    REPLIES, KEEPING, RESULTS,
)  # fmt: skip
def rank_command(data: Data, *, format: str = "console", quiet: bool = False, **params: Any) -> None:
    """Compare the systems' texts two by two, and rank the systems."""
    from judge.cli.run import run
    from judge.config import load_rank_config

    run(data, params, load_rank_config, format=format, quiet=quiet)


app.command("plan")(plan_command)
app.command("report")(report_command)
app.command("validate")(validate_command)
app.command("compare")(compare_command)
app.command("power")(power_command)
app.command("test")(suites_command)
app.command("audit")(audit_command)
app.command("doctor")(doctor_command)
