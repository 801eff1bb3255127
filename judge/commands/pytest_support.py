"""The work of the pytest plugin.

It decides which judges tests may ask, runs suites, and scores texts for the fixture. A test asks a
server only if the judge was typed on the command line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from judge import criteria, text
from judge.commands.evaluate import evaluate, is_named, rank
from judge.commands.test import test
from judge.config import resolve_value, run_options, script_of
from judge.core.criterion_entry import name_of
from judge.core.errors import ConfigError, JudgeError
from judge.core.files import locked
from judge.core.format import (
    escape_controls,
    format_interval,
    number,
    one_line,
    percent,
    plural,
)
from judge.core.messages import FORMER_SYSTEM, two_meanings_of_system
from judge.core.plugins import unknown_name_message
from judge.core.records import Provenance
from judge.core.request_options import Judge
from judge.providers.scripted import ScriptedProvider
from judge.results.result import Result
from judge.suite import evaluate as of_suite
from judge.suite.case import Verdict
from judge.suite.case_scores import CaseScores
from judge.suite.evidence import Undecidable
from judge.suite.mean_tests import sum_minus_limit
from judge.suite.order import Order
from judge.suite.schema import Suite

_JUDGE_KEYS = ("model", "base_url", "replay", "record")
"""Keys that decide who answers. The session settles them, not the suite."""
NOT_JUDGED = (
    "not judged: no request is sent unless --judge-model is typed on the command line"
)
"""The beginning of the reason why a test without a judge is skipped."""
ADVICE = (
    "  --judge-replay CALLS.jsonl   use recorded replies\n"
    "  --judge-model NAME           use this judge, which may cost money; --judge-base-url URL is "
    "its address,\n"
    "                               --judge-record CALLS.jsonl saves its replies for "
    "--judge-replay\n"
    "or write one of these into pytest's ini file, for all tests without a judge:\n"
    "  judge_replay = CALLS.jsonl\n"
    "  judge_model = scripted/replies.yaml"
)
"""How to give tests a judge."""


class NoJudge(ConfigError):
    """A test has no judge that may be asked."""


@dataclass(frozen=True, slots=True)
class SuiteSession:
    """The judges named on the command line and in the ini file; the keys of both are `_JUDGE_KEYS`.

    Only judges in `typed`, which were typed on the command line, may be servers. `shared` is a
    folder that all processes of these tests share, if there are several.
    """

    command: Mapping[str, Any] = field(default_factory=dict)
    ini: Mapping[str, Any] = field(default_factory=dict)
    typed: Collection[str] = ()
    shared: Path | None = None

    def options(self, run_options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of the session, a marker or suite (`run_options`) and the ini file.

        The command line overrides a marker or suite, and a marker or suite overrides the ini file.
        An allowed judge replaces a recording from a lower layer. Raises NoJudge if there is no
        judge, or if one is a server that may not be asked.
        """
        merged: dict[str, Any] = {}
        for layer in (self.ini, run_options, self.command):
            if layer.get("model") and not self._refused(layer["model"]):
                merged.pop("replay", None)
            merged |= layer
        if merged.get("replay") is not None:
            return merged
        model = merged.get("model")
        refused = self._refused(model)
        if refused or not model:
            reason = ""
            if refused:
                reason = f", and this test needs {one_line(', '.join(refused), 100)}"
            raise NoJudge(NOT_JUDGED + reason)
        return merged

    def _refused(self, model: Any) -> list[str]:
        """Return the judges that may not be asked: servers that are not on the command line."""
        models: Sequence[Any] = [model] if model else []
        if isinstance(model, list | tuple):
            models = model
        refused = []
        for judge in models:
            judge_name = _judge_name(judge)
            is_offline = isinstance(judge, ScriptedProvider)
            if is_named(judge):
                is_offline = script_of(judge_name) is not None
            if not is_offline and judge_name not in self.typed:
                refused.append(judge_name)
        return refused

    def exclusive(self, subject: object) -> AbstractContextManager[Any]:
        """Lock out other processes that want to run the same, if there are several processes.

        The first one asks the judge; the others then read its outcome, or its replies in the cache.
        """
        if self.shared is None:
            return nullcontext()
        return locked(_shared_path(self.shared, subject, "lock"))


def _shared_path(shared: Path, subject: object, extension: str) -> Path:
    """Return a file about `subject` that all processes share."""
    description = repr(subject).encode("utf-8", "surrogatepass")
    return shared / f"{hashlib.sha256(description).hexdigest()}.{extension}"


def _judge_name(model: Any) -> str:
    """Return the name of a judge, which may be text, a mapping, a `Judge` or a provider."""
    if isinstance(model, Judge):
        return model.name
    if isinstance(model, Mapping):
        return str(model.get("name"))
    return str(getattr(model, "model", model))


@dataclass(frozen=True, slots=True)
class SuiteOutcome:
    """The verdicts and warnings of a suite, or why it could not be run.

    `trouble` describes a mistake; `without_judge` says that no judge may be asked. Both are "" if
    the suite ran.
    """

    verdicts: tuple[Verdict, ...]
    trouble: str = ""
    without_judge: str = ""
    warnings: tuple[str, ...] = ()


_OUTCOME = TypeAdapter(SuiteOutcome)


def run_suite_once(
    suite: Suite,
    session: SuiteSession,
    cases: Collection[str],
) -> SuiteOutcome:
    """Run these cases of a suite (all if empty), with its limits and baseline.

    The outcome may have other cases, too. If there are several processes, one runs the suite and
    the others read its outcome: nothing is paid twice.
    """
    if session.shared is None:
        return _run_suite(suite, session, cases)
    with session.exclusive(suite.path):
        shared_file = _shared_path(session.shared, suite.path, "json")
        if not shared_file.exists():
            outcome = _run_suite(suite, session, cases)
            # A reply may hold half of a surrogate pair, which `json` escapes and pydantic refuses.
            outcome_json = json.dumps(_OUTCOME.dump_python(outcome))
            # A process that is killed while it writes leaves no half of an outcome.
            unfinished_file = shared_file.with_suffix(".new")
            unfinished_file.write_text(outcome_json, encoding="utf-8")
            unfinished_file.replace(shared_file)
        shared_outcome = json.loads(shared_file.read_text(encoding="utf-8"))
        return _OUTCOME.validate_python(shared_outcome)


def _run_suite(
    suite: Suite, session: SuiteSession, cases: Collection[str]
) -> SuiteOutcome:
    """Run these cases of a suite (all if empty); an error is an outcome, too."""
    try:
        options = session.options(suite.options)
        overrides: dict[str, Any] = {
            option_name: options[option_name]
            for option_name in _JUDGE_KEYS
            if option_name in options
        }
        if cases:
            overrides["cases"] = cases
        (outcome,) = test([suite.path], **overrides)
    except NoJudge as error:
        return SuiteOutcome((), without_judge=str(error))
    except JudgeError as error:
        message_and_notes = [str(error), *getattr(error, "__notes__", ())]
        return SuiteOutcome((), trouble="\n".join(message_and_notes))
    return SuiteOutcome(
        outcome.verdicts, trouble=outcome.trouble, warnings=outcome.warnings
    )


def unmet_failures(verdicts: Sequence[Verdict]) -> list[str]:
    """Describe each verdict that is not met in a few lines; the first one summarises it."""
    unmet = [verdict for verdict in verdicts if not verdict.met]
    return ["\n".join(_unmet_lines(verdict)) for verdict in unmet]


def _unmet_lines(verdict: Verdict) -> Iterator[str]:
    reason = verdict.reason or verdict.found
    yield f"{verdict.status}: {reason}"
    criterion = f"{verdict.criterion}: " if verdict.criterion else ""
    yield f"  {criterion}expected {verdict.expected}, found {verdict.found}"
    if verdict.before:
        yield f"  in the baseline: {verdict.before}"
    for judged in verdict.texts:
        text_name = judged.name or "text"
        output = one_line(judged.output, 200)
        yield f"  {text_name} {judged.score}: {output}"
        if judged.reason:
            yield f"    judge: {one_line(judged.reason, 200)}"
    n_more = verdict.n_texts - len(verdict.texts)
    if n_more:
        more_texts = plural(n_more, "more text")
        yield f"  and {more_texts}"
    for line in escape_controls(verdict.detail).splitlines():
        yield f"  {line}"


# The fixture

T = TypeVar("T")
# The item of all texts, which is also the system of a single one, and the systems of two.
_TEXT = "text"
_BETTER = "better"
_WORSE = "worse"
_WHOLE_RUN_KEYS = {
    "calibrate",
    "criteria",
    "data",
    "engine",
    "limit",
    "metrics",
    "out",
    "ray_workers",
    "set",
    "systems",
    "workers",
}
"""Options of a run that mean nothing for a single text."""
_MARKER_KEYS = run_options("run").keys() - _WHOLE_RUN_KEYS
_RESERVED_COLUMNS = ("item", "system", "human")


class JudgmentFailed(AssertionError):
    """A judgment without a usable reply. It is no number, and no test passes on it."""


class JudgedScore(float):
    """A text's score, a number like any other: the mean over the draws, or over the scale by
    probability.

    `low` and `high` are the 95% interval over the draws (Student's t), or the bounds of unseen
    probability; None for a single reply. `reason` is the judge's, if any; `distribution` has the
    probability or share of draws by label; `label` is the likeliest. `passed` is None for a
    criterion without `pass_at`. `provenance` has the rest.
    """

    criterion: str
    low: float | None
    high: float | None
    provenance: Provenance
    distribution: Mapping[str, float]
    passed: bool | None

    @classmethod
    def of(cls, result: Result, criterion_name: str) -> JudgedScore:
        """Return the score of the only text of a result. Raises JudgmentFailed."""
        title = one_line(criterion_name)
        try:
            scored = CaseScores.for_criterion(result, criterion_name, [_TEXT])
            score = scored.score(_TEXT, _TEXT)
            if score is None:
                _, detail = scored.describe_missing([(_TEXT, _TEXT, "")])
                if result.info.requests.failed_cached:
                    detail += (
                        "\nThe reply is stored: @pytest.mark.judge(retry_failed=True) asks for a "
                        "new one."
                    )
                printable_detail = escape_controls(detail)
                raise JudgmentFailed(f"{title}: no score. {printable_detail}")
        except Undecidable as error:
            raise JudgmentFailed(f"{title}: {error.message}") from None
        judged = cls(score.value)
        judged.criterion = scored.column.criterion or scored.column.name
        judged.provenance = score.provenance
        interval = sum_minus_limit(scored.parts(_TEXT, _TEXT)).estimate
        judged.low = interval.low
        judged.high = interval.high
        judged.distribution = scored.shares(_TEXT, _TEXT)
        judged.passed = scored.column.passes(score.value)
        return judged

    @property
    def reason(self) -> str | None:
        return self.provenance.reason

    @property
    def label(self) -> str | None:
        return self.provenance.argmax

    def __repr__(self) -> str:
        value = number(self, 2)
        if self.low == self.high:
            return value
        interval = format_interval(self.low, self.high, 2)
        return f"{value} {interval}".rstrip()

    # Without the interval that `__repr__` adds: as text, too, it is a number like any other.
    __str__ = float.__repr__

    @property
    def short(self) -> str:
        """Return the criterion and the judge's reason, or without one the distribution."""
        criterion = one_line(self.criterion, 60)
        explanation = one_line(self.reason, 120) if self.reason else self._composition
        return f"{criterion}: {explanation}"

    @property
    def explained(self) -> list[str]:
        """Return lines that say how the judge scored: the method, the labels, and its reply."""
        criterion = one_line(self.criterion)
        lines = [f"{criterion}, by {self.provenance.method}: {self._composition}"]
        if self.reason:
            lines.append(f"reason: {one_line(self.reason, 500)}")
        elif self.provenance.raw:
            lines.append(f"reply: {one_line(self.provenance.raw, 500)}")
        return lines

    @property
    def _composition(self) -> str:
        """What the score is made of: `4 30%, 5 70%`, or `one number` if it has no labels."""
        shares = []
        for label, share in self.distribution.items():
            label_on_one_line = one_line(label, 30)
            shares.append(f"{label_on_one_line} {percent(share)}")
        return ", ".join(shares) or "one number"


class Preference:
    """Whether one text was shown to be better than another, as a truth value. `verdict` has the
    numbers.
    """

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    def __bool__(self) -> bool:
        return self.verdict.met

    def __repr__(self) -> str:
        verdict = self.verdict
        remark = f", {verdict.reason}" if verdict.reason else ""
        word = "preferred" if self else "not preferred"
        criterion = one_line(verdict.criterion, 60)
        return f"<{word} by {criterion}: {verdict.found}{remark}>"


class JudgeFixture:
    """The fixture `judge`: score and compare texts with the options of a run; paths are relative to
    `folder`.
    """

    def __init__(
        self,
        session: SuiteSession,
        run_options: Mapping[str, Any],
        folder: Path,
    ) -> None:
        if FORMER_SYSTEM in run_options:
            meanings = two_meanings_of_system(
                "system_message='TEXT'", "judge.score(..., system='NAME')"
            )
            raise ConfigError(f"@pytest.mark.judge: {FORMER_SYSTEM}: {meanings}")
        unknown = sorted(run_options.keys() - _MARKER_KEYS)
        if unknown:
            message = unknown_name_message("key", unknown[0], sorted(_MARKER_KEYS))
            raise ConfigError(f"@pytest.mark.judge: {message}")
        self._session = session
        self._folder = folder
        self._options = {
            option_name: resolve_value(option_name, value, folder)
            for option_name, value in run_options.items()
        }

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
        """Score a text on a criterion: a name, a sentence, or a file relative to the folder of the
        test.

        `columns` are other columns that its template reads. Raises JudgmentFailed if there is no
        score, and JudgeError for mistakes in the criterion, the texts, the options or the endpoint.
        """
        __tracebackhide__ = True
        shared = {**columns, "source": source, "references": references}

        def judge_text() -> JudgedScore:
            rows = _rows({_TEXT: output}, shared)
            result = self._run(evaluate, criterion, rows)
            return JudgedScore.of(result, name_of(criterion))

        return _for_test(judge_text)

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
        """Return whether a text is shown to be better than another one by more than `margin`, as in
        a suite's case.

        The whole interval must be above the margin. A pairwise criterion is judged in both orders,
        and its win rate (0–1) must be above 0.5 + `margin`. Otherwise it is the difference of the
        scores in points of the scale, with Student's t over the draws; without draws the difference
        itself decides. Raises as `score` does.
        """
        __tracebackhide__ = True
        is_number = isinstance(margin, int | float) and not isinstance(margin, bool)
        if not is_number or not 0 <= margin < inf:
            rule = "margin is a number of points, 0 or more"
            raise ConfigError(f"{rule}, not {margin!r}")
        shared = {**columns, "source": source, "references": references}

        def compare_texts() -> Preference:
            rows = _rows({_BETTER: better, _WORSE: over}, shared)
            return self._preference(criterion, rows, margin)

        return _for_test(compare_texts)

    def _preference(
        self,
        criterion: str,
        rows: Sequence[Mapping[str, Any]],
        margin: float,
    ) -> Preference:
        """Decide as a suite's case of order does. `rows` are the better and the worse text."""
        texts = [(_TEXT, _BETTER), (_TEXT, _WORSE)]
        case = Order(
            name=_TEXT,
            criterion=criterion,
            better=_BETTER,
            worse=_WORSE,
            margin=margin,
        )
        language = self._options.get("language")
        if not language:
            language = text.detect_language(str(row["output"]) for row in rows)
        # If both kinds of criteria have this name, it is the one for single texts, as in a suite.
        loaded = criteria.load(self._path(criterion), language=language, pairwise=None)
        if loaded.pairwise:
            ranked = self._run(rank, criterion, rows)
            verdict = of_suite.evaluate_case(case, texts, None, ranked=ranked)
        else:
            result = self._run(evaluate, criterion, rows)
            verdict = of_suite.evaluate_case(case, texts, result)
        if verdict.status == "error":
            title = one_line(case.stem())
            detail = escape_controls(verdict.detail)
            raise JudgmentFailed(f"{title}: {verdict.reason}. {detail}")
        # A verdict names the file, as its suite does.
        return Preference(replace(verdict, criterion=case.stem()))

    def _path(self, criterion: str) -> str:
        """Return the path of a criterion in the tests' folder, or a built-in name."""
        (path,) = resolve_value("criteria", [criterion], self._folder)
        return str(path)

    def _run(
        self,
        ask: Callable[..., Result],
        criterion: str,
        rows: Sequence[Mapping[str, Any]],
    ) -> Result:
        """Judge the rows with `ask`, which is `evaluate` or `rank`."""
        options = self._session.options(self._options)
        path_or_name = self._path(criterion)
        # Sorted, because equal options in another order are the same run.
        subject = (path_or_name, rows, sorted(options.items()))
        with self._session.exclusive(subject):
            return ask(rows, [path_or_name], **options, metrics=())


def _rows(
    outputs: Mapping[str, str], shared: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the texts as data rows with their shared columns.

    Raises ConfigError for reserved columns.
    """
    reserved = sorted(shared.keys() & set(_RESERVED_COLUMNS))
    if reserved:
        raise ConfigError(
            f"{reserved[0]}: a single text has no such column; pass those of the criterion's "
            "template"
        )
    shared_columns = {
        column_name: value
        for column_name, value in shared.items()
        if value is not None and value != ()
    }
    return [
        {**shared_columns, "item": _TEXT, "system": system, "output": output}
        for system, output in outputs.items()
    ]


def _for_test(work: Callable[[], T]) -> T:
    """Return the result of the work; skip the test if there is no judge.

    An error of judge loses judge's own frames, so that pytest shows the test's line.
    """
    import pytest

    __tracebackhide__ = True
    try:
        return work()
    except NoJudge as error:
        pytest.skip(str(error))
    except (JudgeError, JudgmentFailed) as error:
        raise error.with_traceback(None) from None
