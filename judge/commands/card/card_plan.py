"""Plan a judge card: choose its texts, and prepare the runs that judge them.

Nothing is sent. `plan_card` reads and checks the data; the functions after it add the runs that
show biases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judge import criteria
from judge.commands.card.card import ORIGINAL, PROBES, Probe
from judge.commands.card.card_texts import CardTexts, perturb
from judge.commands.card.finished import (
    ITEMS,
)
from judge.commands.card.paraphrases import MOST_REQUESTS, stand_ins
from judge.commands.card.perturbations import best_label
from judge.commands.card.probes import QUESTION_WORDING
from judge.commands.evaluate import reject_unsupported
from judge.config import RankConfig, RunConfig, split
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.format import plural
from judge.core.messages import in_python, option
from judge.core.plugins import require_known
from judge.core.records import Criterion, Sample
from judge.criteria.render import MissingInput, UnequalInput
from judge.data import ledger
from judge.run import human_ratings, judge_run, prompt_language
from judge.run.cost_estimate import cost_summary
from judge.run.judge_models import AnyJudge, OpenedJudge
from judge.run.preparation import (
    PreparedRun,
    WantedTexts,
    check_output_dir,
    config_of_loaded_texts,
    load_texts,
    prepare,
)
from judge.scoring.multi_criteria import PromptRenderer, make_renderers
from judge.stats.alt_test import EPSILON

DRAWS = 5
"""How often each text is judged again at each temperature."""
TEMPERATURES = (0.0, 1.0)
# Names of the runs
TEXTS = "texts"
MAIN = "changed texts"
WORDINGS = "other wordings"
QUESTIONS = "other questions"
PAIRS = "pairs in both orders"
_REPEATS = "repeats at temperature {:g}"
DRAWN = [_REPEATS.format(temperature) for temperature in TEMPERATURES]


@dataclass(frozen=True, slots=True)
class CardPlan:
    """A card whose texts are read and whose requests are checked. Nothing has been sent yet.

    - `runs`: the runs to make, by name and in order; `model`: the name of the judge.
    - `unavailable`: the reason for each probe that cannot be made.
    - `unwritten`: the criteria whose question the judge puts into other words first. Until then,
      the run QUESTIONS has questions of the same length in their place.
    - `notes`: notes on people's ratings.
    - `epsilon`: the judge's advantage in the alternative annotator test.
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

    @property
    def judge(self) -> OpenedJudge:
        """The judge, open for all runs."""
        (judge,) = self.runs[TEXTS].opened.values()
        return judge

    @property
    def criteria(self) -> Sequence[Criterion]:
        """The criteria of the card."""
        return self.runs[TEXTS].criteria

    def with_run(self, name: str, run: PreparedRun) -> CardPlan:
        """Return the plan with another run after the others."""
        return replace(self, runs={**self.runs, name: run})

    def without(self, reasons: Mapping[str, str]) -> CardPlan:
        """Return the plan with the reasons why some more probes cannot be made."""
        return replace(self, unavailable={**self.unavailable, **reasons})


def plan_card(
    config: RunConfig,
    data: Any = None,
    *,
    items: int = ITEMS,
    probes: str | Sequence[str] = PROBES,
    providers: Sequence[AnyJudge] | None = None,
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
    names = config.criteria
    if names is None:
        names = criteria.default_criteria(rows)
    loaded = _load_criteria(names, custom_criteria or {}, language)
    # Before items are chosen, because a rating of a text outside the sample is no error.
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
    base_config = config_of_loaded_texts(config, language=language, criteria=names)
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
    return _with_bias_runs(card_plan) if "bias" in chosen_probes else card_plan


def _load_criteria(
    criterion_names: Sequence[str],
    custom_criteria: Mapping[str, Criterion],
    language: str,
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
    judges: Sequence[AnyJudge],
    custom_criteria: Mapping[str, Criterion] | None,
) -> dict[str, PreparedRun]:
    """Prepare the run of the unchanged texts, and that of the changed ones if there are any.

    `samples` are all texts of the data, and `texts` those that were chosen from them; `out` is the
    folder of the card. Raises ConfigError if a recording has several judges.
    """

    def prepare_in(
        folder: str,
        rows: Sequence[Sample],
        wanted_texts: WantedTexts | None,
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
    # All systems' texts of these items, because agreement and differences need several.
    unchanged = [sample for sample in samples if sample.item in chosen_items]
    main = prepare_in("run", unchanged, None)
    if len(main.judges) > 1:
        names = ", ".join(main.judges)
        raise ConfigError(
            f"the recording has several judges: name one of {names} with {option('model')}"
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
    config: RunConfig,
    rows: Sequence[Sample],
    chosen: Sequence[Criterion],
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
    judges: Sequence[AnyJudge],
) -> tuple[Probe, ...]:
    """Return the probes in the order of the card. Raises ConfigError for unsuitable arguments."""
    names = split(probes) if isinstance(probes, str) else list(probes)
    require_known("probe", names, PROBES, option("probes"))
    if not names:
        all_probes = ", ".join(PROBES)
        raise ConfigError(f"{option('probes')}: name at least one of {all_probes}")
    reject_unsupported(config, "card", "a judge card")
    if not isinstance(items, int) or items < 1:
        raise ConfigError(f"{option('items', items)}: write a whole number, 1 or more")
    if len(judges) > 1:
        raise ConfigError(
            "a judge card is about one judge: name one, and make a card of each judge of a panel"
        )
    if config.criteria == ():
        no_criteria = option("criteria", [] if in_python() else "none")
        raise ConfigError(f"{no_criteria}: a judge card needs a criterion")
    check_output_dir(config.out)
    if source is None:
        card_option = option("card", True)
        model_option = option("model", "gpt-5.4-mini")
        raise ConfigError(
            "no data: name a file, for example judge validate summaries.jsonl "
            f"{card_option} {model_option}"
        )
    return tuple(probe_name for probe_name in PROBES if probe_name in names)


def _with_bias_runs(card_plan: CardPlan) -> CardPlan:
    """Add the runs that show biases, and the reasons why some of them cannot be made."""
    card_plan = _with_wording_run(card_plan)
    card_plan = _with_question_run(card_plan)
    card_plan = _with_repeats(card_plan)
    return _with_position_run(card_plan)


def _with_wording_run(card_plan: CardPlan) -> CardPlan:
    """Add the run with other wordings of the prompt, or the reason for each criterion without."""
    paraphrases: list[Criterion] = []
    reasons: dict[str, str] = {}
    for criterion in card_plan.criteria:
        try:
            paraphrases += [
                criteria.paraphrase(criterion, wording)
                for wording in criteria.PARAPHRASES
            ]
        except CriterionError as error:
            reasons[f"wording of {criterion.name}"] = str(error)
    if not paraphrases:
        # One reason for the whole probe, instead of one for each criterion.
        listed_reasons = "; ".join(reasons.values())
        return card_plan.without({"wording": listed_reasons})
    run = prepare_run(card_plan, card_plan.texts.originals, paraphrases)
    return card_plan.without(reasons).with_run(WORDINGS, run)


def _with_question_run(card_plan: CardPlan) -> CardPlan:
    """Add the run that asks each criterion's question in other words.

    Also add the criteria whose wordings the judge has to write, and the reason for each criterion
    that can have none.
    """
    rephrased: list[Criterion] = []
    unwritten: list[Criterion] = []
    reasons: dict[str, str] = {}
    for criterion in card_plan.criteria:
        wordings = criterion.paraphrases
        try:
            if not wordings:
                # The plan states the cost before the judge has written any wording.
                wordings = stand_ins(criterion)
                if card_plan.judge.provider.decides:
                    problem = "its header has none, and a decision endpoint writes none"
                    raise CriterionError(problem)
                unwritten.append(criterion)
            rephrased += criteria.with_questions(criterion, wordings)
        except CriterionError as error:
            reasons[f"{QUESTION_WORDING} by {criterion.name}"] = str(error)
    card_plan = replace(card_plan.without(reasons), unwritten=tuple(unwritten))
    if not rephrased:
        return card_plan
    run = prepare_run(card_plan, card_plan.texts.originals, rephrased)
    return card_plan.with_run(QUESTIONS, run)


def _with_repeats(card_plan: CardPlan) -> CardPlan:
    """Add a run at each temperature that judges the texts again, or the reason for none."""
    if card_plan.judge.provider.decides:
        reason = "a decision endpoint returns probabilities and samples no replies"
        return card_plan.without({"repeats": reason})
    for temperature in TEMPERATURES:
        sampling = {"weighting": "samples", "draws": DRAWS, "temperature": temperature}
        originals = card_plan.texts.originals
        run = prepare_run(card_plan, originals, card_plan.criteria, **sampling)
        card_plan = card_plan.with_run(_REPEATS.format(temperature), run)
    return card_plan


def _with_position_run(card_plan: CardPlan) -> CardPlan:
    """Add the run that compares texts in pairs, or the reason why it cannot be made."""
    texts = card_plan.texts
    names = [criterion.name for criterion in card_plan.criteria]
    builtin = criteria.builtin(card_plan.config.language or "en", pairwise=True)
    builtin_by_name = {criterion.name: criterion for criterion in builtin}
    # In the order of the card's criteria.
    pairwise = {
        name: builtin_by_name[name] for name in names if name in builtin_by_name
    }
    if not texts.others:
        reason = "no item has different texts of two systems"
        return card_plan.without({"position": reason})
    if not pairwise:
        reason = f"there is no pairwise criterion called {' or '.join(names)}"
        return card_plan.without({"position": reason})
    unequal = _unequal_inputs(pairwise, texts)
    for criterion_name in unequal:
        del pairwise[criterion_name]
    if not pairwise:
        all_reasons = "; ".join(unequal.values())
        return card_plan.without({"position": all_reasons})
    try:
        run = _prepare_comparison(card_plan, pairwise)
    except (ConfigError, CriterionError, DataError) as error:
        return card_plan.without({"position": str(error)})
    reasons: dict[str, str] = {}
    for criterion_name in names:
        measure_name = f"position by {criterion_name}"
        if criterion_name in unequal:
            reasons[measure_name] = unequal[criterion_name]
        elif criterion_name not in pairwise:
            reasons[measure_name] = "no pairwise criterion has this name"
    return card_plan.without(reasons).with_run(PAIRS, run)


def _prepare_comparison(
    card_plan: CardPlan, pairwise: Mapping[str, Criterion]
) -> PreparedRun:
    """Prepare the run that compares two texts of each item. Raises JudgeError."""
    settings = {
        **dict(card_plan.config),
        # The judges are open already, also those of a recording.
        "replay": None,
        "out": None,
        "criteria": tuple(pairwise),
    }
    texts = card_plan.texts
    rows = sorted((*texts.originals, *texts.others), key=lambda sample: sample.system)
    return prepare(
        RankConfig(**settings),
        rows,
        providers=[card_plan.judge],
        loaded_criteria=pairwise,
    )


def _unequal_inputs(
    pairwise: Mapping[str, Criterion], texts: CardTexts
) -> dict[str, str]:
    """Return by criterion why it can compare no pair: the texts of each pair have other inputs.

    Without this check, the run would fail after the earlier runs of the card are paid.
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


def _unequal_input(
    renderer: PromptRenderer, pairs: Iterable[tuple[Sample, Sample]]
) -> str:
    """Return the error of the first pair if no pair can be compared, else ""."""
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


def prepare_run(
    card_plan: CardPlan,
    rows: Sequence[Sample],
    chosen: Sequence[Criterion],
    **settings: Any,
) -> PreparedRun:
    """Prepare another run of the card's judge, with changed settings."""
    by_name = {criterion.name: criterion for criterion in chosen}
    names = {"criteria": tuple(by_name)} if by_name else {}
    # The judges are open already, also those of a recording.
    changed = {"out": None, **names, **settings, "replay": None}
    config = card_plan.config.model_copy(update=changed)
    return prepare(
        config,
        list(rows),
        providers=[card_plan.judge],
        loaded_criteria=by_name,
    )


def card_estimate(card_plan: CardPlan) -> str:
    """Return one line to print before a card is made: its size, requests and estimated price."""
    items = plural(len(card_plan.texts.originals), "item")
    judgments = plural(card_plan.judgments, "judgment")
    runs = plural(len(card_plan.runs), "run")
    line = f"a card of {card_plan.model} on {items}"
    size = f"{judgments} in {runs}"
    cost = cost_summary(card_plan.runs.values()) or "no model is called"
    writing = ""
    if card_plan.unwritten:
        requests = plural(writing_requests(card_plan), "request")
        writing = f", and at most {requests} for other wordings of the criteria"
    return f"{line}: {size}, {cost}{writing}"


def writing_requests(card_plan: CardPlan) -> int:
    """Return the largest number of requests in which the judge puts questions into other words."""
    return MOST_REQUESTS * len(card_plan.unwritten)
