"""A page about a coreset that people want to read, and draws as a table."""

from corebayes.report.report import Report, report
from corebayes.report.summary import summary

__all__ = ["Report", "report", "summary"]
