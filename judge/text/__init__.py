"""Scripts, sentences and words, for all but the metrics that take sacrebleu's tokens."""

from judge.text import porter
from judge.text.languages import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    Language,
    detect_language,
    detect_language_or_none,
    han_writing,
    is_cjk,
    is_unspaced,
    language_of,
    normal,
    sentence_spans,
    sentences,
    tokens,
)
from judge.text.tokenizers import (
    TOKENIZERS,
    TOOLS,
    Tokenizer,
    drops_most_letters,
    installed,
    signature,
    tokenizer,
    tokenizer_for,
    words,
)

__all__ = [
    "DEFAULT_LANGUAGE", "LANGUAGES", "TOKENIZERS", "TOOLS", "Language", "Tokenizer", "detect_language",
    "detect_language_or_none", "drops_most_letters", "han_writing", "installed", "is_cjk", "is_unspaced",
    "language_of", "normal", "porter", "sentence_spans", "sentences", "signature", "tokenizer", "tokenizer_for",
    "tokens", "words",
]  # fmt: skip
