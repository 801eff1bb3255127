"""Examples picked from rated texts. Oracles: hand-made ratings, brute-force counts, and random picks."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge import criteria
from judge.commands.pick_examples import PickedExamples, pick_examples
from judge.config import load_config
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.records import seen_digest
from judge.metrics.diversity import distinct

FILE = """---
# Why this criterion exists
{key}: Is the reply polite?  # asked of each
scale: [1, {high}]

---
{{% extends "layouts/{layout}.jinja" %}}
"""
Row = dict[str, Any]
Pick = Callable[..., PickedExamples]


@pytest.fixture
def pick(tmp_path: Path) -> Pick:
    def run(
        rows: Sequence[Row], count: int = 6, high: int = 5, seed: int = 0, layout: str = "question", **options: Any
    ) -> PickedExamples:
        file, data = tmp_path / "polite.jinja", tmp_path / "rated.jsonl"
        if not options.get("replace"):
            key = "question" if layout == "question" else "description"
            file.write_text(FILE.format(high=high, layout=layout, key=key))
        data.write_text("\n".join(json.dumps(row) for row in rows))
        return pick_examples(file, data, load_config(given={"seed": seed}), count, **options)

    return run


def rated(rating: Any, item: object = "i", text: str = "", source: str = "A question?", system: str = "s") -> Row:
    text = text or f"Reply {item} {system}."
    return {"item": str(item), "system": system, "output": text, "source": source, "human": {"polite": rating}}


def labels(result: PickedExamples) -> list[str]:
    return [label for _, label in result.picked]


@given(
    ratings=st.lists(st.integers(1, 7), min_size=1, max_size=60),
    count=st.integers(1, 20), seed=st.integers(0, 3),
)  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
def test_levels_get_equally_many_examples_where_they_have_enough(
    pick: Pick, ratings: list[int], count: int, seed: int
) -> None:
    result = pick([rated(rating, item) for item, rating in enumerate(ratings)], count, high=7, seed=seed)
    there, chosen = Counter(map(str, ratings)), Counter(labels(result))
    assert len(result.picked) == min(count, len(ratings))
    for label, size in there.items():
        assert chosen[label] <= size
        assert chosen[label] == size or chosen[label] >= max(chosen.values()) - 1
    missing = [str(level) for level in range(1, 8) if str(level) not in there]
    assert any("No text is rated" in note for note in result.notes) == bool(missing)


@pytest.mark.parametrize(
    ("count", "chosen"), [(1, "3"), (2, "15"), (3, "135"), (4, "1245"), (5, "12345"), (6, "123453"), (7, "1234515")]
)
def test_few_examples_are_spread_over_the_scale(pick: Pick, count: int, chosen: str) -> None:
    result = pick([rated(n % 5 + 1, n) for n in range(40)], count)
    assert "".join(labels(result)) == chosen


def test_picks_are_more_diverse_than_random_ones(pick: Pick) -> None:
    """Ten near-copies of each of six topics: distinct-1 of the examples is above that of random picks."""
    topics = ["the cat sleeps on a mat", "rain falls over green hills", "markets closed lower today",
              "we won that game", "soup needs salt and time", "her train left at noon"]  # fmt: skip
    rows = [
        rated(3, f"{n} {copy}", f"{topic} {'again ' * (copy % 3)}number {copy}")
        for n, topic in enumerate(topics)
        for copy in range(10)
    ]

    result = pick(rows)
    outputs = [sample.output for sample, _ in result.picked]
    assert len({output[:8] for output in outputs}) == 6
    draws = [[row["output"] for row in random.Random(seed).sample(rows, 6)] for seed in range(20)]
    assert distinct(outputs) > max(map(distinct, draws))


def test_different_items_come_first(pick: Pick) -> None:
    rows = [rated(3, item, f"{word} {item} {n}") for item in "ab" for n, word in enumerate(("up", "down", "far"))]
    for n, row in enumerate(rows):
        row["system"] = str(n)
    assert {sample.item for sample, _ in pick(rows, 2).picked} == {"a", "b"}
    assert len(pick(rows, 6).picked) == 6


def test_the_seed_decides_and_the_rest_of_the_file_stays(pick: Pick, tmp_path: Path) -> None:
    rows = [rated(n % 5 + 1, n, f"{n * n} words {n}") for n in range(50)]
    file = tmp_path / "polite.jinja"
    first, written = pick(rows), file.read_text()
    assert pick(rows) == first
    assert file.read_text() == written
    assert pick(rows, seed=1).picked != first.picked
    before, after = FILE.format(high=5, layout="question", key="question").split("\n---\n{%")
    assert written.startswith(f"{before}\nexamples:\n  - score: 1\n    output: ")
    assert written.endswith(f"\n---\n{{%{after}")
    with pytest.raises(CriterionError, match="has examples already; --replace writes new ones over them"):
        pick_examples(file, tmp_path / "rated.jsonl", load_config())


def test_what_is_written_is_loaded_and_its_ratings_are_seen(pick: Pick, tmp_path: Path) -> None:
    rows = [rated(n % 5 + 1, n, f"Reply\n{n}", source=f"Question {n}?") for n in range(12)]
    result = pick(rows)
    criterion = criteria.load(tmp_path / "polite.jinja")
    picked = [sample for sample, _ in result.picked]
    shown = [(example.output, example.source, example.score) for example in criterion.examples]
    assert shown == [(sample.output, sample.source, label) for sample, label in result.picked]
    assert criterion.seen == {seen_digest(sample.source, sample.output) for sample in picked}
    assert "Left for validation: 6 of 12 rated texts, on 6 items." in result.notes
    assert result.notes[-1].startswith("Too few: validation and calibration need ratings on at least 10 items")
    # The ledger forgets nothing: the texts of older examples stay seen.
    again = pick(rows, seed=3, replace=True)
    after = criteria.load(tmp_path / "polite.jinja")
    assert len(after.examples) == 6
    assert after.seen == criterion.seen | {seen_digest(sample.source, sample.output) for sample, _ in again.picked}


def test_sources_are_written_only_if_the_judge_sees_them(pick: Pick, tmp_path: Path) -> None:
    rows = [rated(n % 5 + 1, n) for n in range(5)]
    for options in ({"source": False}, {"layout": "scale"}):
        if "layout" in options:
            (tmp_path / "layouts").mkdir()
            (tmp_path / "layouts" / "scale.jinja").write_text(
                "{% for e in this.examples %}{{ e.output }}{% endfor %}{{ output|fenced('text') }}"
            )
        pick(rows, **options)
        criterion = criteria.load(tmp_path / "polite.jinja")
        assert {example.source for example in criterion.examples} == {""}
        assert criterion.seen == {seen_digest(row["source"], row["output"]) for row in rows}


@pytest.mark.parametrize(
    ("rating", "high", "label"),
    [
        (4, 5, "4"), (4.25, 5, "4"), (4.26, 5, "between two levels"), (4.5, 5, "between two levels"),
        ([4, 4, 4], 5, "4"), ([4, 4, 4, 5], 5, "4"), ([3, 4, 5], 5, "with raters who disagree"),
        ([4, None], 5, "4"), (6, 5, "outside the scale"), (0.9, 5, "outside the scale"),
        ([40, 45, 36], 101, "40"), ([34, 46], 101, "with raters who disagree"),
        ([1, 2, 1, 1], 2, "with raters who disagree"),
    ],
)  # fmt: skip
def test_a_mean_is_a_label_if_it_is_close_and_raters_agree(pick: Pick, rating: Any, high: int, label: str) -> None:
    if label.isdigit():
        assert labels(pick([rated(rating)], high=high)) == [label]
    else:
        with pytest.raises(DataError, match=f"no rating 'polite' fits a level of the scale 1 to {high} \\(1 .*{label}"):
            pick([rated(rating)], high=high)


def test_unanimous_and_short_texts_are_preferred(pick: Pick) -> None:
    rows = [rated([4, 4, 4, 5], n, f"word{n} " * 3) for n in range(8)]
    rows += [rated(4, "long", "words " * 500), rated(4, "short", "A word.")]
    assert [sample.item for sample, _ in pick(rows, 1).picked] == ["short"]
    assert "long" not in {sample.item for sample, _ in pick(rows, 9).picked}
    assert "long" in {sample.item for sample, _ in pick(rows, 10).picked}


def test_equal_texts_are_shown_once_and_not_with_two_scores(pick: Pick) -> None:
    rows = [rated(score, "a", "Same.", system=str(n)) for n, score in enumerate((2, 2, 3, 3))]
    rows[2]["source"] = rows[3]["source"] = "Another?"
    rows += [rated(score, "b", "Both.", system=str(n)) for n, score in enumerate((1, 5))]
    rows += [rated(4, "c", " ")]
    result = pick(rows)
    assert sorted(labels(result)) == ["2", "3"]
    assert "Left out: 2 equal to another text, 2 equal to texts with another score, 1 without a text." in result.notes
    assert "Only 2 of 6 examples: there are no more such texts." in result.notes
    assert "Left for validation: 3 of 7 rated texts, on 2 items." in result.notes


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"count": 0}, ConfigError, "--from-ratings 0: choose 1 to 20 examples"),
        ({"count": 21}, ConfigError, "--from-ratings 21: choose 1 to 20 examples"),
        ({"human": "polit"}, DataError, "unknown rating 'polit'; did you mean 'polite'?"),
        ({"layout": "pairwise"}, CriterionError, "this criterion compares two texts"),
    ],
)
def test_what_cannot_be_picked(pick: Pick, options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        pick([rated(3)], **options)


def test_a_file_whose_template_shows_no_examples_stays_as_it_was(tmp_path: Path) -> None:
    file, data = tmp_path / "polite.jinja", tmp_path / "rated.jsonl"
    file.write_text("---\nscale: [1, 5]\n---\n{{ output|fenced('text') }}")
    data.write_text(json.dumps(rated(3)))
    before = file.read_text()
    with pytest.raises(CriterionError, match="examples: no template shows it"):
        pick_examples(file, data, load_config())
    assert file.read_text() == before


def test_only_files_of_ones_own_are_written(tmp_path: Path) -> None:
    with pytest.raises(CriterionError, match=r"copy one: judge criteria show relevance > relevance\.jinja"):
        pick_examples(Path("relevance"), tmp_path / "rated.jsonl", load_config())
