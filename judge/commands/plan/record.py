"""The result of `judge.plan`: the requests, cost and time of a run that has not started."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from judge.core import plugins
from judge.core.budget import Budget
from judge.core.format import plural
from judge.core.messages import speaking_to
from judge.run.request_estimates import JudgePlan, LineEstimate, price_text


@dataclass(frozen=True, repr=False)
class Plan(plugins.Viewed):
    """Requests, cost and time of a run, estimated by `judge.plan`. Nothing was sent.

    - `price`: the sum over the judges, None if one is unknown.
    - `fits`: about how many requests fit into the budget; None without one, without a price, or for
      batches.
    - `by`: what each line of a judge's estimate is about: a criterion, or a run of a judge card.
    - `notes`: what the numbers include.
    - `uncounted`: the metrics that ask a judge. Their requests depend on replies and are not
      counted.
    """

    VIEW: ClassVar[str] = "judge.commands.plan.view:view"

    judges: tuple[JudgePlan, ...]
    price: float | None
    seconds: float | None
    budget: Budget | None
    fits: int | None
    notes: tuple[str, ...] = ()
    by: Literal["criterion", "run"] = "criterion"
    uncounted: tuple[str, ...] = ()

    @property
    def requests(self) -> int:
        """The requests of all judges."""
        return sum(judge.estimate.total.requests for judge in self.judges)

    def __repr__(self) -> str:
        requests = plural(self.requests, "request")
        return f"<Plan: {requests}, {price_text(self.price)}>"

    def report(self, format: str = "console") -> str:
        """Return the plan as console, markdown, html, latex, csv or json. Raises ConfigError
        for another format.
        """
        with speaking_to("python"):
            return plugins.write(plugins.document(self), format, full=True)

    def _repr_html_(self) -> str:
        """Return the plan for notebooks."""
        return f"<pre>{html.escape(self.report())}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON data."""
        fields = asdict(self)
        fields["requests"] = self.requests
        fields["budget"] = str(self.budget) if self.budget else None
        for judge_fields, judge in zip(fields["judges"], self.judges, strict=True):
            estimate = judge.estimate
            estimate_fields = judge_fields.pop("estimate")
            judge_fields["judge"] = estimate.judge
            judge_fields |= estimate_fields
            judge_fields["lines"] = [
                _line_fields(line, self.by) for line in estimate.lines
            ]
            judge_fields["total"] = _line_fields(estimate.total, self.by)
            for internal_field in ("fallback_draws", "fallback_requests", "unit"):
                judge_fields.pop(internal_field)
        return fields


def _line_fields(line: LineEstimate, by: str) -> dict[str, Any]:
    """Return a line of an estimate as plain data, under the name of what it is about."""
    fields = asdict(line)
    return {by: fields.pop("name"), **fields}
