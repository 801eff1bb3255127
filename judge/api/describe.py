"""run.json: all that is needed to understand a run and to do it again. No key is in it."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from judge import __version__
from judge.criteria import sources
from judge.providers.prices import usd
from judge.records import Column, Criterion, Usage
from judge.retry import Retrier
from judge.runner import Progress

if TYPE_CHECKING:
    from judge.api.stages import Prepared

_PACKAGES = ("openai", "jinja2", "numpy", "rouge-score", "sacrebleu")


def describe(prepared: Prepared, progress: Progress, retrier: Retrier) -> Callable[[str], dict[str, Any]]:
    """A function that says, for a status, how the run stands now. Its clock starts here."""
    started, clock = datetime.now(UTC), time.monotonic()
    plan, provider = prepared.plan, prepared.provider
    fixed = {
        "judge_version": __version__,
        "plan": plan.model_dump(mode="json", by_alias=True, exclude_none=True),
        "data": prepared.data,
        "model": provider.model if provider else None,
        "provider": provider.name if provider else None,
        "base_url": (provider.endpoint or None) if provider else None,
        "language": prepared.language,
        "weighting": plan.weighting if provider else None,
        "criteria": {c.name: _criterion(c) for c in prepared.criteria},
        "notes": prepared.notes,
        "versions": {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
    }

    def now(status: str) -> dict[str, Any]:
        """What was fixed at the start, with what the run has done so far."""
        return fixed | {
            "status": status,
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - clock, 3),
            "served_by": sorted(progress.served_by),
            "unmet": dict(progress.unmet),
            "usage": {name: getattr(progress.usage, name) for name in Usage.__slots__},
            "requests": _requests(progress, retrier) if provider else {},
            "cost": _cost(prepared, progress),
        }

    return now


def column(criterion: Criterion, prepared: Prepared, progress: Progress) -> Column:
    """The column of a criterion, signed with what is needed to get it again."""
    plan, provider = prepared.plan, prepared.provider
    parts = [f"{criterion.name}@{criterion.digest[:6]}", f"{provider.name}/{provider.model}" if provider else ""]
    parts.append("t=server" if "temperature" in progress.unmet else f"t={plan.temperature:g}")
    if plan.max_tokens:
        parts.append(f"max_tokens={plan.max_tokens}")
    parts.append(plan.weighting)
    if plan.weighting != "single" and plan.min_mass != type(plan).model_fields["min_mass"].default:
        parts.append(f"mass>={plan.min_mass:g}")
    parts.append(f"judge {__version__}")
    scale = criterion.scale
    return Column(criterion.name, "criterion", "|".join(parts), scale.low, scale.high, scale.labels)


def _criterion(criterion: Criterion) -> dict[str, Any]:
    return {
        "digest": criterion.digest,
        "title": criterion.title,
        "path": criterion.path,
        "scale": list(criterion.scale.labels),
        "reply": criterion.reply,
        "version": criterion.version,
        "steps": list(criterion.steps),
        "needs": sorted(criterion.needs),
        "templates": sources(criterion),
    }


def _requests(progress: Progress, retrier: Retrier) -> dict[str, int]:
    return {
        "sent": progress.sent,
        "answered": progress.answered,
        "cached": progress.cached,
        "shared": progress.shared,
        "retried": retrier.retried,
        "timeouts": retrier.maybe_billed,
        "failed": progress.refused,
    }


def _cost(prepared: Prepared, progress: Progress) -> dict[str, Any]:
    """US dollars for what was answered; None, with the reason, where they are not known."""
    provider = prepared.provider
    if provider is None or provider.notice:
        return {}
    if progress.sent and progress.usage == Usage():
        return {"usd": None, "note": "the server counted no tokens"}
    price = usd(provider.model, provider.endpoint, progress.usage)
    return {"usd": price, "note": "" if price is not None else "no published price for this model and endpoint"}
