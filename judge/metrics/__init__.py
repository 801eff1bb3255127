"""Reference metrics: samples to scores. One module each; `judge.registry.METRICS` lists them."""
