"""`judge suite`: start a suite of cases. `judge test`: run suites and check their expectations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judge.cli.options import Commands, Quiet, format_option, option, takes
from judge.cli.run import run_interruptibly
from judge.cli.terminal import (
    check_writable,
    print_message,
    print_untrusted,
    reject_input_as_output,
    reject_overlap,
    use_color,
    write,
)
from judge.core.errors import ConfigError, DataError, JudgeError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from judge.core.records import Sample
    from judge.suite.evaluate import Outcomes

_Output = Annotated[
    Path | None, option("Write here (default: NAME.judge.yaml in this folder); - for the console.", metavar="FILE")
]
suite_app = Commands(help="Suites of cases for judge test.")


@suite_app.command("init")
@takes("run", "criteria", "map", "systems", "model")
def suite_init(
    data: Annotated[
        Path, typer.Argument(metavar="DATA|RUN", help="Data: a file, a folder or 'PATTERN' of many; or a run's.")
    ],
    *,
    output: _Output = None,
    **options: Any,
) -> None:
    """Write a first suite.

    From data and its human ratings, or from a run, which becomes the suite's baseline."""
    from judge.config import load_config, split
    from judge.core.format import one_line
    from judge.data import samples
    from judge.suite.load import SUFFIX, load
    from judge.suite.scaffold import UNUSED, create_suite

    if not all(options.get("model", ["none"])):
        raise ConfigError("--model: no name; leave it out, or name a judge")
    options |= {name: getattr(load_config(given=options), name) for name in ("map", "systems") if name in options}
    names = split(options.pop("criteria", ""))
    is_run = not samples.is_data(data)
    if is_run:
        source = _read_run(data, options)
    else:
        rows = samples.load(data, mapping=options.get("map", {}), systems=options.get("systems", ()))
        source = _Source(rows, {"data": data, **options}, [])
    console = output == Path("-")
    path = Path(f"{samples.dataset_name(data)}{SUFFIX}") if output is None or console else output
    if path.exists() and not console:
        raise ConfigError(f"{path}: is there already, and is not written over; --output FILE names another")
    baseline = data if is_run else None
    text = create_suite(source.samples, path, names or source.criteria, options=source.options, baseline=baseline)
    if console:
        print_untrusted(text.removesuffix("\n"))
        return
    write("--output", path, text)
    typer.echo(f"{path}: read it, then judge test {path}")
    for unused in (line.removeprefix("# ") for line in text.splitlines() if line.startswith(UNUSED)):
        typer.echo(unused)
    rated = {name: None for sample in source.samples for name in sample.human}
    if rated and not names and not any(case.needs_ratings for case in load(path).cases):
        typer.echo(
            f"nothing that people rated is tested there ({', '.join(map(one_line, rated))}): judge suite init {data} "
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
    from judge.config import RunConfig, run_options
    from judge.criteria import builtin_prompts
    from judge.data import samples
    from judge.results.result import load

    if not (folder / "run.json").is_file():
        raise ConfigError(f"{folder}: no run in this folder; name a data file, or the folder of a run")
    result = load(folder)
    if result.rankings:
        raise ConfigError(f"{folder}: texts were compared two by two there; name the folder of a judge run")
    config = result.info.get("plan", {})
    data = config.get("data")
    try:
        has_data = data is not None and bool(samples.files(data))
    except DataError:
        has_data = False
    if not has_data:
        raise ConfigError(f"{folder}: its data ({data or 'no file'}) is not there; name the data file instead")
    usual = RunConfig().model_dump(mode="json")
    # A suite has limits of its own, and names its criteria by their files.
    names = [name for name, option in run_options("suite").items() if option.group != "Limits and cost"]
    of_run = {
        name: config[name] for name in names if name != "criteria" and config.get(name, usual[name]) != usual[name]
    }
    criteria = []
    for name, info in result.info.get("criteria", {}).items():
        path = Path(info["path"])
        criteria.append(name if path.is_relative_to(builtin_prompts()) else str(path))
    return _Source(result.table.samples, {**of_run, **options}, criteria)


_FORMATS = ("console", "markdown", "json")


@takes("test")
def suites_command(
    suites: Annotated[
        list[Path], typer.Argument(metavar="SUITE|FOLDER...", help="Suites, or folders of *.judge.yaml files.")
    ],
    *,
    criteria: Annotated[
        list[str] | None,
        option("Replace the suites' criteria of the same name by these files.", metavar="NAME,..."),
    ] = None,
    cases: Annotated[str | None, option("Only the cases whose name contains this text.", metavar="TEXT")] = None,
    baseline: Annotated[
        Path | None, option("Runs to compare with: DIR/SUITE of each suite, or one run.", metavar="DIR")
    ] = None,
    update_baseline: Annotated[
        bool, option("Make this run the baseline if only changes from it fail.", "--update-baseline")
    ] = False,
    undecided: Annotated[
        Literal["pass", "fail"] | None, option("Treat inconclusive cases as pass or fail.", metavar="pass|fail")
    ] = None,
    junit: Annotated[Path | None, option("Write the verdicts as JUnit XML.", metavar="FILE", group="Output")] = None,
    markdown: Annotated[
        Path | None, option("Write a summary for a pull request.", metavar="FILE", group="Output")
    ] = None,
    out: Annotated[
        Path | None, option("Save the run of each suite in DIR/SUITE.", metavar="DIR", group="Output")
    ] = None,
    format: Annotated[str, format_option(*_FORMATS, open_ended=True)] = "console",
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Run suites and check their expectations.

    Exits with 0 if all expectations are met, 1 if one is not, 2 if a suite could not run.
    """
    outputs = {"--junit": junit, "--markdown": markdown}
    reject_overlap(outputs, [*suites, options.get("replay"), options.get("record")])
    reject_input_as_output(outputs)
    options |= {"cases": cases, "baseline": baseline, "update_baseline": update_baseline, "undecided": undecided}
    options |= {"criteria": ",".join(criteria) if criteria else None, "out": out}
    try:
        if format not in _FORMATS:
            raise ConfigError(f"--format {format}: verdicts are shown on the console, as markdown or json")
        outcomes = _run(suites, options, outputs, quiet=quiet)
    except JudgeError as error:
        from judge.suite.evaluate import Outcome, Outcomes
        from judge.suite.schema import Suite

        # A CI job reads the reports, so they have to tell of the error too.
        suite = Suite(suites[0], suites[0].name.removesuffix(".judge.yaml"), {}, ())
        with suppress(StorageError):
            _write_reports(Outcomes([Outcome(suite, trouble=str(error))]), junit, markdown)
        raise
    if not quiet:
        print_untrusted(outcomes.report(format, colour=format == "console" and use_color()).rstrip("\n"), format)
    _write_reports(outcomes, junit, markdown)
    raise typer.Exit(2 if any(outcome.trouble for outcome in outcomes) else 0 if outcomes.passed else 1)


def _run(
    paths: Sequence[Path], options: Mapping[str, Any], outputs: Mapping[str, Path | None], *, quiet: bool
) -> Outcomes:
    """Run the suites with a progress display; exit with 130 on Ctrl-C."""
    from judge.commands.test import cost_summary, prepare_suites, run_suites
    from judge.core.format import plural

    prepared_suites = prepare_suites(paths, **options)
    check_writable(outputs)
    judgments = sum(suite.judgments for suite in prepared_suites)
    if not quiet and judgments:
        parts = [
            f"{plural(judgments, 'judgment')} to make",
            cost_summary(run for suite in prepared_suites for run in suite.runs.values()),
        ]
        print_message(", ".join([plural(len(prepared_suites), "suite"), *filter(None, parts)]))
    hint = " What is in the cache is not asked or paid again by the same command."
    message = "interrupted: there are no verdicts." + (hint if all(suite.cached for suite in prepared_suites) else "")
    return run_interruptibly(partial(run_suites, prepared_suites), lambda _: message, quiet=quiet)


def _write_reports(outcomes: Outcomes, junit: Path | None, markdown: Path | None) -> None:
    """Write the files that a CI job reads, and their folders. Raises StorageError."""
    if markdown is not None:
        adds = str(markdown) == os.environ.get("GITHUB_STEP_SUMMARY")  # other commands' too
        write("--markdown", markdown, outcomes.report("markdown"), add=adds, folders=True)
    if junit is not None:
        write("--junit", junit, outcomes.report("junit"), folders=True)
