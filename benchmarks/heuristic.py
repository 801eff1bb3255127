"""Measure the offline baseline: weaknesses, sensitivity, agreement with people. Write docs/heuristic.md.

    JUDGE_SHARED=../shared python benchmarks/heuristic.py

One run computes every figure of the page except the rows marked as published.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from common import ROOT, SHARED
from heuristic_texts import EDITS, LEAD, PEOPLE, Edit, kinds
from scipy.stats import spearmanr

from judge.core.records import Failure, Sample
from judge.metrics import heuristic, rouge, text_features

DATA = SHARED / "data"
ORDER = ("coherence", "consistency", "fluency", "relevance")
PUBLISHED = {  # per-document Spearman on SummEval, in that order
    "BERTScore (published)": (0.284, 0.110, 0.193, 0.312),
    "UniEval (published)": (0.575, 0.446, 0.449, 0.426),
    "G-Eval, GPT-3.5 (published)": (0.440, 0.386, 0.424, 0.385),
    "G-Eval, GPT-4 (published)": (0.582, 0.507, 0.455, 0.547),
    "one expert against the others (published)": (0.686, 0.832, 0.676, 0.500),
}
OTHERS = {  # kinds of ratings, each with the index that is compared with them
    "realsumm.jsonl.gz": {"litepyramid_recall": "relevance"},
    "newsroom.jsonl": {
        "coherence": "coherence", "fluency": "fluency", "relevance": "relevance", "informativeness": "relevance",
    },
}  # fmt: skip
RESAMPLES = 1000
Values = Sequence[float | None]


def samples(name: str) -> list[Sample]:
    """A data set: the rows of a file, each as the system's text for its document."""
    path = DATA / name
    lines = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text("utf-8")
    rows = [json.loads(line) for line in lines.splitlines()]
    return [
        Sample(r["doc_id"], r["system"], r["summary"], r["source"], tuple(r["references"]), r["human"]) for r in rows
    ]


# Correlations


def by_document(given: Sequence[Sample], values: Values, criterion: str) -> list[float]:
    """Spearman's rho of each document whose values and ratings both vary."""
    documents: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for sample, value in zip(given, values, strict=True):
        if value is not None and criterion in sample.human:
            documents[sample.item].append((value, sample.human[criterion]))
    sides = [tuple(zip(*pairs, strict=True)) for pairs in documents.values()]
    return [float(spearmanr(*pair).statistic) for pair in sides if all(len(set(side)) > 1 for side in pair)]


def interval(each: Sequence[float]) -> tuple[float, float]:
    """95%, percentile bootstrap over documents."""
    draw = random.Random(0)
    means = sorted(fmean(draw.choices(each, k=len(each))) for _ in range(RESAMPLES))
    return means[RESAMPLES // 40], means[-RESAMPLES // 40 - 1]


def pooled(given: Sequence[Sample], values: Values, criterion: str) -> float:
    """Spearman's rho over all texts that have a value."""
    pairs = [(v, s.human[criterion]) for s, v in zip(given, values, strict=True) if v is not None]
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def rouges(given: Sequence[Sample]) -> dict[str, list[float | None]]:
    """ROUGE-1, 2 and L (F) of each text against its references, the mean over several."""
    types = {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-L": "rougeL"}
    outputs, references = [sample.output for sample in given], [sample.references for sample in given]
    found = rouge.score(outputs, references, types=list(types.values()), multi="mean")
    return {
        name: [None if isinstance(value, Failure) else value.fmeasure for value in found[kind]]
        for name, kind in types.items()
    }


def system_means(given: Sequence[Sample], criterion: str) -> list[float | None]:
    """What a text's system alone tells: the mean rating of its texts for the other documents."""
    systems: defaultdict[str, list[float]] = defaultdict(list)
    for sample in given:
        systems[sample.system].append(sample.human[criterion])
    own = ((systems[sample.system], sample.human[criterion]) for sample in given)
    return [(sum(ratings) - rating) / (len(ratings) - 1) for ratings, rating in own]


# Tables


def abstained(found: Sequence[text_features.Features]) -> float:
    """The share of texts that the baseline says nothing of."""
    return fmean(heuristic.out_of_domain_reason(features) is not None for features in found)


def damage(given: Sequence[Sample], edit: Edit) -> dict[str, Any]:
    """The mean change of each index, the share of texts whose index fell, and the share abstained on afterwards."""
    pairs = [(sample, changed) for sample in given if (changed := edit(sample)) is not None]
    before = text_features.measured([sample for sample, _ in pairs])
    after = text_features.measured([Sample(s.item, s.system, changed, s.source) for s, changed in pairs])
    line: dict[str, Any] = {"n": len(pairs), "abstained": abstained(after)}
    for criterion in ORDER:
        change = [
            heuristic.score_index(b, criterion) - heuristic.score_index(a, criterion)
            for a, b in zip(before, after, strict=True)
        ]
        line[criterion] = fmean(change), fmean(each < -1e-9 for each in change)
    return line


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def figure(value: float) -> str:
    """A correlation: .385, -.012."""
    return f"{value:.3f}".replace("0.", ".", 1)


def share(value: float) -> str:
    """A share in per cent."""
    return f"{value:.0%}"


def kinds_table(given: Sequence[Sample]) -> tuple[str, dict[str, list[text_features.Features]]]:
    """What the index says of texts whose worth is known, and how many of them the baseline abstains on."""
    found = {what: text_features.measured(texts) for what, texts in kinds(given)}
    lines = [
        [what, *(f"{fmean(heuristic.score_index(one, c) for one in each):+.2f}" for c in ORDER), share(abstained(each))]
        for what, each in found.items()
    ]
    return table(["texts", *ORDER, "abstained on"], lines), found


def lead_wins(found: dict[str, list[text_features.Features]], criterion: str) -> float:
    """The share of references by people that the index puts below the same document's first three sentences."""
    leads, people = found[LEAD], found[PEOPLE]
    each = len(people) // len(leads)
    pairs = ((leads[place // each], reference) for place, reference in enumerate(people))
    return fmean(
        heuristic.score_index(lead, criterion) > heuristic.score_index(mine, criterion) for lead, mine in pairs
    )


def edits_table(edits: dict[str, dict[str, Any]]) -> str:
    """What damage does to the index."""
    lines = []
    for what, line in edits.items():
        cells = [f"{line[c][0]:+.2f} ({share(line[c][1])})" for c in ORDER]
        lines.append([what, f"{line['n']:,}", *cells, share(line["abstained"])])
    return table(["damage", "texts", *ORDER, "then abstained on"], lines)


def indices(found: Sequence[text_features.Features], criterion: str, *, guarded: bool) -> list[float | None]:
    """The index of each text; None where it is guarded and abstains."""
    return [
        None if guarded and heuristic.out_of_domain_reason(f) else heuristic.score_index(f, criterion) for f in found
    ]


def summeval_table(given: Sequence[Sample], found: Sequence[text_features.Features]) -> str:
    """The baseline beside ROUGE, length, systems' means and the published rows."""
    lines = []
    for what, guarded in (("**heuristic-1**, abstaining", True), ("heuristic-1, all texts", False)):
        each = {c: by_document(given, indices(found, c, guarded=guarded), c) for c in ORDER}
        lines.append([what, *(figure(fmean(each[c])) for c in ORDER)])
        if guarded:
            ends = [" to ".join(map(figure, interval(each[c]))) for c in ORDER]
            lines.append(["its 95% interval over documents", *ends])
    lines += weak_rows(given, found)
    plain: dict[str, Values] = {"number of words": [f.words for f in found]}
    plain |= {f"{name}, 11 references": values for name, values in rouges(given).items()}
    lines += [[what, *(figure(fmean(by_document(given, v, c))) for c in ORDER)] for what, v in plain.items()]
    lines.append(
        ["the system's mean on the other documents"]
        + [figure(fmean(by_document(given, system_means(given, c), c))) for c in ORDER]
    )
    lines += [[what, *map(figure, row)] for what, row in PUBLISHED.items()]
    return table(["", *ORDER], lines)


def weak_rows(given: Sequence[Sample], found: Sequence[text_features.Features]) -> list[list[str]]:
    """The agreement left without the two, and the four, systems whose texts people rate as least fluent."""
    systems = sorted(
        {s.system for s in given}, key=lambda name: fmean(s.human["fluency"] for s in given if s.system == name)
    )
    lines = []
    for count in (2, 4):
        kept = [(s, f) for s, f in zip(given, found, strict=True) if s.system not in systems[:count]]
        texts, features = [s for s, _ in kept], [f for _, f in kept]
        rhos = [fmean(by_document(texts, indices(features, c, guarded=False), c)) for c in ORDER]
        lines.append([f"all texts, without {', '.join(systems[:count])}", *map(figure, rhos)])
    return lines


def others_table() -> str:
    """Mean rho by document on REALSumm and Newsroom, one column for each kind of rating."""
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for name, columns in OTHERS.items():
        given = samples(name)
        found = text_features.measured(given)
        plain: dict[str, Values] = {"number of words": [f.words for f in found], **rouges(given)}
        for human, criterion in columns.items():
            rows: dict[str, Values] = {
                "**heuristic-1**, abstaining": indices(found, criterion, guarded=True),
                "heuristic-1, all texts": indices(found, criterion, guarded=False),
            }
            for what, values in (rows | plain).items():
                lines[what].append(figure(fmean(by_document(given, values, human))))
    return table(
        ["", "REALSumm", *(f"Newsroom {human}" for human in OTHERS["newsroom.jsonl"])],
        [[what, *cells] for what, cells in lines.items()],
    )


def qags_table() -> str:
    """Pooled over 235 summaries of as many documents; ROUGE compares with the source."""
    given = samples("qags_cnndm.jsonl")
    found = text_features.measured(given)
    by_rouge = rouge.score([s.output for s in given], [s.source or "" for s in given], types=["rouge1", "rouge2"])
    rows: dict[str, Values] = {
        "**heuristic-1**, abstaining": indices(found, "consistency", guarded=True),
        "heuristic-1, all texts": indices(found, "consistency", guarded=False),
        "novel bigrams, reversed": [None if f.novel2 is None else -f.novel2 for f in found],
        "number of words": [f.words for f in found],
    }
    for name, kind in (("ROUGE-1", "rouge1"), ("ROUGE-2", "rouge2")):
        rows[f"{name}, precision against the source"] = [
            None if isinstance(v, Failure) else v.precision for v in by_rouge[kind]
        ]
    lines = [
        [what, str(sum(value is not None for value in values)), figure(pooled(given, values, "consistency"))]
        for what, values in rows.items()
    ]
    return table(["", "texts", "consistency"], lines)


def abstained_table() -> str:
    """How much of each data set is outside the baseline's range, and why."""
    lines = []
    for name in ("summeval.jsonl", "qags_cnndm.jsonl", "realsumm.jsonl.gz", "newsroom.jsonl"):
        given = samples(name)
        reasons = [heuristic.out_of_domain_reason(features) or "" for features in text_features.measured(given)]
        counts = [fmean(part in reason for reason in reasons) for part in ("fewer than", "as many words", "bigrams")]
        whole = fmean(map(bool, reasons))
        lines.append([name.partition(".")[0], f"{len(given):,}", *map(share, counts), share(whole)])
    return table(["data", "texts", "too short", "too long", "too abstractive", "all"], lines)


def page() -> str:
    """docs/heuristic.md."""
    given = samples("summeval.jsonl")
    found = text_features.measured(given)
    kept = [
        sample
        for sample, features in zip(given, found, strict=True)
        if heuristic.out_of_domain_reason(features) is None
    ]
    edits = {what: damage(kept, edit) for what, edit in EDITS.items()}
    worth, by_kind = kinds_table(given)
    return PAGE.format(
        notice=heuristic.NOTICE,
        kinds=worth,
        people=share(abstained(by_kind[PEOPLE])),
        wins=", ".join(f"{c} {share(lead_wins(by_kind, c))}" for c in ORDER),
        name=f"{edits['a name swapped for another of the source']['consistency'][0]:+.2f}",
        negation=f"{edits['a negation put in']['consistency'][0]:+.2f}",
        edits=edits_table(edits),
        abstained=abstained_table(),
        summeval=summeval_table(given, found),
        qags=qags_table(),
        others=others_table(),
    )


PAGE = """# The offline baseline, measured

`benchmarks/heuristic.py` computes every figure on this page except rows marked "published". {notice}

`heuristic-1` combines nine surface features of a summary and its source with equal weights and fixed signs: novel
bigrams, unsupported numbers, repeated words, repeated bigrams, divergence of the word distributions, number of
sentences, copy density, similarity to source sentences, missing end punctuation. A value is a mean of z-scores, each
clipped to ±3; 0 is the average output of SummEval's 16 systems. It abstains if the output has fewer than 5 words,
more than half as many words as the source, or over 35% novel bigrams.

## Weaknesses

- **It rewards copying.** It abstains on {people} of the references that people wrote for SummEval. Without
  abstaining, it would rank the article's first three sentences above such a reference nearly always ({wins}). Three
  random sentences also beat the average system.
- **It does not understand content.** A swapped name or a negation lowers `extractive_support` a little ({name} and
  {negation} on average), because a new bigram appears.
- **It cannot separate a faithful paraphrase from an invention**, so it abstains on both.
- **Coherence measures repetition, length and copying; fluency measures copying and defects.** It misses sentence
  order and grammar.
- **Relevance is little more than length**: on REALSumm and Newsroom the number of words correlates better.
- **It finds bad systems but does not rank good ones** (rows "without" under SummEval).
- **Its scales come from English news** of a few hundred words. It runs on Japanese, Korean and Chinese, but was never
  compared with ratings there.
- **It can be gamed** by copying two sentences.

Mean index of texts of known quality, without abstaining. The column consistency is `extractive_support`, fluency is
`surface_fluency`:

{kinds}

## Sensitivity

SummEval's outputs inside its range, each damaged in one way: mean change of the index, and in brackets the share of
texts whose index fell.

{edits}

## Abstentions

{abstained}

## Agreement with people

Nothing was fitted to ratings. But features and signs were chosen with knowledge of SummEval's correlations, means and
deviations come from its outputs, and two definitions were settled after looking at QAGS: these figures are optimistic.

Figures are Spearman's rho: the mean over documents, without those of constant ratings or values, and over all texts
for QAGS. "Abstaining" is what a run gives. ROUGE is F, stemmed, against the references.

### SummEval: 100 documents, 16 systems

{summeval}

The system's mean uses no text at all. The systems left out are those whose texts people rate as least fluent.

### QAGS, CNN/DailyMail: 235 summaries

{qags}

### REALSumm and Newsroom

REALSumm has 100 documents and 24 systems, rated by LitePyramid recall. Newsroom has 60 documents and 7 systems;
informativeness is compared with the index for relevance.

{others}
"""


def main() -> None:
    """Make every figure and write the page."""
    target = ROOT / "docs" / "heuristic.md"
    target.write_text(page(), encoding="utf-8")
    print(target.read_text("utf-8"))


if __name__ == "__main__":
    main()
