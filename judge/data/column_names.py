"""Names that data have for the columns of answers, and for the fields of a text."""

from __future__ import annotations

REQUEST_COLUMNS = ("request", "question", "query", "prompt", "instruction", "user_input")
"""Columns with the request, the first one before the others. Ragas writes `user_input`."""
PASSAGE_COLUMNS = (
    "passages",
    "contexts",
    "context",
    "documents",
    "retrieved_contexts",
    "retrieval_context",
)
"""Columns with the passages. Ragas writes `retrieved_contexts`, DeepEval `retrieval_context`."""
REFERENCE_COLUMNS = ("expected", "expected_answer", "ground_truth", "gold", "target", "solution")
"""Columns that probably have the reference answer. They count only if they are mapped."""
COLUMN_GUESSES = {
    "output": (
        "summary",
        "prediction",
        "response",
        "answer",
        "generated",
        "hypothesis",
        "candidate",
        "text",
    ),
    "item": ("doc_id", "item_id", "document_id", "example_id"),
}
"""Columns that probably are a field. A message proposes them."""
