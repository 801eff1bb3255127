"""The commands on a cache that machines share: what they say, what they refuse, and that no password is anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.redis
SECRET = "ge%2Fheim"
ROWS = [
    {"item": str(n), "system": s, "source": "A boat.", "output": f"Boat {n} of {s}.", "human.fluency": 2}
    for n in range(3)
    for s in "xy"
]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, redis_server: Any) -> Path:
    """A folder with data, where $JUDGE_CACHE is a Redis that wants a password."""
    redis_server.options = ["--requirepass", "ge/heim"]
    redis_server.restart()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("JUDGE_CACHE", f"redis://:{SECRET}@127.0.0.1:{redis_server.port}/0")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    return tmp_path


def asking(url: str, verb: str = "run") -> tuple[str, ...]:
    return (verb, "data.jsonl", "--criteria", "fluency", "--metrics", "none", "--model", "m", "--base-url", url)


def plan_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.json").read_text())["info"]["plan"]
    return found


def test_the_commands_by_an_address_that_shows_no_password(
    there: Path, redis_server: Any, command: Callable[..., Any], chat_server: Any, make_completion: Any
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("2", top={"2": 0.75, "3": 0.25}))
    shown, disk = f"redis://127.0.0.1:{redis_server.port}/0", there / "xdg" / "judge" / "responses"
    said = [command(*asking(chat_server.url), "--out", "one")]
    said.append(command("doctor", "cache", "stats"))
    assert said[-1].out == f"{shown}: 6 replies, 0.0 MB\n{disk}: 6 replies, 0.0 MB\n"
    said.append(command("doctor", "cache", "export", "calls.jsonl"))
    assert said[-1].out == "calls.jsonl: 6 replies written\n"
    said.append(command("doctor", "cache", "clear"))
    first, second = said[-1].out.splitlines()
    assert first == f"{shown}: 6 replies deleted"
    assert second.startswith(f"{disk}: 6 replies, 0.0 MB: not deleted; clear this folder with --cache DIR")
    said.append(command("doctor", "cache", "export", "none.jsonl"))
    assert (said[-1].code, said[-1].err.startswith(f"judge: cache {shown}: no such reply")) == (2, True)
    said.append(command("doctor", "cache", "clear", "--cache", str(disk.parent)))
    said.append(command("doctor", "cache", "import", "calls.jsonl"))
    assert said[-1].out == f"6 replies added, 0 were there, as those of {chat_server.url}\n"
    said.append(command("doctor", "cache", "stats"))
    assert said[-1].out == f"{shown}: 6 replies, 0.0 MB\n{disk}: 6 replies, 0.0 MB\n"
    assert "cache" not in plan_of(there / "one")
    given = f"valkey://:{SECRET}@127.0.0.1:{redis_server.port}/0"
    (there / "run.yaml").write_text(f"data: data.jsonl\ncache: {given}\n", "utf-8")
    said.append(command("run", "run.yaml", *asking(chat_server.url)[2:], "--out", "two"))
    assert plan_of(there / "two")["cache"] == shown.replace("redis", "valkey")
    (there / "run.yaml").unlink()
    assert len(chat_server.bodies) == 6
    assert [one.code for one in said] == [0, 0, 0, 0, 2, 0, 0, 0, 0]
    assert not [one for one in said if "heim" in one.out + one.err]
    assert not [path for path in there.rglob("*") if path.is_file() and b"heim" in path.read_bytes()]


def test_a_plan_reads_what_is_there_and_makes_no_folder(
    there: Path,
    redis_server: Any,
    command: Callable[..., Any],
    chat_server: Any,
    make_completion: Any,
    monkeypatch: Any,
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("2"))
    assert command(*asking(chat_server.url), "--weighting", "single", "--quiet").code == 0
    monkeypatch.setenv("XDG_CACHE_HOME", str(there / "other"))
    done = command(*asking(chat_server.url, "plan"), "--weighting", "single", "--format", "json")
    assert json.loads(done.out)["judges"][0]["total"]["cached"] == 6
    assert len(chat_server.bodies) == 6
    assert not (there / "other").exists()


@pytest.mark.parametrize("verb", ["run", "plan", "rank", "audit", "validate"])
def test_without_redis_no_command_begins(
    there: Path, redis_server: Any, command: Callable[..., Any], chat_server: Any, verb: str
) -> None:
    redis_server.stop()
    left_out = ("--metrics", "none") if verb in ("rank", "audit") else ()
    criterion = {"fluency": "overall"} if verb == "rank" else {}
    done = command(*(criterion.get(one, one) for one in asking(chat_server.url, verb) if one not in left_out))
    assert done.code == 2
    place = f"redis://127.0.0.1:{redis_server.port}/0"
    assert done.err.splitlines()[-1].startswith(f"judge: the shared cache {place}: Connection refused; mend that")
    assert chat_server.bodies == []
    assert not (there / "xdg").exists()
    assert command(*asking(chat_server.url), "--no-cache", "--quiet").code in (0, 1)
