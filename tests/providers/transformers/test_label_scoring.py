"""The local judge's scores: every probability is held to full forward passes of a label's tokens after one prompt."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.core.errors import Refused
from judge.providers.transformers import label_scoring
from judge.providers.transformers.labels import Labels

torch = pytest.importorskip("torch", reason="needs the package torch")
transformers = pytest.importorskip("transformers", reason="needs the package transformers")

from judge.providers.transformers.label_scoring import Cancelled, LabelProbabilities, Scorer  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

TOLERANCE = 1e-4
"""How far probabilities in float32 may be from those of full passes, whatever else is computed with them."""

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


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """For models this small, threads that wait for one another are most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@torch.inference_mode()  # type: ignore[untyped-decorator]
def naive(network: Any, prompt: Sequence[int], labels: Labels) -> list[float]:
    """Each label's probability, by a full forward pass for each beginning of its sequences."""

    @cache
    def following(path: tuple[int, ...]) -> list[float]:
        logits = network(input_ids=torch.tensor([[*prompt, *path]]), use_cache=False).logits[0, -1]
        return logits.double().softmax(-1).tolist()  # type: ignore[no-any-return]

    def joint(way: tuple[int, ...]) -> float:
        return math.prod(following(way[:n])[token] for n, token in enumerate(way))

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


SCALES = list(itertools.islice(itertools.cycle(TEXTS), len(texts())))


def scored(scorer: Scorer, prompts: Sequence[Sequence[int]] | None = None) -> list[LabelProbabilities]:
    """The prompts of `texts`, each with one of the scales."""
    return scorer(prompts or texts(), [TEXTS[scale] for scale in SCALES])


@cache
def expected(kind: str) -> list[list[float]]:
    return [naive(model(kind), prompt, TEXTS[scale]) for prompt, scale in zip(texts(), SCALES, strict=True)]


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "mistral", "gpt2", "gemma3", "mamba"])
def test_shares_are_those_of_full_passes(kind: str, share: bool) -> None:
    assert max(map(max, expected(kind))) > 1e-7  # far from where the difference is no longer a part of the share
    network, sizes = counted(model(kind))
    scorer = Scorer(network, share=share)
    for _ in range(2):  # the second time on what is stored
        sizes.clear()
        found = scored(scorer)
        assert worst(found, expected(kind)) < TOLERANCE
        assert all(sum(share for _, share in one.shares) <= 1 + 1e-12 for one in found)
        assert [one.likeliest for one in found] == likeliest(kind)
    shared = share and kind != "mamba"
    assert (sum(sizes) < 0.75 * sum(map(len, texts()))) is shared
    assert scorer.learned.get("sharing", "").startswith("off, as this model keeps a state") is (share and not shared)


@cache
def likeliest(kind: str) -> list[int]:
    with torch.inference_mode():
        return [int(model(kind)(torch.tensor([prompt])).logits[0, -1].argmax()) for prompt in texts()]


@pytest.mark.parametrize("worth", [1, 30, 1_000])
@pytest.mark.parametrize(("kind", "most"), [("llama", 1), ("llama", 64), ("gemma3", 100), ("gemma3", 100_000)])
def test_the_size_of_a_pass_and_of_a_prefix_changes_nothing(
    kind: str, most: int, worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(label_scoring._WORTH, "cpu", worth)
    network, sizes = counted(model(kind))
    scorer = Scorer(network, most_tokens=most)
    assert worst(scored(scorer), expected(kind)) < TOLERANCE
    if worth == 1:  # each token once, whatever it is shared by
        scorer.forget()
        sizes.clear()
        scorer(texts(), [TEXTS["single tokens"]] * len(texts()))
        once = len({tuple(prompt[:n]) for prompt in texts() for n in range(1, len(prompt) + 1)})
        assert once <= sum(sizes) < once + 60


def test_the_order_of_prompts_changes_nothing() -> None:
    for kind, share in itertools.product(("llama", "mistral", "mamba"), (True, False)):
        scorer = Scorer(model(kind), share=share)
        found = scored(scorer)
        back = scorer(texts()[::-1], [TEXTS[scale] for scale in SCALES[::-1]])[::-1]
        again = [
            Scorer(model(kind), share=share)([prompt], [TEXTS[scale]])[0]
            for prompt, scale in zip(texts(), SCALES, strict=True)
        ]
        for other in (back, again):
            assert worst(other, [[share for _, share in one.shares] for one in found]) < TOLERANCE


def test_nothing_asked_is_nothing_answered() -> None:
    assert Scorer(model("llama"))([], []) == []


def test_models_of_half_precision_share_too() -> None:
    network = model("llama")
    half = type(network)(network.config).eval()
    half.load_state_dict(network.state_dict())
    network, sizes = counted(half.to(torch.bfloat16))
    scorer = Scorer(network, most_tokens=60)
    found, alone = scored(scorer), scored(Scorer(half, share=False))
    assert scorer.learned == {}
    assert sum(sizes) < sum(map(len, texts()))
    assert worst(found, [[share for _, share in one.shares] for one in alone]) < 0.05


token = st.integers(0, 3)
sequences = st.lists(st.lists(token, min_size=1, max_size=4).map(tuple), min_size=1, max_size=9, unique=True)


@settings(max_examples=25)
@given(sequences, st.lists(st.lists(token, min_size=1, max_size=12), min_size=1, max_size=6), st.integers(1, 60))
def test_random_scales_after_random_prompts(ways: list[Any], prompts: list[list[int]], most: int) -> None:
    labels = Labels(tuple(map(str, range(len(ways)))), tuple((way,) for way in ways))
    scorer = _scorer()
    scorer._tokens, scorer._worth = most, most % 8
    wanted = [naive(model("llama"), prompt, labels) for prompt in prompts]
    assert worst(scorer(prompts, [labels] * len(prompts)), wanted) < TOLERANCE


@cache
def _scorer() -> Scorer:
    return Scorer(model("llama"))


def counted(network: Any) -> tuple[Any, list[int]]:
    """The model, and the tokens of each pass."""
    sizes: list[int] = []

    def forward(inner: Any, given: dict[str, Any]) -> Any:
        sizes.append(given["input_ids"].numel())
        return inner(**given)

    return Changed(network, forward), sizes


@pytest.mark.parametrize("most", [70, 100_000])
def test_documents_are_stored_between_calls(most: int) -> None:
    network, sizes = counted(model("llama"))
    scorer = Scorer(network, most_tokens=most)
    scale = [TEXTS["single tokens"]]
    scorer(texts()[:1], scale)
    sizes.clear()
    found = scorer(texts()[1:4], scale * 3)
    assert worst(found, [naive(model("llama"), prompt, *scale) for prompt in texts()[1:4]]) < TOLERANCE
    assert sum(sizes) < 90
    scorer.forget()
    sizes.clear()
    scorer(texts()[:1], scale)
    assert sum(sizes) == len(texts()[0])


@pytest.mark.parametrize(("most", "stored"), [(0, []), (50_000, ["third"]), (80_000, ["second", "third"])])
def test_prefixes_that_were_unused_the_longest_are_let_go(most: int, stored: list[str]) -> None:
    """A token takes 256 bytes here, and each of these prompts has 100 to 110."""
    network, sizes = counted(model("llama"))
    scorer, scale = Scorer(network, keep_bytes=most), [TEXTS["single tokens"]]
    prompts = {name: [n, *texts()[0]] for n, name in enumerate(("first", "second", "third"))}
    for prompt in prompts.values():
        scorer([prompt], scale)
    found = []
    for name, prompt in reversed(prompts.items()):
        sizes.clear()
        scorer([[*prompt[:-1], 3]], scale)
        found += [name] if sum(sizes) < len(prompt) else []
    assert found[::-1] == stored


def test_the_head_computes_nothing_that_is_not_asked_for() -> None:
    network, rows = model("llama"), []
    scorer = Scorer(network)
    hook = network.lm_head.register_forward_hook(lambda _, given, __: rows.append(given[0].shape[1]))
    try:
        scorer(texts()[:4], [TEXTS["single tokens"]] * 4)
    finally:
        hook.remove()
    assert max(rows) <= 4


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
    assert worst(scored(scorer), expected("llama")) < TOLERANCE
    said = dict(scorer.learned)
    assert list(said) == ["memory"]
    assert "no room for 2,048" in said["memory"]
    scored(scorer)
    assert scorer.learned == said


@pytest.mark.parametrize("share", [True, False])
def test_a_single_prompt_for_which_there_is_no_room_is_refused(share: bool) -> None:
    scorer = Scorer(roomy(model("llama"), 20, ERRORS["cuda"]), share=share)
    with pytest.raises(Refused, match="single prompt: shorten the text"):
        scorer(texts()[:2], [TEXTS["single tokens"]] * 2)
    assert scorer([texts()[0][:12]], [TEXTS["single tokens"]])[0].shares  # others are answered still


def test_the_copies_of_a_prefix_are_as_many_as_there_is_room_for() -> None:
    network, sizes = counted(model("llama"))
    prompts, scale = [[*texts()[0][:100], n, n + 1] for n in range(8)], [TEXTS["single tokens"]] * 8
    scorer = Scorer(network)
    scorer._copied_bytes = 3 * 256 * 103
    assert worst(scorer(prompts, scale), [naive(model("llama"), prompt, scale[0]) for prompt in prompts]) < TOLERANCE
    assert sizes == [100, 6, 6, 4]


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    scorer = Scorer(roomy(model("llama"), 20, lambda: RuntimeError("a kernel that failed")))
    with pytest.raises(RuntimeError, match="a kernel that failed"):
        scorer(texts()[:2], [TEXTS["single tokens"]] * 2)
    assert scorer.learned == {}


@pytest.mark.parametrize("share", [True, False])
def test_nothing_more_is_computed_once_nobody_waits(share: bool) -> None:
    network, sizes = counted(model("llama"))
    scorer = Scorer(network, most_tokens=40, share=share, keep_bytes=0)
    with pytest.raises(Cancelled):
        scorer(texts(), [TEXTS[scale] for scale in SCALES], lambda: len(sizes) >= 2)
    assert len(sizes) == 2
    assert worst(scored(scorer), expected("llama")) < TOLERANCE


def test_a_model_that_reads_long_texts_otherwise_shares_short_ones() -> None:
    """Longrope stretches all positions of a text that is longer than 50, also those already computed."""
    scale, computed = TEXTS["begin alike"], []
    short = [prompt[:20] + prompt[-n:] for prompt in texts()[:2] for n in (3, 8)]
    for prompts, share in ((short + texts(), True), (short, True), (short, False)):
        network, sizes = counted(model("phi3"))
        scorer = Scorer(network, share=share)
        scorer._worth = 30
        found = scorer(prompts, [scale] * len(prompts))
        assert worst(found, [naive(model("phi3"), prompt, scale) for prompt in prompts]) < TOLERANCE
        computed.append(sum(sizes))
    assert computed[1] < computed[2]


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
