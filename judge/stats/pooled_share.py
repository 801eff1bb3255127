"""Estimate a share of parts, such as claims, if items have different numbers of them."""

from __future__ import annotations

from judge.core.records import Estimate
from judge.stats.bootstrap import Floats, mean_interval, sum_of_squares


def pooled_share(hits: Floats, parts: Floats) -> Estimate | None:
    """Return the share (0–1) of all parts that are hits.

    `hits` and `parts` have a count per item; items without parts do not count. The interval is
    that of `mean_interval` over items, because parts of one item are not independent, with the
    variance of a ratio (Cochran 1977, section 2.11). Return None if no item has a part.
    """
    has_parts = parts > 0
    hits = hits[has_parts]
    parts = parts[has_parts]
    n_items = len(parts)
    if n_items == 0:
        return None
    share = float(hits.sum() / parts.sum())
    # Each item's deviation from the share, weighted by its number of parts.
    deviations = (hits - share * parts) / parts.mean()
    variance = sum_of_squares(deviations) / max(1, n_items - 1)
    ends = mean_interval(share, variance, n_items, 0.0, 1.0)
    return Estimate(
        name="share",
        value=share,
        low=ends.low,
        high=ends.high,
        n=n_items,
        method=ends.method,
    )
