"""The metrics of a plan and their options."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from judge.commands import metric_setup, run_metadata
from judge.commands.preparation import prepare
from judge.config import load_config
from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.records import Column, Sample
from judge.metrics import MetricResult

ROWS = [
    {"item": "1", "system": s, "output": "the boat came", "references": ["a boat came"]}
    for s in "ab"
]


class Asking:
    """Counts vowels. Of no use to anybody."""

    def __init__(
        self, *, loud: bool = False, cache: Path | None, seed: int = 0, progress: Any = None
    ) -> None:
        self.given = {"loud": loud, "cache": cache, "seed": seed, "progress": progress}

    def score(self, samples: list[Sample]) -> MetricResult:
        return MetricResult((Column("asking", "metric", "asking|1"),), ())


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> None:
    load, names = plugins.load, plugins.names
    monkeypatch.setattr(
        plugins, "load", lambda kind, name: Asking if name == "asking" else load(kind, name)
    )
    monkeypatch.setattr(plugins, "names", lambda kind: [*names(kind), "asking"])


def made(**given: Any) -> dict[str, Any]:
    prepared = prepare(load_config(given={"criteria": [], **given}), ROWS)
    return prepared.metrics


def test_a_metric_is_given_what_it_asks_for(asking: None, tmp_path: Path) -> None:
    given = made(metrics=["asking"], cache=tmp_path, seed=3, set={"asking": {"loud": True}})[
        "asking"
    ].given
    assert (given["loud"], given["cache"], given["seed"]) == (True, tmp_path / "metrics", 3)
    assert (
        made(metrics=["asking"], seed=3, set={"asking": {"seed": 4}})["asking"].given["seed"] == 4
    )
    given["progress"](1, 2)
    assert made(metrics=["asking"], cache=False)["asking"].given["cache"] is None


def test_options_reach_the_metric() -> None:
    (column,) = made(metrics=["chrf"], set={"chrf": {"word_order": 2}})["chrf"].score([]).columns
    assert "|nw=2|" in column.signature


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"metrics": ["chrf"], "set": {"chrf": {"word_ordr": 2}}},
            r"--set chrf.word_ordr: unknown option 'word_ordr'; did you mean 'word_order'\?",
        ),
        (
            {"metrics": ["asking"], "set": {"asking": {"progress": 2}}},
            r"--set asking.progress: unknown option",
        ),
        (
            {"metrics": ["chrf"], "set": {"rouge": {"stem": False}}},
            r"--set rouge: this run does not have the metric 'rouge' \(it has: chrf\)",
        ),
        ({"metrics": ["rogue"]}, r"unknown metric 'rogue'; did you mean 'rouge'\?"),
    ],
)
def test_wrong_options_are_said(asking: None, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        made(**given)


def test_every_metric_describes_itself(asking: None) -> None:
    known = {metric.name: metric for metric in metric_setup.metrics()}
    assert list(known) == [*plugins.METRICS, "asking"]
    assert all(metric.description for metric in known.values())
    assert known["asking"].description == "Counts vowels"
    assert known["asking"].options == {"loud": False, "seed": 0}


def test_versions_that_a_run_writes_down_are_of_packages_that_are_always_there() -> None:
    project = tomllib.loads(
        (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    )
    core = {re.split(r"[\[<>=;~ ]", line)[0] for line in project["project"]["dependencies"]}
    assert set(run_metadata._PACKAGES) <= core
