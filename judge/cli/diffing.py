"""`judge criteria diff`: two wordings of a criterion side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.options import (
    BaseUrl,
    Budget,
    CacheFolder,
    Deadline,
    Draws,
    KeyEnv,
    Language,
    Limit,
    Map,
    MaxConcurrency,
    MaxTokens,
    MinMass,
    Model,
    NoCache,
    Quiet,
    Record,
    Replay,
    Reply,
    Retries,
    Rpm,
    Seed,
    Structured,
    Systems,
    Temperature,
    Timeout,
    Tpm,
    Weighting,
    option,
    read,
)

if TYPE_CHECKING:
    from judge.api.diffing import Ready
    from judge.config import Plan
    from judge.report.prompt_diff import PromptDiff

_OURS = ("before", "after", "data", "item", "system", "human", "no_cache", "format", "output", "quiet")
"""The parameters that are the command's own, not the plan's."""


def diff_command(
    ctx: typer.Context,
    before: Annotated[str, typer.Argument(metavar="A", help="A built-in name or a .jinja file.")],
    after: Annotated[str, typer.Argument(metavar="B", help="The other wording.")],
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA|RUN.YAML", help="Texts to show the prompts on.", show_default=False)
    ] = None,
    *,
    item: Annotated[str | None, option("Only this item.", metavar="ID")] = None,
    system: Annotated[str | None, option("Only this system's texts.", metavar="NAME")] = None,
    human: Annotated[
        str | None, option("The ratings by people to hold both against (default: the criterion's).", metavar="RATING")
    ] = None,
    model: Model = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    map_: Map = None,
    systems: Systems = None,
    limit: Limit = None,
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
    seed: Seed = None,
    replay: Replay = None,
    record: Record = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    format: Annotated[str, typer.Option(help="console, markdown or json.")] = "console",
    output: Annotated[Path | None, option("Write here (default: to the console).", metavar="FILE")] = None,
    quiet: Quiet = False,
) -> None:
    """Show what differs between two criteria: text, with DATA the prompts, and with a judge the scores.

    Leaves with 0 also where much differs, and with 1 where judgments failed.
    """
    from judge import samples
    from judge.api.diffing import ready
    from judge.cli.outputs import apart, writable
    from judge.cli.running import write
    from judge.report.prompt_diff import check

    check(format)
    made = _planned(ctx, data)
    shards = [] if made.data is None else [path for path, _ in samples.files(made.data)]
    apart({"--output": output}, [Path(before), Path(after), data, *shards, made.replay, record])
    writable({"--output": output})
    found = _carried_out(ready(before, after, made, item=item, system=system, human=human), quiet=quiet)
    if output is not None:
        write(output, found.report(format))
    elif not quiet:
        typer.echo(found.report(format, colour=sys.stdout.isatty()).rstrip("\n"))
    raise typer.Exit(1 if found.failed else 0)


def _planned(ctx: typer.Context, data: Path | None) -> Plan:
    from judge.config import plan

    given: dict[str, Any] = read({name: value for name, value in ctx.params.items() if name not in _OURS})
    if ctx.params["no_cache"]:
        given["cache"] = False
    is_plan = data is not None and data.suffix in (".yaml", ".yml")
    return plan(data, given) if is_plan else plan(given={"data": data, **given})


def _carried_out(found: Ready, *, quiet: bool) -> PromptDiff:
    """Ask what there is to ask, watched."""
    from judge import api
    from judge.api.diffing import run
    from judge.cli.running import carried_out, interrupted, say
    from judge.cli.watch import watch
    from judge.progress import Progress

    for one in found.runs or ():
        if not quiet and (said := api.forecast(one)):
            say(said)
    progress = Progress()
    work = run(found, progress, lambda prepared: watch(prepared, progress, quiet=quiet))
    cached = all(one.plan.cache is not False for one in found.runs or ())
    return carried_out(work, progress, lambda: interrupted(cached=cached))
