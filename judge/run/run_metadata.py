"""Metadata for run.json: all that is needed to understand and repeat a run, and no key."""

from __future__ import annotations

import hashlib
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from judge.config import RankConfig, RunConfig
from judge.core.errors import CriterionError, DataError
from judge.core.format import cut_middle, dollars, listed, plural
from judge.core.messages import Remark, option
from judge.core.records import Column, Criterion, Prompt, Usage
from judge.core.signature import Signature
from judge.core.version import __version__
from judge.criteria import is_packaged, shared_layout, template_texts
from judge.execution.budget import BudgetLedger
from judge.execution.judgments import Judgment
from judge.execution.progress import JudgeProgress, Progress
from judge.providers import Provider
from judge.providers.pricing import cost_of, is_own, why_unknown
from judge.providers.recording import ReplayProvider
from judge.providers.scripted import ScriptedProvider
from judge.providers.vendors import signed
from judge.results.prompts import messages_of
from judge.results.run_info import (
    BudgetInfo,
    Cost,
    CriterionInfo,
    FirstPrompt,
    JudgeInfo,
    ModelUse,
    Requests,
    RunInfo,
    Status,
)
from judge.run.judge_models import signed_temperature
from judge.scoring.checklist import whole
from judge.scoring.multi_criteria import make_renderers
from judge.scoring.strategies import SamplingOptions

if TYPE_CHECKING:
    from judge.run.preparation import PreparedRun

_MAX_PROMPT_CHARACTERS = 1_000_000  # of all stored prompts together
_MAX_MESSAGE = 20_000  # characters of a stored message
_MIN_MESSAGE = 200  # the same, even if a run has thousands of columns
# Texts that are tried: a criterion that cannot be rendered for these has no stored prompt.
_MAX_ATTEMPTS = 100


def first_prompts(
    prepared: PreparedRun, judgments_by_judge: Mapping[str, Sequence[Judgment]]
) -> dict[str, FirstPrompt]:
    """Return the first prompt of each column of a judge, with all messages as sent.

    If the questions of a checklist are asked one by one, it is the prompt of the first question.
    The middle of a long message is left out. A column has no prompt if none of its first 100 texts
    can be rendered.
    """
    # All prompts are in run.json, which is read as a whole whenever the run is opened.
    n_columns = max(1, len(prepared.criteria) * len(prepared.judges))
    characters_of_column = _MAX_PROMPT_CHARACTERS // n_columns
    longest = min(_MAX_MESSAGE, max(_MIN_MESSAGE, characters_of_column))
    prompts: dict[str, FirstPrompt] = {}
    for judge, judgments in judgments_by_judge.items():
        system_message = prepared.opened[judge].settings.system_message
        for judgment, prompt in _first_prompts(judgments):
            messages = []
            for message in messages_of(prompt, system_message):
                shortened = cut_middle(message.content, longest)
                messages.append(replace(message, content=shortened))
            column = whole(judgment.criterion).name + column_suffix(prepared, judge)
            prompts[column] = FirstPrompt(
                item=judgment.sample.item,
                system=judgment.sample.system,
                opponent=judgment.opponent_name,
                messages=tuple(messages),
            )
    return prompts


def _first_prompts(judgments: Sequence[Judgment]) -> Iterator[tuple[Judgment, Prompt]]:
    """Yield for each criterion the first judgment that can be rendered, with its prompt."""
    by_criterion: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        # The first question's prompt stands for the checklist.
        if judgment.criterion.part > 1:
            continue
        attempts = by_criterion.setdefault(judgment.criterion.name, [])
        if len(attempts) < _MAX_ATTEMPTS:
            attempts.append(judgment)
    firsts = [attempts[0].criterion for attempts in by_criterion.values()]
    renderers = make_renderers(firsts)
    for criterion_name, attempts in by_criterion.items():
        renderer = renderers[criterion_name]
        for judgment in attempts:
            try:
                prompt = renderer.render(judgment.sample, judgment.opponent)
            # Such a judgment failed in the run, too; the next text may have a prompt.
            except (CriterionError, DataError):
                continue
            yield judgment, prompt
            break


_JUDGE_SETTINGS = (
    "temperature",
    "reasoning_effort",
    "system_message",
    "extra_body",
    "headers",
    "key_command",
)
# Another version of these may change a prompt, a request or a value.
_PACKAGES = ("openai", "jinja2", "numpy", "rapidfuzz", "sacrebleu", "evalica")


def metadata_factory(
    prepared: PreparedRun,
    progress: Progress,
    ledger: BudgetLedger,
) -> Callable[[Status], RunInfo]:
    """Return a function that gives the metadata of the run for a status. The clock starts here."""
    started = datetime.now(UTC)
    # The clock of the computer may be set during a run; this one only runs on.
    start = time.monotonic()
    fixed = _info_at_start(prepared, started)
    judges = prepared.judges

    def now(status: Status) -> RunInfo:
        """Return the facts from the start together with the run's progress so far."""
        info_by_judge = {}
        for judge_name, provider in judges.items():
            counts = progress.judges[judge_name]
            judge_config = prepared.opened[judge_name].config
            info_by_judge[judge_name] = _judge_info(provider, counts, judge_config)
        models = [*info_by_judge.values(), *prepared.generated.values()]
        in_all = total_use(models)
        budget = None
        if ledger.budget is not None:
            budget = BudgetInfo(ledger.budget.amount, ledger.budget.unit, ledger.spent)
        is_complete = status == "complete"
        all_notes = [
            *prepared.notes,
            *progress.notes,
            *_remarks(prepared, progress, complete=is_complete),
        ]
        remarks = [note for note in all_notes if isinstance(note, Remark)]
        notes = [note for note in all_notes if not isinstance(note, Remark)]
        elapsed = time.monotonic() - start
        return replace(
            fixed,
            status=status,
            seconds=round(elapsed, 3),
            judges=info_by_judge,
            served_by=in_all.served_by,
            unmet=in_all.unmet,
            usage=in_all.usage,
            requests=in_all.requests,
            cost=in_all.cost,
            budget=budget,
            notes=tuple(notes),
            remarks=tuple(remarks),
        )

    return now


def _info_at_start(prepared: PreparedRun, started: datetime) -> RunInfo:
    """Return what is known of a run before its first request."""
    criteria = {
        criterion.name: _criterion_info(criterion) for criterion in prepared.criteria
    }
    notices = [
        provider.notice for provider in prepared.judges.values() if provider.notice
    ]
    # The language of the prompts, which only a judge reads.
    language = prepared.language if prepared.judges else None
    return RunInfo(
        judge_version=__version__,
        started=started.isoformat(timespec="seconds"),
        config=prepared.config,
        data=prepared.data,
        language=language,
        systems=prepared.generated,
        criteria=criteria,
        notices=tuple(notices),
        versions=dict(_versions()),
    )


@cache
def _versions() -> Mapping[str, str]:
    """Return the versions of Python and of packages, which are read from a file each."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        versions[package] = version(package)
    return versions


def _remarks(prepared: PreparedRun, progress: Progress, *, complete: bool) -> list[str]:
    """Return the remarks of engines, on draws, on stopped criteria and on repeated failures.

    For a `complete` run over all its texts, also return the rules of scripted judges that answered
    none of its prompts.
    """
    remarks: list[str] = []
    for counts in progress.judges.values():
        remarks += counts.remarks
    for judge, counts in progress.judges.items():
        # No draws: no judgment needed several replies.
        if 0 < counts.draws < prepared.opened[judge].config.draws:
            remarks.append(_fewer_draws(prepared, judge, counts))
    remarks += _recorded_draws(prepared, progress)
    for judge, counts in progress.judges.items():
        remarks += _stopped_criteria(counts, column_suffix(prepared, judge))
    failed_again = sum(counts.failed_cached for counts in progress.judges.values())
    if failed_again and prepared.config.replay is None:
        values = plural(failed_again, "value")
        remarks.append(
            f"{values} failed again at no cost: the cached replies have no score. "
            f"{option('retry_failed', True)} asks the judge again."
        )
    config = prepared.config
    # A rule may be for texts that this run does not take. With Ray, only the workers' copies of a
    # judge know which rules they used.
    is_partial = prepared.wanted_texts or config.where or config.limit
    if complete and not is_partial and config.engine == "local":
        remarks += _unused_rules(prepared, progress)
    return remarks


def _recorded_draws(prepared: PreparedRun, progress: Progress) -> Iterator[str]:
    """Yield a remark for a recording with fewer draws than the judge asked for."""
    for judge_name, provider in prepared.judges.items():
        # It counts draws only if the judge drew. Prompts of systems may have several replies, too.
        n_draws = progress.judges[judge_name].draws
        if isinstance(provider, ReplayProvider) and 1 < provider.draws < n_draws:
            yield (
                f"The recording holds {provider.draws} draws of a prompt, not the {n_draws} asked "
                f"for: scores are of {provider.draws}."
            )


def _fewer_draws(prepared: PreparedRun, judge: str, counts: JudgeProgress) -> str:
    """Say that fewer replies of a reasoning model were drawn, and what the usual number costs."""
    draws = prepared.opened[judge].config.draws
    provider = prepared.judges[judge]
    usage = counts.usage
    note = (
        f"{judge} reasons before it answers: judge draws {counts.draws} replies for a judgment, "
        f"not {draws}."
    )
    if usage.completion_tokens:
        factor = draws / counts.draws
        all_draws = _usage_of_draws(provider, counts.usage, factor)
        batched_draws = _usage_of_draws(provider, counts.batched, factor)
        price = cost_of(provider, all_draws, batched=batched_draws)
        cost = f" ({dollars(price)})" if price is not None else ""
        used = usage.prompt_tokens + usage.completion_tokens
        needed = all_draws.prompt_tokens + all_draws.completion_tokens
        note += (
            f" {draws} would take about {needed:,} tokens{cost} instead of {used:,}."
        )
    return f"{note} {option('draws', draws)} draws them."


def _usage_of_draws(provider: Provider, usage: Usage, factor: float) -> Usage:
    """Estimate the tokens that `factor` times as many draws would have taken."""
    # A server that gives one reply per request reads the prompt again for each draw.
    read_factor = factor if provider.learned.get("n") == 1 else 1
    tokens_read = round(usage.prompt_tokens * read_factor)
    tokens_written = round(usage.completion_tokens * factor)
    return Usage(tokens_read, tokens_written)


def _stopped_criteria(counts: JudgeProgress, suffix: str) -> Iterator[str]:
    """Yield a sentence for each error that stopped a judge's requests about some criteria."""
    criteria_by_error: dict[str, list[str]] = {}
    for criterion, (error, _) in counts.stopped.items():
        criteria_by_error.setdefault(error, []).append(criterion)
    for criteria in criteria_by_error.values():
        columns = listed([f"{criterion}{suffix}" for criterion in criteria])
        _, reason = counts.stopped[criteria[0]]
        yield f"{columns}: {reason}."


def _unused_rules(prepared: PreparedRun, progress: Progress) -> Iterator[str]:
    """Yield the rules of scripted judges that answered no prompt."""
    for judge_name, provider in prepared.judges.items():
        if not isinstance(provider, ScriptedProvider) or not provider.unused:
            continue
        if progress.judges[judge_name].cached:
            # A rule may have answered a prompt in an earlier run.
            continue
        (rule, cause), *others = provider.unused.items()
        more = ""
        if others:
            verb = "is" if len(others) == 1 else "are"
            more = f" {plural(len(others), 'other rule')} {verb} not used either."
        yield f"{judge_name}: rule {rule} is not used: {cause}.{more}"


def column_suffix(prepared: PreparedRun, judge: str) -> str:
    """Return the end of the names of a judge's columns; a run's only judge has none."""
    return f"/{judge}" if len(prepared.judges) > 1 else ""


def signed_column(
    criterion: Criterion,
    judge: str,
    provider: Provider,
    prepared: PreparedRun,
    counts: JudgeProgress,
) -> Column:
    """Return the column of a criterion by one judge, with the signature that reproduces it."""
    config = prepared.opened[judge].config
    parts = [signed(provider)]
    if provider.decides:
        parts.append("decisions")
    else:
        settings = prepared.opened[judge].settings
        parts += _sampling_parts(criterion, config, settings, counts)
    if isinstance(config, RankConfig):
        parts += _ranking_parts(config)
    parts.append(f"judge {__version__}")
    suffix = column_suffix(prepared, judge)
    name_and_digest = f"{criterion.name}@{criterion.digest[:6]}"
    signature = Signature(name_and_digest, *parts)
    column = Column(
        criterion.name + suffix,
        "criterion",
        signature,
        **_scale_of_column(criterion),
        criterion=criterion.name,
        better=criterion.better,
        weight=criterion.weight,
        pass_at=criterion.pass_at,
        seen=tuple(sorted(criterion.used)),
    )
    if suffix:
        column = replace(column, judge=judge, panel=config.panel)
    return column


def _sampling_parts(
    criterion: Criterion,
    config: RunConfig,
    settings: SamplingOptions,
    counts: JudgeProgress,
) -> Iterator[str]:
    """Yield the parts of a signature about requesting, drawing and reading replies.

    A setting with its default has no part.
    """
    yield "t=server" if "temperature" in counts.unmet else signed_temperature(config)
    if "reasoning" in counts.unmet:
        yield "effort=none"
    yield from settings.signature
    if config.max_tokens:
        yield f"max_tokens={config.max_tokens}"
    if config.reply:
        yield f"reply={criterion.reply}"
    if criterion.is_checklist and not criterion.together:
        yield "each"
    if config.structured:
        yield "json"
    if config.strict:
        yield "read=strict"
    elif config.repair == "off":
        yield "repair=off"
    # Only an edited prompt has a part: the packaged one is of the version of judge.
    repair_prompt = shared_layout(criterion, "repair") if settings.repair else ""
    if repair_prompt and not is_packaged("layouts/repair.jinja", repair_prompt):
        digest = hashlib.sha256(repair_prompt.encode()).hexdigest()
        yield f"repair@{digest[:6]}"
    yield config.weighting
    if config.weighting in ("auto", "samples"):
        yield f"draws={counts.draws or settings.draws}"
    default_mass = type(config).model_fields["min_mass"].default
    if config.weighting in ("auto", "logprobs") and config.min_mass != default_mass:
        yield f"mass>={config.min_mass:g}"


def _ranking_parts(config: RankConfig) -> Iterator[str]:
    """Yield the parts of a signature about which pairs are compared, and in which order."""
    yield f"orders={config.orders}"
    if config.against:
        yield f"against={config.against}"
    if config.pairs:
        yield f"pairs={config.pairs}"
    # The seed draws the sample of pairs, and with one order which text is shown first.
    if config.pairs or config.orders == 1:
        yield f"seed={config.seed}"


def _scale_of_column(criterion: Criterion) -> dict[str, Any]:
    """Return the fields of a column that a criterion's scale decides.

    A checklist's values are shares (0–1), which have no labels.
    """
    scale = criterion.scale
    ends = {"low": scale.low, "high": scale.high}
    if criterion.is_checklist:
        return ends
    return {**ends, "labels": scale.labels, "values": scale.values}


def _criterion_info(criterion: Criterion) -> CriterionInfo:
    """Return the facts on a criterion that reports, judge cards and new suites use.

    Its scale is in its column.
    """
    return CriterionInfo(
        digest=criterion.digest,
        title=criterion.title,
        path=criterion.path,
        reply=criterion.reply,
        steps=tuple(criterion.steps),
        needs=tuple(sorted(criterion.needs)),
        templates=template_texts(criterion),
        examples=criterion.examples,
        questions=criterion.questions,
        questions_column=criterion.questions_column,
    )


def _judge_info(
    provider: Provider, counts: JudgeProgress, config: RunConfig
) -> JudgeInfo:
    """Describe one judge: its requests, their price, and the facts that the run has learned.

    `settings` are those that a user has set, without secrets.
    """
    stored = config.model_dump(mode="json", include=set(_JUDGE_SETTINGS))
    settings = {}
    for setting in _JUDGE_SETTINGS:
        if stored[setting] not in (None, "", {}):
            settings[setting] = stored[setting]
    use = model_use(provider, counts)
    return JudgeInfo(
        model=provider.model,
        provider=provider.name,
        base_url=provider.endpoint,
        settings=settings,
        learned=provider.learned,
        draws=counts.draws or None,
        decides=provider.decides,
        served_by=use.served_by,
        unmet=dict(counts.unmet),
        usage=use.usage,
        requests=use.requests,
        cost=use.cost,
    )


def model_use(provider: Provider, counts: JudgeProgress) -> ModelUse:
    """Return the requests to a model, their tokens and their cost."""
    requests = Requests(
        sent=counts.sent,
        answered=counts.answered,
        cached=counts.cached,
        failed_cached=counts.failed_cached,
        shared=counts.shared,
        unread=counts.unread,
        repaired=counts.repaired,
        retried=counts.retried,
        timeouts=counts.timeouts,
        failed=counts.refused,
    )
    return ModelUse(
        served_by=tuple(sorted(counts.served_by)),
        usage=counts.usage,
        requests=requests,
        cost=_cost(provider, counts),
    )


def _cost(provider: Provider, counts: JudgeProgress) -> Cost | None:
    if provider.notice:
        return None
    if counts.sent and counts.usage == Usage():
        return Cost(None, "the server counted no tokens")
    price = cost_of(provider, counts.usage, batched=counts.batched)
    if price is not None:
        return Cost(price)
    if is_own(provider.endpoint):
        return Cost(None, why_unknown(provider))
    return Cost(None, "no published price for this model and endpoint")


def total_use(models: Sequence[ModelUse]) -> ModelUse:
    """Add up the requests to several models. The cost is unknown if one of theirs is."""
    served_by = {model_name for model in models for model_name in model.served_by}
    unmet: Counter[str] = Counter()
    for model in models:
        unmet.update(model.unmet)
    costs = [model.cost for model in models if model.cost is not None]
    unknown = [cost for cost in costs if cost.usd is None]
    cost = None
    if unknown:
        cost = unknown[0]
    elif costs:
        total = sum(cost.usd or 0.0 for cost in costs)
        cost = Cost(total)
    usage = sum((model.usage for model in models), Usage())
    requests = sum((model.requests for model in models), Requests())
    return ModelUse(
        served_by=tuple(sorted(served_by)),
        unmet=dict(unmet),
        usage=usage,
        requests=requests,
        cost=cost,
    )
