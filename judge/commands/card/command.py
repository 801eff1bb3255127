"""`judge validate --card`: judge texts, test the judge with changes to them, and make its card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from judge import criteria
from judge.commands.card.build_card import build_card
from judge.commands.card.card import ORIGINAL, PROBES, CardEvidence, JudgeCard, Probe
from judge.commands.card.card_texts import CardTexts, perturb
from judge.commands.card.finished import (
    ITEMS,
    finished_card,
    is_run,
    refuse_for_finished_run,
)
from judge.commands.card.paraphrases import MOST_REQUESTS, stand_ins, write_paraphrases
from judge.commands.card.people import people_findings, why_no_ratings
from judge.commands.card.perturbations import best_label
from judge.commands.card.probes import QUESTION_WORDING
from judge.commands.evaluate import Criteria, reject_unsupported, to_config
from judge.commands.options import JudgeOptions
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import blocking, public_api
from judge.config import RankConfig, RunConfig, split
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.files import claim_folder, store
from judge.core.format import plural, to_json
from judge.core.messages import in_python, option
from judge.core.plugins import require_known
from judge.core.records import Criterion, Sample
from judge.core.request_options import Judge
from judge.criteria.render import MissingInput, UnequalInput
from judge.data import ledger
from judge.execution.progress import Progress
from judge.metrics.base import ModelError
from judge.providers import Provider
from judge.results.result import Result
from judge.results.run_info import CriterionInfo, RunInfo
from judge.run import human_ratings, judge_run, prompt_language
from judge.run.cost_estimate import cost_summary
from judge.run.pipeline import Display, Runs
from judge.run.preparation import (
    PreparedRun,
    WantedTexts,
    check_output_dir,
    load_texts,
    prepare,
)
from judge.scoring.multi_criteria import PromptRenderer, make_renderers
from judge.stats.alt_test import EPSILON
from judge.table import Table, split_rows

if TYPE_CHECKING:
    from judge.commands.evaluate import Data, Model
    from judge.data.ratings import RatingSource

DRAWS, TEMPERATURES = 5, (0.0, 1.0)
"""How often each text is judged again, at each of these temperatures."""
TEXTS, MAIN, WORDINGS, QUESTIONS, PAIRS = (
    "texts",
    "changed texts",
    "other wordings",
    "other questions",
    "pairs in both orders",
)
_REPEATS = "repeats at temperature {:g}"
DRAWN = [_REPEATS.format(temperature) for temperature in TEMPERATURES]
"""Names of the runs."""
_CARD_FILES = {"card.md": "markdown", "card.html": "html", "card.json": "json"}
_RUN_INFO = ("seconds", "requests", "usage", "cost", "served_by", "unmet")
"""What the card reports about each run."""
_USED_UP: dict[str, Any] = {
    "metrics": (),
    "set": {},
    "map": {},
    "systems": (),
    "where": {},
    "limit": None,
    "ratings": None,
    "rating_criterion": "",
    "out": None,
}
"""Options to reset once the texts are read: no metric is measured, and `out` is the folder of the
card.
"""


@dataclass(frozen=True, slots=True)
class CardPlan:
    """A card whose texts are read and whose requests are checked. Nothing has been sent yet.

    `runs` are the runs to make, by name and in order; `model` names the judge. `unavailable` gives
    the reason for each probe that cannot be made, and `notes` are on people's ratings. `epsilon` is
    the judge's advantage in the alternative annotator test. `unwritten` are the criteria whose
    question the judge puts into other words first; until then the run QUESTIONS has texts of the
    same length.
    """

    config: RunConfig
    model: str
    probes: tuple[Probe, ...]
    texts: CardTexts
    runs: Mapping[str, PreparedRun]
    unavailable: Mapping[str, str] = field(default_factory=dict)
    unwritten: tuple[Criterion, ...] = ()
    notes: tuple[str, ...] = ()
    epsilon: float = EPSILON

    @property
    def judgments(self) -> int:
        """The number of judgments of all runs."""
        return judge_run.count_judgments(self.runs.values())


@public_api("card")
async def card_async(
    data: Data | Result,
    criteria: Criteria | None = None,
    *,
    model: Model | None = None,
    items: int = ITEMS,
    probes: str | Sequence[str] = PROBES,
    ratings: RatingSource | None = None,
    rating_criterion: str = "",
    epsilon: float = EPSILON,
    progress: Watch = None,
    out: str | Path | None = None,
    **options: Unpack[JudgeOptions],
) -> JudgeCard:
    """Answer whether a judge may be trusted: the judge card.

    Judges all texts of `items` items, compares the scores with people's ratings if there are any,
    and tests the judge with changes to one text of each item. For a Result, or the folder of a run,
    no request is made: the card has the lines that the stored scores show.

    - `model`: one judge.
    - `probes`: `sensitivity` (does each criterion notice its own damage and no other), `bias`
      (position, length, copying, own family, wording of the prompt, scale, chance) and `injection`
      (does a text's instruction work).
    - `ratings`: people's ratings, if the data have none; `rating_criterion` is their criterion if
      they name none.
    - `epsilon`: the judge's advantage in the alternative annotator test.
    - `out`: the folder for `card.md`, `.html` and `.json`, the run of the texts (`run`), and that
      of the changed texts (`changed`).

    The other arguments are those of `judge.evaluate`. `card.failures` counts failed judgments.
    Raises JudgeError for wrong arguments or data and for a failing endpoint.
    """
    if isinstance(data, Result) or (isinstance(data, str | Path) and is_run(data)):
        arguments = {"criteria": criteria, "model": model, "out": out, **options}
        refuse_for_finished_run(arguments, items=items, probes=probes)
        return finished_card(
            data,
            where=options.get("where"),
            ratings=ratings,
            rating_criterion=rating_criterion,
            epsilon=epsilon,
            seed=options.get("seed") or 0,
        )
    reject_unsupported(options, "card", "a judge card")
    settings = {"ratings": ratings, "rating_criterion": rating_criterion, "out": out, **options}
    config, providers, custom_criteria = to_config(RunConfig, data, criteria, model, settings)
    card_plan = plan_card(
        config,
        data,
        items=items,
        probes=probes,
        providers=providers,
        custom_criteria=custom_criteria,
        epsilon=epsilon,
    )
    async with displayed(progress) as counts:
        return await run_card(card_plan, counts)


card = blocking(card_async)


def plan_card(
    config: RunConfig,
    data: Any = None,
    *,
    items: int = ITEMS,
    probes: str | Sequence[str] = PROBES,
    providers: Sequence[Judge | Provider] | None = None,
    custom_criteria: Mapping[str, Criterion] | None = None,
    epsilon: float = EPSILON,
) -> CardPlan:
    """Make the texts of a card and prepare the runs that judge them. Raises JudgeError."""
    judges = config.model if providers is None else providers
    source = config.data if data is None else data
    chosen_probes = _check_arguments(config, source, items, probes, judges)
    rows = load_texts(config, source)[: config.limit]
    prompt_language_of_rows, _ = prompt_language.choose_prompt_language(config, rows)
    language = prompt_language_of_rows.name
    names = criteria.default_criteria(rows) if config.criteria is None else config.criteria
    loaded = _load_criteria(names, custom_criteria or {}, language)
    # Before items are chosen: a rating of a text outside the sample is no error.
    with_criteria = config.model_copy(update={"criteria": names})
    rated = _with_ratings(with_criteria, rows, loaded)
    best_labels = {criterion.name: best_label(criterion) for criterion in loaded}
    texts = perturb(
        rated.samples,
        best_labels,
        chosen_probes,
        items=items,
        language=language,
        seed=config.seed,
    )
    # The texts have their ratings now, so no run reads the file again.
    base_config = config.with_rating_rows(None).model_copy(
        update={**_USED_UP, "language": language, "criteria": names}
    )
    runs = _prepare_main_runs(
        base_config,
        rated.samples,
        texts,
        out=config.out,
        judges=judges,
        custom_criteria=custom_criteria,
    )
    main = runs[TEXTS]
    card_plan = CardPlan(
        config=base_config.model_copy(update={"out": config.out}),
        model=next(iter(main.judges)),
        probes=chosen_probes,
        texts=_without_used_ratings(texts, main.criteria),
        runs=runs,
        notes=rated.notes,
        epsilon=epsilon,
    )
    return _add_bias_runs(card_plan) if "bias" in chosen_probes else card_plan


def _load_criteria(
    criterion_names: Sequence[str], custom_criteria: Mapping[str, Criterion], language: str
) -> list[Criterion]:
    """Return the criteria; a name of `custom_criteria` is that one, and no file is read."""
    loaded = []
    for criterion_name in criterion_names:
        criterion = custom_criteria.get(criterion_name)
        loaded.append(criterion or criteria.load(criterion_name, language=language))
    return loaded


def _prepare_main_runs(
    config: RunConfig,
    samples: Sequence[Sample],
    texts: CardTexts,
    *,
    out: Path | None,
    judges: Sequence[Judge | Provider],
    custom_criteria: Mapping[str, Criterion] | None,
) -> dict[str, PreparedRun]:
    """Prepare the run of the unchanged texts, and that of the changed ones if there are any.

    `samples` are all texts of the data, and `texts` those that were chosen from them; `out` is the
    folder of the card. Raises ConfigError if a recording has several judges.
    """

    def prepare_in(
        folder: str, rows: Sequence[Sample], wanted_texts: WantedTexts | None
    ) -> PreparedRun:
        folder_of_run = None if out is None else out / folder
        return prepare(
            config.model_copy(update={"out": folder_of_run}),
            list(rows),
            providers=judges,
            loaded_criteria=custom_criteria,
            wanted_texts=wanted_texts,
        )

    chosen_items = {sample.item for sample in texts.originals}
    # Every system's text of these items: agreement and differences need more than one text of each.
    unchanged = [sample for sample in samples if sample.item in chosen_items]
    main = prepare_in("run", unchanged, None)
    if len(main.judges) > 1:
        raise ConfigError(
            f"the recording has several judges: name one of {', '.join(main.judges)} with "
            f"{option('model')}"
        )
    runs = {TEXTS: main}
    # The unchanged texts are judged in the first run.
    changed = [sample for sample in texts.changed if sample.system != ORIGINAL]
    if changed:
        runs[MAIN] = prepare_in("changed", changed, texts.wanted_texts)
    return runs


def _without_used_ratings(texts: CardTexts, chosen: Sequence[Criterion]) -> CardTexts:
    """Return the texts without the ratings from which a criterion was made."""
    used_by_criterion = {criterion.name: criterion.used for criterion in chosen}
    return replace(
        texts,
        originals=tuple(ledger.withhold(texts.originals, used_by_criterion)),
        others=tuple(ledger.withhold(texts.others, used_by_criterion)),
    )


@dataclass(frozen=True, slots=True)
class _RatedTexts:
    """Texts with people's ratings, and notes on the ratings."""

    samples: list[Sample]
    notes: tuple[str, ...]


def _with_ratings(
    config: RunConfig, rows: Sequence[Sample], chosen: Sequence[Criterion]
) -> _RatedTexts:
    """Join the ratings of the configuration's file to all texts. Raises JudgeError."""
    sheet, _ = human_ratings.read(config, rows, rated=False)
    samples, notes = human_ratings.join(config, rows, sheet, chosen)
    return _RatedTexts(samples, tuple(notes))


def _check_arguments(
    config: RunConfig,
    source: Any,
    items: int,
    probes: str | Sequence[str],
    judges: Sequence[Judge | Provider],
) -> tuple[Probe, ...]:
    """Return the probes in the order of the card. Raises ConfigError for unsuitable arguments."""
    names = split(probes) if isinstance(probes, str) else list(probes)
    require_known("probe", names, PROBES, option("probes"))
    if not names:
        raise ConfigError(f"{option('probes')}: name at least one of {', '.join(PROBES)}")
    reject_unsupported(config, "card", "a judge card")
    if not isinstance(items, int) or items < 1:
        raise ConfigError(f"{option('items', items)}: write a whole number, 1 or more")
    if len(judges) > 1:
        raise ConfigError(
            "a judge card is about one judge: name one, and make a card of each judge of a panel"
        )
    if config.criteria == ():
        raise ConfigError(
            f"{option('criteria', [] if in_python() else 'none')}: a judge card needs a criterion"
        )
    check_output_dir(config.out)
    if source is None:
        raise ConfigError(
            "no data: name a file, for example judge validate summaries.jsonl "
            f"{option('card', True)} {option('model', 'gpt-5.4-mini')}"
        )
    return tuple(probe_name for probe_name in PROBES if probe_name in names)


def _add_bias_runs(card_plan: CardPlan) -> CardPlan:
    """Add the runs that show biases, and the reasons why some of them cannot be made."""
    main = card_plan.runs[TEXTS]
    texts = card_plan.texts
    runs = dict(card_plan.runs)
    paraphrases: list[Criterion] = []
    unavailable: dict[str, str] = {}
    for criterion in main.criteria:
        try:
            paraphrases += [
                criteria.paraphrase(criterion, wording) for wording in criteria.PARAPHRASES
            ]
        except CriterionError as error:
            unavailable[f"wording of {criterion.name}"] = str(error)
    if paraphrases:
        runs[WORDINGS] = _prepare_run(card_plan, texts.originals, paraphrases)
    else:
        # One reason for the whole probe, instead of one for each criterion.
        unavailable = {"wording": "; ".join(unavailable.values())}
    unwritten = _add_question_run(card_plan, runs, unavailable)
    judge = next(iter(main.judges.values()))
    if judge.decides:
        unavailable["repeats"] = "a decision endpoint returns probabilities and samples no replies"
    else:
        for temperature in TEMPERATURES:
            sampling = {"weighting": "samples", "draws": DRAWS, "temperature": temperature}
            runs[_REPEATS.format(temperature)] = _prepare_run(
                card_plan, texts.originals, main.criteria, **sampling
            )
    _add_position_run(card_plan, runs, unavailable)
    return replace(card_plan, runs=runs, unavailable=unavailable, unwritten=unwritten)


def _add_question_run(
    card_plan: CardPlan, runs: dict[str, PreparedRun], unavailable: dict[str, str]
) -> tuple[Criterion, ...]:
    """Add the run that asks each criterion's question in other words.

    Return the criteria whose wordings the judge has to write. Adds the reason for each criterion
    that has none.
    """
    main = card_plan.runs[TEXTS]
    (judge,) = main.judges.values()
    rephrased: list[Criterion] = []
    unwritten: list[Criterion] = []
    for criterion in main.criteria:
        wordings = criterion.paraphrases
        try:
            if not wordings:
                # The plan states the cost before the judge has written any wording.
                wordings = stand_ins(criterion)
                if judge.decides:
                    raise CriterionError("its header has none, and a decision endpoint writes none")
                unwritten.append(criterion)
            rephrased += criteria.with_questions(criterion, wordings)
        except CriterionError as error:
            unavailable[f"{QUESTION_WORDING} by {criterion.name}"] = str(error)
    if rephrased:
        runs[QUESTIONS] = _prepare_run(card_plan, card_plan.texts.originals, rephrased)
    return tuple(unwritten)


async def _with_written_questions(card_plan: CardPlan, runs: Runs) -> CardPlan:
    """Return the plan with the wordings that the judge wrote, and why it wrote none."""
    if not card_plan.unwritten:
        return card_plan
    originals = card_plan.texts.originals
    writing = _prepare_run(card_plan, originals, card_plan.unwritten)
    written = await write_paraphrases(card_plan.unwritten, writing, runs)
    unavailable = dict(card_plan.unavailable)
    rephrased: list[Criterion] = []
    for criterion in card_plan.runs[TEXTS].criteria:
        wordings = written.get(criterion.name, criterion.paraphrases)
        if isinstance(wordings, ModelError):
            unavailable[f"{QUESTION_WORDING} by {criterion.name}"] = (
                f"the judge wrote no other wordings ({wordings.message}): "
                "write three as `paraphrases` into its header"
            )
        elif wordings:
            rephrased += criteria.with_questions(criterion, wordings)
    planned_runs = dict(card_plan.runs)
    del planned_runs[QUESTIONS]  # the run of the stand-ins, which is not made
    if rephrased:
        planned_runs[QUESTIONS] = _prepare_run(card_plan, originals, rephrased)
    return replace(card_plan, runs=planned_runs, unavailable=unavailable, unwritten=())


def _add_position_run(
    card_plan: CardPlan, runs: dict[str, PreparedRun], unavailable: dict[str, str]
) -> None:
    """Add the run that compares texts in pairs, or the reason why it cannot be made."""
    main = card_plan.runs[TEXTS]
    texts = card_plan.texts
    names = [criterion.name for criterion in main.criteria]
    builtin = criteria.builtin(card_plan.config.language or "en", pairwise=True)
    pairwise = {criterion.name: criterion for criterion in builtin if criterion.name in names}
    # In the order of the card's criteria.
    pairwise = {
        criterion_name: pairwise[criterion_name]
        for criterion_name in names
        if criterion_name in pairwise
    }
    if not texts.others:
        unavailable["position"] = "no item has different texts of two systems"
        return
    if not pairwise:
        unavailable["position"] = f"there is no pairwise criterion called {' or '.join(names)}"
        return
    unequal = _unequal_inputs(pairwise, texts)
    for criterion_name in unequal:
        del pairwise[criterion_name]
    if not pairwise:
        unavailable["position"] = "; ".join(unequal.values())
        return
    rows = sorted((*texts.originals, *texts.others), key=lambda sample: sample.system)
    settings = {
        **dict(card_plan.config),
        # The judges are open already, also those of a recording.
        "replay": None,
        "out": None,
        "criteria": tuple(pairwise),
    }
    judges = list(main.judges.values())
    try:
        config = RankConfig(**settings)
        runs[PAIRS] = prepare(config, rows, providers=judges, loaded_criteria=pairwise)
    except (ConfigError, CriterionError, DataError) as error:
        unavailable["position"] = str(error)
        return
    for criterion_name in names:
        if criterion_name in unequal:
            unavailable[f"position by {criterion_name}"] = unequal[criterion_name]
        elif criterion_name not in pairwise:
            unavailable[f"position by {criterion_name}"] = "no pairwise criterion has this name"


def _unequal_inputs(pairwise: Mapping[str, Criterion], texts: CardTexts) -> dict[str, str]:
    """Return, by criterion, why it can compare no two texts: all pairs differ in what it reads.

    Judging would raise this error after the earlier runs of the card are paid.
    """
    opponent_by_item = {opponent.item: opponent for opponent in texts.others}
    pairs = [
        (original, opponent_by_item[original.item])
        for original in texts.originals
        if original.item in opponent_by_item
    ]
    reasons: dict[str, str] = {}
    for criterion_name, renderer in make_renderers(list(pairwise.values())).items():
        reason = _unequal_input(renderer, pairs)
        if reason:
            reasons[criterion_name] = reason
    return reasons


def _unequal_input(renderer: PromptRenderer, pairs: Iterable[tuple[Sample, Sample]]) -> str:
    """Return why no pair can be compared: the texts of each pair differ in what is read; else ""."""
    first_reason = ""
    for original, opponent in pairs:
        try:
            renderer.render(original, opponent)
        except UnequalInput as error:
            first_reason = first_reason or str(error)
        except MissingInput:
            # Preparing the run reports it.
            return ""
        else:
            return ""
    return first_reason


def _prepare_run(
    card_plan: CardPlan, rows: Sequence[Sample], chosen: Sequence[Criterion], **settings: Any
) -> PreparedRun:
    """Prepare another run of the card's judge, with changed settings."""
    by_name = {criterion.name: criterion for criterion in chosen}
    names = {"criteria": tuple(by_name)} if by_name else {}
    # The judges are open already, also those of a recording.
    changed = {"out": None, **names, **settings, "replay": None}
    config = card_plan.config.model_copy(update=changed)
    judges = list(card_plan.runs[TEXTS].judges.values())
    return prepare(
        config,
        list(rows),
        providers=judges,
        loaded_criteria=by_name,
    )


def card_estimate(card_plan: CardPlan) -> str:
    """Return one line to print before a card is made: its size, and about its requests and price."""
    line = f"a card of {card_plan.model} on {plural(len(card_plan.texts.originals), 'item')}"
    size = f"{plural(card_plan.judgments, 'judgment')} in {plural(len(card_plan.runs), 'run')}"
    cost = cost_summary(card_plan.runs.values()) or "no model is called"
    writing = ""
    if card_plan.unwritten:
        requests = plural(writing_requests(card_plan), "request")
        writing = f", and at most {requests} for other wordings of the criteria"
    return f"{line}: {size}, {cost}{writing}"


def writing_requests(card_plan: CardPlan) -> int:
    """Return the most requests in which the judge puts questions into other words."""
    return MOST_REQUESTS * len(card_plan.unwritten)


async def run_card(
    card_plan: CardPlan,
    progress: Progress | None = None,
    display: Display = lambda *_: nullcontext(),
) -> JudgeCard:
    """Make all runs within one budget and one deadline, and return the card.

    Saves the card if the plan has `out`. Raises the errors of `pipeline.run_pipeline`.
    """
    config = card_plan.config
    texts = card_plan.texts
    if config.out is not None:
        claim_folder(config.out)
    runs = Runs(config, progress, display)
    card_plan = await _with_written_questions(card_plan, runs)
    results = await runs.run_all(card_plan.runs)
    card = build_card(
        _evidence(card_plan, results),
        texts.changes,
        texts.attacks,
        texts.neutral,
        seed=config.seed,
    )
    text_result = results[TEXTS]
    rating_notes = ledger.notes(text_result.table.samples)
    notes = dict.fromkeys([*card_plan.notes, *text_result.info.notes, *rating_notes, *card.notes])
    info = {**card.info, **_card_info(card_plan, results, card)}
    card = replace(card, notes=tuple(notes), info=info)
    if config.out is not None:
        files = {
            file_name: card.report(format).encode() for file_name, format in _CARD_FILES.items()
        }
        store(config.out, files)
    return card


def _card_info(
    card_plan: CardPlan, results: Mapping[str, Result], card: JudgeCard
) -> dict[str, Any]:
    """Return what the card says of the data, the settings, the cost and each run."""
    config = card_plan.config
    main = results[TEXTS].info
    weighting = main.config.weighting
    sampled = weighting == "samples"
    temperature = config.temperature
    # The runs' own default: draws need chance, a single reply does not.
    if temperature is None:
        temperature = 1.0 if sampled else 0.0
    settings: dict[str, Any] = {"weighting": weighting}
    if sampled:
        settings["draws"] = config.draws
    settings["temperature"] = temperature
    criteria_info = {
        name: {**values, **_prompt_of(main.criteria.get(name))}
        for name, values in card.info["criteria"].items()
    }
    run_infos = {}
    for name, result in results.items():
        run_infos[name] = to_json(
            {info_key: getattr(result.info, info_key) for info_key in _RUN_INFO}
        )
    return {
        "probes": list(card_plan.probes),
        "data": {
            "name": Path(main.data.path).name,
            "sha256": main.data.sha256 or None,
        },
        "endpoint": main.base_url or None,
        "date": main.started[:10],
        "criteria": criteria_info,
        "settings": settings,
        "spent": _spent([result.info for result in results.values()]),
        "runs": run_infos,
    }


def _spent(infos: Sequence[RunInfo]) -> dict[str, Any]:
    """Return the requests, tokens and cost of all runs; the cost is None if one is unknown."""
    # A sum that leaves out an unknown cost would be too low.
    costs = [info.cost.usd if info.cost else None for info in infos if info.requests.sent]
    known_costs = [cost for cost in costs if cost is not None]
    all_known = bool(known_costs) and len(known_costs) == len(costs)
    tokens = [info.usage.prompt_tokens + info.usage.completion_tokens for info in infos]
    return {
        "requests": sum(info.requests.sent for info in infos),
        "tokens": sum(tokens),
        "usd": sum(known_costs) if all_known else None,
    }


def _prompt_of(criterion: CriterionInfo | None) -> dict[str, str]:
    """Return what the card tells of a criterion's prompt."""
    if criterion is None:
        return {}
    return {"digest": criterion.digest, "reply": criterion.reply}


def _evidence(card_plan: CardPlan, results: Mapping[str, Result]) -> CardEvidence:
    """Collect the scores of all runs, as the analysis needs them."""
    texts = card_plan.texts
    unavailable = dict(card_plan.unavailable)
    unchanged = results[TEXTS].table
    repeats = _repeats(results, unavailable)
    original_rows = texts.original_rows(unchanged)
    pairs = results.get(PAIRS)

    def with_originals(name: str) -> Table:
        """Return a table of the originals' scores and the scores of another run."""
        table = results[name].table
        columns = dict.fromkeys((*unchanged.columns, *table.columns))
        rows = [*original_rows, *table.rows()]
        return Table(texts.originals, tuple(columns), *split_rows(rows))

    findings = people_findings(
        unchanged, card_plan.model, seed=card_plan.config.seed, epsilon=card_plan.epsilon
    )
    people = {finding.rated.criterion: finding for finding in findings}
    order_free = [
        criterion.name
        for criterion in card_plan.runs[TEXTS].criteria
        if "sentence order" in criterion.ignores
    ]
    column_by_criterion = {
        column.criterion: column for column in unchanged.columns if column.kind == "criterion"
    }
    main = results.get(MAIN)
    changed = texts.by_change(unchanged, main.table if main is not None else None)
    wordings = with_originals(WORDINGS) if WORDINGS in results else None
    questions = with_originals(QUESTIONS) if QUESTIONS in results else None
    left_out = f"{option('probes')} leaves it out"
    not_made = {probe: left_out for probe in PROBES if probe not in card_plan.probes}
    return CardEvidence(
        originals=texts.originals,
        columns=column_by_criterion,
        changed=changed,
        model=card_plan.model,
        language=card_plan.config.language or "en",
        natural=unchanged if "bias" in card_plan.probes else None,
        wordings=wordings,
        repeats=repeats,
        pairs=pairs.table if pairs else None,
        judged=tuple(result.table for result in results.values()),
        unavailable=unavailable,
        questions=questions,
        order_free=frozenset(order_free),
        not_made=not_made,
        texts=unchanged,
        people=people,
        no_people="" if people else why_no_ratings(unchanged),
    )


def _repeats(results: Mapping[str, Result], unavailable: dict[str, str]) -> dict[float, Table]:
    """Return the tables of the repeated judgments by temperature.

    Adds a reason to `unavailable` if the server ignores the temperature.
    """
    repeats: dict[float, Result] = {}
    for temperature, run_name in zip(TEMPERATURES, DRAWN, strict=True):
        if run_name in results:
            repeats[temperature] = results[run_name]
    if any(result.info.unmet.get("temperature") for result in repeats.values()):
        # Then both runs used the server's own temperature. One of them is enough.
        unavailable["repeats"] = "the server ignores the temperature and uses its own"
        repeats.pop(0.0, None)
    return {temperature: result.table for temperature, result in repeats.items()}
