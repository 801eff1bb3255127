"""The options of commands. Those of a run are the fields of `RunConfig`, which are read when a command is used.

Importing `judge.config` takes longer than all that `judge --help` does.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from inspect import Parameter, Signature, getdoc, signature
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, get_origin

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from judge.cli.terminal import CONFIGS
from judge.core.errors import ConfigError
from judge.core.messages import two_meanings_of_system

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
        from judge.core.plugins import require_known

        require_known("format", [format], formats)
        return format

    text = f"{', '.join(formats[:-1])} or {formats[-1]}{more} (default: {formats[0]})."
    return option(
        text, metavar="FORMAT", known=formats, group="Output", check=None if open_ended else check
    )


def names_of_criteria() -> list[str]:
    """The built-in criteria that a shell offers."""
    from judge.criteria.loading import builtin_files

    return sorted({path.stem for path in builtin_files("en").values()})


Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA|RUN.YAML",
        help="A data file, folder or 'PATTERN', or a run.yaml that names it.",
    ),
]
Quiet = Annotated[
    bool, option("No progress, no report on the console.", "--quiet", "-q", group="Output")
]
Full = Annotated[
    bool, option("Print the full report, not only its summary.", "--full", group="Output")
]
ReportFormat = Annotated[str, format_option("console", "markdown", "html", "latex", "csv", "json")]
ListFormat = Annotated[str, format_option("console", "json")]
"""Of commands that print a table for people or a record for programs."""
Export = Annotated[
    list[str] | None,
    option(
        "Also write a file: otel=FILE, traces as OTLP-JSON.", metavar="FORMAT=FILE", group="Output"
    ),
]
Output = Annotated[
    Path | None, option("Write here (default: to the console).", metavar="FILE", group="Output")
]


def takes(command: config.Command, *names: str) -> Callable[[Function], Function]:
    """Give a function the options of a run that `command` takes, or only those with these names.

    They follow the function's own parameters and come in its `**options`, if they were given. `no_cache` among the
    names stands for `--no-cache`.
    """

    def decorate(function: Function) -> Function:
        function.takes = command, names  # type: ignore[attr-defined]
        return function

    return decorate


class _LateParameters:
    """Makes the parameters of a command when they are first needed, and writes them by the groups of its options."""

    function: Callable[..., None] | None = None
    params: list[Any]
    callback: Any

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters."""
        if self.function is not None:
            app = typer.Typer(add_completion=False)
            app.command()(_with_run_options(self.function))
            made = typer.main.get_command(app)
            self.params, self.callback, self.function = made.params, made.callback, None
        return super().get_params(ctx)  # type: ignore[misc]

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read what was typed. Raises ConfigError for `--system` if the command only has `--system-message`."""
        known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        typed = {word.partition("=")[0] for word in takewhile(lambda word: word != "--", args)}
        if _SYSTEM in typed - known and f"{_SYSTEM}-message" in known:
            meanings = two_meanings_of_system(f"{_SYSTEM}-message TEXT")
            raise ConfigError(f"{_SYSTEM}: {meanings}")
        return super().parse_args(ctx, args)  # type: ignore[misc]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, the command's own options and those of a run by their groups."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            group = (
                getattr(parameter, "rich_help_panel", None) or "Options"
            )  # Click's own --help has none
            heading = "Arguments" if parameter.param_type_name == "argument" else group
            if record := parameter.get_help_record(ctx):
                rows.setdefault(heading, []).append(record)
        _write_sections(rows, formatter)


def _write_sections(rows: Mapping[str, list[tuple[str, str]]], formatter: Any) -> None:
    for heading, records in rows.items():
        if records:
            with formatter.section(heading):
                formatter.write_dl(records)


class Command(_LateParameters, TyperCommand):
    """A command with late parameters. With `--format` it takes `--json` for `--format json`."""

    def __init__(self, name: str | None, *, function: Callable[..., None], **settings: Any) -> None:
        super().__init__(name, **settings)
        self.function = function


class Group(_LateParameters, TyperGroup):
    """Commands under headings. A group with a function is a command itself."""

    hints: Mapping[str, str] = {}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by their groups, then the options."""
        width = formatter.width - 6 - max(map(len, self.commands))
        rows: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            record = name, command.get_short_help_str(width)
            rows.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append(
                record
            )
        _write_sections(rows, formatter)
        super().format_options(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name. Raises ConfigError, with a hint, if there is none."""
        name = args[0]
        if not (name in self.commands or name.startswith("-") or ctx.resilient_parsing):
            near = difflib.get_close_matches(name, self.commands, n=1)
            known = (
                f"did you mean {near[0]!r}?"
                if near
                else f"{ctx.command_path} --help lists the commands"
            )
            hint = f"use {self.hints[name]}" if name in self.hints else known
            raise ConfigError(f"unknown command {name!r}; {hint}")
        return super().resolve_command(ctx, args)


class Commands(typer.Typer):
    """A group of commands. It prints its help without arguments, unless it has a `function` of its own.

    `hints` are the commands to suggest for other words.
    """

    def __init__(
        self,
        *,
        function: Callable[..., None] | None = None,
        hints: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        attributes = {
            "function": None if function is None else staticmethod(function),
            "hints": hints or {},
        }
        if function is not None:
            settings |= {"help": getdoc(function), "invoke_without_command": True}
        super().__init__(
            cls=type("Group", (Group,), attributes),
            no_args_is_help=function is None,
            rich_markup_mode=None,
            **settings,
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As Typer's, with the parameters of the function made late."""

        def decorate(function: Callable[..., None]) -> Callable[..., None]:
            late: Any = partial(Command, function=function)
            super(Commands, self).command(name, help=getdoc(function), cls=late, **settings)(
                lambda: None
            )
            return function

        return decorate


class _Short(NamedTuple):
    """A flag that is short for an option of a run with one value."""

    flag: str
    name: str
    value: Any
    help: str


_SYSTEM = "--system"
_ALIASES = {"headers": ("--header",)}
_SHORT = {
    "reasons": _Short(
        "--reasons", "reply", "reason_then_score", "Ask for a reason before each score."
    ),
    "no_cache": _Short("--no-cache", "cache", False, "Ignore the cache."),
}


def _with_run_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a function whose signature has all parameters; it calls the function with the options that were given."""
    own, usual_format = {}, None
    for name, parameter in signature(function, eval_str=True).parameters.items():
        if parameter.kind is not Parameter.VAR_KEYWORD:
            own[name] = parameter
        if name == "format":
            usual_format = parameter.default
            own["json"] = _parameter(
                "json", bool, option("The same as --format json.", "--json", group="Output")
            )
    offered = _run_parameters(*function.takes) if hasattr(function, "takes") else ()
    shared = {parameter.name: parameter for parameter in offered if parameter.name not in own}

    def call(**values: Any) -> None:
        options = {
            name: value
            for name in shared
            if (value := values.pop(name)) is not None and value is not False
        }
        if "criteria" in options:
            from judge.config import criterion_entries

            options["criteria"] = [
                entry for text in options["criteria"] for entry in criterion_entries(text)
            ]
        for name in options.keys() - {
            "criteria",
            "model",
            "set",
            "headers",
            "extra_body",
        }:  # lists with commas
            options[name] = (
                ",".join(options[name]) if isinstance(options[name], list) else options[name]
            )
        for name, short in _SHORT.items():
            if options.pop(name, False):
                if short.name in options:
                    raise ConfigError(
                        f"{short.flag} and --{short.name} contradict each other; leave out one"
                    )
                options[short.name] = short.value
        if values.pop("json", False):
            if values["format"] not in (usual_format, "json"):
                raise ConfigError(
                    f"--json is short for --format json, and --format {values['format']} was given; leave out one"
                )
            values["format"] = "json"
        function(**values, **options)

    arguments = [
        parameter for parameter in own.values() if parameter.kind is not Parameter.KEYWORD_ONLY
    ]
    parameters = [
        *arguments,
        *shared.values(),
        *(own[name] for name in own if own[name] not in arguments),
    ]
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameter(name: str, kind: Any, info: Any) -> Parameter:
    default, type_ = (False, kind) if kind is bool else (None, kind | None)
    return Parameter(
        name, Parameter.KEYWORD_ONLY, annotation=Annotated[type_, info], default=default
    )


def _run_parameters(command: config.Command, names: Sequence[str]) -> Iterator[Parameter]:
    """Yield the parameters of a run's options. Numbers are texts, which `RunConfig` reads."""
    from judge import config
    from judge.core import plugins

    known: dict[str, Callable[[], list[str]]] = {
        "criteria": names_of_criteria,
        "metrics": lambda: plugins.names("metrics"),
        "engine": lambda: plugins.names("engines"),
    }
    for run_option in config.run_options(
        command, config.RankConfig if command in ("rank", "plan") else None
    ).values():
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
            shown = (
                run_option.default
                if isinstance(run_option.default, tuple)
                else [run_option.default]
            )
            text += f" (default: {','.join(map(str, shown)).removesuffix('.0')})"
        info = option(
            f"{text}.",
            f"--{name.replace('_', '-')}",
            *_ALIASES.get(name, ()),
            metavar=run_option.metavar or None,
            known=known.get(name, list(map(str, choices))),
            group=run_option.group,
        )
        if get_origin(kind) in (dict, tuple):
            kind = list[str]
        yield _parameter(
            name, kind if kind in (bool, Path, list[str]) else type((*choices, "")[0]), info
        )
        for short_name, short in _SHORT.items():
            if short.name == name and (not names or short_name in names):
                yield _parameter(
                    short_name, bool, option(short.help, short.flag, group=run_option.group)
                )


def read_config(data: Path, options: Mapping[str, Any], kind: type[C]) -> C:
    """The configuration in a run.yaml, or of a data file, with a command's options. Raises ConfigError."""
    from judge.data.rows import nearby

    if data.suffix not in CONFIGS:
        return kind.load(None, {"data": data, **options})
    if not data.exists():
        raise ConfigError(f"{data}: no such file{nearby(data)}")
    return kind.load(data, options)


def to_config(data: Path, options: Mapping[str, Any], kind: type[C]) -> tuple[C, Path]:
    """The configuration of a command's options, and the folder of its results. Raises ConfigError."""
    from judge.data import samples

    made = read_config(data, options, kind)
    folder = (
        made.out
        or Path("runs")
        / f"{samples.dataset_name(made.data or data)}-{datetime.now():%Y%m%d-%H%M%S}"
    )
    return made.model_copy(update={"out": folder}), folder
