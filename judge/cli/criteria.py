"""`judge criteria`: list, show, render, draft and compare criteria."""

from __future__ import annotations

import json
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from judge.cli.options import (
    MODEL_OPTIONS,
    PATH,
    Group,
    completion,
    full_option,
    list_format,
    names_of_criteria,
    option,
    output_option,
    quiet_option,
    read_config,
    report_format,
)
from judge.cli.run import Display, run_interruptibly
from judge.cli.terminal import (
    check_outputs,
    input_files,
    print_entry,
    print_json,
    print_message,
    print_report,
    print_text,
    print_untrusted,
    shows_report,
)
from judge.core.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from judge.commands.criteria_diff.record import CriterionDiff
    from judge.commands.improve.record import Improvement
    from judge.core.records import Criterion
    from judge.execution.progress import Progress
    from judge.run.preparation import PreparedRun

criteria_app = Group(help="List, show, write, render, draft and compare criteria.")


@criteria_app.command("list", takes="run", only=("language",))
@list_format
def criteria_list(*, format: str, **options: Any) -> None:
    """Name the built-in criteria."""
    from judge.criteria import builtin, task_of

    language = options.get("language", "en")
    of_one_text = builtin(language, pairwise=False)
    of_two_texts = builtin(language, pairwise=True)
    if format == "json":
        entries: list[dict[str, Any]] = []
        for criterion in (*of_one_text, *of_two_texts):
            task = task_of(criterion)
            entries.append({"task": task, **_criterion_json(criterion)})
        print_json(entries)
        return
    for command, criteria in (("judge run", of_one_text), ("judge rank", of_two_texts)):
        number = "one text" if command == "judge run" else "two texts"
        for task in ("answers", "summaries"):
            print_text(f"{command}, {number}: {task}")
            for criterion in criteria:
                if task_of(criterion) == task:
                    labels = criterion.scale.labels
                    ends = f"{labels[0]}–{labels[-1]}"
                    name_and_scale = f"  {criterion.name:<15} {ends:<4} "
                    print_entry(name_and_scale, criterion.description)


@criteria_app.command("show", takes="run", only=("language",))
@click.argument(
    "name",
    metavar="CRITERION",
    help="A name, a file, or 'NAME: QUESTION'.",
    shell_complete=completion(names_of_criteria),
)
@list_format
def criteria_show(name: str, *, format: str, **options: Any) -> None:
    """Print a criterion's file and the fields it needs."""
    from judge.core.format import plural
    from judge.criteria import load

    criterion = load(name, language=options.get("language", "en"), pairwise=None)
    if format == "json":
        entry = _criterion_json(criterion)
        entry["steps"] = criterion.steps
        entry["examples"] = [asdict(example) for example in criterion.examples]
        entry["template"] = criterion.template
        print_json(entry)
        return
    print_untrusted(criterion.template.rstrip())
    needed_columns = ", ".join(sorted(criterion.needs))
    facts = {
        "needs": needed_columns,
        "digest": criterion.digest[:6],
        "file": criterion.path,
    }
    if criterion.examples:
        scores = ", ".join(example.score for example in criterion.examples)
        facts["examples"] = f"{len(criterion.examples)}, scores {scores}"
    if criterion.seen:
        seen_texts = plural(len(criterion.seen), "text")
        facts["seen"] = f"{seen_texts}, whose ratings do not count in validation"
    # On standard error, so that `judge criteria show NAME > FILE` writes the criterion's file.
    lines = [f"{fact_name}: {fact}" for fact_name, fact in facts.items()]
    click.echo("\n" + "\n".join(lines), err=True)


def _criterion_json(criterion: Criterion) -> dict[str, Any]:
    """Return a criterion as plain JSON, without its text."""
    scale = {"labels": criterion.scale.labels, "values": criterion.scale.values}
    n_texts = 2 if criterion.pairwise else 1
    return {
        "name": criterion.name,
        "title": criterion.title,
        "description": criterion.description,
        "compares": n_texts,
        "scale": scale,
        "better": criterion.better,
        "pass_at": criterion.pass_at,
        "reply": criterion.reply,
        "weight": criterion.weight,
        "version": criterion.version,
        "language": criterion.language,
        "needs": sorted(criterion.needs),
        "digest": criterion.digest[:6],
        "file": str(criterion.path),
    }


_NEW_FILE = """\
# judge shows each text with its source or request, if the data has one, then this question and \
the scale.
question: {question}
scale: [1, 5]  # or {{labels: [fail, pass], values: [0, 1]}}
# levels:        # what the ends and the middle look like in a text
#   1: ...
#   3: ...
#   5: ...
# show: [references]   # columns to show beside the text; default: the source, else the request
# reply: reason_then_score
"""


@criteria_app.command("new")
@click.argument("name", metavar="NAME", help="Name of the criterion and of its file.")
@option(
    "--question", "What the judge is asked about a text.", default="", metavar="TEXT"
)
def criteria_new(
    name: str,
    *,
    question: str,
) -> None:
    """Write a criterion's file to edit: NAME.yaml.

    Never overwrites a file."""
    from judge.core.criterion_entry import YAML_SUFFIXES, is_name

    path = Path(name) if name.endswith(YAML_SUFFIXES) else Path(f"{name}.yaml")
    # `Path(".yaml").stem` is ".yaml".
    stem = "" if path.name in YAML_SUFFIXES else path.stem
    if not is_name(stem):
        advice = "write one word, such as polite"
        raise ConfigError(f"{stem!r} cannot name a criterion; {advice}")
    yaml_question = "  # Which question about each text should the judge answer?"
    if question:
        # A JSON string is also one in YAML, whatever the question contains.
        yaml_question = json.dumps(question, ensure_ascii=False)
    try:
        # Mode "x" refuses a file that exists, even if it was made a moment ago.
        with path.open("x", encoding="utf-8") as file:
            file.write(_NEW_FILE.format(question=yaml_question))
    except FileExistsError:
        advice = "name another criterion, or edit that file"
        raise ConfigError(f"{path}: already exists; {advice}") from None
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    advice = "" if question else "Write the question into it. "
    print_text(f"{path}\n\n{advice}Next:")
    print_text(f"  judge criteria render {path} DATA    # print a prompt")
    print_text(f"  judge run DATA --criteria {path} --model MODEL")


@criteria_app.command(
    "render",
    takes="run",
    only=("map", "systems", "language", "reasons", "reply", "structured"),
)
@click.argument(
    "name",
    metavar="CRITERION",
    help="A name, a file, or 'NAME: QUESTION'.",
    shell_complete=completion(names_of_criteria),
)
@click.argument(
    "data",
    type=PATH,
    metavar="DATA",
    help="A data file, a folder or 'PATTERN' of many.",
)
@option("--item", "The item to render (default: the first).", metavar="ID")
@option(
    "--system", "The system whose output to take (default: the first).", metavar="NAME"
)
@option(
    "--opponent", "To compare: the other system (default: the next).", metavar="NAME"
)
@option("--system-message", "System message of the judge.", metavar="TEXT")
def criteria_render(
    name: str,
    data: Path,
    *,
    item: str | None,
    system: str | None,
    opponent: str | None,
    system_message: str | None,
    **options: Any,
) -> None:
    """Print a prompt exactly as it would be sent.

    Shows one sample or one comparison. Sends nothing."""
    from judge.run.preparation import prompt

    messages = prompt(
        name,
        data,
        item=item,
        system=system,
        opponent=opponent,
        system_message=system_message,
        **options,
    ).messages
    for message in messages:
        # A lone message needs no role, so that its text is exactly what is sent.
        if len(messages) > 1:
            print_text(f"[{message['role']}]")
        print_untrusted(message["content"])


@criteria_app.command(
    "steps",
    takes="run",
    only=(
        *MODEL_OPTIONS,
        "language",
        "max_tokens",
    ),
)
@click.argument("file", metavar="FILE", help="File of your own criterion.")
@option("--overwrite", "Replace the steps in the file.", is_flag=True)
def criteria_steps(file: str, *, overwrite: bool, **options: Any) -> None:
    """Have a model draft a criterion's steps.

    Writes them into the file's header. Read them before you use them."""
    from judge.commands.loaders import draft_steps
    from judge.config import load_config

    steps = draft_steps(file, load_config(options=options), overwrite=overwrite)
    # A model wrote them, so control characters are escaped.
    for number, step in enumerate(steps, 1):
        print_untrusted(f"{number}. {step}")
    click.echo(f"written into {file}; read them before you judge with them", err=True)


@criteria_app.command("improve", takes="diff")
@click.argument(
    "file", metavar="CRITERION", help="A name, a file, or 'NAME: QUESTION'."
)
@click.argument(
    "data", type=PATH, metavar="DATA|RUN.YAML", help="Texts with human ratings."
)
@option(
    "--ratings",
    "File with people's ratings, apart from the data.",
    type=PATH,
    metavar="FILE",
)
@option(
    "--writer", "Model that writes the revisions (default: the judge).", metavar="NAME"
)
@option(
    "--revisions", "Revisions to try (default: 4).", type=int, default=4, metavar="N"
)
@option("--human", "Human ratings to use (default: the criterion's).", metavar="RATING")
@option(
    "--output",
    "File to write (default: NAME.improved.yaml).",
    type=PATH,
    metavar="FILE",
    group="Output",
)
@option(
    "--out",
    "Folder for all revisions and the result.",
    type=PATH,
    metavar="DIR",
    group="Output",
)
@report_format
@full_option
@quiet_option
def criteria_improve(
    file: str,
    data: Path,
    *,
    ratings: Path | None,
    writer: str | None,
    revisions: int,
    human: str | None,
    output: Path | None,
    out: Path | None,
    format: str,
    full: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Have a model revise a criterion, and test the gain.

    Tries the revisions on a third of the rated items, tests the best one on the others, and writes
    a new file if it agrees significantly better with people. Exits with 1 if judgments failed or no
    revision is usable."""
    from judge.commands.improve.command import (
        improvement_estimate,
        plan_improvement,
        run_improvement,
    )
    from judge.config import RunConfig
    from judge.core.format import plural
    from judge.core.request_options import Judge

    config = read_config(data, {"ratings": ratings, **options}, RunConfig)
    inputs = [*_criterion_files(file), data, *input_files(config)]
    check_outputs({"--output": output}, inputs, "console")
    writing_model = Judge(name=writer) if writer else None
    plan = plan_improvement(
        file,
        config,
        writer=writing_model,
        revisions=revisions,
        human=human,
        output=output,
        out=out,
    )
    # Printed before anything is paid, so that Ctrl-C is in time.
    if not quiet:
        print_message(improvement_estimate(plan))

    def work(progress: Progress, display: Display) -> Coroutine[Any, Any, Improvement]:
        def watch(name: str, run: PreparedRun) -> AbstractContextManager[None]:
            return display(run.judges, label=name)

        return run_improvement(plan, progress, watch)

    result = run_interruptibly(work, quiet=quiet, reply_store=config.replies_kept_in)
    if shows_report(format, quiet=quiet):
        print_report(result, format, full=full)
    failed, judged = result.judgments
    if failed:
        print_message(f"{failed:,} of {plural(judged, 'judgment')} failed")
    status = 1 if failed or not result.usable else 0
    raise click.exceptions.Exit(status)


_SIDES = ("A", "B")
"""Names of the two criteria in messages."""


@criteria_app.command("diff", takes="diff")
@click.argument("before", metavar="A", help="A name, a file, or 'NAME: QUESTION'.")
@click.argument("after", metavar="B", help="The other wording.")
@click.argument(
    "data",
    type=PATH,
    required=False,
    metavar="[DATA|RUN.YAML]",
    help="Texts to show the prompts on.",
)
@option("--item", "Only this item.", metavar="ID")
@option("--system", "Only this system's texts.", metavar="NAME")
@option(
    "--ratings",
    "File with people's ratings, apart from the data.",
    type=PATH,
    metavar="FILE",
)
@option(
    "--human",
    "Human ratings to compare both with (default: the criterion's).",
    metavar="RATING",
)
@report_format
@full_option
@output_option
@quiet_option
def criteria_diff(
    before: str,
    after: str,
    data: Path | None,
    *,
    item: str | None,
    system: str | None,
    ratings: Path | None,
    human: str | None,
    format: str,
    full: bool,
    output: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Show what differs between two criteria.

    Compares their text, with DATA their prompts, and with a judge their scores. Exits with 1 only
    if judgments failed.
    """
    from judge.commands.criteria_diff.command import plan_diff, run_diff
    from judge.config import RunConfig, load_config
    from judge.run.cost_estimate import one_line_estimate

    options["ratings"] = ratings
    config = (
        load_config(options=options)
        if data is None
        else read_config(data, options, RunConfig)
    )
    inputs = [*_criterion_files(before, after), data, *input_files(config)]
    check_outputs({"--output": output}, inputs, format)
    diff_plan = plan_diff(before, after, config, item=item, system=system, human=human)
    # Without a judge, there are no runs.
    if diff_plan.runs is not None and not quiet:
        for side, run in zip(_SIDES, diff_plan.runs, strict=True):
            estimate = one_line_estimate(run)
            if estimate:
                print_message(f"{side}: {estimate}")

    def work(
        progress: Progress, display: Display
    ) -> Coroutine[Any, Any, CriterionDiff]:
        def watch(name: str, prepared: PreparedRun) -> AbstractContextManager[None]:
            label = _SIDES[0] if name == "before" else _SIDES[1]
            return display(prepared.judges, label=label)

        return run_diff(diff_plan, progress, watch)

    diff = run_interruptibly(work, quiet=quiet, reply_store=config.replies_kept_in)
    if output is not None or shows_report(format, quiet=quiet):
        print_report(diff, format, full=full, output=output)
    raise click.exceptions.Exit(1 if diff.failed else 0)


def _criterion_files(*entries: str) -> list[Path]:
    """Return the files among criteria that may be names, files or sentences."""
    from judge.core.criterion_entry import is_file

    return [Path(entry) for entry in entries if is_file(entry)]
