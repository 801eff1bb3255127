"""The report of a run's power.

It shows the differences that the run's items can detect, and the items that a difference needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from judge.core.format import format_p, minus, plural, rough_count
from judge.report.document import (
    Bullets,
    Column,
    Content,
    Document,
    Section,
    Table,
    table,
)
from judge.results.power import PairPower, RunPower
from judge.stats.power import POWER

_NEAR = 1e-9  # a difference by rounding alone


def view(power: RunPower) -> Document:
    """Lay out the power of a run."""
    sentences = list(_power_sentences(power))
    items = []
    for column in power.columns:
        items += [pair.items for pair in column.pairs]
    scope = ""
    summary = []
    if items:
        scope = plural(max(items), "item")
        summary.append(_power_table(power))
    run_name = power.run or "the run"
    headline, *details = sentences
    methods = tuple(_method(power))
    return Document(
        title=f"Power of {run_name}",
        finding=(headline.rstrip("."), *details),
        scope=scope,
        notices=power.notes,
        summary=tuple(summary),
        sections=(Section("method", "Method", lambda: [Bullets(methods)]),),
        data=power,
        records=tuple(_records(power)),
    )


def _method(power: RunPower) -> Iterator[str]:
    """Yield the method, with the level of a test for each number of systems."""
    yield (
        "Power of two-sided sign-flip tests, with each pair's share of equal scores and the step "
        "of its scale."
    )
    # Columns with equally many systems have the same number of tests.
    by_systems = {column.systems: column for column in power.columns if column.pairs}
    for systems, column in sorted(by_systems.items()):
        systems_compared = plural(systems, "system")
        comparisons = plural(column.tests, "comparison")
        yield (
            f"{systems_compared}: p must be below {column.level:.2g} "
            f"(.05 / {comparisons}, Holm's first step), "
            f"which takes at least {column.min_items} items."
        )


def _records(power: RunPower) -> Iterator[dict[str, Any]]:
    """Yield a record per column and pair."""
    for column in power.columns:
        for pair in column.pairs:
            yield {
                "column": column.column,
                "place": pair.place,
                "system_a": pair.systems[0],
                "system_b": pair.systems[1],
                "items": pair.items,
                "difference": pair.difference,
                "sd": pair.sd,
                "detectable": pair.detectable,
                "items_for_observed": pair.items_for_observed,
                "items_needed": pair.items_needed,
                "p": pair.p,
            }


def _power_sentences(power: RunPower) -> Iterator[str]:
    """Yield the answer for the overall score, or else for the first column with pairs."""
    columns = {column.column: column for column in power.columns if column.pairs}
    if not columns:
        yield "No pair of systems has differences to compute the power from."
        return
    first_column, *_ = columns.values()
    column = columns.get("overall", first_column)
    pair = column.pairs[-1]  # the requested pair, or the one that needs most items
    in_column = f"in {column.column}"
    subject = ""
    where = in_column
    if power.pair is not None:
        first_system, second_system = power.pair
        subject = f"{first_system} and {second_system}: "
        yield from _observed_sentence(power, pair, subject, in_column)
    elif column.systems > 2 and power.against:
        where = f"{in_column} between {power.against} and another system"
    elif column.systems > 2:
        where = f"{in_column} between any two systems"
    if power.difference is not None and pair.items_needed is not None:
        needed = _items(pair.items_needed)
        difference = f"a difference of {power.difference:g} {where}"
        detecting = f"{subject}detecting" if subject else "Detecting"
        yield f"{detecting} {difference} needs {needed}."
    elif pair.detectable is None:
        items = plural(pair.items, "item")
        yield f"{items} are too few to detect any difference {where} ({POWER:.0%} power)."
    else:
        difference = f"a difference of {pair.detectable:.3g} {where}"
        yield f"{pair.items:,} items detect {difference} ({POWER:.0%} power)."


def _observed_sentence(
    power: RunPower,
    pair: PairPower,
    subject: str,
    in_column: str,
) -> Iterator[str]:
    """Yield what it takes to detect the observed difference of the requested pair.

    `subject` names the pair and begins the sentence.
    """
    size = abs(pair.difference)
    observed = f"their difference of {size:.3g} {in_column}"
    if pair.significant:
        p_value_text = format_p(pair.p or 0.0)
        items = plural(pair.items, "item")
        yield f"{subject}{observed} is already significant ({p_value_text}, {items})."
    elif pair.items_for_observed is not None and power.difference is None:
        needed = _items(pair.items_for_observed)
        yield f"{subject}detecting {observed} needs {needed}."


def _power_table(power: RunPower) -> Table:
    """Return a row per column for the requested pair.

    Without one, a column has a row for the median pair and one for the worst.
    """
    rows: list[tuple[Content, ...]] = []
    for column in power.columns:
        for pair in column.pairs:
            systems = None if power.pair else " – ".join(pair.systems)
            detectable = "too few items"
            if pair.detectable is not None:
                detectable = f"{pair.detectable:.3g}"
            items_for_observed: Content = None
            if power.pair and pair.significant:
                items_for_observed = "significant"
            elif power.pair:
                items_for_observed = pair.items_for_observed
            difference = "0"
            if abs(pair.difference) > _NEAR:
                difference = minus(f"{pair.difference:+.3g}")
            row = (
                column.column,
                systems,
                pair.items,
                difference,
                f"{pair.sd:.3g}",
                detectable,
                items_for_observed,
                pair.items_needed,
            )
            rows.append(row)
    pair_note = "Pairs: the one with the median SD, and the one that needs most items."
    sd_note = "SD: of the differences between the two systems, item by item."
    heads = (
        "column",
        Column("pair", numeric=False, optional=True, about=(pair_note,)),
        "items",
        "difference",
        Column("SD", about=(sd_note,)),
        "detectable",
        Column("items for it", optional=True),
        Column(f"items for {power.difference or 0:g}", optional=True),
    )
    return table(heads, rows, name="power")


def _items(number: int) -> str:
    return f"{rough_count(number)} items ({POWER:.0%} power)"
