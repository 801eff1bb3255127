"""Comparisons of the systems of a run: computed, stored and loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import Refused
from judge.providers.scripted import Reply, ScriptedProvider
from judge.results.loading import load
from judge.stats.derived_columns import Overall
from tests.factories import has_line

ROWS = [
    {
        "item": f"i{n}", "system": system, "source": f"The council met on day {n}.", "output": f"{system} day {n}",
        "references": [f"The council met on day {n}."],
    }
    for n in range(8)
    for system in ("old", "new")
]  # fmt: skip


def fond(request: Any) -> Reply:
    """Prefer the new system, more strongly in some items than in others."""
    text = request.messages[0]["content"]
    return {str(4 + ("day 2" in text) if "new day" in text else 2 + ("day 5" in text)): 1.0}


@pytest.fixture
def brief(tmp_path: Path) -> Path:
    """A criterion with three times the weight of the others."""
    path = tmp_path / "brief.jinja"
    path.write_text(
        "---\nscale: [1, 5]\nweight: 3\n---\nIs this brief? {{ output }}\n", encoding="utf-8"
    )
    return path


def test_a_run_compares_its_systems_and_weighs_its_criteria(brief: Path, tmp_path: Path) -> None:
    result = judge.evaluate(
        ROWS,
        ["relevance", str(brief)],
        model=ScriptedProvider(fond),
        metrics=["rouge"],
        out=tmp_path / "r",
    )
    by_column = {one.column: one for one in result.comparisons}
    assert list(by_column) == [
        "relevance",
        "brief",
        "rouge1",
        "rouge2",
        "rougeL",
        "rougeLsum",
        "overall",
    ]
    (apart,) = by_column["relevance"].differences
    assert (apart.system, apart.other, apart.estimate.value, apart.wins) == ("new", "old", 2.0, 8)
    assert (apart.estimate.p, apart.apart) == (2 / 2**8, True)
    assert by_column["relevance"].best == by_column["overall"].best == ("new",)
    assert {c.name: c.weight for c in result.table.columns}["brief"] == 3.0
    assert result.overall == Overall({"relevance": 0.25, "brief": 0.75}, 16, 16)
    # by hand: relevance and brief agree; new 4.125, old 2.125, mapped to 0–1
    assert result.estimates["new", "overall"].value == pytest.approx((4.125 - 1) / 4)
    assert result.estimates["old", "overall"].value == pytest.approx((2.125 - 1) / 4)
    assert result.repeats == {}
    assert load(tmp_path / "r") == result


def test_draws_say_how_far_they_scatter(tmp_path: Path) -> None:
    model = ScriptedProvider(lambda _: {"3": 0.5, "4": 0.5})
    result = judge.evaluate(
        ROWS, ["relevance"], model=model, weighting="samples", draws=4, metrics=[], out=tmp_path
    )
    assert {key: (e.name, e.value, e.n) for key, e in result.repeats.items()} == {
        (system, "relevance"): ("repeat_sd", pytest.approx((1 / 3) ** 0.5), 8)
        for system in ("old", "new")
    }
    assert result.overall is None
    assert load(tmp_path) == result


def test_a_killed_run_is_analyzed_from_its_stored_scores(tmp_path: Path) -> None:
    replies_left = [1] * 12

    def script(request: Any) -> Reply:
        return (
            fond(request)
            if replies_left and replies_left.pop()
            else Refused("out of money", stops="always")
        )

    with pytest.raises(Refused):
        judge.evaluate(
            ROWS,
            ["relevance"],
            model=ScriptedProvider(script),
            metrics=[],
            out=tmp_path / "r",
            max_concurrency=1,
        )
    (comparison,) = load(tmp_path / "r").comparisons
    assert comparison.differences[0].estimate.n == 6


def test_rankings_have_no_system_comparisons() -> None:
    ranked = judge.rank(ROWS, model=ScriptedProvider(lambda _: {"A": 0.7, "B": 0.3}))
    assert (ranked.comparisons, ranked.overall, ranked.repeats) == ((), None, {})


def test_a_run_against_one_system_is_stored(brief: Path, tmp_path: Path) -> None:
    rows = [
        *ROWS,
        *(row | {"system": "lead", "output": "Day"} for row in ROWS if row["system"] == "old"),
    ]
    options: dict[str, Any] = {
        "metrics": [],
        "out": tmp_path / "r",
        "against": "old",
        "cache": False,
    }
    result = judge.evaluate(
        rows, ["relevance", str(brief)], model=ScriptedProvider(fond), **options
    )
    for comparison in result.comparisons:
        assert [(d.system, d.other) for d in comparison.differences] == [
            ("new", "old"),
            ("lead", "old"),
        ]
        assert comparison.against == "old"
    (power,) = result.scatters("overall")
    assert (power.tests, power.level) == (2, 0.025)
    assert load(tmp_path / "r") == result
    assert has_line(result.report(), "new beats old", "overall")
    marks = {
        (row["system"], row["column"]): row["mark"]
        for row in json.loads(result.report("json"))["table"]
    }
    assert {system: marks[system, "overall"] for system in ("new", "old", "lead")} == {
        "new": "better",
        "old": "",
        "lead": "",
    }
