"""The budget of a run, in dollars or tokens: `5usd`, `$5`, `200000tokens`, `2mtokens`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from judge.core.format import plural

LARGEST = 10**15
"""The largest number that an option takes: arithmetic beyond it fails."""
# "$5", "2.50 usd", "200_000tokens", "2mtokens"
_AMOUNT = re.compile(
    r"(?:\$ ?(\d[\d,_]*(?:\.\d+)?)|(\d[\d,_]*(?:\.\d+)?) ?(usd|\$|[km]?tokens?))",
    re.IGNORECASE,
)
_FACTORS = {"k": 1e3, "m": 1e6}


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may spend on new requests.

    The `amount` is in US dollars (`usd`), or in tokens read and written (`tokens`).
    """

    amount: float
    unit: Literal["usd", "tokens"]

    def __str__(self) -> str:
        if self.unit == "tokens":
            return plural(round(self.amount), "token")
        if round(self.amount, 2) == self.amount:
            return f"${self.amount:,.2f}"
        return f"${self.amount:,.10f}".rstrip("0")

    def rounded_up(self) -> Budget:
        """Return the budget with its amount rounded up to two digits."""
        # The power of ten of the first digit: 2 for 340. The second digit's is one less.
        power = math.floor(math.log10(self.amount))
        step = 10.0 ** (power - 1)
        n_steps = math.ceil(self.amount / step)
        return Budget(n_steps * step, self.unit)

    @property
    def as_option(self) -> str:
        """The budget as the option `budget` takes it."""
        if self.unit == "tokens":
            return f"{self.amount:.0f}tokens"
        return f"{self.amount:.10f}".rstrip("0").rstrip(".") + "usd"


def parse_budget(value: Any) -> Budget:
    """Return the budget that a text describes. Raises ValueError."""
    match = _AMOUNT.fullmatch(str(value).strip())
    if not match:
        raise ValueError("write an amount with its unit, such as 5usd or 200000tokens")
    dollars, amount, unit = match.groups()
    # `200,000tokens` and `200_000tokens`
    number = float(re.sub("[,_]", "", dollars or amount))
    if not 0 < number <= LARGEST:
        raise ValueError(f"must be more than 0, and at most {LARGEST:,}")
    if dollars or unit.lower() in ("usd", "$"):
        return Budget(number, "usd")
    factor = _FACTORS.get(unit[0].lower(), 1)
    return Budget(number * factor, "tokens")
