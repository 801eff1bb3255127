"""Apply the options of a run to a criterion: the kind and form of its reply, and its pass mark."""

from __future__ import annotations

from dataclasses import replace

from judge.config import RunConfig
from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.core.records import Better, Criterion, Scale
from judge.criteria.checklist import yes_no
from judge.criteria.header import pass_value


def configured(criterion: Criterion, config: RunConfig) -> Criterion:
    """Return the criterion with the run's `reply`, `structured` and `pass_at`.

    Raises ConfigError if `reply` changes the replies to a checklist, and for a mark that is not on
    the criterion's scale.
    """
    criterion = with_pass_mark(criterion, config.pass_at)
    form = "json" if config.structured else criterion.form
    if not criterion.is_checklist:
        return replace(criterion, reply=config.reply or criterion.reply, form=form)
    if config.reply not in (None, "score"):
        raise ConfigError(
            f"{option('reply', config.reply)}: the answers of the checklist {criterion.name} are "
            "yes or no, without a reason; put reply: into the headers of the other criteria"
        )
    return replace(criterion, form=form)


def with_pass_mark(criterion: Criterion, mark: float | str | None) -> Criterion:
    """Return the criterion with a pass mark, unless it has one of its own or compares two texts."""
    if mark is None or criterion.pass_at is not None or criterion.pairwise:
        return criterion
    # The value of a checklist is a share of its questions, from 0 to 1.
    scale = yes_no(criterion.language) if criterion.is_checklist else criterion.scale
    value = chosen_pass_value(mark, criterion.name, scale, criterion.better)
    return replace(criterion, pass_at=value)


def chosen_pass_value(
    mark: float | str,
    criterion_name: str,
    scale: Scale,
    better: Better,
) -> float:
    """Return the worst value that passes on a criterion if the option `pass_at` is `mark`.

    Raises ConfigError if the mark is not on the scale.
    """
    try:
        return pass_value(mark, scale, better)
    except ValueError as error:
        pass_option = option("pass_at", mark)
        raise ConfigError(f"{pass_option}: {criterion_name}: {error}") from error


def asked_by(criterion: Criterion, *, decides: bool) -> Criterion:
    """Return the criterion in the form in which a judge is asked.

    With `decides`, the judge is an endpoint of typed questions, which gets the material and the
    question separately.
    """
    return replace(criterion, form="decision") if decides else criterion
