"""`judge criteria improve`: have a model revise a criterion, and test the best revision on unseen ratings.

The rated items are split. On the training part the judge's largest disagreements with people are found and shown to the
writer, and its revisions are tried and chosen. The chosen one meets the testing part once, against the present wording:
one test, so that a useless revision is kept in at most 5% of cases (`benchmarks/improving.py`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Any

import numpy as np

from judge import text
from judge.commands.evaluate import reject_unsupported
from judge.commands.improve.record import Improvement, Part, Trial, choose_wording, measure_gain
from judge.commands.improve.revisions import (
    Case,
    Revision,
    Wording,
    read_revision,
    read_wording,
    revised,
    writing_prompts,
)
from judge.config import RunConfig
from judge.core.errors import ConfigError, CriterionError, DataError, ParseError, StorageError
from judge.core.files import claim_folder, store, try_writing
from judge.core.format import plural
from judge.core.messages import option
from judge.core.records import Criterion, Sample, seen_digest
from judge.core.request_options import Judge
from judge.data import ledger
from judge.data.ratings import base_name
from judge.execution.progress import Progress
from judge.metrics.base import ModelQuestion
from judge.providers import Provider, require_text
from judge.results.result import Result
from judge.run import human_ratings
from judge.run.cost_estimate import SAMPLED_JUDGMENTS, estimate_cost
from judge.run.judge_run import require_all_recorded
from judge.run.pipeline import Display, Runs
from judge.run.preparation import PreparedRun, check_output_dir, load_texts, prepare
from judge.run.request_estimates import price_text
from judge.stats.calibration import MIN_RATED_ITEMS
from judge.stats.coefficients import Level
from judge.stats.correlation import usual_level
from judge.stats.human_agreement import RatedColumn, column_from_table

MOST_REVISIONS = 12
_SHARE, _MOST_TRAINING = 3, 50
"""The training part is a third of the items, at most 50: more would choose little better and test worse."""
_CASES = 6  # too high, and as many too low
_MOST_COMMENTS, _LONGEST_COMMENT = 3, 500
_TOKEN_LIMIT = 4_096


@dataclass(frozen=True, slots=True)
class ImprovementPlan:
    """An attempt whose data is split and whose requests are checked. Nothing has been sent yet.

    `training` and `testing` are the rated texts of each part, whose ratings are called `rating`. `comments` are
    people's, by text. `first` is the run of the present wording on the training part.
    """

    config: RunConfig
    wording: Wording
    rating: str
    level: Level
    training: tuple[Sample, ...]
    testing: tuple[Sample, ...]
    comments: Mapping[tuple[str, str], Sequence[str]]
    judges: Sequence[Judge | Provider]
    writer: Judge | Provider
    revisions: int
    out: Path | None
    first: PreparedRun
    notes: tuple[str, ...]

    @property
    def seen(self) -> frozenset[str]:
        """The digests of the training part."""
        return frozenset(seen_digest(sample.source, sample.output) for sample in self.training)


def plan_improvement(
    entry: str,
    config: RunConfig,
    data: Any = None,
    *,
    providers: Sequence[Judge | Provider] | None = None,
    writer: Judge | Provider | None = None,
    revisions: int = 4,
    human: str | None = None,
    output: Path | None = None,
    out: Path | None = None,
) -> ImprovementPlan:
    """Load the criterion and the ratings, split them, and prepare the first run. Raises JudgeError.

    `entry` is a file, a name or a sentence, `writer` the model that writes (default: the judge), `human` the name of
    the ratings (default: the criterion's), `output` the file to write and `out` a folder for all revisions.
    """
    reject_unsupported(
        config.model_copy(update={"ratings": None}), "diff", "judge criteria improve"
    )
    if not 1 <= revisions <= MOST_REVISIONS:
        raise ConfigError(f"--revisions {revisions}: try 1 to {MOST_REVISIONS}")
    check_output_dir(out)
    judges = config.model if providers is None else providers
    rows = load_texts(config, config.data if data is None else data)[: config.limit]
    language = config.language or text.language_of(rows)
    wording = read_wording(entry, output, language)
    criterion = wording.criterion
    rating = human or criterion.name
    rated, comments, notes = _rated_texts(config, rows, replace(criterion, name=rating))
    level = usual_level(rated)
    training, testing = _split(rated, rating, level, config.seed)
    used_up: dict[str, Any] = {
        "map": {},
        "systems": (),
        "where": {},
        "limit": None,
        "ratings": None,
    }
    config = config.model_copy(
        update={**used_up, "metrics": (), "set": {}, "out": None, "language": language}
    )
    first = _prepare(config, training, {criterion.name: criterion}, judges)
    opened = next(iter(first.judges.values()))
    chosen_writer = writer or (judges[0] if judges else Judge(name=opened.model))
    if len(first.judges) > max(1, len(judges)):
        raise ConfigError(
            f"{option('replay')}: it holds several models; name the judge with {option('model', 'NAME')}"
        )
    if writer is None and len(first.judges) > 1:
        raise ConfigError(
            "a panel judges: name the one model that writes the revisions with --writer NAME"
        )
    writing = _prepare(
        config.model_copy(update={"record": None}),
        training,
        {criterion.name: criterion},
        [chosen_writer],
    )
    for name, provider in writing.judges.items():
        require_text(provider, f"--writer {name}")
    if wording.path.exists():
        raise ConfigError(f"{wording.path}: already exists; name another file with --output")
    try:
        try_writing(wording.path.parent)
    except OSError as error:
        raise ConfigError(
            f"{wording.path}: its folder cannot be written to; name another file with --output"
        ) from error
    return ImprovementPlan(
        config, wording, rating, level, tuple(training), tuple(testing), comments, judges, chosen_writer,
        revisions, out, first, tuple(notes),
    )  # fmt: skip


def _rated_texts(
    config: RunConfig, rows: Sequence[Sample], criterion: Criterion
) -> tuple[list[Sample], dict[tuple[str, str], list[str]], list[str]]:
    """Return the texts with usable ratings of the criterion's name, people's comments on them, and notes."""
    rating = criterion.name
    sheet, _ = human_ratings.read(
        config.model_copy(update={"criteria": (rating,)}), rows, rated=False
    )
    joined, notes = human_ratings.join(config, rows, sheet, [criterion])
    usable = list(ledger.withhold(joined, {rating: criterion.used}))
    rated = human_ratings.rated_texts(usable, rating)
    comments: dict[tuple[str, str], list[str]] = {}
    for each in sheet.single:
        if each.criterion in (rating, base_name(rating)) and each.comment.strip():
            comments.setdefault((each.item, each.system), []).append(
                each.comment.strip()[:_LONGEST_COMMENT]
            )
    return rated, comments, notes


def _split(
    rated: Sequence[Sample], rating: str, level: Level, seed: int
) -> tuple[list[Sample], list[Sample]]:
    """Split the rated texts by items, at random. No text of the testing part is in the training part.

    At level `within-items`, items whose texts have equal ratings say nothing and are left out. Raises DataError for too few.
    """
    values: dict[str, set[float]] = {}
    for sample in rated:
        values.setdefault(sample.item, set()).add(sample.human[rating])
    items = sorted(item for item, own in values.items() if len(own) > 1 or level != "within-items")
    random.Random(seed).shuffle(items)  # noqa: S311  (a split; no secret)
    chosen = set(items[: min(max(len(items) // _SHARE, MIN_RATED_ITEMS), _MOST_TRAINING)])
    others = set(items) - chosen
    training = [sample for sample in rated if sample.item in chosen]
    used = {rating: {seen_digest(sample.source, sample.output) for sample in training}}
    unseen = ledger.withhold((sample for sample in rated if sample.item in others), used)
    testing = [sample for sample in unseen if rating in sample.human]
    tested = len({sample.item for sample in testing})
    if min(len(chosen), tested) < MIN_RATED_ITEMS:
        equal = " whose texts differ in their ratings" if level == "within-items" else ""
        found = f"{plural(len(items), 'item')} with ratings of {rating}{equal}: too few"
        if len(items) >= 2 * MIN_RATED_ITEMS:
            found = (
                f"{plural(len(items), 'item')} with ratings of {rating}{equal}, but only {tested} of the "
                f"{len(others)} for the test have texts of their own: too few"
            )
        raise DataError(
            f"{found}. judge needs {2 * MIN_RATED_ITEMS}, with different texts: half to write and choose revisions, "
            "half for a test"
        )
    return training, testing


def _prepare(
    config: RunConfig,
    rows: Sequence[Sample],
    by_name: Mapping[str, Criterion],
    judges: Sequence[Judge | Provider],
) -> PreparedRun:
    """Prepare a run of criteria, which have the same title, on texts without their ratings."""
    unrated = [replace(row, human={}, ratings={}, raters={}) for row in rows]
    named = {name: replace(criterion, name=name) for name, criterion in by_name.items()}
    config = config.model_copy(update={"criteria": tuple(named)})
    return prepare(config, unrated, providers=judges, loaded_criteria=named)


def improvement_estimate(plan: ImprovementPlan) -> str:
    """Return one line to print before an attempt: its size, and about its requests and price without a cache."""
    training, testing = len(plan.training), len(plan.testing)
    line = (
        f"{training:,} rated texts to write and choose {plural(plan.revisions, 'revision')}, {testing:,} others to "
        "test the best"
    )
    if all(judge.notice for judge in plan.first.judges.values()):
        return f"{line}; no model is called"
    uncached = replace(plan.first, config=plan.first.config.model_copy(update={"cache": False}))
    forecast = estimate_cost(uncached, SAMPLED_JUDGMENTS)
    factor = (training * (1 + plan.revisions) + 2 * testing) / training
    price = price_text(None if forecast.price is None else factor * forecast.price)
    requests = f"at most about {factor * forecast.requests:,.0f} requests to the judge ({price})"
    return f"{line}: {requests} and {plan.revisions} to the writer"


async def _judge(name: str, prepared: PreparedRun, runs: Runs) -> Result:
    """Make one of the runs. Raises Unrecorded if a recording lacks replies."""
    result = await runs.run(name, prepared)
    require_all_recorded(result)
    return result


def _columns(result: Result) -> list[RatedColumn]:
    """Return the scores and failures of each criterion."""
    columns = [column for column in result.table.columns if not column.judge]
    return [column_from_table(column, result.table, column.name) for column in columns]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A revision that can be tried: its trial, criterion and file."""

    trial: Trial
    revision: Revision
    criterion: Criterion
    text: str


async def run_improvement(
    plan: ImprovementPlan,
    progress: Progress | None = None,
    display: Display = lambda *_: nullcontext(),
) -> Improvement:
    """Write revisions, try and choose, test the chosen one, and write its file if its gain is significant.

    All replies go through the cache, so a second call pays for nothing twice. Raises the errors of
    `pipeline.run_pipeline`, and StorageError.
    """
    if plan.out is not None:
        claim_folder(plan.out)
    runs = Runs(plan.config, progress, display)
    present = await _judge("present wording", plan.first, runs)
    candidates, trials = await _revise(plan, runs, present)
    improvement = Improvement(
        name=plan.wording.criterion.name,
        file=plan.wording.criterion.path,
        training=_size(plan.training),
        testing=_size(plan.testing),
        trials=trials,
        level=plan.level,
        notes=tuple(
            dict.fromkeys(
                [*(j.notice for j in plan.first.judges.values() if j.notice), *plan.notes]
            )
        ),
    )
    if candidates:
        improvement = await _choose_and_test(plan, runs, candidates, improvement, present)
    if plan.out is not None:
        files = {
            f"revision-{c.trial.number}{plan.wording.path.suffix}": c.text.encode()
            for c in candidates
        }
        store(plan.out, {**files, "result.json": improvement.report("json").encode()})
    return improvement


def _size(rows: Sequence[Sample]) -> Part:
    return Part(len({row.item for row in rows}), len(rows))


async def _revise(
    plan: ImprovementPlan, runs: Runs, present: Result
) -> tuple[list[_Candidate], tuple[Trial, ...]]:
    """Have the writer revise the wording; return what can be tried, and a trial for each revision."""
    wording, criterion = plan.wording, plan.wording.criterion
    prompts = writing_prompts(wording, _largest_disagreements(plan, present), plan.revisions)
    writing = _prepare(plan.config, plan.training, {criterion.name: criterion}, [plan.writer])
    replies = await runs.ask(
        writing, [ModelQuestion(prompt, _TOKEN_LIMIT, lambda reply: reply) for prompt in prompts]
    )
    shown = [part for sample in plan.training for part in (sample.output, sample.source or "")]
    candidates: list[_Candidate] = []
    trials: list[Trial] = []
    for number, reply in enumerate(replies, 1):
        trial = Trial(number)
        try:
            if not isinstance(reply, str):
                raise ParseError(f"no reply: {reply.message}")
            revision = read_revision(reply, wording, shown)
            trial = replace(trial, reason=revision.reason)
            if any(
                replace(revision, reason="") == replace(c.revision, reason="") for c in candidates
            ):
                raise ParseError("repeats another revision")
            file, made = revised(wording, revision, plan.seen)
            candidates.append(_Candidate(trial, revision, made, file))
        except (ParseError, CriterionError) as error:
            trial = replace(trial, skipped=str(error))
        trials.append(trial)
    return candidates, tuple(trials)


def _largest_disagreements(plan: ImprovementPlan, present: Result) -> list[Case]:
    """Return the texts whose ranks by judge and people differ most: those too high, then those too low.

    At level `within-items`, ranks are those within an item.
    """
    from scipy.stats import rankdata

    name = plan.wording.criterion.name
    scores = {score.key: score for score in present.table.column_scores(name)}
    scored = [sample for sample in plan.training if sample.key in scores]
    groups: dict[str, list[Sample]] = {}
    for sample in scored:
        groups.setdefault(sample.item if plan.level == "within-items" else "", []).append(sample)
    gaps: dict[tuple[str, str], float] = {}
    for group in groups.values():
        sides = [scores[s.key].value for s in group], [s.human[plan.rating] for s in group]
        judged, people = (rankdata(np.round(side, 9)) / len(group) for side in sides)
        gaps |= {s.key: float(gap) for s, gap in zip(group, judged - people, strict=True)}
    ordered = sorted(scored, key=lambda s: (-gaps[s.key], s.key))
    high = [s for s in ordered[:_CASES] if gaps[s.key] > 0]
    low = [s for s in ordered[::-1][:_CASES] if gaps[s.key] < 0]
    return [
        Case(
            sample,
            f"{scores[sample.key].value:.3g}",
            f"{sample.human[plan.rating]:.3g}",
            gaps[sample.key] > 0,
            scores[sample.key].provenance.reason or "",
            tuple(plan.comments.get(sample.key, ())[:_MOST_COMMENTS]),
        )
        for sample in (*high, *low)
    ]


async def _choose_and_test(
    plan: ImprovementPlan,
    runs: Runs,
    candidates: Sequence[_Candidate],
    improvement: Improvement,
    present: Result,
) -> Improvement:
    """Try the revisions on the training part; test the best one, if it is not the present wording, and write it."""
    wording, training = plan.wording, plan.training
    columns = _columns(present)
    by_name = {f"revision-{c.trial.number}": c.criterion for c in candidates}
    columns += _columns(
        await _judge("revisions", _prepare(plan.config, training, by_name, plan.judges), runs)
    )
    selection = choose_wording(training, plan.rating, columns, plan.level)
    tried = {
        c.trial.number: replace(c.trial, agreement=value, failed=len(tried_column.failed))
        for c, value, tried_column in zip(
            candidates, selection.values[1:], columns[1:], strict=True
        )
    }
    trials = tuple(tried.get(trial.number, trial) for trial in improvement.trials)
    failed, judged = sum(len(column.failed) for column in columns), len(training) * len(columns)
    improvement = replace(
        improvement, trials=trials, selection=selection, judgments=(failed, judged)
    )
    if not selection.chosen:
        return improvement
    best = candidates[selection.chosen - 1]
    both = {"present": wording.criterion, "revised": best.criterion}
    old, new = _columns(
        await _judge("test", _prepare(plan.config, plan.testing, both, plan.judges), runs)
    )
    before, after = wording.text.splitlines(), revised(wording, best.revision, ())[0].splitlines()
    title = f"revision {best.trial.number}"
    improvement = replace(
        improvement,
        chosen=best.trial.number,
        agreement=measure_gain(plan.testing, plan.rating, (old, new), plan.level, plan.config.seed),
        failed=(len(old.failed), len(new.failed)),
        judgments=(failed + len(old.failed) + len(new.failed), judged + 2 * len(plan.testing)),
        diff=tuple(unified_diff(before, after, wording.criterion.path, title, lineterm="", n=1)),
    )
    if improvement.improved:
        improvement = replace(improvement, written=str(wording.path))
        try:
            with wording.path.open("x", encoding="utf-8") as file:
                file.write(best.text)
        except OSError as error:
            raise StorageError(f"{wording.path}: {error.strerror}") from error
    return improvement
