"""6,400 judgments of SummEval answered from the cache: CPU time, also of the whole command."""

from __future__ import annotations

import resource
import statistics
import tempfile
from pathlib import Path

from common import CRITERIA, SUMMEVAL, command, judged

from judge.cache import DiskCache


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "cache"
        _, cold, sent = judged(lambda: DiskCache(kept))
        warm = [judged(lambda: DiskCache(kept)) for _ in range(5)]
        seconds = statistics.median(spent for _, spent, _ in warm)
        again = max(requests for _, _, requests in warm)
        print(
            f"cold: {cold:.2f} s of CPU, {sent} requests; warm: {seconds:.2f} s, {again} requests"
        )
        print(
            f"warm: {6400 / seconds:,.0f} judgments per second of CPU, {cold / seconds:.1f} times the cold run's rate"
        )
        replies = Path(folder) / "replies.yaml"
        replies.write_text(
            "- {when: [], reply: {4: 0.6, 5: 0.3, 3: 0.1}}\n", encoding="utf-8"
        )
        given = [
            "run",
            SUMMEVAL,
            "--map",
            "item=doc_id,output=summary",
            "--criteria",
            ",".join(CRITERIA),
        ]
        given += [
            "--metrics",
            "none",
            "--model",
            f"scripted/{replies}",
            "--cache",
            f"{folder}/other",
        ]
        times = []
        for _ in range(4):
            before = cpu_of_commands()
            command(*given, "--out", f"{folder}/out", "--quiet")
            times.append(cpu_of_commands() - before)
        warm_seconds = statistics.median(times[1:])
        print(
            f"whole command with reports: cold {times[0]:.2f} s of CPU, warm {warm_seconds:.2f} s"
        )


def cpu_of_commands() -> float:
    """Return the CPU seconds of all commands that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
