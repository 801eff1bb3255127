"""Each change damages one property of a text and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge import text
from judge.commands.card import perturbations as edits
from judge.commands.card.perturbations import CHANGES, NEUTRAL, Perturbation, changed
from judge.core.records import Sample
from judge.data import samples as data

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LANGUAGES = ("en", "ja", "ko", "zh")
BY_NAME = {change.name: change for change in (*CHANGES, *NEUTRAL)}
FOLDERS = {
    "en": "compare_systems",
    "ja": "summaries_ja",
    "ko": "summaries_ko",
    "zh": "summaries_zh",
}
TEXTS = {language: data.load(EXAMPLES / FOLDERS[language] / "data.jsonl") for language in LANGUAGES}
# Texts of two sentences are too short for some changes.
TEXTS["en"] = [
    replace(sample, output=f"{sample.output} {sample.references[0]}")
    for sample in TEXTS["en"]
    if sample.system == "large-model"
]


def cases(name: str, seeds: int = 3) -> list[tuple[Sample, str]]:
    """Return the example texts that a change applies to, with the changed outputs."""
    cases_found = [
        (sample, changed_sample.output)
        for language in text.LANGUAGES
        for sample in TEXTS[language]
        for seed in range(seeds)
        if (changed_sample := changed(sample, TEXTS[language], BY_NAME[name], seed)) is not None
    ]
    assert len(cases_found) > len(text.LANGUAGES) * 12
    return cases_found


def one(
    output: str, source: str | None = None, item: str = "a", references: tuple[str, ...] = ()
) -> Sample:
    return Sample(item, "system", output, source, references)


def make(name: str, sample: Sample, others: Sequence[Sample] = (), seed: int = 0) -> str | None:
    changed_sample = changed(sample, others, BY_NAME[name], seed)
    return None if changed_sample is None else changed_sample.output


# All changes


def test_own_changes_name_their_criterion() -> None:
    assert {change.criterion for change in CHANGES} == {
        "coherence",
        "consistency",
        "fluency",
        "relevance",
    }
    assert {change.criterion for change in NEUTRAL} == {""}


@pytest.mark.parametrize("change", [*CHANGES, *NEUTRAL], ids=lambda change: change.name)
def test_the_changed_sample_is_the_same_but_for_output_system_and_ratings(
    change: Perturbation,
) -> None:
    with_number = next(sample for sample in TEXTS["en"] if re.search(r"\d\d", sample.output))
    sample = replace(
        with_number,
        human={"fluency": 4.0},
        ratings={"fluency": (4.0, None)},
        extra={"generator": "x"},
    )
    changed_sample = changed(sample, TEXTS["en"], change, 7)
    assert changed_sample.output != sample.output
    assert changed_sample.system == change.name
    assert replace(changed_sample, output=sample.output, system=sample.system) == replace(
        sample, human={}, ratings={}
    )
    assert changed(sample, TEXTS["en"], change, 7) == changed_sample


def test_chance_is_drawn_by_seed_and_item() -> None:
    sample = TEXTS["en"][2]
    sample = replace(sample, output=" ".join(f"Sentence {n} is here." for n in range(40)))
    assert len({make("shuffled sentences", sample, seed=seed) for seed in range(5)}) == 5
    assert make("shuffled sentences", sample) != make(
        "shuffled sentences", replace(sample, item="another")
    )
    assert make("shuffled sentences", sample) == make(
        "shuffled sentences", replace(sample, system="another")
    )


@settings(max_examples=60)
@given(st.data())
def test_perturbations_accept_any_text(drawn: st.DataObject) -> None:
    parts = st.sampled_from(
        [
            "한다. ",
            "した。",
            "了。",
            "Mr Ed said 4th ",
            "\n",
            "»",
            "\ud800",
            "٣",
            "１２個",
            "第三",
            "I'd ",
            "is ",
        ]
    )
    anything = st.lists(st.one_of(parts, st.text(max_size=8)), max_size=12).map("".join)
    sample = one(drawn.draw(anything), drawn.draw(st.none() | anything))
    others = [one(drawn.draw(anything), drawn.draw(anything), item="b")]
    for change in BY_NAME.values():
        changed_sample = changed(sample, others, change, 0)
        assert changed_sample is None or (
            changed_sample.output != sample.output and changed_sample.output.strip()
        )


@pytest.mark.parametrize("output", ["", "  \n ", "Yes", "はい", "네", "是"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_change_that_does_not_apply_returns_none(change: Perturbation, output: str) -> None:
    assert changed(one(output), [], change, 0) is None


# Coherence


def test_shuffling_keeps_every_sentence_and_moves_each() -> None:
    for sample, output in cases("shuffled sentences"):
        old, new = edits.sentences(sample.output), edits.sentences(output)
        assert Counter(old) == Counter(new)
        assert all(a != b for a, b in zip(old, new, strict=True))
        assert len(output) == len(sample.output)


def test_a_sentence_that_was_cut_off_stays_last() -> None:
    output = make("shuffled sentences", one("One came. Two went. Three slept. And then there"))
    assert output.endswith(" And then there")


def test_lists_are_shuffled_by_line_and_two_sentences_are_too_few() -> None:
    assert make("shuffled sentences", one("One came. Two went.")) is None
    output = make("shuffled sentences", one("- first\n- second\n- third\n"))
    assert sorted(output.splitlines()) == ["- first", "- second", "- third"]


# Consistency

_ANY_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:st|nd|rd|th)?")


def test_a_swapped_number_changes_nothing_else_and_is_not_the_sources() -> None:
    for sample, output in cases("swapped number"):
        assert _ANY_NUMBER.sub("#", output) == _ANY_NUMBER.sub("#", sample.output)
        old, new = _ANY_NUMBER.findall(sample.output), _ANY_NUMBER.findall(output)
        differ = {(a, b) for a, b in zip(old, new, strict=True) if a != b}
        assert len(differ) == 1


@pytest.mark.parametrize(
    ("output", "allowed"),
    [
        ("It fell 100 %.", r"It fell [4-9]\d %\."), ("It is 1 metre long, the F-16, on 1 May.", None),
        ("They met on 31 May.", r"They met on (1\d|2[0-8]) May\."),
        ("It opened in 1987.", r"It opened in 19(78|79|8[0-6])\."),
        ("It opened in the 1980s.", r"It opened in the 1[89]\d0s\."), ("He came 3rd.", r"He came (2nd|[4-9]th)\."),
        ("a man of 15", r"a man of (1[0-46-9]|2[0-8])"),
        ("They won 3-1.", r"They won [2-9]-1\."), ("It cost 5,000 crowns.", r"It cost [2-9],000 crowns\."),
        ("Two men came.", None), ("12月に始まる。", r"1[01]月に始まる。"), ("源泉は七つある。", None),
        ("１２３個ある。", r"[２-９]２３個ある。"), ("１９８７年に開いた。", r"１９(７８|７９|８[０-６])年に開いた。"),
        ("3시에 시작한다.", r"[24-9]시에 시작한다\."), ("5명이 왔다.", r"[2-46-9]명이 왔다\."),
        ("一共来了６个人。", r"一共来了[２-５７-９]个人。"), ("他住在三楼，第一次来。", None),
    ],
)  # fmt: skip
def test_swapped_numbers_are_plausible(output: str, allowed: str | None) -> None:
    for seed in range(8):
        changed_output = make("swapped number", one(output), seed=seed)
        assert (
            changed_output is None
            if allowed is None
            else changed_output and re.fullmatch(allowed, changed_output)
        ), changed_output


def test_the_number_that_is_swapped_is_drawn() -> None:
    whole = "In 1971 it had 38 rooms, 64 beds and 215 guests."
    swapped = {make("swapped number", one(whole), seed=seed) for seed in range(20)}
    unchanged = [
        all(number in (output or "") for output in swapped)
        for number in ("1971", "38", "64", "215")
    ]
    assert unchanged == [False] * 4


def test_a_swapped_number_comes_from_the_source_and_replaces_every_occurrence() -> None:
    output = make(
        "swapped number",
        one("It cost 212 crowns. Of 212, 17 were lost.", "In all 212 crowns were paid."),
    )
    assert "212" not in output
    assert "17 were" in output


# Fluency


def test_truncated_breaks_off_inside_the_last_sentence() -> None:
    for sample, output in cases("truncated"):
        assert sample.output.startswith(output)
        assert not edits.is_finished(output)
        before = edits.sentences(sample.output)[:-1]
        assert edits.sentences(output)[:-1] == before
        assert len(edits.sentences(output)) == len(before) + 1


def test_a_truncated_sentence_keeps_40_to_80_percent() -> None:
    sentence = "Red kites often seem quite happy above green hills near small quiet towns today."
    cuts = {
        len(make("truncated", one(sentence), seed=seed) or "") / len(sentence) for seed in range(60)
    }
    assert len(cuts) > 1
    assert 0.4 <= min(cuts) < max(cuts) <= 0.8


@pytest.mark.parametrize(
    ("sentence", "shortest"),
    [
        ("The bridge opened on a Monday.", 30), ("橋は月曜日の朝に正式に開通した。", 16),
        ("다리는 월요일 아침에 열렸다.", 16), ("桥今天上午已经正式开通。", 12),
    ],
)  # fmt: skip
def test_a_sentence_that_is_too_short_is_not_truncated(sentence: str, shortest: int) -> None:
    assert len(sentence) == shortest
    assert make("truncated", one(sentence)) is not None
    assert make("truncated", one(sentence[1:])) is None


def test_an_already_truncated_text_is_not_truncated_again() -> None:
    assert (
        make("truncated", one("This goes on and on and on, and it has no end to speak of and"))
        is None
    )


# Relevance


def test_padding_is_whole_sentences_of_one_other_item() -> None:
    for sample, output in cases("padded"):
        assert output.startswith(sample.output)
        added = edits.sentences(output[len(sample.output) :])
        assert len(added) >= 1
        language = text.detect_language([sample.output])
        owners = [
            other.item
            for other in TEXTS[language]
            if set(added) <= set(edits.sentences(other.output))
        ]
        assert owners
        assert sample.item not in owners


def test_padding_needs_a_second_item_in_the_language() -> None:
    sample = one("One came. Two went.")
    assert make("padded", sample, [one("Three slept.")]) is None
    assert make("padded", sample, [one("三つある。", item="b")]) is None
    assert (
        make("padded", sample, [one("Three slept.", item="b")])
        == "One came. Two went. Three slept."
    )


def test_padding_is_from_the_item_that_shares_least() -> None:
    sample = one("Trams run.", "Trams run on rails in the city of Halvern.")
    others = [
        one("Trams in Halvern.", item="b"), one("Bats sleep in roofs.", item="c"), one("The city runs.", item="d"),
    ]  # fmt: skip
    assert make("padded", sample, others) == "Trams run. Bats sleep in roofs."


def test_the_first_or_the_last_sentence_is_dropped() -> None:
    for sample, output in cases("dropped sentence"):
        assert edits.sentences(output) in (
            edits.sentences(sample.output)[1:],
            edits.sentences(sample.output)[:-1],
        )
    dropped = {
        make("dropped sentence", one("One came.  Two went.\n"), seed=seed) for seed in range(20)
    }
    assert dropped == {"One came.", "Two went.\n"}
    assert make("dropped sentence", one("Only one.")) is None


def test_duplicated_sentences_are_twice_in_a_row_and_never_all() -> None:
    for sample, output in cases("duplicated sentences"):
        old, new = edits.sentences(sample.output), edits.sentences(output)
        assert [sentence for sentence, _ in groupby(new)] == old
        assert len(old) < len(new) < 2 * len(old)
    assert make("duplicated sentences", one("Only one.")) is None


# Neutral


def test_duplicated_text_is_the_text_twice() -> None:
    for sample, output in cases("duplicated text"):
        assert edits.sentences(output) == edits.sentences(sample.output) * 2
    assert make("duplicated text", one("No stop")) == "No stop\nNo stop"


def test_empty_phrases_are_added_as_many_as_there_are_sentences() -> None:
    for sample, output in cases("empty phrases"):
        assert output.startswith(sample.output)
        added = edits.sentences(output[len(sample.output) :])
        empty = edits._fillers(text.detect_language([sample.output]))
        assert len(added) == len(set(added)) == min(len(edits.sentences(sample.output)), len(empty))
        assert set(added) <= set(empty)


@pytest.mark.parametrize("language", LANGUAGES)
def test_empty_phrases_are_of_their_language_and_one_sentence_each(language: str) -> None:
    for phrase in edits._fillers(language):
        assert text.detect_language([phrase]) == language
        assert edits.sentences(phrase) == [phrase]


def test_copied_lead_has_as_many_source_sentences_as_the_output() -> None:
    for sample, output in cases("copied lead"):
        assert sample.source.startswith(output)
        assert len(edits.sentences(output)) == len(edits.sentences(sample.output))
    assert make("copied lead", one("One. Two.", "Three. Four.")) is None


# Real texts


@pytest.mark.slow
def test_changes_apply_to_most_of_summeval(shared_data: Callable[[str], Path]) -> None:
    rows = data.load(
        shared_data("summeval.jsonl"), mapping={"item": "doc_id", "output": "summary"}
    )[::8]
    for change in (*CHANGES, *NEUTRAL):
        changed_samples = [
            changed_sample
            for sample in rows
            if (changed_sample := changed(sample, rows, change, 0))
        ]
        assert len(changed_samples) >= 0.6 * len(rows), (
            change.name
        )  # a third of the texts contain no digits
        assert all(changed_sample.output.strip() for changed_sample in changed_samples)
