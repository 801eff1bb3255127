"""The address of a shared cache: what is one, and that its password is nowhere to be seen."""

from __future__ import annotations

import json
import pickle
import traceback
from pathlib import Path

import pytest

from judge.cache import cache_location, local_dir
from judge.config import load_config
from judge.core.errors import ConfigError
from judge.core.redis_url import RedisUrl, is_redis_url
from judge.suite import load

SECRET = "ge%2Fheim"
WHOLE = f"redis://:{SECRET}@host:6380/2"


@pytest.mark.parametrize(
    ("given", "url", "shown"),
    [
        ("redis://host", "redis://host:6379/0", "redis://host:6379/0"),
        (WHOLE, WHOLE, "redis://host:6380/2"),
        ("valkey://u:p@[::1]:7", "redis://u:p@[::1]:7/0", "valkey://[::1]:7/0"),
        ("valkeys://h?db=3", "rediss://h:6379/3", "valkeys://h:6379/3"),
        ("rediss://h?ssl_ca_certs=/a b.pem", "rediss://h:6379/0?ssl_ca_certs=%2Fa%20b.pem", "rediss://h:6379/0"),
        ("redis://h/?password=p&db=1", "redis://h:6379/1?password=p", "redis://h:6379/1"),
        ("unix://:p@/run/r.sock?db=4", "unix://:p@/run/r.sock?db=4", "unix:///run/r.sock?db=4"),
        ("unix:///run/r.sock", "unix:///run/r.sock?db=0", "unix:///run/r.sock?db=0"),
    ],
)
def test_an_address_is_written_in_one_way_and_shown_without_its_password(given: str, url: str, shown: str) -> None:
    read = RedisUrl.read(given)
    assert (read.url, read.shown, str(read), f"{read}") == (url, shown, shown, shown)
    assert "url" not in repr(read)
    assert pickle.loads(pickle.dumps(read)) == read


WRONG = """
redis:// redis: redis:/x redis://h/x redis://h:99999 redis://h?socket_timeout=1 unix:// unix://h/s
redis://h?ssl_ca_certs=a redis://:xyzzy/1@h redis://:xyzzy#1@h redis://:xyzzy?1@h redis://u:xyzzy@
"""


@pytest.mark.parametrize("given", WRONG.split())
def test_what_is_no_address_is_refused_and_not_repeated(given: str) -> None:
    assert is_redis_url(given)
    with pytest.raises(ConfigError, match=r"--cache: write redis://:PASSWORD@HOST") as refused:
        load_config(given={"cache": given})
    assert "xyzzy" not in "".join(traceback.format_exception(refused.value))


UNKNOWN = """
tcp://:xyzzy@h:1 http://:xyzzy@h redis+ssl://:xyzzy@h/0 reddis://u:xyzzy@h tcp:/:xyzzy@h C://xyzzy a/b://xyzzy
:xyzzy@h:6379 u:xyzzy@h u:xyz/zy@h:1/0
"""


@pytest.mark.parametrize("given", UNKNOWN.split())
def test_what_looks_like_an_address_never_becomes_a_folder(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.yaml").write_text(f"data: d.jsonl\ncache: '{given}'\n", "utf-8")
    monkeypatch.setenv("JUDGE_CACHE", given)
    monkeypatch.chdir(tmp_path)
    ways = (
        lambda: load_config(given={"cache": given}),
        lambda: load_config(tmp_path / "run.yaml"),
        lambda: cache_location(None),
    )
    for way in ways:
        with pytest.raises(ConfigError, match=r"cache: write redis://:PASSWORD@HOST|CACHE: write redis") as refused:
            way()
        assert "zy" not in "".join(traceback.format_exception(refused.value))
    with pytest.raises(ConfigError, match=r"an address is a text") as refused:
        load_config(given={"cache": Path("tcp:/", given)})
    assert "zy" not in "".join(traceback.format_exception(refused.value))
    assert [path.name for path in tmp_path.iterdir()] == ["run.yaml"]


@pytest.mark.parametrize("given", ["127.0.0.1:7391", "localhost:6379", "[::1]:6379", "host:6379/0", " host:6379 "])
def test_a_host_and_a_port_are_no_folder(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"^--cache: write redis://HOST:PORT for a Redis, or ./NAME for a folder"):
        load_config(given={"cache": given})
    monkeypatch.setenv("JUDGE_CACHE", given)
    with pytest.raises(ConfigError, match=r"^\$JUDGE_CACHE: write redis://HOST:PORT for a Redis"):
        cache_location(None)
    assert load_config(given={"cache": f"./{given}"}).cache == Path(given)


def test_a_folder_is_no_address() -> None:
    for given in ("cache", "./redis", "C:/redis", "C:/me@x", "/redis:/x", "redis", "runs/12:30", "a@b", Path("redis")):
        assert not is_redis_url(given)
        assert load_config(given={"cache": given}).cache == Path(given)
    with pytest.raises(ConfigError, match=r"--cache: an address is a text, not a Path$"):
        load_config(given={"cache": Path(WHOLE)})


def test_a_plan_holds_the_password_and_shows_it_nowhere(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(f"data: d.jsonl\ncache: {WHOLE}\n", "utf-8")
    made = load_config(tmp_path / "run.yaml")
    assert isinstance(made.cache, RedisUrl)
    assert made.cache.url == WHOLE
    dumped = made.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert dumped["cache"] == "redis://host:6380/2"
    for text in (str(made), repr(made), json.dumps(dumped), made.model_dump_json(), str(made.model_dump())):
        assert "heim" not in text
    assert load_config(given=dumped | {"cache": made.cache}).cache == made.cache


def test_another_mistake_in_the_plan_does_not_show_it(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(f"limit: 0\ncahce: {WHOLE}\n", "utf-8")
    with pytest.raises(ConfigError) as refused:
        load_config(tmp_path / "run.yaml")
    assert "heim" not in "".join(traceback.format_exception(refused.value))


def test_the_variable_names_a_folder_or_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = tmp_path / "judge"
    assert (cache_location(None), local_dir(None)) == (here, here)
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "own"))
    assert (cache_location(None), local_dir(None)) == (tmp_path / "own", tmp_path / "own")
    address = RedisUrl.read("redis://other")
    assert (cache_location(address), local_dir(address)) == (address, tmp_path / "own")
    monkeypatch.setenv("JUDGE_CACHE", WHOLE)
    assert (cache_location(None), local_dir(None)) == (RedisUrl.read(WHOLE), here)
    assert (cache_location(tmp_path), local_dir(tmp_path)) == (tmp_path, tmp_path)
    monkeypatch.setenv("JUDGE_CACHE", "redis://:xyzzy/1@h")
    with pytest.raises(ConfigError, match=r"^\$JUDGE_CACHE: write redis://") as refused:
        cache_location(None)
    assert "xyzzy" not in str(refused.value)


def test_a_suite_takes_one_too(tmp_path: Path) -> None:
    path = tmp_path / "a.judge.yaml"
    case = "cases: [{criterion: fluency, text: {output: A boat.}, expect: {min: 2}}]\n"
    path.write_text(f"model: m\ncache: {WHOLE}\n{case}", "utf-8")
    assert load.load(path).options["cache"] == RedisUrl.read(WHOLE)
    path.write_text(f"model: m\ncache: redis://:xyzzy/1@h\n{case}", "utf-8")
    with pytest.raises(ConfigError, match=r"a.judge.yaml:2: cache: write redis://:PASSWORD@HOST") as refused:
        load.load(path)
    assert "xyzzy" not in "".join(traceback.format_exception(refused.value))
