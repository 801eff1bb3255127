"""promptfoo: four `llm-rubric` assertions on outputs that the provider `echo` repeats.

Telemetry and update checks are off by PROMPTFOO_DISABLE_TELEMETRY and PROMPTFOO_DISABLE_UPDATE. A second start reads
its cache of replies, which is on by default.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import cases


def configuration(url: str) -> dict[str, object]:
    grader = {
        "id": f"openai:chat:{cases.MODEL}",
        "config": {"apiBaseUrl": url, "apiKey": "x", "temperature": 0},
    }
    assertions = [
        {"type": "llm-rubric", "metric": name, "value": f"{question} {cases.SCALE}"}
        for name, question in cases.CRITERIA.items()
    ]
    tests = [
        {
            "description": str(text.number),
            "vars": {"source": text.source, "output": text.output},
        }
        for text in cases.texts()
    ]
    return {
        "prompts": ["{{source}}\n{{output}}"],
        "providers": ["echo"],
        "defaultTest": {"assert": assertions, "options": {"provider": grader}},
        "tests": tests,
    }


def main() -> None:
    url, path, folder = cases.arguments()
    config, output = folder / "promptfooconfig.json", folder / "output.json"
    config.write_text(json.dumps(configuration(url)), encoding="utf-8")
    environment = {
        **os.environ,
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
        "PROMPTFOO_CONFIG_DIR": str(folder / "home"),
        "PROMPTFOO_ASSERTIONS_MAX_CONCURRENCY": str(len(cases.CRITERIA)),
    }
    binary = (
        Path(os.environ["JUDGE_COMPARED_HOME"]) / "node_modules" / ".bin" / "promptfoo"
    )
    # Each test asks for all of its criteria at once.
    at_once = cases.CONCURRENCY // len(cases.CRITERIA)
    command = [
        str(binary),
        "eval",
        "-c",
        str(config),
        "-o",
        str(output),
        "-j",
        str(at_once),
    ]
    command += ["--no-progress-bar", "--no-table", "--no-share"]
    # It exits with 100 if a test fails.
    subprocess.run(command, env=environment, check=False)
    judged = []
    for row in json.loads(output.read_text("utf-8"))["results"]["results"]:
        number = int(row["testCase"]["description"])
        grades = (row.get("gradingResult") or {}).get("componentResults") or []
        for grade in grades:
            name = grade["assertion"]["metric"]
            # A reply that it cannot read has the score 0 and a reason that says so.
            judged.append(
                cases.Judged(number, name, float(grade["score"]), grade["reason"])
            )
    cases.write(path, judged)


if __name__ == "__main__":
    main()
