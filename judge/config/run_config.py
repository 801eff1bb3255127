"""`RunConfig`: every option of a run, said once. Errors name the file, the line and the key.

The command line, the Python signatures, the keys of suites, the JSON schemas and docs/reference.md
are made from the fields of `RunConfig` and `RankConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
)

from judge.config.option_types import (
    SCRIPTED,
    ColumnMap,
    Judges,
    MetricOptions,
    RowFilter,
    ScoreColumns,
    SentenceMarks,
    script_of,
    split,
)
from judge.config.refused_values import problem_of
from judge.core import yaml_lines
from judge.core.budget import LARGEST, Budget, parse_budget
from judge.core.criterion_entry import is_file, refuse_none, to_entries
from judge.core.errors import ConfigError
from judge.core.generated_system import Systems, resolve_systems
from judge.core.invalid_values import first_invalid_value
from judge.core.messages import generate_command, option
from judge.core.option_values import parse_ends
from judge.core.records import ReplyKind
from judge.core.request_options import (
    ExtraBody,
    Headers,
    Judge,
    KeyCommand,
    Variable,
    forbidden_command,
)
from judge.data.rows import is_address
from judge.text.languages import LanguageChoice, LanguageCode

DEFAULT_CRITERIA = ("relevance", "coherence", "consistency", "fluency")
"""The criteria of texts that look like summaries (`criteria.default_criteria`).

Other texts have no default.
"""
WITH_REASONS: ReplyKind = "reason_then_score"
"""The reply that the option `reasons` asks for."""
_OPTION_PATHS = (
    "stopwords",
    "exceptions",
    "baseline",
    "model",
    "bertscore_model",
    "questions",
    "answers",
)
"""Options of metrics that may name a file or a folder."""


Command = Literal["run", "rank", "plan", "card", "diff", "test", "suite"]
Group = Literal[
    "Data", "Judge", "Scoring", "Metrics", "Limits and cost", "Output", "Advanced"
]
_UNRATED: tuple[Command, ...] = ("diff", "test", "suite")
_RUNS_ONLY: tuple[Command, ...] = ("card", *_UNRATED)


def _option(
    default: Any,
    group: Group,
    description: str,
    metavar: str = "",
    *,
    lacking: tuple[Command, ...] = (),
    **checks: Any,
) -> Any:
    """An option: its default, its heading and one text for all interfaces.

    `lacking` are the commands that do not take it.
    """
    extra: dict[str, Any] = {"group": group, "metavar": metavar, "lacking": lacking}
    return Field(default, description=description, json_schema_extra=extra, **checks)


class RunConfig(BaseModel):
    """Everything that describes a run.

    The fields are the keys of run.yaml and the options of `judge run` and `judge.evaluate`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    _criteria_at: str = PrivateAttr("")
    _rating_rows: Any = PrivateAttr(None)
    _address_set_by: str = PrivateAttr("")

    data: Path | None = _option(
        None, "Data", "Data file, folder of files, or pattern.", "DATA"
    )
    map: ColumnMap = _option(
        {},
        "Data",
        "Columns of item, system, output, source, references or rating.NAME (one per rater).",
        "FIELD=COLUMN,...",
    )
    systems: Systems = _option(
        (), "Data", "Columns that each hold the outputs of one system.", "COLUMN,..."
    )
    where: RowFilter = _option(
        {},
        "Data",
        "Only rows with one of these values in the column.",
        "COLUMN=VALUE,...",
    )
    against: str | None = _option(
        None,
        "Data",
        "Compare all systems with this one only.",
        "SYSTEM",
        min_length=1,
        lacking=_RUNS_ONLY,
    )
    ratings: Path | None = _option(
        None,
        "Data",
        "File with people's ratings, apart from the data.",
        "FILE",
        lacking=_UNRATED,
    )
    rating_criterion: str = _option(
        "",
        "Data",
        "Criterion of the ratings, if their file names none.",
        "NAME",
        lacking=_UNRATED,
    )
    limit: int | None = _option(None, "Data", "Only the first N outputs.", "N", ge=1)
    sentence_marks: SentenceMarks = _option(
        (),
        "Data",
        "Sentence marks, such as <q>, to read as line breaks.",
        "MARK,...",
        lacking=("test", "suite"),
    )

    model: Judges = _option(
        (),
        "Judge",
        "Model that judges, such as gpt-5.4-mini; several are a panel.",
        "[VENDOR/]NAME",
    )
    base_url: str | None = _option(
        None, "Judge", "Address of an OpenAI-compatible server, ending in /v1.", "URL"
    )
    key_env: Variable = _option(
        "OPENAI_API_KEY",
        "Judge",
        "Environment variable with the key; each vendor has its own.",
        "NAME",
    )
    key_command: KeyCommand | None = _option(
        None,
        "Judge",
        "Command that prints the key; it runs again when a key expires.",
        "COMMAND",
        repr=False,
    )
    headers: Headers = _option(
        {},
        "Judge",
        "HTTP header of each request; repeatable.",
        "NAME=VALUE",
        repr=False,
    )
    system_message: str | None = _option(
        None,
        "Judge",
        "System message, sent before the prompt.",
        "TEXT",
        lacking=("diff",),
    )
    reasoning_effort: str | None = _option(
        None,
        "Judge",
        "How long the model reasons before it answers (none, low, medium, high).",
        "EFFORT",
        pattern=r"^[\w-]*$",
    )
    extra_body: ExtraBody = _option(
        {}, "Judge", "Further keys of each request, as JSON.", "JSON"
    )
    temperature: float | None = _option(
        None,
        "Judge",
        "Sampling temperature (default: 0; 1 for several draws).",
        "T",
        ge=0,
        le=2,
    )
    max_tokens: int | None = _option(
        None, "Judge", "Longest reply (default: by the kind of reply).", "N", ge=1
    )
    replay: Path | None = _option(
        None,
        "Judge",
        "Recording that answers instead of the model, offline.",
        "CALLS.jsonl",
    )

    criteria: tuple[str, ...] | None = _option(
        None,
        "Scoring",
        "Names, files, or 'NAME: QUESTION'; repeatable; none for metrics alone "
        f"(default, for summaries only: {','.join(DEFAULT_CRITERIA)}).",
        "CRITERION,...",
        lacking=("diff",),
    )
    language: LanguageCode | None = _option(
        None,
        "Scoring",
        "Language of the prompts; auto (default) takes that of most words.",
        "LANGUAGE",
    )
    weighting: Literal["auto", "logprobs", "decisions", "samples", "single"] = _option(
        "auto", "Scoring", "How a score is computed.", "METHOD"
    )
    draws: int = _option(
        20,
        "Scoring",
        "Replies to draw if a score is a mean of samples.",
        "N",
        ge=1,
        le=1000,
    )
    min_mass: float = _option(
        0.5,
        "Scoring",
        "Least probability on the scale's labels for a valid score.",
        "P",
        ge=0,
        le=1,
    )
    reply: ReplyKind | None = _option(
        None, "Scoring", "Content of a reply (default: the criterion's own).", "KIND"
    )
    strict: bool = _option(
        False,
        "Scoring",
        "Read a score only in the requested form; ask no repair question.",
    )
    repair: Literal["on", "off"] = _option(
        "on",
        "Scoring",
        "Ask once more, for the score alone, if a reply has none.",
        "on|off",
    )
    structured: bool = _option(
        False, "Scoring", "Ask for replies as JSON objects (response_format)."
    )
    panel: Literal["mean", "median", "majority"] = _option(
        "mean",
        "Scoring",
        "How several judges' scores become one.",
        "METHOD",
        lacking=("card", "diff"),
    )
    pass_at: int | float | str | None = _option(
        None,
        "Scoring",
        "Worst value that passes, for criteria without a mark of their own.",
        "VALUE",
        lacking=("rank", "diff"),
    )
    calibrate: bool = _option(
        False,
        "Scoring",
        "Calibrate means to the human ratings of some texts (PPI++).",
        lacking=("rank", *_RUNS_ONLY),
    )

    metrics: tuple[str, ...] | None = _option(
        None,
        "Metrics",
        "Names, or none (default: rouge,bleu,chrf if there are references).",
        "NAME,...",
        lacking=_RUNS_ONLY,
    )
    set: MetricOptions = _option(
        {},
        "Metrics",
        "Option of a metric, such as rouge.stem=false; repeatable.",
        "METRIC.OPTION=VALUE",
        lacking=("rank", *_RUNS_ONLY),
    )
    score_columns: ScoreColumns = _option(
        {},
        "Metrics",
        "Columns with scores from elsewhere; COLUMN=lower if less is better.",
        "COLUMN,...",
        lacking=("rank", "card", "diff", "test"),
    )
    judge_columns: ScoreColumns = _option(
        {},
        "Scoring",
        "Columns with a judge's scores; COLUMN=lower if less is better.",
        "COLUMN,...",
        lacking=("card", "diff", "test"),
    )
    scale: tuple[float, float] | None = _option(
        None,
        "Scoring",
        "Scale of the judge columns (default: from their values).",
        "LOW-HIGH",
        lacking=("rank", "card", "diff", "test"),
    )
    workers: int = _option(
        1,
        "Metrics",
        "Processes that compute metrics.",
        "N",
        lacking=("rank", *_RUNS_ONLY),
        ge=1,
        le=1_000,
    )

    budget: Budget | None = _option(
        None,
        "Limits and cost",
        "Stop at this budget (5usd, 200000tokens); re-run to resume.",
        "AMOUNT",
    )
    deadline: float | None = _option(
        None,
        "Limits and cost",
        "Stop judging after N seconds; re-run to resume.",
        "SECONDS",
        gt=0,
    )
    rpm: int | None = _option(
        None,
        "Limits and cost",
        "Requests per minute (default: the server's rate limit).",
        "N",
        ge=1,
    )
    tpm: int | None = _option(
        None,
        "Limits and cost",
        "Tokens per minute (default: the server's rate limit).",
        "N",
        ge=1,
    )
    max_concurrency: int = _option(
        64, "Limits and cost", "Maximum requests in flight.", "N", ge=1, le=10_000
    )
    timeout: float = _option(
        120.0, "Limits and cost", "Seconds to wait for a reply.", "SECONDS", gt=0
    )
    retries: int = _option(
        5, "Limits and cost", "Retries of a failed request.", "N", ge=0
    )
    cache: Path | Literal[False] | None = _option(
        None,
        "Limits and cost",
        "Folder of the reply cache (default: ~/.cache/judge).",
        "DIR",
    )

    out: Path | None = _option(
        None,
        "Output",
        "Folder for the results (command line default: runs/DATA-TIME).",
        "DIR",
        lacking=("diff", "suite"),
    )
    overwrite: bool = _option(
        False,
        "Output",
        "Replace a run in out that has other texts, judges or criteria.",
        lacking=("diff", "suite"),
    )
    title: str | None = _option(
        None,
        "Output",
        "Title of the report (default: data and judge).",
        "TEXT",
        lacking=_RUNS_ONLY,
    )
    record: Path | None = _option(
        None,
        "Output",
        "Recording to write the replies to, for replay.",
        "CALLS.jsonl",
        lacking=("suite",),
    )

    engine: str = _option(
        "local",
        "Advanced",
        "Where requests run: local, batch (half price) or ray.",
        "NAME",
        lacking=("card", "diff", "suite"),
    )
    ray_workers: int | None = _option(
        None,
        "Advanced",
        "Processes of engine ray (default: one per machine).",
        "N",
        lacking=("card", "diff", "suite"),
        ge=1,
        le=10_000,
    )
    retry_failed: bool = _option(
        False,
        "Advanced",
        "Repeat failed judgments; the cache answers the others.",
        lacking=("suite",),
    )
    seed: int = _option(0, "Advanced", "Random seed.", "N", ge=0)

    @property
    def output_columns(self) -> tuple[str, ...]:
        """The columns of wide data.

        Raises ConfigError if the systems' outputs have to be generated first.
        """
        if isinstance(self.systems, dict):
            raise ConfigError(
                f"systems: this command generates no outputs; {generate_command()} writes them"
            )
        return self.systems

    @classmethod
    def load(
        cls, file: str | Path | None = None, options: Mapping[str, Any] | None = None
    ) -> Self:
        """Return the configuration of a YAML file, if any, overridden by `options`.

        Paths in the file are relative to the file. Raises ConfigError.
        """
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        if file is not None:
            values, lines = _read_yaml(Path(file))
        # A file from somebody else could run any program with its key command.
        key, problem = forbidden_command(values)
        if problem:
            raise ConfigError(f"{file}:{lines[key]}: key_command: {problem}")
        typed = options or {}
        overrides = {key: value for key, value in typed.items() if value is not None}
        _expand_reasons(overrides)
        if "set" in values and "set" in overrides:
            # Single options of a metric override the file's options.
            overriding = overrides["set"]
            layers = overriding if isinstance(overriding, list) else [overriding]
            overrides["set"] = [values["set"], *layers]
        keys_of_file = lines.keys() - overrides.keys()
        location_by_key = {key: f"{file}:{lines[key]}: " for key in keys_of_file}
        try:
            config = cls.model_validate(values | overrides)
        except ValidationError as error:
            raise ConfigError(cls._refusal(error, location_by_key)) from error
        config._criteria_at = location_by_key.get("criteria", "")
        return config

    @classmethod
    def _refusal(
        cls, error: ValidationError, location_by_key: Mapping[str, str]
    ) -> str:
        """Return the message about the first value that is refused.

        It begins with the location of a value from the file, or else with the option.
        """
        refused = first_invalid_value(error)
        option_name, *inner = map(str, refused.path or ("",))
        in_file = option_name in location_by_key
        location = option(option_name)
        if in_file:
            location = f"{location_by_key[option_name]}{option_name}"
        within = [path_part for path_part in inner if not path_part.isdigit()]
        message = problem_of(
            refused,
            [option_name, *within],
            in_file=in_file,
            options=cls.model_fields,
            rank_options=RankConfig.model_fields,
        )
        keys_within = "".join(f" {path_part}:" for path_part in within)
        return f"{location}:{keys_within} {message}"

    def of_judge(self, judge: Judge) -> Self:
        """Return the configuration of one judge, whose own settings replace the run's."""
        # The name and the label are no settings of a run.
        names = judge.model_fields_set - {"name", "label"}
        shared_names = names & type(self).model_fields.keys()
        own_settings: dict[str, Any] = {}
        for setting_name in shared_names:
            value = getattr(judge, setting_name)
            if value is not None:
                own_settings[setting_name] = value
        # A judge's own variable for its key replaces the run's command, too.
        if "key_env" in own_settings:
            own_settings.setdefault("key_command", None)
        config = self.model_copy(update=own_settings)
        if "base_url" in own_settings:
            config._address_set_by = f"base_url of {judge.name}"
        return config

    @property
    def address_set_by(self) -> str:
        """The key of a judge's entry that has set its address, for messages; "" for none."""
        return self._address_set_by

    @property
    def replies_kept_in(self) -> str:
        """The store of paid replies that a restarted run reads: cache or recording; "" if none."""
        if self.cache is not False:
            return "cache"
        return "recording" if self.record is not None else ""

    @property
    def rating_source(self) -> Any:
        """People's ratings, in a file, a DataFrame or rows; None if the data has them."""
        return self.ratings if self._rating_rows is None else self._rating_rows

    def with_rating_rows(self, rows: Any) -> Self:
        """Return the configuration with ratings that are in no file."""
        config = self.model_copy()
        config._rating_rows = rows
        return config

    @property
    def criteria_at(self) -> str:
        """The place of the criteria in the file that has them, `run.yaml:7: `, or ""."""
        return self._criteria_at

    @field_validator("*")
    @classmethod
    def refuse_huge_numbers(cls, value: Any) -> Any:
        """Refuse numbers beyond any meaning: arithmetic with them fails."""
        if isinstance(value, int | float) and value > LARGEST:
            raise ValueError(f"input should be at most {LARGEST:,}")
        return value

    @field_validator("repair", mode="before")
    @classmethod
    def parse_repair(cls, value: Any) -> Any:
        """Accept a boolean, because YAML reads a bare `on` or `off` as one."""
        if not isinstance(value, bool):
            return value
        return "on" if value else "off"

    @field_validator(
        "language", mode="before", json_schema_input_type=LanguageChoice | None
    )
    @classmethod
    def parse_language(cls, value: Any) -> Any:
        """Accept `auto`, the default: the language of most words of the data."""
        return None if value == "auto" else value

    @field_validator(
        "criteria",
        mode="before",
        json_schema_input_type=str | dict[str, Any] | list[str | dict[str, Any]],
    )
    @classmethod
    def parse_criteria(cls, value: Any) -> Any:
        """Accept names, files, sentences `NAME: QUESTION`, and {name: ..., question: ...}."""
        return to_entries(value)

    @field_validator("metrics", mode="before", json_schema_input_type=str | list[str])
    @classmethod
    def parse_names(cls, value: Any) -> Any:
        """Accept `a,b`; `none` is the empty list."""
        names = split(value) if isinstance(value, str) else value
        refuse_none(names)
        return names

    @field_validator("scale", mode="before", json_schema_input_type=str | list[float])
    @classmethod
    def read_scale(cls, value: Any) -> Any:
        """Accept `1-5`, `0 to 1` and a list of two numbers."""
        return value if value is None else parse_ends(value)

    @field_validator("budget", mode="before", json_schema_input_type=str)
    @classmethod
    def read_budget(cls, value: Any) -> Any:
        """Accept `5usd`, `$5`, `200000tokens` or `2mtokens`, and a budget as run.json has it."""
        if value is None or isinstance(value, Budget | Mapping):
            return value
        return parse_budget(value)

    @field_validator(
        "cache", mode="before", json_schema_input_type=Path | Literal[False]
    )
    @classmethod
    def parse_cache(cls, value: Any) -> Any:
        """Accept a folder, or False for none; an address never becomes a folder."""
        if isinstance(value, str) and "://" not in value:
            return Path(value)
        if value is None or value is False or isinstance(value, Path):
            return value
        raise ValueError("write a folder, or false for none")


def _expand_reasons(options: dict[str, Any]) -> None:
    """Replace the option `reasons` by the `reply` that it is short for. Raises ConfigError."""
    reasons = options.pop("reasons", False)
    if not isinstance(reasons, bool):
        problem = f"write True or False, not {reasons!r:.100}"
        raise ConfigError(f"{option('reasons')}: {problem}")
    if not reasons:
        return
    if options.get("reply", WITH_REASONS) != WITH_REASONS:
        both = f"{option('reasons')} and {option('reply')}"
        raise ConfigError(f"{both}: give one of them")
    options["reply"] = WITH_REASONS


class RankConfig(RunConfig):
    """The options of `judge rank`: the options of a run, and how texts are paired."""

    criteria: tuple[str, ...] = _option(
        ("overall",),
        "Scoring",
        "Names, files, or 'NAME: QUESTION' about two texts; repeatable.",
        "CRITERION,...",
    )
    # A run.yaml that judge run shares may have metrics: a note says that a ranking has none.
    metrics: tuple[str, ...] | None = _option(
        (), "Metrics", "Of judge run.", lacking=("rank",)
    )
    orders: Literal[1, 2] = _option(
        2, "Scoring", "Orders in which to show each pair of texts.", "N"
    )
    pairs: int | None = _option(
        None, "Scoring", "Compare a sample of N pairs (default: all).", "N", ge=1
    )


load_config = RunConfig.load


def _read_yaml(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the file's values and lines by key."""
    try:
        document = yaml_lines.keys(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text") from error
    except yaml_lines.Malformed as error:
        location = f"{path}:{error.line}" if error.line else str(path)
        raise ConfigError(f"{location}: {error}") from error
    if document is None:
        raise ConfigError(
            f"{path}: expected lines of the form key: value, such as data: summaries.jsonl"
        )
    values: dict[str, Any] = {}
    for option_name, value in document.values.items():
        values[str(option_name)] = resolve_value(str(option_name), value, path.parent)
    return values, document.lines


def resolve_value(option_name: str, value: Any, folder: Path) -> Any:
    """Make the paths in a value relative to the file's folder."""
    field = RunConfig.model_fields.get(option_name)
    is_path = field is not None and Path in get_args(field.annotation)
    if is_path and isinstance(value, str | Path) and not is_address(value):
        return folder / value
    if option_name == "criteria":
        try:
            entries = to_entries(value)
        except ValueError:
            return value  # `RunConfig` refuses it, with its line
        names = entries if isinstance(entries, list) else [entries]
        paths: list[Any] = []
        for entry in names:
            is_criterion_file = is_file(str(entry))
            paths.append(str(folder / entry) if is_criterion_file else entry)
        return paths
    if option_name == "systems" and isinstance(value, dict):
        return resolve_systems(value, folder, _resolve_judge)
    if option_name == "set" and isinstance(value, dict):
        return {
            metric: _resolve_options(options, folder)
            for metric, options in value.items()
        }
    if option_name == "model":
        judges = value if isinstance(value, list) else [value]
        return [_resolve_judge(judge, folder) for judge in judges]
    return value


def _resolve_options(options: Any, folder: Path) -> Any:
    """Make the paths in the options of a metric relative to a folder."""
    if not isinstance(options, dict):
        return options
    resolved: dict[str, Any] = {}
    for option_name, value in options.items():
        is_path = option_name in _OPTION_PATHS
        resolved[option_name] = _resolve_file(value, folder) if is_path else value
    return resolved


def _resolve_file(value: Any, folder: Path) -> Any:
    """Return the path of an existing file or files; anything else may be a model's name."""
    if isinstance(value, list):
        return [_resolve_file(path, folder) for path in value]
    if isinstance(value, str) and value.strip() and (folder / value).exists():
        return str(folder / value)
    return value


def _resolve_judge(model: Any, folder: Path) -> Any:
    """Make the path of a judge's script relative to a folder; return any other judge unchanged."""
    if isinstance(model, dict) and isinstance(model.get("name"), str):
        return {**model, "name": _resolve_judge(model["name"], folder)}
    script = script_of(model) if isinstance(model, str) else None
    return model if script is None else f"{SCRIPTED}{folder / script}"


def criterion_entries(*values: Any) -> list[str]:
    """Return criteria, as people write them, as entries of a configuration. Raises ConfigError."""
    entries: list[str] = []
    try:
        for value in values:
            entries += list(to_entries(value)) or ["none"]
        refuse_none(entries)
        return [] if entries == ["none"] else entries
    except ValueError as error:
        raise ConfigError(f"{option('criteria')}: {error}") from None
