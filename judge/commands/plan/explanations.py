"""The sentences that explain an estimate: how a judge is asked, and what the numbers include."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from judge.core.format import dollars, plural
from judge.core.messages import Remark, option
from judge.run.cost_estimate import pending_batches
from judge.run.judge_models import UNKNOWN
from judge.run.preparation import PreparedRun
from judge.run.request_estimates import JudgeEstimate, JudgePlan, sum_prices

# In tokens. Ollama has room for 4,096 on a graphics card of less than 24 GB.
_LONG_PROMPT = 4_000


def with_method(judge: JudgePlan, prepared: PreparedRun) -> JudgePlan:
    """Return the plan of a judge with the description of how it produces a score."""
    return replace(judge, method=_describe_strategy(prepared, judge.estimate))


def _describe_strategy(prepared: PreparedRun, estimate: JudgeEstimate) -> str:
    """Describe how the judge produces a score, and why that way."""
    provider = prepared.judges[estimate.judge]
    settings = prepared.opened[estimate.judge].settings
    if provider.notice or not estimate.strategies:
        return ""
    strategy = estimate.strategies[0]
    if strategy == "decisions":
        return "decisions: answers to typed questions come with probabilities"
    if strategy == "logprobs":
        condition = ", if the model gives them" if estimate.fallback_draws else ""
        return f"logprobs: token probabilities of one reply{condition}"
    if strategy == "single":
        return "single: one reply per judgment"
    requests_note = ", one request per draw" if provider.learned.get("n") == 1 else ""
    draws = f"{estimate.drawn} draws per judgment"
    description = f"samples: the mean of {draws}{requests_note}"
    if settings.weighting == "samples":
        return description
    is_vendor = "logprobs" in provider.learned.get("dropped", ())
    refuses = "vendor" if is_vendor else "model"
    reason = f"because the {refuses} gives no token probabilities"
    if "logprobs" in estimate.strategies:
        reason += "; one extra request checks that first"
    return f"{description}, {reason}"


def estimate_notes(
    prepared: PreparedRun,
    judges: Sequence[JudgePlan],
    items: int | None = None,
) -> list[str]:
    """Name the run's warnings, the defaults that were used, and what the numbers do not include."""
    # It is better to know what is wrong with the data before anything is paid.
    notes = [note for note in prepared.notes if not isinstance(note, Remark)]
    if items is not None:
        known_items = len({sample.item for sample in prepared.samples})
        notes.append(
            f"Scaled from {plural(known_items, 'item')} to {items:,} similar ones. Cached replies "
            "answer none of them, but improve the estimate."
        )
    if prepared.criteria and prepared.default_criteria:
        criterion_names = ", ".join(criterion.name for criterion in prepared.criteria)
        notes.append(
            f"Default criteria: {criterion_names}. Choose others with {option('criteria')}."
        )
    uncertain = [judge for judge in judges if judge.estimate.fallback_draws]
    if uncertain:
        notes.append(_draws_note(judges, uncertain))
    notes += pending_batches(prepared)
    notes += _metric_notes(prepared, items)
    if any(judge.endpoint.startswith(UNKNOWN) for judge in judges):
        notes.append(
            "$AZURE_OPENAI_ENDPOINT is not set, so cached replies of that server are not found."
        )
    estimates = [judge.estimate for judge in judges]
    longest = max(estimates, key=lambda estimate: estimate.longest, default=None)
    if longest is not None and longest.longest > _LONG_PROMPT:
        notes.append(
            f"The longest prompt has about {longest.longest:,} tokens ({longest.longest_text}): "
            "the model must have room for it and the reply."
        )
    n_broken = sum(judge.estimate.total.broken for judge in judges)
    if n_broken:
        failing = plural(n_broken, "judgment")
        notes.append(f"{failing} will fail because the prompt cannot be rendered.")
    if any(judge.estimate.total.requests for judge in judges):
        notes.append(_not_included())
    return notes


def _metric_notes(prepared: PreparedRun, items: int | None) -> Iterator[str]:
    """Say which requests of metrics are not included: the replies decide how many there are."""
    judge_name = next(iter(prepared.judges), "its judge")
    for metric_name, metric in prepared.metrics.items():
        if not metric.asks:
            continue
        # The most requests are known only for these texts, not for other `items`.
        most_requests = None
        if items is None:
            most_requests = metric.most_requests(prepared.samples)
        sent_to = f"requests of {metric_name} to {judge_name}"
        if most_requests is None:
            yield f"Not included: {sent_to}, because they depend on replies."
        else:
            yield (
                f"Not included: at most {most_requests:,} {sent_to}; their length depends on "
                "replies."
            )


def _not_included() -> str:
    return (
        "Tokens are estimated from characters and cached replies, often 10% off. Not included: "
        f"retries, repair questions ({option('repair')}), hidden reasoning tokens, and rate limits "
        f"of the server that are not set by {option('rpm')} or {option('tpm')}."
    )


def _draws_note(judges: Sequence[JudgePlan], uncertain: Sequence[JudgePlan]) -> str:
    """Say what is added if the `uncertain` judges give no token probabilities."""
    n_draws = uncertain[0].estimate.fallback_draws
    requests_per_judgment = max(judge.estimate.fallback_requests for judge in judges)
    requests = ""
    if requests_per_judgment > 1:
        requests = f" in {requests_per_judgment} requests"
    added_price = sum_prices(judge.money.more for judge in uncertain)
    added_cost = ""
    if added_price:
        added_cost = f" and costs about {dollars(added_price)} more"
    return (
        f"If the model gives no token probabilities, the run takes {n_draws} draws per "
        f"judgment{requests}{added_cost}. Use {option('weighting', 'single')} to avoid that."
    )
