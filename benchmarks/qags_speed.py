"""QAGS by models beside a loop that asks the same tiny models one thing at a time: CPU seconds; the answers are equal.

Themes are the three longest words of each output. The loop tokenizes, generates and reads each theme, question and
text by itself through transformers' own functions, and both have loaded their models before the clock starts. One
thread, as threads that wait for one another count as busy.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from common import SHARED, read

import judge.metrics.qags as metric
from judge.metrics.qags.extractive_reader import SPAN, STRIDE, WINDOW
from judge.metrics.qags.question_generator import TEMPLATE

OUTPUTS, THEMES, ROUNDS = 12, 3, 3
BEAMS, QUESTION_TOKENS, INPUT_TOKENS = 4, 32, 128
Pairs = list[tuple[str, str]]


def texts() -> tuple[list[str], Pairs]:
    """Sources with their outputs in one list, and themes with their outputs: those whose input needs no cut."""
    data = read(SHARED / "data" / "qags_cnndm.jsonl")
    short = [row for row in data if len(row["summary"].split()) <= 60][:OUTPUTS]
    asked = [
        (theme, row["summary"])
        for row in short
        for theme in sorted(
            set(re.findall(r"\w+", row["summary"])), key=lambda word: (-len(word), word)
        )[:THEMES]
    ]
    sources = {row["summary"]: row["source"] for row in short}
    return [sources[output] for _, output in asked], asked


def tiny(folder: Path, words: Sequence[str]) -> tuple[str, str]:
    """Folders of a T5 generator and a BERT reader with random weights."""
    import tokenizers
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    pieces = tokenizers.BertWordPieceTokenizer()
    pieces.train_from_iterator(
        words, vocab_size=4000, special_tokens=special, show_progress=False
    )
    (folder / "reader").mkdir()
    pieces.save_model(str(folder / "reader"))
    tokenizer = transformers.BertTokenizer.from_pretrained(str(folder / "reader"))
    torch.manual_seed(1)
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }
    reader = transformers.BertConfig(
        vocab_size=len(tokenizer), initializer_range=0.5, **sizes
    )
    generator = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_heads=4, num_layers=2, initializer_factor=8.0,
        tie_word_embeddings=False, pad_token_id=0, decoder_start_token_id=0, eos_token_id=2,
    )  # fmt: skip
    for name, model in (
        ("reader", transformers.BertForQuestionAnswering(reader)),
        ("generator", transformers.T5ForConditionalGeneration(generator)),
    ):
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return str(folder / "generator"), str(folder / "reader")


class Loop:
    """What a script does that takes one theme after the other."""

    def __init__(self, generator: str, reader: str) -> None:
        import transformers

        self._words = transformers.AutoTokenizer.from_pretrained(generator)
        self._generator = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            generator
        ).eval()
        self._pieces = transformers.AutoTokenizer.from_pretrained(reader)
        self._reader = transformers.AutoModelForQuestionAnswering.from_pretrained(
            reader
        ).eval()

    def question(self, theme: str, output: str) -> str:
        import torch

        prompt = TEMPLATE.format(theme=theme, context=output)
        fields = self._words(
            prompt, truncation=True, max_length=INPUT_TOKENS, return_tensors="pt"
        )
        how = {
            "num_beams": BEAMS,
            "max_new_tokens": QUESTION_TOKENS,
            "early_stopping": True,
            "do_sample": False,
        }
        with torch.inference_mode():
            ids = self._generator.generate(
                input_ids=fields["input_ids"],
                attention_mask=fields["attention_mask"],
                **how,
            )
        return str(self._words.decode(ids[0], skip_special_tokens=True)).strip()

    def answer(self, question: str, text: str) -> str:
        import torch

        fields = self._pieces(
            question, text, truncation="only_second", max_length=WINDOW, stride=STRIDE, padding=True,
            return_overflowing_tokens=True, return_offsets_mapping=True, return_tensors="pt",
        )  # fmt: skip
        names = ("input_ids", "attention_mask", "token_type_ids")
        with torch.inference_mode():
            found = self._reader(**{name: fields[name] for name in names})
        best, answer, null = float("-inf"), "", float("inf")
        for n, offsets in enumerate(fields["offset_mapping"].tolist()):
            start, end = found.start_logits[n].double(), found.end_logits[n].double()
            told = torch.tensor([place == 1 for place in fields.sequence_ids(n)])
            spans = (start[:, None] + end[None, :]).triu().tril(SPAN - 1)
            allowed = (told[:, None] & told[None, :]).triu().tril(SPAN - 1)
            spans[~allowed] = float("-inf")
            first, last = divmod(int(spans.argmax()), len(offsets))
            if float(spans[first, last]) > best:
                best, answer = (
                    float(spans[first, last]),
                    text[offsets[first][0] : offsets[last][1]].strip(),
                )
            null = min(null, float(start[0] + end[0]))
        return "" if null > best else answer


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of one call, those of its threads too, and what it gave."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def rows() -> Iterator[tuple[str, str, str, str]]:
    """What was done, our CPU seconds, the loop's, and how many times ours go into the loop's."""
    import torch

    sources, asked = texts()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = tiny(Path(folder), [*sources, *(output for _, output in asked)])
        questions, answers = metric.open_models(
            metric.Qags(
                backend="models", questions=paths[0], answers=paths[1], device="cpu"
            )
        )
        loop = Loop(*paths)
        written = questions.questions(asked)
        pairs = list(zip(map(str, written), sources, strict=True))
        pairs += list(
            zip(map(str, written), (output for _, output in asked), strict=True)
        )
        answers.answers(pairs[:1])
        stages: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
            (
                f"{len(asked)} questions, beam {BEAMS}",
                lambda: questions.questions(asked),
                lambda: [loop.question(*one) for one in asked],
            ),
            (
                f"{len(pairs)} answers from sources and outputs",
                lambda: answers.answers(pairs),
                lambda: [loop.answer(*one) for one in pairs],
            ),
        ]
        yield from compared(stages)
    torch.set_num_threads(threads)


def compared(
    stages: Sequence[tuple[str, Callable[[], Any], Callable[[], Any]]],
) -> Iterator[tuple[str, str, str, str]]:
    """A row for each stage and one for all together; medians of rounds in turn."""
    whole = [0.0, 0.0]
    for what, ours, theirs in stages:
        taken: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            (mine, found), (other, wanted) = seconds(ours), seconds(theirs)
            taken[0].append(mine)
            taken[1].append(other)
            if found != wanted:
                raise SystemExit(f"{what}: not what the loop gives")
        middle = [statistics.median(each) for each in taken]
        whole = [total + part for total, part in zip(whole, middle, strict=True)]
        yield row(what, *middle)
    yield row("both", *whole)


def row(what: str, ours: float, theirs: float) -> tuple[str, str, str, str]:
    return (
        f"QAGS by tiny models: {what}",
        f"{ours:.2f} s",
        f"{theirs:.2f} s",
        f"{theirs / ours:.1f} ×",
    )


if __name__ == "__main__":
    for found in rows():
        sys.stdout.write("  ".join(found) + "\n")
