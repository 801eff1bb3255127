"""The public face of the package: what it offers, what it loads, how its layers hold."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import judge
from judge.core import plugins
from judge.core.errors import ConfigError, MissingExtra

HEAVY = (
    "numpy",
    "pandas",
    "pyarrow",
    "openai",
    "torch",
    "jinja2",
    "pydantic",
    "rich",
    "sacrebleu",
    "nltk",
    "asyncio",
)


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_judge_loads_nothing_heavy() -> None:
    assert modules_after("import judge").isdisjoint(HEAVY)


def test_help_loads_nothing_heavy() -> None:
    loaded = modules_after("import judge.cli")
    assert loaded.isdisjoint(
        {"numpy", "pandas", "pyarrow", "openai", "jinja2", "pydantic", "sacrebleu", "nltk"}
    )


@pytest.mark.slow
def test_a_run_without_requests_imports_no_client(tmp_path: Path) -> None:
    example = Path(__file__).parents[1] / "examples" / "custom_criterion" / "run.yaml"
    command = ["judge", "run", str(example), "--out", str(tmp_path), "--no-cache", "--quiet"]
    loaded = modules_after(
        f"import sys\nfrom judge.cli import main\nsys.argv = {command}\ntry: main()\nexcept SystemExit: pass"
    )
    assert (tmp_path / "report.html").exists()
    assert loaded.isdisjoint({"openai", "aiohttp", "torch", "multiprocessing"})


@pytest.mark.parametrize("name", judge.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(judge, name) is not None
    assert name in dir(judge)


def test_the_public_face_is_this_and_no_more() -> None:
    assert set(judge.__all__) == {
        "BudgetReached", "ConfigError", "CriterionError", "DataError", "DeadlineReached", "JudgeError", "MissingExtra",
        "ParseError", "ProviderError", "Reached", "Refused", "StorageError", "Transient",
        "Column", "Comparison", "Criterion", "CriterionDiff", "Estimate", "Example", "Failure", "Improvement",
        "JudgeCard",
        "Outcomes", "Outputs", "Plan", "Progress", "Provenance", "Provider", "Ranking", "Result",
        "RunComparison", "RunInfo", "RunPower",
        "Sample", "Scale", "Score", "ScriptedProvider", "Signature", "Slices", "Table", "Validation", "__version__",
        "card", "card_async", "compare", "diff", "evaluate", "evaluate_async", "generate", "improve", "label",
        "load_criterion", "load_result", "load_samples", "metrics", "plan", "rank", "rank_async", "render", "slices",
        "test", "test_async", "validate",
    }  # fmt: skip


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        judge.nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("former", "now"), [("audit", "card"), ("audit_async", "card_async"), ("Forecast", "Plan")]
)
def test_a_former_name_says_the_new_one(former: str, now: str) -> None:
    with pytest.raises(AttributeError, match=rf"use judge\.{now}$"):
        getattr(judge, former)
    assert hasattr(judge, now)


def test_the_version_is_the_distributions() -> None:
    assert judge.__version__ == version("textjudge")


@pytest.mark.parametrize("kind", ["metrics", "providers", "engines", "formats"])
def test_everything_registered_loads(kind: plugins.Kind) -> None:
    assert all(callable(plugins.load(kind, name)) for name in plugins.names(kind))


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="did you mean 'rouge'"):
        plugins.load("metrics", "rogue")


def test_a_missing_package_is_named_with_the_line_that_mends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(plugins.METRICS, "bleu", "no_such_package_anywhere:Bleu")
    with pytest.raises(MissingExtra, match=r"pip install 'textjudge\[bleu\]'"):
        plugins.load("metrics", "bleu")


def test_a_fault_in_our_own_module_is_not_called_a_missing_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(plugins.METRICS, "bleu", "judge.no_such_module:Bleu")
    with pytest.raises(ModuleNotFoundError):
        plugins.load("metrics", "bleu")


def test_another_packages_entry_point_comes_through_the_same_door(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Point:
        name = "mine"

        def load(self) -> type:
            return dict

    def entry_points(group: str) -> list[Point]:
        return [Point()] if group == "judge.metrics" else []

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    assert "mine" in plugins.names("metrics")
    assert plugins.load("metrics", "mine") is dict
