"""Constructions: how a coreset is found. One file each."""

from corebayes.constructions.annealed import AnnealedSparseVI
from corebayes.constructions.construction import Construction, Info, PathConstruction
from corebayes.constructions.coreset_mcmc import CoresetMCMC
from corebayes.constructions.frank_wolfe import FrankWolfe
from corebayes.constructions.giga import GIGA
from corebayes.constructions.hard_thresholding import HardThresholding
from corebayes.constructions.importance_sampling import ImportanceSampling
from corebayes.constructions.l1 import L1
from corebayes.constructions.orthogonal_pursuit import OrthogonalPursuit
from corebayes.constructions.pseudo_coreset import PseudoCoreset
from corebayes.constructions.quasi_newton import QuasiNewton
from corebayes.constructions.sparse_vi import SparseVI
from corebayes.constructions.uniform import Uniform

__all__ = [
    "GIGA",
    "L1",
    "AnnealedSparseVI",
    "Construction",
    "CoresetMCMC",
    "FrankWolfe",
    "HardThresholding",
    "ImportanceSampling",
    "Info",
    "OrthogonalPursuit",
    "PathConstruction",
    "PseudoCoreset",
    "QuasiNewton",
    "SparseVI",
    "Uniform",
]
