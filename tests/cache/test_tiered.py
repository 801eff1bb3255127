"""The cache that machines share, on a redis-server of its own that is emptied, filled up, cut off and killed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.cache import DiskCache, open_cache, open_for_admin
from judge.commands.cost_estimate import estimate_cost
from judge.commands.pipeline import run_pipeline
from judge.commands.preparation import prepare
from judge.config import load_config
from judge.core.errors import ConfigError, MissingExtra, StorageError
from judge.core.records import Choice, Request, Response, Usage
from judge.core.redis_url import RedisUrl
from judge.results.result import load

pytestmark = pytest.mark.redis
SECRET = "ge%2Fheim"


def response(text: str = "4") -> Response:
    return Response((Choice(text),), Usage(10, 1), "m")


def request(number: int = 0) -> Request:
    return Request("m", ({"role": "user", "content": f"Text {number}."},), {"temperature": 0.0}, endpoint="http://a/v1")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, redis_server: Any) -> Any:
    """A Redis, whose cache has no patience."""
    from judge.cache import redis

    monkeypatch.setattr(redis, "_TIMEOUT", 0.3)
    monkeypatch.setattr(redis, "_HEARTBEAT", 0.02)
    return redis_server


@pytest.fixture
def cache(redis_server: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens the shared cache as a machine whose own folder is called so."""
    with contextlib.ExitStack() as opened_here:

        def open_as(machine: str = "a", notes: list[str] | None = None) -> Any:
            from judge.cache.tiered import TieredCache

            shared = TieredCache(RedisUrl.read(redis_server.url), DiskCache(tmp_path / machine, notes), notes)
            shared.reach(must=True)
            return opened_here.enter_context(shared)

        yield open_as


def raw(server: Any) -> Any:
    """A client of the server; nothing of ours is between."""
    import redis

    return redis.Redis.from_url(server.url)


def until(true: Callable[[], object]) -> None:
    """Wait for another thread or process."""
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def names(server: Any, kind: str) -> set[str]:
    client = raw(server)
    found = {name.decode().removeprefix(f"judge:{kind}:") for name in client.keys(f"judge:{kind}:*")}
    client.close()
    return found


# What is kept where


def test_what_one_machine_keeps_another_finds_and_keeps_too(
    cache: Callable[..., Any], redis_server: Any, tmp_path: Path
) -> None:
    first, second = cache("a"), cache("b")
    asked = request()
    first.put("k", response(), asked)
    assert first.get_many(["k", "l"]) == {"k": response()}  # before it is written, too
    assert second.get_many(["k"]) == {}
    first.flush()
    assert second.get_many(["k", "l"]) == {"k": response()}
    second.flush()
    for machine in "ab":
        with DiskCache(tmp_path / machine) as own:
            assert list(own.iter_all()) == [(response(), asked)]
    client = raw(redis_server)
    assert [client.ttl(name) for name in client.keys("*")] == [-1, -1]  # a reply and a prompt, without an end
    client.close()


def test_more_than_a_block_goes_up_and_down(cache: Callable[..., Any]) -> None:
    first, second = cache("a"), cache("b")
    for number in range(1201):
        first.put(str(number), response(str(number)), request(number))
    first.flush()
    keys = [str(number) for number in range(1201)]
    assert second.get_many(keys) == {key: response(key) for key in keys}
    assert dict(first.stats())["responses"] == 1201
    found = {asked.key(): reply for reply, asked in second.iter_all()}
    assert found == {request(n).key(): response(str(n)) for n in range(1201)}
    assert second.clear() == 1201
    assert (first.stats(), list(second.iter_all())) == ({"responses": 0, "bytes": 0}, [])
    assert second.get_many(keys[:3]) == {key: response(key) for key in keys[:3]}  # from its own disk


def test_all_machines_agree_on_the_reply_in_redis(cache: Callable[..., Any], tmp_path: Path) -> None:
    for machine, text in (("a", "1"), ("b", "2")):  # who was alone then
        with DiskCache(tmp_path / machine) as own:
            own.put("k", response(text))
    first = cache("a")
    assert first.get_many(["k"]) == {"k": response("1")}
    first.flush()
    assert cache("b").get_many(["k"]) == {"k": response("1")}
    assert cache("c").get_many(["k"]) == {"k": response("1")}
    better = cache("b")
    better.put("k", response("3"))  # asked again, as the other was of no use
    better.flush()
    assert cache("c").get_many(["k"]) == {"k": response("3")}


def test_a_redis_that_was_emptied_fills_again_from_the_disks(cache: Callable[..., Any], redis_server: Any) -> None:
    first = cache("a")
    first.put("k", response(), request())
    first.close()
    redis_server.restart()
    assert names(redis_server, "reply") == set()
    assert cache("b").get_many(["k"]) == {}
    assert cache("a").get_many(["k"]) == {"k": response()}
    other = cache("c")
    assert other.get_many(["k"]) == {"k": response()}
    assert list(other.iter_all()) == [(response(), request())]


def test_what_is_no_reply_counts_as_absent_and_gives_way(cache: Callable[..., Any], redis_server: Any) -> None:
    first = cache("a")
    keys = ["bytes", "words", "line", "list"]
    for key in keys:
        first.put(key, response(), request())
    first.flush()
    client = raw(redis_server)
    client.mset({"judge:reply:bytes": b"\xff\x00", "judge:reply:words": "hello", "judge:reply:line": "[1,2]\n5"})
    client.delete("judge:reply:list")
    client.rpush("judge:reply:list", "x")
    assert cache("b").get_many(keys) == {}
    assert cache("a").get_many(keys[:3]) == dict.fromkeys(keys[:3], response())
    assert cache("b").get_many(keys[:3]) == dict.fromkeys(keys[:3], response())
    fresh = cache("b")
    fresh.put("list", response("5"))
    fresh.flush()
    assert cache("c").get_many(["list"]) == {"list": response("5")}
    client.close()


def test_a_row_whose_prompt_is_lost_or_false_is_kept_without_it(
    cache: Callable[..., Any], redis_server: Any, tmp_path: Path
) -> None:
    first = cache("a")
    first.put("k", response(), request())
    first.flush()
    client = raw(redis_server)
    (name,) = client.keys("judge:prompt:*")
    client.set(name, '[{"role":"user","content":"Another."}]')
    assert list(first.iter_all()) == [(response(), None)]
    second = cache("b")
    assert second.get_many(["k"]) == {"k": response()}
    second.flush()
    with DiskCache(tmp_path / "b") as own:
        assert list(own.iter_all()) == [(response(), None)]
    client.close()


# Where Redis is lost, full, or may not be written to


def test_a_redis_that_dies_costs_nothing_and_gets_what_it_missed(
    quick: Any, cache: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    notes: list[str] = []
    one = cache("a", notes)
    one.put("before", response(), request(1))
    one.flush()
    quick.stop()
    assert one.get_many(["before", "after"]) == {"before": response()}
    one.put("after", response(), request(2))
    one.flush()
    assert one.claim(["x"]) == set()
    one.release(["x"])
    assert len(notes) == 1
    assert notes[0].startswith(f"The shared cache redis://127.0.0.1:{quick.port}/0 was lost at ")
    assert "Until it is back, replies stay on this machine, and others may pay for them again." in notes[0]
    assert capsys.readouterr().err == f"judge: {notes[0]}\n"
    quick.start()
    until(lambda: one.flush() or names(quick, "reply") == {"after"})
    assert one.get_many(["before"]) == {"before": response()}
    assert names(quick, "reply") == {"before", "after"}  # it is sent beside what is read
    assert len(names(quick, "prompt")) == 2
    quick.stop()
    assert set(one.get_many(["before", "after"])) == {"before", "after"}
    assert len(notes) == 1  # said once
    assert capsys.readouterr().err == ""


def test_a_redis_that_only_says_nothing_is_lost_too(quick: Any, cache: Callable[..., Any]) -> None:
    notes: list[str] = []
    one = cache("a", notes)
    client = raw(quick)
    client.client_pause(1000)
    one.put("k", response())
    one.flush()
    assert "(no answer within 0.3 seconds)" in notes[0]
    until(lambda: one.flush() or names(quick, "reply") == {"k"})
    client.close()


def test_a_connection_that_redis_closed_is_opened_again_unsaid(cache: Callable[..., Any], redis_server: Any) -> None:
    notes: list[str] = []
    one = cache("a", notes)
    redis_server.restart()
    one.put("k", response())
    one.flush()
    assert (names(redis_server, "reply"), notes) == ({"k"}, [])


def test_a_full_redis_is_a_note_and_is_read_on(
    quick: Any, cache: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from judge.cache import redis

    monkeypatch.setattr(redis, "_REFUSAL_PAUSE", 0.0)
    notes: list[str] = []
    one = cache("a", notes)
    one.put("early", response())
    one.flush()
    one.claim(["held"])
    client = raw(quick)
    client.config_set("maxmemory", "1")
    one.put("late", response(), request())
    one.flush()
    assert one.claim(["x"]) == set()
    assert set(cache("b").get_many(["early", "late"])) == {"early"}
    one.release(["held"])
    assert names(quick, "claim") == set()
    assert len(notes) == 1
    assert "did not take every reply (command not allowed when used memory > 'maxmemory'). " in notes[0]
    client.config_set("maxmemory", "0")
    one.flush()
    assert names(quick, "reply") == {"early", "late"}
    assert len(names(quick, "prompt")) == 1
    client.close()


def test_a_redis_that_may_only_be_read_is_a_note(quick: Any, cache: Callable[..., Any]) -> None:
    first = cache("a")
    first.put("k", response())
    first.flush()
    client = raw(quick)
    client.replicaof("127.0.0.1", 1)
    notes: list[str] = []
    one = cache("b", notes)
    one.put("l", response())
    one.flush()
    assert one.claim(["x"]) == set()
    assert set(one.get_many(["k", "l"])) == {"k", "l"}
    assert [note.partition("(")[2] for note in notes] == [
        "You can't write against a read only replica). What several asked for may have been paid by each."
    ]
    client.close()


@contextlib.contextmanager
def asleep(server: Any) -> Iterator[None]:
    """Meanwhile it takes connections and says nothing."""
    server._child.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        if server._child is not None:
            server._child.send_signal(signal.SIGCONT)


# Who is asking


def test_what_one_claims_the_others_wait_for(cache: Callable[..., Any], redis_server: Any) -> None:
    first, second = cache("a"), cache("b")
    assert first.claim(["k", "l"]) == set()
    assert first.claim(["k"]) == set()  # it is its own
    assert second.claim(["k", "m"]) == {"k"}
    assert first.claim(["m"]) == {"m"}
    second.release(["k"])  # of which it has none
    assert names(redis_server, "claim") == {"k", "l", "m"}
    first.release(["k", "l"])
    assert second.claim(["k"]) == set()
    second.close()
    assert names(redis_server, "claim") == set()


def test_a_claim_is_renewed_also_in_an_emptied_redis(quick: Any, cache: Callable[..., Any]) -> None:
    one, client = cache("a"), raw(quick)
    one.claim(["k"])
    client.pexpire("judge:claim:k", 5_000)
    until(lambda: client.pttl("judge:claim:k") > 10_000)
    client.flushall()
    until(lambda: client.exists("judge:claim:k"))
    client.set("judge:claim:k", "another's")
    one.release(["k"])
    assert client.get("judge:claim:k") == b"another's"
    client.close()


def test_a_claim_without_an_end_is_nobody_s(cache: Callable[..., Any], redis_server: Any) -> None:
    one, client = cache("a"), raw(redis_server)
    client.set("judge:claim:k", "junk")
    client.set("judge:claim:l", "another's", px=10_000)
    client.rpush("judge:claim:m", "junk")
    assert one.claim(["k", "l", "m", "n"]) == {"l"}
    assert client.pttl("judge:claim:k") > 0
    one.release(["k", "l", "m", "n"])
    assert names(redis_server, "claim") == {"l", "m"}
    client.close()


def test_leases_that_are_refused_in_part_are_all_refused(
    redis_server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = raw(redis_server)
    client.acl_setuser("part", enabled=True, passwords="+p", keys=["judge:claim:a*", "judge:reply:*", "judge:prompt:*"],
                       commands=["+@all"])  # fmt: skip
    notes: list[str] = []
    url = f"redis://part:p@127.0.0.1:{redis_server.port}"
    with contextlib.closing(open_cache(RedisUrl.read(url), notes, must=True, make=False)) as one:
        assert one.claim(["a", "b"]) == set()
        assert names(redis_server, "claim") == set()
        assert "may have been paid by each" in notes[0]
    client.close()


# What is refused


def refusal(url: str) -> str:
    with pytest.raises(ConfigError) as refused:
        open_cache(RedisUrl.read(url), must=True)
    assert str(refused.value).startswith(f"the shared cache {RedisUrl.read(url)}: ")
    assert str(refused.value).endswith("; mend that, or name another or a folder with --cache")
    assert "heim" not in str(refused.value)
    return str(refused.value)


def test_a_password_that_is_lacking_or_wrong(redis_server: Any) -> None:
    redis_server.options = ["--requirepass", "ge/heim"]
    redis_server.restart()
    place = f"127.0.0.1:{redis_server.port}/0"
    for wrong in (f"redis://{place}", f"redis://:{SECRET}x@{place}", f"redis://{place}?password={SECRET}x"):
        assert "it wants another password (redis://:PASSWORD@HOST..., best in $JUDGE_CACHE)" in refusal(wrong)
    for address in (f"redis://:{SECRET}@{place}", f"redis://default:{SECRET}@{place}"):
        open_cache(RedisUrl.read(address), must=True).close()


def test_a_server_that_is_not_there_or_no_redis(quick: Any, chat_server: Any) -> None:
    port = chat_server._http.server_port
    assert "what answers there is no Redis, or wants TLS (rediss://)" in refusal(f"redis://:{SECRET}@127.0.0.1:{port}")
    assert "DB index is out of range" in refusal(f"redis://127.0.0.1:{quick.port}/99")
    quick.stop()
    assert "Connection refused" in refusal(quick.url)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "no answer within 0.3 seconds;" in refusal(f"redis://127.0.0.1:{silent.getsockname()[1]}")
        assert "no answer within 0.3 seconds;" in refusal(f"rediss://127.0.0.1:{silent.getsockname()[1]}")


@pytest.mark.parametrize("address", [f"redis://:{SECRET}@127.0.0.1:1", f"redis://127.0.0.1:1?password={SECRET}"])
def test_an_old_redis_that_repeats_what_it_was_sent_does_not_give_the_password_away(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import redis

    from judge.cache.redis import RedisCache

    def echo(self: RedisCache) -> None:
        raise redis.ResponseError("unknown command 'AUTH', with args beginning with: 'ge/heim'")

    monkeypatch.setattr(RedisCache, "_probe", echo)
    assert "ResponseError; mend" in refusal(address)


def test_a_cluster_is_refused(redis_server: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        other = str(free.getsockname()[1])
    redis_server.options = ["--cluster-enabled", "yes", "--cluster-port", other]
    redis_server.restart()
    assert "it is part of a cluster" in refusal(redis_server.url)


def test_a_unix_socket_and_a_number_are_an_address_too(redis_server: Any, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("s") / "r.sock"
    redis_server.options = ["--unixsocket", str(path)]
    redis_server.restart()
    script = (  # in a process that may open such a socket
        "import sys; from judge.core.redis_url import RedisUrl; from judge.cache import open_for_admin;"
        "from judge.core.records import Choice, Response;"
        "one = open_for_admin(RedisUrl.read(sys.argv[1]), beneath=False);"
        "one.put('k', Response((Choice('4'),))); one.close()"
    )
    subprocess.run([sys.executable, "-c", script, f"unix://{path}?db=2"], check=True)
    with open_for_admin(RedisUrl.read(f"valkey://127.0.0.1:{redis_server.port}/2"), beneath=False) as other:
        assert other.stats()["responses"] == 1
    with open_for_admin(RedisUrl.read(redis_server.url), beneath=False) as other:
        assert other.stats()["responses"] == 0


def test_without_its_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "judge.cache.redis", raising=False)
    with pytest.raises(MissingExtra, match=r"redis://h:6379/0: .* pip install 'textjudge\[redis\]'"):
        open_cache(RedisUrl.read(f"redis://:{SECRET}@h"))


def test_who_counts_or_clears_is_told_what_is_wrong(quick: Any, cache: Callable[..., Any]) -> None:
    one = cache("a")
    quick.stop()
    for work in (one.stats, one.clear, lambda: list(one.iter_all())):
        with pytest.raises(StorageError, match=r"the shared cache redis://127.0.0.1:\d+/0: "):
            work()


# A whole run

ROWS = [{"item": str(n), "system": s, "output": f"Boat {n} of {s}."} for n in range(40) for s in "xy"]
OPTIONS: Any = {"criteria": ["relevance"], "metrics": [], "weighting": "single"}
DATA = [row | {"source": "A boat."} for row in ROWS]


@pytest.mark.parametrize("dead", [True, False])
def test_a_run_survives_the_end_of_redis_and_its_sleep(
    quick: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], dead: bool
) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "own"))
    asked = 0

    def reply(_: Request) -> str:
        nonlocal asked
        asked += 1
        if asked == 30:
            quick.stop() if dead else sleep.enter_context(asleep(quick))
        return "4"

    model = judge.ScriptedProvider(reply, endpoint="http://a/v1")
    with contextlib.ExitStack() as sleep:
        done = judge.evaluate(DATA, model=model, cache=quick.url, out=tmp_path / "out", **OPTIONS)
    assert (asked, done.failed) == (80, 0)
    (note,) = [note for note in load(tmp_path / "out").info["notes"] if "shared cache" in note]
    assert ("Until it is back" if dead else "(no answer within 0.3 seconds). Until it is back") in note
    assert "was lost at" in done.report("markdown")
    assert capsys.readouterr().err.count("judge: The shared cache") == 1
    with DiskCache(tmp_path / "own") as own:
        assert own.stats()["responses"] == 80
    again = judge.evaluate(DATA, model=model, cache=tmp_path / "own", **OPTIONS)
    assert (asked, again.to_frame().equals(done.to_frame())) == (80, True)


def test_a_redis_that_is_gone_once_all_is_prepared_ends_nothing(quick: Any, tmp_path: Path) -> None:
    made = load_config(given={**OPTIONS, "cache": quick.url, "out": tmp_path / "out"})
    prepared = prepare(made, DATA, providers=[judge.ScriptedProvider(lambda _: "4", endpoint="http://a/v1")])
    quick.stop()
    assert asyncio.run(run_pipeline(prepared)).failed == 0
    assert [note for note in prepared.notes if "was lost at" in note and "Until it is back" in note]
    with pytest.raises(ConfigError, match="Connection refused"):
        estimate_cost(prepared)


def test_where_no_judge_is_asked_nobody_asks_for_redis(redis_server: Any) -> None:
    redis_server.stop()
    judge.evaluate(
        [row | {"references": ["A boat."]} for row in ROWS[:2]], [], metrics=["chrf"], cache=redis_server.url
    )
