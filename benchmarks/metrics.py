"""Every metric beside the package it stands for: CPU seconds on SummEval, side by side in one run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module

PARTS = ("rouge", "translation", "diversity", "bertscore", "memory")


def main() -> None:
    """Print what was measured, ours, theirs, and how many times as long theirs took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        choices=[*PARTS, []],
        default=[],
        help="default: all of them",
    )
    for part in parser.parse_args().parts or PARTS:
        found: Iterator[tuple[str, str, str, str]] = import_module(
            f"metrics_{part}"
        ).rows()
        for what, ours, theirs, ratio in found:
            print(f"{what:<58} {ours:>14} {theirs:>34} {ratio:>10}", flush=True)


if __name__ == "__main__":
    main()
