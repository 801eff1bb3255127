"""What a colleague would look at first: versions, extras, keys, cache, and whether a model can be asked."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Literal

from judge import text
from judge.cache import folder_of, location_of, stored
from judge.config import Plan
from judge.core.errors import JudgeError
from judge.core.redis_url import Address
from judge.core.version import __version__
from judge.providers.vendors import VENDORS

State = Literal["ok", "lacking", "wrong"]
"""`lacking` is what is not there and need not be."""

_DISTRIBUTION = "textjudge"
_NO_EXTRA = ("all", "dev")
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
_LANGUAGES = {"ja": "ja", "ko": "ko", "zh": "zh", "zh, by words": "zh-words"}
"""Tokenizers by what they are for."""
_VARIABLES = (
    "JUDGE_CACHE", "XDG_CACHE_HOME", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "RAY_ADDRESS", "HTTP_PROXY",
    "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "HF_HOME", "HF_HUB_OFFLINE", "NO_COLOR",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, among others of its `part`; `mend` says what to do where there is something."""

    part: str
    name: str
    state: State
    said: str
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that was found."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(one.state != "wrong" for one in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"ok": self.ok, "findings": [asdict(one) for one in self.findings]}


def look(made: Plan) -> list[Finding]:
    """What there is here. Opens no connection, except to a shared cache where a model is named, and sends nothing."""
    return [*_versions(), *_packages(), *_keys(), *_cache(made), *_variables(), *_tokenizers()]


def _versions() -> Iterator[Finding]:
    yield Finding("this machine", "judge", "ok", f"{__version__} in {Path(__file__).parents[1]}")
    yield Finding("this machine", "Python", "ok", platform.python_version())
    yield Finding("this machine", "platform", "ok", platform.platform())


def _packages() -> Iterator[Finding]:
    """The packages that are always needed, and those of each extra."""
    listed: dict[str, list[str]] = {"": []}
    try:
        for line in requires(_DISTRIBUTION) or ():
            name, extra = _REQUIREMENT.match(line).groups("")  # type: ignore[union-attr]
            listed.setdefault(extra, []).append(name)
    except PackageNotFoundError:
        mend = "pip install -e . in the checkout, or pip install textjudge"
        yield Finding("packages", _DISTRIBUTION, "wrong", "not installed: judge runs from its folder", mend)
        return
    for name in listed.pop(""):
        has = _version(name)
        yield Finding("packages", name, "ok" if has else "wrong", has or "not installed", "" if has else _pip(name))
    for extra, names in listed.items():
        if extra not in _NO_EXTRA:
            yield _extra(extra, names)


def _extra(extra: str, names: Sequence[str]) -> Finding:
    found = {name: _version(name) for name in names}
    if lacks := [name for name, has in found.items() if not has]:
        return Finding("extras", extra, "lacking", f"lacks {', '.join(lacks)}", _pip(f"{_DISTRIBUTION}[{extra}]"))
    return Finding("extras", extra, "ok", ", ".join(f"{name} {has}" for name, has in found.items()))


def _version(package: str) -> str:
    """Which version is installed; "" for none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _pip(what: str) -> str:
    return f"pip install '{what}'"


def _keys() -> Iterator[Finding]:
    """Whose keys are in the environment. Of a key itself nothing is told."""
    keys = {"openai": ("OPENAI_API_KEY", False)}
    keys |= {vendor.name: (vendor.key_env, vendor.local) for vendor in VENDORS.values()}
    for name, (variable, local) in keys.items():
        if os.environ.get(variable, "").strip():
            yield Finding("keys", name, "ok", f"${variable} is set")
        else:
            own = "; a server of your own may need none" if local else ""
            yield Finding("keys", name, "lacking", f"${variable} is not set{own}")


def _cache(made: Plan) -> Iterator[Finding]:
    """The cache that runs use: the folder, and the address above it where machines share one."""
    try:
        place = location_of(made.cache or None)
    except JudgeError as error:
        yield Finding("cache", "address", "wrong", str(error), "set it again, or name another with --cache")
        return
    if isinstance(place, Address):
        if made.model:
            yield _replies("address", place)
        else:
            yield Finding("cache", "address", "ok", f"{place}: not asked without --model; judge cache stats asks it")
    folder = folder_of(place)
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        said = f"{folder}: {there} is {'not writable' if there.is_dir() else 'a file'}"
        yield Finding("cache", "folder", "wrong", said, "name another with --cache DIR or $JUDGE_CACHE")
        return
    if (folder / "responses").exists():
        yield _replies("folder", folder)
    else:
        yield Finding("cache", "folder", "ok", f"{folder}: empty, and can be written")
    free = shutil.disk_usage(there).free
    yield Finding("cache", "disk", "ok", f"{free / 1e9:,.1f} GB free")


def _replies(name: str, place: Address | Path) -> Finding:
    try:
        with stored(place, beneath=False) as store:
            found = store.stats()
    except JudgeError as error:
        return Finding("cache", name, "wrong", str(error), "name another with --cache, or do without: --no-cache")
    return Finding(
        "cache", name, "ok", f"{place}: replies kept: {found['responses']:,}, {found['bytes'] / 1e6:,.1f} MB"
    )


def _variables() -> Iterator[Finding]:
    """Which variables that change what a run does are set, by name: a value may be somebody's secret."""
    said = {"OPENAI_BASE_URL": "is set: models without a vendor's name are asked there, and not at OpenAI"}
    for name in _VARIABLES:
        if os.environ.get(name) or os.environ.get(name.lower()):
            yield Finding("variables", f"${name}", "ok", said.get(name, "is set"))


def _tokenizers() -> Iterator[Finding]:
    """What cuts Japanese, Korean and Chinese texts into words, for ROUGE and the like."""
    for name, tokenizer in _LANGUAGES.items():
        if text.installed(tokenizer):
            yield Finding("tokenizers", name, "ok", text.signature(tokenizer))
        else:
            yield Finding(
                "tokenizers", name, "lacking", "not installed: metrics count characters", _pip(f"{_DISTRIBUTION}[cjk]")
            )
