"""Let systems that are a prompt and a model write their outputs.

`with_outputs` does so before a run, `generate` alone (`judge run --generate-only`). `plan_outputs`
estimates what that takes.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from judge import criteria
from judge.config import RunConfig
from judge.core.errors import (
    ConfigError,
    DataError,
    ProviderError,
    Reached,
    StorageError,
)
from judge.core.files import claim_folder, store, write_whole
from judge.core.format import first_names, plural, to_json
from judge.core.generated_system import GeneratedSystem
from judge.core.records import UNWRITTEN, Failure, Sample
from judge.data import samples
from judge.data.rows import RawRow, rows
from judge.execution.budget import BudgetLedger
from judge.execution.engines import create_engine
from judge.execution.progress import GENERATING, Progress
from judge.providers import Provider
from judge.providers.recording import Recorder
from judge.results.run_info import SystemInfo
from judge.run.model_clients import SharedLimits, deadline_of
from judge.run.pipeline import add_resume_note
from judge.run.preparation import (
    PreparedRun,
    check_against,
    check_output_dir,
    engine_context,
)
from judge.run.reply_cache import open_replies, open_reply_cache
from judge.run.request_estimates import JudgePlan
from judge.run.system_writer import SystemWriter, TextsByItem, WriterTools

if TYPE_CHECKING:
    import pandas as pd

_FIELDS_OF_OUTPUT_FILES = frozenset({"item", "system", "output", "generation"})
"""The fields that are read from a file of outputs; all others are the data's."""
FILE = "outputs.jsonl"
"""The outputs in the folder of a run."""
OPTIONS = (
    "map",
    "where",
    "limit",
    "base_url",
    "key_env",
    "key_command",
    "headers",
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
Display = Callable[[Mapping[str, Provider]], AbstractContextManager[None]]
"""Shows the progress of these models while the context is open."""


@dataclass(frozen=True, slots=True, repr=False)
class Outputs:
    """What the systems wrote: a sample for each text, and a failure for each missing text.

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
        lines = []
        for row in self._rows():
            line = json.dumps(to_json(row), ensure_ascii=False)
            lines.append(f"{line}\n")
        return "".join(lines)

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
                # The second generation of the item `doc-1` has the item `doc-1 (2)`.
                number_and_bracket = sample.item.removeprefix(f"{sample.cluster} (")
                fields["generation"] = number_and_bracket.removesuffix(")")
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
            write_whole(path, self.lines().encode())
        except OSError as error:
            reason = error.strerror or error
            raise StorageError(f"{path}: cannot be written: {reason}") from error


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
    replay work as in a run, so a restart pays for no stored reply again. A text that could not be
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
    # A writer renders all its prompts, and a file is read, before anything is paid.
    writers: dict[str, SystemWriter] = {}
    for system, spec in config.systems.items():
        if isinstance(spec, GeneratedSystem):
            writers[system] = SystemWriter(system, spec, config, items)
    texts_by_system: dict[str, TextsByItem] = {}
    info_by_system: dict[str, SystemInfo] = {}
    for system, spec in config.systems.items():
        if not isinstance(spec, GeneratedSystem):
            texts_by_system[system] = list(_from_file(system, spec, items, config))
            info_by_system[system] = SystemInfo(outputs=spec.name)
    ledger = ledger if ledger is not None else BudgetLedger(config.budget)
    progress = progress if progress is not None else Progress()
    texts_by_system |= await _run_writers(
        writers, config, ledger, progress, display=display
    )
    notes = list(progress.notes)
    for system, writer in writers.items():
        info_by_system[system] = writer.info
        notes += [f"{system}: {remark}" for remark in writer.counts.remarks]
    # In the order of the configuration: above, the systems of files come first.
    ordered_texts = [texts_by_system[system] for system in config.systems]
    ordered_info = {system: info_by_system[system] for system in config.systems}
    written, failures = _item_by_item(ordered_texts)
    return Outputs(written, failures, ordered_info, tuple(notes))


async def _run_writers(
    writers: Mapping[str, SystemWriter],
    config: RunConfig,
    ledger: BudgetLedger,
    progress: Progress,
    *,
    display: Display,
) -> dict[str, TextsByItem]:
    """Return the texts of the systems that write, by system; the notes are in `progress`."""
    progress.notes = []
    progress.unstored = None
    with (
        _noting_outputs(config, progress, ledger),
        _open_tools(config, ledger, progress, records=bool(writers)) as tools,
    ):
        return await _write_all(writers, tools, progress, display)


def _item_by_item(
    texts_of_systems: Sequence[TextsByItem],
) -> tuple[tuple[Sample, ...], tuple[Failure, ...]]:
    """Return the texts and the failures of all systems, those of an item next to each other."""
    rows: list[Sample | Failure] = []
    for texts_of_item in zip(*texts_of_systems, strict=True):
        rows += chain.from_iterable(texts_of_item)
    written = [row for row in rows if isinstance(row, Sample)]
    failures = [row for row in rows if isinstance(row, Failure)]
    return tuple(written), tuple(failures)


@contextmanager
def _noting_outputs(
    config: RunConfig,
    progress: Progress,
    ledger: BudgetLedger,
) -> Iterator[None]:
    """Add to an error of the block how many outputs are written, and how to resume."""
    try:
        yield
    except (Reached, ProviderError, StorageError) as error:
        something_paid = progress.done or progress.unstored is not None
        # Before the first output, only a run that reached its limit can be resumed.
        if something_paid or isinstance(error, Reached):
            outputs = f"{progress.done:,} of {progress.total:,} outputs are written."
            add_resume_note(error, outputs, config, progress, ledger)
        raise


@contextmanager
def _open_tools(
    config: RunConfig,
    ledger: BudgetLedger,
    progress: Progress,
    *,
    records: bool,
) -> Iterator[WriterTools]:
    """Open the cache and the recording for the block. Without `records`, there is no recording."""
    with ExitStack() as stack:
        recording = None
        if config.record is not None and records:
            recording = stack.enter_context(Recorder(config.record))
        limits = SharedLimits(ledger, deadline_of(config))
        replies = stack.enter_context(open_replies(config, recording, progress))
        yield WriterTools(config, replies, limits)


async def _write_all(
    writers: Mapping[str, SystemWriter],
    tools: WriterTools,
    progress: Progress,
    display: Display,
) -> dict[str, TextsByItem]:
    """Let the systems write one after the other; with batches, which take hours, all at once."""
    config = tools.config
    for writer in writers.values():
        # An engine that cannot run is an error before anything is paid.
        create_engine(config.engine, engine_context(config, writer.provider))
    progress.judges = {system: writer.counts for system, writer in writers.items()}
    progress.stage = GENERATING
    at_once = len(writers) if config.engine == "batch" else 1
    turns = asyncio.Semaphore(max(1, at_once))

    async def write(writer: SystemWriter) -> TextsByItem:
        async with turns:
            return await writer.write(tools)

    providers = {system: writer.provider for system, writer in writers.items()}
    tasks: dict[str, asyncio.Task[TextsByItem]] = {}
    try:
        with display(providers):
            async with asyncio.TaskGroup() as group:
                for system_name, writer in writers.items():
                    tasks[system_name] = group.create_task(write(writer))
    except BaseExceptionGroup as errors:
        # The first error cancelled the other tasks.
        raise errors.exceptions[0] from None
    progress.stage = "judging"
    return {system: task.result() for system, task in tasks.items()}


class DataWithOutputs(NamedTuple):
    """A configuration and data that can be judged, and the outputs that were written, if any."""

    config: RunConfig
    data: Any
    outputs: Outputs | None


class PlannedOutputs(NamedTuple):
    """A configuration and data to estimate the judging by, and what writing the outputs takes."""

    config: RunConfig
    data: Any
    plans: list[JudgePlan]


async def with_outputs(
    config: RunConfig,
    data: Any,
    progress: Progress,
    ledger: BudgetLedger,
    display: Display = lambda _: nullcontext(),
    *,
    check: Callable[[RunConfig, Any], object] = lambda config, data: None,
) -> DataWithOutputs:
    """Return a configuration and data that have outputs. Systems that generate them write first.

    `check` prepares the run on assumed outputs, so that its mistakes are reported before anything
    is paid. Raises JudgeError.
    """
    if not isinstance(config.systems, dict):
        return DataWithOutputs(config, data, None)
    if isinstance(data, Iterator):
        # It is read twice.
        data = list(data)
    planned = plan_outputs(config, data)
    # The check must write nothing: no folder, no recording.
    unsaved = planned.config.model_copy(
        update={"out": None, "record": None, "retry_failed": False}
    )
    check(unsaved, planned.data)
    outputs = await generate(
        config, data, progress=progress, ledger=ledger, display=display
    )
    if not outputs.samples:
        first_failure = outputs.failures[0]
        raise DataError(
            f"no system wrote a text; the first is {first_failure.system}, "
            f"item {first_failure.item}: {first_failure.message}"
        )
    return DataWithOutputs(_without_systems(config), outputs.samples, outputs)


def require_criteria(config: RunConfig) -> None:
    """Raise ConfigError if outputs are not written yet and no criteria are named.

    The texts decide whether there are default criteria.
    """
    systems: Iterable[Any] = ()
    if isinstance(config.systems, dict):
        systems = config.systems.values()
    any_unwritten = any(isinstance(spec, GeneratedSystem) for spec in systems)
    if config.criteria is None and any_unwritten:
        raise criteria.no_default_of_unwritten()


OUTPUTS_NOTE = (
    "The outputs are not written yet: an output is assumed to use its max_tokens, and a judged "
    "text to be as long as that or as its source."
)


def plan_outputs(config: RunConfig, data: Any) -> PlannedOutputs:
    """Return stored or assumed outputs, and the estimate of writing those that are not stored.

    Sends nothing. Outputs come from the cache if it has them. Any other is assumed to be as long as
    its source, or as `max_tokens` allow.
    """
    if not isinstance(config.systems, dict):
        return PlannedOutputs(config, data, [])
    check_against(config, list(config.systems))
    source = config.data if data is None else data
    items = _items(config, source)
    planned: list[Sample] = []
    plans = []
    notes: list[str] = []
    cache = open_reply_cache(config, notes)
    try:
        for system, spec in config.systems.items():
            if isinstance(spec, GeneratedSystem):
                writer = SystemWriter(system, spec, config, items, sends=False)
                outputs, plan = writer.plan(config, cache)
                plans.append(plan)
                planned += outputs
            else:
                for rows_of_item in _from_file(system, spec, items, config):
                    planned += [row for row in rows_of_item if isinstance(row, Sample)]
    finally:
        cache.close()
    return PlannedOutputs(_without_systems(config), planned, plans)


def _without_systems(config: RunConfig) -> RunConfig:
    """Return the configuration of the run that judges the outputs."""
    columns = config.map.items()
    # Outputs have judge's own field names. Only the columns of ratings have the data's names.
    mapping = {
        field_name: column
        for field_name, column in columns
        if field_name.startswith("rating")
    }
    return config.model_copy(update={"systems": (), "map": mapping, "limit": None})


def hand_over(outputs: Outputs | None, prepared: PreparedRun) -> PreparedRun:
    """Write the outputs into the run's folder, if it has one.

    Return the run with the failures and notes of the outputs, and the descriptions of the systems.
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
    # The systems write these, whatever columns the data have.
    generated_fields = ("output", "system")
    mapping = {
        field_name: column
        for field_name, column in config.map.items()
        if field_name not in generated_fields
    }
    without_outputs = _items_once(rows(data))
    items = samples.load(without_outputs, mapping=mapping, where=config.where)
    return items[: config.limit]


def _items_once(data_rows: Iterable[Sample | RawRow]) -> Iterator[Sample | RawRow]:
    """Yield the rows without outputs; several systems' rows of one item only once.

    An item that one system has twice stays there twice, so that it is refused.
    """
    systems_by_item: defaultdict[str, set[str]] = defaultdict(set)
    for row in data_rows:
        system = row.system if isinstance(row, Sample) else row.cells.get("system")
        system_name = str(system)
        item = _without_output(row)
        cells = replace(item, where="") if isinstance(item, Sample) else item.cells
        earlier_systems = systems_by_item[repr(cells)]
        is_repeated = bool(earlier_systems) and system_name not in earlier_systems
        earlier_systems.add(system_name)
        if not is_repeated:
            yield item


def _without_output(row: Sample | RawRow) -> Sample | RawRow:
    """Return a row of the data without its system and with an empty output."""
    if isinstance(row, Sample):
        return replace(row, system="", output="")
    cells = dict(row.cells)
    cells.pop("system", None)
    cells["output"] = ""
    return row._replace(cells=cells)


def _from_file(
    system_name: str,
    path: Path,
    items: Sequence[Sample],
    config: RunConfig,
) -> Iterator[list[Sample | Failure]]:
    """Yield for each item its outputs in a file of one system, or a failure."""
    # The file needs no column that only the prompts of other systems read.
    mapping = {
        field_name: column
        for field_name, column in config.map.items()
        if field_name in _FIELDS_OF_OUTPUT_FILES
    }
    loaded = samples.load(path, mapping=mapping)
    systems = list(dict.fromkeys(sample.system for sample in loaded))
    if len(systems) > 1:
        raise DataError(
            f"{path}: has the outputs of {first_names(systems)}; name a file for each system"
        )
    outputs_by_item: dict[str, list[Sample]] = {}
    for sample in loaded:
        outputs_by_item.setdefault(sample.source_item, []).append(sample)
    for item in items:
        outputs: list[Sample | Failure] = []
        for row in outputs_by_item.get(item.item, ()):
            # Only the text is the file's: source, references and ratings are the data's.
            text = replace(
                item,
                item=row.item,
                cluster=row.cluster,
                system=system_name,
                output=row.output,
            )
            outputs.append(text)
        if not outputs:
            message = f"{path.name} has no output for this item"
            failure = Failure(
                item=item.item,
                system=system_name,
                column="",
                stage=UNWRITTEN,
                error="NoOutput",
                message=message,
            )
            outputs.append(failure)
        yield outputs
    if not outputs_by_item.keys() & {item.item for item in items}:
        listed_items = first_names(map(repr, outputs_by_item), 3)
        raise DataError(
            f"{path}: has no item of the data; its items are {listed_items}"
        )
