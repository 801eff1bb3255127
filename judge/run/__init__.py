"""From a configuration to a `Result`: prepare, generate, judge, measure, and describe the run.

`preparation.prepare` makes a `PreparedRun`, `pipeline.run_pipeline` makes the result of it.
"""
