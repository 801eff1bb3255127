"""Time and memory until a hostile template is refused: every attack of tests/security/attacks.yaml, at full limits.

    python benchmarks/attacks.py

Memory is the larger peak of the two processes, the user's and the one that renders.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from common import ROOT

ATTACK = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1] + "/tests/security")
from test_attacks import ATTACKS, prompt
from judge import JudgeError
attack = (ATTACKS["refused"] + ATTACKS["harmless"])[int(sys.argv[2])]
start = time.perf_counter()
try:
    result = f"{len(prompt(Path(sys.argv[3]), attack)):,} characters"
except JudgeError as error:
    result = str(error)
seconds = time.perf_counter() - start
from judge.criteria import render
render._child.close()
usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
spent = sum(one.ru_utime + one.ru_stime for one in usage)
print(json.dumps([seconds, spent, max(one.ru_maxrss for one in usage) / 1e3, str(attack)[:60], result[-90:]]))
"""


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "security"))
    from test_attacks import ATTACKS

    rows = []
    for number in range(len(ATTACKS["refused"]) + len(ATTACKS["harmless"])):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", ATTACK, str(ROOT), str(number), folder]
            rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout))
        seconds, spent, megabytes, attack, result = rows[-1]
        print(f"{seconds:5.1f} s  {spent:5.1f} s of CPU  {megabytes:4.0f} MB  {attack}  {result}")
    worst = [max(row[place] for row in rows) for place in range(3)]
    print(f"{len(rows)} attacks: at most {worst[0]:.1f} s, {worst[1]:.1f} s of CPU, {worst[2]:.0f} MB")


if __name__ == "__main__":
    main()
