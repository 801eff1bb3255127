"""What a run has done so far: written by the run, read by whoever shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from judge.records import Usage


@dataclass(slots=True)
class Counts:
    """What one judge has done so far. Written by its run, read by whoever shows it.

    Judgments: `total`, `done` (scored or failed), `failed`, `cached` (answered from the cache alone), `shared`
    (answered by an equal request of this run). Requests: `sent` (every try), `answered`, `refused` (given up).
    `usage` sums the answers'; `unmet` counts, by name, the answers for which a parameter was not honoured.
    """

    total: int = 0
    done: int = 0
    failed: int = 0
    cached: int = 0
    shared: int = 0
    sent: int = 0
    answered: int = 0
    refused: int = 0
    usage: Usage = field(default_factory=Usage)
    unmet: Counter[str] = field(default_factory=Counter)
    served_by: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Measured:
    """How far the metric under way is; metrics call it. Once `stopped`, calling it ends their work."""

    done: int = 0
    total: int = 0
    stopped: bool = False

    def __call__(self, done: int, total: int) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        self.done, self.total = done, total


@dataclass(slots=True)
class Progress:
    """What a run has done so far: the counts of its judges by their names, and `stage`, what it is busy with.

    `measured` is how far it is where that is a metric.
    """

    stage: str = "judging"
    judges: dict[str, Counts] = field(default_factory=dict)
    measured: Measured = field(default_factory=Measured)

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
    def usage(self) -> Usage:
        return sum((counts.usage for counts in self.judges.values()), Usage())
