"""The pytest plugin: `*.judge.yaml` suites are tests, and the fixture `judge` scores texts in tests.

It is offline by default: a test sends requests only if `--judge-model` was typed on the command
line. Importing this module loads nothing else of judge; the first judged test imports the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from judge.commands.pytest_support import JudgeFixture, SuiteOutcome, SuiteSession
    from judge.suite.case import Verdict

_SUITE = ".judge.yaml"
_MODEL = "--judge-model"
_ADDRESS = "--judge-base-url"
_SHARED = pytest.StashKey[str]()
_MARKER = (
    "judge(model=..., replay=..., weighting=..., ...): options of a run for the fixture `judge`. "
    "Tests with the fixture and suites in *.judge.yaml have this mark: -m 'not judge' deselects "
    "all of them."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add all options to the command line, and to the ini file those that cost nothing."""
    group = parser.getgroup("judge", "judging texts with a language model")
    group.addoption(
        _MODEL,
        action="append",
        metavar="NAME",
        help=(
            "the judge, which may cost money; without this option no test sends requests "
            "(several: a panel)"
        ),
    )
    group.addoption(
        _ADDRESS,
        metavar="URL",
        help="address of an OpenAI-compatible server for --judge-model",
    )
    group.addoption(
        "--judge-replay",
        metavar="CALLS.jsonl",
        help="use recorded replies instead of a judge",
    )
    group.addoption(
        "--judge-record",
        metavar="CALLS.jsonl",
        help="add the replies of --judge-model to this recording",
    )
    parser.addini(
        "judge_model",
        "the judge of tests without one; only --judge-model can name a server",
    )
    parser.addini(
        "judge_replay",
        "recorded replies for tests without a judge; relative to this file",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    if config.getoption("judge_base_url") and not _typed(config, _ADDRESS):
        reason = "no ini file or variable can set it"
        raise pytest.UsageError(f"{_ADDRESS} must be typed: {reason}")
    if config.getoption("xmlpath", None):
        config.pluginmanager.register(_JunitNames(config))


class _JunitNames:
    """Gives the cases of suites their whole names in JUnit XML.

    pytest splits them at `::` and `[`.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        path, _, test_name = report.location
        if not path.endswith(_SUITE):
            return
        try:
            # pytest has no public way to name a test in its XML.
            from _pytest.junitxml import xml_key
        except ImportError:
            return
        junit = self._config.stash.get(xml_key, None)
        # A worker of pytest-xdist writes no XML.
        if junit is not None:
            # As pytest writes the class of a test function: `tests.polite.judge.yaml`.
            class_name = path.replace("/", ".").replace("\\", ".")
            reporter = junit.node_reporter(report)
            reporter.add_attribute("classname", class_name)
            reporter.add_attribute("name", test_name)


def pytest_unconfigure(config: pytest.Config) -> None:
    if folder := config.stash.get(_SHARED, None):
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist the folder in which all workers share outcomes of suites."""
    from tempfile import mkdtemp

    stash = node.config.stash
    if _SHARED not in stash:
        stash[_SHARED] = mkdtemp(prefix="judge-")
    node.workerinput["judge_shared"] = stash[_SHARED]


def pytest_report_header(config: pytest.Config) -> str | None:
    models = _typed(config, _MODEL)
    if not models:
        return None
    return f"judge: {', '.join(models)} may receive requests"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many tests were skipped without a judge, and how to give them one."""
    # Until a test asks for a judge, the plugin imports nothing of judge.
    if "judge.commands.pytest_support" not in sys.modules:
        return
    from judge.commands.pytest_support import ADVICE, NOT_JUDGED
    from judge.core.format import plural

    skipped = terminalreporter.stats.get("skipped", [])
    without_judge = [report for report in skipped if NOT_JUDGED in str(report.longrepr)]
    if without_judge:
        terminalreporter.section("judge", yellow=True)
        count = plural(len(without_judge), "test")
        skipped_tests = f"{count} skipped without a judge"
        terminalreporter.write_line(f"{skipped_tests}. Type one of these:")
        terminalreporter.write_line(ADVICE)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    if not file_path.name.endswith(_SUITE):
        return None
    suite_file: SuiteFile = SuiteFile.from_parent(parent, path=file_path)
    return suite_file


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that use the fixture.

    Those whose `judge` is another fixture or a parameter are not marked.
    """
    fixture_info = getattr(item, "_fixtureinfo", None)
    fixtures_by_name = getattr(fixture_info, "name2fixturedefs", {})
    defined = list(fixtures_by_name.get("judge", ()))
    # An override may use the fixture that it overrides.
    while defined and "judge" in defined[-1].argnames:
        defined.pop()
    if defined and getattr(defined[-1].func, "__module__", "") == __name__:
        item.add_marker("judge")


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain a score in the failed comparison.

    The short summary shows the first line, which is the comparison with the reason.
    """
    if "judge.commands.pytest_support" not in sys.modules:
        return None
    from judge.commands.pytest_support import JudgedScore

    scores = [score for score in (left, right) if isinstance(score, JudgedScore)]
    if not scores:
        return None
    reasons = "; ".join(score.short for score in scores)
    lines = [f"{left!r} {op} {right!r} ({reasons})"]
    for score in scores:
        lines += score.explained
    return lines


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> JudgeFixture:
    """Scores a text, or compares two.

    `judge.score(criterion, output=...)` and `judge.prefers(a, over=b, criterion=...)`. Criteria and
    files that a test or its marker names start from the folder of the test's file.
    """
    from judge.commands.pytest_support import JudgeFixture
    from judge.core.errors import ConfigError

    run_options: dict[str, Any] = {}
    for mark in request.node.iter_markers("judge"):
        if mark.args:
            example = f"model={mark.args[0]!r}"
            rule = f"@pytest.mark.judge takes keywords, such as {example}"
            pytest.fail(rule, pytrace=False)
        # The closest mark comes first, and its options win.
        run_options = {**mark.kwargs, **run_options}
    try:
        return JudgeFixture(_session(request.config), run_options, request.path.parent)
    except ConfigError as error:
        message = str(error)
    # Outside of `except`, so that pytest does not show the ConfigError as the cause.
    pytest.fail(message, pytrace=False)


def _typed(config: pytest.Config, option: str) -> list[str]:
    """Return the typed values of an option.

    `addopts` and PYTEST_ADDOPTS give no permission to spend money.
    """
    arguments = [str(argument) for argument in config.invocation_params.args]
    values = []
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        # `--judge-model=NAME` or `--judge-model NAME`
        typed_option, equals_sign, value = argument.partition("=")
        if typed_option == option:
            values.append(value if equals_sign else following)
    return values


def _session(config: pytest.Config) -> SuiteSession:
    from judge.commands.pytest_support import SuiteSession
    from judge.config import resolve_value

    typed = _typed(config, _MODEL)
    # Only workers of pytest-xdist have this attribute.
    shared = getattr(config, "workerinput", {}).get("judge_shared", "")
    command: dict[str, Any] = {
        "model": typed or config.getoption("judge_model"),
        "base_url": config.getoption("judge_base_url"),
    }
    for option_name in ("replay", "record"):
        path = config.getoption(f"judge_{option_name}")
        if path:
            command[option_name] = config.invocation_params.dir / path
    # Paths of the ini file start from its folder.
    folder = config.inipath.parent if config.inipath else config.rootpath
    ini = {}
    for option_name in ("model", "replay"):
        value = config.getini(f"judge_{option_name}")
        if value:
            ini[option_name] = resolve_value(option_name, value, folder)
    set_options = {
        option_name: value for option_name, value in command.items() if value
    }
    # The folder is on the machine that started the workers, which may be another one.
    shared_folder = Path(shared) if shared and Path(shared).is_dir() else None
    return SuiteSession(set_options, ini, typed, shared_folder)


class SuiteFile(pytest.File):
    """A suite: one test for each of its cases, one for its limits and one for its baseline."""

    _outcome: SuiteOutcome | None = None
    first_to_fail: SuiteItem | None = None
    """The test that reported why the suite could not be run."""

    def collect(self) -> Iterator[SuiteItem | SuitePart]:
        """Read the suite; send nothing."""
        from judge.core.errors import JudgeError
        from judge.core.format import one_line
        from judge.suite import load

        try:
            self.suite = load.load(
                self.path, set_elsewhere={"replay", *_session(self.config).command}
            )
        except JudgeError as error:
            raise self.CollectError(str(error)) from None
        for case in self.suite.cases:
            title = one_line(case.name)
            # pytest reads `a::b [c]` on the command line as `b [c]` in a, so it is collected there.
            test_path, bracket, parameter = title.partition("[")
            names = test_path.split("::")
            names[-1] += bracket + parameter
            if not all(map(str.strip, names)):
                names = [title]
            yield _test_or_part(
                self,
                names,
                suite_file=self,
                title=title,
                target=case.name,
                line=case.line,
            )
        whole_tests = [("limit", "limits")]
        if self.suite.baseline:
            whole_tests.append(("baseline", "baseline"))
        for target, key in whole_tests:
            yield SuiteItem.from_parent(
                self,
                name=f"({key})",
                suite_file=self,
                title=f"({key})",
                target=target,
                line=self.suite.lines.get(key, 1),
                whole=True,
            )

    def outcome(self) -> SuiteOutcome:
        """Return the outcome of the cases that run here. The first test to ask runs the suite."""
        if self._outcome is None:
            from judge.commands.pytest_support import run_suite_once

            cases = set()
            for item in self.session.items:
                if not isinstance(item, SuiteItem) or item.suite_file is not self:
                    continue
                if not item.whole:
                    cases.add(item.target)
            session = _session(self.config)
            self._outcome = run_suite_once(self.suite, session, frozenset(cases))
        return self._outcome


class SuitePart(pytest.Collector):
    """The beginning of a case's name up to `::`; its only test or part has the `names` after it."""

    def __init__(
        self, *, names: list[str], options: dict[str, Any], **pytest_options: Any
    ) -> None:
        super().__init__(**pytest_options)
        self._names = names
        self._options = options

    def collect(self) -> Iterator[SuiteItem | SuitePart]:
        yield _test_or_part(self, self._names, **self._options)


def _test_or_part(
    parent: pytest.Collector,
    names: list[str],
    **options: Any,
) -> SuiteItem | SuitePart:
    """Return the test with the last of the names, or the part that leads to it."""
    first_name, *others = names
    if others:
        part: SuitePart = SuitePart.from_parent(
            parent,
            name=first_name,
            names=others,
            options=options,
        )
        return part
    test: SuiteItem = SuiteItem.from_parent(parent, name=first_name, **options)
    return test


class Unmet(Exception):
    """An expectation of a suite is not met. Its message is complete without a traceback."""


class SuiteItem(pytest.Item):
    """A case of a suite, or its limits or baseline, which are about the `whole` suite.

    `target` is the name of the case, and `title` the name on one line.
    """

    def __init__(
        self,
        *,
        suite_file: SuiteFile,
        title: str,
        target: str,
        line: int,
        whole: bool = False,
        **pytest_options: Any,
    ) -> None:
        super().__init__(**pytest_options)
        self.suite_file = suite_file
        self.title = title
        self.target = target
        self.line = line
        self.whole = whole
        self.add_marker("judge")

    def runtest(self) -> None:
        """Raise Unmet if a verdict on the target is not met, or if the suite could not be run."""
        from judge.commands.pytest_support import unmet_failures

        outcome = self.suite_file.outcome()
        if outcome.without_judge:
            # Else pytest would name this line as the place of the skipped test.
            raise pytest.skip.Exception(outcome.without_judge, _use_item_location=True)
        if outcome.trouble:
            # The whole error once; the other tests of the suite refer to the one that shows it.
            first_item = self.suite_file.first_to_fail or self
            self.suite_file.first_to_fail = first_item
            reason = outcome.trouble
            if first_item is not self:
                reason = f"the suite could not be run: see {first_item.title}"
            raise Unmet(f"{reason}\n\n{self.path}:{self.line}")
        own_verdicts = self._own_verdicts(outcome)
        for verdict in own_verdicts:
            result = f"{verdict.found} {verdict.reason}".strip()
            # JUnit XML has it as a property of the test.
            self.user_properties.append(("judge", result))
        if failures := unmet_failures(own_verdicts):
            raise Unmet("\n".join([*failures, "", f"{self.path}:{self.line}"]))
        if own_verdicts:
            return
        if self.target == "baseline" and self.whole:
            warnings = "; ".join(outcome.warnings)
            pytest.skip(warnings or "nothing was compared with the baseline")
        # A suite may have no limit, but a case without a verdict was not tested.
        if not self.whole:
            raise Unmet(f"no verdict on this case\n\n{self.path}:{self.line}")

    def _own_verdicts(self, outcome: SuiteOutcome) -> list[Verdict]:
        """Return the verdicts on this test's case, or on the suite's limits or baseline."""
        own_verdicts: list[Verdict] = []
        for verdict in outcome.verdicts:
            is_whole = verdict.subject != "case"
            case_name = verdict.subject if self.whole else verdict.name
            if is_whole == self.whole and case_name == self.target:
                own_verdicts.append(verdict)
        return own_verdicts

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:
        if isinstance(excinfo.value, Unmet):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.line - 1, self.title
