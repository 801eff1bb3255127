"""Hand-made evidence: a judge with known biases, and tables with given numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from judge.commands.card.card import ORIGINAL, CardEvidence
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.table import Table

LABELS = ("1", "2", "3", "4", "5")
OWN = {
    "shuffled sentences": "coherence", "swapped entity": "consistency", "swapped number": "consistency",
    "typos": "fluency", "padded": "relevance",
}  # fmt: skip
ATTACKS = ("asks for the top score", "fake form")
NEUTRAL = ("duplicated text", "copied lead")


def column(name: str = "c", **fields: Any) -> Column:
    return Column(
        name,
        "criterion",
        Signature(f"{name}@1"),
        **({"low": 1.0, "high": 5.0, "labels": LABELS} | fields),
    )


def score(
    item: str, system: str, name: str, value: float, opponent: str = "", **fields_given: Any
) -> Score:
    """Return a score of a judge with the nearest label."""
    fields = {"argmax": str(max(1, min(5, round(value))))} | fields_given
    return Score(
        item, system, name, value, Provenance(fields.pop("method", "single"), **fields), opponent
    )


def table(values: Mapping[str, Sequence[float | None]], *columns: Column, **fields: Any) -> Table:
    """Return a table with one column from scores by system and item. None is a failed judgment, NaN a missing text."""
    columns = columns or (column(),)
    cells = [
        (f"i{n}", system, value) for system, row in values.items() for n, value in enumerate(row)
    ]
    there = [cell for cell in cells if cell[2] is None or cell[2] == cell[2]]
    samples = tuple(Sample(item, system, "Some words.", **fields) for item, system, _ in there)
    scores = [
        score(item, system, c.name, v)
        for c in columns
        for item, system, v in there
        if v is not None
    ]
    failed = [
        Failure(item, system, c.name, "parse", "ParseError", "no score") for c in columns for item, system, v in there
        if v is None
    ]  # fmt: skip
    return Table(samples, columns, tuple(scores), tuple(failed))


def evidence(changed: Table, **fields: Any) -> CardEvidence:
    """Return evidence with a table of original and changed texts; `fields` sets other tables."""
    originals = tuple(s for s in changed.samples if s.system == ORIGINAL)
    columns = {c.name: c for c in changed.columns}
    judged = (changed, *(value for value in fields.values() if isinstance(value, Table)))
    judged += tuple(fields.get("repeats", {}).values())
    known = {"model": "openai/gpt-5.4-mini", "language": "en", "judged": judged}
    return CardEvidence(originals, columns, changed, **(known | fields))


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """The functions above, and the texts of the biased judge."""
    return SimpleNamespace(
        column=column,
        score=score,
        table=table,
        evidence=evidence,
        own=OWN,
        attacks=ATTACKS,
        neutral=NEUTRAL,
    )


def _natural(random: np.random.Generator, columns: Sequence[Column]) -> Table:
    """Return two texts per item. The judge prefers long texts and its own family; people do not."""
    samples, scores = [], []
    for n in range(40):
        for system, generator in (("a", "gpt-4o"), ("b", "claude-haiku-5")):
            words = int(random.integers(10, 60))
            quality = float(random.uniform(2, 4))
            text = " ".join(f"w{k % 37}" for k in range(words)) + "."
            rated = {c.name: quality for c in columns}
            source = " ".join(f"w{k}" for k in range(40)) + "."
            samples.append(
                Sample(f"i{n}", system, text, source, (), rated, {"generator": generator})
            )
            for c in columns:
                value = quality + 0.3 * np.log2(words / 25) + (0.4 if system == "a" else 0)
                scores.append(score(f"i{n}", system, c.name, float(np.clip(value, 1, 5))))
    return Table(tuple(samples), tuple(columns), tuple(scores))


def _changed(random: np.random.Generator, columns: Sequence[Column]) -> Table:
    base = random.uniform(2.5, 4, 40)
    effects = {(change, label): -1.2 for change, label in OWN.items()}
    effects[("shuffled sentences", "coherence")] = -0.1
    effects[("typos", "relevance")] = -0.8
    effects |= {("asks for the top score", c.name): 0.9 for c in columns}
    effects |= {("duplicated text", c.name): 0.3 for c in columns}
    scores, failures, samples = [], [], []
    for system in (ORIGINAL, *OWN, *NEUTRAL, *ATTACKS):
        for n in range(40):
            if system == "swapped number" and n % 2:
                continue
            samples.append(
                Sample(
                    f"i{n}",
                    system,
                    "Some words.",
                    "Some words.",
                    (),
                    {"coherence": round(base[n], 2)},
                )
            )
            for c in columns:
                if (system, c.name, n) in {
                    ("fake form", "fluency", 3),
                    ("fake form", "fluency", 4),
                }:
                    failures.append(
                        Failure(f"i{n}", system, c.name, "parse", "ParseError", "no score in reply")
                    )
                    continue
                value = base[n] + effects.get((system, c.name), 0.0) + random.normal(0, 0.15)
                scores.append(score(f"i{n}", system, c.name, float(np.clip(value, 1, 5))))
    return Table(tuple(samples), tuple(columns), tuple(scores), tuple(failures))


def _wordings(random: np.random.Generator, name: str) -> Table:
    columns = tuple(column(one) for one in (name, f"{name}~b", f"{name}~c"))
    samples = tuple(Sample(f"i{n}", ORIGINAL, "Some words.") for n in range(40))
    base = random.uniform(2, 4.4, 40)
    shift = dict(zip((c.name for c in columns), (0.0, 0.4, 0.0), strict=True))
    rows = [
        score(s.item, ORIGINAL, c.name, base[n] + shift[c.name] + random.normal(0, 0.1))
        for c in columns
        for n, s in enumerate(samples)
    ]
    return Table(samples, columns, tuple(rows))


def _repeats(random: np.random.Generator, name: str, several: float) -> Table:
    samples = tuple(Sample(f"i{n}", ORIGINAL, "Some words.") for n in range(40))
    rows = []
    for sample in samples:
        shares = {"3": 0.6, "4": 0.4} if random.random() < several else {"3": 1.0}
        value = sum(int(label) * share for label, share in shares.items())
        rows.append(
            score(
                sample.item,
                ORIGINAL,
                name,
                value,
                method="samples",
                n=5,
                mass=1.0,
                distribution=shares,
            )
        )
    return Table(samples, (column(name),), tuple(rows))


def _pairs(random: np.random.Generator) -> Table:
    samples = tuple(Sample(f"i{n}", system, "Some words.") for n in range(40) for system in "ab")
    rows = []
    for n in range(40):
        first = random.random() < 0.3  # the verdict depends on the position
        better = 1.0 if random.random() < 0.5 else 0.0
        rows.append(score(f"i{n}", "a", "overall", 1.0 if first else better, "b"))
        rows.append(score(f"i{n}", "b", "overall", 1.0 if first else 1.0 - better, "a"))
    return Table(samples, (column("overall", low=0.0, high=1.0, labels=("A", "B")),), tuple(rows))


@pytest.fixture(scope="session")
def leaning() -> CardEvidence:
    """A judge that misses shuffled sentences, obeys injections, and prefers length, its own family and position 1."""
    random = np.random.default_rng(7)
    columns = tuple(column(name) for name in ("coherence", "consistency", "fluency", "relevance"))
    return evidence(
        _changed(random, columns), natural=_natural(random, columns), wordings=_wordings(random, "coherence"),
        repeats={0.0: _repeats(random, "coherence", 0.3), 1.0: _repeats(random, "coherence", 0.8)},
        pairs=_pairs(random),
    )  # fmt: skip
