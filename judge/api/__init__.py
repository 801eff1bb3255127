"""The stages of a run in their order, and the only place where sync meets async."""

from judge.api.entry import Options, evaluate, evaluate_async
from judge.api.stages import Prepared, prepare, prompt, run

__all__ = ["Options", "Prepared", "evaluate", "evaluate_async", "prepare", "prompt", "run"]
