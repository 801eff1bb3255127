"""benchmarks/reproduce/README.md: a reader without the data learns where they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_script_names_missing_files_and_their_public_sources(tmp_path: Path) -> None:
    script = ROOT / "benchmarks" / "reproduce" / "reproduce.py"
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"reproduce: {tmp_path} lacks\n  alpaca_logprobs/*.json*: [tatsu-lab/alpaca_eval]("
    )
    assert "Traceback" not in done.stderr
    page = script.with_name("README.md").read_text(encoding="utf-8")
    for line in done.stderr.splitlines()[1:-1]:
        name, source = line.strip().split(": ", 1)
        assert f"| `{name}` | {source.partition('; ')[0]} |" in page
