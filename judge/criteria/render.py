"""Criterion and sample or pair to `Prompt`.

Templates come as texts (`criteria.template_bodies`), so that what is rendered is what a run keeps. Judged text is data:
it is put in once, never rendered again, between marks that it cannot contain.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import meta, nodes

from judge.core.errors import ConfigError, CriterionError
from judge.core.format import one_line, text_name
from judge.core.records import Criterion, Prompt, Sample, Scale
from judge.criteria import sandbox
from judge.criteria.checklist import part_name
from judge.criteria.sandbox import (
    MOST_CHARACTERS,
    MOST_TEMPLATES,
    CriterionView,
    RenderError,
    Slot,
    Templates,
    fence_digest,
    fenced,
    strings,
)
from judge.criteria.template import MAX_CHARACTERS, parse_cached, read_text, shared_layout
from judge.data.rows import is_empty

_PER_SAMPLE_TEXTS = frozenset({"source", "output", "first", "second"})
"""What differs from sample to sample in most templates."""
_TRANSFORMING_NODES = (nodes.FilterBlock, nodes.AssignBlock, nodes.CallBlock, nodes.Macro)
"""What may do something with a text after it was printed."""


class MissingInput(CriterionError):
    """A text lacks something that the criterion reads. The other texts can be judged."""


class UnequalInput(CriterionError):
    """The two texts of a pair differ in something that the criterion reads. The other pairs can be judged."""


def _view_of(criterion: Criterion) -> CriterionView:
    scale = criterion.scale.asked
    same = ("title", "description", "steps", "reply", "question", "levels", "examples", "cite")
    return CriterionView(
        **{name: getattr(criterion, name) for name in same},
        scale=scale,
        lowest=scale.labels[scale.values.index(scale.low)],
        highest=scale.labels[scale.values.index(scale.high)],
        whole=scale.high - scale.low < len(scale.labels)
        and scale == Scale.integers(round(scale.low), round(scale.high)),
        form="merged" if criterion.together else criterion.form,
        # Of chance, and another one in every run: no text can hold it.
        cut=f"<cut {secrets.token_hex(16)}>"
        if criterion.together or criterion.form == "decision"
        else "",
        questions=tuple(
            (json.dumps(part_name(criterion.name, number), ensure_ascii=False), question.text)
            for number, question in enumerate(criterion.questions, 1)
        ),
    )


def _named(criterion: Criterion, templates: Mapping[str, str]) -> Templates:
    own = Path(criterion.path).name
    texts = tuple(
        (name, text, criterion.path if name == own else name) for name, text in templates.items()
    )
    return Templates(own, texts)


class Renderer:
    """A criterion's templates. `templates` are the texts by name, without headers (`criteria.template_bodies`)."""

    def __init__(self, criterion: Criterion, templates: Mapping[str, str]) -> None:
        self._criterion = criterion
        self._this = _view_of(criterion)
        self._templates = _named(criterion, templates)
        gaps = [_slots(label, text) for _, text, label in self._templates.texts]
        self._slots = None if None in gaps else frozenset[str]().union(*filter(None, gaps))
        self._fixed_text: tuple[list[str], list[str]] | None = None
        self._example_keys = _example_keys(self._this, ())

    def render(self, sample: Sample, rival: Sample | None = None) -> Prompt:
        """One user message for a sample, or for a pair of which `sample` is shown first.

        Of a criterion in the form `decision`, or a checklist whose questions share a request, the message is the
        material alone, and what follows the cut is the prompt's question.
        Raises CriterionError, with file and line, where the template fails or has no cut where one is needed,
        MissingInput for a sample that lacks what it reads, and UnequalInput for two that do not share it.
        """
        where = f"({sample.where + ': ' if sample.where else ''}item {sample.item!r})"
        if self._criterion.pairwise != (rival is not None):
            takes = "a pair of samples" if self._criterion.pairwise else "one sample"
            raise CriterionError(f"{self._criterion.path}: takes {takes} {where}")
        for text in (sample, rival):
            if text is not None and (lacking := lacking_inputs(self._criterion, text)):
                raise MissingInput(missing_message(self._criterion, text, lacking[0]))
        try:
            known = template_variables(sample, self._this, rival)
            if rival is not None:
                # What a comparison reads beside the two texts must be the same for both.
                for name in sorted(self._criterion.needs - known.keys()):
                    first, second = (
                        template_variables(side, self._this).get(name) for side in (sample, rival)
                    )
                    if first != second:
                        differs = (
                            f"differs between the systems {sample.system!r} and {rival.system!r}"
                        )
                        raise UnequalInput(
                            f"{self._criterion.path}: reads {name}, which {differs} {where}"
                        )
            absent = dict.fromkeys(self._criterion.guarded - known.keys(), "")
            material, question = self._fill_template(known | absent)
        except RenderError as error:
            raise CriterionError(
                f"{error.place or self._criterion.path}: {error} {where}"
            ) from error
        message = {"role": "user", "content": material}
        return Prompt(sample.item, sample.system, self._criterion.name, (message,), question)

    def _fill_template(self, known: Mapping[str, Any]) -> tuple[str, str]:
        """The material and the question with a sample's texts. What is around them is rendered once, if that can be."""
        if (
            self._slots is None
            or not self._slots <= known.keys()
            or (
                self._example_keys
                and _example_keys(self._this, strings(known)) != self._example_keys
            )
        ):
            return self._split_at_cut(sandbox.render(self._templates, known))
        if self._fixed_text is None:
            mark = f"<{secrets.token_hex(16)}>"
            gaps = {name: Slot(name, mark) for name in self._slots}
            gap = re.compile(f"{mark}(\\w+) (.*?){mark}", re.DOTALL)
            parts = self._split_at_cut(
                sandbox.render(self._templates, {**gaps, "this": self._this})
            )
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
                "{{ this.cut }} once, between the texts and what is asked about them (for a checklist, too)"
            )
        return parts[0], parts[1]


def _example_keys(this: CriterionView, among: Sequence[str]) -> list[str]:
    """The keys of the marks around a criterion's examples, which change if a text `among` which they stand has one."""
    examples = strings(this)
    return [fence_digest(text, (*examples, *among)) for text in examples]


@lru_cache(maxsize=MOST_TEMPLATES)
def _slots(label: str, template: str) -> frozenset[str] | None:
    """The texts that a template puts between marks, where that is all it does with any variable; None where it is not.

    What a prompt has around these texts is the same for every sample then.
    """
    tree = parse_cached(label, template)
    if any(tree.find(kind) for kind in _TRANSFORMING_NODES) or meta.find_undeclared_variables(
        tree
    ) - _PER_SAMPLE_TEXTS - {"this", "super"}:
        return None
    printed = [part for output in tree.find_all(nodes.Output) for part in output.nodes]
    fences = [
        part.node for part in printed if isinstance(part, nodes.Filter) and part.name == "fenced"
    ]
    texts = [
        node.name
        for node in fences
        if isinstance(node, nodes.Name) and node.name in _PER_SAMPLE_TEXTS
    ]
    supers = [
        part
        for part in printed
        if isinstance(part, nodes.Call) and part.node == nodes.Name("super", "load")
    ]
    used = sum(
        name.name in _PER_SAMPLE_TEXTS | {"self", "super"} for name in tree.find_all(nodes.Name)
    )
    return frozenset(texts) if used == len(texts) + len(supers) else None


def _fill(around: Sequence[str], texts: Mapping[str, Any]) -> str:
    """What is around texts, their names and their labels in turn, with the texts."""
    pieces = list(around[::3])
    among = strings(texts) if len(pieces) > 1 else []
    length = sum(map(len, pieces))
    for place, (name, label) in enumerate(zip(around[1::3], around[2::3], strict=True)):
        pieces[place] += fenced(texts[name], label, among)
        length += len(texts[name])
        if length > MOST_CHARACTERS:
            raise RenderError(f"makes a prompt of more than {MOST_CHARACTERS:,} characters")
    return "".join(pieces)


def template_variables(
    sample: Sample, this: CriterionView | None = None, rival: Sample | None = None
) -> dict[str, Any]:
    """The variables a template sees: what the sample has, and nothing for what it lacks or has empty.

    With a rival, the texts `first` (the sample's) and `second` in place of `output`, and of the rest what both samples
    have alike. Never the system's name, the people's ratings or the item's id, under whatever column they came.
    """
    if rival is not None:
        first, second = template_variables(sample, this), template_variables(rival, this)
        shared = {
            name: value for name, value in first.items() if name in second and value == second[name]
        }
        shared.pop("output", None)
        return {**shared, "first": sample.output, "second": rival.output}
    known = {name: value for name, value in sample.extra.items() if not is_empty(value)}
    references = [reference for reference in sample.references if not is_empty(reference)]
    if references:
        known.setdefault("reference", references[0])
    for name in ("system", "human", "item", "source", "references"):
        known.pop(name, None)
    if not is_empty(sample.source):
        known["source"] = sample.source
    if references:
        known["references"] = references
    known["output"] = sample.output
    known["this"] = this
    return known


def inputs(criterion: Criterion) -> frozenset[str]:
    """Return what a criterion's templates read of a text; of a pair, what both have to share."""
    return criterion.needs - {"first", "second"} if criterion.pairwise else criterion.needs


def lacking_inputs(criterion: Criterion, sample: Sample) -> list[str]:
    """Return what a criterion's templates cannot do without and this text does not have."""
    required = inputs(criterion) - criterion.guarded
    if not required:
        return []
    return sorted(required - template_variables(sample).keys())


def missing_message(criterion: Criterion, sample: Sample, name: str) -> str:
    """Say which text lacks what, and who reads it."""
    place = f"{sample.where}: " if sample.where else ""
    text = text_name(sample.item, sample.system)
    return f"{place}{text} has no {name}, which the criterion {criterion.name} reads"


def layout_renderer(criterion: Criterion, name: str) -> Callable[..., str]:
    """Return a function that renders a layout whose text holds no sample's texts (`criteria.shared_layout`).

    It takes the layout's variables and raises CriterionError.
    """
    file = f"layouts/{name}.jinja"
    text = shared_layout(criterion, name)
    templates = Templates(file, ((file, text, file),))

    def render(**variables: Any) -> str:
        try:
            return sandbox.render(templates, variables).strip()
        except RenderError as error:
            raise CriterionError(f"{error.place or file}: {error}") from error

    return render


def render_repair_question(criterion: Criterion) -> str:
    """Return the question for the score alone, in the criterion's language. Raises CriterionError."""
    name = (
        criterion.name if criterion.together else criterion.title
    )  # its name is its key in the reply
    return layout_renderer(criterion, "repair")(
        this=_view_of(criterion), pairwise=criterion.pairwise, name=name
    )


def render_drafting_prompt(
    criterion: Criterion, templates: Mapping[str, str], **more: Any
) -> Prompt:
    """What a model is asked for a draft, in the templates of `criteria.drafting`.

    It is shown the criterion's title, description, text and scale, and no sample: a sample's field is its name in
    brackets. `more` are further variables of the layout. Raises CriterionError where the text cannot be rendered so.
    """
    variables = {"this": _view_of(criterion), "pairwise": criterion.pairwise, **more}
    try:
        text = sandbox.render(_named(criterion, templates)._replace(draft=True), variables).strip()
    except RenderError as error:
        raise CriterionError(
            f"{criterion.path}: nothing can be drafted without a sample: {error}"
        ) from error
    return Prompt("", "", criterion.name, ({"role": "user", "content": text},))


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt under test: a Jinja file that reads the data's columns."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> PromptFile:
        """Raises ConfigError for a file that cannot be read, or is too long."""
        try:
            text = read_text(path)
        except CriterionError as error:
            raise ConfigError(str(error)) from error
        if len(text) > MAX_CHARACTERS:
            raise ConfigError(f"{path}: has more than {MAX_CHARACTERS:,} characters")
        return cls(path, text)

    def render(self, item: Sample) -> str:
        """Return the prompt for an item. Raises ConfigError, with the place in the template and the item."""
        known = {name: value for name, value in item.extra.items() if value is not None}
        known |= {"source": item.source} if item.source else {}
        try:
            label = str(self.path)
            prompt = sandbox.render(Templates(label, ((label, self.text, label),)), known).strip()
            if not prompt:
                raise RenderError("the prompt is empty")
            return prompt
        except RenderError as error:
            columns = ", ".join(known) or "none"
            place = f"{item.where}: " if item.where else ""
            raise ConfigError(
                f"{error.place or self.path}: {error} ({place}item {one_line(item.item, 40)!r}; the prompt can read: "
                f"{columns})"
            ) from error
