"""Draws of the coreset posterior π_w."""

from corebayes.samplers.draws import Draws, Sampler
from corebayes.samplers.exact import Exact
from corebayes.samplers.kernel import HitAndRun, Kernel
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior

__all__ = ["Draws", "Exact", "HitAndRun", "Kernel", "Laplace", "Posterior", "Sampler"]
