"""How a run came to its numbers: title, banners, failures by kind, facts, judges and signatures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from judge.core.failure_kinds import failure_kind
from judge.core.format import UNNAMED_SYSTEM, exact_duration, one_line, plural
from judge.core.messages import Remark
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
from judge.report.format import column_title
from judge.report.views.replies import stored_replies
from judge.report.views.servers import (
    methods_by_column,
    refusals,
    scored_instead,
    server_notes,
)
from judge.results.result import Result, single_failure_counts
from judge.results.run_info import (
    CriterionInfo,
    FirstPrompt,
    JudgeInfo,
    ModelUse,
    PromptMessage,
    Requests,
    RunInfo,
)
from judge.scoring.checklist import split

_MANY_REPAIRED = 0.1  # share of the scores; more of them are a warning
_MIN_MASS = 0.9  # a banner counts the scores with less of the probability on the scale
# A mass of exactly 90% must not be counted because of a rounding error.
_ROUNDING = 1e-9
UNFINISHED = {
    "interrupted": (
        "This run was interrupted. "
        "The report has the replies so far; run the same command again to resume."
    ),
    "limit": (
        "This run reached its budget or deadline. "
        "The report has the replies so far; run the same command again to resume."
    ),
    "stopped": "An error stopped this run. The report has the replies so far.",
}
_MAX_SYSTEM = 1_000  # characters


@dataclass(frozen=True, slots=True)
class FailureKind:
    """Failures of one stage and error, with the first one of the most common message.

    `alike` failures have this message.
    """

    stage: str
    error: str
    count: int
    columns: tuple[str, ...]
    example: str
    alike: int


@dataclass(frozen=True, slots=True)
class Readings:
    """How the scores of a column were read.

    They were read in the requested form (`strict`), from a sentence (`prose`), or from the answer
    to a repair question (`repaired`). `unread` counts judgments whose replies have no score.
    """

    column: str
    strict: int
    prose: int
    repaired: int
    unread: int

    @property
    def scores(self) -> int:
        """The number of scores that were read."""
        return self.strict + self.prose + self.repaired


@dataclass(frozen=True, slots=True)
class Provenance:
    """What every report says beside its numbers.

    `judges` has the settings and refusals of each one, by name. `banners` go before any number; the
    first ones say that no model judged. `remarks` warn of nothing. `signed` has the columns'
    signatures, and for judgments how many scores each method gave.
    """

    title: str
    banners: tuple[str, ...]
    remarks: tuple[Remark, ...]
    failures: tuple[FailureKind, ...]
    facts: tuple[tuple[str, str], ...]
    usage: str
    judges: tuple[tuple[str, str], ...]
    signed: tuple[tuple[str, str], ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """The banners, then the remarks."""
        return (*self.banners, *self.remarks)


def build_provenance(result: Result) -> Provenance:
    """Lay out how a result came to be."""
    failures = _failures(result)
    n_failures = sum(kind.count for kind in failures)
    n_lost = n_failures - result.abstained
    title = str(_title(result.info))
    # A dict keeps the order and has each text once.
    banners = dict.fromkeys(_banners(result))
    remarks = dict.fromkeys(Remark(remark) for remark in _remarks(result))
    return Provenance(
        title=one_line(title),
        banners=tuple(banners),
        remarks=tuple(remarks),
        failures=failures,
        facts=_facts(result, n_lost),
        usage=usage_of_run(result.info),
        judges=tuple(_judge_remarks(result)),
        signed=tuple(_signatures(result)),
    )


def _title(info: RunInfo) -> str:
    """Return the run's own title, or its data and judges."""
    if info.config.title:
        return info.config.title
    data_name = "Judge report"
    if info.data.path:
        parts = info.data.path.replace("\\", "/").split("/")
        # `runs/*.jsonl`: a pattern says little without its folder.
        n_parts = 2 if "*" in parts[-1] else 1
        data_name = "/".join(parts[-n_parts:])
    return f"{data_name}, judged by {info.model}" if info.judges else data_name


def _judge_remarks(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the judges with their settings and what their servers refused, if there is any."""
    judges = result.info.judges
    for judge, info in judges.items():
        settings = " · ".join(_settings(info))
        methods_used = scored_instead(result, judge)
        refused = "; ".join(refusals(info, methods_used))
        parts = [one_line(settings), refused]
        # For a single judge, the run's facts have its address and usage.
        if len(judges) > 1:
            address = one_line(info.base_url or info.provider)
            usage = _usage(info, replayed=info.provider == "replay")
            parts = [address, *parts, usage]
        remark = " · ".join(filter(None, parts))
        if remark:
            yield one_line(str(judge)), remark


def _settings(info: JudgeInfo) -> Iterator[str]:
    """Yield the settings that a user chose: single ones, then mappings, then the system message."""
    settings = dict(info.settings)
    system_message = settings.pop("system_message", "")
    mappings = []
    for setting, value in settings.items():
        if isinstance(value, Mapping):
            mappings.append(value)
        else:
            yield f"{setting} {value}"
    for mapping in mappings:
        for setting, value in mapping.items():
            text = value if isinstance(value, str) else json.dumps(value)
            yield f"{setting} {text}"
    if system_message:
        yield f"system message: {one_line(str(system_message), _MAX_SYSTEM)}"


def _signatures(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the signature of each column, criteria first, with the counts of the methods."""
    methods = methods_by_column(result)
    # The sort is stable, so that both kinds keep the order of the table.
    columns = sorted(
        result.table.columns, key=lambda column: column.kind != "criterion"
    )
    for column in columns:
        signature = str(column.signature)
        if not signature:
            continue
        counts = methods.get(column.name)
        if counts:
            signature = f"{signature} ({_method_counts(counts)})"
        yield column_title(column.name), _joined(signature)


def _banners(result: Result) -> Iterator[str]:
    """Yield what the reader has to know before the numbers."""
    info = result.info
    yield from map(one_line, info.notices)
    if info.status in UNFINISHED:
        yield UNFINISHED[info.status]
    yield from map(one_line, info.notes)
    yield from _thin_scores(result)
    if _repaired_share(result) > _MANY_REPAIRED:
        yield from _readings_in_words(result)


def _remarks(result: Result) -> Iterator[str]:
    """Yield what was read or done otherwise than the reader may expect, and needs no action."""
    yield from map(one_line, result.info.remarks)
    yield from server_notes(result)
    yield from map(one_line, ledger.notes(result.table.samples))
    if _repaired_share(result) <= _MANY_REPAIRED:
        yield from _readings_in_words(result)


def _thin_scores(result: Result) -> Iterator[str]:
    """Say how many scores have little of the probability on the scale."""
    masses = list(_masses(result))
    # Probabilities are sums of floats: 0.95 may be 0.9499999.
    thin = [mass for mass in masses if mass < _MIN_MASS - _ROUNDING]
    if thin:
        scores = plural(len(masses), "score")
        least = min(thin)
        yield (
            f"{len(thin):,} of {scores} by token probabilities have less than {_MIN_MASS:.0%} of "
            f"the probability on the scale, the least {least:.0%}."
        )


def _masses(result: Result) -> Iterator[float]:
    """Yield the probability on the scale of each score by token probabilities."""
    for score in result.table.scores:
        for part in split(score):
            if not isinstance(part, Score):
                continue
            provenance = part.provenance
            by_probability = provenance.method in ("logprobs", "decisions")
            if by_probability and provenance.mass is not None:
                yield provenance.mass


def _total_readings(result: Result) -> Readings:
    """Return how the scores of all columns together were read."""
    counts = readings(result)
    return Readings(
        column="",
        strict=sum(counted.strict for counted in counts),
        prose=sum(counted.prose for counted in counts),
        repaired=sum(counted.repaired for counted in counts),
        unread=sum(counted.unread for counted in counts),
    )


def _repaired_share(result: Result) -> float:
    """Return the share of the scores that came from the answer to a repair question."""
    total = _total_readings(result)
    return total.repaired / total.scores if total.scores else 0.0


def _readings_in_words(result: Result) -> Iterator[str]:
    """Say how many scores were not in the requested form."""
    total = _total_readings(result)
    phrases = []
    if total.prose:
        phrases.append(f"{total.prose:,} of {total.scores:,} read from a sentence")
    if total.repaired:
        phrases.append(
            f"{total.repaired:,} of {total.scores:,} from the answer to a repair question"
        )
    if phrases:
        counts_in_words = ", ".join(phrases)
        yield f"Scores not in the requested form: {counts_in_words}."


def failed(row: Score | Failure | None) -> bool:
    """Return whether a row is a failure. A panel's does not count: it follows from its judges'."""
    return isinstance(row, Failure) and row.stage != "panel"


def abstained(column: Column, row: Score | Failure | None) -> bool:
    """Return whether a metric declined to give a value."""
    if column.kind != "metric" or not isinstance(row, Failure):
        return False
    return row.error == ABSTAINED


def _failures(result: Result) -> tuple[FailureKind, ...]:
    """Count the failures by stage and error, the most common first."""
    # A kind is a stage and an error.
    failures_by_kind: dict[tuple[str, str], list[Failure]] = {}
    for failure in result.failures:
        if failed(failure):
            kind = (failure.stage, failure.error)
            failures_by_kind.setdefault(kind, []).append(failure)
    # By kind, the number of failures in each column.
    counts_by_kind: dict[tuple[str, str], Counter[str]] = {}
    for (stage, error, _, column), count in single_failure_counts(result).items():
        if (stage, error) in failures_by_kind:
            counts = counts_by_kind.setdefault((stage, error), Counter())
            counts[column] += count
    kinds = []
    for (stage, error), count_by_column in counts_by_kind.items():
        failures = failures_by_kind[stage, error]
        messages = Counter(failure.message for failure in failures)
        ((commonest, alike),) = messages.most_common(1)
        first_failure = next(
            failure for failure in failures if failure.message == commonest
        )
        kind_of_failure = FailureKind(
            stage,
            error,
            count_by_column.total(),
            columns=tuple(count_by_column),
            example=_example(first_failure),
            alike=alike,
        )
        kinds.append(kind_of_failure)
    return tuple(sorted(kinds, key=lambda kind: -kind.count))


def _example(failure: Failure) -> str:
    """Return a failure with its text and the beginning of the reply."""
    reply = ""
    if failure.raw and failure.stage != "metric":
        replies = stored_replies(failure).texts
        if replies:
            commonest, _ = replies[0]
            reply = f", reply: {commonest[:80]!r}"
    judged = failure.system
    if failure.opponent:
        judged = f"{judged} against {failure.opponent}"
    item = failure.item or "all texts"
    return f"{item}, {judged}: {failure.message}{reply}"


def readings(result: Result) -> tuple[Readings, ...]:
    """Count how the replies of each judge were read on each criterion.

    Columns without replies in words have no counts. Neither have columns of older runs, which did
    not store how a reply was read.
    """
    counts: dict[str, Counter[str]] = {}
    for column in result.table.columns:
        if column.kind == "criterion":
            counts[column.name] = Counter()
    for row in _single_judgments(result):
        if row.column not in counts:
            continue
        if isinstance(row, Failure):
            if row.stage == "parse":
                counts[row.column]["unread"] += 1
        elif row.provenance.raw or row.provenance.reading:
            reading = row.provenance.reading or "unknown"
            counts[row.column][reading] += 1
    read = []
    for column_name, by_reading in counts.items():
        if by_reading.total() and not by_reading["unknown"]:
            counted = Readings(
                column=column_name,
                strict=by_reading["strict"],
                prose=by_reading["prose"],
                repaired=by_reading["repaired"],
                unread=by_reading["unread"],
            )
            read.append(counted)
    return tuple(read)


def _single_judgments(result: Result) -> Iterator[Score | Failure]:
    """Yield the rows of a result; the row of a checklist as one row per question."""
    for row in result.table.rows():
        yield from split(row)


def _facts(result: Result, n_lost: int) -> tuple[tuple[str, str], ...]:
    """Return the names and texts of the facts about a run that are known.

    `n_lost` is the number of failed values, without those from which metrics abstained.
    """
    info = result.info
    judge_heading = "Judges" if len(info.judges) > 1 else "Judge"
    version = ""
    if info.judge_version:
        version = f"judge {one_line(info.judge_version)}"
    facts = {
        "Data": _data_fact(info),
        "Texts": _texts_fact(result),
        judge_heading: _judge_fact(info),
        "Language": _language_fact(info),
        "Weighting": _weighting_fact(result),
        "Started": _started_fact(info),
        "Status": _status_fact(result, n_lost),
        "Budget": _budget_fact(info),
        "Version": version,
    }
    return tuple((fact_name, text) for fact_name, text in facts.items() if text)


def _judge_fact(info: RunInfo) -> str:
    """Return the judge with its address; a panel's judges have their addresses in the list."""
    address = info.base_url or info.provider
    is_panel = len(info.judges) > 1
    if is_panel or not address:
        return _joined(info.model)
    return _joined(info.model, f"at {address}", sep=" ")


def _language_fact(info: RunInfo) -> str:
    """Return `Japanese (detected)`."""
    if info.language is None:
        return ""
    return f"{info.language.name} ({info.language.how})"


def _weighting_fact(result: Result) -> str:
    """Return `auto: logprobs 78, samples 2`."""
    counts = sum(methods_by_column(result).values(), Counter[str]())
    # A panel combines scores, and identical texts are a tie: no judge was asked in these ways.
    for method in ("panel", IDENTICAL):
        del counts[method]
    weighting = result.info.config.weighting if result.info.judges else ""
    return _joined(weighting, _method_counts(counts), sep=": ")


def _started_fact(info: RunInfo) -> str:
    """Return when a run started and how long it took; "" for a result that no run made."""
    if not info.started:
        return ""
    started = info.started
    # Another text than a time, in a run.json by hand, is shown as it is.
    with suppress(ValueError):
        started = f"{datetime.fromisoformat(started):%Y-%m-%d %H:%M %Z}".rstrip()
    return _joined(started, f"took\u00a0{exact_duration(info.seconds)}")


def _status_fact(result: Result, n_lost: int) -> str:
    """Return `complete, 2 values failed, 1 abstained`."""
    # A result that no run made has no status.
    status = result.info.status if result.info.judge_version else ""
    failed_values = ""
    if n_lost:
        failed_values = plural(n_lost, "value") + " failed"
    abstentions = f"{result.abstained:,} abstained" if result.abstained else ""
    return _joined(status, failed_values, abstentions)


def _texts_fact(result: Result) -> str:
    """Return `80 texts: 20 items, 4 systems`, or `20 texts` if the data names no system."""
    n_texts = len(result.table.samples)
    n_items = len(result.table.items)
    texts = plural(n_texts, "text")
    items = plural(n_items, "item")
    if result.table.systems != (UNNAMED_SYSTEM,):
        systems = plural(len(result.table.systems), "system")
        return f"{texts}: {items}, {systems}"
    return texts if n_texts == n_items else f"{texts}: {items}"


def _data_fact(info: RunInfo) -> str:
    """Return `texts/*.jsonl, 3 files, sha256 1f3a…`."""
    data = info.data
    files = f"{data.files:,} files" if data.files > 1 else ""
    digest = f"sha256 {data.sha256[:12]}" if data.sha256 else ""
    return _joined(data.path, files, digest)


def _budget_fact(info: RunInfo) -> str:
    """Return `$0.1234 of $5.00 spent`; "" without a budget."""
    budget = info.budget
    if budget is None:
        return ""
    # A resumed run has its own budget, and has most replies from the cache.
    uncounted = " (without cached replies)" if info.requests.cached else ""
    if budget.unit == "usd":
        return f"${budget.spent:,.4f} of ${budget.amount:,.2f} spent{uncounted}"
    return f"{budget.spent:,.0f} of {budget.amount:,.0f} tokens spent{uncounted}"


def _method_counts(methods: Counter[str]) -> str:
    """Return `logprobs 78, samples 2`."""
    counts = []
    for method, count in methods.most_common():
        method_name = one_line(method)
        counts.append(f"{method_name} {count:,}")
    return ", ".join(counts)


def _joined(*parts: Any, sep: str = ", ") -> str:
    """Join the non-empty parts, each on one line; keep no-break spaces."""
    lines = []
    for part in parts:
        if part:
            # `one_line` would make a no-break space a plain one.
            pieces = map(one_line, str(part).split("\u00a0"))
            lines.append("\u00a0".join(pieces))
    return sep.join(lines)


def usage_of_run(info: RunInfo) -> str:
    """Summarise requests, tokens and cost in one line, and what generation cost."""
    phrases = [_usage(info, replayed=info.provider == "replay")]
    cost_of_outputs = generation_cost(info)
    if cost_of_outputs:
        phrases.append(f"of which generation: ${cost_of_outputs:,.4f}")
    summary = " · ".join(filter(None, phrases))
    return one_line(summary)


def _usage(used: ModelUse, *, replayed: bool) -> str:
    """Summarise requests, tokens and cost in one line."""
    requests = used.requests
    usage = used.usage
    cost = used.cost
    phrases = []
    if requests != Requests():
        counts = {"read from the recording" if replayed else "sent": requests.sent}
        if requests.answered != requests.sent:
            counts["answered"] = requests.answered
        for kind in ("cached", "shared", "retried", "timeouts", "failed"):
            number = getattr(requests, kind)
            if number:
                counts[kind] = number
        texts = [f"{count:,} {kind}" for kind, count in counts.items()]
        counts_in_words = ", ".join(texts)
        phrases.append(f"requests: {counts_in_words}")
    if usage != Usage():
        tokens_in = f"{usage.prompt_tokens:,} in"
        if usage.cached_tokens:
            tokens_in += f" ({usage.cached_tokens:,} cached)"
        tokens_out = f"{usage.completion_tokens:,} out"
        if usage.reasoning_tokens:
            tokens_out += f" ({usage.reasoning_tokens:,} reasoning)"
        phrases.append(f"tokens: {tokens_in}, {tokens_out}")
    if cost is not None:
        price = "unknown"
        if cost.usd is not None:
            is_free = not cost.usd and not requests.sent
            price = "nothing" if is_free else f"${cost.usd:,.4f}"
        note = f" ({cost.note})" if cost.note else ""
        phrases.append(f"cost: {price}{note}")
    return one_line(" · ".join(phrases))


def generation_cost(info: RunInfo) -> float | None:
    """Return the cost of the outputs that a run generated, in US dollars; None if unknown."""
    all_costs = [system.cost for system in info.systems.values()]
    costs = [cost.usd for cost in all_costs if cost is not None]
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs) if len(known_costs) == len(costs) else None


def failure_blocks(result: Result) -> Iterator[Block]:
    """List the failures by kind, each with an example."""
    yield Paragraph("Failed judgments are counted and never enter a mean.", "muted")
    texts = [failure_text(kind) for kind in _failures(result)]
    yield Bullets(tuple(texts))


def reading_section(result: Result) -> Iterator[Section]:
    """Yield a section that counts how replies were read, unless all had the requested form."""
    counts = readings(result)
    heads = ("", "as requested", "from a sentence", "repair question", "no score")
    rows = []
    for column_counts in counts:
        numbers = (
            column_counts.strict,
            column_counts.prose,
            column_counts.repaired,
            column_counts.unread,
        )
        column_name = one_line(column_counts.column, 60)
        rows.append((column_name, *(f"{number:,}" for number in numbers)))
    if any(counted.prose or counted.repaired for counted in counts):
        table_key = (
            "Where judge read the scores. Judgments without a score have failed."
        )
        yield Section(
            "readings",
            "How replies were read",
            lambda: [table(heads, rows, key=table_key, name="readings")],
        )


def failure_line(failures: Sequence[FailureKind]) -> str:
    """Write the most common failure for the end of a summary."""
    most_common = failure_text(failures[0], 120)
    return f"Failed   {most_common}"


def failure_text(kind: FailureKind, limit: int = 400) -> str:
    """Return `4 × unreadable (consistency): item, system: what went wrong`.

    Failures with several messages say how many have this one: `20 × refused (useful), 4 of them:`.
    """
    columns = one_line(", ".join(kind.columns), 60)
    error = one_line(failure_kind(kind.error))
    example = one_line(kind.example, limit)
    alike = "" if kind.alike >= kind.count else f", {kind.alike:,} of them"
    return f"{kind.count:,} × {error} ({columns}){alike}: {example}"


def message_blocks(messages: Sequence[PromptMessage]) -> Iterator[Block]:
    """Yield the messages of a prompt; several have their roles as headings."""
    for message in messages:
        if len(messages) > 1:
            yield Heading(one_line(message.role), 4)
        yield Code(message.content)


def _first_prompts(result: Result) -> Iterator[Block]:
    """Yield the first prompt of each column as it was sent.

    Columns with the same prompt share one, for example the columns of a panel's judges.
    """
    columns_by_prompt: dict[FirstPrompt, list[str]] = {}
    for column, prompt in result.info.prompts.items():
        columns_by_prompt.setdefault(prompt, []).append(column)
    for prompt, columns in columns_by_prompt.items():
        item = one_line(prompt.item, 60)
        system = one_line(prompt.system, 60)
        text = f"item {item}, {system}"
        if prompt.opponent:
            text = f"{text} against {one_line(prompt.opponent, 60)}"
        column_names = one_line(", ".join(columns))
        title = f"Prompt: {column_names}, as sent for {text}"
        messages = tuple(message_blocks(prompt.messages))
        yield Details(title, messages)
    if columns_by_prompt:
        command = "judge report RUN --item ID --system NAME"
        yield Paragraph(f"{command} shows the prompts of other texts.", "muted")


def method_blocks(result: Result) -> Iterator[Block]:
    """Say how the run was made: data, judge, usage, signatures, prompts and versions."""
    about = build_provenance(result)
    facts = list(about.facts)
    if about.usage:
        facts.append(("Usage", about.usage))
    yield Facts(tuple(facts))
    if about.judges:
        heading = "Judges" if len(about.judges) > 1 else "Judge"
        yield Heading(heading)
        yield Facts(about.judges)
    if about.signed:
        yield Heading("Signatures")
        yield Facts(about.signed)
    yield from _first_prompts(result)
    for criterion_name, criterion in result.info.criteria.items():
        blocks = tuple(_criterion_blocks(criterion))
        if blocks:
            title = one_line(criterion.title or criterion_name)
            summary = f"Template: {title} {criterion.digest[:12]}"
            yield Details(summary.rstrip(), blocks)
    packages = []
    for package_name, version in result.info.versions.items():
        name_and_version = f"{package_name} {version}"
        packages.append(one_line(name_and_version))
    if packages:
        yield Paragraph(", ".join(packages), "muted")


def _criterion_blocks(criterion: CriterionInfo) -> Iterator[Block]:
    """Yield the steps, the examples and the templates of a criterion."""
    if criterion.steps:
        yield Bullets(criterion.steps)
    if criterion.examples:
        yield Heading("Examples", 4)
        examples = []
        for example in criterion.examples:
            score = one_line(example.score)
            output = one_line(example.output, 200)
            examples.append(f"{score}: {output}")
        yield Bullets(tuple(examples))
    for file, text in criterion.templates.items():
        yield Heading(one_line(file), 4)
        yield Code(text, "jinja")
