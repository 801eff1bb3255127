"""`judge label`: a page on which people rate texts, and the file of their ratings."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.options import PATH, Command, data_argument, option, to_config
from judge.cli.terminal import check_outputs, print_message, print_untrusted, write

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judge.commands.label.command import Labelling
    from judge.commands.label.ratings_needed import Need
    from judge.commands.label.server import LabelServer
    from judge.config import RunConfig


@click.command(
    cls=Command,
    takes="run",
    only=("map", "systems", "where", "limit", "criteria", "language", "seed"),
)
@data_argument
@option(
    "--raters",
    "Names of the people who rate; each has their own order.",
    default="",
    metavar="NAME,...",
)
@option(
    "--items",
    "Only a random sample of N items, the same for all.",
    type=int,
    metavar="N",
)
@option(
    "--repeat",
    "Share of texts rated twice by each rater (default: 0.1).",
    type=float,
    default=0.1,
    metavar="SHARE",
)
@option("--pairwise", "Compare the texts of two systems, side by side.", is_flag=True)
@option(
    "--output",
    "File of the ratings (default: ratings.jsonl).",
    type=PATH,
    default=Path("ratings.jsonl"),
    metavar="FILE",
    group="Output",
)
@option(
    "--file",
    "Write a page that works without judge, and saves a file.",
    type=PATH,
    metavar="HTML",
    group="Output",
)
@option(
    "--import",
    "Add the ratings that a page of --file saved.",
    "import_",
    type=PATH,
    metavar="FILE",
    group="Output",
)
@option(
    "--plan", "Print how many ratings a precision needs.", is_flag=True, group="Output"
)
@option(
    "--precision",
    "With --plan: half the width of an interval (default: 0.1).",
    type=float,
    default=0.1,
    metavar="WIDTH",
    group="Output",
)
def label_command(
    data: Path,
    *,
    raters: str,
    items: int | None,
    repeat: float,
    pairwise: bool,
    output: Path,
    file: Path | None,
    import_: Path | None,
    plan: bool,
    precision: float,
    **options: Any,
) -> None:
    """Rate texts in the browser, blind and in random order.

    \b
    Example:
      judge label replies.csv --criteria polite --raters anna,ben

    Each rating is saved as it is made. Run the same command again to resume."""
    from judge.commands.label.preparation import prepare_labelling
    from judge.commands.label.server import LabelServer
    from judge.config import RunConfig, split

    config, _ = to_config(data, options, RunConfig)
    rater_names = split(raters)
    check_outputs({"--file": file}, [data, config.data, output])
    labelling = prepare_labelling(
        config,
        rater_names,
        output,
        items=items,
        pairwise=pairwise,
        repeat=repeat,
    )
    # A plan needs no raters, and an imported file names its own.
    if plan:
        _print_plan(labelling, precision)
    elif import_ is not None:
        _import_ratings(import_, labelling, output)
        _print_end(labelling, config)
    elif file is not None:
        labelling.require_raters()
        _write_page(file, labelling, rater_names)
        flag = " --pairwise" if pairwise else ""
        print_untrusted(f"  {_command('label', config)} --import FILE{flag}")
    else:
        labelling.require_raters()
        # A file that cannot be read is an error now, not on the page.
        labelling.ratings()
        labelling.check_output()
        _serve(labelling, LabelServer(labelling))
        _print_end(labelling, config)


def _import_ratings(saved: Path, labelling: Labelling, output: Path) -> None:
    """Add the ratings that a page saved, and say how many are new."""
    from judge.core.format import plural

    imported = labelling.import_file(saved)
    new_ratings = plural(imported.new, "rating")
    summary = f"{new_ratings} added to {output}"
    if imported.known:
        summary = f"{summary}; {imported.known:,} were there already"
    click.echo(summary)


def _write_page(file: Path, labelling: Labelling, rater_names: Sequence[str]) -> None:
    """Write the page that works without judge, and say what to do with it."""
    from judge.commands.label.server import page

    write("--file", file, page(labelling, None, served=False))
    raters = " and ".join(rater_names)
    advice = "Add what they save with the same options and --import:"
    click.echo(f"{file}\n\nSend it to {raters}. {advice}")


def _serve(labelling: Labelling, server: LabelServer) -> None:
    """Serve the page until Ctrl-C."""
    import webbrowser

    for rater in labelling.raters:
        click.echo(f"{rater}: {server.url(rater)}")
    progress = labelling.progress()
    if any(n_rated for n_rated, _ in progress.values()):
        print_message(f"Rated so far: {_by_rater(progress)}")
    print_message(f"Ratings go to {labelling.output}. Press Ctrl-C to end.")
    # Into a pipe, the addresses would stay in the buffer for as long as the server runs.
    sys.stdout.flush()
    # A shell ignores SIGINT for a job behind `&`.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.default_int_handler)
    # Each of several raters has an address of their own, which they open themselves.
    is_lone = len(labelling.raters) == 1
    try:
        if is_lone and _is_graphical() and sys.stdout.isatty():
            webbrowser.open(server.url(labelling.raters[0]))
        server.serve_forever()
    except KeyboardInterrupt:
        # The lock waits for a rating that is being written.
        with labelling.lock:
            server.server_close()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _by_rater(progress: Mapping[str, tuple[int, int]]) -> str:
    """Return the progress as a text: `anna 3 of 20, ben 0 of 20`."""
    counts: list[str] = []
    for rater, (n_rated, total) in progress.items():
        counts.append(f"{rater} {n_rated:,} of {total:,}")
    return ", ".join(counts)


def _is_graphical() -> bool:
    """Return whether a browser has a window: elsewhere, one in the terminal might start."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _print_end(labelling: Labelling, config: RunConfig) -> None:
    """Print how many ratings there are by rater, and the next command."""
    from judge.core.format import plural

    # A text that is rated twice, to measure how well a rater agrees with themselves, counts once.
    ratings = [rating for rating in labelling.ratings().every if not rating.repeat]
    number_of_ratings = plural(len(ratings), "rating")
    total = f"\n{number_of_ratings} in {labelling.output}"
    if not ratings:
        print_untrusted(total)
        return
    count_by_rater = Counter(rating.rater for rating in ratings)
    # How many remain to be rated is known only if the command names all raters of the file.
    if labelling.raters and count_by_rater.keys() <= set(labelling.raters):
        by_rater = _by_rater(labelling.progress())
    else:
        counts = [f"{rater} {count:,}" for rater, count in count_by_rater.items()]
        by_rater = ", ".join(counts)
    print_untrusted(f"{total}: {by_rater}")
    command_name = "rank" if labelling.pairwise else "validate"
    command = _command(command_name, config)
    ratings_file = shlex.quote(str(labelling.output))
    print_untrusted(f"Next:\n  {command} --ratings {ratings_file} --model MODEL")


def _command(name: str, config: RunConfig) -> str:
    """Return a command with the data, and the options that select its texts and criteria."""
    from judge.core.messages import option as format_option

    arguments = [str(config.data)]
    for option_name in ("map", "systems", "where", "criteria"):
        value = getattr(config, option_name)
        if value and option_name in config.model_fields_set:
            # `--criteria polite: Is it polite?`: only the value needs quotes in a shell.
            flag, _, typed_value = format_option(option_name, value).partition(" ")
            arguments += [flag, typed_value]
    return f"judge {name} {shlex.join(arguments)}"


def _print_plan(labelling: Labelling, precision: float) -> None:
    """Print how much each rater rates, and how many ratings intervals of this precision need."""
    from judge.commands.label.ratings_needed import plan_labelling
    from judge.core.format import plural

    # Criteria with the same needs share a table.
    names_by_needs: dict[tuple[Need, ...], list[str]] = {}
    for criterion in labelling.criteria:
        needs = tuple(plan_labelling(labelling, criterion, precision))
        names_by_needs.setdefault(needs, []).append(criterion.name)
    # All raters have equally many tasks, so that any name will do.
    tasks = labelling.tasks("")
    n_criteria = len(labelling.criteria)
    ratings = plural(len(tasks) * n_criteria, "rating")
    item_names = {unit.item for unit in labelling.units.values()}
    items = plural(len(item_names), "item")
    noun = "pair" if labelling.pairwise else "text"
    units = plural(len(labelling.units), noun)
    n_repeated = sum(task.repeat for task in tasks)
    criteria = "criteria" if n_criteria > 1 else "criterion"
    print_untrusted(
        f"Each rater gives {ratings}: {items}, {units}, {n_repeated:,} shown twice, "
        f"{n_criteria} {criteria}.\n"
        "For 95% intervals of these widths you need:"
    )
    for needs, criterion_names in names_by_needs.items():
        names = ", ".join(criterion_names)
        print_untrusted(f"\n{names}")
        for need in needs:
            print_untrusted(f"  {need.measure:<30} {need.needed:>7,} {need.unit}")
            print_untrusted(f"    assuming {need.assumes}")
