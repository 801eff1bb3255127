"""Criteria as people write them: a built-in name, a file, a sentence `NAME: QUESTION`, or the keys of a header.

An entry is one of these as a text, keys as a JSON object with `name`. A run's configuration holds entries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.core import yaml_lines
from judge.core.records import whole_value

YAML_SUFFIXES = (".yaml", ".yml")
SUFFIXES = (".jinja", *YAML_SUFFIXES, ".md", ".txt")
"""The kinds of files that a criterion may be."""
_ENDS = tuple(".?!。？！")
_NAME = r"[^\s:：/\\{}\"',]+"
# Without a space after the colon, the rest must look like a sentence, because C:\mine.jinja and http://... are none.
_COLON = rf"(?::\s+|：\s*|:(?![/\\])(?=\S*(?:\s|[{''.join(_ENDS)}]$)))"
_SENTENCE = re.compile(rf"(?P<name>{_NAME}){_COLON}(?P<question>\S.*)", re.DOTALL)
_WITHOUT_NAME = {"question", "questions", "scale", "levels"}
_IMPROVED = re.compile(r"\.improved(-\d+)?$")


def split_entries(text: str) -> list[str]:
    """Split a list at its commas; `none` is the empty list. A comma inside a sentence belongs to it.

    A sentence ends at a comma after . ? or ! if a name or another sentence follows. Raises ValueError for a sentence
    without such a mark that another one follows.
    """
    entries: list[str] = []
    for part in [text] if text.lstrip().startswith("{") else text.split(","):
        entry, before = part.strip(), entries[-1] if entries else ""
        if not _SENTENCE.fullmatch(before) or (
            before.endswith(_ENDS) and (len(entry.split()) < 2 or _SENTENCE.match(entry))
        ):
            entries += [entry] if entry else []
        elif _SENTENCE.match(entry):
            raise ValueError(
                f"{before.partition(':')[0]!r} and {entry.partition(':')[0]!r}: end a sentence that another criterion "
                "follows with . ? or !, or repeat the option for each criterion"
            )
        else:
            entries[-1] = f"{before},{part.rstrip()}"
    return [] if entries == ["none"] else entries


def to_entries(value: Any) -> Any:
    """Return the entries of a text, of keys, or of a list of both. Returns anything else as it came.

    `{name: NAME, question: ...}` is one criterion; without `name`, a mapping has a sentence, or keys, for each name.
    Raises ValueError.
    """
    value = whole_value(value)
    if isinstance(value, str):
        value = split_entries(value)
    if isinstance(value, Mapping):
        return _entries_of_keys(value)
    if not isinstance(value, list | tuple):
        return value
    entries: list[Any] = []
    for part in value:
        keys = part
        if isinstance(part, str) and part.lstrip().startswith("{"):
            try:
                keys = yaml_lines.values(part)
            except yaml_lines.Malformed as error:
                raise ValueError(f"{part[:40]}...: {error}") from None
        entries += _entries_of_keys(keys) if isinstance(keys, Mapping) else [part]
    return entries


def _entries_of_keys(keys: Mapping[Any, Any]) -> list[str]:
    if "name" in keys:
        name = keys["name"]
        if not isinstance(name, str) or not is_name(name):
            raise ValueError(
                f"name: {name!r:.60} is no name of a criterion; write one word, such as polite"
            )
        try:
            return [json.dumps(dict(keys), ensure_ascii=False)]
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{name}: {error}") from None
    if lone := sorted(_WITHOUT_NAME & keys.keys()):
        raise ValueError(f"{lone[0]}: the criterion has no name; write name: NAME beside it")
    entries = []
    for name, value in keys.items():
        if isinstance(value, Mapping):
            entries += _entries_of_keys({"name": name, **value})
        elif isinstance(value, str) and _SENTENCE.fullmatch(sentence := f"{name}: {value.strip()}"):
            entries.append(sentence)
        else:
            raise ValueError(
                f"{str(name)!r:.60}: write NAME: QUESTION, or the keys of a criterion with its name"
            )
    return entries


def is_name(text: str) -> bool:
    """Return whether a criterion may have this name."""
    return re.fullmatch(_NAME, text) is not None


def keys_of(entry: str) -> dict[str, Any] | None:
    """Return the name and the other keys of an entry that is written out; None for a name or a file."""
    if entry.startswith("{"):
        return dict(json.loads(entry))
    match = _SENTENCE.fullmatch(entry)
    return match.groupdict() if match else None


def name_of(entry: str) -> str:
    """Return a criterion's name, which is that of its column."""
    if keys := keys_of(entry):
        return str(keys["name"])
    return name_of_file(Path(entry)) if Path(entry).suffix in SUFFIXES else Path(entry).name


def name_of_file(path: Path) -> str:
    """Return the name of a criterion's file; that of `polite.improved.yaml` is polite, so that its ratings pair."""
    return _IMPROVED.sub("", path.stem)


def is_file(entry: str) -> bool:
    """Return whether an entry names a file."""
    return Path(entry).suffix in SUFFIXES and keys_of(entry) is None
