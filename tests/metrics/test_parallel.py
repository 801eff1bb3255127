"""Score samples in parts. Oracle: the metric on all samples at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from unicodedata import normalize

import pytest

import judge
from judge.core.errors import ConfigError
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.metrics import BaseMetric, MetricResult, Note, parallel
from judge.metrics.bleu import Bleu
from judge.metrics.chrf import Chrf

SAMPLES = [
    Sample(str(n), "a", f"boat {n} came", references=(f"the boat {n % 7} came late",))
    for n in range(1200)
]


@dataclass(frozen=True)
class Length(BaseMetric):
    """Count the characters of a text. Each part of the data has another signature and note."""

    rowwise: bool = True  # type: ignore[misc]  # an option here
    sizes: list[int] = field(default_factory=list)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        self.sizes.append(len(samples))
        rows = [
            Score(s.item, s.system, "length", float(len(s.output)), Provenance("metric"))
            for s in samples
        ]
        column = Column(
            "length",
            "metric",
            Signature("length", f"tok=t{len(samples)}", f"nrefs={len(self.sizes)}", "judge 1"),
        )
        note = Note("length", len(self.sizes) - 1, len(samples), "are odd")
        return MetricResult((column,), tuple(rows), ("the same", note))


@pytest.mark.parametrize("workers", [1, 2])
def test_scores_in_parts_equal_scores_of_all(workers: int) -> None:
    assert parallel.score_in_parallel(Chrf(), SAMPLES, workers=workers) == parallel.merge_results(
        [Chrf().score(SAMPLES)]
    )


def test_a_metric_that_is_not_rowwise_gets_all_samples_at_once() -> None:
    metric = Length(rowwise=False)
    parallel.score_in_parallel(metric, SAMPLES, workers=2)
    assert metric.sizes == [1200]


def test_samples_are_scored_in_parts_with_progress() -> None:
    metric, progress = Length(), []
    result = parallel.score_in_parallel(
        metric, SAMPLES, tell=lambda done, total: progress.append((done, total))
    )
    assert metric.sizes == [500, 500, 200]
    assert progress == [(500, 1200), (1000, 1200), (1200, 1200)]
    assert [row.item for row in result.rows] == [s.item for s in SAMPLES]


def test_empty_samples_are_one_part() -> None:
    metric = Length()
    assert parallel.score_in_parallel(metric, []).rows == ()
    assert metric.sizes == [0]


def test_signatures_and_notes_of_parts_are_merged() -> None:
    result = parallel.score_in_parallel(Length(), SAMPLES)
    assert str(result.columns[0].signature) == "length|tok=t200+t500|nrefs=var|judge 1"
    assert [str(note) for note in result.notes] == [
        "the same",
        "length: 3 of 1,200 texts are odd",  # the first part has none, but its texts count
    ]
    assert parallel.score_in_parallel(Length(), SAMPLES[:500]).notes == ("the same",)


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        (
            [Note("bleu", 2, 9, "are odd"), "x", Note("chrf", 2, 9, "are odd")],
            ["bleu, chrf: 2 of 9 texts are odd", "x"],
        ),
        (
            [Note("bleu", 2, 9, "are odd"), Note("chrf", 3, 9, "are odd")],
            ["bleu: 2 of 9 texts are odd", "chrf: 3 of 9 texts are odd"],
        ),
        (
            [Note("bleu", 2, 9, "are odd"), Note("chrf", 2, 9, "are even"), "x", "x"],
            ["bleu: 2 of 9 texts are odd", "chrf: 2 of 9 texts are even", "x"],
        ),
    ],
)
def test_equal_notes_of_several_metrics_are_merged(
    notes: list[str | Note], expected: list[str]
) -> None:
    assert parallel.share_notes(notes) == expected


def test_a_run_shows_a_note_of_two_metrics_once() -> None:
    decomposed = normalize("NFD", "Café déjà vu")
    rows = [{"item": "1", "output": decomposed, "references": ["Café déjà vu à Paris"]}]
    notes = judge.evaluate(rows, [], metrics=["bleu", "chrf"], cache=False).info.notes
    assert [note.partition(" have words")[0] for note in notes] == ["bleu, chrf: 1 of 1 texts"]


def test_a_signature_as_text_is_an_error_of_the_metric() -> None:
    column = Column("mine", "metric", "mine|v1")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"column mine .* a judge\.Signature.*Signature\('mine'"):
        parallel.merge_results([MetricResult((column,), ())])


def test_an_exception_of_the_progress_callback_stops_the_work() -> None:
    metric = Length()

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parallel.score_in_parallel(metric, SAMPLES, tell=interrupt)
    assert metric.sizes == [500]


@pytest.mark.parametrize(
    ("signatures", "expected"),
    [
        (["a|tok=en|v 1", "a|tok=en|v 1"], "a|tok=en|v 1"),
        (["a|tok=ja|v 1", "a|tok=ko+ja|v 1", "a|tok=en|v 1"], "a|tok=en+ja+ko|v 1"),
        (["a|tok=-|nrefs=-|v 1", "a|tok=ja|nrefs=2|v 1"], "a|tok=ja|nrefs=2|v 1"),
        (["a|stem|v 1", "a|nostem|v 1"], "a|stem & nostem|v 1"),
        (["a|x|y|v 1", "a|x|v 1"], "a|x|y|v 1 & a|x|v 1"),
        (["a|nrefs=1|v 1", "a|nrefs=var|v 1"], "a|nrefs=var|v 1"),
    ],
)
def test_merged_signatures_by_hand(signatures: list[str], expected: str) -> None:
    column = Column("a", "metric", Signature(), low=0.0, high=1.0)
    results = [
        MetricResult((replace(column, signature=Signature.parse(signature)),), ())
        for signature in signatures
    ]
    assert parallel.merge_results(results).columns == (
        replace(column, signature=Signature.parse(expected)),
    )


def test_a_killed_process_is_an_error() -> None:
    pieces = [SAMPLES[at : at + 100] for at in range(0, 1200, 100)]

    def killed() -> None:
        with parallel.worker_pool([Chrf()], 2) as scored:
            results = scored(pieces)
            next(results)
            for child in multiprocessing.active_children():
                child.kill()
            list(results)

    with pytest.raises(ConfigError, match=r"--workers: .*ended unexpectedly.*__main__"):
        killed()


@pytest.mark.slow
def test_several_metrics_share_the_worker_processes() -> None:
    with parallel.worker_pool([Chrf(), Bleu()], 2) as scored:
        (first, second), *_ = scored([SAMPLES[:100], SAMPLES[100:200]])
        assert len(multiprocessing.active_children()) == 2
    assert (first, second) == (Chrf().score(SAMPLES[:100]), Bleu().score(SAMPLES[:100]))
