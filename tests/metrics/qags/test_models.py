"""Compare questions and answers by tiny models of random weights with transformers and a search over all spans."""

from __future__ import annotations

import io
import json
import unicodedata
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

import judge.metrics.qags as metric
from judge.core import huggingface, pair_tokenizers
from judge.core.errors import ConfigError, MissingExtra
from judge.core.piece_spans import piece_spans
from judge.metrics.base import MetricContext, ModelQuestion
from judge.metrics.qags import Qags, models
from judge.metrics.qags.extractive_reader import ExtractiveReader
from judge.metrics.qags.pipeline import UNANSWERABLE, ModelError
from judge.metrics.qags.question_generator import TEMPLATE, Generator
from tests.factories import has_line

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

TEXTS = [
    "The river rose by two metres and the bridge was closed.",
    "Only the old road over the hill stayed open, said the mayor.",
    "The bridge will open again on Monday. Rain is likely until Sunday night. The mayor sent people over the hill.",
    "Two metres of water closed a bridge; the mayor sent people over the hill.",
    "On Monday the river fell, and the road was dry.",
]
THEMES = [
    ["river", "two metres", "bridge"],
    ["road", "mayor"],
    ["bridge", "Rain"],
    ["water"],
    ["Monday", "road"],
]
ASKED = [(theme, output) for output, themes in zip(TEXTS, THEMES, strict=True) for theme in themes]
QUESTIONS = [
    "What rose?",
    "Who sent people over the hill?",
    "What was closed on Monday by two metres of water?",
]
PAIRS = [(question, text) for question in QUESTIONS for text in [*TEXTS, " ".join(TEXTS * 2)]]
LENGTH = 8  # of a question, in tokens


@pytest.fixture(scope="session")
def t5(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a T5 with a SentencePiece-like tokenizer."""
    words = sorted({f"▁{word}" for text in [*TEXTS, "answer: context:"] for word in text.split()})
    letters = sorted({letter for word in words for letter in word})
    scored = [
        ("<pad>", 0.0),
        ("</s>", 0.0),
        ("<unk>", 0.0),
        *((w, -5.0) for w in words),
        *((c, -9.0) for c in letters),
    ]
    pieces = tokenizers.Tokenizer(tokenizers.models.Unigram(scored, unk_id=2))
    pieces.pre_tokenizer, pieces.decoder = (
        tokenizers.pre_tokenizers.Metaspace(),
        tokenizers.decoders.Metaspace(),
    )
    pieces.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=pieces, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    torch.manual_seed(1)
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_heads=4, num_layers=2, decoder_start_token_id=0,
        initializer_factor=8.0, tie_word_embeddings=False,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("t5")
    return str(tiny.saved(folder, transformers.T5ForConditionalGeneration(config), tokenizer))


@pytest.fixture(scope="session")
def bert(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a BERT reader with a window of 48 tokens."""
    folder = tmp_path_factory.mktemp("bert")
    tokenizer = tiny.word_pieces(folder, [*TEXTS, *QUESTIONS])
    fields = {"vocab_size": len(tokenizer), "max_position_embeddings": 48, "initializer_range": 0.5}
    return str(
        tiny.saved(folder, tiny.made("Bert", "ForQuestionAnswering", 2, **fields), tokenizer)
    )


@pytest.fixture(scope="session")
def roberta(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a RoBERTa reader with a window of 48 tokens.

    Its tokens are bytes, it has no segments, and two tokens separate question and text.
    """
    folder = tmp_path_factory.mktemp("roberta")
    tokenizer = tiny.byte_pairs(folder, TEXTS)
    fields = {"vocab_size": 400, "max_position_embeddings": 50, "initializer_range": 0.5}
    return str(
        tiny.saved(folder, tiny.made("Roberta", "ForQuestionAnswering", 3, **fields), tokenizer)
    )


@pytest.fixture(scope="session")
def seeker(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a BERT reader of 48 tokens that points at the word `treasure`, or else at [CLS]."""
    folder = tmp_path_factory.mktemp("seeker")
    tokenizer = tiny.word_pieces(folder, [*TEXTS, *QUESTIONS, "treasure"])
    fields = {"vocab_size": len(tokenizer), "max_position_embeddings": 48, "num_hidden_layers": 0}
    model = tiny.made("Bert", "ForQuestionAnswering", 4, **fields)
    with torch.no_grad():
        model.qa_outputs.weight.zero_()
        model.qa_outputs.weight[:, 0] = 1.0
        words = model.bert.embeddings.word_embeddings.weight
        words[tokenizer.convert_tokens_to_ids("treasure"), 0] = 50.0
        words[tokenizer.cls_token_id, 0] = 0.2
    return str(tiny.saved(folder, model, tokenizer))


def generator(folder: str, **options: Any) -> Generator:
    settings = {
        "template": TEMPLATE,
        "beams": 4,
        "question_tokens": LENGTH,
        "input_tokens": 128,
        "device": "cpu",
    } | options
    return Generator(models.locate(models.GENERATOR, folder), **settings)


def reader(folder: str, *, null: bool = False, **options: Any) -> ExtractiveReader:
    return ExtractiveReader(
        models.locate(models.READER, folder), null=null, device="cpu", **options
    )


def opened(questions: str, answers: str, **options: Any) -> tuple[Any, Any]:
    return metric.open_models(
        Qags(
            **{"backend": "models", "questions": questions, "answers": answers, "device": "cpu"}
            | options
        )
    )


def loaded(folder: str, head: str) -> tuple[Any, Any]:
    transformers.utils.logging.disable_progress_bar()
    network = getattr(transformers, head).from_pretrained(folder).eval()
    transformers.utils.logging.enable_progress_bar()
    return transformers.AutoTokenizer.from_pretrained(folder), network


def one_by_one(
    folder: str, pairs: Sequence[tuple[str, str]], beams: int = 4
) -> list[str | ModelError]:
    """Return the question that transformers writes for each theme and output, one at a time."""
    tokenizer, model = loaded(folder, "AutoModelForSeq2SeqLM")
    texts: list[str | ModelError] = []
    for theme, output in pairs:
        ids = torch.tensor([tokenizer.encode(f"answer: {theme} context: {output}")])
        generated = model.generate(
            ids, num_beams=beams, max_new_tokens=LENGTH, early_stopping=beams > 1, do_sample=False
        )
        text = tokenizer.decode(generated[0], skip_special_tokens=True).strip()
        texts.append(text or ModelError("NoQuestion", "the generator wrote nothing"))
    return texts


def by_all_spans(
    folder: str, pairs: Sequence[tuple[str, str]], window: int, stride: int, null: bool
) -> list[str]:
    """Return the best of all spans of all windows. transformers cuts the windows and reads them one at a time."""
    tokenizer, model = loaded(folder, "AutoModelForQuestionAnswering")
    answers = []
    for question, text in pairs:
        encoded = tokenizer(
            question, text, truncation="only_second", max_length=window, stride=stride,
            return_overflowing_tokens=True, return_offsets_mapping=True,
        )  # fmt: skip
        spans, nulls = [], []
        for n in range(len(encoded["input_ids"])):
            names = [
                name
                for name in ("input_ids", "attention_mask", "token_type_ids")
                if name in encoded
            ]
            with torch.inference_mode():
                out = model(**{name: torch.tensor([encoded[name][n]]) for name in names})
            start, end = out.start_logits[0].tolist(), out.end_logits[0].tolist()
            places = [t for t, which in enumerate(encoded.sequence_ids(n)) if which == 1]
            nulls.append(start[0] + end[0])
            spans += [
                (
                    start[a] + end[b],
                    encoded["offset_mapping"][n][a][0],
                    encoded["offset_mapping"][n][b][1],
                )
                for a in places
                for b in places
                if a <= b < a + 30
            ]
        score, first, last = max(spans)
        answers.append("" if null and min(nulls) > score else text[first:last].strip())
    return answers


@pytest.mark.parametrize("beams", [1, 4])
def test_questions_equal_transformers_one_by_one(t5: str, beams: int) -> None:
    written = generator(t5, beams=beams).questions(ASKED)
    assert written == one_by_one(t5, ASKED, beams)
    assert len(set(written)) > len(ASKED) // 2, (
        "the model says the same of everything: nothing was tested"
    )


def test_batches_of_one_give_the_same_questions(t5: str) -> None:
    assert generator(t5, batch_tokens=1).questions(ASKED) == generator(t5).questions(ASKED)


def test_equal_inputs_are_generated_once(t5: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = generator(t5)
    rows: list[int] = []
    generate = writer._generate_batch
    monkeypatch.setattr(
        writer, "_generate_batch", lambda ids: rows.append(len(ids)) or generate(ids)
    )
    questions = writer.questions([*ASKED, *ASKED, (" river ", TEXTS[0])])
    assert sum(rows) == len(ASKED)
    assert questions[: len(ASKED)] == questions[len(ASKED) : -1]
    assert questions[-1] == questions[0]


def test_the_input_is_cut_around_the_themes_sentence(
    t5: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts_sent: list[str] = []
    writer = generator(t5, input_tokens=32)
    monkeypatch.setattr(
        writer,
        "_generate",
        lambda prompts: prompts_sent.extend(prompts) or dict.fromkeys(prompts, "?"),
    )
    writer.questions([("Rain", " ".join(TEXTS * 3)), ("river", TEXTS[0])])
    assert "Rain is likely until Sunday night." in prompts_sent[0]
    assert len(prompts_sent[0]) < 200
    assert 20 <= len(writer._ids(prompts_sent[0])) <= 32
    assert prompts_sent[1] == f"answer: river context: {TEXTS[0]}"


def test_a_template_may_mark_the_theme_inside_the_text(
    t5: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = generator(t5, template="ask: {before}<hl>{theme}<hl>{after}")
    monkeypatch.setattr(writer, "_generate", lambda prompts: {prompt: prompt for prompt in prompts})
    assert writer.questions([("two {after}", "By two {after} it rose.")]) == [
        "ask: By <hl>two {after}<hl> it rose."
    ]
    assert writer.signature != generator(t5).signature


@pytest.mark.parametrize(
    ("written", "question"),
    [
        ("question: Who sang? ", "Who sang?"),
        ("Question：誰が？", "誰が？"),
        ("Question time?", "Question time?"),
    ],
)
def test_a_label_before_a_question_is_dropped(
    t5: str, monkeypatch: pytest.MonkeyPatch, written: str, question: str
) -> None:
    writer = generator(t5)
    monkeypatch.setattr(writer, "_generate", lambda prompts: dict.fromkeys(prompts, written))
    assert writer.questions(ASKED[:1]) == [question]


def test_an_empty_question_is_a_model_error(tiny: Any, t5: str, tmp_path: Path) -> None:
    size = len(transformers.AutoTokenizer.from_pretrained(t5))
    mute = tiny.copied(
        t5, tmp_path, generation_config={"suppress_tokens": [n for n in range(size) if n != 1]}
    )
    assert (
        generator(mute).questions(ASKED[:2])
        == [ModelError("NoQuestion", "the generator wrote nothing")] * 2
    )


def test_a_theme_longer_than_the_input_is_a_model_error(t5: str) -> None:
    long = "river " * 200
    written = generator(t5).questions([(long, f"A {long}."), ("river", f"A {long}.")])
    assert written[0].error == "NoQuestion"
    assert has_line(written[0].message, "theme", "too long")
    assert isinstance(written[1], str)
    assert generator(t5).questions([(long, long)]) == written[:1]
    assert generator(t5).questions([]) == []


@pytest.mark.parametrize(
    "settings",
    [
        {
            "do_sample": True,
            "top_k": 3,
            "top_p": 0.5,
            "temperature": 2.0,
            "num_return_sequences": 2,
        },
        {"num_beams": 1, "max_length": 5, "min_length": 7, "length_penalty": 9.0},
        {"num_beam_groups": 2, "diversity_penalty": 0.5},
        {"stop_strings": ["river"], "no_repeat_ngram_size": 1},
        {"return_dict_in_generate": True, "output_scores": True},
    ],
)
def test_the_generation_config_of_a_model_is_ignored(
    tiny: Any, t5: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], settings: dict[str, Any]
) -> None:
    assert generator(tiny.copied(t5, tmp_path, generation_config=settings)).questions(
        ASKED
    ) == generator(t5).questions(ASKED)
    assert capfd.readouterr() == ("", "")


def test_a_models_window_is_the_limit_of_the_input(
    tiny: Any, t5: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts_sent: list[str] = []
    writer = generator(tiny.copied(t5, tmp_path, tokenizer_config={"model_max_length": 24}))
    monkeypatch.setattr(
        writer,
        "_generate",
        lambda prompts: prompts_sent.extend(prompts) or dict.fromkeys(prompts, "?"),
    )
    writer.questions([("Rain", " ".join(TEXTS * 3))])
    assert 12 <= len(writer._ids(prompts_sent[0])) <= 24


def test_special_tokens_in_a_template_are_tokens_and_in_an_output_text(
    tiny: Any, t5: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = generator(t5, template="{context} <unk> {theme}")
    prompts_sent: list[str] = []
    monkeypatch.setattr(
        writer,
        "_generate",
        lambda prompts: prompts_sent.extend(prompts) or dict.fromkeys(prompts, "?"),
    )
    writer.questions([("river</s>", "The <unk>river</s> rose.<pad>")])
    assert prompts_sent == ["The < unk>river< /s> rose.< pad> <unk> river< /s>"]
    assert [n for n in writer._ids(prompts_sent[0]) if n < 2] == [1], "one end token and no padding"


def test_a_batch_counts_the_tokens_of_each_beam(t5: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = generator(t5, beams=4, batch_tokens=400)
    sizes: list[int] = []
    write = writer._generate_batch
    monkeypatch.setattr(
        writer,
        "_generate_batch",
        lambda ids: sizes.append(len(ids) * len(ids[0]) * 4) or write(ids),
    )
    writer.questions(ASKED)
    assert max(sizes) <= 400
    assert sum(sizes) > 400


def test_out_of_memory_in_the_network_names_the_option(
    tiny: Any, t5: str, bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, answerer = generator(t5), reader(bert)

    def full(*args: Any, **options: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")

    monkeypatch.setattr(writer._model.network, "generate", full)
    monkeypatch.setattr(answerer._model.network, "forward", full)
    with pytest.raises(
        ConfigError,
        match=r"^qags: generator .* memory: set batch_tokens",
    ):
        writer.questions(ASKED)
    with pytest.raises(ConfigError, match=r"^qags: reader .* memory: set batch_tokens"):
        answerer.answers(PAIRS)
    odd = generator(tiny.copied(t5, tmp_path, generation_config={"decoder_start_token_id": 10**6}))
    with pytest.raises(ConfigError, match=r"^qags: generator .* cannot compute"):
        odd.questions(ASKED)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("null", [True, False])
@pytest.mark.parametrize(("window", "stride"), [(48, 12), (32, 5)])
def test_answers_are_the_best_of_all_spans(
    request: pytest.FixtureRequest, kind: str, null: bool, window: int, stride: int
) -> None:
    folder = request.getfixturevalue(kind)
    answers = reader(folder, null=null, window=window, stride=stride).answers(PAIRS)
    assert answers == by_all_spans(folder, PAIRS, window, stride, null)
    assert len(set(answers)) > 3
    assert all(answer in text for answer, (_, text) in zip(answers, PAIRS, strict=True))


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_batches_of_one_give_the_same_answers(request: pytest.FixtureRequest, kind: str) -> None:
    folder = request.getfixturevalue(kind)
    assert reader(folder, batch_tokens=1).answers(PAIRS) == reader(folder).answers(PAIRS)


def test_an_answer_is_read_from_any_window(seeker: str) -> None:
    answerer = reader(seeker, null=True, stride=8)
    filler = "the river rose and the road was open . " * 20
    texts = [f"{filler}Treasure", f"Treasure {filler}", f"{filler}TREASURE {filler}", filler]
    assert answerer.answers([("What rose?", text) for text in texts]) == [
        "Treasure",
        "Treasure",
        "TREASURE",
        UNANSWERABLE,
    ]


def test_a_question_is_unanswerable_only_if_null_is_allowed(seeker: str) -> None:
    pairs = [("What rose?", "The river rose.")]
    assert reader(seeker, null=True).answers(pairs) == [UNANSWERABLE]
    (answer,) = reader(seeker, null=False).answers(pairs)
    assert isinstance(answer, str)
    assert answer
    assert answer in "The river rose."


def test_special_tokens_in_a_text_are_read_as_text(seeker: str) -> None:
    answerer = reader(seeker, null=True)
    text = "[CLS] the river [SEP] rose [PAD]"
    assert not {0, 2, 3} & set(answerer._model.tokenizer.encode("river")[1:-1])
    assert answerer.answers([("[SEP] What rose?", text), ("[CLS]", f"{text} treasure")]) == [
        UNANSWERABLE,
        "treasure",
    ]


def test_a_question_longer_than_the_window_is_a_model_error(bert: str) -> None:
    pairs = [
        ("river " * 60, TEXTS[0]),
        (" ", TEXTS[0]),
        ("What rose?", TEXTS[0]),
        ("river " * 22, TEXTS[0]),
    ]
    answers = reader(bert).answers(pairs)
    assert answers[0].error == "QuestionTooLong"
    assert has_line(answers[0].message, "60 tokens", "22")
    assert answers[1] == ModelError("NoQuestion", "the question is empty")
    assert answers[2:] == by_all_spans(bert, pairs[2:], 48, 11, null=False)


@pytest.mark.parametrize("null", [True, False])
def test_a_blank_text_has_no_answer(bert: str, null: bool) -> None:
    assert (
        reader(bert, null=null).answers([("What rose?", ""), ("What rose?", " \n")])
        == [UNANSWERABLE] * 2
    )
    assert reader(bert, null=null).answers([("What rose?", "\u200b \u200b")]) == [UNANSWERABLE], (
        "no token is left"
    )


def test_nan_scores_are_model_errors(tiny: Any, bert: str, tmp_path: Path) -> None:
    _, model = loaded(bert, "AutoModelForQuestionAnswering")
    with torch.no_grad():
        model.qa_outputs.bias.fill_(float("nan"))
    folder = tiny.copied(bert, tmp_path)
    tiny.saved(Path(folder), model)
    (answer,) = reader(folder).answers(PAIRS[:1])
    assert answer.error == "NoAnswer"
    assert has_line(answer.message, "not numbers")


def test_each_pair_is_read_once_and_counted(bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    progress: list[tuple[int, int]] = []
    answerer = reader(bert, progress=lambda done, total: progress.append((done, total)))
    rows: list[int] = []
    read = huggingface.LoadedModel.outputs

    def counted(self: huggingface.LoadedModel, ids: Any, *names: str, **more: Any) -> Any:
        rows.append(len(ids))
        return read(self, ids, *names, **more)

    monkeypatch.setattr(huggingface.LoadedModel, "outputs", counted)
    pairs = [(question, text) for question in QUESTIONS for text in TEXTS[:2]]
    answers = answerer.answers([*pairs, *pairs])
    assert answers[:6] == answers[6:]
    assert sum(rows) == 6
    assert progress[-1] == (6, 6)


def test_open_returns_both_stages_and_prints_nothing(
    t5: str, bert: str, capfd: pytest.CaptureFixture[str]
) -> None:
    progress: list[tuple[int, int]] = []
    writer, answerer = opened(
        t5,
        bert,
        question_tokens=LENGTH,
        context=MetricContext(progress=lambda *done: progress.append(done)),
    )
    questions = writer.questions([*ASKED, ("lone", "a lone \ud800 surrogate")])
    assert progress[-1] == (len(ASKED) + 1, len(ASKED) + 1)
    assert questions == one_by_one(t5, [*ASKED, ("lone", "a lone \ufffd surrogate")])
    short = [pair for pair in PAIRS if pair[1] in TEXTS]
    assert answerer.answers(short) == by_all_spans(bert, short, 48, 8, null=True)
    assert writer.signature.startswith(f"{Path(t5).name}@")
    assert "|beams=4|in=128|out=8|template=default|torch " in writer.signature
    assert "|null=yes|window=384|stride=128|span=30|torch " in answerer.signature
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"questions": " "}, "questions must be a text"),
        ({"beams": 0}, "beams must be"),
        ({"question_tokens": True}, "question_tokens must be"),
        ({"input_tokens": 2.5}, "input_tokens must be"),
        ({"batch_tokens": 0}, "batch_tokens must be"),
        ({"null": "yes"}, "null must be"),
        ({"device": 0}, "device must be"),
        ({"template": "answer: {theme}"}, "template must contain"),
        ({"template": 3}, "template must be a text"),
    ],
)
def test_a_wrong_option_is_named(t5: str, bert: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^qags(: |.){message}"):
        Qags(**({"backend": "models", "questions": t5, "answers": bert} | options))


def test_a_model_of_another_kind_is_refused(t5: str, bert: str) -> None:
    with pytest.raises(ConfigError, match="T5ForConditionalGeneration"):
        opened(t5, t5)
    writer, _ = opened(bert, bert)
    with pytest.raises(ConfigError, match=r"generator .* cannot be loaded"):
        writer.questions(ASKED)


def test_a_reader_without_its_last_layer_is_refused(tiny: Any, bert: str, tmp_path: Path) -> None:
    _, model = loaded(bert, "AutoModel")
    folder = tiny.copied(bert, tmp_path)
    tiny.saved(tmp_path, model)
    with pytest.raises(ConfigError, match="not made to answer"):
        reader(folder)
    with pytest.raises(ConfigError, match=r"lack qa_outputs"):
        reader(tiny.copied(folder, tmp_path, config={"architectures": None})).answers(PAIRS)


def test_refuses_a_reader_with_an_unusable_tokenizer(
    tiny: Any, bert: str, t5: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface, "backend", lambda tokenizer: None)
    with pytest.raises(ConfigError, match="no token positions"):
        reader(bert).answers(PAIRS)
    monkeypatch.undo()
    tokenizer = transformers.AutoTokenizer.from_pretrained(t5)
    _, model = loaded(bert, "AutoModelForQuestionAnswering")
    with pytest.raises(ConfigError, match=r"\[CLS\] .*null to false"):
        reader(tiny.saved(tmp_path, model, tokenizer), null=True).answers(PAIRS)


def test_a_missing_package_names_the_pip_command(monkeypatch: pytest.MonkeyPatch, t5: str) -> None:
    def absent(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(huggingface, "installed_version", absent)
    huggingface.version.cache_clear()
    with pytest.raises(MissingExtra, match=r"^qags needs.* torch: pip install 'textjudge\[qags\]'"):
        opened(t5, "nobody/reads")


class NoReplies:
    signature = "none"

    def __call__(self, items: Sequence[ModelQuestion]) -> list[str | ModelError]:
        return []


def test_a_column_of_cosines_has_no_low_end(bert: str) -> None:
    metric = Qags(
        context=MetricContext(ask=NoReplies()),
        themes="llm",
        similarity="bertscore,corrected,f1",
        bertscore_model=bert,
        bertscore_layer=1,
    )
    assert [(column.low, column.high) for column in metric.score([]).columns] == [
        (None, 1.0),
        (0.0, 1.0),
        (0.0, 1.0),
    ]


def test_signature_identifies_weights_without_a_path(tiny: Any, t5: str, tmp_path: Path) -> None:
    model_copy = tmp_path / Path(t5).name
    model_copy.mkdir()
    before = generator(tiny.copied(t5, model_copy)).signature
    assert before == generator(t5).signature
    assert str(tmp_path) not in before
    assert (
        generator(
            tiny.copied(t5, model_copy, generation_config={"no_repeat_ngram_size": 2})
        ).signature
        != before
    )


JAPANESE = "古い橋は川の水で閉鎖された。町長は人々を丘の上の道へ送ったが、ﾊﾞｽは宝物を運んだ。"
ASKED_IN_JAPANESE = "何が閉鎖されたか"


@pytest.fixture(scope="session")
def japanese(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a reader that points at 宝物 and does not know 川. Its tokens are MeCab's words without offsets."""
    fugashi, unidic = pytest.importorskip("fugashi"), pytest.importorskip("unidic_lite")
    folder = tmp_path_factory.mktemp("japanese")
    tagger = fugashi.GenericTagger(f'-d "{unidic.DICDIR}" -r "{unidic.DICDIR}/mecabrc"')
    words = {
        word.surface for word in tagger(unicodedata.normalize("NFKC", JAPANESE + ASKED_IN_JAPANESE))
    } - {"川"}
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *sorted(words), "橋", "##橋"]), "utf-8")
    tokenizer = transformers.BertJapaneseTokenizer(
        str(folder / "vocab.txt"),
        word_tokenizer_type="mecab",
        mecab_kwargs={"mecab_dic": "unidic_lite"},
    )
    fields = {
        "vocab_size": len(tokenizer) + 1,
        "max_position_embeddings": 48,
        "num_hidden_layers": 0,
    }
    model = tiny.made("Bert", "ForQuestionAnswering", 4, **fields)
    with torch.no_grad():
        model.qa_outputs.weight.zero_()
        model.qa_outputs.weight[:, 0] = 1.0
        words = model.bert.embeddings.word_embeddings.weight
        words[tokenizer.convert_tokens_to_ids("宝物"), 0] = 50.0
        words[tokenizer.cls_token_id, 0] = 0.2
    return str(tiny.saved(folder, model, tokenizer))


def test_a_reader_without_token_offsets_answers_with_the_words_of_the_text(
    japanese: str,
) -> None:
    answerer = reader(japanese)
    assert not answerer._model.tokenizer.is_fast
    texts = [JAPANESE, JAPANESE.replace("宝物", " 宝物 ") * 3, f"[SEP]{JAPANESE}", "川。"]
    *answers, last = answerer.answers([(ASKED_IN_JAPANESE, text) for text in texts])
    assert answers == ["宝物"] * 3
    assert last in ("川", "。", "川。")
    assert reader(japanese, null=True).answers([(ASKED_IN_JAPANESE, "川。")]) == [UNANSWERABLE]


def test_windows_of_a_slow_tokenizer_contain_every_piece_in_order(japanese: str) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(japanese)
    slow = pair_tokenizers.SlowPairTokenizer(tokenizer)
    windows = slow.windows((ASKED_IN_JAPANESE, JAPANESE), 1, size=24, overlap=4)
    assert len(windows) > 1
    read: list[int] = []
    for window in windows:
        of_text = [n for n, which in enumerate(window.sequence_ids) if which == 1]
        offsets = [window.offsets[n] for n in of_text]
        assert offsets == sorted(offsets)
        ids = [window.ids[n] for n in of_text]
        overlap = next(
            size for size in range(len(ids), -1, -1) if read[len(read) - size :] == ids[:size]
        )
        assert overlap == (4 if read else 0)
        read += ids[overlap:]
        assert len(window.ids) == len(window.type_ids) == len(window.offsets) <= 24
        # The piece has the letters of the text at its offsets.
        for n in of_text:
            start, stop = window.offsets[n]
            piece = tokenizer.convert_ids_to_tokens(window.ids[n])
            if piece != "[UNK]":
                assert unicodedata.normalize("NFKC", JAPANESE[start:stop]) == piece
    assert read == slow.ids(JAPANESE)


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("The Ferry", ["the", "fer", "##ry"], ["The", "Fer", "ry"]),
        ("ﾊﾞｽは来た", ["バス", "は", "来", "##た"], ["ﾊﾞｽ", "は", "来", "た"]),
        ("川と橋", ["[UNK]", "と", "橋"], ["川", "と", "橋"]), ("橋と川", ["橋", "と", "[UNK]"], ["橋", "と", "川"]),
        ("川 山", ["[UNK]", "[UNK]"], ["川 山", "川 山"]), ("が゙cafe\u0301", ["café"], ["cafe\u0301"]),
        ("a b", ["▁a", "▁b"], ["a", "b"]), ("a b", ["a", "x", "b"], ["a", "", "b"]), ("", ["a"], [""]),
        ("##", ["##"], ["##"]), ("a\0b", ["a", "b"], ["a", "b"]),
    ],
)  # fmt: skip
def test_pieces_are_aligned_with_the_text(
    text: str, pieces: list[str], expected: list[str]
) -> None:
    spans = piece_spans(text, pieces, "[UNK]")
    assert [text[start:stop] for start, stop in spans] == expected


def test_a_slow_tokenizer_cuts_the_same_windows_as_a_fast_one(bert: str) -> None:
    """The slow tokenizer has BERT's pieces without their offsets."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    fast = pair_tokenizers.FastPairTokenizer(tokenizer.backend_tokenizer)

    class Slow:
        unk_token, all_special_tokens = tokenizer.unk_token, tokenizer.all_special_tokens
        convert_tokens_to_ids = staticmethod(tokenizer.convert_tokens_to_ids)

        @staticmethod
        def tokenize(text: str, **_: Any) -> list[str]:
            return tokenizer.tokenize(text)

        @staticmethod
        def build_inputs_with_special_tokens(a: list[int], b: list[int]) -> list[int]:
            return [tokenizer.cls_token_id, *a, tokenizer.sep_token_id, *b, tokenizer.sep_token_id]

        @staticmethod
        def create_token_type_ids_from_sequences(a: list[int], b: list[int]) -> list[int]:
            return [0] * (len(a) + 2) + [1] * (len(b) + 1)

    slow = pair_tokenizers.SlowPairTokenizer(Slow())
    for long in (0, 1):
        texts = (QUESTIONS[1], " ".join(TEXTS))[:: 1 if long else -1]
        by_slow, by_fast = (
            [
                (window.ids, window.type_ids, window.sequence_ids, window.offsets)
                for window in each.windows(texts, long, size=30, overlap=6)
            ]
            for each in (slow, fast)
        )
        assert by_slow == by_fast


def test_a_t5_with_only_a_sentencepiece_model_writes_questions(tiny: Any, tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    pytest.importorskip("google.protobuf")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*TEXTS, "answer: context:"] * 20), model_writer=model, vocab_size=80, pad_id=0,
        eos_id=1, unk_id=2, bos_id=-1, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    (tmp_path / "spiece.model").write_bytes(model.getvalue())
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "T5Tokenizer", "extra_ids": 0})
    )
    torch.manual_seed(1)
    config = transformers.T5Config(
        vocab_size=80, d_model=32, d_kv=8, d_ff=64, num_heads=4, num_layers=2, decoder_start_token_id=0,
        initializer_factor=8.0, tie_word_embeddings=False,
    )  # fmt: skip
    folder = tiny.saved(tmp_path, transformers.T5ForConditionalGeneration(config))
    writer = generator(folder)
    written = writer.questions(ASKED)
    assert len({str(each) for each in written}) > 1
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    assert writer._ids("answer: river") == [*processor.encode("answer: river"), 1]


@pytest.mark.parametrize("package", ["fugashi", "unidic_lite", "sentencepiece"])
def test_a_package_missing_for_a_tokenizer_is_named_with_its_extra(
    bert: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(*_: Any, **__: Any) -> None:
        raise ImportError(f"You need to install {package} to use this tokenizer")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lacks)
    with pytest.raises(
        MissingExtra, match=rf"{package.replace('_', '-')}: pip install 'textjudge\[qags\]'"
    ):
        huggingface.load_tokenizer(models.locate(models.READER, bert))
