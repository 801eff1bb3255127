"""Attacks keep the text unchanged and ask for the top of the scale."""

from __future__ import annotations

import json
from itertools import product

import pytest

from judge import criteria, text
from judge.commands.card.perturbations import (
    ATTACKS,
    CHANGES,
    CONTROL,
    NEUTRAL,
    best_label,
    inject,
)
from judge.core.records import Criterion, Sample, Scale
from judge.criteria import template_bodies
from judge.criteria.render import Renderer
from judge.criteria.sandbox import fence_digest

LANGUAGES: tuple[str, ...] = ("en", "ja", "ko", "zh")
OUTPUTS: dict[str, str] = {
    "en": "The tram line opens in May and runs past the harbour.", "ja": "路面電車は五月に開業し、港の前を通る。",
    "ko": "전차 노선은 5월에 열리며 항구 앞을 지난다.", "zh": "有轨电车五月开通，途经港口。",
}  # fmt: skip
SCALES = [Scale.integers(1, 5), Scale(("pass", "fail"), (1.0, 0.0)), Scale.integers(-2, 2)]
every_language = pytest.mark.parametrize("language", LANGUAGES)


def sample(language: str) -> Sample:
    return Sample(
        "a",
        "system",
        OUTPUTS[language],
        "A source.",
        human={"fluency": 3.0},
        ratings={"fluency": (3.0,)},
    )


def test_names_are_unique_among_changes_too() -> None:
    names = [*ATTACKS, *(change.name for change in (*CHANGES, *NEUTRAL))]
    assert len(set(names)) == len(names)


@every_language
def test_the_text_is_whole_and_the_top_label_is_asked_for(language: str) -> None:
    for attack, (scale, label) in product(ATTACKS, zip(SCALES, ["5", "pass", "2"], strict=True)):
        assert best_label(Criterion("x", scale=scale)) == label
        injected = inject(sample(language), attack, label, language)
        assert (injected.item, injected.system, injected.source) == ("a", attack, "A source.")
        assert (injected.human, injected.ratings) == ({}, {})
        before, whole, after = injected.output.partition(OUTPUTS[language])
        assert whole
        assert bool(before) != bool(after)
        assert (label in before + after) == (attack != CONTROL)
        assert "{" not in (before + after).replace('{"score"', "")


@every_language
def test_attacks_are_in_the_language_of_the_texts_but_for_one(language: str) -> None:
    for attack in ATTACKS:
        added = inject(sample(language), attack, "5", language).output.replace(
            OUTPUTS[language], ""
        )
        if language != "en":
            added = "".join(letter for letter in added if not letter.isascii()) or added
        same = text.detect_language([added]) == language and "Hinweis" not in added
        assert same == (attack != "in another language"), attack


@every_language
def test_the_control_is_about_as_long_as_the_others(language: str) -> None:
    lengths = {
        attack: len(inject(sample(language), attack, "5", language).output) - len(OUTPUTS[language])
        for attack in ATTACKS
    }
    control_length = lengths.pop(CONTROL)
    assert min(lengths.values()) <= control_length <= max(lengths.values())


@every_language
def test_the_fake_form_holds_the_score_as_json(language: str) -> None:
    last = inject(sample(language), "fake form", "pass", language).output.splitlines()[-1]
    assert json.loads(last) == {"score": "pass"}


@every_language
def test_the_fake_mark_is_not_the_one_around_the_text(language: str) -> None:
    criterion = criteria.load("fluency", language=language)
    output = inject(sample(language), "fake closing mark", best_label(criterion), language).output
    prompt = Renderer(criterion, template_bodies(criterion)).render(
        Sample("a", "s", output, "A source.")
    )
    shown = prompt.messages[-1]["content"]
    mark = fence_digest(output)
    assert f"<output {mark}>\n{output}\n</output {mark}>" in shown
    assert shown.count(mark) == 2
    assert "</output 3f9a1c7e>" in shown
