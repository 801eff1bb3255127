"""Scripts, sentences and words, for all but the metrics that take sacrebleu's tokens."""

from judge.text import porter
from judge.text.script import Language, certain_language, is_cjk, language, language_of, sentences, tokens
from judge.text.tokenizers import (
    TOKENIZERS,
    Tokenizer,
    installed,
    loses,
    signature,
    tokenizer,
    tokenizer_for,
    words,
)

__all__ = [
    "TOKENIZERS",
    "Language",
    "Tokenizer",
    "certain_language",
    "installed",
    "is_cjk",
    "language",
    "language_of",
    "loses",
    "porter",
    "sentences",
    "signature",
    "tokenizer",
    "tokenizer_for",
    "tokens",
    "words",
]
