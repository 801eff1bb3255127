"""`judge criteria diff`: what two wordings of a criterion change in prompts, scores and
agreement.
"""
