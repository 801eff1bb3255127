"""The preset rouge155. Oracle: recorded output of the Perl script of 2005."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.core.records import Failure
from judge.metrics.rouge import RougeScore, score

MULTI = {"ref1/A": "best_f", "ref11/A": "pooled", "ref11/B": "best_recall", "jack11/B": "jackknife"}
# Words of the edge cases that are also in the script's list, which we cannot include
STOPWORDS = [
    *"abcdefghijklmnopqrstuvwxyz",
    "the",
    "of",
    "and",
    "is",
    "on",
    "in",
    "us",
    "there",
    "was",
    "sat",
    "down",
]


def numbers(value: object) -> list[float]:
    assert isinstance(value, RougeScore), value
    return [value.recall, value.precision, value.fmeasure]


def gold(shared_data: Callable[[str], Path], name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(shared_data(name).read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("mode", MULTI)
@pytest.mark.parametrize(("variant", "stem"), [("plain", False), ("stem_noexc", True)])
def test_values_of_thirty_summaries_equal_the_scripts(
    shared_data, mode: str, variant: str, stem: bool
) -> None:
    """Twelve types with 1 and with 11 references, stemmed by the script's Porter stemmer without exceptions."""
    data = gold(shared_data, "gold_rouge155_sample.json")
    refs, form = mode.split("/")
    expected = data["scores"][f"{refs}/{variant}/{form}"]
    references = [item["references"][: 1 if refs == "ref1" else None] for item in data["items"]]
    scores = score(
        ["\n".join(item["candidate"]) for item in data["items"]],
        [["\n".join(lines) for lines in listed] for listed in references],
        list(expected),
        stem=stem,
        multi=MULTI[mode],
        preset="rouge155",
    )
    for kind, values in expected.items():
        for got, value in zip(scores[kind], values, strict=True):
            assert numbers(got) == pytest.approx(value, abs=2e-7), kind


def test_exceptions_of_wordnet_change_few_values(shared_data) -> None:
    """The recorded values used WordNet's exceptions, which we cannot include. Most texts contain none of them."""
    data = gold(shared_data, "gold_rouge155_sample.json")
    outputs = ["\n".join(item["candidate"]) for item in data["items"]]
    references = ["\n".join(item["references"][0]) for item in data["items"]]
    scores = score(outputs, references, ["ROUGE-1"], preset="rouge155")["ROUGE-1"]
    expected = data["scores"]["ref1/stem_exc/A"]["ROUGE-1"]
    differing = [
        n
        for n, value in enumerate(expected)
        if numbers(scores[n]) != pytest.approx(value, abs=2e-7)
    ]
    assert len(differing) == 2


@pytest.mark.parametrize(
    ("variant", "options"),
    [
        ("plain", {"stem": False}),
        ("-m", {"stem": True}),
        ("-f B", {"stem": False, "multi": "best_recall"}),
        ("-s", {"stem": False, "stopwords": STOPWORDS}),
    ],
)
def test_values_of_edge_cases_equal_the_scripts(
    shared_data, tmp_path, variant: str, options: dict[str, Any]
) -> None:
    """The 23 cases include empty texts, hyphens, other scripts, ties, Lin's examples and an empty reference."""
    if variant == "-m":
        (tmp_path / "noun.exc").write_text("children childs\nbetter good\n", encoding="utf-8")
        (tmp_path / "more.exc").write_text(
            "children child\nbetter well good\nbroken\n", encoding="utf-8"
        )
        options = options | {"exceptions": [tmp_path / "noun.exc", str(tmp_path / "more.exc")]}
    cases = gold(shared_data, "gold_rouge155_edge.json")
    assert len(cases) == 23
    kinds = list(cases["empty peer"]["scores"]["plain"])
    for name, case in cases.items():
        scores = score(
            [case["candidate"]], [case["references"]], kinds, preset="rouge155", **options
        )
        expected = case["scores"][variant]
        for kind in kinds:
            (got,) = scores[kind]
            if kind in expected:
                assert numbers(got) == pytest.approx(expected[kind], abs=1e-9), (name, kind)
            else:  # the script crashed
                assert isinstance(got, Failure)
                assert (kind, got.error) == ("ROUGE-W-1.2", "NoTokens")
                assert "fails for ROUGE-W" in got.message


def test_references_are_pooled_by_default_as_in_the_script() -> None:
    """By hand: 2 + 0 hits, 2 + 3 words of the references, 2 · 2 of the output."""
    (value,) = score(["a b"], [["a b", "x y z"]], ["ROUGE-1"], preset="rouge155")["ROUGE-1"]
    assert numbers(value) == [0.4, 0.5, 0.44444]


def test_alpha_weighs_as_the_scripts_option_p() -> None:
    for alpha, value in ((0.0, 0.66667), (1.0, 0.5), (0.2, 0.625)):
        (rouge_value,) = score(["a b c d"], ["a b x"], ["ROUGE-1"], preset="rouge155", alpha=alpha)[
            "ROUGE-1"
        ]
        assert numbers(rouge_value) == [0.66667, 0.5, value]
