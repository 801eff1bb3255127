"""From everything that was judged for an audit to the judge's card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from judge.audit.bias import COPIED, COPYING, LONGER, extractiveness, position, self_preference, verbosity
from judge.audit.card import DETECTED, FEWEST, ORIGINAL, Card, Cell, Evidence, Finding
from judge.audit.correction import Draft, settle
from judge.audit.injection_damage import attacked
from judge.audit.sensitivity import cells, enough, moves, step
from judge.audit.stability import again, scale_use, wording
from judge.audit.summary import verdicts
from judge.core.records import Failure, Score
from judge.core.version import __version__
from judge.report.format import count, number, percent
from judge.report.views.audit_words import listed, places

_MANY = 0.05  # of the judgments: from here on their failures are noted


def assess(
    evidence: Evidence, changes: Mapping[str, str], attacks: Sequence[str], neutral: Sequence[str], *, seed: int = 0
) -> Card:
    """The card of a judge.

    `changes` are the damages that were asked for with the criterion whose own they are, `attacks` and `neutral` the
    names of the others: empty where that probe was not asked for. What is asked for and has no text, and every bias
    about which there is nothing to say, is in `left_out` with the reason. p-values are Holm's over the cells of
    damages, over those of attacks, and over all findings.
    """
    damaged = cells(evidence, changes, seed=seed)
    beset = attacked(evidence, attacks, seed=seed)
    findings, without = _findings(evidence, neutral, seed)
    scoreless = _scoreless(evidence)
    return Card(
        title=f"Judge card: {evidence.model}",
        cells=damaged,
        findings=findings,
        attacks=beset,
        left_out={
            **without,
            **_inapplicable(evidence, (*changes, *neutral, *attacks)),
            **_ownless(damaged),
            **evidence.lacking,
            **scoreless,
            **_empty(evidence, (*changes, *neutral, *attacks), scoreless),
        },
        verdicts=verdicts(damaged, beset, findings, evidence.columns, scoreless),
        notes=tuple(_notes(evidence, damaged, beset, findings)),
        failures=_failures(evidence),
        info=_info(evidence, seed),
    )


def _findings(evidence: Evidence, neutral: Sequence[str], seed: int) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """The findings of every bias that was asked for, and why others have none."""
    asked = bool(neutral or evidence.natural or evidence.wordings or evidence.repeats or evidence.pairs)
    if not asked:
        return (), {}
    probes: dict[str, tuple[Callable[[], Iterator[Draft]], str]] = {
        "position": (lambda: position(evidence, seed), "no pair of different texts was answered in both orders"),
        "verbosity": (
            lambda: verbosity(evidence, neutral, seed),
            "no changed text and no two texts of an item to compare",
        ),
        "self-preference": (lambda: self_preference(evidence, seed), _no_family(evidence)),
        "extractiveness": (
            lambda: extractiveness(evidence, neutral, seed),
            "no copied lead was scored, and no item has two texts of which some copy more",
        ),
        "wording": (lambda: wording(evidence, seed), "no criterion has scores in two wordings"),
        "scale use": (lambda: scale_use(evidence, seed), "no original has a score on a scale with ends or labels"),
        "repeats": (lambda: again(evidence, seed), "no text has two draws with a score"),
    }
    drafts = {name: list(make()) for name, (make, _) in probes.items()}
    without = {name: why for name, (_, why) in probes.items() if not drafts[name]}
    if evidence.natural and len({s.item for s in evidence.natural.samples}) < len(evidence.natural.samples):
        within = [LONGER] * ("verbosity" not in without) + [COPYING] * ("extractiveness" not in without)
        known = {one.what for found in drafts.values() for one in found}
        few = f"fewer than {FEWEST} items have two scored texts"
        without |= {name: f"{few} that differ in it" for name in within if name not in known}
    if COPIED in neutral and any(name.partition("_")[0] == "consistency" for name in evidence.columns):
        without["extractiveness by consistency"] = "a text that copies its source is right to be called consistent"
    return settle(chain.from_iterable(drafts.values())), without


def _no_family(evidence: Evidence) -> str:
    samples = evidence.natural.samples if evidence.natural else ()
    if not any(sample.extra.get("generator") for sample in samples):
        return "the data have no column `generator` that says which model wrote a text"
    return f"no item has scored texts both of {evidence.model}'s family and of another (column `generator`)"


def _inapplicable(evidence: Evidence, names: Sequence[str]) -> dict[str, str]:
    known, texts = set(evidence.changed.systems), count(len(evidence.originals), "text")
    return {name: f"it fits none of the {texts}" for name in names if name not in known}


def _ownless(damaged: Sequence[Cell]) -> dict[str, str]:
    """Criteria that no change damages."""
    own = {cell.criterion for cell in damaged if cell.own}
    every = dict.fromkeys(cell.criterion for cell in damaged)
    why = "no change damages what it is about, so only what it makes of others' damage is known"
    return {f"{name}: its own damage": why for name in every if name not in own}


def _scoreless(evidence: Evidence) -> dict[str, str]:
    """Criteria by which no text has a score."""
    scored = {score.column for score in evidence.changed.scores}
    failed = Counter((row.column, row.error) for row in evidence.changed.failures)
    return {
        name: f"all its judgments failed ({listed([f'{n:,} {e}' for (c, e), n in failed.items() if c == column.name])})"
        for name, column in evidence.columns.items()
        if column.name not in scored and any(c == column.name for c, _ in failed)
    }


def _empty(evidence: Evidence, names: Sequence[str], scoreless: Collection[str]) -> dict[str, str]:
    """Changes whose texts have no score beside that of the text as it is, by some of the criteria or by all."""
    table, found = evidence.changed, dict[str, str]()
    kept = [name for name in names if name in table.systems] if ORIGINAL in table.systems else []
    columns = {name: column for name, column in evidence.columns.items() if name not in scoreless}
    known = {name: ~np.isnan(moves(table, column, kept)) for name, column in columns.items()} if kept else {}
    for at, name in enumerate(kept):
        without = [criterion for criterion, rows in known.items() if not rows[at].any()]
        if without:
            by = "" if len(without) == len(columns) else f" by {listed(without)}"
            texts = sum(sample.system == name for sample in table.samples)
            found[f"{name}{by}"] = f"none of its {count(texts, 'text')} has a score beside that of the text as it is"
    return found


def _judgments(evidence: Evidence) -> Iterator[Score | Failure]:
    """Every judgment once: the originals' stand in more than one table."""
    yield from evidence.changed.rows()
    known = {(sample.item, sample.system) for sample in evidence.originals}
    columns = {column.name for column in evidence.changed.columns}
    for table in filter(None, (evidence.natural, evidence.wordings)):
        yield from (row for row in table.rows() if (row.item, row.system) not in known or row.column not in columns)
    for table in filter(None, (*evidence.repeats.values(), evidence.pairs)):
        yield from table.rows()


def _failures(evidence: Evidence) -> dict[str, int]:
    found = Counter(row.error for row in _judgments(evidence) if isinstance(row, Failure))
    return dict(found.most_common())


def _notes(
    evidence: Evidence, damaged: Sequence[Cell], beset: Sequence[Cell], findings: Sequence[Finding]
) -> Iterator[str]:
    found, texts = (*damaged, *beset), len(evidence.originals)
    parts = (
        ("Sensitivity", [cell.move for cell in damaged]),
        ("Injection", [cell.move for cell in beset]),
        ("Bias", [one.estimate for one in findings]),
    )
    needed = {name: enough(sum(one is not None and one.p is not None for one in each)) for name, each in parts}
    if few := [f"{name} at least {least}" for name, least in needed.items() if texts < least]:
        yield (
            f"{count(texts, 'text')} are too few: after the correction for many tests nothing can be significant below "
            f"a number of texts, for {listed(few)}. What is said of so few rests on shares alone."
        )
    failures, total = _failures(evidence), sum(1 for _ in _judgments(evidence))
    failed = sum(failures.values())
    if failed >= _MANY * total > 0:
        kinds = listed([f"{n:,} {kind}" for kind, n in list(failures.items())[:3]])
        yield (
            f"{failed:,} of {count(total, 'judgment')} ({percent(failed / total)}) have no score: {kinds}. "
            "The numbers are those of the others, which need not be like them."
        )
    endless = [name for name, column in evidence.columns.items() if column.low is None or column.high is None]
    if endless and found and ORIGINAL in evidence.changed.systems:
        place = evidence.changed.systems.index(ORIGINAL)
        for name in endless:
            column = evidence.columns[name]
            least = step(column, evidence.changed.matrix(column.name)[place])
            digits = places(None, [least])
            half = f"{number(least, digits)}, half the originals' standard deviation"
            yield f"The scale of {name} has no ends: a move of {half}, counts."


def _info(evidence: Evidence, seed: int) -> dict[str, Any]:
    """About the judge, the texts and the settings; plain JSON."""
    return {
        "model": evidence.model,
        "language": evidence.language,
        "criteria": {
            name: {
                "column": column.name, "signature": column.signature, "low": column.low, "high": column.high,
                "labels": list(column.labels), "better": column.better,
            }
            for name, column in evidence.columns.items()
        },
        "texts": len(evidence.originals),
        "texts_by_change": dict(Counter(sample.system for sample in evidence.changed.samples)),
        "natural_texts": len(evidence.natural.samples) if evidence.natural else 0,
        "judgments": sum(1 for _ in _judgments(evidence)),
        "failed": sum(_failures(evidence).values()),
        "detected": DETECTED,
        "seed": seed,
        "version": __version__,
    }  # fmt: skip
