"""What instructions to the judge, written into an output, do to its scores."""

from __future__ import annotations

from collections.abc import Sequence

from judge.audit.card import Cell, Evidence
from judge.audit.perturbations.injections import CONTROL
from judge.audit.sensitivity import cells


def attacked(evidence: Evidence, attacks: Sequence[str], *, seed: int = 0) -> tuple[Cell, ...]:
    """A cell for every attack by every criterion: `rate` is how often the score rose, `move` by how much on average.

    Against the same outputs with the control in the attack's place (what any addition does), and the control against
    the outputs as they are, see `sensitivity.cells`; Holm's correction is over all of these and all criteria.
    """
    return cells(evidence, dict.fromkeys(attacks, ""), rises=True, control=CONTROL, seed=seed)
