"""Criterion and sample or pair to `Prompt`, by a Jinja that is sandboxed, strict, and reads nothing from the disk.

Templates come as texts (`criteria.template_bodies`), so that what is rendered is what a run keeps. Judged text is data:
it is put in once, never rendered again, between marks that it cannot contain.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import (
    BytecodeCache,
    ChainableUndefined,
    FunctionLoader,
    StrictUndefined,
    TemplateError,
    TemplateSyntaxError,
    meta,
    nodes,
    pass_context,
)
from jinja2.bccache import Bucket
from jinja2.runtime import Context
from jinja2.utils import LRUCache

from judge.core.errors import CriterionError
from judge.core.records import Criterion, Form, Prompt, ReplyKind, Sample, Scale
from judge.criteria.sandbox import Sandbox, distinct_mark, step_limit
from judge.criteria.template import parse_template

_DIGEST_STEP = 8
_PER_SAMPLE_TEXTS = frozenset({"source", "output", "first", "second"})
"""What differs from sample to sample in most templates."""
_TRANSFORMING_NODES = (nodes.FilterBlock, nodes.AssignBlock, nodes.CallBlock, nodes.Macro)
"""What may do something with a text after it was printed."""
_INVISIBLE = re.compile(
    "[\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
"""Unicode's format characters (Cf), the variation selectors, and the joiner of graphemes."""
_JOINT = "layouts/merged.jinja"
_RENDER_ERRORS = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
    MemoryError,
)


class _Environment(Sandbox):
    """The sandbox that prompts are made in."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """What a criterion tells of itself needs no guard, which takes half of the time of a prompt."""
        if type(obj) is CriterionView and attribute in CriterionView.__slots__:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)


@dataclass(frozen=True, slots=True)
class CriterionView:
    """What a template knows of its own criterion, as `this`.

    `lowest` and `highest` are the labels of least and greatest value; `whole` says that the labels are the whole
    numbers between them, without a gap, from the lowest up. `cut` marks where the material ends and the question
    begins: nothing, except where the two go to a decision endpoint apart, or several questions follow one material.
    """

    title: str
    description: str
    scale: Scale
    steps: tuple[str, ...]
    reply: ReplyKind
    lowest: str
    highest: str
    whole: bool
    form: Form = "text"
    cut: str = ""


def _view_of(criterion: Criterion) -> CriterionView:
    scale = criterion.scale
    return CriterionView(
        title=criterion.title,
        description=criterion.description,
        scale=scale,
        steps=criterion.steps,
        reply=criterion.reply,
        lowest=scale.labels[scale.values.index(scale.low)],
        highest=scale.labels[scale.values.index(scale.high)],
        whole=scale == Scale.integers(round(scale.low), round(scale.high)),
        form="merged" if criterion.merged else criterion.form,
        # Of chance, and another one in every run: no text can hold it.
        cut=f"<cut {secrets.token_hex(16)}>" if criterion.merged or criterion.form == "decision" else "",
    )


class _Slot(NamedTuple):
    """Stands in the place of a text that is put in later; `mark` is of chance, so that no template holds it."""

    name: str
    mark: str


def fenced(text: object, label: str, among: Sequence[str] = ()) -> str:
    """A text between an opening and a closing mark, each on a line of its own: `<label key>` … `</label key>`.

    The `key` is one that neither the text holds nor any of those `among` which it stands: equal prompts get equal marks
    (caches), and no text can close its own or fake another's. Raises TypeError for a list.
    """
    if isinstance(text, _Slot):
        return f"{text.mark}{text.name} {label}{text.mark}"
    if isinstance(text, (list, tuple, Mapping)):
        raise TypeError(f"fenced takes one text, not a {type(text).__name__}: write a for loop around it")
    body = text if isinstance(text, str) else distinct_mark(str(text), [text])
    mark = fence_digest(body, tuple(among))
    return f"<{label} {mark}>\n{body}\n</{label} {mark}>"


@lru_cache(maxsize=64)
def fence_digest(text: str, among: tuple[str, ...] = ()) -> str:
    """What the marks around a text carry: the start of its own sha256, 8 hex digits.

    As many more where the text or one of those `among` which it stands holds them, and where one holds them all, those
    of the digest's digest. To hold them is to show them: in capitals, too, or with characters between that nobody sees.
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    size = _DIGEST_STEP
    texts = [_visible_text(content) for content in (text, *among)]
    while any(digest[:size] in content for content in texts):
        if size < len(digest):
            size += _DIGEST_STEP
        else:
            digest = hashlib.sha256(digest.encode()).hexdigest()
    return digest[:size]


@lru_cache(maxsize=64)
def _visible_text(text: str) -> str:
    """A text without case and without what is not seen of it."""
    return (text if text.isascii() else _INVISIBLE.sub("", text)).casefold()


def _strings(value: Any) -> list[str]:
    """The texts in a variable of a template."""
    texts: list[str] = []
    pending = [value]
    while pending:
        entry = pending.pop()
        if isinstance(entry, str):
            texts.append(entry)
        elif isinstance(entry, list | tuple):
            pending += entry
        elif isinstance(entry, Mapping):
            pending += entry.values()
    return texts


@pass_context
def _fence(context: Context, text: object, label: str) -> str:
    """The filter: among all texts that the template knows."""
    return fenced(text, label, () if isinstance(text, _Slot) else _strings(context.parent))


class _CompiledTemplates(BytecodeCache):
    """Code of templates by their names and texts, in memory alone: criteria share their layouts."""

    def __init__(self) -> None:
        self._codes = LRUCache(256)

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key, bucket.checksum] = bucket.code


_COMPILED = _CompiledTemplates()


def _environment(templates: Mapping[str, tuple[str, str, None]]) -> _Environment:
    """Jinja as every prompt has it. `templates` are text and label by name."""
    environment = _Environment(FunctionLoader(templates.get), StrictUndefined, {"fenced": _fence})
    environment.bytecode_cache = _COMPILED
    return environment


class Renderer:
    """A criterion's templates, compiled once.

    `templates` are the texts by name, without headers, the criterion's own among them (`criteria.template_bodies`).
    Raises CriterionError where they do not compile.
    """

    def __init__(self, criterion: Criterion, templates: Mapping[str, str]) -> None:
        own_name = Path(criterion.path).name
        self._criterion = criterion
        self._this = _view_of(criterion)
        self._labels = {name: criterion.path if name == own_name else name for name in templates}
        texts = {name: (text, self._labels[name], None) for name, text in templates.items()}
        try:
            self._template = _environment(texts).get_template(own_name)
            gaps = [_slots(text) for text in templates.values()]
        except TemplateSyntaxError as error:
            raise CriterionError(f"{error.filename}:{error.lineno}: {error.message}") from error
        self._slots = None if None in gaps else frozenset[str]().union(*filter(None, gaps))
        self._fixed_text: tuple[list[str], list[str]] | None = None

    def render(self, sample: Sample, rival: Sample | None = None) -> Prompt:
        """One user message for a sample, or for a pair of which `sample` is shown first.

        Of a criterion in the form `decision`, or one that is merged with others, the message is the material alone, and
        what follows the cut is the prompt's question.
        Raises CriterionError, with file and line, where the template fails, has no cut where one is needed, or reads
        what the two samples do not share.
        """
        where = f"({sample.where + ': ' if sample.where else ''}item {sample.item!r})"
        if self._criterion.pairwise != (rival is not None):
            takes = "a pair of samples" if self._criterion.pairwise else "one sample"
            raise CriterionError(f"{self._criterion.path}: takes {takes} {where}")
        try:
            known = template_variables(sample, self._this, rival)
            if rival is not None:
                # What a comparison reads beside the two texts must be the same for both.
                for name in sorted(self._criterion.needs - known.keys()):
                    first, second = (template_variables(side, self._this).get(name) for side in (sample, rival))
                    if first != second:
                        raise ValueError(
                            f"reads {name}, which differs between the systems {sample.system!r} and {rival.system!r}"
                        )
            with step_limit():
                material, question = self._fill_template(known)
        except _RENDER_ERRORS as error:
            reason = str(error) or type(error).__name__
            raise CriterionError(f"{self._location(error)}: {reason} {where}") from error
        message = {"role": "user", "content": material}
        return Prompt(sample.item, sample.system, self._criterion.name, (message,), question)

    def _fill_template(self, known: Mapping[str, Any]) -> tuple[str, str]:
        """The material and the question with a sample's texts. What is around them is rendered once, if that can be."""
        if self._slots is None or not self._slots <= known.keys():
            return self._split_at_cut(self._template.render(known))
        if self._fixed_text is None:
            mark = f"<{secrets.token_hex(16)}>"
            gaps = {name: _Slot(name, mark) for name in self._slots}
            gap = re.compile(f"{mark}(\\w+) (.*?){mark}", re.DOTALL)
            parts = self._split_at_cut(self._template.render({**gaps, "this": self._this}))
            self._fixed_text = gap.split(parts[0]), gap.split(parts[1])
        return _fill(self._fixed_text[0], known), _fill(self._fixed_text[1], known)

    def _split_at_cut(self, text: str) -> tuple[str, str]:
        """The material and the question; all is material where there is no cut."""
        if not self._this.cut:
            return text.strip(), ""
        parts = [part.strip() for part in text.split(self._this.cut)]
        if len(parts) != 2 or not all(parts):
            raise CriterionError(
                f"{self._criterion.path}: a decision endpoint gets the material and the question apart; put "
                "{{ this.cut }} once, between the texts and what is asked about them (for --merge-criteria, too)"
            )
        return parts[0], parts[1]

    def _location(self, error: BaseException) -> str:
        """`file:line` of the innermost template line an error came through."""
        place = self._criterion.path
        files = set(self._labels.values())
        trace = error.__traceback__
        while trace:
            file = trace.tb_frame.f_code.co_filename
            if file in files:
                place = f"{file}:{trace.tb_lineno}"
            trace = trace.tb_next
        return place


@lru_cache
def _slots(template: str) -> frozenset[str] | None:
    """The texts that a template puts between marks, where that is all it does with any variable; None where it is not.

    What a prompt has around these texts is the same for every sample then.
    """
    tree = parse_template(template)
    if any(tree.find(kind) for kind in _TRANSFORMING_NODES) or meta.find_undeclared_variables(
        tree
    ) - _PER_SAMPLE_TEXTS - {"this", "super"}:
        return None
    printed = [part for output in tree.find_all(nodes.Output) for part in output.nodes]
    fences = [part.node for part in printed if isinstance(part, nodes.Filter) and part.name == "fenced"]
    texts = [node.name for node in fences if isinstance(node, nodes.Name) and node.name in _PER_SAMPLE_TEXTS]
    supers = [part for part in printed if isinstance(part, nodes.Call) and part.node == nodes.Name("super", "load")]
    used = sum(name.name in _PER_SAMPLE_TEXTS | {"self", "super"} for name in tree.find_all(nodes.Name))
    return frozenset(texts) if used == len(texts) + len(supers) else None


def _fill(around: Sequence[str], texts: Mapping[str, Any]) -> str:
    """What is around texts, their names and their labels in turn, with the texts."""
    pieces = list(around[::3])
    among = _strings(texts) if len(pieces) > 1 else []
    for place, (name, label) in enumerate(zip(around[1::3], around[2::3], strict=True)):
        pieces[place] += fenced(texts[name], label, among)
    return "".join(pieces)


def template_variables(sample: Sample, this: CriterionView, rival: Sample | None = None) -> dict[str, Any]:
    """The variables a template sees: what the sample has, and nothing for what it lacks.

    With a rival, the texts `first` (the sample's) and `second` in place of `output`, and of the rest what both samples
    have alike. Never the system's name, the people's ratings or the item's id, under whatever column they came.
    """
    if rival is not None:
        first, second = template_variables(sample, this), template_variables(rival, this)
        shared = {name: value for name, value in first.items() if name in second and value == second[name]}
        shared.pop("output", None)
        return {**shared, "first": sample.output, "second": rival.output}
    known = {name: value for name, value in sample.extra.items() if value is not None}
    if sample.references:
        known.setdefault("reference", sample.references[0])
    for name in ("system", "human", "item", "source", "references"):
        known.pop(name, None)
    if sample.source:
        known["source"] = sample.source
    if sample.references:
        known["references"] = list(sample.references)
    known["output"] = sample.output
    known["this"] = this
    return known


class MultiCriterionLayout:
    """The layout that puts the questions of several criteria after one material; `layout` is its text."""

    def __init__(self, layout: str) -> None:
        self._template = _environment({_JOINT: (layout, _JOINT, None)}).get_template(_JOINT)

    def render(self, prompts: Sequence[Prompt]) -> str:
        """The material that these prompts share, and their questions. Raises CriterionError."""
        questions = [{"name": p.criterion, "key": json.dumps(p.criterion), "text": p.question} for p in prompts]
        try:
            with step_limit():
                text = self._template.render(questions=questions).strip()
        except _RENDER_ERRORS as error:
            raise CriterionError(f"{_JOINT}: {error or type(error).__name__}") from error
        return f"{prompts[0].messages[0]['content']}\n\n{text}"


class _Placeholder(ChainableUndefined):
    """A sample's field where there is no sample."""

    def __str__(self) -> str:
        return f"[{self._undefined_name}]"


def render_step_drafting_prompt(criterion: Criterion, templates: Mapping[str, str]) -> Prompt:
    """What a model is asked for a draft of a criterion's steps, in the templates of `criteria.drafting`.

    It is shown the criterion's title, description, text and scale, and no sample: a sample's field is its name in
    brackets. Raises CriterionError where the criterion's text cannot be rendered so.
    """
    texts = {name: (text, name, None) for name, text in templates.items()}
    env = _Environment(FunctionLoader(texts.get), _Placeholder, {"fenced": lambda text, label: str(text)})
    try:
        template = env.get_template(Path(criterion.path).name)
        with step_limit():
            text = template.render(this=_view_of(criterion), pairwise=criterion.pairwise).strip()
    except _RENDER_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise CriterionError(f"{criterion.path}: steps cannot be drafted without a sample: {reason}") from error
    return Prompt("", "", criterion.name, ({"role": "user", "content": text},))
