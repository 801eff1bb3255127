"""Fixtures for the providers' tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def asked_paths(chat_server: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that `chat_server` was asked for, in order."""
    paths: list[str] = []
    handler = chat_server._http.RequestHandlerClass
    answer = handler.do_POST

    def note(self: Any) -> None:
        paths.append(self.path)
        answer(self)

    monkeypatch.setattr(handler, "do_POST", note)
    return paths


def error(message: str = "it said so", **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "t", "param": None, "code": None} | fields}


@pytest.fixture
def make_error() -> Any:
    """A function that words an error as OpenAI does."""
    return error


TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TEXTS = [
    "The river rose by two metres and the bridge was closed.",
    "Only the old road over the hill stayed open, said the mayor. 1 2 3 4 5",
    "低い 普通 高い",
]


class LocalModels:
    """Makes judges of random weights and saves them as folders; skips without transformers."""

    def __init__(self, base: Path) -> None:
        self.torch = pytest.importorskip("torch", reason="needs torch: pip install textjudge[local]")
        self.transformers = pytest.importorskip("transformers", reason="needs transformers: textjudge[local]")
        self.tokenizers = pytest.importorskip("tokenizers")
        self._base = base

    def tokenizer(self, template: str | None = TEMPLATE) -> Any:
        """Byte pairs of a few texts, so that every text has tokens, with a chat template."""
        models, trainers = self.tokenizers.models, self.tokenizers.trainers
        pairs = self.tokenizers.Tokenizer(models.BPE())
        pairs.pre_tokenizer = self.tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        pairs.decoder = self.tokenizers.decoders.ByteLevel()
        special = ["<s>", "<pad>", "<|im_start|>", "<|im_end|>"]
        letters = self.tokenizers.pre_tokenizers.ByteLevel.alphabet()
        how = {"vocab_size": 400, "special_tokens": special, "initial_alphabet": letters, "show_progress": False}
        pairs.train_from_iterator(TEXTS * 3, trainers.BpeTrainer(**how))
        made = self.transformers.PreTrainedTokenizerFast(
            tokenizer_object=pairs, bos_token="<s>", eos_token="<|im_end|>", pad_token="<pad>"
        )
        made.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
        made.chat_template = template
        return made

    def network(self, kind: str, tokens: int, **fields: Any) -> Any:
        """A causal language model such as Llama, of two layers, that reads 512 tokens."""
        sizes = {
            "vocab_size": tokens, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
            "max_position_embeddings": 512, "initializer_range": 0.3, "bos_token_id": 0, "pad_token_id": 1,
            "eos_token_id": 3,
        }  # fmt: skip
        sizes |= {} if kind == "GPT2" else {"num_key_value_heads": 2, "intermediate_size": 64}
        sizes |= {"head_dim": 8, "sliding_window": 24} if kind == "Gemma3Text" else {}
        config = getattr(self.transformers, f"{kind}Config")(**(sizes | fields))
        self.torch.manual_seed(7)
        return self.transformers.AutoModelForCausalLM.from_config(config).eval()

    def opinionated(self, tokens: int, answers: Sequence[int]) -> Any:
        """A Llama that begins every reply with one of these tokens and ends it there."""
        made = self.network("Llama", tokens, tie_word_embeddings=False)
        said, heard = made.get_output_embeddings().weight, made.get_input_embeddings().weight
        with self.torch.no_grad():
            for layer in made.model.layers:  # two dimensions are left to what is known of the last token
                layer.self_attn.o_proj.weight[:2] = 0
                layer.mlp.down_proj.weight[:2] = 0
            said *= 0.05
            said[:, :2] = heard[:, :2] = 0
            heard[:, 0] = 3
            heard[answers, 0], heard[answers, 1] = 0, 3
            said[answers, 0], said[3, 1] = 16, 32
        return made

    def saved(self, name: str, *parts: Any) -> str:
        """A folder with what save_pretrained writes of a network and a tokenizer."""
        bars = self.transformers.utils.logging
        bars.disable_progress_bar()
        for part in parts:
            part.save_pretrained(self._base / name)
        bars.enable_progress_bar()
        return str(self._base / name)

    def judge(self, kind: str = "Llama", **fields: Any) -> str:
        """The folder of a judge of random weights."""
        tokenizer = self.tokenizer()
        return self.saved(kind.lower(), self.network(kind, len(tokenizer), **fields), tokenizer)


@pytest.fixture
def local_models(tmp_path: Path) -> Iterator[LocalModels]:
    """The maker of local judges. For models this small, threads that wait for one another are all of the time."""
    made = LocalModels(tmp_path)
    before = made.torch.get_num_threads()
    made.torch.set_num_threads(1)
    yield made
    made.torch.set_num_threads(before)
