"""How every command of this program behaves: `--json` beside `--format`, plain help, completion of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand

from judge.core.errors import ConfigError


class Command(TyperCommand):
    """A command that takes `--json` for `--format json`, where it has `--format`."""

    def __init__(self, name: str | None, *, params: list[Any] | None = None, **settings: Any) -> None:
        shown: list[Any] = []
        for one in params or ():
            shown += [one, _json_option()] if one.name == "format" else [one]
        super().__init__(name, params=shown, **settings)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As for any command; `json` is gone from the parameters, and `format` says so. Raises ConfigError."""
        rest: list[str] = super().parse_args(ctx, args)
        if ctx.params.pop("json", False) and not ctx.resilient_parsing:
            given = ctx.get_parameter_source("format").name == "COMMANDLINE"
            if given and (format := ctx.params["format"]) != "json":
                raise ConfigError(f"--json is short for --format json, and --format {format} was given; leave out one")
            ctx.params["format"] = "json"
            ctx.set_parameter_source("format", ctx.get_parameter_source("json"))
        return rest


class Commands(typer.Typer):
    """A group of such commands, which without arguments prints its help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(no_args_is_help=True, rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As Typer's; `cls` is `Command`."""
        return super().command(name, cls=Command, **settings)


@cache
def _json_option() -> Any:
    """The option `--json`, as Typer makes one."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def _command(json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False) -> None: ...

    return next(one for one in typer.main.get_command(app).params if one.name == "json")


def completed(known: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """A shell's completion of one of the known names, also after others and a comma."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in known() if name.startswith(last)]

    return complete
