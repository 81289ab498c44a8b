"""Functions that families write their log densities with, for the arrays of other libraries."""

from __future__ import annotations

import importlib
from functools import partial
from types import SimpleNamespace
from typing import Any


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
    densities: Any = importlib.import_module("pymc.distributions.dist_math")
    return SimpleNamespace(
        exp=tensor.exp,
        log=tensor.log,
        log1p=tensor.log1p,
        expm1=tensor.expm1,
        where=tensor.switch,
        logaddexp=tensor.logaddexp,
        expit=tensor.sigmoid,
        gammaln=tensor.gammaln,
        log_ndtr=partial(densities.normal_lcdf, 0.0, 1.0),
        softplus=tensor.softplus,
    )
