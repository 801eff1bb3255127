"""Notices beside a significant difference between systems."""

from __future__ import annotations

import numpy as np

from judge.core.format import first_names, one_line, percent, plural
from judge.report.format import column_title
from judge.results.result import Result
from judge.stats.bootstrap import Floats
from judge.stats.system_differences import Comparison, Difference

_MAX_ITEMS = 3
_MAX_NAME = 40  # characters of a name
# Three of six items carry more than half of any difference that varies.
_MAX_SHARE_OF_ITEMS = 0.25


def few_items_notice(result: Result, comparison: Comparison) -> str:
    """Return a sentence if one to three items carry more than half of a significant difference.

    The sentence names the difference that the fewest items carry, the first one if several need as
    few. The items are at most a quarter of those that the two systems share. Return "" if there is
    no such difference, and for the overall score. Rare scores that no item has yet cannot be
    noticed (see docs/limits.md).
    """
    table = result.table
    if comparison.column not in {column.name for column in table.columns}:
        return ""  # the overall score has no values of items
    values_by_item = table.matrix(comparison.column)  # systems × items
    rows = dict(zip(table.systems, values_by_item, strict=True))
    sentence = ""
    fewest = _MAX_ITEMS + 1
    for difference in comparison.differences:
        if not difference.apart:
            continue
        by_item = rows[difference.system] - rows[difference.other]
        carrying = _carrying_items(by_item)
        if carrying and len(carrying) < fewest:
            fewest = len(carrying)
            sentence = _sentence(
                difference, by_item, carrying, table.items, comparison.column
            )
    return sentence


def _carrying_items(by_item: Floats) -> list[int]:
    """Return the indices of the fewest items that make up more than half of the summed differences.

    Return none if these are too many. NaN is a missing difference.
    """
    filled_differences = np.nan_to_num(by_item)
    n_items = int((~np.isnan(by_item)).sum())
    total = float(filled_differences.sum())
    if not total:
        return []
    in_direction_of_total = filled_differences * np.sign(total)
    largest_first = np.argsort(-in_direction_of_total, kind="stable")
    most = min(_MAX_ITEMS, int(n_items * _MAX_SHARE_OF_ITEMS))
    for number in range(1, most + 1):
        indices = largest_first[:number]
        share = filled_differences[indices].sum() / total
        # Exactly half is not more than half, also after rounding.
        if share > 0.5 + 1e-9:
            return [int(index) for index in indices]
    return []


def _sentence(
    difference: Difference,
    by_item: Floats,
    carrying: list[int],
    items: tuple[str, ...],
    column: str,
) -> str:
    n_items = int((~np.isnan(by_item)).sum())
    share = float(by_item[carrying].sum() / np.nansum(by_item))
    names = [one_line(items[index], _MAX_NAME) for index in carrying]
    listed_items = first_names(names, _MAX_ITEMS)
    all_items = plural(n_items, "item")
    verb = "makes" if len(carrying) == 1 else "make"
    # If the other items favour the other system, these few carry more than the whole difference.
    share_text = "more than all" if share > 1 else percent(share)
    first_system = one_line(difference.system, _MAX_NAME)
    second_system = one_line(difference.other, _MAX_NAME)
    title = column_title(column)
    return (
        f"{len(carrying):,} of {all_items} ({listed_items}) {verb} up {share_text} of the "
        f"difference between {first_system} and {second_system} on {title}; look at these texts."
    )
