"""`judge criteria diff`: compare two wordings of a criterion by their files, their prompts and a judge's scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from judge import criteria, text
from judge.commands.compare.command import compare
from judge.commands.criteria_diff.record import (
    Agreement,
    CriterionDiff,
    FlipCount,
    Judged,
    PromptDifference,
    Prompts,
)
from judge.commands.evaluate import Model, reject_unsupported, to_config
from judge.commands.options import JudgeOptions
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import public_api
from judge.config import RunConfig
from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Request, Sample
from judge.core.request_options import Judge
from judge.core.run_sync import run_sync
from judge.criteria.reply_form import configured
from judge.data import ledger
from judge.execution import budget
from judge.execution.progress import Progress
from judge.providers import Provider
from judge.results.comparison import Change
from judge.results.result import Result
from judge.run.cost_estimate import SAMPLED_JUDGMENTS, estimate_cost
from judge.run.judge_run import require_all_recorded
from judge.run.pipeline import Display, Runs
from judge.run.preparation import (
    PreparedRun,
    choose_pairs,
    criterion_for,
    load_texts,
    prepare,
    select_texts,
)
from judge.scoring.multi_criteria import make_renderers
from judge.stats.bootstrap import Floats
from judge.stats.correlation import change_in_agreement, usual_level
from judge.stats.human_agreement import column_from_table

if TYPE_CHECKING:
    from judge.commands.evaluate import Data

_DECIMALS = 9  # equal values may differ by rounding
_MAX_DIFFERENCES, _MAX_NAMES = 3, 20  # differences of prompts, and names, that are shown
_LONGEST_LINE = 200  # characters of a line that differs
CriterionPair = tuple[Criterion, Criterion]
TextPair = tuple[Sample, Sample | None]


@dataclass(slots=True)
class DiffPlan:
    """Two checked criteria: their comparison without a judge and, if a judge is named, a run for each.

    In both runs the criterion has the same name, that of the human ratings. Only `rows` have these ratings: a run would
    compute more agreement with them than is shown here.
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
    human: str | None = None,
    progress: Watch = None,
    **options: Unpack[JudgeOptions],
) -> CriterionDiff:
    """Compare two criteria: names, files, sentences or Criterion objects.

    Without data, compare headers, files and layouts. With data, also compare their prompts on these texts (of one
    `item` or `system`) and the tokens. With a judge (`model`, or `replay`), score all texts with both: how far scores
    change, which orders flip, and which criterion agrees better with people's ratings in the column `human`
    (default: the criterion's name). Other arguments are those of `judge.evaluate`.

    Raises JudgeError.
    """
    reject_unsupported(options, "diff", "a diff of criteria")
    config, judges, _ = to_config(RunConfig, data, None, model, options)
    diff_plan = plan_diff(
        before, after, config, data, providers=judges, item=item, system=system, human=human
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
    """Compare two criteria without a judge, and prepare the runs if one is named. Raises JudgeError."""
    reject_unsupported(config, "diff", "a diff of criteria")
    judges = config.model if providers is None else providers
    asking = bool(judges or config.replay)
    source = data if data is not None else config.data
    if source is None and (asking or item or system or human):
        raise ConfigError("no data: name a file of texts after the two criteria")
    if human and not asking:
        raise ConfigError(
            f"{option('human')}: agreement with people needs scores; add {option('model', 'NAME')} or "
            f"{option('replay', 'CALLS')}"
        )
    rows = (
        []
        if source is None
        else select_texts(load_texts(config, source), item, system)[: config.limit]
    )
    language = config.language or text.language_of(rows)

    def load(side: str | Criterion) -> Criterion:
        if isinstance(side, Criterion):
            return configured(criteria.in_language(criteria.finalize(side), language), config)
        return configured(criteria.load(side, language=language, pairwise=None), config)

    sides = load(before), load(after)
    names = (
        before if isinstance(before, str) else before.name,
        after if isinstance(after, str) else after.name,
    )
    if names[0] == names[1]:
        names = f"{names[0]} (before)", f"{names[1]} (after)"
    comparison = _compare_files(sides, names)
    ratings = dict.fromkeys(name for row in rows for name in row.human)
    if human is not None and human not in ratings:
        raise ConfigError(
            f"--human: {unknown_name_message('rating', human, list(ratings)[:_MAX_NAMES])}"
        )
    rating = human or next((side.name for side in sides if side.name in ratings), sides[0].name)
    rows = list(ledger.withhold(rows, {rating: sides[0].used | sides[1].used}))
    if not rows:
        return DiffPlan(comparison)
    if sides[0].pairwise != sides[1].pairwise:
        raise ConfigError(
            "one criterion judges one text, the other compares two: omit the data to compare their files"
        )
    for side in sides:
        criteria.check_samples(side, rows)
    runs = None
    if asking:
        runs = _prepare_runs(config, judges, rows, sides, rating)
        first, second = (
            criterion_for(run.criteria[0], next(iter(run.judges.values()))) for run in runs
        )
        sides = first, second
    return DiffPlan(
        replace(comparison, prompts=_compare_prompts(sides, rows, config.seed, runs)), runs, rows
    )


def _compare_files(sides: CriterionPair, names: tuple[str, str]) -> CriterionDiff:
    """Compare the headers, templates and layouts."""
    headers: list[dict[str, str]] = []
    for side in sides:
        labels, values = side.scale.labels, side.scale.values
        if labels == tuple(f"{value:g}" for value in values):
            other_steps = (
                f" in {len(labels)} labels" if len(labels) != values[-1] - values[0] + 1 else ""
            )
            scale = f"{labels[0]}–{labels[-1]}{other_steps}"
        else:
            scale = ", ".join(
                f"{label} ({value:g})" for label, value in zip(labels, values, strict=True)
            )
        headers.append(
            {
                "digest": side.digest[:6],
                "compares": "two texts" if side.pairwise else "one text",
                "title": side.title,
                "description": side.description,
                "scale": scale,
                "reply": side.reply,
                "weight": f"{side.weight:g}",
                "pass_at": "" if side.pass_at is None else f"{side.pass_at:g}",
                "version": str(side.version),
                "reads": ", ".join(sorted(side.needs)),
                "layouts": ", ".join(side.layouts),
                "language": side.language,
                "steps": " ".join(side.steps),
            }
        )
    had, has = headers
    changes = [
        Change(name, had[name] or "–", has[name] or "–") for name in had if had[name] != has[name]
    ]
    lines: list[str] = []
    for layout in dict.fromkeys(["", *sides[0].layouts, *sides[1].layouts]):
        texts = (side.layouts.get(layout, "") if layout else side.template for side in sides)
        old, new = (file.splitlines() for file in texts)
        old_title, new_title = (f"{layout} of {name}" if layout else name for name in names)
        lines += unified_diff(old, new, old_title, new_title, lineterm="")
    return CriterionDiff(names, sides, tuple(changes), tuple(lines))


def _prepare_runs(
    config: RunConfig,
    judges: Sequence[Judge | Provider],
    rows: Sequence[Sample],
    sides: CriterionPair,
    rating: str,
) -> tuple[PreparedRun, PreparedRun]:
    """Prepare a run for each criterion, under the same name."""
    if sides[0].pairwise:
        raise ConfigError(
            "these criteria compare two texts, but a diff scores single texts: omit the judge, or use judge rank"
        )
    used_up: dict[str, Any] = {"map": {}, "systems": (), "where": {}, "limit": None}
    config = config.model_copy(
        update={**used_up, "criteria": (rating,), "metrics": (), "set": {}, "out": None}
    )
    unrated = [replace(row, human={}, ratings={}) for row in rows]
    first, second = (
        prepare(
            config, unrated, providers=judges, loaded_criteria={rating: replace(side, name=rating)}
        )
        for side in sides
    )
    return first, second


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
        texts = pairs.compared or pairs.equal
    renderers = [make_renderers([side])[side.name] for side in sides]
    sizes = [0, 0]
    differing: list[TextPair] = []
    differences: Counter[tuple[str, ...]] = Counter()
    for sample, rival in texts:
        prompts = [renderer.render(sample, rival) for renderer in renderers]
        for side, prompt in enumerate(prompts):
            sizes[side] += budget.estimate_request(Request("", prompt.messages))
            sizes[side] += budget.estimate_tokens(prompt.question)
        old, new = (
            [*(message["content"] for message in prompt.messages), prompt.question]
            for prompt in prompts
        )
        if old != new:
            differing.append((sample, rival))
            before, after = ("\n".join(parts).splitlines() for parts in (old, new))
            lines = unified_diff(before, after, "before", "after", lineterm="", n=0)
            differences[
                tuple(f"{line:.{_LONGEST_LINE}}" for line in lines if not line.startswith("@@"))
            ] += 1
    most = tuple(
        PromptDifference(count, lines) for lines, count in differences.most_common(_MAX_DIFFERENCES)
    )
    items, differing_items = (
        len({sample.item for sample, _ in group}) for group in (texts, differing)
    )
    mean_sizes = sizes[0] / len(texts), sizes[1] / len(texts)
    prices, source = (None, "") if runs is None else _prices(runs)
    return Prompts(
        len(texts), items, len(differing), differing_items, most, mean_sizes, prices, source
    )


def _prices(runs: tuple[PreparedRun, PreparedRun]) -> tuple[tuple[float, float] | None, str]:
    """Return US dollars for 1,000 judgments by all judges, before and after, and the source of the prices.

    None if a price is unknown, with the reason instead.
    """
    prices, why = [], ""
    for run in runs:
        total = 0.0
        uncached = replace(run, config=run.config.model_copy(update={"cache": False}))
        for judge in estimate_cost(uncached, SAMPLED_JUDGMENTS).judges:
            why = judge.money.why
            if judge.money.price is None or run.judges[judge.estimate.judge].notice:
                return None, "" if run.judges[judge.estimate.judge].notice else why
            total += 1000 * judge.money.price / max(1, judge.estimate.total.requests)
        prices.append(total)
    return (prices[0], prices[1]), why


async def run_diff(
    diff_plan: DiffPlan,
    progress: Progress | None = None,
    display: Display = lambda *_: nullcontext(),
) -> CriterionDiff:
    """Make both runs, if any, within one budget and one deadline; each runs inside its display,
    named "before" and "after".

    Raises the errors of `pipeline.run_pipeline`, and Unrecorded if a recording lacks replies.
    """
    if diff_plan.runs is None:
        return diff_plan.comparison
    runs = dict(zip(("before", "after"), diff_plan.runs, strict=True))
    results = await Runs(diff_plan.runs[0].config, progress, display).run_all(runs)
    require_all_recorded(*results.values())
    judged, notes = criterion_shifts(results["before"], results["after"], diff_plan.rows)
    return replace(diff_plan.comparison, judged=judged, notes=notes)


def criterion_shifts(
    before: Result, after: Result, rows: Sequence[Sample]
) -> tuple[Judged, tuple[str, ...]]:
    """Compare two runs of a criterion on the same texts; also return notes. `rows` have the human ratings.

    Raises DataError for a rating that was used to make either prompt.
    """
    column, seed = before.table.columns[0], before.info.config.seed
    sides, notes = (before, after), tuple[str, ...]()
    ends = [(side.table.columns[0].low, side.table.columns[0].high) for side in sides]
    if ends[0] != ends[1]:
        notes = ("The scales differ, so scores are compared as shares of their scale, 0 to 1.",)
        sides = _as_shares(before), _as_shares(after)
    had, has = ({s.key for s in side.table.column_scores(column.name)} for side in sides)
    comparison = replace(compare(*sides, seed=seed), changes=()) if had & has else None
    judged = Judged(
        (
            len(before.table.scores) + len(before.failures),
            len(after.table.scores) + len(after.failures),
        ),
        (before.failed, after.failed),
        comparison,
        tuple(_flips(before, after, column.name)),
        column.criterion,
    )
    ledger.check(rows, ledger.seen_by(column for side in sides for column in side.table.columns))
    rated = [row for row in rows if judged.rating in row.human]
    notes = (*notes, *ledger.notes(rows))
    if not rated:
        known = ", ".join(dict.fromkeys(name for row in rows for name in row.human))
        which = f" of {judged.rating} (--human selects another: {known})" if known else ""
        reason = f"No text has a human rating{which}, so agreement with people is unknown"
        return replace(judged, no_agreement=reason), notes
    old, new = (
        column_from_table(column, side.table, column.name).values for side in (before, after)
    )
    shifts, lacking = change_in_agreement(rated, judged.rating, old, new, seed=seed)
    agreement = tuple(Agreement(level, *shift) for level, shift in shifts.items())
    reason = "" if agreement else f"Agreement with people's {judged.rating} is undefined: {lacking}"
    return replace(
        judged, agreement=agreement, no_agreement=reason, level=usual_level(rated)
    ), notes


def _as_shares(result: Result) -> Result:
    """Rescale every value to a share of its scale."""
    ends = {
        c.name: (c.low, c.high - c.low)
        for c in result.table.columns
        if c.low is not None and c.high is not None
    }
    columns = tuple(
        replace(column, low=0.0, high=1.0, labels=()) for column in result.table.columns
    )
    scores = tuple(
        replace(score, value=(score.value - ends[score.column][0]) / ends[score.column][1])
        for score in result.table.scores
    )
    return replace(result, table=replace(result.table, columns=columns, scores=scores))


def _flips(before: Result, after: Result, column: str) -> Iterator[FlipCount]:
    """Count texts with another likeliest label, by all judges, and pairs of texts and of systems in reversed order."""
    if before.table.columns[0].labels == after.table.columns[0].labels:
        had, has = (
            {
                (s.item, s.system, s.column): s.provenance.argmax
                for s in side.table.scores
                if s.provenance.argmax
            }
            for side in (before, after)
        )
        both = had.keys() & has.keys()
        if both:
            yield FlipCount("likeliest label", sum(had[key] != has[key] for key in both), len(both))
    old, new = (np.round(side.table.matrix(column), _DECIMALS) for side in (before, after))
    if len(old) < 2:
        return
    scored = ~(np.isnan(old) | np.isnan(new))
    reversed_pairs = pairs = 0
    for old_values, new_values, known in zip(old.T, new.T, scored.T, strict=True):
        pairs += math.comb(int(known.sum()), 2)
        reversed_pairs += _reversed_pairs(old_values[known], new_values[known])
    yield FlipCount("order within items", reversed_pairs, pairs)
    counts = scored.sum(axis=1)
    means: list[Floats] = [
        np.round(
            np.where(scored, side, 0.0).sum(axis=1)[counts > 0] / counts[counts > 0], _DECIMALS
        )
        for side in (old, new)
    ]
    yield FlipCount("order of systems", _reversed_pairs(*means), math.comb(len(means[0]), 2))


def _reversed_pairs(before: Floats, after: Floats) -> int:
    """Return how many pairs are in the opposite order; tied pairs do not count."""
    signs = [np.sign(side[:, None] - side[None, :]) for side in (before, after)]
    return int((signs[0] * signs[1] < 0).sum()) // 2
