"""The proxy that the environment names for an address, for checks and for messages."""

from __future__ import annotations

import os
import urllib.request
from urllib.parse import urlsplit

from judge.core.errors import ConfigError

_SCHEMES = ("http", "https")


def proxy_variable(url: str) -> str:
    """Return the environment variable that sends requests to a URL through a proxy, "" if none."""
    parts = urlsplit(url)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return ""
    variables = _set_variables(f"{parts.scheme}_proxy", "all_proxy")
    return variables[0] if variables else ""


def check_proxy(url: str) -> None:
    """Raise ConfigError if the proxy of a URL is not an HTTP proxy: aiohttp knows no other."""
    variable = proxy_variable(url)
    if variable and not _is_http(os.environ[variable]):
        raise wrong_proxy(variable)


def wrong_proxy(*variables: str) -> ConfigError:
    """Return the error of a proxy that cannot be used, in one of these variables if known.

    The message quotes no value, because it may hold a password.
    """
    suspects = variables or _set_variables("http_proxy", "https_proxy", "all_proxy")
    names = " or ".join(f"${variable}" for variable in suspects)
    return ConfigError(
        f"{names}: judge needs a proxy whose address begins with http:// or https://; correct it, "
        "or unset it"
    )


def _is_http(proxy: str) -> bool:
    scheme, separator, _ = proxy.partition("://")
    # "proxy:3128" means http://proxy:3128.
    return not separator or scheme.lower() in _SCHEMES


def _set_variables(*names: str) -> list[str]:
    """Return the environment variables with these names, in lower or upper case, that are set."""
    spellings = [spelling for name in names for spelling in (name, name.upper())]
    return [variable for variable in spellings if os.environ.get(variable)]
