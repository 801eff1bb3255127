"""Checklists: the prompts, the score of the answers, and unanswered questions.

Golden files in tests/golden/checklists/ contain the prompts, and a person has read them. After a change of wording,
run `JUDGE_GOLDEN=write pytest tests/scoring/test_checklist.py` and read the difference.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge
from judge.core.errors import ConfigError, CriterionError, DataError, JudgeError, Unrecorded
from judge.core.records import (
    Ask,
    ChecklistQuestion,
    Choice,
    Criterion,
    Failure,
    Provenance,
    Request,
    Response,
    Sample,
    Score,
)
from judge.criteria import load
from judge.criteria.checklist import questions_of
from judge.execution.progress import Progress
from judge.providers.scripted import Reply, ScriptedProvider
from judge.scoring.checklist import METHOD, UNANSWERED, combine, split
from judge.scoring.multi_criteria import make_renderers
from tests.factories import has_line

GOLDEN = Path(__file__).parents[1] / "golden" / "checklists"
QUESTIONS = {
    "en": ["Does the reply greet the customer?", "Does it apologise?", "Does it offer help?"],
    "ja": ["お客様に挨拶していますか。", "お詫びしていますか。", "手助けを申し出ていますか。"],
    "ko": ["고객에게 인사합니까?", "사과합니까?", "도움을 제안합니까?"],
    "zh": ["回复是否向客户问好？", "是否道歉？", "是否提供帮助？"],
}
HEADER = "questions:\n- Does the reply greet the customer?\n- {text: Does it apologise, weight: 2}\n- Does it offer help?\n"
GREETS, APOLOGISES, HELPS = (
    "Does the reply greet the customer?",
    "Does it apologise",
    "Does it offer help?",
)
# The probability of yes to each question, by item and system of a text.
TRUTH = {
    ("1", "a"): (1.0, 0.75, 0.5),
    ("2", "a"): (0.0, 0.25, 1.0),
    ("1", "b"): (0.5, 0.0, 0.0),
    ("2", "b"): (0.25, 0.5, 0.0),
}
ROWS = [
    {"item": item, "system": system, "output": f"text {item}{system}"} for item, system in TRUTH
]
ASKS: list[tuple[Ask, int]] = [("together", 4), ("each", 12)]
"""The values of `ask`, each with the number of requests for ROWS."""


@pytest.fixture
def polite(tmp_path: Path) -> str:
    (tmp_path / "polite.yaml").write_text(HEADER)
    return str(tmp_path / "polite.yaml")


def question_numbers(request: Request) -> list[int]:
    """Return the numbers of the questions in a request."""
    if "questions" in request.params:
        return [
            int(question["name"].rpartition(".")[2]) for question in request.params["questions"]
        ]
    prompt = request.messages[0]["content"].rpartition("</output ")[2]
    return [n for n, text in enumerate((GREETS, APOLOGISES, HELPS), 1) if text in prompt]


def truth(request: Request) -> tuple[float, ...]:
    prompt = request.messages[0]["content"]
    return next(
        values for (item, system), values in TRUTH.items() if f"text {item}{system}" in prompt
    )


def answer(request: Request) -> Reply:
    """Reply with the most likely answers by TRUTH, without probabilities."""
    words = {n: "yes" if truth(request)[n - 1] > 0.5 else "no" for n in question_numbers(request)}
    if "response_format" in request.params and len(words) > 1:
        return json.dumps({f"polite.{n}": word for n, word in words.items()})
    (word,) = words.values()
    return json.dumps({"score": word}) if "response_format" in request.params else word


def probabilities(request: Request) -> Reply:
    """Reply to a request of one question with the probabilities in TRUTH."""
    (number,) = question_numbers(request)
    yes = truth(request)[number - 1]
    return {"yes": yes, "no": 1 - yes}


def run(
    script: Any, criterion: Any, *, decides: bool = False, rows: Any = ROWS, **options: Any
) -> judge.Result:
    provider = script
    if not isinstance(script, ScriptedProvider):
        provider = ScriptedProvider(script, decides=decides)
    options = {"cache": False, "metrics": (), **options}
    return judge.evaluate(rows, criteria=criterion, model=provider, **options)


def values(result: judge.Result, column: str = "polite") -> dict[tuple[str, str], float]:
    return {score.key: score.value for score in result.table.column_scores(column)}


# Scores by hand: (1·p1 + 2·p2 + 1·p3) / 4, with p and with p rounded to 0 or 1.
BY_HAND = {("1", "a"): 0.75, ("2", "a"): 0.375, ("1", "b"): 0.125, ("2", "b"): 0.3125}
ROUNDED = {("1", "a"): 0.75, ("2", "a"): 0.25, ("1", "b"): 0.0, ("2", "b"): 0.0}


@pytest.mark.parametrize("decides", [False, True])
def test_the_score_is_the_weighted_share_of_yes(polite: str, decides: bool) -> None:
    provider = ScriptedProvider(probabilities, decides=decides)
    result = run(provider, each(polite))
    assert values(result) == pytest.approx(BY_HAND)
    assert len(provider.seen) == 12
    (column,) = result.table.columns
    assert (column.name, column.low, column.high) == ("polite", 0.0, 1.0)
    assert (column.labels, column.values) == ((), ())
    provenance = result.table.column_scores("polite")[0].provenance
    assert (provenance.method, provenance.n) == (METHOD, 3)
    assert [(a.question, a.weight, a.value) for a in provenance.answers] == [
        (GREETS, 1.0, 1.0),
        (APOLOGISES, 2.0, 0.75),
        (HELPS, 1.0, 0.5),
    ]


def each(path: str) -> Criterion:
    return replace(load(path), ask="each")


@pytest.mark.parametrize("structured", [False, True])
def test_together_and_each_give_equal_scores(polite: str, structured: bool) -> None:
    results = {}
    for ask, requests in ASKS:
        provider = ScriptedProvider(answer)
        result = run(
            provider, replace(load(polite), ask=ask), structured=structured, weighting="single"
        )
        assert values(result) == ROUNDED
        assert len(provider.seen) == requests
        results[ask] = result.table
    answers = {
        ask: [[(a.question, a.value) for a in s.provenance.answers] for s in table.scores]
        for ask, table in results.items()
    }
    assert answers["together"] == answers["each"]
    assert "|each|" in str(results["each"].columns[0].signature)
    assert "|each|" not in str(results["together"].columns[0].signature)


P = st.floats(0, 1)
ANSWERS = st.lists(st.tuples(st.floats(0.01, 100), P, P, P), min_size=1, max_size=9)


@given(ANSWERS)
def test_the_bounds_are_the_weighted_means_of_the_answers_bounds(
    answers: list[tuple[float, float, float, float]],
) -> None:
    questions = [ChecklistQuestion(f"{n}?", weight) for n, (weight, *_) in enumerate(answers)]
    ordered = [sorted(rest) for _, *rest in answers]
    rows = [
        Score("1", "a", f"c.{n}", value, Provenance("logprobs", low=low, high=high))
        for n, (low, value, high) in enumerate(ordered)
    ]
    row = combine("c", questions, rows)
    assert isinstance(row, Score)
    assert row.provenance.low is not None
    assert row.provenance.high is not None
    total = sum(question.weight for question in questions)
    for index, value in ((0, row.provenance.low), (1, row.value), (2, row.provenance.high)):
        weighted = [q.weight * o[index] for q, o in zip(questions, ordered, strict=True)]
        assert math.isclose(value, sum(weighted) / total)
    assert -1e-9 <= row.provenance.low <= row.value + 1e-9 <= row.provenance.high + 2e-9 <= 1 + 3e-9
    assert combine("c", questions, split(row)) == row


def test_answers_without_probabilities_have_no_interval(polite: str) -> None:
    for score in run(answer, polite, weighting="single").table.scores:
        assert (score.provenance.low, score.provenance.high) == (None, None)


# Unanswered questions are failures.

UNREAD: dict[str, tuple[Any, str, str]] = {
    "missing key": (
        '{"polite.1": "yes", "polite.2": "no"}',
        UNANSWERED,
        "no answer to 1 of 3 questions: 3 (Does it",
    ),
    "another word": (
        '{"polite.1": "yes", "polite.2": 5, "polite.3": "no"}',
        UNANSWERED,
        "1 of 3 questions: 2 (Does it",
    ),
    "prose": (
        "A fine reply.",
        UNANSWERED,
        "no answer to 3 of 3 questions: 1 (Does the reply greet",
    ),
    "refusal": (
        Response((Choice("I cannot.", "refusal"),)),
        UNANSWERED,
        "no answer to 3 of 3 questions",
    ),
    "not recorded": (Unrecorded("not there"), "Unrecorded", "no answer to 3 of 3 questions"),
}


@pytest.mark.parametrize("case", UNREAD)
def test_an_unanswered_question_is_a_failure_with_the_other_answers(polite: str, case: str) -> None:
    reply, error, message = UNREAD[case]
    result = run(lambda _: reply, polite, rows=ROWS[:1], repair="off", weighting="single")
    (failure,) = result.failures
    assert not result.table.scores
    assert not result.estimates
    assert (failure.column, failure.error) == ("polite", error)
    assert message in failure.message
    assert [a.value is None for a in failure.answers] == [
        f" {n} (" in f" {failure.message}" for n in (1, 2, 3)
    ]
    if case == "missing key":
        assert [a.value for a in failure.answers] == [1.0, 0.0, None]
        (checklist,) = result.checklists
        assert [(q.question, dict(q.shares), q.unanswered) for q in checklist.questions] == [
            (APOLOGISES, {"a": 0.0}, 0),
            (GREETS, {"a": 1.0}, 0),
            (HELPS, {}, 1),
        ]


def test_an_unanswered_question_is_repeated_once(polite: str) -> None:
    def omit_third_answer(request: Request) -> Reply:
        return '{"polite.1": "yes", "polite.2": "no"}' if len(request.messages) == 1 else "yes"

    result = run(omit_third_answer, polite, rows=ROWS[:1], weighting="single")
    (score,) = result.table.scores
    assert score.value == 0.5
    assert [a.provenance.reading for a in score.provenance.answers] == [
        "strict",
        "strict",
        "repaired",
    ]


def test_retry_failed_sends_only_the_unanswered_questions(polite: str, tmp_path: Path) -> None:
    asked_questions: list[list[int]] = []

    def script(request: Request) -> Reply:
        numbers = question_numbers(request)
        asked_questions.append(numbers)
        if numbers == [2] and len(asked_questions) < 13:
            return "perhaps"
        return probabilities(request)

    provider = ScriptedProvider(script, endpoint="test")
    options: Mapping[str, Any] = {
        "cache": str(tmp_path / "cache"),
        "out": tmp_path / "run",
        "repair": "off",
    }
    first = run(provider, each(polite), weighting="logprobs", **options)
    assert len(first.failures) == 4
    assert len(asked_questions) == 12
    second_run = run(provider, each(polite), weighting="logprobs", **options, retry_failed=True)
    assert values(second_run) == pytest.approx(BY_HAND)
    assert asked_questions[12:] == [[2]] * 4


# Runs.


def test_a_stored_run_contains_the_answers(polite: str, tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        if truth(request) == TRUTH["2", "b"] and question_numbers(request) == [3]:
            return "hm"
        return probabilities(request)

    run(script, each(polite), out=tmp_path / "run", weighting="logprobs", repair="off")
    stored = judge.load_result(tmp_path / "run")
    assert values(stored) == pytest.approx(
        {key: value for key, value in BY_HAND.items() if key != ("2", "b")}
    )
    assert [a.value for a in stored.failures[0].answers] == [
        pytest.approx(0.25),
        pytest.approx(0.5),
        None,
    ]
    path = tmp_path / "run" / "run.json"
    assert judge.load_result(tmp_path / "run").info.criteria["polite"].questions[1].weight == 2.0
    assert path.exists()


def test_a_panel_has_the_mean_of_its_judges_shares(polite: str) -> None:
    judges = [ScriptedProvider(probabilities, model=name) for name in ("one", "two")]
    result = judge.evaluate(ROWS, criteria=each(polite), model=judges, cache=False, metrics=())
    assert [column.name for column in result.table.columns] == [
        "polite",
        "polite/one",
        "polite/two",
    ]
    for column in ("polite", "polite/one", "polite/two"):
        assert values(result, column) == pytest.approx(BY_HAND)


def drawn(most: int) -> ScriptedProvider:
    """Return a judge without token probabilities that draws at most this many replies per request."""

    def script(request: Request) -> Reply:
        return Response((Choice(str(answer(request))),) * min(most, request.params.get("n", 1)))

    return ScriptedProvider(script, endpoint="x")


@pytest.mark.parametrize(("most", "sizes"), [(9, [5]), (2, [5, 2, 1])])
def test_draws_of_all_questions_come_from_one_request(
    polite: str, most: int, sizes: list[int], tmp_path: Path
) -> None:
    provider, path = drawn(most), tmp_path / "calls.jsonl"
    options: dict[str, Any] = {"rows": ROWS[:1], "weighting": "samples", "draws": 5}
    result = run(provider, polite, record=path, **options)
    assert [request.params.get("n", 1) for request in provider.seen] == sizes
    for score in result.table.scores:
        assert {a.provenance.n for a in score.provenance.answers} == {5}
    replayed = judge.evaluate(
        ROWS[:1], polite, replay=path, cache=False, metrics=(), weighting="samples", draws=5
    )
    assert values(replayed) == values(result) == {("1", "a"): 0.75}


def test_the_plan_counts_requests_and_answers(polite: str) -> None:
    for ask, requests in ASKS:
        provider = ScriptedProvider(answer)
        criterion = replace(load(polite), ask=ask)
        plan = judge.plan(
            ROWS, criteria=criterion, model=provider, cache=False, metrics=(), weighting="single"
        )
        (line,) = plan.judges[0].estimate.lines
        assert (line.name, line.judgments, line.requests) == ("polite", 12, requests)
        assert "12 questions\n" in plan.report("console")


def test_progress_counts_questions(polite: str) -> None:
    progress = Progress()
    run(answer, each(polite), weighting="single", progress=progress)
    assert (progress.done, progress.total, progress.unit) == (12, 12, "question")


def test_questions_with_the_lowest_shares_come_first(polite: str) -> None:
    result = run(probabilities, each(polite))
    (checklist,) = result.checklists
    shares: list[Any] = [
        (q.question, q.weight, dict(q.shares), dict(q.n)) for q in checklist.questions
    ]
    n = {"a": 2, "b": 2}
    assert shares == [
        (HELPS, 1.0, pytest.approx({"a": 0.75, "b": 0.0}), n),
        (APOLOGISES, 2.0, pytest.approx({"a": 0.5, "b": 0.25}), n),
        (GREETS, 1.0, pytest.approx({"a": 0.5, "b": 0.375}), n),
    ]
    for system in "ab":  # the mean of the scores is the weighted mean of the shares
        mean = sum(weight * by_system[system] for _, weight, by_system, _ in shares) / 4
        assert result.estimates[system, "polite"].value == pytest.approx(mean)
    console = result.report("console")
    assert "polite: question" in console
    assert re.search(r"Does it offer help\?\s+1\s+75%\s+0%", console)
    assert "✓ 0.75" in result.report("html")
    assert "(weight 2)" in result.report("html")
    assert json.loads(result.report("json"))["checklists"][0]["questions"][0]["question"] == HELPS


def test_the_summary_lists_the_three_questions_with_the_lowest_shares() -> None:
    criterion = judge.load_criterion(
        text='---\nquestions: ["A?", "B?", "C?", "D?", "E?"]\n---\n{% extends \'layouts/checklist.jinja\' %}',
        name="list",
    )
    model = ScriptedProvider(lambda request: "no")
    result = judge.evaluate(
        ROWS,
        criteria=replace(criterion, ask="each"),
        model=model,
        metrics=(),
        cache=False,
        weighting="single",
    )
    assert has_line(result.report(), "Share of yes", "lowest 3 of 5 questions")
    full_report = result.report("console", full=True)
    assert has_line(full_report, "Share of yes.")
    assert "lowest 5 of 5" not in full_report


# Questions from a column.


def test_questions_may_come_from_a_column() -> None:
    text = "---\nquestions: checks\n---\n{% extends 'layouts/checklist.jinja' %}"
    criterion = judge.load_criterion(text=text, name="facts")
    cells = [
        ["Is it red?", {"text": "Is it old?", "weight": 3}],
        '["Is it red?"]',
        "Is it red?\n\nIs it big?\n",
    ]
    rows = [{"item": str(n), "output": f"text {n}", "checks": cell} for n, cell in enumerate(cells)]

    def script(request: Request) -> Reply:
        keys = request.params["response_format"]["json_schema"]["schema"]["required"]
        return json.dumps({key: "yes" if key == "facts.1" else "no" for key in keys})

    result = run(script, criterion, rows=rows, weighting="single")
    assert list(values(result, "facts").values()) == [0.25, 1.0, 0.5]
    (checklist,) = result.checklists
    assert [q.question for q in checklist.questions] == ["Is it red?"]
    assert checklist.others == 2
    with pytest.raises(CriterionError, match="unknown variable 'checks'"):
        run(script, criterion, rows=ROWS)
    sample = Sample("1", "s", "text", extra={"checks": "[1]"}, where="data.csv:3")
    with pytest.raises(DataError, match=r"^data\.csv:3: .*question 1 is 1;"):
        questions_of(criterion, sample)


@pytest.mark.parametrize("ask", ["together", "each"])
@pytest.mark.parametrize("empty", [{}, {"checks": None}, {"checks": []}, {"checks": " \n"}])
@pytest.mark.parametrize("index", [0, 1])
def test_only_a_text_without_questions_is_a_failure(
    ask: str, empty: dict[str, Any], index: int
) -> None:
    text = f"---\nquestions: checks\nask: {ask}\n---\n{{% extends 'layouts/checklist.jinja' %}}"
    criterion = judge.load_criterion(text=text, name="facts")
    rows = [
        {"item": str(n), "output": f"text {n}", "checks": ["Is it red?", "Is it old?"]}
        for n in range(3)
    ]
    rows[index] = {"item": str(index), "output": "none", **empty}

    def script(request: Request) -> Reply:
        if "response_format" not in request.params:
            return "yes"
        keys = request.params["response_format"]["json_schema"]["schema"]["required"]
        return json.dumps(dict.fromkeys(keys, "yes"))

    result = run(script, criterion, rows=rows, weighting="single")
    assert len(values(result, "facts")) == 2
    (failure,) = result.failures
    assert (failure.item, failure.column, failure.stage) == (str(index), "facts", "render")
    assert has_line(failure.message, "no checks", "criterion facts")


# Headers.


@pytest.mark.parametrize(
    ("header", "facts"),
    [
        ("questions: []", ("2: questions:", "at least one")),
        ("questions: ''", ("2: questions:", "no column")),
        (
            f"questions: {[f'Is it {n}?' for n in range(51)]}",
            ("2: questions: 51 questions", "50"),
        ),
        (
            "title: a\nquestions: ['Is it?', ' is  IT? ']",
            ("3: questions:", "1 and 2", "'is IT?'"),
        ),
        ("questions: ['  ']", ("2: questions: question 1", "empty")),
        (
            "questions: ['Is it?', Is it: red]",
            ("2: questions: question 2", "{'Is it': 'red'}", "{text:"),
        ),
        (
            "questions: [{text: Is it, weight: 0}]",
            ("2: questions: question 1:", "above 0, not 0"),
        ),
        (
            "questions: [{text: Is it, weight: .inf}]",
            ("2: questions: question 1:", "above 0, not inf"),
        ),
        (
            "questions: [{text: Is it, weigth: 2}]",
            ("2: questions: question 1", "{'text': 'Is it', 'weigth': 2}"),
        ),
        (
            "questions: ['Is it?']\nscale: [1, 5]",
            ("3: scale:", "{labels: [yes, no]"),
        ),
        (
            "questions: ['Is it?']\nreply: score_then_reason",
            ("3: reply:", "yes or no"),
        ),
        ("questions: ['Is it?']\nask: both", ("3: ask: ",)),
        ("scale: [1, 5]\nask: each", ("3: ask:", "checklist")),
    ],
)
def test_bad_headers_are_errors_with_their_line(header: str, facts: tuple[str, ...]) -> None:
    text = f"---\n{header}\n---\n{{% extends 'layouts/checklist.jinja' %}}"
    with pytest.raises(CriterionError) as error:
        judge.load_criterion(text=text, name="list")
    assert has_line(str(error.value), f"list.jinja:{facts[0]}", *facts[1:])


def test_a_template_must_show_the_questions() -> None:
    text = "---\nquestions: ['Is it?']\n---\n{% extends 'layouts/question.jinja' %}{# not the layout of a file #}"
    with pytest.raises(CriterionError, match="never shows its questions"):
        judge.load_criterion(text=text, name="list")


def refuse(_: Request) -> Reply:
    raise AssertionError("asked")


def test_a_reason_in_replies_to_a_checklist_is_an_error(polite: str) -> None:
    with pytest.raises(ConfigError, match=r"checklist polite .*yes or no"):
        run(refuse, polite, reply="score_then_reason")


def test_ranking_by_a_checklist_is_an_error(polite: str) -> None:
    with pytest.raises(JudgeError, match="judges one text"):
        judge.rank(ROWS, criteria=[polite], model=ScriptedProvider(refuse), cache=False)


# Prompts.


@pytest.mark.parametrize("language", QUESTIONS)
def test_prompts_match_golden_files(language: str) -> None:
    header = json.dumps({"title": "T", "questions": QUESTIONS[language]}, ensure_ascii=False)
    text = f"---\n{header}\n---\n"
    criterion = load(
        text=text + '{% extends "layouts/checklist.jinja" %}\n', name="polite", language=language
    )
    sample = Sample("1", "s", "OUTPUT", "SOURCE")
    forms = {
        "together": criterion,
        "each": replace(criterion, ask="each"),
        "each, JSON": replace(criterion, ask="each", form="json"),
        "typed question": replace(criterion, form="decision"),
    }
    parts = []
    for name, form in forms.items():
        prompt = make_renderers([form])["polite.2"].render(sample)
        messages = [*(message["content"] for message in prompt.messages), prompt.question]
        parts.append(f"=== {name} ===\n" + "\n---\n".join(filter(None, messages)))
        expected = QUESTIONS[language] if name == "together" else QUESTIONS[language][1:2]
        assert [text for text in QUESTIONS[language] if text in "".join(messages)] == expected
    prompts, path = "\n\n".join(parts) + "\n", GOLDEN / f"{language}.txt"
    if os.environ.get("JUDGE_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(prompts, encoding="utf-8")
    assert prompts == path.read_text(encoding="utf-8")


def test_combined_failures_can_be_split_again() -> None:
    failure = Failure("1", "a", "c.1", "parse", "ParseError", "no score", "hm", method="single")
    row = combine(
        "c",
        [ChecklistQuestion("1?"), ChecklistQuestion("2?")],
        [failure, Score("1", "a", "c.2", 1.0, Provenance("single"))],
    )
    assert isinstance(row, Failure)
    assert split(row)[0] == replace(failure, column="c")
