"""E f, E ∂f and E ∂²f in the predictors of rows, under the Gaussian that these have.

By Gauss–Hermite quadrature for one or two predictors; for more by the 2k points of spherical
cubature, exact for cubic functions, or at the mean where that would be too many. Models of one's
own with many parameters, or without derivatives, are evaluated at places that are the same for all
rows: the Gaussian's cubature, or its mean.
"""

from __future__ import annotations

import numpy as np

from corebayes.arrow.gaussian import ArrowGaussian, Whitened
from corebayes.arrow.layout import Layout, Split
from corebayes.arrow.sums import ArrowSums, Expected, arrow_sums
from corebayes.models.custom.touching import is_touching
from corebayes.models.quadrature import gauss_hermite
from corebayes.models.structure import StructuredModel
from corebayes.types import Array, Block

# Seven nodes are exact to degree 13: enough for predictors that vary by a few units.
NODES = 7
# For two predictors: the first is the linear one, the second a log scale, known much better.
NODES_OF_TWO = (5, 3)


# Predictors of a row, or coordinates of φ and a group, up to which there are 2 places for each.
MOST_COORDINATES = 12


def expected(
    model: StructuredModel, block: Block, gaussian: ArrowGaussian, whitened: Whitened
) -> Expected:
    """Cost: n·R jets at R places."""
    mean, wide, own = whitened
    if is_touching(model) and not model.has_jets:
        return Expected(*model.row_means(_common_places(gaussian), block))
    num_predictors = mean.shape[1]
    if num_predictors == 1:
        rule = gauss_hermite(NODES)
        variance = np.einsum("np,np->n", wide[:, 0], wide[:, 0])
        variance += np.einsum("nq,nq->n", own[:, 0], own[:, 0])
        spread = np.sqrt(variance)
        jets = model.jets(mean[:, :, None] + spread[:, None, None] * rule.nodes, block)
        means = (jets.value @ rule.weights, jets.first @ rule.weights, jets.second @ rule.weights)
        # By parts: E ∂³f = E[∂²f z] / spread
        third = jets.second[:, 0, 0] @ (rule.weights * rule.nodes)
        return Expected(*means, np.divide(third, spread, out=third, where=spread > 0.0))
    covariance = np.matmul(wide, wide.transpose(0, 2, 1))
    covariance += np.matmul(own, own.transpose(0, 2, 1))
    if is_touching(model) and num_predictors > MOST_COORDINATES:
        jets, weights = model.jets(mean[:, :, None], block), np.ones(1)
    else:
        directions, weights = _rule(num_predictors)
        jets = model.jets(mean[:, :, None] + _root(covariance) @ directions, block)
    return Expected(jets.value @ weights, jets.first @ weights, jets.second @ weights, None)


def num_places(num_predictors: int) -> int:
    """At how many places rows are looked at in a pass, for which derivatives are compiled."""
    return NODES if num_predictors == 1 else _rule(num_predictors)[1].size


def expected_thirds(model: StructuredModel, block: Block, whitened: Whitened) -> Array:
    """E ∂³f in the predictors, (n, k, k, k), of rows that touch no group. Cost: n·R jets."""
    mean, wide, _ = whitened
    num_predictors = mean.shape[1]
    if num_predictors == 1:
        rule = gauss_hermite(NODES)
        directions, weights = rule.nodes[None], rule.weights
    else:
        directions, weights = _rule(num_predictors)
    root = _root(np.matmul(wide, wide.transpose(0, 2, 1)))
    second = model.jets(mean[:, :, None] + root @ directions, block).second
    # By parts: E ∂_l g = Σ_m (R⁻¹)_ml E[g z_m] where the predictors are their mean + R z
    sloped = second @ (weights * directions).T
    third = sloped @ np.linalg.pinv(root)[:, None]
    return (third + third.transpose(0, 3, 1, 2) + third.transpose(0, 2, 3, 1)) / 3.0


def sums_of(
    model: StructuredModel,
    layout: Layout,
    gaussian: ArrowGaussian,
    block: Block,
    weights: Array | None,
) -> ArrowSums:
    """Σ_n w_n of expected values, gradients and Hessians in the parameters themselves."""
    split = layout.split(model, block)
    jets = expected(model, block, gaussian, gaussian.whiten(split))
    return arrow_sums(split, jets, weights, layout.num_groups)


def _common_places(gaussian: ArrowGaussian) -> Array:
    few = gaussian.wide_mean.size + gaussian.layout.num_own <= MOST_COORDINATES
    return gaussian.cubature if few and gaussian.factor.any() else gaussian.mean[None]


def whitened_split(gaussian: ArrowGaussian, split: Split) -> tuple[Whitened, Split]:
    """Rows' predictors in whitened coordinates, also as what sums are taken of."""
    whitened = gaussian.whiten(split)
    return whitened, Split(whitened.wide, whitened.own, split.groups)


def _rule(num_predictors: int) -> tuple[Array, Array]:
    """Places (k, R) and weights of a rule for N(0, I)."""
    if num_predictors == 2:
        first, second = (gauss_hermite(number) for number in NODES_OF_TWO)
        places = np.stack(
            [np.repeat(first.nodes, second.nodes.size), np.tile(second.nodes, first.nodes.size)]
        )
        return places, np.outer(first.weights, second.weights).ravel()
    axes = np.sqrt(num_predictors) * np.eye(num_predictors)
    return np.hstack([axes, -axes]), np.full(2 * num_predictors, 0.5 / num_predictors)


def _root(covariance: Array) -> Array:
    """A symmetric square root of each covariance, which may be singular."""
    if covariance.shape[1] == 2:
        # Cholesky by hand: many matrices, and variances may be zero.
        root = np.zeros_like(covariance)
        first = np.sqrt(covariance[:, 0, 0])
        lean = np.divide(covariance[:, 1, 0], first, out=np.zeros_like(first), where=first > 0.0)
        root[:, 0, 0], root[:, 1, 0] = first, lean
        root[:, 1, 1] = np.sqrt(np.maximum(covariance[:, 1, 1] - lean**2, 0.0))
        return root
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
