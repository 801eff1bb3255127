"""`judge audit`: test a judge with controlled changes to the user's texts."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.options import (
    Command,
    check_run_folder,
    data_argument,
    full_option,
    option,
    quiet_option,
    report_format,
    to_config,
)
from judge.cli.run import Display, run_interruptibly
from judge.cli.terminal import print_message, print_report, shows_report

if TYPE_CHECKING:
    from judge.commands.card.card import JudgeCard
    from judge.execution.progress import Progress
    from judge.run.preparation import PreparedRun


@click.command(cls=Command, takes="audit")
@data_argument
@option(
    "--items", "Items to take, one text of each (default: 100).", type=int, default=100, metavar="N"
)
@option(
    "--probes",
    "What to try: sensitivity,bias,injection (default: all).",
    metavar="NAME,...",
    known=("sensitivity", "bias", "injection"),
)
@report_format
@full_option
@quiet_option
def audit_command(
    data: Path,
    *,
    items: int,
    probes: str | None,
    format: str,
    full: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Test a judge with controlled changes to your texts.

    \b
    Example:
      judge audit replies.csv --model gpt-5.4-mini --criteria polite

    Reports which damage it notices, its biases, and whether injected instructions move it."""
    from judge.commands.card.card import PROBES
    from judge.commands.card.command import audit_estimate, plan_audit, run_audit
    from judge.config import RunConfig

    config, folder = to_config(data, options, RunConfig)
    check_run_folder(folder)
    probe_names = PROBES if probes is None else probes
    audit_plan = plan_audit(config, items=items, probes=probe_names)
    if not quiet:
        print_message(audit_estimate(audit_plan))

    def work(progress: Progress, display: Display) -> Coroutine[Any, Any, JudgeCard]:
        # Each probe is a run of its own, with its own progress.
        @contextmanager
        def watch(name: str, prepared: PreparedRun) -> Iterator[None]:
            if not quiet and prepared.judges:
                print_message(f"{name}:")
            with display(prepared.judges):
                yield

        return run_audit(audit_plan, progress, watch)

    card = run_interruptibly(work, quiet=quiet, reply_store=config.replies_kept_in)
    if shows_report(format, quiet=quiet):
        print_report(card, format, full=full)
    if card.failures:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in card.failures.items())
        failed = card.info["failed"]
        judgments = card.info["judgments"]
        print_message(f"{failed:,} of {judgments:,} judgments have no score: {kinds}")
    print_message(f"card: {folder / 'card.html'}")
    raise click.exceptions.Exit(1 if card.failures else 0)
