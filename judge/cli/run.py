"""`judge run`, `rank` and `plan`: show a run's progress and result, and how to resume it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from judge.cli.options import (
    PATH,
    RUN_FORMATS,
    SHORT_FORMS,
    Command,
    check_run_folder,
    data_argument,
    export_option,
    format_option,
    full_option,
    option,
    quiet_option,
    report_format,
    to_config,
)
from judge.cli.terminal import (
    check_exports,
    print_message,
    print_report,
    shows_report,
    write_exports,
)
from judge.core import messages
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge.config import RunConfig
    from judge.execution.budget import BudgetLedger
    from judge.execution.progress import Progress
    from judge.providers import Provider
    from judge.results.result import Result
    from judge.run.generate import Outputs

T = TypeVar("T")
Display = Callable[..., AbstractContextManager[None]]
"""Shows the progress of judges while the context is open; `label` names one run of several."""
_MOST_FAILURES = 3
"""Failures in a message."""
_PATIENCE = 10.0
"""Seconds that a stopped run waits for replies in flight."""


run_format = format_option(*RUN_FORMATS, "svg", open_ended=True)


@click.command(cls=Command, takes="run")
@data_argument
@option(
    "--generate-only",
    "Only write the systems' outputs, into the file --out.",
    is_flag=True,
    group="Output",
)
@run_format
@full_option
@quiet_option
@export_option
def run_command(
    data: Path,
    *,
    generate_only: bool,
    format: str,
    full: bool,
    quiet: bool,
    export: tuple[str, ...],
    **options: Any,
) -> None:
    """Judge and measure every output, and compare the systems.

    \b
    Example:
      judge run replies.csv --model gpt-5.4-mini \\
        --criteria "polite: Is the reply polite?"

    With --generate-only, systems that are a prompt and a model write their outputs, and nothing is
    judged. Then --out is a file (default: outputs.jsonl)."""
    from judge.config import RunConfig

    if generate_only:
        _generate_only(data, options, quiet=quiet)
        return
    _run(data, options, RunConfig, export, format=format, full=full, quiet=quiet)


@click.command(cls=Command, takes="rank")
@data_argument
@run_format
@full_option
@quiet_option
@export_option
def rank_command(
    data: Path,
    *,
    format: str,
    full: bool,
    quiet: bool,
    export: tuple[str, ...],
    **options: Any,
) -> None:
    """Compare the systems' texts in pairs, and rank the systems.

    \b
    Example:
      judge rank replies.csv --systems old,new --model gpt-5.4-mini
    """
    from judge.config import RankConfig

    _run(data, options, RankConfig, export, format=format, full=full, quiet=quiet)


def _run(
    data: Path,
    options: Mapping[str, Any],
    kind: type[RunConfig],
    export: Sequence[str] | None,
    *,
    format: str,
    full: bool,
    quiet: bool,
) -> None:
    """Make the configuration, run it, show the result and exit with its status."""
    from judge.core import plugins

    # An unknown format is an error before anything is paid.
    plugins.load("formats", format)
    exports = check_exports(export)
    config, folder = to_config(data, options, kind)
    check_run_folder(folder)
    result = execute(config, folder, quiet=quiet)
    write_exports(result, exports)
    if shows_report(format, quiet=quiet):
        print_report(result, format, full=full, folder=folder)
    exit_with_status(result)


def _generate_only(data: Path, options: Mapping[str, Any], *, quiet: bool) -> None:
    """Write the outputs of a run's systems into a file.

    Exits with 1 if a text could not be written.
    """
    from judge.config import RunConfig
    from judge.core.format import plural
    from judge.execution.budget import BudgetLedger
    from judge.run.generate import FILE, OPTIONS

    typed = typed_options(besides=("generate_only", "quiet", "out", *OPTIONS))
    if typed:
        raise ConfigError(f"{typed[0]}: --generate-only judges nothing; leave it out")
    config, _ = to_config(data, options, RunConfig)
    # Elsewhere, --out is the folder of the run.
    config = config.model_copy(update={"out": None})
    out = Path(options.get("out") or FILE)
    if out.is_dir():
        rule = f"--generate-only writes a file, such as {out / FILE}"
        raise ConfigError(f"--out {out}: is a folder; {rule}")
    if not isinstance(config.systems, dict):
        raise ConfigError(
            f"{data}: systems has no prompts; write systems: "
            "{NAME: {prompt: FILE, model: MODEL}}"
        )
    _, _, outputs = write_outputs(config, BudgetLedger(config.budget), quiet=quiet)
    if outputs is None:
        return
    outputs.save(out)
    click.echo(str(out))
    for failure in outputs.failures[:_MOST_FAILURES]:
        print_message(f"item {failure.item}, {failure.system}: {failure.message}")
    if outputs.failures:
        failed_texts = plural(len(outputs.failures), "text")
        print_message(f"{failed_texts} could not be written")
        raise click.exceptions.Exit(1)


@click.command(cls=Command, takes="plan")
@click.argument(
    "data",
    type=PATH,
    metavar="DATA|RUN.YAML|RUN",
    help="Data, a run.yaml that names it, or a finished run's folder.",
)
@option("--rank", "Estimate judge rank, which compares texts in pairs.", is_flag=True)
@option(
    "--card", "Estimate the judge card that judge validate --card makes.", is_flag=True
)
@option(
    "--items",
    "Estimate for N items like these (default: these); with --card, its items.",
    type=int,
    metavar="N",
)
@option(
    "--probes",
    "With --card: sensitivity,bias,injection (default: all).",
    metavar="NAME,...",
    known=("sensitivity", "bias", "injection"),
)
@option(
    "--detect",
    "Show the items that RUN needs to detect this difference.",
    type=float,
    metavar="D",
)
@option(
    "--pair",
    "Only these two systems of RUN, also for their own difference.",
    metavar="A,B",
)
@report_format
def plan_command(
    data: Path,
    *,
    rank: bool,
    card: bool,
    items: int | None,
    probes: str | None,
    detect: float | None,
    pair: str | None,
    format: str,
    **options: Any,
) -> None:
    """Estimate the requests, cost and time of a run. Sends nothing, and needs no key.

    \b
    Example:
      judge plan replies.csv --model gpt-5.4-mini --criteria polite

    For the folder of a finished run, show which differences between systems its items can detect;
    with --detect or --pair, also how many items it takes to detect a difference."""
    from judge.commands.plan.command import plan_judge_card, plan_run
    from judge.commands.plan.power import run_power
    from judge.config import RankConfig, RunConfig, load_config

    # Of a finished run, the scores are known: what can its items detect?
    if (data / "run.json").is_file():
        refuse_options(data, besides=("items", "detect", "pair", "where"))
        where = load_config(options=options).where
        power = run_power(data, difference=detect, items=items, pair=pair, where=where)
        print_report(power, format, full=True)
        return
    for option_name, value in (("detect", detect), ("pair", pair)):
        if value is not None:
            rule = f"is for a finished run; name its folder instead of {data}"
            raise ConfigError(f"--{option_name} {value}: {rule}")
    if card:
        _check_options_of_card(options, rank=rank)
    elif probes is not None:
        raise ConfigError("--probes: is for --card")
    config_class = RankConfig if rank else RunConfig
    config, _ = to_config(data, options, config_class)
    if card:
        card_plan = plan_judge_card(config, items=items, probes=probes)
        print_report(card_plan, format, full=True)
        return
    run_plan = plan_run(config, items=items)
    print_report(run_plan, format, full=True)


def _check_options_of_card(options: Mapping[str, Any], *, rank: bool) -> None:
    """Raise ConfigError for an option of `judge plan` that a judge card does not have."""
    from judge.config import run_options

    if rank:
        raise ConfigError("--rank: cannot be combined with --card")
    options_of_plan = ("rank", "card", "items", "probes", "format", "json")
    refuse_options_without_use(
        options, besides=(*options_of_plan, *run_options("card"))
    )


def refuse_options_without_use(
    options: Mapping[str, Any], *, besides: Sequence[str]
) -> None:
    """Raise ConfigError if an option other than `besides` was given with `--card`.

    `--metrics none` is no wish that a card cannot fulfil: it has no metrics.
    """
    if options.get("metrics") == "none":
        besides = (*besides, "metrics")
    typed = typed_options(besides=besides)
    if typed:
        raise ConfigError(f"{typed[0]}: --card has no use for it; leave it out")


def run_interruptibly(
    work: Callable[[Progress, Display], Coroutine[Any, Any, T]],
    *,
    quiet: bool,
    reply_store: str,
    asks: bool = True,
    done: Callable[[Progress], str] = lambda _: "",
) -> T:
    """Return the result of `work`, which shows its progress.

    On Ctrl-C print what is `done` and how to resume, and exit with 130. `reply_store` names what
    keeps the replies, such as "cache"; "" if they are lost. `asks`: the work sends requests.
    """
    import asyncio

    from judge.commands.progress_display import show
    from judge.execution.progress import Progress

    progress = Progress()

    def display(
        providers: Mapping[str, Provider], label: str = ""
    ) -> AbstractContextManager[None]:
        return nullcontext() if quiet else show(progress, providers, label)

    try:
        return asyncio.run(wait_for_in_flight(work(progress, display), progress))
    except (KeyboardInterrupt, asyncio.CancelledError):
        # A batch continues at the provider, and the same command fetches its replies.
        waiting = ""
        if progress.awaited:
            waiting = f" Still in progress at the provider: {progress.awaited}."
        if not asks:
            again = "Run the same command again."
        elif reply_store:
            again = (
                "Run the same command again to resume. "
                f"The {reply_store} answers what is already paid for."
            )
        else:
            again = "Without a cache, the same command pays for everything again."
        print_message(f"interrupted{done(progress)}.{waiting} {again}")
        # The status that shells give a process that SIGINT (signal 2) ended: 128 + 2.
        raise click.exceptions.Exit(130) from None


async def wait_for_in_flight(run: Coroutine[Any, Any, T], progress: Progress) -> T:
    """Await `run`. On Ctrl-C or SIGTERM wait for the replies in flight, because they are paid for.

    A second signal does not wait. Raises CancelledError if the run was stopped, and
    KeyboardInterrupt on a third signal.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(run)
    cancelled = False

    # Signal handlers run between any two steps of the loop, so they only schedule their work.
    def cancel() -> None:
        nonlocal cancelled
        cancelled = True
        loop.call_soon_threadsafe(task.cancel)

    def stop(*_: object) -> None:
        """Stop after the replies in flight, or at once if there are none."""
        # The third signal ends even a loop that does not react to being cancelled.
        if cancelled:
            raise KeyboardInterrupt
        if progress.stopping or not progress.flying:
            cancel()
            return
        progress.stop()
        in_flight = f"{progress.flying:,} replies are in flight"
        if progress.flying == 1:
            in_flight = "1 reply is in flight"
        print_message(f"stopping: {in_flight}; press Ctrl-C again to stop now")
        loop.call_soon_threadsafe(loop.call_later, _PATIENCE, cancel)

    # A shell ignores SIGINT for a job behind `&`.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, stop)
    try:
        return await task
    finally:
        # Python's own handlers again: writing the report may be interrupted at once.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def refuse_options(folder: Path, *, besides: Sequence[str]) -> None:
    """Raise ConfigError if an option other than `besides` was given for a run that is finished."""
    typed = typed_options(besides=("format", "json", *besides))
    if typed:
        problem = f"the run in {folder} is finished"
        advice = "name its data to run again"
        if typed[0] == "--map" and "--ratings" in typed_options(besides=()):
            columns = "item, system, rater, criterion, value"
            advice = f"rename the columns of the ratings ({columns}), or {advice}"
        raise ConfigError(f"{typed[0]}: {problem}; {advice}")


def typed_options(*, besides: Sequence[str]) -> list[str]:
    """Return the options on the command line, other than `besides` and their short forms."""
    ctx = click.get_current_context()
    short_forms = [name for name, short in SHORT_FORMS.items() if short.name in besides]
    parameters = ctx.command.get_params(ctx)
    names = {parameter.name for parameter in parameters if parameter.name}
    refused_names = sorted(names - {"data", *besides, *short_forms})
    typed_source = ParameterSource.COMMANDLINE
    return [
        messages.option(name)
        for name in refused_names
        if ctx.get_parameter_source(name) is typed_source
    ]


def execute(
    config: RunConfig,
    folder: Path,
    *,
    quiet: bool,
    rated: bool = False,
) -> Result:
    """Run a configuration.

    With `rated`, people must have rated a criterion, and default criteria without ratings are left
    out.
    """
    from judge.execution.budget import BudgetLedger
    from judge.run.cost_estimate import one_line_estimate
    from judge.run.generate import hand_over, require_criteria
    from judge.run.pipeline import run_pipeline
    from judge.run.preparation import prepare

    require_criteria(config)
    ledger = BudgetLedger(config.budget)
    outputs: Outputs | None = None
    data: Any = None
    if isinstance(config.systems, dict):
        # The judging is prepared before the outputs are paid for.
        check = partial(prepare, rated=rated)
        config, data, outputs = write_outputs(config, ledger, quiet=quiet, check=check)
    prepared_run = prepare(config, data, rated=rated)
    prepared = hand_over(outputs, prepared_run)
    if not quiet:
        estimate_notes: list[str] = []
        estimate = one_line_estimate(prepared, estimate_notes)
        if estimate:
            print_message(estimate)
        prepared = replace(prepared, notes=(*prepared.notes, *estimate_notes))

    async def work(progress: Progress, display: Display) -> Result:
        with display(prepared.judges):
            return await run_pipeline(prepared, progress, ledger)

    def done(progress: Progress) -> str:
        if not progress.judges:
            return ": metric values are not saved"
        saved_in = ""
        if progress.done and progress.saved:
            saved_in = f" and are kept in {progress.saved}"
        judgments = f"{progress.done:,} of {progress.total:,} judgments"
        return f": {judgments} were made{saved_in}"

    asks = bool(prepared.judges)
    return run_interruptibly(
        work,
        quiet=quiet,
        reply_store=config.replies_kept_in,
        asks=asks,
        done=done,
    )


def write_outputs(
    config: RunConfig,
    ledger: BudgetLedger,
    *,
    quiet: bool,
    check: Callable[[RunConfig, Any], object] = lambda config, data: None,
) -> tuple[RunConfig, Any, Outputs | None]:
    """Generate the systems' outputs.

    Return the configuration and the data of the run that judges them, and the outputs. `check` gets
    the first two, with assumed outputs, before anything is paid.
    """
    from judge.core.format import listed, one_line
    from judge.run.generate import with_outputs

    async def work(
        progress: Progress, display: Display
    ) -> tuple[RunConfig, Any, Outputs | None]:
        return await with_outputs(config, None, progress, ledger, display, check=check)

    systems = config.systems if isinstance(config.systems, dict) else {}
    writers = []
    for system_name, spec in systems.items():
        # A path names a file with outputs that are already written.
        if not isinstance(spec, Path):
            writers.append(one_line(system_name, 40))
    if writers and not quiet:
        print_message(f"generating the outputs of {listed(writers)}")

    return run_interruptibly(work, quiet=quiet, reply_store=config.replies_kept_in)


def exit_with_status(result: Result) -> None:
    """Count failures on standard error, and exit with 1 if there are any."""
    from judge.core.format import plural

    if result.failed:
        message = f"{plural(result.failed, 'value')} failed; the report shows why"
        stored = result.info.requests.failed_cached
        if stored:
            # The same command would read the same replies again.
            message += f"; {stored:,} on stored replies, --retry-failed asks again"
        print_message(message)
    raise click.exceptions.Exit(1 if result.failed else 0)
