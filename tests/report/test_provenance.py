from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.views.provenance import build_provenance
from judge.results.result import Result
from judge.results.run_info import BudgetInfo, DataInfo, Requests, RunInfo, read
from judge.table import Table
from tests.factories import has_line


def test_failures_are_counted_by_stage_and_error_the_commonest_first(result: Result) -> None:
    kinds = build_provenance(result).failures
    assert [(k.stage, k.error, k.count, k.columns) for k in kinds] == [
        ("parse", "ParseError", 4, ("一貫性", "coherence")),
        ("metric", "DataError", 2, ("length",)),
    ]


def test_a_failed_comparison_names_both_systems(ranking: Result) -> None:
    (kind,) = build_provenance(ranking).failures
    assert kind.example.startswith("doc-1, evil|<b>*sys* against システム二: ")


def test_banners_show_status_and_notes(result: Result) -> None:
    status, note = build_provenance(result).banners
    assert status.startswith("This run was interrupted.")
    assert has_line(note, "scripted replies", "no model")


@pytest.mark.parametrize(("n_repaired", "is_warning"), [(1, False), (4, True)])
def test_many_repaired_scores_are_a_warning(n_repaired: int, is_warning: bool) -> None:
    column = Column("fluency", "criterion", Signature("fluency"), 1.0, 5.0)
    samples = tuple(Sample(str(number), "a", "x") for number in range(20))
    ways = ["repaired"] * n_repaired + ["strict"] * (20 - n_repaired)
    scores = tuple(
        Score(sample.item, "a", "fluency", 3.0, Provenance("single", reading=way))  # type: ignore[arg-type]
        for sample, way in zip(samples, ways, strict=True)
    )
    about = build_provenance(Result(Table(samples, (column,), scores)))
    facts = (f"{n_repaired} of 20", "repair question")
    assert has_line(about.banners, *facts) == is_warning
    assert has_line(about.remarks, *facts) != is_warning


def test_unmet_parameters_are_no_warning(result: Result) -> None:
    (remark,) = build_provenance(result).remarks
    assert has_line(remark, "small-judge", "no token probabilities", "6 answers")


def test_columns_say_how_many_scores_each_way_gave(result: Result, panel: Result) -> None:
    description = dict(build_provenance(result).signed)
    assert (
        description["coherence"]
        == "coherence@3f2a91|openai/small|t=0|logprobs|judge 0.1.0 (logprobs 8)"
    )
    assert description["length"] == "length|characters"
    assert build_provenance(panel).signed == (
        ("fluency", "mean of 2 judges (panel 2)"),
        ("fluency/a", "a (samples 2)"),
        ("fluency/org/b", "b (single 2, decisions 1)"),
        ("ROUGE-L", "rougeL"),
    )


def test_the_weighting_counts_judgments_alone(panel: Result, ranking: Result) -> None:
    assert (
        dict(build_provenance(panel).facts)["Weighting"] == "auto: samples 2, single 2, decisions 1"
    )
    assert dict(build_provenance(ranking).facts)["Weighting"] == "auto: logprobs 10, single 5"


def test_judges_list_refused_parameters_and_panel_cost(panel: Result, ranking: Result) -> None:
    ((name, refused),) = build_provenance(ranking).judges
    assert name == "small-judge"
    limit, count, temperature = refused.split("; ")
    assert has_line(limit, "at most 5 probabilities")
    assert count.startswith("takes n ≤ 8")
    assert has_line(temperature, "temperature", "not accepted")  # fmt: skip
    (a,) = build_provenance(panel).judges
    assert a[0] == "a"
    assert a[1].startswith("http://127.0.0.1:8000/v1 · lists at most 5 ")
    assert has_line(a[1], "requests: 16 sent, 15 answered", "tokens: 900 in, 15 out")
    assert has_line(a[1], "cost: unknown", "no published price")
    assert dict(build_provenance(panel).facts)["Judges"] == "a, org/b"


@pytest.mark.parametrize(
    ("info", "title"),
    [
        ({"data": {"path": "a\\b\\c.csv"}, "judges": {"m": {}}}, "c.csv, judged by m"),
        ({"data": {"path": "/x/d.jsonl"}}, "d.jsonl"),
        ({"judges": {"m": {}}}, "Judge report, judged by m"),
        ({}, "Judge report"),
    ],
)
def test_the_title_names_data_and_model(info: dict[str, Any], title: str) -> None:
    assert build_provenance(Result(Table((), (), ()), {}, read(info))).title == title


def test_facts_are_only_those_that_are_known() -> None:
    info = RunInfo(data=DataInfo(path="d.csv"))
    assert build_provenance(Result(Table((), (), ()), {}, info)).facts == (
        ("Data", "d.csv"),
        ("Texts", "0 texts: 0 items, 0 systems"),
    )


REPLAY = {"m": {"provider": "replay"}}


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, ""),
        (
            {"requests": {"sent": 1200, "answered": 1200, "failed": 2}},
            "requests: 1,200 sent, 2 failed",
        ),
        (
            {"usage": {"prompt_tokens": 10, "completion_tokens": 5, "reasoning_tokens": 4}},
            "tokens: 10 in, 5 out (4 reasoning)",
        ),
        ({"cost": {"usd": None, "note": "no list price"}}, "cost: unknown (no list price)"),
        (
            {"judges": REPLAY, "requests": {"sent": 7, "answered": 7, "cached": 9}},
            "requests: 7 read from the recording, 9 cached",
        ),
        (
            {"judges": REPLAY, "requests": {"cached": 9}},
            "requests: 0 read from the recording, 9 cached",
        ),
        (
            {"requests": {"sent": 0, "cached": 9}, "cost": {"usd": 0.0}},
            "requests: 0 sent, 9 cached · cost: nothing",
        ),
        (
            {"requests": {"sent": 9, "answered": 9}, "cost": {"usd": 0.0}},
            "requests: 9 sent · cost: $0.0000",
        ),
    ],
)
def test_usage_is_one_line(info: dict[str, Any], expected: str) -> None:
    assert build_provenance(Result(Table((), (), ()), {}, read(info))).usage == expected


def test_scores_that_rest_on_little_are_counted() -> None:
    provenances = [
        ("logprobs", 0.95),
        ("logprobs", 0.6),
        ("decisions", 0.75),
        ("samples", 0.5),
        ("single", None),
    ]
    scores = tuple(
        Score(f"i{k}", "s", "c", 3.0, Provenance(method, mass))
        for k, (method, mass) in enumerate(provenances)
    )
    samples = tuple(Sample(score.item, "s", "o") for score in scores)
    table = Table(samples, (Column("c", "criterion", Signature("c")),), scores)
    (banner,) = build_provenance(Result(table)).banners
    assert has_line(banner, "2 of 3 scores", "token probabilities")
    assert banner.endswith("the least 60%.")
    assert build_provenance(Result(replace(table, scores=(scores[0], *scores[3:])))).banners == ()


def test_the_budget_is_a_fact(result: Result) -> None:
    spent = BudgetInfo(amount=5.0, unit="usd", spent=0.1234)
    tokens = BudgetInfo(amount=2e6, unit="tokens", spent=1_234_567.0)
    for budget, fact in (
        (spent, "$0.1234 of $5.00 spent"),
        (tokens, "1,234,567 of 2,000,000 tokens spent"),
    ):
        info = replace(result.info, budget=budget, requests=Requests())
        about = build_provenance(replace(result, info=info))
        assert dict(about.facts)["Budget"] == fact


def test_the_budget_of_a_resumed_run_says_that_cached_replies_are_not_in_it(result: Result) -> None:
    budget = BudgetInfo(amount=51_000, unit="tokens", spent=0.0)
    info = replace(result.info, budget=budget, requests=Requests(cached=400))
    facts = dict(build_provenance(replace(result, info=info)).facts)
    assert has_line(facts["Budget"], "0 of 51,000 tokens spent", "without cached replies")
    info = replace(info, requests=Requests(sent=400))
    facts = dict(build_provenance(replace(result, info=info)).facts)
    assert "cached" not in facts["Budget"]
