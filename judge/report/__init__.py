"""A finished result as console text, Markdown, HTML, JSON or CSV. Lays out what it is given; estimates nothing."""

from judge.report.result import Result as Result
from judge.report.result import load as load

__all__ = ["Result", "load"]
