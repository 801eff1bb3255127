"""Criteria as people write them.

A criterion is a built-in name, a file, a sentence `NAME: QUESTION`, or the keys of a header. An
entry is one of these as a text, keys as a JSON object with `name`. A run's configuration has
entries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judge.core import yaml_lines
from judge.core.normalization import whole_value
from judge.core.option_values import two_numbers
from judge.core.verdicts import is_pass_mark, verdict

YAML_SUFFIXES = (".yaml", ".yml")
SUFFIXES = (".jinja", *YAML_SUFFIXES, ".md", ".txt")
"""The kinds of files that a criterion may be."""
_ENDS = tuple(".?!。？！")
# "polite", "is_polite"
_NAME = r"[^\s:：/\\{}\"',]+"
# Without a space after the colon, the rest must look like a sentence, because C:\mine.jinja and
# http://... are none.
_COLON = rf"(?::\s+|：\s*|:(?![/\\])(?=\S*(?:\s|[{''.join(_ENDS)}]$)))"
# "polite: Is the answer polite?"
_SENTENCE = re.compile(rf"(?P<name>{_NAME}){_COLON}(?P<question>\S.*)", re.DOTALL)
# The end of "Is it solved? (pass/fail)" and of "Is it polite? (1-7)"
_SCALE_AT_END = re.compile(r"\s*[(（](?P<scale>[^()（）]+)[)）]\s*")
# "good/bad" and "A / B / C"
_WORDS_WITH_SLASHES = re.compile(r"[^\s/／|]+(\s*[/／|]\s*[^\s/／|]+)+")
# The sign between the labels of "pass/fail", and the word in "yes or no".
_LABEL_SIGNS = re.compile(r"[/／|,、–-]|\bor\b")
_WITHOUT_NAME = {"question", "questions", "scale", "levels"}
# "polite.improved", "polite.improved-2"
_IMPROVED = re.compile(r"\.improved(-\d+)?$")


def split_entries(text: str) -> list[str]:
    """Split a list at its commas; `none` is the empty list.

    A comma inside a sentence belongs to it.

    A sentence ends at a comma after . ? or ! if a name or another sentence follows. Raises
    ValueError for a sentence without such a mark before another one.
    """
    # A text with braces is JSON or YAML, and a single entry.
    is_single = text.lstrip().startswith("{")
    pieces = [text] if is_single else text.split(",")
    entries: list[str] = []
    for piece in pieces:
        entry = piece.strip()
        previous_entry = entries[-1] if entries else ""
        if _starts_new_entry(entry, previous_entry):
            if entry:
                entries.append(entry)
        elif _SENTENCE.match(entry):
            first_name = previous_entry.partition(":")[0]
            second_name = entry.partition(":")[0]
            raise ValueError(
                f"{first_name!r} and {second_name!r}: end a sentence that another criterion "
                "follows with . ? or !, or repeat the option for each criterion"
            )
        else:
            entries[-1] = f"{previous_entry},{piece.rstrip()}"
    if entries == ["none"]:
        return []
    refuse_none(entries)
    return entries


def refuse_none(names: Any) -> None:
    """Raise ValueError for a list that has `none`, which stands for the empty list, and more."""
    if isinstance(names, list | tuple) and len(names) > 1 and "none" in names:
        raise ValueError(
            "none stands for an empty list; name it alone, or leave it out"
        )


def _starts_new_entry(entry: str, previous_entry: str) -> bool:
    """Return whether an entry after a comma does not belong to the sentence before it."""
    if not _SENTENCE.fullmatch(previous_entry):
        return True
    is_name = len(entry.split()) < 2
    is_name_or_sentence = is_name or _SENTENCE.match(entry) is not None
    question, _ = _split_scale(previous_entry)
    return question.endswith(_ENDS) and is_name_or_sentence


def to_entries(value: Any) -> Any:
    """Return the entries of a text, of keys, or of a list of both; anything else unchanged.

    `{name: NAME, question: ...}` is one criterion; without `name`, a mapping has a sentence, or
    keys, for each name. Raises ValueError.
    """
    value = whole_value(value)
    if isinstance(value, str):
        value = split_entries(value)
    if isinstance(value, Mapping):
        return _entries_of_keys(value)
    if not isinstance(value, list | tuple):
        return value
    entries: list[Any] = []
    for written_entry in value:
        keys = written_entry
        if isinstance(written_entry, str) and written_entry.lstrip().startswith("{"):
            try:
                keys = yaml_lines.values(written_entry)
            except yaml_lines.Malformed as error:
                raise ValueError(f"{written_entry[:40]}...: {error}") from None
        if isinstance(keys, Mapping):
            entries += _entries_of_keys(keys)
        else:
            entries.append(written_entry)
    return entries


def _entries_of_keys(keys: Mapping[Any, Any]) -> list[str]:
    if "name" in keys:
        criterion_name = keys["name"]
        if not isinstance(criterion_name, str) or not is_name(criterion_name):
            raise ValueError(
                f"name: {criterion_name!r:.60} cannot name a criterion; write one word, such as "
                "polite"
            )
        try:
            return [json.dumps(dict(keys), ensure_ascii=False)]
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{criterion_name}: {error}") from None
    nameless = sorted(_WITHOUT_NAME & keys.keys())
    if nameless:
        raise ValueError(
            f"{nameless[0]}: the criterion has no name; write name: NAME beside it"
        )
    entries = []
    for criterion_name, value in keys.items():
        if isinstance(value, Mapping):
            entries += _entries_of_keys({"name": criterion_name, **value})
            continue
        sentence = ""
        if isinstance(value, str):
            sentence = f"{criterion_name}: {value.strip()}"
        if not _SENTENCE.fullmatch(sentence):
            raise ValueError(
                f"{str(criterion_name)!r:.60}: write NAME: QUESTION, or the keys of a criterion "
                "with its name"
            )
        entries.append(sentence)
    return entries


def is_name(text: str) -> bool:
    """Return whether a criterion may have this name."""
    return re.fullmatch(_NAME, text) is not None


def keys_of(entry: str) -> dict[str, Any] | None:
    """Return the name and the other keys of a sentence or of keys; None for a name or a file.

    A sentence may end with its scale: `(1-7)`, `(yes/no)` or `(pass/fail)`, which also says what
    passes.
    """
    if entry.startswith("{"):
        return dict(json.loads(entry))
    match = _SENTENCE.fullmatch(entry)
    if match is None:
        return None
    question, scale_keys = _split_scale(match["question"])
    return {"name": match["name"], "question": question, **scale_keys}


def _split_scale(sentence: str) -> tuple[str, dict[str, Any]]:
    """Return a sentence without the scale at its end, and the keys that the scale stands for."""
    with_ascii_bracket = sentence.rstrip().replace("（", "(")
    question, opening, _ = with_ascii_bracket.rpartition("(")
    match = _SCALE_AT_END.fullmatch(sentence, len(question)) if opening else None
    keys = _keys_of_scale(match["scale"]) if match else {}
    if not keys or not question.strip():
        return sentence, {}
    return question.rstrip(), keys


def require_known_scale(entry: str) -> None:
    """Raise ValueError if a sentence ends with words that look like a scale and are none.

    The words of `(good/bad)` do not say which of them is better, and the sentence would silently
    get the scale from 1 to 5.
    """
    keys = keys_of(entry) or {}
    if keys.keys() != {"name", "question"}:
        return
    question = keys["question"].replace("（", "(")
    _, opening, scale_text = question.rpartition("(")
    match = _SCALE_AT_END.fullmatch(f"({scale_text}") if opening else None
    words = match["scale"].strip() if match else ""
    if _WORDS_WITH_SLASHES.fullmatch(words):
        raise ValueError(
            f"{keys['name']}: ({words}) is no scale that a sentence may end with, such as (1-7), "
            "(yes/no) or (pass/fail). Write a criterion's file with, for example, scale: {labels: "
            "[bad, good], values: [0, 1]}; if it is no scale, end the sentence with a full stop"
        )


def _keys_of_scale(text: str) -> dict[str, Any]:
    """Return the header keys of `1-7`, `yes/no` or `pass/fail`; none for anything else."""
    labels = [label.strip() for label in _LABEL_SIGNS.split(text)]
    meanings = {*map(verdict, labels)}
    if len(labels) == 2 and meanings == {0.0, 1.0}:
        worse, better = sorted(labels, key=lambda label: verdict(label) or 0.0)
        scale = {"labels": [worse, better], "values": [0, 1]}
        keys: dict[str, Any] = {"scale": scale}
        if is_pass_mark(better):
            keys["pass_at"] = better
        return keys
    ends = two_numbers(text)
    if len(ends) != 2:
        return {}
    # A header has a whole number without a point. It is the place to refuse ends in wrong order.
    scale_ends = [int(end) if end.is_integer() else end for end in ends]
    return {"scale": scale_ends}


def name_of(entry: str) -> str:
    """Return a criterion's name, which is that of its column."""
    keys = keys_of(entry)
    if keys:
        return str(keys["name"])
    path = Path(entry)
    return name_of_file(path) if path.suffix in SUFFIXES else path.name


def name_of_file(path: Path) -> str:
    """Return the name of a criterion's file.

    That of `polite.improved.yaml` is polite, so that ratings of polite belong to it, too.
    """
    return _IMPROVED.sub("", path.stem)


def is_file(entry: str) -> bool:
    """Return whether an entry names a file."""
    return Path(entry).suffix in SUFFIXES and keys_of(entry) is None
