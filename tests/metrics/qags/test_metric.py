"""QAGS from samples to rows, with fake stages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge.metrics.qags as metric_module
from judge import __version__
from judge.core.errors import ConfigError, DataError, MissingExtra
from judge.core.records import Failure, Sample, Score
from judge.metrics import qags
from judge.metrics.base import MetricContext, ModelError, ModelQuestion
from judge.metrics.common import spread
from judge.metrics.qags import Qags, QagsValue, judge_model, score
from judge.metrics.qags.pipeline import QagsLine, Stages
from tests.factories import has_line, lines_hold

SOURCE = "Anna Berg sailed to Oslo on Friday. The ferry was three hours late."
FAITHFUL = "The ferry was three hours late."
WRONG = "Berg sailed to Bergen on Friday."


def sample(output: str, source: str | None = SOURCE, item: str = "1", **fields: Any) -> Sample:
    return Sample(item, "s", output, source=source, **fields)


class Stage:
    """A fake stage that looks up its results in a table and records its inputs.

    `default` computes the result of an input that the table does not have.
    """

    signature = "table|v1"

    def __init__(self, table: dict[Any, Any], default: Callable[[Any], Any]) -> None:
        self.table = table
        self.default = default
        self.inputs: list[Any] = []

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        self.inputs += inputs
        return [self.table.get(each, self.default(each)) for each in inputs]

    themes = questions = answers = __call__


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> tuple[Stage, Stage, Stage]:
    """Replace the stages of the back end `llm`: themes are words, the question is `theme?`, the answer the theme."""
    fakes = (
        Stage({}, str.split),
        Stage({}, lambda pair: f"{pair[0]}?"),
        Stage(
            {},
            lambda pair: pair[0].removesuffix("?") if pair[0].removesuffix("?") in pair[1] else "",
        ),
    )
    monkeypatch.setattr(judge_model, "open", lambda ask, language: Stages(*fakes))
    return fakes


class Silent:
    """A judge that the fake stages never ask."""

    signature = "silent"

    def __call__(self, items: Sequence[ModelQuestion]) -> list[str | ModelError]:
        raise AssertionError


silent = Silent()


def by_llm(samples: Sequence[Sample], **options: Any) -> tuple[Score | Failure, ...]:
    return Qags(context=MetricContext(ask=silent), backend="llm", **options).score(samples).rows


def test_the_mean_of_the_similarities_of_the_answers(stages: tuple[Stage, Stage, Stage]) -> None:
    stages[2].table |= {("Oslo?", "Anna Oslo"): "Anna Oslo"}
    exact, f1 = by_llm([sample("Anna Oslo", "Oslo Anna")], similarity=["exact", "f1"])
    assert isinstance(exact, Score)
    assert isinstance(f1, Score)
    assert (exact.value, f1.value) == (0.5, pytest.approx((1 + 2 / 3) / 2))
    assert (exact.provenance.n, exact.provenance.note, f1.provenance.raw) == (2, None, None)
    assert json.loads(exact.provenance.raw or "") == {
        "qags": [
            ["Anna", "Anna?", "Anna", "Anna", {"exact": 1.0, "f1": 1.0}, ""],
            ["Oslo", "Oslo?", "Oslo", "Anna Oslo", {"exact": 0.0, "f1": pytest.approx(2 / 3)}, ""],
        ]
    }


def test_signatures_name_every_option(stages: tuple[Stage, Stage, Stage]) -> None:
    result = Qags(context=MetricContext(ask=silent), similarity=["f1", "rougeL"], most=5).score(
        [sample(FAITHFUL)]
    )
    models_part = "themes=table v1|questions=table v1|answers=table v1|most=5"
    assert [(str(column.signature), column.low, column.high) for column in result.columns] == [
        (f"qags_f1|{models_part}|similarity=f1|tok=squad|judge {__version__}", 0.0, 1.0),
        (
            f"qags_rougeL|{models_part}|similarity=rougeL|f|stem|tok=en|judge {__version__}",
            0.0,
            1.0,
        ),
    ]


@pytest.mark.parametrize(
    ("output", "source", "error", "message"),
    [
        (FAITHFUL, None, "NoSource", "no source.*--map source=COLUMN"),
        (FAITHFUL, " \n", "NoSource", "has a blank source"),
        ("!", SOURCE, "NoThemes", "has no themes"),
        (" ", SOURCE, "NoThemes", "has an empty output"),
    ],
)
def test_an_unmeasurable_output_is_a_failure(
    stages: tuple[Stage, Stage, Stage], output: str, source: str | None, error: str, message: str
) -> None:
    stages[0].table["!"] = []
    (failure,) = by_llm([sample(output, source)])
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.error, failure.raw) == ("metric", error, "")
    assert re.search(message, failure.message)


def test_a_question_counts_0_if_one_text_answers_and_not_if_neither_does(
    stages: tuple[Stage, Stage, Stage],
) -> None:
    stages[2].table |= {("b?", "a b c"): "", ("c?", "a b c"): " "}
    (score,) = by_llm([sample("a b c", "a b")])
    assert isinstance(score, Score)  # a 1; b 0, as the source alone answers; c left out
    assert (score.value, score.provenance.n) == (0.5, 2)
    assert has_line(score.provenance.note or "", "1 of 3 questions", "1 answered by neither")
    assert [line[4:] for line in json.loads(score.provenance.raw or "")["qags"]] == [
        [{"f1": 1}, ""],
        [{"f1": 0}, ""],
        [{}, "answered by neither"],
    ]


def test_an_output_without_a_counted_question_is_a_failure(
    stages: tuple[Stage, Stage, Stage],
) -> None:
    stages[2].table |= {("x?", "x y"): "", ("y?", "x y"): ""}
    first, second = by_llm([sample("x y", "a b")], similarity=["f1", "exact"])
    assert isinstance(first, Failure)
    assert isinstance(second, Failure)
    assert first.error == second.error == "NothingAsked"
    assert has_line(first.message, "2 of 2 questions", "2 answered by neither")
    neither = ["", "", {}, "answered by neither"]
    assert json.loads(first.raw) == {"qags": [["x", "x?", *neither], ["y", "y?", *neither]]}
    assert second.raw == ""


def test_a_model_error_drops_a_theme_or_fails_the_output(
    stages: tuple[Stage, Stage, Stage],
) -> None:
    long = ModelError("QuestionTooLong", "the question has 900 tokens")
    stages[0].table["bad"] = long
    stages[1].table |= {("b", "a b c"): long, ("c", "a b c"): " ", ("x", "x"): long}
    stages[2].table[("d?", "a d")] = long
    rows = by_llm([sample(output, "a b c d") for output in ("bad", "a b c", "x", "a d")])
    assert [row.error if isinstance(row, Failure) else row.value for row in rows] == [
        long.error,
        1,
        "NothingAsked",
        1,
    ]
    notes = [row.provenance.note or "" for row in rows if isinstance(row, Score)]
    several = ("2 of 3 questions", "1 no question", "1 question too long")
    assert lines_hold(notes, [several, ("1 of 2 questions", "1 question too long")])
    assert isinstance(rows[2], Failure)
    assert has_line(rows[2].message, "no question counts", "1 of 1", "1 question too long")


@pytest.mark.parametrize("stage", [1, 2])
def test_a_judge_error_is_a_failure_with_its_details(
    stages: tuple[Stage, Stage, Stage], stage: int
) -> None:
    refused = ModelError("Refused", "the server said no", failed=True)
    stages[stage].table |= {("b", "a b c"): refused} if stage == 1 else {("b?", "a b d"): refused}
    result = Qags(context=MetricContext(ask=silent), backend="llm").score(
        [sample("a b c", "a b d"), sample("a", "a", "2")]
    )
    failure, score_of_item_2 = result.rows
    assert isinstance(failure, Failure)
    assert failure.error == "Refused"
    assert has_line(failure.message, "1 of 3 themes", "no question or answer", "the server said no")
    assert [line[4:] for line in json.loads(failure.raw)["qags"]] == [
        [{"f1": 1}, ""],
        [{}, "refused: the server said no"],
        [{"f1": 0}, ""],
    ]
    assert isinstance(score_of_item_2, Score)
    assert result.notes == (), "a failure needs no note"


def test_the_option_consistent_leaves_out_questions_the_output_answers_differently(
    stages: tuple[Stage, Stage, Stage],
) -> None:
    stages[2].table |= {("y?", "x y z w"): "z", ("z?", "x y z w"): "", ("w?", "x y z w"): "The W!"}
    samples = [sample("x y z w", "x y")]
    (plain,), filtered = (
        by_llm(samples),
        Qags(context=MetricContext(ask=silent), backend="llm", consistent=True).score(samples),
    )
    (score,) = filtered.rows
    assert isinstance(plain, Score)
    assert isinstance(score, Score)
    assert (plain.value, score.value) == (pytest.approx(1 / 3), 0.5)
    note = score.provenance.note or ""
    assert has_line(note, "2 of 4 questions", "1 answered by neither", "1 the output answers")
    assert "|most=20|consistent|similarity=" in str(filtered.columns[0].signature)


def test_each_stage_gets_each_distinct_input_once(stages: tuple[Stage, Stage, Stage]) -> None:
    themes, questions, answers = stages
    samples = [
        sample("a b", "a b c"),
        sample("a b", "a b c", "2"),
        sample("a b", "b", "3"),
        sample("a", "a b c", "4"),
    ]
    by_llm(samples)
    assert themes.inputs == ["a b", "a"]
    assert questions.inputs == [("a", "a b"), ("b", "a b"), ("a", "a")]
    assert len(answers.inputs) == len(set(answers.inputs)) == 7
    assert set(answers.inputs) == {
        ("a?", "a b c"),
        ("a?", "a b"),
        ("a?", "b"),
        ("b?", "a b c"),
        ("b?", "a b"),
        ("b?", "b"),
        ("a?", "a"),
    }


def test_each_stage_is_one_part_of_the_signature(stages: tuple[Stage, Stage, Stage]) -> None:
    stages[1].signature, stages[2].signature = "gpt:en@1", "t5@1|beams=4"
    (column,) = Qags(context=MetricContext(ask=silent), backend="llm").score([]).columns
    assert "|themes=table v1|questions=gpt:en@1|answers=t5@1 beams=4|" in str(column.signature)


def test_the_option_most_selects_themes_evenly(stages: tuple[Stage, Stage, Stage]) -> None:
    (score,) = by_llm([sample("a b c d e f g h", "a b c d e f g h")], most=4)
    assert isinstance(score, Score)
    assert [line[0] for line in json.loads(score.provenance.raw or "")["qags"]] == [
        "b",
        "d",
        "f",
        "h",
    ]
    assert score.provenance.note == "4 of 8 themes asked"


@given(st.integers(0, 60), st.integers(1, 30))
def test_spread(count: int, most: int) -> None:
    themes = [str(n) for n in range(count)]
    spread_themes = [int(theme) for theme in spread(themes, most)]
    assert len(spread_themes) == min(count, most)
    assert spread_themes == sorted(set(spread_themes))
    gaps = [b - a for a, b in zip([-1, *spread_themes], [*spread_themes, count], strict=True)]
    assert not spread_themes or max(gaps) <= count / len(spread_themes) + 1


def test_a_note_counts_the_questions_left_out(stages: tuple[Stage, Stage, Stage]) -> None:
    stages[2].table |= {("y?", "a y"): ""}
    result = Qags(context=MetricContext(ask=silent), backend="llm").score(
        [sample("a y", "a"), sample("a", "a", "2")]
    )
    (note,) = result.notes
    assert has_line(note, "qags: 1 of 3 questions", "1 answered by neither")


def test_answers_that_bertscore_cannot_compare_fail_in_its_column(
    monkeypatch: pytest.MonkeyPatch, stages: tuple[Stage, Stage, Stage]
) -> None:
    def without(
        self: object, pairs: Sequence[object], languages: object = None
    ) -> list[dict[str, float]]:
        return [{"f1": 1.0} if n else {"f1": 1.0, "exact": 1.0} for n in range(len(pairs))]

    monkeypatch.setattr(qags.pipeline.Similarities, "compare", without)
    f1, exact = by_llm([sample("ferry late", "ferry late")], similarity=["f1", "exact"])
    assert isinstance(f1, Score)
    assert isinstance(exact, Failure)
    assert (exact.error, "'late'" in exact.message) == ("NotCompared", True)


def test_models_are_loaded_once_when_the_metric_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[Qags] = []

    def fake(options: Qags) -> tuple[Stage, Stage]:
        opened.append(options)
        return Stage({}, lambda pair: f"{pair[0]}?"), Stage({}, lambda pair: "ferry")

    monkeypatch.setattr(metric_module, "open_models", fake)
    progress: list[tuple[int, int]] = []

    def record_progress(done: int, total: int) -> None:
        progress.append((done, total))

    monkeypatch.setattr(
        metric_module, "Nouns", lambda tool, compounds=True: Stage({}, lambda output: ["ferry"])
    )
    metric = Qags(
        context=MetricContext(cache="c", progress=record_progress),
        backend="models",
        questions="t5",
        answers="qa",
        beams=2,
        device="cpu",
    )
    assert opened == [metric]
    result = metric.score([sample(FAITHFUL)])
    assert [row.value for row in result.rows if isinstance(row, Score)] == [1.0]
    assert "|questions=table v1|answers=table v1|most=20|" in str(result.columns[0].signature)
    assert metric.score([sample(FAITHFUL)]) == result
    assert len(opened) == 1
    assert progress == []  # the models report progress, and these are fakes
    monkeypatch.setattr(judge_model, "open", lambda ask, language: Stages(*[Stage({}, str)] * 3))
    Qags(context=MetricContext(ask=silent, progress=record_progress)).score([])
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_stages_may_use_different_back_ends(stages: tuple[Stage, Stage, Stage]) -> None:
    languages: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            judge_model, "open", lambda ask, language: languages.append(language) or Stages(*stages)
        )
        patch.setattr(
            metric_module, "Nouns", lambda tool, compounds=True: Stage({}, lambda output: [tool])
        )
        Qags(context=MetricContext(ask=silent), language="ko").score([sample(FAITHFUL)])
        assert stages[0].inputs == [FAITHFUL]
        Qags(context=MetricContext(ask=silent), themes="ja").score([sample(FAITHFUL)])
    assert languages == ["ko", "en"]
    assert stages[0].inputs == [FAITHFUL]
    assert stages[1].inputs[-1] == ("ja", FAITHFUL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "gpt"}, "backend .*llm, models"),
        ({}, "--model NAME.*qags.backend=models"),
        ({"themes": "llm"}, "--model NAME"),
        ({"backend": "models"}, "needs two models.*qags.questions=GENERATOR.*qags.answers=READER"),
        ({"questions": "t5"}, "one for answers"),
        ({"answers": "qa", "context": MetricContext(ask=silent)}, "one for answers"),
        ({"themes": "nuons", "context": MetricContext(ask=silent)}, "did you mean 'nouns'"),
        ({"similarity": "f2"}, "similarity .*, not 'f2'"),
        ({"similarity": []}, "similarity must be"),
        ({"most": 0}, "most .*whole number from 1"),
        ({"compounds": "yes"}, "compounds .*true or false"),
        ({"low": 0.9, "context": MetricContext(ask=silent)}, "low"),
        ({"low": "half"}, "low must be a number"),
        ({"similarity": 5}, "similarity must be"),
        ({"similarity": None}, "similarity must be"),
        ({"consistent": 1}, "consistent .*true or false"),
        ({"themes": 5}, "themes must be a text"),
        ({"questions": ["t5"]}, "questions must be a text"),
        ({"language": "fr"}, "language .*en, ja, ko, zh"),
        ({"beams": 3}, "beams .*backend=models"),
        ({"template": "x"}, "template .*backend=models"),
        ({"question_tokens": 9}, "question_tokens .*backend=models"),
        ({"null": False}, "null .*backend=models"),
        (
            {"bertscore_layer": 3},
            "bertscore_layer .*similarity=bertscore or corrected",
        ),
        (
            {"device": "cpu"},
            "device .*backend=models .*similarity=bertscore or corrected",
        ),
    ],
)
def test_wrong_options_are_config_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Qags(**options)


def test_missing_packages_are_errors_before_scoring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.text.tokenizers.find_spec", lambda module: None)
    with pytest.raises(MissingExtra, match="textjudge"):
        Qags(context=MetricContext(ask=silent), themes="ja")


def test_a_text_in_decomposed_letters_is_composed_before_it_is_read(
    stages: tuple[Stage, Stage, Stage],
) -> None:
    by_llm([sample(normalize("NFD", "연락선이 항구에 도착했다."), "연락선")])
    assert stages[0].inputs == ["연락선이 항구에 도착했다."]


def test_the_function_for_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stage({}, lambda pair: f"{pair[0]}?"), Stage({}, lambda pair: "ferry")
    monkeypatch.setattr(metric_module, "open_models", lambda options: stages)
    nouns = Stage({"They were there.": []}, lambda output: ["ferry"])
    monkeypatch.setattr(metric_module, "Nouns", lambda tool, compounds=True: nouns)
    models = {"backend": "models", "questions": "t5", "answers": "qa"}
    values = score([FAITHFUL, "They were there.", FAITHFUL], [SOURCE, SOURCE, ""], **models)
    assert isinstance(values[0], QagsValue)
    assert values[0].similarity == {"f1": 1.0}
    assert values[0].lines == (QagsLine("ferry", "ferry?", "ferry", "ferry", {"f1": 1.0}),)
    assert [(value.item, value.error) for value in values[1:] if isinstance(value, Failure)] == [
        ("1", "NoThemes"),
        ("2", "NoSource"),
    ]
    assert score([], [], **models) == []
    with pytest.raises(DataError, match="lists of equal length"):
        score(["a"], [])
    with pytest.raises(DataError, match="list of texts"):
        score("a", "b")
    with pytest.raises(ConfigError, match=r"in Python call judge\.evaluate\(rows, \[\], metrics="):
        score([FAITHFUL], [SOURCE])
    with pytest.raises(TypeError, match="backnd"):
        score([FAITHFUL], [SOURCE], backnd="llm")
