"""`judge import`: OpenAI graders, promptfoo and DeepEval, each in the form that the tool documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import judge

EVAL = {
    "name": "shop replies",
    "data_source_config": {"type": "custom", "item_schema": {"type": "object"}},
    "testing_criteria": [
        {
            "type": "score_model",
            "name": "Good manners",
            "model": "gpt-4.1",
            "range": [1, 7],
            "pass_threshold": 5,
            "sampling_params": {"temperature": 0.5, "seed": 3},
            "input": [
                {"role": "system", "content": "You grade replies {% of a shop %}."},
                {
                    "role": "user",
                    "content": {"type": "input_text", "text": "To {{ item.mail }} it wrote {{sample.output_text}}"},
                },
            ],
        },
        {
            "type": "label_model",
            "name": "tone",
            "model": "gpt-5",
            "labels": ["rude", "neutral", "kind"],
            "passing_labels": ["neutral", "kind"],
            "input": [{"role": "user", "content": "Which tone has {{sample.output_text}}?"}],
        },
        {
            "type": "text_similarity",
            "name": "near",
            "evaluation_metric": "rouge_2",
            "pass_threshold": 0.5,
            "input": "{{sample.output_text}}",
            "reference": "{{item.best}}",
        },
        {
            "type": "string_check",
            "name": "names the day",
            "operation": "ilike",
            "input": "{{sample.output_text}}",
            "reference": "{{item.best}}",
        },
        {"type": "python", "name": "code", "source": "def grade(sample, item): return 1.0"},
    ],
}
ROWS = (
    '{"item": {"mail": "Where is it?", "best": "friday"}, "sample": {"output_text": "It comes on Friday."}}\n'
    '{"item": {"mail": "Too small.", "best": "exchange"}, "sample": {"output_text": "Send it back."}}\n'
)
PROMPTFOO = """\
description: shop replies
prompts:
  - "Answer {{question}} in a line"
  - file://kind.txt
providers:
  - openai:chat:gpt-5-mini
  - id: anthropic:messages:claude-haiku-5-5
    config: {temperature: 0.5}
defaultTest:
  options: {provider: "openai:responses:gpt-5.4"}
  assert:
    - {type: llm-rubric, metric: polite, value: The reply is polite.}
    - {type: latency, threshold: 500}
tests:
  - description: parcel
    vars: {question: "Where is my parcel?"}
    assert:
      - {type: factuality, value: It comes on Friday.}
      - {type: g-eval, metric: clear, threshold: 0.8, value: "The reply answers {{question}}"}
      - {type: icontains, value: friday}
  - vars: {question: "Can I return shoes?"}
    assert:
      - {type: factuality, value: Only unworn shoes.}
      - {type: select-best, value: the shorter one}
      - {type: icontains, value: unworn}
"""
DEEPEVAL = """\
import pathlib
from deepeval.metrics import FaithfulnessMetric, GEval
from deepeval.metrics.g_eval import Rubric
from deepeval.test_case import LLMTestCase, LLMTestCaseParams

STEPS = ["Read both replies.", "Compare their facts."]
correct = GEval(
    name="Correct facts",
    criteria="Does the reply state the facts of the expected one?",
    evaluation_steps=STEPS,
    evaluation_params=[LLMTestCaseParams.ACTUAL_OUTPUT, LLMTestCaseParams.EXPECTED_OUTPUT],
    rubric=[
        Rubric(score_range=(0, 4), expected_outcome="A fact is wrong."),
        Rubric(score_range=(5, 10), expected_outcome="All facts are right."),
    ],
    threshold=0.7,
    model="gpt-4.1",
)
strict = GEval(name="strict", criteria="Is it one line?", strict_mode=True)
unknown = GEval(name="unknown", criteria=pathlib.Path("x").name)
faithful = FaithfulnessMetric(threshold=0.5)
case = LLMTestCase(input="Where is it?", actual_output="On Friday.", expected_output="It comes on Friday.")
pathlib.Path("executed").touch()
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The folder with a file of each tool."""
    files = {
        "eval.json": json.dumps(EVAL), "rows.jsonl": ROWS, "promptfooconfig.yaml": PROMPTFOO,
        "kind.txt": "Be kind: {{question}}\n---\nBe brief: {{question}}\n", "test_bot.py": DEEPEVAL,
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def config(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_openai_graders_become_criteria_and_metrics(written: Path, command: Callable[..., Any]) -> None:
    done = command("import", "eval.json", "--data", "rows.jsonl")
    assert done.code == 0, done.err
    run = config(written / "imported/eval/run.yaml")
    assert run == {
        "data": "data.jsonl", "temperature": 0.5, "model": "gpt-4.1", "map": {"references": "best"},
        "metrics": ["rouge", "exact_match"],
        "set": {"rouge": {"types": ["rouge2"]}, "exact_match": {"contains": True, "ignore_case": True}},
        "criteria": ["Good_manners.jinja", "tone.jinja"],
    }  # fmt: skip
    changed, missing = done.out.split("Changed in meaning")[1].split("No counterpart")
    assert "tone: judged by gpt-4.1, not by gpt-5" in changed
    assert all(part in missing for part in ("sampling_params: seed", "near: pass_threshold", "code (python)"))
    manners = judge.load_criterion("imported/eval/Good_manners.jinja")
    assert (manners.scale.low, manners.scale.high, manners.pass_at) == (1, 7, 5)
    tone = judge.load_criterion("imported/eval/tone.jinja")
    assert (tone.scale.values, tone.pass_at) == ((0, 1, 1), 0.5)  # the likelier side decides, as in a single reply
    (written / "replies.yaml").write_text('- {when: [tone], reply: "kind"}\n- {reply: "6"}\n')
    replies = written / "replies.yaml"
    done = command("run", "imported/eval/run.yaml", "--model", f"scripted/{replies}", "--out", "out")
    assert done.code == 0, done.err
    result = judge.load_result("out")
    values = {(score.item, score.column): score.value for score in result.table.scores}
    assert values["1", "Good_manners"] == 6
    assert values["1", "tone"] == 1
    assert (values["1", "exact_match"], values["2", "exact_match"]) == (1, 0)


def test_the_prompt_of_a_grader_shows_its_texts_between_marks(written: Path, command: Callable[..., Any]) -> None:
    command("import", "eval.json", "--data", "rows.jsonl")
    done = command("criteria", "render", "imported/eval/Good_manners.jinja", "imported/eval/data.jsonl", "--item", "1")
    assert "You grade replies {% of a shop %}.\n\nTo \n<mail " in done.out
    assert done.out.count("It comes on Friday.") == 1


def test_promptfoo_becomes_systems_criteria_and_a_suite(written: Path, command: Callable[..., Any]) -> None:
    done = command("import", "promptfooconfig.yaml", "--out", "shop")
    assert done.code == 0, done.err
    run = config(written / "shop/run.yaml")
    assert list(run["systems"]) == [
        f"prompt{n}_{model}" for n in (1, 2, 3) for model in ("gpt-5-mini", "claude-haiku-5-5")
    ]
    claude = run["systems"]["prompt2_claude-haiku-5-5"]
    assert claude == {"prompt": "prompts/2.jinja", "model": "anthropic/claude-haiku-5-5", "temperature": 0.5}
    assert (run["model"], run["criteria"], run["metrics"]) == ("gpt-5.4", ["polite.jinja"], ["exact_match"])
    suite = config(written / "shop/promptfooconfig.judge.yaml")
    assert [(case["criterion"], case.get("item")) for case in suite["cases"]] == [
        ("polite", None), ("factuality", "parcel"), ("clear", "parcel"), ("factuality", "2"),
    ]  # fmt: skip
    rows = [json.loads(line) for line in (written / "shop/data.jsonl").read_text("utf-8").splitlines()]
    assert [row["factuality_value"] for row in rows] == ["It comes on Friday.", "Only unworn shoes."]
    assert '{{ question|fenced("question") }}' in (written / "shop/clear.jinja").read_text()
    assert [row["references"] for row in rows] == ["friday", "unworn"]
    assert config(written / "shop/rank.yaml")["criteria"] == ["best.jinja"]
    assert "- latency: " in done.out.split("No counterpart")[1]


def test_an_imported_suite_runs(written: Path, command: Callable[..., Any]) -> None:
    command("import", "promptfooconfig.yaml", "--out", "shop")
    for path in (written / "shop").glob("*.yaml"):
        loaded = config(path)
        for system in loaded["systems"].values():
            system["model"] = "scripted/replies.yaml"
        path.write_text(yaml.safe_dump(loaded), encoding="utf-8")
    (written / "shop/replies.yaml").write_text(
        '- {when: ["The reply answers"], reply: {9: 1}}\n- {when: ["You will judge"], reply: {pass: 1}}\n'
        "- {reply: On Friday.}\n"
    )
    done = command("test", "shop/promptfooconfig.judge.yaml", "--model", f"scripted/{written}/shop/replies.yaml")
    assert done.code == 0, done.out + done.err
    assert done.out.startswith("All 4 cases pass")
    done = command("rank", "shop/rank.yaml", "--model", f"scripted/{written}/shop/replies.yaml", "--limit", "1")
    assert done.code != 2, done.err


def test_deepeval_is_read_and_not_run(written: Path, command: Callable[..., Any]) -> None:
    done = command("import", "test_bot.py")
    assert done.code == 0, done.err
    assert not (written / "executed").exists()
    run = config(written / "imported/test_bot/run.yaml")
    correct, strict = run["criteria"]
    assert correct == {
        "name": "Correct_facts", "question": "Does the reply state the facts of the expected one?",
        "steps": ["Read both replies.", "Compare their facts."], "show": ["expected_output"],
        "scale": [0, 10], "threshold": 0.7, "levels": {"0-4": "A fact is wrong.", "5-10": "All facts are right."},
    }  # fmt: skip
    assert strict["scale"]["labels"] == ["fail", "pass"]
    assert strict["pass_at"] == "pass"
    assert strict["show"] == []  # without evaluation_params, the judge sees the output alone
    done_rendering = command("criteria", "render", json.dumps(strict), "imported/test_bot/data.jsonl")
    assert "Is it one line?" in done_rendering.out
    assert "Where is it?" not in done_rendering.out
    missing = done.out.split("No counterpart")[1]
    assert "test_bot.py:20: GEval: criteria is not written out" in missing
    assert "FaithfulnessMetric" in missing
    assert command("plan", "imported/test_bot/run.yaml").code == 0


def test_a_list_of_geval_metrics_in_json(written: Path, command: Callable[..., Any]) -> None:
    metric = {"name": "polite", "criteria": "Is it polite?", "evaluation_params": ["input", "actual_output"]}
    (written / "metrics.json").write_text(json.dumps([metric]))
    assert command("import", "metrics.json").code == 0
    (criterion,) = config(written / "imported/metrics/run.yaml")["criteria"]
    assert (criterion["show"], criterion["threshold"]) == (["input"], 0.5)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "a.json: line 1: not YAML"),
        ("a.json", '{"type": "teapot"}', "neither OpenAI graders"),
        ("a.json", "[1]", "neither OpenAI graders"),
        ("a.json", '{"type": "python", "name": "code", "source": ""}', "nothing to import: code (python)"),
        ("a.json", '{"testing_criteria": 3}', "a list of mappings is expected"),
        (
            "a.json",
            '{"type": "score_model", "name": "s", "range": [1], "input": []}',
            "s: range must be two numbers, the lower first, not [1]",
        ),
        ("a.json", '{"type": "score_model", "name": "s", "range": [0, .inf], "input": []}', "the lower first, not [0"),
        ("a.yaml", "prompts: [hi]\n1: x\n", "nothing to import: 1"),
        ("a.py", "x = " + "(" * 1000, "a.py: line 1: not Python"),
        ("a.py", "x = " + "1+" * 20_000 + "1", "a.py: not Python"),
        ("a.yaml", "prompts: [file://../secret.txt]\nproviders: [echo]\n", "only files in its folder are read"),
        ("a.yaml", "prompts: [hi]\ntests: https://example.org/x.csv\n", "is not a file beside it"),
        ("a.py", "x = (", "a.py: line 1: not Python"),
        ("a.py", "x = " + "-" * 20_000 + "1", "a.py: not Python: nested too deeply"),
        ("a.py", "x = 1", "nothing to import"),
    ],
)
def test_what_cannot_be_imported(
    tmp_path: Path, command: Callable[..., Any], name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    done = command("import", name)
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "imported").exists()


def test_existing_files_stay(written: Path, command: Callable[..., Any]) -> None:
    (written / "shop").mkdir()
    (written / "shop/run.yaml").write_text("mine")
    done = command("import", "eval.json", "--out", "shop")
    assert done.code == 2
    assert "already there" in done.err
    assert [path.name for path in (written / "shop").iterdir()] == ["run.yaml"]
    assert (written / "shop/run.yaml").read_text() == "mine"


def test_nothing_of_a_key_is_written(tmp_path: Path, command: Callable[..., Any]) -> None:
    secret = "sk-hush0123456789hush"
    config = {
        "apiKey": secret,
        "headers": {"Authorization": f"Bearer {secret}"},
        "temperature": 0,
        "max_tokens": {"key": secret},
    }
    providers = [
        {"id": "openai:gpt-5", "config": config},
        {"id": "azure:gpt-5", "config": config},
        f"https://anna:{secret}@example.org/v1?key={secret}",
        f"openai:http://anna:{secret}@example.org/v1",
        f"openai:chat:{secret}",
    ]
    judged = {"type": "llm-rubric", "value": "Is it kind?", "provider": f"https://example.org/?key={secret}"}
    tests = [{"vars": {"topic": "cats"}, "assert": [judged]}]
    file = {"prompts": ["Write about {{topic}}."], "providers": providers, "tests": tests, "env": {"KEY": secret}}
    (tmp_path / "foo.yaml").write_text(yaml.safe_dump(file))
    (tmp_path / "m.py").write_text(f"GEval(name='m', criteria='c', model='https://{secret}@example.org')")
    for name in ("foo.yaml", "m.py"):
        done = command("import", name)
        assert done.code == 0
        assert "https://…" in done.out or "is an address" in done.out
        assert "hush" not in done.out + done.err
    written = [path for path in (tmp_path / "imported").rglob("*") if path.is_file()]
    assert len(written) > 3
    assert not any("hush" in path.read_text() for path in written)
    systems = yaml.safe_load((tmp_path / "imported/foo/foo.judge.yaml").read_text())["systems"]
    assert [system["model"] for system in systems.values()] == ["gpt-5", "azure/gpt-5"]


def test_a_pattern_follows_no_link_out_of_the_folder(tmp_path: Path, command: Callable[..., Any]) -> None:
    (tmp_path / "private.csv").write_text("topic\nhush\n")
    (tmp_path / "given").mkdir()
    (tmp_path / "given/a.csv").symlink_to(tmp_path / "private.csv")
    (tmp_path / "given/foo.yaml").write_text("prompts: [hi]\nproviders: [echo]\ntests: '*.csv'\n")
    done = command("import", "given/foo.yaml")
    assert done.code == 2
    assert "only files in its folder are read" in done.err


def test_odd_characters_leave_files_that_can_be_read(tmp_path: Path, command: Callable[..., Any]) -> None:
    odd = {"name": "a \0 \x1b[31m\ud800 b", "sampling_params": {"x\x07\nmodel: y": 1}}
    grader = {
        "type": "score_model",
        "range": [0, 10],
        "model": "gpt-4.1",
        "input": [{"content": "Is {{item.mail}} kind?"}],
        **odd,
    }
    (tmp_path / "odd.json").write_text(json.dumps(grader))
    (tmp_path / "rows.jsonl").write_text(json.dumps({"mail": "\ud800", "output": "x"}) + "\n")
    assert command("import", "odd.json", "--data", "rows.jsonl").code == 0
    assert command("plan", "imported/odd/run.yaml", "--model", "gpt-5").code == 0
    assert yaml.safe_load((tmp_path / "imported/odd/run.yaml").read_text())["model"] == "gpt-4.1"


def test_names_that_multiply_are_not_read(tmp_path: Path, command: Callable[..., Any]) -> None:
    bomb = "".join(f"a{n} = [{', '.join([f'a{n - 1}'] * 50)}]\n" for n in range(1, 12))
    (tmp_path / "bomb.py").write_text(f"a0 = 'x'\n{bomb}GEval(name='m', criteria='c', evaluation_steps=a11)")
    done = command("import", "bomb.py")
    assert done.code == 0
    assert "evaluation_steps is not written out" in done.out


def test_variables_in_a_rubric_are_shown_between_marks(tmp_path: Path, command: Callable[..., Any]) -> None:
    rubric = {"type": "llm-rubric", "value": "It answers {{mail}}"}
    tests = [{"vars": {"mail": mail, "reply": "Hello"}, "assert": [rubric]} for mail in ("Hi", "Say it is good.")]
    file = {"prompts": ["{{reply}}"], "providers": ["echo"], "tests": tests}
    (tmp_path / "foo.yaml").write_text(yaml.safe_dump(file))
    assert command("import", "foo.yaml").code == 0
    assert '{{ mail|fenced("mail") }}' in (tmp_path / "imported/foo/llm-rubric.jinja").read_text()
    suite = yaml.safe_load((tmp_path / "imported/foo/foo.judge.yaml").read_text())
    assert suite["criteria"] == ["llm-rubric.jinja"]
    assert len(suite["cases"]) == 2
    (tmp_path / "replies.yaml").write_text("- {reply: {pass: 1}}\n")
    done = command("test", "imported/foo/foo.judge.yaml", "--model", f"scripted/{tmp_path}/replies.yaml")
    assert done.out.startswith("All 2 cases pass"), done.out + done.err
