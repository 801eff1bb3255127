"""One small result built by hand, for every format's golden file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from judge.records import Column, Estimate, Failure, Provenance, Sample, Score
from judge.report import Result
from judge.table import Table

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "report"
HOSTILE = "<script>alert(\"1\")</script></style>\x00 \u202egnp.exe | `x` **b** & 'q'\x1b[31m"
EVIL = "evil|<b>*sys*"
HOW = "95% BCa bootstrap over items, 2000 resamples, seed 0"

LABELS = ("1", "2", "3", "4", "5")
COLUMNS = (
    Column("rougeL", "metric", "rougeL|f|stem|tok=en|refs=max", 0.0, 1.0),
    Column("coherence", "criterion", "coherence@3f2a91|openai/small|t=0|logprobs|judge 0.1.0", 1.0, 5.0, LABELS),
    Column("一貫性", "criterion", "一貫性@77aa01|openai/small|t=0|single|judge 0.1.0", 1.0, 3.0, ("1", "2", "3")),
    Column("length", "metric", "length|characters"),
)
ITEMS = {
    "doc-1": ("The council met on Monday.\nIt voted to mend the old bridge.", ("The council will mend the bridge.",)),
    "文書2": ("市議会は月曜日に会議を開いた。橋を直すことを決めた。", ("議会は橋を直すと決めた。", "橋は直される。")),
    "doc-3": (HOSTILE, ()),
}
OUTPUTS = {
    "lead": ("The council met on Monday.", "市議会は月曜日に会議を開いた。", HOSTILE),
    "システム二": ("The bridge will be mended.", "橋を直すことが決まった。", "Nothing was decided."),
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
    "model": "small-judge",
    "provider": "openai",
    "base_url": "http://127.0.0.1:8000/v1",
    "language": {"name": "en", "how": "detected"},
    "weighting": "auto",
    "criteria": {
        "coherence": {
            "digest": "3f2a91" * 10,
            "title": "Coherence",
            "path": "prompts/summarization/coherence.jinja",
            "scale": list(LABELS),
            "steps": ["Read the source.", "Score <the> output."],
            "templates": {"coherence.jinja": "{{ source }}\n<output>{{ output }}</output>\n"},
        }
    },
    "usage": {"prompt_tokens": 12345, "completion_tokens": 678, "cached_tokens": 1024, "reasoning_tokens": 0},
    "requests": {"sent": 15, "cached": 2, "shared": 1, "retried": 1, "timeouts": 0, "failed": 4},
    "cost": {"usd": 0.0123, "note": "list price"},
    "unmet": {"logprobs": 6},
    "notes": ["scripted replies: no model was asked"],
    "versions": {"openai": "3.50.0", "numpy": "2.0.0"},
}


def _found(item: str, system: str, column: Column, value: float | None) -> Score | Failure:
    if value is None and column.kind == "metric":
        return Failure(item, system, column.name, "metric", "DataError", "nothing to measure")
    if value is None:
        return Failure(item, system, column.name, "parse", "ParseError", f"no score in reply: {HOSTILE}", HOSTILE)
    if column.kind == "metric":
        return Score(item, system, column.name, value, Provenance("metric"))
    if column.name == "一貫性":
        words = Provenance(
            "single", reason="原文と一致している。\n" + HOSTILE, raw="Score: 3", note="no logprobs <here>"
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
        Sample(item, system, texts[place], source, references, {"coherence": 4.0} if place == 0 else {})
        for place, (item, (source, references)) in enumerate(ITEMS.items())
        for system, texts in OUTPUTS.items()
    )
    scores = tuple(row for row in rows if isinstance(row, Score))
    failures = tuple(row for row in rows if isinstance(row, Failure))
    estimates = {key: Estimate("mean", mean, low, high, n, HOW) for key, (mean, low, high, n) in ESTIMATES.items()}
    return Result(Table(samples, COLUMNS, scores, failures), estimates, INFO)


@pytest.fixture(scope="session")
def golden() -> Callable[[str, str], None]:
    """Holds a text to a file a person has read; JUDGE_GOLDEN=write writes it anew, for reading again."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("JUDGE_GOLDEN") == "write":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        assert text == path.read_bytes().decode()

    return check
