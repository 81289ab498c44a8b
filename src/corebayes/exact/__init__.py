"""The posterior of all rows through a coreset: exact draws, evidence, cross-validation."""

from corebayes.exact.correct import correct
from corebayes.exact.evidence import log_evidence
from corebayes.exact.laplace import laplace
from corebayes.exact.loo import loo

__all__ = ["correct", "laplace", "log_evidence", "loo"]
