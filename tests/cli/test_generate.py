"""Generate outputs with a prompt and a model: `systems:` in run.yaml, and `--generate-only`."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judge
from judge.core.errors import ConfigError, DataError
from judge.results.run_info import SystemInfo
from tests.factories import has_line

ARTICLES = """\
{"item": "tram", "source": "The tram runs again from Monday. The bridge is safe.", "topic": "city"}
{"item": "pool", "source": "The pool opens at seven. Children swim free.", "topic": "sport"}
"""
RUN = """\
data: articles.jsonl
systems:
  long: {prompt: long.jinja, model: scripted/writer.yaml}
  short: {prompt: short.jinja, model: scripted/writer.yaml}
  lead: lead.jsonl
criteria: [relevance]
model: scripted/judge.yaml
metrics: none
"""
WRITER = """\
- {when: [three words, tram], reply: Tram runs again.}
- {when: [three words, pool], reply: Pool opens early.}
- {when: [about city, tram], reply: The tram runs again from Monday.}
- {when: [about sport, pool], reply: The pool opens at seven.}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "articles.jsonl": ARTICLES,
        "run.yaml": RUN,
        "writer.yaml": WRITER,
        "judge.yaml": '- {when: ["again.\\n</output"], reply: 2}\n- {reply: 4}\n',
        "long.jinja": "Summarize this article about {{ topic }}.\n\n{{ source }}\n",
        "short.jinja": "Summarize in three words: {{ source }}\n",
        "lead.jsonl": '{"item": "pool", "output": "The pool opens."}\n{"item": "tram", "output": "The tram runs."}\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_run_generates_the_outputs_and_judges_them(
    project: Path, command: Callable[..., Any]
) -> None:
    completed = command("run", "run.yaml", "--out", "out")
    assert completed.code == 0, completed.err
    rows = [
        json.loads(line) for line in (project / "out/outputs.jsonl").read_text("utf-8").splitlines()
    ]
    assert [(row["item"], row["system"], row["output"]) for row in rows] == [
        ("tram", "long", "The tram runs again from Monday."),
        ("tram", "short", "Tram runs again."),
        ("tram", "lead", "The tram runs."),
        ("pool", "long", "The pool opens at seven."),
        ("pool", "short", "Pool opens early."),
        ("pool", "lead", "The pool opens."),
    ]
    assert {row["topic"] for row in rows if row["item"] == "pool"} == {"sport"}
    result = judge.load_result("out")
    assert {s.key: s.value for s in result.table.scores}["tram", "short"] == 2
    systems = result.info.systems
    assert systems["long"].prompt.startswith("Summarize this article")
    assert systems["long"].settings["model"].endswith("writer.yaml")
    assert systems["lead"] == SystemInfo(outputs="lead.jsonl")


def test_outputs_can_be_generated_alone(project: Path, command: Callable[..., Any]) -> None:
    completed = command("run", "run.yaml", "--generate-only", "--out", "texts.jsonl")
    assert (completed.code, completed.out.strip()) == (0, "texts.jsonl")
    completed = command(
        "run",
        "texts.jsonl",
        "--criteria",
        "relevance",
        "--model",
        "scripted/judge.yaml",
        "--metrics",
        "none",
    )
    assert "6 judged, 0 failed" in completed.out


def test_an_item_without_a_field_of_the_prompt_fails_alone(
    project: Path, command: Callable[..., Any]
) -> None:
    replaced(project / "articles.jsonl", ', "topic": "sport"', "")
    completed = command("run", "run.yaml", "--out", "out")
    assert completed.code == 1
    result = judge.load_result("out")
    assert {score.key for score in result.table.scores} == {
        ("tram", "long"),
        ("tram", "short"),
        ("tram", "lead"),
        ("pool", "short"),
        ("pool", "lead"),
    }
    (failure,) = result.failures
    assert (failure.item, failure.system, failure.stage) == ("pool", "long", "generation")
    assert "long.jinja:1: 'topic' is undefined" in failure.message
    assert command("plan", "run.yaml").code == 0


def test_a_prompt_reads_a_renamed_column_under_both_names(
    project: Path, command: Callable[..., Any]
) -> None:
    replaced(project / "articles.jsonl", '"source"', '"article"')
    replaced(project / "run.yaml", "criteria:", "map: {source: article}\ncriteria:")
    replaced(project / "long.jinja", "{{ source }}", "{{ article }}")
    completed = command("run", "run.yaml", "--generate-only", "--out", "texts.jsonl")
    assert (completed.code, completed.out.strip()) == (0, "texts.jsonl"), completed.err


def test_a_recording_of_generations_and_probabilities_lacks_no_draws(
    project: Path, command: Callable[..., Any]
) -> None:
    text = RUN.replace("writer.yaml}", "both.yaml, generations: 2}").replace(
        "judge.yaml", "both.yaml"
    )
    (project / "run.yaml").write_text(text, encoding="utf-8")
    judge_rule = "- {when: ['</output'], reply: {2: 0.5, 4: 0.5}}\n"
    (project / "both.yaml").write_text(judge_rule + WRITER, encoding="utf-8")
    completed = command("run", "run.yaml", "--out", "out", "--no-cache", "--record", "calls.jsonl")
    assert completed.code == 0, completed.err
    replay = ("--no-cache", "--replay", "calls.jsonl", "--model", "scripted/both.yaml")
    completed = command("run", "run.yaml", "--out", "again", *replay)
    assert completed.code == 0, completed.err
    assert not any("draws" in note for note in judge.load_result("again").info.notes)


def test_a_text_that_is_cut_names_the_systems_own_limit(
    project: Path, command: Callable[..., Any]
) -> None:
    cut = "- {when: [three words, tram], reply: '<think>Three words'}\n"
    replaced(project / "writer.yaml", WRITER.splitlines(keepends=True)[0], cut)
    assert command("run", "run.yaml", "--out", "out").code == 1
    (failure,) = judge.load_result("out").failures
    assert has_line(failure.message, "max_tokens", "system short")
    assert "--" not in failure.message


def test_generate_only_ignores_the_out_folder_of_run_yaml(
    project: Path, command: Callable[..., Any]
) -> None:
    replaced(project / "run.yaml", "metrics: none", "metrics: none\nout: runs/first")
    completed = command("run", "run.yaml", "--generate-only")
    assert (completed.code, completed.out.strip()) == (0, "outputs.jsonl")
    assert not (project / "runs").exists()


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (
            ["run.yaml", "--criteria", "fluency"],
            ("--criteria:", "judges nothing", "leave it out"),
        ),
        (["run.yaml", "--json"], ("--json:", "judges nothing")),
        (
            ["run.yaml", "--out", "."],
            ("--out .: is a folder", "a file", "outputs.jsonl"),
        ),
        (["lead.jsonl"], ("lead.jsonl:", "no prompts")),
    ],
)
def test_refuses_options_that_generate_cannot_use(
    project: Path, command: Callable[..., Any], words: list[str], facts: tuple[str, ...]
) -> None:
    completed = command("run", "--generate-only", *words)
    assert completed.code == 2
    assert has_line(completed.err, *facts)


def test_generate_only_asks_the_server_and_key_of_the_command_line(
    project: Path,
    command: Callable[..., Any],
    chat_server: Any,
    make_completion: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WRITER_KEY", "key-of-the-writer")
    chat_server.answer = lambda body: (200, {}, make_completion("A text."))
    config = "data: articles.jsonl\nsystems:\n  short: {prompt: short.jinja, model: m}\n"
    (project / "run.yaml").write_text(config, "utf-8")
    server = ["--base-url", chat_server.url, "--key-env", "WRITER_KEY"]
    completed = command("run", "run.yaml", "--generate-only", *server, "--header", "X-Team=a")
    assert completed.code == 0, completed.err
    header = {name.lower(): value for name, value in chat_server.headers[0].items()}
    assert (header["authorization"], header["x-team"]) == ("Bearer key-of-the-writer", "a")


def test_generate_only_stores_records_and_limits_outputs(
    project: Path, command: Callable[..., Any]
) -> None:
    only = "run", "run.yaml", "--generate-only"
    assert command(*only, "--cache", "cache", "--record", "calls.jsonl").code == 0
    first = (project / "outputs.jsonl").read_bytes()
    (project / "writer.yaml").unlink()
    assert command(*only, "--no-cache", "--replay", "calls.jsonl").code == 0
    assert (project / "outputs.jsonl").read_bytes() == first
    completed = command(*only, "--no-cache", "--budget", "1token")
    assert completed.code == 2


def test_a_text_that_cannot_be_written_is_a_failure(
    project: Path, command: Callable[..., Any]
) -> None:
    replaced(
        project / "writer.yaml", "- {when: [three words, pool], reply: Pool opens early.}\n", ""
    )
    completed = command("run", "run.yaml", "--out", "out")
    assert completed.code == 1
    assert "5 judged, 1 failed" in completed.out
    (failure,) = judge.load_result("out").failures
    assert (failure.item, failure.system, failure.column, failure.stage) == (
        "pool",
        "short",
        "relevance",
        "generation",
    )
    completed = command("run", "run.yaml", "--generate-only")
    assert completed.code == 1
    assert has_line(completed.err, "item pool, short", "writer.yaml", "no reply")
    assert has_line(completed.err, "1 text", "could not be written")


def test_a_text_that_is_cut_off_is_a_failure(
    project: Path,
    command: Callable[..., Any],
    chat_server: Any,
    make_completion: Callable[..., dict[str, Any]],
) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        completion = make_completion("The tram runs")
        completion["choices"][0]["finish_reason"] = (
            "length" if "tram" in body["messages"][-1]["content"] else "stop"
        )
        return 200, {}, completion

    chat_server.answer = answer
    short = "  short: {prompt: short.jinja, model: scripted/writer.yaml}\n"
    replaced(
        project / "run.yaml",
        short,
        f'  short: {{prompt: short.jinja, model: m, base_url: "{chat_server.url}"}}\n',
    )
    completed = command("run", "run.yaml", "--generate-only", "--no-cache")
    assert completed.code == 1
    assert "item tram, short: " in completed.err
    assert has_line(completed.err, "1 text", "could not be written")
    texts = [
        json.loads(line) for line in (project / "outputs.jsonl").read_text("utf-8").splitlines()
    ]
    assert [row["item"] for row in texts if row["system"] == "short"] == ["pool"]


def test_a_suite_that_stops_while_it_writes_says_how_to_resume(
    project: Path, command: Callable[..., Any]
) -> None:
    (project / "s.judge.yaml").write_text(SUITE, encoding="utf-8")
    completed = command("test", "s.judge.yaml", "--budget", "1token")
    assert completed.code == 2
    assert has_line(completed.err, "s.judge.yaml: ", "budget")
    assert has_line(completed.err, "command again to resume")


@pytest.mark.parametrize("file", ["run.yaml", "s.judge.yaml"])
def test_a_file_runs_no_command_of_a_system(
    project: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    words = f'key_command: "touch {project}/ran", base_url: "http://127.0.0.1:9/v1"'
    (project / "s.judge.yaml").write_text(SUITE, encoding="utf-8")
    replaced(
        project / file,
        "{prompt: short.jinja, model: scripted/writer.yaml}",
        f"{{prompt: short.jinja, model: m, {words}}}",
    )
    completed = command("test" if file == "s.judge.yaml" else "run", file)
    assert completed.code == 2
    assert f"{file}:2: " in completed.err
    assert has_line(completed.err, "may not run a command")
    assert not (project / "ran").exists()
    monkeypatch.setenv("JUDGE_KEY_COMMANDS", f"touch {project}/ran")
    assert (
        "a file may not"
        not in command("test" if file == "s.judge.yaml" else "run", file, "--retries", "0").err
    )
    assert (project / "ran").exists()


def test_secrets_of_a_system_are_sent_and_never_stored(
    project: Path,
    command: Callable[..., Any],
    chat_server: Any,
    make_completion: Callable[..., dict[str, Any]],
) -> None:
    chat_server.answer = lambda body: (200, {}, make_completion("A text."))
    connection = f'model: m, base_url: "{chat_server.url}", headers: {{X-Api-Key: hush-1234}}'
    replaced(
        project / "run.yaml",
        "{prompt: short.jinja, model: scripted/writer.yaml}",
        f"{{prompt: short.jinja, {connection}}}",
    )
    replaced(
        project / "run.yaml",
        "metrics: none\n",
        "metrics: none\nsystem_message: You are a strict judge.\n",
    )
    (project / "judge.yaml").write_text("- {reply: 4}\n", encoding="utf-8")
    completed = command(
        "run", "run.yaml", "--out", "out", "--cache", "cache", "--record", "calls.jsonl"
    )
    assert completed.code == 0, completed.err
    sent = [
        {name.lower(): value for name, value in headers.items()} for headers in chat_server.headers
    ]
    assert {headers["x-api-key"] for headers in sent} == {"hush-1234"}
    assert not any(
        "strict judge" in json.dumps(body) for body in chat_server.bodies
    )  # this option belongs to the judge
    files = [path for path in project.rglob("*") if path.is_file() and path.name != "run.yaml"]
    assert len(files) > 8
    assert not [path for path in files if b"hush-1234" in path.read_bytes()]


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")
def test_a_folder_with_generated_outputs_is_its_owners_alone(
    project: Path, command: Callable[..., Any]
) -> None:
    assert command("run", "run.yaml", "--out", "out").code == 0
    assert stat.S_IMODE((project / "out").stat().st_mode) == 0o700
    (project / "other").mkdir()
    (project / "victim").write_text("mine")
    (project / "other/outputs.jsonl").symlink_to("../victim")
    assert command("run", "run.yaml", "--out", "other").code == 0
    assert (project / "victim").read_text() == "mine"


def test_nothing_is_asked_twice(project: Path, command: Callable[..., Any]) -> None:
    for cached in (0, 2):
        assert (
            command("run", "run.yaml", "--out", "out", "--overwrite", "--cache", "cache").code == 0
        )
        requests = judge.load_result("out").info.systems["long"].requests
        assert (requests.sent, requests.cached) == (2 - cached, cached)


def test_a_recording_answers_the_generation_too(
    project: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        command("run", "run.yaml", "--out", "out", "--no-cache", "--record", "calls.jsonl").code
        == 0
    )
    for name in ("writer.yaml", "judge.yaml"):
        (project / name).unlink()
    monkeypatch.chdir(project.parent)  # the paths of the scripted models may be longer
    run = f"{project.name}/run.yaml", "--out", f"{project.name}/again"
    completed = command("run", *run, "--no-cache", "--replay", f"{project.name}/calls.jsonl")
    assert completed.code == 0, completed.err
    outputs = [(project / folder / "outputs.jsonl").read_bytes() for folder in ("out", "again")]
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("long.jinja", "{{ topic }}", "{{ tpic }}", "long.jinja:1: 'tpic' is undefined"),
        ("long.jinja", "{{ topic }}", "{{ topic ", "long.jinja:3"),
        (
            "long.jinja",
            "{{ topic }}",
            "{% include '/etc/passwd' %}",
            "long.jinja:1: no template /etc/passwd here",
        ),
        ("long.jinja", "{{ topic }}", "{{ ''.__class__.__mro__ }}", "long.jinja:1"),
        ("run.yaml", "long.jinja", "lng.jinja", "lng.jinja: no such file"),
        (
            "run.yaml",
            "{prompt: short.jinja, model",
            "{prompt: short.jinja, modle",
            "short: unknown key 'modle'",
        ),
        (
            "run.yaml",
            "{prompt: short.jinja, model:",
            "{prompt: short.jinja, system_message:",
            "run.yaml:2: systems: short: write",
        ),
        (
            "run.yaml",
            "short.jinja,",
            "short.jinja, generations: 0,",
            "short: generations: input",
        ),
        (
            "short.jinja",
            "Summarize in three words: {{ source }}",
            "{{ topic if false }}",
            "short.jinja: the prompt is empty",
        ),
        ("run.yaml", "criteria: [relevance]", "criteria: [relevnace]", "did you mean 'relevance'?"),
        ("run.yaml", "  lead: lead.jsonl\n", "  lead: missing.jsonl\n", "missing.jsonl"),
        ("lead.jsonl", '"pool"', '"pol"', "2 judged"),
    ],
)
def test_mistakes_are_errors_before_any_request(
    project: Path, command: Callable[..., Any], file: str, old: str, new: str, words: str
) -> None:
    replaced(project / file, old, new)
    completed = command("run", "run.yaml", "--out", "out")
    if file == "lead.jsonl":
        assert completed.code == 1
        assert has_line(" ".join(completed.out.split()), "lead.jsonl", "no output", "this item")
    else:
        assert completed.code == 2
        assert words in completed.err
        assert "generating: " not in completed.err


def test_in_python(project: Path) -> None:
    systems: Any = {
        "long": {"prompt": project / "long.jinja", "model": f"scripted/{project}/writer.yaml"},
        "short": {"prompt": project / "short.jinja", "model": f"scripted/{project}/writer.yaml"},
    }
    rows = [json.loads(line) for line in ARTICLES.splitlines()]
    provider = judge.ScriptedProvider(lambda _: "4")
    result = judge.evaluate(
        rows, ["relevance"], model=provider, systems=systems, metrics=[], cache=False
    )
    assert {s.key: s.output for s in result.table.samples}["pool", "short"] == "Pool opens early."
    forecast = judge.plan(rows, ["relevance"], model=provider, systems=systems, cache=False)
    assert [each.estimate.judge for each in forecast.judges[:2]] == ["long", "short"]
    with pytest.raises(ConfigError, match="generates no outputs"):
        judge.card(rows, ["relevance"], model=provider, systems=systems)
    with pytest.raises(DataError, match="no system wrote a text"):
        judge.evaluate(
            [{"item": "x", "source": "y", "topic": "z"}],
            ["relevance"],
            model=provider,
            systems=systems,
            cache=False,
        )


def test_a_text_that_is_missing_is_a_failure_in_every_report(
    project: Path, command: Callable[..., Any]
) -> None:
    replaced(
        project / "writer.yaml", "- {when: [three words, pool], reply: Pool opens early.}\n", ""
    )
    command("run", "run.yaml", "--out", "out")
    assert "5 judged, 1 failed" in command("report", "out").out
    assert "2 judged, 1 failed" in command("report", "out", "--where", "topic=sport").out
    assert "3 judged, 0 failed" in command("report", "out", "--where", "topic=city").out
    assert "holds no reply" in (project / "out/report.html").read_text("utf-8")
    assert command("compare", "out", "out").code == 0
    item = command("report", "out", "--item", "pool").out
    assert has_line(item, "No output", "refused", "writer.yaml", "no reply")
    assert "1 failed" in item
    assert "No output;" in command("report", "out", "--item", "pool", "--system", "short").out


def test_plan_includes_the_cost_of_generation(project: Path, command: Callable[..., Any]) -> None:
    text = (project / "run.yaml").read_text("utf-8").replace("scripted/writer.yaml", "gpt-5.4-mini")
    (project / "run.yaml").write_text(text, encoding="utf-8")
    completed = command("plan", "run.yaml", "--json")
    assert completed.code == 0, completed.err
    forecast = json.loads(completed.out)
    long, short, relevance = forecast["judges"]
    # the systems generate one after the other; the scripted judge takes no time
    assert forecast["seconds"] == pytest.approx(long["time"]["seconds"] + short["time"]["seconds"])
    assert (long["judge"], long["total"]["requests"], long["total"]["written"]) == ("long", 2, 2048)
    assert short["total"]["read"] > 0
    assert long["money"]["price"] > 2048 * 1e-7
    assert relevance["total"]["judgments"] == 6
    assert has_line(command("plan", "run.yaml").out, "outputs", "not written yet")


def test_the_plan_uses_the_outputs_that_are_stored(
    project: Path, command: Callable[..., Any]
) -> None:
    assert command("run", "run.yaml", "--generate-only", "--cache", "cache").code == 0
    completed = command("plan", "run.yaml", "--cache", "cache", "--json")
    assert [each["total"]["requests"] for each in json.loads(completed.out)["judges"]] == [0, 0, 6]


SUITE = """\
data: articles.jsonl
systems:
  long: {prompt: long.jinja, model: scripted/writer.yaml}
  short: {prompt: short.jinja, model: scripted/writer.yaml}
criteria: [relevance]
model: scripted/judge.yaml
cases:
  - name: the short one is kept
    item: tram
    system: short
    expect: {max: 3}
"""


def test_a_suite_generates_its_outputs(project: Path, command: Callable[..., Any]) -> None:
    (project / "s.judge.yaml").write_text(SUITE, encoding="utf-8")
    completed = command("test", "s.judge.yaml", "--no-cache")
    assert completed.code == 0, completed.err
    replaced(
        project / "writer.yaml", "- {when: [three words, tram], reply: Tram runs again.}\n", ""
    )
    completed = command("test", "s.judge.yaml", "--no-cache")
    assert completed.code == 2  # a missing text must not let a case pass
    assert has_line(completed.err, "1 output", "not be generated", "short for item tram")


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (("--model", "anthropic/claude-haiku-5-5"), "$ANTHROPIC_API_KEY"),
        (("--baseline", "nowhere"), "no such folder"),
        (("--update-baseline",), "needs a folder"),
    ],
)
def test_a_suite_that_cannot_be_judged_generates_nothing(
    project: Path,
    command: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    fact: str,
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (project / "s.judge.yaml").write_text(SUITE, encoding="utf-8")
    completed = command("test", "s.judge.yaml", "--no-cache", *options)
    assert completed.code == 2
    assert fact in completed.err
    assert "generating" not in completed.err


@pytest.mark.parametrize(
    "mistake",
    [
        SUITE.replace("    system: short", "    system: shrot"),
        "{data: articles.jsonl, cases: [{criterion: relevance, expect: {min: 1}, item: trma}]}",
        "casse: []",
    ],
    ids=["another suite with systems", "a suite of texts", "no suite"],
)
def test_a_mistake_in_another_suite_is_an_error_before_generation(
    project: Path, command: Callable[..., Any], mistake: str
) -> None:
    (project / "a.judge.yaml").write_text(SUITE, encoding="utf-8")
    (project / "b.judge.yaml").write_text(mistake, encoding="utf-8")
    completed = command("test", "a.judge.yaml", "b.judge.yaml", "--no-cache")
    assert completed.code == 2
    assert "b.judge.yaml" in completed.err
    assert "generating" not in completed.err


def test_generations_are_one_item(project: Path, command: Callable[..., Any]) -> None:
    """Systems may have different numbers of generations. Cases and tables count them as one item."""
    once = "short.jinja, model: scripted/writer.yaml"
    replaced(project / "run.yaml", once, f"{once}, temperature: 1, generations: 3")
    cases = """\
cases:
  - {criterion: relevance, better: long, worse: short, margin: -3}
  - {criterion: relevance, item: tram, better: lead, worse: short, margin: -3}
  - {criterion: relevance, item: tram, system: short, expect: {max: 4.5}}
"""
    text = (project / "run.yaml").read_text(encoding="utf-8").replace("metrics: none\n", "")
    (project / "s.judge.yaml").write_text(text + cases, encoding="utf-8")
    completed = command("test", "s.judge.yaml", "--no-cache", "--full")
    assert has_line(completed.out, "3 cases: 1 undecided, 2 passed")
    assert has_line(
        completed.out, "no test", "6 items"
    )  # there are two, with three generations each  # there are two, with three generations each
    completed = command("run", "run.yaml", "--no-cache", "--out", "out")
    assert completed.code == 0, completed.err
    assert "2/6" not in completed.out
    assert "Not every system" not in completed.out


def test_against_an_unknown_system_no_output_is_generated(
    project: Path, command: Callable[..., Any]
) -> None:
    completed = command("run", "run.yaml", "--against", "shrot", "--record", "calls.jsonl")
    assert completed.code == 2
    assert has_line(completed.err, "--against shrot", "'short'")
    assert not (project / "calls.jsonl").exists()


def test_a_mistake_in_a_case_is_an_error_before_generation(
    project: Path, command: Callable[..., Any]
) -> None:
    suite = SUITE.replace("    system: short", "    system: shrot")
    (project / "s.judge.yaml").write_text(suite, encoding="utf-8")
    completed = command("test", "s.judge.yaml")
    assert completed.code == 2
    assert "did you mean 'short'?" in completed.err
    assert "generating" not in completed.err


def test_outputs_generated_by_a_suite_are_shown_counted_and_stored(
    project: Path, command: Callable[..., Any]
) -> None:
    (project / "s.judge.yaml").write_text(SUITE, encoding="utf-8")
    completed = command("test", "s.judge.yaml", "--no-cache", "--out", "runs/s")
    assert completed.code == 0, completed.err
    assert "generating: 4/4 outputs" in completed.err
    info = judge.load_result("runs/s").info
    assert info.requests.answered == 4 + info.judges["judge.yaml"].requests.answered
    assert info.systems["long"].requests.answered == 2
    assert len((project / "runs/s/outputs.jsonl").read_text("utf-8").splitlines()) == 4


def test_a_file_of_outputs_may_have_generations_and_has_one_system(
    project: Path, command: Callable[..., Any]
) -> None:
    rows = [("pool", 1, "a"), ("pool", 2, "b"), ("tram", 1, "c")]
    lines = [json.dumps({"item": item, "generation": n, "output": text}) for item, n, text in rows]
    (project / "lead.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert command("run", "run.yaml", "--out", "out").code == 0
    texts = {
        s.key: (s.source_item, s.output)
        for s in judge.load_result("out").table.samples
        if s.system == "lead"
    }
    assert texts == {(f"{item} ({n})", "lead"): (item, text) for item, n, text in rows}
    lines = [json.dumps({"item": "pool", "system": name, "output": "a"}) for name in ("x", "y")]
    (project / "lead.jsonl").write_text("\n".join(lines), encoding="utf-8")
    completed = command("run", "run.yaml", "--out", "out2")
    assert completed.code == 2
    assert has_line(completed.err, "lead.jsonl", "x, y", "a file for each system")


def test_the_writing_is_shown(project: Path, command: Callable[..., Any]) -> None:
    completed = command("run", "run.yaml")
    assert has_line(completed.err, "generating", "long and short")
    assert "generating: 4/4 outputs" in completed.err
    assert "done: 6/6 judgments" in completed.err
    lines: list[str] = []
    rows = [json.loads(line) for line in ARTICLES.splitlines()]
    systems: Any = {"long": {"prompt": "long.jinja", "model": "scripted/writer.yaml"}}

    def watch(progress: Any) -> None:
        lines.append(f"{progress.stage} {progress.done}/{progress.total} {progress.unit}")

    judge.evaluate(
        rows,
        ["relevance"],
        model="scripted/judge.yaml",
        systems=systems,
        metrics=[],
        progress=watch,
    )
    assert lines[-1] == "done 2/2 judgment"


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_plan_estimates_the_length_of_outputs_by_script(
    project: Path, command: Callable[..., Any], language: str
) -> None:
    """The plan assumes 100 tokens for a missing output, which is fewer characters in Japanese."""
    text = {"en": "The tram runs again. ", "ja": "市電は月曜から走ります。"}[language] * 100
    (project / "articles.jsonl").write_text(
        json.dumps({"item": "a", "source": text, "topic": "t"}), encoding="utf-8"
    )
    (project / "none.jinja").write_text(
        "---\nscale: [1, 5]\n---\nGrade this: {{ output }}\n", encoding="utf-8"
    )
    run = RUN.replace("  lead: lead.jsonl\n", "").replace(
        "scripted/writer.yaml", "m, max_tokens: 100"
    )
    (project / "run.yaml").write_text(run.replace("relevance", "none.jinja"), encoding="utf-8")
    completed = command(
        "plan", "run.yaml", "--base-url", "http://127.0.0.1:9/v1", "--json", "--no-cache"
    )
    assert completed.code == 0, completed.err
    *_, grades = json.loads(completed.out)["judges"]
    assert grades["total"]["requests"] == 2
    assert 210 <= grades["total"]["read"] <= 270


# In Python

SYSTEMS = {
    "long": {"prompt": "long.jinja", "model": "scripted/writer.yaml"},
    "short": {"prompt": "short.jinja", "model": "scripted/writer.yaml"},
}


def articles() -> pd.DataFrame:
    return pd.read_json(StringIO(ARTICLES), lines=True)


def test_python_generates_outputs_that_a_run_judges(project: Path) -> None:
    progress = judge.Progress()
    outputs = judge.generate(articles(), systems=SYSTEMS, cache=False, progress=progress)
    assert repr(outputs) == "<Outputs: 4 texts>"
    assert progress.stage == "done"
    frame = outputs.to_frame()
    assert list(frame["output"][:2]) == ["The tram runs again from Monday.", "Tram runs again."]
    assert list(frame["topic"]) == ["city", "city", "sport", "sport"]
    result = judge.evaluate(
        frame, "relevance", model="scripted/judge.yaml", metrics=[], cache=False
    )
    assert result.table.systems == ("long", "short")
    outputs.save("texts/outputs.jsonl")
    assert len(judge.load_samples("texts/outputs.jsonl")) == 4


@pytest.mark.parametrize("make", [dict, lambda **row: judge.Sample(**row)])
def test_an_item_with_outputs_of_several_systems_is_written_once(
    project: Path, make: Callable[..., Any]
) -> None:
    rows = [
        make(item=item, system=system, output=f"{item} by {system}", source="The tram runs.")
        for item in ("tram", "pool")
        for system in ("old", "older")
    ]
    systems = {"new": {"prompt": "short.jinja", "model": "scripted/writer.yaml"}}
    outputs = judge.generate(rows, systems=systems, cache=False)
    assert [(sample.item, sample.system) for sample in outputs.samples] == [
        ("tram", "new"),
        ("pool", "new"),
    ]


def test_an_item_that_one_system_has_twice_is_refused(project: Path) -> None:
    rows = [
        {"item": "tram", "system": "old", "output": output, "source": "The tram runs."}
        for output in "ab"
    ]
    systems = {"new": {"prompt": "short.jinja", "model": "scripted/writer.yaml"}}
    with pytest.raises(DataError, match="tram"):
        judge.generate(rows, systems=systems, cache=False)


def test_python_reads_rows_that_come_once(project: Path) -> None:
    rows = (row for row in articles().to_dict("records"))
    assert len(judge.generate(rows, systems=SYSTEMS, cache=False).samples) == 4


def test_python_counts_texts_that_could_not_be_written(project: Path) -> None:
    rows = [*articles().to_dict("records"), {"item": "new", "source": "Nobody wrote of this."}]
    outputs = judge.generate(rows, systems={"short": SYSTEMS["short"]}, cache=False)
    assert repr(outputs) == "<Outputs: 2 texts, 1 failure>"
    assert [failure.item for failure in outputs.failures] == ["new"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "system's prompt and model"),
        ({"systems": ["a", "b"]}, "system's prompt and model"),
        ({"systems": SYSTEMS, "metrics": ["rouge"]}, "metrics: judge.generate judges nothing"),
        ({"systems": SYSTEMS, "budgett": 1}, "budgett: judge.generate judges nothing"),
        ({"systems": {"a": {"prompt": "none.jinja", "model": "m"}}}, "none.jinja"),
        ({"systems": {"a": {"model": "m"}}}, "a: write its prompt"),
        ({"systems": {"a": {"prompt": "long.jinja", "model": print}}}, "a: model: write the name"),
        ({"systems": {"a": {"prompt": "Cut: {{ source }}", "model": "m"}}}, "text of a prompt"),
    ],
)
def test_python_refuses_options_that_generate_nothing(
    project: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        judge.generate(articles(), **options)
    assert "--" not in str(raised.value)
