"""`judge validate --card`: judge texts, test the judge with changes to them, and make its card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from judge import criteria
from judge.commands.card.build_card import build_card
from judge.commands.card.card import PROBES, CardEvidence, JudgeCard
from judge.commands.card.card_plan import (
    DRAWN,
    MAIN,
    PAIRS,
    QUESTIONS,
    TEMPERATURES,
    TEXTS,
    WORDINGS,
    CardPlan,
    plan_card,
    prepare_run,
)
from judge.commands.card.card_texts import CardTexts
from judge.commands.card.finished import (
    ITEMS,
    finished_card,
    is_run,
    refuse_for_finished_run,
)
from judge.commands.card.paraphrases import write_paraphrases
from judge.commands.card.people import people_findings, why_no_ratings
from judge.commands.card.probes import QUESTION_WORDING
from judge.commands.evaluate import Criteria, reject_unsupported, to_config
from judge.commands.options import JudgeOptions
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import blocking, public_api
from judge.config import RunConfig
from judge.core.files import claim_folder
from judge.core.format import to_json
from judge.core.messages import option
from judge.core.records import Criterion
from judge.data import ledger
from judge.execution.progress import Progress
from judge.metrics.base import ModelError
from judge.results.result import Result
from judge.results.run_info import CriterionInfo, RunInfo
from judge.run.pipeline import Display, Runs
from judge.stats.alt_test import EPSILON
from judge.table import Table, split_rows

if TYPE_CHECKING:
    from judge.commands.evaluate import Data, Model
    from judge.data.ratings import RatingSource

_RUN_INFO = ("seconds", "requests", "usage", "cost", "served_by", "unmet")
"""What the card reports about each run."""


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

    `card.failures` counts failed judgments. Raises JudgeError for wrong arguments or data and for a
    failing endpoint.
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
    settings = {
        "ratings": ratings,
        "rating_criterion": rating_criterion,
        "out": out,
        **options,
    }
    config, providers, custom_criteria = to_config(
        RunConfig, data, criteria, model, settings
    )
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


async def _with_written_questions(card_plan: CardPlan, runs: Runs) -> CardPlan:
    """Return the plan with the wordings that the judge wrote, and the reasons for missing ones."""
    if not card_plan.unwritten:
        return card_plan
    originals = card_plan.texts.originals
    writing = prepare_run(card_plan, originals, card_plan.unwritten)
    written = await write_paraphrases(card_plan.unwritten, writing, runs)
    reasons: dict[str, str] = {}
    rephrased: list[Criterion] = []
    for criterion in card_plan.criteria:
        wordings = written.get(criterion.name, criterion.paraphrases)
        if isinstance(wordings, ModelError):
            reasons[f"{QUESTION_WORDING} by {criterion.name}"] = (
                f"the judge wrote no other wordings ({wordings.message}): "
                "write three as `paraphrases` into its header"
            )
        elif wordings:
            rephrased += criteria.with_questions(criterion, wordings)
    planned_runs = dict(card_plan.runs)
    del planned_runs[QUESTIONS]  # the run of the stand-ins, which is not made
    if rephrased:
        planned_runs[QUESTIONS] = prepare_run(card_plan, originals, rephrased)
    return replace(card_plan.without(reasons), runs=planned_runs, unwritten=())


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
    notes = [
        *card_plan.notes,
        *text_result.info.notes,
        *ledger.notes(text_result.table.samples),
        *card.notes,
    ]
    each_note_once = dict.fromkeys(notes)
    info = {**card.info, **_card_info(card_plan, results, card)}
    card = replace(card, notes=tuple(each_note_once), info=info)
    if config.out is not None:
        card.save(config.out, overwrite=True)
    return card


def _card_info(
    card_plan: CardPlan,
    results: Mapping[str, Result],
    card: JudgeCard,
) -> dict[str, Any]:
    """Return the card's record of the data, the settings, the cost and each run."""
    config = card_plan.config
    main = results[TEXTS].info
    weighting = main.config.weighting
    sampled = weighting == "samples"
    temperature = config.temperature
    # The default of the runs: draws need randomness, a single reply does not.
    if temperature is None:
        temperature = 1.0 if sampled else 0.0
    settings: dict[str, Any] = {"weighting": weighting}
    if sampled:
        settings["draws"] = config.draws
    settings["temperature"] = temperature
    criteria_info = {}
    for name, values in card.info["criteria"].items():
        prompt_record = _prompt_of(main.criteria.get(name))
        criteria_info[name] = {**values, **prompt_record}
    run_infos = {}
    for name, result in results.items():
        run_info = {info_key: getattr(result.info, info_key) for info_key in _RUN_INFO}
        run_infos[name] = to_json(run_info)
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
    costs = [info.cost for info in infos if info.requests.sent]
    known_costs = [cost.usd for cost in costs if cost and cost.usd is not None]
    # A sum that leaves out an unknown cost would be too low.
    all_known = 0 < len(known_costs) == len(costs)
    tokens = [info.usage.prompt_tokens + info.usage.completion_tokens for info in infos]
    return {
        "requests": sum(info.requests.sent for info in infos),
        "tokens": sum(tokens),
        "usd": sum(known_costs) if all_known else None,
    }


def _prompt_of(criterion: CriterionInfo | None) -> dict[str, str]:
    """Return the card's record of a criterion's prompt."""
    if criterion is None:
        return {}
    return {"digest": criterion.digest, "reply": criterion.reply}


def _evidence(card_plan: CardPlan, results: Mapping[str, Result]) -> CardEvidence:
    """Collect the scores of all runs, as the analysis needs them."""
    texts = card_plan.texts
    unchanged = results[TEXTS].table
    unavailable = dict(card_plan.unavailable)
    repeats = _repeats(results)
    if _ignores_temperature(repeats.values()):
        unavailable["repeats"] = "the server ignores the temperature and uses its own"
        # The runs do not differ, so one of them is enough.
        repeats.pop(0.0, None)
    findings = people_findings(
        unchanged,
        card_plan.model,
        seed=card_plan.config.seed,
        epsilon=card_plan.epsilon,
    )
    people = {finding.rated.criterion: finding for finding in findings}
    order_free = [
        criterion.name
        for criterion in card_plan.criteria
        if "sentence order" in criterion.ignores
    ]
    column_by_criterion = {}
    for column in unchanged.columns:
        if column.kind == "criterion":
            column_by_criterion[column.criterion] = column
    tables = {run_name: result.table for run_name, result in results.items()}
    natural = unchanged if "bias" in card_plan.probes else None
    not_made = [probe for probe in PROBES if probe not in card_plan.probes]
    left_out = f"{option('probes')} leaves it out"
    no_people = "" if people else why_no_ratings(unchanged)
    return CardEvidence(
        originals=texts.originals,
        columns=column_by_criterion,
        changed=texts.by_change(unchanged, tables.get(MAIN)),
        model=card_plan.model,
        language=card_plan.config.language or "en",
        natural=natural,
        wordings=_with_originals(tables.get(WORDINGS), texts, unchanged),
        repeats={temperature: result.table for temperature, result in repeats.items()},
        pairs=tables.get(PAIRS),
        judged=tuple(tables.values()),
        unavailable=unavailable,
        questions=_with_originals(tables.get(QUESTIONS), texts, unchanged),
        order_free=frozenset(order_free),
        not_made=dict.fromkeys(not_made, left_out),
        texts=unchanged,
        people=people,
        no_people=no_people,
    )


def _with_originals(
    table: Table | None,
    texts: CardTexts,
    unchanged: Table,
) -> Table | None:
    """Return a table of the original texts with their scores and those of another run.

    `unchanged` has the scores of all unchanged texts, and `table` is that of the other run.
    None without that run.
    """
    if table is None:
        return None
    columns = dict.fromkeys((*unchanged.columns, *table.columns))
    rows = [*texts.original_rows(unchanged), *table.rows()]
    scores, failures = split_rows(rows)
    return Table(texts.originals, tuple(columns), scores, failures)


def _repeats(results: Mapping[str, Result]) -> dict[float, Result]:
    """Return the runs that judged the texts again, by temperature."""
    repeats: dict[float, Result] = {}
    for temperature, run_name in zip(TEMPERATURES, DRAWN, strict=True):
        if run_name in results:
            repeats[temperature] = results[run_name]
    return repeats


def _ignores_temperature(repeats: Iterable[Result]) -> bool:
    """Return whether the server did not accept the temperature of one of these runs."""
    return any(result.info.unmet.get("temperature") for result in repeats)
