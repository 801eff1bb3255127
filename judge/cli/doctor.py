"""`judge doctor`: check the setup, list the metrics, manage the cache, print schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from judge.cli.cache import cache_app
from judge.cli.options import Commands, ListFormat, ReportFormat, option, takes
from judge.cli.terminal import print_json, print_message, print_report
from judge.core.errors import ConfigError

_SECONDS = 60.0


@takes(
    "run", "model", "base_url", "key_env", "key_command", "headers", "system", "reasoning_effort", "extra_body", "cache"
)
def doctor_command(
    ctx: typer.Context,
    *,
    timeout: Annotated[
        float, option(f"Longest wait for a reply (default: {_SECONDS:g}).", metavar="SECONDS")
    ] = _SECONDS,
    format: ReportFormat = "console",
    **options: Any,
) -> None:
    """Check your setup, and optionally test a model.

    Lists versions, extras, keys and the cache. With --model it sends a few tiny requests and reports what the model
    accepts; without, it opens no connection. Exits with 2 if a named model cannot be used or the cache cannot be
    written.
    """
    from judge.commands.doctor import announce, check_environment, check_model, open_checks
    from judge.commands.public import run_sync
    from judge.config import load_config
    from judge.results.planning import Diagnosis

    if ctx.invoked_subcommand is not None:
        if options:
            raise ConfigError(f"put options after the command: judge doctor {ctx.invoked_subcommand}")
        return
    config = load_config(given={**options, "timeout": timeout})
    findings = check_environment(config)
    if checks := open_checks(config):
        if announcement := announce(checks):
            print_message(announcement)
        findings += run_sync(lambda: check_model(config, checks))
    diagnosis = Diagnosis(tuple(findings))
    print_report(diagnosis, format, full=True)
    raise typer.Exit(0 if diagnosis.ok else 2)


doctor_app = Commands(function=doctor_command)
doctor_app.add_typer(cache_app, name="cache")


@doctor_app.command("metrics")
def metrics_command(*, format: ListFormat = "console") -> None:
    """List the metrics with their options."""
    import json

    from judge.commands.metric_setup import metrics

    if format == "json":
        print_json(
            [{"name": info.name, "description": info.description, "options": info.options} for info in metrics()]
        )
        return
    for metric in metrics():
        typer.echo(f"{metric.name:<14} {metric.description}")
        for name, default in metric.options.items():
            typer.echo(f"{'':<14} --set {metric.name}.{name}={json.dumps(default)}")


@doctor_app.command("schema")
def schema_command(
    file: Annotated[str, typer.Argument(metavar="run|suite|criterion", help="The kind of file.")],
) -> None:
    """Print the JSON schema of a file, for editors.

    The files are run.yaml, suites (*.judge.yaml) and the YAML header of a criterion (.jinja).
    """
    from judge.config import json_schema, run_schema
    from judge.criteria.template import Header
    from judge.suite.schema import schema

    schemas: dict[str, Callable[[], dict[str, Any]]] = {
        "run": run_schema,
        "suite": schema,
        "criterion": lambda: json_schema(Header, "judge.criterion/1", "Header of a criterion's file."),
    }
    if file not in schemas:
        raise ConfigError(f"judge doctor schema {file}: name run, suite or criterion")
    print_json(schemas[file]())
