"""The values that travel between the layers: frozen, slotted, standard library only.

A number is real (`Score`) or it is a `Failure`; nothing here is ever -1, NaN or an invented reply.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from itertools import pairwise
from math import isclose
from numbers import Integral
from pathlib import PurePath
from typing import Any, Literal

from judge.core.errors import CriterionError, ParseError
from judge.core.normalization import whole_value
from judge.core.signature import Signature
from judge.core.text_digests import ANY_SOURCE, seen_digest

ReplyKind = Literal["score", "score_then_reason", "reason_then_score"]
"""What a reply has to contain, in this order."""
Form = Literal["text", "json", "decision", "merged"]
"""The form of an answer: text, a JSON object (structured output), the answer to a typed question,
or one key of a JSON object about several criteria."""
Question = Literal["score", "choice", "predicate"]
"""The types of question that a decision endpoint takes."""
Judged = Literal["output", "conversation"]
"""What a criterion judges: the output alone, or the whole conversation that ends with it."""
Ask = Literal["together", "each"]
"""How the questions of a checklist are asked: all in one request, or in a request each."""
Ignored = Literal["sentence order"]
"""What a score must not depend on."""
Unit = Literal["judgment", "question", "output"]
"""What plans and progress count: judgments, single questions of checklists, or outputs to write."""
Better = Literal["higher", "lower"]
"""The better end of a scale."""
Reading = Literal["strict", "prose", "repaired"]
"""How a score was read: in the requested form, out of a sentence, or after a repair question."""
Message = Mapping[str, str]
"""A message to a model, with `role` and `content`."""

IDENTICAL = "identical"
"""The method of a comparison of two equal texts, which needs no judge."""
ABSTAINED = "Abstained"
"""The error of a value that a metric does not compute because the text is outside its range."""
# Endpoints of typed questions take at most 10 levels (llama.cpp answers 400 for 11).
_MOST_LEVELS = 10
# A part of a layout such as
#   {% if this.levels %}{% block levels %}
#   …
#   {% endblock %}{% endif %}
_OPTIONAL_PART = re.compile(
    r"^{% (?:el)?if this\.(levels|examples|cite) %}{% block \1 %}\n"
    r".*?^{% endblock %}(?:{% endif %})?\n",
    re.DOTALL | re.MULTILINE,
)
# A header between two lines "---" at the start of a template.
_HEADER = re.compile(r"\A---[ \t]*\n.*?^---[ \t]*$", re.DOTALL | re.MULTILINE)
# `ignores: [sentence order]`, or a key and the lines of its list: what shapes no prompt.
_KEY_OF_TESTS = re.compile(
    r"^(?:ignores|paraphrases):.*\n(?:\n*(?:[ \t]+\S|-[ \t]).*\n)*", re.MULTILINE
)
# A value this close to `pass_at` is equal to it: relative, and in points of the scale.
_ROUNDING = 1e-9
_decode = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder(separators=(",", ":")).encode
_encode_sorted = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":")
).encode


@dataclass(frozen=True, slots=True)
class Sample:
    """One system's text for one item.

    - `human`: the human rating by criterion, or the mean if there are several raters.
    - `ratings`: the single ratings, None if a rater gave none; `raters` are the raters' names, in
      the same order, if known.
    - `extra`: all other columns of the data.
    - `where`: the row's location for messages, such as `data.jsonl:17`.
    - `withheld`: the criteria whose rating is left out because it was used to make their prompt.
    - `cluster`: the item without the number of the output: `doc-1` for the item `doc-1 (2)`.
    """

    item: str
    system: str
    output: str
    source: str | None = None
    references: tuple[str, ...] = ()
    human: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    where: str = ""
    ratings: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    withheld: tuple[str, ...] = ()
    raters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cluster: str = ""

    @property
    def source_item(self) -> str:
        """The item of the data, which several generations of one system share."""
        return self.cluster or self.item

    @property
    def key(self) -> tuple[str, str]:
        """The text's item and system."""
        return self.item, self.system

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that a judge may quote: the output and the source."""
        return self.output, self.source or ""

    @property
    def digests(self) -> frozenset[str]:
        """The digests that the text may have in `Criterion.used`: with its source, and alone."""
        # A text without a source may be an example that has one.
        sources = [self.source, None] if self.source else [None, ANY_SOURCE]
        return frozenset(seen_digest(source, self.output) for source in sources)


ALIASES = {
    "input": "source",
    "actual_output": "output",
    "expected_output": "references",
}
"""Fields of a sample by the names that other tools give them."""
MAX_LABELS = 1_000
"""Of a scale. A reply is compared with the spellings of all labels."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The answers that a criterion allows: `labels` for the judge, and their numeric `values`.

    With `halves`, every second label is a half point, which counts although the prompt does not
    offer it.
    """

    labels: tuple[str, ...]
    values: tuple[float, ...]
    halves: bool = False

    @classmethod
    def integers(cls, low: int, high: int, step: int = 1) -> Scale:
        """Return the scale low, low + step, …, high, of at most 1,000 labels.

        Raises CriterionError.
        """
        if not all(isinstance(number, Integral) for number in (low, high, step)):
            arguments = f"{low!r}, {high!r} and {step!r}"
            raise CriterionError(f"Scale.integers takes whole numbers, not {arguments}")
        if low > high or step < 1:
            ends = f"from {low} to {high} in steps of {step}"
            raise CriterionError(f"a scale {ends} has no labels")
        numbers = range(low, high + 1, step)
        if len(numbers) > MAX_LABELS:
            n_labels = f"{len(numbers):,} labels"
            raise CriterionError(f"{n_labels} are too many; at most {MAX_LABELS:,}")
        labels = tuple(str(number) for number in numbers)
        values = tuple(float(number) for number in numbers)
        return cls(labels, values)

    @property
    def asked(self) -> Scale:
        """The scale that the judge is asked to use."""
        if not self.halves:
            return self
        # The half labels are those between, such as 1.5 of 1, 1.5, 2.
        return Scale(self.labels[::2], self.values[::2])

    @property
    def question(self) -> Question:
        """The type of question for a decision endpoint.

        Two labels with the values 0 and 1 are a predicate, up to 10 rising levels a score,
        everything else a choice.
        """
        if self.values in ((0.0, 1.0), (1.0, 0.0)):
            return "predicate"
        is_rising = all(lower < higher for lower, higher in pairwise(self.values))
        return "score" if is_rising and len(self.labels) <= _MOST_LEVELS else "choice"

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    def value(self, label: str) -> float:
        """Return the value of a label of this scale."""
        return self.values[self.labels.index(label)]

    def expected(self, weights: Mapping[str, float]) -> float:
        """Return Σ p(s)·v(s) / Σ p(s) over the labels s of this scale.

        This is equation 1 of G-Eval (Liu et al. 2023), normalised. Labels that are not on the scale
        are ignored. Raises `ParseError` if no probability remains.
        """
        mass = sum(weights.get(label, 0.0) for label in self.labels)
        if not mass > 0:
            raise ParseError("no probability on any label of the scale")
        pairs = zip(self.labels, self.values, strict=True)
        weighted_values = [weights.get(label, 0.0) * value for label, value in pairs]
        return sum(weighted_values) / mass


_USUAL_SCALE = Scale.integers(1, 5)
SCALE_STEPS_AND_REPLY = slice(2, 6)
"""The labels, values, steps and reply in `Criterion.prompt_parts`."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text for the judge with the score that it deserves; `score` is a label of the scale."""

    output: str
    score: str
    reason: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class ChecklistQuestion:
    """A question of a checklist, which is answered with yes or no."""

    text: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Criterion:
    """What to judge and how: a file of prompts/, or a user's own.

    What the judge is asked. Without a `template`, the built-in layout asks the `question`:

    - `template`: the file's text. `layouts`: the texts of the templates that it extends or
      includes, by name.
    - `show`: the columns beside the text (default: the source, if there is one).
    - `levels`: descriptions of labels of the scale. `steps`, `examples`: further parts of a prompt.
    - `questions`: make it a checklist, as does `questions_column`, a column with questions of their
      own for each text. `ask` says whether they are sent in one request or in a request each. Each
      question is then a criterion of its own, whose `part` is its number from 1 on.
    - `cite`: asks for the sentence that decided the score.
    - `judged`: the output, or the whole conversation that ends with it.
    - `form`: how to ask for the answer, which a run sets.

    What the prompt reads and what its digest is made of:

    - `needs`: the fields of a sample that the prompt and its layouts read. `guarded`: those among
      them that the prompt leaves out if a text has none (`{% if question %}`).
    - `header_parts`: the `prompt_parts` that the header contained.

    What its scores mean:

    - `better`: the better end of the scale. A value of `pass_at` or better passes.
    - `weight`: its weight in the overall score.
    - `seen`: digests of texts whose ratings no estimate may use.

    For tests of the judge only, in no prompt and no digest: `paraphrases`, three other wordings of
    the question, and `ignores`, what the score must not depend on.
    """

    name: str
    template: str = field(default="", repr=False)
    scale: Scale = _USUAL_SCALE
    reply: ReplyKind = "score"
    needs: frozenset[str] = frozenset()
    layouts: Mapping[str, str] = field(default_factory=dict, repr=False)
    weight: float = 1.0
    title: str = ""
    description: str = ""
    steps: tuple[str, ...] = ()
    version: int = 1
    language: str = "en"
    path: str = ""
    form: Form = "text"
    question: str = ""
    show: tuple[str, ...] = ()
    levels: tuple[tuple[str, str], ...] = ()
    pass_at: float | None = None
    examples: tuple[Example, ...] = ()
    questions: tuple[ChecklistQuestion, ...] = ()
    questions_column: str = ""
    ask: Ask = "together"
    part: int = 0
    cite: bool = False
    judged: Judged = "output"
    seen: frozenset[str] = frozenset()
    guarded: frozenset[str] = frozenset()
    better: Better = "higher"
    paraphrases: tuple[str, ...] = ()
    ignores: tuple[Ignored, ...] = ()
    header_parts: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    @property
    def is_checklist(self) -> bool:
        """Whether the criterion consists of questions."""
        return bool(self.questions or self.questions_column)

    @property
    def pairwise(self) -> bool:
        """Whether the criterion compares two texts: its template reads `first` and `second`.

        The values of its scale are the result for the first text: 1 is a win, 0 a loss.
        """
        return {"first", "second"} <= self.needs

    @property
    def used(self) -> frozenset[str]:
        """The digests of the texts whose ratings no estimate may use: `seen` and the examples."""
        digests = set(self.seen)
        for example in self.examples:
            digests.add(seen_digest(example.source, example.output))
            digests.add(seen_digest(ANY_SOURCE, example.output))
        return frozenset(digests)

    @property
    def cites(self) -> bool:
        """Whether a reply may quote a sentence. Typed answers and checklist answers may not."""
        return self.cite and self.form != "decision" and not self.questions

    @property
    def together(self) -> bool:
        """Whether the questions of a checklist share one prompt.

        An endpoint of typed questions takes several questions in a form of its own.
        """
        return self.is_checklist and self.ask == "together" and self.form != "decision"

    @property
    def prompt_parts(self) -> tuple[Any, ...]:
        """The parts of the prompt that are not in the templates."""
        parts: list[Any] = [
            self.title,
            self.description,
            self.scale.labels,
            self.scale.values,
            self.steps,
            self.reply,
        ]
        if self.scale.halves:
            parts.append("allow_half")
        examples = tuple(astuple(example) for example in self.examples)
        questions = tuple(astuple(question) for question in self.questions)
        optional_parts: dict[str, Any] = {
            "question": self.question,
            "levels": self.levels,
            "examples": examples,
            "questions": questions,
            "questions_column": self.questions_column,
            "cite": self.cite,
            "each": self.ask == "each",
            "conversation": self.judged == "conversation",
        }
        # Empty parts are left out, so that a key without a value changes no digest.
        parts += [
            (part_name, value) for part_name, value in optional_parts.items() if value
        ]
        return tuple(parts)

    @property
    def digest(self) -> str:
        """The SHA-256, in hex, of all templates, and of the prompt's other parts if they differ
        from the header.

        Optional parts of a template count only if the criterion uses them, because the prompts are
        the same without them. Keys that are only for tests of the judge do not count.
        """
        templates = {PurePath(self.path).name: self.template, **self.layouts}
        parts: list[Any] = []
        for template_name, text in templates.items():
            text = _HEADER.sub(_without_keys_of_tests, text)
            parts.append((template_name, _OPTIONAL_PART.sub(self._part_if_used, text)))
        if self.prompt_parts != self.header_parts:
            parts.append(self.prompt_parts)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _part_if_used(self, match: re.Match[str]) -> str:
        return match[0] if getattr(self, match[1]) else ""


def _without_keys_of_tests(header: re.Match[str]) -> str:
    return _KEY_OF_TESTS.sub("", header[0])


@dataclass(frozen=True, slots=True)
class Prompt:
    """A criterion rendered for one sample or for a pair of samples.

    `question` is the question for a decision endpoint; for other models it is in the messages.
    `merged` are the parts of a checklist that share these messages, each with its scale.
    """

    item: str
    system: str
    criterion: str
    messages: tuple[Message, ...]
    question: str = ""
    merged: tuple[tuple[str, Scale], ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a model. It has no sample id, so that equal prompts are sent once.

    `params` is what we want (temperature, max_tokens, top_logprobs, n, response_format); a provider
    that has to leave one out says so in `Response.unmet`. A decision endpoint gets `questions`
    there and answers with one choice for each. `draw` numbers repeated draws of one prompt; with
    `n`, it is the first draw's. `prefix` is for the provider's prompt cache and neither compared
    nor part of the key: the group of the requests that start alike, and how many characters of the
    first message others will read again (0: none).
    """

    model: str
    messages: tuple[Message, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    draw: int = 0
    endpoint: str = ""
    prefix: tuple[str, int] = field(default=("", 0), compare=False, repr=False)
    _key: str = field(default="", init=False, compare=False, repr=False)

    def key(self) -> str:
        """Return the SHA-256, in hex, of the canonical JSON of every field but the prefix."""
        if not self._key:
            messages = [dict(message) for message in self.messages]
            fields = [self.endpoint, self.model, self.draw, dict(self.params), messages]
            content = _encode_sorted(fields).encode("utf-8", "surrogatepass")
            # Computed once: the cache, the leases and the engines ask for it.
            object.__setattr__(self, "_key", hashlib.sha256(content).hexdigest())
        return self._key


# The logarithm of a probability after which no other token is worth listing.
_NEARLY_CERTAIN = -0.001


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a reply: its text, log probability (nats), and the likeliest tokens there."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()

    @property
    def lacks_alternatives(self) -> bool:
        """Whether no other token is listed, although this one has not all of the probability."""
        if self.logprob >= _NEARLY_CERTAIN:
            return False
        return all(text == self.text for text, _ in self.top)


@dataclass(frozen=True, slots=True)
class Choice:
    """One reply. `tokens` is None if the provider gave no log probabilities.

    `shares` are the probabilities by label that a decision endpoint returned; `text` is then the
    likeliest label.
    """

    text: str
    finish_reason: str = "stop"
    tokens: tuple[Token, ...] | None = None
    shares: tuple[tuple[str, float], ...] | None = None

    def __post_init__(self) -> None:
        """Make the text whole, because replies of servers, recordings and functions may not be."""
        object.__setattr__(self, "text", whole_value(self.text))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counted them.

    Those read from and written to its prompt cache are in `prompt_tokens`.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, added: Usage) -> Usage:
        sums = [
            getattr(self, field_name) + getattr(added, field_name)
            for field_name in self.__slots__
        ]
        return Usage(*sums)


# Values of `served_by`: judges that give one reply with probabilities and the next one without.
FUNCTION = "function"
MIXED_RULES = "scripted, some with probabilities"
_OF_SEVERAL_FORMS = (FUNCTION, MIXED_RULES)


@dataclass(frozen=True, slots=True)
class Response:
    """A server's response to a request.

    `unmet` names the wanted parameters that the server refused or silently ignored. It includes
    `reasoning` if the model did without reasoning to return token probabilities. `limits` are the
    reply's `x-ratelimit-*` headers, in lower case. They describe one moment, so they are neither
    stored nor compared.
    """

    choices: tuple[Choice, ...]
    usage: Usage = Usage()
    served_by: str = ""
    unmet: tuple[str, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def may_be_another_form(self) -> bool:
        """Whether the next reply may have probabilities, although this one has none."""
        return self.served_by in _OF_SEVERAL_FORMS

    @property
    def reasoned(self) -> bool:
        """Whether it shows that the model reasons before it answers, or does so unless told not to.

        It counted hidden tokens, or the server refused a temperature, or gave probabilities only
        without reasoning.
        """
        refused = {"temperature", "reasoning"} & {*self.unmet}
        return self.usage.reasoning_tokens > 0 or bool(refused)

    def to_json(self) -> str:
        """Return one line of JSON from which `from_json` makes an equal Response."""
        choices = [_choice_json(choice) for choice in self.choices]
        usage = [getattr(self.usage, field_name) for field_name in Usage.__slots__]
        return _encode([1, choices, usage, self.served_by, self.unmet])

    @classmethod
    def from_json(cls, text: str) -> Response:
        """Return the Response that `to_json` wrote. Raises ValueError for any other text."""
        try:
            (version, choices, usage, served_by, unmet), decoded_length = _decode(text)
            if decoded_length != len(text):
                raise ValueError("more than a stored response")
            if version != 1:
                raise ValueError(
                    f"stored response of version {version}; this judge reads version 1"
                )
            parsed_choices = tuple([_choice(*choice) for choice in choices])
            return cls(parsed_choices, Usage(*usage), served_by, tuple(unmet))
        except TypeError as error:
            raise ValueError(f"not a stored response: {error}") from error


def _choice_json(choice: Choice) -> list[Any]:
    tokens = None
    if choice.tokens is not None:
        tokens = [[token.text, token.logprob, token.top] for token in choice.tokens]
    values: list[Any] = [choice.text, choice.finish_reason, tokens]
    if choice.shares is not None:
        values.append(choice.shares)
    return values


def _choice(
    text: str,
    finish_reason: str,
    tokens: list[Any] | None,
    shares: list[Any] | None = None,
) -> Choice:
    parsed_tokens: tuple[Token, ...] | None = None
    if tokens is not None:
        parsed = [
            Token(token_text, logprob, _pairs(top))
            for token_text, logprob, top in tokens
        ]
        parsed_tokens = tuple(parsed)
    parsed_shares = None if shares is None else _pairs(shares)
    return Choice(text, finish_reason, parsed_tokens, parsed_shares)


def _pairs(pairs: list[Any]) -> tuple[tuple[str, float], ...]:
    # A tuple of a list is quicker than one of a generator, and a cache has millions of pairs.
    return tuple([(str(text), float(number)) for text, number in pairs])


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a value was produced.

    `method` is the strategy (`logprobs`, `decisions`, `samples`, `single`), `checklist`, `panel`,
    `identical` or `metric`. For a judgment, `mass` is the probability on the scale (0–1),
    `distribution` this mass by label, `entropy` the entropy of the normalised distribution (nats),
    `argmax` its likeliest label. `low` and `high` bound the value, given the probability that was
    not seen. `n` is the number of draws or of questions, `reason` the judge's reason, `raw` its
    reply. `note` holds further information, such as why a better method was not used. `reading` is
    the way in which a score was read from a reply, None if no text was read. `quote` is the
    sentence that the judge cites, `answers` are the answers to a checklist's questions.
    """

    method: str
    mass: float | None = None
    distribution: Mapping[str, float] | None = None
    entropy: float | None = None
    argmax: str | None = None
    low: float | None = None
    high: float | None = None
    n: int = 1
    reason: str | None = None
    raw: str | None = None
    note: str | None = None
    reading: Reading | None = None
    quote: str | None = None
    answers: tuple[ChecklistAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class ChecklistAnswer:
    """The answer to one question of a checklist.

    `value` is the probability of yes, or 0 or 1 without probabilities. It is None if there is no
    answer: `error` is then the class name of the error, and `provenance.note` its message.
    """

    question: str
    weight: float
    value: float | None
    provenance: Provenance
    error: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """A value of one column for one sample.

    In a comparison, `system` was shown first and `opponent` second, and `value` is the result for
    `system`: 1 is a win, 0 a loss. If `item` is empty, the value belongs to all of the system's
    texts together (corpus BLEU, distinct-N); `provenance.n` counts them.
    """

    item: str
    system: str
    column: str
    value: float
    provenance: Provenance
    opponent: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """The text's item and system."""
        return self.item, self.system


UNWRITTEN = "generation"
"""The stage of a failure for a text that a system could not write; the text is missing too."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A value that could not be determined: a row of its own, never a number.

    `stage` is where it failed (`generation`, `render`, `request`, `parse`, `panel`, `metric`),
    `error` an error's class name, `message` what happened, `raw` the reply, if there was one.
    `method`, `reading` and `answers` are as in `Provenance`.
    """

    item: str
    system: str
    column: str
    stage: str
    error: str
    message: str
    raw: str = ""
    opponent: str = ""
    method: str | None = None
    reading: Reading | None = None
    answers: tuple[ChecklistAnswer, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """The text's item and system."""
        return self.item, self.system


def is_unwritten(row: Score | Failure) -> bool:
    """Return whether a row is about a text that its system could not write, and has no sample."""
    return isinstance(row, Failure) and row.stage == UNWRITTEN


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the comparison: a criterion or a metric.

    - `signature`: everything needed to reproduce the column.
    - `low`, `high`: the ends of the scale, None if it has none.
    - `labels`, `values`: the labels of a criterion's scale, and what they count as.
    - `criterion`, `judge`: of a judge's column; `judge` is empty outside a panel, and for the
      panel's value, which `panel` describes.
    - `better`: the better end, empty if that depends on the use.
    - `weight`: the criterion's weight in the overall score.
    - `pass_at`: the worst value that passes.
    - `seen`: digests of texts whose ratings no estimate may use.
    """

    name: str
    kind: Literal["criterion", "metric"]
    signature: Signature
    low: float | None = None
    high: float | None = None
    labels: tuple[str, ...] = ()
    criterion: str = ""
    judge: str = ""
    better: Literal["higher", "lower", ""] = "higher"
    weight: float = 1.0
    values: tuple[float, ...] = ()
    pass_at: float | None = None
    panel: Literal["mean", "median", "majority"] = "mean"
    seen: tuple[str, ...] = ()

    def passes(self, value: float) -> bool | None:
        """Return whether a value passes; None for a column without `pass_at`.

        Rounding errors fail no value.
        """
        if self.pass_at is None:
            return None
        is_beyond = value > self.pass_at
        if self.better == "lower":
            is_beyond = value < self.pass_at
        if is_beyond:
            return True
        return isclose(value, self.pass_at, rel_tol=_ROUNDING, abs_tol=_ROUNDING)

    def share(self, value: float) -> float | None:
        """Return a value as a share of the scale: 0 the worse end, 1 the better one.

        A value beyond an end counts as that end. Return None without a scale.
        """
        if self.low is None or self.high is None or self.high <= self.low:
            return None
        share = (value - self.low) / (self.high - self.low)
        if self.better == "lower":
            share = 1 - share
        return min(1.0, max(0.0, share))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its interval, p-value and method.

    `low` and `high` are the ends of the interval, None if there is none, such as for too few items.
    `n` counts the items or texts. `method` describes how the value and its interval were computed,
    `test` how `p` was computed; "" without a test.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    n: int
    method: str
    p: float | None = None
    test: str = ""

    @property
    def described(self) -> str:
        """The method, and the test if there is one."""
        return f"{self.method}; p: {self.test}" if self.test else self.method

    def times(self, factor: float) -> Estimate:
        """Return the estimate in another unit; a negative factor reverses a difference."""
        lower_bound = None if self.low is None else factor * self.low
        upper_bound = None if self.high is None else factor * self.high
        if factor <= 0:
            lower_bound, upper_bound = upper_bound, lower_bound
        return replace(
            self, value=factor * self.value, low=lower_bound, high=upper_bound
        )
