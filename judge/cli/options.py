"""The options that commands share, and how what was given becomes a plan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from judge.config import Plan


def option(help: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, show_default=False)


Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA|RUN.YAML", help="A data file, a folder or 'PATTERN' of many, or a plan that names it."
    ),
]
Criteria = Annotated[
    list[str] | None, option("Built-in names or .jinja files; none for metrics alone.", metavar="NAME,...")
]
Metrics = Annotated[
    list[str] | None,
    option(
        "judge metrics list names them; none for none (default: rouge,bleu,chrf where references are).",
        metavar="NAME,...",
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
Language = Annotated[str | None, option("Language of the prompts: en, ja, ko, zh (default: the data's).")]
Weighting = Annotated[
    str | None, option("How scores are made: auto (the best there is), logprobs, decisions, samples, single.")
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
    str | None, option("score, score_then_reason or reason_then_score (default: the criterion's).", metavar="KIND")
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
Format = Annotated[str, typer.Option(help="console, markdown, html, json, csv, latex or svg.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no report on the console.")]
CacheFolder = Annotated[
    str | None,
    option(
        "Cache folder, or redis://HOST:PORT/0 that machines share (default: $JUDGE_CACHE, else ~/.cache/judge).",
        "--cache",
        metavar="DIR|ADDRESS",
    ),
]

_OURS = ("data", "no_cache", "format", "quiet", "precision", "backend", "fit", "item", "system", "similarity", "level")
"""The parameters that are the command line's own, not the plan's."""
_SHORT = {"score": ("bertscore", ("precision", "backend", "fit")), "qags": ("qags", ("backend", "similarity"))}
"""By command the metric of which these options are short for `--set METRIC.NAME=VALUE`."""


def planned(ctx: typer.Context, data: Path, make: Callable[..., Plan]) -> tuple[Plan, Path]:
    """The plan of a command's options, and the folder of its results."""
    from judge import samples

    given = read({name: value for name, value in ctx.params.items() if name not in _OURS})
    if ctx.params["no_cache"]:
        given["cache"] = False
    metric, names = _SHORT.get(str(ctx.command.name), ("", ()))
    if metric:
        given["criteria"] = []
    if own := {name: value for name in names if (value := ctx.params.get(name)) is not None}:
        given["set"] = {**given.get("set", {}), metric: own | given.get("set", {}).get(metric, {})}
    if metric == "qags":
        given["metrics"] = [metric]
    is_plan = data.suffix in (".yaml", ".yml")
    made = make(data if is_plan else None, given if is_plan else {"data": data, **given})
    folder = made.out or Path("runs") / f"{samples.title(made.data or data)}-{datetime.now():%Y%m%d-%H%M%S}"
    return made.model_copy(update={"out": folder}), folder


def read(options: dict[str, Any]) -> dict[str, Any]:
    """What was given; lists and mappings read, whether given at once with commas or one by one."""
    from judge.config import pairs, settings, split

    readers = {"criteria": split, "metrics": split, "systems": split, "map": pairs}
    given = {name.rstrip("_"): value for name, value in options.items() if value not in (None, (), [])}
    return {
        name: settings(value) if name == "set" else readers[name](",".join(value)) if name in readers else value
        for name, value in given.items()
    }
