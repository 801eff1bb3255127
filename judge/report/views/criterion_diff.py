"""Two wordings of a criterion side by side, as every format shows them: their texts, their prompts, their scores."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.messages import decimals, format_interval, format_p, plural, signed
from judge.core.records import Estimate
from judge.results.comparison import PLACES, CriterionDiff, Judged, Prompts
from judge.stats.correlation import OVER, UNITS
from judge.stats.power import items_needed

_FAR = 100_000  # items, beyond which no one would go


# What is said


def told(found: CriterionDiff) -> Iterator[str]:
    """The answer in sentences, the most important first."""
    if found.judged is not None:
        yield from _of_people(found.judged)
        yield from _of_scores(found.judged)
        yield from _of_failures(found.judged)
    if found.prompts is not None:
        yield _of_prompts(found.prompts)
        yield _of_tokens(found.prompts)
    elif found.diff or found.changes:
        yield "The two are not the same."
    else:
        yield f"The two have the same text ({found.criteria[0].digest[:6]})."


def _of_people(judged: Judged) -> Iterator[str]:
    found = judged.leading
    if found is None or found.difference is None:
        return
    e = found.difference
    over = f"{OVER[found.level]}, {plural(e.n, UNITS[found.level])}"
    size = f"Spearman {signed(e.value, PLACES)} {format_interval(e.low, e.high, PLACES)}".rstrip()
    if found.told:
        tested = f" ({format_p(e.p)})" if e.p is not None else ""
        yield f"Agrees {'better' if e.value > 0 else 'worse'} with people{tested}: {size} {over}."
    else:
        yield f"Agreement with people is not told apart{_open(e, e.p, UNITS[found.level])}: {size} {over}."


def _of_scores(judged: Judged) -> Iterator[str]:
    rows = [] if judged.comparison is None else judged.comparison.runs.moved
    if not rows:
        yield "No text has a score by both."
        return
    row = rows[0]  # of all systems, or of the only one; of a panel the mean's
    e, places = row.estimate, decimals([row.before, row.after])
    size = f"{signed(e.value, places)} {format_interval(e.low, e.high, places)}".rstrip()
    if not row.up and not row.down:
        yield f"No score differs on {plural(row.same, 'text')}."
    elif row.adjusted is None:
        yield f"Scores: {size}, too few items for a test."
    elif row.moved:
        yield f"Scores {'rose' if e.value > 0 else 'fell'} ({format_p(row.adjusted)}): {size} over {plural(e.n, 'item')}."
    else:
        yield f"Scores are not told apart{_open(e, row.adjusted, 'item')}: {size} over {plural(e.n, 'item')}."


def _open(found: Estimate, p: float | None, unit: str) -> str:
    """` (p = 0.080, would take n ≈ 400 items)`; of these what is known, and no n at which the test has said no."""
    said, items = [] if p is None else [format_p(p)], items_needed(found)
    if items is not None and items > found.n:
        so_many = f"more than {_FAR:,}" if items > _FAR else f"n ≈ {round(items, -max(0, len(str(items)) - 2)):,}"
        said.append(f"would take {so_many} {unit}s")
    return f" ({', '.join(said)})" if said else ""


def _of_failures(judged: Judged) -> Iterator[str]:
    if any(judged.failed):
        (had, has), (lost, loses) = judged.judgments, judged.failed
        yield f"{lost:,} of {plural(had, 'judgment')} failed before, {loses:,} of {has:,} after."


def _of_prompts(found: Prompts) -> str:
    if not found.differ:
        return f"The prompts are the same on {'all ' if found.texts > 1 else ''}{plural(found.texts, 'text')}."
    if found.differ == found.texts:
        return f"The prompts differ on all of {plural(found.texts, 'text')} of {plural(found.items, 'item')}."
    return (
        f"The prompts differ on {found.differ:,} of {plural(found.texts, 'text')}, which are of {found.items_differ:,} "
        f"of {plural(found.items, 'item')}."
    )


def _of_tokens(found: Prompts) -> str:
    read, reads = found.tokens
    share = 100 * (reads / read - 1)
    change = f"{signed(share, 1)}%" if round(share, 1) else "no change"
    said = f"A prompt has about {read:,.0f} tokens before and {reads:,.0f} after ({change})"
    if found.cost is not None:
        had, has = map(_dollars, found.cost)
        said += f"; 1,000 judgments cost about {had} before and {has} after ({found.priced})"
    elif found.priced:
        said += f"; what they cost is not known ({found.priced})"
    return f"{said}."


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.2g}"
