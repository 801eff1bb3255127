"""Write values, such as steps or examples, into the header of a criterion's file.

Nothing else in the file changes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from judge.core import files, yaml_lines
from judge.core.errors import CriterionError
from judge.criteria.header import front_matter, read_header, template_body
from judge.criteria.loading import as_template, is_yaml
from judge.criteria.template import MAX_CHARACTERS, read_text

Lists = Mapping[str, Sequence[Any]]
# "\r\n" is one line end and not two.
_LINE_END = re.compile("\r\n|\r|\n")
_BYTE_ORDER_MARK = "\ufeff"


def write_lists(path: str | Path, lists: Lists, replace: Collection[str] = ()) -> None:
    """Write lists into a header by their keys.

    Everything else stays, except comments among replaced entries. The file is replaced in one step,
    after the new text was read back with exactly these lists. Raises CriterionError if the header
    already has one that is not among `replace`, StorageError if the file cannot be written.
    """
    content = with_lists(path, lists, replace)
    target = Path(path).resolve()
    mode = target.stat().st_mode
    files.store(target.parent, {target.name: content})
    target.chmod(mode)


def with_lists(path: str | Path, lists: Lists, replace: Collection[str] = ()) -> bytes:
    """Return the file that `write_lists` would write. Raises CriterionError as it does."""
    path = Path(path)
    template = as_template(path, read_text(path))
    present_header = read_header(str(path), template)
    for key in lists:
        if getattr(present_header, key) and key not in replace:
            raise CriterionError(
                f"{path}: already has {key}; --overwrite replaces them"
            )
    raw = path.read_bytes().decode("utf-8")
    return with_values(path, raw, lists).encode("utf-8")


def with_values(path: Path, raw: str, values: Mapping[str, Any]) -> str:
    """Return the characters of a file with these values in its header.

    A value is a number, a text, a list, or a mapping of texts. `path` decides the kind of file.
    Raises CriterionError if the values do not fit into the header.
    """
    content = _LINE_END.sub("\n", raw.removeprefix(_BYTE_ORDER_MARK))
    template = as_template(path, content)
    header = read_header(str(path), template)
    names = " and ".join(values)
    misfit = (
        f"{path}: the {names} do not fit into this header; "
        "write it as lines `key: value`, without & and *"
    )
    try:
        new_content = _with_header_values(path, content, values)
        new_template = as_template(path, new_content)
        new_header = read_header(str(path), new_template)
    except (CriterionError, yaml.YAMLError) as error:
        raise CriterionError(misfit) from error
    if len(new_template) > MAX_CHARACTERS:
        raise CriterionError(
            f"{path}: with these {names} it would have more than {MAX_CHARACTERS:,} characters"
        )
    # Only the values may differ. The template is the same, so it loads as before.
    expected_header = header.model_copy(update=_lists_for_tuples(values))
    body = template_body(template).lstrip("\n")
    new_body = template_body(new_template).lstrip("\n")
    if new_header != expected_header or new_body != body:
        raise CriterionError(misfit)
    if raw.startswith(_BYTE_ORDER_MARK):
        new_content = _BYTE_ORDER_MARK + new_content
    line_end = _LINE_END.search(raw)
    if line_end:
        new_content = new_content.replace("\n", line_end[0])
    return new_content


def _lists_for_tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values as a header has them, which is read from YAML and knows no tuples."""
    lists: dict[str, Any] = {}
    for key, value in values.items():
        lists[key] = list(value) if isinstance(value, tuple) else value
    return lists


def _with_header_values(path: Path, content: str, values: Mapping[str, Any]) -> str:
    """Return a file's content with these values in its header."""
    if is_yaml(path):
        header = content or "---\n"
        rest = ""
    else:
        header = front_matter(content)
        rest = content[len(header) :]
        if not header:
            # A file that is a text alone gets a header.
            header = "---\n"
            rest = f"---\n{content}"
    for key, value in values.items():
        header = _with_value(header, key, value)
    return header + rest


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, and writes texts of several lines as blocks.

    Both are easier to read and edit.
    """

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent(dumper: _Dumper, text: str) -> yaml.Node:
    # Breaks such as U+2028 would be normalized in a block, but quotes escape them.
    only_newlines = text.splitlines() == text.removesuffix("\n").split("\n")
    style = None
    if not only_newlines:
        style = '"'
    elif "\n" in text:
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent)


def _with_value(header: str, key: str, value: Any) -> str:
    """Return a header with a value in place of the key's old one, or at the end."""
    mapping = {key: _plain_value(value)}
    lines = yaml.dump(
        mapping,
        Dumper=_Dumper,
        allow_unicode=True,
        width=10**9,
        sort_keys=False,
    )
    tree = yaml.compose(header, Loader=yaml_lines.Loader)
    pairs = []
    if isinstance(tree, yaml.MappingNode):
        pairs = tree.value
    # A header may be indented as a whole.
    margin = ""
    if pairs:
        first_key, _ = pairs[0]
        margin = " " * first_key.start_mark.column
    lines = re.sub("^(?=.)", margin, lines, flags=re.MULTILINE)
    for key_node, old_value in pairs:
        if key_node.value == key:
            start = key_node.start_mark.index - len(margin)
            end = _end_of(old_value, header)
            new_lines = lines.removesuffix("\n")
            return header[:start] + new_lines + header[end:]
    if not header.endswith("\n"):
        header += "\n"
    return header + lines


def _plain_value(value: Any) -> Any:
    """Return a value as people write it in YAML: `1: Bad`, not `'1': Bad`."""
    if isinstance(value, tuple):
        return list(value)
    if not isinstance(value, Mapping):
        return value
    texts: dict[Any, Any] = {}
    for key, text in value.items():
        # "01" keeps its quotes, because the number 1 is another label.
        is_number = key.isdecimal() and str(int(key)) == key
        if is_number:
            texts[int(key)] = text
        else:
            texts[key] = text
    return texts


def _end_of(node: yaml.Node, header: str) -> int:
    """Return the index after the node's own characters.

    For YAML itself, a list in lines ends at the next key, after comments.
    """
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last_node = node.value[-1]
        if isinstance(last_node, tuple):  # of a mapping
            _, last_node = last_node
        return _end_of(last_node, header)
    start = node.start_mark.index
    end = node.end_mark.index
    return start + len(header[start:end].rstrip())
