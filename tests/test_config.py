"""`RunConfig`: every option is stated once, and YAML, the command line and Python are read to the same configuration."""

from __future__ import annotations

import ast
import inspect
import json
import os
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from judge.cli import app
from judge.commands.public import option_parameters, public_api
from judge.config import (
    RankConfig,
    RunConfig,
    load_config,
    run_options,
    run_schema,
)
from judge.config.run_config import _option
from judge.core.errors import ConfigError
from judge.suite.schema import Spec
from tests.factories import has_line

ROOT = Path(__file__).resolve().parents[1]
TYPED = ROOT / "judge" / "commands" / "options.py"


class Brighter(RunConfig):
    """One option more than a run has."""

    brightness: int = _option(7, "Advanced", "How bright the report is.", "LUX", ge=1)


# An option is stated once


@pytest.mark.parametrize("name", ["run", "validate", "test"])
def test_a_new_field_is_an_option_of_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.config.RunConfig", Brighter)
    shown = CliRunner().invoke(app, [name, "--help-all"]).output
    assert "--brightness LUX" in shown.partition("Advanced:")[2]
    assert has_line(" ".join(shown.split()), "How bright", "default: 7")


def test_a_new_field_is_an_argument_in_python_and_in_the_reference() -> None:
    @public_api("run", Brighter)
    def evaluate(data: str, **options: Any) -> None:
        """Score texts."""

    parameter = inspect.signature(evaluate).parameters["brightness"]
    assert (parameter.default, parameter.annotation) == (7, "int | None")
    assert has_line(evaluate.__doc__ or "", "    brightness", "How bright")
    reference = runpy.run_path(str(ROOT / "tests" / "docs" / "test_reference.py"))
    listed = reference["options_list"]({"evaluate": evaluate}, run_options("run", Brighter))
    assert has_line(listed.partition("**Advanced**")[2], "- `brightness = 7`", "How bright")


def test_a_new_field_is_a_key_of_run_yaml_and_of_suites(tmp_path: Path) -> None:
    assert Brighter.load(write(tmp_path, "brightness: 3\n")).brightness == 3
    described = {
        "description": "How bright the report is.",
        "default": 7,
        "minimum": 1,
        "type": "integer",
    }
    assert run_schema(Brighter)["properties"]["brightness"] == described
    assert run_options("suite", Brighter)["brightness"].description == "How bright the report is."


def test_every_description_is_short_and_plain() -> None:
    for name, option in (run_options("run") | run_options("plan", RankConfig)).items():
        assert 2 <= len(option.description.split()) <= 12, name
        assert option.description.endswith("."), name


def typed_options() -> str:
    """The module of the keyword arguments, for editors and type checkers."""
    everywhere = (run_options("card").keys() & run_options("diff").keys()) | {"reasons"}
    rank = option_parameters("plan", RankConfig)
    blocks = [
        '''"""Keyword arguments of the public functions, for editors and type checkers.

Written from judge/config/run_config.py: JUDGE_GOLDEN=write pytest tests/test_config.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    import pandas as pd
'''
    ]
    python_only = {"ratings": "str | Path | pd.DataFrame | Iterable[Mapping[str, Any]] | None"}
    classes = {
        ("JudgeOptions", "TypedDict", "Options of all functions that ask a judge."): everywhere,
        ("RunOptions", "JudgeOptions", "Options of `evaluate`."): run_options("run").keys()
        - everywhere,
        ("RankOptions", "RunOptions", "Options of `rank`."): rank.keys()
        - run_options("run").keys(),
    }
    for (name, base, doc), names in classes.items():
        keys = [
            f"    {key}: {python_only.get(key, rank[key][0].annotation)}".replace("'", '"')
            for key in rank
            if key in names - {"criteria", "model"}
        ]
        blocks.append(
            "\n".join(
                ["", f"class {name}({base}, total=False):", f'    """{doc}"""', "", *keys, ""]
            )
        )
    return "\n".join(blocks)


def test_typed_options_match_the_configuration() -> None:
    """JUDGE_GOLDEN=write writes them, and `ruff format` breaks their lines."""
    if os.environ.get("JUDGE_GOLDEN") == "write":
        TYPED.write_text(typed_options(), encoding="utf-8")
    typed = ast.parse(TYPED.read_text(encoding="utf-8"))
    assert ast.unparse(typed) == ast.unparse(ast.parse(typed_options()))


# Schemas

EXAMPLES = {
    "run": [
        *ROOT.glob("examples/**/run.yaml"),
        *ROOT.glob("judge/commands/init/starter/**/run.yaml"),
    ],
    "suite": [
        *ROOT.glob("examples/**/*.judge.yaml"),
        *ROOT.glob("judge/commands/init/starter/**/*.judge.yaml"),
    ],
    "criterion": [
        *ROOT.glob("prompts/*/answers/*.jinja"),
        *ROOT.glob("prompts/*/pairwise*/*.jinja"),
        *ROOT.glob("prompts/*/summarization/*.jinja"),
        *(path for path in ROOT.glob("examples/**/*.jinja") if path.parent.name != "prompts"),
    ],
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_schema_accepts_every_example_and_refuses_unknown_keys(kind: str) -> None:
    schema = json.loads(CliRunner().invoke(app, ["doctor", "schema", kind]).output)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert all(
        described["description"]
        for described in schema["properties"].values()
        if "$ref" not in described
    )
    check = Draft202012Validator(schema)
    assert len(EXAMPLES[kind]) > 1
    for path in EXAMPLES[kind]:
        text = path.read_text("utf-8")
        document = yaml.safe_load(text.split("---")[1] if kind == "criterion" else text)
        assert [error.message for error in check.iter_errors(document)] == [], path
        assert not check.is_valid({**document, "unheard_of": 1})


def test_schema_and_reader_refuse_the_same_values(tmp_path: Path) -> None:
    check = Draft202012Validator(run_schema())
    for document in (
        {"draws": 0}, {"draws": "many"}, {"language": "fr"}, {"weighting": 3}, {"cache": True}, {"model": {"url": "x"}},
        {"set": {"rouge": 3}}, {"where": {"lang": None}}, {"min_mass": 2}, {"criteria": False}, {"criteria": [3]},
    ):  # fmt: skip
        assert not check.is_valid(document), document
        with pytest.raises(ConfigError):
            load_config(write(tmp_path, yaml.safe_dump(document)))


def test_a_kind_of_file_that_has_no_schema() -> None:
    refused = CliRunner().invoke(app, ["doctor", "schema", "prompt"]).exception
    assert has_line(str(refused), "schema prompt", "run, suite or criterion")


# Reading


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_plan_from_a_file_with_paths_from_its_folder(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "data: d.jsonl\nout: runs/x\nmodel: scripted/replies.yaml\nmap: {output: summary}\n"
        "criteria: [relevance, my.jinja]\nmetrics: rouge, bleu\nsystems: a,b\ncache: false\n",
    )
    config = load_config(path)
    assert config.data == tmp_path / "d.jsonl"
    assert config.out == tmp_path / "runs/x"
    assert [one.name for one in config.model] == [f"scripted/{tmp_path / 'replies.yaml'}"]
    assert config.map == {"output": "summary"}
    assert config.criteria == ("relevance", str(tmp_path / "my.jinja"))
    assert (config.metrics, config.systems, config.cache) == (("rouge", "bleu"), ("a", "b"), False)


def test_an_address_in_a_file_is_not_beside_it(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "data: s3://shop/first.jsonl\n"))
    assert str(config.data) == str(Path("s3://shop/first.jsonl"))


def test_the_command_line_overrides_the_file_and_leaves_the_rest(tmp_path: Path) -> None:
    path = write(tmp_path, "temperature: 0.5\nmodel: a\n")
    config = load_config(path, {"model": "b", "base_url": None})
    assert (config.model[0].name, config.temperature, config.base_url) == ("b", 0.5, None)


def test_defaults() -> None:
    config = load_config()
    assert (config.criteria, config.metrics, config.weighting, config.temperature) == (
        None,
        None,
        "auto",
        None,
    )


def test_a_plan_is_frozen() -> None:
    with pytest.raises(ValidationError):
        RunConfig().temperature = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("model: m\ntemprature: 1\n", ":2: temprature", "did you mean 'temperature'"),
        ("model: m\n\ntemperature: hot\n", ":3: temperature", "not 'hot'"),
        ("min_mass: 2\n", ":1: min_mass", "or equal to 1"),
        ("weighting: sometimes\n", ":1: weighting", "'auto'"),
        ("a: [1\n", ":2", "not YAML"),
        ("out: 2026-02-30\n", "", "not YAML"),
        ("seed: !!int x\n", "", "not YAML"),
        ("data: " + "[" * 700, "", "nested too deeply"),
        ("seed: 1\nseed: 2\n", ":2: seed", "second time"),
        ("- a\n- b\n", "", "key: value"),
        ("", "", "key: value"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, where: str, words: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert f"{path}{where}" in str(caught.value)
    assert words in str(caught.value)


def test_a_mistake_on_the_command_line_is_named_as_a_flag(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--max-concurrency: .* 1, not 0$"):
        load_config(write(tmp_path, "max_concurrency: 3\n"), {"max_concurrency": 0})


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"model: caf\xe9\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config(tmp_path / "latin.yaml")


@pytest.mark.parametrize(
    "options",
    [
        {"metrics": "none,rouge"},
        {"metrics": ["none", "rouge"]},
        {"criteria": "none,relevance"},
    ],
)
def test_none_stands_alone(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="none stands for an empty list"):
        load_config(options=options)


def test_texts_are_read_as_the_command_line_writes_them() -> None:
    config = load_config(
        options={"metrics": " a, b,,", "criteria": "none", "map": "item=doc_id, output=summary"}
    )
    assert (config.metrics, config.criteria, config.map) == (
        ("a", "b"),
        (),
        {"item": "doc_id", "output": "summary"},
    )
    for bad in ("item", "=x", "item="):
        with pytest.raises(ConfigError, match="--map: write FIELD=COLUMN"):
            load_config(options={"map": bad})


def test_options_of_metrics_on_the_command_line(tmp_path: Path) -> None:
    options = {"set": ["rouge.stem=false", "rouge.types=[rouge1, rougeL]", "bertscore.model= a=b "]}
    rouge = {"stem": False, "types": ["rouge1", "rougeL"]}
    assert load_config(options=options).set == {"rouge": rouge, "bertscore": {"model": "a=b"}}
    for bad in ("rouge.stem", "stem=false", ".stem=1", "rouge.=1"):
        with pytest.raises(ConfigError, match=r"METRIC\.OPTION=VALUE"):
            load_config(options={"set": [bad]})
    with pytest.raises(ConfigError, match="not YAML"):
        load_config(options={"set": ["rouge.types=[a"]})
    path = write(tmp_path, "set: {rouge: {stem: true, multi: mean}, bleu: {smooth: floor}}\n")
    over = load_config(path, {"set": ["rouge.stem=false", {"chrf": {"beta": 1}}]}).set
    assert over == {
        "rouge": {"stem": False, "multi": "mean"},
        "bleu": {"smooth": "floor"},
        "chrf": {"beta": 1},
    }


def test_paths_among_options_start_from_the_files_folder(tmp_path: Path) -> None:
    (tmp_path / "stop.txt").write_text("the", encoding="utf-8")
    (tmp_path / "zh").mkdir()
    (tmp_path / "mm" / "t5").mkdir(parents=True)
    options = "{stopwords: stop.txt, exceptions: [stop.txt]}"
    qags_options = "{questions: mm/t5, answers: mm/none, bertscore_model: mm}"
    text = f"set: {{rouge: {options}, bertscore: {{model: big}}, bleu: {{tokenize: zh}}, qags: {qags_options}}}\n"
    assert load_config(write(tmp_path, text)).set == {
        "rouge": {
            "stopwords": str(tmp_path / "stop.txt"),
            "exceptions": [str(tmp_path / "stop.txt")],
        },
        "bertscore": {"model": "big"},
        "bleu": {"tokenize": "zh"},
        "qags": {
            "questions": str(tmp_path / "mm" / "t5"),
            "answers": "mm/none",
            "bertscore_model": str(tmp_path / "mm"),
        },
    }


def test_options_of_a_metric_must_be_a_mapping(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--set: rouge: .*not 3"):
        load_config(write(tmp_path, "set: {rouge: 3}\n"), {"set": {"bleu": {"smooth": "floor"}}})


def test_cache_is_a_folder_or_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"run\.yaml:2: cache: .*folder, or false .*not True"):
        load_config(write(tmp_path, "data: d.jsonl\ncache: true\n"))
    with pytest.raises(ConfigError, match=r"--cache: .*folder, or false .*none$"):
        load_config(options={"cache": "tcp://:secret@host:1"})


@pytest.mark.parametrize("line", ["key_env: sk-1234", "model: {name: m, key_env: sk-1234}"])
def test_refuses_a_key_instead_of_its_variable_without_showing_it(
    tmp_path: Path, line: str
) -> None:
    with pytest.raises(ConfigError, match="key_env: names the environment variable") as refused:
        load_config(write(tmp_path, f"data: d.jsonl\n{line}\n"))
    assert "1234" not in str(refused.value)


def test_a_rating_named_twice_has_both_columns_and_any_other_field_is_refused() -> None:
    columns = {"rating.relevance": ("anna", "ben"), "item": "doc"}
    assert (
        load_config(options={"map": "rating.relevance=anna, rating.relevance=ben,item=doc"}).map
        == columns
    )
    assert load_config(options={"map": columns}).map == columns
    with pytest.raises(ConfigError, match="'output': name one column"):
        load_config(options={"map": "output=a,output=b"})
    with pytest.raises(ConfigError, match="a column is listed twice"):
        load_config(options={"map": "rating.x=a,rating.x=a"})
    with pytest.raises(ConfigError, match=r"'human\.x': .*rating\.x"):
        load_config(options={"map": "human.x=a"})


@pytest.mark.parametrize("former", ["force", "replace"])
def test_a_former_name_of_an_option_names_the_new_one(former: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(f"data: x.csv\n{former}: true\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=f"run.yaml:2: {former}: .*overwrite"):
        load_config(file)


def test_conditions_are_read_with_their_commas() -> None:
    expected = {"lang": ("ja", "ko"), "title": ("a, b",)}
    assert load_config(options={"where": "lang=ja, title=a, b,lang=ko"}).where == expected
    assert load_config(options={"where": {"lang": "ja", "year": [2020, 2021]}}).where == {
        "lang": ("ja",), "year": (2020, 2021),
    }  # fmt: skip
    for text in ("lang", "=ja", "lang="):
        with pytest.raises(ConfigError, match="write COLUMN=VALUE"):
            load_config(options={"where": text})
    with pytest.raises(ConfigError, match=r"'lang': .*lang: ja"):
        load_config(options={"where": {"lang": None}})


def test_a_replies_file_as_model_suggests_the_scripted_prefix(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("- {reply: 3}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=f"write scripted/{tmp_path}/r.yaml"):
        load_config(None, {"model": str(tmp_path / "r.yaml")})


def test_a_file_of_replies_is_named_without_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("- {reply: 3}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"write scripted/a\.yaml$"):
        load_config(None, {"data": "d.csv", "model": ["a.yaml"]})


@pytest.mark.parametrize("value", [3, 1.5, True, [3], [["a"]], {"a": 3}, {"a": None}, {"a": ["b"]}])
def test_systems_of_another_type_are_named_without_types_of_python(
    tmp_path: Path, value: Any
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({"data": "data.csv", "systems": value}), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"run\.yaml:2: systems: (a: )?write ") as caught:
        RunConfig.load(path)
    assert "[" not in str(caught.value).partition(", not ")[0]


def test_reasons_in_a_file_name_the_key_to_write(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("data: a.jsonl\nreasons: true\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r":2: reasons: .* reply: reason_then_score"):
        load_config(file)


@pytest.mark.parametrize("key", list(Spec.model_fields))
def test_the_keys_of_a_suite_name_the_command_for_suites(tmp_path: Path, key: str) -> None:
    with pytest.raises(ConfigError, match=rf":1: {key}: .*judge test"):
        RunConfig.load(write(tmp_path, f"{key}: []\n"))
