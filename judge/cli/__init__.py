"""The command line: one short function per subcommand, each a call to `judge.api`.

Exit codes: 0 all judged; 1 the run finished and some judgments failed; 2 it could not run, or had to stop
(the message says why); 130 interrupted. Heavy imports stand inside the commands, so that --help is quick.
"""

from __future__ import annotations

import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge import __version__
from judge.errors import JudgeError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from judge.config import Plan
    from judge.progress import Progress
    from judge.report import Result

app = typer.Typer(
    help="Which of these texts is better, by how much, and how sure are we?",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
criteria_app = typer.Typer(help="The criteria that texts are judged on.", no_args_is_help=True)
cache_app = typer.Typer(help="The replies that were paid for and kept.", no_args_is_help=True)
app.add_typer(criteria_app, name="criteria")
app.add_typer(cache_app, name="cache")


def _option(help: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=False)


Criteria = Annotated[
    list[str] | None, _option("Built-in names or .jinja files; none for metrics alone.", metavar="NAME,...")
]
Metrics = Annotated[
    list[str] | None, _option("rouge, bleu, chrf, or none (default: all where references are).", metavar="NAME,...")
]
Map = Annotated[
    list[str] | None,
    _option(
        "The columns that hold item, system, output, source, references, human.", "--map", metavar="FIELD=COLUMN,..."
    ),
]
Systems = Annotated[
    list[str] | None, _option("Wide data: the columns that hold the systems' outputs.", metavar="COLUMN,...")
]
Language = Annotated[str | None, _option("Language of the prompts: en, ja, ko, zh (default: the data's).")]
Weighting = Annotated[
    str | None, _option("How scores are made: auto (the best there is), logprobs, decisions, samples, single.")
]
Model = Annotated[
    list[str] | None,
    _option("The judge, e.g. gpt-5.4-mini; several are a panel; scripted/FILE.yaml for a dry run.", metavar="NAME"),
]
BaseUrl = Annotated[str | None, _option("Any OpenAI-compatible server, ending in /v1.", metavar="URL")]
KeyEnv = Annotated[str | None, _option("Variable with the key (default: OPENAI_API_KEY).", metavar="NAME")]
Draws = Annotated[int | None, _option("Replies drawn for samples (default: 20).", metavar="N")]
MinMass = Annotated[float | None, _option("Least probability on the scale to trust (default: 0.5).", metavar="P")]
Reply = Annotated[
    str | None, _option("score, score_then_reason or reason_then_score (default: the criterion's).", metavar="KIND")
]
Structured = Annotated[
    bool | None, typer.Option("--structured", help="Ask for replies as JSON objects (response_format).")
]
Temperature = Annotated[float | None, _option("Sampling temperature (default: 0, for samples 1).", metavar="T")]
MaxTokens = Annotated[int | None, _option("Longest reply (default: by reply kind).", metavar="N")]
MaxConcurrency = Annotated[int | None, _option("Most requests in flight (default: 64).", metavar="N")]
Timeout = Annotated[float | None, _option("Longest wait for one reply (default: 120).", metavar="SECONDS")]
Retries = Annotated[int | None, _option("Tries after a failed one (default: 5).", metavar="N")]
Limit = Annotated[int | None, _option("Only the first N outputs.", metavar="N")]
Seed = Annotated[int | None, _option("Of all that is drawn (default: 0).", metavar="N")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor keep replies.")]
Out = Annotated[Path | None, _option("Folder for the results (default: runs/DATA-TIME).", metavar="DIR")]
Format = Annotated[str, typer.Option(help="console, markdown, html, json or csv.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no report on the console.")]
CacheFolder = Annotated[
    Path | None, _option("Cache folder (default: $JUDGE_CACHE, else ~/.cache/judge).", "--cache", metavar="DIR")
]
_OURS = ("no_cache", "format", "quiet")
"""The options that are the command line's own, not the plan's."""


def main() -> None:
    """The `judge` command."""
    try:
        app()
    except JudgeError as error:
        _say(f"judge: {error}")
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
    except OSError as error:
        _say(f"judge: cannot write: {error.strerror or error}")
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
    data: Annotated[Path, typer.Argument(metavar="DATA|RUN.YAML", help="A data file, or a plan that names one.")],
    *,
    model: Model = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    criteria: Criteria = None,
    metrics: Metrics = None,
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
    limit: Limit = None,
    seed: Seed = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    out: Out = None,
    format: Format = "console",
    quiet: Quiet = False,
) -> None:
    """Judge and measure every output, and compare the systems."""
    from judge.config import plan

    _run(ctx, plan)


@app.command("rank")
def rank_command(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="DATA|RUN.YAML", help="A data file, or a plan that names one.")],
    *,
    model: Model = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    criteria: Annotated[
        list[str] | None, _option("Names from prompts/pairwise or .jinja files (default: overall).", metavar="NAME,...")
    ] = None,
    orders: Annotated[
        int | None, _option("2: show each pair both ways round (default); 1: one way.", metavar="N")
    ] = None,
    budget: Annotated[int | None, _option("Compare a sample of N pairs of texts (default: all).", metavar="N")] = None,
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
    limit: Limit = None,
    seed: Seed = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    out: Out = None,
    format: Format = "console",
    quiet: Quiet = False,
) -> None:
    """Compare the systems' texts two by two, and rank the systems."""
    from judge.config import rank_plan

    _run(ctx, rank_plan)


@app.command("report")
def report_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    *,
    format: Format = "console",
    output: Annotated[
        Path | None, _option("Write here (default: html into the run's folder, others to the console).")
    ] = None,
) -> None:
    """Show a stored run again."""
    from judge.report import load

    result = load(run)
    if output is None and format == "html":
        output = run / "report.html"
    if output is not None:
        _write(output, result.report(format))
    else:
        _show(result, format)


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
def criteria_show(
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
    item: Annotated[str | None, _option("The item to render (default: the first).")] = None,
    system: Annotated[str | None, _option("The system whose output to take (default: the first).")] = None,
    rival: Annotated[str | None, _option("To compare: the other system (default: the next).")] = None,
    map_: Map = None,
    systems: Systems = None,
    language: Language = None,
    reply: Reply = None,
    structured: Structured = None,
) -> None:
    """Print the prompt for one sample or one comparison, exactly as it would be sent. Asks no model."""
    from judge.api import prompt

    given = {"map": map_, "systems": systems, "language": language, "reply": reply, "structured": structured}
    for message in prompt(name, data, item=item, system=system, rival=rival, **_options(given)).messages:
        typer.echo(message["content"])


@criteria_app.command("steps")
def criteria_steps(
    file: Annotated[str, typer.Argument(help="A .jinja file of yours.")],
    *,
    model: Annotated[list[str] | None, _option("The model that drafts, e.g. gpt-5.4-mini.", metavar="NAME")] = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    language: Annotated[str | None, _option("Language of the steps: en, ja, ko, zh (default: en).")] = None,
    max_tokens: Annotated[int | None, _option("Longest reply (default: 1024).", metavar="N")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Write over steps that are there.")] = False,
) -> None:
    """Have a model draft the evaluation steps and write them into the file's header, for you to read."""
    from judge.api import draft_steps
    from judge.config import plan

    given = {"model": model, "base_url": base_url, "key_env": key_env, "language": language, "max_tokens": max_tokens}
    options = _options(given)
    for place, step in enumerate(draft_steps(file, plan(given=options), replace=replace), 1):
        typer.echo(f"{place}. {step}")
    _say(f"written into {file}; read them before you judge with them")


@cache_app.command("stats")
def cache_stats(*, cache: CacheFolder = None) -> None:
    """Count the stored replies."""
    from judge.cache import DiskCache, default_folder

    store = DiskCache(cache or default_folder())
    typer.echo(f"{store.folder}: {store.stats()['responses']:,} replies, {store.stats()['bytes'] / 1e6:.1f} MB")
    store.close()


@cache_app.command("clear")
def cache_clear(*, cache: CacheFolder = None) -> None:
    """Forget every stored reply; asking again costs again."""
    from judge.cache import DiskCache, default_folder

    store = DiskCache(cache or default_folder())
    count = store.stats()["responses"]
    if count and sys.stdin.isatty():
        typer.confirm(f"Forget {count:,} paid-for replies in {store.folder}?", abort=True)
    typer.echo(f"{store.clear():,} replies forgotten")
    store.close()


def _run(ctx: typer.Context, make: Callable[..., Plan]) -> None:
    """A whole command: plan with its options, run, watch and show; on Ctrl-C say how to go on."""
    import asyncio

    from judge import api, registry
    from judge.cli.watch import watch
    from judge.progress import Progress

    data, quiet, format = (ctx.params[name] for name in ("data", "quiet", "format"))
    registry.load("formats", format)  # a name nobody knows is said before anything is paid
    made, folder = _planned(ctx, data, make)
    prepared = api.prepare(made)
    if not quiet and (said := api.forecast(prepared)):
        _say(said)
    progress = Progress()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))  # a cancelled CI job ends cleanly too
    try:
        with watch(prepared, progress, quiet=quiet):
            result = asyncio.run(api.run(prepared, progress))
    except KeyboardInterrupt:
        _say(_how_to_go_on(progress, folder, made.cache is not False))
        raise typer.Exit(130) from None
    if not quiet:
        _show(result, format)
    if progress.failed:
        _say(f"{progress.failed:,} of {progress.total:,} judgments failed; the report shows each with its reply")
    _say(f"report: {folder / 'report.html'}")
    raise typer.Exit(1 if result.failures else 0)


def _planned(ctx: typer.Context, data: Path, make: Callable[..., Plan]) -> tuple[Plan, Path]:
    """The plan of a command's options, and the folder of its results."""
    given = _options({name: value for name, value in ctx.params.items() if name not in ("data", *_OURS)})
    if ctx.params["no_cache"]:
        given["cache"] = False
    is_plan = data.suffix in (".yaml", ".yml")
    made = make(data if is_plan else None, given if is_plan else {"data": data, **given})
    folder = made.out or Path("runs") / f"{(made.data or data).stem}-{datetime.now():%Y%m%d-%H%M%S}"
    return made.model_copy(update={"out": folder}), folder


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--output {path}: {error.strerror}") from error
    typer.echo(str(path))


def _show(result: Result, format: str) -> None:
    """Print a result; on a terminal in colour."""
    from judge.report.console import render

    if format == "console":
        typer.echo(render(result, colour=sys.stdout.isatty()))
    else:
        typer.echo(result.report(format).rstrip("\n"))


def _how_to_go_on(progress: Progress, folder: Path, cached: bool) -> str:
    kept = f" and are kept in {folder}" if progress.done else ""
    said = f"interrupted: {progress.done:,} of {progress.total:,} judgments were made{kept}"
    if not cached:
        return said
    return f"{said}\nStart the same command again to go on: what is in the cache is not asked or paid again."


def _options(options: dict[str, Any]) -> dict[str, Any]:
    """What was given; lists and mappings read, whether given at once with commas or one by one."""
    from judge.config import pairs, split

    read = {"criteria": split, "metrics": split, "systems": split, "map": pairs}
    given = {name.rstrip("_"): value for name, value in options.items() if value not in (None, (), [])}
    return {name: read[name](",".join(value)) if name in read else value for name, value in given.items()}


def _say(message: str) -> None:
    typer.echo(message, err=True)
