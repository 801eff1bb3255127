"""The models of the back end `models` of QAGS: find them and check them before they are loaded."""

from __future__ import annotations

from pathlib import Path

from judge.core import huggingface

GENERATOR = "generator"
READER = "reader"
HEADS = {GENERATOR: "AutoModelForSeq2SeqLM", READER: "AutoModelForQuestionAnswering"}


def locate(role: str, model: str, cache: Path | None = None) -> huggingface.ModelFiles:
    """Return the files of a folder or of a name on the hub, downloading those that are missing.

    Raises ConfigError for a model that is unavailable or incomplete, and for a reader that was not
    trained to answer.
    """
    files = huggingface.resolve(model, who="qags", role=role, cache=cache)
    # Checked now, because a reader is loaded only after all questions have been generated.
    if role == READER:
        advice = "name a model trained for extractive question answering (SQuAD)"
        files.check_head(
            "QuestionAnswering", f"which was not made to answer questions: {advice}"
        )
    return files
