"""`judge suite`: what suites are made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.commands import Commands
from judge.cli.options import Criteria, Map, Model, Systems, option, read, takes
from judge.cli.outputs import write
from judge.cli.terminal import echo
from judge.core.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judge.core.records import Sample

_KEPT = (
    "data", "map", "systems", "limit", "language", "model", "base_url", "key_env", "weighting", "draws", "min_mass",
    "reply", "structured", "merge_criteria", "temperature", "max_tokens", "replay", "seed",
)  # fmt: skip
"""What a run's scores depend on, and those of a suite of which it is the baseline."""

_Output = Annotated[
    Path | None, option("Write here (default: NAME.judge.yaml in this folder); - for the console.", metavar="FILE")
]
suite_app = Commands(help="Suites of cases for judge test.")


@suite_app.command("init")
@takes({"criteria": Criteria, "map_": Map, "systems": Systems, "model": Model}, {"output": _Output})
def suite_init(
    data: Annotated[
        Path, typer.Argument(metavar="DATA|RUN", help="Data: a file, a folder or 'PATTERN' of many; or a run's.")
    ],
    *,
    output: Path | None = None,
    **given: Any,
) -> None:
    """Write a suite to begin with.

    From data and people's ratings of it, or from a run, which becomes its baseline."""
    from judge.data import samples
    from judge.suite.load import SUFFIX
    from judge.suite.scaffold import begin

    options = read(given)
    if given["model"] is not None and not all(options.get("model") or ()):
        raise ConfigError("--model: no name; leave it out, or name a judge")
    names = options.pop("criteria", [])
    of_run = not samples.is_data(data)
    rows, kept, used = _of_run(data, options) if of_run else _of_data(data, options)
    console = output == Path("-")
    path = Path(f"{samples.title(data)}{SUFFIX}") if output is None or console else output
    if path.exists() and not console:
        raise ConfigError(f"{path}: is there already, and is not written over; --output FILE names another")
    text = begin(rows, path, names or used, options=kept, baseline=data if of_run else None)
    if console:
        echo(text.removesuffix("\n"))
        return
    write("--output", path, text)
    typer.echo(f"{path}: read it, then judge test {path}")
    _say_more(data, path, text, rows, names)


@suite_app.command("schema")
def suite_schema() -> None:
    """Print the JSON schema of suites, for editors."""
    from judge.suite.schema import schema_text

    typer.echo(schema_text(), nl=False)


def _say_more(data: Path, path: Path, text: str, rows: Sequence[Sample], names: Sequence[str]) -> None:
    """What of the data is not in the suite: columns, and ratings by people."""
    from judge.report.format import line
    from judge.suite.load import load
    from judge.suite.scaffold import UNUSED

    for unused in (one.removeprefix("# ") for one in text.splitlines() if one.startswith(UNUSED)):
        typer.echo(unused)
    rated = {name: None for sample in rows for name in sample.human}
    if rated and not names and not any(case.kind == "agreement" for case in load(path).cases):
        first = next(iter(rated))
        typer.echo(
            f"nothing that people rated is tested there ({', '.join(map(line, rated))}): judge suite init {data} "
            f"--criteria {line(first)}.jinja, with a criterion of that name"
        )


def _of_data(data: Path, given: Mapping[str, Any]) -> tuple[Sequence[Sample], dict[str, Any], list[str]]:
    """The samples, the suite's options, and the criteria that are known from it: none."""
    from judge.data import samples

    options = {"data": data, **given}
    return samples.load(data, mapping=given.get("map", {}), systems=given.get("systems", ())), options, []


def _of_run(folder: Path, given: Mapping[str, Any]) -> tuple[Sequence[Sample], dict[str, Any], list[str]]:
    """The same of a finished run, with the options that it had and what was given instead."""
    from judge.config import Plan
    from judge.criteria import builtin_prompts
    from judge.results.result import load

    if not (folder / "run.json").is_file():
        raise ConfigError(f"{folder}: no run in this folder; name a data file, or the folder of a run")
    result = load(folder)
    if result.rankings:
        raise ConfigError(f"{folder}: texts were compared two by two there; name the folder of a judge run")
    plan = result.info.get("plan", {})
    data = plan.get("data")
    if data is None or not _there(data):
        raise ConfigError(f"{folder}: its data ({data or 'no file'}) is not there; name the data file instead")
    usual = Plan.model_validate({}).model_dump(mode="json", by_alias=True)
    had = {key: plan[key] for key in _KEPT if key in plan and plan[key] != usual[key]}
    used = []
    for name, one in result.info.get("criteria", {}).items():
        path = Path(one["path"])
        used.append(name if path.is_relative_to(builtin_prompts()) else str(path))
    return result.table.samples, {**had, **given}, used


def _there(data: str) -> bool:
    from judge.data import samples

    try:
        return bool(samples.files(data))
    except DataError:
        return False
