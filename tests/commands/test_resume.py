"""`--retry-failed`: what has a score is not asked again, and nothing is mixed that was not asked alike."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError, StorageError
from judge.core.records import Request, Response
from judge.results.result import load

ROWS = [{"item": str(n), "system": s, "output": f"Boat {n} of {s}."} for n in range(4) for s in "ab"]
PLAN: dict[str, Any] = {"metrics": [], "cache": False, "weighting": "single", "repair": "off"}


def script(*failing: str, reply: str = "2") -> judge.ScriptedProvider:
    """A judge that gives no score to texts that hold one of these."""

    def answer(request: Request) -> str:
        return "no idea" if any(one in request.messages[0]["content"] for one in failing) else reply

    return judge.ScriptedProvider(answer)


def run(provider: Any, out: Path, rows: Any = ROWS, **options: Any) -> judge.Result:
    return judge.evaluate(rows, options.pop("criteria", ["fluency"]), model=provider, out=out, **PLAN | options)


def test_only_failures_and_what_is_missing_are_asked(tmp_path: Path) -> None:
    first = run(script("Boat 1"), tmp_path)
    assert (len(first.table.scores), len(first.failures)) == (6, 2)
    more = [*ROWS, {"item": "9", "system": "a", "output": "Boat 9 of a."}]
    provider = script("Boat 9", reply="3")
    second = run(provider, tmp_path, more, retry_failed=True)
    assert sorted(one.split("Boat ")[1][:6] for one in texts(provider)) == ["1 of a", "1 of b", "9 of a"]
    assert {s.item: s.value for s in second.table.scores} == {"0": 2.0, "1": 3.0, "2": 2.0, "3": 2.0}
    assert [f.item for f in second.failures] == ["9"]
    assert "6 scores are those of an earlier run in this folder; its 2 failed" in " ".join(second.info["notes"])
    provider = script()
    third = run(provider, tmp_path, more, retry_failed=True, criteria=["fluency", "fluency_5"])
    assert len(provider.seen) == 1 + 9  # a criterion that was not there is missing
    assert third.failures == ()
    assert len(load(tmp_path).table.scores) == 18
    provider = script()
    run(provider, tmp_path, more, retry_failed=True, criteria=["fluency", "fluency_5"])
    assert provider.seen == []


def texts(provider: judge.ScriptedProvider) -> list[str]:
    return [request.messages[0]["content"] for request in provider.seen]


def test_a_killed_run_is_gone_on_with(tmp_path: Path) -> None:
    seen = 0

    async def cut_short() -> None:
        task: asyncio.Task[Any]

        def answer(request: Request) -> str:
            nonlocal seen
            seen += 1
            if seen == 5:
                task.cancel()
            return "2"

        asked = judge.evaluate_async(
            ROWS, ["fluency"], model=judge.ScriptedProvider(answer), out=tmp_path, max_concurrency=1, **PLAN
        )
        task = asyncio.ensure_future(asked)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cut_short())
    kept = len(load(tmp_path).table.scores)
    assert 0 < kept < 8
    provider = script()
    assert len(run(provider, tmp_path, retry_failed=True).table.scores) == 8
    assert len(provider.seen) == 8 - kept


def test_a_panel_and_a_ranking_are_gone_on_with(tmp_path: Path) -> None:
    def panel(*failing: str) -> list[judge.ScriptedProvider]:
        return [
            judge.ScriptedProvider(lambda r: "2", model="one"),
            judge.ScriptedProvider(
                lambda r: "no idea" if any(f in r.messages[0]["content"] for f in failing) else "3", model="two"
            ),
        ]

    run(panel("Boat 1"), tmp_path / "panel")
    judges = panel()
    found = run(judges, tmp_path / "panel", retry_failed=True)
    assert [len(one.seen) for one in judges] == [0, 2]
    assert {s.value for s in found.table.column_scores("fluency")} == {2.5}
    assert len(found.table.scores) == 24

    rows = [*ROWS, {"item": "same", "system": "a", "output": "x"}, {"item": "same", "system": "b", "output": "x"}]

    def ranked(provider: judge.ScriptedProvider, **options: Any) -> judge.Result:
        out = tmp_path / "rank"
        return judge.rank(rows, ["fluency"], model=provider, out=out, **PLAN | options)

    first = ranked(script("Boat 1", reply="A"))
    assert len(first.failures) == 2
    provider = script(reply="B")
    second = ranked(provider, retry_failed=True)
    assert len(provider.seen) == 2
    assert len(second.table.scores) == 8 + 2
    assert second.failures == ()


def of_suite(folder: Path, provider: Any, **options: Any) -> judge.Result:
    (folder / "data.json").write_text(json.dumps(ROWS), encoding="utf-8")
    case = "{name: high, criterion: fluency, item: ['0', '1'], expect: {min: 2}}"
    (folder / "one.judge.yaml").write_text(f"data: data.json\ncases:\n  - {case}\n", encoding="utf-8")
    (outcome,) = judge.test(folder / "one.judge.yaml", model=provider, weighting="single", **options)
    assert outcome.result is not None
    return outcome.result


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        (lambda _, **how: judge.evaluate(ROWS, ["fluency"], metrics=[], weighting="single", **how), "2"),
        (lambda _, **how: judge.rank(ROWS, ["fluency"], metrics=[], weighting="single", **how), "A"),
        (lambda folder, **how: of_suite(folder, how.pop("model"), **how), "2"),
    ],
    ids=["evaluate", "rank", "test"],
)
def test_stored_replies_without_a_score_fail_again_at_no_cost(tmp_path: Path, command: Any, reply: str) -> None:
    def ask(provider: judge.ScriptedProvider, **options: Any) -> tuple[int, judge.Result]:
        provider.endpoint = "x"
        result = command(tmp_path, model=provider, cache=tmp_path / "cache", **options)
        return len(provider.seen), result

    _, first = ask(script("Boat 1", reply=reply))
    assert len(first.failures) == 2
    sent, second = ask(script(reply=reply))
    assert (sent, second.failures, second.info["requests"]["failed_cached"]) == (0, first.failures, 2)
    note = "2 values failed again at no cost: the cached replies have no score. retry_failed=True asks the judge again."
    assert note in second.info["notes"]
    assert note not in first.info["notes"]
    assert note not in second.reread(strict=True).info["notes"]
    sent, third = ask(script(reply=reply), retry_failed=True)
    assert (sent, third.failures) == (2, ())
    assert note not in third.info["notes"]
    sent, fourth = ask(script("Boat", reply=reply))
    assert (sent, fourth.failures) == (0, ())


def test_what_a_server_would_not_do_is_no_other_way_of_asking(tmp_path: Path) -> None:
    def unmet(reply: str) -> judge.ScriptedProvider:
        provider = script()
        answer = provider.complete

        async def complete(request: Request) -> Response:
            found = await answer(request)
            return Response(found.choices, unmet=("temperature",))

        provider.complete = complete  # type: ignore[method-assign]
        return provider

    run(unmet("2"), tmp_path)
    assert "t=server" in load(tmp_path).table.columns[0].signature
    provider = script()
    run(provider, tmp_path, retry_failed=True)
    assert provider.seen == []


def test_what_cannot_be_gone_on_with_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    out, provider = tmp_path / "out", script()
    run(script(), out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    other = [{**row, "output": row["output"].replace("Boat 3", "Ship 3")} for row in ROWS]
    for rows, options, said in (
        (ROWS, {"out": None}, "without a cache, name the folder"),
        (ROWS, {"out": tmp_path / "none"}, "holds no run"),
        (other, {"out": out}, "of other data: the text of item 3, system a has changed"),
        (ROWS[2:], {"out": out}, "of other data: item 0, system a is not"),
        (ROWS, {"out": out, "criteria": ["fluency_5"]}, "has a column 'fluency'"),
        (ROWS, {"out": out, "weighting": "samples"}, r"fluency had other settings .* single then, .*samples"),
        (ROWS, {"out": out, "criteria": [], "metrics": ["stats"]}, "has no judge"),
    ):
        with pytest.raises(ConfigError, match=said):
            run(provider, rows=rows, retry_failed=True, **{"weighting": "single", **options})  # type: ignore[arg-type]
    assert provider.seen == []
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    (out / "scores.parquet").write_bytes(b"no table")
    with pytest.raises(StorageError):
        run(provider, out, retry_failed=True)


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"rows": ROWS[:2]}, "6 texts, such as item '1' of system 'a'"),
        ({"rows": [row | {"output": row["output"] + "!"} for row in ROWS]}, "8 texts, such as item '0' of system 'a'"),
        ({"criteria": ["fluency_5"]}, "the criterion fluency"),
        ({"criteria": [], "metrics": "stats"}, "the judge script; the criterion fluency"),
        ({"provider": judge.ScriptedProvider(lambda _: "2", model="other")}, "the judge script"),
        ({"metrics": []}, "the metric distinct"),
    ],
)
def test_a_run_replaces_no_other_results(tmp_path: Path, change: dict[str, Any], lost: str) -> None:
    run(script(), tmp_path, metrics="distinct")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    arguments = {"provider": script(), "out": tmp_path, "metrics": "distinct", **change}
    with pytest.raises(StorageError, match=f"a run of .* with results that this run would not have: .*{lost}.*force=T"):
        run(**arguments)
    assert getattr(arguments["provider"], "seen", []) == []
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files
    run(**arguments, force=True)


def test_the_same_file_and_more_replace_a_run(tmp_path: Path) -> None:
    """Also if the prompt, a setting or the words of a text have changed."""
    data, out = tmp_path / "d.jsonl", tmp_path / "r"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    run(script(), out, data, limit=6)
    data.write_text("".join(json.dumps(row | {"output": "New."}) + "\n" for row in ROWS), encoding="utf-8")
    second = run(script(), out, data, criteria=["fluency", "fluency_5"], seed=3)
    assert (len(second.table.scores), "this run replaces it" in " ".join(second.info["notes"])) == (16, True)


def test_a_ranking_replaces_no_run_and_none_with_more_pairs(tmp_path: Path) -> None:
    ranked = {"criteria": "fluency", "model": script(reply="A"), "out": tmp_path, "cache": False}
    judge.rank(ROWS, **ranked)
    with pytest.raises(StorageError, match="pairs with orders=2"):
        judge.rank(ROWS, **ranked, orders=1)
    with pytest.raises(StorageError, match="pairs with orders=2"):
        run(script(), tmp_path)
    run(script(), tmp_path / "run")
    with pytest.raises(StorageError, match="would not have: scores of single texts"):
        judge.rank(ROWS, **{**ranked, "out": tmp_path / "run"})
