"""How much a run may spend."""
