"""ROUGE. Oracles: rouge-score's gold values on SummEval, the package itself, numbers by hand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from judge.metrics.rouge import Rouge
from judge.records import Sample, Score

TYPES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
WORDS = ["the", "running", "runs", "cats", "cat", "sat,", "mats.", "no-one", "ran?", "U.S.", "café"]
ENGLISH = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


def values(output: str, *references: str, **options: bool) -> dict[str, float]:
    rows = Rouge(**options).score([Sample("1", "a", output, references=references)]).rows
    return {row.column: row.value for row in rows if isinstance(row, Score)}


def signatures(*samples: Sample) -> list[str]:
    return [column.signature for column in Rouge().score(samples).columns]


@pytest.mark.parametrize(("stemmer", "variant"), [(True, "stem"), (False, "plain")])
def test_gold_of_rouge_score_on_summeval(shared_data, stemmer: bool, variant: str) -> None:
    """200 summaries against their first reference; rouge-score 0.1.2, rougeLsum with sentences on lines."""
    gold = json.loads(shared_data("gold_google_rouge.json").read_text(encoding="utf-8"))["sample"]
    with shared_data("summeval.jsonl").open(encoding="utf-8") as file:
        rows = {(row["doc_id"], row["system"]): row for row in map(json.loads, file)}
    samples = [
        Sample(g["doc_id"], g["system"], row["summary"], references=(row["references"][0],))
        for g in gold
        for row in [rows[g["doc_id"], g["system"]]]
    ]
    found = Rouge(stemmer=stemmer).score(samples).rows
    assert len(found) == 800
    for row, (item, name) in zip(found, ((g, name) for g in gold for name in TYPES), strict=True):
        assert isinstance(row, Score)
        assert (row.item, row.system, row.column) == (item["doc_id"], item["system"], name)
        assert row.value == pytest.approx(item[variant][name][2], abs=1e-9)


@given(ENGLISH, st.lists(ENGLISH.filter(str.strip), min_size=1, max_size=3), st.booleans())
def test_best_reference_of_the_package_itself(output: str, references: list[str], stemmer: bool) -> None:
    """All but rougeLsum, for which the sentences are ours."""
    package = RougeScorer(TYPES[:3], use_stemmer=stemmer)
    single = [package.score(reference, output) for reference in references]
    found = values(output, *references, stemmer=stemmer)
    for name in TYPES[:3]:
        assert found[name] == pytest.approx(max(scores[name].fmeasure for scores in single), abs=1e-12)


def test_each_type_takes_its_own_best_reference() -> None:
    """By hand: the first reference has all words and no order, the second two of four words in order."""
    found = values("red green blue grey", "grey blue green red", "red green one two")
    assert found == pytest.approx({"rouge1": 1.0, "rouge2": 1 / 3, "rougeL": 0.5, "rougeLsum": 0.5})


def test_lsum_compares_sentence_by_sentence() -> None:
    """By hand: swapped sentences share half in one sequence and everything sentence by sentence."""
    found = values("Dogs ran home. Cats sat still.", "Cats sat still. Dogs ran home.")
    assert found == pytest.approx({"rouge1": 1.0, "rouge2": 0.8, "rougeL": 0.5, "rougeLsum": 1.0})


def test_stemming() -> None:
    assert values("cats", "cat", stemmer=False)["rouge1"] == 0.0
    assert values("cats", "cat")["rouge1"] == 1.0


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
def test_other_scripts_by_hand(output: str, reference: str, expected: tuple[float, ...]) -> None:
    assert values(output, reference) == pytest.approx(dict(zip(TYPES, expected, strict=True)))
    english = RougeScorer(["rouge1"], use_stemmer=True).score(reference, output)
    assert english["rouge1"].fmeasure == 0.0  # what the package's own rules make of them


def test_output_in_another_script_than_its_reference() -> None:
    """English rules would see `gpt` alone in the output (F 2/3); really one of its five tokens is one of two."""
    assert values("버스 왔다 gpt", "gpt bus")["rouge1"] == pytest.approx(2 * (1 / 5 * 1 / 2) / (1 / 5 + 1 / 2))


def test_signatures_say_which_rules_were_used() -> None:
    english = Sample("1", "a", "x", references=("y",))
    korean = Sample("2", "a", "버스", references=("버스",))
    bare = Sample("3", "a", "버스")
    assert signatures(english, bare) == [
        "rouge1|f|stem|tok=en|refs=best|rouge-score 0.1.2",
        "rouge2|f|stem|tok=en|refs=best|rouge-score 0.1.2",
        "rougeL|f|stem|tok=en|refs=best|rouge-score 0.1.2",
        "rougeLsum|f|stem|tok=en|sent=lines-or-stops|refs=best|rouge-score 0.1.2",
    ]
    assert "|tok=char|" in signatures(korean)[0]
    assert "|tok=en+char|" in signatures(korean, english)[0]
    assert Rouge(stemmer=False).score([english]).columns[0].signature.startswith("rouge1|f|nostem|")
