"""The metrics of a plan and their options."""

from __future__ import annotations

import pickle
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from judge.config import load_config
from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.records import Column, Sample
from judge.core.signature import Signature
from judge.execution.questions import DeferredClient
from judge.metrics import BaseMetric, MetricContext, MetricResult
from judge.metrics.base import setting
from judge.metrics.common import text_option
from judge.run import metric_setup, run_metadata
from judge.run.preparation import prepare
from tests.factories import has_line

ROWS = [
    {"item": "1", "system": s, "output": "the boat came", "references": ["a boat came"]}
    for s in "ab"
]


@dataclass(frozen=True, kw_only=True)
class Asking(BaseMetric):
    """Counts vowels."""

    name: ClassVar[str] = "asking"
    loud: bool = False
    vowels: str = setting("aeiou", text_option)

    def score(self, samples: list[Sample]) -> MetricResult:
        return MetricResult((Column("asking", "metric", Signature("asking", "1")),), ())


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> None:
    load, names = plugins.load, plugins.names
    monkeypatch.setattr(
        plugins, "load", lambda kind, name: Asking if name == "asking" else load(kind, name)
    )
    monkeypatch.setattr(plugins, "names", lambda kind: [*names(kind), "asking"])


def prepared_metrics(**options: Any) -> dict[str, Any]:
    prepared = prepare(load_config(options={"criteria": [], **options}), ROWS)
    return prepared.metrics


def test_a_metric_gets_the_context_it_requests(asking: None, tmp_path: Path) -> None:
    plan = {"cache": tmp_path, "seed": 3, "language": "ko", "set": {"asking": {"loud": True}}}
    metric = prepared_metrics(metrics=["asking"], **plan)["asking"]
    assert metric.loud
    assert metric.context.cache == tmp_path / "metrics"
    assert (metric.context.seed, metric.context.language) == (3, "ko")
    metric.context.progress(1, 2)
    assert prepared_metrics(metrics=["asking"], cache=False)["asking"].context.cache is None


def test_an_option_of_a_metric_takes_precedence_over_the_seed_of_the_run() -> None:
    def signature(**options: Any) -> str:
        result = prepared_metrics(metrics=["bleu_corpus"], seed=3, **options)["bleu_corpus"].score(
            []
        )
        return str(result.columns[0].signature)

    assert "|seed=3|" in signature()
    assert "|seed=4|" in signature(set={"bleu_corpus": {"seed": 4}})


def test_a_pickled_context_does_not_contain_the_run() -> None:
    context = MetricContext(Path("c"), lambda completed, total: None, 3, "ko", DeferredClient())
    sent = pickle.loads(pickle.dumps(context))
    assert sent == MetricContext(Path("c"), seed=3, language="ko")


@pytest.mark.parametrize("other", [object, lambda **options: None])
def test_refuses_a_plugin_class_that_is_not_a_metric(
    monkeypatch: pytest.MonkeyPatch, other: Any
) -> None:
    monkeypatch.setattr(plugins, "load", lambda kind, name: other)
    with pytest.raises(ConfigError, match=r"metric mine is wrong: .*judge\.metrics\.BaseMetric"):
        prepared_metrics(metrics=["mine"])


def test_options_reach_the_metric() -> None:
    (column,) = (
        prepared_metrics(metrics=["chrf"], set={"chrf": {"word_order": 2}})["chrf"]
        .score([])
        .columns
    )
    assert "|nw=2|" in str(column.signature)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metrics": ["chrf"], "set": {"chrf": {"word_ordr": 2}}},
            r"--set chrf\.word_ordr: .*'word_order'",
        ),
        (
            {"metrics": ["asking"], "set": {"asking": {"context": 2}}},
            r"--set asking\.context: unknown option",
        ),
        (
            {"metrics": ["asking"], "set": {"asking": {"loud": 2}}},
            r"asking\.loud.*true or false, not 2",
        ),
        (
            {"metrics": ["asking"], "set": {"asking": {"vowels": ""}}},
            r"asking\.vowels.*a text, not ''",
        ),
        (
            {"metrics": ["chrf"], "set": {"rouge": {"stem": False}}},
            r"--set rouge: .*'rouge' \(it has: chrf\)",
        ),
        ({"metrics": ["rogue"]}, "'rogue'.*'rouge'"),
    ],
)
def test_wrong_options_are_config_errors(
    asking: None, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        prepared_metrics(**options)


def test_every_metric_describes_itself(asking: None) -> None:
    known = {metric.name: metric for metric in metric_setup.metrics()}
    assert list(known) == [*plugins.METRICS, "asking"]
    assert all(metric.description for metric in known.values())
    assert known["asking"].description == "Counts vowels"
    assert known["asking"].options == {"loud": False, "vowels": "aeiou"}


def test_versions_that_a_run_writes_down_are_of_packages_that_are_always_there() -> None:
    project = tomllib.loads(
        (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    )
    core = {re.split(r"[\[<>=;~ ]", line)[0] for line in project["project"]["dependencies"]}
    assert set(run_metadata._PACKAGES) <= core


def _conversation(item: str, *roles: str) -> dict[str, Any]:
    messages = [{"role": role, "content": f"{role} says {item}"} for role in roles]
    return {"item": item, "system": "bot", "messages": messages}


def test_a_note_says_that_metrics_measure_only_the_last_answer_of_conversations() -> None:
    one_answer = _conversation("one", "user", "assistant")
    two_answers = _conversation("two", "user", "assistant", "user", "assistant")

    def has_note(rows: list[dict[str, Any]]) -> bool:
        prepared = prepare(load_config(options={"criteria": [], "metrics": ["distinct"]}), rows)
        return any(
            has_line(note, "only the last answer", "1 conversation") for note in prepared.notes
        )

    assert has_note([one_answer, two_answers])
    assert not has_note([one_answer])
