"""`judge.label`: the Python form of `judge label`."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.commands.evaluate import Criteria, to_config
from judge.commands.label.command import Labelling
from judge.commands.label.preparation import prepare_labelling
from judge.commands.label.server import LabelServer
from judge.commands.public import public_api
from judge.config import RankConfig, RunConfig, split
from judge.data.row_filters import Values

if TYPE_CHECKING:
    import pandas as pd

    from judge.commands.evaluate import Data

_POLL_SECONDS = 0.2
_GRACE_SECONDS = 10.0
"""Seconds after the last rating in which a rater may still take it back."""


@public_api()
def label(
    data: Data,
    criteria: Criteria | None = None,
    *,
    raters: str | Sequence[str] = (),
    items: int | None = None,
    repeat: float = 0.1,
    pairwise: bool = False,
    output: str | Path = "ratings.jsonl",
    map: Mapping[str, str | Sequence[str]] | None = None,
    systems: str | Sequence[str] | None = None,
    where: Values | None = None,
    limit: int | None = None,
    language: str | None = None,
    seed: int | None = None,
) -> pd.DataFrame:
    """Let people rate texts in the browser, blind and in random order; return their ratings.

    Prints an address on this machine for each of the `raters` and serves it until everything is
    rated, or until you interrupt it. Each rating is saved in the file `output` at once, so the same
    call resumes.

    - `items`: a number of random items.
    - `repeat`: the share of texts that each rater rates twice.
    - `pairwise`: compare two texts.

    The other arguments are those of `judge.evaluate`. The result has a row per rating, for
    `judge.evaluate(..., ratings=...)`. Raises JudgeError.
    """
    options = {
        "map": map,
        "systems": systems,
        "where": where,
        "limit": limit,
        "language": language,
        "seed": seed,
    }
    config_class = RankConfig if pairwise else RunConfig
    # There is no model, because people rate the texts.
    arguments = to_config(config_class, data, criteria, None, options)
    rater_names = split(raters) if isinstance(raters, str) else list(raters)
    labelling = prepare_labelling(
        arguments.config,
        rater_names,
        Path(output),
        data=data,
        loaded_criteria=arguments.custom_criteria,
        items=items,
        pairwise=pairwise,
        repeat=repeat,
    )
    labelling.require_raters()
    # Both raise for a file that cannot be read or written: nobody should rate in vain.
    labelling.ratings()
    labelling.check_output()
    serve(labelling)
    return _frame(labelling)


def serve(labelling: Labelling) -> None:
    """Print the addresses and serve the pages until all is rated, or until Ctrl-C."""
    with LabelServer(labelling) as server:
        # Requests are answered in other threads, because Ctrl-C reaches this one.
        thread = threading.Thread(
            target=server.serve_forever,
            kwargs={"poll_interval": _POLL_SECONDS},
            name="judge-label",
            daemon=True,
        )
        thread.start()
        lines = []
        for rater in labelling.raters:
            address = server.url(rater)
            lines.append(f"{rater}: {address}")
        lines.append(f"Ratings go to {labelling.output}. Interrupt to end.")
        # Printed, not returned, because the raters need the addresses while the call runs.
        print(*lines, sep="\n", flush=True)  # noqa: T201
        try:
            _wait_for_ratings(labelling)
        # Ctrl-C is a regular end: the file has all ratings so far.
        except KeyboardInterrupt:
            pass
        finally:
            server.shutdown()
            thread.join()
    # A request that still writes a rating holds the lock: wait for it.
    with labelling.lock:
        pass


def _wait_for_ratings(labelling: Labelling) -> None:
    """Wait until every rater has rated everything, and then for `_GRACE_SECONDS`.

    Any further rating starts the wait again.
    """
    complete_since: float | None = None
    # No file has this size, so that the ratings of an earlier call are counted.
    former_size = -1
    while complete_since is None or time.monotonic() - complete_since < _GRACE_SECONDS:
        time.sleep(_POLL_SECONDS)
        size = 0
        if labelling.output.exists():
            size = labelling.output.stat().st_size
        # Every rating makes the file longer, also one that is taken back.
        if size == former_size:
            continue
        former_size = size
        progress_of_raters = labelling.progress().values()
        is_complete = all(n_given >= total for n_given, total in progress_of_raters)
        complete_since = time.monotonic() if is_complete else None


def _frame(labelling: Labelling) -> pd.DataFrame:
    """Return the ratings so far, a row for each, in the order of their file."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for rating in labelling.ratings().every:
        row = asdict(rating)
        # The line of the rating in its file is only for error messages.
        del row["where"]
        rows.append(row)
    texts = ["first", "second"] if labelling.pairwise else ["system"]
    columns = ["item", *texts, "rater", "criterion", "value", "repeat", "comment"]
    return pd.DataFrame(rows, columns=columns)
