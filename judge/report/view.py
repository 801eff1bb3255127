"""What every format shows, laid out once: columns in order, cells with their marks, failures by kind, the facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from judge.records import Column, Estimate, Failure
from judge.report.result import Result
from judge.report.words import count, decimals, line, number, seconds


@dataclass(frozen=True, slots=True)
class Cell:
    """One system in one column. `best` marks the highest mean shown, ties included, where there is a choice and all
    systems were scored on the same items.

    `mean` is "–" where nothing was scored; `total` counts the system's texts, `n` the scored ones.
    """

    mean: str
    interval: str
    n: int
    total: int
    failed: int
    best: bool
    estimate: Estimate | None

    @property
    def coverage(self) -> str:
        """`48/50` where not every text was scored, else nothing."""
        return "" if self.n == self.total else f"{self.n}/{self.total}"


@dataclass(frozen=True, slots=True)
class FailureKind:
    """Failures of one stage and error, with the first one's message."""

    stage: str
    error: str
    count: int
    columns: tuple[str, ...]
    example: str


@dataclass(frozen=True, slots=True)
class View:
    """A result laid out. `columns` has the criteria first; `places` the decimals of each column."""

    title: str
    systems: tuple[str, ...]
    columns: tuple[Column, ...]
    places: Mapping[str, int]
    cells: Mapping[tuple[str, str], Cell]
    caption: str
    banners: tuple[str, ...]
    failures: tuple[FailureKind, ...]
    facts: tuple[tuple[str, str], ...]
    usage: str


def view(result: Result) -> View:
    """Lay a result out for showing."""
    table = result.table
    columns = tuple(sorted(table.columns, key=lambda c: c.kind != "criterion"))  # stable: else the table's order
    places = {c.name: _places(result, c) for c in columns}
    cells = _cells(result, places)
    return View(
        title=_title(result),
        systems=table.systems,
        columns=columns,
        places=places,
        cells=cells,
        caption=_caption(result, cells),
        banners=_banners(result),
        failures=_failures(result),
        facts=_facts(result),
        usage=_usage(result.info),
    )


def _places(result: Result, column: Column) -> int:
    ends = [end for end in (column.low, column.high) if end is not None]
    return decimals(ends or [e.value for (_, name), e in result.estimates.items() if name == column.name])


def _cells(result: Result, places: Mapping[str, int]) -> dict[tuple[str, str], Cell]:
    total = Counter(s.system for s in result.table.samples)
    failed = Counter((f.system, f.column) for f in result.table.failures)
    shown = {key: number(e.value, places[key[1]]) for key, e in result.estimates.items() if key[1] in places}
    highest: dict[str, tuple[float, str]] = {}
    comparable = {column for column in places if _same_items(result, column)}
    rivals = Counter(column for _, column in shown if column in comparable)
    for (_, column), text in shown.items():
        highest[column] = max(highest.get(column, (float("-inf"), "")), (float(text), text))

    def cell(system: str, column: str) -> Cell:
        estimate = result.estimates.get((system, column))
        if estimate is None:
            return Cell("–", "", 0, total[system], failed[system, column], False, None)
        mean, interval = shown[system, column], ""
        if estimate.low is not None and estimate.high is not None:
            interval = f"[{number(estimate.low, places[column])}, {number(estimate.high, places[column])}]"
        best = rivals[column] > 1 and mean == highest[column][1]
        return Cell(mean, interval, estimate.n, total[system], failed[system, column], best, estimate)

    return {(system, column): cell(system, column) for column in places for system in result.table.systems}


def _same_items(result: Result, column: str) -> bool:
    """Whether every system that has scores in a column has them for the same items: only then is one the best."""
    items: dict[str, set[str]] = {}
    for score in result.table.of(column):
        items.setdefault(score.system, set()).add(score.item)
    return all(scored == next(iter(items.values())) for scored in items.values())


def _title(result: Result) -> str:
    data = (result.info.get("data") or {}).get("path")
    name = line(str(data).replace("\\", "/").rsplit("/", 1)[-1]) if data else "Judge report"
    model = result.info.get("model")
    return f"{name}, judged by {line(str(model))}" if model else name


def _caption(result: Result, cells: Mapping[tuple[str, str], Cell]) -> str:
    methods = Counter(e.method for e in result.estimates.values() if e.low is not None and e.low != e.high)
    most = max((cell.total for cell in cells.values()), default=0)
    parts = [f"Mean over {count(most, 'item')}"]
    if methods:
        parts.append(f"[low, high]: {methods.most_common(1)[0][0]}")
    if others := [f"{name} for {n} of {len(result.estimates)}" for name, n in methods.most_common()[1:]]:
        parts.append("; ".join(others))
    if any(cell.best for cell in cells.values()):
        parts.append("* highest of its column")
    if not all(_same_items(result, column.name) for column in result.table.columns):
        parts.append("No mark where systems were scored on different items")
    if any(cell.coverage for cell in cells.values()):
        parts.append("a/b: scored a of b texts")
    return ". ".join(parts) + "."


_STATUS = {
    "interrupted": "This run was interrupted. What had come back is shown; run the same command again to go on.",
    "stopped": "This run was stopped by an error. What had come back is shown.",
    "partial": "This run did not finish. Shown is what its journal holds; run the same command again to go on.",
}


def _banners(result: Result) -> tuple[str, ...]:
    info = result.info
    found = [_STATUS[info["status"]]] if info.get("status") in _STATUS else []
    found += [line(str(note)) for note in info.get("notes") or ()]
    if unmet := info.get("unmet"):
        named = ", ".join(f"{line(str(name))} ({count(n, 'answer')})" for name, n in dict(unmet).items())
        found.append(f"The server refused or ignored: {named}.")
    if len(set(Counter(s.system for s in result.table.samples).values())) > 1:
        found.append("Not every system has a text for every item: means over different items do not compare well.")
    missing = sum(1 for _ in result.table.samples) * len(result.table.columns)
    missing -= len(result.table.scores) + len(result.table.failures)
    if missing > 0:
        found.append(f"{count(missing, 'value')} of the table not asked for or not come back.")
    return tuple(found)


def _failures(result: Result) -> tuple[FailureKind, ...]:
    found: dict[tuple[str, str], list[Any]] = {}
    for failure in result.failures:
        found.setdefault((failure.stage, failure.error), []).append(failure)
    kinds = [
        FailureKind(stage, error, len(rows), tuple(dict.fromkeys(f.column for f in rows)), _example(rows[0]))
        for (stage, error), rows in found.items()
    ]
    return tuple(sorted(kinds, key=lambda kind: -kind.count))


def _example(failure: Failure) -> str:
    reply = f", reply: {failure.raw[:80]!r}" if failure.raw else ""
    return f"{failure.item}, {failure.system}: {failure.message}{reply}"


def _facts(result: Result) -> tuple[tuple[str, str], ...]:
    info, table = result.info, result.table
    data, language = info.get("data") or {}, info.get("language") or {}
    size = (
        f"{count(len(table.samples), 'text')}: {count(len(table.items), 'item')}, {count(len(table.systems), 'system')}"
    )
    digest = f"sha256 {str(data['sha256'])[:12]}" if data.get("sha256") else ""
    place = info.get("base_url") or info.get("provider")
    took = f"took {seconds(info['seconds'])}" if isinstance(info.get("seconds"), int | float) else ""
    found = {
        "Data": _joined(data.get("path"), digest),
        "Texts": size,
        "Judge": _joined(info.get("model"), f"at {place}" if place and info.get("model") else place, sep=" "),
        "Language": _joined(language.get("name"), f"({language['how']})" if language.get("how") else "", sep=" "),
        "Weighting": _joined(info.get("weighting"), _rungs(result), sep=": "),
        "Started": _joined(_moment(info.get("started")), took),
        "Status": _joined(info.get("status")),
        "Version": f"judge {info['judge_version']}" if info.get("judge_version") else "",
    }
    return tuple((name, line(text)) for name, text in found.items() if text)


def _rungs(result: Result) -> str:
    """How many judgments each way of making a score gave: `logprobs 78, single 2`."""
    criteria = {column.name for column in result.table.columns if column.kind == "criterion"}
    made = Counter(s.provenance.method for s in result.table.scores if s.column in criteria)
    return ", ".join(f"{line(method)} {number:,}" for method, number in made.most_common())


def _moment(started: Any) -> str:
    """`2027-01-05 09:30 UTC` for an ISO moment, anything else as it is."""
    try:
        return f"{datetime.fromisoformat(str(started)):%Y-%m-%d %H:%M %Z}".rstrip()
    except ValueError:
        return str(started or "")


def _joined(*parts: Any, sep: str = ", ") -> str:
    return sep.join(str(part) for part in parts if part)


def _usage(info: Mapping[str, Any]) -> str:
    """Requests, tokens and cost in one line."""
    requests, usage, cost = info.get("requests") or {}, info.get("usage") or {}, info.get("cost") or {}
    parts = []
    if requests:
        sent = [f"{requests.get('sent', 0):,} sent"]
        if requests.get("answered", requests.get("sent")) != requests.get("sent"):
            sent.append(f"{requests['answered']:,} answered")
        sent += [
            f"{requests[k]:,} {k}" for k in ("cached", "shared", "retried", "timeouts", "failed") if requests.get(k)
        ]
        parts.append("requests: " + ", ".join(sent))
    if any(usage.values()):
        cached = f" ({usage['cached_tokens']:,} cached)" if usage.get("cached_tokens") else ""
        thought = f" ({usage['reasoning_tokens']:,} reasoning)" if usage.get("reasoning_tokens") else ""
        tokens = f"{usage.get('prompt_tokens', 0):,} in{cached}, {usage.get('completion_tokens', 0):,} out{thought}"
        parts.append("tokens: " + tokens)
    if cost:
        price = "unknown" if cost.get("usd") is None else f"${cost['usd']:,.4f}"
        parts.append(_joined(f"cost: {price}", f"({cost['note']})" if cost.get("note") else "", sep=" "))
    return line(" · ".join(parts))
