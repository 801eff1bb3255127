"""Which texts are compared with which, and in which order they are shown.

A finished run in the folder that a new one is going to write into.

Everything a run needs, read and checked before the first request.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Any

from judge import criteria as criteria_module
from judge import text
from judge.cache import check_reachable, local_dir
from judge.commands import judge_models as of_plan
from judge.commands import metric_setup, prompt_language
from judge.config import Judge, Plan, RankPlan, plan
from judge.core import plugins
from judge.core.errors import ConfigError, StorageError
from judge.core.messages import command, in_python, option
from judge.core.records import IDENTICAL, Criterion, Prompt, Provenance, Sample, Score
from judge.criteria.render import Renderer
from judge.data import samples
from judge.execution import engines
from judge.execution.metric_client import DeferredClient
from judge.execution.pending import Judgment
from judge.execution.progress import JudgeProgress, MetricProgress
from judge.metrics import Metric, asks_judge, heuristic, is_rowwise
from judge.providers import Provider
from judge.providers.recording import Recorder
from judge.scoring import multi_criteria, strategies
from judge.scoring.strategies import SamplingOptions
from judge.stats.human_agreement import out_of_scale, unknown_criteria
from judge.table import RUN

Pair = tuple[Sample, Sample]
_EQUAL = Provenance(IDENTICAL, n=0, note="the two texts are equal: a tie, and no judge was asked")


@dataclass(frozen=True, slots=True)
class PairPlan:
    """The pairs of texts of a ranking, each as it is shown: two orders are two entries.

    `compared` are asked about, `equal` are ties without a question. `possible` counts the pairs that there are,
    `chosen` those that were taken, and `alone` the pairs of systems and items for which one text is missing.
    """

    compared: tuple[Pair, ...]
    equal: tuple[Pair, ...]
    possible: int
    chosen: int
    alone: int

    def judgments(self, criteria: Sequence[Criterion]) -> list[Judgment]:
        """What a judge is asked."""
        return [Judgment(first, criterion, second) for first, second in self.compared for criterion in criteria]

    def ties(self, columns: Sequence[str]) -> Iterator[Score]:
        """The rows of equal texts."""
        for first, second in self.equal:
            for column in columns:
                yield Score(first.item, first.system, column, 0.5, _EQUAL, second.system)


def choose_pairs(samples: Sequence[Sample], *, orders: int, budget: int | None, seed: int) -> PairPlan:
    """Every pair of two systems' texts for one item, or a sample of `budget` of them.

    A sample takes the pairs of systems in turn, each time with an item drawn by `seed`, so that all are compared about
    equally often. With one order, a hash of seed, item and systems says which text is shown first. Raises ConfigError
    where nothing can be compared.
    """
    systems = list(dict.fromkeys(s.system for s in samples))
    items = list(dict.fromkeys(s.item for s in samples))
    texts = {(s.item, s.system): s for s in samples}
    by_systems = [
        [(texts[item, a], texts[item, b]) for item in items if (item, a) in texts and (item, b) in texts]
        for a, b in combinations(systems, 2)
    ]
    every = [pair for item in zip(*_padded(by_systems), strict=True) for pair in item if pair is not None]
    if not every:
        raise ConfigError(
            f"nothing to compare: no item has texts of two systems (systems: {', '.join(systems[:10])}); name the "
            "column of the systems with --map system=COLUMN, or those of their texts with --systems A,B"
        )
    chosen = every if budget is None or budget >= len(every) else _sampled(by_systems, budget, seed)
    shown = [shown for pair in chosen for shown in _shown(pair, orders, seed)]
    return PairPlan(
        compared=tuple(pair for pair in shown if pair[0].output != pair[1].output),
        equal=tuple(pair for pair in shown if pair[0].output == pair[1].output),
        possible=len(every),
        chosen=len(chosen),
        alone=len(by_systems) * len(items) - len(every),
    )


def _padded(lists: Sequence[Sequence[Pair]]) -> list[list[Pair | None]]:
    longest = max(map(len, lists), default=0)
    return [[*one, *[None] * (longest - len(one))] for one in lists]


def _sampled(by_systems: Sequence[Sequence[Pair]], budget: int, seed: int) -> list[Pair]:
    draw = random.Random(seed)  # noqa: S311  (a sample; no secret)
    shuffled = [draw.sample(one, len(one)) for one in by_systems]
    draw.shuffle(shuffled)
    in_turn = (pair for turn in zip(*_padded(shuffled), strict=True) for pair in turn if pair is not None)
    return list(islice(in_turn, budget))


def _shown(pair: Pair, orders: int, seed: int) -> Sequence[Pair]:
    first, second = pair
    if orders == 2:
        return (pair, (second, first))
    text = "\n".join((str(seed), first.item, first.system, second.system))
    swapped = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[0] % 2
    return ((second, first) if swapped else pair,)


_HOW = {
    "out", "cache", "replay", "record", "workers", "key_env", "base_url", "max_concurrency", "timeout", "retries",
    "rpm", "tpm", "deadline", "budget", "engine", "ray_workers", "retry_failed",
}  # fmt: skip
"""Keys of a plan that change how a run goes, and not what it finds out."""


def overwrite_warning(made: Plan) -> str:
    """That the run in a plan's folder, which asked something else, is replaced; nothing where there is none."""
    if made.out is None or (found := _finished(made.out)) is None:
        return ""
    had, has = found.get("plan") or {}, made.model_dump(mode="json", by_alias=True, exclude_none=True)
    keys = [key for key in {**has, **had} if key not in _HOW and had.get(key) != has.get(key)]
    if not keys:
        return ""
    when = str(found.get("started") or "")[:16].replace("T", " ")
    of = f" of {when}" if when else ""
    return f"{made.out} has a finished run{of} with other {', '.join(keys)}, which this one replaces."


def _finished(folder: Path) -> dict[str, Any] | None:
    """What a finished run in a folder says of itself; None where none is there, or none that can be read."""
    try:
        info = json.loads((folder / RUN).read_bytes())["info"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return info if isinstance(info, dict) and info.get("status") == "complete" else None


_NO_REFERENCES = (
    " (the data has no column `references`, without which there are no default metrics; {named} names "
    "yours, and distinct, self_bleu and source_bleu need none)"
)
_MOST_HELD, _MOST_JUDGED = 50_000, 100_000
"""Texts in memory at once: of more the rest is read later, where metrics alone measure, and where a judge is asked."""


WantedTexts = Mapping[str, Collection[tuple[str, str]]]


@dataclass(slots=True)
class PreparedRun:
    """Everything a run needs, checked; nothing has been sent or paid yet.

    `judges` are the providers by the name a panel's columns have; a panel is two or more. `pairs` are what a ranking
    compares, `measured` what the metrics tell how far they are. `rest` are the samples that have not been
    read yet, where a run of metrics alone need not hold all of them; `ask` is what metrics ask a judge by. `recording`
    takes down replies, `baseline` is the heuristic's name where it stands in the place of a judge. `merged` are the
    criteria that share requests. `wanted` are, by criterion, the texts (item, system) that it is asked about, where
    that is not all of them.
    """

    plan: Plan
    samples: list[Sample]
    criteria: list[Criterion]
    metrics: dict[str, Metric]
    judges: dict[str, Provider]
    settings: SamplingOptions
    language: prompt_language.PromptLanguage
    data: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    pairs: PairPlan | None = None
    measured: MetricProgress = field(default_factory=MetricProgress)
    rest: Iterator[Sample] | None = None
    ask: DeferredClient | None = None
    recording: Recorder | None = None
    baseline: str = ""
    merged: Sequence[Sequence[Criterion]] = ()
    wanted: WantedTexts | None = None


def prepare(
    made: Plan,
    data: Any = None,
    *,
    providers: Sequence[Judge | Provider] | None = None,
    own: Mapping[str, Criterion] | None = None,
    wanted: WantedTexts | None = None,
) -> PreparedRun:
    """Read and check everything that can be checked before the first request. Raises JudgeError.

    `providers` are the judges where they are not all in the plan, `own` criteria that are not read from files, `wanted`
    the texts by criterion that are to be judged, where not all are.
    """
    source = _source(made, data)
    check_output_dir(made.out)
    rows, rest = _read(made, source)
    given = made.model if providers is None else providers
    asked, floor = of_plan.requested_judges(made, given)
    alone = floor is not None and not asked and made.replay is None
    named, spoken = prompt_language.choose_prompt_language(made, rows, judged=bool(made.criteria) and not alone)
    chosen = [] if alone else _criteria(made, rows, named["name"], own or {}, wanted)
    if made.calibrate:
        _check_calibrated(made, rows, chosen, alone=alone)
    measured = MetricProgress()
    ask = DeferredClient() if asked or made.replay else None
    metrics, notes = _metrics(made, rows, measured, ask, alone=not chosen, floor=floor)
    metric_setup.precheck(metrics, rows)
    settings = SamplingOptions(made.weighting, made.min_mass, made.temperature, made.max_tokens, made.draws)
    judges = _opened(made, asked, settings, judging=bool(chosen), metrics=metrics)
    if rest is not None and not _row_by_row(metrics, judges):
        rows, rest = [*rows, *rest], None
    notes += [*of_plan.judge_notes(made, metrics, judges), *of_plan.unused_setting_notes(made, given, alone=alone)]
    notes += [*_about_rows(made, rows, chosen), *spoken]
    if (pairs := _pairs(made, rows)) is not None:
        notes += _about_pairs(pairs)
    read = {**_about_data(made.data), "rows": len(rows)}
    record = None if made.record is None else _recording(made, made.record, judges.values())
    return PreparedRun(
        made, rows, chosen, metrics, judges, settings, named, read, notes, pairs, measured, rest, ask, record,
        heuristic.NAME if alone else "", _merged(made, chosen, rows, judges, notes), wanted,
    )  # fmt: skip


def _source(made: Plan, data: Any) -> Any:
    """The data that were given, or else the plan's. Raises ConfigError where there are none."""
    source = data if data is not None else made.data
    if source is None:
        raise ConfigError(f"no data: name a file, for example {command('run')} summaries.jsonl")
    return source


def _pairs(made: Plan, rows: Sequence[Sample]) -> PairPlan | None:
    """Which texts a ranking compares, None of any other run."""
    if not isinstance(made, RankPlan):
        return None
    return choose_pairs(rows, orders=made.orders, budget=made.pairs, seed=made.seed)


def _about_data(data: Path | None) -> dict[str, Any]:
    """What a run says of its data: where they are, what they hold, and of shards how many they are."""
    if data is None:
        return {}
    number = len(samples.files(data))
    shards = {"files": number} if number > 1 else {}
    return {"path": str(data), "sha256": samples.content_hash(data), **shards}


def _opened(
    made: Plan,
    asked: Sequence[Judge | Provider],
    settings: SamplingOptions,
    *,
    judging: bool,
    metrics: Mapping[str, Metric],
) -> dict[str, Provider]:
    """The judges that criteria or metrics ask, which can be asked so, with a cache in reach. Raises ConfigError."""
    if not judging and not any(asks_judge(metric) for metric in metrics.values()):
        return {}
    judges = of_plan.open_providers(made, asked)
    for provider in judges.values():
        strategies.strategies_for(settings, provider.decides)
        if judging:
            engines.create_engine(made.engine, engine_context(made, provider))
    if judges:
        check_reachable(made.cache)
    return judges


def _row_by_row(metrics: Mapping[str, Metric], judges: Mapping[str, Provider]) -> bool:
    """Whether nothing has to see all texts at once."""
    by_row = (is_rowwise(one) and not asks_judge(one) for one in metrics.values())
    return all(by_row) and len(judges) < 2


def _about_rows(made: Plan, rows: Sequence[Sample], chosen: Sequence[Criterion]) -> list[str]:
    """What there is to say of the rows that were read, their ratings by people, and the run whose place this takes."""
    notes = [f"These are the rows with {samples.describe_filter(made.where)} alone."] if made.where else []
    scales = {one.name: (one.scale.low, one.scale.high) for one in chosen if not one.pairwise}
    notes += [*out_of_scale(rows, scales), *filter(None, [unknown_criteria(rows, list(scales))])]
    if in_python() and not made.retry_failed:  # on the command line it is said before the run
        notes += filter(None, [overwrite_warning(made)])
    return notes


def _check_calibrated(made: Plan, rows: Sequence[Sample], chosen: Sequence[Criterion], *, alone: bool) -> None:
    """Refuses `calibrate` where there is nothing to calibrate, or nothing to do it by."""
    names = list(made.criteria) if alone else [criterion.name for criterion in chosen]
    if isinstance(made, RankPlan) or not names:
        raise ConfigError(
            f"{option('calibrate')}: it brings a judge's scores to people's scale, and this run makes none"
        )
    if not any(name in sample.human for sample in rows for name in names):
        raise ConfigError(
            f"{option('calibrate')}: no text has a rating by people for {' or '.join(names)}; name their column with "
            f"{option('map', {f'human.{names[0]}': 'COLUMN'})}"
        )


def _metrics(
    made: Plan,
    rows: Sequence[Sample],
    measured: MetricProgress,
    ask: DeferredClient | None,
    *,
    alone: bool,
    floor: dict[str, Any] | None,
) -> tuple[dict[str, Metric], list[str]]:
    """The metrics and what there is to say about them. Raises ConfigError where there is nothing else and none."""
    names, notes = metric_setup.default_metrics(made, rows)
    if floor is not None:
        names = (of_plan.HEURISTIC, *(name for name in names if name != of_plan.HEURISTIC))
        given = made.set.get(of_plan.HEURISTIC, {})
        if "prefix" in given:
            raise ConfigError("--set heuristic.prefix: columns are called by --model heuristic or --metrics heuristic")
        made = made.model_copy(update={"set": {**made.set, of_plan.HEURISTIC: given | floor}})
    if alone and not names:
        lacking = (
            ""
            if any(s.references for s in rows) or made.metrics is not None
            else _NO_REFERENCES.format(named=option("map", {"references": "COLUMN"}))
        )
        raise ConfigError(f"nothing to do: neither criteria nor metrics; name some{lacking}")
    return metric_setup.build_metric(made, names, measured, ask), notes


def _read(made: Plan, source: Any) -> tuple[list[Sample], Iterator[Sample] | None]:
    """The samples, and those beyond the first ones unread, where nothing needs all of them at once."""
    found = samples.stream(source, mapping=made.mapping, systems=made.systems, where=made.where)
    reader = islice(found, made.limit)
    if isinstance(made, RankPlan) or made.calibrate or made.retry_failed:
        return list(reader), None
    most = _MOST_JUDGED if made.criteria else _MOST_HELD
    rows = list(islice(reader, most))
    following = next(reader, None) if len(rows) == most else None
    return rows, chain([following], reader) if following is not None else None


def samples_of_item(rows: Sequence[Sample], item: str | None, system: str | None = None) -> list[Sample]:
    """The samples of one item, the first there is if none is named, and of one system or all. Raises ConfigError."""
    first = _first(rows, item=item, system=system)
    return [sample for sample in rows if sample.item == first.item and system in (None, sample.system)]


def prompt(
    criterion: str,
    data: Any,
    *,
    item: str | None = None,
    system: str | None = None,
    rival: str | None = None,
    **options: Any,
) -> Prompt:
    """The prompt for one sample, or for a comparison with `rival`'s text, as a run would send it. Asks no model.

    What is not named is the first there is. Raises JudgeError.
    """
    made = plan(given={**options, "criteria": [criterion]})
    rows = samples.load(data, mapping=made.mapping, systems=made.systems, where=made.where)
    language = made.language or text.language_of(rows)
    either = criteria_module.load(criterion, language=language, pairwise=None)
    (chosen,) = _criteria(made, rows, language, {criterion: either}, None)
    first = _first(rows, item=item, system=system)
    renderer = Renderer(chosen, criteria_module.template_bodies(chosen))
    if not chosen.pairwise:
        return renderer.render(first)
    others = [s for s in rows if s.system != first.system]
    return renderer.render(first, _first(others, item=first.item, system=rival))


def _first(rows: Sequence[Sample], *, item: str | None, system: str | None) -> Sample:
    """The first sample of an item and a system, as far as they are named. Raises ConfigError."""
    of_item = [s for s in rows if item in (None, s.item)]
    if not of_item:
        raise ConfigError(plugins.unknown_name_message("item", item or "", sorted({s.item for s in rows})[:20]))
    found = next((s for s in of_item if system in (None, s.system)), None)
    if found is None:
        raise ConfigError(
            plugins.unknown_name_message("system", system or "", sorted({s.system for s in of_item})[:20])
        )
    return found


def engine_context(made: Plan, provider: Provider) -> engines.EngineContext:
    """Where a plan has the requests to a judge run."""
    folder = None if made.cache is False else local_dir(made.cache)
    return engines.EngineContext(provider, folder, JudgeProgress(), workers=made.ray_workers)


def criterion_for(criterion: Criterion, provider: Provider) -> Criterion:
    """The criterion as this provider is asked it."""
    return replace(criterion, form="decision", merged=False) if provider.decides else criterion


def is_wanted(prepared: PreparedRun, sample: Sample, criterion: Criterion) -> bool:
    """Whether the run wants a judgment of this text on this criterion."""
    wanted = prepared.wanted
    return wanted is None or (sample.item, sample.system) in wanted.get(criterion.name, ())


def reject_duplicate_columns(names: Sequence[str]) -> None:
    """Raises ConfigError where two columns would have one name."""
    twins = sorted({name for name in names if list(names).count(name) > 1})
    if twins:
        raise ConfigError(
            f"two columns would be called {twins[0]!r}; a criterion is called by its file's name: rename it"
        )


def check_output_dir(out: Path | None) -> None:
    """Refuses a folder that cannot be one, or whose report is somebody else's."""
    if out is None:
        return
    if out.exists() and not out.is_dir():
        raise StorageError(f"{option('out', str(out))}: a file stands there; name a folder")
    if not (out / "run.json").exists() and any((out / name).exists() for name in ("report.html", "report.md")):
        raise StorageError(f"{option('out', str(out))}: holds a report that is not from judge; name another folder")


def _criteria(
    made: Plan, rows: Sequence[Sample], language: str, own: Mapping[str, Criterion], wanted: WantedTexts | None
) -> list[Criterion]:
    """The criteria of a plan in the form it wants them, checked against the texts that they are asked about."""
    chosen = []
    for name in made.criteria:
        criterion = own.get(name) or criteria_module.load(name, language=language, pairwise=isinstance(made, RankPlan))
        form = "json" if made.structured else criterion.form
        own_kind = made.reply or criterion.reply
        chosen.append(replace(criterion, reply=own_kind, form=form, merged=made.merge_criteria))
        texts = None if wanted is None else wanted.get(criterion.name, ())
        criteria_module.check_samples(chosen[-1], [s for s in rows if texts is None or (s.item, s.system) in texts])
    reject_duplicate_columns([c.name for c in chosen])
    if made.merge_criteria:
        _check_merged(chosen)
    return chosen


def _check_merged(chosen: Sequence[Criterion]) -> None:
    """Refuses to merge what has no one short reply."""
    if any(criterion.pairwise for criterion in chosen):
        raise ConfigError(
            f"{option('merge_criteria')}: it is for criteria that judge one text; leave it out of {command('rank')}"
        )
    if len(chosen) < 2:
        raise ConfigError(f"{option('merge_criteria')}: it takes two criteria or more; leave it out")
    if wordy := [criterion.name for criterion in chosen if criterion.reply != "score"]:
        raise ConfigError(
            f"{option('merge_criteria')}: it takes criteria whose reply is a score alone, and {wordy[0]} asks for a "
            "reason; "
            f"add {option('reply', 'score')}"
        )


def _merged(
    made: Plan, chosen: Sequence[Criterion], rows: Sequence[Sample], judges: Mapping[str, Provider], notes: list[str]
) -> Sequence[Sequence[Criterion]]:
    """The criteria that share requests, with a note where they should and none does."""
    if not made.merge_criteria or all(provider.decides for provider in judges.values()):
        return ()
    if not (found := multi_criteria.group_criteria(chosen, rows)):
        notes.append(f"No two criteria show the same texts: {option('merge_criteria')} had no effect.")
    return found


def _recording(made: Plan, path: Path, judges: Iterable[Provider]) -> Recorder:
    """What the replies are taken down in, with what every report of these judges' must say. Raises JudgeError."""
    if not judges:
        raise ConfigError(
            f"{option('record', str(path))}: no model is asked in this run, so there are no replies to record"
        )
    if path == made.replay:
        raise ConfigError(
            f"{option('record', str(path))}: this is the recording that is replayed; name another file, "
            f"or a model that is asked in its place: {option('model')}"
        )
    return Recorder(path, " ".join(dict.fromkeys(judge.notice for judge in judges if judge.notice)))


def _about_pairs(pairs: PairPlan) -> list[str]:
    notes = []
    if pairs.chosen < pairs.possible:
        notes.append(f"A sample: {pairs.chosen:,} of {pairs.possible:,} pairs of texts are compared.")
    if pairs.alone:
        notes.append(f"{pairs.alone:,} pairs of systems and items have only one text or none, and are not compared.")
    return notes
