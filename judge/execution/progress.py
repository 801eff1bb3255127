"""Progress counters of a run. The run writes them and the display reads them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from judge.core.records import Response, Unit, Usage

TEMPERATURE = "temperature"
GENERATING = "generating"
"""The stage in which systems generate their outputs."""
STOPPED = "stopped"
"""The last stage of a run that an error or Ctrl-C ended."""


@dataclass(slots=True)
class JudgeProgress:
    """Counts of one judge. Its run writes them, and the display reads them.

    In the `unit` (judgments, single questions of checklists, or outputs): `total`, `done` (scored
    or failed), `failed`, `cached` (answered from the cache alone), `failed_cached` (failed on
    stored replies without a score, including metrics' replies), `shared` (answered by an equal
    request of this run), `unread` (asked for the score alone, after a reply without one),
    `repaired` (scored by the answer to that).

    Requests: `sent` (every try), `answered`, `refused` (abandoned), `retried` (tries after the
    first one), `timeouts` (tries after a time-out), `in_flight` (at the server), `blocked` (waiting
    for the rate limit). None is sent before `paused_until`, a time of `time.monotonic` that a rate
    limit sets, and none when `stopping`.

    `usage` is the sum over the answers, and `batched` the part of it at half the price. `unmet`
    counts, by parameter, the answers that do not honour it. `batch_status` describes the batches at
    the provider, and the report shows `remarks`. `stopped` has, by criterion, the name of the error
    of its first judgments and why nothing more was asked. `reasons` is True once a reply showed
    that the model reasons. `draws` is the number of replies that are drawn for a judgment, 0 until
    one needs several.
    """

    unit: Unit = "judgment"
    total: int = 0
    done: int = 0
    failed: int = 0
    cached: int = 0
    failed_cached: int = 0
    shared: int = 0
    unread: int = 0
    repaired: int = 0
    sent: int = 0
    answered: int = 0
    refused: int = 0
    usage: Usage = field(default_factory=Usage)
    unmet: Counter[str] = field(default_factory=Counter)
    served_by: set[str] = field(default_factory=set)
    retried: int = 0
    timeouts: int = 0
    in_flight: int = 0
    blocked: int = 0
    paused_until: float = 0.0
    stopping: bool = False
    batch_status: str = ""
    batched: Usage = field(default_factory=Usage)
    remarks: list[str] = field(default_factory=list)
    reasons: bool = False
    draws: int = 0
    stopped: dict[str, tuple[str, str]] = field(default_factory=dict)

    def note_server(self, response: Response) -> None:
        """Record which model answered and which parameters it ignored.

        An ignored temperature is counted only if the reply gives a score (`Judging`).
        """
        unmet = [name for name in response.unmet if name != TEMPERATURE]
        self.unmet.update(unmet)
        self.served_by.add(response.served_by)
        self.reasons = self.reasons or response.reasoned


@dataclass(slots=True)
class MetricProgress:
    """The progress of the present metric, which calls it.

    A call after `stopped` ends the metric.
    """

    done: int = 0
    total: int = 0
    stopped: bool = False

    def __call__(self, done: int, total: int) -> None:
        if self.stopped:
            # A metric handles this like Ctrl-C.
            raise KeyboardInterrupt
        self.done = done
        self.total = total


@dataclass(frozen=True, slots=True)
class UnstoredReplies:
    """Replies that neither the cache nor, without one, the recording of a run could store.

    `path` is the recording that has them instead, None if no folder took it.
    """

    number: int
    path: Path | None


@dataclass(slots=True)
class Progress:
    """The progress of a run: its `stage`, and counts for each judge or generated system by name.

    `measured` is the progress of a metric. `saved` is the folder with the results, once it is
    written. `unstored` are paid replies that a new run would not find.
    """

    stage: str = "judging"
    judges: dict[str, JudgeProgress] = field(default_factory=dict)
    measured: MetricProgress = field(default_factory=MetricProgress)
    saved: Path | None = None
    unstored: UnstoredReplies | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def unit(self) -> Unit:
        """What is counted: outputs if systems write them, questions for a checklist."""
        units = {counts.unit for counts in self.judges.values()}
        if "output" in units:
            return "output"
        return "question" if "question" in units else "judgment"

    @property
    def measuring(self) -> bool:
        """Whether a metric is computed; the stage has its name then."""
        return self.stage not in (GENERATING, "judging", "done", STOPPED)

    @property
    def total(self) -> int:
        return sum(counts.total for counts in self.judges.values())

    @property
    def done(self) -> int:
        return sum(counts.done for counts in self.judges.values())

    @property
    def failed(self) -> int:
        return sum(counts.failed for counts in self.judges.values())

    @property
    def cached(self) -> int:
        return sum(counts.cached for counts in self.judges.values())

    @property
    def flying(self) -> int:
        """Number of requests in flight."""
        return sum(counts.in_flight for counts in self.judges.values())

    def stop(self) -> None:
        """Send no more requests. The run ends when the requests in flight are answered."""
        for counts in self.judges.values():
            counts.stopping = True

    @property
    def stopping(self) -> bool:
        return any(counts.stopping for counts in self.judges.values())

    @property
    def rate_limit(self) -> str:
        """Why no request is sent, such as "rate limit: next request in 45 s"; "" if some are."""
        judges = self.judges.values()
        pauses = [counts.paused_until for counts in judges]
        paused_until = max(pauses, default=0.0)
        seconds = paused_until - time.monotonic()
        if seconds >= 1:
            return f"rate limit: next request in {seconds:,.0f} s"
        blocked = any(counts.blocked and not counts.in_flight for counts in judges)
        return "held back by a rate limit" if blocked else ""

    @property
    def awaited(self) -> str:
        """The states of the batches at providers' Batch APIs."""
        statuses = [counts.batch_status for counts in self.judges.values()]
        return "; ".join(status for status in statuses if status)

    @property
    def usage(self) -> Usage:
        usage_of_judges = [counts.usage for counts in self.judges.values()]
        return sum(usage_of_judges, Usage())
