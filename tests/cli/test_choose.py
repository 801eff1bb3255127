"""`judge choose`: which of the judges, prompts and panels agrees best with people, and what it costs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judge as package
from judge.core.errors import DataError
from judge.providers.scripted import ScriptedProvider
from judge.results.result import Result

QUALITY = {"x": 5, "y": 3, "z": 2, "w": 1}
TEXT = "The town's council met on Monday about {item} and the old bridge, and voted to mend it in May"


def rows(items: int = 12, criteria: tuple[str, ...] = ("relevance",), rated: int = 100) -> list[dict[str, Any]]:
    """Texts of four systems; people agree on their order but for some noise."""
    random = np.random.default_rng(0)
    return [
        {
            "item": f"i{n}",
            "system": system,
            "source": TEXT.format(item=f"i{n}"),
            "output": f"{system} wrote about i{n} that the council voted" + " again" * ((n * 7 + quality) % 4),
        }
        | ({"human": {c: float(quality + random.integers(0, 2)) for c in criteria}} if n < rated else {})
        for n in range(items)
        for system, quality in QUALITY.items()
    ]


def noisy(noise: float, seed: int) -> Callable[[Any], str]:
    """A judge that sees the quality of a text, with noise."""
    random = np.random.default_rng(seed)

    def reply(request: Any) -> str:
        text = request.messages[0]["content"]
        quality = next(value for system, value in QUALITY.items() if f"{system} wrote" in text)
        return str(int(np.clip(round(quality + noise * random.normal()), 1, 5)))

    return reply


def judged(data: list[dict[str, Any]], *judges: Callable[[Any], str], **options: Any) -> Result:
    models = [ScriptedProvider(reply, model=f"model-{place}") for place, reply in enumerate(judges)]
    options = {"criteria": ["relevance"], **options}
    return package.evaluate(data, model=models, metrics=[], cache=False, **options)


def test_the_better_judge_is_chosen_with_what_to_expect_of_it() -> None:
    (choice,) = package.choose(judged(rows(30), noisy(0.3, 1), noisy(6, 2)), level="document").choices
    assert choice.chosen == "model-0"
    assert {c.name for c in choice.candidates if c.kind != "baseline"} == {"model-0", "model-1", "model-0 + model-1"}
    assert "length" in choice.by_name
    assert choice.honest is not None
    assert choice.naive is not None
    assert choice.optimism == choice.naive - choice.honest.value >= 0
    assert choice.by_name["model-1"] not in choice.not_worse
    assert sum(candidate.share for candidate in choice.candidates) == pytest.approx(1)


def test_runs_are_compared_as_a_panel_is() -> None:
    """Two prompts of one model are two candidates, named by their runs."""
    data = rows(20)
    together = judged(data, noisy(0.5, 1), noisy(2, 2))
    apart = [judged(data, noisy(0.5, 1)), judged(data, noisy(2, 2))]
    (first,), (second,) = package.choose(together).choices, package.choose(*apart).choices
    assert {c.name for c in second.candidates} >= {"model-0 (run 1)", "model-0 (run 2)"}
    assert first.by_name["model-0"].value == second.by_name["model-0 (run 1)"].value
    panels = [next(c for c in choice.candidates if c.kind == "panel") for choice in (first, second)]
    assert panels[0].value == panels[1].value


def test_three_judges_make_four_panels() -> None:
    (choice,) = package.choose(judged(rows(8), noisy(1, 1), noisy(1, 2), noisy(1, 3))).choices
    panels = [candidate for candidate in choice.candidates if candidate.kind == "panel"]
    assert sorted(len(panel.members) for panel in panels) == [2, 2, 2, 3]
    assert "all 3 judges" in choice.by_name


def test_one_judge_is_compared_with_baselines() -> None:
    choices = package.choose(judged(rows(), noisy(0.3, 1)))
    (choice,) = choices.choices
    assert (choice.chosen, choice.recommended) == ("model-0", "model-0")
    assert "relevance: model-0 agrees best with people (" in choices.report()


def with_prices(result: Result, *prices: float) -> Result:
    """The result as if its judges had cost this many dollars."""
    judges = {
        name: {**info, "cost": {"usd": price, "note": ""}}
        for (name, info), price in zip(result.info["judges"].items(), prices, strict=True)
    }
    return replace(result, info={**result.info, "judges": judges})


def test_a_cheaper_judge_that_is_not_significantly_worse_is_recommended() -> None:
    result = with_prices(judged(rows(10), noisy(0.8, 1), noisy(0.9, 2)), 4.0, 1.0)
    choices = package.choose(result)
    (choice,) = choices.choices
    assert choice.by_name["model-1"].price == 1000 * 1.0 / 40  # 40 judgments
    assert choice.by_name["model-0 + model-1"].price == 1000 * 5.0 / 40
    assert choice.recommended == "model-1"
    assert choice.chosen != "model-1"
    assert "model-1 is not significantly worse (" in choices.report()
    assert "less: choose it" in " ".join(choices.report().split())


def test_a_panel_gives_way_to_a_part_of_it_without_prices() -> None:
    (choice,) = package.choose(judged(rows(10), noisy(2, 1), noisy(2, 2))).choices
    assert choice.chosen == "model-0 + model-1"
    assert choice.recommended in ("model-0", "model-1")


def test_failures_do_not_help() -> None:
    """A judge that fails on every text it would misjudge is not better than one that judges them right."""
    wrong = noisy(0, 1)

    def fails(request: Any) -> str:
        text = request.messages[0]["content"]
        return "no idea" if "y wrote" in text or "z wrote" in text else wrong(request)

    (choice,) = package.choose(judged(rows(20), noisy(0.2, 1), fails)).choices
    failing = choice.by_name["model-1"]
    assert (failing.failed, failing.judged, failing.readable) == (40, 80, 0.5)
    assert choice.chosen == "model-0"
    assert failing.value is not None
    assert failing.value < 0.97  # with the failures left out it would order the other two texts without an error


def test_a_judge_without_any_score_is_no_candidate() -> None:
    choices = package.choose(judged(rows(8), noisy(0.5, 1), lambda _: "no idea"))
    (choice,) = choices.choices
    assert [c.name for c in choice.candidates if c.kind != "baseline"] == ["model-0"]
    assert "relevance: all 32 judgments by model-1 failed, so it is no candidate." in choices.notes


def test_ratings_that_made_a_prompt_are_excluded() -> None:
    data = rows(12)
    shown = {"name": "relevance", "question": "Is it relevant?", "scale": [1, 5]}
    example = {"output": data[0]["output"], "source": data[0]["source"], "score": 5}
    with_example = judged(data, noisy(0.5, 1), criteria=[{**shown, "examples": [example]}])
    (choice,) = package.choose(with_example).choices
    (without,) = package.choose(judged(data, noisy(0.5, 1))).choices
    assert (choice.excluded, choice.texts) == (1, without.texts - 1)


def test_what_cannot_be_chosen_says_what_is_needed() -> None:
    with pytest.raises(DataError, match=r"relevance: choosing at level document needs at least 5 .* there are 4"):
        package.choose(judged(rows(8, rated=4), noisy(0.5, 1), noisy(0.5, 2)))
    with pytest.raises(DataError, match="no text has a human rating"):
        package.choose(judged(rows(8, rated=0), noisy(0.5, 1)))
    with pytest.raises(DataError, match=r"People rated fluency.*judged relevance"):
        package.choose(judged(rows(8, criteria=("fluency",)), noisy(0.5, 1)))


def test_a_criterion_that_nobody_judged_is_named() -> None:
    choices = package.choose(judged(rows(8, criteria=("relevance", "fluency")), noisy(0.5, 1)))
    assert [choice.criterion for choice in choices.choices] == ["relevance"]
    assert "No judge scored fluency." in choices.notes


# On the command line

REPLIES = "- {when: x wrote, reply: 5}\n- {when: y wrote, reply: 3}\n- {when: [], reply: 1}\n"
MODELS = ("--model", "scripted/good.yaml", "--model", "scripted/bad.yaml", "--criteria", "relevance")


@pytest.fixture
def judge(command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The command, in a folder with data.jsonl and two scripted judges."""
    monkeypatch.setenv("COLUMNS", "80")
    Path("data.jsonl").write_text("\n".join(map(json.dumps, rows())), encoding="utf-8")
    Path("good.yaml").write_text(REPLIES, encoding="utf-8")
    Path("bad.yaml").write_text(REPLIES.replace("x wrote", "w wrote"), encoding="utf-8")
    return command


def test_data_and_models(judge: Callable[..., Any]) -> None:
    done = judge("choose", "data.jsonl", *MODELS, "--metrics", "none", "--out", "r")
    assert done.code == 0, done.err
    assert done.out.startswith("relevance: good.yaml agrees best with people (")
    assert len(done.out.splitlines()) <= 25
    assert max(map(len, done.out.splitlines())) <= 80
    again = judge("choose", "r")
    assert (again.code, again.out) == (0, done.out)
    assert "all 2 judges" not in again.out


def test_finished_runs_and_a_file_of_ratings(judge: Callable[..., Any]) -> None:
    bare = [{name: cell for name, cell in row.items() if name != "human"} for row in rows()]
    Path("bare.jsonl").write_text("\n".join(map(json.dumps, bare)), encoding="utf-8")
    sheet = [
        {"item": row["item"], "system": row["system"], "rater": "anna", "criterion": "relevance", "value": 3.0}
        | {"value": min(row["human"]["relevance"], 5)}
        for row in rows()
    ]
    Path("ratings.jsonl").write_text("\n".join(map(json.dumps, sheet)), encoding="utf-8")
    for name in ("good", "bad"):
        judge("run", "bare.jsonl", "--model", f"scripted/{name}.yaml", "--criteria", "relevance", "--metrics", "none",
              "--out", name, "--quiet")  # fmt: skip
    done = judge("choose", "good", "bad", "--ratings", "ratings.jsonl", "--format", "json")
    assert done.code == 0, done.err
    (choice,) = json.loads(done.out)["criteria"]
    assert (choice["chosen"], choice["items"]) == ("good.yaml", 12)
    assert choice["sentence"].startswith("relevance: good.yaml agrees best")


def test_formats(judge: Callable[..., Any]) -> None:
    judge("run", "data.jsonl", *MODELS, "--metrics", "none", "--out", "r", "--quiet")
    records = list(csv.DictReader(StringIO(judge("choose", "r", "--format", "csv").out)))
    assert {record["name"] for record in records} >= {"good.yaml", "bad.yaml", "good.yaml + bad.yaml", "length"}
    assert [record["name"] for record in records if record["chosen"] == "True"] == ["good.yaml"]
    assert "| good.yaml |" in judge("choose", "r", "--format", "markdown").out
    assert "good.yaml" in judge("choose", "r", "--format", "html").out
    assert "free" in judge("choose", "r", "--full").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.jsonl", *MODELS), "missing.jsonl: no such file"),
        (("data.jsonl", "nowhere", *MODELS), "nowhere: no such folder; name the folder of a run to compare with"),
        (("data.jsonl", *MODELS, "--level", "docs"), "--level: unknown level 'docs'"),
        (("r", "--max-tokens", "5"), "--max-tokens: the run in r is finished; name its data"),
        (("r", "r"), "the same run is named twice"),
        (("r", "--calibrate"), "--calibrate: the run in r is finished"),
    ],
)
def test_bad_input_says_what_to_do(judge: Callable[..., Any], arguments: tuple[str, ...], message: str) -> None:
    judge("run", "data.jsonl", *MODELS, "--metrics", "none", "--out", "r", "--quiet")
    done = judge("choose", *arguments)
    assert done.code == 2
    assert message in done.err
