"""A finished run in the folder that a new one is going to write into."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from judge.config import Plan
from judge.table import RUN

_HOW = {
    "out", "cache", "replay", "record", "workers", "key_env", "base_url", "max_concurrency", "timeout", "retries",
    "rpm", "tpm", "deadline", "budget", "engine", "ray_workers", "retry_failed",
}  # fmt: skip
"""Keys of a plan that change how a run goes, and not what it finds out."""


def replaced(made: Plan) -> str:
    """That the run in a plan's folder, which asked something else, is replaced; nothing where there is none."""
    if made.out is None or (found := _finished(made.out)) is None:
        return ""
    had, has = found.get("plan") or {}, made.model_dump(mode="json", by_alias=True, exclude_none=True)
    keys = [key for key in {**has, **had} if key not in _HOW and had.get(key) != has.get(key)]
    if not keys:
        return ""
    when = str(found.get("started") or "")[:16].replace("T", " ")
    of = f" of {when}" if when else ""
    return f"{made.out} has a finished run{of} with other {', '.join(keys)}, which this one replaces."


def _finished(folder: Path) -> dict[str, Any] | None:
    """What a finished run in a folder says of itself; None where none is there, or none that can be read."""
    try:
        info = json.loads((folder / RUN).read_bytes())["info"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return info if isinstance(info, dict) and info.get("status") == "complete" else None
