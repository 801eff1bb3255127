"""`judge test`: suites of cases held against a judge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.interrupt import carried_out
from judge.cli.options import (
    ASKING,
    JUDGE,
    KEEPING,
    PACE,
    READING,
    REPLIES,
    SCORING,
    Limit,
    MergeCriteria,
    Seed,
    option,
    read,
    shown_as,
    takes,
)
from judge.cli.outputs import apart, no_input, writable, write
from judge.cli.terminal import colour, echo, say
from judge.core.errors import ConfigError, JudgeError, StorageError

if TYPE_CHECKING:
    from judge.commands.test import Ready
    from judge.suite.records import Outcomes, Policy

_FORMATS = ("console", "markdown", "json")

_HELD = {
    "criteria": Annotated[
        list[str] | None,
        option(
            "In the place of the suites' criteria those of the same name: new/relevance.jinja for relevance.",
            metavar="NAME,...",
        ),
    ],
    "cases": Annotated[str | None, option("Only the cases in whose name this text stands.", metavar="TEXT")],
    "baseline": Annotated[
        Path | None,
        option("The runs to hold these against: DIR/SUITE of each suite, or DIR, a run itself.", metavar="DIR"),
    ],
    "update_baseline": Annotated[
        bool, typer.Option("--update-baseline", help="Make this run the baseline, where all but what moved is met.")
    ],
    "undecided": Annotated[
        str | None, option("What a case counts as that the numbers leave open: pass or fail.", metavar="pass|fail")
    ],
    "junit": Annotated[Path | None, option("Write the verdicts as JUnit XML.", metavar="FILE")],
    "markdown": Annotated[Path | None, option("Write a summary for a pull request.", metavar="FILE")],
    "out": Annotated[Path | None, option("Keep each suite's run, to look at, in DIR/SUITE.", metavar="DIR")],
}


@takes(
    JUDGE, REPLIES, READING, {"limit": Limit}, SCORING, {"merge_criteria": MergeCriteria}, ASKING, PACE, {"seed": Seed},
    _HELD, KEEPING,
    {
        "format": Annotated[str, shown_as(*_FORMATS)],
        "quiet": Annotated[bool, option("No progress, nothing on the console.", "--quiet", "-q")],
    },
)  # fmt: skip
def suites_command(
    suites: Annotated[
        list[Path], typer.Argument(metavar="SUITE|FOLDER...", help="Suites, or folders of *.judge.yaml files.")
    ],
    *,
    undecided: str | None = None,
    junit: Path | None = None,
    markdown: Path | None = None,
    format: str = "console",
    quiet: bool = False,
    **given: Any,
) -> None:
    """Hold a judge's scores against what suites expect of them.

    Leaves with 0 where every verdict is met, 1 where one is not, 2 where a suite could not be run.
    """
    outputs = {"--junit": junit, "--markdown": markdown}
    apart(outputs, [*suites, given["replay"], given["record"]])
    no_input(outputs)
    try:
        if format not in _FORMATS:
            raise ConfigError(f"--format {format}: verdicts are shown on the console, as markdown or json")
        from judge.commands.test import ready

        found = ready(suites, undecided=_policy(undecided), **read(given))
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


def _carried_out(found: Sequence[Ready], *, quiet: bool) -> Outcomes:
    """Every suite's outcome; leaves with 130 on Ctrl-C."""
    from judge.cli.watch import watch
    from judge.commands.suite_cost import ahead
    from judge.commands.test import carry_out
    from judge.execution.progress import Progress
    from judge.report.format import count

    judgments = sum(one.judgments for one in found)
    if not quiet and judgments:
        parts = [f"{count(judgments, 'judgment')} to make", ahead(run for one in found for run in one.runs)]
        say(", ".join([count(len(found), "suite"), *filter(None, parts)]))
    progress = Progress()
    work = carry_out(found, progress, lambda prepared: watch(prepared, progress, quiet=quiet))
    kept = " What is in the cache is not asked or paid again by the same command."
    stopped = "interrupted: there are no verdicts." + (kept if all(one.cached for one in found) else "")
    return carried_out(work, progress, lambda: stopped)


def _write(outcomes: Outcomes, junit: Path | None, markdown: Path | None) -> None:
    """The files that a CI job reads, in folders that are made where there are none. Raises StorageError."""
    if markdown is not None:
        adds = str(markdown) == os.environ.get("GITHUB_STEP_SUMMARY")  # other commands' too
        write("--markdown", markdown, outcomes.report("markdown"), add=adds, folders=True)
    if junit is not None:
        write("--junit", junit, outcomes.report("junit"), folders=True)
