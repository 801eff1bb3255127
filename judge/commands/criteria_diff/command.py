"""`judge criteria diff`: compare the files, prompts and scores of two wordings of a criterion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from judge import criteria, text
from judge.commands.criteria_diff.record import (
    CriterionDiff,
    PromptDifference,
    Prompts,
)
from judge.commands.criteria_diff.shifts import count_judgments, criterion_shifts
from judge.commands.evaluate import Model, reject_unsupported, to_config
from judge.commands.options import JudgeOptions
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import public_api
from judge.config import RunConfig
from judge.core.errors import ConfigError
from judge.core.format import one_line, plural, text_name
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Prompt, Request, Sample
from judge.core.request_options import Judge
from judge.core.run_sync import run_sync
from judge.criteria.reply_form import configured
from judge.data import ledger
from judge.execution import token_estimates
from judge.execution.progress import Progress
from judge.providers import Provider
from judge.results.comparison import Change
from judge.results.result import Result
from judge.run import human_ratings
from judge.run.cost_estimate import SAMPLED_JUDGMENTS, estimate_cost
from judge.run.judge_run import require_all_recorded
from judge.run.pairing import choose_pairs
from judge.run.pipeline import Display, Runs
from judge.run.preparation import (
    PreparedRun,
    config_of_loaded_texts,
    criterion_for,
    load_texts,
    prepare,
    select_texts,
)
from judge.scoring.multi_criteria import make_renderers

if TYPE_CHECKING:
    import pandas as pd

    from judge.commands.evaluate import Data

_MAX_DIFFERENCES = 3  # differences of prompts that are shown
_LONGEST_LINE = 200  # characters of a line that differs
_LONGEST_NOTE = 300  # characters of the note on failed judgments
CriterionPair = tuple[Criterion, Criterion]
TextPair = tuple[Sample, Sample | None]


@dataclass(slots=True)
class DiffPlan:
    """Two checked criteria: their comparison without a judge and, with a judge, a run for each.

    In both runs the criterion has the same name, that of the human ratings. Only `rows` have these
    ratings: a run would compute more agreement with them than is shown here.
    """

    comparison: CriterionDiff
    runs: tuple[PreparedRun, PreparedRun] | None = None
    rows: Sequence[Sample] = ()


@public_api("diff")
def diff(
    before: str | Criterion,
    after: str | Criterion,
    data: Data | None = None,
    *,
    model: Model | None = None,
    item: str | None = None,
    system: str | None = None,
    ratings: str | Path | pd.DataFrame | Iterable[Mapping[str, Any]] | None = None,
    human: str | None = None,
    progress: Watch = None,
    **options: Unpack[JudgeOptions],
) -> CriterionDiff:
    """Compare two criteria: names, files, sentences or Criterion objects.

    - Without data, compare headers, files and layouts.
    - With `data`, also compare the prompts on these texts (of one `item` or `system`) and the
      tokens.
    - With a judge (`model`, or `replay`), score all texts with both: how far scores change, which
      orders flip, and which criterion agrees better with people's ratings. `ratings` are these,
      unless the data has them; `human` names them (default: the criterion's name).

    Raises JudgeError.
    """
    reject_unsupported(options, "diff", "a diff of criteria")
    all_options = {"ratings": ratings, **options}
    config, judges, _ = to_config(RunConfig, data, None, model, all_options)
    diff_plan = plan_diff(
        before,
        after,
        config,
        data,
        providers=judges,
        item=item,
        system=system,
        human=human,
    )

    async def run() -> CriterionDiff:
        async with displayed(progress) as counts:
            return await run_diff(diff_plan, counts)

    return run_sync(run)


def plan_diff(
    before: str | Criterion,
    after: str | Criterion,
    config: RunConfig,
    data: Any = None,
    *,
    providers: Sequence[Judge | Provider] | None = None,
    item: str | None = None,
    system: str | None = None,
    human: str | None = None,
) -> DiffPlan:
    """Compare two criteria without a judge, and prepare the runs if one is named.

    Raises JudgeError.
    """
    # The option is supported here, although the runs themselves get no ratings.
    without_ratings = config.model_copy(
        update={"ratings": None, "rating_criterion": ""}
    )
    reject_unsupported(without_ratings, "diff", "a diff of criteria")
    judges = config.model if providers is None else providers
    asks_judge = bool(judges or config.replay)
    source = config.data if data is None else data
    has_ratings = config.rating_source is not None
    rating_option = ""
    if has_ratings:
        rating_option = "ratings"
    elif human:
        rating_option = "human"
    _check_options(
        has_data=source is not None,
        asks_judge=asks_judge,
        selects=bool(item or system),
        rating_option=rating_option,
    )
    # Without data, only the two files are compared.
    all_rows: Sequence[Sample] = ()
    rows: list[Sample] = []
    if source is not None:
        all_rows = load_texts(config, source)
        rows = select_texts(all_rows, item, system)[: config.limit]
    language = config.language or text.language_of(rows)
    old_criterion = _load_side(before, config, language)
    new_criterion = _load_side(after, config, language)
    sides = (old_criterion, new_criterion)
    side_names = _side_names(before, after)
    comparison = _compare_files(sides, side_names)
    if has_ratings:
        # A rating of a text that is not selected is no error, so all texts are joined.
        joined, notes = _join_ratings(config, all_rows, human, sides)
        rows = select_texts(joined, item, system)[: config.limit]
        comparison = replace(comparison, notes=tuple(notes))
    rating = _rating_name(rows, human, sides)
    # A rating that was used to make one of the two prompts would favour it.
    used_ratings = old_criterion.used | new_criterion.used
    rows = list(ledger.withhold(rows, {rating: used_ratings}))
    if not rows:
        return DiffPlan(comparison)
    _check_inputs(sides, rows)
    runs = None
    asked_sides = sides
    if asks_judge:
        runs = _prepare_runs(config, judges, rows, sides, rating)
        # A decision endpoint is asked in another form, with another prompt.
        asked_sides = (_asked_criterion(runs[0]), _asked_criterion(runs[1]))
    prompts = _compare_prompts(asked_sides, rows, config.seed, runs)
    return DiffPlan(replace(comparison, prompts=prompts), runs, rows)


def _check_options(
    *,
    has_data: bool,
    asks_judge: bool,
    selects: bool,
    rating_option: str,
) -> None:
    """Raise ConfigError for options that need data or a judge.

    `selects` says whether an item or a system is selected. `rating_option` is the option that names
    people's ratings, or "".
    """
    if not has_data and (asks_judge or selects or rating_option):
        raise ConfigError("no data: name a file of texts after the two criteria")
    if rating_option and not asks_judge:
        model_option = option("model", "NAME")
        replay_option = option("replay", "CALLS")
        raise ConfigError(
            f"{option(rating_option)}: agreement with people needs scores; add {model_option} or "
            f"{replay_option}"
        )


def _check_inputs(sides: CriterionPair, rows: Sequence[Sample]) -> None:
    """Raise JudgeError if the criteria cannot be compared on these texts."""
    if sides[0].pairwise != sides[1].pairwise:
        raise ConfigError(
            "one criterion judges one text, the other compares two: omit the data to compare their "
            "files"
        )
    for side in sides:
        criteria.check_samples(side, rows)


def _load_side(
    criterion: str | Criterion, config: RunConfig, language: str
) -> Criterion:
    """Return one of the two criteria with the options of the run. Raises JudgeError."""
    if isinstance(criterion, Criterion):
        loaded = criteria.in_language(criteria.finalize(criterion), language)
    else:
        loaded = criteria.load(criterion, language=language, pairwise=None)
    return configured(loaded, config)


def _side_names(before: str | Criterion, after: str | Criterion) -> tuple[str, str]:
    """Return different names for the two criteria, as the caller wrote them."""
    old_name = before if isinstance(before, str) else before.name
    new_name = after if isinstance(after, str) else after.name
    if old_name == new_name:
        return f"{old_name} (before)", f"{new_name} (after)"
    return old_name, new_name


def _join_ratings(
    config: RunConfig,
    rows: Sequence[Sample],
    human: str | None,
    sides: CriterionPair,
) -> tuple[list[Sample], list[str]]:
    """Return the texts with the ratings of a file, and notes on them. Raises JudgeError."""
    names = [human] if human else list(dict.fromkeys(side.name for side in sides))
    of_these_criteria = config.model_copy(update={"criteria": tuple(names)})
    sheet, _ = human_ratings.read(of_these_criteria, rows, rated=False)
    # Both criteria stand for what people rated, so the first one may have either name.
    rated_criteria = [replace(sides[0], name=rating_name) for rating_name in names]
    return human_ratings.join(config, rows, sheet, rated_criteria)


def _rating_name(
    rows: Sequence[Sample], human: str | None, sides: CriterionPair
) -> str:
    """Return the name of the human ratings to compare with: `human`, or a criterion's name.

    Raises ConfigError if no text has ratings called `human`.
    """
    known_ratings: dict[str, None] = {}
    for row in rows:
        known_ratings |= dict.fromkeys(row.human)
    if human is not None and human not in known_ratings:
        message = unknown_name_message("rating", human, list(known_ratings))
        raise ConfigError(f"{option('human')}: {message}")
    if human:
        return human
    for criterion in sides:
        if criterion.name in known_ratings:
            return criterion.name
    return sides[0].name


def _asked_criterion(run: PreparedRun) -> Criterion:
    """Return the criterion in the form that the run's first judge gets."""
    judge = next(iter(run.judges.values()))
    return criterion_for(run.criteria[0], judge)


def _compare_files(
    criteria_pair: CriterionPair, criterion_names: tuple[str, str]
) -> CriterionDiff:
    """Compare the headers, templates and layouts."""
    old_criterion, new_criterion = criteria_pair
    old_name, new_name = criterion_names
    old_header = _header(old_criterion)
    new_header = _header(new_criterion)
    changes = []
    for header_key, old_value in old_header.items():
        new_value = new_header[header_key]
        if old_value != new_value:
            change = Change(header_key, old_value or "–", new_value or "–")
            changes.append(change)
    old_template = old_criterion.template.splitlines()
    new_template = new_criterion.template.splitlines()
    template_diff = unified_diff(
        old_template,
        new_template,
        old_name,
        new_name,
        lineterm="",
    )
    diff_lines = list(template_diff)
    all_layouts = dict.fromkeys([*old_criterion.layouts, *new_criterion.layouts])
    for layout in all_layouts:
        old_layout = old_criterion.layouts.get(layout, "")
        new_layout = new_criterion.layouts.get(layout, "")
        diff_lines += unified_diff(
            old_layout.splitlines(),
            new_layout.splitlines(),
            f"{layout} of {old_name}",
            f"{layout} of {new_name}",
            lineterm="",
        )
    return CriterionDiff(
        criterion_names,
        criteria_pair,
        tuple(changes),
        tuple(diff_lines),
    )


def _header(criterion: Criterion) -> dict[str, str]:
    """Return the parts of a criterion that a diff compares, as text by name."""
    compares = "two texts" if criterion.pairwise else "one text"
    pass_at = "" if criterion.pass_at is None else f"{criterion.pass_at:g}"
    columns = ", ".join(sorted(criterion.needs))
    return {
        "digest": criterion.digest[:6],
        "compares": compares,
        "title": criterion.title,
        "description": criterion.description,
        "scale": _scale_text(criterion),
        "reply": criterion.reply,
        "better": criterion.better,
        "weight": f"{criterion.weight:g}",
        "pass_at": pass_at,
        "version": str(criterion.version),
        "reads": columns,
        "layouts": ", ".join(criterion.layouts),
        "language": criterion.language,
        "steps": " ".join(criterion.steps),
    }


def _scale_text(criterion: Criterion) -> str:
    """Write `1–5`, `0–100 in 11 labels`, or `no (0), yes (1)`."""
    labels = criterion.scale.labels
    values = criterion.scale.values
    are_numbers = labels == tuple(f"{value:g}" for value in values)
    if not are_numbers:
        pairs = zip(labels, values, strict=True)
        return ", ".join(f"{label} ({value:g})" for label, value in pairs)
    ends = f"{labels[0]}–{labels[-1]}"
    has_each_number = len(labels) == values[-1] - values[0] + 1
    if has_each_number:
        return ends
    return f"{ends} in {len(labels)} labels"


def _prepare_runs(
    config: RunConfig,
    judges: Sequence[Judge | Provider],
    rows: Sequence[Sample],
    sides: CriterionPair,
    rating: str,
) -> tuple[PreparedRun, PreparedRun]:
    """Prepare a run for each criterion, both under the name `rating`."""
    if sides[0].pairwise:
        raise ConfigError(
            "these criteria compare two texts, but a diff scores single texts: omit the judge, or "
            "use judge rank"
        )
    config = config_of_loaded_texts(config, criteria=(rating,))
    # With ratings, a run would compute more agreement than a diff shows.
    unrated = [ledger.unrated(row) for row in rows]

    def prepare_side(side: Criterion) -> PreparedRun:
        renamed = {rating: replace(side, name=rating)}
        return prepare(config, unrated, providers=judges, loaded_criteria=renamed)

    return prepare_side(sides[0]), prepare_side(sides[1])


def _compare_prompts(
    sides: CriterionPair,
    rows: Sequence[Sample],
    seed: int,
    runs: tuple[PreparedRun, PreparedRun] | None,
) -> Prompts:
    """Compare both prompts on every text, or on every pair of texts in one order."""
    texts: Sequence[TextPair] = [(row, None) for row in rows]
    if sides[0].pairwise:
        pairs = choose_pairs(rows, orders=1, budget=None, seed=seed)
        # No judge is asked about equal texts, but their prompts differ like any others.
        texts = pairs.compared or pairs.equal
    old_criterion, new_criterion = sides
    old_renderer = make_renderers([old_criterion])[old_criterion.name]
    new_renderer = make_renderers([new_criterion])[new_criterion.name]
    old_tokens = 0
    new_tokens = 0
    differing: list[TextPair] = []
    count_by_lines: Counter[tuple[str, ...]] = Counter()
    for sample, opponent in texts:
        old_prompt = old_renderer.render(sample, opponent)
        new_prompt = new_renderer.render(sample, opponent)
        old_tokens += _tokens_of_prompt(old_prompt)
        new_tokens += _tokens_of_prompt(new_prompt)
        old_parts = _texts_of_prompt(old_prompt)
        new_parts = _texts_of_prompt(new_prompt)
        if old_parts != new_parts:
            differing.append((sample, opponent))
            lines = _differing_lines(old_parts, new_parts)
            count_by_lines[lines] += 1
    differences = []
    for lines, count in count_by_lines.most_common(_MAX_DIFFERENCES):
        differences.append(PromptDifference(count, lines))
    n_texts = len(texts)
    prices = _Prices(None, "") if runs is None else _prices(runs)
    return Prompts(
        texts=n_texts,
        items=_count_items(texts),
        differ=len(differing),
        items_differ=_count_items(differing),
        differences=tuple(differences),
        tokens=(old_tokens / n_texts, new_tokens / n_texts),
        cost=prices.cost,
        price_source=prices.source,
    )


def _texts_of_prompt(prompt: Prompt) -> list[str]:
    """Return the contents of a prompt's messages, and its question."""
    messages = [message["content"] for message in prompt.messages]
    return [*messages, prompt.question]


def _tokens_of_prompt(prompt: Prompt) -> int:
    """Estimate the tokens of a prompt; its question is sent beside the messages."""
    in_messages = token_estimates.estimate_request(Request("", prompt.messages))
    return in_messages + token_estimates.estimate_tokens(prompt.question)


def _count_items(texts: Sequence[TextPair]) -> int:
    return len({sample.item for sample, _ in texts})


def _differing_lines(
    prompt_before: Sequence[str], prompt_after: Sequence[str]
) -> tuple[str, ...]:
    """Return the lines that differ between two prompts, cut to a length that can be shown."""
    old_lines = "\n".join(prompt_before).splitlines()
    new_lines = "\n".join(prompt_after).splitlines()
    lines = unified_diff(old_lines, new_lines, "before", "after", lineterm="", n=0)
    differing = [line for line in lines if not line.startswith("@@")]
    return tuple(line[:_LONGEST_LINE] for line in differing)


@dataclass(frozen=True, slots=True)
class _Prices:
    """US dollars for 1,000 judgments by all judges, before and after, and the prices' source.

    If a price is unknown, `cost` is None and `source` is the reason, "" if no model is called.
    """

    cost: tuple[float, float] | None
    source: str


def _prices(runs: tuple[PreparedRun, PreparedRun]) -> _Prices:
    """Estimate the cost of both runs without a cache."""
    costs = []
    source = ""
    for run in runs:
        cost_of_judges = 0.0
        without_cache = run.config.model_copy(update={"cache": False})
        uncached = replace(run, config=without_cache)
        for plan in estimate_cost(uncached, SAMPLED_JUDGMENTS).judges:
            source = plan.money.why
            # A recording or a script answers instead of a model.
            if run.judges[plan.estimate.judge].notice:
                return _Prices(None, "")
            if plan.money.price is None:
                return _Prices(None, source)
            total = plan.estimate.total
            # Equal judgments share a reply, and one judgment may take a request for each draw.
            n_paid = max(1, total.judgments - total.broken - total.equal)
            cost_of_judges += 1000 * plan.money.price / n_paid
        costs.append(cost_of_judges)
    old_cost, new_cost = costs
    return _Prices((old_cost, new_cost), source)


async def run_diff(
    diff_plan: DiffPlan,
    progress: Progress | None = None,
    display: Display = lambda *_: nullcontext(),
) -> CriterionDiff:
    """Make both runs, if any, within one budget and one deadline.

    Each runs inside its display, named "before" and "after". Raises the errors of
    `pipeline.run_pipeline`, and Unrecorded if a recording lacks replies.
    """
    if diff_plan.runs is None:
        return diff_plan.comparison
    runs = dict(zip(("before", "after"), diff_plan.runs, strict=True))
    results = await Runs(diff_plan.runs[0].config, progress, display).run_all(runs)
    require_all_recorded(*results.values())
    judged, notes_on_scores = criterion_shifts(
        results["before"], results["after"], diff_plan.rows
    )
    notes = [*diff_plan.comparison.notes]
    for name, result in zip(diff_plan.comparison.names, results.values(), strict=True):
        notes += _failure_notes(name, result)
    return replace(
        diff_plan.comparison, judged=judged, notes=(*notes, *notes_on_scores)
    )


def _failure_notes(name: str, result: Result) -> Iterator[str]:
    """Yield how many judgments of a wording failed, and an example of the most common error."""
    n_judgments, n_failed = count_judgments(result)
    if not n_failed:
        return
    errors = Counter(failure.error for failure in result.failures)
    ((error, _),) = errors.most_common(1)
    example = next(failure for failure in result.failures if failure.error == error)
    text = text_name(example.item, example.system)
    failed = f"{n_failed:,} of {plural(n_judgments, 'judgment')} failed"
    note = f"{name}: {failed}. For example, {text}: {example.message}"
    yield one_line(note, _LONGEST_NOTE)
