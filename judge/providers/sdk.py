"""The official SDK with its HTTP libraries, imported when the first request is sent."""

from __future__ import annotations

import ssl
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple


class Sdk(NamedTuple):
    """The SDK, its aiohttp, and its HTTP library: httpx for openai 2, httpx2 for openai 3."""

    openai: Any
    aiohttp: Any
    http: Any


@cache
def sdk() -> Sdk:
    """Import the SDK.

    A run that finds all its replies in the cache never does, which saves half a second.
    """
    openai = import_module("openai")
    # The class of the SDK's limits is from the HTTP library that the SDK was built for.
    http_library = type(openai.DEFAULT_CONNECTION_LIMITS).__module__.partition(".")[0]
    return Sdk(openai, import_module("aiohttp"), import_module(http_library))


@cache
def tls_context(cert_file: str | None, cert_dir: str | None) -> ssl.SSLContext:
    """Return the certificates that every client of this process trusts.

    The HTTP library reads $SSL_CERT_FILE and $SSL_CERT_DIR itself: here they say that the same
    certificates are meant. Reading them takes 50 ms, which each client would spend again.
    """
    context: ssl.SSLContext = sdk().http.create_ssl_context()
    return context
