"""`judge suite`: what suites are made of.

`judge test`: suites of cases held against a judge.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.options import (
    ASKING,
    JUDGE,
    KEEPING,
    PACE,
    READING,
    REPLIES,
    SCORING,
    Criteria,
    Limit,
    Map,
    MergeCriteria,
    Model,
    Seed,
    Systems,
    format_option,
    option,
    parse_option,
    with_options,
)
from judge.cli.run import run_interruptibly
from judge.cli.terminal import (
    Commands,
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

    from judge.commands.test import PreparedSuite
    from judge.core.records import Sample
    from judge.suite.records import Outcomes, Policy

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
@with_options({"criteria": Criteria, "map_": Map, "systems": Systems, "model": Model}, {"output": _Output})
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
    from judge.suite.scaffold import create_suite

    options = parse_option(given)
    if given["model"] is not None and not all(options.get("model") or ()):
        raise ConfigError("--model: no name; leave it out, or name a judge")
    names = options.pop("criteria", [])
    of_run = not samples.is_data(data)
    rows, kept, used = _of_run(data, options) if of_run else _of_data(data, options)
    console = output == Path("-")
    path = Path(f"{samples.dataset_name(data)}{SUFFIX}") if output is None or console else output
    if path.exists() and not console:
        raise ConfigError(f"{path}: is there already, and is not written over; --output FILE names another")
    text = create_suite(rows, path, names or used, options=kept, baseline=data if of_run else None)
    if console:
        print_untrusted(text.removesuffix("\n"))
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
    from judge.core.messages import one_line
    from judge.suite.load import load
    from judge.suite.scaffold import UNUSED

    for unused in (one.removeprefix("# ") for one in text.splitlines() if one.startswith(UNUSED)):
        typer.echo(unused)
    rated = {name: None for sample in rows for name in sample.human}
    if rated and not names and not any(case.kind == "agreement" for case in load(path).cases):
        first = next(iter(rated))
        typer.echo(
            f"nothing that people rated is tested there ({', '.join(map(one_line, rated))}): judge suite init {data} "
            f"--criteria {one_line(first)}.jinja, with a criterion of that name"
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


_FORMATS = ("console", "markdown", "json")

_HELD = {
    "criteria": Annotated[
        list[str] | None,
        option(
            "In the place of the suites' criteria those of the same name: new/relevance.jinja for relevance.",
            metavar="NAME,...",
        ),
    ],
    "cases": Annotated[str | None, option("Only the cases in whose name this text stands.", metavar="TEXT")],
    "baseline": Annotated[
        Path | None,
        option("The runs to hold these against: DIR/SUITE of each suite, or DIR, a run itself.", metavar="DIR"),
    ],
    "update_baseline": Annotated[
        bool, typer.Option("--update-baseline", help="Make this run the baseline, where all but what moved is met.")
    ],
    "undecided": Annotated[
        str | None, option("What a case counts as that the numbers leave open: pass or fail.", metavar="pass|fail")
    ],
    "junit": Annotated[Path | None, option("Write the verdicts as JUnit XML.", metavar="FILE")],
    "markdown": Annotated[Path | None, option("Write a summary for a pull request.", metavar="FILE")],
    "out": Annotated[Path | None, option("Keep each suite's run, to look at, in DIR/SUITE.", metavar="DIR")],
}


@with_options(
    JUDGE, REPLIES, READING, {"limit": Limit}, SCORING, {"merge_criteria": MergeCriteria}, ASKING, PACE, {"seed": Seed},
    _HELD, KEEPING,
    {
        "format": Annotated[str, format_option(*_FORMATS)],
        "quiet": Annotated[bool, option("No progress, nothing on the console.", "--quiet", "-q")],
    },
)  # fmt: skip
def suites_command(
    suites: Annotated[
        list[Path], typer.Argument(metavar="SUITE|FOLDER...", help="Suites, or folders of *.judge.yaml files.")
    ],
    *,
    undecided: str | None = None,
    junit: Path | None = None,
    markdown: Path | None = None,
    format: str = "console",
    quiet: bool = False,
    **given: Any,
) -> None:
    """Hold a judge's scores against what suites expect of them.

    Leaves with 0 where every verdict is met, 1 where one is not, 2 where a suite could not be run.
    """
    outputs = {"--junit": junit, "--markdown": markdown}
    reject_overlap(outputs, [*suites, given["replay"], given["record"]])
    reject_input_as_output(outputs)
    try:
        if format not in _FORMATS:
            raise ConfigError(f"--format {format}: verdicts are shown on the console, as markdown or json")
        from judge.commands.test import prepare_suites

        found = prepare_suites(suites, undecided=_policy(undecided), **parse_option(given))
        check_writable(outputs)
        outcomes = _carried_out(found, quiet=quiet)
    except JudgeError as error:
        with suppress(StorageError):
            _write(_stuck(suites, error), junit, markdown)
        raise
    if not quiet:
        print_untrusted(outcomes.report(format, colour=format == "console" and use_color()).rstrip("\n"), format)
    _write(outcomes, junit, markdown)
    raise typer.Exit(2 if any(one.trouble for one in outcomes) else 0 if outcomes.passed else 1)


def _stuck(suites: Sequence[Path], error: JudgeError) -> Outcomes:
    """What nothing could be run for, in the place of its verdicts."""
    from judge.suite.records import Outcome, Outcomes, Suite

    path = suites[0]
    return Outcomes([Outcome(Suite(path, path.name.removesuffix(".judge.yaml"), {}, ()), trouble=str(error))])


def _policy(given: str | None) -> Policy | None:
    known: dict[str | None, Policy | None] = {None: None, "pass": "pass", "fail": "fail"}
    if given not in known:
        raise ConfigError(f"--undecided {given}: a case that the numbers leave open counts as pass or fail")
    return known[given]


def _carried_out(found: Sequence[PreparedSuite], *, quiet: bool) -> Outcomes:
    """Every suite's outcome; leaves with 130 on Ctrl-C."""
    from judge.cli.progress_bar import watch
    from judge.commands.cost_estimate import cost_summary
    from judge.commands.test import run_suites
    from judge.core.messages import plural
    from judge.execution.progress import Progress

    judgments = sum(one.judgments for one in found)
    if not quiet and judgments:
        parts = [f"{plural(judgments, 'judgment')} to make", cost_summary(run for one in found for run in one.runs)]
        print_message(", ".join([plural(len(found), "suite"), *filter(None, parts)]))
    progress = Progress()
    work = run_suites(found, progress, lambda prepared: watch(prepared, progress, quiet=quiet))
    kept = " What is in the cache is not asked or paid again by the same command."
    stopped = "interrupted: there are no verdicts." + (kept if all(one.cached for one in found) else "")
    return run_interruptibly(work, progress, lambda: stopped)


def _write(outcomes: Outcomes, junit: Path | None, markdown: Path | None) -> None:
    """The files that a CI job reads, in folders that are made where there are none. Raises StorageError."""
    if markdown is not None:
        adds = str(markdown) == os.environ.get("GITHUB_STEP_SUMMARY")  # other commands' too
        write("--markdown", markdown, outcomes.report("markdown"), add=adds, folders=True)
    if junit is not None:
        write("--junit", junit, outcomes.report("junit"), folders=True)
