"""Killed at any step of saving a run: nobody finds two runs mixed, and the next run removes what is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, shutil, sys, warnings
from pathlib import Path
import judge
from judge.results.loading import load

warnings.simplefilter("ignore")
place = Path(sys.argv[1])
STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir"}

def made(name, output):
    rows = [{"item": str(n), "system": name, "source": "a", "output": output} for n in range(3)]
    result = judge.evaluate(rows, ["coherence"], model=lambda prompt: 4, cache=False)
    result.save(place / name)
    return result

def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

old, new = made("old", "one text"), made("new", "another text")
of_old, of_new = contents(place / "old"), contents(place / "new")
outcomes = []
for last in range(1, 1000):
    out = place / "out"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(place / "old", out)
    child = os.fork()
    if not child:
        left = last
        def count(event, arguments):
            global left
            inside = any(str(argument).startswith(str(out)) for argument in arguments)
            if event in STEPS and inside:
                left -= 1
                if not left:
                    os._exit(9)
        sys.addaudithook(count)
        try:
            new.save(out, overwrite=True)
        finally:
            os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = contents(out)
    runs = {"old" if of_old.get(name) == body else "new" if of_new.get(name) == body else "damaged"
            for name, body in seen.items() if not name.startswith(".")}
    loaded = load(out).table.systems
    new.save(out, overwrite=True)
    left_over = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.name not in of_new)
    outcomes.append([sorted(runs), list(loaded), left_over])
    if status == 0:
        break
print(json.dumps(outcomes))
"""


@pytest.mark.slow
def test_a_run_killed_at_any_step_of_saving_leaves_one_run_and_no_leftovers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    states = json.loads(done.stdout)
    assert len(states) > 10
    for runs, loaded, left_over in states:
        assert runs in ([], ["old"], ["new"])
        assert loaded in (["old"], ["new"])
        assert left_over == []
    assert states[0][1] == ["old"]
    assert states[-1][:2] == [["new"], ["new"]]
