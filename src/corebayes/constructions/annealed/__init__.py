"""Annealed sparse variational inference, a file a phase: march, choose, polish, grow."""

from corebayes.constructions.annealed.method import AnnealedSparseVI

__all__ = ["AnnealedSparseVI"]
