"""`judge init`: start a project or a first suite."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.options import PATH, Command, option
from judge.cli.terminal import print_untrusted, write
from judge.core.errors import ConfigError, DataError, StorageError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


from judge.core.records import Sample

_NEXT = (
    "judge run run.yaml    # score the replies and compare the two prompts; then open runs/first/report.html",
    "judge test .          # check the suite's expectations",
    "judge doctor          # check your setup for a real judge: keys, extras, cache",
)


@click.command(
    cls=Command,
    takes="run",
    only=("criteria", "map", "systems", "model"),
)
@click.argument(
    "folder",
    type=PATH,
    required=False,
    metavar="[FOLDER]",
    help="Where to write a project (default: this folder).",
)
@option(
    "--suite",
    "Write a suite for these data, or with a run as baseline.",
    type=PATH,
    metavar="DATA|RUN",
)
@option(
    "--output",
    "File of the suite (default: NAME.judge.yaml); - for the console.",
    type=PATH,
    metavar="FILE",
    group="Output",
)
def init_command(
    folder: Path | None, *, suite: Path | None, output: Path | None, **options: Any
) -> None:
    """Start a project that runs offline, or a suite.

    The project has data, a criterion, run.yaml, a suite and a CI job, and needs no key. Existing files are never
    overwritten. The other options are for --suite.
    """
    from importlib.resources import files

    if suite is not None:
        if folder is not None:
            raise ConfigError(
                f"{folder}: --suite writes a file, not a project; name it with --output FILE"
            )
        _init_suite(suite, output, options)
        return
    if given := [*options, *(["output"] if output is not None else [])]:
        raise ConfigError(f"--{given[0]}: is for --suite DATA; leave it out to start a project")
    folder = folder or Path()
    if folder.is_file():
        raise ConfigError(f"{folder}: is a file; name a folder to start a project in")
    contents = {folder / name: file for name, file in _walk(files("judge.cli") / "starter")}
    if existing := [str(path) for path in contents if path.exists() or path.is_symlink()]:
        verb = "is" if len(existing) == 1 else "are"
        raise ConfigError(
            f"{', '.join(existing)} {verb} already there, so nothing was written. Name another: judge init FOLDER"
        )
    for path, file in contents.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.read_bytes())
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror or error}") from error
    for path in contents:
        click.echo(str(path))
    click.echo("\nNothing in it needs a key or the network. Next:")
    inside = [f"cd {shlex.quote(str(folder))}"] if folder.resolve() != Path.cwd() else []
    for line in (*inside, *_NEXT):
        click.echo(f"  {line}")


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    """Yield the relative names and the files of a folder; its own files come before those of subfolders."""
    for entry in sorted(folder.iterdir(), key=lambda entry: (entry.is_dir(), entry.name)):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry


def _init_suite(data: Path, output: Path | None, options: dict[str, Any]) -> None:
    """Write a suite from data and its human ratings, or from a run, which becomes the suite's baseline."""
    from judge.config import load_config
    from judge.core.format import one_line
    from judge.data import samples
    from judge.suite.load import SUFFIX, load
    from judge.suite.scaffold import UNUSED, create_suite

    if not all(options.get("model", ["none"])):
        raise ConfigError("--model: no name; leave it out, or name a judge")
    options |= {
        name: getattr(load_config(given=options), name)
        for name in ("map", "systems")
        if name in options
    }
    names = options.pop("criteria", [])
    is_run = not samples.is_data(data)
    if is_run:
        source = _read_run(data, options)
    else:
        rows = samples.load(
            data, mapping=options.get("map", {}), systems=options.get("systems", ())
        )
        source = _Source(rows, {"data": data, **options}, [])
    console = output == Path("-")
    path = Path(f"{samples.dataset_name(data)}{SUFFIX}") if output is None or console else output
    if path.exists() and not console:
        raise ConfigError(f"{path}: already exists; name another file with --output FILE")
    baseline = data if is_run else None
    text = create_suite(
        source.samples, path, names or source.criteria, options=source.options, baseline=baseline
    )
    if console:
        print_untrusted(text.removesuffix("\n"))
        return
    write("--output", path, text)
    click.echo(f"{path}: read it, then judge test {path}")
    for unused in (
        line.removeprefix("# ") for line in text.splitlines() if line.startswith(UNUSED)
    ):
        click.echo(unused)
    rated = {name: None for sample in source.samples for name in sample.human}
    if rated and not names and not any(case.needs_ratings for case in load(path).cases):
        click.echo(
            f"the suite tests no rated criterion ({', '.join(map(one_line, rated))}): judge init --suite {data} "
            f"--criteria {one_line(next(iter(rated)))}.jinja, with a criterion of that name"
        )


@dataclass(frozen=True, slots=True)
class _Source:
    """The content of a new suite; `criteria` are names and paths, known only from a run."""

    samples: Sequence[Sample]
    options: dict[str, Any]
    criteria: list[str]


def _read_run(folder: Path, options: Mapping[str, Any]) -> _Source:
    """Read a finished run. `options` override its own. Raises ConfigError."""
    from judge.config import RunConfig, load_config, run_options
    from judge.core.criterion_entry import keys_of, name_of
    from judge.criteria import builtin_prompts
    from judge.data import samples
    from judge.results.result import load

    if not (folder / "run.json").is_file():
        raise ConfigError(
            f"{folder}: no run in this folder; name a data file, or the folder of a run"
        )
    result = load(folder)
    if result.rankings:
        raise ConfigError(
            f"{folder}: texts were compared two by two there; name the folder of a judge run"
        )
    config = result.info.config
    data = config.data
    try:
        has_data = data is not None and bool(samples.files(data))
    except DataError:
        has_data = False
    if not has_data:
        raise ConfigError(
            f"{folder}: its data ({data or 'no file'}) is not there; name the data file instead"
        )
    stored = config.model_dump(mode="json")
    usual = RunConfig().model_dump(mode="json")
    # A suite has limits of its own, and names its criteria by their files.
    names = [
        name for name, option in run_options("suite").items() if option.group != "Limits and cost"
    ]
    of_run = {
        name: stored[name] for name in names if name != "criteria" and stored[name] != usual[name]
    }
    try:
        load_config(given=of_run)
    except ConfigError as error:
        raise StorageError(f"{folder / 'run.json'}: {error}") from error
    written = {name_of(entry): entry for entry in config.criteria or () if keys_of(entry)}
    criteria = []
    for name, described in result.info.criteria.items():
        path = described.path
        if not path or Path(path).is_relative_to(builtin_prompts()):
            path = name
        criteria.append(written.get(name) or str(path))
    return _Source(result.table.samples, {**of_run, **options}, criteria)
