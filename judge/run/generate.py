"""Systems that are a prompt and a model write their outputs: for a run, or alone (`judge run --generate-only`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

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
from judge.core.format import listed, to_json
from judge.core.generated_system import GeneratedSystem
from judge.core.messages import option
from judge.core.records import UNWRITTEN, Failure, Sample
from judge.core.request_options import Judge
from judge.criteria.render import PromptFile
from judge.data import samples
from judge.data.rows import rows
from judge.execution.budget import BudgetLedger, estimate_tokens
from judge.execution.engines import create_engine
from judge.execution.layers.cached import ReplyStore
from judge.execution.progress import GENERATING, JudgeProgress, Progress
from judge.execution.questions import MetricReply, QuestionClient, read_reply, to_request
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
from judge.run.request_estimates import CriterionEstimate, JudgeEstimate, JudgeForecast
from judge.run.run_metadata import model_use
from judge.scoring.strategies import SamplingOptions

_OF_THE_JUDGE: dict[str, Any] = {
    "system_message": None,
    "reasoning_effort": None,
    "extra_body": {},
    "temperature": None,
}
"""What a run says to its judge and not to the systems that write."""
FILE = "outputs.jsonl"
"""The outputs in the folder of a run."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """What the systems wrote: a sample per text, and a failure (without a column) per text that could not be written.

    `info` describes each system for run.json: prompt, model, settings, and the requests and tokens that were used.
    """

    samples: tuple[Sample, ...]
    failures: tuple[Failure, ...] = ()
    info: Mapping[str, SystemInfo] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def lines(self) -> str:
        """Return the outputs as JSON lines that `judge run` reads."""
        lines = []
        for sample in self.samples:
            fields = {
                "item": sample.source_item,
                "system": sample.system,
                "output": sample.output,
                **sample.extra,
            }
            if sample.cluster:
                fields |= {
                    "generation": sample.item.removeprefix(f"{sample.cluster} (").removesuffix(")")
                }
            fields |= {"source": sample.source} if sample.source else {}
            fields |= {"references": list(sample.references)} if sample.references else {}
            lines.append(json.dumps(to_json(fields), ensure_ascii=False) + "\n")
        return "".join(lines)

    def save(self, path: Path) -> None:
        """Write the outputs as JSON lines into a file. Raises StorageError."""
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
    """Have every system of `config.systems` write its output for each item of the data, or read it from its file.

    Engine, cache, budget, retries, recording and replay are those of a run: one that is started again pays for nothing
    twice. A text that could not be written is a failure. Raises JudgeError, and CancelledError when it is interrupted.
    """
    if not isinstance(config.systems, dict):
        raise ConfigError(
            "systems: name each system's prompt and model; run.yaml has them under systems"
        )
    items = _items(config, config.data if data is None else data)
    if config.out is not None:
        check_output_dir(config.out)
        claim_folder(config.out)
    writers = {  # all prompts are rendered before anything is paid
        name: _Writer(name, spec, config, items)
        for name, spec in config.systems.items()
        if isinstance(spec, GeneratedSystem)
    }
    made: dict[str, list[list[Sample | Failure]]] = {}  # by item
    info: dict[str, SystemInfo] = {}
    for name, spec in config.systems.items():
        if not isinstance(spec, GeneratedSystem):
            made[name] = list(_from_file(name, spec, items, config))
            info[name] = SystemInfo(outputs=spec.name)
    notes: list[str] = []
    with ExitStack() as closing:
        cache = open_reply_cache(config, notes)
        closing.callback(cache.close)
        recording = None
        if config.record is not None and writers:
            recording = closing.enter_context(Recorder(config.record))
        ledger = ledger if ledger is not None else BudgetLedger(config.budget)
        limits = SharedLimits(ledger, deadline_of(config))
        replies = ReplyStore(cache, recording)
        closing.callback(replies.flush)
        tools = _Tools(config, replies, limits)
        made |= await _write_all(
            writers, tools, progress if progress is not None else Progress(), display
        )
    info |= {name: writer.info for name, writer in writers.items()}
    notes += [
        f"{name}: {remark}" for name, writer in writers.items() for remark in writer.counts.remarks
    ]
    written = [
        text for place in range(len(items)) for name in config.systems for text in made[name][place]
    ]
    return Outputs(
        tuple(row for row in written if isinstance(row, Sample)),
        tuple(row for row in written if isinstance(row, Failure)),
        {name: info[name] for name in config.systems},
        tuple(notes),
    )


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
        self._name, self._spec = name, spec
        self._prompt = PromptFile.read(spec.prompt)
        self._all_items = items
        self._without_prompt, prompts = self._render(items)
        self._items = [item for item in items if item.item not in self._without_prompt]
        usual = 0.0 if spec.generations == 1 else 1.0
        temperature = usual if spec.temperature is None else spec.temperature
        self._questions = [
            ModelQuestion(prompt, spec.max_tokens, str, temperature, draw)
            for prompt in prompts
            for draw in range(spec.generations)
        ]
        try:
            model: Judge | Provider = spec.requested_model
            model = (
                model
                if sends or config.replay
                else open_judge(
                    config.model_copy(update=_OF_THE_JUDGE), spec.requested_model, sends=False
                )
            )
            (self._model,) = open_judges(config.model_copy(update=_OF_THE_JUDGE), [model]).values()
        except ConfigError as error:
            raise ConfigError(f"systems: {name}: {error}") from error
        self.counts = JudgeProgress("output", total=len(self._questions))

    async def write(self, tools: _Tools) -> list[list[Sample | Failure]]:
        """Return for each item its texts or failures."""
        config, counts = tools.config, self.counts
        opened = open_client(
            config,
            self._model.plan,
            self.provider,
            counts=counts,
            store=tools.replies,
            limits=tools.limits,
        )

        def tell(done: int) -> None:
            counts.done = done

        async with opened as model:
            client = QuestionClient(
                model.client,
                self.provider,
                counts,
                self._settings,
                retry_failed=config.retry_failed,
                gathers=model.gathers,
            )
            replies = await client.ask(self._questions, tell)
        counts.failed = sum(isinstance(reply, ModelError) for reply in replies)
        n = self._spec.generations
        written = {
            item.item: [
                self._text(item, number, replies[place * n + number - 1])
                for number in range(1, n + 1)
            ]
            for place, item in enumerate(self._items)
        }
        return [written.get(item.item) or self._unwritten(item) for item in self._all_items]

    def _text(self, item: Sample, number: int, reply: MetricReply) -> Sample | Failure:
        """Return the text that was written for an item, or why there is none."""
        generation = _generation(item, number, self._spec.generations)
        if isinstance(reply, str):
            return replace(generation, system=self._name, output=reply)
        own = f"max_tokens of the system {self._name}"
        message = reply.message.replace(option("max_tokens"), own)
        message = message.replace(option("reasoning_effort", "none"), "reasoning_effort: none")
        return Failure(generation.item, self._name, "", UNWRITTEN, reply.error, message)

    def _unwritten(self, item: Sample) -> list[Sample | Failure]:
        """Return the failures of an item that the prompt cannot be made for."""
        why = str(self._without_prompt[item.item])
        n = self._spec.generations
        return [
            Failure(
                _generation(item, number, n).item,
                self._name,
                "",
                UNWRITTEN,
                CriterionError.__name__,
                why,
            )
            for number in range(1, n + 1)
        ]

    def _render(self, items: Sequence[Sample]) -> tuple[dict[str, ConfigError], list[str]]:
        """Return why items have no prompt, by their names, and the prompts of the others.

        Raises ConfigError if no item has one.
        """
        without: dict[str, ConfigError] = {}
        prompts: list[str] = []
        for item in items:
            try:
                prompts.append(self._prompt.render(item))
            except ConfigError as error:
                without[item.item] = error
        if without and not prompts:
            raise next(iter(without.values()))
        return without, prompts

    def plan(self, config: RunConfig, cache: Cache) -> tuple[list[Sample], JudgeForecast]:
        """Return outputs that are stored or assumed, and what writing the others takes."""
        provider, settings, n = self.provider, self._settings, self._spec.generations
        keys = [to_request(question, provider, settings).key() for question in self._questions]
        stored = cache.get_many(keys) if provider.endpoint else {}
        new = [
            question
            for question, key in zip(self._questions, keys, strict=True)
            if key not in stored
        ]
        line = CriterionEstimate(
            "outputs", judgments=len(keys), cached=len(keys) - len(new), requests=len(new),
            read=float(sum(estimate_tokens(question.prompt) for question in new)),
            written=float(len(new) * self._spec.max_tokens),
        )  # fmt: skip
        estimate = JudgeEstimate(
            self._name, [line], ("single",), draws=0, each=1, exact=True, drawn=1,
            size=1, unit="output",
        )  # fmt: skip
        outputs = []
        for place, (key, question) in enumerate(zip(keys, self._questions, strict=True)):
            item = self._items[place // n]
            source = item.source or question.prompt
            longest = int(
                len(source) * min(1.0, question.max_tokens / max(1, estimate_tokens(source)))
            )
            # Equal texts would be judged once.
            assumed = f"{source[:longest]}\n{self._name} {place}"
            text: MetricReply = read_reply(question, stored[key]) if key in stored else assumed
            if isinstance(text, str):
                outputs.append(
                    replace(_generation(item, place % n + 1, n), system=self._name, output=text)
                )
        return outputs, judge_forecast(self._model.plan, provider, estimate)

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
) -> dict[str, list[list[Sample | Failure]]]:
    """Generate system by system; in batches, which take hours, all at once."""
    config = tools.config
    for (
        writer
    ) in writers.values():  # an engine that cannot run there is an error before anything is paid
        create_engine(config.engine, engine_context(config, writer.provider))
    progress.judges = {name: writer.counts for name, writer in writers.items()}
    progress.stage = GENERATING
    turns = asyncio.Semaphore(max(1, len(writers) if config.engine == "batch" else 1))

    async def write(writer: _Writer) -> list[list[Sample | Failure]]:
        async with turns:
            return await writer.write(tools)

    try:
        with display({name: writer.provider for name, writer in writers.items()}):
            async with asyncio.TaskGroup() as group:
                tasks = {name: group.create_task(write(writer)) for name, writer in writers.items()}
    except BaseExceptionGroup as errors:
        error = errors.exceptions[0]
        if isinstance(error, Reached | ProviderError | StorageError) and (
            progress.done or isinstance(error, Reached)
        ):
            add_resume_note(
                error, f"{progress.done:,} of {progress.total:,} outputs are written.", config
            )
        raise error from None
    progress.stage = "judging"
    return {name: task.result() for name, task in tasks.items()}


async def with_outputs(
    config: RunConfig,
    data: Any,
    progress: Progress,
    ledger: BudgetLedger,
    display: Display = lambda _: nullcontext(),
    *,
    check: Callable[[RunConfig, Any], object] = lambda config, data: None,
) -> tuple[RunConfig, Any, Outputs | None]:
    """Return a configuration and data that have outputs, written first if systems generate them. Raises JudgeError.

    `check` prepares the run on assumed outputs, so that its mistakes are told before anything is paid.
    """
    if not isinstance(config.systems, dict):
        return config, data, None
    planned, assumed, _ = plan_outputs(config, data)
    check(planned.model_copy(update={"out": None, "record": None, "retry_failed": False}), assumed)
    outputs = await generate(config, data, progress=progress, ledger=ledger, display=display)
    if not outputs.samples:
        first = outputs.failures[0]
        raise DataError(
            f"no system wrote a text; the first is {first.system}, item {first.item}: {first.message}"
        )
    return _without_systems(config), outputs.samples, outputs


def require_criteria(config: RunConfig) -> None:
    """Raise ConfigError if nobody chose criteria and systems have not written the outputs that would decide them."""
    systems = config.systems.values() if isinstance(config.systems, dict) else ()
    if config.criteria is None and any(isinstance(spec, GeneratedSystem) for spec in systems):
        raise criteria.no_default_of_unwritten()


OUTPUTS_NOTE = "The outputs are not written yet: each is counted with its max_tokens, and judged as long as that or as its source."


def plan_outputs(config: RunConfig, data: Any) -> tuple[RunConfig, Any, list[JudgeForecast]]:
    """Return a configuration and data to estimate the judging by, and what the systems' writing takes. Sends nothing.

    Outputs that the cache has are used. Any other is assumed to be as long as its source, or as `max_tokens` allow.
    """
    if not isinstance(config.systems, dict):
        return config, data, []
    check_against(config, list(config.systems))
    items = _items(config, config.data if data is None else data)
    planned: list[Sample] = []
    forecasts = []
    notes: list[str] = []
    cache = open_reply_cache(config, notes)
    try:
        for name, spec in config.systems.items():
            if isinstance(spec, GeneratedSystem):
                outputs, forecast = _Writer(name, spec, config, items, sends=False).plan(
                    config, cache
                )
                forecasts.append(forecast)
            else:
                rows = chain.from_iterable(_from_file(name, spec, items, config))
                outputs = [row for row in rows if isinstance(row, Sample)]
            planned += outputs
    finally:
        cache.close()
    return _without_systems(config), planned, forecasts


def _without_systems(config: RunConfig) -> RunConfig:
    mapping = {name: column for name, column in config.map.items() if name.startswith("rating")}
    return config.model_copy(update={"systems": (), "map": mapping, "limit": None})


def hand_over(outputs: Outputs | None, prepared: PreparedRun) -> PreparedRun:
    """Give a prepared run what it has to know of its generated outputs, and write them into its folder."""
    if outputs is None:
        return prepared
    if prepared.config.out is not None:
        store(prepared.config.out, {FILE: outputs.lines().encode()})
    return replace(
        prepared,
        unwritten=outputs.failures,
        generated=outputs.info,
        notes=(*prepared.notes, *outputs.notes),
    )


def _items(config: RunConfig, data: Any) -> list[Sample]:
    """Return an item per row of the data; none has an output yet."""
    if data is None:
        raise ConfigError("no data: name a file with the texts that the prompts read")
    mapping = {
        name: column for name, column in config.map.items() if name not in ("output", "system")
    }
    blank = (
        replace(row, system="", output="")
        if isinstance(row, Sample)
        else row._replace(
            cells={name: cell for name, cell in row.cells.items() if name != "system"}
            | {"output": ""}
        )
        for row in rows(data)
    )
    return samples.load(blank, mapping=mapping, where=config.where)[: config.limit]


def _generation(item: Sample, number: int, of: int) -> Sample:
    return item if of == 1 else replace(item, item=f"{item.item} ({number})", cluster=item.item)


def _from_file(
    name: str, path: Path, items: Sequence[Sample], config: RunConfig
) -> Iterator[list[Sample | Failure]]:
    """Yield for each item its outputs in a file of one system, or a failure."""
    outputs: dict[str, list[Sample]] = {}
    loaded = samples.load(path, mapping=config.map)
    for sample in loaded:
        outputs.setdefault(sample.source_item, []).append(sample)
    if len(systems := list(dict.fromkeys(sample.system for sample in loaded))) > 1:
        raise DataError(
            f"{path}: has the outputs of {listed(systems[:5])}; name a file for each system"
        )
    for item in items:
        lacking = Failure(
            item.item, name, "", UNWRITTEN, "NoOutput", f"{path.name} has no output for this item"
        )
        yield [
            replace(item, item=each.item, cluster=each.cluster, system=name, output=each.output)
            for each in outputs.get(item.item, ())
        ] or [lacking]
    if not outputs.keys() & {item.item for item in items}:
        raise DataError(
            f"{path}: has no item of the data; its items are {', '.join(map(repr, list(outputs)[:3]))}"
        )
