"""The examples run, and their READMEs state what their results show.

`JUDGE_GOLDEN=write pytest tests/test_examples.py` renews the report of examples/regression; then read the diff.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import judge
from judge.cli import app
from judge.config import load_config
from judge.core.claims import decode
from judge.results.loading import load
from judge.text import installed

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
LANGUAGES = {"summaries_ja": "ja", "summaries_ko": "ko", "summaries_zh": "zh"}
"""Examples that need the extra cjk."""
RUNS = (
    "claims",
    "conversations",
    "compare_systems",
    "custom_criterion",
    "human_calibration",
    "prompt_change",
    "qags_en",
    "qags_ja",
    *LANGUAGES,
)
Make = Callable[[str], Path]


@pytest.fixture(scope="module")
def folders() -> dict[str, Path]:
    """Return the folders of the examples that have run, by name."""
    return {}


@pytest.fixture
def make(
    folders: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Make:
    """Return a function that runs an example once, with the command of its README, and returns its folder."""

    def run(name: str) -> Path:
        if name in LANGUAGES and not installed(LANGUAGES[name]):
            pytest.skip("needs textjudge[cjk]")
        if name not in folders:
            out = tmp_path_factory.mktemp(name)
            monkeypatch.chdir(ROOT)
            done = CliRunner().invoke(
                app,
                [
                    "rank" if name == "pairwise" else "run",
                    f"examples/{name}/run.yaml",
                    "--out",
                    str(out),
                    "--quiet",
                ],
            )
            assert done.exit_code == 0, done.output
            folders[name] = out
        return folders[name]

    return run


def test_the_regression_suite_writes_the_report_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    suite, hurts = (
        "examples/regression/grounded.judge.yaml",
        "examples/regression/hurts/grounded.jinja",
    )
    written = str(tmp_path / "report.md")
    done = CliRunner().invoke(
        app, ["test", suite, "--criteria", hurts, "--markdown", written, "--quiet"]
    )
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 1, done.output
    golden = EXAMPLES / "regression" / "report.md"
    if os.environ.get("JUDGE_GOLDEN") == "write":
        golden.write_text(Path(written).read_text("utf-8"), "utf-8")
    assert Path(written).read_text("utf-8") == golden.read_text("utf-8")


def test_every_example_is_listed_and_made_by_make() -> None:
    folders = {
        path.name
        for path in EXAMPLES.iterdir()
        if path.is_dir() and not path.name.startswith((".", "_"))
    }
    assert folders == {*RUNS, "pairwise", "quickstart", "regression", "ray"}
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    assert set(re.findall(r"\[([\w.]+)\]\(", listed)) == {*folders, "notebook.ipynb"}
    makefile = (ROOT / "Makefile").read_text("utf-8")
    target = re.search(r"(?ms)^examples:(.*?)^\w", makefile)
    assert {name for name in folders if not re.search(rf"\b{name}\b", target[1])} == {"ray"}


def test_the_quickstart_prints_the_finding(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "quickstart" / "quickstart.py"))
    assert "plain beats lively" in capsys.readouterr().out


def test_the_readme_of_the_calibration_has_the_numbers_of_its_result(make: Make) -> None:
    result = load(make("human_calibration"))
    rated = {sample.item for sample in result.table.samples if sample.human}
    assert (len(rated), len(result.table.items)) == (12, 36)
    (calibrated,) = result.calibrated
    (difference,) = calibrated.differences
    assert difference.apart
    assert difference.people.low < 0
    numbers = [
        n
        for one in calibrated.means
        for n in (one.estimate.value, result.estimates[one.system, "relevance"].value)
    ]
    for estimate in (difference.people, difference.estimate):
        numbers += [estimate.value, estimate.low, estimate.high]
    readme = (EXAMPLES / "human_calibration" / "README.md").read_text("utf-8")
    corrected = readme.split("`calibrate: true`")[1].split("`judge validate`")[0]
    assert re.findall(r"−?\d\.\d\d", corrected) == [
        f"{number:.2f}".replace("-", "−") for number in numbers
    ]
    assert f"{difference.effective_ratings:.0f} rated messages" in corrected


@pytest.mark.parametrize("name", [name for name in RUNS if "qags" not in name and name != "claims"])
@pytest.mark.slow
def test_all_is_scored_by_one_rule_for_each_prompt(name: str) -> None:
    if not installed(LANGUAGES.get(name, "en")):
        pytest.skip("needs textjudge[cjk]")
    config = load_config(EXAMPLES / name / "run.yaml")
    file = config.model[0].name.removeprefix("scripted/")
    provider = judge.ScriptedProvider.from_file(file)
    result = judge.evaluate(
        config.data, config.criteria, model=provider, reply=config.reply, weighting="single", metrics=[], cache=False,
        systems=config.systems,
    )  # fmt: skip
    assert result.table.scores
    assert result.failures == ()
    prompts = [
        "\n".join(message["content"] for message in request.messages) for request in provider.seen
    ]
    rules = [
        entry["when"] for entry in yaml.safe_load(Path(file).read_text("utf-8")) if "when" in entry
    ]
    rules = [[rule] if isinstance(rule, str) else rule for rule in rules]
    matches = [
        [n for n, texts in enumerate(rules) if all(text in prompt for text in texts)]
        for prompt in prompts
    ]
    assert [len(match) for match in matches] == [1] * len(prompts)
    assert {n for match in matches for n in match} == {*range(len(rules))}


def test_the_readme_of_the_claims_has_the_numbers_of_its_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(EXAMPLES / "claims")
    provider = judge.ScriptedProvider.from_file("judge.yaml")
    result = judge.evaluate("data.jsonl", [], metrics="claims", model=provider, cache=False)
    assert (provider.unused, result.failures) == ({}, ())
    readme = (EXAMPLES / "claims" / "README.md").read_text("utf-8")
    for system in result.table.systems:
        names = ("claims_precision", "claims_recall", "claims_f1")
        values = " ".join(f"{result.estimates[system, name].value:.3f}" for name in names)
        assert " ".join(re.search(rf"(?m)^.*{system}(.*)$", readme)[1].split()) == values
    claims = {c.text: c for row in result.table.scores for c in decode(row.provenance.raw)}
    assert len(claims) == 27
    assert all(claim.evidence for claim in claims.values())
    assert {text for text, claim in claims.items() if claim.span is None} == set()


def test_a_custom_criterion_has_labels_reasons_and_columns_of_its_own(make: Make) -> None:
    support = load(make("custom_criterion"))
    column = "resolves_the_request"
    means = {system: support.estimates[system, column].value for system in support.table.systems}
    assert means == pytest.approx({"prompt_v1": 1.5 / 6, "prompt_v2": 5 / 6})
    politeness = {system: support.estimates[system, "polite"].value for system in means}
    assert politeness == pytest.approx({"prompt_v1": 29 / 6, "prompt_v2": 23 / 6})
    scores = support.table.column_scores(column)
    reasons = {(s.item, s.system): s.provenance.reason or "" for s in scores}
    assert "one that the policy forbids" in reasons["T-104", "prompt_v2"]
    folder = EXAMPLES / "custom_criterion"
    arguments = [
        "criteria",
        "render",
        str(folder / "resolves_the_request.jinja"),
        str(folder / "data.jsonl"),
    ]
    done = CliRunner().invoke(app, [*arguments, "--item", "T-106"])
    assert done.exit_code == 0, done.output
    for text in (
        "It doesn't fit. What now?",
        "Exchanges for another size",
        "unresolved, partly, resolved",
    ):
        assert text in done.output
    assert "prompt_v1" not in done.output


def test_the_readme_of_the_conversations_has_the_numbers_of_its_result(make: Make) -> None:
    result = load(make("conversations"))
    means = {key: estimate.value for key, estimate in result.estimates.items()}
    assert means["model-a", "answers_request"] == means["model-a", "coherent"] == 5
    assert means["model-b", "answers_request"] == pytest.approx(10 / 3)
    assert means["model-b", "coherent"] == pytest.approx(3)
    readme = (EXAMPLES / "conversations" / "README.md").read_text("utf-8")
    assert "`model-b` scores 3.33 and 3 on average" in readme


def test_the_japanese_conversations_are_judged_with_their_own_replies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(EXAMPLES / "conversations")
    config = load_config(Path("run_ja.yaml"))
    provider = judge.ScriptedProvider.from_file("replies_ja.yaml")
    result = judge.evaluate(
        config.data, config.criteria, model=provider, weighting="single", metrics=[], cache=False
    )
    assert (provider.unused, result.failures) == ({}, ())
    assert result.info.language_name == "ja"


@pytest.mark.slow
def test_the_demo_tells_the_story_of_its_readme(make: Make) -> None:
    result = load(make("compare_systems"))
    assert (len(result.table.items), len(result.table.systems)) == (24, 4)
    note = "The replies in this demo were written by hand, and the ratings are invented."
    for format in ("console", "markdown", "html"):
        assert note in " ".join(result.report(format).split()), format
    (overall,) = [comparison for comparison in result.comparisons if comparison.column == "overall"]
    assert overall.best == ("large-model",)
    assert [(d.system, d.other) for d in overall.differences if not d.apart] == [
        ("first-lines", "small-model")
    ]
    assert overall.ranks[-1].system == "rouge-tuned"
    for column in ("rouge1", "rouge2", "rougeL", "bleu", "chrf"):
        (best,) = [
            comparison.best for comparison in result.comparisons if comparison.column == column
        ]
        assert best == ("rouge-tuned",), column
    scores = {(s.item, s.system, s.column): s for s in result.table.scores}
    false = [
        item for item in result.table.items if scores[item, "rouge-tuned", "consistency"].value <= 2
    ]
    assert len(false) == 18
    film = scores["film", "rouge-tuned", "consistency"]
    assert film.value == 1
    assert 'one added "not"' in (film.provenance.reason or "")
    assert scores["film", "rouge-tuned", "rouge1"].value == pytest.approx(0.98, abs=0.01)


def test_ranking_example_matches_its_readme(make: Make) -> None:
    (ranking,) = load(make("pairwise")).rankings
    assert [s.system for s in ranking.standings] == ["plain", "brief", "chatty"]
    assert (ranking.pairs, ranking.standings[0].ties) == (15, 1)
    assert ranking.flip_rate == pytest.approx(
        1 / 14
    )  # percent alone, of the 14 pairs that a judge was asked about


@pytest.mark.parametrize("language", ["en", "ja"])
def test_qags_tells_the_false_summary_from_the_faithful_one(language: str, make: Make) -> None:
    result = load(make(f"qags_{language}"))
    assert result.failures == ()
    value = {system: result.estimates[system, "qags_f1"].value for system in result.table.systems}
    assert value["faithful"] >= value["shifted"] > value["padded"] > value["false"]
    readme = (EXAMPLES / f"qags_{language}" / "README.md").read_text("utf-8")
    for system, value_of_qags in value.items():
        assert f"| {system} | {value_of_qags:.3f} |" in readme
    if language == "ja":
        values = [result.estimates[system, "qags_chrf"].value for system in result.table.systems]
        assert values == sorted(values, reverse=True)
        assert len(set(values)) == 4
        for system, value_of_chrf in zip(result.table.systems, values, strict=True):
            assert f"| {system} | {value[system]:.3f} | {value_of_chrf:.3f} |" in readme


RUN_NOTEBOOK = """
import sys
from pathlib import Path
import nbclient
import nbformat
book = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": sys.argv[2]}}).execute()
nbformat.write(book, Path(sys.argv[2]) / "done.ipynb")
"""
LOOPBACK = "import pytest_socket\npytest_socket.socket_allow_hosts(['127.0.0.1', '::1'], allow_unix_socket=True)\n"


def _cells(notebook: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(notebook.read_text("utf-8"))["cells"]
    return cells


def _shown(cell: dict[str, Any], kind: str = "text/plain") -> str:
    """What a cell shows in the end and what it prints, without colours."""
    texts = [
        output.get("text") or output.get("data", {}).get(kind, "") for output in cell["outputs"]
    ]
    return re.sub(r"\x1b\[[\d;]*m", "", "\n".join("".join(text) for text in texts))


def test_notebook_is_stored_without_outputs() -> None:
    cells = _cells(EXAMPLES / "notebook.ipynb")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [
        cell["id"] for cell in code if cell["outputs"] or cell["execution_count"] is not None
    ] == []
    assert [
        cell["id"] for cell in cells if not re.fullmatch(r"[a-z-]+", cell["id"])
    ] == []  # given by hand: they stay
    assert len({cell["id"] for cell in cells}) == len(cells)


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    for name in ("nbclient", "ipykernel"):
        pytest.importorskip(name, reason="needs Jupyter's kernel: pip install textjudge[dev]")
    kernel = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "judge",
    }
    written = {
        "jupyter/kernels/python3/kernel.json": json.dumps(kernel),
        "guard/sitecustomize.py": LOOPBACK,
    }
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, "utf-8")
    folders = (
        "HOME",
        "IPYTHONDIR",
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_RUNTIME_DIR",
        "JUPYTER_DATA_DIR",
    )
    surroundings = os.environ | dict.fromkeys(folders, str(tmp_path / "jupyter"))
    surroundings |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    surroundings |= {"PYTHONPATH": f"{tmp_path / 'guard'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-c", RUN_NOTEBOOK, str(EXAMPLES / "notebook.ipynb"), str(tmp_path)]
    done = subprocess.run(
        command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    cells = {
        cell["id"]: cell for cell in _cells(tmp_path / "done.ipynb") if cell["cell_type"] == "code"
    }
    assert "16" in _shown(cells["plan"])
    assert "price" in _shown(cells["plan"])
    assert "new beats old" in _shown(cells["judge"], "text/html")
    assert "NaN" in _shown(cells["frame"])
    assert "I would rather not put a number on this." in _shown(cells["failures"])
    assert "0 new failures, 1 gone" in _shown(cells["compare"])
    assert "16 scores, 0 failures" in _shown(cells["page"])


@pytest.mark.parametrize(("prompt", "code"), [("complete", 0), ("short", 1)])
def test_a_prompt_that_drops_facts_fails_its_suite(
    prompt: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, ["test", f"examples/prompt_change/{prompt}.judge.yaml"])
    assert done.exit_code == code, done.output
