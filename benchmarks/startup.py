"""How long `judge --help` takes, beside an interpreter that does nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 11


def seconds(code: str, *args: str) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code, *args], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    nothing = seconds("pass")
    for name, code, args in (
        ("import judge", "import judge", ()),
        ("judge --help", "from judge.cli import main; main()", ("--help",)),
    ):
        took = seconds(code, *args)
        print(f"{name}: {took:.3f} s, {took / nothing:.1f} times an empty interpreter's {nothing:.3f} s")


if __name__ == "__main__":
    main()
