"""`judge audit`: test a judge with controlled changes to the user's texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.options import Data, Quiet, format_option, option, takes, to_config
from judge.cli.run import run_interruptibly
from judge.cli.terminal import print_message, print_untrusted, use_color

if TYPE_CHECKING:
    from judge.audits.card import JudgeCard
    from judge.commands.audit import AuditPlan
    from judge.commands.preparation import PreparedRun


@takes("audit")
def audit_command(
    data: Data,
    *,
    items: Annotated[int, option("Items to take, one text of each (default: 100).", metavar="N")] = 100,
    probes: Annotated[
        str | None,
        option(
            "What to try: sensitivity,bias,injection (default: all).",
            metavar="NAME,...",
            known=("sensitivity", "bias", "injection"),
        ),
    ] = None,
    format: Annotated[str, format_option("console", "markdown", "html", "json")] = "console",
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Test a judge with controlled changes to your texts.

    Reports which damage it notices, its biases, and whether injected instructions move it."""
    from judge.audits.card import PROBES
    from judge.commands.audit import plan_audit
    from judge.config import RunConfig

    config, folder = to_config(data, options, RunConfig)
    card = _run(plan_audit(config, items=items, probes=PROBES if probes is None else probes), quiet=quiet)
    if not quiet:
        print_untrusted(card.report(format, colour=use_color()).rstrip("\n"), format)
    if card.failures:
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in card.failures.items())
        print_message(f"{card.info['failed']:,} of {card.info['judgments']:,} judgments have no score: {kinds}")
    print_message(f"card: {folder / 'card.html'}")
    raise typer.Exit(1 if card.failures else 0)


def _run(audit_plan: AuditPlan, *, quiet: bool) -> JudgeCard:
    """Run the audit with a progress display; on Ctrl-C print how to resume."""
    from judge.cli.progress_bar import watch
    from judge.commands.audit import audit_estimate, run_audit
    from judge.execution.progress import Progress

    progress = Progress()

    @contextmanager
    def watch_run(name: str, prepared: PreparedRun) -> Iterator[None]:
        if not quiet and prepared.judges:
            print_message(f"{name}:")
        with watch(prepared, progress, quiet=quiet):
            yield

    if not quiet:
        print_message(audit_estimate(audit_plan))
    hint = " What is in the cache is not asked or paid again." if audit_plan.config.cache is not False else ""
    message = f"interrupted: start the same command again to go on.{hint}"
    return run_interruptibly(run_audit(audit_plan, progress, watch_run), progress, lambda: message)
