"""Notices beside a significant difference between systems."""

from __future__ import annotations

import numpy as np

from judge.core.format import first_names, one_line, percent, plural
from judge.results.result import Result
from judge.stats.bootstrap import Floats
from judge.stats.system_differences import Comparison, Difference

_MOST_ITEMS = 3
_SHARE_OF_ITEMS = 0.25  # three of six items carry more than half of any difference that varies


def few_items_notice(result: Result, comparison: Comparison) -> str:
    """Return a sentence if one to three items carry more than half of a significant difference;
    else "".

    It names the difference of which the fewest items carry more than half, the first of equal ones.
    The items are at most a quarter of those that the two systems share. Rare scores that no item
    has yet cannot be noticed (see docs/limits.md). The overall score has no notice.
    """
    table = result.table
    if comparison.column not in {column.name for column in table.columns}:
        return ""  # the overall score has no values of items
    rows = dict(zip(table.systems, table.matrix(comparison.column), strict=True))
    noticed: list[tuple[int, str]] = []
    for difference in comparison.differences:
        if not difference.apart:
            continue
        by_item = rows[difference.system] - rows[difference.other]
        carrying = _carrying_items(by_item)
        if carrying:
            sentence = _sentence(difference, by_item, carrying, table.items, comparison.column)
            noticed.append((len(carrying), sentence))
    return min(noticed, key=lambda entry: entry[0])[1] if noticed else ""


def _carrying_items(by_item: Floats) -> list[int]:
    """Return the fewest places whose differences make up more than half of the sum; empty if these
    are too many.

    NaN is a missing difference.
    """
    known = np.nan_to_num(by_item)
    n = int((~np.isnan(by_item)).sum())
    total = float(known.sum())
    if not total:
        return []
    largest_first = np.argsort(-known * np.sign(total), kind="stable")
    most = min(_MOST_ITEMS, int(n * _SHARE_OF_ITEMS))
    for number in range(1, most + 1):
        places = largest_first[:number]
        if known[places].sum() / total > 0.5 + 1e-9:
            return [int(place) for place in places]
    return []


def _sentence(
    difference: Difference,
    by_item: Floats,
    carrying: list[int],
    items: tuple[str, ...],
    column: str,
) -> str:
    n = int((~np.isnan(by_item)).sum())
    share = float(by_item[carrying].sum() / np.nansum(by_item))
    names = first_names((one_line(items[place], 40) for place in carrying), _MOST_ITEMS)
    first = one_line(difference.system, 40)
    second = one_line(difference.other, 40)
    verb = "makes" if len(carrying) == 1 else "make"
    # The other items may go the other way: then these few carry more than the whole difference.
    part = "more than all" if share > 1 else percent(share)
    return (
        f"{len(carrying):,} of {plural(n, 'item')} ({names}) {verb} up {part} of the difference between {first} and "
        f"{second} on {one_line(column, 40)}; look at these texts."
    )
