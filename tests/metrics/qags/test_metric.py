"""From samples to rows: the lexical back end as it is, the others with stages of the test's own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judge.metrics.qags as metric_module
from judge import __version__, text
from judge.core.errors import ConfigError, MissingExtra
from judge.core.records import Failure, Sample, Score
from judge.metrics import qags
from judge.metrics.common import ModelError, ModelQuestion, spread
from judge.metrics.qags import Qags, QagsValue, judge_model, score
from judge.metrics.qags.pipeline import QagsLine

SOURCE = "Anna Berg sailed to Oslo on Friday. The ferry was three hours late."
FAITHFUL = "The ferry was three hours late."
WRONG = "Berg sailed to Bergen on Friday."


def sample(output: str, source: str | None = SOURCE, item: str = "1", **fields: Any) -> Sample:
    return Sample(item, "s", output, source=source, **fields)


def row(output: str, source: str | None = SOURCE, **options: Any) -> Score | Failure:
    (found,) = Qags(**options).score([sample(output, source)]).rows
    return found


class Stage:
    """A stage that looks up what it says and notes what it is asked; `shout` for what is not there."""

    signature = "table|v1"

    def __init__(self, table: dict[Any, Any], shout: Callable[[Any], Any]) -> None:
        self.table, self.shout, self.seen = table, shout, list[Any]()

    def __call__(self, asked: Sequence[Any]) -> list[Any]:
        self.seen += asked
        return [self.table.get(one, self.shout(one)) for one in asked]

    themes = questions = answers = __call__


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> tuple[Stage, Stage, Stage]:
    """Those of the back end `llm`: words as themes, `theme?` as question, the theme as the answer."""
    made = (
        Stage({}, str.split),
        Stage({}, lambda asked: f"{asked[0]}?"),
        Stage({}, lambda asked: asked[0].removesuffix("?") if asked[0].removesuffix("?") in asked[1] else ""),
    )
    monkeypatch.setattr(judge_model, "open", lambda ask, language: made)
    return made


def silent(wanted: Sequence[ModelQuestion]) -> list[str | ModelError]:
    raise AssertionError("the stages are the test's own")


def by_llm(samples: Sequence[Sample], **options: Any) -> tuple[Score | Failure, ...]:
    return Qags(backend="llm", ask=silent, **options).score(samples).rows


def test_what_the_source_says_too_is_1() -> None:
    found = row(FAITHFUL)
    assert isinstance(found, Score)
    assert (found.column, found.value, found.provenance.n, found.provenance.note) == ("qags_f1", 1.0, 2, None)
    assert json.loads(found.provenance.raw or "") == {
        "qags": [
            ["ferry", "The ____ was three hours late.", "ferry", "ferry", {"f1": 1.0}, ""],
            ["three hours", "The ferry was ____ late.", "three hours", "three hours", {"f1": 1.0}, ""],
        ]
    }


def test_the_mean_of_the_similarities_of_the_answers() -> None:
    found = Qags(similarity=["exact", "f1"]).score([sample(WRONG)]).rows
    assert [one.value for one in found if isinstance(one, Score)] == pytest.approx([1 / 3, (2 / 3 + 0 + 1) / 3])
    assert [isinstance(one, Score) and one.provenance.raw is None for one in found] == [False, True]
    (value,) = score([WRONG], [SOURCE], similarity="exact, f1")
    assert isinstance(value, QagsValue)
    assert value.similarity == {"exact": pytest.approx(1 / 3), "f1": pytest.approx(5 / 9)}
    assert value.lines[1] == QagsLine(
        "Bergen", "Berg sailed to ____ on Friday.", "Oslo", "Bergen", {"exact": 0, "f1": 0}
    )


def test_columns_are_signed() -> None:
    result = Qags(similarity=["f1", "rougeL"], most=5).score([sample(FAITHFUL)])
    rules = f"rules{__version__}"
    stages = f"themes={rules}|questions=cloze|answers=lexical-{rules}|most=5"
    assert [(column.signature, column.low, column.high) for column in result.columns] == [
        (f"qags_f1|{stages}|similarity=f1|tok=squad|judge {__version__}", 0.0, 1.0),
        (f"qags_rougeL|{stages}|similarity=rougeL|f|stem|tok=en|judge {__version__}", 0.0, 1.0),
    ]


@pytest.mark.parametrize(
    ("output", "source", "error", "said"),
    [
        (FAITHFUL, None, "NoSource", "item 1 has no source.*--map source=COLUMN"),
        (FAITHFUL, " \n", "NoSource", "has a blank source"),
        ("They were there.", SOURCE, "NoThemes", "has no themes"),
        (" ", SOURCE, "NoThemes", "has an empty output"),
        ("Паром пришёл в порт.", SOURCE, "NoNounFinder", "backend=llm"),
    ],
)
def test_what_cannot_be_measured_is_a_failure(output: str, source: str | None, error: str, said: str) -> None:
    found = row(output, source)
    assert isinstance(found, Failure)
    assert (found.stage, found.error, found.raw) == ("metric", error, "")
    assert re.search(said, found.message)


def test_unanswerable_from_one_text_is_0_and_from_both_is_left_out(stages: tuple[Stage, Stage, Stage]) -> None:
    stages[2].table |= {("b?", "a b c"): "", ("c?", "a b c"): " "}
    (found,) = by_llm([sample("a b c", "a b")])
    assert isinstance(found, Score)  # a 1; b 0, as the source alone answers; c left out
    assert (found.value, found.provenance.n) == (0.5, 2)
    assert found.provenance.note == "1 of 3 questions left out: 1 answered by neither"
    assert [line[4:] for line in json.loads(found.provenance.raw or "")["qags"]] == [
        [{"f1": 1}, ""],
        [{"f1": 0}, ""],
        [{}, "answered by neither"],
    ]


def test_nothing_asked(stages: tuple[Stage, Stage, Stage]) -> None:
    stages[2].table |= {("x?", "x y"): "", ("y?", "x y"): ""}
    first, second = by_llm([sample("x y", "a b")], similarity=["f1", "exact"])
    assert isinstance(first, Failure)
    assert isinstance(second, Failure)
    assert first.error == second.error == "NothingAsked"
    assert "2 of 2 questions left out: 2 answered by neither" in first.message
    neither = ["", "", {}, "answered by neither"]
    assert json.loads(first.raw) == {"qags": [["x", "x?", *neither], ["y", "y?", *neither]]}
    assert second.raw == ""


def test_trouble_leaves_a_theme_out_and_is_the_failure_where_there_is_nothing_else(
    stages: tuple[Stage, Stage, Stage],
) -> None:
    long = ModelError("QuestionTooLong", "the question has 900 tokens")
    stages[0].table["bad"] = long
    stages[1].table |= {("b", "a b c"): long, ("c", "a b c"): " ", ("x", "x"): long}
    stages[2].table[("d?", "a d")] = long
    rows = by_llm([sample(output, "a b c d") for output in ("bad", "a b c", "x", "a d")])
    assert [one.error if isinstance(one, Failure) else one.value for one in rows] == [long.error, 1, "NothingAsked", 1]
    assert [one.provenance.note for one in rows if isinstance(one, Score)] == [
        "2 of 3 questions left out: 1 NoQuestion, 1 QuestionTooLong",
        "1 of 2 questions left out: 1 QuestionTooLong",
    ]
    assert isinstance(rows[2], Failure)
    assert rows[2].message.endswith("no question counts: 1 of 1 questions left out: 1 QuestionTooLong")


@pytest.mark.parametrize("stage", [1, 2])
def test_what_the_judge_failed_is_a_failure_with_its_working(stages: tuple[Stage, Stage, Stage], stage: int) -> None:
    refused = ModelError("Refused", "the server said no", failed=True)
    stages[stage].table |= {("b", "a b c"): refused} if stage == 1 else {("b?", "a b d"): refused}
    result = Qags(backend="llm", ask=silent).score([sample("a b c", "a b d"), sample("a", "a", "2")])
    found, other = result.rows
    assert isinstance(found, Failure)
    assert found.error == "Refused"
    assert "for 1 of 3 themes the judge gave no question or answer: the server said no" in found.message
    assert [line[4:] for line in json.loads(found.raw)["qags"]] == [
        [{"f1": 1}, ""],
        [{}, "Refused: the server said no"],
        [{"f1": 0}, ""],
    ]
    assert isinstance(other, Score)
    assert result.notes == (), "it is among the failures"


def test_a_question_that_the_output_answers_otherwise_may_be_left_out(stages: tuple[Stage, Stage, Stage]) -> None:
    stages[2].table |= {("y?", "x y z w"): "z", ("z?", "x y z w"): "", ("w?", "x y z w"): "The W!"}
    given = [sample("x y z w", "x y")]
    (plain,), filtered = by_llm(given), Qags(backend="llm", ask=silent, consistent=True).score(given)
    (found,) = filtered.rows
    assert isinstance(plain, Score)
    assert isinstance(found, Score)
    assert (plain.value, found.value) == (pytest.approx(1 / 3), 0.5)
    assert found.provenance.note == "2 of 4 questions left out: 1 answered by neither, 1 the output answers otherwise"
    assert "|most=20|consistent|similarity=" in filtered.columns[0].signature


def test_each_distinct_thing_is_asked_once(stages: tuple[Stage, Stage, Stage]) -> None:
    themes, questions, answers = stages
    samples = [sample("a b", "a b c"), sample("a b", "a b c", "2"), sample("a b", "b", "3"), sample("a", "a b c", "4")]
    by_llm(samples)
    assert themes.seen == ["a b", "a"]
    assert questions.seen == [("a", "a b"), ("b", "a b"), ("a", "a")]
    assert len(answers.seen) == len(set(answers.seen)) == 7
    assert set(answers.seen) == {(f"{t}?", text) for t in "ab" for text in ("a b c", "a b", "b")} | {("a?", "a")}


def test_a_stage_is_one_part_of_the_signature(stages: tuple[Stage, Stage, Stage]) -> None:
    stages[1].signature, stages[2].signature = "gpt:en@1", "t5@1|beams=4"
    (column,) = Qags(backend="llm", ask=silent).score([]).columns
    assert "|themes=table v1|questions=gpt:en@1|answers=t5@1 beams=4|" in column.signature


def test_at_most_so_many_themes_spread_evenly(stages: tuple[Stage, Stage, Stage]) -> None:
    (found,) = by_llm([sample("a b c d e f g h", "a b c d e f g h")], most=4)
    assert isinstance(found, Score)
    assert [line[0] for line in json.loads(found.provenance.raw or "")["qags"]] == ["b", "d", "f", "h"]
    assert found.provenance.note == "4 of 8 themes asked"


@given(st.integers(0, 60), st.integers(1, 30))
def test_spread(count: int, most: int) -> None:
    themes = [str(n) for n in range(count)]
    kept = [int(theme) for theme in spread(themes, most)]
    assert len(kept) == min(count, most)
    assert kept == sorted(set(kept))
    gaps = [b - a for a, b in zip([-1, *kept], [*kept, count], strict=True)]
    assert not kept or max(gaps) <= count / len(kept) + 1


def test_a_note_counts_the_questions_left_out(stages: tuple[Stage, Stage, Stage]) -> None:
    stages[2].table |= {("y?", "a y"): ""}
    result = Qags(backend="llm", ask=silent).score([sample("a y", "a"), sample("a", "a", "2")])
    assert result.notes == ("qags: 1 of 3 questions left out: 1 answered by neither",)
    (limits,) = Qags().score([sample(FAITHFUL)]).notes
    assert "misses negations, swapped roles and paraphrases" in str(limits)


def test_answers_that_bertscore_cannot_compare_fail_in_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def without(self: object, pairs: Sequence[object], languages: object = None) -> list[dict[str, float]]:
        return [{"f1": 1.0} if n else {"f1": 1.0, "exact": 1.0} for n in range(len(pairs))]

    monkeypatch.setattr(qags.pipeline.Similarities, "compare", without)
    f1, exact = Qags(similarity=["f1", "exact"]).score([sample(FAITHFUL)]).rows
    assert isinstance(f1, Score)
    assert isinstance(exact, Failure)
    assert (exact.error, "'three hours'" in exact.message) == ("NotCompared", True)


def test_models_are_opened_at_once_and_their_stages_are_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Qags] = []

    def fake(options: Qags) -> tuple[Stage, Stage]:
        opened.append(options)
        return Stage({}, lambda asked: f"{asked[0]}?"), Stage({}, lambda asked: "ferry")

    monkeypatch.setattr(metric_module, "open_models", fake)
    told: list[tuple[int, int]] = []
    tell = lambda done, total: told.append((done, total))  # noqa: E731
    metric = Qags(backend="models", questions="t5", answers="qa", beams=2, device="cpu", cache="c", progress=tell)
    assert opened == [metric]
    result = metric.score([sample(FAITHFUL)])
    assert [one.value for one in result.rows if isinstance(one, Score)] == [1.0]
    assert "|questions=table v1|answers=table v1|most=20|" in result.columns[0].signature
    assert metric.score([sample(FAITHFUL)]) == result
    assert len(opened) == 1
    assert told == []  # the models tell
    Qags(progress=tell).score([sample(FAITHFUL)])
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_stages_of_several_back_ends(stages: tuple[Stage, Stage, Stage]) -> None:
    asked: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge_model, "open", lambda ask, language: asked.append(language) or stages)
        found = Qags(themes="llm", ask=silent, language="ko").score([sample(FAITHFUL)])
        Qags(answers="llm", ask=silent).score([sample(FAITHFUL)])
    assert asked == ["ko", "en"]
    assert found.columns[0].signature.startswith("qags_f1|themes=table v1|questions=cloze|answers=lexical-")
    assert stages[0].seen == [FAITHFUL]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"backend": "gpt"}, "backend must be one of lexical, models, llm"),
        ({"backend": "llm"}, "name one with --model NAME"),
        ({"themes": "llm"}, "name one with --model NAME"),
        ({"backend": "models"}, "needs two models.*qags.questions=GENERATOR.*qags.answers=READER"),
        ({"questions": "t5"}, "one for answers"),
        ({"questions": "llm", "ask": silent}, "needs questions=cloze"),
        ({"themes": "nuons"}, "did you mean 'nouns'"),
        ({"similarity": "f2"}, "similarity must be one of .*, not 'f2'"),
        ({"similarity": []}, "similarity must be one or more of"),
        ({"most": 0}, "most must be a whole number from 1"),
        ({"compounds": "yes"}, "compounds must be true or false"),
        ({"low": 0.9}, "low"),
        ({"low": "half"}, "low must be a number"),
        ({"similarity": 5}, "similarity must be one or more of"),
        ({"similarity": None}, "similarity must be one or more of"),
        ({"consistent": 1}, "consistent must be true or false"),
        ({"themes": 5}, "themes must be a text"),
        ({"questions": ["t5"]}, "questions must be a text"),
        ({"language": "fr"}, "language must be one of en, ja, ko, zh"),
        ({"beams": 3}, "beams is an option of backend=models, which this run does not use"),
        ({"template": "x"}, "template is an option of backend=models"),
        ({"question_tokens": 9}, "question_tokens is an option of backend=models"),
        ({"null": False, "backend": "llm", "ask": silent}, "null is an option of backend=models"),
        ({"bertscore_layer": 3}, "bertscore_layer is an option of similarity=bertscore or corrected"),
        ({"device": "cpu"}, "device is an option of backend=models and of similarity=bertscore or corrected"),
    ],
)
def test_wrong_options_are_said_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Qags(**options)


def test_missing_packages_are_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.text.tokenizers.find_spec", lambda module: None)
    with pytest.raises(MissingExtra, match="textjudge"):
        Qags(themes="ja")


def test_a_text_in_decomposed_letters_has_themes() -> None:
    if not text.installed("ko"):
        pytest.skip("needs the packages of ko")
    output = "연락선이 항구에 도착했다."
    composed, decomposed = score([output, normalize("NFD", output)], [output, output])
    assert isinstance(composed, QagsValue)
    assert composed == decomposed


def test_the_notebooks_function() -> None:
    found = score([FAITHFUL, "They were there.", FAITHFUL], [SOURCE, SOURCE, ""])
    assert isinstance(found[0], QagsValue)
    assert found[0].similarity == {"f1": 1.0}
    assert [one.theme for one in found[0].lines] == ["ferry", "three hours"]
    assert [(one.item, one.error) for one in found[1:] if isinstance(one, Failure)] == [
        ("1", "NoThemes"),
        ("2", "NoSource"),
    ]
    assert score([], []) == []
    for outputs, sources in ((["a"], []), ("a", "b")):
        with pytest.raises(ConfigError, match="lists of equal length"):
            score(outputs, sources)
    with pytest.raises(ConfigError, match=r"in Python call judge\.evaluate\(rows, \[\], metrics="):
        score([FAITHFUL], [SOURCE], backend="llm")
    with pytest.raises(TypeError, match="backnd"):
        score([FAITHFUL], [SOURCE], backnd="lexical")


@settings(max_examples=40)
@given(st.lists(st.sampled_from((SOURCE + " " + WRONG).split()), min_size=1, max_size=12).map(" ".join))
def test_an_output_that_is_its_own_source_is_1_or_not_measured(output: str) -> None:
    found = row(output, output)
    assert found.value == 1.0 if isinstance(found, Score) else found.error in ("NoThemes", "NothingAsked")


@settings(max_examples=30)
@given(st.text(st.characters(exclude_categories=()), max_size=30), st.text(max_size=30))
def test_any_texts(output: str, source: str) -> None:
    for found in (
        Qags(similarity=["exact", "f1", "rouge1"]).score([sample(output, source), sample(source, output)]).rows
    ):
        assert isinstance(found, Failure) or 0 <= found.value <= 1
