"""`judge criteria improve`: a model revises a criterion; test the best one on unseen ratings.

The rated items are split. On the training part the judge's largest disagreements with people are
found and shown to the writer, and its revisions are tried and chosen. The chosen one meets the
testing part once, against the present wording: one test, so that a useless revision is kept in at
most 5% of cases (`benchmarks/improving.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from judge import text
from judge.commands.evaluate import reject_unsupported
from judge.commands.improve.record import (
    Improvement,
    Part,
    Trial,
    choose_wording,
    measure_gain,
)
from judge.commands.improve.revisions import (
    Case,
    Rejected,
    Revision,
    Wording,
    judged_inputs,
    read_revision,
    read_wording,
    revised,
    writing_prompts,
)
from judge.config import RunConfig
from judge.core.errors import (
    ConfigError,
    CriterionError,
    DataError,
    ParseError,
    StorageError,
)
from judge.core.files import claim_folder, store, try_writing
from judge.core.format import one_line, plural
from judge.core.messages import Remark, option
from judge.core.records import Criterion, Sample, Score
from judge.core.request_options import Judge
from judge.core.text_digests import seen_digest
from judge.data import ledger
from judge.data.ratings import base_name
from judge.execution.progress import Progress
from judge.metrics.base import ModelError, ModelQuestion
from judge.providers import Provider, require_text
from judge.results.result import Result
from judge.run import human_ratings
from judge.run.cost_estimate import SAMPLED_JUDGMENTS, estimate_cost
from judge.run.judge_run import require_all_recorded
from judge.run.pipeline import Display, Runs
from judge.run.preparation import (
    PreparedRun,
    check_output_dir,
    config_of_loaded_texts,
    load_texts,
    prepare,
)
from judge.run.request_estimates import price_text
from judge.stats.calibration import MIN_RATED_ITEMS
from judge.stats.coefficients import Level
from judge.stats.correlation import usual_level
from judge.stats.rated_columns import RatedColumn, column_from_table

MOST_REVISIONS = 12
# The training part is a third of the items, at most 50: more would choose little better and test
# worse.
_TRAINING_DIVISOR = 3
_MOST_TRAINING = 50
_CASES = 6  # too high, and as many too low
_MOST_COMMENTS = 3  # about one text
_LONGEST_COMMENT = 500  # characters
_TOKEN_LIMIT = 4_096


@dataclass(frozen=True, slots=True)
class ImprovementPlan:
    """An attempt whose data is split and whose requests are checked. Nothing has been sent yet.

    `training` and `testing` are the rated texts of each part, whose ratings are called `rating`.
    `comments` are people's, by text. With `writes`, a better wording gets its file. `first` is the
    run of the present wording on the training part.
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
    writes: bool
    first: PreparedRun
    notes: tuple[str, ...]

    @property
    def seen(self) -> frozenset[str]:
        """The digests of the training part."""
        return _digests(self.training)


def _digests(samples: Iterable[Sample]) -> frozenset[str]:
    """Return the digests under which a criterion's file remembers texts that it was made from."""
    return frozenset(seen_digest(sample.source, sample.output) for sample in samples)


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
    writes: bool = True,
) -> ImprovementPlan:
    """Load the criterion and the ratings, split them, and prepare the first run. Raises JudgeError.

    `entry` is a file, a name or a sentence, `writer` the model that writes (default: the judge),
    `human` the name of the ratings (default: the criterion's), `output` the file to write, unless
    `writes` is False, and `out` a folder for all revisions.
    """
    # Unlike a diff, an improvement reads ratings from a file.
    without_ratings = config.model_copy(update={"ratings": None})
    reject_unsupported(without_ratings, "diff", "judge criteria improve")
    if not 1 <= revisions <= MOST_REVISIONS:
        revisions_option = option("revisions", revisions)
        raise ConfigError(f"{revisions_option}: try 1 to {MOST_REVISIONS}")
    check_output_dir(out)
    judges = config.model if providers is None else providers
    source = config.data if data is None else data
    rows = load_texts(config, source)[: config.limit]
    language = config.language or text.language_of(rows)
    wording = read_wording(entry, output, language)
    criterion = wording.criterion
    rating = human or criterion.name
    rated = _rated_texts(config, rows, replace(criterion, name=rating))
    level = usual_level(rated.texts)
    training, testing = _split(rated.texts, rating, level, config.seed)
    config = config_of_loaded_texts(config, language=language)
    first_run = _prepare(config, training, {criterion.name: criterion}, judges)
    _check_judge_of_recording(first_run, judges)
    if writer is None:
        writer = _default_writer(first_run, judges)
    _check_writer(config, training, criterion, writer)
    if writes:
        _check_writable(wording.path)
    return ImprovementPlan(
        config=config,
        wording=wording,
        rating=rating,
        level=level,
        training=tuple(training),
        testing=tuple(testing),
        comments=rated.comments,
        judges=judges,
        writer=writer,
        revisions=revisions,
        out=out,
        writes=writes,
        first=first_run,
        notes=(*rated.notes, *_notes_on_unused(rated.texts, training, testing)),
    )


def _check_judge_of_recording(
    run: PreparedRun, judges: Sequence[Judge | Provider]
) -> None:
    """Raise ConfigError if a recording has to name the judge, but holds several."""
    if len(run.judges) > max(1, len(judges)):
        model_option = option("model", "NAME")
        raise ConfigError(
            f"{option('replay')}: it holds several models; name the judge with {model_option}"
        )


def _check_writer(
    config: RunConfig,
    training: Sequence[Sample],
    criterion: Criterion,
    writer: Judge | Provider,
) -> None:
    """Raise ConfigError if the writer cannot be opened, or writes no text."""
    # Nothing is asked here, so no recording is opened.
    unrecorded = config.model_copy(update={"record": None})
    writing_run = _prepare(unrecorded, training, {criterion.name: criterion}, [writer])
    for writer_name, provider in writing_run.judges.items():
        require_text(provider, option("writer", writer_name))


def _default_writer(
    first_run: PreparedRun, judges: Sequence[Judge | Provider]
) -> Judge | Provider:
    """Return the judge as the writer of revisions. Raises ConfigError if there are several."""
    if len(first_run.judges) > 1:
        raise ConfigError(
            "a panel judges: name the one model that writes the revisions with "
            f"{option('writer', 'NAME')}"
        )
    if judges:
        return judges[0]
    opened_judge, *_ = first_run.judges.values()
    return Judge(name=opened_judge.model)


def _check_writable(path: Path) -> None:
    """Raise ConfigError if the file exists, or if its folder cannot be written to."""
    if path.exists():
        advice = f"name another file with {option('output')}"
        raise ConfigError(f"{path}: already exists; {advice}")
    try:
        try_writing(path.parent)
    except OSError as error:
        raise ConfigError(
            f"{path}: its folder cannot be written to; name another file with {option('output')}"
        ) from error


@dataclass(frozen=True, slots=True)
class _RatedTexts:
    """Texts with usable ratings, people's comments by text, and notes."""

    texts: list[Sample]
    comments: dict[tuple[str, str], list[str]]
    notes: list[str]


def _rated_texts(
    config: RunConfig,
    rows: Sequence[Sample],
    criterion: Criterion,
) -> _RatedTexts:
    """Return the texts with usable ratings of the criterion's name."""
    rating = criterion.name
    one_criterion = config.model_copy(update={"criteria": (rating,)})
    sheet, _ = human_ratings.read(one_criterion, rows, rated=False)
    joined, notes = human_ratings.join(config, rows, sheet, [criterion])
    usable = list(ledger.withhold(joined, {rating: criterion.used}))
    rated_texts = human_ratings.rated_texts(usable, rating)
    comments: dict[tuple[str, str], list[str]] = {}
    for row in sheet.single:
        comment = row.comment.strip()
        if comment and row.criterion in (rating, base_name(rating)):
            comments_on_text = comments.setdefault((row.item, row.system), [])
            comments_on_text.append(comment[:_LONGEST_COMMENT])
    return _RatedTexts(rated_texts, comments, notes)


def _split(
    rated: Sequence[Sample],
    rating: str,
    level: Level,
    seed: int,
) -> tuple[list[Sample], list[Sample]]:
    """Split the rated texts by items, at random, into a training and a testing part.

    No text of the testing part is in the training part. At level `within-items`, items whose texts
    have equal ratings say nothing and are left out. Raises DataError for too few.
    """
    items = _items_to_split(rated, rating, level)
    random.Random(seed).shuffle(items)  # noqa: S311  (a split; no secret)
    third = len(items) // _TRAINING_DIVISOR
    n_training = min(max(third, MIN_RATED_ITEMS), _MOST_TRAINING)
    # Whole items, as the texts of one item share a source and are not independent.
    training_items = set(items[:n_training])
    testing_items = set(items[n_training:])
    training = [sample for sample in rated if sample.item in training_items]
    # Another item may have the same text: its rating would be known from training.
    training_digests = _digests(training)
    candidates = [sample for sample in rated if sample.item in testing_items]
    unseen = ledger.withhold(candidates, {rating: training_digests})
    testing = [sample for sample in unseen if rating in sample.human]
    n_tested = len({sample.item for sample in testing})
    if min(len(training_items), n_tested) < MIN_RATED_ITEMS:
        rated_items = plural(len(items), "item")
        available = f"{rated_items} with ratings of {rating}"
        if level == "within-items":
            available += " whose texts differ in their ratings"
        if len(items) >= 2 * MIN_RATED_ITEMS:
            available += (
                f", but only {n_tested} of the {len(testing_items)} for the test have texts that "
                "are not in the training"
            )
        raise DataError(
            f"{available}: too few. judge needs {2 * MIN_RATED_ITEMS}, with different texts: half "
            "to write and choose revisions, half for a test"
        )
    return training, testing


def _notes_on_unused(
    rated: Sequence[Sample],
    training: Sequence[Sample],
    testing: Sequence[Sample],
) -> Iterator[Remark]:
    """Say how many rated texts are in neither part, and why."""
    used = {sample.key for sample in (*training, *testing)}
    unused = [sample for sample in rated if sample.key not in used]
    if not unused:
        return
    # `_split` leaves a text out for one of two reasons.
    training_digests = _digests(training)
    n_equal = sum(sample.digests.isdisjoint(training_digests) for sample in unused)
    n_repeated = len(unused) - n_equal
    reasons = []
    if n_repeated:
        reasons.append(f"{n_repeated:,} repeat a text of the training part")
    if n_equal:
        reasons.append(f"{n_equal:,} are in items whose texts have equal ratings")
    texts = plural(len(rated), "rated text")
    listed_reasons = " and ".join(reasons)
    yield Remark(f"{len(unused):,} of {texts} are unused: {listed_reasons}.")


def _items_to_split(rated: Sequence[Sample], rating: str, level: Level) -> list[str]:
    """Return the rated items in order; at level `within-items`, those whose ratings differ."""
    ratings_by_item: dict[str, set[float]] = {}
    for sample in rated:
        ratings_of_item = ratings_by_item.setdefault(sample.item, set())
        ratings_of_item.add(sample.human[rating])
    items = sorted(ratings_by_item)
    if level == "within-items":
        return [item for item in items if len(ratings_by_item[item]) > 1]
    return items


def _prepare(
    config: RunConfig,
    rows: Sequence[Sample],
    criterion_by_name: Mapping[str, Criterion],
    judges: Sequence[Judge | Provider],
) -> PreparedRun:
    """Prepare a run of criteria, which have the same title, on texts without their ratings."""
    # With ratings, each run would compute its own agreement with people, which nobody reads.
    unrated = [ledger.unrated(row) for row in rows]
    named = {}
    for wording_name, criterion in criterion_by_name.items():
        named[wording_name] = replace(criterion, name=wording_name)
    config = config.model_copy(update={"criteria": tuple(named)})
    return prepare(config, unrated, providers=judges, loaded_criteria=named)


def improvement_estimate(plan: ImprovementPlan) -> str:
    """Return one line to print before an attempt: its size, requests and price without a cache."""
    training = len(plan.training)
    testing = len(plan.testing)
    revisions = plural(plan.revisions, "revision")
    line = (
        f"{training:,} rated texts to write and choose {revisions}, {testing:,} others to test "
        "the best"
    )
    if all(judge.notice for judge in plan.first.judges.values()):
        return f"{line}; no model is called"
    without_cache = plan.first.config.model_copy(update={"cache": False})
    uncached = replace(plan.first, config=without_cache)
    first_run = estimate_cost(uncached, SAMPLED_JUDGMENTS)
    # Each wording judges the training part, then the present one and the best the testing part.
    n_judged = training * (1 + plan.revisions) + 2 * testing
    times_first_run = n_judged / training
    price = None
    if first_run.price is not None:
        price = times_first_run * first_run.price
    judge_requests = f"{times_first_run * first_run.requests:,.0f}"
    cost = price_text(price)
    to_judge = f"at most about {judge_requests} requests to the judge ({cost})"
    to_writer = f"{plan.revisions} to {2 * plan.revisions} to the writer"
    return f"{line}: {to_judge} and {to_writer}"


async def _judge(run_name: str, prepared: PreparedRun, runs: Runs) -> Result:
    """Make a run, which the user sees as `run_name`.

    Raises Unrecorded if a recording lacks replies.
    """
    result = await runs.run(run_name, prepared)
    require_all_recorded(result)
    return result


def _columns(result: Result) -> list[RatedColumn]:
    """Return the scores and failures of each criterion, without the columns of a panel's judges."""
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
    """Write revisions, try them and test the best one. Write its file if its gain is significant.

    All replies go through the cache, so a second call pays for nothing twice. Raises the errors of
    `pipeline.run_pipeline`, and StorageError.
    """
    if plan.out is not None:
        claim_folder(plan.out)
    runs = Runs(plan.config, progress, display)
    present = await _judge("present wording", plan.first, runs)
    candidates, trials = await _revise(plan, runs, present)
    notices = [judge.notice for judge in plan.first.judges.values()]
    notes = dict.fromkeys(note for note in (*notices, *plan.notes) if note)
    improvement = Improvement(
        name=plan.wording.criterion.name,
        file=plan.wording.criterion.path,
        training=_size(plan.training),
        testing=_size(plan.testing),
        trials=trials,
        level=plan.level,
        notes=tuple(notes),
    )
    if candidates:
        improvement = await _choose_and_test(
            plan, runs, candidates, improvement, present
        )
    if plan.out is not None:
        content_by_name = {}
        for candidate in candidates:
            file_name = f"revision-{candidate.trial.number}{plan.wording.path.suffix}"
            content_by_name[file_name] = candidate.text.encode()
        content_by_name["result.json"] = improvement.report("json").encode()
        store(plan.out, content_by_name)
    return improvement


def _size(rows: Sequence[Sample]) -> Part:
    items = {row.item for row in rows}
    return Part(len(items), len(rows))


async def _revise(
    plan: ImprovementPlan,
    runs: Runs,
    present: Result,
) -> tuple[list[_Candidate], tuple[Trial, ...]]:
    """Let the writer revise the wording.

    Return the candidates that can be tried, and a trial for each revision.
    """
    wording = plan.wording
    cases = _largest_disagreements(plan, present)
    replies = await _ask_writer(plan, runs, cases)
    candidates: list[_Candidate] = []
    trials: list[Trial] = []
    for number, reply in enumerate(replies, 1):
        trial = Trial(number)
        try:
            if not isinstance(reply, str):
                raise ParseError(reply.message)
            revision = read_revision(reply, wording, _shown_texts(plan))
            trial = replace(trial, reason=revision.reason)
            if any(
                revision.same_wording(candidate.revision) for candidate in candidates
            ):
                raise ParseError("repeats another revision")
            file_text, revised_criterion = revised(wording, revision, plan.seen)
            candidates.append(_Candidate(trial, revision, revised_criterion, file_text))
        except (ParseError, CriterionError) as error:
            trial = replace(trial, skipped=str(error))
        trials.append(trial)
    return candidates, tuple(trials)


async def _ask_writer(
    plan: ImprovementPlan,
    runs: Runs,
    cases: Sequence[Case],
) -> list[str | ModelError]:
    """Return the writer's reply for each revision, or why it cannot be used.

    A reply that holds no usable revision is asked for again, once, with what is wrong with it. If
    the second one holds none either, another call of the command asks again.
    """
    wording = plan.wording
    criterion = wording.criterion
    shown_texts = _shown_texts(plan)

    def checked(reply: str) -> str:
        read_revision(reply, wording, shown_texts)
        return reply

    def questions(prompts: Sequence[str]) -> list[ModelQuestion]:
        return [ModelQuestion(prompt, _TOKEN_LIMIT, checked) for prompt in prompts]

    # Only its judge is used, which is the writer: the questions are no judgments.
    criteria_to_judge = {criterion.name: criterion}
    writing_run = _prepare(plan.config, plan.training, criteria_to_judge, [plan.writer])
    prompts = writing_prompts(wording, cases, plan.revisions)
    replies = await runs.ask(writing_run, questions(prompts))
    rejected = {}
    for number, reply in enumerate(replies, 1):
        if _is_unusable(reply):
            rejected[number] = Rejected(reply.raw, reply.message)
    if not rejected:
        return replies
    # The cache keeps a second unusable reply, and another call of the command must not get it.
    retrying = writing_run.config.model_copy(update={"retry_failed": True})
    prompts = writing_prompts(wording, cases, plan.revisions, rejected)
    second_run = replace(writing_run, config=retrying)
    second_replies = await runs.ask(second_run, questions(prompts))
    (writer,) = writing_run.judges.values()
    for number, reply in zip(rejected, second_replies, strict=True):
        if _is_unusable(reply):
            quoted = repr(one_line(reply.raw, 60)) if reply.raw else "nothing"
            message = f"{reply.message}; {writer.model}, asked twice, wrote {quoted}"
            reply = replace(reply, message=message)
        replies[number - 1] = reply
    return replies


def _is_unusable(reply: str | ModelError) -> TypeGuard[ModelError]:
    """Return whether the writer answered, but not with a revision."""
    return isinstance(reply, ModelError) and reply.error == ParseError.__name__


def _shown_texts(plan: ImprovementPlan) -> list[str]:
    """Return all texts of the training part, which a revision must not copy."""
    texts: list[str] = []
    for sample in plan.training:
        inputs = judged_inputs(plan.wording.criterion, sample)
        texts += [sample.output, *inputs.values()]
    return texts


def _largest_disagreements(plan: ImprovementPlan, present: Result) -> list[Case]:
    """Return the texts whose ranks by judge and people differ most: those too high, then too low.

    At level `within-items`, ranks are those within an item. A text whose two scores read the same
    is no disagreement, even if the scores of other texts give it different ranks.
    """
    criterion_name = plan.wording.criterion.name
    scores = present.table.column_scores(criterion_name)
    score_by_text = {score.key: score for score in scores}
    scored = [sample for sample in plan.training if sample.key in score_by_text]
    gaps = _rank_gaps(plan, scored, score_by_text)

    def largest_gap_first(sample: Sample) -> tuple[float, tuple[str, str]]:
        return -gaps[sample.key], sample.key

    differing = []
    for sample in scored:
        printed_score = _shown(score_by_text[sample.key].value)
        printed_rating = _shown(sample.human[plan.rating])
        if printed_score != printed_rating:
            differing.append(sample)
    ordered = sorted(differing, key=largest_gap_first)
    too_high = [sample for sample in ordered if gaps[sample.key] > 0]
    too_low = [sample for sample in reversed(ordered) if gaps[sample.key] < 0]
    cases = []
    for sample in (*too_high[:_CASES], *too_low[:_CASES]):
        score = score_by_text[sample.key]
        is_too_high = gaps[sample.key] > 0
        cases.append(_case(plan, sample, score, is_too_high=is_too_high))
    return cases


def _shown(value: float) -> str:
    """Write a score or a rating as the writer reads it."""
    return f"{value:.3g}"


def _case(
    plan: ImprovementPlan,
    sample: Sample,
    score: Score,
    *,
    is_too_high: bool,
) -> Case:
    """Return a text with the judge's score, people's rating and their comments."""
    rating = sample.human[plan.rating]
    comments = plan.comments.get(sample.key, ())
    return Case(
        sample=sample,
        judge=_shown(score.value),
        people=_shown(rating),
        high=is_too_high,
        reason=score.provenance.reason or "",
        comments=tuple(comments[:_MOST_COMMENTS]),
    )


def _rank_gaps(
    plan: ImprovementPlan,
    scored: Sequence[Sample],
    score_by_text: Mapping[tuple[str, str], Score],
) -> dict[tuple[str, str], float]:
    """Return the rank by the judge minus the rank by people, as a share of the ranks, by text.

    At level `within-items`, ranks are those within an item.
    """
    from scipy.stats import rankdata

    samples_by_group: dict[str, list[Sample]] = {}
    for sample in scored:
        group_name = sample.item if plan.level == "within-items" else ""
        samples_by_group.setdefault(group_name, []).append(sample)
    gaps: dict[tuple[str, str], float] = {}
    for group in samples_by_group.values():
        scores = [score_by_text[sample.key].value for sample in group]
        ratings = [sample.human[plan.rating] for sample in group]
        # Rounded, so that equal values that differ by rounding alone share a rank.
        ranks_by_judge = rankdata(np.round(scores, 9))
        ranks_by_people = rankdata(np.round(ratings, 9))
        rank_differences = ranks_by_judge - ranks_by_people
        shares = rank_differences / len(group)
        for sample, share in zip(group, shares, strict=True):
            gaps[sample.key] = float(share)
    return gaps


async def _choose_and_test(
    plan: ImprovementPlan,
    runs: Runs,
    candidates: Sequence[_Candidate],
    improvement: Improvement,
    present: Result,
) -> Improvement:
    """Try the revisions on the training part; test the best one and write it.

    If the present wording is the best, nothing is tested.
    """
    training = plan.training
    criterion_by_name = {}
    for candidate in candidates:
        criterion_by_name[f"revision-{candidate.trial.number}"] = candidate.criterion
    trial_run = _prepare(plan.config, training, criterion_by_name, plan.judges)
    result = await _judge("revisions", trial_run, runs)
    columns = [*_columns(present), *_columns(result)]
    selection = choose_wording(training, plan.rating, columns, plan.level)
    trial_by_number = {}
    # The present wording comes first and is no trial.
    _, *agreements = selection.values
    _, *columns_of_candidates = columns
    tried = zip(candidates, agreements, columns_of_candidates, strict=True)
    for candidate, agreement, column in tried:
        trial = replace(candidate.trial, agreement=agreement, failed=len(column.failed))
        trial_by_number[trial.number] = trial
    all_trials = [
        trial_by_number.get(trial.number, trial) for trial in improvement.trials
    ]
    n_failed = sum(len(column.failed) for column in columns)
    n_judged = len(training) * len(columns)
    improvement = replace(
        improvement,
        trials=tuple(all_trials),
        selection=selection,
        judgments=(n_failed, n_judged),
    )
    # The present wording, number 0, agrees best with people.
    if not selection.chosen:
        return improvement
    best = candidates[selection.chosen - 1]
    improvement = await _test(plan, runs, best, improvement)
    if improvement.improved:
        improvement = replace(improvement, criterion=best.criterion, text=best.text)
    if improvement.improved and plan.writes:
        _write_new(plan.wording.path, best.text)
        improvement = replace(improvement, written=str(plan.wording.path))
    return improvement


def _write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet. Raises StorageError."""
    try:
        # A file that was made in the meantime is not replaced.
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error


async def _test(
    plan: ImprovementPlan,
    runs: Runs,
    best: _Candidate,
    improvement: Improvement,
) -> Improvement:
    """Compare the best revision with the present wording on the testing part."""
    wording = plan.wording
    both = {"present": wording.criterion, "revised": best.criterion}
    test_run = _prepare(plan.config, plan.testing, both, plan.judges)
    result = await _judge("test", test_run, runs)
    old_column, new_column = _columns(result)
    columns = (old_column, new_column)
    failed_before = len(old_column.failed)
    failed_after = len(new_column.failed)
    failed_in_training, judged_in_training = improvement.judgments
    n_failed = failed_in_training + failed_before + failed_after
    n_judged = judged_in_training + 2 * len(plan.testing)
    agreement = measure_gain(
        plan.testing, plan.rating, columns, plan.level, plan.config.seed
    )
    return replace(
        improvement,
        chosen=best.trial.number,
        agreement=agreement,
        failed=(failed_before, failed_after),
        judgments=(n_failed, n_judged),
        diff=tuple(_diff_lines(wording, best)),
    )


def _diff_lines(wording: Wording, best: _Candidate) -> Iterator[str]:
    """Yield a unified diff from the present file to a revision's."""
    # Without `seen`, which would fill the diff with digests.
    revised_text, _ = revised(wording, best.revision, ())
    return unified_diff(
        wording.text.splitlines(),
        revised_text.splitlines(),
        wording.criterion.path,
        f"revision {best.trial.number}",
        lineterm="",
        n=1,
    )
