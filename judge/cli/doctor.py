"""`judge doctor`: check the setup, and optionally test a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from judge.cli.options import BaseUrl, CacheFolder, KeyEnv, format_option, option
from judge.cli.terminal import BOTH, check_format, console, print_json, print_message

_SECONDS = 60.0
_MARKS = {"ok": ("✓", "green"), "lacking": ("–", "dim"), "wrong": ("✗", "bold red")}


def doctor_command(
    *,
    model: Annotated[
        list[str] | None, option("Try this model too: sends a few tiny requests; repeatable.", metavar="[VENDOR/]NAME")
    ] = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    timeout: Annotated[
        float | None, option(f"Longest wait for one reply (default: {_SECONDS:g}).", metavar="SECONDS")
    ] = None,
    cache: CacheFolder = None,
    format: Annotated[str, format_option(*BOTH)] = "console",
) -> None:
    """Say what there is here, and what a model accepts.

    Versions, extras, keys and cache; with --model whether that one answers and what it takes. Without --model nothing
    is sent and no connection opened. Leaves with 2 where a model that was named cannot be used,
    or the cache cannot be written.
    """
    from judge.commands.doctor import Diagnosis, announce, check_environment, check_model, open_checks
    from judge.commands.public import run_sync
    from judge.config import load_config

    check_format(format, "what was found")
    params: dict[str, Any] = {"model": model, "base_url": base_url, "key_env": key_env, "cache": cache}
    config = load_config(given={**params, "timeout": _SECONDS if timeout is None else timeout})
    findings = check_environment(config)
    if checks := open_checks(config):
        if announcement := announce(checks):
            print_message(announcement)
        findings += run_sync(lambda: check_model(config, checks))
    diagnosis = Diagnosis(tuple(findings))
    if format == "json":
        print_json(diagnosis.to_dict())
    else:
        from rich.table import Table
        from rich.text import Text

        screen = console()
        for part in dict.fromkeys(finding.part for finding in diagnosis.findings):
            table = Table.grid(padding=(0, 1))
            table.add_column(no_wrap=True)
            table.add_column(no_wrap=True)
            table.add_column(overflow="fold")
            for finding in diagnosis.findings:
                if finding.part == part:
                    table.add_row(Text(*_MARKS[finding.state]), Text(finding.name), Text(finding.said))
                    if finding.mend:
                        table.add_row("", "", Text(finding.mend, "dim" if finding.state == "lacking" else "bold"))
            screen.print(Text(part, "bold"))
            screen.print(table)
            screen.print()
    raise typer.Exit(0 if diagnosis.ok else 2)
