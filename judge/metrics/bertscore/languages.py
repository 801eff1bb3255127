"""Find the texts that a model of BERTScore cannot read, by their scripts, language and words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from judge import text
from judge.core import huggingface
from judge.core.errors import ConfigError
from judge.core.huggingface import import_optional
from judge.metrics.base import ModelError
from judge.metrics.bertscore.models import DEFAULT, Model

_TOKENIZER_FILE = "tokenizer.json"
UNKNOWN_ADVICE = (
    "use a model of the language, such as bert-base-multilingual-cased (bertscore.model, "
    "qags.bertscore_model)"
)

# English models by the last part of their names, such as roberta-large-mnli or all-MiniLM-L6-v2. A
# model that is trained further in English keeps the beginning of the name.
_ENGLISH_MODEL = re.compile(
    r"(?:bert-(?:base|large|medium|small|mini|tiny)-(?:un)?cased|distilbert-base-(?:un)?cased"
    r"|(?:distil)?roberta-(?:base|large)"
    r"|albert-|xlnet-|bart-|deberta-|electra-|mpnet-|longformer-|scibert"
    r"|(?:gt-)?all-(?:minilm|mpnet|distilroberta)"
    r"|(?:paraphrase|multi-qa)-(?:minilm|mpnet|distilroberta|albert)"
    r"|bge-(?:small|base|large)-en|gpt2)",
    re.IGNORECASE,
).match
# paraphrase-multilingual-MiniLM-L12-v2, roberta-base-japanese, roberta-base-fi
_OTHER_LANGUAGE = re.compile(
    r"multilingual|xlm|chinese|japanese|korean|german|french|spanish|arabic|russian|turkish"
    r"|vietnamese|thai|-(?:ja|ko|zh|de|fr|es|it|nl|ru|ar|tr|vi|hi|pl|pt|sv|fi)(?:-|$)",
    re.IGNORECASE,
).search
# The least share of a vocabulary that a script needs. These are 15 of MiniLM's 30,522 pieces, of
# which 8 have Cyrillic letters and 2 have Arabic letters: it reads neither.
_LEAST_SHARE = 5e-4
# If the name is that of an English model. English vocabularies have a few pieces of other scripts,
# from names and, in GPT-2's vocabulary, from Japanese games.
_LEAST_SHARE_DESPITE_NAME = 0.05
# Han characters: the English vocabulary of BERT has 0.01, the multilingual one 0.11.
_LEAST_SHARE_OF_HAN = 0.04
_SCRIPT_NAMES = {"CJK": "Chinese characters", "KANA": "kana", "HANGUL": "Hangul"}


@dataclass(frozen=True, slots=True)
class Languages:
    """The scripts that a model can read, as in `text.main_script`; None if they are unknown."""

    scripts: frozenset[str] | None
    english_only: bool = False


def languages_of(model: Model) -> Languages:
    """Return what a model can read, by its name if that is an English model's, or its vocabulary.

    A model reads a script if its vocabulary has pieces of several letters in it. A vocabulary with
    single letters alone spells the words out, and unrelated texts look alike.
    """
    last_name = model.name.rpartition("/")[2]
    is_named_english = _ENGLISH_MODEL(last_name) and not _OTHER_LANGUAGE(model.name)
    if model.name == DEFAULT or is_named_english:
        # A model with such a name may be of another language, as klue/roberta-large is of Korean.
        # Its vocabulary shows that.
        least_share = _LEAST_SHARE_DESPITE_NAME
        scripts = _vocabulary_scripts(model.folder, model.digest, least_share)
        if scripts is None or scripts <= {"LATIN"}:
            return Languages(frozenset(("LATIN",)), english_only=True)
    return Languages(_vocabulary_scripts(model.folder, model.digest, _LEAST_SHARE))


@lru_cache(maxsize=8)
def _vocabulary_scripts(
    folder: Path, digest: str, share: float
) -> frozenset[str] | None:
    """Return the scripts of at least `share` of a vocabulary's pieces; None if it cannot be read.

    `digest` is only a part of the cache's key: the files of a folder may change.
    """
    pieces = _vocabulary(folder)
    if not pieces:
        return None
    counts: Counter[str] = Counter()
    han_pieces = 0
    for piece in pieces:
        letters = [letter for letter in piece if letter.isalpha()]
        scripts = {text.script_of(letter) for letter in letters}
        if len(scripts) != 1:
            continue
        if len(letters) > 1:
            counts.update(scripts)
        # Most pieces of Chinese are single characters.
        if scripts == {"CJK"}:
            han_pieces += 1
    fewest = max(1, share * len(pieces))
    known_scripts = {script for script, count in counts.items() if count >= fewest}
    if han_pieces >= _LEAST_SHARE_OF_HAN * len(pieces):
        known_scripts.add("CJK")
    return frozenset(known_scripts)


def _load_tokenizer(path: Path) -> Any:
    """Return the `tokenizers.Tokenizer` in a file. Raises an exception of any class."""
    return import_optional("tokenizers", "bertscore").Tokenizer.from_file(str(path))


def _vocabulary(folder: Path) -> list[str]:
    """Return the pieces of a tokenizer as text, without marks of bytes or of white space.

    The list is empty if the tokenizer cannot be read.
    """
    path = folder / _TOKENIZER_FILE
    if path.is_file():
        try:
            tokenizer = _load_tokenizer(path)
            ids = tokenizer.get_vocab().values()
            return list(tokenizer.decode_batch([[token_id] for token_id in ids]))
        except Exception:  # noqa: BLE001 - of any class; loading the model says what is wrong
            return []
    # Older models of BERT have their pieces in a plain list.
    try:
        return (folder / "vocab.txt").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []


Texts = tuple[str, tuple[str, ...]]
"""An output and its references."""


def unfit_texts(model: Model, pairs: Iterable[Texts]) -> dict[str, ModelError]:
    """Return the texts in a script or language that the model cannot compare, with the reasons.

    A text that is too short to tell its language has the language of its pair, or of all pairs.
    """
    reasons = _reasons_by_text(model, list(pairs))
    return {string: _unknown_text(reason) for string, reason in reasons.items()}


def _unknown_text(reason: str) -> ModelError:
    return ModelError("UnknownText", f"{reason}: {UNKNOWN_ADVICE}")


def _reasons_by_text(model: Model, pairs: Sequence[Texts]) -> dict[str, str]:
    """Return why the model cannot compare a text, for each text that it cannot."""
    readable = languages_of(model)
    reads = "is a model of English" if readable.english_only else "has no words of it"
    reason = f"and {model.name} {reads}"
    texts: dict[str, None] = {}
    for output, references in pairs:
        texts |= dict.fromkeys((output, *references))
    reasons: dict[str, str] = {}
    if readable.scripts is not None:
        for string in texts:
            script = text.main_script(string)
            if script and script not in readable.scripts:
                script_name = _SCRIPT_NAMES.get(script, script.capitalize())
                reasons[string] = f"in {script_name}, {reason}"
    if readable.english_only:
        latin = [string for string in texts if string not in reasons]
        for foreign in _foreign_texts(latin, pairs):
            reasons[foreign] = f"in another language than English, {reason}"
    return reasons


def _foreign_texts(latin: Sequence[str], pairs: Iterable[Texts]) -> set[str]:
    """Return those of the texts in Latin letters that are in another language than English.

    A text that is too short to tell is in English if a text of its pair is.
    """
    language_by_text = {string: text.latin_language(string) for string in latin}
    if "English" not in language_by_text.values():
        language_of_all = text.latin_language("\n".join(latin))
        if language_of_all == "other":
            return set(latin)
    foreign = {string for string in latin if language_by_text[string] == "other"}
    for output, references in pairs:
        texts_of_pair = (output, *references)
        latin_texts = [string for string in texts_of_pair if string in language_by_text]
        # One English text decides for its pair.
        if any(language_by_text[string] == "English" for string in latin_texts):
            continue
        language_of_pair = text.latin_language("\n".join(latin_texts))
        if language_of_pair == "other":
            foreign.update(latin_texts)
    return foreign


def unknown_text(share: float, model: Model) -> ModelError | None:
    """Return why a text has no value if the model does not know this share (0–1) of its tokens."""
    if share <= huggingface.MOST_UNKNOWN:
        return None
    problem = f"of which {share:.0%} of the tokens are unknown to {model.name}"
    return _unknown_text(problem)


def check_words(model: Model, pairs: Iterable[Texts]) -> None:
    """Raise ConfigError if the model can read no output and its references. No text is empty."""
    pairs = list(pairs)
    if not pairs:
        return
    # The outputs of an item share its references.
    knows = lru_cache(maxsize=None)(_word_checker(model))
    known_pairs: list[Texts] = []
    for output, references in pairs:
        known_references = tuple(filter(knows, references))
        if known_references and knows(output):
            known_pairs.append((output, known_references))
    if not known_pairs:
        raise ConfigError(
            f"bertscore: {model.name} does not know the words of any output and its references: "
            f"{UNKNOWN_ADVICE}"
        )
    reasons = _reasons_by_text(model, known_pairs)
    for output, known_references in known_pairs:
        is_readable = output not in reasons
        if is_readable and not reasons.keys() >= set(known_references):
            return
    first_reason = next(iter(reasons.values()))
    raise ConfigError(
        f"bertscore: every output or its references are {first_reason}: {UNKNOWN_ADVICE}"
    )


def _word_checker(model: Model) -> Callable[[str], bool]:
    """Return a function from a text to whether the model knows its tokens.

    It is always true for a model without tokenizer.json or without an unknown token.
    """
    path = model.folder / _TOKENIZER_FILE
    try:
        tokenizer = _load_tokenizer(path)
    except Exception:  # noqa: BLE001 - of any class; loading the model says what is wrong
        return lambda text: True
    settings = json.loads(path.read_text("utf-8"))["model"]
    # Unigram models name the id of the unknown token, the others its text.
    unknown = settings.get("unk_id")
    unknown_token = settings.get("unk_token")
    if unknown is None and unknown_token is not None:
        unknown = tokenizer.token_to_id(unknown_token)
    if unknown is None:
        return lambda text: True
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def knows(text: str) -> bool:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        return huggingface.unknown_share(ids, unknown) <= huggingface.MOST_UNKNOWN

    return knows
