"""Build models of random weights that are small enough for a test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest


class Tiny:
    """Build and save tiny tokenizers and networks. Skip the test if transformers is not installed."""

    def __init__(self) -> None:
        self.torch = pytest.importorskip("torch")
        self.transformers = pytest.importorskip("transformers")
        self.tokenizers = pytest.importorskip("tokenizers")

    def word_pieces(self, folder: Path, texts: Sequence[str]) -> Any:
        """Return a BERT tokenizer that knows the words of the texts."""
        words = {word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower())}
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        (folder / "vocab.txt").write_text("\n".join([*special, *sorted(words)]), "utf-8")
        return self.transformers.BertTokenizer.from_pretrained(str(folder))

    def byte_pairs(self, folder: Path, texts: Sequence[str], **options: Any) -> Any:
        """Return a RoBERTa tokenizer of 400 tokens that puts no space before the first word."""
        trained = self.tokenizers.ByteLevelBPETokenizer()
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        trained.train_from_iterator(
            [*texts] * 3, vocab_size=400, min_frequency=2, special_tokens=special
        )
        trained.save_model(str(folder))
        return self.transformers.RobertaTokenizer.from_pretrained(str(folder), **options)

    def made(self, kind: str, head: str, seed: int, **fields: Any) -> Any:
        """Return a network by kind and head, such as BertModel, with 2 layers and 32 dimensions.

        The same seed gives the same weights.
        """
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
        """Save model and tokenizer in the folder and return its path."""
        bars = self.transformers.utils.logging
        bars.disable_progress_bar()
        for part in parts:
            part.save_pretrained(folder, **options)
        bars.enable_progress_bar()
        return str(folder)

    def copied(self, folder: str, to: Path, **files: dict[str, Any]) -> str:
        """Copy a model's folder, change entries of its JSON files, and return the copy's path."""
        to.mkdir(exist_ok=True)
        for file in Path(folder).iterdir():
            (to / file.name).write_bytes(file.read_bytes())
        for name, entries in files.items():
            path = to / f"{name}.json"
            path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | entries), "utf-8")
        return str(to)


@pytest.fixture(scope="session")
def tiny() -> Tiny:
    """Return the builder of tiny models."""
    return Tiny()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Let torch use one thread: with models this small, most time goes into synchronising threads."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
