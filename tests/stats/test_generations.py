"""Several outputs of a system per item. Items are clusters with nested generations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judge
from judge.core.errors import DataError
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.result import Result
from judge.stats.bootstrap import item_means, mean_estimate
from judge.table import Table

COLUMN = Column("clear", "criterion", Signature(), None, None, values=())


def table(values: np.ndarray[Any, Any], systems: str = "a") -> Table:
    """Return a table of values of systems × items × generations."""
    samples, scores = [], []
    for system, items in zip(systems, values.tolist(), strict=True):
        for n, generations in enumerate(items):
            for k, value in enumerate(generations, 1):
                samples.append(Sample(f"i{n} ({k})", system, f"{n} {k}", cluster=f"i{n}"))
                scores.append(Score(f"i{n} ({k})", system, "clear", value, Provenance("single")))
    return Table(tuple(samples), (COLUMN,), tuple(scores))


def nested(
    rng: np.random.Generator, items: int, generations: int, icc: float
) -> np.ndarray[Any, Any]:
    """Return values of one system with mean 0 and variance 1; the share `icc` is between items."""
    of_items = rng.normal(0, np.sqrt(icc), (1, items, 1))
    values: np.ndarray[Any, Any] = of_items + rng.normal(
        0, np.sqrt(1 - icc), (1, items, generations)
    )
    return values


def test_a_mean_is_over_items_and_not_over_texts() -> None:
    values = np.array([[[1.0, 2.0, 3.0], [4.0, 4.0, 4.0], [2.0, 2.0, 5.0]]])
    data = table(values)
    assert data.items == ("i0", "i1", "i2")
    assert data.matrix("clear").tolist() == [[2.0, 4.0, 3.0]]
    estimate = item_means(data)["a", "clear"]
    assert (estimate.value, estimate.n) == (3.0, 3)


def test_only_intervals_over_items_cover_at_their_level() -> None:
    rng = np.random.default_rng(0)
    n_covering = 0
    n_covering_over_texts = 0
    for _ in range(400):
        values = nested(rng, 30, 3, 0.3)
        over_items = item_means(table(values))["a", "clear"]
        over_texts = mean_estimate(values.ravel())
        n_covering += (over_items.low or 0) <= 0 <= (over_items.high or 0)
        n_covering_over_texts += (over_texts.low or 0) <= 0 <= (over_texts.high or 0)
    assert 0.93 <= n_covering / 400 <= 0.97
    assert n_covering_over_texts / 400 <= 0.90


ROWS = [
    {"item": n, "system": system, "generation": k, "output": f"{system}{n}{k}"}
    for n in range(6)
    for system in "ab"
    for k in (1, 2)
]


def ask(prompt: str) -> int:
    return 2 if "\na" in prompt else 4


CRITERION = {"name": "clear", "question": "Is the text clear?", "show": []}


def test_data_with_generations_are_judged_by_item(tmp_path: Path) -> None:
    result: Result = judge.evaluate(
        ROWS, [CRITERION], model=ask, metrics=[], cache=False, out=tmp_path
    )
    assert len(result.table.samples) == 24
    assert {estimate.n for estimate in result.estimates.values()} == {6}
    assert [s.item for s in result.table.samples[:2]] == ["0 (1)", "0 (2)"]
    reloaded = judge.load_result(tmp_path)
    assert reloaded.estimates == result.estimates
    selected = result.where(item="3")
    assert [s.item for s in selected.table.samples] == ["3 (1)", "3 (2)", "3 (1)", "3 (2)"]


def test_several_outputs_without_a_generation_are_an_error() -> None:
    rows = [{name: cell for name, cell in row.items() if name != "generation"} for row in ROWS]
    with pytest.raises(DataError, match="column `generation`"):
        judge.evaluate(rows, [CRITERION], model=ask, metrics=[], cache=False)


def test_pairs_of_generations_are_one_item_in_a_ranking() -> None:
    result = judge.rank(
        [row | {"source": "q"} for row in ROWS], ["overall"], model=lambda _: "A", cache=False
    )
    (ranking,) = result.rankings
    assert ranking.pairs == 12
    assert {standing.items for standing in ranking.standings} == {6}


def test_a_system_generates_several_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.jinja").write_text("Say {{ source }}.", encoding="utf-8")
    (tmp_path / "w.yaml").write_text("- {reply: {Good: 0.5, Bad: 0.5}}\n", encoding="utf-8")
    systems: Any = {
        "often": {
            "prompt": tmp_path / "p.jinja",
            "model": f"scripted/{tmp_path}/w.yaml",
            "generations": 3,
        },
        "once": {"prompt": tmp_path / "p.jinja", "model": f"scripted/{tmp_path}/w.yaml"},
    }
    rows = [{"item": f"i{n}", "source": f"word {n}"} for n in range(8)]
    scores: Callable[[str], int] = lambda prompt: 5 if "\nGood\n" in prompt else 1  # noqa: E731
    result = judge.evaluate(
        rows,
        [CRITERION],
        model=scores,
        systems=systems,
        metrics=[],
        cache=False,
        out=tmp_path / "o",
    )
    assert len(result.table.samples) == 8 * 4
    assert result.estimates["often", "clear"].n == 8
    written = [
        json.loads(line) for line in (tmp_path / "o/outputs.jsonl").read_text("utf-8").splitlines()
    ]
    assert [(row["item"], row["system"], row.get("generation")) for row in written[:4]] == [
        ("i0", "often", "1"), ("i0", "often", "2"), ("i0", "often", "3"), ("i0", "once", None),
    ]  # fmt: skip
    loaded = judge.load_samples(tmp_path / "o/outputs.jsonl")
    assert [(s.item, s.cluster) for s in loaded[:4]] == [
        ("i0 (1)", "i0"),
        ("i0 (2)", "i0"),
        ("i0 (3)", "i0"),
        ("i0", ""),
    ]
    # The generations are random draws, so both outputs occur.
    assert len({s.output for s in loaded if s.system == "often"}) == 2
