"""Constructions: how a coreset is found. One file and one line here each."""

from typing import TYPE_CHECKING, Any

from corebayes.constructions.construction import Construction as Construction
from corebayes.constructions.construction import Info as Info
from corebayes.models.mixed.regression import MixedRegression

# isort: off
# The order of legends and lists: kin beside kin, the baselines last.
from corebayes.constructions.annealed import AnnealedSparseVI as AnnealedSparseVI
from corebayes.constructions.grouped_pursuit import GroupedPursuit as GroupedPursuit
from corebayes.constructions.sparse_vi import SparseVI as SparseVI
from corebayes.constructions.l1 import L1 as L1
from corebayes.constructions.orthogonal_pursuit import OrthogonalPursuit as OrthogonalPursuit
from corebayes.constructions.hard_thresholding import HardThresholding as HardThresholding
from corebayes.constructions.giga import GIGA as GIGA
from corebayes.constructions.frank_wolfe import FrankWolfe as FrankWolfe
from corebayes.constructions.quasi_newton import QuasiNewton as QuasiNewton
from corebayes.constructions.coreset_mcmc import CoresetMCMC as CoresetMCMC
from corebayes.constructions.pseudo_coreset import PseudoCoreset as PseudoCoreset
from corebayes.constructions.importance_sampling import ImportanceSampling as ImportanceSampling
from corebayes.constructions.uniform import Uniform as Uniform


def default_construction(model: Any) -> Construction:
    """What `build` does when no method is named."""
    # A mixed model knows its structure only when it is bound, and some families become one then.
    several = isinstance(model, MixedRegression) or getattr(model, "several", False)
    if several or getattr(model, "structure", None) is not None:
        return GroupedPursuit()
    return AnnealedSparseVI()


def exported() -> dict[str, type[Construction]]:
    """The constructions above by name: the command line, the figures and `corebayes` follow."""
    return {
        name: value
        for name, value in globals().items()
        if isinstance(value, type) and issubclass(value, Construction) and value is not Construction
    }


if not TYPE_CHECKING:
    # A type checker reads the lines above instead.
    __all__ = sorted(exported())
