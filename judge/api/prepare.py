"""Everything a run needs, read and checked before the first request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from judge import criteria as criteria_module
from judge import ladder, recording, registry, samples, text
from judge.api import measures
from judge.api.pairs import Pairs, choose
from judge.asking import Later
from judge.config import Judge, Plan, RankPlan, plan
from judge.errors import ConfigError, StorageError
from judge.ladder import Settings
from judge.metrics import Metric, heuristic
from judge.progress import Measured
from judge.providers import Provider
from judge.providers.replay import ReplayProvider, replayed
from judge.recording import Recording
from judge.records import Criterion, Prompt, Sample
from judge.render import Renderer

_NO_REFERENCES = (
    " (the data has no column `references`, without which there are no default metrics; --map references=COLUMN names "
    "yours, and distinct, self_bleu and source_bleu need none)"
)
_MOST_HELD = 50_000
_HOW_TO_JUDGE = (
    "no judge is named. Ways to go on:\n"
    "  --model gpt-5.4-mini           with its key in the environment (OPENAI_API_KEY, or --key-env NAME)\n"
    "  --model NAME --base-url URL    a model on a server of your own: llama.cpp, vLLM, Ollama, ...\n"
    "  --replay CALLS.jsonl           replies recorded by an earlier run with --record\n"
    "  --model scripted/REPLIES.yaml  a dry run on replies that you write{more}"
)
_MORE_WAYS = (
    "\n  --criteria none                metrics alone"
    "\n  --model heuristic              a baseline of surface features: no language model, and no judge to publish"
)
_HEURISTIC = "heuristic"


@dataclass(slots=True)
class Prepared:
    """Everything a run needs, checked; nothing has been sent or paid yet.

    `judges` are the providers by the name a panel's columns have; a panel is two or more. `pairs` are what a ranking
    compares, `measured` what the metrics tell how far they are. `rest` are the samples that have not been
    read yet, where a run of metrics alone need not hold all of them; `ask` is what metrics ask a judge by. `recording`
    takes down replies, `baseline` is the heuristic's name where it stands in the place of a judge.
    """

    plan: Plan
    samples: list[Sample]
    criteria: list[Criterion]
    metrics: dict[str, Metric]
    judges: dict[str, Provider]
    settings: Settings
    language: dict[str, str]
    data: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    pairs: Pairs | None = None
    measured: Measured = field(default_factory=Measured)
    rest: Iterator[Sample] | None = None
    ask: Later | None = None
    recording: Recording | None = None
    baseline: str = ""


def prepare(
    made: Plan,
    data: Any = None,
    *,
    providers: Sequence[Judge | Provider] | None = None,
    own: Mapping[str, Criterion] | None = None,
) -> Prepared:
    """Read and check everything that can be checked before the first request. Raises JudgeError.

    `providers` are the judges where they are not all in the plan, `own` criteria that are not read from files.
    """
    source = data if data is not None else made.data
    if source is None:
        raise ConfigError("no data: name a file, for example judge run summaries.jsonl")
    check_out(made.out)
    rows, rest = _read(made, source)
    named = _language(made, rows)
    asked, floor = _asked(made, made.model if providers is None else providers)
    alone = floor is not None and not asked and made.replay is None
    chosen = [] if alone else _criteria(made, rows, named["name"], own or {}, pairwise=isinstance(made, RankPlan))
    if made.calibrate:
        _check_calibrated(made, rows, chosen, alone=alone)
    measured = Measured()
    ask = Later() if asked or made.replay else None
    metrics, notes = _metrics(made, rows, measured, ask, alone=not chosen, floor=floor)
    measures.check(metrics, rows)
    if rest is not None and not all(getattr(metric, "rowwise", False) for metric in metrics.values()):
        rows, rest = [*rows, *rest], None
    settings = Settings(made.weighting, made.min_mass, made.temperature, made.max_tokens, made.draws)
    judges = _judges(made, asked) if chosen or any(getattr(m, "asks", False) for m in metrics.values()) else {}
    for provider in judges.values():
        ladder.rungs(settings, provider.decides)
    notes += _about_judges(made, metrics, judges)
    pairs = None
    if isinstance(made, RankPlan):
        pairs = choose(rows, orders=made.orders, budget=made.pairs, seed=made.seed)
        notes += _about_pairs(pairs)
    about = {} if made.data is None else {"path": str(made.data), "sha256": samples.digest(made.data)}
    read = {**about, "rows": len(rows)}
    record = None if made.record is None or not judges else _recording(made, made.record, judges.values())
    return Prepared(
        made, rows, chosen, metrics, judges, settings, named, read, notes, pairs, measured, rest, ask, record,
        heuristic.NAME if alone else "",
    )  # fmt: skip


def _language(made: Plan, rows: Sequence[Sample]) -> dict[str, str]:
    """The language of the prompts, and whether it was chosen or detected."""
    if made.language is not None:
        return {"name": made.language, "how": "chosen"}
    return {"name": text.language(t for s in rows for t in (s.output, s.source or "")), "how": "detected"}


def _about_judges(made: Plan, metrics: Mapping[str, Metric], judges: Mapping[str, Provider]) -> list[str]:
    """What every report must say of these judges."""
    told = list(dict.fromkeys(provider.notice for provider in judges.values() if provider.notice))
    return [*told, *_about_asking(metrics, list(judges)), *_about_draws(made, judges.values())]


def _check_calibrated(made: Plan, rows: Sequence[Sample], chosen: Sequence[Criterion], *, alone: bool) -> None:
    """Refuses `calibrate` where there is nothing to calibrate, or nothing to do it by."""
    names = list(made.criteria) if alone else [criterion.name for criterion in chosen]
    if isinstance(made, RankPlan) or not names:
        raise ConfigError("--calibrate: it brings a judge's scores to people's scale, and this run makes none")
    if not any(name in sample.human for sample in rows for name in names):
        raise ConfigError(
            f"--calibrate: no text has a rating by people for {' or '.join(names)}; name their column with "
            f"--map human.{names[0]}=COLUMN"
        )


def _asked(made: Plan, given: Sequence[Judge | Provider]) -> tuple[list[Judge | Provider], dict[str, Any] | None]:
    """The judges that are asked, and the heuristic's options where it is among those given.

    As the only judge it stands in the criteria's places; beside a judge it is a metric. Raises ConfigError.
    """
    asked = [one for one in given if not (isinstance(one, Judge) and one.name == _HEURISTIC)]
    if len(asked) == len(given):
        return asked, None
    if isinstance(made, RankPlan):
        raise ConfigError("--model heuristic: it scores texts one by one and compares none; judge run takes it")
    alone = not asked and made.replay is None
    return asked, {"criteria": list(made.criteria), "prefix": ""} if alone else {}


def _metrics(
    made: Plan,
    rows: Sequence[Sample],
    measured: Measured,
    ask: Later | None,
    *,
    alone: bool,
    floor: dict[str, Any] | None,
) -> tuple[dict[str, Metric], list[str]]:
    """The metrics and what there is to say about them. Raises ConfigError where there is nothing else and none."""
    names, notes = measures.chosen(made, rows)
    if floor is not None:
        names = (_HEURISTIC, *(name for name in names if name != _HEURISTIC))
        given = made.set.get(_HEURISTIC, {})
        if "prefix" in given:
            raise ConfigError("--set heuristic.prefix: columns are called by --model heuristic or --metrics heuristic")
        made = made.model_copy(update={"set": {**made.set, _HEURISTIC: given | floor}})
    if alone and not names:
        lacking = "" if any(s.references for s in rows) or made.metrics is not None else _NO_REFERENCES
        raise ConfigError(f"nothing to do: neither criteria nor metrics; name some{lacking}")
    return measures.make(made, names, measured, ask), notes


def _read(made: Plan, source: Any) -> tuple[list[Sample], Iterator[Sample] | None]:
    """The samples, and those beyond the first 50,000 unread where no judge is asked about them."""
    reader = islice(samples.stream(source, mapping=made.mapping, systems=made.systems), made.limit)
    if made.criteria or isinstance(made, RankPlan):
        return list(reader), None
    rows = list(islice(reader, _MOST_HELD))
    following = next(reader, None) if len(rows) == _MOST_HELD else None
    return rows, chain([following], reader) if following is not None else None


def of_item(rows: Sequence[Sample], item: str | None, system: str | None = None) -> list[Sample]:
    """The samples of one item, the first there is if none is named, and of one system or all. Raises ConfigError."""
    first = _first(rows, item=item, system=system)
    return [sample for sample in rows if sample.item == first.item and system in (None, sample.system)]


def prompt(
    criterion: str,
    data: Any,
    *,
    item: str | None = None,
    system: str | None = None,
    rival: str | None = None,
    **options: Any,
) -> Prompt:
    """The prompt for one sample, or for a comparison with `rival`'s text, as a run would send it. Asks no model.

    What is not named is the first there is. Raises JudgeError.
    """
    made = plan(given={**options, "criteria": [criterion]})
    rows = samples.load(data, mapping=made.mapping, systems=made.systems)
    language = made.language or text.language(t for s in rows for t in (s.output, s.source or ""))
    (chosen,) = _criteria(made, rows, language, {}, pairwise=None)
    first = _first(rows, item=item, system=system)
    renderer = Renderer(chosen, criteria_module.bodies(chosen))
    if not chosen.pairwise:
        return renderer.render(first)
    others = [s for s in rows if s.system != first.system]
    return renderer.render(first, _first(others, item=first.item, system=rival))


def _first(rows: Sequence[Sample], *, item: str | None, system: str | None) -> Sample:
    """The first sample of an item and a system, as far as they are named. Raises ConfigError."""
    of_item = [s for s in rows if item in (None, s.item)]
    if not of_item:
        raise ConfigError(registry.unknown("item", item or "", sorted({s.item for s in rows})[:20]))
    found = next((s for s in of_item if system in (None, s.system)), None)
    if found is None:
        raise ConfigError(registry.unknown("system", system or "", sorted({s.system for s in of_item})[:20]))
    return found


def for_provider(criterion: Criterion, provider: Provider) -> Criterion:
    """The criterion as this provider is asked it."""
    return replace(criterion, form="decision") if provider.decides else criterion


def open_judge(made: Plan, judge: Judge) -> Provider:
    """The provider of one judge of a plan. Raises ConfigError."""
    own = {name: value for name, value in (("base_url", judge.base_url), ("key_env", judge.key_env)) if value}
    made = made.model_copy(update=own)
    name, model = _provider_of(made, judge)
    provider: Provider = registry.load("providers", name).open(model, made)
    return provider


def _provider_of(made: Plan, judge: Judge) -> tuple[str, str]:
    """The provider's name, and the model's."""
    prefix, slash, rest = judge.name.partition("/")
    known = slash and prefix in registry.names("providers")
    if known and not (prefix == "openai" and made.base_url):  # to other servers, openai/gpt-4o is a model's whole name
        return prefix, rest
    return "openai", judge.name


def refuse_twins(names: Sequence[str]) -> None:
    """Raises ConfigError where two columns would have one name."""
    twins = sorted({name for name in names if list(names).count(name) > 1})
    if twins:
        raise ConfigError(
            f"two columns would be called {twins[0]!r}; a criterion is called by its file's name: rename it"
        )


def check_out(out: Path | None) -> None:
    """Refuses a folder that cannot be one, or whose report is somebody else's."""
    if out is None:
        return
    if out.exists() and not out.is_dir():
        raise StorageError(f"--out {out}: a file stands there; name a folder")
    if not (out / "run.json").exists() and any((out / name).exists() for name in ("report.html", "report.md")):
        raise StorageError(f"--out {out}: holds a report that is not from judge; name another folder")


def _criteria(
    made: Plan, rows: Sequence[Sample], language: str, own: Mapping[str, Criterion], *, pairwise: bool | None
) -> list[Criterion]:
    """The criteria of a plan in the form it wants them, checked against the data."""
    chosen = []
    for name in made.criteria:
        criterion = own.get(name) or criteria_module.load(name, language=language, pairwise=pairwise)
        form = "json" if made.structured else criterion.form
        chosen.append(replace(criterion, reply=made.reply or criterion.reply, form=form))
        criteria_module.check(chosen[-1], rows)
    refuse_twins([c.name for c in chosen])
    return chosen


def _judges(made: Plan, given: Sequence[Judge | Provider]) -> dict[str, Provider]:
    if not given and made.replay is None:
        raise ConfigError(_HOW_TO_JUDGE.format(more="" if isinstance(made, RankPlan) else _MORE_WAYS))
    if made.replay is not None:
        if not all(isinstance(one, Judge) for one in given):
            raise ConfigError("--replay answers in the place of models named in text; leave out the provider object")
        named = [_provider_of(made, one)[1] for one in given if isinstance(one, Judge)]
        opened: list[Provider] = [*replayed(made.replay, named)]
    else:
        opened = [open_judge(made, one) if isinstance(one, Judge) else one for one in given]
    # By the model alone; where that is not enough, with its provider, then with its address.
    names = [one.model for one in opened]
    if len(set(names)) < len(names):
        names = [f"{one.name}/{one.model}" for one in opened]
    if len(set(names)) < len(names):
        names = [f"{name}@{one.endpoint.partition('//')[2]}" for name, one in zip(names, opened, strict=True)]
    if len(set(names)) < len(names):
        twin = max(names, key=names.count)
        raise ConfigError(
            f"two judges are both {twin!r}: a panel's judges differ in their model or address; "
            "a ScriptedProvider takes its name as model="
        )
    return dict(zip(names, opened, strict=True))


def _recording(made: Plan, path: Path, judges: Iterable[Provider]) -> Recording:
    """What the replies are taken down in, with what every report of these judges' must say. Raises JudgeError."""
    if path == made.replay:
        raise ConfigError(f"--record {path}: this is the recording that is replayed; name another file")
    (recording.read(path) if path.exists() else Recording()).save(path)  # what cannot be written is said unpaid
    return Recording(" ".join(dict.fromkeys(judge.notice for judge in judges if judge.notice)))


def _about_draws(made: Plan, judges: Iterable[Provider]) -> list[str]:
    held = max((judge.draws for judge in judges if isinstance(judge, ReplayProvider)), default=0)
    if held < 2 or held >= made.draws or made.weighting not in ("auto", "samples"):
        return []
    return [f"The recording holds {held} draws of a prompt, not the {made.draws} asked for: scores are of {held}."]


def _about_asking(metrics: Mapping[str, Metric], judges: Sequence[str]) -> list[str]:
    asking = [name for name, metric in metrics.items() if getattr(metric, "asks", False)]
    return [f"Of the panel {', '.join(asking)} asks {judges[0]} alone."] if asking and len(judges) > 1 else []


def _about_pairs(pairs: Pairs) -> list[str]:
    notes = []
    if pairs.chosen < pairs.possible:
        notes.append(f"A sample: {pairs.chosen:,} of {pairs.possible:,} pairs of texts are compared.")
    if pairs.alone:
        notes.append(f"{pairs.alone:,} pairs of systems and items have only one text or none, and are not compared.")
    return notes
