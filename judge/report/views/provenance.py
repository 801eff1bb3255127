"""How a run came to its numbers: title, banners, failures by kind, facts, judges and signatures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from judge.core.format import one_line, plural, seconds
from judge.core.records import ABSTAINED, IDENTICAL, Column, Failure, Score, Usage
from judge.data import ledger
from judge.report.document import (
    Block,
    Bullets,
    Code,
    Details,
    Facts,
    Heading,
    Paragraph,
    Section,
    table,
)
from judge.report.views.servers import (
    methods_by_column,
    refusals,
    scored_instead,
    server_notes,
)
from judge.results.result import Result, failure_counts
from judge.results.run_info import FirstPrompt, ModelUse, PromptMessage, Requests, RunInfo
from judge.scoring.checklist import split

_MIN_MASS = 0.9  # a banner counts the scores with less of the probability on the scale
_ROUNDING = 1e-9
UNFINISHED = {
    "interrupted": "This run was interrupted. What had come back is shown; run the same command again to go on.",
    "stopped": "This run was stopped by an error. What had come back is shown.",
}
_MAX_SYSTEM = 1_000  # characters


@dataclass(frozen=True, slots=True)
class FailureKind:
    """Failures of one stage and error, with the first one's message."""

    stage: str
    error: str
    count: int
    columns: tuple[str, ...]
    example: str


@dataclass(frozen=True, slots=True)
class Readings:
    """How many scores of a column were read in the requested form, from a sentence (`prose`), or from the answer to a
    repair question (`repaired`), and how many judgments had replies without a score (`unread`)."""

    column: str
    strict: int
    prose: int
    repaired: int
    unread: int


@dataclass(frozen=True, slots=True)
class Provenance:
    """What every report says beside its numbers. `judges` has what there is to say of each one, by name.

    `banners` go before any number; the first ones say that no model judged. `signed` has the columns' signatures, and
    for judgments how many scores each method gave.
    """

    title: str
    banners: tuple[str, ...]
    failures: tuple[FailureKind, ...]
    facts: tuple[tuple[str, str], ...]
    usage: str
    judges: tuple[tuple[str, str], ...]
    signed: tuple[tuple[str, str], ...]


def build_provenance(result: Result) -> Provenance:
    """Lay out how a result came to be."""
    info, failures = result.info, _failures(result)
    judges, remarks = info.judges, []
    for judge, facts in judges.items():
        settings = dict(facts.settings)
        system_message = settings.pop("system_message", "")
        parts = [
            f"{name} {value}" for name, value in settings.items() if not isinstance(value, Mapping)
        ]
        for mapping in (value for value in settings.values() if isinstance(value, Mapping)):
            parts += [
                f"{name} {v if isinstance(v, str) else json.dumps(v)}"
                for name, v in mapping.items()
            ]
        if system_message:
            parts.append(f"system message: {one_line(str(system_message), _MAX_SYSTEM)}")
        texts = [
            one_line(" · ".join(parts)),
            "; ".join(refusals(facts, scored_instead(result, judge))),
        ]
        if len(judges) > 1:
            texts = [
                one_line(facts.base_url or facts.provider),
                *texts,
                _usage(facts, replayed=facts.provider == "replay"),
            ]
        if remark := " · ".join(filter(None, texts)):
            remarks.append((one_line(str(judge)), remark))
    path = info.data.path
    folders = path.replace("\\", "/").split("/")
    # The name of a pattern includes the folder that it is about.
    name = "/".join(folders[-2 if "*" in folders[-1] else -1 :]) if path else "Judge report"
    title = info.config.title or (f"{name}, judged by {info.model}" if info.judges else name)
    methods = methods_by_column(result)
    columns = sorted(
        result.table.columns, key=lambda c: c.kind != "criterion"
    )  # stable: else the table's order
    return Provenance(
        title=one_line(str(title)),
        banners=tuple(dict.fromkeys(_banners(result))),
        failures=failures,
        facts=_facts(result, sum(kind.count for kind in failures) - result.abstained),
        usage=usage_of_run(info),
        judges=tuple(remarks),
        signed=tuple(
            (
                one_line(c.name),
                _joined(
                    str(c.signature),
                    f"({_method_counts(n)})" if (n := methods.get(c.name)) else "",
                    sep=" ",
                ),
            )
            for c in columns
            if str(c.signature)
        ),
    )


def _banners(result: Result) -> Iterator[str]:
    """Yield what the reader has to know before the numbers."""
    info = result.info
    yield from map(one_line, info.notices)
    if info.status in UNFINISHED:
        yield UNFINISHED[info.status]
    yield from map(one_line, info.notes)
    yield from server_notes(result)
    yield from map(one_line, ledger.notes(result.table.samples))
    judgments = [
        part for score in result.table.scores for part in split(score) if isinstance(part, Score)
    ]
    by_mass = [
        score.provenance
        for score in judgments
        if score.provenance.method in ("logprobs", "decisions")
    ]
    masses = [provenance.mass for provenance in by_mass if provenance.mass is not None]
    if thin := [mass for mass in masses if mass < _MIN_MASS - _ROUNDING]:
        yield (
            f"{len(thin):,} of {plural(len(masses), 'score')} by token probabilities have less than {_MIN_MASS:.0%} of "
            f"the probability on the scale, the least {min(thin):.0%}."
        )
    read = readings(result)
    prose, repaired = sum(r.prose for r in read), sum(r.repaired for r in read)
    total = sum(r.strict for r in read) + prose + repaired
    places = ((prose, "read from a sentence"), (repaired, "from the answer to a repair question"))
    if counts := [f"{count:,} of {total:,} {place}" for count, place in places if count]:
        yield f"Scores not in the requested form: {', '.join(counts)}."


def failed(row: Score | Failure | None) -> bool:
    """Return whether a row is a failure. A failure of a panel is not counted: it follows from its judges'."""
    return isinstance(row, Failure) and row.stage != "panel"


def abstained(column: Column, row: Score | Failure | None) -> bool:
    """Return whether a metric declined to give a value."""
    return column.kind == "metric" and isinstance(row, Failure) and row.error == ABSTAINED


def _failures(result: Result) -> tuple[FailureKind, ...]:
    """Count the failures by stage and error, the most common first."""
    examples = {(f.stage, f.error): f for f in reversed(result.failures) if failed(f)}
    kinds: dict[tuple[str, str], Counter[str]] = {}
    for (stage, error, _, column), n in failure_counts(result).items():
        if (stage, error) in examples:
            kinds.setdefault((stage, error), Counter())[column] += n
    rows = []
    for key, columns in kinds.items():
        failure = examples[key]
        reply = (
            f", reply: {failure.raw[:80]!r}" if failure.raw and failure.stage != "metric" else ""
        )
        judged = f"{failure.system} against {failure.rival}" if failure.rival else failure.system
        example = f"{failure.item or 'all texts'}, {judged}: {failure.message}{reply}"
        rows.append(FailureKind(*key, columns.total(), tuple(columns), example))
    return tuple(sorted(rows, key=lambda kind: -kind.count))


def readings(result: Result) -> tuple[Readings, ...]:
    """Count how the replies of each judge were read on each criterion.

    Nothing for columns without replies in words, and for those of older runs, which did not store it.
    """
    counts = {
        column.name: Counter[str]() for column in result.table.columns if column.kind == "criterion"
    }
    for row in chain.from_iterable(map(split, result.table.rows())):
        if row.column in counts:
            if isinstance(row, Failure):
                counts[row.column]["unread"] += row.stage == "parse"
            elif row.provenance.raw or row.provenance.reading:
                counts[row.column][row.provenance.reading or "unknown"] += 1
    kinds = ("strict", "prose", "repaired", "unread")
    return tuple(
        Readings(name, *(n[kind] for kind in kinds))
        for name, n in counts.items()
        if n.total() and not n["unknown"]
    )


def _facts(result: Result, lost: int) -> tuple[tuple[str, str], ...]:
    info, table, abstained = result.info, result.table, result.abstained
    data, language = info.data, info.language
    systems = plural(len(table.systems), "system")
    size = f"{plural(len(table.samples), 'text')}: {plural(len(table.items), 'item')}, {systems}"
    place, panel = info.base_url or info.provider, len(info.judges) > 1
    where = "" if panel else f"at {place}" if place else ""
    methods = sum(methods_by_column(result).values(), Counter[str]())
    for name in ("panel", IDENTICAL):
        del methods[name]
    started, spent = info.started, ""
    with suppress(ValueError):
        started = f"{datetime.fromisoformat(started):%Y-%m-%d %H:%M %Z}".rstrip()
    if info.budget is not None:
        form = (
            "${:,.4f} of ${:,.2f} spent"
            if info.budget.unit == "usd"
            else "{:,.0f} of {:,.0f} tokens spent"
        )
        spent = form.format(info.budget.spent, info.budget.amount)
    facts = {
        "Data": _joined(
            data.path,
            f"{data.files:,} files" if data.files > 1 else "",
            f"sha256 {data.sha256[:12]}" if data.sha256 else "",
        ),
        "Texts": size,
        "Judges" if panel else "Judge": _joined(info.model, where, sep=" "),
        "Language": f"{language.name} ({language.how})" if language is not None else "",
        "Weighting": _joined(
            info.config.weighting if info.judges else "", _method_counts(methods), sep=": "
        ),
        "Started": _joined(started, f"took\u00a0{seconds(info.seconds)}" if started else ""),
        "Status": _joined(
            info.status if info.judge_version else "",
            f"{lost:,} failed" if lost else "",
            f"{abstained:,} abstained" if abstained else "",
        ),
        "Budget": spent,
        "Version": f"judge {one_line(info.judge_version)}" if info.judge_version else "",
    }
    return tuple((name, text) for name, text in facts.items() if text)


def _method_counts(methods: Counter[str]) -> str:
    """Return `logprobs 78, samples 2`."""
    return ", ".join(f"{one_line(method)} {n:,}" for method, n in methods.most_common())


def _joined(*parts: Any, sep: str = ", ") -> str:
    """Join the non-empty parts, each on one line; keep no-break spaces."""
    return sep.join(
        "\u00a0".join(map(one_line, str(part).split("\u00a0"))) for part in parts if part
    )


def usage_of_run(info: RunInfo) -> str:
    """Summarise requests, tokens and cost in one line, and what generation cost."""
    parts = [_usage(info, replayed=info.provider == "replay")]
    if writing := generation_cost(info):
        parts.append(f"of which generation: ${writing:,.4f}")
    return one_line(" · ".join(filter(None, parts)))


def _usage(used: ModelUse, *, replayed: bool) -> str:
    """Summarise requests, tokens and cost in one line."""
    requests, usage, cost = used.requests, used.usage, used.cost
    parts = []
    if requests != Requests():
        counts = {"read from the recording" if replayed else "sent": requests.sent}
        if requests.answered != requests.sent:
            counts["answered"] = requests.answered
        for kind in ("cached", "shared", "retried", "timeouts", "failed"):
            if number := getattr(requests, kind):
                counts[kind] = number
        parts.append("requests: " + ", ".join(f"{n:,} {kind}" for kind, n in counts.items()))
    if usage != Usage():
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        thought = f" ({usage.reasoning_tokens:,} reasoning)" if usage.reasoning_tokens else ""
        parts.append(
            f"tokens: {usage.prompt_tokens:,} in{cached}, {usage.completion_tokens:,} out{thought}"
        )
    if cost is not None:
        price = "unknown"
        if cost.usd is not None:
            price = f"${cost.usd:,.4f}" if cost.usd or requests.sent else "nothing"
        parts.append(f"cost: {price} ({cost.note})" if cost.note else f"cost: {price}")
    return one_line(" · ".join(parts))


def generation_cost(info: RunInfo) -> float | None:
    """Return what the outputs cost that a run's systems wrote, in US dollars; None if it is unknown."""
    costs = [system.cost.usd for system in info.systems.values() if system.cost is not None]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def failure_blocks(result: Result) -> Iterator[Block]:
    """List the failures by kind, each with an example."""
    yield Paragraph("Failed judgments are counted and never enter a mean.", "muted")
    yield Bullets(tuple(failure_text(kind) for kind in _failures(result)))


def reading_section(result: Result) -> Iterator[Section]:
    """Yield a section that counts how the replies were read, unless all scores were read in the requested form."""
    read = readings(result)
    heads = ("", "as requested", "from a sentence", "repair question", "no score")
    rows = [
        (one_line(r.column, 60), *(f"{n:,}" for n in (r.strict, r.prose, r.repaired, r.unread)))
        for r in read
    ]
    if any(r.prose or r.repaired for r in read):
        key = "Where judge read the scores. Judgments without a score have failed."
        yield Section(
            "readings",
            "How replies were read",
            lambda: [table(heads, rows, key=key, name="readings")],
        )


def failure_text(kind: FailureKind, limit: int = 400) -> str:
    """Return `4 × ParseError (consistency): item, system: what went wrong`."""
    columns = one_line(", ".join(kind.columns), 60)
    return f"{kind.count:,} × {one_line(kind.error)} ({columns}): {one_line(kind.example, limit)}"


def message_blocks(messages: Sequence[PromptMessage]) -> Iterator[Block]:
    """Yield the messages of a prompt; several have their roles as headings."""
    for message in messages:
        if len(messages) > 1:
            yield Heading(one_line(message.role), 4)
        yield Code(message.content)


def _first_prompts(result: Result) -> Iterator[Block]:
    """Yield the first prompt of each column as it was sent; judges that were asked the same share one."""
    columns_by_prompt: dict[FirstPrompt, list[str]] = {}
    for column, prompt in result.info.prompts.items():
        columns_by_prompt.setdefault(prompt, []).append(column)
    for prompt, columns in columns_by_prompt.items():
        text = f"item {one_line(prompt.item, 60)}, {one_line(prompt.system, 60)}"
        if prompt.opponent:
            text = f"{text} against {one_line(prompt.opponent, 60)}"
        title = f"Prompt: {one_line(', '.join(columns))}, as sent for {text}"
        yield Details(title, tuple(message_blocks(prompt.messages)))
    if columns_by_prompt:
        command = "judge report RUN --item ID --system NAME"
        yield Paragraph(f"{command} shows the prompts of other texts.", "muted")


def method_blocks(result: Result) -> Iterator[Block]:
    """Say how the run was made: data, judge, usage, signatures, prompts and versions."""
    about = build_provenance(result)
    yield Facts((*about.facts, *([("Usage", about.usage)] if about.usage else [])))
    if about.judges:
        yield Heading("Judges" if len(about.judges) > 1 else "Judge")
        yield Facts(about.judges)
    if about.signed:
        yield Heading("Signatures")
        yield Facts(about.signed)
    yield from _first_prompts(result)
    for name, criterion in result.info.criteria.items():
        title = one_line(criterion.title or name)
        digest = criterion.digest[:12]
        blocks: list[Block] = [Bullets(criterion.steps)] if criterion.steps else []
        if criterion.examples:
            shown = (
                f"{one_line(example.score)}: {one_line(example.output, 200)}"
                for example in criterion.examples
            )
            blocks += [Heading("Examples", 4), Bullets(tuple(shown))]
        for file, text in criterion.templates.items():
            blocks += [Heading(one_line(file), 4), Code(text, "jinja")]
        if blocks:
            yield Details(f"Template: {title} {digest}".rstrip(), tuple(blocks))
    if versions := result.info.versions:
        yield Paragraph(
            ", ".join(f"{one_line(name)} {one_line(number)}" for name, number in versions.items()),
            "muted",
        )
