"""Functions that families write their log densities with, for the arrays of other libraries."""

from __future__ import annotations

import importlib
import math
from functools import partial
from types import SimpleNamespace
from typing import Any

# Beyond it Φ(x) is hardly a number any more, and its asymptotic series exact to ten digits.
FAR = -30.0


def of_jax() -> Any:
    """jax.numpy, with the special functions beside it."""
    jnp: Any = importlib.import_module("jax.numpy")
    special: Any = importlib.import_module("jax.scipy.special")
    nn: Any = importlib.import_module("jax.nn")
    return SimpleNamespace(
        exp=jnp.exp,
        log=jnp.log,
        log1p=jnp.log1p,
        expm1=jnp.expm1,
        where=jnp.where,
        logaddexp=jnp.logaddexp,
        expit=special.expit,
        gammaln=special.gammaln,
        log_ndtr=special.log_ndtr,
        softplus=nn.softplus,
    )


def of_pytensor() -> Any:
    """The same of pytensor."""
    tensor: Any = importlib.import_module("pytensor.tensor")
    return SimpleNamespace(
        exp=tensor.exp,
        log=tensor.log,
        log1p=tensor.log1p,
        expm1=tensor.expm1,
        where=tensor.switch,
        logaddexp=tensor.logaddexp,
        expit=tensor.sigmoid,
        gammaln=tensor.gammaln,
        log_ndtr=partial(_log_ndtr, tensor),
        softplus=tensor.softplus,
    )


def _log_ndtr(tensor: Any, x: Any) -> Any:
    """log Φ(x), which pytensor has in no form that every backend knows."""
    near = tensor.maximum(x, FAR)
    # Φ(x) = ½ erfc(−x/√2), and its asymptotic series where that is no number any more
    middle = tensor.log(0.5 * tensor.erfc(-near / math.sqrt(2.0)))
    square = tensor.minimum(x, FAR) ** -2.0
    series = tensor.log1p(-square * (1.0 - square * (3.0 - 15.0 * square)))
    tail = -0.5 / square + 0.5 * tensor.log(square) - 0.5 * math.log(2.0 * math.pi) + series
    return tensor.switch(x < FAR, tail, middle)
