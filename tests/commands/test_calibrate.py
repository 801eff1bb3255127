"""calibrate=True: means on people's scale in the result, its files and every format; and refused options."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.config import RankConfig
from judge.core.errors import ConfigError
from judge.providers.scripted import ScriptedProvider
from judge.results.loading import load
from judge.run.preparation import prepare
from judge.stats.calibration import calibrate
from tests.factories import has_line

GRADES = {"x": (5, 4, 4, 3), "y": (3, 2, 3, 1)}
ROWS = [
    {
        "item": f"i{n}", "system": system, "source": "The bridge is to be mended.",
        "output": f"{system} says {grades[n % 4]} of i{n}",
        **({"human": {"relevance": min(5, grades[n % 4] + n % 2)}} if n < 16 else {}),
    }
    for n in range(40)
    for system, grades in GRADES.items()
]  # fmt: skip


def run(rows: Any = ROWS, **options: Any) -> judge.Result:
    provider = ScriptedProvider(
        lambda request: request.messages[0]["content"].split(" says ")[1][0]
    )
    options = {
        "criteria": ["relevance"],
        "metrics": [],
        "cache": False,
        "calibrate": True,
        **options,
    }
    return judge.evaluate(rows, model=provider, **options)


def test_a_run_that_is_asked_for_it_has_means_on_peoples_scale(tmp_path: Path) -> None:
    result = run(out=tmp_path)
    (calibration,) = result.calibrated
    assert (calibration,) == calibrate(result.table)
    assert [(one.system, one.estimate.n, one.judged) for one in calibration.means] == [
        ("x", 16, 24),
        ("y", 16, 24),
    ]
    assert load(tmp_path).calibrated == result.calibrated
    assert run(calibrate=False).calibrated == ()


def test_every_format_shows_them() -> None:
    result = run()
    value = f"{result.calibrated[0].means[0].estimate.value:.2f}"
    for format in ("console", "markdown", "html"):
        text = result.report(format, full=True).replace("&#39;", "'")
        assert "On people's scale" in text
        assert has_line(text, "Means on people's scale", "λ")
        assert value in text
    (stored,) = json.loads(result.report("json"))["calibrated"]
    assert stored["means"][0]["estimate"]["value"] == result.calibrated[0].means[0].estimate.value
    plain = run(calibrate=False)
    assert not any(
        "people's scale" in plain.report(name, full=True)
        for name in ("console", "markdown", "html")
    )
    assert "calibrated" not in json.loads(plain.report("json"))


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_pass_verdicts_cannot_calibrate_a_numeric_scale(better: str) -> None:
    rows = [
        {**{key: value for key, value in row.items() if key != "human"}, "human": {"bad": n % 2}}
        for n, row in enumerate(ROWS)
    ]
    criterion = {"name": "bad", "question": "Is it bad?", "better": better, "pass_at": 3}
    result = run(rows, criteria=[criterion])
    (calibrated,) = result.calibrated
    assert (calibrated.means, calibrated.differences) == ((), ())
    assert "people gave verdicts" in calibrated.note
    assert "On people's scale" not in result.report()


def test_they_come_from_the_rows() -> None:
    from judge.stats.analyze import analyze

    result = run()
    rows = list(result.table.rows())
    assert (
        analyze(result.table.samples, result.table.columns, rows, people=True).calibrated
        == result.calibrated
    )
    assert analyze(result.table.samples, result.table.columns, rows).calibrated == ()


def test_validate_takes_them_from_the_run_or_makes_them() -> None:
    result = run()
    assert judge.validate(result, n_resamples=20).calibrated == result.calibrated
    plain = run(calibrate=False)
    assert judge.validate(plain, n_resamples=20).calibrated == ()
    validation = judge.validate(plain, n_resamples=20, calibrate=True)
    assert validation.calibrated == result.calibrated
    assert has_line(validation.report("markdown"), "Means on people's scale", "λ")
    (calibrated,) = validation.calibrated
    best, *_ = calibrated.means
    shown = validation.report("console")
    assert f"On people's scale, {best.system} and " in " ".join(shown.split())
    line = next(line.split() for line in shown.splitlines() if line.startswith(f"{best.system} "))
    assert line[1] == f"{best.estimate.value:.2f}"
    assert line[2:4] == [f"[{best.estimate.low:.2f},", f"{best.estimate.high:.2f}]"]
    noted = replace(
        validation, calibrated=(replace(calibrated, note="not a random sample?"),)
    ).report("console")
    assert has_line(noted, "! relevance", "not a random sample")
    assert len(json.loads(validation.report("json"))["calibrated"]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"rows": [{**row, "human": {}} for row in ROWS]},
            "calibrate: no text.*relevance",
        ),
        (
            {"criteria": ["coherence"]},
            r"coherence; .*map=\{'rating\.coherence': 'COLUMN'\}",
        ),
        (
            {"criteria": [], "metrics": ["stats"]},
            "no judge scores to calibrate",
        ),
    ],
)
def test_calibration_without_ratings_is_an_error_before_any_request(
    options: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run(**options)
    with pytest.raises(ConfigError, match="no judge scores to calibrate"):
        prepare(
            RankConfig.load(options={"calibrate": True}),
            ROWS,
            providers=[ScriptedProvider(lambda _: "A")],
        )
