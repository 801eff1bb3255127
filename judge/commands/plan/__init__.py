"""`judge plan`: the requests, cost and time of a run, and the power of a finished one."""
