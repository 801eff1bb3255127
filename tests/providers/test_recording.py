"""Recordings: judge reads back the recorded replies, and the error for a miss names the difference."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.core.errors import DataError, StorageError
from judge.core.records import Choice, Request, Response, Token, Usage
from judge.providers.recorded_call import Call
from judge.providers.recording import Recorder, RecordingFile
from tests.factories import has_line, user_request

PLAIN = Response((Choice("4"),))
RICH = Response(
    (Choice("5", "length", (Token("5", -0.25, (("5", -0.25), ("4", -1.5))),)),),
    Usage(12, 1, cached_tokens=8),
    "m-2026",
    ("seed",),
)
SHARES = Response((Choice("pass", shares=(("fail", 0.25), ("pass", 0.75))),))


CALLS = (
    (user_request("one", temperature=1.0), PLAIN),
    (user_request("one", 1, temperature=1.0), RICH),
    (user_request("zwei – 二", temperature=0.0, max_tokens=64), SHARES),
)


def record(path: Path, note: str, *calls: tuple[Request, Response]) -> None:
    recorder = Recorder(path, note)
    for request, reply in calls:
        recorder.add(request, reply)
    recorder.close()


def recorded(folder: Path) -> Path:
    record(folder / "calls.jsonl", "By hand.", *CALLS)
    return folder / "calls.jsonl"


def replies(path: Path) -> dict[Call, dict[int, Response]]:
    with RecordingFile(path) as recording:
        return {line.call: line.replies for line in recording.lines()}


def test_a_recording_round_trips(tmp_path: Path) -> None:
    path, copied = recorded(tmp_path / "new"), tmp_path / "again.jsonl"
    drawn = sorted(([*each.values()] for each in replies(path).values()), key=len)
    assert drawn == [[SHARES], [PLAIN, RICH]]
    with RecordingFile(path) as recording:
        recording.write(copied)
    assert copied.read_bytes() == path.read_bytes()
    assert json.loads(path.read_text().splitlines()[0]) == {"note": "By hand."}
    assert "二" in path.read_text("utf-8")  # a person can read it


def test_a_recording_that_windows_saved_is_the_same(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    before = replies(path)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\r\n")
    assert replies(path) == before


def test_the_order_of_asking_does_not_show(tmp_path: Path) -> None:
    record(tmp_path / "a", "By hand.", *CALLS)
    record(
        tmp_path / "b", "By hand.", *reversed(CALLS), (user_request("three"), Response(()))
    )  # the last entry has no reply
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_draws_are_found_together_as_far_as_they_go(tmp_path: Path) -> None:
    recording = RecordingFile(recorded(tmp_path))
    assert recording.find(user_request("one", temperature=1.0, n=2)) == [PLAIN, RICH]
    assert recording.find(user_request("one", 1, temperature=1.0)) == [RICH]
    assert recording.find(user_request("one", temperature=1.0, n=20)) == [PLAIN, RICH]
    assert recording.find(user_request("one", 2, temperature=1.0)) == []
    assert recording.find(user_request("one", temperature=0.0)) == []
    assert recording.find(user_request("one", model="other", temperature=1.0)) == []
    assert (len(recording), recording.draws("m"), recording.models, recording.note) == (
        2,
        2,
        ("m",),
        "By hand.",
    )


@pytest.mark.parametrize(
    ("request_sent", "facts"),
    [
        (
            user_request("one", 4, temperature=1.0),
            ("2 draws", "draw 5"),
        ),
        (
            user_request("one", temperature=0.0, top_logprobs=20),
            ("temperature 1.0, not 0.0", "top_logprobs none, not 20"),
        ),
        (user_request("one", model="other"), ("replies of m", "none of other")),
        (
            user_request("zwei – 三", temperature=0.0, max_tokens=64),
            ("- user: zwei – 二", "+ user: zwei – 三"),
        ),
    ],
)
def test_a_miss_explains_the_difference(
    tmp_path: Path, request_sent: Request, facts: tuple[str, ...]
) -> None:
    explanation = RecordingFile(recorded(tmp_path)).explain(request_sent)
    assert has_line([explanation], *facts)


def test_long_lines_are_cut_around_their_first_difference(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    same_start = "as before " * 100
    same_end = " and so on" * 100
    record(path, "", (user_request(f"{same_start}the parcel left{same_end}"), PLAIN))
    request_sent = user_request(f"{same_start}the parcel came{same_end}")
    _, old, new = RecordingFile(path).explain(request_sent).splitlines()
    assert has_line([old], "- …", "the parcel left and so on", "…")
    assert has_line([new], "+ …", "the parcel came and so on", "…")
    assert max(len(old), len(new)) < 200


def test_a_line_that_only_one_prompt_has_is_shown_alone(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    record(path, "", (user_request("first\nlast"), PLAIN))
    _, *lines = RecordingFile(path).explain(user_request("first\nsecond\nlast")).splitlines()
    assert [line.strip() for line in lines] == ["+ second"]


def test_a_long_difference_is_cut(tmp_path: Path) -> None:
    record(
        tmp_path / "calls.jsonl",
        "",
        (user_request("\n".join(f"line {n}" for n in range(40))), PLAIN),
    )
    explanation = RecordingFile(tmp_path / "calls.jsonl").explain(
        user_request("\n".join(f"row {n}" for n in range(40)))
    )
    assert explanation.endswith("35 more lines")
    assert len(explanation.splitlines()) == 12


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a line"),
        ("[1]", "not a line"),
        ('{"item": "1", "output": "A data file."}', "prompt is missing"),
        ("<<<<<<< HEAD", "merge conflict"),
        (
            '{"model": "m", "params": {}, "messages": [], "replies": [{}], "prompt": "x"}',
            "not a line",
        ),
        (
            '{"model": "m", "params": {}, "messages": [], "replies": [], "prompt": "x"}',
            "replies: list should have",
        ),
        (
            '{"model": "m", "params": {}, "messages": [], "replies": [{"draw": 0, "text": "4"}], "prompt": "x"}',
            "digest x",
        ),
    ],
)
def test_an_invalid_recording_line_is_an_error_with_its_line(
    tmp_path: Path, line: str, message: str
) -> None:
    path = recorded(tmp_path)
    path.write_text(path.read_text("utf-8").splitlines()[0] + "\n\n" + line + "\n", "utf-8")
    with pytest.raises(DataError, match=f"calls.jsonl:3: .*{message}"):
        RecordingFile(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"params": [1]}, "params: .*keys and values"),
        ({"model": 3}, "model: .*string"),
        ({"messages": {"role": "user"}}, "messages: write a list"),
        (
            {"messages": [{"role": "user", "content": ["x"]}]},
            r"messages\.0\.content: .*string",
        ),
        ({"endpoint": 1}, "endpoint: input should"),
        ({"replies": [{"draw": -1, "text": "4"}]}, r"replies\.0\.draw: .*greater"),
        (
            {"replies": [{"draw": True, "text": "4"}]},
            r"replies\.0\.draw: .*integer",
        ),
        ({"replies": [{"draw": 0, "text": None}]}, "replies.0.text: input should"),
        (
            {"replies": [{"draw": 0, "text": "4", "usage": {"prompt_tokens": -5}}]},
            "prompt_tokens: input",
        ),
        ({"replies": [{"draw": 0, "text": "4", "usage": {"tokens": 5}}]}, "unexpected keyword"),
        (
            {"replies": [{"draw": 0, "text": "4", "shares": [["4", "much"]]}]},
            "replies.0.shares.0.1: input",
        ),
        (
            {"replies": [{"draw": 0, "text": "4", "tokens": [["4", 10**400, []]]}]},
            "replies.0.tokens",
        ),
        ({"replies": [{"draw": 0, "text": "4", "unmet": "seed"}]}, "replies.0.unmet: write a list"),
        (None, "recursion"),
    ],
)
def test_an_unknown_field_in_a_recording_is_an_error(
    tmp_path: Path, change: dict[str, Any] | None, message: str
) -> None:
    path = recorded(tmp_path)
    first, *rest = path.read_text("utf-8").splitlines()
    whole = {**json.loads(rest[0]), **(change or {})}
    path.write_text(
        "\n".join([first, json.dumps(whole) if change else "[" * 200_000]) + "\n", "utf-8"
    )
    with pytest.raises(DataError, match=f"calls.jsonl:2: .*{message}"):
        RecordingFile(path)


def test_recording_appends_to_existing_replies(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    # request "one" is recorded again
    record(
        path,
        "From a model.",
        (user_request("two"), PLAIN),
        (user_request("one", temperature=1.0), RICH),
    )
    with RecordingFile(path) as recording:
        assert recording.note == "By hand. From a model."
        assert recording.find(user_request("one", temperature=1.0, n=2)) == [RICH, RICH]
        assert len(recording) == 3
    whole = path.read_bytes()
    record(path, "From a model.", (user_request("two"), PLAIN))
    assert path.read_bytes() == whole  # no duplicate note or reply
    assert [one.name for one in tmp_path.iterdir()] == ["calls.jsonl"]


KILLED = """
import os, signal, sys
from pathlib import Path
from judge.providers.recording import Recorder
from judge.core.records import Choice, Request, Response
made = Recorder(Path(sys.argv[1]), "Half a run.")
for n in range(50):
    made.add(Request("m", ({"role": "user", "content": f"text {n}"},)), Response((Choice(str(n)),)))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_has_recorded_its_replies(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    assert (
        subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode
        == -signal.SIGKILL
    )
    with path.open("ab") as file:
        file.write(b'{"prompt": "a line that was cut')
    with RecordingFile(path) as recording:  # read it like a replay
        assert (len(recording), recording.note) == (50, "Half a run.")
    record(path, "", (user_request("one"), PLAIN))
    with RecordingFile(path) as recording:
        assert len(recording) == 51
        assert recording.find(user_request("text 49")) == [Response((Choice("49"),))]
    assert b"was cut" not in path.read_bytes()


@pytest.mark.parametrize("rest", ["", '\n{"prompt": "a line that a killed process left'])
def test_recording_appends_after_an_unfinished_last_line(tmp_path: Path, rest: str) -> None:
    path = recorded(tmp_path)
    with Recorder(path) as recorder:
        path.write_bytes(path.read_bytes().rstrip() + rest.encode())
        recorder.add(user_request("a new one"), PLAIN)
        with RecordingFile(path) as recording:
            assert recording.find(user_request("a new one")) == [PLAIN]
    with RecordingFile(path) as recording:
        assert len(recording) == 3
        assert not recording.cut


SEVERAL = """
import sys, time
from pathlib import Path
from judge.providers.recording import Recorder
from judge.core.records import Choice, Request, Response
path, mine = Path(sys.argv[1]), int(sys.argv[2])
for round in range(4):
    made = Recorder(path)
    for n in range(25):
        text = f"text {mine} {round} {n}"
        made.add(Request("m", ({"role": "user", "content": text},)), Response((Choice("4"),)))
    made.close()
"""


@pytest.mark.slow
def test_several_processes_record_into_one_file(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    running = [subprocess.Popen([sys.executable, "-c", SEVERAL, path, str(n)]) for n in range(3)]
    assert [one.wait(60) for one in running] == [0, 0, 0]
    with RecordingFile(path) as recording:
        assert len(recording) == 300
    assert [one.name for one in tmp_path.iterdir()] == ["calls.jsonl"]


def test_a_recording_that_grows_or_is_replaced_is_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with RecordingFile(recorded(tmp_path)) as recording:
        record(
            path,
            "",
            (user_request("a new one"), PLAIN),
            (user_request("one", temperature=1.0), RICH),
        )
        with path.open("ab") as file:
            file.write(b'{"prompt": "a line that is being wri')
        assert recording.find(user_request("one", temperature=1.0)) == [PLAIN]
        assert recording.find(user_request("a new one")) == []
    with RecordingFile(path) as now:
        assert now.find(user_request("one", temperature=1.0)) == [RICH]
        assert len(now) == 3


def test_a_reply_that_contradicts_its_tokens_is_refused_when_it_answers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "calls.jsonl"
    tokens = (Token("\u2581", -0.1, ()), Token("4", -0.1, ()))
    record(path, "", (user_request("one"), Response((Choice(" 4.", tokens=tokens),), Usage())))
    RecordingFile(path, strict=True).close()
    path.write_text(path.read_text("utf-8").replace('"text": " 4."', '"text": "2"'), "utf-8")
    with pytest.raises(DataError, match=r"calls.jsonl:1: draw 0 .*'2'.* tokens differ"):
        RecordingFile(path, strict=True)
    RecordingFile(path).close()  # closing leaves the recorded lines unchanged


def test_a_file_that_changes_during_a_run_is_an_error(tmp_path: Path) -> None:
    with RecordingFile(recorded(tmp_path)) as recording:
        path = tmp_path / "calls.jsonl"
        path.write_bytes(path.read_bytes().replace(b"one", b"eno").replace(b"zwei", b"drei"))
        with pytest.raises(DataError, match="changed while it was read"):
            recording.find(user_request("one", temperature=1.0))


def test_a_recording_is_not_loaded_into_memory(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    record(path, "", *[(user_request(f"{n} " + "x" * 20_000), PLAIN) for n in range(200)])
    tracemalloc.start()
    with RecordingFile(path) as recording:
        assert len(recording) == 200
        assert tracemalloc.get_traced_memory()[0] < path.stat().st_size / 10
    tracemalloc.stop()


def test_a_full_disk_loses_no_reply_and_gives_advice(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recorder = Recorder(path)
    recorder.add(user_request("one"), PLAIN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50, limits[1]))
    try:
        recorder.add(user_request("two"), PLAIN)
        with pytest.raises(StorageError, match="File too large"):
            recorder.flush()
        assert path.read_bytes().count(b"\n") == 1  # no partial line
        with pytest.raises(StorageError, match="File too large"):
            recorder.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    record(path, "", (user_request("two"), PLAIN), (user_request("three"), PLAIN))
    assert len(replies(path)) == 3


def test_replies_of_two_servers_are_both_recorded(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recorder = Recorder(path)
    for endpoint, reply in (("http://a/v1", PLAIN), ("http://b/v1", RICH)):
        recorder.add(replace(user_request("one"), endpoint=endpoint), reply)
    recorder.close()
    with RecordingFile(path) as recording:
        assert len(recording) == 2
        assert recording.ambiguous_servers == ("http://a/v1", "http://b/v1")


def test_replies_with_an_address_replace_older_replies_without_one(
    tmp_path: Path,
) -> None:
    path = recorded(tmp_path)
    record(path, "", (replace(user_request("one", temperature=1.0), endpoint="http://a/v1"), RICH))
    with RecordingFile(path) as recording:
        assert recording.find(user_request("one", temperature=1.0)) == [RICH]
        assert recording.ambiguous_servers == ()


def test_only_a_servers_address_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    requests = [
        replace(user_request(place), endpoint=place)
        for place in ("https://a/v1", "scripted", "replay:0123")
    ]
    record(path, "", *((one, PLAIN) for one in requests))
    lines = map(json.loads, path.read_text().splitlines())
    assert [line["endpoint"] for line in lines if "endpoint" in line] == ["https://a/v1"]


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jsonl: No such file"):
        RecordingFile(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="not a file"):
        RecordingFile(tmp_path)
    with pytest.raises(DataError, match="not a file"):
        Recorder(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="recording"):
        Recorder(tmp_path / "file" / "calls.jsonl")
    (tmp_path / "data.jsonl").write_text('{"item": "1", "output": "A data file."}')
    with pytest.raises(DataError, match=r"data\.jsonl:1: .*: prompt is missing"):
        Recorder(tmp_path / "data.jsonl")
