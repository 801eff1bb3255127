from __future__ import annotations

import json
from dataclasses import replace

import pytest

from judge.records import Estimate
from judge.report import Result
from judge.report.json import render


def test_golden(result: Result, golden) -> None:
    golden("report.json", render(result))


def test_it_is_strict_json_whatever_the_numbers(result: Result) -> None:
    endless = {("lead", "length"): Estimate("mean", float("inf"), None, None, 3, "m")}
    found = json.loads(render(replace(result, estimates=endless)), parse_constant=pytest.fail)
    (row,) = [r for r in found["table"] if (r["system"], r["column"]) == ("lead", "length")]
    assert (row["mean"], row["n"], row["total"]) == (None, 3, 3)


def test_the_table_holds_every_estimate(result: Result) -> None:
    found = json.loads(render(result))
    assert found["systems"] == list(result.table.systems)
    assert found["info"] == result.info
    means = {(r["system"], r["column"]): (r["mean"], r["low"], r["high"], r["n"]) for r in found["table"]}
    for key, e in result.estimates.items():
        assert means[key] == (e.value, e.low, e.high, e.n)
    assert means["evil|<b>*sys*", "一貫性"] == (None, None, None, 0)
    assert sum(kind["count"] for kind in found["failures"]) == len(result.failures)
