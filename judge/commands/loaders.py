"""Load criteria, samples and results, render prompts, and draft a criterion's evaluation steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge import criteria, text
from judge.cache import NoCache
from judge.commands.public import public_api
from judge.config import RunConfig
from judge.core.criterion_entry import is_file
from judge.core.errors import ConfigError, CriterionError, ParseError, StorageError
from judge.core.format import first_names
from judge.core.messages import command, option
from judge.core.records import Criterion, Message, Sample
from judge.core.run_sync import run_sync
from judge.criteria.render import render_drafting_prompt
from judge.data import samples
from judge.execution.layers.cached import ReplyStore
from judge.execution.layers.retried import Policy
from judge.execution.progress import JudgeProgress
from judge.execution.rate_limit import RateLimiter
from judge.execution.reply_client import SendingOptions, sending_layers
from judge.providers import require_text
from judge.results.loading import load
from judge.results.result import Result
from judge.run.judge_models import open_judge, sampling_options
from judge.scoring import parse
from judge.scoring.multi_criteria import make_renderers

if TYPE_CHECKING:
    import pandas as pd

    Row = Sample | Mapping[str, Any] | pd.Series[Any]

_TOKEN_LIMIT = 1024  # of a reply with evaluation steps
_MAX_FOLDERS = 10  # in a message

load_criterion = public_api()(criteria.load)


@public_api()
def load_samples(
    data: str | PathLike[str] | pd.DataFrame | Iterable[Mapping[str, Any] | Sample],
    *,
    map: Mapping[str, str | Sequence[str]] = {},
    systems: Sequence[str] = (),
    where: samples.Values | None = None,
) -> list[Sample]:
    """Return the samples of a file (.jsonl, .ndjson, .json, .csv, .tsv, .xlsx, .parquet), a
    DataFrame or an iterable.

    A folder or a pattern, such as "shards/*.parquet", names many files. `map` names the data's
    columns: {"output": "summary", "rating.relevance": ["rater_a", "rater_b"]}. `systems` are
    columns that each hold one system's outputs; {"rating.relevance": "{system}_anna"} maps a column
    of each. `where` keeps rows with one of these values per column, compared as text: {"lang":
    ["ja"]}.

    Without a column `system`, there is one system called `system`; without `item` as well, each row
    is an item. `human` is a mapping of ratings, or a single one (then called `overall`); columns
    such as `rating.coherence` are ratings, too. A rating is a number, or a list with one per rater,
    null if a rater gave none. A column `generation` numbers several outputs of a system for an
    item. All other columns are in `extra`. Samples pass through.

    Raises DataError, with file and line, for invalid data and for two rows of one item and system.
    """
    return samples.load(data, mapping=map, systems=systems, where=where)


@public_api()
def load_result(folder: str | Path) -> Result:
    """Return the result in the folder of a run or a ranking.

    Raises StorageError if there is none, if a file is damaged, or if the run has another format.
    """
    folder = Path(folder)
    inside = sorted(path.parent for path in folder.glob("*/run.json"))
    if inside and not (folder / "run.json").exists():
        runs = first_names(map(str, inside), _MAX_FOLDERS)
        problem = "a folder of runs, not a run"
        raise StorageError(f"{folder}: {problem}; name one of them: {runs}")
    try:
        return load(folder)
    except StorageError:
        # `load` has completed what a killed process left behind.
        if (folder / "run.json").exists():
            raise
        run_command = command("run")
        raise StorageError(
            f"{folder}: not the folder of a run (no run.json); name a folder that {run_command} "
            f"wrote into with {option('out')}"
        ) from None


@public_api()
def render(
    criterion: str | Path | Mapping[str, Any] | Criterion,
    sample: Row,
    opponent: Row | str | None = None,
    *,
    map: Mapping[str, str] = {},
    language: str | None = None,
) -> str:
    """Return the prompt that a criterion makes of a sample, or of a row of your data. Sends
    nothing.

    A criterion that compares two texts also needs the `opponent`: its text, sample or row. `map`
    names the columns of rows, as in `judge.evaluate`. `language` is the prompt's language, by
    default the language of the text.

    Raises JudgeError.
    """
    first_text = _to_sample(sample, map)
    own_texts = [first_text.output, first_text.source or ""]
    prompt_language = language or text.detect_language(own_texts)
    if isinstance(criterion, Criterion):
        finalized = criteria.finalize(criterion, pairwise=opponent is not None)
        loaded = criteria.in_language(finalized, prompt_language)
    else:
        pairwise = None if opponent is None else True
        loaded = criteria.load(criterion, language=prompt_language, pairwise=pairwise)
    if loaded.pairwise and opponent is None:
        advice = "give the other one as opponent"
        raise ConfigError(f"{loaded.name} compares two texts: {advice}")
    if opponent is not None and not loaded.pairwise:
        raise ConfigError(f"{loaded.name} judges one text: leave out the opponent")
    texts = [first_text]
    if isinstance(opponent, str):
        texts.append(replace(first_text, output=opponent, system="opponent"))
    elif opponent is not None:
        texts.append(_to_sample(opponent, map))
    criteria.check_samples(loaded, texts)
    prompt = make_renderers([loaded])[loaded.name].render(*texts)
    return "\n\n".join(message["content"] for message in prompt.messages)


def _to_sample(row: Row, mapping: Mapping[str, str]) -> Sample:
    if isinstance(row, Sample):
        return row
    if hasattr(row, "to_dict") and not isinstance(row, Mapping):  # a row of a DataFrame
        row = {str(column_name): value for column_name, value in row.to_dict().items()}
    if not isinstance(row, Mapping):
        raise ConfigError(
            "a prompt is made of a Sample or a row (a dict, or a row of a DataFrame: "
            f"frame.iloc[0]), not of a {type(row).__name__}; {option('map')} names the columns"
        )
    (sample,) = samples.load([row], mapping=mapping)
    return sample


def draft_steps(
    path: str | Path,
    config: RunConfig,
    *,
    overwrite: bool = False,
) -> tuple[str, ...]:
    """Have the judge draft evaluation steps, and write them into the header of a criterion's file.

    The method is auto-CoT: Liu et al. 2023, G-Eval, section 2.2. Existing steps are replaced only
    with `overwrite`; the rest of the file never changes. Raises CriterionError, ConfigError,
    ProviderError, and ParseError if the reply is no list of steps. The file is then unchanged.
    """
    if not is_file(str(path)):
        raise CriterionError(
            f"{path}: steps can be written only into your own file; make a copy: judge criteria "
            f"show {path} > {path}.jinja"
        )
    language = config.language or "en"
    criterion = criteria.load(str(path), language=language, pairwise=None)
    replaceable = ("steps",) if overwrite else ()
    # If the file cannot take steps, this raises before the request is paid for.
    criteria.with_lists(path, {"steps": ["First.", "Second."]}, replaceable)
    if len(config.model) != 1:
        raise ConfigError("name the one model that drafts the steps: --model NAME")
    prompt = render_drafting_prompt(criterion, criteria.drafting(criterion))
    steps = run_sync(lambda: _request_steps(prompt.messages, config))
    criteria.write_lists(path, {"steps": steps}, replaceable)
    return steps


async def _request_steps(
    messages: tuple[Message, ...], config: RunConfig
) -> tuple[str, ...]:
    provider = open_judge(config, config.model[0])
    require_text(provider, f"--model {config.model[0].name}")
    settings = sampling_options(config.of_judge(config.model[0]))
    params = {
        "temperature": settings.temperature or 0.0,
        "max_tokens": settings.max_tokens or _TOKEN_LIMIT,
    }
    request = settings.request(
        provider.model, messages, params, endpoint=provider.endpoint
    )
    options = SendingOptions(RateLimiter(1), Policy(attempts=config.retries + 1))
    try:
        store = ReplyStore(NoCache())
        client = sending_layers(provider.complete, options, store, JudgeProgress())
        response = await client.ask(request)
    finally:
        await provider.aclose()
    (choice,) = response.choices
    try:
        return criteria.read_steps(parse.reply_text(choice))
    except ParseError as error:
        message = f"{error}; the reply was:\n{choice.text}"
        raise ParseError(message, choice.text) from error
