"""Audits of a judge: controlled changes to texts, and what they do to its scores."""
