"""A criterion's file to a `Criterion`, with everything that can be wrong in it found before anything is sent.

A file is a YAML header between two `---` lines and a Jinja template, which mostly extends a layout.
"""

from judge.criteria.draft import drafting, read_steps, with_steps, write_steps
from judge.criteria.loading import HIDDEN, WORDINGS, builtin, check, checked_name, languages, load, reworded, settled
from judge.criteria.template import bodies, builtin_prompts, joint, sources

__all__ = [
    "HIDDEN",
    "WORDINGS",
    "bodies",
    "builtin",
    "builtin_prompts",
    "check",
    "checked_name",
    "drafting",
    "joint",
    "languages",
    "load",
    "read_steps",
    "reworded",
    "settled",
    "sources",
    "with_steps",
    "write_steps",
]
