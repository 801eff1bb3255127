"""The Jinja that templates run in: its immutable sandbox, with limits on the size of results.

A criterion's file is code of its owner, like a test file: no limit ends an endless loop.
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

from judge.core.records import Example, Form, Judged, ReplyKind, Scale
from judge.data.conversations import is_conversation

MOST_CHARACTERS = 10_000_000
"""Of a prompt, and of a result of `*` and `%`."""
# Of a product or a power of whole numbers.
_MOST_BITS = 1_000_000
MOST_TEMPLATES = 4096
"""Templates that are cached. A run goes through all its criteria for each text, so a cache with one
place too few would never have a hit."""
_KEY_STEP = 8
# "<Foo object at 0x7f3a>", also in a URL: "at%200x7f3a"
_MEMORY_ADDRESS = re.compile(r"(?<![a-z])at(?: |%20|\+)0x[0-9a-f]{4}", re.IGNORECASE)
# Unicode's format characters (Cf), the variation selectors, and the joiner of graphemes: "a\u200bb"
# looks like "ab".
_INVISIBLE = re.compile(
    "[\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
_RENDER_ERRORS = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
    MemoryError,
    NameError,
    SyntaxError,
)
# These errors have no message of their own, or one about Python.
_LIMITS: dict[type[Exception], str] = {
    MemoryError: "needs more memory than is available",
    RecursionError: "calls itself, or is nested, too deeply",
}
# The 10 of "%10d"
_WIDTH = re.compile(r"\d+")


class RenderError(Exception):
    """A template failed, with the reason. `location` is `file:line`, "" if that is unknown."""

    def __init__(self, reason: str, location: str = "") -> None:
        super().__init__(reason)
        self.location = location


class Templates(NamedTuple):
    """Templates to render.

    `first` is the name of the first one. `texts` are the name, the text (without header) and the
    label of each.

    A draft has the names of a sample's fields in place of a sample.
    """

    first: str
    texts: tuple[tuple[str, str, str], ...]
    draft: bool = False


@dataclass(frozen=True, slots=True)
class CriterionView:
    """A criterion as its template sees it, as `this`.

    `lowest` and `highest` are the labels of least and greatest value; `whole` is whether the labels
    are all whole numbers from the lowest to the highest, in this order. `levels` are labels, or
    ranges of them, with their descriptions. `cite` is whether the judge has to quote a sentence.
    `judged` is the output, or the whole conversation that ends with it. `asks` is whether the
    question is one, or else an order or a description.

    `cut` marks the end of the material and the beginning of the question. It is "" unless they go
    to a decision endpoint separately, or several questions follow one material. `questions` are the
    key and the text of each question of a checklist in this request.
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
    asks: bool = True
    levels: tuple[tuple[str, str], ...] = ()
    examples: tuple[Example, ...] = ()
    questions: tuple[tuple[str, str], ...] = ()
    cite: bool = False
    judged: Judged = "output"


class Slot(NamedTuple):
    """A placeholder for a text that is filled in later.

    `mark` is random, so that no template contains it.
    """

    name: str
    mark: str


class _Placeholder(ChainableUndefined):
    """A field of a sample in a prompt without a sample: the field's name in brackets."""

    def __str__(self) -> str:
        return f"[{self._undefined_name}]"


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, strict and deterministic: equal samples must give equal requests."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(
        self,
        loader: BaseLoader | None = None,
        undefined: type[Undefined] = StrictUndefined,
    ) -> None:
        super().__init__(
            loader=loader,
            undefined=undefined,
            finalize=_to_text,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        # These two give another result each time.
        del self.filters["random"]
        del self.globals["lipsum"]
        self.filters["fenced"] = _fence

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute an operation whose result might not fit into memory.

        Raises OverflowError if the result is too large, as Jinja's `range` does.
        """
        if operator == "%" and isinstance(left, str):
            _check_widths(left, right)
        elif isinstance(left, int) and isinstance(right, int):
            _check_bits(operator, left, right)
        elif operator == "*":
            _check_repetition(left, right)
        return super().call_binop(context, operator, left, right)


def _check_widths(text: str, values: Any) -> None:
    """Raise OverflowError if a field of `text % values` is too wide.

    It is in `%1000000000d`, or in `%*d` with such a number among the values.
    """
    widths: list[int] = []
    if "%" in text:
        # 20 digits are too wide already, and Python refuses to read more than 4,300.
        widths += [int(digits[:20]) for digits in _WIDTH.findall(text)]
    if "*" in text and isinstance(values, tuple):
        widths += [value for value in values if isinstance(value, int)]
    if max(widths, default=0) > MOST_CHARACTERS:
        limit = f"{MOST_CHARACTERS:,} characters"
        raise OverflowError(f"% would make a text of more than {limit}")


def _check_bits(operator: str, left_operand: int, right_operand: int) -> None:
    """Raise OverflowError if a product or a power is too long a number."""
    bits = 0
    if operator == "*":
        bits = left_operand.bit_length() + right_operand.bit_length()
    elif operator == "**" and abs(left_operand) > 1:
        bits = left_operand.bit_length() * right_operand
    if bits > _MOST_BITS:
        raise OverflowError(
            f"{operator} would make a number of more than {_MOST_BITS:,} bits"
        )


def _check_repetition(left_operand: Any, right_operand: Any) -> None:
    """Raise OverflowError if a text or a list, times a number, is too long."""
    both_orders = ((left_operand, right_operand), (right_operand, left_operand))
    for sequence, count in both_orders:
        repeats = isinstance(sequence, str | list | tuple) and isinstance(count, int)
        if repeats and _printed_length(sequence) * count > MOST_CHARACTERS:
            limit = f"{MOST_CHARACTERS:,} characters"
            raise OverflowError(f"* would make more than {limit}")


def _printed_length(value: Any) -> int:
    """Return how many characters a text, or a list with all its texts, prints at least."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list | tuple):
        return sum(1 + _printed_length(entry) for entry in value)
    return 0


@pass_context
def _to_text(context: Context, value: Any) -> Any:
    """Convert a printed value to text.

    Raises ValueError for a memory address that is in no variable, because it differs in every run.
    """
    text = value if isinstance(value, str | Undefined) else str(value)
    if not isinstance(text, str) or not _has_memory_address(text):
        return text
    # A text of the data may contain an address.
    if any(map(_has_memory_address, strings(context.parent))):
        return text
    raise ValueError(
        "would print an object's memory address: call a method with (), and end a filter such as "
        "map with |list"
    )


def _has_memory_address(text: str) -> bool:
    # The first test is much faster, and almost always false.
    has_prefix = "0x" in text or "0X" in text
    return has_prefix and _MEMORY_ADDRESS.search(text) is not None


def fenced(text: object, label: str, among: Sequence[str] = ()) -> str:
    """Return a text between two marks, each on its own line: `<label key>` and `</label key>`.

    The `key` occurs neither in the text nor in the texts `among` which it stands. Equal prompts get
    equal marks, for caches, and no text can close its own mark or fake another's.

    Of a conversation, each message is between marks of its role, and all are between two marks.
    Raises TypeError for any other list.
    """
    if isinstance(text, Slot):
        return f"{text.mark}{text.name} {label}{text.mark}"
    if is_conversation(text):
        turns = [fenced(turn["content"], turn["role"], among) for turn in text]
        text = "\n".join(turns)
    if isinstance(text, (list, tuple, Mapping)):
        raise TypeError(
            f"fenced takes one text, not a {type(text).__name__}: write a for loop around it"
        )
    body = str(text)
    key = fence_digest(body, tuple(among))
    return f"<{label} {key}>\n{body}\n</{label} {key}>"


# All criteria are asked about a text, and each of their prompts has the same texts.
@lru_cache(maxsize=64)
def fence_digest(text: str, among: tuple[str, ...] = ()) -> str:
    """Return the key of a fence.

    It is the shortest prefix of the text's SHA-256, in steps of 8 hex digits, that occurs neither
    in the text nor in those `among` which it stands, ignoring case and invisible characters. If
    even the whole digest occurs, it is hashed again.
    """
    # A text may hold a lone surrogate, which UTF-8 alone refuses.
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    size = _KEY_STEP
    texts = [_visible_text(content) for content in (text, *among)]
    while any(digest[:size] in content for content in texts):
        if size < len(digest):
            size += _KEY_STEP
        else:
            digest = hashlib.sha256(digest.encode()).hexdigest()
    return digest[:size]


@lru_cache(maxsize=64)
def _visible_text(text: str) -> str:
    """Return a text case-folded and without invisible characters."""
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    return text.casefold()


def strings(value: Any) -> list[str]:
    """Return the texts in a variable of a template. A criterion's texts are its examples."""
    if isinstance(value, str):
        return [value]
    parts: Iterable[Any] = ()
    if isinstance(value, CriterionView):
        parts = map(astuple, value.examples)
    elif isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, list | tuple) and not isinstance(value, Slot):
        parts = value
    texts: list[str] = []
    for part in parts:
        texts += strings(part)
    return texts


@pass_context
def _fence(context: Context, text: object, label: str) -> str:
    """Fence a text among all texts that the template sees: the filter `fenced`."""
    among = () if isinstance(text, Slot) else strings(context.parent)
    return fenced(text, label, among)


@lru_cache(maxsize=MOST_TEMPLATES)
def _compiled(templates: Templates) -> Template:
    texts: dict[str, tuple[str, str, None]] = {}
    for template_name, text, label in templates.texts:
        texts[template_name] = (text, label, None)
    undefined = _Placeholder if templates.draft else StrictUndefined
    environment = Sandbox(FunctionLoader(texts.get), undefined)
    if templates.draft:
        environment.filters["fenced"] = pass_context(lambda _, text, label: str(text))
    return environment.get_template(templates.first)


def _plain(value: Any) -> Any:
    """Return a value of the data as JSON would have it.

    So a template gets no object with methods of its own.
    """
    if isinstance(value, str | CriterionView | Slot):
        return value
    # A scalar or an array of NumPy.
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    # Such as a date.
    return str(value)


def render(templates: Templates, variables: Mapping[str, Any]) -> str:
    """Render templates.

    Raises RenderError. If a prompt becomes too long, rendering stops there.
    """
    pieces: list[str] = []
    length = 0
    try:
        plain = {name: _plain(value) for name, value in variables.items()}
        for piece in _compiled(templates).generate(plain):
            pieces.append(piece)
            length += len(piece)
            if length > MOST_CHARACTERS:
                limit = f"{MOST_CHARACTERS:,} characters"
                raise RenderError(f"makes a prompt of more than {limit}")
    except TemplateSyntaxError as error:
        location = f"{error.filename}:{error.lineno}"
        raise RenderError(error.message or "", location) from error
    except _RENDER_ERRORS as error:
        reason = _LIMITS.get(type(error)) or str(error) or type(error).__name__
        if isinstance(error, TemplateNotFound):
            reason = f"no template {error} here"
        raise RenderError(reason, _location_in_template(templates, error)) from error
    return "".join(pieces)


def _location_in_template(templates: Templates, error: BaseException) -> str:
    """Return `file:line` of the innermost template in a traceback, "" if there is none."""
    labels = {label for _, _, label in templates.texts}
    location = ""
    trace = error.__traceback__
    while trace:
        file = trace.tb_frame.f_code.co_filename
        if file in labels:
            location = f"{file}:{trace.tb_lineno}"
        trace = trace.tb_next
    return location
