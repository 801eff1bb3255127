"""Write values, such as steps or examples, into the header of a criterion's file; nothing else in it changes."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from judge.core import files, yaml_lines
from judge.core.errors import CriterionError
from judge.criteria.loading import as_template, is_yaml
from judge.criteria.template import (
    MAX_CHARACTERS,
    front_matter,
    read_header,
    read_text,
    template_body,
)

Lists = Mapping[str, Sequence[Any]]
_LINE_END = re.compile("\r\n|\r|\n")


def write_lists(path: str | Path, lists: Lists, replace: Collection[str] = ()) -> None:
    """Write lists into a header by their keys. All else stays, except comments among replaced entries.

    The file is replaced in one step, after the new text was read back with exactly these lists. Raises CriterionError
    if the header already has one that is not among `replace`, StorageError if the file cannot be written.
    """
    new = with_lists(path, lists, replace)
    target = Path(path).resolve()
    mode = target.stat().st_mode
    files.store(target.parent, {target.name: new})
    target.chmod(mode)


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
    mark = "\ufeff" * raw.startswith("\ufeff")
    end = match[0] if (match := _LINE_END.search(raw)) else "\n"
    file = _LINE_END.sub("\n", raw.removeprefix(mark))
    text = as_template(path, file)
    before = read_header(str(path), text)
    names = " and ".join(values)
    # Only the values may differ. The template behind the header is the same, so that it loads as before.
    misfit = f"{path}: the {names} do not fit into this header; write it as lines `key: value`, without & and *"
    header = file if is_yaml(path) else front_matter(file)
    rest = file[len(header) :] if header else f"---\n{file}"  # a text alone gets a header
    header = header or "---\n"
    try:
        for key, value in values.items():
            header = _with_value(header, key, value)
        new = as_template(path, header + rest * (not is_yaml(path)))
        after = read_header(str(path), new)
    except (CriterionError, yaml.YAMLError) as error:
        raise CriterionError(misfit) from error
    if len(new) > MAX_CHARACTERS:
        raise CriterionError(
            f"{path}: with these {names} it would have more than {MAX_CHARACTERS:,} characters"
        )
    same_template = template_body(new).lstrip("\n") == template_body(text).lstrip("\n")
    wanted = {
        key: list(value) if isinstance(value, tuple) else value for key, value in values.items()
    }
    if after != before.model_copy(update=wanted) or not same_template:
        raise CriterionError(misfit)
    return mark + (header + rest * (not is_yaml(path))).replace("\n", end)


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, and writes texts of several lines as blocks, which people can read and edit."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent(dumper: _Dumper, text: str) -> yaml.Node:
    usual = text.splitlines() == text.removesuffix("\n").split(
        "\n"
    )  # without breaks such as U+2028
    style = ("|" if "\n" in text else None) if usual else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


def _with_value(header: str, key: str, value: Any) -> str:
    """Return a header with a value in place of the key's old one, or at the end."""
    plain: Any = list(value) if isinstance(value, tuple) else value
    if isinstance(value, Mapping):  # labels as people write them: 1, not '1'
        plain = {
            int(key) if key.isdecimal() and str(int(key)) == key else key: value[key]
            for key in value
        }
    lines = yaml.dump(
        {key: plain}, Dumper=_Dumper, allow_unicode=True, width=10**9, sort_keys=False
    )
    tree = yaml.compose(header, Loader=yaml_lines.Loader)
    pairs = tree.value if isinstance(tree, yaml.MappingNode) else []
    margin = " " * pairs[0][0].start_mark.column if pairs else ""
    lines = re.sub("^(?=.)", margin, lines, flags=re.MULTILINE)
    for name, old in pairs:
        if name.value == key:
            start = name.start_mark.index - len(margin)
            return header[:start] + lines.removesuffix("\n") + header[_end_of(old, header) :]
    return header + "\n" * (not header.endswith("\n")) + lines


def _end_of(node: yaml.Node, header: str) -> int:
    """Return where a node's own characters end; for YAML, a list in lines ends at the next key, after comments."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end_of(last[1] if isinstance(last, tuple) else last, header)
    start, stop = node.start_mark.index, node.end_mark.index
    return start + len(header[start:stop].rstrip())
