"""Small hand-made results for the golden files of every format: means, a ranking and a panel."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.records import IDENTICAL, Column, Estimate, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.result import Result
from judge.results.run_info import read
from judge.stats.analyze import analyze
from judge.stats.pairwise import rankings
from judge.table import Table

HOSTILE = "<script>alert(\"1\")</script></style>\x00 \u202egnp.exe | `x` **b** & 'q'\x1b[31m"
EVIL = "evil|<b>*sys*"
HOW = "95% Wilson interval with Student's t over items"

LABELS = ("1", "2", "3", "4", "5")
COLUMNS = (
    Column("rougeL", "metric", Signature("rougeL", "f", "stem", "tok=en", "refs=max"), 0.0, 1.0),
    Column(
        "coherence",
        "criterion",
        Signature("coherence@3f2a91", "openai/small", "t=0", "logprobs", "judge 0.1.0"),
        1.0,
        5.0,
        LABELS,
    ),
    Column(
        "一貫性",
        "criterion",
        Signature("一貫性@77aa01", "openai/small", "t=0", "single", "judge 0.1.0"),
        1.0,
        3.0,
        ("1", "2", "3"),
    ),
    Column("length", "metric", Signature("length", "characters")),
)
ITEMS = {
    "doc-1": (
        "The council met on Monday.\nIt voted to mend the old bridge.",
        ("The council will mend the bridge.",),
    ),
    "文書2": (
        "市議会は月曜日に会議を開いた。橋を直すことを決めた。",
        ("議会は橋を直すと決めた。", "橋は直される。"),
    ),
    "doc-3": (HOSTILE, ()),
}
OUTPUTS = {
    "lead": ("The council met on Monday.", "市議会は月曜日に会議を開いた。", HOSTILE),
    "システム二": (
        "The bridge will be mended.",
        "橋を直すことが決まった。",
        "Nothing was decided.",
    ),
    EVIL: ("Bridge.", "橋。", ""),
}
VALUES = {
    ("lead", "coherence"): (4.2, 3.0, 2.5),
    ("システム二", "coherence"): (4.75, 4.5, None),
    (EVIL, "coherence"): (1.0, 2.0, 1.5),
    ("lead", "一貫性"): (3.0, 2.0, 1.0),
    ("システム二", "一貫性"): (2.0, 2.0, 2.0),
    (EVIL, "一貫性"): (None, None, None),
    ("lead", "rougeL"): (0.5, 0.25, 0.125),
    ("システム二", "rougeL"): (0.75, 0.5, 0.0),
    (EVIL, "rougeL"): (0.25, 0.125, 0.0),
    ("lead", "length"): (26.0, 15.0, 60.0),
    ("システム二", "length"): (26.0, 12.0, 20.0),
    (EVIL, "length"): (7.0, None, None),
}
ESTIMATES = {
    ("lead", "coherence"): (3.2333, 2.5, 3.8, 3),
    ("システム二", "coherence"): (4.625, 4.5, 4.75, 2),
    (EVIL, "coherence"): (1.5, 1.0, 1.8333, 3),
    ("lead", "一貫性"): (2.0, 1.0, 2.6667, 3),
    ("システム二", "一貫性"): (2.0, 2.0, 2.0, 3),
    ("lead", "rougeL"): (0.29167, 0.125, 0.41667, 3),
    ("システム二", "rougeL"): (0.41667, 0.0, 0.66667, 3),
    (EVIL, "rougeL"): (0.125, 0.0, 0.20833, 3),
    ("lead", "length"): (33.6667, 15.0, 48.6667, 3),
    ("システム二", "length"): (19.3333, 12.0, 24.0, 3),
    (EVIL, "length"): (7.0, None, None, 1),
}
INFO = {
    "judge_version": "0.1.0",
    "status": "interrupted",
    "started": "2027-01-05T09:30:00+00:00",
    "seconds": 12.5,
    "data": {"path": "data/council.jsonl", "sha256": "9f2c77aa01b3" * 5, "rows": 9},
    "language": {"name": "en", "how": "detected"},
    "criteria": {
        "coherence": {
            "digest": "3f2a91" * 10,
            "title": "Coherence",
            "path": "prompts/summarization/coherence.jinja",
            "steps": ["Read the source.", "Score <the> output."],
            "templates": {"coherence.jinja": "{{ source }}\n<output>{{ output }}</output>\n"},
        }
    },
    "usage": {
        "prompt_tokens": 12345,
        "completion_tokens": 678,
        "cached_tokens": 1024,
        "reasoning_tokens": 0,
    },
    "requests": {
        "sent": 15,
        "answered": 15,
        "cached": 2,
        "shared": 1,
        "retried": 1,
        "timeouts": 0,
        "failed": 4,
    },
    "cost": {"usd": 0.0123, "note": "list price"},
    "unmet": {"logprobs": 6},
    "judges": {
        "small-judge": {
            "model": "small-judge",
            "provider": "openai",
            "base_url": "http://127.0.0.1:8000/v1",
            "unmet": {"logprobs": 6},
            "learned": {"limit": "max_tokens", "dropped": ["logprobs"]},
        }
    },
    "notes": ["scripted replies: no model was asked"],
    "versions": {"openai": "3.50.0", "numpy": "2.0.0"},
}


def _found(item: str, system: str, column: Column, value: float | None) -> Score | Failure:
    if value is None and column.kind == "metric":
        return Failure(item, system, column.name, "metric", "DataError", "nothing to measure")
    if value is None:
        return Failure(
            item,
            system,
            column.name,
            "parse",
            "ParseError",
            f"no score in reply: {HOSTILE}",
            HOSTILE,
        )
    if column.kind == "metric":
        return Score(item, system, column.name, value, Provenance("metric"))
    if column.name == "一貫性":
        words = Provenance(
            "single",
            reason="原文と一致している。\n" + HOSTILE,
            raw="Score: 3",
            note="no logprobs <here>",
        )
        return Score(item, system, column.name, value, words)
    shares = {"3": 0.09, "4": 0.6, "5": 0.3}
    weighed = Provenance("logprobs", 0.99, shares, 0.8979, "4", 4.1, 4.9, 1, None, "4", None)
    return Score(item, system, column.name, value, weighed)


@pytest.fixture(scope="session")
def result() -> Result:
    """Three systems, two criteria, two metrics, failures, Japanese and hostile text."""
    rows = [
        _found(item, system, column, VALUES[system, column.name][place])
        for place, item in enumerate(ITEMS)
        for system in OUTPUTS
        for column in COLUMNS
    ]
    samples = tuple(
        Sample(
            item, system, texts[place], source, references, {"coherence": 4.0} if place == 0 else {}
        )
        for place, (item, (source, references)) in enumerate(ITEMS.items())
        for system, texts in OUTPUTS.items()
    )
    scores = tuple(row for row in rows if isinstance(row, Score))
    failures = tuple(row for row in rows if isinstance(row, Failure))
    estimates = {
        key: Estimate("mean", mean, low, high, n, HOW)
        for key, (mean, low, high, n) in ESTIMATES.items()
    }
    return Result(Table(samples, COLUMNS, scores, failures), estimates, read(INFO))


VERDICTS = {
    ("doc-1", "lead", "システム二"): (0.2, 0.9),
    ("doc-1", "lead", EVIL): (0.8, 0.3),
    ("doc-1", "システム二", EVIL): (1.0, None),
    ("文書2", "lead", "システム二"): (0.7, 0.6),
    ("文書2", "lead", EVIL): (0.5, 0.5),
    ("文書2", "システム二", EVIL): (0.75, 0.25),
    ("doc-3", "lead", "システム二"): (0.5, 0.5),
    ("doc-3", "lead", EVIL): (0.9, 0.1),
    ("doc-3", "システム二", EVIL): (0.8, 0.8),
}
"""The value of the text shown first, in both orders."""
STANDINGS = {
    "システム二": (0.5, 0.75, 0.31, -0.1, 0.8),
    "lead": (0.375, 0.7, 0.14, None, None),
    EVIL: (None, None, -0.45, None, None),
}
"""Invented ends of the win rate's interval, strength and its ends; some are missing."""
JUDGE = {
    "model": "small-judge",
    "provider": "openai",
    "base_url": "http://127.0.0.1:8000/v1",
    "served_by": ["small-judge-1"],
    "unmet": {"top_logprobs": 12, "n": 1},
    "learned": {"n": 8, "top_logprobs": 5, "dropped": ["temperature"]},
    "usage": {"prompt_tokens": 900, "completion_tokens": 15},
    "requests": {"sent": 16, "answered": 15},
    "cost": {"usd": None, "note": "no published price for this model and endpoint"},
}


def _compared(item: str, first: str, second: str, value: float | None) -> Score | Failure:
    if value is None:
        message = "no answer in the reply"
        return Failure(
            item, first, "overall", "parse", "ParseError", message, f"Neither. {HOSTILE}", second
        )
    if item == "文書2" and EVIL in (first, second) and "lead" in (first, second):
        equal = Provenance(
            IDENTICAL, n=0, note="the two texts are equal: a tie, and no judge was asked"
        )
        return Score(item, first, "overall", value, equal, second)
    reply = "A" if value > 0.5 else "B"
    provenance = Provenance(
        "logprobs",
        1.0,
        {"A": value, "B": 1 - value},
        0.5,
        reply,
        value,
        value,
        1,
        None,
        reply,
        None,
    )
    if item == "doc-1":
        reason = "It names the bridge.\n" + HOSTILE
        provenance = Provenance(
            "single",
            argmax=reply,
            reason=reason,
            raw=f"{reply}\n{reason}",
            note="no logprobs <here>",
        )
    return Score(item, first, "overall", value, provenance, second)


@pytest.fixture(scope="session")
def ranking() -> Result:
    """Three systems compared on one criterion in both orders: ties, flips, a failure, equal texts, hostile text."""
    samples = tuple(
        Sample(item, system, texts[place], source, references)
        for place, (item, (source, references)) in enumerate(ITEMS.items())
        for system, texts in OUTPUTS.items()
    )
    rows = [
        _compared(item, *names, value)
        for (item, one, other), values in VERDICTS.items()
        for names, value in zip(((one, other), (other, one)), values, strict=True)
    ]
    scores = tuple(row for row in rows if isinstance(row, Score))
    failures = tuple(row for row in rows if isinstance(row, Failure))
    column = Column(
        "overall",
        "criterion",
        Signature("overall@51cc02", "openai/small-judge", "auto", "orders=2"),
        0.0,
        1.0,
        ("A", "B"),
    )
    table = Table(samples, (column,), scores, failures)
    (ranking,) = rankings(scores, failures, table.systems, ["overall"])
    fixed = ("low", "high", "strength", "strength_low", "strength_high")
    standings = [
        replace(s, **dict(zip(fixed, STANDINGS[s.system], strict=True))) for s in ranking.standings
    ]
    ranking = replace(
        ranking, standings=tuple(standings), note="Three items are few: intervals are rough."
    )
    info = {name: INFO[name] for name in ("judge_version", "started", "data", "versions")}
    info |= {
        "status": "complete",
        "config": {"orders": 2},
        "judges": {"small-judge": {**JUDGE, "base_url": "http://127.0.0.1:8000/v1"}},
        "seconds": 1.62,
    }
    return Result(table, {}, read(info), rankings=(ranking,))


@pytest.fixture(scope="session")
def panel() -> Result:
    """Two judges on one criterion: draws with and without reasons, a failure, and alpha."""
    scale = (1.0, 5.0, LABELS)
    columns = (
        Column("rougeL", "metric", Signature("rougeL")),
        Column("fluency", "criterion", Signature("mean of 2 judges"), *scale, criterion="fluency"),
        Column("fluency/a", "criterion", Signature("a"), *scale, criterion="fluency", judge="a"),
        Column(
            "fluency/org/b", "criterion", Signature("b"), *scale, criterion="fluency", judge="org/b"
        ),
    )
    samples = (
        Sample("i", "s", "An output."),
        Sample("j", "s", "Another."),
        Sample("k", "s", "A third."),
    )
    note = "the reply came without token probabilities; 1 of 20 draws had no score"
    shares = {"4": 13 / 20, "5": 6 / 20}
    plain = json.dumps(["4"] * 13 + ["5"] * 6 + ["n/a"])
    draws = json.dumps(["4\nIt reads well."] * 2 + ["5\nSmooth."])
    scores = (
        Score(
            "i",
            "s",
            "fluency/a",
            4.3158,
            Provenance("samples", 0.95, shares, 0.6, "4", 4.15, 4.35, 19, None, plain, note),
        ),
        Score(
            "j",
            "s",
            "fluency/a",
            4.3333,
            Provenance(
                "samples",
                1.0,
                {"4": 2 / 3, "5": 1 / 3},
                0.6,
                "4",
                n=3,
                reason="It reads well.",
                raw=draws,
            ),
        ),
        Score(
            "i",
            "s",
            "fluency/org/b",
            3.5,
            Provenance("decisions", 0.98, {"3": 0.5, "4": 0.48}, 0.7, "3", 3.4, 3.6),
        ),
        Score(
            "j",
            "s",
            "fluency/org/b",
            4.0,
            Provenance("single", argmax="4", raw="4", note="refused"),
        ),
        Score("k", "s", "fluency/org/b", 2.0, Provenance("single", argmax="2", raw='["2"]')),
        Score("i", "s", "fluency", 3.9079, Provenance("panel", n=2, note="a: 4.316; org/b: 3.5")),
        Score("j", "s", "fluency", 4.1667, Provenance("panel", n=2, note="a: 4.333; org/b: 4")),
    )
    failures = (
        Failure("k", "s", "fluency", "panel", "IncompletePanel", "no score by a"),
        Failure(
            "k",
            "s",
            "fluency/a",
            "parse",
            "ParseError",
            "none of 2 draws has a score",
            '["Sorry.", "I shall not say."]',
            method="samples",
        ),
    )
    estimates = {("s", c.name): Estimate("mean", 4.0, 3.5, 4.5, 2, HOW) for c in columns[1:]}
    judges = {"a": {**JUDGE, "model": "a"}, "org/b": {"model": "org/b", "unmet": {}, "learned": {}}}
    info = read({"judges": judges, "status": "complete"})
    agreement = {
        "fluency": Estimate(
            "alpha", 0.8125, 0.5, 0.95, 2, "Krippendorff's alpha, interval distance, 2 judges"
        )
    }
    return Result(Table(samples, columns, scores, failures), estimates, info, agreement)


@pytest.fixture(scope="session")
def tested() -> Result:
    """Three systems on 12 items. `good` differs significantly from both others in `fluency` and from one in `overall`.
    `style` and `delta` have no significant difference; `delta` is lower-is-better.
    """
    columns = (
        Column("delta", "metric", Signature("delta"), better="lower"),
        Column("fluency", "criterion", Signature("fluency@1"), 1.0, 5.0, LABELS),
        Column("style", "criterion", Signature("style@1"), 1.0, 5.0, LABELS),
    )
    bonus = {"good": 2.0, "=fair": 0.5, "poor": 0.0}
    samples = tuple(
        Sample(f"i{k}", system, f"text {k}")
        for system in ("poor", "good", "=fair")
        for k in range(12)
    )
    rows = []
    for s in samples:
        k = int(s.item[1:]) + len(s.system)
        values = (k % 3 - 1.0, 1.0 + bonus[s.system] + k % 3, 1.0 + k % 5)
        rows += [
            Score(s.item, s.system, c.name, v, Provenance("single"))
            for c, v in zip(columns, values, strict=True)
        ]
    result = analyze(samples, columns, rows)
    return Result(
        result.table,
        result.estimates,
        read({"judges": {"m": {}}}),
        comparisons=result.comparisons,
        overall=result.overall,
        matrices=result.matrices,
    )


@pytest.fixture(scope="session")
def model_names() -> Result:
    """Eight systems with names like those of models, four criteria, and people's ratings."""
    systems = (
        "gpt-5.4-mini-2026-03-17",
        "claude-haiku-5-5-20260211",
        "textrank_baseline",
        "qwen3.5_72b_instruct_awq",
        "pegasus_cnn_dailymail",
        "bart-large-cnn",
        "org/lead-3",
        "s8",
    )
    criteria = ("relevance", "answers_request", "consistency", "fluency")
    rows = [
        {
            "item": f"i{n}",
            "system": system,
            "output": f"Text {n} of {system}.",
            **{name: 1 + (n * k + len(name)) % 5 for name in criteria},
            "human": {name: 1 + (n + k + len(name)) % 5 for name in criteria},
        }
        for n in range(6)
        for k, system in enumerate(systems, 1)
    ]
    return judge.evaluate(rows, judge_columns=criteria, scale="1-5", metrics=[], cache=False)


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """A function that opens HTML as a file, `at` an anchor, and returns Playwright's page.

    `page.said` collects every word on the console, every error and every request; at the end there has to be none.
    """
    contexts, messages = [], []

    def show(text: str, at: str = "", **options: Any) -> Any:
        file = tmp_path / "report.html"
        file.write_text(text, encoding="utf-8")
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.said = messages
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on(
            "request",
            lambda one: messages.append(one.url) if not one.url.startswith(file.as_uri()) else None,
        )
        page.goto(file.as_uri() + at)
        page.evaluate(
            "() => new Promise(done => setTimeout(done, 20))"
        )  # the page restores its controls after loading
        return page

    yield show
    for context in contexts:
        context.close()
    assert messages == []
