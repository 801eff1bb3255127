"""`judge label`: a page on which people rate texts, and the file of their ratings."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.options import PATH, Command, data_argument, option, to_config
from judge.cli.terminal import check_outputs, print_message, print_untrusted, write
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from judge.commands.label.command import Labelling
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
@option("--items", "Only a random sample of N items, the same for all.", type=int, metavar="N")
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
@option("--plan", "Print how many ratings a precision needs.", is_flag=True, group="Output")
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

    Each rating is saved as it is made. Run the same command again to resume."""
    from judge.commands.label.command import prepare_labelling
    from judge.commands.label.server import LabelServer
    from judge.config import RunConfig, split
    from judge.core.format import escape_controls

    config, _ = to_config(data, options, RunConfig)
    names = split(raters)
    if len({*names}) < len(names) or any(escape_controls(name) != name for name in names):
        raise ConfigError(f"--raters {raters}: give each rater a name of their own")
    check_outputs({"--file": file}, [data, config.data, output])
    labelling = prepare_labelling(
        config, names, output, items=items, pairwise=pairwise, repeat=repeat
    )
    if not (names or plan or import_):
        raise ConfigError("no raters: name those who rate, such as --raters anna,ben")
    if plan:
        _print_plan(labelling, precision)
    elif import_ is not None:
        _import_ratings(import_, labelling, output)
        _print_end(labelling, config)
    elif file is not None:
        _write_page(file, labelling, names)
        print_untrusted(f"  {_command('label', config)} --import FILE{' --pairwise' * pairwise}")
    else:
        labelling.ratings()  # a file that cannot be read is an error now, not on the page
        labelling.check_output()
        _serve(labelling, LabelServer(labelling))
        _print_end(labelling, config)


def _import_ratings(saved: Path, labelling: Labelling, output: Path) -> None:
    """Add the ratings that a page saved, and say how many are new."""
    from judge.core.format import plural

    imported = labelling.import_file(saved)
    known = f"; {imported.known:,} were there already" if imported.known else ""
    click.echo(f"{plural(imported.new, 'rating')} added to {output}{known}")


def _write_page(file: Path, labelling: Labelling, names: Sequence[str]) -> None:
    """Write the page that works without judge, and say what to do with it."""
    from judge.commands.label.server import page

    write("--file", file, page(labelling, None, served=False))
    advice = "Add what they save with the same options and --import:"
    click.echo(f"{file}\n\nSend it to {' and '.join(names)}. {advice}")


def _serve(labelling: Labelling, server: Any) -> None:
    """Serve the page until Ctrl-C."""
    import webbrowser

    for name in labelling.raters:
        click.echo(f"{name}: {server.url(name)}")
    print_message(f"Ratings go to {labelling.output}. Press Ctrl-C to end.")
    sys.stdout.flush()
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell ignores SIGINT for a job behind `&`
        signal.signal(number, signal.default_int_handler)
    graphical = (
        sys.platform in ("darwin", "win32")
        or os.environ.get("DISPLAY")
        or os.environ.get("WAYLAND_DISPLAY")
    )
    try:
        alone = len(labelling.raters) == 1  # each of several has an address of their own
        if (
            alone and graphical and sys.stdout.isatty()
        ):  # elsewhere a browser of the terminal might start
            webbrowser.open(server.url(labelling.raters[0]))
        server.serve_forever()
    except KeyboardInterrupt:
        with labelling.lock:  # a rating that is being written
            server.server_close()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _print_end(labelling: Labelling, config: RunConfig) -> None:
    """Print how many ratings there are by rater, and the next command."""
    from judge.core.format import plural

    made = [rating for rating in labelling.ratings().every if not rating.repeat]
    each = {
        name: sum(rating.rater == name for rating in made)
        for name in dict.fromkeys(r.rater for r in made)
    }
    by = f": {', '.join(f'{name} {number:,}' for name, number in each.items())}" if each else ""
    print_untrusted(f"\n{plural(len(made), 'rating')} in {labelling.output}{by}")
    if made:
        print_untrusted(
            f"Next:\n  {_command('rank' if labelling.pairwise else 'validate', config)}"
            f" --ratings {shlex.quote(str(labelling.output))} --model MODEL"
        )


def _command(name: str, config: RunConfig) -> str:
    """Return a command with the options that say which texts and criteria are meant."""
    from judge.core.messages import option as typed

    given = [str(config.data)]
    for key in ("map", "systems", "where", "criteria"):
        if key in config.model_fields_set and (value := getattr(config, key)):
            flag, text = typed(key, value).split(" ", 1)
            given += [flag, text]
    return f"judge {name} {shlex.join(given)}"


def _print_plan(labelling: Labelling, precision: float) -> None:
    """Print a table of what the wanted intervals need."""
    from judge.commands.label.ratings_needed import plan_labelling
    from judge.core.format import plural

    needs: dict[
        tuple[tuple[str, int, str, str], ...], list[str]
    ] = {}  # criteria with the same needs
    for criterion in labelling.criteria:
        same = tuple(
            (n.measure, n.needed, n.unit, n.assumes)
            for n in plan_labelling(labelling, criterion, precision)
        )
        needs.setdefault(same, []).append(criterion.name)
    items, tasks = {unit.item for unit in labelling.units.values()}, labelling.tasks("")
    kind, again = "pair" if labelling.pairwise else "text", sum(task.repeat for task in tasks)
    print_untrusted(
        f"Each rater gives {plural(len(tasks) * len(labelling.criteria), 'rating')}: {plural(len(items), 'item')}, "
        f"{plural(len(labelling.units), kind)}, {again:,} shown twice, "
        f"{len(labelling.criteria)} {'criteria' if len(labelling.criteria) > 1 else 'criterion'}.\n"
        "For 95% intervals of these widths you need:"
    )
    for same, names in needs.items():
        print_untrusted(f"\n{', '.join(names)}")
        for measure, needed, unit, assumes in same:
            print_untrusted(f"  {measure:<30} {needed:>7,} {unit}\n    assuming {assumes}")
