"""The examples run as they stand, and what they show is what their replies say."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import judge
from judge import config, criteria, recording, samples
from judge.cli import app
from judge.render import Renderer
from judge.report import Result, load
from judge.text import installed

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
FOLDERS = {"en": "compare_systems", "ja": "summaries_ja", "ko": "summaries_ko", "zh": "summaries_zh"}
SUPPORT_VALUES = {"unresolved": 0.0, "partly": 0.5, "resolved": 1.0}

Means = dict[tuple[str, str], float]


def _rules(name: str) -> list[tuple[list[str], Any]]:
    """The texts and the reply of every rule of an example's replies.yaml."""
    rules = yaml.safe_load((EXAMPLES / name / "replies.yaml").read_text(encoding="utf-8"))
    return [([rule["when"]] if isinstance(rule["when"], str) else rule["when"], rule["reply"]) for rule in rules]


def _value(reply: Any) -> float:
    """What a reply is worth: its probabilities' mean, its label's value, or the number that it ends with."""
    if isinstance(reply, dict):
        return float(sum(label * p for label, p in reply.items()) / sum(reply.values()))
    first = reply.splitlines()[0]
    return SUPPORT_VALUES[first] if first in SUPPORT_VALUES else float(first.split()[-1])


def _expected(name: str) -> Means:
    """Every system's mean by criterion, from replies.yaml and the ends of the outputs alone."""
    lines = (EXAMPLES / name / "data.jsonl").read_text(encoding="utf-8").splitlines()
    values = defaultdict(list)
    for texts, reply in _rules(name):
        end = texts[0].removesuffix("\n</output")
        (system,) = [row["system"] for row in map(json.loads, lines) if row["output"].endswith(end)]
        column = texts[1].removeprefix("Criterion: ").lower() if texts[1:] else "resolves_the_request"
        values[system, column].append(_value(reply))
    return {key: fmean(found) for key, found in values.items()}


def _run(name: str, out: Path) -> Result:
    done = CliRunner().invoke(app, ["run", str(EXAMPLES / name / "run.yaml"), "--out", str(out), "--quiet"])
    assert done.exit_code == 0, done.output
    return load(out)


@pytest.fixture(scope="module")
def support(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return _run("custom_criterion", tmp_path_factory.mktemp("support"))


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return _run("compare_systems", tmp_path_factory.mktemp("english"))


def test_every_prompt_has_one_rule_and_every_rule_one_prompt() -> None:
    name = "custom_criterion"
    plan = config.plan(EXAMPLES / name / "run.yaml")
    assert plan.data is not None
    prompts = []
    for criterion in map(criteria.load, plan.criteria):
        renderer = Renderer(criterion, criteria.bodies(criterion))
        prompts += [renderer.render(sample).messages[0]["content"] for sample in samples.load(plan.data)]
    rules = _rules(name)
    answers = [[n for n, (texts, _) in enumerate(rules) if all(t in prompt for t in texts)] for prompt in prompts]
    assert [len(found) for found in answers] == [1] * len(prompts)
    assert Counter(n for found in answers for n in found) == Counter(range(len(rules)))


def test_everything_is_scored(support: Result) -> None:
    judged = {column.name for column in support.table.columns if column.kind == "criterion"}
    assert sum(score.column in judged for score in support.table.scores) == 12
    assert support.failures == ()
    for place in ("console", "markdown", "html"):
        assert "Scripted replies: no model was asked." in " ".join(support.report(place).split()), place


@pytest.mark.parametrize("language", FOLDERS)
def test_the_recording_holds_the_replies_to_all_prompts_and_no_others(language: str, tmp_path: Path) -> None:
    """Where this fails after a change of the prompts: python examples/renew_recordings.py."""
    folder = EXAMPLES / FOLDERS[language]
    plan = config.plan(folder / "run.yaml")
    assert plan.replay is not None
    options: dict[str, Any] = {"reply": plan.reply, "weighting": plan.weighting, "draws": plan.draws}
    again = tmp_path / "again.jsonl"
    result = judge.evaluate(
        folder / "data.jsonl", plan.criteria, replay=plan.replay, record=again, metrics=[], cache=False, **options
    )
    recorded = recording.read(plan.replay)
    assert recording.read(again).replies == recorded.replies
    assert result.failures == ()
    scores = [s for s in result.table.scores if s.provenance.method == "samples"]
    assert len(scores) == len(recorded.replies) == len(result.table.samples) * 4
    said = [json.loads(s.provenance.raw or "[]") for s in scores]
    assert [s.value for s in scores] == pytest.approx(
        [fmean(int(one.split("\n")[0]) for one in three) for three in said]
    )
    assert all(len(three) == 3 for three in said)


@pytest.mark.parametrize("language", FOLDERS)
def test_copies_are_the_first_words_of_their_sources(language: str) -> None:
    rows = samples.load(EXAMPLES / FOLDERS[language] / "data.jsonl")
    copies = [s for s in rows if (s.source or "").startswith(s.output)]
    assert [s.system for s in copies] == ["lead"] * (6 if language == "en" else 3)


def test_the_demo_shows_everything(english: Result) -> None:
    for place in ("console", "markdown", "html"):
        said = " ".join(english.report(place).split())
        assert "Recorded demo replies, not a live model" in said, place
        assert "heuristic-1 is a baseline of surface features, not a language model" in said, place
    columns = {c.name for c in english.table.columns}
    wanted = {"relevance", "fluency_5", "rouge1", "bleu", "chrf", "stats_words", "heuristic_extractive_support"}
    assert wanted <= columns
    assert {f.error for f in english.failures} == {"Abstained"}
    assert english.failed == 0  # beside a judge, a baseline that abstains has not failed


def test_the_demo_tells_the_story_of_its_readme(english: Result) -> None:
    value = {(s.item, s.system, s.column): s.value for s in english.table.scores}

    def ranked(item: str, column: str) -> list[str]:
        return sorted(english.table.systems, key=lambda system: value[item, system, column], reverse=True)

    for column in ("rouge1", "rouge2", "rougeL", "bleu", "chrf"):
        assert ranked("strike", column)[0] == "careless", column
    assert value["strike", "careless", "consistency"] == 1.0
    assert ranked("strike", "consistency")[-1] == "careless"
    assert value["bats", "lead", "consistency"] == 5.0
    assert ranked("bats", "relevance")[-1] != "concise"


def test_the_ranking_is_what_its_readme_tells(tmp_path: Path) -> None:
    made = ["rank", str(EXAMPLES / "pairwise" / "run.yaml"), "--out", str(tmp_path / "r"), "--quiet"]
    done = CliRunner().invoke(app, made)
    assert done.exit_code == 0, done.output
    (ranking,) = load(tmp_path / "r").rankings
    assert [s.system for s in ranking.standings] == ["plain", "brief", "chatty"]
    assert (ranking.pairs, ranking.standings[0].ties) == (15, 1)
    assert ranking.flip_rate == pytest.approx(1 / 14)  # percent alone, of the 14 pairs that a judge was asked about


def test_support_shows_the_means_that_its_replies_imply(support: Result) -> None:
    expected = _expected("custom_criterion")
    column = "resolves_the_request"
    assert expected == pytest.approx({("prompt_v1", column): 1.5 / 6, ("prompt_v2", column): 5 / 6})
    for key, mean in expected.items():
        assert support.estimates[key].value == pytest.approx(mean, abs=1e-9)


def test_support_keeps_the_reasons(support: Result) -> None:
    reasons = {(s.item, s.system): s.provenance.reason or "" for s in support.table.scores}
    assert "one that the policy forbids" in reasons["T-104", "prompt_v2"]
    assert all(reason.endswith(".") for reason in reasons.values())


def test_support_prompt_shows_message_and_policy_but_not_the_system() -> None:
    folder = EXAMPLES / "custom_criterion"
    arguments = ["criteria", "render", str(folder / "resolves_the_request.jinja"), str(folder / "data.jsonl")]
    done = CliRunner().invoke(app, [*arguments, "--item", "T-106"])
    assert done.exit_code == 0, done.output
    for text in ("It doesn't fit. What now?", "Exchanges for another size", "unresolved, partly, resolved"):
        assert text in done.output
    assert "prompt_v1" not in done.output


@pytest.mark.parametrize("language", ["en", "ja"])
def test_qags_tells_the_false_summary_from_the_faithful_one(language: str, tmp_path: Path) -> None:
    if language == "ja" and not installed("ja"):
        pytest.skip("the Japanese noun finder needs textjudge[cjk]")
    plan = str(EXAMPLES / f"qags_{language}" / "run.yaml")
    done = CliRunner().invoke(app, ["score", plan, "--out", str(tmp_path / "r"), "--quiet"])
    assert done.exit_code == 0, done.output
    result = load(tmp_path / "r")
    value = {system: result.estimates[system, "qags_f1"].value for system in result.table.systems}
    assert value["faithful"] >= value["shifted"] > value["padded"] > value["false"]
    told = (EXAMPLES / f"qags_{language}" / "README.md").read_text("utf-8")
    for system, found in value.items():
        assert f"| {system} | {found:.3f} |" in told
