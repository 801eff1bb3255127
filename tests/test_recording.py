"""Recordings: what is written is read again, and a miss says what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge import recording
from judge.errors import DataError, StorageError
from judge.recording import Recording
from judge.records import Choice, Request, Response, Token, Usage

PLAIN = Response((Choice("4"),))
RICH = Response(
    (Choice("5", "length", (Token("5", -0.25, (("5", -0.25), ("4", -1.5))),)),),
    Usage(12, 1, cached_tokens=8),
    "m-2026",
    ("seed",),
)
SHARES = Response((Choice("pass", shares=(("fail", 0.25), ("pass", 0.75))),))


def request(text: str, draw: int = 0, model: str = "m", **params: object) -> Request:
    return Request(model, ({"role": "user", "content": text},), params, draw)


def recorded() -> Recording:
    found = Recording("By hand.")
    found.add(request("one", temperature=1.0), PLAIN)
    found.add(request("one", 1, temperature=1.0), RICH)
    found.add(request("zwei – 二", temperature=0.0, max_tokens=64), SHARES)
    return found


def test_what_is_written_is_read_again_and_written_alike(tmp_path: Path) -> None:
    path, again = tmp_path / "new" / "calls.jsonl", tmp_path / "again.jsonl"
    recorded().save(path)
    found = recording.read(path)
    assert found == recorded()
    found.save(again)
    assert again.read_bytes() == path.read_bytes()
    assert json.loads(path.read_text().splitlines()[0]) == {"note": "By hand."}
    assert [len(json.loads(line)["replies"]) for line in path.read_text().splitlines()[1:]] in ([1, 2], [2, 1])
    assert "二" in path.read_text("utf-8")  # a person can read it


def test_the_order_of_asking_does_not_show(tmp_path: Path) -> None:
    for name, order in (("a", (1, 0)), ("b", (0, 1))):
        made = Recording()
        for draw in order:
            made.add(request("one", draw), PLAIN)
            made.add(request("two", draw), PLAIN)
        made.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_draws_are_found_together_as_far_as_they_go() -> None:
    found = recorded()
    assert found.find(request("one", temperature=1.0, n=2)) == [PLAIN, RICH]
    assert found.find(request("one", 1, temperature=1.0)) == [RICH]
    assert found.find(request("one", temperature=1.0, n=20)) == [PLAIN, RICH]
    assert found.find(request("one", 2, temperature=1.0)) == []
    assert found.find(request("one", temperature=0.0)) == []
    assert found.find(request("one", model="other", temperature=1.0)) == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (request("one", 4, temperature=1.0), "2 draws of this prompt, and draw 5 was asked for"),
        (request("one", temperature=0.0, top_logprobs=20), "temperature 1.0, not 0.0; top_logprobs none, not 20"),
        (request("one", model="other"), "replies of m, none of other"),
        (request("zwei – 三", temperature=0.0, max_tokens=64), "… user: zwei – [- 二] [+ 三]"),
    ],
)
def test_a_miss_says_what_differs(asked: Request, said: str) -> None:
    assert said in recorded().explain(asked)


def test_a_long_difference_is_cut() -> None:
    found = Recording()
    found.add(request("\n".join(f"line {n}" for n in range(40))), PLAIN)
    said = found.explain(request("\n".join(f"row {n}" for n in range(40))))
    assert said.endswith("35 more places")
    assert len(said.splitlines()) == 7


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not a line of a recording"),
        ("[1]", "not a line of a recording"),
        ('{"item": "1", "output": "A data file."}', "it has no 'model'"),
        ('{"prompt": "x", "mod', "a line that was cut off may be deleted"),
        ('{"note": "twice"}', "not a line of a recording"),
        ('{"model": "m", "params": {}, "messages": [], "replies": [{}], "prompt": "x"}', "not a line of a recording"),
        ('{"model": "m", "params": {}, "messages": [], "replies": [], "prompt": "x"}', "digest x"),
    ],
)
def test_what_is_no_recording_is_named_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "calls.jsonl"
    recorded().save(path)
    path.write_text(path.read_text("utf-8").splitlines()[0] + "\n\n" + line + "\n", "utf-8")
    with pytest.raises(DataError, match=f"calls.jsonl:3: .*{said}"):
        recording.read(path)


def test_what_is_added_stands_beside_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recorded().add_to(path)
    other = Recording("From a model.")
    other.add(request("two"), PLAIN)
    other.add(request("one", temperature=1.0), RICH)  # asked again since
    other.add_to(path)
    found = recording.read(path)
    assert found.note == "By hand. From a model."
    assert found.find(request("one", temperature=1.0, n=2)) == [RICH, RICH]
    assert len(found.replies) == 3


def test_two_replies_to_one_call_are_refused(tmp_path: Path) -> None:
    one, other = Recording(), Recording()
    one.add(request("one"), PLAIN)
    other.add(request("one"), RICH)
    for made, name in ((one, "one"), (other, "other")):
        made.save(tmp_path / name)
    both = tmp_path / "both.jsonl"
    both.write_bytes((tmp_path / "one").read_bytes() * 2)
    assert recording.read(both) == one  # twice the same is once
    both.write_bytes((tmp_path / "one").read_bytes() + (tmp_path / "other").read_bytes())
    with pytest.raises(DataError, match=r"both\.jsonl:2: other replies"):
        recording.read(both)


def test_a_byte_order_mark_is_no_line(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    recorded().save(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert recording.read(path) == recorded()


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jsonl: No such file"):
        recording.read(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="not a file"):
        recording.read(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="recording"):
        recorded().save(tmp_path / "file" / "calls.jsonl")
