"""`judge criteria diff`: two wordings of a criterion side by side."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.inputs import PLANS, there
from judge.cli.interrupt import carried_out, interrupted
from judge.cli.options import (
    ASKING,
    JUDGE,
    KEEPING,
    PACE,
    READING,
    REPLIES,
    SCORING,
    Limit,
    Quiet,
    Seed,
    option,
    read,
    shown_as,
    takes,
)
from judge.cli.outputs import apart, writable, write
from judge.cli.terminal import colour, echo, say

if TYPE_CHECKING:
    from judge.commands.diff_criteria import ReadyDiff
    from judge.commands.preparation import Prepared
    from judge.config import Plan
    from judge.report.views.criterion_diff import PromptDiff

_SIDES = ("A", "B")
"""What the two criteria are called where their runs are told of."""


@takes(
    JUDGE, READING, {"limit": Limit}, SCORING, ASKING, PACE, {"seed": Seed}, REPLIES, KEEPING,
    {
        "format": Annotated[str, shown_as("console", "markdown", "json")],
        "output": Annotated[Path | None, option("Write here (default: to the console).", metavar="FILE")],
        "quiet": Quiet,
    },
)  # fmt: skip
def diff_command(
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
    format: str = "console",
    output: Path | None = None,
    quiet: bool = False,
    **given: Any,
) -> None:
    """Show what differs between two criteria.

    Their text, with DATA the prompts, and with a judge the scores. Leaves with 0 also where much differs, and with 1
    where judgments failed.
    """
    from judge.commands.diff_criteria import ready
    from judge.data import samples
    from judge.report.views.criterion_diff import check

    check(format)
    made = _planned(data, given)
    shards = [] if made.data is None else [path for path, _ in samples.files(made.data)]
    apart({"--output": output}, [Path(before), Path(after), data, *shards, made.replay, made.record])
    writable({"--output": output})
    found = _carried_out(ready(before, after, made, item=item, system=system, human=human), quiet=quiet)
    if output is not None:
        write("--output", output, found.report(format))
        typer.echo(str(output))
    elif not quiet:
        echo(found.report(format, colour=colour()).rstrip("\n"), format)
    raise typer.Exit(1 if found.failed else 0)


def _planned(data: Path | None, given: Mapping[str, Any]) -> Plan:
    from judge.config import plan

    options = read(given)
    if data is not None:
        there(data)
    is_plan = data is not None and data.suffix in PLANS
    return plan(data, options) if is_plan else plan(given={"data": data, **options})


def _carried_out(found: ReadyDiff, *, quiet: bool) -> PromptDiff:
    """Ask what there is to ask, watched."""
    from judge.cli.watch import watch
    from judge.commands.cost_estimate import forecast
    from judge.commands.diff_criteria import run
    from judge.execution.progress import Progress

    runs = found.runs or ()
    for side, one in zip(_SIDES, runs, strict=False):
        if not quiet and (said := forecast(one)):
            say(f"{side}: {said}")
    progress = Progress()

    def shown(prepared: Prepared) -> AbstractContextManager[None]:
        side = next(side for side, one in zip(_SIDES, runs, strict=False) if one is prepared)
        return watch(prepared, progress, quiet=quiet, of=side)

    work = run(found, progress, shown)
    cached = all(one.plan.cache is not False for one in runs)
    return carried_out(work, progress, lambda: interrupted(cached=cached))
