"""Write values, such as steps or examples, into the header of a criterion's file; nothing else in it changes."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from judge.core.errors import CriterionError
from judge.criteria.loading import as_template, is_yaml
from judge.criteria.template import MAX_CHARACTERS, front_matter, read_header, read_text, template_body

Lists = Mapping[str, Sequence[Any]]
_LINE_END = re.compile("\r\n|\r|\n")


def write_lists(path: str | Path, lists: Lists, replace: Collection[str] = ()) -> None:
    """Write lists into a header by their keys. All else stays, except comments among replaced entries.

    The file is replaced in one step, after the new text was read back with exactly these lists. Raises CriterionError
    if the header already has one that is not among `replace`, or if the file cannot be written.
    """
    new = with_lists(path, lists, replace)
    try:
        target = Path(path).resolve()
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(new)
                file.flush()
                os.fsync(file.fileno())
            shutil.copymode(target, name)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CriterionError(f"{path}: cannot be written: {error.strerror}") from error


def with_lists(path: str | Path, lists: Lists, replace: Collection[str] = ()) -> bytes:
    """Return the file that `write_lists` would write. Raises CriterionError as it does."""
    path = Path(path)
    before = read_header(str(path), as_template(path, read_text(path)))
    for key in lists:
        if getattr(before, key) and key not in replace:
            raise CriterionError(f"{path}: has {key} already; --replace writes new ones over them")
    return with_values(path, path.read_bytes().decode("utf-8"), lists).encode("utf-8")


def with_values(path: Path, raw: str, values: Mapping[str, Any]) -> str:
    """Return the characters of a file with these values in its header: numbers, texts, lists or mappings of texts.

    `path` tells the kind of file. Raises CriterionError if they do not fit into the header.
    """
    text = as_template(path, _normal(raw))
    before = read_header(str(path), text)
    names = " and ".join(values)
    # Only the values may differ. The template behind the header is the same, so that it loads as before.
    misfit = f"{path}: the {names} do not fit into this header; write it as lines `key: value`, without & and *"
    try:
        for key, value in values.items():
            raw = _with_value(raw, key, value, whole=is_yaml(path))
        new = as_template(path, _normal(raw))
        header = read_header(str(path), new)
    except (CriterionError, yaml.YAMLError) as error:
        raise CriterionError(misfit) from error
    if len(raw) > MAX_CHARACTERS:
        raise CriterionError(f"{path}: with these {names} it would have more than {MAX_CHARACTERS:,} characters")
    same_template = template_body(new).lstrip("\n") == template_body(text).lstrip("\n")
    wanted = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    if header != before.model_copy(update=wanted) or not same_template:
        raise CriterionError(misfit)
    return raw


def _normal(raw: str) -> str:
    """A file's characters as they are read: every line end a newline, without a byte order mark."""
    return _LINE_END.sub("\n", raw.removeprefix("\ufeff"))


def _with_value(raw: str, key: str, value: Any, *, whole: bool) -> str:
    """The file's characters with a value put in. `whole` means that all of the file is the header."""
    text = _normal(raw)
    header = text if whole else front_matter(text)
    end = match[0] if (match := _LINE_END.search(raw)) else "\n"
    if not header:  # a text alone gets a header
        return (
            raw[: raw.startswith("\ufeff")]
            + _with_value(f"---{end}---{end}", key, value, whole=False)
            + raw.lstrip("\ufeff")
        )
    place = _place(header, key, inline=isinstance(value, str | int))
    plain: Any = value if isinstance(value, str | int) else list(value)
    if isinstance(value, Mapping):  # labels as people write them: 1, not '1'
        plain = {int(key) if key.isdecimal() and str(int(key)) == key else key: value[key] for key in value}
    dumped = yaml.dump(plain, Dumper=_Dumper, allow_unicode=True, width=10**9, sort_keys=False)
    lines = dumped.removesuffix("...\n").removesuffix("\n").split("\n")
    block = "\n".join([lines[0], *(place.indent + line if line else "" for line in lines[1:])])
    block = (place.before + block + place.after).replace("\n", end)
    return raw[: _raw_index(raw, place.start)] + block + raw[_raw_index(raw, place.stop) :]


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, which people can read and edit."""


def _represent(dumper: _Dumper, text: str) -> yaml.Node:
    usual = text.splitlines() == text.removesuffix("\n").split("\n")  # without breaks such as U+2028
    style = ("|" if "\n" in text else None) if usual else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a header a list goes: what it replaces, what is around it, and the indent of all but its first line."""

    start: int
    stop: int
    indent: str
    before: str = ""
    after: str = ""


def _place(header: str, name: str, *, inline: bool) -> _Place:
    """Where the value of a key goes; `inline` means that it begins on the line of its key."""
    tree = yaml.compose(header, Loader=yaml.SafeLoader)
    pairs = tree.value if isinstance(tree, yaml.MappingNode) else []
    for key, value in pairs:
        if key.value == name:
            stop = _end_of(value, header)
            if inline:
                start = header.index(":", key.end_mark.index) + 1
                return _Place(start, stop, " " * key.start_mark.column, before=" ")
            if value.start_mark.line > key.start_mark.line:
                return _Place(value.start_mark.index, stop, " " * value.start_mark.column)
            indent = " " * (key.start_mark.column + 2)
            return _Place(header.index(":", key.end_mark.index) + 1, stop, indent, before="\n" + indent)
    margin = " " * pairs[0][0].start_mark.column if pairs else ""
    before = "" if header.endswith("\n") else "\n"
    before += f"{margin}{name}: " if inline else f"{margin}{name}:\n{margin}  "
    return _Place(len(header), len(header), margin + "  " * (not inline), before=before, after="\n")


def _end_of(node: yaml.Node, header: str) -> int:
    """Where a node's own characters end; YAML lets a list in lines run on to the next key, comments and all."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end_of(last[1] if isinstance(last, tuple) else last, header)
    start, stop = node.start_mark.index, node.end_mark.index
    return start + len(header[start:stop].rstrip())


def _raw_index(raw: str, index: int) -> int:
    """Where in the file a position of its text lies: a byte order mark and the returns before newlines count too."""
    index += raw.startswith("\ufeff")
    pairs = [match.start() for match in re.finditer("\r\n", raw)]
    return index + sum(start - number < index for number, start in enumerate(pairs))
