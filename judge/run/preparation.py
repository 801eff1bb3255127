"""Read and check what a run needs before its first request.

`prepare` reads the data, the criteria, the metrics and the ratings, and opens the judges. `prompt`
renders one prompt of a run. The checks at the end of the module are shared by several commands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from judge import criteria as criteria_module
from judge import text
from judge.cache import cache_location
from judge.config import RankConfig, RunConfig, load_config
from judge.core import plugins
from judge.core.criterion_entry import keys_of
from judge.core.errors import ConfigError, CriterionError, StorageError
from judge.core.files import recover, try_writing
from judge.core.format import listed, plural, text_name
from judge.core.item_names import item_called
from judge.core.messages import Remark, in_python, option
from judge.core.normalization import whole
from judge.core.records import (
    Criterion,
    Failure,
    Message,
    Prompt,
    Sample,
)
from judge.criteria.reply_form import asked_by, configured
from judge.data import ledger, samples, suspect_cells
from judge.data.ratings import PairRating
from judge.execution import engines
from judge.execution.progress import JudgeProgress, MetricProgress
from judge.execution.questions import DeferredClient
from judge.metrics import Metric
from judge.providers import Provider
from judge.providers.recording import Recorder
from judge.results.run_info import DataInfo, PromptLanguage, RunInfo, SystemInfo
from judge.results.stored_info import OtherFormat, read_info
from judge.run import (
    human_ratings,
    judge_columns,
    judge_models,
    metric_setup,
    prompt_language,
    result_files,
)
from judge.run.data_notes import data_notes
from judge.run.given_scores import GivenScores
from judge.run.judge_preferences import read_preferences
from judge.run.mapped_fields import require_known_fields
from judge.run.pairing import PairPlan, choose_pairs
from judge.run.request_estimates import JudgePlan
from judge.scoring import strategies
from judge.scoring.checklist import parts
from judge.scoring.multi_criteria import make_renderers
from judge.table import stored_samples

_NO_REFERENCES = (
    " (the data has no column `references`, without which there are no default metrics; {named} "
    "names yours, and distinct, self_bleu and source_bleu need none)"
)


WantedTexts = Mapping[str, Collection[tuple[str, str]]]
"""By criterion, the texts (item, system) that are judged on it."""


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """Everything a run needs, checked; nothing has been sent or paid yet.

    `opened` are the judges by the name that they have in a panel's columns; a panel has two or
    more. `pairs` are the texts that a ranking compares. Metrics report their progress to `measured`
    and ask a judge through `ask`. `recording` stores the replies. `wanted_texts` limits what is
    judged; None means all texts. `preferences` are people's. `default_criteria` says that the
    criteria are the default ones. `generated` describes the systems whose outputs were generated,
    `unwritten` has a failure for each text that they did not write, and `writing` is the estimate
    of what they will cost. `given_scores` are a judge's scores that the data contain.
    """

    config: RunConfig
    samples: list[Sample]
    criteria: list[Criterion]
    metrics: dict[str, Metric]
    opened: Mapping[str, judge_models.OpenedJudge]
    language: PromptLanguage
    data: DataInfo
    notes: tuple[str, ...] = ()
    pairs: PairPlan | None = None
    measured: MetricProgress = field(default_factory=MetricProgress)
    ask: DeferredClient | None = None
    recording: Recorder | None = None
    wanted_texts: WantedTexts | None = None
    unwritten: Sequence[Failure] = ()
    generated: Mapping[str, SystemInfo] = field(default_factory=dict)
    writing: Sequence[JudgePlan] = ()
    preferences: Sequence[PairRating] = ()
    default_criteria: bool = False
    given_scores: GivenScores = field(default_factory=GivenScores)

    @property
    def judges(self) -> dict[str, Provider]:
        """The providers of the judges, by the judges' names."""
        return {judge_name: judge.provider for judge_name, judge in self.opened.items()}

    def with_deadline(self, seconds: float) -> PreparedRun:
        """Return the run with another time after which it stops."""
        config = self.config.model_copy(update={"deadline": seconds})
        return replace(self, config=config)


def prepare(
    config: RunConfig,
    data: Any = None,
    *,
    providers: Sequence[judge_models.AnyJudge] | None = None,
    loaded_criteria: Mapping[str, Criterion] | None = None,
    wanted_texts: WantedTexts | None = None,
    rated: bool = False,
) -> PreparedRun:
    """Read and check everything that can be checked before the first request. Raises JudgeError.

    `providers` replace the configuration's judges. `loaded_criteria` are criteria by name that are
    not read from files. With `rated`, people must have rated a criterion of the run, and the
    default criteria are those that they rated.
    """
    _check_options(config, data)
    source = config.data if data is None else data
    taken = result_files.take(config, source)
    config = taken.config
    if isinstance(config, RankConfig) and config.judge_columns:
        return _prepare_preferences(config, taken.data, taken.notes)
    models = config.model if providers is None else providers
    inputs = _read_inputs(
        config,
        taken.data,
        loaded_criteria or {},
        wanted_texts,
        rated=rated,
    )
    config = inputs.config
    rows = inputs.samples
    measured = MetricProgress()
    ask = DeferredClient() if models or config.replay else None
    judging = bool(inputs.criteria)
    has_judged_columns = judging or bool(inputs.judged_columns)
    metrics, metric_notes = _build_metrics(
        config,
        rows,
        measured,
        ask,
        alone=not has_judged_columns,
    )
    metric_setup.precheck(metrics, rows)
    opened = _open_judges(config, models, judging=judging, metrics=metrics)
    pairs = _pairs_of_ranking(config, rows)
    judge_notes = judge_models.judge_notes(config, metrics, opened)
    pair_notes = [] if pairs is None else pairs.notes()
    # In the order in which reports show them.
    notes = (*metric_notes, *judge_notes, *taken.notes, *inputs.notes, *pair_notes)
    data_info = _describe_data(config.data, len(rows))
    given_scores = judge_columns.given_scores(inputs.judged_columns, rows)
    prepared = PreparedRun(
        config=config,
        samples=rows,
        criteria=inputs.criteria,
        metrics=metrics,
        opened=opened,
        language=inputs.language,
        data=data_info,
        notes=notes,
        pairs=pairs,
        measured=measured,
        ask=ask,
        wanted_texts=wanted_texts,
        preferences=inputs.preferences,
        default_criteria=inputs.criteria_are_default,
        given_scores=given_scores,
    )
    _check_replaced(prepared)
    # Only now, because opening a recording makes its file.
    return _with_recording(prepared)


def _with_recording(prepared: PreparedRun) -> PreparedRun:
    """Return the run with its recording open, if it has one. Raises JudgeError."""
    config = prepared.config
    if config.record is None or _replays_its_recording(config, config.record):
        return prepared
    recording = _open_recorder(config.record, prepared.judges.values())
    return replace(prepared, recording=recording)


def _check_options(config: RunConfig, data: Any) -> None:
    """Raise ConfigError without data, for contradictory options, and for a bad folder."""
    if data is None and config.data is None:
        example = "judge run summaries.jsonl"
        if in_python():
            example = "judge.evaluate('summaries.jsonl')"
        raise ConfigError(f"no data: name a file, for example {example}")
    if config.retry_failed and not config.replies_kept_in:
        raise ConfigError(
            f"{option('retry_failed')}: without a cache, every judgment would be paid again"
        )
    check_output_dir(config.out)


@dataclass(frozen=True)
class _Inputs:
    """What a run reads before it opens judges and metrics.

    `samples` have people's ratings, except ratings that were used to make a prompt.
    `judged_columns` are the columns of the data with a judge's scores. `preferences` are people's.
    """

    config: RunConfig
    samples: list[Sample]
    criteria: list[Criterion]
    judged_columns: list[judge_columns.JudgeColumn]
    preferences: Sequence[PairRating]
    language: PromptLanguage
    notes: tuple[str, ...]
    criteria_are_default: bool


def _read_inputs(
    config: RunConfig,
    source: Any,
    loaded_criteria: Mapping[str, Criterion],
    wanted_texts: WantedTexts | None,
    *,
    rated: bool,
) -> _Inputs:
    """Read and check the texts, the criteria and the ratings. Raises JudgeError."""
    config, source = judge_columns.unfold(config, source)
    rows = _read_samples(config, source)
    judged_columns, scale_notes = judge_columns.read_judge_columns(config, rows)
    if not config.criteria:
        rows = judge_columns.name_ratings(rows, judged_columns)
    criteria_are_default = config.criteria is None
    sheet, config = human_ratings.read(config, rows, rated=rated)
    judged = bool(config.criteria)
    language, language_notes = prompt_language.choose_prompt_language(
        config, rows, judged=judged
    )
    chosen = _load_criteria(config, rows, language.name, loaded_criteria, wanted_texts)
    language_notes += prompt_language.notes_on_criteria(config, rows, chosen, language)
    # A suite has several runs, and checks the fields for all of them.
    if wanted_texts is None:
        scored = [*config.score_columns, *config.judge_columns]
        require_known_fields(config.map, chosen, scored)
    own_criteria = [column.as_criterion() for column in judged_columns]
    rated_criteria = [*chosen, *own_criteria]
    rows, sheet_notes = human_ratings.join(config, rows, sheet, rated_criteria)
    # On all ratings, before those that made a prompt are withheld.
    row_notes = data_notes(config, rows, rated_criteria)
    notes = [*scale_notes, *sheet_notes, *row_notes]
    used_by_criterion = {criterion.name: criterion.used for criterion in chosen}
    notes += ledger.overlap(rows, used_by_criterion, wanted_texts)
    rows = list(ledger.withhold(rows, used_by_criterion))
    human_ratings.check(config, rows, rated_criteria, rated=rated)
    return _Inputs(
        config=config,
        samples=rows,
        criteria=chosen,
        judged_columns=judged_columns,
        preferences=sheet.pairs,
        language=language,
        notes=(*notes, *language_notes),
        criteria_are_default=criteria_are_default,
    )


def _prepare_preferences(
    config: RankConfig,
    source: Any,
    notes: Sequence[str],
) -> PreparedRun:
    """Return the run that ranks the systems by the preferences in the data. No judge is asked."""
    preferences = read_preferences(config, source)
    rows = preferences.samples
    systems = dict.fromkeys(row.system for row in rows)
    check_against(config, list(systems))
    given_scores = preferences.given_scores
    if config.against:
        given_scores, n_others = given_scores.compared_with(config.against)
        if n_others:
            others = f"{plural(n_others, 'preference')} between other systems"
            note = f"{option('against', config.against)} leaves out {others}."
            notes = [*notes, Remark(note)]
    language, _ = prompt_language.choose_prompt_language(config, rows, judged=False)
    # With one order, each pair counts. With two, pairs that lack an order would not count.
    config = config.model_copy(update={"criteria": (), "orders": preferences.orders})
    data_info = _describe_data(config.data, len(rows))
    prepared = PreparedRun(
        config=config,
        samples=rows,
        criteria=[],
        metrics={},
        opened={},
        language=language,
        data=data_info,
        notes=(*notes, *samples.unread_sheets(config.data)),
        given_scores=given_scores,
    )
    _check_replaced(prepared)
    return prepared


def _pairs_of_ranking(config: RunConfig, rows: Sequence[Sample]) -> PairPlan | None:
    """Return the pairs that a ranking compares, None for another run."""
    if not isinstance(config, RankConfig):
        return None
    return choose_pairs(
        rows,
        orders=config.orders,
        budget=config.pairs,
        seed=config.seed,
        against=config.against,
    )


def _check_replaced(prepared: PreparedRun) -> None:
    """Raise StorageError if the run in the output folder has results that this one would not have.

    Such results are texts, judges, criteria, metrics and pairs. With `overwrite`, and if the stored
    run cannot be read, nothing is checked.
    """
    config = prepared.config
    if config.out is None or config.overwrite:
        return
    try:
        info = read_info(config.out)
        stored = stored_samples(config.out)
    except OtherFormat:
        # A run of another version of judge is not damaged: its results may still be needed.
        raise
    except StorageError:
        return
    lost_columns = _lost_columns(prepared, info)
    lost = [*_lost_texts(prepared, info, stored), *lost_columns]
    if lost:
        listed_results = "; ".join(lost)
        out_option = option("out")
        overwrite_option = option("overwrite", True)
        raise StorageError(
            f"{config.out} has a run with results that this run would not have: {listed_results}. "
            f"Name another folder with {out_option}, or add {overwrite_option} to replace that run"
        )


def _lost_texts(
    prepared: PreparedRun,
    info: RunInfo,
    stored: Iterable[Sample],
) -> Iterator[str]:
    """Yield how many stored texts this run does not have.

    Between different files, a text with another output is another text. In one file that was
    edited, it is the same text.
    """
    path = prepared.data.path
    same_file = path != "" and path == info.data.path

    def identities(samples: Iterable[Sample]) -> set[_TextIdentity]:
        return {
            _TextIdentity.of(sample, with_output=not same_file) for sample in samples
        }

    stored_texts = identities(stored)
    texts = identities(prepared.samples)
    lost = stored_texts - texts
    if lost:
        first_lost = min(lost)
        example = text_name(first_lost.item, first_lost.system)
        texts_lost = plural(len(lost), "text")
        yield f"{texts_lost}, such as {example}"


@dataclass(frozen=True, slots=True, order=True)
class _TextIdentity:
    """The item and the system of a text, and its output, "" if outputs are not compared."""

    item: str
    system: str
    output: str

    @classmethod
    def of(cls, sample: Sample, *, with_output: bool) -> _TextIdentity:
        output = whole(sample.output) if with_output else ""
        return cls(whole(sample.item), whole(sample.system), output)


def _lost_columns(prepared: PreparedRun, info: RunInfo) -> Iterator[str]:
    """Yield the judges, criteria, metrics and pairs that only the stored run has."""
    config = prepared.config
    earlier = info.config
    criteria = [criterion.name for criterion in prepared.criteria]
    names_by_kind: dict[str, tuple[Iterable[str], Collection[str]]] = {
        "judge": (info.judges, prepared.judges),
        "criterion": (info.criteria, criteria),
        "metric": (earlier.metrics or (), prepared.metrics),
        "score column": (earlier.score_columns, config.score_columns),
        "judge column": (earlier.judge_columns, config.judge_columns),
    }
    for kind, (earlier_names, names) in names_by_kind.items():
        for earlier_name in earlier_names:
            if earlier_name not in names:
                yield f"the {kind} {earlier_name}"

    options_of_pairs = ["orders", "pairs"]
    # In a run that scores texts, `against` chooses the tests only, not the texts that are judged.
    if isinstance(config, RankConfig):
        options_of_pairs.append("against")
    for option_name in options_of_pairs:
        # Only rankings have all of these options.
        if getattr(config, option_name, None) != getattr(earlier, option_name, None):
            compares_pairs = info.orders is not None
            yield "other pairs of texts" if compares_pairs else "scores of single texts"
            return


def _describe_data(data: Path | None, rows: int) -> DataInfo:
    if data is None:
        return DataInfo(rows=rows)
    sha256 = samples.content_hash(data)
    files = samples.files(data)
    return DataInfo(
        path=str(data),
        sha256=sha256,
        files=len(files),
        rows=rows,
    )


def _open_judges(
    config: RunConfig,
    models: Sequence[judge_models.AnyJudge],
    *,
    judging: bool,
    metrics: Mapping[str, Metric],
) -> dict[str, judge_models.OpenedJudge]:
    """Open the judges that criteria or metrics ask, and check sampling and engine.

    Raises ConfigError.
    """
    if not judging and not any(metric.asks for metric in metrics.values()):
        return {}
    judges = judge_models.open_judges(config, models)
    for judge in judges.values():
        # Called only for their errors: a weighting that the endpoint does not support, or an
        # engine that cannot run.
        strategies.strategies_for(judge.settings, judge.provider.decides)
        if judging:
            engines.create_engine(config.engine, engine_context(config, judge.provider))
    return judges


def _build_metrics(
    config: RunConfig,
    rows: Sequence[Sample],
    measured: MetricProgress,
    ask: DeferredClient | None,
    *,
    alone: bool,
) -> tuple[dict[str, Metric], list[str]]:
    """Build the metrics, with notes about them.

    Raises ConfigError if there are neither criteria nor metrics.
    """
    names, notes = metric_setup.default_metrics(config, rows)
    if alone and not (names or config.score_columns):
        no_references = ""
        if config.metrics is None and not any(sample.references for sample in rows):
            column = option("map", {"references": "COLUMN"})
            no_references = _NO_REFERENCES.format(named=column)
        raise ConfigError(
            f"nothing to do: no criteria and no metrics; name some{no_references}"
        )
    return metric_setup.build_metrics(config, names, measured, ask), notes


def _read_samples(config: RunConfig, source: Any) -> list[Sample]:
    """Read the samples, up to the limit of the configuration."""
    score_names = [*config.score_columns, *config.judge_columns]
    stream = samples.stream(
        source,
        mapping=config.map,
        systems=config.output_columns,
        where=config.where,
        scores=score_names,
        texts_optional=bool(config.judge_columns),
    )
    split = suspect_cells.split_sentences(stream, config.sentence_marks)
    rows = list(islice(split, config.limit))
    names_of_systems = dict.fromkeys(row.system for row in rows)
    check_against(config, list(names_of_systems))
    return rows


def prompt(
    criterion: str,
    data: Any,
    *,
    item: str | None = None,
    system: str | None = None,
    opponent: str | None = None,
    system_message: str | None = None,
    **options: Any,
) -> Prompt:
    """Return the prompt that a run would send for one sample. Ask no model.

    With `opponent`, it is the prompt of a comparison with the text of that system.

    `item`, `system` and `opponent` default to the first ones of the data. With `opponent`, a
    question without a template compares two texts. `system_message` comes first, as in a run.
    Raises JudgeError.
    """
    config = load_config(options={**options, "criteria": [criterion]})
    rows = load_texts(config, data)
    language = config.language or text.language_of(rows)
    pairwise = None if opponent is None else True
    loaded = criteria_module.load(criterion, language=language, pairwise=pairwise)
    (chosen,) = _load_criteria(config, rows, language, {criterion: loaded}, None)
    first_sample = select_texts(rows, item, system)[0]
    second_sample = None
    if chosen.pairwise:
        texts_of_item = [sample for sample in rows if sample.item == first_sample.item]
        others = [
            sample for sample in texts_of_item if sample.system != first_sample.system
        ]
        if not others:
            raise ConfigError(
                f"item {first_sample.item!r}: only one system has a text of it"
            )
        second_sample = select_texts(others, None, opponent)[0]
    renderer = make_renderers([chosen])[chosen.name]
    rendered = renderer.render(first_sample, second_sample)
    if not system_message:
        return rendered
    message: Message = {"role": "system", "content": system_message}
    return replace(rendered, messages=(message, *rendered.messages))


def load_texts(config: RunConfig, source: Any) -> list[Sample]:
    """Load all texts of a run, without its limit. Raises DataError."""
    rows = samples.load(
        source,
        mapping=config.map,
        systems=config.output_columns,
        where=config.where,
    )
    return list(suspect_cells.split_sentences(rows, config.sentence_marks))


_APPLIED: Mapping[str, Any] = {
    "map": {},
    "systems": (),
    "where": {},
    "limit": None,
    "ratings": None,
    "rating_criterion": "",
    "metrics": (),
    "set": {},
    "out": None,
}


def config_of_loaded_texts(config: RunConfig, **changes: Any) -> RunConfig:
    """Return the configuration of a run on texts that a command has loaded, with `changes`.

    The options that chose, mapped and rated these texts are reset, as a run would apply them again.
    So are metrics and the output folder, which are the command's own and not those of its runs.
    """
    return config.with_rating_rows(None).model_copy(update={**_APPLIED, **changes})


def select_texts(
    rows: Sequence[Sample],
    item: str | None,
    system: str | None,
) -> list[Sample]:
    """Return the texts of an item and a system. None selects all.

    The beginning of an item's name is enough if no other item has it. Raises ConfigError if there
    are no such texts.
    """
    selected = list(rows)
    if item is not None:
        name = item_called(item, dict.fromkeys(row.item for row in rows))
        selected = [row for row in selected if row.item == name]
    if system is not None:
        systems = list(dict.fromkeys(row.system for row in selected))
        plugins.require_known("system", [system], systems, option("system"))
        selected = [row for row in selected if row.system == system]
    return selected


# Checks and conversions that commands share


def engine_context(config: RunConfig, provider: Provider) -> engines.EngineContext:
    """Return the context in which the run's engine sends requests to a judge."""
    folder = None if config.cache is False else cache_location(config.cache)
    return engines.EngineContext(
        provider, folder, JudgeProgress(), workers=config.ray_workers
    )


def criterion_for(criterion: Criterion, provider: Provider) -> Criterion:
    """Return the criterion in the form that this provider is asked."""
    return asked_by(criterion, decides=provider.decides)


def is_wanted(prepared: PreparedRun, sample: Sample, criterion: Criterion) -> bool:
    """Return whether the run judges this text on this criterion."""
    wanted_texts = prepared.wanted_texts
    if wanted_texts is None:
        return True
    return sample.key in wanted_texts.get(criterion.name, ())


def check_against(config: RunConfig, systems: list[str]) -> None:
    """Raise ConfigError if the system that all others are compared with is none of these."""
    against = config.against
    if against is not None and against not in systems:
        message = plugins.unknown_name_message("system", against, systems)
        raise ConfigError(f"{option('against', against)}: {message}")


def reject_duplicate_columns(names: Sequence[str]) -> None:
    """Raise ConfigError if two columns would have the same name."""
    counts = Counter(names)
    twins = sorted(column_name for column_name, count in counts.items() if count > 1)
    if twins:
        raise ConfigError(
            f"two columns would be called {twins[0]!r}; a criterion is called by its file's name: "
            "rename it"
        )


def check_output_dir(out: Path | None) -> None:
    """Raise StorageError if the path is a file, cannot be written, or has another tool's report.

    Finishes or removes what a killed run left there.
    """
    if out is None:
        return
    named = option("out", str(out))
    parents = (out, *out.absolute().parents)
    nearest = next(parent for parent in parents if parent.exists())
    if not nearest.is_dir():
        raise StorageError(f"{named}: {nearest} is a file; name a folder")
    try:
        try_writing(nearest)
    except OSError as error:
        problem = f"{nearest} cannot be written to ({error.strerror or error})"
        raise StorageError(f"{named}: {problem}; name another folder") from error
    recover(out, leftovers=True)
    report_files = [out / file_name for file_name in ("report.html", "report.md")]
    has_report = any(file.exists() for file in report_files)
    if has_report and not (out / "run.json").exists():
        raise StorageError(
            f"{named}: holds a report that is not from judge; name another folder"
        )


def _load_criteria(
    config: RunConfig,
    rows: Sequence[Sample],
    language: str,
    loaded_criteria: Mapping[str, Criterion],
    wanted_texts: WantedTexts | None,
) -> list[Criterion]:
    """Load the criteria of a run, apply its options, and check them against the texts to judge."""
    chosen: list[Criterion] = []
    column_names: list[str] = []
    with_own_mark: list[str] = []
    for entry in config.criteria or ():
        if entry in loaded_criteria:
            loaded = criteria_module.in_language(loaded_criteria[entry], language)
        else:
            loaded = _load_criterion(config, entry, language)
            if loaded.pass_at is not None:
                with_own_mark.append(loaded.name)
        criterion = configured(loaded, config)
        judged = rows
        if wanted_texts is not None:
            texts = wanted_texts.get(criterion.name, ())
            judged = [sample for sample in rows if sample.key in texts]
        criteria_module.check_samples(criterion, judged)
        chosen.append(criterion)
        column_names.append(criterion.name)
        if criterion.is_checklist:
            # Each question is a column in the results of one judge.
            column_names += [part.name for part in parts(criterion)]
    reject_duplicate_columns(column_names)
    all_have_own_mark = len(chosen) > 0 and len(with_own_mark) == len(chosen)
    if config.pass_at is not None and all_have_own_mark:
        pass_option = option("pass_at", config.pass_at)
        criteria = listed(with_own_mark)
        raise ConfigError(
            f"{pass_option}: {criteria} already says what passes; leave the option out"
        )
    return chosen


def _load_criterion(config: RunConfig, entry: str, language: str) -> Criterion:
    """Load a criterion; an error about a sentence or keys begins with its line in run.yaml."""
    pairwise = isinstance(config, RankConfig)
    try:
        return criteria_module.load(entry, language=language, pairwise=pairwise)
    except CriterionError as error:
        if keys_of(entry) is None:
            raise
        raise CriterionError(f"{config.criteria_at}{error}") from error


def _replays_its_recording(config: RunConfig, record: Path) -> bool:
    """Return whether the run replays the file that it would record, and has nothing to add to it.

    run.yaml may name the file as `record`, relative to itself, and the command line as `--replay`.
    """
    return config.replay is not None and config.replay.resolve() == record.resolve()


def _open_recorder(path: Path, judges: Iterable[Provider]) -> Recorder:
    """Open the recording, which repeats the notices of these judges. Raises JudgeError."""
    named = option("record", str(path))
    if not judges:
        raise ConfigError(
            f"{named}: no model is called in this run, so there are no replies to record"
        )
    all_notices = [judge.notice for judge in judges]
    notices = dict.fromkeys(filter(None, all_notices))
    return Recorder(path, " ".join(notices))
