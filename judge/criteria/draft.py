"""Evaluation steps that a model drafts (auto-CoT; Liu et al. 2023, G-Eval, section 2.2): asked, read, written down."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import cast

import yaml
from jinja2 import nodes

from judge.core.errors import CriterionError, ParseError
from judge.core.records import Criterion, whole
from judge.criteria.template import (
    display_name,
    front_matter,
    own_name,
    parse_template,
    read_header,
    read_layouts,
    read_text,
    reference,
    template_bodies,
    template_body,
)

FEWEST, MOST, LONGEST = 2, 12, 400
_LAYOUT = "layouts/steps.jinja"
_NUMBERED = re.compile(r"(?P<number>\d{1,2})[.)．）、](?!\d)\s*(?P<text>\S.*)")
_BULLET = re.compile(r"[-•]\s+(?P<text>\S.*)")
_SYNTAX = ("{{", "{%", "{#")


# Asking.


def drafting(criterion: Criterion) -> dict[str, str]:
    """The templates of `render.draft`, by name: the criterion's own, the last one they extend replaced by the layout
    for drafting.

    Raises CriterionError where the criterion has no block `criterion` to draft from.
    """
    texts = template_bodies(criterion)
    chain = [own_name(criterion)]  # the criterion's file, the template that it extends, and so on
    while parent := parse_template(texts[chain[-1]]).find(nodes.Extends):
        chain.append(reference(display_name(criterion, chain[-1]), parent))
    named = (block.name for name in chain[:-1] for block in parse_template(texts[name]).find_all(nodes.Block))
    if "criterion" not in named:
        raise CriterionError(
            f"{criterion.path}: has no text to draft steps from; extend a layout, and put what is judged into "
            "{% block criterion %}"
        )
    asking = changed(criterion, template=f'{{% extends "{_LAYOUT}" %}}')
    layouts = {name: template_body(text) for name, text in read_layouts(asking).items()}
    return {**texts, **layouts, chain[-1]: layouts[_LAYOUT]}


# Reading.


def read_steps(reply: str) -> tuple[str, ...]:
    """The steps of a model's reply: a list and nothing else, numbered in order from 1 or with a bullet at each line.

    There are 2 to 12, each one line of at most 400 characters, without the signs of a template. Raises ParseError,
    which keeps the reply, for all else.
    """
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    numbered = [_NUMBERED.fullmatch(line) for line in lines]
    matches = numbered if any(numbered) else [_BULLET.fullmatch(line) for line in lines]
    steps = []
    for position, (line, match) in enumerate(zip(lines, matches, strict=True), 1):
        if match is None:
            raise ParseError(f"not a list of steps alone: {line[:80]!r}", reply)
        if any(numbered) and int(match["number"]) != position:
            raise ParseError(f"step {position} carries the number {int(match['number'])}", reply)
        steps.append(match["text"])
    if not FEWEST <= len(steps) <= MOST:
        raise ParseError(f"{len(steps)} steps; expected {FEWEST} to {MOST}", reply)
    for position, step in enumerate(steps, 1):
        if len(step) > LONGEST:
            raise ParseError(f"step {position} has {len(step)} characters; at most {LONGEST}", reply)
        if any(sign in step for sign in _SYNTAX):
            raise ParseError(f"step {position} holds template syntax", reply)
    return tuple(steps)


# Writing.


def write_steps(path: str | Path, steps: Sequence[str], replace: bool = False) -> None:
    """Write steps into the header of a criterion's file; all else, but comments among older steps, stays as it is.

    The file is replaced in one go, once the new text has been read back with exactly these steps. Raises CriterionError
    where it has steps and `replace` is not given, where a step is not one line of text, and where it cannot be written.
    """
    new = with_steps(path, steps, replace)
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


def with_steps(path: str | Path, steps: Sequence[str], replace: bool = False) -> bytes:
    """The file as `write_steps` would leave it. Raises CriterionError where it would."""
    if not steps or not all(len(step.splitlines()) == 1 and step.strip() and whole(step) == step for step in steps):
        raise CriterionError(f"{path}: steps are lines of text, one for each, and at least one")
    path = Path(path)
    text = read_text(path)
    before = read_header(str(path), text)
    if before.steps and not replace:
        raise CriterionError(f"{path}: has steps already; --replace writes new ones over them")
    new = _with_steps(path.read_bytes().decode("utf-8"), text, list(steps)).encode("utf-8")
    # Only the steps may differ. The template behind the header is the same, so that it loads as it did.
    read_back = new.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    misfit = f"{path}: the steps do not fit into this header; write it as lines `key: value`, without & and *"
    try:
        header = read_header(str(path), read_back)
    except CriterionError as error:
        raise CriterionError(misfit) from error
    same_template = template_body(read_back).lstrip("\n") == template_body(text).lstrip("\n")
    if header != before.model_copy(update={"steps": list(steps)}) or not same_template:
        raise CriterionError(misfit)
    return new


def _with_steps(raw: str, text: str, steps: list[str]) -> str:
    """The file's characters with the steps put in. `text` is the same with every line end a newline, unmarked."""
    place = _place(text)
    ends = re.search("\r\n|\r|\n", raw)
    end = ends[0] if ends else "\n"
    items = yaml.safe_dump(steps, allow_unicode=True, width=10 * LONGEST).splitlines()
    block = place.before.replace("\n", end) + (end + place.indent).join(items) + place.after.replace("\n", end)
    return raw[: _raw_index(raw, place.start)] + block + raw[_raw_index(raw, place.stop) :]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a text the steps go: what they replace, what stands around them, and the indent of all but the first."""

    start: int
    stop: int
    indent: str
    before: str = ""
    after: str = ""


def _place(text: str) -> _Place:
    header = front_matter(text)
    tree = cast(yaml.MappingNode, yaml.compose(header, Loader=yaml.SafeLoader))  # `read_header` would have none else
    for key, value in tree.value:
        if key.value == "steps":
            stop = _end_of(value, header)
            if value.start_mark.line > key.start_mark.line:
                return _Place(value.start_mark.index, stop, " " * value.start_mark.column)
            indent = " " * (key.start_mark.column + 2)
            return _Place(header.index(":", key.end_mark.index) + 1, stop, indent, before="\n" + indent)
    margin = " " * tree.value[0][0].start_mark.column
    before = f"{margin}steps:\n{margin}  "
    return _Place(len(header), len(header), margin + "  ", before=before, after="\n")


def _end_of(node: yaml.Node, header: str) -> int:
    """Where a node's own characters end; YAML lets a list in lines run on to the next key, comments and all."""
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _end_of(node.value[-1], header)
    start, stop = node.start_mark.index, node.end_mark.index
    return start + len(header[start:stop].rstrip())


def _raw_index(raw: str, index: int) -> int:
    """Where in the file a position of its text lies: a byte order mark and the returns before newlines count too."""
    index += raw.startswith("\ufeff")
    pairs = [match.start() for match in re.finditer("\r\n", raw)]
    return index + sum(start - number < index for number, start in enumerate(pairs))
