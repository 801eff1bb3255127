"""Options and names of types."""

from __future__ import annotations

import math
from typing import Any

import pytest

from judge.core.errors import ConfigError
from judge.metrics.rouge import Rouge


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": ["rouge0"]}, "unknown type 'rouge0'"),
        ({"types": ["rouge10"]}, "unknown type 'rouge10'"),
        ({"types": ["rougel"]}, "unknown type 'rougel'"),
        ({"types": ["ROUGE-L"]}, "set preset to rouge155"),
        ({"types": ["rougeL"], "preset": "rouge155"}, "of rouge155 .*ROUGE-SU4"),
        ({"types": ["ROUGE-W"], "preset": "rouge155"}, "unknown type 'ROUGE-W'"),
        ({"types": ["rougeW-0.5"]}, "weight .*from 1"),
        ({"types": ["rougeW-999"]}, "weight .*from 1"),
        ({"types": ["rouge1", "rouge1"]}, "repeats a name"),
        ({"types": "rouge1,"}, "unknown type ''"),
        ({"types": 1}, "list of names"),
        ({"types": [1]}, "unknown type '1'"),
        ({"preset": "rouge156"}, "rouge.preset .*rouge155, pltrdy"),
        (
            {"multi": "best"},
            "rouge.multi .*best_f, best_recall, pooled, mean, jackknife",
        ),
        ({"stem": "yes"}, "rouge.stem .*true or false"),
        ({"tokenizer": "klingon"}, "rouge.tokenizer .*en, words, char, spaces, ja"),
        ({"tokenizer": "en", "preset": "rouge155"}, "its own tokenizer"),
        ({"stopwords": "/no/such/file"}, "stopwords: cannot read /no/such/file"),
        ({"stopwords": [True]}, "stopwords must be a file"),
        ({"stopwords": 3}, "stopwords must be a file"),
        ({"exceptions": "x.exc"}, "exceptions .*preset rouge155"),
        ({"exceptions": "x.exc", "preset": "rouge155", "stem": False}, "exceptions need"),
        (
            {"exceptions": "/no/such.exc", "preset": "rouge155"},
            "exceptions: cannot read /no/such.exc",
        ),
        ({"exceptions": 3, "preset": "rouge155"}, "exceptions are files"),
        ({"alpha": 1.5}, "rouge.alpha .*from 0 to 1"),
        ({"alpha": True}, "rouge.alpha must be a number"),
        ({"alpha": math.nan}, "rouge.alpha must be a number"),
        ({"beta": -1}, "rouge.beta .*from 0"),
        ({"beta": "2"}, "rouge.beta .*from 0"),
        ({"beta": math.inf}, "rouge.beta .*from 0"),
        ({"alpha": 0.5, "beta": 1}, "give one of them"),
    ],
)
def test_wrong_options_list_the_allowed_values(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rouge(**options)


def test_a_binary_stopword_file_is_an_error(tmp_path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ConfigError, match="stopwords: cannot read"):
        Rouge(stopwords=tmp_path / "x")
