"""Constructions: how a coreset is found. One file each."""

from corebayes.constructions.annealed import AnnealedSparseVI
from corebayes.constructions.construction import Construction, Info
from corebayes.constructions.sparse_vi import SparseVI
from corebayes.constructions.uniform import Uniform

__all__ = ["AnnealedSparseVI", "Construction", "Info", "SparseVI", "Uniform"]
