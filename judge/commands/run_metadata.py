"""What a run keeps of its prompts: the sheets they are written on, with the places of the texts left open.

run.json: all that is needed to understand a run and to do it again. No key is in it.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, Any

from judge.config import RankPlan
from judge.core.errors import CriterionError
from judge.core.records import Column, Criterion, Prompt, Sample, Usage
from judge.core.version import __version__
from judge.criteria import multi_criteria_layout, render, template_texts
from judge.execution.budget import BudgetLedger
from judge.execution.pending import Judgment
from judge.execution.progress import JudgeProgress, Progress
from judge.metrics import heuristic
from judge.providers import Provider
from judge.providers.pricing import cost_usd, is_own, why_unknown
from judge.providers.vendors import signed
from judge.scoring.multi_criteria import PromptRenderer, make_renderers

if TYPE_CHECKING:
    from judge.commands.preparation import PreparedRun

_MOST = 200_000  # characters of all sheets together
_MOST_PROMPTS = 10_000  # of one column
_SURE = 16  # characters of a text that is known wherever it stands; a shorter one is only between its marks


def prompt_skeletons(asked: Mapping[str, Sequence[Judgment]], items: Collection[str]) -> dict[str, Any]:
    """The sheets of what was asked about these items, by what a judge's columns have after the criterion's name.

    `sheets` lists the different ones. Each has for every message its role and its parts, by turns words and what stands
    between them: `text NAME`, or `key NAME` for what that text's marks carry. A NAME is `source`, `output`,
    `references 0`, `extra COLUMN`, or of a comparison `first` and `second`. Filled in, a sheet is the prompt to the
    letter. `asked` has by column the `usual` sheet's number and the `others`, each with item, system and rival; None is
    a prompt that could not be made or is not kept: sheets end at 200,000 characters together.
    """
    kept: dict[str, int] = {}
    room = _MOST
    written: dict[tuple[str, str, bool], dict[str, Any]] = {}
    columns: dict[str, dict[str, Any]] = {}
    for own, judgments in asked.items():
        criteria = {j.criterion.name: j.criterion for j in judgments}
        made = make_renderers(list(criteria.values()))
        for criterion in criteria.values():
            same = (criterion.name, criterion.form, criterion.merged)  # a panel's judges are mostly asked the same
            if same not in written:
                numbers: dict[tuple[str, str, str], int | None] = {}
                for named, sheet in _written(criterion, made[criterion.name], judgments, items):
                    if sheet and sheet not in kept and len(sheet) <= room:
                        kept[sheet], room = len(kept), room - len(sheet)
                    numbers[named] = kept.get(sheet)
                written[same] = _counted(numbers)
            columns[criterion.name + own] = written[same]
    return {"sheets": list(map(json.loads, kept)), "asked": columns}


def _counted(numbers: Mapping[tuple[str, str, str], int | None]) -> dict[str, Any]:
    usual = max(Counter(numbers.values()).most_common(1), default=(None, 0))[0]
    return {"usual": usual, "others": [[*named, number] for named, number in numbers.items() if number != usual]}


def _written(
    criterion: Criterion, renderer: PromptRenderer, judgments: Sequence[Judgment], items: Collection[str]
) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Item, system, rival and sheet; "" where there is no prompt."""
    for one in islice(
        (j for j in judgments if j.criterion.name == criterion.name and j.sample.item in items), _MOST_PROMPTS
    ):
        sample, rival = one.sample, one.rival
        try:
            sheet = json.dumps(
                _sheet(renderer.render(sample, rival), _texts(criterion, sample, rival)), ensure_ascii=False
            )
        except CriterionError:
            sheet = ""
        yield (sample.item, sample.system, rival.system if rival else ""), sheet


def _sheet(prompt: Prompt, texts: Mapping[str, str]) -> list[list[Any]]:
    said = [(message["role"], message["content"]) for message in prompt.messages]
    said += [("question", prompt.question)] if prompt.question else []
    return [[role, _parts(content, texts)] for role, content in said]


def _texts(criterion: Criterion, sample: Sample, rival: Sample | None) -> dict[str, str]:
    """What of a sample can stand in a prompt, by name."""
    found = {"output": sample.output} if rival is None else {"first": sample.output, "second": rival.output}
    found |= {} if sample.source is None else {"source": sample.source}
    found |= {f"references {place}": text for place, text in enumerate(sample.references)}
    read = sorted(criterion.needs & sample.extra.keys())
    return found | {f"extra {name}": text for name in read if isinstance(text := sample.extra[name], str)}


def _parts(words: str, texts: Mapping[str, str]) -> list[str]:
    """The words and, at every odd place, what was between them."""
    parts = [words]
    there = [(name, text) for name, text in texts.items() if text in words]
    for name, text in sorted(there, key=lambda pair: -len(pair[1])):
        parts = _cut(parts, ">\n", text, "\n</", f"text {name}")
        parts = _cut(parts, " ", render.fence_digest(text), ">", f"key {name}")
        if len(text) >= _SURE:
            parts = _cut(parts, "", text, "", f"text {name}")
    return parts


def _cut(parts: Sequence[str], before: str, text: str, after: str, name: str) -> list[str]:
    """The parts, cut wherever the text stands between `before` and `after`."""
    found: list[str] = []
    for place, part in enumerate(parts):
        if place % 2:
            found.append(part)
            continue
        first, *rest = part.split(before + text + after)
        found.append(first)
        for one in rest:
            found[-1] += before
            found += [name, after + one]
    return found


_PACKAGES = ("openai", "jinja2", "numpy", "rapidfuzz", "sacrebleu", "evalica")


def metadata_factory(
    prepared: PreparedRun, progress: Progress, ledger: BudgetLedger | None = None
) -> Callable[[str], dict[str, Any]]:
    """A function that says, for a status, how the run stands now. Its clock starts here."""
    started, clock = datetime.now(UTC), time.monotonic()
    plan, judges = prepared.plan, prepared.judges
    fixed = {
        "judge_version": __version__,
        "plan": plan.model_dump(mode="json", by_alias=True, exclude_none=True),
        "data": prepared.data,
        "model": ", ".join(judges) or prepared.baseline or None,
        "provider": _joined(p.name for p in judges.values()),
        "base_url": _joined(p.endpoint for p in judges.values()),
        "notices": [p.notice for p in judges.values() if p.notice] + [heuristic.NOTICE] * bool(prepared.baseline),
        "language": prepared.language if judges else None,
        "weighting": plan.weighting if judges else None,
        "criteria": {c.name: _criterion(c) for c in prepared.criteria},
        "versions": {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
    }

    def now(status: str) -> dict[str, Any]:
        """What was fixed at the start, with what the run has done so far."""
        each = {name: _judge(p, progress.judges[name]) for name, p in judges.items()}
        return fixed | {
            "status": status,
            "notes": [*prepared.notes, *(said for counts in progress.judges.values() for said in counts.remarks)],
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - clock, 3),
            "served_by": sorted({served for one in each.values() for served in one["served_by"]}),
            "unmet": _sum(one["unmet"] for one in each.values()),
            "usage": _sum(one["usage"] for one in each.values()),
            "requests": _sum(one["requests"] for one in each.values()),
            "cost": _whole_cost([one["cost"] for one in each.values()]),
            "slowest": _slowest(progress),
            "judges": each,
            **_budget(ledger),
        }

    return now


def column_suffix(prepared: PreparedRun, judge: str) -> str:
    """What a judge's columns have after the criterion's name: nothing where it is the only judge."""
    return f"/{judge}" if len(prepared.judges) > 1 else ""


def signed_column(
    criterion: Criterion, judge: str, provider: Provider, prepared: PreparedRun, counts: JudgeProgress
) -> Column:
    """The column of a criterion by one judge, signed with what is needed to get it again."""
    plan = prepared.plan
    parts = [f"{criterion.name}@{criterion.digest[:6]}", signed(provider)]
    if provider.decides:
        parts.append("decisions")
    else:
        usual = {"auto": "0/1", "samples": "1"}.get(plan.weighting, "0")  # 0, and 1 for draws
        wanted = usual if plan.temperature is None else f"{plan.temperature:g}"
        parts.append("t=server" if "temperature" in counts.unmet else f"t={wanted}")
        parts += ["effort=none"] if "reasoning" in counts.unmet else []
        parts += [f"max_tokens={plan.max_tokens}"] if plan.max_tokens else []
        parts += [f"reply={criterion.reply}"] if plan.reply else []
        parts += ["json"] if plan.structured else []
        parts += [_merged(group) for group in prepared.merged if criterion.name in (c.name for c in group)]
        parts.append(plan.weighting)
        parts += [f"draws={plan.draws}"] if plan.weighting in ("auto", "samples") else []
        if plan.weighting in ("auto", "logprobs") and plan.min_mass != type(plan).model_fields["min_mass"].default:
            parts.append(f"mass>={plan.min_mass:g}")
    if isinstance(plan, RankPlan):
        parts.append(f"orders={plan.orders}")
        parts += [f"pairs={plan.pairs}"] if plan.pairs else []
        parts += [f"seed={plan.seed}"] if plan.pairs or plan.orders == 1 else []
    parts.append(f"judge {__version__}")
    scale, own = criterion.scale, column_suffix(prepared, judge)
    return Column(
        criterion.name + own,
        "criterion",
        "|".join(parts),
        scale.low,
        scale.high,
        scale.labels,
        criterion=criterion.name,
        judge=judge if own else "",
        weight=criterion.weight,
    )


def _merged(criteria: Sequence[Criterion]) -> str:
    """How many criteria share a request, and the digest of all of them: a score depends on what stands beside it."""
    texts = [criterion.digest for criterion in criteria] + [multi_criteria_layout(criteria[0])]
    return f"merged={len(criteria)}@{hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:6]}"


def _joined(texts: Any) -> str | None:
    return ", ".join(dict.fromkeys(text for text in texts if text)) or None


def _sum(counted: Any) -> dict[str, int]:
    """Counts by name, added up; the names in the order of their first appearance."""
    total: Counter[str] = Counter()
    for one in counted:
        total.update(one)
    return dict(total)


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
        "templates": template_texts(criterion),
    }


def _judge(provider: Provider, counts: JudgeProgress) -> dict[str, Any]:
    """One judge, and what its run has found out about it so far."""
    return {
        "model": provider.model,
        "provider": provider.name,
        "base_url": provider.endpoint or None,
        "served_by": sorted(counts.served_by),
        "unmet": dict(counts.unmet),
        "learned": provider.learned,
        "usage": {name: getattr(counts.usage, name) for name in Usage.__slots__},
        "requests": {
            "sent": counts.sent,
            "answered": counts.answered,
            "cached": counts.cached,
            "shared": counts.shared,
            "retried": counts.retried,
            "timeouts": counts.timeouts,
            "failed": counts.refused,
        },
        "cost": _cost(provider, counts),
    }


def _slowest(progress: Progress) -> list[dict[str, Any]]:
    """The ten judgments whose requests took longest, in seconds from the first try to the answer, longest first."""
    found = [(took, name, *what) for name, counts in progress.judges.items() for took, what in counts.slowest]
    names = ("seconds", "judge", "item", "system", "criterion")
    return [dict(zip(names, (round(took, 3), *what), strict=True)) for took, *what in sorted(found, reverse=True)[:10]]


def _budget(ledger: BudgetLedger | None) -> dict[str, Any]:
    """What the run might spend, and the most that it has spent; nothing without a budget."""
    if ledger is None or ledger.budget is None:
        return {}
    return {"budget": {"amount": ledger.budget.amount, "unit": ledger.budget.unit, "spent": ledger.spent}}


def _cost(provider: Provider, counts: JudgeProgress) -> dict[str, Any]:
    """US dollars for what was answered; None, with the reason, where they are not known."""
    if provider.notice:
        return {}
    if counts.sent and counts.usage == Usage():
        return {"usd": None, "note": "the server counted no tokens"}
    price = cost_usd(provider.model, provider.endpoint, counts.usage, batched=counts.batched, decides=provider.decides)
    if price is None and is_own(provider.endpoint):
        return {"usd": None, "note": why_unknown(provider.model, provider.endpoint, decides=provider.decides)}
    return {"usd": price, "note": "" if price is not None else "no published price for this model and endpoint"}


def _whole_cost(costs: list[dict[str, Any]]) -> dict[str, Any]:
    """The sum, where every part of it is known."""
    known = [cost for cost in costs if cost]
    if not known:
        return {}
    unknown = [cost for cost in known if cost["usd"] is None]
    return unknown[0] if unknown else {"usd": sum(cost["usd"] for cost in known), "note": ""}
