"""A coreset of groups as a NumPyro model: the effects integrated out by quadrature, in JAX.

The nodes are placed again at every φ, around the mode of each group's effects, by damped Newton
steps without derivatives: where they lie changes the integral by next to nothing, so the derivative
of the density at fixed nodes is the integral's own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebayes.adapters.exports.mixed_parts import MixedParts
from corebayes.coreset import GroupCoreset
from corebayes.models.quadrature import product_rule
from corebayes.types import Array

# Damped steps by λ/(1 + λ) come as close as any float64 can tell in so many.
STEPS = 40


def marginal_factor(coreset: GroupCoreset, parts: MixedParts, numpyro: Any) -> Callable[..., Any]:
    """(coefficients, constants, scales (q,)) ↦ Σ_g w_g log ∫ p(y_g, b) db."""
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    weights = coreset.weights
    y, X, Z, w = group_arrays(coreset, parts, "to_numpyro")
    q = Z.shape[2]
    points, log_weights = product_rule(coreset.marginal.num_nodes, q)

    def factor(coefficients: Any, constants: Any, scales: Any) -> Any:
        family = parts.family(constants)

        def height(b: Any, fixed: Any, Z: Any, y: Any, w: Any) -> Any:
            rows = family.in_numpyro(numpyro, jax, fixed + Z @ b).log_prob(y)
            prior = numpyro.distributions.Normal(0.0, scales).log_prob(b).sum()
            return jnp.sum(w * rows) + prior

        def of_group(fixed: Any, Z: Any, y: Any, w: Any) -> Any:
            def at(b: Any) -> Any:
                return height(b, fixed, Z, y, w)

            def curvature(b: Any) -> Any:
                # As ours has it: rows that are not log-concave there have none.
                def row(eta: Any, y: Any) -> Any:
                    return family.in_numpyro(numpyro, jax, eta).log_prob(y)

                bend = jax.vmap(jax.grad(jax.grad(row)))(fixed + Z @ b, y)
                rows = w * jnp.maximum(-bend, 0.0)
                return (Z.T * rows) @ Z + jnp.diag(scales**-2.0)

            mode, root = jax.lax.stop_gradient(_mode(jax, at, curvature, q))
            spread = jnp.linalg.inv(root).T
            effects = mode + points @ spread.T
            logs = jax.vmap(at)(effects) + log_weights
            return jax.scipy.special.logsumexp(logs) + jnp.log(jnp.abs(jnp.diag(spread))).sum()

        return jnp.sum(weights * jax.vmap(of_group)(X @ coefficients, Z, y, w))

    return factor


def group_arrays(
    coreset: GroupCoreset, parts: MixedParts, exporter: str
) -> tuple[NDArray[Any], Array, Array, Array]:
    """y, X, Z and w of the kept groups, or a sentence where there is no quadrature for them."""
    groups, family = coreset.rows, parts.model.family
    if not family.log_concave:
        raise TypeError(
            f"{exporter} has no quadrature for groups of {type(family).__name__}, "
            "whose effects may have several modes: export coreset.level_one, a coreset of rows"
        )
    if family.row_columns:
        raise TypeError(
            f"{exporter} has no quadrature for groups of rows with an offset, exposure, trials or "
            "censoring: export coreset.level_one, a coreset of rows"
        )
    y = groups["y"]
    if not family.location_family:
        # The family's own form of a label may be ±1; other libraries have 0 and 1.
        y = np.where(y > 0.0, y, 0.0).astype(np.int64)
    return y, groups["X"], groups["Z"], groups["w"]


def _mode(jax: Any, height: Callable[[Any], Any], curvature: Callable[[Any], Any], q: int) -> Any:
    """The mode, and the lower root of the curvature there."""
    jnp: Any = importlib.import_module("jax.numpy")
    slope = jax.grad(height)

    def newton(_: int, b: Any) -> Any:
        gradient = slope(b)
        step = jnp.linalg.solve(curvature(b), gradient)
        # Newton's decrement: far away the step is about one standard deviation.
        length = jnp.sqrt(jnp.maximum(gradient @ step, 0.0))
        return b + step / (1.0 + jnp.where(length > 0.5, length, 0.0))

    mode = jax.lax.fori_loop(0, STEPS, newton, jnp.zeros(q))
    return mode, jnp.linalg.cholesky(curvature(mode))
