"""The report of a run's power: which differences its items can detect, and how many items a
difference needs."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.format import format_p, minus, plural
from judge.report.document import Bullets, Column, Content, Document, Section, Table, table
from judge.results.power import RunPower
from judge.stats.power import POWER


def view(power: RunPower) -> Document:
    """Lay out the power of a run."""
    pairs = [(column.column, pair) for column in power.columns for pair in column.pairs]
    sentences = list(_power_sentences(power))
    method = [
        "Power of two-sided sign-flip tests, with each pair's share of equal scores and the step of its scale."
    ]
    method += [
        f"{plural(systems, 'system')}: p must be below {column.level:.2g} (.05 / {column.tests:,} comparisons, "
        f"Holm's first step), which takes at least {column.min_items} items."
        for systems, column in sorted(
            {column.systems: column for column in power.columns if column.pairs}.items()
        )
    ]
    return Document(
        title=f"Power of {power.run or 'the run'}",
        finding=(sentences[0].rstrip("."), *sentences[1:]),
        scope=plural(max(pair.items for _, pair in pairs), "item") if pairs else "",
        notices=power.notes,
        summary=(_power_table(power),) if pairs else (),
        sections=(Section("method", "Method", lambda: [Bullets(tuple(method))]),),
        data=power,
        records=tuple(
            {
                "column": column, "place": pair.place, "system_a": pair.systems[0], "system_b": pair.systems[1],
                "items": pair.items, "difference": pair.difference, "sd": pair.sd, "detectable": pair.detectable,
                "items_for_observed": pair.items_for_observed, "items_needed": pair.items_needed, "p": pair.p,
            }
            for column, pair in pairs
        ),
    )  # fmt: skip


def _power_sentences(power: RunPower) -> Iterator[str]:
    """Yield the answer for the overall score, or else for the first column with pairs."""
    columns = {column.column: column for column in power.columns if column.pairs}
    if not columns:
        yield "No pair of systems has differences to compute the power from."
        return
    column = columns.get("overall") or next(iter(columns.values()))
    pair, name, subject, detecting = column.pairs[-1], f"in {column.column}", "", "Detecting"
    if power.pair is not None:
        subject, detecting = f"{power.pair[0]} and {power.pair[1]}: ", "detecting"
        size = f"their difference of {abs(pair.difference):.3g} {name}"
        if pair.significant:
            tested = f"{format_p(pair.p or 0.0)}, {plural(pair.items, 'item')}"
            yield f"{subject}{size} is already significant ({tested})."
        elif pair.items_for_observed is not None and power.difference is None:
            yield f"{subject}detecting {size} needs {_items(pair.items_for_observed)}."
    elif column.systems > 2:
        name += (
            f" between {power.against} and another system"
            if power.against
            else " between any two systems"
        )
    if power.difference is not None and pair.items_needed is not None:
        needed = _items(pair.items_needed)
        yield f"{subject}{detecting} a difference of {power.difference:g} {name} needs {needed}."
    else:
        few = f"{plural(pair.items, 'item')} are too few to detect any difference {name}"
        enough = f"{pair.items:,} items detect a difference of {pair.detectable or 0.0:.3g} {name}"
        yield f"{few if pair.detectable is None else enough} ({POWER:.0%} power)."


def _power_table(power: RunPower) -> Table:
    """Return a row per column with the requested pair, or one for the median pair and one for the
    worst."""
    rows: list[tuple[Content, ...]] = [
        (
            column.column,
            None if power.pair else " – ".join(pair.systems),
            pair.items,
            minus(f"{pair.difference:+.3g}"),
            f"{pair.sd:.3g}",
            "too few items" if pair.detectable is None else f"{pair.detectable:.3g}",
            None
            if not power.pair
            else "significant"
            if pair.significant
            else pair.items_for_observed,
            pair.items_needed,
        )
        for column in power.columns
        for pair in column.pairs
    ]
    heads = (
        "column",
        Column(
            "pair",
            numeric=False,
            optional=True,
            about="Pairs: the one with the median SD, and the one that needs most items.",
        ),
        "items",
        "difference",
        Column("SD", about="SD: of the differences between the two systems, item by item."),
        "detectable",
        Column("items for it", optional=True),
        Column(f"items for {power.difference or 0:g}", optional=True),
    )
    return table(heads, rows, name="power")


def _items(number: int) -> str:
    return f"about {number:,} items ({POWER:.0%} power)"
