"""The official SDK with its HTTP libraries, imported when the first request is sent."""

from __future__ import annotations

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
