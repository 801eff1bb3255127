"""Scripts, sentences and words, for all but the metrics that take sacrebleu's tokens."""

from judge.text import porter
from judge.text.languages import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    Language,
    count_words,
    detect_language,
    detect_language_or_none,
    han_form,
    han_writing,
    has_letter_beyond_ascii,
    is_cjk,
    is_latin,
    is_unspaced,
    language_of,
    main_script,
    normal,
    script_of,
    sentence_spans,
    sentences,
    tokens,
    word_shares,
)
from judge.text.latin import latin_language
from judge.text.tokenizers import (
    ENGLISH,
    TOKENIZERS,
    TOOLS,
    Tokenizer,
    installed,
    signature,
    tokenizer,
    tokenizer_for,
    words,
)

__all__ = [
    "DEFAULT_LANGUAGE", "ENGLISH", "LANGUAGES", "TOKENIZERS", "TOOLS", "Language", "Tokenizer",
    "count_words", "detect_language", "detect_language_or_none", "han_form", "han_writing",
    "has_letter_beyond_ascii", "installed", "is_cjk", "is_latin", "is_unspaced", "language_of",
    "latin_language", "main_script", "normal", "porter", "script_of", "sentence_spans", "sentences",
    "signature", "tokenizer", "tokenizer_for", "tokens", "word_shares", "words",
]  # fmt: skip
