"""Test the contract of every registered metric."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge import text
from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Sample, Score
from judge.metrics import Metric, Note, cider, meteor, parallel, rouge
from judge.metrics.claims.verifier import Job
from tests.factories import has_line

TEXTS = [
    "The ferry reached the harbour three hours late.",
    "배가 오후 늦게 항구에 도착했다.",
    "船は午後遅くに港へ着いた。",
    "渡轮下午很晚才到达港口。",
    "Паром пришёл в порт поздно вечером.",
    "وصلت العبارة إلى الميناء متأخرة",
]
ANY_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=40),  # lone surrogates as well
    st.lists(st.sampled_from(" ".join(TEXTS).split()), max_size=10).map(" ".join),
)
REFERENCES = st.lists(ANY_TEXT, max_size=3)
HEAVY = {"bertscore": pytest.mark.torch}
OF_TEXTS = ("rouge", "bleu", "chrf", "ter", "meteor", "bertscore")
"""Those that compare each text with its references, whatever the other texts."""


def marked(names: Any) -> list[Any]:
    return [
        pytest.param(name, marks=HEAVY.get(name if isinstance(name, str) else name[0], ()))
        for name in names
    ]


WITH_MODEL = {"nli", "qags"}
"""Those that measure nothing before a model is named."""
with_each = pytest.mark.parametrize(
    "name", marked(name for name in plugins.METRICS if name not in WITH_MODEL)
)
with_each_unloaded = pytest.mark.parametrize("name", plugins.METRICS)
with_comparing = pytest.mark.parametrize("name", marked(OF_TEXTS))
# Each call of the heavy ones loads a model; tests/metrics/bertscore feeds them odd texts in one call.
with_each_light = pytest.mark.parametrize(
    "name", [name for name in plugins.METRICS if name not in {*HEAVY, *WITH_MODEL}]
)
with_comparing_light = pytest.mark.parametrize(
    "name", [name for name in OF_TEXTS if name not in HEAVY]
)
with_any_text = settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])


class Sure:
    """A verifier that gives every claim a probability of 1."""

    signature = "sure 1"

    def verify(self, jobs: Sequence[Job]) -> list[list[float]]:
        return [[1.0] * len(job.claims) for job in jobs]


def metric(name: str) -> Metric:
    options = {"unit": "sentence", "verify": Sure()} if name == "claims" else {}
    loaded: Metric = plugins.load("metrics", name)(**options)
    return loaded


def values(name: str, output: str, *references: str) -> list[float]:
    rows = metric(name).score([Sample("1", "a", output, references=references)]).rows
    return [row.value for row in rows if isinstance(row, Score)]


def best_value(column: Column) -> float | None:
    return column.high if column.better == "higher" else column.low


@with_each_unloaded
def test_every_metric_has_a_one_sentence_summary(name: str) -> None:
    kind = plugins.load("metrics", name)
    assert 20 < len((kind.__doc__ or "").partition("\n\n")[0]) < 240


@with_each
def test_columns_are_signed_and_bounded(name: str) -> None:
    columns = metric(name).score([Sample("1", "a", "x", source="z", references=("y",))]).columns
    assert len({column.name for column in columns}) == len(columns) > 0
    for column in columns:
        assert column.kind == "metric"
        assert str(column.signature).split("|")[0] == column.name
        assert str(column.signature)[-1].isdigit()  # the version that made it
        assert column.low is not None or column.name.startswith(
            "bertscore"
        )  # cosines may be below 0


@with_each
def test_rows_of_samples_come_before_rows_of_whole_systems(name: str) -> None:
    samples = [
        Sample("1", "a", TEXTS[0], source=TEXTS[0], references=(TEXTS[0],)),
        Sample("1", "b", TEXTS[1]),
        Sample("2", "a", "", references=(TEXTS[2], "")),
    ]
    result = metric(name).score(samples)
    columns = [column.name for column in result.columns]
    of_texts = [
        column
        for column in columns
        if any(row.column == column and row.item for row in result.rows)
    ]
    expected = [(s.item, s.system, column) for s in samples for column in of_texts]
    expected += [
        ("", system, column) for system in "ab" for column in columns if column not in of_texts
    ]
    assert [(row.item, row.system, row.column) for row in result.rows] == expected
    assert all(row.provenance.method == "metric" for row in result.rows if isinstance(row, Score))
    assert metric(name).score(samples) == result


@with_each
def test_empty_samples_give_no_rows(name: str) -> None:
    result = metric(name).score([])
    assert result.rows == ()
    assert result.columns


@pytest.mark.parametrize("name", [n for n in plugins.METRICS if plugins.load("metrics", n).rowwise])
def test_a_rowwise_metric_gives_the_same_rows_in_parts_and_after_pickling(name: str) -> None:
    samples = [
        Sample(
            str(n),
            "a",
            TEXTS[n % 6],
            source=TEXTS[n % 5],
            references=(TEXTS[n % 4], TEXTS[n % 3])[: n % 3],
        )
        for n in range(12)
    ]
    scorer = metric(name)
    whole = scorer.score(samples)
    unpickled = pickle.loads(pickle.dumps(scorer))
    in_parts = parallel.merge_results([unpickled.score(samples[:7]), unpickled.score(samples[7:])])
    assert in_parts.rows == whole.rows
    assert list(map(signature_parts, in_parts.columns)) == list(map(signature_parts, whole.columns))


def signature_parts(column: Column) -> set[str]:
    return set(str(column.signature).replace("|", "+").split("+"))


@with_comparing
@pytest.mark.parametrize(
    ("references", "message"), [((), "no reference:"), (("", " \n"), "only blank references:")]
)
def test_a_missing_reference_is_a_failure(
    name: str, references: tuple[str, ...], message: str
) -> None:
    result = metric(name).score([Sample("7", "a", "x", references=references, where="d.jsonl:3")])
    assert len(result.rows) == len(result.columns)
    for row in result.rows:
        assert isinstance(row, Failure)
        assert (row.item, row.system, row.stage, row.error) == ("7", "a", "metric", "NoReference")
        assert row.message.startswith("d.jsonl:3 has " + message)
        assert "--map references=COLUMN" in row.message
    (first, *_) = metric(name).score([Sample("7", "a", "x")]).rows
    assert isinstance(first, Failure)
    assert first.message.startswith("item 7 has no reference")


@pytest.mark.parametrize("name", [name for name in OF_TEXTS if name not in ("bertscore", "ter")])
def test_an_empty_output_has_the_lowest_score(name: str) -> None:
    columns = metric(name).score([]).columns
    for output in ("", " \n"):
        assert values(name, output, TEXTS[0]) == [column.low for column in columns]


@with_comparing
def test_equal_texts_have_the_best_score(name: str) -> None:
    for whole in TEXTS:
        check_equal_texts_have_the_best_score(name, whole)


def check_equal_texts_have_the_best_score(name: str, whole: str) -> None:
    columns = metric(name).score([]).columns
    if name == "bertscore" and whole in TEXTS[1:]:
        rows = metric(name).score([Sample("1", "a", whole, references=(whole,))]).rows
        assert {row.error for row in rows if isinstance(row, Failure)} == {"UnknownText"}, (
            "MiniLM is a model of English"
        )
        return
    scores = values(name, whole, "x y z", whole)
    # METEOR deducts a little even for a single chunk.
    tolerance = 0.01 if name == "meteor" else 1e-5
    assert scores == pytest.approx([best_value(column) for column in columns], abs=tolerance)


@with_each_light
@with_any_text
@given(output=ANY_TEXT, source=ANY_TEXT, references=REFERENCES)
def test_any_text_scores_in_range_or_fails_with_a_message(
    name: str, output: str, source: str, references: list[str]
) -> None:
    samples = [
        Sample(item, "a", text, source=source, references=tuple(references))
        for item, text in (("1", output), ("2", source), ("3", "the ferry came late"))
    ]
    result = metric(name).score(samples)
    ends = {column.name: (column.low, column.high) for column in result.columns}
    assert result.rows
    for row in result.rows:
        if isinstance(row, Failure):
            assert row.stage == "metric"
            assert row.error.isalpha()
            assert len(row.message) > 20
        else:
            low, high = ends[row.column]
            assert low is None or low <= row.value
            assert high is None or row.value <= high


@with_comparing_light
@with_any_text
@given(
    output=ANY_TEXT,
    orders=st.lists(ANY_TEXT, min_size=2, max_size=4).flatmap(
        lambda r: st.tuples(st.just(r), st.permutations(r))
    ),
)
def test_order_of_references_does_not_matter(
    name: str, output: str, orders: tuple[list[str], list[str]]
) -> None:
    assert values(name, output, *orders[0]) == pytest.approx(
        values(name, output, *orders[1]), abs=1e-6
    )


@with_comparing
def test_blank_references_do_not_count(name: str) -> None:
    scores = values(name, TEXTS[0], "", "The ferry came late.", " ")
    assert scores == pytest.approx(values(name, TEXTS[0], "The ferry came late."), abs=1e-6)


OF_WORDS = ("rouge", "meteor", "cider", "stats")
"""Those that cut words by `judge.text`, which normalises."""
WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)} | {0x20: 0x3000}
FORMS: dict[str, Callable[[str], str]] = {
    "NFC": lambda line: normalize("NFC", line),
    "NFD": lambda line: normalize("NFD", line),
    "full width": lambda line: line.translate(WIDE),
}
NATIVE = [
    "배가 오후 늦게 항구에 도착했다. 승객은 3시간을 기다렸다.",
    "フェリーは午後遅くに港へ着いた。ガムを買った。",
    "Die Fähre lief spät ein. Müller fuhr über Köln.",
    "क़ानून की भाषा बदल गई। नाव देर से आई।",
    "The ferry came late. It ran 3 hours late.",
    "Phà đến bến muộn. Hành khách chờ ba giờ.",
]


@pytest.mark.parametrize("name", OF_WORDS)
@given(
    form=st.sampled_from(sorted(FORMS)),
    lines=st.lists(st.sampled_from(NATIVE), min_size=2, max_size=4, unique=True),
)
def test_every_unicode_form_scores_the_same(name: str, form: str, lines: list[str]) -> None:
    """There are two or more items, as CIDEr needs two."""
    plain = [
        Sample(str(n), "a", line, f"{lines[n - 1]} {line}", (line,)) for n, line in enumerate(lines)
    ]
    in_form = [replace(sample, output=FORMS[form](sample.output)) for sample in plain]
    assert metric(name).score(in_form).rows == metric(name).score(plain).rows


@pytest.mark.parametrize("name", ["bleu", "bleu_corpus", "chrf", "ter", "source_bleu"])
def test_metrics_of_sacrebleu_note_texts_in_unequal_unicode_forms(name: str) -> None:
    def notes(output: str, *references: str) -> list[str]:
        samples = [Sample("1", "a", output, source=references[0], references=references)]
        return [
            str(note)
            for note in metric(name).score(samples).notes
            if isinstance(note, Note) and note.some
        ]

    for line in NATIVE[:3]:
        (note,) = notes(normalize("NFD", line), line)
        assert has_line(note, f"{name}: 1 of 1 texts", "Unicode form")
        assert notes(line, line) == notes(normalize("NFD", line), normalize("NFD", line)) == []
    assert notes("ｆｅｒｒｙ came", "the ferry") != notes("the m² – “ferry”…", "2 ferries") == []


NEAR = [
    ("เรือมาถึงท่าเรือช้ามาก", "เรือมาถึงท่าเรือช้ามากๆ"),
    ("ເຮືອມາຮອດທ່າເຮືອຊ້າ", "ເຮືອມາຮອດທ່າເຮືອຊ້າຫຼາຍ"),
    ("កប៉ាល់មកដល់កំពង់ផែយឺត", "កប៉ាល់មកដល់កំពង់ផែយឺតណាស់"),
    ("သင်္ဘောဆိပ်ကမ်းသို့နောက်ကျမှရောက်", "သင်္ဘောဆိပ်ကမ်းသို့နောက်ကျမှရောက်သည်"),
    ("Die Fähre kam spät in Köln an", "Die Fähre kam sehr spät in Köln an"),
    ("Паром поздно пришёл в старый порт", "Паром очень поздно пришёл в старый порт"),
    ("Το πλοίο έφτασε αργά στο λιμάνι", "Το πλοίο έφτασε πολύ αργά στο λιμάνι"),
    ("وصلت العبارة إلى الميناء متأخرة", "وصلت العبارة إلى الميناء القديم متأخرة"),
    ("המעבורת הגיעה לנמל הישן באיחור", "המעבורת הגיעה לנמל הישן באיחור רב"),
    ("नाव पुराने बंदरगाह पर देर से पहुँची", "नाव पुराने बंदरगाह पर बहुत देर से पहुँची"),
]
CLUSTERED = 4


@pytest.mark.parametrize("name", ["rouge", "bleu", "chrf", "meteor", "cider"])
def test_near_equal_texts_score_in_any_script(name: str) -> None:
    samples = [
        Sample(str(n), "a", output, references=(target,)) for n, (output, target) in enumerate(NEAR)
    ]
    result = metric(name).score(samples)
    ends = {column.name: column.high or 1 for column in result.columns}
    for row in result.rows:
        assert isinstance(row, Score)
        assert row.value > 0.4 * ends[row.column], (NEAR[int(row.item)], row)
    counts = [
        note.some for note in result.notes if isinstance(note, Note) and "Thai, Lao" in str(note)
    ]
    assert counts == ([] if name == "chrf" else [2 * CLUSTERED])
    assert name == "chrf" or "char" in str(result.columns[0].signature)


def test_ter_and_space_tokenizers_note_untokenized_texts() -> None:
    samples = [
        Sample(str(n), "a", output, target, (target,)) for n, (output, target) in enumerate(NEAR)
    ]
    for scorer in (
        metric("ter"),
        *(
            plugins.load("metrics", name)(tokenize="13a")
            for name in ("bleu", "bleu_corpus", "source_bleu", "distinct")
        ),
        *(plugins.load("metrics", name)(tokenizer="words") for name in OF_WORDS),
    ):
        lines = [
            str(note)
            for note in scorer.score(samples).notes
            if isinstance(note, Note) and note.some and "no reference of" not in note.text
        ]
        assert len(lines) == 1, lines
        assert re.search(r": (4|8) of .* not split into words", lines[0])


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("rouge", "tokenizer"),
        ("meteor", "tokenizer"),
        ("cider", "tokenizer"),
        ("stats", "tokenizer"),
        ("bleu", "tokenize"),
        ("bleu_corpus", "tokenize"),
        ("source_bleu", "tokenize"),
        ("distinct", "tokenize"),
        ("self_bleu", "tokenize"),
        ("pairwise_bleu", "tokenize"),
    ],
)
def test_a_note_names_the_packages_of_a_tokenizer_only_if_they_are_missing(
    name: str, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All metrics write the same note, so that a report shows it once."""
    # Some metrics choose one tokenizer for all texts of a system: here one of its language.
    samples = [
        Sample(item, str(number), output, output, references=(output,))
        for number, output in enumerate(TEXTS[:4])
        for item in ("first", "second")
    ]

    def notes(**options: Any) -> list[str]:
        scorer = plugins.load("metrics", name)(**options)
        return [note for note in scorer.score(samples).notes if isinstance(note, str)]

    if text.installed("ja") and text.installed("ko"):
        assert notes() == []
    monkeypatch.setattr("judge.text.tokenizers.find_spec", lambda module: None)
    japanese, korean = sorted(notes())
    assert has_line(japanese, "into characters", "MeCab and ipadic")
    assert has_line(korean, "--set rouge.tokenizer=char", "--set bleu.tokenize=char")
    assert notes(**{option: "char"}) == []
    samples = [sample for sample in samples if sample.system in ("0", "3")]
    assert notes() == [], "English and Chinese need no package"


@pytest.mark.parametrize("module", [rouge, meteor, cider])
def test_the_functions_for_lists_name_the_tokenizers(module: Any) -> None:
    lists = TEXTS[0::3], TEXTS[0::3]  # English and Chinese
    assert module.score(*lists).tokenizers == ("en", "zh")
    assert module.score(*lists, tokenizer="char").tokenizers == ("char",)
    assert pickle.loads(pickle.dumps(module.score(*lists))).tokenizers == ("en", "zh")


def test_umlauts_are_letters() -> None:
    """rouge-score reads both words as `m ller`. A row in English is still scored by its rules."""
    for name in ("rouge", "meteor"):
        assert set(values(name, "Müller", "Möller")) == {0.0}
    assert values("rouge", "Müller won the cup", "Möller won the cup")[0] == 1.0


def _process(code: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def test_importing_a_metric_imports_no_optional_package() -> None:
    heavy = ["numpy", "torch", "nltk", "rouge_score", "sacrebleu", "rapidfuzz", "MeCab"]
    code = (
        f"import sys; from judge.core import plugins;"
        f"[plugins.load('metrics', name) and [print(name, each) for each in {heavy} if each in sys.modules]"
        f" for name in {list(plugins.METRICS)}]"
    )
    assert _process(code) == ("", "")


@pytest.mark.parametrize(
    "names",
    marked(
        [
            [n for n in plugins.METRICS if n not in {*HEAVY, *WITH_MODEL, "claims"}],
            *([n] for n in HEAVY),
        ]
    ),
    ids=str,
)
@pytest.mark.slow
def test_scoring_prints_nothing_to_the_terminal(names: list[str]) -> None:
    code = (
        "from judge.core import plugins; from judge.core.records import Sample;"
        "samples = [Sample(str(n), 'a', f'x {n} .', source='y', references=('y .',)) for n in range(150)];"
        f"[plugins.load('metrics', name)().score(samples) for name in {names}]"
    )
    assert _process(code) == ("", "")


_NUMBER, _SWITCH = "must be a whole number from", "must be true or false, not"
_BLEU = {
    "tokenize": ("13b", "must be one of 13a, char, .*, zh, not '13b'"),
    "smooth": ("laplace", "must be one of exp, none, floor, add-k, not 'laplace'"),
    "max_order": (True, f"{_NUMBER} 1 to 9, not True"),
    "lowercase": ("yes", f"{_SWITCH} 'yes'"),
}
WRONG: dict[str, list[tuple[str, Any, str]]] = {
    **{
        name: [(key, *case) for key, case in _BLEU.items()]
        for name in ("bleu", "bleu_corpus", "self_bleu", "source_bleu")
    },
    "chrf": [
        ("char_order", 0, f"{_NUMBER} 1 to 20, not 0"),
        ("word_order", 1.5, f"{_NUMBER} 0 to 10, not 1.5"),
        ("beta", float("nan"), "must be a number from 0 to 100, not nan"),
        ("lowercase", 1, f"{_SWITCH} 1"),
    ],
    "ter": [
        (key, "no", f"{_SWITCH} 'no'")
        for key in ("normalized", "asian_support", "no_punct", "case_sensitive")
    ],
    "meteor": [
        ("alpha", 1.1, "must be a number from 0 to 1, not 1.1"),
        ("beta", "3", "must be a number from 0 to 100, not '3'"),
        ("gamma", True, "must be a number from 0 to 1, not True"),
        ("tokenizer", "engl", "must be one of en, words, char, spaces, ja, ko"),
        ("wordnet", "yes", f"{_SWITCH} 'yes'"),
    ],
    "cider": [
        ("sigma", 0, r"must be a number from 0.01 to 1e\+06, not 0"),
        ("max_order", 10, f"{_NUMBER} 1 to 9, not 10"),
        ("stem", "porter", f"{_SWITCH} 'porter'"),
        ("tokenizer", "xx", "must be one of en, words, char, spaces, ja, ko"),
    ],
    "stats": [
        ("columns", "words,size", "must be one of words, sentences, .*, not 'size'"),
        ("columns", ["words", "words"], "must be `all` or a list of distinct names"),
        ("columns", 3, "must be `all` or a list of distinct names, not 3"),
        ("tokenizer", "word", "must be one of "),
    ],
    "distinct": [
        *(("orders", value, "must be ") for value in (0, [], [1, 1], "2")),
        ("per", "words", "must be one of ngrams, tokens"),
        ("tokenize", "en", "must be one of"),
        ("lowercase", None, _SWITCH),
    ],
    "pairwise_bleu": [
        ("groups", "item", "must be one of source, system"),
        ("effective_order", "no", f"{_SWITCH} 'no'"),
    ],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_option_lists_the_allowed_values(name: str) -> None:
    for option, value, message in WRONG[name]:
        with pytest.raises(ConfigError, match=rf"^{name}\.{option} {message}"):
            plugins.load("metrics", name)(**{option: value})


RANGES = {
    "rouge": ((0, 1, "higher"),) * 4,
    "bleu": ((0, 100, "higher"),),
    "bleu_corpus": ((0, 100, "higher"),),
    "chrf": ((0, 100, "higher"),),
    "ter": ((0, None, "lower"),),  # more edits than words: above 100
    "meteor": ((0, 1, "higher"),),
    "cider": ((0, 10, "higher"),),
    "distinct": ((0, 1, "higher"),) * 4,
    "self_bleu": ((0, 100, "lower"),),
    "pairwise_bleu": ((0, 100, "lower"),) * 2,
    "source_bleu": ((0, 100, ""),),
}


@pytest.mark.parametrize("name", RANGES)
def test_columns_have_the_range_and_direction_of_the_definition(name: str) -> None:
    samples = [
        Sample(f"i{n}", s, f"{s} cat {n} sat", "the cat sat down", ("a cat sat",))
        for n in range(3)
        for s in "ab"
    ]
    columns = metric(name).score(samples).columns
    assert tuple((column.low, column.high, column.better) for column in columns) == RANGES[name]


@pytest.mark.parametrize("name", ["rouge", "meteor", "cider"])
@pytest.mark.parametrize("text", ["🎉", "...", "。"])
def test_a_text_without_words_that_equals_a_reference_has_a_note(name: str, text: str) -> None:
    samples = [
        Sample("1", "a", text, references=(text, "We celebrate in June.")),
        Sample("2", "a", "It rains.", references=("It rains in May.",)),
    ]
    result = metric(name).score(samples)
    (row, *_) = result.rows
    assert isinstance(row, Score)
    assert row.value == 0
    (note,) = [note for note in result.notes if "no words" in str(note)]
    assert has_line(str(note), f"{name}: 1 of 2 texts", "chrf")


@pytest.mark.parametrize("name", ["rouge", "meteor", "cider"])
def test_a_text_with_words_needs_no_note_on_words(name: str) -> None:
    samples = [
        Sample("1", "a", "We celebrate.", references=("We celebrate.", "🎉")),
        Sample("2", "a", "🎉", references=("It rains in May.",)),
    ]
    notes = [note for note in metric(name).score(samples).notes if "no words" in str(note)]
    assert [note.some for note in notes if isinstance(note, Note)] == [0]
