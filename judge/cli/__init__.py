"""The command line: one short function per subcommand, each a call to `judge.api`.

Exit codes: 0 all judged; 1 the run finished and some judgments failed, or something that a suite expects is not met;
2 it could not run, or had to stop (the message says why); 130 interrupted. Heavy imports stand inside the commands, so
that --help is quick.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from judge import __version__
from judge.cli.auditing import audit_command
from judge.cli.caching import cache_app
from judge.cli.comparing import compare_command
from judge.cli.diffing import diff_command
from judge.cli.options import (
    BaseUrl,
    Budget,
    CacheFolder,
    Calibrate,
    Criteria,
    Data,
    Deadline,
    Draws,
    Engine,
    Format,
    KeyEnv,
    Language,
    Limit,
    Map,
    MaxConcurrency,
    MaxTokens,
    MergeCriteria,
    Metrics,
    MinMass,
    Model,
    NoCache,
    Out,
    Quiet,
    RayWorkers,
    Record,
    Replay,
    Reply,
    Retries,
    RetryFailed,
    Rpm,
    Seed,
    Set,
    Structured,
    Systems,
    Temperature,
    Timeout,
    Tpm,
    Weighting,
    Workers,
    option,
    read,
)
from judge.cli.planning import command as plan_command
from judge.cli.power import power_command
from judge.cli.reporting import report_command
from judge.cli.suites import suite_app
from judge.cli.testing import suites_command
from judge.cli.validating import validate_command
from judge.errors import JudgeError

app = typer.Typer(
    help="Which of these texts is better, by how much, and how sure are we?",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
criteria_app = typer.Typer(help="The criteria that texts are judged on.", no_args_is_help=True)
metrics_app = typer.Typer(help="What texts are measured by.", no_args_is_help=True)
app.add_typer(criteria_app, name="criteria")
app.add_typer(metrics_app, name="metrics")
app.add_typer(cache_app, name="cache")
app.add_typer(suite_app, name="suite")


def main() -> None:
    """The `judge` command."""
    try:
        app()
    except JudgeError as error:
        typer.echo("\n".join([f"judge: {error}", *getattr(error, "__notes__", ())]), err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
    except OSError as error:
        typer.echo(f"judge: cannot write: {error.strerror or error}", err=True)
        sys.exit(2)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"judge {__version__}")
        raise typer.Exit


@app.command("run")
def run_command(
    ctx: typer.Context,
    data: Data,
    *,
    model: Model = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    criteria: Criteria = None,
    metrics: Metrics = None,
    set_: Set = None,
    workers: Workers = None,
    map_: Map = None,
    systems: Systems = None,
    language: Language = None,
    weighting: Weighting = None,
    draws: Draws = None,
    min_mass: MinMass = None,
    reply: Reply = None,
    structured: Structured = None,
    merge_criteria: MergeCriteria = None,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    max_concurrency: MaxConcurrency = None,
    timeout: Timeout = None,
    retries: Retries = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    deadline: Deadline = None,
    budget: Budget = None,
    engine: Engine = None,
    ray_workers: RayWorkers = None,
    retry_failed: RetryFailed = None,
    limit: Limit = None,
    seed: Seed = None,
    replay: Replay = None,
    record: Record = None,
    calibrate: Calibrate = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    out: Out = None,
    format: Format = "console",
    quiet: Quiet = False,
) -> None:
    """Judge and measure every output, and compare the systems."""
    from judge.cli.running import run
    from judge.config import plan

    run(ctx, plan)


@app.command("score")
def score_command(
    ctx: typer.Context,
    data: Data,
    *,
    metrics: Metrics = None,
    set_: Set = None,
    precision: Annotated[str | None, option("Of bertscore: fp32 (default) or bf16.", metavar="NAME")] = None,
    backend: Annotated[str | None, option("Of bertscore: torch (default) or onnx.", metavar="NAME")] = None,
    fit: Annotated[
        str | None, option("Fit the corrected bertscore to these ratings by people.", metavar="RATING")
    ] = None,
    workers: Workers = None,
    map_: Map = None,
    systems: Systems = None,
    limit: Limit = None,
    seed: Seed = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    out: Out = None,
    format: Format = "console",
    quiet: Quiet = False,
) -> None:
    """Measure every output with metrics alone, and compare the systems. Asks no judge; streams large files."""
    from judge.cli.running import run
    from judge.config import plan

    run(ctx, plan)


@app.command("qags")
def qags_command(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="RUN|DATA|RUN.YAML", help="The folder of a run, or what to measure.")],
    *,
    item: Annotated[str | None, option("The item to show (default: the first).", metavar="ID")] = None,
    system: Annotated[str | None, option("The system to show (default: all).", metavar="NAME")] = None,
    backend: Annotated[str | None, option("lexical (default), models or llm.", metavar="NAME")] = None,
    similarity: Annotated[str | None, option("exact, f1 (default), rouge1, bertscore, ...", metavar="NAME,...")] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    set_: Set = None,
    map_: Map = None,
    systems: Systems = None,
    language: Language = None,
    max_tokens: MaxTokens = None,
    replay: Replay = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
) -> None:
    """Show how QAGS measures one item: themes, questions, both answers, similarity. Writes nothing."""
    from judge.cli.working import show_working
    from judge.config import plan

    show_working(ctx, plan)


@app.command("rank")
def rank_command(
    ctx: typer.Context,
    data: Data,
    *,
    model: Model = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    criteria: Annotated[
        list[str] | None, option("Names from prompts/pairwise or .jinja files (default: overall).", metavar="NAME,...")
    ] = None,
    orders: Annotated[
        int | None, option("2: show each pair both ways round (default); 1: one way.", metavar="N")
    ] = None,
    pairs: Annotated[int | None, option("Compare a sample of N pairs of texts (default: all).", metavar="N")] = None,
    map_: Map = None,
    systems: Systems = None,
    language: Language = None,
    weighting: Weighting = None,
    draws: Draws = None,
    min_mass: MinMass = None,
    reply: Reply = None,
    structured: Structured = None,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    max_concurrency: MaxConcurrency = None,
    timeout: Timeout = None,
    retries: Retries = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    deadline: Deadline = None,
    budget: Budget = None,
    engine: Engine = None,
    ray_workers: RayWorkers = None,
    retry_failed: RetryFailed = None,
    limit: Limit = None,
    seed: Seed = None,
    replay: Replay = None,
    record: Record = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    out: Out = None,
    format: Format = "console",
    quiet: Quiet = False,
) -> None:
    """Compare the systems' texts two by two, and rank the systems."""
    from judge.cli.running import run
    from judge.config import rank_plan

    run(ctx, rank_plan)


app.command("plan")(plan_command(run_command, rank_command))
app.command("report")(report_command)
app.command("validate")(validate_command)
app.command("compare")(compare_command)
app.command("power")(power_command)
app.command("test")(suites_command)
app.command("audit")(audit_command)
criteria_app.command("diff")(diff_command)


@metrics_app.command("list")
def metrics_list() -> None:
    """Name the metrics, what each measures, and its options with their defaults."""
    import json

    from judge import api

    for metric in api.metrics():
        typer.echo(f"{metric.name:<14} {metric.description}")
        for name, default in metric.options.items():
            typer.echo(f"{'':<14} --set {metric.name}.{name}={json.dumps(default)}")


@criteria_app.command("list")
def criteria_list(*, language: Language = None) -> None:
    """Name the built-in criteria."""
    from judge.criteria import builtin

    for pairwise, command in ((False, "judge run: one text"), (True, "judge rank: two texts")):
        typer.echo(f"{command}")
        for criterion in builtin(language or "en", pairwise=pairwise):
            ends = f"{criterion.scale.labels[0]}–{criterion.scale.labels[-1]}"
            typer.echo(f"  {criterion.name:<14} {ends:<6} {criterion.title}: {criterion.description}")


@criteria_app.command("show")
def criteriashow(
    name: Annotated[str, typer.Argument(help="A built-in name or a .jinja file.")], *, language: Language = None
) -> None:
    """Print a criterion's file, and what a sample needs for it."""
    from judge.criteria import load

    criterion = load(name, language=language or "en", pairwise=None)
    typer.echo(criterion.template.rstrip())
    typer.echo(
        f"\nneeds: {', '.join(sorted(criterion.needs))}\ndigest: {criterion.digest[:6]}\nfile: {criterion.path}",
        err=True,
    )


@criteria_app.command("render")
def criteria_render(
    name: Annotated[str, typer.Argument(help="A built-in name or a .jinja file.")],
    data: Annotated[Path, typer.Argument(help="The data file.")],
    *,
    item: Annotated[str | None, option("The item to render (default: the first).")] = None,
    system: Annotated[str | None, option("The system whose output to take (default: the first).")] = None,
    rival: Annotated[str | None, option("To compare: the other system (default: the next).")] = None,
    map_: Map = None,
    systems: Systems = None,
    language: Language = None,
    reply: Reply = None,
    structured: Structured = None,
) -> None:
    """Print the prompt for one sample or one comparison, exactly as it would be sent. Asks no model."""
    from judge.api import prompt

    given = {"map": map_, "systems": systems, "language": language, "reply": reply, "structured": structured}
    for message in prompt(name, data, item=item, system=system, rival=rival, **read(given)).messages:
        typer.echo(message["content"])


@criteria_app.command("steps")
def criteria_steps(
    file: Annotated[str, typer.Argument(help="A .jinja file of yours.")],
    *,
    model: Annotated[list[str] | None, option("The model that drafts, e.g. gpt-5.4-mini.", metavar="NAME")] = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    language: Annotated[str | None, option("Language of the steps: en, ja, ko, zh (default: en).")] = None,
    max_tokens: Annotated[int | None, option("Longest reply (default: 1024).", metavar="N")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Write over steps that are there.")] = False,
) -> None:
    """Have a model draft the evaluation steps and write them into the file's header, for you to read."""
    from judge.api import draft_steps
    from judge.config import plan

    given = {"model": model, "base_url": base_url, "key_env": key_env, "language": language, "max_tokens": max_tokens}
    options = read(given)
    for place, step in enumerate(draft_steps(file, plan(given=options), replace=replace), 1):
        typer.echo(f"{place}. {step}")
    typer.echo(f"written into {file}; read them before you judge with them", err=True)
