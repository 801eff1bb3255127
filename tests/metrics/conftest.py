"""Models of random weights, small enough to be made for a test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest


class Tiny:
    """Makes tokenizers of some texts' words and models of them, and saves them; skips without transformers."""

    def __init__(self) -> None:
        self.torch = pytest.importorskip("torch")
        self.transformers = pytest.importorskip("transformers")
        self.tokenizers = pytest.importorskip("tokenizers")

    def word_pieces(self, folder: Path, texts: Sequence[str]) -> Any:
        """A BERT tokenizer that knows the words of the texts."""
        words = {word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower())}
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        (folder / "vocab.txt").write_text("\n".join([*special, *sorted(words)]), "utf-8")
        return self.transformers.BertTokenizer.from_pretrained(str(folder))

    def byte_pairs(self, folder: Path, texts: Sequence[str], **options: Any) -> Any:
        """A RoBERTa tokenizer of 400 tokens that puts no space before the first word."""
        trained = self.tokenizers.ByteLevelBPETokenizer()
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        trained.train_from_iterator(
            [*texts] * 3, vocab_size=400, min_frequency=2, special_tokens=special
        )
        trained.save_model(str(folder))
        return self.transformers.RobertaTokenizer.from_pretrained(str(folder), **options)

    def made(self, kind: str, head: str, seed: int, **fields: Any) -> Any:
        """A network such as BertModel, by kind and head, the same for the same seed; of 2 layers and 32 dimensions."""
        self.torch.manual_seed(seed)
        sizes = {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 64,
        }
        config = getattr(self.transformers, f"{kind}Config")(**(sizes | fields))
        return getattr(self.transformers, f"{kind}{head}")(config)

    def saved(self, folder: Path, *parts: Any, **options: Any) -> str:
        """The folder, with what save_pretrained writes of model and tokenizer."""
        bars = self.transformers.utils.logging
        bars.disable_progress_bar()
        for part in parts:
            part.save_pretrained(folder, **options)
        bars.enable_progress_bar()
        return str(folder)

    def copied(self, folder: str, to: Path, **files: dict[str, Any]) -> str:
        """A model's folder again, with other entries in its JSON files."""
        to.mkdir(exist_ok=True)
        for file in Path(folder).iterdir():
            (to / file.name).write_bytes(file.read_bytes())
        for name, entries in files.items():
            path = to / f"{name}.json"
            path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | entries), "utf-8")
        return str(to)


@pytest.fixture(scope="session")
def tiny() -> Tiny:
    """The maker of tiny models."""
    return Tiny()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For models this small, threads that wait for one another are all of the time."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
