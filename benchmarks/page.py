"""The page of 1,600 items by 16 systems and 8 columns: its size, the time to write it, and to open it in Chromium."""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from judge import criteria
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.renderers.html import render
from judge.report.views.result import view
from judge.results.result import Result
from judge.stats.bootstrap import item_means
from judge.table import Table

ITEMS, SYSTEMS = 1600, 16
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
METRICS = ("rouge1", "rouge2", "rougeL", "chrf")
WORDS = (
    "the",
    "a",
    "of",
    "boat",
    "harbour",
    "council",
    "said",
    "will",
    "on",
    "Monday",
    "crew",
    "and",
    "storm",
    "it",
    "was",
)
CHANCE = random.Random(0)


def text(words: int) -> str:
    return " ".join(CHANCE.choice(WORDS) for _ in range(words))


def made() -> Result:
    """16 systems on 1,600 items: four criteria by token probabilities with reasons, four metrics."""
    chosen = [
        criteria.load(name)
        for name in ("coherence", "consistency", "fluency_5", "relevance")
    ]
    columns = [
        Column(
            c.name,
            "criterion",
            Signature(c.name),
            c.scale.low,
            c.scale.high,
            c.scale.labels,
        )
        for c in chosen
    ]
    columns += [Column(name, "metric", Signature(name), 0.0, 1.0) for name in METRICS]
    samples = []
    for k in range(ITEMS):
        source, reference = text(350), text(60)
        samples += [
            Sample(f"item-{k}", f"system-{n}", text(60), source, (reference,))
            for n in range(SYSTEMS)
        ]
    scores = [score(sample, column) for sample in samples for column in columns]
    table = Table(tuple(samples), tuple(columns), tuple(scores))
    return Result(table, item_means(table))


def score(sample: Sample, column: Column) -> Score:
    if column.kind == "metric":
        return Score(
            sample.item,
            sample.system,
            column.name,
            CHANCE.random(),
            Provenance("metric"),
        )
    weights = {label: CHANCE.random() ** 3 for label in column.labels}
    mass = 0.9 + 0.1 * CHANCE.random()
    shares = {
        label: mass * weight / sum(weights.values())
        for label, weight in weights.items()
    }
    value = sum(int(label) * share for label, share in shares.items()) / mass
    how = Provenance(
        "logprobs", mass, shares, 1.1, "4", value - 0.1, value + 0.1, 1, text(14), "4"
    )
    return Score(sample.item, sample.system, column.name, value, how)


def opening(browser: Browser, file: Path) -> float:
    """Return the seconds until a page is read, its script has run, and it has been drawn."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    start = time.perf_counter()
    page.goto(file.as_uri())
    page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
    )
    took = time.perf_counter() - start
    page.close()
    return took


def main() -> None:
    result = made()
    start = time.process_time()
    page = render(view(result))
    wrote = time.process_time() - start
    print(
        f"{ITEMS:,} items by {SYSTEMS} systems by {len(result.table.columns)} columns"
    )
    print(
        f"{len(page.encode()) / 1e6:.2f} MB with {page.count('<article>'):,} texts; written in {wrote:.2f} s of CPU"
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        browser = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        opening(browser, file)
        took = [opening(browser, file) for _ in range(5)]
        browser.close()
    print(
        f"opened in {statistics.median(took):.2f} s (median of 5; {min(took):.2f} to {max(took):.2f})"
    )


if __name__ == "__main__":
    main()
