"""Repair: if a reply has no score, judge sends one more question that asks only for the score."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge import criteria
from judge.cache import DiskCache, NoCache
from judge.core.errors import ProviderError, Reached, Refused, StorageError
from judge.core.records import Choice, Failure, Request, Response, Sample, Usage
from judge.criteria.render import render_repair_question
from judge.execution.judgments import Judgment, Row
from judge.results.loading import load
from judge.scoring.strategies import SamplingOptions
from tests.factories import has_line, text_response
from tests.senders import Judged

ROWS = [
    {"item": "1", "system": "s", "source": "Snow has shut the pass.", "output": "The pass is shut."}
]
MANY = [ROWS[0] | {"item": str(n), "output": f"The pass is shut, day {n}."} for n in range(12)]
UNREAD = "It follows the text. I would call it good."
Answer = str | Response | ProviderError | dict[str, float]


def reply(text: str, finish: str = "stop") -> Response:
    return Response((Choice(text, finish),))


class TwoStepJudge(judge.ScriptedProvider):
    """A judge that answers the prompt with `first` and the repair question with `second`."""

    notice = ""

    def __init__(
        self,
        first: Answer | Callable[[Request], Answer] = UNREAD,
        second: Answer = "4",
        *,
        endpoint: str = "",
    ) -> None:
        def script(request: Request) -> Any:
            if len(request.messages) > 1:
                return second
            answer = first(request) if callable(first) else first
            return (
                Response(answer.choices * request.params.get("n", 1))
                if isinstance(answer, Response)
                else answer
            )

        super().__init__(script, endpoint=endpoint)

    @property
    def questions(self) -> list[Request]:
        return [request for request in self.seen if len(request.messages) > 1]


def run(provider: Any, rows: Any = ROWS, **options: Any) -> judge.Result:
    settings = {
        "metrics": [],
        "cache": False,
        "weighting": "single",
        "reply": "reason_then_score",
    } | options
    return judge.evaluate(rows, settings.pop("criteria", ["relevance"]), model=provider, **settings)


def scheduled(provider: TwoStepJudge, cache: Any, **options: Any) -> tuple[Judged, list[Row]]:
    """Start a run over MANY in this event loop and return its rows."""
    samples = [Sample(row["item"], "s", row["output"], row["source"]) for row in MANY]
    criterion = replace(criteria.load("relevance"), reply="reason_then_score")
    run = Judged(
        [Judgment(sample, criterion) for sample in samples],
        provider,
        SamplingOptions("single", repair=True),
        cache=cache,
        **options,
    )
    return run, run.rows


def only(result: judge.Result) -> Any:
    """Return the only row of a run, a score or a failure."""
    (row,) = (*result.table.scores, *result.failures)
    return row


# The repair question.


@pytest.mark.parametrize("language", criteria.languages())
@pytest.mark.parametrize("pairwise", [False, True])
def test_the_question_names_the_criterion_and_its_labels_in_the_language_of_the_prompt(
    language: str, pairwise: bool, golden: Callable[[str, str], None]
) -> None:
    criterion = criteria.load("relevance", language=language, pairwise=pairwise)
    text = render_repair_question(criterion)
    assert criterion.title in text
    assert all(label in text for label in criterion.scale.labels)
    golden(f"repair_{language}{'_pairwise' * pairwise}.txt", text + "\n")


def test_a_long_scale_is_named_by_its_ends() -> None:
    criterion = judge.load_criterion(text="---\nscale: [0, 100]\n---\n{{ output }}", name="worth")
    assert "whole number from 0 to 100" in render_repair_question(criterion)


def test_a_custom_repair_question_is_sent_and_signed(tmp_path: Path) -> None:
    (tmp_path / "layouts").mkdir()
    (tmp_path / "polite.jinja").write_text("---\nscale: [1, 5]\n---\n{{ output }}")
    plain = run(provider := TwoStepJudge(), criteria=[str(tmp_path / "polite.jinja")])
    assert "repair" not in str(plain.table.columns[0].signature)
    (tmp_path / "layouts" / "repair.jinja").write_text(
        "La note seule, de {{ this.lowest }} à {{ this.highest }} ?"
    )
    result = run(provider := TwoStepJudge(), criteria=[str(tmp_path / "polite.jinja")])
    assert provider.questions[0].messages[-1]["content"] == "La note seule, de 1 à 5 ?"
    assert "|repair@" in str(result.table.columns[0].signature)


@pytest.mark.parametrize("language", criteria.languages())
def test_a_reply_without_a_score_is_followed_by_one_question_and_scored_by_its_answer(
    language: str, chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    texts = {
        "en": UNREAD,
        "ja": "原文に沿っています。",
        "ko": "원문을 잘 따릅니다.",
        "zh": "忠于原文。",
    }
    chat_server.answer = lambda body: (
        200, {}, make_completion(texts[language] if len(body["messages"]) == 1 else "3"),
    )  # fmt: skip
    result = run("m", base_url=chat_server.url, language=language)
    first, second = chat_server.bodies
    assert second["messages"][:1] == first["messages"]
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][1]["content"] == texts[language]
    assert (second["temperature"], second["max_completion_tokens"]) == (0, 64)
    p = only(result).provenance
    assert (only(result).value, p.method, p.reading, p.argmax) == (3.0, "single", "repaired", "3")
    assert json.loads(p.raw) == [texts[language], "3"]
    assert p.reason == texts[language]
    assert has_line(p.note, "asked again", "not end with")


@pytest.mark.parametrize("weighting", ["auto", "logprobs"])
def test_the_token_probabilities_of_the_answer_weight_the_score(weighting: str) -> None:
    provider = TwoStepJudge(second={"4": 0.6, "5": 0.4})
    p = only(run(provider, weighting=weighting)).provenance
    assert only(
        run(TwoStepJudge(second={"4": 0.6, "5": 0.4}), weighting=weighting)
    ).value == pytest.approx(4.4)
    assert (p.method, p.reading, p.mass) == ("logprobs", "repaired", pytest.approx(1.0))
    assert provider.questions[0].params["top_logprobs"] == 20


def test_an_answer_without_token_probabilities_is_parsed_as_text() -> None:
    provider = TwoStepJudge()
    p = only(run(provider, weighting="auto", temperature=0)).provenance
    assert (p.method, p.reading, len(provider.seen)) == ("single", "repaired", 2)
    assert "without token probabilities" in p.note


def mixed(*texts: str) -> Callable[[Request], Response]:
    """Return a judge that draws these texts in turn."""
    return lambda request: Response(
        tuple(Choice(texts[i % len(texts)]) for i in range(request.params["n"]))
    )


def test_each_draw_without_a_score_is_repaired_separately() -> None:
    provider = TwoStepJudge(mixed(UNREAD, "Good.\nScore: 2", "Nice, in a way."), second="4")
    row = only(run(provider, weighting="samples", draws=6))
    assert (row.value, row.provenance.n, row.provenance.reading) == (
        pytest.approx(10 / 3),
        6,
        "repaired",
    )
    assert len(provider.questions) == 2, "one for each different reply"
    assert has_line(row.provenance.note or "", "4 of 6 draws", "again")


def test_a_repaired_reply_does_not_replace_all_draws() -> None:
    provider = TwoStepJudge(mixed(UNREAD, "I give up.", "No idea."), second="4")
    p = only(run(provider, weighting="samples", draws=6)).provenance
    assert (p.method, p.n, len(provider.questions)) == ("samples", 6, 3)


def test_draws_that_stay_without_a_score_are_counted() -> None:
    provider = TwoStepJudge(mixed(UNREAD, "Good.\nScore: 2"), second="no idea")
    row = only(run(provider, weighting="samples", draws=4))
    assert (row.value, row.provenance.n, row.provenance.mass) == (2.0, 2, 0.5)
    assert has_line(row.provenance.note or "", "2 of 4 draws", "no score")


def test_draws_are_not_asked_again_if_repairs_are_off() -> None:
    provider = TwoStepJudge(mixed(UNREAD, "Good.\nScore: 4"))
    assert only(run(provider, weighting="samples", draws=2, repair="off")).provenance.n == 1
    assert provider.questions == []


def test_a_comparison_is_repaired_too() -> None:
    rows = [*ROWS, ROWS[0] | {"system": "t", "output": "Shut."}]
    provider = TwoStepJudge(second="A")
    result = judge.rank(rows, model=provider, weighting="single", repair="on", cache=False)
    assert len(provider.questions) == 2
    assert {s.provenance.reading for s in result.table.scores} == {"repaired"}


def test_a_function_gets_the_conversation_as_one_text() -> None:
    texts: list[str] = []

    def function(text: str) -> str:
        texts.append(text)
        return "2" if "score alone" in text else UNREAD

    assert only(run(function, weighting="auto")).value == 2.0
    prompt, question = texts
    assert question.startswith(f"{prompt}\n\n{UNREAD}\n\nYour answer does not give the score")


def test_structured_replies_are_repaired_in_words_or_json() -> None:
    provider = TwoStepJudge('{"reason": "Good."}', '{"score": 4}')
    row = only(run(provider, structured=True))
    assert (row.value, row.provenance.reading) == (4.0, "repaired")
    assert "response_format" not in provider.questions[0].params


def test_thinking_is_not_sent_back_and_has_room() -> None:
    provider = TwoStepJudge("<think>Is it a 2? A 3?</think>\nGood.", "<think>A 4.</think>4")
    row = only(run(provider))
    assert (row.value, row.provenance.reason) == (4.0, "Good.")
    assert json.loads(row.provenance.raw)[0].startswith("<think>")
    (question,) = provider.questions
    assert question.messages[1]["content"] == "Good."
    assert question.params["max_tokens"] == 1024


def test_a_first_reply_outside_the_scale_is_not_stored_as_a_reason() -> None:
    row = only(run(TwoStepJudge("9")))
    assert (row.value, row.provenance.reading, row.provenance.reason) == (4.0, "repaired", None)


@pytest.mark.parametrize(
    "first",
    [reply("<think>Is it a 4?", "length"), reply("<think>A 4.</think> "), reply("A 4.</think>")],
)
def test_a_reply_that_is_only_thinking_is_asked_again(first: Answer) -> None:
    provider = TwoStepJudge(first)
    row = only(run(provider))
    assert (row.value, row.provenance.reading, row.provenance.reason) == (4.0, "repaired", None)
    (question,) = provider.questions
    assert [message["role"] for message in question.messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize("text", ["Good, though it leaves out", '{"reason": "It leaves out'])
def test_a_reply_that_was_cut_off_keeps_its_reason(text: str) -> None:
    row = only(run(TwoStepJudge(reply(text, "length"))))
    assert (row.value, row.provenance.reason) == (4.0, text)
    assert json.loads(row.provenance.raw) == [[text, "length"], "4"]


# Replies without a repair.


@pytest.mark.parametrize(
    "first",
    [
        reply("I cannot rate this.", "refusal"), reply(UNREAD, "content_filter"), reply(UNREAD, "abort"), reply(""),
        Refused("no"),
    ],
)  # fmt: skip
def test_no_repair_after_a_refusal_filter_or_empty_reply(first: Answer) -> None:
    provider = TwoStepJudge(first)
    assert isinstance(only(run(provider)), Failure)
    assert len(provider.seen) == 1


@pytest.mark.parametrize(
    ("option", "part"), [({"repair": "off"}, "repair=off"), ({"strict": True}, "read=strict")]
)
def test_repair_off_is_part_of_the_signature(option: dict[str, Any], part: str) -> None:
    provider = TwoStepJudge()
    result = run(provider, **option)
    assert (only(result).reading, only(result).raw, len(provider.seen)) == (None, UNREAD, 1)
    assert f"|{part}|" in str(result.table.columns[0].signature)
    assert "repair" not in str(run(TwoStepJudge()).table.columns[0].signature)
    assert str(run(TwoStepJudge()).table.columns[0].signature).replace(
        "|single", f"|{part}|single"
    ) == (str(result.table.columns[0].signature))


def test_an_endpoint_of_typed_questions_is_never_asked_again() -> None:
    provider = judge.ScriptedProvider(lambda _: text_response("I pass."), decides=True)
    assert isinstance(only(run(provider, weighting="auto", reply=None)), Failure)
    assert len(provider.seen) == 1


# Failed repairs.


def test_an_answer_without_a_score_is_a_failure_with_both_replies() -> None:
    provider = TwoStepJudge(second="Good, as I said.")
    failure = only(run(provider))
    assert (failure.stage, failure.error, failure.method, failure.reading) == (
        "parse", "ParseError", "single", "repaired",
    )  # fmt: skip
    assert json.loads(failure.raw) == [UNREAD, "Good, as I said."]
    assert has_line(failure.message, "question", "did not help", "not a score alone")
    assert len(provider.seen) == 2


def test_repeated_errors_are_reported_once() -> None:
    failure = only(
        run(TwoStepJudge("<think>3 or 4?</think>", second="<think>Still 3 or 4?</think>"))
    )
    assert failure.message.count("less thinking") == 1
    assert failure.message.endswith("did not help")


def test_a_refused_repair_keeps_the_first_error() -> None:
    failure = only(run(TwoStepJudge(second=Refused("no second turn here"))))
    assert (failure.stage, failure.error, failure.raw, failure.reading) == (
        "parse",
        "ParseError",
        UNREAD,
        None,
    )
    assert has_line(failure.message, "not end with", "not answered", "no second turn here")


def stopped(provider: TwoStepJudge, folder: Path, **limit: Any) -> judge.Result:
    """Return the rows that a run saved before a limit stopped it."""
    with pytest.raises(Reached):
        run(provider, MANY[:1], out=folder / "run", cache=folder / "cache", **limit)
    return load(folder / "run")


def test_a_budget_that_ends_before_the_repair_keeps_the_first_error(tmp_path: Path) -> None:
    costly = Response((Choice(UNREAD),), Usage(4_900, 90))
    provider = TwoStepJudge(costly, endpoint="https://judge.invalid/v1")
    failure = only(stopped(provider, tmp_path, budget="5000tokens"))
    assert (failure.raw, failure.reading, len(provider.seen)) == (UNREAD, None, 1)
    assert failure.message == only(run(TwoStepJudge(), MANY[:1], repair="off")).message
    second = TwoStepJudge(costly, endpoint="https://judge.invalid/v1")
    result = run(second, MANY[:1], cache=tmp_path / "cache", budget="50000tokens")
    assert (only(result).value, len(second.seen), len(second.questions)) == (4.0, 1, 1)


def test_a_full_disk_during_repair_raises_its_own_error(tmp_path: Path) -> None:
    class Full(DiskCache):
        def flush(self) -> None:
            raise StorageError("disk full")

    judged, rows = scheduled(TwoStepJudge(endpoint="x"), Full(tmp_path))
    with pytest.raises(StorageError, match="disk full"):
        asyncio.run(judged())
    assert {row.raw for row in rows if isinstance(row, Failure)} == {UNREAD}


def test_a_deadline_during_the_repair_keeps_the_first_error(tmp_path: Path) -> None:
    class Slow(TwoStepJudge):
        async def complete(self, request: Request) -> Response:
            if len(request.messages) > 1:
                await asyncio.sleep(60.0)
            return await super().complete(request)

    failure = only(stopped(Slow(endpoint="x"), tmp_path, deadline=0.5))
    assert (failure.raw, failure.message.startswith("the reply does not end")) == (UNREAD, True)


# Cost and order of repairs.


def test_each_unparsed_reply_is_repaired_with_one_cached_request(tmp_path: Path) -> None:
    def first(request: Request) -> str:
        return UNREAD if "day 1" in request.messages[0]["content"] else "Good.\nScore: 3"

    provider = TwoStepJudge(first, endpoint="x")
    result = run(provider, MANY, cache=tmp_path, max_concurrency=3)
    unread = [row for row in MANY if "day 1" in row["output"]]
    assert len(provider.seen) == len(MANY) + len(unread)
    assert Counter(s.provenance.reading for s in result.table.scores) == {
        "strict": 9,
        "repaired": len(unread),
    }
    (judged,) = result.info.judges.values()
    assert (judged.requests.unread, judged.requests.repaired) == (3, 3)
    second = TwoStepJudge(first, endpoint="x")
    assert run(second, MANY, cache=tmp_path).table.scores == result.table.scores
    assert second.seen == []


def test_an_answer_without_a_score_is_repeated_only_if_failures_are_retried(
    tmp_path: Path,
) -> None:
    options = {"cache": tmp_path / "cache", "out": tmp_path / "run"}
    first = TwoStepJudge(second="Good.", endpoint="x")
    failure = only(run(first, **options))
    rerun = TwoStepJudge(endpoint="x")
    assert only(run(rerun, **options)) == failure
    assert rerun.seen == []
    retried = TwoStepJudge(endpoint="x")
    assert only(run(retried, **options, retry_failed=True)).value == 4.0
    assert len(retried.seen) == 2


def test_equal_judgments_share_the_question(tmp_path: Path) -> None:
    provider = TwoStepJudge(endpoint="x")
    result = run(provider, cache=tmp_path, rows=[row | {"output": "Shut."} for row in MANY])
    assert {s.value for s in result.table.scores} == {4.0}
    assert len(result.table.scores) == len(MANY)
    assert len(provider.questions) == 1


def test_questions_follow_in_a_second_batch(tmp_path: Path) -> None:
    judged, rows = scheduled(TwoStepJudge(endpoint="x"), NoCache(), gathers=True)
    asyncio.run(judged())
    first, repaired, others, *rest = judged.gathering.rounds
    assert (first, repaired, others) == ([1], [3], [1] * 11)
    assert [length for lengths in rest for length in lengths] == [3] * 11
    assert len(rows) == 12


# Recorded and scripted replies.


def test_a_recorded_run_is_replayed_with_its_answers(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    recorded = run(TwoStepJudge(second="2"), MANY, record=file)
    replayed = run(None, MANY, replay=file)
    assert replayed.table.scores == recorded.table.scores
    assert {s.provenance.reading for s in replayed.table.scores} == {"repaired"}


def test_a_recording_without_answers_fails_as_it_did(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    before = run(TwoStepJudge(), MANY, record=file, repair="off")
    for _ in range(
        2
    ):  # in the second run, the cache answers everything except the repair questions
        after = run(None, MANY, replay=file, cache=tmp_path / "cache")
        assert [(f.item, f.raw, f.error, f.reading) for f in after.failures] == [
            (f.item, f.raw, f.error, f.reading) for f in before.failures
        ]
        (message,) = {f.message for f in after.failures}
        assert has_line(message, before.failures[0].message, "not answered", "calls.jsonl")


def test_a_rule_of_scripted_replies_answers_a_question_only_if_it_names_it(tmp_path: Path) -> None:
    file = tmp_path / "replies.yaml"
    file.write_text(f"- reply: {UNREAD}\n")
    assert isinstance(only(run(f"scripted/{file}")), Failure)
    file.write_text(
        f"- {{when: The pass is shut, reply: {UNREAD}}}\n- {{when: score alone, reply: 2}}\n"
    )
    assert only(run(f"scripted/{file}")).provenance.reading == "repaired"


def test_a_stored_repaired_score_is_not_retried(tmp_path: Path) -> None:
    run, rows = scheduled(TwoStepJudge(endpoint="x"), DiskCache(tmp_path))
    asyncio.run(run())
    second, same = scheduled(
        provider := TwoStepJudge(endpoint="x"), DiskCache(tmp_path), retry_failed=True
    )
    asyncio.run(second())
    assert (provider.seen, same) == ([], rows)


def test_a_model_with_hidden_reasoning_gets_the_question_without_a_token_limit(
    chat_server: Any, make_completion: Callable[..., Any]
) -> None:
    """Other replies keep their limit, which leaves room for the reasoning."""

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        if len(body["messages"]) == 1:
            return 200, {}, make_completion(UNREAD)
        spent = {"finish_reason": "length", "message": {"content": ""}}
        return (
            200,
            {},
            make_completion("4", choice=spent if "max_completion_tokens" in body else {}),
        )

    chat_server.answer = answer
    result = run("m", MANY[:3], base_url=chat_server.url, max_concurrency=1)
    assert [s.value for s in result.table.scores] == [4.0] * 3
    limits = Counter(
        (len(body["messages"]), body.get("max_completion_tokens")) for body in chat_server.bodies
    )
    assert limits == {(1, 1024): 3, (3, 64): 1, (3, None): 3}
