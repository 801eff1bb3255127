"""Commands and their options. The options of a run are the fields of `RunConfig`.

Importing `judge.config` takes longer than all other work of `judge --help`, so a command reads the
fields when it is used.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_origin

import click
from click.core import ParameterSource

from judge.cli.terminal import CONFIGS
from judge.core import messages
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge import config

Config = TypeVar("Config", bound="config.RunConfig")
Function = TypeVar("Function", bound=Callable[..., Any])
Known = Callable[[], Iterable[str]] | Sequence[str]


class _Path(click.Path):
    """A path. An empty text is refused: as a path it would be the current folder."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        if value == "":
            self.fail("the name is empty; is a variable not set?", param, ctx)
        return super().convert(value, param, ctx)


PATH = _Path(path_type=Path)
_OWN = "Options"
"""Heading of the options that only one command has."""
MODEL_OPTIONS = (
    "model",
    "base_url",
    "key_env",
    "key_command",
    "headers",
    "system_message",
    "reasoning_effort",
    "extra_body",
)
"""The options of a run that select the model, and say how to send requests to it."""
_COMMON = (
    "model",
    "base_url",
    "criteria",
    "metrics",
    "map",
    "systems",
    "limit",
    "budget",
    "out",
    "format",
)
"""The options that most people need: the only ones of a run that `--help` shows, in this order."""
_RUN_FOLDER = (
    "this option is called --out and names the folder of the run; to have the report in a file, "
    "leave it out and end the command with > FILE"
)
_FORMAT_OF_ENDING = {
    ".txt": "console",
    ".md": "markdown",
    ".html": "html",
    ".tex": "latex",
    ".csv": "csv",
    ".json": "json",
    ".svg": "svg",
    ".png": "png",
    ".pdf": "pdf",
    ".htm": "html",
    ".markdown": "markdown",
}
_HELP_ALL = "judge.help_all"
_SYSTEM = "--system"


def completion(
    known: Known,
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return the function by which a shell completes known values.

    Also after other values and a comma.
    """

    def complete(
        ctx: click.Context,
        parameter: click.Parameter,
        incomplete: str,
    ) -> list[str]:
        # "coherence,flu": only the last value is completed, but a shell replaces the whole word.
        before, comma, last = incomplete.rpartition(",")
        values = known() if callable(known) else known
        matching = [value for value in values if value.startswith(last)]
        return [f"{before}{comma}{value}" for value in matching]

    return complete


class Option(click.Option):
    """An option under a heading of the help; a shell completes the `known` values."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        group: str = _OWN,
        known: Known = (),
        **settings: Any,
    ) -> None:
        shell_complete = completion(known) if known else None
        super().__init__(names, shell_complete=shell_complete, **settings)
        self.group = group
        self._known = known

    @property
    def values(self) -> list[str]:
        """The known values."""
        if callable(self._known):
            return list(self._known())
        return list(self._known)


class ReportOutput(Option):
    """The file of a report. Without `--format`, its ending chooses the format."""


def option(
    name: str,
    help: str,
    *more: str,
    **settings: Any,
) -> Callable[[Function], Function]:
    """Give a function an option: its flag, its help, and other names."""
    return click.option(name, *more, help=help, cls=Option, **settings)


def format_option(
    *formats: str,
    more: str = "",
    open_ended: bool = False,
) -> Callable[[Function], Function]:
    """Give a function the options `--format` and `--json`.

    The default is the first of the formats. Any other format is refused unless packages may add
    formats (`open_ended`); a built-in one is refused even then, such as JUnit for a run.
    """

    def check(ctx: click.Context, option: click.Parameter, format: str) -> str:
        from judge.core import plugins

        if not open_ended or format in plugins.FORMATS:
            plugins.require_known("format", [format], formats)
        return format

    *first_formats, last_format = formats
    choices = f"{', '.join(first_formats)} or {last_format}"
    text = f"{choices}{more} (default: {formats[0]})."
    choose = option(
        "--format",
        text,
        metavar="FORMAT",
        known=formats,
        default=formats[0],
        callback=check,
        group="Output",
    )
    as_json = option(
        "--json", "The same as --format json.", is_flag=True, group="Output"
    )
    return lambda function: choose(as_json(function))


def names_of_criteria() -> list[str]:
    """Return the built-in criteria, for the completion of a shell."""
    from judge.criteria.loading import builtin_files

    return sorted({path.stem for path in builtin_files("en").values()})


def data_argument(function: Function) -> Function:
    """Give a function the argument with the data that it judges."""
    text = "A data file, folder or 'PATTERN', or a run.yaml that names it."
    argument = click.argument("data", type=PATH, metavar="DATA|RUN.YAML", help=text)
    return argument(function)


RUN_FORMATS = ("console", "markdown", "html", "json", "csv", "latex")
"""The formats of the report of a run, without those of its charts."""
report_format = format_option("console", "markdown", "html", "latex", "csv", "json")
list_format = format_option("console", "json")
"""For commands that print a table for people or a record for programs."""
full_option = option(
    "--full",
    "Print the full report, not only its summary.",
    is_flag=True,
    group="Output",
)
quiet_option = option(
    "--quiet",
    "No progress, no report on the console.",
    "-q",
    is_flag=True,
    group="Output",
)
export_option = option(
    "--export",
    "Also write a file: otel=FILE, traces as OTLP-JSON.",
    metavar="FORMAT=FILE",
    multiple=True,
    group="Output",
)


def table_option(example: str) -> Callable[[Function], Function]:
    """Return the option `--table`; the example is the name of a table that the command prints."""
    return option(
        "--table",
        f"Print only this table, such as {example}.",
        metavar="NAME",
        group="Output",
    )


columns_option = option(
    "--columns",
    "Only these columns of the table, in this order; names of rows transpose it.",
    metavar="NAME,...",
    multiple=True,
    group="Output",
)


def report_output_option(
    default: str, metavar: str = "FILE"
) -> Callable[[Function], Function]:
    """Return the option `--output` of a report, which goes to the `default` without it."""
    return click.option(
        "--output",
        help=f"Write here; the ending chooses the format (default: {default}).",
        type=PATH,
        metavar=metavar,
        group="Output",
        cls=ReportOutput,
    )


output_option = report_output_option("to the console")


def _print_full_help(ctx: click.Context, option: click.Parameter, is_set: bool) -> None:
    """Print the help with all options, and exit."""
    # A shell that completes a line parses it, too (`resilient_parsing`).
    if is_set and not ctx.resilient_parsing:
        ctx.meta[_HELP_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


def _help_all_option(*, hidden: bool = False) -> Option:
    # Eager, so that a missing argument is no error.
    return Option(
        ["--help-all"],
        help="Show all options.",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_full_help,
        hidden=hidden,
    )


_HELP_ALL_OPTION = _help_all_option()
_HIDDEN_HELP_ALL_OPTION = _help_all_option(hidden=True)
"""For a command whose `--help` shows all options: people type `--help-all` there, too."""


class Command(click.Command):
    """A command with its own options and the options of a run.

    `takes` names the command whose options of a run it has; with `only`, it has the ones with these
    names. `no_cache` stands for `--no-cache`. Its function gets the options of a run that were
    given as `**options`.
    """

    def __init__(
        self,
        *args: Any,
        takes: config.Command | None = None,
        only: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.takes = takes
        self.only = tuple(only)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the arguments, the options of a run and the command's own."""
        parameters = super().get_params(ctx)
        # A command without options of a run shows all its options anyway.
        if self.takes is None:
            return [*parameters, _HIDDEN_HELP_ALL_OPTION]
        own_names = {parameter.name for parameter in parameters}
        arguments: list[click.Parameter] = []
        own_options: list[click.Parameter] = []
        for parameter in parameters:
            if isinstance(parameter, click.Argument):
                arguments.append(parameter)
            else:
                own_options.append(parameter)
        # A command's own option replaces the run's option of the same name.
        all_run_options = run_options(self.takes, self.only)
        inherited = [
            run_option
            for run_option in all_run_options
            if run_option.name not in own_names
        ]
        help_all = _HIDDEN_HELP_ALL_OPTION if self.only else _HELP_ALL_OPTION
        return [*arguments, *inherited, *own_options, help_all]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line.

        Raises ConfigError for a former name of an option, and for one value too many.
        """
        try:
            # `parse_args` removes arguments from its list.
            _, _, parameters_in_order = self.make_parser(ctx).parse_args(list(args))
            if not ctx.resilient_parsing:
                _refuse_second_values(parameters_in_order)
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known_flags: set[str] = set()
            for parameter in self.get_params(ctx):
                known_flags |= {*parameter.opts}
            known_names = {flag.removeprefix("--") for flag in known_flags}
            former = error.option_name.removeprefix("--")
            current = messages.new_name(former, known_names)
            # A run writes a folder, `--out`; the other commands write a file, `--output`.
            if former == "output" and current:
                raise ConfigError(f"--output: {_RUN_FOLDER}") from None
            if current:
                correction = f"this option is called --{current}"
                raise ConfigError(f"{error.option_name}: {correction}") from None
            if error.option_name != _SYSTEM or f"{_SYSTEM}-message" not in known_flags:
                raise
            meanings = messages.two_meanings_of_system(f"{_SYSTEM}-message TEXT")
            raise ConfigError(f"{_SYSTEM}: {meanings}") from None

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function. Raises ConfigError if two options contradict each other."""
        own_names = {parameter.name for parameter in self.params}
        own_values: dict[str, Any] = {}
        typed_values: dict[str, Any] = {}
        for parameter_name, value in ctx.params.items():
            source = ctx.get_parameter_source(parameter_name)
            if parameter_name in own_names:
                own_values[parameter_name] = value
            elif source is ParameterSource.COMMANDLINE:
                # Defaults are left to `RunConfig`, because a run.yaml comes between.
                typed_values[parameter_name] = value
        if own_values.pop("json", False):
            own_values["format"] = _as_json(ctx)
        elif ctx.get_parameter_source("format") is ParameterSource.DEFAULT:
            self._choose_format(own_values)
        ctx.params = own_values | _read_run_options(typed_values)
        return super().invoke(ctx)

    def _choose_format(self, values: dict[str, Any]) -> None:
        """Choose the format of a report by the ending of its file.

        Raises ConfigError for an ending of no format that the command has.
        """
        output = values.get("output")
        is_report = any(
            isinstance(parameter, ReportOutput) for parameter in self.params
        )
        if not is_report or output is None or not output.suffix:
            return
        formats: list[str] = []
        for parameter in self.params:
            if isinstance(parameter, Option) and parameter.name == "format":
                formats += parameter.values
        format = _FORMAT_OF_ENDING.get(output.suffix.lower())
        if format not in formats:
            endings = [
                ending for ending, name in _FORMAT_OF_ENDING.items() if name in formats
            ]
            raise ConfigError(
                f"--output {output}: no format of this report has the ending {output.suffix}; "
                f"name a file that ends in {', '.join(endings)}, or add --format"
            )
        values["format"] = format

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options under their headings.

        A command that has all options of a run shows only the common ones.
        """
        sections: dict[str, list[click.Parameter]] = {_OWN: []}
        option_by_name: dict[str | None, click.Parameter] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Argument):
                continue
            heading = parameter.group if isinstance(parameter, Option) else _OWN
            sections.setdefault(heading, []).append(parameter)
            option_by_name[parameter.name] = parameter
        if self.takes and not self.only and not ctx.meta.get(_HELP_ALL):
            common = [
                option_by_name[name] for name in _COMMON if name in option_by_name
            ]
            own_options = [option for option in sections[_OWN] if option not in common]
            sections = {"Common options": common, _OWN: own_options}
        for heading, options in sections.items():
            records = [option.get_help_record(ctx) for option in options]
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record is not None])


def _refuse_second_values(parameters: Sequence[click.Parameter]) -> None:
    """Raise ConfigError if an option with one value was given twice; click uses the last value.

    `parameters` are those of the command line, in its order.
    """
    seen: set[str | None] = set()
    for parameter in parameters:
        if not isinstance(parameter, click.Option):
            continue
        if parameter.is_flag or parameter.multiple:
            continue
        if parameter.name in seen:
            flag = next(name for name in parameter.opts if name.startswith("--"))
            panel = _panel_example(parameter.name)
            problem = "takes one value, and was given twice"
            raise ConfigError(f"{flag}: {problem}; leave out one{panel}")
        seen.add(parameter.name)


def _panel_example(option_name: str | None) -> str:
    """Return how several judges get a value each, or "" for an option that judges do not have."""
    from judge.core.request_options import ModelSettings

    if option_name not in ModelSettings.model_fields:
        return ""
    return (
        ", or give each judge its own in run.yaml: "
        f"model: [{{name: A, {option_name}: …}}, {{name: B, {option_name}: …}}]"
    )


class Group(Command, click.Group):
    """Commands, under headings if there are several kinds.

    `hints` are the commands to suggest for other words.
    """

    command_class = Command

    def __init__(
        self,
        *args: Any,
        hints: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.hints = hints or {}
        self.headings: dict[str, list[str]] = {}

    def add_section(self, heading: str, commands: Mapping[str, click.Command]) -> None:
        """Add commands under a heading."""
        for command_name, command in commands.items():
            self.add_command(command, command_name)
        self.headings[heading] = list(commands)

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the commands under their headings, then the options."""
        # As click does: three times the spacing of its columns.
        text_width = formatter.width - 6 - max(map(len, self.commands))
        headings = self.headings or {"Commands": list(self.commands)}
        for heading, command_names in headings.items():
            records = []
            for command_name in command_names:
                command = self.commands[command_name]
                records.append((command_name, command.get_short_help_str(text_width)))
            with formatter.section(heading):
                formatter.write_dl(records)
        super().format_options(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command. Exits with 130 on Ctrl-C, as a shell expects."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            # Ends the line on which the terminal shows ^C.
            click.echo(err=True)
            raise click.exceptions.Exit(130) from None

    def resolve_command(
        self,
        ctx: click.Context,
        args: list[str],
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name.

        Raises ConfigError, with a hint, if there is none.
        """
        command_name = args[0]
        # An unknown flag is left to click, which names the nearest one.
        is_known = command_name in self.commands or command_name.startswith("-")
        if not is_known and not ctx.resilient_parsing:
            hint = self._hint(ctx, command_name)
            raise ConfigError(f"unknown command {command_name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def _hint(self, ctx: click.Context, command_name: str) -> str:
        """Say what to type instead of an unknown command."""
        if command_name in self.hints:
            return f"use {self.hints[command_name]}"
        nearest = difflib.get_close_matches(command_name, self.commands, n=1)
        if nearest:
            return f"did you mean {nearest[0]!r}?"
        return f"{ctx.command_path} --help lists the commands"


class _Short(NamedTuple):
    """A flag that is short for an option of a run with one value."""

    flag: str
    name: str
    value: Any
    help: str


SHORT_FORMS = {
    "reasons": _Short(
        "--reasons",
        "reply",
        "reason_then_score",
        "Ask for a reason before each score.",
    ),
    "no_cache": _Short("--no-cache", "cache", False, "Ignore the cache."),
}
"""The flags that are short for an option of a run, by the names of their parameters."""
_REPORT_SUFFIXES = (
    ".csv",
    ".html",
    ".json",
    ".md",
    ".parquet",
    ".tex",
    ".tsv",
    ".txt",
    ".xml",
)
_COMMA_SEPARATED = (
    "map",
    "systems",
    "where",
    "sentence_marks",
    "metrics",
    "score_columns",
    "judge_columns",
)
"""Repeatable options whose values may also stand in one text, which `RunConfig` splits."""


def run_options(
    command: config.Command, only: tuple[str, ...] = ()
) -> tuple[Option, ...]:
    """Return the options of a run that a command takes, or only those with these names."""
    from judge import config

    return _run_options(command, config.RunConfig, only)


# click asks a command for its options several times.
@cache
def _run_options(
    command: config.Command,
    config_class: type[config.RunConfig],
    only: tuple[str, ...],
) -> tuple[Option, ...]:
    options = []
    for field in _fields(command, config_class).values():
        # Data are the argument.
        if field.name == "data":
            continue
        if not only or field.name in only:
            options.append(_run_option(field))
        for shorthand_name, shorthand in SHORT_FORMS.items():
            if shorthand.name == field.name and (not only or shorthand_name in only):
                short_option = Option(
                    [shorthand.flag, shorthand_name],
                    help=shorthand.help,
                    is_flag=True,
                    group=field.group,
                )
                options.append(short_option)
    return tuple(options)


def _fields(
    command: config.Command, config_class: type[config.RunConfig]
) -> dict[str, config.Option]:
    """Return the fields of the configuration that a command takes as options."""
    from judge import config

    if command == "rank":
        return config.run_options(command, config.RankConfig)
    fields = config.run_options(command, config_class)
    if command == "plan":
        # `judge plan --rank` takes the options of a ranking, too. Those that a run has as well are
        # described as a run's.
        return config.run_options(command, config.RankConfig) | fields
    return fields


def _run_option(field: config.Option) -> Option:
    """Return the option of a field. Its values are texts, which `RunConfig` reads."""
    from judge.core import plugins

    known_values: dict[str, Known] = {
        "criteria": names_of_criteria,
        "metrics": lambda: plugins.names("metrics"),
        "engine": lambda: plugins.names("engines"),
    }
    value_type = field.kinds[0]
    # Other values stay texts, which `RunConfig` reads like the values of a run.yaml.
    click_type: Any = None
    if value_type is Path:
        click_type = PATH
    elif field.choices and isinstance(field.choices[0], int):
        click_type = int
    choices = [str(choice) for choice in field.choices]
    flag = f"--{field.name.replace('_', '-')}"
    # Messages name the first of the flags.
    flags = [messages.option(field.name)]
    if flag not in flags:
        flags.append(flag)
    is_repeatable = get_origin(value_type) in (dict, tuple)
    return Option(
        [*flags, field.name],
        help=_help_of(field),
        type=click_type,
        metavar=field.metavar or None,
        is_flag=True if value_type is bool else None,
        multiple=is_repeatable,
        known=known_values.get(field.name, choices),
        group=field.group,
    )


def _help_of(field: config.Option) -> str:
    """Return the description of a field with its choices and its default."""
    text = field.description.removesuffix(".")
    if field.choices:
        *first_choices, last_choice = map(str, field.choices)
        listed_choices = ", ".join(first_choices)
        text += f": {listed_choices} or {last_choice}"
    is_empty = field.default in (None, (), {}, "")
    # 0 is a default to show, and equal to False.
    is_off = field.default is False
    if not is_empty and not is_off:
        default = str(field.default)
        if isinstance(field.default, tuple):
            default = ",".join(map(str, field.default))
        # `1` for 1.0
        default = default.removesuffix(".0")
        text += f" (default: {default})"
    return f"{text}."


def _read_run_options(typed_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run as `RunConfig` reads them.

    Raises ConfigError if two contradict each other.
    """
    options = {
        option_name: value
        for option_name, value in typed_values.items()
        if option_name not in SHORT_FORMS
    }
    if "criteria" in options:
        from judge.config import criterion_entries

        # A criterion may be a sentence with commas in it.
        options["criteria"] = criterion_entries(*options["criteria"])
    # click gives a tuple for an option that may be repeated.
    for option_name, value in options.items():
        if isinstance(value, tuple):
            options[option_name] = (
                ",".join(value) if option_name in _COMMA_SEPARATED else list(value)
            )
    for option_name, shorthand in SHORT_FORMS.items():
        if option_name not in typed_values:
            continue
        if shorthand.name in options:
            flags = f"{shorthand.flag} and --{shorthand.name}"
            raise ConfigError(f"{flags} contradict each other; leave out one")
        options[shorthand.name] = shorthand.value
    return options


def _as_json(ctx: click.Context) -> str:
    """Return the format of `--json`. Raises ConfigError if another one was given."""
    format = ctx.params["format"]
    was_given = ctx.get_parameter_source("format") is ParameterSource.COMMANDLINE
    if was_given and format not in ("console", "json"):
        problem = f"--json is short for --format json, and --format {format} was given"
        raise ConfigError(f"{problem}; leave out one")
    return "json"


def read_config(
    data: Path,
    options: Mapping[str, Any],
    config_class: type[Config],
) -> Config:
    """Return the configuration in a run.yaml, or of a data file, with a command's options.

    Raises ConfigError.
    """
    from judge.data.rows import nearby

    if data.suffix not in CONFIGS:
        return config_class.load(None, {"data": data, **options})
    if not data.exists():
        raise ConfigError(f"{data}: no such file{nearby(data)}")
    return config_class.load(data, options)


def check_run_folder(folder: Path | None) -> None:
    """Raise ConfigError if the folder of a run has the name of a report, and is no folder yet."""
    is_report = folder is not None and folder.suffix.lower() in _REPORT_SUFFIXES
    if is_report and folder is not None and not folder.is_dir():
        raise ConfigError(
            f"--out {folder}: is the folder of the run, not a file. Name a folder; to have the "
            f"report in a file, add --format NAME and end the command with > {folder}"
        )


def to_config(
    data: Path,
    options: Mapping[str, Any],
    config_class: type[Config],
) -> tuple[Config, Path]:
    """Return the configuration of a command's options, and the folder of its results.

    Raises ConfigError.
    """
    from judge.data import samples

    run_config = read_config(data, options, config_class)
    folder = run_config.out
    if folder is None:
        dataset_name = samples.dataset_name(run_config.data or data)
        # The time makes it a new folder, so that no earlier run is in the way.
        now = datetime.now()
        folder = Path("runs") / f"{dataset_name}-{now:%Y%m%d-%H%M%S}"
    return run_config.model_copy(update={"out": folder}), folder
