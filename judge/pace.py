"""How fast one judge may be asked."""
