"""A judge whose replies were recorded: read from a file, offline."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge import recording
from judge.errors import ConfigError, DataError, Refused
from judge.recording import Recording
from judge.records import Request, Response, Usage
from judge.registry import unknown


class ReplayProvider:
    """Answers what was asked when the recording was made, and refuses everything else, saying what differs.

    `decides` where all that the model was asked were typed questions. Nothing it answers costs anything: the usage is
    that of today, not of the recording. `draws` are the most that a prompt has.
    """

    name = "replay"

    def __init__(self, path: Path, model: str, recorded: Recording, digest: str) -> None:
        self.model = model
        self.endpoint = f"replay:{digest[:12]}"
        self.decides = _asks(recorded, model)
        self.notice = recorded.note or f"Recorded replies ({path.name}): no model was asked in this run."
        self.draws = recorded.draws
        self._path, self._recorded = path, recorded

    @property
    def learned(self) -> dict[str, Any]:
        return {}

    async def complete(self, request: Request) -> Response:
        """The recorded reply. Raises Refused where there is none."""
        asked = request.params.get("questions", [None])
        each = [replace(request, params={"questions": [q]}) for q in asked] if len(asked) > 1 else [request]
        found = [response for one in each for response in self._recorded.find(one)]
        if len(found) < (len(asked) if self.decides else 1):
            raise Refused(
                f"{self._path.name} does not hold the reply: {self._recorded.explain(each[0])}\n"
                "Record it anew with --model NAME --record CALLS.jsonl",
                stops="if_first",
            )
        unmet = dict.fromkeys(name for one in found for name in one.unmet)
        return Response(tuple(c for one in found for c in one.choices), Usage(), found[0].served_by, tuple(unmet))

    async def aclose(self) -> None:
        return


def replayed(path: Path, models: Sequence[str]) -> list[ReplayProvider]:
    """A provider for each of these models, or for all that were recorded. Raises DataError and ConfigError."""
    recorded = recording.read(path)
    if not recorded.replies:
        raise DataError(f"recording {path}: it holds no replies")
    for model in models:
        if model not in recorded.models:
            raise ConfigError(f"--replay {path}: {unknown('model', model, list(recorded.models))}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return [ReplayProvider(path, model, recorded, digest) for model in models or recorded.models]


def _asks(recorded: Recording, model: str) -> bool:
    params = [call.params for call in recorded.replies if call.model == model]
    return bool(params) and all('"questions"' in one for one in params)
