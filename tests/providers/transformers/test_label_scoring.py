"""The local judge's scores: every probability is held to full forward passes of a label's tokens after one prompt."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.core.errors import ConfigError, Refused
from judge.providers.transformers.forward import WIDTH, PrefixForest, as_key, common
from judge.providers.transformers.label_scoring import Labels, LabelTokenizer

torch = pytest.importorskip("torch", reason="needs the package torch")
transformers = pytest.importorskip("transformers", reason="needs the package transformers")

from judge.providers.transformers.batching import limits  # noqa: E402
from judge.providers.transformers.forward import CachedPrefix, PrefixCache  # noqa: E402
from judge.providers.transformers.label_scoring import Cancelled, LabelProbabilities, Scorer  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

VOCABULARY = 120
SHAPE = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "initializer_range": 0.3,
    "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
}  # fmt: skip
TEXTS = {
    "single tokens": Labels(("1", "2", "3"), (((5,), (15,)), ((6,),), ((7,),))),
    "several tokens": Labels(("good", "bad"), (((5, 6), (15, 6, 7)), ((8, 9, 10),))),
    "begin alike": Labels(
        ("1", "10", "100", "5"),
        (((7,), (9,)), ((7, 3), (9, 3), (11,)), ((7, 3, 3), (11, 3), (12, 4)), ((20,), (21, 22, 23))),
    ),
}


@cache
def model(kind: str) -> Any:
    """A random model whose probabilities are far from equal."""
    torch.manual_seed(0)
    made = {
        "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE)),
        "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**SHAPE)),
        "mistral": lambda: transformers.MistralForCausalLM(transformers.MistralConfig(**SHAPE, sliding_window=12)),
        "gpt2": lambda: transformers.GPT2LMHeadModel(
            transformers.GPT2Config(
                vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=512, initializer_range=0.3,
                bos_token_id=0, eos_token_id=1,
            )
        ),
        "gemma3": lambda: transformers.Gemma3ForCausalLM(
            transformers.Gemma3TextConfig(
                **SHAPE, head_dim=8, sliding_window=10, layer_types=["sliding_attention", "full_attention"]
            )
        ),
        "mamba": lambda: transformers.MambaForCausalLM(
            transformers.MambaConfig(
                vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, initializer_range=0.3, bos_token_id=0,
                eos_token_id=1, pad_token_id=2,
            )
        ),
        "phi3": lambda: transformers.Phi3ForCausalLM(
            transformers.Phi3Config(
                **SHAPE, original_max_position_embeddings=50,
                rope_parameters={
                    "rope_type": "longrope", "rope_theta": 10_000.0, "short_factor": [1.0] * 4,
                    "long_factor": [3.0, 5.0, 7.0, 9.0], "original_max_position_embeddings": 50,
                },
            )
        ),
    }  # fmt: skip
    return made[kind]().eval()


def naive(network: Any, prompt: Sequence[int], labels: Labels) -> list[float]:
    """Each label's probability, by one full forward pass for each token of each of its sequences."""

    def joint(way: tuple[int, ...]) -> float:
        chance = 1.0
        for n, token in enumerate(way):
            logits = network(input_ids=torch.tensor([[*prompt, *way[:n]]]), use_cache=False).logits[0, -1]
            chance *= float(logits.double().softmax(-1)[token])
        return chance

    every = {way for ways in labels.ways for way in ways}
    chances = {way: joint(way) for way in every}

    def longer(way: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The sequences that go on from this one, without those that go on from them."""
        after = [one for one in every if one != way and one[: len(way)] == way]
        return [one for one in after if not any(one != two and one[: len(two)] == two for two in after)]

    return [sum(chances[way] - sum(chances[one] for one in longer(way)) for way in ways) for ways in labels.ways]


def texts(seed: int = 1) -> list[list[int]]:
    """Prompts of two documents: two systems each, two criteria each; one is the beginning of another, two are equal."""
    chance = np.random.default_rng(seed)

    def drawn(n: int) -> list[int]:
        return chance.integers(0, VOCABULARY, n).tolist()  # type: ignore[no-any-return]

    criteria, made = [drawn(6), drawn(11)], []
    for length in (90, 41):
        document = drawn(length)
        made += [document + system + criterion for system in (drawn(9), drawn(4)) for criterion in criteria]
    return [*made, made[0] + [7, 3, 9], made[5][:-3], list(made[2])]


@cache
def reference(kind: str, scale: str) -> list[list[float]]:
    with torch.inference_mode():
        return [naive(model(kind), prompt, TEXTS[scale]) for prompt in texts()]


def worst(found: Sequence[LabelProbabilities], expected: Sequence[Sequence[float]]) -> float:
    """The greatest difference between two tables of shares, as a part of the share (of 1e-8 at least)."""
    return max(
        abs(share - other) / max(other, 1e-8)
        for scored, row in zip(found, expected, strict=True)
        for (_, share), other in zip(scored.shares, row, strict=True)
    )


class Changed(torch.nn.Module):  # type: ignore[misc,name-defined]
    """A model that calls `forward(model, arguments)` in the place of its own."""

    def __init__(self, network: Any, forward: Callable[[Any, dict[str, Any]], Any]) -> None:
        super().__init__()
        self.network, self.how = network, forward
        self.config, self.device, self.dtype = network.config, network.device, network.dtype

    def get_input_embeddings(self) -> Any:
        return self.network.get_input_embeddings()

    def forward(self, input_ids: Any, logits_to_keep: Any = 0, **given: Any) -> Any:
        return self.how(self.network, {"input_ids": input_ids, "logits_to_keep": logits_to_keep, **given})


@pytest.mark.parametrize("scale", TEXTS)
@pytest.mark.parametrize("kind", ["llama", "qwen2", "mistral", "gpt2", "gemma3"])
@pytest.mark.parametrize("share", [True, False])
def test_shares_are_those_of_full_passes(kind: str, scale: str, share: bool) -> None:
    expected = reference(kind, scale)
    assert max(map(max, expected)) > 1e-7  # far from where the difference is no longer a part of the share
    scorer = Scorer(model(kind), share=share)
    for _ in range(2):  # the second time on what is kept
        found = scorer(texts(), [TEXTS[scale]] * len(texts()))
        assert worst(found, expected) < 1e-4
        assert all(sum(share for _, share in one.shares) <= 1 + 1e-12 for one in found)
    assert scorer.learned == {}
    assert any(one.reused > 80 for one in found[:8]) is share


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
@pytest.mark.parametrize("most", [1, 5, 64, 150, 100_000])
def test_the_size_of_a_pass_changes_nothing(kind: str, most: int) -> None:
    scorer = Scorer(model(kind), most_tokens=most)
    found = scorer(texts(), [TEXTS["begin alike"]] * len(texts()))
    assert worst(found, reference(kind, "begin alike")) < 1e-4
    found = Scorer(model(kind), most_tokens=most)(texts(), [TEXTS["single tokens"]] * len(texts()))
    total = sum(len(prompt) - one.reused for prompt, one in zip(texts(), found, strict=True))
    assert total == len({tuple(prompt[:n]) for prompt in texts() for n in range(1, len(prompt) + 1)})


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("kind", ["llama", "mistral", "mamba"])
def test_the_order_of_prompts_changes_nothing(kind: str, share: bool) -> None:
    scales = [TEXTS[name] for name in itertools.islice(itertools.cycle(TEXTS), len(texts()))]
    scorer = Scorer(model(kind), share=share)
    found = scorer(texts(), scales)
    back = scorer(texts()[::-1], scales[::-1])[::-1]
    again = [Scorer(model(kind), share=share)([prompt], [s])[0] for prompt, s in zip(texts(), scales, strict=True)]
    for other in (back, again):
        assert worst(other, [[share for _, share in one.shares] for one in found]) < 1e-4
        assert [one.likeliest for one in other] == [one.likeliest for one in found]


def test_the_likeliest_token_is_that_of_a_full_pass() -> None:
    with torch.inference_mode():
        expected = [int(model("llama")(torch.tensor([prompt])).logits[0, -1].argmax()) for prompt in texts()]
    for share in (True, False):
        found = Scorer(model("llama"), share=share)(texts(), [TEXTS["single tokens"]] * len(texts()))
        assert [one.likeliest for one in found] == expected


def test_nothing_asked_is_nothing_answered() -> None:
    assert Scorer(model("llama"))([], []) == []


def test_models_of_half_precision_share_too() -> None:
    network = model("llama")
    half = type(network)(network.config).eval()
    half.load_state_dict(network.state_dict())
    scorer = Scorer(half.to(torch.bfloat16), most_tokens=60)
    alone = Scorer(half, share=False)
    scales = [TEXTS["single tokens"]] * len(texts())
    found = scorer(texts(), scales)
    assert scorer.learned == {}
    assert max(one.reused for one in found) > 80
    assert worst(found, [[share for _, share in one.shares] for one in alone(texts(), scales)]) < 0.05


token = st.integers(0, 3)
sequence = st.lists(token, min_size=1, max_size=4).map(tuple)
scales = st.lists(sequence, min_size=1, max_size=9, unique=True).flatmap(
    lambda ways: st.lists(st.integers(0, 3), min_size=len(ways), max_size=len(ways)).map(
        lambda owners: Labels(
            tuple(map(str, sorted(set(owners)))),
            tuple(tuple(w for w, o in zip(ways, owners, strict=True) if o == one) for one in sorted(set(owners))),
        )
    )
)


@settings(max_examples=40)
@given(scales, st.integers(0, 10_000))
def test_a_label_has_all_that_begins_with_it_and_with_no_longer_one(labels: Labels, seed: int) -> None:
    """Every possible reply of four tokens counts for the longest label that it begins with."""
    chance = np.random.default_rng(seed)
    after = {path: chance.dirichlet([0.3] * 4) for n in range(4) for path in itertools.product(range(4), repeat=n)}
    expected = dict.fromkeys(labels.names, 0.0)
    owner = {way: name for name, ways in zip(labels.names, labels.ways, strict=True) for way in ways}
    for reply in itertools.product(range(4), repeat=4):
        begun = [owner[reply[:n]] for n in range(1, 5) if reply[:n] in owner]
        if begun:
            expected[begun[-1]] += math.prod(after[reply[:n]][reply[n]] for n in range(4))
    with np.errstate(divide="ignore"):
        logs = {path: np.log(found) for path, found in after.items()}
    given_ = [
        [float(logs[path][one]) for one in next_] for path, next_ in zip(labels.inner, labels.following, strict=True)
    ]
    found = dict(labels.shares(given_))
    assert found == pytest.approx(expected, abs=1e-9)
    assert sum(found.values()) <= 1 + 1e-12
    assert min(found.values()) >= 0


@settings(max_examples=25)
@given(scales, st.lists(st.lists(token, min_size=1, max_size=12), min_size=1, max_size=6), st.integers(1, 60))
def test_random_scales_after_random_prompts(labels: Labels, prompts: list[list[int]], most: int) -> None:
    scorer = _scorer()
    scorer._tokens = most
    with torch.inference_mode():
        expected = [naive(model("llama"), prompt, labels) for prompt in prompts]
    assert worst(scorer(prompts, [labels] * len(prompts)), expected) < 1e-4


@cache
def _scorer() -> Scorer:
    return Scorer(model("llama"))


paths = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=8), min_size=1, max_size=12)


@given(paths, st.integers(0, 8), st.integers(1, 20))
def test_a_token_of_a_pack_sees_its_own_text_alone(asked: list[list[int]], cut: int, most: int) -> None:
    forest = PrefixForest(dict(enumerate(map(as_key, asked))))
    start = min(cut, forest.trunk(0, len(forest)), min(map(len, asked)) - 1)
    runs = [(0, len(forest), start)]
    if len(forest) > 1:
        trunk = forest.trunk(0, len(forest))
        runs += [(a, b, trunk) for a, b in forest.groups(0, len(forest), most, most)]
        assert [a for a, _, _ in runs[1:]] == [0, *(b for _, b, _ in runs[1:-1])]
    seen = set()
    for i, j, begin in runs:
        pack = forest.pack(i, j, begin)
        assert len(pack.tokens) == forest.size(i, j, begin)
        for place, number in pack.rows:
            visible = [k for k in range(place + 1) if place < pack.ends[k]]
            assert pack.tokens[visible].tolist() == asked[number][begin:]
            assert pack.depths[visible].tolist() == list(range(begin, len(asked[number])))
            seen.add(number)
        for k in range(i, j):
            columns = forest.columns(i, k, begin, len(forest.leaves[k]))
            assert pack.tokens[columns].tolist() == forest.leaves[k][begin:].tolist()
    assert seen == set(range(len(asked)))
    beginnings = {tuple(one[:n]) for one in asked for n in range(start + 1, len(one) + 1)}
    assert sum(forest.fresh(start).values()) == len(beginnings)


@given(st.lists(st.integers(0, 2**31), max_size=6), st.lists(st.integers(0, 2**31), max_size=6))
def test_keys_sort_and_begin_as_their_texts_do(one: list[int], other: list[int]) -> None:
    assert (as_key(one) < as_key(other)) is (one < other)
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    assert common(as_key(one), as_key(other)) == same


def counted(network: Any) -> tuple[Any, list[int]]:
    """The model, and the tokens of each pass."""
    sizes: list[int] = []

    def forward(inner: Any, given: dict[str, Any]) -> Any:
        sizes.append(given["input_ids"].numel())
        return inner(**given)

    return Changed(network, forward), sizes


@pytest.mark.parametrize("most", [70, 100_000])
def test_documents_are_kept_between_calls(most: int) -> None:
    network, sizes = counted(model("llama"))
    scorer = Scorer(network, most_tokens=most)
    scale, expected = TEXTS["single tokens"], reference("llama", "single tokens")
    scorer(texts()[:1], [scale])
    sizes.clear()
    found = scorer(texts()[1:4], [scale] * 3)
    assert worst(found, expected[1:4]) < 1e-4
    assert all(one.reused >= 90 for one in found)
    assert sum(sizes) < 90
    scorer.forget()
    assert scorer(texts()[:1], [scale])[0].reused == 0


def test_nothing_is_kept_where_it_may_not_be() -> None:
    scorer, scale = Scorer(model("llama"), keep_bytes=0), TEXTS["single tokens"]
    assert [scorer(texts()[:1], [scale])[0].reused for _ in range(2)] == [0, 0]


def trunk(text: Sequence[int], each: int = 100) -> CachedPrefix:
    """A trunk of `each` bytes a token."""
    state = torch.zeros((1, 1, len(text), each // 4 - 1))
    return CachedPrefix(as_key(text), len(text), ((state, torch.zeros((1, 1, len(text), 1))),))


def test_what_was_unused_the_longest_is_let_go() -> None:
    kept = PrefixCache(1_000)
    for text in ([1, 1, 1, 1], [2, 2, 2, 2]):
        kept.keep(trunk(text))
    assert (kept.take(as_key([1, 1, 5])).length, kept.held) == (2, 800)
    kept.keep(trunk([3, 3, 3, 3]))
    assert [kept.match(as_key([n] * 4)) for n in (1, 2, 3)] == [4, 0, 4]
    kept.keep(trunk([3, 3]))  # a part of what is there
    kept.keep(trunk([4] * 11))  # more than all
    assert (len(kept), kept.held, kept.take(as_key([4])).length) == (2, 800, 0)


@given(
    st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), max_size=8), st.lists(st.integers(0, 1), max_size=7)
)
def test_the_longest_beginning_that_is_kept_is_found(stored: list[list[int]], text: list[int]) -> None:
    kept = PrefixCache(10**6)
    for one in stored:
        kept.keep(trunk(one))
    wanted = max((common(as_key(text), as_key(one)) for one in stored), default=0)
    found = kept.take(as_key(text))
    assert (kept.match(as_key(text)), found.length, found.key) == (wanted, wanted, as_key(text)[: WIDTH * wanted])
    assert all(state.shape[-2] == wanted for pair in found.states for state in pair)


def test_the_head_computes_nothing_that_is_not_asked_for() -> None:
    network, rows = model("llama"), []
    scorer = Scorer(network)
    hook = network.lm_head.register_forward_hook(lambda _, given, __: rows.append(given[0].shape[1]))
    try:
        scorer(texts(), [TEXTS["single tokens"]] * len(texts()))
    finally:
        hook.remove()
    assert sum(rows) <= len(texts())


def test_a_model_that_gives_all_logits_is_scored_too() -> None:
    network = model("llama")

    class Whole(Changed):
        def forward(self, input_ids: Any, **given: Any) -> Any:
            return self.network(input_ids=input_ids, **given)

    for share in (True, False):
        scorer = Scorer(Whole(network, lambda *_: None), share=share)
        found = scorer(texts(), [TEXTS["begin alike"]] * len(texts()))
        assert worst(found, reference("llama", "begin alike")) < 1e-4
        assert (max(one.reused for one in found[:8]) > 80) is share


def roomy(network: Any, most: int, error: Callable[[], Exception]) -> Any:
    """A model for which there is room for passes of so many tokens."""

    def forward(inner: Any, given: dict[str, Any]) -> Any:
        if given["input_ids"].numel() > most:
            raise error()
        return inner(**given)

    return Changed(network, forward)


ERRORS: Mapping[str, Callable[[], Exception]] = {
    "cuda": lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    "cpu": lambda: RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    "python": MemoryError,
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("share", "room"), [(True, 60), (False, 240)])
def test_where_there_is_no_room_passes_are_halved(error: str, share: bool, room: int) -> None:
    scorer = Scorer(roomy(model("llama"), room, ERRORS[error]), share=share)
    scales = [TEXTS["begin alike"]] * len(texts())
    assert worst(scorer(texts(), scales), reference("llama", "begin alike")) < 1e-4
    said = dict(scorer.learned)
    assert list(said) == ["memory"]
    assert "no room for 2,048" in said["memory"]
    scorer(texts(), scales)
    assert scorer.learned == said


@pytest.mark.parametrize("share", [True, False])
def test_a_single_prompt_for_which_there_is_no_room_is_refused(share: bool) -> None:
    network = roomy(model("llama"), 10**6, ERRORS["cuda"])
    scorer = Scorer(network, share=share)
    network.how = roomy(model("llama"), 20, ERRORS["cuda"]).how
    with pytest.raises(Refused, match="single prompt: shorten the text"):
        scorer(texts()[:2], [TEXTS["single tokens"]] * 2)
    assert scorer([texts()[0][:12]], [TEXTS["single tokens"]])[0].shares  # others are answered still


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    scorer = Scorer(roomy(model("llama"), 10**6, MemoryError))
    scorer._passes.model.how = roomy(model("llama"), 20, lambda: RuntimeError("a kernel that failed")).how
    with pytest.raises(RuntimeError, match="a kernel that failed"):
        scorer(texts()[:2], [TEXTS["single tokens"]] * 2)
    assert scorer.learned == {}


@pytest.mark.parametrize("error", ERRORS)
def test_where_there_is_no_room_to_try_whether_texts_may_share_the_memory_is_said(error: str) -> None:
    scorer = Scorer(roomy(model("llama"), 5, ERRORS[error]))
    assert scorer.learned["sharing"].startswith("off, as there is no room to see whether")


def test_a_model_is_tried_with_less_where_there_is_room_for_that() -> None:
    scorer = Scorer(roomy(model("llama"), 100, ERRORS["cuda"]))
    assert (scorer.learned, scorer._plain.alone) == ({}, False)


def test_long_texts_that_cannot_be_tried_for_want_of_memory_do_not_share() -> None:
    network = roomy(model("mistral"), 10**6, MemoryError)
    scorer, scale = Scorer(network, most_tokens=128), TEXTS["single tokens"]
    scorer._untried, tries = [40], []

    def forward(inner: Any, given: dict[str, Any]) -> Any:
        tries.append(1)
        if len(tries) <= 3:  # with 128, 64 and 32 tokens
            raise MemoryError
        return inner(**given)

    network.how = forward
    found = scorer(texts()[4:6], [scale] * 2)
    assert worst(found, reference("mistral", "single tokens")[4:6]) < 1e-4
    assert scorer.learned["sharing"].startswith("off for more than 40 tokens, as there is no room to see")


@pytest.mark.parametrize("share", [True, False])
def test_nothing_more_is_computed_once_nobody_waits(share: bool) -> None:
    network, sizes = counted(model("llama"))
    scorer = Scorer(network, most_tokens=40, share=share, keep_bytes=0)
    scales = [TEXTS["single tokens"]] * len(texts())
    sizes.clear()
    with pytest.raises(Cancelled):
        scorer(texts(), scales, lambda: len(sizes) >= 2)
    assert len(sizes) == 2
    assert worst(scorer(texts(), scales), reference("llama", "single tokens")) < 1e-4


def test_a_model_with_a_state_is_found_out() -> None:
    scorer = Scorer(model("mamba"))
    found = scorer(texts(), [TEXTS["begin alike"]] * len(texts()))
    assert scorer.learned["sharing"].startswith("off, ")
    assert worst(found, reference("mamba", "begin alike")) < 1e-4


def test_a_model_that_does_not_heed_the_mask_is_found_out() -> None:
    def forward(inner: Any, given: dict[str, Any]) -> Any:
        return inner(**{name: value for name, value in given.items() if name != "attention_mask"})

    scorer = Scorer(Changed(model("llama"), forward))
    assert scorer.learned["sharing"].startswith("off, ")
    found = scorer(texts(), [TEXTS["begin alike"]] * len(texts()))
    assert worst(found, reference("llama", "begin alike")) < 1e-4


def test_a_model_that_minds_what_is_beside_a_text_reads_each_alone() -> None:
    def forward(inner: Any, given: dict[str, Any]) -> Any:
        found = inner(**given)
        found.logits = found.logits * (1 + 0.1 * (given["input_ids"].shape[0] - 1))
        return found

    scorer = Scorer(Changed(model("llama"), forward), share=False)
    found = scorer(texts(), [TEXTS["begin alike"]] * len(texts()))
    assert worst(found, reference("llama", "begin alike")) < 1e-4


def test_a_model_that_reads_long_texts_otherwise_shares_short_ones() -> None:
    """Longrope stretches all positions of a text that is longer than 50, also those already computed."""
    scorer, scale = Scorer(model("phi3")), TEXTS["begin alike"]
    short = [prompt[:20] + prompt[-n:] for prompt in texts()[:2] for n in (3, 8)]
    with torch.inference_mode():
        expected = [naive(model("phi3"), prompt, scale) for prompt in short]
    found = scorer(short, [scale] * 4)
    assert (worst(found, expected) < 1e-4, scorer.learned) == (True, {})
    assert max(one.reused for one in found) >= 20
    both = scorer(short + texts(), [scale] * (4 + len(texts())))
    assert worst(both, expected + reference("phi3", "begin alike")) < 1e-4
    assert scorer.learned["sharing"].startswith("off for more than 50 tokens, ")
    assert max(one.reused for one in both[:4]) >= 20
    assert max(one.reused for one in both[4:12]) == 0


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"sliding_window": 1024}, [1024]),
        ({"sliding_window": 1024, "use_sliding_window": False, "rope_scaling": None}, []),
        ({"rope_parameters": {"rope_type": "default"}, "max_position_embeddings": 99}, []),
        ({"rope_parameters": {"rope_type": "dynamic"}, "max_position_embeddings": 99}, [99]),
        ({"rope_scaling": {"full_attention": {"original_max_position_embeddings": 50}}, "sliding_window": 8}, [8, 50]),
        ({"attention_chunk_size": 8192}, [8192]),
    ],
)
def test_lengths_at_which_a_model_may_change(config: dict[str, Any], expected: list[int]) -> None:
    assert limits(SimpleNamespace(**config)) == expected


def test_what_a_model_cannot_take_is_refused() -> None:
    scorer, scale = Scorer(model("llama")), TEXTS["begin alike"]
    with pytest.raises(Refused, match="511 tokens, the model takes 512: shorten"):
        scorer([[3] * 511], [scale])
    with pytest.raises(Refused, match="token 120, the model has 120"):
        scorer([[3, 120]], [scale])
    with pytest.raises(Refused, match="token 500, the model has 120"):
        scorer([[3]], [Labels(("x",), (((500,),),))])
    with pytest.raises(Refused, match="no tokens"):
        scorer([[]], [scale])


def fast(tokenizer: Any, **special: str) -> Any:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def byte_level(pieces: Sequence[str]) -> Any:
    """A byte-level tokenizer that has these pieces (Ġ is a space) whole, and all others byte by byte."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    merges = [(piece[:n], piece[n:]) for piece in pieces for n in [len(piece) - 1] if n]
    vocabulary = {piece: n for n, piece in enumerate(dict.fromkeys([*alphabet, *pieces]))}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    return fast(made)


def sentence_piece(pieces: Sequence[str]) -> Any:
    """A tokenizer in the manner of SentencePiece, which puts a space (▁) before every text."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.Unigram([("<unk>", 0.0), *((one, -1.0) for one in pieces)], 0))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    return fast(made, unk_token="<unk>")


def written(tokenizer: Any, labels: Labels) -> dict[str, set[str]]:
    """The pieces of every sequence, by label."""
    return {
        name: {" ".join(tokenizer.convert_ids_to_tokens(list(way))) for way in ways}
        for name, ways in zip(labels.names, labels.ways, strict=True)
    }


def every(tokenizer: Any, label: str, longest: int, without: Sequence[str] = ()) -> Iterator[tuple[int, ...]]:
    """All sequences of so many tokens that write a label."""
    ids = [
        one for piece, one in tokenizer.get_vocab().items()
        if piece not in without and (text := tokenizer.decode([one]).strip()) and text in label
    ]  # fmt: skip
    for n in range(1, longest + 1):
        for way in itertools.product(ids, repeat=n):
            if tokenizer.decode(list(way)).strip() == label:
                yield way


def test_all_ways_to_write_labels_that_begin_alike_are_found() -> None:
    tokenizer = byte_level(["Ġ1", "10", "Ġ10", "100", "00"])
    names = ("1", "10", "100", "5")
    found = LabelTokenizer(tokenizer)(names)
    for name, ways in zip(names, found.ways, strict=True):
        extra = {way for way in ways if "Ġ" in tokenizer.convert_ids_to_tokens(list(way))}  # as it writes " 5" itself
        assert set(ways) - extra == set(every(tokenizer, name, 3, ["Ġ"]))
    assert written(tokenizer, found)["5"] == {"5", "Ġ 5"}


def test_labels_of_a_scale_in_steps_of_ten() -> None:
    tokenizer = byte_level([f"{n}0" for n in range(1, 10)] + ["100"])
    names = tuple(str(n) for n in range(0, 101, 10))
    found = written(tokenizer, LabelTokenizer(tokenizer)(names))
    assert found["10"] == {"10", "Ġ 10"}  # "1" is no label, so that nothing is taken from it
    assert found["100"] == {"100", "Ġ 100", "10 0", "Ġ 10 0"}


@pytest.mark.parametrize("make", [byte_level, sentence_piece])
def test_a_label_that_goes_on_from_another(make: Callable[[Sequence[str]], Any]) -> None:
    pieces = ["yes", "Ġyes", "Ġpartly"] if make is byte_level else ["yes", "▁yes", ",", "▁partly", "▁"]
    if make is byte_level:
        pieces = ["ye", "yes", "Ġy", "Ġye", "Ġyes"]
    tokenizer = make(pieces)
    labels = LabelTokenizer(tokenizer)(("yes", "yes, partly"))
    short, long = labels.ways
    assert all(any(way[: len(one)] == one for one in short) for way in long)
    assert {tokenizer.decode(list(way)).strip() for way in long} == {"yes, partly"}


def test_sentence_pieces_with_and_without_their_space() -> None:
    tokenizer = sentence_piece(["▁", "1", "0", "▁1", "▁10", "5"])
    found = written(tokenizer, LabelTokenizer(tokenizer)(("1", "10", "5")))
    assert found["1"] == {"1", "▁1"}
    assert found["10"] == {"▁10", "1 0", "▁1 0"}
    assert found["5"] == {"5", "▁ 5"} | ({"▁ ▁ 5"} & found["5"])


def test_labels_in_other_scripts_are_written_byte_by_byte() -> None:
    tokenizer = byte_level([])
    labels = LabelTokenizer(tokenizer)(("良い", "悪い"))
    assert {tokenizer.decode(list(way)).strip() for ways in labels.ways for way in ways} == {"良い", "悪い"}
    assert labels.depth == 6


def test_labels_that_cannot_be_written_are_named() -> None:
    tokenizer = sentence_piece(["▁1", "▁2"])
    tokenizer.name_or_path = "some/model"
    with pytest.raises(ConfigError, match="some/model: its tokenizer cannot write the label '3'"):
        LabelTokenizer(tokenizer)(("1", "2", "3"))
    with pytest.raises(ConfigError, match="cannot write the label ''"):
        LabelTokenizer(tokenizer)(("1", " "))
    with pytest.raises(ConfigError, match="'1', ' 1' are written alike"):
        LabelTokenizer(tokenizer)(("1", " 1"))


def test_labels_that_begin_alike_in_too_many_ways_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"too many labels begin like 'a+'"):
        LabelTokenizer(byte_level(["aa", "aaa"]))(["a" * n for n in range(1, 20)])


def test_a_sequence_writes_one_label() -> None:
    for ways in ((((1,),), ((1,),)), (((),),)):
        with pytest.raises(ValueError, match="has to write one label"):
            Labels(("a", "b")[: len(ways)], ways)


def test_written_labels_score_as_full_passes_do() -> None:
    tokenizer = byte_level(["10"])
    config = transformers.LlamaConfig(**SHAPE | {"vocab_size": len(tokenizer)})
    torch.manual_seed(0)
    network = transformers.LlamaForCausalLM(config).eval()
    labels = LabelTokenizer(tokenizer)([str(n) for n in range(0, 101, 10)])
    prompts = [tokenizer.encode(text) for text in ("How good is this?", "How good is that? Say a number.")]
    with torch.inference_mode():
        expected = [naive(network, prompt, labels) for prompt in prompts]
    for share in (True, False):
        assert worst(Scorer(network, share=share)(prompts, [labels] * 2), expected) < 1e-4
