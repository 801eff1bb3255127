"""Scripts, words and sentences: the only place that tokenizes."""

from judge.text.script import Language, is_cjk, language, sentences, tokens

__all__ = ["Language", "is_cjk", "language", "sentences", "tokens"]
