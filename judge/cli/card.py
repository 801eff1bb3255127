"""`judge validate --card`: may this judge be trusted for this job?"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.options import check_run_folder, to_config
from judge.cli.run import (
    Display,
    refuse_options,
    refuse_options_without_use,
    run_interruptibly,
    typed_options,
)
from judge.cli.terminal import print_message
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge.commands.card.card import JudgeCard
    from judge.config import RunConfig
    from judge.execution.progress import Progress
    from judge.run.preparation import PreparedRun

OPTIONS = ("items", "probes")
"""The options that only a card takes."""
_ANY = (
    "card",
    "epsilon",
    "format",
    "json",
    "full",
    "output",
    "table",
    "columns",
    "quiet",
    *OPTIONS,
)
"""The options of `validate` that a card of new judgments takes, beside those of its runs."""
OF_A_FINISHED_RUN = (
    "table",
    "columns",
    "full",
    "output",
    "quiet",
    "seed",
    "where",
    "ratings",
    "rating_criterion",
    "epsilon",
)
"""The options that apply to a finished run, with a card and without; the others need a new run."""


def refuse_without_card() -> None:
    """Raise ConfigError for an option that needs `--card`."""
    for name in OPTIONS:
        if f"--{name}" in typed_options(besides=()):
            raise ConfigError(f"--{name}: is for --card")


def show_card(
    data: Path,
    options: Mapping[str, Any],
    show: Callable[[JudgeCard], None] | None,
    *,
    items: int,
    probes: str | None,
    epsilon: float,
    quiet: bool,
) -> None:
    """Make the card of data or of a finished run, and `show` it if it is given.

    Exits with 1 if judgments failed.
    """
    from judge.commands.card.finished import is_run

    if is_run(data):
        card = _finished_card(data, options, epsilon=epsilon)
        if show is not None:
            show(card)
        return
    config, folder = _card_config(data, options)
    card = _make_card(config, items=items, probes=probes, epsilon=epsilon, quiet=quiet)
    if show is not None:
        show(card)
    if card.failures:
        from judge.core.failure_kinds import failure_kind
        from judge.core.format import plural

        counts = []
        for error, count in card.failures.items():
            kind = failure_kind(error)
            counts.append(f"{count:,} {kind}")
        failure_kinds = ", ".join(counts)
        failed = card.info["failed"]
        judgments = card.info["judgments"]
        failed_judgments = f"{failed:,} of {plural(judgments, 'judgment')}"
        print_message(f"{failed_judgments} have no score: {failure_kinds}")
    print_message(f"card: {folder / 'card.html'}")
    raise click.exceptions.Exit(1 if card.failures else 0)


def _card_config(data: Path, options: Mapping[str, Any]) -> tuple[RunConfig, Path]:
    """Return the configuration of the card's runs, and its folder. Raises ConfigError."""
    from judge.config import RunConfig, run_options

    known_options = run_options("card")
    refuse_options_without_use(options, besides=(*_ANY, *known_options))
    config, folder = to_config(data, options, RunConfig)
    check_run_folder(folder)
    return config, folder


def _make_card(
    config: RunConfig,
    *,
    items: int,
    probes: str | None,
    epsilon: float,
    quiet: bool,
) -> JudgeCard:
    """Judge the texts and their changes, and return the card."""
    from judge.commands.card.card import PROBES
    from judge.commands.card.card_plan import card_estimate, plan_card
    from judge.commands.card.command import run_card

    probe_names = PROBES if probes is None else probes
    plan = plan_card(config, items=items, probes=probe_names, epsilon=epsilon)
    if not quiet:
        print_message(card_estimate(plan))

    def work(progress: Progress, display: Display) -> Coroutine[Any, Any, JudgeCard]:
        # Each probe is a run of its own, with its own progress.
        @contextmanager
        def watch(name: str, prepared: PreparedRun) -> Iterator[None]:
            if not quiet and prepared.judges:
                print_message(f"{name}:")
            with display(prepared.judges):
                yield

        return run_card(plan, progress, watch)

    return run_interruptibly(work, quiet=quiet, reply_store=config.replies_kept_in)


def _finished_card(
    run: Path, options: Mapping[str, Any], *, epsilon: float
) -> JudgeCard:
    """Return the card of a finished run. Raises ConfigError for an option that asks a judge."""
    from judge.commands.card.finished import finished_card
    from judge.config import RunConfig

    refuse_options(run, besides=("card", *OF_A_FINISHED_RUN))
    config = RunConfig.load(options=options)
    return finished_card(
        run,
        where=config.where,
        ratings=config.ratings,
        rating_criterion=config.rating_criterion,
        epsilon=epsilon,
        seed=config.seed,
    )
