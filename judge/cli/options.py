"""The options of commands. Those of a run are the fields of `RunConfig`, which are read when a command is used.

Importing `judge.config` takes longer than all that `judge --help` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_origin

import typer
import typer.main
from typer.core import TyperCommand

from judge.cli.terminal import CONFIGS, require_existing
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge import config

Function = TypeVar("Function", bound=Callable[..., None])
C = TypeVar("C", bound="config.RunConfig")


def option(
    help: str,
    *names: str,
    metavar: str | None = None,
    known: Callable[[], Iterable[str]] | Sequence[str] = (),
    group: str = "Options",
    check: Callable[[str], str] | None = None,
) -> Any:
    """An option under a heading of the help; a shell completes the `known` values, also after others and a comma."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        values = known() if callable(known) else known
        return [f"{before}{comma}{value}" for value in values if value.startswith(last)]

    return typer.Option(
        *names,
        help=help,
        metavar=metavar,
        show_default=False,
        autocompletion=complete if known else None,
        rich_help_panel=group,
        callback=check,
    )


def format_option(*formats: str, more: str = "", open_ended: bool = False) -> Any:
    """The option `--format` of a command whose result has these formats, the first of them the usual one.

    Any other is refused unless packages may add formats (`open_ended`).
    """

    def check(format: str) -> str:
        from judge.core.plugins import unknown_name_message

        if format not in formats:
            raise ConfigError(unknown_name_message("format", format, list(formats)))
        return format

    text = f"{', '.join(formats[:-1])} or {formats[-1]}{more} (default: {formats[0]})."
    return option(text, metavar="FORMAT", known=formats, group="Output", check=None if open_ended else check)


def names_of_criteria() -> list[str]:
    """The built-in criteria that a shell offers."""
    from judge.criteria.loading import builtin_files

    return sorted({path.stem for path in builtin_files("en").values()})


Data = Annotated[
    Path,
    typer.Argument(metavar="DATA|RUN.YAML", help="A data file, folder or 'PATTERN', or a run.yaml that names it."),
]
Quiet = Annotated[bool, option("No progress, no report on the console.", "--quiet", "-q", group="Output")]
Output = Annotated[Path | None, option("Write here (default: to the console).", metavar="FILE", group="Output")]


def takes(command: config.Command, *names: str) -> Callable[[Function], Function]:
    """Give a function the options of a run that `command` takes, or only those with these names.

    They follow the function's own parameters and come in its `**options`, if they were given. `no_cache` among the
    names stands for `--no-cache`.
    """

    def decorate(function: Function) -> Function:
        function.takes = command, names  # type: ignore[attr-defined]
        return function

    return decorate


class Command(TyperCommand):
    """A command that makes its parameters when they are first needed, and groups its help.

    With `--format` it takes `--json` for `--format json`.
    """

    def __init__(self, name: str | None, *, function: Callable[..., None], **settings: Any) -> None:
        super().__init__(name, **settings)
        self._function: Callable[..., None] | None = function

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters."""
        if self._function is not None:
            app = typer.Typer(add_completion=False)
            app.command()(_with_run_options(self._function))
            made = typer.main.get_command(app)
            self.params, self.callback, self._function = made.params, made.callback, None
        return super().get_params(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, the command's own options and those of a run by their groups."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            group = getattr(parameter, "rich_help_panel", None) or "Options"  # Click's own --help has none
            heading = "Arguments" if parameter.param_type_name == "argument" else group
            if record := parameter.get_help_record(ctx):
                rows.setdefault(heading, []).append(record)
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class Commands(typer.Typer):
    """A group of such commands; without arguments it prints its help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(no_args_is_help=True, rich_markup_mode=None, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As Typer's, with the parameters of the function made late."""

        def decorate(function: Callable[..., None]) -> Callable[..., None]:
            late: Any = partial(Command, function=function)
            super(Commands, self).command(name, help=getdoc(function), cls=late, **settings)(lambda: None)
            return function

        return decorate


def _with_run_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function whose signature has all parameters; it calls the function with the options that were given."""
    own, usual_format = {}, None
    for name, parameter in signature(function, eval_str=True).parameters.items():
        if parameter.kind is not Parameter.VAR_KEYWORD:
            own[name] = parameter
        if name == "format":
            usual_format = parameter.default
            own["json"] = _parameter("json", bool, option("The same as --format json.", "--json", group="Output"))
    offered = _run_parameters(*function.takes) if hasattr(function, "takes") else ()
    shared = {parameter.name: parameter for parameter in offered if parameter.name not in own}

    def call(**values: Any) -> None:
        options = {name: value for name in shared if (value := values.pop(name)) is not None and value is not False}
        for name in options.keys() - {"model", "set"}:  # lists with commas
            options[name] = ",".join(options[name]) if isinstance(options[name], list) else options[name]
        if options.pop("no_cache", False):
            options["cache"] = False
        if values.pop("json", False):
            if values["format"] not in (usual_format, "json"):
                raise ConfigError(
                    f"--json is short for --format json, and --format {values['format']} was given; leave out one"
                )
            values["format"] = "json"
        function(**values, **options)

    arguments = [parameter for parameter in own.values() if parameter.kind is not Parameter.KEYWORD_ONLY]
    parameters = [*arguments, *shared.values(), *(own[name] for name in own if own[name] not in arguments)]
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameter(name: str, kind: Any, info: Any) -> Parameter:
    default, type_ = (False, kind) if kind is bool else (None, kind | None)
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[type_, info], default=default)


def _run_parameters(command: config.Command, names: Sequence[str]) -> Iterator[Parameter]:
    """Yield the parameters of a run's options. Numbers are texts, which `RunConfig` reads."""
    from judge import config
    from judge.core import plugins

    known: dict[str, Callable[[], list[str]]] = {
        "criteria": names_of_criteria,
        "metrics": lambda: plugins.names("metrics"),
        "engine": lambda: plugins.names("engines"),
    }
    for run_option in config.run_options(command, config.RankConfig if command in ("rank", "plan") else None).values():
        name, kind, choices, text = (
            run_option.name,
            run_option.kinds[0],
            run_option.choices,
            run_option.description.removesuffix("."),
        )
        if name == "data" or (names and name not in names):
            continue
        if choices:
            text += f": {', '.join(map(str, choices[:-1]))} or {choices[-1]}"
        if run_option.default not in (None, (), {}) and run_option.default is not False:
            shown = run_option.default if isinstance(run_option.default, tuple) else [run_option.default]
            text += f" (default: {','.join(map(str, shown)).removesuffix('.0')})"
        info = option(
            f"{text}.",
            f"--{name.replace('_', '-')}",
            metavar=run_option.metavar or None,
            known=known.get(name, list(map(str, choices))),
            group=run_option.group,
        )
        if get_origin(kind) in (dict, tuple):
            kind = list[str]
        yield _parameter(name, kind if kind in (bool, Path, list[str]) else type((*choices, "")[0]), info)
        if name == "cache" and (not names or "no_cache" in names):
            yield _parameter("no_cache", bool, option("Ignore the cache.", "--no-cache", group=run_option.group))


def to_config(data: Path, options: Mapping[str, Any], kind: type[C]) -> tuple[C, Path]:
    """The configuration of a command's options, and the folder of its results. Raises ConfigError."""
    from judge.data import samples

    require_existing(data)
    is_config = data.suffix in CONFIGS
    made = kind.load(data, options) if is_config else kind.load(None, {"data": data, **options})
    folder = made.out or Path("runs") / f"{samples.dataset_name(made.data or data)}-{datetime.now():%Y%m%d-%H%M%S}"
    return made.model_copy(update={"out": folder}), folder


def metric_only(metric: str, options: Mapping[str, Any], **short_options: str | None) -> dict[str, Any]:
    """The options of a command without criteria; `short_options` are short for `--set METRIC.NAME=VALUE`."""
    short = [{metric: {name: value}} for name, value in short_options.items() if value is not None]
    return {**options, "criteria": "none", "set": [*short, *options.get("set", ())]}
