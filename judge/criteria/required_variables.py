"""What a criterion's rendering reads, and whether the data have it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence

from jinja2 import meta, nodes
from jinja2.visitor import NodeTransformer

from judge.core.errors import CriterionError, DataError
from judge.core.messages import option
from judge.core.records import Criterion, Sample
from judge.criteria.template import label_of, own, reference, sources, syntax, tree_of

HIDDEN = {
    "system": "a judge that knows which system wrote a text does not judge the text alone",
    "human": "a judge that sees the people's ratings repeats them",
    "item": "an item's id says nothing about the text, and would keep equal prompts from being asked once",
}
"""What no template may read, and why."""

_NAMES_OF_TEXTS = (("a", "b"), ("1", "2"), ("first", "second"), ("one", "two"))
_FIELDS = ("source", "reference", "references")


def needs(criterion: Criterion, texts: dict[str, str]) -> frozenset[str]:
    """The variables that a rendering reads and cannot do without, of the templates in `texts` (`sources`).

    A block that a criterion replaces does not count, nor does a variable that is tested with `is defined` or given
    a default. Raises CriterionError for one that no judge may see.
    """
    tree = nodes.Template(list(_flat(texts, own(criterion), ())), lineno=1)
    tree.set_environment(syntax())
    free = meta.find_undeclared_variables(tree)
    for name, reason in HIDDEN.items():
        if name in free:
            raise CriterionError(f"{_line(criterion, texts, name)}: {name} is never shown to the judge: {reason}")
    tested = [node.node for node in tree.find_all(nodes.Test) if node.name in ("defined", "undefined")]
    tested += [node.node for node in tree.find_all(nodes.Filter) if node.name in ("default", "d") and node.node]
    optional = {node.name for node in tested if isinstance(node, nodes.Name)}
    return frozenset(free - optional - {"this", "self", "super"})


def check(criterion: Criterion, samples: Sequence[Sample]) -> None:
    """Every sample has what the criterion's template reads.

    Raises CriterionError for a variable that no sample has, for a template that never shows the text it is to judge,
    and for a comparison that cannot tell who wins; DataError for a text that the data were read without (source,
    references), or that some samples lack, naming the first of them.
    """
    if criterion.pairwise:
        _check_comparison(criterion)
    wanted = criterion.needs - {"first", "second"} if criterion.pairwise else criterion.needs
    lacking = {name: [s for s in samples if not _has(s, name)] for name in sorted(wanted)}
    for name, rows in lacking.items():
        if rows and len(rows) == len(samples):
            raise _nowhere(criterion, name, samples)
    for name, rows in lacking.items():
        if rows:
            first = rows[0]
            raise DataError(
                f"{first.where + ': ' if first.where else ''}item {first.item!r} of system {first.system!r} has no "
                f"{name}, which the criterion {criterion.name} reads; {len(rows)} of {len(samples)} samples lack it"
            )
    if not criterion.pairwise and "output" not in criterion.needs:
        raise CriterionError(
            f"{criterion.path}: never shows the judged text; put {{{{ output | fenced('output') }}}} into it"
        )


def _check_comparison(criterion: Criterion) -> None:
    """The two texts are first and second, and the values say which of them an answer is for."""
    if "output" in criterion.needs:
        at = _line(criterion, sources(criterion), "output")
        raise CriterionError(f"{at}: a comparison has no output; its texts are first and second")
    scale = criterion.scale
    if (scale.low, scale.high) != (0, 1):
        raise CriterionError(
            f"{criterion.path}: scale: values are what an answer counts for the text shown first, 1 where it is better "
            "and 0 where the other is; write {labels: [A, B], values: [1, 0]}"
        )
    values = {label.casefold(): value for label, value in zip(scale.labels, scale.values, strict=True)}
    for first, second in _NAMES_OF_TEXTS:
        if {first, second} <= values.keys() and values[first] < values[second]:
            raise CriterionError(
                f"{criterion.path}: scale: {first} is the text shown first, so it counts 1 and {second} counts 0"
            )


def _has(sample: Sample, name: str) -> bool:
    """Whether a sample brings a variable; `render.context` holds exactly those."""
    if name == "source":
        return bool(sample.source)
    if name == "references" or (name == "reference" and sample.extra.get(name) is None):
        return bool(sample.references)
    return name == "output" or (name not in HIDDEN and sample.extra.get(name) is not None)


def _nowhere(criterion: Criterion, name: str, samples: Sequence[Sample]) -> CriterionError | DataError:
    """What to raise for a variable that no sample has."""
    candidates = {"output", *_FIELDS}.union(*(sample.extra for sample in samples))
    known = sorted(one for one in candidates if any(_has(sample, one) for sample in samples))
    if criterion.pairwise:
        known = sorted({"first", "second", *known} - {"output"})
    at = _line(criterion, sources(criterion), name)
    if name in _FIELDS:
        reads = f"the criterion {criterion.name} reads {name}, which no sample has"
        mend = (
            f"name its column with {option('map', {name: 'COLUMN'})}, or do without it: "
            f"{{% block {name} %}}{{% endblock %}}"
        )
        return DataError(f"{at}: {reads}; {mend} (the data has: {', '.join(known)})")
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return CriterionError(f"{at}: unknown variable {name!r}{hint} the data has: {', '.join(known)}")


def _line(criterion: Criterion, texts: dict[str, str], variable: str) -> str:
    """`file:line` of the first place that reads a variable."""
    trees = {name: tree_of(text) for name, text in texts.items()}
    readers = (name for name, tree in trees.items() if variable in meta.find_undeclared_variables(tree))
    reader = next(readers, own(criterion))
    lines = (node.lineno for node in trees[reader].find_all(nodes.Name) if node.name == variable)
    return f"{label_of(criterion, reader)}:{next(lines, 1)}"


def _flat(texts: dict[str, str], name: str, trail: tuple[str, ...]) -> Iterator[nodes.Node]:
    """What is rendered of a template: its base's body, every block as the last heir defines it."""
    chain: list[nodes.Template] = []
    wanted: str | None = name
    while wanted:
        if wanted in trail:
            raise CriterionError(f"{wanted}: templates that lead back to themselves: {' > '.join((*trail, wanted))}")
        trail = (*trail, wanted)
        chain.append(tree_of(texts[wanted]))
        parent = chain[-1].find(nodes.Extends)
        wanted = reference(wanted, parent) if parent else None
    blocks: dict[str, list[nodes.Block]] = {}
    for tree in chain:
        for block in tree.find_all(nodes.Block):
            blocks.setdefault(block.name, []).append(block)
    # Outside its blocks an heir prints nothing, but what it sets and imports holds.
    heirs = [node for tree in chain[:-1] for node in tree.body]
    kept = [node for node in heirs if not isinstance(node, (nodes.Extends, nodes.Block, nodes.Output))]
    flat = nodes.Template(kept + chain[-1].body, lineno=1)
    _Inline(blocks, lambda other: _flat(texts, other, trail) if other in texts else ()).visit(flat)
    yield from flat.body


class _Inline(NodeTransformer):
    """Puts what is rendered in the place of every block, include, and import that sees the context."""

    def __init__(
        self, blocks: dict[str, list[nodes.Block]], flat: Callable[[str], Iterator[nodes.Node] | tuple[()]]
    ) -> None:
        self._blocks = blocks
        self._flat = flat

    def visit_Block(self, node: nodes.Block) -> list[nodes.Node]:  # noqa: N802 (the visitor's own naming)
        scopes: list[nodes.Node] = []
        for block in self._blocks[node.name]:
            scopes.append(nodes.Scope(block.body, lineno=block.lineno))
            if not any(name.name == "super" for name in block.find_all(nodes.Name)):
                break
        return [self.generic_visit(scope) for scope in scopes]

    def visit_Include(self, node: nodes.Include) -> list[nodes.Node]:  # noqa: N802
        return [self._seen(node)]

    def visit_Import(self, node: nodes.Import) -> list[nodes.Node]:  # noqa: N802
        return [node, self._seen(node)]

    def visit_FromImport(self, node: nodes.FromImport) -> list[nodes.Node]:  # noqa: N802
        return [node, self._seen(node)]

    def _seen(self, node: nodes.Include | nodes.Import | nodes.FromImport) -> nodes.Scope:
        inside = list(self._flat(reference("", node))) if node.with_context else []
        return nodes.Scope(inside, lineno=node.lineno)
