"""run.json stores the first prompt of each column; judge renders other prompts again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core import plugins
from judge.core.errors import Refused
from judge.core.format import cut_middle
from judge.providers.scripted import ScriptedProvider
from judge.results.item import item_of
from judge.results.loading import load
from judge.results.result import Result
from judge.results.run_info import PromptMessage
from judge.run import run_metadata
from tests.factories import has_line

TEXTS = [
    {"item": item, "system": system, "source": f"Source {item}.", "output": f"{system} on {item}."}
    for item in ("1", "2")
    for system in ("a", "b")
]
OPTIONS: dict[str, Any] = {"metrics": [], "cache": False, "weighting": "single"}


class Listening(ScriptedProvider):
    """A judge that records its prompts in the order of the requests."""

    def __init__(self, reply: str = "4", **options: Any) -> None:
        self.asked: list[tuple[tuple[str, str], ...]] = []
        super().__init__(lambda request: reply, **options)

    async def complete(self, request: Any) -> Any:
        messages = [(message["role"], message["content"]) for message in request.messages]
        self.asked.append(tuple(messages))
        return await super().complete(request)


def pairs(messages: tuple[PromptMessage, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((message.role, message.content) for message in messages)


def written(folder: Path, question: str) -> str:
    path = folder / "own.jinja"
    path.write_text(f"---\nscale: [1, 5]\n---\n{question}", encoding="utf-8")
    return str(path)


def test_run_json_holds_the_first_prompt_of_each_column_as_sent(tmp_path: Path) -> None:
    model = Listening()
    criteria = ["coherence", "polite: Is it polite?"]
    judge.evaluate(
        TEXTS, criteria, model=model, out=tmp_path, system_message="Be strict.", **OPTIONS
    )
    prompts = load(tmp_path).info.prompts
    assert list(prompts) == ["coherence", "polite"]
    for prompt in prompts.values():
        assert (prompt.item, prompt.system, prompt.opponent) == ("1", "a", "")
        assert pairs(prompt.messages) in model.asked
        assert [message.role for message in prompt.messages] == ["system", "user"]


def test_first_prompt_of_a_ranking_names_the_opponent() -> None:
    model = Listening("A")
    prompt = judge.rank(TEXTS, ["coherence"], model=model, **OPTIONS).info.prompts["coherence"]
    assert (prompt.item, {prompt.system, prompt.opponent}) == ("1", {"a", "b"})
    assert pairs(prompt.messages) in model.asked


def test_first_prompt_of_a_decision_endpoint_has_its_question() -> None:
    model = ScriptedProvider(lambda request: "4", decides=True)
    result = judge.evaluate(TEXTS, ["coherence"], model=model, metrics=[], cache=False)
    assert [message.role for message in result.info.prompts["coherence"].messages] == [
        "user",
        "question",
    ]


def test_each_judge_of_a_panel_has_its_own_prompt(chat_server: Any) -> None:
    both = {"name": "m", "base_url": chat_server.url}
    models = [
        {**both, "label": "x", "system_message": "One."},
        {**both, "label": "y", "system_message": "Two."},
    ]
    result = judge.evaluate(TEXTS, ["coherence"], model=models, **OPTIONS)
    first = {column: prompt.messages[0] for column, prompt in result.info.prompts.items()}
    assert first == {
        "coherence/x": PromptMessage("system", "One."),
        "coherence/y": PromptMessage("system", "Two."),
    }


@pytest.mark.parametrize("ask", ["together", "each"])
def test_checklist_has_one_prompt(ask: str) -> None:
    model = Listening("yes")
    criterion = {"name": "list", "questions": ["Is it short?", "Is it polite?"], "ask": ask}
    result = judge.evaluate(TEXTS, [criterion], model=model, **OPTIONS)
    assert list(result.info.prompts) == ["list"]
    assert pairs(result.info.prompts["list"].messages) in model.asked


def test_first_prompt_is_of_the_first_text_that_can_be_rendered() -> None:
    texts = [{**TEXTS[0], "source": ""}, *TEXTS[1:]]
    result = judge.evaluate(texts, ["consistency"], model=Listening(), **OPTIONS)
    prompt = result.info.prompts["consistency"]
    assert (prompt.item, prompt.system) == ("1", "b")


def test_stopped_run_holds_its_prompt(tmp_path: Path) -> None:
    def reply(request: Any) -> Any:
        is_first = "a on 1." in request.messages[0]["content"]
        return "4" if is_first else Refused("no credit", stops="always")

    model = ScriptedProvider(reply)
    with pytest.raises(Refused):
        judge.evaluate(TEXTS, ["coherence"], model=model, out=tmp_path, **OPTIONS)
    assert list(load(tmp_path).info.prompts) == ["coherence"]


def test_a_long_source_is_cut_in_the_middle(tmp_path: Path) -> None:
    source = "".join(f"Line {number}. " for number in range(8_000))
    texts = [{**TEXTS[0], "source": source}, {**TEXTS[1], "source": source}]
    result = judge.evaluate(texts, ["coherence"], model=Listening(), out=tmp_path, **OPTIONS)
    stored = load(tmp_path).info.prompts["coherence"].messages[0].content
    prompt = item_of(result, "1", "a").prompts[0].messages[0].content
    assert len(stored) < 21_000 < len(source) < len(prompt)
    assert f"of {len(prompt):,} characters left out" in stored
    assert stored.startswith("You will judge")
    assert stored.endswith("and nothing else.")
    assert (tmp_path / "run.json").stat().st_size < 100_000
    shown = plugins.write(plugins.document(item_of(result, "1", "a")), "console", full=True)
    assert len(shown) < 40_000


def test_the_prompts_of_many_columns_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_metadata, "_MAX_PROMPT_CHARACTERS", 1_000)
    criteria = [{"name": f"c{number}", "question": "Is it good?" * 200} for number in range(4)]
    result = judge.evaluate(TEXTS[:1], criteria, model=Listening(), **OPTIONS)
    lengths = [len(prompt.messages[0].content) for prompt in result.info.prompts.values()]
    assert len(lengths) == 4
    assert max(lengths) < 300


def test_a_shortened_text_has_both_ends_and_the_original_length() -> None:
    assert cut_middle("abcdef", 6) == "abcdef"
    begin, note, end = cut_middle("abcdefg", 4).splitlines()
    assert (begin, end) == ("ab", "fg")
    assert has_line(note, "3 of 7 characters")


def test_prompt_archive_stores_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat_server: Any
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key")
    judge.evaluate(
        TEXTS, ["coherence"], model="m", base_url=chat_server.url, out=tmp_path / "run",
        headers={"X-Team": "secret-team"}, **OPTIONS,
    )  # fmt: skip
    stored = (tmp_path / "run" / "run.json").read_text(encoding="utf-8")
    assert json.loads(stored)["info"]["prompts"]["coherence"]["messages"]
    assert "sk-secret-key" not in stored
    assert "secret-team" not in stored


def test_a_run_that_holds_skeletons_of_prompts_opens_without_them(tmp_path: Path) -> None:
    judge.evaluate(TEXTS, ["coherence"], model=Listening(), out=tmp_path, **OPTIONS)
    path = tmp_path / "run.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["info"]["prompts"] = {
        "sheets": [[["user", ["Rate ", "text output", "."]]]],
        "asked": {"coherence": {"usual": 0, "others": []}},
    }
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert load(tmp_path).info.prompts == {}


# Prompts that are rendered again.


def asked_again(result: Result, item: str, system: str) -> list[tuple[tuple[str, str], ...]]:
    return [pairs(prompt.messages) for prompt in item_of(result, item, system).prompts]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"system_message": "Be strict."},
        {"structured": True},
        {"reasons": True},
        {"reply": "score_then_reason"},
        {"pass_at": 3},
    ],
)
def test_every_prompt_can_be_rendered_again_from_the_stored_run(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    replies = {"structured": '{"score": 4}', "reasons": "Good.\nScore: 4", "reply": "4\nGood."}
    model = Listening(next((replies[name] for name in options if name in replies), "4"))
    criteria = [written(tmp_path, "{{ topic }}: {{ output }}"), "polite: Is it polite?"]
    texts = [{**text, "topic": f"Topic {text['item']}"} for text in TEXTS]
    judge.evaluate(texts, criteria, model=model, out=tmp_path / "run", **OPTIONS, **options)
    result = load(tmp_path / "run")
    repeated = [
        messages for text in TEXTS for messages in asked_again(result, text["item"], text["system"])
    ]
    assert sorted(repeated) == sorted(model.asked)


def test_prompts_of_a_ranking_are_rendered_for_each_opponent() -> None:
    texts = [*TEXTS, {**TEXTS[0], "system": "c", "output": "c on 1."}]
    model = Listening("A")
    result = judge.rank(texts, ["coherence"], model=model, **OPTIONS)
    assert [prompt.opponent for prompt in item_of(result, "1", "a").prompts] == ["b", "c"]
    assert set(asked_again(result, "1", "a")) <= set(model.asked)
    assert [prompt.opponent for prompt in item_of(result, "1").prompts] == ["b"]


def test_judges_that_were_asked_the_same_share_a_prompt() -> None:
    models = [Listening(model=name) for name in "xy"]
    result = judge.evaluate(TEXTS, ["coherence"], model=models, **OPTIONS)
    (prompt,) = item_of(result, "1", "a").prompts
    assert prompt.columns == ("coherence/x", "coherence/y")


def test_a_changed_criterion_shows_a_note_instead_of_the_prompt(tmp_path: Path) -> None:
    criterion = written(tmp_path, "Rate {{ output }}.")
    result = judge.evaluate(TEXTS, [criterion], model=Listening(), **OPTIONS)
    written(tmp_path, "Grade {{ output }}.")
    (prompt,) = item_of(result, "1", "a").prompts
    assert prompt.messages == ()
    assert has_line(prompt.problem, "Not shown", "criterion own changed")
    Path(criterion).unlink()
    (prompt,) = item_of(result, "1", "a").prompts
    assert has_line(prompt.problem, "Not shown", "criterion own", "any more")
    shown = plugins.write(plugins.document(item_of(result, "1", "a")), "console", full=True)
    assert prompt.problem in " ".join(shown.split())


def test_an_unrendered_prompt_names_the_missing_field() -> None:
    texts = [{**TEXTS[0], "source": ""}, *TEXTS[1:]]
    result = judge.evaluate(texts, ["consistency"], model=Listening(), **OPTIONS)
    (prompt,) = item_of(result, "1", "a").prompts
    assert "has no source" in prompt.problem


def test_an_item_without_a_run_has_no_prompts() -> None:
    result = judge.evaluate(TEXTS, ["coherence"], model=Listening(), **OPTIONS)
    result = replace(result, info=replace(result.info, criteria={}))
    assert item_of(result, "1").prompts == ()
