"""All texts of a system cut into tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.metrics import Note, sacrebleu_tokenizers
from judge.metrics.bleu_options import Tokens
from judge.metrics.common import texts as checked
from judge.metrics.diversity.ngrams import Corpus, corpus


@dataclass(frozen=True, slots=True)
class Cut:
    """Texts as tokens: `name` is the tokenizer, `note` says of how many it leaves a sentence in one piece."""

    corpus: Corpus
    name: str
    note: Note


def cut(tokens: Tokens, texts: Sequence[str], metric: str = "") -> Cut:
    """The texts cut, all by one tokenizer. Raises MissingExtra where its packages are not installed.

    DataError for what is no list of texts.
    """
    name = tokens.name(given := checked("texts", texts))
    return Cut(corpus(list(map(tokens.words(name), given))), name, sacrebleu_tokenizers.uncut(metric, name, given))
