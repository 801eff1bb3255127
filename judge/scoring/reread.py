"""Read the stored replies of a run again, with its own settings or others. Sends nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, get_args

from judge.core.errors import ConfigError, ParseError
from judge.core.records import (
    ChecklistQuestion,
    Choice,
    Column,
    Criterion,
    Failure,
    Provenance,
    Response,
    Sample,
    Scale,
    Score,
    is_unwritten,
)
from judge.criteria.template import with_halves
from judge.scoring import checklist, parse, quotes, strategies
from judge.scoring.strategies import SamplingOptions, Strategy, UnusableReply

_OLD = (
    "the replies of this run cannot be read again: an older judge stored it, without whole scales and settings; "
    "run it again (the cache answers what is already paid for)"
)
_READ = {
    "strict": "the reply has a score in the requested form",
    "prose": "a sentence of the reply has the score",
    "repaired": "the answer to the repair question has the score",
}
_LOW_MASS = re.compile("only ([0-9.e-]+) of the probability is on the scale")
_NOT_WEIGHED = "no token probabilities are stored with this reply"


class _NotAsked(ParseError):
    """A run with these settings asks for more replies, which are not stored."""


def settings_of(info: Mapping[str, Any]) -> SamplingOptions:
    """Return the settings of a run from its `info`. Raises ConfigError if they are not there."""
    plan = info.get("plan") or {}
    try:
        settings = {field.name: plan.get(field.name, field.default) for field in fields(SamplingOptions)}
        return SamplingOptions(**settings | {"strict": plan["strict"], "repair": plan["repair"] == "on"})
    except KeyError:
        raise ConfigError(_OLD) from None


def of_judge(settings: SamplingOptions, column: Column, info: Mapping[str, Any]) -> SamplingOptions:
    """Return the settings of the judge that gave a column, which may have a temperature of its own."""
    own = ((info.get("judges") or {}).get(column.judge) or {}).get("settings") or {}
    return replace(settings, temperature=own.get("temperature", settings.temperature))


def criterion_of(column: Column, info: Mapping[str, Any]) -> Criterion:
    """Return a column's criterion from a run's `info`: title, reply kind and scale, which reading needs, no template.

    Raises ConfigError if they are not there.
    """
    name = column.criterion or column.name
    stored = (info.get("criteria") or {}).get(name) or {}
    try:
        labels, numbers = stored["scale"]["labels"], stored["scale"]["values"]
        values = {str(label): float(value) for label, value in zip(labels, numbers, strict=True)}
        scale = Scale(tuple(values), tuple(values.values()), bool(stored["scale"].get("halves")))
        merged, questions = stored["form"] == "merged", stored.get("questions", ())
        questions_column = questions if isinstance(questions, str) else ""
        asked = () if questions_column else tuple(ChecklistQuestion(**question) for question in questions)
        return Criterion(
            name, "", scale, stored["reply"], title=stored["title"], merged=merged, questions=asked,
            questions_column=questions_column, cite=stored.get("cite", False),
        )  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ConfigError(_OLD) from None


def scale_of_column(criterion: Criterion) -> dict[str, Any]:
    """Return the fields of a column that a criterion's scale decides: a checklist's shares (0–1) have no labels."""
    scale = criterion.scale
    ends = {"low": scale.low, "high": scale.high}
    return ends if criterion.is_checklist else {**ends, "labels": scale.labels, "values": scale.values}


@dataclass(frozen=True, slots=True)
class Reread:
    """The rows of a run that was read again, and the `criteria` with their scales by column.

    `changes` has every value that changed: item, system, rival, column, `before` and `after` (None: a failure) and why.
    `unweighed` counts values that would change, but cannot, as a run stores no tokens: scores by token probabilities
    on scales that changed, and scores by other methods whose reply has enough probability on the scale now.
    """

    rows: list[Score | Failure]
    criteria: Mapping[str, Criterion]
    changes: list[dict[str, Any]]
    unweighed: int


def reread_rows(
    rows: Iterable[Score | Failure],
    criteria: Mapping[str, Criterion],
    settings: Mapping[str, SamplingOptions],
    allow_half: bool | None,
    samples: Iterable[Sample],
) -> Reread:
    """Read the rows of the columns in `criteria` again; `allow_half` None leaves their scales as they are.

    `settings` are by column.
    """
    scaled = {name: replace(c, scale=_with_halves(c.scale, allow_half)) for name, c in criteria.items()}
    texts = {sample.key: sample.texts for sample in samples}
    read_rows: list[Score | Failure] = []
    changes: list[dict[str, Any]] = []
    unweighed = 0
    for row in rows:
        criterion = scaled.get(row.column)
        weighed = row.provenance if criterion != criteria.get(row.column) and isinstance(row, Score) else None
        if weighed and weighed.distribution and weighed.method == "logprobs" and weighed.reading != "repaired":
            criterion, unweighed = None, unweighed + 1
        if criterion is None or is_unwritten(row):
            read_rows.append(row)
            continue
        mass = _LOW_MASS.search(row.message if isinstance(row, Failure) else row.provenance.note or "")
        unweighed += mass is not None and float(mass[1]) > settings[row.column].min_mass
        judged = "\n".join(texts[row.item, name][0] for name in (row.system, row.rival) if name)
        new = reread(row, criterion, settings[row.column], judged, texts[row.item, row.system])
        read_rows.append(new)
        before, after = (r.value if isinstance(r, Score) else None for r in (row, new))
        if before != after:
            names = {"item": row.item, "system": row.system, "rival": row.rival, "column": row.column}
            changes.append({**names, "before": before, "after": after, "why": _why_changed(row, new)})
    return Reread(read_rows, scaled, changes, unweighed)


def _with_halves(scale: Scale, allow_half: bool | None) -> Scale:
    """Return a scale of whole numbers with or without half points; any other scale as it is."""
    if not allow_half:
        return scale if allow_half is None else scale.asked
    try:
        return with_halves(scale)
    except ValueError:
        return scale


def reread(
    row: Score | Failure, criterion: Criterion, settings: SamplingOptions, judged: str | None, texts: Sequence[str] = ()
) -> Score | Failure:
    """Return the row that the stored replies give with these settings: a score, or a failure if they have none.

    `judged` are the judged texts, joined by a newline; `texts` are those that a reply may quote. A score by token
    probabilities becomes the expected value of the stored distribution again; its bounds stay, because they depend on
    tokens, which no run stores. Returns the row itself if its numbers stay the same, if a failure stays one, and if it
    has no judge's replies or probabilities: metrics, panels, identical texts, unanswered requests, refused decisions.
    """
    source = row.provenance if isinstance(row, Score) else row
    if source.answers:
        questions = [ChecklistQuestion(answer.question, answer.weight) for answer in source.answers]
        parts = [reread(part, criterion, settings, judged) for part in checklist.split(row)]
        combined = checklist.combine(row.column, questions, parts)
        return row if _equal(asdict(row), asdict(combined)) else combined
    known = source.raw or (isinstance(source, Provenance) and source.distribution)
    if source.method not in get_args(Strategy) or not known:
        return row
    if isinstance(row, Failure) and (row.method == "decisions" or row.stage != "parse"):
        return row
    end = parse.NEARLY_JSON if criterion.merged and source.reading == "prose" else "stop"
    if isinstance(row, Failure):  # a reply that did not end by itself has failed with the words for it
        end = next((reason for reason, message in parse.UNFINISHED.items() if row.message.startswith(message)), end)
    reply = Choice(source.raw or "", end)
    try:
        value, provenance = _value(source, reply, criterion, settings, None if settings.strict else judged)
        if provenance.quote:
            provenance = replace(provenance, quote=quotes.find_quote(provenance.quote, texts))
    except ParseError as error:
        if isinstance(row, Failure):
            return row
        reading = source.reading if source.reading == "repaired" else None
        stage = "request" if isinstance(error, _NotAsked) else "parse"
        failure = Failure(row.item, row.system, row.column, stage, "ParseError", str(error), source.raw or "")
        return replace(failure, rival=row.rival, method=source.method, reading=reading)
    score = Score(row.item, row.system, row.column, value, provenance, row.rival)
    return row if isinstance(row, Score) and _equal(asdict(row), asdict(score)) else score


def _why_changed(stored: Score | Failure, again: Score | Failure) -> str:
    """Say in a few words why a row has another value now."""
    if isinstance(again, Failure):
        return again.message
    before, after = stored.provenance if isinstance(stored, Score) else None, again.provenance
    if before is None or before.reading != after.reading:
        return _READ[after.reading or "strict"]
    if before.n != after.n:
        return f"{after.n:,} draws have a score, {before.n:,} before"
    return after.note if after.note and after.note != before.note else "the stored value does not follow from the reply"


def _value(
    source: Provenance | Failure, reply: Choice, criterion: Criterion, settings: SamplingOptions, judged: str | None
) -> tuple[float, Provenance]:
    """Return the value of a row's reply, or replies, and its provenance. Raises ParseError if they have no score."""
    raw = reply.text
    if source.reading == "repaired":
        first, second = parse.split_replies(raw)
        try:
            return _stated(first, criterion, settings, judged)
        except ParseError:
            if settings.strict or not settings.repair:
                raise
        alone = replace(criterion, reply="score", merged=False, cite=False)
        ladder = replace(settings, weighting="auto", temperature=0.0)  # as `strategies.repair` has it
        source = replace(source, reading=None, method=source.method if source.method == "logprobs" else "single")
        value, provenance = _value(source, second, alone, ladder, judged)
        return value, replace(provenance, raw=raw, reason=strategies.text_alone(first), reading="repaired")
    if source.method == "samples":
        draws = [Response((draw,)) for draw in parse.split_replies(raw)]
        return strategies.score_reply("samples", draws, criterion, settings, judged=judged)
    if isinstance(source, Failure) or not source.distribution:
        note = source.note if isinstance(source, Provenance) else _NOT_WEIGHED if source.method == "logprobs" else None
        return _stated(reply, criterion, settings, judged, note)
    written = parse.Found("", 0, 0)
    try:
        written = strategies.read(reply, criterion, judged) if raw else written
    except ParseError as error:  # the written text may be no label, and the likely tokens at its place be some
        if error.place is None or source.reading == "prose":
            raise
    if written.reading == "prose" and source.reading != "prose":  # the probabilities are those of another place
        return _stated(reply, criterion, settings, judged, _NOT_WEIGHED)
    try:
        answer = Response((Choice(raw, shares=tuple(source.distribution.items())),))
        value, provenance = strategies.score_reply("decisions", [answer], criterion, settings)
    except UnusableReply as error:
        if not raw or settings.weighting != "auto":
            raise
        if settings.temperature == 0:
            return _stated(reply, criterion, settings, judged, str(error))
        raise _NotAsked(f"{error}; needs new samples") from error
    provenance = replace(provenance, method=source.method, note=source.note)
    if not raw:
        return value, provenance
    provenance = replace(provenance, low=source.low, high=source.high, raw=raw)
    return value, replace(provenance, reason=written.reason, reading=written.reading, quote=written.quote)


def _stated(
    reply: Choice, criterion: Criterion, settings: SamplingOptions, judged: str | None, note: str | None = None
) -> tuple[float, Provenance]:
    """Return the score that a reply states. Raises ParseError if it has none, or if only probabilities may count."""
    notes = [note] if note else []
    answers = [Response((reply,))]
    value, provenance = strategies.score_reply("single", answers, criterion, settings, notes, judged=judged)
    if settings.weighting not in ("auto", "single"):
        raise ParseError(_NOT_WEIGHED, reply.text)
    return value, provenance


def _equal(stored: Any, new: Any) -> bool:
    """Return whether two fields of a score are equal, but for rounding and notes."""
    if isinstance(stored, Mapping) and isinstance(new, Mapping):
        return stored.keys() == new.keys() and all(_equal(stored[key], new[key]) for key in stored.keys() - {"note"})
    if isinstance(stored, tuple) and isinstance(new, tuple):
        return len(stored) == len(new) and all(map(_equal, stored, new))
    if isinstance(stored, float) and isinstance(new, float):
        return math.isclose(stored, new, rel_tol=1e-9, abs_tol=1e-12)
    return bool(stored == new)
