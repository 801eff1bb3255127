"""How often the tests of a run find a difference for which `judge plan RUN` promises 80% power, by simulation.

Two or five systems are scored on the same items, 1 to 5 in three shapes or without a scale. One system is better by the
smallest of 58 steps at which the promise, made for 20,000 items of the same kind, reaches 80%; if none does, by the
largest. Delivered is how often Holm's correction leaves the difference to the second system significant.

    python benchmarks/power.py [REPETITIONS]     # 2,000
"""

from __future__ import annotations

import sys

import numpy as np

from judge.stats.paired_differences import holm, pairs, sign_flip
from judge.stats.power import ALPHA, scatter_of_pairs

SIZES = (6, 9, 18, 50)
SYSTEMS = (2, 5)
CUTS = {
    "even": (-1.28, -0.52, 0.52, 1.28),
    "near the top": (-2.05, -1.48, -0.95, -0.13),
    "at both ends": (-0.52, -0.13, 0.13, 0.52),
    "no scale": (),
}
SHIFTS = np.arange(0.1, 3.0, 0.05)


def differences(
    shape: str,
    shift: float,
    systems: int,
    size: tuple[int, int],
    random: np.random.Generator,
) -> np.ndarray:
    """Return repetitions × pairs × items; the first system is better by `shift` standard deviations."""
    item = random.normal(size=(size[0], 1, size[1]))
    hidden = 0.5**0.5 * (item + random.normal(size=(size[0], systems, size[1])))
    hidden[:, 0] += shift
    values = (
        np.searchsorted(CUTS[shape], hidden.ravel()).reshape(hidden.shape)
        if CUTS[shape]
        else hidden
    )
    first, second = zip(*pairs(range(systems)), strict=True)
    return (values[:, first] - values[:, second]).astype(float)


def promise(shape: str, shift: float, systems: int, items: int) -> float:
    row = differences(shape, shift, 2, (1, 20_000), np.random.default_rng(0))[0]
    (spread,) = scatter_of_pairs(
        "score", ["a", "b"], [(0, 1)], row, systems=systems
    ).pairs
    return spread.power_of(items)


def delivered(
    shape: str, shift: float, systems: int, items: int, repetitions: int
) -> float:
    drawn = differences(
        shape,
        shift,
        systems,
        (repetitions, items),
        np.random.default_rng([items, systems]),
    )
    p = sign_flip(drawn.reshape(-1, items)).p.reshape(repetitions, -1)
    return float(np.mean([holm(each)[0] < ALPHA for each in p]))


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    print(
        f"promised and delivered power, {repetitions:,} repetitions\n{'':<24}"
        + "".join(f"{f'n = {n}':>16}" for n in SIZES)
    )
    for systems in SYSTEMS:
        for shape in CUTS:
            cells = []
            for items in SIZES:
                promises = [promise(shape, shift, systems, items) for shift in SHIFTS]
                at = next(
                    (k for k, power in enumerate(promises) if power >= 0.8),
                    int(np.argmax(promises)),
                )
                found = delivered(shape, SHIFTS[at], systems, items, repetitions)
                cells.append(f"{promises[at]:>9.2f}{found:>7.2f}")
            print(f"{f'{systems} systems, {shape}':<24}{''.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
