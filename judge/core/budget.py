"""The most that a run may spend, in dollars or tokens, as people write it: `5usd`, `$5`, `200000tokens`, `2mtokens`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from judge.core.messages import option

LARGEST = 10**15
"""The largest number that an option takes: arithmetic beyond it fails."""
_FORM = re.compile(
    r"(?:\$ ?(\d[\d,_]*(?:\.\d+)?)|(\d[\d,_]*(?:\.\d+)?) ?(usd|\$|[km]?tokens?))", re.I
)
_TIMES = {"k": 1e3, "m": 1e6}


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a run may spend on new requests: US dollars (`usd`) or tokens read and written (`tokens`)."""

    amount: float
    unit: Literal["usd", "tokens"]

    def __str__(self) -> str:
        if self.unit == "tokens":
            return f"{self.amount:,.0f} tokens"
        cents = f"${self.amount:,.2f}"
        return (
            cents if round(self.amount, 2) == self.amount else f"${self.amount:,.10f}".rstrip("0")
        )

    def lacking(self, most: float) -> str:
        """Advise to raise the budget above `most`, the price of one request, rounded up to two digits."""
        step = 10.0 ** (math.floor(math.log10(most)) - 1)
        return f"raise {option('budget')} above {Budget(math.ceil(most / step) * step, self.unit)}"


def parse_budget(value: Any) -> Budget:
    """Return the budget that a text describes. Raises ValueError."""
    match = _FORM.fullmatch(str(value).strip())
    if not match:
        raise ValueError("write an amount with its unit, such as 5usd or 200000tokens")
    dollars, amount, unit = match.groups()
    number = float(re.sub("[,_]", "", dollars or amount))
    if not 0 < number <= LARGEST:
        raise ValueError(f"must be more than 0, and at most {LARGEST:,}")
    if dollars or unit.lower() in ("usd", "$"):
        return Budget(number, "usd")
    return Budget(number * _TIMES.get(unit[0].lower(), 1), "tokens")
