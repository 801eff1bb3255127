"""How far scores that no item of the data has could move a mean on a bounded scale."""

from __future__ import annotations

import numpy as np

from judge.stats.bootstrap import Floats

N_RESAMPLES = 10_000
_MAX_DRAWN = 1_000_000  # weights in memory, at most 8 MB


def chance_beyond(
    values: Floats,
    limit: float,
    end: float,
    *,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> float:
    """Return the share (0–1) of resamples whose mean is beyond `limit`.

    The mean of `values` is on one side of the limit; beyond is the other side, with the `end` of
    the scale. Resamples are Dirichlet weights of the items and of one more, which has the score
    `end` (Gaffke 2005; Learned-Miller and Thomas 2020). For shares of two labels this is Clopper
    and Pearson's test (1934), so rare scores far from the others count even if no item has one. No
    distribution is known for which the result is below α more often than α if the limit is the true
    mean.
    """
    margins = np.append(values, end) - limit
    end_is_below = end < limit
    # Weights are exponential variables divided by their sum, which does not change the sign of the
    # mean.
    random = np.random.default_rng(seed)
    chunk = max(1, _MAX_DRAWN // len(margins))
    n_beyond = 0
    for first_resample in range(0, n_resamples, chunk):
        size = min(chunk, n_resamples - first_resample)
        weights = random.exponential(size=(size, len(margins)))
        sums = weights @ margins
        is_beyond = sums <= 0 if end_is_below else sums >= 0
        n_beyond += int(is_beyond.sum())
    return n_beyond / n_resamples
