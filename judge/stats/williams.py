"""Williams' test of two correlations that share a variable."""

from __future__ import annotations

from math import sqrt


def williams(r_one: float, r_other: float, between: float, n: int) -> tuple[float, float] | None:
    """t with n − 3 degrees of freedom and its two-sided p for r_one = r_other (Williams 1959; Steiger 1980, eq. 7).

    Two variables correlate with a third, by r_one and r_other, and with each other, by `between`, over n independent
    cases. None for fewer than four of them, and where the three variables leave nothing to chance.
    """
    from scipy.special import stdtr

    if n < 4:
        return None
    left = 1 - r_one**2 - r_other**2 - between**2 + 2 * r_one * r_other * between
    spread = 2 * (n - 1) / (n - 3) * max(left, 0.0) + ((r_one + r_other) / 2) ** 2 * (1 - between) ** 3
    if r_one == r_other:
        return 0.0, 1.0
    if not spread > 0:
        return None
    t = (r_one - r_other) * sqrt((n - 1) * (1 + between) / spread)
    return t, float(2 * stdtr(n - 3, -abs(t)))
