"""Systems that are a prompt and a model write their outputs: for a run, or alone (`judge run
--generate-only`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from judge import criteria
from judge.cache import Cache
from judge.config import RunConfig
from judge.core.errors import (
    ConfigError,
    CriterionError,
    DataError,
    ProviderError,
    Reached,
    StorageError,
)
from judge.core.files import claim_folder, store
from judge.core.format import listed, plural, to_json
from judge.core.generated_system import GeneratedSystem
from judge.core.messages import option
from judge.core.records import UNWRITTEN, Failure, Sample
from judge.core.request_options import Judge
from judge.criteria.render import PromptFile
from judge.data import samples
from judge.data.rows import RawRow, rows
from judge.execution.budget import BudgetLedger
from judge.execution.engines import create_engine
from judge.execution.layers.cached import ReplyStore
from judge.execution.progress import GENERATING, JudgeProgress, Progress
from judge.execution.questions import MetricReply, QuestionClient, read_reply, to_request
from judge.execution.token_estimates import estimate_tokens
from judge.metrics.base import ModelError, ModelQuestion
from judge.providers import Provider
from judge.providers.recording import Recorder
from judge.results.run_info import SystemInfo
from judge.run.cost_estimate import judge_forecast
from judge.run.judge_models import open_judge, open_judges
from judge.run.model_clients import SharedLimits, deadline_of, open_client
from judge.run.pipeline import add_resume_note
from judge.run.preparation import PreparedRun, check_against, check_output_dir, engine_context
from judge.run.reply_cache import open_reply_cache
from judge.run.request_estimates import JudgeEstimate, JudgeForecast, LineEstimate
from judge.run.run_metadata import model_use
from judge.scoring.strategies import SamplingOptions

if TYPE_CHECKING:
    import pandas as pd

_OF_THE_JUDGE: dict[str, Any] = {
    "system_message": None,
    "reasoning_effort": None,
    "extra_body": {},
    "temperature": None,
}
"""What a run says to its judge and not to the systems that write."""
_OF_OUTPUT_FILES = frozenset({"item", "system", "output", "generation"})
"""The fields that are read from a file of outputs."""
FILE = "outputs.jsonl"
"""The outputs in the folder of a run."""
OPTIONS = (
    "map",
    "where",
    "limit",
    "key_env",
    "replay",
    "record",
    "budget",
    "deadline",
    "rpm",
    "tpm",
    "max_concurrency",
    "timeout",
    "retries",
    "cache",
    "retry_failed",
    "engine",
    "ray_workers",
)
"""The options of a run that apply if nothing is judged."""


@dataclass(frozen=True, slots=True, repr=False)
class Outputs:
    """What the systems wrote: a sample for each text, and a failure for each text that was not
    written.

    `info` describes each system: prompt, model, settings, and the requests and tokens that it used.
    """

    samples: tuple[Sample, ...]
    failures: tuple[Failure, ...] = ()
    info: Mapping[str, SystemInfo] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        failed = ""
        if self.failures:
            failed = f", {plural(len(self.failures), 'failure')}"
        return f"<Outputs: {plural(len(self.samples), 'text')}{failed}>"

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with one row per output: item, system, output and the data's columns.

        It is data for `judge.evaluate`.
        """
        import pandas as pd

        return pd.DataFrame(self._rows())

    def lines(self) -> str:
        """Return the outputs as JSON lines that `judge run` reads."""
        lines = [json.dumps(to_json(row), ensure_ascii=False) for row in self._rows()]
        return "".join(f"{line}\n" for line in lines)

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for sample in self.samples:
            fields: dict[str, Any] = {
                "item": sample.source_item,
                "system": sample.system,
                "output": sample.output,
                **sample.extra,
            }
            if sample.cluster:
                # `2` of the item `doc-1 (2)`
                prefix = f"{sample.cluster} ("
                number = sample.item.removeprefix(prefix).removesuffix(")")
                fields["generation"] = number
            if sample.source:
                fields["source"] = sample.source
            if sample.references:
                fields["references"] = list(sample.references)
            rows.append(fields)
        return rows

    def save(self, path: str | Path) -> None:
        """Write the outputs as JSON lines into a file. Raises StorageError."""
        path = Path(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.lines(), encoding="utf-8")
        except OSError as error:
            raise StorageError(f"{path}: cannot be written: {error.strerror or error}") from error


async def generate(
    config: RunConfig,
    data: Any = None,
    *,
    progress: Progress | None = None,
    ledger: BudgetLedger | None = None,
    display: Display = lambda _: nullcontext(),
) -> Outputs:
    """Generate or read the output of every system of `config.systems` for each item of the data.

    A system without a file generates its outputs. Engine, cache, budget, retries, recording and
    replay work as in a run, so a restart never pays twice for a reply. A text that could not be
    written is a failure. Raises JudgeError, and CancelledError when it is interrupted.
    """
    if not isinstance(config.systems, dict):
        raise ConfigError(
            "systems: name each system's prompt and model; run.yaml has them under systems"
        )
    source = config.data if data is None else data
    items = _items(config, source)
    if config.out is not None:
        check_output_dir(config.out)
        claim_folder(config.out)
    # A writer renders all its prompts, before anything is paid.
    writers: dict[str, _Writer] = {}
    texts_by_system: dict[str, _TextsByItem] = {}
    info: dict[str, SystemInfo] = {}
    for name, spec in config.systems.items():
        if isinstance(spec, GeneratedSystem):
            writers[name] = _Writer(name, spec, config, items)
    for name, spec in config.systems.items():
        if not isinstance(spec, GeneratedSystem):
            outputs = _from_file(name, spec, items, config)
            texts_by_system[name] = list(outputs)
            info[name] = SystemInfo(outputs=spec.name)
    notes: list[str] = []
    with ExitStack() as stack:
        cache = open_reply_cache(config, notes)
        stack.callback(cache.close)
        recording = None
        if config.record is not None and writers:
            recording = stack.enter_context(Recorder(config.record))
        ledger = ledger if ledger is not None else BudgetLedger(config.budget)
        limits = SharedLimits(ledger, deadline_of(config))
        replies = ReplyStore(cache, recording)
        stack.callback(replies.flush)
        tools = _Tools(config, replies, limits)
        progress = progress if progress is not None else Progress()
        texts_by_system |= await _write_all(writers, tools, progress, display)
    for name, writer in writers.items():
        info[name] = writer.info
        remarks = writer.counts.remarks
        notes += [f"{name}: {remark}" for remark in remarks]
    rows: list[Sample | Failure] = []
    for position in range(len(items)):
        for name in config.systems:
            rows += texts_by_system[name][position]
    written = [row for row in rows if isinstance(row, Sample)]
    failures = [row for row in rows if isinstance(row, Failure)]
    # In the order of the configuration, which wrote and read systems do not keep.
    info = {name: info[name] for name in config.systems}
    return Outputs(tuple(written), tuple(failures), info, tuple(notes))


_TextsByItem = list[list[Sample | Failure]]
"""For each item, in the order of the data, its texts or failures."""


Display = Callable[[Mapping[str, Provider]], AbstractContextManager[None]]
"""Shows the progress of these models while the context is open."""


@dataclass(frozen=True, slots=True)
class _Tools:
    """What all systems of a run share."""

    config: RunConfig
    replies: ReplyStore
    limits: SharedLimits


class _Writer:
    """A system that writes: its prompts for the items, and the model that answers them."""

    def __init__(
        self,
        name: str,
        spec: GeneratedSystem,
        config: RunConfig,
        items: Sequence[Sample],
        *,
        sends: bool = True,
    ) -> None:
        self._name = name
        self._spec = spec
        self._prompt = PromptFile.read(spec.prompt)
        self._mapping = config.map
        self._all_items = items
        self._without_prompt, prompts = self._render(items)
        without_prompt = self._without_prompt
        self._items = [item for item in items if item.item not in without_prompt]
        temperature = spec.temperature
        if temperature is None:
            # At 0, all generations of an item would be alike.
            temperature = 0.0 if spec.generations == 1 else 1.0
        self._questions = []
        for prompt in prompts:
            for draw in range(spec.generations):
                question = ModelQuestion(prompt, spec.max_tokens, str, temperature, draw)
                self._questions.append(question)
        writer_config = config.model_copy(update=_OF_THE_JUDGE)
        model: Judge | Provider = spec.requested_model
        try:
            if not sends and not config.replay:
                model = open_judge(writer_config, spec.requested_model, sends=False)
            (self._model,) = open_judges(writer_config, [model]).values()
        except ConfigError as error:
            raise ConfigError(f"systems: {name}: {error}") from error
        self.counts = JudgeProgress("output", total=len(self._questions))

    async def write(self, tools: _Tools) -> _TextsByItem:
        """Return for each item its texts or failures."""
        counts = self.counts
        client = open_client(
            tools.config,
            self._model.plan,
            self.provider,
            counts=counts,
            store=tools.replies,
            limits=tools.limits,
        )

        def count_done(done: int) -> None:
            counts.done = done

        async with client as model:
            questions = QuestionClient(
                model.client,
                self.provider,
                counts,
                self._settings,
                retry_failed=tools.config.retry_failed,
                gathers=model.gathers,
            )
            replies = await questions.ask(self._questions, count_done)
        counts.failed = sum(isinstance(reply, ModelError) for reply in replies)
        generations = self._spec.generations
        texts_by_item: dict[str, list[Sample | Failure]] = {}
        for position, item in enumerate(self._items):
            first = position * generations
            replies_to_item = replies[first : first + generations]
            texts: list[Sample | Failure] = []
            for number, reply in enumerate(replies_to_item, 1):
                text = self._text(item, number, reply)
                texts.append(text)
            texts_by_item[item.item] = texts
        return [texts_by_item.get(item.item) or self._unwritten(item) for item in self._all_items]

    def _text(self, item: Sample, number: int, reply: MetricReply) -> Sample | Failure:
        """Return the text that was written for an item, or why there is none."""
        generation = _generation(item, number, self._spec.generations)
        if isinstance(reply, str):
            return replace(generation, system=self._name, output=reply)
        # The message names options of the judge. A system has options of the same meaning.
        own_limit = f"max_tokens of the system {self._name}"
        message = reply.message.replace(option("max_tokens"), own_limit)
        message = message.replace(option("reasoning_effort", "none"), "reasoning_effort: none")
        return Failure(generation.item, self._name, "", UNWRITTEN, reply.error, message)

    def _unwritten(self, item: Sample) -> list[Sample | Failure]:
        """Return the failures of an item that the prompt cannot be made for."""
        message = str(self._without_prompt[item.item])
        error = CriterionError.__name__
        generations = self._spec.generations
        failures: list[Sample | Failure] = []
        for number in range(1, generations + 1):
            name = _generation(item, number, generations).item
            failure = Failure(name, self._name, "", UNWRITTEN, error, message)
            failures.append(failure)
        return failures

    def _render(self, items: Sequence[Sample]) -> tuple[dict[str, ConfigError], list[str]]:
        """Return why items have no prompt, by their names, and the prompts of the others.

        Raises ConfigError if no item has one.
        """
        without: dict[str, ConfigError] = {}
        prompts: list[str] = []
        for item in items:
            try:
                prompts.append(self._prompt.render(item, self._mapping))
            except ConfigError as error:
                without[item.item] = error
        if without and not prompts:
            raise next(iter(without.values()))
        return without, prompts

    def plan(self, config: RunConfig, cache: Cache) -> tuple[list[Sample], JudgeForecast]:
        """Return outputs that are stored or assumed, and what writing the others takes."""
        requests = [to_request(each, self.provider, self._settings) for each in self._questions]
        keys = [request.key() for request in requests]
        stored = cache.get_many(keys) if self.provider.endpoint else {}
        keyed = zip(self._questions, keys, strict=True)
        new = [question for question, key in keyed if key not in stored]
        tokens_read = sum(estimate_tokens(question.prompt) for question in new)
        tokens_written = len(new) * self._spec.max_tokens
        line = LineEstimate(
            "outputs",
            judgments=len(keys),
            cached=len(keys) - len(new),
            requests=len(new),
            read=float(tokens_read),
            written=float(tokens_written),
        )
        estimate = JudgeEstimate(
            self._name,
            [line],
            ("single",),
            draws=0,
            each=1,
            exact=True,
            drawn=1,
            size=1,
            unit="output",
        )
        generations = self._spec.generations
        outputs = []
        for position, (key, question) in enumerate(zip(keys, self._questions, strict=True)):
            item = self._items[position // generations]
            reply: MetricReply = self._assumed_text(item, question, position)
            if key in stored:
                reply = read_reply(question, stored[key])
            if isinstance(reply, str):
                generation = _generation(item, position % generations + 1, generations)
                outputs.append(replace(generation, system=self._name, output=reply))
        forecast = judge_forecast(self._model.plan, self.provider, estimate)
        return outputs, forecast

    def _assumed_text(self, item: Sample, question: ModelQuestion, position: int) -> str:
        """Return a text as long as the source, or as `max_tokens` allow."""
        source = item.source or question.prompt
        source_tokens = max(1, estimate_tokens(source))
        share = min(1.0, question.max_tokens / source_tokens)
        length = int(len(source) * share)
        # Each ends differently, because equal texts would be judged once.
        return f"{source[:length]}\n{self._name} {position}"

    @property
    def provider(self) -> Provider:
        return self._model.provider

    @property
    def _settings(self) -> SamplingOptions:
        return replace(self._model.settings, max_tokens=None)

    @property
    def info(self) -> SystemInfo:
        """The system for run.json."""
        use = model_use(self.provider, self.counts)
        settings = self._spec.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        settings.pop("prompt", None)
        return SystemInfo(
            served_by=use.served_by,
            usage=use.usage,
            requests=use.requests,
            cost=use.cost,
            prompt=self._prompt.text,
            settings=settings,
        )


async def _write_all(
    writers: Mapping[str, _Writer], tools: _Tools, progress: Progress, display: Display
) -> dict[str, _TextsByItem]:
    """Generate system by system; in batches, which take hours, all at once."""
    config = tools.config
    for writer in writers.values():
        # An engine that cannot run is an error before anything is paid.
        create_engine(config.engine, engine_context(config, writer.provider))
    progress.judges = {name: writer.counts for name, writer in writers.items()}
    progress.stage = GENERATING
    at_once = len(writers) if config.engine == "batch" else 1
    turns = asyncio.Semaphore(max(1, at_once))

    async def write(writer: _Writer) -> _TextsByItem:
        async with turns:
            return await writer.write(tools)

    try:
        with display({name: writer.provider for name, writer in writers.items()}):
            async with asyncio.TaskGroup() as group:
                tasks = {name: group.create_task(write(writer)) for name, writer in writers.items()}
    except BaseExceptionGroup as errors:
        error = errors.exceptions[0]
        # Before the first output, only a run that reached its limit can be resumed.
        can_resume = bool(progress.done) or isinstance(error, Reached)
        if can_resume and isinstance(error, Reached | ProviderError | StorageError):
            outputs = f"{progress.done:,} of {progress.total:,} outputs are written."
            add_resume_note(error, outputs, config)
        raise error from None
    progress.stage = "judging"
    return {name: task.result() for name, task in tasks.items()}


class DataWithOutputs(NamedTuple):
    """A configuration and data that can be judged, and the outputs that were written, if any."""

    config: RunConfig
    data: Any
    outputs: Outputs | None


class PlannedOutputs(NamedTuple):
    """A configuration and data to estimate the judging by, and what writing the outputs takes."""

    config: RunConfig
    data: Any
    forecasts: list[JudgeForecast]


async def with_outputs(
    config: RunConfig,
    data: Any,
    progress: Progress,
    ledger: BudgetLedger,
    display: Display = lambda _: nullcontext(),
    *,
    check: Callable[[RunConfig, Any], object] = lambda config, data: None,
) -> DataWithOutputs:
    """Return a configuration and data that have outputs, written first if systems generate them.

    `check` prepares the run on assumed outputs, so that its mistakes are reported before anything
    is paid. Raises JudgeError.
    """
    if not isinstance(config.systems, dict):
        return DataWithOutputs(config, data, None)
    if isinstance(data, Iterator):
        # It is read twice.
        data = list(data)
    planned = plan_outputs(config, data)
    unsaved = planned.config.model_copy(update={"out": None, "record": None, "retry_failed": False})
    check(unsaved, planned.data)
    outputs = await generate(config, data, progress=progress, ledger=ledger, display=display)
    if not outputs.samples:
        first = outputs.failures[0]
        raise DataError(
            f"no system wrote a text; the first is {first.system}, item {first.item}: "
            f"{first.message}"
        )
    return DataWithOutputs(_without_systems(config), outputs.samples, outputs)


def require_criteria(config: RunConfig) -> None:
    """Raise ConfigError if the criteria are the default ones, which the unwritten outputs would
    decide.
    """
    systems: Iterable[Any] = ()
    if isinstance(config.systems, dict):
        systems = config.systems.values()
    if config.criteria is None and any(isinstance(spec, GeneratedSystem) for spec in systems):
        raise criteria.no_default_of_unwritten()


OUTPUTS_NOTE = (
    "The outputs are not written yet: each is counted with its max_tokens, and judged as long as "
    "that or as its source."
)


def plan_outputs(config: RunConfig, data: Any) -> PlannedOutputs:
    """Return stored or assumed outputs, and what writing the others takes.

    Sends nothing. Outputs that the cache has are used. Any other is assumed to be as long as its
    source, or as `max_tokens` allow.
    """
    if not isinstance(config.systems, dict):
        return PlannedOutputs(config, data, [])
    check_against(config, list(config.systems))
    items = _items(config, config.data if data is None else data)
    planned: list[Sample] = []
    forecasts = []
    notes: list[str] = []
    cache = open_reply_cache(config, notes)
    try:
        for name, spec in config.systems.items():
            if isinstance(spec, GeneratedSystem):
                writer = _Writer(name, spec, config, items, sends=False)
                outputs, forecast = writer.plan(config, cache)
                forecasts.append(forecast)
                planned += outputs
            else:
                for rows_of_item in _from_file(name, spec, items, config):
                    planned += [row for row in rows_of_item if isinstance(row, Sample)]
    finally:
        cache.close()
    return PlannedOutputs(_without_systems(config), planned, forecasts)


def _without_systems(config: RunConfig) -> RunConfig:
    columns = config.map.items()
    mapping = {name: column for name, column in columns if name.startswith("rating")}
    return config.model_copy(update={"systems": (), "map": mapping, "limit": None})


def hand_over(outputs: Outputs | None, prepared: PreparedRun) -> PreparedRun:
    """Return the prepared run with its outputs' failures, notes and information.

    Write the outputs into its folder.
    """
    if outputs is None:
        return prepared
    if prepared.config.out is not None:
        content = outputs.lines().encode()
        store(prepared.config.out, {FILE: content})
    notes = (*prepared.notes, *outputs.notes)
    return replace(
        prepared,
        unwritten=outputs.failures,
        generated=outputs.info,
        notes=notes,
    )


def _items(config: RunConfig, data: Any) -> list[Sample]:
    """Return an item per row of the data; none has an output yet."""
    if data is None:
        raise ConfigError("no data: name a file with the texts that the prompts read")
    not_mapped = ("output", "system")
    mapping = {name: column for name, column in config.map.items() if name not in not_mapped}
    without_outputs = map(_without_output, rows(data))
    items = samples.load(without_outputs, mapping=mapping, where=config.where)
    return items[: config.limit]


def _without_output(row: Sample | RawRow) -> Sample | RawRow:
    if isinstance(row, Sample):
        return replace(row, system="", output="")
    cells = {name: cell for name, cell in row.cells.items() if name != "system"}
    return row._replace(cells={**cells, "output": ""})


def _generation(item: Sample, number: int, generations: int) -> Sample:
    """Return the item of one of several generations: `doc-1 (2)`."""
    if generations == 1:
        return item
    name = f"{item.item} ({number})"
    return replace(item, item=name, cluster=item.item)


def _from_file(
    name: str, path: Path, items: Sequence[Sample], config: RunConfig
) -> Iterator[list[Sample | Failure]]:
    """Yield for each item its outputs in a file of one system, or a failure."""
    # The file needs no column that only the prompts of other systems read.
    columns = config.map.items()
    mapping = {field: column for field, column in columns if field in _OF_OUTPUT_FILES}
    loaded = samples.load(path, mapping=mapping)
    names = [sample.system for sample in loaded]
    systems = list(dict.fromkeys(names))
    if len(systems) > 1:
        raise DataError(
            f"{path}: has the outputs of {listed(systems[:5])}; name a file for each system"
        )
    outputs_by_item: dict[str, list[Sample]] = {}
    for sample in loaded:
        outputs_by_item.setdefault(sample.source_item, []).append(sample)
    for item in items:
        outputs: list[Sample | Failure] = []
        for row in outputs_by_item.get(item.item, ()):
            text = replace(item, item=row.item, cluster=row.cluster, system=name, output=row.output)
            outputs.append(text)
        if not outputs:
            message = f"{path.name} has no output for this item"
            failure = Failure(item.item, name, "", UNWRITTEN, "NoOutput", message)
            outputs.append(failure)
        yield outputs
    if not outputs_by_item.keys() & {item.item for item in items}:
        first_items = list(outputs_by_item)[:3]
        listed_items = ", ".join(map(repr, first_items))
        raise DataError(f"{path}: has no item of the data; its items are {listed_items}")
