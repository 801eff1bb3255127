"""Write the examples' recordings anew after a change of the prompts: each prompt gets the replies of the nearest one.

python examples/renew_recordings.py    # then read the diff
"""

from __future__ import annotations

from pathlib import Path

import judge
from judge import config
from judge.core.records import Request, Response
from judge.providers import recording
from judge.providers.recording import Recording


def renew(plan_file: Path) -> None:
    """One example's recording. Raises SystemExit where some of its replies would go to no prompt."""
    plan = config.plan(plan_file)
    if plan.replay is None or plan.data is None:
        return
    old, taken = recording.read(plan.replay), set()

    def script(request: Request) -> Response:
        call = old.nearest(request)
        taken.add(call)
        draws = range(request.draw, request.draw + int(request.params.get("n", 1)))
        return Response(tuple(old.replies[call][draw].choices[0] for draw in draws))

    new = plan.replay.with_suffix(".new")
    Recording(old.note).save(new)
    asked = {"reply": plan.reply, "weighting": plan.weighting, "draws": plan.draws}
    model = judge.ScriptedProvider(script, model=old.models[0])
    judge.evaluate(plan.data, plan.criteria, model=model, metrics=[], cache=False, record=new, **asked)
    if left := len(old.replies) - len(taken):
        new.unlink()
        raise SystemExit(f"{plan.replay}: {left} recorded prompts are nearest to none that the plan asks")
    new.replace(plan.replay)


if __name__ == "__main__":
    for found in sorted(Path(__file__).parent.glob("*/run.yaml")):
        renew(found)
