"""ROUGE of lists of texts, and of one output."""

from __future__ import annotations

from collections.abc import Sequence

from judge.core.records import Failure
from judge.metrics.common import Unscorable, paired
from judge.metrics.rouge.interning import SCRIPT, Text, Vocabulary, vocabulary
from judge.metrics.rouge.kinds import Kind
from judge.metrics.rouge.multi_reference import together
from judge.metrics.rouge.options import Files, Options, Words, options
from judge.metrics.rouge.variants import RougeScore


def row(
    chosen: Options, words: Vocabulary, output: str, references: Sequence[str], *, empty: bool = False
) -> list[RougeScore | Unscorable]:
    """Each type's score of one output, or why it has none.

    References without a token count in ROUGE-1.5.5 alone, and where there are no others only if `empty` says so.
    """
    try:
        read = [words.reference(reference) for reference in references]
        whole = [reference for reference in read if reference.whole]
        if not whole and not empty:
            raise no_tokens(words.rules.tokenizer, len(references))
        read = read if chosen.script else whole
        candidate = words.read(output)
    except Unscorable as error:
        return [error] * len(chosen.kinds)
    return [_value(chosen, kind, candidate, read) for kind in chosen.kinds]


def _value(chosen: Options, kind: Kind, output: Text, references: Sequence[Text]) -> RougeScore | Unscorable:
    form = chosen.form
    try:
        tallies = [form.tally(kind, reference, output) for reference in references]
    except Unscorable as error:
        return error
    return together(kind, tallies, form, chosen.multi, "best_recall" if chosen.script else "best_f")


def no_tokens(tokenizer: str, references: int) -> Unscorable:
    has = "a reference without any token" if references == 1 else f"{references} references without any token"
    other = {SCRIPT: "leave out the preset", "char": "there is nothing to compare"}.get(tokenizer, "set tokenizer=char")
    return Unscorable("NoTokens", f"has {has} by the tokenizer {tokenizer} (and the stopwords): {other}")


def score(
    outputs: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    types: Sequence[str] | None = None,
    *,
    stem: bool = True,
    multi: str | None = None,
    preset: str | None = None,
    tokenizer: str | None = None,
    stopwords: Words | None = None,
    exceptions: Files | None = None,
    alpha: float | None = None,
    beta: float | None = None,
) -> dict[str, list[RougeScore | Failure]]:
    """ROUGE (Lin 2004) of each output against its reference, or its list of references: values from 0 to 1.

    For each type one `RougeScore(precision, recall, fmeasure)` per output, in order. A text's lines are its sentences.
    The options are those of `judge.metrics.rouge`. What cannot be scored is a `Failure` whose `item` is the output's
    place, from 0: no reference, none with a token, a text too long for the type. An output without a token scores 0.
    Under the preset rouge155 empty texts score 0, as in the script, which dies of an empty reference in ROUGE-W alone.

    Raises ConfigError for options, DataError for lists that do not fit, MissingExtra for a tokenizer.
    """
    chosen = options(
        types,
        stem=stem,
        multi=multi,
        preset=preset,
        tokenizer=tokenizer,
        stopwords=stopwords,
        exceptions=exceptions,
        alpha=alpha,
        beta=beta,
    )
    return _score(chosen, outputs, references)


def _score(
    chosen: Options, outputs: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]]
) -> dict[str, list[RougeScore | Failure]]:
    found: dict[str, list[RougeScore | Failure]] = {kind.name: [] for kind in chosen.kinds}
    for place, (output, targets) in enumerate(paired(outputs, references)):
        for (name, column), value in zip(found.items(), _row_of_list(chosen, output, list(targets)), strict=True):
            if isinstance(value, Unscorable):
                message = f"output {place} {value}"
                column.append(Failure(str(place), "", name, stage="metric", error=value.error, message=message))
            else:
                column.append(value)
    return found


def _row_of_list(chosen: Options, output: str, targets: list[str]) -> list[RougeScore | Unscorable]:
    given = targets
    if not chosen.script:  # which has a place for empty ones
        targets = [target for target in targets if target.strip()]
    if not targets:
        message = "has only blank references" if given else "has no reference"
        return [Unscorable("NoReference", message)] * len(chosen.kinds)
    tokenizer = chosen.tokenizer_for([output, *targets])
    return row(chosen, vocabulary(chosen.rules(tokenizer, running=False)), output, targets, empty=chosen.script)
