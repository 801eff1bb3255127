"""A session of pytest: what was said of judges where it was started, who may be asked, and what came of its suites.

Whatever asks a server is refused unless whoever started the tests named the judge.

What a test asks by the fixture `judge`: one text's score, or which of two texts is better.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from judge import criteria, text
from judge.commands.evaluate import Options, evaluate, rank
from judge.commands.judge_models import HEURISTIC
from judge.commands.test import test
from judge.config import Judge
from judge.core.errors import ConfigError, JudgeError
from judge.core.files import locked
from judge.core.messages import escape_controls, format_interval, number, one_line, percent
from judge.core.records import Provenance
from judge.core.redis_url import is_redis_url
from judge.providers.scripted import ScriptedProvider
from judge.results.result import Result
from judge.suite import evaluate as of_suite
from judge.suite.evidence import CaseScores, Undecidable, sum_minus_limit
from judge.suite.records import Case, Order, Suite, Verdict

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
class SuiteSession:
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
                why = f", and this one would ask {one_line(', '.join(refused), 100)}" if refused else ""
                raise ConfigError(_OFFLINE.format(why=why))
        return found

    def _refused(self, model: Any) -> list[str]:
        """Which judges of a panel, or of one, may not be asked: servers whose names nobody typed."""
        each = model if isinstance(model, list | tuple) else [model] if model else []
        return [_name(one) for one in each if not (_offline(one) or _name(one) in self.typed)]

    def exclusive(self, what: object) -> AbstractContextManager[Any]:
        """Holds back other processes that are about to do the same."""
        return nullcontext() if self.shared is None else locked(_place(self.shared, what, "lock"))


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
class SuiteOutcome:
    """What came of a suite: its verdicts, what stands beside them, or why it could not be run."""

    verdicts: tuple[Verdict, ...]
    trouble: str = ""
    warnings: tuple[str, ...] = ()


def run_suite_once(suite: Suite, session: SuiteSession, cases: Collection[str]) -> SuiteOutcome:
    """What comes of these cases of a suite (none: of all), of its limits and its baseline; of other cases too.

    Of several processes one runs it, and the others read what it found: nothing is paid twice.
    """
    if session.shared is None:
        return _tested(suite, session, cases)
    with session.exclusive(suite.path):
        kept = _place(session.shared, suite.path, "json")
        if not kept.exists():
            found = _tested(suite, session, cases)
            told = [asdict(replace(one, estimate=None)) for one in found.verdicts]
            new = kept.with_suffix(".new")
            new.write_text(json.dumps([told, found.trouble, found.warnings]), encoding="utf-8")
            new.replace(kept)
        told, trouble, warnings = json.loads(kept.read_text(encoding="utf-8"))
        return SuiteOutcome(tuple(Verdict(**one) for one in told), trouble, tuple(warnings))


def _tested(suite: Suite, session: SuiteSession, cases: Collection[str]) -> SuiteOutcome:
    try:
        options = session.options(suite.options)
        over: dict[str, Any] = {name: options[name] for name in _ANSWERS if name in options}
        if cases:
            over["cases"] = cases
        (found,) = test([suite.path], **over)
    except JudgeError as error:
        return SuiteOutcome((), "\n".join([str(error), *getattr(error, "__notes__", ())]))
    return SuiteOutcome(found.verdicts, found.trouble, found.warnings)


def unmet_failures(found: Sequence[Verdict]) -> list[str]:
    """What is said of the verdicts that are not met, a text of some lines each: the sentence first."""
    return [_told(one) for one in found if not one.met]


def _told(verdict: Verdict) -> str:
    head = f"{verdict.status}: {verdict.said or verdict.found}"
    what = f"{verdict.criterion}: " if verdict.criterion else ""
    lines = [head, f"  {what}expected {verdict.expected}, found {verdict.found}"]
    lines += [f"  in the baseline: {verdict.before}"] if verdict.before else []
    return "\n".join([*lines, *(f"  {one}" for one in escape_controls(verdict.detail).splitlines())])


T = TypeVar("T")
_TEXT, _BETTER, _WORSE = "text", "better", "worse"
_FIXED = {"data", "criteria", "metrics", "mapping", "set", "workers", "systems", "limit", "out"}
_FIXED |= {"retry_failed", "calibrate", "engine", "ray_workers"}
"""Options of a run that mean nothing for one text."""
_OWN = sorted({"model", *Options.__annotations__} - _FIXED)
_OF_DATA = ("item", "system", "human")


class JudgmentFailed(AssertionError):
    """A judgment without a usable reply. It is no number, and no test passes on it."""


class JudgedScore(float):
    """A text's score, a number like any other: the mean over the draws, or over the scale by probability.

    `low` and `high` are the ends of what the judge's replies leave open (95 %, by Student's t over the draws; the
    bounds of what was not seen of the probability), None where the score is one reply as it is written. `reason` is the
    judge's, None where it gave none; `distribution` the probability, or share of the draws, by label; `label` the
    likeliest. `provenance` has all else.
    """

    criterion: str
    low: float | None
    high: float | None
    provenance: Provenance
    distribution: Mapping[str, float]

    @classmethod
    def of(cls, result: Result, criterion: str) -> JudgedScore:
        """The score of the only text of a result. Raises JudgmentFailed."""
        try:
            scored = CaseScores.for_criterion(result, criterion, [_TEXT])
            score = scored.score(_TEXT, _TEXT)
            if score is None:
                _, detail = scored.lacking([(_TEXT, _TEXT, "")])
                raise JudgmentFailed(f"{one_line(criterion)}: no score. {escape_controls(detail)}")
        except Undecidable as error:
            raise JudgmentFailed(f"{one_line(criterion)}: {error.message}") from None
        found = cls(score.value)
        found.criterion, found.provenance = scored.column.criterion or scored.column.name, score.provenance
        ends = sum_minus_limit(scored.parts(_TEXT, _TEXT)).estimate
        found.low, found.high = ends.low, ends.high
        found.distribution = scored.shares(_TEXT, _TEXT)
        return found

    @property
    def reason(self) -> str | None:
        return self.provenance.reason

    @property
    def label(self) -> str | None:
        return self.provenance.argmax

    def __repr__(self) -> str:
        ends = "" if self.low == self.high else format_interval(self.low, self.high, 2)
        return f"{number(self, 2)} {ends}".rstrip()

    __str__ = float.__repr__

    @property
    def short(self) -> str:
        """`coherence: ` and the judge's reason; where it gave none, what the number is made of."""
        return f"{one_line(self.criterion, 60)}: {one_line(self.reason, 120) if self.reason else self._made}"

    @property
    def explained(self) -> list[str]:
        """How the number came about, a line each."""
        made = f"{one_line(self.criterion)}, by {self.provenance.method}: {self._made}"
        reply = self.reason or self.provenance.raw
        return [made, *([f"{'reason' if self.reason else 'reply'}: {one_line(reply, 500)}"] if reply else [])]

    @property
    def _made(self) -> str:
        shares = [f"{one_line(label, 30)} {percent(share)}" for label, share in self.distribution.items()]
        return ", ".join(shares) or "one number"


class Preference:
    """Whether one text was shown to be better than another; true where it was. `verdict` has the numbers."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    def __bool__(self) -> bool:
        return self.verdict.met

    def __repr__(self) -> str:
        one = self.verdict
        said = f", {one.said}" if one.said else ""
        return f"<{'preferred' if self else 'not preferred'} by {one_line(one.criterion, 60)}: {one.found}{said}>"


class JudgeFixture:
    """The fixture `judge`: what a test asks, by the options of a run in `own`, with paths from `folder` on."""

    def __init__(self, session: SuiteSession, own: Mapping[str, Any], folder: Path) -> None:
        _check(own)
        self._folder = folder
        self._options = session, {name: self._beside(name, value) for name, value in own.items()}

    def __repr__(self) -> str:
        return "judge"

    def score(
        self,
        criterion: str,
        *,
        output: str,
        source: str | None = None,
        references: str | Sequence[str] = (),
        **columns: Any,
    ) -> JudgedScore:
        """The score of a text on a criterion: a built-in name, or a .jinja file from the folder of the test on.

        `columns` are the others that its template reads. Raises JudgmentFailed where there is no score, and JudgeError
        for what is wrong with the criterion, the texts, the options or the endpoint.
        """
        __tracebackhide__ = True
        shared = {**columns, "source": source, "references": references}
        rows = {_TEXT: output}
        return _from_here(
            lambda: JudgedScore.of(self._run(evaluate, criterion, _rows(rows, shared)), Path(criterion).stem)
        )

    def prefers(
        self,
        better: str,
        /,
        over: str,
        *,
        criterion: str,
        source: str | None = None,
        references: str | Sequence[str] = (),
        margin: float = 0.0,
        **columns: Any,
    ) -> Preference:
        """Whether a text is shown to be better than another one, by more than `margin`, as in a suite's case.

        Shown: the whole interval lies above the margin. A criterion that compares two texts is asked in both orders,
        and its win rate (0–1) has to be above 0.5 + `margin`. Of any other it is the difference of the scores (in
        points of the scale) with Student's t over the draws; one reply each, or all of the probability, have no
        interval and are decided by their difference, of which 0 is not better. Raises as `score` does.
        """
        __tracebackhide__ = True
        if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin < inf:
            raise ConfigError(f"margin is a number of points, 0 or more, not {margin!r}")
        shared = {**columns, "source": source, "references": references}
        rows = {_BETTER: better, _WORSE: over}
        return _from_here(lambda: self._preference(criterion, _rows(rows, shared), margin))

    def _preference(self, criterion: str, rows: Sequence[Mapping[str, Any]], margin: float) -> Preference:
        texts = [(_TEXT, _BETTER), (_TEXT, _WORSE)]
        case = Case(_TEXT, 0, Path(criterion).stem, Order(_BETTER, _WORSE, margin))
        if self._compares(criterion, rows):
            verdict = of_suite.evaluate_case(case, texts, None, ranked=self._run(rank, criterion, rows))
        else:
            verdict = of_suite.evaluate_case(case, texts, self._run(evaluate, criterion, rows))
        if verdict.status == "error":
            raise JudgmentFailed(f"{one_line(case.criterion)}: {verdict.said}. {escape_controls(verdict.detail)}")
        return Preference(verdict)

    def _compares(self, criterion: str, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a criterion compares two texts. One that has the name of both kinds judges one, as in a suite."""
        language = self._options[1].get("language") or text.detect_language(str(row["output"]) for row in rows)
        return criteria.load(str(self._beside("", criterion)), language=language, pairwise=None).pairwise

    def _run(self, ask: Callable[..., Result], criterion: str, rows: Sequence[Mapping[str, Any]]) -> Result:
        session, own = self._options
        options = session.options(own)
        criterion = str(self._beside("", criterion))
        with session.exclusive((criterion, rows, sorted(options.items(), key=str))):
            return ask(rows, [criterion], **options, metrics=())

    def _beside(self, name: str, value: Any) -> Any:
        """A path of the test's, as of a recording or a criterion, from its folder on."""
        if isinstance(value, list | tuple):
            return [self._beside(name, one) for one in value]
        if isinstance(value, str) and value.startswith("scripted/"):
            return f"scripted/{self._folder / value.removeprefix('scripted/')}"
        if name == "cache" and is_redis_url(value):
            return value
        is_path = name in ("replay", "record", "cache") or str(value).endswith(".jinja")
        return self._folder / value if is_path and isinstance(value, str | Path) else value


def _check(own: Iterable[str]) -> None:
    """Raises ConfigError for a keyword of the marker that is no option of a run, or none for one text."""
    for name in sorted(own):
        if name in _FIXED:
            raise ConfigError(f"@pytest.mark.judge: {name} is for whole runs, and means nothing for one text")
        if name not in _OWN:
            near = difflib.get_close_matches(name, _OWN, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(_OWN)}"
            raise ConfigError(f"@pytest.mark.judge: unknown key {name!r}; {hint}")


def _rows(outputs: Mapping[str, str], shared: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The texts as data, with the columns they share. Raises ConfigError for columns that tell texts apart."""
    if strange := sorted(shared.keys() & set(_OF_DATA)):
        raise ConfigError(f"{strange[0]}: a text alone has none; it has what its criterion's template reads")
    kept = {name: value for name, value in shared.items() if value is not None and value != ()}
    return [{**kept, "item": _TEXT, "system": system, "output": output} for system, output in outputs.items()]


def _from_here(work: Callable[[], T]) -> T:
    """What it returns; what it raises on purpose comes without the frames it came through, which say nothing here."""
    __tracebackhide__ = True
    try:
        return work()
    except (JudgeError, JudgmentFailed) as error:
        raise error.with_traceback(None) from None
