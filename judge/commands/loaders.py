"""What a program reads: runs, data, criteria, and the prompt that a text makes of a criterion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge import criteria, text
from judge.commands.public import door
from judge.core.errors import ConfigError, StorageError
from judge.core.messages import option
from judge.core.records import Criterion, Sample
from judge.criteria.render import Renderer
from judge.data import samples
from judge.results.result import Result, load

if TYPE_CHECKING:
    import pandas as pd

    Row = Sample | Mapping[str, Any] | pd.Series[Any]

load_criterion = door()(criteria.load)
load_samples = door()(samples.load)


@door()
def load_result(folder: str | Path) -> Result:
    """The result in the folder of a run or a ranking; of a run that was killed, what it had, marked "partial".

    Raises StorageError where there is none, and where a file is damaged or of a newer judge.
    """
    folder = Path(folder)
    if (folder / "card.json").exists():
        raise StorageError(
            f"{folder}: an audit is kept here: card.html, card.md and card.json are its card, and the run of the "
            f"changed texts is {folder / 'changed'}"
        )
    inside = sorted(path.parent for path in folder.glob("*/run.json"))
    if inside and not (folder / "run.json").exists() and not (folder / "journal.jsonl").exists():
        raise StorageError(f"{folder}: no run, but a folder of runs: {', '.join(map(str, inside[:10]))}")
    return load(folder)


@door()
def render(
    criterion: str | Path | Criterion,
    sample: Row,
    rival: Row | str | None = None,
    *,
    map: Mapping[str, str] = {},
    language: str | None = None,
) -> str:
    """The text of the prompt that a criterion makes of a sample, or of a row of one's data. Asks no model.

    A criterion that compares two texts also needs the `rival`: its text, or its sample or row. `map` names the columns
    of rows, as in `judge.evaluate`; `language` is that of the prompt, by default the text's own.

    Raises JudgeError.
    """
    first = _sample(sample, map)
    named = language or text.language([first.output, first.source or ""])
    if isinstance(criterion, Criterion):
        found = criteria.settled(criterion)
    else:
        found = criteria.load(criterion, language=named, pairwise=None)
    if found.pairwise and rival is None:
        raise ConfigError(f"{found.name} compares two texts: give the other one as rival")
    if rival is not None and not found.pairwise:
        raise ConfigError(f"{found.name} judges one text: leave out the rival")
    other = replace(first, output=rival, system="rival") if isinstance(rival, str) else rival
    pair = [first, *([] if other is None else [_sample(other, map)])]
    criteria.check(found, pair)
    prompt = Renderer(found, criteria.bodies(found)).render(*pair)
    return "\n\n".join(message["content"] for message in prompt.messages)


def _sample(given: Row, mapping: Mapping[str, str]) -> Sample:
    if isinstance(given, Sample):
        return given
    if hasattr(given, "to_dict") and not isinstance(given, Mapping):  # a row of a DataFrame
        given = {str(name): value for name, value in given.to_dict().items()}
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"a prompt is made of a Sample or a row (a dict, or a row of a DataFrame: frame.iloc[0]), not of a "
            f"{type(given).__name__}; {option('map')} names the columns"
        )
    (found,) = samples.load([given], mapping=mapping)
    return found
