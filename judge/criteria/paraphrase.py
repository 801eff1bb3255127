"""A criterion in other words around its own: another layout that says the same."""

from __future__ import annotations

import re
from dataclasses import replace

from judge.core.errors import CriterionError
from judge.core.records import Criterion
from judge.criteria.loading import signed
from judge.criteria.template import builtin_prompts, own, read_text, sources

WORDINGS = ("b", "c")
"""The other wordings of the layout that judges one text."""
_LAYOUT = "layouts/pointwise.jinja"
_EXTENDS = re.compile(rf"""({{%[-+]?\s*extends\s+["']){re.escape(_LAYOUT)}(?=["'])""")


def reworded(criterion: Criterion, wording: str) -> Criterion:
    """The criterion in another of the WORDINGS, by the name `NAME~b`: its own text is the same, what is around differs.

    Raises CriterionError where its prompt has no words around it that could be said otherwise: it extends another
    layout than the built-in one, or none.
    """
    root = builtin_prompts() if criterion.language == "en" else builtin_prompts() / criterion.language
    texts = sources(criterion)
    if texts.get(_LAYOUT) != read_text(root / _LAYOUT):
        raise CriterionError(
            f"{criterion.path}: it does not extend the built-in {_LAYOUT}, which alone is there in other words"
        )
    other = f"layouts/pointwise_{wording}.jinja"
    found = {name: _EXTENDS.sub(rf"\g<1>{other}", text) for name, text in texts.items() if name != _LAYOUT}
    template = found.pop(own(criterion))
    found[other] = read_text(root / other)
    return signed(replace(criterion, name=f"{criterion.name}~{wording}", template=template, layouts=found))
