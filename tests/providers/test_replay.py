"""A replay gives the results of the recorded run without a network."""

from __future__ import annotations

import asyncio
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError, DataError, Refused, StorageError
from judge.core.records import Request
from judge.providers import Provider
from judge.providers.recording import Recorder, replayed
from judge.results.loading import load
from tests.factories import has_line, text_response

ROWS = [
    {"item": str(n), "system": s, "source": "The boat left at nine.", "output": f"Boat {n} of {s}."}
    for n in range(4)
    for s in "ab"
]
CRITERIA = ["relevance", "coherence"]


def run(**options: Any) -> judge.Result:
    return judge.evaluate(ROWS, CRITERIA, metrics=[], **{"cache": False, **options})


@pytest.mark.parametrize(
    "options",
    [
        {"weighting": "samples", "draws": 3},
        {"weighting": "single"},
        {"weighting": "auto"},
        {"reply": "score_then_reason", "structured": True, "weighting": "samples", "draws": 2},
    ],
)
def test_a_recorded_run_is_replayed(tmp_path: Path, options: dict[str, Any]) -> None:
    calls = tmp_path / "calls.jsonl"
    structured = options.get("structured")
    provider = judge.ScriptedProvider(
        lambda request: '{"score": 4, "reason": "Dry."}' if structured else {"4": 0.75, "5": 0.25}
    )
    first = run(model=provider, record=calls, **options)
    second_run = run(replay=calls, **options)
    assert first.failures == second_run.failures == ()
    assert [(s.value, s.provenance) for s in second_run.table.scores] == [
        (s.value, s.provenance) for s in first.table.scores
    ]
    assert second_run.info.model == "script"
    assert second_run.info.usage.prompt_tokens == 0
    assert second_run.info.notes == (
        provider.notice,
    )  # the notes on the first run's replies apply here too


def test_replies_from_the_cache_are_recorded_too(tmp_path: Path) -> None:
    options: dict[str, Any] = {"cache": tmp_path / "cache", "weighting": "samples", "draws": 2}
    provider = judge.ScriptedProvider(lambda _: "3", endpoint="here")
    run(model=provider, record=tmp_path / "one.jsonl", **options)
    n_requests = len(provider.seen)
    run(model=provider, record=tmp_path / "two.jsonl", **options)
    assert len(provider.seen) == n_requests
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()


def test_a_recording_is_added_to(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    for name in ("one", "two"):
        run(
            model=judge.ScriptedProvider(lambda _: "3", model=name),
            record=calls,
            weighting="single",
        )
    both = run(replay=calls, weighting="single")
    assert list(both.info.judges) == ["one", "two"]
    assert run(replay=calls, model="two", weighting="single").info.model == "two"


def test_fewer_draws_than_requested_are_noted(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    run(model=judge.ScriptedProvider(lambda _: "3"), record=calls, weighting="samples", draws=3)
    notes = run(replay=calls, weighting="samples", draws=5).info.notes
    assert has_line(notes, "3 draws of a prompt", "5 asked for")
    assert len(run(replay=calls, weighting="samples", draws=2).info.notes) == len(notes) - 1


def test_draws_of_a_different_model_are_not_replayed(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    run(model=judge.ScriptedProvider(lambda _: {"3": 1.0}, model="one"), record=calls)
    run(
        model=judge.ScriptedProvider(lambda _: "3", model="two"),
        record=calls,
        weighting="samples",
        draws=2,
    )
    notes = run(replay=calls, model="one").info.notes
    assert not [note for note in notes if "The recording holds" in note]


def test_a_replay_notes_that_no_model_was_used(tmp_path: Path) -> None:
    calls, provider = tmp_path / "calls.jsonl", judge.ScriptedProvider(lambda _: "3")
    provider.notice = ""  # like a real provider
    run(model=provider, record=calls, weighting="single")
    notes = run(replay=calls, weighting="single").info.notes
    (note,) = notes
    assert has_line(note, "Recorded replies", "calls.jsonl", "no model")


def test_decisions_are_replayed(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    provider = judge.ScriptedProvider(lambda _: {"2": 0.5, "5": 0.5}, decides=True)
    first = run(model=provider, record=calls)
    second_run = run(replay=calls)
    assert (
        [s.value for s in second_run.table.scores]
        == [s.value for s in first.table.scores]
        == [3.5] * 16
    )
    assert {s.provenance.method for s in second_run.table.scores} == {"decisions"}


def test_a_missing_reply_is_a_failure_that_explains_the_difference(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    run(model=judge.ScriptedProvider(lambda _: "3"), record=calls, weighting="single")
    other = [*ROWS[:-1], {**ROWS[-1], "output": "Ship 3 of b."}]
    result = judge.evaluate(
        other, CRITERIA, metrics=[], replay=calls, weighting="single", cache=False
    )
    assert len(result.failures) == 2
    message = result.failures[0].message
    assert has_line([message], "- Boat 3 of b.", "+ Ship 3 of b.")
    assert has_line(message, f"record={str(calls)!r}", "instead of replay")
    with pytest.raises(
        Refused, match="top_logprobs none, not 20"
    ):  # the first request fails, because no recorded reply matches
        run(replay=calls)


def test_a_changed_text_is_compared_with_its_own_recorded_prompt(tmp_path: Path) -> None:
    """The reply of the other system is nearer to the new words, but it is not the one replaced."""
    calls = tmp_path / "calls.jsonl"
    replies = {"new": "I am sorry for the delay; it arrives on Friday.", "old": "It arrives."}
    rows = [{"item": "late", "system": s, "output": output} for s, output in replies.items()]
    options: dict[str, Any] = {"metrics": [], "weighting": "single", "cache": False}
    provider = judge.ScriptedProvider(lambda _: "3")
    judge.evaluate(rows, "kind: Is it kind?", model=provider, record=calls, **options)
    rows[0]["output"] = "It arrives when it arrives."
    (failure,) = judge.evaluate(rows, "kind: Is it kind?", replay=calls, **options).failures
    assert (failure.item, failure.system) == ("late", "new")
    *_, old, new, _ = failure.message.splitlines()
    assert has_line([old], "-", replies["new"])
    assert has_line([new], "+", rows[0]["output"])


def test_a_text_that_was_never_recorded_is_called_new(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    run(model=judge.ScriptedProvider(lambda _: "3"), record=calls, weighting="single")
    rows = [*ROWS, {"item": "9", "system": "a", "source": "A storm.", "output": "A ship left."}]
    result = judge.evaluate(
        rows, CRITERIA, metrics=[], replay=calls, weighting="single", cache=False
    )
    assert {failure.item for failure in result.failures} == {"9"}
    assert has_line(result.failures[0].message, "text is new")


def test_a_changed_first_text_does_not_end_the_replay(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    run(model=judge.ScriptedProvider(lambda _: "3"), record=calls, weighting="single")
    rows = [{**ROWS[0], "output": "Ship 0 of a."}, *ROWS[1:]]
    result = judge.evaluate(
        rows, CRITERIA, metrics=[], replay=calls, weighting="single", cache=False
    )
    assert len(result.failures) == len(CRITERIA)
    assert len(result.table.scores) == len(CRITERIA) * (len(ROWS) - 1)


def test_an_error_that_ends_a_replay_names_the_judgment(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    provider = judge.ScriptedProvider(lambda _: "3")
    judge.evaluate(
        ROWS, "short: Is it short?", metrics=[], model=provider, record=calls, cache=False
    )
    with pytest.raises(Refused) as caught:
        judge.evaluate(ROWS, "short: Is it very short?", metrics=[], replay=calls, cache=False)
    assert has_line(str(caught.value), "item '0' of system 'a'", "calls.jsonl")


def test_failed_judgments_fail_again(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    options: dict[str, Any] = {"weighting": "single"}
    provider = judge.ScriptedProvider(
        lambda r: "no idea" if "Boat 0" in r.messages[0]["content"] else "4"
    )
    first = run(model=provider, record=calls, **options)
    second_run = run(replay=calls, **options)
    assert [(f.item, f.stage, f.raw) for f in second_run.failures] == [
        (f.item, f.stage, f.raw) for f in first.failures
    ]
    assert (len(second_run.failures), len(second_run.table.scores)) == (4, 12)


def test_an_unwritable_recording_is_an_error_before_any_request(tmp_path: Path) -> None:
    provider = judge.ScriptedProvider(lambda _: "3")
    (tmp_path / "file").write_text("")
    for path, error in ((tmp_path / "file" / "calls.jsonl", StorageError), (tmp_path, DataError)):
        with pytest.raises(error):
            run(model=provider, record=path)
    assert provider.seen == []


def test_a_file_that_is_recorded_can_be_replayed(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    options: dict[str, Any] = {"record": calls, "weighting": "single"}
    first = run(model=judge.ScriptedProvider(lambda _: "3"), **options)
    # A model's recording has no note, and a replay must not add its own.
    lines = calls.read_text().splitlines(keepends=True)
    calls.write_text("".join(line for line in lines if "note" not in json.loads(line)))
    recorded = calls.read_bytes()
    (tmp_path / "other").mkdir()
    again = run(replay=tmp_path / "other" / ".." / "calls.jsonl", **options)
    assert [score.value for score in again.table.scores] == [3] * len(first.table.scores)
    assert calls.read_bytes() == recorded


def test_results_are_saved_although_the_recording_cannot_be(tmp_path: Path) -> None:
    calls, out = tmp_path / "new" / "calls.jsonl", tmp_path / "out"

    requests: list[Request] = []

    def script(request: Request) -> str:
        requests.append(request)
        if len(requests) == 10:
            shutil.rmtree(calls.parent)
            calls.parent.write_text("")  # replace the folder by a file
        return "3"

    with pytest.raises(StorageError, match="recording"):
        run(model=judge.ScriptedProvider(script), record=calls, out=out, weighting="single")
    scores = load(out).table.scores
    # How many replies arrive before the write that fails depends on the event loop's clock.
    assert 9 <= len(scores) <= len(requests)
    assert all(score.value == 3 for score in scores)


def test_the_note_of_a_recording_is_shown(tmp_path: Path) -> None:
    with Recorder(tmp_path / "calls.jsonl", "Written by hand, not by a model.") as recorder:
        recorder.add(Request("m", ({"role": "user", "content": "x"},)), text_response("1"))
    (provider,) = replayed(tmp_path / "calls.jsonl", [])
    assert isinstance(provider, Provider)
    assert provider.notice == "Written by hand, not by a model."
    assert provider.learned == {}
    asyncio.run(provider.aclose())


def test_recordings_that_do_not_fit(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    with pytest.raises(DataError, match=r"holds no replies.*record again with record="):
        run(replay=empty)
    calls = tmp_path / "calls.jsonl"
    run(model=judge.ScriptedProvider(lambda _: "3"), record=calls, weighting="single")
    with pytest.raises(ConfigError, match="did you mean 'script'"):
        run(replay=calls, model="scrip")
    with pytest.raises(ConfigError, match="leave out the provider"):
        run(replay=calls, model=judge.ScriptedProvider(lambda _: "3"))


def test_it_is_made_again_from_the_same_file(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    run(model=judge.ScriptedProvider(lambda _: "4"), record=calls, weighting="single")
    (provider,) = replayed(calls, [])
    unpickled = pickle.loads(sent := pickle.dumps(provider))
    assert (unpickled.model, unpickled.endpoint, unpickled.notice) == (
        provider.model,
        provider.endpoint,
        provider.notice,
    )
    calls.unlink()
    with pytest.raises(DataError, match=r"calls\.jsonl"):
        pickle.loads(sent)
