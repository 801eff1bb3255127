"""The variables that a criterion's templates read, found without rendering them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

from jinja2 import meta, nodes
from jinja2.visitor import NodeTransformer

from judge.core.errors import CriterionError
from judge.core.records import Criterion
from judge.criteria.header import template_body
from judge.criteria.sandbox import MOST_TEMPLATES
from judge.criteria.template import (
    display_name,
    own_name,
    parse_cached,
    reference,
    template_parser,
    template_texts,
)

HIDDEN = {
    "system": "a judge that knows which system wrote a text does not judge the text alone",
    "human": "a judge that sees the people's ratings repeats them",
    "item": (
        "an item's id says nothing about the text, and makes equal prompts differ, so that each of "
        "them is sent"
    ),
}
"""The variables that no template may read, with the reason."""
# `x is defined`, `x | default("")`, `x | d`
_TESTS = ("defined", "undefined")
_DEFAULTS = ("default", "d")


class TemplateVariables(NamedTuple):
    """The variables of templates that are rendered as one.

    `optional` ones have a default or a test (`is defined`). `guarded` ones are tested for their
    truth (`{% if question %}`).
    """

    free: frozenset[str]
    optional: frozenset[str]
    guarded: frozenset[str]


def required_variables(criterion: Criterion, texts: dict[str, str]) -> frozenset[str]:
    """Return the variables that a rendering needs, of the templates in `texts` (`template_texts`).

    A block that a criterion replaces does not count, nor does a variable that is tested with
    `is defined` or that has a default. Raises CriterionError for one that no judge may see.
    """
    variables = variables_of(criterion, texts)
    for variable_name, reason in HIDDEN.items():
        if variable_name in variables.free:
            location = location_of(criterion, texts, variable_name)
            raise CriterionError(
                f"{location}: {variable_name} is never shown to the judge: {reason}"
            )
    return variables.free - variables.optional - {"this", "self", "super"}


def reads(criterion: Criterion, variable: str) -> bool:
    """Return whether a criterion's prompt shows a variable if the sample has it, needed or not."""
    return variable in variables_of(criterion, template_texts(criterion)).free


def variables_of(criterion: Criterion, texts: dict[str, str]) -> TemplateVariables:
    """Return the variables that are read by all that is rendered as one template.

    `texts` are those of `template_texts`. Raises CriterionError for templates that extend each
    other, or that are nested too deeply.
    """
    entry = own_name(criterion)
    body = template_body(texts[entry])
    layouts = {name: text for name, text in texts.items() if name != entry}
    is_referred_to = entry in body or any(entry in text for text in layouts.values())
    # The file's name and header change nothing if no template refers to the file. Without them all
    # criteria that are only a question have the same templates, which are then read once.
    if not is_referred_to:
        entry = "criterion"
        body = body.lstrip("\n")
    try:
        return _variables_of_texts(entry, body, tuple(layouts.items()))
    except RecursionError as error:
        raise CriterionError(
            f"{criterion.path}: its templates are nested too deeply"
        ) from error


# A program reads the same criterion many times: for an example, a paraphrase, or a suite's case.
@lru_cache(maxsize=MOST_TEMPLATES)
def _variables_of_texts(
    entry: str,
    body: str,
    layouts: tuple[tuple[str, str], ...],
) -> TemplateVariables:
    """Return the variables of a template without a header, called `entry`, and of its layouts."""
    flat_template = _FlatTemplate({entry: body, **dict(layouts)})
    tree = nodes.Template(flat_template.body(entry), lineno=1)
    tree.set_environment(template_parser())
    free = meta.find_undeclared_variables(tree)
    conditions = [node.test for node in tree.find_all(nodes.If)]
    conditions += [node.test for node in tree.find_all(nodes.CondExpr)]
    guarded: set[str] = set()
    for condition in conditions:
        guarded.update(_tested_for_truth(condition))
    return TemplateVariables(
        free=frozenset(free),
        optional=_optional_variables(tree),
        guarded=frozenset(guarded & free),
    )


def _optional_variables(tree: nodes.Template) -> frozenset[str]:
    """Return the variables with a default or a test."""
    tests = [test for test in tree.find_all(nodes.Test) if test.name in _TESTS]
    defaults = [call for call in tree.find_all(nodes.Filter) if call.name in _DEFAULTS]
    names: set[str] = set()
    for expression in (*tests, *defaults):
        checked = expression.node
        if isinstance(checked, nodes.Name):
            names.add(checked.name)
    return frozenset(names)


def _tested_for_truth(condition: nodes.Node) -> Iterator[str]:
    """Yield the variables whose emptiness decides a condition: both of `question and not topic`."""
    if isinstance(condition, nodes.Name):
        yield condition.name
    elif isinstance(condition, nodes.Not):
        yield from _tested_for_truth(condition.node)
    elif isinstance(condition, nodes.And | nodes.Or):
        yield from _tested_for_truth(condition.left)
        yield from _tested_for_truth(condition.right)


def location_of(criterion: Criterion, texts: dict[str, str], variable: str) -> str:
    """Return `file:line` of the first template that reads a variable."""
    if variable in criterion.show:
        return f"{criterion.path}: show"
    reader = own_name(criterion)
    for template_name, text in texts.items():
        tree = parse_cached(display_name(criterion, template_name), text)
        if variable in meta.find_undeclared_variables(tree):
            reader = template_name
            break
    label = display_name(criterion, reader)
    for node in parse_cached(label, texts[reader]).find_all(nodes.Name):
        if node.name == variable:
            return f"{label}:{node.lineno}"
    return f"{label}:1"


def _blocks_by_name(chain: Sequence[nodes.Template]) -> dict[str, list[nodes.Block]]:
    """Return the definitions of each block in templates that extend one another."""
    blocks: dict[str, list[nodes.Block]] = {}
    for tree in chain:
        for block in tree.find_all(nodes.Block):
            blocks.setdefault(block.name, []).append(block)
    return blocks


class _FlatTemplate(NodeTransformer):
    """Replaces every block, include, and import that sees the context by what is rendered.

    A template that is included again, perhaps by itself, counts once.
    """

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts
        # The definitions of each block, the last heir's first.
        self._blocks: dict[str, list[nodes.Block]] = {}
        self._included_names: set[str] = set()

    def body(self, template_name: str) -> list[nodes.Node]:
        """Return what is rendered of a template: the body of the template that it finally extends.

        Every block is as the last heir defines it.
        """
        self._included_names.add(template_name)
        outer_blocks = self._blocks
        chain = self._chain(template_name)
        self._blocks = _blocks_by_name(chain)
        # Outside its blocks an heir prints nothing, but its assignments and imports have effect.
        printing = (nodes.Extends, nodes.Block, nodes.Output)
        *heirs, base = chain
        statements: list[nodes.Node] = []
        for heir in heirs:
            statements += [node for node in heir.body if not isinstance(node, printing)]
        merged = nodes.Template(statements + base.body, lineno=1)
        flat: nodes.Template = self.visit(merged)
        self._blocks = outer_blocks
        return flat.body

    def _chain(self, template_name: str) -> list[nodes.Template]:
        """Return a template, the one that it extends, and so on."""
        names = [template_name]
        tree = parse_cached(template_name, self._texts[template_name])
        chain = [tree]
        while True:
            extends = tree.find(nodes.Extends)
            if extends is None:
                return chain
            parent = reference(names[-1], extends)
            if parent in names:
                cycle = " > ".join([*names, parent])
                raise CriterionError(
                    f"{parent}: a template that extends itself: {cycle}"
                )
            names.append(parent)
            tree = parse_cached(parent, self._texts[parent])
            chain.append(tree)

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        """Transform a copy of a node, because the trees of `parse_cached` are shared."""
        copied = copy(node)
        for field_name, value in node.iter_fields():
            if isinstance(value, list):
                # Jinja's transformer changes the list itself.
                setattr(copied, field_name, list(value))
        return super().generic_visit(copied, *args, **kwargs)

    def visit_Block(self, node: nodes.Block) -> list[nodes.Node]:  # noqa: N802 (jinja's naming)
        """Return a block as the scopes of its overriding blocks."""
        scopes: list[nodes.Node] = []
        for block in self._blocks.pop(node.name, []):
            scopes.append(nodes.Scope(block.body, lineno=block.lineno))
            names = {name_node.name for name_node in block.find_all(nodes.Name)}
            # Without `super()`, what the block overrides is not rendered.
            if "super" not in names:
                break
        return [self.generic_visit(scope) for scope in scopes]

    def visit_Include(self, node: nodes.Include) -> list[nodes.Node]:  # noqa: N802
        return [self._included(node)]

    def visit_Import(self, node: nodes.Import | nodes.FromImport) -> list[nodes.Node]:  # noqa: N802
        return [node, self._included(node)]

    visit_FromImport = visit_Import  # noqa: N815

    def _included(
        self, node: nodes.Include | nodes.Import | nodes.FromImport
    ) -> nodes.Scope:
        template_name = reference("", node) if node.with_context else ""
        is_known = template_name in self._texts
        body: list[nodes.Node] = []
        if is_known and template_name not in self._included_names:
            body = self.body(template_name)
        return nodes.Scope(body, lineno=node.lineno)
