"""`judge suite`: what suites are made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.commands import Commands
from judge.cli.options import Criteria, Map, Model, Systems, option, read
from judge.cli.terminal import echo
from judge.errors import ConfigError, DataError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from judge.records import Sample

_KEPT = (
    "data", "map", "systems", "limit", "language", "model", "base_url", "key_env", "weighting", "draws", "min_mass",
    "reply", "structured", "merge_criteria", "temperature", "max_tokens", "replay", "seed",
)  # fmt: skip
"""What a run's scores depend on, and those of a suite of which it is the baseline."""

suite_app = Commands(help="Suites of cases for judge test.")


@suite_app.command("init")
def suite_init(
    data: Annotated[
        Path, typer.Argument(metavar="DATA|RUN", help="Data: a file, a folder or 'PATTERN' of many; or a run's.")
    ],
    *,
    criteria: Criteria = None,
    map_: Map = None,
    systems: Systems = None,
    model: Model = None,
    output: Annotated[
        Path | None, option("Write here (default: NAME.judge.yaml in this folder); - for the console.", metavar="FILE")
    ] = None,
) -> None:
    """Write a suite to begin with.

    From data and people's ratings of it, or from a run, which becomes its baseline."""
    from judge import samples
    from judge.report.words import line
    from judge.suite.begin import UNUSED, begin
    from judge.suite.files import SUFFIX, load

    given = read({"criteria": criteria, "map": map_, "systems": systems, "model": model})
    if model is not None and not all(given.get("model") or ()):
        raise ConfigError("--model: no name; leave it out, or name a judge")
    names = given.pop("criteria", [])
    of_run = not samples.is_data(data)
    rows, options, used = _of_run(data, given) if of_run else _of_data(data, given)
    console = output == Path("-")
    path = Path(f"{samples.title(data)}{SUFFIX}") if output is None or console else output
    if path.exists() and not console:
        raise ConfigError(f"{path}: is there already, and is not written over; --output FILE names another")
    text = begin(rows, path, names or used, options=options, baseline=data if of_run else None)
    if console:
        echo(text.removesuffix("\n"))
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--output {path}: {error.strerror}") from error
    typer.echo(f"{path}: read it, then judge test {path}")
    for unused in (one.removeprefix("# ") for one in text.splitlines() if one.startswith(UNUSED)):
        typer.echo(unused)
    rated = {name: None for sample in rows for name in sample.human}
    if rated and not names and not any(case.kind == "agreement" for case in load(path).cases):
        first = next(iter(rated))
        typer.echo(
            f"nothing that people rated is tested there ({', '.join(map(line, rated))}): judge suite init {data} "
            f"--criteria {line(first)}.jinja, with a criterion of that name"
        )


@suite_app.command("schema")
def suite_schema() -> None:
    """Print the JSON schema of suites, for editors."""
    from judge.suite.spec import schema_text

    typer.echo(schema_text(), nl=False)


def _of_data(data: Path, given: Mapping[str, Any]) -> tuple[Sequence[Sample], dict[str, Any], list[str]]:
    """The samples, the suite's options, and the criteria that are known from it: none."""
    from judge import samples

    options = {"data": data, **given}
    return samples.load(data, mapping=given.get("map", {}), systems=given.get("systems", ())), options, []


def _of_run(folder: Path, given: Mapping[str, Any]) -> tuple[Sequence[Sample], dict[str, Any], list[str]]:
    """The same of a finished run, with the options that it had and what was given instead."""
    from judge.config import Plan
    from judge.criteria import builtin_prompts
    from judge.report import load

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
    from judge import samples

    try:
        return bool(samples.files(data))
    except DataError:
        return False
