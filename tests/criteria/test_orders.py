"""The prompt turns an order or a description into a question about the text."""

from __future__ import annotations

import pytest

from judge import criteria
from judge.core.records import Sample
from judge.criteria.own_question import asks
from judge.criteria.render import Renderer

FIRST = Sample(item="1", output="It arrives on Friday.", source="When?", system="a")
SECOND = Sample(item="1", output="I do not know.", source="When?", system="b")

ORDERS = {
    "en": "Do not mention that you are an AI.",
    "ja": "AIであることに触れないこと。",
    "ko": "인공지능이라고 말하지 마세요.",
    "zh": "不要提到你是人工智能。",
}
QUESTIONS = {
    "en": "Does the text stay polite? Greetings do not count.",
    "ja": "文章は丁寧ですか。",
    "ko": "글이 공손합니까",
    "zh": "文本有礼貌吗",
}


def _prompt(question: str, language: str, *opponents: Sample) -> str:
    criterion = criteria.load(
        {"name": "polite", "question": question}, language=language, pairwise=bool(opponents)
    )
    renderer = Renderer(criterion, criteria.template_bodies(criterion))
    return str(renderer.render(FIRST, *opponents).messages[-1]["content"])


def _paragraph_before(prompt: str, text: str) -> str:
    paragraphs = prompt.split("\n\n")
    position = next(index for index, part in enumerate(paragraphs) if part.startswith(text))
    return paragraphs[position - 1]


@pytest.mark.parametrize("opponents", [(), (SECOND,)], ids=["one text", "two texts"])
@pytest.mark.parametrize("language", ORDERS)
def test_a_question_introduces_an_order(language: str, opponents: tuple[Sample, ...]) -> None:
    order = ORDERS[language]
    introduction = _paragraph_before(_prompt(order, language, *opponents), order)
    assert asks(introduction)


@pytest.mark.parametrize("opponents", [(), (SECOND,)], ids=["one text", "two texts"])
@pytest.mark.parametrize("language", QUESTIONS)
def test_a_question_has_no_introduction(language: str, opponents: tuple[Sample, ...]) -> None:
    question = QUESTIONS[language]
    before = _paragraph_before(_prompt(question, language, *opponents), question)
    assert before.endswith("polite")  # the line that names the criterion


@pytest.mark.parametrize(
    ("text", "is_question"),
    [
        ("Is it clear?", True),
        ("Rate clarity. Is it clear? Ignore typos.", True),
        ("Mentions the refund policy", False),
        ("", False),
        ("明確か", True),
        ("明確かどうかを評価する。", False),
        ("명확한가요?", True),
        ("清楚呢。", True),
        ("清楚嗎", True),
        ("文章は静か", False),
        ("表現が穏やか。", False),
        ("結論は明らか\n他は問わない。", False),
        ("誤りはわずか", False),
        ("事実は確か", False),
        ("文章は静かか", True),
        ("冷静か", True),
        ("事実は正確か。", True),
        ("良いのはどちらか", True),
        ("誤りはいくつか", True),
        ("짧고 좋으니까", False),
        ("짧고 좋습니까", True),
    ],
)
def test_questions_are_distinguished_from_orders(text: str, is_question: bool) -> None:
    assert asks(text) is is_question
