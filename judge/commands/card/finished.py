"""The judge card of a finished run: the lines that its stored scores show, without a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.commands.card.build_card import build_card
from judge.commands.card.card import PROBES, CardEvidence, JudgeCard
from judge.commands.card.lines import FAILURES
from judge.commands.card.people import people_findings, why_no_ratings
from judge.commands.finished_runs import open_run, without_seen_ratings
from judge.commands.validate.command import load_rated
from judge.core.errors import ConfigError
from judge.core.format import listed
from judge.core.messages import card_command, command, option
from judge.data import ledger
from judge.results.result import Result
from judge.stats.alt_test import EPSILON
from judge.stats.correlation import criterion
from judge.table import RUN, Table

if TYPE_CHECKING:
    from judge.data.ratings import RatingSource

ITEMS = 100
"""Items of a card that are judged, unless others are asked for."""
_ALLOWED = ("seed", "where")
"""Options that a card of a finished run takes."""
_FROM_REQUESTS = ("wording", "wording of the criterion", "verbosity", "sentence order")
"""Keys of the probes that a finished run does not show."""


def is_run(source: str | Path) -> bool:
    """Return whether this is the folder of a finished run."""
    return (Path(source) / RUN).is_file()


def refuse_for_finished_run(
    arguments: Mapping[str, Any],
    *,
    items: int,
    probes: str | Sequence[str],
) -> None:
    """Raise ConfigError for an option that needs a new run."""
    set_arguments = {name for name, value in arguments.items() if value is not None}
    refused = set_arguments - set(_ALLOWED)
    if items != ITEMS:
        refused.add("items")
    if probes != PROBES:
        refused.add("probes")
    if refused:
        first_option = option(min(refused))
        raise ConfigError(
            f"{first_option}: the run is finished, and its card asks no judge; name its data to "
            "judge again"
        )


def finished_card(
    source: Result | str | Path,
    *,
    where: Mapping[str, Any] | None = None,
    ratings: RatingSource | None = None,
    rating_criterion: str = "",
    epsilon: float = EPSILON,
    seed: int = 0,
) -> JudgeCard:
    """Return the card of a finished run. Raises JudgeError.

    The arguments are those of `judge.validate`. Lines that need requests are not measured.
    """
    run = open_run(source)
    notes: tuple[str, ...] = ()
    (unseen,) = without_seen_ratings([run])
    # `load_rated` raises an error if no text has a rating.
    if ratings is not None or any(sample.human for sample in unseen.table.samples):
        rated = load_rated(
            (run,), where=where, ratings=ratings, rating_criterion=rating_criterion
        )
        run = rated.runs[0]
        notes = (*rated.banners, *rated.notes)
    elif where:
        run = unseen.where(**where)
    else:
        run = unseen
    evidence = _evidence(run, seed=seed, epsilon=epsilon)
    card = build_card(evidence, {}, (), (), seed=seed)
    all_notes = [*notes, *run.info.notes, *ledger.notes(run.table.samples), *card.notes]
    each_note_once = dict.fromkeys(all_notes)
    data = run.info.data
    info = {
        **card.info,
        "data": {"name": Path(data.path).name, "sha256": data.sha256 or None},
        "endpoint": run.info.base_url or None,
        "date": run.info.started[:10],
    }
    return replace(card, notes=tuple(each_note_once), info=info)


def _evidence(run: Result, *, seed: int, epsilon: float) -> CardEvidence:
    """Return what a finished run shows of its judge."""
    table = run.table
    columns = [column for column in table.columns if column.kind == "criterion"]
    if not columns:
        raise ConfigError("this run has no judge's scores; name a run with a criterion")
    judges = dict.fromkeys(column.judge for column in columns if column.judge)
    if judges:
        names = listed(list(judges))
        raise ConfigError(
            f"a judge card is about one judge, and this run has a panel: {names}. Make a run with "
            "one of them"
        )
    ranked = bool(run.rankings) or table.has_pairs
    model = run.info.model or "judge"
    by_criterion = {criterion(column): column for column in columns}
    people = {}
    if not ranked:
        findings = people_findings(table, model, seed=seed, epsilon=epsilon)
        people = {finding.rated.criterion: finding for finding in findings}
    measures = f"{card_command()} measures it"
    unavailable = dict.fromkeys(_FROM_REQUESTS, measures)
    if not ranked:
        unavailable["position"] = f"the run has no pairs: {measures}"
    else:
        of_ranking = f"the run is a ranking: {measures}"
        for probe in ("length", "self-preference", FAILURES):
            unavailable[probe] = of_ranking
    drawn = {} if ranked else _drawn(run)
    if not drawn:
        unavailable["repeats"] = f"the run has one reply for each text: {measures}"
    no_people = "" if people else why_no_ratings(table)
    if ranked:
        no_people = f"{command('validate')} compares a ranking with people"
    scored_table = None if ranked else table
    return CardEvidence(
        originals=table.samples,
        columns=by_criterion,
        changed=Table((), tuple(columns), ()),  # a finished run has no changed texts
        model=model,
        language=run.info.language_name or "en",
        natural=scored_table,
        repeats=drawn,
        pairs=table if ranked else None,
        judged=(table,),
        unavailable=unavailable,
        not_made=dict.fromkeys(("sensitivity", "injection"), measures),
        texts=scored_table,
        people=people,
        no_people=no_people,
    )


def _drawn(run: Result) -> dict[float, Table]:
    """Return the table by its temperature if texts have several replies, else nothing."""
    if not run.repeats:
        return {}
    # Replies are drawn at temperature 1 unless the run says otherwise.
    temperature = run.info.config.temperature
    if temperature is None:
        temperature = 1.0
    return {temperature: run.table}
