"""Sentences about two wordings of a criterion: their agreement with people, their scores, prompts and tokens."""

from __future__ import annotations

from collections.abc import Iterator

from judge.core.format import decimals, format_interval, format_p, plural, signed
from judge.core.records import Estimate
from judge.results.comparison import PLACES, CriterionDiff, Judged
from judge.stats.correlation import OVER, UNITS
from judge.stats.power import items_needed

_MAX_ITEMS = 100_000  # items, beyond which no one would go


def diff_sentences(diff: CriterionDiff) -> Iterator[str]:
    """Say what differs between two criteria, the most important first."""
    if diff.judged is not None:
        yield from _agreement_sentence(diff.judged)
        yield from _score_sentence(diff.judged)
        if any(diff.judged.failed):
            (total_before, total_after), (failed_before, failed_after) = diff.judged.judgments, diff.judged.failed
            yield (
                f"{failed_before:,} of {plural(total_before, 'judgment')} failed before, {failed_after:,} of "
                f"{total_after:,} after."
            )
    if diff.prompts is not None:
        prompts, texts = diff.prompts, plural(diff.prompts.texts, "text")
        if not prompts.differ:
            yield f"The prompts are the same on {'all ' if prompts.texts > 1 else ''}{texts}."
        elif prompts.differ == prompts.texts:
            yield f"The prompts differ on all of {texts} of {plural(prompts.items, 'item')}."
        else:
            items = f"{prompts.items_differ:,} of {plural(prompts.items, 'item')}"
            yield f"The prompts differ on {prompts.differ:,} of {texts}, which are of {items}."
        before, after = prompts.tokens
        share = 100 * (after / before - 1)
        change = f"{signed(share, 1)}%" if round(share, 1) else "no change"
        tokens = f"A prompt has about {before:,.0f} tokens before and {after:,.0f} after ({change})"
        if prompts.cost is not None:
            dollars = [f"${cost:,.2f}" if cost >= 1 or not cost else f"${cost:.2g}" for cost in prompts.cost]
            tokens += f"; 1,000 judgments cost about {dollars[0]} before and {dollars[1]} after ({prompts.priced})"
        elif prompts.priced:
            tokens += f"; what they cost is not known ({prompts.priced})"
        yield f"{tokens}."
    elif diff.diff or diff.changes:
        yield "The two are not the same."
    else:
        yield f"The two have the same text ({diff.criteria[0].digest[:6]})."


def _agreement_sentence(judged: Judged) -> Iterator[str]:
    agreement = judged.leading
    if agreement is None or agreement.difference is None:
        return
    e = agreement.difference
    over = f"{OVER[agreement.level]}, {plural(e.n, UNITS[agreement.level])}"
    size = f"Spearman {signed(e.value, PLACES)} {format_interval(e.low, e.high, PLACES)}".rstrip()
    if agreement.is_significant:
        tested = f" ({format_p(e.p)})" if e.p is not None else ""
        yield f"Agrees {'better' if e.value > 0 else 'worse'} with people{tested}: {size} {over}."
    else:
        tested = _p_and_items_needed(e, e.p, UNITS[agreement.level])
        yield f"Agreement with people is not told apart{tested}: {size} {over}."


def _score_sentence(judged: Judged) -> Iterator[str]:
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
        moved = "rose" if e.value > 0 else "fell"
        yield f"Scores {moved} ({format_p(row.adjusted)}): {size} over {plural(e.n, 'item')}."
    else:
        tested = _p_and_items_needed(e, row.adjusted, "item")
        yield f"Scores are not told apart{tested}: {size} over {plural(e.n, 'item')}."


def _p_and_items_needed(estimate: Estimate, p: float | None, unit: str) -> str:
    """Return ` (p = 0.080, would take n ≈ 400 items)`, without the parts that are unknown.

    No number of items is named if the estimate already has that many.
    """
    parts, items = [] if p is None else [format_p(p)], items_needed(estimate)
    if items is not None and items > estimate.n:
        so_many = (
            f"more than {_MAX_ITEMS:,}" if items > _MAX_ITEMS else f"n ≈ {round(items, -max(0, len(str(items)) - 2)):,}"
        )
        parts.append(f"would take {so_many} {unit}s")
    return f" ({', '.join(parts)})" if parts else ""
