"""What a command reads: of a file that is not there, what stands in its place."""

from __future__ import annotations

import difflib
from pathlib import Path

from judge.core.errors import ConfigError

PLANS = (".yaml", ".yml")
_SHOWN = 3


def there(data: Path) -> None:
    """Raises ConfigError for data or a plan that is not there, which names the files that are; a pattern may be any."""
    from judge.data.shards import SUFFIXES

    folder = data.parent
    if data.exists() or data.is_symlink() or any(sign in str(data) for sign in "*?["):
        return
    if not folder.is_dir():
        raise ConfigError(f"{data}: no such file: there is no folder {folder}")
    kinds = PLANS if data.suffix in PLANS else SUFFIXES
    beside = sorted(one.name for one in folder.iterdir() if one.suffix.lower() in kinds)
    if near := difflib.get_close_matches(data.name, beside, n=_SHOWN):
        raise ConfigError(f"{data}: no such file; near it: {', '.join(near)}")
    if not beside:
        raise ConfigError(
            f"{data}: no such file, and no {'plan' if data.suffix in PLANS else 'data'} file is in {folder}"
        )
    more = f" and {len(beside) - _SHOWN} more" if len(beside) > _SHOWN else ""
    raise ConfigError(f"{data}: no such file; there: {', '.join(beside[:_SHOWN])}{more}")
