from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

import judge
import judge.report
from judge.core.records import Column, Estimate
from judge.report.views.summary import SCHEMA, schema
from judge.results.loading import load
from judge.results.result import Result

ROWS = [
    {
        "item": f"{n}",
        "system": s,
        "source": "A boat came.",
        "output": f"{s}: {n} came",
        "references": [f"{n} came"],
    }
    for n in range(12)
    for s in ("old", "new", "third")
]
PUBLISHED = Path(str(judge.report.__file__)).with_name("schema.json")


def test_golden(result: Result, golden) -> None:
    golden("report.json", result.report("json"))


def test_json_is_strict_for_any_numbers(result: Result) -> None:
    endless = {("lead", "length"): Estimate("mean", float("inf"), None, None, 3, "m")}
    data = json.loads(
        replace(result, estimates=endless, comparisons=()).report("json"),
        parse_constant=pytest.fail,
    )
    (row,) = [r for r in data["table"] if (r["system"], r["column"]) == ("lead", "length")]
    assert (row["mean"], row["n"], row["total"]) == (None, 3, 3)


def test_the_table_holds_every_estimate(result: Result) -> None:
    data = json.loads(result.report("json"))
    assert sorted(data["systems"]) == sorted(result.table.systems)
    assert data["info"] == result.info.to_json()
    means = {
        (r["system"], r["column"]): (r["mean"], r["low"], r["high"], r["n"]) for r in data["table"]
    }
    for key, e in result.estimates.items():
        assert means[key] == (e.value, e.low, e.high, e.n)
    assert means["evil|<b>*sys*", "一貫性"] == (None, None, None, 0)
    assert sum(kind["count"] for kind in data["failures"]) == len(result.failures)
    assert sum(row["failed"] for row in data["table"]) == len(result.failures)


def test_json_has_the_notices_of_the_console(result: Result) -> None:
    notices = json.loads(result.report("json"))["notices"]
    console = " ".join(result.report("console").split())
    assert notices
    assert [notice for notice in notices if notice not in console] == []


def test_published_schema_matches_the_records() -> None:
    """JUDGE_GOLDEN=write updates the schema. If a release removes a field, increase the number in SCHEMA."""
    text = json.dumps(schema(), ensure_ascii=False, indent=1) + "\n"
    if os.environ.get("JUDGE_GOLDEN") == "write":
        PUBLISHED.write_text(text, encoding="utf-8")
    assert PUBLISHED.read_text(encoding="utf-8") == text
    Draft202012Validator.check_schema(schema())


def _closed(schema: Any) -> Any:
    """Return the schema without additional properties, so that every key must be documented."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    return closed | {"additionalProperties": False} if "properties" in schema else closed


def _valid(text: str) -> dict[str, Any]:
    """Parse a document. Check that it matches the schema and has no undocumented key."""
    document: dict[str, Any] = json.loads(text)
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))
    for one in (published, _closed(published)):
        Draft202012Validator(one).validate(document)
    assert document["schema"] == SCHEMA == published["title"]
    return document


def _judged(**options: Any) -> Result:
    replies = judge.ScriptedProvider(
        lambda request: {"4": 0.75, "5": 0.25} if "new" in str(request) else "3"
    )
    return judge.evaluate(ROWS, model=replies, criteria=["relevance", "coherence"], **options)


def _drawn() -> Result:
    replies = judge.ScriptedProvider(lambda request: "4" if request.draw % 2 else "5")
    return judge.evaluate(
        ROWS, model=replies, criteria=["relevance"], weighting="samples", draws=4, metrics=["rouge"]
    )


RUNS: dict[str, Callable[[], Result]] = {
    "run": _judged,
    "failures": lambda: judge.evaluate(
        ROWS, model=judge.ScriptedProvider(lambda _: "no"), criteria=["relevance"]
    ),
    "draws": _drawn,
    "panel": lambda: judge.evaluate(
        ROWS,
        ["relevance", "fluency"],
        model=[judge.ScriptedProvider(lambda _, n=n: str(n), model=f"m{n}") for n in (2, 4)],
        metrics=["bleu"],
    ),
    "rank": lambda: judge.rank(
        ROWS, model=judge.ScriptedProvider(lambda _: {"A": 0.75, "B": 0.25})
    ),
    "score": lambda: judge.evaluate(ROWS, criteria=[], metrics=["rouge", "distinct", "stats"]),
    "one text": lambda: judge.evaluate(ROWS[:1], criteria=[], metrics=["chrf"]),
}


@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.slow
def test_reports_of_real_runs_match_the_schema(kind: str, tmp_path: Path) -> None:
    result = RUNS[kind]()
    document = _valid(result.report("json"))
    assert ("rankings" in document) == (kind == "rank")
    result.save(tmp_path)
    assert _valid(load(tmp_path).report("json")) == document


def test_all_that_a_result_may_hold_is_in_it(
    tested: Result, ranking: Result, panel: Result
) -> None:
    repeats = {("good", "fluency"): Estimate("repeat_sd", 0.5, None, None, 3, "sd")}
    document = _valid(replace(tested, repeats=repeats).report("json"))
    assert document["finding"][0].startswith("good beats poor")
    assert document["systems"] == ["good", "=fair", "poor"]
    assert {row["column"]: row["mark"] for row in document["table"] if row["system"] == "good"} == {
        "overall": "same", "fluency": "best", "style": "same", "delta": "same",
    }  # fmt: skip
    for stored, compared in zip(document["comparisons"], tested.comparisons, strict=True):
        (first, *_), (difference, *_) = stored["differences"], compared.differences
        assert (first["system"], first["adjusted"]) == (difference.system, difference.adjusted)
        assert first["estimate"]["p"] == difference.estimate.p
    assert document["overall"]["weights"] == {"fluency": 0.5, "style": 0.5}
    assert {matrix["level"] for matrix in document["matrices"]} == {
        "within-items",
        "all-texts",
        "systems",
    }
    assert [row["value"] for row in document["repeats"]] == [0.5]
    assert [row["alpha"] for row in _valid(panel.report("json"))["agreement"]] == [0.8125]
    assert _valid(ranking.report("json"))["rankings"][0]["pairs"] == 8
    bare = _valid(replace(tested, comparisons=(), matrices=(), overall=None).report("json"))
    assert (
        not {"comparisons", "matrices", "overall", "repeats", "agreement", "drivers"} & bare.keys()
    )


def test_a_document_of_something_else_is_not_allowed(result: Result) -> None:
    document = json.loads(result.report("json"))
    published = Draft202012Validator(json.loads(PUBLISHED.read_text(encoding="utf-8")))
    for broken in (
        {"schema": "judge.report/2"},
        {"systems": "lead"},
        {"table": [{"system": "lead"}]},
    ):
        assert not published.is_valid(document | broken)
    assert not published.is_valid(
        {name: value for name, value in document.items() if name != "table"}
    )


def test_columns_have_all_that_is_known_of_them(result: Result) -> None:
    columns = json.loads(result.report("json"))["columns"]
    read_column = TypeAdapter(Column).validate_python
    as_read = {column["name"]: read_column(column) for column in columns}
    assert as_read == {column.name: column for column in result.table.columns}
