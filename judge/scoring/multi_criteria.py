"""Make the prompts of criteria, and split a reply to several questions into one per question.

A checklist asks its questions one by one, or all in one prompt. The reply to such a prompt is a
JSON object with a key per question, for example `{"coverage.1": "yes", "coverage.2": "no"}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from judge.core.errors import ParseError
from judge.core.label_spellings import fold
from judge.core.records import (
    ChecklistQuestion,
    Choice,
    Criterion,
    Prompt,
    Sample,
    Scale,
    Token,
)
from judge.criteria import template_bodies
from judge.criteria.checklist import has_questions, part_name, questions_of
from judge.criteria.render import MissingInput, Renderer, missing_message
from judge.scoring import checklist, parse
from judge.scoring.json_scores import spans
from judge.scoring.prose.masks import mask_quotations
from judge.scoring.prose.refusals import may_refuse, refuses

Prompts = Mapping[str, Prompt]
"""The prompts of the parts of a checklist for a sample, by the part's name."""
MakePrompts = Callable[[Sample], Prompts]
"""Renders the prompts of a sample. Raises CriterionError and DataError."""


@dataclass(frozen=True, slots=True)
class SharedRenderer:
    """Renders the prompt of the part `name` of a checklist; `prompts` renders all prompts."""

    prompts: MakePrompts
    name: str

    def render(self, sample: Sample, opponent: Sample | None = None) -> Prompt:
        """Return the part's prompt for a sample. Raises CriterionError and DataError."""
        return self.prompts(sample)[self.name]


PromptRenderer = Renderer | SharedRenderer


class _LastSampleCache:
    """Keeps the prompts of the last sample, because its parts are rendered one after the other."""

    def __init__(self, make_prompts: MakePrompts) -> None:
        self._make_prompts = make_prompts
        self._last: tuple[Sample, Prompts] | None = None

    def __call__(self, sample: Sample) -> Prompts:
        if self._last is not None:
            last_sample, prompts = self._last
            if last_sample is sample:
                return prompts
        prompts = self._make_prompts(sample)
        self._last = (sample, prompts)
        return prompts


def make_renderers(criteria: Sequence[Criterion]) -> dict[str, PromptRenderer]:
    """Return the renderer of each criterion by name.

    Each part of a checklist has one. The renderer under the checklist's own name renders all
    questions or, if each question has its own request, the first one.

    Raises CriterionError if a template does not compile.
    """
    renderers: dict[str, PromptRenderer] = {}
    for criterion in criteria:
        if not criterion.is_checklist:
            renderers[criterion.name] = _renderer(criterion)
        elif criterion.name not in renderers:
            whole = checklist.whole(criterion)
            part_names = [part.name for part in checklist.parts(whole)]
            prompts = _LastSampleCache(_checklist_prompts(whole))
            for name in part_names:
                renderers[name] = SharedRenderer(prompts, name)
            renderers[whole.name] = renderers[part_names[0]]
    return renderers


def _renderer(criterion: Criterion) -> Renderer:
    return Renderer(criterion, template_bodies(criterion))


def _checklist_prompts(criterion: Criterion) -> MakePrompts:
    """Return a function that renders the prompts of a checklist's parts."""

    # Compiling a template is slow, and most texts share their questions.
    @lru_cache(maxsize=256)
    def renderer(questions: tuple[ChecklistQuestion, ...]) -> Renderer:
        return _renderer(replace(criterion, questions=questions))

    def prompts(sample: Sample) -> Prompts:
        if not has_questions(criterion, sample):
            column = criterion.questions_column
            raise MissingInput(missing_message(criterion, sample, column))
        questions = questions_of(criterion, sample)
        numbers = range(1, len(questions) + 1)
        names = [part_name(criterion.name, number) for number in numbers]
        if criterion.together:
            shared_prompt = renderer(questions).render(sample)
            scales = dict.fromkeys(names, criterion.scale)
            return _prompts_of_parts(shared_prompt, scales)
        prompt_by_name: dict[str, Prompt] = {}
        for name, question in zip(names, questions, strict=True):
            prompt = renderer((question,)).render(sample)
            prompt_by_name[name] = replace(prompt, criterion=name)
        return prompt_by_name

    return prompts


def _prompts_of_parts(prompt: Prompt, scales: Mapping[str, Scale]) -> dict[str, Prompt]:
    """Return the prompt of each part, which differ in the name only, for one that asks all.

    `scales` has the scale of each part by its name.
    """
    # The questions follow the texts in one message, and are not a typed question of their own.
    texts = prompt.messages[0]["content"]
    text = f"{texts}\n\n{prompt.question}"
    message = {"role": "user", "content": text}
    merged = tuple(scales.items())
    shared = replace(prompt, messages=(message,), question="", merged=merged)
    return {name: replace(shared, criterion=name) for name in scales}


@lru_cache(maxsize=256)
def split_reply(
    choice: Choice,
    names: tuple[str, ...],
    judged: str | None = None,
    scales: tuple[Scale, ...] = (),
) -> tuple[Choice, ...]:
    """Split a reply to several questions into one per question: its value as written, its tokens.

    A question without a value gets the whole reply, with a finish reason that prevents reading a
    score from it. So do all questions if the reply refuses to evaluate beside its values.

    With the `judged` texts, a reply that is nearly JSON is split, too; the finish reason of its
    parts says that a strict reader refuses them. So is one with keys in another case, and one with
    other text after its object, if the `scales` of the values show that no score is in it.
    """
    is_complete = choice.finish_reason == "stop"
    without_value = choice
    if is_complete:
        without_value = replace(choice, finish_reason=parse.UNKEYED)
    try:
        span_by_name, reading = spans(choice.text, names, judged, scales)
    except ParseError:
        return (without_value,) * len(names)
    if _refuses_beside(choice.text, span_by_name.values()):
        refused = replace(choice, finish_reason="refusal")
        return (refused,) * len(names)
    finish_reason = choice.finish_reason
    if is_complete and reading == "prose":
        finish_reason = parse.NEARLY_JSON
    tokens_by_name = _split_tokens(choice.tokens, names, judged, scales)
    part_choices: list[Choice] = []
    for name in names:
        if name not in span_by_name:
            part_choices.append(without_value)
            continue
        tokens: tuple[Token, ...] | None = None
        if tokens_by_name is not None:
            tokens = tokens_by_name.get(name, ())
        start, end = span_by_name[name]
        value = choice.text[start:end]
        part_choices.append(Choice(value, finish_reason, tokens))
    return tuple(part_choices)


def _refuses_beside(text: str, spans: Iterable[tuple[int, int]]) -> bool:
    """Return whether a reply refuses to evaluate in words outside these spans."""
    if not may_refuse(text):
        return False
    words = text
    for start, end in spans:
        blank = " " * (end - start)
        words = words[:start] + blank + words[end:]
    # The strings of an object are no quotations.
    without_quotation_marks = fold(words).replace('"', "\n")
    return refuses(mask_quotations(without_quotation_marks))


def _split_tokens(
    tokens: Sequence[Token] | None,
    names: tuple[str, ...],
    judged: str | None,
    scales: tuple[Scale, ...],
) -> dict[str, tuple[Token, ...]] | None:
    """Return the tokens of each value of a reply, by its key; None without token probabilities.

    The values are looked up again, because the joined text of the tokens may differ from the reply
    in white space and at its ends.
    """
    if tokens is None:
        return None
    try:
        joined = "".join(token.text for token in tokens)
        span_by_name, _ = spans(joined, names, judged, scales)
    except ParseError:
        return {}
    tokens_by_name: dict[str, tuple[Token, ...]] = {}
    for name, (start, end) in span_by_name.items():
        tokens_of_value = _tokens_between(tokens, start, end)
        tokens_by_name[name] = tuple(tokens_of_value)
    return tokens_by_name


def _tokens_between(tokens: Sequence[Token], start: int, end: int) -> list[Token]:
    """Return the tokens of `text[start:end]`, and the next one, which distinguishes 1 from 10.

    A token that begins before `start` or ends after `end` is cut. For the value 4 of `{"a": 4}`,
    the tokens `{"a":`, ` 4` and `}` give `4` and `}`.
    """
    inside: list[Token] = []
    token_end = 0
    for token in tokens:
        token_start = token_end
        token_end += len(token.text)
        if token_end <= start or not token.text:
            continue
        before_value = token.text[: max(0, start - token_start)]
        text = token.text[len(before_value) : end - token_start]
        if token_start >= end:
            # The first character of the next token shows whether the value continues.
            text = token.text[:1]
        inside.append(_cut_token(token, text, before_value))
        if token_end > end:
            break
    return inside


def _cut_token(token: Token, text: str, before_value: str) -> Token:
    """Return a token as its part `text`, without `before_value` in its alternatives.

    Only the token's own entry among the alternatives is also cut at the value's end, because the
    others need not end there.
    """
    alternatives: list[tuple[str, float]] = []
    for alternative, logprob in token.top:
        cut_text = text
        if alternative != token.text:
            cut_text = alternative.removeprefix(before_value)
        alternatives.append((cut_text, logprob))
    return Token(text, token.logprob, tuple(alternatives))
