"""What a model is asked to write about a criterion: evaluation steps (auto-CoT; Liu et al. 2023, G-Eval, section 2.2)
and revised wordings.
"""

from __future__ import annotations

import re
from dataclasses import replace

from jinja2 import nodes

from judge.core.errors import CriterionError, ParseError
from judge.core.records import Criterion
from judge.criteria.template import (
    display_name,
    own_name,
    parse_template,
    read_layouts,
    reference,
    template_bodies,
    template_body,
)

FEWEST, MOST, LONGEST = 2, 12, 400
_STEP = re.compile(r"(?:(?P<number>\d{1,2})[.)．）、](?!\d)\s*|[-•]\s+)(?P<text>\S.*)")
_SYNTAX = ("{{", "{%", "{#")


def drafting(criterion: Criterion, task: str = "steps") -> dict[str, str]:
    """The templates of a drafting prompt, by name: the criterion's own, the last one they extend replaced by the
    layout of the task.

    Raises CriterionError where the criterion has no block `criterion` to draft from.
    """
    texts = template_bodies(criterion)
    chain = [own_name(criterion)]  # the criterion's file, the template that it extends, and so on
    while parent := parse_template(texts[chain[-1]]).find(nodes.Extends):
        chain.append(reference(display_name(criterion, chain[-1]), parent))
    named = (
        block.name
        for name in chain[:-1]
        for block in parse_template(texts[name]).find_all(nodes.Block)
    )
    if "criterion" not in named:
        raise CriterionError(
            f"{criterion.path}: has no text to draft {task} from; extend a layout, and put what is judged into "
            "{% block criterion %}"
        )
    layout = f"layouts/{task}.jinja"
    asking = replace(criterion, template=f'{{% extends "{layout}" %}}')
    layouts = {name: template_body(text) for name, text in read_layouts(asking).items()}
    return {**texts, **layouts, chain[-1]: layouts[layout]}


def read_steps(reply: str) -> tuple[str, ...]:
    """The steps of a model's reply: a list and nothing else, numbered in order from 1 or with a bullet at each line.

    There are 2 to 12, each one line of at most 400 characters, without the signs of a template. Raises ParseError,
    which keeps the reply, for all else.
    """
    steps: list[str] = []
    numbered = reply.lstrip()[:1].isdecimal()
    for line in (line.strip() for line in reply.splitlines() if line.strip()):
        match, position = _STEP.fullmatch(line), len(steps) + 1
        if match is None or bool(match["number"]) != numbered:
            raise ParseError(f"not a list of steps alone: {line[:80]!r}", reply)
        if numbered and int(match["number"]) != position:
            raise ParseError(f"step {position} carries the number {int(match['number'])}", reply)
        if len(match["text"]) > LONGEST:
            raise ParseError(
                f"step {position} has {len(match['text'])} characters; at most {LONGEST}", reply
            )
        if any(sign in line for sign in _SYNTAX):
            raise ParseError(f"step {position} holds template syntax", reply)
        steps.append(match["text"])
    if not FEWEST <= len(steps) <= MOST:
        raise ParseError(f"{len(steps)} steps; expected {FEWEST} to {MOST}", reply)
    return tuple(steps)
