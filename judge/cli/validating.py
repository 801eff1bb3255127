"""`judge validate`: a judge against people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judge.cli.options import (
    BaseUrl,
    CacheFolder,
    Calibrate,
    Criteria,
    Draws,
    KeyEnv,
    Language,
    Limit,
    Map,
    MaxConcurrency,
    MaxTokens,
    Metrics,
    MinMass,
    Model,
    NoCache,
    Out,
    Record,
    Replay,
    Reply,
    Retries,
    Seed,
    Set,
    Structured,
    Systems,
    Temperature,
    Timeout,
    Weighting,
    Workers,
    option,
)


def validate_command(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="RUN|DATA|RUN.YAML", help="The folder of a run, or what to run.")],
    others: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="Folders of other runs on the same texts: their judges beside the first."),
    ] = None,
    *,
    level: Annotated[
        str, typer.Option(help="document (within each item), item (over all texts) or system (between means).")
    ] = "document",
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
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    max_concurrency: MaxConcurrency = None,
    timeout: Timeout = None,
    retries: Retries = None,
    limit: Limit = None,
    seed: Seed = None,
    replay: Replay = None,
    record: Record = None,
    calibrate: Calibrate = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    out: Out = None,
    format: Annotated[str, typer.Option(help="console, markdown or json.")] = "console",
    quiet: Annotated[bool, option("No progress.", "--quiet", "-q")] = False,
) -> None:
    """Hold a judge against people's ratings: between what needs no judge and what people reach."""
    from judge.cli.running import validate
    from judge.config import plan

    validate(ctx, plan)
