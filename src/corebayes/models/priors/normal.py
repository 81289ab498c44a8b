"""The Gaussian prior of every built-in model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from corebayes.models.covariance import (
    Covariance,
    check_matrix,
    check_scales,
    from_matrix,
    from_variances,
)
from corebayes.types import Array


@dataclass(frozen=True, eq=False)
class Normal:
    """N(mean, C): `mean` a number or a vector, `sd_or_cov` a standard deviation (a number, or
    one for each parameter) or a covariance matrix.

    It must be proper. Any d or fewer rows of a logistic regression are linearly separable, so
    without a proper prior an early coreset posterior would not exist.
    """

    mean: ArrayLike = 0.0
    sd_or_cov: ArrayLike = 1.0

    def __post_init__(self) -> None:
        mean = frozen_array(self.mean, "prior mean")
        scale = frozen_array(self.sd_or_cov, "prior sd_or_cov")
        if mean.ndim > 1:
            raise ValueError(f"prior mean must be a number or a vector, got shape {mean.shape}")
        if not np.all(np.isfinite(mean)):
            raise ValueError(f"prior mean must be finite, got {self.mean}")
        if scale.ndim < 2:
            check_scales(scale, "prior sd")
        else:
            check_matrix(scale, "prior covariance")
        if mean.ndim and scale.ndim and len(mean) != len(scale):
            raise ValueError(
                f"prior mean has {len(mean)} entries but sd_or_cov has {len(scale)}; "
                "give both for the same parameters"
            )
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "sd_or_cov", scale)

    @property
    def is_of_one(self) -> bool:
        """Whether it is of one number."""
        return np.ndim(self.mean) == 0 and np.ndim(self.sd_or_cov) == 0

    @property
    def numbers(self) -> tuple[float, float]:
        """Mean and standard deviation of the prior of one number."""
        return float(np.asarray(self.mean)), float(np.asarray(self.sd_or_cov))

    def __str__(self) -> str:
        if self.is_of_one:
            return "Normal({:g}, {:g})".format(*self.numbers)
        return f"Normal(…) of {max(np.size(self.mean), len(np.atleast_1d(self.sd_or_cov)))} numbers"

    def bind(self, dim: int) -> GaussianPrior:
        """This prior on `dim` parameters; numbers are repeated for each of them."""
        mean, scale = np.asarray(self.mean), np.asarray(self.sd_or_cov)
        for argument, values in (("mean", mean), ("sd_or_cov", scale)):
            if values.ndim and len(values) != dim:
                raise ValueError(
                    f"the prior's {argument} is for {len(values)} parameters, but the model has "
                    f"{dim} (columns of X, and the intercept when there is one)"
                )
        if scale.ndim < 2:
            covariance = from_variances(np.broadcast_to(scale, dim) ** 2)
        else:
            covariance = from_matrix(scale)
        return GaussianPrior(np.broadcast_to(mean, dim).copy(), covariance)

    def config(self) -> dict[str, Any]:
        """Constructor arguments as plain numbers and lists."""
        return {
            "mean": np.asarray(self.mean).tolist(),
            "sd_or_cov": np.asarray(self.sd_or_cov).tolist(),
        }


@dataclass(frozen=True, eq=False)
class GaussianPrior:
    """N(mean, covariance) on the d parameters of one model."""

    mean: Array
    parts: Covariance

    @property
    def dim(self) -> int:
        return self.mean.size

    @property
    def covariance(self) -> Array:
        return self.parts.matrix

    @property
    def precision(self) -> Array:
        return self.parts.precision

    @property
    def factor(self) -> Array:
        """Lower triangular L with LLᵀ the covariance."""
        return self.parts.factor

    def log_density(self, draws: Array) -> Array:
        """log π_0(θ_s), normalised, shape (S,). Cost: S·d² flops."""
        z = (draws - self.mean) @ self.parts.whitening.T
        return -0.5 * (np.einsum("si,si->s", z, z) + self._constant)

    def gradient(self, theta: Array) -> Array:
        return self.parts.precision @ (self.mean - theta)

    def hessian(self, theta: Array) -> Array:
        return -self.parts.precision

    @cached_property
    def _constant(self) -> float:
        return self.dim * float(np.log(2.0 * np.pi)) + self.parts.log_determinant

    def draw(self, rng: np.random.Generator, num_draws: int) -> Array:
        return self.mean + rng.standard_normal((num_draws, self.dim)) @ self.factor.T


def frozen_array(values: ArrayLike, argument: str = "it") -> Array:
    """A read-only float64 copy."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{argument} must be numbers, got {values!r}") from error
    array.flags.writeable = False
    return array
