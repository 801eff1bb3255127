"""Compare a judge with people's ratings for its card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judge.commands.card.card import PeopleFinding
from judge.core.format import listed
from judge.core.records import Sample
from judge.stats.alt_test import EPSILON
from judge.stats.bootstrap import Bootstrap
from judge.stats.correlation import minus_one_rater
from judge.stats.disagreements import on_same_scale
from judge.stats.human_agreement import did_you_mean, people, rated_names
from judge.stats.power import MIN_ITEMS
from judge.stats.rated_columns import RatedColumn, judges_of
from judge.stats.raters import votes_of
from judge.table import Table, matrix


def people_findings(
    table: Table,
    model: str,
    *,
    seed: int,
    epsilon: float = EPSILON,
) -> Iterator[PeopleFinding]:
    """Yield the comparison with people of each criterion that they rated and the judge scored.

    `model` names the judge, `epsilon` is its advantage in the alternative annotator test.
    """
    judges = judges_of(table, model)
    judge_by_criterion = {judge.criterion: judge for judge in judges}
    if not judge_by_criterion.keys() & set(rated_names(table.samples)):
        return
    bootstrap = Bootstrap(seed=seed)
    for rated in people(table, judges, bootstrap, epsilon=epsilon):
        for row in rated.judges:
            judge = judge_by_criterion[rated.criterion]
            rated_texts = [
                sample for sample in table.samples if rated.criterion in sample.human
            ]
            # Items × systems, NaN without a score.
            scores = matrix(rated_texts, judge.values)
            is_scored_item = (~np.isnan(scores)).any(axis=1)
            votes = votes_of(rated_texts, rated.criterion).values
            level = rated.usual_level
            distinct_ratings = set()
            distinct_scores = set()
            for sample in rated_texts:
                if sample.key in judge.values:
                    distinct_ratings.add(sample.human[rated.criterion])
                    distinct_scores.add(judge.values[sample.key])
            yield PeopleFinding(
                rated,
                row,
                items=int(is_scored_item.sum()),
                minus_rater=minus_one_rater(scores, votes, bootstrap, level),
                shift=_largest_shift(judge, rated_texts),
                ratings_vary=len(distinct_ratings) > 1,
                scores_vary=len(distinct_scores) > 1,
            )


def _largest_shift(judge: RatedColumn, texts: Sequence[Sample]) -> float | None:
    """Return the largest difference between two systems in the judge's mean minus people's.

    None without ratings on the judge's scale, in MIN_ITEMS items of two systems.
    """
    if judge.scale is None:
        return None
    rated = on_same_scale(judge.scale, judge.criterion, texts)
    if not rated:
        return None
    rating_by_text = {sample.key: sample.human[judge.criterion] for sample in rated}
    # Items × systems; NaN without a score.
    differences = matrix(rated, judge.values) - matrix(rated, rating_by_text)
    items_by_system = (~np.isnan(differences)).sum(axis=0)
    # With few ratings, the chance of a system's texts would look like favouring.
    has_enough = items_by_system >= MIN_ITEMS
    if has_enough.sum() < 2:
        return None
    shifts = np.nanmean(differences[:, has_enough], axis=0)
    return float(shifts.max() - shifts.min())


def why_no_ratings(table: Table) -> str:
    """Return why a judge cannot be compared with people: nobody rated, or other criteria."""
    judged = [
        column.criterion for column in table.columns if column.kind == "criterion"
    ]
    names = rated_names(table.samples)
    if not names:
        return "no ratings by people"
    reason = f"people rated {listed(names)}"
    suggestion = did_you_mean(names, judged).strip()
    if suggestion:
        reason = f"{reason} ({suggestion})"
    return reason
