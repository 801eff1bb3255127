"""The provider that reads recorded replies from a file, offline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.core.errors import ConfigError, DataError, Unrecorded
from judge.core.plugins import unknown_name_message
from judge.core.records import Request, Response, Usage
from judge.providers.recording import RecordingFile, journals

_MAX_EXPLAINED = 20
"""Misses of which it is said what differs: finding that takes longer than all the rest."""


class ReplayProvider:
    """Answers what was asked when the recording was made, and refuses everything else, saying what differs.

    `decides` where all that the model was asked were typed questions, `exact` where any of it named its labels. Nothing
    it answers costs anything: the usage is that of today, not of the recording. `draws` are the most that a prompt has.
    """

    name = "replay"
    splits_merged_criteria = True
    """Each criterion of a merged prompt was recorded by itself."""

    def __init__(self, path: Path, model: str, recorded: RecordingFile) -> None:
        self.model = model
        self.endpoint = f"replay:{recorded.digest[:12]}"
        self.decides, self.full_distribution = recorded.decides(model), recorded.exact(model)
        self.notice = recorded.note or f"Recorded replies ({path.name}): no model was asked in this run."
        self.draws = recorded.draws
        self._path, self._recorded = path, recorded
        self._explained = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it again where the same file is."""
        return _rebuild, (self._path.absolute(), self.model)

    @property
    def learned(self) -> dict[str, Any]:
        return {}

    async def complete(self, request: Request) -> Response:
        """The recorded reply. Raises Unrecorded where there is none."""
        questions = request.params.get("questions", [None])
        each = [replace(request, params={"questions": [q]}) for q in questions] if len(questions) > 1 else [request]
        responses = [response for part in each for response in self._recorded.find(part)]
        if len(responses) < (len(questions) if self.decides else 1):
            self._explained += 1
            why = f"another prompt was recorded, or none (the first {_MAX_EXPLAINED} failures say what differs)"
            if self._explained <= _MAX_EXPLAINED:
                why = self._recorded.explain(each[0])
            raise Unrecorded(
                f"{self._path.name} does not hold the reply: {why}\n"
                f"Record it anew with --model {self.model} --record {self._path}",
                stops="if_first",
            )
        unmet = dict.fromkeys(name for response in responses for name in response.unmet)
        return Response(
            tuple(c for response in responses for c in response.choices), Usage(), responses[0].served_by, tuple(unmet)
        )

    async def aclose(self) -> None:
        return


def _rebuild(path: Path, model: str) -> ReplayProvider:
    return replayed(path, [model])[0]


def replayed(path: Path, models: Sequence[str]) -> list[ReplayProvider]:
    """A provider for each of these models, or for all that were recorded. Raises DataError and ConfigError.

    What a run that was killed, or is still going, has recorded so far lies beside the file and is replayed too.
    """
    recorded = RecordingFile([path, *journals(path)], strict=True)
    if not recorded:
        raise DataError(f"recording {path}: it holds no replies")
    if servers := recorded.ambiguous_servers:
        raise DataError(
            f"recording {path}: it holds replies of two servers to one prompt, {' and '.join(servers)}: "
            "judge cache export --base-url URL writes those of one"
        )
    for model in models:
        if model not in recorded.models:
            raise ConfigError(f"--replay {path}: {unknown_name_message('model', model, list(recorded.models))}")
    return [ReplayProvider(path, model, recorded) for model in models or recorded.models]
