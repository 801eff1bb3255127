"""Replies that a model writes, beside transformers' own greedy search and its own probabilities, prompt by prompt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from judge.core.errors import Refused
from judge.providers.transformers import loading
from judge.providers.transformers.generation import GeneratedReply, GenerationTask, Generator

pytestmark = pytest.mark.torch
LENGTHS = (40, 37, 9, 1, 90)
END = 3


def wanted(
    tokens: Sequence[int], *seeds: int, temperature: float = 0.0, most: int = 12, top: int = 0
) -> GenerationTask:
    return GenerationTask(tokens, seeds or (0,), temperature, most, top)


def prompts(local_models: Any, lengths: Sequence[int] = LENGTHS) -> list[list[int]]:
    torch = local_models.torch
    torch.manual_seed(1)
    return [torch.randint(4, 300, (length,)).tolist() for length in lengths]


def writing(folder: str, **how: Any) -> tuple[Any, Any, Generator]:
    """A network, its tokenizer and its writer."""
    found = loading.find(folder)
    network = found.load()
    return network, found.chat.tokenizer, Generator(network, found.chat.tokenizer, **how)


def texts(replies: list[GeneratedReply] | Refused) -> list[str]:
    assert not isinstance(replies, Refused)
    return [reply.choice.text for reply in replies]


def forward(local_models: Any, network: Any, ids: Sequence[int]) -> Any:
    """The log probabilities of the token after these, by one plain pass."""
    with local_models.torch.inference_mode():
        return network(local_models.torch.tensor([list(ids)])).logits[0, -1].float().log_softmax(-1)


@pytest.mark.parametrize("kind", ["Llama", "Qwen2", "GPT2", "Gemma3Text"])
def test_the_likeliest_reply_is_that_of_each_prompt_alone(local_models: Any, kind: str) -> None:
    network, tokenizer, writer = writing(local_models.judge(kind))
    asked = prompts(local_models)
    found = dict(writer([wanted(prompt, 1, 2) for prompt in asked]))
    for place, prompt in enumerate(asked):
        ids = list(prompt)
        for _ in range(12):
            ids.append(int(forward(local_models, network, ids).argmax()))
            if ids[-1] == END:
                break
        reply = [one for one in ids[len(prompt) :] if one != END]
        assert texts(found[place]) == [tokenizer.decode(reply, skip_special_tokens=True)] * 2
        assert {(one.tokens, one.choice.finish_reason) for one in found[place]} == {
            (len(reply), "stop" if ids[-1] == END else "length")
        }


@pytest.mark.parametrize("kind", ["Llama", "GPT2", "Gemma3Text"])
def test_a_draw_is_the_same_whatever_is_written_beside_it(local_models: Any, kind: str) -> None:
    *_, writer = writing(local_models.judge(kind))
    asked = prompts(local_models)
    together = dict(writer([wanted(prompt, 5, 6, 7, temperature=1.0) for prompt in asked]))
    assert len({text for replies in together.values() for text in texts(replies)}) > len(asked)
    for place, prompt in enumerate(asked):
        alone = [dict(writer([wanted(prompt, seed, temperature=1.0)]))[0] for seed in (5, 6, 7)]
        assert texts(together[place]) == [texts(one)[0] for one in alone]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_are_as_frequent_as_they_are_likely(local_models: Any, temperature: float) -> None:
    network, tokenizer, writer = writing(local_models.judge(initializer_range=0.1))
    (prompt,) = prompts(local_models, [20])
    drawn = dict(writer([wanted(prompt, *range(4000), temperature=temperature, most=1)]))[0]
    seen = Counter(texts(drawn))
    shares = (forward(local_models, network, prompt) / temperature).softmax(-1)
    likely = shares.topk(8)
    for share, one in zip(likely.values.tolist(), likely.indices.tolist(), strict=True):
        text = tokenizer.decode([one], skip_special_tokens=True)
        same = sum(shares[i].item() for i in range(len(tokenizer)) if tokenizer.decode([i]) == text)  # partial letters
        assert abs(seen[text] / 4000 - max(share, same)) < 5 * math.sqrt(same / 4000)


def test_each_place_lists_the_likeliest_tokens_with_the_probabilities_of_a_plain_pass(local_models: Any) -> None:
    network, tokenizer, writer = writing(local_models.judge())
    (prompt,) = prompts(local_models, [30])
    made, generate = [], network.generate
    network.generate = lambda *args, **how: (
        made.extend(generate(*args, **how).tolist()) or local_models.torch.tensor(made)
    )
    ((_, found),) = writer([wanted(prompt, *range(4), temperature=1.0, top=3, most=5)])
    assert len({str(row) for row in made}) == 4
    for ids, written in zip(made, found, strict=True):
        for place, token in enumerate(written.choice.tokens, start=len(prompt)):
            logs = forward(local_models, network, ids[:place])
            listed = logs.topk(3)
            assert [text for text, _ in token.top] == [tokenizer.decode([one]) for one in listed.indices.tolist()]
            assert [p for _, p in token.top] == pytest.approx(listed.values.tolist(), abs=1e-4)
            assert token.logprob == pytest.approx(logs[ids[place]].item(), abs=1e-4)


def test_the_texts_of_tokens_are_the_reply_in_parts(local_models: Any) -> None:
    _, tokenizer, writer = writing(local_models.judge())
    for text in ("The mayor said 4.", "評価: 低い, 4 点 🙂!", " 4", "4"):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert "".join(writer._texts(ids)) == text
        assert "\ufffd" not in "".join(writer._texts(ids))


def test_a_tokenizer_that_leaves_out_spaces_at_the_start_keeps_them_in_the_parts(local_models: Any) -> None:
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁Score", -1.0), (":", -1.0), ("▁4", -1.0), ("▁a", -1.0)]
    unigram = local_models.tokenizers.Tokenizer(local_models.tokenizers.models.Unigram(pieces, unk_id=2))
    unigram.pre_tokenizer = local_models.tokenizers.pre_tokenizers.Metaspace()
    unigram.decoder = local_models.tokenizers.decoders.Metaspace()
    tokenizer = local_models.transformers.PreTrainedTokenizerFast(
        tokenizer_object=unigram, eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    )
    writer = Generator(local_models.network("Llama", len(pieces)), tokenizer)
    assert tokenizer.decode([5]) == "4"
    assert writer._texts([3, 4, 5]) == [" Score", ":", " 4"]


def test_a_reply_ends_with_the_token_that_ends_it(local_models: Any) -> None:
    tokenizer = local_models.tokenizer()
    four = tokenizer.convert_tokens_to_ids("4")
    network = local_models.opinionated(len(tokenizer), [four])
    writer = Generator(network, tokenizer)
    ((_, (reply,)),) = writer([wanted(prompts(local_models, [10])[0], top=2)])
    assert (reply.choice.text, reply.choice.finish_reason, reply.tokens) == ("4", "stop", 1)
    assert [token.text for token in reply.choice.tokens] == ["4"]
    ((_, (cut,)),) = writer([wanted(prompts(local_models, [10])[0], most=1)])
    assert (cut.choice.text, cut.choice.finish_reason, cut.choice.tokens) == ("4", "length", None)


def test_a_penalty_in_the_model_s_own_settings_changes_nothing(local_models: Any) -> None:
    plain, odd = (local_models.network("Llama", 300) for _ in range(2))
    odd.generation_config.update(repetition_penalty=5.0, do_sample=True, top_k=1, suppress_tokens=[20, 21, 22])
    (prompt,) = prompts(local_models, [20])
    tokenizer = local_models.tokenizer()
    found = [
        dict(Generator(network, tokenizer)([wanted(prompt, 1, 2, temperature=1.0, most=20)]))[0]
        for network in (plain, odd)
    ]
    assert texts(found[0]) == texts(found[1])


def test_prompts_of_one_kind_and_length_are_written_together(local_models: Any) -> None:
    network, _, writer = writing(local_models.judge(), most_tokens=200)
    sizes, generate = [], network.generate
    network.generate = lambda ids, **how: sizes.append(tuple(ids.shape)) or generate(ids, **how)
    asked = [wanted(prompt, most=10) for prompt in prompts(local_models, [30, 30, 30, 30, 30, 30, 5, 5])]
    asked += [wanted(prompt, 1, 2, temperature=1.0, most=10) for prompt in prompts(local_models, [30, 30, 30])]
    assert len(dict(writer(asked))) == 11
    assert sizes == [(5, 30), (1, 30), (2, 5), (4, 30), (2, 30)]


class Full:
    """A network that has no room for more than so many tokens at a time, of whatever is read and written."""

    def __init__(self, torch: Any, network: Any, most: int) -> None:
        self.sizes: list[int] = []
        generate = network.generate

        def bounded(ids: Any, **how: Any) -> Any:
            size = ids.numel() + len(ids) * how["generation_config"].max_new_tokens
            self.sizes.append(size)
            if size > most:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            return generate(ids, **how)

        network.generate = bounded


def test_without_memory_batches_halve_and_the_replies_are_the_same(local_models: Any) -> None:
    network, _, writer = writing(local_models.judge())
    asked = [wanted(prompt, 1, 2, 3, temperature=1.0) for prompt in prompts(local_models, [30] * 4)]
    plenty = dict(writer(asked))
    full = Full(local_models.torch, network, 100)
    scarce = dict(writer(asked))
    assert {place: texts(replies) for place, replies in scarce.items()} == {p: texts(r) for p, r in plenty.items()}
    assert min(full.sizes) == 42
    assert "written with" in writer.learned["replies"]
    assert "as there is no room for more" in writer.learned["replies"]


def test_a_prompt_too_much_for_the_memory_by_itself_is_refused_and_the_others_are_not(local_models: Any) -> None:
    network, _, writer = writing(local_models.judge())
    Full(local_models.torch, network, 60)
    found = dict(writer([wanted(prompt, 1, 2, temperature=1.0) for prompt in prompts(local_models, [30, 100])]))
    assert len(texts(found[0])) == 2
    assert isinstance(found[1], Refused)
    assert "not enough for a prompt of 100 tokens" in str(found[1])


def test_an_error_that_is_not_of_memory_is_raised(local_models: Any) -> None:
    network, _, writer = writing(local_models.judge())

    def generate(*_: Any, **__: Any) -> Any:
        raise RuntimeError("shapes do not fit")

    network.generate = generate
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        list(writer([wanted([5, 6])]))


def test_a_model_that_computes_no_numbers_is_refused(local_models: Any) -> None:
    network, _, writer = writing(local_models.judge())
    with local_models.torch.no_grad():
        network.model.norm.weight.fill_(math.nan)
    ((_, found),) = writer([wanted([5, 6], top=2)])
    assert isinstance(found, Refused)
    assert "no number (NaN)" in str(found)


def test_a_prompt_beyond_what_the_model_reads_is_refused_and_a_reply_fits_what_is_left(local_models: Any) -> None:
    *_, writer = writing(local_models.judge())
    assert writer.limit == 512
    assert writer.check(wanted([5] * 511, most=64)).most == 1
    assert writer.check(wanted([5] * 40, most=64)).most == 64
    with pytest.raises(Refused, match=r"the prompt has 512 tokens, and with its reply the model reads 512 at most"):
        writer.check(wanted([5] * 512))


def test_what_nobody_waits_for_is_not_written(local_models: Any) -> None:
    network, _, writer = writing(local_models.judge(), most_tokens=60)
    asked = [wanted(prompt, most=400) for prompt in prompts(local_models, [30, 30, 30])]
    steps, forward = [], network.forward
    network.forward = lambda *args, **how: steps.append(1) or forward(*args, **how)
    found = dict(writer(asked, lambda place: place == 1 or (place == 0 and len(steps) >= 5)))
    assert found.keys() == {0, 2}
    assert texts(found[0]) != texts(found[2])
    assert len(steps) < 5 + 1 + 400 + 1
