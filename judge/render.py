"""Criterion and sample to `Prompt`, by a Jinja that is sandboxed, strict, and reads nothing from the disk.

Templates come as texts (`criteria.bodies`), so that what is rendered is what a run keeps. Judged text is data: it
is put in once, never rendered again, between marks that it cannot contain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from judge.errors import CriterionError
from judge.records import Criterion, Prompt, ReplyKind, Sample, Scale

_KEY = 8
_LARGEST = 100_000
_RUNTIME = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
    MemoryError,
)


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, which bounds `range` but not what `*` and `**` can blow up."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise OverflowError("** is not for templates")
        if any(hasattr(side, "__len__") for side in (left, right)) and _size(left) * _size(right) > _LARGEST:
            raise OverflowError(f"* would make more than {_LARGEST:,} characters or entries")
        return super().call_binop(context, operator, left, right)


def _size(value: Any) -> int:
    return len(value) if hasattr(value, "__len__") else abs(int(value))


@dataclass(frozen=True, slots=True)
class This:
    """What a template knows of its own criterion, as `this`.

    `lowest` and `highest` are the labels of least and greatest value; `whole` says that the labels are the whole
    numbers between them, without a gap, from the lowest up.
    """

    title: str
    description: str
    scale: Scale
    steps: tuple[str, ...]
    reply: ReplyKind
    lowest: str
    highest: str
    whole: bool


def _this(criterion: Criterion) -> This:
    scale = criterion.scale
    return This(
        title=criterion.title,
        description=criterion.description,
        scale=scale,
        steps=criterion.steps,
        reply=criterion.reply,
        lowest=scale.labels[scale.values.index(scale.low)],
        highest=scale.labels[scale.values.index(scale.high)],
        whole=scale == Scale.integers(round(scale.low), round(scale.high)),
    )


def fenced(text: object, label: str) -> str:
    """A text between an opening and a closing mark, each on a line of its own: `<label key>` … `</label key>`.

    The key is the start of the text's own sha256, 8 hex digits or as many more as it takes for the text not to
    hold the key: equal texts get equal marks (caches), and no text can close its own. Raises TypeError for a list.
    """
    if isinstance(text, (list, tuple, Mapping)):
        raise TypeError(f"fenced takes one text, not a {type(text).__name__}: write a for loop around it")
    body = str(text)
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
    size = _KEY
    while digest[:size] in body and size < len(digest):
        size += _KEY
    key = digest[:size]
    return f"<{label} {key}>\n{body}\n</{label} {key}>"


class Renderer:
    """A criterion's templates, compiled once.

    `templates` are the texts by name, without headers, the criterion's own file among them (`criteria.bodies`).
    Raises CriterionError where they do not compile.
    """

    def __init__(self, criterion: Criterion, templates: Mapping[str, str]) -> None:
        own = Path(criterion.path).name
        self._criterion = criterion
        self._this = _this(criterion)
        self._labels = {name: criterion.path if name == own else name for name in templates}
        texts = {name: (text, self._labels[name], None) for name, text in templates.items()}
        env = _Environment(
            loader=FunctionLoader(texts.get),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        env.filters["fenced"] = fenced
        # Chance has no place in a prompt: equal samples must give equal requests.
        del env.filters["random"], env.globals["lipsum"]
        try:
            self._template = env.get_template(own)
        except TemplateSyntaxError as error:
            raise CriterionError(f"{error.filename}:{error.lineno}: {error.message}") from error

    def render(self, sample: Sample) -> Prompt:
        """One user message for a sample. Raises CriterionError, with file and line, where the template fails."""
        try:
            text = self._template.render(context(sample, self._this)).strip()
        except _RUNTIME as error:
            where = f"{sample.where}: " if sample.where else ""
            what = str(error) or type(error).__name__
            raise CriterionError(f"{self._at(error)}: {what} ({where}item {sample.item!r})") from error
        message = {"role": "user", "content": text}
        return Prompt(sample.item, sample.system, self._criterion.name, (message,))

    def _at(self, error: BaseException) -> str:
        """`file:line` of the innermost template line an error came through."""
        found = self._criterion.path
        files = set(self._labels.values())
        trace = error.__traceback__
        while trace:
            file = trace.tb_frame.f_code.co_filename
            if file in files:
                found = f"{file}:{trace.tb_lineno}"
            trace = trace.tb_next
        return found


def context(sample: Sample, this: This) -> dict[str, Any]:
    """The variables a template sees: what the sample has, and nothing for what it lacks.

    Never the system's name, the people's ratings or the item's id, under whatever column they came.
    """
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
