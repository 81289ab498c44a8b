"""A page about a coreset that people want to read."""

from corebayes.report.report import Report, report

__all__ = ["Report", "report"]
