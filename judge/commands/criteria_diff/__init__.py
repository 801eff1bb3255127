"""`judge criteria diff`: compare prompts, scores and agreement of two wordings of a criterion."""
