"""Run the pipeline of QAGS: themes of an output, a question for each, answers from both texts.

The stages are protocols; the back ends `models` and `llm` implement them. No request is sent twice.
The answers are compared by exact match and F1 as in SQuAD, ROUGE, chrF and BERTScore. Corrected
BERTScore and its ends .65 and .85 follow an article in Japanese by ty_nlp, 2022-08-30,
https://zenn.dev/ty_nlp/articles/ee4e17b6191987.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from judge import text
from judge.core.failure_kinds import failure_kind
from judge.core.format import plural
from judge.core.records import Sample, Score
from judge.core.signature import BAR, Signature
from judge.metrics import bertscore, chrf, rouge
from judge.metrics.base import MetricContext, Tell
from judge.metrics.base import ModelError as ModelError
from judge.metrics.bertscore.models import HIGH, LOW
from judge.metrics.common import CannotScore, choices_option, spread
from judge.metrics.qags.answer_candidates import languages

NAMES = ("exact", "f1", "rouge1", "rougeL", "chrf", "bertscore", "corrected")
Pair = tuple[str, str]
"""The answers from the source and from the output."""
_ROUGE = ("rouge1", "rougeL")
_BERT = ("bertscore", "corrected")
_BERTSCORE_COLUMNS = {"bertscore": "bertscore", "bertscore_corrected": "corrected"}
# "the café of a town" has two, "theme" has none
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_MARKS = frozenset(string.punctuation)
_CJK_LETTERS = "".join(language.letters for language in text.LANGUAGES.values())
# 喫茶店, はい, 네
_CJK = re.compile(f"[{_CJK_LETTERS}]").search


def similarities(
    pairs: Sequence[Pair],
    names: Sequence[str] = ("f1",),
    *,
    languages: Sequence[str] | None = None,
    low: float = LOW,
    high: float = HIGH,
    bert: Mapping[str, object] | None = None,
) -> list[dict[str, float]]:
    """Return the similarities of each pair of answers by name, 0–1 (BERTScore may be below 0).

    - `exact`: 1 if the answers are equal after SQuAD's normalisation (`normalised`), else 0.
    - `f1`: SQuAD's F1 of their shared words (Rajpurkar et al. 2016). If one has a Chinese, Japanese
      or Korean character, F1 of characters and of words in other scripts, as in CMRC 2018 (Cui et
      al. 2019): 喫茶店 and 小さい喫茶店 are 2/3.
    - `rouge1`, `rougeL`: F of ROUGE, stemmed, with the source's answer as the reference. Words are
      cut by the tokenizer that `judge.text` has for both answers, or for the pair's language in
      `languages`.
    - `chrf`: chrF1 (Popović 2015: character n-grams up to 6, beta 1) of the normalised answers. It
      asks for the order of characters too: 木曜 and 火曜 are 1/4.
    - `bertscore`: F; `corrected`: clip((F - low) / (high - low), 0, 1). `bert` are options of
      `BertScore`.

    If only one text answers (UNANSWERABLE), or only one answer has a token, every similarity is 0.
    A pair without a BERTScore lacks these names. Each distinct pair is compared once. Raise
    ConfigError, MissingExtra.
    """
    similarities = Similarities(names, low=low, high=high, bert=bert)
    return similarities.compare(pairs, languages)


class Similarities:
    """`similarities` with fixed options, and the signature of each name."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        low: float = LOW,
        high: float = HIGH,
        bert: Mapping[str, object] | None = None,
        cache: Path | None = None,
    ) -> None:
        self.names = checked("similarity", names)
        self._low = low
        self._high = high
        bertscore.rescale_linear(1.0, low, high)  # raises unless low < high
        # Created here to report missing packages before anything is computed or paid.
        options: dict[str, Any] = {
            **(bert or {}),
            "low": low,
            "high": high,
            "context": MetricContext(cache),
        }
        uses_bertscore = not set(_BERT).isdisjoint(self.names)
        self._bert = bertscore.BertScore(**options) if uses_bertscore else None
        types = [name for name in _ROUGE if name in self.names]
        self._rouge = rouge.Rouge(types=types or "rouge1")
        self._tokenizers: set[str] = set()
        self._units: set[str] = set()
        self._signed_bert: tuple[str, ...] = ()

    def check(self, samples: Sequence[Sample]) -> None:
        """Raise ConfigError if BERTScore's model knows the words of no output and its source."""
        if self._bert:
            compared: list[Sample] = []
            for sample in samples:
                source = sample.source or ""
                compared.append(replace(sample, references=(source,)))
            self._bert.check(compared)

    def compare(
        self,
        pairs: Sequence[Pair],
        languages: Sequence[str] | None = None,
    ) -> list[dict[str, float]]:
        """Return the similarities of pairs, see `similarities`."""
        tokenized_pairs: list[tuple[Pair, str]] = []  # with the name of the tokenizer
        languages = languages or [""] * len(pairs)
        for pair, language in zip(pairs, languages, strict=True):
            tokenizer = _tokenizer_for(pair, language)
            tokenized_pairs.append((pair, tokenizer))
            self._tokenizers.add(tokenizer)
            self._units.add(_unit(pair, tokenizer))
        by_words: dict[tuple[Pair, str], dict[str, float]] = {}
        for pair, tokenizer in tokenized_pairs:
            both_answer = all(map(str.strip, pair))
            if both_answer:
                by_words[pair, tokenizer] = self._by_words(pair, tokenizer)
        answered_pairs = dict.fromkeys(pair for pair, _ in by_words)
        by_pair = self._by_pair(list(answered_pairs))
        compared: list[dict[str, float]] = []
        for pair, tokenizer in tokenized_pairs:
            # If only one text answers, every similarity is 0.
            values = dict.fromkeys(self.names, 0.0)
            if (pair, tokenizer) in by_words:
                values = by_words[pair, tokenizer] | by_pair[pair]
            known_names = [name for name in self.names if name in values]
            compared.append({name: values[name] for name in known_names})
        return compared

    def _by_pair(self, pairs: Sequence[Pair]) -> dict[Pair, dict[str, float]]:
        """Return each pair's similarities that need no tokenizer, for all pairs at once."""
        by_pair: dict[Pair, dict[str, float]] = {pair: {} for pair in pairs}
        if "chrf" in self.names:
            for pair, value in zip(pairs, chrf1(pairs), strict=True):
                by_pair[pair]["chrf"] = value
        if self._bert:
            by_bertscore = self._by_bertscore(pairs, self._bert)
            for pair, values in zip(pairs, by_bertscore, strict=True):
                by_pair[pair] |= values
        return by_pair

    def _by_bertscore(
        self,
        pairs: Sequence[Pair],
        bert: bertscore.BertScore,
    ) -> list[dict[str, float]]:
        """Return each pair's BERTScore and corrected BERTScore; a pair without a value has none."""
        samples: list[Sample] = []
        for index, (source, output) in enumerate(pairs):
            samples.append(Sample(str(index), "", output, references=(source,)))
        result = bert.score(samples)
        self._signed_bert = _signed_bertscore(result.columns[0].signature)
        values: list[dict[str, float]] = [{} for _ in pairs]
        for score in result.rows:
            if isinstance(score, Score) and score.column in _BERTSCORE_COLUMNS:
                similarity_name = _BERTSCORE_COLUMNS[score.column]
                values[int(score.item)][similarity_name] = score.value
        return values

    def _by_words(self, pair: Pair, tokenizer: str) -> dict[str, float]:
        """Return a pair's similarities by its words: exact match, F1 and ROUGE."""
        source, output = pair
        normalised_source = normalised(source)
        normalised_output = normalised(output)
        unit = _unit(pair, tokenizer)
        cut = str.split if unit == _SQUAD else text.words(unit)
        values = {
            "exact": float(normalised_source == normalised_output),
            "f1": f1(normalised_source, normalised_output, cut),
        }
        if not set(_ROUGE).isdisjoint(self.names):
            scores = self._rouge.compare(output, (source,), tokenizer)
            for kind, scored in zip(self._rouge.kinds, scores, strict=True):
                if isinstance(scored, CannotScore):
                    # The source's answer has no token: 1 for the same answer, as in SQuAD.
                    values[kind.name] = float(source.strip() == output.strip())
                else:
                    values[kind.name] = scored.fmeasure
        return values

    def signature(self, similarity_name: str) -> Signature:
        """Return what computed the similarity of this name in the calls of `compare` so far."""
        if self._bert and similarity_name in _BERT:
            ends: list[str] = []
            if similarity_name == "corrected":
                ends = [f"low={self._low:g}", f"high={self._high:g}"]
            signed = self._signed_bert
            if not signed:  # without answers nothing has been compared
                empty = self._bert.score([])
                signed = _signed_bertscore(empty.columns[0].signature)
            return Signature(similarity_name, *ends, *signed)
        if similarity_name == "exact":
            return Signature(similarity_name)
        if similarity_name == "f1":
            units = "+".join(sorted(self._units or {_SQUAD}))
            return Signature(similarity_name, f"tok={units}")
        if similarity_name == "chrf":
            scorer = f"sacrebleu {version('sacrebleu')}"
            return Signature(
                similarity_name,
                "case=lc",
                "nc=6",
                "nw=0",
                "space=no",
                "beta=1",
                scorer,
            )
        used_tokenizers = sorted(self._tokenizers or {"en"})
        tokenizers = "+".join(map(text.signature, used_tokenizers))
        return Signature(similarity_name, "f", "stem", f"tok={tokenizers}")


_SQUAD = "squad"
"""The unit of F1 in SQuAD: words between white space."""


def _tokenizer_for(pair: Pair, code: str) -> str:
    """Return the tokenizer of two answers, by their script or by the code of the pair's language."""
    tokenizer = text.tokenizer_for(pair)
    language = text.LANGUAGES.get(code)
    if tokenizer == "en" or language is None or not language.letters:
        return tokenizer
    # A short answer in Han characters uses the pair's language.
    return language.tokenizer if text.installed(language.tokenizer) else tokenizer


def _unit(pair: Pair, tokenizer: str) -> str:
    """Return the unit that F1 counts: `squad` (words between white space), `words` or `char`.

    Answers with a Han, kana or Hangul character are counted by character.
    """
    if any(map(_CJK, pair)):
        return "char"
    if tokenizer in text.ENGLISH:
        return _SQUAD
    return "words" if tokenizer == "words" else "char"


def _signed_bertscore(signature: Signature) -> tuple[str, ...]:
    """Return BERTScore's signature without the value's letter and the parts on references."""
    value, *_ = signature.parts
    return signature.without(value, "nrefs", "refs", "rescale")


def checked(option: str, names: Any) -> tuple[str, ...]:
    """Return the names in a list, or in a text with commas. Raises ConfigError."""
    known = ", ".join(NAMES)
    expected = f"{option} must be one or more of {known}, each once"
    return choices_option(option, names, NAMES, expected)


def normalised(answer: str) -> str:
    """Normalise as SQuAD: lower case, without punctuation and articles, single spaces.

    Texts in other scripts are normalised to NFKC, and their punctuation is removed, too.
    """
    lowered = unicodedata.normalize("NFKC", answer).lower()
    letters = [character for character in lowered if not _is_mark(character)]
    without_marks = "".join(letters)
    words = _ARTICLES.sub(" ", without_marks).split()
    return " ".join(words)


def _is_mark(character: str) -> bool:
    """Return whether SQuAD removes a character."""
    # SQuAD's list of ASCII punctuation has symbols such as $ and +, too.
    if character.isascii():
        return character in _MARKS
    return unicodedata.category(character).startswith("P")


def f1(first: str, second: str, cut: Callable[[str], list[str]] = str.split) -> float:
    """Return SQuAD's F1 of two normalised answers.

    If an answer has no token, the value is 1 if both have none, else 0.
    """
    first_tokens = cut(first)
    second_tokens = cut(second)
    if not first_tokens or not second_tokens:
        return float(first_tokens == second_tokens)
    shared = Counter(first_tokens) & Counter(second_tokens)
    n_tokens = len(first_tokens) + len(second_tokens)
    return 2 * shared.total() / n_tokens


def chrf1(pairs: Sequence[Pair]) -> list[float]:
    """Return chrF1, 0–1, of normalised answers; if one is empty then, 1 if both are, else 0."""
    normalised_pairs: list[Pair] = []
    for source, output in pairs:
        normalised_pairs.append((normalised(source), normalised(output)))
    with_both = [pair for pair in normalised_pairs if all(pair)]
    distinct = list(dict.fromkeys(with_both))
    sources = [source for source, _ in distinct]
    outputs = [output for _, output in distinct]
    percents = chrf.score(outputs, sources, beta=1)
    percent_by_pair = dict(zip(distinct, percents, strict=True))
    values: list[float] = []
    for pair in normalised_pairs:
        if pair in percent_by_pair:
            values.append(percent_by_pair[pair] / 100)
        else:
            source, output = pair
            values.append(float(source == output))
    return values


UNANSWERABLE = ""
"""The answer if the text does not answer the question."""


class AnswerCandidates(Protocol):
    """Finds the themes of texts. `signature` goes into the column's signature."""

    @property
    def signature(self) -> str: ...

    def themes(self, outputs: Sequence[str]) -> list[list[str] | ModelError]:
        """Return each text's themes in order of appearance, each once."""
        ...


class Questions(Protocol):
    """Writes a question for a theme, which the text that has the theme should answer with it."""

    @property
    def signature(self) -> str: ...

    def questions(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        """Return a question for each (theme, output)."""
        ...


class Answers(Protocol):
    """Answers a question from a text."""

    @property
    def signature(self) -> str: ...

    def answers(self, pairs: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        """Return an answer, or UNANSWERABLE, for each distinct (question, text)."""
        ...


@dataclass(frozen=True, slots=True)
class QagsLine:
    """A theme with its question and the answers from the source and from the output.

    `similarity` has values by name, each 0–1 (BERTScore may be below 0). It is empty if the line
    does not count; `left_out` is the reason.
    """

    theme: str
    question: str
    from_source: str
    from_output: str
    similarity: dict[str, float]
    left_out: str = ""


NEITHER = "answered by neither"
OTHERWISE = "the output answers otherwise"
"""Reasons for leaving a line out although no stage failed."""


class Job(NamedTuple):
    """An output and its source, neither of them blank."""

    output: str
    source: str


class Stages(NamedTuple):
    """The back ends of the three stages."""

    themes: AnswerCandidates
    questions: Questions
    answers: Answers

    @property
    def signed(self) -> list[str]:
        """Return `themes=…`, `questions=…` and `answers=…` for signatures.

        Read it after the stages' calls, because their signatures name what the texts needed.
        """
        signed: list[str] = []
        for stage_name, stage in self._asdict().items():
            # The signature of a model has several parts; a stage is one part.
            one_part = stage.signature.replace(BAR, " ")
            signed.append(f"{stage_name}={one_part}")
        return signed


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for an output: its lines, and in `trouble` the reason if it has no value.

    `counted` are the lines that count; `note` gives the number of the others and the reasons.
    """

    lines: tuple[QagsLine, ...] = ()
    trouble: ModelError | None = None
    note: str | None = None

    @property
    def counted(self) -> tuple[QagsLine, ...]:
        return tuple(line for line in self.lines if not line.left_out)


_Replies = dict[tuple[str, str], str | ModelError]
"""Questions by theme and output, or answers by question and text."""


def ask(
    jobs: Sequence[Job],
    stages: Stages,
    alike: Similarities,
    *,
    most: int,
    consistent: bool,
    tell: Tell,
) -> list[Outcome]:
    """Return the outcome of each job, in order.

    At most `most` themes of an output count, spread evenly over it.
    `consistent` leaves out questions that the output does not answer with the theme. `tell` is
    called after each stage and may raise, to stop. Raises what the stages raise.
    """
    outputs = list(dict.fromkeys(job.output for job in jobs))
    all_themes = dict(zip(outputs, stages.themes.themes(outputs), strict=True))
    themes: dict[str, list[str]] = {}
    theme_requests: list[tuple[str, str]] = []
    for output, listed in all_themes.items():
        themes[output] = [] if isinstance(listed, ModelError) else spread(listed, most)
        theme_requests += [(theme, output) for theme in themes[output]]
    tell(1, 4)
    questions = _ask_distinct(theme_requests, stages.questions.questions)
    tell(2, 4)
    question_requests = _question_requests(jobs, themes, questions)
    answers = _ask_distinct(question_requests, stages.answers.answers)
    tell(3, 4)
    outcomes: list[Outcome] = []
    for job in jobs:
        job_themes = themes[job.output]
        attempts = [
            _attempt(theme, job, questions, answers, consistent) for theme in job_themes
        ]
        outcomes.append(_outcome(all_themes[job.output], attempts))
    _compare_answers(jobs, outcomes, alike)
    tell(4, 4)
    return outcomes


def _question_requests(
    jobs: Sequence[Job],
    themes: Mapping[str, Sequence[str]],
    questions: _Replies,
) -> list[tuple[str, str]]:
    """Return each question with the source and with the output; failed questions are left out."""
    requests: list[tuple[str, str]] = []
    for job in jobs:
        for theme in themes[job.output]:
            question = questions[theme, job.output]
            if question and not isinstance(question, ModelError):
                requests.append((question, job.source))
                requests.append((question, job.output))
    return requests


def _compare_answers(
    jobs: Sequence[Job], outcomes: Sequence[Outcome], alike: Similarities
) -> None:
    """Add the similarities to the lines that count. Each distinct pair is compared once."""
    counted: list[QagsLine] = []
    counted_languages: list[str] = []
    source_languages = languages([job.source for job in jobs])
    for outcome, language in zip(outcomes, source_languages, strict=True):
        counted += outcome.counted
        counted_languages += [language] * len(outcome.counted)
    answer_pairs = [(line.from_source, line.from_output) for line in counted]
    values = alike.compare(answer_pairs, counted_languages)
    for line, similarity in zip(counted, values, strict=True):
        line.similarity.update(similarity)


def _ask_distinct(
    pairs: Sequence[tuple[str, str]],
    stage: Callable[[Sequence[tuple[str, str]]], list[str | ModelError]],
) -> _Replies:
    """Ask a stage about each distinct pair; replies are stripped of white space."""
    distinct = list(dict.fromkeys(pairs))
    if not distinct:
        return {}
    replies: _Replies = {}
    for pair, reply in zip(distinct, stage(distinct), strict=True):
        replies[pair] = reply if isinstance(reply, ModelError) else reply.strip()
    return replies


def _attempt(
    theme: str,
    job: Job,
    questions: _Replies,
    answers: _Replies,
    consistent: bool,
) -> tuple[QagsLine, ModelError | None]:
    """Return a theme's line, and what went wrong with it."""
    empty = ModelError("NoQuestion", "the question came back empty")
    question = questions[theme, job.output] or empty
    if isinstance(question, ModelError):
        return QagsLine(theme, "", "", "", {}, _reason(question)), question
    from_source = answers[question, job.source]
    from_output = answers[question, job.output]
    trouble: ModelError | None = None
    # If both failed, the error is that of the source's answer.
    if isinstance(from_output, ModelError):
        trouble = from_output
        from_output = ""
    if isinstance(from_source, ModelError):
        trouble = from_source
        from_source = ""
    left_out = ""
    if trouble:
        left_out = _reason(trouble)
    elif not from_source and not from_output:
        left_out = NEITHER
    elif consistent and normalised(from_output) != normalised(theme):
        left_out = OTHERWISE
    return QagsLine(theme, question, from_source, from_output, {}, left_out), trouble


def _reason(trouble: ModelError) -> str:
    # `kinds` counts the lines by the part before the colon.
    return f"{failure_kind(trouble.error)}: {trouble.message}"


def kinds(lines: Iterable[QagsLine]) -> str:
    """Count the lines left out by kind of reason: `1 no question, 2 answered by neither`."""
    reasons = [line.left_out for line in lines if line.left_out]
    counts = Counter(reason.partition(":")[0] for reason in reasons)
    listed = [f"{number:,} {kind}" for kind, number in sorted(counts.items())]
    return ", ".join(listed)


def _outcome(
    themes: list[str] | ModelError,
    attempts: Sequence[tuple[QagsLine, ModelError | None]],
) -> Outcome:
    """Return the result for an output from the lines of its themes, with a trouble for each."""
    if isinstance(themes, ModelError):
        return Outcome(trouble=themes)
    if not themes:
        lacking = "has no themes (nouns, names, amounts) to ask about"
        error = ModelError("NoThemes", f"{lacking}: it is not measured")
        return Outcome(trouble=error)
    lines = tuple(line for line, _ in attempts)
    parts: list[str] = []
    if len(lines) < len(themes):
        parts.append(f"{len(lines)} of {len(themes)} themes asked")
    left_out = sum(bool(line.left_out) for line in lines)
    if left_out:
        share = f"{left_out} of {len(lines)} questions left out"
        parts.append(f"{share}: {kinds(lines)}")
    note = "; ".join(parts) or None
    failures = [error for _, error in attempts if error and error.failed]
    trouble = _judge_failure(failures, len(lines))
    if trouble is None and left_out == len(lines):
        message = f"is not measured, because no question counts: {note}"
        trouble = ModelError("NothingAsked", message)
    return Outcome(lines, trouble, note)


def _judge_failure(
    failures: Sequence[ModelError], asked_themes: int
) -> ModelError | None:
    """Return the error of an output for which the judge failed to give a question or an answer."""
    if not failures:
        return None
    first_failure = failures[0]
    count = f"{len(failures)} of {plural(asked_themes, 'theme')}"
    why = (
        f"is not measured: for {count} the judge gave no question or answer: "
        f"{first_failure.message}"
    )
    return ModelError(first_failure.error, why, failed=True)
