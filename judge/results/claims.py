"""The checked claims of a table: in a list, counted by system, and as rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from judge.core.errors import ConfigError
from judge.core.records import Column, Estimate, Sample
from judge.results.checked_claims import (
    CLAIMS,
    REFERENCE_CLAIMS,
    CheckedClaim,
    checked_claims,
)
from judge.results.wide_rows import with_own_columns
from judge.stats.pooled_share import pooled_share
from judge.table import Table

if TYPE_CHECKING:
    import pandas as pd

_KEYS = ("item", "system", "column", "claim", "probability", "supported", "evidence")
"""Keys of a claim in JSON, CSV and data frames; the data's own columns follow."""


class ClaimOfText(NamedTuple):
    """A checked claim with its text and the column that checked it.

    The claims of `claims_recall` are those of the text's references.
    """

    sample: Sample
    column: Column
    claim: CheckedClaim


@dataclass(frozen=True, slots=True)
class ClaimCount:
    """How many claims a system's outputs have, and how many of them are unsupported.

    `share` is the share of unsupported claims (0–1) with its interval over items, None for a system
    without claims. `column` names the column that checked them.
    """

    system: str
    column: str
    claims: int
    unsupported: int
    share: Estimate | None


def claims_of(table: Table, column: Column) -> Iterator[ClaimOfText]:
    """Yield the claims that a column checked, in the order of the texts."""
    samples = {sample.key: sample for sample in table.samples}
    for score in table.column_scores(column.name):
        sample = samples.get(score.key)
        if sample is not None:
            for claim in checked_claims(sample, column, score):
                yield ClaimOfText(sample, column, claim)


def sorted_claims(table: Table) -> list[ClaimOfText]:
    """Return the claims of all texts by column, the least probable first.

    Raises ConfigError for a table without claims.
    """
    checking = [
        column for column in table.columns if column.name in (*CLAIMS, REFERENCE_CLAIMS)
    ]
    if not checking:
        raise ConfigError(
            "this run has no claims: the metric claims lists and checks them"
        )
    claims: list[ClaimOfText] = []
    for column in checking:
        claims += sorted(claims_of(table, column), key=_probability)
    if not claims:
        raise ConfigError("no claim was found in these texts")
    return claims


def unsupported_claims(claims: Iterable[ClaimOfText]) -> list[ClaimOfText]:
    """Return the claims that are not supported, the least probable first."""
    unsupported = [entry for entry in claims if not entry.claim.supported]
    return sorted(unsupported, key=_probability)


def _probability(entry: ClaimOfText) -> float:
    return entry.claim.probability


def claim_counts(table: Table, claims: Sequence[ClaimOfText]) -> tuple[ClaimCount, ...]:
    """Count the claims of each system's outputs, for each column that checks outputs."""
    claims_by_column: dict[str, dict[str, list[ClaimOfText]]] = {}
    for entry in claims:
        if entry.column.name in CLAIMS:
            of_column = claims_by_column.setdefault(
                entry.column.name, defaultdict(list)
            )
            of_column[entry.sample.system].append(entry)
    counts: list[ClaimCount] = []
    for column_name, claims_by_system in claims_by_column.items():
        for system in table.systems:
            count = _count(system, column_name, claims_by_system[system])
            counts.append(count)
    return tuple(counts)


def _count(system: str, column_name: str, claims: Sequence[ClaimOfText]) -> ClaimCount:
    """Count the claims of one system that a column checked."""
    n_claims = Counter(entry.sample.source_item for entry in claims)
    unsupported = unsupported_claims(claims)
    n_unsupported = Counter(entry.sample.source_item for entry in unsupported)
    share = pooled_share(
        hits=np.array([n_unsupported[item] for item in n_claims], dtype=float),
        parts=np.array(list(n_claims.values()), dtype=float),
    )
    return ClaimCount(
        system,
        column_name,
        claims=len(claims),
        unsupported=len(unsupported),
        share=share,
    )


def claim_rows(
    table: Table, claims: Sequence[ClaimOfText]
) -> tuple[tuple[str, ...], list[Mapping[str, Any]]]:
    """Return the keys, and a row for each claim; the data's own columns come last."""
    headings = table.own_columns(_KEYS)
    rows: list[Mapping[str, Any]] = []
    for sample, column, claim in claims:
        row: dict[str, Any] = {
            "item": sample.item,
            "system": sample.system,
            "column": column.name,
            "claim": claim.text,
            "probability": claim.probability,
            "supported": claim.supported,
            "evidence": claim.evidence,
        }
        for column_name, heading in headings.items():
            row[heading] = sample.extra.get(column_name)
        rows.append(row)
    return (*_KEYS, *headings.values()), rows


def claims_frame(table: Table) -> pd.DataFrame:
    """Return a DataFrame with a row for each claim, by column and the least probable first.

    Raises ConfigError for a table without claims.
    """
    import pandas as pd

    keys, rows = claim_rows(table, sorted_claims(table))
    frame = pd.DataFrame(rows, columns=_KEYS)
    own_keys = keys[len(_KEYS) :]
    own_cells: dict[str, list[Any]] = {}
    for key in own_keys:
        own_cells[key] = [row[key] for row in rows]
    return with_own_columns(frame, own_cells)
