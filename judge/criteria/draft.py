"""Drafts by a model: evaluation steps of a criterion, and revised wordings.

The steps are the auto-CoT of G-Eval (Liu et al. 2023, section 2.2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from jinja2 import nodes

from judge.core.errors import CriterionError, ParseError
from judge.core.records import Criterion
from judge.criteria.header import template_body
from judge.criteria.template import (
    display_name,
    own_name,
    parse_cached,
    read_layouts,
    reference,
    template_bodies,
)

FEWEST_STEPS = 2
MOST_STEPS = 12
LONGEST_STEP = 400
# "1. Read the source.", "2） Compare …", "- Check each fact."; but not "1.5 points".
_STEP = re.compile(r"(?:(?P<number>\d{1,2})[.)．）、](?!\d)\s*|[-•]\s+)(?P<text>\S.*)")
_TEMPLATE_SYNTAX = ("{{", "{%", "{#")


def drafting(criterion: Criterion, task: str = "steps") -> dict[str, str]:
    """Return the templates of a drafting prompt, by name.

    A criterion's file fills the block `criterion` of a layout, which asks a judge for a score. The
    drafting prompt has the same files, but its layout asks for the task: for "steps", the text of
    `layouts/steps.jinja` replaces the last template that the files extend.

    Raises CriterionError if there is no block `criterion` to draft from.
    """
    texts = template_bodies(criterion)
    chain = _chain_of_templates(criterion, texts)
    for template_name in chain[:-1]:
        label = display_name(criterion, template_name)
        if _has_criterion_block(label, texts[template_name]):
            break
    else:
        raise CriterionError(
            f"{criterion.path}: has no text to draft {task} from; extend a layout, and put what is "
            "judged into {% block criterion %}"
        )
    layout = f"layouts/{task}.jinja"
    drafting_criterion = replace(criterion, template=f'{{% extends "{layout}" %}}')
    layouts = {}
    for layout_name, text in read_layouts(drafting_criterion).items():
        layouts[layout_name] = template_body(text)
    return {**texts, **layouts, chain[-1]: layouts[layout]}


def _chain_of_templates(criterion: Criterion, texts: Mapping[str, str]) -> list[str]:
    """Return the name of the criterion's file, of the template that it extends, and so on."""
    chain = [own_name(criterion)]
    while True:
        template_name = chain[-1]
        label = display_name(criterion, template_name)
        extends = parse_cached(label, texts[template_name]).find(nodes.Extends)
        if extends is None:
            return chain
        chain.append(reference(label, extends))


def _has_criterion_block(label: str, text: str) -> bool:
    blocks = parse_cached(label, text).find_all(nodes.Block)
    return any(block.name == "criterion" for block in blocks)


def read_steps(reply: str) -> tuple[str, ...]:
    """Return the steps of a model's reply, which has to be a list and nothing else.

    The steps are numbered in order from 1, or each has a bullet. There are 2 to 12, each one line
    of at most 400 characters, without template syntax. Raises ParseError, which has the reply, for
    anything else.
    """
    steps: list[str] = []
    is_numbered = reply.lstrip()[:1].isdecimal()
    for raw_line in reply.splitlines():
        line = raw_line.strip()
        if line:
            number = len(steps) + 1
            steps.append(_step(line, number, is_numbered, reply))
    if not FEWEST_STEPS <= len(steps) <= MOST_STEPS:
        expected = f"expected {FEWEST_STEPS} to {MOST_STEPS}"
        raise ParseError(f"{len(steps)} steps; {expected}", reply)
    return tuple(steps)


def _step(line: str, position: int, is_numbered: bool, reply: str) -> str:
    """Return the text of a step at this position, counted from 1. Raises ParseError."""
    match = _STEP.fullmatch(line)
    if match is None or bool(match["number"]) != is_numbered:
        raise ParseError(f"a line is not a step: {line[:80]!r}", reply)
    if is_numbered and int(match["number"]) != position:
        raise ParseError(
            f"step {position} has the number {int(match['number'])}", reply
        )
    text = match["text"]
    if len(text) > LONGEST_STEP:
        problem = f"step {position} has {len(text)} characters; at most {LONGEST_STEP}"
        raise ParseError(problem, reply)
    # The steps go into a Jinja template: nothing that the model wrote may be run there.
    if any(sign in line for sign in _TEMPLATE_SYNTAX):
        raise ParseError(f"step {position} holds template syntax", reply)
    return text
