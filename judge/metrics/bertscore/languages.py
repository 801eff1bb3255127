"""Find the texts that a model of BERTScore cannot read, by their scripts, language and words."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from judge import text
from judge.core import huggingface
from judge.core.errors import ConfigError
from judge.core.huggingface import import_optional
from judge.metrics.base import ModelError
from judge.metrics.bertscore.models import DEFAULT, Model

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
# Shares of a vocabulary. The first are 15 of MiniLM's 30,522 pieces: 8 pieces have Cyrillic
# letters and 2 have Arabic letters.
_FEWEST_PIECES = 5e-4
_MANY_PIECES = 0.05
# Han characters: the English vocabulary of BERT has 0.01, the multilingual one 0.11.
_FEWEST_HAN = 0.04


@dataclass(frozen=True, slots=True)
class Languages:
    """The scripts that a model can read, as in `text.main_script`; None if they are unknown."""

    scripts: frozenset[str] | None
    english_only: bool = False


def languages(model: Model) -> Languages:
    """Return what a model can read, by its name if that is an English model's, or its vocabulary.

    A model reads a script if its vocabulary has pieces of several letters in it. A vocabulary with
    single letters alone spells the words out, and unrelated texts look alike.
    """
    own_name = model.name.rpartition("/")[2]
    names_other_language = _OTHER_LANGUAGE(model.name)
    is_named_english = _ENGLISH_MODEL(own_name) and not names_other_language
    if model.name == DEFAULT or is_named_english:
        # A model with such a name may be of another language, as klue/roberta-large is of Korean:
        # its vocabulary tells. English ones have a few pieces of other scripts, from names and, in
        # GPT-2's vocabulary, from Japanese games.
        scripts = _vocabulary_scripts(model.folder, model.digest, _MANY_PIECES) or frozenset()
        if scripts <= {"LATIN"}:
            return Languages(frozenset(("LATIN",)), english_only=True)
    return Languages(_vocabulary_scripts(model.folder, model.digest, _FEWEST_PIECES))


@lru_cache(maxsize=8)
def _vocabulary_scripts(folder: Path, digest: str, share: float) -> frozenset[str] | None:
    """Return the scripts that `share` of a vocabulary's pieces are in; None if it cannot be read.

    `digest` belongs to the key of the cache.
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
    known_scripts = {script for script, number in counts.items() if number >= fewest}
    if han_pieces >= _FEWEST_HAN * len(pieces):
        known_scripts.add("CJK")
    return frozenset(known_scripts)


def _vocabulary(folder: Path) -> list[str]:
    """Return the pieces of a tokenizer as text, without marks of bytes or of white space.

    The list is empty if the tokenizer cannot be read.
    """
    path = folder / "tokenizer.json"
    if path.is_file():
        try:
            tokenizer = import_optional("tokenizers", "bertscore").Tokenizer.from_file(str(path))
            ids = tokenizer.get_vocab().values()
            return list(tokenizer.decode_batch([[token_id] for token_id in ids]))
        except Exception:  # noqa: BLE001 - of any class; loading the model says what is wrong
            return []
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
    readable = languages(model)
    pairs = list(pairs)
    texts: dict[str, None] = {}
    for output, references in pairs:
        texts |= dict.fromkeys((output, *references))
    unfit: dict[str, ModelError] = {}
    if readable.scripts is not None:
        for string in texts:
            script = text.main_script(string)
            if script and script not in readable.scripts:
                script_name = _SCRIPT_NAMES.get(script, script.capitalize())
                unfit[string] = _unfit(f"in {script_name}", readable, model)
    if readable.english_only:
        latin = [string for string in texts if string not in unfit]
        for foreign in _foreign_texts(latin, pairs):
            unfit[foreign] = _unfit("in another language than English", readable, model)
    return unfit


def _foreign_texts(latin: Sequence[str], pairs: Iterable[Texts]) -> set[str]:
    """Return the texts in Latin letters that are in another language than English."""
    language_by_text = {string: text.latin_language(string) for string in latin}
    language_of_all = "unknown"
    if "English" not in language_by_text.values():
        language_of_all = text.latin_language("\n".join(latin))
    if language_of_all == "other":
        return set(latin)
    foreign = {string for string, language in language_by_text.items() if language == "other"}
    for output, references in pairs:
        texts = (output, *references)
        pair = [string for string in texts if string in language_by_text]
        # One English text decides for its pair.
        if any(language_by_text[string] == "English" for string in pair):
            continue
        if text.latin_language("\n".join(pair)) == "other":
            foreign.update(pair)
    return foreign


_SCRIPT_NAMES = {"CJK": "Chinese characters", "KANA": "kana", "HANGUL": "Hangul"}


def _unfit(problem: str, readable: Languages, model: Model) -> ModelError:
    reads = "is a model of English" if readable.english_only else "has no words of it"
    advice = f"{model.name} {reads}: {UNKNOWN_ADVICE}"
    return ModelError("UnknownText", f"{problem}, and {advice}")


def unknown_text(share: float, model: Model) -> ModelError | None:
    """Return why a text has no value if the model does not know this share (0–1) of its tokens."""
    if share <= huggingface.MOST_UNKNOWN:
        return None
    unknown = f"of which {share:.0%} of the tokens are unknown to {model.name}"
    return ModelError("UnknownText", f"{unknown}: {UNKNOWN_ADVICE}")


def check_words(model: Model, pairs: Iterable[Texts]) -> None:
    """Raise ConfigError if the model can read no output and its references. No text is empty."""
    pairs = list(pairs)
    # The outputs of an item share its references.
    knows = lru_cache(maxsize=None)(_word_checker(model))
    known_pairs: list[Texts] = []
    for output, references in pairs:
        known_references = tuple(filter(knows, references))
        if known_references and knows(output):
            known_pairs.append((output, known_references))
    if not known_pairs:
        if not pairs:
            return
        raise ConfigError(
            f"bertscore: {model.name} does not know the words of any output and its references: "
            f"{UNKNOWN_ADVICE}"
        )
    unfit = unfit_texts(model, known_pairs)
    if all(
        output in unfit or unfit.keys() >= {*known_references}
        for output, known_references in known_pairs
    ):
        # The advice follows the colon and is for all texts.
        first_problem = next(iter(unfit.values()))
        reason = first_problem.message.partition(": ")[0]
        raise ConfigError(
            f"bertscore: every output or its references are {reason}: {UNKNOWN_ADVICE}"
        )


def _word_checker(model: Model) -> Callable[[str], bool]:
    """Return a function from a text to whether the model knows its tokens.

    It is always true for a model without tokenizer.json.
    """
    path = model.folder / "tokenizer.json"
    try:
        tokenizer = import_optional("tokenizers", "bertscore").Tokenizer.from_file(str(path))
    except Exception:  # noqa: BLE001 - of any class; loading the model says what is wrong
        return lambda text: True
    vocabulary = json.loads(path.read_text("utf-8"))["model"]
    # Unigram models name the number of the unknown token, the others its text.
    unknown = vocabulary.get("unk_id")
    if unknown is None and vocabulary.get("unk_token") is not None:
        unknown = tokenizer.token_to_id(vocabulary["unk_token"])
    if unknown is None:
        return lambda text: True
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def knows(text: str) -> bool:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        return huggingface.unknown_share(ids, unknown) <= huggingface.MOST_UNKNOWN

    return knows
