"""A coreset of groups as a PyMC potential: the effects integrated out by quadrature, in PyTensor.

As in `marginal_numpyro`, the nodes are placed again at every φ, around the mode of each group's
effects, by damped Newton steps without derivatives: here of all groups at once.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from corebayes.adapters.exports.marginal_numpyro import STEPS, group_arrays
from corebayes.adapters.exports.mixed_parts import MixedParts
from corebayes.coreset import GroupCoreset
from corebayes.models.quadrature import product_rule
from corebayes.types import Array


def marginal_potential(
    coreset: GroupCoreset,
    parts: MixedParts,
    coefficients: Any,
    constants: Sequence[Any],
    scales: Sequence[Any],
) -> Any:
    """Σ_g w_g log ∫ p(y_g, b) db, of one or two effects b for each group."""
    tensor: Any = importlib.import_module("pytensor.tensor")
    pytensor: Any = importlib.import_module("pytensor")
    pymc: Any = importlib.import_module("pymc")
    y, X, Z, w = group_arrays(coreset, parts, "to_pymc")
    family, q = parts.family(constants), Z.shape[2]
    fixed, precision = tensor.dot(tensor.as_tensor(X), coefficients), tensor.stack(scales) ** -2.0

    def logs(eta: Any, y: Array) -> Any:
        return pymc.logp(family.in_pymc(pymc, eta), y)

    def bent(b: Any) -> tuple[Any, Any]:
        """Slope (G, q) and entries of the curvature of every group's log density at b (G, q)."""
        eta = fixed + (Z * b[:, None]).sum(axis=-1)
        first = tensor.grad(logs(eta, y).sum(), eta)
        # As ours has it: rows that are not log-concave there have none.
        rows = w * tensor.maximum(-tensor.grad(first.sum(), eta), 0.0)
        slope = (Z * (w * first)[:, :, None]).sum(axis=1) - b * precision
        entries = [
            [(rows * Z[:, :, i] * Z[:, :, j]).sum(axis=1) for j in range(q)] for i in range(q)
        ]
        for i in range(q):
            entries[i][i] = entries[i][i] + precision[i]
        return slope, entries

    def newton(b: Any, *_: Any) -> Any:
        slope, entries = bent(b)
        step = _solved(tensor, entries, slope)
        # Newton's decrement: far away the step is about one standard deviation.
        length = tensor.sqrt(tensor.maximum((slope * step).sum(axis=1), 0.0))
        return b + step / (1.0 + tensor.where(length > 0.5, length, 0.0))[:, None]

    start = tensor.zeros((len(Z), q))
    inputs = [coefficients, *constants, *scales]
    with warnings.catch_warnings():
        # Newer versions will return the modes alone, which the next lines take as well.
        warnings.simplefilter("ignore", DeprecationWarning)
        modes = pytensor.scan(newton, outputs_info=[start], non_sequences=inputs, n_steps=STEPS)
    fixed_here: Callable[[Any], Any] = pytensor.gradient.disconnected_grad
    mode = fixed_here(modes[0][-1] if isinstance(modes, tuple | list) else modes[-1])
    spread = [[fixed_here(entry) for entry in row] for row in _spread(tensor, bent(mode)[1])]
    points, log_weights = product_rule(coreset.marginal.num_nodes, q)
    # (G, K, q)
    effects = tensor.stack(
        [
            mode[:, i, None] + sum(spread[i][j][:, None] * points[:, j] for j in range(q))
            for i in range(q)
        ],
        axis=2,
    )
    eta = fixed[:, None] + (Z[:, None] * effects[:, :, None]).sum(axis=-1)
    heights = (w[:, None] * logs(eta, y[:, None])).sum(axis=2) + log_weights
    heights += (pymc.logp(pymc.Normal.dist(0.0, tensor.stack(scales)), effects)).sum(axis=2)
    volumes = sum(tensor.log(spread[i][i]) for i in range(q))
    integrals = pymc.math.logsumexp(heights, axis=1, keepdims=False) + volumes
    return (coreset.weights * integrals).sum()


def _solved(tensor: Any, entries: Any, right: Any) -> Any:
    """The solution of each group's one or two equations."""
    if len(entries) == 1:
        return right / entries[0][0][:, None]
    (a, b), (_, d) = entries
    first, second = right[:, 0], right[:, 1]
    determinant = a * d - b * b
    return (
        tensor.stack([d * first - b * second, a * second - b * first], axis=1)
        / (determinant[:, None])
    )


def _spread(tensor: Any, entries: Any) -> Any:
    """R⁻ᵀ, upper triangular, of the curvature RRᵀ: its entries by place, (G,) each."""
    a = tensor.sqrt(entries[0][0])
    if len(entries) == 1:
        return [[1.0 / a]]
    b = entries[0][1] / a
    c = tensor.sqrt(entries[1][1] - b * b)
    return [[1.0 / a, -b / (a * c)], [tensor.zeros_like(a), 1.0 / c]]
