"""A session of pytest: what was said of judges where it was started, who may be asked, and what came of its suites.

Whatever asks a server is refused unless whoever started the tests named the judge.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from judge.commands.judge_models import HEURISTIC
from judge.commands.test import test
from judge.config import Judge
from judge.core.errors import ConfigError, JudgeError
from judge.core.file_lock import held
from judge.providers.scripted import ScriptedProvider
from judge.report.format import clean, line
from judge.suite.records import Suite, Verdict

_ANSWERS = ("model", "base_url", "replay", "record")
"""Who answers: settled here, and not by the rules of a suite."""
_OFFLINE = (
    "no test asks a server unless --judge-model is typed on the command line{why}. Type one of these:\n"
    "  --judge-replay CALLS.jsonl   a recording answers\n"
    "  --judge-model NAME           that judge is asked, which may cost money; --judge-base-url URL is where,\n"
    "                               --judge-record CALLS.jsonl keeps the replies for --judge-replay\n"
    "or write a line into pytest's ini file, for all tests that name no judge:\n"
    "  judge_replay = CALLS.jsonl\n"
    "  judge_model = scripted/replies.yaml"
)


@dataclass(frozen=True, slots=True)
class Session:
    """What was said of judges where the tests were started (`command`: the keys of `_ANSWERS`) and in an ini file.

    `typed` are the judges that whoever started them typed: these may be asked, though they be servers. `shared` is a
    folder of all processes that run these tests, where there are several.
    """

    command: Mapping[str, Any] = field(default_factory=dict)
    ini: Mapping[str, Any] = field(default_factory=dict)
    typed: Collection[str] = ()
    shared: Path | None = None

    def options(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a run: `own` (a marker's, a suite's) before those of the ini file, the command's before all.

        A judge that may be asked comes before a recording of a farther place. Raises ConfigError where a server would
        be asked that may not be.
        """
        found: dict[str, Any] = {}
        for layer in (self.ini, own, self.command):
            if layer.get("model") and not self._refused(layer["model"]):
                found.pop("replay", None)
            found |= layer
        if found.get("replay") is None:
            model = found.get("model")
            refused = self._refused(model)
            if refused or not model:
                why = f", and this one would ask {line(', '.join(refused), 100)}" if refused else ""
                raise ConfigError(_OFFLINE.format(why=why))
        return found

    def _refused(self, model: Any) -> list[str]:
        """Which judges of a panel, or of one, may not be asked: servers whose names nobody typed."""
        each = model if isinstance(model, list | tuple) else [model] if model else []
        return [_name(one) for one in each if not (_offline(one) or _name(one) in self.typed)]

    def alone(self, what: object) -> AbstractContextManager[Any]:
        """Holds back other processes that are about to do the same."""
        return nullcontext() if self.shared is None else held(_place(self.shared, what, "lock"))


def _place(shared: Path, what: object, kind: str) -> Path:
    """A file of all processes about something."""
    return shared / f"{hashlib.sha256(repr(what).encode('utf-8', 'surrogatepass')).hexdigest()}.{kind}"


def _offline(model: Any) -> bool:
    """Whether a judge asks no server: scripted replies, the heuristic."""
    if not isinstance(model, str | Mapping | Judge):
        return isinstance(model, ScriptedProvider)
    return _name(model) == HEURISTIC or _name(model).startswith("scripted/")


def _name(model: Any) -> str:
    """What a judge is called: a name, a mapping with one, a `config.Judge` or a provider."""
    if isinstance(model, Judge):
        return model.name
    return str(model.get("name") if isinstance(model, Mapping) else getattr(model, "model", model))


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a suite: its verdicts, what stands beside them, or why it could not be run."""

    verdicts: tuple[Verdict, ...]
    trouble: str = ""
    warnings: tuple[str, ...] = ()


def verdicts(suite: Suite, session: Session, cases: Collection[str]) -> Found:
    """What comes of these cases of a suite (none: of all), of its limits and its baseline; of other cases too.

    Of several processes one runs it, and the others read what it found: nothing is paid twice.
    """
    if session.shared is None:
        return _tested(suite, session, cases)
    with session.alone(suite.path):
        kept = _place(session.shared, suite.path, "json")
        if not kept.exists():
            found = _tested(suite, session, cases)
            told = [asdict(replace(one, estimate=None)) for one in found.verdicts]
            new = kept.with_suffix(".new")
            new.write_text(json.dumps([told, found.trouble, found.warnings]), encoding="utf-8")
            new.replace(kept)
        told, trouble, warnings = json.loads(kept.read_text(encoding="utf-8"))
        return Found(tuple(Verdict(**one) for one in told), trouble, tuple(warnings))


def _tested(suite: Suite, session: Session, cases: Collection[str]) -> Found:
    try:
        options = session.options(suite.options)
        over: dict[str, Any] = {name: options[name] for name in _ANSWERS if name in options}
        if cases:
            over["cases"] = cases
        (found,) = test([suite.path], **over)
    except JudgeError as error:
        return Found((), "\n".join([str(error), *getattr(error, "__notes__", ())]))
    return Found(found.verdicts, found.trouble, found.warnings)


def unmet(found: Sequence[Verdict]) -> list[str]:
    """What is said of the verdicts that are not met, a text of some lines each: the sentence first."""
    return [_told(one) for one in found if not one.met]


def _told(verdict: Verdict) -> str:
    head = f"{verdict.status}: {verdict.said or verdict.found}"
    what = f"{verdict.criterion}: " if verdict.criterion else ""
    lines = [head, f"  {what}expected {verdict.expected}, found {verdict.found}"]
    lines += [f"  in the baseline: {verdict.before}"] if verdict.before else []
    return "\n".join([*lines, *(f"  {one}" for one in clean(verdict.detail).splitlines())])
