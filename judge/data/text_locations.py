"""Where the texts of the data are, to find a second text of one item and system."""

from __future__ import annotations

from judge.core.errors import DataError
from judge.core.format import text_name
from judge.core.messages import option
from judge.core.records import Sample


class TextLocations:
    """The locations of the texts so far, to find a second text of one item and system."""

    def __init__(self) -> None:
        # 64 bits instead of names: 10 million rows have no collision.
        self._location_by_hash: dict[int, str] = {}

    @property
    def is_empty(self) -> bool:
        return not self._location_by_hash

    def add(self, sample: Sample, location: str) -> None:
        """Add a text. Raises DataError if there is one of its item and system."""
        key = hash(sample.key)
        if key in self._location_by_hash:
            problem = _problem_of_twins(sample, self._location_by_hash[key])
            raise DataError(f"{location}: {problem}")
        self._location_by_hash[key] = location


def _problem_of_twins(sample: Sample, location: str) -> str:
    """Say that a text of the same item and system is already in the data, at this location."""
    text = text_name(sample.item, sample.system)
    other_columns = option("map", {"item": "COLUMN", "system": "COLUMN"})
    remedies = [
        f"{other_columns} names other columns",
        "a column `generation` numbers several outputs",
    ]
    # Annotation tools write one row per rating, with the text in each of them.
    if sample.human:
        ratings_file = option("ratings", "FILE")
        remedies.append(f"several ratings of a text belong into {ratings_file}")
    listed_remedies = "; ".join(remedies)
    return (
        f"{text} is already at {location}; each pair of item and system may occur once "
        f"({listed_remedies})"
    )
