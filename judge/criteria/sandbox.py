"""The Jinja that templates run in: its immutable sandbox, with limits on what a prompt and one operation may make.

A criterion's file is code of its owner, like a test file: no limit ends a loop that never ends.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from jinja2 import (
    BaseLoader,
    ChainableUndefined,
    FunctionLoader,
    StrictUndefined,
    Template,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
    Undefined,
    pass_context,
)
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from judge.core.records import Example, Form, ReplyKind, Scale

MOST_CHARACTERS = 10_000_000
"""What a prompt may have, and what `*` and `%` may make."""
_MOST_BITS = 1_000_000
"""What a product or a power of whole numbers may have."""
MOST_TEMPLATES = 4096
"""Templates that are kept ready. A run goes through all its criteria for each text, so one too few would keep none."""
_DIGEST_STEP = 8
_MEMORY_ADDRESS = re.compile(r"(?<![a-z])at(?: |%20|\+)0x[0-9a-f]{4}", re.IGNORECASE)
_INVISIBLE = re.compile(
    "[\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
"""Unicode's format characters (Cf), the variation selectors, and the joiner of graphemes."""
_RENDER_ERRORS = (
    TemplateError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError, MemoryError,
    NameError, SyntaxError,
)  # fmt: skip
_LIMITS: dict[type[Exception], str] = {
    MemoryError: "needs more memory than there is",
    RecursionError: "calls itself, or is nested, too deeply",
}
_WIDTH = re.compile(r"\d+")


class RenderError(Exception):
    """A template failed: why, and at which `file:line`, "" if that is unknown."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.place = place


class Templates(NamedTuple):
    """Templates to render: the name of the first one, and the name, text (without header) and label of each.

    A draft has the names of a sample's fields in place of a sample.
    """

    first: str
    texts: tuple[tuple[str, str, str], ...]
    draft: bool = False


@dataclass(frozen=True, slots=True)
class CriterionView:
    """What a template knows of its own criterion, as `this`.

    `lowest` and `highest` are the labels of least and greatest value; `whole` says that the labels are the whole
    numbers between them, without a gap, from the lowest up. `cut` marks where the material ends and the question
    begins: nothing, except where the two go to a decision endpoint apart, or several questions follow one material.
    `levels` are labels, or ranges of them, with their descriptions. `cite` says that a quote is asked for.
    `questions` has the key and the text of each question of a checklist that is asked here.
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
    question: str = ""
    levels: tuple[tuple[str, str], ...] = ()
    examples: tuple[Example, ...] = ()
    questions: tuple[tuple[str, str], ...] = ()
    cite: bool = False


class Slot(NamedTuple):
    """A placeholder for a text that is filled in later; `mark` is random, so that no template holds it."""

    name: str
    mark: str


class _Placeholder(ChainableUndefined):
    """A sample's field where there is no sample."""

    def __str__(self) -> str:
        return f"[{self._undefined_name}]"


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, strict and without chance: equal samples must give equal requests."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(
        self, loader: BaseLoader | None = None, undefined: type[Undefined] = StrictUndefined
    ) -> None:
        super().__init__(
            loader=loader, undefined=undefined, finalize=_printed,
            trim_blocks=True, lstrip_blocks=True, auto_reload=False,
        )  # fmt: skip
        del self.filters["random"], self.globals["lipsum"]
        self.filters["fenced"] = _fence

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute what one short operation could make so large that nothing else would fit into memory.

        Raises OverflowError, as Jinja's `range` does.
        """
        if operator == "%" and isinstance(left, str):
            _check_widths(left, right)
        elif isinstance(left, int) and isinstance(right, int):
            _check_bits(operator, left, right)
        elif operator == "*":
            _check_repetition(left, right)
        return super().call_binop(context, operator, left, right)


def _check_widths(text: str, values: Any) -> None:
    """Raise OverflowError if a field of `text % values` is too wide: `%1000000000d`, or `%*d` with such a number."""
    widths = [int(digits[:20]) for digits in _WIDTH.findall(text)] if "%" in text else []
    if "*" in text and isinstance(values, tuple):
        widths += [value for value in values if isinstance(value, int)]
    if max(widths, default=0) > MOST_CHARACTERS:
        raise OverflowError(f"% would make a text of more than {MOST_CHARACTERS:,} characters")


def _check_bits(operator: str, left: int, right: int) -> None:
    """Raise OverflowError if a product or a power is too long a number."""
    bits = 0
    if operator == "*":
        bits = left.bit_length() + right.bit_length()
    elif operator == "**" and abs(left) > 1:
        bits = left.bit_length() * right
    if bits > _MOST_BITS:
        raise OverflowError(f"{operator} would make a number of more than {_MOST_BITS:,} bits")


def _check_repetition(left: Any, right: Any) -> None:
    """Raise OverflowError if a text or a list, times a number, is too long."""
    for sequence, count in ((left, right), (right, left)):
        repeats = isinstance(sequence, str | list | tuple) and isinstance(count, int)
        if repeats and len(sequence) * count > MOST_CHARACTERS:
            unit = "characters" if isinstance(sequence, str) else "values"
            raise OverflowError(f"* would make more than {MOST_CHARACTERS:,} {unit}")


@pass_context
def _printed(context: Context, value: Any) -> Any:
    """Return what a prompt holds of a value.

    Raises ValueError for an object's place in memory that no variable holds: it differs in every run.
    """
    text = value if isinstance(value, str | Undefined) else str(value)
    if (
        isinstance(text, str)
        and ("0x" in text or "0X" in text)
        and _MEMORY_ADDRESS.search(text)
        and not any(map(_MEMORY_ADDRESS.search, strings(context.parent)))
    ):
        raise ValueError(
            "would print an object's place in memory: give a method its brackets, a filter |list"
        )
    return text


def fenced(text: object, label: str, among: Sequence[str] = ()) -> str:
    """A text between an opening and a closing mark, each on a line of its own: `<label key>` … `</label key>`.

    The `key` is one that neither the text holds nor any of those `among` which it stands: equal prompts get equal marks
    (caches), and no text can close its own or fake another's. Raises TypeError for a list.
    """
    if isinstance(text, Slot):
        return f"{text.mark}{text.name} {label}{text.mark}"
    if isinstance(text, (list, tuple, Mapping)):
        raise TypeError(
            f"fenced takes one text, not a {type(text).__name__}: write a for loop around it"
        )
    body = str(text)
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


def strings(value: Any) -> list[str]:
    """The texts in a variable of a template, and those of a criterion's examples."""
    if isinstance(value, str):
        return [value]
    parts: Iterable[Any] = ()
    if isinstance(value, CriterionView):
        parts = map(astuple, value.examples)
    elif isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple) and not isinstance(value, Slot):
        parts = value
    return [text for part in parts for text in strings(part)]


@pass_context
def _fence(context: Context, text: object, label: str) -> str:
    """The filter: among all texts that the template knows."""
    return fenced(text, label, () if isinstance(text, Slot) else strings(context.parent))


@lru_cache(maxsize=MOST_TEMPLATES)
def _compiled(templates: Templates) -> Template:
    texts = {name: (text, label, None) for name, text, label in templates.texts}
    environment = Sandbox(
        FunctionLoader(texts.get), _Placeholder if templates.draft else StrictUndefined
    )
    if templates.draft:
        environment.filters["fenced"] = pass_context(lambda _, text, label: str(text))
    return environment.get_template(templates.first)


def _plain(value: Any) -> Any:
    """Return a value of the data as JSON would hold it, so that a template gets no object with methods of its own."""
    if isinstance(value, str | CriterionView | Slot):
        return value
    if hasattr(value, "tolist"):  # NumPy's
        return _plain(value.tolist())
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return str(value)  # such as a date


def render(templates: Templates, variables: Mapping[str, Any]) -> str:
    """Render templates. Raises RenderError, for a prompt that becomes too long as soon as it is too long."""
    pieces: list[str] = []
    length = 0
    try:
        plain = {name: _plain(value) for name, value in variables.items()}
        for piece in _compiled(templates).generate(plain):
            pieces.append(piece)
            length += len(piece)
            if length > MOST_CHARACTERS:
                raise RenderError(f"makes a prompt of more than {MOST_CHARACTERS:,} characters")
    except TemplateSyntaxError as error:
        raise RenderError(error.message or "", f"{error.filename}:{error.lineno}") from error
    except _RENDER_ERRORS as error:
        labels, place = {label for _, _, label in templates.texts}, ""
        trace = error.__traceback__
        while trace:  # to the innermost line of a template
            file = trace.tb_frame.f_code.co_filename
            place = f"{file}:{trace.tb_lineno}" if file in labels else place
            trace = trace.tb_next
        reason = f"no template {error} here" if isinstance(error, TemplateNotFound) else str(error)
        raise RenderError(
            _LIMITS.get(type(error)) or reason or type(error).__name__, place
        ) from error
    return "".join(pieces)
