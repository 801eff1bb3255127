"""rank(): from data to a ranking, and its errors."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.config import RankConfig
from judge.core.errors import ConfigError, CriterionError, Refused, StorageError
from judge.core.records import Criterion
from judge.providers.scripted import Reply, ScriptedProvider
from judge.results.loading import load
from judge.run.cost_estimate import one_line_estimate
from judge.run.pipeline import run_pipeline
from judge.run.preparation import prepare
from tests.factories import has_line

QUALITY = {"good": 2.0, "fair": 1.0, "poor": 0.0}
ROWS = [
    {"item": item, "system": system, "source": f"Request {item}.", "output": f"A {system} answer to {item}."}
    for item in "1234" for system in QUALITY
]  # fmt: skip


def better(request: Any) -> Reply:
    """Prefer the better text with probability 0.8 in both orders."""
    first, second = _shown(request)
    return {"A": 0.8, "B": 0.2} if QUALITY[first] > QUALITY[second] else {"A": 0.2, "B": 0.8}


def better_until(replies: int) -> Callable[[Any], Reply]:
    """Prefer the better text for `replies` requests, then raise a quota error."""
    replies_left = [1] * replies
    return lambda request: (
        better(request)
        if replies_left and replies_left.pop()
        else Refused("out of money", stops="always")
    )


def _shown(request: Any) -> list[str]:
    """Return the systems of a prompt's texts in the order shown."""
    return re.findall(r"A (\w+) answer to", request.messages[0]["content"])


def test_the_whole_path_from_rows_to_a_ranking() -> None:
    provider = ScriptedProvider(better)
    result = judge.rank(ROWS, model=provider)
    (ranking,) = result.rankings
    assert [s.system for s in ranking.standings] == ["good", "fair", "poor"]
    assert [s.win_rate for s in ranking.standings] == pytest.approx([0.8, 0.5, 0.2])
    assert (ranking.flip_rate, ranking.position_bias) == (0.0, pytest.approx(0.0))
    assert len(provider.seen) == 4 * 3 * 2
    assert {(s.wins, s.losses, s.n) for s in ranking.standings} == {(8, 0, 8), (4, 4, 8), (0, 8, 8)}


def test_a_judge_that_always_picks_the_first_makes_no_ranking() -> None:
    result = judge.rank(ROWS, model=ScriptedProvider(lambda _: {"A": 0.9, "B": 0.1}))
    (ranking,) = result.rankings
    assert [s.win_rate for s in ranking.standings] == pytest.approx([0.5] * 3)
    assert (ranking.flip_rate, ranking.position_bias) == (1.0, pytest.approx(0.4))


def test_equal_texts_cost_nothing_and_are_ties() -> None:
    rows = [row | {"output": "The same."} if row["system"] != "good" else row for row in ROWS]
    provider = ScriptedProvider(lambda r: {"A": 1.0})
    result = judge.rank(rows, model=provider)
    assert all(_shown(request) == ["good"] for request in provider.seen)
    (ranking,) = result.rankings
    assert ranking.win_rate[1][2] == 0.5
    assert [s.ties for s in ranking.standings if s.system != "good"] == [4, 4]


@pytest.mark.parametrize(
    "criterion",
    [
        "clearer: Which answer is clearer?",
        {"name": "clearer", "question": "Which answer is clearer?"},
        Criterion("clearer", question="Which answer is clearer?"),
    ],
    ids=["sentence", "keys", "object"],
)
def test_a_question_ranks_the_systems(criterion: Any) -> None:
    result = judge.rank(ROWS, criterion, model=ScriptedProvider(better))
    (ranking,) = result.rankings
    assert ranking.column == "clearer"
    assert [standing.system for standing in ranking.standings] == ["good", "fair", "poor"]


def test_a_configuration_may_name_a_question_that_compares() -> None:
    config = RankConfig.load(options={"criteria": [{"clearer": "Which answer is clearer?"}]})
    (criterion,) = prepare(config, ROWS, providers=[ScriptedProvider(better)]).criteria
    assert (criterion.name, criterion.pairwise) == ("clearer", True)


def test_a_pair_with_one_failed_order_is_excluded_with_a_note() -> None:
    def script(request: Any) -> Reply:
        refused = (
            _shown(request) == ["good", "fair"] and "Request 1." in request.messages[0]["content"]
        )
        return Refused("content policy") if refused else better(request)

    result = judge.rank(ROWS, model=ScriptedProvider(script))
    (ranking,) = result.rankings
    assert (ranking.pairs, ranking.incomplete, ranking.failed) == (11, 1, 1)
    assert [(f.system, f.opponent, f.stage) for f in result.failures] == [
        ("good", "fair", "request")
    ]


def test_a_tie_fails_if_ties_are_not_allowed() -> None:
    result = judge.rank(
        ROWS[:3], model=ScriptedProvider(lambda _: "C"), weighting="single", repair="off"
    )
    assert {(f.stage, f.error, f.raw) for f in result.failures} == {("parse", "ParseError", "C")}
    assert len(result.failures) == 6
    assert result.table.scores == ()


def test_a_tie_counts_half_if_it_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "with_ties.jinja"
    path.write_text(
        "---\nscale: {labels: [A, B, C], values: [1, 0, 0.5]}\n---\n"
        '{% extends "layouts/pairwise.jinja" %}{% block criterion %}Which is better?{% endblock %}',
        encoding="utf-8",
    )
    result = judge.rank(ROWS, [str(path)], model=ScriptedProvider(lambda _: {"C": 0.6, "A": 0.4}))
    (ranking,) = result.rankings
    assert [s.value for s in result.table.scores] == pytest.approx([0.7] * 24)
    assert [s.win_rate for s in ranking.standings] == pytest.approx([0.5] * 3)
    assert ranking.column == "with_ties"


def test_one_order_asks_half(tmp_path: Path) -> None:
    provider = ScriptedProvider(better)
    result = judge.rank(ROWS, model=provider, orders=1)
    assert len(provider.seen) == 12
    assert result.rankings[0].flip_rate is None
    assert [s.system for s in result.rankings[0].standings] == ["good", "fair", "poor"]


def test_a_ranking_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    result = judge.rank(ROWS, model=ScriptedProvider(better), out=tmp_path / "r")
    stored = load(tmp_path / "r")
    assert stored.rankings == result.rankings
    assert stored.table == result.table
    assert (tmp_path / "r" / "report.html").exists()


def test_a_ranking_that_was_killed_can_be_shown(tmp_path: Path) -> None:
    script = better_until(20)
    with pytest.raises(Refused):
        judge.rank(ROWS, model=ScriptedProvider(script), out=tmp_path / "r", max_concurrency=1)
    stored = load(tmp_path / "r")
    assert len(stored.table.scores) == 20
    assert stored.rankings[0].pairs == 10


def test_a_panel_ranks_by_each_judge_and_by_their_mean() -> None:
    fond = ScriptedProvider(lambda _: {"A": 1.0}, model="fond")
    result = judge.rank(ROWS, model=[ScriptedProvider(better, model="fair-minded"), fond])
    assert [r.column for r in result.rankings] == ["overall", "overall/fair-minded", "overall/fond"]
    assert [s.win_rate for s in result.rankings[0].standings] == pytest.approx([0.65, 0.5, 0.35])


def test_rank_estimates_its_requests_first() -> None:
    plan = RankConfig.load(options={"pairs": 5})
    rows = [row | {"output": "same"} if row["item"] == "1" else row for row in ROWS]
    prepared = prepare(plan, rows, providers=[ScriptedProvider(better)])
    estimate = one_line_estimate(prepared)
    assert has_line(estimate, "5 pairs of texts", "both orders")
    assert has_line(prepared.notes[-1], "sample", "5 of 12 pairs")
    judgments = int(estimate.split(": ")[1].split()[0])
    assert judgments == len(prepared.pairs.compared)  # type: ignore[union-attr]
    result = asyncio.run(run_pipeline(prepared))
    assert result.info.requests.sent == judgments


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"criteria": ["summarization/relevance"]}, CriterionError, "judges one text"),
        ({"model": None}, ConfigError, "no judge is named"),
        ({"orders": 3}, ConfigError, "orders: .*1 or 2"),
        ({"pairs": 0}, ConfigError, "pairs"),
    ],
)
def test_mistakes_are_errors_before_any_request(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    provider = ScriptedProvider(better)
    with pytest.raises(error, match=words):
        judge.rank(ROWS, **{"model": provider} | options)
    with pytest.raises(CriterionError, match=r"judge\.rank"):
        judge.evaluate(ROWS, ["pairwise_answers/overall"], model=provider, metrics=[])
    assert provider.seen == []


def test_a_wide_frame_of_a_ranking_has_a_row_for_every_comparison() -> None:
    frame = judge.rank(ROWS, model=ScriptedProvider(better)).to_frame(wide=True)
    assert list(frame.columns) == ["item", "system", "opponent", "overall"]
    assert len(frame) == 24
    (value,) = frame.query("item == '1' and system == 'poor' and opponent == 'good'")["overall"]
    assert value == pytest.approx(0.2)


def test_rank_ignores_metrics_of_a_shared_configuration_with_a_note() -> None:
    result = judge.rank(ROWS, model=ScriptedProvider(better), metrics=["rouge"])
    assert [ranking.column for ranking in result.rankings] == ["overall"]
    assert has_line(result.info.remarks, "no metrics", "judge.evaluate")


def test_a_killed_panel_is_concluded_as_it_would_have_been(tmp_path: Path) -> None:
    script = better_until(30)
    judges = [ScriptedProvider(script, model="a"), ScriptedProvider(script, model="b")]
    with pytest.raises(Refused):
        judge.rank(ROWS, model=judges, out=tmp_path / "r", max_concurrency=1)
    stored = load(tmp_path / "r")
    panel = next(ranking for ranking in stored.rankings if ranking.column == "overall")
    assert panel.pairs > 0
    assert {s.column for s in stored.table.scores} == {"overall", "overall/a", "overall/b"}


def test_against_one_system_only_its_pairs_are_asked_about(tmp_path: Path) -> None:
    every, some = ScriptedProvider(better), ScriptedProvider(better)
    judge.rank(ROWS, model=every)
    options: dict[str, Any] = {"against": "fair", "cache": False}
    result = judge.rank(ROWS, model=some, out=tmp_path / "r", **options)
    assert len(some.seen) == 4 * 2 * 2
    prompts = [[request.messages for request in provider.seen] for provider in (some, every)]
    assert all(prompt in prompts[1] for prompt in prompts[0])  # from the cache
    (ranking,) = result.rankings
    assert [(s.system, s.win_rate) for s in ranking.standings] == [
        ("good", pytest.approx(0.8)), ("fair", pytest.approx(0.5)), ("poor", pytest.approx(0.2))
    ]  # fmt: skip
    assert (ranking.against, ranking.n) == ("fair", ((0, 4, 0), (4, 0, 4), (0, 4, 0)))
    assert load(tmp_path / "r") == result
    assert (
        judge.plan(ROWS, rank=True, model=ScriptedProvider(better), **options)
        .judges[0]
        .estimate.total.requests
        == 16
    )


@pytest.mark.parametrize("command", [judge.rank, judge.evaluate])
def test_against_an_unknown_system_nothing_is_asked(command: Callable[..., Any]) -> None:
    provider = ScriptedProvider(better)
    with pytest.raises(ConfigError, match=r"against='fiar'.*did you mean 'fair'"):
        command(ROWS, model=provider, against="fiar")
    assert provider.seen == []


def test_a_ranking_against_one_system_does_not_replace_one_of_all(tmp_path: Path) -> None:
    judge.rank(ROWS, model=ScriptedProvider(better), out=tmp_path)
    with pytest.raises(StorageError, match="other pairs of texts"):
        judge.rank(ROWS, model=ScriptedProvider(better), out=tmp_path, against="fair")
