"""Read a criterion's file into a `Criterion`, and find all its errors before anything is sent.

A file is a YAML header between two `---` lines and a Jinja template, which mostly extends a layout.
"""

from judge.criteria.default import (
    builtin_rated,
    default_criteria,
    no_default_of_unwritten,
    proposed_criteria,
)
from judge.criteria.draft import drafting, read_steps
from judge.criteria.header_lists import with_lists, with_values, write_lists
from judge.criteria.loading import (
    PARAPHRASES,
    Task,
    builtin,
    finalize,
    in_language,
    languages,
    load,
    of_file_text,
    paraphrase,
    task_of,
    validate_name,
)
from judge.criteria.own_question import own_question, with_questions
from judge.criteria.sample_checks import check_samples
from judge.criteria.template import (
    builtin_prompts,
    is_packaged,
    shared_layout,
    template_bodies,
    template_texts,
)
from judge.criteria.variables import HIDDEN, reads

__all__ = [
    "HIDDEN",
    "PARAPHRASES",
    "Task",
    "builtin",
    "builtin_prompts",
    "builtin_rated",
    "check_samples",
    "default_criteria",
    "drafting",
    "finalize",
    "in_language",
    "is_packaged",
    "languages",
    "load",
    "no_default_of_unwritten",
    "of_file_text",
    "own_question",
    "paraphrase",
    "proposed_criteria",
    "read_steps",
    "reads",
    "shared_layout",
    "task_of",
    "template_bodies",
    "template_texts",
    "validate_name",
    "with_lists",
    "with_questions",
    "with_values",
    "write_lists",
]
