"""The sentences that `judge compare` begins with: what changed, and whether the judge did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.commands.compare.means import Mean, all_means, is_split
from judge.core.format import plural, rough_count
from judge.core.records import Estimate
from judge.report.format import column_title
from judge.report.views.columns import main_comparison
from judge.report.views.system_names import first_listed
from judge.results.comparison import RunComparison
from judge.stats.derived_columns import OVERALL
from judge.stats.power import MIN_ITEMS, items_needed
from judge.stats.run_differences import text_of
from judge.stats.system_differences import Comparison

_MAX_NEEDED = 100_000  # items, beyond which a number of needed items helps nobody
_NEAR = 1e-9  # a difference by rounding alone


def finding(comparison: RunComparison) -> Iterator[str]:
    """Name the means that changed significantly, or else most.

    Also say whether the judge or the systems changed.
    """
    means = sorted(all_means(comparison), key=lambda mean: mean.importance)
    over_all = [mean for mean in means if not mean.row.system and mean.row.significant]
    # The overall score is named only if no column of its own changed.
    own_columns = [mean for mean in over_all if mean.row.column != OVERALL]
    over_all = own_columns or over_all
    system_means = [mean for mean in means if mean.row.system]
    significant = [
        mean for mean in system_means if mean.differs and mean.row.significant
    ]
    yield from _headline(comparison, system_means, significant, over_all)
    yield from _best_systems(comparison)
    if significant and over_all:
        changes = " and ".join(mean.change_phrase for mean in over_all[:2])
        yield f"{changes}."
    if not (significant or over_all):
        yield from _fewest_items(means)
    yield from _judge_or_systems(comparison, means)


def _headline(
    comparison: RunComparison,
    system_means: Sequence[Mean],
    significant: Sequence[Mean],
    over_all: Sequence[Mean],
) -> Iterator[str]:
    """Yield the first sentence: of the significant changes, or else of the largest.

    `significant` are those of `system_means` that changed significantly; `over_all` are the means
    over all systems that did.
    """
    if not system_means:
        yield _nothing_compared(comparison.runs.incomparable)
        return
    means_text = plural(len(system_means), "mean")
    changed = [mean for mean in system_means if mean.differs]
    if not changed:
        yield f"No score changed: all values of {means_text} are equal"
        return
    # Columns in which no value differs, such as metrics of the same texts, are not tested.
    changed_columns = {mean.row.column for mean in changed}
    n_tested = sum(mean.row.column in changed_columns for mean in system_means)
    tested_text = plural(n_tested, "mean")
    named_means = significant or over_all[:2]
    # A headline names two changes; more are counted.
    if len(significant) > 2:
        largest = significant[0].change_phrase
        yield f"{len(significant):,} of {tested_text} changed significantly; {largest}"
    elif named_means:
        yield " and ".join(mean.change_phrase for mean in named_means)
    elif not any(mean.row.estimate.value for mean in changed):
        are_same = "The mean is" if len(system_means) == 1 else f"All {means_text} are"
        yield f"{are_same} the same in both runs, although values of texts differ"
    else:
        if any(mean.row.adjusted is not None for mean in changed):
            yield f"No significant change in {tested_text}"
        else:
            yield f"Too few items to test the changes of {tested_text}"
        yield _largest_change(changed)


def _nothing_compared(incomparable: Sequence[tuple[str, str]]) -> str:
    """Say that no means can be compared; `incomparable` are the columns of both runs and why."""
    if not incomparable:
        return "No column has values in both runs"
    # The overall score follows from columns that are named anyway.
    own_columns = [entry for entry in incomparable if entry[0] != OVERALL]
    own_columns = own_columns or list(incomparable)
    if len(own_columns) > 1:
        return f"None of the {len(own_columns)} columns in both runs can be compared"
    ((column_name, reason),) = own_columns
    return f"The runs cannot be compared on {column_title(column_name)}: {reason}"


def _best_systems(comparison: RunComparison) -> Iterator[str]:
    """Say which systems are significantly best in each run, if they are not the same."""
    before = main_comparison(comparison.before)
    after = main_comparison(comparison.after)
    if before is None or after is None or before.column != after.column:
        return
    systems_before = {rank.system for rank in before.ranks}
    systems_after = {rank.system for rank in after.ranks}
    # A system that is new or gone changes who is best without any change of scores.
    if systems_before != systems_after:
        return
    best_before = _best(before)
    best_after = _best(after)
    if set(best_before) == set(best_after):
        return
    title = column_title(after.column)
    if after.column == OVERALL:
        title = "the overall score"
    names_before = first_listed(best_before) if best_before else "no system"
    names_after = first_listed(best_after) if best_after else "no system"
    yield f"Best on {title}: {names_before} before, {names_after} after."


def _best(comparison: Comparison) -> tuple[str, ...]:
    """Return the best systems; nothing if none is significantly worse, or all face one opponent."""
    is_decided = 0 < len(comparison.best) < len(comparison.ranks)
    return comparison.best if is_decided and not comparison.against else ()


def _fewest_items(means: Sequence[Mean]) -> Iterator[str]:
    """Say if so few items are tested that no change can be significant, however large it is."""
    n_items_of_tests = [
        mean.row.estimate.n
        for mean in means
        if mean.row.adjusted is not None and mean.row.estimate.value
    ]
    # Without a test there is nothing to say.
    most_items = max(n_items_of_tests, default=MIN_ITEMS)
    if most_items < MIN_ITEMS:
        items = plural(most_items, "item")
        yield f"With {items}, no change can be significant: you need at least {MIN_ITEMS}."


def _judge_or_systems(
    comparison: RunComparison, means: Sequence[Mean]
) -> Iterator[str]:
    """Say whether the judge or the systems changed, if the runs show it."""
    judged = [
        mean for mean in means if mean.differs and mean.column.kind == "criterion"
    ]
    split_means = [mean for mean in judged if mean.row.system and is_split(mean.row)]
    if split_means:
        largest_split = min(
            split_means, key=lambda mean: (not mean.row.system_changed, mean.importance)
        )
        count_of_all = ""
        if len(split_means) > 1:
            n_significant = sum(mean.row.system_changed for mean in split_means)
            count_of_all = (
                f"; without the judge, {n_significant:,} of {len(split_means):,} changes are "
                "significant"
            )
        yield f"{largest_split.split_phrase}{count_of_all}."
    elif any(mean.row.significant for mean in judged) and _same_texts(comparison):
        only = comparison.runs.only
        some_unshared = any(unshared.items or unshared.systems for unshared in only)
        texts = "All shared texts" if some_unshared else "All texts"
        yield f"{texts} are the same in both runs, so the judge changed, not the systems."
    elif any(mean.row.system_change for mean in judged):
        n_unchanged, n_moved = _unchanged_texts(comparison)
        if n_unchanged and not n_moved:
            unchanged_texts = plural(n_unchanged, "unchanged text")
            yield f"The judge did not change: no score of {unchanged_texts} differs."


def _largest_change(changed: Sequence[Mean]) -> str:
    """Name the largest change.

    `changed` has the criteria first, and the largest change of each kind. The sentence says the
    kind of column if another kind changed by a larger share of its scale.
    """
    first_mean = next(mean for mean in changed if mean.row.estimate.value)
    subject = "The largest change"
    if any(mean.share > first_mean.share for mean in changed):
        is_overall = first_mean.row.column == OVERALL
        kind = "the overall score" if is_overall else "a criterion"
        subject = f"The largest change of {kind}"
    sentence = f"{subject}: {first_mean.change_phrase}."
    n_tests = sum(mean.row.adjusted is not None for mean in changed)
    needed = _items_needed(first_mean.row.estimate, n_tests)
    if needed is not None:
        sentence += f" If it is real, detecting it needs {rough_count(needed)} items."
    return sentence


def _items_needed(estimate: Estimate, tests: int) -> int | None:
    """Return the items with which the smallest of `tests` p-values would be significant.

    Return None if that is unknown, if the estimate has that many items already, or if more than
    `_MAX_NEEDED` are needed.
    """
    needed = items_needed(estimate, over_items=True, tests=tests)
    if needed is None or not estimate.n < needed <= _MAX_NEEDED:
        return None
    return needed


def _same_texts(comparison: RunComparison) -> bool:
    """Return whether criteria read the same in the texts of both runs."""
    if comparison.runs.edited:
        return False
    samples_before = comparison.before.table.samples
    # A template may also read the data's own columns, which `edited` is not about.
    extra_before = {sample.key: sample.extra for sample in samples_before}
    after = comparison.after.table.samples
    in_both = [sample for sample in after if sample.key in extra_before]
    return all(extra_before[sample.key] == sample.extra for sample in in_both)


def _unchanged_texts(comparison: RunComparison) -> tuple[int, int]:
    """Return how many unchanged texts have scores in both runs, and how many scores differ.

    Only criteria that can be compared count.
    """
    old_table = comparison.before.table
    new_table = comparison.after.table
    old_texts = {sample.key: text_of(sample) for sample in old_table.samples}
    unchanged = {
        sample.key
        for sample in new_table.samples
        if old_texts.get(sample.key) == text_of(sample)
    }
    judged_before = {
        column.name for column in old_table.columns if column.kind == "criterion"
    }
    comparable = judged_before - dict(comparison.runs.incomparable).keys()
    scored: set[tuple[str, str]] = set()
    n_moved = 0
    for column in new_table.columns:
        if column.name not in comparable:
            continue
        old_scores = old_table.column_scores(column.name)
        old_values = {(score.key, score.opponent): score.value for score in old_scores}
        for score in new_table.column_scores(column.name):
            old_value = old_values.get((score.key, score.opponent))
            if score.key in unchanged and old_value is not None:
                scored.add(score.key)
                if abs(score.value - old_value) > _NEAR:
                    n_moved += 1
    return len(scored), n_moved
