"""The options that commands share, and how their values become a plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from judge.cli.terminal import PLANS, completed, require_existing

if TYPE_CHECKING:
    from judge.config import RunConfig

Command = TypeVar("Command", bound=Callable[..., None])


def option(
    help: str, *names: str, metavar: str | None = None, known: Callable[[], Iterable[str]] | Sequence[str] | None = None
) -> Any:
    """An option whose help says its default; a shell completes those `known` for it."""
    complete = None if known is None else completed(known if callable(known) else lambda: known)
    return typer.Option(*names, help=help, metavar=metavar, show_default=False, autocompletion=complete)


def format_option(*formats: str, more: str = "") -> Any:
    """The option `--format` of a command whose result has these formats, the first of them the usual one."""
    *others, last = formats
    text = f"{', '.join(others)} or {last}{more} (default: {formats[0]})."
    return option(text, metavar="FORMAT", known=formats)


def names_of_criteria() -> list[str]:
    """The built-in criteria that a shell offers."""
    from judge.criteria.loading import builtin_files

    return sorted({path.stem for path in builtin_files("en").values()})


def names_of_metrics() -> list[str]:
    """The metrics that a shell offers."""
    from judge.core import plugins

    return plugins.names("metrics")


_LANGUAGES = ("en", "ja", "ko", "zh")
_WEIGHTINGS = ("auto", "logprobs", "decisions", "samples", "single")
_REPLIES = ("score", "score_then_reason", "reason_then_score")
_ENGINES = ("local", "batch", "ray")


Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA|RUN.YAML", help="A data file, a folder or 'PATTERN' of many, or a plan that names it."
    ),
]
Criteria = Annotated[
    list[str] | None,
    option("Built-in names or .jinja files; none for metrics alone.", metavar="NAME,...", known=names_of_criteria),
]
Metrics = Annotated[
    list[str] | None,
    option(
        "judge metrics list names them; none for none (default: rouge,bleu,chrf where references are).",
        metavar="NAME,...",
        known=names_of_metrics,
    ),
]
Set = Annotated[
    list[str] | None,
    option("An option of a metric, e.g. rouge.stem=false; repeatable.", "--set", metavar="METRIC.OPTION=VALUE"),
]
Workers = Annotated[int | None, option("Processes that measure (default: 1).", metavar="N")]
Map = Annotated[
    list[str] | None,
    option(
        "The columns that hold item, system, output, source, references, human.", "--map", metavar="FIELD=COLUMN,..."
    ),
]
Systems = Annotated[
    list[str] | None, option("Wide data: the columns that hold the systems' outputs.", metavar="COLUMN,...")
]
Where = Annotated[
    list[str] | None,
    option("Only the rows whose column has this value; named twice, either.", metavar="COLUMN=VALUE,..."),
]
Language = Annotated[
    str | None,
    option("Language of the prompts: en, ja, ko, zh (default: the data's).", metavar="LANGUAGE", known=_LANGUAGES),
]
Weighting = Annotated[
    str | None,
    option(
        "How scores are made: auto (the best there is), logprobs, decisions, samples, single.",
        metavar="WAY",
        known=_WEIGHTINGS,
    ),
]
Model = Annotated[
    list[str] | None,
    option(
        "The judge: gpt-5.4-mini, anthropic/..., ollama/..., local/FOLDER (docs/models.md); several are a panel; "
        "heuristic for a baseline offline.",
        metavar="[VENDOR/]NAME",
    ),
]
BaseUrl = Annotated[str | None, option("Any OpenAI-compatible server, ending in /v1.", metavar="URL")]
KeyEnv = Annotated[
    str | None, option("Variable with the key (default: OPENAI_API_KEY, or the vendor's).", metavar="NAME")
]
Draws = Annotated[int | None, option("Replies drawn for samples (default: 20).", metavar="N")]
MinMass = Annotated[float | None, option("Least probability on the scale to trust (default: 0.5).", metavar="P")]
Reply = Annotated[
    str | None,
    option("score, score_then_reason or reason_then_score (default: the criterion's).", metavar="KIND", known=_REPLIES),
]
Structured = Annotated[
    bool | None, typer.Option("--structured", help="Ask for replies as JSON objects (response_format).")
]
Temperature = Annotated[float | None, option("Sampling temperature (default: 0, for samples 1).", metavar="T")]
MaxTokens = Annotated[int | None, option("Longest reply (default: by reply kind).", metavar="N")]
MaxConcurrency = Annotated[int | None, option("Most requests in flight (default: 64).", metavar="N")]
Timeout = Annotated[float | None, option("Longest wait for one reply (default: 120).", metavar="SECONDS")]
Retries = Annotated[int | None, option("Tries after a failed one (default: 5).", metavar="N")]
Rpm = Annotated[int | None, option("Most requests a minute (default: as the server says).", metavar="N")]
Tpm = Annotated[int | None, option("Most tokens a minute (default: as the server says).", metavar="N")]
Deadline = Annotated[str | None, option("Stop judging after so long; can be gone on with.", metavar="SECONDS")]
Budget = Annotated[
    str | None,
    option("Stop before more is spent: 5usd, 200000tokens; can be gone on with.", metavar="AMOUNT"),
]
Engine = Annotated[
    str | None,
    option(
        "Where requests run: local (default), batch (half the price, within a day), or ray (workers on a cluster).",
        metavar="NAME",
        known=_ENGINES,
    ),
]
RayWorkers = Annotated[
    int | None, option("Processes that ask, of --engine ray (default: one for each machine or GPU).", metavar="N")
]
RetryFailed = Annotated[
    bool | None, typer.Option("--retry-failed", help="Ask again for what failed in --out's run, and keep the rest.")
]
MergeCriteria = Annotated[
    bool | None, typer.Option("--merge-criteria", help="Ask for all criteria of a text at once: cheaper, with a halo.")
]
Limit = Annotated[int | None, option("Only the first N outputs.", metavar="N")]
Seed = Annotated[int | None, option("Of all that is drawn (default: 0).", metavar="N")]
Replay = Annotated[
    Path | None, option("A recording that answers in the place of the model, offline.", metavar="CALLS.jsonl")
]
Record = Annotated[Path | None, option("Write the replies into a recording, for --replay.", metavar="CALLS.jsonl")]
Calibrate = Annotated[
    bool | None,
    typer.Option("--calibrate", help="Means on people's scale, by the ratings that some of the texts have (PPI++)."),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor keep replies.")]
Out = Annotated[Path | None, option("Folder for the results (default: runs/DATA-TIME).", metavar="DIR")]
Format = Annotated[str, format_option("console", "markdown", "html", "json", "csv", "latex", "svg")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no report on the console.")]
CacheFolder = Annotated[
    str | None,
    option(
        "Cache folder, or redis://HOST:PORT/0 that machines share (default: $JUDGE_CACHE, else ~/.cache/judge).",
        "--cache",
        metavar="DIR|ADDRESS",
    ),
]

JUDGE = {"model": Model, "base_url": BaseUrl, "key_env": KeyEnv}
MEASURES = {"metrics": Metrics, "set_": Set, "workers": Workers}
READING = {"map_": Map, "systems": Systems, "where": Where}
SCORING = {
    "language": Language, "weighting": Weighting, "draws": Draws, "min_mass": MinMass, "reply": Reply,
    "structured": Structured,
}  # fmt: skip
ASKING = {
    "temperature": Temperature, "max_tokens": MaxTokens, "max_concurrency": MaxConcurrency, "timeout": Timeout,
    "retries": Retries,
}  # fmt: skip
PACE = {"rpm": Rpm, "tpm": Tpm, "deadline": Deadline, "budget": Budget}
ENGINE = {"engine": Engine, "ray_workers": RayWorkers}
PAIRS = {
    "orders": Annotated[int | None, option("2: show each pair both ways round (default); 1: one way.", metavar="N")],
    "pairs": Annotated[int | None, option("Compare a sample of N pairs of texts (default: all).", metavar="N")],
}
PART = {"limit": Limit, "seed": Seed}
REPLIES = {"replay": Replay, "record": Record}
KEEPING = {"cache": CacheFolder, "no_cache": NoCache}
RESULTS = {"out": Out, "format": Format, "quiet": Quiet}


def with_options(*groups: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Give a command the options of these groups, in their order, behind the parameters that only it has.

    An option that the function names comes there, with its default; the others come in its `**given`.
    """
    offered = {name: kind for group in groups for name, kind in group.items()}

    def decorate(function: Command) -> Command:
        named = {parameter.name: parameter for parameter in signature(function, eval_str=True).parameters.values()}
        own_parameters = [
            parameter
            for parameter in named.values()
            if parameter.name not in offered and parameter.kind is not Parameter.VAR_KEYWORD
        ]
        # A flag that was not given is False, any other option None.
        defaults = {
            name: named[name].default if name in named else (False if get_args(kind)[0] is bool else None)
            for name, kind in offered.items()
        }
        shared = [
            Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=defaults[name])
            for name, kind in offered.items()
        ]
        function.__signature__ = Signature([*own_parameters, *shared])  # type: ignore[attr-defined]
        function.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own_parameters, *shared)}
        return function

    return decorate


def to_config(data: Path, params: Mapping[str, Any], make: Callable[..., RunConfig]) -> tuple[RunConfig, Path]:
    """The plan of a command's options, and the folder of its results. Raises ConfigError."""
    from judge.data import samples

    require_existing(data)
    options = parse_option(params)
    is_plan = data.suffix in PLANS
    config = make(data if is_plan else None, options if is_plan else {"data": data, **options})
    folder = config.out or Path("runs") / f"{samples.dataset_name(config.data or data)}-{datetime.now():%Y%m%d-%H%M%S}"
    return config.model_copy(update={"out": folder}), folder


def metric_only(metric: str, params: Mapping[str, Any], **short_options: str | None) -> dict[str, Any]:
    """The options of a command without criteria; `short_options` are short for `--set METRIC.NAME=VALUE`."""
    short = [
        f"{metric}.{name}={json.dumps(value, ensure_ascii=False)}"
        for name, value in short_options.items()
        if value is not None
    ]
    return {**params, "criteria": ["none"], "set_": [*short, *(params["set_"] or ())]}


def parse_option(options: Mapping[str, Any]) -> dict[str, Any]:
    """The given options as a plan has them; lists and mappings may come with commas or as repeated options."""
    from judge.config import pairs, settings, split, where_values

    readers = {"criteria": split, "metrics": split, "systems": split, "map": pairs, "where": where_values}
    values = {name.rstrip("_"): value for name, value in options.items() if value not in (None, (), [])}
    if values.pop("no_cache", False):
        values["cache"] = False
    return {
        name: settings(value) if name == "set" else readers[name](",".join(value)) if name in readers else value
        for name, value in values.items()
    }
