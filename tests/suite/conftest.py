"""Hand-made results of a judge, and golden files of suites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.comparison import Change, RunComparison
from judge.results.result import Result
from judge.results.run_info import JudgeInfo, RunInfo
from judge.stats.analyze import analyze
from judge.stats.run_differences import compare_runs
from judge.suite.baseline import compare_with_baseline
from judge.suite.evaluate import Outcome, evaluate_case, limits
from judge.suite.expectations import Expectation
from judge.suite.schema import Suite

LABELS = ("1", "2", "3", "4", "5")
FIVE = (1.0, 2.0, 3.0, 4.0, 5.0)
RELEVANCE = Column(
    "relevance",
    "criterion",
    Signature("relevance@1"),
    1.0,
    5.0,
    LABELS,
    criterion="relevance",
    values=FIVE,
)


class ScoreMaker:
    """Build scores of one criterion from draws, probabilities or single replies.

    `key` is the item, and optionally the system and the opponent.
    """

    column = RELEVANCE

    @staticmethod
    def values(column: Column) -> Mapping[str, float]:
        ends = (column.low or 0.0, column.high or 1.0)
        return dict(
            zip(
                column.labels,
                ends if len(column.labels) == 2 else map(float, column.labels),
                strict=True,
            )
        )

    def drawn(
        self, draws: Mapping[str, int], *key: str, column: Column = RELEVANCE, requested: int = 0
    ) -> Score:
        """Return a score from the number of draws for each label. If `requested` is larger, some draws failed."""
        n = sum(draws.values())
        counts, requested = self.values(column), requested or n
        value = sum(counts[label] * k for label, k in draws.items()) / n
        unread = requested - n
        low, high = (
            (value * n + unread * end) / requested
            for end in (column.low or 0.0, column.high or 1.0)
        )
        shares = {label: k / requested for label, k in draws.items()}
        top = max(draws, key=draws.__getitem__)
        provenance = Provenance(
            "samples", n / requested, shares, 0.5, top, low, high, n, "It says so.", "[]"
        )
        return Score(*key[:2], column.name, value, provenance, *key[2:])

    def weighed(self, shares: Mapping[str, float], *key: str, column: Column = RELEVANCE) -> Score:
        """Return a score from token probabilities. The mass missing to 1 is unknown."""
        mass, counts = sum(shares.values()), self.values(column)
        seen = sum(counts[label] * p for label, p in shares.items())
        low, high = (seen + (1 - mass) * end for end in (column.low or 0.0, column.high or 1.0))
        provenance = Provenance(
            "logprobs", mass, shares, 0.5, max(shares, key=shares.__getitem__), low, high, raw="4"
        )
        return Score(*key[:2], column.name, seen / mass, provenance, *key[2:])

    def single(self, label: str, *key: str, column: Column = RELEVANCE) -> Score:
        provenance = Provenance("single", argmax=label, raw=label)
        return Score(*key[:2], column.name, self.values(column)[label], provenance, *key[2:])

    def failed(
        self, *key: str, column: Column = RELEVANCE, raw: str = "I would rather not."
    ) -> Failure:
        return Failure(
            *key[:2], column.name, "parse", "ParseError", "no score in the reply", raw, *key[2:]
        )

    def result(
        self,
        *rows: Score | Failure,
        columns: tuple[Column, ...] = (RELEVANCE,),
        human: Mapping[tuple[str, str], float] | None = None,
        info: RunInfo | None = None,
    ) -> Result:
        """Return a result with these rows and a text for each. Rows with an opponent are comparisons."""
        texts = dict.fromkeys(
            (row.item, system) for row in rows for system in (row.system, row.opponent) if system
        )
        rated = human or {}
        samples = [
            Sample(
                item,
                system,
                f"{system} says",
                "A source.",
                (),
                {"relevance": rated[key]} if key in rated else {},
            )
            for key in texts
            for item, system in [key]
        ]
        orders = 2 if any(row.opponent for row in rows) else None
        return Result(
            analyze(samples, columns, rows, orders=orders).table,
            info=info or RunInfo(judges={"small-judge": JudgeInfo()}),
        )


@pytest.fixture(scope="session")
def make() -> ScoreMaker:
    return ScoreMaker()


HOSTILE = "<script>alert(1)</script> | `x` **b** @you #1 \x1b[31m\x00\ufffe\u202e"
DRAWS = {"4": 13, "3": 7}


def _results(make: ScoreMaker) -> tuple[Result, Result]:
    """Results before and after a change: 12 texts that lose a little, two inline texts, one without a score."""
    before, after = [], []
    for k in range(6):
        for system, fives in (("draft", 3), ("edited", 8)):
            before.append(make.drawn({"5": fives, "3": 10 - fives}, f"doc-{k}", system))
            after.append(
                make.drawn({"5": fives - 1 - k % 2, "3": 11 - fives + k % 2}, f"doc-{k}", system)
            )
    unchanged = [
        make.drawn(DRAWS, "the bridge", "text"),
        make.failed("文書", "text", raw=f"Sorry. {HOSTILE}"),
    ]
    return make.result(*before, make.drawn({"4": 20}, "the bridge", "text")), make.result(
        *after, *unchanged
    )


@pytest.fixture
def outcomes(make: ScoreMaker) -> list[Outcome]:
    """Verdicts of every status against a baseline with a different prompt, a passed suite, and a suite not run."""
    before, after = _results(make)
    data = [(s.item, s.system) for s in after.table.samples if s.system != "text"]
    own_text = [("the bridge", "text")]
    cases_by_name: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
        "the bridge is relevant": ({"expect": {"min": 4}}, own_text),
        "the bridge is not bad": ({"expect": {"min": 3, "max": 5}}, own_text),
        "the bridge is a 4": ({"expect": {"label": "4"}}, own_text),
        f"要約は原文に忠実である {HOSTILE}": ({"expect": {"min": 2}}, [("文書", "text")]),
        "edited beats draft": ({"better": "edited", "worse": "draft"}, data),
        "nothing moves much": ({"drift": {"max_shift": 0.3, "max_flips": 0.5}}, data),
    }
    adapter: TypeAdapter[Any] = TypeAdapter(Expectation)
    cases = tuple(
        adapter.validate_python({"name": name, "criterion": "relevance", **keys}).located(
            "relevance", line, {}
        )
        for line, (name, (keys, _)) in enumerate(cases_by_name.items(), 5)
    )
    suite = Suite(
        Path("suites/summaries.judge.yaml"),
        "summaries",
        {},
        cases,
        lines={"limits": 3, "baseline": 2},
    )
    verdicts = [evaluate_case(case, cases_by_name[case.name][1], after, before) for case in cases]
    verdicts += limits(suite, after)
    verdicts += compare_with_baseline(
        replace(suite, cases=(), lines={}), after, before, compare_runs(before.table, after.table)
    )
    diff = (
        "--- relevance.jinja (before)",
        "+++ relevance.jinja (after)",
        "@@ -1 +1 @@",
        "-Be fair.",
        f"+```{HOSTILE}",
    )
    changes = (Change("prompt", "3f2a91", "77aa01", ("relevance",), diff),)
    runs = compare_runs(before.table, after.table, n_resamples=200)
    compared = RunComparison(("baselines/a", "this run"), before, after, runs, changes)
    notes = ("scripted replies: no model was asked",)
    met = replace(suite, path=Path("suites/met.judge.yaml"), name="met", cases=suite.cases[1:2])
    stuck = replace(suite, path=Path("suites/stuck.judge.yaml"), name="stuck")
    trouble = "suites/stuck.judge.yaml:4: calls.jsonl has no reply to this prompt\nrecord it with --record"
    return [
        Outcome(suite, tuple(verdicts), after, None, compared, notes, seconds=1.25),
        Outcome(met, (verdicts[1], *limits(met, before)), before, seconds=0.5),
        Outcome(stuck, trouble=trouble),
    ]
