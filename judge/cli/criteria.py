"""`judge criteria` and `judge metrics`: what there is to judge and to measure by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.commands import Commands
from judge.cli.diff import diff_command
from judge.cli.options import (
    BaseUrl,
    KeyEnv,
    Language,
    Map,
    Reply,
    Structured,
    Systems,
    names_of_criteria,
    option,
    read,
    shown_as,
)
from judge.cli.terminal import BOTH, check_format, echo, print_json

if TYPE_CHECKING:
    from judge.core.records import Criterion

criteria_app = Commands(help="The criteria that texts are judged on.")
metrics_app = Commands(help="What texts are measured by.")

_Criterion = Annotated[
    str,
    typer.Argument(metavar="CRITERION", help="A built-in name or a .jinja file.", autocompletion=names_of_criteria),
]
_Format = Annotated[str, shown_as(*BOTH)]


@metrics_app.command("list")
def metrics_list(*, format: _Format = "console") -> None:
    """Name the metrics. What each measures, and its options with their defaults."""
    import json

    from judge.commands.metric_setup import metrics

    check_format(format, "the list")
    if format == "json":
        print_json([{"name": one.name, "description": one.description, "options": one.options} for one in metrics()])
        return
    for metric in metrics():
        typer.echo(f"{metric.name:<14} {metric.description}")
        for name, default in metric.options.items():
            typer.echo(f"{'':<14} --set {metric.name}.{name}={json.dumps(default)}")


@criteria_app.command("list")
def criteria_list(*, language: Language = None, format: _Format = "console") -> None:
    """Name the built-in criteria."""
    from judge.criteria import builtin

    check_format(format, "the list")
    found = {pairwise: builtin(language or "en", pairwise=pairwise) for pairwise in (False, True)}
    if format == "json":
        print_json([_told(criterion) for criteria in found.values() for criterion in criteria])
        return
    for pairwise, command in ((False, "judge run: one text"), (True, "judge rank: two texts")):
        typer.echo(f"{command}")
        for criterion in found[pairwise]:
            ends = f"{criterion.scale.labels[0]}–{criterion.scale.labels[-1]}"
            typer.echo(f"  {criterion.name:<14} {ends:<6} {criterion.title}: {criterion.description}")


@criteria_app.command("show")
def criteria_show(name: _Criterion, *, language: Language = None, format: _Format = "console") -> None:
    """Print a criterion's file, and what a sample needs for it."""
    from judge.criteria import load

    check_format(format, "a criterion")
    criterion = load(name, language=language or "en", pairwise=None)
    if format == "json":
        print_json(_told(criterion) | {"steps": criterion.steps, "template": criterion.template})
        return
    echo(criterion.template.rstrip())
    typer.echo(
        f"\nneeds: {', '.join(sorted(criterion.needs))}\ndigest: {criterion.digest[:6]}\nfile: {criterion.path}",
        err=True,
    )


def _told(criterion: Criterion) -> dict[str, Any]:
    """A criterion as plain JSON, without its text."""
    return {
        "name": criterion.name,
        "title": criterion.title,
        "description": criterion.description,
        "compares": 2 if criterion.pairwise else 1,
        "scale": {"labels": criterion.scale.labels, "values": criterion.scale.values},
        "reply": criterion.reply,
        "weight": criterion.weight,
        "version": criterion.version,
        "language": criterion.language,
        "needs": sorted(criterion.needs),
        "digest": criterion.digest[:6],
        "file": str(criterion.path),
    }


@criteria_app.command("render")
def criteria_render(
    name: _Criterion,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A data file, a folder or 'PATTERN' of many.")],
    *,
    item: Annotated[str | None, option("The item to render (default: the first).", metavar="ID")] = None,
    system: Annotated[
        str | None, option("The system whose output to take (default: the first).", metavar="NAME")
    ] = None,
    rival: Annotated[str | None, option("To compare: the other system (default: the next).", metavar="NAME")] = None,
    map_: Map = None,
    systems: Systems = None,
    language: Language = None,
    reply: Reply = None,
    structured: Structured = None,
) -> None:
    """Print a prompt exactly as it would be sent. For one sample or one comparison; asks no model."""
    from judge.commands.preparation import prompt

    given = {"map": map_, "systems": systems, "language": language, "reply": reply, "structured": structured}
    for message in prompt(name, data, item=item, system=system, rival=rival, **read(given)).messages:
        echo(message["content"])


@criteria_app.command("steps")
def criteria_steps(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .jinja file of yours.")],
    *,
    model: Annotated[
        list[str] | None, option("The model that drafts, e.g. gpt-5.4-mini.", metavar="[VENDOR/]NAME")
    ] = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    language: Annotated[
        str | None, option("Language of the steps: en, ja, ko, zh (default: en).", metavar="LANGUAGE")
    ] = None,
    max_tokens: Annotated[int | None, option("Longest reply (default: 1024).", metavar="N")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Write over steps that are there.")] = False,
) -> None:
    """Have a model draft a criterion's steps. They are written into the file's header, for you to read."""
    from judge.commands.draft_steps import draft_steps
    from judge.config import plan

    given = {"model": model, "base_url": base_url, "key_env": key_env, "language": language, "max_tokens": max_tokens}
    options = read(given)
    for place, step in enumerate(draft_steps(file, plan(given=options), replace=replace), 1):
        echo(f"{place}. {step}")
    typer.echo(f"written into {file}; read them before you judge with them", err=True)


criteria_app.command("diff")(diff_command)
