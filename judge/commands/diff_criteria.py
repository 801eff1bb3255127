"""What a judge makes of two wordings of a criterion: what moved, what turned, and which goes better with people.

Two wordings of a criterion: what differs in their files, in their prompts on data, and in what a judge says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from difflib import unified_diff
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from judge import config, criteria, text
from judge.commands.compare import compare
from judge.commands.count_requests import count_requests
from judge.commands.evaluate import JudgeOptions, Model, reject_run_only_settings, reject_unsupported, to_config
from judge.commands.judge_models import HEURISTIC
from judge.commands.judge_run import require_all_recorded
from judge.commands.pipeline import run_sequentially
from judge.commands.preparation import PreparedRun, choose_pairs, criterion_for, prepare
from judge.commands.progress_display import Watch, displayed
from judge.commands.public import public_api, run_sync
from judge.commands.run_metadata import prompt_skeletons
from judge.config import Judge, Plan
from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.core.plugins import unknown_name_message
from judge.core.records import Criterion, Prompt, Request, Sample, Usage
from judge.criteria.render import Renderer
from judge.data import samples
from judge.execution import budget
from judge.execution.pending import Judgment
from judge.execution.progress import Progress
from judge.providers import Provider, pricing
from judge.results.comparison import (
    Agreement,
    Change,
    CriterionDiff,
    FlipCount,
    Judged,
    PromptDifference,
    Prompts,
    RankChange,
)
from judge.results.result import Result
from judge.stats.bootstrap import Floats
from judge.stats.correlation import change_in_agreement, usual_level
from judge.stats.human_agreement import column_from_table

if TYPE_CHECKING:
    from judge.commands.evaluate import Data

_PLACES = 9  # equal values may differ by rounding


def criterion_shifts(before: Result, after: Result, rows: Sequence[Sample]) -> tuple[Judged, tuple[str, ...]]:
    """Two runs of one criterion on the same texts against each other, and what there is to know besides.

    `rows` are the texts with their ratings by people.
    """
    column, seed = before.table.columns[0], before.info["plan"]["seed"]
    sides, notes = (before, after), tuple[str, ...]()
    ends = [(side.table.columns[0].low, side.table.columns[0].high) for side in sides]
    if ends[0] != ends[1]:
        notes = ("The scales are not the same: scores are compared as shares of their scale, 0 to 1.",)
        sides = _as_shares(before), _as_shares(after)
    had, has = ({(s.item, s.system) for s in side.table.column_scores(column.name)} for side in sides)
    moved = replace(compare(*sides, seed=seed), changes=()) if had & has else None
    turned = (*_labels(before, after), *_orders(before, after, column.name))
    places = tuple(_places(before, after, column.name))
    judgments, failed = (_asked(before), _asked(after)), (before.failed, after.failed)
    found = Judged(judgments, failed, moved, turned, places, column.criterion)
    return _against(found, rows, before, after), notes


def _asked(result: Result) -> int:
    return len(result.table.scores) + len(result.failures)


def _as_shares(result: Result) -> Result:
    """The same with every value as a share of its scale."""
    ends = {c.name: (c.low, c.high - c.low) for c in result.table.columns if c.low is not None and c.high is not None}
    columns = tuple(replace(column, low=0.0, high=1.0, labels=()) for column in result.table.columns)
    scores = tuple(
        replace(score, value=(score.value - ends[score.column][0]) / ends[score.column][1])
        for score in result.table.scores
    )
    return replace(result, table=replace(result.table, columns=columns, scores=scores))


def _labels(before: Result, after: Result) -> Iterator[FlipCount]:
    """Texts of which the likeliest label is another one, of all judges; nothing where the scales have other labels."""
    if before.table.columns[0].labels != after.table.columns[0].labels:
        return
    had, has = (
        {(s.item, s.system, s.column): s.provenance.argmax for s in side.table.scores if s.provenance.argmax}
        for side in (before, after)
    )
    both = had.keys() & has.keys()
    if both:
        yield FlipCount("likeliest label is another one", sum(had[key] != has[key] for key in both), len(both))


def _orders(before: Result, after: Result, column: str) -> Iterator[FlipCount]:
    """Pairs of texts within an item, and pairs of systems by their means, of which the other one is ahead now."""
    old, new = (np.round(side.table.matrix(column), _PLACES) for side in (before, after))
    if len(old) < 2:
        return
    turned, of = 0, 0
    for one, other in zip(old.T, new.T, strict=True):
        known = ~(np.isnan(one) | np.isnan(other))
        of += int(known.sum()) * (int(known.sum()) - 1) // 2
        turned += _reversed(one[known], other[known])
    yield FlipCount("order of two texts within an item", turned, of)
    both = ~(np.isnan(old) | np.isnan(new))
    scored = both.any(axis=1)
    means = [
        np.round([fmean(row[of].tolist()) for row, of in zip(side[scored], both[scored], strict=True)], _PLACES)
        for side in (old, new)
    ]
    yield FlipCount("order of two systems' means", _reversed(*means), len(list(combinations(means[0], 2))))


def _reversed(one: Floats, other: Floats) -> int:
    """How many pairs are in the opposite order; a tie is in no order."""
    signs = [np.sign(side[:, None] - side[None, :]) for side in (one, other)]
    return int((signs[0] * signs[1] < 0).sum()) // 2


def _places(before: Result, after: Result, column: str) -> Iterator[RankChange]:
    """The systems that have another rank."""
    had, has = (
        {r.system: (r.rank, r.low, r.high) for c in side.comparisons if c.column == column for r in c.ranks}
        for side in (before, after)
    )
    for system in has:
        if system in had and had[system][0] != has[system][0]:
            yield RankChange(system, had[system], has[system])


def _against(found: Judged, rows: Sequence[Sample], before: Result, after: Result) -> Judged:
    """With the agreement with people's ratings, or why there is none."""
    rated = [row for row in rows if found.rating in row.human]
    if not rated:
        known = dict.fromkeys(name for row in rows for name in row.human)
        others = f" called {found.rating} (--human names another: {', '.join(known)})" if known else ""
        return replace(found, lacking=f"No text has a rating by people{others} to hold the two against")
    agreement, why = _agreement(rated, before, after, found.rating)
    lacking = "" if agreement else f"Agreement with people's {found.rating} cannot be had: {why}"
    return replace(found, agreement=agreement, lacking=lacking, level=usual_level(rated))


def _agreement(
    rated: Sequence[Sample], before: Result, after: Result, rating: str
) -> tuple[tuple[Agreement, ...], str]:
    """Spearman with people before and after, by level, on the texts that have both scores; why a level has none."""
    column, seed = before.table.columns[0], before.info["plan"]["seed"]
    old, new = (column_from_table(column, side.table, column.name).values for side in (before, after))
    found, why = change_in_agreement(rated, rating, old, new, seed=seed)
    return tuple(Agreement(level, *shift) for level, shift in found.items()), why


_WAYS, _NAMED = 3, 20  # differences of prompts, and names, that are shown
_LOOKED_AT = 400
Two = tuple[Criterion, Criterion]


@dataclass(slots=True)
class DiffPlan:
    """Two criteria, checked: what is known of them without a judge, and, where one was named, a run for each.

    In both runs the criterion has one name, that of people's ratings; these only the `rows` have, for a run would hold
    more against them than is shown here.
    """

    found: CriterionDiff
    runs: tuple[PreparedRun, PreparedRun] | None = None
    rows: Sequence[Sample] = ()


@public_api(JudgeOptions)
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
    """Two criteria side by side: built-in names, paths of .jinja files or Criterion objects.

    Without data, their headers, files and layouts. With data, also their prompts on these texts (of one `item`, of one
    `system`) and the tokens they take. With a judge (`model`, or `replay` of a recording) both are asked about all the
    texts: how far the scores moved, what came out the other way, and which of the two goes better with people's ratings
    in the column `human` (default: the criterion's name). All else is as in `judge.evaluate`.

    Raises JudgeError.
    """
    reject_unsupported(options, JudgeOptions, "a diff of criteria")
    made, judges, _ = to_config(config.plan, data, None, model, options)
    found = plan_diff(before, after, made, data, providers=judges, item=item, system=system, human=human)
    return run_sync(lambda: _watched(found, progress))


async def _watched(found: DiffPlan, progress: Watch) -> CriterionDiff:
    async with displayed(progress) as counts:
        return await run_diff(found, counts)


def plan_diff(
    before: str | Criterion,
    after: str | Criterion,
    made: Plan,
    data: Any = None,
    *,
    providers: Sequence[Judge | Provider] | None = None,
    item: str | None = None,
    system: str | None = None,
    human: str | None = None,
) -> DiffPlan:
    """All that can be said of two criteria without asking, and what is to be asked. Raises JudgeError."""
    reject_run_only_settings(made, "a diff of criteria")
    given = made.model if providers is None else providers
    asking = bool(given or made.replay)
    source = data if data is not None else made.data
    if source is None and (asking or item or system or human):
        raise ConfigError("no data: name a file of texts after the two criteria")
    if human and not asking:
        raise ConfigError(
            f"{option('human')}: agreement with people takes scores; name a judge: {option('model', 'NAME')} or "
            f"{option('replay', 'CALLS')}"
        )
    rows = [] if source is None else _rows(made, source, item, system)
    language = made.language or text.language_of(rows)
    sides = _loaded(before, made, language), _loaded(after, made, language)
    found = _texts(sides, _names(before, after))
    rating = _rating(rows, sides, human)
    if not rows:
        return DiffPlan(found)
    if sides[0].pairwise != sides[1].pairwise:
        raise ConfigError("one of the two compares two texts and the other judges one: leave out the data")
    for side in sides:
        criteria.check_samples(side, rows)
    runs = _runs(made, given, rows, sides, rating) if asking else None
    shown = sides if runs is None else _as_asked(runs)
    return DiffPlan(replace(found, prompts=_prompts(shown, rows, made.seed, runs)), runs, rows)


async def run_diff(
    ready: DiffPlan,
    progress: Progress | None = None,
    watch: Callable[[PreparedRun], AbstractContextManager[Any]] = nullcontext,
) -> CriterionDiff:
    """Ask what there is to ask, from one budget and within one deadline; each run inside what `watch` makes.

    Raises what `stages.run` raises, and Unrecorded where a recording lacks replies.
    """
    if ready.runs is None:
        return ready.found
    runs = dict(zip(("before", "after"), ready.runs, strict=True))
    results = await run_sequentially(runs, ready.runs[0].plan, progress, lambda _, one: watch(one))
    require_all_recorded(*results.values())
    judged, notes = criterion_shifts(results["before"], results["after"], ready.rows)
    return replace(ready.found, judged=judged, notes=notes)


# The files


def _rows(made: Plan, source: Any, item: str | None, system: str | None) -> list[Sample]:
    """The texts of an item and a system, as far as they are named."""
    rows = samples.load(source, mapping=made.mapping, systems=made.systems, where=made.where)
    for what, name in (("item", item), ("system", system)):
        if name is not None:
            known = dict.fromkeys(getattr(one, what) for one in rows)
            rows = [one for one in rows if getattr(one, what) == name]
            if not rows:
                raise ConfigError(f"{option(what)}: {unknown_name_message(what, name, list(known)[:_NAMED])}")
    return rows[: made.limit]


def _loaded(given: str | Criterion, made: Plan, language: str) -> Criterion:
    """The criterion in the form that the plan wants."""
    if isinstance(given, Criterion):
        found = criteria.finalize(given)
    else:
        found = criteria.load(given, language=language, pairwise=None)
    return replace(found, reply=made.reply or found.reply, form="json" if made.structured else found.form)


def _names(before: str | Criterion, after: str | Criterion) -> tuple[str, str]:
    first, second = (one.name if isinstance(one, Criterion) else one for one in (before, after))
    return (first, second) if first != second else (f"{first} (before)", f"{second} (after)")


def _rating(rows: Sequence[Sample], sides: Two, human: str | None) -> str:
    """The column of people's ratings that both are held against; the first one's name where there are none."""
    known = dict.fromkeys(name for row in rows for name in row.human)
    if human is not None and human not in known:
        raise ConfigError(f"--human: {unknown_name_message('rating', human, list(known)[:_NAMED])}")
    return human or next((side.name for side in sides if side.name in known), sides[0].name)


def _texts(sides: Two, names: tuple[str, str]) -> CriterionDiff:
    had, has = map(_header, sides)
    had["steps"], has["steps"] = _steps(*(side.steps for side in sides))
    changes = [Change(what, had[what] or "–", has[what] or "–") for what in had if had[what] != has[what]]
    lines: list[str] = []
    for file in dict.fromkeys(["", *sides[0].layouts, *sides[1].layouts]):
        old, new = (_file(side, file).splitlines() for side in sides)
        one, other = (f"{file} of {name}" if file else name for name in names)
        lines += unified_diff(old, new, one, other, lineterm="")
    return CriterionDiff(names, sides, tuple(changes), tuple(lines))


def _file(side: Criterion, layout: str) -> str:
    return side.layouts.get(layout, "") if layout else side.template


def _header(one: Criterion) -> dict[str, str]:
    return {
        "digest": one.digest[:6],
        "compares": "two texts" if one.pairwise else "one text",
        "title": one.title,
        "description": one.description,
        "scale": _scale(one),
        "reply": one.reply,
        "weight": f"{one.weight:g}",
        "version": str(one.version),
        "reads": ", ".join(sorted(one.needs)),
        "layouts": ", ".join(one.layouts),
        "language": one.language,
    }


def _scale(one: Criterion) -> str:
    """`1–5`, `0–100 in 11 labels`, `fail (0), pass (1)`."""
    labels, values = one.scale.labels, one.scale.values
    if labels != tuple(f"{value:g}" for value in values):
        return ", ".join(f"{label} ({value:g})" for label, value in zip(labels, values, strict=True))
    every = len(labels) == values[-1] - values[0] + 1
    return f"{labels[0]}–{labels[-1]}" + ("" if every else f" in {len(labels)} labels")


def _steps(before: Sequence[str], after: Sequence[str]) -> tuple[str, str]:
    if before == after:
        return "", ""
    new = sum(step not in before for step in after)
    return str(len(before) or "none"), f"{len(after)}, {new or 'none'} of them new" if after else "none"


# The prompts


def _runs(
    made: Plan, given: Sequence[Judge | Provider], rows: Sequence[Sample], sides: Two, rating: str
) -> tuple[PreparedRun, PreparedRun]:
    """A run for each of the criteria, under one name."""
    if sides[0].pairwise:
        raise ConfigError(
            "these criteria compare two texts, and a diff judges one text at a time: leave out the judge, or look at "
            "judge rank with either"
        )
    if any(isinstance(one, Judge) and one.name == HEURISTIC for one in given):
        raise ConfigError(f"--model {HEURISTIC}: it reads no prompt, so two of them are the same to it")
    read: dict[str, Any] = {"mapping": {}, "systems": (), "where": {}, "limit": None}
    plan = made.model_copy(update={**read, "criteria": (rating,), "metrics": (), "set": {}, "out": None})
    bare = [replace(row, human={}, ratings={}) for row in rows]
    first, second = (prepare(plan, bare, providers=given, own={rating: replace(side, name=rating)}) for side in sides)
    return first, second


def _as_asked(runs: tuple[PreparedRun, PreparedRun]) -> Two:
    """The criteria as the first judge is asked them."""
    first, second = (criterion_for(one.criteria[0], next(iter(one.judges.values()))) for one in runs)
    return first, second


def _prompts(sides: Two, rows: Sequence[Sample], seed: int, runs: tuple[PreparedRun, PreparedRun] | None) -> Prompts:
    """Both prompts on every text, or on every pair of texts in one order."""
    shown: Sequence[tuple[Sample, Sample | None]] = [(row, None) for row in rows]
    if sides[0].pairwise:
        pairs = choose_pairs(rows, orders=1, budget=None, seed=seed)
        shown = pairs.compared or pairs.equal
    renderers = [Renderer(side, criteria.template_bodies(side)) for side in sides]
    sizes = [0, 0]
    differing: list[tuple[Sample, Sample | None]] = []
    for first, second in shown:
        made = [renderer.render(first, second) for renderer in renderers]
        for place, prompt in enumerate(made):
            sizes[place] += _size(prompt)
        if (made[0].messages, made[0].question) != (made[1].messages, made[1].question):
            differing.append((first, second))
    items, others = (len({first.item for first, _ in some}) for some in (shown, differing))
    mean = sizes[0] / len(shown), sizes[1] / len(shown)
    cost, priced = (None, "") if runs is None else _cost(runs)
    return Prompts(len(shown), items, len(differing), others, _ways(sides, differing), mean, cost, priced)


def _size(prompt: Prompt) -> int:
    return budget.estimate_request(Request("", prompt.messages)) + budget.estimate_tokens(prompt.question)


def _ways(sides: Two, differing: Sequence[tuple[Sample, Sample | None]]) -> tuple[PromptDifference, ...]:
    """What is around the texts, where it differs: each difference once."""
    named = [replace(side, name=which) for side, which in zip(sides, ("before", "after"), strict=True)]
    found = prompt_skeletons(
        {"": [Judgment(first, side, second) for first, second in differing for side in named]},
        {first.item for first, _ in differing},
    )
    written = {side.name: found["asked"].get(side.name, {"usual": None, "others": []}) for side in named}
    others = {which: {tuple(key): n for *key, n in of["others"]} for which, of in written.items()}
    pairs: Counter[tuple[int | None, ...]] = Counter()
    for first, second in differing:
        key = first.item, first.system, second.system if second else ""
        pairs[tuple(others[which].get(key, of["usual"]) for which, of in written.items())] += 1
    ways: Counter[tuple[str, ...]] = Counter()
    for (old, new), texts in pairs.items():
        if old is not None and new is not None:
            had, has = (_lines(found["sheets"][number]) for number in (old, new))
            ways[tuple(unified_diff(had, has, "before", "after", lineterm=""))] += texts
    return tuple(PromptDifference(texts, lines) for lines, texts in ways.most_common(_WAYS))


def _lines(sheet: Sequence[Any]) -> list[str]:
    """A sheet as it is read: `⟨output⟩` where the text stands."""
    found: list[str] = []
    for _, parts in sheet:
        names = (f"⟨{name.removeprefix('text ').removeprefix('extra ')}⟩" for name in parts[1::2])
        places = ["⟨key⟩" if name.startswith("⟨key ") else name for name in names] + [""]
        words = "".join(word + place for word, place in zip(parts[::2], places, strict=True))
        found += words.splitlines()
    return found


def _cost(runs: tuple[PreparedRun, PreparedRun]) -> tuple[tuple[float, float] | None, str]:
    """US dollars for 1,000 judgments by all judges, before and after, and where the prices are from, or why not."""
    found, why = [], ""
    for one in runs:
        fresh = replace(one, plan=one.plan.model_copy(update={"cache": False}))
        total = 0.0
        for ahead in count_requests(fresh, _LOOKED_AT):
            judge, line = one.judges[ahead.judge], ahead.total
            each = 1000 / max(1, line.requests)
            usage = Usage(round(line.read * each), round(line.written * each))
            price = pricing.cost_usd(judge.model, judge.endpoint, usage, decides=judge.decides)
            if judge.notice:
                return None, ""
            if price is None:
                return None, pricing.why_unknown(judge.model, judge.endpoint, decides=judge.decides)
            total, why = total + price, pricing.price_source(decides=judge.decides)
        found.append(total)
    return (found[0], found[1]), why
