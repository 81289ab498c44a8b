"""Gauss–Hermite quadrature for expectations under a Gaussian."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from numpy.polynomial import hermite_e

from corebayes.types import Array


class Rule(NamedTuple):
    """Nodes and weights of a quadrature for N(0, 1)."""

    nodes: Array
    weights: Array


@cache
def gauss_hermite(num_nodes: int) -> Rule:
    nodes, weights = hermite_e.hermegauss(num_nodes)
    return Rule(nodes, weights / weights.sum())
