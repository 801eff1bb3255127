"""`judge doctor`: check the setup, list the metrics, manage the cache, print schemas."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from judge.cli.options import (
    MODEL_OPTIONS,
    PATH,
    Group,
    list_format,
    option,
    report_format,
)
from judge.cli.terminal import (
    print_entry,
    print_json,
    print_message,
    print_report,
    print_text,
)
from judge.core.errors import ConfigError

cache_app = Group(help="Inspect, clear or share the cache.")


@cache_app.command("stats", takes="run", only=("cache",))
@list_format
def cache_stats(*, format: str, **options: Any) -> None:
    """Count the stored replies and the data of metrics."""
    from judge.cache import metrics_folder, metrics_size

    folder = _existing_folder(options)
    counts = _counts(folder)
    metrics_bytes = metrics_size(folder)
    if format == "json":
        metrics = {"place": str(metrics_folder(folder)), "bytes": metrics_bytes}
        print_json({"caches": [counts], "metrics": metrics})
        return
    folder_of_cache = counts["place"]
    replies = _reply_count(counts["replies"])
    size = _megabytes(counts["bytes"])
    print_text(f"{folder_of_cache}: {replies}, {size}")
    if metrics_bytes:
        folder_of_metrics = metrics_folder(folder)
        size = _megabytes(metrics_bytes)
        print_text(f"{folder_of_metrics}: digests of models, {size}")


@cache_app.command("clear", takes="run", only=("cache",))
@option("--metrics", "Clear the data of metrics, and keep the replies.", is_flag=True)
@option("--yes", "Delete the replies without a question.", is_flag=True)
def cache_clear(*, metrics: bool, yes: bool, **options: Any) -> None:
    """Delete every stored reply. Asking again costs again."""
    from judge.cache import DiskCache, clear_metrics, metrics_folder

    folder = _existing_folder(options)
    if metrics:
        size = _megabytes(clear_metrics(folder))
        print_text(f"{metrics_folder(folder)}: {size} deleted")
        return
    with DiskCache(folder) as store:
        n_replies = store.stats()["responses"]
        if n_replies and not yes:
            _confirm_deletion(n_replies, store.folder)
        deleted = _reply_count(store.clear())
        print_text(f"{store.folder}: {deleted} deleted")


def _confirm_deletion(n_replies: int, folder: Path) -> None:
    """Ask on a terminal whether to delete replies. Raises ConfigError without one."""
    replies = f"{_reply_count(n_replies)} in {folder}"
    if not sys.stdin.isatty():
        loss = f"{replies} would be deleted, and asking again costs again"
        raise ConfigError(f"{loss}: add --yes")
    click.confirm(f"Delete {replies}? Asking again costs again.", abort=True)


@cache_app.command("export", takes="run", only=("cache",))
@click.argument("file", type=PATH, metavar="CALLS.jsonl", help="The recording.")
@option("--model", "Only the replies of this model.", metavar="NAME")
@option("--base-url", "Only the replies of this server.", metavar="URL")
def cache_export(
    file: Path,
    *,
    model: str | None,
    base_url: str | None,
    **options: Any,
) -> None:
    """Write the stored replies into a recording.

    Use it for --replay or another cache. It holds prompts with the judged texts, but no key.
    """
    from judge.commands.cache import export_replies

    folder = _existing_folder(options)
    export = export_replies(folder, file, model=model, base_url=base_url)
    print_text(f"{file}: {_reply_count(export.written)} written")
    if export.skipped:
        skipped = _reply_count(export.skipped)
        print_text(f"{skipped} skipped: scripted, replayed, or of an older version")


@cache_app.command(
    "import",
    takes="run",
    only=("base_url", "cache"),
)
@click.argument("file", type=PATH, metavar="CALLS.jsonl", help="The recording.")
def cache_import(file: Path, **options: Any) -> None:
    """Put the replies of a recording into the cache.

    A run then uses them without sending requests. They count as replies of the server that the file
    names, or else of --base-url (default: $OPENAI_BASE_URL or OpenAI).
    """
    from judge.commands.cache import import_replies

    imported = import_replies(_folder(options), file, base_url=options.get("base_url"))
    added = _reply_count(imported.added)
    message = f"{added} added, {imported.known:,} already there"
    if imported.servers:
        servers = " and ".join(imported.servers)
        message += f", as replies of {servers}"
    print_text(message)
    if imported.unfinished:
        print_text(f"{file}: the last line is incomplete and was skipped")


def _folder(options: Mapping[str, Any]) -> Path:
    """Return the folder of the cache. Raises ConfigError."""
    from judge.cache import cache_location
    from judge.config import load_config

    return cache_location(load_config(options=options).cache or None)


def _existing_folder(options: Mapping[str, Any]) -> Path:
    """Return the folder of the cache. Raises ConfigError if there is none yet."""
    from judge.cache import metrics_folder

    folder = _folder(options)
    if not (folder / "responses").exists() and not metrics_folder(folder).exists():
        raise ConfigError(f"{folder}: no cache here; --cache DIR names another")
    return folder


def _counts(folder: Path) -> dict[str, Any]:
    """Return the cache's folder, the number of its replies and their bytes, as JSON has them."""
    from judge.cache import DiskCache

    with DiskCache(folder) as store:
        stats = store.stats()
    return {
        "place": str(store.folder),
        "replies": stats["responses"],
        "bytes": stats["bytes"],
    }


def _reply_count(count: int) -> str:
    return "1 reply" if count == 1 else f"{count:,} replies"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


_SECONDS = 60.0
"""The longest wait for a reply, by default."""


@click.group(
    cls=Group,
    invoke_without_command=True,
    takes="run",
    only=(
        *MODEL_OPTIONS,
        "cache",
    ),
)
@option(
    "--timeout",
    f"Longest wait for a reply (default: {_SECONDS:g}).",
    type=float,
    default=_SECONDS,
    metavar="SECONDS",
)
@report_format
def doctor_command(*, timeout: float, format: str, **options: Any) -> None:
    """Check your setup, and optionally test a model.

    Lists versions, extras, keys and the cache. With --model it sends a few tiny requests and
    reports what the model accepts; without, it opens no connection. Exits with 2 if a named model
    cannot be used or the cache cannot be written.
    """
    from judge.commands.doctor.command import announce, check_model, open_checks
    from judge.commands.doctor.environment import check_environment
    from judge.commands.doctor.record import Diagnosis
    from judge.config import load_config
    from judge.core.run_sync import run_sync

    subcommand = click.get_current_context().invoked_subcommand
    if subcommand:
        # The group's options would have no effect on its subcommand.
        if options:
            whole_command = f"judge doctor {subcommand}"
            raise ConfigError(f"put options after the command: {whole_command}")
        return
    config = load_config(options={**options, "timeout": timeout})
    findings = check_environment(config)
    checks = open_checks(config)
    if checks:
        announcement = announce(checks)
        if announcement:
            print_message(announcement)
        findings += run_sync(lambda: check_model(config, checks))
    diagnosis = Diagnosis(tuple(findings))
    print_report(diagnosis, format, full=True)
    raise click.exceptions.Exit(0 if diagnosis.ok else 2)


@doctor_command.command("metrics")
@list_format
def metrics_command(
    *,
    format: str,
) -> None:
    """List the metrics with their options."""
    import json

    from judge.run.metric_setup import metrics

    if format == "json":
        entries = [
            {
                "name": metric.name,
                "description": metric.description,
                "options": metric.options,
            }
            for metric in metrics()
        ]
        print_json(entries)
        return
    for metric in metrics():
        print_entry(f"{metric.name:<14} ", metric.description)
        for option_name, default in metric.options.items():
            # As it is typed: a JSON value is also one in YAML.
            value = json.dumps(default)
            setting = f"{metric.name}.{option_name}={value}"
            print_text(f"{'':<14} --set {setting}")


@doctor_command.command("schema")
@click.argument("file", metavar="run|suite|criterion", help="The kind of file.")
def schema_command(file: str) -> None:
    """Print the JSON schema of a file, for editors.

    The files are run.yaml, suites (*.judge.yaml) and the YAML header of a criterion (.jinja).
    """
    from judge.config import json_schema, run_schema
    from judge.criteria.header import Header
    from judge.suite.schema import schema

    def criterion_schema() -> dict[str, Any]:
        return json_schema(Header, "judge.criterion/1", "Header of a criterion's file.")

    # Each schema takes a while to make, so only one is made.
    schemas: dict[str, Callable[[], dict[str, Any]]] = {
        "run": run_schema,
        "suite": schema,
        "criterion": criterion_schema,
    }
    if file not in schemas:
        raise ConfigError(f"judge doctor schema {file}: name run, suite or criterion")
    print_json(schemas[file]())


doctor_command.add_command(cache_app, "cache")
