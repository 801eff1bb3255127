"""`judge test`: suites of cases held against a judge."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
    MergeCriteria,
    MinMass,
    Model,
    NoCache,
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
    Where,
    option,
    read,
    shown_as,
)
from judge.cli.terminal import colour, echo
from judge.errors import ConfigError, JudgeError, StorageError

if TYPE_CHECKING:
    from judge.api.suites import Ready
    from judge.suite.records import Outcomes, Policy

_OURS = (
    "suites", "baseline", "update_baseline", "undecided", "cases", "junit", "markdown", "out", "no_cache", "format",
    "quiet",
)  # fmt: skip
"""The parameters that are the command's own, not the suites'."""
_FORMATS = ("console", "markdown", "json")


def suites_command(
    ctx: typer.Context,
    suites: Annotated[
        list[Path], typer.Argument(metavar="SUITE|FOLDER...", help="Suites, or folders of *.judge.yaml files.")
    ],
    *,
    model: Model = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    replay: Replay = None,
    record: Record = None,
    map_: Map = None,
    systems: Systems = None,
    where: Where = None,
    limit: Limit = None,
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
    seed: Seed = None,
    criteria: Annotated[
        list[str] | None,
        option(
            "In the place of the suites' criteria those of the same name: new/relevance.jinja for relevance.",
            metavar="NAME,...",
        ),
    ] = None,
    cases: Annotated[str | None, option("Only the cases in whose name this text stands.", metavar="TEXT")] = None,
    baseline: Annotated[
        Path | None,
        option("The runs to hold these against: DIR/SUITE of each suite, or DIR, a run itself.", metavar="DIR"),
    ] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Make this run the baseline, where all but what moved is met.")
    ] = False,
    undecided: Annotated[
        str | None, option("What a case counts as that the numbers leave open: pass or fail.", metavar="pass|fail")
    ] = None,
    junit: Annotated[Path | None, option("Write the verdicts as JUnit XML.", metavar="FILE")] = None,
    markdown: Annotated[Path | None, option("Write a summary for a pull request.", metavar="FILE")] = None,
    out: Annotated[Path | None, option("Keep each suite's run, to look at, in DIR/SUITE.", metavar="DIR")] = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    format: Annotated[str, shown_as(*_FORMATS)] = "console",
    quiet: Annotated[bool, option("No progress, nothing on the console.", "--quiet", "-q")] = False,
) -> None:
    """Hold a judge's scores against what suites expect of them.

    Leaves with 0 where every verdict is met, 1 where one is not, 2 where a suite could not be run.
    """
    from judge.cli.outputs import apart, no_input, writable

    outputs = {"--junit": junit, "--markdown": markdown}
    apart(outputs, [*suites, replay, record])
    no_input(outputs)
    try:
        if format not in _FORMATS:
            raise ConfigError(f"--format {format}: verdicts are shown on the console, as markdown or json")
        from judge.api.suites import ready

        found = ready(
            suites, cases=cases, baseline=baseline, update_baseline=update_baseline, undecided=_policy(undecided),
            out=out, **_given(ctx.params),
        )  # fmt: skip
        writable(outputs)
        outcomes = _carried_out(found, quiet=quiet)
    except JudgeError as error:
        with suppress(StorageError):
            _write(_stuck(suites, error), junit, markdown)
        raise
    if not quiet:
        echo(outcomes.report(format, colour=format == "console" and colour()).rstrip("\n"), format)
    _write(outcomes, junit, markdown)
    raise typer.Exit(2 if any(one.trouble for one in outcomes) else 0 if outcomes.passed else 1)


def _stuck(suites: Sequence[Path], error: JudgeError) -> Outcomes:
    """What nothing could be run for, in the place of its verdicts."""
    from judge.suite.records import Outcome, Outcomes, Suite

    path = suites[0]
    return Outcomes([Outcome(Suite(path, path.name.removesuffix(".judge.yaml"), {}, ()), trouble=str(error))])


def _policy(given: str | None) -> Policy | None:
    known: dict[str | None, Policy | None] = {None: None, "pass": "pass", "fail": "fail"}
    if given not in known:
        raise ConfigError(f"--undecided {given}: a case that the numbers leave open counts as pass or fail")
    return known[given]


def _given(params: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of the suites' own options."""
    given = read({name: value for name, value in params.items() if name not in _OURS})
    return given | ({"cache": False} if params["no_cache"] else {})


def _carried_out(found: Sequence[Ready], *, quiet: bool) -> Outcomes:
    """Every suite's outcome; leaves with 130 on Ctrl-C."""
    import asyncio

    from judge.api.suites import carry_out
    from judge.api.worth import ahead
    from judge.cli.stopping import until_stopped
    from judge.cli.terminal import say
    from judge.cli.watch import watch
    from judge.progress import Progress
    from judge.report.words import count

    judgments = sum(one.judgments for one in found)
    if not quiet and judgments:
        parts = [f"{count(judgments, 'judgment')} to make", ahead(run for one in found for run in one.runs)]
        say(", ".join([count(len(found), "suite"), *filter(None, parts)]))
    progress = Progress()
    work = carry_out(found, progress, lambda prepared: watch(prepared, progress, quiet=quiet))
    try:
        return asyncio.run(until_stopped(work, progress))
    except (KeyboardInterrupt, asyncio.CancelledError):
        kept = all(one.cached for one in found)
        say(
            "interrupted: there are no verdicts."
            + (" What is in the cache is not asked or paid again by the same command." if kept else "")
        )
        raise typer.Exit(130) from None


def _write(outcomes: Outcomes, junit: Path | None, markdown: Path | None) -> None:
    """The files that a CI job reads, in folders that are made where there are none. Raises StorageError."""
    for name, path in (("markdown", markdown), ("junit", junit)):
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            adds = name == "markdown" and str(path) == os.environ.get("GITHUB_STEP_SUMMARY")  # other commands' too
            with path.open("a" if adds else "w", encoding="utf-8") as file:
                file.write(outcomes.report(name))
        except OSError as error:
            raise StorageError(f"--{name} {path}: {error.strerror}") from error
