"""Commands that need no server open no connection."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories import write_jsonl

HOOKED = """
import sys

def hook(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        sys.stderr.write(f"CONNECTS {event} {args}\\n")
        sys.stderr.flush()

sys.addaudithook(hook)
sys.argv[0] = "judge"
if sys.argv[1:] == ["connect"]:
    import socket
    try:
        socket.create_connection(("127.0.0.1", 9), 1)
    except OSError:
        pass
for words in sys.stdin.read().splitlines():
    sys.stderr.write(f"RUNS {words}\\n")
    from judge.cli import main
    sys.argv[1:] = words.split()
    try:
        main()
    except SystemExit as ended:
        if ended.code not in (None, 0, 1):
            raise
"""


def run(folder: Path, *words: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program with these words, or the commands in `lines` one after the other."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith(("_API_KEY", "_PROXY", "_proxy"))
    }
    command = [sys.executable, "-c", HOOKED, *words]
    return subprocess.run(
        command, cwd=folder, env=env, input=lines, capture_output=True, text=True, check=False
    )


def test_the_hook_sees_a_connection(tmp_path: Path) -> None:
    assert "CONNECTS" in run(tmp_path, "connect").stderr


COMMANDS = """\
--help
run rows.jsonl --model scripted/replies.yaml --criteria fluency --out run --record rec.jsonl --cache replies
plan rows.jsonl --criteria fluency --model m --base-url http://127.0.0.1:9/v1
report run
report run --format html
run rows.jsonl --criteria none --metrics rouge,stats --out scored
validate rows.jsonl --card --criteria fluency --model scripted/replies.yaml --probes injection --out card
run rows.jsonl --replay rec.jsonl --criteria fluency --no-cache --out again
criteria list
criteria render fluency rows.jsonl
doctor
doctor cache stats --cache replies
"""


@pytest.mark.slow
def test_commands_that_need_no_server_open_no_connection(tmp_path: Path) -> None:
    rows = [
        {
            "item": item,
            "system": system,
            "source": f"The {item} is closed.",
            "output": f"The {item} {end}.",
            "references": [f"The {item} is closed today."],
        }
        for item in ("ferry", "baths")
        for system, end in (("a", "is closed"), ("b", "opens on Monday"))
    ]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    (tmp_path / "replies.yaml").write_text("- {reply: 3}\n")
    completed = run(tmp_path, lines=COMMANDS)
    assert "CONNECTS" not in completed.stderr, completed.stderr
    assert completed.returncode == 0, completed.stderr
    assert "Traceback" not in completed.stderr
    assert (tmp_path / "again" / "report.html").exists()
