"""Draws of the coreset posterior π_w."""

from corebayes.samplers.automatic import Automatic
from corebayes.samplers.draws import Draws, Sampler
from corebayes.samplers.exact import Exact
from corebayes.samplers.independence import Independence
from corebayes.samplers.kernel import HitAndRun, Kernel
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior

__all__ = [
    "Automatic",
    "Draws",
    "Exact",
    "HitAndRun",
    "Independence",
    "Kernel",
    "Laplace",
    "Posterior",
    "Sampler",
]
