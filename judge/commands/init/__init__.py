"""`judge init`: a project that runs offline, and a first suite."""
