"""`judge test`: run suites and check their expectations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from judge.cli.options import (
    PATH,
    Command,
    check_run_folder,
    format_option,
    full_option,
    option,
    quiet_option,
)
from judge.cli.run import run_interruptibly, write_outputs
from judge.cli.terminal import (
    check_outputs,
    print_message,
    print_report,
    shows_report,
    write,
)
from judge.core import plugins
from judge.core.errors import JudgeError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judge.commands.prepared_suites import PreparedSuite
    from judge.config import RunConfig
    from judge.execution.budget import BudgetLedger
    from judge.run.generate import Outputs
    from judge.suite.evaluate import Outcomes

_FORMATS = ("console", "markdown", "html", "latex", "csv", "json", "junit")


@click.command(cls=Command, takes="test")
@click.argument(
    "suites",
    type=PATH,
    nargs=-1,
    required=True,
    metavar="SUITE|FOLDER...",
    help="Suites, or folders of *.judge.yaml files.",
)
@option(
    "--criteria",
    "Replace the suites' criteria of the same name with these.",
    multiple=True,
    metavar="CRITERION,...",
)
@option("--cases", "Only the cases whose name contains this text.", metavar="TEXT")
@option(
    "--baseline",
    "Runs to compare with: DIR/SUITE of each suite, or one run.",
    type=PATH,
    metavar="DIR",
)
@option(
    "--update-baseline",
    "Make this run the baseline if only changes from it fail.",
    is_flag=True,
)
@option(
    "--undecided",
    "Treat inconclusive cases as pass or fail.",
    type=click.Choice(["pass", "fail"]),
    metavar="pass|fail",
)
@option(
    "--risk", "Estimate how often verdicts change if nothing changed.", is_flag=True
)
@option(
    "--junit",
    "Write the verdicts as JUnit XML.",
    type=PATH,
    metavar="FILE",
    group="Output",
)
@option(
    "--markdown",
    "Write a summary for a pull request.",
    type=PATH,
    metavar="FILE",
    group="Output",
)
@option(
    "--out",
    "Save the suite's run; of folders, each in DIR/SUITE.",
    type=PATH,
    metavar="DIR",
    group="Output",
)
@format_option(*_FORMATS, open_ended=True)
@full_option
@quiet_option
def suites_command(
    suites: tuple[Path, ...],
    *,
    criteria: tuple[str, ...],
    cases: str | None,
    baseline: Path | None,
    update_baseline: bool,
    undecided: Literal["pass", "fail"] | None,
    risk: bool,
    junit: Path | None,
    markdown: Path | None,
    out: Path | None,
    format: str,
    full: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Run suites and check their expectations.

    \b
    Example:
      judge test replies.judge.yaml --replay calls.jsonl

    Exits with 0 if everything passes, 1 if something fails or is undecided, 2 if a suite
    could not run.
    """
    from judge.config import criterion_entries

    check_run_folder(out)
    outputs = {"--junit": junit, "--markdown": markdown}
    check_outputs(outputs, [*suites, options.get("replay"), options.get("record")])
    options |= {
        "cases": cases,
        "baseline": baseline,
        "update_baseline": update_baseline,
        "undecided": undecided,
        "risk": risk,
        "criteria": criterion_entries(*criteria) if criteria else None,
        "out": out,
    }
    try:
        # An unknown format is an error before anything is paid.
        if format not in _FORMATS:
            plugins.load("formats", format)
        outcomes = _run(suites, options, quiet=quiet)
    except JudgeError as error:
        # A CI job reads the reports, so they have to show the error, too. This error ends the
        # command, even if the reports cannot be written either.
        with suppress(StorageError):
            _write_reports(_failed_outcomes(suites[0], error), junit, markdown)
        raise
    if shows_report(format, quiet=quiet):
        print_report(outcomes, format, full=full)
    _write_reports(outcomes, junit, markdown)
    stopped = [outcome for outcome in outcomes if outcome.trouble]
    # The log of a CI job has the messages. The report may be in a file, or nowhere.
    if quiet or format != "console":
        for outcome in stopped:
            print_message(f"judge: {outcome.suite.path}: {outcome.trouble}")
    if stopped:
        raise click.exceptions.Exit(2)
    raise click.exceptions.Exit(0 if outcomes.passed else 1)


def _failed_outcomes(path: Path, error: JudgeError) -> Outcomes:
    """Return the outcomes of suites that could not run, under the name of the first."""
    from judge.suite.evaluate import Outcome, Outcomes
    from judge.suite.schema import Suite

    suite = Suite(path, path.name.removesuffix(".judge.yaml"), {}, ())
    return Outcomes([Outcome(suite, trouble=str(error))])


def _run(paths: Sequence[Path], options: Mapping[str, Any], *, quiet: bool) -> Outcomes:
    """Run the suites with a progress display; exit with 130 on Ctrl-C."""
    from judge.commands.prepared_suites import prepare_suites
    from judge.commands.test import run_suites
    from judge.execution.budget import BudgetLedger
    from judge.run.generate import Outputs

    def written(config: RunConfig, ledger: BudgetLedger | None) -> Outputs:
        ledger_of_run = ledger or BudgetLedger(config.budget)
        _, _, outputs = write_outputs(config, ledger_of_run, quiet=quiet)
        return outputs or Outputs(())

    prepared_suites = prepare_suites(paths, write=written, **options)
    if not quiet:
        announcement = _announcement(prepared_suites)
        if announcement:
            print_message(announcement)
    stores: list[str] = []
    for prepared_suite in prepared_suites:
        stores += prepared_suite.replies_kept_in
    reply_store = ""
    # If one run loses its replies, resuming is not free.
    if all(stores):
        reply_store = " or the ".join(dict.fromkeys(stores))
    return run_interruptibly(
        partial(run_suites, prepared_suites),
        quiet=quiet,
        reply_store=reply_store,
        done=lambda _: ": there are no verdicts",
    )


def _announcement(prepared_suites: Sequence[PreparedSuite]) -> str:
    """Say what the suites will do, and at what cost; "" if they judge nothing."""
    from judge.core.format import plural
    from judge.run.cost_estimate import cost_summary

    judgments = sum(suite.judgments for suite in prepared_suites)
    if not judgments:
        return ""
    runs = [run for suite in prepared_suites for run in suite.runs.values()]
    # A judgment by a checklist is several questions, which may share a request.
    has_checklists = any(
        criterion.is_checklist for run in runs for criterion in run.criteria
    )
    work_to_do = f"{plural(judgments, 'judgment')} to make"
    if has_checklists:
        work_to_do = f"{plural(judgments, 'question')} to ask"
    parts = [plural(len(prepared_suites), "suite"), work_to_do, cost_summary(runs)]
    return ", ".join(part for part in parts if part)


def _write_reports(
    outcomes: Outcomes, junit: Path | None, markdown: Path | None
) -> None:
    """Write the files that a CI job reads, and their folders. Raises StorageError."""
    if markdown is not None:
        # The summary of a GitHub job has the texts of all its commands.
        adds = str(markdown) == os.environ.get("GITHUB_STEP_SUMMARY")
        report = outcomes.report("markdown")
        write("--markdown", markdown, report, add=adds, folders=True)
    if junit is not None:
        write("--junit", junit, outcomes.report("junit"), folders=True)
