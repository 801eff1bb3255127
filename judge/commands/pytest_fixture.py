"""What a test asks by the fixture `judge`: one text's score, or which of two texts is better."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from judge import criteria, text
from judge.commands.evaluate import Options, evaluate, rank
from judge.commands.pytest_session import Session
from judge.core.errors import ConfigError, JudgeError
from judge.core.records import Provenance
from judge.core.redis_url import is_address
from judge.report.format import clean, line, number, percent, span
from judge.results.result import Result
from judge.suite import evaluate as of_suite
from judge.suite.draws import total
from judge.suite.records import Case, Order, Verdict
from judge.suite.scored import NoScore, Scored

T = TypeVar("T")
_TEXT, _BETTER, _WORSE = "text", "better", "worse"
_FIXED = {"data", "criteria", "metrics", "mapping", "set", "workers", "systems", "limit", "out"}
_FIXED |= {"retry_failed", "calibrate", "engine", "ray_workers"}
"""Options of a run that mean nothing for one text."""
_OWN = sorted({"model", *Options.__annotations__} - _FIXED)
_OF_DATA = ("item", "system", "human")


class JudgmentFailed(AssertionError):
    """A judgment without a usable reply. It is no number, and no test passes on it."""


class Judged(float):
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
    def of(cls, result: Result, criterion: str) -> Judged:
        """The score of the only text of a result. Raises JudgmentFailed."""
        try:
            scored = Scored.of(result, criterion, [_TEXT])
            score = scored.score(_TEXT, _TEXT)
            if score is None:
                _, detail = scored.lacking([(_TEXT, _TEXT, "")])
                raise JudgmentFailed(f"{line(criterion)}: no score. {clean(detail)}")
        except NoScore as error:
            raise JudgmentFailed(f"{line(criterion)}: {error.message}") from None
        found = cls(score.value)
        found.criterion, found.provenance = scored.column.criterion or scored.column.name, score.provenance
        ends = total(scored.parts(_TEXT, _TEXT)).estimate
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
        ends = "" if self.low == self.high else span(self.low, self.high, 2)
        return f"{number(self, 2)} {ends}".rstrip()

    __str__ = float.__repr__

    @property
    def short(self) -> str:
        """`coherence: ` and the judge's reason; where it gave none, what the number is made of."""
        return f"{line(self.criterion, 60)}: {line(self.reason, 120) if self.reason else self._made}"

    @property
    def explained(self) -> list[str]:
        """How the number came about, a line each."""
        made = f"{line(self.criterion)}, by {self.provenance.method}: {self._made}"
        reply = self.reason or self.provenance.raw
        return [made, *([f"{'reason' if self.reason else 'reply'}: {line(reply, 500)}"] if reply else [])]

    @property
    def _made(self) -> str:
        shares = [f"{line(label, 30)} {percent(share)}" for label, share in self.distribution.items()]
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
        return f"<{'preferred' if self else 'not preferred'} by {line(one.criterion, 60)}: {one.found}{said}>"


class Asking:
    """The fixture `judge`: what a test asks, by the options of a run in `own`, with paths from `folder` on."""

    def __init__(self, session: Session, own: Mapping[str, Any], folder: Path) -> None:
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
    ) -> Judged:
        """The score of a text on a criterion: a built-in name, or a .jinja file from the folder of the test on.

        `columns` are the others that its template reads. Raises JudgmentFailed where there is no score, and JudgeError
        for what is wrong with the criterion, the texts, the options or the endpoint.
        """
        __tracebackhide__ = True
        shared = {**columns, "source": source, "references": references}
        rows = {_TEXT: output}
        return _from_here(lambda: Judged.of(self._run(evaluate, criterion, _rows(rows, shared)), Path(criterion).stem))

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
            verdict = of_suite.judge(case, texts, None, ranked=self._run(rank, criterion, rows))
        else:
            verdict = of_suite.judge(case, texts, self._run(evaluate, criterion, rows))
        if verdict.status == "error":
            raise JudgmentFailed(f"{line(case.criterion)}: {verdict.said}. {clean(verdict.detail)}")
        return Preference(verdict)

    def _compares(self, criterion: str, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a criterion compares two texts. One that has the name of both kinds judges one, as in a suite."""
        language = self._options[1].get("language") or text.language(str(row["output"]) for row in rows)
        return criteria.load(str(self._beside("", criterion)), language=language, pairwise=None).pairwise

    def _run(self, ask: Callable[..., Result], criterion: str, rows: Sequence[Mapping[str, Any]]) -> Result:
        session, own = self._options
        options = session.options(own)
        criterion = str(self._beside("", criterion))
        with session.alone((criterion, rows, sorted(options.items(), key=str))):
            return ask(rows, [criterion], **options, metrics=())

    def _beside(self, name: str, value: Any) -> Any:
        """A path of the test's, as of a recording or a criterion, from its folder on."""
        if isinstance(value, list | tuple):
            return [self._beside(name, one) for one in value]
        if isinstance(value, str) and value.startswith("scripted/"):
            return f"scripted/{self._folder / value.removeprefix('scripted/')}"
        if name == "cache" and is_address(value):
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
