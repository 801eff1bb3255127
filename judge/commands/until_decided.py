"""`--until-decided`: ask items in random order, and stop once every two systems are decided on every criterion.

The tests are valid at any time (`stats.anytime`), so the schedule of the checks is free. It does not depend on the
concurrency: the same command asks the same items again.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from judge.commands.preparation import PreparedRun
from judge.config import RankConfig
from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.messages import option
from judge.core.records import Column, Failure, Sample, Score
from judge.stats import analyze
from judge.stats.paired_differences import MOST

_FIRST, _LEAST, _PART = 10, 5, 10
"""Items before the first check; before each further one the least, or a tenth of those asked if that is more."""


def check(prepared: PreparedRun) -> None:
    """Raise ConfigError if a run that asks until decided has nothing to decide, or cannot stop early."""
    config, systems = prepared.config, len({sample.system for sample in prepared.samples})
    reasons = {
        "no judge is asked in this run; leave it out": not (prepared.judges and prepared.criteria),
        f"the data has one system, so there is nothing to decide; {option('map', {'system': 'COLUMN'})} names the "
        "column of the systems": systems < 2,
        f"more than {MOST} systems; name the one to compare them with: {option('against', 'SYSTEM')}": (
            systems > MOST and config.against is None
        ),
        f"leave out {option('engine', 'batch')}, which answers all items at once": config.engine == "batch",
        f"leave out {option('pairs', 'N')}, which chooses the items": isinstance(config, RankConfig)
        and config.pairs is not None,
        f"leave out {option('calibrate', True)}, which takes a fixed number of items": config.calibrate,
    }
    if config.until_decided and (reason := next((reason for reason, holds in reasons.items() if holds), "")):
        raise ConfigError(f"{option('until_decided', True)}: {reason}")


def shuffle(prepared: PreparedRun) -> None:
    """Put the items of the run into a random order; the texts of an item stay together, as in the data."""
    by_item: dict[str, list[Sample]] = {}
    for sample in prepared.samples:
        by_item.setdefault(sample.source_item, []).append(sample)
    items = list(by_item)
    random.Random(prepared.config.seed).shuffle(items)  # noqa: S311  (an order; no secret)
    prepared.samples = [sample for item in items for sample in by_item[item]]


def batches(prepared: PreparedRun, columns: Sequence[Column], rows: Sequence[Score | Failure]) -> Iterator[PreparedRun]:
    """Yield the run, or if it asks until decided, its next items alone until `rows` decide every comparison.

    `prepared` is narrowed to the items asked so far, and gets how the run ended.
    """
    config, samples = prepared.config, prepared.samples
    if not config.until_decided:
        yield prepared
        return
    whole, items, asked = replace(prepared), list(dict.fromkeys(sample.source_item for sample in samples)), 0
    while True:
        size = max(_LEAST, asked // _PART) if asked else _FIRST
        batch, asked = items[asked : asked + size], min(len(items), asked + size)
        so_far = _with_items(whole, {*items[:asked]})
        prepared.samples, prepared.pairs = so_far.samples, so_far.pairs
        prepared.data["rows"], left = len(so_far.samples), {*items[asked:]}
        prepared.unasked = {name for s in samples if s.source_item in left for name in (s.item, s.source_item)}
        yield _with_items(whole, {*batch})
        undecided = analyze.count_undecided(
            prepared.samples, columns, [row for row in rows if row.item not in prepared.unasked],
            systems=len({sample.system for sample in samples}), against=config.against or "",
            orders=config.orders if isinstance(config, RankConfig) else None,
        )  # fmt: skip
        if not (undecided.n and left):
            break
    n, of = undecided.n, undecided.of  # comparisons are pairs of systems on a criterion
    prepared.decided = {"asked": asked, "items": len(items), "undecided": n, "comparisons": of}
    ended = f"Stopped after {asked:,} of {len(items):,} items" if left else f"All {len(items):,} items were asked"
    every = f"all {of:,} comparisons" if of > 1 else "the only comparison"
    decided = f"{of - n:,} of {plural(of, 'comparison')}" if n else every
    prepared.notes.append(f"{ended}: anytime-valid tests decide {decided} (5% over all).")


def _with_items(prepared: PreparedRun, items: Collection[str]) -> PreparedRun:
    pairs = prepared.pairs and replace(
        prepared.pairs,
        compared=tuple(pair for pair in prepared.pairs.compared if pair[0].source_item in items),
        equal=tuple(pair for pair in prepared.pairs.equal if pair[0].source_item in items),
    )
    return replace(prepared, samples=[s for s in prepared.samples if s.source_item in items], pairs=pairs)
