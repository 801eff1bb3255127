"""`judge audit`: how a judge reacts to texts that are changed in known ways."""
