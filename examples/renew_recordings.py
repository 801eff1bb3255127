"""Write the examples' recordings anew after a change of the prompts: each prompt gets the replies of the nearest one.

python examples/renew_recordings.py    # then read the diff
"""

from __future__ import annotations

from pathlib import Path

import judge
from judge.config import load_config
from judge.core.records import Request, Response
from judge.providers import recording


def renew(plan_file: Path) -> None:
    """One example's recording. Raises SystemExit where some of its replies would go to no prompt."""
    config = load_config(plan_file)
    if config.replay is None or config.data is None:
        return
    entries, taken = [*recording.entries(config.replay)], set()
    old = {entry.line.call: entry.line.replies for entry in entries if entry.line}

    def script(request: Request) -> Response:
        call = recording.nearest(request, old)
        taken.add(call)
        draws = range(request.draw, request.draw + int(request.params.get("n", 1)))
        return Response(tuple(old[call][draw].choices[0] for draw in draws))

    new = config.replay.with_suffix(".new")
    new.write_bytes(b"".join(entry.raw for entry in entries if entry.note))
    asked = {"reply": config.reply, "weighting": config.weighting, "draws": config.draws}
    model = judge.ScriptedProvider(script, model=next(iter(old)).model)
    judge.evaluate(config.data, config.criteria, model=model, metrics=[], cache=False, record=new, **asked)
    if left := len(old) - len(taken):
        new.unlink()
        raise SystemExit(f"{config.replay}: {left} recorded prompts are nearest to none that the plan asks")
    new.replace(config.replay)


if __name__ == "__main__":
    for found in sorted(Path(__file__).parent.glob("*/run.yaml")):
        renew(found)
