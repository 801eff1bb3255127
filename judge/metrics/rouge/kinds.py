"""The types of ROUGE by name: those of the paper and of rouge-score, and those of ROUGE-1.5.5."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from judge.core.errors import ConfigError
from judge.metrics.common import listed

Family = Literal["n", "l", "lsum", "w", "s", "su", "mead"]

DEFAULT = ("rouge1", "rouge2", "rougeL", "rougeLsum")
DEFAULT_OF_SCRIPT = ("ROUGE-1", "ROUGE-2", "ROUGE-L", "ROUGE-SU4")

_KNOWN = "rouge1 to rouge9, rougeL, rougeLsum, rougeW, rougeW-1.2, rougeS, rougeS4, rougeSU, rougeSU4, lcs_mead"
_KNOWN_OF_SCRIPT = "ROUGE-1 to ROUGE-9, ROUGE-L, ROUGE-W-1.2, ROUGE-S*, ROUGE-S4, ROUGE-SU*, ROUGE-SU4"
_NAME = re.compile(
    r"rouge(?:(?P<n>[1-9])|(?P<l>L)|(?P<lsum>Lsum)|W(?:-(?P<w>\d+(?:\.\d+)?))?|(?P<s>SU?)(?P<gap>\d+|\*)?)"
)
_NAME_OF_SCRIPT = re.compile(
    r"ROUGE-(?:(?P<n>[1-9])|(?P<l>)(?P<lsum>L)|W-(?P<w>\d+(?:\.\d+)?)|(?P<s>SU?)(?P<gap>\d+|\*))"
)
_WEIGHT = 1.2  # that of the paper's and of every published ROUGE-W


class Kind(NamedTuple):
    """One type: `n` words of an n-gram, `gap` words at most between those of a skip-bigram (None: any number),
    `weight` the exponent of ROUGE-W's f(k) = k^weight.
    """

    name: str
    family: Family
    n: int = 0
    gap: int | None = None
    weight: float = 1.0

    @property
    def by_sentence(self) -> bool:
        """Whether it matters where sentences end."""
        return self.family in {"lsum", "mead"}


def kinds(names: str | Sequence[str], *, script: bool) -> tuple[Kind, ...]:
    """The types of these names, a list or a text with commas; `script`: they are ROUGE-1.5.5's. Raises ConfigError."""
    names = listed(names)
    if not isinstance(names, Sequence) or not names:
        raise ConfigError(f"rouge.types are a list of names, not {names!r} (known: {_known(script)})")
    if len(set(map(str, names))) < len(names):
        raise ConfigError(f"rouge.types names one twice: {', '.join(map(str, names))}")
    return tuple(_kind(name, script) for name in names)


def _kind(name: str, script: bool) -> Kind:
    if name == "lcs_mead" and not script:
        return Kind(name, "mead")
    match = (_NAME_OF_SCRIPT if script else _NAME).fullmatch(str(name))
    if match is None:
        raise ConfigError(_unknown(str(name), script))
    if match["n"]:
        return Kind(name, "n", n=int(match["n"]))
    if match["lsum"]:
        return Kind(name, "lsum")
    if match["l"]:
        return Kind(name, "l")
    if match["s"]:
        gap = None if match["gap"] in {None, "*"} else int(match["gap"])
        return Kind(name, "su" if match["s"] == "SU" else "s", gap=gap)
    weight = float(match["w"] or _WEIGHT)
    if not 1 <= weight <= 100:
        raise ConfigError(f"{name}: the weight is a number from 1, where runs count no more than single words, to 100")
    return Kind(name, "w", weight=weight)


def _unknown(name: str, script: bool) -> str:
    if script:
        return f"rouge.types: unknown type {name!r} of rouge155 (known, with any gap or weight: {_known(script)})"
    hint = "; set preset to rouge155 for the types of ROUGE-1.5.5" if _NAME_OF_SCRIPT.fullmatch(name) else ""
    return f"rouge.types: unknown type {name!r}{hint} (known, with any gap or weight: {_known(script)})"


def _known(script: bool) -> str:
    return _KNOWN_OF_SCRIPT if script else _KNOWN
