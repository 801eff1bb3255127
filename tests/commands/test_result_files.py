"""judge reads result files of other tools as data with scores."""

from __future__ import annotations

import csv
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import judge
from judge.core.errors import DataError
from judge.data.result_files import read_result_file
from judge.data.rows import SUFFIXES
from tests.factories import has_line

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests/data/result_files"
LM_EVAL = "samples_sums_2026-11-20T10-00-00.000000.jsonl"
TEXTS: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "inspect.json": ("Inspect", {
        "match": {"1": 1, "2": 0, "3": None},
        "judge.tone": {"1": 4, "2": 2, "3": None},
        "judge.length": {"1": 3, "2": 5, "3": None},
    }),
    "promptfoo.json": ("promptfoo", {
        "pass": {"1": 1, "2": 0, "3": None},
        "icontains": {"1": 1, "2": 0, "3": None},
        "tone": {"1": 0.8, "2": 0.2, "3": None},
    }),
    "deepeval.json": ("DeepEval", {
        "Answer Relevancy": {"refund": 0.75, "delivery": None},
        "Bias": {"refund": 0, "delivery": 0.9},
    }),
    "mlflow.csv": ("MLflow", {
        "tone": {"Peru": 4, "Fiji": None, "Norway": 2},
        "exact": {"Peru": 1, "Fiji": 0, "Norway": 0},
    }),
    "mlflow_models.csv": ("MLflow", {
        "toxicity": {"1": 0.1, "2": 0.4},
        "relevance": {"1": 5, "2": 2},
    }),
    "openai_evals.jsonl": ("OpenAI Evals", {
        "Label match": {"0": 1, "1": 0, "2": None},
        "Tone": {"0": 6, "1": 3, "2": None},
    }),
    LM_EVAL: ("the LM Evaluation Harness", {
        "exact_match.number": {"0": 1, "1": 1},
        "exact_match.strict": {"0": 0, "1": 1},
    }),
}  # fmt: skip
"""The tool of each file, and its scores by criterion and item."""


def evaluate(path: Path, **options: Any) -> judge.Result:
    return judge.evaluate(path, cache=False, metrics=(), **options)


def changed(tmp_path: Path, name: str, change: Callable[[Any], None]) -> Path:
    """Return a copy of a JSON file with a change."""
    document = json.loads((FILES / name).read_text("utf-8"))
    change(document)
    path = tmp_path / name
    path.write_text(json.dumps(document), "utf-8")
    return path


@pytest.mark.parametrize("name", TEXTS)
def test_scores_equal_those_of_the_same_table(name: str, tmp_path: Path) -> None:
    tool, scores = TEXTS[name]
    result = evaluate(FILES / name)
    assert has_line(map(str, result.info.remarks), "result file", tool)
    assert [column.name for column in result.table.columns] == list(scores)
    path = tmp_path / "scores.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item", "system", *scores])
        for item in next(iter(scores.values())):
            cells = [scores[criterion][item] for criterion in scores]
            writer.writerow([item, result.table.samples[0].system, *cells])
    better = {column.name: column.better for column in result.table.columns}
    expected = evaluate(path, judge_columns=better)
    for key, estimate in expected.estimates.items():
        assert result.estimates[key].value == pytest.approx(estimate.value)
    assert len(result.failures) == len(expected.failures)


def test_texts_references_reasons_and_models_come_with_the_scores() -> None:
    result = evaluate(FILES / "inspect.json")
    first, second, failed = result.table.samples
    assert (first.item, first.system) == ("1", "openai/gpt-5.4-mini")
    assert (first.source, first.output) == ("Name the capital of Peru.", "Lima.")
    assert first.extra["judge.reason"] == "Short and correct."
    assert second.references == ("Suva", "Suva City")
    assert second.source is not None
    assert second.source.endswith("user: Name the capital of Fiji.")
    assert failed.output == ""


def test_a_failed_sample_is_a_failure_with_the_error_of_the_tool() -> None:
    failures = evaluate(FILES / "inspect.json").failures
    assert {failure.item for failure in failures} == {"3"}
    assert all("sample 3" in failure.message for failure in failures)
    assert all("Connection reset." in failure.message for failure in failures)


def test_a_metric_that_passes_below_its_threshold_is_lower_is_better() -> None:
    columns = {
        column.name: column.better for column in evaluate(FILES / "deepeval.json").table.columns
    }
    assert columns == {"Answer Relevancy": "higher", "Bias": "lower"}


def test_an_assertion_of_some_texts_is_read_by_its_name_only() -> None:
    path = FILES / "promptfoo.json"
    notes = " ".join(map(str, evaluate(path).info.notes))
    assert "not-contains" in notes
    result = evaluate(path, judge_columns="not-contains")
    assert [score.item for score in result.table.scores] == ["2"]


def test_preferences_rank_the_generators() -> None:
    result = judge.rank(FILES / "alpaca_eval.json", cache=False)
    assert [row.value for row in result.table.scores] == pytest.approx([0.1, 0, 0.5])
    assert result.rankings[0].standings[0].system == "ours"
    assert [failure.item for failure in result.failures] == ["Name a tree."]


def test_a_file_of_pairs_is_sent_to_the_command_for_it() -> None:
    with pytest.raises(DataError, match="rank"):
        evaluate(FILES / "alpaca_eval.json")


def test_people_s_ratings_validate_the_scores(tmp_path: Path) -> None:
    rows = [{"item": str(n), "system": "m", "criterion": "tone", "rating": n} for n in (1, 2)]
    path = tmp_path / "ratings.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    log = changed(
        tmp_path,
        "inspect.json",
        lambda log: [
            log["eval"].update(model="m"),
            [sample.update(scores={"tone": {"value": sample["id"]}}) for sample in log["samples"]],
        ],
    )
    result = evaluate(log, ratings=path)
    assert [sample.human.get("tone") for sample in result.table.samples] == [1, 2, None]
    assert judge.validate(result, n_resamples=10)


def test_a_named_criterion_reads_the_texts_and_not_the_scores(tmp_path: Path) -> None:
    replies = tmp_path / "replies.yaml"
    replies.write_text("- reply: '4'\n", "utf-8")
    result = evaluate(FILES / "deepeval.json", criteria=["fluency"], model=f"scripted/{replies}")
    assert [column.name for column in result.table.columns] == ["fluency"]
    assert result.table.samples[0].output == "Yes, within 30 days."


@pytest.mark.parametrize("method", ["deflate", "zstandard"])
def test_archives_have_the_scores_of_the_log_in_json(tmp_path: Path, method: str) -> None:
    log = json.loads((FILES / "inspect.json").read_text("utf-8"))
    members = {"header.json": {key: log[key] for key in ("version", "status", "eval")}}
    for sample in log["samples"]:
        members[f"samples/{sample['id']}_epoch_1.json"] = sample
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, json.dumps(content), zipfile.ZIP_DEFLATED)
    if method == "zstandard":
        _write_zstandard(path, {name: json.dumps(part).encode() for name, part in members.items()})
    assert scores_of(path) == scores_of(FILES / "inspect.json")


def _write_zstandard(path: Path, members: dict[str, bytes]) -> None:
    """Write an archive with Zstandard compression, as Inspect does."""
    # Before Python 3.14, zipfile cannot write this method: store the frames and set the method by hand.
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, pa.compress(content, "zstd", asbytes=True))
            info = archive.getinfo(name)
            info.compress_type = 93
            info.file_size = len(content)
            info.CRC = zlib.crc32(content)


def scores_of(path: Path) -> list[tuple[str, str, float]]:
    return [(row.item, row.column, row.value) for row in evaluate(path).table.scores]


def test_epochs_are_generations_and_several_logs_are_several_systems(tmp_path: Path) -> None:
    def repeat(log: Any) -> None:
        log["samples"] += [{**sample, "epoch": 2} for sample in log["samples"]]

    changed(tmp_path, "inspect.json", repeat).rename(tmp_path / "a.json")
    changed(tmp_path, "inspect.json", lambda log: log["eval"].update(model="other"))
    result = evaluate(Path(f"{tmp_path}/*.json"))
    assert {sample.system for sample in result.table.samples} == {"openai/gpt-5.4-mini", "other"}
    assert {sample.cluster for sample in result.table.samples} == {"1", "2", "3"}


@pytest.mark.parametrize(
    ("written", "value"),
    [("C", 1), ("I", 0), ("N", 0), ("P", 0.5), ("Yes", 1), ("TRUE", 1), ("No", 0), ("0.25", 0.25)],
)
def test_inspect_values_in_words_count_as_in_inspect(
    tmp_path: Path, written: str, value: float
) -> None:
    change = _set("samples", 1, "scores", "match", "value", written)
    scores = scores_of(changed(tmp_path, "inspect.json", change))
    assert ("2", "match", value) in scores


def _set(*keys: Any) -> Callable[[Any], None]:
    """Return a change that sets a nested key; the last argument is the value."""
    *path, key, value = keys

    def change(document: Any) -> None:
        for part in path:
            document = document[part]
        document[key] = value

    return change


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("inspect.json", _set("version", 9), r"inspect\.json: .*version 9"),
        ("inspect.json", _set("samples", 1, "scores", "match", {}), "sample 2: .*match"),
        ("inspect.json", _set("samples", 1, "scores", "match", "value", [1]), "sample 2: match"),
        ("promptfoo.json", _set("results", "version", 9), r"promptfoo\.json: .*version 9"),
        ("promptfoo.json", _set("results", "results", 1, "success", "so"), "result 2: success"),
        (
            "promptfoo.json",
            _set("results", "results", 0, "gradingResult", "componentResults", 1, "score", "A"),
            "result 1: tone",
        ),
        (
            "deepeval.json",
            _set("testCases", 1, "metricsData", 1, "score", "A"),
            "testCases 2: Bias",
        ),
        ("alpaca_eval.json", _set(2, "preference", 3), "row 3: preference"),
        ("alpaca_eval.json", _set(2, "generator_1", None), "row 3: generator_1"),
    ],
)
def test_unknown_content_is_an_error_with_its_location(
    tmp_path: Path, name: str, change: Callable[[Any], None], problem: str
) -> None:
    path = changed(tmp_path, name, change)
    with pytest.raises(DataError, match=problem):
        read_result_file(path)


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("mlflow.csv", "tr-3,2.0", "tr-3,good", r"mlflow\.csv:4: tone"),
        ("openai_evals.jsonl", '"score": 3.0', '"score": "A"', r"evals\.jsonl:2: Tone"),
        (LM_EVAL, '"exact_match": 0.0', '"exact_match": "A"', r"jsonl:3: exact_match"),
    ],
)
def test_a_score_in_a_line_that_is_none_is_an_error_with_its_line(
    tmp_path: Path, name: str, old: str, new: str, problem: str
) -> None:
    path = tmp_path / name
    path.write_text((FILES / name).read_text("utf-8").replace(old, new), "utf-8")
    with pytest.raises(DataError, match=problem):
        read_result_file(path)


def _ordinary_files() -> list[Path]:
    files = [*(ROOT / "examples").rglob("*"), *(ROOT / "tests").rglob("*")]
    return [file for file in files if file.suffix in SUFFIXES and FILES not in file.parents]


def test_ordinary_data_is_not_claimed() -> None:
    files = _ordinary_files()
    assert files
    assert [file for file in files if read_result_file(file) is not None] == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '[{"instruction": "x", "output_1": "a", "output_2": "b", "preference": 1}]'),
        ("a.json", '{"results": {"version": 3, "results": []}}'),
        ("a.json", '{"version": 2, "samples": []}'),
        ("a.json", '{"testCases": []}'),
        ("a.json", "["),
        ("a.jsonl", '{"doc_id": 1, "target": "x", "metrics": ["acc"], "acc": 1}\n'),
        ("a.jsonl", '{"object": "chat.completion", "results": []}\n'),
        ("a.csv", "item,output,toxicity/value\n1,x,0.5\n"),
        ("a.csv", "trace_id,request,response\n1,x,y\n"),
        ("a.csv", ""),
    ],
)
def test_similar_columns_are_not_claimed(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    assert read_result_file(path) is None


def test_a_mapping_reads_the_columns_as_they_are() -> None:
    names = {"output": "predictions", "source": "inputs"}
    result = evaluate(FILES / "mlflow_models.csv", map=names, score_columns=["toxicity/v1/score"], criteria=())  # fmt: skip
    assert [column.name for column in result.table.columns] == ["toxicity/v1/score"]


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of keys to every nested value."""
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    places = [(*place, key) for key, _ in children]
    for key, child in children:
        places += _places(child, (*place, key))
    return places


@pytest.mark.parametrize(
    "name", ["inspect.json", "promptfoo.json", "deepeval.json", "alpaca_eval.json", LM_EVAL]
)
@pytest.mark.parametrize("garbage", [5, "x", None, [], [5], {}, {"x": 5}, True], ids=repr)
def test_a_value_of_the_wrong_type_is_read_or_refused_with_the_file_name(
    name: str, garbage: Any, tmp_path: Path
) -> None:
    text = (FILES / name).read_text("utf-8")
    is_lines = name.endswith(".jsonl")
    document = [json.loads(line) for line in text.splitlines()] if is_lines else json.loads(text)
    path = tmp_path / name
    problems = []
    for place in _places(document):
        damaged = json.loads(json.dumps(document))
        parent = damaged
        for key in place[:-1]:
            parent = parent[key]
        parent[place[-1]] = garbage
        lines = map(json.dumps, damaged) if is_lines else [json.dumps(damaged)]
        path.write_text("\n".join(lines), "utf-8")
        try:
            read_result_file(path)
        except DataError as error:
            problems.append(str(error))
    assert problems
    assert all(name in problem for problem in problems)
