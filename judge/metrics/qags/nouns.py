"""Themes of a text: its noun phrases, names and amounts, by rules (English), a tagger (CJK) or a spaCy model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from judge import __version__, text
from judge.errors import ConfigError, MissingExtra
from judge.metrics.qags import english, taggers
from judge.metrics.qags.english import Span
from judge.metrics.qags.stages import Trouble
from judge.metrics.qags.taggers import Part, Words
from judge.records import fold, whole
from judge.registry import unknown

NOUNS = ("nouns", "en", "ja", "ko", "zh", "sudachi", "kiwi")
"""The finders by name: of each text's language, of one language, two other taggers. `spacy:MODEL` is one more."""
SPACY = "spacy:"
_SPACED = ("ko", "kiwi")  # taggers of texts in which white space stands inside a compound
_SHORT = 20  # characters, of a text whose language its neighbours may tell


class Nouns:
    """Noun phrases as themes: of each text by its language, or all by the finder that `tool` names.

    `compounds` makes one theme of nouns that follow one another (入学試験, with its prefixes, suffixes and numbers);
    without it each noun that a tagger cuts is one, and there are no amounts. English phrases are the same either way.
    Raises ConfigError for a name nobody knows and for a spaCy model that is not there, MissingExtra.
    """

    def __init__(self, tool: str = "nouns", *, compounds: bool = True) -> None:
        if tool not in NOUNS and not tool.startswith(SPACY):
            raise ConfigError(unknown("themes", tool, [*NOUNS, f"{SPACY}MODEL"]))
        self._tool = None if tool == "nouns" else tool
        self._compounds = compounds
        self._used: set[str] = set()
        self._kept: dict[tuple[str, str], list[Span]] = {}
        self.signature = self._signed()
        """The finders that the texts so far needed, with their versions."""

    def themes(self, outputs: Sequence[str]) -> list[list[str] | Trouble]:
        """For each text its themes in order of appearance, each once; upper and lower case are one.

        A text in a script without a finder is a Trouble. Raises MissingExtra where a tagger's packages are missing.
        """
        found: list[list[str] | Trouble] = []
        for output, language in zip(outputs, languages(outputs), strict=True):
            if self._tool is None and language == "en" and text.is_cjk(output):
                found.append(_NO_FINDER)
                continue
            output = clean(output)
            phrases: dict[str, str] = {}
            for start, end in self.spans(output, language):
                phrases.setdefault(fold(output[start:end]).casefold(), output[start:end])
            found.append(list(phrases.values()))
        return found

    def spans(self, clean: str, language: str) -> list[Span]:
        """Where the themes of a cleaned text of this language are, in order; of each text they are kept."""
        name = self._tool or language
        if name not in self._used:
            self._used.add(name)
            self.signature = self._signed()
        if (clean, name) not in self._kept:
            self._kept[clean, name] = self._found(clean, name)
        return self._kept[clean, name]

    def _found(self, clean: str, name: str) -> list[Span]:
        if name == "en":
            return english.spans(clean)
        if name.startswith(SPACY):
            return _by_spacy(_spacy(name), clean, self._compounds)
        words = taggers.words(name, clean)
        return list(_runs(clean, words, name in _SPACED)) if self._compounds else _single(words)

    def _signed(self) -> str:
        used = sorted({self._tool} if self._tool else self._used) or ["en"]
        return "+".join(map(self._sign, used)) + ("" if self._compounds else "-single")

    def _sign(self, name: str) -> str:
        if name == "en":
            return f"rules{__version__}"
        if name.startswith(SPACY):
            meta = _spacy(name).meta
            return f"spacy-{meta['lang']}_{meta['name']}{meta['version']}"
        return taggers.signature(name)


_NO_FINDER = Trouble(
    "NoNounFinder",
    "is in a script without a noun finder of its own: name a spaCy model (themes=spacy:MODEL), or backend=llm",
)


def clean(given: str) -> str:
    """The text as every tagger can hold it: no lone surrogates, no NUL."""
    return whole(given).replace("\0", " ")


def languages(texts: Sequence[str]) -> list[text.Language]:
    """The language of each text. A few Han characters alone are Japanese among texts most of which are."""
    most = text.language(texts)
    own = [text.language([one]) for one in texts]
    return [
        "ja" if most == "ja" and found == "zh" and len(one) <= _SHORT else found
        for one, found in zip(texts, own, strict=True)
    ]


# From words to phrases


def _single(words: Words) -> list[Span]:
    return [span for span, part in words if part == "noun"]


def _runs(clean: str, words: Words, spaced: bool) -> Iterator[Span]:
    run: Words = []
    for span, part in words:
        if run and not (part and _joins(run[-1][1], part, clean[run[-1][0][1] : span[0]], spaced)):
            yield from _phrase(run)
            run = []
        if part:
            run.append((span, part))
    yield from _phrase(run)


def _joins(last: Part, part: Part, between: str, spaced: bool) -> bool:
    """Whether two words are in one compound; `between` is the white space between them."""
    if between:
        return spaced and between == " " and last in ("noun", "suffix") and part in ("noun", "prefix")
    if part == "unit":
        return last in ("number", "amount", "unit", "prefix")
    return not (part in ("noun", "prefix") and last in ("unit", "amount"))


def _phrase(run: Words) -> Iterator[Span]:
    """The run as a phrase if there is a noun or an amount in it, or a number and what it counts."""
    while run and run[0][1] in ("suffix", "unit"):
        run = run[1:]
    while run and run[-1][1] == "prefix":
        run = run[:-1]
    parts = {part for _, part in run}
    if parts & {"noun", "amount"} or ("number" in parts and parts & {"unit", "suffix"}):
        yield run[0][0][0], run[-1][0][1]


@cache
def _spacy(name: str) -> Any:
    """The spaCy pipeline of `spacy:MODEL`."""
    model = name.removeprefix(SPACY)
    try:
        spacy = import_module("spacy")
    except ModuleNotFoundError as error:
        raise MissingExtra(f"qags: {name} needs the package {error.name or 'spacy'}: pip install spacy") from error
    try:
        return spacy.load(model)
    except (OSError, ImportError, ValueError) as error:
        raise ConfigError(
            f"qags: spaCy cannot load the model {model!r}: name one that is installed "
            f"(python -m spacy download {model}, or pip install its package): {error}"
        ) from error


def _by_spacy(nlp: Any, clean: str, compounds: bool) -> list[Span]:
    """Noun chunks without their determiners and entities, the longer of two that overlap; or nouns in a row.

    Chinese, Japanese and Korean go by nouns, as does a language whose pipeline has no parser or no chunks.
    """
    with taggers.LOCK:
        doc = nlp(clean[: nlp.max_length])
    entities = [(entity.start, entity.end) for entity in doc.ents]
    nouns = [(token.i, token.i + 1) for token in doc if token.pos_ in ("NOUN", "PROPN")]
    if not compounds:
        return [_characters(doc, span) for span in nouns]
    try:
        chunks = [] if nlp.lang in ("ja", "ko", "zh") else [(chunk.start, chunk.end) for chunk in doc.noun_chunks]
    except (NotImplementedError, ValueError):  # no chunks of this language; no parser
        chunks = []
    found = [_bare(doc, *span) for span in chunks or _adjacent(nouns)] + [_bare(doc, *span) for span in entities]
    kept: list[Span] = []
    for start, end in sorted({span for span in found if span[0] < span[1]}, key=lambda s: (s[0] - s[1], s)):
        if all(end <= other[0] or start >= other[1] for other in kept):
            kept.append((start, end))
    return [_characters(doc, span) for span in sorted(kept)]


def _adjacent(spans: list[Span]) -> list[Span]:
    made: list[Span] = []
    for start, end in spans:
        if made and made[-1][1] == start:
            made[-1] = (made[-1][0], end)
        else:
            made.append((start, end))
    return made


def _bare(doc: Any, start: int, end: int) -> Span:
    """Without determiners, pronouns and marks at the ends: nothing is left of `they`."""
    while start < end and doc[start].pos_ in ("DET", "PRON", "PUNCT", "SPACE", "PART"):
        start += 1
    while start < end and doc[end - 1].pos_ in ("PUNCT", "SPACE", "PART", "PRON"):
        end -= 1
    return start, end


def _characters(doc: Any, span: Span) -> Span:
    last = doc[span[1] - 1]
    return doc[span[0]].idx, last.idx + len(last.text)
