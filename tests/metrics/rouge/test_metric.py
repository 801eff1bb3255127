"""ROUGE as a metric. Oracles: rouge-score's gold values on SummEval, the package itself, numbers by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from judge import __version__, text
from judge.core.errors import ConfigError
from judge.core.records import Failure, Sample, Score
from judge.metrics import parallel
from judge.metrics.rouge import Rouge
from tests.factories import has_line

TYPES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
WORDS = ["the", "running", "runs", "cats", "cat", "sat,", "mats.", "no-one", "ran?", "U.S."]
ENGLISH = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def values(output: str, *references: str, **options: Any) -> dict[str, float]:
    rows = Rouge(**options).score([Sample("1", "a", output, references=references)]).rows
    return {row.column: row.value for row in rows if isinstance(row, Score)}


def signatures(*samples: Sample) -> list[str]:
    return [str(column.signature) for column in Rouge().score(samples).columns]


@pytest.mark.parametrize(("stemmer", "variant"), [(True, "stem"), (False, "plain")])
def test_values_on_summeval_equal_recorded_values_of_rouge_score(
    shared_data, stemmer: bool, variant: str
) -> None:
    """200 summaries and their first reference, scored by rouge-score 0.1.2. rougeLsum has a sentence on each line."""
    gold = json.loads(shared_data("gold_google_rouge.json").read_text(encoding="utf-8"))["sample"]
    with shared_data("summeval.jsonl").open(encoding="utf-8") as file:
        rows = {(row["doc_id"], row["system"]): row for row in map(json.loads, file)}
    samples = [
        Sample(g["doc_id"], g["system"], row["summary"], references=(row["references"][0],))
        for g in gold
        for row in [rows[g["doc_id"], g["system"]]]
    ]
    score_rows = Rouge(stem=stemmer).score(samples).rows
    assert len(score_rows) == 800
    for row, (item, name) in zip(
        score_rows, ((g, name) for g in gold for name in TYPES), strict=True
    ):
        assert isinstance(row, Score)
        assert (row.item, row.system, row.column) == (item["doc_id"], item["system"], name)
        assert row.value == pytest.approx(item[variant][name][2], abs=1e-9)


def test_types_may_have_different_best_references() -> None:
    """By hand: the first reference has all words in another order, the second has two of four words in order."""
    scores = values("red green blue grey", "grey blue green red", "red green one two")
    assert scores == pytest.approx(
        {"rouge1": 1.0, "rouge2": 1 / 3, "rougeL": 0.5, "rougeLsum": 0.5}
    )


def test_lsum_compares_sentence_by_sentence() -> None:
    """By hand: two swapped sentences share half of their words as one sequence, and all sentence by sentence."""
    scores = values("Dogs ran home. Cats sat still.", "Cats sat still. Dogs ran home.")
    assert scores == pytest.approx({"rouge1": 1.0, "rouge2": 0.8, "rougeL": 0.5, "rougeLsum": 1.0})


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        # 버 스 왔 다 of 버 스 가 왔 다: P 4/4, R 4/5; bigrams 2 of 3 and of 4
        ("버스 왔다", "버스가 왔다", (8 / 9, 4 / 7, 8 / 9, 8 / 9)),
        # 船 が 着 く of 船 は 着 い た: 2 of 4 and of 5, no bigram
        ("船が着く。", "船は着いた。", (4 / 9, 0.0, 4 / 9, 4 / 9)),
        # 渡 轮 到 了 of 渡 轮 晚 到 了: as the Korean pair
        ("渡轮到了", "渡轮晚到了", (8 / 9, 4 / 7, 8 / 9, 8 / 9)),
        # by word: 2 of 2 and of 3, no bigram
        ("паром пришёл", "паром поздно пришёл", (0.8, 0.0, 0.8, 0.8)),
    ],
)
def test_values_in_other_scripts_by_hand(
    output: str, reference: str, expected: tuple[float, ...]
) -> None:
    assert values(output, reference, tokenizer="char") == pytest.approx(
        dict(zip(TYPES, expected, strict=True))
    )
    english = RougeScorer(["rouge1"], use_stemmer=True).score(reference, output)
    assert english["rouge1"].fmeasure == 0.0  # by the rules of the package


def test_an_output_in_another_script_than_its_reference_is_scored() -> None:
    """The English rules would read only `gpt` in the output, with F 2/3. It is one of the output's five tokens."""
    scores = values("버스 왔다 gpt", "gpt bus", tokenizer="char")
    assert scores["rouge1"] == pytest.approx(2 * (1 / 5 * 1 / 2) / (1 / 5 + 1 / 2))


def test_the_script_selects_the_tokenizer() -> None:
    """Values equal those of the tokenizer selected by name. An alphabet without a tokenizer uses `words`."""
    for output, reference in (
        ("버스 왔다", "버스가 왔다"),
        ("паром пришёл", "паром поздно пришёл"),
        ("a bc", "a"),
    ):
        chosen = text.tokenizer_for([output, reference])
        assert values(output, reference) == values(output, reference, tokenizer=chosen)
        assert (
            f"|tok={text.signature(chosen)}|"
            in signatures(Sample("1", "a", output, references=(reference,)))[0]
        )
    assert "|tok=words|" in signatures(Sample("1", "a", "паром", references=("паром",)))[0]


def test_signatures_name_the_rules() -> None:
    english = Sample("1", "a", "x", references=("y",))
    russian = Sample("2", "a", "паром", references=("паром",))
    bare = Sample("3", "a", "паром")
    assert signatures(english, bare) == [
        f"rouge1|f|nrefs=1|stem=en|tok=en|form=nfkc|refs=best|judge {__version__}",
        f"rouge2|f|nrefs=1|stem=en|tok=en|form=nfkc|refs=best|judge {__version__}",
        f"rougeL|f|nrefs=1|stem=en|tok=en|form=nfkc|refs=best|judge {__version__}",
        f"rougeLsum|f|nrefs=1|stem=en|tok=en|form=nfkc|sent=lines-or-stops|refs=best|judge {__version__}",
    ]
    assert "|tok=en+words|" in signatures(russian, english)[0]
    assert "|nrefs=-|stem=-|tok=-|" in signatures()[0]
    for options, part in (
        ({"stem": False}, "rouge1|f|nrefs=1|stem=no|"),
        ({"tokenizer": "char"}, "|tok=char|"),
        ({"multi": "best_recall"}, "|refs=best_recall|"),
        ({"multi": "jackknife"}, "|refs=jackknife|"),
        ({"alpha": 0.2}, "|alpha=0.2|"),
        ({"beta": 2}, "|alpha=0.2|"),
    ):
        result = Rouge(**options).score([Sample("1", "a", "x", references=("y",))])  # type: ignore[arg-type]
        assert part in str(result.columns[0].signature)


def test_signatures_name_alpha_only_if_it_changes_the_value() -> None:
    def signed(*references: str, **options: Any) -> set[str]:
        metric = Rouge(types=["rouge1", "lcs_mead"], alpha=0.2, values="f,p,r", **options)
        columns = metric.score([Sample("1", "a", "the cat sat", references=references)]).columns
        return {column.name for column in columns if "|alpha=0.2|" in str(column.signature)}

    assert signed("the cat") == signed("the cat", "a dog", multi="mean") == {"rouge1", "lcs_mead"}
    names = {f"{kind}{value}" for kind in ("rouge1", "lcs_mead") for value in ("", "_p", "_r")}
    assert signed("the cat", "a dog") == names


def test_signatures_depend_on_the_lists_of_stopwords_and_exceptions(tmp_path: Path) -> None:
    (tmp_path / "x.exc").write_text("men man", encoding="utf-8")
    metrics = [
        Rouge(preset="rouge155", types=["ROUGE-W-1.2"], **options)  # type: ignore[arg-type]
        for options in (
            {},
            {"stopwords": ["the", "a"]},
            {"stopwords": ["the"]},
            {"exceptions": [tmp_path / "x.exc"]},
        )
    ]
    sample = Sample("1", "a", "x", references=("y",))
    plain, two_words, one_word, exceptions = (
        str(metric.score([sample]).columns[0].signature) for metric in metrics
    )
    tail = f"preset=rouge155|judge {__version__}"
    assert (
        plain
        == f"ROUGE-W-1.2|f|nrefs=1|stem=en|tok=rouge155|sent=lines-or-stops|refs=pooled|{tail}"
    )
    assert two_words.startswith(plain.removesuffix(tail) + "stop=")
    assert exceptions.startswith(plain.removesuffix(tail) + "exc=")
    assert two_words != one_word
    assert Rouge(stopwords=["a", "the"]).score([]) == Rouge(stopwords=("the", "a")).score([])


def test_precision_and_recall_have_columns() -> None:
    result = Rouge(types=["rouge1"], values=["p", "r", "f"]).score(
        [Sample("1", "a", "x y", references=("x",))]
    )
    assert [(row.column, row.value) for row in result.rows if isinstance(row, Score)] == [
        ("rouge1_p", 0.5),
        ("rouge1_r", 1.0),
        ("rouge1", pytest.approx(2 / 3)),
    ]
    assert [column.name for column in result.columns] == ["rouge1_p", "rouge1_r", "rouge1"]
    assert str(result.columns[0].signature).startswith("rouge1_p|p|nrefs=1|stem=en|")


@pytest.mark.parametrize("wrong", ["precision", [], ["f", "f"], ["f", "x"], 3])
def test_a_wrong_list_of_values_is_an_error(wrong: Any) -> None:
    with pytest.raises(ConfigError, match=r"rouge\.values must be "):
        Rouge(values=wrong)


@pytest.mark.parametrize("preset", [None, "rouge155"])
def test_a_reference_without_a_token_is_a_failure(preset: str | None) -> None:
    result = Rouge(preset=preset).score(
        [Sample("1", "a", "x", references=("?!", "..."), where="d.jsonl:3")]
    )
    assert len(result.rows) == 4
    for row in result.rows:
        assert isinstance(row, Failure)
        assert (row.item, row.system, row.stage, row.error) == ("1", "a", "metric", "NoTokens")
        assert has_line(row.message, "d.jsonl:3", "2 references without", "chrf")
        assert "nothing to compare" in row.message
    rows = Rouge(preset="rouge155").score([Sample("1", "a", "x", references=("駅",))]).rows
    assert "leave out the preset" in str(rows)


def test_a_note_counts_texts_whose_letters_a_preset_drops() -> None:
    samples = [
        Sample("1", "a", "버스 왔다 gpt", references=("버스가 왔다 gpt", "the café")),
        Sample("1", "b", "a bus", references=("버스가 왔다 gpt", "the café")),
        Sample("2", "a", "버스"),  # no reference, so not counted
    ]
    (note,) = parallel.score_in_parallel(Rouge(preset="rouge155"), samples).notes
    assert has_line(str(note), "rouge: 3 of 4 texts", "beyond a-z", "rouge155")
    for tokenizer in ("char", "en"):
        assert parallel.score_in_parallel(Rouge(tokenizer=tokenizer), samples).notes == ()
    notes = parallel.score_in_parallel(Rouge(), samples).notes
    # A note names the packages for Korean if they are missing.
    assert [str(note)[:7] for note in notes] == ([] if text.installed("ko") else ["Korean "])


@pytest.mark.parametrize(
    ("types", "preset", "short_type"),
    [
        ("rouge1,rouge2,rougeL,rougeSU", None, "rouge2"),
        ("rougeS4", None, "rougeS4"),
        ("ROUGE-1,ROUGE-SU4", "rouge155", "ROUGE-SU4"),
        ("rouge-1,rouge-2,rouge-l", "pltrdy", "rouge-2"),
    ],
)
def test_a_note_counts_outputs_whose_references_are_too_short_for_a_type(
    types: str, preset: str | None, short_type: str
) -> None:
    samples = [
        Sample("1", "a", "Paris", references=("Paris",)),
        Sample("2", "a", "Lyon", references=("Lyon", "in Lyon")),
        Sample("3", "a", "Nice"),  # no reference, so not counted
    ]
    metric = Rouge(types=types, preset=preset)
    (note,) = parallel.score_in_parallel(metric, samples).notes
    assert has_line(str(note), "rouge: 1 of 2 texts have no reference of 2 words", short_type)
    # An equal text scores 0 only where the note says so.
    first = [row for row in metric.score(samples).rows if row.item == "1"]
    zeros = {row.column for row in first if isinstance(row, Score) and row.value == 0}
    assert zeros == {short_type}


def test_scoring_english_imports_no_optional_package() -> None:
    code = (
        "import sys; from judge.metrics.rouge import score; score(['ran'], ['runs'], stem=True);"
        "print([name for name in ('nltk', 'rouge_score', 'numpy', 'MeCab', 'sacrebleu') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_empty_reference_counts_as_in_the_perl_script() -> None:
    """ROUGE-1.5.5 pools an empty second reference, so precision is 3/6. The script crashes on it for ROUGE-W."""
    sample = Sample("1", "a", "the cat sat", references=("the cat sat down", ""))
    metric = Rouge(preset="rouge155", types="ROUGE-1,ROUGE-W-1.2", stem=False, values="r,p,f")
    recall, precision, f, *weighted = metric.score([sample]).rows
    assert [row.value for row in (recall, precision, f) if isinstance(row, Score)] == [
        0.75,
        0.5,
        0.6,
    ]
    assert [row.error for row in weighted if isinstance(row, Failure)] == ["NoTokens"] * 3


@pytest.mark.parametrize("separator", ["\u2028", "\x0c", "\r"])
def test_only_a_line_feed_ends_a_line(separator: str) -> None:
    """rouge-score gives these texts a rougeLsum of 2/3."""
    assert values(f"a b{separator}c d\ne f", "c d a b\ne f")["rougeLsum"] == pytest.approx(2 / 3)
