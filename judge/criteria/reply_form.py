"""How a run asks for the reply to a criterion."""

from __future__ import annotations

from dataclasses import replace

from judge.config import RunConfig
from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.core.records import Criterion


def configured(criterion: Criterion, config: RunConfig) -> Criterion:
    """Return the criterion with the kind and form of reply that a run's configuration wants.

    Raises ConfigError for a checklist that would have another kind of reply.
    """
    form = "json" if config.structured else criterion.form
    if not criterion.is_checklist:
        return replace(criterion, reply=config.reply or criterion.reply, form=form)
    if config.reply not in (None, "score"):
        raise ConfigError(
            f"{option('reply', config.reply)}: the answers of the checklist {criterion.name} are "
            "yes or no alone; put reply: into the headers of the other criteria"
        )
    return replace(criterion, form=form)


def asked_by(criterion: Criterion, *, decides: bool) -> Criterion:
    """Return the criterion in the form that a judge is asked.

    `decides` tells that the judge is an endpoint of typed questions, which gets the material and
    the question separately.
    """
    return replace(criterion, form="decision") if decides else criterion
