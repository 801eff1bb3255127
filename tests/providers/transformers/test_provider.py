"""A judge in this process: requests gathered, answered by one thread, and whole runs with it."""

from __future__ import annotations

import asyncio
import gc
import json
import pickle
import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.commands.cost_estimate import estimate_cost
from judge.commands.judge_models import open_offline
from judge.commands.preparation import prepare
from judge.config import load_config
from judge.core.errors import ConfigError, Refused
from judge.core.records import Choice, Request, Response
from judge.providers import Provider
from judge.providers import transformers as provider
from judge.providers.transformers import InferenceThread, Job, LocalProvider
from judge.providers.transformers.label_scoring import Scorer
from judge.providers.transformers.labels import LabelTokenizer
from judge.providers.transformers.loading import LocalModel
from judge.scoring import strategies

pytestmark = pytest.mark.torch
SCORE = {"temperature": 0.0, "max_tokens": 8, "top_logprobs": 20, "labels": ["1", "2", "3"]}
DRAWS = {"temperature": 1.0, "max_tokens": 6}


def asks(text: str, params: dict[str, Any] = SCORE, **fields: Any) -> Request:
    return Request("llama", ({"role": "user", "content": text},), params, **fields)


def opened(folder: str) -> LocalProvider:
    return LocalProvider.open(folder, load_config())


def answers(judged: LocalProvider, *requests: Request) -> list[Response | BaseException]:
    """What comes back for requests that are sent at once."""

    async def all_of_them() -> list[Response | BaseException]:
        try:
            return await asyncio.gather(*map(judged.complete, requests), return_exceptions=True)
        finally:
            await judged.aclose()

    return asyncio.run(all_of_them())


def naive(judged: LocalProvider, torch: Any, text: str, labels: Sequence[str]) -> dict[str, float]:
    """Each label's probability, token by token through whole passes of the network."""
    network, tokenizer = judged._local_model.load(), judged._local_model.chat.tokenizer
    (prompt,) = judged._local_model.chat.tokens([({"role": "user", "content": text},)])
    shares = dict.fromkeys(labels, 0.0)
    for name, ways in zip(labels, LabelTokenizer(tokenizer)(labels).ways, strict=True):
        for way in ways:
            ids, log = list(prompt), 0.0
            for token in way:
                with torch.inference_mode():
                    log += network(torch.tensor([ids])).logits[0, -1].log_softmax(-1)[token].item()
                ids.append(token)
            shares[name] += torch.tensor(log).exp().item()
    return shares


def test_it_is_a_provider_of_which_the_registry_knows(local_models: Any) -> None:
    judged = opened(local_models.judge())
    assert isinstance(judged, Provider)
    assert judge.core.plugins.load("providers", "local") is LocalProvider
    assert provider.LABELS == strategies.LABELS


@pytest.mark.parametrize("kind", ["Llama", "GPT2", "Gemma3Text"])
def test_named_labels_get_their_probabilities_over_the_whole_vocabulary(local_models: Any, kind: str) -> None:
    judged = opened(local_models.judge(kind))
    texts = ["The river rose.", "The river rose by two metres.", "Only the old road stayed open."]
    found = answers(judged, *map(asks, texts))
    for text, response in zip(texts, found, strict=True):
        (choice,) = response.choices
        assert dict(choice.shares) == pytest.approx(naive(judged, local_models.torch, text, ["1", "2", "3"]), abs=1e-4)
        assert (choice.finish_reason, choice.tokens, response.unmet) == ("stop", None, ())
        assert response.usage.completion_tokens == 1
        assert response.served_by.endswith(" on cpu")


def test_labels_of_other_scripts_and_of_several_tokens(local_models: Any) -> None:
    judged = opened(local_models.judge())
    labels = ["低い", "普通", "高い", "10", "1"]
    (found,) = answers(judged, asks("The mayor", SCORE | {"labels": labels}))
    shares = dict(found.choices[0].shares)
    expected = naive(judged, local_models.torch, "The mayor", labels)
    expected["1"] -= expected["10"]
    assert shares == pytest.approx(expected, abs=1e-4)
    assert list(shares) == labels


def test_a_label_that_cannot_be_written_ends_the_run_with_both_names(local_models: Any) -> None:
    words = {word: n for n, word in enumerate(["<unk>", "<pad>", "</s>", "1", "2", "user", "the"])}
    level = local_models.tokenizers.Tokenizer(local_models.tokenizers.models.WordLevel(words, unk_token="<unk>"))
    level.pre_tokenizer = local_models.tokenizers.pre_tokenizers.Whitespace()
    tokenizer = local_models.transformers.PreTrainedTokenizerFast(
        tokenizer_object=level, unk_token="<unk>", pad_token="<pad>", eos_token="</s>"
    )
    tokenizer.chat_template = "{{ messages[0].content }}"
    judged = opened(local_models.saved("words", local_models.network("Llama", len(words)), tokenizer))
    (found,) = answers(judged, asks("the", SCORE | {"labels": ["1", "低い"]}))
    assert isinstance(found, ConfigError)
    assert "model words" in str(found)
    assert "'低い'" in str(found)


def test_draws_are_the_same_together_and_one_by_one(local_models: Any) -> None:
    judged = opened(local_models.judge())
    (together,) = answers(judged, asks("The mayor", DRAWS | {"n": 4}))
    alone = answers(judged, *(asks("The mayor", DRAWS, draw=draw) for draw in range(4)))
    assert [c.text for c in together.choices] == [one.choices[0].text for one in alone]
    assert len({c.text for c in together.choices}) > 1
    (later,) = answers(judged, asks("The mayor", DRAWS | {"n": 2}, draw=2))
    assert [c.text for c in later.choices] == [c.text for c in together.choices[2:]]
    assert together.usage.prompt_tokens == alone[0].usage.prompt_tokens
    assert together.usage.completion_tokens == sum(one.usage.completion_tokens for one in alone)


def test_a_schema_is_not_kept_to_and_that_is_said(local_models: Any) -> None:
    judged = opened(local_models.judge())
    wanted = {"temperature": 0.0, "max_tokens": 4, "top_logprobs": 5, "response_format": {"type": "json_schema"}}
    (found,) = answers(judged, asks("The mayor", wanted))
    assert found.unmet == ("response_format",)
    assert [len(token.top) for token in found.choices[0].tokens] == [5] * len(found.choices[0].tokens)


def test_what_comes_together_is_computed_together_a_document_at_a_time(
    local_models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    plain = Scorer.__call__
    monkeypatch.setattr(
        Scorer, "__call__", lambda self, prompts, *how: calls.append(len(prompts)) or plain(self, prompts, *how)
    )
    judged = opened(local_models.judge())
    grouped = [asks(f"{name} {n}", prefix=(name, 5)) for n in range(3) for name in ("first", "second")]
    found = answers(judged, *grouped, asks("alone"), asks("written", DRAWS))
    assert calls == [3, 3, 1]
    assert all(isinstance(one, Response) for one in found)


def test_a_prompt_that_is_too_long_is_refused_and_the_others_are_answered(local_models: Any) -> None:
    judged = opened(local_models.judge())
    long = "The river rose. " * 100
    for params in (SCORE, DRAWS):
        short, refused, other = answers(judged, asks("a", params), asks(long, params), asks("b", params))
        assert isinstance(short, Response)
        assert isinstance(other, Response)
        assert isinstance(refused, Refused)
        assert refused.stops == "never"
        assert "tokens" in str(refused)
        assert "512" in str(refused)


def test_one_that_is_too_much_for_the_memory_fails_alone(local_models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Scorer.__call__

    def scored(self: Scorer, prompts: Any, *how: Any) -> Any:
        if max(map(len, prompts)) > 60:
            raise Refused("out of memory")
        return plain(self, prompts, *how)

    monkeypatch.setattr(Scorer, "__call__", scored)
    judged = opened(local_models.judge())
    short, refused, other = answers(judged, asks("a"), asks("The river rose. " * 30), asks("b"))
    assert isinstance(refused, Refused)
    assert dict(short.choices[0].shares) != dict(other.choices[0].shares)


def test_the_network_is_loaded_once_and_kept_for_other_loops(
    local_models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = opened(local_models.judge())
    loads, load = [], type(judged._local_model).load
    monkeypatch.setattr(type(judged._local_model), "load", lambda self: loads.append(1) or load(self))
    first, second = answers(judged, asks("a")), answers(judged, asks("a"), asks("b"))
    assert dict(first[0].choices[0].shares) == pytest.approx(dict(second[0].choices[0].shares), abs=1e-6)
    assert len(loads) == 1
    assert "judge-local" not in {thread.name for thread in threading.enumerate()}


def test_weights_that_cannot_be_loaded_are_one_error_for_all(local_models: Any) -> None:
    folder = Path(local_models.judge())
    (folder / "model.safetensors").write_bytes(b"no")
    found = answers(opened(str(folder)), asks("a"), asks("b"))
    assert [type(one) for one in found] == [ConfigError, ConfigError]


def test_what_is_cancelled_is_not_computed(local_models: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that are cancelled while the model computes another one."""
    computed: list[int] = []
    started, released = threading.Event(), threading.Event()
    plain = Scorer.__call__

    def slow(self: Any, prompts: Any, *how: Any) -> Any:
        computed.append(len(prompts))
        started.set()
        assert released.wait(60)
        return plain(self, prompts, *how)

    monkeypatch.setattr(Scorer, "__call__", slow)
    judged = opened(local_models.judge())

    async def run() -> None:
        first = asyncio.ensure_future(judged.complete(asks("z")))
        assert await asyncio.to_thread(started.wait, 60)
        asked = [asyncio.ensure_future(judged.complete(asks(text))) for text in "abcd"]
        await asyncio.sleep(0)
        asked[1].cancel()
        asked[3].cancel()
        await asyncio.sleep(0)
        released.set()
        await asyncio.gather(first, *asked, return_exceptions=True)
        await judged.aclose()

    asyncio.run(run())
    assert computed == [1, 2]


def test_what_a_network_cannot_compute_is_an_error_with_its_name(
    local_models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("CUDA error: device-side assert triggered\nand more")

    monkeypatch.setattr(Scorer, "__call__", broken)
    (found,) = answers(opened(local_models.judge()), asks("a"))
    assert isinstance(found, ConfigError)
    assert "model llama" in str(found)
    assert str(found).endswith("its network cannot compute: CUDA error: device-side assert triggered")


def test_who_closes_it_leaves_what_others_have_asked_to_be_answered(local_models: Any) -> None:
    judged = opened(local_models.judge())

    async def run() -> list[Response]:
        asked = [asyncio.ensure_future(judged.complete(asks(text))) for text in "ab"]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(judged.aclose())
        await asyncio.sleep(0)
        closing.cancel()  # Ctrl-C, say: the thread ends by itself
        asked.append(asyncio.ensure_future(judged.complete(asks("c"))))
        found = await asyncio.gather(*asked)
        await judged.aclose()
        return found

    assert [len(one.choices) for one in asyncio.run(run())] == [1, 1, 1]


def test_what_is_cancelled_while_it_is_computed_ends_after_the_pass_in_hand(
    local_models: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on, passes = threading.Event(), threading.Event(), []
    judged = opened(local_models.judge())
    answers(judged, asks("loaded"))
    scorer = judged._judge._scorer
    scorer._tokens = 20
    forward = scorer._model.forward

    def slow(*given: Any, **how: Any) -> Any:
        passes.append(1)
        began.set()
        assert go_on.wait(60)
        return forward(*given, **how)

    monkeypatch.setattr(scorer._model, "forward", slow)

    async def run() -> None:
        waiting = asyncio.ensure_future(judged.complete(asks("The river rose. " * 20)))
        await asyncio.to_thread(began.wait, 60)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        go_on.set()
        await judged.aclose()

    asyncio.run(run())
    assert len(passes) == 1


def test_a_request_during_the_end_is_answered_by_another_thread_after_the_first() -> None:
    began, go_on, working, most = threading.Event(), threading.Event(), [], []

    def work(jobs: Sequence[Job]) -> None:
        working.append(threading.current_thread())
        most.append(len(working))
        began.set()
        assert go_on.wait(60)
        working.pop()
        for job in jobs:
            job.settle(Response((Choice(job.request.messages[0]["content"], "stop"),)))

    async def run() -> list[str]:
        desk = InferenceThread(work)
        first = asyncio.ensure_future(desk.ask(asks("first")))
        await asyncio.to_thread(began.wait, 60)
        ending = asyncio.ensure_future(desk.aclose())
        await asyncio.sleep(0.05)
        second = asyncio.ensure_future(desk.ask(asks("second")))
        await asyncio.sleep(0.2)  # time in which it must not begin
        go_on.set()
        found = await asyncio.gather(first, second)
        await ending
        await desk.aclose()
        return [response.choices[0].text for response in found]

    assert asyncio.run(asyncio.wait_for(run(), 60)) == ["first", "second"]
    assert most == [1, 1]
    assert "judge-local" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("kind", ["answered", "refused", "ended"])
def test_with_the_provider_its_model_leaves_the_memory(local_models: Any, kind: str) -> None:
    judged = opened(local_models.judge())
    requests = {
        "answered": (asks("a"), asks("b", DRAWS)),
        "refused": (asks("The river rose. " * 100), asks("The river rose. " * 100, DRAWS)),
        "ended": (asks("a", SCORE | {"labels": ["1", " 1"]}),),
    }
    found: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        found += map(type, answers(judged, *requests[kind]))
        parts = (judged, judged._judge._scorer._model, judged._judge._chat.tokenizer)
        left = [weakref.ref(one) for one in parts]
        del judged, parts
        assert [one() for one in left] == [None] * 3
    finally:
        gc.enable()
    assert set(found) == {{"answered": Response, "refused": Refused, "ended": ConfigError}[kind]}


def test_another_process_makes_it_again_from_the_same_files(local_models: Any) -> None:
    judged = opened(local_models.judge())
    again = pickle.loads(pickle.dumps(judged))
    assert (again.model, again.endpoint) == (judged.model, judged.endpoint)
    assert answers(again, asks("a"))[0].choices == answers(judged, asks("a"))[0].choices
    again.shared_state = {"sharing": "off"}
    assert again.learned["sharing"] == "off"
    recipe = pickle.dumps(judged)
    config = Path(judged._local_model.where) / "config.json"
    config.write_text(config.read_text("utf-8") + " ", "utf-8")
    with pytest.raises(ConfigError, match="its files here are others than where the run was started"):
        pickle.loads(recipe)


# Whole runs.


def texts(items: int = 2) -> list[dict[str, Any]]:
    systems = {"long": "The river rose by two metres. The mayor said so.", "short": "It rose."}
    return [
        {"item": f"item-{n}", "system": system, "source": f"{n} The river rose by two metres.", "output": output}
        for n in range(items)
        for system, output in systems.items()
    ]


@pytest.fixture
def criterion(tmp_path: Path) -> str:
    """A short criterion: the built-in ones have more tokens than these models read."""
    path = tmp_path / "good.jinja"
    path.write_text(
        "---\ntitle: Good\nscale: [1, 5]\n---\n{{ source }} {{ output }} How good is this, 1 to 5?", "utf-8"
    )
    return str(path)


def run(model: Any, criterion: str, **options: Any) -> Any:
    return judge.evaluate(texts(), criteria=[criterion], metrics=[], model=model, **options)


def test_a_run_scores_all_and_a_second_one_computes_nothing(
    local_models: Any, criterion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = local_models.judge()
    result = run(f"local/{folder}", criterion, min_mass=0)
    assert {(s.provenance.method, s.column) for s in result.table.scores} == {("logprobs", "good")}
    assert len(result.table.scores) == 4
    assert all(1 <= s.value <= 5 and 0 < s.provenance.mass < 1 for s in result.table.scores)
    (column,) = result.table.columns
    assert "|local/llama@" in column.signature
    assert ":float32|" in column.signature
    assert folder not in json.dumps(result.info["judges"]) + column.signature
    assert result.info["cost"]["usd"] is None
    monkeypatch.setattr(LocalModel, "load", lambda *_: pytest.fail("the network was loaded"))
    for options in ({}, {"weighting": "logprobs"}):
        again = run(f"local/{folder}", criterion, min_mass=0, **options)
        assert [s.value for s in again.table.scores] == [s.value for s in result.table.scores]
        assert again.info["requests"]["cached"] == 4


@pytest.mark.parametrize(
    ("options", "method"),
    [
        ({"weighting": "single"}, "single"),
        ({"weighting": "samples", "draws": 3}, "samples"),
        ({"structured": True}, "logprobs"),
        ({"temperature": 0.7, "weighting": "single", "max_tokens": 3}, "single"),
    ],
)
def test_replies_that_are_written_are_scored(
    local_models: Any, criterion: str, options: dict[str, Any], method: str
) -> None:
    tokenizer = local_models.tokenizer()
    network = local_models.opinionated(len(tokenizer), tokenizer.convert_tokens_to_ids(["4", "5"]))
    result = run(f"local/{local_models.saved('firm', network, tokenizer)}", criterion, **options)
    assert {s.provenance.method for s in result.table.scores} == {method}
    assert len(result.table.scores) == 4
    assert {s.provenance.argmax for s in result.table.scores} <= {"4", "5"}


def test_thin_mass_falls_to_draws(local_models: Any, criterion: str) -> None:
    tokenizer = local_models.tokenizer()
    network = local_models.opinionated(len(tokenizer), tokenizer.convert_tokens_to_ids(["4", "8"]))
    folder = local_models.saved("torn", network, tokenizer)
    result = run(f"local/{folder}", criterion, min_mass=0.99, draws=5)
    assert {s.provenance.method for s in result.table.scores} <= {"samples", "single"}
    assert "of the probability is on the scale" in result.table.scores[0].provenance.note


def test_a_reply_without_a_score_is_followed_by_the_question_for_it(local_models: Any, criterion: str) -> None:
    tokenizer = local_models.tokenizer()
    network = local_models.opinionated(len(tokenizer), tokenizer.convert_tokens_to_ids(["8", "9"]))
    model = f"local/{local_models.saved('off', network, tokenizer)}"
    result = run(model, criterion, reply="reason_then_score", weighting="logprobs")
    assert {(failure.method, failure.reading) for failure in result.failures} == {("logprobs", "repaired")}
    assert result.info["requests"]["answered"] == 8


def test_the_model_of_an_earlier_run_is_gone_when_the_next_is_loaded(
    local_models: Any, criterion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, alive, load = [], [], LocalModel.load

    def counting(self: LocalModel) -> Any:
        alive.append(sum(one() is not None for one in loaded))
        network = load(self)
        loaded.append(weakref.ref(network))
        return network

    monkeypatch.setattr(LocalModel, "load", counting)
    for _ in range(3):
        run(f"local/{local_models.judge()}", criterion, min_mass=0, cache=False)
    assert alive == [0, 0, 0]


def test_two_local_models_are_a_panel(local_models: Any, criterion: str) -> None:
    models = [f"local/{local_models.judge(kind)}" for kind in ("Llama", "Qwen2")]
    result = run(models, criterion, min_mass=0)
    assert [c.name for c in result.table.columns] == ["good", "good/llama", "good/qwen2"]
    assert len(result.table.scores) == 12


def test_a_recorded_run_is_replayed_without_the_model(local_models: Any, criterion: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    result = run(f"local/{local_models.judge()}", criterion, min_mass=0, record=calls, cache=False)
    again = judge.evaluate(texts(), criteria=[criterion], metrics=[], replay=calls, min_mass=0)
    assert [s.value for s in again.table.scores] == [s.value for s in result.table.scores]


def test_a_plan_s_folder_starts_beside_the_plan(local_models: Any, tmp_path: Path) -> None:
    local_models.judge()
    (tmp_path / "run.yaml").write_text("model: [local/llama, local/maker/other]", "utf-8")
    made = load_config(tmp_path / "run.yaml")
    assert [one.name for one in made.model] == [f"local/{tmp_path}/llama", "local/maker/other"]


def test_a_plan_loads_no_weights_and_promises_neither_time_nor_price(
    local_models: Any, criterion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalModel, "load", lambda *_: pytest.fail("the network was loaded"))
    made = load_config(given={"model": f"local/{local_models.judge()}", "criteria": [criterion], "metrics": []})
    foreseen = estimate_cost(prepare(made, texts(), providers=open_offline(made)))
    (asked,) = foreseen.judges
    assert (foreseen.requests, foreseen.price, foreseen.seconds) == (4, None, None)
    assert (asked.money.why, asked.estimate.draws) == ("computed here: no known price", 0)
    assert asked.time.why.startswith("depends on this machine")


def test_requests_differ_by_what_the_model_is(local_models: Any) -> None:
    judged = opened(local_models.judge())
    request = replace(asks("a"), model=judged.model, endpoint=judged.endpoint)
    assert request.key() != replace(request, endpoint="local://000000000000:float32").key()
