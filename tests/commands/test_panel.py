"""Panels: columns of every judge, their mean and their agreement."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge
from judge.config import load_config
from judge.core.errors import ConfigError, Refused
from judge.core.records import IDENTICAL, Column, Failure, Provenance, Score
from judge.core.signature import Signature
from judge.providers.scripted import Reply, ScriptedProvider
from judge.run.preparation import prepare
from judge.stats import panels

ROWS = [
    {"item": item, "system": s, "source": "The source.", "output": f"{s} {item}"}
    for item in "1234"
    for s in "xy"
]


COLUMNS = [
    Column(f"c/{name}", "criterion", Signature(name), criterion="c", judge=name) for name in "ab"
]


def scale(low: int) -> Any:
    """Return a judge that gives x more than y, starting at `low`."""

    def script(request: Any) -> Reply:
        return {str(low + ("x " in request.messages[0]["content"])): 1.0}

    return script


def test_each_judge_has_columns_and_the_panel_has_the_mean() -> None:
    strict, kind = (
        ScriptedProvider(scale(1), model="strict"),
        ScriptedProvider(scale(4), model="kind"),
    )
    result = judge.evaluate(ROWS, ["relevance", "coherence"], model=[strict, kind], metrics=[])
    names = [c.name for c in result.table.columns]
    assert names == [
        f"{c}{judge}" for c in ("relevance", "coherence") for judge in ("", "/strict", "/kind")
    ]
    assert result.estimates["x", "relevance/strict"].value == 2.0
    assert result.estimates["x", "relevance"].value == 3.5
    assert {s.provenance.note for s in result.table.column_scores("coherence")} == {
        "strict: 2; kind: 5",
        "strict: 1; kind: 4",
    }
    assert result.table.signatures["relevance"].startswith("mean of 2 judges: relevance@")
    assert len(strict.seen) == len(kind.seen) == 16


def test_requests_are_counted_per_judge() -> None:
    one, other = (
        ScriptedProvider(scale(1), model="one"),
        ScriptedProvider(lambda _: Refused("no"), model="other"),
    )
    result = judge.evaluate(ROWS, ["relevance"], model=[one, other], metrics=[])
    judges = result.info.judges
    assert (judges["one"].requests.failed, judges["other"].requests.failed) == (0, 8)
    assert result.info.requests.failed == 8
    # The panel's 8 missing means are no failures of their own.
    assert result.failed == 8
    assert "8 × " in result.report(full=True)
    assert result.info.model == "one, other"


def test_agreement_is_1_for_equal_judges_and_lower_otherwise() -> None:
    same = [ScriptedProvider(scale(2), model=name) for name in "ab"]
    assert (
        judge.evaluate(ROWS, ["relevance"], model=same, metrics=[]).agreement["relevance"].value
        == 1.0
    )
    apart = [ScriptedProvider(scale(2), model="a"), ScriptedProvider(scale(4), model="b")]
    assert (
        judge.evaluate(ROWS, ["relevance"], model=apart, metrics=[]).agreement["relevance"].value
        < 0
    )
    constant = [ScriptedProvider(lambda _: {"3": 1.0}, model=name) for name in "ab"]
    assert judge.evaluate(ROWS, ["relevance"], model=constant, metrics=[]).agreement == {}


def test_a_panel_has_no_value_if_a_judge_failed() -> None:
    row = Score("1", "x", "c/a", 4.0, Provenance("single"))
    failed = Failure("1", "x", "c/b", "parse", "ParseError", "no score")
    (mean,) = panels.panel_rows(COLUMNS, [row, failed])
    assert isinstance(mean, Failure)
    assert (mean.column, mean.stage, mean.message) == ("c", "panel", "no score by b")


SCALES = {
    "": ((), ()),
    "1–5": (tuple("12345"), (1.0, 2.0, 3.0, 4.0, 5.0)),
    "labels": (("no", "yes"), (0.0, 1.0)),
}
A, B, C = "judge 0", "judge 1", "judge 2"


def panel_of(n: int, panel: Any, scale: str = "1–5") -> list[Column]:
    labels, values = SCALES[scale]
    names = [f"judge {k}" for k in range(n)]
    return [
        Column(
            f"c/{name}",
            "criterion",
            Signature(name),
            1.0,
            5.0,
            labels,
            "c",
            name,
            values=values,
            panel=panel,
        )
        for name in names
    ]


@pytest.mark.parametrize(
    ("panel", "scale", "votes", "value", "note"),
    [
        ("mean", "1–5", [(4.5, "5"), (1, "1")], 2.75, f"{A}: 4.5; {B}: 1"),
        ("median", "1–5", [(1, "1"), (4.9, "5"), (4.2, "4")], 4.2, f"{A}: 1; {B}: 4.9; {C}: 4.2"),
        ("median", "1–5", [(1, "1"), (5, "5"), (4, "4"), (3, "3")], 3.5, None),
        ("majority", "1–5", [(1, "1"), (4.3, "4"), (3.6, "4")], 4, f"{A}: 1; {B}: 4; {C}: 4"),
        # The likeliest label decides, not the mean: no judge says 3.
        ("majority", "1–5", [(2.8, "5"), (3.1, "5"), (3, "1")], 5, None),
        (
            "majority",
            "1–5",
            [(2, "2"), (5, "5")],
            3.5,
            f"{A}: 2; {B}: 5; no majority, most votes for 2 and 5",
        ),
        (
            "majority",
            "1–5",
            [(n, str(n)) for n in (1, 1, 2, 3, 4)],
            1,
            "…; no majority, most votes for 1",
        ),
        ("majority", "1–5", [(4.4, None), (3.6, None), (2.5, None)], 4, f"{A}: 4; {B}: 4; {C}: 2"),
        (
            "majority",
            "labels",
            [(0.9, "yes"), (0.2, "no"), (0.7, "yes")],
            1,
            f"{A}: yes; {B}: no; {C}: yes",
        ),
        (
            "majority",
            "",
            [(0.25, None), (0.25, None), (0.5, None)],
            0.25,
            f"{A}: 0.25; {B}: 0.25; {C}: 0.5",
        ),
    ],
)
def test_how_a_panel_combines_its_judges(
    panel: Any, scale: str, votes: Any, value: float, note: str | None
) -> None:
    columns = panel_of(len(votes), panel, scale)
    rows = [
        Score("1", "x", c.name, float(v), Provenance("logprobs", argmax=argmax), "y")
        for c, (v, argmax) in zip(columns, votes, strict=True)
    ]
    (row,) = panels.panel_rows(columns, rows)
    assert isinstance(row, Score)
    assert (row.value, row.column, row.opponent, row.provenance.n) == (
        pytest.approx(value),
        "c",
        "y",
        len(votes),
    )
    assert note is None or (row.provenance.note or "").endswith(note.removeprefix("…"))
    assert str(panels.panel_column(columns).signature).startswith(
        f"{panel} of {len(votes)} judges: {A}; {B}"
    )
    assert isinstance(panels.panel_rows(columns, rows[1:])[0], Failure)


@given(st.lists(st.integers(1, 5), min_size=2, max_size=9))
def test_majority_does_not_depend_on_the_order_of_judges(
    votes: list[int],
) -> None:
    def combined(panel: Any, votes: list[int]) -> Score:
        columns = panel_of(len(votes), panel)
        singles = [Provenance("single", argmax=str(vote)) for vote in votes]
        rows = [
            Score("1", "x", c.name, float(p.argmax or 0), p)
            for c, p in zip(columns, singles, strict=True)
        ]
        (row,) = panels.panel_rows(columns, rows)
        assert isinstance(row, Score)
        return row

    row = combined("majority", votes)
    most = max(map(votes.count, votes))
    assert row.value == pytest.approx(np.mean([v for v in set(votes) if votes.count(v) == most]))
    assert (row.provenance.argmax is None) == (most <= len(votes) / 2)
    assert combined("median", votes).value == np.median(votes)
    assert combined("majority", votes[::-1]).value == pytest.approx(row.value)


@pytest.mark.parametrize("panel", ["median", "majority"])
def test_a_stored_panel_is_filtered(panel: Any, tmp_path: Path) -> None:
    judges = [
        ScriptedProvider(scale(low), model=name) for name, low in (("a", 1), ("b", 4), ("c", 4))
    ]
    result = judge.evaluate(
        ROWS, ["relevance"], model=judges, metrics=[], panel=panel, out=tmp_path / "run"
    )
    assert {s.value for s in result.table.column_scores("relevance")} == {5.0, 4.0}
    stored = judge.load_result(tmp_path / "run")
    assert stored.table.columns[0].panel == panel
    assert stored.where(item=["1", "2"]).estimates["x", "relevance"].value == 5.0


def test_a_panel_of_one_judge_is_remarked_upon() -> None:
    result = judge.evaluate(
        ROWS, ["relevance"], model=ScriptedProvider(scale(2)), metrics=[], panel="median"
    )
    assert "panel had no effect." in result.info.notes
    assert result.table.columns[0].panel == "mean"


@pytest.mark.parametrize(("panel", "rate"), [("mean", 2 / 3), ("median", 1.0), ("majority", 1.0)])
def test_a_panel_ranks_by_its_combined_answer(panel: Any, rate: float) -> None:
    def prefers(winner: str) -> Any:
        return lambda request: "AB"[
            re.findall(r"\b([xy]) \d", request.messages[0]["content"])[0] != winner
        ]

    judges = [
        ScriptedProvider(prefers(winner), model=name)
        for name, winner in (("a", "x"), ("b", "x"), ("c", "y"))
    ]
    result = judge.rank(ROWS, ["overall"], model=judges, panel=panel)
    first = next(ranking for ranking in result.rankings if ranking.column == "overall")
    assert {s.system: s.win_rate for s in first.standings} == pytest.approx(
        {"x": rate, "y": 1 - rate}
    )


def test_equal_texts_stay_equal_texts() -> None:
    rows = [Score("1", "x", f"c/{name}", 0.5, Provenance(IDENTICAL), "y") for name in "ab"]
    (mean,) = panels.panel_rows(COLUMNS, rows)
    assert isinstance(mean, Score)
    assert (mean.column, mean.provenance.method, mean.opponent) == ("c", IDENTICAL, "y")


def test_judges_may_have_addresses_of_their_own(chat_server: Any) -> None:
    options = {
        "model": ["m", {"name": "m", "base_url": chat_server.url}],
        "base_url": "http://127.0.0.1:9/v1",
        "criteria": ["relevance"],
    }
    prepared = prepare(load_config(options=options), ROWS)
    assert list(prepared.judges) == ["openai/m@127.0.0.1:9/v1", f"openai/m@{chat_server.url[7:]}"]
    both = load_config(
        options={**options, "model": ["m", "decisions/m"], "base_url": chat_server.url}
    )
    assert list(prepare(both, ROWS).judges) == ["openai/m", "decisions/m"]


def test_refuses_the_same_judge_twice() -> None:
    with pytest.raises(ConfigError, match="a panel's judges differ"):
        judge.evaluate(
            ROWS,
            ["relevance"],
            model=[ScriptedProvider(scale(1)), ScriptedProvider(scale(2))],
            metrics=[],
        )
