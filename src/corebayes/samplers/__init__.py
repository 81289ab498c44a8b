"""Draws of the coreset posterior π_w."""

from corebayes.samplers.exact import Exact
from corebayes.samplers.kernel import CoresetDensity, HitAndRun, Kernel
from corebayes.samplers.laplace import Laplace

__all__ = ["CoresetDensity", "Exact", "HitAndRun", "Kernel", "Laplace"]
