"""`Signature`: what is needed to get the numbers of a column again.

An example is `rouge1|f|stem|tok=en|judge 0.1.0`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

BAR = "|"
_NONE = "-"
"""The value of a part that names what was used, if nothing was."""
_VARIOUS = "var"
"""The value of a part with a number that differs between the texts."""
_EXTERNAL = "external"
_WRITTEN_FIRST = ("en", "13a")
"""Tokenizers of English, which precede the other ones."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Signature:
    """A column's name, and the options, models and versions that decide its values.

    `str(signature)` is the text that reports show and files hold. A part is `key=value`, a tool
    with its version (`judge 0.1.0`) or a word (`stem`).
    """

    name: str
    parts: tuple[str, ...]

    def __init__(self, name: str = "", *parts: str) -> None:
        # The name of a model may hold a bar. Its parts are those that the stored text would be
        # read as.
        whole = BAR.join([name, *parts])
        first_part, *others = whole.split(BAR)
        object.__setattr__(self, "name", first_part)
        object.__setattr__(self, "parts", tuple(others))

    def __str__(self) -> str:
        return BAR.join([self.name, *self.parts])

    def __repr__(self) -> str:
        parts = [self.name, *self.parts]
        arguments = ", ".join(map(repr, parts))
        return f"Signature({arguments})"

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Return the signature that a file holds as text."""
        return cls(text)

    @classmethod
    def external(cls, name: str, *, lower_is_better: bool) -> Signature:
        """Return the signature of scores that another tool computed."""
        if lower_is_better:
            return cls(name, _EXTERNAL, "lower is better")
        return cls(name, _EXTERNAL)

    @property
    def is_external(self) -> bool:
        """Whether another tool computed the scores."""
        return _EXTERNAL in self.parts

    @property
    def digest(self) -> str:
        """The start of the prompt's digest: `3f2a91` of `coherence@3f2a91`; "" for a metric."""
        _, _, digest = self.name.partition("@")
        return digest

    @property
    def model(self) -> str:
        """The model that judged, such as `openai/small`; "" for a metric."""
        if not self.parts:
            return ""
        first_part = self.parts[0]
        return first_part if "/" in first_part else ""

    @property
    def settings(self) -> Mapping[str, str]:
        """The parts by name.

        `tok=en` is tok: en, `judge 0.1.0` is judge: 0.1.0, and a word such as `json` is yes.
        """
        return dict(_setting(part) for part in self.parts)

    def names(self, key: str) -> tuple[str, ...]:
        """Return what a part names: ("en", "ja") for `tok=en+ja`.

        Return nothing for `tok=-`, and if there is no such part.
        """
        value = self.settings.get(key, _NONE)
        if value == _NONE:
            return ()
        return tuple(value.split("+"))

    def without(self, *keys: str) -> tuple[str, ...]:
        """Return the parts that have none of these keys."""
        remaining = []
        for part in self.parts:
            key, _ = _setting(part)
            if key not in keys:
                remaining.append(part)
        return tuple(remaining)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Have pydantic read a signature from the text in a file."""
        # Imported here, because records need nothing but the standard library.
        from pydantic_core import core_schema

        text_schema = core_schema.str_schema()
        return core_schema.no_info_after_validator_function(cls.parse, text_schema)


def join_signatures(signatures: Sequence[Signature], mark: str) -> Signature:
    """Return one signature of several, one after another, with a mark between them."""
    return Signature(mark.join(map(str, signatures)))


def merge_signatures(signatures: Iterable[Signature]) -> Signature:
    """Return the signature of a column that was computed in parts, each with its own signature.

    It names everything that any part used: `tok=en` and `tok=ja` give `tok=en+ja`.
    """
    distinct = list(dict.fromkeys(signatures))
    lengths = {len(signature.parts) for signature in distinct}
    if len(lengths) > 1:
        # Only a metric of another package may have signatures of different lengths.
        return join_signatures(distinct, " & ")
    rows = [(signature.name, *signature.parts) for signature in distinct]
    values_by_part = zip(*rows, strict=True)
    merged_parts = [_merge_part(values) for values in values_by_part]
    return Signature(*merged_parts)


def join_names(used: Iterable[str]) -> str:
    """Join the names that a part has: `en+ja`, English first; `-` for none."""

    def english_first(name: str) -> tuple[bool, str]:
        return name not in _WRITTEN_FIRST, name

    names = sorted(set(used), key=english_first)
    return "+".join(names) or _NONE


def _setting(part: str) -> tuple[str, str]:
    """Return the name and the value of a part."""
    separator = "=" if "=" in part else " "
    key, mark, value = part.partition(separator)
    if not mark:
        value = "yes"
    return key, value


def _merge_part(values: Sequence[str]) -> str:
    """Merge one part of several signatures; different numbers give `var`.

    `-` means that a part of the data used none; it is dropped if another part used one.
    """
    key, equals, _ = values[0].partition("=")
    if not equals or len(set(values)) == 1:
        return " & ".join(dict.fromkeys(values))
    names: set[str] = set()
    for value in values:
        _, _, joined_names = value.partition("=")
        names.update(joined_names.split("+"))
    names.discard(_NONE)
    has_numbers = any(name == _VARIOUS or name.isdigit() for name in names)
    if len(names) > 1 and has_numbers:
        return f"{key}={_VARIOUS}"
    return f"{key}={join_names(names)}"
