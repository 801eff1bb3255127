"""Render a criterion and a sample, or a pair, into a `Prompt`.

Templates come as texts (`criteria.template_bodies`), so that what is rendered is what a run keeps.
Judged text is data: it is put in once, never rendered again, between marks that it cannot contain.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import meta, nodes

from judge.core.errors import ConfigError, CriterionError
from judge.core.format import one_line, text_name
from judge.core.records import Criterion, Form, Message, Prompt, Sample, Scale
from judge.criteria import sandbox
from judge.criteria.checklist import part_name
from judge.criteria.header import template_body
from judge.criteria.own_question import asks
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
from judge.criteria.template import (
    MAX_CHARACTERS,
    is_question_template,
    parse_cached,
    read_text,
    shared_layout,
)
from judge.data.answers import answer_inputs, request_of
from judge.data.conversations import ANSWERING, MESSAGES, is_conversation
from judge.data.rows import is_empty

# What differs from sample to sample in most templates.
_PER_SAMPLE_TEXTS = frozenset({"source", "request", "output", "first", "second"})
# What may change a text after it was printed.
_TRANSFORMING_NODES = (
    nodes.FilterBlock,
    nodes.AssignBlock,
    nodes.CallBlock,
    nodes.Macro,
)


class MissingInput(CriterionError):
    """A text lacks something that the criterion reads. The other texts can be judged."""


class UnequalInput(CriterionError):
    """The two texts of a pair differ in an input of the criterion. Other pairs can be judged."""


def _view_of(criterion: Criterion) -> CriterionView:
    scale = criterion.scale.asked
    is_merged = criterion.together
    has_cut = is_merged or criterion.form == "decision"
    questions = []
    for number, question in enumerate(criterion.questions, 1):
        # The key of the question's answer in the reply, which is a JSON object.
        key = json.dumps(part_name(criterion.name, number), ensure_ascii=False)
        questions.append((key, question.text))
    lowest = scale.labels[scale.values.index(scale.low)]
    highest = scale.labels[scale.values.index(scale.high)]
    form: Form = "merged" if is_merged else criterion.form
    # Random, and different in every run, so that no text can contain it.
    cut = f"<cut {secrets.token_hex(16)}>" if has_cut else ""
    return CriterionView(
        title=criterion.title,
        description=criterion.description,
        scale=scale,
        steps=criterion.steps,
        reply=criterion.reply,
        lowest=lowest,
        highest=highest,
        whole=_is_range_of_integers(scale),
        form=form,
        cut=cut,
        question=criterion.question,
        asks=asks(criterion.question),
        levels=criterion.levels,
        examples=criterion.examples,
        questions=tuple(questions),
        cite=criterion.cite,
        judged=criterion.judged,
    )


def _is_range_of_integers(scale: Scale) -> bool:
    # A scale with gaps, such as 0 and 1,000,000,000, would make a very long range.
    if scale.high - scale.low >= len(scale.labels):
        return False
    every_integer = Scale.integers(round(scale.low), round(scale.high))
    return scale == every_integer


def _named(criterion: Criterion, templates: Mapping[str, str]) -> Templates:
    own_name = Path(criterion.path).name
    texts = []
    for template_name, text in templates.items():
        label = criterion.path if template_name == own_name else template_name
        texts.append((template_name, text, label))
    return Templates(own_name, tuple(texts))


@dataclass(frozen=True, slots=True)
class _FixedText:
    """What a prompt has around its texts, the same for every sample.

    `material` and `question` are pieces of text, and between them in turn the name and the label of
    the text that belongs there.
    """

    material: Sequence[str]
    question: Sequence[str]


class Renderer:
    """A criterion's templates. `templates` are texts by name, as `criteria.template_bodies`."""

    def __init__(self, criterion: Criterion, templates: Mapping[str, str]) -> None:
        self._criterion = criterion
        self._this = _view_of(criterion)
        self._templates = _named(criterion, templates)
        self._slots = _slots_of_all(self._templates)
        self._fixed_text: _FixedText | None = None
        self._example_keys = _example_keys(self._this, ())

    def render(self, sample: Sample, opponent: Sample | None = None) -> Prompt:
        """Return one user message for a sample, or for a pair that shows `sample` first.

        For the form `decision`, or a checklist whose questions share a request, the message is only
        the material, and the text after the cut is the prompt's question.

        Raises CriterionError, with file and line, if the template fails or lacks a required cut,
        MissingInput for a sample that lacks what it reads, and UnequalInput for two samples that do
        not share it.
        """
        # Ends every error message: `(data.csv:17: item 'doc-1')`.
        location = f"{sample.where}: " if sample.where else ""
        subject = f"({location}item {sample.item!r})"
        if self._criterion.pairwise != (opponent is not None):
            takes = "a pair of samples" if self._criterion.pairwise else "one sample"
            raise CriterionError(f"{self._criterion.path}: takes {takes} {subject}")
        self._check_inputs(sample)
        if opponent is not None:
            self._check_inputs(opponent)
        try:
            variables = template_variables(sample, self._this, opponent)
            variables = _without_other_messages(self._criterion, variables)
            if opponent is not None:
                self._check_shared_inputs(variables, sample, opponent, subject)
            # Empty and not undefined, so that `{% if question %}` is false instead of an error.
            unset = self._criterion.guarded - variables.keys()
            absent = dict.fromkeys(unset, "")
            material, question = self._fill_template(variables | absent)
        except RenderError as error:
            template = error.location or self._criterion.path
            raise CriterionError(f"{template}: {error} {subject}") from error
        message = {"role": "user", "content": material}
        return Prompt(
            sample.item, sample.system, self._criterion.name, (message,), question
        )

    def _check_inputs(self, sample: Sample) -> None:
        lacking = lacking_inputs(self._criterion, sample)
        if lacking:
            raise MissingInput(missing_message(self._criterion, sample, lacking[0]))

    def _check_shared_inputs(
        self,
        variables: Mapping[str, Any],
        sample: Sample,
        opponent: Sample,
        subject: str,
    ) -> None:
        """Raise UnequalInput if a comparison reads something that differs between its two texts."""
        for input_name in sorted(self._criterion.needs - variables.keys()):
            first_value = template_variables(sample, self._this).get(input_name)
            second_value = template_variables(opponent, self._this).get(input_name)
            if first_value != second_value:
                systems = f"{sample.system!r} and {opponent.system!r}"
                raise UnequalInput(
                    f"{self._criterion.path}: reads {input_name}, which differs between the "
                    f"systems {systems} {subject}"
                )

    def _fill_template(self, variables: Mapping[str, Any]) -> tuple[str, str]:
        """Return the material and the question with a sample's texts.

        The text around them is rendered only once if it is the same for every sample.
        """
        if self._slots is None or not self._slots <= variables.keys():
            return self._split_at_cut(sandbox.render(self._templates, variables))
        if self._example_keys:
            # The keys of the fences around examples depend on the texts around them.
            keys = _example_keys(self._this, strings(variables))
            if keys != self._example_keys:
                return self._split_at_cut(sandbox.render(self._templates, variables))
        if self._fixed_text is None:
            self._fixed_text = self._render_fixed_text(self._slots)
        material = _fill(self._fixed_text.material, variables)
        question = _fill(self._fixed_text.question, variables)
        return material, question

    def _render_fixed_text(self, slots: frozenset[str]) -> _FixedText:
        """Render the templates with a placeholder for each text, and split them there."""
        mark = f"<{secrets.token_hex(16)}>"
        placeholders = {slot_name: Slot(slot_name, mark) for slot_name in slots}
        # "<7f…>output reply<7f…>": the name of the text and the label of its fence.
        placeholder = re.compile(f"{mark}(\\w+) (.*?){mark}", re.DOTALL)
        text = sandbox.render(self._templates, {**placeholders, "this": self._this})
        material, question = self._split_at_cut(text)
        parts_of_material = placeholder.split(material)
        parts_of_question = placeholder.split(question)
        return _FixedText(parts_of_material, parts_of_question)

    def _split_at_cut(self, text: str) -> tuple[str, str]:
        """Return the material and the question; without a cut, all is material."""
        if not self._this.cut:
            return text.strip(), ""
        parts = [part.strip() for part in text.split(self._this.cut)]
        if len(parts) != 2 or not all(parts):
            raise CriterionError(
                f"{self._criterion.path}: a decision endpoint takes the texts and the question "
                "separately; put {{ this.cut }} between them, once (also in a checklist)"
            )
        material, question = parts
        return material, question


def _example_keys(this: CriterionView, among: Sequence[str]) -> list[str]:
    """Return the keys of the fences around a criterion's examples, next to these texts.

    A key changes if one of the texts contains it.
    """
    examples = strings(this)
    all_texts = (*examples, *among)
    return [fence_digest(text, all_texts) for text in examples]


def _slots_of_all(templates: Templates) -> frozenset[str] | None:
    """Return the slots of all templates, None if one of them does more than fence texts."""
    all_slots: set[str] = set()
    for _, text, label in templates.texts:
        slots = _slots(label, text)
        if slots is None:
            return None
        all_slots |= slots
    return frozenset(all_slots)


@lru_cache(maxsize=MOST_TEMPLATES)
def _slots(label: str, template: str) -> frozenset[str] | None:
    """Return the texts that a template prints with a fence.

    None if it does anything else with a variable: then the prompt around the texts may differ from
    sample to sample.
    """
    tree = parse_cached(label, template)
    if any(tree.find(kind) for kind in _TRANSFORMING_NODES):
        return None
    undeclared = meta.find_undeclared_variables(tree)
    if undeclared - _PER_SAMPLE_TEXTS - {"this", "super"}:
        return None
    fenced_texts: list[str] = []
    super_name = nodes.Name("super", "load")
    n_supers = 0
    for output in tree.find_all(nodes.Output):
        for printed in output.nodes:
            fenced_text = _fenced_text(printed)
            if fenced_text:
                fenced_texts.append(fenced_text)
            elif isinstance(printed, nodes.Call) and printed.node == super_name:
                n_supers += 1
    variables = _PER_SAMPLE_TEXTS | {"self", "super"}
    n_uses = 0
    for name_node in tree.find_all(nodes.Name):
        if name_node.name in variables:
            n_uses += 1
    # Any other use, such as a condition or a filter, may change the prompt around the texts.
    if n_uses != len(fenced_texts) + n_supers:
        return None
    return frozenset(fenced_texts)


def _fenced_text(printed: nodes.Node) -> str:
    """Return the variable of a node such as `output | fenced("output")`, "" for any other node."""
    if not isinstance(printed, nodes.Filter) or printed.name != "fenced":
        return ""
    variable = printed.node
    if isinstance(variable, nodes.Name) and variable.name in _PER_SAMPLE_TEXTS:
        return variable.name
    return ""


def _fill(parts: Sequence[str], texts: Mapping[str, Any]) -> str:
    """Return fixed text with the texts in their slots (`_FixedText`)."""
    # `re.split` puts the groups of each match, its name and label, between the pieces.
    pieces = list(parts[::3])
    names = parts[1::3]
    labels = parts[2::3]
    among = strings(texts) if names else []
    length = sum(map(len, pieces))
    for index, (slot_name, label) in enumerate(zip(names, labels, strict=True)):
        text = fenced(texts[slot_name], label, among)
        pieces[index] += text
        length += len(text)
        # The sandbox limits a rendered prompt, but this one is put together outside of it.
        if length > MOST_CHARACTERS:
            raise RenderError(
                f"makes a prompt of more than {MOST_CHARACTERS:,} characters"
            )
    return "".join(pieces)


def template_variables(
    sample: Sample,
    this: CriterionView | None = None,
    opponent: Sample | None = None,
) -> dict[str, Any]:
    """Return the variables that a template sees: everything that the sample has and is not empty.

    `request` and `passages` are those of an answer (`answer_inputs`), unless the data has columns
    of these names with a text.

    With an opponent, the variables are the texts `first` (the sample's) and `second`, no `output`,
    and otherwise what is equal in both samples (`_variables_of_pair`). The system's name,
    the human ratings and the item's id are never among them, in whatever column they came.
    """
    if opponent is not None:
        variables_of_first = template_variables(sample, this)
        variables_of_second = template_variables(opponent, this)
        return _variables_of_pair(variables_of_first, variables_of_second)
    columns = sample.extra.items()
    variables = {column: value for column, value in columns if not is_empty(value)}
    for input_name, value in answer_inputs(sample).items():
        if not isinstance(variables.get(input_name), str):
            variables[input_name] = value
    references = [text for text in sample.references if not is_empty(text)]
    if references:
        variables.setdefault("reference", references[0])
    for input_name in ("system", "human", "item", "source", "references"):
        variables.pop(input_name, None)
    if not is_empty(sample.source):
        variables["source"] = sample.source
    if references:
        variables["references"] = references
    variables["output"] = sample.output
    variables["this"] = this
    return variables


def _variables_of_pair(
    first_variables: dict[str, Any], second_variables: dict[str, Any]
) -> dict[str, Any]:
    """Return the variables of a comparison, given each sample's variables.

    Of two different conversations, `messages` and `request` are their common beginning, and `first`
    and `second` are the messages from there to the output.
    """
    in_both = [variable for variable in first_variables if variable in second_variables]
    shared = {
        variable: first_variables[variable]
        for variable in in_both
        if first_variables[variable] == second_variables[variable]
    }
    shared.pop("output", None)
    first_messages = first_variables.get(MESSAGES)
    second_messages = second_variables.get(MESSAGES)
    first: str | list[Message] = first_variables["output"]
    second: str | list[Message] = second_variables["output"]
    if MESSAGES in shared:
        return {**shared, "first": first, "second": second}
    if is_conversation(first_messages) and is_conversation(second_messages):
        n_shared = _n_equal_at_start(first_messages, second_messages)
        if n_shared:
            shared[MESSAGES] = first_messages[:n_shared]
            shared["request"] = request_of(shared[MESSAGES])
        first = _turns_from(first_variables, n_shared)
        second = _turns_from(second_variables, n_shared)
    return {**shared, "first": first, "second": second}


def _n_equal_at_start(first_list: Sequence[Any], second_list: Sequence[Any]) -> int:
    """Return how many members two lists have in common before they differ."""
    n_equal = 0
    for member, other_member in zip(first_list, second_list, strict=False):
        if member != other_member:
            break
        n_equal += 1
    return n_equal


def _turns_from(variables: Mapping[str, Any], start: int) -> list[Message]:
    """Return a text's messages from this index on, and the output as the last one."""
    answer = {"role": ANSWERING, "content": variables["output"]}
    return [*variables[MESSAGES][start:], answer]


def inputs(criterion: Criterion) -> frozenset[str]:
    """Return what a criterion's templates read of a text; the texts of a pair must share it."""
    if criterion.pairwise:
        return criterion.needs - {"first", "second"}
    return criterion.needs


def lacking_inputs(criterion: Criterion, sample: Sample) -> list[str]:
    """Return the variables that a criterion's templates need and this text does not have."""
    required = inputs(criterion) - criterion.guarded
    if not required:
        return []
    return sorted(required - input_names(criterion, sample))


def input_names(criterion: Criterion, sample: Sample) -> Set[str]:
    """Return the names of the variables that a criterion's templates see of a text."""
    return _without_other_messages(criterion, template_variables(sample)).keys()


def _without_other_messages(
    criterion: Criterion, variables: dict[str, Any]
) -> dict[str, Any]:
    """Return the variables without `messages` that the criterion cannot show as a conversation.

    A column of this name may hold anything, such as a count. A template of the user's own may know
    what, but not the layout of questions, which shows a conversation or a text.
    """
    messages = variables.get(MESSAGES)
    if messages is None or is_conversation(messages):
        return variables
    if criterion.judged != "conversation":
        is_shown_by_layout = is_question_template(template_body(criterion.template))
        if isinstance(messages, str) or not is_shown_by_layout:
            return variables
    remaining = dict(variables)
    del remaining[MESSAGES]
    return remaining


def missing_message(criterion: Criterion, sample: Sample, variable_name: str) -> str:
    """Return the message about a text that lacks a variable of a criterion."""
    location = f"{sample.where}: " if sample.where else ""
    text = text_name(sample.item, sample.system)
    return f"{location}{text} has no {variable_name}, which the criterion {criterion.name} reads"


def layout_renderer(criterion: Criterion, layout_name: str) -> Callable[..., str]:
    """Return a function that renders a layout without any sample's texts (`shared_layout`).

    It takes the layout's variables and raises CriterionError.
    """
    file = f"layouts/{layout_name}.jinja"
    text = shared_layout(criterion, layout_name)
    templates = Templates(file, ((file, text, file),))

    def render(**variables: Any) -> str:
        try:
            return sandbox.render(templates, variables).strip()
        except RenderError as error:
            raise CriterionError(f"{error.location or file}: {error}") from error

    return render


def render_repair_question(criterion: Criterion) -> str:
    """Return the question for the score alone, in the criterion's language.

    Raises CriterionError.
    """
    # In a reply to several questions, the criterion's name is the key of its score.
    name = criterion.name if criterion.together else criterion.title
    render = layout_renderer(criterion, "repair")
    return render(this=_view_of(criterion), pairwise=criterion.pairwise, name=name)


def render_drafting_prompt(
    criterion: Criterion,
    templates: Mapping[str, str],
    **more: Any,
) -> Prompt:
    """Return the prompt for a draft, from the templates of `criteria.drafting`.

    It shows the criterion's title, description, text and scale, and no sample: a sample's field is
    its name in brackets. `more` are further variables of the layout. Raises CriterionError if the
    text cannot be rendered without a sample.
    """
    variables = {
        "this": _view_of(criterion),
        "pairwise": criterion.pairwise,
        **more,
    }
    draft_templates = _named(criterion, templates)._replace(draft=True)
    try:
        text = sandbox.render(draft_templates, variables).strip()
    except RenderError as error:
        raise CriterionError(
            f"{criterion.path}: nothing can be drafted without a sample: {error}"
        ) from error
    message = {"role": "user", "content": text}
    return Prompt("", "", criterion.name, (message,))


def render_paraphrasing_prompt(
    criterion: Criterion,
    question: str,
    *,
    count: int,
    longest: int,
    problem: str,
    reply: str,
) -> str:
    """Return the prompt that asks a model for `count` other wordings of a criterion's question.

    After a useless reply, `reply` is its beginning and `problem` what is wrong with it. Raises
    CriterionError.
    """
    render = layout_renderer(criterion, "paraphrases")
    return render(
        this=_view_of(criterion),
        question=question,
        count=count,
        longest=f"{longest:,}",
        problem=problem,
        reply=reply,
    )


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt under test: a Jinja file that reads the data's columns."""

    path: Path
    text: str

    @classmethod
    def read(cls, path: Path) -> PromptFile:
        """Read a file. Raises ConfigError if it cannot be read, or is too long."""
        file_name = str(path)
        if "{{" in file_name or "\n" in file_name:
            raise ConfigError(
                f"{one_line(file_name, 40)!r} is the text of a prompt: write it into a .jinja "
                "file, and name that"
            )
        try:
            text = read_text(path)
        except CriterionError as error:
            raise ConfigError(str(error)) from error
        if len(text) > MAX_CHARACTERS:
            raise ConfigError(f"{path}: has more than {MAX_CHARACTERS:,} characters")
        return cls(path, text)

    def render(
        self, item: Sample, mapping: Mapping[str, str | Sequence[str]] = {}
    ) -> str:
        """Return the prompt for an item.

        `mapping` has the columns of the data that were renamed, by their new names. The prompt can
        read them under both names. Raises ConfigError, with the line of the template and the item.
        """
        cells = item.extra.items()
        variables = {column: value for column, value in cells if value is not None}
        if item.source:
            variables["source"] = item.source
        for field_name, column in mapping.items():
            if field_name in variables and isinstance(column, str):
                variables.setdefault(column, variables[field_name])
        label = str(self.path)
        templates = Templates(label, ((label, self.text, label),))
        try:
            prompt = sandbox.render(templates, variables).strip()
            if not prompt:
                raise RenderError("the prompt is empty")
            return prompt
        except RenderError as error:
            columns = ", ".join(variables) or "none"
            location = f"{item.where}: " if item.where else ""
            subject = f"{location}item {one_line(item.item, 40)!r}"
            template = error.location or self.path
            raise ConfigError(
                f"{template}: {error} ({subject}; the prompt can read: {columns})"
            ) from error
