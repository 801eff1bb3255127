"""The whole path on real, human-rated texts and real recorded replies of GPT-4, through a server that replays them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr

import judge


class Replay:
    """A replay server and what it counts."""

    def __init__(self, *command: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *map(str, command)], stdout=subprocess.PIPE, text=True
        )
        address = re.search(r"http://\S+", self._process.stdout.readline())
        self.url = address[0]

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.url.removesuffix("/v1") + "/stats", timeout=10) as reply:
            return dict(json.load(reply))

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()


@pytest.fixture
def replay(
    shared_tool: Callable[[str], Path], shared_data: Callable[[str], Path]
) -> Iterator[Callable[..., Replay]]:
    servers: list[Replay] = []

    def start(data: str, *options: object) -> Replay:
        command = (
            shared_tool("replay_server.py"),
            "--data",
            *map(shared_data, data.split()),
            "--port",
            0,
            *options,
        )
        servers.append(Replay(*command))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    ("language", "flags", "method", "requests"),
    [
        ("english", ("--as-logprobs",), "logprobs", 20),
        # The first one finds out, and twenty draws are one request.
        ("english", ("--no-logprobs",), "samples", 21),
        ("korean", ("--no-logprobs", "--reasoning", "--max-n", 8), "samples", 61),
    ],
)
def test_the_g_eval_estimate_is_the_mean_of_the_recorded_replies(
    replay: Callable[..., Replay],
    shared_data: Callable[[str], Path],
    tmp_path: Path,
    language: str,
    flags: tuple[Any, ...],
    method: str,
    requests: int,
) -> None:
    r"""Twenty recorded draws, as token probabilities or as draws: the score is their mean, item by item.

    One English item is recorded as scored 0 for the reply "\n2", which its own parser missed; the replies count here.
    """
    name = f"geval_{language}.jsonl"
    rows = [json.loads(line) for line in shared_data(name).read_text("utf-8").splitlines()]
    recorded = {
        r["item_id"]: sum(float(re.findall(r"\d", x)[-1]) for x in r["responses"]) / 20
        for r in rows
    }
    server = replay(name, *flags)
    options: dict[str, Any] = {
        "model": "gpt-4-0125-preview", "base_url": server.url, "metrics": [], "cache": tmp_path, "draws": 20,
        "map": {"item": "item_id", "output": "summary"},
    }  # fmt: skip
    result = judge.evaluate(shared_data(name), ["relevance"], **options)
    assert {s.item: s.value for s in result.table.scores} == pytest.approx(recorded)
    assert {s.provenance.method for s in result.table.scores} == {method}
    assert result.info.language.name == language[:2]
    assert result.info.requests.answered == requests
    n_requests = server.stats()["requests"]
    second_run = judge.evaluate(shared_data(name), ["relevance"], **options)
    assert second_run.table.scores == result.table.scores
    assert server.stats()["requests"] == n_requests


def test_published_preferences_come_back_from_the_recorded_probabilities(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path]
) -> None:
    """AlpacaEval 2 (Dubois et al. 2024): the preference of each pair, and with it the win rate."""
    data = shared_data("alpaca_logprobs_smoke.jsonl")
    rows = {row["id"]: row for row in map(json.loads, data.read_text("utf-8").splitlines())}
    server = replay(data.name)
    result = judge.rank(
        data, systems=["output_1", "output_2"], map={"item": "id", "source": "instruction"}, model="gpt-4-1106-preview",
        base_url=server.url, orders=1, weighting="logprobs", min_mass=0.0, cache=False,
    )  # fmt: skip
    second = {
        s.item: s.value if s.system == "output_2" else 1 - s.value for s in result.table.scores
    }
    assert {item: 1 + value for item, value in second.items()} == pytest.approx(
        {item: row["preference"] for item, row in rows.items()}, abs=1e-6
    )
    different = sum(row["output_1"] != row["output_2"] for row in rows.values())
    assert server.stats()["requests"] == different < len(rows)


def test_position_bias_is_detected_and_corrected(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path]
) -> None:
    data = shared_data("alpaca_logprobs_smoke.jsonl")
    results = []
    for bias in (0.0, 1.5):
        server = replay(data.name, "--position-bias", bias)
        results.append(
            judge.rank(
                data, systems=["output_1", "output_2"], map={"item": "id", "source": "instruction"}, model="m",
                base_url=server.url, weighting="logprobs", min_mass=0.0, cache=False,
            ).rankings[0]
        )  # fmt: skip
    fair, biased = results
    assert fair.flip_rate == 0.0
    assert fair.position_bias == pytest.approx(0.0, abs=1e-9)
    assert biased.flip_rate > 0.05
    assert biased.position_bias > 0.05
    assert [s.system for s in biased.standings] == [s.system for s in fair.standings]
    assert biased.standings[0].win_rate == pytest.approx(fair.standings[0].win_rate, abs=0.05)


@pytest.mark.slow
def test_a_server_with_every_fault_costs_no_judgment(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    """Refused logprobs, refused temperature, errors and dropped connections: all judged, as people rated them."""
    name = "summeval_smoke.jsonl"
    server = replay(
        name,
        "--oracle",
        0,
        "--reasoning",
        "--no-logprobs",
        "--fail-rate",
        0.1,
        "--disconnect-rate",
        0.1,
    )
    criteria = ["relevance", "coherence", "consistency", "fluency_5"]
    result = judge.evaluate(
        shared_data(name), criteria, model="a-reasoning-model", base_url=server.url,
        map={"item": "doc_id", "output": "summary"}, metrics=[], cache=tmp_path, max_concurrency=8,
    )  # fmt: skip
    assert result.failures == ()
    assert set(result.info.unmet) == {"logprobs"}
    assert result.info.judges["a-reasoning-model"].learned == {
        "dropped": ["logprobs", "temperature"]
    }
    assert "|t=0/1|auto|draws=5|" in result.table.signatures["relevance"]
    human = {(s.item, s.system): s.human for s in result.table.samples}
    for score in result.table.scores:
        rated = human[score.item, score.system][
            score.column
        ]  # the data's `fluency` is that of fluency_5
        assert score.value == float(int(rated + 0.5))


def test_garbage_is_paid_once_until_it_is_asked_again(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    name = "summeval_smoke.jsonl"
    server = replay(name, "--oracle", 0.5, "--garbage-rate", 0.3)
    options: dict[str, Any] = {
        "model": "m", "base_url": server.url, "metrics": [], "cache": tmp_path, "repair": "off",
        "map": {"item": "doc_id", "output": "summary"},
    }  # fmt: skip
    first = judge.evaluate(shared_data(name), ["relevance"], **options)
    failed = len(first.failures)
    assert failed == server.stats()["garbage"] > 0
    assert len(first.table.scores) + failed == server.stats()["requests"] == 20
    second = judge.evaluate(shared_data(name), ["relevance"], **options)
    assert (second.table.scores, second.failures) == (first.table.scores, first.failures)
    assert second.info.requests.failed_cached == failed
    assert server.stats()["requests"] == 20
    judge.evaluate(shared_data(name), ["relevance"], retry_failed=True, **options)
    assert server.stats()["requests"] == 20 + failed


def test_one_question_follows_each_garbled_reply(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    name = "summeval_smoke.jsonl"
    server = replay(name, "--oracle", 0.5, "--garbage-rate", 0.3)
    options: dict[str, Any] = {
        "model": "m", "base_url": server.url, "metrics": [], "cache": tmp_path,
        "map": {"item": "doc_id", "output": "summary"},
    }  # fmt: skip
    first = judge.evaluate(shared_data(name), ["relevance"], **options)
    counts, stats = first.info.requests, server.stats()
    assert counts.repaired > 0
    assert stats["requests"] == counts.sent == 20 + counts.unread
    assert stats["garbage"] == counts.unread + len(
        first.failures
    )  # those without a question, and wrong answers
    assert len(first.table.scores) + len(first.failures) == 20
    assert sum(s.provenance.reading == "repaired" for s in first.table.scores) == counts.repaired
    second_run = judge.evaluate(shared_data(name), ["relevance"], **options)
    assert (second_run.table.scores, second_run.failures) == (first.table.scores, first.failures)
    assert server.stats()["requests"] == stats["requests"]


@pytest.mark.slow
def test_a_wild_run_ends_with_the_table_of_a_calm_one(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    """240 judgments, 10 % errors, 5 % dropped connections, 5 % garbage, 500 a second: only garbage is missing."""
    name = "summeval.jsonl"
    criteria = ["relevance", "coherence", "consistency", "fluency_5"]
    options: dict[str, Any] = {
        "model": "m", "metrics": [], "weighting": "single", "map": {"item": "doc_id", "output": "summary"},
        "limit": 60, "repair": "off",
    }  # fmt: skip
    quiet = replay(name, "--oracle", 0)
    calm = judge.evaluate(shared_data(name), criteria, base_url=quiet.url, cache=False, **options)
    faults = (
        "--fail-rate",
        0.1,
        "--disconnect-rate",
        0.05,
        "--garbage-rate",
        0.05,
        "--rate-limit",
        30_000,
    )
    server = replay(name, "--oracle", 0, *faults, "--burst", 50)
    options |= {
        "base_url": server.url,
        "cache": tmp_path,
        "retries": 10,
    }  # of five, one in ten runs loses a judgment
    wild = judge.evaluate(shared_data(name), criteria, **options)
    paid = server.stats()["requests"]
    assert paid <= 1.3 * quiet.stats()["requests"]
    assert calm.failures == ()
    assert len(wild.table.scores) + len(wild.failures) == len(calm.table.scores) == 240
    assert {failure.error for failure in wild.failures} == {"ParseError"}
    assert values(wild).items() <= values(calm).items()
    second_run = judge.evaluate(shared_data(name), criteria, **options)
    assert (second_run.table.scores, second_run.failures) == (wild.table.scores, wild.failures)
    assert server.stats()["requests"] == paid
    for _ in range(5):  # what was garbage is asked again, and nothing else
        failed = len(wild.failures)
        wild = judge.evaluate(shared_data(name), criteria, retry_failed=True, **options)
        counts = wild.info.requests
        assert 0 < counts.answered == 240 - counts.cached - counts.shared <= failed
        if not wild.failures:
            break
    assert values(wild) == values(calm)


@pytest.mark.slow
def test_a_rate_limit_costs_no_judgment(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path]
) -> None:
    """40 requests to a server that takes ten at once and then 20 a second, fewer than the slowest machine sends."""
    name = "summeval_smoke.jsonl"
    server = replay(name, "--oracle", 0, "--rate-limit", 1_200, "--burst", 10)
    result = judge.evaluate(
        shared_data(name), ["relevance", "coherence"], model="m", base_url=server.url,
        metrics=[], weighting="single", map={"item": "doc_id", "output": "summary"}, cache=False,
    )  # fmt: skip
    assert server.stats()["status"]["429"] > 0
    assert result.failures == ()
    assert len(result.table.scores) == 40


TEXTS, REPLIES = "summeval_smoke.jsonl", "summeval_judged_smoke.jsonl"


def test_suite_verdicts_match_recorded_gpt_4_replies(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    """Agreement, order and drift of 20 rated summaries, against scipy's and against counts of the recorded replies."""
    server = replay(f"{TEXTS} {REPLIES}")
    suite = {
        "data": str(shared_data(TEXTS)), "map": {"item": "doc_id", "output": "summary"}, "criteria": ["consistency"],
        "base_url": server.url, "model": "gpt-4-0314:rts", "weighting": "single", "reply": "reason_then_score",
        "cache": False, "baseline": "before",
        "cases": [
            {"name": "people", "human": {"spearman": {"min": 0.1}, "level": "all-texts"}, "undecided": "pass"},
            {"name": "order", "better": "M22", "worse": "M11", "undecided": "pass"},
            {"name": "flips", "drift": {"max_flips": 0}},
        ],
    }  # fmt: skip
    (tmp_path / "gpt.judge.yaml").write_text(json.dumps(suite), "utf-8")
    (first,) = judge.test(tmp_path, update_baseline=True)
    rows = [json.loads(line) for line in shared_data(REPLIES).read_text("utf-8").splitlines()]
    values = {
        (row["judge"], row["item_id"]): row["scores"][0]
        for row in rows
        if row["criterion"] == "consistency"
        and row["variant"] == "rts"
        and row["scores"][0] in range(1, 6)
    }
    rated = [json.loads(line) for line in shared_data(TEXTS).read_text("utf-8").splitlines()]
    gpt4 = {row["id"]: values["gpt-4-0314", row["id"]] for row in rated}
    people = [row["human"]["consistency"] for row in rated]
    agreement = next(verdict for verdict in first.verdicts if verdict.name == "people")
    assert agreement.estimate.value == pytest.approx(
        float(spearmanr([*gpt4.values()], people).statistic)
    )
    assert (agreement.status, agreement.met) == ("undecided", True)  # five items
    order = next(verdict for verdict in first.verdicts if verdict.name == "order")
    assert (order.status, order.met) == ("undecided", True)  # five items, one reply each
    (second,) = judge.test(tmp_path, model="gpt-3.5-turbo-0301:rts")
    flips = next(verdict for verdict in second.verdicts if verdict.name == "flips")
    turned = sum(
        values.get(("gpt-3.5-turbo-0301", key), value) != value for key, value in gpt4.items()
    )
    assert turned > 0
    assert flips.found.startswith(f"{turned} of ")
    assert not second.passed


@pytest.mark.slow
def test_a_card_of_people_and_of_chance(
    replay: Callable[..., Replay], shared_data: Callable[[str], Path]
) -> None:
    """The originals' scores are people's, those of changed texts are drawn: what is noticed then is nothing."""
    server = replay(TEXTS, "--oracle", 0, "--on-miss", "synthetic")
    card = judge.card(
        shared_data(TEXTS), ["consistency"], model="m", base_url=server.url, cache=False,
        map={"item": "doc_id", "output": "summary"}, weighting="single",
    )  # fmt: skip
    assert {cell.change for cell in card.cells} >= {
        "swapped number",
        "dropped sentence",
        "shuffled sentences",
    }
    assert [cell.control for cell in card.attacks] == [False] * 5 + [True]
    assert {finding.probe for finding in card.findings} >= {"verbosity", "scale use"}
    assert sum(cell.failed for cell in (*card.cells, *card.attacks)) == 0
    assert not any(
        cell.mean_change and cell.mean_change.p is not None and cell.mean_change.p < 0.05
        for cell in card.cells
    )


def values(result: judge.Result) -> dict[tuple[str, str, str], float]:
    return {(score.item, score.system, score.column): score.value for score in result.table.scores}
