"""`judge doctor cache export` and `import`; no file contains an API key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.cache import DiskCache
from judge.core.records import Request
from judge.providers.recording import Recorder
from judge.results.loading import load
from tests.factories import has_line, text_response, write_jsonl

SECRET = "sk-test-0123456789abcdef"
ROWS = [
    {"item": str(n), "system": s, "output": f"Boat {n} of {s}."} for n in range(3) for s in "xy"
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    write_jsonl(tmp_path / "data.jsonl", ROWS)
    return tmp_path


def run(url: str, *more: object) -> tuple[object, ...]:
    return (
        "run",
        "data.jsonl",
        "--criteria",
        "fluency",
        "--metrics",
        "none",
        "--model",
        "m",
        "--base-url",
        url,
        *more,
    )


def test_replies_are_exported_from_one_cache_and_imported_into_another(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("2", top={"2": 0.75, "3": 0.25}))
    args = run(chat_server.url, "--quiet")
    assert command(*args, "--out", "one").code == 0
    requests = len(chat_server.bodies)
    completed = command("doctor", "cache", "export", "calls.jsonl")
    assert completed.out == f"calls.jsonl: {requests} replies written\n"
    whole = (folder / "calls.jsonl").read_bytes()
    first = json.loads(whole.splitlines()[0])
    assert (first["endpoint"], first["model"]) == (chat_server.url, "m")

    assert command("doctor", "cache", "export", "calls.jsonl").code == 0
    assert (folder / "calls.jsonl").read_bytes() == whole  # no duplicates
    completed = command("doctor", "cache", "import", "calls.jsonl", "--cache", "other")
    assert has_line(completed.out, f"{requests} replies added", "0 already there", chat_server.url)
    completed = command("doctor", "cache", "import", "calls.jsonl", "--cache", "other")
    assert has_line(completed.out, "0 replies added", f"{requests} already there", chat_server.url)
    assert command(*args, "--cache", "other", "--out", "two").code == 0
    assert len(chat_server.bodies) == requests  # every reply was already there
    second_run = command(
        "run", "data.jsonl", "--criteria", "fluency", "--metrics", "none", "--replay", "calls.jsonl"
    )
    assert second_run.code == 0


def test_caches_of_parts_of_the_data_are_merged(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("2", top={"2": 0.75, "3": 0.25}))
    for system in "xy":
        part = run(
            chat_server.url,
            "--where",
            f"system={system}",
            "--cache",
            f"cache-{system}",
            "--out",
            system,
        )
        assert command(*part, "--quiet").code == 0
        assert (
            command(
                "doctor", "cache", "export", f"{system}.jsonl", "--cache", f"cache-{system}"
            ).code
            == 0
        )
        assert command("doctor", "cache", "import", f"{system}.jsonl", "--cache", "whole").code == 0
    requests = len(chat_server.bodies)
    assert requests >= len(ROWS)
    assert (
        command(*run(chat_server.url, "--cache", "whole", "--out", "whole-run", "--quiet")).code
        == 0
    )
    assert len(chat_server.bodies) == requests


def test_imported_replies_keep_their_server_address(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("2", top={"2": 0.75, "3": 0.25}))
    args = run(chat_server.url, "--quiet", "--out", "one")
    assert command(*args, "--no-cache", "--record", "calls.jsonl").code == 0
    requests = len(chat_server.bodies)
    completed = command(
        "doctor", "cache", "import", "calls.jsonl", "--base-url", "http://elsewhere/v1"
    )
    assert has_line(completed.out, f"{requests} replies added", "0 already there", chat_server.url)
    assert command(*args).code == 0
    assert len(chat_server.bodies) == requests
    assert (
        command(
            "run",
            "data.jsonl",
            "--criteria",
            "fluency",
            "--metrics",
            "none",
            "--replay",
            "calls.jsonl",
        ).code
        == 0
    )


def test_a_recording_without_addresses_is_of_the_server_that_is_named(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("2", top={"2": 0.75, "3": 0.25}))
    args = run(chat_server.url, "--quiet", "--out", "one")
    assert command(*args, "--no-cache", "--record", "calls.jsonl").code == 0
    requests = len(chat_server.bodies)
    recorded = (folder / "calls.jsonl").read_text()
    (folder / "calls.jsonl").write_text(recorded.replace(f'"endpoint": "{chat_server.url}", ', ""))
    completed = command("doctor", "cache", "import", "calls.jsonl", "--cache", "openai")
    assert has_line(completed.out, f"{requests} replies added", "https://api.openai.com/v1")
    assert (
        command(
            "doctor", "cache", "import", "calls.jsonl", "--base-url", chat_server.url + "/"
        ).code
        == 0
    )
    assert command(*args).code == 0
    assert len(chat_server.bodies) == requests
    assert command(*args, "--cache", "openai").code == 0
    assert len(chat_server.bodies) == 2 * requests


def test_export_can_select_replies(folder: Path, command: Callable[..., Any]) -> None:
    with DiskCache(folder / "cache") as cache:
        for model, place in (
            ("m", "http://a/v1"),
            ("m", "http://b/v1"),
            ("n", "http://a/v1"),
            ("m", "replay:0123"),
        ):
            request = Request(model, ({"role": "user", "content": "x"},), {}, endpoint=place)
            cache.put(request.key(), text_response(place), request)
        for n in range(12):
            cache.put(f"{n:064x}", text_response("4"))
    completed = command("doctor", "cache", "export", "all.jsonl")
    written, skipped = completed.out.splitlines()
    assert has_line(written, "all.jsonl", "3 replies written")
    assert has_line(skipped, "13 replies skipped", "scripted", "older version")
    assert command("doctor", "cache", "export", "one.jsonl", "--model", "n").out.startswith(
        "one.jsonl: 1 reply written"
    )
    assert command(
        "doctor", "cache", "export", "a.jsonl", "--base-url", "http://a/v1/"
    ).out.startswith("a.jsonl: 2 replies")
    completed = command("doctor", "cache", "export", "none.jsonl", "--model", "mm")
    assert completed.code == 2
    assert "did you mean" in completed.err
    for place, message in (
        ("http://c/v1", "unknown server 'http://c/v1'"),
        ("http://b/v1", "no such reply to write (13 are left out"),
    ):
        completed = command(
            "doctor", "cache", "export", "none.jsonl", "--model", "n", "--base-url", place
        )
        assert completed.code == 2
        assert message in completed.err
    assert not (folder / "none.jsonl").exists()
    completed = command("run", "data.jsonl", "--criteria", "fluency", "--replay", "all.jsonl")
    assert completed.code == 2
    assert has_line(completed.err, "two servers", "http://a/v1 and http://b/v1")


def test_import_skips_lines_without_a_model_reply(
    folder: Path, command: Callable[..., Any]
) -> None:
    (folder / "replies.yaml").write_text("- {when: [], reply: '2'}\n", "utf-8")
    scripted = (
        "--model",
        "scripted/replies.yaml",
        "--weighting",
        "single",
        "--record",
        "calls.jsonl",
        "--quiet",
    )
    assert (
        command("run", "data.jsonl", "--criteria", "fluency", "--metrics", "none", *scripted).code
        == 0
    )
    completed = command("doctor", "cache", "import", "calls.jsonl")
    assert completed.code == 2
    assert "use --replay" in completed.err
    for name, text, message in (
        ("no.jsonl", '{"item": 1}\n', "no.jsonl:1"),
        ("none.jsonl", None, "No such file"),
    ):
        if text is not None:
            (folder / name).write_text(text, "utf-8")
        completed = command("doctor", "cache", "import", name)
        assert completed.code == 2
        assert message in completed.err


def test_inspecting_a_missing_cache_creates_none(folder: Path, command: Callable[..., Any]) -> None:
    for more in (("stats",), ("clear",), ("clear", "--metrics"), ("export", "calls.jsonl")):
        completed = command("doctor", "cache", *more, "--cache", "nowhere")
        assert completed.code == 2
        assert has_line(completed.err, "judge: nowhere", "no cache", "--cache DIR")
    assert [path.name for path in folder.iterdir()] == ["data.jsonl"]


def test_a_recording_is_imported_whole_or_not_at_all(
    folder: Path, command: Callable[..., Any]
) -> None:
    with Recorder(folder / "calls.jsonl") as recorder:
        for n in range(3):
            recorder.add(Request("m", ({"role": "user", "content": str(n)},)), text_response("4"))
    whole = (folder / "calls.jsonl").read_bytes()
    (folder / "calls.jsonl").write_bytes(whole + b'{"item": 1}\n')
    completed = command("doctor", "cache", "import", "calls.jsonl")
    assert completed.code == 2
    assert has_line(completed.err, "calls.jsonl:4", "not a line", "recording")
    assert not (folder / "cache").exists()
    (folder / "calls.jsonl").write_bytes(whole + b"\n" + whole.splitlines()[0][:50])
    completed = command("doctor", "cache", "import", "calls.jsonl")
    added, skipped = completed.out.splitlines()
    assert has_line(added, "3 replies added", "0 already there", "https://api.openai.com/v1")
    assert has_line(skipped, "calls.jsonl", "last line", "incomplete")


def test_api_key_is_never_stored(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    """The server repeats the key's header in its replies, like a proxy in debug mode."""

    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], dict[str, Any]]:
        return (
            200,
            {"x-echo": f"Bearer {SECRET}"},
            make_completion(f"2\nAuthorization: Bearer {SECRET}"),
        )

    chat_server.answer = answer
    args = run(
        chat_server.url,
        "--weighting",
        "single",
        "--reply",
        "score_then_reason",
        "--record",
        "calls.jsonl",
    )
    completed = command(*args, "--out", "out")
    assert completed.code == 0
    assert command("doctor", "cache", "export", "exported.jsonl").code == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"calls.jsonl", "exported.jsonl", "cache.db", "scores.parquet", "run.json"} <= {
        path.name for path in files
    }
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []
    assert SECRET not in completed.out + completed.err
    assert b"Bearer ***" in (folder / "exported.jsonl").read_bytes()


def test_a_damaged_cache_is_reported_and_replaced(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("2", top={"2": 0.75, "3": 0.25}))
    args = run(chat_server.url)
    assert command(*args, "--out", "one").code == 0
    requests = len(chat_server.bodies)
    with (folder / "cache" / "responses" / "cache.db").open("r+b") as file:
        file.write(b"\xa5" * 4096)
    completed = command(*args, "--out", "two")
    assert completed.code == 0
    assert len(chat_server.bodies) == 2 * requests
    assert has_line(completed.err, "cache was damaged", "not a database")
    notes = load(folder / "two").info.notes
    assert [note for note in notes if note.startswith("The cache was damaged")] != []
    assert command(*args, "--out", "three").code == 0
    assert len(chat_server.bodies) == 2 * requests


@pytest.mark.slow
def test_failed_judgments_are_asked_again_on_the_command_line(
    folder: Path, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    def first(body: dict[str, Any]) -> tuple[int, dict[str, str], dict[str, Any]]:
        bad = "Boat 1" in body["messages"][0]["content"]
        return (
            200,
            {},
            make_completion("none" if bad else "2", top=None if bad else {"2": 0.75, "3": 0.25}),
        )

    chat_server.answer = first
    args = run(chat_server.url, "--out", "one")
    assert command(*args).code == 1
    requests = len(chat_server.bodies)
    second_run = command(*args)
    assert (second_run.code, len(chat_server.bodies)) == (1, requests)
    assert "2 values failed" in second_run.err
    chat_server.answer = lambda body: (200, {}, make_completion("2", top={"2": 0.75, "3": 0.25}))
    assert command(*args, "--retry-failed").code == 0
    assert len(chat_server.bodies) == requests + 2
    completed = command(*run(chat_server.url, "--retry-failed", "--no-cache"))
    assert completed.code == 2
    assert "--retry-failed: without a cache" in completed.err
