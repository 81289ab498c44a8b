"""Gauss–Hermite quadrature for expectations under a Gaussian."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import hermite_e

from corebayes.types import Array


class Rule(NamedTuple):
    """Nodes and weights of a quadrature for N(0, 1)."""

    nodes: Array
    weights: Array


@cache
def product_rule(num_nodes: int, dim: int) -> tuple[Array, Array]:
    """Points (K^dim, dim) and logs of weights of an integral over the whole space, written as an
    expectation under standard normals: ∫ f = Σ_k e^{log weight} f(x_k)."""
    rule = gauss_hermite(num_nodes)
    points = np.stack(np.meshgrid(*[rule.nodes] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = np.stack(np.meshgrid(*[rule.weights] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    logs = np.log(weights).sum(axis=1) + 0.5 * np.square(points).sum(axis=1)
    return points, logs + 0.5 * dim * np.log(2.0 * np.pi)


@cache
def gauss_hermite(num_nodes: int) -> Rule:
    nodes, weights = hermite_e.hermegauss(num_nodes)
    return Rule(nodes, weights / weights.sum())
