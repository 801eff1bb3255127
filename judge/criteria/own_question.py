"""The question of a criterion: `own_question` finds it, and `with_question` replaces it.

`asks` tells a question from an order or a description. The question is the header's `question`, or
else the first paragraph of the block `criterion` of a template. Descriptions of scores, which
follow in the block, are not part of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from judge.core.errors import CriterionError
from judge.core.records import Criterion
from judge.criteria.template import CRITERION_BLOCK, own_name, template_texts

# Up to the first empty line, or to a block inside, as around the descriptions of scores.
_FIRST_PARAGRAPH = re.compile(r"\s*(?P<text>\S(?:(?!\n[ \t]*\n|\{%).)*)", re.DOTALL)

# A question mark, or a sentence that ends as questions do: 丁寧ですか。 or 공손합니까. or 有礼貌吗。
_ASKS = re.compile(r"[?？]|(?P<particle>か|까|까요|나요|吗|嗎|呢)[。.]?\s*(?:\n|$)")
# Words that end in the same syllable: 静か (quiet), 穏やか (calm), 明らか (clear), わずか (few), but not
# the questions 冷静か (calm?) and 正確か (right?). In Korean a reason, 좋으니까, but not the question 좋습니까.
_ENDS_ALIKE = re.compile(
    r"(?:(?<![冷安鎮沈])静|(?<![正明的精])確|(?<![精緻厳親])密|(?<![詳明])細|(?<!軽)微|(?<!温)暖|[豊僅遥仄愚温]"
    r"|や|[明滑柔朗清高安平麗]ら|あきら|なめら|やわら|ほがら|きよら|やすら|たいら|おおら"
    r"|しず|たし|ゆた|わず|はる|ひそ|おごそ|ほの|おろ|あたた)か\Z"
    r"|(?P<before>[가-힣])니까\Z"
)
_FINAL_B = 17
"""The number of the final consonant ㅂ among those of a Hangul syllable, which has one of 28."""


@dataclass(frozen=True, slots=True)
class _Position:
    """Where a template has the question: the template's name, and its first and last character."""

    template: str
    start: int
    end: int


def asks(question: str) -> bool:
    """Return whether a text asks something.

    "Do not mention prices." does not: without a question around it, a judge may take it for an
    order.
    """
    for match in _ASKS.finditer(question):
        if match["particle"] is None:
            return True
        up_to_particle = question[: match.end("particle")]
        if not _is_word(up_to_particle):
            return True
    return False


def _is_word(text: str) -> bool:
    """Return whether a text that ends like a question ends in another word: 文は静か。"""
    match = _ENDS_ALIKE.search(text)
    if match is None:
        return False
    syllable = match["before"]
    if syllable is None:
        return True
    final_consonant = (ord(syllable) - ord("가")) % 28
    return final_consonant != _FINAL_B


def own_question(criterion: Criterion) -> str:
    """Return the question of a criterion.

    Raises CriterionError for a checklist, which has several, for a comparison, and for a template
    without a block `criterion` of plain text.
    """
    _check_kind(criterion)
    if criterion.question:
        return criterion.question
    position = _position(criterion)
    text = template_texts(criterion)[position.template]
    return text[position.start : position.end]


def with_question(
    criterion: Criterion, question: str, criterion_name: str
) -> Criterion:
    """Return the criterion with another question and name.

    Raises CriterionError like `own_question`.
    """
    _check_kind(criterion)
    if criterion.question:
        return replace(criterion, name=criterion_name, question=question)
    position = _position(criterion)
    texts = template_texts(criterion)
    text = texts[position.template]
    texts[position.template] = text[: position.start] + question + text[position.end :]
    template = texts.pop(own_name(criterion))
    return replace(criterion, name=criterion_name, template=template, layouts=texts)


def with_questions(criterion: Criterion, questions: Sequence[str]) -> list[Criterion]:
    """Return the criterion with each of these questions, named `NAME~1`, `NAME~2` and so on."""
    return [
        with_question(criterion, question, f"{criterion.name}~{number}")
        for number, question in enumerate(questions, 1)
    ]


def check_paraphrases(criterion: Criterion) -> None:
    """Raise CriterionError if its question cannot be replaced, or is one of its paraphrases."""
    if not criterion.paraphrases:
        return
    question = own_question(criterion)
    for number, wording in enumerate(criterion.paraphrases, 1):
        if wording.split() == question.split():
            raise CriterionError(
                f"{criterion.path}: paraphrases: wording {number} is the question itself"
            )


def _check_kind(criterion: Criterion) -> None:
    if criterion.is_checklist:
        raise CriterionError(f"{criterion.path}: a checklist has several questions")
    if criterion.pairwise:
        raise CriterionError(f"{criterion.path}: it compares two texts")


def _position(criterion: Criterion) -> _Position:
    """Find the question in the first template, from the criterion's own on, that has one."""
    for template_name, text in template_texts(criterion).items():
        block = CRITERION_BLOCK.search(text)
        if block is None:
            continue
        paragraph = _FIRST_PARAGRAPH.match(text, block.end("start"), block.start("end"))
        if paragraph is not None:
            question = paragraph["text"].rstrip()
            start = paragraph.start("text")
            return _Position(template_name, start, start + len(question))
    raise CriterionError(
        f"{criterion.path}: it has no question, nor a block `criterion` of plain text"
    )
